"""Accepts findings of the verifier with a reason, and takes that back: each is an entry.

A finding is accepted as `verify` shows it at this moment; what cannot be found, or not be accepted,
is refused. Which acceptances count is for the verifier to say (``tripod.verify.acceptance``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tripod.errors import BadArgumentError, LedgerError, NotFoundError, RefusedError, TripodError
from tripod.ledger.files import read_plain_file
from tripod.ledger.kinds.trust import ACCEPTED, REVOKED
from tripod.projections.text import text_line_problem, text_meant
from tripod.team.team import Team
from tripod.trust.seal import seal
from tripod.trust.signature import signing_actor
from tripod.verify.acceptance import Acceptances, read_acceptances
from tripod.verify.check import Finding, Report, lets_accept
from tripod.verify.run import all_checks, open_run, run

MAX_REASON = 1000  # bytes
MAX_REPORT = 64 * 1024 * 1024  # bytes
LEAST = 4  # digits of a fingerprint
_DIGITS = re.compile("[0-9a-f]{1,64}")


class AcceptanceRequest(NamedTuple):
    """Which findings to accept: by their ids, or all failures of a check or of an older report.

    ``before``: of the check those about entries from before this second. ``report`` is the path of
    a report of `verify` as JSON.
    """

    ids: tuple[str, ...] = ()
    check: str | None = None
    before: int | None = None
    report: str | None = None


class AcceptanceDone(NamedTuple):
    """A finding that was accepted, or is not any more, and the entry that says so."""

    seq: int
    check: str
    fingerprint: str
    finding: str = ""


def accept_findings(
    team: Team, request: AcceptanceRequest, *, reason: str, actor: str
) -> list[AcceptanceDone]:
    """Accept findings: an entry for each, signed if the actor has a key.

    Raises:
        BadArgumentError: the request names no check or no report, or the reason is no line of text.
        NotFoundError: there is no such finding.
        RefusedError: a finding cannot be accepted, or not by this actor; nothing was recorded.
    """
    _check_reason(reason)
    _check_name(request.check)
    baseline = None if request.report is None else read_baseline(request.report)
    done: dict[str, AcceptanceDone] = {}
    while True:
        report, found = _judge(team, actor)
        if request.ids:
            chosen = [_named(report, found, one) for one in dict.fromkeys(request.ids)]
        else:
            failures = _failures(team, report, request, baseline)
            chosen = [one for one in failures if one.fingerprint not in done]
        with team.act(by=actor) as act:
            drafts = [
                ACCEPTED.draft(
                    {"check": one.check, "fingerprint": one.fingerprint, "reason": reason}, actor
                )
                for one in chosen
            ]
            entries = act.append(drafts)
        for entry, one in zip(entries, chosen, strict=True):
            said = AcceptanceDone(entry.seq, one.check, one.fingerprint, one.message)
            done[one.fingerprint] = said
        # Of very many findings a report holds the first: with these accepted it holds the next.
        if request.ids or not chosen or not any(one.left_out for one in report.outcomes):
            break
    _seal(team)
    return list(done.values())


def revoke_acceptances(
    team: Team, ids: Sequence[str], *, reason: str, actor: str
) -> list[AcceptanceDone]:
    """Take acceptances back; `verify` reports the findings again from then on.

    Raises BadArgumentError (the reason is no line of text), NotFoundError (nothing of that id is
    accepted), RefusedError (several are; nothing was recorded).
    """
    _check_reason(reason)
    with team.act(by=actor) as act:
        with open_run(team.root) as evidence:
            found = read_acceptances(evidence, ())
        bodies = []
        for id_ in dict.fromkeys(ids):
            named = found.of(_prefix(id_))
            if not named:
                raise NotFoundError(
                    f"no finding {id_} is accepted: `tripod verify --accepted` shows those that are"
                )
            if len(named) > 1:
                raise _ambiguous(id_, [one.fingerprint for one in named])
            bodies.append((named[0].check, named[0].fingerprint))
        entries = act.append(
            [
                REVOKED.draft({"check": check, "fingerprint": digest, "reason": reason}, actor)
                for check, digest in bodies
            ]
        )
    _seal(team)
    pairs = zip(entries, bodies, strict=True)
    return [AcceptanceDone(entry.seq, *body) for entry, body in pairs]


def read_baseline(path: str) -> set[tuple[str, str]]:
    """Check and fingerprint of each failure in a report (BadArgumentError: it is no report).

    One of a clone that was judged by its refs has a part for each replica.
    """
    try:
        data = read_plain_file(path, MAX_REPORT, named=True)
        report = json.loads(data[: MAX_REPORT + 1])
        found = {
            (check["check"], finding["fingerprint"])
            for part in (report, *report.get("parts", ()))
            for check in part["checks"]
            for finding in check["findings"]
            if finding["severity"] == "failure" and "fingerprint" in finding
        }
    except OSError as error:
        raise BadArgumentError(f"--all-from {path}: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BadArgumentError(
            f"--all-from {path} is no report: `tripod verify --json` writes one"
        ) from error
    return found


def _seal(team: Team) -> None:
    """Seal, if the ledger is sealed here: a clone is judged by what is sealed."""
    try:
        seal(team, "asked")
    except (TripodError, LedgerError, OSError) as error:
        team.warnings.append(f"recorded, but not sealed: {error}")


def _check_reason(reason: str) -> None:
    problem = text_line_problem(reason, "--reason", MAX_REASON)
    if problem is not None:
        raise BadArgumentError(problem)


def _check_name(name: str | None) -> None:
    """Refuse a check that is not there, or of which no finding can be accepted."""
    known = {check.NAME: check for check in all_checks()}
    if name is not None and name not in known:
        raise BadArgumentError(f"no check {name!r}{text_meant(name, list(known))}")
    if name is not None and not lets_accept(known[name]):
        raise RefusedError(
            f"what {name} finds is wrong with the ledger itself: nobody can accept that"
        )


def _judge(team: Team, actor: str) -> tuple[Report, Acceptances]:
    """The report of now, and what is accepted (RefusedError: nothing can be accepted)."""
    with team.act():
        pass  # what others wrote is taken in
    checks = all_checks()
    with open_run(team.root) as evidence:
        report = run(evidence, checks=checks)
        found = read_acceptances(evidence, checks)
        rules = evidence.outside.rules
    if report.problem:
        raise RefusedError(f"nothing can be judged, and so not accepted: {report.problem}")
    own = {check.NAME for check in checks if not lets_accept(check)}
    failing = [one.check for one in report.outcomes if one.check in own and one.failures]
    if failing:
        raise RefusedError(
            f"the ledger itself does not verify ({', '.join(failing)}), so no acceptance counts: "
            "`tripod verify` says what to do"
        )
    named = rules.accepting(actor)
    if rules.accept and not named:
        raise RefusedError(
            f"the policy lets {', '.join(rules.accept)} accept findings, and not {actor}"
        )
    signing = signing_actor(team.store.db, actor) if named else None
    if named and signing is None:
        raise RefusedError(
            f"the policy asks for signed acceptances, and {actor} has no key: `tripod actor enrol`"
        )
    if signing is not None and not {actor, signing.vkey} & {*named}:
        raise RefusedError(
            f"the policy lets {', '.join(named)} accept findings, and {actor} signs with another "
            f"key: {signing.vkey}"
        )
    return report, found


def _named(report: Report, found: Acceptances, id_: str) -> Finding:
    """The finding with an id, if it can be accepted."""
    prefix = _prefix(id_)
    every = [one for outcome in report.outcomes for one in outcome.findings]
    named = [one for one in every if one.fingerprint and one.fingerprint.startswith(prefix)]
    if len(named) > 1:
        raise _ambiguous(id_, [one.fingerprint for one in named])
    if not named:
        for by in found.of(prefix):
            raise RefusedError(f"{id_} is accepted already, by {by.actor} in entry {by.seq}")
        raise NotFoundError(f"there is no finding {id_}: `tripod verify` shows their ids")
    if not named[0].is_acceptable:
        raise RefusedError(
            f"{id_} is a finding of {named[0].check} that nobody can accept: it is about the "
            "ledger itself, or about something that was not looked at, is not in the ledger yet, "
            f"or can be mended: {named[0].help}"
        )
    return named[0]


def _failures(
    team: Team, report: Report, request: AcceptanceRequest, baseline: set[tuple[str, str]] | None
) -> Iterator[Finding]:
    """The failures of a check, or of an older report, as far as they can be accepted."""
    for finding in (one for outcome in report.outcomes for one in outcome.findings):
        if finding.severity != "failure" or not finding.is_acceptable:
            continue
        if baseline is not None:
            if (finding.check, finding.fingerprint) in baseline:
                yield finding
        elif finding.check == request.check and (
            request.before is None or _is_before(team, finding.seq, request.before)
        ):
            yield finding


def _is_before(team: Team, seq: int | None, seconds: int) -> bool:
    """Whether a finding is about an entry that is older; one about a file is not."""
    from tripod.ledger import parse_entry_time

    entry = None if seq is None else team.store.entry(seq)
    return entry is not None and parse_entry_time(entry.at) < seconds * 1_000_000


def _prefix(id_: str) -> str:
    if not _DIGITS.fullmatch(id_) or len(id_) < LEAST:
        raise BadArgumentError(
            f"{id_:.80} is no finding's id: give {LEAST} or more of the digits that "
            "`tripod verify` shows"
        )
    return id_


def _ambiguous(id_: str, fingerprints: Sequence[str]) -> RefusedError:
    shown = ", ".join(one[: len(id_) + LEAST] for one in sorted(fingerprints)[:LEAST])
    return RefusedError(f"{id_} means {len(fingerprints)} findings: give more digits ({shown})")
