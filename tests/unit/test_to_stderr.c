/* SPDX-License-Identifier: MIT */
/*
 * The path to the host's stderr: bytes unchanged at every split, lines never
 * mixed, bounded and dropped by whole lines, escaped, rationed.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/to_stderr.h"

static const struct stderr_options plain = { LOG_LEVEL_WARN, false, false };
static const struct stderr_options tty = { LOG_LEVEL_WARN, true, false };
static const struct stderr_options drop = { LOG_LEVEL_WARN, false, true };

/* What a slow or fast stderr has taken. */
struct taken {
	char *bytes;
	size_t n, cap;
};

static void
take(struct to_stderr *t, struct taken *to, size_t most)
{
	struct iovec iov[4];
	size_t n = 0, len;
	int i, k = to_stderr_peek(t, iov, 4);

	for (i = 0; i < k && n < most; i++) {
		len = iov[i].iov_len < most - n ? iov[i].iov_len : most - n;
		ck_assert_uint_gt(iov[i].iov_len, 0);
		if (to->n + len + 1 > to->cap) {
			to->cap = 2 * (to->n + len + 1);
			to->bytes = realloc(to->bytes, to->cap);
			ck_assert_ptr_nonnull(to->bytes);
		}
		memcpy(to->bytes + to->n, iov[i].iov_base, len);
		to->n += len;
		to->bytes[to->n] = '\0';
		n += len;
	}
	to_stderr_sent(t, n);
}

static void
take_all(struct to_stderr *t, struct taken *to)
{
	while (!to_stderr_empty(t))
		take(t, to, SIZE_MAX);
	if (to->bytes == NULL)
		to->bytes = calloc(1, to->cap = 1);
}

static size_t
count(const char *p, const char *word)
{
	size_t n = 0;

	for (; (p = strstr(p, word)) != NULL; p += strlen(word))
		n++;
	return n;
}

static void
expect_all(struct to_stderr *t, const char *want)
{
	struct taken got = { NULL, 0, 0 };

	take_all(t, &got);
	ck_assert_str_eq(got.bytes, want);
	free(got.bytes);
}

static void
server(struct to_stderr *t, const char *text, usec_t now)
{
	to_stderr_server(t, text, strlen(text), now);
}

START_TEST(server_lines_pass_at_every_split)
{
	static const char text[] = "one\n\n\xff\xfe raw\x1b[m\nlast \r\n";
	size_t n = sizeof(text) - 1, i, k;

	for (i = 0; i <= n; i++) {
		for (k = i; k <= n; k++) {
			struct to_stderr *t = to_stderr_new(&plain);

			to_stderr_server(t, text, i, 0);
			to_stderr_server(t, text + i, k - i, 1);
			to_stderr_server(t, text + k, n - k, 2);
			expect_all(t, text);
			ck_assert_uint_eq(to_stderr_dropped(t), 0);
			to_stderr_free(&t);
			ck_assert_ptr_null(t);
		}
	}
}
END_TEST

START_TEST(long_lines_pass)
{
	static const size_t sizes[] = { 2047, 2048, 2049, 16383, 16384, 16385,
		65534, 65535, 65536, 65537, 200000 };
	static const size_t pieces[] = { 1000, 4096, 65536, SIZE_MAX };
	size_t n = sizes[_i], p, i;
	char *text = malloc(n + 2);

	memset(text, 'x', n);
	text[n] = '\n';
	text[n + 1] = '\0';
	for (p = 0; p < 4; p++) {
		struct to_stderr *t = to_stderr_new(&plain);

		for (i = 0; i <= n;) {
			size_t k = pieces[p] < n + 1 - i ? pieces[p] :
							   n + 1 - i;

			to_stderr_server(t, text + i, k, 0);
			i += k;
			if (i <= n && i <= 65536)
				ck_assert(to_stderr_empty(t));
		}
		expect_all(t, text);
		to_stderr_free(&t);
	}
	free(text);
}
END_TEST

START_TEST(half_a_line_waits_then_goes)
{
	struct to_stderr *t = to_stderr_new(&plain);
	usec_t due;

	server(t, "50%", 1000);
	due = to_stderr_tick(t, 1000);
	ck_assert_uint_eq(due, 1000 + 100 * USEC_MSEC);
	ck_assert_uint_eq(to_stderr_tick(t, due - 1), due);
	ck_assert(to_stderr_empty(t));
	ck_assert_uint_eq(to_stderr_tick(t, due), USEC_NEVER);
	expect_all(t, "50%");
	server(t, "\r100%\nnext\n", due);
	expect_all(t, "\r100%\nnext\n");
	to_stderr_free(&t);
}
END_TEST

/* A line of ours between the parts: unsent, half sent or sent part. */
START_TEST(our_line_never_lands_in_the_servers)
{
	struct to_stderr *t = to_stderr_new(&plain);
	struct taken got = { NULL, 0, 0 };

	server(t, "part", 0);
	to_stderr_log(t, LOG_LEVEL_WARN, "early");
	to_stderr_tick(t, USEC_SEC);
	take(t, &got, (size_t)_i);
	to_stderr_log(t, LOG_LEVEL_WARN, "late");
	server(t, "rest\nwhole\n", USEC_SEC);
	take_all(t, &got);
	ck_assert_str_eq(got.bytes, "spillway: warn: early\npart\n"
				    "spillway: warn: late\nrest\nwhole\n");
	free(got.bytes);
	to_stderr_free(&t);
}
END_TEST

START_TEST(end_finishes_a_line)
{
	static const struct {
		const char *text;
		bool tick;
		const char *want;
	} cases[] = { { "", false, "" }, { "a\n", false, "a\n" },
		{ "a\nhalf", false, "a\nhalf\n" },
		{ "a\nhalf", true, "a\nhalf\n" } };
	struct to_stderr *t = to_stderr_new(&plain);

	server(t, cases[_i].text, 0);
	if (cases[_i].tick)
		to_stderr_tick(t, USEC_SEC);
	to_stderr_server_end(t, USEC_SEC);
	to_stderr_server_end(t, USEC_SEC);
	expect_all(t, cases[_i].want);
	to_stderr_metrics(t, "m", 1);
	expect_all(t, "m\n");
	to_stderr_free(&t);
}
END_TEST

/* Nobody reads: all that came is there in whole lines, or counted. */
START_TEST(full_queue_drops_whole_lines)
{
	static const size_t pieces[] = { 1, 99, 100, 101, 4096, 65536 };
	struct to_stderr *t = to_stderr_new(&plain);
	struct taken got = { NULL, 0, 0 };
	size_t lines = 16000, n, i, k;
	char *text;

	text = malloc(lines * 100);
	for (i = 0; i < lines; i++) {
		memset(text + i * 100, 'e', 99);
		text[i * 100 + 99] = '\n';
	}
	n = lines * 100;
	for (i = 0; i < n; i += k) {
		k = pieces[_i] < n - i ? pieces[_i] : n - i;
		to_stderr_server(t, text + i, k, 0);
	}
	ck_assert_uint_gt(to_stderr_dropped(t), 0);
	take_all(t, &got);
	ck_assert_uint_le(got.n, STDERR_QUEUE_MAX);
	ck_assert_uint_gt(got.n, STDERR_QUEUE_MAX * 9 / 10);
	ck_assert_uint_eq(got.n % 100, 0);
	ck_assert_int_eq(memcmp(got.bytes, text, got.n), 0);
	ck_assert_uint_eq(got.n / 100 + to_stderr_dropped(t), lines);
	server(t, "again\n", 0);
	expect_all(t, "again\n");
	free(got.bytes);
	free(text);
	to_stderr_free(&t);
}
END_TEST

static void
fill_with_ours(struct to_stderr *t, size_t lines)
{
	static const char line[] = "metrics metrics metrics metrics metrics";
	size_t i;

	for (i = 0; i < lines; i++)
		to_stderr_metrics(t, line, sizeof(line) - 1);
}

START_TEST(server_lines_push_ours_out)
{
	struct to_stderr *t = to_stderr_new(&plain);
	struct taken got = { NULL, 0, 0 };
	char *text = malloc(900000);
	size_t sent = (size_t)_i;

	fill_with_ours(t, 20000);
	take(t, &got, sent); /* the line in flight stays whole */
	memset(text, 's', 900000);
	text[899999] = '\n';
	text[0] = '\n';
	to_stderr_server(t, text, 900000, 0);
	take_all(t, &got);
	ck_assert_int_eq(got.bytes[got.n - 2], 's');
	if (sent > 0)
		ck_assert_int_eq(strncmp(got.bytes, "metrics metrics metrics "
			"metrics metrics\n", 40), 0);
	ck_assert_uint_eq(count(got.bytes, "metrics metrics metrics metrics "
		"metrics\n") + to_stderr_dropped(t), 20000);
	ck_assert_uint_gt(to_stderr_dropped(t), 10000);
	free(got.bytes);
	free(text);
	to_stderr_free(&t);
}
END_TEST

START_TEST(log_pushes_metrics_out_but_no_server_line)
{
	struct to_stderr *t = to_stderr_new(&plain);
	struct taken got = { NULL, 0, 0 };
	uint64_t before;
	int i;

	fill_with_ours(t, 20000);
	before = to_stderr_dropped(t);
	ck_assert_uint_gt(before, 0);
	to_stderr_log(t, LOG_LEVEL_ERROR, "important");
	ck_assert_uint_gt(to_stderr_dropped(t), before);
	take_all(t, &got);
	ck_assert_uint_eq(count(got.bytes, "important\n"), 1);
	for (i = 0; i < 200000; i++)
		server(t, "server line\n", 0);
	before = to_stderr_dropped(t);
	for (i = 0; i < 1000; i++) {
		to_stderr_log(t, LOG_LEVEL_ERROR, "a line too many");
		to_stderr_metrics(t, "m", 1);
	}
	got.n = 0;
	take_all(t, &got);
	ck_assert_uint_gt(to_stderr_dropped(t), before + 1900);
	ck_assert_uint_gt(count(got.bytes, "server line\n"), 80000);
	free(got.bytes);
	to_stderr_free(&t);
}
END_TEST

/* A random run with a reader that stops now and then: the sum is right. */
START_TEST(random_runs_mix_no_lines)
{
	struct to_stderr *t = to_stderr_new(&plain);
	struct taken got = { NULL, 0, 0 };
	size_t lines = 0, i, n, ours = 0;
	unsigned seed = (unsigned)_i + 1;
	char line[9000], *p, *end;

	for (i = 0; i < 3000; i++) {
		n = (size_t)rand_r(&seed) % (i % 7 ? 300 : sizeof(line) - 1);
		memset(line, 's', n);
		line[n] = '\n';
		to_stderr_server(t, line, n / 2, 0);
		to_stderr_server(t, line + n / 2, n + 1 - n / 2, 0);
		lines++;
		if (rand_r(&seed) % 3 == 0) {
			to_stderr_log(t, LOG_LEVEL_WARN, "%s", "ours");
			ours++;
		}
		if (i / 500 % 2)
			take(t, &got, (size_t)rand_r(&seed) % 9000);
	}
	take_all(t, &got);
	ck_assert_int_eq(got.bytes[got.n - 1], '\n');
	for (n = 0, p = got.bytes; p < got.bytes + got.n; p = end + 1, n++) {
		end = strchr(p, '\n');
		ck_assert(strspn(p, "s") == (size_t)(end - p) ||
		    strncmp(p, "spillway: warn: ours\n", 21) == 0);
	}
	ck_assert_uint_eq(n + to_stderr_dropped(t), lines + ours);
	free(got.bytes);
	to_stderr_free(&t);
}
END_TEST

START_TEST(a_huge_line_is_dropped_to_its_end)
{
	struct to_stderr *t = to_stderr_new(&plain);
	struct taken got = { NULL, 0, 0 };
	char block[10000];
	int i;

	memset(block, 'h', sizeof(block));
	for (i = 0; i < 300; i++)
		to_stderr_server(t, block, sizeof(block), 0);
	ck_assert_uint_eq(to_stderr_dropped(t), 1);
	take_all(t, &got);
	ck_assert_uint_le(got.n, STDERR_QUEUE_MAX);
	got.n = 0;
	server(t, "hh", 1);
	server(t, "h\nnext\n", 1);
	take_all(t, &got);
	ck_assert_str_eq(got.bytes, "\nnext\n");
	ck_assert_uint_eq(to_stderr_dropped(t), 1);
	free(got.bytes);
	to_stderr_free(&t);
}
END_TEST

START_TEST(junk_is_escaped)
{
	static const struct {
		const char *text;
		size_t n;
		const char *want;
	} cases[] = {
#define CASE(text, want) { text, sizeof(text) - 1, want }
		CASE("", ""), CASE("banner", "banner"),
		CASE("a\x1b[31mred", "a\\x1b[31mred"),
		CASE("\0\t\r\x7f", "\\x00\\x09\\x0d\\x7f"),
		CASE("\\x1b as text", "\\x1b as text"),
		CASE("\xc3\xa9 \xe2\x98\x83 \xf0\x9f\x98\x80",
		    "\xc3\xa9 \xe2\x98\x83 \xf0\x9f\x98\x80"),
		CASE("\xc2\x9b" "31m\xc2\x85", "\\xc2\\x9b31m\\xc2\\x85"),
		CASE("\xc2\xa0", "\xc2\xa0"),
		CASE("\x9b\xff\xc0\x80", "\\x9b\\xff\\xc0\\x80"),
		CASE("\xed\xa0\x80|\xf4\x90\x80\x80",
		    "\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80"),
		CASE("cut \xe2\x98", "cut \\xe2\\x98"),
		CASE("\xe2\x98x", "\\xe2\\x98x"),
	};
	struct to_stderr *t = to_stderr_new(&plain);
	char want[200];

	to_stderr_junk(t, cases[_i].text, cases[_i].n, cases[_i].n, 0);
	snprintf(want, sizeof(want), "spillway: stdout: %s\n",
	    cases[_i].want);
	expect_all(t, want);
	to_stderr_free(&t);
}
END_TEST

#define JUNK_CASES 12

START_TEST(junk_is_clipped)
{
	static const char *const units[] = { "x", "\x1b", "\xc3\xa9",
		"\xf0\x9f\x98\x80", "ab\xff" };
	const char *unit = units[_i];
	size_t n, k = strlen(unit);
	char text[2000];

	for (n = 440 / k; n * k + k < sizeof(text); n++) {
		struct to_stderr *t = to_stderr_new(&plain);
		struct taken got = { NULL, 0, 0 };
		char note[40];
		size_t i, body;

		for (i = 0; i < n; i++)
			memcpy(text + i * k, unit, k);
		to_stderr_junk(t, text, n * k, n * k, 0);
		take_all(t, &got);
		ck_assert_uint_le(got.n, STDERR_JUNK_MAX);
		ck_assert_uint_eq(count(got.bytes, "\n"), 1);
		snprintf(note, sizeof(note), " [%zu bytes]\n", n * k);
		if (strstr(got.bytes, note))
			ck_assert_uint_gt(got.n, STDERR_JUNK_MAX - 8);
		body = strcspn(got.bytes + 18, "[\n");
		if (_i == 3 && strstr(got.bytes, note))
			ck_assert_uint_eq((body - 1) % 4, 0);
		free(got.bytes);
		to_stderr_free(&t);
	}
}
END_TEST

START_TEST(junk_limit_is_exact)
{
	struct to_stderr *t = to_stderr_new(&plain);
	struct taken got = { NULL, 0, 0 };
	size_t room = STDERR_JUNK_MAX - 18 - 1;
	char text[600];

	memset(text, 'x', sizeof(text));
	to_stderr_junk(t, text, room, room, 0);
	take_all(t, &got);
	ck_assert_uint_eq(got.n, STDERR_JUNK_MAX);
	ck_assert_uint_eq(count(got.bytes, "bytes"), 0);
	got.n = 0;
	to_stderr_junk(t, text, room + 1, room + 1, 0);
	take_all(t, &got);
	ck_assert_uint_eq(got.n, STDERR_JUNK_MAX);
	ck_assert_uint_eq(count(got.bytes, "x [494 bytes]\n"), 1);
	got.n = 0;
	to_stderr_junk(t, "ab\xe2\x98", 4, 5000000000, 0);
	take_all(t, &got);
	ck_assert_str_eq(got.bytes,
	    "spillway: stdout: ab [5000000000 bytes]\n");
	free(got.bytes);
	to_stderr_free(&t);
}
END_TEST

START_TEST(junk_is_rationed)
{
	struct to_stderr *t = to_stderr_new(&plain);
	struct taken got = { NULL, 0, 0 };
	usec_t now = 5 * USEC_SEC;
	char want[80];
	int i;

	for (i = 0; i < _i; i++)
		to_stderr_junk(t, "junk", 4, 4, now + (usec_t)i);
	take_all(t, &got);
	ck_assert_uint_eq(count(got.bytes, "stdout: junk\n"),
	    _i < 20 ? (size_t)_i : 20);
	got.n = 0;
	if (_i <= 20) {
		ck_assert_uint_eq(to_stderr_tick(t, now + 100), USEC_NEVER);
	} else {
		ck_assert_uint_eq(to_stderr_tick(t, now + USEC_SEC - 1),
		    now + USEC_SEC);
		ck_assert(to_stderr_empty(t));
		ck_assert_uint_eq(to_stderr_tick(t, now + USEC_SEC),
		    USEC_NEVER);
		snprintf(want, sizeof(want),
		    "spillway: stdout: suppressed %d line%s\n", _i - 20,
		    _i == 21 ? "" : "s");
		expect_all(t, want);
	}
	/* the next second begins anew */
	for (i = 0; i < 21; i++)
		to_stderr_junk(t, "later", 5, 5, now + USEC_SEC);
	ck_assert_uint_eq(to_stderr_tick(t, USEC_NEVER), USEC_NEVER);
	take_all(t, &got);
	ck_assert_uint_eq(count(got.bytes, "later\n"), 20);
	ck_assert_uint_eq(count(got.bytes, "suppressed 1 line\n"), 1);
	free(got.bytes);
	to_stderr_free(&t);
}
END_TEST

/* The line about the last second stands before the next second's lines. */
START_TEST(a_late_tick_loses_no_count)
{
	struct to_stderr *t = to_stderr_new(&plain);
	struct taken got = { NULL, 0, 0 };
	char *word;
	int i;

	for (i = 0; i < 25; i++)
		to_stderr_junk(t, "one", 3, 3, 7);
	to_stderr_junk(t, "two", 3, 3, 7 + USEC_SEC);
	take_all(t, &got);
	word = strstr(got.bytes, "suppressed 5 lines\n");
	ck_assert_ptr_nonnull(word);
	ck_assert_ptr_nonnull(strstr(word, "two\n"));
	free(got.bytes);
	to_stderr_free(&t);
}
END_TEST

START_TEST(tty_neutralises_at_every_split)
{
	static const char text[] = "\x1b]0;t\x07red \xc2\x9b" "31m \x9b"
				   "m\tx\r\n\xe2\x9b\x9b \xf0\x9f\x98\x9b\xe9"
				   "\\ \x7f\b\n";
	static const char want[] = "\\x1b]0;t\\x07red \\xc2\\x9b31m \\x9b"
				   "m\tx\r\n\xe2\x9b\x9b \xf0\x9f\x98\x9b\xe9"
				   "\\ \\x7f\\x08\n";
	size_t n = sizeof(text) - 1, i, k;

	for (i = 0; i <= n; i++) {
		for (k = i; k <= n; k++) {
			struct to_stderr *t = to_stderr_new(&tty);

			to_stderr_server(t, text, i, 0);
			to_stderr_server(t, text + i, k - i, 0);
			to_stderr_server(t, text + k, n - k, 0);
			expect_all(t, want);
			to_stderr_free(&t);
		}
	}
}
END_TEST

START_TEST(tty_end_shows_a_cut_character)
{
	struct to_stderr *t = to_stderr_new(&tty);
	char big[5000];

	memset(big, '\x1b', sizeof(big));
	server(t, "x\xe2\x98", 0);
	to_stderr_server_end(t, 0);
	expect_all(t, "x\xe2\\x98\n");
	to_stderr_server(t, big, sizeof(big), 0);
	server(t, "\n", 0);
	{
		struct taken got = { NULL, 0, 0 };

		take_all(t, &got);
		ck_assert_uint_eq(got.n, 4 * sizeof(big) + 1);
		ck_assert_uint_eq(count(got.bytes, "\\x1b"), sizeof(big));
		free(got.bytes);
	}
	to_stderr_free(&t);
}
END_TEST

START_TEST(dropped_server_is_still_remembered)
{
	struct to_stderr *t = to_stderr_new(&drop);
	char tail[STDERR_TAIL];

	server(t, "hidden\nhalf", 0);
	to_stderr_junk(t, "junk", 4, 4, 0);
	ck_assert_uint_eq(to_stderr_tail(t, tail, sizeof(tail)), 7);
	to_stderr_server_end(t, 0);
	expect_all(t, "spillway: stdout: junk\n");
	ck_assert_uint_eq(to_stderr_tail(t, tail, sizeof(tail)), 12);
	ck_assert_int_eq(memcmp(tail, "hidden\nhalf\n", 12), 0);
	ck_assert_uint_eq(to_stderr_dropped(t), 0);
	to_stderr_free(&t);
}
END_TEST

/* Lines of every length around the size of the ring, in odd pieces. */
START_TEST(tail_is_the_last_whole_lines)
{
	static const size_t lengths[] = { 1, 2, 7, 100, 1023, 1024, 1025,
		2046, 2047, 2048, 2049, 5000 };
	size_t len = lengths[_i], i, n, cap, fit;
	char *line = malloc(len), tail[STDERR_TAIL + 9];

	memset(line, 't', len);
	line[len - 1] = '\n';
	for (cap = 0; cap <= sizeof(tail); cap += 257) {
		struct to_stderr *t = to_stderr_new(&plain);

		ck_assert_uint_eq(to_stderr_tail(t, tail, cap), 0);
		for (i = 0; i < 6000 / len + 1; i++) {
			to_stderr_server(t, line, len / 3, 0);
			to_stderr_server(t, line + len / 3, len - len / 3, 0);
		}
		server(t, "half", 0);
		n = to_stderr_tail(t, tail, cap);
		fit = cap < STDERR_TAIL ? cap : STDERR_TAIL;
		/* "half" takes its place in what is kept. */
		fit = fit < STDERR_TAIL - 4 ? fit : STDERR_TAIL - 4;
		fit = fit < i * len ? fit : i * len;
		ck_assert_uint_eq(n, fit < len ? fit : fit - fit % len);
		if (n > 0)
			ck_assert_int_eq(tail[n - 1], '\n');
		to_stderr_free(&t);
	}
	free(line);
}
END_TEST

START_TEST(log_has_levels_and_one_line)
{
	static const char *const names[] = { "error", "warn", "info",
		"debug" };
	struct stderr_options o = { (enum log_level)(_i / 4), false, false };
	enum log_level level = (enum log_level)(_i % 4);
	struct to_stderr *t = to_stderr_new(&o);
	char want[80] = "";

	to_stderr_log(t, level, "a\nb %d\x1b", 7);
	if (level <= o.level)
		snprintf(want, sizeof(want), "spillway: %s: a\\x0ab 7\\x1b\n",
		    names[level]);
	expect_all(t, want);
	ck_assert_str_eq(log_level_name(level), names[level]);
	to_stderr_free(&t);
}
END_TEST

START_TEST(long_log_text_is_clipped)
{
	char text[9000];
	size_t n;

	memset(text, '\xc3', sizeof(text));
	for (n = 1; n < sizeof(text); n += 2)
		text[n] = '\xa9';
	for (n = 1900; n < 8000; n += n < 2200 ? 1 : 500) {
		struct to_stderr *t = to_stderr_new(&plain);
		struct taken got = { NULL, 0, 0 };

		to_stderr_log(t, LOG_LEVEL_WARN, "%.*s", (int)(n & ~1u),
		    text);
		take_all(t, &got);
		ck_assert_uint_le(got.n, 2048);
		ck_assert_int_eq(got.bytes[got.n - 1], '\n');
		ck_assert_ptr_null(strchr(got.bytes, '\\'));
		free(got.bytes);
		to_stderr_free(&t);
	}
}
END_TEST

START_TEST(tee_gets_log_and_metrics)
{
	struct to_stderr *t = to_stderr_new(&plain);
	struct iovec iov[8];
	char got[200] = "";
	int i, n;

	to_stderr_log(t, LOG_LEVEL_WARN, "before");
	ck_assert_int_eq(to_stderr_tee(t), 0);
	server(t, "server\n", 0);
	to_stderr_junk(t, "junk", 4, 4, 0);
	to_stderr_log(t, LOG_LEVEL_WARN, "one");
	to_stderr_log(t, LOG_LEVEL_INFO, "not this");
	to_stderr_close(t);
	to_stderr_metrics(t, "two", 3);
	n = to_stderr_tee_peek(t, iov, 8);
	for (i = 0; i < n; i++)
		strncat(got, iov[i].iov_base, iov[i].iov_len);
	ck_assert_str_eq(got, "spillway: warn: one\ntwo\n");
	to_stderr_tee_sent(t, 5);
	ck_assert_int_eq(to_stderr_tee_peek(t, iov, 8), 2);
	ck_assert_uint_eq(iov[0].iov_len, 15);
	to_stderr_tee_sent(t, 15 + 4);
	ck_assert_int_eq(to_stderr_tee_peek(t, iov, 8), 0);
	to_stderr_free(&t);
}
END_TEST

START_TEST(closed_forgets_and_takes_nothing)
{
	struct to_stderr *t = to_stderr_new(&plain);
	char tail[64];
	int i;

	server(t, "one\nhalf", 0);
	for (i = 0; i < 30; i++)
		to_stderr_junk(t, "j", 1, 1, 0);
	to_stderr_close(t);
	ck_assert(to_stderr_empty(t));
	server(t, "two\n", 0);
	to_stderr_log(t, LOG_LEVEL_ERROR, "x");
	to_stderr_tick(t, USEC_NEVER);
	to_stderr_server_end(t, 0);
	ck_assert(to_stderr_empty(t));
	ck_assert_uint_eq(to_stderr_tail(t, tail, sizeof(tail)), 12);
	to_stderr_free(&t);
	to_stderr_free(&t);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("to_stderr");
	TCase *t = tcase_create("lines");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, server_lines_pass_at_every_split);
	tcase_add_loop_test(t, long_lines_pass, 0, 11);
	tcase_add_test(t, half_a_line_waits_then_goes);
	tcase_add_loop_test(t, our_line_never_lands_in_the_servers, 0, 28);
	tcase_add_loop_test(t, end_finishes_a_line, 0, 4);
	tcase_add_loop_test(t, full_queue_drops_whole_lines, 0, 6);
	tcase_add_loop_test(t, server_lines_push_ours_out, 0, 3);
	tcase_add_test(t, log_pushes_metrics_out_but_no_server_line);
	tcase_add_loop_test(t, random_runs_mix_no_lines, 0, 10);
	tcase_add_test(t, a_huge_line_is_dropped_to_its_end);
	tcase_add_loop_test(t, junk_is_escaped, 0, JUNK_CASES);
	tcase_add_loop_test(t, junk_is_clipped, 0, 5);
	tcase_add_test(t, junk_limit_is_exact);
	tcase_add_loop_test(t, junk_is_rationed, 0, 45);
	tcase_add_test(t, a_late_tick_loses_no_count);
	tcase_add_test(t, tty_neutralises_at_every_split);
	tcase_add_test(t, tty_end_shows_a_cut_character);
	tcase_add_test(t, dropped_server_is_still_remembered);
	tcase_add_loop_test(t, tail_is_the_last_whole_lines, 0, 12);
	tcase_add_loop_test(t, log_has_levels_and_one_line, 0, 16);
	tcase_add_test(t, long_log_text_is_clipped);
	tcase_add_test(t, tee_gets_log_and_metrics);
	tcase_add_test(t, closed_forgets_and_takes_nothing);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
