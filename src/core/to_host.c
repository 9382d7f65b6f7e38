/* SPDX-License-Identifier: MIT */
/*
 * Server -> host, step by step: raw bytes become lines, lines become frames.
 *
 *   START --{ or [--> TEXT --complete--> TAIL --LF--> judge_message()
 *     |                |                   '--more--> a line of its own
 *     |                |--broken, was to be a message--> BROKEN --LF-->
 *     |                |                                 judge_broken()
 *     |                '--broken--> SEEK
 *     '--other text--> SEEK --{ or [--> TEXT          --LF--> judge_other()
 *
 * One pass over the bytes: the scanner itself stops at the LF. What a frame
 * means is judge.c's affair, where its bytes lie is frame.c's.
 */
#include <stdlib.h>
#include <string.h>

#include "relay_impl.h"

/* Has a part of a line come, and the rest not yet? */
bool
to_host_half(const struct to_host *t)
{
	return t->state != LINE_START || t->bytes > 0 || t->in_body;
}

#define USUAL (sizeof MESSAGE_USUAL - 1)

static const char bom[3] = { '\xef', '\xbb', '\xbf' };

static void
on_event(void *arg, struct scan *s, enum scan_event e, uint64_t off)
{
	struct to_host *t = arg;

	message_event(&t->msg, s, e, off);
}

int
to_host_init(struct to_host *t, struct relay *r)
{
	struct scan_sink sink = { on_event, frame_edit, t, .ends_only = true };

	*t = (struct to_host) { .r = r, .observe = r->limits.observe,
		.cancelled_since = USEC_NEVER };
	t->stack = malloc(scan_stack_size(r->limits.max_depth));
	if (t->stack == NULL)
		return -1;
	if (r->limits.strict)
		sink.edit = NULL;
	scan_init(&t->scan, &sink, t->stack, r->limits.max_depth);
	return 0;
}

void
to_host_done(struct to_host *t)
{
	cutting_end(t);
	batch_clear(t->r, &t->replies);
	batch_clear(t->r, &t->requests);
	free(t->stack);
	t->stack = NULL;
}

/* The next byte begins a new frame; behind: on a line that has one already. */
static void
begin_line(struct to_host *t, bool behind)
{
	frame_forget(t);
	cutting_end(t);
	t->state = LINE_START;
	t->over = OVER_NOT;
	t->valid = t->split = t->sought_back = false;
	t->behind = behind;
	t->repairs = 0;
	t->bom = 0;
	t->bytes = 0;
	t->cancelled_since = USEC_NEVER;
	t->mark = t->at;
}

static void
check_limit(struct to_host *t)
{
	if (t->over == OVER_NOT && t->bytes >= t->r->limits.max_frame &&
	    !t->observe)
		cutting_overflow(t, OVER_BYTES);
}

static void
begin_text(struct to_host *t)
{
	scan_restart(&t->scan);
	t->scan.watch = 1;
	t->p_off = -(int64_t)(t->at - t->p);
	message_begin(&t->msg, t->r->seed, judge_element, t);
	batch_clear(t->r, &t->replies);
	batch_clear(t->r, &t->requests);
	t->text_end = NULL;
	t->state = LINE_TEXT;
	cutting_observe(t);
	if ((size_t)(t->end - t->at) >= USUAL &&
	    memcmp(t->at, MESSAGE_USUAL, USUAL) == 0) {
		message_begun(&t->msg, &t->scan);
		t->at += USUAL;
		t->bytes += USUAL;
	}
}

/* A text found behind other text: only what follows is the frame. */
static void
begin_found(struct to_host *t)
{
	t->mark = t->at;
	t->bytes = 0;
	t->over = OVER_NOT;
	t->sample_frame = t->sample_len;
	begin_text(t);
}

static void
divert(struct to_host *t)
{
	frame_sample(t);
	t->state = t->r->limits.strict ? LINE_JUNK : LINE_SEEK;
}

static void
blank_line(struct to_host *t)
{
	if (!t->behind && !t->in_body)
		t->r->m.blank_lines++;
	t->at++;
	begin_line(t, false);
}

static void
step_start(struct to_host *t)
{
	const char *q = t->at;

	if (t->bom < 3 && t->bytes == t->bom && !t->behind &&
	    !t->r->limits.strict) {
		if (*q == bom[t->bom]) {
			t->at = t->mark = q + 1;
			t->bytes++;
			if (++t->bom == 3)
				t->repairs |= REPAIR_BOM;
			return;
		}
		if (t->bom > 0) {
			sample_add(t, bom, t->bom);
			t->state = LINE_SEEK;
			return;
		}
	}
	while (q < t->end && (*q == ' ' || *q == '\t' || *q == '\r'))
		q++;
	t->bytes += (uint64_t)(q - t->at);
	t->at = q;
	check_limit(t);
	if (q == t->end)
		return;
	if (*q == '\n')
		blank_line(t);
	else if (*q == '{' || *q == '[')
		begin_text(t);
	else
		divert(t);
}

static void to_host_run(struct to_host *, const char *, size_t, bool lent);

/* The whole broken text is needed again, but part of it left the chunk. */
static void
feed_again(struct to_host *t)
{
	const char *p = t->p, *end = t->end, *at = t->at;
	int64_t p_off = t->p_off;
	bool lent = t->lent;
	uint64_t text = t->bytes - t->scan.off - t->bom; /* space before it */
	size_t n, skip;
	char *copy = frame_take_back(t, &n);

	if (copy == NULL) {
		divert(t);
		return;
	}
	skip = text < n ? (size_t)text + 1 : n;
	sample_add(t, copy, skip);
	t->state = LINE_SEEK;
	to_host_run(t, copy + skip, n - skip, true);
	budget_release(t->r->budget, copy);
	t->p = p;
	t->end = end;
	t->at = t->mark = at;
	t->lent = lent;
	/* A text found in the copy goes on here. */
	t->p_off = t->state == LINE_TEXT ?
	    (int64_t)t->scan.off - (at - p) : p_off;
}

/*
 * The text is broken and shows no sign of a message: one may still stand
 * inside what was taken for a string. Once a line, or it would not be linear.
 */
static void
go_back(struct to_host *t)
{
	const char *start = t->p - t->p_off;
	/* --observe stores nothing: what was looked at may be gone. */
	bool gone = t->observe && (t->p_off > 0 || t->mark > start + 1);

	if (gone || t->sought_back || t->over != OVER_NOT || t->r->limits.strict) {
		divert(t);
		return;
	}
	t->sought_back = true;
	if (t->stored || t->held_len > 0 || t->p_off > 0) {
		feed_again(t);
		return;
	}
	sample_add(t, t->mark, (size_t)(start + 1 - t->mark));
	t->at = t->mark = start + 1;
	t->state = LINE_SEEK;
}

static void
broken_text(struct to_host *t)
{
	if (!t->msg.promising || !t->msg.is_object) {
		go_back(t);
		return;
	}
	t->learning = true;
	scan_tolerate(&t->scan);
	if (t->over == OVER_NOT)
		t->sample_frame = t->sample_len;
	frame_sample(t);
	t->state = LINE_BROKEN;
}

static void
step_text(struct to_host *t)
{
	size_t used;
	enum scan_status st;
	const char *from = t->at;

	st = scan_feed(&t->scan, from, (size_t)(t->end - from), &used);
	t->at = from + used;
	t->bytes += used;
	if (t->scan.too_deep && t->over == OVER_NOT && !t->observe)
		cutting_overflow(t, OVER_DEPTH);
	check_limit(t);
	switch (st) {
	case SCAN_MORE:
		judge_arriving(t);
		break;
	case SCAN_DONE:
		t->valid = message_valid(&t->msg);
		t->text_end = t->at;
		t->state = LINE_TAIL;
		break;
	case SCAN_LF:
	case SCAN_FAULT:
		broken_text(t);
		break;
	}
}

static void
end_line(struct to_host *t)
{
	t->at++;
	begin_line(t, false);
}

static bool
has_cr(const struct to_host *t)
{
	if (t->at > t->p && t->at[-1] == '\r')
		return true;
	return t->at == t->p && t->tail_len > 0 &&
	    t->tail[t->tail_len - 1] == '\r';
}

static void
refuse(struct to_host *t)
{
	t->sample_frame = t->sample_len;
	frame_sample(t);
	t->learning = false;
	t->state = LINE_BROKEN;
}

static void
text_behind(struct to_host *t)
{
	bool whole = t->over == OVER_NOT;

	if (!t->valid) {
		divert(t);
		return;
	}
	if (t->r->limits.strict) {
		refuse(t);
		return;
	}
	if (whole)
		t->repairs |= REPAIR_SPLIT;
	t->split = true;
	judge_message(t, false);
	begin_line(t, true);
}

static void
step_tail(struct to_host *t)
{
	const char *q = t->at;

	while (q < t->end && (*q == ' ' || *q == '\t' || *q == '\r'))
		q++;
	t->bytes += (uint64_t)(q - t->at);
	t->at = q;
	if (q == t->end) {
		check_limit(t);
		return;
	}
	if (*q != '\n') {
		text_behind(t);
		return;
	}
	check_limit(t);
	if (!t->valid)
		judge_other(t);
	else if (t->r->limits.strict && has_cr(t) && t->over == OVER_NOT) {
		refuse(t);
		judge_broken(t, false);
	} else
		judge_message(t, true);
	end_line(t);
}

static void
step_broken(struct to_host *t)
{
	const char *from = t->at;
	size_t n = (size_t)(t->end - from);

	if (t->learning) {
		size_t used;
		enum scan_status st = scan_feed(&t->scan, from, n, &used);

		n = used;
		if (st == SCAN_DONE || st == SCAN_FAULT)
			t->learning = false;
	} else {
		const char *lf = memchr(from, '\n', n);

		if (lf != NULL)
			n = (size_t)(lf - from);
	}
	sample_add(t, from, n);
	t->bytes += n;
	t->at = t->mark = from + n;
	check_limit(t);
	if (t->at < t->end && *t->at == '\n') {
		judge_broken(t, false);
		end_line(t);
	}
}

/* The next place where a line ends or a text may begin. */
static const char *
find_text(const char *p, const char *end)
{
	while (p < end && *p != '\n' && *p != '{' && *p != '[')
		p++;
	return p;
}

static void
step_seek(struct to_host *t)
{
	const char *from = t->at, *q;

	if (t->state == LINE_SEEK)
		q = find_text(from, t->end);
	else if ((q = memchr(from, '\n', (size_t)(t->end - from))) == NULL)
		q = t->end;
	sample_add(t, from, (size_t)(q - from));
	t->at = t->mark = q;
	if (q == t->end)
		return;
	if (*q == '\n') {
		judge_other(t);
		if (t->state != LINE_HEADER)
			end_line(t);
	} else {
		begin_found(t);
	}
}

/* A header block is begun; its first line is in the sample. */
void
to_host_header(struct to_host *t, uint64_t length, bool known)
{
	t->has_length = known;
	t->length = length;
	t->sample_len = t->sample_frame = 0;
	t->sample_total = 0;
	t->at++;
	begin_line(t, false);
	t->state = LINE_HEADER;
}

static void
end_header(struct to_host *t)
{
	t->at++;
	begin_line(t, false);
	if (!t->has_length || t->length == 0)
		return;
	t->in_body = true;
	t->body_left = t->length;
	t->repairs |= REPAIR_FRAMING;
}

static void
step_header(struct to_host *t)
{
	const char *lf = memchr(t->at, '\n', (size_t)(t->end - t->at));
	const char *q = lf != NULL ? lf : t->end;
	uint64_t length;

	sample_add(t, t->at, (size_t)(q - t->at));
	t->at = t->mark = q;
	if (lf == NULL)
		return;
	switch (framing_header(t->sample, t->sample_total > SAMPLE_MAX ?
	    0 : t->sample_len, &length)) {
	case HEADER_LENGTH:
		to_host_header(t, length, true);
		break;
	case HEADER_OTHER:
		to_host_header(t, t->length, t->has_length);
		break;
	case HEADER_END:
		t->sample_len = 0;
		t->sample_total = 0;
		end_header(t);
		break;
	case HEADER_NONE:
		judge_other(t);
		end_line(t);
		break;
	}
}

static void
step(struct to_host *t)
{
	switch (t->state) {
	case LINE_START:
		step_start(t);
		break;
	case LINE_TEXT:
		step_text(t);
		break;
	case LINE_TAIL:
		step_tail(t);
		break;
	case LINE_BROKEN:
		step_broken(t);
		break;
	case LINE_SEEK:
	case LINE_JUNK:
		step_seek(t);
		break;
	case LINE_HEADER:
		step_header(t);
		break;
	}
}

static void
begin_chunk(struct to_host *t, const char *p, size_t n, bool lent)
{
	t->p = t->at = t->mark = p;
	t->end = p + n;
	t->lent = lent;
	t->text_end = NULL;
	if (t->state == LINE_TEXT)
		t->p_off = (int64_t)t->scan.off;
}

static void
to_host_run(struct to_host *t, const char *p, size_t n, bool lent)
{
	begin_chunk(t, p, n, lent);
	while (t->at < t->end && (lent || !t->in_body))
		step(t);
	t->end = t->at;
	frame_chunk_end(t);
}

/* The body is complete: that is its LF. */
static void
end_body(struct to_host *t)
{
	static const char none[1];

	t->p = t->at = t->end = t->mark = none;
	to_host_eof(t);
	t->in_body = false;
	begin_line(t, false);
}

/*
 * A part of a body framed by its length. Its LFs are white space, or broken
 * strings, to the JSON text, but would break the line it becomes.
 */
static size_t
body_bytes(struct to_host *t, const char *p, size_t n)
{
	char line[4096];

	if (n > t->body_left)
		n = (size_t)t->body_left;
	if (n > sizeof line)
		n = sizeof line;
	for (size_t i = 0; i < n; i++)
		line[i] = p[i] == '\n' ? ' ' : p[i];
	to_host_run(t, line, n, true);
	t->body_left -= n;
	if (t->body_left == 0)
		end_body(t);
	return n;
}

void
to_host_bytes(struct to_host *t, const char *p, size_t n)
{
	while (n > 0) {
		size_t used;

		if (t->in_body) {
			used = body_bytes(t, p, n);
		} else {
			to_host_run(t, p, n, false);
			used = (size_t)(t->at - p);
		}
		p += used;
		n -= used;
	}
}

/* The end of the stream, or of a body, in place of an LF. */
void
to_host_eof(struct to_host *t)
{
	bool strict = t->r->limits.strict;

	switch (t->state) {
	case LINE_START:
	case LINE_HEADER:
		frame_forget(t);
		break;
	case LINE_TEXT:
		if (t->msg.promising && t->msg.is_object) {
			refuse(t);
			judge_broken(t, true);
		} else {
			frame_sample(t);
			judge_other(t);
		}
		break;
	case LINE_TAIL:
		if (!t->valid) {
			judge_other(t);
		} else if (strict) {
			refuse(t);
			judge_broken(t, true);
		} else {
			if (!t->in_body)
				t->repairs |= REPAIR_NO_LF;
			judge_message(t, false);
		}
		break;
	case LINE_BROKEN:
		judge_broken(t, true);
		break;
	case LINE_SEEK:
	case LINE_JUNK:
		judge_other(t);
		break;
	}
}
