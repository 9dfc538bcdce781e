"""A ledger that lacks what its own files count was rolled back or swapped: it stops there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.errors import RefusedError
from tripod.projections.disk import Disk
from tripod.projections.engine import files_ahead_of
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run


def begin(root: Path) -> Path:
    root.mkdir()
    adoption.init(str(root))
    with Team(f"{root}/.nbs") as team:
        chat_send.create(team, "live")
        chat_send.send(team, "live", "ann", "before")
    return root / ".nbs"


def roll_back(team_root: Path) -> None:
    """Say more, then put the older database back."""
    shutil.copy(team_root / "ledger.db", team_root / "old")
    with Team(str(team_root)) as team:
        chat_send.send(team, "live", "ann", "after")
        bus.publish(team, "ann", "done", "high")
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (team_root / name).unlink(missing_ok=True)
    (team_root / "old").rename(team_root / "ledger.db")


def test_a_rolled_back_ledger_takes_nothing_in(tmp_path: Path) -> None:
    root = begin(tmp_path / "team")
    roll_back(root)
    with Team(str(root)) as team:
        size = team.store.head().size
        for act in (
            team.refresh,
            lambda: adoption.sync(team),
            lambda: bus.publish(team, "a", "b", "low"),
        ):
            with pytest.raises(RefusedError, match="a backup was restored"):
                act()
        assert team.store.head().size == size
    with collect(str(root)) as evidence:
        report = run(evidence)
    drift = next(outcome for outcome in report.outcomes if outcome.check == "drift")
    assert report.exit_code == 1
    assert "the files are ahead of the ledger" in drift.findings[0].message


def test_a_rebuild_goes_on_from_it_and_keeps_what_was_ahead(tmp_path: Path) -> None:
    root = begin(tmp_path / "team")
    roll_back(root)
    ahead = (root / "chat/live.chat").read_bytes()
    strays = [path.name for path in (root / "events").glob("*-done-*")]
    with Team(str(root)) as team:
        size = team.store.head().size
        with pytest.raises(RefusedError, match="3 pieces that no entry") as refused:
            recover.rebuild(team)
        assert "live.chat: message of ann at" in str(refused.value)
        assert f"event {strays[0]}" in str(refused.value)
        assert (team.store.head().size, (root / "chat/live.chat").read_bytes()) == (size, ahead)
        recover.rebuild(team, discard="the disk broke")
        kept = [entry.data for entry in team.store.read(stream="files/chat/live.chat")]
        assert [body["content"]["text"].encode() for body in kept] == [ahead]
        assert [m.text for m in chat_read.messages(team, "live")] == ["before"]
        for name in strays:
            assert list(team.store.read(stream=f"files/events/{name}"))
            assert not (root / "events" / name).exists()
        bus.publish(team, "ann", "again", "high")
    with collect(str(root)) as evidence:
        found = [f for o in run(evidence).outcomes for f in o.findings if f.severity == "failure"]
    assert len(found) == 3, "the message, its event, and the other event"
    assert all("no entry holds them" in one.message for one in found)
    assert strays


def test_a_lost_ledger_is_not_begun_anew_over_its_files(tmp_path: Path) -> None:
    root = begin(tmp_path / "team")
    for path in root.glob("ledger.db*"):
        path.unlink()
    with pytest.raises(RefusedError, match="had a ledger"):
        adoption.init(str(root))
    assert not (root / "ledger.db").exists()
    (root / "counts.json").unlink()
    assert adoption.init(str(root)).kinds["chat.sent"] == 1


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"as_of": 3}', '{"as_of": {"seq": "1", "id": "x"}}', "\xff", "[" * 9999],
)
def test_a_counts_file_that_counts_nothing_of_ours_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "counts.json").write_bytes(text.encode("latin-1"))
    assert files_ahead_of(None, Disk(str(tmp_path))) is None


def test_an_entry_of_another_ledger_at_the_same_place_is_ahead(tmp_path: Path) -> None:
    one, other = begin(tmp_path / "one"), begin(tmp_path / "other")
    shutil.copy(other / "counts.json", one / "counts.json")
    with Team(str(one)) as team, pytest.raises(RefusedError, match="swapped"):
        team.refresh()
