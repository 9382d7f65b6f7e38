#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bytes in are bytes out (contract section 1).

What goes wrong in proxies: a read boundary taken for a message boundary, a
line parsed and written anew, one direction that waits for the other. So both
directions run at once, over every kind of descriptor, cut in every way, and
the SHA-256 of both ends is compared.
"""
import base64
import glob
import gzip
import hashlib
import json
import os
import random
import threading

from kit import (HERE, Session, check, each, fresh, main, notice, own_error,
                 request, result, same, scaled, test, until)

MESSAGES = [
    b'{"jsonrpc":"2.0","method":"notifications/a"}',
    b' \t{ "params" : {"z":1, "a":[1 ,2]} ,"method":"x/y","jsonrpc" : "2.0"} ',
    b'{"\\u006asonrpc":"2.0","m\\u0065thod":"n\\/x","params":{"k\\u0000":1}}',
    '{"jsonrpc":"2.0","method":"n","params":{"t":"ż 漢 🙂 \u2028 \ufeff"}}'
    .encode(),
    b'{"jsonrpc":"2.0","method":"n","params":[0,-0,1.10,1e400,-1E+2,' +
    b"7" * 3000 + b"]}",
    b'{"jsonrpc":"2.0","id":"s-1","method":"roots/list"}',
    b'[{"jsonrpc":"2.0","method":"a"} , {"jsonrpc":"2.0","method":"b"}]',
    b'{"jsonrpc":"2.0","method":"n","params":' + b"[" * 200 + b"]" * 200 + b"}",
    b'{"jsonrpc":"2.0","method":"n","params":{"t":"{\\"id\\":5}\\n}{"}}',
    b'{"jsonrpc":"2.0","method":"n","params":{"a":1,"a":2},"x":{"id":1}}',
]
# The host may say anything: nothing of it is filtered.
ANYTHING = [b"", b" \t ", b"hello", b"\xff\xfe\x00", b"\xef\xbb\xbf{}", b"\r",
            b'{"a":NaN}', b"{broken", b"null", b'"' + b"\xc3\xa9" * 300 + b'"',
            b'{"x":' + b"[" * 300, b'{"jsonrpc":"2.0","id":9,"result":{}}']


def corpus(lines, long, seed):
    r = random.Random(seed)
    out = list(lines)
    if long:
        out += [r.choice(lines) for _ in range(300)]
        out += [notice("big", '{"t":"%s"}' % ("é☃" * (n // 5)))[:-1]
                for n in (4096, 65500, 65536, 65541, 300000)]
    r.shuffle(out)
    return b"".join(line + b"\n" for line in out)


def pieces(data, how, seed=3):
    """(offset, length) of each write."""
    r, at, cuts = random.Random(seed), 0, []
    while at < len(data):
        n = {"whole": len(data), "byte": 1}.get(how) or r.choice(
            (1, 2, 7, 100, 4095, 4096, 4097, 65535, 65536, 65537))
        n = min(n, len(data) - at)
        cuts.append((at, n))
        at += n
    return cuts


def digest(data):
    return b"drained %d %s\n" % (len(data),
                                 hashlib.sha256(data).hexdigest().encode())


@each(**{f"{stdio}_{how}": (stdio, how) for stdio in ("pipe", "socket")
         for how in ("whole", "random", "byte")})
def duplex(stdio, how):
    to_host = corpus(MESSAGES, how != "byte", 1)
    to_server = corpus([m for m in MESSAGES if b"s-1" not in m] + ANYTHING,
                       how != "byte", 2)
    path = fresh("data")
    with open(path, "wb") as f:
        f.write(to_host)
    script = "".join(f"part {at} {n} {path}\n"
                     for at, n in pieces(to_host, how))
    s = Session(script + "drain", stdio=stdio)

    def feed():
        for at, n in pieces(to_server, how, 4):
            s.host.write(to_server[at:at + n])
        s.half_close()
    feeder = threading.Thread(target=feed)
    feeder.start()
    got = s.rest()
    feeder.join()
    same(got, to_host, "to host")
    check(s.wait() == 0, "exit status", s.stderr())
    same(s.log(), digest(to_server), "to server")


@test
def gigabyte_both_ways():
    """1 GiB each way at once; neither end keeps what it saw."""
    n = scaled(1024, 48) * 16
    line = notice("n", '{"t":"%s"}' % ("y" * 65536))
    script = f"times {n} send ".encode() + line + b"drain\n"
    s = Session(script)

    def feed():
        for _ in range(n // 16):
            s.host.write(line * 16)
        s.half_close()
    feeder = threading.Thread(target=feed)
    feeder.start()
    s.host.drain()
    feeder.join()
    check(s.wait() == 0, "exit status", s.stderr())
    h = hashlib.sha256()
    for _ in range(n // 16):
        h.update(line * 16)
    want = b"drained %d %s\n" % (n * len(line), h.hexdigest().encode())
    same(bytes(s.host.received), want, "to host")
    same(s.log(), want, "to server")
    if scaled(True, False):
        check(s.metrics().get("frames_to_host") == str(n), "frames counted",
              s.metrics())


@test
def pty_to_server():
    """A pty in raw mode as stdin and stdout; it has no half-close."""
    lines = corpus(MESSAGES, False, 5)
    s = Session("end", stdio="pty")
    s.send(lines)
    until("the server has all", lambda: len(s.log()) >= len(lines))
    same(s.log(), lines, "to server")
    s.process.terminate()
    s.wait()


@test
def pty_to_host():
    lines = corpus(MESSAGES, True, 6)
    path = fresh("data")
    with open(path, "wb") as f:
        f.write(lines)
    s = Session(f"recv\npart 0 {len(lines)} {path}\nend\n", stdio="pty")
    s.send(notice("go"))
    same(s.lines(lines.count(b"\n")), lines, "to host")
    s.process.terminate()
    s.wait()


@test
def every_split():
    """A few frames, cut in two at every position, both ways."""
    data = request(1) + MESSAGES[3] + b"\n" + MESSAGES[2] + b"\n"
    reply = result(1, '{"t":"é🙂"}') + MESSAGES[3] + b"\n"
    path = fresh("data")
    with open(path, "wb") as f:
        f.write(reply)
    script, got = [], b""
    for cut in range(1, len(reply)):
        script.append(f"recv 3\npart 0 {cut} {path}\n"
                      f"part {cut} {len(reply) - cut} {path}\n")
    s = Session("".join(script) + "end")
    for cut in range(1, len(reply)):
        k = cut % (len(data) - 1) + 1
        s.send(data[:k])
        s.send(data[k:])
        got += s.lines(2)
    same(got, reply * (len(reply) - 1), "to host")
    check(s.finish() == (b"", 0), "clean end", s.stderr())
    same(s.log(), data * (len(reply) - 1), "to server")


# Recorded sessions

def records(path):
    """The sessions of a recording: lists of (direction, bytes)."""
    opener = gzip.open if path.endswith(".gz") else open
    sessions = []
    with opener(path, "rb") as f:
        for r in map(json.loads, f):
            if r.get("ev") == "spawn":
                sessions.append([])
            elif r.get("dir") in ("c2s", "s2c"):
                data = base64.b64decode(r["b64"]) if "b64" in r \
                    else r["d"].encode("utf-8", "surrogatepass")
                sessions[-1].append((r["dir"], data))
    return [s for s in sessions if s]


class Seen:
    """What of a recorded server's lines a host is to get: not text, not the
    reply to a request it has cancelled, not progress of a closed request."""

    def __init__(self):
        self.pending = {}
        self.closed = set()

    def host(self, line):
        m = json.loads(line)
        params = m.get("params") or {}
        if "method" in m and "id" in m:
            token = (params.get("_meta") or {}).get("progressToken")
            self.pending[json.dumps(m["id"])] = json.dumps(token)
            self.closed.discard(json.dumps(token))
        elif m.get("method") == "notifications/cancelled":
            self.close(params.get("requestId"))

    def close(self, id):
        token = self.pending.pop(json.dumps(id), None)
        self.closed.add(token)
        return token is not None

    def keeps(self, line):
        try:
            m = json.loads(line)
        except ValueError:
            return False
        if not isinstance(m, dict) or "jsonrpc" not in m:
            return False
        if m.get("method") == "notifications/progress":
            return json.dumps(m["params"]["progressToken"]) not in self.closed
        return "method" in m or self.close(m.get("id"))


def scripts(session, paths):
    """Both ends' steps, what each wrote, what the host is to get. Each waits,
    before it writes, for the whole lines that the other had got by then, so
    that replies follow requests."""
    data = {"c2s": b"", "s2c": b""}
    got = {"c2s": b"", "s2c": b""}
    line = {"c2s": b"", "s2c": b""}
    steps = {"c2s": [], "s2c": []}
    seen = Seen()
    for way, piece in session:
        back = "s2c" if way == "c2s" else "c2s"
        steps[way].append(f"upto {len(got[back])}")
        steps[way].append(f"part {len(data[way])} {len(piece)} {paths[way]}")
        data[way] += piece
        *whole, line[way] = (line[way] + piece).split(b"\n")
        for w in whole:
            if way == "c2s":
                seen.host(w)
            if way == "c2s" or seen.keeps(w):
                got[way] += w + b"\n"
    for way, path in paths.items():
        with open(path, "wb") as f:
            f.write(data[way])
    return ({w: "\n".join(s).encode() for w, s in steps.items()}, data,
            got["s2c"], list(seen.pending))


def recordings():
    found = sorted(glob.glob(os.path.join(HERE, "../data/traffic/*.jsonl*")))
    return {os.path.basename(p).split(".")[0].replace("-", "_"): p
            for p in found}


@each(**recordings())
def traffic(path):
    for session in records(path):
        paths = {"c2s": fresh("c2s"), "s2c": fresh("s2c")}
        steps, data, want, left = scripts(session, paths)
        s = Session(steps["s2c"], options=["--max-frame=64M"])
        s.host.play(steps["c2s"])
        s.half_close()
        s.host.end()
        s.wait()
        host = bytes(s.host.received)
        same(host[:len(want)], want, "to host")
        ends = host[len(want):].splitlines(True)
        check(len(ends) == len(left) and all(
            own_error(e, id, -31014, "server_exited")
            for e, id in zip(ends, left)), "an error for each left", ends)
        same(s.log(), data["c2s"], "to server")
        s.kill()


if __name__ == "__main__":
    main()
