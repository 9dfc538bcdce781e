"""``nbs-bus`` row by row: arguments, outcome, exit code, output (seed nbs-bus; spec nbs-compat B1).

Each row is a command on a team of its own; the rows are in ``bus_rows.py``.
"""

import atexit
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from docs.pages import fits
from doors.bus.bus_rows import BUSY, OTHERS, OURS, PAST, PUBLISH, SLIPS, TEXT, USAGES, Row
from doors.inside import Done, run_as

ROWS = [*PUBLISH, *OTHERS, *OURS, *SLIPS]


def event(source: str, type_: str, priority: str, payload: str = "") -> str:
    text = f"source: {source}\ntype: {type_}\npriority: {priority}\n"
    text += f"timestamp: 2020-09-13T12:26:40Z\ndedup-key: {source}:{type_}\n"
    return text + (f"payload: |\n  {payload}\n" if payload else "")


@cache
def laid_out(given: tuple[str, ...]) -> str:
    """A folder that is set up, to be copied: nothing in it names its place."""
    project = mkdtemp(prefix="tripod-queue-")
    atexit.register(shutil.rmtree, project, ignore_errors=True)
    begin(Path(project), given)
    return project


def set_up(project: Path, given: tuple[str, ...]) -> None:
    """Lay a queue there as the original tools leave one, and begin its ledger."""
    shutil.copytree(laid_out(given), project, dirs_exist_ok=True)
    if "claimed" in given:  # at this very moment, as a claim ends
        assert run_as("nbs-bus", project, "claim", "D", PAST, "--by=dee").code == 0


def begin(project: Path, given: tuple[str, ...]) -> None:
    folder = project / "D"
    folder.mkdir()
    if "empty" not in given:
        place = folder / "processed" if "processed" in given else folder
        place.mkdir(exist_ok=True)
        for name, text in (
            ("1600000000000000-cy-heartbeat-6", event("cy", "heartbeat", "low")),
            (PAST.removesuffix(".event"), TEXT),
            ("1600000000000002-bob-task-blocked-8", event("bob", "task-blocked", "critical")),
            ("1600000000000003-ann-chat-message-9", event("ann", "chat-message", "normal")),
        ):
            (place / f"{name}.event").write_text(text)
    if "logged" in given:
        for at, type_ in enumerate(("decision-logged", "pythia-checkpoint"), 4):
            for source in ("scribe", "ann"):
                name = f"160000000000000{at}-{source}-{type_}-5.event"
                (folder / name).write_text(event(source, type_, "high"))
    config = {
        "window": "dedup-window: 4000000000\n",
        "limit": "retention-max-bytes: 5\n",
        "stale": "ack-timeout: 120\n",
    }
    for word, line in config.items():
        if word in given:
            (folder / "config.yaml").write_text(line)
    done = run_as("nbs-bus", project, "status", "D")
    assert done.code == 0
    past = "" if given == ("empty",) else ", with .* of before"
    assert re.fullmatch(rf"tripod: began the ledger \S+/ledger.db{past}\n", done.err)


def told(project: Path, one: Row) -> Done:
    words = [PAST if word == "E" else word for word in one.words]
    return run_as("nbs-bus", project, *words)


@pytest.mark.parametrize("one", ROWS, ids=lambda one: " ".join(one.words)[:60])
def test_each_row(tmp_path: Path, one: Row) -> None:
    set_up(tmp_path, one.given)
    done = told(tmp_path, one)
    assert (done.code, fits(one.out.rstrip("\n"), done.out.decode())) == (one.code, True), done
    assert fits(f"{one.err}..." if one.err else "", done.err), done
    assert (done.err == "") == (one.err == "")


CODES = {
    "publish": {0, 2, 4, 5},
    "read": {0, 2, 3, 4},
    "ack": {0, 1, 2, 3, 4},
    **{name: {0, 2, 3, 4} for name in ("claim", "release", "wait")},
}
"""With what each command may end, where that is more than 0, 2 and 4."""


def test_every_command_option_and_code_has_its_rows() -> None:
    assert {one.words[0] for one in ROWS if one.words} >= {*USAGES, "help"}
    for name, usage in USAGES.items():
        rows = [one for one in ROWS if one.words[:1] == (name,)]
        assert {one.code for one in rows} == CODES.get(name, {0, 2, 4}), name
        for option, value in re.findall(r"(--[a-z-]+)(=?)", usage):
            codes = {
                one.code for one in rows for word in one.words if word.partition("=")[0] == option
            }
            assert codes >= ({0, 4} if value else {0}), (name, option)


def test_the_program_says_the_same_as_a_process(tmp_path: Path) -> None:
    set_up(tmp_path, BUSY)
    program = Path(sys.executable).with_name("nbs-bus")
    for words, code in ((("check", "D"), 0), (("help",), 0), (("check", "none"), 2)):
        done = subprocess.run(
            [program, *words], cwd=tmp_path, capture_output=True, timeout=60, check=False
        )
        again = run_as("nbs-bus", tmp_path, *words)
        assert (done.returncode, done.stdout) == (code, again.out)
        assert done.stderr.decode() == again.err


# Who acts --------------------------------------------------------------------------------------


def actors(project: Path) -> list[tuple[str, str]]:
    from tripod.ledger.sqlite.reader import SQLiteReader, read_only

    db = read_only(str(project / ".nbs/ledger.db"))
    found = [(entry.kind, entry.actor) for entry in SQLiteReader(db).read()]
    db.close()
    return found


@pytest.mark.parametrize(
    ("words", "environment", "actor"),
    [
        (("ack", "D", "E"), None, "unknown"),
        (("ack", "D", "E", "--as=dee"), None, "dee"),
        (("ack", "D", "E"), "bob", "bob"),
        (("ack", "D", "E", "--as=dee"), "bob", "dee"),
        (("ack-all", "D"), "bob", "bob"),
        (("claim", "D"), "bob", "bob"),
    ],
)
def test_who_acts_is_recorded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    environment: str | None,
    actor: str,
) -> None:
    set_up(tmp_path, BUSY)
    if environment is not None:
        monkeypatch.setenv("NBS_HANDLE", environment)
    assert told(tmp_path, Row(words, 0)).code == 0
    assert actors(tmp_path)[-1][1] == actor


def test_a_handle_that_is_none_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(tmp_path, BUSY)
    monkeypatch.setenv("NBS_HANDLE", "two words")
    done = told(tmp_path, Row(("ack", "D", "E"), 4))
    assert (done.code, done.err) == (4, "tripod: NBS_HANDLE: holds white space\n")


# Scripts of the documents ----------------------------------------------------------------------


def test_a_reader_is_told_what_it_overhears(tmp_path: Path) -> None:
    set_up(tmp_path, BUSY)
    run_as("nbs-bus", tmp_path, "ack", "D", PAST)
    lines = run_as("nbs-bus", tmp_path, "check", "D", "--reader=bob").out.decode().splitlines()
    assert [line.endswith(" acknowledged") for line in lines] == [False, True, False, False]
    assert run_as("nbs-bus", tmp_path, "check", "D", "--reader=bob").out == b""
    assert run_as("nbs-bus", tmp_path, "read", "D", PAST).code == 3
    assert run_as("nbs-bus", tmp_path, "read", "D", PAST, "--processed").out == TEXT.encode()


def test_a_second_attempt_is_told(tmp_path: Path) -> None:
    set_up(tmp_path, BUSY)
    first = run_as("nbs-bus", tmp_path, "claim", "D", PAST, "--by=dee")
    assert first.err == ""
    assert run_as("nbs-bus", tmp_path, "ack", "D", PAST, "--as=cy").code == 1
    assert run_as("nbs-bus", tmp_path, "release", "D", PAST, "--by=dee").code == 0
    again = run_as("nbs-bus", tmp_path, "claim", "D", PAST, "--by=cy")
    assert again.err == "tripod: attempt 2: it was begun before and not acknowledged\n"


LOOP = r"""
export PATH=TOOLS:$PATH
nbs-bus publish events/ parser-worker task-complete high "Task parser-a3f1 completed." >/dev/null
nbs-bus publish events/ doc-claude heartbeat low >/dev/null
PENDING=$(nbs-bus check events/ --handle=parser-worker)
if [ -n "$PENDING" ]; then
    for event in $PENDING; do
        nbs-bus read events/ "$event" && nbs-bus ack events/ "$event"
    done 2>/dev/null
fi
nbs-bus check events/
"""


def test_the_startup_loop_of_the_document_does_what_it_says(tmp_path: Path) -> None:
    """It feeds ``[high]`` and ``(0s`` to ``read`` as well, which refuses them (B12.12)."""
    (tmp_path / "events").mkdir()
    tools = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-c", LOOP.replace("TOOLS", tools)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "  Task parser-a3f1 completed.\n" in done.stdout
    listed = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"\[low\] \S+-doc-claude-heartbeat-\S+ \(.s ago\)", listed)
