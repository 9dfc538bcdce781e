"""Sealing: when the ledger's head is signed, the entries that record it, and the signer's memory.

An act's entries are committed first; then their head is signed, and ``seal.made`` is appended after
them. If we die between, the next act seals again. A team without a key, or one whose private key is
on another host, is never sealed here and gets no warning about it.

The signer remembers the last seal of each ledger, outside its database, and never signs an earlier
or a contradicting head. Order of durability, under a lock of its own:

1. read the last seal; refuse a head that does not extend it. Dead here: nothing happened.
2. sign; replace the last seal, and wait for the disk. Dead here: the memory has a seal that was
   never published. The ledger still holds its entries, so the next seal extends it.
3. publish the seal. No later seal contradicts it.

So only a head that the ledger has *committed* may be sealed: otherwise a power cut takes the
entries and leaves the memory ahead of them. Source: spec: tamper-evidence 0 (8).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from tripod.errors import LedgerError, RefusedError, TripodError, UnwritableError
from tripod.ledger import RECORD, REDACTED, SEAL, Draft, Entry, Head, LedgerReader, Nodes, root_of
from tripod.ledger.files import hold_file_lock, make_folder, read_plain_file
from tripod.ledger.kinds.peers import NAME_IDS
from tripod.ledger.kinds.trust import KEY_SET, SEAL_MADE, SealReason
from tripod.ledger.tlog import seal as seals
from tripod.ledger.tlog.note import MAX_NOTE, Note, SigningKey, VerifierKey, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, read_seal, sign_rotation, sign_seal
from tripod.peers.replica import name_team, tree_of_team, written_path
from tripod.projections import TRUST, Disk
from tripod.projections.manifest import counted_entry
from tripod.team.act import ActContext
from tripod.trust import keys
from tripod.trust.keys import LockedKeyError, Passphrase, has_key_here, sealing_key

WRITTEN_EVERY = 1_000  # entries since the record's ref was written
WRITTEN_S = 600  # seconds since then


class Made(NamedTuple):
    """A seal that was made: its entry, how many entries it covers, and the note."""

    seq: int
    size: int
    note: str


def newest(db: sqlite3.Connection) -> Made | None:
    """The newest seal in the ledger."""
    row = db.execute(TRUST.newest_seal).fetchone()
    return None if row is None else Made(row[0], row[1], row[3])


def seal(
    team: ActContext, reason: SealReason, passphrase: Passphrase = keys.passphrase_from_file
) -> str | None:
    """Seal the ledger as it stands and record that; where nothing is new, give the newest seal.

    ``passphrase`` is asked where the key is encrypted. None where the ledger has no key, or its
    private part is not on this host. Raises RefusedError where the key cannot be used, or this host
    sealed another history already.
    """
    vkey = sealing_key(team.store)
    return (
        _seal(team, vkey, reason, passphrase) if vkey is not None and has_key_here(vkey) else None
    )


def seal_now(team: ActContext, passphrase: Passphrase) -> str:
    """Seal because a user asked for it (RefusedError: there is no key, or it cannot be used)."""
    vkey = sealing_key(team.store)
    if vkey is None:
        raise RefusedError("this ledger has no key: `tripod key new` makes one")
    return _seal(team, vkey, "asked", passphrase)


def _seal(
    team: ActContext, vkey: str, reason: SealReason, passphrase: Passphrase, *, now: bool = True
) -> str:
    key = keys.load_key_in_force(vkey, passphrase)
    made: list[str] = []

    def sign() -> Sequence[Draft]:
        head, last = team.store.head(), newest(team.store.db)
        if (
            last is not None
            and head.size == last.seq + 1
            and key.name == last.note.partition("\n")[0]
        ):
            check_last_seal(key.name, head, team.store.node)
            made.append(last.note)
            return ()
        if sealing_key(team.store) != vkey:
            raise RefusedError("the key was rotated meanwhile: try again")
        made.append(seal_head(key, head, team.store.node))
        return (SEAL_MADE.draft({"note": made[0], "size": head.size, "reason": reason}),)

    tree = tree_of_team(team.root)
    # Before the first seal, so that readers of the record know whose it is.
    replica = "" if tree is None else name_team(team)[1]
    team.append_apart(sign)
    try:
        if tree is None:
            from tripod.trust.export import update_record

            update_record(team.root, team.store.path, made[0])
        elif now or not _was_written_lately(written_path(tree, replica), team.store.size):
            from tripod.peers.record import keep_record  # it starts git, which few commands have to

            keep_record(team.root, replica, made[0])
    except (TripodError, LedgerError, OSError) as error:
        # The seal stands all the same; the next one makes the record whole.
        what = f"sealed, but the record is not up to date: {error}"
        team.warnings.append(f"{what}; the next seal brings it up to date")
    return made[0]


def _update_tracked_record(team: ActContext, note: str) -> None:
    """Where an earlier version tracked the record, a clone must see why a body is gone from it."""
    from tripod.ledger.locator import has_record
    from tripod.trust.export import update_record

    if has_record(team.root):
        update_record(team.root, team.store.path, note)


def _was_written_lately(noted: str, size: int) -> bool:
    """Whether the ref of the record was written not long ago, in entries and in seconds."""
    try:
        age = time.time() - os.stat(noted).st_mtime
        before = int(read_plain_file(noted, 32))
    except (OSError, ValueError):
        return False
    return 0 <= age < WRITTEN_S and 0 <= size - before < WRITTEN_EVERY


def seal_after_act(
    team: ActContext, vkey: str, reason: SealReason, entries: Sequence[Entry]
) -> None:
    """Seal by the key in force after an act (``entries`` are its own); trouble becomes a warning.

    ``tripod.trust.schedule`` says when, and for what reason.
    """
    erased = any(entry.kind == REDACTED for entry in entries)
    try:
        note = _seal(team, vkey, reason, keys.passphrase_from_file, now=erased)
        if erased:
            _update_tracked_record(team, note)
    except (TripodError, LedgerError, OSError) as error:
        decided = any(entry.kind == "decision.logged" for entry in entries)
        if decided or not isinstance(error, LockedKeyError):  # else each command would warn
            team.warnings.append(f"recorded, but not sealed: {error}")


def keep_merged(team: ActContext) -> None:
    """Seal after peers were merged, due or not, and write the record's ref at once.

    The files show what was merged from then on. Were the database lost before the ref has it, that
    would come back from the files, as observed and under a new name, and from the peers once more.
    """
    try:
        seal(team, "policy")
    except (TripodError, LedgerError, OSError) as error:
        if not any(str(error) in text for text in team.warnings):  # an act of the merge said so
            team.warnings.append(f"merged, but not sealed: {error}")


def origin_sealed_by(vkey: str) -> str:
    """The name of a key: the origin that it seals."""
    return vkey.partition("+")[0]


def new_sealing_key(
    team: ActContext,
    passphrase: bytes | None = None,
    *,
    also: Callable[[str], Sequence[Draft]] | None = None,
) -> str:
    """Make the ledger's first key, put it in force, seal; give its vkey.

    A key file that is there already (of an attempt that was stopped) is used as it is. ``also``
    gives drafts that are recorded with it, before the first seal. Raises RefusedError where a key
    is in force, or the file cannot be used.
    """
    keys.check_keys_outside(team.root)
    origin = team.store.origin
    path = keys.key_path(origin)
    if os.path.exists(path):
        key = keys.load_key(path, origin, lambda: passphrase or keys.passphrase_from_file())
    else:
        key = SigningKey(origin, os.urandom(32))
        keys.store_key(path, key, passphrase)
    vkey = key.verifier().format()

    def begin() -> Sequence[Draft]:
        have = sealing_key(team.store)
        if have is not None:
            raise RefusedError(
                f"a key is in force: {have}; `tripod key rotate` puts another in its place"
            )
        return (KEY_SET.draft({"vkey": vkey}), *(also(vkey) if also is not None else ()))

    team.append_apart(begin)
    _seal_new_key(team, lambda: passphrase or keys.passphrase_from_file())
    return vkey


def _seal_new_key(team: ActContext, passphrase: Passphrase) -> None:
    """Seal by a key that was just put in force. A disk that refuses then is a warning.

    The ledger holds the key by then: to end with "nothing was recorded" would be untrue.
    """
    try:
        seal(team, "asked", passphrase)
    except (UnwritableError, OSError) as error:
        team.warnings.append(
            f"the key is in force, and nothing is sealed by it yet (`tripod seal`): {error}"
        )


def rotate_sealing_key(team: ActContext, old: Passphrase, new: bytes | None) -> str:
    """Put a new key in the place of the one in force, vouched for by both; give its vkey.

    1. The new key is stored beside the old one. Dead here: it is never used.
    2. ``key.set`` is appended. Dead here: the next seal finds the new key under ``.new``.
    3. The new file takes the place of the old one, whose private part is gone with that.

    Raises RefusedError where no key is in force, or its private part cannot be used.
    """
    vkey = sealing_key(team.store)
    if vkey is None:
        raise RefusedError("no key is in force: `tripod key new` makes one")
    before = keys.load_key_in_force(vkey, old)
    after = SigningKey(before.name, os.urandom(32))
    path = keys.key_path(before.name)
    keys.store_key(f"{path}.new", after, new)
    note = sign_rotation(before.name, before, after)

    def change() -> Sequence[Draft]:
        if sealing_key(team.store) != vkey:
            raise RefusedError("the key was rotated meanwhile: look at `tripod key show`")
        return (KEY_SET.draft({"vkey": after.verifier().format(), "note": note}),)

    team.append_apart(change)
    result = keys.load_key_in_force(after.verifier().format(), lambda: new).verifier().format()
    _seal_new_key(team, lambda: new)
    return result


def seal_path(origin: str) -> str:
    """Where the last seal of a ledger is remembered."""
    return keys.place_of(origin, "seals", ".note")


def last_seal_note(origin: str) -> str | None:
    """The note of the last seal signed here for a ledger, or None (RefusedError: unreadable)."""
    path = seal_path(origin)
    try:
        data = read_plain_file(path, MAX_NOTE, named=True)
    except FileNotFoundError:
        return None
    try:
        seal = read_seal(data)
    except LedgerError as error:
        raise RefusedError(
            f"{path} remembers what was sealed last, and cannot be read: {error}"
        ) from error
    if seal.origin != origin:
        raise RefusedError(f"{path} is the last seal of {seal.origin!r}, not of {origin!r}")
    return data.decode()


def last_seal(origin: str) -> Seal | None:
    """The last seal signed here for a ledger, or None (RefusedError: unreadable)."""
    note = last_seal_note(origin)
    return None if note is None else read_seal(note.encode())


def seal_contradiction(old: Seal, size: int, nodes: Nodes) -> str | None:
    """What is wrong with a ledger of ``size`` entries after the seal ``old``; None: nothing."""
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


def check_last_seal(origin: str, head: Head, nodes: Nodes) -> None:
    """Raise RefusedError if this host sealed more of this ledger already, or other entries."""
    old = last_seal(origin)
    problem = None if old is None else seal_contradiction(old, head.size, nodes)
    if problem is not None:
        raise RefusedError(
            f"{problem}. Nothing is sealed: two seals of one ledger must never contradict each "
            "other. Put the newer ledger.db back, or this replica's own record: `tripod restore`; "
            "to go on from this one under a new name: `tripod restore --as-copy`"
        )


def seal_head(key: SigningKey, head: Head, nodes: Nodes) -> str:
    """Seal a committed head with nodes of its tree (RefusedError: see ``check_last_seal``)."""
    path = seal_path(key.name)
    make_folder(os.path.dirname(path), 0o700)
    with hold_file_lock(f"{path}.lock"):
        check_last_seal(key.name, head, nodes)
        seal = Seal(key.name, head.size, head.root)
        note = format_note(Note(format_seal(seal), (sign_seal(seal, key),)))
        keys.write_private_key(path, note)
    return note.decode()


def sign_fork(ledger: LedgerReader, head: Head, new: str) -> str:
    """The note that ends a line at ``head``, to go on as ``new`` (RefusedError: no key here)."""
    vkey = sealing_key(ledger)
    if vkey is None:
        raise RefusedError("--sign-fork: the ledger in the backup has no key that could sign")
    key = keys.load_key_in_force(vkey, keys.passphrase_from_file)
    return seals.sign_fork(key, head.size, head.root, new)


def seal_fork(team: ActContext, old: str) -> None:
    """A line that was sealed goes on being sealed, by a key of its own; trouble is a warning."""
    if not team.store.db.execute("SELECT 1 FROM keys").fetchone():
        return
    try:
        before = keys.key_path(old)
        passphrase = None
        if os.path.exists(before) and keys.is_encrypted_key(before):
            passphrase = keys.passphrase_from_file()
            if passphrase is None:
                raise RefusedError("the old key was encrypted: `tripod key new --passphrase`")
        new_sealing_key(team, passphrase)
    except (TripodError, LedgerError, OSError) as error:
        team.warnings.append(f"the new line has no key yet, so nothing is sealed: {error}")


# Remembered heads --------------------------------------------------------------------------------
#
# A ledger that does not reach a head which is remembered of it was rolled back: what its files show
# beyond it may be what it lost, and is not taken for what others wrote. Only heads that a key of
# the ledger signed count, and the count of its own files; what vouches for it besides (pins,
# witnesses, peers) is for ``tripod verify`` to judge.


class RememberedHead(NamedTuple):
    """That the ledger held ``size`` entries, and where that is remembered, in words."""

    size: int
    where: str


def head_beyond(ledger: LedgerReader, disk: Disk, *, git: bool = False) -> RememberedHead | None:
    """The largest head that is remembered of this ledger, if the ledger does not reach it.

    The files' count and the last seal of this host are asked; with ``git`` also a record in the
    team directory, and this replica's record on the refs of the repository around it.
    """
    heads = _heads(ledger, disk, git=git)
    newest = max(heads, key=lambda head: head.size, default=None)
    return newest if newest is not None and newest.size > ledger.size else None


def _heads(ledger: LedgerReader, disk: Disk, *, git: bool) -> Iterator[RememberedHead]:
    counted = counted_entry(disk)
    if counted is not None and ledger.seq_of(counted[1]) != counted[0]:
        yield RememberedHead(max(counted[0], ledger.size) + 1, f"counts.json in {disk.root}")
    vkeys = ledger.tables.execute("SELECT vkey FROM keys").fetchall()
    keys = [VerifierKey.parse(vkey) for (vkey,) in vkeys]
    keys = [key for key in keys if key.name == ledger.origin]
    if not keys:
        return
    for where, note in _notes(ledger, disk, git=git):
        with suppress(LedgerError):
            seal = seals.open_seal(note, keys, extensions=True).seal
            if seal.origin == ledger.origin:
                yield RememberedHead(seal.size, where)


def _notes(ledger: LedgerReader, disk: Disk, *, git: bool) -> Iterator[tuple[str, bytes]]:
    """Each seal that may be of this ledger, and where it stands."""
    with suppress(TripodError):
        note = last_seal_note(ledger.origin)
        if note is not None:
            yield f"the last seal of this host ({seal_path(ledger.origin)})", note.encode()
    if not git:
        return
    path = f"{disk.root}/{RECORD}/{SEAL}"
    with suppress(OSError):
        yield f"the record ({path})", read_plain_file(path, MAX_NOTE)
    named = [entry.seq for entry in ledger.raw_by_id(*NAME_IDS)]
    newest = ledger.entry(named[-1]) if named else None
    if newest is None:
        return
    from tripod.verify.anchors.git import Repository

    with suppress(TripodError), Repository(disk.root) as repository:
        for name in repository.refs.refs:
            if name.rpartition("/")[2] == newest.data["replica"]:
                data = repository.file_at(name, SEAL)
                if data is not None:
                    yield f"the ref {name}", data[:MAX_NOTE]
