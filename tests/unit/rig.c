/* SPDX-License-Identifier: MIT */
/*
 * See rig.h. What a peer takes goes through the same calls as in a session:
 * peek, a copy of as much as it takes, sent.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"

#define PIECES 8

void
bytes_add(struct bytes *b, const void *p, size_t n)
{
	if (b->n + n + 1 > b->cap) {
		b->cap = (b->n + n + 1) * 2;
		b->p = realloc(b->p, b->cap);
		if (b->p == NULL)
			kit_fail("no memory");
	}
	if (n > 0)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
}

void
bytes_free(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes) { 0 };
}

static int
block_put(void *arg, uint32_t block, const void *bytes)
{
	struct rig *g = arg;

	if (block >= g->n_blocks)
		kit_fail("block %u of %u", block, g->n_blocks);
	if (g->blocks[block] == NULL)
		g->blocks[block] = malloc(SPILL_BLOCK);
	if (g->blocks[block] == NULL)
		return -1;
	memcpy(g->blocks[block], bytes, SPILL_BLOCK);
	return 0;
}

static int
block_get(void *arg, uint32_t block, size_t off, void *to, size_t n)
{
	struct rig *g = arg;

	if (block >= g->n_blocks || g->blocks[block] == NULL)
		kit_fail("block %u was never put", block);
	memcpy(to, g->blocks[block] + off, n);
	return 0;
}

static void
block_drop(void *arg, uint32_t block)
{
	struct rig *g = arg;

	free(g->blocks[block]);
	g->blocks[block] = NULL;
}

struct limits
rig_limits(void)
{
	return (struct limits) {
		.max_frame = 10420224,
		.max_content = SIZE_OFF,
		.max_depth = 512,
		.memory = 4u << 20,
		.stall_timeout = 30 * USEC_SEC,
		.request_timeout = USEC_NEVER,
		.cancel_grace = USEC_NEVER,
		.stop_grace = 2 * USEC_SEC,
		.cancel = true,
	};
}

void
rig_start(struct rig *g, const struct limits *limits)
{
	struct stderr_options o = { .level = LOG_LEVEL_INFO };
	struct store_ops ops = { block_put, block_get, block_drop, g };

	*g = (struct rig) { .limits = *limits, .now = 1000 * USEC_SEC };
	g->n_blocks = (uint32_t)(limits->spill / SPILL_BLOCK);
	g->blocks = calloc(g->n_blocks + 1, sizeof *g->blocks);
	g->err = to_stderr_new(&o);
	if (g->blocks == NULL || g->err == NULL)
		kit_fail("no memory");
	g->r = relay_new(limits, limits->spill > 0 ? &ops : NULL, g->err,
	    0x5eed, g->now);
	if (g->r == NULL)
		kit_fail("no engine");
	bytes_add(&g->host, "", 0);
	bytes_add(&g->server, "", 0);
	bytes_add(&g->told, "", 0);
}

void
rig_stop(struct rig *g)
{
	relay_free(&g->r);
	to_stderr_free(&g->err);
	for (uint32_t i = 0; i < g->n_blocks; i++)
		free(g->blocks[i]);
	free(g->blocks);
	bytes_free(&g->host);
	bytes_free(&g->server);
	bytes_free(&g->told);
}

void
rig_check(struct rig *g)
{
	const char *bad = queue_check(g->r->host_queue);

	if (bad == NULL)
		bad = queue_check(g->r->server_queue);
	if (bad == NULL && budget_heap(g->r->budget) > g->limits.memory)
		bad = "more heap than --memory";
	if (bad == NULL && budget_disk(g->r->budget) > g->limits.spill)
		bad = "more disk than --spill";
	if (bad != NULL)
		kit_fail("%s", bad);
}

size_t
rig_take(struct rig *g, enum relay_peer peer, size_t n)
{
	struct bytes *to = peer == RELAY_HOST ? &g->host : &g->server;
	struct iovec iov[PIECES];
	size_t all = 0;
	int pieces;

	while (n > 0 && (pieces = relay_peek(g->r, peer, iov, PIECES)) > 0) {
		size_t took = 0;

		for (int i = 0; i < pieces && n > 0; i++) {
			size_t k = iov[i].iov_len < n ? iov[i].iov_len : n;

			bytes_add(to, iov[i].iov_base, k);
			took += k;
			n -= k;
		}
		relay_sent(g->r, peer, took, g->now);
		all += took;
	}
	return all;
}

void
rig_take_all(struct rig *g)
{
	rig_take(g, RELAY_HOST, SIZE_MAX);
	rig_take(g, RELAY_SERVER, SIZE_MAX);
	rig_check(g);
}

static void
after(struct rig *g, bool reads)
{
	rig_check(g);
	if (reads)
		rig_take_all(g);
	relay_settle(g->r, RELAY_HOST);
	relay_settle(g->r, RELAY_SERVER);
	rig_check(g);
}

void
rig_from_host(struct rig *g, const void *p, size_t n, bool reads)
{
	relay_host_bytes(g->r, p, n, g->now);
	after(g, reads);
}

void
rig_from_server(struct rig *g, const void *p, size_t n, bool reads)
{
	relay_server_bytes(g->r, p, n, g->now);
	after(g, reads);
}

void
rig_host_eof(struct rig *g)
{
	relay_host_eof(g->r, g->now);
	after(g, false);
}

void
rig_server_eof(struct rig *g)
{
	relay_server_eof(g->r, g->now);
	after(g, false);
}

void
rig_pass(struct rig *g, usec_t time)
{
	usec_t end = g->now + time, next = relay_deadline(g->r);

	while (next <= end) {
		if (next > g->now)
			g->now = next;
		next = relay_tick(g->r, &g->probe, g->now);
		rig_check(g);
		if (next <= g->now) /* it waits for the server's bytes */
			next = g->now + 10 * USEC_MSEC;
	}
	g->now = end;
	relay_tick(g->r, &g->probe, g->now);
}

const char *
rig_told(struct rig *g)
{
	struct iovec iov[PIECES];
	int pieces;

	to_stderr_tick(g->err, USEC_NEVER);
	while ((pieces = to_stderr_peek(g->err, iov, PIECES)) > 0) {
		size_t n = 0;

		for (int i = 0; i < pieces; i++) {
			bytes_add(&g->told, iov[i].iov_base, iov[i].iov_len);
			n += iov[i].iov_len;
		}
		to_stderr_sent(g->err, n);
	}
	return g->told.p;
}

void
rig_figures(struct rig *g, const char *want, const char *what)
{
	char all[4096], word[128];
	size_t n;

	all[0] = ' ';
	n = metrics_logfmt(relay_metrics(g->r, g->now), all + 1,
	    sizeof all - 3) + 1;
	memcpy(all + n, " ", 2);
	for (const char *p = want; *p != '\0'; p += n) {
		p += strspn(p, " ");
		n = strcspn(p, " ");
		snprintf(word, sizeof word, " %.*s ", (int)n, p);
		if (n > 0 && strstr(all, word) == NULL)
			kit_fail("%s: no%sin:%s", what, word, all);
	}
}

bool
rig_matches(const char *pattern, const char *text)
{
	for (; *pattern != '\0'; pattern++, text++) {
		if (*pattern != '\1') {
			if (*pattern != *text)
				return false;
			continue;
		}
		for (;; text++) {
			if (rig_matches(pattern + 1, text))
				return true;
			if (*text == '\n' || *text == '\0')
				return false;
		}
	}
	return *text == '\0';
}
