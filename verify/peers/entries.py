"""Judges the entries of a replica's record one by one, before anything of them is taken.

The rules are those of the checks, each asked of its own function; a bad entry ends the judgement of
its replica there. What is *shown* of a shared entry is judged besides: a message, event or decision
is what its file would say, and no more, so that no stranger writes a second one into our files.
References to what is not here are not judged by it.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from tripod.ledger import (
    GENESIS,
    MAX_BODY,
    MERGED,
    REDACTED,
    Header,
    MalformedError,
    actors,
    check_link,
    parse_header,
    redaction_entry_id,
)
from tripod.ledger.actors import ENROLLED, Record, actor_statement
from tripod.ledger.entry import entry_blobs, entry_leaf_hash
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.tlog.note import VerifierKey
from tripod.projections.bus import format as bus_format
from tripod.projections.chat import format as chat_format
from tripod.projections.decisions import format as log_format
from tripod.projections.decisions.tables import decision_text_of
from tripod.projections.erasure import tombstone
from tripod.projections.text import text_line_problem
from tripod.verify.checks import (
    bodies_present,
    canonical_bytes,
    chain_links,
    kinds_known,
    sequence,
    writers_authorised,
)
from tripod.verify.export_file import FileError
from tripod.verify.peers.seals import (
    BadEntryError,
    RecordProblemError,
    SealedEntry,
    SealedRecord,
    sealed_body,
)
from tripod.verify.scan.rows import USUAL, row_stands

MAX_WORDS = 4096 + 64
"""Characters of an actor, an id, a stream, a cause: the longest path, and what stands before it."""

_DIGEST = re.compile("[0-9a-f]{64}")
_MARK = b'"sha256"'  # only a body that names a blob, or a digest, holds it
_FRONT = r"(?:[A-Za-z0-9][A-Za-z0-9_-]{0,40}/)?"
_BROKEN = (LookupError, TypeError, ValueError, AttributeError, RecursionError, MalformedError)


class JudgedEntry(NamedTuple):
    """A sound entry that its replica made itself: its parts, its decoded body, its blobs.

    Where the body was erased, ``salt`` and ``body`` are None, and ``data`` is what its ``redacted``
    entry keeps of it. ``signed``: a key that its actor has here signed it.
    """

    seq: int
    raw: bytes
    header: Header
    auth: bytes | None
    salt: bytes | None
    body: bytes | None
    data: dict[str, Any]
    blobs: Mapping[bytes, bytes]
    signed: bool


class RecordJudge:
    """Judges the entries of a sealed record in their order, from its ``start`` on.

    ``keys`` gives the keys that a handle has or had here; ``most_blobs`` are read at most.
    """

    def __init__(
        self, record: SealedRecord, keys: Callable[[str], list[VerifierKey]], most_blobs: int
    ) -> None:
        self.record = record
        self._room = most_blobs
        before = record.before()
        self._prev = GENESIS if before is None else entry_leaf_hash(before).hex()
        self._line = "" if before is None else parse_header(before).ledger
        self._keys = keys
        self._enrolled: dict[str, list[VerifierKey]] = {}
        self._signed: tuple[bytes, VerifierKey, Record] | None = None
        self._erasing: dict[int, tuple[Header, dict[str, Any]]] | None = None

    def skip(self, entry: SealedEntry) -> None:
        """Go on behind an entry that was judged before."""
        self._prev, self._line = entry.leaf.hex(), parse_header(entry.header).ledger

    def judge(self, entry: SealedEntry) -> JudgedEntry | None:
        """The entry as it is taken; None: the replica keeps another's entry by it.

        Raises BadEntryError, after which this judge is of no more use.
        """
        try:
            return self._judge(entry)
        except MalformedError as error:
            raise BadEntryError(entry.seq, str(error)) from error

    def _judge(self, entry: SealedEntry) -> JudgedEntry | None:
        seq, raw, leaf, (salt, body, auth) = entry
        header = parse_header(raw)
        left = self._line
        if seq == 0 or header.kind == "ledger.forked-from":
            self._line = header.ledger
        self._require(seq, check_link(header, seq, self._prev, self._line))
        self._prev = leaf.hex()
        if header.kind == MERGED:
            return None
        if header.kind not in BY_NAME:
            raise BadEntryError(
                seq,
                f"{header.kind!r} is a kind that this version does not know: upgrade tripod, then "
                "it is taken with all that follows",
            )
        words = (header.actor, header.id, header.kind, header.stream, header.cause or "")
        if max(map(len, words)) > MAX_WORDS:
            raise BadEntryError(seq, f"its header says more than {MAX_WORDS} characters in a word")
        signed = False
        if header.auth is not None or auth is not None:
            signed = self._is_signed(seq, raw, header, auth)
        if salt is None and body is None:
            keep = self._kept(seq, header)
            self._require(seq, shown_problem(header.kind, keep, {}))
            return JudgedEntry(seq, raw, header, auth, None, None, keep, {}, signed)
        self._require(seq, bodies_present.body_problem(header, salt, body))
        assert salt is not None
        assert body is not None
        data = self._data(seq, header, body)
        opening = sequence.sequence_opening_problem(seq, header.kind, data, header.ledger)
        self._require(seq, opening)
        if header.kind == "ledger.forked-from":
            self._require(seq, chain_links.chain_fork_problem(header, data, left))
        blobs = self._blobs(seq, data) if _MARK in body else {}
        self._require(seq, shown_problem(header.kind, data, blobs))
        if header.kind == ENROLLED:
            self._enrol(data)
        elif header.kind == REDACTED:
            self._require(seq, _redaction_problem(header, data))
        held = {bytes.fromhex(digest): blob for digest, blob in blobs.items()}
        return JudgedEntry(seq, raw, header, auth, salt, body, data, held, signed)

    def _require(self, seq: int, problem: str | None) -> None:
        if problem is not None:
            raise BadEntryError(seq, problem)

    def _data(self, seq: int, header: Header, body: bytes) -> dict[str, Any]:
        """The body, if it has the one spelling and the form of its kind, in its place."""
        kind, stream = header.kind, header.stream
        usual = USUAL[kind]
        data: dict[str, Any]
        if usual is not None and len(body) <= MAX_BODY and usual.fits(body) is not None:
            try:
                data = orjson.loads(body)
                in_place = usual.below or stream == usual.place
                if in_place and (not usual.below or row_stands(kind, stream, usual.place, body)):
                    return data
            except ValueError:
                pass  # the rules say what is wrong
        self._require(seq, canonical_bytes.body_problem(body))
        data = orjson.loads(body)
        problem = kinds_known.kind_problem(kind, stream, data)
        if problem is not None:
            raise BadEntryError(
                seq, f"{problem}; if a newer version made it, upgrade tripod: nothing is lost"
            )
        return data

    # Signatures --------------------------------------------------------------------------------

    def _enrol(self, data: Mapping[str, Any]) -> None:
        try:
            key = VerifierKey.parse(data["vkey"])
        except MalformedError:
            return
        self._enrolled.setdefault(data["handle"], []).append(key)

    def _is_signed(self, seq: int, raw: bytes, header: Header, auth: bytes | None) -> bool:
        """Whether a key that the actor has here signed an entry.

        Raises BadEntryError where the record is not the one that the header names, or names a key
        of the actor, known here or from the record, that did not make it. One by an unknown key
        vouches for nobody.
        """
        self._require(seq, writers_authorised.writer_record_fault(header.auth, auth))
        assert auth is not None
        here = self._keys(header.actor)
        stated = actor_statement(orjson.loads(raw))
        if self._signed is not None and self._signed[0] == auth:
            _, key, record = self._signed
            if key.name == header.actor and actors.message_of(record, stated) is not None:
                return key in here
        record = actors.parse_actor_record(auth)
        for key in (*here, *self._enrolled.get(header.actor, ())):
            if key.key_id == record.key_id:
                problem = actors.actor_record_problem(record, stated, key)
                if problem is not None:
                    said = f"it says that {header.actor!r} signed it"
                    raise BadEntryError(seq, f"{said}: {problem}")
                self._signed = (auth, key, record)
                return key in here
        return False

    # Erased bodies -----------------------------------------------------------------------------

    def _kept(self, seq: int, header: Header) -> dict[str, Any]:
        """What stands for a body that its replica erased, as a later entry of the record says."""
        if self._erasing is None:
            found = [
                (erasing, sealed_body(erasing, said))
                for erasing, said in self.record.of_kinds((REDACTED,))
            ]
            self._erasing = {
                body["seq"]: (erasing, body)
                for erasing, body in found
                if type(body.get("seq")) is int
            }
        said = self._erasing.get(seq)
        if said is None or said[0].id != redaction_entry_id(seq):
            said = None
        problem = bodies_present.body_erasure_problem(seq, header, said and (said[0].seq, said[1]))
        self._require(seq, problem)
        assert said is not None
        keep = kept_body(said[1])
        if keep is None:
            raise BadEntryError(seq, f"entry {said[0].seq} keeps more of it than may stay")
        self._require(seq, kinds_known.kind_problem(header.kind, header.stream, keep))
        return keep

    # Blobs -------------------------------------------------------------------------------------

    def _blobs(self, seq: int, data: Mapping[str, Any]) -> dict[str, bytes]:
        """The blobs that a body names, by digest: each must be there, whole."""
        blobs: dict[str, bytes] = {}
        for digest, size in entry_blobs(data):
            if digest in blobs:
                continue
            if not _DIGEST.fullmatch(digest):
                raise BadEntryError(seq, "it names a blob by what is no digest")
            self._room -= 1
            if self._room < 0:
                raise RecordProblemError("it names more blobs than are read in one pull")
            try:
                blob = self.record.read_blob(digest, size)
            except FileError as error:
                raise BadEntryError(seq, f"a blob of it: {error}") from error
            if len(blob) != size or sha256(blob).hexdigest() != digest:
                raise BadEntryError(seq, f"blob {digest[:12]}… is not the one that it names")
            blobs[digest] = blob
        return blobs


def _redaction_problem(header: Header, data: Mapping[str, Any]) -> str | None:
    """What is wrong with what an entry says of the one that it erased."""
    erased = data["seq"]
    if erased >= header.seq or header.id != redaction_entry_id(erased):
        return f"it says that entry {erased} was erased, and does not stand where that is said"
    return f"it keeps more of entry {erased} than may stay" if kept_body(data) is None else None


def kept_body(redacted: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a ``redacted`` body keeps of another; None where that is more than may stay."""
    try:
        keep: dict[str, Any] = redacted["keep"]
        return keep if tombstone(redacted["kind"], keep) == keep else None
    except _BROKEN:
        return None


# What is shown ----------------------------------------------------------------------------------


def shown_problem(kind: str, data: Mapping[str, Any], blobs: Mapping[str, bytes]) -> str | None:
    """What is wrong with how an entry of a shared kind shows in a file; None for all others.

    ``data`` fits the model of the kind, ``blobs`` are those that it names.
    """
    judge = _SHOWN.get(kind)
    if judge is None:
        return None
    try:
        return judge(data, blobs)
    except _BROKEN as error:
        return f"it cannot be shown: {error}"


def _bytes_of(content: Mapping[str, Any], blobs: Mapping[str, bytes]) -> bytes:
    """The bytes of a content (ValueError, LookupError: it has none)."""
    if "text" in content:
        return str(content["text"]).encode()
    if "base64" in content:
        return b64decode(content["base64"], validate=True)
    return blobs[content["sha256"]]


def _raw(data: Mapping[str, Any], blobs: Mapping[str, bytes]) -> bytes | None:
    raw = (data.get("observed") or {}).get("raw")
    return None if raw is None else _bytes_of(raw, blobs)


def _channel(data: Mapping[str, Any], _: Mapping[str, bytes]) -> str | None:
    channel = data["channel"]
    # What others named a chat is wider than what we let a new one be named.
    if re.fullmatch(_FRONT + r"[^/\x00-\x1f\x7f]{1,250}", channel) and ".." not in channel:
        return None
    return f"{channel[:100]!r} is no name of a chat"


def _message(data: Mapping[str, Any], blobs: Mapping[str, bytes]) -> str | None:
    handle = data["handle"]
    problem = _channel(data, blobs) or text_line_problem(handle, "handle", chat_format.MAX_HANDLE)
    if problem is not None:
        return problem
    if "|" in handle or ": " in handle:
        return f"the handle {handle!r} would end within its name"
    text = _bytes_of(data["text"], blobs).decode()
    raw = _raw(data, blobs)
    if raw is None:
        return chat_format.valid_chat_text(text)
    shown = chat_format.parse_line(raw.removesuffix(b"\n"))
    if shown is None or (shown.handle, shown.text) != (handle, text):
        return "its line says another message than its body"
    return None


def _unreadable(data: Mapping[str, Any], blobs: Mapping[str, bytes]) -> str | None:
    line = (_raw(data, blobs) or b"").removesuffix(b"\n")
    shown = chat_format.parse_line(line)
    if b"\n" in line or (shown is not None and "\n" not in shown.handle):
        return "it says that a line holds no message, and the line holds one"
    return _channel(data, blobs)


def _event_name(name: str) -> str | None:
    front, slash, own = name.rpartition("/")
    if slash and not re.fullmatch(_FRONT, f"{front}/"):
        return f"{name[:100]!r} is no name of an event"
    problem = bus_format.valid_event_name(own) or bus_format.name_problem(own)
    return problem or text_line_problem(own, "event", 255)


def _event(data: Mapping[str, Any], blobs: Mapping[str, bytes]) -> str | None:
    raw = _raw(data, blobs)
    problem = _event_name(data["name"])
    if raw is None and problem is None:
        if "payload" in data:
            _bytes_of(data["payload"], blobs).decode()
        for what in ("source", "type"):
            problem = problem or bus_format.valid_event_word(data[what], what)
    return problem


def _acked(data: Mapping[str, Any], _: Mapping[str, bytes]) -> str | None:
    return _event_name(data["name"])


def _acked_all(data: Mapping[str, Any], _: Mapping[str, bytes]) -> str | None:
    queue = data.get("queue")
    if queue is not None and not re.fullmatch(_FRONT, f"{queue}/"):
        return f"{queue[:100]!r} is no name of a queue"
    return None


def _log_name(data: Mapping[str, Any]) -> str | None:
    return log_format.decision_log_name_problem(data["file"]) if "file" in data else None


def _decision(data: Mapping[str, Any], blobs: Mapping[str, bytes]) -> str | None:
    raw, problem = _raw(data, blobs), _log_name(data)
    if raw is None:
        log_format.format_decision(decision_text_of(data))
        return problem
    shown, _ = log_format.parse_decision(raw)
    if shown is None or shown.id != data["id"] or log_format.count_decision_headings(raw) != 1:
        return "its piece of the log says another decision than its body"
    return problem


def _noted(data: Mapping[str, Any], blobs: Mapping[str, bytes]) -> str | None:
    _, pieces = log_format.split_decision_log(_raw(data, blobs) or b"")
    if any(log_format.parse_decision(piece)[0] is not None for piece in pieces):
        return "it says that a piece of the log is no decision, and it holds one"
    return _log_name(data)


def _begun(data: Mapping[str, Any], blobs: Mapping[str, bytes]) -> str | None:
    if log_format.count_decision_headings(_bytes_of(data["header"], blobs)):
        return "it begins a log with a header that holds a decision"
    return _log_name(data)


_SHOWN: dict[str, Callable[[Mapping[str, Any], Mapping[str, bytes]], str | None]] = {
    "chat.created": _channel,
    "chat.sent": _message,
    "chat.unreadable": _unreadable,
    "bus.published": _event,
    "bus.acked": _acked,
    "bus.acked-all": _acked_all,
    "decision.logged": _decision,
    "log.noted": _noted,
    "log.begun": _begun,
}
