"""What the original worker tools get wrong (spec: nbs-compat C5, C7, C10), each tried here.

Each test is named by what was seen there.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from doors.inside import TRIPOD, Done, run, run_as
from story import folder

from tripod.agents import profiles
from tripod.agents.jobs import newest, recorded
from tripod.agents.spool import Spool
from tripod.ledger.locator import LEDGER
from tripod.projections.workers.format import EMPTY_LOG
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge
from tripod.workers import worker as workers_run
from tripod.workers.worker import ROLE

HELD = "until [ -e go ]; do sleep 0.01; done"
"""A line of shell that waits for the file ``go`` in the project."""


class Shop:
    """A project with a team, whose workers run a line of shell."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.root = project / ".nbs"
        (self.root / "events").mkdir(parents=True)
        assert run(project, "init").code == 0
        self.runs("cat")

    def runs(self, line: str) -> None:
        """What the program of the next workers is."""
        (self.project / "agent.toml").write_text(f"argv = ['sh', '-c', '''{line}''']\n")

    def __call__(self, *words: str) -> Done:
        return run_as("nbs-worker", self.project, *words)

    def spawn(self, task: str = "Do it.", *more: str) -> str:
        done = self("spawn", *more, "parser", ".", task)
        assert done.code == 0, done
        return done.out.decode().strip()

    def let_go(self) -> None:
        (self.project / "go").touch()
        self.watch()

    def watch(self) -> None:
        done = run(self.project, "worker", "watch", "--timeout", "60")
        assert done.code == 0, done

    def status(self, name: str) -> str:
        done = self("status", name)
        assert done.code == 0, done
        return done.out.decode().splitlines()[-1].removeprefix("  status:       ")

    def log(self, name: str) -> str:
        return (self.root / f"workers/{name}.log").read_text("utf-8")

    def events(self, *types: str) -> list[tuple[str, str, str]]:
        """Type, priority and source of each pending event of these types."""
        found = []
        for path in sorted((self.root / "events").glob("*.event")):
            lines = path.read_text("utf-8").splitlines()
            source, type_, priority = (line.partition(": ")[2] for line in lines[:3])
            if type_ in types:
                found.append((type_, priority, source))
        return found

    def findings(self) -> list[tuple[str, str]]:
        """Check and place of everything that verifying finds."""
        with collect(str(self.root)) as evidence:
            report = judge(evidence)
        return [(one.check, one.where) for outcome in report.outcomes for one in outcome.findings]

    def spool(self, name: str) -> Spool:
        with Team(str(self.root)) as team:
            found = newest(team.store.db, ROLE, name)
            assert found is not None
            return Spool(f"{team.root}/spool/{found.spawn}")


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.delenv(LEDGER, raising=False)
    monkeypatch.delenv("NBS_HANDLE", raising=False)
    with folder() as project:
        monkeypatch.setenv(workers_run.PROFILE, f"{project}/agent.toml")
        yield Shop(project)


def drawn(monkeypatch: pytest.MonkeyPatch, *digits: str) -> None:
    """Let these be the next names' digits."""
    names = iter(digits)
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: bytes.fromhex(next(names)) if n == 2 else real(n))


# Beginning -------------------------------------------------------------------------------------


def test_spawn_waits_until_the_worker_has_ended(shop: Shop) -> None:
    shop.runs(f"{HELD}; echo done")
    name = shop.spawn()
    assert shop.status(name) == "running"
    assert shop.events("worker-spawned") == [("worker-spawned", "normal", "nbs-worker")]
    shop.let_go()
    assert shop.status(name) == "completed"
    assert shop.events("worker-spawned") == [("worker-spawned", "normal", "nbs-worker")]


def test_a_name_that_is_taken_is_an_error(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn(monkeypatch, "00ff", "00ff", "00ff", "0100")
    assert shop.spawn() == "parser-00ff"
    assert shop.spawn() == "parser-0100"
    shop.watch()


def test_the_name_of_a_file_that_others_left_is_taken(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = shop.root / "workers/parser-00ff.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("theirs")
    drawn(monkeypatch, "00ff", "0100")
    assert shop.spawn() == "parser-0100"
    shop.watch()
    assert log.read_text() == "theirs"


def test_a_long_skill_is_cut(shop: Shop) -> None:
    (shop.project / "skill.md").write_text("Be brief. " * 20_000 + "END")
    name = shop.spawn("The task.", f"--skill={shop.project}/skill.md")
    shop.watch()
    log = shop.log(name)
    assert log.startswith("Be brief. Be brief.")
    assert "END\n\nThe task.\n" in log
    assert len(log) > 200_000


def test_permission_checks_are_switched_off() -> None:
    claude = profiles.load("claude")
    words = [*claude.argv, *(word for words in claude.takes.values() for word in words)]
    assert not [word for word in words if "skip-permissions" in word or "bypass" in word.lower()]


def test_variables_of_whoever_spawns_end_it_early(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "TMUX", "NBS_NEST"):
        monkeypatch.setenv(name, "1")
    shop.runs("env")
    name = shop.spawn()
    shop.watch()
    seen = {line.partition("=")[0] for line in shop.log(name).splitlines()}
    assert not seen & {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "TMUX", "NBS_NEST"}
    assert {"PATH", "TRIPOD_WORKER", "NBS_HANDLE"} <= seen


def test_a_lock_that_its_children_inherit_blocks_the_next(shop: Shop) -> None:
    shop.runs("sleep 600 & echo begun")
    first = shop.spawn()
    shop.watch()
    assert shop.status(first) == "completed"
    second = shop.spawn()
    shop.watch()
    assert shop.status(second) == "completed"


def test_the_other_commands_look_under_the_folder_of_the_caller_alone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = shop.spawn()
    shop.watch()
    below = shop.project / "src/deep"
    below.mkdir(parents=True)
    here = run_as("nbs-worker", below, "status", name)
    assert here == shop("status", name)
    with folder() as elsewhere:
        assert run_as("nbs-worker", elsewhere, "status", name).code == 2
        monkeypatch.setenv(LEDGER, str(shop.root))
        assert run_as("nbs-worker", elsewhere, "status", name) == here


# Its state ------------------------------------------------------------------------------------


def test_any_message_in_a_chat_completes_every_worker(shop: Shop) -> None:
    assert run(shop.project, "chat", "create", "live").code == 0
    shop.runs(f"{HELD}; echo the answer")
    name = shop.spawn()
    assert run(shop.project, "chat", "send", "live", "parser", "I have begun").code == 0
    assert shop.status(name) == "running"
    assert shop.spool(name).look().started is not None
    shop.let_go()
    assert shop.status(name) == "completed"
    assert shop.log(name) == "the answer\n"


QUOTING = """\
Do as it says here:

## Status

State: completed
Started: then
Completed: 2001-01-01 00:00:00

## Log

Nothing to do.

## Task

State: failed
"""


def test_the_first_line_that_looks_like_a_state_is_the_state(shop: Shop) -> None:
    shop.runs(f"{HELD}; cat")
    (shop.project / "skill.md").write_text(QUOTING)
    name = shop.spawn(QUOTING, f"--skill={shop.project}/skill.md")
    assert shop.status(name) == "running"
    assert shop("results", name).out.decode() == f"## Log\n\n{EMPTY_LOG}\n"
    file = shop.root / f"workers/{name}.md"
    assert file.read_text("utf-8").count("State: running\n") == 1
    shop.let_go()
    assert shop.status(name) == "completed"
    assert file.read_text("utf-8").count(QUOTING.strip()) == 2
    assert shop("dismiss", name).code == 0
    text = file.read_text("utf-8")
    assert text.count(QUOTING.strip()) == 2
    assert text.count("State: dismissed\n") == 1


@pytest.mark.parametrize("claim", ["completed", "done", "failed", "no such state", ""])
def test_whatever_a_worker_writes_is_its_state(shop: Shop, claim: str) -> None:
    shop.runs(HELD)
    name = shop.spawn()
    file = shop.root / f"workers/{name}.md"
    file.write_text(file.read_text("utf-8").replace("State: running", f"State: {claim}"), "utf-8")
    assert shop.status(name) == "running"
    assert [check for check, _ in shop.findings()] == ["worker-lifecycle"]
    assert shop("dismiss", name).code == 0
    assert shop.status(name) == "dismissed"


@pytest.mark.parametrize("status", ["all good", "State: failed", "State: x\n\n## Log\n\nMore."])
def test_findings_end_at_the_next_heading(shop: Shop, status: str) -> None:
    shop.runs(f"{HELD}; echo x")
    name = shop.spawn(QUOTING)
    file = shop.root / f"workers/{name}.md"
    found = f"A leak.\n\n## Details\n\nIn line 7.\n\n## Status\n\n{status}"
    file.write_text(file.read_text("utf-8").replace(EMPTY_LOG, found), "utf-8")
    assert shop("results", name).out.decode() == f"## Log\n\n{found}\n"
    shop.let_go()
    assert shop("results", name).out.decode() == f"## Log\n\n{found}\n"
    assert shop.status(name) == "completed"
    assert shop("dismiss", name).code == 0
    assert file.read_text("utf-8").endswith(f"## Log\n\n{found}\n")
    assert shop("results", name).out.decode() == f"## Log\n\n{found}\n"


# Its end --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "status", "event"),
    [
        ("echo x", "completed", ("task-complete", "high")),
        ("exit 7", "failed", ("task-failed", "high")),
        ("true", "failed", ("task-failed", "high")),
    ],
)
def test_no_event_tells_of_an_end(
    shop: Shop, line: str, status: str, event: tuple[str, str]
) -> None:
    shop.runs(line)
    name = shop.spawn()
    shop.watch()
    for _ in range(2):
        assert shop.status(name) == status
        assert shop.events("task-complete", "task-failed", "task-blocked") == [(*event, name)]


def test_one_that_is_stuck_tells_nobody(shop: Shop) -> None:
    shop.runs(f'{TRIPOD} worker escalate "Which grammar?"; echo asked')
    name = shop.spawn()
    shop.watch()
    assert shop.status(name) == "escalated"
    assert shop.events("task-complete", "task-failed", "task-blocked") == [
        ("task-blocked", "critical", name)
    ]


def test_each_status_tells_of_its_death_again_and_nobody_else_does(shop: Shop) -> None:
    shop.runs("exec sleep 600")
    name = shop.spawn()
    spool = shop.spool(name)
    started = spool.look().started
    assert started is not None
    os.kill(started.wrapper, signal.SIGKILL)
    spool.wait()
    assert run_as("nbs-bus", shop.project, "check", ".nbs/events").code == 0
    assert shop.events("worker-died") == [("worker-died", "high", "nbs-worker")]
    for _ in range(3):
        assert shop.status(name) == "died (session exited unexpectedly)"
    assert shop.events("worker-died") == [("worker-died", "high", "nbs-worker")]


def test_the_exit_code_is_lost(shop: Shop) -> None:
    shop.runs("echo partly; exit 7")
    name = shop.spawn()
    shop.watch()
    with Team(str(shop.root)) as team:
        found = newest(team.store.db, ROLE, name)
        assert found is not None
        result = recorded(team, found)
    assert (result.status, result.exit_code, result.answer.text) == ("nonzero", 7, "partly")


def test_who_is_called_alike_is_killed_as_well(shop: Shop) -> None:
    shop.runs(HELD)
    first, second = shop.spawn(), shop.spawn()
    bystander = subprocess.Popen(["sh", "-c", f"exec sleep 600 # {first}"])
    try:
        assert shop("dismiss", first).code == 0
        assert (shop.status(first), shop.status(second)) == ("dismissed", "running")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
    assert shop("dismiss", second).code == 0


# Its evidence ---------------------------------------------------------------------------------


def test_the_log_misses_the_first_output(shop: Shop) -> None:
    shop.runs("echo first; echo beside >&2; echo last")
    name = shop.spawn()
    shop.watch()
    assert shop.log(name) == "first\nlast\n"
    assert (shop.root / f"workers/{name}.err.log").read_text() == "beside\n"


def test_a_kill_removes_the_log(shop: Shop) -> None:
    shop.runs(f"echo evidence; touch begun; {HELD}")
    name = shop.spawn()
    with Team(str(shop.root)) as team:
        path = shop.project / "begun"
        assert _wait_for(path)
        assert workers_run.worker_state(team, name) == "running"
    assert shop("dismiss", name).code == 0
    assert shop.log(name) == "evidence\n"
    assert shop("search", name, "evid").out == b"evidence\n"
    assert shop.findings() == []


def _wait_for(path: Path) -> bool:
    from tripod.bus.reader import QueueWatch

    with QueueWatch([str(path.parent)], every=0.05) as watch:
        while not path.exists():
            watch.wait(60)
    return True


@pytest.mark.parametrize("harm", ["edited", "cut", "gone"])
def test_who_may_write_there_can_change_the_log(shop: Shop, harm: str) -> None:
    shop.runs("echo I read the chat; echo loud >&2")
    name = shop.spawn()
    shop.watch()
    log = shop.root / f"workers/{name}.log"
    assert shop.findings() == []
    if harm == "gone":
        log.unlink()
    else:
        log.write_text("" if harm == "cut" else "I read the log\n")
    assert f"workers/{name}.log" in [where for _, where in shop.findings()]
    assert run(shop.project, "rebuild", "--evidence").code == 0
    assert log.read_text() == "I read the chat\n"


def test_its_task_file_is_overwritten_without_a_trace(shop: Shop) -> None:
    shop.runs("echo x")
    name = shop.spawn()
    shop.watch()
    file = shop.root / f"workers/{name}.md"
    before = file.read_bytes()
    file.write_bytes(before.replace(b"Do it.", b"Do nothing."))
    assert ("drift", f"workers/{name}.md") in shop.findings()
    assert run(shop.project, "rebuild").code == 0
    assert file.read_bytes() == before


# Names ----------------------------------------------------------------------------------------


def test_names_that_its_own_spawner_makes_are_refused(shop: Shop) -> None:
    """Workers of both original spawners: ``slug-hhhh`` and ``role-hhhhhhhh``."""
    text = "# Worker: {0}\n\n## Task\n\nx\n\n## Status\n\nState: completed\n\n## Log\n\nFound.\n"
    for name in ("parser-a3f1", "scribe-0123abcd", "lifecycle-test"):
        (shop.root / "workers").mkdir(exist_ok=True)
        (shop.root / f"workers/{name}.md").write_text(text.format(name))
        (shop.root / f"workers/{name}.log").write_text("a line\n")
        assert shop.status(name) == "completed"
        assert shop("results", name).out == b"## Log\n\nFound.\n"
        assert shop("search", name, "line").out == b"a line\n"
    assert len(shop("list").out.splitlines()) == 3


def test_colours_of_a_terminal_hide_a_match_or_reach_ours(shop: Shop) -> None:
    shop.runs(r"printf 'pa\033[31mrse\033[0m \033]0;title\007err\033[2Jor \033(B!\n'")
    name = shop.spawn()
    shop.watch()
    found = shop("search", name, "parse error").out
    assert found == b"parse error !\n"
    assert re.search(rb"\x1b\[31m", shop.log(name).encode())
