"""What an entry of a peer means here: folded, rendered, under which names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doors.inside import Done, run
from merging import Replica, findings, pull
from story import folder

from tripod.bus import events as bus
from tripod.decisions.writer import DecisionRequest, log
from tripod.errors import RefusedError, TripodError
from tripod.ledger import MalformedError
from tripod.ledger.kinds.merged import read_kept
from tripod.projections.chat.format import parse_line, split_chat_file
from tripod.projections.decisions.format import parse_decision, split_decision_log
from tripod.recovery.rebuild import rebuild
from tripod.team.adoption import add_place
from tripod.trust.actors import enrol_actor
from tripod.trust.keys import no_passphrase

GOLDEN = Path(__file__).parents[2] / "golden/merged"


@pytest.fixture
def pair() -> Iterator[tuple[Replica, Replica]]:
    """Ann's replica, and Ben's, whose clock goes a second ahead."""
    with folder() as root:
        ann, ben = Replica(root / "ann", "ann"), Replica(root / "ben", "ben")
        ben.clock.move()
        yield ann, ben


def said(replica: Replica, channel: str = "live") -> list[tuple[str, str]]:
    """Handle and text of each line of a chat's file."""
    file = split_chat_file((replica.root / f"chat/{channel}.chat").read_bytes())
    assert file is not None
    lines = [parse_line(line) for line in file.lines]
    return [(line.handle, line.text) for line in lines if line is not None]


def decided(replica: Replica, log: str = "log.md") -> list[Any]:
    data = (replica.root / f"scribe/{log}").read_bytes()
    return [parse_decision(piece)[0] for piece in split_decision_log(data)[1]]


def clean(replica: Replica) -> None:
    assert findings(replica) == []


def test_messages_stand_at_the_end_of_the_same_file(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    for one in pair:
        one.create("live")
    ann.say("live", "ann", "hers")
    ben.say("live", "ben", "his")
    pull(ann, ben)
    ann.say("live", "ann", "again")
    assert said(ann) == [("ann", "hers"), (f"ben@{ben.name}", "his"), ("ann", "again")]
    clean(ann)
    pull(ben, ann)
    assert said(ben) == [("ben", "his"), (f"ann@{ann.name}", "hers"), (f"ann@{ann.name}", "again")]
    clean(ben)


def test_a_channel_of_a_peer_begins_here_or_opens_again(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    ben.create("ops")
    ben.say("ops", "ben", "one")
    pull(ann, ben)
    assert said(ann, "ops") == [(f"ben@{ben.name}", "one")]
    (ann.root / "chat/archive").mkdir()
    (ann.root / "chat/ops.chat").rename(ann.root / "chat/archive/ops-20260212_140000.chat")
    ann.sync()
    assert not (ann.root / "chat/ops.chat").exists()
    ben.say("ops", "ben", "two")
    pull(ann, ben)
    assert said(ann, "ops") == [(f"ben@{ben.name}", "two")]
    clean(ann)


def test_decisions_stand_at_the_end_of_the_same_log(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    for one in pair:
        one.create("live")
        one.say("live", "zoe", f"of {one.name}")
        one.clock.ns = ann.clock.ns
    ann.decide("Tea", "wet", ("live.chat:~L7",))
    ben.decide("Coffee", "wake", ("live.chat:~L7",))
    ben.clock.move()
    with ben.team() as team:
        first = team.store.db.execute("SELECT id FROM pieces").fetchone()[0]
    ben.run([("supersede", first)])
    pull(ann, ben)
    ours, theirs, later = decided(ann)
    assert ours.id == first
    assert theirs.id == f"D-{int(first[2:]) + 1}"
    assert theirs.title == f"Coffee [{ben.name}/{first}]"
    assert theirs.chat_ref == "live.chat:~L8"
    assert (later.id, later.supersedes) == (f"D-{int(first[2:]) + 2}", theirs.id)
    log = (ann.root / "scribe/log.md").read_text()
    assert sum(line.startswith("### D-") for line in log.splitlines()) == 3
    clean(ann)
    pull(ben, ann)
    assert [one.title for one in decided(ben)] == [
        "Coffee", "Milk", f"Tea [{ann.name}/{first}]"
    ]  # fmt: skip
    clean(ben)


def test_a_decision_follows_its_message_also_to_a_third_replica() -> None:
    with folder() as root:
        ann, ben, cid = (Replica(root / name, name) for name in ("ann", "ben", "cid"))
        for one in (ann, ben, cid):
            one.create("live")
        cid.say("live", "cid", "from the third")
        pull(ben, cid)
        ben.say("live", "ben", "mine")
        ben.decide("Yes", "it is so", ("live.chat:~L7", "live.chat:~L8"))
        ann.say("live", "ann", "first here")
        pull(ann, ben)
        (one,) = decided(ann)
        assert one.chat_ref == f"{ben.name}/live.chat:~L7, live.chat:~L8"
        pull(cid, ben)
        (one,) = decided(cid)
        assert one.chat_ref == "live.chat:~L7, live.chat:~L8"
        for replica in (ann, ben, cid):
            clean(replica)


def test_events_of_a_peer_are_pending_until_anybody_acknowledges_them(
    pair: tuple[Replica, Replica],
) -> None:
    ann, ben = pair
    ben.publish("ben", "task", "high", "do it", 0)
    ben.publish("ben", "task", "low", "and this", 0)
    pull(ann, ben)
    first, _ = ann.pending()
    assert f"source: ben@{ben.name}\n" in (ann.root / "events" / first).read_text()
    with ann.team() as team:
        bus.ack(team, first, actor="ann")
    ann.clock.move()
    clean(ann)
    ben.ack_all(None)
    pull(ann, ben)
    assert ann.pending() == []
    pull(ben, ann)
    assert ben.pending() == []
    for one in pair:
        clean(one)


def test_what_a_peer_acknowledged_all_at_once_is_what_it_knew(
    pair: tuple[Replica, Replica],
) -> None:
    ann, ben = pair
    ann.publish("ann", "known", "high", "", 0)
    pull(ben, ann)
    ann.clock.move()
    ann.publish("ann", "later", "high", "", 0)
    ben.ack_all(None)
    pull(ann, ben)
    (left,) = ann.pending()
    assert "-later-" in left
    for one in pair:
        clean(one)


def test_an_acknowledgement_may_come_before_its_event() -> None:
    with folder() as root:
        ann, ben, cid = (Replica(root / name, name) for name in ("ann", "ben", "cid"))
        cid.publish("cid", "one", "high", "", 0)
        cid.clock.move()
        cid.publish("cid", "two", "high", "", 0)
        pull(ben, cid)
        with ben.team() as team:
            bus.ack(team, ben.pending()[0], actor="ben")
        ben.clock.move()
        ben.ack_all(None)
        cid.clock.move()
        cid.publish("cid", "three", "high", "", 0)
        pull(ann, ben)
        assert ann.pending() == []
        pull(ann, cid)
        (left,) = ann.pending()
        assert "-three-" in left
        clean(ann)


def test_two_events_of_one_name_have_two_names_here(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    name = "1600000009000000-x-y-7.event"
    data = b"source: x\ntype: y\npriority: high\n"
    for one in pair:
        one.original.put(f"events/{name}", data + b"payload: |\n  of %b\n" % one.name.encode())
        one.sync()
    pull(ann, ben)
    ours, theirs = ann.pending()
    assert sorted((ours, theirs)) == sorted((name, f"{name[:-6]}-{ben.name[-16:]}.event"))
    ben.ack(0)
    pull(ann, ben)
    assert ann.pending() == [name]
    clean(ann)


def test_a_checkpoint_of_a_peer_is_closed_by_the_peer_alone(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    ben.publish("scribe", "pythia-checkpoint", "high", "look", 0)
    pull(ann, ben)
    (name,) = ann.pending()
    with ann.team() as team, pytest.raises(RefusedError, match="closed there, by its review"):
        bus.ack(team, name, actor="ann")
    with ann.team() as team:
        assert bus.ack_all(team, actor="ann") == 0
        assert "1 checkpoint events of peers stay pending" in team.warnings[0]
    (ann.root / "events" / name).unlink()
    ann.sync()
    with ann.team() as team:
        rebuild(team)
    assert ann.pending() == [name]
    pull(ben, ann)
    assert ben.pending() == [name]
    ben.ack(0)
    pull(ann, ben)
    assert ann.pending() == []


def test_one_piece_that_both_took_in_is_shown_once(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    for one in pair:
        one.create("live")
    for one in pair:
        one.clock.ns = ann.clock.ns
        one.original.say("live", "zoe", "everybody has it")
        one.sync()
    pull(ann, ben)
    assert said(ann) == [("zoe", "everybody has it")]
    clean(ann)


def test_the_folders_of_a_peer_do_not_mix_with_ours(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    docs = ben.project / "docs"
    docs.mkdir()
    with ben.team() as team:
        add_place(team, "chat", str(docs))
    ben.create("docs/live")
    ben.say("docs/live", "ben", "apart")
    pull(ann, ben)
    assert said(ann, f"{ben.name}.docs.live") == [(f"ben@{ben.name}", "apart")]
    clean(ann)
    # From the day that this team has such a folder, what is new stands there.
    docs = ann.project / "docs"
    docs.mkdir()
    with ann.team() as team:
        add_place(team, "chat", str(docs))
    ben.say("docs/live", "ben", "together")
    pull(ann, ben)
    assert said(ann, f"{ben.name}.docs.live") == [(f"ben@{ben.name}", "apart")]
    file = split_chat_file((docs / "live.chat").read_bytes())
    assert file is not None
    assert [parse_line(line) is not None for line in file.lines] == [True]
    clean(ann)


def told(replica: Replica, *words: str) -> Done:
    return run(replica.project, *words)


def test_an_id_that_means_two_is_refused_with_both_names(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    ben.clock.ns = ann.clock.ns
    for one, title in zip(pair, ("Tea", "Coffee"), strict=True):
        one.create("live")
        one.say("live", "zoe", "Which?")
        one.decide(title, "because", ("live.chat:~L7",))
    pull(ann, ben)
    first, second = (one.id for one in decided(ann))
    names = f"{ann.name}/{first} and {ben.name}/{first}"
    for words in (("scribe", "show", first), ("log", "--decision", first)):
        done = told(ann, *words)
        assert done.code != 0
        assert done.out == b""
        assert f"{first} means 2 decisions" in done.err
        assert f"{ben.name}/{first}" in done.err
        assert f"{ann.name}/{first}" in done.err
    both = ((ann.name, "Tea"), (ben.name, "Coffee"))
    for replica, title in (*both, (ann.name[:3], "Tea"), (ben.name[:4], "Coffee")):
        name = f"{replica}/{first}"
        assert title.encode() in told(ann, "scribe", "show", name).out
        assert title.encode() in told(ann, "log", "--decision", name).out
    assert told(ann, "scribe", "show", f"{ben.name[:4]}/{second}").out == b"", "it is ours alone"
    assert b"Coffee" in told(ann, "scribe", "show", second).out
    with pytest.raises(TripodError, match=names), ann.team() as team:
        log(team, DecisionRequest("Milk", ["ann"], "because", supersedes=first, no_ref="none"))
    ann.supersede(f"{ben.name}/{first}")
    *_, milk = decided(ann)
    assert milk.supersedes == second
    ben.clock.move(9)
    pull(ben, ann)
    *_, milk = decided(ben)
    assert (milk.title, milk.supersedes) == ("Milk", first), "the decision has its own name there"
    for one in pair:
        clean(one)


def test_a_reference_in_the_words_of_a_peer_is_the_message_here(
    pair: tuple[Replica, Replica],
) -> None:
    ann, ben = pair
    for one in pair:
        one.create("live")
    ann.say("live", "ann", "mine")
    ben.say("live", "ben", "his")
    pull(ann, ben)
    ann.decide("Both", "they agree", (f"{ben.name}/live.chat:~L7", f"{ann.name}/live.chat:~L7"))
    (one,) = decided(ann)
    assert one.chat_ref == "live.chat:~L8, live.chat:~L7"
    clean(ann)
    pull(ben, ann)
    (one,) = decided(ben)
    assert one.chat_ref == "live.chat:~L7, live.chat:~L8"
    clean(ben)


def test_listings_show_what_a_peer_recorded_with_a_mark(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    ben.create("live")
    ben.say("live", "ben", "his @ann")
    ben.decide("Tea", "because", ("live.chat:~L7",))
    pull(ann, ben)
    shown = f"ben@{ben.name}"
    found = [json.loads(line) for line in told(ann, "log", "--json").out.splitlines()]
    (message,) = [one for one in found if one["kind"] == "chat.sent"]
    assert (message["actor"], message["mark"]) == (shown, "peer")
    assert message["text"] == "live: his @ann"
    assert {one["kind"] for one in found} >= {"ledger.opened", "team.named", "decision.logged"}
    assert "peer.entry" not in {one["kind"] for one in found}
    only = told(ann, "log", "--actor", shown, "--kind", "chat").out.splitlines()
    assert len(only) == 1
    for words in (
        ("chat", "read", "live"), ("chat", "search", "live", "his"), ("scribe", "query", "tea"),
        ("scribe", "show", decided(ann)[0].id), ("bus", "check"), ("show",),
    ):  # fmt: skip
        listed = [json.loads(line) for line in told(ann, *words, "--json").out.splitlines()]
        assert "peer" in {one["mark"] for one in listed}, words
    rows = json.loads(told(ann, "query", "SELECT * FROM chat_sent", "--json").out)
    assert (rows["mark"], rows["actor"], rows["handle"], rows["text"], rows["index"]) == (
        "peer", shown, shown, "his @ann", 0,
    )  # fmt: skip
    log = json.loads(
        told(ann, "query", "SELECT * FROM log WHERE kind = 'peer.entry'", "--csv").out or "0"
    )
    assert log == 0


def test_listings_tell_apart_what_a_peer_signed_and_what_it_observed(
    pair: tuple[Replica, Replica],
) -> None:
    ann, ben = pair
    ben.create("live")
    ben.say("live", "ben", "recorded")
    ben.original.say("live", "ben", "seen")
    with ben.team() as team:
        enrol_actor(team, "ben", no_passphrase)
    ben.say("live", "ben", "signed")
    pull(ann, ben)
    marks = {"recorded": "peer", "seen": "peer observed", "signed": "peer signed"}
    log = [json.loads(line) for line in told(ann, "log", "--json").out.splitlines()]
    sent = {one["text"].removeprefix("live: "): one for one in log if one["kind"] == "chat.sent"}
    assert {text: one["mark"] for text, one in sent.items()} == marks
    read = told(ann, "chat", "read", "live", "--json").out.splitlines()
    assert {one["text"]: one["mark"] for one in map(json.loads, read)} == marks
    rows = told(ann, "query", "SELECT text, mark FROM chat_sent", "--json").out.splitlines()
    assert {one["text"]: one["mark"] for one in map(json.loads, rows)} == marks
    inner = json.loads(told(ann, "show", str(sent["seen"]["seq"]), "--json").out)["inner"]
    assert inner["mark"] == "peer observed"


def test_an_actor_of_a_peer_is_shown_with_whose_it_is_whatever_the_kind(
    pair: tuple[Replica, Replica],
) -> None:
    ann, ben = pair
    ben.create("live")
    pull(ann, ben)
    log = [json.loads(line) for line in told(ann, "log", "--json").out.splitlines()]
    (made, his) = [one for one in log if one["kind"] == "ledger.opened"]
    assert {one["actor"] for one in (made, his)} == {"tripod", f"tripod@{ben.name}"}
    only = told(ann, "log", "--actor", "tripod", "--json").out.splitlines()
    assert {one["mark"] for one in map(json.loads, only)} == {""}
    rows = told(ann, "query", "SELECT actor FROM ledger_opened", "--json").out.splitlines()
    assert {json.loads(row)["actor"] for row in rows} == {"tripod", f"tripod@{ben.name}"}


def test_the_files_with_entries_of_peers_are_these_bytes(pair: tuple[Replica, Replica]) -> None:
    ann, ben = pair
    ben.clock.ns = ann.clock.ns
    for one, text in zip(pair, ("Tea?", "Coffee?"), strict=True):
        one.create("live")
        one.say("live", "zoe", text)
        one.clock.move()
        one.decide(f"{text[:-1]} it is", "It keeps us awake.", ("live.chat:~L7",))
    ben.clock.move()
    ben.supersede(f"D-{ben.clock.seconds - 1}")
    ben.original.append("chat/live.chat", b"torn")
    ben.sync()
    pull(ann, ben)
    for path in ("chat/live.chat", "scribe/log.md"):
        golden = GOLDEN / path.rpartition("/")[2]
        assert (ann.root / path).read_bytes() == golden.read_bytes(), path
    assert findings(ann) == []


def test_an_entry_of_a_peer_shows_what_it_keeps_and_its_makers_leaf(
    pair: tuple[Replica, Replica],
) -> None:
    ann, ben = pair
    ben.create("live")
    ben.say("live", "ben", "his")
    pull(ann, ben)
    with ann.team() as team:
        sql = "SELECT seq, peer_seq FROM merged WHERE kind = 'chat.sent'"
        ((seq, theirs),) = team.store.db.execute(sql).fetchall()
    shown = json.loads(told(ann, "show", str(seq), "--json").out)
    made = json.loads(told(ben, "show", str(theirs), "--json").out)
    assert (shown["kind"], shown["mark"]) == ("peer.entry", "peer")
    assert shown["inner"]["leaf"] == made["leaf"]
    assert shown["inner"]["body"]["text"] == made["body"]["text"]


def test_a_log_of_a_peer_is_not_where_decisions_go_by_default(
    pair: tuple[Replica, Replica],
) -> None:
    ann, ben = pair
    assert told(ben, "scribe", "log", "Tea", "-r", "Wet.", "-p", "ben", "--no-ref", "none",
                "--log", "tea.md").code == 0  # fmt: skip
    pull(ann, ben)
    assert [one.title for one in decided(ann, "tea.md")] == ["Tea"]
    ann.decide("Coffee", "wakes", ())
    assert [one.title for one in decided(ann, "tea.md")] == ["Tea"]
    assert [one.title for one in decided(ann)] == ["Coffee"]


def test_replicas_that_supersede_one_decision_differently_agree_and_say_so(
    pair: tuple[Replica, Replica],
) -> None:
    ann, ben = pair
    ann.decide("Tea", "wet", ())
    pull(ben, ann)
    (tea,) = (one.id for one in decided(ann))
    ben.clock.ns = ann.clock.ns
    ann.supersede(tea, "Coffee")
    ben.supersede(tea, "Milk")
    pull(ann, ben)
    pull(ben, ann)

    def stands(one: Replica) -> dict[str, str]:
        lines = told(one, "scribe", "query", "--json").out.splitlines()
        rows = {row["id"]: row for row in map(json.loads, lines)}
        return {row["title"]: rows[row["by"]]["title"] for row in rows.values() if row["by"]}

    assert stands(ann) == stands(ben) == {"Tea": "Milk"}
    for one, other in (pair, pair[::-1]):
        ours, theirs = (each.id for each in decided(one)[1:])
        (found,) = [each for each in findings(one) if each.check == "supersession"]
        assert found.severity == "warning"
        assert f"{tea} was replaced in several replicas: by {ours} and by {theirs}" in found.message
        assert f"({other.name}/" in found.message
    coffee = next(one.id for one in decided(ann) if one.title == "Coffee")
    ann.supersede(f"{ann.name}/{coffee}", "Neither coffee")
    pull(ben, ann)
    for one in pair:
        assert "supersession" not in {each.check for each in findings(one)}
    assert stands(ann) == stands(ben) == {"Tea": "Milk", "Coffee": "Neither coffee"}


def test_who_redacts_what_a_peer_said_is_told_where_that_is_done(
    pair: tuple[Replica, Replica],
) -> None:
    ann, ben = pair
    ben.create("live")
    ben.say("live", "ben", "his secret")
    pull(ann, ben)
    done = told(ann, "redact", "--match", "secret", "--reason", "leaked", "--as", "ann")
    assert done.code == 1
    assert re.search(f"it is entry [0-9]+ of {ben.name}: it is redacted there", done.err)
    assert said(ann) == [(f"ben@{ben.name}", "his secret")]


@pytest.mark.parametrize("header", [["x"], 7, {"text": ["x"]}, {"base64": 7}, {"sha256": "xy"}])
def test_a_body_of_another_shape_is_refused_as_the_docstring_says(header: object) -> None:
    with pytest.raises((MalformedError, LookupError, TypeError, ValueError)):
        read_kept({"header": header, "origin": "x", "seq": 1}, lambda _: None)
