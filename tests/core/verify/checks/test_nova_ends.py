"""How agents of Nova are said to have ended: what contradicts itself is named."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from recorded_panel import ANALYSES, Agent, panel, said

from tripod.projections.nova.run import DueTurn
from tripod.team import adoption
from tripod.verify.check import CANNOT_TELL
from tripod.verify.checks import nova_order
from tripod.verify.evidence import collect
from tripod.verify.run import run


@pytest.fixture
def root(tmp_path: Path) -> str:
    adoption.init(str(tmp_path))
    return str(tmp_path / ".nbs")


def blamed(root: str) -> list[str]:
    """What nova-order names, or why it cannot tell."""
    with collect(root) as evidence:
        (told,) = run(evidence, checks=(nova_order,)).outcomes
    reason = [told.reason] if told.verdict == CANNOT_TELL else []
    return [one.message for one in told.findings] + reason


def first_final(agent: Agent) -> Any:
    """A script whose first try at the final turn is this one."""

    def script(turn: DueTurn, attempt: int) -> Agent:
        is_first = turn.role == "final" and attempt == 1
        return agent if is_first else Agent(said(turn.role, turn.persona))

    return script


UNWANTED = said("final", decision="No: one file")
"""An answer that a forger would throw away: the next one pleases."""

TIMED: dict[str, Any] = {"timeout_s": 60.0}
SLOW: dict[str, Any] = {"status": "timeout", "signal": 15, "exit_code": None}
SLOW["problem"] = "it was ended: its time was over after 60.0 s"
KILLED: dict[str, Any] = {"status": "killed", "exit_code": None}
KILLED["problem"] = "it was killed by signal 9"
FAILED: dict[str, Any] = {"status": "nonzero", "problem": "it ended with exit code 1"}
NOTHING: dict[str, Any] = {"status": "not_started", "exit_code": None, "stdout": b""}
NOTHING["problem"] = "it could not be started: /usr/bin/bwrap: No such file or directory"

FORGED: dict[str, Agent] = {
    "said to have ended as bad_output, and by its output that is ok": Agent(
        UNWANTED,
        end={"status": "bad_output", "problem": "its stream has no result: it was cut off"},
    ),
    "said to have ended as empty_output, and by its output that is ok": Agent(
        UNWANTED, end={"status": "empty_output", "problem": "it printed nothing"}
    ),
    "said to have failed, and has no exit code but 0": Agent(UNWANTED, end=FAILED),
    "has no exit code and no signal": Agent(UNWANTED, end=FAILED | {"exit_code": None}),
    "said to have been killed, and by no signal": Agent(UNWANTED, end=KILLED | {"exit_code": 1}),
    "has an exit code and a signal": Agent(UNWANTED, end={"signal": 9}),
    "said to have ended by itself (ok), and by exit code 9": Agent(UNWANTED, end={"exit_code": 9}),
    "said to have ended by itself (ok), and by signal 9": Agent(
        UNWANTED, end={"exit_code": None, "signal": 9}
    ),
    "said to have been too slow after 59998 of 60000 ms": Agent(
        UNWANTED, order=TIMED, end=SLOW | {"wall_ms": 59998}
    ),
    "said to have been too slow, and its order sets no time": Agent(
        UNWANTED, order={"timeout_s": None}, end=SLOW | {"wall_ms": 60000}
    ),
    "no entry says that it began": Agent(UNWANTED, begins=False),
    "never began, and has an exit code, a signal or an output": Agent(
        UNWANTED, end=NOTHING | {"stdout": b"{}"}
    ),
    "lacks its stdout of 120 bytes, and so much is kept": Agent(
        UNWANTED, status="cancelled", end={"stdout": ("ab" * 32, 120)}
    ),
    "lacks its stdout of 16777216 bytes": Agent(UNWANTED, end={"stdout": ("ab" * 32, 2**24)}),
    "lacks its stderr of 5 bytes": Agent(UNWANTED, end={"stderr": ("ab" * 32, 5)}),
    "said to have cost None, and its output says 5.0000": Agent(
        UNWANTED, cost="5.0000", end={"cost": None}
    ),
    "said to have cost 0.0100, and its output says None": Agent(UNWANTED, end={"cost": "0.0100"}),
    "said to have cost 0.0100, and its output says 0.0200": Agent(
        "", cost="0.0200", status="nonzero", end={"cost": "0.0100"}
    ),
    "has stdout that another program is said to have changed": Agent(
        UNWANTED,
        end={
            "status": "bad_output",
            "problem": "another program changed what it printed (stdout)",
        },
    ),
}


@pytest.mark.parametrize("says", FORGED)
def test_an_end_that_contradicts_itself(says: str, root: str) -> None:
    panel(root, first_final(FORGED[says]))
    (message,) = blamed(root)
    assert "dce (final, cycle 1): run " in message
    assert says in message


LEAK = b64encode(ANALYSES["security"].encode()).decode()
WORDS: dict[str, Agent] = {
    "empty": Agent("", end={"problem": f"it printed nothing {LEAK}"}),
    "failed": Agent("", status="nonzero", end={"problem": f"it ended with exit code 1; {LEAK}"}),
    "failed, it says": Agent(
        "",
        status="nonzero",
        end={"problem": f"it ended with exit code 1; it says that it failed: {LEAK}"},
    ),
    "said nothing, and all is well": Agent(UNWANTED, end={"problem": LEAK}),
    "too slow": Agent("", order=TIMED, end=SLOW | {"wall_ms": 61000}),
    "killed": Agent("", end=KILLED | {"signal": 15}),
    "changed": Agent(
        "",
        end={
            "stdout": ("0" * 64, 9),
            "status": "bad_output",
            "problem": f"another program changed what it printed (stdout): {LEAK}",
        },
    ),
    "more than is read": Agent(
        "",
        end={
            "stdout": ("0" * 64, 2**26),
            "status": "bad_output",
            "problem": f"it printed more than 67108864 bytes {LEAK}",
        },
    ),
    "no JSON": Agent(
        "{,", order={"output": "json"}, end={"problem": f"its output is no JSON: {LEAK}"}
    ),
    "a stream": Agent(
        "{}", order={"output": "claude-stream-json"}, end={"problem": "it was cut off"}
    ),
    "not started": Agent(
        "", end=NOTHING | {"problem": f"it could not be started: {LEAK}"}, begins=False
    ),
    "not started, for another reason": Agent(
        "", end=NOTHING | {"problem": f"it did not start: {LEAK}"}, begins=False
    ),
}
UNTOLD = ("more than is read", "no JSON", "not started")
"""Here the words cannot be computed, or not by every version: nobody can tell."""


@pytest.mark.parametrize("what", WORDS)
def test_a_problem_in_words_of_somebody(what: str, root: str) -> None:
    """They stand in the prompt of the next try."""

    def script(turn: DueTurn, attempt: int) -> Agent:
        is_first = turn.persona == "performance" and attempt == 1
        return WORDS[what] if is_first else Agent(said(turn.role, turn.persona))

    panel(root, script)
    (message,) = blamed(root)
    if what == "changed":
        assert "lacks its stdout of 9 bytes" in message
    elif what in UNTOLD:
        assert "performance (expert, cycle 1): entry " in message
        assert LEAK not in message
    else:
        assert "performance (expert, cycle 1): run " in message
        assert message.endswith("has a problem in other words than follow from how it ended")


HONEST: dict[str, Agent] = {
    "empty": Agent(""),
    "a failure": Agent("", status="nonzero", stderr=b"no login"),
    "killed by a namespace": Agent(
        "", end={"status": "nonzero", "exit_code": 137, "problem": "it ended with exit code 137"}
    ),
    "killed": Agent("half an ans", end=KILLED | {"signal": 9}),
    "too slow": Agent("half", order=TIMED, end=SLOW | {"wall_ms": 60003}),
    "too slow, and it heeded the signal": Agent(
        "half", order=TIMED, end=SLOW | {"wall_ms": 60001, "signal": None, "exit_code": 0}
    ),
    "told to end": Agent("half", status="cancelled"),
    "told to end, and it heeded the signal": Agent(
        "half", status="cancelled", end={"signal": None, "exit_code": 0}
    ),
    "not started": Agent("", end=NOTHING, begins=False),
    "not started by its wrapper": Agent(
        "",
        end=NOTHING | {"problem": "it could not be started: the wrapper ended with -9"},
        begins=False,
    ),
    "a stream that was cut off": Agent("{}", order={"output": "claude-stream-json"}),
    "a stream that says it failed": Agent(
        json.dumps({"type": "result", "is_error": True, "result": "no login"}),
        status="nonzero",
        order={"output": "claude-stream-json"},
    ),
    "no JSON": Agent("{,", order={"output": "json"}),
    "changed by another program": Agent(
        "",
        end={
            "stdout": ("0" * 64, 120),
            "status": "bad_output",
            "problem": "another program changed what it printed (stdout)",
        },
    ),
    "errors that another program changed": Agent(
        UNWANTED,
        end={
            "stderr": ("0" * 64, 0),
            "status": "bad_output",
            "problem": "another program changed what it printed (stderr and left)",
        },
    ),
    "more than is kept": Agent(UNWANTED, end={"stdout": ("0" * 64, 2**24 + 1)}),
    "more than is read": Agent(
        "",
        end={
            "stdout": ("0" * 64, 2**26),
            "status": "bad_output",
            "problem": "it printed more than 67108864 bytes",
        },
    ),
}


@pytest.mark.parametrize("what", HONEST)
def test_ends_that_come_about_are_believed(what: str, root: str) -> None:
    panel(root, first_final(HONEST[what]))
    assert blamed(root) == []
