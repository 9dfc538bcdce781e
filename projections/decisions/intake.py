"""Taking in the decision logs: appended entries, texts put in by hand, and the original's splits.

Source: spec nbs-compat B10, D; seeds: nbs-scribe. A log is any file of the Scribe's folder that has
a log's title or a decision's heading. What the ledger holds of it must be a prefix of what its
files show, archives first; an edited or removed entry is a conflict, never taken in.
"""

from __future__ import annotations

from typing import Any

from tripod.ledger.kinds.base import content
from tripod.projections.chat.format import parse_time
from tripod.projections.decisions.format import (
    DecisionText,
    entry_text,
    format_decision,
    is_log,
    log_name_problem,
    parse_decision,
    parse_log_archive_name,
    parse_refs,
    split_log,
)
from tripod.projections.decisions.tables import LIVE, LOG, MODE, archived_log, piece_bytes
from tripod.projections.disk import UnreadableError
from tripod.projections.engine import own_files
from tripod.projections.manifest import log_files
from tripod.projections.pieces import (
    FILE_LIMIT,
    beside,
    fits,
    same_but,
)
from tripod.projections.reader import Reader, erased_since, make_piece

RANK = 2
STREAM = "decisions"
_RULE = b"\n---\n\n"
FIELD_ROOM = 3_000  # bytes of JSON
FIELD_CHARACTERS = 500  # a character takes at most six
SHOWN = 200  # characters of what is wrong with a piece


def take_log(reader: Reader) -> None:
    """Compare the logs of the Scribe's folder and their archives with the table of pieces."""
    db = reader.source.db
    rows = db.execute("SELECT file, log, seq FROM logs").fetchall()
    known = {file: log for file, log, _ in rows}
    ours = {path for path, _ in own_files(reader.source)}
    names = log_files(reader.disk, known.keys() | reader.disk.places.met)
    names = [name for name in names if f"{LOG.folder}/{name}" not in ours]
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
            splitting = name == log and _holds(splits.get(log), LOG.pieces(reader.source, log))
            if not reader.unwritten(seq) and not splitting:
                reader.conflict(path, "missing", "the log's file is gone")
        elif name != log and log in there:
            data = _read(reader, path, fresh=True)
            rendered = None if data is None else LOG.render(reader.source, path)
            if data is not None and (rendered is None or rendered.data != data):
                reader.conflict(path, "edited", "an archive never changes")
    for log in sorted(set(known.values()) & there):
        archives = splits.get(log, {})
        data = _read(reader, f"{LOG.folder}/{log}", fresh=not archives)
        if data is not None:
            _take(reader, log, data, archives, is_new=False)
    for log, data in fresh.items():
        _take(reader, log, data, splits.get(log, {}), is_new=True)


def _unknown(
    reader: Reader, logs: set[str], names: list[str]
) -> tuple[dict[str, bytes], dict[str, dict[str, bytes]]]:
    """The files that the ledger does not know: new logs, and new archives by their log.

    An archive whose log is neither known nor there is a log by itself: its decisions were made.
    """
    fresh: dict[str, bytes] = {}
    for name in names:
        if archived_log(name) not in {*logs, *names}:
            _look(reader, name, fresh)
    splits: dict[str, dict[str, bytes]] = {}
    for name in sorted(names, key=lambda name: (_stamp(name), name)):
        log = archived_log(name)
        if log in logs or log in fresh:
            data = _read(reader, f"{LOG.folder}/{name}", fresh=False)
            if data is not None:
                splits.setdefault(log, {})[name] = data
        elif name not in fresh and log in names:  # what it would be an archive of is no log
            _look(reader, name, fresh)
    return dict(sorted(fresh.items())), splits


def _look(reader: Reader, name: str, fresh: dict[str, bytes]) -> None:
    """Keep a file that the ledger does not know if it is a log."""
    if log_name_problem(name) is not None:
        return
    path = f"{LOG.folder}/{name}"
    try:
        shown = reader.disk.read(path, FILE_LIMIT)
        is_one = shown is not None and (name in reader.disk.places.met or is_log(name, shown))
        data = reader.read(path) if is_one else None
    except UnreadableError as error:
        if name.endswith(LIVE) or name in reader.disk.places.met:  # by its name it is a log
            reader.conflict(path, "unreadable", str(error))
        return
    if data is not None:
        fresh[name] = data


def _holds(archives: dict[str, bytes] | None, held: bytes) -> bool:
    """Whether new archives hold all that a log held."""
    parts = [b"".join(split_log(data)[1]) for data in (archives or {}).values()]
    return bool(parts) and b"".join(parts).startswith(held)


def _name(path: str) -> str:
    """The name of a log within the Scribe's folder."""
    return path.removeprefix(f"{LOG.folder}/")


def _stamp(name: str) -> str:
    split = parse_log_archive_name(name)
    return "" if split is None else split[1]


def _read(reader: Reader, path: str, *, fresh: bool) -> bytes | None:
    try:
        return reader.fresh(path) if fresh else reader.read(path)
    except UnreadableError as error:
        reader.conflict(path, "unreadable", str(error))
        return None


def _take(
    reader: Reader, log: str, data: bytes, archives: dict[str, bytes], *, is_new: bool
) -> None:
    path = f"{LOG.folder}/{log}"
    header, pieces = split_log(data)
    live = (path, header, b"".join(pieces))
    parts: list[tuple[str, bytes, bytes]] = []  # path, header, pieces
    for name, whole in archives.items():
        header, pieces = split_log(whole)
        parts.append((f"{LOG.folder}/{name}", header, b"".join(pieces)))
    held = b"" if is_new else LOG.pieces(reader.source, log)
    if not is_new:
        new, parts = parts, _splits_of(parts, held, live)
        for one in new:
            name = _name(one[0])
            if one not in parts and not _is_copy(one[2], held, live[2]):
                _take(reader, name, archives[name], {}, is_new=True)
    reader.found.files += 1 + len(parts)
    reader.found.logs.update((log, *map(_name, (name for name, *_ in parts))))
    taker = LogTaker(reader, path)
    if not is_new and not parts:
        _take_behind(taker, reader, log, data)
        return
    parts.append(live)
    shown = b"".join(part[2] for part in parts)
    if is_new:
        taker.begin(parts[0][1])
    if not shown.startswith(held):
        reader.conflict(path, "edited", _difference(held, shown))
        return
    _take_parts(taker, parts, len(held), reader)


def _splits_of(
    parts: list[tuple[str, bytes, bytes]], held: bytes, live: tuple[str, bytes, bytes]
) -> list[tuple[str, bytes, bytes]]:
    """Those of the new archives that a log was split into since; the others are copies.

    A program that died between the two steps of a split leaves such a copy: its pieces still stand
    in the log, and are not taken in twice.
    """
    if held and live[2].startswith(held):
        return []
    parts = [part for part in parts if held or not (part[2] and live[2].startswith(part[2]))]
    for first in range(len(parts)):
        if b"".join(part[2] for part in (*parts[first:], live)).startswith(held):
            return parts[first:]
    return parts


def _is_copy(part: bytes, held: bytes, live: bytes) -> bool:
    """Whether all that a new archive holds stands in its log, be its end cut off.

    One that holds anything else is a log by itself: its decisions are in no other file.
    """
    if live.startswith(part):
        return True
    texts = [entry_text(piece) for piece in split_log(part)[1]]
    known = {entry_text(piece) for data in (held, live) for piece in split_log(data)[1]}
    return known.issuperset(texts[:-1]) and any(one.startswith(texts[-1]) for one in known)


def _take_behind(taker: LogTaker, reader: Reader, log: str, data: bytes) -> None:
    """The usual case: one file, which shows what the ledger holds, and perhaps more after it.

    Text put after a header that had no entry yet belongs to no header of ours.
    """
    header = LOG.header(reader.source, log)
    held = LOG.pieces(reader.source, log)
    if data.startswith(header) and data.startswith(held, len(header)):
        taker.add(data[len(header) + len(held) :])
        return
    if reader.files < reader.size:
        shorter = header + LOG.pieces(reader.source, log, before=reader.files)
        if data.startswith(shorter):  # a writer died before it wrote the rest
            taker.add(_foreign(data[len(shorter) :], held[len(shorter) - len(header) :]))
            return
        if (behind := _behind_erased(reader, log, data, header + held)) is not None:
            taker.add(behind)
            return
    reader.conflict(taker.path, "edited", _difference(header + held, data))


def _behind_erased(reader: Reader, log: str, data: bytes, held: bytes) -> bytes | None:
    """The text after a log that still shows erased decisions; None if it is not such a log."""
    source = reader.source
    seqs = erased_since(reader, f"{LOG.folder}/{log}", ("decision.logged", "log.noted"))
    erased = {piece_bytes(source, body) for body in source.each_body(seqs)}
    ours, shown = _cut(held), _cut(data)
    if not same_but(erased, ours, shown, _id_of):
        return None
    return b"".join(shown[len(ours) :])


def _cut(data: bytes) -> list[bytes]:
    header, pieces = split_log(data)
    return [header, *pieces]


def _id_of(piece: bytes) -> str | None:
    decision = parse_decision(piece)[0]
    return None if decision is None else decision.id


def _foreign(shown: bytes, ours: bytes) -> bytes:
    """What of the bytes after a log the ledger does not hold.

    A writer that was adding ``ours`` when it died left some of these pieces there, the last of them
    perhaps torn, with those of others around them.
    """
    if ours.startswith(shown):
        return b""
    waiting = list(split_log(ours)[1])
    text, pieces = split_log(shown)
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


def _take_parts(
    taker: LogTaker, parts: list[tuple[str, bytes, bytes]], held: int, reader: Reader
) -> None:
    """Add what each file holds after the bytes that the ledger holds; then note its split."""
    live_header = parts[-1][1]
    for name, header, pieces in parts:
        taker.add(pieces[held:])
        held = max(0, held - len(pieces))
        if name != taker.path:
            count = len(split_log(header + pieces)[1])
            stat = reader.disk.stat(name)
            taker.rotate(name, header, live_header, count, MODE if stat is None else stat.mode)


def _difference(held: bytes, shown: bytes) -> str:
    """Say where a log departs from the ledger."""
    if held.startswith(shown):
        return f"{len(held) - len(shown)} bytes of it are gone"
    at = next((n for n, (a, b) in enumerate(zip(held, shown, strict=False)) if a != b), len(shown))
    heading = held.rfind(b"### D-", 0, at + 1)
    which = held[heading + 4 :].split(b" ", 1)[0].decode("ascii", "replace") if heading >= 0 else ""
    line = held[:at].count(b"\n") + 1
    return f"it differs from the ledger at line {line}" + (f", in {which}" if which else "")


def _short(decision: DecisionText) -> tuple[DecisionText, bool]:
    """A decision that fits a body, and whether a field was cut for it (its raw bytes are kept)."""
    if fits(decision._asdict()):
        return decision, False
    texts = {
        name: value if fits(value, FIELD_ROOM) else f"{value[:FIELD_CHARACTERS]}…"
        for name, value in decision._asdict().items()
        if value is not None
    }
    return decision._replace(**texts), True


class LogTaker:
    """A log being taken in: counts its decisions as the fold does."""

    def __init__(self, reader: Reader, path: str) -> None:
        self.reader = reader
        self.path = path
        log = _name(path)
        self.named = {} if log == LIVE else {"file": log}
        row = reader.source.db.execute(
            "SELECT count(*), coalesce(max(number), 0) FROM pieces WHERE log = ?", (log,)
        ).fetchone()
        self.pieces, self.number = row
        self.when = 0

    def begin(self, header: bytes) -> None:
        """The log's first entry: its header, as it is."""
        stat = self.reader.disk.stat(self.path)
        created = next(
            (line[9:] for line in header.split(b"\n") if line.startswith(b"Created: ")), b""
        )
        self.when = (parse_time(created.decode("ascii", "replace")) or 0) * 1_000_000
        blobs: list[bytes] = []
        self._piece(
            "log.begun",
            {"header": content(header, blobs)},
            header,
            blobs=blobs,
            mode=None if stat is None or stat.mode == MODE else stat.mode,
        )

    def add(self, data: bytes) -> None:
        """Pieces after what the ledger holds, in their order."""
        text, pieces = split_log(data)
        if text:
            self._note(text, "text that belongs to no entry")
        for piece in pieces:
            decision, problems = parse_decision(piece)
            if decision is None:
                self._note(piece, problems[-1])
            else:
                self._decide(piece, decision)
                if problems:
                    self._malformed(f"{decision.id}: {'; '.join(problems)}")

    def rotate(self, path: str, header: bytes, live: bytes, count: int, mode: int) -> None:
        """The original split the oldest entries off into an archive."""
        blobs: list[bytes] = []
        body = {
            "archive": _name(path),
            "archive_header": beside(header, blobs),
            "count": count,
            "header": beside(live, blobs),
        }
        self._piece(
            "log.rotated", body, header, path=path, blobs=blobs, mode=None if mode == MODE else mode
        )

    def _note(self, data: bytes, problem: str) -> None:
        self._piece("log.noted", {"problem": problem}, data, raw=True)
        lines = data.decode("utf-8", "replace").split("\n")
        first = next((line for line in lines if line.strip(" \r-")), "")
        if first:  # blank lines and rules harm nobody
            self._malformed(f"{problem}: {first}")

    def _malformed(self, problem: str) -> None:
        """Tell of the newest piece what is wrong with it."""
        found = self.reader.found
        shown = problem if len(problem) <= SHOWN else f"{problem[:SHOWN]}..."
        found.malformed[found.pieces[-1].draft.id or ""] = f"{self.path}: {shown}"

    def _decide(self, data: bytes, decision: DecisionText) -> None:
        self.number += 1
        self.when = max(self.when, int(decision.id[2:]) * 1_000_000)
        decision, cut = _short(decision)
        body: dict[str, Any] = {
            "artefacts": decision.artefacts,
            "chat_ref": decision.chat_ref,
            "id": decision.id,
            "number": self.number,
            "participants": decision.participants,
            "rationale": decision.rationale,
            "refs": [{"file": r.file, "line": r.line} for r in parse_refs(decision.chat_ref)[0]],
            "risk_tags": decision.risk_tags,
            "status": decision.status,
            "title": decision.title,
        }
        if decision.supersedes is not None:
            body["supersedes"] = decision.supersedes
        try:
            raw = cut or format_decision(decision).encode() != data
        except ValueError:
            raw = True
        self._piece("decision.logged", body, data, raw=raw, claim="content")

    def _piece(
        self,
        kind: str,
        body: dict[str, Any],
        data: bytes,
        *,
        path: str = "",
        **more: Any,
    ) -> None:
        make_piece(
            self.reader,
            kind=kind,
            stream=STREAM,
            actor="scribe" if kind == "decision.logged" else "unknown",
            body=body | self.named,
            path=path or self.path,
            identity=self.path,
            data=data,
            when=self.when,
            rank=RANK,
            ordinal=self.pieces,
            **more,
        )
        self.pieces += kind in ("decision.logged", "log.noted")
