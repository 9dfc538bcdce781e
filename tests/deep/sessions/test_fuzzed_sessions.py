"""Real sessions, cut, spliced and flipped: nothing raises, and no damage is called clean.

What is damage is told by rules of this file, which know nothing of the readers. A fresh seed each
run, printed where a trial fails; TRIPOD_SEED repeats one. TRIPOD_TRIALS says how many mutated
files are tried (``make soak``: 200,000).
"""

import json
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from recorded_sessions import CHAT, recorded, transcripts

from torture.mutation import mutate
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.recorded.files import read_session_file
from tripod.verify.recorded.project import Project
from tripod.verify.sessions.exposure import (
    SessionExposures,
    judge_exposures,
)
from tripod.verify.sessions.items import Call, Given, Item

TRIALS = int(os.environ.get("TRIPOD_TRIALS", "300"))
SEED = int(os.environ.get("TRIPOD_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
LONG = 60_000  # bytes of a file, over which only its first lines are mutated
NOWHERE = "no/such/**"
RULES = {never: NeverRule([never]) for never in (CHAT, NOWHERE)}
PROTECTED = ProtectedText()
PROTECTED.add("x.md", "one two three four five six seven eight nine ten eleven twelve thirteen")


class Specimen(NamedTuple):
    """A session to mutate: its bytes, its answer by each rule, and what of it is evidence.

    ``shown`` has for each file that it read, or may have, the lines that say so; all of them
    together are enough.
    """

    name: str
    data: bytes
    project: Path | None
    told: dict[str, str]
    shown: list[tuple[bytes, ...]]
    is_document: bool


def judge(path: Path, project: Path | None, each: Callable[[Item], None] | None = None) -> Any:
    """The answer to each rule, as ``tripod exposure`` finds it for a file that was named."""
    closed = frozenset[Any](("instructions", "home") if project is not None else ())
    both = [SessionExposures(rule, PROTECTED, "x", closed) for rule in RULES.values()]

    def add(item: Item) -> None:
        for one in both:
            one.add(item)
        if each is not None:
            each(item)

    found = read_session_file(str(path), add, is_named=True)
    if found.program is None:
        assert found.problem
        return dict.fromkeys(RULES, "cannot tell"), both
    for item in Project(str(project)).items(found.program) if project is not None else ():
        add(item)
    for one in both:
        one.end()
    told = [judge_exposures([one], Counter()).told for one in both]
    return dict(zip(RULES, told, strict=True)), both


def _specimen(source: Path, data: bytes, scratch: Path) -> Specimen:
    """A session, or the first lines of one that is long."""
    if source.suffix == ".jsonl" and len(data) > LONG:
        data = data[: data.rindex(b"\n", 0, LONG) + 1]
    scratch.write_bytes(data)
    team = next((one / "team" for one in source.parents if (one / "team").is_dir()), None)
    items: list[Item] = []
    told, both = judge(scratch, team, items.append)
    shown = list(_evidence(data, items, both[0])) if source.suffix == ".jsonl" else []
    name = str(source).removeprefix(f"{recorded()}/")
    return Specimen(name, data, team, told, shown, source.suffix == ".json")


def _evidence(data: bytes, items: list[Item], one: SessionExposures) -> Iterator[tuple[bytes, ...]]:
    """For each read, and each command that may be one, the lines of the call and of its answers."""
    lines = data.split(b"\n")
    calls = [(item.line, item.id) for item in items if isinstance(item, Call)]
    told = [(each.line, each.call) for each in one.found]
    told += [(gap.line, None) for gap in one.gaps if gap.cause == "opaque"]
    for line, call in told:
        names = {call, *(name for at, name in calls if at == line)} - {None}
        numbers = {line, *(at for at, name in calls if name in names)}
        numbers |= {item.line for item in items if isinstance(item, Given) and item.call in names}
        if line:
            yield tuple(lines[number - 1] for number in sorted(numbers))


_CURSOR = (
    {"role": "user", "message": {"content": [{"type": "text", "text": "go on"}]}},
    {"role": "assistant", "message": {"content": [
        {"type": "text", "text": "I look"},
        {"type": "tool_use", "name": "Read", "input": {"path": "/w/chat/lobby.md"}},
        {"type": "tool_use", "name": "Shell", "input": {"command": "cd /w && cat chat/a.md"}},
    ]}},
    {"role": "user", "message": {"content": [
        {"type": "tool_result", "content": "one"}, {"type": "tool_result", "content": "two"},
    ]}},
    {"type": "turn_ended"},
)  # fmt: skip
_ATIF = {
    "schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "x", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "You are an agent"},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "go on"}]},
        {"step_id": 3, "source": "agent", "message": "", "tool_calls": [
            {"tool_call_id": "c", "function_name": "read", "arguments": {"path": "chat/lobby.md"}},
        ], "observation": {"results": [{"source_call_id": "c", "content": "one"}]}},
    ],
}  # fmt: skip
_GEMINI = {
    "sessionId": "s", "projectHash": "x", "startTime": "t", "messages": [
        {"id": "a", "type": "user", "content": "**Workspace Directories:**\n  - /w\n"},
        {"id": "b", "type": "gemini", "content": "", "toolCalls": [
            {"id": "c", "name": "read_file", "args": {"absolute_path": "/w/chat/lobby.md"},
             "status": "success", "result": [
                 {"functionResponse": {"id": "c", "name": "x", "response": {"output": "y"}}},
             ]},
        ]},
    ],
}  # fmt: skip
WRITTEN = {
    "cursor.jsonl": "\n".join(map(json.dumps, _CURSOR)),
    "atif.json": json.dumps(_ATIF),
    "gemini.json": json.dumps(_GEMINI),
}
"""Formats of which there is no recording."""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "a.jsonl"


@pytest.fixture(scope="module")
def specimens(scratch: Path) -> list[Specimen]:
    exports = recorded().glob("sessions-2026-11/opencode-*/export-*.json")
    found = {source: source.read_bytes() for source in (*transcripts(), *sorted(exports))}
    found |= {Path(name): text.encode() for name, text in WRITTEN.items()}
    return [_specimen(source, data, scratch) for source, data in found.items()]


# Mutations --------------------------------------------------------------------------------------


def _muted(rng: random.Random, data: bytes) -> bytes:
    """A session of Claude Code in which some answers say nothing."""
    lines = data.split(b"\n")
    answers = [number for number, line in enumerate(lines) if b'"tool_result"' in line]
    for number in answers[: rng.randrange(3)]:
        value = _record(lines[number]) or {}
        if isinstance(value.get("message"), dict):
            value["message"]["content"] = []
        lines[number] = json.dumps(value).encode()
    return b"\n".join(lines)


def mutated(rng: random.Random, one: Specimen, other: Specimen) -> tuple[str, bytes]:
    """A session with some changes; give what was done."""
    data = _muted(rng, one.data) if rng.random() < 0.05 else one.data
    return mutate(rng, data, other.data)


# What is damage, told without the readers -------------------------------------------------------


def _record(text: bytes) -> dict[str, Any] | None:
    """A record of JSON, None if it is none."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        value = json.loads(text.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _texts(values: list[dict[str, Any]], name: str) -> set[str]:
    return {one[name] for one in values if isinstance(one.get(name), str)}


def _blocks(value: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    message = value.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            yield block


def _waits(values: list[dict[str, Any]]) -> bool:
    """Whether a call of Claude Code that reads, and is not the last call, has no answer."""
    asked = [block for one in values if one.get("type") == "assistant"
             for block in _blocks(one, "tool_use")]  # fmt: skip
    answered = {str(block.get("tool_use_id")) for one in values if one.get("type") == "user"
                for block in _blocks(one, "tool_result")}  # fmt: skip
    reads = [block for block in asked[:-1] if block.get("name") in ("Read", "Bash", "Grep")]
    last = asked[-1].get("id") if asked else None
    return any(
        isinstance(block.get("id"), str) and block["id"] != last and block["id"] not in answered
        for block in reads
    )


def damage(one: Specimen, data: bytes) -> str:
    """Why no answer about these bytes may be "clean"; '' if nothing says so."""
    if one.is_document and _record(data) is not None:
        return ""
    lines = [line for line in data.split(b"\n") if line.strip(b" \t\r\v\f")]
    read = [_record(line) for line in lines]
    values = [value for value in read if value is not None]
    if len(values) < len(lines):
        return "a line is no JSON object"
    for name, before in (("uuid", "parentUuid"), ("id", "parentId")):
        if _texts(values, before) - _texts(values, name):
            return f"{before} leads nowhere"
    ordinals = [value["ordinal"] for value in values if type(value.get("ordinal")) is int]
    if one.name.startswith("sessions-2026-11/codex") and ordinals != [*range(len(lines))]:
        return "ordinals lack"
    return "a call has no answer" if _waits(values) else ""


def _stands(lines: tuple[bytes, ...], data: bytes) -> bool:
    """Whether these lines stand in the data, whole and in this order."""
    rest = iter(data.split(b"\n"))
    return all(line in rest for line in lines)


def complaint(one: Specimen, data: bytes, told: dict[str, str]) -> str:
    """What is wrong with the answers about a mutated session; '' if nothing is."""
    why = damage(one, data)
    if why and "clean" in told.values():
        return f"clean, although {why}"
    if told[CHAT] == "clean" and any(_stands(lines, data) for lines in one.shown):
        return "clean, although a read, or what may be one, is there as it was"
    return ""


@pytest.mark.slow
def test_no_mutated_session_raises_and_no_damage_is_clean(
    specimens: list[Specimen], scratch: Path
) -> None:
    seen = Counter[str]()
    for trial in range(TRIALS):
        rng = random.Random(SEED + trial)  # noqa: S311 - mutations, not keys
        one, other = rng.choice(specimens), rng.choice(specimens)
        how, data = mutated(rng, one, other)
        scratch.write_bytes(data)
        where = f"TRIPOD_SEED={SEED + trial} TRIPOD_TRIALS=1 ({one.name}: {how})"
        try:
            told, _ = judge(scratch, one.project)
        except Exception as error:
            raise AssertionError(where) from error
        problem = complaint(one, data, told)
        assert not problem, f"{where}: {problem}"
        seen[f"{told[NOWHERE]}, damaged" if damage(one, data) else told[NOWHERE]] += 1
    if TRIALS >= 1000:
        assert seen.keys() >= {"clean", "cannot tell", "cannot tell, damaged"}, seen


@cache
def _spaced() -> json.JSONEncoder:
    return json.JSONEncoder(separators=(" ,  ", "\t: "))


@pytest.mark.slow
def test_a_session_that_is_spelled_otherwise_has_the_same_answer(
    specimens: list[Specimen], scratch: Path
) -> None:
    """Escapes, spaces and ends of lines are no change; and no specimen is untold by an accident."""
    for one in specimens:
        if one.is_document:
            spelled = _spaced().encode(json.loads(one.data)).encode()
        else:
            values = [json.loads(line) for line in one.data.splitlines()]
            spelled = b"\r\n \r\n".join(_spaced().encode(value).encode() for value in values)
        scratch.write_bytes(spelled)
        assert judge(scratch, one.project)[0] == one.told, one.name
    told = Counter(told for one in specimens for told in one.told.values())
    assert min(told[name] for name in ("clean", "findings", "cannot tell")) > 10
    assert {one.told[CHAT] for one in specimens if one.name in WRITTEN} <= {
        "findings",
        "cannot tell",
    }
    assert sum(len(one.shown) for one in specimens) > 20


# A database -------------------------------------------------------------------------------------


def _is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as db:
        try:
            return bool(db.execute("PRAGMA integrity_check").fetchone() == ("ok",))
        except (sqlite3.Error, ValueError):
            return False


@pytest.mark.slow
def test_no_mutated_database_raises_and_no_damage_is_clean(tmp_path: Path) -> None:
    folders = sorted(recorded().glob("sessions-2026-11/opencode-*"))
    path, copy = tmp_path / "opencode.db", tmp_path / "copy.db"
    seen = Counter[str]()
    for trial in range(TRIALS // 20):
        rng = random.Random(SEED + trial)  # noqa: S311 - mutations, not keys
        folder = rng.choice(folders)
        data = bytearray((folder / "opencode.db").read_bytes())
        how = rng.choice(["flip", "cut", "page", "zeros", "swap"])
        page, beside = (rng.randrange(1, len(data) // 4096) * 4096 for _ in range(2))
        at = rng.randrange(len(data))
        if how == "flip":
            for _ in range(rng.choice([1, 3, 30])):
                data[rng.choice([at, page + at % 120])] ^= 1 << rng.randrange(8)
                at = rng.randrange(len(data))
        elif how == "cut":
            del data[at:]
        elif how == "page":
            data[page : page + 4096] = data[beside : beside + 4096]
        elif how == "zeros":
            data[at : at + 600] = bytes(600)
        else:
            data[page : page + 64], data[at : at + 64] = data[at : at + 64], data[page : page + 64]
        path.write_bytes(data)
        copy.write_bytes(data)
        where = f"TRIPOD_SEED={SEED + trial} TRIPOD_TRIALS=20 ({folder.name}: {how} at {at})"
        try:
            told, _ = judge(path, folder / "team")
        except Exception as error:
            raise AssertionError(where) from error
        sound = _is_sound(copy)
        assert sound or "clean" not in told.values(), f"{where}: clean, although it is damaged"
        seen[f"{told[NOWHERE]} {sound}"] += 1
    assert seen


def _mutated(rng: random.Random, data: bytes, page: int) -> tuple[str, bytes]:
    """A log with pages cut off, swapped, twice, or with bytes of them changed."""
    how = rng.choice(["flip", "cut", "cut", "hole", "swap", "twice", "zeros", "junk"])
    at, beside = (32 + rng.randrange((len(data) - 32) // page) * page for _ in range(2))
    place = rng.randrange(len(data))
    if how == "flip":
        changed = bytearray(data)
        for _ in range(rng.choice([1, 3, 30])):
            spot = rng.choice([place, at + rng.randrange(24), rng.randrange(32)])
            changed[spot] ^= 1 << rng.randrange(8)
        return how, bytes(changed)
    if how == "cut":
        return how, data[: rng.choice([place, at])]
    if how == "hole":
        return how, data[:at] + data[at + page :]
    if how == "swap":
        changed = bytearray(data)
        changed[at : at + page], changed[beside : beside + page] = (
            data[beside : beside + page],
            data[at : at + page],
        )
        return how, bytes(changed)
    if how == "twice":
        return how, data[: at + page] + data[at:]
    if how == "zeros":
        return how, (data[:place] + bytes(600) + data[place + 600 :])[: len(data)]
    return how, data[:place] + rng.randbytes(rng.choice([1, page])) + data[place:]


@pytest.mark.slow
def test_no_mutated_log_of_a_database_raises_and_no_damage_is_clean(tmp_path: Path) -> None:
    """Rows of the session come one by one into the log, each in a change of its own."""
    folder = recorded() / "sessions-2026-11/opencode-clean"
    path, source = tmp_path / "opencode.db", tmp_path / "source.db"
    source.write_bytes((folder / "opencode.db").read_bytes())
    with closing(sqlite3.connect(source, isolation_level=None)) as db:
        tables = {name: db.execute(f"SELECT * FROM {name}").fetchall()
                  for name in ("part", "event", "event_sequence")}  # fmt: skip
        for name in tables:
            db.execute(f"DELETE FROM {name}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("BEGIN")
        for name, rows in tables.items():
            for row in rows:
                db.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
        db.execute("COMMIT")
        for _ in range(9):
            db.execute("UPDATE session SET time_updated = time_updated + 1")
        files = {end: Path(f"{source}{end}").read_bytes() for end in ("", "-wal", "-shm")}
    page = int.from_bytes(files[""][16:18], "big") + 24
    seen = Counter[str]()
    for trial in range(max(TRIALS // 20, 20)):
        rng = random.Random(SEED + trial)  # noqa: S311 - mutations, not keys
        how, log = _mutated(rng, files["-wal"], page) if trial else ("whole", files["-wal"])
        path.write_bytes(files[""])
        Path(f"{path}-wal").write_bytes(log)
        Path(f"{path}-shm").write_bytes(files["-shm"])
        where = f"TRIPOD_SEED={SEED + trial} TRIPOD_TRIALS=20 (a log: {how})"
        try:
            told, _ = judge(path, folder / "team")
        except Exception as error:
            raise AssertionError(where) from error
        same = log == files["-wal"]
        assert (told[NOWHERE] == "clean") == same, f"{where}: {told}"
        seen[f"{told[NOWHERE]} {same}"] += 1
    assert len(seen) > 1
