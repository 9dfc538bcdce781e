"""The hooks for pre-commit, run by it: a bare clone of this project as the repository of hooks."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from docs.pages import blocks
from doors.inside import run
from git_repo import Git
from repo.rules import ROOT
from repo.wheels import offline

PAGE = (ROOT / "docs/how-to/ci-in-five-minutes.md").read_text(encoding="utf-8")
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
LOG = "DECISIONS.md"


class PreCommit:
    """A user's repository that has our hooks, and the cache of pre-commit on its machine.

    Nothing reaches a network: what the hooks depend on counts as installed already.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hooks = folder / "tripod.git"
        bare = ["git", "clone", "--quiet", "--bare", "--depth=1", f"file://{ROOT}", str(self.hooks)]
        subprocess.run(bare, check=True)
        self.git = Git(folder / "shop")
        installed = offline(folder / "installed", "tripod-ledger", "hatchling", "pre-commit")
        self.environment = (
            os.environ
            | installed
            | {
                "HOME": str(folder),
                "PRE_COMMIT_HOME": str(folder / "cache"),
                "VIRTUALENV_OVERRIDE_APP_DATA": str(folder / "virtualenv"),
                "TRIPOD_HOME": str(folder / "keys"),
                "TRIPOD_AS": "ann",
            }
        )

    def use(self, *hooks: dict[str, object], **front: object) -> None:
        """Stage a configuration that has these hooks, at the newest commit of the clone."""
        head = Git(self.hooks, made=False)("rev-parse", "HEAD")
        repository = {"repo": str(self.hooks), "rev": head, "hooks": list(hooks)}
        config = yaml.safe_dump(front | {"repos": [repository]}).encode()
        self.git.write(".pre-commit-config.yaml", config)
        self.git("add", ".pre-commit-config.yaml")

    def run(self, *words: str) -> tuple[int, str]:
        """``pre-commit run``: its exit code and what it prints."""
        return self._run(sys.executable, "-m", "pre_commit", *words)

    def commit(self, message: str) -> tuple[int, str]:
        """``git commit`` of what is staged, with the hooks that pre-commit installed."""
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
        return self._run("git", *who, "commit", "--quiet", "-m", message)

    def _run(self, *command: str) -> tuple[int, str]:
        done = subprocess.run(
            command, cwd=self.git.root, env=self.environment, capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> PreCommit:
    """A repository whose hooks are installed: one environment for both, as pre-commit makes it."""
    shop = PreCommit(tmp_path_factory.mktemp("pre-commit"))
    shop.git.commit(LOG, b"one\ntwo\n")
    (page,) = (part for part in PAGE.split("\n## ") if part.startswith("Before the commit"))
    (block,) = blocks(page)
    front = yaml.safe_load(block.text)
    (repository,) = front.pop("repos")
    shop.use(*repository["hooks"], **front)
    shop.git("commit", "--quiet", "-m", "Use hooks")
    code, said = shop.run("install", "--install-hooks")
    assert code == 0, said
    assert {"pre-commit", "pre-push"} <= {
        one.name for one in (shop.git.root / ".git/hooks").iterdir()
    }
    return shop


def test_every_hook_is_a_command_of_ours_that_is_always_run() -> None:
    assert [hook["id"] for hook in HOOKS] == ["tripod-verify", "tripod-grow-only"]
    for hook in HOOKS:
        assert hook["entry"].split()[0] in {
            point.name for point in metadata.distribution("tripod-ledger").entry_points
        }
        assert (hook["language"], hook["always_run"], hook["pass_filenames"]) == (
            "python", True, False,
        )  # fmt: skip


@pytest.mark.slow
def test_the_hooks_refuse_a_commit_and_let_the_next_one_through(shop: PreCommit) -> None:
    git = shop.git
    for words in (("init",), ("chat", "create", "live")):
        assert run(git.root, *words).code == 0
    git.write(LOG, b"one\n2\n")
    git("add", LOG)
    head = git("rev-parse", "HEAD")
    code, said = shop.commit("Tidy up")
    assert (code, git("rev-parse", "HEAD")) == (1, head), said
    assert f"{LOG}:2: append-only: what is staged: line 2 of the version before it" in said
    git("rm", "--quiet", "--cached", LOG)
    code, said = shop.commit("Remove it")
    assert (code, "what is staged: it was removed" in said) == (1, True), said

    git.write(LOG, b"one\ntwo\nthree\n")
    git("add", LOG)
    code, said = shop.commit("Append")
    assert (code, git("show", f"HEAD:{LOG}")) == (0, "one\ntwo\nthree"), said

    (git.root / ".nbs/chat/live.chat").write_bytes(b"mine\n")
    code, said = shop.run("run", "tripod-verify", "--hook-stage", "pre-push")
    assert (code, "Failed" in said) == (1, True), said

    shop.use({"id": "tripod-grow-only"})  # without the names of files
    code, said = shop.run("run", "tripod-grow-only")
    assert (code, "--staged goes with --grow-only FILE" in said) == (1, True), said
