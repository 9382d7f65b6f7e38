/* SPDX-License-Identifier: MIT */
/*
 * The budget by itself: that each share ends where it should and never a byte
 * later, that what is given back is whole, and that blocks of the store are
 * found lowest first, counted, and dropped with their last byte.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/budget_impl.h"

#define MANY 4096

static int puts_left; /* how many puts succeed */
static int gets_left;
static int drops;
static uint32_t dropped;

static int
fake_put(void *arg, uint32_t block, const void *bytes)
{
	(void)arg;
	(void)block;
	(void)bytes;
	errno = ENOSPC;
	return puts_left-- > 0 ? 0 : -1;
}

static int
fake_get(void *arg, uint32_t block, size_t off, void *to, size_t n)
{
	(void)arg;
	(void)block;
	(void)off;
	memset(to, 0, n);
	errno = EIO;
	return gets_left-- > 0 ? 0 : -1;
}

static void
fake_drop(void *arg, uint32_t block)
{
	(void)arg;
	drops++;
	dropped = block;
}

static const struct store_ops ops = { fake_put, fake_get, fake_drop, NULL };

static void
reset(void)
{
	puts_left = 1 << 30;
	gets_left = 1 << 30;
	drops = 0;
	dropped = BLOCK_NONE;
}

static const struct {
	uint64_t memory;
	uint64_t spill;
} sizes[] = {
	{ 0, 0 }, { 1, 0 }, { 100, 65536 }, { 4096, 0 }, { 65536, 65536 },
	{ 1 << 20, 0 }, { 1 << 20, 1 << 20 }, { 32 << 20, 256 << 20 },
	{ 5000000, 65535 },
};
#define SIZES (int)(sizeof(sizes) / sizeof(sizes[0]))

/* Fill a share with pieces of n; how much heap is charged then. */
static uint64_t
fill(struct budget *b, enum budget_share share, size_t n, void **p, int *have)
{
	while (*have < MANY &&
	    (p[*have] = budget_alloc(b, share, n)) != NULL)
		++*have;
	return budget_heap(b);
}

START_TEST(shares_end)
{
	uint64_t memory = sizes[_i].memory;
	uint64_t data, books, all;
	size_t n = memory / 1000 + 1;
	static void *p[MANY];
	struct budget *b;
	int have = 0;

	reset();
	b = budget_new(memory, sizes[_i].spill, &ops);
	ck_assert_ptr_nonnull(b);
	data = fill(b, BUDGET_DATA, n, p, &have);
	books = fill(b, BUDGET_BOOKS, n, p, &have);
	all = fill(b, BUDGET_RESERVE, n, p, &have);
	ck_assert_int_lt(have, MANY);
	ck_assert_uint_le(data, books);
	ck_assert_uint_le(books, all);
	ck_assert_uint_le(all, memory);
	ck_assert_uint_le(memory - all, budget_cost(n));
	ck_assert_uint_eq(budget_room(b), 0);
	if (memory >= 65536) {
		ck_assert_uint_lt(books, all);
		ck_assert_uint_lt(data, books);
	}
	ck_assert_uint_eq(budget_heap_peak(b), all);
	while (have > 0)
		budget_release(b, p[--have]);
	ck_assert_uint_eq(budget_heap(b), 0);
	ck_assert_uint_eq(budget_heap_peak(b), all);
	budget_free(&b);
	ck_assert_ptr_null(b);
}
END_TEST

START_TEST(the_edge_is_sharp)
{
	/* half is reserve, an eighth books, of which an eighth is kept */
	const size_t end = 100000 - 50000 - 12500 / 8;
	struct budget *b = budget_new(100000, 0, NULL);
	size_t n, last = 0;
	void *p;

	for (n = 48000; n < 100100; n++) {
		p = budget_alloc(b, BUDGET_DATA, n);
		if (p == NULL)
			continue;
		last = n;
		ck_assert_uint_eq(budget_heap(b), budget_charge(p));
		ck_assert_uint_le(budget_heap(b), end);
		budget_release(b, p);
	}
	ck_assert_uint_gt(last, end - 64);
	ck_assert_ptr_null(budget_alloc(b, BUDGET_RESERVE, SIZE_MAX));
	ck_assert_ptr_null(budget_alloc(b, BUDGET_RESERVE, SIZE_MAX - 15));
	ck_assert_uint_eq(budget_heap(b), 0);
	budget_free(&b);
}
END_TEST

START_TEST(resize_is_charged)
{
	struct budget *b = budget_new(200000, 0, NULL);
	unsigned char *p = NULL, *r;
	size_t n, had = 0, i;

	for (n = 1; n < 300000; n = n * 5 / 4 + 1) {
		r = budget_resize(b, BUDGET_DATA, p, n);
		if (r == NULL) {
			ck_assert_uint_gt(n, 100000 - 8192);
			break;
		}
		p = r;
		for (i = 0; i < had; i++)
			ck_assert(p[i] == (unsigned char)i);
		for (i = 0; i < n; i++)
			p[i] = (unsigned char)i;
		had = n;
		ck_assert_uint_eq(budget_heap(b), budget_charge(p));
		ck_assert_uint_le(budget_heap(b), 100000);
	}
	ck_assert_uint_lt(n, 300000);
	ck_assert_ptr_null(budget_resize(b, BUDGET_DATA, p, SIZE_MAX - 8));
	ck_assert_uint_eq(budget_heap(b), budget_charge(p));
	for (n = had; n > 0; n /= 3) {
		p = budget_resize(b, BUDGET_DATA, p, n);
		ck_assert_ptr_nonnull(p);
		ck_assert(p[n - 1] == (unsigned char)(n - 1));
		ck_assert_uint_eq(budget_heap(b), budget_charge(p));
	}
	budget_release(b, p);
	budget_release(b, NULL);
	ck_assert_uint_eq(budget_heap(b), 0);
	budget_free(&b);
}
END_TEST

START_TEST(promises_are_kept)
{
	struct budget *b = budget_new(1 << 20, 1 << 20, &ops);
	uint64_t left = budget_data_left(b);
	static void *p[MANY];
	int have = 0;

	reset();
	ck_assert(!budget_promise(b, left + 1));
	ck_assert(budget_promise(b, left));
	ck_assert(!budget_promise(b, 1));
	ck_assert_uint_eq(budget_data_left(b), 0);
	ck_assert_ptr_null(budget_alloc(b, BUDGET_DATA, 1));
	fill(b, BUDGET_RESERVE, 1000, p, &have);
	ck_assert_uint_le(budget_heap(b), (1 << 20) - left);
	budget_unpromise(b, left);
	ck_assert_ptr_nonnull(p[have] =
	    budget_alloc(b, BUDGET_RESERVE, left - 64));
	while (have >= 0)
		budget_release(b, p[have--]);
	ck_assert_uint_eq(budget_heap(b), 0);
	ck_assert_uint_eq(budget_data_left(b), left);
	budget_free(&b);
}
END_TEST

static const uint32_t counts[] = { 1, 2, 63, 64, 65, 127, 128, 129, 200, 1000 };
#define COUNTS (int)(sizeof(counts) / sizeof(counts[0]))

/* Take all; free every third; the lowest free ones come again, in order. */
START_TEST(blocks_lowest_first)
{
	uint32_t n = counts[_i], i;
	struct budget *b = budget_new(4 << 20,
	    (uint64_t)n * SPILL_BLOCK + (n % 2) * (SPILL_BLOCK - 1), &ops);

	reset();
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(budget_block_take(b), i);
		budget_block_live(b, i, 10);
		ck_assert_int_eq(budget_block_put(b, i, NULL), 0);
		budget_block_unhold(b, i);
	}
	ck_assert_uint_eq(budget_block_take(b), BLOCK_NONE);
	ck_assert_uint_eq(budget_disk(b), (uint64_t)n * SPILL_BLOCK);
	for (i = 0; i < n; i += 3) {
		ck_assert(!budget_block_dead(b, n - 1 - i, 9));
		ck_assert(budget_block_dead(b, n - 1 - i, 1));
		ck_assert_uint_eq(dropped, n - 1 - i);
	}
	ck_assert_int_eq(drops, (int)((n + 2) / 3));
	for (i = n % 3 == 0 ? 2 : n % 3 - 1; i < n; i += 3) {
		ck_assert_uint_eq(budget_block_take(b), i);
		budget_block_live(b, i, 10);
		budget_block_unhold(b, i);
	}
	ck_assert_uint_eq(budget_block_take(b), BLOCK_NONE);
	for (i = 0; i < n; i++)
		ck_assert(budget_block_dead(b, i, 10));
	/* Those taken again were never put again: nothing to drop. */
	ck_assert_int_eq(drops, (int)n);
	ck_assert_uint_eq(budget_disk(b), 0);
	ck_assert_uint_eq(budget_disk_peak(b), (uint64_t)n * SPILL_BLOCK);
	ck_assert_uint_eq(budget_heap(b), 0);
	budget_free(&b);
}
END_TEST

/* A held block stays although nothing lives in it. */
START_TEST(held_blocks_stay)
{
	struct budget *b = budget_new(1 << 20, 1 << 20, &ops);
	uint32_t k;

	reset();
	k = budget_block_take(b);
	budget_block_live(b, k, SPILL_BLOCK);
	ck_assert(budget_block_dead(b, k, SPILL_BLOCK));
	ck_assert_uint_eq(budget_disk(b), SPILL_BLOCK);
	budget_block_live(b, k, 1);
	ck_assert_int_eq(budget_block_put(b, k, NULL), 0);
	budget_block_unhold(b, k);
	ck_assert_uint_eq(budget_disk(b), SPILL_BLOCK);
	ck_assert_int_eq(drops, 0);
	ck_assert(budget_block_dead(b, k, 1));
	ck_assert_int_eq(drops, 1);
	k = budget_block_take(b);
	budget_block_unhold(b, k);
	ck_assert_int_eq(drops, 1);
	ck_assert_uint_eq(budget_disk(b), 0);
	budget_free(&b);
}
END_TEST

/* No books for the tables: no block, and nothing changed. */
START_TEST(tables_need_books)
{
	struct budget *b = budget_new(600000, UINT64_C(1) << 40, &ops);
	static void *p[MANY];
	uint64_t heap;
	uint32_t n = 0, i;
	int have = 0;

	reset();
	fill(b, BUDGET_DATA, 1000, p, &have);
	while ((i = budget_block_take(b)) != BLOCK_NONE) {
		ck_assert_uint_eq(i, n);
		n++;
	}
	heap = budget_heap(b);
	ck_assert_uint_gt(n, 64);
	ck_assert_uint_eq(budget_block_take(b), BLOCK_NONE);
	ck_assert_uint_eq(budget_heap(b), heap);
	while (n > 0)
		budget_block_unhold(b, --n);
	while (have > 0)
		budget_release(b, p[--have]);
	ck_assert_uint_eq(budget_heap(b), 0);
	budget_free(&b);
}
END_TEST

/* The store fails: no more of it, and its books go to the data. */
START_TEST(broken_store)
{
	struct budget *b = budget_new(1 << 20, 1 << 20, &ops);
	uint64_t left = budget_data_left(b);
	uint64_t room = budget_room(b);
	uint32_t k;
	char byte;

	reset();
	ck_assert(!budget_store_broken(b));
	k = budget_block_take(b);
	budget_block_live(b, k, 1);
	if (_i == 0) {
		puts_left = 0;
		ck_assert_int_eq(budget_block_put(b, k, NULL), -1);
		ck_assert_int_eq(budget_store_errno(b), ENOSPC);
	} else {
		gets_left = 0;
		ck_assert_int_eq(budget_block_put(b, k, NULL), 0);
		ck_assert_int_eq(budget_block_get(b, k, 0, &byte, 1), -1);
		ck_assert_int_eq(budget_store_errno(b), EIO);
	}
	ck_assert(budget_store_broken(b));
	ck_assert_uint_eq(budget_block_take(b), BLOCK_NONE);
	ck_assert_uint_gt(budget_data_left(b), left);
	ck_assert_uint_lt(budget_room(b), room);
	ck_assert_uint_gt(budget_room(b), 0);
	budget_block_unhold(b, k);
	ck_assert(budget_block_dead(b, k, 1));
	ck_assert_int_eq(drops, 1);
	ck_assert_uint_eq(budget_heap(b), 0);
	budget_free(&b);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("budget");
	TCase *t = tcase_create("budget");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, shares_end, 0, SIZES);
	tcase_add_test(t, the_edge_is_sharp);
	tcase_add_test(t, resize_is_charged);
	tcase_add_test(t, promises_are_kept);
	tcase_add_loop_test(t, blocks_lowest_first, 0, COUNTS);
	tcase_add_test(t, held_blocks_stay);
	tcase_add_test(t, tables_need_books);
	tcase_add_loop_test(t, broken_store, 0, 2);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
