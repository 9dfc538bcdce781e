r"""What a team demands of its own ledger: ``policy.yaml``, ``key: value`` lines. Pure.

::

    # missing protection is a failure, not a skip
    level: PINNED                     # or WITNESSED, TIMESTAMPED, [WITNESSED, TIMESTAMPED]
    tail-entries: 256                 # so many entries may stand behind the newest such head,
    tail-seconds: 86400               # ... the oldest of them for so long
    required: [pins-extend, drift]    # checks that must have something to judge, and be clean
    signed: [decision.logged]         # kinds of entries that their actor must have signed,
    signed-from: 120                  # ... from this entry on
    seals: [SEAL, docs/head.note]     # committed files, besides the record's, that hold seals
    given-up: [example.com/old]       # their heads only warn; counts from outside alone
    exceptions: cannot-tell           # clean but for what nobody looked at is not clean

It is read as lines, not as YAML: nothing is nested or expanded. Unlike the bus's configuration it
is refused whole where a line is not understood: a demand that is misspelled would demand nothing.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from tripod.ledger.errors import MalformedError

SELF, PINNED, WITNESSED, TIMESTAMPED = LEVELS = ("SELF", "PINNED", "WITNESSED", "TIMESTAMPED")
"""Who vouches for the ledger: it alone, a head kept elsewhere, witnesses, a timestamp authority."""

MAX_RULES = 64 * 1024
_LINE = re.compile(r"([a-z][a-z-]*)[ \t]*:[ \t]*(.*)")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")  # no `+`: quadratic where many blanks stand
_LISTS = ("level", "required", "seals", "signed", "given-up", "exceptions")
_CHOICES = {"level": LEVELS, "exceptions": ("cannot-tell",)}
_NUMBERS = ("tail-entries", "tail-seconds", "signed-from")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}")


class Rules(NamedTuple):
    """What must be there; None and () ask for nothing. Each of ``level`` must be reached."""

    level: tuple[str, ...] = ()
    tail_entries: int | None = None
    tail_seconds: int | None = None
    required: tuple[str, ...] = ()
    seals: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()
    signed_from: int | None = None
    exceptions: tuple[str, ...] = ()


def parse(data: bytes) -> Rules:
    """Read the file. Whether there are checks of the names in ``required`` is not asked here.

    Raises:
        MalformedError: a line is not understood, saying which and why.
    """
    if len(data) > MAX_RULES:
        raise MalformedError(f"it has {len(data)} bytes, more than {MAX_RULES}")
    values: dict[str, str | int | tuple[str, ...]] = {}
    for number, raw in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        line = _COMMENT.sub("", raw.rstrip("\r")).rstrip()
        if not line:
            continue
        try:
            key, value = _line(line)
            _once(key, values)
        except MalformedError as error:
            raise MalformedError(f"line {number}: {error}") from error
        values[key.replace("-", "_")] = value
    return Rules(**values)  # type: ignore[arg-type] # _value gives each key its type


def _line(line: str) -> tuple[str, str | int | tuple[str, ...]]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise MalformedError(f"{line[:40]!r} is not of the form `key: value`")
    return match[1], _value(match[1], match[2])


def _once(key: str, values: Container[str]) -> None:
    if key.replace("-", "_") in values:
        raise MalformedError(f"{key} stands above already")


def _value(key: str, text: str) -> str | int | tuple[str, ...]:
    if key in _NUMBERS:
        if not _NUMBER.fullmatch(text):
            raise MalformedError(f"{key}: {text[:40]!r} is no whole number")
        return int(text)
    if key not in _LISTS:
        raise MalformedError(f"{key[:40]!r} is none of {', '.join((*_LISTS, *_NUMBERS))}")
    inner = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
    names = tuple(name.strip().strip("\"'") for name in inner.split(",") if name.strip())
    choices = _CHOICES.get(key)
    for name in names if choices else ():
        if choices and name not in choices:
            raise MalformedError(f"{name[:40]!r} is none of {', '.join(choices)}")
    if not names:
        raise MalformedError(f"{key}: it names nothing")
    return names
