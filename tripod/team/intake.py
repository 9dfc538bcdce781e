"""Step 2 of an act: take in what other programs wrote to the team's files.

What they hold is in the ledger before anything is written over. What contradicts the ledger is
named, and files that vanished are written again. Replaced files that came back with more in them
are looked at, too; they go only when nobody can write into them any more.

Read positions: the ledger holds them, and ``chat/*.chat.cursors`` is shared with the original tool,
which knows no ledger. In every act on a chat, under the chat's own lock, what the tool moved is
taken in. After the COMMIT the file is written as far as its format allows: the last message before
the first unread one. It is not waited for: lost in a power cut, it is written again, in any case
with the chat that it belongs to, since an index in it means another message as soon as the lines of
that chat moved.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from tripod.errors import RefusedError
from tripod.ledger import Draft, tell_over
from tripod.projections import (
    BLOCKED,
    BUS,
    CHAT,
    COUNTS,
    KEPT,
    OLDER_STATE,
    RACY_NS,
    UNMERGED,
    UNMERGED_CURE,
    File,
    UnreadableError,
    desired_file,
    files_ahead_of,
    files_are_quiet,
    layout,
    manifest,
    merge_marker_in_piece,
    name_pieces,
)
from tripod.projections.chat.format import format_chat_cursors, parse_chat_cursors
from tripod.projections.chat.tables import chat_position_index
from tripod.projections.disk import STAGED
from tripod.projections.remnants import DOUBTFUL, find_remnants, remnant_of
from tripod.team.act import MARKER, READ_LIMIT, Act, draft_event_for_act

if TYPE_CHECKING:
    from tripod.ledger import LedgerReader
    from tripod.projections import Conflict, Disk, Source
    from tripod.projections.disk import DiskStat
    from tripod.projections.erasure import Unrecorded
    from tripod.projections.manifest import FoundPieces
    from tripod.projections.pieces import Remnant

BATCH = 1_000  # pieces that are appended together
FEW = 10  # files of one folder that vanished; more of them are told by an entry for the folder
NAMED = 3  # of those
LOOKS = 5  # at files that were being written while they were looked at
PENDING = "pending, and left as it is"
"""How the sentence of ``name_pending`` begins."""
_PAUSE_S = 0.01  # before the second look; twice as long before each one after it
_ROLLED_BACK = (
    "a backup was restored, or the database swapped; nothing was recorded. A copy of ledger.db "
    "alone lacks what ledger.db-wal holds: copy both. `tripod restore` puts the newer one back, "
    "from this replica's record or a backup; to go on from this one, `tripod "
    "rebuild --take-in REASON` takes in what the files show and no entry holds, as others wrote it "
    "(without that, `tripod rebuild` names it, and writes nothing)"
)
_CHECKPOINT = "-pythia-checkpoint-"
"""In the name of an event that only an assessment answers."""
_JUST_NS = 1_000_000_000
_WRITTEN = ("edited", "unreadable")


def take_in(act: Act) -> None:
    """Append what others wrote; what is missing is written again, what contradicts is told."""
    act.writer.looked = None
    known = act.writer.known.whole() | act.writer.agreed
    cursors = act.transaction.cursors()
    if cursors.may_be_cut:
        known = manifest.forget_stats(known)
        remnants = act.look.remnants = find_remnants(
            act.source, act.disk, cursors.synced, cursors.noted
        )
        _tell_remnants(act, remnants)
    found = _look_at_files(
        act.transaction, act.source, act.disk, known, full=act.look.full, remnants=act.look.remnants
    )
    back: set[str] = set()
    is_fresh = False
    for _, draft in found.pieces:
        if draft.id and act.transaction.seq_of(draft.id) is not None:
            # It came back: from a backup, or after a prune.
            back.add(draft.id)
            path = draft.body["observed"]["path"]
            act.warn(f"{path}: it was taken in before and is left as it is")
        else:
            is_fresh = True
    shown = cursors.files
    gone = {path: DOUBTFUL for path, remnant in act.look.remnants.items() if remnant.doubtful}
    if not act.disk.is_file(COUNTS.path):
        act.rewrite.add(COUNTS.path)
        if shown and not act.look.emptied and not act.disk.stands(COUNTS.path):
            gone[COUNTS.path] = "the file is gone"
            act.warn(f"{COUNTS.path}: the file is gone; it is written again")
    elif act.disk.stat(COUNTS.path) not in (None, _stat_known(act)) and _is_half_written(act):
        act.rewrite.add(COUNTS.path)
        act.warn(f"{COUNTS.path}: it is not whole (a power cut?); it is written again")
    act.writer.account_all(found.digests)
    new = _find_unrecorded(act, found, is_fresh=is_fresh)
    logs = {path for path in new if layout.layout_class_of(path) == layout.LOG_FILE}
    # What is in the logs is appended last: a decision may refer to any of the messages, and to
    # none that is recorded after it.
    saved = {path: _take_unrecorded(act, path, new[path]) for path in new if path not in logs}
    for path, odd in found.odd.items():
        act.warn(f"{path} {odd}")
    act.look.left_alone, act.look.files = found.left_alone, found.files
    act.look.shown = found.shown
    if is_fresh:
        _take_fresh(act, found, back)
    saved |= {path: _take_unrecorded(act, path, new[path]) for path in new if path in logs}
    for conflict in found.conflicts:
        _note_conflict(act, conflict, gone, saved.get(conflict.path, ()))
    take_strays(act)
    _take_positions(act)
    _note_gone(act, gone, shown)


def _tell_remnants(act: Act, remnants: Mapping[str, Remnant]) -> None:
    """Say which files a power cut left in part; they are written again with what entries hold."""
    parts, doubtful = [], []
    for path, remnant in remnants.items():
        if remnant.digest:
            act.writer.account(path, remnant.digest)
        if remnant.doubtful:
            doubtful.append(path)
        elif remnant.digest:
            parts.append(path)
    if doubtful:
        act.warn(f"{name_pieces(doubtful)}: {DOUBTFUL}; a power cut, or somebody; written again")
    if parts:
        count = "1 file is" if len(parts) == 1 else f"{len(parts)} files are"
        act.warn(
            f"{count} not as the ledger gave them, and not edited: {name_pieces(parts)}; a power "
            "cut left them so, and they are written again"
        )


def _take_fresh(act: Act, found: FoundPieces, back: Collection[str]) -> None:
    """Append what files hold beyond the ledger, in the order of its times, and tell of it.

    It goes in batches, of which no more is kept than what is told of: a past may be large.
    """
    from tripod.projections.bus.intake import is_event_deletion

    malformed = found.malformed
    drafts: list[Draft] = []
    ordered = tell_over(found.pieces.in_order(), "recording what was read", len(found.pieces))
    fresh = (draft for draft in ordered if draft.id not in back)
    while batch := list(islice(fresh, BATCH)):
        act.append(batch)
        drafts += (
            draft
            for draft in batch
            if draft.kind in ("config.changed", "chat.rotated", "file.seen")
            or draft.id in malformed
            or (draft.kind == "bus.acked" and is_event_deletion(draft.body))
        )
    team = act.transaction.tables.execute("SELECT adopted FROM team").fetchone()
    if team is not None and team[0] is not None:  # adoption itself adds no file
        _announce(act, drafts, malformed)
    for draft in drafts:
        if draft.kind == "chat.rotated" and "moved" in draft.body:
            act.writer.settled.add(CHAT.live(draft.stream))  # it is watched no more
        if draft.kind == "file.seen":
            act.warn(
                f"{draft.body['path']}: not understood ({draft.body['problem']}); its "
                "bytes are kept in the ledger, and it stays as it is"
            )
    deleted = [str(draft.body["name"]) for draft in drafts if draft.kind == "bus.acked"]
    if deleted:  # they wait for nobody any more
        which = _first_names(deleted) if len(deleted) > NAMED else ", ".join(deleted)
        act.warn(
            f"{len(deleted)} pending event{'' if len(deleted) == 1 else 's'} deleted by "
            f"another program, so acknowledged: {which} (`deleted-events: restore` in "
            f"{BUS.folder}/config.yaml has such files written again)"
        )


def _find_unrecorded(
    act: Act, found: FoundPieces, *, is_fresh: bool
) -> dict[str, list[Unrecorded]]:
    """What no entry holds of files that contradict the ledger, by path.

    Nothing is taken in, here or from other files, where the ledger was sealed with more entries
    than it holds: what others seem to have written may be what it lost.
    """
    new: dict[str, list[Unrecorded]] = {}
    for path in [one.path for one in found.conflicts if one.what == "edited"]:
        if layout.layout_class_of(path) in (layout.LOG_FILE, layout.CHAT_FILE):
            from tripod.projections.erasure import unrecorded

            with suppress(UnreadableError):
                data = act.disk.read(path, READ_LIMIT)
                new[path] = [] if data is None else unrecorded(act.source, path, data)
    new = {path: pieces for path, pieces in new.items() if pieces}
    beyond = act.look.head_beyond() if (is_fresh or new) and not act.look.beyond else None
    if beyond is not None:
        raise RefusedError(f"{beyond}: {_ROLLED_BACK}")
    return new


def _take_unrecorded(act: Act, path: str, pieces: Sequence[Unrecorded]) -> list[str]:
    """Take in such pieces of one file; give their names, [] where all were taken in before."""
    from tripod.projections.intake import take_unrecorded

    taken = take_unrecorded(act.source, path, pieces, act.disk)
    drafts = [p.draft for p in taken.pieces if act.transaction.seq_of(p.draft.id or "") is None]
    act.append(drafts)
    if not drafts:
        return []
    _announce(act, drafts, taken.malformed)
    return [piece.name for piece in pieces]


def _note_conflict(
    act: Act, conflict: Conflict, gone: dict[str, str], saved: Sequence[str]
) -> None:
    """Tell what is not taken in; ``gone`` collects the files that are written again.

    ``saved`` are names of pieces of the file that were taken in all the same.
    """
    path, detail = conflict.path, conflict.detail
    if conflict.what == "missing":
        act.rewrite.add(path)
        if act.look.emptied:
            return
        gone[path] = detail
        act.warn(f"{path}: {detail}; it is written again")
        return
    act.conflicts[path] = conflict
    if conflict.what == OLDER_STATE:
        act.rewrite.discard(path)
    elif conflict.what == BLOCKED:
        act.rewrite.discard(path)
        act.warn(f"{path}: {detail}; it is left as it is, and what would write there is refused")
    elif conflict.what == UNMERGED:
        act.writer.unmerged[path] = detail
        act.rewrite.discard(path)
        act.warn(
            f"{path}: {detail}; nothing of the file was taken in, it is left as it is, and what "
            f"would write there is refused: {UNMERGED_CURE}"
        )
    elif saved:
        act.warn(
            f"{path}: {conflict.what} outside the ledger ({detail}); what no entry held of it was "
            f"taken in, as others wrote it: {name_pieces(saved)}; `tripod rebuild` writes the file "
            "anew, with that at its end"
        )
    else:
        act.warn(
            f"{path}: {conflict.what} outside the ledger ({detail}); "
            "nothing of it was taken in: see `tripod verify`"
        )


def _take_positions(act: Act) -> None:
    """Take in what the original tool says of who has read how far.

    In a full look of every chat; else of chats whose files an interrupted act should have written.
    Which message an index beside such a file means is known only until the file is written.
    """
    if act.look.full:
        for folder in act.disk.places.chat_folders():
            for name in act.disk.names(folder):
                if name.endswith(".chat.cursors"):
                    channel = CHAT.stem(f"{folder}/{name.removesuffix('.cursors')}")
                    take_positions(act, channel, locked=False)
    stop = act.entries.first
    moving = ("chat.sent", "chat.rotated", "chat.deleted")  # the lines of a live file
    unwritten = act.transaction.raw(act.transaction.cursors().files, stop, kinds=moving)
    for channel in sorted({entry.stream.removeprefix("chat/") for entry in unwritten}):
        take_positions(act, channel)
        show_positions(act, channel)


def _look_at_files(
    ledger: LedgerReader,
    source: Source,
    disk: Disk,
    known: manifest.Manifest,
    *,
    full: bool,
    remnants: Mapping[str, Remnant],
) -> FoundPieces:
    """What the files hold; looked at again while one contradicts that was written just now.

    The original tools, and many editors, write a file over in its place: it is empty, or half
    there, for a moment, and is no sign of tampering.
    """
    from tripod.projections.intake import take_in

    cursors = ledger.cursors()
    files, size = cursors.files, cursors.size
    late = list(ledger.read(files, size)) if files < size else []
    restored = frozenset(
        str(entry.data["path"])
        for entry in late
        if entry.kind == "file.displaced" and "content" not in entry.data
    )
    pruned = frozenset(n for e in late if e.kind == "bus.pruned" for n in e.data["names"])
    look = partial(
        take_in,
        source,
        disk,
        known,
        full=full,
        shown=manifest.Shown(files, size, cursors.noted if cursors.anew else 0),
        pruned=pruned,
        restored=restored,
        remnants=remnants,
    )
    found, pause = look(), _PAUSE_S
    for _ in range(1, LOOKS):
        stats = [disk.stat(c.path) for c in found.conflicts if c.what in _WRITTEN]
        now = time.time_ns()
        if not any(stat and abs(now - stat.mtime_ns) < _JUST_NS for stat in stats):
            break
        time.sleep(pause)
        pause *= 2
        found = look()
    return found


def _note_gone(act: Act, gone: dict[str, str], shown: int) -> None:
    """Leave a trace of files that vanished: what is written again looks as if it never had.

    ``shown`` is how many entries the files showed. Behind it stand entries whose files could
    not be written yet: what they tell of is not told again.
    """
    if not gone:
        return
    from tripod.ledger.kinds.team import DISPLACED

    folders: dict[str, list[str]] = {}
    for path in gone:
        folders.setdefault(path.rpartition("/")[0], []).append(path)
    told: dict[str, str] = {}
    for folder, paths in folders.items():
        is_many = len(paths) > FEW
        if is_many:
            told[folder] = f"{len(paths)} files were gone: {_first_names(paths)}"
        told |= {p: gone[p] for p in paths if not is_many or _CHECKPOINT in p}
    displaced = act.transaction.raw(shown, kinds=("file.displaced",))
    before = {entry.stream for entry in displaced}
    act.append(
        [
            DISPLACED.draft({"path": path, "reason": reason})
            for path, reason in sorted(told.items())
            if f"files/{path}" not in before
        ]
    )


def _announce(act: Act, drafts: Sequence[Draft], malformed: Mapping[str, str]) -> None:
    """Publish what was found: a changed configuration, and what is no sound decision.

    Both are events of the seeds (nbs-bus, nbs-scribe), once for each intake.
    """
    for draft in drafts:
        if draft.kind == "config.changed" and draft.body["path"] == layout.CONFIG.path:
            text = f"{layout.CONFIG.path} changed"
            event = draft_event_for_act(
                act, "nbs-bus", "config-change", "normal", text, cause=draft
            )
            act.append([event._replace(actor="nbs-bus")])  # nobody acts: it was found
    odd = [draft for draft in drafts if draft.id in malformed]
    if odd:
        lines = [malformed[draft.id or ""] for draft in odd[:NAMED]]
        if len(odd) > NAMED:
            lines.append(f"and {len(odd) - NAMED} more")
        text = "\n".join(lines)
        event = draft_event_for_act(act, "scribe", "log-error", "high", text, cause=odd[0])
        act.append([event._replace(actor="tripod")])


def name_pending(ledger: LedgerReader, source: Source, disk: Disk) -> list[str]:
    """What an act would take in and make good first, in a sentence; nothing is changed by asking.

    Empty where the files show the ledger, and nothing else.
    """
    ahead = files_ahead_of(ledger, disk)
    if ahead is not None:
        return [f"{ahead}: a backup was restored, or the database swapped; see `tripod verify`"]
    known, cursors = manifest.NotedFiles(ledger.tables, disk), ledger.cursors()
    late = cursors.size - cursors.noted
    parts = [f"{late} {'entry' if late == 1 else 'entries'} not yet in the files"] if late else []
    if cursors.files < cursors.size or not files_are_quiet(ledger.tables, disk, known):
        noted, remnants = known.whole(), {}
        if cursors.may_be_cut:
            noted = manifest.forget_stats(noted)
            remnants = find_remnants(source, disk, cursors.synced, cursors.noted)
        found = _look_at_files(ledger, source, disk, noted, full=False, remnants=remnants)
        kinds = Counter(
            piece.draft.kind
            for piece in found.pieces
            if piece.draft.id is None or ledger.seq_of(piece.draft.id) is None
        )
        parts += [f"{count} {kind}" for kind, count in sorted(kinds.items())]
        if remnants:
            count = len(remnants)
            parts.append(f"{count} file{'' if count == 1 else 's'} in part after a power cut")
        gone = sum(conflict.what == "missing" for conflict in found.conflicts)
        odd = len(found.conflicts) - gone
        parts += [f"{gone} file{'' if gone == 1 else 's'} gone"] if gone else []
        if odd:
            parts.append(f"{odd} that differ{'s' if odd == 1 else ''} (see `tripod verify`)")
    return [f"{PENDING}: {', '.join(parts)}"] if parts else []


def _stat_known(act: Act) -> DiskStat | None:
    """What the counts file looked like when it last agreed with the ledger."""
    known = act.writer.known.get(COUNTS.path)
    return None if known is None else known.stat


def _is_half_written(act: Act) -> bool:
    """Whether a power cut left the counts file in part: nobody waits until the disk has it.

    What can be read as JSON and says something else was edited: the verifier tells it.
    """
    with suppress(UnreadableError):
        found, want = act.disk.look(COUNTS.path, READ_LIMIT), desired_file(act.source, COUNTS.path)
        if found is None or want is None or found[0] == want.data:
            return found is not None and found[1].mode == STAGED
        try:
            json.loads(found[0])
        except (ValueError, RecursionError):
            return True
    return False


def refuse_if_ahead(act: Act, *, anew: bool) -> bool:
    """A ledger that lacks what its files show was rolled back: nothing is taken in.

    Gives True where a rebuild goes on all the same: it keeps what the files hold, as
    displaced bytes, and makes them show this ledger.
    """
    if act.disk.stat(COUNTS.path) == _stat_known(act):
        return False
    ahead = files_ahead_of(act.transaction, act.disk)
    if ahead is None or anew:
        return ahead is not None
    raise RefusedError(f"{ahead}: {_ROLLED_BACK}")


def _first_names(paths: Sequence[str]) -> str:
    """The names of the first few paths, and how many more there are."""
    names = ", ".join(path.rpartition("/")[2] for path in paths[:NAMED])
    return f"{names} and {len(paths) - NAMED} more"


def take_strays(act: Act) -> None:
    """Look at every kept file; those of events, which are replaced seldom, in a full look only.

    Such a file goes only when nobody can write into it any more.
    """
    known = [path for path in act.writer.known.watched() if f"/{KEPT}" in path]
    folders = act.disk.places.folders()
    if not act.look.full and not any(path.startswith(f"{BUS.folder}/") for path in known):
        folders = [folder for folder in folders if not folder.startswith(BUS.folder)]
    there = {path for folder in folders for path in act.disk.kept(folder)}
    act.writer.settled.update(path for path in known if path not in there)
    if not there:
        return
    from tripod.projections.intake import Taken, find_strays, take_stray

    cursors = act.transaction.cursors()
    for stray in find_strays(act.source, act.disk, folders, act.warn):
        taken = take_stray(act.source, act.disk, stray)
        want = desired_file(act.source, stray.path) if cursors.anew and taken.drafts else None
        if want is not None:  # the exchange may be there, and what it left not
            remnant = remnant_of(act.source, stray.path, stray.data, want.data, cursors.synced)
            if remnant is not None and remnant.alone:
                taken = Taken([], is_news=False, is_done=not stray.is_open)
        act.append(taken.drafts)
        if taken.is_news:
            act.rewrite.add(stray.path)
        if taken.is_done:
            act.later["drop", stray.kept] = partial(act.writer.drop, stray.kept)
        else:
            act.writer.keep_open(stray.kept, stray.data)
            if act.look.full:
                act.warn(
                    f"{stray.path}: another program still has the file open that we replaced; what "
                    f"it writes there is taken in when a command finds it ({stray.kept})"
                )


# Read positions --------------------------------------------------------------------------------


def _cursors_of(channel: str) -> str:
    return f"{CHAT.folder}/{channel}.chat.cursors"


def take_positions(act: Act, channel: str, *, locked: bool = True) -> None:
    """Append what the original tool moved since we last looked.

    ``locked``: the act holds the chat's lock, and may write the file after the COMMIT.
    """
    path = _cursors_of(channel)
    stat = act.disk.stat(path)
    known = act.writer.known.get(path)
    if act.is_older(CHAT.file(channel)):
        return  # an index counts the messages of the newest state
    if stat is None or (
        known is not None and known.stat == stat and known.noted_ns - stat.mtime_ns > RACY_NS
    ):
        return
    data = _read_cursors(act, path)
    if data is None:
        return
    digest = sha256(data).hexdigest()
    if known is not None and known.digest == digest:
        return
    from tripod.projections.chat.intake import take_chat_positions

    if not act.writer.is_accounted(path, digest):  # else another part of this act took it in
        act.writer.account(path, digest)
        files = act.transaction.cursors().files
        draft = take_chat_positions(act.source, act.disk, channel, data, files=files)
        if draft is not None:
            act.append([draft])
    if locked:
        show_positions(act, channel)


def renew_older_positions(act: Act, paths: Iterable[str]) -> None:
    """After the COMMIT, write the read positions beside chats that showed an older state."""
    for path in paths:
        if layout.layout_class_of(path) is layout.CHAT_FILE:
            channel = CHAT.stem(path)
            data = _read_cursors(act, _cursors_of(channel))
            if data is not None:  # its indexes count the messages of that state
                act.writer.account(_cursors_of(channel), sha256(data).hexdigest())
            show_positions(act, channel)


def show_positions(act: Act, channel: str, handles: Collection[str] | None = None) -> None:
    """After the COMMIT, write where ``handles`` stand now; None: all that the file has."""
    key = ("cursors", channel) if handles is None else ("cursors", channel, "", *handles)
    act.later[key] = lambda: _show_locked(act, channel, handles)


def _show_locked(act: Act, channel: str, handles: Collection[str] | None) -> None:
    """Write the file under the chat's lock, which an act that joined another may not have.

    The lock is not waited for: where another program has it, or moved a position since we looked,
    the next command that reads or sends writes the file. All positions cannot wait: then the chat
    is written again.
    """
    chat = f"{CHAT.folder}/{channel}.chat"
    if chat in act.writer.held:
        is_shown = _show(act, channel, handles)
    else:
        try:
            with act.disk.foreign_lock(chat, wait=False) as is_ours:
                is_shown = is_ours and _show(act, channel, handles)
        except OSError as error:
            act.warn(f"{_cursors_of(channel)}: not written: {error.strerror}")
            return
    if not is_shown and handles is None:
        act.writer.late[chat] = None


def _show(act: Act, channel: str, handles: Collection[str] | None) -> bool:
    """False where others moved a position that is not in the ledger."""
    path = _cursors_of(channel)
    if act.is_older(CHAT.file(channel)):
        return True  # it is written with its chat
    data = _read_cursors(act, path)
    if data is None and act.disk.stands(path):
        return True
    if data is not None and not act.writer.is_accounted(path, sha256(data).hexdigest()):
        return False
    before = parse_chat_cursors(data or b"")
    if handles is None:
        rows = act.source.db.execute("SELECT handle FROM cursors WHERE channel = ?", (channel,))
        handles = [*before, *(handle for (handle,) in rows.fetchall())]
    after = dict(before)
    for handle in handles:
        index = chat_position_index(act.source, channel, handle)
        if index is None:
            after.pop(handle, None)
        elif "=" not in handle and "\n" not in handle and not handle.startswith("#"):
            after[handle] = index
    if after == before:
        stat = act.disk.stat(path)
    else:
        data = format_chat_cursors(after)
        try:
            stat = act.disk.write(path, File(data, layout.CURSORS.mode), durable=False)
        except OSError as error:
            act.warn(f"{path}: not written: {error.strerror}; the original tool shows more as new")
            return True
    if stat is not None and data is not None:
        digest = sha256(data).hexdigest()
        act.writer.account(path, digest)
        act.writer.written[path] = (stat, digest)
    return True


def _read_cursors(act: Act, path: str) -> bytes | None:
    try:
        data = act.disk.read(path, layout.CURSORS.limit)
    except UnreadableError as error:
        act.warn(f"{error}; the read positions in it are left alone")
        return None
    line = None if data is None else merge_marker_in_piece(path, data)
    if line is not None:
        act.warn(
            f"{path}: line {line} {MARKER}; the read positions in it are left alone: "
            f"{UNMERGED_CURE}"
        )
        return None
    return data
