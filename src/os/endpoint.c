/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing without blocking and without O_NONBLOCK on what the
 * host shares with us. Which way serves depends on the kind of descriptor:
 *
 *   pipe    opened anew through /proc, O_NONBLOCK on that copy alone; where
 *           that is not allowed, RWF_NOWAIT; where the kernel lacks that,
 *           poll, then at most PIPE_BUF bytes
 *   socket  MSG_DONTWAIT on each call
 *   tty     opened anew like a pipe, else poll and small pieces
 *   others  plain calls: they do not block
 */
#include "spillway/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum method { METHOD_PLAIN, METHOD_MSG, METHOD_NOWAIT, METHOD_POLL };

static enum endpoint_kind
kind_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return ENDPOINT_CLOSED;
	if (S_ISFIFO(st.st_mode))
		return ENDPOINT_PIPE;
	if (S_ISSOCK(st.st_mode))
		return ENDPOINT_SOCKET;
	if (S_ISCHR(st.st_mode))
		return isatty(fd) == 1 ? ENDPOINT_TTY : ENDPOINT_NULL;
	return ENDPOINT_FILE;
}

static bool
same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 &&
	    x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/*
 * A description of our own in the place of fd: then closing fd is all it
 * takes for the peer to see the end. False: not allowed here.
 */
static bool
reopen(int fd, enum endpoint_use use)
{
	char path[32];
	int own;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	own = open(path, (use == ENDPOINT_READ ? O_RDONLY : O_WRONLY) |
	    O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own < 0)
		return false;
	if (!same_file(own, fd) || dup3(own, fd, O_CLOEXEC) < 0) {
		close(own);
		return false;
	}
	close(own);
	return true;
}

void
endpoint_open_shared(struct endpoint *e, int fd, enum endpoint_use use)
{
	*e = (struct endpoint){ .fd = fd, .kind = kind_of(fd), .use = use,
		.shared = fd == STDERR_FILENO, .method = METHOD_PLAIN };
	switch (e->kind) {
	case ENDPOINT_PIPE:
		e->pollable = true;
		if (!reopen(fd, use))
			e->method = METHOD_NOWAIT;
		break;
	case ENDPOINT_TTY:
		e->pollable = true;
		if (!reopen(fd, use))
			e->method = METHOD_POLL;
		break;
	case ENDPOINT_SOCKET:
		e->pollable = true;
		e->method = METHOD_MSG;
		break;
	case ENDPOINT_FILE:
	case ENDPOINT_NULL:
		break;
	case ENDPOINT_CLOSED:
		e->fd = -1;
		break;
	}
}

void
endpoint_open_own(struct endpoint *e, int fd, enum endpoint_use use)
{
	*e = (struct endpoint){ .fd = fd, .kind = kind_of(fd), .use = use,
		.method = METHOD_PLAIN };
	e->pollable = e->kind == ENDPOINT_PIPE || e->kind == ENDPOINT_SOCKET;
}

void
endpoint_enlarge(struct endpoint *e, int bytes)
{
	if (e->kind == ENDPOINT_PIPE &&
	    fcntl(e->fd, F_GETPIPE_SZ) < bytes)
		(void)fcntl(e->fd, F_SETPIPE_SZ, bytes); /* best effort */
}

static bool
ready_now(const struct endpoint *e)
{
	struct pollfd p = { .fd = e->fd,
		.events = e->use == ENDPOINT_READ ? POLLIN : POLLOUT };

	return poll(&p, 1, 0) > 0;
}

static ssize_t
would_block(void)
{
	errno = EAGAIN;
	return -1;
}

/* The kernel or this kind of file does not know RWF_NOWAIT. */
static bool
no_nowait(void)
{
	return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL ||
	    errno == ESPIPE;
}

static ssize_t
read_nowait(struct endpoint *e, void *buf, size_t n)
{
	struct iovec iov = { buf, n };
	ssize_t got = preadv2(e->fd, &iov, 1, -1, RWF_NOWAIT);

	if (got < 0 && no_nowait()) {
		e->method = METHOD_POLL;
		return ready_now(e) ? read(e->fd, buf, n) : would_block();
	}
	return got;
}

static ssize_t
read_once(struct endpoint *e, void *buf, size_t n)
{
	switch ((enum method)e->method) {
	case METHOD_MSG:
		return recv(e->fd, buf, n, MSG_DONTWAIT);
	case METHOD_NOWAIT:
		return read_nowait(e, buf, n);
	case METHOD_POLL:
		return ready_now(e) ? read(e->fd, buf, n) : would_block();
	case METHOD_PLAIN:
		break;
	}
	return read(e->fd, buf, n);
}

ssize_t
endpoint_read(struct endpoint *e, void *buf, size_t n)
{
	ssize_t got;

	do {
		got = read_once(e, buf, n);
	} while (got < 0 && errno == EINTR);
	/* A peer that closed with our bytes unread, a terminal that hung up */
	if (got < 0 && (errno == ECONNRESET || (errno == EIO &&
	    e->kind == ENDPOINT_TTY)))
		return 0;
	return got;
}

/*
 * One write that fits where poll says there is room. Another writer may take
 * that room first; then this blocks, until the reader goes on: such a
 * descriptor is never another's on fd 1, and on a shared one it is not tried.
 */
static ssize_t
write_small(struct endpoint *e, const struct iovec *iov, int n)
{
	size_t len;

	while (n > 1 && iov->iov_len == 0) {
		iov++;
		n--;
	}
	if (!ready_now(e))
		return would_block();
	len = iov->iov_len < PIPE_BUF ? iov->iov_len : PIPE_BUF;
	return write(e->fd, iov->iov_base, len);
}

static ssize_t
write_nowait(struct endpoint *e, const struct iovec *iov, int n)
{
	ssize_t done = pwritev2(e->fd, iov, n, -1, RWF_NOWAIT);

	if (done < 0 && no_nowait()) {
		e->method = METHOD_POLL;
		return write_small(e, iov, n);
	}
	return done;
}

static ssize_t
write_once(struct endpoint *e, const struct iovec *iov, int n)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)n };

	switch ((enum method)e->method) {
	case METHOD_MSG:
		return sendmsg(e->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	case METHOD_NOWAIT:
		return write_nowait(e, iov, n);
	case METHOD_POLL:
		return write_small(e, iov, n);
	case METHOD_PLAIN:
		break;
	}
	return writev(e->fd, iov, n);
}

ssize_t
endpoint_writev(struct endpoint *e, const struct iovec *iov, int n)
{
	ssize_t done;

	do {
		done = write_once(e, iov, n);
	} while (done < 0 && errno == EINTR);
	/* A socket that cannot take it now, for want of kernel memory */
	if (done < 0 && errno == ENOBUFS)
		errno = EAGAIN;
	return done;
}

int
endpoint_unread(const struct endpoint *e, size_t *unread)
{
	int n = 0;
	unsigned long how;

	if (e->kind == ENDPOINT_PIPE || (e->kind == ENDPOINT_SOCKET &&
	    e->use == ENDPOINT_READ))
		how = FIONREAD;
	else if (e->kind == ENDPOINT_SOCKET)
		how = SIOCOUTQ;
	else
		return 0;
	if (ioctl(e->fd, how, &n) != 0 || n < 0)
		return 0;
	*unread = (size_t)n;
	return 1;
}

bool
endpoint_peer_gone(const struct endpoint *e)
{
	struct pollfd p = { .fd = e->fd };

	return e->kind != ENDPOINT_CLOSED && poll(&p, 1, 0) > 0 &&
	    (p.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

bool
endpoint_peer_done(const struct endpoint *e)
{
	struct pollfd p = { .fd = e->fd, .events = POLLRDHUP };

	return e->kind != ENDPOINT_CLOSED && poll(&p, 1, 0) > 0 &&
	    (p.revents & (POLLERR | POLLHUP | POLLRDHUP | POLLNVAL)) != 0;
}

/*
 * Of fds 0 to 2 the number stays taken, by /dev/null, so that nothing opened
 * later lands there.
 */
void
endpoint_close(struct endpoint *e)
{
	int null = -1;

	if (e->kind == ENDPOINT_CLOSED)
		return;
	if (e->fd <= STDERR_FILENO)
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup3(null, e->fd, O_CLOEXEC) < 0)
		close(e->fd);
	if (null >= 0)
		close(null);
	e->kind = ENDPOINT_CLOSED;
	e->fd = -1;
}
