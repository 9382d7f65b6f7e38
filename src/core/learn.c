/* SPDX-License-Identifier: MIT */
/*
 * What a whole frame from the host means: requests become pending, responses
 * close what the server asked, cancels end what the host asked. Nothing here
 * changes a byte of the frame.
 */
#include <string.h>

#include "relay_impl.h"

#define META_BYTES_MAX 4096 /* protocol members of one request's _meta */

/* The request's raw protocol members, joined by commas; 0 if none. */
static size_t
read_meta(struct to_server *t, const struct message *m, char *buf)
{
	size_t at = 0;

	for (unsigned i = 0; i < m->meta_count; i++) {
		uint64_t n = m->meta[i].to - m->meta[i].from;

		if (n + 1 > META_BYTES_MAX - at)
			return 0;
		if (at > 0)
			buf[at++] = ',';
		if (!to_server_read(t, t->text_at + m->meta[i].from, buf + at,
		    (size_t)n))
			return 0;
		at += (size_t)n;
	}
	return at;
}

static usec_t
deadline_of(const struct relay *r, const struct message *m)
{
	if (r->limits.request_timeout == USEC_NEVER || m->task ||
	    m->method_class == METHOD_INITIALIZE ||
	    m->method_class == METHOD_DISCOVER ||
	    m->method_class == METHOD_LISTEN)
		return USEC_NEVER;
	return r->now + r->limits.request_timeout;
}

static uint32_t
note_request(struct to_server *t, const struct message *m)
{
	struct relay *r = t->r;
	char meta[META_BYTES_MAX];
	struct pending_request q = {
		.method = m->method_class,
		.state = PENDING_QUEUED,
		.modern = m->modern,
		.task = m->task,
		.born = r->now,
		.deadline = deadline_of(r, m),
		.tool = m->tool,
		.id = message_id(&m->id),
		.token = message_id(&m->token),
		.meta = meta,
	};
	uint32_t old = pending_find(r->asked_by_host, &q.id), ref;
	struct pending_request *other = pending_get(r->asked_by_host, old);

	if (m->modern)
		q.meta_len = (uint32_t)read_meta(t, m, meta);
	if (other != NULL)
		q.twice = other->twice = true;
	if (q.token.type != ID_NONE)
		closed_remove(r, &q.token);
	ref = pending_add(r->asked_by_host, &q);
	relay_count_pending(r);
	return ref;
}

static void
note_response(struct relay *r, const struct message *m)
{
	struct id id = message_id(&m->id);
	uint32_t ref = pending_find(r->asked_by_server, &id);

	pending_remove(r->asked_by_server, ref);
	relay_count_pending(r);
}

/* The host no longer wants the reply: whatever comes is suppressed. */
static void
note_cancel(struct relay *r, const struct message *m)
{
	struct id id = message_id(&m->request);
	uint32_t ref = pending_find(r->asked_by_host, &id);
	struct pending_request *q = pending_get(r->asked_by_host, ref);

	if (q == NULL || q->twice)
		return;
	if (q->state == PENDING_ANSWERED)
		answer_withdraw(r, ref);
	request_close(r, ref);
	pending_remove(r->asked_by_host, ref);
}

void
learn_element(void *arg, struct message *m)
{
	struct to_server *t = arg;
	struct relay *r = t->r;
	struct id id;

	switch (message_kind(m)) {
	case MESSAGE_REQUEST:
		batch_add(r, &t->requests, note_request(t, m));
		break;
	case MESSAGE_RESULT:
	case MESSAGE_ERROR:
		id = message_id(&m->id);
		batch_add(r, &t->replies, pending_find(r->asked_by_server,
		    &id));
		break;
	case MESSAGE_NOTIFICATION:
		if (m->notice_class == NOTICE_CANCELLED)
			note_cancel(r, m);
		break;
	case MESSAGE_NONE:
		break;
	}
}

static void
learn_batch(struct to_server *t)
{
	struct relay *r = t->r;

	for (uint32_t i = 0; i < t->replies.count; i++)
		pending_remove(r->asked_by_server, t->replies.refs[i]);
	/* Its requests are on their way together with it. */
	for (uint32_t i = 0; i < t->requests.count; i++) {
		struct pending_request *q = pending_get(r->asked_by_host,
		    t->requests.refs[i]);

		if (q != NULL)
			q->state = PENDING_SENT;
	}
	relay_count_pending(r);
}

void
learn_frame(struct to_server *t, struct frame_tag *tag)
{
	struct message *m = &t->msg;

	if (m->batch) {
		learn_batch(t);
		return;
	}
	switch (message_kind(m)) {
	case MESSAGE_REQUEST:
		tag->class = FRAME_REQUEST;
		tag->ref = note_request(t, m);
		break;
	case MESSAGE_RESULT:
	case MESSAGE_ERROR:
		note_response(t->r, m);
		break;
	case MESSAGE_NOTIFICATION:
		if (m->notice_class == NOTICE_CANCELLED)
			note_cancel(t->r, m);
		break;
	case MESSAGE_NONE:
		break;
	}
}

static void
refuse_batch(struct to_server *t, enum reply_error e,
    const struct reply_facts *facts)
{
	struct relay *r = t->r;

	for (uint32_t i = 0; i < t->requests.count; i++)
		answer_host(r, t->requests.refs[i], e, facts);
	for (uint32_t i = 0; i < t->replies.count; i++) {
		struct pending_request *q = pending_get(r->asked_by_server,
		    t->replies.refs[i]);

		if (q == NULL)
			continue;
		answer_server_id(r, &q->id, e, facts);
		pending_remove(r->asked_by_server, t->replies.refs[i]);
	}
	relay_count_pending(r);
}

static void
refuse_response(struct relay *r, const struct id *id, enum reply_error e,
    const struct reply_facts *facts)
{
	uint32_t ref = pending_find(r->asked_by_server, id);
	struct pending_request *q = pending_get(r->asked_by_server, ref);

	if (q == NULL)
		return;
	answer_server_id(r, &q->id, e, facts);
	pending_remove(r->asked_by_server, ref);
	relay_count_pending(r);
}

/* The frame is over a limit, or there was no room: answer in its place. */
void
learn_refused(struct to_server *t)
{
	struct relay *r = t->r;
	struct message *m = &t->msg;
	enum reply_error e = t->over == OVER_ROOM ? REPLY_OVERLOADED :
	    REPLY_FRAME_TOO_LARGE;
	struct reply_facts facts = { .bytes = t->bytes };
	struct id id;

	if (t->over == OVER_BYTES)
		facts.limit = r->limits.max_frame;
	if (t->over == OVER_DEPTH) {
		facts.limit = r->limits.max_depth;
		facts.depth = true;
	}
	if (t->over != OVER_ROOM)
		r->m.oversize_frames++;
	to_stderr_log(r->err, LOG_LEVEL_INFO, "a frame of the host %s "
	    "bytes=%llu limit=%llu", t->over == OVER_ROOM ? "found no room" :
	    t->over == OVER_DEPTH ? "is over the depth limit" :
	    "is over the frame limit", (unsigned long long)facts.bytes,
	    (unsigned long long)facts.limit);
	if (!t->begun)
		return;
	if (m->batch) {
		refuse_batch(t, e, &facts);
		return;
	}
	id = message_id(&m->id);
	if (id.type != ID_STRING && id.type != ID_NUMBER)
		return;
	if (m->has_method)
		answer_host_id(r, &id, e, &facts);
	else if (m->has_result || m->has_error)
		refuse_response(r, &id, e, &facts);
}
