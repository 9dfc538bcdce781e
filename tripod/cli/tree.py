"""The command ``tripod`` as click sees it: commands are built from the table when called."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tripod.cli.arguments import TripodCall
from tripod.cli.commands import (
    FLAG,
    RAW,
    READ_ONLY_OPTION,
    SECTIONS,
    TOP,
    ChoiceParam,
    CommandGroup,
    NumberParam,
    Param,
    ParamKind,
    Verb,
    first_sentence,
)
from tripod.ledger.files import READ_ONLY

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
_BEHIND = f"{__name__}.behind"  # where a context keeps how many words stand behind its `--`
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class TreeParamType(click.ParamType):  # type: ignore[type-arg] # generic in newer releases alone
    """A kind of the table as a type of click."""

    def __init__(self, kind: ParamKind) -> None:
        self.kind = kind
        self.name = "integer" if isinstance(kind, NumberParam) else "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the value by its kind; a default has been read already."""
        if not isinstance(value, str):
            return value
        try:
            return self.kind.read(value)
        except ValueError as error:
            return self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The words of a choice; for a path, what the shell knows."""
        del ctx, param
        from click.shell_completion import CompletionItem  # only a shell that completes asks

        if isinstance(self.kind, ChoiceParam):
            return [CompletionItem(word) for word in self.kind.words if word.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file")] if self.kind is RAW else []


def _parameter(param: Param) -> click.Parameter:
    """An argument or option of the table as click's."""
    if not param.names:
        return click.Argument(
            [param.name],
            type=TreeParamType(param.kind),
            required=not param.spelling.startswith("["),
            nargs=-1 if param.many else 1,
            metavar=param.spelling,
        )
    names = [*param.names, param.name]
    if param.kind is FLAG:
        default = None if "/" in names[0] else False
        return click.Option(names, is_flag=True, default=default, help=param.help)
    own: dict[str, Any] = (
        {} if param.default is None else {"default": param.default, "show_default": True}
    )
    return click.Option(
        names,
        type=TreeParamType(param.kind),
        help=param.help,
        metavar=param.metavar,
        **own,
        required=param.required,
        multiple=param.many,
        envvar=param.env,
    )


class TreeCommand(click.Command):
    """A command whose refusal of an option says how to give a text that begins with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; an option that is not there may be a text that was meant as one."""
        if "--" in args:
            ctx.meta[_BEHIND] = len(args) - args.index("--") - 1
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if any(isinstance(param, click.Argument) for param in self.params):
                message = f"{error.format_message()} Put -- before a text that starts with a dash."
                raise click.UsageError(message, ctx) from error
            raise


def _command(verb: Verb, line: str = "") -> TreeCommand:
    """The command of a verb; ``line`` is the first sentence of its page where ``TOP`` has that."""
    page = "\n\n".join(part for part in (line, verb.page) if part)
    params = [_parameter(param) for param in verb.params]

    def run(**values: Any) -> int | None:
        call = TripodCall(verb, values)
        call.behind = click.get_current_context().meta.get(_BEHIND)
        return call.run()

    return TreeCommand(verb.name, params=params, help=page, callback=run)


class TreeGroup(click.Group):
    """A group of commands, listed under titles, each with the first sentence of its page."""

    def __init__(
        self,
        name: str,
        page: str,
        titles: Mapping[str, Mapping[str, str]],
        build: Callable[[str], click.Command],
        params: list[click.Parameter] | None = None,
    ) -> None:
        super().__init__(name, help=page, context_settings=SETTINGS, params=params)
        self._titles, self._build = titles, build

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        del ctx
        return [name for lines in self._titles.values() for name in lines]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build a command."""
        return self._build(cmd_name) if cmd_name in self.list_commands(ctx) else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before the command's name."""
        if not args and not ctx.resilient_parsing:  # a shell that completes asks so
            names = ", ".join(self.list_commands(ctx))
            raise click.UsageError(f"which command? There are {names}.", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            message = f"{error.format_message()} Options stand after the command's name."
            raise click.UsageError(message, ctx) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that is not known is refused with the names that are like it."""
        names = self.list_commands(ctx)
        if args[0] not in names:
            from tripod.projections.text import text_meant

            message = f"No such command {args[0]!r}{text_meant(args[0], names)}"
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in whole sentences."""
        del ctx
        for title, lines in self._titles.items():
            with formatter.section(title):
                formatter.write_dl(list(lines.items()))


def _first_level(name: str) -> click.Command:
    """Import and build a command or group of the first level."""
    top = TOP[name]
    found = importlib.import_module(f"tripod.cli.{top.module}").COMMANDS[name]
    if isinstance(found, Verb):
        return _command(found, top.line)
    assert isinstance(found, CommandGroup)
    verbs = {verb.name: verb for verb in found.verbs if verb.page}
    lines = {verb.name: first_sentence(verb.page) for verb in verbs.values()}
    page = f"{top.line}\n\n{found.page}"
    return TreeGroup(name, page, {"Commands": lines}, lambda verb: _command(verbs[verb]))


@contextmanager
def _nothing_written() -> Iterator[None]:
    before = os.environ.get(READ_ONLY)
    os.environ[READ_ONLY] = "1"
    try:
        yield
    finally:
        os.environ.pop(READ_ONLY)
        if before is not None:
            os.environ[READ_ONLY] = before


def _forbid_writing(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.with_resource(_nothing_written())


_READ_ONLY = click.Option(
    [READ_ONLY_OPTION],
    is_flag=True,
    expose_value=False,
    callback=_forbid_writing,
    help=f"Change nothing: only commands that look are done. The variable {READ_ONLY}=1 does the "
    "same, also for the nbs-* programs.",
)

cli = click.version_option(package_name="tripod-ledger", prog_name="tripod")(
    TreeGroup(
        "tripod",
        "Keep one tamper-evident ledger of what a team of agents does, and prove its rules.",
        {
            title: {top.name: top.line for top in TOP.values() if top.section == section}
            for section, title in SECTIONS.items()
        },
        _first_level,
        params=[_READ_ONLY],
    )
)
