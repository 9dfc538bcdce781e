"""Folds the commonest entries by the bytes of their bodies, and combines what they write.

Nearly every entry of a ledger is an event, its acknowledgement, or a message. An expression that
matches a canonical body tells its one value, so that nothing is decoded; an event is written once,
acknowledged already, and the messages of a batch move the counts of their channel once. What does
not match goes through the folds of the projections (``tripod.projections.engine``), in its place
among the others. Either way the tables get the same rows: a property test holds the two together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from tripod.ledger.entry import COUNT_PATTERN, PLAIN_PATTERN, TEXT_PATTERN
from tripod.projections.bus import tables as bus
from tripod.projections.chat import tables as chat
from tripod.projections.projection import Op
from tripod.projections.team.tables import COUNTED, FILES, REPLACED

Ops: TypeAlias = "defaultdict[str, list[Op]]"
Noted: TypeAlias = "defaultdict[str, list[tuple[Any, ...]]]"

_WAITING = 4_096  # events, a megabyte or two: of most the acknowledgement follows soon
_STORED = 100_000  # names; where more may be pending, no event waits any more
_LARGE = 2**40  # lines or bytes: no file holds so many

_WORD = b"(" + PLAIN_PATTERN + b"*+)"
_NAME = rb'"name":"((?P<us>[1-9][0-9]{0,14}|[1-8][0-9]{15})-[^"\\/\x00-\x1f]*+)"'
"""Of an event in the team's own queue, whose time stands in it."""
_PUBLISHED = re.compile(
    rb"\{" + _NAME + rb',(?:"payload":\{"text":"' + TEXT_PATTERN + rb'"\},)?'
    rb'"priority":"(' + "|".join(bus.RANKS).encode() + rb')","size":(' + COUNT_PATTERN + rb"),"
    rb'"source":"' + _WORD + rb'","type":"' + _WORD + rb'","us":(?P=us),"v":1\}'
).fullmatch
_ACKED = re.compile(rb"\{" + _NAME + rb',"v":1\}').fullmatch
_SENT = re.compile(
    rb'\{"channel":"' + _WORD + rb'","handle":"' + _WORD + rb'","index":(' + COUNT_PATTERN + rb"),"
    rb'"text":\{"text":"(' + TEXT_PATTERN + rb')"\},'
    rb'"time":(' + COUNT_PATTERN + rb'),"v":1\}'
).fullmatch
_RANKS = {priority.encode(): rank for priority, rank in bus.RANKS.items()}


_COMMON: dict[object, tuple[bytes, Callable[[bytes], re.Match[bytes] | None]]] = {
    "bus.published": (b',"kind":"bus.published",', _PUBLISHED),
    "bus.acked": (b',"kind":"bus.acked",', _ACKED),
    "chat.sent": (b',"kind":"chat.sent",', _SENT),
}
"""By kind: how its field stands in a header, and what matches its body."""


class Shortcut:
    """A fold of all entries of a ledger, batch by batch, in their order.

    ``_waiting`` are pending events that are not in the table yet, each by its name, ``_stored`` the
    names of those that are there and may be pending: of one name no event waits while another is
    pending there, so an acknowledgement concerns one of the two alone.
    """

    def __init__(
        self,
        front_of: Callable[[bytes], re.Match[bytes] | None],
        note: Callable[[int, bytes, str, Noted], None],
    ) -> None:
        """``front_of`` matches the beginning of a header; its first group is the actor.

        ``note`` notes a message, given its number, body and text.
        """
        self._front_of = front_of
        self._note = note
        self._waiting: dict[str, tuple[Any, ...]] = {}
        self._stored: set[str] = set()
        self._is_open = True
        self._writers: dict[str, list[Any]] = {}
        self._people: dict[tuple[str, str], int] = {}
        self._has_files = False
        self._may_overflow = False

    def take(self, row: tuple[Any, ...], ops: Ops, noted: Noted) -> bool:
        """Fold a row (as ``all_rows`` gives it) if it is one of the common ones; else False.

        ``noted`` gets the numbers of those that checks ask for (``tripod.verify.fold``).
        """
        seq, id_, kind, _, header, _, body, _ = row
        try:
            mark, fits = _COMMON[kind]
            front = self._front_of(header)
            if front is None or mark not in header or seq < 0 or type(id_) is not str:
                return False
            front[1].decode()  # else the header does not parse, and the entry counts for nothing
            found = fits(body)
            if found is None or not (body.isascii() or body.decode()):
                return False
        except (KeyError, TypeError, ValueError, AttributeError):
            return False
        if kind == "bus.published":
            self._published(seq, found, ops, noted)
        elif kind == "bus.acked":
            self._acked(seq, found, ops)
        else:
            self._sent(row, found, ops, noted)
        return True

    def add(self, op: Op, ops: Ops) -> None:
        """Take an operation of another entry into its place among those of the common ones."""
        table, sql, values, name = op
        if table in ("events", "acks_ahead"):
            if sql in (bus.PUBLISH, bus.ACK):
                self._store(str(name), ops)
                self._is_stored(str(name), ops)
            elif sql is not bus.PRUNE:  # that concerns no pending event
                self._store_all(ops)
                if name is not None:
                    self._is_stored(name, ops)
        elif table in ("channels", "participants"):
            self.settle(ops)
            # A damaged body may hold any number: then a sum can fail where its parts do not.
            self._may_overflow |= any(type(one) is int and abs(one) > _LARGE for one in values)
        elif table == "files" and sql is not REPLACED:
            self._has_files = True
        ops[table].append(op)

    def settle(self, ops: Ops) -> None:
        """Write what the messages of a batch change in the tables of channels."""
        ops["channels"] += [
            ("channels", chat.WRITER, (channel, *said), None)
            for channel, said in self._writers.items()
        ]
        ops["participants"] += [
            ("participants", chat.COUNT, (*one, count), None) for one, count in self._people.items()
        ]
        self._writers.clear()
        self._people.clear()

    def finish(self, ops: Ops) -> None:
        """Write the events that nobody acknowledged."""
        self._store_all(ops)

    def _store(self, name: str, ops: Ops) -> None:
        row = self._waiting.pop(name, None)
        if row is not None:
            ops["events"].append(("events", bus.STORE, (*row, None), name))
            self._is_stored(name, ops)

    def _store_all(self, ops: Ops) -> None:
        for name in list(self._waiting):
            self._store(name, ops)

    def _is_stored(self, name: str, ops: Ops) -> None:
        """Note that a pending event of this name may be in the table."""
        if not self._is_open:
            return
        self._stored.add(name)
        if len(self._stored) > _STORED:
            self._is_open = False
            self._stored.clear()
            self._store_all(ops)

    # The common entries ------------------------------------------------------------------------

    def _published(self, seq: int, found: re.Match[bytes], ops: Ops, noted: Noted) -> None:
        raw, us, priority, size, source, type_ = found.groups()
        name, kind = raw.decode(), type_.decode()
        said = (seq, name, int(us), _RANKS[priority], source.decode(), kind, int(size), bus.MODE)
        if kind == bus.CHECKPOINT:
            noted["asked"].append((seq,))
        if name in self._waiting:
            self._store(name, ops)
        if name in self._stored or not self._is_open:
            ops["events"].append(("events", bus.PUBLISH, said, name))
            return
        self._waiting[name] = said
        if len(self._waiting) > _WAITING:
            self._store_all(ops)

    def _acked(self, seq: int, found: re.Match[bytes], ops: Ops) -> None:
        name = found[1].decode()
        said = self._waiting.pop(name, None)
        if said is not None:
            ops["events"].append(("events", bus.STORE, (*said, seq), name))
        else:
            self._stored.discard(name)
            ops["events"].append(("events", bus.ACK, (seq, int(found[2]), name), name))
        if self._has_files:
            ops["files"].append(("files", REPLACED, (f"{FILES.processed}/{name}",), None))

    def _sent(self, row: tuple[Any, ...], found: re.Match[bytes], ops: Ops, noted: Noted) -> None:
        place, who, index, raw, when = found.groups()
        seq, id_, body = row[0], row[1], row[6]
        text = orjson.loads(b'"%b"' % raw) if b"\\" in raw else raw.decode()
        channel, handle, number, time = place.decode(), who.decode(), int(index), int(when)
        length = len(raw) if b"\\" not in raw else len(text.encode())
        size = chat.encoded_size(len(who) + len(when) + len("|: ") + length)
        ops["lines"].append(("lines", chat.LINE, (channel, number, seq, handle, time, size), None))
        last = self._writers.get(channel)
        if last is None:
            self._writers[channel] = [number, size, handle, time]
        else:
            self._writers[channel] = [max(number, last[0]), last[1] + size, handle, time]
        person = channel, handle
        self._people[person] = self._people.get(person, 0) + 1
        ops["counted"] = [("counted", COUNTED, (seq, id_), None)]
        if self._may_overflow:
            self.settle(ops)
        self._note(seq, body, text, noted)
