"""The disk that forgets: what a power cut may leave is what POSIX allows, no more and no less."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.platter import History, Reader, State
from torture.tracing import Call

TOP = "/team"
TEMPORARY, NAME = f"{TOP}/new", f"{TOP}/name"
OLD, NEW = b"old", b"new bytes"


def called(
    name: str, path: str = "", *texts: bytes, numbers: tuple[int, ...] = (), **more: object
) -> Call:
    """A call on a descriptor of ``path``."""
    values = {"flags": "", "result": 0, "opened": "", "fd": 3} | more
    files = (path,) if path else ()
    return Call(1, name, texts=texts, numbers=numbers, files=files, **values)  # type: ignore[arg-type]


def opened(path: str, flags: str = "O_WRONLY|O_CREAT|O_TRUNC") -> Call:
    return called(
        "openat", TOP, path.encode(), numbers=(0o600,), flags=flags, result=3, opened=path
    )


def wrote(path: str, data: bytes) -> Call:
    return called("write", path, data, result=len(data))


def renamed(old: str, new: str, flags: str = "") -> Call:
    return called("renameat2", "", old.encode(), new.encode(), flags=flags)


ANSWERED = called("write", "pipe:[1]", b"done", result=4, fd=1)
CAREFUL = [
    opened(TEMPORARY), wrote(TEMPORARY, NEW), called("fsync", TEMPORARY),
    renamed(TEMPORARY, NAME), called("fsync", TOP), ANSWERED,
]  # fmt: skip


def read(calls: list[Call]) -> History:
    start = State({"name": (OLD, 0o644)}, frozenset({""}))
    reader = Reader(Path(TOP), start)
    reader.read_act(calls)
    return reader.history


def left(calls: list[Call], *, answered: bool) -> set[bytes | None]:
    """What the name may hold after a cut before or after the answer; None: nothing has it."""
    history = read(calls)
    moments = [one for one in history.moments(1, 8) if one.answered == answered]
    assert moments
    return {history.state(one).files.get("name", (None, 0))[0] for one in moments}


def test_a_file_that_is_put_in_place_with_care_is_old_or_new_and_after_the_answer_new() -> None:
    assert left(CAREFUL, answered=False) == {OLD, NEW}
    assert left(CAREFUL, answered=True) == {NEW}


@pytest.mark.parametrize(
    ("missing", "before", "after"),
    [
        (2, {OLD, NEW, b"", NEW[:4]}, {NEW, b"", NEW[:4]}),  # its bytes were not waited for
        (4, {OLD, NEW}, {OLD, NEW}),  # its name was not
    ],
)
def test_what_nobody_waited_for_may_be_lost(
    missing: int, before: set[bytes], after: set[bytes]
) -> None:
    calls = [call for number, call in enumerate(CAREFUL) if number != missing]
    assert left(calls, answered=False) == before
    assert left(calls, answered=True) == after


def test_writing_over_a_file_leaves_it_whole_cut_or_empty() -> None:
    calls = [opened(NAME), wrote(NAME, NEW)]
    assert left(calls, answered=False) == {OLD, b"", NEW, NEW[:4]}


def test_bytes_that_were_written_later_may_be_there_first() -> None:
    """A hole that is filled up with zeros, as file systems do that write sizes early."""
    calls = [
        opened(NAME, "O_RDWR"),
        called("pwrite64", NAME, b"AA", numbers=(2, 3), result=2),
        called("pwrite64", NAME, b"BB", numbers=(2, 5), result=2),
    ]
    assert left(calls, answered=False) >= {OLD, OLD + b"AA", OLD + b"\0\0BB", OLD + b"AABB"}


def test_an_exchange_of_names_is_there_whole_or_not_at_all() -> None:
    calls = [*CAREFUL[:3], called("fsync", TOP), renamed(TEMPORARY, NAME, "RENAME_EXCHANGE")]
    history = read(calls)
    states = [history.state(one).files for one in history.moments(1, 8)]
    both = {(one["name"][0], one["new"][0]) for one in states if len(one) == len(("name", "new"))}
    whole = {pair for pair in both if NEW in pair}
    assert whole == {(OLD, NEW), (NEW, OLD)}


def test_a_file_that_is_appended_to_grows_at_its_end() -> None:
    calls = [opened(NAME, "O_WRONLY|O_APPEND"), wrote(NAME, b"+1"), wrote(NAME, b"+2")]
    calls.append(called("fdatasync", NAME))
    assert left([*calls, ANSWERED], answered=True) == {OLD + b"+1+2"}


def test_what_is_not_understood_is_refused() -> None:
    with pytest.raises(ValueError, match="copy_file_range"):
        read([called("copy_file_range", "", NAME.encode(), TEMPORARY.encode())])
    with pytest.raises(ValueError, match="leads into the folder"):
        read([renamed("/elsewhere", NAME)])
