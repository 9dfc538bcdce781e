"""Intake of the decision logs: appended entries, texts put in by hand, and the original's splits.

Source: spec nbs-compat B10, D; seeds: nbs-scribe. A log is any file of the Scribe's folder that has
a log's title or a decision's heading. What the ledger holds of it must be a prefix of what its
files show, archives first; an edited or removed entry is a conflict, never taken in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tripod.ledger.kinds import decisions as kinds
from tripod.projections.decisions import format as log_format
from tripod.projections.decisions.format import DecisionText
from tripod.projections.decisions.tables import LOG, render_decision_piece
from tripod.projections.disk import UnreadableError
from tripod.projections.layout import LIVE
from tripod.projections.manifest import ManifestReader, manifest_log_files
from tripod.projections.pieces import FILE_LIMIT, piece_beside, piece_fits, same_pieces_but
from tripod.projections.state import older_log
from tripod.projections.text import parse as parse_time

_RULE = b"\n---\n\n"
FIELD_ROOM = 3_000  # bytes of JSON
FIELD_CHARACTERS = 500  # a character takes at most six
SHOWN = 200  # characters of what is wrong with a piece


class _Part(NamedTuple):
    """A file of a log, its archive or the live one, cut in two; ``data`` is all its bytes."""

    name: str
    """Within the Scribe's folder."""
    header: bytes
    pieces: bytes

    @property
    def path(self) -> str:
        return f"{LOG.folder}/{self.name}"

    @property
    def data(self) -> bytes:
        return self.header + self.pieces


def _part(name: str, data: bytes) -> _Part:
    header, _ = log_format.split_decision_log(data)
    return _Part(name, header, data[len(header) :])


def take_decision_logs(reader: ManifestReader) -> None:
    """Compare the logs of the Scribe's folder and their archives with the table of pieces."""
    rows = reader.source.db.execute("SELECT file, log, seq FROM logs").fetchall()
    known = {file: log for file, log, _ in rows}
    names = manifest_log_files(reader.disk, known.keys() | reader.disk.places.met)
    names = [name for name in names if f"{LOG.folder}/{name}" not in reader.own]
    fronts = reader.disk.places.logs()
    reader.found.logs.update(known)
    fresh, splits = _unknown(reader, set(known.values()), [n for n in names if n not in known])
    there = set(names)
    for name, log, seq in sorted(rows):
        path = f"{LOG.folder}/{name}"
        if name not in there:
            if name[: name.rfind("/") + 1] not in fronts:
                continue  # its folder is not there: nothing in it is taken for lost
            # Between the two steps of a split by the original the log's file is not there.
            if name == log and log in splits:
                moved = b"".join(part.pieces for part in splits[log])
                if moved.startswith(LOG.pieces(reader.source, log)):
                    continue
            if not reader.unwritten(seq):
                reader.missing(path, seq, "the log's file is gone")
        elif name != log and log in there:
            reader.check(path, "an archive never changes")
    for log in sorted(set(known.values()) & there):
        archives = splits.get(log, [])
        data = reader.read(f"{LOG.folder}/{log}", fresh=not archives)
        if data is not None and archives:
            _take(reader, _part(log, data), archives, is_new=False)
        elif data is not None:
            reader.found.files += 1
            _take_behind(DecisionLogIntake(reader, log), data)
    for log, live in fresh.items():
        _take(reader, live, splits.get(log, []), is_new=True)


def _unknown(
    reader: ManifestReader, logs: set[str], names: list[str]
) -> tuple[dict[str, _Part], dict[str, list[_Part]]]:
    """The files that the ledger does not know: new logs, and new archives by their log.

    An archive whose log is neither known nor there is a log by itself: its decisions were made.
    """
    fresh: dict[str, _Part] = {}
    for name in names:
        if log_format.archived_decision_log(name) not in {*logs, *names}:
            _look(reader, name, fresh)
    splits: dict[str, list[_Part]] = {}
    when = {name: (log_format.parse_decision_archive_name(name) or ("", ""))[1] for name in names}
    for name in sorted(names, key=lambda name: (when[name], name)):
        log = log_format.archived_decision_log(name)
        if log in logs or log in fresh:
            data = reader.read(f"{LOG.folder}/{name}")
            if data is not None:
                splits.setdefault(log, []).append(_part(name, data))
        elif name not in fresh and log in names:  # what it would be an archive of is no log
            _look(reader, name, fresh)
    return dict(sorted(fresh.items())), splits


def _look(reader: ManifestReader, name: str, fresh: dict[str, _Part]) -> None:
    """Keep a file that the ledger does not know if it is a log."""
    if log_format.decision_log_name_problem(name) is not None:
        return
    path = f"{LOG.folder}/{name}"
    is_met = name in reader.disk.places.met
    try:
        shown = reader.disk.read(path, FILE_LIMIT)
        is_one = shown is not None and (is_met or log_format.is_decision_log(name, shown))
        data = reader.load(path) if is_one else None
    except UnreadableError as error:
        if name.endswith(LIVE) or is_met:  # by its name it is a log
            reader.conflict(path, "unreadable", str(error))
        return
    if data is not None:
        fresh[name] = _part(name, data)


def _take(reader: ManifestReader, live: _Part, archives: list[_Part], *, is_new: bool) -> None:
    held = b"" if is_new else LOG.pieces(reader.source, live.name)
    parts = archives
    if not is_new:
        parts = _splits_of(archives, held, live)
        for one in archives:
            if one not in parts and not _is_copy(one.pieces, held, live.pieces):
                _take(reader, one, [], is_new=True)
    reader.found.files += 1 + len(parts)
    reader.found.logs.update((live.name, *(part.name for part in parts)))
    taker = DecisionLogIntake(reader, live.name)
    if not is_new and not parts:
        _take_behind(taker, live.data)
        return
    parts = [*parts, live]
    if is_new:
        taker.begin(parts[0].header)
    shown = b"".join(part.pieces for part in parts)
    if not shown.startswith(held):
        reader.conflict(live.path, "edited", _difference(held, shown))
        return
    # Each file's pieces after those that the ledger holds, and then its split.
    behind = len(held)
    for part in parts:
        taker.add(part.pieces[behind:])
        behind = max(0, behind - len(part.pieces))
        if part is not live:
            taker.rotate(part, live.header)


def _splits_of(parts: list[_Part], held: bytes, live: _Part) -> list[_Part]:
    """Those of the new archives that a log was split into since; the others are copies.

    A program that died between the two steps of a split leaves such a copy: its pieces still stand
    in the log, and are not taken in twice.
    """
    if held and live.pieces.startswith(held):
        return []
    if not held:
        parts = [p for p in parts if not p.pieces or not live.pieces.startswith(p.pieces)]
    for first in range(len(parts)):
        if b"".join(part.pieces for part in (*parts[first:], live)).startswith(held):
            return parts[first:]
    return parts


def _is_copy(part: bytes, held: bytes, live: bytes) -> bool:
    """Whether all that a new archive holds stands in its log, be its end cut off.

    One that holds anything else is a log by itself: its decisions are in no other file.
    """
    if live.startswith(part):
        return True
    texts = [
        log_format.decision_piece_text(piece) for piece in log_format.split_decision_log(part)[1]
    ]
    known = {
        log_format.decision_piece_text(piece)
        for data in (held, live)
        for piece in log_format.split_decision_log(data)[1]
    }
    return known.issuperset(texts[:-1]) and any(one.startswith(texts[-1]) for one in known)


def _take_behind(taker: DecisionLogIntake, data: bytes) -> None:
    """The usual case: one file, which shows what the ledger holds, and perhaps more after it.

    Text put after a header that had no entry yet belongs to no header of ours.
    """
    reader, log = taker.reader, taker.log
    header = LOG.header(reader.source, log)
    held = LOG.pieces(reader.source, log)
    if data.startswith(header) and data.startswith(held, len(header)):
        taker.add(data[len(header) + len(held) :])
        return
    if reader.shown.is_behind:
        shorter = header + LOG.pieces(reader.source, log, before=reader.shown.files)
        if data.startswith(shorter):  # a writer died before it wrote the rest
            late = held[len(shorter) - len(header) :]
            added = _foreign(data[len(shorter) :], late)
            if not reader.shown.noted or _is_addition(added, data, late):
                taker.add(added)
                return
        # The file may still show decisions that were erased.
        seqs = reader.erased_since(taker.path, ("decision.logged", "log.noted"))
        erased = {
            render_decision_piece(reader.source, body) for body in reader.source.each_body(seqs)
        }
        ours, shown = _cut(header + held), _cut(data)
        if same_pieces_but(erased, ours, shown, _id_of):
            taker.add(b"".join(shown[len(ours) :]))
            return
    _contradict(reader, log, header + held, data)


def _contradict(reader: ManifestReader, log: str, held: bytes, data: bytes) -> None:
    """Report a log that does not begin with what the ledger holds of it."""
    path = f"{LOG.folder}/{log}"
    size = older_log(reader.source, log, data)
    if size is None:
        reader.conflict(path, "edited", _difference(held, data))
    else:
        reader.older(path, size)


def _cut(data: bytes) -> list[bytes]:
    header, pieces = log_format.split_decision_log(data)
    return [header, *pieces]


def _id_of(piece: bytes) -> str | None:
    decision = log_format.parse_decision(piece)[0]
    return None if decision is None else decision.id


def _foreign(shown: bytes, ours: bytes) -> bytes:
    """What of the bytes after a log the ledger does not hold.

    A writer that was adding ``ours`` when it died left some of these pieces there, the last of them
    perhaps torn, with those of others around them.
    """
    if ours.startswith(shown):
        return b""
    waiting = list(log_format.split_decision_log(ours)[1])
    text, pieces = log_format.split_decision_log(shown)
    foreign = [] if any(piece.startswith(text) for piece in waiting) else [text]
    rule = b""
    for piece in pieces:
        bare = piece.removesuffix(_RULE)
        same = next((held for held in waiting if held.startswith(bare)), None)
        if same is None:
            foreign.append(rule + piece)
        else:
            waiting.remove(same)
        # Behind a torn piece, the rule in front of the next one is not seen as such.
        rule = _RULE if same is not None and bare != piece else b""
    return b"".join(foreign)


def _is_addition(added: bytes, data: bytes, ours: bytes) -> bool:
    """Whether others put this at a log's end; not so a piece of ``ours`` with another text."""
    ids = {_id_of(piece) for piece in log_format.split_decision_log(ours)[1]} - {None}
    new = {_id_of(piece) for piece in log_format.split_decision_log(added)[1]}
    return data.endswith(added) and ids.isdisjoint(new)


def _difference(held: bytes, shown: bytes) -> str:
    """Say where a log departs from the ledger."""
    if held.startswith(shown):
        return f"{len(held) - len(shown)} bytes of it are gone"
    at = next((n for n, (a, b) in enumerate(zip(held, shown, strict=False)) if a != b), len(shown))
    heading = held.rfind(b"### D-", 0, at + 1)
    which = held[heading + 4 :].split(b" ", 1)[0].decode("ascii", "replace") if heading >= 0 else ""
    line = held[:at].count(b"\n") + 1
    return f"it differs from the ledger at line {line}" + (f", in {which}" if which else "")


def _short(decision: DecisionText) -> DecisionText:
    """A decision that fits a body: where it does not, its long fields are cut."""
    if piece_fits(decision._asdict()):
        return decision
    texts = {
        name: value if piece_fits(value, FIELD_ROOM) else f"{value[:FIELD_CHARACTERS]}…"
        for name, value in decision._asdict().items()
        if value is not None
    }
    return decision._replace(**texts)


class DecisionLogIntake:
    """A log being taken in: counts its decisions as the fold does."""

    def __init__(self, reader: ManifestReader, log: str) -> None:
        self.reader, self.log, self.path = reader, log, f"{LOG.folder}/{log}"
        sql = "SELECT count(*), coalesce(max(number), 0) FROM pieces WHERE log = ?"
        self.pieces, self.number = reader.source.db.execute(sql, (log,)).fetchone()
        self.when = 0

    def begin(self, header: bytes) -> None:
        """The log's first entry: its header, as it is."""
        stat = self.reader.disk.stat(self.path)
        lines = header.split(b"\n")
        created = next((line[9:] for line in lines if line.startswith(b"Created: ")), b"")
        self.when = (parse_time(created.decode("ascii", "replace")) or 0) * 1_000_000
        self._add(kinds.BEGUN, {"header": header}, header, mode=stat.mode if stat else None)

    def add(self, data: bytes) -> None:
        """Pieces after what the ledger holds, in their order."""
        text, pieces = log_format.split_decision_log(data)
        if text:
            self._note(text, "text that belongs to no entry")
        for piece in pieces:
            decision, problems = log_format.parse_decision(piece)
            if decision is None:
                self._note(piece, problems[-1])
            else:
                self._decide(piece, decision)
                if problems:
                    self._malformed(f"{decision.id}: {'; '.join(problems)}")

    def rotate(self, part: _Part, live: bytes) -> None:
        """The original split the oldest entries off into an archive; ``live``: the log's header."""
        blobs: list[bytes] = []
        stat = self.reader.disk.stat(part.path)
        body = {"archive": part.name, "count": len(log_format.split_decision_log(part.data)[1])}
        body |= {
            "archive_header": piece_beside(part.header, blobs),
            "header": piece_beside(live, blobs),
        }
        more: Any = {"path": part.path, "blobs": blobs, "mode": stat.mode if stat else None}
        self._add(kinds.ROTATED, body, part.header, **more)

    def _note(self, data: bytes, problem: str) -> None:
        self._add(kinds.NOTED, {"problem": problem}, data, raw=True)
        self.pieces += 1
        lines = data.decode("utf-8", "replace").split("\n")
        first = next((line for line in lines if line.strip(" \r-")), "")
        if first:  # blank lines and rules harm nobody
            self._malformed(f"{problem}: {first}")

    def _malformed(self, problem: str) -> None:
        """Note of the newest piece what is wrong with it."""
        found = self.reader.found
        shown = problem if len(problem) <= SHOWN else f"{problem[:SHOWN]}..."
        found.malformed[found.pieces.newest.draft.id or ""] = f"{self.path}: {shown}"

    def _decide(self, data: bytes, whole: DecisionText) -> None:
        self.number += 1
        self.when = max(self.when, int(whole.id[2:]) * 1_000_000)
        decision = _short(whole)
        refs = [ref._asdict() for ref in log_format.parse_decision_refs(decision.chat_ref)[0]]
        try:
            raw = decision != whole or log_format.format_decision(decision).encode() != data
        except ValueError:
            raw = True
        body = {**decision._asdict(), "number": self.number, "refs": refs}
        self._add(kinds.LOGGED, body, data, actor="scribe", raw=raw, claim="content")
        self.pieces += 1

    def _add(self, kind: Any, body: dict[str, Any], data: bytes, **more: Any) -> None:
        body = {**body, "file": None if self.log == LIVE else self.log}
        path = more.pop("path", self.path)
        more |= {"identity": self.path, "ordinal": self.pieces}
        self.reader.add(kind, body, path, data, self.when, **more)
