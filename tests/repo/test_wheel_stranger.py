"""A stranger installs the wheel and learns which line of a session read ``.env``, as in README."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from docs.pages import blocks, fits, steps
from recorded_sessions import recorded
from repo.rules import ROOT
from repo.wheels import Environment, build, needed_by

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
LINE = 812
ASKED = {"command": "cd /home/ann/shop && grep -n PASSWORD .env | head -1"}
USE = {"type": "tool_use", "id": "toolu_env", "name": "Bash", "input": ASKED}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_env", "content": "1:PASSWORD=x"}


def _session(path: Path) -> None:
    """A long session: a real transcript again and again, and in line 812 a command that read it.

    Without the search and the `git show` of the transcript, which may have read it too.
    """
    transcript = recorded() / "transcripts/claude-2.1.209-ohmyposh-with-file-attachment.jsonl"
    lines = transcript.read_bytes().splitlines(keepends=True)
    lines = [line for number, line in enumerate(lines, 1) if number not in (16, 17, 80, 81)] * 9
    common = {name: json.loads(lines[2])[name] for name in ("sessionId", "version")}
    common["cwd"] = "/home/ann/shop"
    planted = [
        common | {"type": "assistant", "message": {"role": "assistant", "content": [USE]}},
        common | {"type": "user", "message": {"role": "user", "content": [RESULT]}},
    ]
    lines[LINE - 1 : LINE - 1] = [json.dumps(one).encode() + b"\n" for one in planted]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(lines))


A_MINUTE = 60


@pytest.mark.slow
def test_two_commands_from_an_install_to_the_line_that_read_it(tmp_path: Path) -> None:
    (page,) = (block for block in blocks(PAGE) if "pip install --quiet" in block.text)
    install, ask = steps(page)
    ((extra, question),) = re.findall(r"`uvx --from ('\S+') (tripod exposure [^`]*)`", PAGE)
    assert install.command == f"pip install --quiet {extra}"
    assert ask.command.startswith(question.removesuffix("..."))
    assert f".jsonl:{LINE}: shown .env" in ask.expected

    wheel = build(ROOT, tmp_path / "wheel", "wheel")
    stranger = Environment(tmp_path, needed_by(wheel, *re.findall(r"\[(\w+)\]", install.command)))
    home = tmp_path / "home"
    _session(home / ask.command.rpartition("~/")[2] / "8d0f6a52.jsonl")
    environment = {
        "HOME": str(home),
        "PATH": f"{Path(stranger.python).parent}:{os.defpath}",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    began = time.monotonic()
    for step, code in ((install, 0), (ask, 1)):
        done = subprocess.run(
            ["bash", "-c", step.command],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert (done.returncode, done.stderr) == (code, "")
        assert fits(step.expected, done.stdout), done.stdout
    took = time.monotonic() - began
    print(f"from the install to the answer: {took:.1f} s")  # noqa: T201
    assert took < A_MINUTE
