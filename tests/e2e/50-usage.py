#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Options, environment and wrong use (contract sections 7 and 9): one clear
line, exit status 2, nothing started, nothing left behind."""
import os
import re

from kit import PROGRAM, Session, check, each, fresh, main, notice, run, same, \
    test

OPTIONS = ("max-frame max-content max-depth memory spill spill-dir "
           "stall-timeout request-timeout cancel cancel-grace stop-grace "
           "strict observe preset metrics metrics-interval metrics-file "
           "log-level log-file server-stderr help version").split()
WRONG = ["--max-frame=banana", "--max-frame=12Q", "--max-content=-5",
         "--max-depth=x", "--memory=", "--memory=99999999999999999999",
         "--spill=1T2", "--stall-timeout=5parsecs", "--request-timeout=-1s",
         "--cancel=maybe", "--cancel-grace=x", "--stop-grace=soon",
         "--metrics=xml", "--metrics-interval=often", "--log-level=loud",
         "--server-stderr=eat", "--preset=nobody", "--no-such-option", "-Z"]
RIGHT = [["--max-frame", "64K"], ["--max-frame=64K"], ["--spill=off"],
         ["--stall-timeout=1500ms"], ["--stall-timeout=off"],
         ["--max-content=off"], ["--request-timeout=2m"], ["--stop-grace=3"],
         ["--memory=16777216"], ["--memory=1G"], ["--stall-timeout=1h"],
         ["--strict"], ["--observe"], ["--cancel=off"]]


def refused(argv, names, env=None):
    mark = fresh("mark")
    status, out, err = run([PROGRAM, *argv, "--", "touch", mark],
                           env=env or {})
    check(status == 2, f"exit status {status}", err)
    check(out == b"" and err.count(b"\n") == 1, "one line on stderr", err)
    for name in names:
        check(name.encode() in err, "the line names " + name, err)
    check(not os.path.exists(mark), "nothing was started")


@each(**{re.sub(r"\W+", "_", w).strip("_"): (w,) for w in WRONG})
def wrong_option(word):
    option, _, value = word.partition("=")
    refused([word], [option, value])
    if value:
        refused([option, value], [option, value])


@each(frame=("MAX_FRAME", "banana"), memory=("MEMORY", "12 apples"),
      stall=("STALL_TIMEOUT", "x"), level=("LOG_LEVEL", "\xff\xfe"))
def wrong_environment(name, value):
    refused([], ["SPILLWAY_" + name],
            {"SPILLWAY_" + name: value.encode("latin-1")})


@each(**{re.sub(r"\W+", "_", "".join(o)).strip("_"): (o,) for o in RIGHT})
def right_option(words):
    status, _, err = run([PROGRAM, *words, "--", "sh", "-c", "exit 3"])
    check(status == 3, f"exit status {status}", err)


@each(nothing=([],), dashes=(["--"],), option=(["--strict"],),
      half=(["--max-frame"],))
def no_command(words):
    status, out, err = run([PROGRAM, *words])
    check(status == 2 and out == b"" and err.count(b"\n") == 1,
          f"exit status {status}, one line", err)


@test
def command_line_wins_over_environment():
    s = Session('recv\npad 1900 {"jsonrpc":"2.0","method":"n",'
                '"params":"@"}', options=["--max-frame=2000"],
                env={"SPILLWAY_MAX_FRAME": "1200"})
    s.send(notice("go"))
    check(len(s.line()) == 1900, "passes")
    s.finish()


@test
def environment_counts():
    s = Session('recv\npad 1900 {"jsonrpc":"2.0","method":"n","params":"@"}\n'
                'send {"jsonrpc":"2.0","method":"after"}',
                env={"SPILLWAY_MAX_FRAME": "1200"})
    s.send(notice("go"))
    same(s.line(), b'{"jsonrpc":"2.0","method":"after"}\n', "to host")
    s.finish()


@each(h=("-h",), help=("--help",))
def help_text(option):
    status, out, err = run([PROGRAM, option])
    check(status == 0 and err == b"", f"exit status {status}", err)
    missing = [o for o in OPTIONS if b"--" + o.encode() not in out]
    check(not missing, "options not named", missing)
    check(max(map(len, out.split(b"\n"))) <= 80, "80 columns")


@each(V=("-V",), version=("--version",))
def version(option):
    status, out, err = run([PROGRAM, option])
    check(status == 0 and err == b"", f"exit status {status}", err)
    check(re.fullmatch(rb"spillway \d+\.\d+\S*\n", out), "its form", out)


@test
def presets_are_listed():
    status, out, err = run([PROGRAM, "--preset=help"])
    check(status == 0 and err == b"", f"exit status {status}", err)
    for name in (b"claude-code", b"codex", b"gemini", b"goose"):
        check(name in out, f"names {name}", out)


@each(stdin=("<&-",), stdout=(">&-",), both=("<&- >&-",))
def closed_stdio(how):
    """As without spillway: the server runs, its end of stdio is /dev/null."""
    status, _, err = run(["sh", "-c", f'exec "$0" -- true {how}', PROGRAM])
    check(status == 0 and err.count(b"\n") == 1 and
          err.startswith(b"spillway: metrics "),
          f"exit status {status}, one line", err)


if __name__ == "__main__":
    main()
