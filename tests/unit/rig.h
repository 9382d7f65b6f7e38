/* SPDX-License-Identifier: MIT */
/*
 * One engine between two peers that write down what they get: what the tests
 * of whole sessions share. Time stands still unless a test moves it, the
 * spill file is memory. Every step checks the queues and the budget.
 */
#ifndef RIG_H
#define RIG_H

#include <stddef.h>

#include "core/relay_impl.h"

/* Bytes that grow; always followed by a NUL. */
struct bytes {
	char *p;
	size_t n;
	size_t cap;
};

void bytes_add(struct bytes *, const void *, size_t);
void bytes_free(struct bytes *);

struct rig {
	struct limits limits;
	struct relay *r;
	struct to_stderr *err;
	usec_t now;
	struct bytes host;   /* what the host got */
	struct bytes server; /* what the server got */
	struct bytes told;   /* what stderr got, see rig_told() */
	struct relay_probe probe;
	unsigned char **blocks;
	uint32_t n_blocks;
};

/* The program's defaults, with a small memory. */
struct limits rig_limits(void);

void rig_start(struct rig *, const struct limits *);
void rig_stop(struct rig *);

/*
 * A peer writes; if reads, both peers then take all there is for them before
 * the buffer is reused, else what was borrowed must be kept.
 */
void rig_from_host(struct rig *, const void *, size_t, bool reads);
void rig_from_server(struct rig *, const void *, size_t, bool reads);
void rig_host_eof(struct rig *);
void rig_server_eof(struct rig *);

/* A peer takes up to n bytes, or all there are; how many it got. */
size_t rig_take(struct rig *, enum relay_peer, size_t n);
void rig_take_all(struct rig *);

/* Let time pass in steps no longer than the engine asks for. */
void rig_pass(struct rig *, usec_t);

/* Everything told on stderr so far, NUL-terminated. */
const char *rig_told(struct rig *);

/* Fails the test, naming what, if a figure of "key=value key=value" differs. */
void rig_figures(struct rig *, const char *want, const char *what);

/* Fails the test if an invariant of queues or budget is broken. */
void rig_check(struct rig *);

/* Does text match the pattern, in which \1 stands for any bytes but LF? */
bool rig_matches(const char *pattern, const char *text);

#endif
