"""Sessions that were imported more than once: what a later state lacks is not forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from doors.inside import run
from hook_spools import events_of, write_spool
from recorded_sessions import ATIF, write_session

WORDS = "the quick brown fox jumps over the lazy dog and then it sleeps well"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    assert run(tmp_path, "init").code == 0
    (tmp_path / ".env").write_text(WORDS)
    policy(tmp_path, "never:\n  - paths: [.env]\n")
    return tmp_path


def policy(team: Path, text: str) -> None:
    (team / ".nbs/policy.yaml").write_text(text)


def taken(team: Path, *words: str) -> None:
    done = run(team, "import", *words, "--as", "ann")
    assert done.code == 0, done.err


def told(team: Path, check: str = "never-read") -> dict[str, Any]:
    """What a check says."""
    report = json.loads(run(team, "verify", "--json").out)
    found: dict[str, Any] = next(one for one in report["checks"] if one["check"] == check)
    return found


def test_another_form_of_a_session_does_not_hide_what_its_file_shows(team: Path) -> None:
    write_session(team / "s.jsonl", "s", ("/w/a", WORDS))
    taken(team, "s.jsonl")
    (before,) = told(team)["findings"]
    (team / "s.json").write_text(json.dumps(ATIF))
    taken(team, "s.json")
    one = told(team)
    (found,) = one["findings"]
    assert found["message"].removeprefix("session s (a 1)") in before["message"]
    assert "the newest state of the session does not" in found["evidence"][1]
    (team / "s.jsonl").unlink()
    assert "the file is gone" in told(team)["reason"]


def test_a_session_that_grew_beside_another_form_of_it_was_not_changed(team: Path) -> None:
    write_session(team / "s.jsonl", "s", ("/w/a", "x"))
    (team / "s.json").write_text(json.dumps(ATIF))
    taken(team, "s.jsonl", "s.json")
    write_session(team / "s.jsonl", "s", ("/w/a", "x"), ("/w/b", "x"))
    done = run(team, "import", "s.jsonl", "--as", "ann")
    assert b"not what" not in done.out
    assert told(team, "sessions-whole")["findings"] == []


def test_what_was_kept_of_a_session_that_was_changed_is_judged(team: Path) -> None:
    write_session(team / "s.jsonl", "s", ("/w/a", WORDS))
    taken(team, "--keep", "s.jsonl")
    write_session(team / "s.jsonl", "s", ("/w/a", "other"))
    taken(team, "--keep", "s.jsonl")
    (found,) = told(team)["findings"]
    assert "was shown .env (read, line 3)" in found["message"]


def test_what_was_kept_of_a_document_that_was_written_anew_is_judged(team: Path) -> None:
    step = {"step_id": 2, "source": "user", "message": WORDS}
    (team / "s.json").write_text(json.dumps(ATIF | {"steps": [*ATIF["steps"], step]}))
    taken(team, "--keep", "s.json")
    (team / "s.json").write_text(json.dumps(ATIF))
    taken(team, "s.json")
    (found,) = told(team)["findings"]
    assert "was shown .env (paste" in found["message"]


def test_a_document_that_its_program_wrote_anew_is_not_missed(team: Path) -> None:
    (team / "s.json").write_text(json.dumps(ATIF))
    taken(team, "s.json")
    reason = told(team)["reason"]
    (team / "s.json").write_text(json.dumps(ATIF | {"notes": "more"}))
    taken(team, "s.json")
    assert told(team)["reason"] == reason


def test_a_subagent_keeps_the_role_that_it_had(team: Path) -> None:
    policy(team, "never:\n  - paths: [.env]\n    role: reviewer\n")
    inner = team / "p/subagents"
    inner.mkdir(parents=True)
    write_session(team / "p.jsonl", "p", ("/w/a", "x"))
    for name in ("a1", "a2"):
        more = {"agentId": name, "isSidechain": True}
        write_session(inner / f"agent-{name}.jsonl", "p", ("/w/.env", "x"), **more)
        (inner / f"agent-{name}.meta.json").write_text('{"agentType": "reviewer"}')
    taken(team, "p.jsonl")
    assert len(told(team)["findings"]) == 2
    (inner / "agent-a2.meta.json").unlink()
    more = {"agentId": "a2", "isSidechain": True}
    write_session(inner / "agent-a2.jsonl", "p", ("/w/.env", "x"), ("/w/b", "x"), **more)
    taken(team, "p.jsonl")
    one = told(team)
    assert (len(one["findings"]), one["coverage"]["judged"]) == (2, 2)


def test_what_hooks_saw_and_nobody_has_any_more_cannot_be_told(team: Path) -> None:
    write_session(team / "s.jsonl", "s")
    folder = write_spool(team / ".nbs/spool/hooks/s", events_of("x"))
    (folder / "transcript.jsonl").write_text((team / "s.jsonl").read_text())
    taken(team, "--keep", str(folder))
    rmtree(folder)
    gone = "what hooks saw of it is not at hand any more"
    assert gone in told(team)["reason"]
    one = told(team, "witnesses-agree")
    assert (one["verdict"], gone in one["reason"]) == ("cannot tell", True)
    write_session(team / "s.jsonl", "s", ("/w/a", "x"))
    taken(team, "s.jsonl")  # the program's own file went on
    assert gone in told(team)["reason"]


def test_sessions_in_no_folder_are_named_where_a_rule_goes_by_folders(team: Path) -> None:
    write_session(team / "s.jsonl", "s", ("/w/a", "x"))
    write_session(team / "t.jsonl", "t", ("/w/.env", "x"), cwd="")
    taken(team, "s.jsonl", "t.jsonl")
    named = "1 session names no folder, so that no rule or role which goes by folders is about that"
    assert named not in told(team)["exceptions"]
    policy(team, "never:\n  - paths: [.env]\n    folder: /w\n")
    assert named in told(team)["exceptions"]
