"""``tripod push`` and ``tripod pull``: records given to a remote, and taken from one.

A pull mostly finds nothing new, and is then as quick as git and what it imports. So this imports
what fetching needs and no more: the rest is imported while git runs.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tripod.cli.commands import CommandCall, NumberParam, command_verb
from tripod.ledger.locator import found_team, has_ledger
from tripod.output import one_line
from tripod.peers.remote import FetchedRecords, fetch_ahead

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


def _import_pull() -> None:
    # An interrupt while orjson is imported ends the process with SIGSEGV, and git goes on.
    came = list[int]()
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    import orjson  # noqa: F401 - before the modules that need it

    signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(signal.SIGINT, None)
    import tripod.peers.pull
    import tripod.team.access  # noqa: F401 - it opens the team next


@contextmanager
def _fetched(call: CommandCall) -> Iterator[FetchedRecords | None]:
    """Fetch before the team is opened: git takes about as long as the modules for all the rest.

    None where it is for the pull itself to fetch, or to say what is wrong.
    """
    root = found_team(call.values["team"])
    if root is None or not has_ledger(root) or call.no_fetch or call.dry_run:
        yield None
        return
    with fetch_ahead(root, call.remote, call.timeout, _import_pull) as fetched:
        yield fetched


def _pull(call: CommandCall) -> int:
    with _fetched(call) as fetched, call.team() as team, call.progress():
        from tripod.peers.pull import pull
        from tripod.peers.roster import MergeLimits, missing_peers, read_roster

        done = pull(
            team, call.remote, seconds=call.timeout,
            limits=MergeLimits(call.max_entries, call.max_bytes, call.max_blobs),
            fetch=not call.no_fetch, fetched=fetched, dry_run=call.dry_run,
        )  # fmt: skip
        is_new = any(one.done.added for one in done.records)
        known = read_roster(team.store).values() if is_new else ()
        met = any("peer.added" in one.kinds for one in done.records)
        missing = missing_peers(team, [one.replica for one in done.records]) if met else []
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
            code = code if what.is_older or what.is_stranger or what.is_closed else 1
        told_of = {**what._asdict(), "replica": replica, "kinds": kinds}
        values.append({"remote": done.remote, "ref": ref, **told_of})
    lines += [f"left {one_line(ref)}: it is no record of a replica" for ref in done.strange]
    lines += [one_line(one.problem) for one in missing]
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

    Exit codes: 0 all that is new was merged, but of a peer that was closed here; 1 something of
    another peer was not taken (what was sound of it, and the other peers, were), or the pull was
    refused; 2 usage, 3 the remote gave no usable answer.

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
    "push": command_verb(_PUSH, _push, _SECONDS),
    "pull": command_verb(_PULL, _pull, {**_SECONDS, "N": NumberParam(1)}),
}
