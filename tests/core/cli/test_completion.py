"""The shell is told commands, options and words: each shell's script asks for them alike."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from doors.inside import TRIPOD, run


def completed(words: str, at: int) -> list[str]:
    """What bash would offer for the word at a place."""
    asked = {"_TRIPOD_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = subprocess.run(
        [TRIPOD], env=os.environ | asked, capture_output=True, check=True, text=True, timeout=60
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "at", "offered"),
    [
        ("tripod ver", 1, ["verify"]),
        ("tripod bus cl", 2, ["claim"]),
        ("tripod bus claim --le", 3, ["--lease"]),
        ("tripod bus publish ann done ", 5, ["critical", "high", "normal", "low"]),
        ("tripod completion ", 2, ["bash", "zsh", "fish"]),
        ("tripod chat send live ", 4, []),
    ],
)
def test_commands_options_and_words_are_offered(words: str, at: int, offered: list[str]) -> None:
    assert completed(words, at) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(tmp_path: Path, shell: str) -> None:
    done = run(tmp_path, "completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_TRIPOD_COMPLETE={shell}_complete" in done.out.decode()
    if shutil.which(shell) is not None:  # the shell itself reads what we print
        subprocess.run([shell, "-n"], input=done.out, check=True, timeout=60)


def test_another_shell_is_refused_with_the_ones_there_are(tmp_path: Path) -> None:
    done = run(tmp_path, "completion", "fisch")
    assert (done.code, done.out) == (2, b"")
    assert "is not one of bash, zsh, fish. Did you mean fish?" in done.err
