"""Dies on the way of a push or a pull, where it is told to: for children that are killed there."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dying import die
from dying_merges import MERGE_PLACES

from tripod.ledger.sqlite.store import SQLiteTransaction
from tripod.peers import merge, pull, push, record, remote
from tripod.trust import seal
from tripod.verify.anchors.git import Repository

__all__ = [
    "CHILD",
    "GIT_DIES",
    "PULL",
    "PUSH",
    "REPLACE",
    "await_git",
    "die_in_exchange",
    "repeated_by",
    "set_git_traps",
]

CHILD = """
import os, sys
from doors.inside import run
from dying_exchanges import die_in_exchange
from tripod.peers import merge

folder, command, step, times = sys.argv[1:]
os.environ["TRIPOD_PID"] = str(os.getpid())
merge.BATCH = 4
if step:
    die_in_exchange(step, int(times))
done = run(folder, command)
assert done.code == 0, done
"""
"""A push or a pull in a clone that dies at a step for the n-th time; at none where it is ''."""


class _Place(NamedTuple):
    """A function to die at, before it does anything or ``behind`` it.

    ``word``: only where git is asked for that.
    """

    owner: Any
    name: str
    behind: bool = False
    word: str = ""


_COMMON = {
    "before the repository is read": _Place(Repository, "_begin"),
    "before git is asked": _Place(Repository, "ask"),
}
_PUSH = {
    "before it seals": _Place(push, "seal_now"),
    "in the transaction of the seal": _Place(SQLiteTransaction, "_insert"),
    "behind the seal": _Place(push, "seal_now", behind=True),
    "before the record is written": _Place(record, "keep_record"),
    "while the record is staged": _Place(record, "stage_export"),
    "before git has the objects": _Place(Repository, "ask", word="fast-import"),
    "before the ref moves": _Place(Repository, "ask", word="update-ref"),
    "behind the ref": _Place(record, "write_record_ref", behind=True),
    "before the size is noted": _Place(record, "replace_file"),
    "behind the record": _Place(record, "keep_record", behind=True),
    "before the relays": _Place(push, "_relays"),
    "before it pushes": _Place(push, "_push"),
    "behind what it pushed": _Place(push, "_push", behind=True),
    "before what the remote holds is noted": _Place(Repository, "ask", word="update-ref"),
}
_REPLACE = {
    "before the remote's ref is replaced": _Place(push, "_replace"),
    "behind the fetch of what is replaced": _Place(push, "fetch_records", behind=True),
    "while it judges what is replaced": _Place(push, "merge_record"),
    "behind what is replaced": _Place(push, "_replace", behind=True),
}
_PULL = {
    "before the fetch": _Place(remote, "fetch_records"),
    "behind the fetch": _Place(remote, "fetch_records", behind=True),
    "before a record": _Place(pull, "_pulled"),
    "behind a record": _Place(pull, "_pulled", behind=True),
    "before a seal is opened": _Place(merge._Merge, "_identify"),
    "behind a seal": _Place(merge._Merge, "_identify", behind=True),
    "before the kinds are counted": _Place(pull, "_kinds"),
    "before a review is asked for": _Place(pull, "_may_be_due"),
    "before what came is sealed": _Place(seal, "keep_merged"),
    "behind the seal of what came": _Place(record, "keep_record"),
    **{name: _Place(*place) for name, place in MERGE_PLACES.items()},
}
PUSH = (*_COMMON, *_PUSH)
REPLACE = tuple(_REPLACE)
PULL = (*_COMMON, *_PULL)
"""The steps of a push, of one that replaces what the remote holds, and of a pull."""

GIT_DIES = ("in the fetch", "before the remote's refs move", "while the remote's refs move")
"""Moments within git's own work, at which git on this side dies too."""


def die_in_exchange(step: str, times: int) -> None:
    """Die at a step for the ``times``-th time."""
    owner, name, behind, word = {**_COMMON, **_PUSH, **_REPLACE, **_PULL}[step]
    real: Callable[..., Any] = getattr(owner, name)
    left = times

    def patched(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        is_it = not word or word in arguments
        left -= is_it
        if is_it and left <= 0 and not behind:
            die()
        answer = real(*arguments, **options)
        if is_it and left <= 0:
            die()
        return answer

    setattr(owner, name, patched)


@contextmanager
def repeated_by(seed: int, trials: int) -> Iterator[None]:
    """Name the variables that try what is done inside once more, where it fails."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"TRIPOD_SEED={seed} TRIPOD_TRIALS={trials}")
        raise


_TRAP = """\
#!/bin/sh
[ "$TRIPOD_DIES" = "{moment}" ] && {when} && {{
    session=$(ps -o sid= $$ | tr -d " ")
    echo $session >"$TRIPOD_SESSION"
    kill -9 $TRIPOD_PID
    kill -9 {whom}
}}
{rest}
"""


def set_git_traps(bare: Path, folder: Path) -> None:
    """Have git kill those who started it at moments of ``GIT_DIES``.

    Their numbers are in the environment, which git hands on to what it starts. The remote's own
    side goes on where it is at moving refs, as that of another host does.
    """
    for path, moment, when, whom, rest in (
        (folder / "pack", GIT_DIES[0], "true", "-- -$session", 'exec "$@"'),
        (bare / "hooks/pre-receive", GIT_DIES[1], "true", "-- -$session", "exit 0"),
        (
            bare / "hooks/reference-transaction", GIT_DIES[2], '[ "$1" = prepared ]', "$session",
            "exit 0",
        ),
    ):  # fmt: skip
        path.parent.mkdir(exist_ok=True)
        text = _TRAP.format(moment=moment, when=when, whom=whom, rest=rest)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    settings = f"[uploadpack]\n\tpackObjectsHook = {folder}/pack\n"
    (folder / "gitconfig").write_text(settings, encoding="utf-8")


def await_git(session: Path) -> None:
    """Wait until nothing runs any more of what a trap left (AssertionError: it does not end)."""
    number = session.read_text(encoding="utf-8").strip()
    until = time.monotonic() + 30
    while subprocess.run(
        ("ps", "-s", number, "-o", "stat="), capture_output=True, check=False
    ).stdout.strip():
        assert time.monotonic() < until, "git goes on and on"
        time.sleep(0.01)
