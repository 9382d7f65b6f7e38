/* SPDX-License-Identifier: MIT */
/*
 * The proxy's own lines as text. Each says what happened, with the figures
 * that are known and their units, and what to do next, since its reader may
 * be a model with no other clue. Must not know who gets the line, nor look
 * at any state: all it says comes from the caller's facts.
 */
#include "spillway/reply.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "spillway/jstring.h"

#define TAIL_MAX 2048
#define ESCAPE_MAX 6	 /* bytes that one byte of text may become */
#define SENTENCE_MAX 400 /* bytes of a message */

/* A buffer being filled; once something did not fit, nothing does. */
struct text {
	char *buf;
	size_t cap;
	size_t len;
	bool full;
};

static const struct reply_facts no_facts;

int
reply_error_code(enum reply_error e)
{
	switch (e) {
#define X(name, code, reason) case REPLY_##name: return code;
	SPILLWAY_ERRORS(X)
#undef X
	}
	return 0;
}

const char *
reply_error_reason(enum reply_error e)
{
	switch (e) {
#define X(name, code, reason) case REPLY_##name: return reason;
	SPILLWAY_ERRORS(X)
#undef X
	}
	return "unknown";
}

static void
put(struct text *t, const char *bytes, size_t n)
{
	if (t->full || n > t->cap - t->len) {
		t->full = true;
		return;
	}
	if (n > 0)
		memcpy(t->buf + t->len, bytes, n);
	t->len += n;
}

static void
word(struct text *t, const char *s)
{
	put(t, s, strlen(s));
}

/* For short pieces alone. */
__attribute__((format(printf, 2, 3))) static void
say(struct text *t, const char *fmt, ...)
{
	char piece[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(piece, sizeof(piece), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(piece))
		t->full = true;
	else
		put(t, piece, (size_t)n);
}

/* Plain text of at most TAIL_MAX bytes, escaped. */
static void
escaped(struct text *t, const char *s, size_t n)
{
	char out[TAIL_MAX * ESCAPE_MAX];

	if (n > TAIL_MAX)
		n = TAIL_MAX;
	put(t, out, jstring_escape(s, n, out, sizeof(out)));
}

static void
put_id(struct text *t, const struct id *id)
{
	if (id->cut)
		t->full = true;
	else if (id->type == ID_STRING || id->type == ID_NUMBER)
		put(t, id->raw, id->len);
	else
		word(t, "null");
}

/* A line of ours, up to its id. */
static struct text
line_begin(char *buf, size_t cap, const struct id *id)
{
	struct text t = { .buf = buf, .cap = cap };

	word(&t, "{\"jsonrpc\":\"2.0\",\"id\":");
	put_id(&t, id);
	return t;
}

static size_t
line_end(struct text *t, const char *close)
{
	word(t, close);
	word(t, "\n");
	return t->full ? 0 : t->len;
}

static bool
has_limit(const struct reply_facts *f)
{
	return f->limit != 0 && f->limit != SIZE_OFF;
}

/* " was 12 bytes, over spillway's limit of 10 bytes", as far as known. */
static void
say_size(struct text *t, const struct reply_facts *f)
{
	bool broken = has_limit(f) && (f->bytes == 0 || f->bytes > f->limit);

	word(t, " was ");
	if (f->bytes != 0)
		say(t, "%" PRIu64 " bytes, ", f->bytes);
	if (broken)
		say(t, "over spillway's limit of %" PRIu64 " bytes", f->limit);
	else
		word(t, "more than spillway can hold");
}

static void
say_depth(struct text *t, const struct reply_facts *f)
{
	word(t, " was nested deeper than spillway's limit");
	if (has_limit(f))
		say(t, " of %" PRIu64 " levels", f->limit);
}

/* Request or reply, or a batch of them: the caller's facts do not tell. */
static void
say_too_large(struct text *t, const struct reply_facts *f)
{
	word(t, "The message with this id");
	if (f->depth)
		say_depth(t, f);
	else
		say_size(t, f);
	word(t, ", so it was not passed on; ask for, or send, ");
	word(t, f->depth ? "flatter data." : "less at once.");
}

static void
say_malformed(struct text *t, const struct reply_facts *f)
{
	word(t, "The server's reply");
	if (f->bytes != 0)
		say(t, " of %" PRIu64 " bytes", f->bytes);
	word(t, " was not valid JSON-RPC and could not be repaired; the "
	    "beginning of it is in the log on stderr, and the server needs "
	    "fixing.");
}

/* " for 30 s": the largest unit that loses little. */
static void
say_time(struct text *t, const char *before, usec_t waited)
{
	uint64_t ms = waited / USEC_MSEC;

	if (waited == 0 || waited == USEC_NEVER)
		return;
	word(t, before);
	if (ms < 1000)
		say(t, "%" PRIu64 " ms", ms);
	else if (ms % 1000 < 100 || ms >= 100000)
		say(t, "%" PRIu64 " s", ms / 1000);
	else
		say(t, "%" PRIu64 ".%" PRIu64 " s", ms / 1000,
		    ms % 1000 / 100);
}

static void
say_stalled(struct text *t, const struct reply_facts *f)
{
	word(t, "The host has read nothing");
	say_time(t, " for ", f->waited);
	word(t, ", so spillway gave up this request; the host must keep "
	    "reading while it waits, then the request can be sent again.");
}

static void
say_timeout(struct text *t, const struct reply_facts *f)
{
	word(t, "The server has not replied");
	say_time(t, " within ", f->waited);
	word(t, ", so spillway gave up this request; ask for less, or raise "
	    "spillway's --request-timeout.");
}

static void
say_exited(struct text *t, const struct reply_facts *f)
{
	word(t, "The server");
	if (!f->has_exit)
		word(t, " is gone");
	else if (f->exit_code >= 0)
		say(t, " exited with status %d", f->exit_code);
	else
		say(t, " was ended by signal %d", f->exit_signal);
	word(t, " before it replied; restart it to go on");
	if (f->tail != NULL && f->tail_len > 0)
		word(t, " (data.stderr has its last words)");
	word(t, ".");
}

static void
say_overloaded(struct text *t, const struct reply_facts *f)
{
	word(t, "spillway's memory and spill space are full, so this request");
	if (f->bytes != 0)
		say(t, ", with a message of %" PRIu64 " bytes,", f->bytes);
	word(t, " could not be served; try again later, or ask for less at "
	    "once.");
}

static void
say_error(struct text *t, enum reply_error e, const struct reply_facts *f)
{
	switch (e) {
	case REPLY_FRAME_TOO_LARGE:
		say_too_large(t, f);
		break;
	case REPLY_MALFORMED:
		say_malformed(t, f);
		break;
	case REPLY_HOST_STALLED:
		say_stalled(t, f);
		break;
	case REPLY_REQUEST_TIMEOUT:
		say_timeout(t, f);
		break;
	case REPLY_SERVER_EXITED:
		say_exited(t, f);
		break;
	case REPLY_OVERLOADED:
		say_overloaded(t, f);
		break;
	}
}

/* Behind the next line end within n bytes, or n. */
static size_t
next_line(const char *s, size_t n)
{
	const char *lf = n > 0 ? memchr(s, '\n', n) : NULL;

	return lf != NULL ? (size_t)(lf - s) + 1 : n;
}

/*
 * The end of the tail: at most TAIL_MAX bytes of it and, escaped, room
 * bytes. Whole lines go first; a last line that is too long itself loses
 * its beginning, at a code point.
 */
static size_t
tail_start(const char *s, size_t n, size_t room)
{
	size_t start = n > TAIL_MAX ? n - TAIL_MAX : 0;
	size_t line;
	char out[TAIL_MAX * ESCAPE_MAX];

	if (start > 0 && s[start - 1] != '\n') {
		line = start + next_line(s + start, n - start);
		while (start < n && ((unsigned char)s[start] & 0xc0) == 0x80)
			start++;
		start = line < n ? line : start;
	}
	while (start < n && jstring_escape(s + start, n - start, out,
	    sizeof(out)) > room)
		start += next_line(s + start, n - start);
	return start;
}

/* The member comes last, so what it may take is what the end leaves. */
static void
put_tail(struct text *t, const struct reply_facts *f, const char *close)
{
	static const char key[] = ",\"stderr\":\"";
	size_t frame = sizeof(key) + strlen(close) + 1; /* quote and LF */
	size_t start;

	if (f->tail == NULL || f->tail_len == 0 || t->full ||
	    t->cap - t->len <= frame)
		return;
	start = tail_start(f->tail, f->tail_len, t->cap - t->len - frame);
	if (start == f->tail_len)
		return;
	word(t, key);
	escaped(t, f->tail + start, f->tail_len - start);
	word(t, "\"");
}

static void
put_facts(struct text *t, const struct reply_facts *f)
{
	if (f->bytes != 0)
		say(t, ",\"bytes\":%" PRIu64, f->bytes);
	if (has_limit(f))
		say(t, ",\"limit\":%" PRIu64, f->limit);
	if (has_limit(f) && f->depth)
		say(t, ",\"depth_limit\":%" PRIu64, f->limit);
	if (f->waited != 0 && f->waited != USEC_NEVER)
		say(t, ",\"waited_ms\":%" PRIu64, f->waited / USEC_MSEC);
	if (f->has_exit && f->exit_code >= 0)
		say(t, ",\"exit_code\":%d", f->exit_code);
	else if (f->has_exit)
		say(t, ",\"signal\":%d", f->exit_signal);
}

size_t
reply_make_error(char *buf, size_t cap, const struct id *id,
    enum reply_error e, const struct reply_facts *facts)
{
	const struct reply_facts *f = facts != NULL ? facts : &no_facts;
	char sentence[SENTENCE_MAX];
	struct text s = { .buf = sentence, .cap = sizeof(sentence) };
	struct text t = line_begin(buf, cap, id);

	say_error(&s, e, f);
	say(&t, ",\"error\":{\"code\":%d,\"message\":\"",
	    reply_error_code(e));
	escaped(&t, sentence, s.len);
	say(&t, "\",\"data\":{\"source\":\"spillway\",\"reason\":\"%s\"",
	    reply_error_reason(e));
	put_facts(&t, f);
	put_tail(&t, f, "}}}");
	return line_end(&t, "}}}");
}

size_t
reply_make_too_large_result(char *buf, size_t cap, const struct id *id,
    bool modern, const struct reply_facts *facts)
{
	const struct reply_facts *f = facts != NULL ? facts : &no_facts;
	struct text t = line_begin(buf, cap, id);

	word(&t, ",\"result\":{");
	if (modern)
		word(&t, "\"resultType\":\"complete\",");
	word(&t, "\"content\":[{\"type\":\"text\",\"text\":\""
	    "The result of this tool call");
	if (f->depth)
		say_depth(&t, f);
	else
		say_size(&t, f);
	word(&t, ", so none of it could be passed on. Narrow the request: "
	    "use a filter, a smaller range or pages.");
	return line_end(&t, "\"}],\"isError\":true}}");
}

size_t
reply_make_cancel(char *buf, size_t cap, const struct id *id,
    const char *reason, const char *meta, size_t meta_len)
{
	struct text t = { .buf = buf, .cap = cap };

	if (id->type != ID_STRING && id->type != ID_NUMBER)
		return 0;
	word(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":");
	put_id(&t, id);
	if (reason != NULL) {
		word(&t, ",\"reason\":\"");
		escaped(&t, reason, strlen(reason));
		word(&t, "\"");
	}
	if (meta != NULL && meta_len > 0) {
		word(&t, ",\"_meta\":{");
		put(&t, meta, meta_len);
		word(&t, "}");
	}
	return line_end(&t, "}}");
}
