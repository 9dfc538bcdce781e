"""What a check is: a name, the evidence that it needs, its manual, a function that judges. Pure.

A check is a module, or any object, with the members of ``Check``. The built-in ones are listed in
``tripod.verify.checks``; an installed package can add more (``tripod.verify.run``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from tripod.ledger import (
    Draft,
    LedgerError,
    LedgerReader,
    entry_leaf_hash,
    parse_entry_time,
    parse_header,
)
from tripod.projections.pieces import Found, Remnant
from tripod.projections.projection import File, Source
from tripod.verify.anchors.growth import FileHistory, ReadVersions, shared_start
from tripod.verify.finding import Accepted
from tripod.verify.finding import Finding as Finding
from tripod.verify.finding import Findings as Findings
from tripod.verify.finding import Severity as Severity
from tripod.verify.finding import Weight as Weight

if TYPE_CHECKING:
    from tripod.verify.isolation.sessions import SessionsAtHand

POLICY, RULES, AUTHORITIES = POLICIES = ("policy.tlog", "policy.yaml", "policy.pem")
"""Files of the team: whose signatures count, what must be there, whose timestamps count."""

OLDER = "an older version of tripod folded the tables"
"""The fault of the table ``folds`` where the tables are another version's, and not compared."""

Verdict = Literal["clean", "findings", "cannot tell", "not applicable"]
Coverage = dict[str, int | str]
"""What a check saw, what was missing, what was opaque: a word for each number."""

CLEAN: Verdict = "clean"
FINDINGS: Verdict = "findings"
EXCEPT = "clean, except"  # how a clean verdict reads that leaves something out
CANNOT_TELL: Verdict = "cannot tell"
NOT_APPLICABLE: Verdict = "not applicable"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A check's verdict. ``past`` marks a *cannot tell* that is about the time before adoption.

    ``left_out`` counts by weight the findings that were not kept; ``advice`` changes no exit code.
    ``accepted`` are findings that the team accepted, the first of ``accepted_count``: they stand
    nowhere else.
    """

    check: str
    verdict: Verdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    coverage: Coverage = field(default_factory=dict)
    required: bool = False
    past: bool = False
    advice: bool = False
    left_out: dict[Weight, int] = field(default_factory=dict)
    exceptions: tuple[str, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    accepted_count: int = 0

    @property
    def said(self) -> str:
        """The verdict in words: one with exceptions or accepted findings says so itself."""
        excepting = self.exceptions or self.accepted_count
        return EXCEPT if excepting and self.verdict == CLEAN else self.verdict

    def cannot_tell(self, reason: str, *, past: bool = False) -> Outcome:
        """Keep the findings, and give no verdict: the evidence does not suffice for one."""
        return replace(self, verdict=CANNOT_TELL, reason=reason, past=past)

    @property
    def failures(self) -> int:
        """How many of the findings fail the run."""
        return self._of("failure")

    @property
    def warnings(self) -> int:
        """How many of the findings are reported and fail nothing."""
        return self._of("warning")

    @property
    def advised(self) -> int:
        """How many of the findings are advice."""
        return self._of("advice")

    def _of(self, severity: Severity) -> int:
        kept = sum(finding.severity == severity for finding in self.findings)
        return kept + sum(n for weight, n in self.left_out.items() if weight[0] == severity)


@dataclass(frozen=True, slots=True)
class Anchored:
    """How far heads remembered outside vouch for the ledger: each level's size and source in words.

    ``tail`` counts the entries after the largest, ``seconds`` is the age of the first of those.
    """

    level: str
    sizes: dict[str, tuple[int, str]]
    tail: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Subject:
    """What was judged; none of it is a claim of the evidence.

    ``team`` is the team directory with every link followed, ``ledger`` the database, or the folder
    of files, that the ledger was read from; '' without one. ``history`` says in words what was
    looked at of the repository with the top ``repository``, or why nothing was. ``settings`` are
    the files with rules, ``formats`` a folder and reports below it that one asks for (NAME=PATH).
    """

    team: str
    ledger: str
    repository: str | None
    history: str
    settings: tuple[str, ...] = ()
    formats: tuple[str, tuple[str, ...]] = "", ()


class Since(NamedTuple):
    """The first ``size`` entries were judged by themselves as well; ``why``: who knew them.

    What was found there already is left out of the report: ``left_out`` counts it by check.
    """

    size: int
    why: str
    left_out: dict[str, int]


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes in the order of the checks. ``head`` is size and root in hex, if there is one.

    ``sealed`` is the newest seal in the ledger: how many entries it covers, when it was made by the
    host's clock, how many seconds ago. A record has its own, with the time of the newest entry.
    ``problem`` says why nothing could be judged, ``notes`` above all what was not looked at.
    ``since`` is there where only what is new was to be judged. ``parts`` are whole reports, of a
    record each, where there are several to judge: what they count is counted here as well.
    """

    what: str
    outcomes: tuple[Outcome, ...]
    head: tuple[int, str] | None = None
    problem: str = ""
    sealed: tuple[int, str, int] | None = None
    anchored: Anchored | None = None
    notes: tuple[str, ...] = ()
    subject: Subject | None = None
    since: Since | None = None
    parts: tuple[Report, ...] = ()

    @property
    def all_outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes, and those of the parts."""
        return (*self.outcomes, *(one for part in self.parts for one in part.all_outcomes))

    @property
    def failures(self) -> int:
        """How many findings fail the run."""
        return sum(outcome.failures for outcome in self.all_outcomes)

    @property
    def warnings(self) -> int:
        """How many findings are reported and fail nothing."""
        return sum(outcome.warnings for outcome in self.all_outcomes)

    @property
    def advised(self) -> int:
        """How many findings are advice."""
        return sum(outcome.advised for outcome in self.all_outcomes)

    @property
    def accepted(self) -> int:
        """How many findings the team accepted: they are counted nowhere else."""
        return sum(outcome.accepted_count for outcome in self.all_outcomes)

    @property
    def untold(self) -> tuple[str, ...]:
        """Required checks that cannot tell, about the time that is theirs to judge."""
        return tuple(
            outcome.check
            for outcome in self.all_outcomes
            if outcome.verdict == CANNOT_TELL and outcome.required and not outcome.past
        )

    @property
    def judged(self) -> int:
        """How many checks came to a verdict on what they saw; advice does not count."""
        return sum(
            outcome.verdict in (CLEAN, FINDINGS) and not outcome.advice
            for outcome in self.all_outcomes
        )

    @property
    def exit_code(self) -> int:
        """1: a rule is broken. 3: nothing, or not enough, could be judged. 0: clean."""
        if self.failures:
            return 1
        if self.parts:
            return max(part.exit_code for part in self.parts)
        return 3 if self.problem or self.untold or not self.judged else 0


def outcome(
    check: str,
    findings: Iterable[Finding],
    coverage: Mapping[str, int | str],
    *,
    required: bool = False,
) -> Outcome:
    """The verdict of a check that could look: clean, or its findings.

    Give many findings as an iterator or a ``Findings``, so that they are never all in memory.
    """
    found = findings if isinstance(findings, Findings) else Findings()
    if found is not findings:
        found.extend(findings)
    verdict = FINDINGS if found else CLEAN
    left_out = found.left_out()
    return Outcome(check, verdict, "", tuple(found), dict(coverage), required, left_out=left_out)


def not_applicable(check: str, reason: str, *, required: bool = False) -> Outcome:
    """There is nothing that this check is about."""
    return Outcome(check, NOT_APPLICABLE, reason, required=required)


def cannot_tell(check: str, reason: str, *, required: bool = False) -> Outcome:
    """There is something to judge, and not the evidence to do it by."""
    return Outcome(check, CANNOT_TELL, reason, required=required)


@dataclass
class FindingTally:
    """Findings by check, for passes that answer several checks at once."""

    found: dict[str, Findings] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Add a finding to those of its check."""
        self.found.setdefault(finding.check, Findings()).add(finding)

    def of(self, check: str) -> Findings:
        """What was found for a check."""
        return self.found.get(check) or Findings()


@dataclass
class Scanned:
    """What the pass over the ledger's rows found and saw; ``head`` is as the entries give it.

    ``blocks`` are the roots of the full blocks of 256 entries. ``whole`` is False where rows are
    missing: then there is no tree. A pin vouches for the entries before ``since``.
    """

    tally: FindingTally
    rows: int
    head: tuple[int, str]
    coverage: Coverage
    origin: str = ""
    blocks: bytes = b""
    whole: bool = True
    since: int = 0


@dataclass
class FilesJudged:
    """What was found in an export or a record; ``signed``: a key could be held against its seal."""

    tally: FindingTally
    origin: str
    signed: bool
    seen: Coverage


@dataclass
class Folded:
    """The evidence as tables.

    Entries from ``size`` on are provisional: ``drafts`` of what only files show. ``tables`` and
    ``unread`` say what was wrong; ``own`` files we alone write; ``agreed`` chats agree as compared
    already; ``queue_agrees``: all event files do; ``remnants`` are what a power cut left.
    """

    source: Source
    size: int
    adopted: int | None
    found: Found
    tables: list[tuple[str, str]] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    unfolded: int = 0
    own: dict[str, File] = field(default_factory=dict)
    drafts: dict[int, Draft] = field(default_factory=dict)
    agreed: set[str] = field(default_factory=set)
    queue_agrees: bool = False
    remnants: dict[str, Remnant] = field(default_factory=dict)


@dataclass
class HeadsJudged:
    """How heads remembered outside compare with the ledger: those that agree, and those it denies.

    ``uncompared`` are those before which entries are missing here; ``untold``: why some could not
    be compared. ``peers`` and ``trailers`` are of replicas and of commits.
    """

    heads: int = 0
    findings: Findings = field(default_factory=Findings)
    agreeing: list[Any] = field(default_factory=list)
    disagreeing: list[Any] = field(default_factory=list)
    uncompared: list[Any] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    anchored: Anchored | None = None
    peers: HeadsJudged | None = None
    trailers: HeadsJudged | None = None
    seen: Coverage = field(default_factory=dict)


class Need(Enum):
    """A source of evidence that a check cannot do without; the runner makes what is needed.

    Without it the outcome is *not applicable* (no ledger, no record, an export without bodies), or
    *cannot tell* (a team without bodies, or no tables can be made).
    """

    LEDGER = "a ledger"
    ROWS = "one pass over the entries: headers, links, stored tree"
    BODIES = "the bodies of the entries"
    SIGNATURES = "one pass over the signatures of actors"
    TABLES = "the tables that all entries, with their bodies and what the files add, fold to"
    RECORD = "the record's files, or those of an export"
    HEADS = (
        "heads remembered outside, compared with the ledger; uses the tables where there are any"
    )


LEDGER, ROWS, BODIES, SIGNATURES, TABLES, RECORD, HEADS = Need


class Evidence(Protocol):
    """What a check may ask for; files, database and git are read by the program that made it.

    ``what`` was asked for; ``root`` is the team directory, None for a bare database or an export.
    ``no_ledger``: the team is known to have none. ``nearby`` is in lines of a chat.
    """

    what: str
    root: str | None
    no_ledger: bool
    nearby: int
    folded: Folded | None
    scan: Scanned | None
    held: HeadsJudged | None
    record: FilesJudged | None

    @property
    def unreadable(self) -> tuple[type[Exception], ...]:
        """What reading and rendering what strangers wrote may raise."""

    @property
    def places(self) -> dict[str, str]:
        """The folders that the ledger records."""

    @property
    def traces(self) -> tuple[str, ...]:
        """What tells that a ledger was here, in words."""

    @property
    def loaded(self) -> bool:
        """Whether the ledger was read from files."""

    @property
    def histories(self) -> Sequence[FileHistory]:
        """What git tells of each decision log that it holds."""

    @property
    def untold(self) -> Sequence[tuple[str, str]]:
        """Where heads or histories may be remembered that cannot be read, each with the reason."""

    @property
    def ledger(self) -> LedgerReader | None:
        """What can be asked of the entries; None without a ledger."""

    def table_faults(self) -> list[tuple[str, str]]:
        """Tables of the database that are not what the entries fold to, and what is wrong."""

    def line(self, seq: int) -> str:
        """The name that the ledger has at an entry; '' where it cannot be read."""

    def root_at(self, size: int) -> bytes | None:
        """The root over the first ``size`` entries; None where they cannot all be read."""

    def file(self, path: str) -> bytes | None:
        """The bytes of a file of the team; None if it is not there, or far too large."""

    def versions(self, name: str) -> AbstractContextManager[ReadVersions]:
        """Reads versions of a decision log again (``tripod.verify.anchors.git_growth``)."""

    def measured(self, path: str, size: int) -> tuple[str, int] | None:
        """Digest of a file's first bytes, and its length; None: no file (OSError: unreadable)."""

    def is_there(self, path: str, *, odd: bool = False) -> bool:
        """Whether a regular file of the team is there; ``odd``: or anything else."""

    def absent_folders(self) -> Iterator[tuple[str, str]]:
        """Folders of the team that are not there, each with its path; '' where it is unreadable."""

    def replaced(self) -> Iterator[str]:
        """Replaced files that wait beside the new ones: others may still write into them."""

    def names(self) -> list[str]:
        """What stands in the team directory itself."""

    @property
    def ahead(self) -> str | None:
        """Which entry the files count that the ledger does not hold, in words; None: none."""

    def rendered(self, path: str) -> bytes:
        """What the ledger gives for a path; empty where it gives nothing, or cannot be rendered."""

    def projected(self) -> Iterator[tuple[str, bytes, bytes | None, str | None]]:
        """Each projected file: path, bytes to be, bytes that are, what is wrong (None: nothing)."""

    def cursors(self) -> list[tuple[str, int, int]]:
        """(what, cursor, size) of the projections' cursors in the head row."""

    def unswept(self) -> int:
        """How many erased entries may still lie in the pages of the database's file."""

    @property
    def linked_from(self) -> str:
        """Where the database really is, if a symbolic link stands in its place; else ''."""

    @property
    def sessions(self) -> SessionsAtHand:
        """What is at hand of recorded sessions, and the rules about them."""

    def look_alikes(self) -> Iterator[tuple[str, str]]:
        """Pairs of handles of the team that can be taken for each other; the plainer one first."""

    @property
    def team(self) -> Folded:
        """The evidence as tables (ValueError before they are made)."""
        if self.folded is None:
            raise ValueError("the evidence is not folded yet")
        return self.folded

    @property
    def source(self) -> Source:
        """Tables, bodies by seq and blobs by digest; a LookupError where one is not there."""
        return self.team.source

    @property
    def size(self) -> int:
        """How many entries were folded; after them comes what only the files show."""
        return self.team.size

    @property
    def adoption(self) -> int | None:
        """The entry that adopted a past, if there is one."""
        return self.team.adopted

    @property
    def found(self) -> Found:
        """What the look at the team's files found."""
        return self.team.found

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger."""
        return self.ledger is not None

    @property
    def rows(self) -> int:
        """How many entries there are."""
        return 0 if self.ledger is None else self.ledger.size

    def leaf(self, seq: int) -> str:
        """The leaf hash of an entry in hex, '' where there is no such entry."""
        header = None if self.ledger is None else self.ledger.header(seq)
        return entry_leaf_hash(header).hex() if type(header) is bytes else ""

    def at(self, seq: int) -> str:
        """The time of the append that an entry came with, '' where no ledger holds it yet."""
        header = None if self.ledger is None else self.ledger.header(seq)
        try:
            return "" if header is None else parse_header(header).at
        except (LedgerError, TypeError):
            return f"unreadable {seq}"  # equal to no other

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a small query on the folded tables."""
        return list(self.source.db.execute(sql, values))

    def body(self, seq: int) -> dict[str, Any]:
        """The body of an entry, ``{}`` where it cannot be read: the ledger's checks name that."""
        try:
            return self.source.body(seq)
        except (LookupError, ValueError, TypeError):
            return {}

    def text(self, seq: int, field: str) -> str | None:
        """The text that a field of an entry's body holds; None where it cannot be read."""
        try:
            return self.source.content(self.body(seq)[field]).decode()
        except self.unreadable:
            return None

    def micros(self, seq: int) -> int | None:
        """When an entry was appended, in µs since 1970; None where that is not known."""
        try:
            return parse_entry_time(self.at(seq))
        except ValueError:
            return None

    def altered_below(self, size: int) -> bool:
        """Whether the pass over the rows named one of the first entries as not what it was."""
        if self.scan is None:
            return False
        names = ("sequence", "canonical-bytes", "chain-links")
        lowest = [self.scan.tally.of(name).lowest for name in names]
        return any(seq is not None and seq < size for seq in lowest)

    def past(self, seq: int) -> bool:
        """Whether an entry belongs to the past that was taken in at adoption."""
        return not self.has_ledger or (self.adoption is not None and seq < self.adoption)

    def adopted(self, seq: int) -> bool:
        """Whether the entry's past was accepted into a ledger as it was."""
        return self.has_ledger and self.past(seq)

    def finding(
        self,
        check: str,
        seq: int,
        message: str,
        help_: str,
        *,
        where: str = "",
        severity: Severity | None = None,
        shown: tuple[str, ...] = (),
        fault: str | None = "",
    ) -> Finding:
        """A finding about an entry: of the severity of its time, and at its place, unless given."""
        weight = severity or self.severity(seq), self.adopted(seq)
        where = where or self.where(seq)
        return Finding(check, message, where, shown, help_, *weight, seq, fault=fault)

    def severity(self, seq: int) -> Severity:
        """What was wrong before adoption cannot be mended: it is told, and fails nothing."""
        return "warning" if self.adopted(seq) else "failure"

    def where(self, seq: int) -> str:
        """Words for an entry, or for a piece that no entry holds yet."""
        if not self.has_ledger:
            return "not in a ledger"
        return f"entry {seq}" if seq < self.size else "not taken in yet"

    def ledger_outcome(self, check: str, *words: str, also: Iterable[Finding] = ()) -> Outcome:
        """What the pass over the rows found for a check (``Need.ROWS``), and what else it found.

        ``words`` are what the pass covers for it.
        """
        assert self.scan is not None
        found = Findings()
        found.join(self.scan.tally.of(check))
        found.extend(also)
        if not self.scan.rows and not found:
            return not_applicable(check, "the ledger holds no entry")
        seen = {word: self.scan.coverage.get(word, 0) for word in words}
        return outcome(check, found, seen)


class Check(Protocol):
    """One rule. A module with these names is one; its docstring is the manual.

    A check that only advises also has ``ADVICE = True``, one that is about the ledger itself, so
    that nobody can accept what it finds, ``ACCEPTABLE = False``.
    """

    NAME: str
    """The permanent name, in lower case with hyphens."""
    REQUIRED: bool
    """Whether *cannot tell* makes the exit code 3."""

    @property
    def NEEDS(self) -> Collection[Need]:  # noqa: N802 - modules write it as a constant
        """The evidence without which it cannot judge."""

    def judge(self, evidence: Evidence, /) -> Outcome:
        """Judge the evidence. Pure: no clock, disk, network or randomness."""


def needs(check: Check, *any_of: Need) -> bool:
    """Whether a check needs one of these sources of evidence."""
    return not set(any_of).isdisjoint(check.NEEDS)


def lets_accept(check: Check) -> bool:
    """Whether findings of a check can be accepted."""
    return bool(getattr(check, "ACCEPTABLE", True))


def fault_of_texts(*texts: str) -> str:
    """What is wrong by words that a message shows shortened: their digest, so that none is kept."""
    return sha256(json.dumps(texts).encode()).hexdigest()  # a file's name may hold a line break


def fault_of_difference(want: bytes, have: bytes) -> str:
    """What is wrong with a file's bytes: up to the last line that differs, each way whole.

    What is appended to both changes nothing; the lines shown of a difference are a part of it.
    """
    ours, theirs, _, tail = _parted(want, have)
    # Each line with its end: no line is another thing than one that is empty.
    parts = (lines[: len(lines) - tail] for lines in (ours, theirs))
    return " ".join(sha256(b"".join(b"%b\n" % one for one in part)).hexdigest() for part in parts)


def fault_of_file(evidence: Evidence, path: str) -> str | None:
    """What a file of the team holds, as the fault of a finding; None where it cannot be read."""
    try:
        found = evidence.measured(path, 2**62)
    except OSError:
        return None
    return "no file" if found is None else f"{found[1]} bytes {found[0]}"


def _parted(want: bytes, have: bytes) -> tuple[list[bytes], list[bytes], int, int]:
    """The lines of two versions, and how many of them are shared at the beginning and the end."""
    ours, theirs = want.split(b"\n"), have.split(b"\n")
    start = shared_start(ours, theirs)
    return ours, theirs, start, shared_start(ours[start:][::-1], theirs[start:][::-1])


_SHOWN_LINES = 6  # of each version
_HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def escape(text: str) -> str:
    r"""Write a text from evidence so that it stays on its line and shows what it is.

    Control bytes, characters that change the direction of text, and invisible ones come out as
    codes: a finding cannot imitate another, hide, or command the reader's terminal.

    >>> escape("red\x1b[31m\u202etxt")
    'red\\x1b[31m\\u202etxt'
    """

    def code(match: re.Match[str]) -> str:
        point = ord(match[0])
        letter, width = ("x", 2) if point < 0x100 else ("u", 4) if point < 0x10000 else ("U", 8)
        return f"\\{letter}{point:0{width}x}"

    return _HOSTILE.sub(code, text)


def shorten(text: str, limit: int = 160) -> str:
    """Cut a text for one line of evidence."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown_difference(want: bytes, have: bytes | None) -> tuple[str, ...]:
    r"""The first lines in which ``have`` differs from ``want``, as a unified diff would show them.

    >>> shown_difference(b"a\nb\n", b"a\nc\n")
    ('@@ line 2 @@', '-b', '+c')
    """
    if have is None:
        return ()
    ours, theirs, start, tail = _parted(want, have)
    shown = [f"@@ line {start + 1} @@"]
    for sign, lines in (("-", ours), ("+", theirs)):
        apart = lines[start : len(lines) - tail]
        shown += [sign + shorten(line.decode("utf-8", "replace")) for line in apart[:_SHOWN_LINES]]
        if len(apart) > _SHOWN_LINES:
            shown.append(f"{sign}… {len(apart) - _SHOWN_LINES} more lines")
    return tuple(shown)
