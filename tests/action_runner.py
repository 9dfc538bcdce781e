"""Runs the steps of our action as GitHub's runner does, on this machine and without a network.

Each ``run`` is executed by the shell that it names, with the variables that a runner sets. What the
action takes from others is a stand-in that does what its own page says: ``setup-python``, ``cache``
and ``upload-artifact``; and of the program ``gh`` the five calls that are made of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from repo.rules import ROOT

__all__ = ["ACTION", "STEPS", "STRANGE", "GitHub", "Ran", "Runner"]

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_GH = """\
#!{python}
import json, os, pathlib, sys
kept = pathlib.Path({kept!r})
match sys.argv[1:]:
    case ["api", "--paginate", "--jq", ".artifacts[]", url]:
        name = url.partition("name=")[2].partition("&")[0]
        for one in json.loads((kept / "artifacts.json").read_text()):
            if one["name"] == name:
                print(json.dumps({{key: value for key, value in one.items() if key != "event"}}))
    case ["api", "--jq", ".object.sha", "repos/team/shop/git/ref/heads/main"]:
        print({tip!r})
    case ["api", "--jq", ".status", url]:
        tip, _, commit = url.partition("/compare/")[2].partition("?")[0].partition("...")
        assert tip == {tip!r}, "a name may be that of a tag"
        print("diverged" if commit in {strange!r} else "behind")
    case ["api", "--jq", ".event", url]:
        number = int(url.partition("/actions/runs/")[2])
        made = json.loads((kept / "artifacts.json").read_text())
        print(*(one["event"] for one in made if one["workflow_run"]["id"] == number))
    case ["api", url]:
        sys.stdout.buffer.write((kept / url.split("/")[-2]).read_bytes())
    case other:
        sys.exit(f"gh: {{other}}")
"""


STRANGE = "d" * 40
"""A commit that the default branch does not hold."""


class Ran(NamedTuple):
    """What a job did: the action's outputs, what was printed, the steps that ran, and the time."""

    outputs: dict[str, str]
    log: str
    steps: list[str]
    failed: str
    seconds: float
    summary: str


class GitHub:
    """What stays between runs: the artifacts of a repository, and its caches."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.caches = folder, folder / "caches"
        self.url = "https://github.com"
        self.caches.mkdir(parents=True)
        self.artifacts: list[dict[str, Any]] = []
        self._numbers = count(1)
        (folder / "bin").mkdir()
        gh = folder / "bin/gh"
        gh.write_text(
            _GH.format(python=sys.executable, kept=str(folder), strange=[STRANGE], tip="e" * 40)
        )
        gh.chmod(0o755)
        self._listed()

    def upload(self, name: str, path: Path, event: str = "push", **run: Any) -> None:
        """Keep the files in a folder as an artifact of a run of ``main`` unless ``run`` differs."""
        number = next(self._numbers)
        made = shutil.make_archive(str(self.folder / "zip"), "zip", path)
        Path(made).rename(self.folder / str(number))
        usual = {"head_branch": "main", "repository_id": 7, "head_repository_id": 7}
        usual |= {"id": 1000 + number, "head_sha": "a" * 40}
        self.artifacts.append(
            {"id": number, "name": name, "expired": False, "workflow_run": usual | run}
            | {"created_at": f"2026-11-27T10:00:{number:02}Z", "event": event}
        )
        self._listed()

    def _listed(self) -> None:
        (self.folder / "artifacts.json").write_text(json.dumps(self.artifacts))


class Runner:
    """A runner that has checked a repository out at ``workspace``."""

    def __init__(self, github: GitHub, folder: Path, installed: dict[str, str]) -> None:
        self.github, self.folder, self.installed = github, folder, installed
        self.temp = folder / "temp"
        self.temp.mkdir(parents=True)

    def run(
        self,
        workspace: Path,
        inputs: dict[str, str] | None = None,
        *,
        base: str = "",
        head: str = "",
        queue: str = "",
        ref: str = "refs/heads/main",
        skip: tuple[str, ...] = (),
    ) -> Ran:
        """Run all steps; ``base`` is the branch that a pull request goes to, ``head`` its fork.

        ``queue`` is the ref that a queue of merges goes to.
        """
        known = {f"inputs.{name}": one["default"] for name, one in ACTION["inputs"].items()}
        known |= {f"inputs.{name}": text for name, text in (inputs or {}).items()}
        known |= {
            "runner.temp": str(self.temp),
            "runner.os": "Linux",
            "runner.arch": "X64",
            "github.token": "a-token",
            "github.event.repository.default_branch": "main",
            "github.event.pull_request.head.repo.full_name": head,
            "github.event.merge_group.base_ref": queue,
        }
        ran, log, failed, began, summary = [], "", "", time.monotonic(), self.folder / "summary"
        summary.write_text("")
        for step in STEPS:
            if step["name"] in skip or not self._wanted(step, known):
                continue
            ran.append(step["name"])
            environment = self._environment(step, known, base, ref, summary)
            code, said = self._step(step, known, environment, workspace)
            log += said
            if code:
                failed = step["name"]
                break
        given = {name: _filled(one["value"], known) for name, one in ACTION["outputs"].items()}
        return Ran(given, log, ran, failed, time.monotonic() - began, summary.read_text())

    def _wanted(self, step: dict[str, Any], known: dict[str, str]) -> bool:
        found = _EXPRESSION.fullmatch(step.get("if", "${{ inputs.pin != '' }}"))
        assert found, step
        name, sign, text = re.fullmatch(r"([\w.-]+) (==|!=) '(.*)'", found[1]).groups()  # type: ignore[union-attr]
        return bool((known.get(name, "") == text) == (sign == "=="))

    def _environment(
        self, step: dict[str, Any], known: dict[str, str], base: str, ref: str, summary: Path
    ) -> dict[str, str]:
        output = self.folder / "output"
        output.write_text("")
        given = {name: _filled(text, known) for name, text in step.get("env", {}).items()}
        own = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("GIT", "PYTHON"))
        }
        return own | self.installed | {
            "PATH": f"{self.github.folder / 'bin'}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_REPOSITORY": "team/shop",
            "GITHUB_SERVER_URL": self.github.url,
            "GITHUB_BASE_REF": base,
            "GITHUB_REF": "refs/pull/7/merge" if base else ref,
            "RUNNER_TEMP": str(self.temp),
        } | given  # fmt: skip

    def _step(
        self, step: dict[str, Any], known: dict[str, str], environment: dict[str, str], here: Path
    ) -> tuple[int, str]:
        if "uses" in step:
            given = {name: _filled(text, known) for name, text in step["with"].items()}
            said = self._used(step["uses"].partition("@")[0], given)
            known |= {f"steps.{step.get('id')}.outputs.{name}": text for name, text in said.items()}
            return 0, ""
        script = self.folder / "script.sh"
        script.write_text(step["run"])
        assert step["shell"] == "bash"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, text=True, check=False, timeout=300,
        )  # fmt: skip
        lines = iter(Path(environment["GITHUB_OUTPUT"]).read_text().split("\n")[:-1])
        for line in lines:
            name, sign, value = re.fullmatch(r"([\w-]+)(=|<<)(.*)", line).groups()  # type: ignore[union-attr]
            if sign == "<<":
                value = "\n".join(iter(lines.__next__, value))
            known[f"steps.{step.get('id')}.outputs.{name}"] = value
        return done.returncode, done.stdout

    def _used(self, action: str, given: dict[str, str]) -> dict[str, str]:
        if action == "actions/setup-python":
            return {"python-path": sys.executable, "python-version": "3.12.1"}
        path = Path(given["path"])
        if action.startswith("actions/cache/"):
            kept = self.github.caches / given["key"]
            if action.endswith("/save"):
                shutil.copytree(path, kept)
            elif kept.exists():
                shutil.copytree(kept, path)
                return {"cache-hit": "true"}
        else:
            assert action == "actions/upload-artifact"
            assert any(path.iterdir()), "if-no-files-found: error"
            self.github.upload(given["name"], path)
        return {}


def _filled(text: str, known: dict[str, str]) -> str:
    """A text with the value of each expression; one that is not known is empty, as there."""
    return _EXPRESSION.sub(lambda found: known.get(found[1], ""), text)
