"""How programs are run and how they answer: data, in one TOML file a program.

``claude`` ships with us; any other program needs no profile (its words are its command line), or
a file of its own::

    argv = ["my-agent", "--quiet"]     # how it is run, word by word
    output = "text"                    # text, json or claude-stream-json
    env = ["MY_AGENT_KEY"]             # what it may see of our environment, beside the basic names

    [takes]                            # by which words it takes a parameter
    model = ["--model", "{}"]
    prompt = ["--task", "{}"]          # without this, the prompt comes on standard input

    [isolated]                         # what it needs where it is shut in (``agents.isolated``)
    network = true                     # it must reach its model
    config = "MY_AGENT_HOME"           # the variable that names its own folder: an empty one
    transcripts = "sessions"           # where it leaves transcripts there: they are kept
    lends = ["~/.my-agent/login"]      # files of yours that are copied into that folder
    shows = ["~/.nvm"]                 # what it consists of, where that is not below /usr

What stands in ``lends`` and ``shows`` is an exception from its isolation, so it is named here.

Source: spec kernel A-2; the profiles of ``claude`` and ``pythia``: spec evidence-and-reports 1, 3.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from tripod.agents.spec import BASIC_ENV, Output, SpawnSpec
from tripod.errors import BadArgumentError, NotFoundError
from tripod.ledger.files import read_plain

MAX_PROFILE = 64 * 1024  # bytes
_HERE = os.path.dirname(__file__)
_SUFFIX = ".toml"
_FOLDER = re.compile(r"(?:(?!\.\.?(?:/|\Z))[^/\0]+(?:/(?!\Z)|\Z))*")
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Isolation:
    """What a program needs where it is isolated; see the module."""

    network: bool = False
    config: str | None = None
    transcripts: str = ""
    lends: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """A program: its command line, how it answers, and what it takes."""

    argv: tuple[str, ...]
    output: Output = "text"
    env: tuple[str, ...] = ()
    takes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
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


def names() -> list[str]:
    """Names of the profiles that ship with us."""
    return sorted(
        name.removesuffix(_SUFFIX) for name in os.listdir(_HERE) if name.endswith(_SUFFIX)
    )


def load(name: str) -> Profile:
    """A profile by its name, or by the path of its file (it holds a / or ends in .toml).

    Raises:
        NotFoundError: there is none of that name, or no such file.
        BadArgumentError: the file is no profile.
    """
    path = name
    if "/" not in name and not name.endswith(_SUFFIX):
        path = os.path.join(_HERE, name + _SUFFIX)
    try:
        data = read_plain(path, MAX_PROFILE, named=True)
    except OSError as error:
        known = ", ".join(names())
        raise NotFoundError(
            f"no profile {name!r}: {error.strerror}; there are: {known}, and files of yours"
        ) from error
    try:
        return parse_profile(data)
    except BadArgumentError as error:
        raise BadArgumentError(f"profile {name!r}: {error}") from error


def parse_profile(data: bytes) -> Profile:
    """Read a profile.

    Raises:
        BadArgumentError: it is none; the message says why.
    """
    if len(data) > MAX_PROFILE:
        raise BadArgumentError(f"it holds more than {MAX_PROFILE} bytes")
    try:
        value = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadArgumentError(f"it is no TOML: {error}") from error
    _known(value, ("argv", "output", "env", "takes", "isolated"))
    argv, output = _words(value.get("argv"), "argv"), value.get("output", "text")
    if not argv:
        raise BadArgumentError("argv: the program's name is missing")
    if output not in get_args(Output):
        raise BadArgumentError(f"output: {output!r} is none of {', '.join(get_args(Output))}")
    takes = value.get("takes", {})
    if not isinstance(takes, dict):
        raise BadArgumentError("takes: it is no table")
    forms = {name: _words(words, f"takes.{name}") for name, words in takes.items()}
    for name, words in forms.items():
        if not any("{}" in word for word in words):
            raise BadArgumentError(f"takes.{name}: no word has a {{}} where the value goes")
    env = _words(value.get("env", []), "env")
    return Profile(argv, output, env, forms, _isolation(value.get("isolated", {})))


def _known(value: dict[str, Any], keys: tuple[str, ...]) -> None:
    unknown = value.keys() - set(keys)
    if unknown:
        raise BadArgumentError(
            f"unknown keys: {', '.join(sorted(unknown))}; there are {', '.join(keys)}"
        )


def _isolation(value: object) -> Isolation:
    if not isinstance(value, dict):
        raise BadArgumentError("isolated: it is no table")
    _known(value, ("network", "config", "transcripts", "lends", "shows"))
    network, config = value.get("network", False), value.get("config")
    transcripts = value.get("transcripts", "")
    if not isinstance(network, bool):
        raise BadArgumentError("isolated.network: it is neither true nor false")
    if config is not None and not (isinstance(config, str) and _VARIABLE.fullmatch(config)):
        raise BadArgumentError("isolated.config: it is no name of a variable")
    if not isinstance(transcripts, str) or not _FOLDER.fullmatch(transcripts):
        raise BadArgumentError(
            "isolated.transcripts: it is no folder within that of isolated.config"
        )
    lends = _words(value.get("lends", []), "isolated.lends")
    shows = _words(value.get("shows", []), "isolated.shows")
    return Isolation(network, config, transcripts, lends, shows)


def _words(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise BadArgumentError(f"{name}: it is no list of texts")
    return tuple(value)
