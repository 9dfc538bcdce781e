"""``tripod accept``: findings of the verifier accepted, with a reason, and that taken back."""

from __future__ import annotations

from tripod.cli.commands import RAW, CommandCall, command_verb, moment_param
from tripod.errors import BadArgumentError
from tripod.output import one_line, remark
from tripod.trust.acceptance import (
    AcceptanceDone,
    AcceptanceRequest,
    accept_findings,
    read_baseline,
    revoke_acceptances,
)
from tripod.verify.finding import SHORT


def _accept(call: CommandCall) -> None:
    ways = (bool(call.finding), call.check is not None, call.all_from is not None)
    if ways.count(True) != 1:
        raise BadArgumentError("give the ids of findings, or --check NAME, or --all-from FILE")
    if call.before is not None and call.check is None:
        raise BadArgumentError("--before goes with --check NAME")
    if call.revoke and not call.finding:
        raise BadArgumentError("--revoke goes with the ids of findings")
    how = {"reason": call.reason, "actor": call.actor()}
    with call.team() as team, call.progress():
        if call.revoke:
            done = revoke_acceptances(team, call.finding, **how)
        else:
            request = AcceptanceRequest(
                call.finding, call.check, moment_param(call.before, "--before"), call.all_from
            )
            done = accept_findings(team, request, **how)
    if call.all_from is not None:
        left = len(read_baseline(call.all_from)) - len(done)
        if left:
            remark(
                f"{left} of the failures in {call.all_from} stay: they are accepted already, are "
                "not there any more, or cannot be accepted"
            )
    verb = "Accepted no more" if call.revoke else "Accepted"
    call.answers(
        (one._asdict() for one in done), [_line(verb, one) for one in done] or ["Nothing to accept"]
    )


def _line(verb: str, one: AcceptanceDone) -> str:
    what = f": {one_line(one.finding)}" if one.finding else ""
    return f"{verb}: {one.fingerprint[:SHORT]} {one_line(one.check)}{what} (entry {one.seq})"


_ACCEPT = """\
accept [FINDING]...
    FINDING is the id that `tripod verify` shows with a finding, or its first digits. From then
    on `tripod verify` counts that finding as accepted, and does not fail on it. A finding that
    changes has another id, and is not accepted. What is wrong with the ledger itself cannot be
    accepted.

    --reason TEXT    Why; the reason stays in the ledger. [required]
    --check NAME     Accept every failure of this check.
    --before TIME    With --check: only failures about entries from before a day or a time.
    --all-from FILE  Accept the failures in FILE, a report of `tripod verify --json`, that
        are still there.
    --revoke         Take the acceptance back; that is an entry as well.
    --as HANDLE      Who accepts it; by default your own handle.
"""
COMMANDS = {"accept": command_verb(_ACCEPT, _accept, {"FILE": RAW})}
