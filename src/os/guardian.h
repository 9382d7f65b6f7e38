/* SPDX-License-Identifier: MIT */
/*
 * The small process between the proxy and the server. It is the subreaper of
 * all that the server starts, tells the proxy what ends, and cleans up when
 * the proxy is gone, which it sees from the control socket.
 *
 * Both directions carry whole struct guardian_word messages.
 */
#ifndef GUARDIAN_H
#define GUARDIAN_H

#include "spillway/child.h"

enum guardian_order {
	GUARDIAN_SIGNAL,      /* value: signal for the server */
	GUARDIAN_SIGNAL_TREE, /* value: signal for all descendants */
	GUARDIAN_LEAVE,	      /* the session is over: kill what is left, exit */
};

/* Of an order or a report; what is an enum guardian_order or child_report. */
struct guardian_word {
	int what;
	int value;
};

/* What the server is to be started with. */
struct guardian_start {
	char *const *argv;
	const struct inherited *inherited;
	int in; /* what becomes its fds 0 to 2 */
	int out;
	int err;
};

/* The guardian's whole life, in the forked process. Does not return. */
_Noreturn void guardian_run(int control, const struct guardian_start *);

/* Close every descriptor above 2 that the host left to us. */
void close_inherited(void);

#endif
