#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Public bug reports that need processes and time, each under its id (see
tests/README for where the others live). Hosts stall here by not reading."""
import json
import os
import signal
import sys
import time

from kit import (MIB, PLAIN, Session, check, each, fresh, main, notice,
                 own_error, read_file, request, result, same, scaled, test,
                 until)

STALL = ["--stall-timeout=500ms"]
DRIFT = 8 * 1024  # KiB beyond --memory


def cpu_ms(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 // \
        os.sysconf("SC_CLK_TCK")


def lines_for(*answers):
    return "".join(f'send {{"jsonrpc":"2.0","id":{a},"result":{{}}}}\n'
                   for a in answers)


def cancels(log):
    """Raw ids of the cancellations that the proxy made."""
    return [json.loads(line)["params"]["requestId"]
            for line in log.splitlines()
            if b"notifications/cancelled" in line and b'"reason"' in line]


def until_stalled(s, n=1):
    """A stall verdict has fallen n times."""
    until("the host is told stalled", lambda: s.stderr().count(
        "the host has read nothing") >= n)


@test
def B055_slow_reader_of_a_large_request():
    gate = fresh("gate")
    s = Session("times 20 send " + notice("p", '{"n":%i}').decode().strip() +
                f"\nawait {gate}\nrecv\nrecv\n" + lines_for(2), stdio="socket")
    big = request(1, "tools/call", '{"t":"%s"}' % ("x" * MIB))
    s.host.patience = None
    pid = os.fork()
    if pid == 0:  # the host's writer, which may block
        os.set_blocking(s.host.fd_out, True)
        view = memoryview(big + request(2))
        while view:
            view = view[os.write(s.host.fd_out, view):]
        os._exit(0)
    for i in range(20):
        same(s.line(), notice("p", '{"n":%d}' % i), "progress meanwhile")
    open(gate, "w", encoding="ascii").close()
    os.waitpid(pid, 0)
    same(s.line(), result(2), "the small call")
    same(s.log(), big + request(2), "the request")


@test
def B058_logs_before_the_answer():
    n = 256
    s = Session(f"recv\ntimes {n} err {'l' * 1023}\\n\n" + lines_for(2))
    s.send(request(2))
    same(s.line(), result(2), "the answer")
    s.finish()
    check(s.stderr().count("l" * 1023) == n, "all of stderr")


@each(returns=("\\r 12%", scaled(1 << 20, 1 << 17)), long=("y" * 4096,
      scaled(1280, 64)))
def B060_stderr_without_newlines(text, n):
    s = Session(f"recv\ntimes {n} err {text}\n" + lines_for(1))
    s.send(request(1))
    same(s.line(), result(1), "the answer")
    if PLAIN:
        check(s.peak_kb() < DRIFT, "memory stays flat", s.peak_kb())
    s.finish()


@test
def B062_reply_larger_than_the_pipe():
    s = Session('recv\npad 262144 {"jsonrpc":"2.0","id":1,"result":"@"}\n'
                "note written\nexpect cancelled\nexpect ping\n" +
                'send {"jsonrpc":"2.0","id":2,"result":{}}\n')
    s.send(request(1, "tools/call"))
    until("the server is past its write", lambda: b"written" in s.log())
    s.send(notice("notifications/cancelled", '{"requestId":1}'),
           request(2, "ping"))
    until("it has read the rest", lambda: b"ping" in s.log())
    lines = [s.line(), s.line()]
    check(lines[1] == result(2), "the small call", lines)
    check(lines[0].startswith(b'{"jsonrpc":"2.0","id":1,"result":"xxx'),
          "the reply that was written before", lines)


@test
def B063_server_that_stops_reading():
    s = Session("send " + notice("up").decode().strip() + "\nerr alive\\n\n"
                "ignore TERM\ndeaf",
                options=["--memory=2M", "--spill=off", "--stop-grace=100ms"])
    same(s.line(), notice("up"), "it runs")
    chunk = notice("n", '{"t":"%s"}' % ("z" * 4000))  # one write
    os.set_blocking(s.host.fd_out, False)
    sent, quiet = 0, 0
    while quiet < 20 and sent < 8 * MIB:  # until our own pipe stays full
        try:
            sent += os.write(s.host.fd_out, chunk)
            quiet = 0
        except BlockingIOError:
            quiet += 1
            time.sleep(0.02)
    check(sent < 4 * MIB, "the host is held back", sent)
    check("alive" in s.stderr(), "stderr is still drained")
    s.half_close()
    check(s.wait() == -signal.SIGKILL, "it ends all the same")
    until("nothing is left", lambda: not s.alive())


@test
def B064_progress_and_result_at_once():
    n = scaled(10000, 1000)
    p = notice("notifications/progress", '{"progressToken":1,"progress":%i}')
    s = Session(f"recv\ntimes {n} send {p.decode().strip()}\n" + lines_for(1) +
                "note written")
    s.send(request(1, "x", '{"_meta":{"progressToken":1}}'))
    until("the server is done", lambda: b"written" in s.log())
    for i in range(n):
        same(s.line(), p.replace(b"%i", b"%d" % i), "progress")
    same(s.line(), result(1), "the result is last")


@test
def B066_three_messages_in_one_write():
    s = Session("recv\nrecv\nrecv\n" + lines_for(1, 2))
    os.write(s.host.fd_out, request(1, "initialize") +
             notice("notifications/initialized") + request(2, "tools/list"))
    same(s.lines(2), result(1) + result(2), "both answers")


@test
def B069_ids_keep_their_type():
    s = Session("recv 2\nsend " + notice("n").decode().strip() + "\nend",
                options=STALL)
    s.send(request(3, "tools/call"), request('"3"', "tools/call"))
    until("both are cancelled", lambda: len(cancels(s.log())) == 2)
    check(sorted(map(repr, cancels(s.log()))) == ["'3'", "3"], "ids",
          s.log())
    same(s.line(), notice("n"), "the host reads again")
    got = [s.line(), s.line()]
    check({own_error(x, i, -31012, "host_stalled") for x in got
           for i in ("3", '"3"')} >= {True}, "errors", got)
    check(len(cancels(s.log())) == 2, "never twice", s.log())


@test
def B070_reply_read_before_the_stall():
    s = Session('recv\npad 300000 {"jsonrpc":"2.0","id":3,"result":"@"}\nend',
                options=STALL)
    s.send(request(3, "tools/call"))
    until_stalled(s)
    check(cancels(s.log()) == [], "nothing was cancelled", s.log())
    check(len(s.line()) == 300000, "the reply arrives")


@test
def B072_error_and_later_a_result():
    s = Session('recv\nsend {"jsonrpc":"2.0","id":5,"error":{"code":-32800,'
                '"message":"c"}}\n' + lines_for(5) + "recv\n" + lines_for(6))
    s.send(request(5))
    check(b"-32800" in s.line(), "the first answer")
    s.send(request(6))
    same(s.line(), result(6), "and no second")
    s.finish()
    check(s.metrics()["replies_suppressed"] == "1", "counted", s.metrics())


@test
def B073_reply_to_what_the_host_cancelled():
    s = Session('recv 2\nsend {"jsonrpc":"2.0","id":20,"error":{"code":0,'
                '"message":"Request cancelled"}}\nrecv\n' + lines_for(21))
    s.send(request(20), notice("notifications/cancelled",
                               '{"requestId":20}'), request(21))
    same(s.line(), result(21), "only the next one")
    s.finish()
    check(b"notifications/cancelled" in s.log(), "the cancel passed")
    check(s.metrics()["replies_suppressed"] == "1", "counted", s.metrics())


@each(initialize=("initialize",), discover=("server/discover",))
def B075_handshake_is_not_cancelled(method):
    s = Session("recv\nsend " + notice("n").decode().strip() + "\nend",
                options=STALL)
    s.send(request(0, method))
    until_stalled(s)
    s.send(notice("notifications/cancelled", '{"requestId":0}'))
    until("the host's own passes", lambda: b"cancelled" in s.log())
    check(cancels(s.log()) == [], "none of the proxy's", s.log())


@test
def B077_progress_after_the_reply():
    late = notice("notifications/progress",
                  '{"progressToken":2,"progress":1,"total":1}')
    other = late.replace(b'n":2', b'n":3')
    s = Session("recv 2\n" + lines_for(2) + f"send {late.decode().strip()}\n"
                f"send {other.decode().strip()}\n" + lines_for(3))
    s.send(request(2, "x", '{"_meta":{"progressToken":2}}'),
           request(3, "x", '{"_meta":{"progressToken":3}}'))
    same(s.lines(3), result(2) + other + result(3), "late progress is gone")
    s.finish()
    check(s.metrics()["progress_suppressed"] == "1", "counted", s.metrics())


@test
def B079_a_person_is_asked():
    ask = request(77, "elicitation/create")
    gate = fresh("gate")
    s = Session(f"recv\nsend {ask.decode().strip()}\nawait {gate}\nsend " +
                notice("n").decode().strip() + "\nrecv\n" + lines_for(1),
                options=STALL)
    s.send(request(1, "tools/call"))
    same(s.line(), ask, "the question")
    open(gate, "w", encoding="ascii").close()
    until_stalled(s)  # of the notice, while a person thinks
    s.send(result(77))
    same(s.lines(2), notice("n") + result(1), "the answer")
    check(cancels(s.log()) == [], "nothing was cancelled", s.log())


@test
def B086_shell_that_passes_no_signal():
    s = Session(["sh", "-c", "trap 'exit 1' TERM; sleep 1000; true"],
                options=["--stop-grace=100ms"])
    until("it runs", lambda: len(s.alive()) >= 3)
    s.half_close()
    s.wait()
    until("nothing is left", lambda: not s.alive())


@each(host_eof=("eof",), host_deaf=("deaf",), stderr_closed=("stderr",))
def B090_ended_streams_cost_nothing(what):
    script = "recv\n" + lines_for(1) + "end\ndeaf"
    server = ["sh", "-c", "exec 2>&-; read x; echo "
              "'{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; exec sleep 1000"]
    s = Session(server if what == "stderr" else script,
                options=["--stop-grace=60s"])
    s.send(request(1))
    same(s.line(), result(1), "it runs")
    if what == "eof":
        s.half_close()
    elif what == "deaf":
        s.leave()
    before = cpu_ms(s.pid)
    time.sleep(1.5)  # what is measured is what happens in this time
    check(cpu_ms(s.pid) - before <= 60, "CPU time", cpu_ms(s.pid) - before)


@test
def B092_host_reads_no_more():
    s = Session("recv\n" + lines_for(1) + "end\nnote over",
                options=["--stop-grace=200ms"])
    s.leave()
    s.send(request(1))
    s.wait()
    check(s.stderr().count("EPIPE") + s.stderr().count("Broken pipe") <= 1,
          "told once at most", s.stderr())
    until("nothing is left", lambda: not s.alive())


@test
def B093_server_dies_at_once():
    s = Session(["sh", "-c", "echo boom >&2; exit 3"])
    s.send(request(0, "initialize"))
    line = s.line()
    check(own_error(line, 0, -31014, "server_exited") and b"boom" in line and
          b"3" in line, "the reason", line)
    check(s.wait() == 3, "status", s.process.returncode)


@test
def B101_no_zombies():
    script = "for i in $(seq 50); do (sleep 0.01 &) ; done; read x; echo " \
        "'{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; cat"
    s = Session(["sh", "-c", script])
    s.send(request(1))
    same(s.line(), result(1), "it runs")

    def zombies():
        found = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                    rest = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            found += rest[0] == "Z" and int(rest[1]) in s.alive()
        return found
    until("all are reaped", lambda: zombies() == 0)
    s.finish()


@test
def B102_docker_client_and_its_container():
    gone = fresh("gone")
    container = f"cat; sleep 0.3; : >{gone}"
    client = f"setsid sh -c '{container}' & trap 'exit 0' TERM; wait"
    # the container reads what the client would relay
    s = Session(["sh", "-c", f"exec 3<&0; {client.replace('cat', 'cat <&3')}"])
    until("both run", lambda: len(s.alive()) >= 4)
    s.half_close()
    s.wait()
    check(os.path.exists(gone), "the container ended by itself")
    until("nothing is left", lambda: not s.alive())


@test
def B104_launcher_that_exits():
    path = fresh("heir")
    with open(path, "w", encoding="ascii") as f:
        f.write("read a; echo '%s'; read b; echo '%s'; cat\n" % tuple(
            result(i).decode().strip() for i in (1, 2)))
    s = Session(["sh", "-c", f"exec 3<&0; sh {path} <&3 & exit 0"])
    s.send(request(1))
    same(s.line(), result(1), "the heir answers")
    s.send(request(2))
    same(s.line(), result(2), "and goes on")
    check(s.finish()[1] == 0, "clean end")
    until("nothing is left", lambda: not s.alive())


@test
def B107_unknown_members_keep_their_bytes():
    odd = ('{"jsonrpc":"2.0","x-foo":1.0,"id":1,  "result":{"_meta":{"k":1e0},'
           '"content":[{"type":"text","text":"t","annotations":{"p":0.50}}],'
           '"tools":[{"name":"n","title":"\\u0041"}]}}')
    cut = ('{"jsonrpc":"2.0","x-foo":1.0,"id":2,"result":{"_meta":{"k":1e0},'
           '"x":[1.50],"content":[{"type":"text","text":"' + "w " * 2000 +
           '","annotations":{"p":0.50}}]}}')
    s = Session(f"recv 2\nsend {odd}\nsend {cut}\n",
                options=["--max-content=1K"])
    s.send(request(1, "tools/call"), request(2, "tools/call"))
    same(s.line(), odd.encode() + b"\n", "untouched")
    line = s.line()
    for part in ('"x-foo":1.0', '"k":1e0', '"x":[1.50]'):
        check(part.encode() in line, part + " is kept", line)


@test
def B108_server_that_starts_late():
    gate = fresh("gate")
    s = Session(f"await {gate}\nrecv 2\n" + lines_for(0, 1))
    s.send(request(0, "initialize"), request(1, "ping"))
    time.sleep(0.2)
    open(gate, "w", encoding="ascii").close()
    same(s.lines(2), result(0) + result(1), "the server's own answers")
    same(s.log()[:200], request(0, "initialize") + request(1, "ping"),
         "in order")


@test
def B109_crash_is_not_hidden():
    s = Session("recv\n" + lines_for(1) + "recv\nkill SEGV")
    s.send(request(1))
    same(s.line(), result(1), "the first call")
    s.send(request(2))
    check(own_error(s.line(), 2, -31014, "server_exited"), "the second")
    same(s.rest(), b"", "then the end")
    check(s.wait() == -signal.SIGSEGV, "the same signal")
    check(s.log() == request(1) + request(2), "nothing of our own", s.log())


@test
def B110_notifications_without_end():
    n = scaled(2000, 200)
    log = notice("notifications/message",
                 '{"level":"info","data":"%s"}' % ("d" * 65000))
    s = Session(f"times {n} send {log.decode().strip()}\nnote all\nrecv\n" +
                lines_for(1), options=["--memory=4M", "--spill=4M"])
    until("the server was never blocked", lambda: b"all" in s.log(), 60)
    if PLAIN:
        check(s.peak_kb() < 4096 + DRIFT, "memory", s.peak_kb())
    s.send(request(1))
    while True:
        line = s.line()
        if line != log:
            break
    same(line, result(1), "it goes on")
    s.finish()
    check(int(s.metrics()["notifications_dropped"]) > 0, "counted")


@test
def B112_slow_call_does_not_hold_a_fast_one():
    gate = fresh("gate")
    s = Session(f"recv 2\n" + lines_for(2) + f"await {gate}\n" + lines_for(1))
    s.send(request(1, "tools/call"), request(2, "ping"))
    same(s.line(), result(2), "the fast one first")
    open(gate, "w", encoding="ascii").close()
    same(s.line(), result(1), "then the slow one")


@test
def B113_nothing_inside_a_frame():
    """A large request is half written when a cancel must go."""
    gate = fresh("gate")
    s = Session("recv\nsend " + notice("n").decode().strip() +
                f"\nnote told\nawait {gate}\nrecv 2\nend",
                options=STALL + ["--memory=32M"])
    s.send(request(1, "tools/call"))
    until("the host has something to read", lambda: b"told" in s.log())
    big = request(2, "x", '{"t":"%s"}' % ("b" * (scaled(8, 2) * MIB)))
    s.send(big)
    until_stalled(s)
    open(gate, "w", encoding="ascii").close()
    until("the cancel arrives", lambda: cancels(s.log()) != [])
    lines = s.log().splitlines(True)
    check(big in lines and 1 in cancels(s.log()), "whole frames",
          [x[:80] for x in lines])


@test
def B118_words_and_surroundings_stay():
    where = fresh("a dir") + " x"
    os.mkdir(where)
    words = ["", "a b", "quo\"te'", "new\nline", "--", "$HOME", "*"]
    code = "import json,os,sys; print(json.dumps({'jsonrpc':'2.0','method':" \
        "'n','params':[sys.argv[1:],os.environ['W'],os.getcwd()]}))"
    here = os.getcwd()
    os.chdir(where)
    try:
        s = Session([os.path.basename(sys.executable), "-c", code, *words],
                    env={"W": "a=b=\u00e9", "PATH":
                         os.path.dirname(sys.executable) + ":/bin"})
        got = json.loads(s.line())["params"]
    finally:
        os.chdir(here)
    check(got == [words, "a=b=\u00e9", os.path.realpath(where)], "as given",
          got)


@test
def B119_grandchild_with_all_descriptors():
    s = Session(["sh", "-c", "sleep 1000 & exec sleep 1001"])
    until("both run", lambda: len(s.alive()) >= 4)
    s.send(request(1))
    server = [p for p in s.alive() if read_file(
        f"/proc/{p}/cmdline").split(b"\0")[:2] == [b"sleep", b"1001"]]
    os.kill(server[0], signal.SIGKILL)
    check(own_error(s.line(), 1, -31014, "server_exited"), "the answer")
    check(s.wait() == -signal.SIGKILL, "the same signal")
    until("nothing is left", lambda: not s.alive())


@test
def B121_the_same_line_again_and_again():
    """Lines of the server are not folded: contract section 8 wants them
    unchanged. They cost nobody anything, and --server-stderr=drop is there."""
    n = scaled(200000, 20000)
    s = Session(f"recv\ntimes {n} err {'again ' * 20}\\n\n"
                "times 200 err line %i\\n\n" + lines_for(1))
    s.send(request(1))
    same(s.line(), result(1), "the answer")
    s.finish()
    check("line 199\n" in s.stderr(), "what comes later gets through",
          s.stderr()[-300:])


@test
def B123_list_changed_storm():
    changed = notice("notifications/tools/list_changed")
    n = 200
    s = Session("".join(f"recv\n{lines_for(i)}send {changed.decode()}"
                        for i in range(n)))
    for i in range(n):
        s.send(request(i, "tools/list"))
        same(s.lines(2), result(i) + changed, "all are forwarded")


# Tool results over a content limit

def cut(content, more="", options=("--max-content=100K",), method="tools/call",
        before=()):
    """The reply to one call, and the session's figures."""
    reply = '{"jsonrpc":"2.0","id":1,"result":{%s%s}}\n' % (content, more)
    path = fresh("reply")
    with open(path, "w", encoding="utf-8") as f:
        f.write(reply)
    steps = "".join(f"recv\nsend {a.decode()}" for _, a in before)
    s = Session(steps + f"recv\npart 0 {len(reply.encode())} {path}\n",
                options=options)
    for ask, answer in before:
        s.send(ask)
        same(s.line(), answer, "before")
    s.send(request(1, method, '{"name":"t"}'))
    line = s.line()
    s.finish()
    return reply.encode(), line, s.metrics()


def text(t):
    return '{"type":"text","text":"%s"}' % t


@test
def B128_three_blocks_and_structured_content():
    big = "r" * (2 * MIB)
    _, line, m = cut('"content":[%s,%s,%s]' % (
        text("first ten."), text(big), text("last ten..")),
        ',"structuredContent":{"d":"%s"}' % big)
    r = json.loads(line)["result"]
    check(len(line) < 220 << 10, "within the limit", len(line))
    check(r["content"][0]["text"] == "first ten.", "the small block is kept")
    check("structuredContent" not in r and r["isError"] is True,
          "no structuredContent that is not whole")
    check("byte" in r["content"][-1]["text"], "a notice", r["content"][-1])
    check(m["results_cut"] == "1", "counted", m)


@test
def B129_base64_is_never_cut():
    image = '{"type":"image","data":"%s","mimeType":"image/png"}' % (
        "QUJD" * 75000)
    _, line, _ = cut(f'"content":[{text("before")},{image},{text("after")}]')
    blocks = json.loads(line)["result"]["content"]
    check(all(b["type"] == "text" for b in blocks), "no part of it", blocks)
    check(any("image/png" in b["text"] and "300000" in b["text"]
              for b in blocks), "what it was", blocks)


@each(alone=("",), twice=(',"structuredContent":{"a":[%s]}' %
                          ",".join(["12345678"] * 40000),))
def B131_tool_with_an_output_schema(more):
    tools = ('{"jsonrpc":"2.0","id":0,"result":{"tools":[{"name":"t",'
             '"outputSchema":{"type":"object"}}]}}\n').encode()
    _, line, _ = cut(f'"content":[{text("z" * 300000)}]', more,
                     before=[(request(0, "tools/list"), tools)])
    r = json.loads(line)["result"]
    check(r.get("isError") is True or "structuredContent" in r or not more,
          "no success that lacks structuredContent", list(r))
    if more:
        check("structuredContent" not in r, "nor a part of it")


@each(svg=("QUJD", "image/svg+xml"), jpeg=("/9j/4AAQ", "image/png"),
      empty=("", "image/png"), spaces=("QU JD\\nQUJD", "image/png"))
def B133_images_are_not_judged(data, mime):
    block = '{"type":"image","data":"%s","mimeType":"%s"}' % (data, mime)
    reply, line, _ = cut(f'"content":[{block}]')
    same(line, reply, "byte for byte")


@each(read=("resources/read", '"contents":[{"uri":"a","text":"@"}]'),
      prompt=("prompts/get", '"messages":[{"role":"user","content":'
              '{"type":"text","text":"@"}}]'))
def B135_only_tool_results_are_cut(method, content):
    reply, line, m = cut(content.replace("@", "q" * 300000), method=method)
    same(line, reply, "byte for byte")
    check(m["results_cut"] == "0", "not counted", m)


if __name__ == "__main__":
    main()
