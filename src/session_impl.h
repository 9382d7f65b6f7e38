/* SPDX-License-Identifier: MIT */
/*
 * What the files of the shell share. session.c waits and calls the others in
 * a fixed order, once a turn; streams.c moves bytes; life.c starts, stops and
 * buries; told.c writes figures. None but session.c knows libev.
 */
#ifndef SESSION_IMPL_H
#define SESSION_IMPL_H

#include "spillway/endpoint.h"
#include "spillway/relay.h"
#include "spillway/session.h"
#include "spillway/spill.h"
#include "spillway/stop.h"
#include "spillway/to_stderr.h"

/* What can become ready; each has a watcher and a bit in session.ready. */
enum source {
	SOURCE_HOST_IN,	   /* the host wrote */
	SOURCE_HOST_OUT,   /* the host has room */
	SOURCE_HOST_GONE,  /* something happened to its read end */
	SOURCE_HOST_ERR,   /* stderr has room */
	SOURCE_SERVER_IN,  /* the server has room */
	SOURCE_SERVER_OUT, /* the server wrote */
	SOURCE_SERVER_ERR,
	SOURCE_CHILD,	   /* the guardian reports */
	SOURCE_SIGNAL,
	SOURCES,
};

#define READ_SIZE ((size_t)64 << 10)	  /* of one read; */
#define READ_SIZE_MAX ((size_t)128 << 10) /* once one came back full */
#define BULK ((size_t)32 << 10)		  /* a read so long is no chat */
#define PIPE_BULK (512 << 10) /* then pipes are made so large, if they may */

struct session {
	const struct config *config;
	struct relay *relay;
	struct to_stderr *err;
	struct spill *spill;
	struct child child;
	struct stop stop;
	int signals; /* signalfd */

	struct endpoint host_in;
	struct endpoint host_out;
	struct endpoint host_err;
	struct endpoint server_in;
	struct endpoint server_out;
	struct endpoint server_err;
	bool host_out_full; /* would block until its source is ready */
	bool host_err_full;
	bool server_in_full;
	bool watch_host;    /* its read end can be watched without spinning */
	bool more;	    /* something was left unread: do not sleep */
	char *host_buffer;  /* READ_SIZE bytes */
	char *server_buffer; /* READ_SIZE_MAX bytes, touched as needed */
	size_t server_read; /* how much to read at once */
	bool enlarged;	    /* the pipes from server to host were */

	uint64_t stderr_bytes; /* of the server's */
	unsigned ready; /* bits 1 << enum source, set by watchers */
	usec_t now;
	usec_t deadline; /* what the timer was set to, or USEC_NEVER */
	bool restart;	 /* we were away: clocks start again this turn */

	bool ending;   /* we, not the server, began the end */
	bool exited;   /* the server was reaped with status: */
	int status;
	bool exec_failed;
	bool tree_gone;
	bool buried;   /* the relay was told that the server is gone */
	usec_t bury_at; /* if it is but a launcher that exited, or NEVER */
	usec_t exited_at;
	uint64_t exited_bytes; /* stdout_bytes when it was drained then */
	usec_t killed_at;      /* first SIGKILL to the tree, or USEC_NEVER */
	usec_t moved_at;       /* last write to the host, once buried */
	uint64_t moved_bytes;
	usec_t finish_by;      /* stderr gets until then, or USEC_NEVER */
	bool finished;

	int log_fd; /* --log-file, or -1 */
	usec_t next_metrics; /* or USEC_NEVER */
	usec_t next_file;
	bool file_told; /* that --metrics-file cannot be written */
};

usec_t clock_now(void);

/* streams.c */
void streams_open(struct session *);
void streams_close(struct session *);
void streams_drain_server(struct session *);
void streams_write_host(struct session *);
void streams_read_host(struct session *);
void streams_write_server(struct session *);
void streams_write_stderr(struct session *);
void streams_look_at_host(struct session *);
void streams_last_bytes(struct session *);
void streams_host_gone(struct session *);
void streams_probe(const struct session *, struct relay_probe *);

/* life.c */
void life_signals(struct session *);
void life_child(struct session *);
void life_event(struct session *, enum stop_event, int sig);
void life_step(struct session *);
usec_t life_deadline(const struct session *);
int life_status(const struct session *);

/* told.c */
int told_open(struct session *);
void told_close(struct session *);
void told_tick(struct session *);
void told_metrics(struct session *);
void told_log_file(struct session *);
usec_t told_deadline(const struct session *);

#endif
