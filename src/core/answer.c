/* SPDX-License-Identifier: MIT */
/*
 * Lines of the proxy's own: errors and results in place of replies, and
 * cancellations. They enter the same queues as everything else, at a frame
 * border, out of the budget's reserve.
 */
#include <stdio.h>

#include "relay_impl.h"

/* Its reply is settled: nothing more will be forwarded for it. */
void
request_close(struct relay *r, uint32_t ref)
{
	struct pending_request *q = pending_get(r->asked_by_host, ref);

	if (q == NULL)
		return;
	if (q->token.type != ID_NONE && !q->task)
		closed_add(r, &q->token);
	pending_close(r->asked_by_host, ref);
	relay_count_pending(r);
}

/* Progress restarts the request's deadline (contract section 5). */
void
request_progress(struct relay *r, uint32_t ref)
{
	struct pending_request *q = pending_get(r->asked_by_host, ref);

	if (q != NULL && q->deadline != USEC_NEVER)
		pending_set_deadline(r->asked_by_host, ref,
		    r->now + r->limits.request_timeout);
}

static void
put_host(struct relay *r, const char *line, size_t n, uint32_t ref)
{
	struct frame_tag tag = { .class = FRAME_MADE, .ref = ref };

	if (n == 0 || r->host_gone || r->limits.observe)
		return;
	if (queue_put(r->host_queue, line, n, &tag, r->now, false) != 0 &&
	    (!shed_for(r, n) || queue_put(r->host_queue, line, n, &tag,
	    r->now, false) != 0)) {
		relay_end(r, END_OVERLOAD);
		return;
	}
	r->m.replies_synthesized++;
}

/*
 * Errors for a stall or a deadline may still be replaced by the server's own
 * answer; all others are the last word.
 */
static bool
replaceable(enum reply_error e)
{
	return e == REPLY_HOST_STALLED || e == REPLY_REQUEST_TIMEOUT;
}

void
answer_host(struct relay *r, uint32_t ref, enum reply_error e,
    const struct reply_facts *facts)
{
	struct pending_request *q = pending_get(r->asked_by_host, ref);
	char line[REPLY_MAX];

	if (q == NULL || q->state == PENDING_CLOSED || r->limits.observe)
		return;
	put_host(r, line, reply_make_error(line, sizeof line, &q->id, e,
	    facts), ref);
	if (q->state == PENDING_CLOSED) /* no room: all were answered */
		return;
	if (replaceable(e)) {
		q->state = PENDING_ANSWERED;
		pending_set_deadline(r->asked_by_host, ref, USEC_NEVER);
	} else {
		request_close(r, ref);
	}
}

/* For a request that is not tracked. */
void
answer_host_id(struct relay *r, const struct id *id, enum reply_error e,
    const struct reply_facts *facts)
{
	char line[REPLY_MAX];

	put_host(r, line, reply_make_error(line, sizeof line, id, e, facts),
	    PENDING_NONE);
}

void
answer_too_large_result(struct relay *r, uint32_t ref,
    const struct reply_facts *facts)
{
	struct pending_request *q = pending_get(r->asked_by_host, ref);
	char line[REPLY_MAX];

	if (q == NULL)
		return;
	put_host(r, line, reply_make_too_large_result(line, sizeof line,
	    &q->id, q->modern, facts), ref);
	request_close(r, ref);
}

/* The error that waits for the host is to give way; false: too late. */
bool
answer_withdraw(struct relay *r, uint32_t ref)
{
	struct pending_request *q = pending_get(r->asked_by_host, ref);
	struct frame *f = queue_first_unsent(r->host_queue);

	for (; f != NULL; f = queue_next(f)) {
		const struct frame_tag *tag = frame_tag(f);

		if (tag->class != FRAME_MADE || tag->ref != ref)
			continue;
		queue_drop(r->host_queue, f);
		r->m.replies_synthesized--;
		if (q != NULL)
			q->state = PENDING_REPLYING;
		return true;
	}
	return false;
}

/* Lines to the server wear the framing that the host uses. */
int
server_put(struct relay *r, const char *line, size_t n,
    const struct frame_tag *tag, bool ahead)
{
	char framed[REPLY_MAX + 64];
	int head;

	if (n == 0 || r->limits.observe)
		return 0;
	if (!r->to_server.framed)
		return queue_put(r->server_queue, line, n, tag, r->now,
		    ahead);
	head = snprintf(framed, sizeof framed, "Content-Length: %zu\r\n\r\n",
	    n - 1);
	if (head < 0 || (size_t)head + n > sizeof framed)
		return -1;
	for (size_t i = 0; i + 1 < n; i++)
		framed[(size_t)head + i] = line[i];
	return queue_put(r->server_queue, framed, (size_t)head + n - 1, tag,
	    r->now, ahead);
}

void
answer_server_id(struct relay *r, const struct id *id, enum reply_error e,
    const struct reply_facts *facts)
{
	struct frame_tag tag = { .class = FRAME_MADE, .ref = PENDING_NONE };
	char line[REPLY_MAX];
	size_t n = reply_make_error(line, sizeof line, id, e, facts);

	if (id->type == ID_NONE || id->cut)
		return;
	if (server_put(r, line, n, &tag, false) != 0)
		to_stderr_log(r->err, LOG_LEVEL_WARN,
		    "no room for an error to the server");
}

/* The exceptions of contract section 5. */
bool
cancel_allowed(const struct pending_request *q)
{
	return q->method != METHOD_INITIALIZE &&
	    q->method != METHOD_DISCOVER && q->method != METHOD_LISTEN &&
	    !q->task && !q->twice && !q->cancel_sent &&
	    q->state != PENDING_CLOSED;
}

void
cancel_send(struct relay *r, uint32_t ref, const char *reason)
{
	struct pending_request *q = pending_get(r->asked_by_host, ref);
	struct frame_tag tag = { .class = FRAME_MADE, .ref = PENDING_NONE };
	char line[REPLY_MAX];
	size_t n;

	if (q == NULL || !r->limits.cancel || r->limits.observe ||
	    r->server_gone)
		return;
	n = reply_make_cancel(line, sizeof line, &q->id, reason,
	    q->modern ? q->meta : NULL, q->modern ? q->meta_len : 0);
	if (n == 0)
		n = reply_make_cancel(line, sizeof line, &q->id, reason,
		    NULL, 0);
	if (server_put(r, line, n, &tag, true) != 0)
		return;
	q->cancel_sent = true;
	r->m.cancels_sent++;
}
