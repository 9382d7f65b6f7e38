/* SPDX-License-Identifier: MIT */
/*
 * The scanner: its events and edits, however the input is cut and whichever
 * kernel reads the strings; limits; what it accepts, against the published
 * JSONTestSuite and against jansson; UTF-8 against a definition written down
 * another way.
 */
#include <check.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "spillway/scan.h"

#define DEPTH_ROOM 4096
#define EDITS 4096

static const char *const kernels[] = { "scalar", "swar", "sse2", "avx2",
	"neon" };

#define KERNELS (sizeof(kernels) / sizeof(kernels[0]))

struct edit {
	uint64_t off;
	unsigned len;
	unsigned n;
	const char *with;
};

/* How to scan, and what was told in one run. */
struct rec {
	bool strict;
	bool lf;
	bool tolerate;
	bool quiet; /* no trace: compare results alone */
	uint32_t max_depth;
	uint32_t watch;
	const char *want; /* trace; NULL: that of the first run */

	struct scan scan;
	uint8_t stack[DEPTH_ROOM / 8 + 8];
	char *trace;
	size_t len;
	size_t room;
	char *first;
	size_t first_len;
	enum scan_status st;
	uint64_t last;	/* offset of the last event or end of an edit */
	uint64_t ready; /* from here on an edit may come */
	struct edit edits[EDITS];
	size_t edited;
};

static void
put(struct rec *r, const void *bytes, size_t n)
{
	if (r->quiet)
		return;
	if (r->room - r->len < n) {
		r->room = r->room * 2 + n + 256;
		r->trace = realloc(r->trace, r->room);
		if (r->trace == NULL)
			ck_abort_msg("no memory");
	}
	memcpy(r->trace + r->len, bytes, n);
	r->len += n;
}

__attribute__((format(printf, 2, 3))) static void
putf(struct rec *r, const char *format, ...)
{
	char text[128];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	put(r, text, (size_t)n);
}

/* Signs of the events in the order of enum scan_event. */
static const char signs[] = "{}[]kKsSnN";

static void
on_event(void *arg, struct scan *s, enum scan_event e, uint64_t off)
{
	struct rec *r = arg;

	if (off < r->last)
		ck_abort_msg("%s at %llu comes late", scan_event_name(e),
		    (unsigned long long)off);
	r->last = off;
	putf(r, "%c%u@%llu", signs[e], s->depth, (unsigned long long)off);
	if (e == SCAN_KEY_END || e == SCAN_STRING_END ||
	    e == SCAN_SCALAR_END) {
		put(r, "=", 1);
		put(r, s->token, s->token_len);
		if (s->token_cut)
			put(r, "~", 1);
	}
	put(r, " ", 1);
}

static void
on_edit(void *arg, uint64_t off, unsigned len, const char *with, unsigned n)
{
	struct rec *r = arg;

	if (off < r->last || off < r->ready || len > SCAN_HELD_MAX ||
	    r->edited == EDITS)
		ck_abort_msg("edit of %u bytes at %llu, held from %llu", len,
		    (unsigned long long)off, (unsigned long long)r->ready);
	r->last = off + (with[0] == 'n' ? 0 : len);
	r->edits[r->edited++] = (struct edit){ off, len, n, with };
	putf(r, "e@%llu+%u ", (unsigned long long)off, len);
}

static void
start(void *arg)
{
	struct rec *r = arg;
	struct scan_sink sink = { on_event, r->strict ? NULL : on_edit, r,
		false };

	memset(r->stack, 0xa5, sizeof(r->stack));
	scan_init(&r->scan, &sink, r->stack, r->max_depth);
	r->scan.watch = r->watch;
	if (r->lf)
		scan_allow_lf(&r->scan);
	r->len = r->edited = 0;
	r->last = r->ready = 0;
	r->st = SCAN_MORE;
}

static void
feed(void *arg, const char *p, size_t n)
{
	struct rec *r = arg;
	size_t used;

	while (r->st == SCAN_MORE) {
		r->st = scan_feed(&r->scan, p, n, &used);
		ck_assert_msg(used <= n, "used %zu of %zu", used, n);
		if (r->st == SCAN_MORE && used < n)
			ck_abort_msg("stopped for nothing");
		p += used;
		n -= used;
		r->ready = r->scan.off - scan_held(&r->scan);
		if (r->st != SCAN_FAULT || !r->tolerate || r->scan.tolerant)
			return;
		putf(r, "!@%llu ", (unsigned long long)r->scan.off);
		scan_tolerate(&r->scan);
		r->st = SCAN_MORE;
	}
}

static void
finish(void *arg, const char *how)
{
	static const char *const names[] = { "MORE", "LF", "DONE", "FAULT" };
	struct rec *r = arg;

	putf(r, "%s@%llu%s", names[r->st], (unsigned long long)r->scan.off,
	    r->scan.too_deep ? " deep" : "");
	if (r->want != NULL) {
		if (r->len != strlen(r->want) ||
		    memcmp(r->trace, r->want, r->len) != 0)
			ck_abort_msg("%s, %s:\n got  %.*s\n want %s",
			    scan_kernel(), how, (int)r->len, r->trace,
			    r->want);
	} else if (r->first == NULL) {
		r->first = malloc(r->len + 1);
		if (r->first == NULL)
			ck_abort_msg("no memory");
		memcpy(r->first, r->trace, r->len);
		r->first_len = r->len;
	} else if (r->len != r->first_len ||
	    memcmp(r->trace, r->first, r->len) != 0) {
		ck_abort_msg("%s, %s:\n got  %.*s\n want %.*s", scan_kernel(),
		    how, (int)r->len, r->trace, (int)r->first_len, r->first);
	}
}

static struct rec *
rec_new(void)
{
	struct rec *r = calloc(1, sizeof(*r));

	if (r == NULL)
		ck_abort_msg("no memory");
	r->max_depth = 64;
	r->watch = UINT32_MAX;
	return r;
}

static void
rec_free(struct rec *r)
{
	free(r->trace);
	free(r->first);
	free(r);
}

/* One text, one run; then what it came to is in r. */
static void
scan_once(struct rec *r, const char *p, size_t n)
{
	start(r);
	feed(r, p, n);
}

/* The text is complete, and only white space behind it. */
static bool
accepted(struct rec *r, const char *p, size_t n)
{
	scan_once(r, p, n);
	if (r->st == SCAN_MORE)
		feed(r, " ", 1);
	if (r->st != SCAN_DONE || r->scan.too_deep)
		return false;
	for (size_t i = r->scan.off; i < n; i++)
		if (memchr(" \t\r\n", p[i], 4) == NULL)
			return false;
	return true;
}

/* What a reader sees who applies the edits; malloc()ed. */
static char *
edited(const struct rec *r, const char *p, size_t n, size_t *out)
{
	char *to = malloc(n * 4 + 8);
	uint64_t at = 0;

	*out = 0;
	if (to == NULL)
		ck_abort_msg("no memory");
	for (size_t i = 0; i <= r->edited; i++) {
		const struct edit *e = &r->edits[i];
		size_t upto = i < r->edited ? e->off : n;

		memcpy(to + *out, p + at, upto - at);
		*out += upto - at;
		if (i == r->edited)
			break;
		memcpy(to + *out, e->with, e->n);
		*out += e->n;
		at = e->off + e->len;
	}
	return to;
}

/* --- what is told ------------------------------------------------------- */

static const struct told {
	const char *in;
	const char *want;
	const char *how; /* s strict, l allow LF, t tolerate, 0-9 watch */
} told[] = {
	{ "{\"a\":1}", "{0@0 k1@1 K1@3=a n1@5 N1@6=1 }0@6 DONE@7", "" },
	{ "[]x", "[0@0 ]0@1 DONE@2", "" },
	{ " \t\r{} ", "{0@3 }0@4 DONE@5", "" },
	{ "\"\"", "s0@0 S0@1= DONE@2", "" },
	{ "\"a\\\"\\u0041\"", "s0@0 S0@10=a\\\"\\u0041 DONE@11", "" },
	{ "null,", "n0@0 N0@4=null DONE@4", "" },
	{ "-0.5e+3 ", "n0@0 N0@7=-0.5e+3 DONE@7", "" },
	{ "12\n", "n0@0 N0@2=12 DONE@2", "" },
	{ "12", "n0@0 MORE@2", "" },
	{ "01", "n0@0 N0@1=0 DONE@1", "" },
	{ "[01]", "[0@0 n1@1 N1@2=0 FAULT@2", "" },
	{ "[1 , true,{}]", "[0@0 n1@1 N1@2=1 n1@5 N1@9=true {1@10 }1@11 "
	    "]0@12 DONE@13", "" },
	{ "{\"a\" : [ ] , \"b\":\"c\"}", "{0@0 k1@1 K1@3=a [1@7 ]1@9 "
	    "k1@13 K1@15=b s1@17 S1@19=c }0@20 DONE@21", "" },
	{ "{\"a\":[1,{\"b\":2}],\"c\":[]}", "{0@0 k1@1 K1@3=a [1@5 ]1@15 "
	    "k1@17 K1@19=c [1@21 ]1@22 }0@23 DONE@24", "1" },
	{ "{\"a\":\"b\"}", "{0@0 }0@8 DONE@9", "0" },
	/* LF */
	{ "\n{}", "LF@0", "" },
	{ "{\n}", "{0@0 LF@1", "" },
	{ "{\"a\n", "{0@0 k1@1 LF@3", "" },
	{ "{\"a\\\n", "{0@0 k1@1 LF@4", "" },
	{ "{\"a\":tr\n", "{0@0 k1@1 K1@3=a n1@5 LF@7", "" },
	{ "[1\n", "[0@0 n1@1 N1@2=1 LF@2", "" },
	{ "[1.\n", "[0@0 n1@1 LF@3", "" },
	{ "\"\xe2\x82\n", "s0@0 e@1+2 LF@3", "" },
	{ "\"\xe2\x82\n", "s0@0 LF@3", "s" },
	{ "\"\xe2\x82\n", "s0@0 e@1+2 FAULT@3", "l" },
	{ "\n[\n1\n,\n2\n]", "[0@1 n1@3 N1@4=1 n1@7 N1@8=2 ]0@9 DONE@10",
	    "l" },
	{ "{\n\"a\"\n:\n1}", "{0@0 k1@2 K1@4=a n1@8 N1@9=1 }0@9 DONE@10",
	    "l" },
	{ "\"a\n\"", "s0@0 FAULT@2", "l" },
	{ "[1\x0b", "[0@0 n1@1 N1@2=1 FAULT@2", "l" },
	/* edits */
	{ "[NaN]", "[0@0 n1@1 e@1+3 N1@4=NaN ]0@4 DONE@5", "" },
	{ "[-Infinity,Infinity]", "[0@0 n1@1 e@1+9 N1@10=-Infinity n1@11 "
	    "e@11+8 N1@19=Infinity ]0@19 DONE@20", "" },
	{ "NaN", "n0@0 e@0+3 N0@3=NaN DONE@3", "" },
	{ "[NaN]", "[0@0 FAULT@1", "s" },
	{ "[Infinity]", "[0@0 FAULT@1", "s" },
	{ "[-Infinity]", "[0@0 n1@1 FAULT@2", "s" },
	{ "[-Infinite]", "[0@0 n1@1 FAULT@9", "" },
	{ "[+Infinity]", "[0@0 FAULT@1", "" },
	{ "[nan]", "[0@0 n1@1 FAULT@2", "" },
	{ "{NaN:1}", "{0@0 FAULT@1", "" },
	{ "\"a\xff\"", "s0@0 e@2+1 S0@3=a\xff DONE@4", "" },
	{ "\"\xf0\x9f\x98\"", "s0@0 e@1+3 S0@4=\xf0\x9f\x98 DONE@5", "" },
	{ "\"\xf0\x9f\x98\"", "s0@0 FAULT@4", "s" },
	{ "\"\xe2\x82\\n\"", "s0@0 e@1+2 S0@5=\xe2\x82\\n DONE@6", "" },
	{ "\"\xed\xa0\x80\"", "s0@0 e@1+1 e@2+1 e@3+1 S0@4=\xed\xa0\x80 "
	    "DONE@5", "" },
	{ "[\xff]", "[0@0 FAULT@1", "" },
	{ "\xef\xbb\xbf[]", "FAULT@0", "" },
	/* edits below the watched depth, too */
	{ "[[\"\xff\",NaN]]", "[0@0 e@3+1 e@6+3 ]0@10 DONE@11", "0" },
	/* faults, tolerated */
	{ "{\"a\":x,\"id\":7}", "{0@0 k1@1 K1@3=a !@5 n1@5 N1@6=x k1@7 "
	    "K1@10=id n1@12 N1@13=7 }0@13 DONE@14", "t" },
	{ "{\"a\":\"\x01\\\"\\x\",\"id\":7}", "{0@0 k1@1 K1@3=a s1@5 !@6 "
	    "S1@11=\x01\\\"\\x k1@13 K1@16=id n1@18 N1@19=7 }0@19 DONE@20",
	    "t" },
	{ "{\"a\":\"\\x\",\"b\":1}", "{0@0 k1@1 K1@3=a s1@5 !@7 S1@8=\\x "
	    "k1@10 K1@12=b n1@14 N1@15=1 }0@15 DONE@16", "t" },
	{ "{\"a\":\"\\u1\",\"b\":1}", "{0@0 k1@1 K1@3=a s1@5 !@9 "
	    "S1@9=\\u1 k1@11 K1@13=b n1@15 N1@16=1 }0@16 DONE@17", "t" },
	{ "{\"a\":1 2,\"b\":3}", "{0@0 k1@1 K1@3=a n1@5 N1@6=1 !@7 k1@9 "
	    "K1@11=b n1@13 N1@14=3 }0@14 DONE@15", "t" },
	{ "{\"a\" \"b\",\"c\":3}", "{0@0 k1@1 K1@3=a !@5 k1@9 K1@11=c "
	    "n1@13 N1@14=3 }0@14 DONE@15", "t" },
	{ "{a:1,\"b\":3}", "{0@0 !@1 n1@3 N1@4=1 k1@5 K1@7=b n1@9 "
	    "N1@10=3 }0@10 DONE@11", "t" },
	{ "{,\"b\":\"c\"}", "{0@0 !@1 k1@2 K1@4=b s1@6 S1@8=c }0@9 "
	    "DONE@10", "t" },
	{ "{\"a\":01,\"b\":3}", "{0@0 k1@1 K1@3=a n1@5 N1@6=0 !@6 k1@8 "
	    "K1@10=b n1@12 N1@13=3 }0@13 DONE@14", "t" },
	{ "{\"a\":1.x,\"b\":3}", "{0@0 k1@1 K1@3=a n1@5 !@7 N1@8=1.x k1@9 "
	    "K1@11=b n1@13 N1@14=3 }0@14 DONE@15", "t" },
	{ "{\"a\":trux,\"b\":3}", "{0@0 k1@1 K1@3=a n1@5 !@8 N1@9=trux "
	    "k1@10 K1@12=b n1@14 N1@15=3 }0@15 DONE@16", "t" },
	{ "{\"a\":[1,2},\"id\":7}", "{0@0 k1@1 K1@3=a [1@5 n2@6 N2@7=1 "
	    "n2@8 N2@9=2 !@9 ]1@9 k1@11 K1@14=id n1@16 N1@17=7 }0@17 "
	    "DONE@18", "t" },
	{ "{\"a\":{\"x\":[}]},\"id\":7}", "{0@0 k1@1 K1@3=a {1@5 !@11 "
	    "}1@12 }0@13 DONE@14", "1t" },
	{ "{\"a\":'x',\"b\":{\"c\":[]},\"d\":-1}", "{0@0 k1@1 K1@3=a !@5 "
	    "n1@5 N1@8='x' k1@9 K1@11=b {1@13 }1@20 k1@22 K1@24=d n1@26 "
	    "N1@28=-1 }0@28 DONE@29", "1t" },
	{ "x]{\"a\":\xff\xff}", "!@0 n0@0 N0@1=x {0@2 k1@3 K1@5=a n1@7 "
	    "N1@9=\xff\xff }0@9 DONE@10", "t" },
	{ "{\"a\":\"\xff\",\"b\":NaN}", "{0@0 k1@1 K1@3=a s1@5 !@6 "
	    "S1@7=\xff k1@9 K1@11=b n1@13 N1@16=NaN }0@16 DONE@17", "st" },
	{ "{\"a\":x,\"b\":\"\xff\"}", "{0@0 k1@1 K1@3=a !@5 n1@5 N1@6=x "
	    "k1@7 K1@9=b s1@11 S1@13=\xff }0@14 DONE@15", "t" },
	{ "{x\n}", "{0@0 !@1 LF@2", "t" },
	{ "{x\"\n}", "{0@0 !@1 LF@3", "t" },
	{ "{x\"\\\n}", "{0@0 !@1 LF@4", "t" },
	{ "{x\n:\"\n\"}", "{0@0 !@1 s1@4 S1@6=\n }0@7 DONE@8", "lt" },
};

static void
set_how(struct rec *r, const char *how)
{
	for (; *how != '\0'; how++) {
		if (*how == 's')
			r->strict = true;
		else if (*how == 'l')
			r->lf = true;
		else if (*how == 't')
			r->tolerate = true;
		else
			r->watch = (uint32_t)(*how - '0');
	}
}

START_TEST(tells)
{
	const struct told *t = &told[_i % (int)(sizeof(told) /
	    sizeof(told[0]))];
	const char *kernel = kernels[_i / (int)(sizeof(told) /
	    sizeof(told[0]))];
	struct rec *r = rec_new();
	struct kit_reader reader = { start, feed, finish, r };

	if (scan_set_kernel(kernel)) {
		set_how(r, t->how);
		r->want = t->want;
		kit_every_split(&reader, t->in, strlen(t->in));
	}
	rec_free(r);
}
END_TEST

/* --- tokens and depth at their limits ----------------------------------- */

START_TEST(clips_tokens)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33,
		63, 64, 65, 1023, 1024, 1025, 2500 };
	size_t n = sizes[_i];
	struct rec *r = rec_new();
	struct kit_reader reader = { start, feed, finish, r };
	char *in = malloc(2 * n + 16);
	char *want = malloc(2 * n + 200);
	char *token = malloc(n + 1);
	int kept = n > SCAN_TOKEN_MAX ? SCAN_TOKEN_MAX : (int)n;
	const char *cut = n > SCAN_TOKEN_MAX ? "~" : "";

	memset(token, '7', n);
	token[n] = '\0';
	sprintf(in, "{\"%s\":1%s}", token, token);
	sprintf(want, "{0@0 k1@1 K1@%zu=%.*s%s n1@%zu N1@%zu=1%.*s%s }0@%zu "
	    "DONE@%zu", n + 2, kept, token, cut, n + 4, 2 * n + 5,
	    n >= SCAN_TOKEN_MAX ? SCAN_TOKEN_MAX - 1 : (int)n, token,
	    n >= SCAN_TOKEN_MAX ? "~" : "", 2 * n + 5, 2 * n + 6);
	r->want = want;
	kit_every_split(&reader, in, strlen(in));
	free(token);
	free(want);
	free(in);
	rec_free(r);
}
END_TEST

/* n arrays or objects around each other, an unlike bracket if one fits. */
static size_t
nested(char *in, size_t n, bool object)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		at += (size_t)sprintf(in + at, object ? "{\"a\":" : "[");
	if (n > 0 && object)
		at += (size_t)sprintf(in + at, "0");
	for (size_t i = 0; i < n; i++)
		in[at++] = object ? '}' : ']';
	return at;
}

START_TEST(limits_depth)
{
	static const uint32_t limits[] = { 0, 1, 2, 7, 8, 9, 64, 512 };
	uint32_t max = limits[_i];
	struct rec *r = rec_new();
	struct kit_reader reader = { start, feed, finish, r };
	char *in = malloc(16 * 1024);

	r->watch = 0;
	r->max_depth = max;
	for (uint32_t n = max > 2 ? max - 2 : 1; n <= max + 3; n++) {
		for (int object = 0; object < 2; object++) {
			size_t len = nested(in, n, object != 0);

			start(r);
			feed(r, in, len);
			ck_assert_int_eq(r->st, SCAN_DONE);
			ck_assert_uint_eq(r->scan.off, len);
			ck_assert_uint_eq(r->scan.too_deep, n > max);
			ck_assert_uint_eq(r->scan.depth, 0);
			free(r->first);
			r->first = NULL;
			kit_every_split(&reader, in, len);
		}
	}
	free(in);
	rec_free(r);
}
END_TEST

static const struct told deep[] = {
	{ "[[[1}],\"]\\\"]\xff\",2],3]", "[0@0 [1@1 ]1@5 s1@7 e@12+1 "
	    "S1@13=]\\\"]\xff n1@15 N1@16=2 ]0@16 DONE@17 deep", "" },
	{ "[[{:,]],3]", "[0@0 [1@1 ]1@6 n1@8 N1@9=3 ]0@9 DONE@10 deep", "" },
	{ "[[{]3", "[0@0 [1@1 FAULT@4 deep", "" },
	{ "[[{\x80", "[0@0 [1@1 FAULT@3 deep", "" },
	{ "[[{\x01", "[0@0 [1@1 FAULT@3 deep", "" },
	{ "[[{\n", "[0@0 [1@1 LF@3 deep", "" },
	{ "[[{\n}]]", "[0@0 [1@1 ]1@5 ]0@6 DONE@7 deep", "l" },
	{ "[[{\"\x01\",\"]\"}],2]", "[0@0 [1@1 !@4 ]1@11 n1@13 N1@14=2 "
	    "]0@14 DONE@15 deep", "t" },
	{ "[x[[[1]]],2]", "[0@0 !@1 n1@1 N1@2=x [1@2 ]1@8 n1@10 N1@11=2 "
	    "]0@11 DONE@12 deep", "t" },
};

START_TEST(goes_on_below)
{
	struct rec *r = rec_new();
	struct kit_reader reader = { start, feed, finish, r };

	r->max_depth = 2;
	r->want = deep[_i].want;
	set_how(r, deep[_i].how);
	kit_every_split(&reader, deep[_i].in, strlen(deep[_i].in));
	rec_free(r);
}
END_TEST

/* A million brackets, in memory that does not know of them. */
START_TEST(does_not_recurse)
{
	size_t n = 1000000;
	struct rec *r = rec_new();
	char *in = malloc(2 * n);

	memset(in, '[', n);
	memset(in + n, ']', n);
	r->quiet = true;
	scan_once(r, in, 2 * n);
	ck_assert_int_eq(r->st, SCAN_DONE);
	ck_assert(r->scan.too_deep);
	scan_once(r, in, 2 * n - 1);
	ck_assert_int_eq(r->st, SCAN_MORE);
	ck_assert_uint_eq(r->scan.depth, 1);
	free(in);
	rec_free(r);
}
END_TEST

/* --- calls out of the ordinary ------------------------------------------ */

START_TEST(stays_where_it_is)
{
	static const struct {
		const char *in;
		enum scan_status st;
	} cases[] = { { "[]", SCAN_DONE }, { "]", SCAN_FAULT },
		{ "[\n", SCAN_LF } };
	struct rec *r = rec_new();
	size_t used = 7;

	scan_once(r, cases[_i].in, strlen(cases[_i].in));
	ck_assert_int_eq(r->st, cases[_i].st);
	uint64_t off = r->scan.off;

	ck_assert_int_eq(scan_feed(&r->scan, "\n", 1, &used), cases[_i].st);
	ck_assert_uint_eq(used, 0);
	ck_assert_uint_eq(r->scan.off, off);
	start(r);
	ck_assert_int_eq(scan_feed(&r->scan, NULL, 0, &used), SCAN_MORE);
	ck_assert_uint_eq(used, 0);
	rec_free(r);
}
END_TEST

START_TEST(goes_on_after_lf)
{
	struct rec *r = rec_new();
	size_t used;

	scan_once(r, "[1\n,2]", 6);
	ck_assert_int_eq(r->st, SCAN_LF);
	scan_allow_lf(&r->scan);
	ck_assert_int_eq(scan_feed(&r->scan, "\n,2]", 4, &used), SCAN_DONE);
	ck_assert_uint_eq(used, 4);
	rec_free(r);
}
END_TEST

START_TEST(holds_back)
{
	static const struct {
		const char *in;
		unsigned held;
	} cases[] = { { "[", 0 }, { "[-", 1 }, { "[-I", 2 },
		{ "[-Infinit", 8 }, { "[-1", 0 }, { "[N", 1 }, { "[Na", 2 },
		{ "[Inf", 3 }, { "[tru", 0 }, { "[\"\xe2", 1 },
		{ "[\"\xe2\x82", 2 }, { "[\"\xe2\x82\xac", 0 },
		{ "[\"\xf0\x9f\x98", 3 }, { "[\"\xff", 0 }, { "[\"\\u00", 0 } };
	struct rec *r = rec_new();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r->strict = false;
		scan_once(r, cases[i].in, strlen(cases[i].in));
		ck_assert_msg(scan_held(&r->scan) == cases[i].held,
		    "%s: %u", cases[i].in, scan_held(&r->scan));
		r->strict = true;
		scan_once(r, cases[i].in, strlen(cases[i].in));
		ck_assert_uint_eq(scan_held(&r->scan), 0);
	}
	rec_free(r);
}
END_TEST

START_TEST(names_kernels)
{
	int known = 0;

	for (size_t i = 0; i < KERNELS; i++) {
		if (!scan_set_kernel(kernels[i]))
			continue;
		known++;
		ck_assert_str_eq(scan_kernel(), kernels[i]);
	}
	ck_assert_int_ge(known, 2);
	ck_assert(!scan_set_kernel("abacus"));
	for (int e = SCAN_OBJECT; e <= SCAN_SCALAR_END; e++)
		ck_assert_str_ne(scan_event_name((enum scan_event)e), "?");
}
END_TEST

/* --- kernels: the same as the scalar one, which knows no blocks --------- */

static void
same_in_all_kernels(struct rec *r, const char *in, size_t n)
{
	char *p = kit_guard(in, n);

	free(r->first);
	r->first = NULL;
	for (size_t i = 0; i < KERNELS; i++) {
		if (!scan_set_kernel(kernels[i]))
			continue;
		scan_once(r, p, n);
		finish(r, "whole");
	}
	kit_unguard(p, n);
}

static const char *const bits[] = { "\"", "\\\"", "\\\\", "\\n", "\\/",
	"\\x", "\\", "\\u", "\\u12aF", "\\u12g4", "\\ud800", "\\u123\"",
	"\\u12\\n", "\x1f", "\x01", " ", "\x7f", "\n", "\xdf\xbf", "\xc1\xbf",
	"\xe6\x97\xa5", "\xe0\x9f\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
	"\xed\xa0\x80", "\xf0\x9f\x98\x80", "\xf0\x8f\xbf\xbf",
	"\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5", "\x80", "\xe6\x97",
	"\xe6", "\xf0\x9f\x98", "\xc3", "\xff\xfe", "\\\\\\\\\\\\\\\"",
	"\\\\\\\\\\\"" };

#define BITS (sizeof(bits) / sizeof(bits[0]))

/* One odd thing, at every place in and around the first two blocks. */
START_TEST(kernels_agree_on_each)
{
	struct rec *r = rec_new();
	const char *bit = bits[_i % (int)BITS];
	char in[400];

	r->strict = _i >= (int)BITS;
	for (size_t at = 0; at < 140; at++) {
		memset(in, 'a', sizeof(in));
		in[0] = '"';
		memcpy(in + 1 + at, bit, strlen(bit));
		in[300] = '"';
		same_in_all_kernels(r, in, 301);
		in[at + 1 + strlen(bit)] = '"';
		same_in_all_kernels(r, in, at + 2 + strlen(bit));
	}
	rec_free(r);
}
END_TEST

/* And every two of them in a row, around the end of the first block. */
START_TEST(kernels_agree_on_pairs)
{
	struct rec *r = rec_new();
	const char *one = bits[_i % (int)BITS];
	char in[200];

	r->strict = _i >= (int)BITS;
	for (size_t k = 0; k < BITS; k++)
		for (size_t at = 84; at < 104; at++) {
			memset(in, 'a', sizeof(in));
			in[0] = '"';
			memcpy(in + at, one, strlen(one));
			memcpy(in + at + strlen(one), bits[k],
			    strlen(bits[k]));
			in[199] = '"';
			same_in_all_kernels(r, in, 200);
		}
	rec_free(r);
}
END_TEST

static size_t
random_string(uint64_t *seed, char *in, size_t room)
{
	uint32_t rare = kit_below(seed, 4); /* how often something odd */
	size_t n = 1;

	in[0] = '"';
	while (n + 16 < room && kit_below(seed, 150) != 0) {
		const char *bit = bits[kit_below(seed, BITS)];

		if (kit_below(seed, 8) < rare && (*bit != '"' ||
		    kit_below(seed, 8) == 0)) {
			memcpy(in + n, bit, strlen(bit));
			n += strlen(bit);
		} else {
			in[n++] = "abc0u/}f"[kit_below(seed, 8)];
		}
	}
	in[n++] = '"';
	return n;
}

START_TEST(kernels_agree_on_mixtures)
{
	struct rec *r = rec_new();
	uint64_t seed = 0x5eed0000u + (unsigned)_i;
	char in[600];

	r->strict = _i % 2 != 0;
	for (int i = 0; i < 1500; i++) {
		size_t n = random_string(&seed, in, sizeof(in));

		same_in_all_kernels(r, in, n);
	}
	rec_free(r);
}
END_TEST

START_TEST(mixtures_cut)
{
	uint64_t seed = 0xcafe0000u + (unsigned)_i;
	char in[160];

	for (int i = 0; i < 40; i++) {
		size_t n = random_string(&seed, in, sizeof(in));
		struct rec *r = rec_new();
		struct kit_reader reader = { start, feed, finish, r };

		r->tolerate = i % 2 != 0;
		r->strict = i % 4 == 0;
		kit_every_split(&reader, in, n);
		rec_free(r);
	}
}
END_TEST

/* --- UTF-8, defined by code points -------------------------------------- */

static bool
is_sequence(const uint8_t *p, size_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c;

	if (n == 1)
		return p[0] < 0x80;
	if (n > 4 || (uint32_t)p[0] >> (7 - n) != (2u << n) - 2)
		return false;
	c = p[0] & ((1u << (7 - n)) - 1);
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return false;
		c = c << 6 | (p[i] & 0x3f);
	}
	return c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

/* Could more bytes make it one? */
static bool
is_begun(const uint8_t *p, size_t n)
{
	uint8_t more[4];

	if (is_sequence(p, n))
		return true;
	if (n >= 4)
		return false;
	memcpy(more, p, n);
	for (unsigned c = 0x80; c <= 0xbf; c++) {
		more[n] = (uint8_t)c;
		if (is_begun(more, n + 1))
			return true;
	}
	return false;
}

static size_t
repair(const uint8_t *p, size_t n, char *to)
{
	size_t len = 0;

	for (size_t at = 0, part; at < n; at += part) {
		part = 1;
		while (part < 4 && at + part < n && !is_sequence(p + at,
		    part) && is_begun(p + at, part + 1))
			part++;
		if (is_sequence(p + at, part)) {
			memcpy(to + len, p + at, part);
			len += part;
		} else {
			memcpy(to + len, "\xef\xbf\xbd", 3);
			len += 3;
		}
	}
	return len;
}

static void
check_repair(struct rec *r, const uint8_t *in, size_t n)
{
	char want[600];
	size_t len = repair(in, n, want);

	for (size_t k = 0; k < KERNELS; k++) {
		size_t got;

		if (!scan_set_kernel(kernels[k]))
			continue;
		scan_once(r, (const char *)in, n);
		char *out = edited(r, (const char *)in, n, &got);

		if (r->st != SCAN_DONE || got != len ||
		    memcmp(out, want, len) != 0)
			ck_abort_msg("%s: %.*s", kernels[k], (int)n,
			    (const char *)in);
		free(out);
		r->strict = true;
		scan_once(r, (const char *)in, n);
		if ((r->st == SCAN_DONE) != (len == n &&
		    memcmp(in, want, n) == 0))
			ck_abort_msg("strict, %s: %.*s", kernels[k], (int)n,
			    (const char *)in);
		r->strict = false;
	}
}

/* Every first byte with every second; a third from the classes. */
START_TEST(repairs_each)
{
	static const uint8_t third[] = { 'a', 0x80, 0x8f, 0x90, 0x9f, 0xa0,
		0xbf, 0xc2, 0xe1, 0xff };
	struct rec *r = rec_new();
	uint8_t in[80];

	r->quiet = true;
	for (unsigned b = 0x20; b < 256; b++) {
		for (size_t c = 0; c < sizeof(third); c++) {
			unsigned pad = (b + (unsigned)c) % 64;

			if (b == '"' || b == '\\')
				continue;
			memset(in, 'x', sizeof(in));
			in[0] = '"';
			in[1 + pad] = (uint8_t)(0xc0 + _i);
			in[2 + pad] = (uint8_t)b;
			in[3 + pad] = third[c];
			in[4 + pad] = 0x80;
			in[sizeof(in) - 1] = '"';
			check_repair(r, in, sizeof(in));
		}
	}
	rec_free(r);
}
END_TEST

START_TEST(repairs_mixtures)
{
	static const uint8_t some[] = { 'a', 'b', 0x80, 0x8f, 0x90, 0x9f, 0xa0,
		0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1,
		0xf4, 0xf5, 0xff };
	struct rec *r = rec_new();
	uint64_t seed = 0xbeef0000u + (unsigned)_i;
	uint8_t in[200];

	r->quiet = true;
	for (int i = 0; i < 300; i++) {
		size_t n = 2 + kit_below(&seed, sizeof(in) - 2);

		for (size_t k = 1; k < n; k++)
			in[k] = some[kit_below(&seed, sizeof(some))];
		in[0] = in[n - 1] = '"';
		check_repair(r, in, n);
	}
	rec_free(r);
}
END_TEST

/* --- JSONTestSuite ------------------------------------------------------ */

static int
is_case(const struct dirent *d)
{
	return strstr(d->d_name, ".json") != NULL;
}

static void
suite_file(const char *dir, const char *name)
{
	struct rec *r = rec_new();
	struct kit_reader reader = { start, feed, finish, r };
	char path[1024];
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	char *in = kit_read_file(path, &n);

	r->max_depth = 1024;
	r->watch = 1;
	r->strict = true;
	r->lf = memchr(in, '\n', n) != NULL;
	bool yes = accepted(r, in, n);

	if ((name[0] == 'y' && !yes) || (name[0] == 'n' && yes))
		ck_abort_msg("%s %s", name, yes ? "accepted" : "refused");
	r->strict = false;
	yes = accepted(r, in, n);
	if (name[0] == 'y' && (!yes || r->edited > 0))
		ck_abort_msg("%s edited", name);
	r->tolerate = true;
	if (n < 2000)
		kit_every_split(&reader, in, n);
	free(in);
	rec_free(r);
}

START_TEST(passes_the_suite)
{
	char *dir = kit_data_path("JSONTestSuite/test_parsing");
	struct dirent **list;
	int n = scandir(dir, &list, is_case, alphasort);

	ck_assert_msg(n > 300, "%d files in %s", n, dir);
	for (int i = 0; i < n; i++) {
		suite_file(dir, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	free(dir);
}
END_TEST

/* --- jansson ------------------------------------------------------------ */

static const char *const seeds[] = {
	"{\"jsonrpc\":\"2.0\",\"id\":17,\"method\":\"tools/call\",\"params\":"
	"{\"name\":\"x\",\"arguments\":{\"a\":[1,-2.5e+3,true,false,null]}}}",
	"[0,-0,0.1,1e5,1E-5,123456789,\"\",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
	"[ { } , [ ] , { \"a\" : \"b\" , \"c\" : [ [ ] , 1 ] } ]",
	"{\"t\":\"gr\xc3\xbc\xc3\x9f \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80 "
	"long enough for more than one block of sixty-four bytes\\u20ac\"}",
	"\"text\"", "-12.5", "true",
};

static size_t
mutate(uint64_t *seed, char *in)
{
	static const char alphabet[] = "{}[]\",:\\ \t0123-+.eEtrufalsn/b\x01"
	    "\xc3\xbc\xe6\x97\xa5\xf0\x80";
	const char *from = seeds[kit_below(seed, sizeof(seeds) /
	    sizeof(seeds[0]))];
	size_t n = strlen(from);

	memcpy(in, from, n);
	for (uint32_t k = kit_below(seed, 4); k > 0 && n > 1; k--) {
		size_t at = kit_below(seed, (uint32_t)n);
		char c = alphabet[kit_below(seed, sizeof(alphabet) - 1)];

		switch (kit_below(seed, 4)) {
		case 0:
			in[at] = c;
			break;
		case 1:
			memmove(in + at + 1, in + at, n++ - at);
			in[at] = c;
			break;
		case 2:
			memmove(in + at, in + at + 1, --n - at);
			break;
		default: /* a piece of itself */
			memmove(in + at + 1, in + at, n++ - at);
			in[at] = in[kit_below(seed, (uint32_t)n)];
			break;
		}
	}
	return n;
}

/* jansson refuses more than the grammar does: these are its own limits. */
static bool
beyond_jansson(const json_error_t *e)
{
	return json_error_code(e) == json_error_numeric_overflow ||
	    json_error_code(e) == json_error_null_byte_in_key ||
	    json_error_code(e) == json_error_null_character ||
	    strstr(e->text, "invalid Unicode") != NULL;
}

START_TEST(agrees_with_jansson)
{
	struct rec *r = rec_new();
	uint64_t seed = 0xd1ff0000u + (unsigned)_i;
	char in[512];
	int yes = 0;

	r->strict = r->quiet = true;
	for (int i = 0; i < 10000; i++) {
		size_t n = mutate(&seed, in);
		bool ours = accepted(r, in, n);
		json_error_t error;
		json_t *theirs = json_loadb(in, n, JSON_DECODE_ANY |
		    JSON_ALLOW_NUL, &error);

		if (ours != (theirs != NULL) && (!ours ||
		    !beyond_jansson(&error)))
			ck_abort_msg("%.*s\n%s: jansson: %s", (int)n, in,
			    ours ? "accepted" : "refused",
			    theirs != NULL ? "accepted" : error.text);
		yes += ours;
		json_decref(theirs);
	}
	ck_assert_int_gt(yes, 1000);
	ck_assert_int_lt(yes, 9000);
	rec_free(r);
}
END_TEST

/* What the edits leave is accepted as it is. */
START_TEST(edits_suffice)
{
	struct rec *r = rec_new();
	uint64_t seed = 0xed170000u + (unsigned)_i;
	char in[512];
	int repaired = 0;

	r->quiet = true;
	for (int i = 0; i < 10000; i++) {
		size_t n = mutate(&seed, in);

		r->strict = false;
		if (!accepted(r, in, n))
			continue;
		size_t len;
		char *out = edited(r, in, n, &len);

		repaired += r->edited > 0;
		r->strict = true;
		if (!accepted(r, out, len))
			ck_abort_msg("%.*s", (int)len, out);
		free(out);
	}
	ck_assert_int_gt(repaired, 100);
	rec_free(r);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("scan");
	TCase *c = tcase_create("scan");

	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, tells, 0,
	    (int)(KERNELS * sizeof(told) / sizeof(told[0])));
	tcase_add_loop_test(c, clips_tokens, 0, 18);
	tcase_add_loop_test(c, limits_depth, 0, 8);
	tcase_add_loop_test(c, goes_on_below, 0,
	    (int)(sizeof(deep) / sizeof(deep[0])));
	tcase_add_test(c, does_not_recurse);
	tcase_add_loop_test(c, stays_where_it_is, 0, 3);
	tcase_add_test(c, goes_on_after_lf);
	tcase_add_test(c, holds_back);
	tcase_add_test(c, names_kernels);
	tcase_add_loop_test(c, kernels_agree_on_each, 0, 2 * (int)BITS);
	tcase_add_loop_test(c, kernels_agree_on_pairs, 0, 2 * (int)BITS);
	tcase_add_loop_test(c, kernels_agree_on_mixtures, 0, 4);
	tcase_add_loop_test(c, mixtures_cut, 0, 4);
	tcase_add_loop_test(c, repairs_each, 0, 0x40);
	tcase_add_loop_test(c, repairs_mixtures, 0, 4);
	tcase_add_test(c, passes_the_suite);
	tcase_add_loop_test(c, agrees_with_jansson, 0, 4);
	tcase_add_loop_test(c, edits_suffice, 0, 2);
	suite_add_tcase(s, c);
	return s;
}

int
main(void)
{
	SRunner *runner = srunner_create(suite());

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed > 0;
}
