"""One act inside its transaction: what it took in, what it appends, what it will write.

Only ``tripod.team.team`` makes one; the acts (``tripod.bus.events``, ``chat``, ``scribe``) are
handed it.

Takes in replaced files that came back with more in them than we knew.

In every act that looks at the team's files at all. What they hold is in the ledger before they go,
and they go only when nobody can write into them any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from tripod.errors import RefusedError
from tripod.ledger.entry import Draft, Entry
from tripod.ledger.sqlite.store import SQLiteStore, SQLiteTransaction
from tripod.projections import BUS, CHAT, COUNTS
from tripod.projections.disk import (
    KEPT,
    UNMERGED_CURE,
    Disk,
    UnreadableError,
    in_the_way,
    merge_marker,
)
from tripod.projections.engine import desired
from tripod.projections.projection import Source, content_bytes
from tripod.projections.team.tables import PATH as COUNTS_PATH
from tripod.projections.team.tables import ahead_of
from tripod.team.files import Files, digest_of, folders_of, touched_by
from tripod.team.recheck import look

if TYPE_CHECKING:
    from tripod.projections.pieces import Conflict, Found
    from tripod.trust.actors import Signing


MAX_DISPLACED = 16 * 1024 * 1024
FEW = 10  # files of one folder that vanished; more of them are told by an entry for the folder
NAMED = 3  # of those


class Act:
    """The tables to decide over, and the road to append.

    ``conflicts`` are files that contradict the ledger, by path; ``rewrite`` those to be written
    besides the ones that the entries change, ``later`` what is done behind the commit, in the
    writer's place, each thing once. ``full`` also looks at evidence and read positions.
    ``blind``: it looked at no file, and writes none.
    ``triggers`` of the database were put back.
    ``signing`` signs for the actors that have a key, where any has.
    ``queue`` is where its events go: '' the team's own queue, else ``<name>/``.
    """

    def __init__(
        self,
        transaction: SQLiteTransaction,
        store: SQLiteStore,
        writer: Files,
        warnings: list[str],
        *,
        full: bool = False,
    ) -> None:
        """Nothing is looked at yet."""
        self.transaction = transaction
        self.store = store
        self.source: Source = writer.source
        self.disk: Disk = writer.disk
        self.writer = writer
        self.warnings = warnings
        self._warned = set(warnings)
        self.full = full
        self.seen_ns = time.time_ns()
        self.now_us = self.seen_ns // 1000
        self.conflicts: dict[str, Conflict] = {}
        self.entries: list[Entry] = []
        self.rewrite: set[str] = set()
        self.later: dict[tuple[str, ...], Callable[[], None]] = {}
        self.may_lag = False
        self.blind = False
        self.left_alone: list[str] = []
        self.files = 0
        self.ahead = False
        self.triggers: list[str] = []
        self.signing: Signing | None = None
        self.queue = ""

    def append(self, drafts: Sequence[Draft]) -> list[Entry]:
        """Append; all acts of one transaction stand or fall together.

        What one actor with a key does is signed together.

        Raises:
            RefusedError: an actor has a key, and it cannot be used here; nothing is recorded.
        """
        if self.signing is not None:
            drafts = self.signing.sign(drafts)
        entries = self.transaction.append(drafts)
        self.entries.extend(entries)
        return entries

    def erase(self, redaction: Draft) -> None:
        """Append a redaction and carry it out; signed, and refused, as what is appended."""
        if self.signing is not None:
            (redaction,) = self.signing.sign((redaction,))
        self.entries.append(self.transaction.erase(redaction))

    def warn(self, text: str) -> None:
        """Have something said at the end of the command, once."""
        if text not in self._warned:
            self._warned.add(text)
            self.warnings.append(text)

    def forget_warnings(self, path: str) -> None:
        """Say nothing of a file that this act itself begins anew."""
        self.warnings[:] = [text for text in self.warnings if not text.startswith(f"{path}: ")]

    # Taking in ---------------------------------------------------------------------------------

    def take_in(self) -> None:
        """Append what others wrote; what is missing is written again, what contradicts is told."""
        found = self._look()
        self._drop_known(found)
        shown = int(self.transaction.tables.execute("SELECT files FROM head").fetchone()[0])
        gone: dict[str, str] = {}
        if not self.disk.is_file(COUNTS_PATH):
            self.rewrite.add(COUNTS_PATH)
            if shown and not self.disk.stands(COUNTS_PATH):
                gone[COUNTS_PATH] = "the file is gone"
                self.warn(f"{COUNTS_PATH}: the file is gone; it is written again")
        for path, digest in found.digests.items():
            self.writer.account(path, digest)
        for conflict in found.conflicts:
            self._heed(conflict, gone)
        for path, odd in found.odd.items():
            self.warn(f"{path} {odd}")
        self.left_alone, self.files = found.left_alone, found.files
        if found.pieces:
            from tripod.projections.pieces import sort_pieces

            drafts = sort_pieces(found.pieces)
            self.append(drafts)
            self._note_config(drafts)
            for draft in drafts:
                if draft.kind == "chat.rotated" and "moved" in draft.body:
                    self.writer.settled.add(CHAT.live(draft.stream))  # it is watched no more
                if draft.kind == "file.seen":
                    self.warn(
                        f"{draft.body['path']}: not understood ({draft.body['problem']}); its "
                        "bytes are kept in the ledger, and it stays as it is"
                    )
            self._note_malformed(drafts, found.malformed)
            self._tell_deleted(drafts)
        take_strays(self)
        if self.full:
            self._take_positions()
        self._tell_positions()
        self._note_gone(gone, shown)

    def _heed(self, conflict: Conflict, gone: dict[str, str]) -> None:
        """Tell what is not taken in; ``gone`` collects the files that are written again."""
        from tripod.projections.intake import BLOCKED
        from tripod.projections.pieces import UNMERGED

        if conflict.what == BLOCKED:
            self.conflicts[conflict.path] = conflict
            self.rewrite.discard(conflict.path)
            self.warn(
                f"{conflict.path}: {conflict.detail}; it is left as it is, and what would "
                "write there is refused"
            )
        elif conflict.what == UNMERGED:
            self.conflicts[conflict.path] = conflict
            self.writer.unmerged[conflict.path] = conflict.detail
            self.rewrite.discard(conflict.path)
            self.warn(
                f"{conflict.path}: {conflict.detail}; nothing of the file was taken in, it is "
                f"left as it is, and what would write there is refused: {UNMERGED_CURE}"
            )
        elif conflict.what == "missing":
            self.rewrite.add(conflict.path)
            gone[conflict.path] = conflict.detail
            self.warn(f"{conflict.path}: {conflict.detail}; it is written again")
        else:
            self.conflicts[conflict.path] = conflict
            self.warn(
                f"{conflict.path}: {conflict.what} outside the ledger ({conflict.detail}); "
                "nothing of it was taken in: see `tripod verify`"
            )

    def _tell_deleted(self, drafts: Sequence[Draft]) -> None:
        """Say which pending events others deleted: they wait for nobody any more."""
        from tripod.projections.bus.intake import is_deletion

        acked = (draft.body for draft in drafts if draft.kind == "bus.acked")
        gone = [str(body["name"]) for body in acked if is_deletion(body)]
        if gone:
            shown = _some(gone) if len(gone) > NAMED else ", ".join(gone)
            self.warn(
                f"{len(gone)} pending event{'' if len(gone) == 1 else 's'} deleted by another "
                f"program, so acknowledged: {shown} (`deleted-events: restore` in "
                f"{BUS.folder}/config.yaml has such files written again)"
            )

    def _take_positions(self) -> None:
        """Of every chat; what they count are the messages that were just taken in."""
        from tripod.team.positions import take_positions

        for folder in self.disk.places.chat_folders():
            for name in self.disk.names(folder):
                if name.endswith(".chat.cursors"):
                    channel = CHAT.stem(f"{folder}/{name.removesuffix('.cursors')}")
                    take_positions(self, channel, locked=False)

    def _tell_positions(self) -> None:
        """Of chats that are about to be written for a writer that died, or waits."""
        from tripod.team.positions import behind, show_positions, take_positions

        for channel in behind(self):
            take_positions(self, channel)
            show_positions(self, channel)

    def _look(self) -> Found:
        from tripod.projections.intake import take_in

        db = self.transaction.tables
        files = int(db.execute("SELECT files FROM head").fetchone()[0])
        size = self.transaction.size
        late = list(self.store.read(files, size)) if files < size else []
        restored = frozenset(
            str(entry.data["path"])
            for entry in late
            if entry.kind == "file.displaced" and "content" not in entry.data
        )
        pruned = frozenset(n for e in late if e.kind == "bus.pruned" for n in e.data["names"])
        known = self.writer.known | self.writer.agreed
        return look(
            self.disk,
            lambda: take_in(
                self.source,
                self.disk,
                known,
                full=self.full,
                files=files,
                size=size,
                pruned=pruned,
                restored=restored,
            ),
        )

    def _drop_known(self, found: Found) -> None:
        """A piece that the ledger holds already came back: from a backup, or after a prune."""
        db = self.transaction.tables
        fresh = []
        for piece in found.pieces:
            if db.execute("SELECT 1 FROM entries WHERE id = ?", (piece.draft.id,)).fetchone():
                self.warn(f"{piece.path}: it was taken in before and is left as it is")
            else:
                fresh.append(piece)
        found.pieces = fresh

    def _note_gone(self, gone: dict[str, str], shown: int) -> None:
        """Leave a trace of files that vanished: what is written again looks as if it never had.

        ``shown`` is how many entries the files showed. Behind it stand entries whose files could
        not be written yet: what they tell of is not told again.
        """
        if not gone:
            return
        from tripod.ledger.kinds import team as drafts
        from tripod.projections.bus.intake import CHECKPOINT_GONE

        folders: dict[str, list[str]] = {}
        for path in gone:
            folders.setdefault(path.rpartition("/")[0], []).append(path)
        told: dict[str, str] = {}
        for folder, paths in folders.items():
            if len(paths) > FEW:
                told[folder] = f"{len(paths)} files were gone: {_some(paths)}"
                told.update((path, gone[path]) for path in paths if gone[path] == CHECKPOINT_GONE)
            else:
                told.update((path, gone[path]) for path in paths)
        sql = "SELECT stream FROM entries WHERE seq >= ? AND kind = 'file.displaced'"
        before = {stream for (stream,) in self.transaction.tables.execute(sql, (shown,))}
        self.append(
            [
                drafts.displaced(path, reason, None)
                for path, reason in sorted(told.items())
                if f"files/{path}" not in before
            ]
        )

    def _adopting(self) -> bool:
        """Whether a past is being taken in: adoption adds no file to the team's own."""
        row = self.transaction.tables.execute("SELECT adopted FROM team").fetchone()
        return row is None or row[0] is None

    def _note_malformed(self, drafts: Sequence[Draft], malformed: Mapping[str, str]) -> None:
        """What is no sound entry of the decision log is announced, once (seeds: nbs-scribe).

        It is when it is taken in, and that happens once.
        """
        odd = [draft for draft in drafts if draft.id in malformed]
        if not odd or self._adopting():
            return
        from tripod.drafting import draft_event

        lines = [malformed[draft.id or ""] for draft in odd[:NAMED]]
        if len(odd) > NAMED:
            lines.append(f"and {len(odd) - NAMED} more")
        text = "\n".join(lines)
        event = draft_event(self, "scribe", "log-error", "high", text, cause=odd[0])
        self.append([event._replace(actor="tripod")])  # nobody acts: it was found

    def _note_config(self, drafts: Sequence[Draft]) -> None:
        """A changed configuration is announced on the bus (seeds: nbs-bus, event types)."""
        if self._adopting():
            return
        from tripod.drafting import draft_event
        from tripod.projections.team.intake import CONFIG

        for draft in drafts:
            if draft.kind == "config.changed" and draft.body["path"] == CONFIG:
                text = f"{CONFIG} changed"
                event = draft_event(self, "nbs-bus", "config-change", "normal", text, cause=draft)
                self.append([event._replace(actor="nbs-bus")])  # nobody acts: it was found

    def refuse_if_ahead(self, *, anew: bool) -> bool:
        """A ledger that lacks what its files show was rolled back: nothing is taken in.

        Gives True where a rebuild goes on all the same: it keeps what the files hold, as
        displaced bytes, and makes them show this ledger.
        """
        known = self.writer.known.get(COUNTS_PATH)
        if known is not None and known.stat == self.disk.stat(COUNTS_PATH):
            return False
        ahead = ahead_of(self.transaction.tables, self.disk)
        if ahead is None or anew:
            return ahead is not None
        raise RefusedError(
            f"{ahead}: a backup was restored, or the database swapped; nothing was recorded. "
            "Put the newer ledger.db back; or, to go on from this one, `tripod rebuild`, which "
            "says what would go from the files"
        )

    # Displacing --------------------------------------------------------------------------------

    def displace(self, path: str, reason: str) -> bool:
        """Keep the bytes that stand at ``path``, which is about to be written over.

        Gives whether there were any.

        Raises:
            RefusedError: they cannot be kept; nothing was recorded.
        """
        from tripod.ledger.kinds import team as drafts

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
            self.append([drafts.displaced(path, reason, shown)])
        digest = sha256(data).hexdigest()
        self.writer.account(path, digest)
        self.writer.displaced.add(digest)
        self.conflicts.pop(path, None)
        return True

    def _is_kept(self, path: str, shown: bytes) -> bool:
        """Whether a writer kept just these bytes, and died or gave up before it replaced them."""
        db = self.transaction.tables
        sql = (
            "SELECT seq FROM entries WHERE stream = ? AND kind = 'file.displaced'"
            " AND seq >= (SELECT files FROM head)"
        )
        seqs = [seq for (seq,) in db.execute(sql, (f"files/{path}",)).fetchall()]
        contents = (self.source.body(seq).get("content") for seq in seqs)
        return any(c is not None and content_bytes(self.source, c) == shown for c in contents)

    def settle(self, late: Sequence[str]) -> None:
        """Have files written that others wrote while we did; the intake has looked at them now."""
        for path in late:
            if path in self.writer.unmerged:
                continue
            self.rewrite.add(path)
            if not self.writer.is_ours(path, digest_of(self.disk, path)):
                self.displace(path, "another program wrote it while we did")

    def refuse_blocked(self) -> None:
        """What stands where this act would write a file, and is none, is somebody's setup.

        A file that holds conflict markers is somebody's unfinished work.

        Raises:
            RefusedError: it would be replaced; nothing was recorded.
        """
        ours = [e for e in self.entries if e.stream != "bus" and "observed" not in e.data]
        paths = {*self.rewrite, *touched_by(ours, self.source)}
        if any(entry.kind in COUNTS.kinds for entry in ours):
            paths.add(COUNTS_PATH)
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
            shown = int(self.transaction.tables.execute("SELECT files FROM head").fetchone()[0])
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
        pieces = [] if data is None else unheld(self.source, self.transaction.tables, path, data)
        if pieces:
            self.warn(
                f"{path}: {len(pieces)} of its pieces, which no entry holds, went as the file was "
                f"written again: {told(pieces)}; their bytes are kept, add them behind the others "
                "and `tripod sync` (`tripod verify` names the entry with the bytes)"
            )


def _some(paths: Sequence[str]) -> str:
    """The names of the first few paths, and how many more there are."""
    names = ", ".join(path.rpartition("/")[2] for path in paths[:NAMED])
    return f"{names} and {len(paths) - NAMED} more"


# Strays -----------------------------------------------------------------------------------------


class _Act(Protocol):
    """What this needs of an act; ``tripod.team.act``, which uses this, is above."""

    source: Source
    disk: Disk
    writer: Files
    full: bool
    rewrite: set[str]
    later: dict[tuple[str, ...], Callable[[], None]]

    def append(self, drafts: Sequence[Draft]) -> list[Entry]:
        """Append."""

    def warn(self, text: str) -> None:
        """Have something said at the end of the command."""


def take_strays(act: _Act) -> None:
    """Look at every kept file; those of events, which are replaced seldom, in a full look only."""
    known = [path for path in act.writer.known if f"/{KEPT}" in path]
    folders = folders_of(act.disk)
    if not act.full and not any(path.startswith(f"{BUS.folder}/") for path in known):
        folders = [folder for folder in folders if not folder.startswith(BUS.folder)]
    there = {path for folder in folders for path in act.disk.kept(folder)}
    act.writer.settled.update(path for path in known if path not in there)
    if not there:
        return
    from tripod.projections.strays import find_strays, take_stray

    for stray in find_strays(act.source, act.disk, folders, act.warn):
        taken = take_stray(act.source, act.disk, stray)
        act.append(taken.drafts)
        if taken.is_news:
            act.rewrite.add(stray.path)
        if taken.is_done:
            act.later["drop", stray.kept] = lambda kept=stray.kept: act.writer.drop(kept)  # type: ignore[misc]
        else:
            act.writer.keep_open(stray.kept, stray.data)
            if act.full:
                act.warn(
                    f"{stray.path}: another program still has the file open that we replaced; what "
                    f"it writes there is taken in when a command finds it ({stray.kept})"
                )
