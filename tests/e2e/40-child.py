#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The server runs as if the host had started it (contract sections 1, 7).

Each check runs a command directly and through the proxy and compares: exit
status, arguments, environment, directory, limits, signal mask, descriptors.
"""
import fcntl
import json
import os
import signal
import subprocess
import sys

from kit import (PROGRAM, Session, check, each, fresh, host_ends,
                 main, notice, own_error, read_file, request, run, same,
                 test, until)

SURVEY = r"""
import json, os, resource, signal, sys
def line(key):
    for l in open("/proc/self/status"):
        if l.startswith(key + ":"):
            return l.split()[1]
mask = os.umask(0)
json.dump({
    "argv": sys.argv[2:], "cwd": os.getcwd(), "umask": mask,
    "env": {k: v for k, v in os.environ.items()
            if k != "SPILLWAY_TEST_TAG"},
    "signals": [line(k) for k in ("SigBlk", "SigIgn")],
    "limits": [resource.getrlimit(getattr(resource, n))
               for n in sorted(dir(resource)) if n.startswith("RLIMIT_")],
    "nice": os.nice(0),
    "fds": sorted(int(f) for f in os.listdir("/proc/self/fd")
                  if os.path.exists("/proc/self/fd/" + f)),
    "blocking": [os.get_blocking(f) for f in (0, 1, 2)],
}, open(sys.argv[1], "w"))
"""
ODD = ["a b", "", "--strict", "--", "-x", "é\n'\"", "$HOME", "*"]


@each(zero=("exit 0",), one=("exit 1",), n42=("exit 42",), n126=("exit 126",),
      n255=("exit 255",), TERM=("kill -TERM $$",), KILL=("kill -KILL $$",),
      SEGV=("kill -SEGV $$",), HUP=("kill -HUP $$",), ABRT=("kill -ABRT $$",))
def exit_status(script):
    direct = run(["sh", "-c", script])
    status, out, err = run([PROGRAM, "--", "sh", "-c", script])
    check(status == direct[0], f"{status} instead of {direct[0]}", err)
    same(out, b"", "to host")


def not_a_program():
    path = fresh("plain")
    with open(path, "w", encoding="ascii") as f:
        f.write("no program\n")
    os.chmod(path, 0o644)
    return path


@each(path=("/nonexistent/server", 127), name=("no-such-server-here", 127),
      file=(None, 126), directory=("/tmp", 126))
def cannot_start(command, want):
    command = command or not_a_program()
    status, out, err = run([PROGRAM, "--", command])
    check(status == want, f"exit status {status}", err)
    check(out == b"" and err.startswith(b"spillway: ") and
          command.encode() in err, "a line that names it", out, err)


@each(as_it_is=(), odd=(lambda: (os.umask(0o27), signal.pthread_sigmask(
    signal.SIG_BLOCK, [signal.SIGUSR2]), signal.signal(
        signal.SIGHUP, signal.SIG_IGN), os.nice(3)),))
def surroundings(prepare=None):
    where = fresh("dir with space")
    os.mkdir(where)
    found = []
    for prefix in ([], [PROGRAM, "--"]):
        path = fresh("survey")
        status, _, err = run(
            [*prefix, sys.executable, "-S", "-c", SURVEY, path, *ODD],
            cwd=where, preexec_fn=prepare, env={"LC_X": "é=1", "EMPTY": ""})
        check(status == 0, f"exit status {status}", err)
        found.append(json.loads(read_file(path)))
    direct, through = found
    ours, theirs = direct.pop("env"), through.pop("env")
    # Names alone: what the variables hold is nobody's business.
    odd = [k for k in {**ours, **theirs} if ours.get(k) != theirs.get(k)]
    check(not odd, "environment differs", odd)
    for key, value in direct.items():
        check(through[key] == value, f"{key} differs", value, through[key])


@each(pipe=("pipe",), socket=("socket",), pty=("pty",))
def flags_of_the_host(stdio):
    """O_NONBLOCK is of the description, shared with whoever handed it."""
    to, fd0, back, fd1 = host_ends(stdio)
    err = open(fresh("err"), "wb")
    before = [fcntl.fcntl(f, fcntl.F_GETFL) for f in (fd0, fd1, err)]
    p = subprocess.Popen([PROGRAM, "--", "cat"], stdin=fd0, stdout=fd1,
                         stderr=err)
    try:
        for i in range(20):
            line = notice(f"n/{i}")
            os.write(to, line)
            got = b""
            while not got.endswith(b"\n"):
                got += os.read(back, 4096)
            same(got, line, "echo")
            now = [fcntl.fcntl(f, fcntl.F_GETFL) for f in (fd0, fd1, err)]
            check(now == before, "flags changed while running", before, now)
        if stdio == "pty":
            p.terminate()
        os.close(to)
        p.wait(20)
        now = [fcntl.fcntl(f, fcntl.F_GETFL) for f in (fd0, fd1, err)]
        check(now == before, "flags changed at the end", before, now)
    finally:
        p.kill()
        p.wait()
        err.close()
        for fd in (fd0, back, fd1):
            os.close(fd)


@test
def regular_files():
    lines = b"".join(notice(f"n/{i}", '{"t":"%s"}' % ("x" * 5000))
                     for i in range(300))
    source, sink = fresh("in"), fresh("out")
    with open(source, "wb") as f:
        f.write(b"skipped\n" + lines)
    with open(source, "rb") as fin, open(sink, "wb") as fout:
        os.lseek(fin.fileno(), 8, os.SEEK_SET)
        os.write(fout.fileno(), b"kept\n")
        status = subprocess.run([PROGRAM, "--", "cat"], stdin=fin,
                                stdout=fout, stderr=subprocess.DEVNULL,
                                timeout=60, check=False).returncode
    check(status == 0, f"exit status {status}")
    same(read_file(sink), b"kept\n" + lines, "to host")


@test
def null_device():
    path = fresh("got")
    status = subprocess.run(
        [PROGRAM, "--", "sh", "-c", f"cat >{path}; echo "
         '\'{"jsonrpc":"2.0","method":"n"}\'; echo x >&2'],
        input=notice("a"), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, timeout=60, check=False).returncode
    check(status == 0, f"exit status {status}")
    same(read_file(path), notice("a"), "to server")


@test
def server_dies_before_the_first_request():
    """The reason must not stay in a stderr that nobody reads."""
    s = Session("err boom\\n\nexit 3")
    s.host.write(request(0, "initialize"))
    line = s.line()
    check(own_error(line, 0, -31014, "server_exited"), "answer", line)
    data = json.loads(line)["error"]["data"]
    check("boom" in json.dumps(data) and 3 in data.values(),
          "it tells exit code and last words", data)
    check(s.wait() == 3, "exit status", s.stderr())
    check("boom" in s.stderr(), "stderr forwarded", s.stderr())


@test
def killed_server_leaves_nobody():
    """A tool's child holds all pipes of the server and outlives it."""
    s = Session('recv\nfork\nsend {"jsonrpc":"2.0","id":1,"result":{}}\n'
                "recv\nkill KILL")
    s.send(request(1))
    s.line()
    check(len(s.alive()) >= 3, "proxy, server and its child", s.alive())
    s.send(request(2))
    line = s.line()
    check(own_error(line, 2, -31014, "server_exited"), "answer", line)
    check(s.wait() == -signal.SIGKILL, "status", s.process.returncode)
    until("nothing is left", lambda: not s.alive())


@test
def command_found_by_name_without_dashes():
    where = fresh("bin")
    os.mkdir(where)
    tool = os.path.join(where, "my-server")
    with open(tool, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\nprintf '%s|' \"$@\" >\"$OUT\"\n")
    os.chmod(tool, 0o755)
    path = fresh("args")
    status, _, err = run([PROGRAM, "--max-frame", "1M", "my-server",
                          "--max-frame=1", "--", "-V"],
                         env={"PATH": where + ":" + os.environ["PATH"],
                              "OUT": path})
    check(status == 0, "exit status", err)
    same(read_file(path), b"--max-frame=1|--|-V|", "arguments")


if __name__ == "__main__":
    main()
