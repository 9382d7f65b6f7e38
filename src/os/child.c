/* SPDX-License-Identifier: MIT */
/*
 * The proxy's side of the guardian: start, orders, reports, and an end like
 * the server's.
 */
#include "spillway/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guardian.h"
#include "tree.h"

#define PATIENCE_MS 1000 /* for the guardian to kill what is left */
#define LOST_TERM_MS 300 /* from TERM to KILL where there is none any more */
#define LOST_KILL_MS 500
#define LOOK_MS 5

int
inherited_save(struct inherited *inh)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null",
		    fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd)
			return -1;
	memset(inh, 0, sizeof *inh);
	for (int sig = 1; sig < NSIG; sig++)
		if (sigaction(sig, NULL, &inh->action[sig]) != 0)
			inh->action[sig].sa_handler = SIG_DFL; /* libc's own */
	inh->group = getpgrp();
	/* An ignored SIGCHLD would hide how children end. */
	(void)sigaction(SIGCHLD, &plain, NULL);
	if (getrlimit(RLIMIT_NOFILE, &inh->nofile) != 0)
		return -1;
	return sigprocmask(SIG_SETMASK, NULL, &inh->mask);
}

static void
close_all(int *fd, int n)
{
	int saved = errno;

	for (int i = 0; i < n; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	errno = saved;
}

enum { IN_READ, IN_WRITE, OUT_READ, OUT_WRITE, ERR_READ, ERR_WRITE, CONTROL,
	CONTROL_PEER, FDS };

static int
open_all(int *fd)
{
	static const int ours[] = { IN_WRITE, OUT_READ, ERR_READ };

	for (int i = 0; i < FDS; i++)
		fd[i] = -1;
	if (pipe2(fd + IN_READ, O_CLOEXEC) != 0 ||
	    pipe2(fd + OUT_READ, O_CLOEXEC) != 0 ||
	    pipe2(fd + ERR_READ, O_CLOEXEC) != 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    fd + CONTROL) != 0)
		return -1;
	/* Our ends alone: the two ends of a pipe are two descriptions. */
	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (fcntl(fd[ours[i]], F_SETFL, O_NONBLOCK) != 0)
			return -1;
	return 0;
}

int
child_start(struct child *c, char *const argv[], const struct inherited *inh)
{
	struct guardian_start start = { .argv = argv, .inherited = inh };
	int fd[FDS];

	if (open_all(fd) != 0 || (c->guardian = fork()) < 0) {
		close_all(fd, FDS);
		return -1;
	}
	if (c->guardian == 0) {
		/* No end of ours may live here: EOF must be seen. */
		close(fd[IN_WRITE]);
		close(fd[OUT_READ]);
		close(fd[ERR_READ]);
		close(fd[CONTROL]);
		start.in = fd[IN_READ];
		start.out = fd[OUT_WRITE];
		start.err = fd[ERR_WRITE];
		guardian_run(fd[CONTROL_PEER], &start);
	}
	close(fd[IN_READ]);
	close(fd[OUT_WRITE]);
	close(fd[ERR_WRITE]);
	close(fd[CONTROL_PEER]);
	close_inherited();
	/* Should the guardian be killed, what it guarded comes to us. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	c->control = fd[CONTROL];
	c->in = fd[IN_WRITE];
	c->out = fd[OUT_READ];
	c->err = fd[ERR_READ];
	return 0;
}

/* Reap what has ended; is anything left? */
static bool
orphans_left(void)
{
	pid_t pid;

	do {
		pid = waitpid(-1, NULL, WNOHANG);
	} while (pid > 0 || (pid < 0 && errno == EINTR));
	return pid == 0;
}

/*
 * The guardian was killed: we are the next reaper of all it had. The session
 * is lost; that it does not go on for a moment hurts nobody.
 */
static void
end_orphans(void)
{
	(void)tree_signal(SIGTERM);
	(void)tree_signal(SIGCONT);
	for (int ms = 0; orphans_left() && ms < LOST_TERM_MS + LOST_KILL_MS;
	    ms += LOOK_MS) {
		if (ms >= LOST_TERM_MS)
			(void)tree_signal(SIGKILL);
		(void)poll(NULL, 0, LOOK_MS);
	}
}

enum child_report
child_report(struct child *c, int *value)
{
	struct guardian_word w;
	ssize_t n;

	if (c->control < 0)
		return CHILD_NOTHING;
	do {
		n = recv(c->control, &w, sizeof w, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return CHILD_NOTHING;
	if (n != (ssize_t)sizeof w) {
		close(c->control);
		c->control = -1;
		end_orphans();
		return CHILD_LOST;
	}
	*value = w.value;
	return (enum child_report)w.what;
}

static void
order(struct child *c, enum guardian_order what, int value)
{
	struct guardian_word w = { (int)what, value };

	if (c->control >= 0 && send(c->control, &w, sizeof w,
	    MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		/* it is gone; child_report() tells */
	}
}

void
child_signal(struct child *c, int sig)
{
	order(c, GUARDIAN_SIGNAL, sig);
}

void
child_signal_tree(struct child *c, int sig)
{
	order(c, GUARDIAN_SIGNAL_TREE, sig);
}

void
child_finish(struct child *c)
{
	struct pollfd p = { .fd = c->control };

	order(c, GUARDIAN_LEAVE, 0);
	/* Its end of the socket closes when it has cleaned up and is gone. */
	if (c->control >= 0 && poll(&p, 1, PATIENCE_MS) == 0) {
		close(c->control);
		c->control = -1;
		return; /* it goes on without us, and init reaps it */
	}
	if (c->control >= 0)
		close(c->control);
	c->control = -1;
	while (waitpid(c->guardian, NULL, 0) < 0 && errno == EINTR)
		continue;
}

_Noreturn void
child_exit_like(int wait_status)
{
	struct rlimit none = { 0, 0 };
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t set;
	int sig;

	if (!WIFSIGNALED(wait_status))
		_exit(WEXITSTATUS(wait_status));
	sig = WTERMSIG(wait_status);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_DUMPABLE, 0); /* pipes in core_pattern know no limit */
	(void)sigaction(sig, &plain, NULL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(sig);
	_exit(128 + sig); /* a signal that does not kill */
}
