/* SPDX-License-Identifier: MIT */
/*
 * The scanner inside strings: escapes and UTF-8. Long stretches are left to a
 * kernel; what a kernel does not know, and what is cut by the end of the
 * input, is read here byte by byte. It must not know where the string stands.
 */
#include "scan_impl.h"

enum class {
	PLAIN,
	QUOTE,
	SLASH,
	CONTROL,
	HIGH,
};

/* By the upper five bits of a byte; quote and backslash apart. */
static const uint8_t class_of[32] = {
	CONTROL, CONTROL, CONTROL, CONTROL, PLAIN, PLAIN, PLAIN, PLAIN,
	PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN,
	HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH,
	HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH,
};

static inline enum class
classify(char c)
{
	if (c == '"')
		return QUOTE;
	if (c == '\\')
		return SLASH;
	return (enum class)class_of[(unsigned char)c >> 3];
}

static inline bool
is_escape(char c)
{
	switch (c) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return true;
	default:
		return false;
	}
}

static inline bool
is_hex(char c)
{
	return (unsigned char)(c - '0') < 10 ||
	    (unsigned char)((c | 0x20) - 'a') < 6;
}

static inline bool
within(char c, uint8_t low, uint8_t high)
{
	return (uint8_t)c >= low && (uint8_t)c <= high;
}

/* One byte behind a backslash. */
const char *
scan_escape(struct scan *s, const char *p)
{
	if (is_escape(*p)) {
		s->state = S_STRING;
	} else if (*p == 'u') {
		s->state = S_HEX;
		s->at = 0;
	} else {
		return scan_bad(s, p);
	}
	return p + 1;
}

/* One of the four digits. */
const char *
scan_hex(struct scan *s, const char *p)
{
	if (!is_hex(*p))
		return scan_bad(s, p);
	if (++s->at == 4)
		s->state = S_STRING;
	return p + 1;
}

/* The n bytes before p are a maximal ill-formed part. */
static const char *
ill_formed(struct scan *s, const char *p, unsigned n)
{
	s->sink.edit(s->sink.arg, scan_offset(s, p) - n, n, "\xef\xbf\xbd", 3);
	s->state = S_STRING;
	return p;
}

/*
 * The first byte of a sequence and which second bytes it allows: table 3-7 of
 * the Unicode standard.
 */
static const char *
lead(struct scan *s, const char *p)
{
	uint8_t c = (uint8_t)*p;

	if (c < 0xc2 || c > 0xf4)
		return s->sink.edit != NULL ? ill_formed(s, p + 1, 1) :
		    scan_bad(s, p);
	s->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	s->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	s->need = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	s->at = 1;
	s->state = S_UTF8;
	return p + 1;
}

/* One of the bytes behind it. */
const char *
scan_utf8(struct scan *s, const char *p)
{
	if (!within(*p, s->low, s->high))
		return s->sink.edit != NULL ? ill_formed(s, p, s->at) :
		    scan_bad(s, p);
	s->low = 0x80;
	s->high = 0xbf;
	s->at++;
	if (--s->need == 0)
		s->state = S_STRING;
	return p + 1;
}

/* An escape; one that is cut or wrong is left to the states above. */
static inline const char *
escape(struct scan *s, const char *p, const char *end)
{
	if (end - p >= 2 && is_escape(p[1]))
		return p + 2;
	if (end - p >= 6 && p[1] == 'u' && is_hex(p[2]) && is_hex(p[3]) &&
	    is_hex(p[4]) && is_hex(p[5]))
		return p + 6;
	s->state = S_ESCAPE;
	return p + 1;
}

/* Likewise a sequence; the rare narrow second bytes take the slow way. */
static inline const char *
sequence(struct scan *s, const char *p, const char *end)
{
	uint8_t c = (uint8_t)*p;

	if (c >= 0xe1 && c < 0xf0 && c != 0xed) {
		if (end - p >= 3 && within(p[1], 0x80, 0xbf) &&
		    within(p[2], 0x80, 0xbf))
			return p + 3;
	} else if (c >= 0xc2 && c < 0xe0) {
		if (end - p >= 2 && within(p[1], 0x80, 0xbf))
			return p + 2;
	}
	return lead(s, p);
}

/* Byte by byte up to limit; end is where the input ends. */
static const char *
walk(struct scan *s, const char *p, const char *limit, const char *end)
{
	while (p < limit && s->state == S_STRING) {
		switch (classify(*p)) {
		case PLAIN:
			p++;
			break;
		case QUOTE:
			return p;
		case SLASH:
			p = escape(s, p, end);
			break;
		case CONTROL:
			return scan_bad(s, p);
		case HIGH:
			p = sequence(s, p, end);
			while (s->state == S_UTF8 && p < end &&
			    s->status == SCAN_MORE)
				p = scan_utf8(s, p);
			if (s->status != SCAN_MORE)
				return p;
			break;
		}
	}
	return p;
}

const char *
scan_string(struct scan *s, const char *p, const char *end)
{
	const struct scan_body *body = s->body;

	while (p < end) {
		const char *limit = end;

		p = body->skip(p, end);
		if ((size_t)(end - p) > body->stride)
			limit = p + body->stride;
		p = walk(s, p, limit, end);
		if (p < limit || s->state != S_STRING)
			return p;
	}
	return p;
}
