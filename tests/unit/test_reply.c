/* SPDX-License-Identifier: MIT */
/*
 * The proxy's own lines: valid JSON in the agreed order for every error and
 * every set of facts, figures only where they are known, and nothing at all
 * where the buffer is too small by one byte.
 */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/reply.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	enum reply_error e;
	int code;
	const char *reason;
} errors[] = {
	{ REPLY_FRAME_TOO_LARGE, -31010, "frame_too_large" },
	{ REPLY_MALFORMED, -31011, "malformed" },
	{ REPLY_HOST_STALLED, -31012, "host_stalled" },
	{ REPLY_REQUEST_TIMEOUT, -31013, "request_timeout" },
	{ REPLY_SERVER_EXITED, -31014, "server_exited" },
	{ REPLY_OVERLOADED, -31015, "overloaded" },
};

static struct id
id(const char *raw)
{
	return id_of(raw, strlen(raw), false);
}

/* The line's tree; it must end in its only LF. */
static json_t *
parse(const char *buf, size_t n)
{
	json_t *v;

	ck_assert_uint_gt(n, 0);
	ck_assert_ptr_eq(memchr(buf, '\n', n), buf + n - 1);
	v = json_loadb(buf, n - 1, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
	    NULL);
	ck_assert_msg(v != NULL, "%.*s", (int)n, buf);
	return v;
}

static json_t *
at(json_t *v, const char *a, const char *b, const char *c)
{
	v = json_object_get(v, a);
	if (b != NULL)
		v = json_object_get(v, b);
	return c != NULL ? json_object_get(v, c) : v;
}

static void
expect_number(json_t *data, const char *key, bool there, long long want)
{
	json_t *v = json_object_get(data, key);

	ck_assert_msg((v != NULL) == there, "%s", key);
	if (there)
		ck_assert_int_eq(json_integer_value(v), want);
}

/* Facts from the bits of n: each on or off. */
static struct reply_facts
facts_of(int n)
{
	struct reply_facts f = { .bytes = 0 };

	if ((n & 1) != 0)
		f.bytes = 12000000;
	if ((n & 2) != 0)
		f.limit = 10420224;
	f.depth = (n & 4) != 0;
	if ((n & 8) != 0)
		f.waited = 31234567;
	f.has_exit = (n & 16) != 0;
	f.exit_code = (n & 32) != 0 ? -1 : 0;
	f.exit_signal = (n & 32) != 0 ? 9 : 0;
	if ((n & 64) != 0) {
		f.tail = "first\nlast \"words\"\x1b\xff\n";
		f.tail_len = strlen(f.tail);
	}
	return f;
}
#define FACTS 128

START_TEST(errors_have_the_agreed_shape)
{
	struct reply_facts f = facts_of(_i);
	struct id token = id("\"a\\u0062\"");
	char buf[REPLY_MAX], head[256], head2[256];
	size_t k;

	for (k = 0; k < COUNT(errors); k++) {
		size_t n = reply_make_error(buf, sizeof(buf), &token,
		    errors[k].e, &f);
		json_t *v = parse(buf, n), *data = at(v, "error", "data", NULL);
		const char *message = json_string_value(at(v, "error",
		    "message", NULL));

		snprintf(head, sizeof(head), "{\"jsonrpc\":\"2.0\",\"id\":"
		    "\"a\\u0062\",\"error\":{\"code\":%d,\"message\":\"",
		    errors[k].code);
		ck_assert_int_eq(strncmp(buf, head, strlen(head)), 0);
		snprintf(head2, sizeof(head2), "\",\"data\":{\"source\":"
		    "\"spillway\",\"reason\":\"%s\"", errors[k].reason);
		ck_assert_ptr_nonnull(memmem(buf, n, head2, strlen(head2)));
		ck_assert_ptr_nonnull(message);
		ck_assert_uint_lt(strlen(message), 400);
		ck_assert_uint_gt(strlen(message), 40);
		ck_assert_int_eq(message[strlen(message) - 1], '.');
		expect_number(data, "bytes", f.bytes != 0, 12000000);
		expect_number(data, "limit", f.limit != 0, 10420224);
		expect_number(data, "depth_limit", f.limit != 0 && f.depth,
		    10420224);
		expect_number(data, "waited_ms", f.waited != 0, 31234);
		expect_number(data, "exit_code", f.has_exit &&
		    f.exit_code >= 0, 0);
		expect_number(data, "signal", f.has_exit && f.exit_code < 0,
		    9);
		ck_assert_int_eq(json_object_get(data, "stderr") != NULL,
		    f.tail != NULL);
		if (f.tail != NULL)
			ck_assert_str_eq(json_string_value(
			    json_object_get(data, "stderr")),
			    "first\nlast \"words\"\x1b\xef\xbf\xbd\n");
		json_decref(v);
	}
}
END_TEST

/* What a sentence must say, and must not, for given facts. */
static const struct {
	enum reply_error e;
	struct reply_facts f;
	const char *says[3];
	const char *not[2];
} sentences[] = {
	{ REPLY_FRAME_TOO_LARGE, { .bytes = 12, .limit = 10 },
	    { "12 bytes", "limit of 10 bytes", "less" }, { "levels" } },
	{ REPLY_FRAME_TOO_LARGE, { .limit = 10 },
	    { "limit of 10 bytes" }, { " 0 bytes" } },
	{ REPLY_FRAME_TOO_LARGE, { .bytes = 12 },
	    { "12 bytes", "more than spillway can hold" }, { "limit" } },
	{ REPLY_FRAME_TOO_LARGE, { .bytes = 12, .limit = 12 },
	    { "12 bytes", "more than spillway can hold" }, { "over" } },
	{ REPLY_FRAME_TOO_LARGE, { .bytes = 12, .limit = SIZE_OFF },
	    { "12 bytes" }, { "limit", "18446744073709551615" } },
	{ REPLY_FRAME_TOO_LARGE, { .bytes = 99, .limit = 512, .depth = true },
	    { "deeper", "512 levels", "flatter" }, { "512 bytes" } },
	{ REPLY_FRAME_TOO_LARGE, { .depth = true }, { "deeper" },
	    { "levels", "0" } },
	{ REPLY_MALFORMED, { .bytes = 77 }, { "77 bytes", "JSON-RPC" },
	    { NULL } },
	{ REPLY_MALFORMED, { .bytes = 0 }, { "JSON-RPC" }, { "bytes" } },
	{ REPLY_HOST_STALLED, { .waited = 30 * USEC_SEC }, { "30 s", "host" },
	    { "30.0", "ms" } },
	{ REPLY_HOST_STALLED, { .waited = 1500 * USEC_MSEC }, { "1.5 s" },
	    { NULL } },
	{ REPLY_HOST_STALLED, { .waited = 250 * USEC_MSEC }, { "250 ms" },
	    { NULL } },
	{ REPLY_HOST_STALLED, { .waited = 999999 }, { "999 ms" }, { NULL } },
	{ REPLY_HOST_STALLED, { .waited = 0 }, { "nothing, so" }, { " for" } },
	{ REPLY_REQUEST_TIMEOUT, { .waited = 3600 * USEC_SEC },
	    { "3600 s", "--request-timeout" }, { NULL } },
	{ REPLY_REQUEST_TIMEOUT, { .waited = USEC_NEVER },
	    { "not replied, so" }, { "within" } },
	{ REPLY_SERVER_EXITED, { .has_exit = true, .exit_code = 3 },
	    { "status 3" }, { "signal", "stderr" } },
	{ REPLY_SERVER_EXITED, { .has_exit = true, .exit_code = 0 },
	    { "status 0" }, { NULL } },
	{ REPLY_SERVER_EXITED,
	    { .has_exit = true, .exit_code = -1, .exit_signal = 11 },
	    { "signal 11" }, { "status" } },
	{ REPLY_SERVER_EXITED, { .tail = "x", .tail_len = 1 },
	    { "gone", "data.stderr" }, { "status", "signal" } },
	{ REPLY_OVERLOADED, { .bytes = 5 }, { "5 bytes", "memory" }, { NULL } },
	{ REPLY_OVERLOADED, { .bytes = 0 }, { "memory" }, { "bytes" } },
};

START_TEST(sentences_say_what_is_known)
{
	struct id token = id("1");
	char buf[REPLY_MAX];
	json_t *v = parse(buf, reply_make_error(buf, sizeof(buf), &token,
	    sentences[_i].e, &sentences[_i].f));
	const char *m = json_string_value(at(v, "error", "message", NULL));
	size_t k;

	for (k = 0; k < 3 && sentences[_i].says[k] != NULL; k++)
		ck_assert_msg(strstr(m, sentences[_i].says[k]) != NULL,
		    "%s: %s", sentences[_i].says[k], m);
	for (k = 0; k < 2 && sentences[_i].not[k] != NULL; k++)
		ck_assert_msg(strstr(m, sentences[_i].not[k]) == NULL,
		    "%s: %s", sentences[_i].not[k], m);
	json_decref(v);
}
END_TEST

/* The figures at their largest still make one sentence that fits. */
START_TEST(largest_figures_fit)
{
	char raw[ID_RAW_MAX], tail[4096], buf[REPLY_MAX];
	struct reply_facts f = { .bytes = INT64_MAX,
		.limit = INT64_MAX - 1, .waited = UINT64_MAX - 1,
		.has_exit = true, .exit_code = _i % 2 ? -1 : 2147483647,
		.exit_signal = 2147483647, .tail = tail,
		.tail_len = sizeof(tail) };
	struct id token;
	json_t *v;
	size_t n;

	memset(raw, '"', sizeof(raw));
	memset(raw + 1, 'x', sizeof(raw) - 2);
	memset(tail, 1, sizeof(tail));
	token = id_of(raw, sizeof(raw), false);
	n = reply_make_error(buf, sizeof(buf), &token, errors[_i / 2].e, &f);
	v = parse(buf, n);
	ck_assert_uint_eq(json_string_length(at(v, "error", "data", "stderr")),
	    2048);
	ck_assert_uint_lt(json_string_length(at(v, "error", "message", NULL)),
	    400);
	json_decref(v);
}
END_TEST

START_TEST(ids_are_the_requesters_own)
{
	static const struct {
		const char *raw;
		const char *written;
	} cases[] = { { "0", "0" }, { "-1.50E+2", "-1.50E+2" },
		{ "\"\"", "\"\"" }, { "\"\\u00e9\\/\"", "\"\\u00e9\\/\"" },
		{ "null", "null" }, { "", "null" }, { "[1", "null" } };
	struct id token = id(cases[_i].raw);
	char buf[REPLY_MAX], want[128];
	size_t n = reply_make_error(buf, sizeof(buf), &token,
	    REPLY_MALFORMED, NULL);

	snprintf(want, sizeof(want), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"",
	    cases[_i].written);
	ck_assert_int_eq(strncmp(buf, want, strlen(want)), 0);
	json_decref(parse(buf, n));
	n = reply_make_cancel(buf, sizeof(buf), &token, "r", NULL, 0);
	ck_assert_int_eq(n > 0, _i < 4);
	token.cut = true;
	ck_assert_uint_eq(reply_make_error(buf, sizeof(buf), &token,
	    REPLY_MALFORMED, NULL), 0);
	ck_assert_uint_eq(reply_make_too_large_result(buf, sizeof(buf),
	    &token, false, NULL), 0);
	ck_assert_uint_eq(reply_make_cancel(buf, sizeof(buf), &token, "r",
	    NULL, 0), 0);
}
END_TEST

static size_t
make(int which, char *buf, size_t cap)
{
	static const char meta[] = "\"io.modelcontextprotocol/x\":{\"a\":1}";
	struct reply_facts f = facts_of(3 + 16);
	struct id token = id("\"id\"");

	if (which < 6)
		return reply_make_error(buf, cap, &token, errors[which].e, &f);
	if (which < 8)
		return reply_make_too_large_result(buf, cap, &token,
		    which == 7, &f);
	return reply_make_cancel(buf, cap, &token, "why", which == 9 ? meta :
	    NULL, which == 9 ? sizeof(meta) - 1 : 0);
}

START_TEST(every_capacity_holds_all_or_nothing)
{
	char whole[REPLY_MAX];
	size_t n = make(_i, whole, sizeof(whole)), cap;

	json_decref(parse(whole, n));
	for (cap = 0; cap <= n + 1; cap++) {
		char *buf = malloc(cap + 1);

		buf[cap] = '#';
		ck_assert_uint_eq(make(_i, buf, cap), cap < n ? 0 : n);
		ck_assert_int_eq(buf[cap], '#');
		if (cap >= n)
			ck_assert_int_eq(memcmp(buf, whole, n), 0);
		free(buf);
	}
}
END_TEST

static size_t
with_tail(char *buf, size_t cap, const char *tail, size_t n)
{
	struct reply_facts f = { .tail = tail, .tail_len = n };
	struct id token = id("1");

	return reply_make_error(buf, cap, &token, REPLY_SERVER_EXITED, &f);
}

/* Lines of ten bytes: the cut stands at a line start, never over 2 KiB. */
START_TEST(tails_lose_their_first_lines)
{
	char tail[4000], buf[REPLY_MAX];
	size_t n;

	for (n = 0; n < sizeof(tail); n++)
		tail[n] = n % 10 == 9 ? '\n' : (char)('0' + n % 10);
	for (n = 2030; n < 2080; n++) {
		json_t *v = parse(buf, with_tail(buf, sizeof(buf), tail, n));
		const char *s = json_string_value(at(v, "error", "data",
		    "stderr"));
		size_t len = strlen(s);

		ck_assert_uint_le(len, 2048);
		ck_assert_uint_ge(len, n < 2048 ? n : 2039);
		ck_assert_uint_eq((n - len) % 10, 0);
		ck_assert_int_eq(memcmp(s, tail + n - len, len), 0);
		json_decref(v);
	}
}
END_TEST

/* One line of three-byte letters, longer than the tail may be. */
START_TEST(long_line_is_cut_at_a_code_point)
{
	char tail[3000], buf[REPLY_MAX];
	size_t n, i;

	for (i = 0; i < sizeof(tail); i++)
		tail[i] = "\xe2\x82\xac"[i % 3];
	for (n = 2994; n <= 3000; n += 3) {
		const char *s;
		json_t *v;

		/* With and without a line end that comes last. */
		for (i = 0; i < 2; i++) {
			if (i == 0)
				memcpy(tail + n - 3, "ab\n", 3);
			else
				memcpy(tail + n - 3, "\xe2\x82\xac", 3);
			v = parse(buf, with_tail(buf, sizeof(buf), tail, n));
			s = json_string_value(at(v, "error", "data",
			    "stderr"));
			ck_assert_uint_ge(strlen(s), 2046);
			ck_assert_uint_le(strlen(s), 2048);
			ck_assert_int_eq(memcmp(s, "\xe2\x82\xac", 3), 0);
			json_decref(v);
		}
	}
}
END_TEST

/* Where room is short the tail gives way, line by line, then wholly. */
START_TEST(tail_gives_way_to_the_line)
{
	static const char tail[] = "one\ntwo\n\x01\x02\nthree";
	char buf[REPLY_MAX];
	struct reply_facts f = { .tail = tail, .tail_len = strlen(tail) };
	size_t bare, whole, cap, last = 0;
	struct id token = id("1");

	whole = with_tail(buf, sizeof(buf), tail, f.tail_len);
	bare = whole - strlen(",\"stderr\":\"\"") -
	    strlen("one\\ntwo\\n\\u0001\\u0002\\nthree");
	for (cap = bare - 1; cap <= whole; cap++) {
		size_t n = reply_make_error(buf, cap, &token,
		    REPLY_SERVER_EXITED, &f);
		const char *s;
		size_t len;
		json_t *v;

		ck_assert_int_eq(n > 0, cap >= bare);
		if (n == 0)
			continue;
		ck_assert_uint_le(n, cap);
		ck_assert_uint_ge(n, last);
		last = n;
		v = parse(buf, n);
		s = json_string_value(at(v, "error", "data", "stderr"));
		len = s != NULL ? strlen(s) : 0;
		if (s != NULL)
			ck_assert_str_eq(s, tail + f.tail_len - len);
		ck_assert(len == 0 || len == 5 || len == 8 || len == 12 ||
		    len == 16);
		json_decref(v);
	}
	ck_assert_uint_eq(last, whole);
}
END_TEST

START_TEST(too_large_results_are_results)
{
	struct reply_facts f = facts_of(_i / 2);
	bool modern = _i % 2 != 0;
	struct id token = id("\"t\"");
	char buf[REPLY_MAX];
	size_t n = reply_make_too_large_result(buf, sizeof(buf), &token,
	    modern, &f);
	const char *want = modern ?
	    "{\"jsonrpc\":\"2.0\",\"id\":\"t\",\"result\":{\"resultType\":"
	    "\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"" :
	    "{\"jsonrpc\":\"2.0\",\"id\":\"t\",\"result\":{\"content\":"
	    "[{\"type\":\"text\",\"text\":\"";
	const char *text;
	json_t *v = parse(buf, n);

	ck_assert_int_eq(strncmp(buf, want, strlen(want)), 0);
	ck_assert(json_is_true(at(v, "result", "isError", NULL)));
	text = json_string_value(json_object_get(json_array_get(at(v,
	    "result", "content", NULL), 0), "text"));
	ck_assert_int_eq(strstr(text, "12000000 bytes") != NULL,
	    f.bytes != 0 && !f.depth);
	ck_assert_int_eq(strstr(text, "10420224 bytes") != NULL,
	    f.limit != 0 && !f.depth);
	ck_assert_int_eq(strstr(text, "10420224 levels") != NULL,
	    f.limit != 0 && f.depth);
	ck_assert_ptr_nonnull(strstr(text, "Narrow the request"));
	json_decref(v);
}
END_TEST

START_TEST(cancels_are_exact)
{
	static const char meta[] =
	    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"";
	static const struct {
		const char *raw;
		const char *reason;
		bool meta;
		const char *want;
	} cases[] = {
		{ "7", "host \"stalled\"\n", false, "{\"jsonrpc\":\"2.0\","
		    "\"method\":\"notifications/cancelled\",\"params\":"
		    "{\"requestId\":7,\"reason\":\"host \\\"stalled\\\"\\n\""
		    "}}\n" },
		{ "\"7\"", NULL, false, "{\"jsonrpc\":\"2.0\","
		    "\"method\":\"notifications/cancelled\",\"params\":"
		    "{\"requestId\":\"7\"}}\n" },
		{ "1e0", "x", true, "{\"jsonrpc\":\"2.0\","
		    "\"method\":\"notifications/cancelled\",\"params\":"
		    "{\"requestId\":1e0,\"reason\":\"x\",\"_meta\":{"
		    "\"io.modelcontextprotocol/protocolVersion\":"
		    "\"2026-07-28\"}}}\n" },
	};
	struct id token = id(cases[_i].raw);
	char buf[REPLY_MAX];
	size_t n = reply_make_cancel(buf, sizeof(buf), &token,
	    cases[_i].reason, meta, cases[_i].meta ? sizeof(meta) - 1 : 0);

	ck_assert_uint_eq(n, strlen(cases[_i].want));
	ck_assert_int_eq(memcmp(buf, cases[_i].want, n), 0);
}
END_TEST

START_TEST(codes_and_reasons_match)
{
	ck_assert_int_eq(reply_error_code(errors[_i].e), errors[_i].code);
	ck_assert_str_eq(reply_error_reason(errors[_i].e),
	    errors[_i].reason);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("reply");
	TCase *tc = tcase_create("lines");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, codes_and_reasons_match, 0, COUNT(errors));
	tcase_add_loop_test(tc, errors_have_the_agreed_shape, 0, FACTS);
	tcase_add_loop_test(tc, sentences_say_what_is_known, 0,
	    COUNT(sentences));
	tcase_add_loop_test(tc, largest_figures_fit, 0, 12);
	tcase_add_loop_test(tc, ids_are_the_requesters_own, 0, 7);
	tcase_add_loop_test(tc, every_capacity_holds_all_or_nothing, 0, 10);
	tcase_add_test(tc, tails_lose_their_first_lines);
	tcase_add_test(tc, long_line_is_cut_at_a_code_point);
	tcase_add_test(tc, tail_gives_way_to_the_line);
	tcase_add_loop_test(tc, too_large_results_are_results, 0, 16);
	tcase_add_loop_test(tc, cancels_are_exact, 0, 3);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
