"""Several at once: an event is acknowledged by exactly one, ids and lines are never given twice."""

import subprocess
import sys
from pathlib import Path

import pytest
from children import let_go
from story import Story

from tripod.bus import events
from tripod.chat import reader as chat_read
from tripod.decisions import reader as decisions_read
from tripod.projections.engine import file_differences
from tripod.team import adoption
from tripod.team.team import Team

HERE = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from tripod.bus import events as bus
from tripod.chat import writer as chat
from tripod.decisions import writer as scribe
from tripod.errors import NotFoundError
from tripod.team.team import Team
root, act = sys.argv[1:3]
print("ready", flush=True)
names = sys.stdin.readline().split()
with Team(root) as team:
    if act == "ack":
        for name in names:
            try:
                bus.ack(team, name)
                print(name)
            except NotFoundError:
                pass
    elif act == "log":
        for _ in range(10):
            print(scribe.log(team, scribe.DecisionRequest("T", ["ann"], "r")).id)
    else:
        for _ in range(10):
            print(chat.send(team, "live", "ann", "x").number)
"""


def together(root: Path, act: str, names: list[str]) -> list[list[str]]:
    """What four processes were answered that began at the same moment."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(root), act],
            cwd=HERE.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    let_go(children, " ".join(names))
    answered = [child.communicate()[0].split() for child in children]
    assert [child.returncode for child in children] == [0] * 4
    return answered


@pytest.mark.slow
def test_an_event_is_acknowledged_by_exactly_one(tmp_path: Path) -> None:
    story = Story(tmp_path)
    with story.team() as team:
        names = [events.publish(team, "a", "b", "low") for _ in range(20)]
    answered = together(story.root, "ack", names)
    assert sorted(name for part in answered for name in part) == sorted(names)
    assert story.original.pending() == []
    assert story.original.processed() == sorted(names)


@pytest.mark.slow
def test_ids_and_numbers_are_given_once(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.run([("create", "live")])
    ids = [item for part in together(story.root, "log", []) for item in part]
    assert len(set(ids)) == 40
    numbers = [int(item) for part in together(story.root, "send", []) for item in part]
    assert sorted(numbers) == list(range(40))
    with Team(str(story.root)) as team:
        assert decisions_read.count(team) == 40
        assert len(chat_read.messages(team, "live")) == 40
        assert adoption.sync(team).entries == 0
        assert list(file_differences(team.source, team.disk)) == []
