"""Entries that files are written from: passed on as long as they are sound, and no further."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from memory_store import MemoryStore
from sample_ledger import opening, said

from tripod.ledger.entry import Entry
from tripod.ledger.errors import LedgerDamagedError
from tripod.ledger.sqlite import reader
from tripod.ledger.sqlite.reader import read_only, read_sound_entries


@pytest.fixture
def entries() -> list[Entry]:
    with closing(MemoryStore()) as store:
        return store.append([opening(), said("one"), said("two"), said("three")])


def test_sound_entries_are_passed_on_as_they_are(entries: list[Entry]) -> None:
    assert list(read_sound_entries(entries)) == entries
    assert list(read_sound_entries([])) == []


def test_an_erased_body_is_sound_where_something_stands_for_it(entries: list[Entry]) -> None:
    entries[2] = entries[2]._replace(salt=None, body=None)
    assert list(read_sound_entries(entries)) == entries
    entries[2] = entries[2]._replace(data={})
    with pytest.raises(LedgerDamagedError, match="entry 2 lost its body, and no entry says why"):
        list(read_sound_entries(entries))


@pytest.mark.parametrize(
    "forged",
    [
        {"body": b'{"text":{"text":"forged"}}'},
        {"salt": bytes(32)},
        {"kind": "chat.created"},
        {"body": b""},
        {"salt": b""},
        {"body": None},
        {"salt": None},
    ],
)
def test_a_false_body_is_not_passed_on(entries: list[Entry], forged: dict[str, object]) -> None:
    entries[2] = entries[2]._replace(**forged)  # type: ignore[arg-type]
    sound = read_sound_entries(entries)
    assert [next(sound), next(sound)] == entries[:2]
    with pytest.raises(LedgerDamagedError, match="entry 2 has a body that it did not commit to"):
        next(sound)


def test_a_broken_link_is_not_passed_on(entries: list[Entry]) -> None:
    for broken, seq in (
        (entries[1:], 1),
        ([entries[0], *entries[2:]], 2),
        ([entries[0], entries[2], entries[1]], 2),
        ([*entries[:2], entries[1]], 1),
        ([entries[0], entries[1]._replace(header=entries[1].header + b" "), entries[2]], 2),
    ):
        with pytest.raises(LedgerDamagedError, match=f"entry {seq} is not linked to the one"):
            list(read_sound_entries(broken))


def test_a_file_that_may_not_be_read_is_no_damaged_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{tmp_path}/ledger.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a)")

    def refuse(path: str) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(reader, "_front", refuse)
    with pytest.raises(PermissionError):
        read_only(path)
