"""Workers: each change of state once, with its event; logs kept; files that they append to."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doors.inside import TRIPOD, run

from tripod.agents.jobs import newest
from tripod.agents.spool import Spool
from tripod.bus import events as bus
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.projections.engine import file_differences
from tripod.projections.workers.format import EMPTY_LOG, WorkerText, format_worker, parse_worker
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge
from tripod.workers import worker as workers_run
from tripod.workers.worker import ROLE, logs_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    adoption.init(str(tmp_path))
    return tmp_path


@pytest.fixture
def team(project: Path) -> Iterator[Team]:
    with Team(str(project / ".nbs")) as opened:
        yield opened


def spool_of(team: Team, name: str) -> Spool:
    run = newest(team.store.db, ROLE, name)
    assert run is not None
    return Spool(f"{team.root}/spool/{run.spawn}")


def spawn(team: Team, program: str, task: str = "Do it.", **more: Any) -> str:
    """A worker that runs a line of shell in the project's folder."""
    folder = os.path.dirname(team.root)
    return workers_run.spawn(team, "w", folder, task, command=["sh", "-c", program], **more)


def over(team: Team, name: str) -> str | None:
    """Wait until its program has ended; the state that it has then."""
    spool_of(team, name).wait()
    workers_run.look_after(team)
    return workers_run.worker_state(team, name)


def steps(team: Team, name: str) -> list[str]:
    """The states that a worker went through, and the events that told of them."""
    found = []
    for entry in team.store.read():
        if entry.stream == f"workers/{name}" and entry.kind != "worker.written":
            found.append(entry.data.get("state") or entry.kind.partition(".")[2])
        elif entry.kind == "bus.published" and name in entry.data["payload"]["text"]:
            found.append(f"{entry.data['type']} {entry.data['priority']}")
    return found


def clean(team: Team, *, taken_in: bool = True) -> None:
    """Everything fits: checks, tables, and the files, where what others wrote was taken in."""
    with collect(team.root) as evidence:
        report = judge(evidence)
    assert [f.message for one in report.outcomes for f in one.findings] == []
    assert next(o for o in report.outcomes if o.check == "worker-lifecycle").verdict == "clean"
    assert not taken_in or list(file_differences(team.source, team.disk, evidence=True)) == []


# From beginning to end -------------------------------------------------------------------------


def test_a_program_finds_its_task(team: Team, project: Path) -> None:
    name = spawn(team, "cat .nbs/workers/*.md >seen")
    spool_of(team, name).wait()
    assert b"Do it." in (project / "seen").read_bytes()


def test_no_program_is_started_while_an_act_is_open(team: Team, project: Path) -> None:
    """Its order would not be durable yet."""
    size = team.store.head().size

    def within() -> None:
        with team.act():
            spawn(team, "touch started")

    with pytest.raises(RefusedError, match="an act is open"):
        within()
    assert team.store.head().size == size
    assert not (project / "started").exists()


def test_spawning_does_not_wait_and_the_end_is_found_out_later(team: Team, project: Path) -> None:
    name = spawn(team, "until [ -e go ]; do sleep 0.01; done; echo done")
    assert workers_run.worker_state(team, name) == "running"
    task = parse_worker((project / f".nbs/workers/{name}.md").read_bytes())
    assert (task.title, task.task, task.state, task.log) == ("w", "Do it.", "running", EMPTY_LOG)
    assert (task.started[:4].isdecimal(), task.completed) == (True, "")
    assert workers_run.about(team, name).running
    workers_run.look_after(team)
    assert workers_run.worker_state(team, name) == "running"
    (project / "go").touch()
    assert over(team, name) == "completed"
    assert steps(team, name) == [
        "spawned", "running", "worker-spawned normal", "completed", "task-complete high"
    ]  # fmt: skip
    task = parse_worker((project / f".nbs/workers/{name}.md").read_bytes())
    assert (task.state, task.completed[:4].isdecimal()) == ("completed", True)
    assert workers_run.answer(team, name) == "done"
    assert list((project / ".nbs/spool").iterdir()) == []
    clean(team)


def test_its_program_is_told_what_it_needs(team: Team, project: Path) -> None:
    name = spawn(team, 'cat; echo " $TRIPOD_WORKER $NBS_HANDLE $PWD"', task="é\nx")
    assert over(team, name) == "completed"
    assert workers_run.answer(team, name) == f"é\nx {name} w {project}"


def test_its_program_finds_its_team_wherever_it_works(
    team: Team, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    program = [TRIPOD, "worker", "escalate", "stuck"]
    there = workers_run.spawn(team, "w", str(elsewhere), "x", command=program)
    assert over(team, there) == "escalated"
    assert list(elsewhere.iterdir()) == []
    say = ["sh", "-c", 'echo "($TRIPOD_LEDGER)"']
    here = workers_run.spawn(team, "w", str(project), "x", command=say)
    assert over(team, here) == "completed"
    assert workers_run.answer(team, here) == "()"


def test_a_task_may_quote_a_task_file_and_be_long(team: Team, project: Path) -> None:
    old = WorkerText("completed", "then", "now", "Old.", "Done.", "x")
    quoted = format_worker(old).decode().strip()
    name = spawn(team, "exec sleep 600", task=quoted, skill="Skill. " * 20_000)
    text = parse_worker((project / f".nbs/workers/{name}.md").read_bytes())
    assert (text.state, text.completed, text.log) == ("running", "", EMPTY_LOG)
    assert text.task.endswith(quoted)
    assert len(text.task) > 140_000
    workers_run.dismiss(team, name)
    clean(team)


@pytest.mark.parametrize(
    ("program", "state", "event", "problem"),
    [
        ("exit 3", "failed", "task-failed high", "it ended with exit code 3"),
        ("true", "failed", "task-failed high", "it printed nothing"),
        ("echo x; kill -9 $$", "died", "worker-died high", "it was killed by signal 9"),
    ],
)
def test_how_its_program_ends_decides(
    team: Team, program: str, state: str, event: str, problem: str
) -> None:
    name = spawn(team, program)
    assert over(team, name) == state
    assert steps(team, name)[3:] == [state, event]
    text = next(iter(bus.check(team)))
    assert problem in bus.read(team, text.name).decode()
    clean(team)


def test_time_that_is_over_is_a_failure(team: Team) -> None:
    name = spawn(team, "sleep 600", timeout_s=0.2)
    assert over(team, name) == "failed"


def test_a_program_that_is_not_there_is_a_failure(team: Team, project: Path) -> None:
    name = workers_run.spawn(team, "w", str(project), "Do.", command=["no-such-program"])
    assert over(team, name) == "failed"
    assert steps(team, name) == ["spawned", "failed", "task-failed high"]
    clean(team)


def test_its_death_is_found_out_once_by_whoever_comes_next(team: Team) -> None:
    name = spawn(team, "exec sleep 600")
    spool = spool_of(team, name)
    started = spool.look().started
    assert started is not None
    os.kill(started.wrapper, signal.SIGKILL)
    assert over(team, name) == "died"
    workers_run.look_after(team)
    assert steps(team, name)[-2:] == ["died", "worker-died high"]
    assert steps(team, name).count("worker-died high") == 1
    with pytest.raises(NotFoundError, match="no program of a worker"):
        workers_run.answer(team, name)
    clean(team)


# What others say of it -------------------------------------------------------------------------


def test_what_is_said_to_a_worker_or_for_it_has_a_limit(team: Team) -> None:
    for say in (workers_run.continue_, workers_run.escalate):
        with pytest.raises(NotFoundError):  # the text is fine
            say(team, "nobody", "x" * workers_run.MAX_TASK)
        for text in ("x" * (workers_run.MAX_TASK + 1), " \n"):
            with pytest.raises(BadArgumentError, match="it is empty, or more than"):
                say(team, "nobody", text)


def test_one_that_is_stuck_says_so_and_stays_escalated(team: Team, project: Path) -> None:
    name = spawn(team, "until [ -e go ]; do sleep 0.01; done; echo stuck")
    workers_run.escalate(team, name, "Which grammar?")
    assert workers_run.worker_state(team, name) == "escalated"
    event = next(iter(bus.check(team)))
    assert (event.priority, event.type, event.source) == ("critical", "task-blocked", name)
    with pytest.raises(RefusedError, match="only one that is running can escalate"):
        workers_run.escalate(team, name, "again")
    (project / "go").touch()
    assert over(team, name) == "escalated"
    assert steps(team, name)[3:] == ["escalated", "escalated"]
    clean(team)


def test_dismissed_is_for_good(team: Team) -> None:
    name = spawn(team, "exec sleep 600")
    assert workers_run.dismiss(team, name, actor="ann")
    assert not workers_run.dismiss(team, name)
    assert workers_run.worker_state(team, name) == "dismissed"
    assert steps(team, name)[3:] == ["dismissed", "worker-dismissed normal", "dismissed"]
    with pytest.raises(RefusedError, match="only one that ended can go on"):
        workers_run.continue_(team, name, "More.")
    clean(team)


def test_one_that_ended_may_be_dismissed(team: Team) -> None:
    name = spawn(team, "echo x")
    assert over(team, name) == "completed"
    workers_run.dismiss(team, name)
    assert workers_run.worker_state(team, name) == "dismissed"
    clean(team)


def test_one_that_ended_goes_on_with_a_message(team: Team, project: Path) -> None:
    name = spawn(team, 'echo "[$(cat)]"')
    assert over(team, name) == "completed"
    first = (project / f".nbs/workers/{name}.log").read_bytes()
    workers_run.continue_(team, name, "And that.")
    assert over(team, name) == "completed"
    assert workers_run.answer(team, name) == "[Do it.\n\nAnd that.]"
    log = (project / f".nbs/workers/{name}.log").read_bytes()
    assert log.startswith(first)
    assert steps(team, name)[5:] == [
        "continued", "running", "worker-spawned normal", "completed", "task-complete high"
    ]  # fmt: skip
    clean(team)


def test_one_with_a_session_goes_on_in_it(team: Team, project: Path) -> None:
    program = project / "agent"
    answer = '{"type":"result","session_id":"s-7","result":"%s / %s"}'
    program.write_text(f'#!/bin/sh\nread -r text\nprintf \'{answer}\' "$*" "$text"\n')
    program.chmod(0o755)
    profile = project / "agent.toml"
    profile.write_text(
        f'argv = ["{program}"]\noutput = "claude-stream-json"\n[takes]\n'
        'resume = ["--resume", "{}"]\nmodel = ["--model", "{}"]\n'
    )
    name = workers_run.spawn(team, "w", str(project), "Do it.", profile=str(profile), model="m")
    assert over(team, name) == "completed"
    assert workers_run.answer(team, name) == "--model m / Do it."
    assert workers_run.session(team, name) == "s-7"
    workers_run.continue_(team, name, "And that.")
    assert over(team, name) == "completed"
    assert workers_run.answer(team, name) == "--model m --resume s-7 / And that."


def test_one_at_work_is_not_told_to_go_on(team: Team) -> None:
    name = spawn(team, "exec sleep 600")
    with pytest.raises(RefusedError, match="its program is at work"):
        workers_run.continue_(team, name, "x")
    workers_run.dismiss(team, name)


# Its files -------------------------------------------------------------------------------------


def test_what_it_appends_to_its_task_file_is_kept(team: Team, project: Path) -> None:
    name = spawn(team, "until [ -e go ]; do sleep 0.01; done; echo x")
    path = project / f".nbs/workers/{name}.md"
    data = path.read_text(encoding="utf-8")
    path.write_text(data.replace(EMPTY_LOG, "Found:"), encoding="utf-8")
    clean(team, taken_in=False)
    team.refresh()
    assert workers_run.findings(team, name) == "Found:"
    with path.open("a", encoding="utf-8") as file:
        file.write("\n- one\n")
    (project / "go").touch()
    assert over(team, name) == "completed"
    assert workers_run.findings(team, name) == "Found:\n\n- one"
    assert parse_worker(path.read_bytes()).state == "completed"
    assert [e.kind for e in team.store.read()].count("worker.written") == 2
    clean(team)
    recover.rebuild(team)
    assert parse_worker(path.read_bytes()).log == "Found:\n\n- one"


def test_what_its_file_claims_is_no_change_of_state(team: Team, project: Path) -> None:
    name = spawn(team, "exec sleep 600")
    path = project / f".nbs/workers/{name}.md"
    claimed = path.read_bytes().replace(b"State: running", b"State: completed")
    path.write_bytes(claimed)
    team.refresh()
    assert workers_run.worker_state(team, name) == "running"
    assert path.read_bytes() == claimed  # its worker's word, until the state changes
    with collect(team.root) as evidence:
        report = judge(evidence)
    (found,) = [f for one in report.outcomes for f in one.findings]
    assert (found.severity, found.check) == ("warning", "worker-lifecycle")
    assert found.message == "claims the state 'completed', and the ledger has running"
    workers_run.dismiss(team, name)
    assert parse_worker(path.read_bytes()).state == "dismissed"
    clean(team)


def test_an_edit_above_its_end_is_no_finding_of_its_own(team: Team, project: Path) -> None:
    name = spawn(team, "echo x")
    assert over(team, name) == "completed"
    path = project / f".nbs/workers/{name}.md"
    path.write_bytes(path.read_bytes().replace(b"Do it.", b"Do that."))
    with collect(team.root) as evidence:
        report = judge(evidence)
    (found,) = [f for one in report.outcomes for f in one.findings]
    assert (found.check, found.where) == ("drift", f"workers/{name}.md")


def test_its_log_is_kept_with_its_end(team: Team, project: Path) -> None:
    name = spawn(team, "echo out; echo err >&2")
    assert over(team, name) == "completed"
    out, err = (project / ".nbs" / path for path in logs_of(name))
    assert (out.read_bytes(), err.read_bytes()) == (b"out\n", b"err\n")
    ended = next(e.data for e in team.store.read() if e.kind == "worker.ended")
    assert [(log["path"], log["bytes"]) for log in ended["logs"]] == [
        (logs_of(name)[0], 4), (logs_of(name)[1], 4)
    ]  # fmt: skip
    out.unlink()
    assert adoption.sync(team).entries == 0
    assert list(workers_run.search(team, name, "out", 0)) == ["out"]
    recover.rebuild(team, evidence=True)
    assert out.read_bytes() == b"out\n"
    clean(team)


def test_a_log_that_is_too_long_is_known_by_its_digest(
    team: Team, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tripod.workers.worker.MAX_LOG", 3)
    name = spawn(team, "echo long")
    assert over(team, name) == "completed"
    assert [e.kind for e in team.store.read()].count("evidence.kept") == 1  # the empty one
    clean(team)


def test_its_log_can_be_searched(team: Team) -> None:
    program = (
        "for n in 1 2 3 4 5 6 7; do printf 'line %s\\033[31m!\\033[0m\\n' $n; done; echo 6 >&2"
    )
    name = spawn(team, program)
    assert over(team, name) == "completed"
    assert list(workers_run.search(team, name, "line [26]!", 0)) == ["line 2!", "--", "line 6!"]
    found = list(workers_run.search(team, name, "[26]", 1))
    assert found == [
        "line 1!", "line 2!", "line 3!", "--", "line 5!", "line 6!", "line 7!", "--", "6"
    ]  # fmt: skip
    assert list(workers_run.search(team, name, "nothing", 50)) == []
    with pytest.raises(BadArgumentError, match="no regular expression"):
        list(workers_run.search(team, name, "(", 50))
    with pytest.raises(NotFoundError, match="has no log"):
        list(workers_run.search(team, "other-1234", "x", 50))


# Names -----------------------------------------------------------------------------------------


def test_a_name_given_again_does_nothing_twice(team: Team, project: Path) -> None:
    name = spawn(team, "echo x >> ran; echo x", name="w-0001")
    assert over(team, name) == "completed"
    assert spawn(team, "echo x >> ran; echo x", name="w-0001") == "w-0001"
    assert (project / "ran").read_text() == "x\n"
    with pytest.raises(RefusedError, match="has another task"):
        spawn(team, "echo x", task="Other.", name="w-0001")
    clean(team)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"slug": "A"}, "slug: "),
        ({"name": "x"}, "is no worker's name"),
        ({"name": "v-0001"}, "does not begin with w-"),
        ({"task": " "}, "task: it is empty"),
        ({"task": "x" * 2**20 + "x"}, "task: more than"),
        ({"folder": "nowhere"}, "folder: nowhere is not a folder"),
        ({"profile": "claude"}, "a program is given twice"),
    ],
)
def test_arguments_that_break_a_rule(team: Team, change: dict[str, Any], problem: str) -> None:
    given: dict[str, Any] = {"slug": "w", "folder": "/", "task": "x", "command": ["true"]} | change
    size = team.store.head().size
    with pytest.raises(BadArgumentError) as refused:
        workers_run.spawn(team, given.pop("slug"), given.pop("folder"), given.pop("task"), **given)
    assert problem in str(refused.value)
    assert team.store.head().size == size


def test_no_such_worker(team: Team) -> None:
    for act in (
        lambda: workers_run.dismiss(team, "w-0001"),
        lambda: workers_run.escalate(team, "w-0001", "why"),
        lambda: workers_run.continue_(team, "w-0001", "more"),
        lambda: workers_run.about(team, "w-0001"),
        lambda: workers_run.session(team, "w-0001"),
    ):
        with pytest.raises(NotFoundError):
            act()
    with pytest.raises(BadArgumentError):
        workers_run.escalate(team, "w-0001", " ")
    with pytest.raises(BadArgumentError):
        workers_run.continue_(team, "w-0001", "")


def test_workers_of_other_tools_are_known_by_their_files(team: Team, project: Path) -> None:
    path = project / ".nbs/workers/old-1234.md"
    path.write_text("# Worker: old\n\n## Task\n\nx\n\n## Status\n\nState: done\n\n## Log\n\nSo.\n")
    (project / ".nbs/workers/old-1234.log").write_text("y\n")
    team.refresh()
    (found,) = workers_run.every(team)
    assert found == workers_run.About("old-1234", "done", running=False, log=2, ours=False)
    assert workers_run.findings(team, "old-1234") == "So."
    with pytest.raises(NotFoundError, match="is run by another tool"):
        workers_run.dismiss(team, "old-1234")


def test_any_command_finds_out_what_became_of_it(team: Team, project: Path) -> None:
    name = spawn(team, "exec sleep 600")
    started = spool_of(team, name).look().started
    assert started is not None
    os.kill(started.wrapper, signal.SIGKILL)
    spool_of(team, name).wait()
    done = run(project, "bus", "check")
    assert (done.code, done.err) == (0, "")
    assert b"[high] " in done.out.splitlines()[0]
    assert b"-nbs-worker-worker-died-" in done.out.splitlines()[0]
    assert run(project, "bus", "check").out.count(b"worker-died") == 1
    assert list((project / ".nbs/spool").iterdir()) == []


def test_files_of_a_run_that_are_none_stop_no_command_and_no_other_worker(
    team: Team, project: Path
) -> None:
    stuck, other = sorted(spawn(team, "echo x", f"Do {number}.") for number in range(2))
    for name in (stuck, other):
        spool_of(team, name).wait()
    path = Path(spool_of(team, stuck).path, "exit.json")
    path.unlink()
    path.mkdir()
    done = run(project, "bus", "check")
    assert (done.code, done.out.count(b"-task-complete-")) == (0, 1)
    assert "what became of the workers was not recorded: " in done.err
    assert f"{path}" in done.err
    assert (workers_run.worker_state(team, stuck), workers_run.worker_state(team, other)) == (
        "running",
        "completed",
    )
    path.rmdir()
    assert run(project, "bus", "check").err == ""
    assert workers_run.worker_state(team, stuck) == "died"


def test_what_it_looked_like_before_can_be_shown(team: Team, project: Path) -> None:
    name = spawn(team, "echo x")
    size = team.store.head().size
    assert over(team, name) == "completed"
    assert b"State: completed" in run(project, "show", "workers").out
    assert b"State: running" in run(project, "show", "workers", "--at", str(size - 1)).out


# Waiting ---------------------------------------------------------------------------------------


def test_a_watch_tells_of_each_that_ends(team: Team, project: Path) -> None:
    first = spawn(team, "until [ -e one ]; do sleep 0.01; done; echo x")
    second = spawn(team, "until [ -e two ]; do sleep 0.01; done; exit 1")
    assert list(workers_run.watch(team, 0.05)) == []
    told = []
    (project / "one").touch()
    for found in workers_run.watch(team):
        told.append((found.name, found.state))
        (project / "two").touch()
    assert told == [(first, "completed"), (second, "failed")]
    assert list(workers_run.watch(team)) == []


def test_only_those_that_are_named_are_looked_after(team: Team) -> None:
    name = spawn(team, "echo x")
    spool_of(team, name).wait()
    team.refresh()
    assert workers_run.worker_state(team, name) == "running"
    workers_run.look_after(team, ["other-1234"])
    assert workers_run.worker_state(team, name) == "running"
    workers_run.look_after(team, [name])
    assert workers_run.worker_state(team, name) == "completed"
