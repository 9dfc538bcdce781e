"""``nbs-chat``: the chat as its documents promise it, kept by the team's ledger.

A thin door to ``tripod.chat.writer``. Source: spec nbs-compat C1 to C3; where it differs from the
original and why: ``docs/reference/nbs-chat.md``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tripod.chat import keep as chat_keep
from tripod.chat import read as chat_read
from tripod.chat import writer as acts
from tripod.doors import DOORS
from tripod.dropin.common import actor_of, chat_path, known_in, leave, may_have_ledger, team_of
from tripod.dropin.words import Words, option_number, take_apart, wants_usage
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.inputs import text_argument, whole_number
from tripod.output import emit, emit_json, emit_report
from tripod.projections import CHAT
from tripod.team.team import Team

TIMEOUT = 3
MAX_INDEX = 2**31 - 2
MAX_NUMBER = 2**31 - 1
MAX_WAIT = 10_000_000  # seconds
LOOK = 1.0  # seconds, where nothing tells that something happened
WAIT = 10  # seconds, by default


class Command(NamedTuple):
    """A command: its usage, what it does, and what it takes."""

    usage: str
    work: Callable[[Words, str], int | None]
    texts: tuple[int, int]
    options: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def main() -> None:
    """Run the command that the process was started with."""
    leave(_work, DOORS["chat"])


def _work(words: Sequence[str]) -> int | None:
    name = words[0] if words else ""
    if name in ("help", "--help", "-h"):
        emit([_help()])
        return None
    command = COMMANDS.get(name)
    if command is None:
        what = f"no command {name!r}" if words else "which command?"
        raise BadArgumentError(f"{what}\n{_help()}")
    rest = words[1:]
    if wants_usage(rest):
        emit([f"Usage: {command.usage}"])
        return None
    if name in TEXT_AT:
        rest = _text_apart(rest, TEXT_AT[name], command)
    given = take_apart(
        rest, command.usage, texts=command.texts, options=command.options, flags=command.flags
    )
    return command.work(given, command.usage)


def _help() -> str:
    return "\n".join(["Usage:", *(f"  {command.usage}" for command in COMMANDS.values())])


def _text_apart(words: Sequence[str], place: int, command: Command) -> list[str]:
    """A message or pattern in its place is a text whatever it looks like, unless an option.

    The original takes it as it stands, and scripts rely on that: ``send FILE ann --done``.
    """
    if len(words) <= place or "--" in words[: place + 1]:
        return list(words)
    name, equals, _ = words[place].partition("=")
    names = command.options if equals else command.flags
    if not name.startswith("--") or name[2:] in names:
        return list(words)
    return [*words[:place], *words[place + 1 :], "--", words[place]]


# Finding the chat ------------------------------------------------------------------------------


@contextmanager
def _chat(file: str, *, new: bool = False) -> Iterator[tuple[Team, str]]:
    """The team that keeps a chat's file, and the chat's name in it; a link to it is the chat."""
    full = chat_path(file)
    folder, name = os.path.split(full)
    if not name.endswith(".chat") or name == ".chat":
        raise BadArgumentError(f"{file!r} names no chat: give the path of a file NAME.chat")
    if new and not os.path.isdir(folder):
        raise RefusedError(f"Error: no folder {folder}: make it first")
    if not new and not os.path.lexists(full) and not may_have_ledger(folder):
        raise NotFoundError(f"no chat {full}: `nbs-chat create {file}` makes it")
    with team_of(CHAT.folder, folder, meet=new or os.path.lexists(full)) as team:
        front = known_in(team, CHAT.folder, folder) or ""
        try:
            yield team, front + name.removesuffix(".chat")
        except NotFoundError as error:
            raise NotFoundError(f"{file}: {error}") from error


# Commands --------------------------------------------------------------------------------------


def _create(words: Words, _usage: str) -> None:
    file = words.texts[0]
    if os.path.lexists(file):
        raise RefusedError(f"Error: File already exists: {os.path.abspath(file)}")
    with _chat(file, new=True) as (team, name):
        acts.create(team, name)
    emit([f"Created: {os.path.abspath(file)}"])


def _send(words: Words, _usage: str) -> None:
    file, handle, *text = words.texts
    given = words.options.get("file")
    if not text and given is None:
        raise BadArgumentError(f"text: none given\n  Usage: {_usage}")
    said = text_argument(text[0] if text else None, given, "text")
    with _chat(file) as (team, name):
        acts.send(team, name, handle, said, human="human" in words.flags)


def _warn(words: Words, _usage: str) -> None:
    _post(words, acts.WARNING)


def _error(words: Words, _usage: str) -> None:
    _post(words, acts.ERROR)


def _post(words: Words, as_: str) -> None:
    file, text = words.texts
    with _chat(file) as (team, name):
        acts.post(team, name, text, as_=as_)


def _read(words: Words, usage: str) -> None:
    window = _window(words, usage)
    since, unread = _named(words, "since"), _named(words, "unread")
    with _chat(words.texts[0]) as (team, name):
        team.refresh()
        if unread is None:
            found = chat_read.messages(team, name, window=window, since=since)
        else:
            found = chat_read.unread(team, name, unread, window)
            _print(words, found)  # what cannot be shown is not read
            chat_keep.mark_read(team, name, unread, [message.number for message in found])
    if unread is None:
        _print(words, found)


def _search(words: Words, usage: str) -> None:
    from tripod.chat_lines import as_hits, as_json

    file, pattern = words.texts
    handle = _named(words, "handle")
    window = _window(words, usage)
    archives = "include-archives" in words.flags
    with _chat(file) as (team, name):
        team.refresh()
        found = list(
            chat_read.hits(team, name, pattern, handle=handle, window=window, archives=archives)
        )
    # Newest archive first, as documented; within a file the oldest message.
    files = list(dict.fromkeys(hit.archive for hit in found))
    found = [hit for archive in reversed(files) for hit in found if hit.archive == archive]
    if "json" in words.flags:
        emit_json(as_json(hit.message for hit in found))
    else:
        emit(as_hits(found) or ["No matches found."])


def _poll(words: Words, usage: str) -> int | None:
    import time

    from tripod.bus.waiting import Watch

    file, handle = words.texts
    seconds = option_number(words, "timeout", 0, MAX_WAIT, usage)
    until = time.monotonic() + (WAIT if seconds is None else seconds)
    folder = os.path.dirname(chat_path(file))
    with _chat(file) as (team, name), Watch([folder], every=LOOK) as watch:
        found = chat_read.poll(team, name, handle, lambda: until - time.monotonic(), watch.wait)
    _print(words, found)
    return None if found else TIMEOUT


def _participants(words: Words, _usage: str) -> None:
    with _chat(words.texts[0]) as (team, name):
        team.refresh()
        found = chat_read.participants(team, name)
    emit(f"{handle:<24} {count} messages" for handle, count in found)


def _count(words: Words, _usage: str) -> None:
    with _chat(words.texts[0]) as (team, name):
        team.refresh()
        number = chat_read.count(team, name)
    emit([str(number)])


def _export(words: Words, usage: str) -> None:
    from tripod.chat_lines import as_json, as_lines, coloured

    window = _window(words, usage)
    first = option_number(words, "from", 0, MAX_NUMBER, usage) or 0
    stop = option_number(words, "to", 0, MAX_NUMBER, usage)
    handles = _named(words, "handle")
    wanted = None if handles is None else handles.split(",")
    with _chat(words.texts[0]) as (team, name):
        team.refresh()
        found = chat_read.indexed(
            team,
            name,
            window,
            first=first,
            stop=stop,
            handles=wanted,
            text=words.options.get("grep"),
        )
        people = [handle for handle, _ in chat_read.participants(team, name)]
    if "json" in words.flags:
        emit_json(as_json(found))
    elif "plain" in words.flags or os.environ.get("NO_COLOR"):
        emit(as_lines(found))
    else:
        emit_report(coloured(found, people))


def _archive(words: Words, usage: str) -> None:
    keep = option_number(words, "keep", 0, MAX_NUMBER, usage)
    with _chat(words.texts[0]) as (team, name):
        number, path = chat_keep.archive(team, name, *(() if keep is None else (keep,)))
    emit([f"Archived {number} message(s) to {path}" if number else "No messages to archive"])


def _cursor_set(words: Words, usage: str) -> None:
    file, handle, text = words.texts
    index = whole_number(text, 0, MAX_INDEX)
    if index is None:
        raise BadArgumentError(f"{text:.40}: no index from 0 to {MAX_INDEX}\n  Usage: {usage}")
    with _chat(file) as (team, name):
        chat_keep.set_position(team, name, handle, index)


def _delete(words: Words, usage: str) -> None:
    from tripod.chat_lines import deletion_line
    from tripod.when import moment

    text = words.options.get("after")
    if not text:
        raise BadArgumentError(f"--after=T says from when on\n  Usage: {usage}")
    after = moment(text, "--after")
    actor = actor_of(words)
    dry_run = "dry-run" in words.flags
    with _chat(words.texts[0]) as (team, name):
        done = chat_keep.delete(team, name, after, actor=actor, dry_run=dry_run)
    emit([deletion_line(done, text, dry_run=dry_run)])


# Options ---------------------------------------------------------------------------------------


def _named(words: Words, option: str) -> str | None:
    value = words.options.get(option)
    if value == "":
        raise BadArgumentError(f"--{option}: empty; name a handle, or leave it out")
    return value


def _window(words: Words, usage: str) -> chat_read.Window:
    from tripod.when import moment

    numbers = {}
    for name in ("last", "offset"):
        empty = words.options.get(name) == ""  # the original takes it for 0
        numbers[name] = 0 if empty else option_number(words, name, 0, MAX_NUMBER, usage)
    after, before = (
        None if text is None else moment(text, f"--{name}")
        for name, text in ((name, words.options.get(name)) for name in ("after", "before"))
    )
    return chat_read.Window(numbers["last"], after, before, numbers["offset"] or 0)


def _print(words: Words, found: Sequence[chat_read.ChatMessage]) -> None:
    from tripod.chat_lines import as_json, as_lines

    if "json" in words.flags:
        emit_json(as_json(found))
    else:
        emit(as_lines(found))


TEXT_AT = {"send": 2, "warn": 1, "error": 1, "search": 1}
"""At which place a command takes a text that may look like an option."""
_TIMES = ("after", "before")
COMMANDS = {
    "create": Command("nbs-chat create FILE", _create, (1, 1)),
    "send": Command(
        "nbs-chat send FILE HANDLE TEXT | --file=PATH (- is standard input) [--human]",
        _send, (2, 3), ("file",), ("human",),
    ),
    "warn": Command("nbs-chat warn FILE TEXT", _warn, (2, 2)),
    "error": Command("nbs-chat error FILE TEXT", _error, (2, 2)),
    "read": Command(
        "nbs-chat read FILE [--last=N] [--since=HANDLE] [--unread=HANDLE] [--after=T] [--before=T]"
        " [--offset=N] [--json]",
        _read, (1, 1), ("last", "since", "unread", *_TIMES, "offset"), ("json",),
    ),
    "search": Command(
        "nbs-chat search FILE PATTERN [--handle=HANDLE] [--after=T] [--before=T]"
        " [--include-archives] [--json]",
        _search, (2, 2), ("handle", *_TIMES), ("include-archives", "json"),
    ),
    "poll": Command(
        "nbs-chat poll FILE HANDLE [--timeout=N] [--json]", _poll, (2, 2), ("timeout",), ("json",)
    ),
    "participants": Command("nbs-chat participants FILE", _participants, (1, 1)),
    "count": Command("nbs-chat count FILE", _count, (1, 1)),
    "export": Command(
        "nbs-chat export FILE [--last=N] [--from=N] [--to=N] [--handle=A,B] [--after=T]"
        " [--before=T] [--grep=TEXT] [--plain] [--json]",
        _export, (1, 1), ("last", "from", "to", "handle", *_TIMES, "grep"), ("plain", "json"),
    ),
    "archive": Command("nbs-chat archive FILE [--keep=N]", _archive, (1, 1), ("keep",)),
    "cursor-set": Command("nbs-chat cursor-set FILE HANDLE N", _cursor_set, (3, 3)),
    "delete": Command(
        "nbs-chat delete FILE --after=T [--dry-run] [--as=HANDLE]",
        _delete, (1, 1), ("after", "as"), ("dry-run",),
    ),
    "help": Command("nbs-chat help", lambda *_: None, (0, 0)),
}  # fmt: skip
"""Every command, in the order of the documentation."""
