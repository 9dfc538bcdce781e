"""The damage of a ledger: the first bad entry, the last good head, what is provable on each side.

``damage_of`` reads what a run of the checks left (``tripod.verify.run``), and walks the entries
once more: roots are computed from the headers as they are stored, so that no stored tree and no
head row is believed. It prints nothing.

A *head* is a number of entries and the root of the tree over them, which somebody remembers: a seal
in the ledger or in its record, a pin, a commit, a receipt, a peer. A head *fits* where the entries
give its root. Each header commits to its body, so a head that fits also tells what the bodies were.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from operator import attrgetter
from typing import Literal, TypeAlias

from tripod.ledger import MERGED, RECORD, GitError, LedgerError, RawEntry, parse_header
from tripod.ledger.locator import FOLDER, has_record
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import open_seal, read_seal
from tripod.verify.anchors.damage_heads import (
    LedgerHead,
    known_heads,
    name_head,
    newest_good_head,
    oldest_broken_head,
    unheld_heads,
    walked_side,
)
from tripod.verify.anchors.git import Repository
from tripod.verify.check import CANNOT_TELL, FINDINGS, Finding, Outcome, Report, lets_accept
from tripod.verify.checks import CHECKS, bodies_present, ledger_missing
from tripod.verify.evidence import OpenEvidence
from tripod.verify.export_file import ExportFiles, FileError, RefFiles
from tripod.verify.finding import Accepted
from tripod.verify.isolation.rules import sights_of
from tripod.verify.isolation.sessions import Sight
from tripod.verify.listing import ListedEntry, listed_entry
from tripod.verify.peers.refs import replica_refs
from tripod.verify.peers.seals import RecordProblemError, SealedEntry, SealedRecord
from tripod.verify.rows import RowReader
from tripod.verify.scan.signatures import TOGETHER

SideName: TypeAlias = Literal["sealed", "unsealed", "bad", "after", "missing"]

_OF_LEDGER = frozenset(check.NAME for check in CHECKS if not lets_accept(check))
_BY_HEADS = frozenset({"pins-extend", "peers-agree", "trailers-agree", "record-agrees"})
"""Checks whose findings are about heads and files: their number is that of another entry."""
_REVIEWS = frozenset({"assessment-complete", "checkpoint-preceded", "pythia-fires"})
_READINGS = frozenset({"pythia-isolation", "never-read"})
_UNSEALED = (
    "Each entry names the hash of the one before it, and no head that fits covers them: who can "
    "write to the database could have made them anew, with the links."
)
_NOT_COMPARED = (
    "A head can be held only against as many entries as it covers: whether those that are here are "
    "the ones that it covered cannot be told by it."
)
_OF_FILES = frozenset({"append-only", "count-from-grep", "drift"})
_SEEN = 20  # findings of a sort that are given
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, LedgerError)


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """The first bad entry: ``seq``, or one from ``seq`` to ``last`` where it is not known exactly.

    ``sealed`` is the number from which on it lies, if nobody else has the key that seals the
    ledger: a head that is kept outside does not fit, and who has the key can make new seals.
    ``check`` found it, ``message`` says what is wrong, ``entry`` is it as far as it can be read
    (None: it is not there, or it is one of several). ``was`` is how the record has it that stands
    at ``where``, if one does.
    """

    seq: int
    last: int
    sealed: int
    check: str
    message: str
    entry: ListedEntry | None = None
    was: ListedEntry | None = None
    where: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether it is known which entry it is."""
        return self.seq == self.last


@dataclass(frozen=True, slots=True)
class DamageSide:
    """The entries from ``first`` up to, and without, ``stop``, and what is provable of them."""

    name: SideName
    first: int
    stop: int
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DamageFindings:
    """The findings that fail, the first 20 of each sort, and how many there are.

    ``reviews`` are about assessments, ``readings`` about a reviewer or another session that was
    shown what it must not see, ``altered`` about entries and heads. ``counts`` gives of each check
    with findings how many fail, and how many are warnings. ``sights`` say of each reader that a
    rule is about what it saw of the protected place. ``accepted`` are findings that the team
    accepted, the first 20, each with the entry that does so; ``accepted_count`` counts them.
    ``untold`` says of each check what it could not tell, and what its verdict leaves out; with the
    check '' it is about the whole run.
    """

    reviews: tuple[Finding, ...]
    readings: tuple[Finding, ...]
    altered: tuple[Finding, ...]
    counts: tuple[tuple[str, int, int], ...]
    sights: tuple[Sight, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    accepted_count: int = 0
    untold: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Damage:
    """What is known of a ledger after an incident; ``verdict`` is one line.

    ``size`` counts the entries that are there. ``heads`` are all that are known, the largest first.
    ``missing`` are the entries that a head covers and that are not there, as a range. ``sides``
    divide the entries. ``next`` are commands to run, each with why.
    """

    what: str
    verdict: str
    exit_code: int
    size: int
    first_bad: DamagedEntry | None
    heads: tuple[LedgerHead, ...]
    missing: tuple[int, int] | None
    sides: tuple[DamageSide, ...]
    findings: DamageFindings
    next: tuple[tuple[str, str], ...]

    @property
    def good(self) -> LedgerHead | None:
        """The newest head that fits and was made before the damage: the last good seal."""
        return newest_good_head(self.heads)

    @property
    def broken(self) -> LedgerHead | None:
        """The oldest head that the entries do not fit."""
        return oldest_broken_head(self.heads)


def damage_of(evidence: OpenEvidence, report: Report) -> Damage:
    """What a report, and the evidence that it was made of, tell of the ledger's damage.

    The evidence must still be open. Of a report with ``parts`` each part has its own evidence.
    """
    reader = None if evidence.scan is None and evidence.problem else evidence.ledger
    size, keys = 0, dict[str, int]()
    heads = tuple(unheld_heads(evidence)) if evidence.held is None else ()
    if reader is not None:
        side = walked_side(evidence, reader)
        heads, size, keys = (*known_heads(evidence, side), *heads), max(0, reader.size), side.keys
    good, broken = newest_good_head(heads), oldest_broken_head(heads)
    outside = newest_good_head([one for one in heads if one.is_outside or one is broken])
    most = max((one for one in heads if one.size > size), key=attrgetter("size"), default=None)
    missing = None if most is None else (size, most.size)
    # What a branch knows that is newer is no fault of this clone. What was not read is not missing.
    if not report.exit_code or report.problem:
        missing = most = None
    first = _first_bad(evidence, report, heads)
    if first is not None and most is not None and TOGETHER in first.message:
        first = None  # it was signed together with one that is missing, and is good itself
    if first is None and most is not None and size:
        what = f"{name_head(most)} covers {most.size} entries, and {size} are here"
        if most.is_outside:
            kept = max((one.size for one in heads if one.fits and one.is_outside), default=0)
            what += f"; by it, those from {kept} on may also be other ones" * (kept < size)
        first = DamagedEntry(size, size, size, most.source, what)
    if first is not None and reader is not None:
        first = _compared(evidence, reader, keys, first)
    found = [one for told in report.all_outcomes for one in told.findings]
    return Damage(
        report.what,
        _verdict(report, first, missing),
        report.exit_code,
        size,
        first,
        heads,
        missing,
        tuple(_sides(size, first, good, broken, most, outside=outside)),
        _sorted_findings(evidence, found, report),
        tuple(_next(evidence, report, first, missing)),
    )


# The first bad entry ----------------------------------------------------------------------------


def _first_bad(
    evidence: OpenEvidence, report: Report, heads: Sequence[LedgerHead]
) -> DamagedEntry | None:
    """The first entry that is not what it was, by the checks of the ledger and by the heads.

    A check names an entry. A head that does not fit only bounds it: it lies below that head, and
    not below a smaller one that fits. Who has the key of the ledger can also make new seals: where
    a head outside does not fit, only heads outside are a bound from below.
    """
    broken = oldest_broken_head(heads)
    named = None
    numbered = [
        (one.seq, one)
        for told in report.all_outcomes
        for one in told.findings
        if one.severity == "failure" and one.seq is not None and one.seq >= 0
        if _names_entry(evidence, one, is_seal_known=broken is not None)
    ]
    numbered += _of_blobs(evidence, report)
    if numbered:  # of entries signed together the others are good, where one is named itself
        seq, one = min(numbered, key=lambda each: (TOGETHER in each[1].message, each[0]))
        named = DamagedEntry(seq, seq, seq, one.check, one.message)
        if one.message.startswith("the head row says last"):  # those before may be made anew, too
            kept = max((head.size for head in heads if head.fits and head.size <= seq), default=0)
            named = replace(named, seq=kept, sealed=kept)
    if broken is None or (named is not None and named.seq < broken.size):
        return named
    below = [one for one in heads if one.fits and one.size < broken.size]
    sealed = max((one.size for one in below), default=0)
    # The ledger itself says who its peers are: they bound what a pin or a commit denies no better.
    sure = [
        one.size
        for one in below
        if not broken.is_outside
        or (one.is_outside and (one.source != "peer" or broken.source == "peer"))
    ]
    what = (
        f"{name_head(broken)} covers {broken.size} entries, and other ones are here: one was "
        "changed, put in or taken out, and those after it were linked anew"
    )
    last = broken.size - 1
    return DamagedEntry(max(sure, default=0), last, sealed, broken.source, what)


def _of_blobs(evidence: OpenEvidence, report: Report) -> Iterator[tuple[int, Finding]]:
    """The oldest entry that names a blob which is not there or is another, with what found that."""
    found = [
        one
        for told in report.all_outcomes
        for one in told.findings
        if one.check == bodies_present.NAME and one.seq is None and one.severity == "failure"
    ]
    reader = evidence.ledger
    if reader is None or not found:
        return
    judged: dict[str, bool] = {}
    for row in reader.raw():
        with suppress(*_BROKEN):
            for digest in tiles.bundle_blobs(row.body if type(row.body) is bytes else None):
                if digest not in judged:
                    blob = reader.blob(bytes.fromhex(digest))
                    judged[digest] = type(blob) is bytes and sha256(blob).hexdigest() == digest
                if not judged[digest]:
                    what = f"blob {digest[:12]}…, which it names, is not there or is another"
                    yield row.seq, replace(found[0], message=what)
                    return


def _names_entry(evidence: OpenEvidence, finding: Finding, *, is_seal_known: bool) -> bool:
    """Whether the number of a finding is that of an entry of the ledger which is bad itself."""
    if finding.check == "peers-agree":  # of an entry that keeps one of a peer
        return _kind(evidence, finding.seq) == MERGED and finding.where == f"entry {finding.seq}"
    if finding.check == "seals-open" and is_seal_known:
        # A seal may be good, and what it was made over is not; a key or a fork is bad itself.
        return _kind(evidence, finding.seq) != "seal.made"
    return finding.check in _OF_LEDGER - _BY_HEADS


def _compared(
    evidence: OpenEvidence, reader: RowReader, keys: Iterable[str], first: DamagedEntry
) -> DamagedEntry:
    """The first bad entry as the ledger has it, and as a record that the ledger's key sealed.

    Where only a range is known, the first entry that such a record has otherwise is the one.
    """
    for where, record in _records(evidence, keys):
        one = None
        with suppress(RecordProblemError, FileError, GitError, *_BROKEN):
            one = next((one for one in record if _is_otherwise(reader, one)), None)
        if one is None or one.seq > first.last:
            continue
        what = f"the record on {where} has it otherwise, and its seal fits that record"
        if first.is_exact and one.seq == first.seq:
            what = first.message
        was = listed_entry(reader, _row_of(one))
        first = DamagedEntry(one.seq, one.seq, one.seq, first.check, what, None, was, where)
        break
    return replace(first, entry=_listed(reader, first.seq)) if first.is_exact else first


def _is_otherwise(reader: RowReader, one: SealedEntry) -> bool:
    """Whether the ledger has another entry than the record, or none; an erased body is not."""
    row = next(reader.raw(one.seq, one.seq + 1), None)
    if row is None or row.header != one.header:
        return True
    erased = row.body is None or one.said.body is None
    return not erased and (row.salt, row.body) != (one.said.salt, one.said.body)


def _row_of(one: SealedEntry) -> RawEntry:
    head = parse_header(one.header)
    return RawEntry(one.seq, head.id, head.kind, head.stream, one.header, *one.said)


def _records(evidence: OpenEvidence, keys: Iterable[str]) -> Iterator[tuple[str, SealedRecord]]:
    """The records of this ledger beside it and on refs, each with its place.

    One counts whose seal is by a key that is known of the ledger, and whose tiles are those of the
    seal. They lie open as long as they are asked for.
    """
    known = [*evidence.database.keys, *map(VerifierKey.parse, keys)]
    origins = {evidence.line(0), evidence.line(max(0, evidence.rows - 1))}

    def sealed(files: ExportFiles) -> Iterator[SealedRecord]:
        with suppress(RecordProblemError, FileError, GitError, *_BROKEN):
            note = files.seal_note()
            seal = open_seal(note, known + evidence.outside.keys_of(read_seal(note).origin)).seal
            if seal.origin in origins and files.bodies:
                yield SealedRecord(files, seal)

    root, repository = evidence.root, evidence.outside.repository
    if root is not None and not evidence.loaded and has_record(root):
        yield from ((RECORD, one) for one in sealed(ExportFiles(f"{root}/{RECORD}")))
    if repository is None:
        return
    with suppress(GitError), Repository(f"{repository}/{FOLDER}") as opened:
        for ref in replica_refs(opened):
            with suppress(GitError):
                files = RefFiles(opened, ref.commit, ref.replica) if ref.commit else None
                for one in sealed(files) if files is not None else ():
                    yield ref.ref, one


def _kind(evidence: OpenEvidence, seq: int | None) -> str:
    """The kind of an entry, '' where it cannot be read."""
    if evidence.ledger is None or seq is None or not 0 <= seq < 2**63:
        return ""
    with suppress(*_BROKEN):
        row = next(evidence.ledger.raw(seq, seq + 1), None)
        return "" if row is None else str(row.kind)
    return ""


def _listed(reader: RowReader, seq: int) -> ListedEntry | None:
    with suppress(*_BROKEN):
        row = next(reader.raw(seq, seq + 1), None)
        return None if row is None else listed_entry(reader, row)
    return None


# What is provable -------------------------------------------------------------------------------


def _sides(
    size: int,
    first: DamagedEntry | None,
    good: LedgerHead | None,
    broken: LedgerHead | None,
    most: LedgerHead | None,
    *,
    outside: LedgerHead | None,
) -> Iterator[DamageSide]:
    """The entries in ranges, each with what can be shown of it."""
    end = size if first is None else min(first.sealed, size)
    sealed = 0 if good is None else min(good.size, end)
    if good is not None and sealed:
        yield DamageSide("sealed", 0, sealed, tuple(_sealed(good, first, broken, outside)))
    if end > sealed and first is not None and first.where:
        what = (
            f"The record on {first.where} has these entries as they are here. It is whole, and its "
            "seal is by a key of this ledger."
        )
        yield DamageSide("sealed", sealed, end, (what,))
    elif end > sealed:
        yield DamageSide("unsealed", sealed, end, (_UNSEALED,))
    if first is not None and first.sealed < size:
        stop = min(first.last + 1, size)
        yield DamageSide("bad", first.sealed, stop, tuple(_bad(first, good, broken)))
        if stop < size:
            yield DamageSide("after", stop, size, tuple(_after(stop, good)))
    if most is not None:
        what = (
            f"{_sentence(name_head(most))} covers {most.size} entries, and {size} are here: the "
            "newest were cut off, or this is an older copy. Nothing here says what they held."
        )
        more = (_NOT_COMPARED,) if most.is_outside and size else ()
        yield DamageSide("missing", size, most.size, (what, *more))


def _sealed(
    good: LedgerHead,
    first: DamagedEntry | None,
    broken: LedgerHead | None,
    outside: LedgerHead | None,
) -> Iterator[str]:
    by = f", signed by {good.by}" if good.by else ", which nobody signed"
    yield (
        f"{_sentence(name_head(good))} covers the first {good.size} entries{by}, and they have "
        "its root: none of their headers was changed, removed or put in since."
    )
    if good.is_outside and good.source == "receipt":
        yield "Somebody else signed it as well: the key of this ledger alone does not make it."
    elif good.is_outside:
        yield "It is kept outside of the ledger: a change of the ledger does not change it."
    else:
        yield (
            "It is kept with the ledger: who holds that key could have made the entries "
            "and the seal anew. A pin, a commit or a peer that holds a head would show that."
        )
    if not good.is_outside and outside is not None:
        yield (
            f"{_sentence(name_head(outside))} shows it for the first {outside.size} entries: it is "
            "not kept with the ledger, and fits."
        )
    if not good.is_outside and broken is not None and broken.is_outside:
        yield (
            f"{_sentence(name_head(broken))} is kept outside, covers {broken.size} entries and "
            "does not fit: if the key is in other hands, entries may be bad from "
            f"{0 if first is None else first.seq} on."
        )
    if first is not None and first.is_exact and first.seq < good.size:
        yield (
            f"It covers the header of entry {first.seq} too: what its body was is fixed by the "
            "hash in that header, and an older copy can give it back."
        )


def _bad(first: DamagedEntry, good: LedgerHead | None, broken: LedgerHead | None) -> Iterator[str]:
    if first.is_exact:
        yield f"Entry {first.seq}: {first.message}."
    else:
        yield (
            f"One of the entries {first.sealed} to {first.last} is the first bad one: "
            f"{first.message}."
        )
    if broken is not None and broken.size > first.seq:
        yield (
            f"{_sentence(name_head(broken))} does not fit: it covers {broken.size} entries, as "
            "they were before."
        )
    if first.is_exact and good is not None and good.size > first.seq:
        yield f"{_sentence(name_head(good))} fits the header of it."
    if first.was is not None:
        yield f"The record on {first.where} has the entry as it was when it was sealed."


def _after(start: int, good: LedgerHead | None) -> Iterator[str]:
    if good is not None and good.size > start:
        yield (
            f"{_sentence(name_head(good))} covers the headers up to entry {good.size - 1}: they "
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
    evidence: OpenEvidence, found: Sequence[Finding], report: Report
) -> DamageFindings:
    outcomes = report.all_outcomes
    reviews: list[Finding] = []
    readings: list[Finding] = []
    altered: list[Finding] = []
    for one in found:
        if one.severity != "failure":
            continue
        if one.check in _READINGS:
            readings.append(one)
        elif one.check in _REVIEWS or _kind(evidence, one.seq).startswith("pythia."):
            reviews.append(one)
        elif one.check in _OF_LEDGER:
            altered.append(one)
    return DamageFindings(
        tuple(reviews[:_SEEN]),
        tuple(readings[:_SEEN]),
        tuple(altered[:_SEEN]),
        tuple(_kinds(outcomes)),
        tuple(sight for told in outcomes for sight in sights_of(told)),
        tuple(one for told in outcomes for one in told.accepted)[:_SEEN],
        report.accepted,
        tuple(_untold(report)),
    )


def _untold(report: Report) -> Iterator[tuple[str, str]]:
    for told in report.all_outcomes:
        if told.verdict == CANNOT_TELL:
            yield told.check, f"it cannot tell: {told.reason}"
        yield from ((told.check, f"its verdict leaves out: {one}") for one in told.exceptions)
    yield from (("", note) for note in report.notes)


def _kinds(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, int, int]]:
    for told in outcomes:
        if told.verdict == FINDINGS and told.failures + told.warnings:
            yield told.check, told.failures, told.warnings


def _numbers(first: int, stop: int) -> str:
    """The entries of a range as the subject of a sentence, with its verb."""
    return f"entry {first} is" if stop == first + 1 else f"entries {first} to {stop - 1} are"


def _verdict(report: Report, first: DamagedEntry | None, missing: tuple[int, int] | None) -> str:
    if report.problem:
        return f"the ledger cannot be judged: {report.problem}"
    gone = [one for told in report.all_outcomes for one in told.findings]
    gone = [one for one in gone if one.check == "ledger-missing" and one.severity == "failure"]
    if gone:
        return f"the ledger is gone: {gone[0].message}"
    if first is not None and missing is not None and first.seq >= missing[0]:
        return f"the ledger is shorter than it was: {_numbers(*missing)} missing"
    if first is not None and first.is_exact:
        return f"the ledger is damaged: entry {first.seq} is the first bad one"
    if first is not None:
        which = f"one of {first.sealed} to {first.last}"
        key = f", or of {first.seq} to {first.last} if its key is in other hands"
        key = key if first.seq < first.sealed else ""
        return f"the ledger is damaged: the first bad entry is {which}{key}"
    if report.failures:
        rules = sum(1 for told in report.all_outcomes if told.failures)
        what = "1 rule is broken" if rules == 1 else f"{rules} rules are broken"
        damaged = any(told.failures and told.check in _OF_LEDGER for told in report.all_outcomes)
        return (
            f"{what}; no bad entry is named"
            if damaged
            else f"{what}; nothing bad was found in the ledger itself"
        )
    if report.exit_code:
        untold = ", ".join(report.untold) or "nothing was judged"
        return f"nothing bad was found, and not all could be judged: {untold}"
    accepted = "1 finding is" if report.accepted == 1 else f"{report.accepted} findings are"
    accepted = f"; {accepted} accepted" if report.accepted else ""
    return f"nothing bad was found: all required checks are clean{accepted}"


def _holds_record(root: str) -> bool:
    """Whether a team directory, or a ref of the repository around it, has a record."""
    with suppress(GitError), Repository(root) as repository:
        return has_record(root) or any(True for _ in replica_refs(repository))
    return has_record(root)


def _next(
    evidence: OpenEvidence,
    report: Report,
    first: DamagedEntry | None,
    missing: tuple[int, int] | None,
) -> Iterator[tuple[str, str]]:
    """Commands that go on from here, each with what it does; nothing is repaired here."""
    what = "." if report.what.startswith("refs/") else shlex.quote(report.what)
    failing = [told.check for told in report.all_outcomes if told.failures]
    if first is not None or missing is not None or report.problem or not evidence.has_ledger:
        yield f"tripod audit {what} --bundle DIR", "keep what is there before anything is repaired"
    if first is not None or missing is not None:
        yield f"tripod audit {what} COPY", "show where a clone, a backup or a record parts from it"
    is_gone = ledger_missing.NAME in failing and not report.what.startswith("refs/")
    is_bad = bool(first or missing or report.problem or not evidence.has_ledger)
    if is_gone or (evidence.root is not None and is_bad):
        if evidence.root is None or _holds_record(evidence.root):
            yield "tripod restore", "put this replica's own record back; the damaged file is kept"
        else:
            yield "tripod restore FILE", "put a backup in its place: no record is here to restore"
    if evidence.root is not None and not _OF_FILES.isdisjoint(failing):
        yield "tripod doctor", "name what of the files can be mended, and with --fix mend it"
    whole = [
        told
        for told in report.all_outcomes
        if told.check == "sequence" and all(one.seq is None for one in told.findings)
    ]
    if evidence.root is not None and any(told.failures for told in whole):
        yield "tripod rebuild", "make tables, nodes and triggers anew from the entries"
    for check in failing:
        if check in _READINGS | _REVIEWS:
            yield f"tripod verify --explain {check}", "say what that finding shows, and what to do"
    if report.exit_code:
        yield f"tripod verify {what} --verbose", "list every check and every finding"
