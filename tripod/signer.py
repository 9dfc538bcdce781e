"""The signer's memory: the last seal of each ledger, outside its database; never back or aside.

Order of durability, under a lock of its own:

1. read the last seal; refuse a head that it is no prefix of. Dead here: nothing happened.
2. sign; replace the last seal, and wait for the disk. Dead here: the memory has a seal that nobody
   was given. The ledger still holds its entries, so the next seal is of a head that grew from it.
3. give the seal out. Nothing given out is ever contradicted.

So only a head that the ledger has *committed* may be sealed: else a power cut takes the entries
and leaves the memory ahead of them. Source: spec: tamper-evidence 0 (8).
"""

from __future__ import annotations

import os

from ledger.errors import LedgerError
from ledger.head import Head
from ledger.lock import FileLock
from ledger.merkle import Nodes, root_of
from ledger.note import MAX_NOTE, Note, format_note, parse_note
from ledger.plain import read_plain
from ledger.seal import Seal, format_seal, parse_seal, sign_seal
from ledger.vkey import SigningKey
from tripod.errors import RefusedError
from tripod.keys import place_of, write_private

_GO_ON = (
    "Put the newer ledger.db back; or, to go on from this one under a new name, `tripod backup "
    "FILE` and `tripod restore FILE`"
)


def seal_path(origin: str) -> str:
    """Where the last seal of a ledger is remembered."""
    return place_of(origin, "seals", ".note")


def last_note(origin: str) -> str | None:
    """The note of the last seal that was signed here for a ledger; raises as ``last_seal`` does."""
    last = _last(origin)
    return None if last is None else last[0]


def last_seal(origin: str) -> Seal | None:
    """The last seal that was signed here for a ledger, None where none was.

    Raises:
        RefusedError: what stands there cannot be read as that.
    """
    last = _last(origin)
    return None if last is None else last[1]


def _last(origin: str) -> tuple[str, Seal] | None:
    """The note and what it says.

    Raises:
        RefusedError: what stands there cannot be read as that.
    """
    path = seal_path(origin)
    try:
        data = read_plain(path, MAX_NOTE, named=True)
    except FileNotFoundError:
        return None
    try:
        seal = parse_seal(parse_note(data).text)
    except LedgerError as error:
        raise RefusedError(
            f"{path} remembers what was sealed last, and cannot be read: {error}"
        ) from error
    if seal.origin != origin:
        raise RefusedError(f"{path} is the last seal of {seal.origin!r}, not of {origin!r}")
    return data.decode(), seal


def continues(old: Seal, size: int, nodes: Nodes) -> str | None:
    """What is wrong with a ledger of ``size`` entries behind the seal ``old``; None: nothing."""
    if old.size > size:
        return (
            f"the seal that this host made last is of {old.size} entries, and the ledger holds "
            f"{size}: a backup was restored, or the database swapped"
        )
    if root_of(nodes, 0, old.size) != old.root:
        return (
            f"the seal that this host made last is of {old.size} other entries than the first "
            f"{old.size} of this ledger: another copy of it went on, or its entries were changed"
        )
    return None


def check_memory(origin: str, head: Head, nodes: Nodes) -> None:
    """Refuse a ledger of which this host sealed more already, or other entries.

    Raises:
        RefusedError: it did, or what it sealed cannot be read.
    """
    old = last_seal(origin)
    problem = None if old is None else continues(old, head.size, nodes)
    if problem is not None:
        raise RefusedError(
            f"{problem}. Nothing is sealed: two seals of one ledger must never contradict each "
            f"other. {_GO_ON}"
        )


def sign_head(key: SigningKey, head: Head, nodes: Nodes) -> str:
    """Seal a committed head with the ledger's key; see the module. ``nodes`` are its tree's.

    Raises:
        RefusedError: this host sealed more of this ledger already, or other entries.
    """
    path = seal_path(key.name)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    lock = FileLock(f"{path}.lock")
    try:
        with lock:
            check_memory(key.name, head, nodes)
            seal = Seal(key.name, head.size, head.root)
            note = format_note(Note(format_seal(seal), (sign_seal(seal, key),)))
            write_private(path, note)
    finally:
        lock.close()
    return note.decode()
