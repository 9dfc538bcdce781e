"""``nbs-bus`` row by row: arguments, outcome, exit code, output (seed nbs-bus; spec nbs-compat B1).

Each row is a command on a team of its own. ``D`` stands for the events' folder, ``E`` for the
name of a pending event; in what is told ``...`` stands for anything.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from docs.pages import fits
from doors.inside import Done, run_as

from tripod.dropin.nbs_bus import USAGE, USAGES
from tripod.finding import LEDGER

PAST = "1600000000000001-ann-task-complete-7.event"
TEXT = (
    "source: ann\ntype: task-complete\npriority: high\ntimestamp: 2020-09-13T12:26:40Z\n"
    "dedup-key: ann:task-complete\npayload: |\n  467/467 tests pass.\n"
)
NAME = "...-ann-note-....event\n"
BUSY = ("queue",)


class Row(NamedTuple):
    """Words of a command, its exit code, what it prints, and what it says on stderr."""

    words: tuple[str, ...]
    code: int
    out: str = ""
    err: str = ""
    given: tuple[str, ...] = BUSY


def row(
    words: str | tuple[str, ...],
    code: int,
    out: str = "",
    err: str = "",
    *given: str,
) -> Row:
    split = tuple(words.split(" ")) if isinstance(words, str) else words
    return Row(split, code, out, err, given or BUSY)


LISTED = (
    "[critical] ...-bob-task-blocked-8.event (...d ago)\n"
    "[high] ...-ann-task-complete-7.event (...d ago)\n"
    "[normal] ...-ann-chat-message-9.event (...d ago)\n"
    "[low] ...-cy-heartbeat-6.event (...d ago)\n"
)
MANY = "...too few arguments...usage: nbs-bus "

PUBLISH = [
    row("publish D ann note normal", 0, NAME),
    row("publish D/ ann note normal", 0, NAME),
    *(row(f"publish D ann note {p} text", 0, NAME) for p in ("critical", "high", "normal", "low")),
    row("publish D ann any-type-at-all low", 0, "...-ann-any-type-at-all-....event\n"),
    row(("publish", "D", "ann", "note", "low", "two\nlines"), 0, NAME),
    row(("publish", "D", "ann", "note", "low", ""), 0, NAME),
    row("publish D ann note low text --dedup-window=300", 0, NAME),
    row("publish D ann note low --dedup-window=300 text", 0, NAME),
    row("publish D ann task-complete low --dedup-window=0", 0, "...-ann-task-complete-....event\n"),
    row("publish D ann task-complete low --dedup-window=", 0, "...-ann-task-complete-....event\n"),
    row(
        "publish D ann task-complete low --dedup-window=4294967296", 5, "", "...dropped: ... within"
    ),
    row("publish D ann task-complete low", 5, "", "...is pending within 4000000000 s...", "window"),
    row(
        "publish D ann task-complete low --dedup-window=0",
        0,
        "...-ann-task-complete-....event\n",
        "",
        "window",
    ),
    row("publish D ann task-complete low --dedup-window=5", 0, "....event\n", "", "window"),
    row("publish D ann note low --file=D/config.yaml", 0, NAME, "", "window"),
    row("publish D ann note low --file=none", 4, "", "...payload: --file 'none' cannot be read"),
    row("publish D ann note low text --file=none", 4, "", "...payload: given twice"),
    row("publish", 4, "", MANY),
    row("publish D", 4, "", MANY),
    row("publish D ann note", 4, "", MANY),
    row("publish D ann note low text more", 4, "", "...'more' is one too many"),
    row(("publish", "D", "", "note", "low"), 4, "", "...source: empty"),
    row(("publish", "D", " \t", "note", "low"), 4, "", "...source: empty"),
    row(("publish", "D", "ann", "", "low"), 4, "", "...type: empty"),
    row(("publish", "D", "a\nb", "note", "low"), 4, "", "...source: holds a line break"),
    row(("publish", "D", "a/b", "note", "low"), 4, "", "...source: holds '/'"),
    row(("publish", "D", "a" * 127, "note", "low"), 0, "....event\n"),
    row(("publish", "D", "a" * 128, "note", "low"), 4, "", "...source: longer than 127 bytes"),
    row(("publish", "D", "ann", "a" * 128, "low"), 4, "", "...type: longer than 127 bytes"),
    row(("publish", "D", "a" * 127, "b" * 127, "low"), 4, "", "...file name over 255 bytes"),
    row("publish D ann note urgent", 4, "", "...priority: 'urgent' is none of critical, high"),
    row("publish D ann note HIGH", 4, "", "...priority: 'HIGH' is none of"),
    row("publish D ann note low --dedup-window=-1", 4, "", "...--dedup-window=-1: no whole number"),
    row("publish D ann note low --dedup-window=soon", 4, "", "...--dedup-window=soon: no whole"),
    row("publish D ann note low --dedup-window=99999999999999999999", 4, "", "...no whole number"),
    row("publish D ann note low --dedup-window", 4, "", "...--dedup-window takes a value"),
    row("publish D ann note low --dedup-windw=9", 4, "", "...no option --dedup-windw"),
    row("publish none ann note low", 2, "", "...none is not there: make the folder first"),
    row("publish D/config.yaml ann note low", 2, "", "...is no folder", "window"),
    # Where two are wrong, the one that the original looks at first decides.
    row("publish none", 4, "", MANY),
    row(("publish", "none", "", "note", "low"), 4, "", "...source: empty"),
    row("publish none ann note urgent", 2, "", "...none is not there"),
    row("publish none ann note low --dedup-window=soon", 2, "", "...none is not there"),
    row("publish D ann note urgent --dedup-window=soon", 4, "", "...priority: "),
]

OTHERS = [
    row("check D", 0, LISTED),
    row("check D", 0, "", "", "empty"),
    row("check D --handle=ann", 0, "[high] ... ago)\n[normal] ... ago)\n"),
    row("check D --handle=an", 0, ""),
    row("check D --handle=", 4, "", "...--handle: "),
    row(("check", "D", "--handle= "), 4, "", "...--handle: "),
    row("check D --handle=a/b", 4, "", "...--handle: "),
    row("check none --handle=", 2, "", "...none is not there"),
    row("check none", 2, "", "...none is not there"),
    row("check", 4, "", MANY),
    row("check D more", 4, "", "...'more' is one too many"),
    row("check D --handel=ann", 4, "", "...no option --handel"),
    row("check D --reader=bob", 0, LISTED),
    row("check D --reader=", 4, "", "...--reader: "),
    row("check D --reader=bob --handle=ann", 4, "", "...--handle and --reader"),
    row("read D E", 0, TEXT),
    row("read D gone.event", 3, "", "...no pending event gone.event"),
    row("read D 1600000000000001-ann-task-complete-8.event", 3, "", "...no pending event"),
    row("read D", 4, "", MANY),
    row("read D E more", 4, "", "...'more' is one too many"),
    *(
        row(("read", folder, name), 4, "", "...event: ...")
        for folder in ("D", "none")
        for name in ("", ".", "..", "a/b.event", "..x.event", "x.txt", ".event", ".tmp-1-2.event")
    ),
    row("read none E", 2, "", "...none is not there"),
    row("read D E --processed", 0, TEXT),
    row("ack D E", 0),
    row("ack D E --as=bob", 0),
    row("ack D gone.event", 3, "", "...no pending event gone.event: ..."),
    row("ack D", 4, "", MANY),
    row(("ack", "D", ".tmp-1-2.event"), 4, "", "...not the name of an event"),
    row(("ack", "none", "x.txt"), 4, "", "...not the name of an event"),
    row("ack none E", 2, "", "...none is not there"),
    row(("ack", "D", "E", "--as=two words"), 4, "", "...--as: holds white space"),
    row("ack-all D", 0, "Acknowledged 4 events\n"),
    row("ack-all D", 0, "Acknowledged 0 events\n", "", "empty"),
    row("ack-all D --as=bob", 0, "Acknowledged 4 events\n"),
    row("prune D --as=bob", 0, "Pruned 0 events (no processed directory)\n"),
    row("ack-all D --handle=bob", 0, "Acknowledged 1 event\n"),
    row("ack-all D --handle=nobody", 0, "Acknowledged 0 events\n"),
    row("ack-all D --handle=", 4, "", "...--handle: "),
    row("ack-all D --handel=x", 4, "", "...no option --handel; the options are --as=..., --handle"),
    row("ack-all D x", 4, "", "...'x' is one too many"),
    row("ack-all none", 2, "", "...none is not there"),
    row("ack-all", 4, "", MANY),
    row("prune D", 0, "Pruned 0 events (no processed directory)\n"),
    row("prune D", 0, "Pruned 0 events (0.4 KB / 16384.0 KB limit)\n", "", "processed"),
    row(
        "prune D --max-bytes=1",
        0,
        "Pruned 4 events (0.0 KB remaining, 0.0 KB limit)\n",
        "",
        "processed",
    ),
    row(
        "prune D --max-bytes=400",
        0,
        "Pruned 1 event (0.4 KB remaining, 0.4 KB limit)\n",
        "",
        "processed",
    ),
    row("prune D", 0, "Pruned 4 events (0.0 KB ...)\n", "", "processed", "limit"),
    row("prune D --max-bytes=9999", 0, "Pruned 0 events (0.4 KB / 9.8 KB limit)\n", "",
        "processed", "limit"),
    *(row(f"prune D --max-bytes={n}", 4, "", "...no whole number from 1")
      for n in ("0", "-1", "x", "")),
    row("prune none --max-bytes=0", 2, "", "...none is not there"),
    row(
        "status D",
        0,
        "Pending: 4 total (critical=1, high=1, normal=1, low=1)\n"
        "Oldest pending: 2020-09-13T12:26:40Z\nProcessed: 0 events (0.0 KB)\n",
    ),
    row("status D", 0, "Pending: 0 total\nProcessed: 0 events (0.0 KB)\n", "", "empty"),
    row("status D", 0, "Pending: 0 total\nProcessed: 4 events (0.4 KB)\n", "", "processed"),
    row("status D", 0, "...\nWARNING: 4 stale events (unacked > 120s)\n", "", "stale"),
    row("status none", 2, "", "...none is not there"),
    row("status D more", 4, "", "...'more' is one too many"),
    row("help", 0, "", USAGE),
    row((), 4, "", USAGE),
    row("--help", 4, "", f"...no command '--help'\n{USAGE}"),
    row("publsh D ann note low", 4, "", f"...no command 'publsh'\n{USAGE}"),
]  # fmt: skip

OURS = [
    row("claim D --by=dee", 0, "...-bob-task-blocked-8.event\n"),
    row("claim D E --by=dee --lease=5", 0, f"{PAST}\n"),
    row("claim D --by=dee", 3, "", "...no event to take", "empty"),
    row("claim D --by=dee --wait=0", 3, "", "...no event to take", "empty"),
    row("claim D --by=dee --wait=1", 3, "", "...nothing came within 1 s", "empty"),
    row("claim D gone.event --by=dee", 3, "", "...no pending event"),
    row("claim D", 4, "", "...--by=HANDLE is missing"),
    row("claim D --by=dee --lease=0", 4, "", "...--lease=0: no whole number from 1"),
    row("claim D x.txt --by=dee", 4, "", "...not the name of an event"),
    row("claim none --by=dee", 2, "", "...none is not there"),
    row("release D E --by=dee", 3, "", "...is not claimed by dee"),
    row("release D E", 4, "", "...--by=HANDLE is missing"),
    row("wait D --timeout=5", 0, LISTED),
    row("wait D --handle=bob", 0, "[critical] ...\n"),
    row("wait D --reader=dee", 0, LISTED),
    row("wait D --timeout=0", 3, "", "...nothing came within 0 s", "empty"),
    row("wait D --timeout=x", 4, "", "...--timeout=x: no whole number"),
    row("wait none --timeout=0", 2, "", "...none is not there"),
    row("recover D --as=dee", 0, LISTED, "...last activity ...; heartbeat ...-dee-heartbeat-..."),
    row("recover D", 4, "", "...--as=HANDLE is missing"),
    row("recover none --as=dee", 2, "", "...none is not there"),
]


@pytest.fixture(autouse=True)
def _no_names_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LEDGER, raising=False)
    monkeypatch.delenv("NBS_HANDLE", raising=False)


def event(source: str, type_: str, priority: str, payload: str = "") -> str:
    text = f"source: {source}\ntype: {type_}\npriority: {priority}\n"
    text += f"timestamp: 2020-09-13T12:26:40Z\ndedup-key: {source}:{type_}\n"
    return text + (f"payload: |\n  {payload}\n" if payload else "")


def set_up(project: Path, given: tuple[str, ...]) -> None:
    """Lay a queue there as the original tools leave one, and begin its ledger."""
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


@pytest.mark.parametrize(
    "one", [*PUBLISH, *OTHERS, *OURS], ids=lambda one: " ".join(one.words)[:60]
)
def test_each_row(tmp_path: Path, one: Row) -> None:
    set_up(tmp_path, one.given)
    done = told(tmp_path, one)
    assert (done.code, fits(one.out.rstrip("\n"), done.out.decode())) == (one.code, True), done
    assert fits(f"{one.err}..." if one.err else "", done.err), done
    assert (done.err == "") == (one.err == "")


def test_every_command_has_its_rows() -> None:
    tried = {one.words[0] for one in (*PUBLISH, *OTHERS, *OURS) if one.words}
    assert tried >= {*USAGES, "help"}
    for name, usage in USAGES.items():
        rows = [one for one in (*PUBLISH, *OTHERS, *OURS) if one.words[:1] == (name,)]
        for option in re.findall(r"--[a-z-]+", usage):
            assert any(word.startswith(option) for one in rows for word in one.words), option
        assert {one.code for one in rows} >= ({0, 2} if name != "release" else {3, 4}), name


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
    from ledger.reader import read_entries, read_only

    db = read_only(str(project / "ledger.db"))
    found = [(entry.kind, entry.actor) for entry in read_entries(db)]
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
