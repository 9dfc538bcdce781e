"""A child that helps its parent: neither waits for the other without end, or runs its code."""

import os
import signal
import subprocess
import sys
from threading import Thread

import pytest

from tripod.verify.child import Helper

STOPPED_AT_ONCE = """
import tripod.verify.child as processes

def stop():
    raise KeyboardInterrupt

processes.silence_progress = stop
try:
    print(processes.start_child(lambda: 1)())
finally:
    print("over", flush=True)
"""


def test_a_helper_that_somebody_stopped_is_ended() -> None:
    helper: Helper[int, int] = Helper(lambda _: os.getpid())
    child = helper.ask(0)()
    os.kill(child, signal.SIGSTOP)
    closing = Thread(target=helper.close)
    closing.start()
    closing.join(10)
    is_closed = not closing.is_alive()
    if not is_closed:
        os.kill(child, signal.SIGCONT)
    closing.join()
    assert child != os.getpid()
    assert is_closed


@pytest.mark.parametrize("last", [0, 1, 5, 64, 100, 199])
def test_a_child_that_dies_leaves_no_question_without_an_answer(last: int) -> None:
    parent = os.getpid()

    def answer(question: int) -> int:
        if question == last and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return question * 2

    helper: Helper[int, int] = Helper(answer)
    waiting = [helper.ask(question) for question in range(200)]
    assert [wait() for wait in waiting] == [question * 2 for question in range(200)]
    helper.close()


def test_a_child_that_is_interrupted_as_it_begins_runs_nothing_of_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_AT_ONCE], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("None\nover\n", "")
