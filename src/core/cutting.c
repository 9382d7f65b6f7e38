/* SPDX-License-Identifier: MIT */
/*
 * When a frame from the server is fed to the cut (cut.h), and what its
 * outcome means for the frame: from the moment the frame limit fires, with
 * what was stored until then, or once the whole frame is known to be longer
 * than the content limit.
 */
#include "relay_impl.h"
#include "spillway/cut.h"

#define SKELETON_PER_BYTE 16 /* members and brackets per useful byte, */
#define SKELETON_MORE (1u << 20) /* and in any case */

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What results of this tool may have; any: of any. */
static uint64_t
limit_for(const struct relay *r, uint64_t tool, bool any)
{
	uint64_t limit = r->limits.max_content, raised = 0;

	if (r->tools != NULL)
		raised = any ? tools_most(r->tools) :
		    tools_size(r->tools, tool);
	if (limit != SIZE_OFF && raised > limit)
		limit = raised;
	return smaller(limit, r->limits.max_frame);
}

static struct cut *
begin(struct to_host *t, uint64_t retain, bool over)
{
	struct relay *r = t->r;
	struct cut_bounds b = { .retain = retain,
		.skeleton = r->limits.max_frame,
		.max_depth = r->limits.max_depth, .measure = t->observe };

	if (over && retain < UINT64_MAX / SKELETON_PER_BYTE / 2)
		b.skeleton = smaller(b.skeleton,
		    retain * SKELETON_PER_BYTE + SKELETON_MORE);
	return cut_new(r->budget, &b);
}

/* Give what lies in the queue's open frame to fn; false: it is unreadable. */
static bool
each_stored(struct to_host *t, void (*fn)(void *arg, const char *, size_t),
    void *arg)
{
	char piece[16384];
	uint64_t all, at = 0;

	if (!t->stored)
		return true;
	all = queue_open_bytes(t->r->host_queue);
	while (at < all) {
		size_t n = (size_t)smaller(sizeof piece, all - at);

		if (queue_open_read(t->r->host_queue, at, piece, n) != 0)
			return false;
		fn(arg, piece, n);
		at += n;
	}
	return true;
}

static void
to_cut(void *arg, const char *p, size_t n)
{
	cut_feed(arg, p, n);
}

static void
to_tools(void *arg, const char *p, size_t n)
{
	tools_feed(arg, p, n);
}

/* All bytes of the frame at hand, which is whole. */
static bool
each_byte(struct to_host *t, void (*fn)(void *arg, const char *, size_t),
    void *arg)
{
	if (!each_stored(t, fn, arg))
		return false;
	fn(arg, t->held, t->held_len);
	fn(arg, t->tail, t->tail_len);
	fn(arg, t->mark, (size_t)(t->at - t->mark));
	return true;
}

/* The frame is over a limit: its bytes are not kept any longer. */
void
cutting_overflow(struct to_host *t, enum over why)
{
	struct relay *r = t->r;
	bool may = why == OVER_BYTES && !t->msg.batch && !t->msg.has_method &&
	    !t->msg.has_error && (t->state == LINE_TEXT ||
	    (t->state == LINE_TAIL && t->valid));

	if (may)
		t->cut = begin(t, limit_for(r, 0, true), true);
	if (t->cut != NULL && !each_byte(t, to_cut, t->cut))
		cutting_end(t);
	frame_over(t, why);
}

/* Bytes of an oversized frame, repaired, as they would be stored. */
void
cutting_feed(struct to_host *t, const char *p, size_t n)
{
	if (t->cut != NULL)
		cut_feed(t->cut, p, n);
}

/* The reply answers this request: is there something to cut? */
void
cutting_known(struct to_host *t, uint32_t ref)
{
	struct pending_request *q = pending_get(t->r->asked_by_host, ref);

	if (q == NULL || q->method != METHOD_TOOLS_CALL)
		cutting_end(t);
}

static int
to_queue(void *arg, const char *p, size_t n)
{
	struct relay *r = arg;

	if (queue_append(r->host_queue, p, n) == 0)
		return 0;
	return shed_for(r, n) ? queue_append(r->host_queue, p, n) : -1;
}

static bool
write_out(struct to_host *t, uint32_t ref)
{
	struct relay *r = t->r;
	struct frame_tag tag = { .class = FRAME_REPLY, .ref = ref };

	frame_forget(t);
	queue_open(r->host_queue);
	if (cut_write(t->cut, to_queue, r) != 0) {
		queue_abort(r->host_queue);
		return false;
	}
	queue_seal(r->host_queue, &tag, r->now);
	return true;
}

static void
refuse(struct to_host *t, uint32_t ref, uint64_t limit)
{
	struct reply_facts f = { .bytes = t->bytes + 1, .limit = limit };

	frame_forget(t);
	answer_host(t->r, ref, REPLY_FRAME_TOO_LARGE, &f);
}

/* 0: the reply was cut, or refused; -1: it is to go its usual way. */
static int
conclude(struct to_host *t, uint32_t ref, bool over)
{
	struct relay *r = t->r;
	struct pending_request *q = pending_get(r->asked_by_host, ref);
	struct cut_request rq = { .limit = limit_for(r, q->tool, false),
		.frame = r->limits.max_frame, .over = over,
		.schema = r->tools == NULL ? TOOL_UNKNOWN :
		    tools_schema(r->tools, q->tool) };

	enum cut_verdict v = cut_judge(t->cut, &rq);

	if (v == CUT_FITS || (v == CUT_IMPOSSIBLE && over))
		return -1;
	if (v == CUT_POSSIBLE) {
		r->m.results_cut++;
		if (write_out(t, ref)) {
			request_close(r, ref);
			return 0;
		}
	}
	refuse(t, ref, rq.limit);
	return 0;
}

static void
learn_tools(struct to_host *t)
{
	struct relay *r = t->r;

	if (r->tools == NULL)
		r->tools = tools_new(r->budget, r->seed, r->limits.max_depth);
	if (r->tools == NULL || t->over != OVER_NOT)
		return;
	tools_begin(r->tools);
	(void)each_byte(t, to_tools, r->tools);
}

/* --observe stores no frame: what may be a result is measured as it comes. */
void
cutting_observe(struct to_host *t)
{
	cutting_end(t);
	if (t->observe && pending_count(t->r->asked_by_host) > 0)
		t->cut = begin(t, 0, false);
}

static void
count_cut(struct to_host *t, const struct pending_request *q)
{
	struct relay *r = t->r;
	struct cut_request rq = { .limit = limit_for(r, q->tool, false),
		.frame = r->limits.max_frame,
		.over = t->bytes >= r->limits.max_frame };

	frame_store(t, t->at);
	if (q->method == METHOD_TOOLS_CALL && !t->msg.has_error &&
	    cut_judge(t->cut, &rq) == CUT_POSSIBLE)
		r->m.results_cut++;
	cutting_end(t);
}

int
cutting_reply(struct to_host *t, uint32_t ref)
{
	struct relay *r = t->r;
	struct pending_request *q = pending_get(r->asked_by_host, ref);
	int rc = -1;

	if (q != NULL && t->cut != NULL && t->observe)
		count_cut(t, q);
	if (q == NULL || t->observe)
		return -1;
	if (q->method == METHOD_TOOLS_LIST && !t->msg.has_error)
		learn_tools(t);
	if (q->method != METHOD_TOOLS_CALL || t->msg.has_error)
		return -1;
	if (t->over == OVER_NOT) {
		uint64_t limit = limit_for(r, q->tool, false);

		if (r->limits.max_content == SIZE_OFF || t->bytes <= limit)
			return -1;
		cutting_end(t);
		t->cut = begin(t, limit, false);
		if (t->cut != NULL && !each_byte(t, to_cut, t->cut))
			cutting_end(t);
	}
	if (t->over != OVER_NOT)
		frame_store(t, t->at);
	if (t->cut != NULL)
		rc = conclude(t, ref, t->over != OVER_NOT);
	cutting_end(t);
	return rc;
}

void
cutting_end(struct to_host *t)
{
	cut_free(&t->cut);
}

void
tools_changed(struct relay *r)
{
	/* of another list: no harm, it is learned again */
	tools_forget(r->tools);
}

void
tools_done(struct relay *r)
{
	tools_free(&r->tools);
}
