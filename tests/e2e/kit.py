# SPDX-License-Identifier: MIT
"""What the end-to-end tests share: sessions over real descriptors, waiting,
and the telling of results. Knows the program by its outside alone.

SPILLWAY names the program (default build/spillway), SPILLWAY_VARIANT the
build it is of; sizes shrink for any but the plain one, see `scaled`.
"""
import atexit
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import tty

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
TOP = os.path.dirname(TESTS)
sys.path.insert(0, os.path.join(TESTS, "peer"))
from peer import Peer, PeerError  # noqa: E402,F401

PEER = os.path.join(TESTS, "peer", "peer.py")
PROGRAM = os.environ.get("SPILLWAY") or os.path.join(TOP, "build", "spillway")
PLAIN = os.environ.get("SPILLWAY_VARIANT", "plain") == "plain"
PATIENCE = 20 if PLAIN else 60
MIB = 1 << 20

_work = tempfile.mkdtemp(prefix="spillway-test-")
_tag = "SPILLWAY_TEST_TAG"
_count = iter(range(1 << 30))
_sessions = []
_tests = []


class Failure(Exception):
    """A test found something wrong."""


def scaled(plain, instrumented):
    """A size: the first for the plain build, the second for a slow one."""
    return plain if PLAIN else instrumented


def check(condition, what, *seen):
    if not condition:
        raise Failure(what + "".join("\n  " + clip(s) for s in seen))


def same(got, want, what):
    if got == want:
        return
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b),
              min(len(got), len(want)))
    raise Failure("%s: differs at %d of %d (got) and %d (wanted)\n"
                  "  got    %s\n  wanted %s" %
                  (what, at, len(got), len(want), clip(got[max(0, at - 60):]),
                   clip(want[max(0, at - 60):])))


def clip(value, length=300):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= length else text[:length] + "..."


def fresh(name=""):
    """A path nobody uses yet, removed at the end."""
    return os.path.join(_work, f"{next(_count)}{name}")


def until(what, fn, patience=PATIENCE):
    """Poll until fn() is true; its value."""
    end = time.monotonic() + patience
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"waited in vain until {what}; last: {value!r}")
        time.sleep(0.01)


# JSON-RPC lines; ids and params are raw JSON text

def request(id, method="x/y", params="{}"):
    return ('{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\n' %
            (id, method, params)).encode()


def result(id, value="{}"):
    return ('{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (id, value)).encode()


def notice(method, params="{}"):
    return ('{"jsonrpc":"2.0","method":"%s","params":%s}\n' %
            (method, params)).encode()


def own_error(line, id, code, reason):
    """Is this line the proxy's error for the raw id? (contract section 6)"""
    try:
        o = json.loads(line)
        data = o["error"]["data"]
        return (line.startswith(b'{"jsonrpc":"2.0","id":%s,"error":'
                                b'{"code":%d,"message":"' %
                                (str(id).encode(), code)) and
                list(o) == ["jsonrpc", "id", "error"] and
                data["source"] == "spillway" and data["reason"] == reason)
    except (ValueError, KeyError, TypeError):
        return False


# Processes

def status_kb(pid, key):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii",
                  errors="replace") as f:
            m = re.search(rf"^{key}:\s+(\d+)", f.read(), re.M)
            return int(m[1]) if m else 0
    except OSError:
        return 0


def living(tag):
    """Processes, zombies aside, that carry this session's tag."""
    want, found = f"{_tag}={tag}".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if want not in f.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/stat", "rb") as f:
                if f.read().rsplit(b")", 1)[1].split()[0] != b"Z":
                    found.append(int(pid))
        except OSError:
            continue
    return found


def kill_all(tag):
    for _ in range(100):
        left = living(tag)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.01)


def host_ends(stdio):
    """Descriptors (host writes, proxy reads, host reads, proxy writes)."""
    if stdio == "pipe":
        r1, w1 = os.pipe()
        r2, w2 = os.pipe()
        return w1, r1, r2, w2
    if stdio == "socket":
        pairs = [socket.socketpair() for _ in range(2)]
        (a, b), (c, d) = [(x.detach(), y.detach()) for x, y in pairs]
        return a, b, c, d
    if stdio == "pty":
        master, slave = os.openpty()
        tty.setraw(slave)
        return master, slave, os.dup(master), os.dup(slave)
    raise ValueError(stdio)


def peer(script):
    """The command line of a scripted server."""
    path = fresh("steps")
    with open(path, "wb") as f:
        f.write(script if isinstance(script, bytes) else script.encode())
    return [sys.executable, "-S", PEER, path]


class Session:
    """The proxy between a host, played by the test, and a scripted server."""

    def __init__(self, server, options=(), stdio="pipe", env=None, drip=False,
                 direct=False, stderr=None):
        self.log_path, self.err_path = fresh("log"), fresh("err")
        self.tag = f"{os.getpid()}.{next(_count)}"
        if isinstance(server, (str, bytes)):
            server = peer(server)
        argv = list(server) if direct else [PROGRAM, *options, "--", *server]
        env = {**os.environ, _tag: self.tag, "PEER_LOG": self.log_path,
               **({"PEER_DRIP": "1"} if drip else {}), **(env or {})}
        to, fd0, back, fd1 = host_ends(stdio)
        with open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(
                argv, stdin=fd0, stdout=fd1, env=env,
                stderr=err if stderr is None else stderr)
        os.close(fd0)
        os.close(fd1)
        os.set_blocking(to, False)
        self.host = Peer(back, to, drip=drip, patience=PATIENCE)
        self.pid = self.process.pid
        _sessions.append(self)

    def send(self, *lines):
        for line in lines:
            self.host.write(line)

    def line(self):
        """The next line to the host, with its LF; b'' at the end."""
        return self.host.line()

    def lines(self, n):
        return b"".join(self.line() for _ in range(n))

    def rest(self):
        """All that still comes."""
        start = len(self.host.received)
        self.host.end()
        return bytes(self.host.received[start:])

    def half_close(self):
        os.close(self.host.fd_out)
        self.host.fd_out = -1

    def leave(self):
        """Close our reading end too: the host is gone."""
        os.close(self.host.fd_in)
        self.host.fd_in = -1

    def wait(self):
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure("the proxy does not end; stderr:\n  " +
                          clip(self.stderr())) from None

    def finish(self):
        """End of input, all output, exit status."""
        self.half_close()
        rest = self.rest()
        return rest, self.wait()

    def log(self):
        """What the server has read so far."""
        return read_file(self.log_path)

    def stderr(self):
        return read_file(self.err_path).decode("utf-8", "replace")

    def metrics(self):
        """The figures of the last metrics line; {} if there is none."""
        found = re.findall(r"^spillway: metrics (.*)\n", self.stderr(), re.M)
        return dict(kv.split("=", 1) for kv in found[-1].split()) \
            if found else {}

    def peak_kb(self):
        return status_kb(self.pid, "VmHWM")

    def alive(self):
        return living(self.tag)

    def kill(self):
        kill_all(self.tag)
        self.process.wait()
        for fd in (self.host.fd_in, self.host.fd_out):
            if fd >= 0:
                os.close(fd)
        self.host.fd_in = self.host.fd_out = -1


def read_file(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def readable(fd):
    return bool(select.select([fd], [], [], 0)[0])


def run(argv, **kwargs):
    """Exit status, stdout, stderr of a whole run without input."""
    tag = f"{os.getpid()}.{next(_count)}"
    kwargs["env"] = {**os.environ, _tag: tag, **kwargs.get("env", {})}
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         **kwargs)
    try:
        out, err = p.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        kill_all(tag)
        p.communicate()
        raise Failure(f"no end: {argv}") from None
    return p.returncode, out, err


# Results

def test(fn):
    """Register a test; its name is the function's."""
    _tests.append((fn.__name__, fn))
    return fn


def each(**table):
    """Register a function once per row of a table: name=arguments."""
    def register(fn):
        for name, args in table.items():
            args = args if isinstance(args, tuple) else (args,)
            _tests.append((f"{fn.__name__}-{name.replace('_', '-')}",
                           lambda a=args: fn(*a)))
        return fn
    return register


def one(name, fn):
    start, error = time.monotonic(), None
    del _sessions[:]
    try:
        fn()
    except Exception as e:  # any way to fail is a failure of the test
        known = isinstance(e, (Failure, PeerError))
        error = str(e) if known else traceback.format_exc()
    for s in _sessions:
        s.kill()
    seconds = time.monotonic() - start
    print(f"{'FAIL' if error else 'PASS'} {name} {seconds:.2f}", flush=True)
    if error:
        print(error)
        for s in _sessions:
            print("  stderr: " + clip(s.stderr(), 1500))
    return not error


def main():
    """Run the registered tests, or those whose names argv holds."""
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    good = [one(name, fn) for name, fn in _tests if word in name]
    sys.exit(0 if good and all(good) else 1)


@atexit.register
def _clean():
    shutil.rmtree(_work, ignore_errors=True)
