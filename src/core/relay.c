/* SPDX-License-Identifier: MIT */
/*
 * The engine as a whole. The way of a byte, by file:
 *
 *   host                                                         server
 *     | relay_host_bytes          to_server.c    cuts it into frames  ^
 *     |                           scan, message  reads along          |
 *     |                           learn.c        what it asks         |
 *     '-------------------------> server_queue ------- relay_peek ----'
 *
 *     ^                           answer.c  own lines, cancels        |
 *     |                           stall.c   whose fault, deadlines    |
 *     |                           shed.c    when room is short        |
 *     |                           pending   who asked what            |
 *
 *     .--- relay_peek ----------- host_queue <------------------------.
 *     |                           judge.c        what becomes of it   |
 *     |                           frame.c        where its bytes lie  |
 *     |                           scan, message  what it is           |
 *     v                           to_host.c      lines, junk, repairs |
 *   host                          relay_server_bytes              server
 */
#include <stdlib.h>
#include <string.h>

#include "relay_impl.h"

#define HOST_CHUNK (512u * 1024) /* room wanted before the host is read */

static bool
make_queues(struct relay *r, const struct store_ops *ops)
{
	uint64_t books = r->limits.memory / 4;

	r->budget = budget_new(r->limits.memory,
	    ops != NULL ? r->limits.spill : 0, ops);
	if (r->budget == NULL)
		return false;
	r->host_queue = queue_new(r->budget);
	r->server_queue = queue_new(r->budget);
	r->asked_by_host = pending_new(r->budget, books, r->seed);
	r->asked_by_server = pending_new(r->budget, books, r->seed);
	return r->host_queue != NULL && r->server_queue != NULL &&
	    r->asked_by_host != NULL && r->asked_by_server != NULL;
}

struct relay *
relay_new(const struct limits *limits, const struct store_ops *ops,
    struct to_stderr *err, uint64_t seed, usec_t now)
{
	struct relay *r = calloc(1, sizeof *r);

	if (r == NULL)
		return NULL;
	r->limits = *limits;
	r->seed = seed;
	r->started = r->now = now;
	r->err = err;
	r->waiting_since = USEC_NEVER;
	r->m.verdict = VERDICT_OK;
	r->to_host.r = r->to_server.r = r;
	stall_init(r);
	if (!make_queues(r, ops) || to_host_init(&r->to_host, r) != 0 ||
	    to_server_init(&r->to_server, r) != 0)
		relay_free(&r);
	return r;
}

void
relay_free(struct relay **r_p)
{
	struct relay *r = *r_p;

	if (r == NULL)
		return;
	if (r->budget != NULL) {
		to_host_done(&r->to_host);
		to_server_done(&r->to_server);
		tools_done(r);
		if (r->closed.ring != NULL)
			budget_release(r->budget, r->closed.ring);
		if (r->closed.index != NULL)
			budget_release(r->budget, r->closed.index);
	}
	pending_free(&r->asked_by_host);
	pending_free(&r->asked_by_server);
	queue_free(&r->host_queue);
	queue_free(&r->server_queue);
	budget_free(&r->budget);
	free(r);
	*r_p = NULL;
}

/* dispatch_wait_seconds: a whole frame waits from here, or no longer. */
static void
note_waiting(struct relay *r)
{
	bool waits = !queue_empty(r->host_queue);

	if (waits && r->waiting_since == USEC_NEVER) {
		r->waiting_since = r->now;
	} else if (!waits && r->waiting_since != USEC_NEVER) {
		r->m.dispatch_wait_seconds += r->now - r->waiting_since;
		r->waiting_since = USEC_NEVER;
	}
	if (waits)
		stall_host_waits(r);
}

static void
tell_store(struct relay *r)
{
	if (r->store_told || !budget_store_broken(r->budget))
		return;
	r->store_told = true;
	to_stderr_log(r->err, LOG_LEVEL_ERROR, "the spill file failed (%s): "
	    "memory alone must do from here on",
	    strerror(budget_store_errno(r->budget)));
}

/* --observe: the bytes go on as they are, whole frames or not. */
static void
observe_pass(struct relay *r, struct queue *q, const char *p, size_t n)
{
	struct frame_tag tag = { .class = FRAME_OTHER, .ref = PENDING_NONE };

	if (queue_borrow(q, p, n, &tag, r->now) != 0 &&
	    queue_put(q, p, n, &tag, r->now, false) != 0)
		relay_end(r, END_OVERLOAD);
}

/* Nobody reads any more what waits here. */
static void
drop_waiting(struct queue *q)
{
	struct frame *f;

	queue_settle(q);
	while ((f = queue_first_unsent(q)) != NULL)
		queue_drop(q, f);
}

void
relay_host_bytes(struct relay *r, const char *p, size_t n, usec_t now)
{
	r->now = now;
	r->m.stdin_bytes += n;
	if (r->server_gone || r->end != END_NOT)
		return;
	to_server_bytes(&r->to_server, p, n);
	if (r->limits.observe)
		observe_pass(r, r->server_queue, p, n);
	note_waiting(r);
}

void
relay_host_eof(struct relay *r, usec_t now)
{
	r->now = now;
	if (r->host_eof)
		return;
	r->host_eof = true;
	if (!r->server_gone && r->end == END_NOT)
		to_server_eof(&r->to_server);
	note_waiting(r);
}

void
relay_server_bytes(struct relay *r, const char *p, size_t n, usec_t now)
{
	r->now = now;
	r->m.stdout_bytes += n;
	r->stall.server_byte = now;
	if (r->end != END_NOT || r->host_gone)
		return;
	to_host_bytes(&r->to_host, p, n);
	if (r->limits.observe)
		observe_pass(r, r->host_queue, p, n);
	tell_store(r);
	note_waiting(r);
}

void
relay_server_eof(struct relay *r, usec_t now)
{
	r->now = now;
	if (r->server_eof)
		return;
	r->server_eof = true;
	if (r->end == END_NOT && !r->host_gone)
		to_host_eof(&r->to_host);
	frame_forget(&r->to_host);
	note_waiting(r);
}

void
relay_settle(struct relay *r, enum relay_peer to)
{
	queue_settle(to == RELAY_HOST ? r->host_queue : r->server_queue);
}

int
relay_peek(struct relay *r, enum relay_peer to, struct iovec *iov, int max)
{
	if (to == RELAY_HOST)
		return r->host_gone ? 0 : queue_peek(r->host_queue, iov, max);
	return r->server_gone ? 0 : queue_peek(r->server_queue, iov, max);
}

static void
host_took(void *arg, const struct frame_tag *tag, uint64_t bytes,
    usec_t waited)
{
	struct relay *r = arg;
	struct pending_request *q;

	(void)bytes;
	if (!r->limits.observe)
		r->m.frames_to_host++;
	if (waited > r->m.dispatch_wait_max_seconds)
		r->m.dispatch_wait_max_seconds = waited;
	switch (tag->class) {
	case FRAME_REPLY:
	case FRAME_MADE:
		q = pending_get(r->asked_by_host, tag->ref);
		if (q != NULL && q->state == PENDING_ANSWERED)
			request_close(r, tag->ref); /* no answer can come */
		pending_remove(r->asked_by_host, tag->ref);
		relay_count_pending(r);
		break;
	case FRAME_REQUEST:
		q = pending_get(r->asked_by_server, tag->ref);
		if (q == NULL)
			break;
		q->state = PENDING_SENT;
		q->stream = r->m.to_host_bytes;
		break;
	case FRAME_OTHER:
	case FRAME_PROGRESS:
	case FRAME_CHANGED:
	case FRAME_LOG:
		break;
	}
}

static void
server_took(void *arg, const struct frame_tag *tag, uint64_t bytes,
    usec_t waited)
{
	struct relay *r = arg;
	struct pending_request *q;

	(void)bytes;
	(void)waited;
	if (!r->limits.observe)
		r->m.frames_to_server++;
	if (tag->class != FRAME_REQUEST)
		return;
	q = pending_get(r->asked_by_host, tag->ref);
	if (q != NULL && q->state == PENDING_QUEUED)
		q->state = PENDING_SENT;
}

void
relay_sent(struct relay *r, enum relay_peer to, size_t n, usec_t now)
{
	r->now = now;
	if (to == RELAY_HOST) {
		r->m.to_host_bytes += n;
		queue_sent(r->host_queue, n, now, host_took, r);
		stall_host_fed(r, n);
		note_waiting(r);
	} else {
		r->m.to_server_bytes += n;
		queue_sent(r->server_queue, n, now, server_took, r);
		stall_server_fed(r);
	}
}

void
relay_peer_gone(struct relay *r, enum relay_peer peer, usec_t now)
{
	r->now = now;
	if (peer == RELAY_HOST && !r->host_gone) {
		r->host_gone = true;
		drop_waiting(r->host_queue);
	}
	if (peer == RELAY_SERVER && !r->server_gone) {
		r->server_gone = true;
		drop_waiting(r->server_queue);
	}
	note_waiting(r);
}

static void
answer_all(struct relay *r, enum reply_error e,
    const struct reply_facts *facts)
{
	uint32_t ref = pending_first(r->asked_by_host), next;

	for (; ref != PENDING_NONE; ref = next) {
		next = pending_next(r->asked_by_host, ref);
		if (pending_get(r->asked_by_host, ref)->state !=
		    PENDING_ANSWERED)
			answer_host(r, ref, e, facts);
	}
}

void
relay_server_gone(struct relay *r, int status, bool stopping, usec_t now)
{
	char tail[STDERR_TAIL];
	struct reply_facts facts = { .tail = tail };

	relay_server_eof(r, now);
	if (!r->host_eof && !r->host_gone && r->end == END_NOT && !stopping)
		r->server_died = true;
	relay_peer_gone(r, RELAY_SERVER, now);
	if (r->end == END_HANDSHAKE)
		return;
	facts.tail_len = to_stderr_tail(r->err, tail, sizeof tail);
	if (status >= 0) {
		facts.has_exit = true;
		facts.exit_code = (status & 0x7f) == 0 ?
		    (status >> 8) & 0xff : -1;
		facts.exit_signal = status & 0x7f;
	}
	answer_all(r, REPLY_SERVER_EXITED, &facts);
	note_waiting(r);
}

/* The session cannot go on; the first cause counts. */
void
relay_end(struct relay *r, enum end_cause cause)
{
	struct reply_facts facts = { .bytes = 0 };

	if (r->end != END_NOT)
		return;
	r->end = cause;
	switch (cause) {
	case END_OVERLOAD:
		to_stderr_log(r->err, LOG_LEVEL_ERROR, "memory and spill are "
		    "full of what may not be dropped: the session is ended "
		    "queue=%llu spill=%llu",
		    (unsigned long long)budget_heap(r->budget),
		    (unsigned long long)budget_disk(r->budget));
		answer_all(r, REPLY_OVERLOADED, &facts);
		break;
	case END_GRACE:
		to_stderr_log(r->err, LOG_LEVEL_ERROR, "the server went on "
		    "with a cancelled reply past --cancel-grace: the session "
		    "is ended");
		break;
	case END_HANDSHAKE:
	case END_NOT:
		break;
	}
}

void
relay_restart_clocks(struct relay *r, usec_t now)
{
	r->now = now;
	stall_restart(r);
}

usec_t
relay_tick(struct relay *r, const struct relay_probe *probe, usec_t now)
{
	r->now = now;
	return stall_tick(r, probe);
}

void
relay_look(struct relay *r, const struct relay_probe *probe, usec_t now)
{
	r->now = now;
	stall_look(r, probe);
}

usec_t
relay_deadline(const struct relay *r)
{
	return stall_deadline(r);
}

/* To-server back-pressure: the host is read while there is room for it. */
static bool
room_for_host(struct relay *r)
{
	uint64_t queued = queue_bytes(r->server_queue);
	/* Hysteresis: once held back, until half of that has gone. */
	uint64_t high = r->limits.memory / (r->held_back ? 4 : 2);
	bool held = queued > 0 && (queued > high ||
	    budget_room(r->budget) < HOST_CHUNK);

	if (held && !r->held_back)
		to_stderr_log(r->err, LOG_LEVEL_INFO, "the server does not "
		    "read: the host is held back queued=%llu",
		    (unsigned long long)queued);
	r->held_back = held;
	return !held;
}

unsigned
relay_wants(struct relay *r)
{
	unsigned w = 0;

	if (!r->host_eof && !r->server_gone && r->end == END_NOT &&
	    room_for_host(r))
		w |= RELAY_READ_HOST;
	if (!r->server_eof)
		w |= RELAY_READ_SERVER;
	if (!r->host_gone && !queue_empty(r->host_queue))
		w |= RELAY_WRITE_HOST;
	if (!r->server_gone && !queue_empty(r->server_queue))
		w |= RELAY_WRITE_SERVER;
	if (r->host_eof && queue_empty(r->server_queue))
		w |= RELAY_CLOSE_SERVER;
	if (r->end != END_NOT)
		w |= RELAY_STOP;
	return w;
}

bool
relay_failed(const struct relay *r)
{
	return r->end != END_NOT;
}

bool
relay_quiet(const struct relay *r)
{
	return queue_empty(r->host_queue) && queue_empty(r->server_queue) &&
	    !queue_is_open(r->host_queue) && !queue_is_open(r->server_queue);
}

void
relay_count_pending(struct relay *r)
{
	uint64_t n = pending_count(r->asked_by_host) +
	    pending_count(r->asked_by_server);

	if (r->m.requests_pending == 0 && n > 0)
		r->stall.asked = r->now;
	r->m.requests_pending = n;
	if (n > r->m.requests_pending_peak)
		r->m.requests_pending_peak = n;
}

struct metrics *
relay_metrics(struct relay *r, usec_t now)
{
	struct metrics *m = &r->m;

	r->now = now;
	m->uptime_seconds = now - r->started;
	m->queue_bytes = queue_heap(r->host_queue) +
	    queue_heap(r->server_queue);
	m->queue_peak_bytes = budget_heap_peak(r->budget);
	m->spill_bytes = budget_disk(r->budget);
	m->spill_peak_bytes = budget_disk_peak(r->budget);
	m->requests_untracked = pending_untracked(r->asked_by_host) +
	    pending_untracked(r->asked_by_server);
	m->stderr_lines_dropped = to_stderr_dropped(r->err);
	m->verdict = stall_verdict(r);
	m->stall_seconds = stall_seconds(r);
	if (r->waiting_since != USEC_NEVER) {
		m->dispatch_wait_seconds += now - r->waiting_since;
		r->waiting_since = now;
	}
	return m;
}
