/* SPDX-License-Identifier: MIT */
/*
 * What one JSON text says as a JSON-RPC message of MCP: told by the events of
 * one scan, in constant memory. It looks at one message at a time and knows
 * nothing of limits, lines or requests seen before.
 *
 * A text may be a batch (an array of messages, 2025-03-26): then each element
 * is told when it is complete.
 */
#ifndef SPILLWAY_MESSAGE_H
#define SPILLWAY_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spillway/id.h"
#include "spillway/pending.h"
#include "spillway/scan.h"

enum message_kind {
	MESSAGE_NONE, /* no message */
	MESSAGE_REQUEST,
	MESSAGE_NOTIFICATION,
	MESSAGE_RESULT,
	MESSAGE_ERROR,
};

/* Notifications that rules of contract sections 4 and 5 speak of. */
enum notice_class {
	NOTICE_OTHER,
	NOTICE_CANCELLED,
	NOTICE_PROGRESS,
	NOTICE_LOG,	/* notifications/message */
	NOTICE_CHANGED, /* notifications/.../list_changed */
	NOTICE_UPDATED, /* notifications/resources/updated */
};

/* A token's own spelling, kept beyond the scan. */
struct message_token {
	bool present;
	bool cut;
	bool string; /* raw then has its quotes */
	uint32_t len;
	char raw[ID_RAW_MAX + 2];
};

/* A part of the text, as offsets of the scan. */
struct message_range {
	uint64_t from;
	uint64_t to;
};

#define MESSAGE_META_MAX 8 /* protocol members of _meta that are kept */
#define MESSAGE_METHOD_MAX 64

/* Facts about one message. The first part is for single texts and elements
 * alike; it is cleared when an element begins. */
struct message {
	/* the envelope (RFC: JSON-RPC 2.0 section 4 and 5) */
	bool jsonrpc;	  /* "jsonrpc":"2.0" stands there */
	bool has_method;  /* with a string value */
	bool has_result;
	bool has_error;
	bool is_object;
	char method[MESSAGE_METHOD_MAX]; /* clipped, decoded, for the log */
	enum method_class method_class;
	enum notice_class notice_class;
	uint64_t method_hash; /* of NOTICE_CHANGED and NOTICE_UPDATED */
	struct message_token id;

	/* below params and result */
	struct message_token token;   /* progress token */
	struct message_token request; /* params.requestId */
	uint64_t tool;		      /* hash of params.name */
	uint64_t uri;		      /* hash of params.uri */
	uint64_t subscription;	      /* hash of _meta's subscriptionId */
	bool task;		      /* params.task stands there */
	bool modern;		      /* a protocol version in params._meta */
	bool input_required;	      /* result.resultType says so */
	unsigned meta_count;
	struct message_range meta[MESSAGE_META_MAX];

	/* the whole text */
	bool batch;
	bool batch_broken;  /* an element is no message */
	uint32_t elements;
	bool promising;	/* an envelope key stood at its depth */

	/* message.c's own */
	uint8_t base;  /* depth of envelope keys: 1, or 2 in a batch */
	uint8_t where; /* which envelope member is open */
	uint8_t inner; /* which member of params or result is open */
	uint8_t deeper; /* which member of _meta is open */
	uint64_t key_off;
	uint64_t seed;
	void (*element)(void *arg, struct message *);
	void *arg;
};

/*
 * Prepare for a new text; seed keys the hashes. element is called for each
 * message of a batch when it is complete, with its facts in m (may be NULL).
 */
void message_begin(struct message *m, uint64_t seed,
    void (*element)(void *arg, struct message *), void *arg);

/*
 * How nearly every message begins, comma included; a message that does may be
 * told so in place of the events of these bytes, see scan_begun().
 */
#define MESSAGE_USUAL "{\"jsonrpc\":\"2.0\","
void message_begun(struct message *m, struct scan *s);

/* To be called for each event of the scan of the text. */
void message_event(struct message *m, struct scan *s, enum scan_event,
    uint64_t off);

/* What it is; for a batch: of the element just told. Valid at its end. */
enum message_kind message_kind(const struct message *);

/* May the whole text be forwarded as a message? Valid when it is complete. */
bool message_valid(const struct message *);

/*
 * Is it meant as a response: has it, so far, an id, no method, and a result
 * or an error (or nothing else)? Also of broken texts.
 */
bool message_answers(const struct message *);

/* The kept token as an id (type ID_NONE if there was none); borrowed. */
struct id message_id(const struct message_token *);

/* Keyed hash of the string that ends, decoded; never 0. */
uint64_t message_hash_token(uint64_t seed, const struct scan *);

const char *message_kind_name(enum message_kind);

#endif
