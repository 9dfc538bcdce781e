"""The witnesses of a session: its transcript, what hooks saw, and what runs of ours wrote. Pure.

A run that writes a line of JSON for each message (``--output-format stream-json``) names each call
of its session, and at the end those that were denied. The transcripts that were kept when it ended
name them too.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unicodedata import normalize

import orjson

from tripod.verify.check import Evidence, shorten
from tripod.verify.isolation.hooks import DENIED, HookCall, HookEvents
from tripod.verify.sessions.exposure import ProtectedText, SessionExposures
from tripod.verify.sessions.items import (
    MAIN,
    Call,
    Gap,
    Given,
    Item,
    Session,
    text_at,
    version_of,
)
from tripod.verify.sessions.shell import resolved

_OF_THE_MODEL = "srvtoolu_"  # calls that the model's own server answers: no hook sees them
_PROVED = (2, 1, 330)
"""The first version of Claude Code of which recordings show that its hooks see every call."""


class CallsSeen(SessionExposures):
    """The calls of the files of one session, and how each ended; it judges nothing."""

    def __init__(self) -> None:
        super().__init__(None, ProtectedText())
        self.calls: dict[str, Call] = {}
        self.times: Counter[str] = Counter()
        self.answered: set[str] = set()
        self.refused: set[str] = set()
        self.shown: set[str] = set()
        self.witness: list[Gap] = []

    @property
    def main_calls(self) -> dict[str, Call]:
        """The calls of the session's own thread, by id."""
        return {name: call for name, call in self.calls.items() if call.agent == MAIN}

    def add(self, item: Item) -> None:
        """Note a call, or how it was answered."""
        if isinstance(item, Call) and not item.ran:
            self.agents.add(item.agent)
            self.calls.setdefault(item.id, item)
            self.times[item.id] += 1
        elif isinstance(item, Given):
            self.agents.add(item.agent)
            if item.call is not None:
                self.answered.add(item.call)
                (self.refused if item.denied else self.shown).add(item.call)
                if item.failed:
                    self.shown.discard(item.call)
        elif isinstance(item, Gap) and item.cause == "witness":
            self.witness.append(item)
        elif isinstance(item, Session):
            self.agents.add(item.id)

    def end(self) -> None:
        """Nothing is left to say."""

    def join(self, other: CallsSeen) -> None:
        """Take in the calls of another file of the session; a call may stand in two of them."""
        self.agents |= other.agents
        self.answered |= other.answered
        self.refused |= other.refused
        self.shown |= other.shown
        self.witness += other.witness
        self.calls = self.calls | {k: v for k, v in other.calls.items() if k not in self.calls}
        for name, count in other.times.items():
            self.times[name] = max(self.times[name], count)


class Disagreement(NamedTuple):
    """A call of which two witnesses differ; not ``is_sure``, where there may be another reason."""

    what: str
    is_sure: bool


def compare_hooks(
    hooks: HookEvents, seen: CallsSeen, *, program: str, version: str, is_whole: bool
) -> Iterator[Disagreement]:
    """In which calls hooks and transcript differ.

    ``is_whole``: the transcript was taken after the last event, so that a call cannot lack merely
    because it came later.
    """
    # In Codex a script's own calls, and a subagent's, may have ids that this file does not have.
    inner = {call.channel for call in seen.calls.values()} & {"script", "subagent"}
    known = program == "claude-code" or (program == "codex" and not inner)
    last: dict[str, int] = {}
    for number, (name, one) in enumerate(hooks.calls.items()):
        if name in seen.calls:
            last[one.call.agent] = number
    for number, (name, one) in enumerate(hooks.calls.items()):
        call = f"the call {one.call.tool[:40]} {name[:60]}"
        if name in seen.calls:
            if one.events[DENIED] and name in seen.shown:
                yield Disagreement(f"hooks saw {call} denied, and the transcript answers it", known)
            elif one.times != seen.times[name]:
                what = f"hooks saw {call} {one.times} times, the transcript has {seen.times[name]}"
                yield Disagreement(what, is_sure=False)
            elif one.times == 1:
                yield from _asked_otherwise(one, seen.calls[name], program)
            continue
        if one.call.agent != MAIN and one.call.agent not in seen.agents:
            where = f" of subagent {one.call.agent[:40]}, whose transcript was not imported"
            yield Disagreement(f"hooks saw {call}{where}", is_sure=False)
        elif one.is_denial_alone:
            what = f"only a hook speaks of {call}, which was denied"
            yield Disagreement(what, is_sure=False)
        else:
            sure = known and (is_whole or number < last.get(one.call.agent, -1))
            yield Disagreement(f"hooks saw {call}, and the transcript lacks it", sure)
    yield from _unseen(hooks, seen, is_proved=known and version_of(version) >= _PROVED)


def _asked_otherwise(one: HookCall, call: Call, program: str) -> Iterator[Disagreement]:
    """In what a hook and the transcript say differently what a call asked for.

    Programs give a hook the input with members added, and paths completed. So what one of the two
    lacks is not compared, nor the names that another program than Claude Code gives to its tools.
    """
    heard, tools = one.call, HookEvents.tools
    # A hook may change what other events than this one have.
    sure = program == "claude-code" and "PreToolUse" in one.events
    named = dict[str, str]()
    if program == "claude-code" and heard.tool != call.tool:
        named["tool"] = _shown(heard.tool, call.tool)
        sure = sure and tools.get(heard.tool) != tools.get(call.tool)  # else: an older name of it
    elif isinstance(heard.input, dict) and isinstance(call.input, dict):
        pairs = {n: (heard.input[n], call.input[n]) for n in heard.input.keys() & call.input.keys()}
        if heard.command is not None and call.command is not None:
            pairs |= {"command": (heard.command, call.command)}
        for name, (mine, other) in sorted(pairs.items()):
            if mine in heard.paths and isinstance(other, str):
                paths = [normalize("NFC", resolved(mine, heard.cwd))]
                paths.append(normalize("NFC", resolved(other, call.cwd)))
                if paths[0] != paths[1]:
                    named[name] = _shown(mine, other)
                    ends = {posixpath.basename(path) for path in paths}
                    sure = sure and len(ends) > 1  # else: perhaps another name of its folder
            elif not _is_same(mine, other):
                named[name] = ""
    elif not _is_same(heard.input, call.input):
        named["input"] = ""
    if named:
        what = ", ".join(repr(name[:40]) for name in list(named)[:_FEW])
        what += f" and {len(named) - _FEW} more" if len(named) > _FEW else ""
        call_name = f"the call {call.tool[:40]} {call.id[:60]}"
        who = f"hooks (event {heard.line}) and the transcript (line {call.line})"
        what = f"{who} differ in {what} of {call_name}"
        yield Disagreement(what + "".join(list(named.values())[:_FEW]), sure)


_FEW = 3  # members of an input that are named; of more, their number


def _shown(heard: str, told: str) -> str:
    return f": {shorten(repr(heard), 60)} and {shorten(repr(told), 60)}"


def _is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same in all members that both have.

    Programs turn a text with a number or a list into that, and drop blanks around a text.

    >>> _is_same({"limit": 5.0, "more": 1}, {"limit": "5"}), _is_same("a ", "a"), _is_same("a", "b")
    (True, True, False)
    """
    todo = [(one, other)]
    while todo:
        one, other = todo.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            todo += ((one[name], other[name]) for name in one.keys() & other.keys())
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            todo += zip(one, other, strict=True)
        elif isinstance(one, str) is not isinstance(other, str):
            text, value = (one, other) if isinstance(one, str) else (other, one)
            try:
                todo.append((orjson.loads(text), value))
            except orjson.JSONDecodeError:
                return False
        elif isinstance(one, str):
            if one.strip() != other.strip():
                return False
        elif one != other or isinstance(one, bool) is not isinstance(other, bool):
            return False
    return True


def _unseen(hooks: HookEvents, seen: CallsSeen, *, is_proved: bool) -> Iterator[Disagreement]:
    """Calls of the transcript that no hook saw, although hooks saw those around them."""
    complete = is_proved and not hooks.holes and hooks.is_from_start
    complete = complete and hooks.starts == 1 and bool(hooks.records["PostToolBatch"])
    matched = {
        agent: max((call.line for name, call in own.items() if name in hooks.calls), default=0)
        for agent, own in _by_agent(seen.calls).items()
    }
    for name, call in seen.calls.items():
        if name in hooks.calls or name.startswith(_OF_THE_MODEL):
            continue
        if name in seen.refused:
            what = f"only the transcript speaks of the call {call.tool[:40]} {name[:60]}, "
            yield Disagreement(what + "which was denied", is_sure=False)
            continue
        what = f"the transcript has the call {call.tool[:40]} {name[:60]} (line {call.line}), "
        sure = complete and name in seen.answered and call.line < matched[call.agent]
        yield Disagreement(what + "and no hook saw it", sure)


def _by_agent(calls: Mapping[str, Call]) -> dict[str, dict[str, Call]]:
    found: dict[str, dict[str, Call]] = {}
    for name, call in calls.items():
        found.setdefault(call.agent, {})[name] = call
    return found


# Runs -------------------------------------------------------------------------------------------

_ENDED = "SELECT spawn, ended FROM agents WHERE ended IS NOT NULL ORDER BY ended"
_KEPT = "SELECT seq FROM files WHERE path GLOB ? AND seq < ? ORDER BY path"


@dataclass
class RunCalls:
    """The calls that a run names, by id, and the ids of those it lists as denied.

    ``ended`` is the entry that says how it ended. ``is_stream``: its output has a line for each
    message of the session's own thread.
    """

    spawn: str
    ended: int
    calls: dict[str, str] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    is_stream: bool = False


def runs_of_sessions(evidence: Evidence) -> dict[str, list[RunCalls]]:
    """The runs whose output can be read and names calls or denials, by the session of each."""
    found: dict[str, list[RunCalls]] = {}
    for spawn, ended in evidence.query(_ENDED):
        body = evidence.body(ended)
        session = body.get("session")
        if not isinstance(session, str):
            continue
        run = RunCalls(spawn, ended)
        kept = body.get("stdout")
        _read(run, session, _content(evidence, kept.get("content") if kept else None), "session_id")
        pattern = f"workers/*-{spawn[:12]}-[0-9]*.log"
        for (seq,) in evidence.query(_KEPT, pattern, evidence.size):
            data = _content(evidence, evidence.body(seq).get("content"))
            _read(run, session, data, "sessionId")
        if run.is_stream or run.calls or run.denied:
            found.setdefault(session, []).append(run)
    return found


def _content(evidence: Evidence, content: Any) -> bytes:
    try:
        return evidence.source.content(content)
    except evidence.unreadable:
        return b""  # it was erased, or was too much to keep


def _read(run: RunCalls, session: str, data: bytes, name: str) -> None:
    """Add the calls of a session that lines of JSON name; ``name`` is the field with its id."""
    for line in data.splitlines():
        if b'"tool_use"' not in line and b'"result"' not in line:
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # a program writes other lines as well
        if text_at(value, name) != session:
            continue
        if value.get("type") == "assistant":
            message = value.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            for block in content if isinstance(content, list) else ():
                if text_at(block, "type") == "tool_use" and text_at(block, "id"):
                    run.calls[block["id"]] = text_at(block, "name")
                    run.is_stream |= name == "session_id"
        elif value.get("type") == "result":
            denied = value.get("permission_denials")
            for one in denied if isinstance(denied, list) else ():
                if text_at(one, "tool_use_id"):
                    run.denied.add(one["tool_use_id"])


def compare_run(run: RunCalls, seen: CallsSeen, *, is_whole: bool) -> Iterator[Disagreement]:
    """In which calls a run of ours and the transcript of its session differ.

    ``is_whole``: the session was imported when the run had ended.
    """
    who = f"the run {run.spawn[:12]}"
    for name, tool in run.calls.items():
        if name not in seen.calls:
            what = f"{who} made the call {tool[:40]} {name[:60]}, and the transcript lacks it"
            yield Disagreement(what, is_whole)
    for name in sorted(run.denied):
        if name in seen.shown:
            what = f"{who} lists the call {name[:60]} as denied, and the transcript answers it"
            yield Disagreement(what, is_sure=True)
        elif name not in seen.calls and name not in run.calls:
            what = f"only the list of denials of {who} speaks of the call {name[:60]}"
            yield Disagreement(what, is_sure=False)
    yield from _unnamed(run, seen, who)


def _unnamed(run: RunCalls, seen: CallsSeen, who: str) -> Iterator[Disagreement]:
    """Calls of the transcript between two of the run that its stream does not name."""
    lines = [call.line for name, call in seen.main_calls.items() if name in run.calls]
    if not run.is_stream or not lines:
        return
    for name, call in seen.main_calls.items():
        if min(lines) < call.line < max(lines) and name not in run.calls:
            what = f"the transcript has the call {call.tool[:40]} {name[:60]} (line {call.line}), "
            yield Disagreement(what + f"and {who} does not name it", is_sure=False)
