/* SPDX-License-Identifier: MIT */
/*
 * String bodies as they stand in JSON, for the cut: how long they are
 * decoded, and where they can be cut. The input is valid (scan.h).
 */
#include <string.h>

#include "cut_impl.h"
#include "spillway/jstring.h"

#define NEAR 1024 /* bytes back within which a line end is looked for */

static bool
is_high(unsigned unit)
{
	return unit >= 0xd800 && unit < 0xdc00;
}

static bool
is_low(unsigned unit)
{
	return unit >= 0xdc00 && unit < 0xe000;
}

/* UTF-8 length of one UTF-16 unit that stands alone. */
static unsigned
unit_bytes(unsigned unit)
{
	return unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
}

/* One \uXXXX is complete: a low half after a high one makes 4 of 3 bytes. */
static void
measure_unit(struct measure *m)
{
	if (m->high && is_low(m->unit)) {
		m->bytes++;
		m->high = false;
		return;
	}
	m->bytes += unit_bytes(m->unit);
	m->high = is_high(m->unit);
}

void
measure_feed(struct measure *m, const char *p, size_t n)
{
	const char *end = p + n;

	while (p < end) {
		const char *q;

		switch (m->state) {
		case 0:
			q = memchr(p, '\\', (size_t)(end - p));
			if (q == NULL)
				q = end;
			if (q > p)
				m->high = false;
			m->bytes += (uint64_t)(q - p);
			p = q;
			if (p < end) {
				m->state = 1;
				p++;
			}
			break;
		case 1:
			m->state = 0;
			if (*p++ == 'u') {
				m->state = 2;
				m->unit = 0;
			} else {
				m->bytes++;
				m->high = false;
			}
			break;
		default:
			m->unit = (uint16_t)((unsigned)m->unit << 4 |
			    (unsigned)jstring_hex(*p++));
			if (++m->state == 6) {
				m->state = 0;
				measure_unit(m);
			}
			break;
		}
	}
}

size_t
string_end(const char *p, size_t at, size_t n)
{
	for (at++; at < n && p[at] != '"'; at++)
		if (p[at] == '\\')
			at++;
	return at < n ? at + 1 : n;
}

/* One character as it stands; raw 0: the bytes end within it. */
struct character {
	unsigned raw;
	unsigned decoded;
	bool line_end;
};

static struct character
escape_at(const char *p, size_t n)
{
	struct jstring_unit u = jstring_escape_at(p, n);
	struct character c = { (unsigned)u.used, (unsigned)u.len,
		u.len == 1 && u.bytes[0] == '\n' };

	/* Is its other half cut off? Then it must go, too. */
	if (u.high && n < 12 && (n == 6 || (p[6] == '\\' && (n == 7 ||
	    p[7] == 'u'))))
		c.raw = 0;
	return c;
}

static struct character
character_at(const char *p, size_t n)
{
	unsigned char b = (unsigned char)*p;
	unsigned len = b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;

	if (b == '\\')
		return escape_at(p, n);
	if (b < 0x80)
		return (struct character) { 1, 1, false };
	return (struct character) { len <= n ? len : 0, len, false };
}

size_t
text_cut(const char *p, size_t n, uint64_t room, uint64_t raw_room,
    uint64_t *decoded_r)
{
	uint64_t near = room / 2 < NEAR ? room / 2 : NEAR;
	uint64_t decoded = 0, line_decoded = 0;
	size_t at = 0, line_at = 0;

	if (n > raw_room)
		n = (size_t)raw_room;
	while (at < n) {
		struct character c = character_at(p + at, n - at);

		if (c.raw == 0 || decoded + c.decoded > room)
			break;
		at += c.raw;
		decoded += c.decoded;
		if (c.line_end) {
			line_at = at;
			line_decoded = decoded;
		}
	}
	if (line_at > 0 && decoded - line_decoded <= near) {
		at = line_at;
		decoded = line_decoded;
	}
	*decoded_r = decoded;
	return at;
}
