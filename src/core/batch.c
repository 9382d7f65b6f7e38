/* SPDX-License-Identifier: MIT */
/*
 * The requests and replies met inside one batch, until its fate is known.
 */
#include "relay_impl.h"

#define BATCH_MAX 65536 /* elements beyond are forwarded but not tracked */

int
batch_add(struct relay *r, struct batch *b, uint32_t ref)
{
	if (b->count == b->cap) {
		uint32_t cap = b->cap > 0 ? 2 * b->cap : 16;
		uint32_t *refs;

		if (cap > BATCH_MAX)
			return -1;
		refs = budget_resize(r->budget, BUDGET_BOOKS, b->refs,
		    cap * sizeof *refs);
		if (refs == NULL)
			return -1;
		b->refs = refs;
		b->cap = cap;
	}
	b->refs[b->count++] = ref;
	return 0;
}

void
batch_clear(struct relay *r, struct batch *b)
{
	if (b->refs != NULL)
		budget_release(r->budget, b->refs);
	*b = (struct batch) { 0 };
}
