/* SPDX-License-Identifier: MIT */
/*
 * The stop sequence of contract section 7 as a table of states and events
 * with times. No system calls: session.c does what the actions say.
 *
 *   RUNNING --host EOF/gone--> EOF --grace--> TERM --1.2 s--> KILL --> gone
 *           --host dead------> TERM --.5 s--> KILL
 *           --signal---------> SIGNALLED --100 ms--> TERM --.9 s--> KILL
 *           --server stdout closed, session fatal--> EOF with no grace
 */
#ifndef SPILLWAY_STOP_H
#define SPILLWAY_STOP_H

#include <stdbool.h>

#include "spillway/limits.h"

enum stop_state {
	STOP_RUNNING,
	STOP_EOF,	/* server's stdin closed or closing; replies may flow */
	STOP_SIGNALLED, /* a signal was passed on */
	STOP_TERM,	/* SIGTERM and SIGCONT went to the tree */
	STOP_KILL,	/* SIGKILL went to the tree, again until it is gone */
	STOP_GONE,	/* nothing is left */
};

enum stop_event {
	STOP_ON_HOST_EOF,	/* host's stdin ended: half-close */
	STOP_ON_HOST_GONE,	/* host's read end closed */
	STOP_ON_HOST_DEAD,	/* both of its ends are closed */
	STOP_ON_SIGNAL,		/* TERM, INT or HUP came to the proxy */
	STOP_ON_REPLY,		/* a frame for the host came from the server */
	STOP_ON_DELIVERED,	/* the server took of what was accepted */
	STOP_ON_STDOUT_CLOSED,	/* server closed its stdout and lives */
	STOP_ON_FATAL,		/* the session cannot go on */
	STOP_ON_EXIT,		/* the server itself was reaped */
	STOP_ON_TREE_GONE,	/* nothing of its tree is left */
	STOP_ON_RESTART,	/* clocks restart: we were stopped or suspended */
	STOP_ON_TIME,		/* now >= stop_deadline() */
};

/* Bit set of what to do now. */
enum stop_action {
	STOP_DO_NOTHING = 0,
	STOP_DO_CLOSE_STDIN = 1, /* when all accepted bytes are delivered */
	STOP_DO_CLOSE_NOW = 2,	 /* at once, whatever still waits */
	STOP_DO_PASS_SIGNAL = 4, /* the same signal to the server */
	STOP_DO_TERM = 8,	 /* SIGTERM, SIGCONT to the whole tree */
	STOP_DO_KILL = 16,	 /* SIGKILL to the whole tree */
	STOP_DO_FINISH = 32,	 /* nothing is left: exit as the server did */
};

struct stop {
	enum stop_state state;
	usec_t grace;	 /* --stop-grace */
	usec_t began;	 /* when the present state began */
	usec_t first;	 /* when RUNNING was left */
	usec_t deadline; /* next STOP_ON_TIME, or USEC_NEVER */
};

void stop_init(struct stop *, usec_t grace);
unsigned stop_on(struct stop *, enum stop_event, usec_t now);
usec_t stop_deadline(const struct stop *);

const char *stop_state_name(enum stop_state);
const char *stop_event_name(enum stop_event);

#endif
