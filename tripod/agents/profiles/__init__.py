"""How programs are run and how they answer: data, in one YAML file a program.

``claude`` ships with us; any other program needs no profile (its words are its command line), or
a file of its own::

    argv: [my-agent, --quiet]          # how it is run, word by word
    output: text                       # text, json or claude-stream-json
    env: [MY_AGENT_KEY]                # what it may see of our environment, beside the basic names

    takes:                             # by which words it takes a parameter
      model: [--model, "{}"]
      prompt: [--task, "{}"]           # without this, the prompt comes on standard input

    isolated:                          # what it needs where it is shut in (``agents.isolated``)
      network: true                    # it must reach its model
      config: MY_AGENT_HOME            # the variable that names its own folder: an empty one
      transcripts: sessions            # where it leaves transcripts there: they are kept
      lends: [~/.my-agent/login]       # files of yours that are copied into that folder
      shows: [~/.nvm]                  # what it consists of, where that is not below /usr

What stands in ``lends`` and ``shows`` is an exception from its isolation, so it is named here. A
file whose name ends in ``.toml`` is read as TOML, with the same keys.

Source: spec kernel A-2; the profiles of ``claude`` and ``pythia``: spec evidence-and-reports 1, 3.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_args

from tripod.agents.spec import BASIC_ENV, SpawnSpec
from tripod.errors import BadArgumentError, MalformedError, NotFoundError
from tripod.ledger.files import read_plain_file
from tripod.projections.settings import (
    MAX_SIZE,
    TRUTH,
    Rule,
    Settings,
    judge,
    read_settings,
    setting_of,
    spelled_setting,
)
from tripod.projections.workers.answers import Output

__all__ = ["Isolation", "Profile", "chosen_profile", "load", "parse_profile", "profile_names"]

_HERE = os.path.dirname(__file__)
_SUFFIX = ".yaml"
_ENDS = (_SUFFIX, ".yml", ".toml")
_FOLDER = r"(?:(?!\.\.?(?:/|\Z))[^/\0]+(?:/(?!\Z)|\Z))*"
_VARIABLE = "[A-Za-z_][A-Za-z0-9_]{0,63}"


def _command(value: object) -> object:
    if value == []:
        raise ValueError("the program's name is missing")
    return value


def _form(value: object) -> object:
    if isinstance(value, list) and not any("{}" in str(word) for word in value):
        raise ValueError("no word has a {} where the value goes")
    return value


@dataclass(frozen=True, slots=True)
class Isolation(Settings):
    """The needs of a program that is isolated: the keys below ``isolated`` of its profile."""

    network: Annotated[bool, TRUTH] = False
    config: Annotated[str | None, spelled_setting(_VARIABLE, "the name of a variable")] = None
    transcripts: Annotated[
        str, spelled_setting(_FOLDER, "the path of a folder in that of isolated.config")
    ] = ""
    lends: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile(Settings):
    """A program: its command line, how it answers, and what it takes."""

    argv: Annotated[tuple[str, ...], Rule(_command)]
    output: Annotated[Output, setting_of(get_args(Output))] = "text"
    env: tuple[str, ...] = ()
    takes: Mapping[str, Annotated[tuple[str, ...], Rule(_form)]] = field(default_factory=dict)
    isolated: Isolation = Isolation()

    def order(self, prompt: bytes, **more: Any) -> SpawnSpec:
        """The order for one run; ``more`` are further fields of ``SpawnSpec``."""
        spec = SpawnSpec(
            argv=self.argv,
            stdin=prompt,
            env=(*BASIC_ENV, *self.env),
            output=self.output,
            takes=self.takes,
        )
        return replace(spec, **more)


def profile_names() -> list[str]:
    """Names of the profiles that ship with us."""
    return sorted(
        name.removesuffix(_SUFFIX) for name in os.listdir(_HERE) if name.endswith(_SUFFIX)
    )


def load(name: str) -> Profile:
    """A profile by its name, or by the path of its file (with a / or an end such as .yaml).

    Raises:
        NotFoundError: no such name, or no such file.
        BadArgumentError: the file is no profile.
    """
    path = name
    if "/" not in name and not name.endswith(_ENDS):
        path = os.path.join(_HERE, name + _SUFFIX)
    try:
        data = read_plain_file(path, MAX_SIZE, named=True)
    except OSError as error:
        raise NotFoundError(
            f"no profile {name!r}: {error.strerror}; there are: {', '.join(profile_names())}, "
            "and files of yours"
        ) from error
    try:
        return parse_profile(data, toml=path.endswith(".toml"))
    except BadArgumentError as error:
        raise BadArgumentError(f"profile {name!r}: {error}") from error


def chosen_profile(
    command: Sequence[str], profile: str | None, variable: str, default: str
) -> Profile:
    """The program of a command line, or else of a profile: named, in a variable, or by default.

    Raises:
        NotFoundError: no such profile.
        BadArgumentError: both are given, or the file is no profile.
    """
    if command and profile is not None:
        raise BadArgumentError("a program is given twice: by --profile, and by its command line")
    if command:
        return Profile(tuple(command))
    return load(profile or os.environ.get(variable) or default)


def parse_profile(data: bytes, *, toml: bool = False) -> Profile:
    """Read a profile: YAML, or TOML as earlier versions had it (BadArgumentError: which key)."""
    if toml and len(data) > MAX_SIZE:
        raise BadArgumentError(f"it has {len(data)} bytes, more than {MAX_SIZE}")
    try:
        if not toml:
            return read_settings(Profile, data)
        import tomllib

        profile: Profile = judge(Profile, tomllib.loads(data.decode()))
    except MalformedError as error:
        raise BadArgumentError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise BadArgumentError(f"it is not TOML: {error}") from error
    return profile
