/* SPDX-License-Identifier: MIT */
/*
 * Every bound the session works under, in one struct, and the unit of time.
 * Filled by config.c from options and environment, read by the core.
 */
#ifndef SPILLWAY_LIMITS_H
#define SPILLWAY_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* Microseconds of a monotonic clock; durations and instants alike. */
typedef uint64_t usec_t;

#define USEC_MSEC ((usec_t)1000)
#define USEC_SEC ((usec_t)1000000)
#define USEC_NEVER UINT64_MAX /* a deadline that does not come; "off" */
#define SIZE_OFF UINT64_MAX   /* a size limit that is "off" */

struct limits {
	uint64_t max_frame;	/* bytes of a line with its LF, or SIZE_OFF */
	uint64_t max_content;	/* useful bytes of a result, or SIZE_OFF */
	uint32_t max_depth;	/* containers open at once */
	uint64_t memory;	/* heap bytes for frames, both directions */
	uint64_t spill;		/* bytes on disk; 0 = off */
	usec_t stall_timeout;	/* host stall; USEC_NEVER = off */
	usec_t request_timeout; /* per request; USEC_NEVER = off */
	usec_t cancel_grace;	/* USEC_NEVER = off */
	usec_t stop_grace;	/* from EOF to SIGTERM */
	bool cancel;		/* inject notifications/cancelled */
	bool strict;		/* no repairs */
	bool observe;		/* change nothing, only measure */
};

#endif
