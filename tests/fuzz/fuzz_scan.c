/* SPDX-License-Identifier: MIT */
/*
 * The scanner: any text, cut anywhere, under every kernel. All runs must
 * agree to the byte, and jansson must not accept what the scanner refuses.
 */
#include <jansson.h>
#include <string.h>

#include "fuzz.h"
#include "kit.h"
#include "spillway/scan.h"

#define DEPTH 64

struct result {
	enum scan_status status;
	size_t used;
	uint64_t sum; /* of all that was told */
	bool too_deep;
};

static void
mix(uint64_t *sum, uint64_t v)
{
	*sum = (*sum ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	*sum ^= *sum >> 29;
}

static void
on_event(void *arg, struct scan *s, enum scan_event e, uint64_t off)
{
	uint64_t *sum = arg;

	mix(sum, e);
	mix(sum, off);
	mix(sum, s->depth);
	for (uint32_t i = 0; i < s->token_len; i++)
		mix(sum, (unsigned char)s->token[i]);
}

static void
on_edit(void *arg, uint64_t off, unsigned len, const char *with, unsigned n)
{
	uint64_t *sum = arg;

	(void)with;
	mix(sum, 77 + off);
	mix(sum, len * 16 + n);
}

static struct result
run(const char *p, size_t n, size_t piece, bool strict)
{
	struct result r = { .status = SCAN_MORE };
	struct scan_sink sink = { on_event, strict ? NULL : on_edit, &r.sum,
		false };
	uint8_t stack[DEPTH];
	struct scan s;

	scan_init(&s, &sink, stack, DEPTH);
	while (r.used < n && r.status == SCAN_MORE) {
		size_t k = n - r.used < piece ? n - r.used : piece, used;

		r.status = scan_feed(&s, p + r.used, k, &used);
		r.used += used;
	}
	r.too_deep = s.too_deep;
	if (r.status == SCAN_FAULT) { /* what comes then is only not to crash */
		size_t used;

		scan_tolerate(&s);
		scan_feed(&s, p + r.used, n - r.used, &used);
	}
	return r;
}

static void
check_against_jansson(const char *p, size_t n, const struct result *r)
{
	json_t *root = json_loadb(p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL |
	    JSON_DISABLE_EOF_CHECK, NULL);

	if (root != NULL && r->status != SCAN_DONE &&
	    !(json_is_number(root) && r->status == SCAN_MORE) &&
	    memchr(p, '\n', n) == NULL)
		kit_fail("jansson accepts what the scanner does not");
	json_decref(root);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const char *const kernels[] = { "scalar", "swar", "sse2",
		"neon", "avx2" };
	const char *p = (const char *)bytes + 1;
	struct result first = { .status = SCAN_MORE };
	bool have = false;

	if (n < 2)
		return 0;
	n--;
	for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
		size_t pieces[] = { n, 1, 1 + bytes[0] % 97u };

		if (!scan_set_kernel(kernels[k]))
			continue;
		for (size_t i = 0; i < 3; i++) {
			struct result r = run(p, n, pieces[i],
			    bytes[0] % 2 != 0);

			if (have && (r.status != first.status ||
			    r.used != first.used || r.sum != first.sum ||
			    r.too_deep != first.too_deep))
				kit_fail("%s in pieces of %zu differs",
				    kernels[k], pieces[i]);
			if (!have)
				first = r;
			have = true;
		}
	}
	if (bytes[0] % 2 != 0 && !first.too_deep)
		check_against_jansson(p, n, &first);
	return 0;
}
