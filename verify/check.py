"""What a check is: a name, the evidence that it needs, its manual, a function that judges. Pure.

A check is a module, or any object, with the members of ``Check``. The built-in ones are listed in
``tripod.verify.checks``; an installed package can add more (``tripod.verify.run``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol

from tripod.ledger import LedgerReader
from tripod.projections import Found, Source
from tripod.verify.anchors.growth import ReadVersions
from tripod.verify.anchors.heads import HeadComparison, Outside
from tripod.verify.finding import (
    FilesJudged,
    Finding,
    Findings,
    Outcome,
    Scanned,
    Severity,
    not_applicable,
    outcome,
)


class Need(Enum):
    """A source of evidence that a check cannot do without; the runner makes what is needed.

    Without it the runner gives the outcome itself: not applicable without a ledger, a record, or
    the bodies of an export; *cannot tell* where a team lacks bodies, or no tables can be made.
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
    """What a check may ask for. Files, database and git are read by the program that made it.

    ``what`` was asked for; ``root`` is the team directory, None for a bare database or an export.
    ``traces`` tell that a ledger was here, ``no_ledger`` that the team is said to have none.
    ``loaded``: the ledger was read from files. ``rows`` counts the entries, ``scan`` is what the
    pass over them found, ``record`` what was found in the record's files, ``held`` how heads in
    ``outside`` compare with the ledger. ``nearby`` is in lines of a chat.
    """

    what: str
    root: str | None
    no_ledger: bool
    nearby: int
    places: dict[str, str]
    traces: tuple[str, ...]
    rows: int
    loaded: bool
    scan: Scanned | None
    outside: Outside
    held: HeadComparison | None
    record: FilesJudged | None

    @property
    def source(self) -> Source:
        """Tables, bodies by seq and blobs by digest; a LookupError where one is not there."""

    @property
    def unreadable(self) -> tuple[type[Exception], ...]:
        """What reading and rendering what strangers wrote may raise."""

    @property
    def ledger(self) -> LedgerReader | None:
        """What can be asked of the entries; None without a ledger."""

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger."""

    @property
    def size(self) -> int:
        """How many entries were folded; after them comes what only the files show."""

    @property
    def adoption(self) -> int | None:
        """The entry that adopted a past, if there is one."""

    @property
    def found(self) -> Found:
        """What the look at the team's files found."""

    @property
    def unread(self) -> list[tuple[str, str]]:
        """Parts of the team's files that could not be looked at, and why."""

    @property
    def untaken(self) -> int:
        """How many pieces of the team's files no entry holds yet."""

    def table_faults(self) -> list[tuple[str, str]]:
        """Tables of the database that are not what the entries fold to, and what is wrong."""

    def leaf(self, seq: int) -> str:
        """The leaf hash of an entry in hex, '' where there is no such entry."""

    def at(self, seq: int) -> str:
        """The time of the append that an entry came with, '' where no ledger holds it yet."""

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

    def is_there(self, path: str) -> bool:
        """Whether a regular file of the team is there."""

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

    def look_alikes(self) -> Iterator[tuple[str, str]]:
        """Pairs of handles of the team that can be taken for each other; the plainer one first."""

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a small query on the folded tables."""
        return self.source.db.execute(sql, values).fetchall()

    def body(self, seq: int) -> dict[str, Any]:
        """The body of an entry, ``{}`` where it cannot be read: the ledger's checks name that."""
        try:
            return self.source.body(seq)
        except (LookupError, ValueError, TypeError):
            return {}

    def altered_below(self, size: int) -> bool:
        """Whether the pass over the rows named one of the first entries as not what it was."""
        if self.scan is None:
            return False
        names = ("sequence", "canonical-bytes", "chain-links")
        lowest = [self.scan.tally.of(name).lowest for name in names]
        return any(seq is not None and seq < size for seq in lowest)

    def called(self, front: str) -> str:
        """The last part of the path of the team's ``events`` or ``chat``, wherever it is kept."""
        return self.places.get(front, front).rpartition("/")[2]

    # The past ----------------------------------------------------------------------------------

    def past(self, seq: int) -> bool:
        """Whether an entry belongs to the past that was taken in at adoption."""
        if not self.has_ledger:
            return True
        return self.adoption is not None and seq < self.adoption

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
    ) -> Finding:
        """A finding about an entry: of the severity of its time, and at its place, unless given."""
        severity, past = severity or self.severity(seq), self.adopted(seq)
        where = where or self.where(seq)
        return Finding(check, message, where, shown, help_, severity, past, seq)

    def severity(self, seq: int) -> Severity:
        """What was wrong before adoption cannot be mended: it is told, and fails nothing."""
        return "warning" if self.adopted(seq) else "failure"

    def where(self, seq: int) -> str:
        """Words for an entry, or for a piece that no entry holds yet."""
        if not self.has_ledger:
            return "not in a ledger"
        return f"entry {seq}" if seq < self.size else "not taken in yet"

    # The ledger's checks -----------------------------------------------------------------------

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

    A check that only advises also has ``ADVICE = True``: its findings change no exit code.
    """

    @property
    def NAME(self) -> str:  # noqa: N802 - modules write it as a constant
        """The permanent name, in lower case with hyphens."""

    @property
    def REQUIRED(self) -> bool:  # noqa: N802
        """Whether *cannot tell* makes the exit code 3."""

    @property
    def NEEDS(self) -> Collection[Need]:  # noqa: N802
        """The evidence without which it cannot judge."""

    def judge(self, evidence: Evidence, /) -> Outcome:
        """Judge the evidence. Pure: no clock, disk, network or randomness."""


def needs(check: Check, *any_of: Need) -> bool:
    """Whether a check needs one of these sources of evidence."""
    return not set(any_of).isdisjoint(check.NEEDS)


def advises(check: Check) -> bool:
    """Whether a check only advises."""
    return bool(getattr(check, "ADVICE", False))


def listed(check: Check) -> str:
    """The name of a check for a list, with the installed package that it comes from."""
    package = getattr(check, "PACKAGE", "")
    return f"{check.NAME} ({package})" if package else check.NAME
