"""What a program had in its namespace that nobody looked at, by the recorded order. Pure.

The command line of ``bwrap`` says what was there: the system's folders, files in memory whose
digests the order holds, and whatever was bound from the disk. What is not known here is an
exception as well: a word that nobody understands promises nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

_TRUSTED = (
    "/usr/bin/bwrap",
    "/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
)
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "alternatives", "ca-certificates", "group", "hosts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "nsswitch.conf", "passwd", "pki", "resolv.conf", "ssl",
)  # fmt: skip
_WORDS = {
    "--unshare-all": 0, "--share-net": 0, "--die-with-parent": 0, "--new-session": 0,
    "--tmpfs": 1, "--dev": 1, "--proc": 1, "--dir": 1, "--chdir": 1, "--perms": 1, "--size": 1,
    "--cap-drop": 1, "--symlink": 2, "--ro-bind": 2, "--bind": 2, "--dev-bind": 2,
    "--ro-bind-try": 2, "--bind-try": 2, "--dev-bind-try": 2, "--file": 2, "--bind-data": 2,
    "--ro-bind-data": 2,
}  # fmt: skip
"""Options, each with how many words follow it."""

_BINDS = ("--ro-bind", "--bind", "--dev-bind", "--ro-bind-try", "--bind-try", "--dev-bind-try")
_MEMORY = ("--file", "--bind-data", "--ro-bind-data")


def exceptions_in(order: dict[str, Any], looked_at: Collection[str]) -> Iterator[str]:
    """What a program had besides the system and what was looked at, in words.

    Args:
        order: the recorded order, of a run in a namespace.
        looked_at: SHA-256 in hex of each text that it was given and that was searched.

    >>> order = {"argv": ["/usr/bin/bwrap", "--ro-bind", "/usr", "/usr", "--share-net", "--", "x"]}
    >>> list(exceptions_in(order, ()))
    ['the network']
    """
    argv = [str(word) for word in _list(order.get("argv"))]
    if argv[:1] and argv[0] not in _TRUSTED:
        yield f"its namespace was made by {argv[0]}"
    sealed = {
        one.get("word"): str(one.get("sha256"))
        for one in _list(order.get("sealed"))
        if isinstance(one, dict) and isinstance(one.get("word"), int)
    }
    at = 1
    while at < len(argv) and argv[at].startswith("--") and argv[at] != "--":
        option, follow = argv[at], _WORDS.get(argv[at])
        if follow is None or at + follow >= len(argv):
            yield f"its namespace was made with {option}, which is not known here"
            break
        seen = sealed.get(at + 1) in looked_at
        yield from _of(option, argv[at + 1 : at + 1 + follow], was_looked_at=seen)
        at += 1 + follow
    names = [str(name) for name in _list(order.get("env"))]
    secrets = order.get("secrets")
    names += secrets if isinstance(secrets, dict) else []
    if names:
        yield f"handed the variables {', '.join(sorted(names))} (not looked at)"


def _of(option: str, words: list[str], *, was_looked_at: bool) -> Iterator[str]:
    if option == "--share-net":
        yield "the network"
    elif option in _BINDS:
        source, place = words
        front, _, name = place.rpartition("/")
        of_system = (place in _SYSTEM and source == place) or (front == "/etc" and name in _ETC)
        if not of_system:
            yield f"lent {source} (not looked at)"
    elif option in _MEMORY and not was_looked_at:
        yield f"lent {words[1]} (not looked at)"


def servers_in(line: str) -> Iterator[str]:
    """Names of the tool servers that a line of a stream shows: of its calls, and of those it has.

    A whole text may be such a line as well.

    >>> list(servers_in('{"content":[{"type":"tool_use","name":"mcp__wiki__search"}]}'))
    ['wiki']
    """
    todo = [objects_in(line)]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        elif isinstance(one, dict):
            yield from _servers(one)
            todo += one.values()


def _servers(one: dict[str, Any]) -> Iterator[str]:
    kind, name = one.get("type"), one.get("name")
    if kind == "tool_use" and isinstance(name, str) and name.startswith("mcp__"):
        yield name.split("__")[1]
    elif kind in ("mcp_tool_use", "mcp_tool_call", "mcp_call"):
        given = (one.get(key) for key in ("server_name", "server", "server_label"))
        yield next((text for text in given if isinstance(text, str)), "without a name")
    elif kind == "server_tool_use":
        yield f"of the model ({name})"
    for tool in _list(one.get("tools")):
        if isinstance(tool, str) and tool.startswith("mcp__"):
            yield tool.split("__")[1]
    for server in _list(one.get("mcp_servers")):
        named = server.get("name") if isinstance(server, dict) else server
        if isinstance(named, str):
            yield named


def _list(value: Any) -> list[Any]:
    """A list of a body that nobody vouches for; empty if it is not one."""
    return value if isinstance(value, list) else []


def objects_in(text: str) -> Any:
    """A JSON object, or a list that holds one, which a text is; None where it is neither.

    >>> objects_in(' [{"a": 1}]'), objects_in("[1]"), objects_in("[a]")
    ([{'a': 1}], None, None)
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    listed = value if isinstance(value, list) else [value]
    return value if any(isinstance(one, dict) for one in listed) else None
