/* SPDX-License-Identifier: MIT */
/*
 * Life and death: what signals, the guardian's reports and the ends of
 * streams mean (contract section 7). When something is due, and after how
 * long, is stop.c's; here it is done.
 *
 * The server's exit is told by wait, not by EOF. What it wrote is read then,
 * pending requests are answered (buried), the rest of its tree is killed,
 * and the proxy stays for as long as the host takes what waits for it.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session_impl.h"

#define LAUNCHED_TALK (3 * USEC_SEC)   /* an heir must speak by then, */
#define LAUNCHED_WORK (30 * USEC_SEC)  /* or by then if it was asked */
#define HOST_PATIENCE (30 * USEC_SEC)  /* without progress, at the end */
#define STDERR_PATIENCE (250 * USEC_MSEC)
#define TREE_PATIENCE (3 * USEC_SEC)   /* for what SIGKILL does not end */

static void
act(struct session *s, unsigned actions, int sig)
{
	if ((actions & STOP_DO_PASS_SIGNAL) != 0 && sig != 0)
		child_signal(&s->child, sig);
	if ((actions & STOP_DO_CLOSE_NOW) != 0) {
		endpoint_close(&s->server_in);
		relay_peer_gone(s->relay, RELAY_SERVER, s->now);
	}
	if ((actions & STOP_DO_TERM) != 0) {
		child_signal_tree(&s->child, SIGTERM);
		child_signal_tree(&s->child, SIGCONT);
	}
	if ((actions & STOP_DO_KILL) != 0) {
		child_signal_tree(&s->child, SIGKILL);
		if (s->killed_at == USEC_NEVER)
			s->killed_at = s->now;
	}
	if ((actions & STOP_DO_FINISH) != 0)
		s->tree_gone = true;
}

/* Something happened to the session; sig is the signal that came, or 0. */
void
life_event(struct session *s, enum stop_event e, int sig)
{
	enum stop_state before = s->stop.state;

	switch (e) {
	case STOP_ON_HOST_EOF:
	case STOP_ON_HOST_GONE:
	case STOP_ON_HOST_DEAD:
	case STOP_ON_SIGNAL:
	case STOP_ON_FATAL:
		s->ending = true;
		break;
	case STOP_ON_REPLY:
	case STOP_ON_DELIVERED:
	case STOP_ON_STDOUT_CLOSED:
	case STOP_ON_EXIT:
	case STOP_ON_TREE_GONE:
	case STOP_ON_RESTART:
	case STOP_ON_TIME:
		break;
	}
	act(s, stop_on(&s->stop, e, s->now), sig);
	if (s->stop.state != before)
		to_stderr_log(s->err, LOG_LEVEL_DEBUG, "%s: %s -> %s",
		    stop_event_name(e), stop_state_name(before),
		    stop_state_name(s->stop.state));
}

/* ^Z: the server stops with us, and goes on with us. */
static void
stop_with_tree(struct session *s, bool from_tty)
{
	if (!from_tty)
		child_signal_tree(&s->child, SIGTSTP);
	kill(getpid(), SIGSTOP);
	s->restart = true;
}

static void
on_signal(struct session *s, const struct signalfd_siginfo *si)
{
	int sig = (int)si->ssi_signo;
	/* A terminal signals its whole group: the server has it already. */
	bool from_tty = si->ssi_code == SI_KERNEL;

	switch (sig) {
	case SIGUSR1:
		told_metrics(s);
		break;
	case SIGTSTP:
		stop_with_tree(s, from_tty);
		break;
	case SIGCONT:
		s->restart = true;
		child_signal_tree(&s->child, SIGCONT);
		life_event(s, STOP_ON_RESTART, 0);
		break;
	default:
		life_event(s, STOP_ON_SIGNAL, from_tty ? 0 : sig);
		break;
	}
}

void
life_signals(struct session *s)
{
	struct signalfd_siginfo si;

	if ((s->ready & 1u << SOURCE_SIGNAL) == 0)
		return;
	while (read(s->signals, &si, sizeof si) == (ssize_t)sizeof si)
		on_signal(s, &si);
}

static void
exec_failed(struct session *s, int error)
{
	const char *name = s->config->command[0];

	s->exec_failed = s->exited = true;
	s->exited_at = s->now;
	s->status = (error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE)
	    << 8;
	to_stderr_log(s->err, LOG_LEVEL_ERROR, "cannot run %s: %s", name,
	    strerror(error));
}

static void
server_exited(struct session *s, int status)
{
	struct metrics *m = relay_metrics(s->relay, s->now);

	s->exited = true;
	s->status = status;
	s->exited_at = s->now;
	m->server_exits++;
	if (WIFSIGNALED(status))
		m->server_exit_signal = (uint64_t)WTERMSIG(status);
	else
		m->server_exit_code = (uint64_t)WEXITSTATUS(status);
	streams_last_bytes(s);
	s->exited_bytes = m->stdout_bytes;
}

static void
guardian_lost(struct session *s)
{
	s->tree_gone = true;
	if (s->exited)
		return;
	to_stderr_log(s->err, LOG_LEVEL_ERROR, "the guardian process was "
	    "killed: the session is ended");
	s->exited = s->ending = true;
	s->exited_at = s->now;
	s->status = EXIT_PROXY << 8;
	streams_last_bytes(s);
	life_event(s, STOP_ON_FATAL, 0);
}

void
life_child(struct session *s)
{
	int value;

	if ((s->ready & 1u << SOURCE_CHILD) == 0)
		return;
	for (;;)
		switch (child_report(&s->child, &value)) {
		case CHILD_NOTHING:
			return;
		case CHILD_STARTED:
			to_stderr_log(s->err, LOG_LEVEL_DEBUG,
			    "the server runs pid=%d", value);
			break;
		case CHILD_EXEC_FAILED:
			exec_failed(s, value);
			break;
		case CHILD_EXITED:
			server_exited(s, value);
			break;
		case CHILD_TREE_GONE:
			life_event(s, STOP_ON_TREE_GONE, 0);
			break;
		case CHILD_LOST:
			guardian_lost(s);
			return;
		}
}

/*
 * A launcher exits with 0 once the real server runs, which holds its pipes:
 * the session goes on for as long as that one talks, or has been asked.
 * USEC_NEVER: it goes on; else how long it may still.
 */
static usec_t
heir_until(struct session *s)
{
	const struct metrics *m;

	if (s->server_out.kind == ENDPOINT_CLOSED || s->tree_gone ||
	    s->exec_failed || s->ending || s->status != 0)
		return 0;
	m = relay_metrics(s->relay, s->now);
	if (m->stdout_bytes > s->exited_bytes)
		return USEC_NEVER;
	return s->exited_at + (m->requests_pending > 0 ? LAUNCHED_WORK :
	    LAUNCHED_TALK);
}

static void
tell_why(struct session *s)
{
	if (s->ending || s->exec_failed)
		return;
	if (WIFSIGNALED(s->status))
		to_stderr_log(s->err, LOG_LEVEL_WARN, "the server was killed "
		    "by signal %d (%s)", WTERMSIG(s->status),
		    strsignal(WTERMSIG(s->status)));
	else if (WEXITSTATUS(s->status) != 0)
		to_stderr_log(s->err, LOG_LEVEL_WARN, "the server exited with "
		    "status %d", WEXITSTATUS(s->status));
	else
		to_stderr_log(s->err, LOG_LEVEL_INFO, "the server exited with "
		    "status 0 before the host closed its stdin");
}

/* The server is gone for good: answer what is pending, end its tree. */
static void
bury(struct session *s)
{
	s->buried = true;
	s->moved_at = s->now;
	streams_last_bytes(s);
	tell_why(s);
	endpoint_close(&s->server_out);
	endpoint_close(&s->server_err);
	to_stderr_server_end(s->err, s->now);
	relay_server_gone(s->relay, s->exec_failed ? -1 : s->status,
	    s->ending, s->now);
	relay_settle(s->relay, RELAY_HOST);
	endpoint_close(&s->server_in);
	life_event(s, STOP_ON_EXIT, 0);
}

/* Has the host all it will take? */
static bool
host_served(struct session *s)
{
	uint64_t sent = relay_metrics(s->relay, s->now)->to_host_bytes;
	usec_t patience = s->config->limits.stall_timeout;

	if (patience > HOST_PATIENCE)
		patience = HOST_PATIENCE;
	if (sent != s->moved_bytes) {
		s->moved_bytes = sent;
		s->moved_at = s->now;
	}
	return (relay_wants(s->relay) & RELAY_WRITE_HOST) == 0 ||
	    s->now - s->moved_at >= patience;
}

static bool
tree_served(const struct session *s)
{
	return s->tree_gone || (s->killed_at != USEC_NEVER &&
	    s->now - s->killed_at >= TREE_PATIENCE);
}

/* Everything is done but the last lines on stderr. */
static void
finish(struct session *s)
{
	if (s->finish_by == USEC_NEVER) {
		if (relay_wants(s->relay) & RELAY_WRITE_HOST)
			to_stderr_log(s->err, LOG_LEVEL_WARN, "the host did "
			    "not take what was left for it");
		(void)to_stderr_tick(s->err, USEC_NEVER);
		told_metrics(s);
		streams_write_stderr(s);
		s->finish_by = s->now + STDERR_PATIENCE;
	}
	s->finished = to_stderr_empty(s->err) || s->now >= s->finish_by;
}

/* It does not read; that its other end closes too must be looked for. */
static bool
host_dying(const struct session *s)
{
	return s->host_out.kind == ENDPOINT_CLOSED && s->ending &&
	    s->stop.state == STOP_EOF;
}

/*
 * The host is held back, so that its end of file cannot be read: still it
 * must end a session whose server takes nothing.
 */
static bool
host_held(const struct session *s)
{
	return s->stop.state == STOP_RUNNING &&
	    s->host_in.kind != ENDPOINT_CLOSED &&
	    (relay_wants(s->relay) & RELAY_READ_HOST) == 0;
}

/*
 * The server's stdout ended though it lives, or memory and spill are full of
 * what may not be dropped, or the host ended and all is delivered.
 */
static void
look_at_streams(struct session *s)
{
	unsigned wants = relay_wants(s->relay);

	if ((wants & RELAY_CLOSE_SERVER) != 0 &&
	    s->server_in.kind != ENDPOINT_CLOSED) {
		endpoint_close(&s->server_in);
		life_event(s, STOP_ON_DELIVERED, 0);
	}
	if ((wants & RELAY_STOP) != 0 && !s->exited &&
	    s->stop.state < STOP_SIGNALLED)
		life_event(s, STOP_ON_FATAL, 0);
	if (s->server_out.kind == ENDPOINT_CLOSED && !s->exited &&
	    s->stop.state == STOP_RUNNING)
		life_event(s, STOP_ON_STDOUT_CLOSED, 0);
	if (host_held(s) && endpoint_peer_done(&s->host_in))
		life_event(s, STOP_ON_HOST_EOF, 0);
	if (host_dying(s) && (s->host_in.kind == ENDPOINT_CLOSED ||
	    endpoint_peer_gone(&s->host_in)))
		life_event(s, STOP_ON_HOST_DEAD, 0);
}

/* End of a turn: what follows from all that happened. */
void
life_step(struct session *s)
{
	look_at_streams(s);
	if (stop_deadline(&s->stop) <= s->now)
		life_event(s, STOP_ON_TIME, 0);
	if (s->exited && !s->buried) {
		s->bury_at = heir_until(s);
		if (s->bury_at <= s->now)
			bury(s);
	}
	if (!s->buried)
		return;
	streams_write_host(s);
	if (host_served(s) && tree_served(s))
		finish(s);
}

usec_t
life_deadline(const struct session *s)
{
	usec_t when = stop_deadline(&s->stop);

	if (host_dying(s) && s->now + 50 * USEC_MSEC < when)
		when = s->now + 50 * USEC_MSEC;
	if (host_held(s) && s->now + 250 * USEC_MSEC < when)
		when = s->now + 250 * USEC_MSEC;
	if (s->finish_by < when)
		when = s->finish_by;
	if (s->exited && !s->buried && s->bury_at < when)
		when = s->bury_at;
	if (s->buried && s->now + 100 * USEC_MSEC < when)
		when = s->now + 100 * USEC_MSEC;
	return when;
}

/* The wait status the proxy ends with. */
int
life_status(const struct session *s)
{
	return relay_failed(s->relay) ? EXIT_PROXY << 8 : s->status;
}
