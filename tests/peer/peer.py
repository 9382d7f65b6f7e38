#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A scripted peer: plays one end of a session, server or host, step by step.

    peer.py FILE            a file of steps, one on a line

    send TEXT       TEXT and LF, as it stands
    raw TEXT        TEXT without LF; \\n \\r \\t \\0 \\\\ and \\xNN are bytes
    pad N TEXT      TEXT and LF, its @ replaced by as many x as make N bytes
    err TEXT        like raw, on stderr
    times N STEP    N times what send, raw, pad or err writes; %i is the count
    part OFFSET LENGTH PATH     that much of a file
    recv [N]        read N lines
    upto N          read lines until N bytes have come since the start
    expect TEXT     read lines until one holds TEXT
    end             read until end of file
    drain           read until end of file, noting only size and SHA-256
    await PATH      until that file exists
    note TEXT       a line of our own in the log: what was reached
    close           close our output
    deaf            do nothing for ever
    ignore SIG...   ignore these signals
    fork            a child that holds all our descriptors for ever
    exit N          exit with this status at once
    kill SIG        die by this signal

At the end of the script a server reads until end of file and exits 0. What
it reads is appended to the file that PEER_LOG names. With PEER_DRIP set each
byte is a write of its own. It knows nothing of spillway or of JSON.
"""
import hashlib
import os
import re
import select
import signal
import sys
import time

ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}
BLOCK = 65536


class PeerError(Exception):
    """The other side did not do what the script waits for."""


def unescape(text):
    def one(m):
        c = m.group(1)
        return ESCAPES[c] if c in ESCAPES else bytes([int(c[1:], 16)])
    return re.sub(rb"\\([nrt0\\]|x[0-9a-fA-F]{2})", one, text)


def pad(length, text):
    return text.replace(b"@", b"x" * (length - len(text)), 1) + b"\n"


def blocks(parts):
    """Join small pieces so that they go out in writes of some size."""
    held = bytearray()
    for part in parts:
        held += part
        if len(held) >= BLOCK:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


class Peer:
    """One end: reads fd_in, writes fd_out; patience in seconds, or None."""

    def __init__(self, fd_in, fd_out, drip=False, log=None, patience=None):
        self.fd_in, self.fd_out, self.drip = fd_in, fd_out, drip
        self.log, self.patience = log, patience
        self.unread = bytearray()
        self.received = bytearray()  # every line taken, where there is no log
        self.taken = 0               # bytes read so far
        self.ended = False

    # Bytes out

    def wait(self, fd, writing):
        if self.patience is None:
            return
        r, w, _ = select.select([] if writing else [fd], [fd] * writing, [],
                                self.patience)
        if not r and not w:
            raise PeerError("no room to write" if writing else
                            "nothing to read; held: %r" %
                            bytes(self.unread[-200:]))

    def write(self, data, fd=None):
        fd = self.fd_out if fd is None else fd
        view = memoryview(data)
        while view:
            self.wait(fd, True)
            try:
                view = view[os.write(fd, view[:1] if self.drip else view):]
            except BlockingIOError:
                continue

    # Bytes in

    def note(self, data):
        if self.log is not None:
            os.write(self.log, data)
        else:
            self.received += data

    def fill(self):
        """Take in what is there; False at the end."""
        self.wait(self.fd_in, False)
        try:
            data = os.read(self.fd_in, BLOCK)
        except BlockingIOError:
            return True
        except OSError:  # a reset socket, a closed pty: the end as well
            data = b""
        self.ended = self.ended or not data
        self.unread += data
        self.taken += len(data)
        return bool(data)

    def line(self):
        """The next line, noted; at the end what is left, perhaps nothing."""
        seen = 0
        while True:
            at = self.unread.find(b"\n", seen)
            if at >= 0:
                break
            seen = len(self.unread)
            if not self.fill():
                at = len(self.unread) - 1
                break
        taken = bytes(self.unread[:at + 1])
        del self.unread[:at + 1]
        self.note(taken)
        return taken

    def end(self):
        while self.line():
            pass

    def drain(self):
        h, n = hashlib.sha256(), 0
        while self.unread or self.fill():
            h.update(self.unread)
            n += len(self.unread)
            self.unread.clear()
        self.note(b"drained %d %s\n" % (n, h.hexdigest().encode()))

    # Steps

    def payload(self, verb, rest):
        """The bytes and the descriptor of a writing step, or None."""
        if verb == b"send":
            return rest + b"\n", None
        if verb in (b"raw", b"err"):
            return unescape(rest), 2 if verb == b"err" else None
        if verb == b"pad":
            n, _, text = rest.partition(b" ")
            return pad(int(n), text), None
        return None

    def times(self, rest):
        n, _, step = rest.partition(b" ")
        verb, _, text = step.partition(b" ")
        data, fd = self.payload(verb, text)
        many = (data.replace(b"%i", b"%d" % i) for i in range(int(n)))
        for block in blocks(many):
            self.write(block, fd)

    def step(self, line):
        verb, _, rest = line.partition(b" ")
        out = self.payload(verb, rest)
        if out:
            self.write(*out)
        elif verb == b"times":
            self.times(rest)
        elif verb == b"part":
            offset, length, path = rest.split(b" ", 2)
            with open(path, "rb") as f:
                f.seek(int(offset))
                self.write(f.read(int(length)))
        elif verb == b"recv":
            for _ in range(int(rest or b"1")):
                if not self.line():
                    raise PeerError("end of file instead of a line")
        elif verb == b"upto":
            while self.taken - len(self.unread) < int(rest):
                if not self.line():
                    raise PeerError("end of file before byte %s" %
                                    rest.decode())
        elif verb == b"expect":
            while True:
                got = self.line()
                if rest in got:
                    break
                if not got:
                    raise PeerError("end of file before %r" % rest)
        elif verb == b"end":
            self.end()
        elif verb == b"drain":
            self.drain()
        elif verb == b"await":
            while not os.path.exists(rest):
                time.sleep(0.005)
        elif verb == b"note":
            self.note(rest + b"\n")
        elif verb == b"close":
            os.close(self.fd_out)
            self.fd_out = -1
        else:
            self.fate(verb, rest.decode())

    def fate(self, verb, rest):
        if verb == b"deaf":
            while True:
                signal.pause()
        elif verb == b"ignore":
            for name in rest.split():
                signal.signal(getattr(signal, "SIG" + name), signal.SIG_IGN)
        elif verb == b"fork":
            if os.fork() == 0:
                while True:
                    time.sleep(3600)
        elif verb == b"exit":
            os._exit(int(rest))
        elif verb == b"kill":
            os.kill(os.getpid(), getattr(signal, "SIG" + rest))
        else:
            raise PeerError("no such step: %r %r" % (verb, rest))

    def play(self, script):
        for line in script.split(b"\n"):
            if line.strip() and not line.startswith(b"#"):
                self.step(line)


def main():
    log = None
    if "PEER_LOG" in os.environ:
        log = os.open(os.environ["PEER_LOG"],
                      os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    peer = Peer(0, 1, drip="PEER_DRIP" in os.environ, log=log)
    try:
        with open(sys.argv[1], "rb") as f:
            peer.play(f.read())
        peer.end()
    except PeerError as e:
        os.write(2, b"peer: %s\n" % str(e).encode())
        os._exit(98)
    except BrokenPipeError:
        os._exit(97)
    os._exit(0)


if __name__ == "__main__":
    main()
