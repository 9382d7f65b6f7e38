/* SPDX-License-Identifier: MIT */
/*
 * A queue of frames towards one peer: whole frames wait here until the peer
 * takes them; nothing leaves before it is sealed. Order lives in the list of
 * frames; where a frame's bytes live (heap, disk, or still in the caller's
 * read buffer) is each piece's own affair and never changes the order.
 *
 * States of a frame:   OPEN -> SEALED -> SENDING -> gone
 *                        \-> aborted      (dropped or replaced only SEALED)
 *
 * Invariants (queue_check() verifies them):
 *  1 only the last frame may be OPEN, only the first SENDING;
 *  2 a SENDING frame is never dropped, replaced or overtaken;
 *  3 the budget equals the sum of what the pieces and frames occupy;
 *  4 seal and abort cannot fail;
 *  5 replacing needs no more than it frees plus the reserve;
 *  6 borrowed frames stand together, before an OPEN frame and after all
 *    others, and there are none after queue_settle().
 *
 * Frames of FRAME_OTHER that lie side by side on disk are joined into one
 * with a count: nobody will look for one of them, and a description each would
 * fill memory long before the disk is full.
 *
 * "Full", worked through: 32 MiB of memory, 256 MiB of spill. 40 MiB of
 * replies arrive unread: the data share of memory fills, the rest goes to
 * disk blocks as it comes; nothing moves. The host reads 1 MiB: memory is
 * free again, so the next reply starts in memory while older ones are still
 * on disk. Disk full: queue_append() says no; a dropped 5 MiB reply gives its
 * blocks back at once although it stood in the middle.
 */
#ifndef SPILLWAY_QUEUE_H
#define SPILLWAY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "spillway/budget.h"
#include "spillway/limits.h"

/* What shed.c may do with a waiting frame; given when it is sealed. */
enum frame_class {
	FRAME_OTHER,	/* never shed */
	FRAME_REPLY,	/* a reply; ref: the pending entry it answers */
	FRAME_REQUEST,	/* a request; ref: its pending entry */
	FRAME_PROGRESS, /* key: its token */
	FRAME_CHANGED,	/* list_changed or resources/updated; key: of what */
	FRAME_LOG,	/* notifications/message */
	FRAME_MADE,	/* the proxy's own error reply; ref as FRAME_REPLY */
};

/* Facts about a frame that outlive its bytes; copied on seal. */
struct frame_tag {
	enum frame_class class;
	uint32_t ref; /* pending entry (pending.h), or PENDING_NONE */
	uint64_t key; /* hash of what makes one notice supersede another */
};

struct queue;
struct frame; /* opaque; valid until sent, dropped or replaced */

struct queue *queue_new(struct budget *);
void queue_free(struct queue **);

/* Building the last frame. append returns 0, or -1 if there is no room (the
 * frame stays open as it was; the caller aborts it or makes room). */
void queue_open(struct queue *);
int queue_append(struct queue *, const void *bytes, size_t n);
void queue_seal(struct queue *, const struct frame_tag *, usec_t now);
void queue_abort(struct queue *);
bool queue_is_open(const struct queue *);
uint64_t queue_open_bytes(const struct queue *);

/*
 * Read back n bytes of the open frame from off; 0, or -1 when the store
 * fails.
 */
int queue_open_read(struct queue *, uint64_t off, void *to, size_t n);

/*
 * A whole frame that still lies in the caller's buffer: nothing is copied
 * unless it is still unsent at queue_settle(), which the caller must call
 * before the buffer changes. -1 if there would be no room to settle it. If
 * anything else is appended or put, the queue settles by itself first.
 */
int queue_borrow(struct queue *, const void *bytes, size_t n,
    const struct frame_tag *, usec_t now);
void queue_settle(struct queue *);

/*
 * A whole line of the proxy's own, out of the reserve if need be; 0, or -1
 * if even that is used up. ahead: behind the frame being sent, before all
 * others; else at the end (before an OPEN frame, which is not whole yet).
 */
int queue_put(struct queue *, const void *bytes, size_t n,
    const struct frame_tag *, usec_t now, bool ahead);

/*
 * What to write next: up to max pieces of whole frames in order, returns how
 * many. Valid until the next call on this queue. A store that cannot be read
 * ends the pieces before the loss and is told by queue_broken().
 */
int queue_peek(struct queue *, struct iovec *iov, int max);

/*
 * n of those bytes were written. done is called for each frame finished; of
 * frames that were joined (below) the first call tells the bytes of all.
 */
void queue_sent(struct queue *, size_t n, usec_t now,
    void (*done)(void *arg, const struct frame_tag *, uint64_t bytes,
	usec_t waited),
    void *arg);
bool queue_broken(const struct queue *);

/* Waiting frames, oldest first; those not begun to leave only. */
struct frame *queue_first_unsent(const struct queue *);
struct frame *queue_next(const struct frame *);
const struct frame_tag *frame_tag(const struct frame *);
uint64_t frame_bytes(const struct frame *);
usec_t frame_born(const struct frame *);
void queue_drop(struct queue *, struct frame *);
/* Put bytes in its place, with a new tag; 0, or -1 (nothing changed). */
int queue_replace(struct queue *, struct frame *, const void *bytes,
    size_t n, const struct frame_tag *);

uint64_t queue_heap(const struct queue *);   /* held for frames, open too */
uint64_t queue_bytes(const struct queue *);  /* sealed, unsent */
uint64_t queue_frames(const struct queue *); /* sealed, unsent */
bool queue_empty(const struct queue *);	     /* no sealed bytes left */
bool queue_at_border(const struct queue *);  /* no frame half sent */

/* Verify the invariants: NULL, or the words for the first that is broken. */
const char *queue_check(const struct queue *);

#endif
