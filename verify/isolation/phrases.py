r"""Runs of words that one text has from another: chat, or a protected file, repeated. Pure.

Two texts overlap where :data:`RUN` consecutive words are the same (spec: kernel section 3, W = 12),
or where one has the whole of a shorter line of the other, of :data:`LONG` characters or more.

>>> held = PhraseIndex()
>>> held.add(0, words_of("You said: one two three four five six seven eight nine ten eleven 12!"))
14
>>> [run for _, run in held.find(words_of("One  two three\nfour five six seven eight nine ten "
...                                       "eleven - 12, thirteen"))]
['one two three four five six seven eight nine ten eleven 12']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from tripod.projections.text import RUN
from tripod.projections.text import words_of_text as words_of

LONG = 24
"""Characters of a word from which on it may be a line of a chat file, which is base64."""

_TOKEN = re.compile(r"[^\W_](?:\S*[^\W_])?")
_BASE64 = re.compile(rf"[a-z0-9+/]{{{LONG},}}")
_IN_A_ROW = re.compile(b"\1{%d,}" % RUN)


def encoded_lines_in(text: str) -> set[str]:
    """What in a text may be an encoded line of a chat file, without the signs around it."""
    text = text.casefold()
    codes = {token for token in _TOKEN.findall(text) if len(token) >= LONG}
    return codes | {code.strip("+/") for code in _BASE64.findall(text)}


def phrase_hashes(words: Sequence[str]) -> list[int]:
    """The hash of each run of words, by its first word. It holds within one process alone."""
    return list(map(hash, zip(*(words[start:] for start in range(RUN)), strict=False)))


class VisiblePhrases:
    """Runs of words that somebody may see anyway, each with the entry from which on: -1, always."""

    def __init__(self) -> None:
        self._since: dict[int, int] = {}
        self._tail: list[str] = []

    def add(self, seq: int, text: str, *, follows: bool = False) -> None:
        """Take a text in, in the order of entries; ``follows``: right after the one before."""
        words = [*(self._tail if follows else ()), *words_of(text)]
        self._tail = words[1 - RUN :]
        for run in phrase_hashes(words):
            self._since.setdefault(run, seq)

    def before(self, seq: int) -> Callable[[int], bool]:
        """Whether a run was known before an entry."""
        return lambda run: self._since.get(run, seq) < seq


class PhraseIndex:
    """Runs of words of numbered texts, each with the first text that it stands in."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._vocabulary: set[str] = set()
        self.codes: dict[str, int] = {}  # words as long as an encoded line

    def add(
        self,
        number: int,
        words: Sequence[str],
        known: Callable[[int], bool] = lambda _: False,
        codes: Iterable[str] = (),
    ) -> int:
        """Hold a text but for runs that are ``known``; ``codes`` are its encoded lines.

        Gives how long its longest row of words is of which no part is known.
        """
        free = longest = 0
        fresh = False
        for at, run in enumerate(phrase_hashes(words)):
            if known(run):
                longest = max(longest, at - free)
                free = at + RUN
            else:
                self._first.setdefault(run, number)
                fresh = True
        if fresh:
            self._vocabulary.update(words)
        for code in codes:
            self.codes.setdefault(code, number)
        return max(longest, len(words) - free)

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Numbers of texts that echo these words, with the run; a text may come repeatedly."""
        if not self._vocabulary:
            return
        there = bytes(map(self._vocabulary.__contains__, words))
        for row in _IN_A_ROW.finditer(there):
            part = words[row.start() : row.end()]
            for at, run in enumerate(phrase_hashes(part)):
                number = self._first.get(run)
                if number is not None:
                    yield number, " ".join(part[at : at + RUN])

    def find_code(self, line: str) -> int | None:
        """The number of the text that holds an encoded line (base64) as it is."""
        tokens = _TOKEN.findall(line.casefold())
        return self.codes.get(tokens[0]) if len(tokens) == 1 else None


class LineIndex:
    """Lines of texts that are too short for a run of words: found where a text has them whole.

    A line counts from :data:`LONG` characters on; one of :data:`RUN` words or more is for
    :class:`PhraseIndex`.

    >>> lines = LineIndex()
    >>> lines.add(7, "ann: the release slips to friday")
    True
    >>> list(lines.find(words_of("chat/a.md:2: [09:00] ann: the release slips to Friday!")))
    [(7, 'ann the release slips to friday')]
    """

    def __init__(self) -> None:
        self._lines: dict[int, dict[int, int]] = {}
        self._vocabulary: set[str] = set()

    def add(self, number: int, text: str) -> bool:
        """Hold the short lines of a text; give whether it has one."""
        found = False
        for line in text.splitlines():
            if len(line.strip()) < LONG:
                continue
            words = words_of(line)
            if words and len(words) < RUN:
                self._lines.setdefault(len(words), {}).setdefault(hash(tuple(words)), number)
                self._vocabulary.update(words)
                found = True
        return found

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Numbers of texts of which a short line stands in these words, with the line."""
        if not self._vocabulary or self._vocabulary.isdisjoint(words):
            return
        for length, lines in self._lines.items():
            runs = zip(*(words[start:] for start in range(length)), strict=False)
            for at, run in enumerate(map(hash, runs)):
                number = lines.get(run)
                if number is not None:
                    yield number, " ".join(words[at : at + length])
