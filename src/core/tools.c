/* SPDX-License-Identifier: MIT */
/*
 * Tools as tools/list replies told of them (tools.h):
 * {"result":{"tools":[{"name":..,"outputSchema":..,"_meta":{..}}, ...]}}
 */
#include "spillway/tools.h"

#include <stdlib.h>
#include <string.h>

#include "spillway/jstring.h"
#include "spillway/message.h"

#define TOOLS_MAX 65536u

struct tool {
	uint64_t name;
	uint64_t size;
	bool schema;
};

enum member { M_OTHER, M_RESULT, M_TOOLS, M_NAME, M_SCHEMA, M_META, M_SIZE };

struct tools {
	struct budget *budget;
	struct scan scan;
	struct scan_sink sink;
	uint8_t *stack;
	uint32_t max_depth;
	uint64_t seed;
	struct tool *known; /* a hash table of cap places, a power of 2 */
	uint32_t n;
	uint32_t cap;
	uint64_t most;	    /* the largest size in it */
	enum member at[6]; /* the member that is open, by depth */
	struct tool now;
	bool done;
};

static enum member
member_of(const struct scan *s)
{
	static const struct {
		uint32_t depth;
		const char *word;
		enum member member;
	} words[] = {
		{ 1, "result", M_RESULT }, { 2, "tools", M_TOOLS },
		{ 4, "name", M_NAME }, { 4, "outputSchema", M_SCHEMA },
		{ 4, "_meta", M_META },
		{ 5, "anthropic/maxResultSizeChars", M_SIZE },
	};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (words[i].depth == s->depth && !s->token_cut &&
		    jstring_is(s->token, s->token_len, words[i].word))
			return words[i].member;
	return M_OTHER;
}

/* Where the name stands in the table, or would stand; name is not 0. */
static struct tool *
slot(struct tool *table, uint32_t cap, uint64_t name)
{
	uint32_t i = (uint32_t)name & (cap - 1);

	while (table[i].name != 0 && table[i].name != name)
		i = (i + 1) & (cap - 1);
	return &table[i];
}

static const struct tool *
find(const struct tools *t, uint64_t name)
{
	const struct tool *tool;

	if (t->n == 0 || name == 0)
		return NULL;
	tool = slot(t->known, t->cap, name);
	return tool->name != 0 ? tool : NULL;
}

/* Half of the table stays empty. */
static bool
grow(struct tools *t)
{
	uint32_t cap = t->cap == 0 ? 32 : t->cap * 2;
	struct tool *p;

	if (cap > 2 * TOOLS_MAX)
		return false;
	p = budget_alloc(t->budget, BUDGET_BOOKS, cap * sizeof *p);
	if (p == NULL)
		return false;
	memset(p, 0, cap * sizeof *p);
	for (uint32_t i = 0; i < t->cap; i++)
		if (t->known[i].name != 0)
			*slot(p, cap, t->known[i].name) = t->known[i];
	budget_release(t->budget, t->known);
	t->known = p;
	t->cap = cap;
	return true;
}

static void
find_most(struct tools *t)
{
	t->most = 0;
	for (uint32_t i = 0; i < t->cap; i++)
		if (t->known[i].size > t->most)
			t->most = t->known[i].size;
}

/* What finds no room is unknown, and unknown tools are treated with care. */
static void
remember(struct tools *t)
{
	struct tool *tool;
	uint64_t was;

	if (t->now.name == 0 || (t->n == t->cap / 2 && !grow(t)))
		return;
	tool = slot(t->known, t->cap, t->now.name);
	was = tool->size;
	if (tool->name == 0)
		t->n++;
	*tool = t->now;
	if (tool->size > t->most)
		t->most = tool->size;
	else if (was == t->most && tool->size < was)
		find_most(t);
}

/* A number of bytes; anything but a plain one is none. */
static uint64_t
number(const struct scan *s)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < s->token_len; i++) {
		char c = s->token[i];

		if (c < '0' || c > '9' || v > UINT64_MAX / 16)
			return 0;
		v = v * 10 + (uint64_t)(c - '0');
	}
	return v;
}

static bool
in_tool(const struct tools *t)
{
	return t->at[1] == M_RESULT && t->at[2] == M_TOOLS;
}

static void
take_string(struct tools *t, const struct scan *s)
{
	if (s->depth == 4 && in_tool(t) && t->at[4] == M_NAME)
		t->now.name = message_hash_token(t->seed, s);
}

static void
on_event(void *arg, struct scan *s, enum scan_event e, uint64_t off)
{
	struct tools *t = arg;

	(void)off;
	if (e == SCAN_KEY_END && s->depth <= 5) {
		t->at[s->depth] = member_of(s);
		if (s->depth == 4 && in_tool(t) && t->at[4] == M_SCHEMA)
			t->now.schema = true;
	} else if (e == SCAN_OBJECT && s->depth == 3) {
		t->now = (struct tool) { 0 };
	} else if (e == SCAN_OBJECT_END && s->depth == 3 && in_tool(t)) {
		remember(t);
	} else if (e == SCAN_STRING_END) {
		take_string(t, s);
	} else if (e == SCAN_SCALAR_END && s->depth == 5 && in_tool(t) &&
	    t->at[4] == M_META && t->at[5] == M_SIZE) {
		t->now.size = number(s);
	}
}

struct tools *
tools_new(struct budget *budget, uint64_t seed, uint32_t max_depth)
{
	struct tools *t = calloc(1, sizeof *t);

	if (t == NULL)
		return NULL;
	t->budget = budget;
	t->seed = seed;
	t->max_depth = max_depth;
	t->stack = malloc(scan_stack_size(max_depth));
	t->sink = (struct scan_sink) { .event = on_event, .arg = t };
	t->done = true;
	if (t->stack == NULL)
		tools_free(&t);
	return t;
}

void
tools_free(struct tools **tp)
{
	struct tools *t = *tp;

	if (t == NULL)
		return;
	budget_release(t->budget, t->known);
	free(t->stack);
	free(t);
	*tp = NULL;
}

void
tools_begin(struct tools *t)
{
	scan_init(&t->scan, &t->sink, t->stack, t->max_depth);
	t->scan.watch = 5;
	memset(t->at, 0, sizeof t->at);
	t->done = false;
}

void
tools_feed(struct tools *t, const char *p, size_t n)
{
	size_t used;

	if (!t->done)
		t->done = scan_feed(&t->scan, p, n, &used) != SCAN_MORE;
}

void
tools_forget(struct tools *t)
{
	if (t->n > 0)
		memset(t->known, 0, t->cap * sizeof *t->known);
	t->n = 0;
	t->most = 0;
}

enum tool_schema
tools_schema(const struct tools *t, uint64_t name)
{
	const struct tool *tool = find(t, name);

	if (tool == NULL)
		return TOOL_UNKNOWN;
	return tool->schema ? TOOL_HAS_SCHEMA : TOOL_PLAIN;
}

uint64_t
tools_size(const struct tools *t, uint64_t name)
{
	const struct tool *tool = find(t, name);

	return tool != NULL ? tool->size : 0;
}

uint64_t
tools_most(const struct tools *t)
{
	return t->most;
}
