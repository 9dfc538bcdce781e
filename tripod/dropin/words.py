"""Takes apart the words of a drop-in command as its document has them: ``--name=value``.

The original tools ignored what they did not know, so that a slip in ``--handle=ann`` acknowledged
everything, and a text that began with ``--`` was lost (spec: nbs-compat B1, B12.5). Here nothing is
ignored:

- ``--name=value`` is an option, ``--name`` a flag, wherever they stand; one that the command does
  not have is refused, and so is one that is given twice with two values;
- a word that begins with ``--`` and has not that form (``-- a note``) is a text;
- behind a ``--`` every word is a text;
- a handle that an option gives is one line: a line break in it is refused;
- more texts than the command takes are refused.

Pure: words in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tripod.errors import BadArgumentError
from tripod.inputs import whole_number

_OPTION = r"(?s)--([a-z][a-z0-9-]*)(?:=(.*))?"
_HANDLES = ("as", "by", "handle", "reader", "since", "unread")


class Words(NamedTuple):
    """The texts in their order, the options' values by name, and the flags that were given."""

    texts: list[str]
    options: dict[str, str]
    flags: frozenset[str]


def asks_for_help(words: Sequence[str]) -> bool:
    """Whether ``--help`` or ``-h`` stands anywhere in front of a ``--``."""
    before = words[: words.index("--")] if "--" in words else words
    return "--help" in before or "-h" in before


def wants_usage(words: Sequence[str]) -> bool:
    """Return whether the first word behind a command asks for its usage.

    Only the first: ``send FILE ann --help`` is a message.
    """
    return bool(words) and words[0] in ("--help", "-h")


def take_apart(
    words: Sequence[str],
    usage: str,
    *,
    texts: tuple[int, int],
    options: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> Words:
    """Take a command's words apart.

    Args:
        words: what stands behind the command's name.
        usage: the command's line of usage; every refusal shows it.
        texts: how many texts it takes, at least and at most.
        options: names that are given with a value.
        flags: names that are given without one.

    Raises:
        BadArgumentError: a word is not UTF-8, or not what the command takes.
    """
    found: list[str] = []
    values: dict[str, str] = {}
    given: set[str] = set()
    only_texts = False
    for word in words:
        match = None if only_texts else re.fullmatch(_OPTION, word)
        problem = _not_utf8(word)
        if word == "--" and not only_texts:
            only_texts = True
        elif match is None:
            found.append(word)
        elif match[2] is None:
            problem = _flag_problem(match[1], options, flags)
            given.add(match[1])
        else:
            problem = _option_problem(match[1], options, flags) or _not_one_line(*match.groups())
            if values.setdefault(match[1], match[2]) != match[2]:
                problem = f"--{match[1]} is given twice, with two values"
        if problem is not None:
            raise _refused(problem, usage)
    least, most = texts
    if not least <= len(found) <= most:
        what = "too few arguments" if len(found) < least else f"{found[most]!r} is one too many"
        raise _refused(what, usage)
    return Words(found, values, frozenset(given))


def option_number(words: Words, name: str, least: int, most: int, usage: str) -> int | None:
    """The number that an option gives; None where it is not given.

    Raises:
        BadArgumentError: it is no whole number from ``least`` to ``most``.
    """
    text = words.options.get(name)
    if text is None:
        return None
    number = whole_number(text, least, most)
    if number is None:
        raise _refused(f"--{name}={text:.40}: no whole number from {least} to {most}", usage)
    return number


def _not_utf8(word: str) -> str | None:
    try:
        word.encode()
    except UnicodeEncodeError as error:
        return f"an argument is not UTF-8 (character {error.start + 1})"
    return None


def _not_one_line(name: str, value: str) -> str | None:
    if name not in _HANDLES or not re.search(r"[\n\r]", value):
        return None
    return f"--{name}: the value holds a line break; give it on one line"


def _flag_problem(name: str, options: Sequence[str], flags: Sequence[str]) -> str | None:
    if name in options:
        return f"--{name} takes a value: --{name}=..."
    return None if name in flags else _unknown(name, options, flags)


def _option_problem(name: str, options: Sequence[str], flags: Sequence[str]) -> str | None:
    if name in flags:
        return f"--{name} takes no value"
    return None if name in options else _unknown(name, options, flags)


def _unknown(name: str, options: Sequence[str], flags: Sequence[str]) -> str:
    known = ", ".join([*(f"--{one}=..." for one in options), *(f"--{one}" for one in flags)])
    has = f"the options are {known}" if known else "there are none"
    return f"no option --{name}; {has}. A text that looks like one goes behind a --"


def _refused(what: str, usage: str) -> BadArgumentError:
    return BadArgumentError(f"{what}\n  Usage: {usage}")
