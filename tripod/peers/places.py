"""Finds the places that entries of peers get here: positions, free ids and names, what they mean.

A merge asks for each entry of a peer, in order, under the writer's lock, and appends it with
the place that it is given. What was placed and is not appended yet is remembered meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tripod.ledger import CHAT, EVENTS, LOGS, Header, LedgerError, parse_header, root_of
from tripod.ledger.kinds.bus import ACKED, ACKED_ALL, PUBLISHED
from tripod.ledger.kinds.chat import CREATED, SENT, UNREADABLE
from tripod.ledger.kinds.decisions import BEGUN, LOGGED, NOTED
from tripod.ledger.kinds.merged import peer_view
from tripod.ledger.kinds.peers import PEER_ADDED, PEER_MERGED, Place
from tripod.ledger.kinds.pythia import ASSESSED
from tripod.ledger.kinds.trust import FORKED_FROM
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import open_seal
from tripod.peers.replica import replica_of
from tripod.projections.bus.format import (
    Event,
    event_name_us,
    format_event,
    format_time,
    name_problem,
    valid_event_name,
)
from tripod.projections.chat.format import HEADER_LINES, MAX_HANDLE, valid_chat_handle
from tripod.projections.chat.tables import last_chat_line, ref_to_chat_line, span_of
from tripod.projections.decisions import format as log_format
from tripod.projections.decisions.format import ChatRef
from tripod.projections.layout import LIVE
from tripod.projections.peers.lookup import (
    EVENT_OF_PEER,
    PeerHead,
    PeerLookup,
    flat_peer_name,
    is_event_of,
    observed_piece,
    peer_channel_problem,
    peer_log_problem,
    piece_of,
    short_peer_digest,
)
from tripod.projections.peers.tables import kept_elsewhere
from tripod.projections.text import text_line_problem, text_size

if TYPE_CHECKING:
    from tripod.team.act import Act

_MARK = 16  # hex digits at the end of a replica's name


class Places:
    """Places for the entries of one transaction.

    An entry that was placed is taken to get the next number of the ledger: it is appended before
    the next is placed, or all are appended together in the order in which they were placed.
    """

    def __init__(self, act: Act) -> None:
        """Nothing is asked of the tables yet."""
        self._act, self._db = act, act.transaction.tables
        self._replicas: dict[str, str] = {}
        self._handles: dict[tuple[str, str], str] = {}
        self._lookup = PeerLookup(self._db, act.transaction.origin, self._read, self._is_sound)
        self._sound: dict[tuple[str, int, str], bool] = {}
        """Whether a head is one of its replica, by origin, size and root."""
        self._forget()

    def _forget(self) -> None:
        """From here on the tables show everything that was placed."""
        self._size = self._act.transaction.size
        self._lookup.forget()
        self._messages: dict[int, tuple[str, int]] = {}
        """Channel and index of the messages among them, by our number."""
        self._events: dict[str, dict[str, tuple[int, str]]] = {}
        """Our number and name of the events among them, by name there and maker."""
        self._taken: set[str] = set()
        """The names of these events, and the ids of the decisions among them."""
        self._ids: dict[str, str] = {}
        """Our ids of the decisions among them, by replica and id there."""
        self._next: dict[str, int] = {}
        """The next index or number, by channel and log."""

    def _read(self, seq: int) -> dict[str, Any]:
        """The body of an entry that is kept of a peer, as its maker recorded it."""
        entry = self._act.transaction.entry(seq)
        return {} if entry is None else peer_view(entry, self._act.transaction.blob).data

    def _is_sound(self, head: PeerHead) -> bool:
        """Whether a head that a peer says it merged is one that the replica had.

        Where nothing is known of the replica yet, it may be.
        """
        key = head.origin, head.size, head.root
        if key not in self._sound:
            if self._lookup.is_ours(head.origin):
                is_here = head.size <= self._size
                root = root_of(self._act.store.node, 0, head.size) if is_here else b""
                self._sound[key] = root.hex() == head.root
            else:
                read = self._act.transaction.read(kinds=(PEER_ADDED.name,))
                vkeys = [one.data["key"] for one in read if one.data["origin"] == head.origin]
                if not vkeys:
                    return True
                self._sound[key] = self._is_sealed(head, vkeys)
        return self._sound[key]

    def _is_sealed(self, head: PeerHead, vkeys: list[str]) -> bool:
        """Whether one of the keys made the seal by which a peer says that it merged a head."""
        with suppress(LedgerError, LookupError, ValueError):
            note = self._act.source.content(head.seal)
            seal = open_seal(note, [VerifierKey.parse(vkey) for vkey in vkeys]).seal
            return (seal.origin, seal.size, seal.root.hex()) == (head.origin, head.size, head.root)
        return False

    def place(
        self, origin: str, header: Header, body: Mapping[str, Any], *, signed: bool = False
    ) -> Place | None:
        """The place of an entry of the peer ``origin`` here; None where it needs none.

        ``signed``: the entry bears the valid signature of the actor of that handle who is enrolled
        here. Entries of kinds that count only in their own replica need no place.
        """
        if self._act.transaction.size != self._size:
            self._forget()
        ours = self._size + len(self._lookup.waiting)
        find, same = _FINDERS.get(header.kind), self._same(origin, header, body)
        place: Place = {} if same is None else {"same": same}
        if same is None and find is not None:
            if not signed:
                place["actor"] = self._shown(header.actor, origin)
            find(self, origin, header, body, place)
            self._remember(ours, origin, header, body, place)
        elif header.kind in (FORKED_FROM.name, PEER_MERGED.name):
            self._lookup.add_head(origin, header.kind, header.seq, dict(body))
        self._lookup.waiting[origin, header.seq] = ours if same is None else same
        return place or None

    def _remember(
        self, ours: int, origin: str, header: Header, body: Mapping[str, Any], place: Place
    ) -> None:
        if "index" in place:
            channel = place.get("channel", str(body["channel"]))
            self._next[f"{CHAT}/{channel}"] = place["index"] + 1
            if header.kind == SENT.name:
                self._messages[ours] = channel, place["index"]
        elif "number" in place:
            log = place.get("file", str(body.get("file", LIVE)))
            self._next[f"{LOGS}/{log}"] = place["number"] + 1
            id_ = self._ids[place["made"]] = place.get("id", str(body["id"]))
            self._taken.add(id_)
        elif header.kind == PUBLISHED.name:
            name = str(body["name"])
            here = place.get("name", name)
            self._events.setdefault(name, {})[origin] = ours, here
            self._taken.add(here)

    def _same(self, origin: str, header: Header, body: Mapping[str, Any]) -> int | None:
        """The entry here that holds the same observed piece, or this very entry, if one does.

        A peer says what id its entry has: one that says something else is another piece.
        """
        if not header.id.startswith("obs-"):
            return self._kept_of_line(origin, header)
        sql = "SELECT coalesce(same, seq) FROM merged WHERE observed = ? ORDER BY seq"
        held = [seq for (seq,) in self._db.execute(sql, (header.id,))]
        blob = self._act.transaction.blob
        for ours in (self._act.transaction.seq_of(header.id), *held):
            entry = None if ours is None else self._act.transaction.entry(ours)
            if entry is not None and observed_piece(entry, blob) == (header.kind, piece_of(body)):
                return entry.seq
        return None

    def _kept_of_line(self, origin: str, header: Header) -> int | None:
        """The entry here that keeps this one as a replica has it that left the line later."""
        for seq in kept_elsewhere(self._db, header.ledger, header.seq):
            entry = self._act.transaction.entry(seq)
            # One whose body that replica erased does not stand for one that is whole.
            if entry is None or entry.data["origin"] == origin or "content" not in entry.data:
                continue
            if parse_header(self._act.source.content(entry.data["header"])) == header:
                return int((entry.data.get("place") or {}).get("same", seq))
        return None

    # Names -------------------------------------------------------------------------------------

    def _replica(self, origin: str) -> str:
        """The name of a replica; what it is called while it has none."""
        if origin not in self._replicas:
            sql = "SELECT replica FROM peers WHERE origin = ?"
            row = self._db.execute(sql, (origin,)).fetchone()
            if row is not None and row[0] is not None:
                return self._replicas.setdefault(origin, str(row[0]))
            return (
                self._ours() if self._lookup.is_ours(origin) else ""
            ) or f"peer-{short_peer_digest(origin)}"
        return self._replicas[origin]

    def _name(self, origin: str | None) -> str:
        return self._ours() if origin is None else self._replica(origin)

    def _ours(self) -> str:
        """The name of this replica, '' while the team has none."""
        found = replica_of(self._act.transaction)
        return "" if found is None else found[1]

    def _shown(self, name: str, origin: str) -> str:
        """How a handle of a peer is shown, so that the original tools can read it."""
        key = origin, name
        if key not in self._handles:
            self._handles[key] = self._handle(name, self._replica(origin))
        return self._handles[key]

    def _handle(self, name: str, replica: str) -> str:
        shown = f"{name}@{replica}"
        if text_size(shown) <= MAX_HANDLE and valid_chat_handle(shown) is None:
            return shown
        plain = re.sub(r"[^A-Za-z0-9._+-]", "_", name)[: MAX_HANDLE - _MARK - 1]
        return f"{plain or '_'}@{replica[-_MARK:]}"

    def _flat(self, origin: str, *parts: str) -> str:
        """A plain name for what stands in a folder of a peer that this team does not have."""
        return flat_peer_name(self._replica(origin), *parts)

    def _local(self, holds: str, name: str, origin: str, problem: str | None) -> str:
        """The name here of a channel or a log: its own, or a plain one with the replica in it."""
        front, slash, _ = name.rpartition("/")
        is_here = not slash or f"{holds}/{front}" in self._act.disk.places.added
        if problem is None and is_here:
            return name
        end = ".md" if holds == LOGS else ""
        return self._flat(origin, *name.removesuffix(end).split("/")) + end

    # Chats -------------------------------------------------------------------------------------

    def _channel(self, origin: str, _header: Header, body: Mapping[str, Any], place: Place) -> None:
        name = str(body["channel"])
        local = self._local(CHAT, name, origin, peer_channel_problem(name))
        if local != name:
            place["channel"] = local

    def _line(self, origin: str, header: Header, body: Mapping[str, Any], place: Place) -> None:
        self._channel(origin, header, body, place)
        channel = place.get("channel", str(body["channel"]))
        sql = "SELECT coalesce(max(lines), 0) FROM channels WHERE channel = ?"
        place["index"] = self._counted(f"{CHAT}/{channel}", sql, channel)
        speaker = body.get("handle", header.actor)
        if speaker != header.actor:  # nobody's signature is one for another handle
            place["handle"] = self._shown(str(speaker), origin)

    def _counted(self, key: str, sql: str, name: str) -> int:
        if key not in self._next:
            self._next[key] = int(self._db.execute(sql, (name,)).fetchone()[0])
        return self._next[key]

    # Decisions ---------------------------------------------------------------------------------

    def _log(self, origin: str, _header: Header, body: Mapping[str, Any], place: Place) -> None:
        name = str(body.get("file", LIVE))
        local = self._local(LOGS, name, origin, peer_log_problem(self._db, name))
        if local != name:
            place["file"] = local

    def _decision(self, origin: str, header: Header, body: Mapping[str, Any], place: Place) -> None:
        self._log(origin, header, body, place)
        log, said = place.get("file", str(body.get("file", LIVE))), str(body["id"])
        sql = "SELECT 1 + coalesce(max(number), 0) FROM pieces WHERE log = ?"
        place["number"] = self._counted(f"{LOGS}/{log}", sql, log)
        place["made"] = f"{self._replica(origin)}/{said}"
        free, second = said, int(said.removeprefix("D-"))
        while self._is_taken(free):
            second += 1
            free = f"D-{second}"
        if free != said:
            place["id"] = free
        earlier = body.get("supersedes_made", body.get("supersedes"))
        here = None if earlier is None else self._decision_here(str(earlier), origin, header.seq)
        if here is not None and here != body.get("supersedes"):
            place["supersedes"] = here
        self._bind(origin, body, place)

    def _is_taken(self, decision: str) -> bool:
        sql = "SELECT 1 FROM pieces WHERE id = ?"
        taken = decision in self._taken
        return taken or self._db.execute(sql, (decision,)).fetchone() is not None

    def _decision_here(self, said: str, origin: str, seq: int) -> str:
        """The id here of the decision that the peer ``origin`` calls ``said`` in its entry ``seq``.

        Its own one of that id, else one of another replica that it knew; as it says it where none
        is here.
        """
        replica, slash, id_ = said.rpartition("/")
        if slash and replica == self._ours():
            return id_
        made = said if slash else f"{self._replica(origin)}/{said}"
        if made in self._ids:
            return self._ids[made]
        found = self._lookup.decisions_here(said, self._replica(origin), origin, seq)
        return found[0] if found else said

    def _bind(self, origin: str, body: Mapping[str, Any], place: Place) -> None:
        """Say where the messages of a decision's references stand here."""
        refs: list[dict[str, object]] = []
        shown: list[str] = []
        bound = {(ref["file"], ref["line"]): ref for ref in body["refs"]}
        found, odd = log_format.parse_decision_refs(str(body["chat_ref"]))
        for one in found:
            ref = bound.get((one.file, one.line), {})
            ours = None
            if "origin" in ref:
                ours = self._message_here(str(ref["origin"]), int(ref["origin_seq"]))
            elif "seq" in ref:
                ours = self._message_here(origin, int(ref["seq"]))
            if ours is None:
                file = one.file if "/" in one.file else f"{self._replica(origin)}/{one.file}"
                shown.append(log_format.format_decision_ref(ChatRef(file, one.line)))
            else:
                refs.append(ours)
                shown.append(f"{ours['file']}:~L{ours['line']}")
        if body["refs"]:
            place["refs"] = refs
        text = ", ".join([*shown, *odd]) or log_format.NONE_YET
        if text != body["chat_ref"]:
            place["chat_ref"] = text

    def _message_here(self, origin: str, seq: int) -> dict[str, object] | None:
        """Where a message of a replica stands here; None where no file shows it."""
        ours = self._lookup.entry_here(origin, seq, self._size)
        if ours is None:
            return None
        if ours in self._messages:
            channel, index = self._messages[ours]
            span = span_of(self._db, channel)
            first, stop = (
                (HEADER_LINES, 0) if span is None else (last_chat_line(self._db, span), span.stop)
            )
            file, line = f"{channel}.chat", first + 1 + index - stop
        else:
            body = self._act.source.body(ours)
            channel, index = str(body.get("channel")), int(body.get("index", -1))
            stands = ref_to_chat_line(self._db, channel, index)
            if stands is None:
                return None
            file, _, number = stands.rpartition(":~L")
            line = int(number)
        return {"channel": channel, "file": file, "index": index, "line": line, "seq": ours}

    # Events ------------------------------------------------------------------------------------

    def _event(self, origin: str, header: Header, body: Mapping[str, Any], place: Place) -> None:
        said, us = str(body["name"]), int(body["us"])
        name = self._event_name(origin, said, us)
        if name != said:
            place["name"] = name
        unseen = self._lookup.unseen(origin, header.seq)
        if unseen:
            place["unseen"] = unseen
        if "actor" not in place and not self._speaks_for_another(header, str(body["source"])):
            return
        source, type_ = self._shown(str(body["source"]), origin), str(body["type"])
        payload = body.get("payload", {"text": ""})
        place["source"] = source
        if "text" in payload:
            words = (source, type_, str(body["priority"]), format_time(us), f"{source}:{type_}")
            place["size"] = len(format_event(Event(*words, str(payload["text"]))))

    def _speaks_for_another(self, header: Header, source: str) -> bool:
        """Whether a signed event names somebody else as who speaks, who has or had a key here."""
        sql = "SELECT 1 FROM actors WHERE handle = ?"
        is_other = source != header.actor
        return is_other and self._db.execute(sql, (source,)).fetchone() is not None

    def _event_name(self, origin: str, said: str, us: int) -> str:
        """A name here that is free, with the same time in it."""
        queue, slash, file = said.rpartition("/")
        is_here = slash and f"{EVENTS}/{queue}" in self._act.disk.places.added
        front, mark = f"{queue}/" if is_here else "", self._replica(origin)[-_MARK:]
        odd = valid_event_name(file) or text_line_problem(file, "event", 200) or name_problem(file)
        if odd is not None or event_name_us(file) != us:
            file = f"{us}-peer-{short_peer_digest(said)}.event"
        stem, number = file.removesuffix(".event"), 0
        name = f"{front}{file}"
        while self._is_named(name, us):
            number += 1
            name = f"{front}{stem}-{mark}{f'-{number}' if number > 1 else ''}.event"
        return name

    def _is_named(self, name: str, us: int) -> bool:
        return name in self._taken or any(name == here for _, here, _, _ in self._events_at(us))

    def _events_at(self, us: int) -> list[tuple[int, str, str | None, str]]:
        """Number, name, maker and its maker's name of the events of a moment."""
        columns = "SELECT seq, name, origin, coalesce(made, name) FROM events WHERE"
        return self._db.execute(
            f"{columns} acked IS NULL AND priority IN (0, 1, 2, 3) AND us = ?1"
            f" UNION ALL {columns} acked IS NOT NULL AND us = ?1",
            (us,),
        ).fetchall()

    def _acked(self, origin: str, _header: Header, body: Mapping[str, Any], place: Place) -> None:
        """The event here that a peer acknowledged by the name that it has there."""
        said = str(body["name"])
        # A peer may itself have given another name to the event of a third.
        renamed = EVENT_OF_PEER.fullmatch(said)
        names = [said] if renamed is None else [said, f"{renamed[1]}.event"]
        rows = self._events_at(event_name_us(said))
        mine = [(seq, here) for seq, here, of, made in rows if (of, made) == (origin, said)]
        waiting = self._events.get(said, {}).get(origin)
        mine += [] if waiting is None else [waiting]
        for name in () if mine else names:
            its = [(seq, here, of) for seq, here, of, made in rows if made == name]
            its += [(*one, of) for of, one in self._events.get(name, {}).items()]
            mine += [one[:2] for one in its if is_event_of(said, name, self._name(one[2]))]
        if mine:
            place["event"], place["name"] = mine[0]
        elif renamed is not None:
            place["name"] = names[-1]

    def _acked_all(
        self, origin: str, header: Header, body: Mapping[str, Any], place: Place
    ) -> None:
        """What the peer knew when it acknowledged all, of this ledger first."""
        known = self._lookup.known(origin, header.seq)
        source = str(body.get("source", ""))
        _, marked, replica = source.rpartition("@")
        if marked and replica == self._ours():
            place["source"], known = source.rpartition("@")[0], known[:1]
        elif source:
            whose = {self._replica(one["origin"]): one["origin"] for one in known[1:]}
            of = whose.get(replica, origin) if marked else origin
            if of == origin:
                place["source"] = self._shown(source, origin)
            known = [{**known[0], "size": 0}, *(one for one in known[1:] if one["origin"] == of)]
        place["known"] = known

    # Reviews -----------------------------------------------------------------------------------

    def _assessed(
        self, origin: str, _header: Header, body: Mapping[str, Any], place: Place
    ) -> None:
        for part in ("event", "message"):
            ours = self._lookup.entry_here(origin, int(body[part]), self._size)
            if ours is not None:
                place[part] = ours


_FINDERS = {
    CREATED.name: Places._channel,  # noqa: SLF001
    SENT.name: Places._line,  # noqa: SLF001
    UNREADABLE.name: Places._line,  # noqa: SLF001
    BEGUN.name: Places._log,  # noqa: SLF001
    NOTED.name: Places._log,  # noqa: SLF001
    LOGGED.name: Places._decision,  # noqa: SLF001
    PUBLISHED.name: Places._event,  # noqa: SLF001
    ACKED.name: Places._acked,  # noqa: SLF001
    ACKED_ALL.name: Places._acked_all,  # noqa: SLF001
    ASSESSED.name: Places._assessed,  # noqa: SLF001
}
"""What finds the place of an entry of each shared kind."""
