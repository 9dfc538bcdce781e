"""Writes the bundle of an audit: a folder that shows what became of a ledger, to who was not there.

It has the ledger, the seals, the policies, the findings, the files that findings name, and a
program that judges all that with Python's standard library alone. The same team, judged at the same
path with the same options, gives the same bytes: no time of judging stands in it.

The entries are divided where the newest good seal stands that lies before the first bad entry.
``ledger/export`` is an export of those before, which any reader of exports judges. ``ledger/rest``
has the others row by row, as they are stored, damaged ones as well.

The folder is made beside its place, and gets its name last: a bundle is there whole, or not at all.
Nothing of a stranger is a path in it: names are percent-encoded, no link is followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes

import orjson

from tripod.errors import LedgerError, RefusedError, UnwritableError
from tripod.ledger import DATABASE, RawEntry, Tree, entry_leaf_hash
from tripod.ledger.files import (
    open_plain_file,
    place_to_write_problem,
    read_plain_file,
    sync_path,
)
from tripod.ledger.locator import database_of
from tripod.ledger.tlog import tiles
from tripod.projections import Disk
from tripod.recovery.rebuild import copy_database_pages
from tripod.verify.anchors.damage_heads import LedgerHead
from tripod.verify.check import POLICIES, Finding, Report
from tripod.verify.damage import Damage
from tripod.verify.evidence import OpenEvidence
from tripod.verify.recorded.evidence import part_path
from tripod.verify.rows import RowReader

MANIFEST = "MANIFEST.sha256"
_TOOLS = {"verify.py": "audit_bundle.py", "audit_export.py": "audit_export.py"}
_PLACES = ("tripod/audit_tools", "tools")  # in a wheel, in a checkout
_CITED_LIMIT = 256 * 1024 * 1024  # bytes of a file that a finding names
_LONG = 180  # characters of a name in the bundle
_GIVEN_LIMIT = 1024 * 1024  # bytes of a pin or a policy
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, LedgerError, RecursionError)


class Audited(NamedTuple):
    """What an audit found of one ledger: the report, the damage, and both as they are written.

    ``value`` and ``text`` are the damage, ``reports`` the bytes of files by name. ``given`` are the
    pins and policies that the caller named.
    """

    report: Report
    damage: Damage
    value: dict[str, Any]
    text: str
    reports: dict[str, bytes]
    given: tuple[str, ...]


class WrittenBundle(NamedTuple):
    """Where a bundle is, the SHA-256 of its manifest in hex, and how many files it has."""

    path: str
    sha256: str
    files: int


@contextmanager
def bundle_folder(path: str) -> Iterator[BundleFolder]:
    """A bundle to be written to ``path``; without ``finish`` nothing is left of it.

    Raises RefusedError where something is there, or git's own; UnwritableError where the disk
    refuses.
    """
    if problem := place_to_write_problem(path):
        raise RefusedError(problem)
    full = os.path.realpath(path)
    with _disk_refusals(path):
        if os.path.lexists(full) and not (os.path.isdir(full) and _is_free(full)):
            raise RefusedError(
                f"{path} is there already, and a bundle replaces nothing: give a new folder"
            )
        made = tempfile.mkdtemp(prefix=".tripod-bundle-", dir=os.path.dirname(full))
    try:
        yield BundleFolder(path, full, made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _disk_refusals(path: str) -> Iterator[None]:
    """Say so where the disk refuses, or a database does."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnwritableError(f"{path}: the bundle cannot be written: {reason}") from error


def _is_free(full: str) -> bool:
    """Whether a folder is empty, or holds a bundle, which is only compared."""
    names = os.listdir(full)
    return not names or {MANIFEST, *_TOOLS} <= set(names)


class BundleFolder:
    """The folder ``made``, which becomes the bundle ``full``."""

    def __init__(self, path: str, full: str, made: str) -> None:
        self.path, self.full, self.made = path, full, made
        self.parts = 0

    def add(self, evidence: OpenEvidence, audited: Audited) -> None:
        """Write what an audit of one ledger found, while its evidence is open.

        Raises RefusedError where the bundle would lie in what is judged.
        """
        own = []
        if evidence.root is not None:
            root = evidence.root
            own = [root, os.path.dirname(database_of(root))]
            own += [os.path.join(root, path) for path in evidence.places.values()]
        elif os.path.isdir(evidence.what):
            own.append(evidence.what)
        for at in own:
            if f"{self.full}/".startswith(f"{os.path.realpath(at)}/"):
                raise RefusedError(f"{self.path} lies in {at}, which is judged: write it elsewhere")
        with _disk_refusals(self.path):
            name = _encoded(os.path.basename(evidence.what.rstrip("/"))) or "ledger"
            self.parts += 1
            front = f"{self.made}/part-{self.parts}-{name}"
            os.mkdir(front, 0o700)
            _BundlePart(front, evidence, audited).write()

    def finish(self) -> WrittenBundle:
        """Give the folder its name, and wait for the disk."""
        with _disk_refusals(self.path):
            made = sorted(os.listdir(self.made))
            front = f"{self.made}/{made[0]}" if len(made) == 1 else self.made
            if len(made) > 1:
                lines = [f"{name}: a bundle by itself, of one replica." for name in made]
                lines.append("`python3 -I -S verify.py` judges each of them.")
                _put(front, "README.md", ("\n\n".join(lines) + "\n").encode())
                for name, source in _TOOLS.items():
                    _put(front, name, _tool(source))
                _add_manifest(front)
            with open(f"{front}/{MANIFEST}", "rb") as file:
                manifest = file.read()
            there = None
            with suppress(OSError):
                there = read_plain_file(f"{self.full}/{MANIFEST}", len(manifest))
            if there is None:
                os.rename(front, self.full)
                sync_path(os.path.dirname(self.full))
            is_other = there not in (None, manifest) or (there and _sums(self.full) != _sums(front))
        if is_other:
            raise RefusedError(
                f"{self.path} holds another bundle, or one that was changed, and none is replaced: "
                "give a new folder"
            )
        digest = hashlib.sha256(manifest).hexdigest()
        return WrittenBundle(self.path, digest, manifest.count(b"\n") + 1)


def _encoded(name: str) -> str:
    """A name as one of a file of ASCII, without a separator, that is no hidden one."""
    said = quote_from_bytes(os.fsencode(name), safe="@+=,")
    if len(said) > _LONG:
        said = f"{said[:_LONG]}-{hashlib.sha256(said.encode()).hexdigest()[:16]}"
    return f"%2E{said[1:]}" if said.startswith(".") else said


def _make_folder(path: str) -> None:
    """Make a folder, and those above it, for their owner alone; `makedirs` gives others its own."""
    if not os.path.isdir(path):
        _make_folder(os.path.dirname(path))
        os.mkdir(path, 0o700)


def _put(front: str, path: str, data: bytes) -> None:
    """Write a file, and the folders above it, for its owner alone."""
    full = f"{front}/{path}"
    _make_folder(os.path.dirname(full))
    fd = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _tool(name: str) -> bytes:
    """A program of the bundle: it lies in the package, or in the checkout around it."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for place in _PLACES:
        with suppress(FileNotFoundError), open(f"{top}/{place}/{name}", "rb") as file:
            return file.read()
    raise RefusedError(f"{name} is neither in the package nor in a checkout: reinstall tripod")


def _sums(front: str) -> list[tuple[str, str]]:
    """Each path below a folder with the SHA-256 of its file; '' if it is not a plain file."""
    found = []
    for folder, folders, names in os.walk(front):
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]
        for name in (*names, *links):
            full, digest = f"{folder}/{name}", ""
            if os.path.isfile(full) and not os.path.islink(full):
                with open(full, "rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            found.append((os.path.relpath(full, front), digest))
    return sorted(found)


def _add_manifest(front: str) -> None:
    said = "".join(f"{digest}  {path}\n" for path, digest in _sums(front))
    _put(front, MANIFEST, said.encode())


class _BundlePart:
    """The bundle of one ledger, in the folder ``front``; ``left_out`` is said in its README."""

    def __init__(self, front: str, evidence: OpenEvidence, audited: Audited) -> None:
        self.front, self.evidence, self.audited = front, evidence, audited
        self.report, self.damage = audited.report, audited.damage
        self.left_out: list[tuple[str, str]] = []
        self.written: set[str] = set()

    def write(self) -> None:
        """Write all of it, the manifest last."""
        value = {**self.audited.value, "bodies": self.evidence.database.bodies}
        reader = None
        if not (self.evidence.scan is None and self.evidence.problem):
            reader = self.evidence.ledger
        self._database(reader)
        self._entries(reader)
        for number, (one, said) in enumerate(zip(self.damage.heads, value["heads"], strict=True)):
            said["file"] = f"seals/{number:05d}.note" if one.note else ""
            if one.note:
                self._put(said["file"], one.note)
        if reader is not None:
            self._receipts(reader)
        for path in (*self.audited.given, *self._own_policies()):
            self._given(path)
        for name, data in self.audited.reports.items():
            self._put(f"findings/{name}", data)
        self._cited()
        self._put("audit.json", json.dumps(value, indent=2).encode() + b"\n")
        self._put("README.md", self._readme().encode())
        for name, source in _TOOLS.items():
            self._put(name, _tool(source))
        _add_manifest(self.front)

    def _put(self, path: str, data: bytes) -> None:
        if path not in self.written:
            self.written.add(path)
            _put(self.front, path, data)

    # The ledger --------------------------------------------------------------------------------

    def _database(self, reader: RowReader | None) -> None:
        """The database: its pages as of one moment, or its raw bytes where it cannot be read."""
        if self.evidence.loaded:
            self.left_out.append(
                ("ledger.db", "the ledger was read from files, not from a database")
            )
            return
        _make_folder(f"{self.front}/ledger")
        path = f"{self.front}/ledger/{DATABASE}"
        if reader is not None:
            try:
                copy_database_pages(reader.db, path)
            except sqlite3.DatabaseError as error:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                self.left_out.append((f"ledger/{DATABASE}", f"its pages cannot be read: {error}"))
            else:
                return
        for suffix in ("", "-wal"):
            source = self.evidence.database.path + suffix
            if not os.path.lexists(source):
                continue
            try:
                fd = open_plain_file(source)
            except OSError as error:
                self.left_out.append((source, error.strerror or str(error)))
                continue
            with open(fd, "rb") as file, open(f"{path}{suffix}.raw", "xb") as copy:
                os.fchmod(copy.fileno(), 0o600)
                shutil.copyfileobj(file, copy, 1 << 20)

    def _entries(self, reader: RowReader | None) -> None:
        """The entries under a good seal as an export, the others as they are stored."""
        seal = self._dividing_seal()
        size = 0 if seal is None or reader is None else seal.size
        if reader is not None and seal is not None:
            self._export(reader, seal)
        _make_folder(f"{self.front}/ledger/rest")
        with open(f"{self.front}/ledger/rest/rest.jsonl", "xb") as file:
            os.fchmod(file.fileno(), 0o600)
            for row in reader.raw(-(2**63)) if reader is not None else ():
                if not 0 <= row.seq < size:
                    file.write(json.dumps(_row_value(row)).encode() + b"\n")
                    self._put_blobs("ledger/rest", reader, row)

    def _dividing_seal(self) -> LedgerHead | None:
        """The newest good seal before the first bad entry that a key of the ledger made."""
        if not self.evidence.database.bodies:
            return None
        bad = self.damage.first_bad
        stop = self.damage.size if bad is None else bad.sealed
        good = [
            one
            for one in self.damage.heads
            if one.fits and one.source in ("seal", "record") and 0 < one.size <= stop
        ]
        return max(good, key=lambda one: one.size, default=None)

    def _export(self, reader: RowReader, seal: LedgerHead) -> None:
        """An export of the entries under a seal, its tree from the headers as they are stored."""
        levels: dict[int, list[bytes]] = {}
        tree = Tree()
        for tile in tiles.bundles_of(seal.size):
            first = tile.number * tiles.WIDTH
            rows = list(reader.raw(first, first + tile.width))
            for path, data in tiles.bundle_files(tile, rows, bodies=True):
                self._put(f"ledger/export/{path}", data)
            for row in rows:
                tree.append(entry_leaf_hash(row.header))
                self._put_blobs("ledger/export", reader, row)
        for level, _, root in tree.full:
            levels.setdefault(level, []).append(root)
        for tile in tiles.tiles_of(seal.size):
            if tile.level:
                first = tile.number * tiles.WIDTH
                hashes = levels[tile.level][first : first + tile.width]
                self._put(f"ledger/export/{tiles.format_tile_path(tile)}", b"".join(hashes))
        self._put(f"ledger/export/{tiles.SEAL}", seal.note)

    def _put_blobs(self, folder: str, reader: RowReader | None, row: RawEntry) -> None:
        """Write the blobs that a row names and that are there."""
        with suppress(*_BROKEN):
            for digest in tiles.bundle_blobs(row.body if type(row.body) is bytes else None):
                blob = reader.blob(bytes.fromhex(digest)) if reader is not None else None
                if type(blob) is bytes and len(digest) == 64:
                    self._put(f"{folder}/{tiles.bundle_blob_path(digest)}", blob)

    def _receipts(self, reader: RowReader) -> None:
        """The receipts of witnesses and authorities that the ledger holds, as they came."""
        for row in reader.raw(kinds=("anchor.received",)):
            with suppress(*_BROKEN):
                receipt = orjson.loads(row.body or b"")["receipt"]
                self._put(f"receipts/entry-{row.seq}", self.evidence.source.content(receipt))

    # Beside the ledger -------------------------------------------------------------------------

    def _own_policies(self) -> Iterator[str]:
        root = self.evidence.root
        yield from (f"{root}/{name}" for name in POLICIES if root is not None)
        for folder in filter(
            None, (root and os.path.dirname(root), self.evidence.outside.repository)
        ):
            yield from (f"{folder}/{name}" for name in ("tripod.toml", "pyproject.toml"))

    def _given(self, path: str) -> None:
        with suppress(OSError):
            data = read_plain_file(path, _GIVEN_LIMIT, named=True)
            is_ours = os.path.basename(path) != "pyproject.toml" or b"[tool.tripod" in data
            if len(data) <= _GIVEN_LIMIT and is_ours:
                digest = hashlib.sha256(os.path.realpath(path).encode("utf-8", "replace"))
                name = _encoded(os.path.basename(path))
                self._put(f"policies/{digest.hexdigest()[:8]}-{name}", data)

    def _cited(self) -> None:
        """The files of the team that findings name, and what was kept of sessions they name."""
        found = [one for told in self.report.all_outcomes for one in told.findings]
        root, disk = self.evidence.root, self.evidence.disk
        if root is None or disk is None:
            return
        for one in found:
            path = self._path_of(one, disk)
            if path is None or path.startswith(DATABASE):
                continue
            data = None
            with suppress(*_BROKEN, OSError):
                data = disk.read(path, _CITED_LIMIT)
            if data is None:
                self.left_out.append((path, "it is no regular file that can be read here"))
            else:
                name = "/".join(map(_encoded, path.split("/")))
                self._put(f"evidence/{name}", data)
        self._sessions(root, found)

    def _path_of(self, finding: Finding, disk: Disk) -> str | None:
        """The path within the team directory of the file that a finding names, if it names one."""
        path, _, line = finding.where.rpartition(":")
        places = [path if line.isdigit() else finding.where]
        top = self.evidence.outside.repository or os.path.dirname(os.path.abspath(disk.root))
        if finding.file:
            full = os.path.join(os.path.realpath(top), finding.file)
            places.append(os.path.relpath(full, os.path.realpath(disk.root)))
        for place in places:
            with suppress(*_BROKEN, OSError):
                if place and not place.startswith((os.pardir, "/")) and disk.is_file(place):
                    return os.path.normpath(place)
        full = os.path.join(top, finding.file)
        if (
            finding.file
            and os.path.lexists(full)
            and (os.path.islink(full) or not os.path.isdir(full))
        ):
            self.left_out.append((finding.file, "it is no regular file of the team directory"))
        return None

    def _sessions(self, root: str, found: list[Finding]) -> None:
        """The parts that were kept of sessions which findings name."""
        reader = self.evidence.ledger
        said = "\n".join(f"{one.where}\n{one.message}" for one in found)
        if reader is None or "session " not in said:
            return
        for row in reader.raw(kinds=("session.imported",)):
            with suppress(*_BROKEN):
                body = orjson.loads(row.body or b"")
                if f"session {body['session']}" not in said:
                    continue
                if "parts" not in body:
                    self.left_out.append(
                        (body["file"], f"nothing was kept of session {body['session']}")
                    )
                    continue
                digests = self.evidence.source.content(body["parts"]).decode().split()
                for digest in digests:
                    with suppress(OSError):
                        data = read_plain_file(part_path(root, digest), _CITED_LIMIT)
                        self._put(f"evidence/sessions/{_encoded(digest)}", data)

    # README ------------------------------------------------------------------------------------

    def _readme(self) -> str:
        left = sorted(set(self.left_out))
        lines = [f"- {path!a}: {ascii(why)[1:-1]}" for path, why in left] or ["- nothing"]
        said = self.audited.text.encode("utf-8", "backslashreplace").decode()
        fence = "    " + said.replace("\n", "\n    ").rstrip()
        return _README.format(said=fence, left="\n".join(lines))


def _row_value(row: RawEntry) -> dict[str, Any]:
    """A row as a value of JSON: bytes as text where they are UTF-8, else in hex."""
    value: dict[str, Any] = {"seq": row.seq}
    for name in ("id", "kind", "stream"):
        stored = getattr(row, name)
        value[name] = stored if type(stored) is str else {"other": repr(stored)}
    for name in ("header", "salt", "body", "auth"):
        stored = getattr(row, name)
        value[name] = {"other": repr(stored)} if stored is not None else None
        if type(stored) is bytes:
            value[name] = {"hex": stored.hex()}
            with suppress(UnicodeDecodeError):
                value[name] = stored.decode()
    return value


_README = """\
# What an audit found, and what shows it

{said}

## Judge it yourself

    python3 -I -S verify.py

This needs Python 3.11 or newer and nothing else: no network, no package, no `tripod`.
It compares every file with `MANIFEST.sha256`, judges the entries and the seals, and says where that
contradicts `audit.json` or the report. `ledger.db`, the receipts, the policies and the evidence are
compared with the manifest alone. Its exit code is 0 (nothing wrong), 1 (the ledger is wrong or a
rule is broken, as it says here), 3 (not all could be judged) or 4 (this folder is not what was
made).

Who can change this folder can change the manifest and the programs as well, and a program that was
replaced says what they like. So the SHA-256 of `MANIFEST.sha256`, which `tripod audit` printed, is
kept elsewhere. Hold it against this folder with programs of your own before you run one of these:

    sha256sum MANIFEST.sha256
    sha256sum --check --quiet MANIFEST.sha256

With `--manifest SUM`, `verify.py` does the same, and finds files that were added.
`audit_export.py` is a file of the project `tripod`, and can be compared with the one there.

## What is here

- `audit.json`: the first bad entry, every seal and head with whether it fits, what is provable.
- `ledger/ledger.db`: the database as of one moment. `ledger.db.raw` is the bytes of a damaged one.
- `ledger/export`: the entries that a good seal covers, as an export; `tripod verify` judges it too.
- `ledger/rest`: all other entries, row by row. No good seal covers them: that they are linked is
  all that holds them together, and who can write to the database could have made them anew.
- `seals`: each seal and head, as it was found; `receipts`: what witnesses and authorities signed.
- `policies`: the policies and pins that were judged by.
- `findings`: the whole report of `tripod verify`, as JSON and as SARIF.
- `evidence`: the files of the team that findings name, and what was kept of sessions they name.
  Names are percent-encoded.

**It holds what people wrote in chats and decisions, and perhaps what an agent was shown.** Its
files can be read by their owner alone. What was redacted in the ledger is not in it.

## What was left out

Files that no finding names, and transcripts that were not kept. Besides:

{left}
"""
