"""Runs of agents in the ledger: recorded before, at, and after; taken up where others left off."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tripod.agents import jobs, spec, spool, wrapper
from tripod.agents.jobs import Attempt, Job, JobHooks
from tripod.agents.spec import Parameters, SpawnResult, SpawnSpec
from tripod.agents.spool import RUNNING
from tripod.ledger.kinds import agents
from tripod.projections.engine import source_of
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.act import Act
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge


@pytest.fixture
def team(tmp_path: Path) -> Any:
    adoption.init(str(tmp_path))
    with Team(str(tmp_path / ".nbs")) as opened:
        yield opened


class Noting(JobHooks):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def requested(self, act: Act, run: Attempt) -> tuple[int, ...]:  # noqa: ARG002 - as JobHooks has it
        self.told.append(f"requested {run.attempt}")
        return (1,)

    def started(self, act: Act, run: Attempt) -> None:  # noqa: ARG002 - the same
        self.told.append(f"started {run.attempt}")

    def ended(self, act: Act, run: Attempt, result: SpawnResult) -> None:  # noqa: ARG002 - the same
        self.told.append(f"ended {run.attempt} {result.status}")

    def abandoned(self, act: Act, run: Attempt) -> None:  # noqa: ARG002 - the same
        self.told.append(f"abandoned {run.attempt}")


def errand(*argv: str, stdin: bytes = b"", **more: Any) -> Job:
    return Job("role", "subject", lambda _: SpawnSpec(argv=argv, stdin=stdin, **more), (0,))


def kinds(team: Team) -> list[str]:
    return [e.kind for e in team.store.read() if e.stream.startswith("agents/")]


WHOLE = ["agent.requested", "delivered", "agent.started", "agent.ended"]


def test_a_run_is_recorded_before_at_and_after(team: Team) -> None:
    told = Noting()
    ordered, result = asyncio.run(jobs.run(team, errand("cat", stdin=b"hello"), hooks=told))
    assert kinds(team) == WHOLE
    assert (result.status, result.answer.text, result.stdout) == ("ok", "hello", b"hello")
    assert told.told == ["requested 1", "started 1", "ended 1 ok"]
    entries = {e.kind: e.data for e in team.store.read() if e.stream.startswith("agents/")}
    assert entries["delivered"]["content"] == {"text": "hello"}
    assert entries["delivered"]["sources"] == [0, 1]
    assert entries["agent.started"]["pid"] > 0
    assert (ordered.attempt, ordered.state) == (1, "ended")
    assert list(Path(team.root, "spool").iterdir()) == []
    with collect(team.root) as evidence:
        assert judge(evidence).exit_code == 0


def test_what_was_done_is_not_done_again(team: Team) -> None:
    first = asyncio.run(jobs.run(team, errand("echo", "x")))
    size = team.store.head().size
    assert asyncio.run(jobs.run(team, errand("echo", "x"))) == first
    assert asyncio.run(jobs.run(team, errand("echo", "another order"))) == first
    assert team.store.head().size == size


def test_one_that_failed_is_tried_again_on_demand_alone(team: Team) -> None:
    asyncio.run(jobs.run(team, errand("true")))
    ordered, result = asyncio.run(jobs.run(team, errand("echo", "x"), first=2))
    assert (ordered.attempt, result.status) == (2, "ok")
    assert kinds(team) == WHOLE * 2


def test_all_that_a_run_gives_stands_in_the_ledger(team: Team) -> None:
    program = """
import json, sys
sys.stderr.write("odd")
print(json.dumps({"type": "result", "result": "Yes.", "session_id": "s", "total_cost_usd": 0.5,
                  "usage": {"input_tokens": 3}}))
"""
    order = errand(
        sys.executable,
        "-c",
        program,
        output="claude-stream-json",
        parameters=Parameters(model="m", more={"turns": "3"}),
    )
    ordered, result = asyncio.run(jobs.run(team, order))
    assert (result.answer.text, result.answer.session, result.answer.cost) == (
        "Yes.",
        "s",
        "0.5000",
    )
    assert (result.answer.usage, result.stderr) == ({"input_tokens": 3}, b"odd")
    assert result.unsupported_params == ("model", "turns")
    assert jobs.recorded(team, ordered) == result


def test_too_much_to_keep_is_known_by_its_digest(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "KEPT_LIMIT", 3)
    ordered, result = asyncio.run(jobs.run(team, errand("echo", "long")))
    assert (result.status, result.stdout) == ("ok", b"")
    body = next(e.data for e in team.store.read() if e.kind == "agent.ended")
    assert (body["stdout"].keys(), body["stdout"]["bytes"]) == ({"bytes", "digest"}, 5)
    with collect(team.root) as evidence:
        assert judge(evidence).exit_code == 0
    assert jobs.recorded(team, ordered).status == "ok"


# Others ----------------------------------------------------------------------------------------


def begin(team: Team, order: Job, told: JobHooks) -> Attempt:
    """Have it begin, and be gone."""
    assert jobs.attempt_job(team, order, 1, told)
    ordered = jobs.newest(team.store.db, "role", "subject")
    assert ordered is not None
    return ordered


def test_a_run_that_another_began_is_adopted(team: Team, tmp_path: Path) -> None:
    told = Noting()
    order = errand("sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo x")
    ordered = begin(team, order, told)
    assert not jobs.settle_job(team, ordered, told)
    assert not jobs.attempt_job(team, order, 1, told)
    (tmp_path / "go").touch()
    adopted, result = asyncio.run(jobs.run(team, order, hooks=told))
    assert (adopted.spawn, result.answer.text) == (ordered.spawn, "x")
    assert kinds(team) == WHOLE
    assert told.told == ["requested 1", "started 1", "ended 1 ok"]


def test_a_run_that_ended_meanwhile_is_taken_in(team: Team) -> None:
    ordered = begin(team, errand("echo", "x"), JobHooks())
    jobs.spool_of_job(team, ordered.spawn).wait()
    told = Noting()
    assert jobs.settle_job(team, ordered, told)
    assert told.told == ["ended 1 ok"]
    assert kinds(team) == WHOLE


def test_one_that_is_lost_is_tried_again_and_not_for_ever(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[int] = []
    monkeypatch.setattr(spool.Spool, "launch", lambda *_: launches.append(1), raising=True)
    told = Noting()
    ordered, result = asyncio.run(jobs.run(team, errand("echo", "x"), hooks=told))
    assert (ordered.attempt, ordered.state, len(launches)) == (2, "abandoned", 2)
    assert (result.status, result.problem) == ("killed", jobs.LOST_REASON)
    assert told.told == ["requested 1", "abandoned 1", "requested 2", "abandoned 2"]


def test_two_coordinators_run_it_once(team: Team, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    order = errand("sh", "-c", f"echo x >> {mark}; echo done")

    async def both() -> list[tuple[Attempt, SpawnResult]]:
        with Team(team.root) as other:
            return list(await asyncio.gather(jobs.run(team, order), jobs.run(other, order)))

    first, second = asyncio.run(both())
    assert first == second
    assert mark.read_text() == "x\n"
    assert kinds(team) == WHOLE


def test_who_is_slower_waits_for_who_has_the_lock(team: Team) -> None:
    order = errand("echo", "x")
    name = spec.spec_spawn_id("role", "subject", 1, spec.described_spec(order.spec(1)))
    folder = jobs.spool_of_job(team, name)

    async def wait_and_do() -> tuple[Attempt, SpawnResult]:
        with folder.held() as lock:
            assert lock is not None
            task = asyncio.ensure_future(jobs.run(team, order))
            await asyncio.sleep(0.05)
            assert not task.done()
        return await task

    assert asyncio.run(wait_and_do())[1].answer.text == "x"
    assert kinds(team) == WHOLE


def test_being_cancelled_is_recorded(team: Team) -> None:
    order = errand("sleep", "600")

    async def cancel_it() -> None:
        task = asyncio.ensure_future(jobs.run(team, order))
        # the ledger has no asyncio.Event to wait for
        while (found := jobs.newest(team.store.db, "role", "subject")) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert jobs.spool_of_job(team, found.spawn).look().state == RUNNING
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_it())
    body = next(e.data for e in team.store.read() if e.kind == "agent.ended")
    assert (body["status"], body["problem"]) == ("killed", "it was ended because it was told to")


def test_folders_of_no_run_are_swept(team: Team) -> None:
    ordered = begin(team, errand("sleep", "600"), JobHooks())
    stray = jobs.spool_of_job(team, "5" * 32)
    with stray.held():
        jobs.sweep(team)
        assert Path(stray.path).exists()
    jobs.sweep(team)
    assert not Path(stray.path).exists()
    going_on = jobs.spool_of_job(team, ordered.spawn)
    assert Path(going_on.path).exists()
    going_on.cancel()
    going_on.wait()
    assert jobs.settle_job(team, ordered, JobHooks())


def test_what_is_no_folder_of_a_run_is_left_alone(team: Team, tmp_path: Path) -> None:
    spools, theirs = Path(team.root, "spool"), tmp_path / "theirs"
    for folder in (theirs / ".nbs", spools / "notes"):
        folder.mkdir(parents=True)
    (spools / ("5" * 32)).symlink_to(theirs)
    (spools / ("6" * 32)).write_bytes(b"a file")
    jobs.sweep(team)
    assert len(list(spools.iterdir())) == 3
    assert [path.name for path in theirs.iterdir()] == [".nbs"]


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"\xff",
        b'{"child": 1}',
        (
            b'{"argv_sha256": "x", "child": 2, "child_start": 0, "wrapper": 2, "wrapper_start": 0,'
            b' "stderr_from": 0, "stdout_from": 0}'
        ),
        b'{"argv_sha256": "' + b"0" * 64 + b'", "child": -1, "child_start": 0, "wrapper": -1,'
        b' "wrapper_start": 0, "stderr_from": 0, "stdout_from": 0}',
        b'{"outcome": "won"}',
        b'{"outcome": ["exited"]}',
        b'{"outcome": "exited", "reason": "\\ud800"}',
    ],
)
def test_what_others_wrote_in_place_of_a_wrapper_is_nothing(team: Team, data: bytes) -> None:
    ordered = begin(team, errand("sleep", "600"), JobHooks())
    run = jobs.spool_of_job(team, ordered.spawn)
    right = run.look()
    assert right.started is not None
    Path(run.path, "exit.json").write_bytes(data)
    assert run.look() == right
    Path(run.path, "started.json").write_bytes(data)
    assert run.look() == (RUNNING, None, None)
    assert not run.cancel()
    assert not jobs.settle_job(team, ordered, JobHooks())
    os.kill(right.started.wrapper, signal.SIGTERM)
    run.wait()
    assert jobs.settle_job(team, ordered, JobHooks())


def test_who_gives_a_run_up_that_somebody_else_just_settled_looks_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = begin(team, errand("sleep", "600"), JobHooks())
    run = jobs.spool_of_job(team, ordered.spawn)
    started = run.look().started
    assert started is not None
    os.kill(started.wrapper, signal.SIGKILL)
    run.wait()
    before = kinds(team)
    with monkeypatch.context() as racing:
        real = wrapper.write_json

        def late(path: str, value: dict[str, Any]) -> None:
            run.remove()
            real(path, value)

        racing.setattr(wrapper, "write_json", late)
        assert not jobs.settle_job(team, ordered, JobHooks())
    assert kinds(team) == before
    assert jobs.settle_job(team, ordered, JobHooks())
    assert kinds(team) == [*before, "agent.abandoned"]


# Afterwards ------------------------------------------------------------------------------------


def test_what_an_agent_was_given_and_said_can_be_erased(team: Team) -> None:
    secret = "the password is swordfish"
    ordered, _ = asyncio.run(jobs.run(team, errand("cat", secret, stdin=secret.encode())))
    with Team(team.root) as other:
        done = redaction.redact(other, redaction.RedactionRequest((), secret, "private", "ann"))
    kinds = {one.kind for one in done.erased}
    assert kinds == {"agent.requested", "agent.ended", "delivered"}
    assert done.left == []
    with Team(team.root) as other:
        assert source_of(other.store).body(ordered.seq)["spec"] == {"text": "[redacted]"}
        assert jobs.recorded(other, ordered).status == "nonzero"
    with collect(team.root) as evidence:
        assert judge(evidence).exit_code == 0
