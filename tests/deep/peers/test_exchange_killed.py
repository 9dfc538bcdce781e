"""Killed on the way of a push or a pull: the next one goes on, and everything is there once.

Each step is died at for the first, second or third time that the command comes there, as a fresh
seed says, which is named where a case fails; TRIPOD_SEED repeats it. TRIPOD_TRIALS says at how
many of the three (``make soak``: all of them, one after the other in one team).
"""

import os
import random
from pathlib import Path

import pytest
from children import run_forked
from dying_exchanges import (
    CHILD,
    GIT_DIES,
    PULL,
    PUSH,
    REPLACE,
    await_git,
    repeated_by,
    set_git_traps,
)
from git_repo import Git
from replicas import Clone, Snapshot, place_in

LATEST = 3
"""For which time, at the latest, a step is died at."""
KILLS = int(os.environ.get("TRIPOD_TRIALS", "1"))
SEED = int(os.environ.get("TRIPOD_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
LEAST = 100
STEPS = [
    *(("push", step) for step in (*PUSH, *REPLACE, *GIT_DIES[1:])),
    *(("pull", step) for step in (*PULL, GIT_DIES[0])),
]


class World:
    """Three replicas and their remote; Cleo's record reaches it by Ben alone."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.anna, self.ben, self.cleo = (Clone(folder, name) for name in ("anna", "ben", "cleo"))
        self.bare = Git(self.anna.remote, made=False)
        self.anna.said("init")
        self.anna.said("chat", "create", "live")
        self.anna.said("push")
        for clone in (self.ben, self.cleo):
            clone.said("init", "--from", "origin")
            clone.said("push")
        Git(folder / "side.git", made=False).root.mkdir()
        self.side = Git(folder / "side.git", made=False)
        self.side("init", "--quiet", "--bare")
        set_git_traps(self.anna.remote, folder)
        self.snapshot = Snapshot(folder)

    def begun_again(self) -> "World":
        """The same as it was at first."""
        self.snapshot.put_back()
        for clone in (self.anna, self.ben, self.cleo):
            clone.said("sync")  # its files are copies, which it looks at once
        self.number = 0
        return self

    def record(self) -> None:
        """Have Ben and Cleo record what is new, a long text too; Ben gets Cleo's by another way.

        Ben's is not sealed yet: the pull before it sealed what came.
        """
        for clone in (self.cleo, self.ben):
            self.number += 1
            clone.said("chat", "send", "live", clone.name, f"Tea number {self.number}.")
            clone.said("bus", "publish", clone.name, f"tea-{self.number}", "normal", "t" * 20_000)
            if clone is self.cleo:
                clone.said("push", str(self.side.root))
                self.ben.said("pull", str(self.side.root))

    def redact(self) -> None:
        """Have Ben regret a message that was pushed."""
        secret = f"password {self.number}"
        self.ben.said("chat", "send", "live", "ben", secret)
        self.ben.said("push")
        self.anna.said("pull")
        self.ben.said("redact", "--match", secret, "--reason", "a secret")

    def die(self, clone: Clone, command: str, step: str, times: int) -> bool:
        """Run a command that dies at a step; whether it did."""
        session = self.folder / "session"
        env = {
            "TRIPOD_HOME": str(clone.home),
            "TRIPOD_AS": clone.name,
            "TRIPOD_SESSION": str(session),
            "TRIPOD_DIES": step,
            "GIT_CONFIG_GLOBAL": f"{self.folder}/gitconfig",
        }
        if step in GIT_DIES:
            step = ""
        child = run_forked(CHILD, str(clone.git.root), command, step, str(times), env=env)
        assert child.returncode in (0, -9), (child.returncode, child.stdout, child.stderr)
        if session.exists():
            await_git(session)
            session.unlink()
        return child.returncode != 0

    def check(self) -> None:
        """All that Ben and Cleo recorded is with Anna, once, and the refs there are sound."""
        self.bare("fsck", "--strict", "--no-dangling")
        for clone in (self.ben, self.anna):
            said = [
                line for line in clone.said("chat", "read", "live").splitlines() if "Tea" in line
            ]
            for number in range(1, self.number + 1):
                assert sum(f"Tea number {number}." in line for line in said) == 1, number
            listed = clone.said("log", "--kind", "bus.published", "-n", "1000")
            assert clone.git("status", "--porcelain", "--untracked-files=all") == ""
            done = clone.run("verify")
            assert done.code == 0, done
            for number in range(1, self.number + 1):
                assert listed.count(f" tea-{number}: ") == 1, (number, listed)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world, to begin again in each test."""
    return World(place_in(tmp_path_factory))


@pytest.mark.drawn
@pytest.mark.parametrize(("command", "step"), STEPS)
def test_who_is_killed_in_an_exchange_goes_on_with_the_next(
    made: World, command: str, step: str
) -> None:
    times = random.Random(f"{step} {SEED}").randint(1, LATEST)  # noqa: S311 - deaths, not keys
    with repeated_by(SEED, KILLS):
        kill(made.begun_again(), command, step, times)


def kill(world: World, command: str, step: str, times: int) -> None:
    """Have a command die at a step, each time later if it comes there again."""
    killed, clone = 0, world.ben if command == "push" else world.anna
    while killed < KILLS:
        world.record()
        if step in REPLACE or "eras" in step:
            world.redact()
        if command == "pull":
            world.ben.said("push")
        if world.die(clone, command, step, times):
            world.bare("fsck", "--strict", "--no-dangling")
            clone.said(command)
            killed, times = killed + 1, times % LATEST + 1
        else:
            assert times > 1, "it never comes to that step"
            times = 1  # it comes there less often
        world.anna.said("pull")
        world.check()


def test_so_many_die_in_a_soak() -> None:
    assert len(STEPS) * LATEST >= LEAST
