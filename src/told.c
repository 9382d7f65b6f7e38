/* SPDX-License-Identifier: MIT */
/*
 * When figures go where: the metrics line at the end, at intervals and on
 * SIGUSR1, the Prometheus file at the same moments, the log file. What they
 * look like is metrics.c's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session_impl.h"

#define FILE_INTERVAL (10 * USEC_SEC)
#define PIECES 16

static const char prefix[] = "spillway: metrics ";

static usec_t
after(usec_t now, usec_t interval)
{
	return interval == USEC_NEVER ? USEC_NEVER : now + interval;
}

/* 0, or -1 and a line on stderr. */
int
told_open(struct session *s)
{
	const struct config *c = s->config;

	s->log_fd = -1;
	s->next_metrics = after(s->now, c->metrics_interval);
	s->next_file = c->metrics_file != NULL ? s->now : USEC_NEVER;
	if (c->log_file == NULL)
		return 0;
	s->log_fd = open(c->log_file, O_WRONLY | O_CREAT | O_APPEND |
	    O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (s->log_fd >= 0 && to_stderr_tee(s->err) == 0)
		return 0;
	fprintf(stderr, "spillway: error: --log-file %s: %s\n", c->log_file,
	    strerror(s->log_fd < 0 ? errno : ENOMEM));
	return -1;
}

void
told_close(struct session *s)
{
	told_log_file(s);
	if (s->log_fd >= 0 && close(s->log_fd) != 0) {
		/* what could be written was; nobody is left to tell */
	}
	s->log_fd = -1;
}

/* Log lines that cannot be written there went to stderr all the same. */
void
told_log_file(struct session *s)
{
	struct iovec iov[PIECES];
	int pieces;

	while (s->log_fd >= 0 &&
	    (pieces = to_stderr_tee_peek(s->err, iov, PIECES)) > 0) {
		ssize_t n = writev(s->log_fd, iov, pieces);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) { /* full or gone: let it go, keep the queue free */
			n = 0;
			for (int i = 0; i < pieces; i++)
				n += (ssize_t)iov[i].iov_len;
		}
		to_stderr_tee_sent(s->err, (size_t)n);
	}
}

static int
write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -1;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* A reader sees the old file or the new one, never a part. */
static int
replace_file(const char *path, const char *text, size_t n)
{
	size_t cap = strlen(path) + sizeof ".spillway.4294967295";
	char *tmp = malloc(cap);
	int fd, rc;

	if (tmp == NULL)
		return -1;
	snprintf(tmp, cap, "%s.spillway.%u", path, (unsigned)getpid());
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
	    0644);
	rc = fd < 0 ? -1 : write_all(fd, text, n);
	if (fd >= 0 && close(fd) != 0)
		rc = -1;
	if (rc == 0)
		rc = rename(tmp, path);
	if (rc != 0 && fd >= 0) {
		int saved = errno;

		(void)unlink(tmp);
		errno = saved;
	}
	free(tmp);
	return rc;
}

static void
write_file(struct session *s, const struct metrics *m)
{
	size_t n = metrics_prometheus(m, NULL, 0);
	char *text = malloc(n + 1);
	int rc = -1;

	errno = ENOMEM;
	if (text != NULL) {
		metrics_prometheus(m, text, n + 1);
		rc = replace_file(s->config->metrics_file, text, n);
	}
	if (rc != 0 && !s->file_told)
		to_stderr_log(s->err, LOG_LEVEL_WARN, "--metrics-file %s: %s",
		    s->config->metrics_file, strerror(errno));
	s->file_told = rc != 0;
	free(text);
}

static void
write_line(struct session *s, const struct metrics *m)
{
	char line[4096];
	size_t n = 0;

	switch (s->config->metrics) {
	case METRICS_LOGFMT:
		memcpy(line, prefix, sizeof prefix - 1);
		n = sizeof prefix - 1;
		n += metrics_logfmt(m, line + n, sizeof line - n);
		break;
	case METRICS_JSON:
		n = metrics_json(m, line, sizeof line);
		break;
	case METRICS_OFF:
		return;
	}
	if (n < sizeof line)
		to_stderr_metrics(s->err, line, n);
}

static struct metrics *
figures(struct session *s)
{
	struct relay_probe probe;
	struct metrics *m;

	streams_probe(s, &probe);
	relay_look(s->relay, &probe, s->now);
	m = relay_metrics(s->relay, s->now);
	m->stderr_bytes = s->stderr_bytes;
	return m;
}

/* Line and file, now. */
void
told_metrics(struct session *s)
{
	const struct metrics *m = figures(s);

	write_line(s, m);
	if (s->config->metrics_file != NULL)
		write_file(s, m);
}

void
told_tick(struct session *s)
{
	if (s->next_metrics <= s->now) {
		told_metrics(s);
		s->next_metrics = after(s->now, s->config->metrics_interval);
		if (s->next_file != USEC_NEVER)
			s->next_file = s->now + FILE_INTERVAL;
	} else if (s->next_file <= s->now) {
		write_file(s, figures(s));
		s->next_file = s->now + FILE_INTERVAL;
	}
	told_log_file(s);
}

usec_t
told_deadline(const struct session *s)
{
	return s->next_metrics < s->next_file ? s->next_metrics :
	    s->next_file;
}
