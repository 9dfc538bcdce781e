"""A panel whose personas are a real coding agent: Claude Code, with a stand-in of its model.

The program that users have is run as the profile says, by ``tripod`` as a process of its own. What
it asks, prints and leaves, and how it ends, is its own; only the endpoint behind it is ours, on the
loopback address. Each test is skipped where no program ``claude`` is found, and says so.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from model_endpoint import Asked, ModelEndpoint, Reply, as_a_panel, error, says, served_model
from reviewed import EXAMPLE
from worked import GOLDEN, NAME, QUESTION, panel_module, without_numbers

from tripod.agents.isolation import isolate, resolve_isolated
from tripod.team.team import Team

pytestmark = pytest.mark.slow

TURNS = 8
EXPERTS = ("security", "performance", "integration")
KEY = "made-up-key-of-nobody"
NOTE = "Whoever works here says please."
"""Instructions for a coding agent, which no persona may be given."""

SOON = {"CLAUDE_CODE_MAX_RETRIES": "0"}
"""The program gives up at once; by default it tries for minutes."""
IN_A_FOLDER = (
    "from tripod.agents import isolation as i; i.BWRAP = 'no-such-bwrap'; i._TRUSTED = ();"
)
MAIN = "from tripod.cli import main; main()"


def the_program() -> str:
    """The path of Claude Code; without it the test is skipped, or fails where it must be there."""
    found = shutil.which("claude")
    if found is None:
        message = (
            "no program `claude` is on the PATH, so NO real coding agent was run: install Claude "
            "Code, or link its program under this name into a folder of PATH"
        )
        assert "TRIPOD_NEEDS_CLAUDE" not in os.environ, message
        pytest.skip(message)
    return found


def a_namespace(folder: Path) -> None:
    """Skip where no mount namespace can be made; it is a failure where one must be."""
    place = isolate(resolve_isolated(["true"], [], []), str(folder), [], str(folder))
    if place.level != "namespace":
        message = f"no mount namespace here, so it was NOT tried in one: {place.problem}"
        assert "TRIPOD_NEEDS_NAMESPACE" not in os.environ, message
        pytest.skip(message)


@dataclass(frozen=True)
class Panel:
    """A team and the endpoint of its personas' model; ``level`` is how far these are isolated."""

    project: Path
    endpoint: ModelEndpoint
    level: str
    env: dict[str, str]

    def words(self, *arguments: str) -> list[str]:
        program = MAIN if self.level == "namespace" else IN_A_FOLDER + MAIN
        return [sys.executable, "-c", program, *arguments]

    def tripod(self, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """Run ``tripod`` as a process; whatever it says, it says no traceback."""
        done = subprocess.run(
            self.words(*arguments),
            cwd=self.project,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def status(self, run: str = NAME) -> dict[str, Any]:
        value = json.loads(self.tripod("nova", "status", run, "--json").stdout)
        assert isinstance(value, dict)
        return value

    def entries(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of the entries of a kind."""
        with Team(str(self.project / ".nbs")) as team:
            return [one.data for one in team.store.read() if one.kind == kind]

    def contents(self, kind: str, *path: str) -> list[bytes]:
        """The texts that entries of a kind hold, or name as blobs."""
        found = []
        with Team(str(self.project / ".nbs")) as team:
            for entry in team.store.read():
                if entry.kind == kind:
                    value: Any = entry.data
                    for name in path:
                        value = value[name]
                    found.append(team.source.content(value))
        return found

    def prompts(self) -> list[bytes]:
        """What the ledger says that the program was given, run by run."""
        return self.contents("delivered", "content")

    def check_sound(self) -> None:
        """No rule is found to be broken; in a folder alone it cannot be told what experts read."""
        report = json.loads(self.tripod("verify", "--json").stdout)
        found = [one["message"] for check in report["checks"] for one in check["findings"]]
        assert found == []
        told = {check["check"]: check["verdict"] for check in report["checks"]}
        assert told["nova-order"] == told["nova-personas"] == told["nova-no-tools"] == "clean"
        untold = {name for name, verdict in told.items() if verdict == "cannot tell"}
        experts = any("-expert-" in one["subject"] for one in self.entries("agent.requested"))
        is_untold = self.level == "folder" and experts
        assert untold == ({"nova-independence"} if is_untold else set())


@pytest.fixture(params=["namespace", "folder"])
def level(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "namespace":
        a_namespace(tmp_path)
    return str(request.param)


@pytest.fixture
def panel(level: str, tmp_path: Path, signers_home: str) -> Iterator[Panel]:
    """A team in a folder, the program on the PATH, and a home in which nothing is."""
    folder = Path(the_program()).parent
    for name in ("project", "home/.claude", "tmp"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("home/.claude/CLAUDE.md", "tmp/CLAUDE.md", "tmp/AGENTS.md", "project/CLAUDE.md"):
        (tmp_path / name).write_text(NOTE)
    with served_model() as endpoint:
        env = {
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path[:1]),
            "HOME": str(tmp_path / "home"),
            "TMPDIR": str(tmp_path / "tmp"),
            "TRIPOD_HOME": signers_home,
            "ANTHROPIC_BASE_URL": endpoint.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        made = Panel(tmp_path / "project", endpoint, level, env)
        assert made.tripod("init").returncode == 0
        yield made
        # It asked for nothing but answers, by its login alone, and left the home of the user alone.
        assert endpoint.strange == []
        assert {one.key for one in endpoint.asked} <= {KEY}
        left = {path.name for path in (tmp_path / "home").rglob("*")}
        assert left - {".credentials.json"} == {".claude", "CLAUDE.md"}
        kept = [path for path in made.project.rglob("*") if path.is_file()]
        assert [path for path in kept if KEY.encode() in path.read_bytes()] == []


def ask(panel: Panel, *more: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return panel.tripod("nova", "process", QUESTION, "--as", "ann", *more, **env)


def turn_of(asked: Asked) -> tuple[str, str]:
    """The role and the persona that a request is for."""
    _, role, persona, _ = panel_module().asked(asked.prompt)
    return role, persona


def test_the_worked_example_is_decided_by_a_real_agent(panel: Panel) -> None:
    done = ask(panel)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{NAME}: over: decided, 8 turns, 1 cycle",
        "OAuth2 with PKCE + mobile PKCE",
        "confidence 0.9 (it states 0.92)",
    ]
    files = panel.project / ".nbs/nova" / NAME
    for name, golden in GOLDEN.items():
        shown = without_numbers((files / name).read_text())
        assert shown.replace(f"cost: {panel.status()['cost']}", "cost: 0.0000") == golden
    panel.check_sound()
    check_asked(panel)
    check_kept(panel)
    assert [one["level"] for one in panel.entries("agent.isolated")] == [panel.level] * TURNS


def check_asked(panel: Panel) -> None:
    """The endpoint got what is recorded, and no more: no tool, and no word of another expert."""
    assert len(panel.endpoint.asked) == TURNS
    recorded = sorted(panel.prompts())
    assert sorted(one.prompt.encode() for one in panel.endpoint.asked) == recorded
    assert [one.body.get("tools", []) for one in panel.endpoint.asked] == [[]] * TURNS
    assert [one.body["stream"] for one in panel.endpoint.asked] == [True] * TURNS
    analyses = {name: panel_module().SCRIPT[name]["analysis"] for name in EXPERTS}
    seen: dict[str, list[str]] = {}
    for one in panel.endpoint.asked:
        role, persona = turn_of(one)
        seen[persona if role == "expert" else role] = [
            name for name, text in analyses.items() if text in one.raw
        ]
        assert str(panel.project) not in one.raw
        assert NOTE not in one.raw
    assert [seen[name] for name in EXPERTS] == [[], [], []]
    assert seen["synthesis"] == list(EXPERTS)  # so the words can be found


def check_kept(panel: Panel) -> None:
    """What each run of the program printed, left and cost is in the ledger."""
    ended = panel.entries("agent.ended")
    assert [(one["status"], one["exit_code"]) for one in ended] == [("ok", 0)] * TURNS
    assert "" not in {one["session"] for one in ended}
    logs = {path.name: path.read_text() for path in (panel.project / ".nbs/workers").iterdir()}
    assert len(logs) == len(panel.entries("evidence.kept")) == TURNS
    cost = Decimal(0)
    for one, printed in zip(ended, panel.contents("agent.ended", "stdout", "content"), strict=True):
        log = logs[f"nova-{one['spawn'][:12]}-1.log"]
        assert f'"sessionId":"{one["session"]}"' in log
        result = json.loads(printed.splitlines()[-1])
        assert result["session_id"] == one["session"]
        assert result["num_turns"] == 1
        assert one["cost"] == f"{result['total_cost_usd']:.4f}" != "0.0000"
        assert one["usage"]["output_tokens"] == result["usage"]["output_tokens"] > 0
        cost += Decimal(one["cost"])
    assert Decimal(panel.status()["cost"]) == cost


def test_the_reviewer_is_the_same_program_by_the_same_profile(panel: Panel) -> None:
    """Pythia's assessment of one decision; of the chat it was told nothing."""
    spoken = "Whoever argues longest wins, and so we all agreed at last that one thread will do."

    def reviews(asked: Asked) -> Reply:
        words = [sys.executable, str(EXAMPLE)]
        done = subprocess.run(words, input=asked.prompt, capture_output=True, text=True, check=True)
        return says(asked, done.stdout)

    panel.endpoint.answer = reviews
    log = ("scribe", "log", "Serve tea", "-p", "ann", "-r", "Fast", "--ref", "live.chat:~L7")
    for words in (
        ("chat", "create", "live"),
        ("chat", "send", "live", "ann", spoken),
        log,
        ("pythia", "run", "--manual", "--as", "bob"),
    ):
        done = panel.tripod(*words)
        assert done.returncode == 0, done.stderr
    (asked,) = panel.endpoint.asked
    assert asked.prompt.encode() == panel.prompts()[0]
    assert asked.body["tools"] == []
    assert spoken not in asked.raw
    report = json.loads(panel.tripod("verify", "--json").stdout)
    (told,) = [one for one in report["checks"] if one["check"] == "pythia-isolation"]
    assert told["findings"] == []
    wanted = "clean, except" if panel.level == "namespace" else "cannot tell"
    assert told["verdict"] == wanted


# When the endpoint fails -----------------------------------------------------------------------


def refused(asked: Asked) -> Reply:
    return says(asked, "I would rather not.", "refusal")


def silent(asked: Asked) -> Reply:
    return says(asked, "")


def garbage(_: Asked) -> Reply:
    return Reply(200, b"<html>\x00\xff log in to the hotel", "text/event-stream")


TOLD = "it ended with exit code 1; it says that it failed: "
FAILURES: dict[str, tuple[Any, str]] = {
    "401": (
        lambda _: error(401, "authentication_error", "invalid x-api-key"),
        f"{TOLD}Invalid API key",
    ),
    "500": (
        lambda _: error(500, "api_error", "Internal server error"),
        f"{TOLD}API Error: 500 Internal server error",
    ),
    "a refusal": (refused, f"{TOLD}API Error"),
    "garbage": (
        garbage,
        f"{TOLD}API Error: API returned an empty or malformed response (HTTP 200)",
    ),
    "silence": (silent, "its result is empty"),
}
"""What an endpoint may do, and how the reason begins that the run then states."""


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("level", ["folder"], indirect=True)
def test_a_run_without_a_first_turn_says_what_the_program_said(panel: Panel, failure: str) -> None:
    panel.endpoint.answer, reason = FAILURES[failure]
    done = ask(panel, **SOON)
    assert done.returncode == 1
    state, why, then = done.stdout.splitlines()
    assert state == f"{NAME}: over: failed, 0 turns, 0 cycles"
    assert why.startswith(f"reason: dce: {reason}")
    assert "\\x0a" not in why  # what the program says on several lines is one here
    assert then.startswith("next: `tripod show agents`")
    assert [one["attempt"] for one in panel.entries("agent.requested")] == [1, 2]
    assert [bool(text) for text in panel.contents("agent.ended", "stdout", "content")] == [True] * 2
    panel.check_sound()


@pytest.mark.parametrize("by", ["a file", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"])
def test_a_login_is_lent_and_not_kept(panel: Panel, by: str) -> None:
    """The fixture looks for it in all that is kept; the endpoint got it."""
    given = {"ANTHROPIC_API_KEY": ""}
    if by == "a file":
        login = {"accessToken": KEY, "refreshToken": KEY, "scopes": ["user:inference"]}
        path = panel.project.parent / "home/.claude/.credentials.json"
        path.write_text(json.dumps({"claudeAiOauth": login | {"expiresAt": 2**42}}))
    else:
        given[by] = KEY
    done = ask(panel, "--budget", "1t", **given)
    assert done.stdout.splitlines()[0] == f"{NAME}: a person has to decide, 1 turn, 1 cycle"
    assert [one.key for one in panel.endpoint.asked] == [KEY]


def test_a_login_that_is_missing_is_named(panel: Panel) -> None:
    done = ask(panel, ANTHROPIC_API_KEY="")
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].startswith(f"reason: dce: {TOLD}Not logged in")
    assert panel.endpoint.asked == []
    panel.check_sound()


@pytest.mark.parametrize("level", ["folder"], indirect=True)
def test_the_turns_before_a_failure_are_kept_for_a_fork(panel: Panel) -> None:
    """The endpoint is down from the synthesis on; later it is there again."""

    def fails_late(asked: Asked) -> Reply:
        if turn_of(asked)[0] == "synthesis":
            return error(500, "api_error", "Internal server error")
        return as_a_panel(asked)

    panel.endpoint.answer = fails_late
    done = ask(panel, **SOON)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == f"{NAME}: over: failed, 4 turns, 1 cycle"
    assert f"`tripod nova fork {NAME} --at 4` keeps turns 1 to 4" in done.stdout
    panel.endpoint.answer = as_a_panel
    before = len(panel.endpoint.asked)
    again = panel.tripod("nova", "fork", NAME, "--at", "4", "--as", "ann")
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[0] == f"{NAME}-2: over: decided, 8 turns, 1 cycle"
    assert len(panel.endpoint.asked) - before == TURNS - 4
    panel.check_sound()


@pytest.mark.parametrize("level", ["folder"], indirect=True)
def test_experts_that_the_endpoint_fails_alike_are_silent_and_copied_nothing(panel: Panel) -> None:
    """Two of three get garbage, and the program says of it the same words."""

    def fails_experts(asked: Asked) -> Reply:
        role, persona = turn_of(asked)
        return garbage(asked) if role == "expert" and persona != "security" else as_a_panel(asked)

    panel.endpoint.answer = fails_experts
    done = ask(panel, **SOON)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"{NAME}: over: decided, 6 turns, 1 cycle"
    missed = {one["persona"]: one["problem"] for one in panel.entries("nova.turn.missed")}
    assert missed.keys() == {"performance", "integration"}
    assert all("malformed response" in problem for problem in missed.values())
    panel.check_sound()


@pytest.mark.parametrize("level", ["folder"], indirect=True)
def test_a_silent_answer_is_asked_for_again(panel: Panel) -> None:
    """The second prompt says what was wrong; both are recorded and paid."""
    asked_before: list[Asked] = []

    def silent_at_first(asked: Asked) -> Reply:
        if turn_of(asked)[0] != "unpack" or "Your answer before this one was" in asked.prompt:
            return as_a_panel(asked)
        asked_before.append(asked)
        return silent(asked)

    panel.endpoint.answer = silent_at_first
    done = ask(panel, "--budget", "2t")
    assert done.stdout.splitlines()[0] == f"{NAME}: a person has to decide, 2 turns, 1 cycle"
    first, second = panel.entries("agent.ended")[:2]
    assert (first["status"], second["status"]) == ("empty_output", "ok")
    assert asked_before
    told = panel.prompts()[1].decode()
    assert told.rstrip().endswith("Your answer before this one was refused: its result is empty")
    panel.check_sound()


def test_an_interrupted_run_goes_on_when_the_endpoint_answers(panel: Panel) -> None:
    """By default the program tries for minutes: a person who ends that loses nothing."""
    panel.endpoint.answer = FAILURES["500"][0]
    with subprocess.Popen(
        panel.words("nova", "process", QUESTION, "--as", "ann"),
        cwd=panel.project,
        env=panel.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert panel.endpoint.wait_for(2)
        waiting.send_signal(signal.SIGINT)
        said = waiting.communicate(timeout=60)[1]
    assert waiting.returncode not in (0, None)
    assert "Traceback" not in said
    status = panel.status()
    assert (status["outcome"], status["state"], status["turns"]) == (None, "unpacking", 0)
    assert f"`tripod nova resume {NAME}` goes on" in status["next"]
    panel.endpoint.answer = as_a_panel
    before = len(panel.endpoint.asked)
    done = panel.tripod("nova", "resume", NAME)
    assert done.returncode == 0, done.stderr
    assert len(panel.endpoint.asked) - before == TURNS  # the program that was ended asks no more
    assert done.stdout.splitlines()[0] == f"{NAME}: over: decided, 8 turns, 1 cycle"
    panel.check_sound()


# Where it is not installed ---------------------------------------------------------------------


def test_without_the_program_the_skip_says_so_and_may_be_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TRIPOD_NEEDS_CLAUDE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="NO real coding agent was run: install Claude"):
        the_program()
    monkeypatch.setenv("TRIPOD_NEEDS_CLAUDE", "1")
    with pytest.raises(AssertionError, match="link its program under this name"):
        the_program()
