"""The commands of the chat, for ``tripod chat`` and ``nbs-chat`` (spec: nbs-compat C1 to C3).

Where ``nbs-chat`` differs from its original and why: ``docs/reference/nbs-chat.md``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tripod import chat
from tripod.cli.commands import (
    TEXT,
    CommandCall,
    HandleParam,
    NbsProgram,
    NumberParam,
    command_group,
    handle_said,
    moment_param,
    text_param,
    whole_number_param,
)
from tripod.errors import BadArgumentError, RefusedError
from tripod.output import each_mark, emit_report, entry_marks, format_utc, hanging, one_line, safe
from tripod.projections.chat.format import valid_chat_handle
from tripod.projections.chat.tables import ref_to_chat_line, refs_to_chat_lines, span_of
from tripod.team.team import Team

TIMEOUT = 3  # the exit code where nothing came in time
MAX_INDEX = 2**31 - 2
MAX_NUMBER = 2**31 - 1
MAX_WAIT = 10_000_000  # seconds
LOOK = 1.0  # seconds, where nothing tells that something happened
COLOURS = ("36", "33", "35", "32", "34", "31")
ALERTS = {"[SIDECAR-ERROR]": "38;5;167", "[MEDIC-WARNING]": "38;5;173"}
"""The colours that the original's export has for what failed and for what warns."""


def _create(call: CommandCall) -> None:
    if call.nbs and os.path.lexists(call.place):
        raise RefusedError(f"Error: File already exists: {os.path.abspath(call.place)}")
    with call.team() as team:
        path = chat.create(team, call.channel, actor=call.actor())
    path = os.path.abspath(call.place) if call.nbs else path
    call.answer({"path": path}, [f"Created: {path}"])


def _send(call: CommandCall) -> None:
    handle, text = (call.handle, call.text) if call.nbs else _said(call)
    if text is None and call.file is None:
        how = " (as argument, or by --file); with --as HANDLE a single argument is the text"
        if not call.nbs and call.handle is not None and call.as_ is None:
            how = f" behind the handle {one_line(call.handle)}{how}"
        how = f"\n  Usage: {call.usage}" if call.nbs else how
        raise BadArgumentError(f"text: none given{how}")
    text = text_param(text, call.file, "text")
    with call.team() as team:
        sent = chat.send(team, call.channel, handle, text, human=call.human)
        if call.nbs:  # as the original, which prints nothing
            return
        ref = ref_to_chat_line(team.store.db, call.channel.removesuffix(".chat"), sent.number)
    value = sent._asdict() | {"ref": ref}
    del value["text"]  # who sent it has it
    call.answer(value, [one_line(ref or f"#{sent.number}")])


def _said(call: CommandCall) -> tuple[str, str | None]:
    """Who speaks, and the text.

    A single argument is the text where --as says who speaks, or where it can be no handle: one
    word is refused, since the text behind a handle may have been forgotten.
    """
    handle, text = call.handle, call.text
    alone = handle is not None and text is None and call.file is None
    if alone and (call.as_ is not None or valid_chat_handle(handle) is not None):
        handle, text = None, handle
    return _whose(call, handle), text


def _whose(call: CommandCall, handle: str | None) -> str:
    """The argument HANDLE; the handle that acts where it is left out."""
    if handle is None:
        return call.actor(needed=True)
    given = call.get("as")
    if given not in (None, handle):
        raise BadArgumentError(f"HANDLE {handle} and --as {given}: name one of them")
    return handle_said(handle, "HANDLE")


def _warn(call: CommandCall) -> None:
    handle = chat.WARNING if call.verb.name == "warn" else chat.ERROR
    with call.team() as team:
        chat.post(team, call.channel, call.text, as_=handle)


def _window(call: CommandCall) -> chat.Window:
    last, offset = call.get("last"), call.get("offset") or 0
    after, before = (moment_param(call.get(name), f"--{name}") for name in ("after", "before"))
    return chat.Window(last, after, before, offset)


def _read(call: CommandCall) -> None:
    window, since, unread = _window(call), call.since, call.unread
    with call.fresh() as team:
        if unread is None:
            found = chat.messages(team, call.channel, window=window, since=since)
        else:
            found = chat.unread(team, call.channel, unread, window)
        answers = _answers(call, team, found)
        if unread is not None:
            call.answers(*answers)  # what cannot be shown is not read
            chat.mark_read(team, call.channel, unread, [message.number for message in found])
    if unread is None:
        call.answers(*answers)


def _answers(
    call: CommandCall, team: Team, found: Sequence[chat.ChatMessage]
) -> tuple[Iterator[dict[str, Any]], Iterator[str]]:
    """Messages of the call's channel, with references, numbers and marks: as objects, as lines."""
    if call.nbs:  # as the original prints them
        return _objects(found), map(_line, found)
    db, marks = team.store.db, entry_marks(team.store, [message.seq for message in found])
    span = span_of(db, call.channel.removesuffix(".chat"))
    refs = {} if span is None else refs_to_chat_lines(db, span.channel, (m.number for m in found))
    objects = (
        value | {"ref": refs.get(value["number"])} | {"mark": marks[value["seq"]]}
        for value in _objects(found)
    )
    fronts = ((refs.get(m.number, ""), f"#{m.number}", marks[m.seq]) for m in found)
    lines = (
        " ".join([*map(one_line, filter(None, front)), _line(message, "[?] ")])
        for front, message in zip(fronts, found, strict=True)
    )
    return objects, lines


def _search(call: CommandCall) -> None:
    handle, window, archives = call.handle, _window(call), call.include_archives
    with call.fresh() as team:
        name, pattern = call.channel, call.pattern
        hits = list(chat.hits(team, name, pattern, handle=handle, window=window, archives=archives))
        objects, lines = _answers(call, team, [hit.message for hit in hits])
    if call.nbs:
        # Newest archive first, as documented; within a file the oldest message, by its place there.
        files = list(dict.fromkeys(hit.archive for hit in hits))
        hits.sort(key=lambda hit: -files.index(hit.archive))
        fronts = ("" if hit.archive is None else f"[{hit.archive}.chat] " for hit in hits)
        rows = zip(fronts, hits, strict=True)
        lines = (f"{front}[{hit.place}] {_line(hit.message)}" for front, hit in rows)
        objects = _objects(hit.message for hit in hits)
    call.answers(objects, lines if hits else ["No matches found."])


def _poll(call: CommandCall) -> int:
    from tripod.bus.reader import QueueWatch
    from tripod.chat.reader import poll
    from tripod.cli.nbs_team import nbs_chat_path

    until, handle = time.monotonic() + call.timeout, call.handle
    if not call.nbs:
        handle = _whose(call, handle)
    with call.team() as team:
        folder = os.path.dirname(nbs_chat_path(call.place)) if call.nbs else team.disk.full("chat")
        with QueueWatch([folder], every=LOOK) as watch:
            left = lambda: until - time.monotonic()  # noqa: E731 - a name for an argument
            found = poll(team, call.channel, handle, left, watch.wait)
        answers = _answers(call, team, found)
    call.answers(*answers)
    return 0 if found else TIMEOUT


def _mentions(call: CommandCall) -> None:
    with call.fresh() as team:
        found = list(each_mark(team.store, chat.addressed(team, _whose(call, call.handle))))
    lines = (
        f"[{event.priority}] {event.event} {mark}".rstrip() + f"\n    {hanging(event.payload)}"
        for event, mark in found
    )
    call.answers((event._asdict() | {"mark": mark} for event, mark in found), lines)


def _participants(call: CommandCall) -> None:
    with call.fresh() as team:
        found = chat.participants(team, call.channel)
    lines = (f"{handle:<24} {count} messages" for handle, count in found)
    call.answers(({"count": count, "handle": handle} for handle, count in found), lines)


def _count(call: CommandCall) -> None:
    with call.fresh() as team:
        number = chat.count(team, call.channel)
    call.answer({"count": number}, [str(number)])


def _export(call: CommandCall) -> None:
    window, first, stop, handles = _window(call), call.get("from") or 0, call.to, call.handle
    stop = MAX_NUMBER if stop is None else stop
    people = None if handles is None else handles.split(",")
    with call.fresh() as team:
        name = call.channel
        if window.last is not None:  # these are taken first, of all messages of the file
            first = max(first, chat.count(team, name) - window.last)
        found = [
            hit.message
            for hit in chat.hits(team, name, call.grep or "", window=window._replace(last=None))
            if first <= hit.place < stop and (people is None or hit.message.handle in people)
        ]
        people = [handle for handle, _ in chat.participants(team, name)]
    if call.json or call.plain or os.environ.get("NO_COLOR"):
        call.answers(_objects(found), map(_line, found))
        return
    place, parts = {handle: number for number, handle in enumerate(people)}, []
    for message in found:  # each handle has its colour
        usual = COLOURS[place.get(message.handle, 0) % len(COLOURS)]
        colour = ALERTS.get(message.handle, usual)
        when = f"\x1b[2m[{format_utc(message.time)}]\x1b[0m " if message.time else ""
        handle = f"\x1b[1;{colour}m{safe(one_line(message.handle))}\x1b[0m"
        parts.append(f"{when}{handle}: {safe(hanging(message.text))}\n")
    emit_report("".join(parts))


def _archive(call: CommandCall) -> None:
    stay = call.keep
    with call.team() as team:
        number, path = chat.archive(team, call.channel, stay)
    line = f"Archived {number} message(s) to {path}" if number else "No messages to archive"
    call.answer({"archived": number} | ({"path": path} if number else {}), [line])


def _cursor_set(call: CommandCall) -> None:
    index = whole_number_param(call.n, 0, MAX_INDEX) if call.nbs else call.index
    if index is None:
        what = f"{call.n:.40}: no index from 0 to {MAX_INDEX}"
        raise BadArgumentError(f"{what}\n  Usage: {call.usage}")
    with call.team() as team:
        chat.set_position(team, call.channel, call.handle, index)
        left = len(chat.unread(team, call.channel, call.handle)) if call.json else 0
    call.answer({"handle": call.handle, "unread": left}, [])


def _delete(call: CommandCall) -> None:
    if call.nbs and not call.after:
        raise BadArgumentError(f"--after=T says from when on\n  Usage: {call.usage}")
    after, actor = moment_param(call.after, "--after") or 0, call.actor()
    with call.team() as team:
        done = chat.delete(team, call.channel, after, actor=actor, dry_run=call.dry_run)
    if not done.deleted:
        line = f"No messages to delete (0 messages since {call.after}, {done.kept} kept)"
    elif call.dry_run:
        line = f"Would delete {done.deleted} message(s) (keeping {done.kept})"
    else:
        line = f"Deleted {done.deleted} message(s) (kept {done.kept})"
    call.answer(done._asdict(), [line])


def _line(message: chat.ChatMessage, no_time: str = "") -> str:
    """``[time] handle: text``, indented after its first line: it cannot pass for another one.

    Behind a mark something stands for a missing time, or a handle could look like a mark.
    """
    when = f"[{format_utc(message.time)}] " if message.time else no_time
    return f"{when}{one_line(message.handle)}: {hanging(message.text)}"


def _objects(messages: Iterable[chat.ChatMessage]) -> Iterator[dict[str, Any]]:
    """Objects; the handles that the text addresses are in a field of their own."""
    from tripod.projections.chat.format import chat_mentions

    for message in messages:
        yield message._asdict() | {"mentions": dict(chat_mentions(message.text))}


_CHAT = """\
chat
    Exit codes: 0 ok, 1 general error, 2 no such chat or team directory, 3 nothing came in time,
    4 bad arguments.

create CHANNEL
    Begin a channel; its file's path is printed.
    --as HANDLE  Who begins it.
    nbs: FILE

send CHANNEL [HANDLE] [TEXT]
    Say TEXT in CHANNEL as HANDLE; a reference to the message is printed.

    HANDLE may be left out where it is known (--as, TRIPOD_AS and so on), if TEXT has more than
    one word or --as is given. Put -- before a TEXT that starts with a dash.

    --file FILE  Read the text from FILE, or - for stdin.
    --human      A person says it: publish human-input as well.
    --as HANDLE  Who says it.
    nbs: FILE HANDLE TEXT | --file=PATH (- is standard input) [--human]

warn
    nbs: FILE TEXT

error
    nbs: FILE TEXT

read CHANNEL
    Print a channel's messages, oldest first.

    In front of each is a reference for `scribe log --ref`, and the message's number in its
    channel (#0 is the first); both name it. `observed` marks a message that another program
    wrote: its handle is a claim. `signed` marks one that has its actor's signature. [?] stands
    for a time that is not known.

    A TIME is 30s, 5m, 2h or 1d ago, an epoch, 2026-02-12T14:00:00 or a day. What is unread is shown
    from archives as well, and only what was shown counts as read. --unread overrides --since;
    of the messages that are left, TIME, --offset and --last choose in this order.

    --last N         Only the newest N messages.
    --since HANDLE   Only those after HANDLE's newest message.
    --unread HANDLE  Only what HANDLE has not read; then it has.
    --after TIME     Only those of TIME or later.
    --before TIME    Only those of TIME or earlier.
    --offset N       Without the newest N.
    nbs: FILE [--last=N] [--since=HANDLE] [--unread=HANDLE] [--after=T] [--before=T]
        [--offset=N] [--json]
    looks: always

search CHANNEL PATTERN
    Print messages that hold PATTERN as text, as `read` does; upper and lower case are alike.
    --handle HANDLE     Only messages of HANDLE.
    --include-archives  Also what was split off into archives.
    nbs: FILE PATTERN [--handle=HANDLE] [--after=T] [--before=T] [--include-archives] [--json]
    looks: always

poll CHANNEL [HANDLE]
    Wait until others than HANDLE (you, where it is left out) send messages, and print all.

    Exit code 3 if nothing came in time. Earlier messages do not count: see `read --unread`.

    --timeout N  How many seconds to wait. [default: 10]
    nbs: FILE HANDLE [--timeout=N] [--json]

mentions [HANDLE]
    Print pending events that address HANDLE (you, where it is left out), most urgent first.

    `tripod bus ack` ends them.
    looks: always

participants CHANNEL
    Print who spoke, and how many messages each sent.
    nbs: FILE
    looks: always

count CHANNEL
    Print how many messages a channel's file shows.
    nbs: FILE
    looks: always

export
    --last N      Only the newest N messages.
    --from N      The first message.
    --to N        The message before which it ends.
    --handle A,B  Only messages of these.
    nbs: FILE [--last=N] [--from=N] [--to=N] [--handle=A,B] [--after=T] [--before=T]
        [--grep=TEXT] [--plain] [--json]
    looks: always

archive CHANNEL
    Split a channel's older messages off into an archive now.
    --keep N  How many of the newest lines stay. [default: 1000]
    nbs: FILE [--keep=N]

cursor-set CHANNEL HANDLE INDEX
    Record that HANDLE has read the file up to its message INDEX, counted from 0, and no more.
    nbs: FILE HANDLE N

delete CHANNEL
    Remove a channel's messages from TIME on from its file.

    The ledger keeps them, and who asked for their removal (`tripod redact` erases a text).

    --after TIME  From when on. [required]
    --dry-run     Only say what would be done.
    --as HANDLE   Who asks for it.
    nbs: FILE --after=T [--dry-run] [--as=HANDLE]
    looks: with --dry-run
"""
_KINDS = {
    "[HANDLE]": TEXT,
    "INDEX": NumberParam(0, MAX_INDEX),
    "N": NumberParam(0, MAX_NUMBER),
    "--last": NumberParam(0, MAX_NUMBER, empty=0),
    "--offset": NumberParam(0, MAX_NUMBER, empty=0),
    "--timeout": NumberParam(0, MAX_WAIT),
    "--handle": HandleParam(loose=True),
    "--since": HandleParam(loose=True),
    "--unread": HandleParam(loose=True),
}
_WORKS = [
    _create, _send, _warn, _warn, _read, _search, _poll, _mentions, _participants, _count,
    _export, _archive, _cursor_set, _delete,
]  # fmt: skip
COMMANDS = {"chat": command_group(_CHAT, _WORKS, _KINDS)}

_VERBS = COMMANDS["chat"].verbs
_USAGES = [f"  nbs-chat {verb.name} {verb.nbs}" for verb in _VERBS if verb.nbs is not None]
PROGRAMS = (
    NbsProgram(
        "nbs-chat",
        _VERBS,
        "\n".join(["Usage:", *_USAGES, "  nbs-chat help"]),
        front="chat",
        lost="help",
        help_to_stdout=True,
        text_at={"send": 2, "warn": 1, "error": 1, "search": 1},
    ),
)
