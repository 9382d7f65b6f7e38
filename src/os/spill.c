/* SPDX-License-Identifier: MIT */
/*
 * The spill file: a file without a name, so that nothing is left behind
 * however the process ends, and written by pwrite alone (a full disk is then
 * an error and not a SIGBUS; SIGXFSZ must be ignored by main). Blocks that
 * are dropped are gathered to runs and punched out, as one call for a run
 * costs little more than one for a block. It must not know what a queue is.
 */
#include "spillway/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Blocks dropped and not yet punched: 1 MiB at most. */
#define RUN_MAX 16u

#define FD_FREE 3 /* the lowest that is nobody's stdin, stdout or stderr */

struct spill {
	char *dir;
	int fd;		/* the file, or the descriptor kept for it */
	bool opened;
	bool no_punch;	/* the file system cannot */
	uint32_t run;	/* first block of a run dropped, */
	uint32_t run_n;	/* and its length */
};

static void
close_fd(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

/* Off the numbers of the standard streams, should those be closed. */
static int
fd_upwards(int fd)
{
	int up;

	if (fd < 0 || fd >= FD_FREE)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, FD_FREE);
	close_fd(&fd);
	return up;
}

/* Where O_TMPFILE is not known: a name for a moment. */
static int
open_named(const char *dir)
{
	static const char tail[] = "/spillway.XXXXXX";
	size_t n = strlen(dir);
	char *path = malloc(n + sizeof(tail));
	int fd;

	if (path == NULL)
		return -1;
	memcpy(path, dir, n);
	memcpy(path + n, tail, sizeof(tail));
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0 && unlink(path) != 0)
		close_fd(&fd);
	if (fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR) != 0)
		close_fd(&fd);
	free(path);
	return fd;
}

static int
open_unnamed(const char *dir)
{
	int fd;

	do {
		fd = open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC,
		    S_IRUSR | S_IWUSR);
	} while (fd < 0 && errno == EINTR);
	/* EISDIR: a kernel, ENOTSUP: a file system that does not know it. */
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		fd = open_named(dir);
	return fd_upwards(fd);
}

/* tmpfs is memory, which is what the disk is to relieve. */
static bool
is_memory(const struct statfs *fs)
{
	return (uint32_t)fs->f_type == TMPFS_MAGIC ||
	    (uint32_t)fs->f_type == RAMFS_MAGIC;
}

/* Can the file be there? Else false, and why. */
static bool
dir_serves(const char *dir, bool named, const char **why)
{
	struct statfs fs;
	bool memory;
	int fd = open_unnamed(dir);

	if (fd < 0) {
		*why = strerror(errno);
		return false;
	}
	if (fstatfs(fd, &fs) != 0) {
		*why = strerror(errno);
		close_fd(&fd);
		return false;
	}
	close_fd(&fd);
	memory = !named && is_memory(&fs);
	*why = memory ? "is kept in memory (tmpfs)" : "";
	return !memory;
}

static char *
dir_choose(const char *named, char *err, size_t cap)
{
	const char *dir = named != NULL ? named : "/var/tmp";
	const char *tmp = getenv("TMPDIR");
	const char *why;
	const char *why_tmp;

	if (dir_serves(dir, named != NULL, &why))
		return strdup(dir);
	if (named != NULL || tmp == NULL || tmp[0] != '/') {
		snprintf(err, cap, "spill directory %s: %s", dir, why);
		return NULL;
	}
	if (dir_serves(tmp, false, &why_tmp))
		return strdup(tmp);
	snprintf(err, cap, "spill directory %s: %s; %s: %s", dir, why, tmp,
	    why_tmp);
	return NULL;
}

struct spill *
spill_new(const char *dir, char *err, size_t cap)
{
	struct spill *s = calloc(1, sizeof(*s));

	if (cap > 0)
		snprintf(err, cap, "spill: out of memory");
	if (s == NULL)
		return NULL;
	s->fd = -1;
	s->dir = dir_choose(dir, err, cap);
	if (s->dir == NULL) {
		spill_free(&s);
		return NULL;
	}
	s->fd = fd_upwards(open("/dev/null", O_RDWR | O_CLOEXEC));
	if (s->fd < 0) {
		snprintf(err, cap, "spill: /dev/null: %s", strerror(errno));
		spill_free(&s);
		return NULL;
	}
	if (cap > 0)
		err[0] = '\0';
	return s;
}

void
spill_free(struct spill **sp)
{
	if (*sp == NULL)
		return;
	close_fd(&(*sp)->fd);
	free((*sp)->dir);
	free(*sp);
	*sp = NULL;
}

/* If descriptors have run out meanwhile, the one kept is given for it. */
static int
spill_open(struct spill *s)
{
	int fd;

	if (s->opened)
		return 0;
	fd = open_unnamed(s->dir);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		close_fd(&s->fd);
		fd = open_unnamed(s->dir);
	}
	if (fd < 0)
		return -1;
	if (s->fd >= 0) {
		if (dup3(fd, s->fd, O_CLOEXEC) < 0) {
			close_fd(&fd);
			return -1;
		}
		close_fd(&fd);
	} else {
		s->fd = fd;
	}
	s->opened = true;
	return 0;
}

static void
run_punch(struct spill *s)
{
	int rc;

	if (s->run_n == 0)
		return;
	do {
		rc = fallocate(s->fd,
		    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		    (off_t)s->run * SPILL_BLOCK,
		    (off_t)s->run_n * SPILL_BLOCK);
	} while (rc != 0 && errno == EINTR);
	/* The space is then used again by later blocks, but not given back. */
	if (rc != 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
		s->no_punch = true;
	s->run_n = 0;
}

/* A block that is written again must not be punched later. */
static void
run_without(struct spill *s, uint32_t block)
{
	if (s->run_n == 0 || block < s->run || block - s->run >= s->run_n)
		return;
	if (block == s->run) {
		s->run++;
		s->run_n--;
	} else if (block == s->run + s->run_n - 1) {
		s->run_n--;
	} else {
		run_punch(s);
	}
}

static void
drop(void *arg, uint32_t block)
{
	struct spill *s = arg;

	if (!s->opened || s->no_punch)
		return;
	if (s->run_n > 0 && block == s->run + s->run_n) {
		s->run_n++;
	} else if (s->run_n > 0 && block + 1 == s->run) {
		s->run--;
		s->run_n++;
	} else {
		run_punch(s);
		s->run = block;
		s->run_n = 1;
	}
	if (s->run_n >= RUN_MAX)
		run_punch(s);
}

static int
put(void *arg, uint32_t block, const void *bytes)
{
	struct spill *s = arg;
	const char *from = bytes;
	off_t at = (off_t)block * SPILL_BLOCK;
	size_t left = SPILL_BLOCK;
	ssize_t n;

	if (spill_open(s) != 0)
		return -1;
	run_without(s, block);
	while (left > 0) {
		n = pwrite(s->fd, from, left, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = ENOSPC;
		if (n <= 0)
			return -1;
		from += n;
		at += n;
		left -= (size_t)n;
	}
	return 0;
}

static int
get(void *arg, uint32_t block, size_t off, void *to, size_t n)
{
	struct spill *s = arg;
	char *out = to;
	off_t at = (off_t)block * SPILL_BLOCK + (off_t)off;
	ssize_t got;

	if (!s->opened) {
		errno = EBADF;
		return -1;
	}
	while (n > 0) {
		got = pread(s->fd, out, n, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			errno = EIO;
		if (got <= 0)
			return -1;
		out += got;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

struct store_ops
spill_ops(struct spill *s)
{
	return (struct store_ops){
		.put = put, .get = get, .drop = drop, .arg = s
	};
}
