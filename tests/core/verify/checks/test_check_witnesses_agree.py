"""The witnesses of imported sessions: hooks, what runs wrote, and what a program writes twice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from sqlite3 import connect
from typing import Any

import drafts
import pytest
from doors.inside import run
from hook_spools import SETS, event_of, events_of, recorded_events, transcripts_of, write_spool
from recorded_sessions import items_of, labels, recorded, transcripts

from tripod.sessions.imports import import_session_file
from tripod.team.team import Team
from tripod.verify.sessions.items import Gap

NEW = "sessions-2026-11"
FILES = [(name, file) for name, label in labels(NEW).items() for file in label["files"]]


@pytest.fixture
def team(tmp_path: Path) -> Path:
    assert run(tmp_path, "init").code == 0
    return tmp_path


def spool(team: Path, name: str = "s") -> Path:
    return team / ".nbs/spool/hooks" / name


def taken(team: Path, *paths: Path) -> None:
    """Import files of sessions."""
    with Team(team) as opened:
        for path in paths:
            assert import_session_file(opened, str(path), actor="ann", is_named=True)[1]


def told(team: Path) -> dict[str, Any]:
    """What the check says."""
    report = json.loads(run(team, "verify", "--json").out)
    found: dict[str, Any] = next(
        one for one in report["checks"] if one["check"] == "witnesses-agree"
    )
    return found


def session(path: Path, *calls: str, name: str = "s", denied: str = "") -> Path:
    """Write a session of Claude Code that reads a file in each of these calls."""
    base = {"sessionId": name, "version": "2.1.330", "cwd": "/w"}
    lines: list[dict[str, Any]] = [{"type": "user", "message": {"role": "user", "content": "go"}}]
    for call in calls:
        use = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": "/w/.env"}}
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": "x = 1"}
        more: dict[str, Any] = {}
        if call == denied:
            result |= {"is_error": True}
            more = {"permissionDecision": {"decision": "reject"}}
        lines.append({"type": "assistant", "message": {"role": "assistant", "content": [use]}})
        lines.append({"type": "user", "message": {"role": "user", "content": [result]}} | more)
    path.write_text("".join(json.dumps(base | one) + "\n" for one in lines))
    return path


def streamed(team: Path, *calls: str, denied: str = "", session: str = "s") -> None:
    """Record a run of the session, which wrote a line for each of its calls."""
    lines: list[dict[str, Any]] = [
        {
            "type": "assistant",
            "message": {"content": [{"type": "tool_use", "id": c, "name": "Read"}]},
        }
        for c in calls
    ]
    denials = [{"tool_name": "Read", "tool_use_id": denied, "tool_input": {}}] if denied else []
    lines.append({"type": "result", "permission_denials": denials})
    stdout = "".join(json.dumps(one | {"session_id": session}) + "\n" for one in lines).encode()
    with Team(team) as opened, opened.act() as act:
        act.append(
            [
                drafts.agent_requested(
                    spawn="r1", role="worker", subject="x", attempt=1, spec=b"{}", actor="ann"
                ),
                drafts.agent_ended(
                    spawn="r1", status="ok", wall_ms=1, stdout=stdout, stderr=b"", session=session
                ),
            ]
        )


def test_without_a_second_witness_there_is_nothing_to_compare(team: Path) -> None:
    assert told(team)["verdict"] == "not applicable"
    taken(team, session(team / "s.jsonl", "a"))
    assert told(team)["verdict"] == "not applicable"


# Hooks


@pytest.mark.parametrize("name", SETS)
def test_the_hooks_of_every_recording_agree_with_its_transcripts(team: Path, name: str) -> None:
    events = recorded_events(name)
    write_spool(spool(team, events[0]["session_id"]), events)
    taken(team, *transcripts_of(name))
    one = told(team)
    assert (one["verdict"], one["coverage"]["with hooks"]) == ("clean", 1), one


def test_the_hooks_of_the_recording_of_codex_agree(team: Path) -> None:
    folder = recorded() / NEW / "codex-hook-deny"
    lines = (folder / "hook-stdin.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    write_spool(spool(team, events[0]["session_id"]), events)
    taken(team, *folder.rglob("rollout-*.jsonl"))
    assert told(team)["verdict"] == "clean"


def test_a_call_that_was_taken_out_of_the_transcript_is_a_finding(team: Path) -> None:
    write_spool(spool(team), events_of("a", "b", "c"))
    taken(team, session(team / "s.jsonl", "a", "c"))
    one = told(team)
    assert [found["message"] for found in one["findings"]] == [
        "session s: hooks saw the call Read b, and the transcript lacks it"
    ]


def test_a_call_that_asks_for_another_file_in_the_transcript_is_a_finding(team: Path) -> None:
    write_spool(spool(team), events_of("a", "b"))
    path = session(team / "s.jsonl", "a", "b")
    path.write_text(path.read_text().replace("/w/.env", "/w/a.py", 1))
    taken(team, path)
    (found,) = told(team)["findings"]
    assert found["message"] == (
        "session s: hooks (event 2) and the transcript (line 2) differ in 'file_path' of the call "
        "Read a: '/w/.env' and '/w/a.py'"
    )


def heard(kind: str, file: Any, **more: Any) -> dict[str, Any]:
    """An event of the call ``a``, which names another file than a transcript may."""
    return event_of(kind, "a") | {"tool_input": {"file_path": file}} | more


@pytest.mark.parametrize(
    ("events", "agree", "never", "is_breach"),
    [
        ([heard("PreToolUse", "/w/a.py")], "clean", "clean, except", False),
        ([heard("PreToolUse", "/w/.env")], "findings", "cannot tell", False),
        (
            [heard("PreToolUse", "/w/a.py"), heard("PostToolUse", "/w/.env", tool_response="K=1")],
            "cannot tell",
            "cannot tell",
            True,
        ),
        (
            [heard("PreToolUse", "/w/a.py") | {"tool_input": None}],
            "cannot tell",
            "cannot tell",
            False,
        ),
        (
            [
                heard("PreToolUse", "/w/a.py"),
                event_of("UserPromptSubmit", prompt="K=" + "abc " * 9),
            ],
            "clean",
            "findings",
            True,
        ),
    ],
)
def test_a_rule_is_judged_by_what_hooks_saw_as_well(
    team: Path, events: list[dict[str, Any]], agree: str, never: str, is_breach: bool
) -> None:
    (team / ".env").write_text("K=" + "abc " * 9)
    (team / ".nbs/policy.yaml").write_text("never:\n  - paths: [.env]\n")
    start, end = events_of()
    write_spool(spool(team), [start, *events, end])
    path = session(team / "s.jsonl", "a")
    path.write_text(path.read_text().replace("/w/.env", "/w/a.py"))
    taken(team, path)
    checks = json.loads(run(team, "verify", "--json").out)["checks"]
    verdicts = {one["check"]: one["verdict"] for one in checks}
    assert (verdicts["witnesses-agree"], verdicts["never-read"]) == (agree, never)
    found = next(one for one in checks if one["check"] == "never-read")["findings"]
    assert bool(found) is is_breach


def test_a_spool_of_another_session_leaves_it_untold(team: Path) -> None:
    write_spool(spool(team), [one | {"session_id": "t"} for one in events_of("a")])
    taken(team, session(team / "s.jsonl", "a"))
    assert "hooks saw the session t, and the transcript is of another" in told(team)["reason"]


def test_an_import_counts_what_a_hook_heard_otherwise(team: Path) -> None:
    start, end = events_of()
    path = session(team / "s.jsonl", "a")
    other = heard("PostToolUse", "/w/b.py", tool_response="x")
    folder = write_spool(spool(team), [start, other, end], [path])
    taken(team, folder / "transcript.jsonl")
    checks = json.loads(run(team, "verify", "--json").out)["checks"]
    whole = next(one for one in checks if one["check"] == "sessions-whole")
    assert whole["coverage"]["witness"] == 1
    with Team(team) as opened:
        read = [one.data for one in opened.store.read() if one.kind == "session.read"]
    assert "/w/b.py" in json.dumps(read)


def test_the_hooks_of_codex_are_held_against_the_command_that_it_ran(team: Path) -> None:
    folder = recorded() / NEW / "codex-hook-deny"
    lines = (folder / "hook-stdin.jsonl").read_text().replace("src/app.py", ".env").splitlines()
    events = [json.loads(line) for line in lines]
    write_spool(spool(team, events[0]["session_id"]), events)
    taken(team, *folder.rglob("rollout-*.jsonl"))
    one = told(team)
    assert one["verdict"] == "cannot tell"
    assert "differ in 'command' of the call exec_command call_0_0" in one["reason"]


def test_the_last_call_is_missed_only_by_a_copy_from_after_the_end(team: Path) -> None:
    folder = write_spool(spool(team), events_of("a", "b"))
    os.utime(folder / "0006-SessionEnd.json", (2**32, 2**32))
    taken(team, session(team / "s.jsonl", "a"))
    assert told(team)["verdict"] == "cannot tell"
    os.utime(folder / "0006-SessionEnd.json", (2**30, 2**30))
    assert told(team)["verdict"] == "findings"


def test_an_event_that_was_taken_out_leaves_it_untold(team: Path) -> None:
    folder = write_spool(spool(team), events_of("a", "b"))
    (folder / "0003-PostToolBatch.json").unlink()
    taken(team, session(team / "s.jsonl", "a", "b"))
    one = told(team)
    assert one["verdict"] == "cannot tell"
    assert "event 4 comes after 2" in one["reason"]


@pytest.mark.parametrize(
    ("break_spool", "cause", "says"),
    [
        (lambda folder: (folder / "0003-PostToolBatch.json").unlink(), "order", "comes after 2"),
        (lambda folder: (folder / "0004-PreToolUse.json").write_text("{"), "damaged", "is no JSON"),
        (lambda folder: (folder / "0006-SessionEnd.json").unlink(), "missing", "no end of the"),
    ],
)
def test_what_a_spool_lacks_is_in_the_coverage_of_its_session(
    team: Path, break_spool: Callable[[Path], None], cause: str, says: str
) -> None:
    path = session(team / "s.jsonl", "a", "b")
    folder = write_spool(spool(team), events_of("a", "b"), [path])
    break_spool(folder)
    taken(team, folder / "transcript.jsonl")
    (team / ".nbs/policy.yaml").write_text("never:\n  - paths: [secret.txt]\n")
    checks = json.loads(run(team, "verify", "--json").out)["checks"]
    by_name = {one["check"]: one for one in checks}
    assert by_name["sessions-whole"]["coverage"][cause] == 1
    assert by_name["never-read"]["verdict"] == "cannot tell"
    assert says in by_name["never-read"]["reason"]


def test_a_denial_that_only_the_hook_has_leaves_it_untold(team: Path) -> None:
    events = events_of("a")
    events.insert(1, event_of("PermissionDenied", "refused"))
    write_spool(spool(team), events)
    taken(team, session(team / "s.jsonl", "a"))
    one = told(team)
    assert one["verdict"] == "cannot tell"
    assert "only a hook speaks of the call Read refused" in one["reason"]


def test_each_of_two_sessions_is_held_against_its_own_hooks(team: Path) -> None:
    write_spool(spool(team), events_of("a"))
    write_spool(spool(team, "t"), [one | {"session_id": "t"} for one in events_of("b")])
    taken(team, session(team / "s.jsonl", "a"), session(team / "t.jsonl", "b", name="t"))
    one = told(team)
    assert (one["verdict"], one["coverage"]["with hooks"]) == ("clean", 2)
    taken(team, session(team / "u.jsonl", "a", name="t"))
    assert {found["message"] for found in told(team)["findings"]} == {
        "session t: hooks saw the call Read b, and the transcript lacks it"
    }


@pytest.mark.parametrize("name", ["../../../x", "..", "a/b"])
def test_a_session_id_that_is_a_path_leads_nowhere(team: Path, name: str) -> None:
    outside = os.path.normpath(team / ".nbs/spool/hooks" / name)
    if not Path(outside).exists():
        write_spool(Path(outside), events_of("planted"))
    taken(team, session(team / "s.jsonl", "a", name=name))
    assert told(team)["verdict"] == "not applicable"


def test_what_a_hook_saved_is_whole(team: Path) -> None:
    path = session(team / "s.jsonl", "a")
    folder = write_spool(spool(team), events_of("a", "b"), [path])
    os.utime(folder / "0006-SessionEnd.json", (2**32, 2**32))
    taken(team, folder / "transcript.jsonl")
    assert told(team)["verdict"] == "findings"


def test_a_spool_that_is_a_link_or_a_file_leaves_it_untold(team: Path) -> None:
    real = write_spool(team / "elsewhere", events_of("a"))
    spool(team).parent.mkdir(parents=True)
    spool(team).symlink_to(real)
    taken(team, session(team / "s.jsonl", "a"))
    assert "is a symbolic link" in told(team)["reason"]
    spool(team).unlink()
    spool(team).write_text("x")
    assert told(team)["verdict"] == "cannot tell"


def test_a_transcript_that_is_gone_leaves_it_untold(team: Path) -> None:
    write_spool(spool(team), events_of("a"))
    taken(team, session(team / "s.jsonl", "a"))
    (team / "s.jsonl").unlink()
    one = told(team)
    assert one["verdict"] == "cannot tell"
    assert "the file is gone" in one["reason"]


# Runs


def test_a_call_of_a_run_that_the_transcript_lacks_is_a_finding(team: Path) -> None:
    streamed(team, "a", "b")
    taken(team, session(team / "s.jsonl", "a"))
    (found,) = told(team)["findings"]
    assert "the run r1 made the call Read b, and the transcript lacks it" in found["message"]


def test_a_session_that_was_imported_before_its_run_ended_is_untold(team: Path) -> None:
    taken(team, session(team / "s.jsonl", "a"))
    streamed(team, "a", "b")
    assert told(team)["verdict"] == "cannot tell"


def test_a_run_and_a_transcript_with_the_same_calls_agree(team: Path) -> None:
    streamed(team, "a", "b", denied="b")
    taken(team, session(team / "s.jsonl", "a", "b", denied="b"))
    one = told(team)
    assert (one["verdict"], one["coverage"]["with runs"]) == ("clean", 1)


def test_a_denial_that_the_transcript_answers_is_a_finding(team: Path) -> None:
    streamed(team, "a", denied="a")
    taken(team, session(team / "s.jsonl", "a"))
    (found,) = told(team)["findings"]
    assert "lists the call a as denied, and the transcript answers it" in found["message"]


def test_a_denial_of_which_only_the_list_speaks_is_untold(team: Path) -> None:
    streamed(team, "a", denied="b")
    taken(team, session(team / "s.jsonl", "a"))
    assert told(team)["verdict"] == "cannot tell"


def test_a_call_that_a_run_does_not_name_among_its_own_is_untold(team: Path) -> None:
    streamed(team, "a", "c")
    taken(team, session(team / "s.jsonl", "a", "b", "c"))
    assert told(team)["verdict"] == "cannot tell"


def test_a_run_of_another_session_says_nothing(team: Path) -> None:
    streamed(team, "b", session="other")
    taken(team, session(team / "s.jsonl", "a"))
    assert told(team)["verdict"] == "not applicable"


# What a program writes twice


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.parent.name)
def test_no_recording_differs_from_itself(path: Path) -> None:
    assert [
        item for item in items_of(path)[1] if isinstance(item, Gap) and item.cause == "witness"
    ] == []


@pytest.mark.parametrize(("name", "file"), FILES)
def test_no_recording_of_today_gives_a_finding(team: Path, name: str, file: str) -> None:
    taken(team, recorded() / NEW / name / file)
    one = told(team)
    alone = name.startswith("copilot")
    assert one["verdict"] == ("not applicable" if alone else "clean"), one


def _without(*marks: str) -> Callable[[str], bool]:
    return lambda line: not all(mark in line for mark in marks)


TAKEN = [
    ("codex-clean", "rollout-*.jsonl", _without("CommandExecution", "call_1_0"), "was run"),
    ("codex-clean", "rollout-*.jsonl", _without("response_item", "call_1_0"), "no call asked"),
    ("gemini-read-grep", "session-*.jsonl", _without('"user"', "read_file_"), "no message"),
    ("qwen-read-grep", "*-*.jsonl", _without("ui_telemetry", "call_1_0"), "not in the telemetry"),
]


@pytest.mark.parametrize(("name", "pattern", "keep", "says"), TAKEN)
def test_what_one_part_of_a_record_lacks_is_a_finding(
    team: Path, name: str, pattern: str, keep: Callable[[str], bool], says: str
) -> None:
    (path,) = (recorded() / NEW / name).rglob(pattern)
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if keep(line)]
    assert len(kept) < len(lines)
    (team / path.name).write_text("".join(kept))
    taken(team, team / path.name)
    messages = [found["message"] for found in told(team)["findings"]]
    assert any(says in message for message in messages), messages
    code = run(team, "exposure", "--never", "*.key", "--project", str(team), path.name).code
    assert code == 3


def test_a_call_of_the_telemetry_alone_is_a_finding(team: Path) -> None:
    (path,) = (recorded() / NEW / "qwen-read-grep").rglob("*-*.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    mark = "call_1_0"
    kept = [line for line in lines if mark not in line or "ui_telemetry" in line]
    (team / path.name).write_text("".join(kept))
    taken(team, team / path.name)
    messages = [found["message"] for found in told(team)["findings"]]
    assert any("the telemetry has the call call_1_0" in message for message in messages)


def test_a_call_that_an_event_has_and_no_message_is_a_finding(team: Path) -> None:
    path = team / "opencode.db"
    copyfile(recorded() / NEW / "opencode-read-grep/opencode.db", path)
    with closing(connect(path)) as db:
        db.execute("""DELETE FROM part WHERE id = (SELECT max(id) FROM part
            WHERE data LIKE '%"type":"tool"%')""")
        db.commit()
    taken(team, path)
    assert any("last event says" in found["message"] for found in told(team)["findings"])
