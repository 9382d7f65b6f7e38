/* SPDX-License-Identifier: MIT */
/*
 * The path to the host's stderr (contract section 8): server stderr, junk
 * diverted from stdout, the proxy's log and metrics, through one bounded
 * queue that never blocks anything. Whole lines are dropped when it is full,
 * metrics and log first, server lines last, and counted. Pure: bytes in,
 * iovecs out.
 */
#ifndef SPILLWAY_TO_STDERR_H
#define SPILLWAY_TO_STDERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "spillway/limits.h"

#define STDERR_QUEUE_MAX 1048576u /* bytes waiting for a slow stderr */
#define STDERR_JUNK_MAX 512	  /* bytes of one diverted line, escaped */
#define STDERR_JUNK_RATE 20	  /* diverted lines a second */
#define STDERR_TAIL 2048	  /* bytes kept for server_exited */

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG };

const char *log_level_name(enum log_level);

struct to_stderr;

struct stderr_options {
	enum log_level level; /* least important level that is written */
	bool tty;	      /* neutralise escape sequences in server lines */
	bool drop_server;     /* --server-stderr=drop: drained, not shown */
};

struct to_stderr *to_stderr_new(const struct stderr_options *);
void to_stderr_free(struct to_stderr **);

/*
 * Bytes of the server's stderr as they came. Whole lines stay whole; a line
 * that grows beyond 64 KiB, or waits unfinished for more than 100 ms, goes
 * out in parts (progress bars without LF). A line of ours that comes between
 * two parts gets an LF before it.
 */
void to_stderr_server(struct to_stderr *, const char *bytes, size_t n,
    usec_t now);
/* The server's stderr ended: an unfinished line goes out with an LF. */
void to_stderr_server_end(struct to_stderr *, usec_t now);

/*
 * One diverted line of server stdout: n bytes of it at text, total in all.
 * Written as `spillway: stdout: TEXT`, control bytes and ill-formed UTF-8
 * escaped as \xNN, clipped to STDERR_JUNK_MAX with the LF.
 */
void to_stderr_junk(struct to_stderr *, const char *text, size_t n,
    uint64_t total, usec_t now);

/* `spillway: LEVEL: TEXT` from a printf format; control bytes escaped. */
void to_stderr_log(struct to_stderr *, enum log_level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A metrics line, already formatted, prefix and all, without LF. */
void to_stderr_metrics(struct to_stderr *, const char *line, size_t n);

/* What to write next; whole lines in order. sent: n bytes were written. */
int to_stderr_peek(struct to_stderr *, struct iovec *, int max);
void to_stderr_sent(struct to_stderr *, size_t n);
bool to_stderr_empty(const struct to_stderr *);

/* stderr is gone or useless: forget what waits, drop what comes. */
void to_stderr_close(struct to_stderr *);

/*
 * Timers: writes a due `suppressed N lines` line or an overdue partial line;
 * returns the next instant it wants to be called, or USEC_NEVER. At the end
 * of the session, now = USEC_NEVER writes whatever is still held back.
 */
usec_t to_stderr_tick(struct to_stderr *, usec_t now);

/*
 * The log and metrics lines that were accepted since the last call, for
 * --log-file; same bytes, from a second bounded queue that exists only when
 * to_stderr_tee() was called.
 */
int to_stderr_tee(struct to_stderr *);
int to_stderr_tee_peek(struct to_stderr *, struct iovec *, int max);
void to_stderr_tee_sent(struct to_stderr *, size_t n);

/*
 * The last whole stderr lines of the server with their LFs, at most
 * STDERR_TAIL bytes; the end of the last line if that alone is longer.
 */
size_t to_stderr_tail(const struct to_stderr *, char *buf, size_t cap);

uint64_t to_stderr_dropped(const struct to_stderr *); /* lines */

#endif
