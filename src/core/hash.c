/* SPDX-License-Identifier: MIT */
/*
 * SipHash-1-3. It must not know what is hashed.
 */
#include "spillway/hash.h"

#include <string.h>

static inline uint64_t
rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static inline void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

/* The second half of the key is the first half, turned. */
uint64_t
hash_keyed(const char *p, size_t n, uint64_t seed)
{
	uint64_t other = rotate(seed, 29) * UINT64_C(0x9e3779b97f4a7c15);
	uint64_t v[4] = { seed ^ UINT64_C(0x736f6d6570736575),
		other ^ UINT64_C(0x646f72616e646f6d),
		seed ^ UINT64_C(0x6c7967656e657261),
		other ^ UINT64_C(0x7465646279746573) };
	uint64_t last = (uint64_t)n << 56;
	uint64_t word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = 0;
	memcpy(&word, p, n);
	last |= word;
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
