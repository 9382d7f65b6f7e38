/* SPDX-License-Identifier: MIT */
/*
 * What is learned of tools from tools/list replies: whatever the order of
 * members and the splits, on several pages, after changes, and of very many.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "spillway/hash.h"
#include "spillway/tools.h"

#define SEED 0x5eed

static struct budget *budget;
static struct tools *tools;

static uint64_t
name(const char *word)
{
	return hash_keyed(word, strlen(word), SEED);
}

static void
setup(void)
{
	budget = budget_new(16u << 20, 0, NULL);
	tools = tools_new(budget, SEED, 64);
	ck_assert_ptr_nonnull(tools);
}

static void
teardown(void)
{
	tools_free(&tools);
	ck_assert_uint_eq(budget_heap(budget), 0);
	budget_free(&budget);
}

static void
learn(const char *page)
{
	tools_begin(tools);
	tools_feed(tools, page, strlen(page));
}

static const char page[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":["
	"{\"name\":\"plain\",\"inputSchema\":{\"name\":\"x\",\"outputSchema\":1}},"
	"{\"outputSchema\":{\"type\":\"object\"},\"name\":\"sch\\u0065ma\"},"
	"{\"name\":\"large\",\"_meta\":{\"anthropic\\/maxResultSizeChars\":500000,"
	"\"n\":1}},"
	"{\"title\":\"no name\",\"outputSchema\":{}},"
	"{\"name\":\"odd\",\"_meta\":{\"anthropic/maxResultSizeChars\":\"9\"}},"
	"{\"name\":\"odd2\",\"_meta\":{\"anthropic/maxResultSizeChars\":1e9}}"
	"],\"nextCursor\":\"2\"}}";

static void
check_page(const char *how)
{
	const struct {
		const char *name;
		enum tool_schema schema;
		uint64_t size;
	} want[] = {
		{ "plain", TOOL_PLAIN, 0 }, { "schema", TOOL_HAS_SCHEMA, 0 },
		{ "large", TOOL_PLAIN, 500000 }, { "odd", TOOL_PLAIN, 0 },
		{ "odd2", TOOL_PLAIN, 0 }, { "x", TOOL_UNKNOWN, 0 },
		{ "no name", TOOL_UNKNOWN, 0 },
	};

	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		if (tools_schema(tools, name(want[i].name)) !=
		    want[i].schema ||
		    tools_size(tools, name(want[i].name)) != want[i].size)
			ck_abort_msg("%s: %s", how, want[i].name);
	ck_assert_uint_eq(tools_most(tools), 500000);
	ck_assert_int_eq(tools_schema(tools, 0), TOOL_UNKNOWN);
}

static void
run_start(void *arg)
{
	(void)arg;
	tools_forget(tools);
	tools_begin(tools);
}

static void
run_feed(void *arg, const char *p, size_t n)
{
	(void)arg;
	tools_feed(tools, p, n);
}

static void
run_finish(void *arg, const char *how)
{
	(void)arg;
	check_page(how);
}

START_TEST(learns_a_page_however_it_comes)
{
	struct kit_reader r = { run_start, run_feed, run_finish, NULL };

	kit_every_split(&r, page, sizeof page - 1);
}
END_TEST

START_TEST(knows_all_pages_and_the_latest_word)
{
	learn(page);
	learn("{\"result\":{\"tools\":[{\"name\":\"large\",\"_meta\":{"
	    "\"anthropic/maxResultSizeChars\":7}},{\"name\":\"second\","
	    "\"outputSchema\":{}}]}}");
	ck_assert_uint_eq(tools_size(tools, name("large")), 7);
	ck_assert_uint_eq(tools_most(tools), 7);
	ck_assert_int_eq(tools_schema(tools, name("second")), TOOL_HAS_SCHEMA);
	ck_assert_int_eq(tools_schema(tools, name("plain")), TOOL_PLAIN);
	tools_forget(tools);
	ck_assert_int_eq(tools_schema(tools, name("plain")), TOOL_UNKNOWN);
	ck_assert_uint_eq(tools_most(tools), 0);
	learn("{\"result\":{\"tools\":\"none\"}}");
	learn("not JSON at all");
	learn("{\"tools\":[{\"name\":\"elsewhere\"}]}");
	ck_assert_int_eq(tools_schema(tools, name("elsewhere")),
	    TOOL_UNKNOWN);
}
END_TEST

START_TEST(knows_very_many)
{
	char text[80];

	tools_begin(tools);
	tools_feed(tools, "{\"result\":{\"tools\":[", 20);
	for (int i = 0; i < 70000; i++) {
		int n = snprintf(text, sizeof text, "%s{\"name\":\"t%d\",\"_meta\""
		    ":{\"anthropic/maxResultSizeChars\":%d}}", i > 0 ? "," : "",
		    i, i + 1);

		tools_feed(tools, text, (size_t)n);
	}
	tools_feed(tools, "]}}", 3);
	for (int i = 0; i < 65536; i++) {
		snprintf(text, sizeof text, "t%d", i);
		if (tools_size(tools, name(text)) != (uint64_t)i + 1)
			ck_abort_msg("%s is not known", text);
	}
	ck_assert_uint_eq(tools_most(tools), 65536);
	ck_assert_int_eq(tools_schema(tools, name("t69999")), TOOL_UNKNOWN);
}
END_TEST

/* Where there is no room, the rest is unknown, and nothing else happens. */
START_TEST(does_without_room)
{
	struct budget *small = budget_new(6000, 0, NULL);
	struct tools *t = tools_new(small, SEED, 64);

	ck_assert_ptr_nonnull(t);
	tools_begin(t);
	tools_feed(t, "{\"result\":{\"tools\":[{\"name\":\"a\"}", 32);
	for (int i = 0; i < 1000; i++) {
		char text[32];
		int n = snprintf(text, sizeof text, ",{\"name\":\"t%d\"}", i);

		tools_feed(t, text, (size_t)n);
	}
	ck_assert_int_eq(tools_schema(t, name("a")), TOOL_PLAIN);
	ck_assert_int_eq(tools_schema(t, name("t999")), TOOL_UNKNOWN);
	tools_free(&t);
	budget_free(&small);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("tools");
	TCase *t = tcase_create("tools");
	SRunner *sr = srunner_create(suite);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, learns_a_page_however_it_comes);
	tcase_add_test(t, knows_all_pages_and_the_latest_word);
	tcase_add_test(t, knows_very_many);
	tcase_add_test(t, does_without_room);
	suite_add_tcase(suite, t);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
