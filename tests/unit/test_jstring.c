/* SPDX-License-Identifier: MIT */
/*
 * Bodies of JSON strings: every escape and boundary code point, every place
 * where a body may be clipped, every capacity; jansson is the second opinion
 * on what we escape.
 */
#include <check.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/jstring.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *raw;
	const char *word;
	bool is;
	bool starts;
} words[] = {
	{ "", "", true, true },
	{ "a", "", false, true },
	{ "", "a", false, false },
	{ "jsonrpc", "jsonrpc", true, true },
	{ "jsonrpc2", "jsonrpc", false, true },
	{ "jsonrp", "jsonrpc", false, false },
	{ "Jsonrpc", "jsonrpc", false, false },
	{ "\\u006asonrpc", "jsonrpc", true, true },
	{ "jsonrp\\u0063", "jsonrpc", true, true },
	{ "\\u006As\\u006fnrpc", "jsonrpc", true, true },
	{ "jsonrp\\u0064", "jsonrpc", false, false },
	{ "jsonrpc\\u0000", "jsonrpc", false, true },
	{ "jsonrp\\u0000", "jsonrp", false, true },
	{ "\\u00e9", "\xc3\xa9", true, true },
	{ "\\u00e9", "\xc3", false, false },
	{ "a\\/b", "a/b", true, true },
	{ "tools\\/call", "tools/call", true, true },
	{ "tools\\u002fcall", "tools/call", true, true },
	{ "jsonrpc\\", "jsonrpc", false, true },
	{ "jsonrp\\u006", "jsonrpc", false, false },
	{ "jsonrp\\", "jsonrpc", false, false },
};

START_TEST(words_compare_unescaped)
{
	size_t n = strlen(words[_i].raw);

	ck_assert_int_eq(jstring_is(words[_i].raw, n, words[_i].word),
	    words[_i].is);
	ck_assert_int_eq(jstring_starts(words[_i].raw, n, words[_i].word),
	    words[_i].starts);
}
END_TEST

static const struct {
	const char *raw;
	const char *text;
	size_t len;
} bodies[] = {
#define BODY(raw, text) { raw, text, sizeof(text) - 1 }
	BODY("", ""),
	BODY("plain", "plain"),
	BODY("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"),
	BODY("\\u0000", "\0"),
	BODY("a\\u0000b", "a\0b"),
	BODY("\\u007f\\u0080", "\x7f\xc2\x80"),
	BODY("\\u07ff\\u0800", "\xdf\xbf\xe0\xa0\x80"),
	BODY("\\ud7ff\\ue000\\uFFFF", "\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"),
	BODY("\\ud800\\udc00", "\xf0\x90\x80\x80"),
	BODY("\\uDBFF\\uDFFF", "\xf4\x8f\xbf\xbf"),
	BODY("\\ud83d\\ude00", "\xf0\x9f\x98\x80"),
	BODY("\\ud83d", "\xed\xa0\xbd"),
	BODY("\\ud83dx", "\xed\xa0\xbdx"),
	BODY("\\ude00", "\xed\xb8\x80"),
	BODY("\\ud83d\\ud83d\\ude00", "\xed\xa0\xbd\xf0\x9f\x98\x80"),
	BODY("\\ude00\\ud83d", "\xed\xb8\x80\xed\xa0\xbd"),
	BODY("\\ud83d\\n", "\xed\xa0\xbd\n"),
	BODY("\\ud83d\\u0041", "\xed\xa0\xbd""A"),
	BODY("\xf0\x9f\x98\x80\\u00e9\xc3\xa9", "\xf0\x9f\x98\x80\xc3\xa9\xc3\xa9"),
	BODY("\\\\u0041", "\\u0041"),
};

START_TEST(bodies_decode_at_every_capacity)
{
	const char *raw = bodies[_i].raw;
	size_t n = strlen(raw), want = bodies[_i].len, cap;

	for (cap = 0; cap <= n + 1; cap++) {
		size_t fits = want < cap ? want : cap;
		char *out = malloc(cap + 1);

		out[cap] = '#';
		ck_assert_uint_eq(jstring_decode(raw, n, out, cap), want);
		ck_assert_int_eq(memcmp(out, bodies[_i].text, fits), 0);
		ck_assert_int_eq(out[cap], '#');
		free(out);
	}
	ck_assert_uint_le(want, n);
}
END_TEST

/* A clipped body means the beginning of the whole one, or a lone half. */
START_TEST(clipped_bodies_decode_to_a_prefix)
{
	size_t n = strlen(bodies[_i].raw), k;

	for (k = 0; k <= n; k++) {
		char *raw = malloc(k + 1), out[64];
		size_t len;

		memcpy(raw, bodies[_i].raw, k);
		raw = realloc(raw, k > 0 ? k : 1);
		len = jstring_decode(raw, k, out, sizeof(out));
		ck_assert_uint_le(len, k);
		if (memcmp(out, bodies[_i].text, len) != 0)
			ck_assert_int_eq((unsigned char)out[len - 3], 0xed);
		free(raw);
	}
}
END_TEST

/* Every UTF-16 unit alone, spelled in both cases. */
START_TEST(every_unit_decodes_as_jansson_reads_it)
{
	unsigned c;

	for (c = 1; c < 0x10000; c++) {
		char json[16], upper[16], out[8], out2[8];
		json_t *v;
		size_t n;

		snprintf(json, sizeof(json), "\"\\u%04x\"", c);
		snprintf(upper, sizeof(upper), "\\u%04X", c);
		n = jstring_decode(json + 1, 6, out, sizeof(out));
		ck_assert_uint_eq(jstring_decode(upper, 6, out2, 8), n);
		ck_assert_int_eq(memcmp(out, out2, n), 0);
		v = json_loads(json, JSON_DECODE_ANY, NULL);
		if (c >= 0xd800 && c < 0xe000) {
			ck_assert_ptr_null(v);
			ck_assert_uint_eq(n, 3);
			continue;
		}
		ck_assert_ptr_nonnull(v);
		ck_assert_uint_eq(json_string_length(v), n);
		ck_assert_int_eq(memcmp(out, json_string_value(v), n), 0);
		json_decref(v);
	}
}
END_TEST

#define BAD "\xef\xbf\xbd"

static const struct {
	const char *text;
	size_t len;
	const char *want;
} texts[] = {
#define TEXT(text, want) { text, sizeof(text) - 1, want }
	TEXT("", ""),
	TEXT("say \"hi\" \\ /", "say \\\"hi\\\" \\\\ /"),
	TEXT("\b\f\n\r\t", "\\b\\f\\n\\r\\t"),
	TEXT("\0\x1b[1m\x1f\x7f", "\\u0000\\u001b[1m\\u001f\\u007f"),
	TEXT("\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf"),
	TEXT("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80",
	    "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"),
	TEXT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
	    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"),
	TEXT("\x80", BAD),
	TEXT("\xc3", BAD),
	TEXT("\xc3(", BAD "("),
	TEXT("\xc0\xaf", BAD BAD),
	TEXT("\xc1\xbf", BAD BAD),
	TEXT("\xe0\x9f\xbf", BAD BAD BAD),
	TEXT("\xed\xa0\x80", BAD BAD BAD),
	TEXT("\xf0\x8f\xbf\xbf", BAD BAD BAD BAD),
	TEXT("\xf4\x90\x80\x80", BAD BAD BAD BAD),
	TEXT("\xf5\x80", BAD BAD),
	TEXT("\xff\xfe", BAD BAD),
	TEXT("\xe2\x82", BAD),
	TEXT("\xe2\x82\"", BAD "\\\""),
	TEXT("\xf0\x9f\x98", BAD),
	TEXT("\xf0\x9f\x98\xf0\x9f\x98\x80", BAD "\xf0\x9f\x98\x80"),
	TEXT("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf" "A", BAD BAD BAD BAD "A"),
};

START_TEST(texts_escape)
{
	char out[128];
	size_t n = jstring_escape(texts[_i].text, texts[_i].len, out,
	    sizeof(out));

	ck_assert_uint_eq(n, strlen(texts[_i].want));
	ck_assert_int_eq(memcmp(out, texts[_i].want, n), 0);
}
END_TEST

static bool
parses(const char *body, size_t n)
{
	char json[1024];
	json_t *v;

	json[0] = '"';
	memcpy(json + 1, body, n);
	json[n + 1] = '"';
	v = json_loadb(json, n + 2, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (v == NULL)
		return false;
	json_decref(v);
	return true;
}

START_TEST(escapes_are_never_split)
{
	size_t whole = strlen(texts[_i].want), cap, last = 0;

	for (cap = 0; cap <= whole + 1; cap++) {
		char *out = malloc(cap + 1);
		size_t n;

		out[cap] = '#';
		n = jstring_escape(texts[_i].text, texts[_i].len, out, cap);
		ck_assert_uint_le(n, cap);
		ck_assert_uint_ge(n, last);
		ck_assert_int_eq(out[cap], '#');
		ck_assert_int_eq(memcmp(out, texts[_i].want, n), 0);
		ck_assert(parses(out, n));
		/* A unit is at most six bytes: no more may be left unused. */
		ck_assert(n == whole || cap - n < 6);
		last = n;
		free(out);
	}
}
END_TEST

static uint32_t
next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

START_TEST(random_text_survives_both_ways)
{
	uint32_t x = 12345u + (uint32_t)_i, c;
	char text[64], body[512], back[512];
	size_t n = 0, k;

	while (n + 4 <= sizeof(text)) {
		char spelled[16];

		c = next_random(&x) >> (8 + next_random(&x) % 20);
		if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			continue;
		if (c < 0x10000)
			snprintf(spelled, sizeof(spelled), "\\u%04x", c);
		else
			snprintf(spelled, sizeof(spelled), "\\u%04x\\u%04x",
			    0xd800 + ((c - 0x10000) >> 10),
			    0xdc00 + (c & 0x3ff));
		n += jstring_decode(spelled, strlen(spelled), text + n, 4);
	}
	k = jstring_escape(text, n, body, sizeof(body));
	ck_assert(parses(body, k));
	ck_assert_uint_eq(jstring_decode(body, k, back, sizeof(back)), n);
	ck_assert_int_eq(memcmp(back, text, n), 0);
}
END_TEST

START_TEST(random_bytes_become_valid)
{
	uint32_t x = 99u + (uint32_t)_i;
	char text[100], body[1024];
	size_t i;

	for (i = 0; i < sizeof(text); i++)
		text[i] = (char)next_random(&x);
	ck_assert(parses(body, jstring_escape(text, sizeof(text), body,
	    sizeof(body))));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("jstring");
	TCase *tc = tcase_create("bodies");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, words_compare_unescaped, 0, COUNT(words));
	tcase_add_loop_test(tc, bodies_decode_at_every_capacity, 0,
	    COUNT(bodies));
	tcase_add_loop_test(tc, clipped_bodies_decode_to_a_prefix, 0,
	    COUNT(bodies));
	tcase_add_test(tc, every_unit_decodes_as_jansson_reads_it);
	tcase_add_loop_test(tc, texts_escape, 0, COUNT(texts));
	tcase_add_loop_test(tc, escapes_are_never_split, 0, COUNT(texts));
	tcase_add_loop_test(tc, random_text_survives_both_ways, 0, 20);
	tcase_add_loop_test(tc, random_bytes_become_valid, 0, 20);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
