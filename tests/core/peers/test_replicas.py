"""A ledger's name as a replica of its team: made once, from a handle and a key."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.errors import RefusedError
from tripod.ledger.kinds.peers import TEAM_NAMED
from tripod.peers.replica import name_team, replica_name, replica_of
from tripod.recovery import backup as copies
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import keys
from tripod.trust.seal import new_sealing_key
from tripod.verify.peers.refs import REPLICA
from tripod.verify.run import verify


def team_in(folder: Path, *, key: bool = True) -> str:
    """A team outside of any repository; give its directory."""
    folder.mkdir()
    found = adoption.init(str(folder), project="shop", origin="example.org/shop", key=key)
    return found.root


@given(st.text(max_size=200), st.text(max_size=80))
def test_any_handle_gives_a_name_that_git_and_the_body_take(handle: str, vkey: str) -> None:
    name = replica_name(handle, vkey)
    assert REPLICA.fullmatch(name)
    assert len(name) <= 57
    assert name.isascii()
    TEAM_NAMED.draft({"team": "t", "replica": name})


def test_a_team_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPOD_AS", "anna")
    root = team_in(tmp_path / "shop")
    with Team(root) as team:
        assert replica_of(team.store) is None
        vkey = keys.sealing_key(team.store) or ""
        named = name_team(team)
        assert named == ("example.org/shop", replica_name("anna", vkey))
        size = team.store.size
        assert name_team(team, "ben") == named == replica_of(team.store)
        assert team.store.size == size
    assert verify(root).exit_code == 0


def test_a_ledger_without_a_key_has_no_name(tmp_path: Path) -> None:
    with Team(team_in(tmp_path / "shop", key=False)) as team:
        with pytest.raises(RefusedError, match="tripod key new"):
            name_team(team)
        new_sealing_key(team)
        assert name_team(team)[1].startswith("unknown-")


def test_a_fork_is_another_replica_of_the_same_team(tmp_path: Path) -> None:
    root = team_in(tmp_path / "shop")
    with Team(root) as team:
        first = name_team(team, "anna")
        copies.backup(team, str(tmp_path / "copy.db"))
    copies.restore(root, str(tmp_path / "copy.db"), as_origin="example.org/shop-2")
    with Team(root) as team:
        assert replica_of(team.store) is None
        second = name_team(team, "anna")
    assert second[0] == first[0] == "example.org/shop"
    assert second[1] != first[1]
    assert verify(root).exit_code == 0
