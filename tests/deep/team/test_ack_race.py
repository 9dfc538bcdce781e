"""Ours and the original acknowledge the same events: of all who try, exactly one did it.

The original looks whether the file is there and renames it into ``processed/`` (spec nbs-compat,
B4); whoever finds it gone has lost. It knows no ledger and takes no lock.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from children import let_go
from story import Story, folder

from tripod.bus import events as bus
from tripod.projections.engine import file_differences
from tripod.team import adoption
from tripod.team.team import Team

HERE = Path(__file__).resolve().parents[3]
EACH = 200
OURS = """
import sys
from tripod.bus import events as bus
from tripod.errors import NotFoundError
from tripod.team.team import Team
print("ready", flush=True)
names = sys.stdin.readline().split()
with Team(sys.argv[1]) as team:
    if sys.argv[2] == "all":
        while any(bus.check(team)):
            print(*(["won"] * bus.ack_all(team)))
    for name in names if sys.argv[2] == "ack" else ():
        try:
            bus.ack(team, name)
            print(name)
        except NotFoundError:
            pass
"""
# It stays close behind the others: it tries each event at about the moment when they do.
ORIGINAL = """
import os, random, sys
queue = sys.argv[1] + "/events/"
print("ready", flush=True)
names = sys.stdin.readline().split()
chance = random.Random(int(sys.argv[2]))
for before, name in zip([None, *names], names):
    while before is not None and os.path.exists(queue + before):
        pass
    for _ in range(chance.randrange(200)):
        os.path.exists(queue + name)
    if chance.random() < 0.4:
        continue
    try:
        os.stat(queue + name)
        os.rename(queue + name, queue + "processed/" + name)
        print(name)
    except FileNotFoundError:
        pass
"""


def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ack", "all"])
def test_one_winner_for_each_acknowledgement(how: str) -> None:
    with folder() as root:
        story = Story(root)
        with story.team() as team, team.act():
            names = [bus.publish(team, "a", "b", "low") for _ in range(EACH)]
        children = [start(OURS, story.root, how), start(ORIGINAL, story.root, 1)]
        children += [start(OURS, story.root, how)]
        let_go(children, " ".join(names))
        answered = [child.communicate()[0].split() for child in children]
        assert [child.returncode for child in children] == [0] * 3
        if how == "ack":
            assert Counter(name for part in answered for name in part) == Counter(names)
            assert answered[0] or answered[2]
        else:
            assert sum(map(len, answered)) == EACH
        assert story.original.pending() == []
        assert story.original.processed() == sorted(names)
        with Team(str(story.root)) as team:
            adoption.sync(team)
            assert adoption.sync(team).entries == 0
            assert list(file_differences(team.source, team.disk)) == []
            entries = list(team.store.read(stream="bus"))
        single = Counter(e.data["name"] for e in entries if e.kind == "bus.acked")
        at_once = sum(e.data["count"] for e in entries if e.kind == "bus.acked-all")
        assert set(single.values()) <= {1}
        assert len(single) + at_once == EACH
        assert len([e for e in entries if "observed" in e.data]) == len(answered[1])


# ``prune`` deletes what was processed; a person with a shell deletes what is pending.
TIDY = """
import os, random, sys
queue = sys.argv[1] + "/events/"
chance = random.Random(2)
print("ready", flush=True)
names = sys.stdin.readline().split()
for name in names:
    where = chance.choice(["", "processed/"])
    try:
        if where and chance.random() < 0.5:
            os.rename(queue + name, queue + where + name)
        os.unlink(queue + where + name)
        print(name)
    except FileNotFoundError:
        pass
"""
WORK = """
import sys
from tripod.bus import events as bus
from tripod.errors import NotFoundError
from tripod.team.team import Team
print("ready", flush=True)
names = sys.stdin.readline().split()
with Team(sys.argv[1]) as team:
    for name in names[::3]:
        try:
            bus.ack(team, name)
        except NotFoundError:
            pass
        bus.publish(team, "c", "d", "low")
        team.refresh()
"""


@pytest.mark.slow
def test_nothing_that_others_delete_comes_back() -> None:
    with folder() as root:
        story = Story(root)
        with story.team() as team, team.act():
            names = [bus.publish(team, "a", "b", "low") for _ in range(EACH)]
        story.run([("sync",)])
        children = [start(WORK, story.root), start(TIDY, story.root), start(WORK, story.root)]
        let_go(children, " ".join(names))
        answered = [child.communicate()[0].split() for child in children]
        assert [child.returncode for child in children] == [0] * 3
        deleted = set(answered[1])
        assert deleted
        with Team(str(story.root)) as team:
            adoption.sync(team)
            assert adoption.sync(team).entries == 0
            assert list(file_differences(team.source, team.disk)) == []
            kinds = Counter(entry.kind for entry in team.store.read())
        assert not deleted & {*story.original.pending(), *story.original.processed()}
        assert kinds["file.displaced"] == 0
