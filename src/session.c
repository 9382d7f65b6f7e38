/* SPDX-License-Identifier: MIT */
/*
 * The loop. Watchers only note what is ready; then comes one turn, in a fixed
 * order, and one function that says what is waited for next. libev is known
 * here and nowhere else.
 */
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "session_impl.h"

#define LATE (400 * USEC_MSEC)	   /* a timer so late: we were away */
#define TRIM_FROM (1024u * 1024)   /* bytes worth giving back when quiet */

struct loop {
	struct session s;
	struct ev_loop *ev;
	struct ev_io io[SOURCES];
	struct ev_timer timer;
	uint64_t trimmed; /* queue_peak_bytes when free heap was given back */
};

usec_t
clock_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail here */
	return (usec_t)ts.tv_sec * USEC_SEC + (usec_t)ts.tv_nsec / 1000;
}

static void
on_ready(struct ev_loop *ev, struct ev_io *io, int revents)
{
	struct loop *l = io->data;

	(void)ev;
	(void)revents;
	l->s.ready |= 1u << (io - l->io);
}

static void
on_timer(struct ev_loop *ev, struct ev_timer *timer, int revents)
{
	(void)ev; /* its waking the loop is all that is wanted */
	(void)timer;
	(void)revents;
}

static void
watch(struct loop *l, enum source src, int fd, int events, bool wanted)
{
	struct ev_io *io = &l->io[src];

	if (!wanted || (ev_is_active(io) && io->fd != fd))
		ev_io_stop(l->ev, io);
	if (!wanted || ev_is_active(io))
		return;
	ev_io_set(io, fd, events);
	ev_io_start(l->ev, io);
}

static void
watch_endpoint(struct loop *l, enum source src, const struct endpoint *e,
    bool wanted)
{
	bool open = e->kind != ENDPOINT_CLOSED;

	if (open && wanted && !e->pollable)
		l->s.more = true;
	watch(l, src, open ? e->fd : -1,
	    e->use == ENDPOINT_READ ? EV_READ : EV_WRITE,
	    open && wanted && e->pollable);
}

static usec_t
earliest(struct loop *l)
{
	struct session *s = &l->s;
	usec_t d[] = { relay_deadline(s->relay), life_deadline(s),
		told_deadline(s), to_stderr_tick(s->err, s->now) };
	usec_t when = USEC_NEVER;

	for (size_t i = 0; i < sizeof d / sizeof d[0]; i++)
		if (d[i] < when)
			when = d[i];
	return when;
}

static void
set_timer(struct loop *l)
{
	struct session *s = &l->s;
	usec_t when = earliest(l);
	usec_t now;

	if (when == s->deadline && (ev_is_active(&l->timer) ||
	    when == USEC_NEVER))
		return;
	s->deadline = when;
	ev_timer_stop(l->ev, &l->timer);
	if (when == USEC_NEVER)
		return;
	ev_now_update(l->ev);
	now = clock_now();
	ev_timer_set(&l->timer, when > now ?
	    (double)(when - now) / (double)USEC_SEC : 0., 0.);
	ev_timer_start(l->ev, &l->timer);
}

/* What is waited for next: said in this one place. */
static void
rearm(struct loop *l)
{
	struct session *s = &l->s;
	unsigned wants = relay_wants(s->relay);

	watch_endpoint(l, SOURCE_HOST_IN, &s->host_in,
	    (wants & RELAY_READ_HOST) != 0);
	watch_endpoint(l, SOURCE_HOST_OUT, &s->host_out,
	    (wants & RELAY_WRITE_HOST) != 0);
	watch(l, SOURCE_HOST_GONE, s->host_out.fd, EV_READ,
	    s->watch_host && s->host_out.kind != ENDPOINT_CLOSED);
	watch_endpoint(l, SOURCE_HOST_ERR, &s->host_err,
	    !to_stderr_empty(s->err));
	watch_endpoint(l, SOURCE_SERVER_IN, &s->server_in,
	    (wants & RELAY_WRITE_SERVER) != 0);
	watch_endpoint(l, SOURCE_SERVER_OUT, &s->server_out, true);
	watch_endpoint(l, SOURCE_SERVER_ERR, &s->server_err, true);
	watch(l, SOURCE_CHILD, s->child.control, EV_READ,
	    s->child.control >= 0 && !(s->tree_gone && s->exited));
	watch(l, SOURCE_SIGNAL, s->signals, EV_READ, true);
	set_timer(l);
}

static void
tick(struct session *s)
{
	struct relay_probe probe;

	if (s->restart)
		relay_restart_clocks(s->relay, s->now);
	s->restart = false;
	if (relay_deadline(s->relay) <= s->now) {
		streams_probe(s, &probe);
		(void)relay_tick(s->relay, &probe, s->now);
	}
	told_tick(s);
}

/* Once all is delivered, memory that frames took goes back. */
static void
trim(struct loop *l)
{
	const struct metrics *m;

	if (!relay_quiet(l->s.relay) || l->s.more)
		return;
	m = relay_metrics(l->s.relay, l->s.now);
	if (m->queue_peak_bytes < l->trimmed + TRIM_FROM)
		return;
	l->trimmed = m->queue_peak_bytes;
	malloc_trim(0);
}

/*
 * One turn. Signals first, for they may change what is to be done; the server
 * is read before the host is written, since its bytes may still change what
 * the host gets; the host is read last, for only it can be held back.
 */
static void
turn(struct loop *l)
{
	struct session *s = &l->s;
	usec_t lag;

	s->now = clock_now();
	s->more = false;
	if (s->deadline != USEC_NEVER && s->now > s->deadline + LATE)
		s->restart = true;
	life_signals(s);
	streams_look_at_host(s);
	streams_drain_server(s);
	life_child(s);
	streams_write_host(s);
	streams_read_host(s);
	streams_write_server(s);
	tick(s);
	streams_write_server(s); /* cancels must not wait for another turn */
	streams_write_host(s);
	life_step(s);
	streams_write_stderr(s);
	s->ready = 0;
	trim(l);
	lag = clock_now() - s->now;
	if (lag > relay_metrics(s->relay, s->now)->loop_lag_max_seconds)
		relay_metrics(s->relay, s->now)->loop_lag_max_seconds = lag;
}

static void
run(struct loop *l)
{
	struct session *s = &l->s;

	l->ev = ev_loop_new(EVFLAG_NOENV | EVFLAG_NOSIGMASK);
	if (l->ev == NULL) {
		to_stderr_log(s->err, LOG_LEVEL_ERROR, "no event loop");
		s->status = EXIT_PROXY << 8;
		return;
	}
	for (int i = 0; i < SOURCES; i++) {
		ev_init(&l->io[i], on_ready);
		l->io[i].data = l;
	}
	ev_init(&l->timer, on_timer);
	while (!s->finished) {
		rearm(l);
		ev_run(l->ev, s->more ? EVRUN_NOWAIT : EVRUN_ONCE);
		turn(l);
	}
	ev_loop_destroy(l->ev);
}

/* Signals we act on come through a descriptor, like everything else. */
static int
take_signals(void)
{
	static const int ours[] = { SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT,
		SIGUSR1 };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
		sigaddset(&set, ours[i]);
		(void)sigaction(ours[i], &plain, NULL); /* valid numbers */
	}
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGXFSZ, &ignore, NULL); /* writes say EFBIG */
	(void)sigaction(SIGTTOU, &ignore, NULL);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return -1;
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int
fail(const char *what)
{
	fprintf(stderr, "spillway: error: %s: %s\n", what, strerror(errno));
	return EXIT_PROXY << 8;
}

/* 0; or a wait status, and why was told. */
static int
open_spill(struct session *s)
{
	const struct config *c = s->config;
	char why[512];

	if (c->limits.spill == 0)
		return 0;
	s->spill = spill_new(c->spill_dir, why, sizeof why);
	if (s->spill != NULL)
		return 0;
	if (c->spill_dir != NULL) {
		fprintf(stderr, "spillway: error: %s\n", why);
		return EXIT_USAGE << 8;
	}
	to_stderr_log(s->err, LOG_LEVEL_WARN, "no spill file, memory alone "
	    "must do: %s", why);
	return 0;
}

static uint64_t
make_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) !=
	    (ssize_t)sizeof seed)
		seed = clock_now() * 0x9e3779b97f4a7c15u;
	return seed;
}

/* What may fail before the server is started; 0, or a wait status. */
static int
prepare(struct session *s)
{
	const struct config *c = s->config;
	struct stderr_options options = { .level = c->log_level,
		.tty = isatty(STDERR_FILENO) == 1,
		.drop_server = c->drop_server_stderr };
	struct store_ops ops;
	int status;

	s->err = to_stderr_new(&options);
	if (s->err == NULL)
		return fail("cannot begin");
	status = open_spill(s);
	if (status != 0)
		return status;
	if (told_open(s) != 0)
		return EXIT_USAGE << 8;
	if (s->spill != NULL)
		ops = spill_ops(s->spill);
	s->host_buffer = malloc(READ_SIZE);
	s->server_buffer = malloc(READ_SIZE_MAX);
	s->relay = relay_new(&c->limits, s->spill != NULL ? &ops : NULL,
	    s->err, make_seed(), s->now);
	if (s->host_buffer == NULL || s->server_buffer == NULL ||
	    s->relay == NULL)
		return fail("cannot begin");
	return 0;
}

static void
dispose(struct session *s)
{
	told_close(s);
	relay_free(&s->relay);
	to_stderr_free(&s->err);
	spill_free(&s->spill);
	free(s->host_buffer);
	free(s->server_buffer);
	if (s->signals >= 0)
		close(s->signals);
}

static void
init(struct session *s, const struct config *config)
{
	s->config = config;
	s->now = clock_now();
	s->deadline = s->killed_at = s->finish_by = USEC_NEVER;
	s->server_read = READ_SIZE;
	s->signals = s->log_fd = s->child.control = -1;
	stop_init(&s->stop, config->limits.stop_grace);
}

int
session_run(const struct config *config, const struct inherited *inherited)
{
	struct loop l;
	struct session *s = &l.s;
	int status;

	memset(&l, 0, sizeof l);
	init(s, config);
	status = prepare(s);
	if (status == 0) {
		if ((s->signals = take_signals()) < 0 ||
		    child_start(&s->child, config->command, inherited) != 0) {
			status = fail("cannot start the server");
		} else {
			streams_open(s);
			run(&l);
			status = life_status(s);
			streams_close(s);
			child_finish(&s->child);
		}
	}
	dispose(s);
	return status;
}
