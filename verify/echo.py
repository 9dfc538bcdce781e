r"""Which runs of words of one text stand in another: the rule of the echo. Pure.

A word is what stands between white space, without the signs around it, in one case: signs alone are
none. Two texts echo each other where :data:`RUN` of their words in a row are the same (spec: kernel
section 3, W = 12).

One side is small and held as hashes (what an agent was given, and what it wrote), the other is
large and streamed past it (the chat): the time is linear in both, the memory in the small one.

>>> held = Held()
>>> held.add(0, words_of("You said: one two three four five six seven eight nine ten eleven 12!"))
14
>>> [run for _, run in held.find(words_of("One  two three\nfour five six seven eight nine ten "
...                                       "eleven - 12, thirteen"))]
['one two three four five six seven eight nine ten eleven 12']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

__all__ = ["LONG", "RUN", "Held", "Known", "has_word", "runs_of", "words_of"]

RUN = 12
"""How many words in a row are an echo."""
LONG = 24
"""Characters of a word from which on it may be a line of a chat file, which is base64."""

_WORD = re.compile(r"[^\W_](?:\S*[^\W_])?")
_IN_A_ROW = re.compile(b"\1{%d,}" % RUN)


def words_of(text: str) -> list[str]:
    """The words of a text, in one case.

    >>> words_of("Don't **panic** -- it's D-17, not `D-18`!")
    ["don't", 'panic', "it's", 'd-17', 'not', 'd-18']
    """
    return _WORD.findall(text.casefold())


def has_word(text: str, start: int, stop: int) -> bool:
    """Whether a word stands in a part of a text."""
    return _WORD.search(text, start, stop) is not None


def runs_of(words: Sequence[str]) -> list[int]:
    """The hash of each run of words, by its first word. It holds within one process alone."""
    return list(map(hash, zip(*(words[start:] for start in range(RUN)), strict=False)))


class Known:
    """Runs of words that somebody may see anyway, each with the entry from which on: -1, always."""

    def __init__(self) -> None:
        self._since: dict[int, int] = {}
        self._tail: list[str] = []

    def add(self, seq: int, text: str, *, follows: bool = False) -> None:
        """Take a text in, in the order of entries; ``follows``: right behind the one before."""
        words = [*(self._tail if follows else ()), *words_of(text)]
        self._tail = words[1 - RUN :]
        for run in runs_of(words):
            self._since.setdefault(run, seq)

    def before(self, seq: int) -> Callable[[int], bool]:
        """Whether a run was known before an entry."""
        since = self._since
        return lambda run: since.get(run, seq) < seq


class Held:
    """Runs of words of numbered texts, each with the first text that it stands in."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._vocabulary: set[str] = set()
        self._long: dict[str, int] = {}

    def add(
        self, number: int, words: Sequence[str], known: Callable[[int], bool] = lambda _: False
    ) -> int:
        """Hold a text but for runs that are ``known``.

        Returns:
            how long its longest row of words is of which no part is known.
        """
        free = longest = 0
        fresh = False
        for at, run in enumerate(runs_of(words)):
            if known(run):
                longest = max(longest, at - free)
                free = at + RUN
            else:
                self._first.setdefault(run, number)
                fresh = True
        if fresh:
            self._vocabulary.update(words)
        for word in words:
            if len(word) >= LONG:
                self._long.setdefault(word, number)
        return max(longest, len(words) - free)

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Numbers of texts that echo these words, with the run; a text may come repeatedly."""
        there = bytes(map(self._vocabulary.__contains__, words))
        for row in _IN_A_ROW.finditer(there):
            part = words[row.start() : row.end()]
            for at, run in enumerate(runs_of(part)):
                number = self._first.get(run)
                if number is not None:
                    yield number, " ".join(part[at : at + RUN])

    @property
    def holds_codes(self) -> bool:
        """Whether any text holds a word as long as an encoded line."""
        return bool(self._long)

    def find_code(self, line: str) -> int | None:
        """The number of the text that holds an encoded line (base64) as it is."""
        words = words_of(line)
        return self._long.get(words[0]) if len(words) == 1 else None
