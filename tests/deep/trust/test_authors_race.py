"""Several processes that sign at once, and processes that are killed while they do."""

import os
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from sample_ledger import faults, opening
from specimens import build

from tripod.ledger.actors import actor_record_problem, actor_statement, parse_actor_record
from tripod.ledger.entry import Entry
from tripod.ledger.ids import fresh_ids
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.ledger.tlog.note import SigningKey
from tripod.team.team import Team
from tripod.trust import actors, keys
from tripod.verify.evidence import collect
from tripod.verify.run import run

HERE = Path(__file__).resolve().parents[2]
TIMES = 300

# Signed before the writer's place is asked for: what is signed does not say where it will stand.
APART = """
import sys
from sample_ledger import ORIGIN, said
from tripod.ledger.actors import sign_actor_drafts
from tripod.ledger.ids import fresh_ids
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.ledger.tlog.note import SigningKey
path, handle, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
key = SigningKey(handle, handle[:1].encode() * 32)
store = SQLiteStore(path)
print("ready", flush=True)
sys.stdin.readline()
for number in range(times):
    drafts = [said(f"{handle} {number}.{part}", actor=handle) for part in range(1 + number % 3)]
    signed = sign_actor_drafts(ORIGIN, drafts, fresh_ids(len(drafts)), key)
    for entry in store.append(signed):
        print(entry.id, flush=True)
"""

# By the acts, as agents do it.
ACTS = """
import sys
from tripod.bus import events as bus
from tripod.chat import writer as chat
from tripod.team.team import Team
root, handle, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Team(root) as team:
    print("ready", flush=True)
    sys.stdin.readline()
    number = 0
    while not times or number < times:
        number += 1
        if number % 4:
            print(bus.publish(team, handle, "done", "low", f"{number}"), flush=True)
        else:
            said = chat.send(team, "side", handle, f"{handle} {number} @all")
            print(f"{handle} {number} @all", flush=True)
"""


def start(program: str, *arguments: str) -> "subprocess.Popen[str]":
    paths = os.pathsep.join((str(HERE), str(HERE.parent)))
    child = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def go(child: "subprocess.Popen[str]") -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def clean(root: str) -> dict[str, int | str]:
    """Nothing is wrong; what the check counted."""
    with collect(root) as evidence:
        report = run(evidence)
    found = [f.message for o in report.outcomes for f in o.findings if f.severity == "failure"]
    assert found == []
    return next(o.coverage for o in report.outcomes if o.check == "writers-authorised")


@pytest.mark.slow
def test_two_who_sign_before_they_wait_for_their_turn(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    with closing(SQLiteStore(path, create=True)) as store:
        store.append([opening()._replace(id=fresh_ids(1)[0][0])])
    children = [start(APART, path, handle, str(TIMES)) for handle in ("ann", "bob")]
    for child in children:
        go(child)
    answered = [child.communicate()[0].split() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    vkeys = {handle: SigningKey(handle, handle[:1].encode() * 32).verifier()
             for handle in ("ann", "bob")}  # fmt: skip
    import orjson

    with closing(SQLiteStore(path)) as store:
        assert faults(store) == []
        entries = list(store.read(1))
        assert sorted(e.id for e in entries) == sorted(one for ids in answered for one in ids)
        for entry in entries:
            assert entry.auth is not None
            stated = actor_statement(orjson.loads(entry.header))
            assert (
                actor_record_problem(parse_actor_record(entry.auth), stated, vkeys[entry.actor])
                is None
            )
    turns = sum(a.actor != b.actor for a, b in pairwise(entries))
    assert turns > 10, "they did not append at once"


@pytest.mark.slow
def test_two_who_act_at_once_and_sign_all_of_it(tmp_path: Path) -> None:
    root = build(str(tmp_path))
    with Team(root) as team:
        for handle in ("ann", "bob"):
            actors.enrol_actor(team, handle, keys.no_passphrase)
        size = team.store.head().size
    children = [start(ACTS, root, handle, str(TIMES)) for handle in ("ann", "bob")]
    for child in children:
        go(child)
    for child in children:
        out, _ = child.communicate()
        assert (len(out.splitlines()), child.returncode) == (TIMES, 0)
    with Team(root) as team:
        acts = list(team.store.read(size))
    assert all(entry.auth for entry in acts)
    assert {entry.actor for entry in acts} == {"ann", "bob"}
    assert clean(root)["signed"] == len(acts) == 2 * TIMES // 4 * (3 + 3)


@pytest.mark.slow
def test_no_kill_loses_what_was_answered_or_leaves_an_entry_without_its_record(
    tmp_path: Path,
) -> None:
    root = build(str(tmp_path))
    with Team(root) as team:
        actors.enrol_actor(team, "ann", keys.no_passphrase)
        size = team.store.head().size
    answered: set[str] = set()
    entries: list[Entry] = []
    for attempt in range(12):
        child = start(ACTS, root, "ann", "0")
        go(child)
        assert child.stdout is not None
        for _ in range(attempt * attempt % 23):
            answered.add(child.stdout.readline().removesuffix("\n"))
        child.kill()
        rest = child.communicate()[0]
        answered |= set(rest.splitlines() if rest.endswith("\n") else rest.splitlines()[:-1])
        with Team(root) as team:
            entries = list(team.store.read(size))
        said = {e.data["name"] for e in entries if e.kind == "bus.published"}
        said |= {e.data["text"]["text"] for e in entries if e.kind == "chat.sent"}
        assert answered <= said
        assert all(entry.auth for entry in entries)
    with Team(root) as team, team.act():
        pass  # what the last one left undone in the files
    assert clean(root)["signed"] == len(entries) > 100
