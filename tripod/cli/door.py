"""A door: a group of commands with one table of exit codes (design section 11)."""

from __future__ import annotations

import importlib
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import click

from ledger.errors import (
    ConflictError,
    LedgerDamagedError,
    LedgerError,
    NoLedgerError,
    TooLargeError,
    UnwritableError,
)
from ledger.places import SPOOL
from ledger.writing import is_malformed, pages_damaged
from tripod.cli.output import remark
from tripod.errors import (
    BadArgumentError,
    DuplicateDroppedError,
    NoTeamError,
    NotFoundError,
    RefusedError,
    TripodError,
    UnreachableError,
)
from tripod.team import DATABASE, Team, find_team

__all__ = [
    "DOORS",
    "HANDLE",
    "TEXT",
    "Codes",
    "Door",
    "LazyGroup",
    "Number",
    "code_for",
    "opened",
    "readable",
    "team_option",
    "text_argument",
]

MAX_INPUT = 1024 * 1024
MAX_WARNINGS = 20
MAX_NUMBER = 2**53 - 1  # what canonical JSON can hold, and SQLite and every reader of ours
_SHOWN = 40  # characters of a bad value that a message repeats


class Codes(NamedTuple):
    """Exit codes of a door; every number is in its documentation."""

    general: int
    no_team: int
    not_found: int
    bad_argument: int
    duplicate: int
    damaged: int
    usage: int


DOORS: dict[str, Codes] = {
    "bus": Codes(1, 2, 3, 4, 5, 1, 4),
    "chat": Codes(1, 2, 2, 4, 1, 1, 4),
    "scribe": Codes(1, 2, 2, 1, 1, 1, 1),
    "worker": Codes(1, 2, 2, 4, 1, 1, 4),
    "": Codes(1, 1, 1, 2, 1, 3, 2),
}
"""By the door's name; '' stands for all other verbs."""


def code_for(error: Exception, codes: Codes) -> int:
    """The exit code with which a door reports an error."""
    table: tuple[tuple[type[Exception], int], ...] = (
        (BadArgumentError, codes.bad_argument),
        (TooLargeError, codes.bad_argument),
        (NoTeamError, codes.no_team),
        (NoLedgerError, codes.no_team),
        (NotFoundError, codes.not_found),
        (DuplicateDroppedError, codes.duplicate),
        (LedgerDamagedError, codes.damaged),
        (UnreachableError, codes.damaged),
        (RefusedError, codes.general),
        (ConflictError, codes.general),
        (UnwritableError, codes.general),
        (LedgerError, codes.general),
        (TripodError, codes.general),
    )
    return next((code for kind, code in table if isinstance(error, kind)), codes.general)


class Text(click.ParamType):  # type: ignore[type-arg] # generic in newer releases alone
    """A text that can be written as UTF-8; other bytes reach Python as halves of surrogates."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give the text as it is, or refuse it."""
        try:
            value.encode()
        except UnicodeEncodeError as error:
            self.fail(f"is not UTF-8 (character {error.start + 1})", param, ctx)
        return value


class Handle(Text):
    """Somebody's name: one word, without what the files of the team use as punctuation."""

    name = "handle"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give the handle as it is, or refuse it."""
        from projections.formats.chat import valid_handle

        problem = valid_handle(super().convert(value, param, ctx))
        if problem is not None:
            self.fail(problem.removeprefix("handle: "), param, ctx)
        return value


class Number(click.ParamType):  # type: ignore[type-arg] # the same
    """A whole number in decimal digits, from ``least`` to ``most``."""

    name = "integer"

    def __init__(self, least: int = 0, most: int = MAX_NUMBER) -> None:
        self.least = least
        self.most = most

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Give the number, or refuse what is none."""
        if isinstance(value, int):
            return value
        number = int(value) if re.fullmatch("[0-9]{1,16}", value) else -1
        if not self.least <= number <= self.most:
            shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
            rule = f"is no whole number from {self.least} to {self.most}"
            self.fail(f"{shown!r} {rule}", param, ctx)
        return number


TEXT = Text()
HANDLE = Handle()


class Verb(click.Command):
    """A command whose refusal of an option says how a text that begins with - is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; an option that is not there may be a text that was meant as one."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if any(isinstance(param, click.Argument) for param in self.params):
                message = f"{error.format_message()} A text that begins with - goes behind a --."
                raise click.UsageError(message, ctx) from error
            raise


class Door(click.Group):
    """A group of commands that says which there are where none is given."""

    command_class = Verb

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before the command's name."""
        if not args:
            names = ", ".join(self.list_commands(ctx))
            message = f"which command? There are {names}."
            raise click.UsageError(message, ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            message = f"{error.format_message()} Options stand behind the command's name."
            raise click.UsageError(message, ctx) from error


class LazyGroup(Door):
    """A door whose commands are imported when they are asked for.

    ``commands_at`` maps a command's name to ``module:attribute``; agents call hot commands
    hundreds of times and should not pay for the others.
    """

    def __init__(self, *args: Any, commands_at: dict[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which they are documented."""
        return [*self.commands_at, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        at = self.commands_at.get(cmd_name)
        if at is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = at.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


def team_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option that every command has which works on a team."""
    return click.option(
        "--team",
        "-C",
        "team_path",
        metavar="DIR",
        help="Project or team directory; found upwards from here by default.",
    )(function)


@contextmanager
def readable(root: str) -> Iterator[None]:
    """Where the database holds what nobody can read, say so; what is wrong is for ``verify``.

    A fault of our own looks the same from here, so the message leaves that open.

    Raises:
        LedgerDamagedError: reading the ledger in ``root`` ran into something unreadable.
    """
    try:
        yield
    except LedgerDamagedError as error:
        if root in str(error):
            raise
        message = f"{root}: {error}"
        raise LedgerDamagedError(message) from error
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise LedgerDamagedError(_unreadable(root, error)) from error
        message = f"{root}: another program has held the database for 30 s; try again"
        raise UnwritableError(message) from error
    except (sqlite3.DatabaseError, *_MISREAD) as error:
        if is_malformed(error):
            raise pages_damaged(error, f"{root}/{DATABASE}") from error
        raise LedgerDamagedError(_unreadable(root, error)) from error


_MISREAD = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
"""What code that trusts its rows raises over rows that do not deserve it."""


def _unreadable(root: str, error: Exception) -> str:
    return (
        f"{root}: the ledger cannot be read ({type(error).__name__}: {error}); "
        f"`tripod verify {root}` names what is wrong in it. If it finds nothing, this is a "
        "mistake in tripod: please report it"
    )


@contextmanager
def opened(path: str | None) -> Iterator[Team]:
    """A team for the length of a command; its warnings are said at the end."""
    if path and not os.path.isdir(path):
        what = "a file, no folder" if os.path.lexists(path) else "not there"
        message = f"--team: {path!r} is {what}: give the project or its team directory"
        raise NoTeamError(message)
    root = find_team(path)
    with readable(root), _begun(root) as team:
        try:
            _look_after_workers(team)
            yield team
        finally:
            for warning in team.warnings[:MAX_WARNINGS]:
                remark(f"warning: {warning}")
            if len(team.warnings) > MAX_WARNINGS:
                more = len(team.warnings) - MAX_WARNINGS
                remark(f"warning: and {more} more; `tripod verify` tells all")
            if team.healed:
                remark(
                    f"healed: the files lacked {team.healed} recorded entries (a writer was "
                    "stopped before it wrote them); they were written now"
                )


def _look_after_workers(team: Team) -> None:
    """What became of programs at work is found out by whoever gives the next command."""
    left: list[str] = []
    try:
        found = team.store.db.execute("SELECT 1 FROM workers WHERE open = 1 LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        return  # tables of an earlier version: the act makes them anew
    with suppress(OSError):
        left = os.listdir(f"{team.root}/{SPOOL}")
    if found or left:
        from tripod.worker import look_after

        try:
            look_after(team)
        except (UnwritableError, RefusedError) as error:
            team.warnings.append(f"what became of the workers was not recorded: {error}")


def _begun(root: str) -> Team:
    """A team whose ledger holds something: an empty file is not filled in passing."""
    path = f"{root}/{DATABASE}"
    if os.path.getsize(path):
        team = Team(root)
        try:
            holds = team.store.db.execute("SELECT 1 FROM head").fetchone() is not None
        except BaseException:
            team.close()
            raise
        if holds:
            return team
        team.close()
    message = (
        f"{path} holds no entry. If a ledger stood here, put its backup back; "
        "if not, `tripod init` begins one"
    )
    raise LedgerDamagedError(message)


def text_argument(text: str | None, file: str | None, what: str) -> str:
    """A text given as argument, in a file, or on standard input (``--file -``), at most 1 MiB.

    Raises:
        BadArgumentError: both or more than 1 MiB are given, or the file cannot be read as UTF-8.
    """
    if file is None:
        return text or ""
    if text is not None:
        message = f"{what}: given twice, as argument and by --file; give one of them"
        raise BadArgumentError(message)
    try:
        data = _input_bytes(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"{what}: --file {file!r} cannot be read: {reason}"
        raise BadArgumentError(message) from error
    if len(data) > MAX_INPUT:
        message = (
            f"{what}: --file {file!r} holds more than {MAX_INPUT} bytes; "
            "put it where the others can read it, and send its path"
        )
        raise BadArgumentError(message)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        message = f"{what}: --file {file!r} is not UTF-8 (byte {error.start + 1})"
        raise BadArgumentError(message) from error


def _input_bytes(file: str) -> bytes:
    if file != "-":
        with open(file, "rb") as stream:
            return stream.read(MAX_INPUT + 1)
    if sys.stdin is None:
        message = "standard input is closed"
        raise OSError(message)
    return sys.stdin.buffer.read(MAX_INPUT + 1)
