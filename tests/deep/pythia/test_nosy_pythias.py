"""Pythias that look for the chat: refused in a namespace, caught where there is none."""

import asyncio
import shlex
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
from reviewed import folder_alone
from story import folder

from tripod.agents.folder import IsolatedProgram
from tripod.demo import demo as review
from tripod.demo import reviewer as nosy
from tripod.demo.demo import SAID, DemoReview, ask, begin_demo_review, data_file, order_of
from tripod.errors import RefusedError
from tripod.ledger.ids import now_us
from tripod.pythia import review as pythia_run
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

REVIEWER = data_file("pythia.py")
RUN = IsolatedProgram


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A team whose review is due, and the name of its checkpoint event."""
    project = tmp_path_factory.mktemp("council") / "council"
    return project, begin_demo_review(str(project))


@pytest.fixture
def due(made: tuple[Path, str], tmp_path: Path) -> tuple[str, str]:
    """A copy of that team, and the event."""
    project, event = made
    copy = shutil.copytree(project, tmp_path / "council", copy_function=shutil.copy2)
    return str(copy), event


def nosy_one(due: tuple[str, str], way: str, *, folder: bool) -> DemoReview:
    project, event = due
    command = [sys.executable, nosy.__file__, way, f"{project}/.nbs/chat", REVIEWER]
    return ask(project, event, partial(order_of, command=command, folder=folder))


@pytest.mark.parametrize("way", nosy.WAYS)
def test_in_a_namespace_there_is_nothing_to_read(due: tuple[str, str], way: str) -> None:
    told = nosy_one(due, way, folder=False)
    if told.outcome.coverage["in a namespace"]:
        assert told.refused
        assert (told.outcome.verdict, told.exit_code) == ("clean", 0)
        assert f"{way}: 0 messages found" in told.stderr
    else:  # no bubblewrap here: then nothing refuses her, and she is caught
        assert told.caught


@pytest.mark.parametrize("way", nosy.WAYS)
def test_in_a_folder_she_is_caught_by_what_she_repeats(due: tuple[str, str], way: str) -> None:
    told = nosy_one(due, way, folder=True)
    assert f"{way}: {len(SAID)} messages found" in told.stderr
    assert told.caught
    (found,) = told.outcome.findings
    assert "its output repeats 12 words in a row of chat live, message 1" in found.message
    assert found.evidence == ("after trust me on this one nobody has ever lost a write",)


@pytest.mark.parametrize("alone", [False, True])
def test_a_quoted_line_in_her_prompt_is_caught(due: tuple[str, str], alone: bool) -> None:
    project, event = due
    order = partial(order_of, command=[sys.executable, REVIEWER], folder=alone)
    told = ask(project, event, order, f"\nBear in mind: {SAID[2][1]}\n")
    assert told.caught
    (found,) = told.outcome.findings
    assert "its prompt holds 12 words in a row of chat live, message 2" in found.message


def test_a_chat_file_as_argument_is_refused(due: tuple[str, str]) -> None:
    project, _ = due
    program = RUN(command=[sys.executable, REVIEWER, f"{project}/.nbs/chat/live.chat"])
    with (
        Team(f"{project}/.nbs") as team,
        pytest.raises(RefusedError, match="lies in what the program may not see"),
    ):
        pythia_run.order_reviewer(team, program, "alex")


@pytest.mark.parametrize("way", nosy.WAYS)
def test_who_keeps_what_she_read_to_herself_is_not_called_clean(
    due: tuple[str, str], way: str
) -> None:
    """She looks, and repeats nothing: without a namespace nobody can tell."""
    project, event = due
    look = shlex.join([sys.executable, nosy.__file__, way, f"{project}/.nbs/chat", REVIEWER])
    shell = f"cat > asked; {look} < asked > /dev/null; {sys.executable} {REVIEWER} < asked"
    told = ask(project, event, partial(order_of, command=["sh", "-c", shell], folder=True))
    assert f"{way}: {len(SAID)} messages found" in told.stderr
    assert told.outcome.verdict == "cannot tell"
    assert "nothing kept it from reading the files by their path" in told.outcome.reason


def test_where_no_namespace_is_to_be_had_the_demo_says_so_and_goes_well() -> None:
    said: list[tuple[str, str]] = []
    with folder() as top, folder_alone():
        wrong = review.play_review(str(top), lambda style, text: said.append((style, text)))
    texts = [text for _, text in said]
    assert wrong == 0, texts
    assert any(text.startswith("  pythia-isolation: cannot tell: run ") for text in texts)
    assert "  verify: exit 3" in texts
    assert sum("no namespace is available here" in text for text in texts) == len(nosy.WAYS)
    assert sum("caught; pythia-isolation" in text for text in texts) == 2 * len(nosy.WAYS) + 1


def test_a_pythia_that_nobody_catches_fails_the_demo() -> None:
    said: list[tuple[str, str]] = []
    harmless = [("alex", "Short."), ("bench", "Shorter."), ("claude", "Yes."), ("alex", "So.")]
    with folder() as top, pytest.MonkeyPatch.context() as patch:
        patch.setattr(review, "SAID", harmless)
        wrong = review.play_review(str(top), lambda style, text: said.append((style, text)))
    assert wrong == len(nosy.WAYS) + 1
    assert any("NEITHER refused nor caught" in text for _, text in said)


def test_the_outcome_of_a_review_leaves_all_clean(due: tuple[str, str]) -> None:
    project, _ = due
    with Team(f"{project}/.nbs") as team:
        team.refresh()
        program = RUN(command=[sys.executable, REVIEWER])
        found = asyncio.run(pythia_run.run(team, program, now_us()))
    assert found is not None
    assert found.answer is not None
    with collect(project) as evidence:
        report = run(evidence)
    assert [f.message for outcome in report.outcomes for f in outcome.findings] == []
