"""What an assessment must have, ours and others; and what is made of a review that failed."""

from hashlib import sha256
from pathlib import Path

import drafts
import pytest
from recorded_review import answer, asked_for, review
from specimens import copy, forge, read
from team_files import Decision, Said, judge, outcome, write_chat, write_event, write_log

from tripod.chat import writer as chat_send
from tripod.recovery import redaction
from tripod.team.team import Team
from tripod.verify.check import Outcome
from tripod.verify.evidence import collect
from tripod.verify.run import run


@pytest.fixture
def root(sound: str, tmp_path: Path) -> str:
    return copy(sound, str(tmp_path))


def complete(root: str) -> Outcome:
    with collect(root) as evidence:
        return outcome(run(evidence, select=["assessment-complete"]), "assessment-complete")


def messages(root: str) -> list[str]:
    return [finding.message for finding in complete(root).findings]


def test_without_an_assessment_there_is_nothing_to_judge(root: str) -> None:
    assert complete(root).verdict == "not applicable"


def test_one_that_holds_against_the_template_is_clean(root: str) -> None:
    review(root)
    told = complete(root)
    assert told.verdict == "clean"
    assert told.coverage == {"assessments": 1, "of ours": 1, "failed": 0}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "It is slow, and nobody knows why.",
            "",
            "Six-Month Regret Scenario: nothing stands there",
        ),
        ("### Missing Validation\n\n", "", "its sections (###) are not"),
        ("overall: medium\n", "Who knows.\n", "Confidence: it does not begin with high"),
        ("One reads while", "D-4711 reads while", "it cites D-4711: no decision of the log"),
        ("(3 decisions)", "(4 decisions)", "it says to have reviewed D-"),
    ],
)
def test_one_of_ours_that_does_not_hold_is_named(
    root: str, old: str, new: str, message: str
) -> None:
    with Team(root) as team:
        text = answer(asked_for(team))
    assert old in text
    review(root, text=text.replace(old, new))
    found = messages(root)
    assert found[0].startswith(message)


def altered(root: str, kind: str, **fields: object) -> None:
    rows = read(f"{root}/ledger.db")
    seq = max(n for n, row in enumerate(rows) if row.head["kind"] == kind)
    rows[seq] = rows[seq].saying(**fields)
    forge(root, rows)


def test_one_about_other_decisions_than_the_event_asked_for(root: str) -> None:
    asked = review(root)
    text = answer(asked).replace(asked.ids[-1], asked.ids[1]).replace("(3 dec", "(2 dec")
    digest = sha256(text.encode()).hexdigest()
    altered(root, "pythia.assessed", last=asked.ids[1], content={"text": text}, sha256=digest)
    first, second, third = asked.ids
    range_, shown = messages(root)
    assert range_ == (
        f"it reviewed {first} through {second}, and was asked for {first} through {third}"
    )
    assert shown.startswith("the chat shows another assessment")


def test_one_about_decisions_that_nobody_took(root: str) -> None:
    asked = review(root)
    altered(root, "pythia.assessed", first="D-1")
    assert f"it reviewed D-1 through {asked.ids[-1]}: no such decisions are in the log" in messages(
        root
    )


def test_what_was_erased_is_not_judged(root: str) -> None:
    review(root)
    with Team(root) as team:
        seqs = [
            entry.seq
            for entry in team.store.read()
            if entry.kind == "chat.sent" and entry.actor == "pythia"
        ]
        redaction.redact(team, redaction.RedactionRequest(tuple(seqs), None, "private", "alex"))
    assert complete(root).verdict == "clean"


def failed(root: str) -> None:
    with Team(root) as team, team.act() as act:
        asked = asked_for(team)
        act.append([drafts.pythia_failed(asked.event, ["f" * 32], ["it is empty"])])


def test_a_review_that_failed_is_a_finding_until_it_is_answered(root: str) -> None:
    failed(root)
    (finding,) = complete(root).findings
    assert finding.message == "no run of Pythia gave an assessment: it is empty"
    assert finding.severity == "failure"
    review(root)
    told = complete(root)
    assert (told.verdict, told.coverage["failed"]) == ("clean", 1)


def test_one_from_outside_is_judged_by_its_parts(root: str) -> None:
    text = (
        "PYTHIA CHECKPOINT — Assessment #3\n\n**Hidden assumption:** D-1 is cheap.\n"
        "**Second-order risk:** None.\n**Confidence:** who knows\n---\n"
    )
    with Team(root) as team:
        chat_send.send(team, "live", "pythia", text)
    assert messages(root) == [
        "the assessment has no text on missing-validation, six-month-regret",
        "the assessment does not say whether its confidence is high, medium or low",
        "it cites D-1, which is no decision of the log",
    ]


def test_without_a_ledger_it_is_judged_by_the_files(tmp_path: Path) -> None:
    write_log(tmp_path, [Decision(1, "live.chat:~L7")])
    write_event(tmp_path, 5, "pythia-checkpoint", "")
    write_chat(tmp_path, "live", [Said(9, "pythia", "PYTHIA CHECKPOINT — Assessment #1\n")])
    told = outcome(judge(tmp_path), "assessment-complete")
    assert [finding.message[:30] for finding in told.findings] == ["the assessment has no text on "]
