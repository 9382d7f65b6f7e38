/* SPDX-License-Identifier: MIT */
/*
 * What the session may hold: one budget for both directions (contract
 * section 4), charged by what is really allocated, structs and slack
 * included, and the spill store behind it.
 *
 * Heap is handed out in three shares, so that the dear ones never starve:
 *   data     bytes of frames: up to limit - reserve - books (all of them when
 *            there is a store that still works, else an eighth: requests
 *            must be kept track of while frames take all they can);
 *   books    structs that describe frames and pending requests: up to
 *            limit - reserve;
 *   reserve  the proxy's own lines and bytes that must be kept because they
 *            were promised (a settled borrow, a staged block): up to limit.
 */
#ifndef SPILLWAY_BUDGET_H
#define SPILLWAY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of one block on disk; the unit of the store. */
#define SPILL_BLOCK 65536u

/*
 * The store behind the budget, as four calls. put and get return 0, or -1
 * with errno set. put writes the whole block. drop tells that a block holds
 * nothing any more (its disk space may be given back); it cannot fail.
 */
struct store_ops {
	int (*put)(void *arg, uint32_t block, const void *bytes);
	int (*get)(void *arg, uint32_t block, size_t off, void *to, size_t n);
	void (*drop)(void *arg, uint32_t block);
	void *arg;
};

enum budget_share { BUDGET_DATA, BUDGET_BOOKS, BUDGET_RESERVE };

struct budget;

/*
 * memory: heap bytes; spill: bytes on disk, 0 or ops NULL = no store. NULL
 * when out of memory. The ops' arg must outlive the budget.
 */
struct budget *budget_new(uint64_t memory, uint64_t spill,
    const struct store_ops *ops);
void budget_free(struct budget **);

/*
 * malloc, realloc and free that are charged to the budget by what malloc
 * really gave. NULL when the share is used up or the system has none left.
 */
void *budget_alloc(struct budget *, enum budget_share, size_t n);
void *budget_resize(struct budget *, enum budget_share, void *p, size_t n);
void budget_release(struct budget *, void *p);

/* Bytes of frame data that can surely still be taken, heap and disk. */
uint64_t budget_room(const struct budget *);

uint64_t budget_heap(const struct budget *);	  /* charged now */
uint64_t budget_heap_peak(const struct budget *);
uint64_t budget_disk(const struct budget *);	  /* live blocks, in bytes */
uint64_t budget_disk_peak(const struct budget *);
bool budget_store_broken(const struct budget *); /* a put or get failed */
int budget_store_errno(const struct budget *);	 /* and why */

#endif
