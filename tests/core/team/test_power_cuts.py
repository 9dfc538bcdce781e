"""A start of the host after a power cut: files that nobody waited for (ADR 0030)."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.bus.events import ack, publish
from tripod.chat.writer import create, send
from tripod.decisions.writer import DecisionRequest, log
from tripod.ledger import files
from tripod.projections.disk import Disk
from tripod.projections.remnants import over_state
from tripod.team import team as team_module
from tripod.team.adoption import add_place, init, sync
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

CHAT = "chat/live.chat"
LOG = "scribe/log.md"


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Start the host anew a second ago, under a name; '': it does not name its starts."""

    def begin(name: str) -> None:
        file = tmp_path / f"boot-{name}"
        if name:
            file.write_text(f"{name}\n")
        monkeypatch.setattr(files, "BOOT_ID", str(file))
        started = time.time_ns() - 10**9
        for path in tmp_path.rglob("*"):  # what is there by now is older than the start
            os.utime(path, ns=(started - 1, started - 1))
        monkeypatch.setattr(files, "read_boot_time", lambda: started)

    begin("one")
    return begin


@pytest.fixture
def root(tmp_path: Path, start: Callable[[str], None]) -> Path:
    """A team with a chat and a log whose files the disk has."""
    del start
    (tmp_path / "team").mkdir()
    init(str(tmp_path / "team"))
    root = tmp_path / "team" / ".nbs"
    with Team(root) as team:
        create(team, "live")
        send(team, "live", "ann", "the first")
        decide(team, "Keep both")
        sync(team)
    return root


def decide(team: Team, title: str) -> None:
    """Log a decision."""
    log(team, DecisionRequest(title, ["ann"], "Nothing is lost.", refs=["live#last"]))


def kinds(root: Path) -> list[str]:
    """The kinds of the ledger's entries."""
    with Team(root) as team:
        return [entry.kind for entry in team.entries()]


def failures(root: Path) -> list[str]:
    """What a verifier calls a failure."""
    with collect(str(root)) as evidence:
        report = run(evidence)
    every = (finding for one in report.outcomes for finding in one.findings)
    return [finding.message for finding in every if finding.severity == "failure"]


def cursors(root: Path) -> tuple[int, int, int]:
    """Size, files and synced of the head's row."""
    with closing(sqlite3.connect(root / "ledger.db")) as db:
        size, shown, synced = db.execute("SELECT size, files, synced FROM head").fetchone()
    return int(size), int(shown), int(synced)


def test_an_act_waits_for_the_log_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: waits.append("file"))
    monkeypatch.setattr(os, "fdatasync", lambda _: waits.append("file"))
    monkeypatch.setattr(os, "sync", lambda: waits.append("all"))
    before = cursors(root)[2]
    with Team(root) as team:
        publish(team, "ann", "note", "low", "text")
        send(team, "live", "ann", "the second")
        decide(team, "Keep one")
    assert waits == []
    size, shown, synced = cursors(root)
    assert (shown, synced) == (size, before)


def test_without_a_name_of_the_start_each_file_is_waited_for(
    root: Path, start: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    start("")
    with Team(root) as team:
        sync(team)
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    with Team(root) as team:
        publish(team, "ann", "note", "low", "text")
    assert len(waits) == 2  # the file and its folder
    size, shown, synced = cursors(root)
    assert size == shown == synced


TORN: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda _: None,
    "empty": lambda _: b"",
    "zeros": lambda data: bytes(len(data)),
    "cut": lambda data: data[: len(data) // 2],
    "a sector of zeros": lambda data: bytes(min(512, len(data))) + data[512:],
    "the end in zeros": lambda data: data[:-20] + bytes(20),
}


@pytest.mark.parametrize("how", TORN)
def test_what_a_cut_left_is_written_again(
    root: Path, start: Callable[[str], None], how: str
) -> None:
    with Team(root) as team:
        event = publish(team, "ann", "note", "low", "text " * 300)
        send(team, "live", "ann", "the second " * 60)
        decide(team, "Keep one")
    paths = [path for path in (CHAT, LOG, f"events/{event}") if how != "gone" or "event" in path]
    whole = {path: (root / path).read_bytes() for path in paths}
    before = kinds(root)
    for path, data in whole.items():
        left = TORN[how](data)
        (root / path).unlink()
        if left is not None:
            (root / path).write_bytes(left)
    start("two")
    assert failures(root) == []
    with Team(root) as team:
        team.refresh()
        assert how == "gone" or any("a power cut" in text for text in team.warnings)
    assert {path: (root / path).read_bytes() for path in paths} == whole
    assert kinds(root) == before
    assert failures(root) == []
    size, shown, synced = cursors(root)
    assert size == shown == synced


def warnings(root: Path) -> list[str]:
    """What a verifier warns of."""
    with collect(str(root)) as evidence:
        report = run(evidence)
    every = (finding for one in report.outcomes for finding in one.findings)
    return [finding.message for finding in every if finding.severity == "warning"]


def test_what_is_gone_from_a_folder_that_was_changed_since_the_start_is_recorded(
    root: Path, start: Callable[[str], None]
) -> None:
    with Team(root) as team:
        event = publish(team, "ann", "pythia-checkpoint", "high", "text")
        others = [publish(team, "ann", "note", "low", str(n)) for n in range(12)]
    start("two")
    for name in (event, *others):
        (root / "events" / name).unlink()
    assert any("missing" in text for text in failures(root))
    with Team(root) as team:
        team.refresh()
        assert any(event in text and "gone" in text for text in team.warnings)
    assert (root / "events" / event).is_file()
    assert failures(root) == []
    assert any(event in text and "written anew" in text for text in warnings(root))
    told = len(kinds(root))
    with Team(root) as team:
        team.refresh()
    assert len(kinds(root)) == told


def test_what_was_cut_after_the_start_is_an_edit(root: Path, start: Callable[[str], None]) -> None:
    with Team(root) as team:
        send(team, "live", "ann", "the second")
        decide(team, "Keep one")
    start("two")
    for path in (CHAT, LOG):
        data = (root / path).read_bytes()
        (root / path).write_bytes(data[:-10])
    found = failures(root)
    assert len(found) >= 2
    with Team(root) as team:
        team.refresh()
        assert any(CHAT in text and LOG in text for text in team.warnings)
    assert failures(root) == []
    found = warnings(root)
    assert all(any(f"{path} was written anew" in one for one in found) for path in (CHAT, LOG))


def test_an_event_that_others_acknowledged_after_the_start_is_no_power_cut(
    root: Path, start: Callable[[str], None]
) -> None:
    with Team(root) as team:
        event = publish(team, "ann", "note", "low", "text")
    start("two")
    (root / "events" / event).rename(root / "events/processed" / event)
    assert failures(root) == warnings(root) == []
    with Team(root) as team:
        team.refresh()
    assert kinds(root)[-1] == "bus.acked"
    assert failures(root) == warnings(root) == []


def test_files_in_an_added_folder_that_is_not_mounted_are_not_called_gone(
    root: Path, start: Callable[[str], None]
) -> None:
    talk = root.parent / "talk"
    talk.mkdir()
    with Team(root) as team:
        add_place(team, "chat", str(talk))
        create(team, "talk/two")
    start("two")
    talk.rename(root.parent / "away")
    with Team(root) as team:
        team.refresh()
    assert "file.displaced" not in kinds(root)


def test_in_the_same_start_it_is_an_edit(root: Path) -> None:
    with Team(root) as team:
        send(team, "live", "ann", "the second")
    data = (root / CHAT).read_bytes()
    (root / CHAT).write_bytes(data[:-10])
    assert failures(root)
    with Team(root) as team:
        team.refresh()
        assert any("edited outside the ledger" in text for text in team.warnings)


@pytest.mark.parametrize("path", [CHAT, LOG])
def test_another_text_is_an_edit_in_a_new_start_too(
    root: Path, start: Callable[[str], None], path: str
) -> None:
    with Team(root) as team:
        send(team, "live", "ann", "the second")
        decide(team, "Keep one")
    data = (root / path).read_bytes()
    (root / path).write_bytes(data[:-9] + b"x" + data[-8:])
    start("two")
    assert failures(root)
    with Team(root) as team:
        team.refresh()
        assert any("edited outside the ledger" in text for text in team.warnings), team.warnings
    assert "file.displaced" in kinds(root)  # its bytes are kept before it is written again


def test_a_file_of_older_entries_is_judged_as_ever(
    root: Path, start: Callable[[str], None]
) -> None:
    with Team(root) as team:
        publish(team, "ann", "note", "low", "text")
    (root / CHAT).write_bytes(b"")
    start("two")
    assert failures(root)


@pytest.mark.parametrize("torn", [False, True])
def test_what_others_appended_to_a_log_is_taken_in(
    root: Path, start: Callable[[str], None], *, torn: bool
) -> None:
    size = (root / LOG).stat().st_size
    with Team(root) as team:
        decide(team, "Keep one")
    data = (root / LOG).read_bytes()
    if torn:
        data = data[: size + 10] + bytes(len(data) - size - 10)
    foreign = b"\n### D-1795000000 By hand\n\n- Participants: bob\n\nIt was said.\n\n---\n"
    (root / LOG).write_bytes(data + foreign)
    start("two")
    with Team(root) as team:
        team.refresh()
    assert kinds(root).count("decision.logged") == 3
    assert "file.displaced" not in kinds(root)
    assert b"By hand" in (root / LOG).read_bytes()
    assert [one for one in failures(root) if "no chat reference" not in one] == []


def test_what_others_appended_to_a_chat_is_taken_in(
    root: Path, start: Callable[[str], None]
) -> None:
    before = (root / CHAT).read_bytes()
    line = b"Ym9ifDE3OTU4MDY3Nzc6IGhleQ==\n"  # bob|1795806777: hey
    with Team(root) as team:
        send(team, "live", "ann", "the second")
        with (root / CHAT).open("ab") as chat:
            chat.write(line)
        team.refresh()
        send(team, "live", "ann", "the third")
    (root / CHAT).write_bytes(before + line.replace(b"Nzc6", b"Nzg6"))  # others, a second later
    start("two")
    with Team(root) as team:
        team.refresh()
    assert kinds(root).count("chat.sent") == 5
    assert "file.displaced" not in kinds(root)
    assert line in (root / CHAT).read_bytes()
    assert failures(root) == []


def test_an_acknowledgement_whose_move_was_lost_is_moved_again(
    root: Path, start: Callable[[str], None]
) -> None:
    with Team(root) as team:
        event = publish(team, "ann", "note", "low", "text")
        sync(team)
        ack(team, event, actor="bob")
    (root / "events/processed" / event).rename(root / "events" / event)
    start("two")
    assert failures(root) == []
    with Team(root) as team:
        team.refresh()
    assert not (root / "events" / event).exists()
    assert (root / "events/processed" / event).is_file()


def test_the_disk_is_waited_for_once_for_many_entries(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_module, "MOST_UNSYNCED", 5)
    with Team(root) as team:
        for _ in range(12):
            publish(team, "ann", "note", "low", "text")
            size, shown, synced = cursors(root)
            assert shown == size
            assert size - synced < 5


def test_a_disk_that_refuses_keeps_the_cursor(
    root: Path, start: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Team(root) as team:
        publish(team, "ann", "note", "low", "text")
    before = cursors(root)[2]

    def refuse(_: object) -> None:
        raise OSError(5, "Input/output error")

    start("two")
    monkeypatch.setattr(Disk, "sync", refuse)
    with Team(root) as team:
        team.refresh()
        assert any("did not take all files" in text for text in team.warnings)
    size, shown, synced = cursors(root)
    assert (shown, synced) == (size, before)


def test_a_team_that_was_copied_to_another_host_is_clean(
    root: Path, start: Callable[[str], None]
) -> None:
    with Team(root) as team:
        send(team, "live", "ann", "the second")
    start("two")
    with collect(str(root)) as evidence:
        report = run(evidence)
    assert [finding for one in report.outcomes for finding in one.findings] == []


@given(st.binary(max_size=40), st.binary(max_size=40), st.data())
def test_zeros_and_a_cut_are_seen_through(state: bytes, more: bytes, data: st.DataObject) -> None:
    stop = data.draw(st.integers(0, len(state)))
    holes = data.draw(st.sets(st.integers(0, max(0, len(state) - 1))))
    left = bytes(0 if at in holes else one for at, one in enumerate(state))
    assert over_state(left[:stop], state) == state
    behind = more.rstrip(b"\0")
    assert over_state(left + behind, state) == (state + behind if behind else state)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    files._boot_id.cache_clear()
