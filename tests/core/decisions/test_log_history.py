"""The decision log over git: breaks are named; what the ledger explains fails nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from git_repo import Git
from hypothesis import given
from hypothesis import strategies as st
from specimens import Row, database, forge, read
from story import BEGIN, Clock

from tripod.decisions import writer as decisions_log
from tripod.ledger.entry import format_canonical
from tripod.projections.decisions.format import DecisionText, format_decision, split_decision_log
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Outcome, Report
from tripod.verify.checks.append_only import append_only_explanation
from tripod.verify.evidence import collect
from tripod.verify.run import run

LOG = ".nbs/scribe/log.md"
HEADER = b"# Decision Log\n\nProject: x\nCreated: 2020-01-01T00:00:00Z\nScribe: scribe\n"


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock(BEGIN)
    with clock.running():
        yield clock


@pytest.fixture
def git(tmp_path: Path, clock: Clock) -> Git:
    """A team in a repository, with two decisions, each committed."""
    git = Git(tmp_path / "team")
    git.seconds = BEGIN + 100
    adoption.init(str(git.root), project="sample", origin="example.com/logs", key=False)
    for title in ("One", "Two"):
        decide(git, clock, title)
    return git


def decide(git: Git, clock: Clock, title: str) -> None:
    clock.move(5)
    with Team(str(git.root / ".nbs")) as team:
        decisions_log.log(
            team,
            decisions_log.DecisionRequest(title, ("ann",), "Because.", refs=[], status="decided"),
        )
    keep(git)


def keep(git: Git) -> str:
    git("add", "--force", "--all", "--", LOG)
    git("commit", "--quiet", "--allow-empty", "-m", "log")
    return git("rev-parse", "HEAD")


def judge(git: Git) -> Report:
    with collect(str(git.root)) as evidence:
        return run(evidence)


def told(report: Report) -> Outcome:
    return next(outcome for outcome in report.outcomes if outcome.check == "append-only")


def test_a_log_that_grew_in_git_is_clean(git: Git) -> None:
    outcome = told(judge(git))
    assert outcome.verdict == "clean"
    assert outcome.coverage["versions in git"] == 2


def test_a_ledger_and_log_made_anew_still_contradict_the_committed_one(git: Git) -> None:
    """Everything agrees with everything but the commit before."""
    rows = read(database(str(git.root / ".nbs")))
    seq = next(n for n, row in enumerate(rows) if row.head["kind"] == "decision.logged")
    rows[seq] = rows[seq].saying(rationale="Nobody asked.")
    forge(str(git.root / ".nbs"), rows)
    broke = keep(git)
    report = judge(git)
    assert report.exit_code == 1
    (finding,) = told(report).findings
    assert finding.message.startswith(f"commit {broke[:12]} by Ann <ann@example.com>, ")
    assert any("Nobody asked." in line for line in finding.evidence)


def test_what_an_entry_says_was_redacted_is_said_and_fails_nothing(git: Git) -> None:
    root = str(git.root / ".nbs")
    rows = read(database(root))
    seq = next(n for n, row in enumerate(rows) if row.head["kind"] == "decision.logged")
    hidden = rows[seq].saying(rationale="[redacted]", title="[redacted]")
    said = {"seq": seq, "kind": "decision.logged", "reason": "r", "by": "ann", "v": 1,
            "keep": hidden.data}  # fmt: skip
    header = {**rows[-1].head, "kind": "redacted", "id": "redacted-1", "stream": "ledger"}
    header.pop("cause", None)
    rows[seq] = hidden
    forge(root, rows)
    keep(git)
    assert told(judge(git)).failures == 1
    forge(root, [*rows, Row(header, b"s" * 32, format_canonical(said))])
    outcome = told(judge(git))
    assert (outcome.failures, len(outcome.findings)) == (0, 1)
    assert "redacted: D-" in outcome.findings[0].message


def test_history_before_adoption_is_told_and_fails_nothing(tmp_path: Path) -> None:
    git = Git(tmp_path / "old")
    pieces = [piece(n, "Because.") for n in range(3)]
    git.commit(LOG, HEADER + b"".join(pieces))
    git.commit(LOG, HEADER + b"".join(pieces[1:]))
    adoption.init(str(git.root), project="sample", origin="example.com/adopted", key=False)
    outcome = told(judge(git))
    assert (outcome.failures, len(outcome.findings)) == (0, 1)
    assert "before adoption" in outcome.findings[0].message


def test_a_shallow_clone_is_said(git: Git, tmp_path: Path) -> None:
    clone = Git(tmp_path / "clone", made=False)
    git("clone", "--quiet", "--depth=1", f"file://{git.root}", str(clone.root))
    with collect(str(clone.root), no_ledger=True) as evidence:
        outcome = told(run(evidence))
    assert "shallow" in outcome.findings[0].message
    assert outcome.failures == 0


# What explains a break ---------------------------------------------------------------------------


def piece(number: int, why: str) -> bytes:
    text = DecisionText(
        f"D-{1_600_000_000 + number}", f"Title {number}", None, "—", "ann", "—", "none",
        "decided", why,
    )  # fmt: skip
    return format_decision(text).encode()


PIECES = [piece(n, "Because.") for n in range(6)]
HIDDEN = [piece(n, "[redacted]") for n in range(6)]
IDS = [f"D-{1_600_000_000 + n}" for n in range(6)]


def log(*pieces: bytes) -> bytes:
    return HEADER + b"".join(pieces)


def test_pieces_are_taken_apart_as_they_were_put_together() -> None:
    assert split_decision_log(log(*PIECES)) == (HEADER, tuple(PIECES))


def test_a_rotation_is_explained_by_the_archive_alone() -> None:
    old, new = log(*PIECES[:4]), log(*PIECES[2:5])
    assert append_only_explanation(old, new, set(PIECES[:2]), ()) == "2 pieces went into an archive"
    assert append_only_explanation(old, new, {PIECES[0]}, ()) is None
    assert append_only_explanation(old, log(), set(PIECES), ()) == "4 pieces went into an archive"
    assert (
        append_only_explanation(old, log(PIECES[2]), set(PIECES[:2]), ()) is None
    )  # the last one is gone


@pytest.mark.parametrize(
    ("new", "redacted"),
    [
        (log(PIECES[0], HIDDEN[1], PIECES[2]), ()),
        (log(PIECES[0], HIDDEN[1], PIECES[2]), (IDS[0],)),
        (log(PIECES[0], HIDDEN[1]), (IDS[1],)),
        (log(PIECES[0], PIECES[3], PIECES[2]), (IDS[1], IDS[3])),
        (log(HIDDEN[1], PIECES[0], PIECES[2]), (IDS[1],)),
        (HEADER.replace(b"x", b"y") + b"".join(PIECES[:3]), ()),
    ],
)
def test_what_nothing_explains_is_a_break(new: bytes, redacted: tuple[str, ...]) -> None:
    assert append_only_explanation(log(*PIECES[:3]), new, (), redacted) is None


@given(
    st.integers(0, 4),
    st.sets(st.integers(0, 5)),
    st.integers(0, 6),
)
def test_any_rotation_with_any_redactions_is_explained(
    moved: int, hidden: set[int], more: int
) -> None:
    whole = [HIDDEN[n] if n in hidden else PIECES[n] for n in range(6)]
    after = log(*whole[moved : max(more, 5)])
    archive = set(whole[:moved])
    ids = [IDS[n] for n in hidden]
    told = append_only_explanation(log(*PIECES[:5]), after, archive, ids)
    changed = moved or any(n < 5 for n in hidden)
    assert (told is not None) == bool(changed)
