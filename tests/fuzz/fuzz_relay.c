/* SPDX-License-Identifier: MIT */
/*
 * The whole engine: the input is a list of steps, each an opcode and maybe
 * bytes up to the next 0xff. Queues and budget are checked at every step;
 * what the host got is whole lines of JSON.
 */
#include <jansson.h>
#include <string.h>

#include "fuzz.h"
#include "kit.h"
#include "rig.h"

static void
check_lines(const struct rig *g)
{
	const char *p = g->host.p, *lf;

	while ((lf = memchr(p, '\n', g->host.n - (size_t)(p - g->host.p))) !=
	    NULL) {
		/* What jansson cannot hold: halves of pairs, huge numbers. */
		bool odd = memmem(p, (size_t)(lf - p), "\\u", 2) != NULL ||
		    memchr(p, 'e', (size_t)(lf - p)) != NULL ||
		    memchr(p, 'E', (size_t)(lf - p)) != NULL || lf - p > 300;
		json_t *root = json_loadb(p, (size_t)(lf - p),
		    JSON_ALLOW_NUL, NULL);

		if (root == NULL && !odd)
			kit_fail("the host got no JSON: %.*s", (int)(lf - p),
			    p);
		json_decref(root);
		p = lf + 1;
	}
}

static void
step(struct rig *g, unsigned op, const uint8_t *p, size_t n)
{
	switch (op % 8) {
	case 0:
	case 1:
		if ((relay_wants(g->r) & RELAY_READ_HOST) != 0)
			rig_from_host(g, p, n, op % 16 < 8);
		break;
	case 2:
	case 3:
	case 4:
		if ((relay_wants(g->r) & RELAY_READ_SERVER) != 0)
			rig_from_server(g, p, n, op % 16 < 8);
		break;
	case 5:
		rig_take(g, op % 16 < 8 ? RELAY_HOST : RELAY_SERVER,
		    (size_t)op);
		break;
	case 6:
		g->probe.host_knows = g->probe.server_knows = true;
		g->probe.host_unread = op / 16;
		rig_pass(g, op * USEC_SEC / 4);
		break;
	case 7:
		rig_take_all(g);
		break;
	}
	rig_check(g);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	struct limits limits = rig_limits();
	struct rig g;

	if (n < 2)
		return 0;
	limits.max_frame = 200 + p[0] * 16u;
	limits.max_content = p[1] % 4 == 0 ? 100u + p[1] : SIZE_OFF;
	limits.memory = 1u << 20;
	limits.spill = p[1] % 2 != 0 ? 1u << 20 : 0;
	limits.strict = p[1] % 16 == 5;
	limits.observe = p[1] % 16 == 6;
	limits.request_timeout = p[1] % 16 == 7 ? USEC_SEC : USEC_NEVER;
	rig_start(&g, &limits);
	for (p += 2; p < end;) {
		unsigned op = *p++;
		const uint8_t *stop = memchr(p, 0xff, (size_t)(end - p));

		if (stop == NULL)
			stop = end;
		if (op % 8 > 4)
			stop = p;
		step(&g, op, p, (size_t)(stop - p));
		p = stop < end && op % 8 <= 4 ? stop + 1 : stop;
	}
	rig_host_eof(&g);
	rig_server_eof(&g);
	relay_server_gone(g.r, 0, true, g.now);
	rig_take_all(&g);
	if (!limits.observe)
		check_lines(&g);
	rig_stop(&g);
	return 0;
}
