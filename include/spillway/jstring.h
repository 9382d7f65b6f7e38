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

/* Does the raw body, unescaped, equal the ASCII word? Case-sensitive. */
bool jstring_is(const char *raw, size_t n, const char *word);

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
