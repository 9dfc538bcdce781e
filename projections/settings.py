r"""Reads the settings that people write, within limits, into types that pydantic judges. Pure.

YAML and TOML are read. Each value of a YAML file is text, a list or a mapping; ``true`` and
``false`` are truth values. The type of a field decides what a text means: ``010`` is never eight,
and ``1:30`` is never ninety. Anchors, aliases, tags, a second document and a key that occurs twice
are refused. A message names the line and the key.

Hot commands import modules that declare settings, so YAML and pydantic are imported where a file is
read. Keys have dashes where fields have underscores::

    class Shop(Settings):                        # a frozen dataclass
        front_doors: Annotated[int, whole_setting(1)] = 1
        open: tuple[str, ...] = ()

    read_settings(Shop, b"front-doors: 2\nopen: [monday]\n")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, get_args, get_type_hints

from tripod.ledger.errors import MalformedError
from tripod.projections.text import text_meant

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema
    from yaml import Node, SafeLoader

MAX_SIZE = 64 * 1024  # bytes
MAX_DEPTH = 8
MAX_VALUES = 10_000

_BOM = b"\xef\xbb\xbf"
_MAX_PARTS = 40
_DEEP_KEY = rb"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % _MAX_PARTS
"""Keys such as ``a.a.a.a``: tomllib reads 32,000 parts in 17 s, and twice as many in 75 s."""
_NAMED = 5  # unknown keys that a message names
_SHOWN = 40  # characters of what the file says that a message repeats
_HINTS = {
    "an alias": "; a text that begins with * stands in quotes",
    "'\\t'": "; indent with blanks",
    "start any token": "; a text that begins with it stands in quotes",
}
"""What to do, by words of PyYAML."""
_PROBLEMS = {
    "dataclass_type": "the value is not a mapping",
    "dict_type": "the value is not a mapping",
    "missing": "the key is missing",
    "string_type": "the value is not text; put it in quotes",
    "tuple_type": "the value is not a list of texts",
}
"""Our words for pydantic's types of errors; other types keep pydantic's own words."""

_TOO_MUCH = f": more than {MAX_DEPTH} levels or {MAX_VALUES} values"

T = TypeVar("T")
Where = tuple[int | str, ...]
"""The keys and the positions in lists that lead to a value."""


def _written_key(name: str) -> str:
    """The key of a field; one that Python keeps for itself has a line behind it: ``except_``."""
    return name.rstrip("_").replace("_", "-")


class Settings:
    """The base of a dataclass of settings: keys without a field are refused."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "alias_generator": _written_key,
        "extra": "forbid",
    }


class Rule:
    """Stands in the annotation of a field and reads its value, before pydantic checks the type.

    ``read`` gives the value, or raises ValueError with a message for the person who wrote the file.
    """

    def __init__(self, read: Callable[[Any], object]) -> None:
        self.read = read

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Tell pydantic to call ``read`` first."""
        from pydantic_core.core_schema import no_info_before_validator_function

        return no_info_before_validator_function(self.read, handler(source))


def accepted_setting(
    accepts: Callable[[Any], object], expected: str, words: Sequence[str] = ()
) -> Rule:
    """A value that ``accepts`` takes; ``expected`` describes it, one of ``words`` may be meant."""

    def read(value: object) -> object:
        if not accepts(value):
            raise ValueError(
                f"the value is not {expected}{text_meant(str(value)[:_SHOWN], words, aside=True)}"
            )
        return value

    return Rule(read)


def setting_of(words: Sequence[str]) -> Rule:
    """One of some words."""
    expected = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    return accepted_setting(lambda value: value in words, expected, words)


def spelled_setting(pattern: str, expected: str) -> Rule:
    """Text that matches a pattern as a whole; ``expected`` describes it."""
    return accepted_setting(
        lambda value: isinstance(value, str) and re.fullmatch(pattern, value), expected
    )


def whole_setting(least: int, most: int = 2**53 - 1) -> Rule:
    """A whole number in decimal, without a sign or a leading zero."""

    def fits(value: object) -> bool:
        said = str(value) if type(value) is int else value  # TOML has numbers, YAML here text
        plain = isinstance(said, str) and re.fullmatch("0|[1-9][0-9]{0,15}", said)
        return bool(plain) and least <= int(cast("str", said)) <= most

    return accepted_setting(fits, f"a whole number from {least} up")


TRUTH = accepted_setting(lambda value: isinstance(value, bool), "true or false")
"""``true`` or ``false``; without this rule pydantic takes ``yes`` and 1 as well."""


def read_settings(shape: type[T], data: bytes) -> T:
    """Read a YAML file into a dataclass, a subclass of :class:`Settings` (MalformedError)."""
    lines: dict[Where, int] = {}
    values = {key: value for key, _, value in _entries(_compose(data), lines)}
    return cast("T", judge(shape, values, lines))


def read_toml(data: bytes, limit: int) -> dict[str, Any]:
    r"""Read TOML into plain values (MalformedError: where the fault is, and what).

    >>> read_toml(b"[door]\nwidth = 3\n", 99)
    {'door': {'width': 3}}
    """
    import tomllib

    if len(data) > limit:
        raise MalformedError(f"it has more than {limit} bytes")
    if (deep := re.search(_DEEP_KEY, data)) is not None:
        line = data.count(b"\n", 0, deep.start()) + 1
        raise MalformedError(f"line {line}: a key of more than {_MAX_PARTS} parts")
    try:
        return tomllib.loads(data.removeprefix(_BOM).decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MalformedError(f"it is no TOML: line {line} is not UTF-8") from error
    except (ValueError, RecursionError) as error:  # also a number of 5,000 digits
        raise MalformedError(f"it is no TOML: {error}") from error


def judge(shape: Any, value: object, lines: Mapping[Where, int] = MappingProxyType({})) -> Any:
    """Make a value of a type of what a file holds, which may have any format (MalformedError).

    ``shape`` is a subclass of :class:`Settings`, or the type of one field. ``lines`` are the lines
    of the file's values, by the keys and indices that lead to them.
    """
    from pydantic import ValidationError

    try:
        return _adapter(shape).validate_python(value)
    except ValidationError as error:
        errors = error.errors()
    unknown = [one["loc"] for one in errors if one["type"] == "unexpected_keyword_argument"]
    where = unknown[0] if unknown else errors[0]["loc"]
    keys = ".".join(_key(part) for part in where if isinstance(part, str))
    cause = errors[0].get("ctx", {}).get("error") or _PROBLEMS.get(errors[0]["type"])
    problem = _unknown(shape, unknown) if unknown else f"{keys}: {cause or errors[0]['msg']}"
    ways = (where[:n] for n in range(len(where), 0, -1))
    line = next((lines[way] for way in ways if way in lines), 0)
    raise MalformedError((f"line {line}: " if line else "") + problem.removeprefix(": "))


@cache
def _adapter(shape: Any) -> Any:
    """Pydantic's reader of a type; making one costs more than using it."""
    from pydantic import TypeAdapter

    return TypeAdapter(shape)


def _unknown(shape: Any, places: list[Where]) -> str:
    """The message about keys that have no field, in the mapping of the first of them."""
    *above, _ = places[0]
    for part in above:
        if isinstance(part, int):  # in a list, whose values are of one type
            shape = get_args(shape)[0]
        else:
            shape = {_written_key(name): one for name, one in get_type_hints(shape).items()}[part]
    known = [_written_key(name) for name in shape.__dataclass_fields__]
    names = sorted(str(place[-1]) for place in places if [*place[:-1]] == above)
    listed = ", ".join(
        f"{_key(name)}{text_meant(name[:_SHOWN], known, aside=True)}" for name in names[:_NAMED]
    )
    listed += f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"unknown keys: {listed}; there are {', '.join(known)}"


def _key(key: str) -> str:
    return key[:_SHOWN] if key.isprintable() else repr(key[:_SHOWN])


def read_setting_entries(data: bytes) -> list[tuple[str, int, Any]]:
    """Each key of a YAML file, its line from 1, and its value; keys may repeat (MalformedError)."""
    return _entries(_compose(data), {}, again=True)


@cache
def _loader() -> type[SafeLoader]:
    """PyYAML's loader, which gives up at a bracket that opens too deep.

    PyYAML looks 1,024 characters ahead for a key's colon, and at each bracket on the way it looks
    at all the open ones: so 1,400 brackets take as long as 140,000 bytes of plain text.
    """
    from yaml import MarkedYAMLError, SafeLoader

    class Shallow(SafeLoader):
        def fetch_flow_collection_start(self, token: Any) -> None:
            if self.flow_level > MAX_DEPTH:
                raise MarkedYAMLError(problem=_TOO_MUCH[2:], problem_mark=self.get_mark())
            super().fetch_flow_collection_start(token)

    return Shallow


def _compose(data: bytes) -> list[tuple[Node, Node]]:
    """Read YAML into nodes, which know their lines: the keys of the file and their values."""
    from yaml import (
        CollectionEndEvent,
        CollectionStartEvent,
        MappingNode,
        MarkedYAMLError,
        NodeEvent,
        compose,
        parse,
    )
    from yaml.reader import ReaderError

    if len(data) > MAX_SIZE:
        raise MalformedError(f"it has {len(data)} bytes, more than {MAX_SIZE}")
    text = data.removeprefix(_BOM).decode("utf-8", "replace")
    problem, line = "", 0
    try:
        depth = values = 0
        for event in parse(text, Loader=_loader()):
            values += isinstance(event, NodeEvent)
            depth += isinstance(event, CollectionStartEvent)
            depth -= isinstance(event, CollectionEndEvent)
            line = event.start_mark.line if event.start_mark else 0
            if getattr(event, "anchor", None) is not None:
                problem = (
                    ": anchors and aliases are not read; quote a value that begins with & or *"
                )
            elif getattr(event, "tag", None) is not None:
                problem = ": tags are not read; quote a value that begins with !"
            elif depth > MAX_DEPTH or values > MAX_VALUES:
                problem = _TOO_MUCH
            elif re.search("[\ud800-\udfff]", getattr(event, "value", "")):
                problem = ": half of a character"
            if problem:
                break
        else:
            node = compose(text, Loader=_loader())
            if node is None or isinstance(node, MappingNode):
                return [] if node is None else node.value
            line = node.start_mark.line
    except ReaderError as error:
        line = text.count("\n", 0, error.position)
        problem = f": the character U+{error.character:04X} is not allowed"
    except MarkedYAMLError as error:
        # PyYAML notices an open quotation or bracket at the end of the file, and the author has to
        # mend it where it begins.
        begins = error.context and ("scanning" in error.context or "flow" in error.context)
        mark = (error.context_mark if begins else None) or error.problem_mark
        said = f"{error.context}: {error.problem}"
        hint = next((what for sign, what in _HINTS.items() if sign in said), "")
        line, problem = 0 if mark is None else mark.line, f": {error.problem}{hint}"
    lines = text.split("\n")[: line + 1]
    while len(lines) > 1 and not lines[-1].strip():  # the end of the file
        lines.pop()
    shown = lines[-1].strip()[:_SHOWN]
    raise MalformedError(f"line {len(lines)}: {shown!r} is not of the form `key: value`{problem}")


def _entries(
    pairs: list[tuple[Node, Node]], lines: dict[Where, int], way: Where = (), *, again: bool = False
) -> list[tuple[str, int, Any]]:
    """The keys of a mapping with their lines and values; ``again``: a key may occur twice."""
    entries = []
    for key, value in pairs:
        line = key.start_mark.line + 1
        if not isinstance(key.value, str):
            raise MalformedError(f"line {line}: a key is not text")
        if (*way, key.value) in lines and not again:
            raise MalformedError(f"line {line}: {_key(key.value)} stands above already")
        lines[*way, key.value] = line
        entries.append((key.value, line, _value(value, lines, (*way, key.value))))
    return entries


def _value(node: Node, lines: dict[Where, int], way: Where) -> Any:
    lines.setdefault(way, node.start_mark.line + 1)
    if isinstance(node.value, str):
        is_truth = getattr(node, "style", None) is None and node.value in ("true", "false")
        return node.value == "true" if is_truth else node.value
    if node.tag.endswith(":map"):
        return {key: value for key, _, value in _entries(node.value, lines, way)}
    return [_value(one, lines, (*way, number)) for number, one in enumerate(node.value)]
