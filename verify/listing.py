"""Lists entries: who, when, what kind, and the text in a line; damaged ones as far as they go.

Each entry is held against itself alone: whether header, row, body and signature belong together.
Whether the ledger is whole is what the checks judge.
"""

from __future__ import annotations

import re
from base64 import b64decode
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from tripod.ledger import MERGED, Entry, LedgerError, RawEntry, commit_body, entry_mark, header_auth
from tripod.ledger.entry import format_canonical
from tripod.ledger.kinds.merged import PEER, peer_mark, peer_view
from tripod.ledger.kinds.peers import NAME_IDS, PEER_ADDED, TEAM_NAMED
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.store import Selection
from tripod.verify.rows import RowReader, erasing_row, replica_of_peer

_NEAR = 64  # entries: how far the time of one that cannot be read is looked for
_FIELD = re.compile(r"\{(\w+)\}")
_DIGEST = re.compile("[0-9a-f]{64}")
_HEADER = ("at", "actor", "kind", "stream", "id")
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


class ListedEntry(NamedTuple):
    """An entry as a list shows it; what cannot be read is ''.

    ``mark`` is ``signed``, ``observed``, or '' where a command recorded it without a signature; of
    an entry of a peer, which is shown as the one that it keeps, with ``peer`` in front.
    ``text`` may have several lines. ``problem`` says what is wrong with the entry. With ``last`` it
    stands for all entries from ``seq`` to that one, which cannot be read.
    """

    seq: int
    at: str = ""
    actor: str = ""
    kind: str = ""
    stream: str = ""
    id: str = ""
    mark: str = ""
    text: str = ""
    problem: str = ""
    last: int | None = None


@dataclass(frozen=True)
class ListingFilter:
    """Which entries are listed; by default all. Of several actors or kinds, any.

    ``stream`` may end in a slash and stands for all that begin so. ``since`` and ``until`` are
    times as headers have them, the second not included. ``grep`` is looked for in the text, upper
    and lower case alike. ``decision`` is an id: the entry that logged it, the messages that it
    refers to, what follows from it, and what names it.
    """

    actors: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    stream: str | None = None
    since: str | None = None
    until: str | None = None
    grep: str | None = None
    decision: str | None = None


def listed_entries(
    ledger: RowReader,
    wanted: ListingFilter,
    start: int = 0,
    stop: int | None = None,
    *,
    newest_first: bool = True,
) -> Iterator[ListedEntry]:
    """The entries of a range that are wanted.

    Raises LookupError: there is no such decision; ValueError: the id means several.
    """
    fits = _fitting(ledger, wanted)
    kinds = (*wanted.kinds, MERGED) if wanted.kinds else ()
    chosen: Selection = {"kinds": kinds, "newest_first": newest_first}
    if wanted.stream is not None and not wanted.stream.endswith("/"):
        chosen["stream"] = wanted.stream
    spans = list(_spans(ledger, start, ledger.end() if stop is None else stop, wanted))
    if newest_first:
        spans.reverse()
    sought = None if wanted.grep is None else wanted.grep.casefold()

    def found() -> Iterator[ListedEntry]:
        for first, end in spans:
            for row in _walked(ledger, first, end, chosen):
                if isinstance(row, ListedEntry):
                    yield row
                elif fits(seen_row(ledger, row)):
                    one = listed_entry(ledger, row)
                    if sought is None or sought in one.text.casefold():
                        yield one

    return found()


def listed_entry(ledger: RowReader, row: RawEntry) -> ListedEntry:
    """A row as a list shows it."""
    problem, head = "", dict.fromkeys(_HEADER, "")
    try:
        said = orjson.loads(row.header)
        head = {name: said[name] + "" for name in _HEADER}  # a TypeError unless it is text
        apart = [
            name for name in ("seq", "id", "kind", "stream") if said[name] != getattr(row, name)
        ]
        if apart:
            problem = f"its row has another {apart[0]} than its header"
        elif ledger.bodies and said.get("auth") != (row.auth and header_auth(row.auth)):
            problem = "its signature record is not the one that its header names"
    except _BROKEN:
        said = {}
        problem = "its header cannot be read"
        head |= {name: str(getattr(row, name)) for name in ("id", "kind", "stream")}
    data: dict[str, Any] = {}
    try:
        if row.salt is None and row.body is None:
            erased = erasing_row(ledger.db, row.seq) if ledger.bodies else None
            if erased is None and ledger.bodies:
                problem = problem or "its body is missing, and no entry says that it was erased"
            elif erased is not None:
                data = erased[1]["keep"]
        else:
            if said and commit_body(row.salt or b"", head["kind"], row.body or b"") != said["body"]:
                problem = problem or "its body is not the one that its header commits to"
            data = dict(orjson.loads(row.body or b""))
    except _BROKEN:
        problem = problem or "its body cannot be read"
    observed = "observed" in data or head["id"].startswith("obs-")
    signed = row.auth is not None if ledger.bodies else "auth" in said
    is_merged = head["kind"] == MERGED
    mark = entry_mark(observed=observed, signed=signed, peer=is_merged)
    at, actor, kind, stream, id_ = (head[name] for name in _HEADER)
    if is_merged and data:
        try:
            inner, mark = _inner(ledger, row, data), peer_mark(data, ledger.blob)
            at, actor, kind, stream, data = (
                inner.at,
                inner.actor,
                inner.kind,
                inner.stream,
                inner.data,
            )
        except (*_BROKEN, LedgerError):
            problem = problem or "the entry of a peer that it keeps cannot be read"
    lost: list[str] = []
    text = _text(kind, data, lambda value: _plain(ledger, value, lost))
    problem = problem or "".join(lost[:1])
    return ListedEntry(row.seq, at, actor, kind, stream, id_, mark, text, problem)


def _inner(ledger: RowReader, row: RawEntry, data: dict[str, Any]) -> Entry:
    """The entry that one of a peer keeps, with its actor as it is called here.

    A handle alone is one that is enrolled here and signed, which its place says. A kind that counts
    only in its own replica has no place, and its actor is nobody here.
    """
    inner, place = peer_view(_entry(row, data), ledger.blob), data.get("place") or {}
    known = BY_NAME.get(inner.kind)
    is_shared = known is not None and known.merge == "shared" and "same" not in place
    if is_shared or "actor" in place:
        return inner
    name = replica_of_peer(ledger.db, data["origin"]) or data["origin"]
    return inner._replace(actor=f"{inner.actor}@{name}")


def _entry(row: RawEntry, data: dict[str, Any]) -> Entry:
    return Entry(*row[:4], "", "", *row[4:7], data, row.auth)


def seen_row(ledger: RowReader, row: RawEntry) -> RawEntry:
    """A row as it counts here: of an entry of a peer, what that keeps, as it is shown here."""
    if row.kind != MERGED:
        return row
    try:
        said = erasing_row(ledger.db, row.seq) if row.body is None else None
        data = orjson.loads(row.body or b"") if said is None else said[1]["keep"]
        inner = _inner(ledger, row, data)
        header = {**orjson.loads(inner.header), "actor": inner.actor}
        body = orjson.dumps(inner.data)
        return row._replace(
            kind=inner.kind, stream=inner.stream, header=format_canonical(header), body=body
        )
    except (*_BROKEN, LedgerError):
        return row


# Text -------------------------------------------------------------------------------------------


def _text(kind: str, data: Mapping[str, Any], plain: Callable[[Any], str]) -> str:
    """What an entry says, in the line of its kind; without one, its fields by name."""
    known = BY_NAME.get(kind)
    if known is not None and known.line and data:
        return _FIELD.sub(lambda field: plain(data.get(field[1])), known.line).strip(" :")
    texts = {name: plain(data[name]) for name in data if name not in ("v", "observed", PEER)}
    shown = {name: text for name, text in texts.items() if not _DIGEST.fullmatch(text)}
    return " ".join(
        f"{name}={shown[name]}" for name in sorted(shown, key=lambda n: "\n" in shown[n])
    )


def _plain(ledger: RowReader, value: Any, lost: list[str]) -> str:
    """A field as text: content as what it holds, lists and objects as JSON.

    Of a blob that is not the one that the field names, ``lost`` is told.
    """
    if value is None:
        return ""
    if type(value) is dict and value.keys() <= {"text", "base64", "sha256", "size"}:
        with suppress(*_BROKEN):
            if "text" in value:
                return str(value["text"])
            if "base64" in value:
                return b64decode(value["base64"]).decode(errors="replace")
            digest = bytes.fromhex(value["sha256"])
            blob = ledger.blob(digest)
            if type(blob) is bytes and sha256(blob).digest() == digest:
                return blob.decode(errors="replace")
            lost.append(f"its blob {value['sha256'][:12]}… is missing or altered")
            return ""
    return value if type(value) is str else orjson.dumps(value).decode(errors="replace")


# Which entries ----------------------------------------------------------------------------------


def _fitting(ledger: RowReader, wanted: ListingFilter) -> Callable[[RawEntry], bool]:
    """Whether a row is wanted, as far as that shows without its text."""
    tests: list[Callable[[RawEntry], bool]] = []
    if wanted.actors:
        # A header begins with its actor: what is not wanted is not decoded.
        fronts = tuple(format_canonical({"actor": name})[:-1] + b"," for name in wanted.actors)
        tests.append(lambda row: type(row.header) is bytes and row.header.startswith(fronts))
    if wanted.kinds:
        tests.append(lambda row: row.kind in wanted.kinds)
    if wanted.stream is not None:
        name, is_front = wanted.stream, wanted.stream.endswith("/")
        tests.append(
            lambda row: str(row.stream).startswith(name) if is_front else row.stream == name
        )
    if wanted.decision is not None:
        tests.append(_about(ledger, wanted.decision))
    return lambda row: all(test(row) for test in tests)


def _about(ledger: RowReader, decision: str) -> Callable[[RawEntry], bool]:
    """Whether a row is about a decision (LookupError: none has this id; ValueError: several)."""
    front, slash, bare = decision.rpartition("/")
    front = _replica_meant(ledger, front) if front else front
    ours = front if slash and ledger.seq_of(NAME_IDS[0] + front) is not None else ""
    decision = bare if ours or not slash else f"{front}/{bare}"
    names = re.compile(re.escape(decision.encode()) + b"(?![0-9])").search
    seqs: set[int] = set()
    causes: list[bytes] = []
    meant: dict[str, str] = {}
    own = ""
    for named in ledger.raw(kinds=("team.named",)):
        with suppress(*_BROKEN):
            own = f"{orjson.loads(named.body or b'')['replica']}/"
    for each in ledger.raw(kinds=("decision.logged", MERGED)):
        row = seen_row(ledger, each)
        with suppress(*_BROKEN):
            if not names(row.body or b"") or row.kind != "decision.logged":
                continue
            data = orjson.loads(row.body or b"")
            whole = data.get("made") or f"{own}{data['id']}"
            if ours and "made" in data:
                continue
            if decision in (data["id"], whole, whole.rpartition("/")[2]):
                meant[data["id"]] = whole
                seqs |= {row.seq, *(one["seq"] for one in data["refs"] if "seq" in one)}
                causes.append(b'"cause":%b' % format_canonical(orjson.loads(row.header)["id"]))
    if not causes:
        raise LookupError(decision)
    if len(meant) > 1:
        which = " and ".join(sorted(meant.values()))
        raise ValueError(f"{decision} means {len(meant)} decisions: {which}")

    def about(row: RawEntry) -> bool:
        if row.seq in seqs:
            return True
        if type(row.body) is bytes and names(row.body):
            return True
        return type(row.header) is bytes and any(cause in row.header for cause in causes)

    return about


def _replica_meant(ledger: RowReader, front: str) -> str:
    """The replica whose name begins so (ValueError: several); ``front`` itself where none does."""
    names = set()
    for row in ledger.raw(kinds=(TEAM_NAMED.name, PEER_ADDED.name)):
        with suppress(*_BROKEN):
            names.add(str(orjson.loads(row.body or b"")["replica"]))
    alike = sorted(name for name in names if name.startswith(front))
    if len(alike) > 1 and front not in names:
        raise ValueError(f"{front} may be {' and '.join(alike)}")
    return front if front in names or not alike else alike[0]


def _spans(
    ledger: RowReader, start: int, stop: int, wanted: ListingFilter
) -> Iterator[tuple[int, int]]:
    """The parts of a range that lie in the time that is wanted, oldest first, found by halving.

    Times never go back, but for a fork, which begins a line of its own (ADR 0013).
    """
    if wanted.since is None and wanted.until is None:
        yield start, stop
        return
    forks: list[int] = []
    if _header(ledger, 0).get("ledger") != _header(ledger, ledger.size - 1).get("ledger"):
        forks = [row.seq for row in ledger.raw(kinds=("ledger.forked-from",))]

    def at(seq: int) -> str:
        return str(_header(ledger, seq).get("at", ""))

    for first, end in pairwise((start, *(seq for seq in forks if start < seq < stop), stop)):
        low, high = first, end
        if wanted.since is not None:
            low += bisect_left(range(first, end), wanted.since, key=at)
        if wanted.until is not None:
            high = first + bisect_left(range(first, end), wanted.until, key=at)
        if low < high:
            yield low, high


def _header(ledger: RowReader, seq: int) -> dict[str, Any]:
    """The header of an entry; of the nearest one before it where it cannot be read."""
    for near in range(seq, max(-1, seq - _NEAR), -1):
        with suppress(*_BROKEN):
            return dict(orjson.loads(ledger.header(near) or b""))
    return {}


# Rows of a damaged file -------------------------------------------------------------------------


def _walked(
    ledger: RowReader, start: int, stop: int, chosen: Selection
) -> Iterator[RawEntry | ListedEntry]:
    """The rows of a range in order; one ``ListedEntry`` stands for those that cannot be read.

    Where pages are damaged, rows come that were not chosen.
    """
    backwards = chosen.get("newest_first", False)
    while start < stop:
        ledger.problem = ""
        for row in ledger.raw(start, stop, **chosen):
            if not start <= row.seq < stop:  # pages that lead back to each other would never end
                ledger.problem = "pages are not in order"
                break
            start, stop = (start, row.seq) if backwards else (row.seq + 1, stop)
            yield row
        if not ledger.problem or start == stop:
            return
        if chosen.keys() != {"newest_first"}:
            chosen = {"newest_first": backwards}
            continue  # which rows are damaged shows where each is asked for
        reason = ledger.problem
        width = _unreadable(ledger, range(start, stop)[:: -1 if backwards else 1])
        first = stop - max(width, 1) if backwards else start
        end = first + max(width, 1)
        start, stop = (start, first) if backwards else (end, stop)
        if width:
            yield ListedEntry(first, problem=f"cannot be read: {reason}", last=end - 1)
        else:
            yield from ledger.raw(first, end)


def _unreadable(ledger: RowReader, seqs: range) -> int:
    """How many rows from the first of ``seqs`` on cannot be read, found by doubling and halving.

    One in the middle that can be read is passed over where those around it cannot.
    """

    def is_readable(place: int) -> bool:
        ledger.problem = ""
        list(ledger.raw(seqs[place], seqs[place] + 1))
        return not ledger.problem

    if is_readable(0):
        return 0
    low, high = 0, 1
    while high < len(seqs) and not is_readable(high):
        low, high = high, 2 * high
    places = range(low + 1, min(high, len(seqs)))
    return low + 1 + bisect_left(places, x=True, key=is_readable)
