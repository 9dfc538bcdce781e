"""Corruption: one byte of a database or an export changed, or its end cut off, at a time.

Each is found, or harmless; and harmless is shown, not believed: all that a database holds, read row
by row, is what it held before. So a change in a page that nothing uses passes, and a change in
anything that is read does not.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

from torture.teams import Case, Known, Result, Scene, act, known, make_team
from tripod.ledger import DATABASE
from tripod.verify.evidence import collect
from tripod.verify.run import run, verify

__all__ = ["flips"]

SECONDS = 60
"""Who takes longer over a small team hangs."""


def flips(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """Changes of single bytes by lot, of cut ends and of pages put in the place of others."""
    folder.mkdir()
    team = folder / "team"
    make_team(scene, team)
    with suppress(SystemExit):  # some teams have one
        act(("key", "new"), team)
    key = act(("key", "show"), team).decode().split()[0]
    act(("seal",), team)
    act(("export", "--bodies", str(folder / "export")), team)
    holding = known(team)
    database = team / ".nbs" / DATABASE
    db = sqlite3.connect(database)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("PRAGMA journal_mode=DELETE")  # a single file, which a change reaches
    db.close()
    files = [path for path in sorted((folder / "export").rglob("*")) if path.is_file()]
    if verify(folder / "export", keys=[key], git=False).exit_code or holding.verdict:
        raise SystemExit(f"{scene.name}: something is wrong before anything was changed")
    chance = random.Random(seed)
    held = _rows(database)
    while True:
        of_database = chance.random() < 0.7
        path = database if of_database else chance.choice(files)
        whole = path.read_bytes()
        if not whole:
            continue
        data, what = _changed(whole, chance)
        judge = (
            partial(_of_database, team, holding, held)
            if of_database
            else partial(_of_export, folder / "export", key)
        )
        yield Case(
            f"{path.relative_to(folder)}: {what}", partial(_judged, path, whole, data, judge)
        )


def _changed(whole: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Other bytes, and what is other in words."""
    at = chance.randrange(len(whole))
    match chance.choice(("flip", "flip", "flip", "cut", "splice")):
        case "cut":
            return whole[:at], f"only its first {at} bytes"
        case "splice":
            size = min(4096, len(whole))
            source, place = (chance.randrange(0, len(whole), size) for _ in range(2))
            part = whole[source : source + size]
            data = whole[:place] + part + whole[place + len(part) :]
            return data, f"{len(part)} bytes at {place} are those of {source}"
        case _:
            bits = chance.randint(1, 255)
            data = whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :]
            return data, f"byte {at} is {data[at]:02x} and was {whole[at]:02x}"


def _rows(database: Path) -> str | None:
    """Digest of all that a database says, row by row; None where it cannot be read."""
    try:
        db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        try:
            db.text_factory = bytes
            said = sha256()
            for line in db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"):
                said.update(repr(line).encode())
                if line[0] == b"table":
                    name = line[1].decode().replace('"', '""')
                    for row in db.execute(f'SELECT * FROM "{name}"'):
                        said.update(repr(row).encode())
            return said.hexdigest()
        finally:
            db.close()
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def _judged(path: Path, whole: bytes, data: bytes, judge: Callable[[], Result]) -> Result:
    """Judge while other bytes stand there; then put the old ones back."""
    if data == whole:
        return Result("not changed")
    stat = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    before = signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        found = judge()
    except Exception as error:  # noqa: BLE001 - whatever the verifier raises is what is looked for
        found = Result(f"traceback: {type(error).__name__}: {error}", wrong=True)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if path.read_bytes() != data:
        found = Result("the verifier changed what it judged", wrong=True)
    path.write_bytes(whole)
    return found


def _late(*_: object) -> None:
    raise TimeoutError("it hangs")


def _of_database(team: Path, holding: Known, held: str | None) -> Result:
    with collect(str(team)) as evidence:
        verdict = run(evidence).exit_code
    if verdict != holding.verdict:
        return Result("found")
    if _rows(team / ".nbs" / DATABASE) == held:
        return Result("harmless")
    return Result(
        f"false clean: the database says something else, and verify {verdict}", wrong=True
    )


def _of_export(export: Path, key: str) -> Result:
    if verify(export, keys=[key], git=False).exit_code:
        return Result("found")
    return Result("false clean: verify finds nothing wrong with the export", wrong=True)
