/* SPDX-License-Identifier: MIT */
/*
 * The path to the host's stderr: one list of records, each a line of ours or
 * a run of the server's lines, bounded by what the records occupy. A server
 * line may evict lines of ours that have not begun to leave; our lines evict
 * only less important ones. Whoever still finds no room is dropped and
 * counted, by whole lines.
 *
 * A server line normally waits in `partial` for its LF. Only when it is too
 * long or too slow does a part of it go ahead; the next line that is not its
 * continuation then starts with an LF, so lines never run into each other.
 * Must not know of file descriptors, clocks or JSON.
 */
#include "spillway/to_stderr.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_MIN ((size_t)2048)	 /* room in a record of server lines */
#define RUN_MAX ((size_t)16384)
#define PARTIAL_MAX ((size_t)65536)
#define PARTIAL_MIN ((size_t)256)
#define PARTIAL_WAIT (100 * USEC_MSEC)
#define OWN_MAX 2048		 /* bytes of a log line with its LF */

/* Least important first. */
enum class { CLASS_METRICS, CLASS_LOG, CLASS_JUNK, CLASS_SERVER };

struct record {
	struct record *next;
	enum class class;
	size_t cap, len, sent;
	char bytes[];
};

struct lines {
	struct record *head, *tail;
	size_t used; /* heap bytes of all records */
	bool open;   /* the last byte that was put is no LF */
};

struct to_stderr {
	struct stderr_options opt;
	struct lines out;
	struct lines tee;
	bool has_tee;
	bool closed;

	/* The server line that is not finished. */
	char *partial;
	size_t partial_len, partial_cap;
	usec_t partial_due;
	bool continues; /* its first part has been put */
	bool skipping;	/* its rest is dropped */
	char carry[4];	/* tty: bytes of a character that is not whole */
	size_t carry_len;

	usec_t junk_end; /* of the second that is counted; 0: none */
	unsigned junk_shown;
	uint64_t junk_suppressed;

	/* One byte more than asked for tells if the first line is whole. */
	char last[STDERR_TAIL + 1];
	uint64_t last_total;
	uint64_t dropped;
};

static const char *const level_names[] = { "error", "warn", "info", "debug" };

const char *
log_level_name(enum log_level level)
{
	return (size_t)level < 4 ? level_names[level] : "unknown";
}

/* Lists of records */

static struct record *
record_new(struct lines *l, enum class class, size_t cap)
{
	struct record *r = malloc(sizeof(*r) + cap);

	if (r == NULL)
		return NULL;
	*r = (struct record){ .class = class, .cap = cap };
	if (l->tail)
		l->tail->next = r;
	else
		l->head = r;
	l->tail = r;
	l->used += sizeof(*r) + cap;
	return r;
}

/* Unlink r, which follows prev, or is the head if prev is NULL. */
static void
record_free(struct lines *l, struct record *prev, struct record *r)
{
	if (prev)
		prev->next = r->next;
	else
		l->head = r->next;
	if (l->tail == r)
		l->tail = prev;
	l->used -= sizeof(*r) + r->cap;
	free(r);
}

static void
lines_clear(struct lines *l)
{
	while (l->head)
		record_free(l, NULL, l->head);
	l->open = false;
}

static size_t
count_lines(const char *p, size_t n)
{
	const char *end = p + n;
	size_t lines = 0;

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		lines++;
		p++;
	}
	return lines;
}

/*
 * Free lines of ours below the given class until n more bytes fit, least
 * important and oldest first. Returns how many went.
 */
static size_t
lines_evict(struct lines *l, enum class below, size_t n)
{
	size_t gone = 0;
	unsigned c;

	for (c = CLASS_METRICS; c < (unsigned)below; c++) {
		struct record *prev = NULL, *r = l->head, *next;

		for (; r && l->used + n > STDERR_QUEUE_MAX; r = next) {
			next = r->next;
			if (r->class == c && r->sent == 0) {
				record_free(l, prev, r);
				gone++;
			} else {
				prev = r;
			}
		}
	}
	return gone;
}

/* Room left in the run of server lines at the end. */
static size_t
run_slack(const struct lines *l)
{
	const struct record *r = l->tail;

	/* One byte is kept for the LF that breaks an unfinished line. */
	if (r == NULL || r->class != CLASS_SERVER || r->len + 1 >= r->cap)
		return 0;
	return r->cap - 1 - r->len;
}

/* Bytes of server lines that fit without eviction; never overstated. */
static size_t
run_room(const struct lines *l)
{
	size_t left = l->used < STDERR_QUEUE_MAX ?
	    STDERR_QUEUE_MAX - l->used : 0;
	size_t each = sizeof(struct record) + 1;
	size_t over = each * (left / RUN_MAX + 1);

	return run_slack(l) + (left > over ? left - over : 0);
}

/* Put n bytes of server lines; false if memory gave out on the way. */
static bool
run_put(struct lines *l, const char *p, size_t n)
{
	while (n > 0) {
		size_t room = run_slack(l);

		if (room == 0) {
			size_t left = l->used + sizeof(struct record) <
			    STDERR_QUEUE_MAX ? STDERR_QUEUE_MAX - l->used -
			    sizeof(struct record) : 0;
			size_t cap = n + 1 < RUN_MIN ? RUN_MIN : n + 1;

			cap = cap < RUN_MAX ? cap : RUN_MAX;
			cap = cap < left ? cap : left;
			if (cap < 2 ||
			    record_new(l, CLASS_SERVER, cap) == NULL)
				return false;
			room = cap - 1;
		}
		room = n < room ? n : room;
		memcpy(l->tail->bytes + l->tail->len, p, room);
		l->tail->len += room;
		l->open = p[room - 1] != '\n';
		p += room;
		n -= room;
	}
	return true;
}

/* End an unfinished server line, so that another line can follow. */
static bool
lines_break(struct lines *l)
{
	struct record *r = l->tail;

	if (!l->open)
		return true;
	if (r == NULL || r->class != CLASS_SERVER || r->len == r->cap)
		r = record_new(l, CLASS_SERVER, 2);
	if (r == NULL)
		return false;
	r->bytes[r->len++] = '\n';
	l->open = false;
	return true;
}

/* Put one line of ours, LF included; returns how many lines were dropped. */
static size_t
lines_put_own(struct lines *l, enum class class, const char *p, size_t n)
{
	size_t need = 2 * sizeof(struct record) + 2 + n, gone;
	struct record *r = NULL;

	gone = lines_evict(l, class, need);
	if (l->used + need <= STDERR_QUEUE_MAX && lines_break(l))
		r = record_new(l, class, n);
	if (r == NULL)
		return gone + 1;
	memcpy(r->bytes, p, n);
	r->len = n;
	return gone;
}

static int
lines_peek(const struct lines *l, struct iovec *iov, int max)
{
	struct record *r = l->head;
	int n;

	for (n = 0; r && n < max; r = r->next) {
		iov[n].iov_base = r->bytes + r->sent;
		iov[n++].iov_len = r->len - r->sent;
	}
	return n;
}

static void
lines_sent(struct lines *l, size_t n)
{
	while (l->head && n > 0) {
		struct record *r = l->head;
		size_t take = r->len - r->sent;

		take = n < take ? n : take;
		r->sent += take;
		n -= take;
		if (r->sent == r->len)
			record_free(l, NULL, r);
	}
}

/* Escaping */

/* Bytes of the well-formed UTF-8 character at p, 0 if ill-formed, -1 if it
 * may become one with more bytes than n (RFC 3629, section 4). */
static int
utf8_length(const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf;
	size_t len, i;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f; /* no surrogates */
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	for (i = 1; i < len; i++) {
		if (i == n)
			return -1;
		if (p[i] < low || p[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return (int)len;
}

/* Leave out a character at the end that a clip has cut in two. */
static size_t
trim_clipped(const char *p, size_t n)
{
	size_t back;

	for (back = 1; back <= 3 && back <= n; back++)
		if (((unsigned char)p[n - back] & 0xc0) == 0xc0)
			return utf8_length(p + n - back, back) < 0 ?
			    n - back : n;
	return n;
}

static bool
is_control(const char *p, int len)
{
	unsigned char c = (unsigned char)p[0];

	if (len == 2)
		return c == 0xc2 && (unsigned char)p[1] < 0xa0;
	return len == 1 && (c < 0x20 || c == 0x7f);
}

static size_t
escape_bytes(const char *p, size_t n, char *out)
{
	static const char hex[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		*out++ = '\\';
		*out++ = 'x';
		*out++ = hex[c >> 4];
		*out++ = hex[c & 15];
	}
	return 4 * n;
}

/*
 * Text with control characters and ill-formed bytes as \xNN, as far as cap
 * goes and never half of one. *used_r tells how much of the text went in.
 */
static size_t
escape(const char *p, size_t n, char *out, size_t cap, size_t *used_r)
{
	size_t len = 0, i = 0;

	while (i < n) {
		int whole = utf8_length(p + i, n - i);
		bool plain = whole > 0 && !is_control(p + i, whole);
		size_t from = whole > 0 ? (size_t)whole : 1;
		size_t to = plain ? from : 4 * from;

		if (to > cap - len)
			break;
		if (plain)
			memcpy(out + len, p + i, from);
		else
			escape_bytes(p + i, from, out + len);
		len += to;
		i += from;
	}
	*used_r = i;
	return len;
}

/* Lines of ours */

static void
put_own(struct to_stderr *t, enum class class, const char *p, size_t n)
{
	if (t->has_tee && class != CLASS_JUNK)
		(void)lines_put_own(&t->tee, class, p, n);
	if (!t->closed)
		t->dropped += lines_put_own(&t->out, class, p, n);
}

static void
junk_second_over(struct to_stderr *t)
{
	char line[80];
	int n;

	if (t->junk_suppressed > 0) {
		n = snprintf(line, sizeof(line),
		    "spillway: stdout: suppressed %llu line%s\n",
		    (unsigned long long)t->junk_suppressed,
		    t->junk_suppressed == 1 ? "" : "s");
		if (n > 0)
			put_own(t, CLASS_JUNK, line, (size_t)n);
	}
	t->junk_end = 0;
	t->junk_shown = 0;
	t->junk_suppressed = 0;
}

void
to_stderr_junk(struct to_stderr *t, const char *text, size_t n,
    uint64_t total, usec_t now)
{
	static const char prefix[] = "spillway: stdout: ";
	const size_t start = sizeof(prefix) - 1;
	char line[STDERR_JUNK_MAX], note[40];
	size_t len, used, note_len;
	int noted;

	if (t->junk_end != 0 && now >= t->junk_end)
		junk_second_over(t);
	if (t->junk_end == 0)
		t->junk_end = now + USEC_SEC;
	if (t->junk_shown == STDERR_JUNK_RATE) {
		t->junk_suppressed++;
		return;
	}
	t->junk_shown++;
	if (n < total)
		n = trim_clipped(text, n);
	memcpy(line, prefix, start);
	len = escape(text, n, line + start, sizeof(line) - start - 1, &used);
	if (used < total) {
		noted = snprintf(note, sizeof(note), " [%llu bytes]",
		    (unsigned long long)total);
		note_len = noted > 0 ? (size_t)noted : 0;
		len = escape(text, n, line + start,
		    sizeof(line) - start - 1 - note_len, &used);
		memcpy(line + start + len, note, note_len);
		len += note_len;
	}
	line[start + len] = '\n';
	put_own(t, CLASS_JUNK, line, start + len + 1);
}

void
to_stderr_log(struct to_stderr *t, enum log_level level, const char *fmt, ...)
{
	char text[OWN_MAX], line[OWN_MAX];
	size_t start, n, used;
	va_list ap;
	int r;

	if (level > t->opt.level)
		return;
	va_start(ap, fmt);
	r = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r < 0)
		return;
	n = (size_t)r;
	if (n >= sizeof(text))
		n = trim_clipped(text, sizeof(text) - 1);
	r = snprintf(line, sizeof(line), "spillway: %s: ",
	    log_level_name(level));
	start = r > 0 ? (size_t)r : 0;
	n = start + escape(text, n, line + start, sizeof(line) - start - 1,
	    &used);
	line[n++] = '\n';
	put_own(t, CLASS_LOG, line, n);
}

void
to_stderr_metrics(struct to_stderr *t, const char *line, size_t n)
{
	char *copy = malloc(n + 1);

	if (copy == NULL) {
		t->dropped++;
		return;
	}
	memcpy(copy, line, n);
	copy[n] = '\n';
	put_own(t, CLASS_METRICS, copy, n + 1);
	free(copy);
}

/* Lines of the server */

static bool
server_fits(struct to_stderr *t, size_t n)
{
	if (n > run_room(&t->out))
		t->dropped += lines_evict(&t->out, CLASS_SERVER,
		    n + (n / RUN_MAX + 2) * (sizeof(struct record) + 1));
	return n <= run_room(&t->out);
}

/*
 * Put n bytes that begin a line, or go on with the one that is open; the
 * caller has seen that they fit. Counts a line that memory fails.
 */
static bool
server_put(struct to_stderr *t, const char *p, size_t n)
{
	if ((t->continues || lines_break(&t->out)) &&
	    run_put(&t->out, p, n))
		return true;
	t->continues = false;
	t->dropped++;
	return false;
}

static void
partial_forget(struct to_stderr *t)
{
	free(t->partial);
	t->partial = NULL;
	t->partial_len = t->partial_cap = 0;
	t->partial_due = USEC_NEVER;
}

/* What waits goes out although its line is not finished. */
static void
partial_put(struct to_stderr *t)
{
	if (t->partial_len == 0)
		return;
	if (server_fits(t, t->partial_len + 1)) {
		t->continues = server_put(t, t->partial, t->partial_len);
		t->skipping = !t->continues;
	} else {
		t->dropped++;
		t->continues = false;
		t->skipping = true;
	}
	partial_forget(t);
}

static bool
partial_grow(struct to_stderr *t, size_t need)
{
	size_t cap = t->partial_cap ? t->partial_cap : PARTIAL_MIN;
	char *p;

	if (need <= t->partial_cap)
		return true;
	while (cap < need)
		cap *= 2;
	p = realloc(t->partial, cap);
	if (p == NULL)
		return false;
	t->partial = p;
	t->partial_cap = cap;
	return true;
}

/* Bytes without LF: they wait for it, but not for ever. */
static void
partial_add(struct to_stderr *t, const char *p, size_t n, usec_t now)
{
	while (n > 0) {
		size_t take;

		if (t->partial_len == PARTIAL_MAX)
			partial_put(t);
		if (t->skipping)
			break;
		take = PARTIAL_MAX - t->partial_len;
		take = n < take ? n : take;
		if (!partial_grow(t, t->partial_len + take)) {
			t->dropped++;
			t->continues = false;
			t->skipping = true;
			break;
		}
		if (t->partial_len == 0)
			t->partial_due = now + PARTIAL_WAIT;
		memcpy(t->partial + t->partial_len, p, take);
		t->partial_len += take;
		p += take;
		n -= take;
	}
	if (t->skipping)
		partial_forget(t);
}

/* The rest of the unfinished line, up to and with its LF. */
static void
server_finish(struct to_stderr *t, const char *p, size_t n)
{
	if (!t->skipping && !server_fits(t, t->partial_len + n + 1))
		t->dropped++;
	else if (!t->skipping && (t->partial_len == 0 ||
		     server_put(t, t->partial, t->partial_len))) {
		t->continues = t->continues || t->partial_len > 0;
		server_put(t, p, n);
	}
	t->skipping = false;
	t->continues = false;
	partial_forget(t);
}

/* Whole lines: as many as fit, in one copy. */
static void
server_lines(struct to_stderr *t, const char *p, size_t n)
{
	size_t lines;
	const char *end;

	if (n == 0)
		return;
	if (!server_fits(t, n + 1)) {
		size_t room = run_room(&t->out);

		room = room > 0 ? room - 1 : 0;
		end = memrchr(p, '\n', room < n ? room : n);
		lines = count_lines(p, n);
		n = end ? (size_t)(end + 1 - p) : 0;
		t->dropped += lines - count_lines(p, n);
	}
	if (n > 0)
		server_put(t, p, n);
}

static void
server_bytes(struct to_stderr *t, const char *p, size_t n, usec_t now)
{
	const char *last = memrchr(p, '\n', n);
	size_t whole = last ? (size_t)(last + 1 - p) : 0;

	if (whole > 0 && (t->partial_len > 0 || t->continues ||
			     t->skipping)) {
		const char *first = memchr(p, '\n', whole);
		size_t k = first ? (size_t)(first + 1 - p) : whole;

		server_finish(t, p, k);
		p += k;
		n -= k;
		whole -= k;
	}
	server_lines(t, p, whole);
	partial_add(t, p + whole, n - whole, now);
}

/* The last lines for server_exited, whatever is shown of them. */
static void
last_add(struct to_stderr *t, const char *p, size_t n)
{
	const size_t size = sizeof(t->last);
	size_t at, first;

	if (n > size) {
		t->last_total += n - size;
		p += n - size;
		n = size;
	}
	at = (size_t)(t->last_total % size);
	first = n < size - at ? n : size - at;
	memcpy(t->last + at, p, first);
	memcpy(t->last, p + first, n - first);
	t->last_total += n;
}

/* A control character that a terminal would obey. */
static bool
tty_minds(const char *p, int len)
{
	if (len == 0) /* in 8-bit mode these bytes are C1 controls */
		return (unsigned char)p[0] < 0xa0;
	return is_control(p, len) && *p != '\n' && *p != '\t' && *p != '\r';
}

/* One character, or the first byte of what is none; returns its bytes. */
static size_t
tty_one(const char *p, size_t n, char *out, size_t *len)
{
	int whole = utf8_length(p, n);
	size_t from = whole > 0 ? (size_t)whole : 1;

	if (tty_minds(p, whole > 0 ? whole : 0)) {
		*len += escape_bytes(p, from, out + *len);
	} else {
		memcpy(out + *len, p, from);
		*len += from;
	}
	return from;
}

/* Server bytes to a terminal; a character cut by a read waits in carry. */
static void
tty_bytes(struct to_stderr *t, const char *p, size_t n, usec_t now)
{
	char in[512], out[4 * sizeof(in)];

	while (n > 0) {
		size_t have = t->carry_len, take, i = 0, len = 0;

		memcpy(in, t->carry, have);
		take = n < sizeof(in) - have ? n : sizeof(in) - have;
		memcpy(in + have, p, take);
		have += take;
		p += take;
		n -= take;
		while (i < have && utf8_length(in + i, have - i) >= 0)
			i += tty_one(in + i, have - i, out, &len);
		t->carry_len = have - i;
		memcpy(t->carry, in + i, t->carry_len);
		if (len > 0)
			server_bytes(t, out, len, now);
	}
}

void
to_stderr_server(struct to_stderr *t, const char *bytes, size_t n, usec_t now)
{
	if (n == 0)
		return;
	last_add(t, bytes, n);
	if (t->closed || t->opt.drop_server)
		return;
	if (t->opt.tty)
		tty_bytes(t, bytes, n, now);
	else
		server_bytes(t, bytes, n, now);
}

void
to_stderr_server_end(struct to_stderr *t, usec_t now)
{
	char out[16];
	size_t i = 0, len = 0;

	if (t->last_total > 0 &&
	    t->last[(t->last_total - 1) % sizeof(t->last)] != '\n')
		last_add(t, "\n", 1);
	if (t->closed || t->opt.drop_server)
		return;
	while (i < t->carry_len)
		i += tty_one(t->carry + i, t->carry_len - i, out, &len);
	t->carry_len = 0;
	if (len > 0)
		server_bytes(t, out, len, now);
	if (t->partial_len > 0 || t->continues || t->skipping)
		server_finish(t, "\n", 1);
}

/* Life, and the way out */

struct to_stderr *
to_stderr_new(const struct stderr_options *opt)
{
	struct to_stderr *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->opt = *opt;
	t->partial_due = USEC_NEVER;
	return t;
}

void
to_stderr_free(struct to_stderr **t)
{
	if (*t == NULL)
		return;
	lines_clear(&(*t)->out);
	lines_clear(&(*t)->tee);
	free((*t)->partial);
	free(*t);
	*t = NULL;
}

int
to_stderr_peek(struct to_stderr *t, struct iovec *iov, int max)
{
	return lines_peek(&t->out, iov, max);
}

void
to_stderr_sent(struct to_stderr *t, size_t n)
{
	lines_sent(&t->out, n);
}

bool
to_stderr_empty(const struct to_stderr *t)
{
	return t->out.head == NULL;
}

void
to_stderr_close(struct to_stderr *t)
{
	t->closed = true;
	lines_clear(&t->out);
	partial_forget(t);
	t->continues = t->skipping = false;
	t->carry_len = 0;
}

usec_t
to_stderr_tick(struct to_stderr *t, usec_t now)
{
	usec_t next;

	if (t->partial_len > 0 && now >= t->partial_due)
		partial_put(t);
	if (t->junk_end != 0 && now >= t->junk_end)
		junk_second_over(t);
	next = t->partial_due;
	if (t->junk_suppressed > 0 && t->junk_end < next)
		next = t->junk_end;
	return next;
}

int
to_stderr_tee(struct to_stderr *t)
{
	t->has_tee = true;
	return 0;
}

int
to_stderr_tee_peek(struct to_stderr *t, struct iovec *iov, int max)
{
	return lines_peek(&t->tee, iov, max);
}

void
to_stderr_tee_sent(struct to_stderr *t, size_t n)
{
	lines_sent(&t->tee, n);
}

size_t
to_stderr_tail(const struct to_stderr *t, char *buf, size_t cap)
{
	const uint64_t size = sizeof(t->last);
	uint64_t end = t->last_total, from, at;
	size_t n = 0;

	cap = cap < STDERR_TAIL ? cap : STDERR_TAIL;
	from = end > size - 1 ? end - (size - 1) : 0;
	while (end > from && t->last[(end - 1) % size] != '\n')
		end--;
	at = end > cap && end - cap > from ? end - cap : from;
	/* Begin behind an LF; a line longer than all there is, in itself. */
	for (from = at; from > 0 && from < end; from++)
		if (t->last[(from - 1) % size] == '\n')
			break;
	if (from == end)
		from = at;
	for (; from < end; from++)
		buf[n++] = t->last[from % size];
	return n;
}

uint64_t
to_stderr_dropped(const struct to_stderr *t)
{
	return t->dropped;
}
