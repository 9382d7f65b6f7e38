#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contrib/spillway-wrap: it changes commands and arguments, and nothing else;
twice is once; there and back is where it was; what it cannot read with
certainty it leaves alone."""
import glob
import importlib.util
import os

from kit import check, each, fresh, main, run, same, test

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
WRAP = os.path.join(TOP, "contrib", "spillway-wrap")
HOSTS = {os.path.basename(p): (p,)
         for p in sorted(glob.glob(os.path.join(TOP, "contrib/hosts/*")))}
YAML = importlib.util.find_spec("yaml") is not None


def wrap(path, *args, fails=False):
    status, out, err = run([WRAP, *args[:1], path, *args[1:]]
                           if args and not args[0].startswith("--")
                           else [WRAP, path, *args])
    check((status != 0) == fails, f"exit status {status}", out, err)
    return err if fails else out


def put(name, text):
    path = fresh(name)
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)
    os.chmod(path, 0o640)
    return path


def get(path):
    with open(path, "rb") as f:
        return f.read()


@each(**HOSTS)
def there_and_back(path):
    if path.endswith((".yaml", ".yml")) and not YAML:
        return
    text = get(path).decode()
    mine = put(os.path.basename(path), text)
    wrap(mine, "-u")
    bare = get(mine)
    check(b"spillway" not in bare, "spillway is gone", bare)
    check(b"unchanged" not in wrap(mine, "-n"), "a dry run shows a diff")
    same(get(mine), bare, "a dry run changes nothing")
    words = [w for w in text.replace('"', " ").replace(",", " ").split()
             if w.startswith("--") and w != "--"]
    wrap(mine, *words)
    same(get(mine), text.encode(), "there and back")
    check(b"nothing to do" in wrap(mine), "twice is once")
    same(get(mine + ".before-spillway"), bare, "the backup")
    check(os.stat(mine).st_mode & 0o777 == 0o640, "the mode stays")


JSONC = """// my servers
{
\t/* these two */
\t"mcpServers": {
\t\t"a": { "command": "npx", "args": ["-y", "x"] }, // one line
\t\t"b": {
\t\t\t"command": "/opt/b",   // no arguments
\t\t\t"env": { "command": "not a command" },
\t\t},
\t\t"c": { "args": [], "command": "c c" },
\t\t"remote": { "url": "https://example.org/mcp" },
\t},
}
"""
JSONC_WRAPPED = """// my servers
{
\t/* these two */
\t"mcpServers": {
\t\t"a": { "command": "spillway", "args": ["--", "npx", "-y", "x"] }, // one line
\t\t"b": {
\t\t\t"command": "spillway",
\t\t\t"args": ["--", "/opt/b"],   // no arguments
\t\t\t"env": { "command": "not a command" },
\t\t},
\t\t"c": { "args": ["--", "c c"], "command": "spillway" },
\t\t"remote": { "url": "https://example.org/mcp" },
\t},
}
"""


@test
def comments_and_layout_stay():
    path = put("settings.json", JSONC)
    wrap(path)
    same(get(path), JSONC_WRAPPED.encode(), "wrapped")
    wrap(path, "-u")
    check(b'"command": "c c"' in get(path), "and back")


@test
def crlf_stays():
    path = put("crlf.json", JSONC.replace("\n", "\r\n"))
    wrap(path)
    same(get(path), JSONC_WRAPPED.replace("\n", "\r\n").encode(), "wrapped")


@test
def one_server_alone():
    path = put("one.json", JSONC)
    run([WRAP, "-s", "b", path])
    check(get(path).count(b'"spillway"') == 1, "one is wrapped")
    status, _, err = run([WRAP, "-s", "zzz", path])
    check(status != 0 and b"zzz" in err, "no such server", err)


TOML = """# codex
model = "x"

[mcp_servers."with space"]   # quoted
command = 'npx'
args = [
  "-y",  # yes
  'thing',
]

[mcp_servers.bare]
command = "bare"

[mcp_servers.bare.env]
command = "no command"
"""


@test
def toml():
    path = put("config.toml", TOML)
    wrap(path, "--preset=codex")
    text = get(path).decode()
    check('args = [\n  "--preset=codex",\n  "--",\n  "npx",\n  "-y",  # yes'
          in text, "the list", text)
    check('command = "spillway"\nargs = ["--preset=codex", "--", "bare"]'
          in text, "a new list", text)
    check('command = "no command"' in text, "env is not touched", text)
    wrap(path, "-u")
    check("spillway" not in get(path).decode(), "and back")


@each(no_json=("a.json", "{"), words=("a.json", '{"mcpServers":{}} x'),
      none=("a.json", '{"a":{"command":"x"}}'),
      odd=("a.json", '{"mcpServers":{"a":{"command":["x",1]}}}'),
      twice=("a.json", '{"mcpServers":{"a":{"command":"x","command":"y"}}}'),
      dotted=("a.toml", 'mcp_servers.a.command = "x"\n'),
      inline=("a.toml", '[mcp_servers]\na = {command = "x"}\n'),
      long=("a.toml", '[mcp_servers.a]\ncommand = """x"""\n'),
      bad_toml=("a.toml", "[mcp_servers.a\n"),
      suffix=("a.ini", "[a]\ncommand=x\n"))
def refused(name, text):
    path = put(name, text)
    err = wrap(path, fails=True)
    check(err.count(b"\n") == 1 and b"not changed" in err, "one line", err)
    same(get(path), text.encode(), "the file")
    check(not os.path.exists(path + ".before-spillway"), "no backup")


@test
def no_option_of_ours():
    path = put("o.json", JSONC)
    err = run([WRAP, path, "--max-frame", "1M"])[2]
    check(b"--option=value" in err, "says how", err)
    same(get(path), JSONC.encode(), "the file")


if __name__ == "__main__":
    main()
