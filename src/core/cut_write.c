/* SPDX-License-Identifier: MIT */
/*
 * What is kept of a reply that is over the limit, and the reply that says so:
 * structuredContent whole if it fits, blocks in order while they fit, a
 * notice as the last block, a record in _meta.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cut_impl.h"
#include "spillway/jstring.h"

#define BRIEF_BELOW 1000 /* limits under which the notice is a short one */
#define PUNCTUATION 128	 /* brackets, commas and names that are added */

static const char text_open[] = "{\"type\":\"text\",\"text\":\"";
static const char text_close[] = "\"}";

#define TEXT_FRAME (sizeof text_open + sizeof text_close - 2 + 1)

static int
structured_words(const struct cut *c, bool brief, char *buf, size_t cap)
{
	const struct cut_sums *s = &c->sums;

	buf[0] = '\0';
	if (c->plan.error)
		return snprintf(buf, cap, brief ?
		    ", structured content left out" :
		    " Structured content (%" PRIu64 " bytes) was left out.",
		    s->structured);
	if (s->structured > s->structured_kept)
		return snprintf(buf, cap, brief ?
		    ", structured content shortened" :
		    " Structured content was shortened from %" PRIu64
		    " to %" PRIu64 " bytes.", s->structured,
		    s->structured_kept);
	return 0;
}

/* The notice for these sums; longest when all is kept and left out. */
static void
write_notice(struct cut *c, const struct cut_request *rq, uint64_t kept,
    uint64_t whole, uint64_t left, uint64_t left_blocks)
{
	const struct cut_sums *s = &c->sums;
	struct plan *p = &c->plan;
	bool brief = rq->limit < BRIEF_BELOW;
	char more[160];
	int n;

	(void)structured_words(c, brief, more, sizeof more);
	if (brief)
		n = snprintf(p->notice, sizeof p->notice, "[spillway: kept %"
		    PRIu64 " of %" PRIu64 " bytes, %" PRIu64 " of %" PRIu64
		    " blocks%s; narrow the request]", kept, s->bytes, whole,
		    s->blocks, more);
	else
		n = snprintf(p->notice, sizeof p->notice, "[spillway] This "
		    "result was cut to fit %" PRIu64 " bytes. Kept: %" PRIu64
		    " of %" PRIu64 " bytes, %" PRIu64 " of %" PRIu64
		    " blocks whole; left out: %" PRIu64 " bytes, %" PRIu64
		    " blocks in whole or part.%s For the rest narrow the "
		    "request or use the server's paging.", rq->limit, kept,
		    s->bytes, whole, s->blocks, left, left_blocks, more);
	p->notice_len = (size_t)n;
}

static void
write_record(struct cut *c, const struct cut_request *rq, uint64_t kept,
    uint64_t whole)
{
	struct plan *p = &c->plan;

	p->record_len = (size_t)snprintf(p->record, sizeof p->record,
	    "\"spillway/cut\":{\"limit\":%" PRIu64 ",\"bytes\":%" PRIu64
	    ",\"kept\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"blocksKept\":%"
	    PRIu64 "}", rq->limit, c->sums.bytes, kept, c->sums.blocks,
	    whole);
}

/* Decides about structuredContent; room: bytes that the line has left. */
static uint64_t
plan_struct(struct cut *c, const struct cut_request *rq, uint64_t room)
{
	struct shape *s = &c->shape;
	uint64_t need = c->blocks.n < room / 2 ? c->blocks.n : room / 2;
	uint64_t most = rq->limit < room - need ? rq->limit : room - need;

	if (!c->has_struct)
		return room;
	if (!s->shortened && s->bytes <= rq->limit && s->bytes <= room) {
		c->sums.structured_kept = s->bytes;
	} else if (rq->schema == TOOL_PLAIN && shape_fit(s, most)) {
		c->sums.structured_kept = s->keep.n + sizeof TRUNCATED - 1;
	} else {
		c->plan.error = true;
		return room;
	}
	return room - c->sums.structured_kept;
}

/* The words that stand in a block's place, and their decoded length. */
static size_t
label_words(const struct cut *c, const struct block *b, char *buf,
    size_t cap, uint64_t *decoded_r)
{
	struct measure m = { 0 };
	int n = snprintf(buf, cap, "[%s%.*s%s%" PRIu64 " bytes%s, left out by "
	    "spillway]", b->kind == BLOCK_OTHER ? "block of type " : "",
	    (int)b->label_len, c->blocks.p + b->label_at,
	    b->label_len > 0 ? ", " : "block, ", b->useful,
	    b->kind == BLOCK_DATA ? " of base64" : "");

	measure_feed(&m, buf, (size_t)n);
	*decoded_r = m.bytes;
	return (size_t)n;
}

struct rooms {
	uint64_t useful;
	uint64_t raw;
	bool stop; /* a text was cut: nothing but links behind it */
};

static bool
plan_whole(struct cut *c, struct block *b, struct rooms *r)
{
	if (!b->whole || b->len + 1 > r->raw)
		return false;
	if (b->kind != BLOCK_LINK && (r->stop || b->useful > r->useful))
		return false;
	if (b->kind != BLOCK_LINK)
		r->useful -= b->useful;
	r->raw -= b->len + 1;
	b->plan = PLAN_WHOLE;
	c->sums.kept += b->useful;
	c->sums.blocks_kept++;
	return true;
}

static void
plan_part(struct cut *c, struct block *b, struct rooms *r)
{
	uint64_t rest = b->len - b->body_len + 1, decoded;

	r->stop = true;
	if (r->raw <= rest || b->body_len == 0)
		return;
	b->part = text_cut(c->blocks.p + b->body_at, b->body_len, r->useful,
	    r->raw - rest, &decoded);
	if (b->part == 0)
		return;
	b->plan = PLAN_PART;
	r->useful -= decoded;
	r->raw -= rest + b->part;
	c->sums.kept += decoded;
}

static void
plan_label(struct cut *c, struct block *b, struct rooms *r)
{
	char words[LABEL_MAX + 128];
	uint64_t decoded;
	size_t n = label_words(c, b, words, sizeof words, &decoded);

	if (decoded > r->useful || n + TEXT_FRAME > r->raw)
		return;
	b->plan = PLAN_LABEL;
	r->useful -= decoded;
	r->raw -= n + TEXT_FRAME;
}

static void
plan_blocks(struct cut *c, struct rooms *r)
{
	struct block *b = (struct block *)(void *)c->records.p;
	size_t n = c->records.n / sizeof *b;

	for (; n > 0; n--, b++) {
		b->plan = PLAN_LEAVE;
		if (plan_whole(c, b, r) || r->stop || b->kind == BLOCK_LINK)
			continue;
		if (b->kind == BLOCK_TEXT)
			plan_part(c, b, r);
		else
			plan_label(c, b, r);
	}
}

bool
cut_plan(struct cut *c, const struct cut_request *rq)
{
	struct cut_sums *s = &c->sums;
	struct rooms r = { 0 };
	uint64_t fixed;

	c->plan.error = c->has_struct; /* the longest notice */
	write_record(c, rq, s->bytes, s->blocks);
	write_notice(c, rq, s->bytes, s->blocks, s->bytes, s->blocks);
	fixed = c->envelope.n + c->members.n + c->meta.n + PUNCTUATION +
	    c->plan.record_len + c->plan.notice_len + TEXT_FRAME;
	if (fixed > rq->frame)
		return false;
	c->plan.error = false;
	r.raw = plan_struct(c, rq, rq->frame - fixed);
	write_notice(c, rq, s->bytes, s->blocks, s->bytes, s->blocks);
	if (c->plan.notice_len > rq->limit)
		return false;
	r.useful = rq->limit - c->plan.notice_len;
	plan_blocks(c, &r);
	write_record(c, rq, s->kept, s->blocks_kept);
	write_notice(c, rq, s->kept, s->blocks_kept, s->bytes - s->kept,
	    s->blocks - s->blocks_kept);
	return true;
}

struct out {
	int (*put)(void *arg, const char *, size_t);
	void *arg;
	bool comma;
	int rc;
};

static void
put(struct out *o, const char *p, size_t n)
{
	if (o->rc == 0 && n > 0)
		o->rc = o->put(o->arg, p, n);
}

static void
word(struct out *o, const char *s)
{
	put(o, s, strlen(s));
}

/* Before a member or element. */
static void
part(struct out *o)
{
	if (o->comma)
		word(o, ",");
	o->comma = true;
}

static void
put_block(struct out *o, const struct cut *c, const struct block *b)
{
	const char *p = c->blocks.p;
	char words[LABEL_MAX + 128];
	size_t behind;
	uint64_t decoded;

	if (b->plan == PLAN_LEAVE)
		return;
	part(o);
	switch (b->plan) {
	case PLAN_WHOLE:
		put(o, p + b->at, b->len);
		break;
	case PLAN_PART:
		behind = b->body_at + b->body_len;
		put(o, p + b->at, b->body_at + b->part - b->at);
		put(o, p + behind, b->at + b->len - behind);
		break;
	case PLAN_LABEL:
		word(o, text_open);
		put(o, words, label_words(c, b, words, sizeof words,
		    &decoded));
		word(o, text_close);
		break;
	case PLAN_LEAVE:
		break;
	}
}

static void
put_content(struct out *o, const struct cut *c)
{
	const struct block *b = (const void *)c->records.p;
	size_t n = c->records.n / sizeof *b;

	part(o);
	word(o, "\"content\":[");
	o->comma = false;
	for (; n > 0; n--, b++)
		put_block(o, c, b);
	part(o);
	word(o, text_open);
	put(o, c->plan.notice, c->plan.notice_len);
	word(o, text_close);
	word(o, "]");
	o->comma = true;
}

static void
put_struct(struct out *o, const struct cut *c)
{
	const struct keep *k = &c->shape.keep;

	if (c->plan.error)
		return;
	part(o);
	word(o, "\"structuredContent\":");
	if (c->shape.shortened) {
		put(o, k->p, k->n - 1);
		word(o, TRUNCATED "}");
	} else {
		put(o, k->p, k->n);
	}
}

/* Where the member that begins at p[at] ends: at a comma or brace. */
static size_t
member_end(const char *p, size_t at, size_t n)
{
	unsigned level = 0;

	for (; at < n; at++) {
		if (p[at] == '"')
			at = string_end(p, at, n) - 1;
		else if (p[at] == '{' || p[at] == '[')
			level++;
		else if (level == 0 && (p[at] == ',' || p[at] == '}'))
			break;
		else if (p[at] == '}' || p[at] == ']')
			level--;
	}
	return at;
}

/* The members it had, less a record of another spillway before us. */
static void
put_meta(struct out *o, const struct cut *c)
{
	const char *p = c->meta.p;
	size_t n = c->meta.n, at = 1;

	part(o);
	word(o, "\"_meta\":{");
	o->comma = false;
	while (n > 0 && p[0] == '{' && at < n && p[at] != '}') {
		size_t end, name;

		if (p[at] != '"') {
			at++;
			continue;
		}
		name = string_end(p, at, n);
		end = member_end(p, name, n);
		if (!jstring_is(p + at + 1, name - at - 2, "spillway/cut")) {
			part(o);
			put(o, p + at, end - at);
		}
		at = end;
	}
	part(o);
	put(o, c->plan.record, c->plan.record_len);
	word(o, "}");
	o->comma = true;
}

/* Members that stay as they are, between two slots. */
static void
put_members(struct out *o, const struct cut *c, size_t from, size_t to)
{
	const char *p = c->members.p;
	size_t at = c->is_error_at, end = at + c->is_error_len;

	if (from == to)
		return;
	part(o);
	if (c->plan.error && c->is_error_len > 0 && at >= from && at < to) {
		put(o, p + from, at - from);
		word(o, "true");
		from = end;
	}
	put(o, p + from, to - from);
}

static void
put_result(struct out *o, const struct cut *c)
{
	bool content = false, meta = false;
	size_t at = 0;

	word(o, "{");
	for (unsigned i = 0; i < c->n_slots; i++) {
		const struct slot *slot = &c->slots[i];

		put_members(o, c, at, slot->at);
		at = slot->at;
		content = content || slot->name == NAME_CONTENT;
		meta = meta || slot->name == NAME_META;
		if (slot->name == NAME_CONTENT)
			put_content(o, c);
		else if (slot->name == NAME_META)
			put_meta(o, c);
		else
			put_struct(o, c);
	}
	put_members(o, c, at, c->members.n);
	if (!content)
		put_content(o, c);
	if (c->plan.error && c->is_error_len == 0) {
		part(o);
		word(o, "\"isError\":true");
	}
	if (!meta)
		put_meta(o, c);
	word(o, "}");
}

int
cut_write(struct cut *c, int (*fn)(void *arg, const char *, size_t),
    void *arg)
{
	struct out o = { fn, arg, false, 0 };

	word(&o, "{");
	put(&o, c->envelope.p, c->result_at);
	put_result(&o, c);
	put(&o, c->envelope.p + c->result_at, c->envelope.n - c->result_at);
	word(&o, "}\n");
	return o.rc;
}
