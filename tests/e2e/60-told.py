#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is told, and where (contract section 8): metrics in every form, the
server's stderr, and a stderr that nobody reads, which freezes a server that
logs into an unread pipe."""
import json
import os
import re
import signal

from kit import (MIB, TOP, Session, check, each, fresh, main, notice,
                 read_file, request, result, same, scaled, test, until)

ECHO = "".join(
    f'recv\nsend {{"jsonrpc":"2.0","id":{i},"result":{{}}}}\n'
    for i in range(10))


def keys():
    with open(os.path.join(TOP, "include/spillway/metrics.h"),
              encoding="ascii") as f:
        found = re.findall(r"^\tX\(([a-z_]+), (?:U64|SEC|WORD),", f.read(),
                           re.M)
    check(len(found) >= 30, "the list of metrics can be read", found)
    return found


def talk(s, n=10):
    for i in range(n):
        s.send(request(i))
        same(s.line(), result(i), "reply")


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", str(text))


ANSWER = 'send {"jsonrpc":"2.0","id":1,"result":{}}\n'


@test
def healthy_session_writes_one_line():
    s = Session(ECHO)
    talk(s)
    check(s.finish() == (b"", 0), "clean end")
    text = s.stderr()
    check(text.count("\n") == 1 and text.startswith("spillway: metrics "),
          "exactly one line", text)
    m = s.metrics()
    missing = [k for k in keys() if k not in m]
    check(not missing, "keys not there", missing)
    sent = sum(len(request(i)) for i in range(10))
    got = sum(len(result(i)) for i in range(10))
    want = {"stdin_bytes": sent, "to_server_bytes": sent,
            "stdout_bytes": got, "to_host_bytes": got, "frames_to_host": 10,
            "frames_to_server": 10, "requests_pending": 0,
            "requests_pending_peak": 1, "server_exits": 1,
            "server_exit_code": 0, "verdict": "ok", "repairs": 0,
            "junk_lines": 0, "queue_bytes": 0, "spill_bytes": 0}
    wrong = {k: m[k] for k, v in want.items() if m[k] != str(v)}
    check(not wrong, "figures", wrong)
    check(all(is_number(m[k]) for k in keys() if k != "verdict"),
          "numbers", m)


@test
def on_a_signal():
    s = Session(ECHO)
    talk(s, 3)
    for n in (1, 2):
        s.process.send_signal(signal.SIGUSR1)
        until("a line comes",
              lambda n=n: s.stderr().count("spillway: metrics ") == n)
    check(s.metrics()["frames_to_host"] == "3", "present figures",
          s.metrics())
    s.send(request(3))
    same(s.line(), result(3), "the session goes on")
    s.finish()


@test
def as_json():
    s = Session(ECHO, options=["--metrics=json", "--metrics-interval=100ms"])
    talk(s)
    until("lines come by themselves", lambda: s.stderr().count("\n") >= 2)
    s.finish()
    for line in s.stderr().splitlines():
        o = json.loads(line)
        check(o["source"] == "spillway", "source", line)
        check(all(k in o for k in keys()), "keys", line)


@test
def off():
    s = Session(ECHO, options=["--metrics=off"])
    talk(s)
    s.finish()
    same(s.stderr(), "", "stderr")


@test
def prometheus_file():
    path = fresh("metrics.prom")
    s = Session(ECHO, options=[f"--metrics-file={path}"])
    talk(s)
    s.process.send_signal(signal.SIGUSR1)
    until("the file is there", lambda: os.path.exists(path))
    s.finish()
    text = read_file(path).decode()
    for key in keys():
        check(re.search(rf"^spillway_{key}(\{{[^}}]*\}})? \S+$", text, re.M),
              "no sample of " + key, text)
    check(os.listdir(os.path.dirname(path)).count(
        os.path.basename(path)) == 1, "one file")
    left = [f for f in os.listdir(os.path.dirname(path))
            if f.startswith(os.path.basename(path)) and
            f != os.path.basename(path)]
    check(not left, "no temporary file stays", left)


@test
def server_stderr_is_forwarded_unchanged():
    s = Session("err one\\ntwo \\x1b[1m\\xff\\n\nerr no newline")
    check(s.finish() == (b"", 0), "clean end")
    with open(s.err_path, "rb") as f:
        text = f.read()
    check(text.startswith(b"one\ntwo \x1b[1m\xff\nno newline\n"), "bytes",
          text)


@test
def server_stderr_can_be_dropped():
    s = Session("err one\\n", options=["--server-stderr=drop"])
    s.finish()
    check("one" not in s.stderr(), "not shown", s.stderr())


@test
def unread_stderr_blocks_nobody():
    """The host never reads our stderr; the server logs 10 MiB into its own
    and answers all the same."""
    r, w = os.pipe()
    n = scaled(10, 2) * MIB // 1024
    line = "x" * 1019
    s = Session("".join(
        f"recv\ntimes {n // 10} err {line}%i\\n\n"
        f'send {{"jsonrpc":"2.0","id":{i},"result":{{}}}}\n'
        for i in range(10)), stderr=w)
    os.close(w)
    try:
        talk(s)
        check(s.finish() == (b"", 0), "clean end")
    finally:
        os.close(r)


@test
def gone_stderr_blocks_nobody():
    r, w = os.pipe()
    os.close(r)
    s = Session('recv\nerr lost\\n\nsend {"jsonrpc":"2.0","id":0,'
                '"result":{}}\n', stderr=w)
    os.close(w)
    talk(s, 1)
    check(s.finish() == (b"", 0), "clean end")


@each(error=("error",), warn=("warn",), info=("info",))
def nothing_of_the_payload_is_logged(level):
    secret = "sesame-opens"
    s = Session('recv\nsend {"jsonrpc":"2.0","id":1,"result":{"t":"' + secret +
                '"}}\npad 3000 {"jsonrpc":"2.0","method":"n","params":{"t":"' +
                secret + '@"}}\nrecv',
                options=["--log-level=" + level, "--max-frame=2K"],
                env={"TOKEN": secret})
    s.send(request(1, "tools/call", '{"name":"t","arguments":{"k":"%s"}}' %
                   secret), notice("n", '["%s"]' % secret))
    s.line()
    s.finish()
    check(secret not in s.stderr(), "logged", s.stderr())


# What a session does, on the server's side and on the host's, for a verdict.
FAULTS = {
    "ok": ("recv\n" + ANSWER, lambda s: (s.send(request(1)), s.line())),
    "host_stalled": ("recv\n" + ANSWER, lambda s: s.send(request(1))),
    "server_stalled": ('recv\nraw {"jsonrpc":"2.0","id":1,\ndeaf',
                       lambda s: s.send(request(1))),
    "server_silent": ("recv\ndeaf", lambda s: s.send(request(1))),
    "server_not_reading": ("deaf", lambda s: s.send(
        *[notice("n", '{"t":"%s"}' % ("x" * 1000))] * 70)),
    "server_gone": ("recv\nkill KILL", lambda s: s.send(request(1))),
}


@test
def every_verdict():
    """Each is reached by a process that misbehaves that way, all at once."""
    sessions = {}
    for word, (script, act) in FAULTS.items():
        sessions[word] = Session(script, options=["--stall-timeout=1s"])
        act(sessions[word])

    def told(word, s):
        if s.process.poll() is None:
            s.process.send_signal(signal.SIGUSR1)
        return s.metrics().get("verdict") == word
    for word, s in sessions.items():
        until(f"the verdict is {word}", lambda w=word, s=s: told(w, s))
    check(sessions["ok"].metrics()["verdict"] == "ok", "ok stays")


if __name__ == "__main__":
    main()
