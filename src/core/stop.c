/* SPDX-License-Identifier: MIT */
/*
 * The stop sequence (contract section 7): which step follows which, and when.
 * stop.h has the picture. Every state knows every event; a pair that is not
 * in the table means that nothing happens.
 */
#include "spillway/stop.h"

#define EOF_MOST (10 * USEC_SEC)       /* however long replies flow */
#define SIGNAL_TO_TERM (100 * USEC_MSEC)
#define SIGNAL_TO_KILL (1 * USEC_SEC)  /* from the signal on */
#define TERM_TO_KILL (1200 * USEC_MSEC)
#define DEAD_TO_KILL (500 * USEC_MSEC)
#define KILL_AGAIN (100 * USEC_MSEC)

#define STATES (STOP_GONE + 1)
#define EVENTS (STOP_ON_TIME + 1)

struct step {
	bool here; /* there is such a step */
	enum stop_state next;
	unsigned actions;
};

#define GO(state, ...) { true, state, __VA_ARGS__ }

static const struct step steps[STATES][EVENTS] = {
	[STOP_RUNNING] = {
		[STOP_ON_HOST_EOF] = GO(STOP_EOF, STOP_DO_CLOSE_STDIN),
		[STOP_ON_HOST_GONE] = GO(STOP_EOF, STOP_DO_CLOSE_NOW),
		[STOP_ON_HOST_DEAD] = GO(STOP_TERM,
		    STOP_DO_CLOSE_NOW | STOP_DO_TERM),
		[STOP_ON_SIGNAL] = GO(STOP_SIGNALLED,
		    STOP_DO_PASS_SIGNAL | STOP_DO_CLOSE_NOW),
		[STOP_ON_STDOUT_CLOSED] = GO(STOP_EOF, STOP_DO_CLOSE_NOW),
		[STOP_ON_FATAL] = GO(STOP_TERM,
		    STOP_DO_CLOSE_NOW | STOP_DO_TERM),
		[STOP_ON_EXIT] = GO(STOP_KILL, STOP_DO_KILL),
		[STOP_ON_TREE_GONE] = GO(STOP_GONE, STOP_DO_FINISH),
	},
	[STOP_EOF] = {
		[STOP_ON_HOST_GONE] = GO(STOP_EOF, STOP_DO_CLOSE_NOW),
		[STOP_ON_HOST_DEAD] = GO(STOP_TERM,
		    STOP_DO_CLOSE_NOW | STOP_DO_TERM),
		[STOP_ON_SIGNAL] = GO(STOP_SIGNALLED,
		    STOP_DO_PASS_SIGNAL | STOP_DO_CLOSE_NOW),
		[STOP_ON_FATAL] = GO(STOP_TERM,
		    STOP_DO_CLOSE_NOW | STOP_DO_TERM),
		[STOP_ON_EXIT] = GO(STOP_KILL, STOP_DO_KILL),
		[STOP_ON_TREE_GONE] = GO(STOP_GONE, STOP_DO_FINISH),
		[STOP_ON_TIME] = GO(STOP_TERM,
		    STOP_DO_CLOSE_NOW | STOP_DO_TERM),
	},
	[STOP_SIGNALLED] = {
		[STOP_ON_SIGNAL] = GO(STOP_SIGNALLED, STOP_DO_PASS_SIGNAL),
		[STOP_ON_EXIT] = GO(STOP_KILL, STOP_DO_KILL),
		[STOP_ON_TREE_GONE] = GO(STOP_GONE, STOP_DO_FINISH),
		[STOP_ON_TIME] = GO(STOP_TERM, STOP_DO_TERM),
	},
	[STOP_TERM] = {
		[STOP_ON_SIGNAL] = GO(STOP_TERM, STOP_DO_PASS_SIGNAL),
		[STOP_ON_EXIT] = GO(STOP_KILL, STOP_DO_KILL),
		[STOP_ON_TREE_GONE] = GO(STOP_GONE, STOP_DO_FINISH),
		[STOP_ON_TIME] = GO(STOP_KILL, STOP_DO_KILL),
	},
	[STOP_KILL] = {
		[STOP_ON_TREE_GONE] = GO(STOP_GONE, STOP_DO_FINISH),
		[STOP_ON_TIME] = GO(STOP_KILL, STOP_DO_KILL),
	},
};

static const char *const state_names[STATES] = {
	[STOP_RUNNING] = "running", [STOP_EOF] = "eof",
	[STOP_SIGNALLED] = "signalled", [STOP_TERM] = "term",
	[STOP_KILL] = "kill", [STOP_GONE] = "gone",
};

static const char *const event_names[EVENTS] = {
	[STOP_ON_HOST_EOF] = "host closed stdin",
	[STOP_ON_HOST_GONE] = "host does not read",
	[STOP_ON_HOST_DEAD] = "host gone", [STOP_ON_SIGNAL] = "signal",
	[STOP_ON_REPLY] = "reply", [STOP_ON_DELIVERED] = "delivered",
	[STOP_ON_STDOUT_CLOSED] = "server closed its end",
	[STOP_ON_FATAL] = "fatal", [STOP_ON_EXIT] = "server exited",
	[STOP_ON_TREE_GONE] = "tree gone", [STOP_ON_RESTART] = "restart",
	[STOP_ON_TIME] = "time",
};

const char *
stop_state_name(enum stop_state s)
{
	return state_names[s];
}

const char *
stop_event_name(enum stop_event e)
{
	return event_names[e];
}

void
stop_init(struct stop *s, usec_t grace)
{
	*s = (struct stop){ .state = STOP_RUNNING, .grace = grace,
		.deadline = USEC_NEVER };
}

/* How long a state lasts, once e led to it, before STOP_ON_TIME. */
static usec_t
period(const struct stop *s, enum stop_state from, enum stop_event e)
{
	switch (s->state) {
	case STOP_EOF:
		return s->grace;
	case STOP_SIGNALLED:
		return SIGNAL_TO_TERM;
	case STOP_TERM:
		if (e == STOP_ON_HOST_DEAD)
			return DEAD_TO_KILL;
		return from == STOP_SIGNALLED ? SIGNAL_TO_KILL -
		    SIGNAL_TO_TERM : TERM_TO_KILL;
	case STOP_KILL:
		return KILL_AGAIN;
	case STOP_RUNNING:
	case STOP_GONE:
		break;
	}
	return USEC_NEVER;
}

static usec_t
plus(usec_t a, usec_t b)
{
	return b >= USEC_NEVER - a ? USEC_NEVER : a + b;
}

/* Replies flow: the grace starts again, but not for ever. */
static void
extend(struct stop *s, usec_t now)
{
	usec_t most = plus(s->first, s->grace > EOF_MOST ? s->grace :
	    EOF_MOST);

	s->deadline = plus(now, s->grace);
	if (s->deadline > most)
		s->deadline = most;
}

unsigned
stop_on(struct stop *s, enum stop_event e, usec_t now)
{
	const struct step *step = &steps[s->state][e];
	enum stop_state from = s->state;

	if (e == STOP_ON_REPLY && s->state == STOP_EOF)
		extend(s, now);
	if ((e == STOP_ON_RESTART && s->deadline != USEC_NEVER) ||
	    (e == STOP_ON_DELIVERED && s->state == STOP_EOF)) {
		s->began = s->first = now;
		s->deadline = plus(now, period(s, s->state, e));
	}
	if (!step->here)
		return STOP_DO_NOTHING;
	s->state = step->next;
	if (from == s->state && e != STOP_ON_TIME)
		return step->actions; /* a second signal gives no more time */
	s->began = now;
	if (from == STOP_RUNNING)
		s->first = now;
	s->deadline = plus(now, period(s, from, e));
	return step->actions;
}

usec_t
stop_deadline(const struct stop *s)
{
	return s->deadline;
}
