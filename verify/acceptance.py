"""Which findings a team accepted, and which of its acceptances count; what was found before.

An acceptance is an entry (``finding.accepted``), undone by another (``acceptance.revoked``). It
counts only in a ledger that verifies, for no finding of the ledger's own checks, for none about an
entry that came after it, and where the policy says who may accept, for signed ones of these alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from orjson import loads

from tripod.ledger import Entry, MalformedError
from tripod.ledger.actors import actor_record_problem, actor_statement, parse_actor_record
from tripod.ledger.kinds.trust import REVOKED
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import Seal
from tripod.verify.anchors.policy import Rules
from tripod.verify.check import RULES, TABLES, Check, Outcome, lets_accept, needs
from tripod.verify.evidence import DatabaseEvidence, OpenEvidence
from tripod.verify.finding import Acceptance, FindingNames, naming_findings
from tripod.verify.fold import SETTLING
from tripod.verify.rows import entry_of_row, show_first_rows

FEW = 3  # acceptances that do not count and are named; of more, their number


class Acceptances(NamedTuple):
    """The acceptances in force that count, by check and fingerprint; why the others do not."""

    counting: dict[str, dict[str, Acceptance]]
    notes: tuple[str, ...] = ()

    def of(self, fingerprint: str) -> list[Acceptance]:
        """Those whose fingerprint begins so."""
        every = (one for of_check in self.counting.values() for one in of_check.values())
        return [one for one in every if one.fingerprint.startswith(fingerprint)]


def read_acceptances(evidence: OpenEvidence, checks: Iterable[Check]) -> Acceptances:
    """Read the acceptances of a ledger, as far as each counts by itself."""
    if evidence.ledger is None or evidence.db is None or not evidence.database.bodies:
        return Acceptances({})
    own = {check.NAME for check in checks if not lets_accept(check)}
    rules = evidence.outside.rules
    counting: dict[str, dict[str, Acceptance]] = {}
    ignored = []
    if evidence.folded is None:  # a walk over the whole ledger, which the fold spares
        rows = evidence.ledger.raw(kinds=SETTLING)
    else:
        noted = evidence.query("SELECT seq FROM settling ORDER BY seq")
        rows = evidence.ledger.raw_of([seq for (seq,) in noted])
    for row in sorted(rows):
        entry = entry_of_row(evidence.db, row)
        if entry is None:
            continue  # the ledger's checks name what is wrong with it
        check, digest, reason = (str(entry.data.get(n)) for n in ("check", "fingerprint", "reason"))
        one = Acceptance(entry.seq, check, digest, entry.actor, entry.at, reason)
        if entry.kind == REVOKED.name:
            counting.get(one.check, {}).pop(one.fingerprint, None)
        elif one.check in own:
            what = f"accepts a finding of {one.check}, and nobody can accept what is wrong there"
            ignored.append(f"entry {one.seq} {what}: it is ignored")
        elif rules.accept and (how := _refusal(rules, entry)):
            what = f"accepts a finding of {one.check}, and {one.actor} {how} (accept in {RULES})"
            ignored.append(f"entry {one.seq} {what}: it is ignored")
        else:
            counting.setdefault(one.check, {})[one.fingerprint] = one
    if len(ignored) > FEW:
        ignored[FEW:] = [f"{len(ignored) - FEW} more entries accept what they may not: ignored"]
    return Acceptances(counting, tuple(ignored))


def _refusal(rules: Rules, entry: Entry) -> str | None:
    """Why an acceptance does not count by a policy that says who may accept; None: it counts."""
    named = rules.accepting(entry.actor)
    if not named:
        return "may not"
    if entry.auth is None:
        return "did not sign it"
    if entry.actor in named:
        return None
    with suppress(MalformedError):
        record, stated = parse_actor_record(entry.auth), actor_statement(loads(entry.header))
        keys = [VerifierKey.parse(one) for one in named]
        if any(actor_record_problem(record, stated, key) is None for key in keys):
            return None
    return "signed it with another key"


def acceptances_in_force(
    evidence: OpenEvidence, found: Acceptances, own: Iterable[Outcome]
) -> Acceptances:
    """``found`` where the ledger verifies by its ``own`` checks, and their passes; else none."""
    if not found.counting:
        return found
    failing = [one.check for one in own if one.failures]
    if evidence.scan is not None:
        tally = evidence.scan.tally.found
        failing += [name for name in tally if tally[name].of("failure")]
    count = sum(map(len, found.counting.values()))
    what = f"{count} acceptance{'s do' if count > 1 else ' does'} not count"
    if evidence.scan is None:
        return Acceptances({}, (*found.notes, f"{what}: the ledger's entries were not looked at"))
    if failing:
        names = ", ".join(dict.fromkeys(failing))
        return Acceptances({}, (*found.notes, f"{what}: the ledger does not verify ({names})"))
    return found


# What was found before ---------------------------------------------------------------------------


class Before(NamedTuple):
    """What the first ``size`` entries show by themselves, by check: how often each fingerprint."""

    size: int
    why: str
    found: dict[str, dict[str, int]]


def size_before(evidence: OpenEvidence) -> tuple[int, str] | str | None:
    """How many entries there were where something is new since, and who knew them.

    None where that is not asked; a text says why nothing can be told apart.
    """
    if evidence.database.since is None or evidence.db is None:
        return None
    point, why = evidence.database.since
    size = point.size if isinstance(point, Seal) else point
    if size > evidence.rows:
        return f"everything is reported: there are {evidence.rows} entries, and {why} is beyond"
    if isinstance(point, Seal) and (
        evidence.root_at(size) != point.root or (size and evidence.line(size - 1) != point.origin)
    ):
        return f"everything is reported: the first {size} entries are not those of {why}"
    return size, why


def found_before(evidence: OpenEvidence, checks: Sequence[Check]) -> Before | str | None:
    """Judge the entries by themselves after which something is new; None where that is not asked.

    Nothing about files, git or the ledger's own checks is old: that is judged as it stands. A text
    says why nothing could be told apart, so that everything is reported.
    """
    point = size_before(evidence)
    if point is None or isinstance(point, str):
        return point
    size, why = point
    chosen = [one for one in checks if lets_accept(one) and needs(one, TABLES)]
    found: dict[str, dict[str, int]] = {}
    if not chosen:
        return Before(size, why, found)
    database = DatabaseEvidence(evidence.database.path, source=evidence.database.path)
    rest = {"nearby": evidence.nearby, "now_us": evidence.now_us}
    with OpenEvidence(evidence.what, database=database, **rest) as earlier:  # type: ignore[arg-type]
        earlier.outside.rules = evidence.outside.rules
        earlier.problem = database.open()
        if earlier.db is not None:
            show_first_rows(earlier.db, size)
            earlier.fold()
        if earlier.problem:
            return f"everything is reported: {earlier.problem}"
        accepted = read_acceptances(earlier, checks).counting
        for check in chosen:
            known = accepted.get(check.NAME, {})
            names = FindingNames(earlier.entry_name, known, is_exact=True)
            # One that breaks here is judged whole: what it found until then was there.
            with suppress(Exception), naming_findings(names):
                for finding in check.judge(earlier).findings:
                    names.sort(finding)
            found[check.NAME] = names.failing
    return Before(size, why, found)
