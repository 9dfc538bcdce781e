"""Decisions and assessments as the entries of any ledger say them: one's own, a backup, a record.

Nothing here asks for tables, so that a clone without a ledger gives the same: the record on a git
ref is enough. Each entry is held against itself; whether the ledger is whole is what ``tripod
verify`` judges.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from tripod.decisions.reader import Change, newest_changes
from tripod.errors import LedgerDamagedError
from tripod.ledger import MERGED, LedgerError, RawEntry, entry_leaf_hash, parse_header
from tripod.ledger.kinds.decisions import LOGGED
from tripod.ledger.kinds.merged import read_kept
from tripod.ledger.kinds.peers import TEAM_NAMED
from tripod.ledger.kinds.pythia import ASSESSED
from tripod.projections.decisions.format import DecisionText, valid_decision_id
from tripod.projections.decisions.madr_file import DecisionPage, PageLink
from tripod.projections.layout import LIVE
from tripod.verify.listing import ListedEntry, listed_entry, seen_row
from tripod.verify.rows import RowReader, disguised_rows, erasing_row

_BROKEN = (ValueError, TypeError, LookupError, AttributeError, RecursionError, LedgerError)
_KINDS = (LOGGED.name, ASSESSED.name, MERGED)
_TEXTS = ("id", "title", "chat_ref", "participants", "artefacts", "risk_tags", "status")


class EntryDecision(NamedTuple):
    """A decision as its entry says it, of which ``number`` is the place among all in the ledger.

    ``made`` is the replica and the id by which its maker knows it, '' where this ledger made it.
    ``leaf`` is the hash of its entry in the ledger that made it; ``is_merged``: another one did.
    ``messages`` name what it refers to, for ever.
    """

    listed: ListedEntry
    number: int
    text: DecisionText
    made: str
    leaf: bytes
    is_merged: bool
    messages: tuple[str, ...]
    no_ref: str | None


class EntryAssessment(NamedTuple):
    """An assessment as its entry says it; ``leaf`` and ``is_merged`` as in ``EntryDecision``."""

    listed: ListedEntry
    first: str
    last: str
    decisions: int
    confidence: str
    cited: tuple[str, ...]
    leaf: bytes
    is_merged: bool


class LedgerDecisions(NamedTuple):
    """What a ledger holds of decisions, in the order of its entries, and what became of each.

    ``changes`` are by id; ``problems`` name entries that may be decisions and are damaged.
    """

    decisions: tuple[EntryDecision, ...]
    assessments: tuple[EntryAssessment, ...]
    changes: Mapping[str, Change]
    problems: tuple[str, ...]

    def made(self) -> Iterator[bytes]:
        """The leaf hashes of what this ledger made itself, and did not merge."""
        every: tuple[EntryDecision | EntryAssessment, ...] = (*self.decisions, *self.assessments)
        return (one.leaf for one in every if not one.is_merged)


def read_decisions(ledger: RowReader) -> LedgerDecisions:
    """Read what a ledger holds of decisions (LedgerDamagedError: its bodies are not here)."""
    if not ledger.bodies:
        raise LedgerDamagedError(
            "only the headers of the entries are here, no bodies: what was decided is not told"
        )
    decisions: list[EntryDecision] = []
    assessments: list[EntryAssessment] = []
    problems = []
    numbers: dict[str, set[int]] = {}
    ledger.problem = ""
    for row in ledger.raw(kinds=_KINDS):
        seen = seen_row(ledger, row)
        if seen.kind not in _KINDS or _is_twin(row):
            continue
        listed = listed_entry(ledger, row)
        try:
            if not listed.problem and seen.kind == LOGGED.name:
                data, number = _data(ledger, row, seen), len(decisions) + 1
                decisions.append(_decision(ledger, number, row, listed, data))
                numbers.setdefault(_text(data.get("file") or LIVE), set()).add(data["number"])
            elif not listed.problem and seen.kind == ASSESSED.name:
                data = _data(ledger, row, seen)
                assessments.append(_assessment(ledger, row, listed, data))
        except _BROKEN as error:
            listed = listed._replace(problem=f"it does not say what its kind has: {error}")
        if listed.problem:
            problems.append(f"entry {row.seq}: {listed.problem}")
    problems += _hidden(ledger)
    if ledger.problem:
        problems.append(
            f"entries cannot be read: {ledger.problem}; `tripod verify` says what to do"
        )
    if not problems:  # else it is known already which cannot be read
        problems += [
            f"{log}: {max(there) - len(there)} of its {max(there)} decisions are missing: `tripod "
            "verify` judges the ledger"
            for log, there in numbers.items()
            if len(there) < max(there)
        ]
    rows = [
        (one.text.supersedes, one.text.status, one.text.id, one.listed.seq, one.made or None)
        for one in decisions
        if one.text.supersedes is not None
    ]
    changes = newest_changes(rows, lambda: _own_replica(ledger))
    return LedgerDecisions(tuple(decisions), tuple(assessments), changes, tuple(problems))


def _hidden(ledger: RowReader) -> list[str]:
    """Which entries are of a kind that is read here, while their rows say another."""
    try:
        found = disguised_rows(ledger.db, _KINDS)
    except sqlite3.Error as error:
        return [f"entries cannot be read: {error}; `tripod verify` says what to do"]
    return [f"entry {seq}: its row says another kind than its header" for seq in found]


def _is_twin(row: RawEntry) -> bool:
    """Whether a peer's entry holds what was read here as well, from the same file."""
    with suppress(*_BROKEN):
        return row.kind == MERGED and "same" in (orjson.loads(row.body or b"")["place"] or ())
    return False


def _data(ledger: RowReader, row: RawEntry, seen: RawEntry) -> dict[str, Any]:
    """What an entry says; of an erased one what its redaction keeps."""
    if seen.body is not None:
        return dict(orjson.loads(seen.body))
    erased = erasing_row(ledger.db, row.seq)
    if erased is None:
        raise LookupError("its body is missing")
    return dict(erased[1]["keep"])


def _decision(
    ledger: RowReader, number: int, row: RawEntry, listed: ListedEntry, data: Mapping[str, Any]
) -> EntryDecision:
    texts = {name: _text(data[name]) for name in DecisionText._fields if name != "supersedes"}
    problem = valid_decision_id(texts["id"])
    if problem is not None:
        raise ValueError(problem[:80])
    named = data.get("supersedes")
    return EntryDecision(
        listed,
        number,
        DecisionText(**texts, supersedes=None if named is None else _text(named)),
        _text(data.get("made") or ""),
        _leaf(ledger, row),
        row.kind == MERGED,
        tuple(_messages(ledger, listed.seq, data["refs"])),
        None if data.get("no_ref") is None else _text(data["no_ref"]),
    )


def _assessment(
    ledger: RowReader, row: RawEntry, listed: ListedEntry, data: Mapping[str, Any]
) -> EntryAssessment:
    texts = [_text(data[name]) for name in ("first", "last")]
    cited = tuple(_text(one) for one in data["cited"])
    count, confidence = int(data["decisions"]), _text(data["confidence"])
    leaf, is_merged = _leaf(ledger, row), row.kind == MERGED
    return EntryAssessment(listed, texts[0], texts[1], count, confidence, cited, leaf, is_merged)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} in the place of a text")
    return value


def _leaf(ledger: RowReader, row: RawEntry) -> bytes:
    """The leaf hash of an entry in the ledger that made it; it fixes what the entry says."""
    if row.kind != MERGED:
        return entry_leaf_hash(row.header)
    return entry_leaf_hash(read_kept(_data(ledger, row, row), ledger.blob).header)


def _messages(ledger: RowReader, seq: int, refs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Names of messages that no archive changes: number in the chat, entry, leaf hash.

    One that was bound to no message has the line that the log names, which may move.
    """
    for ref in refs:
        leaf, number = ref.get("leaf"), ref.get("index")
        if leaf is None or number is None:
            yield f"{_text(ref['file'])}:~L{int(ref['line'])} (bound to no message)"
            continue
        where, entry = ref.get("origin"), ref.get("origin_seq")
        if where is None or entry is None:
            where, entry = _ledger_at(ledger, seq), ref["seq"]
        chat = ref.get("channel") or _text(ref["file"]).removesuffix(".chat")
        name = f"{_text(chat)}#{int(number)}"
        yield f"{name}: entry {int(entry)} of {_text(where)}, leaf hash {_text(leaf)}"


def _ledger_at(ledger: RowReader, seq: int) -> str:
    with suppress(LedgerError, TypeError):
        return parse_header(ledger.header(seq) or b"").ledger
    return "this ledger"


def _own_replica(ledger: RowReader) -> str:
    """The name of this replica in its team; '' where the team has one ledger."""
    for row in ledger.raw(kinds=(TEAM_NAMED.name,)):
        with suppress(*_BROKEN):
            return _text(orjson.loads(row.body or b"")["replica"])
    return ""


def decision_pages(found: LedgerDecisions) -> Iterator[DecisionPage]:
    """A page for each decision, in the order of their numbers, linked both ways.

    Where a log used an id twice, the newest decision that has it is the one that is meant.
    """
    by_id = {one.text.id: one for one in found.decisions}
    later: dict[str, list[EntryDecision]] = {}
    for one in found.decisions:
        if one.text.supersedes is not None:
            later.setdefault(one.text.supersedes, []).append(one)
    for one in found.decisions:
        others = [other for other in later.get(one.text.id, ()) if other is not one]
        # What stands is what the newest of them says: it comes last.
        change = found.changes.get(one.text.id)
        others.sort(key=lambda other: change is not None and other.listed.seq == change.seq)
        before = by_id.get(one.text.supersedes or "")
        yield DecisionPage(
            one.number,
            one.text,
            one.made or None,
            one.messages,
            one.no_ref,
            None if before is None or before is one else _link(before, one.text.status),
            tuple(_link(other, other.text.status) for other in others),
        )


def _link(to: EntryDecision, status: str) -> PageLink:
    return PageLink(to.number, to.text.title, status)
