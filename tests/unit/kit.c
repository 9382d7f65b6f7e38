/* SPDX-License-Identifier: MIT */
/*
 * See kit.h. Guarded memory is whole pages and one more, PROT_NONE; the bytes
 * lie at the end of the readable ones.
 */
#include "kit.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EDGE 160 /* of a long input: cut at every byte so far from its ends */
#define STRIDE 61

void
kit_fail(const char *fmt, ...)
{
	char text[1400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ck_abort_msg("%s", text);
	abort(); /* not reached */
}

static size_t
readable(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page) / page * page;
}

char *
kit_guard(const void *bytes, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = readable(n);
	char *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + room, page, PROT_NONE) != 0)
		ck_abort_msg("no guarded memory");
	if (bytes != NULL && n > 0)
		memcpy(p + room - n, bytes, n);
	return p + room - n;
}

void
kit_unguard(char *p, size_t n)
{
	size_t room = readable(n);

	munmap(p + n - room, room + (size_t)sysconf(_SC_PAGESIZE));
}

/* One run with pieces of the given sizes, the last one repeated. */
static void
run(const struct kit_reader *r, const char *bytes, size_t n, char *end,
    size_t first, size_t rest)
{
	char how[64];
	size_t at = 0;
	size_t piece = first;

	snprintf(how, sizeof(how), "cut at %zu, then every %zu", first, rest);
	r->start(r->arg);
	do {
		if (piece > n - at)
			piece = n - at;
		if (piece > 0)
			memcpy(end - piece, bytes + at, piece);
		r->feed(r->arg, end - piece, piece);
		memset(end - piece, '#', piece);
		at += piece;
		piece = rest;
	} while (at < n);
	r->finish(r->arg, how);
}

void
kit_every_split(const struct kit_reader *r, const void *bytes, size_t n)
{
	char *room = kit_guard(NULL, n);
	char *end = room + n;

	run(r, bytes, n, end, n, n);
	run(r, bytes, n, end, 1, 1);
	run(r, bytes, n, end, 3, 3);
	for (size_t cut = 0; cut < n; cut++) {
		run(r, bytes, n, end, cut, n);
		if (cut >= EDGE && cut + EDGE + STRIDE < n)
			cut += STRIDE - 1;
	}
	kit_unguard(room, n);
}

/* xorshift64* */
uint32_t
kit_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)((*state * UINT64_C(2685821657736338717)) >> 32);
}

uint32_t
kit_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(((uint64_t)kit_random(state) * n) >> 32);
}

char *
kit_data_path(const char *name)
{
	const char *top = getenv("SPILLWAY_TESTDATA");
	char *path = NULL;

	if (asprintf(&path, "%s/%s", top != NULL ? top : "tests/data",
	    name) < 0)
		ck_abort_msg("no memory");
	return path;
}

char *
kit_read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	size_t room = 4096;
	char *bytes = malloc(room);

	ck_assert_msg(f != NULL, "cannot open %s", path);
	*n = 0;
	while (bytes != NULL) {
		*n += fread(bytes + *n, 1, room - *n, f);
		if (*n < room)
			break;
		room *= 2;
		char *more = realloc(bytes, room);

		if (more == NULL)
			free(bytes);
		bytes = more;
	}
	ck_assert_msg(bytes != NULL && !ferror(f), "cannot read %s", path);
	fclose(f);
	return bytes;
}
