/* SPDX-License-Identifier: MIT */
/*
 * The three forms of the metrics: every key in each of them, values as they
 * are, and every size of the buffer.
 */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "spillway/metrics.h"

#define ROOM 16384

typedef size_t form(const struct metrics *, char *, size_t);

static form *const forms[] = { metrics_logfmt, metrics_json,
	metrics_prometheus };

static const struct {
	const char *key;
	const char *type;
	const char *kind;
} keys[] = {
#define X(key, type, kind, help) { #key, #type, #kind },
	SPILLWAY_METRICS(X)
#undef X
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static const char *const verdicts[] = { "ok", "host_stalled",
	"server_stalled", "server_silent", "server_not_reading",
	"server_gone" };

/* Every figure another value, so that two exchanged ones show. */
static struct metrics
sample(void)
{
	struct metrics m;
	uint64_t v = 1000001;

#define SET_U64(field) m.field = v++;
#define SET_SEC(field) m.field = v++;
#define SET_WORD(field) m.field = VERDICT_SERVER_SILENT;
#define X(key, type, kind, help) SET_##type(key)
	memset(&m, 0, sizeof(m));
	SPILLWAY_METRICS(X)
#undef X
	return m;
}

static void
expect(size_t i, uint64_t v, char *buf, size_t cap)
{
	if (strcmp(keys[i].type, "SEC") == 0)
		snprintf(buf, cap, "%llu.%06llu",
		    (unsigned long long)v / 1000000,
		    (unsigned long long)v % 1000000);
	else if (strcmp(keys[i].type, "WORD") == 0)
		snprintf(buf, cap, "server_silent");
	else
		snprintf(buf, cap, "%llu", (unsigned long long)v);
}

START_TEST(logfmt_has_every_key_in_order)
{
	struct metrics m = sample();
	char buf[ROOM], value[64], *word, *save = NULL;
	size_t i = 0;

	ck_assert_uint_eq(metrics_logfmt(&m, buf, ROOM), strlen(buf));
	for (word = strtok_r(buf, " ", &save); word;
	     word = strtok_r(NULL, " ", &save), i++) {
		char *equals = strchr(word, '=');

		ck_assert_uint_lt(i, KEYS);
		ck_assert_ptr_nonnull(equals);
		*equals = '\0';
		expect(i, 1000001 + i, value, sizeof(value));
		ck_assert_str_eq(word, keys[i].key);
		ck_assert_str_eq(equals + 1, value);
	}
	ck_assert_uint_eq(i, KEYS);
}
END_TEST

START_TEST(json_is_one_object_with_its_source_first)
{
	struct metrics m = sample();
	char buf[ROOM], value[64];
	json_t *object, *member;
	size_t i;

	ck_assert_uint_eq(metrics_json(&m, buf, ROOM), strlen(buf));
	ck_assert_ptr_null(strchr(buf, '\n'));
	ck_assert_int_eq(strncmp(buf, "{\"source\":\"spillway\",", 21), 0);
	object = json_loads(buf, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_ptr_nonnull(object);
	ck_assert_uint_eq(json_object_size(object), KEYS + 1);
	for (i = 0; i < KEYS; i++) {
		member = json_object_get(object, keys[i].key);
		ck_assert_ptr_nonnull(member);
		expect(i, 1000001 + i, value, sizeof(value));
		if (json_is_string(member))
			ck_assert_str_eq(json_string_value(member), value);
		else
			ck_assert_double_eq_tol(json_number_value(member),
			    strtod(value, NULL), 1e-7);
	}
	json_decref(object);
}
END_TEST

START_TEST(prometheus_has_help_type_and_samples)
{
	struct metrics m = sample();
	char buf[ROOM], want[256], value[64];
	size_t i;

	ck_assert_uint_eq(metrics_prometheus(&m, buf, ROOM), strlen(buf));
	ck_assert_int_eq(buf[strlen(buf) - 1], '\n');
	for (i = 0; i < KEYS; i++) {
		snprintf(want, sizeof(want), "# HELP spillway_%s ",
		    keys[i].key);
		ck_assert_ptr_nonnull(strstr(buf, want));
		snprintf(want, sizeof(want), "\n# TYPE spillway_%s %s\n",
		    keys[i].key, strcmp(keys[i].kind, "COUNTER") == 0 ?
		    "counter" : "gauge");
		ck_assert_ptr_nonnull(strstr(buf, want));
		if (strcmp(keys[i].type, "WORD") == 0)
			continue;
		expect(i, 1000001 + i, value, sizeof(value));
		snprintf(want, sizeof(want), "\nspillway_%s %s\n",
		    keys[i].key, value);
		ck_assert_ptr_nonnull(strstr(buf, want));
	}
}
END_TEST

START_TEST(verdict_is_one_line_per_word)
{
	struct metrics m = sample();
	char buf[ROOM], want[128];
	size_t i;

	m.verdict = (enum verdict)_i;
	ck_assert_str_eq(verdict_name(m.verdict), verdicts[_i]);
	metrics_prometheus(&m, buf, ROOM);
	for (i = 0; i < 6; i++) {
		snprintf(want, sizeof(want),
		    "\nspillway_verdict{verdict=\"%s\"} %d\n", verdicts[i],
		    (int)i == _i);
		ck_assert_ptr_nonnull(strstr(buf, want));
	}
	metrics_logfmt(&m, buf, ROOM);
	snprintf(want, sizeof(want), " verdict=%s", verdicts[_i]);
	ck_assert_str_eq(buf + strlen(buf) - strlen(want), want);
}
END_TEST

START_TEST(every_capacity_clips_as_snprintf_does)
{
	struct metrics m = sample();
	char whole[ROOM], buf[ROOM];
	size_t n = forms[_i](&m, whole, ROOM), cap;

	ck_assert_uint_eq(forms[_i](&m, NULL, 0), n);
	for (cap = 1; cap <= n + 2; cap++) {
		size_t fits = n < cap - 1 ? n : cap - 1;

		memset(buf, '#', sizeof(buf));
		ck_assert_uint_eq(forms[_i](&m, buf, cap), n);
		ck_assert_int_eq(memcmp(buf, whole, fits), 0);
		ck_assert_int_eq(buf[fits], '\0');
		ck_assert_int_eq(buf[cap], '#');
	}
}
END_TEST

START_TEST(seconds_have_six_decimals)
{
	static const struct {
		usec_t v;
		const char *want;
	} cases[] = { { 0, "uptime_seconds=0.000000 " },
		{ 1, "uptime_seconds=0.000001 " },
		{ 999999, "uptime_seconds=0.999999 " },
		{ 1000000, "uptime_seconds=1.000000 " },
		{ 3600000042, "uptime_seconds=3600.000042 " } };
	struct metrics m = sample();
	char buf[ROOM];

	m.uptime_seconds = cases[_i].v;
	metrics_logfmt(&m, buf, ROOM);
	ck_assert_int_eq(strncmp(buf, cases[_i].want,
	    strlen(cases[_i].want)), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("metrics");
	TCase *t = tcase_create("forms");
	SRunner *r;
	int failed;

	tcase_add_test(t, logfmt_has_every_key_in_order);
	tcase_add_test(t, json_is_one_object_with_its_source_first);
	tcase_add_test(t, prometheus_has_help_type_and_samples);
	tcase_add_loop_test(t, verdict_is_one_line_per_word, 0, 6);
	tcase_add_loop_test(t, every_capacity_clips_as_snprintf_does, 0, 3);
	tcase_add_loop_test(t, seconds_have_six_decimals, 0, 5);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
