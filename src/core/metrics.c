/* SPDX-License-Identifier: MIT */
/*
 * The figures as text: logfmt, JSON and the Prometheus exposition format,
 * all three from the one list in metrics.h, so that no form can lack a key.
 * Knows nothing of where the figures come from or where the text goes.
 */
#include "spillway/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* Text that grows past its buffer unharmed: len counts what was needed. */
struct text {
	char *buf;
	size_t cap;
	size_t len;
};

static const char *const verdict_names[] = {
#define X(name, word) [VERDICT_##name] = word,
	SPILLWAY_VERDICTS(X)
#undef X
};

#define VERDICTS (sizeof(verdict_names) / sizeof(verdict_names[0]))

#define KIND_COUNTER "counter"
#define KIND_GAUGE "gauge"
#define KIND_STATE "gauge" /* the format has no states: 0 or 1 per word */

const char *
verdict_name(enum verdict v)
{
	return (size_t)v < VERDICTS ? verdict_names[v] : "unknown";
}

static void
text_init(struct text *t, char *buf, size_t cap)
{
	t->buf = buf;
	t->cap = cap;
	t->len = 0;
	if (cap > 0)
		buf[0] = '\0';
}

__attribute__((format(printf, 2, 3))) static void
add(struct text *t, const char *fmt, ...)
{
	bool fits = t->len < t->cap;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(fits ? t->buf + t->len : NULL,
	    fits ? t->cap - t->len : 0, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n;
}

static void
add_U64(struct text *t, uint64_t v)
{
	add(t, "%" PRIu64, v);
}

static void
add_SEC(struct text *t, usec_t v)
{
	add(t, "%" PRIu64 ".%06" PRIu64, v / USEC_SEC, v % USEC_SEC);
}

static void
add_WORD(struct text *t, enum verdict v)
{
	add(t, "%s", verdict_name(v));
}

static void
json_U64(struct text *t, uint64_t v)
{
	add_U64(t, v);
}

static void
json_SEC(struct text *t, usec_t v)
{
	add_SEC(t, v);
}

static void
json_WORD(struct text *t, enum verdict v)
{
	add(t, "\"%s\"", verdict_name(v));
}

static void
prom_U64(struct text *t, const char *key, uint64_t v)
{
	add(t, "spillway_%s ", key);
	add_U64(t, v);
	add(t, "\n");
}

static void
prom_SEC(struct text *t, const char *key, usec_t v)
{
	add(t, "spillway_%s ", key);
	add_SEC(t, v);
	add(t, "\n");
}

static void
prom_WORD(struct text *t, const char *key, enum verdict v)
{
	size_t i;

	for (i = 0; i < VERDICTS; i++)
		add(t, "spillway_%s{%s=\"%s\"} %d\n", key, key,
		    verdict_names[i], i == (size_t)v);
}

size_t
metrics_logfmt(const struct metrics *m, char *buf, size_t cap)
{
	struct text t;

	text_init(&t, buf, cap);
#define X(key, type, kind, help)                                              \
	add(&t, "%s" #key "=", t.len > 0 ? " " : "");                         \
	add_##type(&t, m->key);
	SPILLWAY_METRICS(X)
#undef X
	return t.len;
}

size_t
metrics_json(const struct metrics *m, char *buf, size_t cap)
{
	struct text t;

	text_init(&t, buf, cap);
	add(&t, "{\"source\":\"spillway\"");
#define X(key, type, kind, help)                                              \
	add(&t, ",\"" #key "\":");                                            \
	json_##type(&t, m->key);
	SPILLWAY_METRICS(X)
#undef X
	add(&t, "}");
	return t.len;
}

size_t
metrics_prometheus(const struct metrics *m, char *buf, size_t cap)
{
	struct text t;

	text_init(&t, buf, cap);
#define X(key, type, kind, help)                                              \
	add(&t, "# HELP spillway_" #key " " help "\n");                       \
	add(&t, "# TYPE spillway_" #key " " KIND_##kind "\n");                \
	prom_##type(&t, #key, m->key);
	SPILLWAY_METRICS(X)
#undef X
	return t.len;
}
