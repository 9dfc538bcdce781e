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
from tripod.verify.recorded.project import Project
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import MAIN, Call, Channel, Gap, Item, Session, SessionRecord
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


def add_spool(log: HookLog, judged: SessionExposures, program: str, agent: str = MAIN) -> None:
    """Add what hooks saw and saved to what a transcript of the session exposed."""
    _add_items(log, judged, agent)
    for channel, folder in log.snapshots.items():
        for item in Project(folder, channel == "home", has_history=False).items(program):
            judged.add(item)
    for channel in log.closed:
        judged.close(channel)


def _add_items(log: HookLog, judged: SessionExposures, agent: str) -> None:
    """Add to what a transcript exposed what only hooks saw of the same agent.

    It stands on no line of the transcript: the line is 0, as of what a project adds.
    """
    added = set[str]()
    for item in log.items:
        if isinstance(item, Session):
            continue
        if isinstance(item, Gap):
            if agent == MAIN:
                judged.add(item._replace(line=0))
            continue
        if item.agent != agent:
            continue
        if isinstance(item, Call):
            if not judged.has_call(item.id):
                added.add(item.id)
                what = f"hooks saw the call {item.tool[:40]} {item.id[:60]} (event {item.line})"
                judged.add(Gap("witness", 0, f"{what}, the transcript not", item.channel))
                judged.add(item._replace(line=0))
        elif item.call in added or (
            item.channel == "instructions" and not _names(judged, item.named)
        ):
            judged.add(item._replace(line=0))
    judged.end()
    _denied_alone(log.events, judged, agent)


def _denied_alone(events: HookEvents, judged: SessionExposures, agent: str) -> None:
    for name in sorted({name for name, _ in judged.denied}):
        if events.calls and agent == MAIN and name not in events.calls:
            what = f"the call {name[:60]}, which was denied: no hook saw it"
            judged.add(Gap("witness", 0, what))


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
