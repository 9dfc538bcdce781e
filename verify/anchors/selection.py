"""Which checks are run: what the caller, the project's files and the policy say of that.

A file of the project can be edited by those whose work is judged. It never hides a fault: what it
may leave out changes no exit code, and the report says what was left out, and who did that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from tripod.ledger.kinds.registry import KINDS
from tripod.projections.text import text_meant
from tripod.verify.anchors.heads import OutsideHeads
from tripod.verify.anchors.policy import Configured
from tripod.verify.check import Check, Report


def advises(check: Check) -> bool:
    """Whether a check only advises."""
    return bool(getattr(check, "ADVICE", False))


def checks_left_out(outside: OutsideHeads, checks: Sequence[Check]) -> list[str]:
    """The checks that ``select`` of a file leaves out.

    Whose work is judged can edit the file. So it leaves out advice, which fails nothing; other
    checks that are not required only where a caller named the commit that it is read from.
    """
    said, rules = outside.settings, outside.rules
    kept = {*said.select, *rules.required}
    return [
        check.NAME
        for check in checks
        if said.select
        and check.NAME not in kept
        and (advises(check) or (said.is_outside and not check.REQUIRED))
    ]


def selection_notes(
    said: Configured,
    asked: Sequence[Check],
    left_out: Sequence[str],
    select: Collection[str] | None,
) -> Iterator[str]:
    """Say that checks were left out, by the caller or by a file, and which."""
    if select is not None:
        names = ", ".join(check.NAME for check in asked)
        yield f"only these checks were selected, and nothing is said of the others: {names}"
    elif said.select:
        besides = [check.NAME for check in asked if check.NAME not in said.select]
        words = f"`select` in {said.selected} leaves out {', '.join(left_out) or 'nothing'}"
        more = "" if said.is_outside else " (a file that is judged itself leaves out advice alone)"
        yield f"{words}; {len(besides)} checks that it does not name were judged as well{more}"


def with_broken_files(outside: OutsideHeads, report: Report) -> Report:
    """A report that says which policies were not understood, where no check does.

    Without a ledger, or where other checks were selected, heads are not compared.
    """
    broken = [f"{where}: {why}" for fault, where, why in outside.faults if fault == "broken"]
    if not broken:
        return report
    if report.exit_code == 0:
        return replace(report, outcomes=(), problem="; ".join(broken))
    return replace(report, notes=(*report.notes, *broken))


def misnamed_problem(
    outside: OutsideHeads, checks: Sequence[Check], every: Callable[[], Sequence[Check]]
) -> str | None:
    """A name in the policy, or in ``select``, that nothing bears: it would demand nothing."""
    rules, said = outside.rules, outside.settings
    named = {*rules.required, *said.select}
    known_checks = every() if named - {one.NAME for one in checks} else checks
    advising = {check.NAME for check in known_checks if advises(check)} & set(rules.required)
    if advising:
        return f"the policy requires {min(advising)!r}, and that check only advises"
    names_of_checks = {check.NAME for check in known_checks}
    for who, names, known, what in (
        ("the policy", rules.required, names_of_checks, "check"),
        (f"`select` in {said.selected}", said.select, names_of_checks, "check"),
        ("the policy", rules.signed, {kind.name for kind in KINDS}, "kind of entries"),
    ):
        unknown = set(names) - known
        if unknown:
            meant = text_meant(min(unknown), sorted(known))
            return f"{who} names {min(unknown)!r}, and there is no such {what}{meant}"
    return None
