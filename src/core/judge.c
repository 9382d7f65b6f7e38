/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a whole line from the server: forwarded, suppressed,
 * answered in its place, or diverted to stderr (contract sections 2, 3, 5).
 */
#include <string.h>

#include "relay_impl.h"

enum fate { FATE_FORWARD, FATE_SUPPRESS, FATE_PROGRESS };

static const struct {
	enum repair bit;
	const char *text;
} repair_names[] = {
	{ REPAIR_CR, "CR before LF removed" },
	{ REPAIR_BOM, "byte order mark removed" },
	{ REPAIR_GLUED, "text before a message on its line diverted" },
	{ REPAIR_SPLIT, "text behind a message put on a line of its own" },
	{ REPAIR_UTF8, "ill-formed UTF-8 replaced by U+FFFD" },
	{ REPAIR_NAN, "NaN or Infinity replaced by null" },
	{ REPAIR_FRAMING, "Content-Length framing removed" },
	{ REPAIR_NO_LF, "missing LF at the end added" },
};

static void
count_repairs(struct to_host *t)
{
	struct relay *r = t->r;

	if (t->repairs == 0)
		return;
	r->m.repairs++;
	for (size_t i = 0; i < sizeof repair_names / sizeof *repair_names;
	    i++) {
		enum repair bit = repair_names[i].bit;

		if ((t->repairs & bit) == 0 || (r->repairs_told & bit) != 0)
			continue;
		r->repairs_told |= bit;
		to_stderr_log(r->err, LOG_LEVEL_WARN,
		    "repaired a line of the server: %s; told once, then "
		    "counted", repair_names[i].text);
	}
}

static uint64_t
frame_size(const struct to_host *t)
{
	return t->bytes + 1;
}

static void
note_size(struct to_host *t)
{
	if (frame_size(t) > t->r->m.largest_frame_bytes)
		t->r->m.largest_frame_bytes = frame_size(t);
}

/* Its error waits for the host: nothing of it may come behind that. */
static bool
is_answered(struct relay *r, uint32_t ref)
{
	return pending_get(r->asked_by_host, ref)->state == PENDING_ANSWERED;
}

/* Which tag a notification gets, and whether it may pass. */
static enum fate
judge_notice(struct to_host *t, struct message *m, struct frame_tag *tag)
{
	struct relay *r = t->r;
	struct id token;
	struct id_key key;
	uint32_t ref;

	switch (m->notice_class) {
	case NOTICE_CANCELLED:
		token = message_id(&m->request);
		ref = pending_find(r->asked_by_server, &token);
		if (ref != PENDING_NONE)
			pending_remove(r->asked_by_server, ref);
		relay_count_pending(r);
		break;
	case NOTICE_PROGRESS:
		token = message_id(&m->token);
		ref = pending_find_token(r->asked_by_host, &token);
		if (ref == PENDING_NONE ? closed_has(r, &token) :
		    is_answered(r, ref))
			return FATE_PROGRESS;
		if (ref != PENDING_NONE)
			request_progress(r, ref);
		if (id_key(&token, r->seed, &key)) {
			tag->class = FRAME_PROGRESS;
			tag->key = key.hash;
		}
		break;
	case NOTICE_LOG:
		tag->class = FRAME_LOG;
		break;
	case NOTICE_CHANGED:
		tag->class = FRAME_CHANGED;
		tag->key = m->method_hash ^ m->subscription * 3;
		if (m->method_class == METHOD_OTHER && r->tools != NULL)
			tools_changed(r);
		break;
	case NOTICE_UPDATED:
		tag->class = FRAME_CHANGED;
		tag->key = m->method_hash ^ m->subscription * 3 ^ m->uri * 7;
		break;
	case NOTICE_OTHER:
		break;
	}
	return FATE_FORWARD;
}

static void
log_orphan_error(struct relay *r)
{
	char ids[200];
	size_t at = 0;

	for (uint32_t ref = pending_first(r->asked_by_host);
	    ref != PENDING_NONE; ref = pending_next(r->asked_by_host, ref)) {
		const struct id *id = &pending_get(r->asked_by_host, ref)->id;

		if (at + id->len + 2 > sizeof ids)
			break;
		if (at > 0)
			ids[at++] = ',';
		memcpy(ids + at, id->raw, id->len);
		at += id->len;
	}
	to_stderr_log(r->err, LOG_LEVEL_WARN,
	    "the server sent an error without an id; not forwarded "
	    "pending=%.*s", (int)at, ids);
}

/* A response: may it pass, and which request does it answer? */
static enum fate
judge_response(struct relay *r, struct message *m, uint32_t *ref_r)
{
	struct id id = message_id(&m->id);
	struct pending_request *q;

	*ref_r = PENDING_NONE;
	if (id.type == ID_NONE || id.type == ID_NULL) {
		log_orphan_error(r);
		return FATE_SUPPRESS;
	}
	*ref_r = pending_find(r->asked_by_host, &id);
	q = pending_get(r->asked_by_host, *ref_r);
	if (q == NULL)
		return pending_untracked(r->asked_by_host) > 0 ?
		    FATE_FORWARD : FATE_SUPPRESS;
	if (q->state == PENDING_ANSWERED && !answer_withdraw(r, *ref_r)) {
		/* Our error has begun to leave: that was the one answer. */
		request_close(r, *ref_r);
		pending_remove(r->asked_by_host, *ref_r);
		*ref_r = PENDING_NONE;
		return FATE_SUPPRESS;
	}
	return FATE_FORWARD;
}

/* A request of the server's: remember it until the host has answered. */
static uint32_t
note_request(struct relay *r, const struct message *m)
{
	struct pending_request q = {
		.method = m->method_class,
		.state = PENDING_QUEUED,
		.task = m->task,
		.born = r->now,
		.deadline = USEC_NEVER,
		.id = message_id(&m->id),
	};
	uint32_t ref = pending_add(r->asked_by_server, &q);

	relay_count_pending(r);
	return ref;
}

void
judge_element(void *arg, struct message *m)
{
	struct to_host *t = arg;
	struct relay *r = t->r;
	struct frame_tag tag = { .class = FRAME_OTHER };
	enum fate fate = FATE_FORWARD;
	uint32_t ref;

	switch (message_kind(m)) {
	case MESSAGE_REQUEST:
		batch_add(r, &t->requests, note_request(r, m));
		break;
	case MESSAGE_NOTIFICATION:
		fate = judge_notice(t, m, &tag);
		break;
	case MESSAGE_RESULT:
	case MESSAGE_ERROR:
		fate = judge_response(r, m, &ref);
		if (ref != PENDING_NONE)
			batch_add(r, &t->replies, ref);
		break;
	case MESSAGE_NONE:
		break;
	}
	if (fate == FATE_FORWARD)
		t->replies.others++;
	else
		t->replies.suppress++;
}

/* The frame is too large or too deep, or there was no room for it. */
static struct reply_facts
over_facts(const struct to_host *t)
{
	struct reply_facts f = { .bytes = frame_size(t) };

	if (t->over == OVER_BYTES)
		f.limit = t->r->limits.max_frame;
	if (t->over == OVER_DEPTH) {
		f.limit = t->r->limits.max_depth;
		f.depth = true;
	}
	return f;
}

static enum reply_error
over_error(const struct to_host *t)
{
	return t->over == OVER_ROOM ? REPLY_OVERLOADED : REPLY_FRAME_TOO_LARGE;
}

static void
log_over(struct to_host *t, const char *what)
{
	struct relay *r = t->r;

	if (t->over == OVER_DEPTH)
		to_stderr_log(r->err, LOG_LEVEL_WARN,
		    "%s of the server is over the depth limit bytes=%llu "
		    "limit=%u", what, (unsigned long long)frame_size(t),
		    (unsigned)r->limits.max_depth);
	else if (t->over == OVER_BYTES)
		to_stderr_log(r->err, LOG_LEVEL_WARN,
		    "%s of the server is over the frame limit bytes=%llu "
		    "limit=%llu", what, (unsigned long long)frame_size(t),
		    (unsigned long long)r->limits.max_frame);
	else
		to_stderr_log(r->err, LOG_LEVEL_WARN,
		    "no room for %s of the server bytes=%llu", what,
		    (unsigned long long)frame_size(t));
}

static bool
is_handshake(const struct pending_request *q)
{
	return q != NULL && (q->method == METHOD_INITIALIZE ||
	    q->method == METHOD_DISCOVER);
}

static void
over_reply(struct to_host *t, uint32_t ref)
{
	struct relay *r = t->r;
	struct pending_request *q = pending_get(r->asked_by_host, ref);
	struct reply_facts facts = over_facts(t);
	struct id id;

	if (is_handshake(q)) {
		to_stderr_log(r->err, LOG_LEVEL_ERROR,
		    "the reply to %s is over the frame limit, so the session "
		    "cannot begin: raise --max-frame bytes=%llu limit=%llu",
		    q->method == METHOD_INITIALIZE ? "initialize" :
		    "server/discover", (unsigned long long)facts.bytes,
		    (unsigned long long)facts.limit);
		relay_end(r, END_HANDSHAKE);
		return;
	}
	log_over(t, "a reply");
	if (q == NULL) {
		id = message_id(&t->msg.id);
		answer_host_id(r, &id, over_error(t), &facts);
	} else if (q->method == METHOD_TOOLS_CALL && t->over != OVER_ROOM &&
	    !t->msg.has_error) {
		if (cutting_reply(t, ref) != 0)
			answer_too_large_result(r, ref, &facts);
	} else {
		answer_host(r, ref, over_error(t), &facts);
	}
}

static void
over_batch(struct to_host *t)
{
	struct relay *r = t->r;
	struct reply_facts facts = over_facts(t);

	log_over(t, "a batch");
	for (uint32_t i = 0; i < t->replies.count; i++)
		answer_host(r, t->replies.refs[i], over_error(t), &facts);
	for (uint32_t i = 0; i < t->requests.count; i++) {
		uint32_t ref = t->requests.refs[i];
		struct pending_request *q =
		    pending_get(r->asked_by_server, ref);

		if (q == NULL)
			continue;
		answer_server_id(r, &q->id, over_error(t), &facts);
		pending_remove(r->asked_by_server, ref);
	}
	relay_count_pending(r);
}

static void
over_notice(struct to_host *t)
{
	struct frame_tag tag = { .class = FRAME_OTHER };

	if (judge_notice(t, &t->msg, &tag) != FATE_FORWARD)
		return;
	log_over(t, "a notification");
	t->r->m.notifications_dropped++;
	if (t->over == OVER_ROOM && tag.class == FRAME_OTHER)
		relay_end(t->r, END_OVERLOAD);
}

static void
judge_over(struct to_host *t)
{
	struct relay *r = t->r;
	struct reply_facts facts = over_facts(t);
	struct id id = message_id(&t->msg.id);
	uint32_t ref;

	if (t->over != OVER_ROOM)
		r->m.oversize_frames++;
	if (t->msg.batch) {
		over_batch(t);
		return;
	}
	switch (message_kind(&t->msg)) {
	case MESSAGE_REQUEST:
		log_over(t, "a request");
		answer_server_id(r, &id, over_error(t), &facts);
		break;
	case MESSAGE_NOTIFICATION:
		over_notice(t);
		break;
	case MESSAGE_RESULT:
	case MESSAGE_ERROR:
		if (judge_response(r, &t->msg, &ref) == FATE_FORWARD)
			over_reply(t, ref);
		else
			r->m.replies_suppressed++;
		break;
	case MESSAGE_NONE:
		break;
	}
}

static void
forward_batch(struct to_host *t, bool lf)
{
	struct relay *r = t->r;
	struct frame_tag tag = { .class = FRAME_OTHER, .ref = PENDING_NONE };

	if (t->replies.others == 0) {
		r->m.replies_suppressed += t->replies.suppress;
		frame_forget(t);
		return;
	}
	if (frame_emit(t, &tag, lf) != 0) {
		judge_over(t);
		return;
	}
	count_repairs(t);
	for (uint32_t i = 0; i < t->replies.count; i++) {
		request_close(r, t->replies.refs[i]);
		pending_remove(r->asked_by_host, t->replies.refs[i]);
	}
}

static void
forward_reply(struct to_host *t, uint32_t ref, bool lf)
{
	struct relay *r = t->r;
	struct pending_request *q = pending_get(r->asked_by_host, ref);
	struct frame_tag tag = { .class = FRAME_REPLY, .ref = ref };

	if (q == NULL)
		tag.class = FRAME_OTHER;
	if (q != NULL && cutting_reply(t, ref) == 0)
		return;
	if (frame_emit(t, &tag, lf) != 0) {
		judge_over(t);
		return;
	}
	count_repairs(t);
	if (q != NULL)
		request_close(r, ref);
}

static void
suppress(struct to_host *t, enum fate fate)
{
	if (fate == FATE_PROGRESS)
		t->r->m.progress_suppressed++;
	else
		t->r->m.replies_suppressed++;
	if (t->observe)
		t->r->m.frames_to_host++;
	frame_forget(t);
}

static void
judge_single(struct to_host *t, bool lf)
{
	struct relay *r = t->r;
	struct frame_tag tag = { .class = FRAME_OTHER, .ref = PENDING_NONE };
	enum fate fate = FATE_FORWARD;
	uint32_t ref;

	switch (message_kind(&t->msg)) {
	case MESSAGE_RESULT:
	case MESSAGE_ERROR:
		fate = judge_response(r, &t->msg, &ref);
		if (fate == FATE_FORWARD) {
			forward_reply(t, ref, lf);
			return;
		}
		break;
	case MESSAGE_REQUEST:
		tag.class = FRAME_REQUEST;
		tag.ref = note_request(r, &t->msg);
		break;
	case MESSAGE_NOTIFICATION:
		fate = judge_notice(t, &t->msg, &tag);
		break;
	case MESSAGE_NONE:
		break;
	}
	if (fate != FATE_FORWARD) {
		suppress(t, fate);
		return;
	}
	if (frame_emit(t, &tag, lf) == 0) {
		count_repairs(t);
		return;
	}
	if (tag.class == FRAME_REQUEST)
		pending_remove(r->asked_by_server, tag.ref);
	judge_over(t);
}

/* A whole message; lf: its LF stands at t->at. */
void
judge_message(struct to_host *t, bool lf)
{
	struct relay *r = t->r;

	note_size(t);
	if (t->over != OVER_NOT) {
		t->sample_len = t->sample_frame;
		t->sample_total = t->sample_len;
	}
	if (t->sample_len > 0) {
		t->repairs |= REPAIR_GLUED;
		sample_tell(t);
	}
	if (t->observe && frame_size(t) > r->limits.max_frame)
		r->m.oversize_frames++;
	if (t->over != OVER_NOT)
		judge_over(t);
	else if (t->msg.batch)
		forward_batch(t, lf);
	else
		judge_single(t, lf);
}

/* Of a frame that cannot be forwarded: does its id ask for an answer? */
static bool
answer_malformed(struct to_host *t)
{
	struct relay *r = t->r;
	struct reply_facts facts = over_facts(t);
	struct id id = message_id(&t->msg.id);
	struct pending_request *q;
	uint32_t ref;

	if (!message_answers(&t->msg) || t->observe)
		return false;
	ref = pending_find(r->asked_by_host, &id);
	q = pending_get(r->asked_by_host, ref);
	if (q == NULL || q->state == PENDING_ANSWERED)
		return false;
	if (t->over != OVER_NOT) {
		r->m.oversize_frames++;
		if (is_handshake(q))
			over_reply(t, ref);
		else
			answer_host(r, ref, over_error(t), &facts);
	} else {
		answer_host(r, ref, REPLY_MALFORMED, &facts);
	}
	return true;
}

/*
 * It was to be a message; half: the stream ended in it. Then the server is
 * gone, which is the better answer: it is left to relay_server_gone().
 */
void
judge_broken(struct to_host *t, bool half)
{
	struct relay *r = t->r;
	bool meant = t->msg.jsonrpc && (t->msg.id.present ||
	    t->msg.has_method);

	note_size(t);
	if (half || answer_malformed(t) || meant)
		r->m.parse_failures++;
	else
		r->m.junk_lines++;
	sample_tell(t);
}

/* A line that holds no message: text, or JSON that is none. */
void
judge_other(struct to_host *t)
{
	struct relay *r = t->r;
	uint64_t length = 0;
	enum header_kind k;

	if (t->state == LINE_TAIL) {
		frame_sample(t);
		if (answer_malformed(t)) {
			r->m.parse_failures++;
			sample_tell(t);
			return;
		}
	}
	k = t->in_body || t->behind || r->limits.strict || t->observe ||
	    t->sample_total > SAMPLE_MAX || t->state != LINE_SEEK ?
	    HEADER_NONE : framing_header(t->sample, t->sample_len, &length);
	if (k == HEADER_LENGTH || k == HEADER_OTHER) {
		to_host_header(t, length, k == HEADER_LENGTH);
		return;
	}
	if (!t->behind)
		r->m.junk_lines++;
	sample_tell(t);
}

/* --cancel-grace: how long may a reply nobody waits for keep coming? */
static void
grace(struct to_host *t, const struct pending_request *q)
{
	struct relay *r = t->r;

	if (t->observe || !q->cancel_sent)
		return;
	if (t->cancelled_since == USEC_NEVER)
		t->cancelled_since = r->now;
	else if (r->limits.cancel_grace != USEC_NEVER &&
	    r->now - t->cancelled_since >= r->limits.cancel_grace)
		relay_end(r, END_GRACE);
}

/* While a text arrives: what does it already tell? */
void
judge_arriving(struct to_host *t)
{
	struct relay *r = t->r;
	struct message *m = &t->msg;
	struct pending_request *q;
	struct id id;
	uint32_t ref;

	if (!message_answers(m) || !m->jsonrpc ||
	    m->has_result == m->has_error)
		return;
	id = message_id(&m->id);
	ref = pending_find(r->asked_by_host, &id);
	q = pending_get(r->asked_by_host, ref);
	if (q == NULL)
		return;
	if (q->state == PENDING_QUEUED || q->state == PENDING_SENT)
		q->state = PENDING_REPLYING;
	cutting_known(t, ref);
	if (t->over != OVER_NOT && !q->cancel_sent && cancel_allowed(q))
		cancel_send(r, ref, "the reply is over spillway's limit");
	grace(t, q);
}
