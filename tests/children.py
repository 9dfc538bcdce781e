"""Starting ``appender.py``, and several of it at once."""

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["run_together", "start"]

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


def run_together(path: str, processes: int, times: int) -> list[list[str]]:
    """Let several append at once, from the same moment; give the ids that each was answered."""
    children = [start(path, f"p{number}", str(times)) for number in range(processes)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    answered = [child.communicate()[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0] * processes
    return answered
