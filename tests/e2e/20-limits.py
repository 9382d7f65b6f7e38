#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frames over the limit (contract section 3), up to a gigabyte.

Official clients close the connection at 10 MiB; readers that buffer to the
newline grow without bound. Here the line is discarded while it comes, the
right id is answered even if it stands after the payload, and the session
goes on, in constant memory.
"""
from kit import (MIB, PLAIN, Session, check, each, main, notice, own_error,
                 request, result, same, scaled, test)

MEMORY_KB = (32 + 8) * 1024
BLOCKS = scaled(16384, 1024)  # of 64 KiB


def lean(s):
    check(not PLAIN or s.peak_kb() <= MEMORY_KB,
          f"peak resident set {s.peak_kb()} KiB")


def huge(head, tail):
    return f"raw {head}\ntimes {BLOCKS} raw {'x' * 65536}\nraw {tail}\n"


@each(id_first=('{"jsonrpc":"2.0","id":1,"result":{"t":"', '"}}\\n'),
      id_last=('{"result":{"id":7,"t":"', '","id":8},"jsonrpc":"2.0",'
               '"id":1}\\n'),
      escaped_id_key=('{"result":{"t":"', '"},"jsonrpc":"2.0",'
                      '"i\\\\u0064":1}\\n'))
def gigabyte_reply(head, tail):
    s = Session("recv 2\n" + huge(head, tail) +
                'send {"jsonrpc":"2.0","id":2,"result":{}}',
                options=["--max-frame=1M"])
    s.send(request(1), request(2))
    line = s.line()
    check(own_error(line, 1, -31010, "frame_too_large"), "answer", line)
    same(s.line(), result(2), "the next frame")
    lean(s)
    check(s.finish() == (b"", 0), "clean end", s.stderr())


@test
def gigabyte_without_newline():
    s = Session("recv\n" + huge("", "") + "exit 4", options=["--max-frame=1M"])
    s.send(request(1))
    line = s.line()
    check(own_error(line, 1, -31014, "server_exited"), "answer", line)
    lean(s)
    check(s.wait() == 4, "exit status as the server's", s.stderr())


@test
def gigabyte_of_junk_then_a_frame():
    s = Session("recv\n" + huge("", "\\n") +
                'send {"jsonrpc":"2.0","id":1,"result":{}}')
    s.send(request(1))
    same(s.line(), result(1), "the frame after it")
    lean(s)
    s.finish()
    shown = [x for x in s.stderr().splitlines()
             if x.startswith("spillway: stdout: ")]
    check(len(shown) == 1 and len(shown[0]) < 512, "one short line shown",
          shown[:1])


@test
def large_request():
    """From the host: an error back, nothing of it to the server."""
    s = Session('expect "id":2\nsend {"jsonrpc":"2.0","id":2,"result":{}}',
                options=["--max-frame=1M"])
    s.send(b'{"params":{"t":"')
    for _ in range(scaled(256, 16)):
        s.send(b"y" * MIB)
    s.send(b'"},"method":"tools/call","jsonrpc":"2.0","id":"\\u0031"}\n',
           request(2))
    line = s.line()
    check(own_error(line, '"\\u0031"', -31010, "frame_too_large"), "answer",
          line)
    same(s.line(), result(2), "the next request is answered")
    lean(s)
    check(s.finish() == (b"", 0), "clean end", s.stderr())
    same(s.log(), request(2), "to server")


@test
def large_notifications_are_dropped():
    s = Session("recv\n" + 'pad 70000 {"jsonrpc":"2.0","method":"n",'
                '"params":{"id":1,"t":"@"}}\n'
                'send {"jsonrpc":"2.0","id":1,"result":{}}\nend\n',
                options=["--max-frame=64K"])
    s.send(notice("n", '{"t":"%s"}' % ("x" * 70000)), request(1))
    same(s.line(), result(1), "only the reply")
    s.finish()
    same(s.log(), request(1), "to server")
    check(s.metrics().get("oversize_frames") == "2", "counted", s.metrics())


@each(initialize=("initialize",), discover=("server/discover",))
def no_error_for(method):
    """A host that gets an error to these falls back to another protocol, so
    the session ends with a clear message instead."""
    s = Session('recv\npad 70000 {"result":{"t":"@"},"jsonrpc":"2.0","id":0}\n'
                "end", options=["--max-frame=64K"])
    s.send(request(0, method))
    same(s.rest(), b"", "to host")
    s.half_close()
    s.wait()
    check(method in s.stderr(), "message names " + method, s.stderr())


@test
def depth_limit():
    deep = '{"jsonrpc":"2.0","id":%d,"result":%s%s}'
    # The object of the message is the first container.
    s = Session("recv 2\n" + "".join(
        "send " + deep % (i, "[" * n, "]" * n) + "\n"
        for i, n in ((1, 19), (2, 20))), options=["--max-depth=20"])
    s.send(request(1), request(2))
    same(s.line(), (deep % (1, "[" * 19, "]" * 19) + "\n").encode(),
         "at the limit")
    line = s.line()
    check(own_error(line, 2, -31010, "frame_too_large"), "over it", line)
    s.finish()


if __name__ == "__main__":
    main()
