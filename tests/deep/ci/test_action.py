"""The action for GitHub: each of its steps is run as a runner does it, and read for its rules."""

import json
import re
import shutil
from pathlib import Path

import pytest
from action_runner import ACTION, STEPS, GitHub, Ran, Runner
from git_repo import Git
from replicas import Clone, begun_replica, joined_replica, name_of
from repo.wheels import offline

from tripod.verify.peers.refs import OWN

ONCE = ("Name the version", "Bring the wheels of this version", "Install", "Keep the wheels")
"""Steps that need not be repeated where the virtual environment is there."""


class Job:
    """A team's repository on a host, and jobs of its workflow, each on a fresh clone."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.github = GitHub(folder / "github")
        self.jobs = 0
        self.venv: Path | None = None

    def run(self, clone: Path | None = None, *, branch: str = "main", **how: object) -> Ran:
        """A job that checks a branch out with all of its history, and runs the action."""
        self.jobs += 1
        runner = Runner(self.github, self.folder / f"job-{self.jobs}", self.environment)
        workspace = clone or self.folder / f"job-{self.jobs}/shop"
        if clone is None:
            checkout = Git(workspace, made=False)
            workspace.mkdir()
            checkout("clone", "--quiet", "-b", branch, f"file://{self.folder}/remote.git", ".")
        if self.venv is not None:
            (runner.temp / "tripod-venv").symlink_to(self.venv)
            how.setdefault("skip", ONCE)
        ran = runner.run(workspace, **how)  # type: ignore[arg-type]
        if "Install" in ran.steps and ran.failed != "Install":
            self.venv = runner.temp / "tripod-venv"
        return ran


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the action depends on counts as installed on the machine."""
    folder = tmp_path_factory.mktemp("installed")
    return offline(folder / "site", "tripod-ledger", "hatchling")


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory, installed: dict[str, str]) -> tuple[Ran, Path]:
    """The first job of all, with an empty cache, and the environment that it installed."""
    folder = tmp_path_factory.mktemp("warm")
    job = Job(folder, installed)
    Clone(folder, "ann")
    ran = job.run(inputs={"pin": "off"})
    assert job.venv is not None, ran.log
    assert list((job.github.caches).glob("tripod-Linux-X64-3.12.1-*/tripod_ledger-*.whl"))
    return ran, job.venv


@pytest.fixture
def ann(tmp_path: Path) -> Clone:
    """A team whose default branch has a file that must only grow, and Ann's pushed record."""
    seed = Git(tmp_path / "seed")
    seed.commit("DECISIONS.md", b"one\ntwo\n")
    seed("clone", "--quiet", "--bare", str(seed.root), str(tmp_path / "remote.git"))
    ann = begun_replica(tmp_path, "ann")
    ann.push()
    return ann


@pytest.fixture
def job(tmp_path: Path, ann: Clone, installed: dict[str, str], warm: tuple[Ran, Path]) -> Job:
    job = Job(tmp_path, installed)
    job.venv = warm[1]
    return job


# What stands in the file --------------------------------------------------------------------------


def test_no_input_is_a_part_of_a_script_and_all_of_others_is_pinned() -> None:
    text = (Path(__file__).parents[3] / "action.yml").read_text(encoding="utf-8")
    for step in STEPS:
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", step["uses"])
            assert re.search(rf"uses: {step['uses']} # v[0-9]+\.[0-9]+\.[0-9]+\n", text)
        else:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]
            assert step["run"].startswith("set -euo pipefail\n")
    for name, one in ACTION["inputs"].items():
        assert one["description"]
        assert (
            name.startswith("pin-")
            or name == "pin"
            or any(f"inputs.{name} " in str(step.get("env")) for step in STEPS)
        ), f"nothing reads {name}"
    assert set(ACTION["outputs"]) == {"verdict", "exit-code", "head", "sarif"}


# What it does -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_first_job_installs_and_finds_nothing_to_judge(warm: tuple[Ran, Path]) -> None:
    ran, _ = warm
    assert (ran.failed, ran.outputs["verdict"], ran.outputs["exit-code"]) == (
        "Verify", "cannot tell", "3",
    ), ran.log  # fmt: skip


@pytest.mark.slow
def test_records_are_judged_and_their_pins_kept_by_the_default_branch_alone(
    job: Job, ann: Clone, tmp_path: Path
) -> None:
    first = job.run()
    assert (first.failed, first.outputs["verdict"]) == ("", "clean"), first.log
    assert first.steps[-1] == "Keep the pins"
    size, root, ref = first.outputs["head"].split(" ")
    assert (int(size) > 5, len(root)) == (True, 64)
    assert ref == f"refs/tripod-remotes/origin/{name_of(ann)}"
    sarif = json.loads(Path(first.outputs["sarif"]).read_text())
    assert sarif["runs"][0]["invocations"][0]["executionSuccessful"] is True
    assert first.summary.startswith("## tripod verify: clean")
    assert "No earlier run of the default branch kept pins" in first.log
    ann.git("checkout", "--quiet", "-b", "topic")
    ann.git("push", "--quiet", "origin", "topic")
    joined_replica(tmp_path, "ben").push()
    asked = job.run(branch="topic", base="main", head="eve/shop")
    assert (asked.failed, asked.steps[-1]) == ("", "Verify"), asked.log
    assert "The pull request comes from a fork" in asked.log
    assert len(job.github.artifacts) == 1
    assert job.run(branch="topic", ref="refs/heads/topic").steps[-1] == "Verify"
    again = job.run(inputs={"pin": "required"})
    assert (again.failed, len(job.github.artifacts)) == ("", 2), again.log
    assert len(again.outputs["head"].split("\n")) == 2

    # Ben's record goes, on a runner that keeps its clones as well. Others offer a pin that suits.
    kept = tmp_path / "kept"
    shutil.copytree(job.folder / f"job-{job.jobs}/shop", kept)
    fooled = tmp_path / "fooled"
    fooled.mkdir()
    shutil.copy(tmp_path / f"job-{job.jobs}/temp/tripod-pins" / name_of(ann), fooled)
    job.github.upload("tripod-pins", fooled, head_repository_id=8)
    job.github.upload("tripod-pins", fooled, head_branch="topic")
    remote = Git(ann.remote, made=False)
    (ben,) = (one for one in remote("for-each-ref", "--format=%(refname)").split() if "ben" in one)
    remote("update-ref", "-d", ben)
    for clone in (None, kept):
        lost = job.run(clone)
        assert (lost.failed, lost.outputs["verdict"]) == ("Verify", "findings"), lost.log
        assert "::error title=ledger-missing::" in lost.log
        assert ben.removeprefix(OWN) in lost.summary
        assert "Keep the pins" not in lost.steps


@pytest.mark.slow
def test_what_is_written_into_inputs_is_never_run(job: Job, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    hostile = f'"; touch {canary} #\n$(touch {canary})\n`touch {canary}`\n${{{{ github.token }}}}'
    pins = [name for name in ACTION["inputs"] if name.startswith("pin")]
    others = [name for name in ACTION["inputs"] if name not in ("path", *pins)]
    for names in (["path"], others, *([name] for name in pins)):
        off = {} if names[0] in pins else {"pin": "off"}
        ran = job.run(inputs=dict.fromkeys(names, hostile) | off)
        assert (bool(ran.failed), canary.exists()) == (True, False), names
        if names == others:
            assert ran.outputs["verdict"] == "cannot tell", ran.log
    option = job.run(inputs={"path": "--help", "pin": "off"})
    assert (option.failed, option.outputs["verdict"]) == ("Verify", "cannot tell"), option.log


@pytest.mark.slow
def test_no_pin_is_no_answer_where_one_is_required_and_a_host_that_fails_stops_the_job(
    job: Job, tmp_path: Path
) -> None:
    ran = job.run(inputs={"pin": "required"})
    assert (ran.failed, ran.outputs["exit-code"]) == ("Verify", "3"), ran.log
    assert "no pins at" in ran.log
    (tmp_path / "github/artifacts.json").write_text("no JSON")
    ran = job.run()
    assert (ran.failed, ran.outputs["verdict"]) == ("Bring the pins of the last run", "")
