/* SPDX-License-Identifier: MIT */
/*
 * JSON string bodies as they stand between the quotes (RFC 8259 section 7):
 * compare, decode, escape. Input is valid per scan.h; lone surrogate escapes
 * decode to their three-byte WTF-8 form, so that they still compare.
 */
#ifndef SPILLWAY_JSTRING_H
#define SPILLWAY_JSTRING_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* One unit of a body: the bytes it stands for; used 0 means clipped. */
struct jstring_unit {
	size_t used;
	size_t len;
	char bytes[4];
	bool high; /* a high surrogate whose other half does not follow */
};

/* The escape at p, its backslash first; n > 0 bytes are there. */
struct jstring_unit jstring_escape_at(const char *p, size_t n);

/* Value of a hex digit of either case, or -1. */
int jstring_hex(char);

/* Has the raw body escapes, and equals the ASCII word without them? */
bool jstring_spells(const char *raw, size_t n, const char *word);

/*
 * Does the raw body, unescaped, equal the ASCII word? Case-sensitive. In
 * line, for nearly all bodies are plain: an escape is longer than what it
 * stands for, so that only a longer body can be the word in other spelling.
 */
static inline bool
jstring_is(const char *raw, size_t n, const char *word)
{
	size_t len = strlen(word);

	if (n == len)
		return memcmp(raw, word, len) == 0;
	return n > len && jstring_spells(raw, n, word);
}

/* Does it start with the ASCII word? */
bool jstring_starts(const char *raw, size_t n, const char *word);

/*
 * Decode raw into out (cap bytes, no NUL added; cap >= n always suffices).
 * Returns the decoded length, also if that is more than cap (then out holds
 * the first cap bytes).
 */
size_t jstring_decode(const char *raw, size_t n, char *out, size_t cap);

/*
 * Escape plain UTF-8 text for use between quotes: quote, backslash and
 * control bytes; ill-formed UTF-8 becomes U+FFFD. Never ends inside an
 * escape or a sequence. Returns the length written, at most cap.
 */
size_t jstring_escape(const char *text, size_t n, char *out, size_t cap);

#endif
