"""Which files a tool call opens: those that it names, and those of its command line. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from tripod.verify.sessions.items import Call, strings_of
from tripod.verify.sessions.programs import LOCAL_ADDRESS, OpenedPath, ShellReading
from tripod.verify.sessions.programs import UNKNOWN_PART as ANY
from tripod.verify.sessions.shell import opened_by, resolved

OPAQUE = frozenset(("mcp", "tool", "resource", "script"))
"""Channels of tools of which nobody knows what they read."""

NUL = "a file that is named with a NUL"
PATHLIKE = re.compile(r"[^\s/.]*[/.]\S*")
MAGIC = re.compile(r"[*?\[\]{}]")

REMOVED = re.compile(
    r"REDACTED|[\[<({]+(?i:redacted)[^/\])>}]{0,60}[\])>}]+|[\[<](?:removed|hidden|masked|omitted)[\]>]"
    r"|\*{3,}|\u2588+"
)
"""What stands in a record where somebody took a name or a text out."""

_NO_FILES = frozenset(("names", "subagent", "web", "skill", "paste", "background"))
_IS_POWERSHELL = re.compile("powershell|pwsh", re.IGNORECASE)
MAX_PATH = SHORT_COMMAND = 4096  # characters
_opened_again = lru_cache(maxsize=512)(opened_by)
"""Programs say a command when they ask for it and when they ran it, and agents repeat many."""


def opened_by_call(call: Call) -> ShellReading:
    """Which files a call opens. Programs in C end a path at a NUL, shells drop it: both may be."""
    texts = call.command or "", call.cwd, *call.paths
    if "\0" not in "".join(texts):
        return _opened_by_call(call)
    found = ShellReading(opaque=[NUL])
    for form in (lambda text: text.partition("\0")[0], lambda text: text.replace("\0", "")):
        command, cwd, *paths = map(form, texts)
        said = call._replace(command=call.command and command, cwd=cwd, paths=tuple(paths))
        one = _opened_by_call(said)
        found.opened += [each._replace(sure=False) for each in (*one.opened, *one.also)]
        found.opaque += one.opaque
    return found


def as_known(opened: OpenedPath) -> OpenedPath:
    """A path that was opened; one whose last name was taken out of the record may be any there.

    >>> as_known(OpenedPath("a/REDACTED", "/w/a/REDACTED")).path
    '/w/a'
    """
    if len(opened.path) > MAX_PATH or REMOVED.fullmatch(opened.named):
        return opened._replace(path=f"/{ANY}", sure=False)
    folder, _, name = opened.path.rpartition("/")
    if REMOVED.fullmatch(name):  # a folder is mostly the home of somebody, whose name was taken out
        return opened._replace(path=folder or "/", recursive=True)
    return opened


def _opened_by_call(call: Call) -> ShellReading:
    if call.channel == "shell" and call.command is not None:
        return _opened_by(call, call.command)
    known = call.channel not in OPAQUE
    found = ShellReading()
    if call.channel == "web":
        for url in LOCAL_ADDRESS.findall("\n".join(strings_of(call.input))):
            if url.startswith("file:"):
                found.opened.append(OpenedPath(url, resolved(url, call.cwd)))
            else:
                found.opaque.append(f"what a server on this machine, or near it, gave, {url[:80]},")
    for named in call.paths if call.channel not in _NO_FILES else ():
        if known or PATHLIKE.fullmatch(named):
            sure = known and not (MAGIC.search(named) and not call.recursive)
            path = resolved(named, call.cwd)
            found.opened.append(OpenedPath(named, path, sure, call.recursive, call.recursive))
    return found


def _opened_by(call: Call, command: str) -> ShellReading:
    """What a command opens, read by the shell that it is for."""
    is_named = _IS_POWERSHELL.search(call.tool) is not None
    if is_named or (call.cwd[1:3] == ":\\" and call.tool != "Bash"):
        from tripod.verify.sessions.powershell import opened_by_powershell

        return opened_by_powershell(command, call.cwd, is_named=is_named)
    return (_opened_again if len(command) <= SHORT_COMMAND else opened_by)(command, call.cwd)
