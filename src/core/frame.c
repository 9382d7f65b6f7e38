/* SPDX-License-Identifier: MIT */
/*
 * The bytes of the frame to the host that is being built: where they lie
 * (still in the chunk, held back for an edit, in the queue's open frame), how
 * they get into the queue, and the sample of those that never will.
 *
 *	stored ... | held | chunk from mark to at
 *	stored ... | tail | chunk from mark to at	(behind the text)
 */
#include <string.h>

#include "relay_impl.h"

static void
store_bytes(struct to_host *t, const char *p, size_t n)
{
	struct relay *r = t->r;

	if (n == 0)
		return;
	if (t->observe) {
		cutting_feed(t, p, n);
		return;
	}
	if (t->over != OVER_NOT) {
		cutting_feed(t, p, n);
		t->sample_total += n;
		return;
	}
	if (!t->stored) {
		queue_open(r->host_queue);
		t->stored = true;
	}
	if (queue_append(r->host_queue, p, n) == 0)
		return;
	if (shed_for(r, n) && queue_append(r->host_queue, p, n) == 0)
		return;
	frame_over(t, OVER_ROOM);
}

/* Store everything before upto, which points into the chunk. */
void
frame_store(struct to_host *t, const char *upto)
{
	store_bytes(t, t->held, t->held_len);
	store_bytes(t, t->tail, t->tail_len);
	t->held_len = t->tail_len = 0;
	store_bytes(t, t->mark, (size_t)(upto - t->mark));
	t->mark = upto;
}

/* scan_sink.edit: replace len bytes at off, which may be held back ones. */
void
frame_edit(void *arg, uint64_t off, unsigned len, const char *with, unsigned n)
{
	struct to_host *t = arg;
	int64_t at = (int64_t)off - t->p_off;

	t->repairs |= with[0] == 'n' ? REPAIR_NAN : REPAIR_UTF8;
	if (at >= 0) {
		frame_store(t, t->p + at);
		store_bytes(t, with, n);
		t->mark += len;
		return;
	}
	unsigned back = (unsigned)-at; /* so far before the end of held */
	unsigned keep = back > len ? back - len : 0;

	if (back > t->held_len) { /* they were given away with the frame */
		cutting_end(t);
	} else {
		store_bytes(t, t->held, t->held_len - back);
		store_bytes(t, with, n);
		memmove(t->held, t->held + t->held_len - keep, keep);
		t->held_len = keep;
	}
	if (len > back)
		t->mark = t->p + (len - back);
}

/* Keep the last bytes of the chunk that an edit may still cover. */
static void
hold(struct to_host *t)
{
	unsigned want = scan_held(&t->scan);
	size_t fresh = (size_t)(t->end - t->mark);

	if (want >= fresh) {
		unsigned old = want - (unsigned)fresh;

		if (old > t->held_len)
			old = t->held_len;
		store_bytes(t, t->held, t->held_len - old);
		memmove(t->held, t->held + t->held_len - old, old);
		memcpy(t->held + old, t->mark, fresh);
		t->held_len = old + (unsigned)fresh;
	} else {
		frame_store(t, t->end - want);
		memcpy(t->held, t->end - want, want);
		t->held_len = want;
	}
	t->mark = t->end;
}

/* White space behind a text waits: it is dropped if another text follows,
 * and CRs are dropped before the LF. */
static void
keep_tail(struct to_host *t)
{
	if (t->text_end != NULL)
		frame_store(t, t->text_end);
	while (t->mark < t->end) {
		size_t n = (size_t)(t->end - t->mark);

		if (n > TAIL_MAX - t->tail_len)
			n = TAIL_MAX - t->tail_len;
		memcpy(t->tail + t->tail_len, t->mark, n);
		t->tail_len += (unsigned)n;
		t->mark += n;
		if (t->tail_len == TAIL_MAX) {
			store_bytes(t, t->tail, TAIL_MAX);
			t->tail_len = 0;
		}
	}
	t->text_end = NULL;
}

/* The chunk is used up: what belongs to the frame must not stay in it. */
void
frame_chunk_end(struct to_host *t)
{
	switch (t->state) {
	case LINE_START:
		frame_store(t, t->end);
		break;
	case LINE_TEXT:
		hold(t);
		break;
	case LINE_TAIL:
		keep_tail(t);
		break;
	case LINE_BROKEN:
	case LINE_SEEK:
	case LINE_JUNK:
	case LINE_HEADER:
		break;
	}
}

void
sample_add(struct to_host *t, const char *p, size_t n)
{
	size_t room = SAMPLE_MAX - t->sample_len;

	t->sample_total += n;
	if (n > room)
		n = room;
	memcpy(t->sample + t->sample_len, p, n);
	t->sample_len += (unsigned)n;
}

void
sample_tell(struct to_host *t)
{
	if (t->sample_len > 0)
		to_stderr_junk(t->r->err, t->sample, t->sample_len,
		    t->sample_total, t->r->now);
	t->sample_len = t->sample_frame = 0;
	t->sample_total = 0;
}

/* Drop the frame's bytes so far. */
void
frame_forget(struct to_host *t)
{
	if (t->stored)
		queue_abort(t->r->host_queue);
	t->stored = false;
	t->held_len = t->tail_len = 0;
	t->mark = t->at;
	t->text_end = NULL;
}

/* The frame's bytes so far are to be diverted, not forwarded. */
void
frame_sample(struct to_host *t)
{
	if (t->stored) {
		uint64_t all = queue_open_bytes(t->r->host_queue);
		char piece[SAMPLE_MAX];
		size_t n = SAMPLE_MAX - t->sample_len;

		if (n > all)
			n = (size_t)all;
		if (n > 0 && queue_open_read(t->r->host_queue, 0, piece,
		    n) == 0)
			sample_add(t, piece, n);
		t->sample_total += all - n;
	}
	sample_add(t, t->held, t->held_len);
	sample_add(t, t->tail, t->tail_len);
	if (t->at > t->mark) /* not so if room ran out within an edit */
		sample_add(t, t->mark, (size_t)(t->at - t->mark));
	frame_forget(t);
}

/* From here on the frame's bytes are counted, not kept. */
void
frame_over(struct to_host *t, enum over why)
{
	t->sample_frame = t->sample_len;
	frame_sample(t);
	t->over = why;
}

/*
 * All bytes of the frame so far, for a second look: a copy out of the
 * reserve, which the caller releases; NULL if it is too long or there is no
 * room. The frame is forgotten then.
 */
char *
frame_take_back(struct to_host *t, size_t *n_r)
{
	struct relay *r = t->r;
	size_t fresh = (size_t)(t->at - t->mark), old = 0;
	char *copy;

	if (t->stored) {
		if (queue_open_bytes(r->host_queue) > SEEK_BACK)
			return NULL;
		old = (size_t)queue_open_bytes(r->host_queue);
	}
	copy = budget_alloc(r->budget, BUDGET_RESERVE,
	    old + t->held_len + fresh + 1);
	if (copy == NULL)
		return NULL;
	if (old > 0 && queue_open_read(r->host_queue, 0, copy, old) != 0) {
		budget_release(r->budget, copy);
		return NULL;
	}
	memcpy(copy + old, t->held, t->held_len);
	memcpy(copy + old + t->held_len, t->mark, fresh);
	*n_r = old + t->held_len + fresh;
	frame_forget(t);
	return copy;
}

/* Where the frame ends in the chunk, once CRs before the LF are taken off. */
static const char *
content_end(struct to_host *t)
{
	const char *e = t->at, *from = t->text_end ? t->text_end : t->mark;

	if (t->split)
		return from;
	while (e > from && e[-1] == '\r')
		e--;
	if (e == from && t->text_end == NULL)
		while (t->tail_len > 0 && t->tail[t->tail_len - 1] == '\r')
			t->tail_len--, t->repairs |= REPAIR_CR;
	if (e < t->at)
		t->repairs |= REPAIR_CR;
	return e;
}

/*
 * The whole frame goes to the queue; lf: its LF stands at t->at. Returns 0,
 * or -1 when there is no room: then t->over says so.
 */
int
frame_emit(struct to_host *t, const struct frame_tag *tag, bool lf)
{
	struct relay *r = t->r;
	const char *e;

	if (t->split)
		t->tail_len = 0;
	e = content_end(t);
	if (t->observe) {
		r->m.frames_to_host++;
		return 0;
	}
	if (!t->stored && t->held_len == 0 && t->tail_len == 0 && lf &&
	    e == t->at && !t->lent) {
		size_t n = (size_t)(e + 1 - t->mark);

		if (queue_borrow(r->host_queue, t->mark, n, tag, r->now) == 0)
			return 0;
		if (shed_for(r, n) && queue_borrow(r->host_queue, t->mark, n,
		    tag, r->now) == 0)
			return 0;
		frame_over(t, OVER_ROOM);
		return -1;
	}
	frame_store(t, e);
	store_bytes(t, "\n", 1);
	if (t->over != OVER_NOT)
		return -1;
	queue_seal(r->host_queue, tag, r->now);
	t->stored = false;
	return 0;
}
