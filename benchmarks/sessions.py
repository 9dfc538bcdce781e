"""What reading and judging recorded sessions costs: two files of 100 MB, made of real ones.

Sessions of two programs are taken from the recordings of the tests, again and again until the file
is large enough. Each copy has ids of its own, and one word in eight of each text and command is
another word of the same recordings: no two copies are alike, and nothing is easier to find in one.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson

from benchmarks.commands import TRIPOD, WARM_UP, command_seconds
from benchmarks.judging import cost_of
from benchmarks.measure import MB, Row, cost_row, in_turn, rate_row, size_row
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.recorded.files import judged_beside, read_session_file
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import Given, Item

__all__ = ["SESSIONS", "expose", "make_session", "read", "rows"]

ARCHIVE = Path(__file__).parent.parent / "tests/golden/sessions.tar.xz"
SOURCES = {
    "Claude Code": r"transcripts/claude.*\.jsonl|sessions/(allways|restr|sh_\w+)/[0-9a-f-]+\.jsonl",
    "Codex": r"transcripts/codex.*\.jsonl|sessions-2026-11/codex.*/rollout[^/]*\.jsonl",
}
"""The recordings of each program: those that people made, and larger ones of the tests."""

LARGE, SMALL = 100 * MB, MB
NEVER = ("chat/**", ".env*", "**/secrets/*.json", "hidden_tests/**", "/etc/shadow")
LINES = 10_000
FLOOR = (sys.executable, "-c", "import click, orjson, tree_sitter")

_ID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:toolu|call|msg|req)_\w{8,}|\ba[0-9a-f]{16}\b"
)
_WORD = re.compile("[A-Za-z]{5,}")


def rows(folder: str, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on sessions; ``rounds`` pairs each."""
    for program in SOURCES:
        say(f"a session of {program} of {LARGE // MB} MB")
        path = os.path.join(folder, f"{program.partition(' ')[0]}.jsonl")
        lines = make_session(path, program, LARGE)
        name = program.lower().replace(" ", "-")
        pairs = in_turn(partial(read, path), partial(_parse, path), rounds)
        what = f"reading a session of {program}, {LARGE // MB} MB / parsing its lines with orjson"
        yield rate_row(f"session-read-{name}", what, pairs, lines, 0.3)
        pairs = in_turn(partial(_alone, expose, path), partial(_alone, read, path), rounds)
        what = f"judging it by {len(NEVER)} globs and {LINES:,} protected lines / reading it"
        yield cost_row(f"session-judge-{name}", f"{what}, {program}", pairs, 3)
        peaks = [cost_of("expose", path).peak]
        yield size_row(f"session-memory-{name}", f"peak memory of that, {program}", peaks, 120)
        make_session(path, program, SMALL)
        command = (TRIPOD, "exposure", *(f"--never={one}" for one in NEVER), path)
        for _ in range(WARM_UP):
            _finished(command)
        pairs = in_turn(partial(_finished, command), lambda: command_seconds(FLOOR), rounds)
        what = f"`tripod exposure`, 1 MB of {program} / `python -c '{FLOOR[2]}'`"
        yield cost_row(f"session-command-{name}", what, pairs, 2.5)


def make_session(path: str, program: str, size: int) -> int:
    """Write a session of so many bytes or a little more; give how many lines it has."""
    rng = random.Random(1)
    records = [orjson.loads(line) for line in _recorded(program)]
    words = [word for record in records for word in _WORD.findall(orjson.dumps(record).decode())]
    numbers = count()
    written = lines = 0
    with open(path, "wb") as file:
        for copy in count():
            change = partial(_changed, str(copy), rng, words)
            for record in records:
                value = _in_texts(record, change)
                if "sessionId" in value:
                    value["sessionId"] = "bench"
                if value.get("type") == "session_meta":
                    value["payload"]["id"] = "bench"
                if "payload" in value:
                    value["ordinal"] = next(numbers)
                written += file.write(orjson.dumps(value) + b"\n")
                lines += 1
                if written >= size:
                    return lines
    raise AssertionError


def _recorded(program: str) -> list[bytes]:
    with tarfile.open(ARCHIVE) as archive:
        names = (name.removeprefix("./") for name in archive.getnames())
        files = [archive.extractfile(name) for name in sorted(names) if _is_of(program, name)]
        return [line for file in files if file is not None for line in file]


def _is_of(program: str, name: str) -> bool:
    return re.fullmatch(SOURCES[program], name) is not None


def _in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with each of its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _in_texts(one, change) for name, one in value.items()}
    if isinstance(value, list):
        return [_in_texts(one, change) for one in value]
    return value


def _changed(copy: str, rng: random.Random, words: list[str], text: str) -> str:
    if re.search(r"[\s/]", text):
        text = _WORD.sub(lambda old: rng.choice(words) if rng.random() < 1 / 8 else old[0], text)
    return _ID.sub(lambda old: _other_id(copy, old[0]), text)


def _other_id(copy: str, old: str) -> str:
    """An id of the same form; within one copy an old id always becomes the same new one."""
    digits = iter(sha256(f"{copy} {old}".encode()).hexdigest())
    begin = old.find("_") + 1 or int("-" not in old)
    return old[:begin] + re.sub(r"\w", lambda _: next(digits, "0"), old[begin:])


def _alone(act: Callable[[str], float], path: str) -> float:
    """The seconds of an act in a process of its own: nothing that was done before is in memory."""
    name = act.__name__
    code = f"import sys; from benchmarks.sessions import {name}; print({name}(sys.argv[1]))"
    done = subprocess.run((sys.executable, "-c", code, path), stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def read(path: str) -> float:
    """Read a session."""
    begin = perf_counter()
    read_session_file(path)
    return perf_counter() - begin


def _parse(path: str) -> float:
    begin = perf_counter()
    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)
    return perf_counter() - begin


def expose(path: str) -> float:
    """Judge a session by globs, and by lines made of words as the model was given them."""
    rng = random.Random(2)
    words = _given_words(path)
    texts = [
        "\n".join(" ".join(rng.choices(words, k=rng.choice((6, 9, 14, 20)))) for _ in range(100))
        for _ in range(0, LINES, 100)
    ]
    del words  # they are the benchmark's own
    begin = perf_counter()
    protected = ProtectedText()
    for number, text in enumerate(texts):
        protected.add(f"chat/{number}.md", text)
    rule = NeverRule(NEVER, ["*.example"])
    with judged_beside(protected, rule, [path]) as helper:
        judged = SessionExposures(rule, protected, path, helper=helper)
        read_session_file(path, judged.add)
        judged.end()
    assert judged.found, "the recordings read files of chats"
    return perf_counter() - begin


SESSIONS: dict[str, Callable[[str], object]] = {"expose": expose}


class _EnoughError(Exception):
    """There are words enough."""


def _given_words(path: str) -> list[str]:
    found: list[str] = []

    def add(item: Item) -> None:
        if isinstance(item, Given):
            found.extend(re.findall("[A-Za-z]+", item.text))
        if len(found) > 200_000:
            raise _EnoughError

    with suppress(_EnoughError):
        read_session_file(path, add)
    return found


def _finished(command: tuple[str, ...]) -> float:
    """Run a command, whose verdict is its exit code; the seconds that it took."""
    begin = perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    assert done.returncode in (0, 1, 3), done.returncode
    return perf_counter() - begin
