/* SPDX-License-Identifier: MIT */
/*
 * From argv to an exit status.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/child.h"
#include "spillway/config.h"
#include "spillway/session.h"

/* Frames come and go by the megabyte: what is free goes back to the system. */
static void
tune_malloc(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);
	mallopt(M_TOP_PAD, 64 * 1024);
}

static int
show(const char *text, FILE *to, int status)
{
	if (text == NULL)
		text = "spillway: error: out of memory\n";
	if (fputs(text, to) == EOF || fflush(to) == EOF)
		status = EXIT_PROXY;
	return status;
}

int
main(int argc, char *argv[])
{
	static struct inherited inherited;
	struct config config;
	char *text = NULL;
	int status = EXIT_PROXY;

	if (inherited_save(&inherited) != 0) {
		perror("spillway: error: cannot begin");
		return EXIT_PROXY;
	}
	tune_malloc();
	switch (config_read(&config, argc, argv, &text)) {
	case CONFIG_RUN:
		child_exit_like(session_run(&config, &inherited));
	case CONFIG_TEXT:
		status = show(text, stdout, 0);
		break;
	case CONFIG_WRONG:
		status = show(text, stderr, EXIT_USAGE);
		break;
	}
	free(text);
	return status;
}
