/* SPDX-License-Identifier: MIT */
/*
 * JSON string bodies: compare, decode, escape. Works on the bytes between
 * the quotes, one unit (a plain byte or one whole escape) at a time, so that
 * nothing has to be held. Must not know what the strings mean, nor reject
 * any: a body that was clipped inside an escape simply ends before it.
 */
#include "spillway/jstring.h"

#include <stdint.h>
#include <string.h>

static size_t
utf8_put(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

int
jstring_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The code unit of a whole \uXXXX at p, or -1. */
static int32_t
hex_escape(const char *p, size_t n)
{
	int32_t c = 0;
	int i, digit;

	if (n < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (i = 2; i < 6; i++) {
		digit = jstring_hex(p[i]);
		if (digit < 0)
			return -1;
		c = c * 16 + digit;
	}
	return c;
}

static struct jstring_unit
unit_hex(const char *p, size_t n)
{
	struct jstring_unit u = { .used = 6 };
	int32_t c = hex_escape(p, n);
	int32_t low;

	if (c < 0)
		return (struct jstring_unit) { .used = 0 };
	if (c >= 0xd800 && c < 0xdc00) {
		low = hex_escape(p + 6, n - 6);
		if (low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + (c - 0xd800) * 0x400 + (low - 0xdc00);
			u.used = 12;
		}
		u.high = u.used == 6;
	}
	u.len = utf8_put((uint32_t)c, u.bytes);
	return u;
}

struct jstring_unit
jstring_escape_at(const char *p, size_t n)
{
	static const char from[] = "bfnrt";
	static const char to[] = "\b\f\n\r\t";
	struct jstring_unit u = { .used = 2, .len = 1 };
	const char *at;

	if (n < 2)
		return (struct jstring_unit) { .used = 0 };
	if (p[1] == 'u')
		return unit_hex(p, n);
	at = memchr(from, p[1], sizeof(from) - 1);
	u.bytes[0] = at != NULL ? to[at - from] : p[1];
	return u;
}

/* Bytes before the next backslash. */
static size_t
plain_run(const char *p, size_t n)
{
	const char *at = n > 0 ? memchr(p, '\\', n) : NULL;

	return at != NULL ? (size_t)(at - p) : n;
}

/* Where the word ends in the body, or SIZE_MAX if it does not start so. */
static size_t
match(const char *raw, size_t n, const char *word, size_t len)
{
	size_t at = 0;
	struct jstring_unit u;

	while (len > 0) {
		if (at == n)
			return SIZE_MAX;
		if (raw[at] != '\\')
			u = (struct jstring_unit) { .used = 1, .len = 1,
			    .bytes = { raw[at] } };
		else
			u = jstring_escape_at(raw + at, n - at);
		if (u.used == 0 || u.len > len ||
		    memcmp(u.bytes, word, u.len) != 0)
			return SIZE_MAX;
		at += u.used;
		word += u.len;
		len -= u.len;
	}
	return at;
}

bool
jstring_spells(const char *raw, size_t n, const char *word)
{
	return memchr(raw, '\\', n) != NULL &&
	    match(raw, n, word, strlen(word)) == n;
}

bool
jstring_starts(const char *raw, size_t n, const char *word)
{
	return match(raw, n, word, strlen(word)) != SIZE_MAX;
}

/* Append what fits; the length grows by all of it. */
static size_t
append(char *out, size_t cap, size_t len, const char *bytes, size_t n)
{
	size_t fits = len < cap ? cap - len : 0;

	if (fits > n)
		fits = n;
	if (fits > 0)
		memcpy(out + len, bytes, fits);
	return len + n;
}

size_t
jstring_decode(const char *raw, size_t n, char *out, size_t cap)
{
	size_t len = 0;
	size_t at = 0;
	size_t run;
	struct jstring_unit u;

	while (at < n) {
		run = plain_run(raw + at, n - at);
		len = append(out, cap, len, raw + at, run);
		at += run;
		if (at == n)
			break;
		u = jstring_escape_at(raw + at, n - at);
		if (u.used == 0)
			break;
		len = append(out, cap, len, u.bytes, u.len);
		at += u.used;
	}
	return len;
}

/*
 * Length of the sequence at p (n > 0) that a lead byte begins: *ok tells
 * whether it is well-formed; else the length is that of the maximal part
 * that could have begun one (Unicode, table 3-7), at least 1.
 */
static size_t
utf8_len(const unsigned char *p, size_t n, bool *ok)
{
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t want, i;

	*ok = p[0] < 0x80;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 1;
	want = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	for (i = 1; i < want; i++) {
		if (i == n || p[i] < low || p[i] > high)
			return i;
		low = 0x80;
		high = 0xbf;
	}
	*ok = true;
	return want;
}

/* The escape of one ASCII byte, or the byte. Returns its length. */
static size_t
escape_ascii(unsigned char c, char *out)
{
	static const char hex[] = "0123456789abcdef";
	static const char from[] = "\"\\\b\f\n\r\t";
	static const char to[] = "\"\\bfnrt";
	const char *at = memchr(from, c, sizeof(from) - 1);

	if (at != NULL) {
		out[0] = '\\';
		out[1] = to[at - from];
		return 2;
	}
	if (c >= 0x20 && c != 0x7f) {
		out[0] = (char)c;
		return 1;
	}
	memcpy(out, "\\u00", 4);
	out[4] = hex[c >> 4];
	out[5] = hex[c & 15];
	return 6;
}

size_t
jstring_escape(const char *text, size_t n, char *out, size_t cap)
{
	const unsigned char *p = (const unsigned char *)text;
	const unsigned char *end = p + n;
	char unit[6];
	size_t len = 0;
	size_t used, k;
	bool ok;

	for (; p < end; p += used) {
		used = utf8_len(p, (size_t)(end - p), &ok);
		if (used == 1 && ok) {
			k = escape_ascii(*p, unit);
		} else if (ok) {
			memcpy(unit, p, used);
			k = used;
		} else {
			k = utf8_put(0xfffd, unit);
		}
		if (k > cap - len)
			break;
		memcpy(out + len, unit, k);
		len += k;
	}
	return len;
}
