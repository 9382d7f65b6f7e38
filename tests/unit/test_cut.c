/* SPDX-License-Identifier: MIT */
/*
 * The cut: for results of every kind, every limit from 1 to 4096 and every
 * way the bytes may come, what comes out is one line of valid JSON within the
 * limit, with the id as it was spelled, a notice, and nothing that was not in
 * the original. jansson is the judge of that.
 */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "rig.h"
#include "spillway/cut.h"

#define LIMITS 4096
#define ENOUGH 400 /* from here on there is room for the notice */

#define HEAD "{\"jsonrpc\":\"2.0\",\"id\":"
#define TEXT(t) "{\"type\":\"text\",\"text\":\"" t "\"}"
#define X8(t) t t t t t t t t
#define X64(t) X8(X8(t))

struct sample {
	const char *name;
	const char *id; /* as spelled */
	const char *frame;
};

static const struct sample samples[] = {
	{ "escapes", "7", HEAD "7,\"result\":{\"content\":["
	    TEXT(X64("\\\"\\\\\\/\\b\\f\\n\\r\\t\\u001f\\u0000")) "]}}" },
	{ "pairs", "\"a\\u0062\"", HEAD "\"a\\u0062\",\"result\":{\"content\":["
	    TEXT(X64("\\ud83d\\ude00\\u00e9x")) "]}}" },
	{ "utf8", "-0.0", HEAD "-0.0,\"result\":{\"content\":["
	    TEXT(X64("\xf0\x9f\x98\x80\xe6\xbc\xa2\xc3\xa9z")) "]}}" },
	{ "lines", "1e2", HEAD "1e2,\"result\":{\"content\":["
	    TEXT(X64("a line of text\\n")) "]}}" },
	{ "no line ends", "1", HEAD "1,\"result\":{\"content\":["
	    TEXT(X64("abcdefghijklmnopqrstuvwxyz0123456789")) "]}}" },
	{ "many small blocks", "2", HEAD "2,\"result\":{\"content\":["
	    X64(TEXT("fifty bytes of text, more or less, in every block") ",")
	    TEXT("") "],\"isError\":false}}" },
	{ "images", "3", HEAD "3,\"result\":{\"content\":["
	    "{\"type\":\"image\",\"data\":\"" X64("QUJD") "\",\"mimeType\":"
	    "\"image/png\"}," TEXT("between") ",{\"mimeType\":\"audio/wav\","
	    "\"type\":\"audio\",\"data\":\"" X64(X8("QUJD")) "\"}]}}" },
	{ "resources", "4", HEAD "4,\"result\":{\"content\":["
	    "{\"type\":\"resource_link\",\"uri\":\"file:///a\",\"name\":\"a\"},"
	    "{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///b\","
	    "\"text\":\"" X64("resource text\\n") "\"}},"
	    "{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///c\","
	    "\"blob\":\"" X64("QUJD") "\"}}]}}" },
	{ "unknown block", "5", HEAD "5,\"result\":{\"content\":["
	    "{\"type\":\"hologram\",\"rays\":[" X64("[1,2.5,true,null],") "0]}"
	    "," TEXT(X64("text behind it ")) "]}}" },
	{ "result first", "6", "{\"result\":{\"content\":["
	    TEXT(X64("the id stands behind\\n")) "],\"_meta\":{\"k\":[1]}},"
	    "\"id\":6,\"jsonrpc\":\"2.0\"}" },
	{ "structured", "8", HEAD "8,\"result\":{\"content\":["
	    TEXT(X8("short ")) "],\"structuredContent\":{\"rows\":["
	    X64("{\"n\":1,\"s\":\"abc\"},") "{}],\"total\":65}}}" },
	{ "both", "9", HEAD "9,\"result\":{\"resultType\":\"complete\","
	    "\"structuredContent\":{\"a\":[" X64("\"row\",") "1],\"b\":[" X64("2,")
	    "3]},\"content\":[" TEXT(X64("the same again ")) "]}}" },
	{ "empty", "10", HEAD "10,\"result\":{\"content\":[]}}" },
	{ "nothing", "11", HEAD "11,\"result\":{}}" },
	{ "spaces", "12", " { \"id\" : 12 , \"jsonrpc\" : \"2.0\" , \"result\" "
	    ": { \"content\" : [ " TEXT(X64("wide ")) " , " TEXT("x")
	    " ] } } " },
};

#define SAMPLES (sizeof samples / sizeof *samples)

static struct budget *budget;
static char context[160];

/* Useful bytes of one block (contract section 3). */
static size_t
useful(const json_t *block)
{
	const char *type = json_string_value(json_object_get(block, "type"));
	const json_t *r = json_object_get(block, "resource");

	if (type == NULL)
		type = "";
	if (strcmp(type, "text") == 0)
		return json_string_length(json_object_get(block, "text"));
	if (strcmp(type, "image") == 0 || strcmp(type, "audio") == 0)
		return json_string_length(json_object_get(block, "data"));
	if (strcmp(type, "resource") == 0)
		return json_string_length(json_object_get(r, "text")) +
		    json_string_length(json_object_get(r, "blob"));
	if (strcmp(type, "resource_link") == 0)
		return 0;
	return json_dumpb(block, NULL, 0, JSON_COMPACT);
}

static size_t
useful_content(const json_t *content)
{
	size_t sum = 0, i;
	json_t *block;

	json_array_foreach(content, i, block)
		sum += useful(block);
	return sum;
}

static size_t
useful_structured(const json_t *result)
{
	const json_t *s = json_object_get(result, "structuredContent");

	return s == NULL ? 0 : json_dumpb(s, NULL, 0, JSON_COMPACT);
}

static json_t *
load(const char *p, size_t n)
{
	json_error_t e;
	json_t *root = json_loadb(p, n, JSON_ALLOW_NUL, &e);

	if (root == NULL)
		ck_abort_msg("%s: no JSON, %s: %.*s", context, e.text, (int)n,
		    p);
	return root;
}

static int
keep(void *arg, const char *p, size_t n)
{
	bytes_add(arg, p, n);
	return 0;
}

/* One run of the cut. */
static enum cut_verdict
cut(const char *p, size_t n, size_t piece, const struct cut_request *rq,
    struct bytes *out)
{
	struct cut_bounds b = { .retain = rq->limit, .skeleton = 1u << 20,
		.max_depth = 512 };
	struct cut *c = cut_new(budget, &b);
	enum cut_verdict v;

	ck_assert_ptr_nonnull(c);
	for (size_t at = 0; at < n; at += piece)
		cut_feed(c, p + at, n - at < piece ? n - at : piece);
	v = cut_judge(c, rq);
	out->n = 0;
	if (v == CUT_POSSIBLE && cut_write(c, keep, out) != 0)
		ck_abort_msg("%s: not written", context);
	cut_free(&c);
	return v;
}

/* What stands before the notice is a beginning of what there was. */
static void
check_kept(const json_t *before, const json_t *after)
{
	size_t n = json_array_size(after);

	for (size_t i = 0; i + 1 < n; i++) {
		const json_t *was = json_array_get(before, i);
		const json_t *is = json_array_get(after, i);
		const json_t *a = json_object_get(was, "text");
		const json_t *b = json_object_get(is, "text");

		if (json_equal(was, is) || json_object_get(was, "data") ||
		    json_object_get(was, "resource") ||
		    json_object_get(was, "rays"))
			continue;
		if (!json_is_string(a) || !json_is_string(b) ||
		    json_string_length(b) > json_string_length(a) ||
		    memcmp(json_string_value(a), json_string_value(b),
		    json_string_length(b)) != 0)
			ck_abort_msg("%s: block %zu is not a beginning of "
			    "what it was", context, i);
	}
}

static void
check_notice(const json_t *result, const json_t *content, uint64_t limit)
{
	const json_t *last = json_array_get(content,
	    json_array_size(content) - 1);
	const char *text = json_string_value(json_object_get(last, "text"));
	const json_t *mark = json_object_get(json_object_get(result, "_meta"),
	    "spillway/cut");

	if (text == NULL || strstr(text, "byte") == NULL)
		ck_abort_msg("%s: no notice", context);
	if ((uint64_t)json_integer_value(json_object_get(mark, "limit")) !=
	    limit)
		ck_abort_msg("%s: no record", context);
}

static void
check_structured(const json_t *before, const json_t *after)
{
	json_t *was = json_object_get(before, "structuredContent");
	json_t *is = json_object_get(after, "structuredContent");

	if (was == NULL && is != NULL)
		ck_abort_msg("%s: structuredContent from nowhere", context);
	if (was == NULL || json_equal(was, is))
		return;
	if (is == NULL ? !json_is_true(json_object_get(after, "isError")) :
	    !json_is_true(json_object_get(is, "truncated")))
		ck_abort_msg("%s: structuredContent went without a word",
		    context);
}

static void
check_line(const struct sample *s, const struct bytes *out)
{
	char id[64];

	if (out->n == 0 || memchr(out->p, '\n', out->n) != out->p + out->n - 1)
		ck_abort_msg("%s: not one line", context);
	snprintf(id, sizeof id, "\"id\":%s", s->id);
	if (strstr(out->p, id) == NULL &&
	    (snprintf(id, sizeof id, "\"id\" : %s", s->id),
	    strstr(out->p, id) == NULL))
		ck_abort_msg("%s: another id in %.80s", context, out->p);
}

static void
check_cut(const struct sample *s, const json_t *root, const struct bytes *out,
    uint64_t limit)
{
	const json_t *before = json_object_get(root, "result"), *after;
	const json_t *content;
	json_t *cut_root = load(out->p, out->n);

	after = json_object_get(cut_root, "result");
	content = json_object_get(after, "content");
	check_line(s, out);
	if (useful_content(content) > limit ||
	    useful_structured(after) > limit)
		ck_abort_msg("%s: %zu and %zu useful bytes", context,
		    useful_content(content), useful_structured(after));
	check_kept(json_object_get(before, "content"), content);
	check_notice(after, content, limit);
	check_structured(before, after);
	json_decref(cut_root);
}

static void
check_verdict(const json_t *root, enum cut_verdict v, uint64_t limit)
{
	const json_t *r = json_object_get(root, "result");
	bool fits = useful_content(json_object_get(r, "content")) <= limit &&
	    useful_structured(r) <= limit;

	if (fits != (v == CUT_FITS))
		ck_abort_msg("%s: %s", context, cut_verdict_name(v));
	if (v == CUT_FORBIDDEN || (v == CUT_IMPOSSIBLE && limit >= ENOUGH))
		ck_abort_msg("%s: %s", context, cut_verdict_name(v));
}

static void
setup(void)
{
	budget = budget_new(64u << 20, 0, NULL);
	ck_assert_ptr_nonnull(budget);
}

static void
teardown(void)
{
	ck_assert_uint_eq(budget_heap(budget), 0);
	budget_free(&budget);
}

START_TEST(every_limit)
{
	const struct sample *s = &samples[_i / 2];
	enum tool_schema schema = _i % 2 ? TOOL_PLAIN : TOOL_HAS_SCHEMA;
	size_t n = strlen(s->frame);
	json_t *root = load(s->frame, n);
	struct bytes out = { 0 }, again = { 0 };

	for (uint64_t limit = 1; limit <= LIMITS; limit++) {
		struct cut_request rq = { .limit = limit, .frame = 1u << 20,
			.schema = schema };
		enum cut_verdict v;

		snprintf(context, sizeof context, "%s, limit %d", s->name,
		    (int)limit);
		v = cut(s->frame, n, n, &rq, &out);
		check_verdict(root, v, limit);
		if (v == CUT_POSSIBLE)
			check_cut(s, root, &out, limit);
		if (cut(s->frame, n, 1 + limit % 61, &rq, &again) != v ||
		    out.n != again.n || (out.n > 0 &&
		    memcmp(out.p, again.p, out.n) != 0))
			ck_abort_msg("%s: another outcome in pieces of %d",
			    context, (int)(1 + limit % 61));
	}
	bytes_free(&out);
	bytes_free(&again);
	json_decref(root);
}
END_TEST

/* As a reader of streams, for every split. */
struct run {
	const struct cut_request *rq;
	struct cut *c;
	enum cut_verdict first_verdict;
	struct bytes first;
	bool have_first;
};

static void
run_start(void *arg)
{
	struct run *r = arg;
	struct cut_bounds b = { .retain = r->rq->limit, .skeleton = 1u << 20,
		.max_depth = 512 };

	r->c = cut_new(budget, &b);
	ck_assert_ptr_nonnull(r->c);
}

static void
run_feed(void *arg, const char *p, size_t n)
{
	cut_feed(((struct run *)arg)->c, p, n);
}

static void
run_finish(void *arg, const char *how)
{
	struct run *r = arg;
	struct bytes out = { 0 };
	enum cut_verdict v = cut_judge(r->c, r->rq);

	if (v == CUT_POSSIBLE)
		ck_assert_int_eq(cut_write(r->c, keep, &out), 0);
	cut_free(&r->c);
	if (!r->have_first) {
		r->have_first = true;
		r->first_verdict = v;
		r->first = out;
		return;
	}
	if (v != r->first_verdict || out.n != r->first.n ||
	    (out.n > 0 && memcmp(out.p, r->first.p, out.n) != 0))
		ck_abort_msg("%s: another outcome %s", context, how);
	bytes_free(&out);
}

START_TEST(every_split)
{
	static const uint64_t limits[] = { 1, 100, 341, 500, 777, 1000, 2000 };
	const struct sample *s = &samples[_i];

	for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
		struct cut_request rq = { .limit = limits[k],
			.frame = 1u << 20, .schema = TOOL_PLAIN };
		struct run r = { .rq = &rq };
		struct kit_reader reader = { run_start, run_feed, run_finish,
			&r };

		snprintf(context, sizeof context, "%s, limit %d", s->name,
		    (int)limits[k]);
		kit_every_split(&reader, s->frame, strlen(s->frame));
		bytes_free(&r.first);
	}
}
END_TEST

/* The line limit counts all bytes, and is held for every value. */
START_TEST(every_frame_limit)
{
	const struct sample *s = &samples[_i];
	size_t n = strlen(s->frame);
	struct bytes out = { 0 };

	for (uint64_t frame = 1; frame < n; frame += 7) {
		struct cut_request rq = { .limit = frame, .frame = frame,
			.over = true, .schema = TOOL_PLAIN };

		snprintf(context, sizeof context, "%s, frame %d", s->name,
		    (int)frame);
		if (cut(s->frame, n, n, &rq, &out) != CUT_POSSIBLE)
			continue;
		if (out.n > frame)
			ck_abort_msg("%s: a line of %zu bytes", context,
			    out.n);
		json_decref(load(out.p, out.n));
		check_line(s, &out);
	}
	bytes_free(&out);
}
END_TEST

START_TEST(input_required_is_never_cut)
{
	static const char frame[] = HEAD "1,\"result\":{\"resultType\":"
	    "\"input_required\",\"content\":[" TEXT(X64("text")) "]}}";
	struct cut_request rq = { .limit = 100, .frame = 1u << 20 };
	struct bytes out = { 0 };

	ck_assert_int_eq(cut(frame, sizeof frame - 1, 10, &rq, &out),
	    CUT_FORBIDDEN);
	bytes_free(&out);
}
END_TEST

/* Whatever comes: no more than is allowed is kept, and what is written is
 * valid. The samples are mutated, and cut anywhere. */
START_TEST(any_bytes)
{
	uint64_t rnd = 0xc0ffee;
	struct bytes out = { 0 };

	for (int round = 0; round < 20000; round++) {
		const struct sample *s =
		    &samples[kit_below(&rnd, (uint32_t)SAMPLES)];
		size_t n = strlen(s->frame);
		char *copy = kit_guard(s->frame, n);
		struct cut_request rq = { .limit = 1 + kit_below(&rnd, 900),
			.frame = 1u << 16, .over = kit_below(&rnd, 2) == 0 };

		for (uint32_t k = kit_below(&rnd, 4); k > 0; k--)
			copy[kit_below(&rnd, (uint32_t)n)] =
			    "{}[]\",:\\ux0\x80\xff \n"[kit_below(&rnd, 16)];
		snprintf(context, sizeof context, "round %d, %s", round,
		    s->name);
		if (cut(copy, n, 1 + kit_below(&rnd, 900), &rq, &out) ==
		    CUT_POSSIBLE && out.n > rq.frame)
			ck_abort_msg("%s: over the frame limit", context);
		kit_unguard(copy, n);
	}
	bytes_free(&out);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cut");
	TCase *t = tcase_create("cut");
	SRunner *sr = srunner_create(suite);
	int failed;

	tcase_set_timeout(t, 0);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, every_limit, 0, 2 * (int)SAMPLES);
	tcase_add_loop_test(t, every_split, 0, (int)SAMPLES);
	tcase_add_loop_test(t, every_frame_limit, 0, (int)SAMPLES);
	tcase_add_test(t, input_required_is_never_cut);
	tcase_add_test(t, any_bytes);
	suite_add_tcase(suite, t);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
