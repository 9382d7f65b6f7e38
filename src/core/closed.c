/* SPDX-License-Identifier: MIT */
/*
 * Progress tokens of requests that have been answered: progress for them is
 * suppressed, progress for tokens never seen is not (contract section 5). The
 * last CLOSED_MAX are remembered, by keyed hash; the table grows with use.
 */
#include "relay_impl.h"

static bool
hash_of(struct relay *r, const struct id *token, uint64_t *hash_r)
{
	struct id_key key;

	if (!id_key(token, r->seed, &key))
		return false;
	*hash_r = key.hash != 0 ? key.hash : 1;
	return true;
}

/* Slot of the hash, or the empty slot where it would stand. */
static uint32_t
slot_of(const struct closed_tokens *c, uint64_t hash)
{
	uint32_t mask = 2 * c->cap - 1, i = (uint32_t)hash & mask;

	while (c->index[i] != 0 && c->ring[c->index[i] - 1] != hash)
		i = (i + 1) & mask;
	return i;
}

static void
rebuild(struct closed_tokens *c)
{
	for (uint32_t i = 0; i < 2 * c->cap; i++)
		c->index[i] = 0;
	for (uint32_t i = 0; i < c->cap; i++)
		if (c->ring[i] != 0)
			c->index[slot_of(c, c->ring[i])] = i + 1;
}

static bool
grow(struct relay *r)
{
	struct closed_tokens *c = &r->closed;
	uint32_t cap = c->cap > 0 ? 4 * c->cap : 64;
	uint64_t *ring;
	uint32_t *index;

	ring = budget_resize(r->budget, BUDGET_BOOKS, c->ring,
	    cap * sizeof *ring);
	if (ring == NULL)
		return false;
	c->ring = ring;
	index = budget_resize(r->budget, BUDGET_BOOKS, c->index,
	    2 * cap * sizeof *index);
	if (index == NULL)
		return false;
	c->index = index;
	for (uint32_t i = c->cap; i < cap; i++)
		ring[i] = 0;
	c->cap = cap;
	rebuild(c);
	return true;
}

void
closed_add(struct relay *r, const struct id *token)
{
	struct closed_tokens *c = &r->closed;
	uint64_t hash;

	if (!hash_of(r, token, &hash))
		return;
	if (c->cap > 0 && c->index[slot_of(c, hash)] != 0)
		return;
	if (c->at == c->cap && c->cap < CLOSED_MAX && !grow(r) && c->cap == 0)
		return;
	if (c->at == c->cap) {
		/* Full: forget the older half at once, rebuild seldom. */
		for (uint32_t i = 0; i < c->cap / 2; i++) {
			c->ring[i] = c->ring[i + c->cap / 2];
			c->ring[i + c->cap / 2] = 0;
		}
		c->at = c->cap / 2;
		rebuild(c);
	}
	c->ring[c->at++] = hash;
	c->index[slot_of(c, hash)] = c->at;
}

/* The token is in use again. */
void
closed_remove(struct relay *r, const struct id *token)
{
	struct closed_tokens *c = &r->closed;
	uint64_t hash;
	uint32_t i;

	if (c->cap == 0 || !hash_of(r, token, &hash))
		return;
	i = slot_of(c, hash);
	if (c->index[i] == 0)
		return;
	/* Leaves a hole in the ring and keeps the probe chains whole. */
	c->ring[c->index[i] - 1] = ~hash != 0 ? ~hash : 1;
	rebuild(c);
}

bool
closed_has(struct relay *r, const struct id *token)
{
	struct closed_tokens *c = &r->closed;
	uint64_t hash;

	return c->cap > 0 && hash_of(r, token, &hash) &&
	    c->index[slot_of(c, hash)] != 0;
}
