"""JSON to bytes and back, as orjson does it, without orjson for the few bodies of a short command.

To import orjson brings ``inspect``, ``dataclasses`` and ``uuid`` with it, which takes a short
command longer than all its JSON. So the first small values of a process go through the scanner of
the standard library. It takes only what both certainly treat alike; all else goes to orjson, which
then gives its own value or its own error. A test holds both equal. After ``FEW`` values ``loads``,
``dumps`` and ``dumps_sorted`` *are* orjson's: call them by the module (``codec.loads``), so that
they are found anew.
"""

from collections.abc import Callable
from json import JSONDecoder, JSONEncoder
from typing import Any

FEW = 500
"""Values of a process before orjson is worth its import (measured: 3 to 7 µs less for each)."""
MAX_SMALL = 64 * 1024  # bytes
_MAX_NESTED = 500  # orjson gives up at 1,024
_MAX_DEPTH = 32
_MAX_INTEGER = 2**53 - 1
_DIGITS = 18  # longer numbers may pass 2^64, where orjson makes floats of them

_left = FEW


def loads(data: bytes) -> Any:
    """The value of a JSON text (ValueError: it is no JSON)."""
    if _are_few():
        try:
            return read_small(data)
        except (ValueError, RecursionError):
            pass
    return _by_orjson()["loads"](data)


def dumps(value: object) -> bytes:
    """Compact JSON, the keys as they stand (TypeError: a part has none within ±(2^53-1))."""
    return _written(value, "dumps")


def dumps_sorted(value: object) -> bytes:
    """Compact JSON, the keys in their order (TypeError: a part has none within ±(2^53-1))."""
    return _written(value, "dumps_sorted")


def _written(value: object, name: str) -> bytes:
    if _are_few():
        try:
            return write_small(value, sort=name == "dumps_sorted")
        except ValueError:
            pass
    return _by_orjson()[name](value)  # type: ignore[no-any-return]


def _are_few() -> bool:
    """Whether this value still goes without orjson; the first that does not ends it for all."""
    global _left  # noqa: PLW0603 - one count for the process, and a lost one does no harm
    _left -= 1
    if _left >= 0:
        return True
    _by_orjson()
    return False


def _by_orjson() -> dict[str, Callable[[Any], Any]]:
    """Put orjson's functions in the place of those of this module, and give them."""
    from orjson import OPT_SORT_KEYS, OPT_STRICT_INTEGER, dumps, loads

    in_order = OPT_STRICT_INTEGER | OPT_SORT_KEYS
    functions: dict[str, Callable[[Any], Any]] = {  # of `partial` a call takes 300 ns more
        "loads": loads,
        "dumps": lambda value: dumps(value, None, OPT_STRICT_INTEGER),
        "dumps_sorted": lambda value: dumps(value, None, in_order),
    }
    globals().update(functions)
    return functions


def read_small(data: bytes) -> Any:
    """What ``orjson.loads`` gives for a small text without rarities.

    ValueError, RecursionError: it may be valid JSON all the same. Escapes of code
    units (half of a pair), numbers but short whole ones and deep nesting are such rarities.
    """
    if type(data) is not bytes or len(data) > MAX_SMALL:
        raise ValueError
    text = data.decode()
    if "\\u" in text or text.count("[") + text.count("{") > _MAX_NESTED:
        raise ValueError
    value, end = _DECODER.raw_decode(text)
    if end != len(text):
        raise ValueError
    return value


def _short(digits: str) -> int:
    if len(digits) > _DIGITS or digits[0] == "-":
        raise ValueError
    return int(digits)


def _rare(_: str) -> None:
    raise ValueError


_DECODER = JSONDecoder(parse_int=_short, parse_float=_rare, parse_constant=_rare)


def write_small(value: object, *, sort: bool) -> bytes:
    """What ``orjson.dumps`` gives for a plain value (ValueError: it may be valid all the same)."""
    if not _is_plain(value, _MAX_DEPTH):
        raise ValueError
    return (_SORTED if sort else _AS_IT_STANDS).encode(value).encode()


def _is_plain(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind is str or kind is bool:
        return True
    if kind is int:
        return bool(-_MAX_INTEGER <= value <= _MAX_INTEGER)
    if depth == 0:
        return False
    if kind is dict:
        return all(type(key) is str and _is_plain(one, depth - 1) for key, one in value.items())
    return kind is list and all(_is_plain(one, depth - 1) for one in value)


_SORTED, _AS_IT_STANDS = (
    JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=sort, separators=(",", ":"))
    for sort in (True, False)
)
