"""A report as JSON, for programs. This page is its specification; ``version`` counts its changes.

One object::

    {"version": 1, "what": "...", "exit_code": 1, "problem": "",
     "judged": {"team": "/home/ann/shop/.nbs", "ledger": "/home/ann/shop/.nbs/ledger.db",
                "repository": "/home/ann/shop", "history": "refs/heads/main, commit 5a742098bf87",
                "settings": ["/home/ann/shop/tripod.toml"]},
     "head": {"size": 51, "root": "<64 hex>"},
     "anchored": {"level": "PINNED", "levels": {"PINNED": {"size": 40, "by": "..."}},
                  "tail": {"entries": 11, "seconds": 212}},
     "notes": ["..."], "failures": 1, "warnings": 0, "not_told": [],
     "checks": [
       {"check": "chain-links", "verdict": "findings", "required": true, "reason": "",
        "before_adoption": false, "coverage": {"entries": 51},
        "failures": 1, "warnings": 0, "advised": 0, "left_out": [],
        "findings": [
          {"fingerprint": "<64 hex>", "acceptable": false, "file": ".nbs/ledger.db", "line": null,
           "message": "...", "where": "entry 41", "seq": 41, "severity": "failure",
           "before_adoption": false, "evidence": ["..."], "help": "...",
           "manual": "tripod verify --explain chain-links"}]}]}

- ``sealed`` is there where the ledger holds a seal: ``{"size": 48, "at": "<time of its entry>"}``.
- ``judged``: the team directory, with every link followed; the database, or the folder of files,
  that its ledger was read from; the git repository whose history was asked; and what of that was
  looked at, or why nothing was. Each is null if it does not apply. ``settings`` is there where
  a policy or the project's files say something, and names the files, in words where a commit has
  them.
- ``head``, ``anchored`` and ``seq`` are null if unknown. ``severity`` is ``failure``,
  ``warning`` or ``advice``. Advice breaks no rule and changes no exit code; ``advised`` counts it,
  where there is some.
- ``verdict`` is one of ``clean``, ``clean, except``, ``findings``, ``cannot tell``,
  ``not applicable``. ``exceptions`` is there where a check left something out, and names each; a
  policy can make such a verdict ``cannot tell``.
- ``file`` is a path from the top of the git repository, or without one from the folder that holds
  the team directory or the export; a file elsewhere has its whole path. ``line`` counts from 1,
  null: unknown.
- ``fingerprint`` is the finding's id (``tripod.verify.finding``): the same in each run as long as
  the fault is the same. ``acceptable``: whether `tripod accept` takes it.
- ``accepted`` is there where findings were accepted: of the report their number, of a check
  ``{"count": 3, "findings": [...]}``, the first 1,000. Each has ``accepted`` itself: ``{"entry":
  52, "actor": "ann", "at": "<time of the entry>", "reason": "..."}``. They are counted nowhere
  else, and a check with no other findings is ``clean, except``.
- ``since`` is there where only what is new was to be reported: ``{"size": 40, "why": "...",
  "left_out": {"chat-refs-resolve": 2}}``.
- All numbers are exact. Of each check the first 1,000 findings of each sort (by ``severity`` and
  ``before_adoption``) stand in ``findings``, those that fail first; ``left_out`` counts the others:
  ``[{"severity": "warning", "before_adoption": true, "count": 89}]``.
- ``exit_code`` is 1 where a finding fails the run, else 3 where nothing or not enough could be
  judged (``problem``, ``not_told``), else 0.
- ``anchored``: how far heads that are remembered outside vouch for the ledger. ``level`` is one of
  ``SELF``, ``PINNED``, ``WITNESSED``, ``TIMESTAMPED``; ``levels`` says up to which size each is
  reached, and its witness; ``tail`` is what stands after the largest of these. ``notes`` say what
  was not looked at.
- ``parts`` is there where several records were judged, as in a clone without a ledger: a whole
  report for each, whose ``what`` is its ref. Then the numbers of the first level are their sums,
  ``exit_code`` is the worst of theirs, and ``checks`` is empty.
- Texts are as the evidence holds them, escaped as JSON is: ASCII alone, so that no byte of theirs
  reaches a terminal. A new field does not raise ``version``; another meaning does.
"""

from __future__ import annotations

import json

from tripod.verify.check import Finding, Outcome, Report
from tripod.verify.reporters.quotation import without_commands

VERSION = 1
MANUAL = "tripod verify --explain"


def render(report: Report) -> str:
    """The whole report, ending in a line break."""
    return without_commands(json.dumps(_report(report), indent=2), "\\u0023") + "\n"


def _report(report: Report) -> dict[str, object]:
    subject, anchored = report.subject, report.anchored
    judged = subject and {
        "team": subject.team or None,
        "ledger": subject.ledger or None,
        "repository": subject.repository,
        "history": subject.history or None,
        **({"settings": [*subject.settings]} if subject.settings else {}),
    }
    levels = anchored and {name: {"size": n, "by": by} for name, (n, by) in anchored.sizes.items()}
    value: dict[str, object] = {
        "version": VERSION,
        "what": report.what,
        "exit_code": report.exit_code,
        "problem": report.problem,
        "judged": judged,
        "head": report.head and {"size": report.head[0], "root": report.head[1]},
        "anchored": anchored
        and {
            "level": anchored.level,
            "levels": levels,
            "tail": {"entries": anchored.tail, "seconds": anchored.seconds},
        },
        "notes": list(report.notes),
        "failures": report.failures,
        "warnings": report.warnings,
        "not_told": list(report.untold),
        "checks": [_outcome(outcome) for outcome in report.outcomes],
    }
    if report.advised:
        value["advised"] = report.advised
    if report.sealed is not None:
        value["sealed"] = {"size": report.sealed[0], "at": report.sealed[1]}
    if report.accepted:
        value["accepted"] = report.accepted
    if report.since is not None:
        value["since"] = report.since._asdict()
    if report.parts:
        value["parts"] = [_report(part) for part in report.parts]
    return value


def _outcome(outcome: Outcome) -> dict[str, object]:
    value: dict[str, object] = {
        "check": outcome.check,
        "verdict": outcome.said,
        "required": outcome.required,
        "reason": outcome.reason,
        "before_adoption": outcome.past,
        "coverage": outcome.coverage,
        "failures": outcome.failures,
        "warnings": outcome.warnings,
        "advised": outcome.advised,
        "left_out": [
            {"severity": severity, "before_adoption": before, "count": count}
            for (severity, before), count in outcome.left_out.items()
        ],
        "findings": [_finding(finding) for finding in outcome.findings],
    }
    if outcome.exceptions:
        value["exceptions"] = list(outcome.exceptions)
    if outcome.accepted_count:
        value["accepted"] = {
            "count": outcome.accepted_count,
            "findings": [
                _finding(finding)
                | {
                    "accepted": {
                        "entry": by.seq, "actor": by.actor, "at": by.at, "reason": by.reason
                    }
                }
                for finding, by in outcome.accepted
            ],
        }  # fmt: skip
    return value


def _finding(finding: Finding) -> dict[str, object]:
    shown: dict[str, object] = {}
    if finding.fingerprint:
        shown |= {"fingerprint": finding.fingerprint, "acceptable": finding.is_acceptable}
    if finding.file:
        shown |= {"file": finding.file, "line": finding.line}
    return shown | {
        "message": finding.message,
        "where": finding.where,
        "seq": finding.seq,
        "severity": finding.severity,
        "before_adoption": finding.before_adoption,
        "evidence": list(finding.evidence),
        "help": finding.help,
        "manual": f"{MANUAL} {finding.check}",
    }
