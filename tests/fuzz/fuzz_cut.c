/* SPDX-License-Identifier: MIT */
/*
 * The cut: any bytes, in pieces of any size, any limit. What it writes is one
 * line within the bounds, and JSON if what came was JSON; the same in any
 * pieces; and nothing stays allocated.
 */
#include <jansson.h>
#include <string.h>

#include "fuzz.h"
#include "kit.h"
#include "rig.h"
#include "spillway/cut.h"

#define FRAME 65536

static int
keep(void *arg, const char *p, size_t n)
{
	bytes_add(arg, p, n);
	return 0;
}

static enum cut_verdict
run(struct budget *b, const char *p, size_t n, size_t piece,
    const struct cut_request *rq, struct bytes *out)
{
	struct cut_bounds bounds = { .retain = rq->limit, .skeleton = FRAME,
		.max_depth = 64 };
	struct cut *c = cut_new(b, &bounds);
	enum cut_verdict v;

	if (c == NULL)
		kit_fail("no memory");
	for (size_t at = 0; at < n; at += piece)
		cut_feed(c, p + at, n - at < piece ? n - at : piece);
	v = cut_judge(c, rq);
	if (v == CUT_POSSIBLE && cut_write(c, keep, out) != 0)
		kit_fail("not written");
	cut_free(&c);
	return v;
}

static void
check_line(const struct bytes *out, const char *p, size_t n)
{
	json_t *before = json_loadb(p, n, JSON_ALLOW_NUL, NULL), *after;

	if (out->n == 0 || out->n > FRAME || out->p[out->n - 1] != '\n')
		kit_fail("no line within the limit");
	after = json_loadb(out->p, out->n, JSON_ALLOW_NUL, NULL);
	if (before != NULL && after == NULL)
		kit_fail("JSON went in, none came out: %s", out->p);
	json_decref(before);
	json_decref(after);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct budget *b;
	struct bytes whole = { 0 }, parts = { 0 };
	struct cut_request rq = { .frame = FRAME };
	const char *p = (const char *)bytes + 4;
	enum cut_verdict v;

	if (n < 5)
		return 0;
	n -= 4;
	rq.limit = 1 + bytes[0] + 256u * (bytes[1] % 8u);
	rq.over = bytes[2] % 2 != 0;
	rq.schema = (enum tool_schema)(bytes[2] / 2 % 3);
	b = budget_new(8u << 20, 0, NULL);
	if (b == NULL)
		kit_fail("no memory");
	v = run(b, p, n, n, &rq, &whole);
	if (v == CUT_POSSIBLE)
		check_line(&whole, p, n);
	if (run(b, p, n, 1u + bytes[3], &rq, &parts) != v ||
	    parts.n != whole.n ||
	    (whole.n > 0 && memcmp(parts.p, whole.p, whole.n) != 0))
		kit_fail("another outcome in pieces of %u", 1u + bytes[3]);
	if (budget_heap(b) != 0)
		kit_fail("something stays allocated");
	budget_free(&b);
	bytes_free(&whole);
	bytes_free(&parts);
	return 0;
}
