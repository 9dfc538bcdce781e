"""Chats and queues outside of the team directory: any number of folders, and one ledger for all."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from threading import Thread

import pytest
from doors.inside import Done, run, run_as
from story import folder as new_folder

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.cli.nbs_team import team_of
from tripod.errors import NoTeamError, RefusedError, TripodError
from tripod.ledger.locator import LEDGER, has_record
from tripod.projections.bus.format import Event, format_event
from tripod.projections.erasure import withhold_erased
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.team import Team

EVENT = format_event(Event("ann", "done", "low", "2020-09-13T12:26:40Z", "ann:done", "text"))
NAME = "1600000000000000-ann-done-7.event"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a file of the user's own that git ignores nothing by."""
    made = tmp_path / "shop"
    made.mkdir()
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    (made / ".gitignore").write_text("target/\n")
    return made


def nbs_chat(where: Path, *words: str) -> Done:
    done = run_as("nbs-chat", where, *words)
    assert done.code == 0, done
    return done


def nbs_bus(where: Path, *words: str) -> Done:
    done = run_as("nbs-bus", where, *words)
    assert done.code == 0, done
    return done


def judged(where: Path) -> list[str]:
    """What the judge finds; nothing where all is clean."""
    done = run(where, "verify", "--no-git")
    return done.out.decode().splitlines() if done.code else []


def ledgers(top: Path) -> list[str]:
    return sorted(str(path.relative_to(top)) for path in top.rglob("ledger.db"))


def test_a_chat_in_a_folder_of_the_project_needs_no_other_ledger(shop: Path) -> None:
    (shop / "talk").mkdir()
    (shop / "notes").mkdir()
    for place in ("talk/x", "notes/x", "y"):
        nbs_chat(shop, "create", f"{place}.chat")
        nbs_chat(shop, "send", f"{place}.chat", "ann", f"said in {place}")
    for place in ("talk/x", "notes/x", "y"):
        assert nbs_chat(shop, "read", f"{place}.chat").out.endswith(
            b": said in %b\n" % place.encode()
        )
        assert nbs_chat(shop, "count", f"{place}.chat").out == b"1\n"
    assert ledgers(shop) == [".git/tripod/ledger.db"]
    assert (shop / ".gitignore").read_text() == "target/\n"
    assert sorted(os.listdir(shop / "talk")) == ["x.chat", "x.chat.cursors", "x.chat.lock"]
    assert judged(shop) == []


def test_a_chat_beside_a_team_directory_is_one_of_its_chats(shop: Path) -> None:
    nbs_chat_dir = shop / ".nbs/chat"
    nbs_chat_dir.mkdir(parents=True)
    nbs_chat(shop, "create", ".nbs/chat/live.chat")
    nbs_chat(shop, "create", "r.chat")
    nbs_chat(shop, "send", "r.chat", "ann", "hello")
    assert ledgers(shop) == [".git/tripod/ledger.db"]
    assert b"hello" in run(shop, "chat", "read", "shop/r").out
    assert judged(shop) == []


def test_queues_side_by_side_are_apart(shop: Path) -> None:
    for place in ("one", "two", ".nbs/events"):
        (shop / place).mkdir(parents=True)
    names = {
        place: nbs_bus(shop, "publish", place, "ann", f"in-{number}", "low").out.decode().strip()
        for number, place in enumerate(("one", "two", ".nbs/events"))
    }
    for number, (place, name) in enumerate(names.items()):
        assert (shop / place / name).exists()
        listed = nbs_bus(shop, "check", place).out.decode()
        assert listed.count("\n") == 1
        assert f"-ann-in-{number}-" in listed
        assert nbs_bus(shop, "status", place).out.startswith(b"Pending: 1 total")
    assert run_as("nbs-bus", shop, "ack", "two", names["one"]).code == 3
    nbs_bus(shop, "ack", "one", names["one"])
    assert (shop / "one/processed" / names["one"]).exists()
    assert run_as("nbs-bus", shop, "ack", "one", names["one"]).code == 3
    assert nbs_bus(shop, "ack-all", "two").out == b"Acknowledged 1 event\n"
    assert b"-ann-in-2-" in nbs_bus(shop, "check", ".nbs/events").out
    assert b"Pruned 1 event" in nbs_bus(shop, "prune", "one", "--max-bytes=1").out
    assert not (shop / "one/processed" / names["one"]).exists()
    assert (shop / "two/processed" / names["two"]).exists()
    assert ledgers(shop) == [".git/tripod/ledger.db"]
    assert judged(shop) == []


def test_acknowledging_all_of_the_teams_own_queue_leaves_the_others(shop: Path) -> None:
    for place in ("one", ".nbs/events"):
        (shop / place).mkdir(parents=True)
        nbs_bus(shop, "publish", place, "ann", "done", "low")
    assert nbs_bus(shop, "ack-all", ".nbs/events").out == b"Acknowledged 1 event\n"
    assert nbs_bus(shop, "status", "one").out.startswith(b"Pending: 1 total")
    run(shop, "rebuild")
    assert len(list((shop / "one").glob("*.event"))) == 1
    assert judged(shop) == []


def test_each_queue_has_its_own_readers_claims_windows_and_configuration(shop: Path) -> None:
    for place in ("one", "two"):
        (shop / place).mkdir()
    (shop / "two/config.yaml").write_text("dedup-window: 300\n")
    for place in ("one", "two"):
        nbs_bus(shop, "publish", place, "ann", "done", "low")
        assert nbs_bus(shop, "check", place, "--reader=bob").out.count(b"\n") == 1
        assert nbs_bus(shop, "check", place, "--reader=bob").out == b""
        nbs_bus(shop, "claim", place, "--by=cid")
    assert nbs_bus(shop, "publish", "one", "ann", "done", "low").out
    assert run_as("nbs-bus", shop, "publish", "two", "ann", "done", "low").code == 5
    assert judged(shop) == []


def test_what_others_write_there_is_taken_in_and_what_is_lost_comes_back(shop: Path) -> None:
    (shop / "bus").mkdir()
    nbs_bus(shop, "publish", "bus", "ann", "first", "low")
    (shop / "bus" / NAME).write_bytes(EVENT)
    assert b"ann-done" in nbs_bus(shop, "check", "bus").out
    (shop / "talk").mkdir()
    nbs_chat(shop, "create", "talk/x.chat")
    nbs_chat(shop, "send", "talk/x.chat", "ann", "hello")
    before = (shop / "talk/x.chat").read_bytes()
    (shop / "talk/x.chat").unlink()
    assert judged(shop)
    assert run(shop, "rebuild").code == 0
    assert (shop / "talk/x.chat").read_bytes() == before
    assert judged(shop) == []
    (shop / "talk/x.chat").write_bytes(before[: before.index(b"---\n") + 4])
    assert judged(shop), "a chat that was cut is a finding"


def test_the_past_of_a_folder_is_taken_in_when_it_is_met(shop: Path) -> None:
    (shop / "old/processed").mkdir(parents=True)
    (shop / "old/processed" / NAME).write_bytes(EVENT)
    adoption.init(str(shop), key=False)
    assert nbs_bus(shop, "status", "old").out.startswith(b"Pending: 0 total")
    with Team(str(shop / ".nbs")) as team:
        kinds = [entry.kind for entry in team.store.read()][-3:]
    assert kinds == ["place.added", "bus.published", "bus.acked"]
    assert judged(shop) == []


def test_a_mistyped_path_adds_nothing(shop: Path) -> None:
    (shop / "talk").mkdir()
    (shop / "papers").mkdir()
    (shop / "papers/letter.txt").write_text("dear")
    adoption.init(str(shop), key=False)
    for words in (("read", "talk/x.chat"), ("send", "talk/x.chat", "ann", "hello")):
        assert run_as("nbs-chat", shop, *words).code == 2
    assert run_as("nbs-bus", shop, "check", "papers").code == 1
    assert run_as("nbs-bus", shop, "check", ".nbs/events/processed").code == 1
    with Team(str(shop / ".nbs")) as team:
        assert team.disk.places.added == []


def test_a_folder_is_one_however_it_is_named(shop: Path, tmp_path: Path) -> None:
    (shop / "talk").mkdir()
    (shop / "link").symlink_to("talk")
    nbs_chat(shop, "create", "talk/x.chat")
    nbs_chat(shop, "create", "notes.chat")
    for name in (
        "link/x.chat",
        "./talk/../talk/x.chat",
        str(shop / "talk/x.chat"),
        "../shop/talk/x.chat",
    ):
        nbs_chat(shop, "send", name, "ann", "hello")
    assert nbs_chat(shop, "count", "talk/x.chat").out == b"4\n"
    with Team(str(shop / ".nbs")) as team:
        assert team.disk.places.added == ["chat/shop"]
    assert judged(shop) == []


def test_folders_in_folders_and_of_one_name(shop: Path) -> None:
    for place in ("talk", "talk/talk", "deep/talk"):
        (shop / place).mkdir(parents=True)
        nbs_chat(shop, "create", f"{place}/x.chat")
        nbs_chat(shop, "send", f"{place}/x.chat", "ann", f"in {place}")
    for place in ("talk", "talk/talk", "deep/talk"):
        assert nbs_chat(shop, "read", f"{place}/x.chat").out.endswith(f": in {place}\n".encode())
    assert judged(shop) == []


def test_the_events_of_a_chat_go_to_the_queue_beside_it(shop: Path) -> None:
    adoption.init(str(shop), key=False)
    for place in ("a/chat", "a/events", "b"):
        (shop / place).mkdir(parents=True)
    nbs_chat(shop, "create", "a/chat/x.chat")
    nbs_chat(shop, "send", "a/chat/x.chat", "ann", "hello")
    nbs_chat(shop, "create", "b/x.chat")
    nbs_chat(shop, "send", "b/x.chat", "ann", "hello")
    assert len(list((shop / "a/events").glob("*-chat-message-*.event"))) == 1
    assert len(list((shop / ".nbs/events").glob("*-chat-message-*.event"))) == 1
    assert judged(shop) == []


def test_outside_of_a_repository_the_ledger_is_in_the_files_folder(tmp_path: Path) -> None:
    nbs_chat(tmp_path, "create", "x.chat")
    nbs_chat(tmp_path, "send", "x.chat", "ann", "hello")
    assert ledgers(tmp_path) == [".nbs/ledger.db"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".nbs", "x.chat", "x.chat.cursors", "x.chat.lock",
    ]  # fmt: skip
    assert judged(tmp_path) == []


def test_a_folder_elsewhere_on_the_disk(shop: Path, tmp_path: Path) -> None:
    adoption.init(str(shop), key=False)
    (tmp_path / "away").mkdir()
    done = run_as("nbs-chat", shop, "create", "../away/x.chat")
    assert done.code == 0
    assert ledgers(tmp_path) == ["away/.nbs/ledger.db", "shop/.git/tripod/ledger.db"], (
        "it is no part of it"
    )


def test_a_named_ledger_takes_folders_from_everywhere(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adoption.init(str(shop), key=False)
    monkeypatch.setenv(LEDGER, str(shop))
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        nbs_chat(tmp_path, "create", f"{place}/x.chat")
        nbs_chat(tmp_path, "send", f"{place}/x.chat", "ann", "hello")
    assert ledgers(tmp_path) == ["shop/.git/tripod/ledger.db"]
    assert judged(shop) == []


def test_two_projects_share_a_folder_of_chats(tmp_path: Path) -> None:
    (tmp_path / "both").mkdir()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        adoption.init(str(tmp_path / name), key=False)
    with Team(str(tmp_path / "one/.nbs")) as one, Team(str(tmp_path / "two/.nbs")) as two:
        for team in (one, two):
            adoption.add_place(team, "chat", str(tmp_path / "both"))
        chat_send.create(one, "both/x")
        chat_send.send(two, "both/x", "bob", "from two")
        chat_send.send(one, "both/x", "ann", "from one")
        two.refresh()
        one.refresh()
        for team in (one, two):
            assert [m.text for m in chat_read.messages(team, "both/x")] == [
                "from two",
                "from one",
            ]
    for name in ("one", "two"):
        assert judged(tmp_path / name) == []


# What goes wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["gone", "link"])
def test_a_folder_that_vanished_stops_no_work_in_the_others(shop: Path, how: str) -> None:
    for place in ("talk", "bus"):
        (shop / place).mkdir()
    nbs_chat(shop, "create", "y.chat")
    nbs_chat(shop, "create", "talk/x.chat")
    nbs_chat(shop, "send", "talk/x.chat", "ann", "hello")
    before = (shop / "talk/x.chat").read_bytes()
    (shop / "talk").rename(shop / "gone")
    if how == "link":
        (shop / "talk").symlink_to("gone")
    done = run_as("nbs-chat", shop, "send", "y.chat", "ann", "still here")
    assert done.code == 0
    assert "no folder is there" in done.err
    assert "talk" in str(judged(shop))
    refused = run(shop, "chat", "send", "talk/x", "ann", "lost?")
    assert refused.code == 1
    assert "put it back" in refused.err
    if how == "gone":
        assert not (shop / "talk").exists()
    else:
        (shop / "talk").unlink()
    (shop / "gone").rename(shop / "talk")
    assert (shop / "talk/x.chat").read_bytes() == before
    assert judged(shop) == []
    shutil.rmtree(shop / "talk")
    assert run(shop, "rebuild").code == 0
    assert (shop / "talk/x.chat").read_bytes() == before
    assert judged(shop) == []


def test_a_ledger_that_an_earlier_version_began_in_the_projects_root(shop: Path) -> None:
    (shop / "talk").mkdir()
    (shop / "other").mkdir()
    adoption.init_at(str(shop), {"chat": "talk"}, key=False)
    assert (shop / ".gitignore").read_text() == "target/\n"
    nbs_chat(shop, "create", "talk/x.chat")
    nbs_chat(shop, "send", "talk/x.chat", "ann", "hello")
    nbs_chat(shop, "create", "other/x.chat")
    nbs_chat(shop, "send", "other/x.chat", "ann", "hello")
    assert ledgers(shop) == ["ledger.db"]
    assert judged(shop) == []
    adoption.init_at(str(shop / ".nbs"), {}, key=False)
    nbs_chat(shop, "send", "talk/x.chat", "ann", "again")
    with Team(str(shop)) as team:
        assert chat_read.count(team, "x") == 2


def test_a_read_only_place_is_told(shop: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (shop / "talk").mkdir()
    nbs_chat(shop, "create", "talk/x.chat")
    (shop / "talk").chmod(0o500)
    try:
        assert run_as("nbs-chat", shop, "send", "talk/x.chat", "ann", "hello").code == 1
    finally:
        (shop / "talk").chmod(0o700)
    assert judged(shop) == []


def test_of_many_who_meet_folders_at_once_each_is_added_once() -> None:
    with new_folder() as where:
        (where / ".git").mkdir()
        folders = [where / f"bus-{number}" for number in range(3)]
        for one in folders:
            one.mkdir()
        problems: list[Exception] = []

        def publish(number: int) -> None:
            try:
                with team_of("events", str(folders[number % 3])) as team:
                    bus.publish(team, f"a{number}", "t", "low")
            except TripodError as error:
                problems.append(error)

        threads = [Thread(target=publish, args=(number,)) for number in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        for one in folders:
            assert len(list(one.glob("*.event"))) == 3
        with Team(str(where / ".nbs")) as team:
            kinds = [entry.kind for entry in team.store.read()]
            assert len(team.disk.places.added) + 1 == 3
        assert kinds.count("place.added") == 2
        assert judged(where) == []


def test_a_ledger_that_another_process_begins_meanwhile_is_not_a_lost_one(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eleven of twelve commands that began at once had ended with 1 here, and lost their act."""
    asked: list[str] = []

    def begun_meanwhile(root: str) -> bool:
        asked.append(root)
        if len(asked) == 1:
            nbs_chat(shop, "create", "y.chat")
        return has_record(root)

    monkeypatch.setattr("tripod.cli.nbs_team.has_record", begun_meanwhile)
    nbs_chat(shop, "create", "x.chat")
    assert (shop / "y.chat").exists()
    assert (shop / "x.chat").exists()
    assert judged(shop) == []


def test_a_folder_is_met_by_a_team_that_is_open_elsewhere(shop: Path) -> None:
    (shop / "talk").mkdir()
    adoption.init(str(shop), key=False)
    with Team(str(shop / ".nbs")) as stale:
        nbs_chat(shop, "create", "talk/x.chat")
        bus.publish(stale, "ann", "done", "low")
        assert stale.disk.full("chat/talk/x.chat") == f"{shop}/.nbs/../talk/x.chat"
    assert not (shop / ".nbs/chat/talk").exists()
    assert judged(shop) == []


@pytest.mark.parametrize("place", [".nbs/scribe", ".nbs/record"])
def test_folders_of_the_team_that_hold_something_else_are_refused(shop: Path, place: str) -> None:
    adoption.init(str(shop), key=False)
    (shop / place).mkdir(exist_ok=True)
    done = run_as("nbs-chat", shop, "create", f"{place}/x.chat")
    assert done.code == 1
    assert "holds something else of the team" in done.err
    with Team(str(shop / ".nbs")) as team, pytest.raises(RefusedError):
        adoption.add_place(team, "chat", str(shop / place))


def test_there_must_be_a_folder(shop: Path) -> None:
    with pytest.raises(NoTeamError), team_of("chat", str(shop / "nowhere")):
        pass


# What the ledger lacks, and what was erased -------------------------------------------------------


def test_messages_among_ours_are_taken_in_in_any_folder(shop: Path) -> None:
    adoption.init(str(shop), key=False)
    (shop / "talk").mkdir()
    nbs_chat(shop, "create", "talk/x.chat")
    nbs_chat(shop, "send", "talk/x.chat", "ann", "hello")
    nbs_chat(shop, "send", "talk/x.chat", "ann", "again")
    whole = (shop / "talk/x.chat").read_bytes()
    nbs_chat(shop, "create", "y.chat")
    nbs_chat(shop, "send", "y.chat", "bob", "of a clone")
    head, rule, lines = whole.partition(b"\n---\n")
    theirs = (shop / "y.chat").read_bytes().partition(b"\n---\n")[2]
    (shop / "talk/x.chat").write_bytes(head + rule + theirs + lines.split(b"\n")[0] + b"\n")
    assert run(shop, "rebuild").code == 0
    after = (shop / "talk/x.chat").read_bytes().partition(b"\n---\n")[2]
    assert after == lines + theirs


def test_of_a_chat_of_any_folder_only_what_was_erased_is_withheld(shop: Path) -> None:
    adoption.init(str(shop), key=False)
    (shop / "talk").mkdir()
    nbs_chat(shop, "create", "talk/x.chat")
    nbs_chat(shop, "send", "talk/x.chat", "ann", "a secret")
    nbs_chat(shop, "send", "talk/x.chat", "ann", "a plain word")
    old = (shop / "talk/x.chat").read_bytes()
    with Team(str(shop / ".nbs")) as team:
        redaction.redact(
            team, redaction.RedactionRequest(match="secret", reason="a name", by="ann")
        )
        kept, count = withhold_erased(team.source, "chat/talk/x.chat", old)
    assert count == 1
    now = (shop / "talk/x.chat").read_bytes()
    assert kept.partition(b"\n---\n")[2] == now.partition(b"\n---\n")[2]


@pytest.mark.parametrize("how", ["read", "send"])
def test_in_the_wrong_folder_a_chat_is_not_there(tmp_path: Path, how: str) -> None:
    done = run_as(
        "nbs-chat", tmp_path, how, ".nbs/chat/live.chat", *["ann", "hi"][: 2 * (how == "send")]
    )
    assert (done.code, "no chat " in done.err) == (2, True), done.err
    assert list(tmp_path.iterdir()) == []
