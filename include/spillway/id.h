/* SPDX-License-Identifier: MIT */
/*
 * Request ids and progress tokens (contract section 5): the token keeps its
 * own spelling for what we send, and has a canonical form for comparing.
 * "1" and 1 differ; strings compare unescaped; numbers by exact decimal
 * value, so that 1, 1.0 and 1e0 are one id.
 */
#ifndef SPILLWAY_ID_H
#define SPILLWAY_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_RAW_MAX 1024 /* longer tokens are not tracked */

enum id_type { ID_NONE, ID_STRING, ID_NUMBER, ID_NULL, ID_OTHER };

/* A token in its own spelling (strings: with quotes), borrowed bytes. */
struct id {
	enum id_type type;
	bool cut;	 /* longer than ID_RAW_MAX; raw is its beginning */
	uint32_t len;	 /* bytes at raw */
	const char *raw; /* not NUL-terminated */
};

/* Canonical form: type byte and bytes that are equal iff the ids are. */
struct id_key {
	uint32_t len;
	uint64_t hash; /* keyed; see id_key() */
	char bytes[ID_RAW_MAX + 32];
};

/* Classify a raw JSON token (string with quotes, number, or other). */
struct id id_of(const char *raw, size_t n, bool cut);

/*
 * Canonical form of a string or number id; false for any other type or a cut
 * token. seed keys the hash, so that no peer can aim at collisions. Exponents
 * of any size are handled (1e999999999 stays distinct from 1e99999999).
 */
bool id_key(const struct id *, uint64_t seed, struct id_key *out);

/* The double nearest to a number id, as JavaScript would read it. */
double id_double(const struct id *);

#endif
