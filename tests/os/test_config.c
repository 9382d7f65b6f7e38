/* SPDX-License-Identifier: MIT */
/*
 * Options, environment and presets: defaults, every form of a value at its
 * limits, who wins over whom, and the one line about what is wrong.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/config.h"
#include "spillway/presets.h"

#define ARGS 8

static struct config c;
static char *text;

static const char *const names[] = { "max-frame", "max-content", "max-depth",
	"memory", "spill", "spill-dir", "stall-timeout", "request-timeout",
	"cancel", "cancel-grace", "stop-grace", "strict", "observe", "preset",
	"metrics", "metrics-interval", "metrics-file", "log-level",
	"log-file", "server-stderr" };

#define NAMES ((int)(sizeof(names) / sizeof(names[0])))

static void
variable_name(const char *option, char *to, size_t cap)
{
	char *p;

	snprintf(to, cap, "SPILLWAY_%s", option);
	for (p = to; *p; p++)
		*p = *p == '-' ? '_' :
		    *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
}

static void
clean(void)
{
	char name[64];
	int i;

	for (i = 0; i < NAMES; i++) {
		variable_name(names[i], name, sizeof(name));
		unsetenv(name);
	}
	text = NULL;
}

static void
done(void)
{
	free(text);
	text = NULL;
}

/* The words of one command line; read() keeps them for the borrowed ones. */
static char words[512];
static char *args[ARGS + 3];

static enum config_result
read_words(const char *line)
{
	char *word, *save = NULL;
	int n = 1;

	free(text);
	snprintf(words, sizeof(words), "%s", line);
	memset(args, 0, sizeof(args));
	args[0] = words + sizeof(words) - 1;
	for (word = strtok_r(words, " ", &save); word && n < ARGS;
	     word = strtok_r(NULL, " ", &save))
		args[n++] = word;
	return config_read(&c, n, args, &text);
}

static void
expect_one_line(void)
{
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(strncmp(text, "spillway: ", 10), 0);
	ck_assert_ptr_nonnull(strchr(text, '\n'));
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

START_TEST(defaults_are_the_contracts)
{
	ck_assert_int_eq(read_words("server arg"), CONFIG_RUN);
	ck_assert_uint_eq(c.limits.max_frame, 10420224);
	ck_assert_uint_eq(c.limits.max_content, SIZE_OFF);
	ck_assert_uint_eq(c.limits.max_depth, 512);
	ck_assert_uint_eq(c.limits.memory, 32u << 20);
	ck_assert_uint_eq(c.limits.spill, 256u << 20);
	ck_assert_uint_eq(c.limits.stall_timeout, 30 * USEC_SEC);
	ck_assert_uint_eq(c.limits.request_timeout, USEC_NEVER);
	ck_assert_uint_eq(c.limits.cancel_grace, USEC_NEVER);
	ck_assert_uint_eq(c.limits.stop_grace, 2 * USEC_SEC);
	ck_assert(c.limits.cancel);
	ck_assert(!c.limits.strict && !c.limits.observe);
	ck_assert_int_eq(c.metrics, METRICS_LOGFMT);
	ck_assert_uint_eq(c.metrics_interval, USEC_NEVER);
	ck_assert_int_eq(c.log_level, LOG_LEVEL_WARN);
	ck_assert(!c.drop_server_stderr);
	ck_assert_ptr_null(c.spill_dir);
	ck_assert_ptr_null(c.metrics_file);
	ck_assert_ptr_null(c.log_file);
	ck_assert_str_eq(c.command[0], "server");
	ck_assert_str_eq(c.command[1], "arg");
	ck_assert_ptr_null(c.command[2]);
	ck_assert_ptr_null(text);
}
END_TEST

static const struct {
	const char *words;
	size_t at;
	uint64_t want;
} numbers[] = {
#define FRAME offsetof(struct config, limits.max_frame)
#define CONTENT offsetof(struct config, limits.max_content)
#define MEMORY offsetof(struct config, limits.memory)
#define SPILL offsetof(struct config, limits.spill)
#define STALL offsetof(struct config, limits.stall_timeout)
#define GRACE offsetof(struct config, limits.stop_grace)
#define EVERY offsetof(struct config, metrics_interval)
	{ "--max-frame=1024", FRAME, 1024 }, { "--max-frame 4K", FRAME, 4096 },
	{ "--max-frame=1025", FRAME, 1025 },
	{ "--max-frame=off", FRAME, SIZE_OFF },
	{ "--max-frame=2M", FRAME, 2u << 20 },
	{ "--max-frame=3G", FRAME, (uint64_t)3 << 30 },
	{ "--max-frame=1048576G", FRAME, (uint64_t)1 << 50 },
	{ "--max-frame=8K --max-frame=16K", FRAME, 16384 },
	{ "--max-content=1", CONTENT, 1 },
	{ "--max-content=10k", CONTENT, 10240 },
	{ "--memory=1M", MEMORY, 1u << 20 },
	{ "--memory=16777216", MEMORY, 16777216 },
	{ "--spill=off", SPILL, 0 }, { "--spill=64K", SPILL, 65536 },
	{ "--stall-timeout=1ms", STALL, 1000 },
	{ "--stall-timeout=1500ms", STALL, 1500000 },
	{ "--stall-timeout=1.5s", STALL, 1500000 },
	{ "--stall-timeout=0.5", STALL, 500000 },
	{ "--stall-timeout=0.001000999s", STALL, 1000 },
	{ "--stall-timeout=3", STALL, 3000000 },
	{ "--stall-timeout=2m", STALL, 120 * USEC_SEC },
	{ "--stall-timeout=0.25h", STALL, 900 * USEC_SEC },
	{ "--stall-timeout=10000h", STALL, 36000000 * USEC_SEC },
	{ "--stall-timeout off", STALL, USEC_NEVER },
	{ "--stop-grace=0", GRACE, 0 }, { "--stop-grace=9s", GRACE, 9000000 },
	{ "--metrics-interval=20ms", EVERY, 20000 },
};

#define NUMBERS ((int)(sizeof(numbers) / sizeof(numbers[0])))

START_TEST(numbers_are_read)
{
	char line[200];
	uint64_t got;

	snprintf(line, sizeof(line), "%s -- x", numbers[_i].words);
	ck_assert_int_eq(read_words(line), CONFIG_RUN);
	memcpy(&got, (char *)&c + numbers[_i].at, sizeof(got));
	ck_assert_uint_eq(got, numbers[_i].want);
	ck_assert_str_eq(c.command[0], "x");
}
END_TEST

/* What is wrong, and words that the one line about it must have. */
static const struct {
	const char *words;
	const char *says[3];
} wrongs[] = {
	{ "--max-frame 12Q x", { "spillway: --max-frame: \"12Q\" is not a "
	    "size: use bytes, or a number with K, M or G, or \"off\"\n" } },
	{ "--max-frame=banana x", { "--max-frame", "\"banana\"" } },
	{ "--max-frame=0 x", { "\"0\" is too small", "1 or more" } },
	{ "--max-frame=1048577G x", { "too large", "1048576G or less" } },
	{ "--max-frame=18446744073709551615 x", { "too large" } },
	{ "--max-frame=18446744073709551616 x", { "too large" } },
	{ "--max-frame=99999999999999999999999 x", { "too large" } },
	{ "--max-frame=17179869184G x", { "too large" } },
	{ "--max-frame=1.5M x", { "is not a size" } },
	{ "--max-frame=4KB x", { "is not a size" } },
	{ "--max-frame=K x", { "is not a size" } },
	{ "--max-frame=+4K x", { "is not a size" } },
	{ "--max-frame=0x1000 x", { "is not a size" } },
	{ "--max-frame=OFF x", { "is not a size" } },
	{ "--max-frame= x", { "--max-frame: \"\" is not a size" } },
	{ "--max-content=-5 x", { "--max-content", "\"-5\"" } },
	{ "--max-content -5 x", { "--max-content", "\"-5\"" } },
	{ "--max-content=0 x", { "\"0\" is too small: use 1 or more" } },
	{ "--max-depth=x x", { "--max-depth", "\"x\" is not a number",
	    "1 to 1048576" } },
	{ "--max-depth=0 x", { "too small" } },
	{ "--max-depth=4294967297 x", { "too large" } },
	{ "--max-depth=off x", { "is not a number" } },
	{ "--memory=off x", { "--memory", "\"off\" is not a size" } },
	{ "--memory=1023K x", { "too small: use 1M or more\n" } },
	{ "--spill=1T2 x", { "--spill", "\"1T2\"" } },
	{ "--spill=0 x", { "too small: use 64K or more, or \"off\"" } },
	{ "--stall-timeout=5parsecs x", { "--stall-timeout",
	    "\"5parsecs\" is not a time", "ms, s, m or h" } },
	{ "--stall-timeout=0 x", { "too small: use 1ms or more" } },
	{ "--stall-timeout=0.0009 x", { "too small" } },
	{ "--stall-timeout=10001h x", { "too large: use 10000h or less" } },
	{ "--stall-timeout=99999999999999999999h x", { "too large" } },
	{ "--stall-timeout=5124095577h x", { "too large" } },
	{ "--stall-timeout=1. x", { "is not a time" } },
	{ "--stall-timeout=.5 x", { "is not a time" } },
	{ "--stall-timeout=1.2.3 x", { "is not a time" } },
	{ "--stall-timeout=1.0123456789 x", { "is not a time" } },
	{ "--stall-timeout=1S x", { "is not a time" } },
	{ "--request-timeout=-1s x", { "--request-timeout", "\"-1s\"" } },
	{ "--stop-grace=off x", { "--stop-grace", "\"off\" is not a time" } },
	{ "--cancel=maybe x", { "--cancel", "\"maybe\"", "off or on" } },
	{ "--metrics=xml x", { "--metrics:", "\"xml\"",
	    "logfmt, json or off" } },
	{ "--log-level=loud x", { "--log-level", "\"loud\"",
	    "error, warn, info or debug" } },
	{ "--server-stderr=eat x", { "--server-stderr", "forward or drop" } },
	{ "--preset=nobody x", { "--preset", "\"nobody\"", "claude-code" } },
	{ "--spill-dir= x", { "--spill-dir", "directory" } },
	{ "--log-file= x", { "--log-file", "file" } },
	{ "--strict=1 x", { "--strict: takes no value" } },
	{ "--help=x", { "--help: takes no value" } },
	{ "--no-such-option x", { "--no-such-option is not an option" } },
	{ "--max-fram=4K x", { "--max-fram is not an option" } },
	{ "--max-frames=4K x", { "--max-frames is not an option" } },
	{ "--=4K x", { "-- is not an option" } },
	{ "-Z x", { "-Z is not an option" } },
	{ "-hV x", { "-hV is not an option" } },
	{ "-strict x", { "-strict is not an option" } },
	{ "--max-frame", { "--max-frame: needs a value: use bytes" } },
	{ "--log-level", { "--log-level: needs a value: use error" } },
	{ "--a\x1b[31m\x7fz x", { "--a\\x1b[31m\\x7fz is not" } },
	{ "--max-frame=a\nb x", { "\"a\\x0ab\"" } },
	{ "--max-frame=1234567890123456789012345678901234567890"
	  "12345678901234567890K x", { "67890..." } },
	{ "", { "no command" } }, { "--", { "no command" } },
	{ "--strict", { "no command" } }, { "--strict --", { "no command" } },
	{ "--max-frame=4K --no-such x", { "--no-such is" } },
	{ "--preset=nobody --max-frame=y x", { "nobody" } },
};

#define WRONGS ((int)(sizeof(wrongs) / sizeof(wrongs[0])))

START_TEST(wrong_words_get_one_line)
{
	size_t i;

	ck_assert_int_eq(read_words(wrongs[_i].words), CONFIG_WRONG);
	expect_one_line();
	for (i = 0; i < 3 && wrongs[_i].says[i]; i++)
		ck_assert_msg(strstr(text, wrongs[_i].says[i]) != NULL,
		    "%s: %s", wrongs[_i].words, text);
}
END_TEST

START_TEST(words_are_read)
{
	ck_assert_int_eq(read_words("--cancel=off --metrics json "
				    "--log-level=debug --server-stderr drop "
				    "x"), CONFIG_RUN);
	ck_assert(!c.limits.cancel);
	ck_assert_int_eq(c.metrics, METRICS_JSON);
	ck_assert_int_eq(c.log_level, LOG_LEVEL_DEBUG);
	ck_assert(c.drop_server_stderr);
	ck_assert_int_eq(read_words("--strict --observe --metrics=off "
				    "--log-level=error x"), CONFIG_RUN);
	ck_assert(c.limits.strict && c.limits.observe && c.limits.cancel);
	ck_assert_int_eq(c.metrics, METRICS_OFF);
	ck_assert_int_eq(c.log_level, LOG_LEVEL_ERROR);
	ck_assert_int_eq(read_words("--spill-dir=/d --metrics-file m "
				    "--log-file=a=b x"), CONFIG_RUN);
	ck_assert_str_eq(c.spill_dir, "/d");
	ck_assert_str_eq(c.metrics_file, "m");
	ck_assert_str_eq(c.log_file, "a=b");
}
END_TEST

START_TEST(options_end_at_the_first_word)
{
	static const struct {
		const char *words;
		const char *first, *second;
	} cases[] = { { "x --strict", "x", "--strict" },
		{ "-- --strict x", "--strict", "x" },
		{ "-- -- x", "--", "x" }, { "- --help", "-", "--help" },
		{ "x --", "x", "--" }, { "--max-frame 4K x -h", "x", "-h" },
		{ "--log-file -- x -V", "x", "-V" } };

	ck_assert_int_eq(read_words(cases[_i].words), CONFIG_RUN);
	ck_assert_str_eq(c.command[0], cases[_i].first);
	ck_assert_str_eq(c.command[1], cases[_i].second);
	ck_assert(!c.limits.strict);
}
END_TEST

START_TEST(no_argv_is_no_command)
{
	char *none[] = { NULL };

	ck_assert_int_eq(config_read(&c, 0, none, &text), CONFIG_WRONG);
	expect_one_line();
}
END_TEST

START_TEST(environment_and_command_line)
{
	setenv("SPILLWAY_MAX_FRAME", "4K", 1);
	setenv("SPILLWAY_METRICS", "json", 1);
	setenv("SPILLWAY_LOG_FILE", "l", 1);
	setenv("SPILLWAY_MEMORY", "", 1); /* empty: as if not set */
	ck_assert_int_eq(read_words("x"), CONFIG_RUN);
	ck_assert_uint_eq(c.limits.max_frame, 4096);
	ck_assert_int_eq(c.metrics, METRICS_JSON);
	ck_assert_str_eq(c.log_file, "l");
	ck_assert_uint_eq(c.limits.memory, 32u << 20);
	ck_assert_int_eq(read_words("--max-frame=8K --metrics=logfmt x"),
	    CONFIG_RUN);
	ck_assert_uint_eq(c.limits.max_frame, 8192);
	ck_assert_int_eq(c.metrics, METRICS_LOGFMT);
}
END_TEST

START_TEST(switches_from_the_environment)
{
	static const struct {
		const char *value;
		int want; /* -1: wrong */
	} cases[] = { { "1", 1 }, { "on", 1 }, { "0", 0 }, { "off", 0 },
		{ "yes", -1 }, { "2", -1 }, { "ON", -1 } };

	setenv("SPILLWAY_STRICT", cases[_i].value, 1);
	if (cases[_i].want >= 0) {
		ck_assert_int_eq(read_words("x"), CONFIG_RUN);
		ck_assert_int_eq(c.limits.strict, cases[_i].want);
		ck_assert_int_eq(read_words("--strict x"), CONFIG_RUN);
		ck_assert(c.limits.strict);
	} else {
		ck_assert_int_eq(read_words("x"), CONFIG_WRONG);
		expect_one_line();
		ck_assert_ptr_nonnull(strstr(text, "SPILLWAY_STRICT: \""));
		ck_assert_ptr_nonnull(strstr(text, "1, 0, on or off"));
	}
}
END_TEST

/* Each option has its variable; a wrong value names the variable. */
START_TEST(every_variable_is_read)
{
	char name[64], want[96];

	if (strstr(names[_i], "-file") || strstr(names[_i], "-dir"))
		return;
	variable_name(names[_i], name, sizeof(name));
	setenv(name, "?wrong?", 1);
	ck_assert_int_eq(read_words("x"), CONFIG_WRONG);
	expect_one_line();
	snprintf(want, sizeof(want), "spillway: %s: \"?wrong?\"", name);
	ck_assert_int_eq(strncmp(text, want, strlen(want)), 0);
	ck_assert_int_eq(read_words("--help"), CONFIG_TEXT);
	unsetenv(name);
}
END_TEST

START_TEST(presets_lose_against_all_else)
{
	ck_assert_int_eq(read_words("--preset=claude-code x"), CONFIG_RUN);
	ck_assert_uint_eq(c.limits.max_content, 50000);
	ck_assert_int_eq(read_words("--max-content=7 --preset=claude-code "
				    "x"), CONFIG_RUN);
	ck_assert_uint_eq(c.limits.max_content, 7);
	ck_assert_int_eq(read_words("--preset=codex --preset gemini x"),
	    CONFIG_RUN);
	ck_assert_uint_eq(c.limits.max_content, 40000);
	ck_assert_uint_eq(c.limits.request_timeout, 600 * USEC_SEC);
	setenv("SPILLWAY_PRESET", "goose", 1);
	ck_assert_int_eq(read_words("x"), CONFIG_RUN);
	ck_assert_uint_eq(c.limits.max_content, 200000);
	ck_assert_int_eq(read_words("--preset=opencode x"), CONFIG_RUN);
	ck_assert_uint_eq(c.limits.max_content, 51200);
	setenv("SPILLWAY_MAX_CONTENT", "9", 1);
	ck_assert_int_eq(read_words("--preset=opencode x"), CONFIG_RUN);
	ck_assert_uint_eq(c.limits.max_content, 9);
	setenv("SPILLWAY_PRESET", "nobody", 1);
	ck_assert_int_eq(read_words("x"), CONFIG_WRONG);
	ck_assert_ptr_nonnull(strstr(text, "SPILLWAY_PRESET: \"nobody\""));
	ck_assert_int_eq(read_words("--preset=zed x"), CONFIG_RUN);
}
END_TEST

/* No row of the data may be one that the parser refuses or that is blank. */
START_TEST(every_preset_is_valid)
{
	const struct preset *p;
	char line[100];

	for (p = presets; p->name; p++) {
		struct config before;

		ck_assert_int_eq(read_words("x"), CONFIG_RUN);
		before = c;
		snprintf(line, sizeof(line), "--preset=%s x", p->name);
		ck_assert_int_eq(read_words(line), CONFIG_RUN);
		if (strcmp(p->name, "typescript-sdk") != 0)
			ck_assert_int_ne(memcmp(&before.limits, &c.limits,
			    sizeof(c.limits)), 0);
		ck_assert_ptr_eq(preset_find(p->name), p);
		ck_assert_ptr_nonnull(strstr(p->source, "https://"));
		ck_assert_ptr_nonnull(p->why);
	}
	ck_assert_ptr_null(preset_find(""));
	ck_assert_ptr_null(preset_find("help"));
}
END_TEST

static void
expect_width(void)
{
	const char *p = text;
	size_t n;

	for (; *p; p += n + 1) {
		n = strcspn(p, "\n");
		ck_assert_msg(n <= 80, "%.*s", (int)n, p);
		ck_assert_int_eq(p[n], '\n');
	}
}

START_TEST(help_has_every_option)
{
	static const char *const ways[] = { "-h", "--help", "--strict -h x",
		"--max-frame=12Q --help" };
	char want[64];
	int i;

	ck_assert_int_eq(read_words(ways[_i]), CONFIG_TEXT);
	expect_width();
	for (i = 0; i < NAMES; i++) {
		snprintf(want, sizeof(want), "\n  --%s", names[i]);
		ck_assert_ptr_nonnull(strstr(text, want));
	}
	ck_assert_ptr_nonnull(strstr(text, "-h, --help"));
	ck_assert_ptr_nonnull(strstr(text, "-V, --version"));
	ck_assert_ptr_nonnull(strstr(text, "(10420224)"));
	ck_assert_ptr_nonnull(strstr(text, "127"));
	ck_assert_ptr_nonnull(strstr(text, "spillway(1)"));
}
END_TEST

START_TEST(preset_help_and_version)
{
	const struct preset *p;

	ck_assert_int_eq(read_words("-V"), CONFIG_TEXT);
	ck_assert_str_eq(text, "spillway 0.1.0\n");
	ck_assert_int_eq(read_words("--version x"), CONFIG_TEXT);
	ck_assert_str_eq(text, "spillway 0.1.0\n");
	ck_assert_int_eq(read_words("--preset help"), CONFIG_TEXT);
	expect_width();
	for (p = presets; p->name; p++) {
		ck_assert_ptr_nonnull(strstr(text, p->name));
		ck_assert_ptr_nonnull(strstr(text, p->set[0].value));
	}
	done();
	setenv("SPILLWAY_PRESET", "help", 1);
	ck_assert_int_eq(read_words("x"), CONFIG_TEXT);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("options");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, clean, done);
	tcase_add_test(t, defaults_are_the_contracts);
	tcase_add_loop_test(t, numbers_are_read, 0, NUMBERS);
	tcase_add_loop_test(t, wrong_words_get_one_line, 0, WRONGS);
	tcase_add_test(t, words_are_read);
	tcase_add_loop_test(t, options_end_at_the_first_word, 0, 7);
	tcase_add_test(t, no_argv_is_no_command);
	tcase_add_test(t, environment_and_command_line);
	tcase_add_loop_test(t, switches_from_the_environment, 0, 7);
	tcase_add_loop_test(t, every_variable_is_read, 0, NAMES);
	tcase_add_test(t, presets_lose_against_all_else);
	tcase_add_test(t, every_preset_is_valid);
	tcase_add_loop_test(t, help_has_every_option, 0, 4);
	tcase_add_test(t, preset_help_and_version);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
