"""An open team directory, and one act on it: what it appends, and what is written after it.

What needs no more than an open ledger and its files, the trust commands first of all, takes a
``Context``. Only ``tripod.team.team`` makes an ``Act``, and the acts of the domains
(``tripod.bus``, ``tripod.chat`` and so on) work with it. What others wrote to the files is taken in
by ``tripod.team.intake`` before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias, cast

from tripod.errors import BadArgumentError, RefusedError
from tripod.ledger import DATABASE, Draft, Entry
from tripod.ledger.kinds.bus import PUBLISHED, Priority
from tripod.ledger.sqlite.store import SQLiteStore, SQLiteTransaction
from tripod.projections import (
    COUNTS,
    UNMERGED_CURE,
    Disk,
    Source,
    UnreadableError,
    content_bytes,
    desired,
    fold_into,
    in_the_way,
    merge_marker,
    source_of,
)
from tripod.projections.bus.format import (
    PRIORITIES,
    Event,
    event_name,
    format_event,
    format_time,
    name_problem,
    valid_word,
)
from tripod.team.files import Files, touched_by

if TYPE_CHECKING:
    from tripod.projections import Conflict


Sign: TypeAlias = Callable[[Sequence[Draft]], list[Draft]]
"""Gives drafts, those of actors with a key signed."""

MAX_DISPLACED = 16 * 1024 * 1024
MAX_PAYLOAD = 1024 * 1024  # bytes


class Context:
    """The ledger and the files of one team directory, and the warnings for the command's end.

    ``queue`` is the queue that acts on events work on: '' the team's own, else ``<name>/``.
    """

    def __init__(self, root: str, *, create: bool = False) -> None:
        """Open the ledger in the team directory ``root``.

        Raises:
            LedgerError: it is not there, damaged, or cannot be written.
        """
        self.root = root
        self.store = SQLiteStore(f"{root}/{DATABASE}", fold=fold_into, create=create)
        self.disk = Disk(root)
        self.source: Source = source_of(self.store)
        self.files = Files(self.disk, self.store, self.source)
        self.warnings: list[str] = []
        self.queue = ""

    def append_apart(self, make: Callable[[], Sequence[Draft]]) -> list[Entry]:
        """Append what changes no file, without a look at any of them.

        ``make`` gives the drafts; it is called in the writer's place, where the ledger's head is
        the committed one.
        """
        with self.store.transaction() as transaction:
            size = transaction.size
            entries = transaction.append(make())
            if entries and transaction.cursors().files == size:
                self.store.set_files(transaction.size)
        return entries


class Inspection:
    """What an act's look at the files found, besides what it took in.

    ``full``: it also looks at evidence and read positions. ``seen_ns``: when it began.
    ``files`` and ``left_alone``: how many files it took in, and which it did not. ``ahead``: the
    files show entries that the ledger lacks. ``triggers``: those of the database that were put
    back.
    """

    def __init__(self, *, full: bool) -> None:
        """Nothing is looked at yet."""
        self.full = full
        self.seen_ns = time.time_ns()
        self.left_alone: list[str] = []
        self.files = 0
        self.ahead = False
        self.triggers: list[str] = []


class Act:
    """The tables to decide over, and the way to append.

    ``conflicts`` are files that contradict the ledger, by path. ``rewrite``: paths to be written
    besides those that the entries change. ``later``: work that is done after the COMMIT, in the
    writer's place, each key once. ``sign`` signs for the actors that have a key, where any has.
    ``parts`` counts the acts that joined this one; ``is_broken``: one of them failed half way.
    """

    def __init__(
        self, context: Context, transaction: SQLiteTransaction, *, full: bool = False
    ) -> None:
        """Nothing is looked at yet."""
        self.context = context
        self.transaction = transaction
        self.look = Inspection(full=full)
        self.now_us = self.look.seen_ns // 1000
        self.conflicts: dict[str, Conflict] = {}
        self.entries: list[Entry] = []
        self.rewrite: set[str] = set()
        self.later: dict[tuple[str, ...], Callable[[], None]] = {}
        self.sign: Sign | None = None
        self.parts = 0
        self.is_broken = False
        self._warned = set(context.warnings)

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

    @property
    def writer(self) -> Files:
        """The files that this act may write."""
        return self.context.files

    @property
    def queue(self) -> str:
        """The queue of events: '' the team's own, else ``<name>/``."""
        return self.context.queue

    def extent(self) -> tuple[int, ...]:
        """How much this act did so far: where it stays equal, nothing was done in between."""
        return len(self.entries), len(self.rewrite), len(self.later), len(self.writer.taken)

    def append(self, drafts: Sequence[Draft]) -> list[Entry]:
        """Append; all acts of one transaction stand or fall together.

        What one actor with a key does is signed together.

        Raises:
            RefusedError: an actor has a key, and it cannot be used here; nothing is recorded.
        """
        if self.sign is not None:
            drafts = self.sign(drafts)
        entries = self.transaction.append(drafts)
        self.entries.extend(entries)
        return entries

    def erase(self, redaction: Draft) -> None:
        """Append a redaction and carry it out; signed, and refused, as what is appended."""
        if self.sign is not None:
            (redaction,) = self.sign((redaction,))
        self.entries.append(self.transaction.erase(redaction))

    def warn(self, text: str) -> None:
        """Have something said at the end of the command, once."""
        if text not in self._warned:
            self._warned.add(text)
            self.context.warnings.append(text)

    def forget_warnings(self, path: str) -> None:
        """Say nothing of a file that this act itself begins anew."""
        warnings = self.context.warnings
        warnings[:] = [text for text in warnings if not text.startswith(f"{path}: ")]

    # Displacing --------------------------------------------------------------------------------

    def displace(self, path: str, reason: str) -> bool:
        """Keep the bytes that stand at ``path``, which is about to be written over.

        Gives whether there were any.

        Raises:
            RefusedError: they cannot be kept; nothing was recorded.
        """
        try:
            data = self.disk.read(path, MAX_DISPLACED)
        except UnreadableError as error:
            raise RefusedError(
                f"{error}; it would be written over and lost: move it away first"
            ) from error
        if data is None:
            return False
        want = desired(self.source, path)
        line = merge_marker(path, data, b"" if want is None else want.data)
        if line is not None:
            raise RefusedError(
                f"{self.disk.full(path)}: line {line} is a conflict marker of a merge that is not "
                f"finished: writing the file would remove the other side's part, so nothing was "
                f"recorded; {UNMERGED_CURE}"
            )
        from tripod.projections.erasure import withhold

        shown, places = withhold(self.source, path, data)
        if places:
            reason += f" (it showed {places} redacted places, which were not kept)"
        if not self._is_kept(path, shown):
            from tripod.ledger.kinds.team import DISPLACED

            self.append([DISPLACED.draft({"path": path, "reason": reason, "content": shown})])
        digest = sha256(data).hexdigest()
        self.writer.account(path, digest)
        self.writer.displaced.add(digest)
        self.conflicts.pop(path, None)
        return True

    def _is_kept(self, path: str, shown: bytes) -> bool:
        """Whether a writer kept just these bytes, and died or gave up before it replaced them."""
        start = self.transaction.cursors().files
        kept = self.transaction.raw(start, stream=f"files/{path}", kinds=("file.displaced",))
        bodies = self.source.each_body([entry.seq for entry in kept])
        contents = (body.get("content") for body in bodies)
        return any(c is not None and content_bytes(self.source, c) == shown for c in contents)

    def refuse_blocked(self) -> None:
        """Refuse to write where something other than a file stands: it is somebody's setup.

        A file that holds conflict markers is somebody's unfinished work.

        Raises:
            RefusedError: it would be replaced; nothing was recorded.
        """
        ours = [e for e in self.entries if e.stream != "bus" and "observed" not in e.data]
        paths = {*self.rewrite, *touched_by(ours, self.source)}
        if any(entry.kind in COUNTS.kinds for entry in ours):
            paths.add(COUNTS.path)
        for path in sorted(path for path in paths if not path.endswith(".event")):
            if path in self.writer.unmerged:
                raise RefusedError(
                    f"{self.disk.full(path)}: {self.writer.unmerged[path]}: writing the file would "
                    "remove the other side's part, so nothing was recorded; "
                    f"{UNMERGED_CURE}, and do this again"
                )
            odd = in_the_way(self.disk, path)
            if odd is not None:
                raise RefusedError(
                    f"{self.disk.full(path)} is {odd}, where a file of the ledger belongs: writing "
                    "it would replace that, so nothing was recorded. Remove it, or move the file "
                    "itself there, and link to it from where you want to have it"
                )

    def keep_displaced(self) -> None:
        """Keep what others left where files are about to be written, before they are replaced.

        That is where this act writes, and where a writer should have that died.
        """
        if self.conflicts:
            ours = [entry for entry in self.entries if "observed" not in entry.data]
            shown = self.transaction.cursors().files
            first = self.entries[0].seq if self.entries else self.transaction.size
            behind = self.store.read(shown, first) if shown < first else ()
            touched = self.rewrite | touched_by((*behind, *ours), self.source).keys()
            for path in sorted((touched & self.conflicts.keys()) - self.writer.unmerged.keys()):
                self._tell_lost(path)
                self.displace(path, self.conflicts[path].detail)

    def _tell_lost(self, path: str) -> None:
        """Name what others wrote into a file that is about to be written over, and only there."""
        from tripod.projections.unheld import told, unheld

        try:
            data = self.disk.read(path, MAX_DISPLACED)
        except UnreadableError:
            return  # it is refused in a moment
        pieces = [] if data is None else unheld(self.source, path, data)
        if pieces:
            self.warn(
                f"{path}: {len(pieces)} of its pieces, which no entry holds, went as the file was "
                f"written again: {told(pieces)}; their bytes are kept, add them behind the others "
                "and `tripod sync` (`tripod verify` names the entry with the bytes)"
            )


# Events ----------------------------------------------------------------------------------------


def judge_event(source: str, type_: str, priority: str, payload: str) -> None:
    """Refuse what cannot stand in one event.

    Raises:
        BadArgumentError: a field breaks its rule.
    """
    problem = valid_word(source, "source") or valid_word(type_, "type")
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


def draft_event(
    act: Act,
    source: str,
    type_: str,
    priority: str,
    payload: str,
    *,
    cause: Draft | None = None,
    to: str | None = None,
) -> Draft:
    """The draft of a new event, under a file name that nobody has yet.

    ``cause`` is what it tells of, a draft with its id: who did that does this too, and the source
    is the tool that tells it. ``to`` is the handle that it addresses.

    Raises:
        BadArgumentError: a field breaks its rule.
    """
    judge_event(source, type_, priority, payload)
    us = act.now_us
    while True:
        file = event_name(us, source, type_, os.getpid())
        problem = name_problem(file)
        if problem is not None:
            raise BadArgumentError(problem)
        name = act.queue + file
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
    data = format_event(
        Event(source, type_, priority, format_time(us), f"{source}:{type_}", payload)
    )
    draft = PUBLISHED.draft(
        {
            "name": name,
            "us": us,
            "source": source,
            "type": type_,
            "priority": cast("Priority", priority),
            "size": len(data),
            "payload": payload.encode() or None,
            "to": to,
        }
    )
    return draft if cause is None else draft._replace(actor=cause.actor, cause=cause.id)
