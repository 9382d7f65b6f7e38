/* SPDX-License-Identifier: MIT */
/*
 * Lines the proxy makes itself: error replies, isError results and
 * cancellations (contract sections 3, 5 and 6). Pure text into a caller's
 * buffer; the line ends in LF; ids are the requester's own tokens.
 */
#ifndef SPILLWAY_REPLY_H
#define SPILLWAY_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spillway/id.h"
#include "spillway/limits.h"

/* X(name, code, reason) */
#define SPILLWAY_ERRORS(X) \
	X(FRAME_TOO_LARGE, -31010, "frame_too_large") \
	X(MALFORMED, -31011, "malformed") \
	X(HOST_STALLED, -31012, "host_stalled") \
	X(REQUEST_TIMEOUT, -31013, "request_timeout") \
	X(SERVER_EXITED, -31014, "server_exited") \
	X(OVERLOADED, -31015, "overloaded")

enum reply_error {
#define X(name, code, reason) REPLY_##name,
	SPILLWAY_ERRORS(X)
#undef X
};

int reply_error_code(enum reply_error);
const char *reply_error_reason(enum reply_error);

/* What stands in the error's data beside source and reason. Zero: left out,
 * unless has_exit says otherwise. */
struct reply_facts {
	uint64_t bytes;	     /* size of the frame concerned */
	uint64_t limit;	     /* the limit it broke, in bytes or containers */
	bool depth;	     /* limit is a depth, not bytes */
	usec_t waited;	     /* how long a stall or request lasted */
	bool has_exit;	     /* the next three are known */
	int exit_code;	     /* -1: ended by exit_signal */
	int exit_signal;
	const char *tail;    /* last stderr lines, plain text, may be NULL */
	size_t tail_len;
};

/* Longest line reply_* make, with an id of ID_RAW_MAX and a 2 KiB tail. */
#define REPLY_MAX 16384

/*
 * {"jsonrpc":"2.0","id":ID,"error":{"code":..,"message":"..","data":{..}}}.
 * message is one sentence made from the facts (NULL: none). Returns the
 * length with LF; 0 if cap is too small, or for an id that is cut. An id
 * that is neither string nor number is written as null.
 */
size_t reply_make_error(char *buf, size_t cap, const struct id *,
    enum reply_error, const struct reply_facts *);

/*
 * A tools/call result with isError that says in plain words that the result
 * was bytes long and the limit is limit, and to narrow the request; modern
 * results bear "resultType":"complete".
 */
size_t reply_make_too_large_result(char *buf, size_t cap, const struct id *,
    bool modern, const struct reply_facts *);

/*
 * {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":
 * ID,"reason":"..."}}; with meta (raw members, see pending.h), params also
 * get "_meta":{...}. 0 if it does not fit (meta is bounded by its maker).
 */
size_t reply_make_cancel(char *buf, size_t cap, const struct id *,
    const char *reason, const char *meta, size_t meta_len);

#endif
