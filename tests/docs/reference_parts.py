"""Writes the generated parts of the reference pages from the code; the pages' cog blocks call it.

From the pages it is ``tests.docs.reference_parts`` (cog runs at the root), from the tests
``docs.reference_parts``; so it imports nothing of its own folder.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import cleandoc
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

import click

import tripod
from tripod.cli import bus, scribe
from tripod.cli.tree import cli
from tripod.ledger.errors import MalformedError
from tripod.ledger.kinds import base, decisions
from tripod.ledger.kinds.base import Content, Observed
from tripod.ledger.kinds.models import body_fields, fields_of
from tripod.ledger.kinds.registry import KINDS
from tripod.output import DOORS, Codes
from tripod.projections.bus.format import Config
from tripod.projections.engine import PROJECTIONS
from tripod.projections.team.intake import parse_team_config
from tripod.verify.anchors.configuration import parse_configuration
from tripod.verify.anchors.policy import Rules
from tripod.verify.check import lets_accept
from tripod.verify.checks import CHECKS
from tripod.verify.sessions.items import CHANNELS, Way
from tripod.verify.sessions.readers import PLACES, READERS

__all__ = [
    "checks",
    "commands",
    "config_keys",
    "doors",
    "drop_in",
    "kinds",
    "project_keys",
    "sessions",
    "settings",
    "verbs",
]

WIDTH = 88

_CODES = {
    "general": "any other error; refused as things stand",
    "no_team": "no team directory, or no ledger in it",
    "not_found": "what was named is not there",
    "bad_argument": "an argument breaks its rule",
    "duplicate": "dropped: an equal event is pending",
    "damaged": "the database cannot be read as a ledger; a service gave no usable answer",
    "usage": "unknown option, missing argument",
    "malformed": "what was given makes no entry of the decision log",
}
_NAMED = (
    (base.Name, "text, 1 to 4096 characters"),
    (base.Count, "integer from 0 to 2^53-1"),
    (base.Sha256, "64 hex digits"),
    (base.DecisionId, "`D-` and 1 to 16 digits"),
    (decisions.LogName, "a file name that ends in `.md`, without a `/`, at most 200 characters"),
)
_PLAIN = {str: "text", int: "integer", bool: "true or false", object: "any value"}


# Commands --------------------------------------------------------------------------------------


def verbs(
    command: click.Command = cli, name: str = "tripod"
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its whole name, groups before what is in them."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None, f"{name} {inner}"
            yield from verbs(found, f"{name} {inner}")


def commands() -> str:
    """The help of every command, at a fixed width."""
    parts = []
    for name, command in verbs():
        context = click.Context(
            command,
            info_name=name,
            terminal_width=WIDTH,
            max_content_width=WIDTH,
            help_option_names=["-h", "--help"],
        )
        level = "##" if name.count(" ") < 2 else "###"
        parts.append(f"{level} {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    return "\n" + "\n".join(parts) + "\n"


def drop_in(name: str) -> str:
    """What an ``nbs-*`` program says of its use."""
    usage = next(
        program.usage for program in (*bus.PROGRAMS, *scribe.PROGRAMS) if program.name == name
    )
    return f"\n```text\n{usage}\n```\n\n"


# Kinds -----------------------------------------------------------------------------------------


def kinds() -> str:
    """Every kind with its stream, its meaning and the fields of its body."""
    parts = []
    shared: dict[str, type[Any]] = {}
    for kind in KINDS:
        stream = f"`{kind.stream}…`" if kind.stream.endswith("/") else f"`{kind.stream}`"
        table = _fields(body_fields(kind) | {"v": (Literal[1], True)}, shared)
        stream += ". Shared: a peer's entry counts here as well" if kind.merge == "shared" else ""
        parts.append(f"### {kind.name}\n\n{_doc(kind.body)}\n\nStream: {stream}.\n\n{table}")
    parts.append("## Shared parts")
    for part in _closure(shared):
        parts += [f"### {part.__name__}", _doc(part), _fields(fields_of(part), shared)]
    return "\n" + "\n\n".join(parts) + "\n\n"


def tables() -> str:
    """The tables of each projection that has any."""
    owned: dict[str, list[str]] = {}
    for projection in PROJECTIONS:
        owned.setdefault(projection.name, []).extend(f"`{table}`" for table in projection.tables)
    lines = [f"- {name}: {', '.join(tables)}" for name, tables in owned.items() if tables]
    return "\n" + "\n".join(lines) + "\n\n"


def _closure(shared: dict[str, type[Any]]) -> list[type[Any]]:
    """The parts that bodies are made of, those inside them included."""
    known: set[str] = set()
    while known != shared.keys():
        for name in sorted(shared.keys() - known):
            known.add(name)
            _fields(fields_of(shared[name]), shared)
    first = [part.__name__ for part in (Content, Observed)]
    return [shared[name] for name in (*first, *sorted(shared.keys() - set(first)))]


def _fields(fields: Mapping[str, tuple[Any, bool]], shared: dict[str, type[Any]]) -> str:
    rows = [
        f"| `{name}` | {_type(hint, shared)} | {'yes' if is_required else 'no'} |"
        for name, (hint, is_required) in fields.items()
    ]
    return "\n".join(["| field | value | required |", "|---|---|---|", *rows])


def _type(hint: Any, shared: dict[str, type[Any]]) -> str:
    for known, words in _NAMED:
        if hint == known:
            return words
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_type(one, shared) for one in inner if one not in (NoneType, bytes))
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inner)
    if origin is list:
        return f"list of {_type(inner[0], shared)}"
    if origin is dict:
        return f"object of {_type(inner[1], shared)}"
    if hasattr(hint, "__metadata__"):
        (rule,) = hint.__metadata__
        if rule.pattern is not None:
            return f"text of the form `{rule.pattern.replace('|', chr(92) + '|')}`"
        return f"{_type(inner[0], shared)} from {rule.low} to {rule.high}"
    assert is_typeddict(hint), hint
    shared[hint.__name__] = hint
    return f"[{hint.__name__}](#{hint.__name__.lower()})"


# API -------------------------------------------------------------------------------------------

FACES = (
    tripod,
    tripod.bus,
    tripod.chat,
    tripod.decisions,
    tripod.workers,
    tripod.pythia,
    tripod.nova,
    tripod.verify,
)
"""The packages that programs import; each lists in ``__all__`` what it offers."""

METHODS = {"Recorder": ("do", "close"), "Team": ("head", "entries", "refresh", "close")}
"""The methods of a class that are part of the face; those of tuples and dataclasses are not."""


def api() -> str:
    """Every public name with its signature and its docstring; the errors as a tree."""
    parts = []
    for face in FACES:
        parts.append(f"## {face.__name__}\n\n{_manual(face)}")
        for name in face.__all__:
            thing = getattr(face, name)
            if not isinstance(thing, ModuleType) and name != "__version__":
                parts += _described(f"{face.__name__}.{name}", thing)
    parts.append(f"## tripod.errors\n\n{_manual(tripod.errors)}")
    parts.append("\n".join(_error_tree(tripod.TripodError, "")))
    return "\n" + "\n\n".join(parts) + "\n\n"


def _described(name: str, thing: Any) -> Iterator[str]:
    """The section of a public name."""
    yield f"### {name}"
    if isinstance(thing, str):
        yield f"The text `{thing}`."
        return
    if isinstance(thing, type) and issubclass(thing, Exception):
        yield f"{_manual(thing)} Its tree is [below](#tripoderrors)."
        return
    yield f"```text\n{_signature(name.rpartition('.')[2], thing)}\n```"
    yield _manual(thing)
    for method in METHODS.get(thing.__name__, ()):
        yield f"`{_signature(method, getattr(thing, method))}`"
        yield _manual(getattr(thing, method))


def _signature(name: str, thing: Any) -> str:
    """How a function is called, or a class is made: one argument a line where they are many."""
    signature = inspect.signature(thing)
    words = []
    starred = False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            words.append("*")
        hint = parameter.annotation
        typed = "" if hint is parameter.empty else f": {_hint(hint)}"
        default = parameter.default
        value = "" if default is parameter.empty else f" = {default!r}"
        is_rest = parameter.kind is parameter.VAR_POSITIONAL
        stars = "*" if is_rest else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        words.append(f"{stars}{parameter.name}{typed}{value if typed else value.replace(' ', '')}")
    back = signature.return_annotation
    arrow = "" if back is signature.empty or isinstance(thing, type) else f" -> {_hint(back)}"
    start = "async " if inspect.iscoroutinefunction(thing) else ""
    line = f"{start}{name}({', '.join(words)}){arrow}"
    if len(line) <= WIDTH:
        return line
    return f"{start}{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){arrow}"


def _hint(hint: Any) -> str:
    """An annotation as the code has it, with the names of classes alone."""
    text = getattr(hint, "__forward_arg__", hint)
    text = text if isinstance(text, str) else inspect.formatannotation(text)
    text = re.sub(r"ForwardRef\('([^']+)'\)", r"\1", text)
    return re.sub(r"\b(?:tripod|collections|typing)\.(?:\w+\.)*", "", text)


def _manual(thing: Any) -> str:
    """A docstring as Markdown; what it says of arguments and errors becomes lists."""
    text = _doc(thing)
    return re.sub(
        r"^(Args|Attributes|Raises):\n((?:    .*\n?)+)", _listed, text, flags=re.MULTILINE
    )


def _listed(match: re.Match[str]) -> str:
    title = {"Args": "Arguments", "Raises": "Errors"}.get(match[1], match[1])
    joined = re.sub(r"\n {5,}", " ", match[2])
    items = re.sub(r"^    (\w+(?:, \w+)*): ", _item, joined, flags=re.MULTILINE)
    return f"{title}:\n\n{items}"


def _item(match: re.Match[str]) -> str:
    return f"- `{match[1].replace(', ', '`, `')}`: "


def _error_tree(error: type[Exception], indent: str) -> Iterator[str]:
    """An error and those below it that ``tripod.errors`` offers."""
    yield f"{indent}- `{error.__name__}`: {_doc(error).replace(chr(10), ' ')}"
    offered = vars(tripod.errors).values()
    for below in sorted(error.__subclasses__(), key=lambda one: one.__name__):
        if below in offered:
            yield from _error_tree(below, indent + "  ")


# Checks ----------------------------------------------------------------------------------------


def checks() -> str:
    """Every check with the manual that is its module's docstring."""
    parts = []
    for check in CHECKS:
        need = "Required." if check.REQUIRED else "Not required: it cannot make the exit code 3."
        need += "" if lets_accept(check) else " Nobody can accept what it finds."
        parts.append(f"## {check.NAME}\n\n{_doc(check)}\n\n*{need}*")
    return "\n" + "\n\n".join(parts) + "\n\n"


def session_places() -> str:
    """Where each program keeps its sessions."""
    rows = "".join(f"| {name} | `{place}` |\n" for name, place in PLACES.items())
    return f"| program | where its sessions lie |\n|---|---|\n{rows}"


def sessions() -> str:
    """What each reader of recorded sessions knows, and what its program leaves no record of."""
    rows = "".join(
        f"| **{channel}**: {what} | "
        + " | ".join(_way(reader.ways[channel]) for reader in READERS.values())
        + " |\n"
        for channel, what in CHANNELS.items()
    )
    modules = [reader.__module__ for reader in READERS.values()]
    parts = [f"| | {' | '.join(READERS)} |\n|---|{'---|' * len(READERS)}\n{rows}"]
    for name, reader in READERS.items():
        known = [".".join(map(str, version)) for version in (reader.since, reader.until) if version]
        versions = f"{known[0]} to before {known[1]}" if known else "not recorded by the program"
        uses: dict[str, list[str]] = {}
        for tool, use in reader.tools.items():
            uses.setdefault(use.channel, []).append(f"`{tool}`")
        found = [f"| {channel} | {', '.join(tools)} |" for channel, tools in uses.items()]
        place = import_module(reader.__module__)
        first = modules.index(reader.__module__) == [*READERS].index(name)  # else it is said above
        manual = (inspect.getdoc(place) or "").partition("Pure.")[2] if first else _doc(reader)
        parts += [
            f"\n## {name}\n\n{manual.strip()}\n",
            f"\nVersions: {versions}.\n",
            *(["\n| channel | tools |\n|---|---|\n" + "\n".join(found) + "\n"] if found else []),
        ]
    return "".join(parts)


def _way(way: Way) -> str:
    """One cell of the table of channels: whether a program records what comes by one."""
    if way.within is not None:
        return f"as {way.within}"
    if way.recorded == "recorded":
        return f"from {'.'.join(map(str, way.since))}" if way.since else "yes"
    return {"never": "**never**", "not known": "**not known**", "no way in": "-"}[way.recorded]


def _doc(thing: object) -> str:
    """A docstring as Markdown: it writes code between two backticks where Markdown takes one."""
    text = cleandoc(thing.__doc__ or "")
    text = re.sub(r"::\n\n((?:    .*\n|\n)+)", _block, text + "\n").strip()
    return re.sub(r"(?<!`)``(?!`)([^`]+)``(?!`)", r"`\1`", text)


def _block(match: re.Match[str]) -> str:
    lines = match[1].rstrip("\n").splitlines()
    return ":\n\n```text\n" + "\n".join(line.removeprefix("    ") for line in lines) + "\n```\n\n"


# Exit codes and configuration ------------------------------------------------------------------


def doors() -> str:
    """What each number means at each door."""
    names = [
        f"`{name}`" if name.startswith("nbs-") else f"`tripod {name}`" if name else "other verbs"
        for name in DOORS
    ]
    rows = [f"| what happened | {' | '.join(names)} |", "|---|" + "--:|" * len(names)]
    rows.append(f"| done; for `verify`: clean |{' 0 |' * len(names)}")
    for field in Codes._fields:
        codes = " | ".join(str(getattr(codes, field)) for codes in DOORS.values())
        rows.append(f"| {_CODES[field]} | {codes} |")
    return "\n" + "\n".join(rows) + "\n\n"


def config_keys() -> list[str]:
    """The keys of ``config.yaml`` as people write them."""
    return [name.replace("_", "-") for name in Config._fields]


def settings() -> str:
    """Each key with its default and what it takes."""
    rows = ["| key | default | value |", "|---|---|---|"]
    for key in config_keys():
        default = getattr(Config(), key.replace("-", "_"))
        # The reader says what it expects when it is given what no key takes.
        (warning,) = parse_team_config(f"{key}: ?".encode())[1]
        takes = warning.message.removeprefix("the value is not ").partition(";")[0]
        rows.append(f"| [`{key}`](#{key}) | `{default}` | {takes} |")
    return "\n" + "\n".join(rows) + "\n\n"


def project_keys() -> str:
    """Each key of ``tripod.toml`` and ``[tool.tripod]`` with what it takes."""
    rows = ["| key | value |", "|---|---|"]
    policy = [f"policy.{name}" for name in Rules.__dataclass_fields__]
    for name in (*policy, "select", "formats"):
        key = name.replace("_", "-")
        rows.append(f"| `{key}` | {_takes(key)} |")
    return "\n" + "\n".join(rows) + "\n\n"


def _takes(key: str) -> str:
    """What the reader says it expects, when it is given what the key does not take."""
    for wrong in ("'?'", "3"):
        try:
            parse_configuration("tripod.toml", f"{key} = {wrong}".encode())
        except MalformedError as error:
            _, is_said, takes = str(error).partition("the value is not ")
            if is_said:
                return takes.partition(";")[0]
    raise AssertionError(f"{key} takes anything")
