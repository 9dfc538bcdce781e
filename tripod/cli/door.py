"""A door: a group of commands with one table of exit codes (design section 11)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click

from tripod.inputs import whole_number

MAX_NUMBER = 2**53 - 1  # what canonical JSON can hold, and SQLite and every reader of ours
_SHOWN = 40  # characters of a bad value that a message repeats


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
        from tripod.projections.chat.format import valid_handle

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
        number = whole_number(value, self.least, self.most)
        if number is None:
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
                raise click.UsageError(
                    f"{error.format_message()} A text that begins with - goes behind a --.", ctx
                ) from error
            raise


class Door(click.Group):
    """A group of commands that says which there are where none is given."""

    command_class = Verb

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before the command's name."""
        if not args:
            names = ", ".join(self.list_commands(ctx))
            raise click.UsageError(f"which command? There are {names}.", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(
                f"{error.format_message()} Options stand behind the command's name.", ctx
            ) from error


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
        help="Project or team directory; by default TRIPOD_LEDGER's, or found upwards from here.",
    )(function)
