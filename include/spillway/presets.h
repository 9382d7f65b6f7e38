/* SPDX-License-Identifier: MIT */
/*
 * The known limits of hosts as data, each with its source. A preset is a
 * list of options as one would write them; config.c parses them as such.
 */
#ifndef SPILLWAY_PRESETS_H
#define SPILLWAY_PRESETS_H

#define PRESET_SETTINGS 2

struct preset_setting {
	const char *option; /* without the dashes; NULL: no more */
	const char *value;
};

struct preset {
	const char *name;
	struct preset_setting set[PRESET_SETTINGS];
	const char *why;    /* what is known, in lines of at most 72 columns */
	const char *source; /* where that is written */
};

/* All presets; the last one has no name. */
extern const struct preset presets[];

/* The preset of that name, or NULL. */
const struct preset *preset_find(const char *name);

#endif
