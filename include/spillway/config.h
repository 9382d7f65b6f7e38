/* SPDX-License-Identifier: MIT */
/*
 * Options and environment (contract section 9) from one table, which also
 * makes --help, the names SPILLWAY_*, and the lists that scripts compare
 * with the manual.
 */
#ifndef SPILLWAY_CONFIG_H
#define SPILLWAY_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "spillway/limits.h"
#include "spillway/to_stderr.h"

#define SPILLWAY_VERSION "0.1.0"

enum metrics_form { METRICS_LOGFMT, METRICS_JSON, METRICS_OFF };

struct config {
	struct limits limits;
	const char *spill_dir;	     /* NULL: default */
	enum metrics_form metrics;
	usec_t metrics_interval;     /* USEC_NEVER: only at exit */
	const char *metrics_file;    /* NULL: none */
	enum log_level log_level;
	const char *log_file;	     /* NULL: none */
	bool drop_server_stderr;
	char *const *command;	     /* argv of the server */
};

enum config_result {
	CONFIG_RUN,   /* start the command */
	CONFIG_TEXT,  /* --help, --version, --preset=help: text for stdout */
	CONFIG_WRONG, /* one line for stderr, exit status 2 */
};

/*
 * Environment first, then a preset, then the command line, which wins.
 * CONFIG_TEXT and CONFIG_WRONG put a malloced text (with LF) in *text_r,
 * which the caller frees. Strings in config are borrowed from argv and env.
 */
enum config_result config_read(struct config *, int argc, char *argv[],
    char **text_r);

#endif
