/* SPDX-License-Identifier: MIT */
/*
 * Options, environment and presets, all read through one table: a row gives
 * the option its name, its variable, its default (as one would write it),
 * its bounds and its line in --help. Rules: defaults, then the preset, then
 * the environment, then the command line; each may overwrite what came
 * before. Knows nothing of what an option does.
 *
 * Two walks over argv: the first finds the command, the preset and requests
 * for help, and refuses what is no option; the second sets values.
 */
#include "spillway/config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/presets.h"

#define KIB ((uint64_t)1024)
#define MIB (KIB * KIB)
#define SIZE_MOST ((uint64_t)1 << 50)
#define TIME_MOST (USEC_SEC * 3600 * 10000)
#define SHOWN_MOST 60 /* bytes of a wrong word in a message */
#define HELP_COLUMN 32

enum kind {
	KIND_SIZE,  /* uint64_t, bytes */
	KIND_COUNT, /* uint32_t */
	KIND_TIME,  /* usec_t */
	KIND_ENUM,  /* index into words */
	KIND_BOOL,  /* the same, of two words */
	KIND_FLAG,  /* bool, no value on the command line */
	KIND_PATH,  /* const char * */
	KIND_PRESET,
	KIND_HELP,
	KIND_VERSION,
};

enum off { NO_OFF, OFF_IS_MOST, OFF_IS_ZERO };

struct row {
	const char *name;
	enum kind kind;
	enum off off;	     /* what "off" stands for, if allowed */
	size_t at;	     /* offset into struct config */
	uint64_t least, most;
	const char *text;    /* the default, or NULL: leave it zero */
	const char *metavar; /* NULL: the words */
	const char *help;
	const char *words[5];
};

#define AT(member) offsetof(struct config, member)

static const struct row table[] = {
	{ "max-frame", KIND_SIZE, OFF_IS_MOST, AT(limits.max_frame), 1,
	    SIZE_MOST, "10420224", "SIZE", "longest line, either way", { 0 } },
	{ "max-content", KIND_SIZE, OFF_IS_MOST, AT(limits.max_content), 1,
	    SIZE_MOST, "off", "SIZE", "cut tool results beyond", { 0 } },
	{ "max-depth", KIND_COUNT, NO_OFF, AT(limits.max_depth), 1, MIB,
	    "512", "N", "deepest nesting of a message", { 0 } },
	{ "memory", KIND_SIZE, NO_OFF, AT(limits.memory), MIB, SIZE_MOST,
	    "32M", "SIZE", "memory for waiting frames", { 0 } },
	{ "spill", KIND_SIZE, OFF_IS_ZERO, AT(limits.spill), 64 * KIB,
	    SIZE_MOST, "256M", "SIZE", "disk for waiting frames", { 0 } },
	{ "spill-dir", KIND_PATH, NO_OFF, AT(spill_dir), 0, 0, NULL, "DIR",
	    "where it is (/var/tmp, $TMPDIR)", { 0 } },
	{ "stall-timeout", KIND_TIME, OFF_IS_MOST, AT(limits.stall_timeout),
	    USEC_MSEC, TIME_MOST, "30s", "TIME",
	    "give up requests of a stalled host", { 0 } },
	{ "request-timeout", KIND_TIME, OFF_IS_MOST,
	    AT(limits.request_timeout), USEC_MSEC, TIME_MOST, "off", "TIME",
	    "give up a request after", { 0 } },
	{ "cancel", KIND_BOOL, NO_OFF, AT(limits.cancel), 0, 0, "on", NULL,
	    "tell the server of given-up requests", { "off", "on" } },
	{ "cancel-grace", KIND_TIME, OFF_IS_MOST, AT(limits.cancel_grace),
	    USEC_MSEC, TIME_MOST, "off", "TIME",
	    "end a server that heeds no cancel", { 0 } },
	{ "stop-grace", KIND_TIME, NO_OFF, AT(limits.stop_grace), 0,
	    TIME_MOST, "2s", "TIME", "from end of input to SIGTERM", { 0 } },
	{ "strict", KIND_FLAG, NO_OFF, AT(limits.strict), 0, 0, NULL, "",
	    "repair nothing", { 0 } },
	{ "observe", KIND_FLAG, NO_OFF, AT(limits.observe), 0, 0, NULL, "",
	    "change nothing, only measure", { 0 } },
	{ "preset", KIND_PRESET, NO_OFF, 0, 0, 0, NULL, "HOST",
	    "the known limits of a host, or \"help\"", { 0 } },
	{ "metrics", KIND_ENUM, NO_OFF, AT(metrics), 0, 0, "logfmt", NULL,
	    "metrics on stderr", { "logfmt", "json", "off" } },
	{ "metrics-interval", KIND_TIME, OFF_IS_MOST, AT(metrics_interval),
	    10 * USEC_MSEC, TIME_MOST, "off", "TIME",
	    "not only at exit, but every", { 0 } },
	{ "metrics-file", KIND_PATH, NO_OFF, AT(metrics_file), 0, 0, NULL,
	    "FILE", "Prometheus text, replaced as it changes", { 0 } },
	{ "log-level", KIND_ENUM, NO_OFF, AT(log_level), 0, 0, "warn",
	    "LEVEL", "error, warn, info or debug",
	    { "error", "warn", "info", "debug" } },
	{ "log-file", KIND_PATH, NO_OFF, AT(log_file), 0, 0, NULL, "FILE",
	    "log and metrics to this file, too", { 0 } },
	{ "server-stderr", KIND_BOOL, NO_OFF, AT(drop_server_stderr), 0, 0,
	    "forward", NULL, "what the server writes",
	    { "forward", "drop" } },
	{ "help", KIND_HELP, NO_OFF, 0, 0, 0, NULL, "", "this text", { 0 } },
	{ "version", KIND_VERSION, NO_OFF, 0, 0, 0, NULL, "", "the version",
	    { 0 } },
};

#define ROWS (sizeof(table) / sizeof(table[0]))

_Static_assert(sizeof(enum metrics_form) == sizeof(unsigned) &&
	sizeof(enum log_level) == sizeof(unsigned),
    "KIND_ENUM stores an unsigned");

/* One value on its way into the configuration. */
struct setting {
	const struct row *row;
	const char *name;  /* as the user wrote it: --max-frame, SPILLWAY_... */
	const char *value; /* NULL: a flag that stands alone */
};

/* What the first walk over argv learns. */
struct walk {
	const char *preset; /* value of the last --preset, or NULL */
	int command;	    /* index of the command's name */
};

enum parsed { PARSED_OK, PARSED_NOT, PARSED_HUGE };

/* Digits from *s on; *s then stands behind them. */
static enum parsed
parse_digits(const char **s, uint64_t *v_r)
{
	uint64_t v = 0;
	bool huge = false;
	const char *p = *s;

	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		huge = huge || v > (UINT64_MAX - digit) / 10;
		v = v * 10 + digit;
	}
	if (p == *s)
		return PARSED_NOT;
	*s = p;
	*v_r = v;
	return huge ? PARSED_HUGE : PARSED_OK;
}

static enum parsed
multiply(uint64_t *v, uint64_t by)
{
	if (*v > UINT64_MAX / by)
		return PARSED_HUGE;
	*v *= by;
	return PARSED_OK;
}

static enum parsed
parse_size(const char *s, uint64_t *v_r)
{
	enum parsed got = parse_digits(&s, v_r);
	uint64_t unit;

	if (got == PARSED_NOT)
		return got;
	switch (*s) {
	case '\0': unit = 1; break;
	case 'k': case 'K': unit = KIB; break;
	case 'm': case 'M': unit = MIB; break;
	case 'g': case 'G': unit = KIB * MIB; break;
	default: return PARSED_NOT;
	}
	if (*s && s[1])
		return PARSED_NOT;
	return got == PARSED_OK ? multiply(v_r, unit) : got;
}

static uint64_t
time_unit(const char *s)
{
	static const struct {
		const char *word;
		usec_t usec;
	} units[] = { { "", USEC_SEC }, { "ms", USEC_MSEC },
		{ "s", USEC_SEC }, { "m", 60 * USEC_SEC },
		{ "h", 3600 * USEC_SEC } };
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(s, units[i].word) == 0)
			return units[i].usec;
	return 0;
}

static enum parsed
parse_time(const char *s, uint64_t *v_r)
{
	enum parsed got = parse_digits(&s, v_r);
	uint64_t unit, fraction = 0, scale = 1;
	const char *dot = s;

	if (got == PARSED_NOT)
		return got;
	if (*s == '.') {
		s++;
		/* Nine digits keep fraction times an hour below 2^64. */
		if (parse_digits(&s, &fraction) != PARSED_OK || s - dot > 10)
			return PARSED_NOT;
		for (dot++; dot < s; dot++)
			scale *= 10;
	}
	unit = time_unit(s);
	if (unit == 0)
		return PARSED_NOT;
	fraction = fraction * unit / scale;
	if (got == PARSED_OK)
		got = multiply(v_r, unit);
	if (got == PARSED_OK && *v_r > UINT64_MAX - fraction)
		got = PARSED_HUGE;
	if (got == PARSED_OK)
		*v_r += fraction;
	return got;
}

static enum parsed
parse_count(const char *s, uint64_t *v_r)
{
	enum parsed got = parse_digits(&s, v_r);

	return *s ? PARSED_NOT : got;
}

static const char *
kind_noun(enum kind kind)
{
	switch (kind) {
	case KIND_SIZE: return "a size";
	case KIND_COUNT: return "a number";
	case KIND_TIME: return "a time";
	case KIND_PATH: return "a path";
	case KIND_PRESET: return "a preset";
	case KIND_ENUM:
	case KIND_BOOL:
	case KIND_FLAG:
	case KIND_HELP:
	case KIND_VERSION: break;
	}
	return "one of its words";
}

static void
print_bound(FILE *f, const struct row *row, uint64_t v)
{
	if (row->kind == KIND_TIME && v % (3600 * USEC_SEC) == 0)
		fprintf(f, "%" PRIu64 "h", v / (3600 * USEC_SEC));
	else if (row->kind == KIND_TIME)
		fprintf(f, "%" PRIu64 "ms", v / USEC_MSEC);
	else if (row->kind == KIND_SIZE && v % (KIB * MIB) == 0)
		fprintf(f, "%" PRIu64 "G", v / (KIB * MIB));
	else if (row->kind == KIND_SIZE && v % MIB == 0)
		fprintf(f, "%" PRIu64 "M", v / MIB);
	else if (row->kind == KIND_SIZE && v % KIB == 0)
		fprintf(f, "%" PRIu64 "K", v / KIB);
	else
		fprintf(f, "%" PRIu64, v);
}

static void
print_words(FILE *f, const struct row *row, const char *comma,
    const char *last)
{
	size_t i;

	for (i = 0; row->words[i]; i++)
		fprintf(f, "%s%s",
		    i == 0 ? "" : row->words[i + 1] ? comma : last,
		    row->words[i]);
}

/* What the option takes, for the end of a message. */
static void
print_takes(FILE *f, const struct row *row)
{
	const struct preset *p;

	switch (row->kind) {
	case KIND_SIZE:
		fputs("bytes, or a number with K, M or G", f);
		break;
	case KIND_COUNT:
		fprintf(f, "%" PRIu64 " to %" PRIu64, row->least, row->most);
		break;
	case KIND_TIME:
		fputs("a number with ms, s, m or h (alone: seconds)", f);
		break;
	case KIND_ENUM:
	case KIND_BOOL:
		print_words(f, row, ", ", " or ");
		break;
	case KIND_PATH:
		fprintf(f, "the name of a %s",
		    strcmp(row->metavar, "DIR") ? "file" : "directory");
		break;
	case KIND_PRESET:
		for (p = presets; p->name; p++)
			fprintf(f, "%s, ", p->name);
		fputs("or \"help\"", f);
		break;
	case KIND_FLAG:
		fputs("1, 0, on or off", f);
		break;
	case KIND_HELP:
	case KIND_VERSION:
		break;
	}
	if (row->off != NO_OFF)
		fputs(", or \"off\"", f);
}

/* A word of the user's, so that it cannot spoil the line it stands in. */
static void
print_shown(FILE *f, const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n && i < SHOWN_MOST; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\x%02x", c);
		else
			fputc(c, f);
	}
	if (i < n)
		fputs("...", f);
}

/*
 * The message about a value: what it is not, or on which side of its bounds
 * it lies. The text is NULL when memory is out; the result tells the rest.
 */
static enum config_result
refuse(const struct setting *s, enum parsed got, uint64_t v, char **text_r)
{
	const struct row *row = s->row;
	size_t n;
	FILE *f = open_memstream(text_r, &n);

	if (f == NULL) {
		*text_r = NULL;
		return CONFIG_WRONG;
	}
	fprintf(f, "spillway: %s: \"", s->name);
	print_shown(f, s->value, strlen(s->value));
	if (got == PARSED_NOT) {
		fprintf(f, "\" is not %s: use ", kind_noun(row->kind));
		print_takes(f, row);
	} else {
		bool small = got == PARSED_OK && v < row->least;

		fprintf(f, "\" is too %s: use ", small ? "small" : "large");
		print_bound(f, row, small ? row->least : row->most);
		fprintf(f, " or %s", small ? "more" : "less");
		if (row->off != NO_OFF)
			fputs(", or \"off\"", f);
	}
	fputc('\n', f);
	if (fclose(f) != 0) {
		free(*text_r);
		*text_r = NULL;
	}
	return CONFIG_WRONG;
}

/* A message about the n bytes of a name; takes: the row to describe. */
static enum config_result
complain(const char *name, size_t n, const char *what,
    const struct row *takes, char **text_r)
{
	size_t size;
	FILE *f = open_memstream(text_r, &size);

	if (f == NULL) {
		*text_r = NULL;
		return CONFIG_WRONG;
	}
	fputs("spillway: ", f);
	print_shown(f, name, n);
	fputs(what, f);
	if (takes)
		print_takes(f, takes);
	fputc('\n', f);
	if (fclose(f) != 0) {
		free(*text_r);
		*text_r = NULL;
	}
	return CONFIG_WRONG;
}

static enum parsed
parse_number(const struct row *row, const char *value, uint64_t *v_r)
{
	if (row->kind == KIND_SIZE)
		return parse_size(value, v_r);
	if (row->kind == KIND_TIME)
		return parse_time(value, v_r);
	return parse_count(value, v_r);
}

static enum config_result
set_number(struct config *c, const struct setting *s, char **text_r)
{
	const struct row *row = s->row;
	char *to = (char *)c + row->at;
	uint64_t v = 0;
	uint32_t v32;

	if (row->off != NO_OFF && strcmp(s->value, "off") == 0) {
		v = row->off == OFF_IS_MOST ? UINT64_MAX : 0;
	} else {
		enum parsed got = parse_number(row, s->value, &v);

		if (got != PARSED_OK || v < row->least || v > row->most)
			return refuse(s, got, v, text_r);
	}
	if (row->kind == KIND_COUNT) {
		v32 = (uint32_t)v;
		memcpy(to, &v32, sizeof(v32));
	} else {
		memcpy(to, &v, sizeof(v));
	}
	return CONFIG_RUN;
}

static enum config_result
set_word(struct config *c, const struct setting *s, char **text_r)
{
	const struct row *row = s->row;
	char *to = (char *)c + row->at;
	unsigned i;
	bool b;

	for (i = 0; row->words[i]; i++)
		if (strcmp(s->value, row->words[i]) == 0)
			break;
	if (row->words[i] == NULL)
		return refuse(s, PARSED_NOT, 0, text_r);
	b = i != 0;
	if (row->kind == KIND_BOOL)
		memcpy(to, &b, sizeof(b));
	else
		memcpy(to, &i, sizeof(i));
	return CONFIG_RUN;
}

static enum config_result
set_flag(struct config *c, const struct setting *s, char **text_r)
{
	const char *v = s->value ? s->value : "on";
	bool on = strcmp(v, "1") == 0 || strcmp(v, "on") == 0;

	if (!on && strcmp(v, "0") != 0 && strcmp(v, "off") != 0)
		return refuse(s, PARSED_NOT, 0, text_r);
	memcpy((char *)c + s->row->at, &on, sizeof(on));
	return CONFIG_RUN;
}

static enum config_result
set_path(struct config *c, const struct setting *s, char **text_r)
{
	if (s->value[0] == '\0')
		return refuse(s, PARSED_NOT, 0, text_r);
	memcpy((char *)c + s->row->at, &s->value, sizeof(s->value));
	return CONFIG_RUN;
}

static enum config_result
set(struct config *c, const struct setting *s, char **text_r)
{
	switch (s->row->kind) {
	case KIND_SIZE:
	case KIND_COUNT:
	case KIND_TIME:
		return set_number(c, s, text_r);
	case KIND_ENUM:
	case KIND_BOOL:
		return set_word(c, s, text_r);
	case KIND_FLAG:
		return set_flag(c, s, text_r);
	case KIND_PATH:
		return set_path(c, s, text_r);
	case KIND_PRESET: /* preset_apply() has done it */
	case KIND_HELP:
	case KIND_VERSION:
		break;
	}
	return CONFIG_RUN;
}

static const struct row *
row_find(const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < ROWS; i++)
		if (strlen(table[i].name) == n &&
		    memcmp(table[i].name, name, n) == 0)
			return &table[i];
	return NULL;
}

static bool
takes_value(const struct row *row)
{
	return row->kind != KIND_FLAG && row->kind != KIND_HELP &&
	    row->kind != KIND_VERSION;
}

/* Room for "--" or "SPILLWAY_" and the longest name. */
struct name {
	char text[40];
};

static void
name_option(struct name *n, const struct row *row)
{
	snprintf(n->text, sizeof(n->text), "--%s", row->name);
}

static void
name_variable(struct name *n, const struct row *row)
{
	char *p;

	snprintf(n->text, sizeof(n->text), "SPILLWAY_%s", row->name);
	for (p = n->text; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

/* The value of a row's variable; an empty one counts as not set. */
static const char *
variable(const struct row *row, struct name *n)
{
	const char *value;

	if (row->kind == KIND_HELP || row->kind == KIND_VERSION)
		return NULL;
	name_variable(n, row);
	value = getenv(n->text);
	return value && *value ? value : NULL;
}

static void
print_row(FILE *f, const struct row *row)
{
	char left[64];
	size_t n, i;

	n = (size_t)snprintf(left, sizeof(left), "  %s--%s%s",
	    row->kind == KIND_HELP	   ? "-h, " :
		row->kind == KIND_VERSION ? "-V, " : "",
	    row->name, takes_value(row) ? "=" : "");
	fputs(left, f);
	if (row->metavar) {
		n += strlen(row->metavar);
		fputs(row->metavar, f);
	} else {
		for (i = 0; row->words[i]; i++)
			n += strlen(row->words[i]) + (i > 0);
		print_words(f, row, "|", "|");
	}
	for (n = n < HELP_COLUMN ? HELP_COLUMN - n : 1; n > 0; n--)
		fputc(' ', f);
	fputs(row->help, f);
	if (row->text)
		fprintf(f, " (%s)", row->text);
	fputc('\n', f);
}

static void
print_help(FILE *f)
{
	size_t i;

	fputs("Usage: spillway [OPTION]... [--] COMMAND [ARG]...\n"
	      "Run an MCP server and keep its stdio flowing.\n\n", f);
	for (i = 0; i < ROWS; i++)
		print_row(f, &table[i]);
	fputs("\n"
	      "SIZE is bytes, or a number with K, M or G (powers of 1024); "
	      "TIME a number with\n"
	      "ms, s, m or h, alone: seconds. \"off\" disables where that "
	      "makes sense.\n"
	      "Every option can come from the environment: --max-frame as "
	      "SPILLWAY_MAX_FRAME.\n"
	      "The command line wins over the environment, and both over a "
	      "preset.\n\n"
	      "Exit status: that of COMMAND, or an end by the same signal;\n"
	      "125 if spillway failed, 126 if COMMAND cannot be executed, "
	      "127 if it is not\n"
	      "found, 2 for wrong usage. More in spillway(1).\n", f);
}

static void
print_indented(FILE *f, const char *text)
{
	fputs("    ", f);
	for (; *text; text++) {
		fputc(*text, f);
		if (*text == '\n')
			fputs("    ", f);
	}
	fputc('\n', f);
}

static void
print_presets(FILE *f)
{
	const struct preset *p;
	size_t i;

	for (p = presets; p->name; p++) {
		fputs(p->name, f);
		for (i = 0; i < PRESET_SETTINGS && p->set[i].option; i++)
			fprintf(f, " --%s=%s", p->set[i].option,
			    p->set[i].value);
		fputc('\n', f);
		print_indented(f, p->why);
		print_indented(f, p->source);
	}
}

static void
print_version(FILE *f)
{
	fputs("spillway " SPILLWAY_VERSION "\n", f);
}

static enum config_result
tell(void (*print)(FILE *), char **text_r)
{
	size_t n;
	FILE *f = open_memstream(text_r, &n);

	if (f == NULL) {
		*text_r = NULL;
		return CONFIG_WRONG;
	}
	print(f);
	if (fclose(f) != 0) {
		free(*text_r);
		*text_r = NULL;
		return CONFIG_WRONG;
	}
	return CONFIG_TEXT;
}

/*
 * Take one option at argv[*i], with its value, and move *i behind it. name
 * is filled for messages. s->row stays NULL where options end.
 */
static enum config_result
next_option(int argc, char *argv[], int *i, struct setting *s,
    struct name *name, char **text_r)
{
	const char *word = argv[*i], *equals;
	size_t n;

	s->row = NULL;
	s->value = NULL;
	s->name = name->text;
	if (word[0] != '-' || word[1] == '\0')
		return CONFIG_RUN;
	++*i;
	if (strcmp(word, "--") == 0)
		return CONFIG_RUN;
	equals = strchr(word, '=');
	n = equals ? (size_t)(equals - word) : strlen(word);
	if (strcmp(word, "-h") == 0)
		s->row = row_find("help", 4);
	else if (strcmp(word, "-V") == 0)
		s->row = row_find("version", 7);
	else if (word[1] == '-')
		s->row = row_find(word + 2, n - 2);
	if (s->row == NULL)
		return complain(word, n,
		    " is not an option: see spillway --help", NULL, text_r);
	name_option(name, s->row);
	if (!takes_value(s->row))
		return equals ? complain(word, n, ": takes no value", NULL,
				    text_r) : CONFIG_RUN;
	s->value = equals ? equals + 1 : *i < argc ? argv[(*i)++] : NULL;
	if (s->value == NULL)
		return complain(word, n, ": needs a value: use ", s->row,
		    text_r);
	return CONFIG_RUN;
}

static enum config_result
walk_first(int argc, char *argv[], struct walk *w, char **text_r)
{
	enum config_result got;
	struct setting s;
	struct name name;
	int i = 1;

	while (i < argc) {
		got = next_option(argc, argv, &i, &s, &name, text_r);
		if (got != CONFIG_RUN)
			return got;
		if (s.row == NULL)
			break;
		if (s.row->kind == KIND_HELP)
			return tell(print_help, text_r);
		if (s.row->kind == KIND_VERSION)
			return tell(print_version, text_r);
		if (s.row->kind == KIND_PRESET)
			w->preset = s.value;
		if (w->preset && strcmp(w->preset, "help") == 0)
			return tell(print_presets, text_r);
	}
	w->command = i;
	return CONFIG_RUN;
}

static void
set_defaults(struct config *c)
{
	char *text = NULL;
	size_t i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < ROWS; i++) {
		struct setting s = { &table[i], table[i].name,
			table[i].text };

		if (s.value && set(c, &s, &text) != CONFIG_RUN)
			free(text);
	}
}

static enum config_result
preset_apply(struct config *c, const char *option, char **text_r)
{
	struct name name = { "--preset" };
	struct setting s = { row_find("preset", 6), name.text, option };
	const struct preset *p;
	enum config_result got = CONFIG_RUN;
	size_t i;

	if (s.row && s.value == NULL)
		s.value = variable(s.row, &name);
	if (s.row == NULL || s.value == NULL)
		return CONFIG_RUN;
	if (strcmp(s.value, "help") == 0)
		return tell(print_presets, text_r);
	p = preset_find(s.value);
	if (p == NULL)
		return refuse(&s, PARSED_NOT, 0, text_r);
	for (i = 0; i < PRESET_SETTINGS && p->set[i].option &&
	     got == CONFIG_RUN; i++) {
		s.row = row_find(p->set[i].option, strlen(p->set[i].option));
		s.value = p->set[i].value;
		if (s.row)
			got = set(c, &s, text_r);
	}
	return got;
}

static enum config_result
read_environment(struct config *c, char **text_r)
{
	enum config_result got = CONFIG_RUN;
	size_t i;

	for (i = 0; i < ROWS && got == CONFIG_RUN; i++) {
		struct name name;
		struct setting s = { &table[i], name.text, NULL };

		s.value = variable(&table[i], &name);
		if (s.value)
			got = set(c, &s, text_r);
	}
	return got;
}

static enum config_result
read_options(struct config *c, int argc, char *argv[], char **text_r)
{
	enum config_result got = CONFIG_RUN;
	struct setting s;
	struct name name;
	int i = 1;

	while (i < argc && got == CONFIG_RUN) {
		got = next_option(argc, argv, &i, &s, &name, text_r);
		if (s.row == NULL)
			break;
		if (got == CONFIG_RUN)
			got = set(c, &s, text_r);
	}
	return got;
}

enum config_result
config_read(struct config *c, int argc, char *argv[], char **text_r)
{
	struct walk w = { NULL, argc };
	enum config_result got;

	*text_r = NULL;
	set_defaults(c);
	got = walk_first(argc, argv, &w, text_r);
	if (got == CONFIG_RUN)
		got = preset_apply(c, w.preset, text_r);
	if (got == CONFIG_RUN)
		got = read_environment(c, text_r);
	if (got == CONFIG_RUN)
		got = read_options(c, argc, argv, text_r);
	if (got == CONFIG_RUN && w.command >= argc)
		got = complain("", 0, "no command: see spillway --help", NULL,
		    text_r);
	if (got == CONFIG_RUN)
		c->command = argv + w.command;
	return got;
}
