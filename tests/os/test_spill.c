/* SPDX-License-Identifier: MIT */
/*
 * The spill file on a real file system: no name, nobody else's, what is put
 * comes back, what is dropped is given back, and it can still be opened when
 * descriptors have run out. A full disk is played by RLIMIT_FSIZE.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "spillway/queue.h"
#include "spillway/spill.h"

#define FDS 64

static unsigned char block[SPILL_BLOCK];
static unsigned char back[SPILL_BLOCK];
static char err[512];
static bool ours[FDS]; /* not open when the test began */

static void
fill(uint32_t salt)
{
	size_t i;

	for (i = 0; i < sizeof(block); i++)
		block[i] = (unsigned char)(salt * 101u + i * 7u + (i >> 8));
}

/* Before each test. */
static void
note_fds(void)
{
	int i;

	for (i = 0; i < FDS; i++)
		ours[i] = fcntl(i, F_GETFD) < 0;
}

static struct spill *
made(const char *dir)
{
	struct spill *s = spill_new(dir, err, sizeof(err));

	ck_assert_msg(s != NULL, "%s", err);
	ck_assert_str_eq(err, "");
	return s;
}

/*
 * How many descriptors below FDS are open; which of those opened by the test
 * is a file without a name, and its state.
 */
static int
count_fds(struct stat *file, int *fd)
{
	struct stat st;
	int i, n = 0;

	for (i = 0; i < FDS; i++) {
		if (fstat(i, &st) != 0)
			continue;
		n++;
		if (ours[i] && S_ISREG(st.st_mode) && st.st_nlink == 0 &&
		    fd != NULL) {
			*file = st;
			*fd = i;
		}
	}
	return n;
}

START_TEST(what_is_put_comes_back)
{
	static const size_t offs[] = { 0, 1, 4095, 4096, 65535 };
	struct spill *s = made(NULL);
	struct store_ops o = spill_ops(s);
	uint32_t k;
	size_t i, n;

	for (k = 0; k < 40; k += 3) {
		fill(k);
		ck_assert_int_eq(o.put(o.arg, k, block), 0);
	}
	for (k = 0; k < 40; k += 3) {
		fill(k);
		for (i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
			n = SPILL_BLOCK - offs[i];
			ck_assert_int_eq(o.get(o.arg, k, offs[i], back, n), 0);
			ck_assert(memcmp(back, block + offs[i], n) == 0);
		}
	}
	/* Behind the end of the file there is nothing. */
	errno = 0;
	ck_assert_int_eq(o.get(o.arg, 40, 0, back, 1), -1);
	ck_assert_int_eq(errno, EIO);
	spill_free(&s);
	ck_assert_ptr_null(s);
}
END_TEST

START_TEST(unnamed_and_private)
{
	struct spill *s;
	struct store_ops o;
	struct stat st;
	int before, fd = -1;

	umask(0);
	before = count_fds(&st, NULL);
	s = made(_i == 0 ? NULL : "/var/tmp");
	o = spill_ops(s);
	ck_assert_int_eq(count_fds(&st, &fd), before + 1);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_eq(o.get(o.arg, 0, 0, back, 1), -1);
	ck_assert_int_eq(o.put(o.arg, 0, block), 0);
	ck_assert_int_eq(count_fds(&st, &fd), before + 1);
	ck_assert_int_ge(fd, 3);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	spill_free(&s);
	ck_assert_int_eq(count_fds(&st, NULL), before);
}
END_TEST

/* With stdin closed the descriptor is not 0. */
START_TEST(not_a_standard_stream)
{
	struct spill *s;
	struct store_ops o;
	struct stat st;
	int fd = -1;

	close(0);
	s = made(NULL);
	ck_assert_int_lt(fcntl(0, F_GETFD), 0);
	o = spill_ops(s);
	ck_assert_int_eq(o.put(o.arg, 0, block), 0);
	ck_assert_int_lt(fcntl(0, F_GETFD), 0);
	count_fds(&st, &fd);
	ck_assert_int_ge(fd, 3);
	spill_free(&s);
}
END_TEST

START_TEST(opens_without_descriptors)
{
	struct rlimit lim = { FDS, FDS };
	struct spill *s = made(NULL);
	struct store_ops o = spill_ops(s);

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	while (dup(2) >= 0)
		;
	ck_assert_int_eq(errno, EMFILE);
	fill(5);
	ck_assert_int_eq(o.put(o.arg, 5, block), 0);
	ck_assert_int_eq(o.get(o.arg, 5, 0, back, sizeof(back)), 0);
	ck_assert(memcmp(back, block, sizeof(back)) == 0);
	ck_assert_int_eq(dup(2), -1);
	spill_free(&s);
}
END_TEST

/* All dropped, in whatever order: no more than a run is still on disk. */
START_TEST(dropped_is_given_back)
{
	struct spill *s = made(NULL);
	struct store_ops o = spill_ops(s);
	struct stat st;
	int fd = -1;
	uint32_t k, n = 64, at;

	for (k = 0; k < n; k++) {
		fill(k);
		ck_assert_int_eq(o.put(o.arg, k, block), 0);
	}
	count_fds(&st, &fd);
	ck_assert_int_ge(st.st_blocks, (blkcnt_t)n * SPILL_BLOCK / 512);
	for (k = 0; k < n; k++) {
		at = _i == 0 ? k : _i == 1 ? n - 1 - k : k * 37 % n;
		if (at % 8 == 5)
			continue;
		o.drop(o.arg, at);
	}
	count_fds(&st, &fd);
	ck_assert_int_le(st.st_blocks,
	    (blkcnt_t)(n / 8 + 16) * SPILL_BLOCK / 512 + 16);
	for (k = 5; k < n; k += 8) {
		fill(k);
		ck_assert_int_eq(o.get(o.arg, k, 0, back, sizeof(back)), 0);
		ck_assert(memcmp(back, block, sizeof(back)) == 0);
	}
	spill_free(&s);
}
END_TEST

/* A block put again must survive the punching of its neighbours. */
START_TEST(put_again_survives)
{
	struct spill *s = made(NULL);
	struct store_ops o = spill_ops(s);
	uint32_t k, again = (uint32_t)_i;

	for (k = 0; k < 40; k++)
		ck_assert_int_eq(o.put(o.arg, k, block), 0);
	for (k = 0; k < 10; k++)
		o.drop(o.arg, k);
	fill(again);
	ck_assert_int_eq(o.put(o.arg, again, block), 0);
	for (k = 10; k < 40; k++)
		if (k != again)
			o.drop(o.arg, k);
	ck_assert_int_eq(o.get(o.arg, again, 0, back, sizeof(back)), 0);
	ck_assert(memcmp(back, block, sizeof(back)) == 0);
	spill_free(&s);
}
END_TEST

/* The disk is full in the middle of a block. */
START_TEST(full_disk_is_an_error)
{
	struct rlimit lim = { 3 * SPILL_BLOCK + 1000, RLIM_INFINITY };
	struct spill *s = made(NULL);
	struct store_ops o = spill_ops(s);
	uint32_t k;

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	for (k = 0; k < 3; k++) {
		fill(k);
		ck_assert_int_eq(o.put(o.arg, k, block), 0);
	}
	ck_assert_int_eq(o.put(o.arg, 3, block), -1);
	ck_assert_int_eq(errno, EFBIG);
	for (k = 0; k < 3; k++) {
		fill(k);
		ck_assert_int_eq(o.get(o.arg, k, 0, back, sizeof(back)), 0);
		ck_assert(memcmp(back, block, sizeof(back)) == 0);
	}
	o.drop(o.arg, 3);
	spill_free(&s);
}
END_TEST

START_TEST(wrong_directory_is_told)
{
	static const char *const wrong[] = {
		"/nonexistent", "/proc", "", "/dev/null",
	};
	char small[8] = "xxxxxxx";

	ck_assert_ptr_null(spill_new(wrong[_i], err, sizeof(err)));
	ck_assert_ptr_nonnull(strstr(err, wrong[_i]));
	ck_assert_ptr_nonnull(strstr(err, ": "));
	ck_assert_ptr_null(strchr(err, '\n'));
	ck_assert_ptr_null(spill_new(wrong[_i], small, sizeof(small)));
	ck_assert_uint_lt(strlen(small), sizeof(small));
	ck_assert_ptr_null(spill_new(wrong[_i], NULL, 0));
}
END_TEST

/* A tmpfs is taken only when it is named. */
START_TEST(tmpfs_only_when_named)
{
	struct spill *s;
	struct store_ops o;
	struct statfs fs;

	if (statfs("/dev/shm", &fs) != 0 || fs.f_type != 0x01021994 ||
	    access("/dev/shm", W_OK) != 0)
		return;
	s = made("/dev/shm");
	o = spill_ops(s);
	ck_assert_int_eq(o.put(o.arg, 0, block), 0);
	spill_free(&s);
	/* With TMPDIR there, it is /var/tmp that serves. */
	setenv("TMPDIR", "/dev/shm", 1);
	s = spill_new(NULL, err, sizeof(err));
	if (s == NULL)
		ck_assert_ptr_nonnull(strstr(err, "tmpfs"));
	spill_free(&s);
}
END_TEST

static void
add_frame(struct queue *q, uint32_t salt)
{
	struct frame_tag t = { .class = FRAME_OTHER, .ref = salt };

	fill(salt);
	queue_open(q);
	ck_assert_int_eq(queue_append(q, block, sizeof(block) - salt), 0);
	queue_seal(q, &t, 1);
}

/* The whole of it: a queue whose frames lie in the file. */
START_TEST(a_queue_behind_it)
{
	struct spill *s = made(NULL);
	struct store_ops o = spill_ops(s);
	struct budget *b = budget_new(1 << 20, 8 << 20, &o);
	struct queue *q = queue_new(b);
	struct iovec v;
	uint32_t k;
	size_t off, n;

	for (k = 0; k < 100; k++)
		add_frame(q, k);
	ck_assert_uint_gt(budget_disk(b), 5u << 20);
	for (k = 0; k < 100; k++) {
		fill(k);
		for (off = 0; off < sizeof(block) - k; off += n) {
			ck_assert_int_eq(queue_peek(q, &v, 1), 1);
			n = sizeof(block) - k - off;
			n = v.iov_len < n ? v.iov_len : n;
			ck_assert(memcmp(v.iov_base, block + off, n) == 0);
			queue_sent(q, n, 2, NULL, NULL);
		}
		ck_assert_ptr_null(queue_check(q));
	}
	ck_assert(queue_empty(q));
	queue_free(&q);
	ck_assert_uint_eq(budget_heap(b), 0);
	budget_free(&b);
	spill_free(&s);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("spill");
	TCase *t = tcase_create("spill");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, note_fds, NULL);
	tcase_add_test(t, what_is_put_comes_back);
	tcase_add_loop_test(t, unnamed_and_private, 0, 2);
	tcase_add_test(t, not_a_standard_stream);
	tcase_add_test(t, opens_without_descriptors);
	tcase_add_loop_test(t, dropped_is_given_back, 0, 3);
	tcase_add_loop_test(t, put_again_survives, 0, 12);
	tcase_add_test(t, full_disk_is_an_error);
	tcase_add_loop_test(t, wrong_directory_is_told, 0, 4);
	tcase_add_test(t, tmpfs_only_when_named);
	tcase_add_test(t, a_queue_behind_it);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
