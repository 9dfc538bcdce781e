"""Mutations of bytes: one input becomes another that a parser may never have met.

They are those of fuzzers (flips, cuts, splices, words of a dictionary), and those by which parsers
of text go wrong: numbers beyond every type, nesting, runs of one sign, other ends of lines. All
chance comes from the generator that is given, so that a seed gives the same inputs again.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

__all__ = ["grow", "mutate", "mutate_bytes", "mutate_lines", "mutate_value"]

JUNK = (
    b"\0",
    b"\0" * 300,
    b"\r\n",
    b"\r",
    b"\n\n",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b'"',
    b"'",
    b"{",
    b"}\n{",
    b"\\",
    b"\x1b[2J",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x80\xa8",
    b"\xe2\x80\xae",
    b"\xcc\x81" * 9,
    b"\\ud800",
    b"\\u0000",
    b" ",
    b"\t",
    b":",
    b": ",
    b"- ",
    b"#",
    b"---\n",
    b"|",
    b"`",
    b"```\n",
    b"(",
    b")",
    b"[",
    b"]",
    b"*",
    b"$(",
    b"<<E\n",
    b"../",
    b"/",
    b"~",
    b"%00",
    b"=",
    b"@",
    b",",
)
NUMBERS = (
    b"0",
    b"-1",
    b"00",
    b"01",
    b"1.5",
    b"1e309",
    b"-0",
    b"NaN",
    b"9007199254740992",
    b"2147483648",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"9" * 400,
    b"9" * 5000,
    "\u0661\u0662".encode(),
    b"1_000",
    b"0x10",
    b"253402300800",
    b"99999999999",
)
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**70, 1.5, "", "x", "chat/lobby.md", "/w/chat/a\0b", "\ud83d", "\u202e"),
    *([], {}, [[]], {"": {}}, [None], "a" * 5000, "../" * 900 + "x", "~", "$HOME/x", "*" * 60),
    *({"type": "text", "text": ["x"]}, {"type": ["x"]}, "toolu_x", "REDACTED", "2.1.33", "9.9"),
    *("{a,b}" * 12, "cat <<E\n$(", "$((", "cd 'x", "`" * 90, "\ufffd", "9" * 500, "file://%zz"),
)
_NAMES = ("type", "content", "brandNew", "sessionId", "v", "__proto__")
_NUMBER = re.compile(rb"\d+")
_OPENING = (
    b"[",
    b"{",
    b"(",
    b'{"a":',
    b"[[",
    b"- ",
    b"> ",
    b"$(",
    b"`",
    b"{a,",
    b"<",
    b"((",
    b'"$(',
)
_LENGTHS = (1, 1, 2, 8, 60, 900)


def mutate_bytes(
    rng: random.Random, data: bytes, other: bytes, words: Sequence[bytes] = ()
) -> tuple[str, bytes]:
    """A change at some place, in a word and as bytes; ``other`` is what is spliced in."""
    at = int(rng.random() * (len(data) + 1))
    end = min(len(data), at + rng.choice((*_LENGTHS, len(data))))
    how = rng.choice(_BYTE_CHANGES)
    match how:
        case "flip" if at < len(data):
            return how, data[:at] + bytes((data[at] ^ 1 << int(rng.random() * 8),)) + data[at + 1 :]
        case "byte":
            return how, data[:at] + rng.randbytes(1) + data[at + 1 :]
        case "cut":
            return how, data[:at]
        case "head":
            return how, data[at:]
        case "hole":
            return how, data[:at] + data[end:]
        case "again":
            return how, data[:end] + data[at:]
        case "splice":
            start = int(rng.random() * (len(other) + 1))
            return how, data[:at] + other[start : start + rng.choice(_LENGTHS)] + data[end:]
        case "word" if words:
            return how, data[:at] + rng.choice(words) + data[at:]
        case "instead" if words:
            return how, data.replace(rng.choice(words), rng.choice(words), rng.choice((1, 1, -1)))
        case "number":
            return how, _number(rng, data)
        case "nest":
            return how, data[:at] + rng.choice(_OPENING) * rng.choice((3, 40, 700)) + data[at:]
        case "run":
            one = data[at : at + rng.choice((1, 1, 2, 5))] or rng.choice(JUNK)
            return how, data[:at] + one * rng.choice((3, 70, 300)) + data[at:]
    return "junk", data[:at] + rng.choice(JUNK) + data[at:]


_BYTE_CHANGES = (
    "flip",
    "flip",
    "byte",
    "cut",
    "head",
    "hole",
    "hole",
    "again",
    "junk",
    "junk",
    "splice",
    "word",
    "word",
    "word",
    "instead",
    "number",
    "number",
    "nest",
    "run",
)


def _number(rng: random.Random, data: bytes) -> bytes:
    """Bytes with another number in the place of one."""
    found = [match.span() for match in _NUMBER.finditer(data[:4096])]
    if not found:
        return data + rng.choice(NUMBERS)
    start, end = rng.choice(found)
    return data[:start] + rng.choice(NUMBERS) + data[end:]


def mutate_lines(rng: random.Random, data: bytes, other: bytes) -> tuple[str, bytes]:
    """A change of whole lines, or of the JSON value in one, in a word and as bytes."""
    lines = data.split(b"\n")
    at, beside = (int(rng.random() * len(lines)) for _ in range(2))
    how = rng.choice(
        ("drop", "swap", "twice", "foreign", "glue", "ends", "value", "value", "value")
    )
    match how:
        case "drop":
            del lines[at : at + rng.choice((1, 1, 2, 9))]
        case "swap":
            lines[at], lines[beside] = lines[beside], lines[at]
        case "twice":
            lines.insert(beside, lines[at])
        case "foreign":
            lines.insert(at, rng.choice(other.split(b"\n")))
        case "glue":
            lines[at : at + 2] = [b"".join(lines[at : at + 2])]
        case "ends":
            return how, rng.choice((b"\r\n", b"\r", b"\xe2\x80\xa8")).join(lines)
        case _:
            lines[at] = mutate_value(rng, lines[at])
    return how, b"\n".join(lines)


def mutate_value(rng: random.Random, line: bytes) -> bytes:
    """A JSON text in which one value is another, has another name, or is not there.

    What is no JSON object or list comes back as it is.
    """
    with suppress(ValueError, RecursionError):
        value = place = json.loads(line)
        while isinstance(place, dict | list) and place:
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
            inner = place[key]
            if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
                place = inner
                continue
            how = rng.randrange(5)
            if how == 0:
                del place[key]
            elif how == 1 and isinstance(place, dict):
                place[rng.choice(_NAMES)] = place.pop(key)
            elif how == 2:
                place[key] = [inner]
            elif how == 3 and isinstance(inner, str):
                place[key] = inner[: rng.randrange(len(inner) + 1)] + str(rng.choice(ODD))
            else:
                place[key] = rng.choice(ODD)
            return json.dumps(value, separators=(",", ":"), ensure_ascii=rng.random() < 0.5).encode(
                "utf-8", "surrogatepass"
            )
    return line


_Change = Callable[[random.Random, bytes, bytes], tuple[str, bytes]]


def mutate(
    rng: random.Random, data: bytes, other: bytes, words: Sequence[bytes] = ()
) -> tuple[str, bytes]:
    """One to four changes, one after the other; what was done in words, and the bytes."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        if rng.random() < 0.75:
            how, data = mutate_bytes(rng, data, other, words)
        else:
            how, data = mutate_lines(rng, data, other)
        done.append(how)
    return " ".join(done), data


def grow(rng: random.Random, data: bytes, words: Sequence[bytes], size: int) -> tuple[str, bytes]:
    """A piece of the input, or a word, repeated to about ``size`` bytes in the midst of it."""
    at = int(rng.random() * (len(data) + 1))
    match rng.choice(("piece", "piece", "line", "word", "nest")):
        case "word":
            piece = rng.choice((*words, *JUNK))
        case "nest":
            piece = rng.choice(_OPENING)
        case "line":
            piece = rng.choice(data.split(b"\n")) + rng.choice((b"\n", b"\n", b" ", b""))
        case _:
            piece = data[at : at + rng.choice((1, 2, 3, 5, 20, 300))]
    piece = piece or b"x"
    whole = data[:at] + piece * (max(1, size - len(data)) // len(piece) + 1) + data[at:]
    return f"{piece[:20]!r} grown", whole
