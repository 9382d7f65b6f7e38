/* SPDX-License-Identifier: MIT */
/*
 * What the files of the cut share: cut.c takes the reply apart as it comes,
 * cut_struct.c keeps what it may of structuredContent, cut_text.c knows
 * string bodies, cut_write.c decides what is kept and writes the new reply.
 */
#ifndef CUT_IMPL_H
#define CUT_IMPL_H

#include "spillway/cut.h"
#include "spillway/scan.h"

#define LABEL_MAX 100 /* of a type or media type that a notice names */

/* Bytes that are kept, charged to the budget. */
struct keep {
	char *p;
	size_t n;
	size_t cap;
};

/* Adds n bytes unless there are more than limit then, or no room is left. */
bool keep_add(struct budget *, struct keep *, const char *, size_t n,
    uint64_t limit);
void keep_free(struct budget *, struct keep *);

/* Decoded length of a string body that comes in pieces. */
struct measure {
	uint64_t bytes;
	uint8_t state;	/* 0 plain, 1 behind '\', 2 to 5 hex digits to come */
	bool high;	/* a high surrogate may meet its other half */
	uint16_t unit;	/* hex digits so far */
};

void measure_feed(struct measure *, const char *, size_t);

/* Where the string that begins at p[at] ends, behind its quote, or n. */
size_t string_end(const char *, size_t at, size_t n);

/*
 * How many of the n bytes of a string body can be kept if it may have at most
 * room bytes decoded and raw_room as they are: up to a code point, never
 * within an escape or a surrogate pair, and to a line end if one is near.
 * Their decoded length goes to *decoded_r. n may end anywhere.
 */
size_t text_cut(const char *, size_t n, uint64_t room, uint64_t raw_room,
    uint64_t *decoded_r);

/* structuredContent, as much of it as may be needed. */
struct shape {
	struct budget *budget;
	struct keep keep;
	uint64_t limit;	 /* of keep */
	uint64_t bytes;	 /* of the whole value */
	size_t width;	 /* what one array may have; shrinks as keep fills */
	uint64_t fixed;	 /* kept bytes outside of arrays */
	size_t array_at; /* where the open array begins in keep, or 0 */
	size_t last_end; /* and its last whole element ends */
	uint32_t array_depth; /* depth of its bracket; 0 = in none */
	bool skipping;	 /* the rest of the open array is left out */
	bool shortened;	 /* something was left out */
	bool failed;	 /* more than can be kept stands outside of arrays */
	bool object;	 /* its first byte is '{' */
	bool told;	 /* it has a member "truncated" of its own */
};

void shape_begin(struct shape *, struct budget *, uint64_t limit, bool object);
void shape_bytes(struct shape *, const char *, size_t);
/* An event within the value: called with the bytes before it given, */
void shape_before(struct shape *, const struct scan *, enum scan_event);
/* and again with its own bracket or quote given, too. What the scan is to
 * watch next goes to s->watch. */
void shape_after(struct shape *, struct scan *, enum scan_event);
/* Shorten arrays until the value with "truncated":true has at most limit
 * bytes. False if that cannot be. */
bool shape_fit(struct shape *, uint64_t limit);

#define TRUNCATED ",\"truncated\":true"

enum block_kind {
	BLOCK_TEXT,	/* a text block, or a resource's text */
	BLOCK_DATA,	/* image, audio, a resource's blob */
	BLOCK_LINK,
	BLOCK_OTHER,
};

enum block_plan { PLAN_LEAVE, PLAN_WHOLE, PLAN_PART, PLAN_LABEL };

struct block {
	enum block_kind kind;
	bool whole;	   /* all its bytes are kept */
	uint64_t useful;   /* of the whole block */
	size_t at;	   /* its kept bytes: where in blocks, */
	size_t len;	   /* how many */
	size_t body_at;	   /* its string that can be cut: likewise */
	size_t body_len;
	size_t label_at;   /* what a notice in its place names: likewise */
	size_t label_len;
	enum block_plan plan;
	size_t part;	   /* PLAN_PART: how much of the body */
};

enum cut_place {
	IN_ENVELOPE,
	IN_RESULT,
	IN_CONTENT,
	IN_BLOCK,
	IN_RESOURCE,
	IN_STRUCT,
};

enum cut_name {
	NAME_OTHER, NAME_RESULT, NAME_CONTENT, NAME_STRUCTURED, NAME_META,
	NAME_IS_ERROR, NAME_RESULT_TYPE, NAME_TYPE, NAME_TEXT, NAME_DATA,
	NAME_MIME, NAME_RESOURCE,
};

/* A member that is written anew: where it stood among the others. */
struct slot {
	enum cut_name name;
	size_t at;
};

#define SLOTS 3

/* The block that is arriving. */
struct arriving {
	struct block b;
	uint64_t from;	 /* its offset in the scan */
	struct measure text;
	struct measure data;
	bool data_dropped;
	enum block_kind kind; /* as its type says */
	bool resource;
	char mime[LABEL_MAX];
	size_t mime_len;
	char type[LABEL_MAX];
	size_t type_len;
};

struct plan {
	bool error;	 /* structuredContent goes, isError comes */
	char notice[640];
	size_t notice_len;
	char record[256]; /* "spillway/cut":{...} */
	size_t record_len;
};

struct cut {
	struct budget *budget;
	struct cut_bounds bounds;
	struct scan scan;
	uint8_t *stack;
	bool done;   /* the text is complete */
	bool broken; /* it is no JSON text, or too deep */
	bool odd;    /* its members are not what they should be */
	bool no_room; /* members could not be kept */
	bool input_required;

	/* the piece at hand */
	const char *mark; /* first byte not yet taken */
	struct keep *to;  /* where bytes go, or NULL */

	/* the string of a block that is arriving */
	struct measure *counting; /* or NULL: there is none */
	size_t body_from;
	uint64_t body_limit;
	bool body_drops;  /* beyond its limit nothing of it is kept */
	bool skipping;	  /* the rest of it is not kept */

	enum cut_place place;
	enum cut_name name; /* of the member that is arriving */
	struct keep envelope;
	size_t result_at;   /* where in it the result stands */
	bool has_result;
	struct keep members; /* of the result */
	size_t member_at;    /* where the arriving one begins */
	struct slot slots[SLOTS];
	unsigned n_slots;
	size_t is_error_at; /* its value in members */
	size_t is_error_len; /* 0: there is none */
	struct keep meta;
	struct keep blocks;
	struct keep records; /* struct block */
	struct arriving now;
	uint64_t cumul;	 /* useful bytes that are kept */
	bool full;	 /* all further text is left out */
	bool closed;	 /* all further blocks are */
	struct shape shape;
	bool has_struct;
	struct cut_sums sums;
	struct plan plan;
};

/* cut_write.c: what is to be kept; false if that is impossible */
bool cut_plan(struct cut *, const struct cut_request *);

#endif
