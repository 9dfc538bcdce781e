"""Clones of one repository with a replica each, for tests: made by git, with keys of their own."""

from __future__ import annotations

import os
from atexit import register
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import mkdtemp
from unittest import mock

import pytest
from doors.inside import Done, run
from git_repo import Git

from tripod.ledger.locator import database_of
from tripod.peers.replica import name_team, replica_of
from tripod.team.team import Team
from tripod.trust.seal import seal
from tripod.verify.peers.refs import OWN, REMOTES

__all__ = [
    "Clone", "Snapshot", "begun", "begun_replica", "joined_replica", "name_of", "place_in",
    "place_with_home", "pushed_replica", "replica_in",
]  # fmt: skip


def begun(clone: Clone) -> Clone:
    """A clone in which a team is begun, with a chat, and pushed."""
    clone.said("init")
    clone.said("chat", "create", "live")
    clone.said("push")
    return clone


def replica_in(clone: Clone) -> tuple[str, str]:
    """The team and the name of a clone's replica."""
    with clone.team() as team:
        found = replica_of(team.store)
    assert found is not None
    return found


def name_of(clone: Clone) -> str:
    """The name of a clone's replica."""
    return replica_in(clone)[1]


class Snapshot:
    """What was made once in a folder, to be put back there for each test: clones name their paths.

    To make a team of three clones takes twenty times as long.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the folder as it is now, beside it."""
        self.folder, self._kept = folder, folder.with_name(f"{folder.name}-kept")
        copytree(folder, self._kept, symlinks=True)

    def put_back(self, patch: pytest.MonkeyPatch | None = None) -> Path:
        """Have the folder be as it was, whatever became of it; give it.

        With a ``patch`` the keys in its ``home`` are those of the test.
        """
        rmtree(self.folder)
        copytree(self._kept, self.folder, symlinks=True)
        if patch is not None:
            patch.setenv("TRIPOD_HOME", f"{self.folder}/home")
        return self.folder


def place_in(factory: pytest.TempPathFactory) -> Path:
    """An empty folder, with room beside it for a snapshot."""
    place = factory.mktemp("made") / "place"
    place.mkdir()
    return place


@contextmanager
def place_with_home(factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same, for what is made here with its keys in ``home``."""
    place = place_in(factory)
    with mock.patch.dict(os.environ, TRIPOD_HOME=f"{place}/home"):
        yield place


@cache
def _begun_remote() -> str:
    """A bare repository with a commit, which most remotes begin as copies of."""
    place = Path(mkdtemp(prefix="tripod-remote-"))
    register(rmtree, place, ignore_errors=True)
    seed = Git(place / "seed")
    seed.commit("src/main.py", b"print()\n")
    seed("clone", "--quiet", "--bare", str(seed.root), str(place / "remote.git"))
    return str(place / "remote.git")


class Clone:
    """A clone at ``git.root`` of the bare repository ``remote``, with its user's own home."""

    def __init__(self, folder: Path, name: str, *, home: Path | None = None) -> None:
        """The clone ``folder/name``; where it is missing, it is made of ``folder/remote.git``."""
        self.name, self.home = name, home or folder / f"home-{name}"
        self.remote = folder / "remote.git"
        self.git = Git(folder / name, made=False)
        if self.git.root.exists():
            return
        if not self.remote.exists():
            copytree(_begun_remote(), self.remote)
        self.git.root.mkdir()
        self.git("clone", "--quiet", str(self.remote), ".")

    def elsewhere(self, root: Path, home: Path | None = None) -> Clone:
        """The same user in another work tree, or in another clone with another home."""
        there = copy(self)
        there.git, there.home = Git(root, made=False), home or self.home
        return there

    def copied(self, folder: Path, *, keys: bool = True) -> Clone:
        """The whole disk again, in ``folder``: the clone and its ledger; the user's ``keys``."""
        twin = self.elsewhere(folder / "copy", folder / "home-copy")
        copytree(self.git.root, twin.git.root)
        if keys:
            copytree(self.home, twin.home)
        return twin

    @property
    def root(self) -> Path:
        """The team directory."""
        return self.git.root / ".nbs"

    @property
    def database(self) -> Path:
        """Where the ledger lies."""
        return Path(database_of(str(self.root)))

    @contextmanager
    def at_home(self) -> Iterator[None]:
        """With the keys and the handle of this clone's user."""
        with mock.patch.dict(os.environ, TRIPOD_HOME=str(self.home), TRIPOD_AS=self.name):
            yield

    def run(self, *words: str) -> Done:
        """A command of ``tripod``, as this clone's user runs it."""
        with self.at_home():
            return run(self.git.root, *words)

    def said(self, *words: str) -> str:
        """What a command prints that must succeed."""
        done = self.run(*words)
        assert done.code == 0, done
        return done.out.decode()

    def refused(self, *words: str, code: int = 1) -> str:
        """What a command prints, errors first, that must fail."""
        done = self.run(*words)
        assert done.code == code, done
        return done.err + done.out.decode()

    def decides(self, title: str, *ref: str) -> None:
        """Say something in the chat ``live``; log a decision that refers to it, or to ``ref``."""
        self.said("chat", "send", "live", self.name, f"shall we: {title}")
        words = ("-p", self.name, "-r", "So.", *(ref or ("--ref", "last")))
        self.said("scribe", "log", title, *words)

    @contextmanager
    def team(self) -> Iterator[Team]:
        """The team, opened."""
        with self.at_home(), Team(self.root) as team:
            yield team

    def keep(self) -> str:
        """Seal, and write the record to this replica's ref; give the replica's name."""
        with self.team() as team:
            name = name_team(team)[1]
            seal(team, "asked")
            assert team.warnings == []
        return name

    def push(self) -> str:
        """Keep the record, and give it to the remote by git alone."""
        name = self.keep()
        self.git("push", "--quiet", "--force", "origin", f"{OWN}{name}:{OWN}{name}")
        return name

    def fetch(self) -> None:
        """Fetch the records of the remote by git alone."""
        self.git("fetch", "--quiet", "origin", f"+refs/tripod/*:{REMOTES}origin/*")


def begun_replica(folder: Path, name: str) -> Clone:
    """A clone in which a team was begun, with a chat."""
    clone = Clone(folder, name)
    clone.said("init", "--project", "shop")
    clone.said("chat", "create", "live")
    return clone


def joined_replica(folder: Path, name: str) -> Clone:
    """A clone that joined the team of the remote."""
    clone = Clone(folder, name)
    clone.said("init", "--from", "origin")
    return clone


def pushed_replica(folder: Path, name: str) -> Clone:
    """A clone with a replica that said something, and pushed its record."""
    clone = begun_replica(folder, name)
    clone.said("chat", "send", "live", name, "hello")
    clone.push()
    return clone
