/* SPDX-License-Identifier: MIT */
/*
 * The server process as the proxy sees it. Between the two stands the
 * guardian (guardian.h): forked first, before the proxy allocates anything,
 * it starts the server, reaps everything, and outlives a kill -9 of the
 * proxy by the half second it needs to clean up.
 */
#ifndef SPILLWAY_CHILD_H
#define SPILLWAY_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/*
 * What the host gave us and the server must get unchanged: saved as the very
 * first thing in main(), which also opens /dev/null on closed fds 0 to 2
 * (os.md R1).
 */
struct inherited {
	sigset_t mask;
	struct sigaction action[NSIG];
	struct rlimit nofile;
	pid_t group; /* process group of the proxy */
};

int inherited_save(struct inherited *);

struct child {
	pid_t guardian;
	int control; /* CLOEXEC; readable when the guardian reports */
	int in;	     /* our non-blocking ends of the server's stdio; */
	int out;     /*   -1 once closed by their owner */
	int err;
};

enum child_report {
	CHILD_NOTHING,	   /* no report yet */
	CHILD_STARTED,	   /* exec succeeded; value: pid of the server */
	CHILD_EXEC_FAILED, /* value: errno */
	CHILD_EXITED,	   /* the server was reaped; value: wait status */
	CHILD_TREE_GONE,   /* nothing of its tree is left */
	CHILD_LOST,	   /* the guardian itself is gone */
};

/*
 * Fork the guardian and have it start argv with execvp, with inh restored,
 * clean descriptors and fds 0 to 2 on pipes. Returns 0, or -1 with errno
 * (nothing is left behind).
 */
int child_start(struct child *, char *const argv[],
    const struct inherited *inh);

/* Next report of the guardian, without blocking. */
enum child_report child_report(struct child *, int *value);

/* Orders to the guardian; cannot block, an order that cannot be sent means
 * that the guardian is gone, which child_report() tells. */
void child_signal(struct child *, int sig);	 /* the server process */
void child_signal_tree(struct child *, int sig); /* all descendants */

/* Let the guardian go, reap it, close what is open. */
void child_finish(struct child *);

/*
 * End this process as the server ended: same exit code, or the same signal
 * re-raised without a core file (os.md R15). Does not return.
 */
_Noreturn void child_exit_like(int wait_status);

#endif
