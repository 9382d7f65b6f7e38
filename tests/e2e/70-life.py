#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How sessions end (contract section 7): nothing is lost that was accepted,
nothing is left that was started. Orphaned servers pile up by the hundred
where a proxy or a host is killed and the server ignores end of file."""
import os
import random
import signal
import subprocess
import time

from kit import (PLAIN, Session, check, each, fresh, main, notice, own_error,
                 read_file, request, result, same, scaled, test, until)

STUBBORN = "ignore TERM INT HUP\nrecv\nsend " \
    '{"jsonrpc":"2.0","method":"up"}\nend\ndeaf'


def started(script, **kwargs):
    """A session whose server is past its first read."""
    s = Session(script, **kwargs)
    s.send(notice("go"))
    same(s.line(), b'{"jsonrpc":"2.0","method":"up"}\n', "ready")
    return s


@test
def half_close_drains():
    s = Session("recv 5\nend\nnote eof\n" + "".join(
        f'send {{"jsonrpc":"2.0","id":{i},"result":{{}}}}\n'
        for i in range(5)) + "exit 7")
    s.send(*[request(i) for i in range(5)])
    same(s.finish(), (b"".join(result(i) for i in range(5)), 7), "the end")
    check(s.log().endswith(b"eof\n"), "the server saw end of file", s.log())


@test
def stubborn_server_is_killed():
    s = started(STUBBORN, options=["--stop-grace=100ms"])
    s.half_close()
    check(s.wait() == -signal.SIGKILL, "status", s.process.returncode)
    until("nothing is left", lambda: not s.alive())


@each(TERM=(signal.SIGTERM,), INT=(signal.SIGINT,), HUP=(signal.SIGHUP,))
def signal_to_the_proxy(sig):
    s = started(STUBBORN)
    s.process.send_signal(sig)
    s.wait()
    until("nothing is left", lambda: not s.alive())


@test
def proxy_is_killed():
    s = started(STUBBORN)
    os.kill(s.pid, signal.SIGKILL)
    s.wait()
    until("nothing is left", lambda: not s.alive())


@test
def proxy_is_killed_and_the_server_has_left_its_group():
    s = Session(["sh", "-c", "setsid sleep 1000 & echo "
                 '\'{"jsonrpc":"2.0","method":"up"}\'; trap "" TERM; '
                 "while :; do sleep 1000; done"])
    s.line()
    os.kill(s.pid, signal.SIGKILL)
    s.wait()
    until("nothing is left", lambda: not s.alive())


@test
def host_is_gone():
    s = started('recv\nsend {"jsonrpc":"2.0","method":"up"}\nrecv\n'
                'send {"jsonrpc":"2.0","id":1,"result":{}}\nend\ndeaf')
    s.leave()
    try:
        s.send(request(1))
    except BrokenPipeError:
        pass  # it was noticed already
    s.wait()
    until("nothing is left", lambda: not s.alive())


@test
def background_child_does_not_hold_the_end():
    """Exit is told by wait, not by end of file on an inherited pipe."""
    s = Session('recv\nsend {"jsonrpc":"2.0","id":1,"result":{}}\nfork\n'
                "recv\nexit 3")
    s.send(request(1))
    same(s.line(), result(1), "first call")
    s.send(request(2))
    line = s.line()
    check(own_error(line, 2, -31014, "server_exited"), "second call", line)
    check(s.wait() == 3, "status", s.process.returncode)
    until("nothing is left", lambda: not s.alive())


@test
def server_closes_stdout_and_lives_on():
    s = Session("recv\nclose\nend\ndeaf", options=["--stop-grace=100ms"])
    s.send(request(1))
    line = s.line()
    check(own_error(line, 1, -31014, "server_exited"), "answer", line)
    s.wait()
    until("nothing is left", lambda: not s.alive())


def victims(s):
    """Processes of the session by what they are."""
    found = {"proxy": s.pid}
    for pid in s.alive():
        name = read_file(f"/proc/{pid}/comm").strip()
        if name == b"spillway-guard":
            found["guardian"] = pid
        elif pid != s.pid and b"spillway" not in name:
            found["server"] = pid
    return found


@each(idle=("",), busy=('times 2000 send {"jsonrpc":"2.0","method":"%i"}\n',))
def killed_at_any_point(traffic):
    """kill -9 of proxy, guardian, server or host, many times: a second later
    nothing is alive, and nothing lies in the spill directory."""
    rnd, where = random.Random(7), fresh("spill")
    os.mkdir(where)
    for i in range(int(os.environ.get("ROUNDS") or scaled(30, 8))):
        s = Session("ignore TERM INT HUP\nrecv\nsend "
                    '{"jsonrpc":"2.0","method":"up"}\n' + traffic + "deaf",
                    options=["--memory=1M", f"--spill-dir={where}"])
        s.send(notice("go"))
        if rnd.random() < 0.7:
            s.line()
        time.sleep(rnd.random() / 200)
        what = rnd.choice(["proxy", "guardian", "server", "host"])
        if what == "host":
            s.half_close()
            s.leave()
        else:
            os.kill(victims(s).get(what, s.pid), signal.SIGKILL)
        start = time.monotonic()
        until(f"nothing is left after kill -9 of the {what}, round {i}",
              lambda: not s.alive())
        check(not PLAIN or time.monotonic() - start < 4,
              f"in time after kill -9 of the {what}")
        s.wait()
        check(os.listdir(where) == [], "the spill directory is empty")
        s.kill()


@test
def every_pending_request_is_answered_once():
    n = 50
    s = Session(f"recv {n}\nexit 9")
    s.send(*[request(i) for i in range(n)])
    seen = set()
    for _ in range(n):
        line = s.line()
        i = next(i for i in range(n)
                 if own_error(line, i, -31014, "server_exited"))
        seen.add(i)
    check(len(seen) == n, "each once", seen)
    same(s.rest(), b"", "no more")
    check(s.wait() == 9, "status", s.process.returncode)


# How hosts end a server: (ms, what) steps; gone by: ms after the first, with
# a reserve for the guardian's last half second. The host reads until then.
HOSTS = {
    "typescript_sdk": ([(0, "eof"), (2000, "TERM"), (4000, "KILL")], 5000),
    "opencode": ([(0, "eof"), (2000, "TERM"), (4100, "KILL")], 5100),
    "ai_sdk": ([(0, "TERM")], 2000),
    "python": ([(0, "eof"), (2000, "TERM"), (4000, "KILL")], 5000),
    "claude_code": ([(0, "INT"), (100, "TERM"), (510, "KILL")], 1600),
    "codex": ([(0, "eof"), (1, "TERM"), (50, "KILL")], 1600),
    "gemini": ([(0, "TERM")], 2000),
    "qwen": ([(0, "eof")], 4500),
}


def shut_down(s, steps):
    """Do what the host does; stop where the proxy is gone."""
    start = time.monotonic()
    for ms, what in steps:
        try:
            s.process.wait(max(0, ms / 1000 - (time.monotonic() - start)))
            return start
        except subprocess.TimeoutExpired:
            pass
        if what == "eof":
            s.half_close()
        else:
            s.process.send_signal(getattr(signal, "SIG" + what))
    return start


@each(**{k: v for k, v in HOSTS.items()})
def last_reply_and_no_orphan(steps, gone_by):
    """A server that answers on EOF or TERM and ends, and one that heeds
    nothing and has children in other sessions."""
    polite = Session(["sh", "-c", "trap 'echo \"$r\"; exit 0' TERM INT; "
                      "read x; r='" + result(1).decode().strip() + "'; "
                      "while read x; do :; done; echo \"$r\""])
    polite.send(request(1))
    until("it has read", lambda: polite.alive())
    time.sleep(0.05)
    shut_down(polite, steps)
    line = polite.line()
    check(line == result(1) or own_error(line, 1, -31014, "server_exited") or
          (line == b"" and steps[-1][0] < 600), "the last reply", line)
    polite.wait()
    until("nothing is left", lambda: not polite.alive())

    rude = started("ignore TERM INT HUP\nfork\nrecv\nsend "
                   '{"jsonrpc":"2.0","method":"up"}\nend\ndeaf')
    start = shut_down(rude, steps)
    until("nothing is left", lambda: not rude.alive())
    check(not PLAIN or time.monotonic() - start < gone_by / 1000 + 1,
          "in time", time.monotonic() - start)


if __name__ == "__main__":
    main()
