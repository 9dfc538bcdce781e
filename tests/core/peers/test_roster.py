"""The roster: which peers are known, and of which of them something may be taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doors.inside import Done, run

from tripod.errors import NotFoundError, RefusedError
from tripod.ledger.entry import Draft
from tripod.ledger.kinds.peers import PEER_ADDED, PEER_FORKED, PEER_MERGED
from tripod.peers.roster import Peer, find_peer, is_closed, read_roster, refusal_of_peer
from tripod.team import adoption
from tripod.team.team import Team

ORIGIN, NAME, KEY = "example.org/bob", "bob-0123456789abcdef", "example.org/bob+01234567+AAAA"
ROOT = "ab" * 32


def added(origin: str = ORIGIN, name: str = NAME, key: str = KEY, how: Any = "first-use") -> Draft:
    return PEER_ADDED.draft({"origin": origin, "replica": name, "key": key, "how": how})


def merged(size: int) -> Draft:
    return PEER_MERGED.draft({"origin": ORIGIN, "size": size, "root": ROOT, "seal": b"a note\n"})


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A team with one peer, of which 40 entries were merged."""
    adoption.init(str(tmp_path), project="shop", origin="example.org/ann", key=False)
    with Team(tmp_path) as team:
        append(team, added(), merged(12), merged(40))
        yield team


def append(team: Team, *drafts: Draft) -> None:
    with team.act() as act:
        act.append(drafts)


def said(team: Team, *words: str) -> Done:
    return run(Path(team.root).parent, *words)


def only(team: Team) -> Peer:
    (peer,) = read_roster(team.store).values()
    return peer


def test_the_newest_word_on_each_peer_is_its_row(team: Team) -> None:
    peer = only(team)
    assert (peer.origin, peer.replica, peer.key, peer.how) == (ORIGIN, NAME, KEY, "first-use")
    assert (peer.size, peer.root, peer.state) == (40, ROOT, "first-use")
    append(team, added(key="another+01234567+AAAA"))
    assert (only(team).key, only(team).size) == ("another+01234567+AAAA", 40)


def test_a_person_accepts_a_peer_with_its_key_and_no_other(team: Team) -> None:
    done = said(team, "peer", "accept", "bob", "--reason", "Met him", "--as", "ann")
    assert done.code == 0, done
    assert f"Accepted: {NAME}, key {KEY} (entry " in done.out.decode()
    assert only(team).state == "accepted"
    (entry,) = team.store.read(kinds=("peer.accepted",))
    assert (entry.actor, entry.data["reason"]) == ("ann", "Met him")
    append(team, added())
    assert only(team).state == "accepted"
    append(team, added(key="another+01234567+AAAA"))
    assert only(team).state == "first-use", "the acceptance was for another key"


def test_nothing_is_taken_of_a_closed_peer_until_it_is_accepted_again(team: Team) -> None:
    assert refusal_of_peer(only(team), closed=False) is None
    assert said(team, "peer", "close", NAME, "--reason", "Laptop lost").code == 0
    assert only(team).state == "closed"
    assert "was closed in entry" in (refusal_of_peer(only(team), closed=False) or "")
    assert said(team, "peer", "accept", NAME, "--reason", "Found again").code == 0
    assert only(team).state == "accepted"
    assert refusal_of_peer(only(team), closed=True) is None


def test_a_policy_that_is_closed_has_each_peer_wait_for_a_person(team: Team) -> None:
    assert not is_closed(team.root)
    Path(team.root, "policy.yaml").write_text("peers: closed\n")
    assert is_closed(team.root)
    problem = refusal_of_peer(only(team), closed=True)
    assert problem is not None
    assert f"`tripod peer accept {NAME} --reason TEXT`" in problem
    assert "The policy says `peers: closed`" in said(team, "peer", "list").out.decode()
    append(team, added(how="person"))
    assert refusal_of_peer(only(team), closed=True) is None


@pytest.mark.parametrize("text", ["peers: shut\n", "peers: [closed]\n", "peer: closed\n"])
def test_a_policy_that_is_not_understood_is_not_passed_over(team: Team, text: str) -> None:
    Path(team.root, "policy.yaml").write_text(text)
    with pytest.raises(RefusedError, match=r"policy\.yaml"):
        is_closed(team.root)


def test_a_peer_that_contradicts_itself_is_shown_with_both_seals(team: Team) -> None:
    body = {"origin": ORIGIN, "ours": b"seal one\n", "theirs": b"seal two\n", "problem": "a fork"}
    append(team, PEER_FORKED.draft(body))  # type: ignore[arg-type]
    assert only(team).state == "forked"
    assert "contradicts what it sealed" in (refusal_of_peer(only(team), closed=False) or "")
    out = said(team, "peer", "show", "bob").out.decode()
    assert "seal one" in out
    assert "seal two" in out
    assert "state: forked (it contradicts" in out


def test_the_list_says_of_each_peer_what_is_here(team: Team) -> None:
    append(team, added("example.org/eve\x1b[31m", "eve-0123456789abcdef"))
    done = said(team, "peer", "list")
    assert (
        done.out.decode()
        .splitlines()[0]
        .startswith(f"{NAME}  first-use  40 entries, last merged 20")
    )
    assert "eve-0123456789abcdef  first-use  0 entries, nothing merged" in done.out.decode()
    assert "\x1b" not in done.out.decode()
    lines = said(team, "peer", "list", "--json").out.decode().splitlines()
    assert json.loads(lines[0])["size"] == 40


def test_a_name_is_refused_where_it_means_none_or_two(team: Team) -> None:
    peers = {ORIGIN: Peer(ORIGIN, NAME), "x": Peer("x", "bob-1123456789abcdef")}
    assert find_peer(peers, "bob-0").origin == ORIGIN
    assert find_peer(peers, "x").name == "bob-1123456789abcdef"
    with pytest.raises(RefusedError, match="its whole name"):
        find_peer(peers, "bob")
    for name in ("ann", ""):
        with pytest.raises(NotFoundError, match="no peer"):
            find_peer(peers, name)
    with pytest.raises(NotFoundError, match="none is known"):
        find_peer({}, "bob")
    done = said(team, "peer", "close", "eve", "--reason", "Unknown")
    assert done.code == 1
    assert "there are bob-" in done.err


def test_a_reason_is_a_line_of_text(team: Team) -> None:
    for verb in ("accept", "close"):
        assert said(team, "peer", verb, NAME, "--reason", "a\nb").code == 2
    assert only(team).state == "first-use"


def test_no_peers_are_said_to_be_none(tmp_path: Path) -> None:
    adoption.init(str(tmp_path), key=False)
    assert b"No peers" in run(tmp_path, "peer", "list").out
