/* SPDX-License-Identifier: MIT */
/*
 * The hash of every table whose keys a peer chooses: keyed, so that nobody
 * who does not know the key can make its chains long.
 */
#ifndef SPILLWAY_HASH_H
#define SPILLWAY_HASH_H

#include <stddef.h>
#include <stdint.h>

/* n bytes at p under the session's secret seed. */
uint64_t hash_keyed(const char *p, size_t n, uint64_t seed);

#endif
