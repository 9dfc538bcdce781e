"""A session is whole only with each session that it started, and with the one that started it."""

import json
from collections import Counter

import pytest
from session_specimens import CALLS, SECRET, STARTS, Record

from tripod.verify.isolation.children import is_id
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.exposure import SessionExposures, judge_exposures
from tripod.verify.sessions.items import Channel, SessionRecord
from tripod.verify.sessions.readers import READERS, read_session

CHILD = "01a203db-4326-7903-a705-6226962d1527"
OTHER = "01a203db-4326-7903-a705-6226962d1528"
CLOSED = frozenset[Channel](("instructions", "home"))


def _with(value: list[Record], **names: str) -> list[Record]:
    """Records in which each text of that name is another one."""
    text = json.dumps(value)
    for old, new in names.items():
        text = text.replace(json.dumps(old), json.dumps(new))
    found: list[Record] = json.loads(text)
    return found


def _told(program: str, *files: list[Record]) -> tuple[str, list[str]]:
    read = []
    for number, records in enumerate(files):
        protected = ProtectedText()
        protected.add("chat/a.md", SECRET)
        one = SessionExposures(NeverRule(["chat/**"]), protected, f"f{number}", CLOSED)
        numbered = [SessionRecord(line, 0, value) for line, value in enumerate(records, 1)]
        for item in read_session(READERS[program](), numbered):
            one.add(item)
        one.end()
        read.append(one)
    verdict = judge_exposures(read, Counter())
    return verdict.told, verdict.reasons


def _parent(program: str, name: str, *children: str, above: str | None = None) -> list[Record]:
    """A session that starts these children, in the words of its program."""
    records = _with(STARTS[program], s=name)
    if program == "codex" and above is not None:
        records[0]["payload"]["parent_thread_id"] = above
    elif program == "opencode" and above is not None:
        records[0]["info"]["parentID"] = above
    for number, child in enumerate(children):
        call = f"c{number}"
        if program == "claude-code":
            new = CALLS[program]("Agent", {"prompt": "x"}, "done")
            new[1]["toolUseResult"] = {"status": "completed", "agentId": child}
        elif program == "codex":
            new = CALLS[program]("spawn_agent", {"message": "x"}, json.dumps({"id": child}))
        else:
            new = CALLS[program]("task", {"prompt": "x"}, "done")
            new[0]["parts"][0]["state"]["metadata"] = {"sessionId": child}
        records += _with(new, s=name, c=call, m=f"m{number}")
    return records


def _child(program: str, parent: str, name: str) -> list[Record]:
    """The child of a session, in a file of its own."""
    if program != "claude-code":
        return _parent(program, name, above=parent)
    return [
        one | {"agentId": name, "isSidechain": True} for one in _with(STARTS[program], s=parent)
    ]


PROGRAMS = ("claude-code", "codex", "opencode")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_child_fills_the_gap_of_the_call_that_started_it_and_no_other(program: str) -> None:
    main = _parent(program, "p1", CHILD)
    assert _told(program, main, _child(program, "p1", CHILD))[0] == "clean"
    told, reasons = _told(program, main)
    assert told == "cannot tell"
    assert CHILD in reasons[0]
    other = _parent(program, "p2", CHILD)
    assert _told(program, main, _child(program, "p2", CHILD), other)[0] == "cannot tell"
    own = _parent(program, "p1", "p1") if program != "codex" else _parent(program, CHILD, CHILD)
    assert _told(program, own)[0] == "cannot tell"


@pytest.mark.parametrize("program", PROGRAMS)
def test_of_two_calls_that_started_children_of_one_id_nobody_can_tell(program: str) -> None:
    main, child = _parent(program, "p1", CHILD, CHILD), _child(program, "p1", CHILD)
    # A copy of its file, or what that was before it grew, is no other child.
    grown = [*child, *_with(CALLS[program]("x", {}, "x"), s=CHILD)]
    for files in ([child], [child, child], [child, grown]):
        told, reasons = _told(program, main, *files)
        assert (told, "; also in line" in " ".join(reasons)) == ("cannot tell", True)
    copied = _parent(program, "p1", CHILD)
    assert _told(program, copied, copied, _child(program, "p1", CHILD))[0] == "clean"


def test_an_agent_that_is_resumed_is_one() -> None:
    main = _parent("claude-code", "p1", CHILD, CHILD)
    main[-2]["message"]["content"][0]["input"]["resume"] = CHILD
    assert _told("claude-code", main, _child("claude-code", "p1", CHILD))[0] == "clean"
    main = _parent("opencode", "p1", CHILD, CHILD)
    main[-1]["parts"][0]["state"]["input"]["task_id"] = CHILD
    assert _told("opencode", main, _child("opencode", "p1", CHILD))[0] == "clean"


@pytest.mark.parametrize("word", ["REDACTED", "main", "xxxx", "[hidden]"])
def test_an_id_that_is_one_word_names_no_child(word: str) -> None:
    assert not is_id(word)
    for program in ("claude-code", "opencode"):
        files = _parent(program, "p1", word), _child(program, "p1", word)
        assert _told(program, *files)[0] == "cannot tell"


def _copilot(session: str, *calls: tuple[str, int]) -> list[Record]:
    """A session with tasks, each of so many recorded events of its own."""
    records = _with(STARTS["copilot"], s=session)
    for name, events in calls:
        asked, done = _with(CALLS["copilot"]("task", {"prompt": "x"}, "done"), c=name)
        inner = _with(CALLS["copilot"]("view", {"path": "/w/a"}, "x"), c=f"{name}-inner")
        inner = [one | {"data": one["data"] | {"parentToolCallId": name}} for one in inner]
        records += [asked, *inner[: 2 * events], done]
    return records


def test_the_agents_of_copilot_are_those_of_their_own_session() -> None:
    assert _told("copilot", _copilot("s1", ("c1", 1), ("c2", 1)))[0] == "clean"
    assert _told("copilot", _copilot("s1", ("c1", 0)))[0] == "cannot tell"
    assert _told("copilot", _copilot("s1", ("c1", 1), ("c1", 0)))[0] == "cannot tell"
    again = _copilot("s1", ("c1", 1), ("c1", 0))
    assert _told("copilot", again, again)[0] == "cannot tell"
    others = _copilot("s1", ("c1", 0)), _copilot("s2", ("c1", 1))
    assert _told("copilot", *others)[0] == "cannot tell"


def test_gemini_names_no_child_so_that_none_can_be_told() -> None:
    records = [*STARTS["gemini"], *CALLS["gemini"]("task", {"prompt": "x"}, "done")]
    assert _told("gemini", records, _with(STARTS["gemini"], s="t1"))[0] == "cannot tell"


def test_an_event_may_name_the_parent_or_another_child_of_it() -> None:
    event = {"type": "CollabAgentToolCall", "id": "x", "sender": CHILD}
    record = {"timestamp": "t", "type": "event_msg",
              "payload": {"type": "item_completed", "item": event}}  # fmt: skip
    above = "01a203db-4326-7903-a705-6226962d1500"
    main = _parent("codex", above, CHILD, OTHER)
    child, other = _child("codex", above, CHILD), _child("codex", above, OTHER)
    for named in (above, OTHER):
        tells = _with([record], **{CHILD: named})
        assert _told("codex", main, [*child, *tells], other)[0] == "clean"
    stranger = _with([record], **{CHILD: CHILD.replace("1527", "1599")})
    assert _told("codex", main, [*child, *stranger], other)[0] == "cannot tell"


@pytest.mark.parametrize("program", ["codex", "opencode"])
def test_a_session_needs_the_first_one_of_those_that_started_it(program: str) -> None:
    first, second, third = (_parent(program, "p1"), _child(program, "p1", "p2"),
                            _child(program, "p2", "p3"))  # fmt: skip
    assert _told(program, first, second, third)[0] == "clean"
    told, reasons = _told(program, second, third)
    assert (told, len(reasons)) == ("cannot tell", 1)
    assert "the session p1 that started this one" in reasons[0]
    told, reasons = _told(program, _child(program, "p3", "p1"), second, third)
    assert (told, len(reasons)) == ("cannot tell", 3)
    assert "in a circle" in reasons[0]
    assert _told(program, _child(program, "p1", "p1"))[0] == "cannot tell"
