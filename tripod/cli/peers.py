"""``tripod peer``: the other replicas of the team, as this one knows them."""

from __future__ import annotations

from tripod.cli.commands import CommandCall, command_group
from tripod.output import one_line
from tripod.peers.roster import (
    Peer,
    accept_peer,
    close_peer,
    find_peer,
    is_closed,
    missing_peers,
    read_roster,
    refusal_of_peer,
)
from tripod.team.team import Team

_HOW = {
    "first-use": "taken at first use: nobody accepted it",
    "accepted": "accepted by a person",
    "waiting": "met, and nothing of it was taken yet",
    "closed": "closed: nothing of it is taken",
    "forked": "it contradicts what it sealed: nothing of it is taken",
}
_SEALS = {"ours": "the seal up to which it was merged", "theirs": "the seal that contradicts it"}


def _known(team: Team) -> dict[str, Peer]:
    """The peers, and the replicas of which git holds a record that was not merged."""
    from tripod.peers.join import waiting_peers  # dear: it reads whole records

    peers = read_roster(team.store)
    left = {row[0] for row in team.store.db.execute("SELECT origin FROM forks")}
    waiting = waiting_peers(team.root, {team.store.origin, *left, *peers})
    return peers | {origin: one._replace(size=0) for origin, one in waiting.items()}


def _list(call: CommandCall) -> None:
    with call.fresh() as team:
        known = _known(team)
        found = [(peer, _value(team, peer)) for peer in known.values()]
        missing = missing_peers(team, known)
        closed = is_closed(team.root)
    lines = []
    for peer, value in found:
        when = f"last merged {str(value['at'])[:19]}Z" if value["at"] else "nothing merged"
        name = one_line(peer.name)
        lines.append(f"{name}  {peer.state}  {peer.size} entries, {when}")
    lines += [f"{one_line(one.replica)}  missing  {one_line(one.problem)}" for one in missing]
    if not lines:
        lines = ["No peers: `tripod pull` fetches what other replicas pushed, and merges it"]
    elif any(peer.state == "waiting" for peer, _ in found):
        lines.append("`tripod pull` merges what waits, or says why it does not")
    if closed:
        lines.append("The policy says `peers: closed`: a new peer waits for `tripod peer accept`")
    lost: dict[str, str | int] = {"key": "", "state": "missing", "size": 0, "at": ""}
    values = [value for _, value in found]
    values += [lost | {"replica": one.replica, "origin": one.origin} for one in missing]
    call.answers(values, lines)


def _show(call: CommandCall) -> None:
    with call.fresh() as team:
        peer = find_peer(_known(team), call.replica)
        value = _value(team, peer)
        said = {name: _said(team, getattr(peer, name)) for name in ("accepted", "closed", "forked")}
        problem = refusal_of_peer(peer, closed=is_closed(team.root))
    lines = [
        f"replica: {one_line(peer.replica)}",
        f"origin: {one_line(peer.origin)}",
        f"key: {one_line(peer.key)}",
        f"state: {peer.state} ({_HOW[peer.state]})",
        f"merged: {peer.size} entries, root {peer.root or 'none'}",
    ]
    for name, body in said.items():
        for field in ("reason", "problem", "ours", "theirs"):
            text = body.get(field)
            if isinstance(text, str) and field in _SEALS:  # as a file of it would be: it is proof
                lines.append(f"{_SEALS[field]}:")
                lines += [f"  {one_line(line)}".rstrip() for line in text.splitlines()]
            elif isinstance(text, str):
                lines.append(f"{name}, {field}: {one_line(text)}")
    lines += [problem] if problem else []
    call.answer({**value, **{name: body or None for name, body in said.items()}}, lines)


def _accept(call: CommandCall) -> None:
    with call.fresh() as team:
        peer = find_peer(_known(team), call.replica)
        seq = accept_peer(team, peer, call.reason, call.actor())
    line = f"Accepted: {one_line(peer.name)}, key {one_line(peer.key)} (entry {seq})"
    call.answer({"origin": peer.origin, "key": peer.key, "seq": seq}, [line])


def _close(call: CommandCall) -> None:
    with call.fresh() as team:
        peer = find_peer(_known(team), call.replica)
        seq = close_peer(team, peer, call.reason, call.actor())
    line = f"Closed: {one_line(peer.name)} (entry {seq}); what was merged stays"
    call.answer({"origin": peer.origin, "seq": seq}, [line])


def _value(team: Team, peer: Peer) -> dict[str, str | int]:
    entry = None if peer.merged is None else team.store.entry(peer.merged)
    return {
        "replica": peer.replica,
        "origin": peer.origin,
        "key": peer.key,
        "state": peer.state,
        "size": peer.size,
        "at": "" if entry is None else entry.at,
    }


def _said(team: Team, seq: int | None) -> dict[str, object]:
    entry = None if seq is None else team.store.entry(seq)
    if entry is None:
        return {}
    texts = {
        name: team.source.content(value).decode("utf-8", "replace")
        for name, value in entry.data.items()
        if isinstance(value, dict)
    }
    return {"seq": entry.seq, "at": entry.at, "actor": entry.actor, **entry.data, **texts}


_PEER = """\
peer
    A replica is the ledger of one clone, with a key of its own; a peer is another replica of the
    same team. `tripod pull` merges what peers recorded.

    REPLICA is a replica's name, its origin, or the beginning of either.

list
    List the peers: name, state, how many of a peer's entries are here, and when it was last merged.

    looks: always

show REPLICA
    Print what is known of a peer: its key, what was merged, who accepted or closed it.

    looks: always

accept REPLICA
    Say that a peer with its key belongs to the team.

    By default `tripod pull` merges a new peer without asking. Where the policy says `peers:
    closed`, it merges nothing of a peer that nobody accepted. `tripod verify` counts what a peer
    remembers of this ledger (PEERED) only once the peer was accepted. Accepting a peer that was
    closed opens it again.

    --reason TEXT  How you know whose replica it is; the reason stays in the ledger. [required]
    --as HANDLE    Who accepts it; by default your own handle.

close REPLICA
    Take nothing more of a peer. What was merged of it stays.

    --reason TEXT  Why; the reason stays in the ledger. [required]
    --as HANDLE    Who closes it; by default your own handle.
"""
COMMANDS = {"peer": command_group(_PEER, [_list, _show, _accept, _close])}
