"""The worked example of N12, its files byte for byte, with its panel in this process."""

import json
import random
from typing import Any

import pytest
from paneled import Driver, Reply, carry_on, check_run, paper
from worked import GOLDEN, HERE, NAME, QUESTION, panel_module, without_numbers

from tripod.errors import MalformedError
from tripod.projections.nova.answers import read_answer
from tripod.projections.nova.files import nova_status
from tripod.projections.nova.tables import NOVA

MODULE = panel_module()


def scripted(script: dict[str, Any]) -> tuple[Driver, list[int]]:
    """A driver that answers each prompt as the example's program would, and the turns it saw."""
    seen: list[int] = []

    def reply(role: str, persona: str, cycle: int, attempt: int) -> Reply:
        del attempt
        prompt = list(driver.prompts.values())
        asked = [MODULE.asked(one.decode()) for one in prompt]
        turn = next(t for c, r, p, t in asked if (c, r, p) == (str(cycle), role, persona))
        seen.append(turn)
        said = next(
            script[key] for key in (f"{cycle}-{role}-{persona}", persona, role) if key in script
        )
        return Reply(json.dumps({"persona": persona, "turn": turn, **said}) + "\n")

    driver = Driver(reply)
    return driver, seen


def test_the_worked_example_is_the_golden_one() -> None:
    driver, seen = scripted(MODULE.SCRIPT)
    with paper(driver) as team:
        assert team.open(QUESTION) == NAME
        carry_on(team, NAME)
        run = check_run(team, NAME, random.Random(1))  # noqa: S311 - where a fold is cut, no key
        status = nova_status(run)
        files = {name: NOVA.render(team.source, f"nova/{NAME}/{name}") for name in GOLDEN}
    assert seen == list(range(1, 9))
    roles = ["unpack", "expert", "expert", "expert", "synthesis", "critique", "revision", "final"]
    assert [turn.role for turn in run.turns] == roles
    assert (status["turns"], status["cycle"], status["outcome"]) == (8, 1, "decided")
    assert status["changes"] == {"know": "+0.50", "uncertainty": "-0.55"}
    assert (status["confidence"], status["stated_confidence"]) == ("0.9", "0.92")
    assert status["cycles"][0] == {
        "cycle": 1, "gate": "proceed", "converged": False, "critique": "minor",
        "know": "0.75", "uncertainty": "0.35",
    }  # fmt: skip
    for name, file in files.items():
        assert file is not None
        assert without_numbers(file.data.decode()) == GOLDEN[name]


def test_prompts_have_the_golden_words() -> None:
    """Later versions compute the prompts of recorded runs again: other words would blame these.

    A prompt that is worded otherwise needs a new version of ``nova.opened``; these words stay for
    the runs of this one (docs/decisions/0037).
    """
    driver, _ = scripted(MODULE.SCRIPT)
    with paper(driver) as team:
        team.open(QUESTION)
        carry_on(team, NAME)
    behind = (one.decode().partition("# The question")[2] for one in driver.prompts.values())
    prompts = "".join(f"=====\n# The question{text}" for text in behind)  # personas are files
    assert prompts == (HERE / "golden/nova/prompts.txt").read_text()


def test_refusals_have_the_golden_words() -> None:
    """They stand in the prompt of the next try, which is computed again as well."""
    golden = json.loads((HERE / "golden/nova/refusals.json").read_text())
    for role, answer, words in golden:
        try:
            said = read_answer(role, answer).problem
        except MalformedError as error:
            said = str(error)
        assert (answer, said) == (answer, words)


@pytest.mark.parametrize("uncertainty", [0.3501, 0.35000001])
def test_just_above_the_border_the_example_loops(uncertainty: float) -> None:
    epistemic = {"know": 0.75, "uncertainty": uncertainty}
    synthesis = MODULE.SCRIPT["synthesis"]
    script = MODULE.SCRIPT | {
        "synthesis": synthesis,
        "1-synthesis-dce": synthesis | {"epistemic": epistemic},
    }
    driver, _ = scripted(script)
    with paper(driver) as team:
        team.open(QUESTION)
        run = carry_on(team, NAME)
    assert run is not None
    assert [one.verdict for one in run.cycles] == ["investigate", "proceed"]
    assert len(run.turns) == 8 + 4
