/* SPDX-License-Identifier: MIT */
/*
 * What the server's tools/list replies told of its tools, as far as the cut
 * depends on it: has a tool an outputSchema, and does its _meta raise the
 * limit (anthropic/maxResultSizeChars)? Learned by one streaming scan of each
 * reply, in memory proportional to the number of tools; forgotten when the
 * list changes, until it is listed again.
 */
#ifndef SPILLWAY_TOOLS_H
#define SPILLWAY_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spillway/budget.h"

enum tool_schema { TOOL_UNKNOWN, TOOL_PLAIN, TOOL_HAS_SCHEMA };

struct tools;

/* NULL when out of memory. seed: as for message_hash_token(). */
struct tools *tools_new(struct budget *, uint64_t seed, uint32_t max_depth);
void tools_free(struct tools **);

/* One reply to tools/list (any page of it), in pieces of any size. */
void tools_begin(struct tools *);
void tools_feed(struct tools *, const char *, size_t);

/* notifications/tools/list_changed: what was told holds no longer. */
void tools_forget(struct tools *);

/* name: hash of the tool's name, as in message.h; 0 = none. */
enum tool_schema tools_schema(const struct tools *, uint64_t name);

/* Bytes its results may have at least, or 0; most: of any tool. */
uint64_t tools_size(const struct tools *, uint64_t name);
uint64_t tools_most(const struct tools *);

#endif
