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
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain, compress, count, repeat

from tripod.ledger.words import (
    RUN,
    comparable_text,
    is_hidden,
    odd_in,
    readings_of,
    without_escapes,
    words_in_bytes,
)
from tripod.ledger.words import words_of_text as words_of

LONG = 24
"""Characters of a word from which on it may be a line of a chat file, which is base64."""

_TOKEN = re.compile(r"[^\W_](?:\S*[^\W_])?")
_BASE64 = re.compile(rf"[a-z0-9+/]{{{LONG},}}")


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

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._since)

    def before(self, seq: int) -> Callable[[int], bool]:
        """Whether a run was known before an entry."""
        return lambda run: self._since.get(run, seq) < seq


SEED, STEP = 4, 3
"""Words of a seed, and of a step from one place that is looked at to the next: each look costs."""


class Seeds:
    """Rows of :data:`SEED` words of each run and each line that is held.

    Words of a searched text are looked at only around such a row. In which step a run begins there
    is not known, so it has a seed for each place in a step. Two indexes that are searched with the
    same words have their seeds in common, so that these are looked for once. Words to look for are
    bytes of UTF-8: to split these takes a quarter less than to split a text.
    """

    def __init__(self) -> None:
        self._marks: dict[tuple[bytes, ...], int] = {}
        self._words: dict[str, bytes] = {}

    def add(self, words: Sequence[str], runs: Sequence[int], length: int, mark: int) -> set[int]:
        """Give each run of so many words a seed for each place in a step: where in a text they are.

        ``runs`` are the places of their first words. A seed is the row with the most letters: short
        words are in many texts, long ones are not.
        """
        known = self._words
        whole = [known.get(word) or known.setdefault(word, word.encode()) for word in words]
        rows = list(zip(*(whole[at:] for at in range(SEED)), strict=False))
        letters = list(map(len, map(b"".join, rows)))
        seeds = set[int]()
        for place in range(STEP):
            at = 0
            while at < len(runs):
                run = runs[at]
                first = run + (place - run) % STEP
                most = letters[first : run + length - SEED + 1 : STEP]
                seed = first + STEP * most.index(max(most))
                seeds.add(seed)
                at = bisect_right(runs, seed, at + 1)  # those before it have it, too
        marks = self._marks
        for seed in seeds:
            marks[rows[seed]] = marks.get(rows[seed], 0) | mark
        return seeds

    def are_in(self, words: Sequence[bytes]) -> bool:
        """Whether a seed stands in a text: of nearly all texts this is all that is asked."""
        return not self._marks.keys().isdisjoint(self._rows(words))

    def of(self, words: Sequence[bytes]) -> bytes:
        """Which seeds stand in a text, a byte for each step."""
        return bytes(map(self._marks.get, self._rows(words), repeat(0)))

    @staticmethod
    def _rows(words: Sequence[bytes]) -> Iterator[tuple[bytes, ...]]:
        return zip(*(words[at::STEP] for at in range(SEED)), strict=False)


_OF_RUN, _OF_LINE = 1, 2
_RUN_SEED, _LINE_SEED = re.compile(b"[\1\3]"), re.compile(b"[\2\3]")


class PhraseIndex:
    """Runs of words of numbered texts, each with the first text that it stands in."""

    def __init__(self, seeds: Seeds | None = None) -> None:
        self._first: dict[int, int] = {}
        self._seeds = seeds or Seeds()
        self.codes: dict[str, int] = {}  # words as long as an encoded line

    def add(
        self,
        number: int,
        words: Sequence[str],
        known: Callable[[int], bool] | None = None,
        codes: Iterable[str] = (),
    ) -> int:
        """Hold a text but for runs that are ``known``; ``codes`` are its encoded lines.

        Gives how long its longest row of words is of which no part is known.
        """
        free = longest = 0
        runs, fresh = phrase_hashes(words), list[int]()
        for at, run in enumerate(runs):
            if known is not None and known(run):
                longest = max(longest, at - free)
                free = at + RUN
            else:
                fresh.append(at)
                self._first.setdefault(run, number)
        self._seeds.add(words, fresh, RUN, _OF_RUN)
        for code in codes:
            self.codes.setdefault(code, number)
        return max(longest, len(words) - free)

    def find(self, words: Sequence[str], seeds: bytes | None = None) -> Iterator[tuple[int, str]]:
        """Numbers of texts that echo these words, with the run; a text may come repeatedly.

        ``seeds`` are those in the words, where they are known.
        """
        done = 0  # each run that begins before it was looked at
        if seeds is None:
            seeds = self._seeds.of(" ".join(words).encode().split())
        for found in _RUN_SEED.finditer(seeds):
            at = found.start() * STEP
            part = words[max(done, at + SEED - RUN) : at + RUN]
            done = at + 1
            for start, run in enumerate(phrase_hashes(part)):
                number = self._first.get(run)
                if number is not None:
                    yield number, " ".join(part[start : start + RUN])

    def find_code(self, line: str) -> int | None:
        """The number of the text that holds an encoded line (base64) as it is."""
        tokens = _TOKEN.findall(line.casefold())
        return self.codes.get(tokens[0]) if len(tokens) == 1 else None


_AGAIN = re.compile(r"(\W)\1+")
"""A sign or a blank that stands there several times, as in a ruler behind a heading."""


def lines_of(text: str, but: Container[str] = ()) -> Iterator[list[str]]:
    """The words of each short line of a text that counts, ``but`` of some lines."""
    for line in text.splitlines():
        if len(line.strip()) < LONG:
            continue
        words = words_of(line)
        if not 0 < len(words) < RUN or len(_AGAIN.sub(r"\1", line).strip()) < LONG:
            continue
        if " ".join(words) not in but:
            yield words


class LineIndex:
    """Lines of texts that are too short for a run of words: found where a text has them whole.

    A line counts from :data:`LONG` characters on, in which a repeated sign is one: a ruler makes no
    line of a heading. One of :data:`RUN` words or more is for :class:`PhraseIndex`.

    >>> lines = LineIndex()
    >>> lines.add(7, "ann: the release slips to friday")
    >>> list(lines.find(words_of("chat/a.md:2: [09:00] ann: the release slips to Friday!")))
    [(7, 'ann the release slips to friday')]
    """

    def __init__(self, seeds: Seeds | None = None) -> None:
        self._first: dict[int, int] = {}
        # For a word that is a line, for two of a line that has too few for a seed, and for each
        # seed: where in a line it stands, and how many words the line has.
        self._words: dict[str, tuple[int, int]] = {}
        self._pairs: dict[tuple[str, str], set[tuple[int, int]]] = {}
        self._begins = set[str]()  # the first words of these pairs
        self._alone = set[bytes]()  # both: a word that must be there, where no seed is
        self._places: dict[tuple[str, ...], tuple[tuple[int, int], ...]] = {}
        self._seeds = seeds or Seeds()

    def add(self, number: int, text: str, but: Container[str] = ()) -> None:
        """Hold the short lines of a text, ``but`` some."""
        for words in lines_of(text, but):
            length = len(words)
            self._first.setdefault(hash(tuple(words)), number)
            if length == 1:
                self._words[words[0]] = 0, 1
                self._alone.add(words[0].encode())
                continue
            if length < SEED + STEP - 1:
                at = max(range(length - 1), key=list(map(len, words)).__getitem__)
                self._pairs.setdefault((words[at], words[at + 1]), set()).add((at, length))
                self._begins.add(words[at])
                self._alone.add(words[at].encode())
                continue
            for seed in self._seeds.add(words, [0], length, _OF_LINE):
                row = tuple(words[seed : seed + SEED])
                places = self._places.get(row, ())
                if (seed, length) not in places:  # there are few, and sets are large
                    self._places[row] = (*places, (seed, length))

    def may_find(self, words: Sequence[bytes]) -> bool:
        """Whether these words have one of a line that has too few for seeds."""
        return bool(self._alone) and not self._alone.isdisjoint(words)

    def find(self, words: Sequence[str], seeds: bytes | None = None) -> Iterator[tuple[int, str]]:
        """Numbers of texts of which a short line stands in these words, with the line.

        ``seeds`` are those in the words, where they are known.
        """
        if not self._words.keys().isdisjoint(words):
            for at in compress(count(), map(self._words.__contains__, words)):
                yield from self._lines(words, at, [self._words[words[at]]])
        if self._begins:
            may_be = list(map(self._begins.__contains__, words))[:-1]
            pairs = zip(compress(words, may_be), compress(words[1:], may_be), strict=True)
            every = zip(compress(count(), may_be), map(self._pairs.get, pairs), strict=True)
            for at, places in every:
                if places is not None:
                    yield from self._lines(words, at, places)
        if seeds is None:
            seeds = self._seeds.of(" ".join(words).encode().split())
        for found in _LINE_SEED.finditer(seeds):
            at = found.start() * STEP
            yield from self._lines(words, at, self._places[tuple(words[at : at + SEED])])

    def _lines(
        self, words: Sequence[str], at: int, places: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, str]]:
        """The lines that are held and have the word ``at`` at one of some places."""
        for place, length in places:
            line = words[max(at - place, 0) : at - place + length]
            number = self._first.get(hash(tuple(line)))
            if number is not None:
                yield number, " ".join(line)


_ENDS = re.compile("[\x1b\x07]")
"""How what a terminal does not show begins and ends; between them may stand any text."""

NUMBERS = re.compile(r"\n(?:[^\s:]+:)?[ \t]*[0-9]+[\t:|\u2192-]")
"""What programs put before each line of a file: its number, and where several are, its name.

A line is told by the end of the one before: a search for that takes a tenth of one for ``^``.
"""

IS_NUMBERED = re.compile(r" *[0-9]+[\t\u2192]")
"""How Claude Code begins the text of a file; other programs may read a folder so."""

LISTED = re.compile(
    r"""^(?:Output:\ )?(?:
    (?:File:\ )?(\S*[^\s:]):?\n(?=\s*(?:Line\ |L)?\d+[:-])  # a name over numbered lines
    | (?:(?:HEAD|main|master|[0-9a-f]{7,40})[~^0-9]*:)?  # git grep begins with the revision
      ((?:[A-Za-z]:)?[^\s:]++):(?!\d+$|$)  # a line of a file behind the file's name
    | (?:---|\+\+\+)\ (?:[ab]/)?(\S+)
    | diff\ -(?!-git).*[ \t](\S+)$
    | (?P<counted>(?:[A-Za-z]:)?[^\s:]++):\d+$
    | (?P<alone>(?:[A-Za-z]:)?[^\s:]++):?$
    )""",
    re.MULTILINE | re.VERBOSE,
)
"""Where the answer of a search says of which file a text is. A name elsewhere is only a word."""

_NUMBERED = re.compile(
    r"\n(?:(?:[A-Za-z]:)?[^\s:]+[:-])?[ \t]*+(?:L|Line |[#\[])?[0-9]++"
    r"(?: ?[\t:|\u2192\u2502.)\]-]| +\u2502?)"
)
"""How other programs number lines: only the words behind the number are compared."""

# From the first of some backslashes alone: from each of them it would take the square of the time.
_BREAKS, _TABS = re.compile(r"(?<!\\)\\++[nr]"), re.compile(r"(?<!\\)\\++t")
_CODES = re.compile(r"(?<!\\)\\++u([0-9a-fA-F]{4})")

PIECE = 1024 * 1024  # characters that are searched at once
_ROW = 40 * RUN
"""Words that two pieces share: beside those of a run, numbers of lines and names of files.

A line may have one word of a run, behind a path with many names.
"""

_SIGN = re.compile(r"[ \t-\r!-/:-@\[-`{-~]")
"""What parts words wherever it stands."""


def search_in_pieces(
    search: Callable[[list[str]], list[list[int]]], texts: list[str]
) -> list[list[int]]:
    """Search texts; long ones in pieces, one by one: their words take ten times the memory."""
    if sum(map(len, texts)) <= PIECE:
        return search(texts)
    return [
        sorted({*chain(*chain(*(search([each]) for each in pieces_of(text, PIECE, _ROW))))})
        for text in texts
    ]


class ProtectedText:
    """Text that must not reach the model, of numbered files."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.is_searchable = False  # whether there is text, and all of it can be found
        self.searchable = 0  # files of which at least a part can be found
        self._held: list[tuple[int, str]] = []  # texts that are in no index yet
        self._seeds = Seeds()
        self._runs, self._lines = PhraseIndex(self._seeds), LineIndex(self._seeds)
        self._allowed, self._allowed_lines = VisiblePhrases(), set[str]()

    def allow(self, text: str) -> None:
        """Take a text that may be read, before those that may not: what both have counts not."""
        self._allowed.add(0, text)
        self._allowed_lines.update(" ".join(words_of(line)) for line in text.splitlines())

    def add(self, path: str, text: str) -> None:
        """Protect the text of a file: 12 words in a row of it, or a shorter line of it whole."""
        found = any(lines_of(text, self._allowed_lines)) or len(words_of(text)) >= RUN
        self._held.append((len(self.paths), text))
        self.searchable += found
        self.is_searchable = found and (self.is_searchable or not self.paths)
        self.paths.append(path)

    def index(self) -> None:
        """Take the texts that wait into the indexes: a search does so, once."""
        held, self._held = self._held, []
        once: dict[str, str] = {}  # most words are in many texts
        for number, text in held:
            known = self._allowed.before(1) if self._allowed else None
            words = [once.setdefault(word, word) for word in words_of(text)]
            self._runs.add(number, words, known)
            self._lines.add(number, text, self._allowed_lines)

    def found_in(self, text: str) -> Iterator[str]:
        """Files of which text stands in a text, each once; a long text is searched in pieces."""
        yield from (self.paths[one] for one in chain(*search_in_pieces(self.search, [text])))

    def search(self, texts: Sequence[str], joints: Sequence[str] = ()) -> list[list[int]]:
        """For each of some texts the numbers of files of which text stands in it; [] if in none.

        ``joints`` are searched as well: ends of one of the texts with the beginning of the next.
        """
        if not (self.paths and texts) or not self._may_be_in(texts, joints):
            return []
        return [
            sorted({number for form in _forms_of(text) for number in self._found_in(form)})
            for text in (*texts, *joints)
        ]

    def _may_be_in(self, texts: Sequence[str], joints: Sequence[str]) -> bool:
        """Whether text of a file may stand in one of some texts, or in two together."""
        whole = "\n".join(texts)
        odd = odd_in(whole)
        if is_hidden(odd):
            forms = [form for text in (*texts, *joints) for form in _forms_of(text)]
            whole = "\n".join(map(comparable_text, forms))
        else:
            if written := "\n".join(chain(*map(_as_written, (*texts, *joints)))):
                whole, odd = f"{whole}\n{written}", odd + odd_in(written)
            whole = comparable_text("\n".join([whole, *_without_numbers(whole)]), odd)
        return next(self._found_in(whole), None) is not None

    def _found_in(self, text: str) -> Iterator[int]:
        if self._held:
            self.index()
        plain = words_in_bytes(comparable_text(text)).split()
        if not (self._seeds.are_in(plain) or self._lines.may_find(plain)):
            return  # as in nearly all texts
        words, seeds = [word.decode() for word in plain], self._seeds.of(plain)
        yield from (number for number, _ in self._runs.find(words, seeds))
        yield from (number for number, _ in self._lines.find(words, seeds))


def _forms_of(text: str) -> Iterator[str]:
    """A text, and what it is without numbers of lines, or if what is not seen of it counts.

    A text may stand in another as JSON writes it: there a line begins with a letter, and no blank.
    """
    forms = [text, *readings_of(text)]
    if "\x1b" in text:
        plain = without_escapes(text)
        forms = [_ENDS.sub(" ", text), plain, *readings_of(plain)]  # with what a link hides
    for form in (*forms, *_as_written(text)):
        yield form
        yield from _without_numbers(form)


def _as_written(text: str) -> Iterator[str]:
    r"""A text with the lines and the characters that JSON in it stands for.

    JSON may stand in JSON, and what it writes may itself have backslashes.

    >>> list(_as_written(r'1\tprint(\"\\n\")\n'))
    ['1\tprint(\\"\n\\")\n', '1\tprint("\\n")\n']
    """
    if "\\" in text and ("\\n" in text or "\\u" in text):
        lines = [_TABS.sub("\t", _BREAKS.sub("\n", text))]
        lines += [_SIGNS.sub(_sign_of, text)] if "\\\\" in text else []
        for form in lines:
            yield without_escapes(_CODES.sub(lambda found: chr(int(found[1], 16)), form))


def _without_numbers(text: str) -> Iterator[str]:
    r"""A text without the numbers of its lines; of a long part between two of them, its sides.

    Nothing else has other words beside it than before, and most texts have few such numbers.

    >>> list(_without_numbers("1 red\n2 green")), list(_without_numbers("red"))
    (['\nred\ngreen'], [])
    """
    parts = _NUMBERED.split(f"\n{text}")
    if len(parts) == 1:
        return
    begun: list[str] = []
    is_whole = "\x1b" in text  # what is not seen may be long
    for part in parts:
        head, tail = (part, "") if is_whole else _sides_of(part)
        begun.append(head)
        if tail:
            yield "\n".join(begun)
            begun = [tail]
    yield "\n".join(begun)


_SIDE = 160  # characters, in which a run of words nearly always has its place
_RUN = re.compile(rf"(?:[^A-Za-z0-9]*+[A-Za-z0-9][^ \t\n]*+){{{RUN}}}")
"""At least the words of a run. Each has a letter or a digit of ASCII, and ends at a blank."""

_BLANK = re.compile(r"[ \t\n]")


def _sides_of(part: str) -> tuple[str, str]:
    """The begin and the end of a text, each with the words of a run; or all of it, and nothing."""
    if len(part) > 4 * _SIDE:
        begin, end = _RUN.match(part), _BLANK.search(part, len(part) - _SIDE)
        if begin and end and begin.end() < end.start() and _RUN.match(part, end.start()):
            return part[: begin.end()], part[end.start() :]
    return part, ""


def pieces_of(text: str, size: int, row: int = RUN) -> Iterator[str]:
    """Pieces of a text, in one of which each row of so many words stands whole.

    A cut parts no word, and nothing that a terminal does not show. Where ``size`` characters have
    no place for one, a piece is longer.

    >>> list(pieces_of("a b c d e f g h i j k l m n o p", 26))
    ['a b c d e f g h i j k l m n ', 'b c d e f g h i j k l m n o p']
    """
    sign = re.compile("\n") if "\x1b" in text else _SIGN
    begin = end = 0
    while cut := sign.search(text, end + size):
        end = cut.end()
        last = _last_words(text, begin, end, sign, row)
        if last > begin:
            yield text[begin:end]
            begin = last
    yield text[begin:]


def _last_words(text: str, begin: int, end: int, sign: re.Pattern[str], row: int) -> int:
    """Where the last words of a part of a text begin; at its begin, where it has too few."""
    back = row
    while back < end - begin:
        back *= 2
        start = sign.search(text, max(end - back, begin), end)
        if start is not None and len(words_of(text[start.end() : end])) >= row:
            return start.end()
    return begin


_SHORT = 8  # characters from which on a line of an output is told from another
_MOST_COMPARED = 2**30  # characters, over all lines of an output: a second


_SIGNS = re.compile(r"\\([nrt\"\\/])")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def _sign_of(found: re.Match[str]) -> str:
    return _ESCAPED.get(found[1], found[1])


def overlaps(output: str, text: str) -> bool:
    """Whether text of an output stands in a text: all of it, or a line or 12 words of it.

    Of very many lines in a very long text it is taken for granted.
    """
    whole = output.strip()
    if "\\" in text:  # a script may give it as JSON
        text = f"{text}\n{_SIGNS.sub(_sign_of, text)}"
    lines = {line for line in map(str.strip, output.splitlines()) if len(line) >= _SHORT}
    if (whole and whole in text) or len(lines) * len(text) > _MOST_COMPARED:
        return True
    one = ProtectedText()
    one.add("output", output)
    return any(line in text for line in lines) or any(one.found_in(text))
