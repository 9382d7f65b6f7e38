/* SPDX-License-Identifier: MIT */
/*
 * Streaming scanner for one JSON text (RFC 8259, UTF-8): bytes in, events
 * out; constant memory and stack whatever the size or depth of the text,
 * resumable at every byte. It knows JSON, and of framing just one thing: an
 * LF cannot stand inside a line, so it stops there. It knows no limits but
 * the depth, and nothing of messages.
 *
 * Offsets are counted from the first byte fed after scan_init().
 */
#ifndef SPILLWAY_SCAN_H
#define SPILLWAY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scan_event {
	SCAN_OBJECT,	 /* '{' */
	SCAN_OBJECT_END, /* '}' */
	SCAN_ARRAY,	 /* '[' */
	SCAN_ARRAY_END,	 /* ']' */
	SCAN_KEY,	 /* opening quote of a member name */
	SCAN_KEY_END,	 /* its closing quote */
	SCAN_STRING,	 /* opening quote of a string value */
	SCAN_STRING_END, /* its closing quote */
	SCAN_SCALAR,	 /* first byte of a number, true, false or null */
	SCAN_SCALAR_END, /* the byte after its last */
};

enum scan_status {
	SCAN_MORE,  /* all bytes consumed, the text is not complete */
	SCAN_LF,    /* stopped at an LF inside the text; it is not consumed */
	SCAN_DONE,  /* the text is complete; consumed ends just behind it */
	SCAN_FAULT, /* stopped at the first byte the grammar forbids */
};

/* Raw bytes of the last key, string or scalar that are kept for *_END. */
#define SCAN_TOKEN_MAX 1024
/* Longest tail of fed input that a later edit may still cover. */
#define SCAN_HELD_MAX 9

struct scan;
struct scan_body;

struct scan_sink {
	/*
	 * A token begins or ends. off is the offset of the byte named in
	 * enum scan_event. s->depth is the number of containers around the
	 * token (0 for the text itself), the same for begin and end. For
	 * KEY_END, STRING_END and SCALAR_END s->token holds the raw bytes
	 * (strings: without quotes, escapes as written), clipped to
	 * SCAN_TOKEN_MAX, which s->token_cut tells; valid during the call.
	 * Only tokens with s->depth <= s->watch are told; the sink may
	 * change s->watch at any time, but a string or scalar whose begin
	 * was told has its end told, and no other. Must not call scan_*().
	 * At those ends s->from is the offset of the begin.
	 */
	void (*event)(void *arg, struct scan *s, enum scan_event, uint64_t off);
	/*
	 * The len bytes at off are to be replaced by n bytes of with: a
	 * maximal ill-formed UTF-8 part by U+FFFD (Unicode 3.9, table 3-8),
	 * NaN, Infinity or -Infinity as a value by null. Edits come in
	 * order, may cover up to SCAN_HELD_MAX bytes of earlier calls, and
	 * come before any event with a higher offset. NULL: such bytes are
	 * faults (--strict).
	 */
	void (*edit)(void *arg, uint64_t off, unsigned len, const char *with,
	    unsigned n);
	void *arg;
	bool ends_only; /* begins of keys, strings and scalars are not told */
};

struct scan {
	/* for the sink */
	uint32_t depth;
	uint32_t watch;
	const char *token;
	uint32_t token_len;
	bool token_cut;
	uint64_t from;
	/* for the caller */
	bool too_deep; /* max_depth was exceeded, see scan_feed() */
	uint64_t off;  /* bytes consumed so far */
	/* the scanner's own */
	bool tolerant;
	bool lf_is_space;
	bool in_object; /* kind of the innermost container */
	bool is_key;	/* the string being read is a member name */
	bool telling;	/* the token being read was told, so is its end */
	uint8_t state;	/* enum state, see scan_impl.h */
	uint8_t expect; /* enum expect, after scan_tolerate() */
	uint8_t number; /* enum number */
	uint8_t at;	/* bytes of literal, hex digits or UTF-8 part seen */
	uint8_t need;	/* UTF-8: continuation bytes to come, the next of */
	uint8_t low;	/* them from here */
	uint8_t high;	/* to here */
	enum scan_status status;
	struct scan_sink sink;
	uint8_t *stack;
	uint32_t max_depth;
	uint32_t kept;	     /* bytes of token in keep */
	const char *literal; /* true, false, ..., the one being read */
	const char *base;    /* of the bytes being fed */
	const char *mark;    /* where among them the token goes on */
	const struct scan_body *body;
	char keep[SCAN_TOKEN_MAX]; /* a token that spans calls */
};

/* Bytes of a stack for scan_init(). */
size_t scan_stack_size(uint32_t max_depth);

/*
 * Prepare s for a new text. stack has scan_stack_size() bytes; it is borrowed
 * until the next scan_init(). Nothing is allocated.
 */
void scan_init(struct scan *s, const struct scan_sink *sink, uint8_t *stack,
    uint32_t max_depth);

/* Another text for the same sink, stack and depth; all of it is watched. */
void scan_restart(struct scan *s);

/*
 * As if the first n bytes of the text had been fed, and they had been an
 * object's bracket, whole members and a comma. The caller has seen to it that
 * they are, and tells its sink's owner itself. max_depth is at least 1.
 */
void scan_begun(struct scan *s, uint64_t n);

/* Let LF count as white space outside strings (Content-Length bodies). */
void scan_allow_lf(struct scan *s);

/*
 * Consume up to n bytes; *used tells how many. Top-level white space before
 * the text is consumed. Numbers at top level are complete at the first byte
 * that does not belong to them.
 *
 * Beyond max_depth, s->too_deep is set, and brackets are only counted (their
 * kinds are no longer checked, nothing is told) until the depth is back
 * within the limit; then strict scanning goes on.
 */
enum scan_status scan_feed(struct scan *s, const char *p, size_t n,
    size_t *used);

/*
 * After SCAN_FAULT: go on, accepting any byte but LF. Strings and brackets
 * are still followed as well as can be, so that the top-level members behind
 * the fault are found: a string after '{' or ',' in an object is told as a
 * key. The text is done when its first bracket is closed. No edits are told.
 */
void scan_tolerate(struct scan *s);

/*
 * How many of the bytes fed last (at most SCAN_HELD_MAX) may be covered by an
 * edit yet to come: the start of a UTF-8 sequence, of NaN or -Infinity.
 * A caller that copies must hold them back.
 */
unsigned scan_held(const struct scan *s);

/*
 * Name of the kernel for string bodies in use (scalar, sse2, avx2, neon,
 * swar), and a way for tests to pick one: false if this machine lacks it.
 */
const char *scan_kernel(void);
bool scan_set_kernel(const char *name);

/* Does the event begin, or end, a value, that is, not a key? */
bool scan_begins_value(enum scan_event);
bool scan_ends_value(enum scan_event);

const char *scan_event_name(enum scan_event);

#endif
