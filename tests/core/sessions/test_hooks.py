"""What hooks left of a session: read, held against the transcript, and never trusted blindly."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from doors.inside import run
from hook_spools import (
    GOLDEN,
    GOLDEN_ID,
    SETS,
    event_of,
    events_of,
    recorded_events,
    transcripts_of,
    write_spool,
)
from recorded_sessions import items_of
from session_specimens import SECRET, STARTS

from tripod.ledger.kinds.sessions import session_stream
from tripod.verify.isolation.sessions import CallsSeen
from tripod.verify.isolation.witnesses import Disagreement, compare_hooks
from tripod.verify.recorded.files import session_files
from tripod.verify.recorded.spool import read_spool, spool_of
from tripod.verify.sessions.items import Call, Gap, Given, Session


def seen_in(*paths: Path) -> CallsSeen:
    """The calls of the files of one session."""
    whole = CallsSeen()
    for path in paths:
        one = CallsSeen()
        for item in items_of(path)[1]:
            one.add(item)
        whole.join(one)
    return whole


def compared(folder: Path, *paths: Path, version: str = "2.1.330") -> list[Disagreement]:
    """In what hooks and files differ."""
    log, seen = read_spool(str(folder)), seen_in(*paths)
    program, whole = "claude-code", log.events.is_over
    return list(compare_hooks(log.events, seen, program=program, version=version, is_whole=whole))


def transcript(path: Path, *calls: str, denied: str = "", file: str = "/w/.env") -> Path:
    """Write a session ``s`` of Claude Code that reads a file in each of these calls."""
    base = {"sessionId": "s", "version": "2.1.330", "cwd": "/w"}
    lines: list[dict[str, Any]] = [{"type": "user", "message": {"role": "user", "content": "go"}}]
    for name in calls:
        use = {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": file}}
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": name, "content": "x = 1"}
        more: dict[str, Any] = {}
        if name == denied:
            denial = "Permission to read it has been denied."
            result |= {"is_error": True, "content": denial}
            more = {"permissionDecision": {"decision": "reject"}}
        lines.append({"type": "assistant", "message": {"role": "assistant", "content": [use]}})
        lines.append({"type": "user", "message": {"role": "user", "content": [result]}} | more)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(base | one) + "\n" for one in lines))
    return path


def gaps(folder: Path) -> list[Gap]:
    return [item for item in read_spool(str(folder)).items if isinstance(item, Gap)]


# Reading


def test_the_golden_events_give_a_session_its_calls_and_what_was_given() -> None:
    items = read_spool(str(GOLDEN / GOLDEN_ID)).items
    (session,) = [item for item in items if isinstance(item, Session)]
    assert (session.id, session.cwd) == (GOLDEN_ID, "/home/dev/team")
    assert [(item.tool, item.line) for item in items if isinstance(item, Call)] == [
        ("Read", 4),
        ("Grep", 7),
        ("Read", 10),
    ]
    given = [(item.channel, item.call) for item in items if isinstance(item, Given)]
    assert given[:2] == [("instructions", None), ("paste", None)]
    assert [call for _, call in given[2:]] == [f"toolu_fake00000{n}00" for n in (1, 2, 3)]
    assert not [item for item in items if isinstance(item, Gap)]


@pytest.mark.parametrize("name", SETS)
def test_hooks_and_transcript_of_every_recording_agree(name: str, tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", recorded_events(name))
    assert compared(folder, *transcripts_of(name)) == []
    assert [gap for gap in gaps(folder) if not gap.child] == []


@pytest.mark.parametrize("name", [name for name in SETS if "men_" not in name])
def test_each_call_that_is_taken_out_of_a_recording_is_found(name: str, tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", recorded_events(name))
    paths = transcripts_of(name)
    for call in seen_in(*paths).calls:
        cut = []
        for number, path in enumerate(paths):
            lines = path.read_text().splitlines(keepends=True)
            cut.append(tmp_path / f"{number}.jsonl")
            cut[-1].write_text("".join(line for line in lines if call not in line))
        whole = {one.what: one.is_sure for one in compared(folder, *cut)}
        assert any(call in what and sure for what, sure in whole.items()), whole


@pytest.mark.parametrize("name", [name for name in SETS if "men_" not in name])
def test_each_call_that_hooks_did_not_see_is_found_among_others(name: str, tmp_path: Path) -> None:
    paths, events = transcripts_of(name), recorded_events(name)
    seen = seen_in(*paths)
    for number, call in enumerate(seen.calls):
        left = [event for event in events if call not in json.dumps(event)]
        folder = write_spool(tmp_path / str(number), left)
        (one,) = [one for one in compared(folder, *paths) if call in one.what]
        later = any(
            other.agent == seen.calls[call].agent and other.line > seen.calls[call].line
            for other in seen.calls.values()
        )
        # A session may have gone on without hooks; what was denied may never have reached one.
        batches = any(event["hook_event_name"] == "PostToolBatch" for event in left)
        assert one.is_sure is (later and batches and call not in seen.refused)


def test_a_lost_event_is_a_gap_in_the_numbers(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", events_of("a", "b"))
    (folder / "0003-PostToolBatch.json").unlink()
    assert [(gap.cause, gap.what) for gap in gaps(folder)] == [
        ("order", "the numbers of a hook's events: event 4 comes after 2")
    ]
    # What hooks did not see may be in the event that is lost.
    path = transcript(tmp_path / "t.jsonl", "a", "x", "b")
    assert [one.is_sure for one in compared(folder, path)] == [False]


def test_the_first_or_the_last_event_that_is_lost_is_a_gap(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", events_of("a"))
    (folder / "0001-SessionStart.json").unlink()
    (folder / "0004-SessionEnd.json").unlink()
    assert [gap.what for gap in gaps(folder)] == [
        "the numbers of a hook's events: the first is 2",
        "hooks saw no start of the session",
        "hooks saw no end of the session",
    ]


def test_a_subagent_that_did_not_stop_is_a_gap_and_its_session_is_missing(tmp_path: Path) -> None:
    start = event_of("SubagentStart", agent_id="a1")
    folder = write_spool(tmp_path / "s", [*events_of()[:1], start, event_of("SessionEnd")])
    assert [(gap.child, gap.what) for gap in gaps(folder)] == [
        ("a1", "the session of subagent a1"),
        ("", "hooks saw no end of subagent a1"),
    ]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no JSON object"),
        (b'{"hook_event_name": "PreToolUse"', "is no JSON"),
        (b"\0\0\0", "is no JSON"),
        (b"[]", "no JSON object"),
        (b'{"hook_event_name": "Stop"}\n{"hook_event_name": "Stop"}', "is no JSON"),
        (b"[" * 10_000, "nested too deep"),
        (b'{"hook_event_name": "Stop", "session_id": "s"}', "holds another event"),
        (b'{"hook_event_name": "PreToolUse", "session_id": "s"}', "without a tool_use_id"),
        (b'{"hook_event_name": "PreToolUse", "session_id": 7}', "an event of the session ''"),
        (b'{"hook_event_name": "PreToolUse", "session_id": "t"}', "an event of the session 't'"),
    ],
)
def test_a_file_that_holds_no_event_is_a_gap(tmp_path: Path, data: bytes, says: str) -> None:
    folder = write_spool(tmp_path / "s", events_of("a", "b"))
    (folder / "0002-PreToolUse.json").write_bytes(data)
    assert any(says in gap.what for gap in gaps(folder)), gaps(folder)


def test_an_event_of_a_type_that_is_not_known_is_a_gap(tmp_path: Path) -> None:
    events = [*events_of("a"), event_of("SessionEnd")]
    events[-2] = event_of("PostMortem")
    folder = write_spool(tmp_path / "s", events)
    assert [gap.what for gap in gaps(folder)] == ["a record of the type 'PostMortem'"]


def test_links_devices_and_strange_names_in_a_spool_are_gaps_and_are_not_read(
    tmp_path: Path,
) -> None:
    folder = write_spool(tmp_path / "s", events_of("a", "b"))
    (tmp_path / "other.json").write_text(json.dumps(event_of("PreToolUse", "planted")))
    (folder / "0002-PreToolUse.json").unlink()
    (folder / "0002-PreToolUse.json").symlink_to(tmp_path / "other.json")
    (folder / "0003-PostToolBatch.json").unlink()
    os.mkfifo(folder / "0003-PostToolBatch.json")
    (folder / "notes.txt").write_text("x")
    (folder / ".0009-Stop.json").write_text("being written")
    assert [(gap.cause, gap.line) for gap in gaps(folder)] == [
        ("unknown", 0),
        ("damaged", 2),
        ("damaged", 3),
    ]
    assert "planted" not in read_spool(str(folder)).events.calls
    linked = tmp_path / "linked"
    linked.symlink_to(folder)
    assert [gap.what for gap in gaps(linked)] == [
        f"{linked} is a symbolic link, and is not followed"
    ]


def test_two_files_with_one_number_are_a_gap(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", events_of("a"))
    (folder / "2-Stop.json").write_text(json.dumps(event_of("Stop")))
    assert [gap.cause for gap in gaps(folder)] == ["order"]


# Two witnesses


def test_a_call_in_an_added_event_is_found(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", events_of("a", "planted", "b"))
    (one,) = compared(folder, transcript(tmp_path / "t.jsonl", "a", "b"))
    assert one == ("hooks saw the call Read planted, and the transcript lacks it", True)


def test_a_call_after_the_end_of_a_copy_may_have_come_later(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", events_of("a", "b")[:-1])
    (one,) = compared(folder, transcript(tmp_path / "t.jsonl", "a"))
    assert not one.is_sure
    folder = write_spool(tmp_path / "ended", events_of("a", "b"))
    (one,) = compared(folder, transcript(tmp_path / "t.jsonl", "a"))
    assert one.is_sure


def test_a_denial_of_which_only_the_hook_speaks_cannot_be_told(tmp_path: Path) -> None:
    events = events_of("a", "b")
    events.insert(1, event_of("PermissionDenied", "refused"))
    folder = write_spool(tmp_path / "s", events)
    (one,) = compared(folder, transcript(tmp_path / "t.jsonl", "a", "b"))
    assert one == ("only a hook speaks of the call Read refused, which was denied", False)


def test_a_denial_of_which_only_the_transcript_speaks_cannot_be_told(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", events_of("a", "b"))
    path = transcript(tmp_path / "t.jsonl", "a", "refused", "b", denied="refused")
    (one,) = compared(folder, path)
    assert not one.is_sure
    assert "only the transcript speaks of the call Read refused" in one.what


def test_a_denied_call_that_the_transcript_answers_is_found(tmp_path: Path) -> None:
    events = events_of("a")
    events.insert(1, event_of("PermissionDenied", "a"))
    folder = write_spool(tmp_path / "s", events)
    path = transcript(tmp_path / "t.jsonl", "a")
    assert [one.is_sure for one in compared(folder, path)] == [True]
    path = transcript(tmp_path / "t.jsonl", "a", denied="a")
    assert compared(folder, path) == []


def test_ids_that_repeat_are_counted_and_never_a_finding(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", events_of("call", "call"))
    assert compared(folder, transcript(tmp_path / "t.jsonl", "call", "call")) == []
    (one,) = compared(folder, transcript(tmp_path / "t.jsonl", "call"))
    assert one == ("hooks saw the call Read call 2 times, the transcript has 1", False)


@pytest.mark.parametrize("version", ["2.1.209", ""])
def test_what_hooks_of_an_older_version_see_is_not_known(tmp_path: Path, version: str) -> None:
    folder = write_spool(tmp_path / "s", events_of("a", "b"))
    path = transcript(tmp_path / "t.jsonl", "a", "x", "b")
    assert [one.is_sure for one in compared(folder, path, version=version)] == [False]
    assert [one.is_sure for one in compared(folder, path)] == [True]


def test_a_session_that_was_taken_up_again_may_have_run_without_hooks(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", events_of("a", "b", source="resume"))
    path = transcript(tmp_path / "t.jsonl", "a", "x", "b")
    assert [one.is_sure for one in compared(folder, path)] == [False]


def asked(
    tmp_path: Path, heard: dict[str, Any], told: dict[str, Any], kind: str = "PreToolUse"
) -> list[Disagreement]:
    """What is said of one call: a hook heard the one, and the transcript tells the other."""
    call = {"tool_name": "Bash", "tool_use_id": "a", **heard}
    start, end = events_of()
    folder = write_spool(tmp_path / "hooks", [start, event_of(kind, **call), end])
    path = transcript(tmp_path / "t.jsonl", "a")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["message"]["content"][0] |= {"name": "Bash", **told}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return compared(folder, path)


@pytest.mark.parametrize(
    ("tool", "heard", "told"),
    [
        ("Bash", {"command": "ls", "description": "Lists"}, {"command": "ls"}),
        ("Bash", {"timeout": 5.0, "command": "ls"}, {"command": "ls ", "timeout": "5"}),
        ("Read", {"file_path": "/w/a.py", "limit": 3}, {"limit": 3, "file_path": "src/../a.py"}),
        ("Edit", {"edits": [{"old": "x", "all": False}]}, {"edits": [{"old": "x"}]}),
        ("Todo", {"todos": [{"a": 1}]}, {"todos": '[{"a": 1.0}]'}),
        ("mcp__x__y", {"path": "/w/a"}, {"path": "./a"}),
        ("Bash", {"command": "a" * 9000}, {"command": "a" * 9000}),
        (
            "Todo",
            {"x": json.loads("[" * 400 + "]" * 400)},
            {"x": json.loads("[" * 400 + "]" * 400)},
        ),
    ],
)
def test_the_same_question_in_other_words_agrees(
    tmp_path: Path, tool: str, heard: dict[str, Any], told: dict[str, Any]
) -> None:
    one = {"tool_name": tool, "tool_input": heard}
    assert asked(tmp_path, one, {"name": tool, "input": told}) == []


@pytest.mark.parametrize(
    ("tool", "heard", "told", "says"),
    [
        ("Bash", {"command": "cat .env # s3cr3t"}, {"command": "ls"}, "'command'"),
        ("Read", {"file_path": "/w/.env"}, {"file_path": "a.py"}, "'file_path'"),
        ("Todo", {"todos": [1]}, {"todos": [1, 2]}, "'todos'"),
        ("Bash", {"command": "ls", "flag": True}, {"command": "ls", "flag": 1}, "'flag'"),
        ("Bash", {"command": "ls"}, {"command": ["cat", ".env"]}, "'command'"),
        ("Bash", dict.fromkeys("abcd", 1), dict.fromkeys("abcd", 2), "'a', 'b', 'c' and 1 more"),
        ("Bash", {"command": "ls"}, "cat .env", "'input'"),
    ],
)
def test_another_question_with_the_same_id_is_found_with_both_lines(
    tmp_path: Path, tool: str, heard: dict[str, Any], told: Any, says: str
) -> None:
    one = {"tool_name": tool, "tool_input": heard}
    (found,) = asked(tmp_path, one, {"name": tool, "input": told})
    assert found.is_sure
    where = f"hooks (event 2) and the transcript (line 2) differ in {says} of the call {tool} a"
    assert found.what.startswith(where)
    assert "s3cr3t" not in found.what


@pytest.mark.parametrize(
    ("tool", "heard", "told"),
    [
        ("Grep", {"pattern": "x"}, {"pattern": "x", "path": "/w/src"}),
        ("Read", {"file_path": "/w/.env"}, {"limit": 3}),
        ("Bash", {"command": "cat .env"}, {"description": "Lists"}),
    ],
)
def test_a_file_that_only_one_of_both_names_cannot_be_told(
    tmp_path: Path, tool: str, heard: dict[str, Any], told: dict[str, Any]
) -> None:
    one = {"tool_name": tool, "tool_input": heard}
    (found,) = asked(tmp_path, one, {"name": tool, "input": told})
    assert not found.is_sure


def test_another_tool_or_path_is_shown_short_and_escaped(tmp_path: Path) -> None:
    told = {"name": "Write", "input": {"file_path": "/w/a.py"}}
    heard = {"tool_name": "Read", "tool_input": {"file_path": "/w/.env"}}
    (found,) = asked(tmp_path, heard, told)
    assert found.what.endswith("differ in 'tool' of the call Write a: 'Read' and 'Write'")
    long = "/w/\x1b[2J\u202e" + "x" * 500
    heard = {"tool_name": "Write", "tool_input": {"file_path": long}}
    (found,) = asked(tmp_path, heard, told)
    assert found.is_sure
    assert "\\x1b[2J\\u202exxx" in found.what
    assert len(found.what) < 250


@pytest.mark.parametrize(
    ("kind", "tools", "heard", "told"),
    [
        # The folder may have another name, the tool an older one.
        ("PreToolUse", ("Read", "Read"), {"file_path": "/home/ann/a"}, {"file_path": "~/a"}),
        ("PreToolUse", ("Agent", "Task"), {"prompt": "go"}, {"prompt": "go"}),
        # A hook may have changed what a later event has.
        ("PostToolUse", ("Bash", "Bash"), {"command": "ls"}, {"command": "rm x"}),
    ],
)
def test_what_a_program_may_have_changed_cannot_be_told(
    tmp_path: Path,
    kind: str,
    tools: tuple[str, str],
    heard: dict[str, Any],
    told: dict[str, Any],
) -> None:
    one, other = {"tool_name": tools[0], "tool_input": heard}, {"name": tools[1], "input": told}
    (found,) = asked(tmp_path, one, other, kind)
    assert not found.is_sure


# Exposure


def exposure(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code, and what is printed."""
    done = run(folder, "exposure", *words)
    return done.code, done.out.decode()


def test_what_hooks_saved_is_judged_with_what_they_saw(tmp_path: Path) -> None:
    spool = tmp_path / "s"
    write_spool(spool, events_of("a"), [transcript(tmp_path / "t.jsonl", "a")])
    assert list(session_files(str(spool))) == [str(spool / "transcript.jsonl")]
    assert exposure(tmp_path, "--never", "*.key", str(spool))[0] == 0
    # A call that was taken out of the transcript is judged by what the hook saw of it.
    transcript(spool / "transcript.jsonl")
    assert exposure(tmp_path, "--never", ".env", str(spool))[0] == 1
    assert "transcript.jsonl: shown /w/.env" in exposure(tmp_path, str(spool))[1]
    code, said = exposure(tmp_path, "--never", "*.key", str(spool))
    assert code == 3
    assert "hooks saw the call Read a (event 2), the transcript not (witness, read)" in said


def test_hooks_that_saved_no_transcript_leave_it_untold(tmp_path: Path) -> None:
    spool = write_spool(tmp_path / "s", events_of("a"))
    code, said = exposure(tmp_path, "--never", "*.key", str(spool))
    assert code == 3
    assert "hooks saved no transcript of the session (missing" in said
    assert exposure(tmp_path, "--never", ".env", str(spool))[0] == 1


@pytest.mark.parametrize("data", [b"", b"{}\n", b"{"])
def test_a_transcript_that_was_emptied_does_not_hide_what_hooks_saw(
    tmp_path: Path, data: bytes
) -> None:
    spool = write_spool(tmp_path / "s", events_of("a"))
    (spool / "transcript.jsonl").write_bytes(data)
    transcript(tmp_path / "clean.jsonl", "a", file="/w/a.py")
    words = ("clean.jsonl", str(spool))
    assert exposure(tmp_path, "--never", "*.key", *words)[0] == 3
    assert exposure(tmp_path, "--never", ".env", *words)[0] == 1


def test_an_event_beside_sessions_hides_none_of_them(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", events_of()[:1])
    transcript(folder / "other.jsonl", "a", file="/w/a.py")
    assert exposure(tmp_path, "--never", "a.py", str(folder))[0] == 1


@pytest.mark.parametrize(
    ("channel", "at"), [("instructions", "snapshot"), ("home", "snapshot/~/.qwen")]
)
def test_a_snapshot_closes_what_a_program_never_records(
    tmp_path: Path, channel: str, at: str
) -> None:
    base = {"sessionId": "s", "version": "0.24.4", "cwd": "/w", "type": "user"}
    said = {"role": "user", "parts": [{"text": "go"}]}
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(base | {"message": said}) + "\n")
    spool = write_spool(tmp_path / "s", events_of(), [path])
    words = ("--never", "chat/**", str(spool))
    untold = f"leaves no record of {channel}"
    assert untold in exposure(tmp_path, *words)[1]
    if channel == "home":
        (spool / "snapshot").mkdir()
        assert untold in exposure(tmp_path, *words)[1]
        (tmp_path / "elsewhere").mkdir()
        (spool / "snapshot/~").symlink_to(tmp_path / "elsewhere")
        assert untold in exposure(tmp_path, *words)[1]
        (spool / "snapshot/~").unlink()
    (spool / at / "chat").mkdir(parents=True)
    assert untold not in exposure(tmp_path, *words)[1]
    (spool / at / "QWEN.md").write_text("See @chat/a.md for more.\n")
    (spool / at / "chat/a.md").write_text(SECRET)
    assert exposure(tmp_path, *words)[0] == 1
    # A session that was taken up again has read them again.
    (spool / at / "QWEN.md").write_text("Nothing.\n")
    write_spool(spool, [*events_of(), event_of("SessionStart", source="resume")])
    assert untold in exposure(tmp_path, *words)[1]


def test_instructions_that_a_hook_saw_loaded_are_exposed(tmp_path: Path) -> None:
    events = events_of()
    events.insert(1, event_of("InstructionsLoaded", file_path="/w/chat/a.md"))
    spool = write_spool(tmp_path / "s", events, [transcript(tmp_path / "t.jsonl")])
    assert exposure(tmp_path, "--never", "chat/**", str(spool))[0] == 1


def test_the_transcript_of_a_subagent_belongs_to_the_spool_above_it(tmp_path: Path) -> None:
    spool = write_spool(tmp_path / "s", recorded_events("bg"), transcripts_of("bg"))
    own, inner = sorted(map(str, spool.rglob("*.jsonl")), key=len)
    assert spool_of(own) == (str(spool), "main")
    assert spool_of(inner) == (str(spool), "a654917b952433391")
    assert spool_of(str(tmp_path / "t.jsonl")) is None
    lines = Path(inner).read_text().splitlines(keepends=True)
    Path(inner).write_text("".join(line for line in lines if "toolu_fake00000200" not in line))
    code, said = exposure(tmp_path, "--never", "*.key", str(spool))
    assert code == 3
    assert "hooks saw the call Read toolu_fake00000200 (event 8), the transcript not" in said


def watched(tmp_path: Path, *events: dict[str, Any], path: Path | None = None) -> Path:
    """A spool with these events, and a transcript: it reads ``a.py``, if no other is given."""
    path = path or transcript(tmp_path / "t.jsonl", "a", file="/w/a.py")
    start, end = events_of()
    rmtree(tmp_path / "s", ignore_errors=True)
    return write_spool(tmp_path / "s", [start, *events, end], [path])


OF_ENV = event_of("PreToolUse", "a")
OF_A = OF_ENV | {"tool_input": {"file_path": "/w/a.py"}}
SHOWN = {"type": "text", "file": {"content": "KEY=1"}}


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([OF_A], 0),
        ([OF_ENV], 3),
        ([OF_A | {"tool_name": "Bash", "tool_input": {"command": "cat .env"}}], 3),
        ([OF_A, OF_ENV], 3),
        ([OF_A, event_of("PermissionDenied", "a")], 3),
        ([OF_A, event_of("PostToolUse", "a", tool_response=SHOWN)], 1),
        ([OF_ENV, event_of("PostToolBatch", "a")], 1),
        ([OF_A | {"tool_input": None}], 3),
        ([OF_A | {"tool_input": "/w/a.py"}], 3),
        ([OF_A | {"tool_name": None}], 3),
        ([OF_A | {"tool_input": {"file_path": "/w/b.py"}}], 3),
    ],
)
def test_what_a_hook_heard_otherwise_of_a_call_is_judged_too(
    tmp_path: Path, events: list[dict[str, Any]], code: int
) -> None:
    found, said = exposure(tmp_path, "--never", ".env", str(watched(tmp_path, *events)))
    assert found == code, said
    if code == 3:
        assert "witness" in said or "unknown" in said


def test_a_subagent_of_which_hooks_saw_no_start_is_missing(tmp_path: Path) -> None:
    inner = OF_ENV | {"tool_use_id": "b", "agent_id": "a1"}
    code, said = exposure(tmp_path, "--never", ".env", str(watched(tmp_path, OF_A, inner)))
    assert code == 3
    assert "the session of subagent a1 (missing, subagent)" in said


def test_each_question_under_one_id_is_judged(tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", "a", "a", file="/w/a.py")
    assert (
        exposure(tmp_path, "--never", ".env", str(watched(tmp_path, OF_A, OF_A, path=path)))[0] == 0
    )
    spool = watched(tmp_path, OF_A, OF_ENV, path=path)
    assert exposure(tmp_path, "--never", ".env", str(spool))[0] == 3
    # Also of a call that the transcript lacks.
    done = event_of("PostToolUse", "b", tool_response=SHOWN)
    spool = watched(tmp_path, OF_A | {"tool_use_id": "b"}, done)
    assert exposure(tmp_path, "--never", ".env", str(spool))[0] == 1


def test_a_call_that_a_hook_saw_done_was_not_denied(tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", "a", denied="a")
    assert exposure(tmp_path, "--never", ".env", str(watched(tmp_path, OF_ENV, path=path)))[0] == 0
    done = event_of("PostToolUse", "a", tool_response=SHOWN)
    spool = watched(tmp_path, OF_ENV, done, path=path)
    assert exposure(tmp_path, "--never", ".env", str(spool))[0] == 1
    (one,) = compared(spool, path)
    assert one == ("hooks saw the call Read a done, and in the transcript it is denied", True)
    path.write_text(path.read_text().replace("permissionDecision", "toolUseResult"))
    (one,) = compared(watched(tmp_path, OF_ENV, done, path=path), path)
    assert one == ("hooks saw the call Read a done, and in the transcript it is an error", False)


WORDS = "the quick brown fox jumps over the lazy dog and then it sleeps well"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (event_of("UserPromptSubmit", prompt=WORDS), 1),
        (OF_A | {"hook_event_name": "PostToolUse", "tool_response": {"stdout": WORDS}}, 3),
        (
            event_of("PostToolBatch") | {"tool_calls": [OF_A | {"tool_response": WORDS}]},
            1,
        ),
        (OF_A | {"hook_event_name": "PostToolUse", "tool_response": "another text"}, 0),
    ],
)
def test_words_that_only_a_hook_saw_are_searched(
    tmp_path: Path, event: dict[str, Any], code: int
) -> None:
    (tmp_path / "secret.txt").write_text(WORDS)
    spool = watched(tmp_path, OF_A, event)
    words = ("--never", "zzz", "--protect", "secret.txt", str(spool))
    found, said = exposure(tmp_path, *words)
    assert found == code, said


def test_words_that_the_transcript_has_as_well_are_told_once(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(WORDS)
    path = transcript(tmp_path / "t.jsonl", "a", file="/w/a.py")
    path.write_text(path.read_text().replace("x = 1", WORDS))
    batch = event_of("PostToolBatch") | {"tool_calls": [OF_A | {"tool_response": WORDS}]}
    words = (
        "--never",
        "zzz",
        "--protect",
        "secret.txt",
        str(watched(tmp_path, OF_A, batch, path=path)),
    )
    code, said = exposure(tmp_path, *words)
    assert (code, said.count("secret.txt")) == (1, 1)


def test_the_transcript_of_another_session_cannot_be_told(tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", "a", file="/w/a.py")
    path.write_text(path.read_text().replace('"sessionId": "s"', '"sessionId": "t"'))
    spool = watched(tmp_path, OF_A, path=path)
    code, said = exposure(tmp_path, "--never", ".env", str(spool))
    assert code == 3
    what = "hooks saw the session s, and the transcript is of another"
    assert what in said
    assert compared(spool, path) == [(what, False)]


def test_a_call_that_no_hook_saw_cannot_be_told(tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", "x", "a", file="/w/a.py")
    code, said = exposure(tmp_path, "--never", ".env", str(watched(tmp_path, OF_A, path=path)))
    assert code == 3
    assert "the transcript has the call Read x (line 2), and no hook saw it" in said
    denied = transcript(tmp_path / "t.jsonl", "a", denied="a")
    code, said = exposure(tmp_path, "--never", ".env", str(watched(tmp_path, path=denied)))
    assert code == 3
    assert "only the transcript speaks of the call Read a, which was denied" in said


def test_calls_that_hooks_do_not_watch_are_not_missed(tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", "x", "a", file="/w/a.py")
    never = ("--never", ".env")
    # Hooks that watch another tool.
    heard = OF_A | {"tool_name": "Write"}
    lines = path.read_text().splitlines(keepends=True)
    lines[3] = lines[3].replace("Read", "Write")
    other = tmp_path / "o.jsonl"
    other.write_text("".join(lines))
    code, said = exposure(tmp_path, *never, str(watched(tmp_path, heard, path=other)))
    assert code == 0, said
    assert compared(tmp_path / "s", other) == []
    # Hooks that began when the session went on.
    start, end = events_of(source="resume")
    for before in (path, transcript(tmp_path / "d.jsonl", "x", "a", denied="x", file="/w/a.py")):
        spool = write_spool(tmp_path / "r", [start, OF_A, end], [before])
        assert exposure(tmp_path, *never, str(spool))[0] == 0
    # A call that failed before a hook could see it; what is given together has it.
    failed = transcript(tmp_path / "f.jsonl", "x", "a", denied="x", file="/w/a.py")
    failed.write_text(failed.read_text().replace("permissionDecision", "toolUseResult"))
    assert exposure(tmp_path, *never, str(watched(tmp_path, OF_A, path=failed)))[0] == 0
    batch = event_of("PostToolBatch") | {"tool_calls": [OF_A | {"tool_response": "x = 1"}]}
    spool = watched(tmp_path, OF_A, batch, path=failed)
    assert exposure(tmp_path, *never, str(spool))[0] == 3


@pytest.mark.parametrize("name", SETS)
def test_the_hooks_of_a_recording_add_nothing_to_its_transcripts(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("[09:00] ann: SECRETCHAT the release slips to friday")
    spool = write_spool(tmp_path / "s", recorded_events(name), transcripts_of(name))
    alone = write_spool(tmp_path / "t", [], transcripts_of(name))
    for words in ((), ("--never", "*.key"), ("--never", "chat/**"), ("--protect", "secret.txt")):
        code, said = exposure(tmp_path, *words, str(spool))
        code_alone, said_alone = exposure(tmp_path, *words, str(alone))
        assert "witness" not in said
        assert (code, said.count("secret.txt")) == (code_alone, said_alone.count("secret.txt"))
        assert not re.search(r"\.jsonl: .*(may be|searche)", said)


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "", "x" * 4096])
def test_a_session_id_never_names_another_folder(name: str) -> None:
    stream = session_stream(name)
    assert stream.strip(".")
    assert "/" not in stream
    assert len(stream) <= 128


# Custody


def gemini_in_spool(folder: Path, when: str) -> Path:
    """A session of a program that leaves no record of files in the home folder, and a snapshot."""
    write_spool(folder, events_of())
    head, context = STARTS["gemini"]
    (first,) = context["$set"]["messages"]
    records = [head, first | {"timestamp": when}]
    (folder / "transcript.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    (folder / "snapshot/~").mkdir(parents=True)
    return folder


def test_a_folder_of_hooks_is_no_proof_that_a_hook_wrote_it(tmp_path: Path) -> None:
    assert run(tmp_path, "init").code == 0
    folder = gemini_in_spool(tmp_path / ".nbs/spool/hooks/s", "2026-01-01T00:00:00Z")
    done = run(tmp_path, "exposure", "--never", ".env", str(folder))
    said = done.out.decode()
    assert "taken by a hook" not in said
    assert "1 found on disk" in said
    assert "what came by home is judged by a snapshot among these; the user" in said
    (one,) = map(
        json.loads,
        run(tmp_path, "exposure", "--never", "x", "--json", str(folder)).out.splitlines(),
    )
    held = {"taken by a hook": 0, "found on disk": 1, "by a snapshot": 1}
    assert one["coverage"]["custody"] == held


@pytest.mark.parametrize("at_once", [True, False])
def test_what_hooks_left_is_clean_except_for_who_could_write_there(
    tmp_path: Path, at_once: bool
) -> None:
    assert run(tmp_path, "init").code == 0
    (tmp_path / ".nbs/policy.yaml").write_text("never:\n  - paths: [.env]\n")
    ended = datetime.now(UTC) - timedelta(days=not at_once)
    folder = gemini_in_spool(tmp_path / ".nbs/spool/hooks/s", ended.isoformat())
    assert run(tmp_path, "import", "--as", "ann", str(folder)).code == 0
    report = json.loads(run(tmp_path, "verify", "--json").out)
    (one,) = [each for each in report["checks"] if each["check"] == "never-read"]
    assert one["verdict"] == "clean, except", one
    where = "1 session was taken from the folder of hooks at the end, entry 3, and until then "
    if not at_once:
        where = "1 session was found on disk 1 day after the last record, and "
    user = "the user that the agent ran as could write there"
    assert one["exceptions"] == [
        f"{where}{user}",
        f"instruction files of 1 session are judged by a snapshot of hooks, and {user}",
    ]
    assert one["coverage"]["taken by a hook"] == at_once


def test_a_relative_path_is_that_of_the_folder_in_which_the_hook_saw_it(tmp_path: Path) -> None:
    asked = {"tool_name": "Read", "tool_input": {"file_path": "a.md"}, "tool_use_id": "c"}
    events = events_of("x")
    moved = [event_of("PreToolUse", cwd="/w/chat") | asked, event_of("Stop", cwd="/w")]
    moved.append(event_of("PostToolBatch", cwd="/w") | {"tool_calls": [asked]})
    folder = write_spool(tmp_path / "s", [*events[:-1], *moved, events[-1]])
    transcript(folder / "transcript.jsonl", "x", file="/w/.env")
    for never, code in (("/w/chat/**", 1), ("/w/a.md", 3)):
        assert run(tmp_path, "exposure", "--never", never, "s").code == code
