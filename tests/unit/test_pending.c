/* SPDX-License-Identifier: MIT */
/*
 * The table of pending requests against a list that does the same slowly:
 * whatever is added, found, closed, timed and removed, in any order; then its
 * bound, and what happens to the oldest at it.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "spillway/pending.h"

#define ROOM 400

static struct budget *budget;
static struct pending *p;

static void
setup(void)
{
	budget = budget_new(4u << 20, 0, NULL);
	p = pending_new(budget, 1u << 20, 0x5eed);
	ck_assert_ptr_nonnull(p);
}

static void
teardown(void)
{
	pending_free(&p);
	ck_assert_uint_eq(budget_heap(budget), 0);
	budget_free(&budget);
}

static struct id
id(const char *text)
{
	return id_of(text, strlen(text), false);
}

static uint32_t
add(const char *text)
{
	struct pending_request q = { .id = id(text), .deadline = USEC_NEVER };

	return pending_add(p, &q);
}

static uint32_t
find(const char *text)
{
	struct id i = id(text);

	return pending_find(p, &i);
}

/* Spellings of one id, and of another that is not the same. */
START_TEST(finds_by_value)
{
	static const char *const same[][3] = {
		{ "1", "1.0", "10e-1" }, { "\"1\"", "\"\\u0031\"", "\"1\"" },
		{ "0", "-0", "0.000" }, { "-7", "-7e0", "-0.7e1" },
		{ "9007199254740993", "9007199254740992",
		    "9.007199254740993e15" },
		{ "\"a/b\"", "\"a\\/b\"", "\"\\u0061/b\"" },
	};

	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		uint32_t ref = add(same[i][0]);

		ck_assert_uint_ne(ref, PENDING_NONE);
		for (size_t k = 0; k < 3; k++)
			ck_assert_msg(find(same[i][k]) == ref, "%s as %s",
			    same[i][0], same[i][k]);
		pending_remove(p, ref);
		ck_assert_uint_eq(find(same[i][0]), PENDING_NONE);
		ck_assert_ptr_null(pending_get(p, ref));
	}
	add("1");
	ck_assert_uint_eq(find("\"1\""), PENDING_NONE);
	ck_assert_uint_eq(find("1.5"), PENDING_NONE);
}
END_TEST

/* Of two that are one in JavaScript, neither is found by the rounded one. */
START_TEST(rounds_only_if_one_fits)
{
	uint32_t a = add("9007199254740993");
	uint32_t b = add("9007199254740991");

	ck_assert_uint_eq(find("9007199254740992"), a);
	ck_assert_uint_eq(find("9007199254740991"), b);
	add("9007199254740992.5");
	ck_assert_uint_eq(find("9007199254740992"), PENDING_NONE);
}
END_TEST

START_TEST(refuses_what_is_no_id)
{
	static const char *const bad[] = { "null", "true", "{", "[", "\"a",
		"01", "" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(add(bad[i]) == PENDING_NONE, "%s", bad[i]);
	ck_assert_uint_eq(pending_count(p), 0);
}
END_TEST

/* One id twice at once: they are closed in order of arrival. */
START_TEST(twins)
{
	uint32_t a = add("5"), b = add("5");

	ck_assert_uint_eq(find("5"), a);
	pending_close(p, a);
	ck_assert_uint_eq(find("5"), b);
	ck_assert_ptr_nonnull(pending_get(p, a));
	pending_remove(p, a);
	pending_close(p, b);
	ck_assert_uint_eq(find("5"), PENDING_NONE);
	ck_assert_uint_eq(pending_count(p), 0);
	pending_remove(p, b);
}
END_TEST

struct model {
	uint32_t ref;
	unsigned id;
	unsigned token; /* 0 = none */
	bool closed;
	usec_t deadline;
};

static struct model model[ROOM];
static unsigned models;

static uint32_t
model_find(unsigned number, bool token)
{
	for (unsigned i = 0; i < models; i++)
		if (!model[i].closed && (token ? model[i].token :
		    model[i].id) == number)
			return model[i].ref;
	return PENDING_NONE;
}

static void
model_add(uint64_t *rnd)
{
	struct model *m = &model[models];
	char text[16], token[16];
	struct pending_request q = { .deadline = USEC_NEVER };

	if (models == ROOM)
		return;
	*m = (struct model) { .id = kit_below(rnd, 50),
		.token = kit_below(rnd, 30), .deadline = USEC_NEVER };
	snprintf(text, sizeof text, "%u", m->id);
	snprintf(token, sizeof token, "\"t%u\"", m->token);
	q.id = id(text);
	if (m->token != 0)
		q.token = id(token);
	q.meta = "\"io.modelcontextprotocol/x\":1";
	q.meta_len = 29;
	m->ref = pending_add(p, &q);
	ck_assert_uint_ne(m->ref, PENDING_NONE);
	models++;
}

static void
model_change(uint64_t *rnd)
{
	unsigned i = models > 0 ? kit_below(rnd, models) : 0;
	struct model *m = &model[i];

	if (models == 0)
		return;
	switch (kit_below(rnd, 4)) {
	case 0:
		pending_close(p, m->ref);
		m->closed = true;
		m->deadline = USEC_NEVER;
		break;
	case 1:
		pending_remove(p, m->ref);
		ck_assert_ptr_null(pending_get(p, m->ref));
		memmove(m, m + 1, (--models - i) * sizeof *m);
		break;
	default:
		if (m->closed)
			break;
		m->deadline = kit_below(rnd, 5) == 0 ? USEC_NEVER :
		    kit_below(rnd, 1000);
		pending_set_deadline(p, m->ref, m->deadline);
		break;
	}
}

static void
model_compare(unsigned number)
{
	char text[16];
	struct id i;
	uint32_t ref = pending_first(p);
	usec_t next = USEC_NEVER;
	unsigned open = 0;

	snprintf(text, sizeof text, "%u.0", number);
	ck_assert_uint_eq(find(text), model_find(number, false));
	snprintf(text, sizeof text, "\"t%u\"", number);
	i = id(text);
	if (number > 0)
		ck_assert_uint_eq(pending_find_token(p, &i),
		    model_find(number, true));
	for (unsigned k = 0; k < models; k++) {
		ck_assert_ptr_nonnull(pending_get(p, model[k].ref));
		if (model[k].closed)
			continue;
		ck_assert_uint_eq(ref, model[k].ref);
		ref = pending_next(p, ref);
		open++;
		if (model[k].deadline < next)
			next = model[k].deadline;
	}
	ck_assert_uint_eq(ref, PENDING_NONE);
	ck_assert_uint_eq(pending_count(p), open);
	ck_assert_uint_eq(pending_next_deadline(p), next);
	ref = pending_expired(p, 500);
	ck_assert_int_eq(ref == PENDING_NONE, next > 500);
	if (ref != PENDING_NONE)
		ck_assert_uint_eq(pending_get(p, ref)->deadline, next);
}

START_TEST(as_a_list_would)
{
	uint64_t rnd = 0x1157 + (unsigned)_i;

	models = 0;
	for (int step = 0; step < 4000; step++) {
		if (kit_below(&rnd, 100) < (step / 500 % 2 ? 20u : 50u))
			model_add(&rnd);
		else
			model_change(&rnd);
		model_compare(kit_below(&rnd, 50));
	}
	ck_assert_uint_eq(pending_untracked(p), 0);
	while (models > 0)
		pending_remove(p, model[--models].ref);
	ck_assert_uint_eq(pending_count(p), 0);
}
END_TEST

/* At the bound the oldest go, one by one, and are counted. */
START_TEST(forgets_the_oldest)
{
	char text[1100];
	uint32_t first = PENDING_NONE, last = PENDING_NONE;

	memset(text, 'x', sizeof text);
	text[0] = text[1000] = '"';
	text[1001] = '\0';
	for (int i = 0; i < 5000; i++) {
		snprintf(text + 1, 10, "%08d", i);
		text[9] = 'x';
		last = add(text);
		ck_assert_uint_ne(last, PENDING_NONE);
		if (i == 0)
			first = last;
		ck_assert_uint_le(pending_bytes(p), 1u << 20);
	}
	ck_assert_ptr_null(pending_get(p, first));
	ck_assert_uint_eq(find(text), last);
	ck_assert_uint_gt(pending_untracked(p), 3000);
	ck_assert_uint_eq(pending_untracked(p) + pending_count(p), 5000);
	for (uint32_t ref = pending_first(p); ref != PENDING_NONE;
	    ref = pending_first(p))
		pending_remove(p, ref);
	ck_assert_uint_eq(pending_count(p), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("pending");
	TCase *t = tcase_create("pending");
	SRunner *sr = srunner_create(suite);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, finds_by_value);
	tcase_add_test(t, rounds_only_if_one_fits);
	tcase_add_test(t, refuses_what_is_no_id);
	tcase_add_test(t, twins);
	tcase_add_loop_test(t, as_a_list_would, 0, 6);
	tcase_add_test(t, forgets_the_oldest);
	suite_add_tcase(suite, t);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
