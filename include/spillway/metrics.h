/* SPDX-License-Identifier: MIT */
/*
 * The figures of contract section 8: one list, from which the struct, the
 * logfmt and JSON lines, the Prometheus text and the manual's check come.
 *
 * X(key, type, unit-ish Prometheus kind, help). Types: U64 counts, SEC is a
 * usec_t shown in seconds with six decimals, WORD is a fixed word.
 */
#ifndef SPILLWAY_METRICS_H
#define SPILLWAY_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "spillway/limits.h"

#define SPILLWAY_METRICS(X) \
	X(uptime_seconds, SEC, GAUGE, "time since the proxy started") \
	X(stdin_bytes, U64, COUNTER, "bytes read from the host") \
	X(stdout_bytes, U64, COUNTER, "bytes read from the server's stdout") \
	X(stderr_bytes, U64, COUNTER, "bytes read from the server's stderr") \
	X(to_host_bytes, U64, COUNTER, "bytes written to the host") \
	X(to_server_bytes, U64, COUNTER, "bytes written to the server") \
	X(frames_to_host, U64, COUNTER, "frames written whole to the host") \
	X(frames_to_server, U64, COUNTER, "frames written whole to the server") \
	X(largest_frame_bytes, U64, GAUGE, "largest frame seen, with its LF") \
	X(parse_failures, U64, COUNTER, "malformed frames not forwarded") \
	X(junk_lines, U64, COUNTER, "server lines that were no message") \
	X(blank_lines, U64, COUNTER, "whitespace-only lines from the server") \
	X(repairs, U64, COUNTER, "frames forwarded after a repair") \
	X(oversize_frames, U64, COUNTER, "frames over the frame or depth limit") \
	X(results_cut, U64, COUNTER, "tools/call results cut to a limit") \
	X(queue_bytes, U64, GAUGE, "heap bytes held for frames") \
	X(queue_peak_bytes, U64, GAUGE, "highest queue_bytes") \
	X(spill_bytes, U64, GAUGE, "bytes of live spill blocks") \
	X(spill_peak_bytes, U64, GAUGE, "highest spill_bytes") \
	X(dispatch_wait_seconds, SEC, COUNTER, "time a whole frame waited for the host") \
	X(dispatch_wait_max_seconds, SEC, GAUGE, "longest wait of one frame") \
	X(host_stalls, U64, COUNTER, "host stall verdicts") \
	X(stall_seconds, SEC, COUNTER, "time spent in host stalls") \
	X(cancels_sent, U64, COUNTER, "notifications/cancelled sent to the server") \
	X(requests_pending, U64, GAUGE, "requests without a reply, both directions") \
	X(requests_pending_peak, U64, GAUGE, "highest requests_pending") \
	X(requests_untracked, U64, COUNTER, "requests that could not be kept track of") \
	X(replies_synthesized, U64, COUNTER, "replies made by the proxy for the host") \
	X(replies_suppressed, U64, COUNTER, "server replies not forwarded") \
	X(progress_suppressed, U64, COUNTER, "progress for closed tokens not forwarded") \
	X(notifications_coalesced, U64, COUNTER, "notifications replaced by a newer one") \
	X(notifications_dropped, U64, COUNTER, "notifications dropped for want of room") \
	X(stderr_lines_dropped, U64, COUNTER, "stderr lines dropped for want of room") \
	X(server_exits, U64, COUNTER, "exits of the server") \
	X(server_exit_code, U64, GAUGE, "exit code of the server") \
	X(server_exit_signal, U64, GAUGE, "signal that ended the server, or 0") \
	X(loop_lag_max_seconds, SEC, GAUGE, "longest turn of the event loop") \
	X(verdict, WORD, STATE, "whose fault a freeze is")

/* Whose fault a freeze is, in one word (contract section 8). */
#define SPILLWAY_VERDICTS(X) \
	X(OK, "ok") \
	X(HOST_STALLED, "host_stalled") \
	X(SERVER_STALLED, "server_stalled") \
	X(SERVER_SILENT, "server_silent") \
	X(SERVER_NOT_READING, "server_not_reading") \
	X(SERVER_GONE, "server_gone")

enum verdict {
#define X(name, word) VERDICT_##name,
	SPILLWAY_VERDICTS(X)
#undef X
};

const char *verdict_name(enum verdict);

struct metrics {
#define METRIC_FIELD_U64(key) uint64_t key;
#define METRIC_FIELD_SEC(key) usec_t key;
#define METRIC_FIELD_WORD(key) enum verdict key;
#define X(key, type, kind, help) METRIC_FIELD_##type(key)
	SPILLWAY_METRICS(X)
#undef X
};

/*
 * Write all figures in the named form, NUL-terminated, without prefix or
 * final newline (Prometheus: complete text with newlines). Return the length
 * that was needed, as snprintf does; cap may be 0.
 */
size_t metrics_logfmt(const struct metrics *, char *buf, size_t cap);
size_t metrics_json(const struct metrics *, char *buf, size_t cap);
size_t metrics_prometheus(const struct metrics *, char *buf, size_t cap);

#endif
