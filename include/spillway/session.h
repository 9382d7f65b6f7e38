/* SPDX-License-Identifier: MIT */
/*
 * One session, from the start of the server to the exit of the proxy: the
 * thin shell of libev, descriptors, signals and processes around the engine.
 */
#ifndef SPILLWAY_SESSION_H
#define SPILLWAY_SESSION_H

#include "spillway/child.h"
#include "spillway/config.h"

/* Exit statuses of our own (contract section 7). */
enum {
	EXIT_USAGE = 2,
	EXIT_PROXY = 125,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

/*
 * Run config's command behind the proxy. Returns its wait status for
 * child_exit_like(); failures of our own are exit statuses in that form, and
 * were told on stderr. Both arguments are borrowed.
 */
int session_run(const struct config *, const struct inherited *);

#endif
