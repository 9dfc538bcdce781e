"""Merges the record of a peer: what it recorded itself is appended here, entry by entry.

The order, and what it means if we die between two steps:

1. the seal, who made it, and whether it continues what was merged are judged. Nothing is recorded.
2. entries are judged, and appended in batches, each one act. The id of a ``peer.entry`` is made of
   the peer's origin and the entry's number. Dead here: the next merge passes over what is there.
3. ``peer.merged`` ends the batch that reaches the record's seal, and each that reaches an older
   seal which the peer recorded. From there on nothing before it is read again.

A bad entry ends the merge of its peer there, by name; what was sound before stays. A record whose
seal contradicts one that was merged is evidence against its maker: both seals are kept in
``peer.forked``, and nothing of it is taken. An older state of a record contradicts nothing: a
remote that was not pushed to holds one.

Where all that a peer recorded since is bookkeeping of merging (that it merged, and sealed), nothing
is appended, or two replicas that only push and pull would tell each other so for ever. It comes
along with the next entry that somebody made there, or once it is long. The seal, its key, and that
it continues what was merged and what was seen last are judged all the same. So the newest memory
that a peer has of this ledger may not be in it: `verify` reads it in the peer's record on its ref,
by which a memory has to be proven in any case, and counts ``PEERED`` and the unanchored tail by it.

Our own record is never merged. Where two copies of one replica went on apart (a disk that was
copied), the one that meets the other is told so.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tripod.errors import GitError, LedgerError, MalformedError, NotVerifiedError, RefusedError
from tripod.ledger import MAX_BODY, Draft, Entry, format_canonical, parse_header, root_of, tell_over
from tripod.ledger.kinds.base import INLINE_LIMIT
from tripod.ledger.kinds.merged import KeptEntry, forget_newest, peer_entry_draft, peer_view
from tripod.ledger.kinds.peers import (
    PEER_ADDED,
    PEER_ENTRY,
    PEER_FORKED,
    PEER_MERGED,
    peer_entry_id,
)
from tripod.ledger.kinds.redaction import REDACTED
from tripod.ledger.kinds.trust import SEAL_MADE
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import open_seal, read_seal
from tripod.ledger.tlog.tiles import WIDTH
from tripod.peers.places import Places
from tripod.peers.replica import replica_of
from tripod.peers.roster import (
    Merged,
    MergeLimits,
    Peer,
    is_closed,
    note_seen,
    read_roster,
    read_seen,
    refusal_of_peer,
)
from tripod.projections.erasure import tombstone
from tripod.projections.peers.tables import kept_elsewhere
from tripod.recovery.redaction import MAX_REASON, erase_within, files_to_redact
from tripod.verify.anchors.git import Repository
from tripod.verify.export_file import ExportFiles, FileError, RefFiles
from tripod.verify.peers.refs import replica_refs
from tripod.verify.peers.seals import (
    BadEntryError,
    RecordProblemError,
    SealedEntry,
    SealedIdentity,
    SealedRecord,
    sealed_identity,
)

if TYPE_CHECKING:
    from tripod.team.act import Act
    from tripod.team.team import Team
    from tripod.verify.peers.entries import JudgedEntry, RecordJudge

BATCH = 1000  # entries
_LONGEST = 4 * BATCH
_LONG = 10_000
"""So many entries of bookkeeping are taken by themselves, so that few are read again and again.

Among 100 replicas or fewer merging them makes less than that, and so they come to rest.
"""
_BOOKKEEPING = {PEER_ENTRY.name, PEER_MERGED.name, SEAL_MADE.name}
_SURE = 8 * 1024  # bytes
_OTHER = "its record is another than the one that it sealed before"
_BATCH_BYTES = 16 * 1024 * 1024  # of blobs in one act


def merge_record(
    team: Team,
    files: ExportFiles,
    *,
    limits: MergeLimits = MergeLimits(),  # noqa: B008 - it never changes
    dry_run: bool = False,
    seen: str | None = None,
) -> Merged:
    """Take what the peer whose record ``files`` are recorded itself, and is not here yet.

    Args:
        team: a team that was named (``tripod.peers.replica``).
        files: a folder or a git ref with a record, bodies included.
        limits: how much is taken at most.
        dry_run: only say what would be taken.
        seen: the file that notes which seal was looked at last (``seen_path``).

    Raises RefusedError where nothing can be merged here at all: the team was not named, or its
    policy is not understood. What is wrong with the peer is the ``problem`` of what is given back.
    """
    named = replica_of(team.store)
    if named is None:
        raise RefusedError(
            "this ledger has no name as a replica of its team yet: `tripod push` gives it one"
        )
    try:
        merge = _Merge(team, files, named[0], limits, dry_run=dry_run, seen=seen)
    except (FileError, MalformedError) as error:
        return Merged(problem=f"there is no seal to judge the record by: {error}")
    try:
        merge.run()
    except RecordProblemError as error:
        merge.done = merge.done._replace(problem=f"{merge.who}: {error}")
    return merge.done


class _Head(NamedTuple):
    """A head of a peer, and the note of its seal."""

    size: int
    root: bytes
    note: bytes


class _OtherEntryError(Exception):
    """An entry of the record is another than the one that was taken."""


class _Merge:
    """One merge of one record."""

    def __init__(
        self,
        team: Team,
        files: ExportFiles,
        team_id: str,
        limits: MergeLimits,
        *,
        dry_run: bool,
        seen: str | None,
    ) -> None:
        self.team, self.store, self.seen = team, team.store, seen
        self.files, self.note = files, files.seal_note()
        self.seal = seal = read_seal(self.note)
        self.team_id, self.limits, self.dry_run = team_id, limits, dry_run
        self.peer = read_roster(team.store).get(seal.origin) or Peer(seal.origin)
        self.done = Merged(seal.origin, self.peer.replica, size=self.peer.size, sealed=seal.size)

    @property
    def who(self) -> str:
        """What a person calls the peer."""
        return self.peer.name

    def run(self) -> None:
        """Judge the record as a whole, then take its entries (RecordProblemError: why it ends)."""
        if self._is_own():
            self.done = self.done._replace(is_own=True, size=self.seal.size)
            return
        if self.seal.origin == self.store.origin:
            raise RecordProblemError(self._other_self())
        self._refuse(closed=False)
        if self.peer.merged is not None and self.merged_note() == self.note:
            return
        if self.seal.size < self.peer.size:
            self._judge_older()
        new = self.seal.size - self.peer.size
        if new > self.limits.entries:
            raise RecordProblemError(
                f"its record holds {new} new entries, at most {self.limits.entries} are taken in "
                f"one pull, and nothing was: `tripod pull --max-entries {new}`, once you know why "
                "they are so many"
            )
        record = SealedRecord(self.files, self.seal, self.peer.size, self.limits.bytes)
        key = self._identify(record)
        if self.peer.size and record.tree().root().hex() != self.peer.root:
            self.fork(_OTHER, self.merged_note())
        self._refuse(closed=is_closed(self.team.root))
        if self.peer.merged is None or not self._is_bookkeeping(record):
            _Taking(self, record, key).run()
        elif not self.dry_run:
            note_seen(self.seen, self.peer, self.note)

    def _is_bookkeeping(self, record: SealedRecord) -> bool:
        """Whether a record holds nothing to be taken now behind what was merged.

        What was found so at an earlier pull is not read again; the record must continue it.
        """
        last = read_seen(self.seen, self.peer)
        if last is not None and last[0].size <= self.seal.size:
            seal, note = last
            with suppress(LedgerError):  # a note that the peer's key did not make says nothing
                open_seal(note, [VerifierKey.parse(self.peer.key)])
                record = SealedRecord(self.files, self.seal, seal.size, self.limits.bytes)
                if record.tree().root() != seal.root:
                    self.fork(_OTHER, note)
        kinds = [header.kind for header, _ in record.headers()]
        is_read = len(kinds) == self.seal.size - record.start
        return (
            is_read and _BOOKKEEPING.issuperset(kinds) and self.seal.size - self.peer.size < _LONG
        )

    def _refuse(self, *, closed: bool) -> None:
        why = refusal_of_peer(self.peer, closed=closed)
        if why is not None:
            self.done = self.done._replace(is_closed=self.peer.state == "closed")
            raise RecordProblemError(why.removeprefix(f"{self.who} "))

    # Ourselves ---------------------------------------------------------------------------------

    def _is_own(self) -> bool:
        """Whether the record is the beginning of our own ledger, under whatever name."""
        size = self.seal.size
        return size <= self.store.size and root_of(self.store.node, 0, size) == self.seal.root

    def _other_self(self) -> str:
        """What is wrong with a record that bears our origin, and is not ours."""
        vkeys = [vkey for (vkey,) in self.store.tables.execute("SELECT vkey FROM keys")]
        keys = [VerifierKey.parse(vkey) for vkey in vkeys]
        try:
            open_seal(self.note, [key for key in keys if key.name == self.seal.origin])
        except LedgerError as error:
            return f"its record bears the name of this very ledger, and not its key: {error}"
        size = self.store.size
        if self.seal.size > size:
            record = SealedRecord(self.files, self.seal, size, self.limits.bytes)
            if record.tree().root() == self.store.head().root:
                return (
                    f"it is this very replica, with {self.seal.size} entries where this ledger "
                    f"holds {size}: an older database was put back. `tripod restore` takes the "
                    "longer record"
                )
        return (
            "it is this very replica, and another history: two copies of one disk both went on. "
            "Nothing of it was taken; in one of them `tripod restore --as-copy` goes on under a "
            "name and key of its own"
        )

    # The peer ----------------------------------------------------------------------------------

    def _identify(self, record: SealedRecord) -> VerifierKey:
        """The key that made the seal, if it speaks for this peer; a new peer is who it says."""
        known = VerifierKey.parse(self.peer.key) if self.peer.added is not None else None
        if known is not None:
            with suppress(NotVerifiedError):
                open_seal(self.note, [known])
                return known
        found = sealed_identity(record, known)
        if known is None:
            self._check_new(found)
        try:
            if found.key is None:
                raise NotVerifiedError("its record sets no key")
            open_seal(self.note, [found.key])
        except LedgerError as error:
            raise RecordProblemError(
                f"its seal is not by the key on record: {error}; nothing was taken"
            ) from error
        how = "person" if self.peer.state == "accepted" and known is not None else self.peer.how
        self.peer = self.peer._replace(
            replica=self.peer.replica or found.replica, key=found.key.format(), how=how
        )
        self.done = self.done._replace(replica=self.peer.replica)
        return found.key

    def _check_new(self, found: SealedIdentity) -> None:
        """Refuse a peer that is of another team, or bears a name that its key does not give it."""
        if not found.replica or found.named is None:
            raise RecordProblemError(
                "its record does not say of which team it is (`team.named`): `tripod push` there, "
                "with this version"
            )
        if found.team != self.team_id:
            if found.names_itself():
                self.done = self.done._replace(replica=found.replica, is_stranger=True)
            raise RecordProblemError(
                f"it is a replica of the team {found.team!r}, and this one is of {self.team_id!r}. "
                "If one of them was begun by mistake and merged nobody yet, `tripod init --from "
                "REMOTE` in its clone takes it into the other, with all that it holds"
            )
        if not found.names_itself():
            raise RecordProblemError(f"it calls itself {found.replica!r}, and has another key")

    def merged_note(self) -> bytes:
        """The note of the seal that was merged last; b'' where none was."""
        entry = None if self.peer.merged is None else self.store.entry(self.peer.merged)
        return b"" if entry is None else self.team.source.content(entry.data["seal"])

    def _judge_older(self) -> None:
        """Say what a record is that is shorter than what was merged: an older state, or a fork.

        The newest entry of it that the peer made itself names all entries before it by its hash.
        """
        told = f"its record holds {self.seal.size} entries, and {self.peer.size} were merged"
        known = VerifierKey.parse(self.peer.key)
        try:
            open_seal(self.note, [known])
        except LedgerError as error:
            raise RecordProblemError(f"{told}; its seal is not by the key on record") from error
        start = max(0, self.seal.size - 2 * WIDTH)
        own = [
            (header, raw)
            for header, raw in SealedRecord(self.files, self.seal, start).headers()
            if header.kind != PEER_ENTRY.name
        ]
        if own:
            header, raw = own[-1]
            if not self.is_here(header.ledger, header.seq, raw) and (
                raw != self.kept_header(self.seal.origin, header.seq)
            ):
                self.fork(f"{told}, of another history", self.merged_note())
        self.done = self.done._replace(is_older=True)
        raise RecordProblemError(
            f"{told}: an older state of it, of which nothing is to be taken (a remote that it did "
            "not push to, or a backup that was put back there)"
        )

    def kept_header(self, origin: str, seq: int) -> bytes | None:
        """The header of an entry of a peer, as it is kept here."""
        at = self.store.seq_of(peer_entry_id(origin, seq))
        entry = None if at is None else self.store.entry(at)
        return None if entry is None else self.team.source.content(entry.data["header"])

    def is_here(self, line: str, seq: int, raw: bytes) -> bool:
        """Whether ``raw`` is the header of entry ``seq`` of our ledger, or of the line as kept."""
        return raw in (self.store.header(seq), self.kept_header(line, seq))

    def fork(self, problem: str, ours: bytes) -> None:
        """Keep both seals, once, and take nothing (RecordProblemError, always)."""
        if not self.dry_run:
            with self.team.act() as act:
                now = read_roster(self.store).get(self.peer.origin)
                if now is None or now.forked is None:
                    draft = PEER_FORKED.draft(
                        {
                            "origin": self.peer.origin,
                            "ours": ours,
                            "theirs": self.note,
                            "problem": problem,
                        }
                    )
                    act.append([draft])
        kept = "both seals are" if ours else "its new seal is"
        raise RecordProblemError(
            f"it contradicts itself: {problem}. Nothing of it was taken, and {kept} kept: "
            f"`tripod peer show {self.who}`"
        )


class _Taking:
    """Takes the entries of a sealed record, from where the last merge ended."""

    def __init__(self, merge: _Merge, record: SealedRecord, key: VerifierKey) -> None:
        self.merge, self.record, self.key = merge, record, key
        self.store = merge.store
        self.tree = record.tree()
        self.keys: dict[str, list[VerifierKey]] = {}
        self.batch: list[JudgedEntry] = []
        self.room = _BATCH_BYTES
        self.older: _Head | None = None
        """The newest seal in the record's entries that is one of these; ``cut`` wait before it."""
        self.cut = 0

    def run(self) -> None:
        """Take everything, or as much as is sound (RecordProblemError: why it ends there)."""
        often = gc.get_threshold()
        gc.set_threshold(50_000, *often[1:])  # looking for circles takes a fifth of the time
        try:
            self._read()
        except RecordProblemError:
            self._flush()
            raise
        finally:
            gc.set_threshold(*often)
        seal = self.merge.seal
        self._flush(_Head(seal.size, seal.root, self.merge.note))

    def _read(self) -> None:
        from tripod.verify.peers.entries import RecordJudge  # dear, and often nothing is new

        judge = RecordJudge(self.record, self._keys_of, self.merge.limits.blobs)
        is_ours = self._shared_before()
        new = self.record.seal.size - self.record.start
        for entry in tell_over(self.record, f"merging {self.merge.who}", new):
            is_ours = is_ours and self.store.header(entry.seq) == entry.header
            if is_ours:
                judge.skip(entry)
            else:
                self._take(judge, entry)
            self.tree.append(entry.leaf)
            if self.tree.full:
                self.tree.full.clear()
            if len(self.batch) >= BATCH or self.room < 0:
                self._flush_to_seal()

    def _shared_before(self) -> bool:
        """Whether our own ledger has all the entries before the first that is read."""
        before = self.record.before()
        return before is None or self.store.header(self.record.start - 1) == before

    def _keys_of(self, handle: str) -> list[VerifierKey]:
        """The keys that a handle has or had here, but for those that were revoked."""
        if handle not in self.keys:
            self.keys[handle] = self._keys_now(handle)
        return self.keys[handle]

    def _keys_now(self, handle: str) -> list[VerifierKey]:
        sql = "SELECT vkey FROM actors WHERE handle = ? GROUP BY vkey HAVING NOT max(revoked)"
        found = self.store.tables.execute(sql, (handle,))
        return [VerifierKey.parse(vkey) for (vkey,) in found]

    def _take(self, judge: RecordJudge, entry: SealedEntry) -> None:
        one = judge.judge(entry)
        if one is None:
            return
        if _is_too_large(one):
            raise BadEntryError(one.seq, "it takes more than an entry that keeps it can hold")
        self.batch.append(one)
        self.room -= len(one.raw) + len(one.body or b"") + sum(map(len, one.blobs.values()))
        if one.header.kind == "seal.made" and one.body is not None:
            note, size = one.data["note"], one.data["size"]
            with suppress(MalformedError, ValueError):
                root = read_seal(note.encode()).root
                if size == self.tree.size and root == self.tree.root():
                    self.older, self.cut = _Head(size, root, note.encode()), len(self.batch) - 1

    # Appending ---------------------------------------------------------------------------------

    def _flush_to_seal(self) -> None:
        """Append what waits up to the newest seal in the record, so that each act ends at one.

        Where the peer recorded none for long, what waits is appended as it is.
        """
        waiting, cut = self.batch, self.cut
        self.older = self._proven() if cut else None
        if self.older is not None:
            self.batch = waiting[:cut]
            self._flush(is_last=False)
            self.batch = waiting[cut:]
        elif len(waiting) >= _LONGEST or self.room < 0:
            self._flush(is_last=False)

    def _flush(self, seal: _Head | None = None, *, is_last: bool = True) -> None:
        """Append what waits; then the ``seal`` up to which it reaches, if it is the peer's own."""
        merge, batch = self.merge, self.batch
        seal, self.older = seal or self._proven(), None
        self.batch, self.room, self.cut = [], _BATCH_BYTES, 0
        if not batch and seal is None:
            return
        taken = erased = 0
        if merge.dry_run:
            merge.done = merge.done._replace(added=merge.peer.added is None)
            taken = len(self._absent(batch))
        else:
            is_erasing = any(one.header.kind == REDACTED.name for one in batch)
            try:
                locks = files_to_redact(merge.team) if is_erasing else ()
                with merge.team.act(locks=locks, seals=is_last) as act:
                    taken, erased = self._append(act, batch, seal)
            except _OtherEntryError as error:
                merge.fork(str(error), merge.merged_note())
            finally:
                forget_newest()
        done = merge.done
        size = done.size if seal is None else max(done.size, seal.size)
        merge.done = done._replace(taken=done.taken + taken, erased=done.erased + erased, size=size)

    def _append(
        self, act: Act, batch: Sequence[JudgedEntry], seal: _Head | None
    ) -> tuple[int, int]:
        """Append a batch within an act; give how many entries were taken, and how many erased."""
        if any(self._keys_now(handle) != known for handle, known in self.keys.items()):
            raise RecordProblemError(  # they decide who an entry is shown as
                "a key of an actor was changed in this ledger meanwhile: run the command again"
            )
        peer = self.merge.peer
        now = read_roster(self.store).get(peer.origin)
        if now is None or now.added is None or now.key != peer.key:
            is_accepted = peer.how == "person" or (now is not None and now.accepted_key == peer.key)
            how: Literal["first-use", "person"] = "person" if is_accepted else "first-use"
            act.append(
                [
                    PEER_ADDED.draft(
                        {
                            "origin": peer.origin,
                            "replica": peer.replica,
                            "key": peer.key,
                            "how": how,
                        }
                    )
                ]
            )
            self.merge.done = self.merge.done._replace(added=now is None or now.added is None)
        places = Places(act)
        drafts = [_draft(peer.origin, one, places) for one in self._absent(batch)]
        act.append(drafts)
        erased = _erase(act, self.merge, batch)
        if seal is not None and (now is None or now.size < seal.size):
            act.append([_merged(peer.origin, seal)])
        return len(drafts), erased

    def _proven(self) -> _Head | None:
        """The older seal that was passed, if the key that made the record's seal made it."""
        if self.older is not None:
            with suppress(LedgerError):
                open_seal(self.older.note, [self.key])
                return self.older
        return None

    def _absent(self, batch: Sequence[JudgedEntry]) -> Sequence[JudgedEntry]:
        """Those that are not here yet: entries come in their order, so behind the first all.

        The line that a replica left by a fork has a record of its own, and what is here of that is
        not taken again. The rest is the replica's, whatever name it had then: a copy may have gone
        on under the old name, and so contradict what the other copy recorded under it.
        """
        origin = self.merge.seal.origin
        for number, one in enumerate(batch):
            kept = self.merge.kept_header(origin, one.seq)
            if kept is not None and kept != one.raw:
                raise _OtherEntryError(f"its entry {one.seq} is another than the one taken before")
            if kept is None and not self.merge.is_here(one.header.ledger, one.seq, one.raw):
                return batch[number:]
        return ()


def _merged(origin: str, head: _Head) -> Draft:
    return PEER_MERGED.draft(
        {"origin": origin, "size": head.size, "root": head.root.hex(), "seal": head.note}
    )


def _draft(origin: str, one: JudgedEntry, places: Places) -> Draft:
    """The entry that keeps an entry of the peer ``origin``, with the place that it gets here."""
    header, salt, body = one.header, one.salt, one.body
    place = places.place(origin, header, one.data, signed=one.signed)
    kept = KeptEntry(origin, one.seq, one.raw, one.auth, salt, body)
    keep = one.data if body is None else None
    return peer_entry_draft(kept, header.stream, place=place, blobs=one.blobs, keep=keep)


def _is_too_large(one: JudgedEntry) -> bool:
    """Whether what is kept of an entry beside its content may not fit a body."""
    erased = one.body is None
    if not erased and len(one.raw) + len(one.body or b"") < _SURE and len(one.blobs) < 50:
        return False
    size = 2 * min(len(one.raw), INLINE_LIMIT) + 100 * len(one.blobs)
    size += 3 * len(format_canonical(one.data.get("refs", ())))
    size += len(format_canonical(one.data)) if erased else 0
    return size > MAX_BODY - _SURE


def _erase(act: Act, merge: _Merge, batch: Sequence[JudgedEntry]) -> int:
    """Erase our copies of the entries that the peer erased of its own; give how many."""
    erasures: dict[int, Draft] = {}
    redacted = [one for one in batch if one.header.kind == REDACTED.name]
    shown_for = _shown_for(act) if redacted else {}
    for one in redacted:
        erased, kind = one.data["seq"], one.data["kind"]
        copies = _copies(act, merge, one.header.ledger, erased)
        gone = {*erasures, *(entry.seq for entry in copies)}
        for entry in copies:
            if parse_header(act.source.content(entry.data["header"])).kind != kind:
                continue  # it says what is not so: the body stays
            if _stands_for_others(act, shown_for.get(entry.seq, ()), gone):
                continue
            erasures[entry.seq] = _erasure(entry, one.data, merge.who)
            for shown, said, who in _waiting(act, entry):
                others = shown_for.get(shown.seq, ())
                if shown.seq not in gone and not _stands_for_others(act, others, gone):
                    erasures[shown.seq] = _erasure(shown, said, who)
    if erasures:
        erase_within(act, list(erasures.values()))
    return len(erasures)


def _erasure(entry: Entry, said: Mapping[str, Any], who: str) -> Draft:
    """The erasure of an entry that keeps one of ``who``, which ``said`` what stands for it."""
    return REDACTED.draft(
        {
            "seq": entry.seq,
            "kind": entry.kind,
            "reason": f"{who} erased its entry {said['seq']}: {said['reason']}"[:MAX_REASON],
            "by": "tripod",
            "keep": tombstone(entry.kind, entry.data | {"keep": said["keep"]}),
        },
        cause=entry.id,
    )


def _shown_for(act: Act) -> dict[int, list[int]]:
    """The entries for which another one here is shown, by that."""
    found: dict[int, list[int]] = {}
    sql = "SELECT same, seq FROM merged WHERE same IS NOT NULL"
    for same, seq in act.transaction.tables.execute(sql).fetchall():
        found.setdefault(same, []).append(seq)
    return found


def _stands_for_others(act: Act, others: Sequence[int], gone: Collection[int]) -> bool:
    """Whether one of the entries for which another is shown is whole, and stays.

    Its text would be hidden, which its maker did not ask for. It is erased with the last of them.
    """
    return any(_is_whole(act.store.entry(at)) for at in others if at not in gone)


def _is_whole(entry: Entry | None) -> bool:
    return entry is not None and entry.body is not None and "content" in entry.data


def _waiting(act: Act, entry: Entry) -> Iterator[tuple[Entry, Mapping[str, Any], str]]:
    """The entry that is shown for one, if its own maker erased it before; with what it said."""
    same = (entry.data.get("place") or {}).get("same")
    shown = None if same is None else act.store.entry(same)
    if shown is None or shown.kind != PEER_ENTRY.name or not _is_whole(shown):
        return
    origin, seq = shown.data["origin"], shown.data["seq"]
    sql = "SELECT seq FROM merged WHERE origin = ? AND kind = ?"
    for (at,) in act.transaction.tables.execute(sql, (origin, REDACTED.name)).fetchall():
        found = act.store.entry(at)
        said = {} if found is None else peer_view(found, act.transaction.blob).data
        if said.get("seq") == seq:
            peer = read_roster(act.store).get(origin)
            yield shown, said, origin if peer is None else peer.name


def _copies(act: Act, merge: _Merge, line: str, seq: int) -> list[Entry]:
    """The entries that keep entry ``seq`` of the peer, or of its ``line``, with its body.

    A replica that left the line later may have brought the same entry along. What that says of the
    line which it left erases nothing of others: it has no key of theirs.
    """
    own = act.store.seq_of(peer_entry_id(merge.seal.origin, seq))
    raw = merge.kept_header(line, seq)
    is_its = line == merge.seal.origin
    others = kept_elsewhere(act.transaction.tables, line, seq) if is_its else ()
    entries = [act.store.entry(at) for at in sorted({own, *others} - {None})]
    return [
        entry
        for entry in entries
        if entry is not None
        and _is_whole(entry)
        and (entry.seq == own or act.source.content(entry.data["header"]) == raw)
    ]


def fetched_teams(repository: Repository, remote: str, own: str) -> dict[str, list[str]]:
    """The teams of the records that were fetched from a remote, but for ours, and their refs."""
    found: dict[str, list[str]] = {}
    for one in replica_refs(repository):
        with suppress(FileError, MalformedError, RecordProblemError, GitError):
            files = RefFiles(repository, one.commit)
            seal = read_seal(files.seal_note())
            if one.remote == remote and seal.origin != own:
                who = sealed_identity(SealedRecord(files, seal), None)
                if who.team and who.names_itself():
                    found.setdefault(who.team, []).append(one.ref)
    return found


def shown_teams(teams: Mapping[str, Sequence[str]]) -> str:
    """Teams in words, each with the replicas whose records are on its refs."""
    parts = (
        f"the team {team} ({', '.join(sorted(ref.rpartition('/')[2] for ref in refs))})"
        for team, refs in sorted(teams.items())
    )
    return " and ".join(parts)
