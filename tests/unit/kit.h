/* SPDX-License-Identifier: MIT */
/*
 * What several unit tests need: bytes that end where memory ends, and one
 * input fed in every way it may be cut. It knows nothing of what is tested.
 */
#ifndef KIT_H
#define KIT_H

#include <stddef.h>
#include <stdint.h>

/* The test has failed. */
void kit_fail(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));

/*
 * n bytes, a copy of bytes (NULL: zeros), with an unreadable page behind.
 * kit_unguard() takes the same n. Fails the test if there is no memory.
 */
char *kit_guard(const void *bytes, size_t n);
void kit_unguard(char *p, size_t n);

/*
 * A reader of streams. One run is start, feed any number of times, finish;
 * how says in words how the input was cut, for messages. What is fed is gone
 * after the call: its memory is overwritten with the next piece.
 */
struct kit_reader {
	void (*start)(void *arg);
	void (*feed)(void *arg, const char *p, size_t n);
	void (*finish)(void *arg, const char *how);
	void *arg;
};

/*
 * Run r over the input whole, byte by byte, in threes, and cut in two at
 * every position (of a long input, at every one near its ends and at some in
 * between). The first run is the whole one.
 */
void kit_every_split(const struct kit_reader *r, const void *bytes, size_t n);

/* A small generator, the same on every machine; *state must not be 0. */
uint32_t kit_random(uint64_t *state);
uint32_t kit_below(uint64_t *state, uint32_t n);

/* Content of a file below the test data (SPILLWAY_TESTDATA or tests/data). */
char *kit_data_path(const char *name);
char *kit_read_file(const char *path, size_t *n);

#endif
