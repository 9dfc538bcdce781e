"""Killed while it seals, rotates or restores; many who seal at once; a fork judged in halves."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from children import run_forked
from specimens import build

from tripod.bus import events
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.tlog.note import parse_note
from tripod.ledger.tlog.seal import Seal, parse_seal
from tripod.recovery import backup as copies
from tripod.team.team import Team
from tripod.trust import keys
from tripod.trust import seal as sealing
from tripod.verify.evidence import collect
from tripod.verify.run import run
from tripod.verify.scan import database

ORIGIN = "sample.example/1"

PROGRAM = """
import os, signal, sys
from tripod.recovery import backup as copies
from tripod.trust import keys
from tripod.decisions import writer as scribe
from tripod.trust import seal as sealing
from tripod.team.team import Team

root, what, die_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
calls = 0

def count(event, _given):
    global calls
    if event in ("open", "os.rename", "os.link", "os.remove", "sqlite3.connect"):
        calls += 1
        if calls == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

def decide(team):
    scribe.log(team, scribe.DecisionRequest("On", ("alex",), "x", refs=("live.chat:~L7",)))

if what == "restore":
    sys.addaudithook(count)
    copies.restore(root, sys.argv[4])
else:
    with Team(root) as team:
        sys.addaudithook(count)
        if what == "decide":
            decide(team)
        else:
            sealing.rotate_sealing_key(team, keys.no_passphrase, None)
print("done", calls)
"""


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A sealed team with a backup beside it, and one entry behind the backup."""
    root = build(str(tmp_path))
    with Team(root) as team:
        sealing.new_sealing_key(team)
        copies.backup(team, f"{os.path.dirname(root)}/copy.db")
        events.publish(team, "ann", "task-complete", "low", "behind the backup")
    return root


def program(root: str, what: str, die_at: int) -> "subprocess.CompletedProcess[str]":
    return run_forked(PROGRAM, root, what, str(die_at), f"{os.path.dirname(root)}/copy.db")


def seals(root: str) -> list[Seal]:
    with closing(read_only(f"{root}/ledger.db")) as db:
        rows = db.execute("SELECT note FROM seals ORDER BY seq").fetchall()
    return [parse_seal(parse_note(note.encode()).text) for (note,) in rows]


def failures(root: str) -> list[str]:
    with collect(root) as evidence:
        report = run(evidence)
    assert not report.problem
    every = (finding for outcome in report.outcomes for finding in outcome.findings)
    return [finding.message for finding in every if finding.severity == "failure"]


def steps(done: "subprocess.CompletedProcess[str]") -> int:
    """How many steps a program that was not killed took (0: it was)."""
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return int(done.stdout.split()[1]) if done.returncode == 0 else 0


@pytest.mark.slow
@pytest.mark.parametrize("what", ["decide", "rotate"])
def test_killed_at_any_file_while_it_seals_the_next_act_seals(root: str, what: str) -> None:
    total, die_at, remembered = 0, 1, 0
    while not total:
        total = steps(program(root, what, die_at))
        last = sealing.last_seal(ORIGIN)
        assert last is not None
        assert last.size >= remembered  # never back
        remembered = last.size
        die_at += 4
    with Team(root) as team:
        team.warnings.clear()
        sealing.seal_now(team, keys.no_passphrase)
        assert team.warnings == []
        assert sealing.last_seal_note(ORIGIN) == getattr(
            sealing.newest(team.store.db), "note", None
        )
    assert die_at > 20
    assert failures(root) == []


@pytest.mark.slow
def test_killed_at_any_file_while_it_restores_it_can_be_done_again(root: str) -> None:
    total, die_at = 0, 1
    while not total:
        total = steps(program(root, "restore", die_at))
        die_at += 6
    assert die_at > 30
    assert failures(root) == []
    with Team(root) as team:
        assert team.store.origin.startswith(f"{ORIGIN}/fork/")


@pytest.mark.slow
def test_many_who_seal_at_once_make_one_line_of_seals(root: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, root, "decide", "0"],
            env=os.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(6)
    ]
    for child in children:
        _, err = child.communicate()
        assert (child.returncode, err) == (0, b"")
    sizes = [seal.size for seal in seals(root)]
    assert sizes == sorted(set(sizes))
    assert failures(root) == []
    with Team(root) as team:
        decided = team.store.db.execute("SELECT max(seq) FROM pieces").fetchone()[0]
    assert sizes[-1] > decided


@pytest.mark.slow
def test_a_fork_is_judged_the_same_in_one_pass_and_in_two_halves(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies.restore(root, f"{os.path.dirname(root)}/copy.db")
    with Team(root) as team:
        for number in range(600):
            events.publish(team, "ann", "task-complete", "low", f"{number}")
    with closing(read_only(f"{root}/ledger.db")) as db:
        whole = database.scan_database(db)
        monkeypatch.setattr(database, "LARGE", 1)
        rows = db.execute("SELECT count(*) FROM entries").fetchone()[0]
        halves = database.begin_database_scan(
            f"{root}/ledger.db", db, rows, folding=False
        ).scanned()
    assert (halves.head, halves.coverage) == (whole.head, whole.coverage)
    assert whole.tally.found == halves.tally.found == {}
