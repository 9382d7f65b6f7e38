/* SPDX-License-Identifier: MIT */
/*
 * The queue against a plain reference: two queues on one budget are driven by
 * random operations, and after each one what they say and what they would
 * write is compared with a list of frames made from a formula. The store, and
 * malloc itself, fail at every place in turn; budget.c is compiled into this
 * file for that, with malloc and realloc put into the test's hands.
 */
#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *test_malloc(size_t n);
static void *test_realloc(void *p, size_t n);

#define malloc test_malloc
#define realloc test_realloc
#include "core/budget.c"
#undef malloc
#undef realloc

#include "spillway/queue.h"

static long mallocs_left;

static void *
test_malloc(size_t n)
{
	return mallocs_left-- > 0 ? malloc(n) : NULL;
}

static void *
test_realloc(void *p, size_t n)
{
	return mallocs_left-- > 0 ? realloc(p, n) : NULL;
}

/* Check tells its parent of each ck_assert: too dear for millions. */
#define HOLDS(what) \
	do { \
		if (!(what)) \
			ck_abort_msg("%s", #what); \
	} while (0)

/* The store: blocks in memory, that fail by count. */
#define STORE_BLOCKS 128

static unsigned char *store[STORE_BLOCKS];
static long puts_left;
static long gets_left;
static bool get_failed;

static int
fake_put(void *arg, uint32_t block, const void *bytes)
{
	(void)arg;
	HOLDS(block < STORE_BLOCKS);
	errno = ENOSPC;
	if (puts_left-- <= 0)
		return -1;
	if (store[block] == NULL)
		store[block] = malloc(SPILL_BLOCK);
	memcpy(store[block], bytes, SPILL_BLOCK);
	return 0;
}

static int
fake_get(void *arg, uint32_t block, size_t off, void *to, size_t n)
{
	(void)arg;
	HOLDS(block < STORE_BLOCKS);
	HOLDS(off + n <= SPILL_BLOCK);
	HOLDS(store[block] != NULL);
	errno = EIO;
	if (gets_left-- <= 0) {
		get_failed = true;
		return -1;
	}
	memcpy(to, store[block] + off, n);
	return 0;
}

static void
fake_drop(void *arg, uint32_t block)
{
	(void)arg;
	free(store[block]);
	store[block] = NULL;
}

static const struct store_ops ops = { fake_put, fake_get, fake_drop, NULL };

static void
reset(void)
{
	int i;

	mallocs_left = puts_left = gets_left = 1L << 40;
	get_failed = false;
	for (i = 0; i < STORE_BLOCKS; i++)
		fake_drop(NULL, (uint32_t)i);
}

static uint64_t seed;

static uint32_t
any(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % below);
}

/*
 * A frame's bytes by formula, nothing to keep but its id: a stretch of one
 * long pattern that does not repeat, entered at a place of the id's own.
 */
#define PATTERN 65521u

static unsigned char pattern[PATTERN];

static void
pattern_make(void)
{
	size_t i;

	for (i = 0; i < PATTERN; i++)
		pattern[i] = (unsigned char)any(256);
}

static size_t
stretch(uint32_t id, uint64_t off, size_t n, const unsigned char **p)
{
	size_t at = (size_t)((id * UINT64_C(197) + off) % PATTERN);

	*p = pattern + at;
	return n < PATTERN - at ? n : PATTERN - at;
}

static void
make(unsigned char *to, uint32_t id, uint64_t off, size_t n)
{
	const unsigned char *p;
	size_t k;

	for (; n > 0; n -= k, to += k, off += k) {
		k = stretch(id, off, n, &p);
		memcpy(to, p, k);
	}
}

static bool
same(const unsigned char *got, uint32_t id, uint64_t off, size_t n)
{
	const unsigned char *p;
	size_t k;

	for (; n > 0; n -= k, got += k, off += k) {
		k = stretch(id, off, n, &p);
		if (memcmp(got, p, k) != 0)
			return false;
	}
	return true;
}

/* The reference. */
#define FRAMES 600
#define BUF (256 * 1024)
#define MANY_SMALL 1000000

struct ref {
	uint32_t id;
	uint64_t bytes;
	usec_t born;
};

struct side {
	struct queue *q;
	struct ref f[FRAMES];
	size_t n;
	uint64_t sent;	   /* of f[0] */
	uint64_t open;	   /* bytes of the open frame */
	uint32_t open_id;
	unsigned char *buf;
	size_t buf_used;
};

static struct side sides[2];
static struct budget *budget;
static unsigned char scratch[BUF];
static uint32_t next_id;
static usec_t now;
static struct side *finishing;
static uint64_t to_finish; /* bytes told as sent and not yet accounted */

static struct frame_tag
tag_of(uint32_t id)
{
	return (struct frame_tag){ .class = FRAME_REPLY, .ref = id,
		.key = id * UINT64_C(0x100000001) };
}

static void
insert(struct side *s, size_t at, uint32_t id, uint64_t bytes)
{
	HOLDS(s->n < FRAMES);
	memmove(&s->f[at + 1], &s->f[at], (s->n - at) * sizeof(s->f[0]));
	s->f[at] = (struct ref){ id, bytes, now };
	s->n++;
}

static void
delete(struct side *s, size_t at)
{
	s->n--;
	memmove(&s->f[at], &s->f[at + 1], (s->n - at) * sizeof(s->f[0]));
}

static size_t
any_size(void)
{
	static const size_t odd[] = { 1, 2, 4095, 4096, 16383, 16384, 16385,
		65535, 65536, 65537, 131072, BUF };

	switch (any(8)) {
	case 0:
		return odd[any(sizeof(odd) / sizeof(odd[0]))];
	case 1:
		return 1 + any(40000);
	case 2:
		return 1 + any(5000);
	default:
		return 1 + any(200);
	}
}

static void
do_append(struct side *s)
{
	size_t n = any_size();

	if (!queue_is_open(s->q)) {
		queue_open(s->q);
		s->open_id = next_id++;
		s->open = 0;
	}
	make(scratch, s->open_id, s->open, n);
	if (queue_append(s->q, scratch, n) == 0)
		s->open += n;
}

static void
do_close(struct side *s)
{
	struct frame_tag t = tag_of(s->open_id);

	if (!queue_is_open(s->q))
		return;
	if (any(4) == 0) {
		queue_abort(s->q);
	} else {
		queue_seal(s->q, &t, now);
		if (s->open > 0)
			insert(s, s->n, s->open_id, s->open);
	}
	s->open = 0;
}

static void
do_settle(struct side *s)
{
	queue_settle(s->q);
	memset(s->buf, 0xEE, BUF);
	s->buf_used = 0;
}

static void
do_borrow(struct side *s)
{
	uint32_t k = 1 + any(20);
	struct frame_tag t;
	size_t n;

	while (k-- > 0) {
		n = any_size();
		if (n > BUF - s->buf_used)
			do_settle(s);
		make(s->buf + s->buf_used, next_id, 0, n);
		t = tag_of(next_id);
		if (queue_borrow(s->q, s->buf + s->buf_used, n, &t, now) == 0)
			insert(s, s->n, next_id, n);
		next_id++;
		s->buf_used += n;
	}
}

static void
do_put(struct side *s)
{
	size_t n = 1 + any(300);
	struct frame_tag t = tag_of(next_id);
	bool ahead = any(2);

	make(scratch, next_id, 0, n);
	if (queue_put(s->q, scratch, n, &t, now, ahead) == 0)
		insert(s, !ahead ? s->n : s->sent > 0, next_id, n);
	next_id++;
}

static void
done(void *arg, const struct frame_tag *t, uint64_t bytes, usec_t waited)
{
	struct side *s = arg;
	struct ref *r = &s->f[0];

	HOLDS(s == finishing);
	HOLDS(s->n > 0);
	HOLDS(t->ref == r->id);
	HOLDS(t->key == tag_of(r->id).key);
	HOLDS(bytes == r->bytes);
	HOLDS(waited == now - r->born);
	HOLDS(r->bytes - s->sent <= to_finish);
	to_finish -= r->bytes - s->sent;
	s->sent = 0;
	delete(s, 0);
}

/* Compare what peek gives with the reference; how many bytes that are. */
static uint64_t
look(struct side *s, int max, struct iovec *iov)
{
	size_t at = 0, k;
	uint64_t off = s->sent, total = 0;
	unsigned char *p;
	int i, n;

	n = queue_peek(s->q, iov, max);
	HOLDS(n <= max);
	for (i = 0; i < n; i++) {
		p = iov[i].iov_base;
		HOLDS(iov[i].iov_len > 0);
		total += iov[i].iov_len;
		while (iov[i].iov_len > 0) {
			HOLDS(at < s->n);
			k = s->f[at].bytes - off;
			if (k > iov[i].iov_len)
				k = iov[i].iov_len;
			HOLDS(same(p, s->f[at].id, off, k));
			p += k;
			off += k;
			iov[i].iov_len -= k;
			if (off == s->f[at].bytes) {
				at++;
				off = 0;
			}
		}
	}
	if (total == 0)
		HOLDS(s->n == 0 || queue_broken(s->q));
	return total;
}

static void
do_send(struct side *s)
{
	struct iovec iov[16];
	uint64_t got = look(s, 1 + (int)any(16), iov), n;

	if (got == 0)
		return;
	n = any(2) ? got : 1 + any((uint32_t)got);
	finishing = s;
	to_finish = n;
	queue_sent(s->q, n, now, done, s);
	finishing = NULL;
	s->sent += to_finish;
}

/* Any waiting frame of the list; its place in the reference. */
static struct frame *
pick(struct side *s, size_t *at)
{
	struct frame *f;
	uint32_t skip = any(6);

	/* Lent frames are seen only when they are settled. */
	do_settle(s);
	*at = s->sent > 0;
	f = queue_first_unsent(s->q);
	while (f != NULL && skip-- > 0 && queue_next(f) != NULL) {
		f = queue_next(f);
		++*at;
	}
	if (f == NULL || queue_broken(s->q))
		return NULL;
	HOLDS(frame_tag(f)->ref == s->f[*at].id);
	HOLDS(frame_bytes(f) == s->f[*at].bytes);
	HOLDS(frame_born(f) == s->f[*at].born);
	return f;
}

static void
do_drop(struct side *s)
{
	size_t at;
	struct frame *f = pick(s, &at);

	if (f == NULL)
		return;
	queue_drop(s->q, f);
	delete(s, at);
}

static void
do_replace(struct side *s)
{
	size_t at, n = 1 + any(300);
	struct frame *f = pick(s, &at);
	struct frame_tag t = tag_of(next_id);

	if (f == NULL)
		return;
	make(scratch, next_id, 0, n);
	if (queue_replace(s->q, f, scratch, n, &t) == 0) {
		s->f[at].id = next_id;
		s->f[at].bytes = n;
	}
	next_id++;
}

static void
do_read(struct side *s)
{
	uint64_t off = any(4) == 0 ? 0 : any((uint32_t)s->open + 1);
	size_t n, k = 0;

	HOLDS(queue_open_read(s->q, s->open + 1, scratch, 0) == -1);
	HOLDS(queue_open_read(s->q, s->open, scratch, 1) == -1);
	for (n = any_size(); off < s->open && k < 20; off += n, k++) {
		if (n > s->open - off)
			n = s->open - off;
		if (queue_open_read(s->q, off, scratch, n) == 0)
			HOLDS(same(scratch, s->open_id, off, n));
		else
			HOLDS(get_failed);
	}
}

/* What budget_room() says can be taken, can be. */
static void
do_room(struct side *s)
{
	uint64_t room = budget_room(budget), n;
	uint64_t want = room;

	if (queue_is_open(s->q) || puts_left < 1000 || mallocs_left < 100000)
		return;
	queue_open(s->q);
	for (; room > 0; room -= n) {
		n = any_size();
		n = n < room ? n : room;
		ck_assert_msg(queue_append(s->q, scratch, n) == 0,
		    "%ju of %ju not to be had", (uintmax_t)room,
		    (uintmax_t)want);
	}
	queue_abort(s->q);
}

static void
verify(struct side *s, uint64_t memory, uint64_t spill)
{
	uint64_t bytes = 0;
	size_t i;

	/* It walks all frames: of many not every time. */
	if (s->n < 50 || any(16) == 0)
		ck_assert_ptr_null(queue_check(s->q));
	HOLDS(budget_heap(budget) <= memory);
	HOLDS(budget_disk(budget) <= spill);
	for (i = 0; i < s->n; i++)
		bytes += s->f[i].bytes;
	HOLDS(queue_bytes(s->q) == bytes - s->sent);
	HOLDS(queue_frames(s->q) == s->n);
	HOLDS(queue_open_bytes(s->q) == s->open);
	HOLDS(queue_empty(s->q) == (s->n == 0));
	HOLDS(queue_at_border(s->q) == (s->sent == 0));
}

static void
step(struct side *s, uint32_t fullness)
{
	static void (*const acts[])(struct side *) = {
		do_append, do_append, do_append, do_append, do_close, do_close,
		do_borrow, do_borrow, do_settle, do_put, do_drop, do_replace,
		do_read, do_room,
	};
	uint32_t k = any((uint32_t)(sizeof(acts) / sizeof(acts[0])) + fullness);

	now += any(1000);
	if (s->n > FRAMES - 100 ||
	    k >= (uint32_t)(sizeof(acts) / sizeof(acts[0])))
		do_send(s);
	else
		acts[k](s);
}

static void
sides_free(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		queue_free(&sides[i].q);
		HOLDS(sides[i].q == NULL);
		free(sides[i].buf);
		memset(&sides[i], 0, sizeof(sides[i]));
	}
	HOLDS(budget_heap(budget) == 0);
	HOLDS(budget_disk(budget) == 0);
	budget_free(&budget);
}

static bool
sides_new(uint64_t memory, uint64_t spill)
{
	int i;

	budget = budget_new(memory, spill, &ops);
	HOLDS(budget != NULL);
	for (i = 0; i < 2; i++) {
		sides[i].buf = malloc(BUF);
		sides[i].q = queue_new(budget);
	}
	if (sides[0].q != NULL && sides[1].q != NULL)
		return true;
	sides_free();
	return false;
}

/* Until a loss of memory: what is lost then is not in the reference. */
static void
run(uint64_t memory, uint64_t spill, int steps, uint32_t fullness)
{
	struct iovec iov[4];
	struct side *s = NULL;
	int i;

	next_id = 1;
	now = 1;
	if (!sides_new(memory, spill))
		return;
	for (i = 0; i < steps; i++) {
		s = &sides[any(4) == 0];
		step(s, fullness);
		if (queue_broken(s->q))
			break;
		verify(s, memory, spill);
	}
	for (s = sides; i == steps && s < sides + 2; s++)
		while (look(s, 4, iov) > 0)
			do_send(s);
	for (s = sides; s < sides + 2; s++) {
		ck_assert_ptr_null(queue_check(s->q));
		if (i == steps)
			HOLDS(s->n == 0 || queue_broken(s->q));
	}
	sides_free();
}

static const struct {
	uint64_t memory;
	uint64_t spill;
	uint32_t fullness; /* how much more often it is sent than the rest */
} budgets[] = {
	{ 0, 0, 3 }, { 2000, 0, 3 }, { 20000, 1 << 20, 3 },
	{ 100000, 0, 5 }, { 530000, 1 << 20, 5 }, { 560000, 1 << 20, 4 },
	{ 600000, 200000, 4 }, { 1 << 20, 0, 3 }, { 1 << 20, 3 << 20, 2 },
	{ 1 << 20, 8 << 20, 8 }, { 3 << 20, 8 << 20, 2 }, { 8 << 20, 0, 1 },
};
#define BUDGETS (int)(sizeof(budgets) / sizeof(budgets[0]))

START_TEST(random_runs)
{
	uint64_t i;

	for (i = 0; i < 6; i++) {
		seed = (uint64_t)_i * 1000 + i;
		reset();
		run(budgets[_i].memory, budgets[_i].spill, 1500,
		    budgets[_i].fullness);
	}
}
END_TEST

/* Every budget, a little larger each time: each refusal comes in its turn. */
START_TEST(every_memory)
{
	uint64_t memory;

	for (memory = (uint64_t)_i * 67; memory < 900000; memory += 10427) {
		seed = memory;
		reset();
		run(memory, 10 * SPILL_BLOCK, 60, 2);
	}
}
END_TEST

START_TEST(put_fails)
{
	seed = (uint64_t)_i;
	reset();
	puts_left = _i;
	run(1 << 20, 4 << 20, 700, 3);
}
END_TEST

START_TEST(get_fails)
{
	seed = (uint64_t)_i;
	reset();
	gets_left = _i;
	run(1 << 20, 4 << 20, 700, 3);
}
END_TEST

START_TEST(malloc_fails)
{
	int i;

	for (i = 0; i < 4; i++) {
		seed = (uint64_t)i;
		reset();
		mallocs_left = _i * 4 + i + 1;
		run(1 << 20, 4 << 20, 300, 3);
	}
}
END_TEST

/* All is on disk; the store breaks; what is there can still be read. */
START_TEST(readable_after_a_broken_put)
{
	struct side *s = &sides[0];
	struct frame_tag t;
	struct iovec iov[8];
	int i;

	reset();
	seed = 1;
	next_id = 1;
	puts_left = _i;
	ck_assert(sides_new(600000, 4 << 20));
	for (i = 0; i < 200; i++) {
		queue_open(s->q);
		s->open_id = next_id++;
		make(scratch, s->open_id, 0, 30000);
		if (queue_append(s->q, scratch, 30000) != 0) {
			queue_abort(s->q);
			continue;
		}
		s->open = 30000;
		t = tag_of(s->open_id);
		queue_seal(s->q, &t, now);
		insert(s, s->n, s->open_id, 30000);
		s->open = 0;
		verify(s, 600000, 4 << 20);
	}
	ck_assert(budget_store_broken(budget));
	ck_assert_int_eq(budget_store_errno(budget), ENOSPC);
	ck_assert_uint_ge(s->n, (size_t)_i * 2 + 5);
	while (look(s, 8, iov) > 0)
		do_send(s);
	ck_assert(!queue_broken(s->q));
	ck_assert_uint_eq(s->n, 0);
	sides_free();
}
END_TEST

/* Frames that adjoin in the buffer are one piece; nothing is allocated. */
START_TEST(borrow_is_one_piece)
{
	struct frame_tag t = tag_of(7);
	struct iovec iov[4];
	static unsigned char buf[60 * 4000];
	struct queue *q;
	uint64_t heap = 0;
	size_t i;
	int round;

	reset();
	budget = budget_new(32 << 20, 0, NULL);
	q = queue_new(budget);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 4000; i++)
			HOLDS(queue_borrow(q, buf + 60 * i, 60, &t, 1) == 0);
		ck_assert(round == 0 || budget_heap(budget) == heap);
		heap = budget_heap(budget);
		ck_assert_int_eq(queue_peek(q, iov, 4), 1);
		ck_assert_ptr_eq(iov[0].iov_base, buf);
		ck_assert_uint_eq(iov[0].iov_len, sizeof(buf));
		queue_sent(q, 90, 1, NULL, NULL);
		ck_assert_ptr_null(queue_check(q));
		ck_assert_int_eq(queue_peek(q, iov, 4), 1);
		ck_assert_ptr_eq(iov[0].iov_base, buf + 90);
		ck_assert(!queue_at_border(q));
		queue_sent(q, sizeof(buf) - 90, 1, NULL, NULL);
		ck_assert(queue_empty(q) && queue_at_border(q));
	}
	queue_free(&q);
	ck_assert_uint_eq(budget_heap(budget), 0);
	budget_free(&budget);
}
END_TEST

static uint32_t expected; /* the frame that must be finished next */

static void
in_order(void *arg, const struct frame_tag *t, uint64_t bytes, usec_t waited)
{
	(void)arg;
	(void)waited;
	HOLDS(t->ref == expected++);
	HOLDS(bytes == 30);
}

/*
 * Lent frames that never run out, in windows of several sizes, up to more
 * than the array may hold: none is lost and none comes twice.
 */
START_TEST(lent_without_end)
{
	static const uint32_t windows[] = { 1, 63, 64, 65, 127, 129, 1000,
		8191, 8192, 8193, 20000 };
	uint32_t window = windows[_i], lent = 0, k;
	struct frame_tag t;
	struct queue *q;

	reset();
	expected = 0;
	budget = budget_new(32 << 20, 0, NULL);
	q = queue_new(budget);
	for (k = 0; k < 10; k++) {
		for (; lent - expected < window; lent++) {
			t = tag_of(lent);
			HOLDS(queue_borrow(q, scratch + lent % 8000 * 30, 30,
			    &t, 1) == 0);
		}
		ck_assert_ptr_null(queue_check(q));
		queue_sent(q, 30 * (size_t)(window - window / 4), 1, in_order,
		    NULL);
		ck_assert_uint_eq(queue_frames(q), lent - expected);
	}
	queue_settle(q);
	ck_assert_ptr_null(queue_check(q));
	queue_sent(q, queue_bytes(q), 1, in_order, NULL);
	ck_assert_uint_eq(expected, lent);
	queue_free(&q);
	ck_assert_uint_eq(budget_heap(budget), 0);
	budget_free(&budget);
}
END_TEST

/* What has begun to leave stays as it is, and so does what is not open. */
START_TEST(sending_is_left_alone)
{
	struct frame_tag t = tag_of(1);
	struct frame *f;
	struct iovec iov[2];
	struct queue *q;

	reset();
	budget = budget_new(1 << 20, 0, NULL);
	q = queue_new(budget);
	ck_assert_int_eq(queue_append(q, "x", 1), -1);
	ck_assert_int_eq(queue_put(q, "abc", 3, &t, 1, false), 0);
	f = queue_first_unsent(q);
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(queue_peek(q, iov, 0), 0);
	queue_sent(q, 1, 1, NULL, NULL);
	ck_assert_ptr_null(queue_first_unsent(q));
	queue_drop(q, f);
	ck_assert_int_eq(queue_replace(q, f, "y", 1, &t), -1);
	ck_assert_int_eq(queue_put(q, "z", 1, &t, 1, true), 0);
	ck_assert_ptr_null(queue_check(q));
	ck_assert_int_eq(queue_peek(q, iov, 2), 2);
	ck_assert(memcmp(iov[0].iov_base, "bc", 2) == 0);
	ck_assert(memcmp(iov[1].iov_base, "z", 1) == 0);
	queue_free(&q);
	budget_free(&budget);
}
END_TEST

/* An OPEN frame comes after what is borrowed or put meanwhile. */
START_TEST(open_frame_stays_last)
{
	struct frame_tag t = tag_of(1);
	struct iovec iov[8];
	char out[16] = "";
	struct queue *q;
	int i, n;

	reset();
	budget = budget_new(1 << 20, 0, NULL);
	q = queue_new(budget);
	queue_open(q);
	ck_assert_int_eq(queue_append(q, "o", 1), 0);
	ck_assert_int_eq(queue_borrow(q, "b", 1, &t, 1), 0);
	ck_assert_int_eq(queue_append(q, "O", 1), 0);
	ck_assert_int_eq(queue_put(q, "p", 1, &t, 1, false), 0);
	ck_assert_int_eq(queue_borrow(q, "c", 1, &t, 1), 0);
	ck_assert_ptr_null(queue_check(q));
	queue_seal(q, &t, 1);
	ck_assert_int_eq(queue_put(q, "a", 1, &t, 1, true), 0);
	n = queue_peek(q, iov, 8);
	for (i = 0; i < n; i++)
		strncat(out, iov[i].iov_base, iov[i].iov_len);
	ck_assert_str_eq(out, "abpcoO");
	queue_free(&q);
	budget_free(&budget);
}
END_TEST

/* A frame in the middle gives its blocks back at once. */
START_TEST(drop_frees_blocks)
{
	struct frame_tag t = tag_of(1);
	struct frame *f;
	struct queue *q;
	uint64_t disk;
	int i, k;

	reset();
	budget = budget_new(600000, 8 << 20, &ops);
	q = queue_new(budget);
	for (i = 0; i < 4; i++) {
		queue_open(q);
		for (k = 0; k < 8; k++)
			ck_assert_int_eq(queue_append(q, scratch, BUF / 2), 0);
		queue_seal(q, &t, 1);
	}
	disk = budget_disk(budget);
	f = queue_next(queue_next(queue_first_unsent(q)));
	ck_assert_int_eq(queue_replace(q, f, "x", 1, &t), 0);
	ck_assert_uint_le(budget_disk(budget),
	    disk - 4 * BUF + 2 * SPILL_BLOCK);
	ck_assert_ptr_null(queue_check(q));
	queue_free(&q);
	ck_assert_uint_eq(budget_disk(budget), 0);
	budget_free(&budget);
}
END_TEST

static void
count_frame(void *arg, const struct frame_tag *t, uint64_t bytes,
    usec_t waited)
{
	uint64_t *n = arg;

	(void)bytes;
	(void)waited;
	*n += t->class == FRAME_OTHER;
}

/*
 * Frames nobody will look for fill the disk, however small they are, and
 * not the books; they leave in order, each counted; one that may be dropped
 * stands among them by itself.
 */
START_TEST(small_frames_fill_the_disk)
{
	const struct frame_tag other = { .class = FRAME_OTHER };
	const struct frame_tag log = { .class = FRAME_LOG };
	struct iovec iov[8];
	uint64_t put = 0, left = 0, got = 0;
	struct queue *q;
	char line[16];
	int n;

	reset();
	budget = budget_new(1 << 20, 4 << 20, &ops);
	q = queue_new(budget);
	for (;; put++) {
		snprintf(line, sizeof line, "%015u", (unsigned)put);
		queue_open(q);
		if (queue_append(q, line, 15) != 0)
			break;
		queue_seal(q, put == 100000 ? &log : &other, 1);
		if (put % 1000 == 0)
			HOLDS(queue_check(q) == NULL);
	}
	queue_abort(q);
	ck_assert_uint_gt(put * 15, 4 << 20);
	ck_assert_uint_eq(queue_frames(q), put);
	ck_assert_ptr_null(queue_check(q));
	while ((n = queue_peek(q, iov, 8)) > 0) {
		/* An odd number of bytes at once: runs are left half sent. */
		size_t k = iov[0].iov_len > 1001 ? 1001 : iov[0].iov_len;
		const char *p = iov[0].iov_base;

		for (size_t i = 0; i < k; i++, got++) {
			snprintf(line, sizeof line, "%015u",
			    (unsigned)(got / 15));
			if (p[i] != line[got % 15])
				ck_abort_msg("byte %zu is another",
				    (size_t)got);
		}
		queue_sent(q, k, 1, count_frame, &left);
	}
	ck_assert_uint_eq(got, put * 15);
	ck_assert_uint_eq(left, put - 1);
	ck_assert_uint_eq(queue_frames(q), 0);
	ck_assert_ptr_null(queue_check(q));
	queue_free(&q);
	ck_assert_uint_eq(budget_disk(budget), 0);
	budget_free(&budget);
}
END_TEST

/* A small frame is one allocation, and very many of them no trouble. */
START_TEST(many_small_frames)
{
	struct frame_tag t = tag_of(1);
	struct iovec iov[64];
	struct queue *q;
	uint64_t bytes = 0;
	int i, k, n;

	reset();
	budget = budget_new(256 << 20, 0, NULL);
	q = queue_new(budget);
	for (i = 0; i < MANY_SMALL; i++) {
		queue_open(q);
		HOLDS(queue_append(q, scratch, 60) == 0);
		queue_seal(q, &t, 1);
	}
	ck_assert_uint_le(budget_heap(budget), UINT64_C(160) * MANY_SMALL);
	while ((n = queue_peek(q, iov, 64)) > 0) {
		for (bytes = 0, k = 0; k < n; k++)
			bytes += iov[k].iov_len;
		queue_sent(q, bytes, 1, NULL, NULL);
	}
	ck_assert(queue_empty(q));
	queue_free(&q);
	ck_assert_uint_eq(budget_heap(budget), 0);
	budget_free(&budget);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("queue");
	TCase *t = tcase_create("queue");
	SRunner *r;
	int failed;

	pattern_make();
	tcase_set_timeout(t, 120);
	tcase_add_test(t, borrow_is_one_piece);
	tcase_add_loop_test(t, lent_without_end, 0, 11);
	tcase_add_test(t, sending_is_left_alone);
	tcase_add_test(t, open_frame_stays_last);
	tcase_add_test(t, drop_frees_blocks);
	tcase_add_test(t, many_small_frames);
	tcase_add_test(t, small_frames_fill_the_disk);
	tcase_add_loop_test(t, random_runs, 0, BUDGETS);
	tcase_add_loop_test(t, every_memory, 0, 8);
	tcase_add_loop_test(t, put_fails, 0, 40);
	tcase_add_loop_test(t, get_fails, 0, 40);
	tcase_add_loop_test(t, malloc_fails, 0, 40);
	tcase_add_loop_test(t, readable_after_a_broken_put, 0, 12);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
