"""Checkpoint events: which are unanswered, what each asks for, and the log up to there.

An event asks for the range of decisions that its payload names; one without such a payload asks
for what was decided since the checkpoint before it. Source: seed tripod-architecture, "Flow".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from tripod.errors import NotFoundError, RefusedError
from tripod.ledger import Draft, parse_header
from tripod.projections import LOG
from tripod.projections.decisions.tables import render_decision_piece
from tripod.projections.pythia.checkpoint import uncovered_decisions
from tripod.projections.pythia.format import (
    DatedReviewEntry,
    DecisionRange,
    answers_checkpoint,
    format_checkpoint_payload,
    parse_assessment,
    parse_checkpoint_payload,
)
from tripod.team.act import Act, draft_event_for_act
from tripod.team.team import Team

TYPE = "pythia-checkpoint"  # the type of the events that ask for a review
_PENDING = (
    "SELECT e.us, e.name, e.seq FROM events AS e INDEXED BY events_pending"
    " WHERE e.acked IS NULL AND e.type = ? AND e.origin IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM assessments AS a WHERE a.event = e.seq)"
)
_ACKED = (
    "SELECT e.us, e.name, e.seq FROM events AS e"
    " WHERE e.acked > (SELECT coalesce(adopted, -1) FROM team) AND e.type = ?"
    " AND e.origin IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM assessments AS a WHERE a.event = e.seq)"
)
_FRONT = "# Decision Log\n"
MAX_GIVEN = 8_000
"""Decisions that one review is given at most: an entry names all of them, and has a limit."""


class Point(NamedTuple):
    """A checkpoint event: its entry, its file's name and that name's time in µs.

    ``asked`` are the decisions to be reviewed, ``first`` and ``stop`` the entries of the first and
    the last of them; ``log`` is the decision log that they stand in, None where several are meant.
    """

    event: int
    name: str
    us: int
    asked: DecisionRange
    first: int
    stop: int
    log: str | None = None


class Snapshot(NamedTuple):
    """The log up to a checkpoint's last decision: its text, its entries, the ids that it names."""

    text: str
    sources: tuple[int, ...]
    ids: frozenset[str]


def pending_checkpoints(team: Team) -> list[int]:
    """Entries of the checkpoint events that nobody answered, oldest first.

    Acknowledging one is no review: it stays, unless a message that came later assesses what it
    asked for, which is how programs answer that keep no ledger. What was acknowledged before the
    ledger began is settled, and so is what cannot be answered.
    """
    db = team.store.db
    acked = db.execute(_ACKED, (TYPE,)).fetchall()
    reviewed = _answered_in_chat(team, [seq for *_, seq in acked]) if acked else set()
    found = db.execute(_PENDING, (TYPE,)).fetchall()
    for row in acked:
        with suppress(RefusedError):  # it cannot be answered
            if row[2] not in reviewed and checkpoint_of(team, row[2]):
                found.append(row)
    return [seq for *_, seq in sorted(found)]


def _answered_in_chat(team: Team, events: list[int]) -> set[int]:
    """The checkpoint events among these that a message of a chat answers."""
    adopted = team.store.db.execute("SELECT coalesce(adopted, -1) FROM team").fetchone()[0]

    def at(seq: int) -> str:
        return parse_header(team.store.header(seq) or b"").at

    def together(one: int, other: int) -> bool:
        return max(one, other) < adopted or at(one) == at(other)

    left = {}
    for seq in events:
        body = team.source.body(seq)
        dated = DatedReviewEntry(seq, body["us"] // 1_000_000, "observed" in body)
        left[seq] = (dated, _asked_range(team, body))
    # What another program wrote may have been taken in before the event that it answers.
    start = 0 if any(dated.observed for dated, _ in left.values()) else min(events) + 1
    found: set[int] = set()
    for entry in team.store.raw(start, kinds=("chat.sent",)):
        # A long text is in a blob: that message has to be parsed to be judged.
        raw = entry.body or b""
        if b"pythia checkpoint" not in raw.lower() and b'"sha256"' not in raw:
            continue
        body = team.source.body(entry.seq)
        said = parse_assessment(team.source.content(body["text"]).decode())
        if said is not None:
            posted = DatedReviewEntry(entry.seq, body["time"], "observed" in body)
            found |= {
                event
                for event, (dated, wanted) in left.items()
                if answers_checkpoint(posted, said, dated, wanted, together)
            }
    return found


def checkpoint_of(team: Team, event: int) -> Point:
    """The decisions that the checkpoint event of an entry asks to review.

    Raises RefusedError where it names decisions that the log lacks, or nothing is to be reviewed.
    """
    body = team.source.body(event)
    name = body["name"]
    span = _asked_range(team, body)
    if span is None:
        seqs = [seq for seq, _ in _new_since(team, event)]
        if not seqs:
            raise RefusedError(
                f"{name} names no decisions, and none was logged since the checkpoint before"
            )
        first, stop = seqs[0], seqs[-1]
    else:
        first, stop = (_decision_entry(team, id_, event) or -1 for id_ in span)
        if not 0 <= first <= stop:
            raise RefusedError(
                f"{name} asks for {span[0]} through {span[1]}: no such decisions in the log"
            )
        seqs = [first, stop]
    log = _log_of(team, seqs)
    one, other, count = team.store.db.execute(
        "SELECT (SELECT id FROM pieces WHERE seq = ?1), (SELECT id FROM pieces WHERE seq = ?2),"
        " (SELECT count(*) FROM pieces WHERE id IS NOT NULL AND seq BETWEEN ?1 AND ?2"
        " AND (?3 IS NULL OR log = ?3))",
        (first, stop, log),
    ).fetchone()
    asked = DecisionRange(one, other, count)
    return Point(event, name, body["us"], asked, first, stop, log)


def _asked_range(team: Team, body: dict[str, object]) -> tuple[str, str] | None:
    """The range that a checkpoint event's payload names."""
    given = body.get("payload")
    if not isinstance(given, dict):
        return None
    parsed = parse_checkpoint_payload(team.source.content(given).decode())
    return None if parsed is None else parsed[1:]


def _decision_entry(team: Team, id_: str, event: int) -> int | None:
    """The entry of a decision; of several of one id the newest that the event can mean."""
    row = team.store.db.execute(
        "SELECT seq FROM pieces WHERE id = ?1 ORDER BY seq > ?2, abs(seq - ?2) LIMIT 1",
        (id_, event),
    ).fetchone()
    return None if row is None else int(row[0])


def _log_of(team: Team, seqs: Sequence[int]) -> str | None:
    """The log that pieces were written into; None where there are several."""
    sql = "SELECT DISTINCT log FROM pieces WHERE seq IN (SELECT value FROM json_each(?))"
    logs = team.store.db.execute(sql, (json.dumps(seqs),)).fetchall()
    return str(logs[0][0]) if len(logs) == 1 else None


def _new_since(team: Team, event: int) -> list[tuple[int, str]]:
    """Decisions before an event that no earlier checkpoint of their log covers: entries and ids."""
    db = team.store.db
    newest: dict[str, int] = {}  # of each log, the entry of the last decision that is covered

    def cover(first: str, last: str, seq: int) -> None:
        start, end = _decision_entry(team, first, seq), _decision_entry(team, last, seq)
        if end is None:
            return
        log = _log_of(team, [end] if start is None else [start, end])
        # A review of several logs covers each of them up to its last decision.
        for name in LOG.live(team.source) if log is None else (log,):
            newest[name] = max(newest.get(name, -1), end)

    sql = "SELECT seq FROM events WHERE type = ? AND seq < ? AND origin IS NULL ORDER BY seq"
    for (seq,) in db.execute(sql, (TYPE, event)).fetchall():
        span = _asked_range(team, team.source.body(seq))
        if span is not None:
            cover(*span, seq)
    # The event's file may be gone.
    answered = "SELECT seq, event FROM assessments WHERE event < ? AND NOT merged"
    for assessed, seq in db.execute(answered, (event,)).fetchall():
        body = team.source.body(assessed)
        cover(body["first"], body["last"], seq)
    rows = db.execute(
        "SELECT seq, id, log FROM pieces WHERE id IS NOT NULL AND seq < ? ORDER BY seq", (event,)
    )
    return [(seq, id_) for seq, id_, log in rows if seq > newest.get(log, -1)]


def checkpoint_named(team: Team, name: str) -> Point:
    """The checkpoint event of a file's name (NotFoundError: none; else as ``checkpoint_of``).

    That of a peer is reviewed in the peer's own replica.
    """
    row = team.store.db.execute(
        "SELECT max(seq) FROM events WHERE name = ? AND type = ? AND origin IS NULL", (name, TYPE)
    ).fetchone()
    if row[0] is None:
        raise NotFoundError(
            f"no checkpoint event {name}: `tripod pythia due` lists those that are unanswered"
        )
    return checkpoint_of(team, row[0])


def ask(team: Team, act: Act, handle: str) -> Draft | None:
    """The checkpoint event for all decisions since the last; None without new decisions."""
    db = act.transaction.tables
    rows = _new_since(team, act.transaction.size)
    if not rows:
        if not db.execute("SELECT 1 FROM pieces WHERE id IS NOT NULL LIMIT 1").fetchone():
            raise NotFoundError("no decision is logged yet: there is nothing to review")
        return None
    log = _log_of(team, [seq for seq, _ in rows])
    count = db.execute(
        "SELECT count(*) FROM pieces WHERE id IS NOT NULL AND (?1 IS NULL OR log = ?1)", (log,)
    ).fetchone()[0]
    payload = format_checkpoint_payload(count, rows[0][1], rows[-1][1])
    return draft_event_for_act(act, handle, TYPE, "high", payload)


def ask_over_team(team: Team, interval: int) -> str:
    """Publish a checkpoint event over decisions that no replica's checkpoint covers; give its name.

    Each replica counts its own, so that several could stay below the interval for ever. '' where
    there are fewer of them than ``interval``, or that is 0: off.
    """
    if not interval or len(uncovered_decisions(team.source, team.store.size)) < interval:
        return ""
    with team.act() as act:
        left = uncovered_decisions(act.source, act.transaction.size)
        if len(left) < interval:
            return ""
        entries = "; ".join(
            f"{origin} {', '.join(str(one.made) for one in left if one.origin == origin)}"
            for origin in dict.fromkeys(one.origin for one in left)
        )
        sql = "SELECT count(*) FROM pieces WHERE id IS NOT NULL"
        count = act.transaction.tables.execute(sql).fetchone()[0]
        payload = format_checkpoint_payload(count, left[0].id, left[-1].id, entries)
        draft = draft_event_for_act(act, "scribe", TYPE, "high", payload)
        act.append([draft])
    return str(draft.body["name"])


def checkpoint_snapshot(team: Team, point: Point) -> Snapshot:
    """The decisions up to the last that is asked for, as they stand in their log's files.

    That is the one log that the checkpoint is about, or all of them where it is about several. Of
    very many the newest, with a line that says so. Raises RefusedError where more are asked for
    than one review is given.
    """
    if point.asked.decisions > MAX_GIVEN:
        raise RefusedError(
            f"{point.name} asks for {point.asked.decisions} decisions, and a review takes "
            f"{MAX_GIVEN} at most: publish checkpoint events for parts of them"
        )
    sql = (
        "SELECT seq, id, supersedes FROM pieces WHERE id IS NOT NULL AND seq <= ?1"
        " AND (?2 IS NULL OR log = ?2) ORDER BY seq"
    )
    every = team.store.db.execute(sql, (point.stop, point.log)).fetchall()
    rows = every[-MAX_GIVEN:]
    seqs = [seq for seq, *_ in rows]
    parts = [render_decision_piece(team.source, body) for body in team.source.each_body(seqs)]
    left = len(every) - len(rows)
    front = f"{_FRONT}\n({left} older decisions are left out.)\n" if left else _FRONT
    text = front + b"".join(parts).decode("utf-8", "replace")
    # What one of them takes the place of may stand in another log: it may be named, too.
    named = {id_ for _, *ids in rows for id_ in ids if id_ is not None}
    return Snapshot(text, tuple(seqs), frozenset(named))
