"""One act on a team directory: what it appends, and what it does to files besides.

``tripod.team.team`` makes an ``Act``; the acts of the domains (``tripod.bus``, ``tripod.chat`` and
so on) work with it. The trust commands need no more than an ``ActContext``.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tripod.errors import BadArgumentError, RefusedError
from tripod.ledger import REDACTED, Draft, Entry
from tripod.ledger.kinds.bus import PUBLISHED, Priority
from tripod.ledger.locator import database_of
from tripod.ledger.sqlite.store import ReadOnlyStore, SQLiteStore, SQLiteTransaction
from tripod.projections import manifest
from tripod.projections.bus.format import (
    PRIORITIES,
    Config,
    Event,
    event_name,
    format_event,
    format_time,
    name_problem,
    valid_event_word,
)
from tripod.projections.bus.tables import BUS
from tripod.projections.disk import (
    Disk,
    DiskStat,
    UnreadableError,
    in_the_way_on_disk,
    odd_config_on_disk,
)
from tripod.projections.engine import (
    OWN,
    Looked,
    desired_file,
    fold_into,
    seen_entries,
    source_of,
    touched_files,
)
from tripod.projections.pieces import OLDER_STATE, UNMERGED_CURE, merge_marker_in_piece, name_pieces
from tripod.projections.projection import Source
from tripod.projections.team.tables import COUNTS

if TYPE_CHECKING:
    from tripod.projections.pieces import Conflict, Remnant
    from tripod.projections.spill import SpilledDigests


Sign: TypeAlias = Callable[[Sequence[Draft]], list[Draft]]
"""Gives drafts, those of actors with a key signed."""

READ_LIMIT = 2**30
MANY = 5_000
"""Entries of one act that it keeps at most; of more, the ledger is read again."""
MAX_DISPLACED = 16 * 1024 * 1024
MAX_PAYLOAD = 1024 * 1024  # bytes
MARKER = "is a conflict marker of a merge that is not finished"


def is_to_be_written(entry: Entry) -> bool:
    """Whether files have to follow an entry; what was observed stands in them already.

    What a peer observed stands in the peer's.
    """
    return "observed" not in entry.data or "peer" in entry.data


def digest_of(disk: Disk, path: str) -> str:
    """SHA-256 of a file's bytes; '' if absent, and where it cannot be read."""
    try:
        data = disk.read(path, READ_LIMIT)
    except UnreadableError:
        return ""
    return "" if data is None else sha256(data).hexdigest()


class ActContext:
    """The ledger and the disk of one team directory, and the warnings for the command's end.

    ``queue`` is the queue that acts on events work on: '' the team's own, else ``<name>/``.
    """

    def __init__(self, root: str, *, create: bool = False, read_only: bool = False) -> None:
        """Open the ledger in the team directory ``root`` (LedgerError: it cannot be opened)."""
        self.root = root
        path = database_of(root)
        self.store = (
            ReadOnlyStore(path) if read_only else SQLiteStore(path, fold=fold_into, create=create)
        )
        self.disk = Disk(root)
        self.source: Source = source_of(self.store)
        self.warnings: list[str] = []
        self.queue = ""

    def append_apart(self, make: Callable[[], Sequence[Draft]]) -> list[Entry]:
        """Append what changes no file, without a look at any of them.

        ``make`` gives the drafts; it is called under the writer's lock, where the ledger's head is
        the committed one.
        """
        with self.store.transaction() as transaction:
            size = transaction.size
            entries = transaction.append(make())
            if entries and transaction.cursors().files == size:
                self.store.set_files(transaction.size)
        return entries


def settings_of_queue(team: ActContext) -> dict[str, Any]:
    """The queue's configuration as last taken in, or the defaults; what is wrong is a warning."""
    path = f"{BUS.folder}/{team.queue}config.yaml"
    odd = odd_config_on_disk(team.disk, path)
    if odd is not None and f"{path} {odd}" not in team.warnings:
        team.warnings.append(f"{path} {odd}")
    row = team.store.db.execute(
        "SELECT settings, problems FROM inputs WHERE path = ?", (path,)
    ).fetchone()
    if row is None or row[0] is None:
        return Config()._asdict()
    for problem in json.loads(row[1] or "[]"):
        place = f"{path}:{problem['line']}" if problem["line"] else path
        warning = ": ".join(filter(None, (place, problem["key"], problem["message"])))
        if warning not in team.warnings:
            team.warnings.append(warning)
    return json.loads(row[0])  # type: ignore[no-any-return]


class ActFileState:
    """What one act knows and learns of the files; ``tripod.team.files`` writes them by it.

    ``held``: files whose original tools' lock this act has. ``known``: the manifest as of the last
    act. ``agreed``: files that this act compared with the ledger. ``looked``: what a quick look
    read, where it found that nothing changed; None where the intake looked at all files.
    ``displaced``: digests of bytes that this act kept in the ledger. ``unmerged``: files with
    conflict markers, and what to say of them. ``taken``: acknowledged events that it moved before
    the COMMIT. ``late``: files that another program wrote meanwhile. ``settled``: paths to be
    watched no more.
    """

    def __init__(self, disk: Disk, known: manifest.NotedFiles, held: Iterable[str] = ()) -> None:
        self.disk = disk
        self.held = set(held)
        self.known = known
        self.agreed: manifest.Manifest = {}
        self.looked: Looked | None = None
        self.displaced: set[str] = set()
        self.unmerged: dict[str, str] = {}
        self.taken: set[str] = set()
        self.late: dict[str, None] = {}
        self.settled: set[str] = set()
        self.written: dict[str, tuple[DiskStat, str]] = {}
        self._digests: list[dict[str, str] | SpilledDigests] = []

    @property
    def uncounted(self) -> list[str]:
        """Folders of the queue that this act did not count, though their stat settles nothing."""
        return [] if self.looked is None else self.looked.uncounted

    def account(self, path: str, digest: str) -> None:
        """These bytes of a file are in the ledger: they may be written over."""
        for each in self._digests:
            if each.get(path) in (None, digest):
                each[path] = digest
                return
        self._digests.append({path: digest})

    def account_all(self, digests: SpilledDigests) -> None:
        """The bytes of the files that a look read are in the ledger, or about to be."""
        self._digests.append(digests)

    def is_accounted(self, path: str, digest: str) -> bool:
        """Whether we know these bytes of a file: written by us, or taken in."""
        noted = self.known.get(path)
        return (noted is not None and noted.digest == digest) or any(
            each.get(path) == digest for each in self._digests
        )

    def is_ours(self, path: str, digest: str) -> bool:
        """Whether a file's bytes may be written over; '' stands for no file."""
        return not digest or path == COUNTS.path or self.is_accounted(path, digest)

    def keep_open(self, path: str, data: bytes) -> None:
        """A replaced file that others may still write into: it is looked at by later commands."""
        stat = self.disk.stat(path)
        if stat is not None:
            self.written[path] = (stat, sha256(data).hexdigest())

    def drop(self, path: str) -> None:
        """A replaced file whose bytes are all in the ledger goes."""
        self.disk.remove(path)
        self.settled.add(path)


class Inspection:
    """What an act's look at the files found, besides what it took in.

    ``full``: it also looks at evidence and read positions. ``seen_ns``: when it began.
    ``files`` and ``left_alone``: how many files it took in, and which it did not. ``ahead``: the
    files show entries that the ledger lacks. ``beyond``: why what they show is taken in then.
    ``head_beyond`` says which remembered head of the ledger it does not reach.
    ``emptied``: the team directory was not there, so that all its files are written again.
    ``shown``: how many entries the newest file shows of those that show an older state.
    ``triggers``: those of the database that were put back. ``remnants``: the files that a power
    cut left, where the host was started anew since the disk was waited for. ``warned``: the
    warnings so far.
    """

    def __init__(self, *, full: bool, warned: Iterable[str]) -> None:
        self.full = full
        self.warned = set(warned)
        self.seen_ns = time.time_ns()
        self.left_alone: list[str] = []
        self.files = 0
        self.ahead = False
        self.emptied = False
        self.beyond = ""
        self.head_beyond: Callable[[], str | None] = lambda: None
        self.shown: int | None = None
        self.triggers: list[str] = []
        self.remnants: dict[str, Remnant] = {}


class ActEntries:
    """What an act appended: how much of which kind, and the entries that files have to follow.

    What was observed stands in the files, so nothing of it is kept, and of all else no more than
    ``MANY``: an act of any size holds little. Entries are those that tables and files see
    (``seen_entries``).

    ``first`` is the number of the first one. ``observed`` counts by kind those of others.
    ``chats`` are the streams of chats, ``own`` the files among ours alone that show these entries.
    """

    def __init__(self, transaction: SQLiteTransaction) -> None:
        self._transaction = transaction
        self._kept: list[Entry] | None = []
        self.first = transaction.size
        self.size = 0
        self.newest_id = ""
        self.kinds: Counter[str] = Counter()
        self.observed: Counter[str] = Counter()
        self.chats: set[str] = set()
        self.own: set[str] = set()
        self.is_checkpoint = False

    def extend(self, entries: Iterable[Entry]) -> None:
        """Count entries that were appended; keep those that files have to follow."""
        for entry in seen_entries(entries, self._transaction.blob):
            kind, data = entry.kind, entry.data
            self.size += 1
            self.newest_id = entry.id
            self.kinds[kind] += 1
            if "observed" in data:
                self.observed[kind] += 1
            if entry.stream.startswith("chat/"):
                self.chats.add(entry.stream)
            for projection in _OWN.get(kind, ()):
                self.own.update(projection.touched(entry))
            if kind == PUBLISHED.name and data.get("type") == "pythia-checkpoint":
                self.is_checkpoint = True
            if self._kept is not None and is_to_be_written(entry):
                # Bytes that were just formatted hold more memory than they are long.
                self._kept.append(entry._replace(header=b"", salt=None, body=None))
        if self._kept is not None and len(self._kept) > MANY:
            self._kept = None

    def at_hand(self, source: Source) -> Source:
        """The source of these entries' bodies, which need not be read again.

        An act that erased bodies reads all of them.
        """
        kept = {} if self.kinds[REDACTED] else {entry.seq: entry.data for entry in self._kept or ()}

        def body(seq: int) -> dict[str, Any]:
            return kept[seq] if seq in kept else source.body(seq)

        def bodies(seqs: Sequence[int]) -> dict[int, dict[str, Any]]:
            found = source.bodies([seq for seq in seqs if seq not in kept])
            return found | {seq: kept[seq] for seq in seqs if seq in kept}

        return source._replace(body=body, bodies=bodies) if kept else source

    def to_be_written(self) -> Iterator[Entry]:
        """The entries that files have to follow, in their order."""
        if self._kept is not None:
            return iter(self._kept)
        appended = self._transaction.read(self.first)
        return filter(is_to_be_written, seen_entries(appended, self._transaction.blob))


_OWN = {kind: tuple(p for p in OWN if kind in p.kinds) for one in OWN for kind in one.kinds}


class Act:
    """The tables to decide over, and the way to append.

    ``entries`` says what it appended.
    ``conflicts`` are files that contradict the ledger, by path. ``rewrite``: paths to be written
    besides those that the entries change. ``later``: work that is done after the COMMIT, under the
    writer's lock, each key once. ``sign`` signs for the actors that have a key, where any has.
    ``parts`` counts the acts that joined this one; ``is_broken``: one of them failed half way.
    """

    def __init__(
        self,
        context: ActContext,
        writer: ActFileState,
        transaction: SQLiteTransaction,
        *,
        full: bool = False,
    ) -> None:
        self.context = context
        self.writer = writer
        self.transaction = transaction
        self.look = Inspection(full=full, warned=context.warnings)
        self.now_us = self.look.seen_ns // 1000
        self.conflicts: dict[str, Conflict] = {}
        self.entries = ActEntries(transaction)
        self.rewrite: set[str] = set()
        self.later: dict[tuple[str, ...], Callable[[], None]] = {}
        self.sign: Sign | None = None
        self.parts = 0
        self.is_broken = False

    @property
    def store(self) -> SQLiteStore:
        """The ledger's store, whose reads show this transaction."""
        return self.context.store

    @property
    def source(self) -> Source:
        """The ledger and its tables, as projections read them."""
        return self.context.source

    @property
    def disk(self) -> Disk:
        """The team directory."""
        return self.context.disk

    def extent(self) -> tuple[int, ...]:
        """How much this act did so far: where it stays equal, nothing was done in between."""
        return self.entries.size, len(self.rewrite), len(self.later), len(self.writer.taken)

    def append(self, drafts: Sequence[Draft]) -> list[Entry]:
        """Append; all acts of one transaction stand or fall together.

        Drafts of one actor with a key are signed together. Raises RefusedError where the key
        cannot be used here; nothing is recorded.
        """
        if self.sign is not None:
            drafts = self.sign(drafts)
        entries = self.transaction.append(drafts)
        self.entries.extend(entries)
        return entries

    def erase(self, redaction: Draft) -> None:
        """Append a redaction and carry it out; it is signed and refused as in ``append``.

        The disk is waited for first: what a power cut leaves of a file is known by the entries, and
        that of erased ones would not be.
        """
        if not self.entries.kinds[REDACTED]:
            self.disk.sync()
        if self.sign is not None:
            (redaction,) = self.sign((redaction,))
        self.entries.extend((self.transaction.erase(redaction),))

    def warn(self, text: str) -> None:
        """Have a warning printed at the end of the command, once."""
        if text not in self.look.warned:
            self.look.warned.add(text)
            self.context.warnings.append(text)

    def forget_warnings(self, path: str) -> None:
        """Drop the warnings about a file that this act itself begins anew."""
        warnings = self.context.warnings
        warnings[:] = [text for text in warnings if not text.startswith(f"{path}: ")]

    def displace(self, path: str, reason: str) -> bool:
        """Keep the bytes at ``path``, about to be written over; give whether any were there.

        Raises RefusedError where they cannot be kept; nothing was recorded.
        """
        try:
            data = self.disk.read(path, MAX_DISPLACED)
        except UnreadableError as error:
            raise RefusedError(
                f"{error}; it would be written over and lost: move it away first"
            ) from error
        if data is None:
            return False
        want = desired_file(self.source, path)
        line = merge_marker_in_piece(path, data, b"" if want is None else want.data)
        if line is not None:
            self._refuse_unmerged(path, f"line {line} {MARKER}")
        from tripod.projections.erasure import withhold_erased

        shown, places = withhold_erased(self.source, path, data)
        if places:
            reason += f" (it showed {places} redacted places, which were not kept)"
        # A writer that died or gave up before it replaced them may have kept just these bytes.
        start = self.transaction.cursors().files
        kept = self.transaction.raw(start, stream=f"files/{path}", kinds=("file.displaced",))
        bodies = self.source.each_body([entry.seq for entry in kept])
        contents = (body.get("content") for body in bodies)
        if not any(c is not None and self.source.content(c) == shown for c in contents):
            from tripod.ledger.kinds.team import DISPLACED  # dear to import, seldom needed

            self.append([DISPLACED.draft({"path": path, "reason": reason, "content": shown})])
        digest = sha256(data).hexdigest()
        self.writer.account(path, digest)
        self.writer.displaced.add(digest)
        self.conflicts.pop(path, None)
        return True

    def is_older(self, path: str) -> bool:
        """Whether a file shows an older state: all that it holds is in the ledger."""
        return path in self.conflicts and self.conflicts[path].what == OLDER_STATE

    def renew_older_states(self) -> list[str]:
        """Say which files show an older state; where this act writes files, write these, too.

        A command that only reads leaves them: what git checked out is not changed, so that git can
        check out the next commit. Gives the paths of those that are to be written.
        """
        older = [path for path in self.conflicts if self.is_older(path)]
        if not older:
            return []
        ours = self.entries.to_be_written()
        is_written = self.look.full or bool(touched_files(ours, self.source))
        shown = 0 if self.look.shown is None else self.look.shown
        count = "1 file shows" if len(older) == 1 else f"{len(older)} files show"
        self.warn(
            f"{count} an older state, as of entry {shown - 1} (a checkout, a stash or a backup): "
            f"{name_pieces(older)}; nothing of that is taken in, and "
            + ("the newest state is written" if is_written else "the next act writes the newest")
        )
        if not is_written:
            return []
        self.rewrite.update(older)
        for path in older:
            del self.conflicts[path]
        return older

    def refuse_blocked(self) -> None:
        """Refuse to replace a folder, a link or a half-merged file (RefusedError)."""
        ours = (entry for entry in self.entries.to_be_written() if entry.stream != "bus")
        paths = {*self.rewrite, *touched_files(ours, self.source)}
        for path in sorted(path for path in paths if not path.endswith(".event")):
            if path in self.writer.unmerged:
                self._refuse_unmerged(path, self.writer.unmerged[path], ", and do this again")
            odd = in_the_way_on_disk(self.disk, path)
            if odd is not None:
                raise RefusedError(
                    f"{self.disk.full(path)} is {odd}, where a file of the ledger belongs: writing "
                    "it would replace that, so nothing was recorded. Remove it, or move the file "
                    "itself there, and link to it from where you want to have it"
                )

    def _refuse_unmerged(self, path: str, detail: str, more: str = "") -> None:
        raise RefusedError(
            f"{self.disk.full(path)}: {detail}: writing the file would remove the other side's "
            f"part, so nothing was recorded; {UNMERGED_CURE}{more}"
        )

    def keep_displaced(self) -> None:
        """Keep the bytes of others in files that are about to be replaced.

        These are the files that this act writes, and those that an interrupted act should have
        written. What others wrote into them is named: it is lost there, and only there.
        """
        if not self.conflicts:
            return
        from tripod.projections.erasure import unrecorded_pieces

        ours = self.entries.to_be_written()
        shown, first = self.transaction.cursors().files, self.entries.first
        behind = self.store.read(shown, first) if shown < first else ()
        touched = self.rewrite | touched_files((*behind, *ours), self.source).keys()
        apart = {path for path in self.conflicts if not self.is_older(path)}
        for path in sorted((touched & apart) - self.writer.unmerged.keys()):
            try:
                data = self.disk.read(path, MAX_DISPLACED)
            except UnreadableError:
                data = None  # `displace` refuses it
            pieces = [] if data is None else unrecorded_pieces(self.source, path, data)
            if pieces:
                self.warn(
                    f"{path}: {len(pieces)} of its pieces, which no entry holds, went as the file "
                    f"was written again: {name_pieces(pieces)}; their bytes are kept, add them "
                    "behind the others and `tripod sync` (`tripod verify` names the entry with "
                    "the bytes)"
                )
            self.displace(path, self.conflicts[path].detail)


# Events ----------------------------------------------------------------------------------------


def check_event_for_act(source: str, type_: str, priority: str, payload: str) -> None:
    """Refuse what cannot stand in one event (BadArgumentError: a field breaks its rule)."""
    problem = valid_event_word(source, "source") or valid_event_word(type_, "type")
    if problem is None and priority not in PRIORITIES:
        problem = f"priority: {priority!r} is none of {', '.join(PRIORITIES)}"
    if problem is None and len(payload.encode("utf-8", "surrogatepass")) > MAX_PAYLOAD:
        problem = f"payload: more than {MAX_PAYLOAD} bytes; put it into a file and send its path"
    if problem is None:
        try:
            payload.encode()
        except UnicodeEncodeError:
            problem = "payload: not valid Unicode text"
    if problem is not None:
        raise BadArgumentError(problem)


def draft_event_for_act(
    act: Act,
    source: str,
    type_: str,
    priority: str,
    payload: str,
    *,
    cause: Draft | None = None,
    to: str | None = None,
) -> Draft:
    """The draft of a new event, under a file name that is free.

    ``cause`` is the draft (with its id) that the event reports: the event has the same actor, and
    ``source`` is the tool that reports it. ``to`` is the handle that it addresses. Raises
    BadArgumentError where a field breaks its rule.
    """
    check_event_for_act(source, type_, priority, payload)
    us = act.now_us
    while True:
        file = event_name(us, source, type_, os.getpid())
        problem = name_problem(file)
        if problem is not None:
            raise BadArgumentError(problem)
        name = act.context.queue + file
        taken = act.transaction.tables.execute(
            "SELECT 1 FROM events WHERE acked IS NULL AND priority IN (0, 1, 2, 3)"
            " AND us = ?1 AND name = ?2"
            " UNION ALL SELECT 1 FROM events WHERE acked IS NOT NULL AND us = ?1 AND name = ?2",
            (us, name),
        ).fetchone()
        if taken is None:
            break
        us += 1
    act.now_us = us + 1
    event = Event(source, type_, priority, format_time(us), f"{source}:{type_}", payload)
    draft = PUBLISHED.draft(
        {
            "name": name,
            "us": us,
            "source": source,
            "type": type_,
            "priority": cast("Priority", priority),
            "size": len(format_event(event)),
            "payload": payload.encode() or None,
            "to": to,
        }
    )
    return draft if cause is None else draft._replace(actor=cause.actor, cause=cause.id)
