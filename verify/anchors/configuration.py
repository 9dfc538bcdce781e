r"""What a project says in ``tripod.toml``, or in ``[tool.tripod]`` of ``pyproject.toml``. Pure.

Both have the same keys, and both count::

    [policy]                              # what must be there (``tripod.verify.anchors.policy``);
    level = "PINNED"                      # of several files the stricter holds, key by key
    [[policy.never]]
    paths = ["chat/**"]

In front of the tables stand, in one of the files::

    select = ["drift", "never-read"]      # the checks that matter; never fewer than the required
    formats = ["sarif=tripod.sarif"]      # reports that `tripod verify` writes besides

Everybody whose work is judged can edit these files. So what they say makes the judge stricter, or
adds to what is written. ``select`` leaves out advice alone, unless a caller names the commit that
it is read from. A report goes only to a file whose name begins with ``tripod`` and ends as its
format does: no other file can be replaced by it. A key that would accept findings is refused, and
so is every key that is not known: what is not understood is not passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Annotated, Any, NamedTuple

from tripod.ledger import MalformedError
from tripod.projections.settings import MAX_SIZE, Rule, Settings, judge, read_toml
from tripod.projections.text import text_meant
from tripod.verify.anchors.policy import UNCONFIGURED, Configured, Names, Rules, stricter_rules

PROJECT, PYPROJECT = PROJECT_FILES = ("tripod.toml", "pyproject.toml")
"""The files at the top of a project that travel with the work."""
PYPROJECT_SIZE = 512 * 1024
"""``pyproject.toml`` holds what other programs read, too, so it may be larger (bytes)."""
ENDINGS = {
    "text": (".txt",),
    "json": (".json",),
    "sarif": (".sarif", ".json"),
    "junit": (".xml",),
    "github": (".txt",),
}
"""How the file of a report ends, by format, where a file names it."""
PLACES = ".places.txt"
"""What the name of the file beside a report in SARIF ends with."""

_FRONT = "tripod"  # how the name of such a file begins
_TABLE = f"tool.{_FRONT}"
_MEANT = (_FRONT, f"{_FRONT}-ledger")  # the program's name, and that of its package
_CLOSED = (".git", ".nbs")
_ACCEPTING = frozenset(
    {"accept", "accepted", "allow", "baseline", "exclude", "ignore", "skip", "suppress"}
)


def _formats(value: object) -> object:
    words = [value] if isinstance(value, str) else value
    taken: list[str] = []
    for word in words if isinstance(words, list) else ():
        if isinstance(word, str):
            name, _, path = word.partition("=")
            problem = _format_problem(name, path)
            if problem:
                raise ValueError(f"{word[:200]!r}: {problem}")
            own = [path, f"{path}{PLACES}"] if name == "sarif" else [path]
            if not set(own).isdisjoint(taken):
                raise ValueError(f"two reports go to {path}")
            taken += own
    return words


def _format_problem(name: str, path: str) -> str:
    if name not in ENDINGS:
        return f"there is no format {name!r}; there are {', '.join(ENDINGS)}" + text_meant(
            name, [*ENDINGS], aside=True
        )
    if not path:
        return (
            f"name the file behind a =, such as {name}={_FRONT}{ENDINGS[name][0]}; what is printed "
            "is for the caller to say (--format)"
        )
    parts = path.split("/")
    if not path.isprintable() or "\\" in path or {"", ".", ".."} & {*parts}:
        return "the path of a report leads from the top of the project to a file below it"
    if {part.lower() for part in parts} & {*_CLOSED}:
        return f"no report goes into {' or '.join(_CLOSED)}"
    if not (parts[-1].startswith(_FRONT) and parts[-1].endswith(ENDINGS[name])):
        return (
            f"name the file as {_FRONT}{ENDINGS[name][0]}: its name must begin with {_FRONT} and "
            f"end with {' or '.join(ENDINGS[name])}, so that no other file is replaced"
        )
    return ""


@dataclass(frozen=True)
class Configuration(Settings):
    """What one file says. ``formats`` are NAME=PATH, by their paths from the project's top."""

    policy: Rules = field(default_factory=Rules)
    select: Names = ()
    formats: Annotated[tuple[str, ...], Rule(_formats)] = ()


def parse_configuration(name: str, data: bytes) -> Configuration | None:
    r"""Read the file of a project that is called ``name``; None: it says nothing of ours.

    Raises MalformedError: where the fault is, and what.

    >>> parse_configuration("tripod.toml", b'[policy]\nlevel = "PINNED"\n').policy.level
    ('PINNED',)
    >>> parse_configuration("pyproject.toml", b'[tool.tripod]\nselect = ["drift"]\n').select
    ('drift',)
    """
    if name == PROJECT:
        value, front = read_toml(data, MAX_SIZE), ""
    else:
        if _FRONT.encode() not in data.lower():
            return None  # other programs say what is wrong with it
        tools = _tools(read_toml(data, PYPROJECT_SIZE))
        if _FRONT not in tools:
            return None
        value, front = tools[_FRONT], f"[{_TABLE}]: "
    try:
        _refuse(value)
        said: Configuration = judge(Configuration, value)
    except MalformedError as error:
        raise MalformedError(f"{front}{error}") from error
    return said


def _tools(read: dict[str, Any]) -> dict[str, Any]:
    """The table ``tool``; one beside or in it that is meant for us, and not called so, is refused.

    What it demands would be passed over (MalformedError).
    """
    found = read.get("tool")
    tools = found if isinstance(found, dict) else {}
    meant = [f"tool.{one}" for one in tools if one.casefold().replace("_", "-") in _MEANT]
    for name in (*([_FRONT] if _FRONT in read else []), *meant):
        if name != _TABLE:
            raise MalformedError(f"[{name[:200]}]: the table is called [{_TABLE}]")
    return tools


def _refuse(value: object) -> None:
    """Say of a key that stands in the wrong place, and of one that accepts, what to do instead."""
    if not isinstance(value, dict):
        return
    policy = value.get("policy")
    accepting = _ACCEPTING & {*value}
    accepting |= _ACCEPTING & {*policy} - {"accept"} if isinstance(policy, dict) else set()
    if accepting:
        raise MalformedError(
            f"unknown keys: {', '.join(sorted(accepting))}; a finding is accepted by an entry of "
            "the ledger alone, `tripod accept ID --reason TEXT`, and by no file"
        )
    demands = {name.replace("_", "-") for name in Rules.__dataclass_fields__}
    placed = sorted({*value} & demands)
    if placed:
        raise MalformedError(
            f"unknown keys: {', '.join(placed)}; what is demanded stands in the table `policy`"
        )


# Of several files --------------------------------------------------------------------------------


class Said(NamedTuple):
    """What one file says. ``shown`` is how people find it, ``path`` its path if a caller may know.

    ``is_outside``: a caller named it, outside of the team.
    """

    shown: str
    path: str
    said: Configuration
    is_outside: bool


def join_configurations(found: Sequence[Said]) -> tuple[Rules, Configured, str]:
    """Take the stricter of all rules; what is given up is said by those from outside alone.

    The text says of what two files say something, and one alone can hold; '' if of nothing.
    """
    if not found:
        return Rules(), UNCONFIGURED, ""
    rules = reduce(stricter_rules, (one.said.policy for one in found))
    if outer := [one.said.policy for one in found if one.is_outside]:
        rules = replace(rules, given_up=reduce(stricter_rules, outer).given_up)
    configured = Configured(tuple(one.shown for one in found), rules_path=found[0].path)
    problems = []
    for key in ("select", "formats"):
        saying = [one for one in found if getattr(one.said, key)]
        if len(saying) > 1:
            problems.append(
                f"`{key}` stands in {saying[0].shown} and in {saying[1].shown}: keep it in one"
            )
        elif saying and key == "formats":
            one = saying[0]
            folder = one.path.rpartition("/")[0]
            configured = configured._replace(formats=(folder, one.said.formats))
        elif saying:
            one = saying[0]
            configured = configured._replace(
                select=one.said.select, selected=one.shown, is_outside=one.is_outside
            )
    return rules, configured, "; ".join(problems)
