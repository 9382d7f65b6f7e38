/* SPDX-License-Identifier: MIT */
/*
 * structuredContent for the cut: kept whole while it is small enough, else
 * its arrays are shortened at whole elements, the longest first, so that what
 * stands beside and behind them stays. Only outermost arrays are shortened;
 * their elements are kept or left out as they are.
 *
 * While it arrives, up to twice the limit is kept. When that is full, arrays
 * are shortened to a common width, which later ones are held to from their
 * first byte: it only shrinks, so the work stays proportional to the input.
 */
#include <string.h>

#include "cut_impl.h"
#include "spillway/jstring.h"

#define PASSES 64 /* to find a width; then it is halved */

void
shape_begin(struct shape *s, struct budget *budget, uint64_t limit,
    bool object)
{
	keep_free(budget, &s->keep);
	*s = (struct shape) { .budget = budget, .object = object };
	s->width = limit < SIZE_MAX / 2 ? (size_t)limit : SIZE_MAX / 2;
	s->limit = 2 * (uint64_t)s->width;
}

static void
fail(struct shape *s)
{
	s->failed = s->shortened = true;
	keep_free(s->budget, &s->keep);
}

/* What one pass over the kept bytes finds, or does. */
struct pass {
	size_t size;	/* of all, arrays shortened */
	size_t cut;	/* how many arrays that were */
	size_t widest;	/* bytes kept of an array, at most */
};

/*
 * The array that begins at p[at]: where it ends if its elements may have
 * width bytes; *close_r is the place of its bracket.
 */
static size_t
array_fit(const char *p, size_t at, size_t n, size_t width, size_t *close_r)
{
	size_t from = at + 1, end = from, last = from, i = from;
	unsigned level = 0;

	for (; i < n; i++) {
		char c = p[i];

		if (c == ' ' || c == '\t' || c == '\r')
			continue;
		if (level == 0 && (c == ',' || c == ']')) {
			if (last - from <= width)
				end = last;
			if (c == ']')
				break;
			continue;
		}
		if (c == '"') {
			i = string_end(p, i, n) - 1;
		} else if (c == '[' || c == '{') {
			level++;
		} else if (c == ']' || c == '}') {
			level--;
		}
		last = i + 1;
	}
	*close_r = i;
	return end == last ? i : end;
}

/* Shorten all arrays to width: to see what that gives, or in place. */
static struct pass
shorten(struct shape *s, size_t width, bool apply)
{
	struct pass r = { 0 };
	char *p = s->keep.p;
	size_t n = s->keep.n, at = 0;

	while (at < n) {
		size_t from = at, upto, close;

		if (p[at] == '"') {
			upto = at = string_end(p, at, n);
		} else if (p[at] == '[') {
			upto = array_fit(p, at, n, width, &close);
			r.cut += upto < close;
			if (upto - at - 1 > r.widest)
				r.widest = upto - at - 1;
			at = close;
		} else {
			upto = ++at;
		}
		if (apply)
			memmove(p + r.size, p + from, upto - from);
		r.size += upto - from;
	}
	if (apply)
		s->keep.n = r.size;
	s->shortened = s->shortened || (apply && r.cut > 0);
	return r;
}

/* Find a width with which all have at most target bytes, and apply it. */
static bool
shrink(struct shape *s, uint64_t target)
{
	size_t width = s->width < target ? s->width : (size_t)target;
	struct pass r = shorten(s, width, false);
	unsigned passes = 0;

	while (r.size > target) {
		size_t over = (size_t)(r.size - target), share;

		if (r.widest == 0)
			return false;
		share = over / (r.cut > 0 ? r.cut : 1);
		if (++passes > PASSES)
			share = width / 2;
		width = width > share ? width - share : 0;
		if (width >= r.widest)
			width = r.widest - 1;
		r = shorten(s, width, false);
	}
	s->width = width;
	(void)shorten(s, width, true);
	return true;
}

/* The open array has what it may: the rest of it is passed over. */
static void
skip(struct shape *s)
{
	s->keep.n = s->last_end;
	s->skipping = s->shortened = true;
}

static void
array_bytes(struct shape *s, const char *p, size_t n)
{
	if (s->keep.n + n - s->array_at > s->width ||
	    !keep_add(s->budget, &s->keep, p, n, s->limit))
		skip(s);
}

void
shape_bytes(struct shape *s, const char *p, size_t n)
{
	s->bytes += n;
	if (s->failed || s->skipping)
		return;
	if (s->array_depth != 0) {
		array_bytes(s, p, n);
		return;
	}
	s->fixed += n;
	if (s->fixed > s->limit) {
		fail(s);
		return;
	}
	if (s->keep.n + n > s->limit &&
	    !shrink(s, s->fixed - n + (s->limit - s->fixed) / 2)) {
		fail(s);
		return;
	}
	if (!keep_add(s->budget, &s->keep, p, n, s->limit))
		fail(s);
}

void
shape_before(struct shape *s, const struct scan *scan, enum scan_event e)
{
	if (e == SCAN_ARRAY_END && scan->depth == s->array_depth) {
		s->array_depth = 0;
		s->skipping = false;
	}
}

void
shape_after(struct shape *s, struct scan *scan, enum scan_event e)
{
	static const char truncated[] = "truncated";

	if (e == SCAN_ARRAY && s->array_depth == 0 && !s->failed) {
		s->array_depth = scan->depth;
		s->array_at = s->last_end = s->keep.n;
	} else if (scan_ends_value(e) && !s->skipping && s->array_depth != 0 &&
	    scan->depth == s->array_depth + 1) {
		s->last_end = s->keep.n;
	} else if (e == SCAN_KEY_END && scan->depth == 3 &&
	    scan->token_len >= sizeof truncated - 1) {
		s->told = s->told || jstring_is(scan->token,
		    scan->token_len, truncated);
	}
	if (s->failed)
		scan->watch = 2;
	else if (s->array_depth == 0)
		scan->watch = UINT32_MAX;
	else
		scan->watch = s->array_depth + (s->skipping ? 0 : 1);
}

bool
shape_fit(struct shape *s, uint64_t limit)
{
	size_t marker = sizeof TRUNCATED - 1;

	if (s->failed || s->told || !s->object || limit <= marker)
		return false;
	s->shortened = true;
	return shrink(s, limit - marker);
}
