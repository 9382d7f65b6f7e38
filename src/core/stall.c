/* SPDX-License-Identifier: MIT */
/*
 * Whose fault a freeze is (contract sections 5 and 8), from probes and the
 * clock alone: the verdict on the host with what follows from it, deadlines
 * of single requests, and the one word of the metrics.
 *
 *   idle --bytes for the host--> armed --no progress for --stall-timeout,
 *     ^                            |      three probes in a row--> stalled
 *     '---- nothing left to read --'<------- the host moved ---------'
 */
#include "relay_impl.h"

#define PROBES 3
#define PROBE_MIN (50 * USEC_MSEC)
#define PROBE_MAX (1 * USEC_SEC)
#define LATE (400 * USEC_MSEC)	   /* a tick this late: we were starved */
#define FREEZE (5 * USEC_SEC)	   /* from when on the metrics speak of one */
#define DRAIN_MAX (1 * USEC_SEC)   /* how long a verdict waits for the server */

void
stall_init(struct relay *r)
{
	struct stall *s = &r->stall;
	usec_t step = r->limits.stall_timeout / 8;

	if (r->limits.stall_timeout == USEC_NEVER || step > PROBE_MAX)
		step = PROBE_MAX;
	if (step < PROBE_MIN)
		step = PROBE_MIN;
	s->interval = step;
	s->next = s->due = s->server_next = USEC_NEVER;
	s->since = s->server_byte = s->reading = r->now;
}

static void
progress(struct relay *r)
{
	struct stall *s = &r->stall;

	if (s->stalled) {
		s->total += r->now - s->since;
		s->stalled = false;
		to_stderr_log(r->err, LOG_LEVEL_WARN, "the host reads again "
		    "after %llu ms", (unsigned long long)((r->now - s->since) /
		    USEC_MSEC));
	}
	s->since = r->now;
	s->probes = 0;
	s->due = USEC_NEVER;
}

static void
arm(struct relay *r, uint64_t sent)
{
	struct stall *s = &r->stall;

	progress(r);
	s->armed = true;
	s->unsent = false;
	s->unread = 0;
	s->writes = 0;
	s->sent = sent;
	s->next = r->now + s->interval;
}

/*
 * Bytes went to the host. That the kernel took them says nothing of the host,
 * unless there was no room before.
 */
void
stall_host_fed(struct relay *r, uint64_t bytes)
{
	struct stall *s = &r->stall;

	if (!s->armed)
		arm(r, r->m.to_host_bytes - bytes);
	else if (s->unsent)
		progress(r);
	s->unsent = false;
	s->writes++;
}

/* Something waits for the host. */
void
stall_host_waits(struct relay *r)
{
	if (!r->stall.armed && !r->host_gone)
		arm(r, r->m.to_host_bytes);
}

/* Bytes went into the server's stdin: has it read them a second later? */
void
stall_server_fed(struct relay *r)
{
	struct stall *s = &r->stall;

	if (s->server_next != USEC_NEVER)
		return;
	s->reading = r->now;
	s->server_unread = 0;
	s->server_sent = r->m.to_server_bytes;
	s->server_next = r->now + PROBE_MAX;
}

/* All clocks start again: the time that passed was our own absence. */
void
stall_restart(struct relay *r)
{
	struct stall *s = &r->stall;
	uint32_t ref = pending_first(r->asked_by_host);

	s->since = s->server_byte = s->reading = s->asked = r->now;
	s->probes = 0;
	s->due = USEC_NEVER;
	for (; ref != PENDING_NONE; ref = pending_next(r->asked_by_host, ref))
		if (pending_get(r->asked_by_host, ref)->deadline != USEC_NEVER)
			pending_set_deadline(r->asked_by_host, ref,
			    r->now + r->limits.request_timeout);
}

/* Does the host have a request before it that a person must answer? */
static bool
person_asked(struct relay *r, const struct relay_probe *p)
{
	uint64_t read = r->m.to_host_bytes;
	uint32_t ref = pending_first(r->asked_by_server);

	if (p->host_knows && p->host_unread < read)
		read -= p->host_unread;
	for (; ref != PENDING_NONE;
	    ref = pending_next(r->asked_by_server, ref)) {
		const struct pending_request *q =
		    pending_get(r->asked_by_server, ref);

		if (q->method == METHOD_ASKS_PERSON &&
		    q->state == PENDING_SENT && q->stream <= read)
			return true;
	}
	return false;
}

/* The request has not begun to leave: take it back. */
static bool
withdraw(struct relay *r, uint32_t ref)
{
	struct frame *f = queue_first_unsent(r->server_queue);

	for (; f != NULL; f = queue_next(f)) {
		const struct frame_tag *tag = frame_tag(f);

		if (tag->class == FRAME_REQUEST && tag->ref == ref) {
			queue_drop(r->server_queue, f);
			return true;
		}
	}
	return false;
}

static bool
may_give_up(const struct pending_request *q)
{
	return (q->state == PENDING_QUEUED || q->state == PENDING_SENT) &&
	    cancel_allowed(q);
}

/* Withdraw or cancel one request, and answer it. */
static void
give_up(struct relay *r, uint32_t ref, enum reply_error e, usec_t waited)
{
	struct pending_request *q = pending_get(r->asked_by_host, ref);
	struct reply_facts facts = { .waited = waited };
	bool unsent = q->state == PENDING_QUEUED && withdraw(r, ref);

	if (!unsent)
		cancel_send(r, ref, e == REPLY_HOST_STALLED ?
		    "the host stopped reading" : "the request timed out");
	answer_host(r, ref, e, &facts);
	if (unsent) /* no answer can come to take its place */
		request_close(r, ref);
}

/* All that are still unsent, in one walk over the queue. */
static void
withdraw_all(struct relay *r, usec_t waited)
{
	struct frame *f = queue_first_unsent(r->server_queue), *next;
	struct reply_facts facts = { .waited = waited };

	for (; f != NULL; f = next) {
		struct frame_tag tag = *frame_tag(f);
		struct pending_request *q;

		next = queue_next(f);
		if (tag.class != FRAME_REQUEST)
			continue;
		q = pending_get(r->asked_by_host, tag.ref);
		if (q == NULL || !may_give_up(q))
			continue;
		queue_drop(r->server_queue, f);
		answer_host(r, tag.ref, REPLY_HOST_STALLED, &facts);
		request_close(r, tag.ref);
	}
}

/* --observe: what would have been cancelled. */
static void
count_given_up(struct relay *r)
{
	uint32_t ref = pending_first(r->asked_by_host);

	for (; ref != PENDING_NONE;
	    ref = pending_next(r->asked_by_host, ref)) {
		struct pending_request *q = pending_get(r->asked_by_host, ref);

		if (!may_give_up(q) || q->cancel_sent || !r->limits.cancel)
			continue;
		q->cancel_sent = true;
		r->m.cancels_sent++;
	}
}

static void
fall(struct relay *r, const struct relay_probe *p)
{
	struct stall *s = &r->stall;
	usec_t waited = r->now - s->since;
	uint32_t ref, next;
	unsigned long long unread = p->host_knows ? p->host_unread : 0;

	if (!s->stalled) {
		s->stalled = true;
		r->m.host_stalls++;
		to_stderr_log(r->err, LOG_LEVEL_WARN, "the host has read "
		    "nothing for %llu ms unread=%llu queued=%llu pending=%llu",
		    (unsigned long long)(waited / USEC_MSEC), unread,
		    (unsigned long long)queue_bytes(r->host_queue),
		    (unsigned long long)r->m.requests_pending);
	}
	s->probes = 0;
	s->due = USEC_NEVER;
	if (person_asked(r, p))
		return;
	if (r->limits.observe) {
		count_given_up(r);
		return;
	}
	withdraw_all(r, waited);
	for (ref = pending_first(r->asked_by_host); ref != PENDING_NONE;
	    ref = next) {
		next = pending_next(r->asked_by_host, ref);
		if (may_give_up(pending_get(r->asked_by_host, ref)))
			give_up(r, ref, REPLY_HOST_STALLED, waited);
	}
}

/* One look at the host. */
static void
look_at_host(struct relay *r, const struct relay_probe *p)
{
	struct stall *s = &r->stall;
	bool unsent = !queue_empty(r->host_queue);
	uint64_t unread = p->host_knows ? p->host_unread : 0;
	uint64_t sent = r->m.to_host_bytes - s->sent;
	uint64_t had = s->unread + sent + s->writes * p->host_cost;

	if (r->host_gone || (!unsent && unread == 0)) {
		progress(r);
		s->armed = false;
		s->next = USEC_NEVER;
		return;
	}
	s->next = r->now + s->interval;
	if (p->host_knows ? unread < had : sent > 0)
		progress(r);
	else
		s->probes++;
	s->unread = unread;
	s->unsent = unsent;
	s->writes = 0;
	s->sent = r->m.to_host_bytes;
}

static bool
verdict_due(const struct relay *r)
{
	const struct stall *s = &r->stall;

	return s->armed && r->limits.stall_timeout != USEC_NEVER &&
	    s->probes >= PROBES &&
	    r->now - s->since >= r->limits.stall_timeout;
}

static void
expire(struct relay *r, const struct relay_probe *p)
{
	uint32_t ref;

	while ((ref = pending_expired(r->asked_by_host, r->now)) !=
	    PENDING_NONE) {
		struct pending_request *q = pending_get(r->asked_by_host, ref);

		if (may_give_up(q) && !person_asked(r, p) &&
		    !r->limits.observe)
			give_up(r, ref, REPLY_REQUEST_TIMEOUT,
			    r->now - q->born);
		else
			pending_set_deadline(r->asked_by_host, ref,
			    r->now + r->limits.request_timeout);
	}
}

static void
look_at_server(struct relay *r, const struct relay_probe *p)
{
	struct stall *s = &r->stall;
	uint64_t unread = p->server_knows ? p->server_unread : 0;
	uint64_t sent = r->m.to_server_bytes - s->server_sent;
	bool idle = unread == 0 && queue_empty(r->server_queue);

	if (idle || unread < s->server_unread + sent)
		s->reading = r->now;
	s->server_unread = unread;
	s->server_sent = r->m.to_server_bytes;
	s->server_next = idle || r->server_gone ? USEC_NEVER :
	    r->now + PROBE_MAX;
}

/* Before figures are told: is what we hold against a peer still true? */
void
stall_look(struct relay *r, const struct relay_probe *p)
{
	if (r->stall.stalled)
		look_at_host(r, p);
	look_at_server(r, p);
}

usec_t
stall_seconds(const struct relay *r)
{
	const struct stall *s = &r->stall;

	return s->total + (s->stalled ? r->now - s->since : 0);
}

/* Returns when to be called again. */
usec_t
stall_tick(struct relay *r, const struct relay_probe *p)
{
	struct stall *s = &r->stall;

	if (s->next != USEC_NEVER && r->now > s->next + LATE) {
		stall_restart(r);
		s->next = r->now + s->interval;
	}
	if (s->server_next <= r->now)
		look_at_server(r, p);
	if (s->next <= r->now)
		look_at_host(r, p);
	if (verdict_due(r)) {
		if (s->due == USEC_NEVER)
			s->due = r->now + DRAIN_MAX;
		if (!p->server_waiting || r->now >= s->due)
			fall(r, p);
	}
	expire(r, p);
	return stall_deadline(r);
}

usec_t
stall_deadline(const struct relay *r)
{
	const struct stall *s = &r->stall;
	usec_t when = pending_next_deadline(r->asked_by_host);

	if (s->due != USEC_NEVER) /* the server's bytes come first */
		return r->now;
	if (s->next < when)
		when = s->next;
	return s->server_next < when ? s->server_next : when;
}

/* The one word. Only a freeze of some seconds is worth one. */
enum verdict
stall_verdict(const struct relay *r)
{
	const struct stall *s = &r->stall;
	bool quiet = r->now - s->server_byte >= FREEZE;

	if (r->server_died)
		return VERDICT_SERVER_GONE;
	if (s->stalled)
		return VERDICT_HOST_STALLED;
	if (r->server_gone || r->server_eof)
		return VERDICT_OK;
	if (quiet && to_host_half(&r->to_host))
		return VERDICT_SERVER_STALLED;
	if (r->now - s->reading >= FREEZE && (s->server_unread > 0 ||
	    !queue_empty(r->server_queue)))
		return VERDICT_SERVER_NOT_READING;
	if (quiet && r->now - s->asked >= FREEZE &&
	    pending_count(r->asked_by_host) > 0)
		return VERDICT_SERVER_SILENT;
	return VERDICT_OK;
}
