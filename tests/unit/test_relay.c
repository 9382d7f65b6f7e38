/* SPDX-License-Identifier: MIT */
/*
 * The rules of contract sections 2 to 6 as stories: who says what, what the
 * other side gets for it, and what is counted. In what is got, \1 stands for
 * any bytes of a line.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "rig.h"

#define J "{\"jsonrpc\":\"2.0\","
#define CALL(id) J "\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}\n"
#define ASK(id, method) J "\"id\":" id ",\"method\":\"" method "\"}\n"
#define TOLD(method, params) J "\"method\":\"" method "\",\"params\":" params "}\n"
#define RESULT(id) J "\"id\":" id ",\"result\":{}}\n"
#define TEXT(id, t) J "\"id\":" id ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"" t "\"}]}}\n"
#define FAILED(id) J "\"id\":" id ",\"error\":{\"code\":-1,\"message\":\"\"}}\n"
#define OURS(id, code) J "\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"\1\n"
#define CANCEL(id) TOLD("notifications/cancelled", "{\"requestId\":" id ",\"reason\":\"\1\"}")
#define PROGRESS(token, n) TOLD("notifications/progress", "{\"progressToken\":" token ",\"progress\":" n "}")
#define LOG(t) TOLD("notifications/message", "{\"level\":\"info\",\"data\":\"" t "\"}")
#define X8(t) t t t t t t t t
#define X64(t) X8(X8(t))
#define X512(t) X8(X64(t))
#define K4 X512("12345678")

enum what {
	END,
	HOST,	     /* says */
	SERVER,
	HOST_GOT,    /* since it was last asked */
	SERVER_GOT,
	DEAF,	     /* the host reads nothing from here on */
	HEARS,	     /* it reads again */
	PASS,	     /* so many ms */
	FIGURES,
	STDERR,	     /* says so, somewhere */
	EXITS,	     /* the server, with this wait status */
	HOST_EOF,
	SERVER_EOF,
};

struct act {
	enum what what;
	const char *text;
};

struct story {
	const char *name;
	struct act acts[24];
	uint64_t max_frame; /* limits that are not the usual ones */
	uint64_t memory;
	uint64_t max_content;
	usec_t timeout;
	usec_t grace;
	uint32_t max_depth;
	bool no_cancel;
	bool strict;
	bool observe;
};

#define USUAL .no_cancel = false

static const struct story stories[] = {
{ "a reply to an id nobody asked for", {
	{ SERVER, RESULT("7") }, { HOST_GOT, "" },
	{ FIGURES, "replies_suppressed=1 frames_to_host=0" } }, USUAL },
{ "a second reply", {
	{ HOST, ASK("1", "x") }, { SERVER, RESULT("1") RESULT("1.0") },
	{ HOST_GOT, RESULT("1") }, { FIGURES, "replies_suppressed=1" } }, USUAL },
{ "an error without an id", {
	{ HOST, ASK("\"a\"", "x") }, { SERVER, FAILED("null")
	J "\"error\":{\"code\":1,\"message\":\"\"}}\n" }, { HOST_GOT, "" },
	{ STDERR, "pending=\"a\"" }, { FIGURES, "replies_suppressed=2" } }, USUAL },
{ "a cancelled request", {
	{ HOST, CALL("1") TOLD("notifications/cancelled", "{\"requestId\":1}") },
	{ SERVER, RESULT("1") }, { HOST_GOT, "" },
	{ SERVER_GOT, CALL("1") TOLD("notifications/cancelled",
	"{\"requestId\":1}") },
	{ FIGURES, "replies_suppressed=1 requests_pending=0 cancels_sent=0" } }, USUAL },
{ "the server's own request, cancelled by it", {
	{ SERVER, ASK("5", "roots/list") TOLD("notifications/cancelled",
	"{\"requestId\":5}") }, { HOST_GOT, ASK("5", "roots/list")
	TOLD("notifications/cancelled", "{\"requestId\":5}") },
	{ FIGURES, "requests_pending=0" } }, USUAL },
{ "progress after the reply", {
	{ HOST, J "\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{"
	"\"progressToken\":\"p\"}}}\n" },
	{ SERVER, PROGRESS("\"p\"", "1") RESULT("1") PROGRESS("\"p\"", "2")
	PROGRESS("\"q\"", "1") },
	{ HOST_GOT, PROGRESS("\"p\"", "1") RESULT("1") PROGRESS("\"q\"", "1") },
	{ FIGURES, "progress_suppressed=1" } }, USUAL },
{ "a token used again", {
	{ HOST, J "\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{"
	"\"progressToken\":0}}}\n" }, { SERVER, RESULT("1") },
	{ HOST, J "\"id\":2,\"method\":\"x\",\"params\":{\"_meta\":{"
	"\"progressToken\":0}}}\n" }, { SERVER, PROGRESS("0", "1") },
	{ HOST_GOT, RESULT("1") PROGRESS("0", "1") } }, USUAL },
{ "a batch of the host's, and the server's", {
	{ HOST, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"},{\"jsonrpc\":"
	"\"2.0\",\"id\":2,\"method\":\"y\"},{\"jsonrpc\":\"2.0\",\"method\":\"n\"}]\n" },
	{ FIGURES, "requests_pending=2" },
	{ SERVER, "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},{\"jsonrpc\":"
	"\"2.0\",\"id\":9,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":3,"
	"\"method\":\"ping\"}]\n" },
	{ HOST_GOT, "[\1]\n" }, { FIGURES, "requests_pending=2" },
	{ HOST, "[{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}]\n" },
	{ FIGURES, "requests_pending=1" },
	{ SERVER, RESULT("1") }, { HOST_GOT, RESULT("1") },
	{ FIGURES, "requests_pending=0 replies_suppressed=0" } }, USUAL },
{ "what is no batch", {
	{ HOST, ASK("1", "x") },
	{ SERVER, "[" J "\"method\":\"n\"},7]\n[" J "\"method\":\"n\"},\"s\"]\n["
	J "\"method\":\"n\"},[]]\n[" J "\"method\":\"n\"},{}]\n[]\n[1]\n" },
	{ HOST_GOT, "" }, { FIGURES, "junk_lines=6" } }, USUAL },
{ "a batch nobody waits for", {
	{ SERVER, "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]\n" },
	{ HOST_GOT, "" }, { FIGURES, "replies_suppressed=1" } }, USUAL },
{ "a batch over the frame limit", {
	{ HOST, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"},{\"jsonrpc\":"
	"\"2.0\",\"id\":2,\"method\":\"y\"}]\n" },
	{ SERVER, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"" K4
	"\"}},{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},{\"jsonrpc\":\"2.0\","
	"\"id\":\"s\",\"method\":\"ping\"}]\n" },
	{ HOST_GOT, OURS("1", "-31010") OURS("2", "-31010") },
	{ SERVER_GOT, "[\1]\n" OURS("\"s\"", "-31010") },
	{ FIGURES, "oversize_frames=1 requests_pending=0" } }, .max_frame = 4000 },
{ "a batch of the host's over it", {
	{ SERVER, ASK("\"s\"", "ping") },
	{ HOST, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"t\":"
	"\"" K4 "\"}},{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{}}]\n" },
	{ HOST_GOT, ASK("\"s\"", "ping") OURS("1", "-31010") },
	{ SERVER_GOT, OURS("\"s\"", "-31010") },
	{ FIGURES, "oversize_frames=1 requests_pending=0" } }, .max_frame = 4000 },
{ "the host's frames over it, one by one", {
	{ SERVER, ASK("\"s\"", "ping") },
	{ HOST, J "\"id\":1,\"method\":\"" K4 "\"}\n" J "\"method\":\"" K4 "\"}\n"
	J "\"id\":\"s\",\"result\":\"" K4 "\"}\n" J "\"id\":\"z\",\"result\":\"" K4
	"\"}\n" K4 "\n" },
	{ HOST_GOT, ASK("\"s\"", "ping") OURS("1", "-31010") },
	{ SERVER_GOT, OURS("\"s\"", "-31010") },
	{ FIGURES, "oversize_frames=5 requests_pending=0" } }, .max_frame = 4000 },
{ "the server's frames over it, one by one", {
	{ HOST, ASK("1", "resources/read") CALL("2") },
	{ SERVER, J "\"id\":1,\"result\":\"" K4 "\"}\n" J "\"id\":2,\"result\":\"" K4
	"\"}\n" J "\"method\":\"" K4 "\"}\n" J "\"id\":3,\"method\":\"" K4 "\"}\n"
	J "\"id\":4,\"result\":\"" K4 "\"}\n" },
	{ HOST_GOT, OURS("1", "-31010") J "\"id\":2,\"result\":{\1isError\1\n" },
	{ SERVER_GOT, ASK("1", "resources/read") CALL("2")
	OURS("3", "-31010") },
	{ FIGURES, "oversize_frames=5 notifications_dropped=1 "
	"replies_suppressed=1 replies_synthesized=2" } }, .max_frame = 4000 },
{ "initialize over it", {
	{ HOST, ASK("0", "initialize") }, { SERVER, J "\"id\":0,\"result\":\"" K4
	"\"}\n" }, { HOST_GOT, "" }, { STDERR, "raise --max-frame" } },
	.max_frame = 4000 },
{ "too deep", {
	{ HOST, ASK("1", "x") ASK("2", "x") }, { SERVER, J "\"id\":1,\"result\":"
	"[[[[1]]]]}\n" J "\"id\":2,\"result\":[[1]]}\n" },
	{ HOST_GOT, OURS("1", "-31010") J "\"id\":2,\"result\":[[1]]}\n" },
	{ HOST, J "\"id\":3,\"method\":\"x\",\"params\":[[[[1]]]]}\n" },
	{ HOST_GOT, OURS("3", "-31010") },
	{ FIGURES, "oversize_frames=2" } }, .max_depth = 3 },
{ "what cannot be repaired", {
	{ HOST, ASK("1", "x") ASK("2", "x") }, { SERVER, J "\"id\":1,\"result\":"
	"{,}}\n" "{\"id\":2,\"result\":\n" },
	{ HOST_GOT, OURS("1", "-31011") OURS("2", "-31011") },
	{ FIGURES, "parse_failures=2 requests_pending=0" } }, USUAL },
{ "--strict repairs nothing", {
	{ HOST, ASK("1", "x") ASK("2", "x") ASK("3", "x") },
	{ SERVER, J "\"id\":1,\"result\":NaN}\n" J "\"id\":2,\"result\":1}\r\n"
	"text " RESULT("3") },
	{ HOST_GOT, OURS("1", "-31011") OURS("2", "-31011") },
	{ FIGURES, "repairs=0 requests_pending=1" } }, .strict = true },
{ "repairs", {
	{ HOST, ASK("1", "x") ASK("2", "x") ASK("3", "x") ASK("4", "x") },
	{ SERVER, J "\"id\":1,\"result\":[NaN,-Infinity]}\n" J "\"id\":2,"
	"\"result\":\"\xff\"}\r\n" "text " RESULT("3") "\xef\xbb\xbf" RESULT("4") },
	{ HOST_GOT, J "\"id\":1,\"result\":[null,null]}\n" J "\"id\":2,"
	"\"result\":\"\xef\xbf\xbd\"}\n" RESULT("3") RESULT("4") },
	{ FIGURES, "repairs=4 requests_pending=0" } }, USUAL },
{ "Content-Length from the server", {
	{ HOST, ASK("1", "x") }, { SERVER, "Content-Length: 37\r\n"
	"Content-Type: a\r\n\r\n" "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}" },
	{ HOST_GOT, J " \"id\":1,\"result\":{}}\n" } }, USUAL },
{ "Content-Length from the host", {
	{ HOST, "Content-Length: 38\r\n\r\n" "{\"jsonrpc\":\"2.0\",\"id\":1,"
	"\"method\":\"x\"} " }, { FIGURES, "requests_pending=1" },
	{ SERVER, RESULT("1") }, { HOST_GOT, RESULT("1") } }, USUAL },
{ "the host stalls, and reads again", {
	{ HOST, CALL("1") CALL("2") }, { SERVER_GOT, CALL("1") CALL("2") },
	{ DEAF, "" }, { SERVER, LOG("unread") }, { PASS, "29000" },
	{ SERVER_GOT, "" }, { PASS, "3000" },
	{ SERVER_GOT, CANCEL("2") CANCEL("1") },
	{ FIGURES, "host_stalls=1 cancels_sent=2 verdict=host_stalled" },
	{ SERVER, RESULT("2") }, { HEARS, "" },
	{ HOST_GOT, LOG("unread") OURS("1", "-31012") RESULT("2") },
	{ SERVER, RESULT("1") }, { HOST_GOT, "" }, { PASS, "2000" },
	{ HOST, ASK("3", "ping") }, { SERVER, RESULT("3") },
	{ HOST_GOT, RESULT("3") },
	{ FIGURES, "host_stalls=1 verdict=ok requests_pending=0 "
	"replies_synthesized=1 replies_suppressed=1" } }, USUAL },
{ "--cancel=off answers all the same", {
	{ HOST, CALL("1") }, { SERVER_GOT, CALL("1") }, { DEAF, "" },
	{ SERVER, LOG("unread") }, { PASS, "32000" }, { SERVER_GOT, "" },
	{ HEARS, "" }, { HOST_GOT, LOG("unread") OURS("1", "-31012") } },
	.no_cancel = true },
{ "what must not be cancelled", {
	{ HOST, ASK("0", "initialize") ASK("1", "server/discover")
	ASK("2", "subscriptions/listen") J "\"id\":3,\"method\":\"tools/call\","
	"\"params\":{\"task\":{}}}\n" ASK("4", "x") ASK("4", "x") },
	{ SERVER_GOT, ASK("0", "initialize") "\1\n\1\n\1\n\1\n\1\n" },
	{ DEAF, "" }, { SERVER, LOG("unread") }, { PASS, "32000" },
	{ SERVER_GOT, "" }, { FIGURES, "host_stalls=1 cancels_sent=0" },
	{ HEARS, "" }, { HOST_GOT, LOG("unread") } }, USUAL },
{ "a person is asked", {
	{ HOST, CALL("1") }, { SERVER_GOT, CALL("1") },
	{ SERVER, ASK("9", "elicitation/create") },
	{ HOST_GOT, ASK("9", "elicitation/create") }, { DEAF, "" },
	{ SERVER, LOG("unread") }, { PASS, "40000" }, { SERVER_GOT, "" },
	{ FIGURES, "host_stalls=1 cancels_sent=0" } }, USUAL },
{ "a modern request is cancelled with its keys", {
	{ HOST, J "\"id\":\"m\",\"method\":\"tools/call\",\"params\":{\"_meta\":{"
	"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"x\":1,"
	"\"io.modelcontextprotocol/clientInfo\":{\"name\":\"h\"}}}}\n" },
	{ SERVER_GOT, "\1\n" }, { DEAF, "" }, { SERVER, LOG("unread") },
	{ PASS, "32000" }, { SERVER_GOT, J "\"method\":"
	"\"notifications/cancelled\",\"params\":{\"requestId\":\"m\",\1"
	"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\1"
	"\"io.modelcontextprotocol/clientInfo\":{\"name\":\"h\"}\1\n" } }, USUAL },
{ "a deadline, and progress that moves it", {
	{ HOST, J "\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{"
	"\"progressToken\":1}}}\n" }, { SERVER_GOT, "\1\n" }, { PASS, "4000" },
	{ SERVER, PROGRESS("1", "1") }, { HOST_GOT, PROGRESS("1", "1") },
	{ PASS, "4000" }, { SERVER_GOT, "" }, { PASS, "1500" },
	{ SERVER_GOT, CANCEL("1") }, { DEAF, "" }, { HEARS, "" },
	{ HOST_GOT, OURS("1", "-31013") }, { SERVER, RESULT("1") },
	{ HOST_GOT, "" }, { FIGURES, "host_stalls=0 cancels_sent=1" } },
	.timeout = 5 * USEC_SEC },
{ "the server dies", {
	{ HOST, CALL("1") ASK("\"b\"", "x") }, { SERVER, J "\"id\":1,\"resu" },
	{ EXITS, "9" }, { HOST_GOT, OURS("1", "-31014") OURS("\"b\"", "-31014") },
	{ FIGURES, "requests_pending=0 verdict=server_gone parse_failures=1" } }, USUAL },
{ "the last line lacks its LF", {
	{ HOST, ASK("1", "x") }, { SERVER, J "\"id\":1,\"result\":{}}" },
	{ HOST_GOT, "" }, { SERVER_EOF, "" }, { HOST_GOT, RESULT("1") },
	{ FIGURES, "repairs=1 requests_pending=0" } }, USUAL },
{ "the host's last line lacks it", {
	{ HOST, J "\"method\":\"n\"}" }, { HOST_EOF, "" },
	{ SERVER_GOT, J "\"method\":\"n\"}" } }, USUAL },
{ "logs are dropped, progress is coalesced", {
	{ HOST, CALL("1") }, { SERVER_GOT, CALL("1") }, { DEAF, "" },
	{ SERVER, PROGRESS("9", "1") TOLD("notifications/tools/list_changed", "{}")
	X64(LOG(K4)) PROGRESS("9", "2")
	TOLD("notifications/tools/list_changed", "{}") X64(LOG(K4)) },
	{ SERVER, RESULT("1") }, { HEARS, "" },
	{ FIGURES, "notifications_coalesced=2 requests_pending=0 "
	"replies_synthesized=0" } }, .memory = 1u << 19 },
{ "the largest reply is shed", {
	{ HOST, CALL("1") CALL("2") ASK("3", "x") }, { DEAF, "" },
	{ SERVER, TEXT("1", "small") TEXT("2", X64(K4)) },
	{ SERVER, J "\"id\":3,\"result\":\"" X8(K4) X8(K4) "\"}\n" },
	{ HEARS, "" }, { HOST_GOT, TEXT("1", "small") OURS("2", "-31015")
	J "\"id\":3,\"result\":\"\1\"}\n" }, { FIGURES, "replies_synthesized=1" } },
	.memory = 1u << 19, .max_frame = 1u << 20 },
{ "--cancel-grace ends a session", {
	{ HOST, CALL("1") }, { SERVER_GOT, CALL("1") },
	{ SERVER, J "\"id\":1,\"result\":{\"content\":[\"" K4 },
	{ SERVER_GOT, CANCEL("1") }, { SERVER, K4 }, { PASS, "6000" },
	{ SERVER, K4 }, { STDERR, "past --cancel-grace" } },
	.max_frame = 4000, .grace = 5 * USEC_SEC },
{ "a cut, and a tool that may have more", {
	{ HOST, ASK("1", "tools/list") }, { SERVER, J "\"id\":1,\"result\":{\"tools\":"
	"[{\"name\":\"big\",\"_meta\":{\"anthropic/maxResultSizeChars\":9000}}]}}\n" },
	{ HOST, CALL("2") J "\"id\":3,\"method\":\"tools/call\",\"params\":{"
	"\"name\":\"big\"}}\n" }, { SERVER, TEXT("2", K4) TEXT("3", K4) },
	{ HOST_GOT, "\1\n" J "\"id\":2,\1spillway/cut\1\n" TEXT("3", K4) },
	{ SERVER, TOLD("notifications/tools/list_changed", "{}") },
	{ HOST, J "\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"big\"}}\n" },
	{ SERVER, TEXT("4", K4) },
	{ HOST_GOT, "\1\n" J "\"id\":4,\1spillway/cut\1\n" },
	{ FIGURES, "results_cut=2" } }, .max_content = 2000 },
{ "--observe changes nothing and counts", {
	{ HOST, CALL("1") CALL("2") }, { SERVER, TEXT("1", K4) "junk\n"
	RESULT("7") J "\"id\":2,\"result\":NaN}\n" },
	{ SERVER, PROGRESS("1", "1") },
	{ FIGURES, "results_cut=1 junk_lines=1 replies_suppressed=1 "
	"repairs=1 frames_to_host=4" } }, .max_content = 2000, .observe = true },
{ "silence is the server's", {
	{ HOST, CALL("1") }, { PASS, "6000" },
	{ FIGURES, "verdict=server_silent" }, { SERVER, J "\"id\":1" },
	{ FIGURES, "verdict=ok" }, { PASS, "6000" },
	{ FIGURES, "verdict=server_stalled" } }, USUAL },
};

#undef USUAL
#define STORIES (sizeof stories / sizeof *stories)

struct teller {
	struct rig g;
	const struct story *s;
	size_t host_read;
	size_t server_read;
	bool deaf;
};

static void
got(const struct teller *t, const char *who, const struct bytes *b,
    size_t *from, const char *want)
{
	if (!rig_matches(want, b->p + *from))
		ck_abort_msg("%s: the %s got\n%.600s\nnot\n%.600s",
		    t->s->name, who, b->p + *from, want);
	*from = b->n;
}

static void
hear(struct teller *t)
{
	t->deaf = false;
	rig_take_all(&t->g);
	t->g.probe = (struct relay_probe) { .host_knows = true };
}

static void
say(struct teller *t, enum what who, const char *text)
{
	size_t n = strlen(text);

	if (who == HOST)
		rig_from_host(&t->g, text, n, false);
	else
		rig_from_server(&t->g, text, n, false);
	if (!t->deaf)
		rig_take(&t->g, RELAY_HOST, SIZE_MAX);
	rig_take(&t->g, RELAY_SERVER, SIZE_MAX);
}

static void
pass(struct teller *t, const char *ms)
{
	rig_pass(&t->g, strtoul(ms, NULL, 10) * USEC_MSEC);
	if (!t->deaf)
		rig_take(&t->g, RELAY_HOST, SIZE_MAX);
	rig_take(&t->g, RELAY_SERVER, SIZE_MAX);
}

static void
exits(struct teller *t, const char *status)
{
	relay_server_gone(t->g.r, atoi(status), false, t->g.now);
	rig_take_all(&t->g);
}

static void
play(struct teller *t, const struct act *a)
{
	switch (a->what) {
	case HOST:
	case SERVER:
		say(t, a->what, a->text);
		break;
	case HOST_GOT:
		got(t, "host", &t->g.host, &t->host_read, a->text);
		break;
	case SERVER_GOT:
		got(t, "server", &t->g.server, &t->server_read, a->text);
		break;
	case DEAF:
		t->deaf = true;
		break;
	case HEARS:
		hear(t);
		break;
	case PASS:
		pass(t, a->text);
		break;
	case FIGURES:
		rig_figures(&t->g, a->text, t->s->name);
		break;
	case STDERR:
		if (strstr(rig_told(&t->g), a->text) == NULL)
			ck_abort_msg("%s: no %s in %s", t->s->name, a->text,
			    t->g.told.p);
		break;
	case EXITS:
		exits(t, a->text);
		break;
	case HOST_EOF:
		rig_host_eof(&t->g);
		rig_take_all(&t->g);
		break;
	case SERVER_EOF:
		rig_server_eof(&t->g);
		rig_take_all(&t->g);
		break;
	case END:
		break;
	}
	rig_check(&t->g);
}

START_TEST(stories_hold)
{
	struct teller t = { .s = &stories[_i] };
	struct limits limits = rig_limits();

	if (t.s->max_frame > 0)
		limits.max_frame = t.s->max_frame;
	if (t.s->memory > 0)
		limits.memory = t.s->memory;
	if (t.s->max_content > 0)
		limits.max_content = t.s->max_content;
	if (t.s->timeout > 0)
		limits.request_timeout = t.s->timeout;
	if (t.s->grace > 0)
		limits.cancel_grace = t.s->grace;
	if (t.s->max_depth > 0)
		limits.max_depth = t.s->max_depth;
	limits.cancel = !t.s->no_cancel;
	limits.strict = t.s->strict;
	limits.observe = t.s->observe;
	rig_start(&t.g, &limits);
	for (const struct act *a = t.s->acts; a->what != END; a++)
		play(&t, a);
	rig_stop(&t.g);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("relay");
	TCase *t = tcase_create("stories");
	SRunner *sr = srunner_create(suite);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, stories_hold, 0, (int)STORIES);
	suite_add_tcase(suite, t);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
