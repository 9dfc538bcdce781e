"""Judges what entries of peers are called here: each member of a ``place`` is found again. Pure.

The owner of a ledger writes the places. By a made-up one a decision could supersede another than
its maker said, an acknowledgement close another event, or a message be hidden behind another one.
A ledger also says what it calls the maker of an entry: its owner could show it as somebody else's.
The maker's header and body say who it is by, and a signature whether a handle that has a key here
wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from tripod.ledger import MERGED, Header, LedgerReader, MalformedError, redaction_entry_id
from tripod.ledger.actors import actor_record_problem, actor_statement, parse_actor_record
from tripod.ledger.kinds.bus import ACKED, ACKED_ALL, PUBLISHED
from tripod.ledger.kinds.chat import CREATED, SENT, UNREADABLE
from tripod.ledger.kinds.decisions import BEGUN, LOGGED, NOTED
from tripod.ledger.kinds.merged import KeptEntry, peer_view
from tripod.ledger.kinds.peers import NAME_IDS
from tripod.ledger.kinds.pythia import ASSESSED
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.trailer import KEY_DIGITS
from tripod.projections.bus.format import Event, event_name_us, format_event, format_time
from tripod.projections.chat.tables import ref_to_chat_line
from tripod.projections.decisions import format as log_format
from tripod.projections.decisions.format import ChatRef
from tripod.projections.layout import LIVE
from tripod.projections.peers.lookup import (
    EVENT_OF_PEER,
    PeerLookup,
    flat_peer_name,
    is_event_of,
    observed_piece,
    peer_channel_problem,
    peer_log_problem,
    piece_of,
    short_peer_digest,
)
from tripod.verify.check import Evidence
from tripod.verify.checks.chat_refs_resolve import Channels, bound_problem, read_channels

_SPEAKERS = {"handle", "source"}
_LONGEST = 46  # characters of a handle that cannot be shown as it is
# What a merge knew of keys when it appended the entry: later changes say nothing of it.
_HAS_KEY = "SELECT 1 FROM actors WHERE handle = ? AND seq < ?"
_KEYS = "SELECT vkey FROM actors WHERE handle = ? AND seq < ? GROUP BY vkey HAVING NOT max(revoked)"


def misattribution(
    kept: KeptEntry,
    head: Header,
    data: Mapping[str, Any],
    name: str | None,
    query: Callable[..., Sequence[tuple[Any, ...]]],
    *,
    at: int,
) -> str | None:
    """Whether entry ``at``, of the replica ``name``, is shown as somebody's who did not make it.

    Without the mark of the replica it is shown only where a key of its actor signed it that was
    enrolled in this ledger before entry ``at``, and not revoked before it. ``data`` is the body of
    entry ``at``, ``name`` is None where no entry says it; ``query`` asks the tables.
    """
    kind = BY_NAME.get(head.kind)
    if kind is None or kind.merge != "shared":
        return None
    who, part = name or kept.origin, (kind.is_speech and kind.actor) or ""
    place = data.get("place") or {}
    body = data.get("keep") or {} if kept.body is None else orjson.loads(kept.body)
    speaker = str(body.get(part, head.actor))
    for member, handle in (("actor", head.actor), (part, speaker)):
        if member in place and name and not is_marked(str(place[member]), handle, name):
            return f"it shows an entry of {who} as one by {place[member]!r}"
    # Of the kinds that say who speaks each has a member of its own: another one would keep that
    # from being marked.
    if head.kind != ACKED_ALL.name and place.keys() & _SPEAKERS - {part}:
        return f"it shows an entry of {who} as one by {head.actor!r}, and by somebody else"
    is_other = speaker != head.actor and part not in place
    if is_other and ("actor" in place or query(_HAS_KEY, speaker, at)):
        return f"it shows {speaker!r} as who speaks, and {head.actor!r} of {who} did it"
    if "actor" in place:
        return None
    with suppress(MalformedError):
        record = parse_actor_record(kept.auth or b"")
        stated = actor_statement(orjson.loads(kept.header))
        for (vkey,) in query(_KEYS, head.actor, at):
            key = VerifierKey.parse(vkey)
            if actor_record_problem(record, stated, key) is None:
                return None
    return f"it shows an entry of {who} as one by {head.actor!r}, whose key did not sign it"


def is_marked(shown: str, handle: str, replica: str) -> bool:
    """Whether ``shown`` is the handle with the mark of the replica."""
    if shown == f"{handle}@{replica}":
        return True
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", handle)[:_LONGEST] or "_"
    return shown == f"{plain}@{replica[-KEY_DIGITS:]}"


_NUMBERED = re.compile(r"(-[0-9a-f]{16})-[0-9]+(?=\.event$)")
_BROKEN = (LookupError, TypeError, ValueError, AttributeError)


class PlacedEntry(NamedTuple):
    """A shared entry of the peer ``origin``, kept by entry ``at``: its parts, and its place here.

    ``replica`` is the peer's name; ``body`` is what its maker recorded, or, where it is ``erased``,
    what stands for that.
    """

    at: int
    origin: str
    replica: str
    head: Header
    body: Mapping[str, Any]
    place: Mapping[str, Any]
    erased: bool


class PlaceJudge:
    """Judges the places in the ledger ``origin`` by its tables, in the order of its entries."""

    def __init__(self, evidence: Evidence, ledger: LedgerReader, origin: str) -> None:
        self._evidence, self._ledger = evidence, ledger
        named = ledger.raw_by_id(*NAME_IDS)
        self._names = {row.id.removeprefix(NAME_IDS[0]) for row in named}
        self._lookup = PeerLookup(evidence.source.db, origin, self._read)
        self._channels: Channels | None = None
        self._shown: dict[int, tuple[str, str, bytes]] = {}
        """Kind, id and leaf hash of the entries of peers that are shown, by the number here."""

    def problem(
        self, at: int, kept: KeptEntry, head: Header, data: Mapping[str, Any], name: str | None
    ) -> str | None:
        """What is wrong with how entry ``at`` shows the entry that it keeps of a peer.

        ``data`` is its body, ``name`` that of the peer's replica: None where no entry says it.
        """
        place, who = data.get("place") or {}, name or kept.origin
        if "same" in place:
            same, problem = place["same"], self._hidden(at, place["same"], kept, head)
            shown = f"it shows entry {same} in the place of entry {kept.seq} of {who}, {problem}"
            return None if problem is None else shown
        self._shown[at] = head.kind, head.id, kept.leaf()
        problem = misattribution(kept, head, data, name, self._evidence.query, at=at)
        if problem is not None:
            return problem
        body = data.get("keep") or {} if kept.body is None else orjson.loads(kept.body)
        name = name or f"peer-{short_peer_digest(kept.origin)}"
        one = PlacedEntry(at, kept.origin, name, head, body, place, kept.body is None)
        problem = self._misplaced(one)
        return None if problem is None else f"it shows entry {kept.seq} of {who} {problem}"

    def _hidden(self, at: int, same: int, kept: KeptEntry, head: Header) -> str | None:
        """Why entry ``same`` cannot be shown for an entry of a peer; None: it holds the same."""
        entry = self._ledger.entry(same) if same < at else None
        if entry is None:
            return "and that is not before it"
        kind, id_, leaf = self._shown.get(same, (entry.kind, entry.id, b""))
        if kind == MERGED:
            return "and that is not shown"
        is_same = leaf == kept.leaf()
        if head.id.startswith("obs-"):
            is_same = (kind, id_) == (head.kind, head.id)
            if is_same and kept.body is not None and entry.body is not None:
                piece = head.kind, piece_of(orjson.loads(kept.body))
                is_same = observed_piece(entry, self._ledger.blob) == piece
        return None if is_same else "and that is another"

    def _read(self, seq: int) -> dict[str, Any]:
        """The body of an entry that is kept of a peer, as its maker recorded it."""
        entry = self._ledger.entry(seq)
        return {} if entry is None else peer_view(entry, self._ledger.blob).data

    def _misplaced(self, one: PlacedEntry) -> str | None:
        """What an entry is called otherwise than it must be; None where nothing is."""
        kind = BY_NAME.get(one.head.kind)
        judge, members = _JUDGES.get(one.head.kind, (None, frozenset[str]()))
        strange = one.place.keys() - members - {"actor"}
        if judge is None or kind is None:
            return f"with {min(one.place)!r}, which its kind has not" if one.place else None
        if strange:
            return f"with {min(strange)!r}, which its kind has not"
        try:
            return judge(self, one)
        except _BROKEN as error:
            return f"in a way that cannot be judged: {type(error).__name__}: {error}"

    def _query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self._evidence.query(sql, *values)

    def _local(
        self, one: PlacedEntry, member: str, name: str, problem: str | None, end: str = ""
    ) -> str | None:
        """A channel or a log bears its own name, or one with the replica in it where it cannot.

        What stands in a folder could not have its own before that folder was added here.
        """
        shown = str(one.place.get(member, name))
        flat = flat_peer_name(one.replica, *name.removesuffix(end).split("/")) + end
        is_it = shown == name or (shown == flat and ("/" in name or problem is not None))
        return None if is_it else f"in {shown!r}, and it is of {name!r}"

    def _channel(self, one: PlacedEntry) -> str | None:
        name = str(one.body["channel"])
        return self._local(one, "channel", name, peer_channel_problem(name))

    def _log(self, one: PlacedEntry) -> str | None:
        name = str(one.body.get("file", LIVE))
        problem = peer_log_problem(self._evidence.source.db, name)
        return self._local(one, "file", name, problem, ".md")

    def _line(self, one: PlacedEntry) -> str | None:
        channel, index = one.place.get("channel", one.body["channel"]), one.place.get("index", -1)
        sql = "SELECT number, seq FROM lines WHERE channel = ? AND number IN (?, ?)"
        rows = dict(self._query(sql, channel, index - 1, index))
        if rows.get(index) != one.at or (index and rows.get(index - 1, one.at) >= one.at):
            return f"as line {index} of {channel}, which is not the next one"
        return self._channel(one)

    # Decisions ---------------------------------------------------------------------------------

    def _decision(self, one: PlacedEntry) -> str | None:
        body, place = one.body, one.place
        log, number = place.get("file", body.get("file", LIVE)), place.get("number", -1)
        sql = "SELECT number, min(seq) FROM pieces WHERE log = ? AND number IN (?, ?) GROUP BY 1"
        rows = dict(self._query(sql, log, number - 1, number))
        if rows.get(number) != one.at or (number > 1 and rows.get(number - 1, one.at) >= one.at):
            return f"as decision {number} of {log}, which is not the next one"
        if place.get("made") != f"{one.replica}/{body['id']}":
            return f"as made as {place.get('made')!r}, and it is {one.replica}/{body['id']}"
        problem = self._log(one) or self._id(one)
        return problem if problem or one.erased else self._target(one) or self._refs(one)

    def _id(self, one: PlacedEntry) -> str | None:
        """It has the first free id from its own on."""
        said, shown = str(one.body["id"]), str(one.place.get("id", one.body["id"]))
        first, last = int(said.removeprefix("D-")), int(shown.removeprefix("D-"))
        sql = "SELECT id FROM pieces WHERE id IN (%s) AND seq < ?"
        most = self._query("SELECT count(*) FROM pieces")[0][0]
        names = [f"D-{second}" for second in range(first + 1, last)]
        if 0 <= last - first <= most:
            names = [said, *names, shown] if shown != said else [said]
            marks = ", ".join("?" * len(names))
            taken = {id_ for (id_,) in self._query(sql % marks, *names, one.at)}
            if taken == {*names} - {shown}:
                return None
        return f"as {shown}, which is not the first free id from {said} on"

    def _target(self, one: PlacedEntry) -> str | None:
        """What it supersedes is what its maker means."""
        said = one.body.get("supersedes_made", one.body.get("supersedes"))
        shown = one.place.get("supersedes", one.body.get("supersedes"))
        if said is None:
            return None if shown is None else f"as one that supersedes {shown}, and it does not"
        front, _, own = str(said).rpartition("/")
        found = self._lookup.decisions_here(
            str(said), one.replica, one.origin, one.head.seq, one.at
        )
        found = [*found, own] if front in self._names else found or [str(said)]
        return None if shown in found else f"as one that supersedes {shown}, and it means {said}"

    def _refs(self, one: PlacedEntry) -> str | None:
        """Its references are to the messages that its maker means, where these stood then."""
        left = list(one.place.get("refs", ()))
        bound = {(ref["file"], ref["line"]): ref for ref in one.body["refs"]}
        refs, odd = log_format.parse_decision_refs(str(one.body["chat_ref"]))
        shown = []
        for ref in refs:
            said = bound.get((ref.file, ref.line), {})
            whose, seq = said.get("origin", one.origin), said.get("origin_seq", said.get("seq"))
            ours = None if seq is None else self._lookup.entry_here(whose, seq, one.at)
            if ours is not None and left and left[0].get("seq") == ours:
                here = left.pop(0)
                self._channels = self._channels or read_channels(self._evidence)
                problem = bound_problem(self._evidence, one.at, here, self._channels, placed=True)
                if problem is not None:
                    return f"with a reference that {problem}"
                shown.append(f"{here['file']}:~L{here['line']}")
                continue
            if ours is not None and self._is_shown(ours):
                return f"without its reference to entry {ours}"
            file = ref.file if "/" in ref.file else f"{one.replica}/{ref.file}"
            shown.append(log_format.format_decision_ref(ChatRef(file, ref.line)))
        text = ", ".join([*shown, *odd]) or log_format.NONE_YET
        is_it = not left and one.place.get("chat_ref", one.body["chat_ref"]) == text
        return None if is_it else f"with other references than {text!r}"

    def _is_shown(self, seq: int) -> bool:
        """Whether a message stands in a file."""
        body = self._evidence.body(seq)
        channel, index = str(body.get("channel")), int(body.get("index", -1))
        return ref_to_chat_line(self._evidence.source.db, channel, index) is not None

    # Events ------------------------------------------------------------------------------------

    def _event(self, one: PlacedEntry) -> str | None:
        said, us = str(one.body["name"]), int(one.body["us"])
        shown = str(one.place.get("name", said))
        own, mark = said.rpartition("/")[2].removesuffix(".event"), f"-{one.replica[-16:]}"
        front, _, file = shown.rpartition("/")
        plain, end = _NUMBERED.sub(r"\1", file), f"{us}-peer-{short_peer_digest(said)}"
        names = {f"{stem}{more}.event" for stem in (own, end) for more in ("", mark)}
        if {file, plain}.isdisjoint(names) or front not in ("", said.rpartition("/")[0]):
            return f"as {shown}, and it is {said}"
        if self._query(
            "SELECT 1 FROM events WHERE us = ? AND name = ? AND seq < ?"
            " AND acked IS NULL AND priority IN (0, 1, 2, 3) UNION ALL"
            " SELECT 1 FROM events WHERE us = ? AND name = ? AND seq < ? AND acked IS NOT NULL",
            *(us, shown, one.at) * 2,
        ):
            return f"as {shown}, and another event had that name"
        payload = one.body.get("payload", {"text": ""})
        size = None
        if "source" in one.place and "text" in payload:
            source, type_ = one.place["source"], str(one.body["type"])
            words = (source, type_, str(one.body["priority"]), format_time(us), f"{source}:{type_}")
            size = len(format_event(Event(*words, str(payload["text"]))))
        is_it = one.erased or one.place.get("size") == size
        return None if is_it else f"with {one.place.get('size')} bytes"

    def _acked(self, one: PlacedEntry) -> str | None:
        """It acknowledges the event that its maker calls so, or one of a third that has the name.

        A row of an event that was pruned since is gone.
        """
        said = str(one.body["name"])
        renamed = EVENT_OF_PEER.fullmatch(said)
        names = [said] if renamed is None else [said, f"{renamed[1]}.event"]
        rows = self._query(
            "SELECT seq, name, origin, coalesce(made, name) FROM events WHERE us = ? AND seq < ?"
            " AND (acked IS NOT NULL OR priority IN (0, 1, 2, 3))",
            event_name_us(said),
            one.at,
        )
        found = {seq: here for seq, here, of, made in rows if (of, made) == (one.origin, said)}
        found = found or {
            seq: here
            for seq, here, of, made in rows
            if made in names and any(is_event_of(said, made, one) for one in self._names_of(of))
        }
        event, name = one.place.get("event"), one.place.get("name", said)
        if event is None:
            is_it = not found and name == names[-1]
        else:
            is_it = found.get(event) == name if found else self._is_pruned(event, name, one)
        return None if is_it else f"as one of {name} (entry {event}), and it is one of {said}"

    def _names_of(self, origin: str | None) -> set[str]:
        """The names of a replica, '' beside them: None is this one."""
        sql = "SELECT replica FROM peers WHERE origin = ? AND replica IS NOT NULL"
        names = self._names if origin is None else {one for (one,) in self._query(sql, origin)}
        return {"", *names}

    def _is_pruned(self, event: int, name: str, one: PlacedEntry) -> bool:
        sql = "SELECT 1 FROM events WHERE seq = ?"
        body = self._evidence.body(event) if event < one.at else {}
        return not self._query(sql, event) and body.get("name") == name

    def _acked_all(self, one: PlacedEntry) -> str | None:
        """It closes nothing but what its maker knew, of the handle that its maker named."""
        sizes: dict[str, int] = {}
        for known in self._lookup.known(one.origin, one.head.seq):
            sizes[known["origin"]] = known["size"]
        for at, known in enumerate(one.place["known"]):
            whose = known["origin"] if at else next(iter(sizes))
            if known["size"] > sizes.get(whose, 0):
                return f"as if {known['size']} entries of {whose} had been there"
        said, shown = str(one.body.get("source", "")), one.place.get("source")
        front, _, replica = said.rpartition("@")
        if shown is None:
            is_it = not said or (front != "" and replica not in self._names)
        else:
            is_own = front == shown and replica in self._names
            is_it = said != "" and (is_own or is_marked(shown, said, one.replica))
        return None if is_it else f"as one of the events of {shown or said!r}"

    def _assessed(self, one: PlacedEntry) -> str | None:
        for part in ("event", "message"):
            ours = self._lookup.entry_here(one.origin, int(one.body[part]), one.at)
            if one.place.get(part) != ours:
                return f"as about entry {one.place.get(part)}, and its {part} is entry {ours}"
        return None


_JUDGES: dict[str, tuple[Callable[[PlaceJudge, PlacedEntry], str | None], frozenset[str]]] = {
    CREATED.name: (PlaceJudge._channel, frozenset({"channel"})),  # noqa: SLF001
    SENT.name: (PlaceJudge._line, frozenset({"channel", "index", "handle"})),  # noqa: SLF001
    UNREADABLE.name: (PlaceJudge._line, frozenset({"channel", "index"})),  # noqa: SLF001
    BEGUN.name: (PlaceJudge._log, frozenset({"file"})),  # noqa: SLF001
    NOTED.name: (PlaceJudge._log, frozenset({"file"})),  # noqa: SLF001
    LOGGED.name: (
        PlaceJudge._decision,  # noqa: SLF001
        frozenset({"file", "number", "id", "made", "supersedes", "chat_ref", "refs"}),
    ),
    PUBLISHED.name: (PlaceJudge._event, frozenset({"name", "source", "size", "unseen"})),  # noqa: SLF001
    ACKED.name: (PlaceJudge._acked, frozenset({"event", "name"})),  # noqa: SLF001
    ACKED_ALL.name: (PlaceJudge._acked_all, frozenset({"known", "source"})),  # noqa: SLF001
    ASSESSED.name: (PlaceJudge._assessed, frozenset({"event", "message"})),  # noqa: SLF001
}
"""What judges the place of an entry of each shared kind, and the members that it may have."""


def content_bytes(evidence: Evidence, held: Mapping[str, Any]) -> bytes:
    """The bytes of a short field, or of a blob (LookupError: it is not there)."""
    return held["text"].encode() if "text" in held else evidence.source.content(dict(held))


def erased_body(ledger: LedgerReader, seq: int) -> dict[str, Any]:
    """What stands for an entry whose body was erased; empty where nothing says so."""
    at = ledger.seq_of(redaction_entry_id(seq))
    entry = None if at is None else ledger.entry(at)
    return {} if entry is None else dict(entry.data["keep"])
