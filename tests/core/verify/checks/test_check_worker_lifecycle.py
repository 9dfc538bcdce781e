"""What a worker may not do, say or leave behind without being named."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import drafts
import pytest

from tripod.agents.jobs import newest
from tripod.agents.spool import Spool
from tripod.errors import RefusedError
from tripod.ledger.kinds.team import team_evidence_kept
from tripod.projections.layout import WORKER_LOG
from tripod.recovery import rebuild as recover
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.act import draft_event_for_act
from tripod.team.team import Team
from tripod.verify.check import Outcome
from tripod.verify.checks.worker_lifecycle import worker_step_problem
from tripod.verify.evidence import collect
from tripod.verify.run import run
from tripod.workers import worker as workers_run
from tripod.workers.worker import worker_step

LOG = "workers/w-0001.log"


def lifecycle(root: Path) -> Outcome:
    with collect(str(root)) as evidence:
        report = run(evidence)
    return next(outcome for outcome in report.outcomes if outcome.check == "worker-lifecycle")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A worker that completed its task."""
    root = tmp_path_factory.mktemp("sound")
    adoption.init(str(root))
    with Team(str(root / ".nbs")) as team:
        workers_run.spawn(team, "w", str(root), "Do it.", command=["echo", "x"], name="w-0001")
        end(team)
    return root


def end(team: Team) -> None:
    found = newest(team.store.db, "worker", "w-0001")
    assert found is not None
    Spool(f"{team.root}/spool/{found.spawn}").wait()
    workers_run.look_after(team)
    assert workers_run.worker_state(team, "w-0001") == "completed"


@pytest.fixture
def root(sound: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(sound, tmp_path / "copy", copy_function=shutil.copy2))


def test_a_worker_that_did_its_task_is_clean(sound: Path) -> None:
    told = lifecycle(sound)
    assert told.verdict == "clean"
    assert told.coverage == {"workers": 1, "steps": 3, "at work": 0, "logs of": 1}


def test_without_workers_there_is_nothing_to_judge(tmp_path: Path) -> None:
    adoption.init(str(tmp_path))
    assert lifecycle(tmp_path).verdict == "not applicable"


@pytest.mark.parametrize(
    ("before", "kind", "state"),
    [
        ("", "worker.spawned", "pending"),
        ("pending", "worker.running", "running"),
        ("pending", "worker.ended", "failed"),
        ("running", "worker.escalated", "escalated"),
        ("escalated", "worker.ended", "escalated"),
        ("dismissed", "worker.ended", "dismissed"),
        ("died", "worker.continued", "pending"),
        ("completed", "worker.dismissed", "dismissed"),
    ],
)
def test_legal_steps(before: str, kind: str, state: str) -> None:
    assert worker_step_problem(before, kind, state) is None


@pytest.mark.parametrize(
    ("before", "kind", "state"),
    [
        ("pending", "worker.spawned", "pending"),
        ("pending", "worker.ended", "completed"),
        ("completed", "worker.running", "running"),
        ("completed", "worker.ended", "completed"),
        ("dismissed", "worker.ended", "completed"),
        ("dismissed", "worker.continued", "pending"),
        ("dismissed", "worker.dismissed", "dismissed"),
        ("escalated", "worker.ended", "failed"),
        ("running", "worker.continued", "pending"),
        ("", "worker.running", "running"),
    ],
)
def test_steps_that_nobody_may_take(before: str, kind: str, state: str) -> None:
    assert worker_step_problem(before, kind, state) == f"{state} after {before or 'nothing'}"


def messages(root: Path, change: Callable[[Team], None]) -> list[str]:
    """What the check says after something was done by other means than the acts."""
    with Team(str(root / ".nbs")) as team:
        change(team)
    return [finding.message for finding in lifecycle(root).findings]


def test_a_state_after_which_it_is_not(root: Path) -> None:
    def change(team: Team) -> None:
        with team.act() as act:
            event = draft_event_for_act(act, "w-0001", "task-failed", "high", "")
            ended = drafts.worker_ended(
                name="w-0001",
                spawn="s",
                state="failed",
                logs=[(LOG, sha256(b"x\n").hexdigest(), 2)],
                event=event.body["name"],
            )
            worker_step(act, ended, event)

    assert messages(root, change) == ["w-0001: failed after completed"]


def test_a_step_that_nobody_was_told_of(root: Path) -> None:
    def change(team: Team) -> None:
        with team.act() as act:
            other = draft_event_for_act(act, "nbs-worker", "worker-died", "high", "")
            gone = drafts.worker_dismissed("w-0001", other.body["name"], "ann")
            worker_step(act, gone, other)

    assert messages(root, change) == [
        "w-0001: no event worker-dismissed tells that it is dismissed"
    ]


def test_a_worker_whose_run_is_over_is_not_at_work(root: Path) -> None:
    def change(team: Team) -> None:
        with team.act() as act:
            act.append([drafts.worker_continued("w-0001", "More.", "ann")])

    assert messages(root, change) == ["w-0001 is pending, and its run is ended"]


def test_a_run_that_goes_on_is_no_end(root: Path) -> None:
    def change(team: Team) -> None:
        with team.act() as act:
            order = drafts.agent_requested(
                spawn="s", role="worker", subject="w-0001", attempt=2, spec=b"{}", actor="ann"
            )
            act.append([order])

    assert messages(root, change) == ["w-0001 is completed, and its run is requested"]


def test_a_worker_without_a_run(root: Path) -> None:
    def change(team: Team) -> None:
        with team.act() as act:
            spawned = drafts.worker_spawned(
                name="v-0001", slug="v", folder="/", task="x", actor="ann"
            )
            act.append([spawned])

    assert messages(root, change) == ["v-0001: no run of its program is recorded"]


def test_a_log_that_grew_after_the_end(root: Path) -> None:
    with (root / ".nbs/workers/w-0001.log").open("a") as log:
        log.write("all is well\n")
    message = "12 bytes were added after its program ended"
    for _ in range(2):  # not taken in yet, then taken in
        assert [finding.message for finding in lifecycle(root).findings] == [message]
        with Team(str(root / ".nbs")) as team:
            adoption.sync(team)


@pytest.mark.parametrize("way", ["unlink", "link"])
@pytest.mark.parametrize("name", ["w-0001.log", "w-0001.err.log"])
def test_a_log_that_went_while_its_program_ran_is_named(
    tmp_path: Path, name: str, way: str
) -> None:
    adoption.init(str(tmp_path))
    go_on = tmp_path / "go-on"
    line = f"echo x; while [ ! -e {go_on} ]; do sleep 0.02; done"
    with Team(str(tmp_path / ".nbs")) as team:
        workers_run.spawn(
            team, "w", str(tmp_path), "Do it.", command=["sh", "-c", line], name="w-0001"
        )
        log = tmp_path / ".nbs/workers" / name
        log.unlink()
        if way == "link":
            log.symlink_to("/dev/null")
        go_on.touch()
        found = newest(team.store.db, "worker", "w-0001")
        assert found is not None
        Spool(f"{team.root}/spool/{found.spawn}").wait()
        workers_run.look_after(team)
    told = lifecycle(tmp_path)
    assert [(f.where, f.message) for f in told.findings] == [
        (f"workers/{name}", "was gone when its program ended")
    ]


@pytest.mark.parametrize("change", ["unlink", "edit"])
def test_a_kept_log_that_is_gone_or_edited_is_named_once(root: Path, change: str) -> None:
    log = root / ".nbs/workers/w-0001.log"
    if change == "unlink":
        log.unlink()
    else:
        log.write_bytes(b"y\n")
    with collect(str(root)) as evidence:
        report = run(evidence)
    found = [(finding.check, finding.where) for o in report.outcomes for finding in o.findings]
    assert found == [("drift", "workers/w-0001.log")]


def test_a_log_too_large_to_be_held_in_memory_is_judged_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tripod.workers.worker.MAX_LOG", 1)
    monkeypatch.setattr("tripod.projections.layout.WORKER_LOG", WORKER_LOG._replace(limit=1))
    monkeypatch.setattr("tripod.verify.evidence._READ_LIMIT", 1)
    adoption.init(str(tmp_path))
    with Team(str(tmp_path / ".nbs")) as team:
        workers_run.spawn(team, "w", str(tmp_path), "Do it.", command=["echo", "x"], name="w-0001")
        end(team)
    assert lifecycle(tmp_path).verdict == "clean"
    with collect(str(tmp_path / ".nbs")) as evidence:
        (drift,) = [o for o in run(evidence).outcomes if o.check == "drift"]
    assert (drift.findings, drift.coverage["not understood"]) == ((), "0 files")
    log = tmp_path / ".nbs/workers/w-0001.log"
    with log.open("ab") as file:
        file.write(b"more\n")
    (message,) = [finding.message for finding in lifecycle(tmp_path).findings]
    assert message == "5 bytes were added after its program ended"


def test_a_log_that_outgrows_what_is_kept_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adoption.init(str(tmp_path))
    with Team(str(tmp_path / ".nbs")) as team:
        workers_run.spawn(team, "w", str(tmp_path), "Do it.", command=["echo", "x"], name="w-0001")
        end(team)
        adoption.sync(team)
        workers_run.continue_(team, "w-0001", "Go on.")
        end(team)
    monkeypatch.setattr("tripod.projections.layout.WORKER_LOG", WORKER_LOG._replace(limit=3))
    with collect(str(tmp_path / ".nbs")) as evidence:
        outcomes = {o.check: o for o in run(evidence).outcomes}
    assert outcomes["drift"].findings == ()
    assert outcomes["worker-lifecycle"].verdict == "clean"
    log = tmp_path / ".nbs/workers/w-0001.log"
    log.write_bytes(b"X" + log.read_bytes()[1:])
    (message,) = [finding.message for finding in lifecycle(tmp_path).findings]
    assert "does not hold what its program wrote" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("unlink", "is gone, and only its digest was kept"),
        ("edit", "does not hold what its program wrote"),
    ],
)
def test_a_log_of_which_only_the_digest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, message: str
) -> None:
    monkeypatch.setattr("tripod.workers.worker.MAX_LOG", 1)
    monkeypatch.setattr("tripod.projections.layout.WORKER_LOG", WORKER_LOG._replace(limit=1))
    adoption.init(str(tmp_path))
    with Team(str(tmp_path / ".nbs")) as team:
        workers_run.spawn(team, "w", str(tmp_path), "Do it.", command=["echo", "x"], name="w-0001")
        end(team)
    log = tmp_path / ".nbs/workers/w-0001.log"
    assert lifecycle(tmp_path).verdict == "clean"
    if change == "unlink":
        log.unlink()
    else:
        log.write_bytes(b"y\n")
    assert [finding.message for finding in lifecycle(tmp_path).findings] == [message]


def go_on(team: Team) -> None:
    workers_run.continue_(team, "w-0001", "More.")
    end(team)


def everything(root: Path) -> list[tuple[str, str, str]]:
    with collect(str(root)) as evidence:
        report = run(evidence)
    return [(f.check, f.where, f.message) for o in report.outcomes for f in o.findings]


@pytest.mark.parametrize("change", ["unlink", "edit", "append", "append and take in"])
def test_going_on_does_not_hide_what_was_done_to_a_log(root: Path, change: str) -> None:
    log = root / ".nbs/workers/w-0001.log"
    if change == "unlink":
        log.unlink()
    else:
        log.write_bytes(b"y\n" if change == "edit" else b"x\ny\n")
    with Team(str(root / ".nbs")) as team:
        if change == "append and take in":
            adoption.sync(team)
        found, size = everything(root), team.store.head().size
        assert found != []
        what = "is gone" if change == "unlink" else "is not what its program left there"
        with pytest.raises(RefusedError, match=f"^workers/w-0001.log {what}: "):
            workers_run.continue_(team, "w-0001", "More.")
        assert team.store.head().size == size
        assert everything(root) == found
        if change in ("unlink", "edit"):
            recover.rebuild(team, evidence=True)
            go_on(team)
            assert log.read_bytes() == b"x\nx\n"
            assert lifecycle(root).verdict == "clean"


def test_what_was_done_to_a_long_log_stops_it_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tripod.workers.worker.MAX_LOG", 1)
    adoption.init(str(tmp_path))
    with Team(str(tmp_path / ".nbs")) as team:
        workers_run.spawn(team, "w", str(tmp_path), "Do it.", command=["echo", "x"], name="w-0001")
        end(team)
        go_on(team)
        (tmp_path / ".nbs/workers/w-0001.log").write_bytes(b"x\ny\n")
        with pytest.raises(RefusedError, match="is not what its program left there"):
            workers_run.continue_(team, "w-0001", "More.")


def forge_end(team: Team, held: bytes | None) -> int:
    """Say that its program ended, and what its log held then; the number of that entry."""
    with team.act() as act:
        logs = []
        if held is not None:
            act.append([team_evidence_kept(LOG, held, 1, None)])
            logs = [(LOG, sha256(held).hexdigest(), len(held))]
        ended = drafts.worker_ended(name="w-0001", spawn="s", state="completed", logs=logs)
        return act.append([ended])[0].seq


@pytest.mark.parametrize(
    ("logs", "problem"),
    [
        ((b"x\n", b"x\n"), None),
        ((b"x\nab", b"x\nabc"), None),
        ((b"x\nab", b"x\ncbc"), "does not begin with the 4 bytes that entry {} says"),
        ((b"x\nab", b"x\ncb"), "does not begin with the 4 bytes that entry {} says"),
        ((b"x\nab", b"x\n"), "held 4 bytes at entry {}, and 2 at entry {}"),
        ((b"x\nab", None), "held 4 bytes at entry {}, and 0 at entry {}"),
    ],
)
def test_a_log_only_grows_from_one_end_to_the_next(
    root: Path, logs: tuple[bytes, bytes | None], problem: str | None
) -> None:
    """Whatever stands in the file now: what was kept at each end tells."""
    with Team(str(root / ".nbs")) as team:
        ends = [forge_end(team, held) for held in logs]
    (root / ".nbs" / LOG).write_bytes(logs[1] or b"")
    found = [f.message for f in lifecycle(root).findings if f.where == LOG]
    assert found == ([] if problem is None else [problem.format(*ends)])


def test_a_long_log_that_is_shorter_at_a_later_end_is_named(root: Path) -> None:
    with Team(str(root / ".nbs")) as team, team.act() as act:
        for size in (9, 8):
            ended = drafts.worker_ended(
                name="w-0001", spawn="s", state="completed", logs=[(LOG, f"{size}" * 64, size)]
            )
            act.append([ended])
    found = [f.message.partition(" at ")[0] for f in lifecycle(root).findings if f.where == LOG]
    assert found[0] == "held 9 bytes"


def test_an_erased_log_is_no_altered_one(root: Path) -> None:
    with Team(str(root / ".nbs")) as team:
        kept = [e.seq for e in team.store.read() if e.stream == f"files/{LOG}"]
        redaction.redact(team, redaction.RedactionRequest(kept, None, "private", "ann"))
        assert (root / ".nbs" / LOG).read_bytes() == b"[redacted]\n"
        assert lifecycle(root).verdict == "clean"
        go_on(team)
    assert (root / ".nbs" / LOG).read_bytes() == b"[redacted]\nx\n"
    assert lifecycle(root).verdict == "clean"


def test_a_task_that_was_erased_stays_a_task(root: Path) -> None:
    with Team(str(root / ".nbs")) as team:
        done = redaction.redact(team, redaction.RedactionRequest((), "Do it", "private", "ann"))
    kinds = {one.kind for one in done.erased}
    assert kinds == {"worker.spawned", "delivered", "bus.published"}
    assert done.left == []
    assert lifecycle(root).verdict == "clean"
    assert b"Do it" not in (root / ".nbs/workers/w-0001.md").read_bytes()
