"""Starting ``appender.py``, and several programs at one moment."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["let_go", "run_together", "start"]

_HERE = Path(__file__).resolve().parent


def start(*arguments: str) -> "subprocess.Popen[str]":
    """Start an appender; its standard input and output are pipes."""
    paths = os.pathsep.join((str(_HERE), str(_HERE.parent)))
    return subprocess.Popen(
        [sys.executable, "-m", "appender", *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def let_go(children: Sequence["subprocess.Popen[str]"], word: str = "go") -> None:
    """Have all of them begin at once: each says when it is ready, and waits for a line."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write(f"{word}\n")
        child.stdin.flush()


def run_together(path: str, processes: int, times: int) -> list[list[str]]:
    """Let several append at once, from the same moment; give the ids that each was answered."""
    children = [start(path, f"p{number}", str(times)) for number in range(processes)]
    let_go(children)
    answered = [child.communicate()[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0] * processes
    return answered
