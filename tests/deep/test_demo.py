"""``tripod demo``, as a person runs it: every tampering is named, and the story ends well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from warm import search_path

from tripod.demo import demo, panel, replicas
from tripod.demo.demo import TAMPERINGS
from tripod.demo.replicas import Week


def run_demo() -> str:
    """What the demo tells; who ran it just before us names a file of that in TRIPOD_DEMO_TOLD."""
    told = os.environ.get("TRIPOD_DEMO_TOLD")
    if told is not None:
        return Path(told).read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "from tripod.cli import main; main(['demo'])"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_demo_goes_as_it_should() -> None:
    out = run_demo()
    assert "\x1b" not in out, "plain in a pipe"
    for tampering in TAMPERINGS:
        told = out.split(tampering.title)[1].split("$")[0]
        assert f"{tampering.check}:" in told
    apart = "isolation: namespace" in out
    assert out.count("exit 0") == 3 + apart
    # An interpreter that is not the system's is lent with what stands beside it.
    lent = not os.path.realpath(sys.executable).startswith("/usr/")
    verdict = f"clean{', except' * lent} (assessments 1" if apart else "cannot tell: run"
    assert f"pythia-isolation: {verdict}" in out
    assert out.count(f"lent {os.path.realpath(sys.base_prefix)} (not") == lent * apart
    assert out.count("refused; pythia-isolation: clean") == 3 * apart
    assert out.count("caught; pythia-isolation") == 4 + 3 * (not apart)
    assert "byte for byte as before: yes" in out
    assert "no byte of the team's files changed" in out
    week = out.split("A team's week over git")[1]
    assert week.count("git status shows nothing; verify is clean") == 6
    assert "15 decisions and 6 messages, each once in 2 replicas" in week
    assert "peers-agree: fork: " in week, "the rewritten replica is named"
    assert "tripod peer show" in week, "with both seals"
    panels = week.split("Nova: a question becomes a decision")[1]
    assert "gate at 0.35, uncertainty 0.35: proceed (the border); critique: minor" in panels
    assert "decided after 8 turns: know +0.50, uncertainty -0.55, confidence 0.9" in panels
    assert "verify: no rule is broken" in panels
    assert panels.count("caught; nova-independence: entry ") == 1


def test_a_tampering_that_nobody_names_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    harmless = TAMPERINGS[0]._replace(do=lambda _: None)
    monkeypatch.setattr(demo, "TAMPERINGS", (harmless,))
    for chapter in ("_rebuild", "_decide", "_crash", "play_review", "play_week", "play_panel"):
        monkeypatch.setattr(demo, chapter, lambda *_: 0)
    told: list[tuple[str, str]] = []
    assert demo.play(str(tmp_path), lambda style, text: told.append((style, text))) == 1
    assert any("NOT named" in text for _, text in told)


def test_a_leak_that_is_none_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(panel, "_LEAKING", panel._TRIPOD)
    told: list[tuple[str, str]] = []
    program = demo.data_file("nova_panel.py")
    assert panel._leaked(str(tmp_path / "leak"), program, lambda *line: told.append(line)) == 1
    assert told[-1] == ("bad", "    NOT caught by nova-independence")


@pytest.mark.drawn("long")
def test_a_decision_that_a_replica_lacks_fails_the_week(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(replicas, "_TRIPOD", (f"{search_path().partition(os.pathsep)[0]}/tripod",))
    told: list[tuple[str, str]] = []
    week = Week(str(tmp_path), lambda style, text: told.append((style, text)))
    demo.extract_demo(str(tmp_path), demo.CLONES)
    team = ann, _ = week.begin()
    week.evening(*team)
    assert (week.wrong, told[-1][0]) == (0, "good"), told
    week.decided.append("Decided, and lost")
    week.evening(*team)
    assert week.wrong == 1
    assert told[-1][0] == "bad"
    assert told[-1][1].endswith("NOT SO")
    week.decided.pop()
    week.said.append("Said, and lost")
    week.evening(*team)
    assert (week.wrong, told[-1][0]) == (2, "bad")
    week.tripod(ann, "verify", code=1)
    assert week.wrong == 3, "a command that ends otherwise is wrong, too"
