"""What a command line consists of: plain words, or what a parser makes of it. Pure."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_WORD = r"""(?:[\w./:@%+,=~-]|'[^'\n]*'|"[^"$`\\!\n]*")++(?=[ |;&]|\Z)"""
_SEPARATOR = r"\|\||&&|;|\|"
_NOWHERE = r"(?:(?<= )|^)\d?>(?:/dev/null|&[12])(?=[ |;]|\Z)"
_TOKEN = re.compile(rf" *+(?:{_NOWHERE}|({_WORD})|({_SEPARATOR}))")
_PLAIN = re.compile(rf"(?: *+(?:{_NOWHERE}|{_WORD}|{_SEPARATOR}))++ *+")
_NAME = re.compile(r"[\w./~][\w./~+-]*|:")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_RESERVED = re.compile(
    "if|then|else|elif|fi|for|while|until|do|done|case|esac|in|select|function|time|coproc|declare"
    "|typeset|export|readonly|local|unset|unsetenv|let"
)
"""Words that begin something else than a program."""


def plain_commands(line: str) -> list[list[str]] | None:
    """The commands of a line of which each word is plain, as words; None if one is not.

    Plain is what every shell takes as it stands: a list of words, quoted or not, without patterns
    and variables. Most lines are so, and need no parser.

    >>> plain_commands("cd src && rg -n 'a b' lib.py 2>/dev/null | head -5")
    [['cd', 'src'], ['rg', '-n', 'a b', 'lib.py'], ['head', '-5']]
    >>> plain_commands("cat *.md") is None, plain_commands("A=1 cat") is None
    (True, True)
    """
    if _PLAIN.fullmatch(line) is None:
        return None
    commands: list[list[str]] = [[]]
    for word, separator in _TOKEN.findall(line):
        if separator:
            commands.append([])
        elif word:
            commands[-1].append(word)
    for words in commands:
        if not words or not _NAME.fullmatch(words[0]) or _RESERVED.fullmatch(words[0]):
            return None
        words[:] = [
            _QUOTED.sub(r"\1\2", word) if "'" in word or '"' in word else word for word in words
        ]
    return commands


MAX_PARSED = 4096  # characters of a command line without the texts that it gives to programs
_MAX_STEPS = 4_000
"""Looks at how far a parser is, each about 0.2 ms; a line of 4 KiB takes some 300."""

_PLAIN_PART = r"[\w./ >&|;=~:@+,-]*"
_HEREDOC = re.compile(
    rf"((?:{_PLAIN_PART}\n)*{_PLAIN_PART}<<-? *(['\"])(\w+)\2{_PLAIN_PART}\n)"
    r"(?s:.*?\n)??(\t*\3(?:\n|\Z))"
)
"""A text to the next program, before which nothing is quoted, so that it is one for certain."""


def syntax_of(parser: Parser, command: str) -> Node | None:
    """What a command line consists of; None where it is too long, or takes too long.

    The parsers try to mend what they do not understand: 8 KB of a hostile line took 2 s and 460 MB,
    64 KB ended the process. So the length is limited, without the texts that are given to programs,
    and steps are counted. (Steps and not time: the answer stays the same.)
    """
    short_enough, at = [], 0
    while found := _HEREDOC.match(command, at):
        short_enough.append(found[1] + found[4])
        at = found.end()
    text = _in_ascii("".join([*short_enough, command[at:]]))
    if len(text) > MAX_PARSED:
        return None
    steps = count(1)
    try:
        parser.parse(
            lambda at, _: text[at : at + MAX_PARSED],
            progress_callback=lambda *_: next(steps) > _MAX_STEPS,
        )
    except ValueError:
        parser.reset()  # else it goes on with this line at the next
        return None
    # Once more: the texts of nodes of the first tree, whose source is a function, crash at times.
    return parser.parse(text).root_node


_ESCAPED = re.compile("_u([0-9a-f]{6})_")


def _in_ascii(text: str) -> bytes:
    """A command line for the parser, whose scanner crashes on characters beyond a byte."""
    if text.isascii() and "_u" not in text:
        return text.encode()
    return re.sub(
        r"[^\0-\x7f]|_u(?=[0-9a-f]{6}_)",
        lambda found: "".join(f"_u{ord(one):06x}_" for one in found[0]),
        text,
    ).encode()


def node_text(node: Any) -> str:
    """The text of a node as it stood in the command line."""
    data = node.text
    text = data.decode() if isinstance(data, bytes) else ""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_u" in text else text


_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def without_braces(word: str) -> list[str]:
    """A word, and what it is when the braces in it are written out; [] if too many.

    >>> without_braces("src{/../.env,}")
    ['src{/../.env,}', 'src/../.env', 'src']
    """
    found, todo = [word], [word]
    while todo and len(found) < 64:
        text = todo.pop()
        braces = _BRACES.search(text)
        if braces is not None:
            head, tail = text[: braces.start()], text[braces.end() :]
            todo += [f"{head}{one}{tail}" for one in reversed(braces[1].split(","))]
        elif text != word:
            found.append(text)
    return [] if todo else found
