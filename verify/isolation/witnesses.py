"""The witnesses of a session: its transcript, what hooks saw, and what runs of ours wrote. Pure.

A run that writes a line of JSON for each message (``--output-format stream-json``) names each call
of its session, and at the end those that were denied. The transcripts that were kept when it ended
name them too.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unicodedata import normalize

import orjson

from tripod.verify.isolation.hooks import DENIED, HeardCall, HookEvents
from tripod.verify.isolation.sessions import CallsSeen
from tripod.verify.sessions.items import MAIN, Call, text_at, version_of
from tripod.verify.sessions.shell import resolved

_OF_THE_MODEL = "srvtoolu_"  # calls that the model's own server answers: no hook sees them
_PROVED = (2, 1, 330)
"""The first version of Claude Code of which recordings show that its hooks see every call."""


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
    known = _is_known(seen, program)
    last: dict[str, int] = {}
    for number, (name, one) in enumerate(hooks.calls.items()):
        if name in seen.calls:
            last[one.call.agent] = number
    for number, (name, one) in enumerate(hooks.calls.items()):
        if name in seen.calls:
            continue
        call = f"the call {one.call.tool[:40]} {name[:60]}"
        if one.call.agent != MAIN and one.call.agent not in seen.agents:
            where = f" of subagent {one.call.agent[:40]}, whose transcript was not imported"
            yield Disagreement(f"hooks saw {call}{where}", is_sure=False)
        elif one.is_denial_alone:
            what = f"only a hook speaks of {call}, which was denied"
            yield Disagreement(what, is_sure=False)
        else:
            sure = known and (is_whole or number < last.get(one.call.agent, -1))
            yield Disagreement(f"hooks saw {call}, and the transcript lacks it", sure)
    yield from (one for _, one in told_otherwise(hooks, seen, program))
    yield from compare_told(hooks, seen, program=program, version=version)


def _is_known(seen: CallsSeen, program: str) -> bool:
    """Whether both witnesses give each call the same id."""
    # In Codex a script's own calls, and a subagent's, may have ids that this file does not have.
    inner = {call.channel for call in seen.calls.values()} & {"script", "subagent"}
    return program == "claude-code" or (program == "codex" and not inner)


def compare_told(
    hooks: HookEvents, seen: CallsSeen, *, program: str, version: str = ""
) -> Iterator[Disagreement]:
    """In what else hooks and transcript differ of the calls that the transcript has."""
    known = _is_known(seen, program)
    told = {name for one in seen.sessions for name in (one.id, one.parent)} - {"", None}
    heard = hooks.sessions.keys() - {""}
    if told and heard and not told & heard:
        what = f"hooks saw the session {min(heard)[:40]}, and the transcript is of another"
        yield Disagreement(what, is_sure=False)
    for name, one in hooks.calls.items():
        call = f"the call {one.call.tool[:40]} {name[:60]}"
        if one.events[DENIED] and name in seen.shown:
            yield Disagreement(f"hooks saw {call} denied, and the transcript answers it", known)
        elif name in seen.calls and one.times != seen.times[name]:
            what = f"hooks saw {call} {one.times} times, the transcript has {seen.times[name]}"
            yield Disagreement(what, is_sure=False)
    yield from _unseen(hooks, seen, program, is_proved=known and version_of(version) >= _PROVED)


def told_otherwise(
    hooks: HookEvents, seen: CallsSeen, program: str
) -> Iterator[tuple[HeardCall, Disagreement]]:
    """What hooks heard of calls of the transcript, where that tells otherwise of them.

    It asked for another thing, or it was denied there although a hook saw it done.
    """
    for name, one in hooks.calls.items():
        if name not in seen.calls:
            continue
        calls = [seen.calls[name], *seen.again.get(name, ())]
        is_one = one.times == len(calls) == 1
        for heard in one.heard:
            differ = [next(_asked_otherwise(heard, call, program), None) for call in calls]
            if None not in differ and differ[0] is not None:
                yield heard, differ[0]._replace(is_sure=differ[0].is_sure and is_one)
            elif is_one and "PostToolUse" in heard.events and name in seen.answered - seen.shown:
                is_claude, is_denied = program == "claude-code", name in seen.refused
                if is_claude or is_denied:  # elsewhere a call that failed may count as done
                    call = f"the call {heard.call.tool[:40]} {name[:60]}"
                    ended = "denied" if is_denied else "an error"
                    what = f"hooks saw {call} done, and in the transcript it is {ended}"
                    yield heard, Disagreement(what, is_claude and is_denied)


def _asked_otherwise(one: HeardCall, call: Call, program: str) -> Iterator[Disagreement]:
    """In what a hook and the transcript say differently what a call asked for.

    Programs give a hook the input with members added, and paths completed. So what one of the two
    lacks is not compared, but for files and commands that a known tool of Claude Code reads; nor
    are the names that another program than Claude Code gives to its tools.
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
        sure = sure and isinstance(heard.input, dict)  # else the event is damaged
    if not named and program == "claude-code" and heard.tool in tools and _reads(heard, call):
        named["input"], sure = "", False  # one of the two lacks a member that names a file
    if named:
        what = ", ".join(repr(name[:40]) for name in list(named)[:_FEW])
        what += f" and {len(named) - _FEW} more" if len(named) > _FEW else ""
        call_name = f"the call {call.tool[:40]} {call.id[:60]}"
        who = f"hooks (event {heard.line}) and the transcript (line {call.line})"
        what = f"{who} differ in {what} of {call_name}"
        yield Disagreement(what + "".join(list(named.values())[:_FEW]), sure)


def _reads(heard: Call, call: Call) -> bool:
    """Whether two questions to one tool name other files, or one of them alone a command."""
    paths, others = (
        {normalize("NFC", resolved(path, one.cwd)) for path in one.paths} for one in (heard, call)
    )
    return paths != others or (heard.command is None) is not (call.command is None)


_FEW = 3  # members of an input that are named; of more, their number


def _shown(heard: str, told: str) -> str:
    short = (text if len(text) <= 60 else f"{text[:59]}…" for text in map(repr, (heard, told)))
    return f": {' and '.join(short)}"


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


def _unseen(
    hooks: HookEvents, seen: CallsSeen, program: str, *, is_proved: bool
) -> Iterator[Disagreement]:
    """Calls of the transcript that no hook saw, although hooks watched the session then."""
    has_all = bool(hooks.records["PostToolBatch"])  # of every tool, and also what failed early
    complete = is_proved and not hooks.holes and hooks.is_from_start
    complete = complete and hooks.starts == 1 and has_all
    tools = {one.call.tool for one in hooks.calls.values()}
    channels = {one.call.channel for one in hooks.calls.values()}
    matched: dict[str, tuple[int, int]] = {}
    for agent, own in _by_agent(seen.calls).items():
        lines = [call.line for name, call in own.items() if name in hooks.calls]
        matched[agent] = min(lines, default=2**62), max(lines, default=0)
    for name, call in seen.calls.items():
        if name in hooks.calls or name.startswith(_OF_THE_MODEL):
            continue
        first, last = matched[call.agent]
        if not hooks.is_from_start and call.line < first:
            continue  # hooks began when the session went on
        if name in seen.refused:
            what = f"only the transcript speaks of the call {call.tool[:40]} {name[:60]}, "
            yield Disagreement(what + "which was denied", is_sure=False)
            continue
        if not has_all:
            # Hooks may watch some tools alone; only Claude Code gives them the names it writes.
            watched = call.tool in tools
            watched |= program != "claude-code" and call.channel in channels
            if not watched or name in seen.answered - seen.shown:
                continue
        what = f"the transcript has the call {call.tool[:40]} {name[:60]} (line {call.line}), "
        sure = complete and name in seen.answered and call.line < last
        yield Disagreement(what + "and no hook saw it", sure)


def _by_agent(calls: Mapping[str, Call]) -> dict[str, dict[str, Call]]:
    found: dict[str, dict[str, Call]] = {}
    for name, call in calls.items():
        found.setdefault(call.agent, {})[name] = call
    return found


# Runs -------------------------------------------------------------------------------------------


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


def read_run(run: RunCalls, session: str, data: bytes, name: str) -> None:
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
