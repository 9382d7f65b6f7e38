/* SPDX-License-Identifier: MIT */
/*
 * What budget.c does for queue.c alone: blocks of the store, and heap that is
 * promised before it is taken. A block belongs to one queue from take to
 * free; it is held while it is being filled, and lives on as long as bytes
 * of frames lie in it. Nobody else may include this.
 */
#ifndef SPILLWAY_BUDGET_IMPL_H
#define SPILLWAY_BUDGET_IMPL_H

#include "spillway/budget.h"

#define BLOCK_NONE UINT32_MAX

/* What an allocation of n bytes is reckoned at before it is made. */
#define BUDGET_OVERHEAD 16u
static inline uint64_t
budget_cost(size_t n)
{
	return ((uint64_t)n + 15u) / 16u * 16u + 8u + BUDGET_OVERHEAD;
}

/* What this allocation is charged at. */
uint64_t budget_charge(void *p);

/*
 * Set heap of the data share aside (false if there is none), and give it
 * back, just before taking it from the reserve share.
 */
bool budget_promise(struct budget *, uint64_t cost);
void budget_unpromise(struct budget *, uint64_t cost);

/* Bytes the data share has left. */
uint64_t budget_data_left(const struct budget *);

/* A free block, held, the lowest; BLOCK_NONE if there is none. */
uint32_t budget_block_take(struct budget *);
/* Fill a held block. -1: the store is broken from now on. */
int budget_block_put(struct budget *, uint32_t block, const void *bytes);
int budget_block_get(struct budget *, uint32_t block, size_t off, void *to,
    size_t n);
/* Count n live bytes more, or less. True when nothing lives in it then. */
void budget_block_live(struct budget *, uint32_t block, uint32_t n);
bool budget_block_dead(struct budget *, uint32_t block, uint32_t n);
/* No longer held: freed now if nothing lives in it, else with its last. */
void budget_block_unhold(struct budget *, uint32_t block);

/* Another queue has (on), or no longer has, all it needs to use the disk. */
void budget_disk_user(struct budget *, bool on);
/* Heap such a user takes from the reserve: one block to fill, one to read. */
#define DISK_KIT_COST (2 * (SPILL_BLOCK + 64u))

#endif
