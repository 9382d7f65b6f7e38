/* SPDX-License-Identifier: MIT */
/*
 * The half-closed world: streams that end before the others, in any order.
 * The rows are those of src/README; each is reached in every order, with a
 * request pending and something waiting in both directions.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "rig.h"

#define ENDS 5

enum end { HOST_IN, HOST_OUT, SERVER_IN, SERVER_OUT, CHILD };

struct row {
	unsigned closed; /* bits 1 << enum end */
	char wants[5];
};

static struct row rows[64];
static unsigned n_rows;

/* "\to -   o o   x   HSh-  words" */
static bool
read_row(const char *line, struct row *r)
{
	char in, out, sin, sout, child;

	if (sscanf(line, "\t%c %c   %c %c   %c   %4[HShs-]  ", &in, &out,
	    &sin, &sout, &child, r->wants) != 6 || strchr("o-", in) == NULL ||
	    strchr("ox", child) == NULL)
		return false;
	r->closed = (in == '-') << HOST_IN | (out == '-') << HOST_OUT |
	    (sin == '-') << SERVER_IN | (sout == '-') << SERVER_OUT |
	    (child == 'x') << CHILD;
	return true;
}

static void
read_rows(void)
{
	const char *top = getenv("SPILLWAY_TOP");
	char path[512], line[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/src/README", top != NULL ? top : ".");
	f = fopen(path, "r");
	if (f == NULL)
		ck_abort_msg("no %s", path);
	while (fgets(line, sizeof line, f) != NULL)
		if (n_rows < 64 && read_row(line, &rows[n_rows]))
			n_rows++;
	fclose(f);
}

static void
close_end(struct rig *g, enum end e)
{
	switch (e) {
	case HOST_IN:
		rig_host_eof(g);
		break;
	case HOST_OUT:
		relay_peer_gone(g->r, RELAY_HOST, g->now);
		break;
	case SERVER_IN:
		relay_peer_gone(g->r, RELAY_SERVER, g->now);
		break;
	case SERVER_OUT:
		rig_server_eof(g);
		break;
	case CHILD:
		relay_server_gone(g->r, 0, false, g->now);
		break;
	}
	rig_check(g);
}

static void
check_wants(struct rig *g, const struct row *r, const char *order)
{
	unsigned w = relay_wants(g->r);
	char got[5] = { w & RELAY_READ_HOST ? 'H' : '-',
		w & RELAY_READ_SERVER ? 'S' : '-',
		w & RELAY_WRITE_HOST ? 'h' : '-',
		w & RELAY_WRITE_SERVER ? 's' : '-', '\0' };

	if (strcmp(got, r->wants) != 0)
		ck_abort_msg("row %u closed in the order %s: %s, not %s",
		    r->closed, order, got, r->wants);
}

/* The pending request is answered if the child is gone and the host reads. */
static void
check_answer(struct rig *g, const struct row *r, const char *order)
{
	bool want = (r->closed & 1u << CHILD) != 0 &&
	    (r->closed & 1u << HOST_OUT) == 0;

	if ((r->closed & 1u << HOST_OUT) == 0)
		rig_take(g, RELAY_HOST, SIZE_MAX);
	if (want != (strstr(g->host.p, "\"server_exited\"") != NULL))
		ck_abort_msg("row %u in the order %s: the host got %s",
		    r->closed, order, g->host.p);
}

static void
run_order(const struct row *r, const enum end *order, unsigned n)
{
	static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n"
	    "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n";
	static const char told[] = "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n";
	struct limits limits = rig_limits();
	char name[ENDS + 1];
	struct rig g;

	rig_start(&g, &limits);
	rig_from_host(&g, ask, sizeof ask - 1, false);
	rig_from_server(&g, told, sizeof told - 1, false);
	for (unsigned i = 0; i < n; i++) {
		name[i] = (char)('0' + order[i]);
		close_end(&g, order[i]);
	}
	name[n] = '\0';
	check_wants(&g, r, name);
	check_answer(&g, r, name);
	rig_stop(&g);
}

/* All orders of the ends from at on. */
static void
permute(const struct row *r, enum end *order, unsigned at, unsigned n)
{
	if (at == n) {
		run_order(r, order, n);
		return;
	}
	for (unsigned i = at; i < n; i++) {
		enum end e = order[i];

		order[i] = order[at];
		order[at] = e;
		permute(r, order, at + 1, n);
		order[at] = order[i];
		order[i] = e;
	}
}

START_TEST(every_row_in_every_order)
{
	unsigned seen = 0;

	read_rows();
	ck_assert_uint_eq(n_rows, 32);
	for (unsigned i = 0; i < n_rows; i++) {
		enum end order[ENDS];
		unsigned n = 0;

		for (unsigned e = 0; e < ENDS; e++)
			if ((rows[i].closed & 1u << e) != 0)
				order[n++] = (enum end)e;
		permute(&rows[i], order, 0, n);
		seen |= 1u << rows[i].closed;
	}
	ck_assert_uint_eq(seen, UINT32_MAX);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("half");
	TCase *t = tcase_create("half");
	SRunner *sr = srunner_create(suite);
	int failed;

	tcase_add_test(t, every_row_in_every_order);
	suite_add_tcase(suite, t);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
