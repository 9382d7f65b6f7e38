/* SPDX-License-Identifier: MIT */
/*
 * Requests whose reply has not been seen: the only memory across frames. One
 * table a direction, since both sides number their requests from 0. A
 * multiset: some hosts use one id twice at once; then replies close them in
 * order of arrival, and neither is cancelled.
 *
 * Lookup is by canonical id (id.h), then, for numbers, by double value if
 * just one entry has it (JavaScript rounds 2^53+1). All operations are O(1)
 * but those that say otherwise. Memory is charged to the books share; when
 * the table's own bound is reached, the oldest entries are forgotten and
 * counted by pending_untracked().
 */
#ifndef SPILLWAY_PENDING_H
#define SPILLWAY_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spillway/budget.h"
#include "spillway/id.h"
#include "spillway/limits.h"

#define PENDING_NONE UINT32_MAX

/* What a request asks for, as far as rules depend on it. */
enum method_class {
	METHOD_OTHER,
	METHOD_INITIALIZE,
	METHOD_DISCOVER,     /* server/discover */
	METHOD_TOOLS_CALL,
	METHOD_TOOLS_LIST,
	METHOD_TASKS_RESULT,
	METHOD_LISTEN,	     /* subscriptions/listen */
	METHOD_ASKS_PERSON,  /* elicitation/create, sampling/createMessage */
};

enum pending_state {
	PENDING_QUEUED,	   /* not yet begun to leave to its receiver */
	PENDING_SENT,	   /* on its way or received; no reply seen */
	PENDING_REPLYING,  /* bytes of its reply have been seen */
	PENDING_ANSWERED,  /* the proxy's error waits, unsent, in the queue */
	PENDING_CLOSED,	   /* its reply is settled, see pending_close() */
};

struct pending_request {
	enum method_class method;
	enum pending_state state;
	bool modern;	     /* told by its _meta protocol version */
	bool task;	     /* task-augmented: never cancelled */
	bool twice;	     /* its id was pending when it came */
	bool cancel_sent;
	usec_t born;
	usec_t deadline;     /* USEC_NEVER, or when it times out */
	uint64_t tool;	     /* hash of the tool's name, or 0 */
	uint64_t stream;     /* place of its end in the bytes sent, or 0 */
	struct id id;	     /* the requester's own spelling */
	struct id token;     /* its progress token, type ID_NONE if none */
	const char *meta;    /* raw `"io.modelcontextprotocol/..":..,` members */
	uint32_t meta_len;
};

struct pending;

/* max_bytes: bound of this table. NULL when out of memory. */
struct pending *pending_new(struct budget *, uint64_t max_bytes,
    uint64_t seed);
void pending_free(struct pending **);

/*
 * Add a request; id, token and meta are copied. Returns its reference, or
 * PENDING_NONE if it cannot be tracked (its id is too long or of no valid
 * type, or there is no memory); that is counted.
 */
uint32_t pending_add(struct pending *, const struct pending_request *);

/* Oldest entry with this id, or PENDING_NONE. */
uint32_t pending_find(const struct pending *, const struct id *);

/* Oldest entry with this progress token, or PENDING_NONE. */
uint32_t pending_find_token(const struct pending *, const struct id *token);

/*
 * The entry, or NULL for a reference that is gone (references are never
 * taken for another's: index and generation). State fields may be changed
 * in place; deadline only by pending_set_deadline().
 */
struct pending_request *pending_get(struct pending *, uint32_t ref);
void pending_remove(struct pending *, uint32_t ref);

/*
 * Its reply was seen: it is not found, listed, timed or counted any more, but
 * pending_get() knows it until pending_remove(), so that a reply that waits
 * in the queue can still be replaced by an error with the host's own id.
 */
void pending_close(struct pending *, uint32_t ref);

/* Entries in order of arrival. */
uint32_t pending_first(const struct pending *);
uint32_t pending_next(const struct pending *, uint32_t ref);

/* Deadlines: O(log n). next is the nearest, or USEC_NEVER. */
void pending_set_deadline(struct pending *, uint32_t ref, usec_t when);
usec_t pending_next_deadline(const struct pending *);
uint32_t pending_expired(const struct pending *, usec_t now);

uint64_t pending_count(const struct pending *);
uint64_t pending_bytes(const struct pending *);

/*
 * Requests not tracked or forgotten so far: while that is not 0, a reply to
 * an unknown id may be the answer to one of them.
 */
uint64_t pending_untracked(const struct pending *);
void pending_miss(struct pending *); /* one went by that could not be read */

const char *method_class_name(enum method_class);
const char *pending_state_name(enum pending_state);

#endif
