/* SPDX-License-Identifier: MIT */
/*
 * The six streams of a session: what is ready is read, given to the engine,
 * and what that lets go is written at once, before anything is waited for.
 * One read and one write a turn are the rule; a bound of a few keeps a
 * talkative side from starving the others.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session_impl.h"

#define READS 8	       /* of one stream in one turn */
#define WRITES 16
#define LAST_READS 4096 /* after the server's exit: more than pipes hold */
#define PIECES 64      /* of one writev */
#define SOCKET_COST 512 /* at least so much SIOCOUTQ counts per write */
#define SLOW_RATE 4096 /* bytes a second: who reads so fast is not stalled */

static bool
is_ready(const struct session *s, const struct endpoint *e, enum source src)
{
	return e->kind != ENDPOINT_CLOSED &&
	    (!e->pollable || (s->ready & 1u << src) != 0);
}

/* Are both ends of the host one socket? Then fd 1 cannot be watched alone. */
static bool
one_socket(void)
{
	struct stat in, out;

	return fstat(STDIN_FILENO, &in) == 0 &&
	    fstat(STDOUT_FILENO, &out) == 0 &&
	    in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

void
streams_open(struct session *s)
{
	bool same = one_socket();

	endpoint_open_shared(&s->host_in, STDIN_FILENO, ENDPOINT_READ);
	endpoint_open_shared(&s->host_out, STDOUT_FILENO, ENDPOINT_WRITE);
	endpoint_open_shared(&s->host_err, STDERR_FILENO, ENDPOINT_WRITE);
	endpoint_open_own(&s->server_in, s->child.in, ENDPOINT_WRITE);
	endpoint_open_own(&s->server_out, s->child.out, ENDPOINT_READ);
	endpoint_open_own(&s->server_err, s->child.err, ENDPOINT_READ);
	s->child.in = s->child.out = s->child.err = -1;
	s->watch_host = s->host_out.pollable && !same &&
	    (s->host_out.kind == ENDPOINT_PIPE ||
	    s->host_out.kind == ENDPOINT_SOCKET);
}

void
streams_close(struct session *s)
{
	endpoint_close(&s->server_in);
	endpoint_close(&s->server_out);
	endpoint_close(&s->server_err);
	endpoint_close(&s->host_in);
	endpoint_close(&s->host_out);
	endpoint_close(&s->host_err);
}

void
streams_host_gone(struct session *s)
{
	if (s->host_out.kind == ENDPOINT_CLOSED)
		return;
	endpoint_close(&s->host_out);
	relay_peer_gone(s->relay, RELAY_HOST, s->now);
	if (!s->buried)
		life_event(s, STOP_ON_HOST_GONE, 0);
}

/* Its read end: gone, or just a peer that will not write to us. */
void
streams_look_at_host(struct session *s)
{
	if ((s->ready & 1u << SOURCE_HOST_GONE) == 0)
		return;
	if (endpoint_peer_gone(&s->host_out))
		streams_host_gone(s);
	else
		s->watch_host = false;
}

/*
 * A socket tells that its reader moves only when a whole write of ours has
 * been read: with a short --stall-timeout writes are short, or a slow host
 * would pass for stalled. With 30 s that is no limit.
 */
static int
shorten(const struct session *s, struct iovec *iov, int pieces)
{
	usec_t timeout = s->config->limits.stall_timeout;
	size_t room;

	if (s->host_out.kind != ENDPOINT_SOCKET || timeout > 60 * USEC_SEC)
		return pieces;
	room = (size_t)(timeout * SLOW_RATE / USEC_SEC);
	if (room < SOCKET_COST)
		room = SOCKET_COST;
	for (int i = 0; i < pieces; i++) {
		if (iov[i].iov_len >= room) {
			iov[i].iov_len = room;
			return i + 1;
		}
		room -= iov[i].iov_len;
	}
	return pieces;
}

void
streams_write_host(struct session *s)
{
	struct iovec iov[PIECES];
	int pieces, turns = WRITES;

	if (is_ready(s, &s->host_out, SOURCE_HOST_OUT))
		s->host_out_full = false;
	while (!s->host_out_full && s->host_out.kind != ENDPOINT_CLOSED &&
	    (pieces = relay_peek(s->relay, RELAY_HOST, iov, PIECES)) > 0) {
		ssize_t n;

		if (turns-- == 0) {
			s->more = true;
			return;
		}
		n = endpoint_writev(&s->host_out, iov,
		    shorten(s, iov, pieces));
		if (n < 0 && errno != EAGAIN) {
			streams_host_gone(s);
			return;
		}
		if (n < 0) {
			s->host_out_full = true;
			return;
		}
		relay_sent(s->relay, RELAY_HOST, (size_t)n, s->now);
		s->ready &= ~(1u << SOURCE_HOST_OUT);
	}
}

/* The server closed its stdin, or died, which its exit will tell. */
static void
server_in_gone(struct session *s)
{
	endpoint_close(&s->server_in);
	relay_peer_gone(s->relay, RELAY_SERVER, s->now);
	life_event(s, STOP_ON_STDOUT_CLOSED, 0);
}

void
streams_write_server(struct session *s)
{
	struct iovec iov[PIECES];
	int pieces, turns = WRITES;

	if (is_ready(s, &s->server_in, SOURCE_SERVER_IN))
		s->server_in_full = false;
	while (!s->server_in_full && s->server_in.kind != ENDPOINT_CLOSED &&
	    (pieces = relay_peek(s->relay, RELAY_SERVER, iov, PIECES)) > 0) {
		ssize_t n;

		if (turns-- == 0) {
			s->more = true;
			return;
		}
		n = endpoint_writev(&s->server_in, iov, pieces);
		if (n < 0 && errno != EAGAIN) {
			server_in_gone(s);
			return;
		}
		if (n < 0) {
			s->server_in_full = true;
			return;
		}
		relay_sent(s->relay, RELAY_SERVER, (size_t)n, s->now);
		if (s->stop.state == STOP_EOF)
			life_event(s, STOP_ON_DELIVERED, 0);
		s->ready &= ~(1u << SOURCE_SERVER_IN);
	}
}

static void
server_out_ended(struct session *s)
{
	endpoint_close(&s->server_out);
	relay_server_eof(s->relay, s->now);
}

/*
 * Only once there is bulk: a user's pipes share one allowance, and most
 * sessions never need more than a page or two of it (pipe(7)).
 */
static void
enlarge(struct session *s)
{
	s->enlarged = true;
	endpoint_enlarge(&s->server_out, PIPE_BULK);
	endpoint_enlarge(&s->host_out, PIPE_BULK);
}

/*
 * One read of the server's stdout; false when there is no more now. What
 * lies in the buffer goes out from there, or is copied by settling.
 */
static bool
read_server_once(struct session *s)
{
	size_t size = s->server_read;
	uint64_t had;
	ssize_t n = endpoint_read(&s->server_out, s->server_buffer, size);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		server_out_ended(s);
		return false;
	}
	if ((size_t)n >= BULK && !s->enlarged)
		enlarge(s);
	had = relay_metrics(s->relay, s->now)->to_host_bytes;
	relay_server_bytes(s->relay, s->server_buffer, (size_t)n, s->now);
	streams_write_host(s);
	relay_settle(s->relay, RELAY_HOST);
	/* What is suppressed gives the server no more time to end. */
	if (s->stop.state == STOP_EOF && (!relay_quiet(s->relay) ||
	    relay_metrics(s->relay, s->now)->to_host_bytes != had))
		life_event(s, STOP_ON_REPLY, 0);
	if ((size_t)n < size)
		return false;
	s->server_read = READ_SIZE_MAX;
	return true;
}

static void
read_server_stderr(struct session *s, int reads)
{
	while (reads-- > 0 && s->server_err.kind != ENDPOINT_CLOSED) {
		ssize_t n = endpoint_read(&s->server_err, s->host_buffer,
		    READ_SIZE);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			endpoint_close(&s->server_err);
			to_stderr_server_end(s->err, s->now);
			return;
		}
		s->stderr_bytes += (uint64_t)n;
		to_stderr_server(s->err, s->host_buffer, (size_t)n, s->now);
		if ((size_t)n < READ_SIZE)
			return;
	}
	s->more = s->server_err.kind != ENDPOINT_CLOSED;
}

void
streams_drain_server(struct session *s)
{
	int reads = READS;

	if (is_ready(s, &s->server_err, SOURCE_SERVER_ERR))
		read_server_stderr(s, READS);
	if (!is_ready(s, &s->server_out, SOURCE_SERVER_OUT))
		return;
	while (read_server_once(s))
		if (--reads == 0) {
			s->more = true;
			return;
		}
	s->server_read = READ_SIZE;
}

/* The server was reaped: what it wrote lies in its pipes, all of it. */
void
streams_last_bytes(struct session *s)
{
	int reads = LAST_READS;

	if (s->server_err.kind != ENDPOINT_CLOSED)
		read_server_stderr(s, LAST_READS);
	while (s->server_out.kind != ENDPOINT_CLOSED && reads-- > 0) {
		size_t n = 0;

		(void)read_server_once(s);
		if (s->server_out.kind != ENDPOINT_CLOSED &&
		    endpoint_unread(&s->server_out, &n) == 1 && n == 0) {
			/* Empty, or at its end: one more read tells. */
			(void)read_server_once(s);
			return;
		}
	}
}

void
streams_read_host(struct session *s)
{
	int reads = READS;

	if (!is_ready(s, &s->host_in, SOURCE_HOST_IN))
		return;
	while ((relay_wants(s->relay) & RELAY_READ_HOST) != 0) {
		ssize_t n;

		if (reads-- == 0) {
			s->more = true;
			return;
		}
		n = endpoint_read(&s->host_in, s->host_buffer, READ_SIZE);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			endpoint_close(&s->host_in);
			relay_host_eof(s->relay, s->now);
			life_event(s, STOP_ON_HOST_EOF, 0);
			return;
		}
		relay_host_bytes(s->relay, s->host_buffer, (size_t)n, s->now);
		streams_write_server(s);
		relay_settle(s->relay, RELAY_SERVER);
		if ((size_t)n < READ_SIZE)
			return;
	}
}

void
streams_write_stderr(struct session *s)
{
	struct iovec iov[PIECES];
	int pieces, turns = WRITES;

	if (is_ready(s, &s->host_err, SOURCE_HOST_ERR))
		s->host_err_full = false;
	if (s->host_err.kind == ENDPOINT_CLOSED)
		to_stderr_close(s->err);
	while (!s->host_err_full && turns-- > 0 &&
	    (pieces = to_stderr_peek(s->err, iov, PIECES)) > 0) {
		ssize_t n = endpoint_writev(&s->host_err, iov, pieces);

		if (n < 0 && errno == EAGAIN) {
			s->host_err_full = true;
		} else if (n < 0) {
			endpoint_close(&s->host_err);
			to_stderr_close(s->err);
			return;
		} else {
			to_stderr_sent(s->err, (size_t)n);
		}
	}
	if (turns < 0)
		s->more = true;
}

void
streams_probe(const struct session *s, struct relay_probe *p)
{
	size_t n;

	memset(p, 0, sizeof *p);
	if (s->host_out.kind != ENDPOINT_CLOSED &&
	    endpoint_unread(&s->host_out, &n) == 1) {
		p->host_knows = true;
		p->host_unread = n;
		if (s->host_out.kind == ENDPOINT_SOCKET)
			p->host_cost = SOCKET_COST;
	}
	if (s->server_in.kind != ENDPOINT_CLOSED &&
	    endpoint_unread(&s->server_in, &n) == 1) {
		p->server_knows = true;
		p->server_unread = n;
	}
	if (s->server_out.kind != ENDPOINT_CLOSED &&
	    endpoint_unread(&s->server_out, &n) == 1)
		p->server_waiting = n > 0;
}
