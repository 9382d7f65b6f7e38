/* SPDX-License-Identifier: MIT */
/*
 * The scanner after a fault: any byte goes, but strings and brackets are
 * followed, so that the members behind the fault can still be told. A token
 * where none belongs is passed over in silence. Nothing is validated here,
 * and nothing edited.
 */
#include "scan_impl.h"

static enum state
loose_state(enum state state)
{
	switch (state) {
	case S_STRING:
	case S_HEX:
	case S_UTF8:
	case S_LOOSE_STRING:
		return S_LOOSE_STRING;
	case S_ESCAPE:
	case S_LOOSE_ESCAPE:
		return S_LOOSE_ESCAPE;
	case S_NUMBER:
	case S_LITERAL:
	case S_LOOSE_SCALAR:
		return S_LOOSE_SCALAR;
	case S_TEXT:
	case S_VALUE:
	case S_FIRST_ITEM:
	case S_FIRST_KEY:
	case S_KEY:
	case S_COLON:
	case S_AFTER:
	case S_DEEP:
	case S_LOOSE:
		return S_LOOSE;
	}
	return S_LOOSE;
}

static enum expect
expected(enum state state)
{
	switch (state) {
	case S_TEXT:
	case S_VALUE:
	case S_FIRST_ITEM:
		return EXPECT_VALUE;
	case S_FIRST_KEY:
	case S_KEY:
		return EXPECT_KEY;
	case S_COLON:
	case S_AFTER:
	case S_STRING:
	case S_ESCAPE:
	case S_HEX:
	case S_UTF8:
	case S_NUMBER:
	case S_LITERAL:
	case S_DEEP:
	case S_LOOSE:
	case S_LOOSE_STRING:
	case S_LOOSE_ESCAPE:
	case S_LOOSE_SCALAR:
		return EXPECT_NOTHING;
	}
	return EXPECT_NOTHING;
}

void
scan_tolerate(struct scan *s)
{
	if (s->tolerant || s->status == SCAN_DONE)
		return;
	s->expect = (uint8_t)expected((enum state)s->state);
	s->state = (uint8_t)loose_state((enum state)s->state);
	s->tolerant = true;
	s->status = SCAN_MORE;
}

static inline bool
is_deep(const struct scan *s)
{
	return s->depth > s->max_depth;
}

static void
open_loose(struct scan *s, const char *p)
{
	bool object = *p == '{';

	s->expect = object ? EXPECT_KEY : EXPECT_VALUE;
	if (s->depth < s->max_depth) {
		scan_tell(s, object ? SCAN_OBJECT : SCAN_ARRAY, p);
		scan_push(s, object);
		return;
	}
	s->too_deep = true;
	if (s->depth < UINT32_MAX)
		s->depth++;
}

/* Either bracket closes the innermost container, whatever that is. */
static void
close_loose(struct scan *s, const char *p)
{
	bool object = s->in_object;

	s->expect = EXPECT_NOTHING;
	if (s->depth == 0)
		return;
	if (is_deep(s)) {
		s->depth--;
	} else {
		scan_pop(s);
		scan_tell(s, object ? SCAN_OBJECT_END : SCAN_ARRAY_END, p);
	}
	if (s->depth == 0)
		s->status = SCAN_DONE;
}

static void
begin(struct scan *s, enum scan_event e, const char *p, const char *mark)
{
	s->telling = false;
	if (s->expect != EXPECT_NOTHING && !is_deep(s))
		scan_token(s, e, p, mark);
}

static const char *
between(struct scan *s, const char *p)
{
	switch (*p) {
	case '"':
		s->is_key = s->expect == EXPECT_KEY;
		s->state = S_LOOSE_STRING;
		begin(s, s->is_key ? SCAN_KEY : SCAN_STRING, p, p + 1);
		break;
	case '{':
	case '[':
		open_loose(s, p);
		break;
	case '}':
	case ']':
		close_loose(s, p);
		break;
	case ',':
		s->expect = s->in_object ? EXPECT_KEY : EXPECT_VALUE;
		break;
	case ':':
		s->expect = EXPECT_VALUE;
		break;
	default:
		if ((unsigned char)*p <= ' ')
			break;
		/* A bare word in a key's place must not pass for a value. */
		if (s->expect == EXPECT_KEY)
			s->expect = EXPECT_NOTHING;
		s->state = S_LOOSE_SCALAR;
		begin(s, SCAN_SCALAR, p, p);
	}
	return p + 1;
}

static const char *
in_string(struct scan *s, const char *p)
{
	if (*p == '\\')
		s->state = S_LOOSE_ESCAPE;
	if (*p != '"')
		return p + 1;
	scan_token_end(s, s->is_key ? SCAN_KEY_END : SCAN_STRING_END, p);
	s->expect = EXPECT_NOTHING;
	s->state = S_LOOSE;
	return p + 1;
}

static const char *
in_scalar(struct scan *s, const char *p)
{
	if ((unsigned char)*p > ' ' && strchr("{}[],:\"", *p) == NULL)
		return p + 1;
	scan_token_end(s, SCAN_SCALAR_END, p);
	s->expect = EXPECT_NOTHING;
	s->state = S_LOOSE;
	return p;
}

const char *
scan_loose(struct scan *s, const char *p, const char *end)
{
	while (p < end && s->status == SCAN_MORE) {
		if (*p == '\n' && !s->lf_is_space)
			return scan_bad(s, p);
		if (s->state == S_LOOSE_STRING) {
			p = in_string(s, p);
		} else if (s->state == S_LOOSE_SCALAR) {
			p = in_scalar(s, p);
		} else if (s->state == S_LOOSE_ESCAPE) {
			s->state = S_LOOSE_STRING;
			p++;
		} else {
			p = between(s, p);
		}
	}
	return p;
}
