"""Which team a folder belongs to, and the ledger that is begun for it where there is none."""

import os
import shutil
from pathlib import Path
from threading import Thread

import pytest
from story import folder as new_folder
from story import tree

from tripod.bus import events as bus
from tripod.cli.nbs_team import team_of
from tripod.errors import NoTeamError, RefusedError, TripodError
from tripod.ledger.locator import LEDGER
from tripod.projections.bus.format import Event, format_event
from tripod.team import adoption
from tripod.team.act import MAX_PAYLOAD
from tripod.team.team import Team

EVENT = format_event(Event("ann", "done", "low", "2020-09-13T12:26:40Z", "ann:done", "text"))
NAME = "1600000000000000-ann-done-7.event"
MESSAGE = (
    "=== nbs-chat ===\nlast-writer: system\nlast-write: 2020-09-13T12:26:40+0000\n"
    "file-length: 111\nparticipants: \n---\n"
)


def events_of(front: str, folder: Path) -> list[str]:
    with team_of(front, str(folder)) as team:
        return [event.name for event in bus.check(team)]


def a_queue(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(EVENT)
    return folder


def test_a_ledger_is_begun_around_the_folder_and_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = a_queue(tmp_path / "shop/.nbs/events")
    before = tree(tmp_path)
    assert events_of("events", folder) == [NAME]
    out, err = capfd.readouterr()
    root = tmp_path / "shop/.nbs"
    assert out == ""
    assert err == (
        f"tripod: began the ledger {root}/ledger.db, with 1 entry from 1 file of before\n"
    )
    after = tree(tmp_path)
    assert {path: after[path] for path in before} == before
    assert events_of("events", folder) == [NAME]
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_named_as_the_team_directory_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_queue(tmp_path / ".nbs/events")
    for place in (tmp_path / "notes", Path(os.devnull)):
        monkeypatch.setenv(LEDGER, str(place))
        (tmp_path / "notes").write_text("mine")
        with pytest.raises(NoTeamError, match=f"{place} is no folder: name a team directory in"):
            events_of("events", folder)
    assert (tmp_path / "notes").read_text() == "mine"


def test_what_is_odd_in_the_past_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = a_queue(tmp_path / ".nbs/events")
    (folder / "config.yaml").write_text("dedup-window: soon\n")
    events_of("events", folder)
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith("tripod: warning: events/config.yaml:1: dedup-window")
    assert second.startswith("tripod: began the ledger ")


def test_a_folder_of_any_name_is_recorded(tmp_path: Path) -> None:
    folder = a_queue(tmp_path / "queue")
    assert events_of("events", folder) == [NAME]
    assert (tmp_path / ".nbs/ledger.db").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".nbs", "queue"]
    with team_of("events", f"{folder}/") as team:
        assert team.source.body(0)["events"] == "../queue"
        assert team.source.body(0)["chat"] == "chat"


def test_the_same_team_is_found_by_its_chats(tmp_path: Path) -> None:
    a_queue(tmp_path / ".nbs/events")
    (tmp_path / ".nbs/chat").mkdir()
    for front in ("events", "chat", "events"):
        assert events_of(front, tmp_path / ".nbs" / front) == [NAME]


def test_logs_are_where_they_always_are(tmp_path: Path) -> None:
    a_queue(tmp_path / ".nbs/events")
    (tmp_path / ".nbs/scribe").mkdir()
    assert events_of("scribe", tmp_path / ".nbs/scribe") == [NAME]
    (tmp_path / "other").mkdir()
    # A log may be in any folder: the folder alone adds nothing.
    assert events_of("scribe", tmp_path / "other") == [NAME]
    with Team(str(tmp_path / ".nbs")) as team:
        assert team.disk.places.added == []


@pytest.mark.parametrize("text", ["\x01", "a\n"])
def test_the_largest_events_of_ours_are_events_of_the_next_ledger(
    tmp_path: Path, text: str
) -> None:
    folder = tmp_path / "old/.nbs/events"
    folder.mkdir(parents=True)
    payload = text * (MAX_PAYLOAD // len(text))
    with team_of("events", str(folder)) as team:
        name = bus.publish(team, "ann", "done", "low", payload)
    new = tmp_path / "new/.nbs/events"
    new.mkdir(parents=True)
    shutil.copy(folder / name, new)
    assert events_of("events", new) == [name]


def test_a_project_that_records_the_folder_is_its_team(tmp_path: Path) -> None:
    folder = a_queue(tmp_path / "bus")
    adoption.init(str(tmp_path), events=str(folder))
    assert events_of("events", folder) == [NAME]
    assert not (tmp_path / "ledger.db").exists()


def test_another_folder_belongs_to_the_team_as_well(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    events_of("events", a_queue(tmp_path / "queue"))
    other = a_queue(tmp_path / "other")
    assert events_of("events", other) == [NAME]
    assert [path.name for path in other.iterdir()] == [NAME]
    assert [str(path) for path in tmp_path.rglob("ledger.db")] == [f"{tmp_path}/.nbs/ledger.db"]


def test_a_link_to_the_folder_is_the_folder(tmp_path: Path) -> None:
    folder = a_queue(tmp_path / ".nbs/events")
    events_of("events", folder)
    (tmp_path / "link").symlink_to(".nbs")
    assert events_of("events", tmp_path / "link/events") == [NAME]


@pytest.mark.parametrize("there", [True, False])
def test_no_folder_no_team(tmp_path: Path, *, there: bool) -> None:
    path = tmp_path / ".nbs/events"
    if there:
        path.parent.mkdir()
        path.write_text("")
    with pytest.raises(NoTeamError, match="is no folder" if there else "is not there"):
        events_of("events", path)
    assert not list(tmp_path.rglob("ledger.db"))


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/letter.txt").write_text("dear")
    with pytest.raises(RefusedError, match=r"'letter.txt' is the first"):
        events_of("events", tmp_path / "papers")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["letter.txt", "papers"]


def test_an_empty_file_is_not_filled(tmp_path: Path) -> None:
    folder = a_queue(tmp_path / ".nbs/events")
    (tmp_path / ".nbs/ledger.db").touch()
    with pytest.raises(Exception, match=r"holds no entry. .* `tripod init` begins one"):
        events_of("events", folder)
    assert (tmp_path / ".nbs/ledger.db").read_bytes() == b""


def test_a_record_is_restored_and_not_begun_beside(tmp_path: Path) -> None:
    folder = a_queue(tmp_path / ".nbs/events")
    (tmp_path / ".nbs/record").mkdir()
    (tmp_path / ".nbs/record/checkpoint").write_text("a seal\n")
    with pytest.raises(RefusedError, match=r"`tripod init` restores the ledger from it"):
        events_of("events", folder)


def test_a_ledger_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    folder = a_queue(tmp_path / ".nbs/events")
    events_of("events", folder)
    (tmp_path / ".nbs/ledger.db").unlink()
    with pytest.raises(RefusedError, match=r"had a ledger: .* Put its ledger.db back"):
        events_of("events", folder)


# Elsewhere -------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["", "/ledger.db", "/"])
def test_the_ledger_can_be_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    folder = a_queue(tmp_path / "shop/.nbs/events")
    (tmp_path / "kept").mkdir()
    monkeypatch.setenv(LEDGER, f"{tmp_path}/kept{file}")
    assert events_of("events", folder) == [NAME]
    assert (tmp_path / "kept/ledger.db").exists()
    assert sorted(os.listdir(tmp_path / "shop/.nbs")) == ["chat", "events"]
    # Its other folder stands beside the one that was given.
    (tmp_path / "shop/.nbs/chat/live.chat").write_text(MESSAGE)
    assert events_of("chat", tmp_path / "shop/.nbs/chat") == [NAME]
    with team_of("chat", str(tmp_path / "shop/.nbs/chat")) as team:
        assert team.disk.names("chat") == ["live.chat"]


def test_a_ledger_elsewhere_is_made_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_queue(tmp_path / "queue")
    monkeypatch.setenv(LEDGER, str(tmp_path / "new/deep"))
    assert events_of("events", folder) == [NAME]
    with team_of("events", str(folder)) as team:
        assert team.source.body(0)["events"] == str(folder.resolve())
    other = a_queue(tmp_path / "other")
    assert events_of("events", other) == [NAME]
    assert len(list(tmp_path.rglob("ledger.db"))) == 1


# At once ---------------------------------------------------------------------------------------


def test_of_many_who_begin_at_once_one_does(capfd: pytest.CaptureFixture[str]) -> None:
    with new_folder() as where:
        folder = a_queue(where / ".nbs/events")
        problems: list[Exception] = []

        def publish(number: int) -> None:
            try:
                with team_of("events", str(folder)) as team:
                    bus.publish(team, f"a{number}", "t", "low")
            except TripodError as error:
                problems.append(error)

        threads = [Thread(target=publish, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert len(events_of("events", folder)) == 9
        with team_of("events", str(folder)) as team:
            kinds = [entry.kind for entry in team.store.read()]
        assert kinds.count("ledger.opened") == kinds.count("ledger.adopted") == 1
        assert capfd.readouterr().err.count("began the ledger") == 1
