"""The roster: which peers this replica knows, by which key, and what it may take of each.

A new peer is taken at first use, and that is an entry. Where the policy says ``peers: closed``,
nothing is taken of a peer before a person accepted it. A peer that was closed, or that contradicted
its own seals, is not taken any more, whatever the policy says.

Beside the ledger a file for each peer notes the newest seal that was looked at and gave nothing to
be taken. What the peer seals later must continue it. Where the file is gone, a pull reads the
peer's bookkeeping again.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from tripod.errors import BadArgumentError, LedgerError, NotFoundError, RefusedError
from tripod.ledger import LedgerReader
from tripod.ledger.files import read_plain_file, replace_file
from tripod.ledger.kinds.peers import PEER_ACCEPTED, PEER_ADDED, PEER_CLOSED
from tripod.ledger.locator import APART
from tripod.ledger.tlog.note import MAX_NOTE
from tripod.ledger.tlog.seal import Seal, read_seal
from tripod.peers.replica import name_team, tree_of_team
from tripod.projections.text import text_line_problem
from tripod.team.team import Team
from tripod.trust.keys import sealing_key

MAX_REASON = 1000  # bytes


class Peer(NamedTuple):
    """A peer as the ledger knows it: the row of the table ``peers``.

    ``how`` is '' where it was not added yet. ``added``, ``accepted``, ``closed``, ``forked`` and
    ``merged`` are numbers of entries; None: no entry says so. ``size`` and ``root`` are the head up
    to which its own entries are here. ``accepted_key``: an acceptance counts for one key alone.
    """

    origin: str
    replica: str = ""
    key: str = ""
    how: str = ""
    added: int | None = None
    accepted: int | None = None
    accepted_key: str = ""
    closed: int | None = None
    forked: int | None = None
    merged: int | None = None
    size: int = 0
    root: str = ""

    @property
    def name(self) -> str:
        """What a person calls it: the replica's name, or its origin."""
        return self.replica or self.origin

    @property
    def state(self) -> str:
        """What holds of it, in a word: closed, forked, accepted, first-use, or waiting."""
        if self.closed is not None and (self.accepted or 0) < self.closed:
            return "closed"
        if self.forked is not None:
            return "forked"
        if self.added is None and self.accepted is None and self.merged is None:
            return "waiting"
        is_accepted = self.accepted is not None and self.accepted_key == self.key
        return "accepted" if is_accepted or self.how == "person" else "first-use"


class MergeLimits(NamedTuple):
    """How much one merge takes of one peer: new entries, bytes that are read, blobs."""

    entries: int = 500_000
    bytes: int = 2**30
    blobs: int = 100_000


class Merged(NamedTuple):
    """What a merge did: entries ``taken`` and ``erased``, and how many of the peer's are here now.

    ``sealed`` is how many entries the record holds. ``problem`` says in words why the peer stopped
    there, '' where it did not. ``added``: it is a new peer. ``is_own``: the record is our own, or
    an earlier state of it. ``is_older``: it is one of what was merged before. ``is_stranger``: it
    is of another team. ``is_closed``: a person here closed the peer.
    """

    origin: str = ""
    replica: str = ""
    taken: int = 0
    erased: int = 0
    size: int = 0
    sealed: int = 0
    problem: str = ""
    added: bool = False
    is_own: bool = False
    is_older: bool = False
    is_stranger: bool = False
    is_closed: bool = False


def ready_team(team: Team) -> tuple[str, str]:
    """The team id and the name of this replica; a ledger without a key gets one."""
    if sealing_key(team.store) is None:
        from tripod.trust.seal import new_sealing_key  # a pull mostly has no use for it

        new_sealing_key(team)
    return name_team(team)


def read_roster(ledger: LedgerReader) -> dict[str, Peer]:
    """The peers that this ledger knows, by origin, in the order in which they were met."""
    sql = (
        "SELECT origin, coalesce(replica, ''), coalesce(key, accepted_key, ''), coalesce(how, ''),"
        " added, accepted, coalesce(accepted_key, ''), closed, forked, merged, size,"
        " coalesce(root, '') FROM peers ORDER BY coalesce(added, accepted, merged), origin"
    )
    return {row[0]: Peer(*row) for row in ledger.tables.execute(sql)}


class MissingPeer(NamedTuple):
    """A replica that peers merged, and of which nothing is here; ``by`` names these peers."""

    origin: str
    replica: str
    by: tuple[str, ...]

    @property
    def problem(self) -> str:
        """What is missing, and what brings it."""
        who = ", ".join(self.by)
        return (
            f"{self.replica} is a peer of {who}, and no record of it is here: what it recorded is "
            f"missing. `tripod push` in its clone brings it, or in that of {who}, where its ref is "
            "still held"
        )


def missing_peers(team: Team, at_hand: Collection[str]) -> list[MissingPeer]:
    """Replicas that peers know, and of which nothing was merged here and no record is at hand.

    ``at_hand`` names those with a record in git: why it is not merged is said elsewhere. What a
    replica recorded is taken from its own record, never from the copies of its peers.
    """
    from tripod.ledger.kinds.merged import peer_view  # a pull of nothing new has no use for it

    db, roster = team.store.db, read_roster(team.store)
    rows = db.execute(
        "SELECT seq, origin FROM merged WHERE kind = ? ORDER BY seq", (PEER_ADDED.name,)
    )
    found: dict[str, MissingPeer] = {}
    for seq, maker in rows.fetchall():
        kept = team.store.entry(seq)
        said = {} if kept is None else peer_view(kept, team.store.blob).data
        if "origin" not in said or "replica" not in said:
            continue  # its maker erased it
        origin, by = said["origin"], roster[maker].name if maker in roster else maker
        one = found.setdefault(origin, MissingPeer(origin, said["replica"], ()))
        found[origin] = one._replace(by=tuple(dict.fromkeys((*one.by, by))))
    # A line that its replica left is here as the beginning of the one that it went on under.
    left = db.execute("SELECT origin FROM forks UNION SELECT line FROM merged")
    here = {team.store.origin, *roster, *(of for (of,) in left)}
    here.update(at_hand)
    return [one for one in found.values() if here.isdisjoint((one.origin, one.replica))]


def seen_path(root: str, replica: str) -> str | None:
    """The file that notes the seal of a peer that was looked at last; None: in no repository."""
    tree = tree_of_team(root)
    return None if tree is None else f"{tree.common}/{APART}/{replica}.seen"


def read_seen(path: str | None, peer: Peer) -> tuple[Seal, bytes] | None:
    """The seal of ``peer`` that was looked at last, and its note.

    None unless it is newer than the one that is merged now, and nothing was to be taken between.
    """
    with suppress(OSError, ValueError, LedgerError):
        head, _, note = read_plain_file(path or "", MAX_NOTE).partition(b"\n")
        seal = read_seal(note)
        if head == _merged_head(peer) and seal.origin == peer.origin and seal.size > peer.size:
            return seal, note
    return None


def has_merged(root: str, peer: Peer, seal: Seal) -> bool:
    """Whether what a seal of ``peer`` covers is here, but for what gives nothing to be taken."""
    if (peer.size, peer.root) == (seal.size, seal.root.hex()):
        return True
    seen = read_seen(seen_path(root, peer.replica), peer)
    return seen is not None and seen[0] == seal


def note_seen(path: str | None, peer: Peer, note: bytes) -> None:
    """Note the seal of ``peer`` that was looked at last; where the disk refuses it, nothing is."""
    if path is not None:
        with suppress(OSError):
            replace_file(path, _merged_head(peer) + b"\n" + note, 0o644)


def _merged_head(peer: Peer) -> bytes:
    return f"{peer.size} {peer.root}".encode()


def is_closed(root: str) -> bool:
    """Whether the policy of a team demands that a person accepts each peer (``peers: closed``).

    Raises RefusedError where the policy is not understood: what it demands is not passed over.
    """
    from tripod.verify.anchors.anchors import AnchorOptions, gather_anchors  # dear, seldom needed

    outside = gather_anchors(root, AnchorOptions(git=False))
    for what, where, message in outside.faults:
        if what == "broken":
            raise RefusedError(f"{where}: {message}; nothing was taken")
    return outside.rules.peers == "closed"


def refusal_of_peer(peer: Peer, *, closed: bool) -> str | None:
    """Why nothing may be taken of a peer, and what to do; None where it may be.

    ``closed``: the policy says ``peers: closed``. For a peer that is not known yet, ``peer`` has
    the key of its seal.
    """
    who = peer.name
    if peer.state == "closed":
        return (
            f"{who} was closed in entry {peer.closed}: nothing of it is taken any more. "
            f"`tripod peer accept {who} --reason TEXT` opens it again"
        )
    if peer.state == "forked":
        return (
            f"{who} contradicts what it sealed before (entry {peer.forked}): nothing of it is "
            f"taken. `tripod peer show {who}` has both seals; its owner goes on by `tripod "
            "restore --as-copy`"
        )
    if closed and peer.state != "accepted":
        return (
            f"{who} waits: the policy says `peers: closed`, and nobody accepted it. "
            f"`tripod peer accept {who} --reason TEXT` does, once you know whose it is"
        )
    return None


def find_peer(peers: dict[str, Peer], name: str) -> Peer:
    """The peer of a replica name, an origin, or the beginning of one of them.

    Raises NotFoundError where no peer has it, RefusedError where several are meant.
    """
    exact = [one for one in peers.values() if name in (one.replica, one.origin)]
    found = exact or [
        one
        for one in peers.values()
        if name and (one.replica.startswith(name) or one.origin.startswith(name))
    ]
    if not found:
        names = ", ".join(one.name for one in peers.values())
        known = f"there are {names}" if names else "none is known: `tripod pull` fetches them"
        raise NotFoundError(f"no peer {name!r}: {known}")
    if len(found) > 1:
        both = ", ".join(f"{one.name} ({one.origin})" for one in found)
        raise RefusedError(f"{name!r} may be {both}: give its whole name, or its origin")
    return found[0]


def accept_peer(team: Team, peer: Peer, reason: str, actor: str) -> int:
    """Record that a person accepts a peer with its key; give the entry's number.

    Raises BadArgumentError where the reason is no line of text.
    """
    _check_reason(reason)
    body = PEER_ACCEPTED.draft({"origin": peer.origin, "key": peer.key, "reason": reason}, actor)
    with team.act(by=actor) as act:
        return act.append([body])[0].seq


def close_peer(team: Team, peer: Peer, reason: str, actor: str) -> int:
    """Record that nothing more of a peer is taken; give the entry's number.

    Raises BadArgumentError where the reason is no line of text.
    """
    _check_reason(reason)
    with team.act(by=actor) as act:
        draft = PEER_CLOSED.draft({"origin": peer.origin, "reason": reason}, actor)
        return act.append([draft])[0].seq


def _check_reason(reason: str) -> None:
    problem = text_line_problem(reason, "--reason", MAX_REASON)
    if problem is not None:
        raise BadArgumentError(problem)
