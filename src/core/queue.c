/* SPDX-License-Identifier: MIT */
/*
 * A queue of frames (see queue.h). A frame is one allocation with its first
 * piece in it, so that a small one costs a single malloc. A piece lies on the
 * heap, its bytes behind it, or is an extent of a block of the store. Blocks
 * are filled in one staging buffer and read through one cache of a block;
 * both are taken when the queue first needs the disk and given back when
 * nothing of it lies there. It must not know what is in a frame, nor what
 * file is behind the store.
 */
#include "spillway/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "budget_impl.h"

#define PIECE_MIN 16384u   /* of an open frame, cut to size when sealed */
#define PIECE_MAX 65536u
#define PIECE_SCRAP 4096u  /* less is not worth a piece of its own */
#define SHRINK_MIN 64u	   /* slack worth a realloc */
#define READ_DIRECT 4096u  /* shorter reads go through the cache */
#define RUN_MAX (256u * 1024) /* bytes of frames that are joined on disk */
#define LENT_MIN 64u
#define LENT_MAX 8192u	   /* 256 KiB of frames of 32 bytes */

struct piece {
	struct piece *next;
	uint32_t len;
	uint32_t at;	/* disk: offset in the block; heap: bytes it may hold */
	uint32_t block; /* or BLOCK_NONE: heap, the bytes follow */
	uint32_t count; /* of a frame's first: frames in it, 1 or a run's */
};

struct frame {
	struct frame *next;
	struct frame *prev;
	struct frame_tag tag;
	usec_t born;
	uint64_t bytes;
	struct piece first; /* last member: its bytes follow the frame */
};

struct lent {
	const unsigned char *bytes;
	size_t n;
	struct frame_tag tag;
	usec_t born;
};

struct queue {
	struct budget *budget;
	uint64_t heap;	   /* what this queue has charged */
	uint64_t promised; /* and set aside for the lent frames */

	struct frame *head; /* sealed frames */
	struct frame *tail;
	uint64_t bytes;
	uint64_t frames;
	uint64_t sent;	   /* of the first frame, list or lent */
	struct piece *cur; /* of head: where to go on; NULL = its first */
	uint32_t cur_off;

	struct lent *lent; /* borrowed frames, [first, end) */
	size_t lent_first;
	size_t lent_end;
	size_t lent_cap;

	struct frame *open; /* NULL until it has bytes */
	struct piece *last; /* of open */
	struct piece *before_last;
	struct piece *read_piece; /* of open: where reading stopped */
	uint64_t read_base;
	bool is_open;

	uint64_t extents;      /* pieces on disk */
	unsigned char *stage;  /* both or none */
	unsigned char *cache;
	uint32_t stage_block;
	uint32_t stage_fill;
	uint32_t cache_block;
	uint32_t cache_from;   /* cached: to the end of the block */

	bool broken;
	bool torn; /* a frame half sent was lost */
};

/* Where an append can go back to. */
struct mark {
	struct piece *last;
	struct piece *before_last;
	uint32_t len;
	uint64_t bytes;
};

static void *
q_alloc(struct queue *q, enum budget_share share, size_t n)
{
	void *p = budget_alloc(q->budget, share, n);

	if (p != NULL)
		q->heap += budget_charge(p);
	return p;
}

static void *
q_resize(struct queue *q, enum budget_share share, void *p, size_t n)
{
	uint64_t had = p != NULL ? budget_charge(p) : 0;
	void *r = budget_resize(q->budget, share, p, n);

	if (r != NULL)
		q->heap = q->heap - had + budget_charge(r);
	return r;
}

static void
q_release(struct queue *q, void *p)
{
	if (p == NULL)
		return;
	q->heap -= budget_charge(p);
	budget_release(q->budget, p);
}

static unsigned char *
piece_bytes(struct piece *p)
{
	return (unsigned char *)(p + 1);
}

static bool
on_disk(const struct piece *p)
{
	return p->block != BLOCK_NONE;
}

struct queue *
queue_new(struct budget *b)
{
	struct queue *q = budget_alloc(b, BUDGET_BOOKS, sizeof(*q));

	if (q == NULL)
		return NULL;
	memset(q, 0, sizeof(*q));
	q->budget = b;
	q->heap = budget_charge(q);
	q->stage_block = BLOCK_NONE;
	q->cache_block = BLOCK_NONE;
	return q;
}

/* What the queue needs to use the disk at all: taken as one, kept as one. */
static bool
kit_take(struct queue *q)
{
	if (q->stage != NULL)
		return true;
	q->stage = q_alloc(q, BUDGET_RESERVE, SPILL_BLOCK);
	q->cache = q_alloc(q, BUDGET_RESERVE, SPILL_BLOCK);
	if (q->stage != NULL && q->cache != NULL) {
		budget_disk_user(q->budget, true);
		return true;
	}
	q_release(q, q->stage);
	q_release(q, q->cache);
	q->stage = NULL;
	q->cache = NULL;
	return false;
}

static void
kit_trim(struct queue *q)
{
	if (q->stage == NULL || q->extents > 0)
		return;
	if (q->stage_block != BLOCK_NONE)
		budget_block_unhold(q->budget, q->stage_block);
	q_release(q, q->stage);
	q_release(q, q->cache);
	q->stage = NULL;
	q->cache = NULL;
	q->stage_block = BLOCK_NONE;
	q->stage_fill = 0;
	q->cache_block = BLOCK_NONE;
	budget_disk_user(q->budget, false);
}

/* The last n bytes of a piece on disk die. */
static void
extent_cut(struct queue *q, struct piece *p, uint32_t n)
{
	uint32_t end = p->at + p->len;

	if (n == 0)
		return;
	p->len -= n;
	if (p->len == 0)
		q->extents--;
	if (p->block == q->stage_block && end == q->stage_fill)
		q->stage_fill -= n;
	if (!budget_block_dead(q->budget, p->block, n))
		return;
	if (p->block == q->stage_block)
		q->stage_fill = 0;
	if (p->block == q->cache_block)
		q->cache_block = BLOCK_NONE;
}

/* A piece has served; the one inside the frame goes with the frame. */
static void
piece_free(struct queue *q, struct frame *f, struct piece *p)
{
	if (on_disk(p))
		extent_cut(q, p, p->len);
	p->len = 0;
	if (p != &f->first)
		q_release(q, p);
}

static void
pieces_free(struct queue *q, struct frame *f, struct piece *p)
{
	struct piece *next;

	for (; p != NULL; p = next) {
		next = p->next;
		piece_free(q, f, p);
	}
}

static void
frame_free(struct queue *q, struct frame *f)
{
	pieces_free(q, f, &f->first);
	q_release(q, f);
}

static void
frame_init(struct frame *f, uint32_t cap)
{
	memset(f, 0, sizeof(*f));
	f->first.count = 1;
	f->first.at = cap;
	f->first.block = BLOCK_NONE;
}

/* A whole frame of n bytes in one allocation; total may count sent ones. */
static struct frame *
frame_whole(struct queue *q, enum budget_share share, const void *bytes,
    size_t n, uint64_t total, const struct frame_tag *tag, usec_t born)
{
	struct frame *f;

	if (n >= BLOCK_NONE)
		return NULL;
	f = q_alloc(q, share, sizeof(*f) + n);
	if (f == NULL)
		return NULL;
	frame_init(f, (uint32_t)n);
	memcpy(piece_bytes(&f->first), bytes, n);
	f->first.len = (uint32_t)n;
	f->bytes = total;
	f->tag = *tag;
	f->born = born;
	return f;
}

/* Into the list behind prev; NULL: in front. */
static void
list_insert(struct queue *q, struct frame *f, struct frame *prev)
{
	f->prev = prev;
	f->next = prev != NULL ? prev->next : q->head;
	if (prev != NULL)
		prev->next = f;
	else
		q->head = f;
	if (f->next != NULL)
		f->next->prev = f;
	else
		q->tail = f;
}

static void
list_remove(struct queue *q, struct frame *f)
{
	if (f->prev != NULL)
		f->prev->next = f->next;
	else
		q->head = f->next;
	if (f->next != NULL)
		f->next->prev = f->prev;
	else
		q->tail = f->prev;
}

void
queue_open(struct queue *q)
{
	if (q->is_open)
		queue_abort(q);
	q->is_open = true;
}

static void
open_forget(struct queue *q)
{
	q->open = NULL;
	q->last = NULL;
	q->before_last = NULL;
	q->read_piece = NULL;
	q->read_base = 0;
}

/* A new last piece of the open frame; the frame itself if it has none. */
static struct piece *
open_piece(struct queue *q, enum budget_share share, uint32_t cap)
{
	struct piece *p;

	if (q->open == NULL) {
		q->open = q_alloc(q, share, sizeof(*q->open) + cap);
		if (q->open == NULL)
			return NULL;
		frame_init(q->open, cap);
		q->last = &q->open->first;
		return q->last;
	}
	p = q_alloc(q, share, sizeof(*p) + cap);
	if (p == NULL)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->at = cap;
	p->block = BLOCK_NONE;
	q->last->next = p;
	q->before_last = q->last;
	q->last = p;
	return p;
}

/* Heap for some of n more bytes, if the data share has any worth having. */
static bool
heap_piece(struct queue *q, size_t n)
{
	uint64_t left = budget_data_left(q->budget);
	uint32_t head = q->open == NULL ? sizeof(struct frame) :
	    sizeof(struct piece);
	uint32_t cap = PIECE_MIN;
	uint64_t most;

	if (q->last != NULL && !on_disk(q->last))
		cap = q->last->at < PIECE_MAX / 2 ? q->last->at * 2 : PIECE_MAX;
	if (cap < PIECE_MIN)
		cap = PIECE_MIN;
	if (cap < n)
		cap = n < PIECE_MAX ? (uint32_t)n : PIECE_MAX;
	if (budget_cost(head + cap) > left) {
		most = left < budget_cost(head + 64) ? 0 :
		    left - budget_cost(head) - 32;
		if (most < n && most < PIECE_SCRAP)
			return false;
		cap = (uint32_t)most;
	}
	return open_piece(q, BUDGET_DATA, cap) != NULL;
}

static size_t
heap_take(struct queue *q, const void *bytes, size_t n)
{
	struct piece *p = q->last;
	size_t room;

	if (p == NULL || on_disk(p) || p->len == p->at) {
		if (!heap_piece(q, n))
			return 0;
		p = q->last;
	}
	assert(q->open != NULL); /* it has pieces */
	room = p->at - p->len;
	if (n > room)
		n = room;
	memcpy(piece_bytes(p) + p->len, bytes, n);
	p->len += (uint32_t)n;
	q->open->bytes += n;
	return n;
}

/* The last piece, made to end where n bytes in block at off will begin. */
static struct piece *
extent_at(struct queue *q, uint32_t block, uint32_t off)
{
	struct piece *p = q->last;

	if (p != NULL && p->block == block && p->len > 0 &&
	    p->at + p->len == off)
		return p;
	p = open_piece(q, BUDGET_BOOKS, 0);
	if (p == NULL)
		return NULL;
	p->block = block;
	p->at = off;
	return p;
}

static void
extent_add(struct queue *q, struct piece *p, uint32_t n)
{
	assert(q->open != NULL);
	if (p->len == 0)
		q->extents++;
	p->len += n;
	q->open->bytes += n;
	budget_block_live(q->budget, p->block, n);
}

/* A whole block goes out without a copy. */
static size_t
disk_take_block(struct queue *q, const void *bytes)
{
	uint32_t block = budget_block_take(q->budget);
	struct piece *p;
	size_t n = 0;

	if (block == BLOCK_NONE)
		return 0;
	p = extent_at(q, block, 0);
	if (p != NULL && budget_block_put(q->budget, block, bytes) == 0) {
		extent_add(q, p, SPILL_BLOCK);
		n = SPILL_BLOCK;
	}
	budget_block_unhold(q->budget, block);
	return n;
}

static size_t
disk_take(struct queue *q, const void *bytes, size_t n)
{
	struct piece *p;

	if (budget_store_broken(q->budget) || !kit_take(q))
		return 0;
	if (q->stage_block == BLOCK_NONE && n >= SPILL_BLOCK)
		return disk_take_block(q, bytes);
	if (q->stage_block == BLOCK_NONE)
		q->stage_block = budget_block_take(q->budget);
	if (q->stage_block == BLOCK_NONE)
		return 0;
	p = extent_at(q, q->stage_block, q->stage_fill);
	if (p == NULL)
		return 0;
	if (n > SPILL_BLOCK - q->stage_fill)
		n = SPILL_BLOCK - q->stage_fill;
	memcpy(q->stage + q->stage_fill, bytes, n);
	q->stage_fill += (uint32_t)n;
	extent_add(q, p, (uint32_t)n);
	/* If it cannot be put it stays staged; the store takes no more then. */
	if (q->stage_fill == SPILL_BLOCK &&
	    budget_block_put(q->budget, q->stage_block, q->stage) == 0) {
		budget_block_unhold(q->budget, q->stage_block);
		q->stage_block = BLOCK_NONE;
		q->stage_fill = 0;
	}
	return n;
}

static void
go_back(struct queue *q, const struct mark *m)
{
	struct piece *p = m->last;

	q->read_piece = NULL;
	q->read_base = 0;
	if (p == NULL) {
		if (q->open != NULL)
			frame_free(q, q->open);
		open_forget(q);
		return;
	}
	pieces_free(q, q->open, p->next);
	p->next = NULL;
	if (on_disk(p))
		extent_cut(q, p, p->len - m->len);
	p->len = m->len;
	q->last = p;
	q->before_last = m->before_last;
	q->open->bytes = m->bytes;
}

int
queue_append(struct queue *q, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;
	struct mark m = { .last = q->last, .before_last = q->before_last };
	size_t took;

	if (!q->is_open)
		return -1;
	if (q->open != NULL) {
		m.len = q->last->len;
		m.bytes = q->open->bytes;
	}
	for (; n > 0; from += took, n -= took) {
		took = heap_take(q, from, n);
		if (took == 0)
			took = disk_take(q, from, n);
		if (took == 0) {
			go_back(q, &m);
			kit_trim(q);
			/* Who makes room must see all that waits. */
			queue_settle(q);
			return -1;
		}
	}
	return 0;
}

static void
open_shrink(struct queue *q)
{
	struct piece *p = q->last;
	struct frame *f;

	if (on_disk(p) || p->at - p->len < SHRINK_MIN)
		return;
	if (p == &q->open->first) {
		f = q_resize(q, BUDGET_RESERVE, q->open, sizeof(*f) + p->len);
		if (f == NULL)
			return;
		q->open = f;
		p = &f->first;
	} else {
		p = q_resize(q, BUDGET_RESERVE, p, sizeof(*p) + p->len);
		if (p == NULL)
			return;
		q->before_last->next = p;
	}
	p->at = p->len;
}

/*
 * Small frames that nobody will look at one by one need not be described one
 * by one: on disk, where they lie side by side, they become a run. Else the
 * books of memory would be full long before the disk is.
 */
static void
run_join(struct queue *q, struct frame *f)
{
	struct frame *run = f->prev;
	struct piece *last;

	if (run == NULL || (run == q->head && q->sent > 0) ||
	    f->tag.class != FRAME_OTHER || run->tag.class != FRAME_OTHER ||
	    !on_disk(&f->first) || run->bytes + f->bytes > RUN_MAX)
		return;
	for (last = &run->first; last->next != NULL; last = last->next)
		continue;
	if (!on_disk(last) || last->block != f->first.block ||
	    last->at + last->len != f->first.at)
		return;
	list_remove(q, f);
	last->len += f->first.len;
	last->next = f->first.next;
	run->bytes += f->bytes;
	run->first.count += f->first.count;
	q->extents--;
	q_release(q, f);
}

void
queue_seal(struct queue *q, const struct frame_tag *tag, usec_t now)
{
	struct frame *f;

	q->is_open = false;
	if (q->open == NULL)
		return;
	queue_settle(q);
	open_shrink(q);
	f = q->open;
	open_forget(q);
	f->tag = *tag;
	f->born = now;
	list_insert(q, f, q->tail);
	q->bytes += f->bytes;
	q->frames++;
	run_join(q, f);
}

void
queue_abort(struct queue *q)
{
	q->is_open = false;
	if (q->open != NULL)
		frame_free(q, q->open);
	open_forget(q);
	kit_trim(q);
}

bool
queue_is_open(const struct queue *q)
{
	return q->is_open;
}

uint64_t
queue_open_bytes(const struct queue *q)
{
	return q->open != NULL ? q->open->bytes : 0;
}

/* The bytes of a piece where they are in memory now, or NULL. */
static unsigned char *
piece_near(const struct queue *q, struct piece *p, uint32_t off)
{
	if (!on_disk(p))
		return piece_bytes(p) + off;
	if (p->block == q->stage_block)
		return q->stage + p->at + off;
	if (p->block == q->cache_block && p->at + off >= q->cache_from)
		return q->cache + p->at + off;
	return NULL;
}

/* The cache mirrors the block, so what adjoins there adjoins here. */
static unsigned char *
piece_load(struct queue *q, const struct piece *p, uint32_t off)
{
	uint32_t from = p->at + off;

	q->cache_block = BLOCK_NONE;
	if (budget_block_get(q->budget, p->block, from, q->cache + from,
	    SPILL_BLOCK - from) != 0)
		return NULL;
	q->cache_block = p->block;
	q->cache_from = from;
	return q->cache + from;
}

static int
piece_read(struct queue *q, struct piece *p, uint32_t off, void *to, size_t n)
{
	const unsigned char *from = piece_near(q, p, off);

	if (from == NULL && n >= READ_DIRECT)
		return budget_block_get(q->budget, p->block, p->at + off, to,
		    n);
	if (from == NULL)
		from = piece_load(q, p, off);
	if (from == NULL)
		return -1;
	memcpy(to, from, n);
	return 0;
}

int
queue_open_read(struct queue *q, uint64_t off, void *to, size_t n)
{
	unsigned char *out = to;
	uint64_t have = queue_open_bytes(q);
	struct piece *p = q->read_piece;
	uint64_t base = q->read_base;
	size_t k;

	if (off > have || n > have - off)
		return -1;
	if (n == 0)
		return 0;
	if (p == NULL || off < base) {
		p = &q->open->first;
		base = 0;
	}
	for (;;) {
		if (off - base < p->len) {
			k = p->len - (size_t)(off - base);
			k = k < n ? k : n;
			if (piece_read(q, p, (uint32_t)(off - base), out, k))
				return -1;
			out += k;
			off += k;
			n -= k;
		}
		q->read_piece = p;
		q->read_base = base;
		if (n == 0)
			return 0;
		base += p->len;
		p = p->next;
	}
}

static bool
lent_grow(struct queue *q)
{
	size_t live = q->lent_end - q->lent_first;
	size_t cap = q->lent_cap == 0 ? LENT_MIN : q->lent_cap * 2;
	struct lent *p;

	if (q->lent_first >= LENT_MIN && q->lent_first >= live) {
		memmove(q->lent, q->lent + q->lent_first,
		    live * sizeof(*q->lent));
		q->lent_first = 0;
		q->lent_end = live;
		return true;
	}
	if (cap > LENT_MAX)
		return false;
	p = q_resize(q, BUDGET_BOOKS, q->lent, cap * sizeof(*p));
	if (p == NULL)
		return false;
	q->lent = p;
	q->lent_cap = cap;
	return true;
}

/* No heap to set aside: the frame is taken as any other, perhaps to disk. */
static int
borrow_copy(struct queue *q, const void *bytes, size_t n,
    const struct frame_tag *tag, usec_t now)
{
	struct frame *f;

	queue_settle(q);
	if (q->is_open) {
		f = frame_whole(q, BUDGET_DATA, bytes, n, n, tag, now);
		if (f == NULL)
			return -1;
		list_insert(q, f, q->tail);
		q->bytes += n;
		q->frames++;
		return 0;
	}
	queue_open(q);
	if (queue_append(q, bytes, n) != 0) {
		queue_abort(q);
		return -1;
	}
	queue_seal(q, tag, now);
	return 0;
}

int
queue_borrow(struct queue *q, const void *bytes, size_t n,
    const struct frame_tag *tag, usec_t now)
{
	uint64_t cost = budget_cost(sizeof(struct frame) + n);
	struct lent *e;

	if (n == 0)
		return 0;
	if (n >= BLOCK_NONE ||
	    (q->lent_end == q->lent_cap && !lent_grow(q)) ||
	    !budget_promise(q->budget, cost))
		return borrow_copy(q, bytes, n, tag, now);
	q->promised += cost;
	e = &q->lent[q->lent_end++];
	e->bytes = bytes;
	e->n = n;
	e->tag = *tag;
	e->born = now;
	q->bytes += n;
	q->frames++;
	return 0;
}

/* Only if the system itself is out of memory: the rest is lost. */
static void
lent_lose(struct queue *q, size_t sent)
{
	size_t i;

	q->broken = true;
	q->torn = q->torn || sent > 0;
	if (sent > 0)
		q->sent = 0;
	q->bytes += sent;
	for (i = q->lent_first; i < q->lent_end; i++) {
		q->bytes -= q->lent[i].n;
		q->frames--;
	}
}

void
queue_settle(struct queue *q)
{
	const struct lent *e;
	struct frame *f;
	size_t sent;

	if (q->lent_first == q->lent_end)
		return;
	budget_unpromise(q->budget, q->promised);
	q->promised = 0;
	for (; q->lent_first < q->lent_end; q->lent_first++) {
		e = &q->lent[q->lent_first];
		sent = q->head == NULL ? (size_t)q->sent : 0;
		f = frame_whole(q, BUDGET_RESERVE, e->bytes + sent,
		    e->n - sent, e->n, &e->tag, e->born);
		if (f == NULL) {
			lent_lose(q, sent);
			break;
		}
		list_insert(q, f, q->tail);
	}
	q->lent_first = 0;
	q->lent_end = 0;
}

int
queue_put(struct queue *q, const void *bytes, size_t n,
    const struct frame_tag *tag, usec_t now, bool ahead)
{
	struct frame *f;
	struct frame *prev;

	if (n == 0)
		return 0;
	queue_settle(q);
	f = frame_whole(q, BUDGET_RESERVE, bytes, n, n, tag, now);
	if (f == NULL)
		return -1;
	prev = q->tail;
	if (ahead)
		prev = q->sent > 0 ? q->head : NULL;
	list_insert(q, f, prev);
	q->bytes += n;
	q->frames++;
	return 0;
}

/* False when there is no place for it. */
static bool
iov_add(struct iovec *iov, int *have, int max, const unsigned char *from,
    size_t n)
{
	struct iovec *v = *have > 0 ? &iov[*have - 1] : NULL;

	if (v != NULL && (unsigned char *)v->iov_base + v->iov_len == from) {
		v->iov_len += n;
		return true;
	}
	if (*have == max)
		return false;
	iov[*have].iov_base = (void *)(uintptr_t)from;
	iov[*have].iov_len = n;
	++*have;
	return true;
}

/*
 * The pieces of f from p + off on. False to end there: iov is full, or more
 * than the one block that can be cached is wanted (used: it is in iov).
 */
static bool
peek_frame(struct queue *q, struct piece *p, uint32_t off, struct iovec *iov,
    int *have, int max, bool *used)
{
	unsigned char *from;

	for (; p != NULL; p = p->next, off = 0) {
		if (p->len == off)
			continue;
		from = piece_near(q, p, off);
		if (from == NULL) {
			if (*used || *have == max)
				return false;
			from = piece_load(q, p, off);
			if (from == NULL) {
				q->broken = true;
				return false;
			}
		}
		if (on_disk(p) && p->block != q->stage_block)
			*used = true;
		if (!iov_add(iov, have, max, from, p->len - off))
			return false;
	}
	return true;
}

int
queue_peek(struct queue *q, struct iovec *iov, int max)
{
	const struct lent *e;
	struct frame *f = q->head;
	size_t i;
	bool used = false;
	int have = 0;
	size_t off;

	if (max <= 0 || iov == NULL)
		return 0;
	if (f != NULL && q->cur != NULL) {
		if (!peek_frame(q, q->cur, q->cur_off, iov, &have, max, &used))
			return have;
		f = f->next;
	}
	for (; f != NULL; f = f->next)
		if (!peek_frame(q, &f->first, 0, iov, &have, max, &used))
			return have;
	off = q->head == NULL ? (size_t)q->sent : 0;
	for (i = q->lent_first; i < q->lent_end; i++, off = 0) {
		e = &q->lent[i];
		if (!iov_add(iov, &have, max, e->bytes + off, e->n - off))
			break;
	}
	return have;
}

/* n bytes of the first frame are gone, but not all of it. */
static void
head_advance(struct queue *q, size_t n)
{
	struct frame *f = q->head;
	struct piece *p = q->cur != NULL ? q->cur : &f->first;
	struct piece *next;

	q->sent += n;
	while (n >= p->len - q->cur_off) {
		n -= p->len - q->cur_off;
		q->cur_off = 0;
		next = p->next;
		if (p != &f->first)
			f->first.next = next;
		piece_free(q, f, p);
		p = next;
	}
	q->cur = p;
	q->cur_off += (uint32_t)n;
}

static usec_t
waited(usec_t born, usec_t now)
{
	return now > born ? now - born : 0;
}

/* The whole lent frames among n bytes; what is left of n. */
static size_t
lent_sent(struct queue *q, size_t n, usec_t now,
    void (*done)(void *, const struct frame_tag *, uint64_t, usec_t),
    void *arg)
{
	const struct lent *e;
	size_t rest;
	uint64_t cost;

	while (q->lent_first < q->lent_end) {
		e = &q->lent[q->lent_first];
		rest = e->n - (size_t)q->sent;
		if (n < rest)
			break;
		n -= rest;
		q->bytes -= rest;
		q->frames--;
		q->sent = 0;
		q->lent_first++;
		cost = budget_cost(sizeof(struct frame) + e->n);
		q->promised -= cost;
		budget_unpromise(q->budget, cost);
		if (done != NULL)
			done(arg, &e->tag, e->n, waited(e->born, now));
	}
	if (q->lent_first == q->lent_end) {
		q->lent_first = 0;
		q->lent_end = 0;
	} else {
		q->sent += n;
		q->bytes -= n;
	}
	return n;
}

void
queue_sent(struct queue *q, size_t n, usec_t now,
    void (*done)(void *arg, const struct frame_tag *, uint64_t bytes,
	usec_t waited),
    void *arg)
{
	struct frame *f;
	uint64_t rest;

	while (n > 0 && (f = q->head) != NULL) {
		rest = f->bytes - q->sent;
		if (n < rest) {
			head_advance(q, n);
			q->bytes -= n;
			n = 0;
			break;
		}
		n -= (size_t)rest;
		q->bytes -= rest;
		q->frames -= f->first.count;
		q->sent = 0;
		q->cur = NULL;
		q->cur_off = 0;
		list_remove(q, f);
		for (uint32_t i = 0; i < f->first.count && done != NULL; i++)
			done(arg, &f->tag, i == 0 ? f->bytes : 0,
			    waited(f->born, now));
		frame_free(q, f);
	}
	if (n > 0)
		lent_sent(q, n, now, done, arg);
	kit_trim(q);
}

bool
queue_broken(const struct queue *q)
{
	return q->broken;
}

struct frame *
queue_first_unsent(const struct queue *q)
{
	if (q->head != NULL && q->sent > 0)
		return q->head->next;
	return q->head;
}

struct frame *
queue_next(const struct frame *f)
{
	return f->next;
}

const struct frame_tag *
frame_tag(const struct frame *f)
{
	return &f->tag;
}

uint64_t
frame_bytes(const struct frame *f)
{
	return f->bytes;
}

usec_t
frame_born(const struct frame *f)
{
	return f->born;
}

static bool
is_sending(const struct queue *q, const struct frame *f)
{
	return f == q->head && q->sent > 0;
}

void
queue_drop(struct queue *q, struct frame *f)
{
	if (is_sending(q, f))
		return;
	list_remove(q, f);
	q->bytes -= f->bytes;
	q->frames -= f->first.count;
	frame_free(q, f);
	kit_trim(q);
}

/* In the old frame's own memory, when the reserve has none. */
static struct frame *
replace_inside(struct queue *q, struct frame *f, const void *bytes, size_t n)
{
	if (on_disk(&f->first) || n > f->first.at)
		return NULL;
	pieces_free(q, f, f->first.next);
	f->first.next = NULL;
	memcpy(piece_bytes(&f->first), bytes, n);
	f->first.len = (uint32_t)n;
	return f;
}

int
queue_replace(struct queue *q, struct frame *f, const void *bytes, size_t n,
    const struct frame_tag *tag)
{
	struct frame *made;
	uint64_t old = f->bytes;
	uint32_t count = f->first.count;

	if (is_sending(q, f) || n == 0)
		return -1;
	made = frame_whole(q, BUDGET_RESERVE, bytes, n, n, tag, f->born);
	if (made != NULL) {
		list_insert(q, made, f);
		list_remove(q, f);
		frame_free(q, f);
	} else if (replace_inside(q, f, bytes, n) == NULL) {
		return -1;
	} else {
		f->tag = *tag;
		f->bytes = n;
		f->first.count = 1;
	}
	q->bytes = q->bytes - old + n;
	q->frames -= count - 1;
	kit_trim(q);
	return 0;
}

uint64_t
queue_heap(const struct queue *q)
{
	uint64_t own = budget_charge((void *)(uintptr_t)q);

	if (q->lent != NULL)
		own += budget_charge(q->lent);
	return q->heap - own;
}

uint64_t
queue_bytes(const struct queue *q)
{
	return q->bytes;
}

uint64_t
queue_frames(const struct queue *q)
{
	return q->frames;
}

bool
queue_empty(const struct queue *q)
{
	return q->bytes == 0;
}

bool
queue_at_border(const struct queue *q)
{
	return q->sent == 0 && !q->torn;
}

void
queue_free(struct queue **qp)
{
	struct queue *q = *qp;
	struct frame *f;

	if (q == NULL)
		return;
	queue_abort(q);
	budget_unpromise(q->budget, q->promised);
	while ((f = q->head) != NULL) {
		list_remove(q, f);
		frame_free(q, f);
	}
	kit_trim(q);
	q_release(q, q->lent);
	budget_release(q->budget, q);
	*qp = NULL;
}

/* What the walk of queue_check() adds up. */
struct sums {
	uint64_t heap;
	uint64_t extents;
	uint64_t bytes;
	uint64_t frames;
	uint64_t promised;
	const char *bad; /* the first invariant that does not hold */
};

static void
must(struct sums *s, bool ok, const char *what)
{
	if (!ok && s->bad == NULL)
		s->bad = what;
}

static void
check_frame(const struct queue *q, struct frame *f, struct sums *s,
    uint64_t gone)
{
	struct piece *p;
	uint64_t len = 0;

	s->heap += budget_charge(f);
	for (p = &f->first; p != NULL; p = p->next) {
		if (p != &f->first)
			s->heap += budget_charge(p);
		len += p->len;
		if (!on_disk(p)) {
			must(s, p->len <= p->at, "a piece holds too much");
			continue;
		}
		s->extents += p->len > 0;
		must(s, p->at + p->len <= SPILL_BLOCK, "extent leaves its block");
		must(s, p->len == 0 || q->stage != NULL, "extent without a cache");
		must(s, p->len == 0 || p->block != q->stage_block ||
		    p->at + p->len <= q->stage_fill, "extent is not staged");
	}
	must(s, len == f->bytes - gone, "pieces do not make the frame");
}

static void
check_list(const struct queue *q, struct sums *s)
{
	struct frame *f;
	struct frame *prev = NULL;
	uint64_t gone;

	for (f = q->head; f != NULL; prev = f, f = f->next) {
		must(s, f->prev == prev, "list is torn");
		must(s, f != q->open, "open frame is in the list");
		/* cur_off bytes are sent and still there. */
		gone = f == q->head ? q->sent - q->cur_off : 0;
		must(s, gone < f->bytes, "frame sent and still there");
		check_frame(q, f, s, gone);
		s->bytes += f->bytes;
		s->frames += f->first.count;
	}
	must(s, q->tail == prev, "tail is not the last");
	must(s, q->head != NULL || q->cur == NULL, "sending from no frame");
}

static void
check_lent(const struct queue *q, struct sums *s)
{
	size_t i;

	must(s, q->lent_first <= q->lent_end && q->lent_end <= q->lent_cap,
	    "borrowed frames out of bounds");
	for (i = q->lent_first; i < q->lent_end; i++) {
		s->bytes += q->lent[i].n;
		s->frames++;
		s->promised +=
		    budget_cost(sizeof(struct frame) + q->lent[i].n);
	}
	if (q->lent != NULL)
		s->heap += budget_charge(q->lent);
}

const char *
queue_check(const struct queue *q)
{
	struct sums s = { 0 };

	s.heap = budget_charge((void *)(uintptr_t)q);
	check_list(q, &s);
	check_lent(q, &s);
	must(&s, q->is_open || q->open == NULL, "frame open and not open");
	if (q->open != NULL)
		check_frame(q, q->open, &s, 0);
	if (q->stage != NULL)
		s.heap += budget_charge(q->stage) + budget_charge(q->cache);
	must(&s, s.heap == q->heap, "heap does not add up");
	must(&s, q->heap <= budget_heap(q->budget), "heap is not in the budget");
	must(&s, s.promised == q->promised, "promises do not add up");
	must(&s, s.extents == q->extents, "extents do not add up");
	must(&s, (q->stage != NULL) == (q->extents > 0), "disk kit kept or lost");
	must(&s, s.bytes - q->sent == q->bytes, "bytes do not add up");
	must(&s, s.frames == q->frames, "frames do not add up");
	return s.bad;
}
