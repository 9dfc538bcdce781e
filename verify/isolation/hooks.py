"""Hooks of an agent's program: what they saw of a session, one event a record. Pure.

The events have the shape that Claude Code gives to its hooks; other programs give the same. They
do not name the program. A field that is not known makes no gap here, as what the model was given is
judged by the transcript; an event that is not known does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tripod.verify.sessions.claude_code import TOOLS
from tripod.verify.sessions.items import (
    MAIN,
    Call,
    Cause,
    Channel,
    Gap,
    Given,
    Item,
    Reader,
    Session,
    SessionRecord,
    fields,
    text_at,
)

TRANSCRIPT = "transcript.jsonl"
SNAPSHOT = "snapshot"
"""What hooks leave beside the files of events: the transcript, and a folder with the project."""

HOME = "~"
"""The folder in a snapshot with files of the user's home folder."""

EVENT_FILE = re.compile(r"([0-9]{1,18})-([A-Za-z]{1,64})\.json")
"""The name of an event's file: its number, and what event it is."""

_EVENTS = fields(
    """PreToolUse PostToolUse PostToolUseFailure PostToolBatch Notification UserPromptSubmit
    UserPromptExpansion SessionStart SessionEnd Stop StopFailure SubagentStart SubagentStop
    PreCompact PostCompact PreModelSwitch PostModelSwitch PermissionRequest PermissionDenied Setup
    TeammateIdle TaskCreated TaskCompleted Elicitation ElicitationResult ConfigChange WorktreeCreate
    WorktreeRemove InstructionsLoaded CwdChanged FileChanged DirectoryAdded MessageDisplay"""
)
_OF_A_CALL = fields("PreToolUse PostToolUse PostToolUseFailure PermissionRequest PermissionDenied")
DENIED = "PermissionDenied"
"""The event of a call that was refused."""


def is_event_file(name: str) -> bool:
    """Whether a name is that of an event's file.

    >>> is_event_file("0007-PreToolUse.json"), is_event_file("notes.json")
    (True, False)
    """
    return EVENT_FILE.fullmatch(name) is not None


@dataclass
class HeardCall:
    """What events asked alike of one call: their names, and what came of it.

    An answer of which no event says that the model was given it is not ``sure``; it does not stay
    where there is one that is.
    """

    call: Call
    events: set[str] = field(default_factory=set)
    answers: list[Given] = field(default_factory=list)

    def is_of(self, tool: str, value: object) -> bool:
        """Whether it asks the same; what is nested too deep to compare counts as another."""
        try:
            return self.call.tool == tool and bool(self.call.input == value)
        except RecursionError:
            return False


@dataclass
class HookCall:
    """A call that hooks saw, as its first event has it, and how often each event named it.

    ``heard`` has each question of it once: a hook may change what was asked, and so may others.
    """

    call: Call
    events: Counter[str] = field(default_factory=Counter)
    heard: list[HeardCall] = field(default_factory=list)

    @property
    def times(self) -> int:
        """How many calls with this id there were."""
        return max(self.events.values())

    @property
    def is_denial_alone(self) -> bool:
        """Whether nothing but a denial speaks of it."""
        return self.events.keys() <= {DENIED, "PermissionRequest"}


class HookEvents(Reader):
    """Reads the events of one session in the order of their numbers."""

    program = "hook"
    tools = TOOLS

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, HookCall] = {}
        self.holes = self.starts = 0
        self.is_over = self.is_from_start = False
        self._last = 0
        self._inner: Counter[str] = Counter()

    def read(self, record: SessionRecord) -> Iterator[Item]:
        """What one event says; ``line`` is its number."""
        value, kind = record.value, text_at(record.value, "hook_event_name")
        self.records[kind] += 1
        self._last = record.line
        self.cwd = text_at(value, "cwd") or self.cwd
        name = text_at(value, "session_id")
        if name not in self.sessions:
            if self.sessions or not name:
                yield self.lack("order", record.line, f"an event of the session {name[:40]!r}")
            self.sessions[name] = Session(name, self.program, "", record.line, cwd=self.cwd)
            yield self.sessions[name]
        if kind not in _EVENTS:
            self.holes += 1
            yield from self.strange_type(record, kind, value)
            return
        agent = text_at(value, "agent_id") or MAIN
        if agent != MAIN and agent not in self._inner:
            self._inner[agent] = 0
            what = f"the session of subagent {agent[:40]}"
            yield Gap("missing", record.line, what, "subagent", child=agent)
        self.is_over = kind == "SessionEnd"
        if kind == "SessionStart":
            self.starts += 1
            if self.starts == 1:
                self.is_from_start = value.get("source") == "startup"
        elif kind == "SubagentStart":
            self._inner[agent] += 1
        elif kind == "SubagentStop":
            self._inner[agent] -= 1
        elif kind == "InstructionsLoaded":
            named = text_at(value, "file_path")
            yield self.given(record, "instructions", "", named=named or None, agent=agent)
        elif kind == "UserPromptSubmit":
            yield self.given(record, "paste", value.get("prompt"), agent=agent)
        elif kind in _OF_A_CALL:
            yield from self._seen(record, kind, value, agent)
        elif kind == "PostToolBatch":
            yield from self._batch(record, value.get("tool_calls"), agent)

    def _batch(self, record: SessionRecord, calls: object, agent: str) -> Iterator[Item]:
        """Calls that were answered together, each with what the model was given."""
        if not isinstance(calls, list):
            yield self.lack("unknown", record.line, "an event PostToolBatch without tool_calls")
            return
        for one in calls:
            yield from self._seen(record, "PostToolBatch", one, agent)

    def _seen(self, record: SessionRecord, kind: str, value: object, agent: str) -> Iterator[Item]:
        name, tool = text_at(value, "tool_use_id"), text_at(value, "tool_name")
        if not name or not isinstance(value, dict):
            if kind not in (DENIED, "PermissionRequest"):
                yield self.lack("unknown", record.line, f"an event {kind} without a tool_use_id")
            return
        asked = value.get("tool_input")
        if not tool or not isinstance(asked, dict):
            what = f"an event {kind} of the call {name[:60]} without a tool_name, or a tool_input"
            yield self.lack("unknown", record.line, what)
        one = self.calls.get(name)
        heard = [] if one is None else [each for each in one.heard if each.is_of(tool, asked)]
        if not heard:
            call = self.called(record, name, tool, asked, agent=agent)
            heard = [HeardCall(call)]
            if one is None:
                one = self.calls[name] = HookCall(call)
                yield call
            one.heard += heard
        assert one is not None  # else nothing was heard of it
        one.events[kind] += 1
        heard[0].events.add(kind)
        if kind in ("PostToolUse", "PostToolBatch"):
            sure = kind == "PostToolBatch"
            given = self.answered(record, name, value.get("tool_response"), agent=agent, sure=sure)
            if sure:
                heard[0].answers = [each for each in heard[0].answers if each.sure]
                yield given
            heard[0].answers.append(given)

    def lack(self, cause: Cause, line: int, what: str) -> Gap:
        """Note that something of the events cannot be seen; give the gap that says it."""
        self.holes += 1
        return Gap(cause, line, what)

    def end(self) -> Iterator[Item]:
        """A session, or a subagent, of which hooks saw a start and no end, or the reverse."""
        if not self.starts:
            yield self.lack("missing", 1, "hooks saw no start of the session")
        if not self.is_over:
            yield self.lack("missing", self._last, "hooks saw no end of the session")
        for agent, count in self._inner.items():
            if count:
                what = f"hooks saw no {'end' if count > 0 else 'start'} of subagent {agent[:40]}"
                yield self.lack("missing", self._last, what)


@dataclass
class HookLog:
    """What hooks left of one session.

    ``snapshots`` are folders with instruction files as they were: of the project, and of the home
    folder. ``ended_us`` is when the file of the last event was written, in µs since 1970.
    """

    events: HookEvents
    items: list[Item] = field(default_factory=list)
    snapshots: dict[Channel, str] = field(default_factory=dict)
    ended_us: int = 0

    @property
    def closed(self) -> frozenset[Channel]:
        """Channels that the snapshots show whole: a session that goes on reads them again."""
        begun = self.events.is_from_start and self.events.starts == 1
        return frozenset(self.snapshots) if begun else frozenset()
