/* SPDX-License-Identifier: MIT */
/*
 * What the files of the scanner share: its states, the few lines that each of
 * them needs in line, and the interface to the kernels that skip string
 * bodies. Nobody else includes this.
 */
#ifndef SPILLWAY_SCAN_IMPL_H
#define SPILLWAY_SCAN_IMPL_H

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "spillway/scan.h"

enum state {
	S_TEXT,	      /* white space before the text */
	S_VALUE,      /* a value must come */
	S_FIRST_ITEM, /* or ']' */
	S_FIRST_KEY,  /* a member name or '}' */
	S_KEY,	      /* a member name must come */
	S_COLON,
	S_AFTER, /* ',' or the bracket's end */
	S_STRING,
	S_ESCAPE, /* behind a backslash */
	S_HEX,	  /* within \uXXXX */
	S_UTF8,	  /* within a sequence */
	S_NUMBER,
	S_LITERAL,
	S_DEEP, /* beyond max_depth, outside strings */
	/* after scan_tolerate() */
	S_LOOSE,
	S_LOOSE_STRING,
	S_LOOSE_ESCAPE,
	S_LOOSE_SCALAR,
};

/* What scan_tolerate() takes the next token for. */
enum expect {
	EXPECT_NOTHING,
	EXPECT_KEY,
	EXPECT_VALUE,
};

/*
 * A kernel. skip() returns a place up to which [p, end) is the inside of a
 * string and well-formed: no quote, no part of an escape or of a UTF-8
 * sequence left over. There stands the closing quote, or something that it
 * does not know, within stride bytes, or too little is left for it.
 */
struct scan_body {
	const char *name;
	const char *(*skip)(const char *p, const char *end);
	size_t stride;
};

const struct scan_body *scan_body_chosen(void);

/*
 * Read on in a string (S_STRING). Stops at the closing quote, at end, with
 * another state, or with another status.
 */
const char *scan_string(struct scan *s, const char *p, const char *end);
const char *scan_escape(struct scan *s, const char *p);
const char *scan_hex(struct scan *s, const char *p);
const char *scan_utf8(struct scan *s, const char *p);

/* Read on in one of the loose states. */
const char *scan_loose(struct scan *s, const char *p, const char *end);

void scan_tell_end(struct scan *s, enum scan_event e, const char *p);

static inline uint64_t
scan_offset(const struct scan *s, const char *p)
{
	return s->off + (uint64_t)(p - s->base);
}

static inline void
scan_tell(struct scan *s, enum scan_event e, const char *p)
{
	if (s->depth <= s->watch)
		s->sink.event(s->sink.arg, s, e, scan_offset(s, p));
}

/* A string or scalar begins at p, its raw bytes at mark. */
static inline void
scan_token(struct scan *s, enum scan_event e, const char *p, const char *mark)
{
	s->telling = s->depth <= s->watch;
	if (!s->telling)
		return;
	s->mark = mark;
	s->kept = 0;
	s->token_cut = false;
	s->from = scan_offset(s, p);
	if (!s->sink.ends_only)
		s->sink.event(s->sink.arg, s, e, s->from);
}

/* The token, whose bytes end before p, is over. */
static inline void
scan_token_end(struct scan *s, enum scan_event e, const char *p)
{
	if (s->telling)
		scan_tell_end(s, e, p);
}

/* The byte at p has no place here. */
static inline const char *
scan_bad(struct scan *s, const char *p)
{
	s->status = *p == '\n' && !s->lf_is_space ? SCAN_LF : SCAN_FAULT;
	return p;
}

static inline bool
scan_bit(const struct scan *s, uint32_t depth)
{
	return (s->stack[depth / 8] >> (depth % 8)) & 1;
}

/* One more container, within max_depth. */
static inline void
scan_push(struct scan *s, bool object)
{
	uint8_t bit = (uint8_t)(1u << (s->depth % 8));
	uint8_t *byte = &s->stack[s->depth / 8];

	*byte = (uint8_t)(object ? *byte | bit : *byte & ~bit);
	s->depth++;
	s->in_object = object;
}

static inline void
scan_pop(struct scan *s)
{
	s->depth--;
	s->in_object = s->depth > 0 && scan_bit(s, s->depth - 1);
}

static inline uint64_t
scan_load(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

/*
 * Nonzero if one of eight bytes is a quote, a backslash, below 0x20 or above
 * 0x7f; its lowest set bit then belongs to the lowest of these bytes.
 */
static inline uint64_t
scan_special(uint64_t w)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t quote = w ^ (ones * '"');
	uint64_t slash = w ^ (ones * '\\');

	return (((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
	    ((w - ones * 0x20) & ~w) | w) & (ones * 0x80);
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SCAN_LITTLE_ENDIAN 1
#else
#define SCAN_LITTLE_ENDIAN 0
#endif

/*
 * The same for short strings: up to 32 bytes, in line. Returns a place up to
 * which there is nothing special, exact where that comes cheap.
 */
static inline const char *
scan_short(const char *p, const char *end)
{
#if defined(__SSE2__)
	for (int i = 0; i < 2 && end - p >= 16; i++, p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)p);
		__m128i any = _mm_or_si128(
		    _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)), _mm_or_si128(
		    _mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
		    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))));
		int mask = _mm_movemask_epi8(any);

		if (mask != 0)
			return p + __builtin_ctz((unsigned)mask);
	}
#else
	for (int i = 0; i < 4 && end - p >= 8; i++, p += 8) {
		uint64_t mask = scan_special(scan_load(p));

		if (mask != 0 && SCAN_LITTLE_ENDIAN)
			return p + __builtin_ctzll(mask) / 8;
		if (mask != 0)
			return p;
	}
#endif
	return p;
}

#endif
