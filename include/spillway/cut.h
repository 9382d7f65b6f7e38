/* SPDX-License-Identifier: MIT */
/*
 * The honest cut of a tools/call result (contract section 3): the bytes of
 * one reply go in, in pieces of any size; what is kept of it, and what must
 * be known of the rest, stays, in memory proportional to what may be kept;
 * then one smaller reply comes out.
 *
 *   feed --scan--> envelope, result's members   kept as they are
 *                  content: blocks              kept in order while they fit
 *                  structuredContent            whole, or arrays shortened
 *   judge          is it over the limit, and what can be kept?
 *   write          the reply, if there was something to cut
 *
 * It must not know requests, queues or frames. Useful bytes are those of
 * contract section 3; blocks of unknown type count with all their bytes.
 */
#ifndef SPILLWAY_CUT_H
#define SPILLWAY_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spillway/budget.h"
#include "spillway/tools.h"

struct cut;

struct cut_bounds {
	uint64_t retain;    /* no limit given to judge will be above this */
	uint64_t skeleton;  /* bytes of members and blocks beside the useful */
	uint32_t max_depth; /* a reply that is nested deeper is not cut */
	bool measure;	    /* keep nothing: it will only be counted */
};

enum cut_verdict {
	CUT_FITS,	/* nothing is over the limit: leave it as it is */
	CUT_POSSIBLE,	/* cut_write() will give the smaller reply */
	CUT_IMPOSSIBLE, /* over it, and nothing useful would be left */
	CUT_FORBIDDEN,	/* over it, and an input_required result */
};

struct cut_request {
	uint64_t limit; /* useful bytes, of content and structuredContent */
	uint64_t frame; /* bytes of the line that may be written, with LF */
	bool over;	/* the frame limit fired: it does not fit as it is */
	enum tool_schema schema;
};

/* What came and what is kept; for metrics and the log. */
struct cut_sums {
	uint64_t bytes; /* useful bytes of the content */
	uint64_t kept;
	uint64_t blocks;
	uint64_t blocks_kept; /* whole ones */
	uint64_t structured;	  /* bytes of structuredContent, or 0 */
	uint64_t structured_kept;
};

/* NULL when out of memory. The budget must outlive it. */
struct cut *cut_new(struct budget *, const struct cut_bounds *);
void cut_free(struct cut **);

/*
 * Bytes of the reply in order, white space around it included; what stands
 * behind its last bracket is passed over. Ill-formed bytes are allowed if
 * they were to be repaired by the caller's own scan: then it feeds the
 * repaired bytes.
 */
void cut_feed(struct cut *, const char *, size_t);

/* To be asked once, when all is fed. */
enum cut_verdict cut_judge(struct cut *, const struct cut_request *);

/*
 * After CUT_POSSIBLE: the line with its LF, in pieces. 0, or -1 as soon as
 * put gives -1.
 */
int cut_write(struct cut *, int (*put)(void *arg, const char *, size_t),
    void *arg);

const struct cut_sums *cut_sums(const struct cut *);

const char *cut_verdict_name(enum cut_verdict);

#endif
