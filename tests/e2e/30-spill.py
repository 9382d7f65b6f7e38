#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A host that stops reading (contract section 4).

Without a buffer the server blocks in write(2), cannot read a cancellation,
and the session freezes for both. Here the server goes on, frames wait in
memory and then on disk, and every byte arrives when the host reads again.
"""
import hashlib
import os
import select
import signal

from kit import (MIB, PLAIN, PROGRAM, Session, check, each, fresh, main,
                 notice, request, result, run, same, scaled, test, until)

MEMORY_KB = (32 + 8) * 1024
FRAMES = scaled(200, 40)


def hoard(n, after="end"):
    """Steps: n frames of 1 MiB, then a note that they are all written."""
    line = notice("n/%i", '{"t":"@"}').decode().rstrip("\n")
    return (f"recv\ntimes {n} pad {MIB} {line}\nnote written\n"
            f"recv\nnote still reading\n{after}\n")


def expected(n):
    """SHA-256 and size of what hoard writes."""
    h, size = hashlib.sha256(), 0
    for i in range(n):
        line = notice("n/%i", '{"t":"@"}').rstrip(b"\n")
        line = (line.replace(b"@", b"x" * (MIB - len(line))) + b"\n") \
            .replace(b"%i", b"%d" % i)
        h.update(line)
        size += len(line)
    return b"drained %d %s\n" % (size, h.hexdigest().encode())


def figures(s):
    """SIGUSR1, and the metrics line that comes of it."""
    before = s.stderr().count("spillway: metrics ")
    s.process.send_signal(signal.SIGUSR1)
    until("a metrics line comes", lambda: s.stderr().count(
        "spillway: metrics ") > before)
    return s.metrics()


@each(pipe=("pipe",), socket=("socket",))
def stalled_host(stdio):
    where = fresh("spill")
    os.mkdir(where)
    s = Session(hoard(FRAMES), stdio=stdio,
                options=[f"--spill-dir={where}", "--stall-timeout=off"])
    s.send(notice("go"))
    until("the server has written all", lambda: b"written\n" in s.log())
    s.send(notice("second"))
    until("the server reads on", lambda: b"still reading\n" in s.log())
    m = figures(s)
    check(int(m["spill_bytes"]) > 0, "something is on disk", m)
    check(int(m["queue_bytes"]) <= 32 * MIB, "memory within --memory", m)
    check(os.listdir(where) == [], "no file is visible", os.listdir(where))
    check(not PLAIN or s.peak_kb() <= MEMORY_KB, f"peak {s.peak_kb()} KiB")
    s.half_close()
    s.host.drain()
    check(s.wait() == 0, "exit status", s.stderr())
    same(bytes(s.host.received), expected(FRAMES), "every byte")
    m = s.metrics()
    check(m["spill_bytes"] == m["queue_bytes"] == "0", "nothing is left", m)
    check(m["notifications_dropped"] == "0", "nothing was dropped", m)


@test
def memory_alone():
    """--spill=off: less room, nothing lost all the same."""
    s = Session(hoard(20), options=["--spill=off", "--stall-timeout=off"])
    s.send(notice("go"))
    until("the server has written all", lambda: b"written\n" in s.log())
    s.send(notice("second"))
    m = figures(s)
    check(m["spill_peak_bytes"] == "0", "nothing on disk", m)
    s.half_close()
    s.host.drain()
    check(s.wait() == 0, "exit status", s.stderr())
    same(bytes(s.host.received), expected(20), "every byte")


@test
def replies_wait_too():
    """Replies to calls made during the stall arrive in order after it."""
    n = 64
    s = Session("".join(f'recv\npad 600000 {{"jsonrpc":"2.0","id":{i},'
                        f'"result":{{"t":"@"}}}}\n' for i in range(n)) +
                "note written", options=["--stall-timeout=off"])
    s.send(*[request(i) for i in range(n)])
    until("the server has written all", lambda: b"written\n" in s.log())
    for i in range(n):
        line = s.line()
        check(len(line) == 600000 and line.startswith(
            b'{"jsonrpc":"2.0","id":%d,' % i), f"reply {i}", line[:80])
    check(s.finish() == (b"", 0), "clean end", s.stderr())


@test
def deaf_server_holds_the_host_back():
    """To the server there is back-pressure, and no loss."""
    gate = fresh("gate")
    s = Session(f"await {gate}\ndrain",
                options=["--memory=4M", "--spill=off"])
    data = notice("n", '{"t":"%s"}' % ("y" * 65536)) * 256  # 16 MiB
    view = memoryview(data)
    while select.select([], [s.host.fd_out], [], 1.0)[1]:
        view = view[os.write(s.host.fd_out, view):]
    check(len(view) > 0, "the host is held back")
    with open(gate, "wb"):
        pass
    s.host.write(view)
    check(s.finish() == (b"", 0), "clean end", s.stderr())
    same(s.log(), b"drained %d %s\n" % (
        len(data), hashlib.sha256(data).hexdigest().encode()), "every byte")


@each(missing=("/nonexistent/dir",), a_file=(PROGRAM,))
def unusable_directory(where):
    mark = fresh("mark")
    status, out, err = run([PROGRAM, f"--spill-dir={where}", "--", "touch",
                            mark])
    check(status in (2, 125) and out == b"", f"exit status {status}", err)
    check(err.count(b"\n") == 1 and where.encode() in err, "one clear line",
          err)
    check(not os.path.exists(mark), "nothing was started")


if __name__ == "__main__":
    main()
