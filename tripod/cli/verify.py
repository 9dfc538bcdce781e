"""``tripod verify``: the judge's verdict, for people, scripts and CI. It writes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tripod.cli.commands import Call, verb_of
from tripod.cli.params import log_keys, meant
from tripod.errors import BadArgumentError, RefusedError
from tripod.ledger.locator import subject
from tripod.output import emit, emit_report, remark
from tripod.verify.anchors.anchors import AnchorOptions, OutsideError
from tripod.verify.check import Report

if TYPE_CHECKING:
    from tripod.verify.evidence import OpenEvidence


def _verify(call: Call) -> int:
    from tripod.verify.check import listed
    from tripod.verify.run import all_checks

    checks = all_checks()
    names = [check.NAME for check in checks]
    for name in (*call.select, *([call.explain] if call.explain else [])):
        if name not in names:
            known = ", ".join(names)
            raise BadArgumentError(f"no check {name!r}; there are {known}{meant(name, names)}")
    if call.list:
        emit(f"{listed(check):<20} {_proves(check.__doc__ or '')}" for check in checks)
        return 0
    if call.explain:
        from tripod.verify.run import manual

        emit_report(manual(call.explain))
        return 0
    if call.grow_only is not None:
        others = (call.path, call.select, call.no_ledger, call.pin, call.policy, call.key, call.old)
        if any(others):
            raise BadArgumentError(
                "--grow-only judges one file by git alone: give no PATH and no other option"
            )
        return _grow_only(call)
    return _judge_subject(call)


def _proves(manual: str) -> str:
    """What a check proves, in a sentence: the first of its manual."""
    return " ".join(manual.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def _judge_subject(call: Call) -> int:
    from tripod.verify.export.proof import is_proof

    if call.pin is None and (call.update_pin or call.new_only):
        raise BadArgumentError("--update-pin and --new-only go with --pin FILE")
    if call.update_pin and call.select:
        raise BadArgumentError(
            "--update-pin remembers what was judged whole: give no --select with it"
        )
    asked = AnchorOptions(call.pin, call.update_pin, call.new_only, call.policy, not call.no_git)
    keys = log_keys(call.key)
    wanted = _Wanted(subject(call.path), call.select, call.no_ledger, call.nearby, keys)
    if is_proof(wanted.subject):
        return _proof(call, wanted, asked)
    return _judge(call, wanted, asked)


class _Wanted(NamedTuple):
    """What is to be judged, and how."""

    subject: str
    selected: tuple[str, ...]
    no_ledger: bool
    nearby: int
    keys: Sequence[Any]


def _proof(call: Call, wanted: _Wanted, asked: AnchorOptions) -> int:
    """Judge a proof file; give the exit code."""
    from tripod.trust.proof import seal_from
    from tripod.verify.export.proof import judge_proof

    if asked.pin is not None or asked.policies:
        raise BadArgumentError(
            f"{wanted.subject} is a proof: hold it against keys (--key) and a seal (--old)"
        )
    old = seal_from(call.old)[1] if call.old else None
    report = judge_proof(wanted.subject, tuple(wanted.keys), old)
    _say(call, report)
    return report.exit_code


def _judge(call: Call, wanted: _Wanted, asked: AnchorOptions) -> int:
    """Judge a team, say the report, and keep the pin; give the exit code.

    Where others work in the team meanwhile, what was read is not of one moment: then what is found
    is judged anew, a few times.
    """
    from tripod.verify.evidence import LOOKS

    left = LOOKS
    judged = None
    while judged is None:
        left -= 1
        judged = _judge_once(call, wanted, asked, last=not left)
    report, code, said = judged
    _say(call, report)
    if said and not call.quiet:
        remark(said)
    return code


def _judge_once(
    call: Call, wanted: _Wanted, asked: AnchorOptions, *, last: bool
) -> tuple[Report, int, str] | None:
    """The report, the exit code, what to say of the pin; None: to be judged again."""
    from tripod.verify.evidence import changed_meanwhile
    from tripod.verify.run import open_evidence, run

    with (
        call.progress(),
        open_evidence(
            wanted.subject,
            no_ledger=wanted.no_ledger,
            nearby=wanted.nearby,
            keys=tuple(wanted.keys),
            asked=asked,
        ) as evidence,
    ):
        report = run(evidence, select=wanted.selected or None)
        code, said = report.exit_code, ""
        if code and not last and changed_meanwhile(evidence):
            return None
        if asked.first and asked.pin is not None:
            code, said = _keep_pin(evidence, asked.pin, code)
    return report, code, said


def _keep_pin(evidence: OpenEvidence, path: str, code: int) -> tuple[int, str]:
    """Let the pin go forward where all is clean; give the exit code, and what to say of it."""
    from tripod.trust.proof import write_pin
    from tripod.verify.anchors.comparison import is_own_head, next_pin

    data = None if code else next_pin(evidence)
    if data is None:
        return code, f"the pin {path} was left as it is"
    try:
        moved = write_pin(path, data, lambda seal: is_own_head(evidence, seal))
    except (RefusedError, OutsideError) as error:
        return 1, str(error)
    return code, f"the pin {path} remembers {_size(data)} entries" if moved else ""


def _size(pin: bytes) -> str:
    """The second line of a seal or a head."""
    return pin.decode().split("\n")[1]


def _grow_only(call: Call) -> int:
    from tripod.verify.anchors.git_growth import judge_growth

    with call.progress():
        report = judge_growth(call.grow_only)
    _say(call, report)
    return report.exit_code


def _say(call: Call, report: Report) -> None:
    """Print a report in the form that was asked for."""
    if call.quiet:
        return
    from tripod.verify.reporters import REPORTERS

    text, json = REPORTERS
    if call.json:
        emit_report(json.render(report))
        return
    colour = sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    emit_report((text.render if call.verbose else text.brief)(report, color=colour))


# The table -------------------------------------------------------------------------------------

_VERIFY = """\
verify [PATH]
    Without PATH it is the team that TRIPOD_LEDGER names; else the nearest one above. A clone
    that has no database is judged by its record, .nbs/record.

    Exit codes: 0 all required checks clean, 1 findings, 2 usage, 3 could not judge.

    --no-ledger        No ledger is expected: judge the files alone.
    --select CHECK...  Only this check.
    --nearby LINES     How far an approximate chat ref may be off. [default: 50]
    --key VKEY...      A log's public key: the seal of an export or proof must be signed by it.
    --old FILE         The older seal, for a proof of growth.
    --grow-only FILE   Judge one file by git alone: each committed version begins with the one
        before.
    --pin FILE         Hold the ledger against the head in FILE.
    --update-pin       If all is clean, let the pin remember the ledger as it is.
    --new-only         Look only at what is behind the pin, and say what that omits.
    --policy FILE...   A policy from elsewhere (.tlog or .yaml) in place of the team's own.
    --no-git           Leave the history of the git repository alone.
    --explain CHECK    Print the manual section of a check.
    --list             Print all checks, and in a line what each proves.
    -v, --verbose      Print all checks, and how far the ledger is vouched for from outside.
    -q, --quiet        Print nothing: the exit code alone says it.
    without: --team
    --json             The whole report as one JSON object.
"""
COMMANDS = {"verify": verb_of(_VERIFY, _verify)}
