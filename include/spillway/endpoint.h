/* SPDX-License-Identifier: MIT */
/*
 * One end of a byte stream: reads and writes that never block and never
 * change O_NONBLOCK on a description we share with the host (contract
 * section 1). How depends on the kind of descriptor; os.md section B1 is the
 * table this follows.
 */
#ifndef SPILLWAY_ENDPOINT_H
#define SPILLWAY_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

enum endpoint_kind {
	ENDPOINT_PIPE,
	ENDPOINT_SOCKET,
	ENDPOINT_TTY,
	ENDPOINT_FILE, /* regular: always ready, cannot be polled */
	ENDPOINT_NULL, /* /dev/null and other character devices */
	ENDPOINT_CLOSED,
};

enum endpoint_use { ENDPOINT_READ, ENDPOINT_WRITE };

struct endpoint {
	int fd; /* what to poll; may be another than the one given */
	enum endpoint_kind kind;
	enum endpoint_use use;
	bool pollable; /* epoll takes it; if not it is always ready */
	bool shared;   /* others may write to it too (stderr) */
	unsigned char method; /* endpoint.c's own: how I/O is done */
};

/*
 * Take over fd, one of 0, 1, 2 (shared with the host: reopened through
 * /proc/self/fd where that is safe, else used with per-call flags). Never
 * fails: at worst the endpoint is slower.
 */
void endpoint_open_shared(struct endpoint *, int fd, enum endpoint_use);

/* An fd of our own that already is O_NONBLOCK. */
void endpoint_open_own(struct endpoint *, int fd, enum endpoint_use);

/* Ask for a larger pipe, best effort; nothing for other kinds. */
void endpoint_enlarge(struct endpoint *, int bytes);

/*
 * read: bytes read; 0 at the end (EOF, ECONNRESET, EIO on a tty); -1 with
 * errno EAGAIN when nothing is there, else an error. EINTR is retried.
 */
ssize_t endpoint_read(struct endpoint *, void *buf, size_t n);

/*
 * write: bytes written, maybe fewer; -1 with errno EAGAIN when nothing fits,
 * EPIPE or ECONNRESET when nobody reads any more, ENOSPC, or another error.
 */
ssize_t endpoint_writev(struct endpoint *, const struct iovec *, int n);

/*
 * Bytes the peer has not read yet: 1 and *unread (pipes: exact; sockets: the
 * kernel's own accounting, only 0 and falling mean something), or 0 if the
 * kind does not tell (os.md B2).
 */
int endpoint_unread(const struct endpoint *, size_t *unread);

/* Has the reader of a write endpoint gone? Polled without blocking. */
bool endpoint_peer_gone(const struct endpoint *);

/*
 * Will the writer of a read endpoint write no more, though what it wrote may
 * still lie there unread? Polled without blocking.
 */
bool endpoint_peer_done(const struct endpoint *);

/* Close all our copies, so that the peer sees the end. */
void endpoint_close(struct endpoint *);

#endif
