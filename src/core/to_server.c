/* SPDX-License-Identifier: MIT */
/*
 * Host -> server: never filtered. Bytes are cut into frames (a line with its
 * LF, or a `Content-Length:` header and its body), each is read along by the
 * scanner so that requests are known (learn.c), and goes on as it came. Only
 * a frame over the limits stays here, and is answered.
 */
#include <stdlib.h>
#include <string.h>

#include "relay_impl.h"

#define SMALL_FRAME 4096 /* may use the reserve: cancels must get through */

static void
on_event(void *arg, struct scan *s, enum scan_event e, uint64_t off)
{
	struct to_server *t = arg;

	message_event(&t->msg, s, e, off);
}

static void
begin_frame(struct to_server *t)
{
	t->over = OVER_NOT;
	t->begun = t->done = t->spoilt = t->learning = false;
	t->in_header = t->in_body = t->has_length = false;
	t->bytes = t->text_at = t->body_left = 0;
	t->header_len = 0;
	t->mark = t->at;
}

int
to_server_init(struct to_server *t, struct relay *r)
{
	*t = (struct to_server) { .r = r };
	t->stack = malloc(scan_stack_size(r->limits.max_depth));
	return t->stack == NULL ? -1 : 0;
}

void
to_server_done(struct to_server *t)
{
	batch_clear(t->r, &t->replies);
	batch_clear(t->r, &t->requests);
	free(t->stack);
	t->stack = NULL;
}

static void
begin_text(struct to_server *t)
{
	struct scan_sink sink = { on_event, NULL, t, .ends_only = true };

	scan_init(&t->scan, &sink, t->stack, t->r->limits.max_depth);
	t->scan.watch = 1;
	if (t->in_body)
		scan_allow_lf(&t->scan);
	message_begin(&t->msg, t->r->seed, learn_element, t);
	batch_clear(t->r, &t->replies);
	batch_clear(t->r, &t->requests);
	t->text_at = t->bytes;
	t->begun = true;
}

/* What has come of the frame must not stay in the chunk. */
static void
store(struct to_server *t)
{
	struct relay *r = t->r;
	size_t n = (size_t)(t->at - t->mark);

	if (n > 0 && t->over == OVER_NOT && !r->limits.observe) {
		if (!t->stored)
			queue_open(r->server_queue);
		t->stored = true;
		if (queue_append(r->server_queue, t->mark, n) != 0)
			t->over = OVER_ROOM;
	}
	t->mark = t->at;
}

static void
forget(struct to_server *t)
{
	if (t->stored)
		queue_abort(t->r->server_queue);
	t->stored = false;
	t->mark = t->at;
}

static void
check_limit(struct to_server *t, uint64_t to_come)
{
	if (t->over != OVER_NOT || t->r->limits.observe)
		return;
	if (t->begun && t->scan.too_deep)
		t->over = OVER_DEPTH;
	if (t->bytes + to_come > t->r->limits.max_frame)
		t->over = OVER_BYTES;
	if (t->over != OVER_NOT)
		forget(t);
}

/* n bytes of frame at mark, from the part that is stored and the chunk. */
bool
to_server_read(struct to_server *t, uint64_t from, char *to, size_t n)
{
	uint64_t old = t->stored ? queue_open_bytes(t->r->server_queue) : 0;
	size_t part = 0;

	if (from < old) {
		part = old - from < n ? (size_t)(old - from) : n;
		if (queue_open_read(t->r->server_queue, from, to, part) != 0)
			return false;
	}
	if (part == n)
		return true;
	from = from + part - old;
	if (from + (n - part) > (uint64_t)(t->at - t->mark))
		return false;
	memcpy(to + part, t->mark + from, n - part);
	return true;
}

/* Put the whole frame into the queue: 0, or -1 when there is no room. */
static int
emit(struct to_server *t, const struct frame_tag *tag)
{
	struct relay *r = t->r;
	size_t n = (size_t)(t->at - t->mark);

	if (r->limits.observe) {
		r->m.frames_to_server++;
		return 0;
	}
	if (!t->stored) {
		if (queue_borrow(r->server_queue, t->mark, n, tag,
		    r->now) == 0)
			return 0;
		if (n > SMALL_FRAME)
			return -1;
		return queue_put(r->server_queue, t->mark, n, tag, r->now,
		    false);
	}
	store(t);
	if (t->over != OVER_NOT)
		return -1;
	queue_seal(r->server_queue, tag, r->now);
	t->stored = false;
	return 0;
}

static void
refuse(struct to_server *t)
{
	learn_refused(t);
	forget(t);
}

/* The frame is complete up to t->at. */
static void
end_frame(struct to_server *t)
{
	struct relay *r = t->r;
	struct frame_tag tag = { .class = FRAME_OTHER, .ref = PENDING_NONE };
	bool known = t->begun && t->done && message_valid(&t->msg);

	if (t->bytes > r->m.largest_frame_bytes)
		r->m.largest_frame_bytes = t->bytes;
	if (r->limits.observe && t->bytes > r->limits.max_frame)
		r->m.oversize_frames++;
	if (t->in_body && known)
		t->framed = true;
	if (t->over != OVER_NOT) {
		refuse(t);
	} else {
		/* The server may read more into it than we can. */
		if (t->spoilt && (t->done || t->msg.promising))
			pending_miss(r->asked_by_host);
		if (known)
			learn_frame(t, &tag);
		if (emit(t, &tag) != 0) {
			if (tag.class == FRAME_REQUEST)
				pending_remove(r->asked_by_host, tag.ref);
			t->over = OVER_ROOM;
			refuse(t);
		}
	}
	begin_frame(t);
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Behind the text, or where there is none: up to end, or to the LF. */
static const char *
skip_rest(struct to_server *t, const char *p, const char *end)
{
	if (t->in_body || !t->spoilt)
		while (p < end && is_space(*p) && (t->in_body || *p != '\n'))
			p++;
	if (p == end || (*p == '\n' && !t->in_body))
		return p;
	t->spoilt = true;
	p = t->in_body ? NULL : memchr(p, '\n', (size_t)(end - p));
	return p != NULL ? p : end;
}

/* Read along; returns where the LF is, or end. */
static const char *
read_along(struct to_server *t, const char *p, const char *end)
{
	while (p < end && !t->done && (!t->spoilt || t->learning)) {
		size_t used;
		enum scan_status st = scan_feed(&t->scan, p,
		    (size_t)(end - p), &used);

		p += used;
		switch (st) {
		case SCAN_MORE:
			return p;
		case SCAN_DONE:
			t->done = true;
			break;
		case SCAN_LF:
			t->spoilt = true;
			if (!t->in_body)
				return p;
			t->learning = false;
			break;
		case SCAN_FAULT:
			t->learning = !t->spoilt && t->msg.promising;
			t->spoilt = true;
			if (t->learning)
				scan_tolerate(&t->scan);
			break;
		}
	}
	return p < end ? skip_rest(t, p, end) : p;
}

static void
step_body(struct to_server *t)
{
	size_t n = (size_t)(t->end - t->at);

	if (n > t->body_left)
		n = (size_t)t->body_left;
	if (!t->begun)
		begin_text(t);
	read_along(t, t->at, t->at + n);
	t->at += n;
	t->bytes += n;
	t->body_left -= n;
	check_limit(t, t->body_left);
	if (t->body_left == 0)
		end_frame(t);
}

/* A line of the header is complete (its LF is consumed). */
static void
end_header_line(struct to_server *t)
{
	unsigned n = t->header_len;
	uint64_t length;

	t->header_len = 0;
	switch (framing_header(t->header, n > sizeof t->header ? 0 : n,
	    &length)) {
	case HEADER_LENGTH:
		t->body_left = length;
		t->has_length = true;
		break;
	case HEADER_OTHER:
		break;
	case HEADER_END:
		t->in_header = false;
		t->in_body = t->has_length && t->body_left > 0;
		if (!t->in_body)
			end_frame(t);
		break;
	case HEADER_NONE:
		end_frame(t);
		break;
	}
}

static void
step_header(struct to_server *t)
{
	const char *lf = memchr(t->at, '\n', (size_t)(t->end - t->at));
	const char *q = lf != NULL ? lf : t->end;
	size_t n = (size_t)(q - t->at), room;

	room = t->header_len < sizeof t->header ?
	    sizeof t->header - t->header_len : 0;
	memcpy(t->header + (room > 0 ? t->header_len : 0), t->at,
	    n < room ? n : room);
	/* A line that does not fit is no header: remember only that. */
	t->header_len = n <= room ? t->header_len + (unsigned)n :
	    sizeof t->header + 1;
	if (lf != NULL)
		q++;
	t->bytes += (uint64_t)(q - t->at);
	t->at = q;
	check_limit(t, 0);
	if (lf != NULL)
		end_header_line(t);
}

static void
step_line(struct to_server *t)
{
	const char *q;

	if (t->bytes == 0 && (*t->at == 'C' || *t->at == 'c')) {
		t->in_header = true;
		return;
	}
	if (!t->begun)
		begin_text(t);
	q = read_along(t, t->at, t->end);
	if (q < t->end) {
		t->bytes += (uint64_t)(q + 1 - t->at);
		t->at = q + 1;
		check_limit(t, 0);
		end_frame(t);
	} else {
		t->bytes += (uint64_t)(q - t->at);
		t->at = q;
		check_limit(t, 1);
	}
}

void
to_server_bytes(struct to_server *t, const char *p, size_t n)
{
	t->at = t->mark = p;
	t->end = p + n;
	while (t->at < t->end) {
		if (t->in_body)
			step_body(t);
		else if (t->in_header)
			step_header(t);
		else
			step_line(t);
	}
	store(t);
}

/* The host's last bytes are delivered as they are, without an LF. */
void
to_server_eof(struct to_server *t)
{
	if (t->bytes == 0)
		return;
	t->at = t->mark;
	end_frame(t);
}
