"""The damage of a ledger: the first bad entry, the last good head, what is provable on each side.

``damage_of`` reads what a run of the checks left (``tripod.verify.run``), and walks the entries
once more: roots are computed from the headers as they are stored, so that no stored tree and no
head row is believed. It prints nothing.

A *head* is a number of entries and the root of the tree over them, which somebody remembers: a seal
in the ledger or in its record, a pin, a commit, a receipt, a peer. A head *fits* where the entries
give its root. Each header commits to its body, so a head that fits also tells what the bodies were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from tripod.ledger import RECORD, LedgerError
from tripod.ledger.files import read_plain_file
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import MAX_NOTE
from tripod.verify.check import FINDINGS, Finding, Outcome, Report, lets_accept
from tripod.verify.checks import CHECKS, pythia_isolation, seals_open, sequence
from tripod.verify.difference import FoundSeal, LedgerSide, find_seals, walk_entries
from tripod.verify.evidence import OpenEvidence
from tripod.verify.listing import ListedEntry, listed_entry
from tripod.verify.rows import RowReader, head_row

HeadSource: TypeAlias = Literal["seal", "record", "pin", "git", "receipt", "peer", "head row"]
"""Who remembers a head; the ``head row`` is the ledger's own count, which nobody signed."""

SideName: TypeAlias = Literal["sealed", "unsealed", "bad", "after", "missing"]

_OF_LEDGER = frozenset(check.NAME for check in CHECKS if not lets_accept(check))
_BY_HEADS = frozenset({"pins-extend", "peers-agree", "trailers-agree", "record-agrees"})
"""Checks whose findings are about heads and files: their number is that of another entry."""
_REVIEWS = frozenset({"assessment-complete", "checkpoint-preceded", "pythia-fires"})
_READINGS = frozenset({pythia_isolation.NAME, "never-read"})
_UNSEALED = (
    "Each entry names the hash of the one before it, and no head that fits covers them: whoever "
    "can write to the database could have made them anew, with the links."
)
_SEEN = 20  # findings of a sort that are given
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, LedgerError)


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """The first bad entry: ``seq``, or one from ``seq`` to ``last`` where it is not known exactly.

    ``check`` found it, ``message`` says what is wrong, ``entry`` is it as far as it can be read
    (None: it is not there, or it is one of several). ``was`` is how a record has it, if one does.
    """

    seq: int
    last: int
    check: str
    message: str
    entry: ListedEntry | None = None
    was: ListedEntry | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it is known which entry it is."""
        return self.seq == self.last


@dataclass(frozen=True, slots=True)
class RememberedHead:
    """A head of this ledger: over how many entries, the root in hex, where it stands, who made it.

    ``by`` names the key or the person, '' where nobody signed it. ``fits``: whether the entries
    have this root; None where there are fewer entries, or one of them cannot be read.
    ``is_outside``: it is not kept in the ledger, so who changes the ledger does not change it.
    """

    size: int
    root: str
    source: HeadSource
    where: str
    by: str
    fits: bool | None
    is_outside: bool


@dataclass(frozen=True, slots=True)
class DamageSide:
    """The entries from ``first`` up to, and without, ``stop``, and what is provable of them."""

    name: SideName
    first: int
    stop: int
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Damage:
    """What is known of a ledger after an incident; ``verdict`` is one line.

    ``size`` counts the entries that are there. ``heads`` are all that are known, the largest first;
    ``good`` is the newest that fits, ``broken`` the oldest that does not. ``missing`` are the
    entries that a head covers and that are not there, as a range. ``sides`` divide the entries.
    ``reviews`` are findings about assessments, ``readings`` about a reviewer, or another session,
    that was shown what it must not see, ``altered`` about entries and heads. ``kinds`` counts the
    findings of each check: those that fail, warnings. ``next`` are commands to run, each with why.
    """

    what: str
    verdict: str
    exit_code: int
    size: int
    first_bad: DamagedEntry | None
    heads: tuple[RememberedHead, ...]
    good: RememberedHead | None
    broken: RememberedHead | None
    missing: tuple[int, int] | None
    sides: tuple[DamageSide, ...]
    reviews: tuple[Finding, ...]
    readings: tuple[Finding, ...]
    altered: tuple[Finding, ...]
    kinds: tuple[tuple[str, int, int], ...]
    next: tuple[tuple[str, str], ...]


def damage_of(evidence: OpenEvidence, report: Report) -> Damage:
    """What a report, and the evidence that it was made of, tell of the ledger's damage.

    The evidence must still be open. Of a report with ``parts`` each part has its own evidence.
    """
    reader = evidence.ledger
    heads: tuple[RememberedHead, ...] = ()
    size = 0
    if reader is not None and not _is_closed(evidence):
        with suppress(*_BROKEN):
            heads = tuple(_heads(evidence, reader))
        size = max(0, reader.size)
    good = max((one for one in heads if one.fits), key=_trust, default=None)
    broken = min((one for one in heads if one.fits is False), key=_size, default=None)
    most = max((one for one in heads if one.size > size), key=_size, default=None)
    missing = None if most is None else (size, most.size)
    first = _first_bad(report, good, broken)
    if first is None and missing is not None and most is not None:
        what = f"{_name_head(most)} covers {most.size} entries, and {size} are here"
        first = DamagedEntry(size, most.size - 1, "pins-extend", what)
    if first is not None and first.is_exact and reader is not None and 0 <= first.seq < size:
        first = replace(first, entry=_listed(reader, first.seq))
    found = [one for told in report.all_outcomes for one in told.findings]
    reviews, readings, altered = _sorted_findings(evidence, found)
    return Damage(
        report.what,
        _verdict(report, first, missing),
        report.exit_code,
        size,
        first,
        heads,
        good,
        broken,
        missing,
        tuple(_sides(size, first, good, broken, most)),
        reviews,
        readings,
        altered,
        tuple(_kinds(report.all_outcomes)),
        tuple(_next(evidence, report, first, missing)),
    )


def _is_closed(evidence: OpenEvidence) -> bool:
    return evidence.scan is None and bool(evidence.problem)


def _size(head: RememberedHead) -> int:
    return head.size


def _trust(head: RememberedHead) -> tuple[int, bool]:
    return head.size, head.is_outside


# Heads ------------------------------------------------------------------------------------------


def _heads(evidence: OpenEvidence, reader: RowReader) -> Iterator[RememberedHead]:
    """Every head of this ledger that is known, held against the entries; the largest first."""
    note = _record_note(evidence)
    side = LedgerSide(reader, () if note is None else ((f"{RECORD}/{tiles.SEAL}", note),))
    find_seals(side)
    found = [
        (
            one,
            _of_seal(one, evidence),
            "the key " + one.key.split("+")[1],
            one.where.startswith(RECORD),
        )
        for one in side.seals
        if one.key
    ]
    found += [(FoundSeal(*one[:2], "", one[2]), *one[3:]) for one in _outside(evidence)]
    row = head_row(reader.db)
    for _ in walk_entries(side, {one[0].size for one in found}):
        pass
    if row is not None and type(row.size) is int and row.size > side.size:
        one = FoundSeal(row.size, b"", "", "the head row of the database")
        found.append((one, "head row", "", False))
    seen = set()
    for one, source, by, outside in sorted(found, key=lambda each: -each[0].size):
        name = (one.size, one.root, one.where)
        if name not in seen:
            seen.add(name)
            fits = side.fits(one)
            yield RememberedHead(one.size, one.root.hex(), source, one.where, by, fits, outside)


def _of_seal(seal: FoundSeal, evidence: OpenEvidence) -> HeadSource:
    return "record" if evidence.loaded or seal.where.startswith(RECORD) else "seal"


def _outside(
    evidence: OpenEvidence,
) -> Iterator[tuple[int, bytes, str, HeadSource, str, bool]]:
    """The heads that pins, commits, receipts and peers remember, of this ledger alone."""
    held = evidence.held
    if held is None:
        return
    names = {evidence.line(seq) for seq in (0, max(0, evidence.rows - 1))}
    for known in (*held.agreeing, *held.disagreeing):
        seal = known.seal
        yield seal.size, seal.root, known.where, known.method, _signer(known), True
    for told in filter(None, (held.peers, held.trailers)):
        for one in (*told.agreeing, *told.disagreeing):
            if one.seal.origin in names and one.by not in names:
                source: HeadSource = "git" if one.is_trailer else "peer"
                yield one.seal.size, one.seal.root, one.where, source, _signer(one), True


def _signer(known: Any) -> str:
    """Who signed a head that is remembered outside, as its note says; '' for nobody."""
    cosigned = [f"the witness {one.key.name}" for one in getattr(known, "cosigned", ())]
    own = [] if known.note is None else [f"the key of {known.seal.origin}"]
    return ", ".join((*own, *cosigned))


def _record_note(evidence: OpenEvidence) -> bytes | None:
    """The seal of the files that the ledger was read from, or of the team's record."""
    root = evidence.database.source or (evidence.root and f"{evidence.root}/{RECORD}")
    with suppress(OSError):
        return read_plain_file(f"{root}/{tiles.SEAL}", MAX_NOTE) if root else None
    return None


def _name_head(head: RememberedHead) -> str:
    """A head in words: what it is, and where it stands."""
    if head.source in ("seal", "record"):
        return f"the seal in {head.where}"
    if head.source == "receipt":
        return head.where
    return {"pin": "the pin ", "git": "the head in ", "peer": "the head that is in "}.get(
        head.source, ""
    ) + head.where.removeprefix("the pin ")


# The first bad entry ----------------------------------------------------------------------------


def _first_bad(
    report: Report, good: RememberedHead | None, broken: RememberedHead | None
) -> DamagedEntry | None:
    """The first entry that is not what it was, by the checks of the ledger and by the heads.

    A check names an entry. A head that does not fit only bounds it: it lies below that head, and
    not below a smaller one that fits.
    """
    findings = (
        one
        for told in report.all_outcomes
        if told.check in _OF_LEDGER - _BY_HEADS
        and not (told.check == seals_open.NAME and broken is not None)
        for one in told.findings
        if one.severity == "failure"
    )
    numbered = [(one.seq, one) for one in findings if one.seq is not None and one.seq >= 0]
    named = None
    if numbered:
        seq, one = min(numbered, key=lambda each: each[0])
        named = DamagedEntry(seq, seq, one.check, one.message)
    if broken is None or (named is not None and named.seq < broken.size):
        return named
    low = good.size if good is not None and good.size < broken.size else 0
    what = (
        f"{_name_head(broken)} covers {broken.size} entries, and they are not the ones that are "
        "here: one of these was changed, and those after it were linked anew"
    )
    return DamagedEntry(low, broken.size - 1, sequence.NAME, what)


def _listed(reader: RowReader, seq: int) -> ListedEntry | None:
    with suppress(*_BROKEN):
        row = next(reader.raw(seq, seq + 1), None)
        return None if row is None else listed_entry(reader, row)
    return None


# What is provable -------------------------------------------------------------------------------


def _sides(
    size: int,
    first: DamagedEntry | None,
    good: RememberedHead | None,
    broken: RememberedHead | None,
    most: RememberedHead | None,
) -> Iterator[DamageSide]:
    """The entries in ranges, each with what can be shown of it."""
    end = size if first is None else min(first.seq, size)
    sealed = 0 if good is None else min(good.size, end)
    if good is not None and sealed:
        yield DamageSide("sealed", 0, sealed, tuple(_sealed(good, first)))
    if end > sealed:
        yield DamageSide("unsealed", sealed, end, (_UNSEALED,))
    if first is not None and first.seq < size:
        stop = min(first.last + 1, size)
        yield DamageSide("bad", first.seq, stop, tuple(_bad(first, good, broken)))
        if stop < size:
            yield DamageSide("after", stop, size, tuple(_after(stop, good)))
    if most is not None:
        what = (
            f"{_sentence(_name_head(most))} covers {most.size} entries, and {size} are here: the "
            "newest were cut off, or this is an older copy. Nothing here says what they held."
        )
        yield DamageSide("missing", size, most.size, (what,))


def _sealed(good: RememberedHead, first: DamagedEntry | None) -> Iterator[str]:
    by = f", signed by {good.by}" if good.by else ", which nobody signed"
    yield (
        f"{_sentence(_name_head(good))} covers the first {good.size} entries{by}, and they have "
        "its root: none of their headers was changed, removed or put in since."
    )
    if good.is_outside:
        yield "It is kept outside of the ledger: a change of the ledger does not change it."
    else:
        yield (
            "It stands in the ledger itself: whoever holds that key could have made the entries "
            "and the seal anew. A pin, a commit or a peer that holds a head would show that."
        )
    if first is not None and first.seq < good.size:
        yield (
            f"It covers the header of entry {first.seq} too: what its body was is fixed by the "
            "hash in that header, and an older copy can give it back."
        )


def _bad(
    first: DamagedEntry, good: RememberedHead | None, broken: RememberedHead | None
) -> Iterator[str]:
    if first.is_exact:
        yield f"Entry {first.seq}: {first.message}."
    else:
        yield (
            f"One of the entries {first.seq} to {first.last} is the first bad one: {first.message}."
        )
    if broken is not None and broken.size > first.seq:
        yield (
            f"{_sentence(_name_head(broken))} does not fit: it covers {broken.size} entries, as "
            "they were before."
        )
    if first.is_exact and good is not None and good.size > first.seq:
        yield f"{_sentence(_name_head(good))} fits the header of it."


def _after(start: int, good: RememberedHead | None) -> Iterator[str]:
    if good is not None and good.size > start:
        yield (
            f"{_sentence(_name_head(good))} covers the headers up to entry {good.size - 1}: they "
            "are those that were sealed."
        )
    yield (
        "Of what follows, a body that its header commits to, and a signature by an actor's key, "
        "still hold for that entry alone. Its place, and that nothing was removed before it, rest "
        "on the links, and those lead to the bad place."
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# Findings and commands --------------------------------------------------------------------------


def _sorted_findings(
    evidence: OpenEvidence, found: Sequence[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[Finding, ...]]:
    reviews: list[Finding] = []
    readings: list[Finding] = []
    altered: list[Finding] = []
    for one in found:
        if one.severity != "failure":
            continue
        if one.check in _READINGS:
            readings.append(one)
        elif one.check in _REVIEWS or _is_of_review(evidence, one):
            reviews.append(one)
        elif one.check in _OF_LEDGER:
            altered.append(one)
    return tuple(reviews[:_SEEN]), tuple(readings[:_SEEN]), tuple(altered[:_SEEN])


def _is_of_review(evidence: OpenEvidence, finding: Finding) -> bool:
    """Whether a finding is about an entry of a review, such as an assessment."""
    seq = finding.seq
    if seq is None or evidence.ledger is None or not 0 <= seq < 2**63:
        return False
    with suppress(*_BROKEN):
        row = next(evidence.ledger.raw(seq, seq + 1), None)
        return row is not None and str(row.kind).startswith("pythia.")
    return False


def _kinds(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, int, int]]:
    for told in outcomes:
        if told.verdict == FINDINGS and told.failures + told.warnings:
            yield told.check, told.failures, told.warnings


def _verdict(report: Report, first: DamagedEntry | None, missing: tuple[int, int] | None) -> str:
    if report.problem:
        return f"the ledger cannot be judged: {report.problem}"
    if first is not None and missing is not None and first.seq >= missing[0]:
        return f"the ledger is cut off: entries {missing[0]} to {missing[1] - 1} are missing"
    if first is not None and first.is_exact:
        return f"the ledger is damaged: entry {first.seq} is the first bad one"
    if first is not None:
        return f"the ledger is damaged: the first bad entry is one of {first.seq} to {first.last}"
    if report.failures:
        rules = sum(1 for told in report.all_outcomes if told.failures)
        what = "1 rule is broken" if rules == 1 else f"{rules} rules are broken"
        damaged = any(told.failures and told.check in _OF_LEDGER for told in report.all_outcomes)
        return (
            f"{what}; no bad entry is named" if damaged else f"{what}; the ledger itself is whole"
        )
    if report.exit_code:
        untold = ", ".join(report.untold) or "nothing was judged"
        return f"nothing bad was found, and not all could be judged: {untold}"
    return "nothing bad was found: all required checks are clean"


def _next(
    evidence: OpenEvidence,
    report: Report,
    first: DamagedEntry | None,
    missing: tuple[int, int] | None,
) -> Iterator[tuple[str, str]]:
    """Commands that go on from here, each with what it does; nothing is repaired here."""
    what = report.what
    of_files = {told.check for told in report.all_outcomes if told.failures} - _OF_LEDGER
    if first is not None or missing is not None or report.problem or not evidence.has_ledger:
        yield f"tripod audit {what} --bundle DIR", "keep what is there before anything is repaired"
    if first is not None or missing is not None:
        yield f"tripod audit {what} COPY", "show where a clone, a backup or a record parts from it"
    if evidence.root is not None and (
        first or missing or report.problem or not evidence.has_ledger
    ):
        yield "tripod restore", "put this replica's own record back; the damaged file is kept"
    if evidence.root is not None and of_files:
        yield "tripod doctor", "name what of the files can be mended, and with --fix mend it"
    whole = [
        told
        for told in report.all_outcomes
        if told.check == sequence.NAME and all(one.seq is None for one in told.findings)
    ]
    if evidence.root is not None and any(told.failures for told in whole):
        yield "tripod rebuild", "make tables, nodes and triggers anew from the entries"
    if report.exit_code:
        yield f"tripod verify {what} --verbose", "list every check and every finding"
