/* SPDX-License-Identifier: MIT */
/*
 * From scanner events to the facts about one message. The paths that matter
 * are a tree three levels deep (envelope, params or result, _meta); the
 * scanner is told to skip whatever lies beside it by raising and lowering
 * its watch depth.
 */
#include "spillway/message.h"

#include <string.h>

#include "spillway/hash.h"
#include "spillway/jstring.h"

enum where {
	AT_OTHER,
	AT_JSONRPC,
	AT_ID,
	AT_METHOD,
	AT_PARAMS,
	AT_RESULT,
	AT_ERROR,
};

enum inner {
	IN_OTHER,
	IN_META,
	IN_TOKEN,
	IN_REQUEST,
	IN_NAME,
	IN_URI,
	IN_TASK,
	IN_RESULT_TYPE,
};

enum deeper {
	META_OTHER,
	META_TOKEN,
	META_PROTOCOL, /* a member that cancels must repeat */
	META_VERSION,
	META_SUBSCRIPTION,
};

struct word {
	const char *text;
	uint8_t len;
	uint8_t code;
};

#define WORD(text, code) { text, sizeof(text) - 1, code }

static const struct word envelope_words[] = {
	WORD("jsonrpc", AT_JSONRPC),
	WORD("id", AT_ID),
	WORD("method", AT_METHOD),
	WORD("params", AT_PARAMS),
	WORD("result", AT_RESULT),
	WORD("error", AT_ERROR),
};

static const struct word params_words[] = {
	WORD("_meta", IN_META),
	WORD("progressToken", IN_TOKEN),
	WORD("requestId", IN_REQUEST),
	WORD("name", IN_NAME),
	WORD("uri", IN_URI),
	WORD("task", IN_TASK),
};

static const struct word result_words[] = {
	WORD("resultType", IN_RESULT_TYPE),
};

static const struct word method_words[] = {
	WORD("initialize", METHOD_INITIALIZE),
	WORD("server/discover", METHOD_DISCOVER),
	WORD("tools/call", METHOD_TOOLS_CALL),
	WORD("tools/list", METHOD_TOOLS_LIST),
	WORD("tasks/result", METHOD_TASKS_RESULT),
	WORD("subscriptions/listen", METHOD_LISTEN),
	WORD("elicitation/create", METHOD_ASKS_PERSON),
	WORD("sampling/createMessage", METHOD_ASKS_PERSON),
};

static const struct word notice_words[] = {
	WORD("notifications/cancelled", NOTICE_CANCELLED),
	WORD("notifications/progress", NOTICE_PROGRESS),
	WORD("notifications/message", NOTICE_LOG),
	WORD("notifications/resources/updated", NOTICE_UPDATED),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint8_t
find_word(const struct word *w, size_t n, const struct scan *s)
{
	const char *p = s->token;
	size_t len = s->token_len;

	if (s->token_cut || len == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (len == w[i].len && *p == *w[i].text &&
		    memcmp(p, w[i].text, len) == 0)
			return w[i].code;
	if (memchr(p, '\\', len) == NULL)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (len > w[i].len && jstring_spells(p, len, w[i].text))
			return w[i].code;
	return 0;
}

uint64_t
message_hash_token(uint64_t seed, const struct scan *s)
{
	char text[SCAN_TOKEN_MAX];
	size_t n = jstring_decode(s->token, s->token_len, text, sizeof text);
	uint64_t h = hash_keyed(text, n, seed);

	return h != 0 ? h : 1;
}

static void
clear_facts(struct message *m)
{
	m->jsonrpc = m->has_method = m->has_result = m->has_error = false;
	m->method[0] = '\0';
	m->method_class = METHOD_OTHER;
	m->notice_class = NOTICE_OTHER;
	m->method_hash = m->tool = m->uri = m->subscription = 0;
	m->id.present = m->token.present = m->request.present = false;
	m->task = m->modern = m->input_required = false;
	m->meta_count = 0;
	m->where = AT_OTHER;
	m->inner = IN_OTHER;
	m->deeper = META_OTHER;
}

void
message_begin(struct message *m, uint64_t seed,
    void (*element)(void *arg, struct message *), void *arg)
{
	m->batch = m->batch_broken = m->is_object = false;
	m->elements = 0;
	m->promising = false;
	m->base = 1;
	m->seed = seed;
	m->element = element;
	m->arg = arg;
	clear_facts(m);
}

void
message_begun(struct message *m, struct scan *s)
{
	scan_begun(s, sizeof MESSAGE_USUAL - 1);
	s->watch = m->base;
	m->is_object = m->jsonrpc = m->promising = true;
}

static void
keep_token(struct message_token *t, const struct scan *s, bool string)
{
	uint32_t n = s->token_len, at = 0;

	t->present = true;
	t->string = string;
	t->cut = s->token_cut || n > ID_RAW_MAX;
	if (n > ID_RAW_MAX)
		n = ID_RAW_MAX;
	if (string)
		t->raw[at++] = '"';
	memcpy(t->raw + at, s->token, n);
	at += n;
	if (string)
		t->raw[at++] = '"';
	t->len = at;
}

/* Containers where an id should be: there is an id, of no valid type. */
static void
keep_container(struct message_token *t, char bracket)
{
	t->present = true;
	t->string = t->cut = false;
	t->len = 1;
	t->raw[0] = bracket;
}

static void
take_method(struct message *m, const struct scan *s)
{
	size_t n, cap = sizeof m->method - 1;

	m->has_method = true;
	n = jstring_decode(s->token, s->token_len, m->method, cap);
	m->method[n < cap ? n : cap] = '\0';
	m->method_class = METHOD_OTHER;
	m->notice_class = NOTICE_OTHER;
	if (n < 14 || memcmp(m->method, "notifications/", 14) != 0) {
		m->method_class = (enum method_class)find_word(method_words,
		    COUNT(method_words), s);
		return;
	}
	m->notice_class = (enum notice_class)find_word(notice_words,
	    COUNT(notice_words), s);
	if (m->notice_class == NOTICE_OTHER && n <= cap &&
	    memcmp(m->method + n - 13, "/list_changed", 13) == 0)
		m->notice_class = NOTICE_CHANGED;
	if (m->notice_class == NOTICE_CHANGED ||
	    m->notice_class == NOTICE_UPDATED)
		m->method_hash = message_hash_token(m->seed, s);
}

static void
envelope_key(struct message *m, const struct scan *s)
{
	m->where = find_word(envelope_words, COUNT(envelope_words), s);
	if (m->where != AT_OTHER)
		m->promising = true;
	/* Of duplicate members the last one counts, as in every host. */
	switch ((enum where)m->where) {
	case AT_JSONRPC:
		m->jsonrpc = false;
		break;
	case AT_ID:
		m->id.present = false;
		break;
	case AT_METHOD:
		m->has_method = false;
		break;
	case AT_RESULT:
		m->has_result = true;
		break;
	case AT_ERROR:
		m->has_error = true;
		break;
	case AT_PARAMS:
	case AT_OTHER:
		break;
	}
}

static void
envelope_value(struct message *m, const struct scan *s, bool string)
{
	switch ((enum where)m->where) {
	case AT_JSONRPC:
		m->jsonrpc = string && !s->token_cut &&
		    jstring_is(s->token, s->token_len, "2.0");
		break;
	case AT_ID:
		keep_token(&m->id, s, string);
		break;
	case AT_METHOD:
		if (string)
			take_method(m, s);
		break;
	case AT_PARAMS:
	case AT_RESULT:
	case AT_ERROR:
	case AT_OTHER:
		break;
	}
	m->where = AT_OTHER;
}

static void
inner_key(struct message *m, const struct scan *s)
{
	if (m->where == AT_PARAMS)
		m->inner = find_word(params_words, COUNT(params_words), s);
	else
		m->inner = find_word(result_words, COUNT(result_words), s);
	if (m->inner == IN_TASK)
		m->task = true;
}

static void
inner_value(struct message *m, const struct scan *s, bool string)
{
	switch ((enum inner)m->inner) {
	case IN_TOKEN:
		keep_token(&m->token, s, string);
		break;
	case IN_REQUEST:
		keep_token(&m->request, s, string);
		break;
	case IN_NAME:
		if (string)
			m->tool = message_hash_token(m->seed, s);
		break;
	case IN_URI:
		if (string)
			m->uri = message_hash_token(m->seed, s);
		break;
	case IN_RESULT_TYPE:
		m->input_required = string &&
		    jstring_is(s->token, s->token_len, "input_required");
		break;
	case IN_TASK:
	case IN_META:
	case IN_OTHER:
		break;
	}
	m->inner = IN_OTHER;
}

static void
meta_key(struct message *m, const struct scan *s)
{
	m->deeper = META_OTHER;
	if (s->token_cut)
		return;
	if (jstring_is(s->token, s->token_len, "progressToken"))
		m->deeper = META_TOKEN;
	else if (!jstring_starts(s->token, s->token_len,
	    "io.modelcontextprotocol/"))
		return;
	else if (jstring_is(s->token, s->token_len,
	    "io.modelcontextprotocol/protocolVersion"))
		m->deeper = META_VERSION;
	else if (jstring_is(s->token, s->token_len,
	    "io.modelcontextprotocol/subscriptionId"))
		m->deeper = META_SUBSCRIPTION;
	else
		m->deeper = META_PROTOCOL;
}

/* A member of _meta is complete; end is the offset behind it. */
static void
meta_value(struct message *m, const struct scan *s, bool scalar, bool string,
    uint64_t end)
{
	switch ((enum deeper)m->deeper) {
	case META_TOKEN:
		if (scalar)
			keep_token(&m->token, s, string);
		break;
	case META_VERSION:
	case META_PROTOCOL:
		if (m->deeper == META_VERSION)
			m->modern = true;
		if (m->meta_count < MESSAGE_META_MAX)
			m->meta[m->meta_count++] = (struct message_range) {
				m->key_off, end
			};
		break;
	case META_SUBSCRIPTION:
		if (scalar)
			m->subscription = message_hash_token(m->seed, s);
		break;
	case META_OTHER:
		break;
	}
	m->deeper = META_OTHER;
}

/* Tokens around the envelope itself: the text, and elements of a batch. */
static void
outside(struct message *m, struct scan *s, enum scan_event e)
{
	if (e == SCAN_OBJECT) {
		m->is_object = true;
		clear_facts(m);
		s->watch = m->base;
	} else if (s->depth == 0) {
		m->batch = e == SCAN_ARRAY;
		if (m->batch)
			s->watch = m->base = 2;
	} else {
		m->batch_broken = true;
	}
}

static void
outside_end(struct message *m, const struct scan *s, enum scan_event e)
{
	if (!m->batch || s->depth != 1)
		return;
	if (e != SCAN_OBJECT_END) {
		m->batch_broken = true; /* only messages stand in a batch */
		return;
	}
	m->elements++;
	if (message_kind(m) == MESSAGE_NONE)
		m->batch_broken = true;
	else if (m->element != NULL)
		m->element(m->arg, m);
}

static void
envelope_event(struct message *m, struct scan *s, enum scan_event e)
{
	switch (e) {
	case SCAN_KEY_END:
		envelope_key(m, s);
		break;
	case SCAN_STRING_END:
		envelope_value(m, s, true);
		break;
	case SCAN_SCALAR_END:
		envelope_value(m, s, false);
		break;
	case SCAN_OBJECT:
		if (m->where == AT_PARAMS || m->where == AT_RESULT)
			s->watch = m->base + 1u;
		if (m->where == AT_ID)
			keep_container(&m->id, '{');
		m->inner = IN_OTHER;
		break;
	case SCAN_ARRAY:
		if (m->where == AT_ID)
			keep_container(&m->id, '[');
		break;
	case SCAN_OBJECT_END:
	case SCAN_ARRAY_END:
		s->watch = m->base;
		m->where = AT_OTHER;
		break;
	case SCAN_KEY:
	case SCAN_STRING:
	case SCAN_SCALAR:
		break;
	}
}

static void
inner_event(struct message *m, struct scan *s, enum scan_event e)
{
	switch (e) {
	case SCAN_KEY_END:
		inner_key(m, s);
		break;
	case SCAN_STRING_END:
		inner_value(m, s, true);
		break;
	case SCAN_SCALAR_END:
		inner_value(m, s, false);
		break;
	case SCAN_OBJECT:
		if (m->where == AT_PARAMS && m->inner == IN_META)
			s->watch = m->base + 2u;
		m->deeper = META_OTHER;
		break;
	case SCAN_OBJECT_END:
	case SCAN_ARRAY_END:
		s->watch = m->base + 1u;
		m->inner = IN_OTHER;
		break;
	case SCAN_ARRAY:
	case SCAN_KEY:
	case SCAN_STRING:
	case SCAN_SCALAR:
		break;
	}
}

static void
meta_event(struct message *m, struct scan *s, enum scan_event e, uint64_t off)
{
	switch (e) {
	case SCAN_KEY_END:
		m->key_off = s->from;
		meta_key(m, s);
		break;
	case SCAN_STRING_END:
		meta_value(m, s, true, true, off + 1);
		break;
	case SCAN_SCALAR_END:
		meta_value(m, s, true, false, off);
		break;
	case SCAN_OBJECT_END:
	case SCAN_ARRAY_END:
		meta_value(m, s, false, false, off + 1);
		break;
	case SCAN_OBJECT:
	case SCAN_ARRAY:
	case SCAN_KEY:
	case SCAN_STRING:
	case SCAN_SCALAR:
		break;
	}
}

void
message_event(struct message *m, struct scan *s, enum scan_event e,
    uint64_t off)
{
	if (s->depth < m->base && scan_ends_value(e))
		outside_end(m, s, e);
	else if (s->depth < m->base)
		outside(m, s, e);
	else if (s->depth == m->base)
		envelope_event(m, s, e);
	else if (s->depth == m->base + 1u)
		inner_event(m, s, e);
	else
		meta_event(m, s, e, off);
}

enum message_kind
message_kind(const struct message *m)
{
	if (!m->is_object || !m->jsonrpc)
		return MESSAGE_NONE;
	if (m->has_method) {
		if (m->has_result || m->has_error)
			return MESSAGE_NONE;
		return m->id.present ? MESSAGE_REQUEST : MESSAGE_NOTIFICATION;
	}
	if (m->has_result == m->has_error)
		return MESSAGE_NONE;
	if (m->has_error)
		return MESSAGE_ERROR; /* its id may be missing: section 5 */
	return m->id.present ? MESSAGE_RESULT : MESSAGE_NONE;
}

bool
message_valid(const struct message *m)
{
	if (m->batch)
		return m->elements > 0 && !m->batch_broken;
	return message_kind(m) != MESSAGE_NONE;
}

bool
message_answers(const struct message *m)
{
	return m->is_object && !m->batch && !m->has_method && m->id.present;
}

struct id
message_id(const struct message_token *t)
{
	if (!t->present)
		return (struct id) { .type = ID_NONE };
	return id_of(t->raw, t->len, t->cut);
}

const char *
message_kind_name(enum message_kind k)
{
	switch (k) {
	case MESSAGE_NONE:
		return "none";
	case MESSAGE_REQUEST:
		return "request";
	case MESSAGE_NOTIFICATION:
		return "notification";
	case MESSAGE_RESULT:
		return "result";
	case MESSAGE_ERROR:
		return "error";
	}
	return "?";
}
