/* SPDX-License-Identifier: MIT */
/*
 * The stop sequence: every event in every state, the times of contract
 * section 7, and that in any order of events there is one way out.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "spillway/stop.h"

#define EVENTS (STOP_ON_TIME + 1)
#define STATES (STOP_GONE + 1)
#define GRACE (2 * USEC_SEC)

/* How to get into each state. */
static const enum stop_event ways[STATES][3] = {
	[STOP_RUNNING] = { EVENTS },
	[STOP_EOF] = { STOP_ON_HOST_EOF, EVENTS },
	[STOP_SIGNALLED] = { STOP_ON_SIGNAL, EVENTS },
	[STOP_TERM] = { STOP_ON_FATAL, EVENTS },
	[STOP_KILL] = { STOP_ON_EXIT, EVENTS },
	[STOP_GONE] = { STOP_ON_EXIT, STOP_ON_TREE_GONE, EVENTS },
};

/*
 * What happens: the state that follows, a blank, and what is done: c close
 * stdin when delivered, C close it now, s pass the signal on, t TERM, k KILL,
 * f finish. "-": nothing.
 */
static const char *const table[STATES][EVENTS] = {
	/* eof, gone, dead, signal, reply, delivered, stdout closed, fatal,
	 * exit, tree gone, restart, time */
	[STOP_RUNNING] = { "eof c", "eof C", "term Ct", "signalled Cs", "-",
	    "-", "eof C", "term Ct", "kill k", "gone f", "-", "-" },
	[STOP_EOF] = { "-", "eof C", "term Ct", "signalled Cs", "-", "-", "-",
	    "term Ct", "kill k", "gone f", "-", "term Ct" },
	[STOP_SIGNALLED] = { "-", "-", "-", "signalled s", "-", "-", "-", "-",
	    "kill k", "gone f", "-", "term t" },
	[STOP_TERM] = { "-", "-", "-", "term s", "-", "-", "-", "-", "kill k",
	    "gone f", "-", "kill k" },
	[STOP_KILL] = { "-", "-", "-", "-", "-", "-", "-", "-", "-", "gone f",
	    "-", "kill k" },
	[STOP_GONE] = { "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-",
	    "-" },
};

static const struct {
	enum stop_action action;
	char sign;
} signs[] = {
	{ STOP_DO_CLOSE_STDIN, 'c' }, { STOP_DO_CLOSE_NOW, 'C' },
	{ STOP_DO_PASS_SIGNAL, 's' }, { STOP_DO_TERM, 't' },
	{ STOP_DO_KILL, 'k' }, { STOP_DO_FINISH, 'f' },
};

static void
go(struct stop *s, enum stop_state to, usec_t now)
{
	stop_init(s, GRACE);
	for (int i = 0; ways[to][i] != EVENTS; i++)
		stop_on(s, ways[to][i], now);
	ck_assert_int_eq(s->state, to);
}

START_TEST(every_event_in_every_state)
{
	enum stop_state from = (enum stop_state)(_i / EVENTS);
	enum stop_event e = (enum stop_event)(_i % EVENTS);
	struct stop s;
	unsigned did;
	char got[32];
	size_t n = 0;

	go(&s, from, USEC_SEC);
	did = stop_on(&s, e, USEC_SEC);
	if (did != 0) {
		strcpy(got, stop_state_name(s.state));
		n = strlen(got);
		got[n++] = ' ';
		for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
			if ((did & signs[i].action) != 0)
				got[n++] = signs[i].sign;
	} else {
		ck_assert_int_eq(s.state, from);
		got[n++] = '-';
	}
	got[n] = '\0';
	if (strcmp(got, table[from][e]) != 0)
		ck_abort_msg("%s, %s: %s, not %s", stop_state_name(from),
		    stop_event_name(e), got, table[from][e]);
}
END_TEST

/* Nobody does anything more: when TERM, when KILL, after the first event. */
START_TEST(times)
{
	static const struct {
		enum stop_event first;
		usec_t term;
		usec_t kill;
	} want[] = {
		{ STOP_ON_HOST_EOF, GRACE, GRACE + 1200 * USEC_MSEC },
		{ STOP_ON_HOST_GONE, GRACE, GRACE + 1200 * USEC_MSEC },
		{ STOP_ON_STDOUT_CLOSED, GRACE, GRACE + 1200 * USEC_MSEC },
		{ STOP_ON_HOST_DEAD, 0, 500 * USEC_MSEC },
		{ STOP_ON_SIGNAL, 100 * USEC_MSEC, USEC_SEC },
		{ STOP_ON_FATAL, 0, 1200 * USEC_MSEC },
	};
	const usec_t start = 50 * USEC_SEC;
	usec_t now = start, term = USEC_NEVER, kill = USEC_NEVER;
	struct stop s;
	unsigned did;

	stop_init(&s, GRACE);
	did = stop_on(&s, want[_i].first, now);
	for (int i = 0; i < 10; i++) {
		if ((did & STOP_DO_TERM) != 0 && term == USEC_NEVER)
			term = now - start;
		if ((did & STOP_DO_KILL) != 0 && kill == USEC_NEVER)
			kill = now - start;
		now = stop_deadline(&s);
		did = stop_on(&s, STOP_ON_TIME, now);
	}
	ck_assert_uint_eq(term, want[_i].term);
	ck_assert_uint_eq(kill, want[_i].kill);
	ck_assert_uint_eq(stop_deadline(&s) - now, 100 * USEC_MSEC);
}
END_TEST

/* Replies that flow after the host's EOF give time, up to ten seconds. */
START_TEST(replies_give_time)
{
	usec_t now = USEC_SEC;
	struct stop s;

	stop_init(&s, GRACE);
	stop_on(&s, STOP_ON_HOST_EOF, now);
	for (int i = 0; i < 100; i++) {
		stop_on(&s, STOP_ON_REPLY, now);
		ck_assert_uint_le(stop_deadline(&s), 11 * USEC_SEC);
		now += 100 * USEC_MSEC;
	}
	ck_assert_uint_eq(stop_deadline(&s), 11 * USEC_SEC);
	/* ... unless the grace itself is longer, or endless. */
	stop_init(&s, 20 * USEC_SEC);
	stop_on(&s, STOP_ON_HOST_EOF, USEC_SEC);
	stop_on(&s, STOP_ON_REPLY, 5 * USEC_SEC);
	ck_assert_uint_eq(stop_deadline(&s), 21 * USEC_SEC);
	stop_init(&s, USEC_NEVER);
	stop_on(&s, STOP_ON_HOST_EOF, USEC_SEC);
	stop_on(&s, STOP_ON_REPLY, 5 * USEC_SEC);
	ck_assert_uint_eq(stop_deadline(&s), USEC_NEVER);
}
END_TEST

START_TEST(clocks_restart)
{
	struct stop s;

	stop_init(&s, GRACE);
	stop_on(&s, STOP_ON_RESTART, USEC_SEC);
	ck_assert_uint_eq(stop_deadline(&s), USEC_NEVER);
	stop_on(&s, STOP_ON_HOST_EOF, 2 * USEC_SEC);
	stop_on(&s, STOP_ON_RESTART, 100 * USEC_SEC);
	ck_assert_uint_eq(stop_deadline(&s), 102 * USEC_SEC);
	stop_on(&s, STOP_ON_DELIVERED, 101 * USEC_SEC);
	ck_assert_uint_eq(stop_deadline(&s), 103 * USEC_SEC);
}
END_TEST

/* Any order of events: TERM before KILL or the server's own exit, one end. */
START_TEST(any_order_has_one_end)
{
	uint64_t rnd = 0xabad1dea;

	for (int round = 0; round < 10000; round++) {
		struct stop s;
		usec_t now = USEC_SEC;
		int finished = 0;

		stop_init(&s, GRACE);
		for (int i = 0; i < 40; i++) {
			enum stop_event e =
			    (enum stop_event)kit_below(&rnd, EVENTS);
			unsigned did;

			now += kit_below(&rnd, 3) * USEC_SEC / 4;
			did = stop_on(&s, e, now);
			finished += (did & STOP_DO_FINISH) != 0;
			ck_assert_int_le(finished, 1);
			ck_assert_int_eq(finished, s.state == STOP_GONE);
			if (s.state == STOP_RUNNING || s.state == STOP_GONE)
				continue;
			/* It cannot hang: there always is a next time. */
			ck_assert_uint_ne(stop_deadline(&s), USEC_NEVER);
		}
		for (int i = 0; i < 5 && !finished; i++) {
			stop_on(&s, STOP_ON_HOST_EOF, now);
			now = stop_deadline(&s);
			stop_on(&s, STOP_ON_TIME, now);
		}
		ck_assert(finished || s.state == STOP_KILL);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stop");
	TCase *t = tcase_create("stop");
	SRunner *sr = srunner_create(suite);
	int failed;

	tcase_add_loop_test(t, every_event_in_every_state, 0,
	    STATES * EVENTS);
	tcase_add_loop_test(t, times, 0, 6);
	tcase_add_test(t, replies_give_time);
	tcase_add_test(t, clocks_restart);
	tcase_add_test(t, any_order_has_one_end);
	suite_add_tcase(suite, t);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
