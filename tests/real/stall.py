#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""stall.py FOLDER: the main job with a published server. A long call reports
progress, the host stops reading, the verdict falls, the call is cancelled;
the host reads again, gets one answer for it, and the next small call works."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "e2e"))
from kit import Session, check, each, main, notice, own_error, request, \
    until  # noqa: E402

FOLDER = sys.argv[1]
SERVER = ["node", os.path.join(FOLDER, "node_modules/@modelcontextprotocol/"
                               "server-everything/dist/index.js"), "stdio"]


def call(i, name, arguments):
    return request(i, "tools/call", json.dumps(
        {"name": name, "arguments": arguments, "_meta": {"progressToken": i}}))


def answer(s, i):
    """The line that answers i; what comes before it is passed over."""
    while True:
        line = s.line()
        check(line, f"an answer to {i}")
        o = json.loads(line)
        if o.get("id") == i and "method" not in o:
            return line


@each(pipe=("pipe",), socket=("socket",))
def next_call_works(stdio):
    s = Session(SERVER, options=["--stall-timeout=1s"], stdio=stdio)
    s.send(request(0, "initialize", json.dumps(
        {"protocolVersion": "2025-11-25", "capabilities": {},
         "clientInfo": {"name": "t", "version": "1"}})))
    answer(s, 0)
    s.send(notice("notifications/initialized"),
           call(1, "trigger-long-running-operation",
                {"duration": 30, "steps": 100}))
    until("the verdict falls", lambda: "the host has read nothing" in
          s.stderr())
    line = answer(s, 1)
    check(own_error(line, 1, -31012, "host_stalled"), "the long call", line)
    s.send(call(2, "echo", {"message": "still here"}))
    line = answer(s, 2)
    check(b"still here" in line, "the small call", line)
    rest, _ = s.finish()
    check(b'"id":1,' not in rest and b'"progressToken":1' not in rest,
          "nothing more of the long call", rest)
    check(s.metrics()["cancels_sent"] == "1", "one cancel", s.metrics())


if __name__ == "__main__":
    sys.argv[1:] = sys.argv[2:]
    main()
