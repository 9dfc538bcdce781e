"""The evidence as it is opened: the ledger's rows, their fold, the team's files; read-only.

``collect`` opens it. A check sees it as ``tripod.verify.check.Evidence``.
"""

from __future__ import annotations

import os
import sqlite3
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from itertools import chain
from tempfile import TemporaryDirectory
from typing import Self, TypeVar

import orjson

from tripod import projections
from tripod.ledger import (
    COUNTS,
    DATABASE,
    EVIDENCE,
    LOGS,
    RECORD,
    WORKERS,
    LedgerError,
    entry_leaf_hash,
    parse_header,
    tell_over,
)
from tripod.ledger.files import open_plain_file, read_plain_file, writers_kept_out
from tripod.ledger.ids import now_us
from tripod.ledger.locator import closed_place_problem, database_of, no_team_problem, team_of
from tripod.ledger.sqlite.reader import SQLiteReader, read_only, reader_keeps_log
from tripod.ledger.sqlite.schema import SCHEMA_VERSION
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import Seal
from tripod.projections import files_ahead_of
from tripod.projections.decisions.format import decision_log_name_problem
from tripod.verify.anchors.anchors import (
    USUAL,
    AnchorOptions,
    NoHeadError,
    OutsideError,
    gather_anchors,
    read_since,
)
from tripod.verify.anchors.git_growth import open_growth_versions
from tripod.verify.anchors.growth import FileHistory, ReadVersions
from tripod.verify.anchors.heads import OutsideHeads
from tripod.verify.anchors.policy import never_of, role_of
from tripod.verify.check import Evidence, FilesJudged, Folded, HeadsJudged, Scanned, Subject
from tripod.verify.fold import Compared, fold_evidence
from tripod.verify.recorded.evidence import RecordedSessions
from tripod.verify.rows import (
    RENDER_ERRORS,
    RowHeads,
    RowReader,
    head_row,
    schema_rows,
    untouchable_rows,
)

NEARBY = 50  # lines: how far an approximate chat reference may be off
_NOTES = "path, size, mtime_ns, inode, mode, digest, noted_ns, seal"
_RUINED = ("malformed", "not a database")  # SQLite's words for a file it cannot make sense of
_READ_LIMIT = 256 * 1024 * 1024


@dataclass
class DatabaseEvidence:
    """The ledger's database as evidence, opened read-only; ``db`` is None if it is missing.

    ``source`` is the folder of files that it was made of, in ``scratch``; '' where it is the team's
    own. ``keys`` may have sealed those files. ``places`` are the folders that the ledger records.
    ``since`` is the head, or the number of entries, after which something is new, and its name.
    ``peers`` are origins of the team's replicas: a head of another one is nothing unknown.
    """

    path: str = ""
    db: sqlite3.Connection | None = None
    source: str = ""
    bodies: bool = True
    scratch: TemporaryDirectory[str] | None = None
    keys: tuple[VerifierKey, ...] = ()
    places: dict[str, str] = field(default_factory=dict)
    since: tuple[Seal | int, str] | None = None
    peers: frozenset[str] = frozenset()

    def open(self) -> str:
        """Hold one state for all that follows, while others append; say why nothing can be read.

        Raises:
            LedgerError: it is no ledger.
            sqlite3.Error: it cannot be asked at all.
        """
        self.db = read_only(self.path)
        self.db.execute("BEGIN")
        problem = untouchable_rows(schema_rows(self.db))  # before anything is read from it
        if problem:
            return problem
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            return (
                f"this ledger has schema {version}, this version of tripod knows up to "
                f"{SCHEMA_VERSION}: use a newer tripod"
            )
        with suppress(ValueError, sqlite3.Error):  # `kinds-known` names what is wrong in entry 0
            self.places = projections.recorded(RowReader(self.db))
        return ""

    @cached_property
    def heads(self) -> RowHeads:
        """Roots and names at any entry (ValueError where there is no ledger)."""
        if self.db is None:
            raise ValueError("there is no ledger")
        return RowHeads(self.db)

    def close(self) -> None:
        """Close what was opened, and remove what was made of files."""
        if self.db is not None:
            self.db.close()
        if self.scratch is not None:
            self.scratch.cleanup()


@dataclass
class OpenEvidence(Evidence):
    """All that was collected. ``problem`` says why there is nothing to judge, '' where there is.

    ``scan``, ``folded``, ``held`` and ``record`` are made by ``tripod.verify.run``. ``now_us`` is
    when all was collected; no check asks for it.
    """

    what: str
    root: str | None = None
    no_ledger: bool = False
    nearby: int = NEARBY
    problem: str = ""
    now_us: int = 0
    database: DatabaseEvidence = field(default_factory=DatabaseEvidence)
    outside: OutsideHeads = field(default_factory=OutsideHeads)
    folded: Folded | None = None
    scan: Scanned | None = None
    held: HeadsJudged | None = None
    record: FilesJudged | None = None

    @property
    def subject(self) -> Subject:
        """What this is the evidence of."""
        team = "" if self.root is None else os.path.realpath(self.root)
        source = self.database.source or (self.database.path if self.has_ledger else "")
        ledger, out = os.path.realpath(source) if source else "", self.outside
        return Subject(team, ledger, out.repository, out.history, *out.settings[:2])

    @property
    def db(self) -> sqlite3.Connection | None:
        """The ledger's database; None where there is no ledger."""
        return self.database.db

    @property
    def loaded(self) -> bool:
        """Whether the ledger was read from files."""
        return bool(self.database.source)

    @property
    def places(self) -> dict[str, str]:
        """The folders that the ledger records."""
        return self.database.places

    @property
    def traces(self) -> tuple[str, ...]:
        """What tells that a ledger was here, in words."""
        found = []
        if self.root is not None:
            names = set[str]()
            for folder in (self.root, os.path.dirname(database_of(self.root))):
                with suppress(OSError):
                    names.update(os.listdir(folder))
            for name in sorted(names):
                if name in (RECORD, "seal", COUNTS) or name.startswith(("policy", "seal.")):
                    found.append(f"{name} stands in the team directory")
                elif name.startswith(DATABASE + "-") or name == DATABASE + ".lock":
                    found.append(f"{name} was left behind")
            for folder in (self.root, self.what, os.path.dirname(os.path.abspath(self.root))):
                with suppress(OSError):
                    path = os.path.join(folder, ".gitignore")
                    if DATABASE.encode() in read_plain_file(path, 65_536):
                        found.append(f".gitignore names {DATABASE}")
        known = self.outside.known
        elsewhere = [f"{k.where} remembers {k.seal.size} entries of {k.seal.origin}" for k in known]
        return (*dict.fromkeys(found), *elsewhere)

    @property
    def histories(self) -> tuple[FileHistory, ...]:
        """What git tells of each decision log that it holds."""
        return self.outside.logs

    @property
    def untold(self) -> tuple[tuple[str, str], ...]:
        """Where heads or histories may be remembered that cannot be read, each with the reason."""
        return self.outside.untold

    @property
    def ledger(self) -> RowReader | None:
        """What can be asked of the entries; None without a ledger."""
        return None if self.db is None else RowReader(self.db)

    def entry_name(self, seq: int) -> str | None:
        """An entry by what it is, for fingerprints; None where the ledger does not hold it."""
        # A check of a package, or a damaged row, may bring anything as the number of an entry.
        is_number = type(seq) is int and 0 <= seq < 2**63
        header = self.ledger.header(seq) if self.ledger is not None and is_number else None
        if header is None:
            return None
        with suppress(LedgerError, TypeError):
            return f"{parse_header(header).ledger} {seq} {entry_leaf_hash(header).hex()}"
        return f"unreadable {seq}"  # the ledger does not verify, so nothing is accepted

    # Tables and bodies -------------------------------------------------------------------------

    def fold(self, beside: Callable[[], Compared | None] = lambda: None) -> None:
        """Make the tables; what cannot be read at all is said in ``problem``."""
        if self.folded is None and not self.problem:
            try:
                self.folded = fold_evidence(self.db, self.disk, beside, derived=not self.loaded)
            except (LedgerError, sqlite3.Error, OSError, projections.TooBigError) as error:
                self.problem = _problem(error, self.database.path)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
                self.problem = f"the entries cannot be folded: {type(error).__name__}: {error}"

    @property
    def unreadable(self) -> tuple[type[Exception], ...]:
        """What reading and rendering what strangers wrote may raise."""
        return RENDER_ERRORS

    def table_faults(self) -> list[tuple[str, str]]:
        """Tables of the database that are not what the entries fold to, and what is wrong."""
        assert self.db is not None
        faults = list(self.team.tables)
        try:
            for *row, seal in self.db.execute(f"SELECT {_NOTES} FROM manifest"):
                if projections.manifest.manifest_row_seal(row) != seal:
                    what = f"the row of {row[0]!r} was changed: its seal does not fit"
                    faults.append(("manifest", what))
        except sqlite3.Error as error:
            faults.append(("manifest", f"it cannot be read: {error}"))
        return faults

    # Heads -------------------------------------------------------------------------------------

    def line(self, seq: int) -> str:
        """The name that the ledger has at an entry; '' where it cannot be read."""
        return self.database.heads.line(seq)

    def root_at(self, size: int) -> bytes | None:
        """The root over the first ``size`` entries; None where they cannot all be read."""
        return self.database.heads.root_at(size)

    # The team's files --------------------------------------------------------------------------

    @cached_property
    def _first(self) -> projections.FirstLooks:
        """Logs and chats as they were read: what is added to them meanwhile is not judged."""
        return projections.FirstLooks()

    @property
    def disk(self) -> projections.Disk | None:
        """The team directory, where there is one."""
        return (
            None
            if self.root is None
            else projections.Disk(self.root, steady=True, places=self.places, first=self._first)
        )

    def file(self, path: str) -> bytes | None:
        """The bytes of a file of the team, as without a power cut; None: none, or far too large."""
        data = None
        with suppress(projections.TooBigError, ValueError, OSError):
            if self.root is not None:
                disk = projections.Disk(self.root, places=self.places, first=self._first)
                data = disk.read(path, _READ_LIMIT)
        remnant = None if self.folded is None else self.folded.remnants.get(path)
        return data if data is None or remnant is None else remnant.whole

    def versions(self, name: str) -> AbstractContextManager[ReadVersions]:
        """Reads versions of a decision log again (``tripod.verify.anchors.git_growth``)."""
        disk = self.disk
        assert disk is not None
        return open_growth_versions(os.path.normpath(disk.full(f"{projections.LOG.folder}/{name}")))

    def measured(self, path: str, size: int) -> tuple[str, int] | None:
        """Digest of a file's first bytes, and its length; None: no file (OSError: unreadable)."""
        disk = self.disk
        if disk is None or not disk.is_file(path):
            return None
        hashed, left = sha256(), size
        with open(open_plain_file(disk.full(path)), "rb") as file:
            length = os.fstat(file.fileno()).st_size
            while part := file.read(min(left, 1 << 20)):
                hashed.update(part)
                left -= len(part)
        return hashed.hexdigest(), length

    def absent_folders(self) -> Iterator[tuple[str, str]]:
        """Folders of the team that are not there, each with its path; '' where it is unreadable."""
        places = projections.Disk(self.root or "", places=self.places).places
        absent = places.absent()
        yield from absent.items()
        yield from ((front, "") for front in sorted(places.missing() - absent.keys()))

    def is_there(self, path: str, *, odd: bool = False) -> bool:
        """Whether a regular file of the team is there; ``odd``: or anything else."""
        disk = self.disk
        try:
            return disk is not None and (disk.stands(path) if odd else disk.is_file(path))
        except (OSError, ValueError):
            return False

    def replaced(self) -> Iterator[str]:
        """Replaced files that wait beside the new ones: others may still write into them."""
        disk = self.disk
        if disk is not None:
            for folder in (*disk.places.chat_folders(), *disk.places.log_folders(), "workers"):
                yield from disk.kept(folder)

    def names(self) -> list[str]:
        """What stands in the team directory itself."""
        disk = self.disk
        return [] if disk is None else disk.names("")

    @property
    def ahead(self) -> str | None:
        """Which entry the files count that the ledger does not hold, in words; None: none."""
        disk = self.disk
        try:
            return None if disk is None or self.db is None else files_ahead_of(self.ledger, disk)
        except sqlite3.DatabaseError:
            return None  # no table of entries: `ledger-missing` names that

    def rendered(self, path: str) -> bytes:
        """What the ledger gives for a path; empty where it gives nothing, or cannot be rendered."""
        try:
            want = projections.desired_file(self.source, path)
        except RENDER_ERRORS:
            return b""
        return b"" if want is None else want.data

    def projected(self) -> Iterator[tuple[str, bytes, bytes | None, str | None]]:
        """Each projected file: path, bytes to be, bytes that are, what is wrong (None: nothing)."""
        disk = self.disk
        assert disk is not None
        ours = {path for path, _ in projections.own_files(self.source)}
        queue = projections.BUS.paths(self.source) if self.team.queue_agrees else ()
        files = chain(
            ((path, None) for path in queue),
            projections.file_renders(self.source, queue=not self.team.queue_agrees),
        )
        for path, render in tell_over(files, "comparing files"):
            if render is None or path in self.team.agreed:
                yield path, b"", b"", None
                continue
            try:
                want = render()
            except RENDER_ERRORS as error:
                yield path, b"", b"", f"cannot be rendered: {type(error).__name__}: {error}"
                continue
            if want is None:
                continue
            apart = projections.compare(disk, path, want)
            if apart is not None and path in ours:
                # Nobody else appends to a file that is ours alone, so it may also stand as the
                # ledger has it without what the files add, or not be there yet.
                own = self.team.own.get(path)
                if own is None:
                    apart = apart if disk.stands(path) else None
                else:
                    beside = projections.compare(disk, path, own)
                    if beside is None or beside.have == own.data:  # then its mode alone differs
                        want, apart = own, beside
            if apart is None:
                yield path, want.data, want.data, None
            elif apart.have is None:
                yield path, want.data, None, "is missing"
            elif apart.have != want.data and (
                self.loaded and path == COUNTS and self.ahead is not None
            ):  # a clone's counts also count what came after its record's seal
                yield path, want.data, want.data, None
            elif apart.have != want.data:
                what = "differs from the ledger"
                if not self.loaded and apart.mode != want.mode:
                    what += f", and has mode {apart.mode or 0:o}, not {want.mode:o}"
                yield path, want.data, apart.have, what
            elif self.loaded:  # git keeps no such modes: a clone has its own
                yield path, want.data, want.data, None
            else:
                what = f"has mode {apart.mode or 0:o}, not {want.mode:o}"
                yield path, want.data, apart.have, what

    # Beside the tables -------------------------------------------------------------------------

    def cursors(self) -> list[tuple[str, int, int]]:
        """(what, cursor, size) of the projections' cursors in the head row."""
        assert self.db is not None
        row = head_row(self.db)
        if row is None or any(type(value) is not int for value in (row[0], *row[3:6])):
            return []
        return [("tables", row.tables, row.size), ("files", row.files, row.size)]

    def unswept(self) -> int:
        """How many erased entries may still lie in the pages of the database's file."""
        return 0 if self.ledger is None else self.ledger.unswept()

    @property
    def linked_from(self) -> str:
        """Where the database really is, if a symbolic link stands in its place; else ''."""
        path = self.database.path
        return os.path.realpath(path) if os.path.islink(path) and not self.loaded else ""

    @cached_property
    def sessions(self) -> RecordedSessions:
        """What is at hand of recorded sessions, and the rules about them."""
        rules = self.outside.rules
        source, root = self.database.source, None if self.loaded else self.root
        kept = source if self.loaded and os.path.isdir(f"{source}/{EVIDENCE}") else None
        never, roles = tuple(map(never_of, rules.never)), tuple(map(role_of, rules.roles))
        return RecordedSessions(root, never, roles, kept, self.outside.faults)

    def look_alikes(self) -> Iterator[tuple[str, str]]:
        """Pairs of handles of the team that can be taken for each other; the plainer one first."""
        if self.folded is None:
            return look_alike_handles(())
        rows = self.query(
            "SELECT handle FROM participants UNION SELECT handle FROM actors"
            " UNION SELECT source FROM events"
        )
        return look_alike_handles({name for (name,) in rows if type(name) is str})

    def close(self) -> None:
        """Close what was opened."""
        if self.folded is not None:
            self.folded.source.db.close()
        self.database.close()
        self._first.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def collect(
    path: str, *, no_ledger: bool = False, nearby: int = NEARBY, asked: AnchorOptions = USUAL
) -> OpenEvidence:
    """Open what stands at ``path``: a project, a team directory, or a bare database file.

    What cannot be opened at all is said in ``OpenEvidence.problem``. ``no_ledger``: the team is
    known to have none. ``nearby`` is in lines of a chat, ``asked`` what else to look at.
    """
    evidence = OpenEvidence(path, no_ledger=no_ledger, nearby=nearby, now_us=now_us())
    database = evidence.database
    database.path = path
    evidence.root = None if os.path.isfile(path) else team_of(path)
    evidence.problem = closed_place_problem(path) or ""
    if evidence.problem:
        return evidence
    if evidence.root is not None:
        database.path = database_of(evidence.root)
    elif os.path.isdir(path):
        evidence.problem = no_team_problem(path)
        return evidence
    elif not os.path.isfile(path):
        evidence.problem = f"{path}: there is no such file or directory"
        return evidence
    try:
        if evidence.root is None or os.path.lexists(database.path):
            evidence.problem = database.open()
            ours = evidence.root is not None and not evidence.problem and evidence.rows
            if ours and not reader_keeps_log(database.path):
                evidence.problem = (
                    f"{database.path} has no write-ahead log, and the ledger of a team that "
                    "is at work has one: another program changed that, or a backup was put there "
                    "by hand. `tripod show` brings it into use; then judge it again"
                )
    except (LedgerError, sqlite3.Error, OSError, RecursionError) as error:
        evidence.problem = _problem(error, database.path)
    collect_outside_evidence(evidence, asked)
    return evidence


def collect_outside_evidence(
    evidence: OpenEvidence, asked: AnchorOptions, team: str | None = None
) -> None:
    """Collect what is remembered elsewhere.

    ``team`` is the team directory of a record on a ref: its policies and its history in git count,
    its files do not, and no branch has a newer one than the ref.
    """
    disk, ledger = evidence.disk, evidence.ledger
    logs = {}  # the paths of the decision logs in folders that were added
    added = any(folder.startswith(f"{LOGS}/") for folder in evidence.places)
    if added and disk is not None and ledger is not None:
        # From the entries, not the tables: a changed table could hide a log from its history.
        for entry in ledger.raw(kinds=("log.begun",)):
            with suppress(ValueError, TypeError, AttributeError):  # other checks name what is wrong
                name = orjson.loads(entry.body or b"").get("file", "")
                if decision_log_name_problem(name) is None and "/" in name:
                    logs[name] = os.path.normpath(disk.full(f"{projections.LOG.folder}/{name}"))
    try:
        root, live = team or evidence.root, evidence.has_ledger or team is not None
        gather_anchors(root, asked, live=live, logs=logs, into=evidence.outside)
        if team is not None:
            evidence.outside.logs = ()
    except OutsideError as error:
        evidence.problem = evidence.problem or str(error)


def collect_since(evidence: OpenEvidence, asked: AnchorOptions, team: str | None = None) -> None:
    """Find from where on something is new, once the ledger is there: its keys open heads.

    ``team`` is as in ``collect_outside_evidence``.
    """
    if asked.since is None or evidence.problem:
        return
    keys = []
    for entry in evidence.ledger.raw(kinds=("key.set",)) if evidence.ledger is not None else ():
        with suppress(LedgerError, ValueError, LookupError, TypeError, AttributeError):
            keys.append(VerifierKey.parse(orjson.loads(entry.body or b"")["vkey"]))
    root, seals = team or evidence.root, evidence.outside.rules.seals
    try:
        evidence.database.since = read_since(asked.since, root, seals, keys, git=asked.git)
    except NoHeadError as error:
        if team is None:
            evidence.problem = str(error)
        else:  # one of several replicas: all of it may have come since
            evidence.database.since = 0, f"its beginning ({error})"
    except OutsideError as error:
        evidence.problem = str(error)


def _problem(error: Exception, database: str) -> str:
    """Why nothing can be judged, and what to do where the database itself is no ledger any more."""
    if os.path.isdir(database):
        return (
            f"{database} is a folder, not a database: keep it elsewhere, put a copy of the ledger "
            "back in its place, and judge that"
        )
    text = str(error)
    if not any(words in text for words in _RUINED):
        return text
    return (
        f"{text}: `tripod restore` keeps this file, and puts this replica's own record, or a "
        "backup, in its place; without either, "
        f"`sqlite3 {database} .recover | sqlite3 NEW.db` gives what is left of it for reading, and "
        "`tripod init` in another directory begins a new ledger"
    )


# Handles that look alike ------------------------------------------------------------------------
#
# By Unicode's table of characters that can be confused (``confusables.txt``, with its source and
# licence). It is read where a team has a handle that is not ASCII, and only then.

_TABLE = os.path.join(os.path.dirname(__file__), "confusables.txt")
_ASCII = {ord("I"): "l", ord("1"): "l", ord("|"): "l", ord("0"): "O", ord("m"): "rn"}
"""Rows of the table from ASCII to ASCII."""


@cache
def _table() -> dict[int, str]:
    with open(_TABLE, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {int(point, 16): shown.translate(_ASCII) for point, shown in rows} | _ASCII


def handle_skeleton(text: str) -> str:
    """What a text looks like: two texts with one skeleton can be taken for each other (UTS 39).

    >>> handle_skeleton("\u0430nn") == handle_skeleton("ann")
    True
    >>> handle_skeleton("bob") == handle_skeleton("ann")
    False
    """
    seen = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFD", seen.translate(_table()))


def look_alike_handles(handles: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of handles that look alike, where one of the two is not ASCII; the plainer one first.

    Handles of ASCII alone are not compared: every terminal shows them apart.
    """
    names = sorted(set(handles), key=lambda name: (not name.isascii(), name))
    if all(name.isascii() for name in names):
        return
    first: dict[str, str] = {}
    for name in names:
        known = first.setdefault(handle_skeleton(name), name)
        if known != name and not name.isascii():
            yield known, name


Judged = TypeVar("Judged")

# What changed meanwhile ------------------------------------------------------------------------

LOOKS = 5
"""How often a team is judged anew while others work in it: what was read is not of one moment."""
_BRIEF_S = 5.0  # a look that takes longer keeps nobody from writing
_WAIT_S = 10.0  # busy writers are waited for by the last look, whose files may else be ahead
_TICK_NS = 10_000_000  # a file's time is that of the last tick of the kernel's clock
_STEPS = 10_000  # instructions of SQLite's machine


def evidence_changed(evidence: OpenEvidence) -> bool:
    """Whether the ledger or a file of the team changed since ``evidence`` was collected."""
    disk = evidence.disk
    if disk is None or evidence.db is None or evidence.loaded or evidence.problem:
        return False  # what could not be read at all is not asked again
    with suppress(LedgerError, sqlite3.Error), closing(read_only(evidence.database.path)) as db:
        # One step down an index. A view in the table's place may never end: it is cut off.
        db.set_progress_handler(lambda: 1, _STEPS)
        last = SQLiteReader(db).last_seq()
        if evidence.rows != (0 if last is None else last + 1):
            return True
    # The database's own files are left out.
    times = []
    places = disk.places
    for folder in (
        *places.queue_folders(),
        *places.chat_folders(),
        projections.LOG.folder,
        WORKERS,
    ):
        with suppress(OSError):
            times.append(os.stat(disk.full(folder)).st_mtime_ns)
            with os.scandir(disk.full(folder)) as entries:
                for entry in entries:
                    with suppress(OSError):
                        times.append(entry.stat(follow_symlinks=False).st_mtime_ns)
    with suppress(OSError):
        times.append(os.lstat(disk.full(COUNTS)).st_mtime_ns)
    return max(times, default=0) >= evidence.now_us * 1000 - _TICK_NS


def judge_until_still(path: str, judge: Callable[[int], Judged | None]) -> Judged:
    """What ``judge`` finds in a project or team directory; None: others work there, look again.

    It is given how many looks are left. The last one keeps writers out where a look is brief: in a
    team that is always at work something changes in each.
    """
    began = time.monotonic()
    for left in range(LOOKS - 1, 0, -1):
        if (found := judge(left)) is not None:
            return found
    root = team_of(path) if os.path.isdir(path) else None
    is_brief = time.monotonic() - began < _BRIEF_S * (LOOKS - 1)
    lock = f"{database_of(root)}.lock" if root is not None and is_brief else None
    with nullcontext() if lock is None else writers_kept_out(lock, _WAIT_S):
        found = judge(0)
    assert found is not None, "the last look judges"
    return found
