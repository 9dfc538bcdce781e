"""Sealing: when the ledger's head is signed, and the entries that say so.

An act's entries are committed first; then their head is signed (``tripod.signer``), and
``seal.made`` is appended behind them. If we die between, the next act seals again. A team without
a key, or one whose private key is on another host, is never sealed here and never told so.

Hot commands import this module where the team has a key, and no more of it than ``seal_if_due``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ledger import drafts
from ledger.entry import Draft, Entry
from ledger.errors import LedgerError
from ledger.ids import format_at, now_us
from ledger.places import RECORD
from ledger.redaction import REDACTED
from ledger.sqlite import SQLiteStore
from tripod.errors import RefusedError, TripodError

if TYPE_CHECKING:
    from tripod.keys import Passphrase

EVERY = 256  # entries since the last seal
LATEST_S = 3600  # seconds since the last seal


class Sealable(Protocol):
    """What is asked of a team to seal it (``tripod.team`` is above this module)."""

    root: str
    store: SQLiteStore
    warnings: list[str]

    def append_apart(self, make: Callable[[], Sequence[Draft]]) -> list[Entry]:
        """Append what changes no file; ``make`` is called over the committed head."""


class Made(NamedTuple):
    """A seal that was made: its entry, how many entries it covers, and the note."""

    seq: int
    size: int
    note: str


def in_force(db: sqlite3.Connection) -> str | None:
    """The vkey that seals the ledger now; None where it has none, or none since it forked."""
    row = db.execute(
        "SELECT vkey, origin FROM keys, head ORDER BY keys.seq DESC LIMIT 1"
    ).fetchone()
    # Another line's key, from before a fork, does not speak for this one.
    return row[0] if row is not None and str(row[0]).startswith(f"{row[1]}+") else None


def newest(db: sqlite3.Connection) -> Made | None:
    """The newest seal in the ledger."""
    row = db.execute("SELECT seq, size, note FROM seals ORDER BY seq DESC LIMIT 1").fetchone()
    return None if row is None else Made(*row)


# Sealing ---------------------------------------------------------------------------------------


def seal(team: Sealable, reason: str, passphrase: Passphrase | None = None) -> str | None:
    """Seal the ledger as it stands and record that; where nothing is new, give the newest seal.

    ``passphrase`` is asked where the key is encrypted; by default the file that
    ``$TRIPOD_PASSPHRASE_FILE`` names.

    Gives None where the ledger has no key, or its private part is not on this host.

    Raises:
        RefusedError: the key cannot be used, or this host sealed another history already.
    """
    vkey = in_force(team.store.db)
    if vkey is None or not _is_here(vkey):
        return None
    return _seal(team, vkey, reason, passphrase)


def seal_now(team: Sealable, passphrase: Passphrase) -> str:
    """Seal because somebody asked for it: ``seal``, with an error where that gives nothing.

    Raises:
        RefusedError: there is no key, or it cannot be used.
    """
    vkey = in_force(team.store.db)
    if vkey is None:
        raise RefusedError("this ledger has no key: `tripod key new` makes one")
    return _seal(team, vkey, "asked", passphrase)


def _seal(team: Sealable, vkey: str, reason: str, passphrase: Passphrase | None) -> str:
    from tripod import keys
    from tripod.signer import check_memory, sign_head

    key = keys.settle(vkey, keys.from_file if passphrase is None else passphrase)
    made: list[str] = []

    def sign() -> Sequence[Draft]:
        head, last = team.store.head(), newest(team.store.db)
        if last is not None and head.size == last.seq + 1 and key.name == _origin(last.note):
            check_memory(key.name, head, team.store.node)
            made.append(last.note)
            return ()
        if in_force(team.store.db) != vkey:
            raise RefusedError("the key was rotated meanwhile: try again")
        made.append(sign_head(key, head, team.store.node))
        return (drafts.seal_made(made[0], head.size, reason),)

    team.append_apart(sign)
    _keep_record(team, made[0])
    return made[0]


def _keep_record(team: Sealable, note: str) -> None:
    """Bring the record to a seal that is committed: where that fails, the next one makes it whole.

    The seal stands, so trouble becomes a warning.
    """
    from tripod.export import update

    try:
        update(team.root, team.store.path, note)
    except (TripodError, LedgerError, OSError) as error:
        team.warnings.append(f"sealed, but {team.root}/{RECORD} is not up to date: {error}")


def seal_if_due(team: Sealable, entries: Sequence[Entry]) -> None:
    """Seal behind an act (``entries`` are its own) if that is due; trouble becomes a warning."""
    reason = _due(team.store.db, entries)
    if reason is None:
        return
    from tripod.keys import LockedKeyError

    try:
        seal(team, reason)
    except LockedKeyError as error:
        if any(entry.kind == "decision.logged" for entry in entries):  # not with every command
            team.warnings.append(f"recorded, but not sealed: {error}")
    except (TripodError, LedgerError, OSError) as error:
        team.warnings.append(f"recorded, but not sealed: {error}")


def _due(db: sqlite3.Connection, entries: Sequence[Entry]) -> str | None:
    """Why a seal is due: each decision, each checkpoint, every so many entries or seconds."""
    vkey = in_force(db)
    if vkey is None or not _is_here(vkey):
        return None
    size = db.execute("SELECT size FROM head").fetchone()[0]
    last = newest(db)
    if last is not None and size == last.seq + 1:
        return None
    for entry in entries:
        if entry.kind == "bus.published" and entry.data.get("type") == "pythia-checkpoint":
            return "checkpoint"
        if entry.kind == REDACTED:
            return "policy"  # a clone must see why a body is gone from the record
    sealed = 0 if last is None else last.size
    # Also one of an act before, whose writer was stopped before it sealed.
    decided = db.execute("SELECT max(seq) FROM pieces").fetchone()[0]
    if decided is not None and decided >= sealed:
        return "decision"
    if last is None or size - sealed >= EVERY:
        return "policy"
    import orjson

    header = db.execute("SELECT header FROM entries WHERE seq = ?", (last.seq,)).fetchone()[0]
    old = orjson.loads(header)["at"] <= format_at(now_us() - LATEST_S * 1_000_000)
    return "policy" if old else None


def name_of(vkey: str) -> str:
    """The name of a key: the origin that it seals."""
    return vkey.partition("+")[0]


def _is_here(vkey: str) -> bool:
    from tripod.keys import key_path

    path = key_path(name_of(vkey))
    return os.path.exists(path) or os.path.exists(f"{path}.new")


def _origin(note: str) -> str:
    return note.partition("\n")[0]


# Keys ------------------------------------------------------------------------------------------


def new_key(team: Sealable, passphrase: bytes | None = None) -> str:
    """Make the ledger's first key, put it in force, seal; give its vkey.

    A key file that is there already (of an attempt that was stopped) is used as it is.

    Raises:
        RefusedError: a key is in force, or the file cannot be used.
    """
    from tripod import keys

    keys.check_outside(team.root)
    origin = team.store.origin
    path = keys.key_path(origin)
    if os.path.exists(path):
        key = keys.load(path, origin, lambda: passphrase or keys.from_file())
    else:
        key = keys.make(origin)
        keys.store(path, key, passphrase)
    vkey = key.verifier().format()

    def begin() -> Sequence[Draft]:
        have = in_force(team.store.db)
        if have is not None:
            raise RefusedError(
                f"a key is in force: {have}; `tripod key rotate` puts another in its place"
            )
        return (drafts.key_set(vkey, None),)

    team.append_apart(begin)
    seal(team, "asked", lambda: passphrase or keys.from_file())
    return vkey


def rotate_key(team: Sealable, old: Passphrase, new: bytes | None) -> str:
    """Put a new key in the place of the one in force, vouched for by both; give its vkey.

    1. The new key is stored beside the old one. Dead here: it is never used.
    2. ``key.set`` is appended. Dead here: the next seal finds the new key under ``.new``.
    3. The new file takes the place of the old one, whose private part is gone with that.

    Raises:
        RefusedError: no key is in force, or its private part cannot be used.
    """
    from ledger.rotation import sign_rotation
    from tripod import keys

    vkey = in_force(team.store.db)
    if vkey is None:
        raise RefusedError("no key is in force: `tripod key new` makes one")
    before = keys.settle(vkey, old)
    after = keys.make(before.name)
    path = keys.key_path(before.name)
    keys.store(f"{path}.new", after, new)
    note = sign_rotation(before.name, before, after)

    def change() -> Sequence[Draft]:
        if in_force(team.store.db) != vkey:
            raise RefusedError("the key was rotated meanwhile: look at `tripod key show`")
        return (drafts.key_set(after.verifier().format(), note),)

    team.append_apart(change)
    result = keys.settle(after.verifier().format(), lambda: new).verifier().format()
    seal(team, "asked", lambda: new)
    return result
