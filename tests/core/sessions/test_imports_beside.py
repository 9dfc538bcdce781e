"""Imports beside what else befalls a team: a restore, another import, a file that is replaced."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import drafts
import pytest
from doors.inside import TRIPOD, run
from peering import peers_of
from recorded_sessions import ATIF, BASE, write_session

from tripod.sessions.imports import ImportedSession, import_session_file
from tripod.team.team import Team

SECRET = "the quick brown fox jumps over the lazy dog and then it sleeps well"
DOCUMENTS: dict[str, dict[str, Any]] = {
    "gemini": {"sessionId": "s", "projectHash": "x", "messages": []},
    "atif": ATIF,
}


@pytest.fixture
def team(tmp_path: Path) -> Path:
    assert run(tmp_path, "init").code == 0
    return tmp_path


def policy(team: Path, text: str) -> None:
    (team / ".nbs/policy.yaml").write_text(text)


def told(team: Path, check: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what a check says."""
    done = run(team, "verify", "--json")
    report = json.loads(done.out)
    return done.code, next(one for one in report["checks"] if one["check"] == check)


def kept(team: Path) -> dict[str, bytes]:
    """The parts that were kept, by name."""
    return {
        path.name: path.read_bytes()
        for path in (team / ".nbs/evidence").rglob("*")
        if path.is_file()
    }


def imported(team: Path) -> Counter[tuple[str, str]]:
    """How often the ledger has each session's digest."""
    with Team(team, read_only=True) as opened:
        entries = opened.store.read(kinds=("session.imported",))
        return Counter((one.data["session"], one.data["sha256"]) for one in entries)


# A document in the place of a session --------------------------------------------------------


@pytest.mark.parametrize("program", DOCUMENTS)
def test_a_session_that_a_document_replaced_is_named(team: Path, program: str) -> None:
    """It has the same id and none of the calls; what the ledger has of these is not forgotten."""
    file = write_session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    assert run(team, "import", "s.jsonl", "--as", "ann").code == 0
    policy(team, "never:\n  - paths: [.env]\n")
    file.write_text(json.dumps(DOCUMENTS[program]))
    code, one = told(team, "never-read")
    assert (code, one["verdict"]) == (1, "cannot tell")
    assert "the file is not what it was" in one["reason"]
    assert told(team, "sessions-whole")[1]["verdict"] == "findings"
    done = run(team, "import", "s.jsonl", "--as", "ann")
    assert b"it is not what the entry before had" in done.out
    (found,) = told(team, "never-read")[1]["findings"]
    assert "was shown /w/.env (read, line 2)" in found["message"]
    (found,) = told(team, "sessions-whole")[1]["findings"]
    assert "is one document, in the place of the lines that entry 2 had" in found["message"]


def test_a_document_elsewhere_is_another_copy_and_no_change(team: Path) -> None:
    """An export of a session has its id: the program's own file is what it was."""
    write_session(team / "s.jsonl", "s", ("/w/a", "x"))
    (team / "s.json").write_text(json.dumps(DOCUMENTS["atif"]))
    done = run(team, "import", "s.jsonl", "s.json", "--as", "ann")
    assert b"not what" not in done.out
    assert told(team, "sessions-whole")[1]["verdict"] == "clean"


# Runs whose session nobody imported ----------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "names"), [("pythia", "pythia"), ("worker", "parser-1, worker"), ("parser-*", "")]
)
def test_a_run_whose_session_nobody_imported_is_named(team: Path, role: str, names: str) -> None:
    with Team(team) as opened, opened.act() as act:
        for spawn, kind in (("r1", "pythia"), ("r2", "worker")):
            request = drafts.agent_requested(
                spawn=spawn, role=kind, subject="x", attempt=1, spec=b"{}", actor="ann"
            )
            ended = drafts.agent_ended(
                spawn=spawn, status="ok", wall_ms=1, stdout=b"", stderr=b"", session=f"s-{spawn}"
            )
            act.append([request, ended])
        worker = drafts.worker_spawned(
            name="parser-1", slug="parser", folder="/w", task="Parse.", actor="ann"
        )
        act.append([worker, drafts.worker_running("parser-1", "r2", "1-a-worker-b-1.event")])
    spawn = "r1" if role == "pythia" else "r2"
    policy(team, f"never:\n  - paths: [.env]\n    role: {role}\n")
    write_session(team / "t.jsonl", "t", ("/w/a", "x"))
    assert run(team, "import", "t.jsonl", "--as", "ann").code == 0
    one = told(team, "never-read")[1]
    assert one["verdict"] == "cannot tell"
    assert f"session s-{spawn} ({names or 'parser-1, worker'}) was not imported" in one["reason"]
    write_session(team / "s.jsonl", f"s-{spawn}", ("/w/a", "x"))
    assert run(team, "import", "s.jsonl", "--as", "ann").code == 0
    assert told(team, "never-read")[1]["verdict"] == "clean, except"


# Kept bytes and a restore --------------------------------------------------------------------


def test_a_restore_and_the_imports_around_it_lose_no_bytes_that_were_kept(team: Path) -> None:
    """The restored ledger does not name the parts of what was imported after the backup."""
    write_session(team / "a.jsonl", "a", ("/w/a", "x"))
    write_session(team / "b.jsonl", "b", ("/w/b", "x"))
    write_session(team / "c.jsonl", "c", ("/w/c", "x"))
    assert run(team, "import", "--keep", "a.jsonl", "--as", "ann").code == 0
    assert run(team, "backup", "backup.db").code == 0
    assert run(team, "import", "--keep", "b.jsonl", "--as", "ann").code == 0
    before = kept(team)
    assert len(before) == 2
    done = run(team, "restore", "backup.db", "--discard", "lost")
    assert done.code == 0, done.err
    assert {name for name, _ in imported(team)} == {"a"}
    assert kept(team) == before
    assert run(team, "import", "--keep", "c.jsonl", "--as", "ann").code == 0
    assert kept(team).items() > before.items()
    for name in "abc":
        (team / f"{name}.jsonl").rename(team / f"moved-{name}.jsonl")
    assert run(team, "import", "--keep", "moved-b.jsonl", "--as", "ann").code == 0
    (team / "moved-b.jsonl").unlink()
    assert told(team, "sessions-whole")[1]["verdict"] == "clean"


# Two imports at once -------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [False, True])
def test_what_another_import_took_meanwhile_is_not_taken_again(
    team: Path, monkeypatch: pytest.MonkeyPatch, *, keep: bool
) -> None:
    """The other one begins and ends when a file was read, and right before the act about it."""
    write_session(team / "s.jsonl", "s", ("/w/.env", "KEY=1"))
    act, others = Team.act, list[list[ImportedSession]]()

    def acting(opened: Team, *args: Any, **more: Any) -> Any:
        if not others:
            others.append([])
            with Team(team) as second:
                others[0] = taken(second)
        return act(opened, *args, **more)

    def taken(opened: Team) -> list[ImportedSession]:
        return import_session_file(opened, str(team / "s.jsonl"), actor="ann", keep=keep)[1]

    monkeypatch.setattr(Team, "act", acting)
    with Team(team) as first:
        (one,) = taken(first)
        ((other,),) = others
        assert (other.is_new, one.is_new, one.seq) == (True, False, other.seq)
        assert len(list(first.store.read(kinds=("session.read",)))) == 1
    assert set(imported(team).values()) == {1}
    assert len(kept(team)) == keep


def test_two_imports_at_once_lose_and_double_nothing(team: Path) -> None:
    (team / "sessions").mkdir()
    for number in range(12):
        write_session(team / f"sessions/{number}.jsonl", f"s{number}", ("/w/.env", f"K={number}"))
    command = [TRIPOD, "import", "--keep", "sessions", "--as", "ann"]
    both = [subprocess.Popen(command, cwd=team, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait(120) for one in both] == [0, 0]
    found = imported(team)
    assert len(found) == 12
    assert set(found.values()) == {1}
    files = {path.read_bytes() for path in (team / "sessions").iterdir()}
    assert sorted(kept(team).values()) == sorted(files)
    with Team(team, read_only=True) as opened:
        assert len(list(opened.store.read(kinds=("session.read",)))) == 12
    assert told(team, "sessions-whole")[1]["verdict"] == "clean"


# What a peer imported ------------------------------------------------------------------------


def test_sessions_that_a_peer_imported_are_judged_there(tmp_path: Path) -> None:
    ann, bob = peers_of(tmp_path, "ann", "bob")
    for replica, name in ((ann, "a"), (bob, "b")):
        write_session(replica.folder / "s.jsonl", name, ("/w/.env", "KEY=1"))
    policy(ann.folder, "never:\n  - paths: [.netrc]\n")
    assert run(ann.folder, "import", "s.jsonl", "--as", "ann").code == 0
    assert run(bob.folder, "import", "s.jsonl", "--as", "bob").code == 0
    alone = told(ann.folder, "never-read")[1]
    assert ann.merge(bob).problem == ""
    one = told(ann.folder, "never-read")[1]
    said = "sessions that 1 peer imported are judged there"
    assert (said in alone["exceptions"], said in one["exceptions"]) == (False, True)
    assert one["coverage"] == alone["coverage"]
    policy(ann.folder, "never:\n  - paths: [.env]\n")
    (found,) = told(ann.folder, "never-read")[1]["findings"]
    assert found["message"].startswith("session a ")


# Which subagent ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [("b9", "a1"), ("a1", "b9")])
def test_the_first_subagent_that_a_file_names_is_the_one_that_it_is_of(
    team: Path, order: tuple[str, str]
) -> None:
    """Two may be named in one file: neither an order of names nor one of a set decides."""
    roles = {"a1": "auditor", "b9": "builder"}
    lines = []
    for number, name in enumerate(order):
        use = {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": "/w/a"}}
        lines.append(
            {"type": "assistant", "sessionId": "p", **BASE, "version": f"2.1.{number + 209}"}
            | {"agentId": name, "isSidechain": True, "attributionAgent": roles[name]}
            | {"message": {"role": "assistant", "content": [use]}}
        )
    (team / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Team(team) as opened:
        (one,) = import_session_file(opened, str(team / "s.jsonl"), actor="ann")[1]
        assert one.agent == order[0]
        assert opened.source.body(one.seq)["role"] == roles[order[0]]
