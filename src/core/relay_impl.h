/* SPDX-License-Identifier: MIT */
/*
 * The inside of the engine, shared by the files that make up its two paths.
 * Which file does what: see the picture in relay.c.
 */
#ifndef RELAY_IMPL_H
#define RELAY_IMPL_H

#include "spillway/message.h"
#include "spillway/pending.h"
#include "spillway/queue.h"
#include "spillway/relay.h"
#include "spillway/reply.h"
#include "spillway/scan.h"

#define SAMPLE_MAX 512	/* bytes of a diverted line that are kept */
#define TAIL_MAX 64	/* white space behind a message kept apart */
#define CLOSED_MAX 4096 /* closed progress tokens that are remembered */
#define SEEK_BACK 65536 /* a broken text up to this size is searched again */

enum line_state {
	LINE_START,  /* nothing but white space so far */
	LINE_TEXT,   /* a JSON text that may be a message */
	LINE_TAIL,   /* that text is complete; what comes behind it? */
	LINE_BROKEN, /* it was to be a message but is malformed: learn its id */
	LINE_SEEK,   /* no JSON so far: is there a message behind it? */
	LINE_JUNK,   /* no message will come on this line */
	LINE_HEADER, /* between `Content-Length:` and the empty line */
};

/* Repairs, one bit each (contract section 2). */
enum repair {
	REPAIR_CR = 1,
	REPAIR_BOM = 2,
	REPAIR_GLUED = 4,
	REPAIR_SPLIT = 8,
	REPAIR_UTF8 = 16,
	REPAIR_NAN = 32,
	REPAIR_FRAMING = 64,
	REPAIR_NO_LF = 128,
};

/* Why a frame is not kept while it still arrives. */
enum over { OVER_NOT, OVER_BYTES, OVER_DEPTH, OVER_ROOM };

/* Requests and replies met inside a batch. */
struct batch {
	uint32_t *refs; /* pending entries; charged to the books */
	uint32_t count;
	uint32_t cap;
	uint32_t asked;	  /* the first so many of refs are requests */
	uint32_t suppress; /* elements that alone would be suppressed */
	uint32_t others;   /* elements that are not */
};

struct cut;

/* server -> host: the line that is arriving. */
struct to_host {
	struct relay *r;
	struct scan scan;
	uint8_t *stack;
	struct message msg;
	struct batch replies;
	struct batch requests;
	enum line_state state;
	enum over over;
	bool valid;	/* LINE_TAIL: the text is a message */
	bool behind;	/* other text of the same line was forwarded */
	bool split;	/* other text follows on the line */
	bool learning;	/* LINE_BROKEN: the scan goes on */
	bool sought_back; /* a broken text of this line was searched again */
	bool stored;	/* its beginning lies in the open frame */
	bool observe;
	unsigned repairs; /* of this frame */
	unsigned bom;	  /* bytes of a byte order mark seen */
	uint64_t bytes;	  /* raw bytes of this frame so far, without LF */

	/* the chunk at hand */
	const char *p;	  /* its first byte */
	const char *end;
	const char *at;	  /* next byte to look at */
	const char *mark; /* first byte of the frame not yet stored */
	const char *text_end; /* LINE_TAIL: behind the text, if in the chunk */
	int64_t p_off;	  /* offset in the scan of p, may be negative */
	bool lent;	  /* the chunk does not last: copy from it */

	char held[SCAN_HELD_MAX]; /* fed, not stored: an edit may come */
	unsigned held_len;
	char tail[TAIL_MAX]; /* white space behind the text, not stored */
	unsigned tail_len;

	char sample[SAMPLE_MAX]; /* diverted text of this line */
	unsigned sample_len;
	unsigned sample_frame; /* where in it the present frame begins */
	uint64_t sample_total;

	uint64_t body_left; /* Content-Length: bytes of the body to come */
	uint64_t length;    /* what the header said */
	bool has_length;
	bool in_body;

	struct cut *cut;
	uint32_t cut_ref;
	bool cut_failed;
	usec_t cancelled_since; /* its cancelled reply keeps coming, or NEVER */
};

/* host -> server: the frame that is arriving. */
struct to_server {
	struct relay *r;
	struct scan scan;
	uint8_t *stack;
	struct message msg;
	struct batch replies;  /* elements that answer the server */
	struct batch requests; /* elements that ask it */
	enum over over;
	bool begun;    /* the scan of its text has begun */
	bool done;     /* the text is complete */
	bool spoilt;   /* it is no JSON text, or more follows it */
	bool learning; /* it is broken, but the scan goes on */
	bool stored;   /* its beginning lies in the open frame */
	uint64_t bytes;	   /* of the frame so far */
	uint64_t text_at;  /* of those, the ones before its text */

	/* the chunk at hand */
	const char *at;
	const char *end;
	const char *mark; /* first byte of the frame not yet stored */

	bool framed; /* the host frames with Content-Length, not lines */
	bool in_header;
	bool in_body;
	bool has_length;
	uint64_t body_left;
	char header[128]; /* the header line at hand */
	unsigned header_len;
};

struct closed_tokens {
	uint64_t *ring; /* hashes, oldest overwritten first */
	uint32_t cap;
	uint32_t at;
	uint32_t *index; /* hash -> place in the ring + 1 */
};

enum end_cause {
	END_NOT,
	END_HANDSHAKE, /* initialize or discover reply over the limit */
	END_OVERLOAD,
	END_GRACE,     /* a cancelled reply kept coming */
};

struct tools;

/* Whose fault a freeze is; see stall.c. */
struct stall {
	usec_t interval;   /* between probes */
	usec_t next;	   /* when the next one is due, or USEC_NEVER */
	usec_t since;	   /* last progress of the host while it has work */
	unsigned probes;   /* in a row without progress */
	bool armed;	   /* the host has bytes to read */
	usec_t total;	   /* stall_seconds of stalls that are over */
	bool stalled;	   /* the verdict fell and the host has not moved */
	usec_t due;	   /* a verdict waits for the server's bytes */
	uint64_t unread;   /* of the last probe */
	uint64_t sent;	   /* to_host_bytes at the last probe */
	uint64_t writes;   /* to the host since then */
	bool unsent;	   /* the host had no room then */
	usec_t server_byte; /* when the server last wrote */
	usec_t asked;	    /* when something became pending */
	usec_t server_next; /* when to look at the server, or USEC_NEVER */
	usec_t reading;	    /* when the server was last seen to read */
	uint64_t server_unread;
	uint64_t server_sent;
};

struct relay {
	struct limits limits;
	uint64_t seed;
	usec_t started;
	usec_t now;
	struct metrics m;
	struct budget *budget;
	struct queue *host_queue;
	struct queue *server_queue;
	struct pending *asked_by_host;
	struct pending *asked_by_server;
	struct to_stderr *err;
	struct to_host to_host;
	struct to_server to_server;
	struct closed_tokens closed;
	struct tools *tools;
	struct stall stall;
	unsigned repairs_told;
	bool host_eof;
	bool host_gone;
	bool server_eof;
	bool server_gone;
	bool server_died; /* though nobody had asked it to end */
	bool held_back; /* the host is not read for want of room */
	bool store_told;
	enum end_cause end;
	usec_t waiting_since; /* a whole frame waits for the host, or NEVER */
};

/* to_host.c, to_server.c */
int to_host_init(struct to_host *, struct relay *);
void to_host_done(struct to_host *);
void to_host_bytes(struct to_host *, const char *, size_t);
void to_host_eof(struct to_host *);
bool to_host_half(const struct to_host *);
void to_host_header(struct to_host *, uint64_t length, bool known);
int to_server_init(struct to_server *, struct relay *);
void to_server_done(struct to_server *);
void to_server_bytes(struct to_server *, const char *, size_t);
void to_server_eof(struct to_server *);
bool to_server_read(struct to_server *, uint64_t from, char *, size_t);

/* frame.c: the bytes of the frame to the host that is being built */
void frame_store(struct to_host *, const char *upto);
void frame_chunk_end(struct to_host *);
void frame_edit(void *arg, uint64_t off, unsigned len, const char *with,
    unsigned n);
void frame_sample(struct to_host *);
void frame_over(struct to_host *, enum over);
void frame_forget(struct to_host *);
int frame_emit(struct to_host *, const struct frame_tag *, bool lf);
char *frame_take_back(struct to_host *, size_t *n_r);
void sample_add(struct to_host *, const char *, size_t);
void sample_tell(struct to_host *);

/* cutting.c: when a frame is fed to the cut */
void cutting_observe(struct to_host *);
void cutting_overflow(struct to_host *, enum over);
void cutting_feed(struct to_host *, const char *, size_t);
void cutting_known(struct to_host *, uint32_t ref);
int cutting_reply(struct to_host *, uint32_t ref);
void cutting_end(struct to_host *);

/* judge.c: what becomes of a whole frame from the server */
void judge_message(struct to_host *, bool lf);
void judge_other(struct to_host *);
void judge_broken(struct to_host *, bool half);
void judge_element(void *arg, struct message *);
void judge_arriving(struct to_host *);

/* learn.c: what a whole frame from the host means */
void learn_frame(struct to_server *, struct frame_tag *);
void learn_element(void *arg, struct message *);
void learn_refused(struct to_server *);

/* answer.c: lines of the proxy's own */
void answer_host(struct relay *, uint32_t ref, enum reply_error,
    const struct reply_facts *);
void answer_host_id(struct relay *, const struct id *, enum reply_error,
    const struct reply_facts *);
void answer_server_id(struct relay *, const struct id *, enum reply_error,
    const struct reply_facts *);
void answer_too_large_result(struct relay *, uint32_t ref,
    const struct reply_facts *);
void answer_line(struct relay *, uint32_t ref, const char *line, size_t n);
bool answer_withdraw(struct relay *, uint32_t ref);
bool cancel_allowed(const struct pending_request *);
void cancel_send(struct relay *, uint32_t ref, const char *reason);
void request_close(struct relay *, uint32_t ref);
void request_progress(struct relay *, uint32_t ref);
void tools_done(struct relay *);
void tools_changed(struct relay *);
int server_put(struct relay *, const char *, size_t,
    const struct frame_tag *, bool ahead);

/* batch.c */
int batch_add(struct relay *, struct batch *, uint32_t ref);
void batch_clear(struct relay *, struct batch *);

/* closed.c */
void closed_add(struct relay *, const struct id *token);
void closed_remove(struct relay *, const struct id *token);
bool closed_has(struct relay *, const struct id *token);

/* framing.c: `Content-Length:` headers */
enum header_kind { HEADER_NONE, HEADER_OTHER, HEADER_LENGTH, HEADER_END };
enum header_kind framing_header(const char *line, size_t n, uint64_t *len_r);

/* stall.c */
void stall_init(struct relay *);
void stall_restart(struct relay *);
usec_t stall_tick(struct relay *, const struct relay_probe *);
void stall_look(struct relay *, const struct relay_probe *);
usec_t stall_seconds(const struct relay *);
usec_t stall_deadline(const struct relay *);
void stall_host_fed(struct relay *, uint64_t bytes);
void stall_host_waits(struct relay *);
void stall_server_fed(struct relay *);
enum verdict stall_verdict(const struct relay *);

/* shed.c: room is short */
bool shed_for(struct relay *, uint64_t need);

void relay_count_pending(struct relay *);
void relay_end(struct relay *, enum end_cause);

#endif
