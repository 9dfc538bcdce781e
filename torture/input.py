"""Input: each parser is given a great many inputs that nobody wrote, and each answer is judged.

An input grows from one that went well before by mutations. What is new about an answer (a line of
the parser that was not reached before, an error of another form, a value of another shape) keeps
its input, and others grow from it. What must hold of each:

- what the parser names comes out, and nothing else; a verifier takes nothing that was not signed;
- what was read can be written, and means the same: the same bytes, where the format has one
  spelling;
- it takes no more than 20 times as long as texts of the size that are as they should be.

``CORPUS`` holds inputs that were worth keeping. A test runs each of them.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from torture.children import within
from torture.mutation import grow, mutate
from torture.parsers import Parser, parsers
from torture.teams import Case, Result, Scene

__all__ = ["CORPUS", "GROUPS", "corpus", "keep", "misreadings", "tried"]

CORPUS = Path(__file__).parent / "corpus.jsonl"
"""A line for each input: the parser and the bytes, as characters up to U+00FF."""
FOUND = Path(tempfile.gettempdir(), "tripod-torture")
"""Where each input that went wrong is put, in a file of its own."""
GROUPS = tuple(Scene(name, (), ()) for name in parsers())
"""What the family takes in turn, where others take teams."""
TIMES = 20
"""So many times the time of a plain text of its size an input may take."""
SLACK = 0.01
"""Seconds that any input may take: the collector of garbage, another process."""
PATIENCE = 2.0
"""Seconds beyond four times that, after which an input is given up."""
AT_ONCE = 40
"""So many inputs go to one parser before the next one's turn."""
LONG = 2**20
"""Bytes of the longest input."""
LONG_SHARE = 1 / 400
"""Of the inputs, so many are long."""
KEPT = 4000
"""Bytes of the longest input from which others grow."""
ROOM = 5000
"""Bytes of the inputs that are kept of one parser."""
_MOST = 600  # inputs from which others grow, of one parser
_PLAIN = b"the quick brown fox jumps over the lazy dog, and what it said is not known to me\n"
_VARYING = re.compile(r"""[0-9]+|'[^']*'?|"[^"]*"?|[^\x20-\x7e]+""")


def misreadings(scene: Scene, _folder: Path, seed: int) -> Iterator[Case]:
    """Inputs for the parsers of a group, without end. Each is run before its case is given.

    So the next ones can grow from it, and the n-th of a seed is always the same.
    """
    group = [_Growing(parser, seed) for parser in parsers()[scene.name].values()]
    while True:
        for one in group:
            for _ in range(AT_ONCE):
                what, result = one.step()
                yield Case(what, lambda result=result: result)  # type: ignore[misc]


class _Growing:
    """The inputs of one parser: those from which others grow, and what they have shown."""

    def __init__(self, parser: Parser, seed: int) -> None:
        self.parser = parser
        self.chance = random.Random(f"{seed} {parser.name}")
        self.lines = _Lines(parser)
        self.pool: list[bytes] = []
        self.seen: set[object] = set()
        self.floor = _Floor(parser)
        self.begun = [*reversed(corpus().get(parser.name, ())), *reversed(parser.seeds)]

    def step(self) -> tuple[str, Result]:
        """Try one more input; what it is, in words, and what came of it."""
        how, data = ("kept", self.begun.pop()) if self.begun else self._mutated()
        result = tried(self.parser, data, self.floor)
        self._note(data, result)
        if not result.wrong:
            return "", Result(result.what.partition(":")[0])
        FOUND.mkdir(exist_ok=True)
        file = FOUND / f"{self.parser.name.replace(' ', '-')}-{sha256(data).hexdigest()[:12]}"
        file.write_bytes(data)
        shown = f"{data[:300]!r} (in {file})"
        return f"{self.parser.name}, {how}, {len(data)} bytes", Result(
            f"{result.what}\n      input: {shown}", wrong=True
        )

    def _mutated(self) -> tuple[str, bytes]:
        """An input that was never tried, most likely; what was done to get it."""
        chance = self.chance
        # The newest are the least tried.
        at = int(len(self.pool) * max(chance.random(), chance.random()))
        data, other = self.pool[at], chance.choice(self.pool)
        if chance.random() < LONG_SHARE:
            return grow(chance, data, self.parser.words, self._size())
        return mutate(chance, data, other, self.parser.words)

    def _size(self) -> int:
        """How long a long input is: no plain one of the size takes a third of a second."""
        most = min(LONG, self.floor.longest(0.3))
        return int(most ** (0.5 + self.chance.random() / 2))

    def _note(self, data: bytes, result: Result) -> None:
        """Keep an input that showed something new."""
        if (len(data) > KEPT or result.wrong) and self.pool:
            return
        is_new = result.what not in self.seen
        if is_new or self.chance.random() < self.lines.share:
            is_new |= self.lines.has_new(data)
        if is_new or not self.pool:
            self.seen.add(result.what)
            self.pool.append(data)
            if len(self.pool) > _MOST:
                del self.pool[int(self.chance.random() * _MOST)]


def tried(parser: Parser, data: bytes, floor: _Floor | None = None) -> Result:
    """What a parser makes of an input: the form of its answer, or what is wrong with that.

    Without ``floor`` its time is not judged.
    """
    limit = 60.0 if floor is None else floor.limit(len(data))
    begun = time.process_time()
    try:
        with within(4 * limit + PATIENCE, _HangsError):
            result = _answer(parser, data)
    except _HangsError:
        return Result(f"hangs: {limit:.2f} s are allowed, and it was given up", wrong=True)
    took = time.process_time() - begun
    if took > limit and not result.wrong:
        # Others may be at work: the best of four counts.
        took = min(took, *(_seconds(parser, data) for _ in range(3)))
        if took > limit:
            return Result(f"slow: {took:.3f} s, and {limit:.3f} are allowed", wrong=True)
    return result


def _answer(parser: Parser, data: bytes) -> Result:
    try:
        value = parser.read(data)
    except _HangsError:
        raise
    except parser.errors as error:
        return Result(f"refused: {type(error).__name__} {_VARYING.sub('?', str(error)[:200])}")
    except Exception:  # noqa: BLE001 - whatever a parser raises here is what is looked for
        return Result(f"raises: {traceback.format_exc(limit=-4)}", wrong=True)
    if parser.write is not None and value is not None:
        try:
            again = parser.write(value)
            if again != data and (parser.is_strict or (again and parser.read(again) != value)):
                return Result(f"read back otherwise: {again[:300]!r}", wrong=True)
        except _HangsError:
            raise
        except Exception:  # noqa: BLE001
            return Result(f"cannot be written: {traceback.format_exc(limit=-4)}", wrong=True)
    return Result(f"read: {_form(value)}")


def _form(value: Any, depth: int = 3) -> str:
    """The form of a value in a few signs: its types, and roughly how many."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, str | bytes | int | float):
        return f"{type(value).__name__[0]}{'' if value else 0}"
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        some = ",".join(_form(one, depth - 1) for one in value[:6]) if depth else ""
        return f"{len(value).bit_length()}({some})"
    return type(value).__name__


# Time --------------------------------------------------------------------------------------------


class _HangsError(BaseException):
    """An input took too long; no parser takes this for an error of its own."""


def _seconds(parser: Parser, data: bytes) -> float:
    begun = time.process_time()
    _answer(parser, data)
    return time.process_time() - begun


class _Floor:
    """How long a parser takes for what is as it should be: its seeds, and plain text."""

    def __init__(self, parser: Parser) -> None:
        some = parser.seeds or tuple(corpus()[parser.name])
        self.least = max(min(_seconds(parser, one) for _ in range(3)) for one in some)
        ends = ((one, end) for one in (_PLAIN, *some[:6], b"\n".join(some)) for end in (b"\n", b""))
        texts = [(one + end) * (8192 // max(1, len(one)) + 1) for one, end in ends]
        # Some take no more than a few KiB.
        slowest = max(_seconds(parser, one[:size]) / size for one in texts for size in (2048, 8192))
        # Every parser may take as long as it takes to find the words of the text.
        begun = time.process_time()
        re.findall(rb"\w+", texts[0] * 8)
        self.rate = max(slowest, (time.process_time() - begun) / (8 * len(texts[0])))

    def limit(self, size: int) -> float:
        """Seconds that an input of ``size`` bytes may take."""
        return TIMES * (self.least + self.rate * size) + SLACK

    def longest(self, seconds: float) -> int:
        """Bytes of a plain text that takes so long."""
        return max(1000, int(seconds / self.rate))


# What was reached --------------------------------------------------------------------------------


class _Lines:
    """Which lines of the modules beside a parser were reached.

    ``share``: of the inputs that showed nothing else, so many are looked at.
    """

    share = 1 / 12

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        files = (sys.modules[function.__module__].__file__ for function in parser.covers)
        self.folders = tuple({os.path.dirname(file) + os.sep for file in files if file})
        self.seen: set[tuple[CodeType, int]] = set()

    def has_new(self, data: bytes) -> bool:
        """Whether this input reaches a line that none reached before."""
        before = len(self.seen)
        add, folders = self.seen.add, self.folders

        def of_line(frame: FrameType, event: str, _: object) -> Any:
            if event == "line":
                add((frame.f_code, frame.f_lineno))
            return of_line

        def of_call(frame: FrameType, _event: str, _: object) -> Any:
            return of_line if frame.f_code.co_filename.startswith(folders) else None

        traced = sys.gettrace()
        sys.settrace(of_call)
        try:
            with within(5, _HangsError):
                _answer(self.parser, data)
        except _HangsError:
            return False  # it is judged where its time is
        finally:
            sys.settrace(traced)
        return len(self.seen) > before


# What is kept ------------------------------------------------------------------------------------


@cache
def corpus() -> dict[str, list[bytes]]:
    """The inputs that were kept, by parser."""
    found: dict[str, list[bytes]] = {}
    for line in CORPUS.read_text("ascii").splitlines():
        name, text = json.loads(line)
        found.setdefault(name, []).append(text.encode("latin-1"))
    return found


def keep(found: dict[str, list[bytes]]) -> None:
    """Write the corpus: for each parser the shortest inputs that together show what all show."""
    lines = []
    for group in parsers().values():
        for parser in group.values():
            reached, seen, room = _Lines(parser), set[str](), ROOM
            for data in sorted(set(found.get(parser.name, ())), key=len):
                what = tried(parser, data).what
                if len(data) <= room and (reached.has_new(data) or what not in seen):
                    seen.add(what)
                    room -= len(data)
                    lines.append(json.dumps([parser.name, data.decode("latin-1")]))
    CORPUS.write_text("".join(f"{line}\n" for line in lines), "ascii")


def main() -> None:
    """Have the inputs of each parser grow for some seconds, and keep what showed something new."""
    seconds, found = float(sys.argv[1]), {name: list(those) for name, those in corpus().items()}
    for group in parsers().values():
        for parser in group.values():
            one, begun = _Growing(parser, 0), time.process_time()
            while time.process_time() - begun < seconds:
                what, result = one.step()
                if result.wrong:
                    print(f"{what}: {result.what}", flush=True)
            found.setdefault(parser.name, []).extend(one.pool)
    keep(found)


if __name__ == "__main__":
    main()
