/* SPDX-License-Identifier: MIT */
/*
 * The budget: how much heap is charged, in three shares that are three
 * thresholds of one sum, and which blocks of the store are in use. Blocks
 * are found by a bitmap, lowest first, so that the file stays short; their
 * live bytes are counted, so that a block is given back with its last byte.
 * It must not know what a frame is.
 */
#include "budget_impl.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* In front of the live count of a block. */
#define HELD (UINT32_C(1) << 31)    /* being filled */
#define WRITTEN (UINT32_C(1) << 30) /* put: there is disk space to drop */
#define LIVE (WRITTEN - 1)

/*
 * The reserve: the disk kits of all queues, and as much for lines of our own.
 * A kit that is taken makes the reserve smaller, not the other shares; where
 * the reserve cannot hold them all there is no use for a store.
 */
#define DISK_USERS 2u
#define RESERVE_MIN ((uint64_t)DISK_USERS * DISK_KIT_COST)
#define RESERVE_MAX (2 * RESERVE_MIN)
/* Books a block may need: its extent, and its place in the tables. */
#define BOOKS_PER_BLOCK 96u
/* Heap that may be lost at the end of a share; and of each piece (1/128). */
#define ROOM_SLACK 8192u

struct budget {
	uint64_t limit;
	uint64_t reserve;
	uint64_t books;
	uint64_t heap;
	uint64_t heap_peak;
	uint64_t promised;
	struct store_ops ops;
	uint32_t blocks;	/* the store may have; 0 = no store */
	uint32_t used;
	uint32_t used_peak;
	uint32_t known;		/* blocks the tables speak of */
	uint32_t hint;		/* word of the map; none free below */
	uint64_t *map;		/* bit set: in use; live follows it */
	uint32_t *live;
	unsigned users;		/* queues with a disk kit */
	int error;
	bool broken;
};

struct budget *
budget_new(uint64_t memory, uint64_t spill, const struct store_ops *ops)
{
	struct budget *b = calloc(1, sizeof(*b));
	uint64_t blocks = spill / SPILL_BLOCK;

	if (b == NULL)
		return NULL;
	b->limit = memory;
	b->reserve = memory / 2 < RESERVE_MAX ? memory / 2 : RESERVE_MAX;
	b->books = (memory - b->reserve) / 4;
	if (ops != NULL && b->reserve >= RESERVE_MIN) {
		b->ops = *ops;
		b->blocks = blocks < BLOCK_NONE - 64 ?
		    (uint32_t)blocks : BLOCK_NONE - 64;
	}
	return b;
}

void
budget_free(struct budget **bp)
{
	if (*bp == NULL)
		return;
	free((*bp)->map);
	free(*bp);
	*bp = NULL;
}

static bool
store_works(const struct budget *b)
{
	return b->blocks > 0 && !b->broken;
}

static uint64_t
share_end(const struct budget *b, enum budget_share share)
{
	uint64_t kits = b->users * (uint64_t)DISK_KIT_COST;
	uint64_t end = b->limit;

	if (kits < b->reserve)
		end -= b->reserve - kits;
	switch (share) {
	case BUDGET_DATA:
		/* Without a store there are no blocks to keep books of. */
		return end - (store_works(b) ? b->books : b->books / 8);
	case BUDGET_BOOKS:
		return end;
	case BUDGET_RESERVE:
		break;
	}
	return b->limit;
}

static uint64_t
share_left(const struct budget *b, enum budget_share share)
{
	uint64_t end = share_end(b, share);
	uint64_t taken = b->heap + b->promised;

	return taken < end ? end - taken : 0;
}

uint64_t
budget_data_left(const struct budget *b)
{
	return share_left(b, BUDGET_DATA);
}

uint64_t
budget_charge(void *p)
{
	return malloc_usable_size(p) + BUDGET_OVERHEAD;
}

static void
charge(struct budget *b, uint64_t cost)
{
	b->heap += cost;
	if (b->heap > b->heap_peak)
		b->heap_peak = b->heap;
}

void *
budget_alloc(struct budget *b, enum budget_share share, size_t n)
{
	uint64_t left = share_left(b, share);
	uint64_t cost;
	void *p;

	if (n == 0)
		n = 1;
	if (left < BUDGET_OVERHEAD || n > left - BUDGET_OVERHEAD)
		return NULL;
	p = malloc(n);
	if (p == NULL)
		return NULL;
	cost = budget_charge(p);
	if (cost > left) {
		free(p);
		return NULL;
	}
	charge(b, cost);
	return p;
}

/*
 * Shrinking cannot fail: if the system will not, the old place stays. What
 * growing gives beyond the request is known only afterwards, too late to
 * refuse; so a page of slack is asked for beforehand.
 */
void *
budget_resize(struct budget *b, enum budget_share share, void *p, size_t n)
{
	uint64_t had;
	size_t slack = n >= 65536 ? 4096 + 64 : 64;
	void *q;

	if (p == NULL)
		return budget_alloc(b, share, n);
	had = budget_charge(p);
	if (n == 0)
		n = 1;
	if (n > had - BUDGET_OVERHEAD &&
	    (n > SIZE_MAX - slack ||
	    n + slack - (had - BUDGET_OVERHEAD) > share_left(b, share)))
		return NULL;
	q = realloc(p, n);
	if (q == NULL)
		return n <= had - BUDGET_OVERHEAD ? p : NULL;
	b->heap -= had;
	charge(b, budget_charge(q));
	return q;
}

void
budget_release(struct budget *b, void *p)
{
	if (p == NULL)
		return;
	b->heap -= budget_charge(p);
	free(p);
}

bool
budget_promise(struct budget *b, uint64_t cost)
{
	if (cost > share_left(b, BUDGET_DATA))
		return false;
	b->promised += cost;
	return true;
}

void
budget_unpromise(struct budget *b, uint64_t cost)
{
	b->promised -= cost;
}

/*
 * What the disk surely takes: its free blocks, as far as there are books for
 * them and heap for a queue to begin to use it at all.
 */
static uint64_t
disk_room(const struct budget *b)
{
	uint64_t blocks = b->blocks - b->used;
	uint64_t books = share_left(b, BUDGET_BOOKS);

	if (!store_works(b))
		return 0;
	if (b->users < DISK_USERS &&
	    share_left(b, BUDGET_RESERVE) < DISK_KIT_COST)
		return 0;
	books = books > ROOM_SLACK ? (books - ROOM_SLACK) / BOOKS_PER_BLOCK : 0;
	return (blocks < books ? blocks : books) * SPILL_BLOCK;
}

uint64_t
budget_room(const struct budget *b)
{
	uint64_t heap = share_left(b, BUDGET_DATA);

	heap -= heap / 128;
	heap = heap > ROOM_SLACK ? heap - ROOM_SLACK : 0;
	return heap + disk_room(b);
}

/* The map and the counts in one allocation; blocks a multiple of 64. */
static bool
tables_resize(struct budget *b, uint32_t known)
{
	size_t words = known / 64;
	size_t old = b->known / 64;
	uint64_t *map;
	uint32_t *live;

	map = budget_alloc(b, BUDGET_BOOKS,
	    words * sizeof(*map) + known * sizeof(*live));
	if (map == NULL)
		return false;
	live = (uint32_t *)(map + words);
	memset(map, 0, words * sizeof(*map));
	memset(live, 0, known * sizeof(*live));
	if (b->map != NULL) {
		memcpy(map, b->map, old * sizeof(*map));
		memcpy(live, b->live, b->known * sizeof(*live));
		budget_release(b, b->map);
	}
	b->map = map;
	b->live = live;
	b->known = known;
	return true;
}

static bool
tables_grow(struct budget *b)
{
	uint32_t most = (uint32_t)(((uint64_t)b->blocks + 63) / 64 * 64);
	uint32_t more = b->known == 0 ? 64 : b->known;

	if (b->known >= most)
		return false;
	if (more > most - b->known)
		more = most - b->known;
	return tables_resize(b, b->known + more) ||
	    (more > 64 && tables_resize(b, b->known + 64));
}

uint32_t
budget_block_take(struct budget *b)
{
	uint32_t word = b->hint;
	uint32_t block;

	if (!store_works(b) || b->used == b->blocks)
		return BLOCK_NONE;
	while (word < b->known / 64 && b->map[word] == UINT64_MAX)
		word++;
	b->hint = word;
	if (word == b->known / 64 && !tables_grow(b))
		return BLOCK_NONE;
	block = word * 64 + (uint32_t)__builtin_ctzll(~b->map[word]);
	if (block >= b->blocks)
		return BLOCK_NONE;
	b->map[word] |= UINT64_C(1) << (block % 64);
	b->live[block] = HELD;
	if (++b->used > b->used_peak)
		b->used_peak = b->used;
	return block;
}

static void
block_free(struct budget *b, uint32_t block)
{
	if ((b->live[block] & WRITTEN) != 0)
		b->ops.drop(b->ops.arg, block);
	b->live[block] = 0;
	b->map[block / 64] &= ~(UINT64_C(1) << (block % 64));
	if (block / 64 < b->hint)
		b->hint = block / 64;
	if (--b->used > 0)
		return;
	budget_release(b, b->map);
	b->map = NULL;
	b->live = NULL;
	b->known = 0;
	b->hint = 0;
}

static int
store_fails(struct budget *b)
{
	if (!b->broken)
		b->error = errno != 0 ? errno : EIO;
	b->broken = true;
	return -1;
}

int
budget_block_put(struct budget *b, uint32_t block, const void *bytes)
{
	errno = 0;
	if (b->ops.put(b->ops.arg, block, bytes) != 0) {
		/* Part of it may have been written. */
		b->live[block] |= WRITTEN;
		return store_fails(b);
	}
	b->live[block] |= WRITTEN;
	return 0;
}

int
budget_block_get(struct budget *b, uint32_t block, size_t off, void *to,
    size_t n)
{
	errno = 0;
	if (b->ops.get(b->ops.arg, block, off, to, n) != 0)
		return store_fails(b);
	return 0;
}

void
budget_block_live(struct budget *b, uint32_t block, uint32_t n)
{
	b->live[block] += n;
}

bool
budget_block_dead(struct budget *b, uint32_t block, uint32_t n)
{
	b->live[block] -= n;
	if ((b->live[block] & LIVE) != 0)
		return false;
	if ((b->live[block] & HELD) == 0)
		block_free(b, block);
	return true;
}

void
budget_block_unhold(struct budget *b, uint32_t block)
{
	b->live[block] &= ~HELD;
	if ((b->live[block] & LIVE) == 0)
		block_free(b, block);
}

void
budget_disk_user(struct budget *b, bool on)
{
	b->users = on ? b->users + 1 : b->users - 1;
}

uint64_t
budget_heap(const struct budget *b)
{
	return b->heap;
}

uint64_t
budget_heap_peak(const struct budget *b)
{
	return b->heap_peak;
}

uint64_t
budget_disk(const struct budget *b)
{
	return (uint64_t)b->used * SPILL_BLOCK;
}

uint64_t
budget_disk_peak(const struct budget *b)
{
	return (uint64_t)b->used_peak * SPILL_BLOCK;
}

bool
budget_store_broken(const struct budget *b)
{
	return b->broken;
}

int
budget_store_errno(const struct budget *b)
{
	return b->error;
}
