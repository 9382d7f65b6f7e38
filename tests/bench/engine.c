/* SPDX-License-Identifier: MIT */
/*
 * The engine alone, without pipes: what one core needs to scan, and to scan,
 * judge and relay, some kinds of traffic. Best of a few rounds, CPU time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spillway/relay.h"
#include "spillway/scan.h"

#define READ 65536
#define TOTAL (64u << 20)
#define ROUNDS 5

struct traffic {
	const char *name;
	const char *head;
	const char *unit; /* repeated up to size */
	const char *tail;
	size_t size;
};

static const struct traffic traffic[] = {
	{ "base64", "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":\"",
	    "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2",
	    "\"}\n", 1u << 20 },
	{ "source", "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":\"",
	    "\\tif (x == \\\"y\\\")\\n\\t\\treturn value(of_this, and_that);\\n",
	    "\"}\n", 1u << 20 },
	{ "cjk", "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":\"",
	    "\xe6\xbc\xa2\xe5\xad\x97\xe3\x81\x8b\xe3\x81\xaa", "\"}\n",
	    1u << 20 },
	{ "structured", "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[0",
	    ",{\"path\":\"src/a.c\",\"line\":120,\"ok\":true,\"at\":[1.5,-2]}",
	    "]}\n", 1u << 20 },
	{ "small", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\","
	    "\"params\":{\"seq\":1000000000,\"d\":\"",
	    "The quick brown fox jumps over 13 lazy dogs, then rests.\\n\\t",
	    "\"}}\n", 200 },
	{ "progress", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\""
	    ",\"params\":{\"progressToken\":7,\"progress\":5,\"message\":\"",
	    "x", "\"}}\n", 160 },
};

static void
fail(const char *what)
{
	fprintf(stderr, "engine: %s\n", what);
	exit(1);
}

/* Whole frames of a kind, TOTAL bytes or a little less. */
static char *
make(const struct traffic *t, size_t *n_r)
{
	size_t unit = strlen(t->unit), head = strlen(t->head);
	size_t tail = strlen(t->tail), n = 0;
	char *p = malloc(TOTAL);

	if (p == NULL)
		fail("no memory");
	while (n + t->size + unit <= TOTAL) {
		size_t from = n;

		memcpy(p + n, t->head, head);
		n += head;
		while (n - from + unit + tail <= t->size) {
			memcpy(p + n, t->unit, unit);
			n += unit;
		}
		memcpy(p + n, t->tail, tail);
		n += tail;
	}
	*n_r = n;
	return p;
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void
no_event(void *arg, struct scan *s, enum scan_event e, uint64_t off)
{
	(void)arg, (void)s, (void)e, (void)off;
}

static void
no_edit(void *arg, uint64_t off, unsigned len, const char *with, unsigned n)
{
	(void)arg, (void)off, (void)len, (void)with, (void)n;
}

static void
scan_all(const char *p, size_t n)
{
	struct scan_sink sink = { no_event, no_edit, NULL, true };
	uint8_t stack[128];
	struct scan s;
	size_t used;

	while (n > 0) {
		enum scan_status st;

		scan_init(&s, &sink, stack, 512);
		s.watch = 1;
		st = scan_feed(&s, p, n, &used);
		if (st != SCAN_DONE)
			fail("the scanner refuses its input");
		p += used + 1;
		n -= used + 1;
	}
}

static void
relay_all(const char *p, size_t n)
{
	struct limits limits = { .max_frame = 10420224,
		.max_content = SIZE_OFF, .max_depth = 512,
		.memory = 32u << 20, .stall_timeout = USEC_NEVER,
		.request_timeout = USEC_NEVER, .cancel_grace = USEC_NEVER };
	struct stderr_options o = { .level = LOG_LEVEL_INFO };
	struct to_stderr *err = to_stderr_new(&o);
	struct relay *r = relay_new(&limits, NULL, err, 1, 1);
	struct iovec iov[64];
	size_t out = 0, all = n;

	if (err == NULL || r == NULL)
		fail("no memory");
	while (n > 0) {
		size_t k = n < READ ? n : READ;
		int pieces;

		relay_server_bytes(r, p, k, 2);
		while ((pieces = relay_peek(r, RELAY_HOST, iov, 64)) > 0) {
			size_t got = 0;

			for (int i = 0; i < pieces; i++)
				got += iov[i].iov_len;
			relay_sent(r, RELAY_HOST, got, 2);
			out += got;
		}
		relay_settle(r, RELAY_HOST);
		p += k;
		n -= k;
	}
	if (out != all)
		fail("the engine keeps bytes back");
	relay_free(&r);
	to_stderr_free(&err);
}

static double
best(void (*f)(const char *, size_t), const char *p, size_t n)
{
	double least = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		double start = now(), took;

		f(p, n);
		took = now() - start;
		if (took < least)
			least = took;
	}
	return least;
}

/* Arguments name the kinds that are wanted; none: all. */
static bool
wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 1;
}

int
main(int argc, char **argv)
{
	static const char *const kernels[] = { "scalar", "swar", "sse2",
		"neon", "avx2" };

	printf("%-11s", "GB/s");
	for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
		if (scan_set_kernel(kernels[k]))
			printf("%9s", kernels[k]);
	printf("%9s  frames/s\n", "relayed");
	for (size_t i = 0; i < sizeof traffic / sizeof traffic[0]; i++) {
		size_t n;
		char *p;
		double took;

		if (!wanted(traffic[i].name, argc, argv))
			continue;
		p = make(&traffic[i], &n);
		printf("%-11s", traffic[i].name);
		for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
			if (scan_set_kernel(kernels[k]))
				printf("%9.2f", (double)n / 1e9 /
				    best(scan_all, p, n));
		took = best(relay_all, p, n);
		printf("%9.2f  %.0f\n", (double)n / 1e9 / took,
		    (double)n / (double)traffic[i].size / took);
		free(p);
	}
	return 0;
}
