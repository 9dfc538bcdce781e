"""Runs ``tripod`` within this process, as a program is run: arguments in, code and bytes out."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import click
import pytest

from tripod.cli import main, nbs
from tripod.cli.tree import cli
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.team.team import Team
from tripod.trust.seal import new_sealing_key

__all__ = [
    "CODES",
    "TRIPOD",
    "USAGE",
    "Done",
    "begin",
    "commands",
    "door_of",
    "keyed",
    "run",
    "run_as",
    "state",
]

TRIPOD = str(Path(sys.executable).with_name("tripod"))
"""The program, where a process of its own is wanted."""

USAGE = {"bus": 4, "chat": 4, "scribe": 1, "worker": 4}
"""The code of a wrong argument, by the first word; 2 for all others (design section 11)."""

CODES = {
    "bus": {0, 1, 2, 3, 4, 5},
    "chat": {0, 1, 2, 3, 4},
    "scribe": {0, 1, 2, 3},
    "worker": {0, 1, 2, 4},
}
"""Every code that a door documents; 0 to 3 for all others."""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: bytes
    err: str


def door_of(arguments: tuple[str, ...]) -> str:
    """The door that a command goes through; '' where it has no table of its own."""
    return arguments[0] if arguments and arguments[0] in CODES else ""


@contextmanager
def _streams(given: bytes) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    old = sys.stdin, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    sys.stdin = io.TextIOWrapper(io.BytesIO(given), "utf-8")
    sys.stdout, sys.stderr = out, err
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = old


def _bytes_of(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()


def run(folder: Path, *arguments: str, given: bytes = b"") -> Done:
    """Run one command in ``folder`` with ``given`` on its standard input."""
    return _ended(folder, lambda: main(arguments), given)


def run_as(name: str, folder: Path, *arguments: str, given: bytes = b"") -> Done:
    """The same, by a drop-in command such as ``nbs-bus``."""
    with mock.patch.object(sys, "argv", [name, *arguments]):
        return _ended(folder, getattr(nbs, name.replace("-", "_")), given)


def _ended(folder: Path, work: Callable[[], None], given: bytes) -> Done:
    before = Path.cwd()
    os.chdir(folder)
    try:
        with _streams(given) as (out, err):
            code: object = None
            try:
                work()
            except SystemExit as left:
                code = left.code
            return Done(_code(code), _bytes_of(out), _bytes_of(err).decode())
    finally:
        os.chdir(before)


def _code(code: object) -> int:
    assert isinstance(code, int), f"no exit code but {code!r}"
    return code


def begin(folder: Path) -> Path:
    """Make a team with a chat, a message, a decision and a pending event in ``folder``."""
    for arguments in (
        ("init",),
        ("chat", "create", "live"),
        ("chat", "send", "live", "ann", "let us use files"),
        ("scribe", "log", "Files", "-p", "ann", "-r", "They last", "--ref", "live.chat:~L7"),
        ("bus", "publish", "ann", "task-complete", "high", "all of it"),
    ):
        done = run(folder, *arguments)
        assert done.code == 0, done.err
    return folder


def keyed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same in a folder ``project``, whose ledger has a key; its home is beside it."""
    monkeypatch.setenv("TRIPOD_HOME", str(folder / "home"))
    project = folder / "project"
    project.mkdir()
    begin(project)
    with Team(f"{project}/.nbs") as team:
        new_sealing_key(team)
    return project


def state(folder: Path) -> tuple[list[bytes], dict[str, bytes]]:
    """What is recorded, and every file of the team but the database's own."""
    team = folder / ".nbs"
    db = read_only(str(team / "ledger.db"))
    try:
        entries = [entry.header for entry in SQLiteReader(db).read()]
    finally:
        db.close()
    files = {
        str(path.relative_to(team)): path.read_bytes()
        for path in team.rglob("*")
        if path.is_file() and "ledger.db" not in path.name and path.suffix != ".lock"
    }
    return entries, files


def commands(
    group: click.Group = cli, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command there is: the words that name it, and the command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), command
