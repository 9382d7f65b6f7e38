/* SPDX-License-Identifier: MIT */
/*
 * Ids and tokens: what kind they are, when two of them are one, and what
 * JavaScript would make of a number. A number's canonical form is its sign,
 * its digits without zeros at either end, and the exponent that puts the
 * point in front of them; all decimal, since ids may exceed every binary
 * type. Must not know what the ids are for.
 */
#include "spillway/id.h"

#include <stdlib.h>
#include <string.h>

#include "spillway/hash.h"
#include "spillway/jstring.h"

#define SAFE_DIGITS 15 /* integers of so many digits are exact doubles */
#define WIDE_DIGITS 18 /* exponents of so many digits fit an int64_t */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t
digits_at(const char *p, size_t n)
{
	size_t k = 0;

	while (k < n && is_digit(p[k]))
		k++;
	return k;
}

/* RFC 8259 section 6. */
static bool
is_number(const char *p, size_t n)
{
	size_t at = p[0] == '-';
	size_t k = digits_at(p + at, n - at);

	if (k == 0 || (k > 1 && p[at] == '0'))
		return false;
	at += k;
	if (at < n && p[at] == '.') {
		k = digits_at(p + at + 1, n - at - 1);
		if (k == 0)
			return false;
		at += 1 + k;
	}
	if (at < n && (p[at] == 'e' || p[at] == 'E')) {
		at++;
		at += at < n && (p[at] == '+' || p[at] == '-');
		k = digits_at(p + at, n - at);
		if (k == 0)
			return false;
		at += k;
	}
	return at == n;
}

static enum id_type
token_type(const char *raw, size_t n, bool cut)
{
	if (n == 0)
		return ID_NONE;
	if (raw[0] == '"')
		return cut || (n > 1 && raw[n - 1] == '"') ? ID_STRING :
		    ID_OTHER;
	if (cut && (raw[0] == '-' || is_digit(raw[0])))
		return ID_NUMBER;
	if (n == 4 && memcmp(raw, "null", 4) == 0)
		return ID_NULL;
	return is_number(raw, n) ? ID_NUMBER : ID_OTHER;
}

struct id
id_of(const char *raw, size_t n, bool cut)
{
	struct id id = { .cut = cut || n > ID_RAW_MAX, .raw = raw };

	id.len = (uint32_t)(n > ID_RAW_MAX ? ID_RAW_MAX : n);
	id.type = token_type(raw, id.len, id.cut);
	return id;
}

/* A number token in its parts. */
struct number {
	bool negative;
	bool down;	  /* its exponent is negative */
	uint32_t digits;  /* significant ones */
	int32_t point;	  /* where the point stands among them */
	const char *exp;  /* digits of the exponent, without leading zeros */
	uint32_t exp_len;
};

/*
 * Collect the significant digits at out; zeros are held back until another
 * digit follows. Returns the end of the mantissa.
 */
static const char *
mantissa(const char *p, const char *end, struct number *d, char *out)
{
	uint32_t zeros = 0;
	bool fraction = false;

	for (; p < end && (is_digit(*p) || *p == '.'); p++) {
		if (*p == '.') {
			fraction = true;
			continue;
		}
		if (*p == '0' && d->digits == 0) {
			d->point -= fraction;
			continue;
		}
		d->point += !fraction;
		if (*p == '0') {
			zeros++;
			continue;
		}
		memset(out + d->digits, '0', zeros);
		d->digits += zeros;
		out[d->digits++] = *p;
		zeros = 0;
	}
	return p;
}

static struct number
number_parse(const struct id *id, char *digits)
{
	const char *p = id->raw;
	const char *end = p + id->len;
	struct number d = { .negative = *p == '-' };

	p = mantissa(p + d.negative, end, &d, digits);
	if (p < end)
		p++; /* the e */
	if (p < end && (*p == '+' || *p == '-'))
		d.down = *p++ == '-';
	while (p < end && *p == '0')
		p++;
	d.exp = p;
	d.exp_len = (uint32_t)(end - p);
	return d;
}

/*
 * Add delta to the decimal of n digits at s, which has room for one more.
 * It is far larger than delta: the sum stays positive, and loses a digit at
 * most. Returns the number of digits.
 */
static uint32_t
decimal_add(char *s, uint32_t n, int32_t delta)
{
	int32_t carry = delta;
	uint32_t i;

	for (i = n; i-- > 0 && carry != 0;) {
		carry += s[i] - '0';
		s[i] = (char)('0' + (carry % 10 + 10) % 10);
		carry = (carry - (s[i] - '0')) / 10;
	}
	if (carry > 0) {
		memmove(s + 1, s, n);
		s[0] = (char)('0' + carry);
		return n + 1;
	}
	if (s[0] == '0') {
		memmove(s, s + 1, n - 1);
		return n - 1;
	}
	return n;
}

/* The exponent, point included, at out: at most exp_len + 21 bytes. */
static uint32_t
exponent_put(const struct number *d, char *out)
{
	int64_t e = 0;
	uint64_t rest;
	uint32_t i, len = 1, from;

	if (d->exp_len > WIDE_DIGITS) {
		out[0] = d->down ? '-' : '+';
		memcpy(out + 1, d->exp, d->exp_len);
		return 1 + decimal_add(out + 1, d->exp_len,
		    d->down ? -d->point : d->point);
	}
	for (i = 0; i < d->exp_len; i++)
		e = e * 10 + (d->exp[i] - '0');
	e = (d->down ? -e : e) + d->point;
	out[0] = e < 0 ? '-' : '+';
	rest = (uint64_t)(e < 0 ? -e : e);
	for (uint64_t top = rest; top >= 10; top /= 10)
		len++;
	for (from = len; from > 0; from--, rest /= 10)
		out[from] = (char)('0' + rest % 10);
	return 1 + len;
}

static uint32_t
number_put(const struct id *id, char *out)
{
	struct number d = number_parse(id, out + 2);
	uint32_t len = 2 + d.digits;

	out[0] = 'N';
	out[1] = d.negative && d.digits > 0 ? '-' : '+';
	if (d.digits == 0)
		return len;
	out[len++] = 'e';
	return len + exponent_put(&d, out + len);
}

static uint32_t
string_put(const struct id *id, char *out)
{
	out[0] = 'S';
	return 1 + (uint32_t)jstring_decode(id->raw + 1, id->len - 2, out + 1,
	    ID_RAW_MAX);
}

bool
id_key(const struct id *id, uint64_t seed, struct id_key *out)
{
	if (id->cut || id->len < (id->type == ID_STRING ? 2 : 1))
		return false;
	switch (id->type) {
	case ID_STRING:
		out->len = string_put(id, out->bytes);
		break;
	case ID_NUMBER:
		out->len = number_put(id, out->bytes);
		break;
	case ID_NONE:
	case ID_NULL:
	case ID_OTHER:
		return false;
	}
	out->hash = hash_keyed(out->bytes, out->len, seed);
	return true;
}

double
id_double(const struct id *id)
{
	char text[ID_RAW_MAX + 1];
	int64_t v = 0;
	uint32_t i;

	for (i = 0; i < id->len && i < SAFE_DIGITS; i++) {
		if (!is_digit(id->raw[i]))
			break;
		v = v * 10 + (id->raw[i] - '0');
	}
	if (i == id->len || id->len > ID_RAW_MAX)
		return (double)v;
	memcpy(text, id->raw, id->len);
	text[id->len] = '\0';
	return strtod(text, NULL);
}
