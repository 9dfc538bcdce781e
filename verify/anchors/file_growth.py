"""Judges files that must only grow, by git alone: without a ledger and without a team directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from tripod.verify.anchors.git_growth import last_line, read_growth
from tripod.verify.check import Report, Subject, outcome
from tripod.verify.checks import append_only
from tripod.verify.finding import FindingNames, naming_findings
from tripod.verify.finding_place import finding_line


def judge_growth(path: str, *, staged: bool = False) -> Report:
    """Whether every committed version of the file at ``path`` is the beginning of the next.

    What stands in the work tree is the last of them. ``staged``: only whether that which is staged
    keeps what is committed, as it is asked before a commit.
    """
    history = read_growth(path, staged=staged)
    subject = Subject("", "", history.top or None, history.problem or history.seen)
    if history.problem:
        return Report(path, (), problem=history.problem, subject=subject)
    found, seen = append_only.findings(history), append_only.append_only_coverage(history)
    last = last_line(path)
    placed = (
        replace(one, file=history.path, line=line and min(line, last))
        for one, line in ((one, finding_line(one)) for one in found)
    )
    with naming_findings(FindingNames(lambda _seq: None, {}, is_acceptable=False)):
        told = outcome(append_only.NAME, placed, seen, required=True)
    if history.shallow and not told.failures and not staged:
        told = told.cannot_tell(append_only.append_only_shallow(history.path))
    note = f"nothing that is staged changes {history.path}: what is committed was not judged"
    return Report(path, (told,), subject=subject, notes=(note,) if history.unstaged else ())


def judge_growth_of(
    paths: Sequence[str], beside: Report | None = None, *, staged: bool = False
) -> Report:
    """One report on several files, and on what was judged ``beside`` them."""
    judged = [judge_growth(path, staged=staged) for path in dict.fromkeys(paths)]
    if beside is None and len(judged) == 1:
        return judged[0]
    others = () if beside is None else beside.parts or (beside,)
    what = os.curdir if beside is None else beside.what
    return Report(what, (), parts=(*others, *judged))
