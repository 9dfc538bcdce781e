"""Looks up what an entry of a peer means here: decisions, messages and events that it names. Pure.

A merge asks when it finds the place of an entry, `verify` when it judges that place: by the tables,
and only by what was here ``before`` the entry. What a merge has placed and not appended yet is in
``waiting``, and in ``heads`` with the number 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from tripod.ledger import MERGED, Entry, parse_header
from tripod.ledger.kinds.merged import BlobReader, read_kept
from tripod.ledger.kinds.peers import PEER_MERGED, Known, Place
from tripod.ledger.kinds.trust import FORKED_FROM
from tripod.projections.chat.format import parse_chat_archive_name
from tripod.projections.decisions.format import decision_log_name_problem
from tripod.projections.peers.tables import made_as
from tripod.projections.projection import Tables
from tripod.projections.text import text_line_problem

_LONGEST = 90  # characters of a name that is made here
_MOST_FORKS = 8  # of a line, one after another, that are gone back
_MARK = 16  # hex digits
_ALL = 2**62


class PeerHead(NamedTuple):
    """Entry ``number`` of a peer, kept by entry ``at``, names the first entries of ``origin``."""

    number: int
    origin: str
    size: int
    at: int
    seal: Any = None
    root: str = ""


class PeerLookup:
    """What the entries of peers mean in the ledger ``origin``, by its tables.

    ``read`` gives the body of an entry that is kept of a peer, as its maker recorded it. A head
    that a peer merged counts if it ``is_sound``.
    """

    def __init__(
        self,
        db: Tables,
        origin: str,
        read: Callable[[int], dict[str, Any]],
        is_sound: Callable[[PeerHead], bool] = lambda _: True,
    ) -> None:
        """Nothing is asked of the tables yet."""
        self._db, self._origin, self._read, self._is_sound = db, origin, read, is_sound
        self.waiting: dict[tuple[str, int], int] = {}
        """Our numbers of entries that were placed and are not appended, by origin and number."""
        self._heads: dict[tuple[str, str], list[PeerHead]] = {}
        self._ahead: dict[str, list[tuple[Any, ...]]] = {}

    def forget(self) -> None:
        """From here on the tables show everything."""
        self.waiting, self._heads, self._ahead = {}, {}, {}

    def is_ours(self, origin: str) -> bool:
        """Whether this ledger has, or had, that name."""
        sql = "SELECT 1 FROM forks WHERE origin = ?"
        return origin == self._origin or self._db.execute(sql, (origin,)).fetchone() is not None

    def heads(self, origin: str, kind: str) -> list[PeerHead]:
        """The heads that a peer merged, or at which it left a line, in their order."""
        key = origin, kind
        if key not in self._heads:
            sql = "SELECT peer_seq, seq FROM merged WHERE origin = ? AND kind = ? ORDER BY peer_seq"
            found = self._heads[key] = []
            for number, at in self._db.execute(sql, key).fetchall():
                self.add_head(origin, kind, number, self._read(at), at)
            return found
        return self._heads[key]

    def add_head(
        self, origin: str, kind: str, number: int, body: dict[str, Any], at: int = 0
    ) -> None:
        """Add a head that entry ``number`` of a peer names."""
        said = str(body["origin"]), int(body["size"]), at, body.get("seal"), str(body["root"])
        self.heads(origin, kind).append(PeerHead(number, *said))

    def known(self, origin: str, seq: int) -> list[Known]:
        """What a peer had of each replica at its entry ``seq``: of this ledger first, of itself."""
        sizes: dict[str, int] = {}
        for head in reversed(self.heads(origin, PEER_MERGED.name)):
            is_more = head.number < seq and head.size > sizes.get(head.origin, 0)
            if is_more and self._is_sound(head):
                sizes[head.origin] = head.size
        mine = max((size for whose, size in sizes.items() if self.is_ours(whose)), default=0)
        others = {whose: size for whose, size in sizes.items() if not self.is_ours(whose)}
        others[origin] = seq
        found: list[Known] = [{"origin": self._origin, "size": mine}]
        return [*found, *(Known(origin=whose, size=size) for whose, size in others.items())]

    def unseen(self, origin: str, seq: int) -> list[int]:
        """The acknowledgements of all here whose makers did not have entry ``seq`` of a peer.

        They are those that say that they had it: what they knew was judged when they came, and
        where the peer was not known then, nobody could tell.
        """
        if origin not in self._ahead:
            sql = "SELECT seq, max(below) FROM acks_ahead WHERE origin = ? AND name = '' GROUP BY 1"
            self._ahead[origin] = self._db.execute(sql, (origin,)).fetchall()
        found = []
        for at in [at for at, below in self._ahead[origin] if seq < below]:
            maker, number = made_as(self._db, at) or ("", 0)
            known = {one["origin"]: one["size"] for one in self.known(maker, number)}
            if seq >= known.get(origin, 0):
                found.append(int(at))
        return found

    def decisions_here(
        self, said: str, replica: str, origin: str, seq: int, before: int = _ALL
    ) -> list[str]:
        """The ids here of decisions that the peer ``origin`` may call ``said`` in entry ``seq``.

        Its own ones of that id, else those of other replicas that it knew; ``replica`` is its name.
        """
        made = said if "/" in said else f"{replica}/{said}"
        sql = "SELECT id FROM pieces WHERE made = ? AND seq < ? ORDER BY seq"
        found = [str(id_) for (id_,) in self._db.execute(sql, (made, before))]
        if found or "/" in said:
            return found
        known = {one["origin"]: one["size"] for one in self.known(origin, seq)}
        for left in self.heads(origin, FORKED_FROM.name):
            known[left.origin] = max(left.size, known.get(left.origin, 0))
        sql = "SELECT id, seq FROM pieces WHERE (made IS NULL AND id = ?) OR made LIKE ?"
        for here, ours in self._db.execute(sql, (said, f"%/{said}")).fetchall():
            whose, number = made_as(self._db, ours) or (self._origin, ours)
            if ours < before and number < known.get(whose, 0):
                found.append(str(here))
        return found

    def entry_here(self, origin: str, seq: int, before: int, deep: int = 0) -> int | None:
        """The entry here that shows entry ``seq`` of a replica; None where none does."""
        if origin == self._origin:
            return seq if 0 <= seq < before else None
        sql = "SELECT max(size) FROM forks WHERE origin = ?"
        left = self._db.execute(sql, (origin,)).fetchone()[0]
        if left is not None and seq < left:
            return seq
        found = self.waiting.get((origin, seq))
        if found is None:
            sql = "SELECT coalesce(same, seq) FROM merged WHERE origin = ? AND peer_seq = ?"
            row = self._db.execute(f"{sql} AND seq < ?", (origin, seq, before)).fetchone()
            found = None if row is None else int(row[0])
        if found is None and deep < _MOST_FORKS:  # it may be that of a line which the peer left
            lines = (
                self.entry_here(one.origin, seq, before, deep + 1)
                for one in self.heads(origin, FORKED_FROM.name)
                if seq < one.size and one.at < before
            )
            found = next((one for one in lines if one is not None), None)
        return found


def peer_channel_problem(name: str) -> str | None:
    """Why a chat of a peer cannot have its own name here; None: it can, if its folder is here."""
    stem = name.rpartition("/")[2]
    if stem.startswith(".") or parse_chat_archive_name(stem) is not None:
        return "no name of a live chat"
    return text_line_problem(stem, "channel", 200)


def peer_log_problem(db: Tables, name: str) -> str | None:
    """Why a decision log of a peer cannot have its own name here; None: as with a chat."""
    sql = "SELECT 1 FROM logs WHERE file = ? AND log <> file"
    if db.execute(sql, (name,)).fetchone() is not None:
        return "the name of an archive"
    return decision_log_name_problem(name)


def flat_peer_name(*parts: str) -> str:
    """A plain name for what stands in a folder of a peer, the first part, that is not here."""
    whole = ".".join(parts)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", whole)
    if name == whole and len(name) <= _LONGEST and name[0].isalnum():
        return name
    return f"peer.{name[: _LONGEST - 14]}.{short_peer_digest(whole)[:8]}"


EVENT_OF_PEER = re.compile(r"(.+)-([0-9a-f]{16})(?:-[0-9]+)?\.event")
"""What a replica calls the event of another one where the name of that was taken."""


def is_event_of(said: str, made: str, replica: str) -> bool:
    """Whether who calls an event ``said`` may mean the one that ``replica`` made as ``made``."""
    renamed = EVENT_OF_PEER.fullmatch(said)
    return made == said or (renamed is not None and replica.endswith(f"-{renamed[2]}"))


def short_peer_digest(text: str) -> str:
    """What stands for a text in a name that is made here."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]


def observed_piece(entry: Entry, blob: BlobReader) -> tuple[str, dict[str, Any]]:
    """Kind of an entry and the piece that was observed, as its maker recorded them.

    What the piece is called where it stands is left out.
    """
    kind, body = entry.kind, entry.data
    if kind == MERGED:
        kept = read_kept(entry.data, blob)
        body = entry.data["keep"] if kept.body is None else orjson.loads(kept.body)
        kind = parse_header(kept.header).kind
    return kind, piece_of(body)


def piece_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """What an observed piece says, without what it is called where it stands."""
    apart = {*Place.__annotations__, "observed"} - {"handle", "source"}
    said = {part: value for part, value in body.items() if part not in apart}
    return said | {"raw": body.get("observed", {}).get("raw")}
