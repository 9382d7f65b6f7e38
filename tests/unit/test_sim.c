/* SPDX-License-Identifier: MIT */
/*
 * Whole sessions against the pure engine in virtual time: a host and a server
 * that do what a seeded generator tells them, pipes that fill, clocks that
 * run. What must hold whatever they do is checked at every line and at the
 * end. SEED=N runs one seed, SEEDS=N so many of each kind; a seed that fails
 * is named.
 */
#include <check.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "rig.h"

#define CALLS 48
#define LINES 256	/* of the host in one session */
#define PIPE 65536	/* what the kernel holds for a peer */

enum kind {
	QUIET,	 /* everybody behaves, no limit fires */
	HOSTILE, /* nobody does, but there is room */
	FLOODED, /* nor is there room */
	KINDS,
};

static const char *const kind_names[KINDS] = { "quiet", "hostile",
	"flooded" };

struct call {
	bool asked;	/* the engine has all of it */
	bool at_server;
	bool given_up;	/* the host cancelled it */
	bool cancelled; /* the server was told, by whomever */
	bool token;
	unsigned answers; /* the host got */
	unsigned replies; /* the server wrote */
	unsigned progress; /* last one the server wrote */
	unsigned seen;	   /* last one the host got */
};

struct sim {
	struct rig g;
	enum kind kind;
	unsigned long seed;
	uint64_t rnd;
	struct call call[CALLS];
	unsigned calls;
	struct bytes host_says; /* written, fed up to host_fed */
	size_t host_fed;
	struct bytes server_says;
	size_t server_fed;
	size_t line_at[LINES + 1]; /* where in host_says its lines begin */
	unsigned lines;
	unsigned lines_fed;  /* whole lines the engine has */
	unsigned next_line;  /* the server has those before */
	size_t host_read;    /* of g.host; the rest lies in its pipe */
	size_t host_parsed;
	size_t server_read;
	size_t server_parsed;
	unsigned asks;	/* the server's requests */
	unsigned asked; /* of them the host got */
	unsigned logs;
	unsigned last_log;
	bool host_sleeps;
	bool host_ended;
	bool host_gone;
};

static void wrong(const struct sim *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

static void
wrong(const struct sim *s, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	kit_fail("%s session, SEED=%lu: %s", kind_names[s->kind], s->seed,
	    text);
}

static unsigned
below(struct sim *s, unsigned n)
{
	return kit_below(&s->rnd, n);
}

static bool
chance(struct sim *s, unsigned percent)
{
	return below(s, 100) < percent;
}

static void
say(struct bytes *to, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	bytes_add(to, text, (size_t)n);
}

static void
fill(struct bytes *to, size_t n)
{
	static const char text[] = "All work and no play. \\\"\\u00e9\\\" ";

	for (; n >= sizeof text; n -= sizeof text - 1)
		bytes_add(to, text, sizeof text - 1);
}

/* An id in its own spelling: odd ones are strings. */
static const char *
id_of_call(unsigned n, char *buf)
{
	sprintf(buf, n % 2 == 1 ? "\"c%u\"" : "%u", n);
	return buf;
}

static unsigned
number_of(const struct sim *s, const json_t *id)
{
	unsigned n = CALLS;

	if (json_is_integer(id))
		n = (unsigned)json_integer_value(id);
	else if (json_is_string(id) && json_string_value(id)[0] == 'c')
		n = (unsigned)atoi(json_string_value(id) + 1);
	if (n >= s->calls)
		wrong(s, "an id that the host never gave");
	return n;
}

/* The host. */

static void
begin_line(struct sim *s)
{
	s->line_at[s->lines++] = s->host_says.n;
}

static void
host_asks(struct sim *s)
{
	unsigned n = s->calls++;
	struct call *c = &s->call[n];
	char id[16];

	id_of_call(n, id);
	c->token = chance(s, 50);
	say(&s->host_says, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":"
	    "\"%s\",\"params\":{\"line\":%u,\"name\":\"t\"", id,
	    chance(s, 70) ? "tools/call" : "resources/read", s->lines - 1);
	if (c->token)
		say(&s->host_says, ",\"_meta\":{\"progressToken\":%s}", id);
	if (chance(s, 20)) {
		say(&s->host_says, ",\"pad\":\"");
		fill(&s->host_says, below(s, 3000));
		say(&s->host_says, "\"");
	}
	say(&s->host_says, "}}\n");
}

static void
host_gives_up(struct sim *s, unsigned n)
{
	char id[16];

	s->call[n].given_up = true;
	say(&s->host_says, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	    "cancelled\",\"params\":{\"line\":%u,\"requestId\":%s}}\n",
	    s->lines - 1, id_of_call(n, id));
}

static void
host_answers(struct sim *s)
{
	say(&s->host_says, "{\"jsonrpc\":\"2.0\",\"id\":\"s%u\",\"result\":"
	    "{\"line\":%u}}\n", --s->asked, s->lines - 1);
}

static void
host_speaks(struct sim *s)
{
	unsigned n = s->calls > 0 ? below(s, s->calls) : 0;

	if (s->lines == LINES || s->host_ended)
		return;
	begin_line(s);
	if (s->calls < CALLS && chance(s, 60))
		host_asks(s);
	else if (s->asked > 0)
		host_answers(s);
	else if (s->kind != QUIET && s->calls > 0 && chance(s, 30) &&
	    !s->call[n].given_up)
		host_gives_up(s, n);
	else
		say(&s->host_says, "{\"jsonrpc\":\"2.0\",\"method\":\"n\","
		    "\"params\":{\"line\":%u}}\n", s->lines - 1);
	s->line_at[s->lines] = s->host_says.n;
}

static void
host_bytes(struct sim *s)
{
	size_t rest = s->host_says.n - s->host_fed, n;

	if (rest == 0 || (relay_wants(s->g.r) & RELAY_READ_HOST) == 0)
		return;
	n = chance(s, 50) ? rest : 1 + below(s, (unsigned)rest);
	rig_from_host(&s->g, s->host_says.p + s->host_fed, n, false);
	s->host_fed += n;
	while (s->lines_fed < s->lines &&
	    s->line_at[s->lines_fed + 1] <= s->host_fed)
		s->lines_fed++;
}

/* What the engine has whole lines of, it has been asked. */
static void
note_asked(struct sim *s)
{
	for (unsigned n = 0; n < s->calls; n++) {
		char id[16], want[64];
		const char *at;

		if (s->call[n].asked)
			continue;
		sprintf(want, "\"id\":%s,\"method\"", id_of_call(n, id));
		at = strstr(s->host_says.p, want);
		s->call[n].asked = at != NULL &&
		    (size_t)(strchr(at, '\n') - s->host_says.p) < s->host_fed;
	}
}

static void
host_got_reply(struct sim *s, json_t *msg)
{
	unsigned n = number_of(s, json_object_get(msg, "id"));
	struct call *c = &s->call[n];

	if (++c->answers > 1)
		wrong(s, "a second reply to %u", n);
	if (json_object_get(msg, "error") == NULL && c->replies == 0)
		wrong(s, "a result of %u, which the server never gave", n);
}

static void
host_got_notice(struct sim *s, json_t *msg, const char *method)
{
	json_t *params = json_object_get(msg, "params");
	struct call *c;
	unsigned k;

	if (strcmp(method, "notifications/message") == 0) {
		k = (unsigned)json_integer_value(json_object_get(params,
		    "data"));
		if (k <= s->last_log)
			wrong(s, "log %u after %u", k, s->last_log);
		s->last_log = k;
	} else if (strcmp(method, "notifications/progress") == 0) {
		k = number_of(s, json_object_get(params, "progressToken"));
		c = &s->call[k];
		if (c->answers > 0)
			wrong(s, "progress of %u after its reply", k);
		k = (unsigned)json_integer_value(json_object_get(params,
		    "progress"));
		if (k <= c->seen)
			wrong(s, "progress %u after %u", k, c->seen);
		c->seen = k;
	}
}

static json_t *
parse(const struct sim *s, const char *who, const char *line, size_t n)
{
	json_error_t e;
	json_t *msg = json_loadb(line, n, 0, &e);

	if (!json_is_object(msg))
		wrong(s, "the %s got what is no message (%s): %.*s", who,
		    e.text, (int)(n < 200 ? n : 200), line);
	return msg;
}

static void
host_parses(struct sim *s)
{
	const char *p, *lf;

	while (p = s->g.host.p + s->host_parsed,
	    (lf = memchr(p, '\n', s->host_read - s->host_parsed)) != NULL) {
		json_t *msg = parse(s, "host", p, (size_t)(lf - p));
		json_t *method = json_object_get(msg, "method");

		if (method == NULL)
			host_got_reply(s, msg);
		else if (json_object_get(msg, "id") != NULL)
			s->asked++;
		else
			host_got_notice(s, msg, json_string_value(method));
		json_decref(msg);
		s->host_parsed += (size_t)(lf + 1 - p);
	}
}

static void
host_reads(struct sim *s)
{
	size_t there = s->g.host.n - s->host_read;

	if (there == 0 || s->host_gone)
		return;
	s->host_read += chance(s, 60) ? there : 1 + below(s, (unsigned)there);
	host_parses(s);
}

/* The server. */

static size_t
size_of_reply(struct sim *s)
{
	switch (s->kind) {
	case QUIET:
		return below(s, 4000);
	case HOSTILE:
		return below(s, chance(s, 10) ? 60000 : 600);
	case FLOODED:
		return below(s, chance(s, 30) ? 400000 : 60000);
	case KINDS:
		break;
	}
	return 0;
}

static void
server_replies(struct sim *s, unsigned n)
{
	char id[16];
	unsigned how = s->kind == QUIET ? 100 : below(s, 100);

	s->call[n].replies++;
	id_of_call(n, id);
	if (how < 5) { /* it cannot be repaired */
		say(&s->server_says, "{\"jsonrpc\":\"2.0\",\"id\":%s,"
		    "\"result\":{\"x\":}\n", id);
		return;
	}
	if (how < 15) {
		say(&s->server_says, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\""
		    ":{\"code\":-32603,\"message\":\"no\"}}\n", id);
		return;
	}
	say(&s->server_says, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{"
	    "\"content\":[{\"type\":\"text\",\"text\":\"", id);
	fill(&s->server_says, size_of_reply(s));
	say(&s->server_says, how < 20 ? "\"}]}} \r\n" : how < 22 ?
	    "\"}],\"n\":NaN}}\n" : "\"}]}}\n");
}

static void
server_odd(struct sim *s)
{
	static const char *const lines[] = {
		"Server listening\n", "\n", "{\"level\":30}\n", "{half\n",
		"{\"jsonrpc\":\"2.0\",\"id\":9001,\"result\":{}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-1,"
		"\"message\":\"\"}}\n",
		"[2026] {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n",
		"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}"
		"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n",
	};

	say(&s->server_says, "%s",
	    lines[below(s, sizeof lines / sizeof *lines)]);
}

static void
server_progress(struct sim *s, unsigned n)
{
	char id[16];

	say(&s->server_says, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	    "progress\",\"params\":{\"progressToken\":%s,\"progress\":%u}}\n",
	    id_of_call(n, id), ++s->call[n].progress);
}

static void
server_asks(struct sim *s)
{
	say(&s->server_says, "{\"jsonrpc\":\"2.0\",\"id\":\"s%u\",\"method\":"
	    "\"%s\",\"params\":{\"pad\":\"", s->asks++, chance(s, 80) ?
	    "roots/list" : "elicitation/create");
	if (s->kind == FLOODED)
		fill(&s->server_says, below(s, 50000));
	say(&s->server_says, "\"}}\n");
}

/* What nobody may drop. */
static void
server_notice(struct sim *s)
{
	say(&s->server_says, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	    "%s\",\"params\":{\"uri\":\"a\",\"pad\":\"", chance(s, 50) ?
	    "mine" : "resources/updated");
	fill(&s->server_says, below(s, s->kind == FLOODED && chance(s, 50) ?
	    200000 : 100));
	say(&s->server_says, "\"}}\n");
}

static void
server_log(struct sim *s)
{
	say(&s->server_says, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	    "message\",\"params\":{\"level\":\"info\",\"data\":%u,\"pad\":\"",
	    ++s->logs);
	fill(&s->server_says, below(s, s->kind == FLOODED ? 20000 : 300));
	say(&s->server_says, "\"}}\n");
}

static void
server_speaks(struct sim *s)
{
	unsigned n = s->calls > 0 ? below(s, s->calls) : 0;
	struct call *c = &s->call[n];
	bool odd = s->kind != QUIET;

	if (s->kind == FLOODED && s->seed % 4 == 1 && chance(s, 50)) {
		server_notice(s);
	} else if (s->calls > 0 && c->at_server && chance(s, 60)) {
		if (c->token && chance(s, 50) && (c->replies == 0 || odd))
			server_progress(s, n);
		else if (c->replies == 0 || (odd && chance(s, 10)))
			server_replies(s, n);
	} else if (odd && chance(s, 20)) {
		server_odd(s);
	} else if (chance(s, 20)) {
		server_asks(s);
	} else if (chance(s, 15)) {
		server_notice(s);
	} else {
		server_log(s);
	}
}

static void
server_bytes(struct sim *s)
{
	size_t rest = s->server_says.n - s->server_fed, n;

	if (rest == 0)
		return;
	n = chance(s, 60) ? rest : 1 + below(s, (unsigned)rest);
	if (n > PIPE)
		n = PIPE;
	rig_from_server(&s->g, s->server_says.p + s->server_fed, n, false);
	s->server_fed += n;
}

/* A line of the host's: as it was said, and none twice or out of turn. */
static void
server_got_own(struct sim *s, unsigned line, const char *p, size_t n)
{
	if (line < s->next_line || line >= s->lines)
		wrong(s, "line %u of the host came again, or late", line);
	s->next_line = line + 1;
	if (n != s->line_at[line + 1] - s->line_at[line] ||
	    memcmp(p, s->host_says.p + s->line_at[line], n) != 0)
		wrong(s, "line %u of the host was changed", line);
}

static void
server_got_cancel(struct sim *s, json_t *params, bool own)
{
	unsigned n = number_of(s, json_object_get(params, "requestId"));
	struct call *c = &s->call[n];

	if (!own && !c->at_server)
		wrong(s, "%u was cancelled, which the server never got", n);
	if (!own && c->cancelled)
		wrong(s, "%u was cancelled twice", n);
	c->cancelled = true;
}

static void
server_got(struct sim *s, json_t *msg, const char *p, size_t n)
{
	json_t *params = json_object_get(msg, "params");
	json_t *method = json_object_get(msg, "method"), *line;
	json_t *id = json_object_get(msg, "id");

	if (params == NULL)
		params = json_object_get(msg, "result");
	line = json_object_get(params, "line");
	if (line != NULL)
		server_got_own(s, (unsigned)json_integer_value(line), p, n);
	if (method == NULL) {
		if (line == NULL && json_object_get(msg, "error") == NULL)
			wrong(s, "the server got a reply nobody gave");
	} else if (id != NULL) {
		s->call[number_of(s, id)].at_server = true;
	} else if (strcmp(json_string_value(method),
	    "notifications/cancelled") == 0) {
		server_got_cancel(s, params, line != NULL);
	} else if (line == NULL) {
		wrong(s, "the server got a notice nobody gave");
	}
}

static void
server_reads(struct sim *s)
{
	const char *p, *lf;
	size_t there = s->g.server.n - s->server_read;

	if (there == 0)
		return;
	s->server_read += chance(s, 60) ? there : 1 + below(s, (unsigned)there);
	while (p = s->g.server.p + s->server_parsed, (lf = memchr(p, '\n',
	    s->server_read - s->server_parsed)) != NULL) {
		size_t n = (size_t)(lf + 1 - p);
		json_t *msg = parse(s, "server", p, n);

		server_got(s, msg, p, n);
		json_decref(msg);
		s->server_parsed += n;
	}
}

/* The proxy's shell, and time. */

static void
proxy_writes(struct sim *s)
{
	size_t host = s->g.host.n - s->host_read;
	size_t server = s->g.server.n - s->server_read;

	if (!s->host_gone)
		rig_take(&s->g, RELAY_HOST, host < PIPE ?
		    1 + below(s, (unsigned)(PIPE - host)) : 0);
	rig_take(&s->g, RELAY_SERVER, server < PIPE ? PIPE - server : 0);
	rig_check(&s->g);
}

static void
time_passes(struct sim *s)
{
	usec_t t = below(s, 50) * USEC_MSEC;

	if (s->kind != QUIET && chance(s, 20))
		t = below(s, 40) * USEC_SEC;
	s->g.probe = (struct relay_probe) { .host_knows = true,
		.host_unread = s->g.host.n - s->host_read,
		.server_knows = true,
		.server_unread = s->g.server.n - s->server_read };
	if (s->kind != QUIET && chance(s, 3)) /* the proxy was stopped */
		relay_restart_clocks(s->g.r, s->g.now += 100 * USEC_SEC);
	if (!s->host_gone)
		rig_pass(&s->g, t);
	relay_look(s->g.r, &s->g.probe, s->g.now);
}

static void
step(struct sim *s)
{
	unsigned wants = relay_wants(s->g.r);

	if ((wants & (RELAY_READ_SERVER | RELAY_STOP)) == 0)
		wrong(s, "the engine wants nothing from a server that lives");
	switch (below(s, 10)) {
	case 0:
	case 1:
		host_speaks(s);
		break;
	case 2:
		host_bytes(s);
		break;
	case 3:
	case 4:
		server_speaks(s);
		break;
	case 5:
		server_bytes(s);
		break;
	case 6:
		server_reads(s);
		break;
	case 7:
		time_passes(s);
		break;
	case 8:
		if (s->kind != QUIET && chance(s, 5))
			s->host_sleeps = !s->host_sleeps;
		if (!s->host_sleeps)
			host_reads(s);
		break;
	default:
		proxy_writes(s);
		break;
	}
}

/* The host says no more; sometimes nor does it listen. */
static void
host_leaves(struct sim *s)
{
	if (s->kind == QUIET || s->host_ended || s->host_gone || !chance(s, 1))
		return;
	s->host_ended = true;
	if (chance(s, 30)) {
		s->host_gone = true;
		relay_peer_gone(s->g.r, RELAY_HOST, s->g.now);
	}
}

static void
all_arrives(struct sim *s)
{
	for (int i = 0; i < 400; i++) {
		host_bytes(s);
		server_bytes(s);
		proxy_writes(s);
		server_reads(s);
		host_reads(s);
	}
}

static void
same(const struct sim *s, const char *what, const struct bytes *said,
    const struct bytes *got)
{
	if (said->n != got->n || memcmp(said->p, got->p, said->n) != 0)
		wrong(s, "not the same bytes %s: %zu said, %zu got", what,
		    said->n, got->n);
}

static void
check_end(struct sim *s)
{
	if (s->host_gone)
		return;
	for (unsigned n = 0; n < s->calls; n++) {
		const struct call *c = &s->call[n];

		if (c->asked && !c->given_up && c->answers != 1)
			wrong(s, "%u has %u replies", n, c->answers);
	}
	if (!relay_failed(s->g.r) && !relay_quiet(s->g.r))
		wrong(s, "something is left in the engine");
	if (s->kind == QUIET) {
		same(s, "to the host", &s->server_says, &s->g.host);
		same(s, "to the server", &s->host_says, &s->g.server);
	}
}

static void
run_end(struct sim *s)
{
	if (s->kind == QUIET)
		for (unsigned n = 0; n < s->calls; n++)
			if (s->call[n].at_server && s->call[n].replies == 0)
				server_replies(s, n);
	all_arrives(s);
	note_asked(s);
	if (s->host_ended)
		rig_host_eof(&s->g);
	relay_server_gone(s->g.r, 0, s->host_ended, s->g.now);
	all_arrives(s);
	check_end(s);
}

/* Figures of all sessions of a kind, to see that they reached what they can. */
static struct metrics sum;
static unsigned ended;

static void
add_up(const struct metrics *m)
{
#define ADD_U64(key) sum.key += m->key;
#define ADD_SEC(key) sum.key += m->key;
#define ADD_WORD(key)
#define X(key, type, unit, help) ADD_##type(key)
	SPILLWAY_METRICS(X)
#undef X
}

static void
run_seed(enum kind kind, unsigned long seed)
{
	struct limits limits = rig_limits();
	struct sim s = { .kind = kind, .seed = seed,
		.rnd = seed * 2654435761u + 1 + kind };
	unsigned steps;

	limits.max_frame = kind == HOSTILE ? 50000 : 1u << 20;
	s.host_sleeps = kind == FLOODED && seed % 4 != 0;
	limits.memory = kind == FLOODED ? 1u << 20 : 4u << 20;
	limits.spill = kind == QUIET || seed % 2 == 0 ? 0 : 1u << 20;
	limits.max_content = kind == QUIET || seed % 3 ? SIZE_OFF : 3000;
	limits.cancel = seed % 7 != 0;
	if (kind != QUIET && seed % 5 == 0)
		limits.request_timeout = 5 * USEC_SEC;
	rig_start(&s.g, &limits);
	bytes_add(&s.host_says, "", 0);
	bytes_add(&s.server_says, "", 0);
	for (steps = 100 + below(&s, 400); steps > 0; steps--) {
		step(&s);
		host_leaves(&s);
	}
	/* In a quiet session all that was asked is answered. */
	if (kind == QUIET)
		all_arrives(&s);
	run_end(&s);
	add_up(relay_metrics(s.g.r, s.g.now));
	ended += relay_failed(s.g.r);
	bytes_free(&s.host_says);
	bytes_free(&s.server_says);
	rig_stop(&s.g);
}

static unsigned long
number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

static void
run_kind(enum kind kind, unsigned long seeds)
{
	unsigned long only = number("SEED", 0);

	if (only > 0) {
		run_seed(kind, only);
		return;
	}
	seeds = number("SEEDS", seeds);
	for (unsigned long seed = 1; seed <= seeds; seed++)
		run_seed(kind, seed);
}

/* Fewer seeds than these may miss a thing. */
static void
reached(const char *what, uint64_t n)
{
	if (n == 0 && getenv("SEED") == NULL && number("SEEDS", 200) >= 200)
		ck_abort_msg("no session reached %s", what);
}

#define REACHED(key) reached(#key, sum.key)

START_TEST(quiet_sessions)
{
	run_kind(QUIET, 2000);
	REACHED(frames_to_host);
	REACHED(frames_to_server);
	REACHED(dispatch_wait_seconds);
	if (sum.repairs + sum.cancels_sent + sum.replies_synthesized > 0)
		ck_abort_msg("a quiet session was not left alone");
}
END_TEST

START_TEST(hostile_sessions)
{
	run_kind(HOSTILE, 2000);
	REACHED(parse_failures);
	REACHED(junk_lines);
	REACHED(blank_lines);
	REACHED(repairs);
	REACHED(oversize_frames);
	REACHED(results_cut);
	REACHED(host_stalls);
	REACHED(cancels_sent);
	REACHED(replies_synthesized);
	REACHED(replies_suppressed);
	REACHED(progress_suppressed);
}
END_TEST

START_TEST(flooded_sessions)
{
	run_kind(FLOODED, 200);
	REACHED(spill_peak_bytes);
	REACHED(notifications_coalesced);
	REACHED(notifications_dropped);
	REACHED(replies_synthesized);
	reached("an end for want of room", ended);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sim");
	TCase *t = tcase_create("sessions");
	SRunner *sr = srunner_create(suite);
	int failed;

	tcase_set_timeout(t, 0);
	tcase_add_test(t, quiet_sessions);
	tcase_add_test(t, hostile_sessions);
	tcase_add_test(t, flooded_sessions);
	suite_add_tcase(suite, t);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
