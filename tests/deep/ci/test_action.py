"""The action for GitHub: each of its steps is run as a runner does it, and read for its rules."""

import json
import os
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import junitparser
import pytest
import yaml
from action_runner import ACTION, STEPS, STRANGE, GitHub, Ran, Runner
from docs.pages import blocks
from git_repo import Git
from replicas import Clone, begun_replica, joined_replica, name_of
from repo.rules import ROOT
from repo.wheels import offline
from warm import search_path

from tripod.verify.peers.refs import OWN

PAGE = (ROOT / "docs/how-to/ci-in-five-minutes.md").read_text(encoding="utf-8")
RECIPES = {
    part.partition("\n")[0]: yaml.safe_load(block.text)
    for part in PAGE.split("\n## ")
    for block in blocks(part)
    if block.language == "yaml"
}
SECONDS = 15
"""The steps on a small team, with the wheels in the cache."""
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


@pytest.fixture(scope="module")
def caches(warm: tuple[Ran, Path]) -> Path:
    """What that first job left in the caches of its repository."""
    return warm[1].parents[2] / "github/caches"


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
def job(tmp_path: Path, ann: Clone) -> Job:
    """Jobs that find the action installed: its command is forked by a server, as that starts."""
    job = Job(tmp_path, {})
    job.venv = tmp_path / "venv"
    job.venv.mkdir()
    (job.venv / "bin").symlink_to(search_path().partition(os.pathsep)[0])
    return job


# What stands in the file --------------------------------------------------------------------------


def test_no_input_is_a_part_of_a_script_and_all_of_others_is_pinned() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    for step in STEPS:
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", step["uses"])
            assert re.search(rf"uses: {step['uses']} # v[0-9]+\.[0-9]+\.[0-9]+\n", text)
        else:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]
            assert step["run"].startswith("set -euo pipefail\n")
            assert not re.search(r'"\$PYTHON" (?!-P )', step["run"]), "it imports the checkout"
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
    job.github.upload("tripod-pins", fooled, head_sha=STRANGE)  # of a tag that is called main
    job.github.upload("tripod-pins", fooled, event="pull_request")  # from main to another branch
    tag, asking = (one["workflow_run"]["id"] for one in job.github.artifacts[-2:])
    remote = Git(ann.remote, made=False)
    (ben,) = (one for one in remote("for-each-ref", "--format=%(refname)").split() if "ben" in one)
    remote("update-ref", "-d", ben)
    lost = job.run(kept)
    assert (lost.failed, lost.outputs["verdict"]) == ("Verify", "findings"), lost.log
    assert "::error title=ledger-missing::" in lost.log
    assert ben.removeprefix(OWN) in lost.summary
    assert f"::Pins that no run of main made are not taken: runs {asking} {tag}." in lost.log
    job.github.artifacts.clear()
    job.github.upload("tripod-pins", fooled, head_sha=STRANGE)
    left = job.run()
    assert (left.failed, left.outputs["verdict"]) == ("Bring the pins of the last run", "")
    job.github.artifacts[0]["expired"] = True
    job.github.upload("another", fooled)
    anew = job.run()
    assert (anew.failed, "The pins of earlier runs expired" in anew.log) == ("", True), anew.log


@pytest.mark.slow
def test_what_is_written_into_inputs_is_never_run(job: Job, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    hostile = (
        f'--help"; touch {canary} #\n$(touch {canary})\n`touch {canary}`\n${{{{ github.token }}}}'
    )
    pins = [name for name in ACTION["inputs"] if name.startswith("pin")]
    others = [name for name in ACTION["inputs"] if name not in ("path", *pins)]
    for names in (["path"], others, *([name] for name in pins)):
        off = {} if names[0] in pins else {"pin": "off"}
        ran = job.run(inputs=dict.fromkeys(names, hostile) | off)
        assert (bool(ran.failed), canary.exists()) == (True, False), names
        if names == others:
            assert ran.outputs["verdict"] == "cannot tell", ran.log


@pytest.mark.slow
def test_no_pin_is_no_answer_where_one_is_required_and_a_host_that_fails_stops_the_job(
    job: Job, ann: Clone, tmp_path: Path
) -> None:
    ran = job.run(inputs={"pin": "required"})
    assert (ran.failed, ran.outputs["exit-code"]) == ("Verify", "3"), ran.log
    assert "no pins at" in ran.log
    bare = Git(tmp_path / "bare")  # an export, in a repository that has no records on refs
    bare("remote", "add", "origin", f"file://{tmp_path}/seed")
    assert ann.run("export", "--bodies", str(bare.root / "record")).code == 0
    ran = job.run(bare.root, inputs={"path": "record"})
    assert (ran.failed, ran.outputs["verdict"], ran.steps[-1]) == ("", "clean", "Verify"), ran.log
    assert "The remote has no record" not in ran.log
    shutil.copytree(bare.root / "record", bare.root, dirs_exist_ok=True)  # as a change could
    ran = job.run(bare.root)
    assert (ran.failed, ran.outputs["verdict"]) == ("", "clean"), ran.log
    assert "::warning title=tripod verify::The remote has no record of a replica" in ran.log
    job.environment = job.environment | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    ran = job.run(bare.root)
    assert (ran.failed, "safe.directory" in ran.log) == ("Fetch the records", True), ran.log
    del job.environment["GIT_TEST_ASSUME_DIFFERENT_OWNER"]
    (tmp_path / "github/artifacts.json").write_text("no JSON")
    ran = job.run()
    assert (ran.failed, ran.outputs["verdict"]) == ("Bring the pins of the last run", "")


@pytest.mark.slow
def test_a_pull_request_is_held_to_the_policy_of_the_branch_that_it_goes_to(
    job: Job, ann: Clone
) -> None:
    ann.git("checkout", "--quiet", "-b", "strict")
    ann.git.commit("tripod.toml", b'[policy]\nrequired = ["pins-extend"]\n')
    ann.git("checkout", "--quiet", "-b", "topic")
    ann.git.commit("tripod.toml", b"[policy]\nrequired = []\n")
    ann.git("push", "--quiet", "origin", "strict", "topic")
    ran = job.run(branch="topic", base="strict", inputs={"pin": "off"})
    assert (ran.failed, ran.outputs["verdict"]) == ("Verify", "findings"), ran.log
    assert "the policy requires this check" in ran.log
    queued = "refs/heads/gh-readonly-queue/strict/pr-7"
    ran = job.run(branch="topic", ref=queued, queue="refs/heads/strict", inputs={"pin": "off"})
    assert (ran.failed, ran.outputs["verdict"]) == ("Verify", "findings"), ran.log
    ran = job.run(branch="topic", base="strict", inputs={"pin": "off"})
    assert ran.summary.startswith("## Decisions")
    ann.git("push", "--quiet", "origin", "topic:refs/tags/origin/strict")  # a short name means it
    ran = job.run(branch="topic", base="strict", inputs={"pin": "off"})
    assert (ran.failed, ran.outputs["verdict"]) == ("Verify", "findings"), ran.log
    ran = job.run(branch="topic", base="strict", inputs={"pin": "off", "since": "origin/strict"})
    assert (ran.outputs["verdict"], "several refs" in ran.log) == ("cannot tell", True), ran.log
    ann.git("checkout", "--quiet", "-b", "other", "main")
    ann.git.commit("pyproject.toml", b'[tool.tripod.policy]\nrequired = ["pins-extend"]\n')
    ann.git("checkout", "--quiet", "-b", "topic-2")
    ann.git.commit("pyproject.toml", b'[project]\nname = "shop"\n')
    ann.git("push", "--quiet", "origin", "other", "topic-2")
    ran = job.run(branch="topic-2", base="other", inputs={"pin": "off"})
    assert (ran.failed, ran.outputs["verdict"]) == ("Verify", "findings"), ran.log
    ran = job.run(branch="other", base="topic-2", inputs={"pin": "off"})
    assert "no tripod.toml, and no [tool.tripod]" not in ran.log
    ann.git("checkout", "--quiet", "-b", "named", "main")
    ann.git.commit("ci/policy.yaml", b"required: [pins-extend]\n")
    ann.git("checkout", "--quiet", "-b", "topic-3")
    ann.git.commit("ci/policy.yaml", b"level: SELF\n")
    ann.git("push", "--quiet", "origin", "named", "topic-3")
    inputs = {"pin": "off", "policy": "ci/policy.yaml"}
    ran = job.run(branch="topic-3", base="named", inputs=inputs)
    assert (ran.failed, ran.outputs["verdict"]) == ("Verify", "findings"), ran.log
    ran = job.run(branch="topic-3", base="main", inputs=inputs)
    assert (ran.failed, ran.outputs["verdict"]) == ("", "clean"), ran.log


@pytest.mark.slow
def test_the_token_of_the_job_fetches_once_where_the_checkout_keeps_none(
    job: Job, tmp_path: Path
) -> None:
    asked: list[list[str]] = []

    class Host(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get_all("Authorization", []))
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    git = Git(tmp_path / "checkout")
    token = "basic eC1hY2Nlc3MtdG9rZW46YS10b2tlbg=="  # x-access-token:a-token
    with ThreadingHTTPServer(("127.0.0.1", 0), Host) as host:
        threading.Thread(target=host.serve_forever, daemon=True).start()
        job.github.url = f"http://127.0.0.1:{host.server_port}"
        git("remote", "add", "origin", f"{job.github.url}/team/shop.git")
        ran = job.run(git.root, inputs={"pin": "off"})
        assert (ran.failed, asked) == ("Fetch the records", [[token]]), ran.log
        header = f"http.{job.github.url}/.extraheader"
        git("config", header, "AUTHORIZATION: basic kept")
        assert job.run(git.root, inputs={"pin": "off"}).failed == "Fetch the records"
        assert asked[1:] == [["basic kept"]]
        host.shutdown()


# What the page says -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_newcomer_gets_the_annotation_on_the_line_and_needs_seconds(
    tmp_path: Path, installed: dict[str, str], warm: tuple[Ran, Path], caches: Path
) -> None:
    """An empty repository, `tripod init`, the workflow of the page, and one bad commit."""
    workflow = RECIPES["GitHub"]
    assert workflow["permissions"] == {"contents": "read", "actions": "read"}
    checkout, ours = workflow["jobs"]["tripod"]["steps"]
    assert (checkout["with"], set(ours["with"]) <= set(ACTION["inputs"])) == (
        {"fetch-depth": 0, "persist-credentials": False}, True,
    )  # fmt: skip
    (tmp_path / "remote.git").mkdir()
    Git(tmp_path / "remote.git", made=False)("init", "--quiet", "--bare", "-b", "main")
    (tmp_path / "eve").mkdir()
    Git(tmp_path / "eve")("remote", "add", "origin", f"file://{tmp_path}/remote.git")
    eve = Clone(tmp_path, "eve")
    eve.said("init")
    eve.git.commit("DECISIONS.md", b"one\ntwo\nthree\n")
    for name in ("hashlib", "json", "pip", "secrets", "tomllib", "venv", "zipfile"):
        eve.git.commit(f"{name}.py", b"raise SystemExit('a module of the checkout was run')\n")
    eve.git("push", "--quiet", "origin", "main")
    eve.said("push")
    job = Job(tmp_path, installed)
    shutil.copytree(caches, job.github.caches, dirs_exist_ok=True)
    clean = job.run(inputs=ours["with"])
    assert (clean.failed, clean.outputs["verdict"]) == ("", "clean"), clean.log
    assert "Keep the wheels" not in clean.steps, "the cache was warm"
    print(f"the steps with a warm cache: {clean.seconds:.1f} s")  # noqa: T201
    assert clean.seconds < SECONDS
    eve.git.commit("DECISIONS.md", b"one\nTWO\nthree\n")
    eve.git("push", "--quiet", "origin", "main")
    bad = job.run(inputs=ours["with"])
    assert (bad.failed, bad.outputs["verdict"]) == ("Verify", "findings")
    assert "\n::error file=DECISIONS.md,line=2,title=append-only::commit " in f"\n{bad.log}"
    assert "DECISIONS.md&#58;2**: append-only" in bad.summary


@pytest.mark.drawn("long")
@pytest.mark.slow
def test_the_job_for_gitlab_does_what_the_page_says(
    ann: Clone, tmp_path: Path, installed: dict[str, str]
) -> None:
    recipe = RECIPES["GitLab"]["tripod"]
    assert recipe["variables"] == {"GIT_DEPTH": "0"}
    assert recipe["cache"]["paths"] == recipe["artifacts"]["paths"] == ["tripod-pins/"]
    asked, pushed = (rule["variables"]["TRIPOD_OPTIONS"] for rule in recipe["rules"])
    pips = {name: text for name, text in installed.items() if name.startswith("PIP")}

    def run(options: str, branch: str = "main", pin: str = "") -> tuple[int, str]:
        """The script of the job, a shell for all lines as there, in a clone of its own."""
        target = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"} if "$CI_" in options else {}
        options = options.replace("$CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")
        work = tmp_path / "gitlab"
        Git(tmp_path, made=False)("clone", "-qb", branch, f"file://{ann.remote}", str(work))
        if (tmp_path / "cached").exists():
            shutil.copytree(tmp_path / "cached", work / "tripod-pins", dirs_exist_ok=True)
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", "\n".join(recipe["script"])],
            cwd=work, capture_output=True, text=True, check=False,
            env=os.environ | pips | target
            | {"PATH": search_path(), "TRIPOD_OPTIONS": options, "TRIPOD_PIN": pin},
        )  # fmt: skip
        reported = work / recipe["artifacts"]["reports"]["junit"]
        if reported.exists():
            report = junitparser.JUnitXml.fromfile(str(reported))
            assert bool(report.failures) == bool(done.returncode)
        if not done.returncode and (work / "tripod-pins").exists():
            shutil.copytree(work / "tripod-pins", tmp_path / "cached", dirs_exist_ok=True)
        shutil.rmtree(work)
        return done.returncode, done.stdout + done.stderr

    refused = "the pins of the last run are not here, or a commit brought what stands there"
    code, said = run(pushed, pin="required")
    assert (code, refused in said) == (3, True), said
    code, said = run(pushed)
    assert (code, "for the first time" in said) == (0, True), said
    code, said = run(pushed, pin="required")
    assert (code, "for the first time" in said) == (0, False), said
    assert run(asked)[0] == 0
    ann.git("checkout", "--quiet", "-b", "brought")
    ann.git.commit(f"tripod-pins/{name_of(ann)}", (tmp_path / "cached" / name_of(ann)).read_bytes())
    ann.git("push", "--quiet", "origin", "brought")
    code, said = run(pushed, "brought")
    assert (code, refused in said) == (3, True), said
    ann.git("checkout", "--quiet", "main")
    ann.git("push", "--quiet", "origin", "brought:refs/tags/origin/main")  # a short name means it
    for name, front in (("tripod.toml", ""), ("pyproject.toml", "tool.tripod.")):
        demand = f"[{front}policy]\nrequired = ['never-read', 'pins-extend']\n"
        ann.git.commit(name, demand.encode())
        ann.git("push", "--quiet", "origin", "main")
        ann.git("checkout", "--quiet", "-B", "topic")
        ann.git.commit(name, b"")
        ann.git("push", "--quiet", "--force", "origin", "topic")
        code, said = run(asked, "topic")
        assert (code, "the policy requires this check" in said) == (1, True), said
        ann.git("checkout", "--quiet", "main")
        ann.git("reset", "--quiet", "--hard", "HEAD~")
        ann.git("push", "--quiet", "--force", "origin", "main")
    Git(ann.remote, made=False)("update-ref", "-d", OWN + name_of(ann))
    code, said = run(pushed)
    assert (code, "ledger-missing" in said) == (1, True), said


def test_the_page_names_each_input_and_output_and_hooks_that_there_are() -> None:
    for name in (*ACTION["inputs"], *ACTION["outputs"]):
        assert f"`{name}`" in PAGE, name
    (used,) = RECIPES["Before the commit"]["repos"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    stages = {hook["id"]: hook["stages"] for hook in hooks}
    for hook in used["hooks"]:
        assert set(hook.get("stages", ())) <= set(stages[hook["id"]])
