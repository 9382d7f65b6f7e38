/* SPDX-License-Identifier: MIT */
/*
 * The guardian (guardian.h). It allocates nothing, blocks every signal but
 * those that cannot be, and has one loop: orders of the proxy, ends of
 * processes, and the clock once the proxy is gone.
 *
 *   serving --LEAVE--------------------> KILL the tree until it is empty
 *           --control closed (kill -9)--> TERM, CONT; 500 ms; KILL
 */
#include "guardian.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tree.h"

#define LAST_GRACE_MS 500 /* from TERM to KILL when the proxy is gone */
#define KILL_AGAIN_MS 10
#define FD_FREE 3

struct guardian {
	int control;
	int reaper; /* signalfd of SIGCHLD */
	pid_t server; /* 0 once reaped */
	bool alone;   /* the proxy is gone, or let us go */
	bool empty;   /* no descendant is left, and that was told */
	int64_t kill_at; /* ms; when alone */
};

static int64_t
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail here */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The proxy may be gone: then the end of the control socket tells it. */
static void
report(const struct guardian *g, enum child_report what, int value)
{
	struct guardian_word w = { (int)what, value };

	while (send(g->control, &w, sizeof w, MSG_NOSIGNAL) < 0 &&
	    errno == EINTR)
		continue;
}

static void
signal_tree(const struct guardian *g, int sig)
{
	/* A /proc that tells no children: the server at least. */
	if (tree_signal(sig) == 0 && g->server > 0)
		(void)kill(g->server, sig);
}

static void
reap(struct guardian *g)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != g->server)
			continue;
		g->server = 0;
		report(g, CHILD_EXITED, status);
	}
	if (pid < 0 && errno == ECHILD && !g->empty) {
		g->empty = true;
		report(g, CHILD_TREE_GONE, 0);
	}
}

static void
leave_alone(struct guardian *g, int grace_ms)
{
	g->alone = true;
	g->kill_at = now_ms() + grace_ms;
	if (grace_ms > 0) {
		signal_tree(g, SIGTERM);
		signal_tree(g, SIGCONT);
	}
}

static void
obey(struct guardian *g)
{
	struct guardian_word w;
	ssize_t n = recv(g->control, &w, sizeof w, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof w) {
		leave_alone(g, LAST_GRACE_MS);
		return;
	}
	switch ((enum guardian_order)w.what) {
	case GUARDIAN_SIGNAL:
		if (g->server > 0)
			(void)kill(g->server, w.value); /* unreaped: it is */
		break;
	case GUARDIAN_SIGNAL_TREE:
		signal_tree(g, w.value);
		break;
	case GUARDIAN_LEAVE:
		leave_alone(g, 0);
		break;
	}
}

/* How long to wait for something to happen, in ms. */
static int
patience(const struct guardian *g)
{
	int64_t left;

	if (!g->alone)
		return -1;
	left = g->kill_at - now_ms();
	return left > KILL_AGAIN_MS ? (int)left : KILL_AGAIN_MS;
}

static _Noreturn void
serve(struct guardian *g)
{
	struct signalfd_siginfo si;

	for (;;) {
		struct pollfd p[2] = { { .fd = g->reaper, .events = POLLIN },
			{ .fd = g->alone ? -1 : g->control,
			    .events = POLLIN } };

		(void)poll(p, 2, patience(g)); /* EINTR: look again */
		while (read(g->reaper, &si, sizeof si) > 0)
			continue;
		reap(g);
		if (p[1].revents != 0)
			obey(g);
		if (!g->alone)
			continue;
		if (g->empty)
			_exit(0);
		if (now_ms() >= g->kill_at)
			signal_tree(g, SIGKILL);
	}
}

void
close_inherited(void)
{
	int limit = (int)sysconf(_SC_OPEN_MAX);
	struct dirent *d;
	DIR *dir = opendir("/proc/self/fd");

	if (dir == NULL) {
		for (int fd = FD_FREE; fd < limit; fd++)
			if (fcntl(fd, F_GETFD) == 0)
				close(fd);
		return;
	}
	/* Ours are all close-on-exec; what came through an exec is not. */
	while ((d = readdir(dir)) != NULL) {
		int fd = atoi(d->d_name);

		if (fd >= FD_FREE && fd != dirfd(dir) &&
		    fcntl(fd, F_GETFD) == 0)
			close(fd);
	}
	closedir(dir);
}

/* Signals, limits and descriptors as the host left them. */
static void
restore(const struct guardian_start *st)
{
	const struct inherited *inh = st->inherited;

	if (dup2(st->in, STDIN_FILENO) < 0 ||
	    dup2(st->out, STDOUT_FILENO) < 0 ||
	    dup2(st->err, STDERR_FILENO) < 0)
		_exit(126);
	(void)setpgid(0, inh->group);
	(void)setrlimit(RLIMIT_NOFILE, &inh->nofile);
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			(void)sigaction(sig, &inh->action[sig], NULL);
	(void)sigprocmask(SIG_SETMASK, &inh->mask, NULL);
}

/* exec tells its failure through a pipe that success closes. */
static void
start_server(struct guardian *g, const struct guardian_start *st)
{
	int told[2], error = 0;
	ssize_t n;

	if (pipe2(told, O_CLOEXEC) != 0 || (g->server = fork()) < 0) {
		g->server = 0;
		report(g, CHILD_EXEC_FAILED, errno);
		return;
	}
	if (g->server == 0) {
		restore(st);
		execvp(st->argv[0], st->argv);
		error = errno;
		n = write(told[1], &error, sizeof error);
		_exit(n == (ssize_t)sizeof error ? 127 : 126);
	}
	close(told[1]);
	do {
		n = read(told[0], &error, sizeof error);
	} while (n < 0 && errno == EINTR);
	close(told[0]);
	if (n == (ssize_t)sizeof error) {
		(void)waitpid(g->server, NULL, 0);
		g->server = 0;
		report(g, CHILD_EXEC_FAILED, error);
	} else {
		report(g, CHILD_STARTED, g->server);
	}
}

/* Nothing of the host's stays open here, and nobody's directory is held. */
static void
let_go(struct guardian *g)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd < FD_FREE; fd++)
		(void)dup3(null, fd, O_CLOEXEC);
	(void)syscall(SYS_close_range, FD_FREE, (unsigned)g->control - 1, 0);
	(void)syscall(SYS_close_range, (unsigned)g->control + 1, ~0u, 0);
	if (chdir("/") != 0) {
		/* then a mount stays busy for as long as the session lasts */
	}
}

_Noreturn void
guardian_run(int control, const struct guardian_start *st)
{
	struct guardian g = { .control = control };
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t all, chld;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigaction(SIGCHLD, &plain, NULL);
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* without: the server alone */
	(void)prctl(PR_SET_NAME, "spillway-guard");
	start_server(&g, st);
	let_go(&g);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	g.reaper = signalfd(-1, &chld, SFD_NONBLOCK | SFD_CLOEXEC);
	serve(&g);
}
