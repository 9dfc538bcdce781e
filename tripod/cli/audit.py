"""``tripod audit``: the day after an incident."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tripod.cli.commands import CommandCall, command_verb, log_keys_param
from tripod.errors import BadArgumentError, LedgerDamagedError
from tripod.ledger.locator import team_to_judge
from tripod.output import emit_report, one_line

if TYPE_CHECKING:
    from tripod.recovery.bundle import Audited, BundleFolder
    from tripod.verify.check import Report
    from tripod.verify.damage import Damage
    from tripod.verify.evidence import OpenEvidence

_LISTED = 10  # entries that only one of two copies has


def _audit(call: CommandCall) -> int:
    from tripod.verify.evidence import judge_until_still
    from tripod.verify.reporters.damage import damage_text, damage_value

    if call.copy is not None:
        return _audit_two(call)
    path = team_to_judge(call.path)
    with ExitStack() as opened:
        folder = None
        if call.bundle is not None:
            from tripod.recovery.bundle import bundle_folder

            folder = opened.enter_context(bundle_folder(call.bundle))
        code, found = judge_until_still(path, lambda left: _audit_once(call, path, folder, left))
        written = None if folder is None else folder.finish()
    value: dict[str, Any] = damage_value(found[0])
    if len(found) > 1:
        parts = [damage_value(one) for one in found]
        value = {"what": path, "exit_code": code, "parts": parts}
    if written is not None:
        value["bundle"] = {"path": written.path, "manifest": written.sha256, "files": written.files}
    if call.json:
        call.answer(value, ())
        return code
    worst_first = sorted(found, key=lambda each: each.exit_code == 0)
    emit_report("\n".join(map(damage_text, worst_first)))
    if written is not None:
        emit_report(
            f"\nBundle: {one_line(written.path)}, {written.files} files\n"
            f"  sha256 of its manifest: {written.sha256}\n"
            f"  keep that sum elsewhere. Judge the bundle: python3 -I -S "
            f"{one_line(written.path)}/verify.py\n"
        )
    return code


def _audit_once(
    call: CommandCall, path: str, folder: BundleFolder | None, left: int
) -> tuple[int, list[Damage]] | None:
    """The exit code, and what is damaged in each ledger; None: to be judged again."""
    from tripod.verify import run as judging
    from tripod.verify.anchors.anchors import AnchorOptions
    from tripod.verify.damage import damage_of
    from tripod.verify.evidence import OpenEvidence, evidence_changed

    if call.pin is not None and not os.path.exists(call.pin):
        raise BadArgumentError(f"no pin at {call.pin}: an audit compares with one, and makes none")
    found: list[Damage] = []

    def add(evidence: OpenEvidence, report: Report, _: str = "") -> None:
        found.append(damage_of(evidence, report))
        if folder is not None:
            folder.add(evidence, _audited(call, report, found[-1]))

    asked = AnchorOptions(call.pin, policies=call.policy, git=not call.no_git)
    how: judging.HowToOpen = {"keys": tuple(log_keys_param(call.key)), "asked": asked}
    with call.progress():
        by_refs = judging.judge_refs(path, **how, each=add)
        if by_refs is not None:
            if not by_refs.parts:  # none of the records was judged to its end: that is to be said
                with OpenEvidence(path, problem=by_refs.problem) as evidence:
                    add(evidence, by_refs)
            return by_refs.exit_code, found
        with judging.open_run(path, **how) as evidence:
            is_there = evidence.root is not None or os.path.isfile(path) or evidence.loaded
            if evidence.problem and not is_there:  # nothing that could be kept or judged again
                raise LedgerDamagedError(
                    f"nothing was audited: {_advice(path) or evidence.problem}"
                )
            report = judging.run(evidence)
            if report.exit_code and left and evidence_changed(evidence):
                return None
            add(evidence, report)
    return report.exit_code, found


def _advice(path: str) -> str:
    """What to do with a path that is no ledger, where it is something else of ours."""
    if path.startswith("refs/"):
        return f"{path} is a ref: give the folder of its repository, or the ref beside another copy"
    if not all(os.path.isfile(f"{path}/{name}") for name in ("MANIFEST.sha256", "verify.py")):
        return ""
    at = shlex.quote(path)
    return f"{path} is the bundle of an audit: `python3 -I -S {at}/verify.py` judges it"


def _audited(call: CommandCall, report: Report, damage: Damage) -> Audited:
    """What was found, as a bundle gets it; no time of judging is in it."""
    from importlib.metadata import version

    from tripod.recovery.bundle import Audited
    from tripod.verify.reporters import json as reporter
    from tripod.verify.reporters import sarif
    from tripod.verify.reporters.damage import damage_text, damage_value
    from tripod.verify.run import check_manual

    value = json.loads(reporter.render(report))
    if value["anchored"]:  # it grows while nothing happens
        value["anchored"]["tail"].pop("seconds")
    said, places = sarif.render(
        report, version=version("tripod-ledger"), manual=check_manual, beside="report.places.txt"
    )
    reports = {"report.json": json.dumps(value, indent=2), "report.sarif": said}
    if places:
        reports["report.places.txt"] = places
    return Audited(
        report,
        damage,
        damage_value(damage),
        damage_text(damage),
        {name: text.encode("utf-8", "backslashreplace") for name, text in reports.items()},
        tuple(filter(None, (call.pin, *call.policy))),
    )


def _audit_two(call: CommandCall) -> int:
    """Two copies: where they part, as each has it, and what is damaged in each by itself."""
    from tripod.cli.look import difference_told

    if call.bundle is not None:
        raise BadArgumentError("--bundle keeps one ledger: give it with each copy by itself")
    given = str(call.path), str(call.copy)
    value: dict[str, Any]
    try:
        value, lines = difference_told(call, *given, _LISTED)
        codes = [0 if value["same"] else 1]
    except LedgerDamagedError as error:  # each by itself may still tell something
        value = {"problem": str(error), "a": {"path": given[0]}, "b": {"path": given[1]}}
        lines, codes = [f"where they part cannot be told: {one_line(str(error))}"], [3]
    for name, path in zip("ab", given, strict=True):
        if path.startswith("refs/") and not os.path.lexists(path):
            continue  # one part of what the repository holds, which is audited as a whole
        try:
            done = _audit_once(call, path, None, 0)
        except LedgerDamagedError as error:
            value[name]["verdict"], value[name]["exit_code"] = str(error), 3
            lines.append(f"{name.upper()} by itself: {one_line(str(error))}")
            codes.append(3)
            continue
        assert done is not None, "the last look judges"
        one, found = done
        codes.append(one)
        worst = max(found, key=lambda each: (each.exit_code == 1, each.exit_code))
        value[name]["verdict"], value[name]["exit_code"] = worst.verdict, one
        for damage in found:
            which = f", {one_line(damage.what)}" if len(found) > 1 else ""
            lines.append(f"{name.upper()} by itself{which}: {one_line(damage.verdict)}")
    call.answer(value, lines)
    return 1 if 1 in codes else max(codes)


_AUDIT = """\
audit [PATH] [COPY]
    For the day after an incident. It says the first bad entry, the last good seal, which entries
    each seal, pin, commit, receipt and peer covers and whether it still fits, what is provable on
    each side of the bad place, what was found about reviews, and which command goes on from there.
    It changes nothing and repairs nothing.

    With COPY, a second copy of the ledger, it prints the entry at which the two part, as each has
    it, what the seals prove of each, and the verdict on each by itself. PATH and COPY are as with
    `tripod diff`; PATH alone is as with `tripod verify`.

    Exit codes, those of `tripod verify`: 0 nothing bad, 1 findings, or two copies that differ,
    2 usage, 3 could not judge.

    --bundle DIR      Write all that this says, and what shows it, into the new folder DIR: the
        ledger, seals, receipts, policies, findings, the files that findings name, and a program
        that judges the folder with Python alone. It holds chat texts: only its owner can read it.
    --key VKEY...     A log's public key: the seal of an export must be signed by it.
    --pin FILE        Hold the ledger against the head in FILE.
    --policy FILE...  A policy from elsewhere in place of the team's own.
    --no-git          Do not read the history of the git repository.
    looks: always
    without: --team
"""
COMMANDS = {"audit": command_verb(_AUDIT, _audit)}
