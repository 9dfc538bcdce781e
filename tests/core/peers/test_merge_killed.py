"""Killed on the way of a merge: the next one goes on, and everything is here once."""

from pathlib import Path

import pytest
from children import run_forked
from dying_merges import MERGE
from peering import Replica

CHILD = """
import sys
from dying_merges import die_in_merge
from tripod.peers import merge
from tripod.team.team import Team
from tripod.verify.export import ExportFiles

root, record, step, times = sys.argv[1:]
merge.BATCH = 4
with Team(root) as team:
    die_in_merge(step, int(times))
    print(merge.merge_record(team, ExportFiles(record)))
"""


@pytest.mark.drawn
@pytest.mark.parametrize("step", MERGE)
def test_who_is_killed_in_a_merge_goes_on_with_the_next(tmp_path: Path, step: str) -> None:
    ann = Replica(tmp_path / "ann", "ann")
    bob = Replica(tmp_path / "bob", "bob", ann.team_id)
    bob.say("A secret of Bob's that he regrets.")
    ann.merge(bob)
    for number in range(8):
        bob.say(f"Tea number {number}.")
    bob.redact("secret")
    record = bob.record()
    killed = 0
    for times in (1, 2, 3):
        child = run_forked(CHILD, ann.root, record.directory, step, str(times))
        killed += child.returncode != 0
        assert child.returncode in (0, -9), child.stderr
    assert killed, "it never came to that step"
    done = ann.merge(record)
    assert done.problem == ""
    assert ann.kept().items() >= bob.own(done.sealed).items()
    ann.say("The next act writes what is left to be written.")
    assert [len(ann.says(f"number {number}.")) for number in range(8)] == [1] * 8
    assert ann.says("secret") == []
    assert b"secret" not in b"".join(path.read_bytes() for path in ann.files())
    assert ann.findings() == []
    size = ann.size()
    assert ann.merge(record).taken == 0
    assert ann.size() == size
