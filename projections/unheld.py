"""Which decisions, messages and events stand in the bytes of a file, and in no entry.

Where such bytes were written over, or are about to be, this is work that is lost with them: the
part of another clone, or of a ledger that a backup replaced. What only alters a piece that the
ledger holds is no piece of its own: the ledger's stands again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from tripod.ledger import CHAT, EVENTS, LOGS, PROCESSED
from tripod.ledger.kinds.base import MARK
from tripod.projections.bus.format import parse_event
from tripod.projections.chat.format import format_time, parse_archive_name, parse_line, split_file
from tripod.projections.chat.tables import line_bytes
from tripod.projections.decisions.format import DecisionText, parse_decision, split_log
from tripod.projections.decisions.tables import piece_bytes
from tripod.projections.projection import Source

NAMED = 3
_QUEUE, _DONE, _CHAT, _LOG = EVENTS, f"{PROCESSED}/", CHAT, LOGS
_RULE = b"---"


def unheld(source: Source, path: str, data: bytes) -> list[str]:
    """Name each valid piece of ``data``, the bytes of a file at ``path``, that no entry holds.

    Args:
        source: the ledger's tables, at the head, and its entries.
        path: the file's path within the team directory; of any other file there are no pieces.
        data: its bytes.
    """
    # Behind the first part stands the folder's name, where a person keeps the files elsewhere.
    front, _, name = path.partition("/")
    if front == _LOG and name.endswith(".md"):
        return [f"decision {one.id} ({one.title})" for one in _decisions(source, data)]
    if front == _CHAT and name.endswith(".chat"):
        return _messages(source, name.removesuffix(".chat"), data)
    if front == _QUEUE and name.endswith(".event"):
        name = name.removeprefix(_DONE)
        is_new = parse_event(data) is not None and not _published(source, name)
        return [f"event {name}"] if is_new else []
    return []


def told(pieces: Sequence[str]) -> str:
    """The pieces in one line: the first few, and how many more there are."""
    more = len(pieces) - NAMED
    return ", ".join(pieces[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _bare(piece: bytes) -> bytes:
    """A piece without the blank lines and the rule that part it from its neighbours."""
    lines = piece.strip().split(b"\n")
    while lines and lines[-1].strip() in (b"", _RULE):
        lines.pop()
    return b"\n".join(line.rstrip() for line in lines)


def _decisions(source: Source, data: bytes) -> Iterable[DecisionText]:
    shown: dict[str, list[tuple[bytes, DecisionText]]] = {}
    for piece in split_log(data)[1]:
        decision = parse_decision(piece)[0]
        if decision is not None:
            shown.setdefault(decision.id, []).append((_bare(piece), decision))
    for id_, pieces in shown.items():
        sql = "SELECT seq FROM pieces WHERE id = ? ORDER BY seq"
        seqs = [seq for (seq,) in source.db.execute(sql, (id_,))]
        held = [piece_bytes(source, body) for body in source.each_body(seqs)]
        ours = [(_bare(piece), parse_decision(piece)[0]) for piece in held]
        new: list[DecisionText] = []
        for bare, decision in pieces:
            equal = next((one for one in ours if one[0] == bare), None)
            if equal is None:
                new.append(decision)
            else:
                ours.remove(equal)
        for decision in new:
            altered = next((o for o in ours if o[1] is not None and _same(o[1], decision)), None)
            if altered is None:
                yield decision
            else:
                ours.remove(altered)


def _same(ours: DecisionText, theirs: DecisionText) -> bool:
    """Whether one is the other, altered: two clones may log different decisions under one id."""
    return ours.id == theirs.id and (
        ours.title in (theirs.title, MARK)
        or (bool(ours.rationale) and ours.rationale == theirs.rationale)
    )


def _messages(source: Source, stem: str, data: bytes) -> list[str]:
    db = source.db
    row = db.execute("SELECT channel FROM archives WHERE archive = ?", (stem,)).fetchone()
    place, slash, name = stem.rpartition("/")
    split = parse_archive_name(name)
    channel = row[0] if row is not None else stem if split is None else place + slash + split[0]
    sql = "SELECT seq FROM lines WHERE channel = ? ORDER BY number"
    seqs = [seq for (seq,) in db.execute(sql, (channel,))]
    held = Counter(line_bytes(source, body).strip() for body in source.each_body(seqs))
    file = split_file(data)
    lines = data.split(b"\n") if file is None else file.lines
    new = []
    for line in lines:
        bare = line.strip()
        if held[bare]:
            held[bare] -= 1
        elif (message := parse_line(bare)) is not None:
            new.append(message)
    parsed = (parse_line(line) for line in held.elements())
    missing = Counter((one.handle, one.time) for one in parsed if one is not None)
    found = []
    for message in new:
        key = message.handle, message.time
        if missing[key]:
            missing[key] -= 1
        else:
            found.append(f"message of {message.handle} at {format_time(message.time)}")
    return found


def _published(source: Source, name: str) -> bool:
    """Whether the ledger has, or had, an event of this name; a prune takes it off the table."""
    if source.db.execute("SELECT 1 FROM events WHERE name = ?", (name,)).fetchone():
        return True
    sql = "SELECT 1 FROM redactions WHERE place = ?"
    if source.db.execute(sql, (f"{_QUEUE}/{name}",)).fetchone():
        return True
    wanted = f'"name":{json.dumps(name, ensure_ascii=False)}'
    return source.ledger.names_in_body("bus.published", wanted.encode())
