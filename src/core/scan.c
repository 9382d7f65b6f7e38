/* SPDX-License-Identifier: MIT */
/*
 * The scanner of JSON texts (see scan.h): its grammar outside strings. One
 * state per place where input may end, a bit per open container. What is
 * inside strings is in scan_string.c, what is done after a fault in
 * scan_loose.c. It must not know what the members mean.
 */
#include "scan_impl.h"

enum number {
	N_START,
	N_MINUS,
	N_ZERO,
	N_INT,
	N_DOT,
	N_FRAC,
	N_E,
	N_SIGN,
	N_EXP,
	N_END, /* the byte is not the number's, which is complete */
	N_BAD,
	N_INFINITY, /* -I */
};

enum digit {
	D_OTHER,
	D_0,
	D_1_9,
	D_DOT,
	D_E,
	D_PLUS,
	D_MINUS,
	D_I,
	D_KINDS,
};

static const uint8_t digit[256] = {
	['0'] = D_0, ['1'] = D_1_9, ['2'] = D_1_9, ['3'] = D_1_9,
	['4'] = D_1_9, ['5'] = D_1_9, ['6'] = D_1_9, ['7'] = D_1_9,
	['8'] = D_1_9, ['9'] = D_1_9, ['.'] = D_DOT, ['e'] = D_E,
	['E'] = D_E, ['+'] = D_PLUS, ['-'] = D_MINUS, ['I'] = D_I,
};

/* In the order of enum digit: other 0 1-9 . e + - I */
static const uint8_t number_next[N_END][D_KINDS] = {
	[N_START] = { N_BAD, N_ZERO, N_INT, N_BAD, N_BAD, N_BAD, N_MINUS,
	    N_BAD },
	[N_MINUS] = { N_BAD, N_ZERO, N_INT, N_BAD, N_BAD, N_BAD, N_BAD,
	    N_INFINITY },
	[N_ZERO] = { N_END, N_END, N_END, N_DOT, N_E, N_END, N_END, N_END },
	[N_INT] = { N_END, N_INT, N_INT, N_DOT, N_E, N_END, N_END, N_END },
	[N_DOT] = { N_BAD, N_FRAC, N_FRAC, N_BAD, N_BAD, N_BAD, N_BAD,
	    N_BAD },
	[N_FRAC] = { N_END, N_FRAC, N_FRAC, N_END, N_E, N_END, N_END, N_END },
	[N_E] = { N_BAD, N_EXP, N_EXP, N_BAD, N_BAD, N_SIGN, N_SIGN, N_BAD },
	[N_SIGN] = { N_BAD, N_EXP, N_EXP, N_BAD, N_BAD, N_BAD, N_BAD, N_BAD },
	[N_EXP] = { N_END, N_EXP, N_EXP, N_END, N_END, N_END, N_END, N_END },
};

size_t
scan_stack_size(uint32_t max_depth)
{
	return max_depth / 8 + 9; /* a bit for each, rounded up, and 8 */
}

void
scan_init(struct scan *s, const struct scan_sink *sink, uint8_t *stack,
    uint32_t max_depth)
{
	memset(s, 0, offsetof(struct scan, keep));
	s->sink = *sink;
	s->stack = stack;
	s->max_depth = max_depth;
	s->body = scan_body_chosen();
	scan_restart(s);
}

void
scan_restart(struct scan *s)
{
	memset(s, 0, offsetof(struct scan, sink));
	s->watch = UINT32_MAX;
	s->state = S_TEXT;
	s->status = SCAN_MORE;
}

void
scan_begun(struct scan *s, uint64_t n)
{
	s->off = n;
	scan_push(s, true);
	s->state = S_KEY;
}

void
scan_allow_lf(struct scan *s)
{
	s->lf_is_space = true;
}

/* Keep the bytes of the token before p, as far as there is room. */
static void
keep_token(struct scan *s, const char *p)
{
	size_t n = (size_t)(p - s->mark);

	if (n > SCAN_TOKEN_MAX - s->kept) {
		n = SCAN_TOKEN_MAX - s->kept;
		s->token_cut = true;
	}
	memcpy(s->keep + s->kept, s->mark, n);
	s->kept += (uint32_t)n;
}

void
scan_tell_end(struct scan *s, enum scan_event e, const char *p)
{
	s->telling = false;
	if (s->kept > 0) {
		keep_token(s, p);
		s->token = s->keep;
		s->token_len = s->kept;
	} else {
		size_t n = (size_t)(p - s->mark);

		s->token_cut = n > SCAN_TOKEN_MAX;
		s->token = s->mark;
		s->token_len = s->token_cut ? SCAN_TOKEN_MAX : (uint32_t)n;
	}
	s->sink.event(s->sink.arg, s, e, scan_offset(s, p));
	s->token = NULL;
	s->token_len = 0;
}

static inline void
after_value(struct scan *s)
{
	s->state = S_AFTER;
	if (s->depth == 0)
		s->status = SCAN_DONE;
}

/* White space, or what must not stand here. */
static inline const char *
space(struct scan *s, const char *p, const char *end)
{
	const char *from = p;

	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' ||
	    (*p == '\n' && s->lf_is_space)))
		p++;
	return p > from ? p : scan_bad(s, p);
}

static const char *
open_deep(struct scan *s, const char *p)
{
	s->too_deep = true;
	if (s->depth == UINT32_MAX)
		return scan_bad(s, p);
	s->depth++;
	s->state = S_DEEP;
	return p + 1;
}

static inline const char *
begin_container(struct scan *s, const char *p, bool object)
{
	if (s->depth >= s->max_depth)
		return open_deep(s, p);
	scan_tell(s, object ? SCAN_OBJECT : SCAN_ARRAY, p);
	scan_push(s, object);
	s->state = object ? S_FIRST_KEY : S_FIRST_ITEM;
	return p + 1;
}

static inline const char *
end_container(struct scan *s, const char *p)
{
	bool object = s->in_object;

	scan_pop(s);
	scan_tell(s, object ? SCAN_OBJECT_END : SCAN_ARRAY_END, p);
	after_value(s);
	return p + 1;
}

static inline void
end_string(struct scan *s, const char *p)
{
	scan_token_end(s, s->is_key ? SCAN_KEY_END : SCAN_STRING_END, p);
	if (s->is_key)
		s->state = S_COLON;
	else if (s->depth > s->max_depth)
		s->state = S_DEEP;
	else
		after_value(s);
}

/* Most strings are short: look at the first bytes here, in line. */
static inline const char *
string(struct scan *s, const char *p, const char *end)
{
	p = scan_short(p, end);
	if (p < end && *p != '"')
		p = scan_string(s, p, end);
	if (p == end || s->state != S_STRING || s->status != SCAN_MORE)
		return p;
	end_string(s, p);
	return p + 1;
}

static inline const char *
open_string(struct scan *s, const char *p, const char *end, bool key)
{
	scan_token(s, key ? SCAN_KEY : SCAN_STRING, p, p + 1);
	s->is_key = key;
	s->state = S_STRING;
	return string(s, p + 1, end);
}

static inline void
end_scalar(struct scan *s, const char *p)
{
	scan_token_end(s, SCAN_SCALAR_END, p);
	after_value(s);
}

static inline bool
is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

/* Behind a run of digits. */
static inline const char *
digits(const char *p, const char *end)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);

	while (SCAN_LITTLE_ENDIAN && end - p >= 8) {
		uint64_t w = scan_load(p);
		/* Upper half 3, and still so with 6 added to the lower. */
		uint64_t other = ((w ^ (ones * 0x30)) |
		    ((w + ones * 0x06) ^ (ones * 0x30))) & (ones * 0xf0);

		if (other != 0)
			return p + __builtin_ctzll(other) / 8;
		p += 8;
	}
	while (p < end && is_digit(*p))
		p++;
	return p;
}

static const char *
infinity(struct scan *s, const char *p)
{
	if (s->sink.edit == NULL)
		return scan_bad(s, p);
	s->literal = "-Infinity";
	s->at = 1;
	s->state = S_LITERAL;
	return p;
}

static inline const char *
number(struct scan *s, const char *p, const char *end)
{
	unsigned n = s->number;

	while (p < end) {
		unsigned next = number_next[n][digit[(unsigned char)*p]];

		if (next == N_END) {
			end_scalar(s, p);
			return p;
		}
		s->number = (uint8_t)n;
		if (next == N_BAD)
			return scan_bad(s, p);
		if (next == N_INFINITY)
			return infinity(s, p);
		n = next;
		p++;
		if (n == N_INT || n == N_FRAC || n == N_EXP)
			p = digits(p, end);
	}
	s->number = (uint8_t)n;
	return p;
}

static inline const char *
open_number(struct scan *s, const char *p, const char *end)
{
	scan_token(s, SCAN_SCALAR, p, p);
	s->state = S_NUMBER;
	s->number = N_START;
	return number(s, p, end);
}

static const char *
literal(struct scan *s, const char *p, const char *end)
{
	const char *word = s->literal;

	while (p < end && word[s->at] != '\0') {
		if (*p != word[s->at])
			return scan_bad(s, p);
		s->at++;
		p++;
	}
	if (word[s->at] != '\0')
		return p;
	if (*word == 'N' || *word == 'I' || *word == '-')
		s->sink.edit(s->sink.arg, scan_offset(s, p) - s->at, s->at,
		    "null", 4);
	end_scalar(s, p);
	return p;
}

static const char *
open_literal(struct scan *s, const char *p, const char *end, const char *word)
{
	scan_token(s, SCAN_SCALAR, p, p);
	s->state = S_LITERAL;
	s->literal = word;
	s->at = 0;
	return literal(s, p, end);
}

/* Nearly always a literal is there as a whole. */
static inline const char *
fast_literal(struct scan *s, const char *p, const char *end, const char *word,
    unsigned n)
{
	if ((size_t)(end - p) < n || memcmp(p, word, n) != 0)
		return open_literal(s, p, end, word);
	scan_token(s, SCAN_SCALAR, p, p);
	end_scalar(s, p + n);
	return p + n;
}

static const char *
other_value(struct scan *s, const char *p, const char *end)
{
	switch (*p) {
	case 't':
		return fast_literal(s, p, end, "true", 4);
	case 'f':
		return fast_literal(s, p, end, "false", 5);
	case 'n':
		return fast_literal(s, p, end, "null", 4);
	case 'N':
	case 'I':
		if (s->sink.edit == NULL)
			return scan_bad(s, p);
		return open_literal(s, p, end, *p == 'N' ? "NaN" : "Infinity");
	case ']':
		if (s->state == S_FIRST_ITEM)
			return end_container(s, p);
		return scan_bad(s, p);
	default:
		return space(s, p, end);
	}
}

static inline const char *
value(struct scan *s, const char *p, const char *end)
{
	if (*p == '"')
		return open_string(s, p, end, false);
	if (*p == '{' || *p == '[')
		return begin_container(s, p, *p == '{');
	if (is_digit(*p) || *p == '-')
		return open_number(s, p, end);
	return other_value(s, p, end);
}

static inline const char *
key(struct scan *s, const char *p, const char *end)
{
	if (*p == '"')
		return open_string(s, p, end, true);
	if (*p == '}' && s->state == S_FIRST_KEY)
		return end_container(s, p);
	return space(s, p, end);
}

static inline const char *
colon(struct scan *s, const char *p, const char *end)
{
	if (*p != ':')
		return space(s, p, end);
	s->state = S_VALUE;
	return p + 1;
}

static inline const char *
after(struct scan *s, const char *p, const char *end)
{
	if (*p == ',') {
		s->state = s->in_object ? S_KEY : S_VALUE;
		return p + 1;
	}
	if (*p == (s->in_object ? '}' : ']'))
		return end_container(s, p);
	return space(s, p, end);
}

static const char *
close_deep(struct scan *s, const char *p)
{
	if (--s->depth <= s->max_depth)
		after_value(s);
	return p + 1;
}

/* Beyond max_depth: count brackets, follow strings. */
static const char *
deep(struct scan *s, const char *p, const char *end)
{
	while (p < end) {
		switch (*p) {
		case '"':
			s->telling = s->is_key = false;
			s->state = S_STRING;
			return p + 1;
		case '{':
		case '[':
			return open_deep(s, p);
		case '}':
		case ']':
			return close_deep(s, p);
		default:
			if (*p > ' ' && *p < 0x7f)
				p++;
			else
				return space(s, p, end);
		}
	}
	return p;
}

/* Most often what comes next is known: go on there without step(). */
static inline const char *
item(struct scan *s, const char *p, const char *end)
{
	p = value(s, p, end);
	if (s->state == S_AFTER && s->depth > 0 && p < end && *p == ',')
		return after(s, p, end);
	return p;
}

static inline const char *
member(struct scan *s, const char *p, const char *end)
{
	p = key(s, p, end);
	if (s->state != S_COLON || p == end || *p != ':')
		return p;
	s->state = S_VALUE;
	if (++p < end && *p == ' ')
		p++;
	return p < end ? item(s, p, end) : p;
}

static inline const char *
step(struct scan *s, const char *p, const char *end)
{
	switch ((enum state)s->state) {
	case S_TEXT:
	case S_VALUE:
	case S_FIRST_ITEM:
		return item(s, p, end);
	case S_FIRST_KEY:
	case S_KEY:
		return member(s, p, end);
	case S_COLON:
		return colon(s, p, end);
	case S_AFTER:
		return after(s, p, end);
	case S_STRING:
		return string(s, p, end);
	case S_ESCAPE:
		return scan_escape(s, p);
	case S_HEX:
		return scan_hex(s, p);
	case S_UTF8:
		return scan_utf8(s, p);
	case S_NUMBER:
		return number(s, p, end);
	case S_LITERAL:
		return literal(s, p, end);
	case S_DEEP:
		return deep(s, p, end);
	case S_LOOSE:
	case S_LOOSE_STRING:
	case S_LOOSE_ESCAPE:
	case S_LOOSE_SCALAR:
		return scan_loose(s, p, end);
	}
	return p;
}

enum scan_status
scan_feed(struct scan *s, const char *p, size_t n, size_t *used)
{
	const char *at = p;

	*used = 0;
	if (s->status == SCAN_DONE || s->status == SCAN_FAULT)
		return s->status;
	s->status = SCAN_MORE;
	if (n == 0)
		return SCAN_MORE;
	s->base = s->mark = p;
	while (at < p + n && s->status == SCAN_MORE)
		at = step(s, at, p + n);
	if (s->telling)
		keep_token(s, at);
	*used = (size_t)(at - p);
	s->off += *used;
	return s->status;
}

unsigned
scan_held(const struct scan *s)
{
	if (s->sink.edit == NULL || s->status != SCAN_MORE)
		return 0;
	if (s->state == S_UTF8)
		return s->at;
	if (s->state == S_NUMBER && s->number == N_MINUS)
		return 1;
	if (s->state == S_LITERAL && (*s->literal == 'N' ||
	    *s->literal == 'I' || *s->literal == '-'))
		return s->at;
	return 0;
}

bool
scan_begins_value(enum scan_event e)
{
	return e == SCAN_OBJECT || e == SCAN_ARRAY || e == SCAN_STRING ||
	    e == SCAN_SCALAR;
}

bool
scan_ends_value(enum scan_event e)
{
	return e == SCAN_OBJECT_END || e == SCAN_ARRAY_END ||
	    e == SCAN_STRING_END || e == SCAN_SCALAR_END;
}

const char *
scan_event_name(enum scan_event e)
{
	switch (e) {
	case SCAN_OBJECT:
		return "object";
	case SCAN_OBJECT_END:
		return "object_end";
	case SCAN_ARRAY:
		return "array";
	case SCAN_ARRAY_END:
		return "array_end";
	case SCAN_KEY:
		return "key";
	case SCAN_KEY_END:
		return "key_end";
	case SCAN_STRING:
		return "string";
	case SCAN_STRING_END:
		return "string_end";
	case SCAN_SCALAR:
		return "scalar";
	case SCAN_SCALAR_END:
		return "scalar_end";
	}
	return "?";
}
