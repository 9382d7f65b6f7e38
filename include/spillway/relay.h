/* SPDX-License-Identifier: MIT */
/*
 * The engine: bytes and a clock in, bytes and wishes out. It owns both paths,
 * what is pending, the budget and the figures, and performs no I/O; the shell
 * (session.c) reads and writes for it, asks what it wants, and calls it when
 * time has come.
 */
#ifndef SPILLWAY_RELAY_H
#define SPILLWAY_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "spillway/budget.h"
#include "spillway/limits.h"
#include "spillway/metrics.h"
#include "spillway/to_stderr.h"

enum relay_peer { RELAY_HOST, RELAY_SERVER };

enum relay_want {
	RELAY_READ_HOST = 1,
	RELAY_READ_SERVER = 2,
	RELAY_WRITE_HOST = 4,
	RELAY_WRITE_SERVER = 8,
	RELAY_CLOSE_SERVER = 16, /* the host ended and all is delivered */
	RELAY_STOP = 32,	 /* the session is to be ended */
};

/* What the shell sees of the descriptors, for the stall rules. */
struct relay_probe {
	bool host_knows;     /* host_unread means something */
	uint64_t host_unread; /* bytes the host has not read in the kernel */
	uint64_t host_cost;   /* what a write adds to them beside its bytes */
	bool server_waiting; /* the server has written what we did not read */
	bool server_knows;
	uint64_t server_unread; /* bytes the server has not read */
};

struct relay;

/*
 * ops NULL: no spill. err is borrowed. seed keys the hashes of ids. NULL when
 * out of memory.
 */
struct relay *relay_new(const struct limits *, const struct store_ops *ops,
    struct to_stderr *err, uint64_t seed, usec_t now);
void relay_free(struct relay **);

/*
 * Bytes came from a peer. They are borrowed until relay_settle() for that
 * direction, which must be called before the buffer is used again; between
 * the two the shell may write what relay_peek() shows.
 */
void relay_host_bytes(struct relay *, const char *, size_t, usec_t now);
void relay_host_eof(struct relay *, usec_t now);
void relay_server_bytes(struct relay *, const char *, size_t, usec_t now);
void relay_server_eof(struct relay *, usec_t now);
void relay_settle(struct relay *, enum relay_peer to);

/* What to write to a peer, and how much of it was taken. */
int relay_peek(struct relay *, enum relay_peer, struct iovec *, int max);
void relay_sent(struct relay *, enum relay_peer, size_t n, usec_t now);

/* A peer's read end is gone: what waits for it is dropped. */
void relay_peer_gone(struct relay *, enum relay_peer, usec_t now);

/*
 * The server is gone and all it wrote was given to relay_server_bytes():
 * every pending request gets its error. status is a wait status, or -1 when
 * the server lives but its session is over. stopping: we had begun to end it.
 */
void relay_server_gone(struct relay *, int status, bool stopping,
    usec_t now);

/* The clocks restart: the proxy was stopped, suspended or starved. */
void relay_restart_clocks(struct relay *, usec_t now);

/*
 * Time passes; the probe is looked at. Returns the next instant at which to
 * call again, or USEC_NEVER.
 */
usec_t relay_tick(struct relay *, const struct relay_probe *, usec_t now);
usec_t relay_deadline(const struct relay *); /* the same, without a look */

/* Look at the peers, so that the verdict of relay_metrics() is of now. */
void relay_look(struct relay *, const struct relay_probe *, usec_t now);

unsigned relay_wants(struct relay *); /* set of enum relay_want */
bool relay_failed(const struct relay *);    /* ended by the proxy's own rule */
bool relay_quiet(const struct relay *);	    /* nothing waits anywhere */

/* Figures of the moment; the shell adds what only it knows. */
struct metrics *relay_metrics(struct relay *, usec_t now);

#endif
