/* SPDX-License-Identifier: MIT */
/*
 * The kernel over blocks of 64 bytes, written once for all vector units:
 * scan_kernel.c includes this once per unit, with BLOCK(name) giving the
 * unit's name to a function, and BLOCK_FN in front of each. A unit provides
 * struct BLOCK(block), BLOCK(load), BLOCK(plain) (no quote, backslash,
 * control or non-ASCII byte) and masks with a bit per byte: BLOCK(range),
 * BLOCK(equal). Every block starts outside escapes and UTF-8 sequences, and
 * what its end cuts is left to the next: no state goes from block to block.
 */

/* Which bytes are the second of an escape, and the fault bits among them. */
BLOCK_FN uint64_t
BLOCK(escapes)(struct BLOCK(block) b, uint64_t slash, uint64_t *wrong,
    unsigned *cut)
{
	const uint64_t odd = UINT64_C(0xaaaaaaaaaaaaaaaa);
	/* Per run of backslashes: the borrow finds the escaped ones. */
	uint64_t run = (((slash << 1) | odd) - slash) ^ odd;
	uint64_t escaped = run ^ slash;
	uint64_t u = BLOCK(equal)(b, 'u') & escaped;

	*wrong |= escaped & ~(u | BLOCK(equal)(b, '"') |
	    BLOCK(equal)(b, '\\') | BLOCK(equal)(b, '/') |
	    BLOCK(equal)(b, 'n') | BLOCK(equal)(b, 't') |
	    BLOCK(equal)(b, 'r') | BLOCK(equal)(b, 'b') |
	    BLOCK(equal)(b, 'f'));
	if (u != 0) {
		uint64_t hex = BLOCK(range)(b, '0', '9') |
		    BLOCK(range)(b, 'a', 'f') | BLOCK(range)(b, 'A', 'F');

		*wrong |= (u << 1 | u << 2 | u << 3 | u << 4) & ~hex;
	}
	if (run & slash & (UINT64_C(1) << 63))
		*cut = 63;
	if (u >> 60 != 0)
		*cut = 59 + (unsigned)__builtin_ctzll(u >> 60);
	return escaped;
}

/* Second bytes that table 3-7 of the Unicode standard does not allow. */
BLOCK_FN uint64_t
BLOCK(narrow)(struct BLOCK(block) b)
{
	return (BLOCK(equal)(b, 0xe0) << 1 & BLOCK(range)(b, 0x80, 0x9f)) |
	    (BLOCK(equal)(b, 0xed) << 1 & BLOCK(range)(b, 0xa0, 0xbf)) |
	    (BLOCK(equal)(b, 0xf0) << 1 & BLOCK(range)(b, 0x80, 0x8f)) |
	    (BLOCK(equal)(b, 0xf4) << 1 & BLOCK(range)(b, 0x90, 0xbf));
}

/* Fault bits of UTF-8, each at the byte where the fault shows. */
BLOCK_FN uint64_t
BLOCK(utf8)(struct BLOCK(block) b, uint64_t high, unsigned *cut)
{
	uint64_t more = BLOCK(range)(b, 0x80, 0xbf);
	uint64_t two = BLOCK(range)(b, 0xc2, 0xdf);
	uint64_t three = BLOCK(range)(b, 0xe0, 0xef);
	uint64_t four = BLOCK(range)(b, 0xf0, 0xf4);
	uint64_t due = (two | three | four) << 1 | (three | four) << 2 |
	    four << 3;
	unsigned end = 64;

	if ((three | four) == 0) { /* most of what is not ASCII in the West */
		if (two >> 63 && *cut > 63)
			*cut = 63;
		return (due ^ more) | (high & ~(more | two));
	}
	if ((two | three | four) >> 63)
		end = 63;
	else if ((three | four) >> 62)
		end = 62;
	else if (four >> 61)
		end = 61;
	if (end < *cut)
		*cut = end;
	return (due ^ more) | (high & ~(more | two | three | four)) |
	    BLOCK(narrow)(b);
}

BLOCK_FN const char *
BLOCK(skip)(const char *p, const char *end)
{
	while (end - p >= 64) {
		struct BLOCK(block) b = BLOCK(load)(p);

		if (BLOCK(plain)(b)) {
			p += 64;
			continue;
		}
		uint64_t quote = BLOCK(equal)(b, '"');
		uint64_t slash = BLOCK(equal)(b, '\\');
		uint64_t wrong = BLOCK(range)(b, 0, 0x1f);
		uint64_t high = BLOCK(range)(b, 0x80, 0xff);
		unsigned cut = 64;

		if (slash != 0)
			quote &= ~BLOCK(escapes)(b, slash, &wrong, &cut);
		if (high != 0)
			wrong |= BLOCK(utf8)(b, high, &cut);
		if (cut < 64) {
			quote &= (UINT64_C(1) << cut) - 1;
			/* At the cut itself a sequence before it may lack. */
			wrong &= (UINT64_C(2) << cut) - 1;
		}
		/* A fault counts up to the quote: there it ends the string. */
		if (wrong & (quote ^ (quote - 1)))
			return p;
		if (quote != 0)
			return p + __builtin_ctzll(quote);
		p += cut;
	}
	return p;
}
