r"""Which runs of words of one text stand in another: the rule of the echo. Pure.

A word is a row of letters and digits, without case, accents and what is not seen, as
``projections.formats.words`` has it. Two texts echo each other where :data:`RUN` of their words in
a row are the same (spec: kernel section 3, W = 12).

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
from collections.abc import Callable, Iterable, Iterator, Sequence

from projections.formats.words import RUN
from projections.formats.words import spoken as words_of

LONG = 24
"""Characters of a word from which on it may be a line of a chat file, which is base64."""

_TOKEN = re.compile(r"[^\W_](?:\S*[^\W_])?")
_BASE64 = re.compile(rf"[a-z0-9+/]{{{LONG},}}")
_IN_A_ROW = re.compile(b"\1{%d,}" % RUN)


def codes_of(text: str) -> set[str]:
    """What in a text may be an encoded line of a chat file, without the signs around it."""
    text = text.casefold()
    codes = {token for token in _TOKEN.findall(text) if len(token) >= LONG}
    return codes | {code.strip("+/") for code in _BASE64.findall(text)}


def has_word(text: str, start: int, stop: int) -> bool:
    """Whether a word stands in a part of a text."""
    return bool(words_of(text[start:stop]))


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
        self,
        number: int,
        words: Sequence[str],
        known: Callable[[int], bool] = lambda _: False,
        codes: Iterable[str] = (),
    ) -> int:
        """Hold a text but for runs that are ``known``; ``codes`` are what ``codes_of`` gives of it.

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
        for code in codes:
            self._long.setdefault(code, number)
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
        tokens = _TOKEN.findall(line.casefold())
        return self._long.get(tokens[0]) if len(tokens) == 1 else None
