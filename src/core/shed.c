/* SPDX-License-Identifier: MIT */
/*
 * The ladder of contract section 4, when memory and spill are both full: what
 * may be given up so that the server is still drained. One rung after the
 * other, and no further than needed:
 *
 *   1 notifications that a newer one supersedes
 *   2 log messages, oldest first
 *   3 the largest replies and server requests, answered `overloaded`
 *
 * The fourth, the end of the session, is the caller's.
 */
#include <string.h>

#include "relay_impl.h"

#define SLACK (256u * 1024) /* freed beyond the need, so that it lasts */
#define KEYS 1024	    /* supersession is looked for among so many keys */
#define SMALL 1024	    /* a reply that an error is no smaller than */

struct newest {
	uint64_t key;
	struct frame *frame;
};

static bool
enough(const struct relay *r, uint64_t need)
{
	return budget_room(r->budget) >= need;
}

static bool
supersedes(enum frame_class c)
{
	return c == FRAME_PROGRESS || c == FRAME_CHANGED;
}

/*
 * Keep of each key the newest. A first sight of a key remembers the frame; a
 * second drops the one before it. Keys that collide push each other out of
 * the table: then some superseded ones stay, which is allowed.
 */
static void
coalesce(struct relay *r)
{
	struct newest table[KEYS];
	struct frame *f = queue_first_unsent(r->host_queue), *next;

	memset(table, 0, sizeof table);
	for (; f != NULL; f = next) {
		const struct frame_tag *tag = frame_tag(f);
		uint64_t key = tag->key ^ (uint64_t)tag->class << 56;
		struct newest *n = &table[(key ^ key >> 20) % KEYS];

		next = queue_next(f);
		if (!supersedes(tag->class))
			continue;
		if (n->frame != NULL && n->key == key) {
			queue_drop(r->host_queue, n->frame);
			r->m.notifications_coalesced++;
		}
		n->key = key;
		n->frame = f;
	}
}

static void
drop_logs(struct relay *r, uint64_t need)
{
	struct frame *f = queue_first_unsent(r->host_queue), *next;

	for (; f != NULL && !enough(r, need); f = next) {
		next = queue_next(f);
		if (frame_tag(f)->class != FRAME_LOG)
			continue;
		queue_drop(r->host_queue, f);
		r->m.notifications_dropped++;
	}
}

static struct frame *
largest(struct relay *r)
{
	struct frame *f = queue_first_unsent(r->host_queue), *best = NULL;

	for (; f != NULL; f = queue_next(f)) {
		enum frame_class c = frame_tag(f)->class;

		if (c != FRAME_REPLY && c != FRAME_REQUEST)
			continue;
		if (frame_bytes(f) > SMALL && (best == NULL ||
		    frame_bytes(f) > frame_bytes(best)))
			best = f;
	}
	return best;
}

/* An error takes the reply's place in the queue. */
static bool
replace_reply(struct relay *r, struct frame *f)
{
	struct frame_tag tag = *frame_tag(f);
	struct pending_request *q = pending_get(r->asked_by_host, tag.ref);
	struct reply_facts facts = { .bytes = frame_bytes(f) };
	char line[REPLY_MAX];
	size_t n;

	if (q == NULL)
		return false;
	n = reply_make_error(line, sizeof line, &q->id, REPLY_OVERLOADED,
	    &facts);
	tag.class = FRAME_MADE;
	if (n == 0 || queue_replace(r->host_queue, f, line, n, &tag) != 0)
		return false;
	r->m.replies_synthesized++;
	return true;
}

static bool
refuse_request(struct relay *r, struct frame *f)
{
	struct frame_tag tag = *frame_tag(f);
	struct pending_request *q = pending_get(r->asked_by_server, tag.ref);
	struct reply_facts facts = { .bytes = frame_bytes(f) };

	if (q == NULL)
		return false;
	queue_drop(r->host_queue, f);
	answer_server_id(r, &q->id, REPLY_OVERLOADED, &facts);
	pending_remove(r->asked_by_server, tag.ref);
	relay_count_pending(r);
	return true;
}

static void
replace_largest(struct relay *r, uint64_t need)
{
	struct frame *f;

	while (!enough(r, need) && (f = largest(r)) != NULL) {
		uint64_t bytes = frame_bytes(f);
		bool done = frame_tag(f)->class == FRAME_REPLY ?
		    replace_reply(r, f) : refuse_request(r, f);

		if (!done)
			return;
		to_stderr_log(r->err, LOG_LEVEL_INFO,
		    "memory and spill are full: a message of %llu bytes was "
		    "answered overloaded", (unsigned long long)bytes);
	}
}

/*
 * Make room for need bytes more towards the host. False: there is none to be
 * had by the rules.
 */
bool
shed_for(struct relay *r, uint64_t need)
{
	need += SLACK / 4;
	queue_settle(r->host_queue);
	if (enough(r, need))
		return true;
	coalesce(r);
	if (enough(r, need))
		return true;
	drop_logs(r, need + SLACK);
	if (enough(r, need))
		return true;
	replace_largest(r, need);
	to_stderr_log(r->err, LOG_LEVEL_DEBUG, "room was made by shedding "
	    "room=%llu", (unsigned long long)budget_room(r->budget));
	return enough(r, need);
}
