"""``tripod peer``: the other replicas of the team, as this one knows them."""

from __future__ import annotations

from tripod.cli.commands import CommandCall, NumberParam, command_group, command_verb
from tripod.output import one_line
from tripod.peers.roster import (
    MergeLimits,
    Peer,
    accept_peer,
    close_peer,
    find_peer,
    is_closed,
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
        found = [(peer, _value(team, peer)) for peer in _known(team).values()]
        closed = is_closed(team.root)
    lines = []
    for peer, value in found:
        when = f"last merged {str(value['at'])[:19]}Z" if value["at"] else "nothing merged"
        name = one_line(peer.name)
        lines.append(f"{name}  {peer.state}  {peer.size} entries, {when}")
    if not lines:
        lines = ["No peers: `tripod pull` fetches what other replicas pushed, and merges it"]
    elif any(peer.state == "waiting" for peer, _ in found):
        lines.append("`tripod pull` merges what waits, or says why it does not")
    if closed:
        lines.append("The policy says `peers: closed`: a new peer waits for `tripod peer accept`")
    call.answers((value for _, value in found), lines)


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


# Remotes ---------------------------------------------------------------------------------------


_WORDS = (
    ("decision.logged", "decision"),
    ("chat.sent", "message"),
    ("bus.published", "event"),
    ("pythia.assessed", "assessment"),
)
"""Kinds that a person asks for, and their words."""


def _push(call: CommandCall) -> None:
    from tripod.peers.push import push

    with call.team() as team, call.progress():
        done = push(team, call.remote, seconds=call.timeout, dry_run=call.dry_run)
    lines = []
    own = done.records[0].replica
    for one in done.records:
        what = "pushed" if one.replica == own else "passed on"
        told = f"would be {what}" if call.dry_run else what
        if one.problem:
            lines.append(f"{one_line(one.replica)} was not passed on: {one_line(one.problem)}")
            continue
        new = one.size - one.before
        more = f", {new} of them new" if one.before and new else ", nothing new" * (not new)
        where = f"{one_line(done.remote)} ({one_line(one.ref)})"
        count = _count(one.size, "entry")
        lines.append(f"{told} {one_line(one.replica)}: {count}{more}, to {where}")
    call.answers(({"remote": done.remote, **one._asdict()} for one in done.records), lines)


def _pull(call: CommandCall) -> int:
    from tripod.peers.pull import pull

    limits = MergeLimits(call.max_entries, call.max_bytes, call.max_blobs)
    with call.team() as team, call.progress():
        done = pull(
            team, call.remote, limits=limits, seconds=call.timeout,
            fetch=not call.no_fetch, dry_run=call.dry_run,
        )  # fmt: skip
        is_new = any(one.done.added for one in done.records)
        known = read_roster(team.store).values() if is_new else ()
    accepted = {peer.replica for peer in known if peer.state == "accepted"}
    lines, values, code = [], [], 0
    told = "would pull" if call.dry_run else "pulled"
    for ref, replica, what, kinds in done.records:
        name = one_line(replica)
        if what.taken or what.erased:
            line = f"{told} {name}: {_count(what.taken, 'new entry')}{_of(kinds)}"
            line += f", {what.erased} erased" if what.erased else ""
            line += "; a new peer" if what.added else ""
            is_first_use = what.added and replica not in accepted
            lines.append(f"{line}, taken at first use" if is_first_use else line)
        if what.problem:
            lines.append(f"{name}: {one_line(what.problem)}")
            code = code if what.is_older or what.is_stranger else 1
        told_of = {**what._asdict(), "replica": replica, "kinds": kinds}
        values.append({"remote": done.remote, "ref": ref, **told_of})
    lines += [f"left {one_line(ref)}: it is no record of a replica" for ref in done.strange]
    if done.asked:
        lines.append(
            f"published {one_line(done.asked)}: no replica's checkpoint covered these decisions"
        )
    lines = lines or [f"nothing new from {one_line(done.remote)}"]
    call.answers(values, lines)
    return code


def _of(kinds: dict[str, int]) -> str:
    parts = [_count(kinds[kind], word) for kind, word in _WORDS if kinds.get(kind)]
    return f" ({', '.join(parts)})" if parts else ""


def _count(number: int, word: str) -> str:
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"


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
_PUSH = """\
push [REMOTE]
    It seals the ledger, writes the record to this repository's ref refs/tripod/NAME, and pushes
    that ref to REMOTE (a name, a URL or a path; by default origin, or the only remote). It also
    pushes the records of peers that were merged here, where REMOTE has less of them. It never
    replaces a longer record.

    For a host that refuses refs outside of branches, run `git config tripod.refs
    refs/heads/tripod/` in each clone. Of the repository's own configuration it uses the remote's
    address and HTTP headers; it runs no hook and no program that the repository names.

    Exit codes: 0 this record was pushed, or nothing was new; 1 refused, 2 usage, 3 the remote gave
    no usable answer.

    --timeout S  Seconds that the remote may take. [default: 120]
    --dry-run    Say what would be pushed, as far as is known here; seal and push nothing.

    looks: with --dry-run
"""
_PULL = """\
pull [REMOTE]
    It fetches the records of other replicas from REMOTE (a name, a URL or a path; by default
    origin, or the only remote) to refs/tripod-remotes/REMOTE/. Then it merges what is new of each:
    it adds the decisions, messages and events of the peers to this ledger and its files.

    Exit codes: 0 all that is new was merged; 1 something of a peer was not taken (what was sound
    of it, and the other peers, were), or the pull was refused; 2 usage, 3 the remote gave no usable
    answer.

    --max-entries N  At most so many new entries of each peer. [default: 500000]
    --max-bytes N    Read at most so many bytes of each peer's record. [default: 1073741824]
    --max-blobs N    At most so many long texts of each peer. [default: 100000]
    --no-fetch       Merge what was fetched before.
    --timeout S      Seconds that the remote may take. [default: 120]
    --dry-run        Say what would be merged; change no ref, and merge nothing.

    looks: with --dry-run
"""
_SECONDS = {"S": NumberParam(1, 86_400)}
COMMANDS = {
    "peer": command_group(_PEER, [_list, _show, _accept, _close]),
    "push": command_verb(_PUSH, _push, _SECONDS),
    "pull": command_verb(_PULL, _pull, {**_SECONDS, "N": NumberParam(1)}),
}
