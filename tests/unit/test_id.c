/* SPDX-License-Identifier: MIT */
/*
 * Ids: which spellings are one id and which are two, at every size up to
 * the longest that is tracked; what a token is; JavaScript's reading.
 */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/id.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *raw;
	enum id_type type;
} tokens[] = {
	{ "", ID_NONE }, { "\"\"", ID_STRING }, { "\"a\"", ID_STRING },
	{ "0", ID_NUMBER }, { "-0", ID_NUMBER }, { "-1", ID_NUMBER },
	{ "1.5e+10", ID_NUMBER }, { "0.1E-2", ID_NUMBER },
	{ "10", ID_NUMBER }, { "null", ID_NULL }, { "nul", ID_OTHER },
	{ "nulll", ID_OTHER }, { "true", ID_OTHER }, { "false", ID_OTHER },
	{ "{}", ID_OTHER }, { "[1]", ID_OTHER }, { "NaN", ID_OTHER },
	{ "-Infinity", ID_OTHER }, { "-", ID_OTHER }, { "01", ID_OTHER },
	{ "-01", ID_OTHER }, { "1.", ID_OTHER }, { ".5", ID_OTHER },
	{ "1e", ID_OTHER }, { "1e+", ID_OTHER }, { "1e5-3", ID_OTHER },
	{ "1x", ID_OTHER }, { "+1", ID_OTHER }, { "\"", ID_OTHER },
};

START_TEST(tokens_are_classified)
{
	size_t n = strlen(tokens[_i].raw);
	struct id id = id_of(tokens[_i].raw, n, false);
	struct id_key key;

	ck_assert_int_eq(id.type, tokens[_i].type);
	ck_assert_uint_eq(id.len, n);
	ck_assert_ptr_eq(id.raw, tokens[_i].raw);
	ck_assert(!id.cut);
	ck_assert_int_eq(id_key(&id, 1, &key),
	    id.type == ID_STRING || id.type == ID_NUMBER);
	id.cut = true;
	ck_assert(!id_key(&id, 1, &key));
}
END_TEST

/* Spellings of one id stand in one row; rows differ. */
static const char *const rows[][6] = {
	{ "\"1\"", "\"\\u0031\"" },
	{ "1", "1.0", "1e0", "10e-1", "0.1e1", "1E+00" },
	{ "-1", "-1.000", "-100E-2" },
	{ "0", "-0", "0.0", "0e5", "-0.00e-999999999999999999999", "0e0" },
	{ "\"0\"" },
	{ "\"\"" },
	{ "\"null\"" },
	{ "10", "1e1", "1.0e1", "100e-1", "0.01e3", "10.0" },
	{ "100", "1e2", "0.0001e6" },
	{ "0.1", "1e-1", "0.10", "10e-2" },
	{ "0.01", "1e-2", "0.010" },
	{ "12", "1.2e1", "120e-1" },
	{ "102", "1.02e2" },
	{ "1.2", "12e-1", "0.12e1" },
	{ "9007199254740992", "9007199254740992.0" },
	{ "9007199254740993", "9.007199254740993e15" },
	{ "1e999999999", "10e999999998", "0.1e1000000000" },
	{ "1e99999999" },
	{ "1e-999999999" },
	{ "1e99999999999999999", "10e99999999999999998",
	    "0.1e100000000000000000" },
	{ "1e999999999999999999", "0.1e1000000000000000000",
	    "10e999999999999999998", "0.001e1000000000000000002",
	    "1000e999999999999999996" },
	{ "1e1000000000000000000", "10e999999999999999999",
	    "0.1e1000000000000000001" },
	{ "1e-1000000000000000000", "10e-1000000000000000001",
	    "0.1e-999999999999999999" },
	{ "1e-999999999999999999", "10e-1000000000000000000",
	    "0.01e-999999999999999997" },
	{ "1e99999999999999999999", "0.1e100000000000000000000",
	    "10e99999999999999999998", "1e+0099999999999999999999" },
	{ "1e100000000000000000000", "10e99999999999999999999" },
	{ "1e-99999999999999999999", "10e-100000000000000000000" },
	{ "\"a\"", "\"\\u0061\"" },
	{ "\"A\"", "\"\\u0041\"" },
	{ "\"\\/\"", "\"/\"", "\"\\u002f\"", "\"\\u002F\"" },
	{ "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"" },
	{ "\"\\ud83d\"", "\"\\uD83D\"" },
	{ "\"\\ud83e\"" },
	{ "\"\\u0000\"" },
	{ "\"\\u0000\\u0000\"" },
	{ "\" 1\"" },
	{ "\"S\"" },
	{ "\"N+1e+1\"" },
};

static struct id_key
key_of(const char *raw, size_t n)
{
	struct id id = id_of(raw, n, false);
	struct id_key key;

	memset(&key, 0, sizeof(key));
	ck_assert_msg(id_key(&id, 7, &key), "no key: %s", raw);
	ck_assert_uint_le(key.len, sizeof(key.bytes));
	return key;
}

static bool
same(const char *a, const char *b)
{
	struct id_key x = key_of(a, strlen(a)), y = key_of(b, strlen(b));

	if (x.len != y.len || memcmp(x.bytes, y.bytes, x.len) != 0) {
		ck_assert_uint_ne(x.hash, y.hash);
		return false;
	}
	ck_assert_uint_eq(x.hash, y.hash);
	return true;
}

START_TEST(spellings_of_one_id_are_equal)
{
	size_t a, b;

	for (a = 0; a < 6 && rows[_i][a] != NULL; a++)
		for (b = 0; b < 6 && rows[_i][b] != NULL; b++)
			ck_assert_msg(same(rows[_i][a], rows[_i][b]),
			    "%s != %s", rows[_i][a], rows[_i][b]);
}
END_TEST

START_TEST(different_ids_differ)
{
	size_t i, a, b;

	for (i = 0; i < COUNT(rows); i++)
		for (a = 0; a < 6 && rows[i][a] != NULL; a++)
			for (b = 0; b < 6 && rows[_i][b] != NULL; b++)
				ck_assert_msg(i == (size_t)_i ||
				    !same(rows[i][a], rows[_i][b]),
				    "%s == %s", rows[i][a], rows[_i][b]);
}
END_TEST

/* One value with its point anywhere, and its exponent to match. */
START_TEST(point_and_exponent_trade_places)
{
	const char *digits = "9070010203";
	long long base[] = { 0, 7, -12, 999999999999999990,
		-999999999999999990, 4000000000000000000 };
	long long e = base[_i];
	size_t n = strlen(digits), at, zeros;
	char first[64], text[128];

	snprintf(first, sizeof(first), "%se%lld", digits, e);
	for (at = 1; at < n; at++)
		for (zeros = 0; zeros < 4; zeros++) {
			snprintf(text, sizeof(text), "%.*s.%s%.*se%lld",
			    (int)at, digits, digits + at, (int)zeros, "000",
			    e + (long long)(n - at));
			ck_assert_msg(same(first, text), "%s %s", first, text);
			snprintf(text, sizeof(text), "%.*s.%s%.*se%lld",
			    (int)at, digits, digits + at, (int)zeros, "000",
			    e + (long long)(n - at) + 1);
			ck_assert_msg(!same(first, text), "%s %s", first,
			    text);
			snprintf(text, sizeof(text), "0.%.*s%se%lld",
			    (int)zeros, "000", digits,
			    e + (long long)(n + zeros));
			ck_assert_msg(same(first, text), "%s %s", first, text);
		}
}
END_TEST

/* Tokens up to the limit have a key; one byte more, and they are cut. */
START_TEST(length_is_bounded)
{
	static const char heads[][8] = { "\"", "1", "0.", "1e", "-1e-",
		"10" };
	const char *head = heads[_i];
	char raw[ID_RAW_MAX + 2];
	struct id_key key;
	struct id id;
	size_t n;

	for (n = ID_RAW_MAX - 2; n <= ID_RAW_MAX + 1; n++) {
		memset(raw, '9', sizeof(raw));
		memcpy(raw, head, strlen(head));
		if (head[0] == '"')
			raw[n - 1] = '"';
		id = id_of(raw, n, false);
		ck_assert_int_eq(id.cut, n > ID_RAW_MAX);
		ck_assert_uint_eq(id.len, n > ID_RAW_MAX ? ID_RAW_MAX : n);
		ck_assert_int_eq(id.type,
		    head[0] == '"' ? ID_STRING : ID_NUMBER);
		ck_assert_int_eq(id_key(&id, 3, &key), n <= ID_RAW_MAX);
		if (n <= ID_RAW_MAX)
			ck_assert_uint_le(key.len, sizeof(key.bytes));
		(void)id_double(&id);
	}
}
END_TEST

/* A long integer and the same with an exponent; the carry runs through. */
START_TEST(long_numbers_compare_exactly)
{
	char a[ID_RAW_MAX + 1], b[ID_RAW_MAX + 1];
	size_t n = 20 + (size_t)_i * 97;

	memset(a, '9', n);
	a[n] = '\0';
	memcpy(b, a, n + 1);
	ck_assert(same(a, b));
	b[n / 2] = '8';
	ck_assert(!same(a, b));
	b[n / 2] = '9';
	b[n - 1] = '8';
	ck_assert(!same(a, b));
	/* 1e99..9 and 0.1e100..0 */
	memset(a, '9', n);
	memcpy(a, "1e", 2);
	memset(b, '0', n + 3);
	memcpy(b, "0.1e1", 5);
	b[n + 3] = '\0';
	ck_assert(same(a, b));
	b[n + 2] = '1';
	ck_assert(!same(a, b));
}
END_TEST

START_TEST(seed_changes_the_hash_alone)
{
	static const char *const raws[] = { "1", "\"1\"", "\"abcdefg\"",
		"\"abcdefgh\"", "\"abcdefghijklmnopqrstuvwxyz\"" };
	struct id id = id_of(raws[_i], strlen(raws[_i]), false);
	struct id_key a, b, c;

	ck_assert(id_key(&id, 1, &a));
	ck_assert(id_key(&id, 2, &b));
	ck_assert(id_key(&id, 0, &c));
	ck_assert_uint_eq(a.len, b.len);
	ck_assert_int_eq(memcmp(a.bytes, b.bytes, a.len), 0);
	ck_assert_uint_ne(a.hash, b.hash);
	ck_assert_uint_ne(a.hash, c.hash);
}
END_TEST

/* The low bits are what tables use: they must be spread evenly. */
START_TEST(hash_spreads_small_ids)
{
	unsigned seen[64] = { 0 };
	char raw[16];
	unsigned i;

	for (i = 0; i < 6400; i++) {
		struct id_key key;

		snprintf(raw, sizeof(raw), "%u", i);
		key = key_of(raw, strlen(raw));
		seen[key.hash % 64]++;
	}
	for (i = 0; i < 64; i++) {
		ck_assert_uint_gt(seen[i], 50);
		ck_assert_uint_lt(seen[i], 160);
	}
}
END_TEST

START_TEST(doubles_are_javascripts)
{
	static const struct {
		const char *raw;
		double want;
	} cases[] = { { "0", 0 }, { "7", 7 }, { "-7", -7 },
		{ "999999999999999", 999999999999999.0 },
		{ "9007199254740993", 9007199254740992.0 },
		{ "9007199254740995", 9007199254740996.0 },
		{ "1.5", 1.5 }, { "1e3", 1000 }, { "1E-1", 0.1 },
		{ "18446744073709551616", 18446744073709551616.0 },
		{ "1e-400", 0 } };
	char copy[32];
	size_t n = strlen(cases[_i].raw);
	struct id id;

	/* More digits follow: the length alone must end the number. */
	memcpy(copy, cases[_i].raw, n);
	memcpy(copy + n, "55", 3);
	id = id_of(copy, n, false);
	ck_assert_double_eq(id_double(&id), cases[_i].want);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("id");
	TCase *tc = tcase_create("ids");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, tokens_are_classified, 0, COUNT(tokens));
	tcase_add_loop_test(tc, spellings_of_one_id_are_equal, 0,
	    COUNT(rows));
	tcase_add_loop_test(tc, different_ids_differ, 0, COUNT(rows));
	tcase_add_loop_test(tc, point_and_exponent_trade_places, 0, 6);
	tcase_add_loop_test(tc, length_is_bounded, 0, 6);
	tcase_add_loop_test(tc, long_numbers_compare_exactly, 0, 10);
	tcase_add_loop_test(tc, seed_changes_the_hash_alone, 0, 5);
	tcase_add_test(tc, hash_spreads_small_ids);
	tcase_add_loop_test(tc, doubles_are_javascripts, 0, 11);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
