"""Reports of all kinds, with the exit code of each; golden files show how reporters write them."""

from pathlib import Path

from tripod.verify.check import (
    CANNOT_TELL,
    CLEAN,
    FINDINGS,
    Anchored,
    Finding,
    Outcome,
    Report,
    Since,
    Subject,
    not_applicable,
)
from tripod.verify.finding import Acceptance
from tripod.verify.reporters import github, junit, sarif, summary, text
from tripod.verify.reporters import json as json_

__all__ = ["BESIDE", "EXITS", "GOLDEN", "HOSTILE", "REPORT", "REPORTS", "all_forms", "manual"]

BESIDE = "out.places.txt"

GOLDEN = Path(__file__).parent / "golden" / "reports"

HOSTILE = "D-17: \x1b[2Jtitle\n\u202egnp.exe\u200b"

REPORT = Report(
    "sample/.nbs",
    (
        Outcome("sequence", CLEAN, coverage={"entries": 51, "nodes": 0}, required=True),
        Outcome(
            "chain-links",
            FINDINGS,
            "",
            (
                Finding(
                    "chain-links",
                    "entry 41 is not the one that entry 42 was linked to",
                    "entry 41",
                    ("-old", "+new"),
                    "compare this entry with a backup",
                    seq=41,
                ),
                Finding("chain-links", HOSTILE, "entry 9", (), "", "warning", before_adoption=True),
            ),
            {"entries": 51},
            required=True,
        ),
        Outcome("pythia-isolation", CANNOT_TELL, "no transcript", required=True, past=True),
        Outcome("append-only", CANNOT_TELL, "no log", required=True),
        not_applicable("drift", "there is no ledger", required=False),
    ),
    (51, "91bc04d2" * 8),
)
REPORTS = {
    "findings": REPORT,
    "anchored": Report(
        "x",
        (Outcome("pins-extend", CLEAN, coverage={"heads": 2, "agree": 2}),),
        (51, "ab" * 32),
        anchored=Anchored(
            "WITNESSED", {"PINNED": (50, "the pin \x1b[2J"), "WITNESSED": (40, "w1")}, 1, 212
        ),
        notes=("only entries from 40 on were looked at",),
    ),
    "alone": Report("x", (Outcome("drift", CLEAN),), anchored=Anchored("SELF", {}, 3, 9)),
    "clean": Report("x", (Outcome("drift", CLEAN),), (1, "ab" * 32)),
    "advised": Report(
        "x",
        (
            Outcome("drift", CLEAN),
            Outcome(
                "decision-noise",
                FINDINGS,
                "",
                (
                    Finding(
                        "decision-noise",
                        'D-17 "Hello" reads like a greeting',
                        "entry 9",
                        (),
                        "leave it",
                        "advice",
                        seq=9,
                    ),
                ),
                {"decisions": 2},
                advice=True,
            ),
        ),
    ),
    "untold": Report("x", REPORT.outcomes[3:]),
    "nothing": Report("x", REPORT.outcomes[4:]),
    "except": Report(
        "x",
        (
            Outcome(
                "pythia-isolation", CLEAN, exceptions=tuple(f"lent /x\x07/{n}" for n in "abcde")
            ),
            Outcome("drift", CANNOT_TELL, "it is gone", exceptions=("one",)),
        ),
    ),
    "judged": Report(
        "x",
        (Outcome("drift", CLEAN),),
        subject=Subject(
            "/home/ann/\x1b[2J/.nbs",
            "/home/ann/\x1b[2J/.nbs/ledger.db",
            "/home/ann",
            "refs/heads/main, commit 5a742098bf87; 2 tips of refs and reflogs",
        ),
    ),
    "problem": Report("x\x07", (), problem="x\x07: there is no such file"),
    "accepted": Report(
        "x",
        (
            Outcome(
                "drift",
                CLEAN,
                coverage={"files": 3},
                accepted=(
                    (
                        Finding("drift", "is missing", "a\x1b.md", seq=4, fingerprint="3f" * 32),
                        Acceptance(52, "drift", "3f" * 32, "ann", "2026-11-21", "\x1b[2J why"),
                    ),
                ),
                accepted_count=2,
            ),
            Outcome(
                "supersession",
                FINDINGS,
                "",
                (
                    Finding("supersession", "D-1", "entry 1", seq=1, fingerprint="ab" * 32),
                    Finding("supersession", "D-2", "x", seq=1, fault=None, fingerprint="cd" * 32),
                ),
            ),
        ),
        since=Since(40, "the head in commit 5a742098bf87 (\x1bmain)", {"drift": 2}),
    ),
}
EXITS = {
    "findings": 1,
    "clean": 0,
    "judged": 0,
    "anchored": 0,
    "alone": 0,
    "advised": 0,
    "untold": 3,
    "nothing": 3,
    "except": 0,
    "problem": 3,
    "accepted": 1,
}


def manual(check: str) -> str:
    """The manual section of a check, as reporters are given it."""
    return f"{check} (required)\n\nWhat `{check}` proves.\n\nMore.\n"


def all_forms(report: Report) -> dict[str, str]:
    """A report in every form, by the ending of its golden file; with SARIF, the file beside."""
    written, places = sarif.render(report, version="1.2.3", manual=manual, beside=BESIDE)
    return {
        "txt": text.render(report),
        "brief.txt": text.brief_text(report),
        "json": json_.render(report),
        "sarif": f"{written}{places}",
        "junit.xml": junit.render(report),
        "github.txt": github.render(report),
        "summary.md": summary.render(report),
    }
