/* SPDX-License-Identifier: MIT */
/*
 * A reply on its way into the cut (see cut.h): the events of a scan of its
 * own tell where its parts begin and end, and to which store the bytes
 * between go, if to any. What is decided about them at the end is
 * cut_write.c's.
 *
 *   depth 1  {"jsonrpc":..,"id":..,"result":   envelope
 *   depth 2    {"x":..,"isError":..            members, _meta apart
 *              "structuredContent":..          shape
 *              "content":[
 *   depth 3      {..},                         blocks, a record for each
 *   depth 4       "type" "text" "data" "mimeType"
 *   depth 5       "resource":{"text" "blob" "mimeType"}
 */
#include <stdlib.h>
#include <string.h>

#include "cut_impl.h"
#include "spillway/jstring.h"

#define KEEP_MIN 256u
#define ESCAPE_MAX 6 /* bytes that one decoded byte may take */
#define END_RESERVE 4096 /* raw bytes for the members behind a text */
#define LABEL_COST 64 /* useful bytes of a notice in place of a block */

struct named {
	const char *word;
	enum cut_name name;
};

static const struct named result_names[] = {
	{ "content", NAME_CONTENT }, { "structuredContent", NAME_STRUCTURED },
	{ "_meta", NAME_META }, { "isError", NAME_IS_ERROR },
	{ "resultType", NAME_RESULT_TYPE },
};

static const struct named block_names[] = {
	{ "type", NAME_TYPE }, { "text", NAME_TEXT }, { "data", NAME_DATA },
	{ "mimeType", NAME_MIME }, { "resource", NAME_RESOURCE },
};

static const struct named resource_names[] = {
	{ "text", NAME_TEXT }, { "blob", NAME_DATA },
	{ "mimeType", NAME_MIME },
};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define FIND(table, s) find_name(table, COUNT(table), (s))

void
keep_free(struct budget *b, struct keep *k)
{
	budget_release(b, k->p);
	*k = (struct keep) { 0 };
}

bool
keep_add(struct budget *b, struct keep *k, const char *bytes, size_t n,
    uint64_t limit)
{
	if (n > limit || k->n > limit - n)
		return false;
	if (k->cap - k->n < n) {
		size_t cap = k->n + n + k->n / 4 + KEEP_MIN;
		char *p = budget_resize(b, BUDGET_DATA, k->p, cap);

		if (p == NULL)
			return false;
		k->p = p;
		k->cap = cap;
	}
	if (n > 0)
		memcpy(k->p + k->n, bytes, n);
	k->n += n;
	return true;
}

/* No further block is kept, the one that arrives neither. */
static void
close_blocks(struct cut *c)
{
	c->blocks.n = c->now.b.at;
	c->closed = true;
	c->to = NULL;
}

static void
keep_bytes(struct cut *c, const char *p, size_t n)
{
	if (keep_add(c->budget, c->to, p, n, c->bounds.skeleton))
		return;
	if (c->to == &c->blocks) {
		close_blocks(c);
	} else {
		c->no_room = true;
		c->to = NULL;
	}
}

/* Bytes of a string that may be kept in part, or not at all. */
static void
keep_body(struct cut *c, const char *p, size_t n)
{
	uint64_t room = c->body_limit - (c->blocks.n - c->body_from);

	if (n <= room) {
		keep_bytes(c, p, n);
		return;
	}
	c->skipping = true;
	c->now.b.whole = false;
	if (c->body_drops) {
		c->blocks.n = c->body_from;
		c->now.data_dropped = true;
	} else {
		keep_bytes(c, p, (size_t)room);
	}
}

/* The bytes before upto belong to what is arriving now. */
static void
take(struct cut *c, const char *upto)
{
	const char *p = c->mark;
	size_t n = (size_t)(upto - p);

	c->mark = upto;
	if (n == 0)
		return;
	if (c->counting != NULL)
		measure_feed(c->counting, p, n);
	if (c->place == IN_STRUCT)
		shape_bytes(&c->shape, p, n);
	else if (c->to == NULL || c->skipping)
		return;
	else if (c->counting != NULL)
		keep_body(c, p, n);
	else
		keep_bytes(c, p, n);
}

static enum cut_name
find_name(const struct named *table, size_t n, const struct scan *s)
{
	for (size_t i = 0; i < n && !s->token_cut; i++)
		if (jstring_is(s->token, s->token_len, table[i].word))
			return table[i].name;
	return NAME_OTHER;
}

/* A member begins in a store of members; from: what it is parted from. */
static void
begin_member(struct cut *c, struct keep *k, size_t from)
{
	c->name = NAME_OTHER;
	if (c->bounds.measure || c->no_room)
		return;
	c->to = k;
	if (k->n > from)
		keep_bytes(c, ",", 1);
}

static void
begin_in_envelope(struct cut *c, enum scan_event e)
{
	if (c->scan.depth == 0) {
		c->odd = c->odd || (scan_begins_value(e) && e != SCAN_OBJECT);
	} else if (e == SCAN_KEY) {
		begin_member(c, &c->envelope, 0);
	} else if (scan_begins_value(e) && c->name == NAME_RESULT) {
		c->odd = c->odd || e != SCAN_OBJECT || c->has_result;
		c->has_result = true;
		c->result_at = c->envelope.n;
		if (e == SCAN_OBJECT) {
			c->to = NULL;
			c->place = IN_RESULT;
			c->scan.watch = 2;
		}
	}
}

static size_t
last_slot(const struct cut *c)
{
	return c->n_slots > 0 ? c->slots[c->n_slots - 1].at : 0;
}

static void
begin_result_value(struct cut *c, enum scan_event e)
{
	switch (c->name) {
	case NAME_CONTENT:
		if (e != SCAN_ARRAY) {
			c->odd = true;
			break;
		}
		c->place = IN_CONTENT;
		c->scan.watch = 3;
		break;
	case NAME_STRUCTURED:
		c->has_struct = true;
		c->place = IN_STRUCT;
		shape_begin(&c->shape, c->budget, c->bounds.measure ? 0 :
		    c->bounds.retain, e == SCAN_OBJECT);
		c->scan.watch = UINT32_MAX;
		break;
	case NAME_META:
		c->to = c->bounds.measure || c->no_room ? NULL : &c->meta;
		break;
	case NAME_IS_ERROR:
		c->is_error_at = c->members.n;
		break;
	case NAME_OTHER:
	case NAME_RESULT:
	case NAME_RESULT_TYPE:
	case NAME_TYPE:
	case NAME_TEXT:
	case NAME_DATA:
	case NAME_MIME:
	case NAME_RESOURCE:
		break;
	}
}

static void
begin_in_result(struct cut *c, enum scan_event e)
{
	if (c->scan.depth != 2)
		return;
	if (e == SCAN_KEY) {
		c->member_at = c->members.n;
		begin_member(c, &c->members, last_slot(c));
	} else if (scan_begins_value(e)) {
		begin_result_value(c, e);
	}
}

static void
begin_block(struct cut *c, enum scan_event e, uint64_t off)
{
	struct arriving *a = &c->now;

	memset(a, 0, offsetof(struct arriving, mime));
	a->mime_len = a->type_len = 0;
	a->from = off;
	a->kind = BLOCK_OTHER;
	a->b.whole = true;
	a->b.at = c->blocks.n;
	c->to = c->closed || c->bounds.measure ? NULL : &c->blocks;
	if (e == SCAN_OBJECT) {
		c->place = IN_BLOCK;
		c->scan.watch = 4;
	}
}

/* A string of the block ends: what comes behind it is kept again. */
static void
end_body(struct cut *c)
{
	if (c->counting == &c->now.text && c->to != NULL) {
		c->now.b.body_at = c->body_from;
		c->now.b.body_len = c->blocks.n - c->body_from;
	}
	c->counting = NULL;
	c->skipping = false;
}

/* Before the byte of the event is taken. */
static void
before(struct cut *c, enum scan_event e, uint64_t off)
{
	if (c->counting != NULL && e == SCAN_STRING_END)
		end_body(c);
	switch (c->place) {
	case IN_ENVELOPE:
		begin_in_envelope(c, e);
		break;
	case IN_RESULT:
		begin_in_result(c, e);
		break;
	case IN_CONTENT:
		if (c->scan.depth == 3 && scan_begins_value(e))
			begin_block(c, e, off);
		break;
	case IN_BLOCK:
		if (e == SCAN_OBJECT && c->name == NAME_RESOURCE) {
			c->place = IN_RESOURCE;
			c->scan.watch = 5;
		}
		break;
	case IN_STRUCT:
		shape_before(&c->shape, &c->scan, e);
		break;
	case IN_RESOURCE:
		break;
	}
}

/* content, structuredContent and _meta are written anew, in their places. */
static void
make_slot(struct cut *c)
{
	for (unsigned i = 0; i < c->n_slots; i++)
		if (c->slots[i].name == c->name)
			c->odd = true;
	if (c->odd || c->n_slots == SLOTS)
		return;
	c->to = NULL;
	c->members.n = c->member_at;
	c->slots[c->n_slots++] = (struct slot) { c->name, c->member_at };
}

static void
after_key(struct cut *c)
{
	switch (c->place) {
	case IN_ENVELOPE:
		if (jstring_is(c->scan.token, c->scan.token_len, "result"))
			c->name = NAME_RESULT;
		break;
	case IN_RESULT:
		c->name = FIND(result_names, &c->scan);
		if (c->name == NAME_CONTENT || c->name == NAME_STRUCTURED ||
		    c->name == NAME_META)
			make_slot(c);
		if (c->name == NAME_IS_ERROR && c->is_error_len > 0)
			c->odd = true;
		break;
	case IN_BLOCK:
		c->name = FIND(block_names, &c->scan);
		break;
	case IN_RESOURCE:
		c->name = FIND(resource_names, &c->scan);
		break;
	case IN_CONTENT:
	case IN_STRUCT:
		break;
	}
}

static uint64_t
room_left(const struct cut *c)
{
	return c->full || c->cumul >= c->bounds.retain ? 0 :
	    c->bounds.retain - c->cumul;
}

/* Raw bytes of a text worth keeping; the block's end needs place, too. */
static uint64_t
text_limit(const struct cut *c, uint64_t room)
{
	uint64_t used = c->blocks.n, all = c->bounds.skeleton;
	uint64_t reserve = all / 8 < END_RESERVE ? all / 8 : END_RESERVE;
	uint64_t left = all > used + reserve ? all - used - reserve : 0;
	uint64_t most = room;

	if (room > 0 && room <= UINT64_MAX / 8)
		most = room * ESCAPE_MAX + 2 * ESCAPE_MAX;
	return most < left ? most : left;
}

/* A string of the block begins, its quote is taken. */
static void
begin_body(struct cut *c)
{
	uint64_t room = room_left(c);

	if ((c->place != IN_BLOCK && c->place != IN_RESOURCE) ||
	    (c->name != NAME_TEXT && c->name != NAME_DATA))
		return;
	c->body_from = c->blocks.n;
	c->body_drops = c->name == NAME_DATA;
	c->counting = c->name == NAME_DATA ? &c->now.data : &c->now.text;
	if (c->body_drops)
		c->body_limit = room;
	else
		c->body_limit = text_limit(c, room);
}

static void
take_label(const struct scan *s, char *label, size_t *len_r)
{
	*len_r = s->token_cut || s->token_len > LABEL_MAX ? 0 : s->token_len;
	memcpy(label, s->token, *len_r);
}

static void
take_type(struct cut *c)
{
	static const struct {
		const char *word;
		enum block_kind kind;
		bool resource;
	} types[] = {
		{ "text", BLOCK_TEXT, false }, { "image", BLOCK_DATA, false },
		{ "audio", BLOCK_DATA, false },
		{ "resource", BLOCK_TEXT, true },
		{ "resource_link", BLOCK_LINK, false },
	};
	const struct scan *s = &c->scan;

	c->now.kind = BLOCK_OTHER;
	for (size_t i = 0; i < COUNT(types); i++)
		if (jstring_is(s->token, s->token_len, types[i].word)) {
			c->now.kind = types[i].kind;
			c->now.resource = types[i].resource;
		}
	take_label(s, c->now.type, &c->now.type_len);
}

static void
after_string(struct cut *c)
{
	const struct scan *s = &c->scan;

	if (c->place == IN_BLOCK && c->name == NAME_TYPE)
		take_type(c);
	else if ((c->place == IN_BLOCK || c->place == IN_RESOURCE) &&
	    c->name == NAME_MIME)
		take_label(s, c->now.mime, &c->now.mime_len);
	else if (c->place == IN_RESULT && c->name == NAME_RESULT_TYPE)
		c->input_required = !s->token_cut && jstring_is(s->token,
		    s->token_len, "input_required");
}

/* What a notice in its place will name, behind the block's own bytes. */
static void
add_label(struct cut *c, const char *p, size_t n)
{
	struct block *b = &c->now.b;

	b->label_at = c->blocks.n;
	b->label_len = n;
	keep_bytes(c, p, n);
}

/* Kept whole if it fits, else nothing of it but its label. */
static bool
keep_opaque(struct cut *c)
{
	struct arriving *a = &c->now;
	bool mime = a->b.kind == BLOCK_DATA && a->mime_len > 0;

	if (c->full)
		return false;
	if (!a->b.whole || a->b.useful > room_left(c)) {
		a->b.whole = false;
		c->blocks.n = a->b.at;
		a->b.len = 0;
		c->cumul += LABEL_COST;
	} else {
		c->cumul += a->b.useful;
	}
	add_label(c, mime ? a->mime : a->type, mime ? a->mime_len :
	    a->type_len);
	return true;
}

static bool
keep_block(struct cut *c)
{
	struct block *b = &c->now.b;

	switch (b->kind) {
	case BLOCK_LINK:
		return b->whole;
	case BLOCK_DATA:
	case BLOCK_OTHER:
		return keep_opaque(c);
	case BLOCK_TEXT:
		break;
	}
	if (c->full || c->now.data_dropped)
		return false;
	c->cumul += b->useful;
	c->full = c->cumul > c->bounds.retain;
	return true;
}

static void
end_block(struct cut *c, uint64_t end)
{
	struct arriving *a = &c->now;
	struct block *b = &a->b;

	b->kind = a->kind;
	if (a->resource && a->data.bytes > 0)
		b->kind = BLOCK_DATA;
	switch (b->kind) {
	case BLOCK_TEXT:
	case BLOCK_DATA:
		b->useful = a->resource ? a->text.bytes + a->data.bytes :
		    b->kind == BLOCK_TEXT ? a->text.bytes : a->data.bytes;
		break;
	case BLOCK_OTHER:
		b->useful = end - a->from;
		break;
	case BLOCK_LINK:
		break;
	}
	c->sums.blocks++;
	c->sums.bytes += b->useful;
	if (c->to == NULL)
		return;
	b->len = c->blocks.n - b->at;
	if (!keep_block(c))
		c->blocks.n = b->at;
	else if (c->to != NULL && !keep_add(c->budget, &c->records,
	    (const char *)b, sizeof *b, c->bounds.skeleton))
		close_blocks(c);
	c->to = NULL;
}

static void
end_member(struct cut *c, enum scan_event e)
{
	uint32_t depth = c->scan.depth;

	if (depth == 1) {
		c->to = NULL;
		c->place = IN_ENVELOPE;
		c->scan.watch = 1;
	} else if (depth == 2) {
		if (c->name == NAME_IS_ERROR && c->to == &c->members)
			c->is_error_len = c->members.n - c->is_error_at;
		c->to = NULL;
		c->place = IN_RESULT;
		c->name = NAME_OTHER;
		c->scan.watch = 2;
	} else if (depth == 4 && e == SCAN_OBJECT_END) {
		c->place = IN_BLOCK;
		c->name = NAME_OTHER;
		c->scan.watch = 4;
	}
}

/* Once the byte of the event is taken. */
static void
after(struct cut *c, enum scan_event e, uint64_t end)
{
	if (e == SCAN_KEY_END && c->place != IN_STRUCT)
		after_key(c);
	if (e == SCAN_STRING)
		begin_body(c);
	if (e == SCAN_STRING_END)
		after_string(c);
	if (c->place == IN_STRUCT)
		shape_after(&c->shape, &c->scan, e);
	if (!scan_ends_value(e) || (c->place == IN_STRUCT && c->scan.depth > 2))
		return;
	if (c->scan.depth == 3 && (c->place == IN_CONTENT ||
	    c->place == IN_BLOCK)) {
		end_block(c, end);
		c->place = IN_CONTENT;
		c->scan.watch = 3;
	} else {
		end_member(c, e);
	}
}

static void
on_event(void *arg, struct scan *s, enum scan_event e, uint64_t off)
{
	struct cut *c = arg;
	const char *p = s->base + (off - s->off);
	unsigned own = e == SCAN_SCALAR || e == SCAN_SCALAR_END ? 0 : 1;

	take(c, p);
	before(c, e, off);
	take(c, p + own);
	after(c, e, off + own);
}

struct cut *
cut_new(struct budget *budget, const struct cut_bounds *bounds)
{
	struct cut *c = budget_alloc(budget, BUDGET_DATA, sizeof *c);
	struct scan_sink sink = { .event = on_event };

	if (c == NULL)
		return NULL;
	memset(c, 0, sizeof *c);
	c->budget = budget;
	c->bounds = *bounds;
	c->stack = budget_alloc(budget, BUDGET_DATA,
	    scan_stack_size(bounds->max_depth));
	if (c->stack == NULL) {
		cut_free(&c);
		return NULL;
	}
	sink.arg = c;
	scan_init(&c->scan, &sink, c->stack, bounds->max_depth);
	c->scan.watch = 1;
	return c;
}

void
cut_free(struct cut **cp)
{
	struct cut *c = *cp;

	if (c == NULL)
		return;
	keep_free(c->budget, &c->envelope);
	keep_free(c->budget, &c->members);
	keep_free(c->budget, &c->meta);
	keep_free(c->budget, &c->blocks);
	keep_free(c->budget, &c->records);
	keep_free(c->budget, &c->shape.keep);
	budget_release(c->budget, c->stack);
	budget_release(c->budget, c);
	*cp = NULL;
}

void
cut_feed(struct cut *c, const char *p, size_t n)
{
	enum scan_status st;
	size_t used;

	if (c->done || c->broken || c->odd)
		return;
	c->mark = p;
	st = scan_feed(&c->scan, p, n, &used);
	take(c, p + used);
	c->done = st == SCAN_DONE;
	c->broken = st == SCAN_LF || st == SCAN_FAULT || c->scan.too_deep;
}

enum cut_verdict
cut_judge(struct cut *c, const struct cut_request *rq)
{
	struct cut_sums *s = &c->sums;

	s->structured = c->has_struct ? c->shape.bytes : 0;
	if (!c->done || c->odd || !c->has_result ||
	    (s->blocks == 0 && !c->has_struct))
		return rq->over ? CUT_IMPOSSIBLE : CUT_FITS;
	if (!rq->over && s->bytes <= rq->limit && s->structured <= rq->limit)
		return CUT_FITS;
	if (c->input_required)
		return CUT_FORBIDDEN;
	if (c->bounds.measure)
		return CUT_POSSIBLE;
	return !c->no_room && cut_plan(c, rq) ? CUT_POSSIBLE : CUT_IMPOSSIBLE;
}

const struct cut_sums *
cut_sums(const struct cut *c)
{
	return &c->sums;
}

const char *
cut_verdict_name(enum cut_verdict v)
{
	switch (v) {
	case CUT_FITS:
		return "fits";
	case CUT_POSSIBLE:
		return "possible";
	case CUT_IMPOSSIBLE:
		return "impossible";
	case CUT_FORBIDDEN:
		return "forbidden";
	}
	return "unknown";
}
