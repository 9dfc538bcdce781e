"""Reads what hooks left of a session: a folder with a file for each event, and what was saved.

Format: ``docs/formats/hook-spool.md``. An agent may write there too, so only plain files are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from tripod.ledger.files import open_plain_file
from tripod.verify.isolation.hooks import (
    EVENT_FILE,
    HOME,
    SNAPSHOT,
    TRANSCRIPT,
    HookEvents,
    HookLog,
    is_event_file,
)
from tripod.verify.isolation.sessions import CallsSeen
from tripod.verify.isolation.witnesses import compare_told, told_otherwise
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import MAIN, Call, Channel, Gap, Given, Item, SessionRecord
from tripod.verify.sessions.jsonl import MAX_LINE, session_records

_SUBAGENTS = "transcript"  # beside the transcript, as the program lays them: subagents/*.jsonl


def is_spool(folder: str) -> bool:
    """Whether a folder has files of events."""
    try:
        return any(is_event_file(name) for name in os.listdir(folder))
    except OSError:
        return False


def spool_of(path: str) -> tuple[str, str] | None:
    """The folder of hooks that saved a transcript, and the agent whose it is; None: none did."""
    folder, name = os.path.split(path)
    if name == TRANSCRIPT and is_spool(folder or "."):
        return folder or ".", MAIN
    agent = name.removeprefix("agent-").removesuffix(".jsonl")
    above, inner = os.path.split(os.path.dirname(folder))
    if (os.path.basename(folder), inner) == ("subagents", _SUBAGENTS) and is_spool(above or "."):
        return above or ".", agent
    return None


def read_spool(folder: str) -> HookLog:
    """Read the events in a folder, in the order of their numbers; what lacks is a gap."""
    log = HookLog(HookEvents())
    log.items = list(_items(folder, log))
    snapshot = os.path.join(folder, SNAPSHOT)
    channels: tuple[Channel, ...] = ("instructions", "home")
    for channel, place in zip(channels, (snapshot, os.path.join(snapshot, HOME)), strict=True):
        if os.path.islink(place) or not os.path.isdir(place):
            break
        log.snapshots[channel] = place
    return log


def add_spool(
    log: HookLog, judged: SessionExposures, seen: CallsSeen, program: str, agent: str = MAIN
) -> None:
    """Add what hooks saw and saved to what a transcript of the session exposed.

    ``seen`` has the calls of the transcript. What is added stands on none of its lines: the line
    is 0, as of what a project adds.
    """
    for item in log.items:
        if isinstance(item, Gap) and agent == MAIN:
            judged.add(item._replace(line=0))
        elif isinstance(item, Given) and item.call is None and item.agent == agent:
            if item.channel != "instructions":
                _add_text(judged, item)
            elif not _names(judged, item.named):
                judged.add(item._replace(line=0))
    _add_calls(log.events, judged, seen, program, agent)
    for channel, folder in log.snapshots.items():
        from tripod.verify.recorded.project import Project  # few sessions have a snapshot

        for item in Project(folder, channel == "home", has_history=False).items(program):
            judged.add(item)
    for channel in log.closed:
        judged.close(channel)


def _add_calls(
    events: HookEvents, judged: SessionExposures, seen: CallsSeen, program: str, agent: str
) -> None:
    """Add what hooks saw of the calls of an agent, where the transcript lacks it or differs."""
    added: list[tuple[Call, list[Given]]] = []
    for heard, one in told_otherwise(events, seen, program):
        judged.add(Gap("witness", 0, one.what))
        # What was given together may be a refusal: then only the transcript says so.
        done = [each for each in heard.answers if not each.sure or each.call in seen.shown]
        added.append((heard.call, done[:1]))
    for name, call in events.calls.items():
        if name not in seen.calls and call.call.agent == agent:
            what = f"hooks saw the call {call.call.tool[:40]} {name[:60]} (event {call.call.line})"
            judged.add(Gap("witness", 0, f"{what}, the transcript not", call.call.channel))
            added += ((heard.call, heard.answers[:1]) for heard in call.heard)
    for one in compare_told(events, seen, program=program):
        judged.add(Gap("witness", 0, one.what))
    # Those with an answer first: else it would be taken for that of another one of the same id.
    for asked, answers in sorted(added, key=lambda pair: not pair[1]):
        judged.add(asked._replace(line=0))
        for each in answers:
            judged.add(each._replace(line=0))
    judged.end()
    for name, call in events.calls.items():
        if name in seen.calls or call.call.agent == agent:
            for each in (each for heard in call.heard for each in heard.answers):
                _add_text(judged, each)


def _add_text(judged: SessionExposures, given: Given) -> None:
    """Search a text that hooks saw; it is not added where the transcript shows the same of it."""
    for path in judged.protected.found_in(given.text):
        if not any(
            each.call == given.call
            and (each.sure and each.shown) >= given.sure
            and (each.named == path or f"/{each.path}".endswith(f"/{path}"))
            for each in judged.found
        ):
            judged.add(given._replace(line=0, call=None))
            return


def _names(judged: SessionExposures, named: str | None) -> bool:
    return any(each.sure and named in (each.path, each.named) for each in judged.found)


def _items(folder: str, log: HookLog) -> Iterator[Item]:
    events = log.events
    if os.path.islink(folder):
        yield events.lack("damaged", 0, f"{folder} is a symbolic link, and is not followed")
        return
    numbered: list[tuple[int, str]] = []
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield events.lack("damaged", 0, f"{folder}: {error.strerror}")
        return
    for name in names:
        match = EVENT_FILE.fullmatch(name)
        if match is not None:
            numbered.append((int(match[1]), name))
        elif name not in (TRANSCRIPT, SNAPSHOT, _SUBAGENTS) and not name.startswith("."):
            yield events.lack("unknown", 0, f"{name[:80]} is no event of a hook")
    before = 0
    for number, name in sorted(numbered):
        if number != before + 1:
            what = f"event {number} comes after {before}" if before else f"the first is {number}"
            yield events.lack("order", number, f"the numbers of a hook's events: {what}")
        before = number
        yield from _event(folder, number, name, log)
    yield from events.end()


def _event(folder: str, number: int, name: str, log: HookLog) -> Iterator[Item]:
    """One event, or a gap where the file holds another thing."""
    try:
        with open(open_plain_file(os.path.join(folder, name)), "rb") as file:
            data = file.read(MAX_LINE + 1)
            log.ended_us = os.fstat(file.fileno()).st_mtime_ns // 1000
    except OSError as error:
        yield log.events.lack("damaged", number, f"{name}: {error.strerror}")
        return
    line = b" ".join(data.splitlines()) or b"null"
    for one in session_records([line]):
        if not isinstance(one, SessionRecord):
            yield log.events.lack("damaged", number, f"{name}: {one.gap.what}")
        elif one.value.get("hook_event_name") != name.partition("-")[2].removesuffix(".json"):
            yield log.events.lack("damaged", number, f"{name} holds another event")
            yield from log.events.read(one._replace(line=number))
        else:
            yield from log.events.read(one._replace(line=number))
