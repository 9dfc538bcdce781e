"""Beginning, finding and opening a team; showing its past; rebuilding where the disk resists."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from story import Story, folder

from tripod.bus import events as bus
from tripod.errors import BadArgumentError, NoTeamError, NotFoundError, RefusedError
from tripod.ledger.errors import NoLedgerError, UnwritableError
from tripod.ledger.locator import LEDGER
from tripod.projections import manifest
from tripod.projections.engine import file_differences
from tripod.projections.projection import File
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team, find_team


@pytest.fixture
def story() -> Iterator[Story]:
    with folder() as root:
        story = Story(root)
        story.run([("create", "live"), ("say", "live", "ann", "one"), ("decide", "D", "r", ())])
        yield story


def test_a_team_is_found_from_below_and_by_name(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(story.root)
    assert find_team(str(story.project)) == find_team(root) == root
    (story.project / "deep/down").mkdir(parents=True)
    monkeypatch.chdir(story.project / "deep/down")
    assert find_team(None) == root
    with pytest.raises(NoTeamError, match="tripod init deep"):
        find_team("deep")


def test_the_variable_names_a_team_before_any_that_is_around(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = str(story.root), tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    for named in (root, f"{root}/ledger.db"):
        monkeypatch.setenv(LEDGER, named)
        assert find_team(None) == find_team(None, "/") == root
    with pytest.raises(NoTeamError, match="tripod init"):
        find_team(str(other))
    monkeypatch.setenv(LEDGER, "nowhere")
    with pytest.raises(NoTeamError, match=f"no ledger in {other}/nowhere, which {LEDGER} names"):
        find_team(None)
    monkeypatch.setenv(LEDGER, "")
    monkeypatch.chdir(story.project)
    assert find_team(None) == root


def test_where_there_is_no_team_the_way_to_one_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoTeamError, match="tripod init"):
        find_team(None)
    with pytest.raises(NoTeamError, match="tripod init"):
        Team(str(tmp_path))
    (tmp_path / ".nbs").mkdir()
    with pytest.raises(NoLedgerError, match="tripod init"):
        Team(str(tmp_path / ".nbs"))


def test_an_act_on_a_ledger_that_is_not_begun_says_so(tmp_path: Path) -> None:
    with Team(str(tmp_path), create=True) as team:
        with pytest.raises(NoTeamError, match="tripod init"):
            bus.publish(team, "a", "b", "low")
        with pytest.raises(NoTeamError, match="tripod init"):
            team.refresh()


def test_init_takes_the_project_or_the_team_directory(tmp_path: Path) -> None:
    (tmp_path / "p/.nbs").mkdir(parents=True)
    assert adoption.init(str(tmp_path / "p/.nbs")).root == str(tmp_path / "p/.nbs")
    (tmp_path / "q/events").mkdir(parents=True)
    (tmp_path / "q/chat").mkdir()
    assert adoption.init(str(tmp_path / "q")).root == str(tmp_path / "q")
    (tmp_path / "r").mkdir()
    found = adoption.init(str(tmp_path / "r"))
    assert found.begun
    assert sorted(p.name for p in (tmp_path / "r/.nbs").iterdir() if p.is_dir()) == sorted(
        ("events", "chat", "scribe", "workers")
    )
    with Team(found.root) as team:
        row = team.store.db.execute("SELECT project, scribe FROM team").fetchone()
    assert row == ("r", "scribe")


@pytest.mark.parametrize(
    "options", [{"project": "a\nb"}, {"scribe": "a b"}, {"origin": "a b"}, {"origin": ""}]
)
def test_init_refuses_odd_names_before_it_makes_anything(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(BadArgumentError):
        adoption.init(str(tmp_path), **options)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RefusedError, match="is no folder"):
        adoption.init(str(tmp_path / "none"))


def test_what_stood_where_ours_belongs_is_kept(tmp_path: Path) -> None:
    root = tmp_path / ".nbs"
    root.mkdir()
    (root / "counts.json").write_bytes(b'{"someone": "else"}\n')
    (root / ".gitignore").write_bytes(b"*.bak\r\nledger.db*")
    (root / ".gitignore").chmod(0o600)
    adoption.init(str(tmp_path))
    assert (root / ".gitignore").read_bytes() == b"*.bak\r\nledger.db*\n*\n"
    assert (root / ".gitignore").stat().st_mode & 0o777 == 0o600
    with Team(str(root)) as team:
        kept = [e for e in team.store.read() if e.kind == "file.displaced"]
        assert [e.data["content"] for e in kept] == [{"text": '{"someone": "else"}\n'}]
        assert list(file_differences(team.source, team.disk)) == []


def test_a_gitignore_that_is_no_file_is_told(tmp_path: Path) -> None:
    root = tmp_path / ".nbs"
    root.mkdir()
    (root / ".gitignore").symlink_to("elsewhere")
    assert ".gitignore: cannot be read as a file" in adoption.init(str(tmp_path)).warnings[0]
    (root / ".gitignore").unlink()
    (root / ".gitignore").write_bytes(b"x" * 1_100_000)
    assert ".gitignore" in adoption.init(str(tmp_path)).warnings[0]


def test_a_ledger_that_is_gone_is_not_begun_anew_in_passing(story: Story) -> None:
    for path in story.root.glob("ledger.db*"):
        path.unlink()
    with pytest.raises(RefusedError, match=r"Put its ledger\.db back"):
        adoption.init(str(story.project))


# The past --------------------------------------------------------------------------------------


def shown(team: Team, seq: int, name: str) -> dict[str, File]:
    """The files of a projection as of an entry."""
    with recover.rebuild_past(team, seq) as source:
        return dict(recover.rebuilt_files(source, name))


def test_any_projection_is_shown_as_of_any_entry(story: Story) -> None:
    live = (story.root / "chat/live.chat").read_bytes()
    with story.team() as team:
        size = team.store.head().size
        with recover.rebuild_past(team, None) as source:
            assert source is team.source
        for name in ("decisions", "chat", "events", "workers", "counts"):
            now = dict(recover.rebuilt_files(team.source, name))
            assert now == shown(team, size - 1, name)
            assert all(story.root.joinpath(path).read_bytes() == f.data for path, f in now.items())
        created = next(e.seq for e in team.store.read() if e.kind == "chat.created")
        assert shown(team, created, "chat")["chat/live.chat"].data != live
        assert shown(team, 0, "decisions") == {}
        for seq in (-1, size):
            with pytest.raises(BadArgumentError, match=f"entries 0 to {size - 1}"):
                shown(team, seq, "chat")
        with recover.rebuild_past(team, 0) as source:
            pass
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            source.db.execute("SELECT 1")
        with pytest.raises(NotFoundError, match="there are"):
            recover.rebuilt_files(team.source, "nothing")


# Where the disk resists ------------------------------------------------------------------------


def test_a_rebuild_that_cannot_write_says_which(story: Story) -> None:
    (story.root / "chat/live.chat").unlink()
    (story.root / "chat/live.chat").mkdir()
    with story.team() as team, pytest.raises(UnwritableError, match=r"chat/live\.chat"):
        recover.rebuild(team)
    (story.root / "chat/live.chat").rmdir()
    with story.team() as team:
        recover.rebuild(team)
        assert list(file_differences(team.source, team.disk)) == []


def test_a_rebuild_keeps_what_differs_and_a_mode_is_set_right(story: Story) -> None:
    name = story.original.pending()[0]
    good = (story.root / "events" / name).read_bytes()
    story.original.put(f"events/{name}", b"edited\n")
    changed = ["chat/live.chat", f"events/{name}", "scribe/log.md"]
    for path in changed:
        (story.root / path).chmod(0o640)
    with story.team() as team:
        done = recover.rebuild(team)
        assert (done.written, done.displaced) == (changed, 1)
        assert recover.rebuild(team) == recover.Rebuilt([], 0)
    assert (story.root / "events" / name).read_bytes() == good
    assert (story.root / "scribe/log.md").stat().st_mode & 0o777 == 0o644


def test_a_row_of_the_manifest_that_was_altered_is_not_believed(story: Story) -> None:
    with story.team() as team:
        known = manifest.load(team.store.db)
        assert "chat/live.chat" in known
        team.store.db.execute("UPDATE manifest SET digest = 'x' WHERE path = 'chat/live.chat'")
        assert manifest.load(team.store.db).keys() == known.keys() - {"chat/live.chat"}
        team.refresh()
        assert manifest.load(team.store.db).keys() == known.keys()


def test_what_a_dead_writer_left_is_cleared(story: Story) -> None:
    for place in ("", "chat/", "events/processed/"):
        (story.root / f"{place}.tripod-new-77").write_bytes(b"half")
    with story.team() as team:
        bus.publish(team, "a", "b", "low")
        assert os.path.exists(story.root / "chat/.tripod-new-77")
        adoption.sync(team)
    assert list(story.root.rglob(".tripod-new-*")) == []


def test_a_new_team_directory_is_on_the_disk_before_init_answers(tmp_path: Path) -> None:
    """Else a power cut takes the whole ledger, with all that was answered since."""
    synced: list[str] = []
    with mock.patch("tripod.ledger.files.sync_path", synced.append):
        adoption.init(str(tmp_path))
    assert str(tmp_path) in synced
