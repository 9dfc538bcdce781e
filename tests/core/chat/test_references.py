"""References to messages: each names the line in which its message stands, whatever moved it."""

import random
from pathlib import Path

import pytest
from story import Story

from tripod.chat import reader, writer
from tripod.ledger import entry_mark
from tripod.ledger.actors import OBSERVED
from tripod.output import each_mark, entry_marks
from tripod.projections.chat.format import parse_line
from tripod.projections.chat.tables import ref_to_chat_line, refs_to_chat_lines
from tripod.recovery.redaction import RedactionRequest, redact
from tripod.trust.actors import enrol_actor
from tripod.trust.keys import no_passphrase


def lines_in_files(root: Path) -> dict[str, str]:
    """By text: the file and the line, from 1, that shows it."""
    found = {}
    for path in (root / "chat").glob("*.chat"):
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            message = parse_line(line)
            if message is not None:
                found[message.text] = f"{path.name}:~L{number}"
    return found


@pytest.mark.parametrize("seed", range(6))
def test_a_reference_names_the_line_that_shows_the_message(story: Story, seed: int) -> None:
    chance, sent = random.Random(seed), 0  # noqa: S311 - not for keys
    story.run([("create", "live"), ("create", "side")])
    for _ in range(20):
        act = chance.choice(["say", "say", "say", "garbage", "archive", "delete", "elsewhere"])
        story.clock.move(1)
        with story.team() as team:
            if act == "say":
                for _ in range(chance.randrange(1, 4)):
                    writer.send(team, "live", "ann", f"text {sent}")
                    sent += 1
            elif act == "archive":
                writer.archive(team, "live", chance.randrange(4))
            elif act == "delete" and chance.random() < 0.3:
                writer.delete(team, "live", story.clock.seconds - chance.randrange(4))
            elif act == "elsewhere":
                writer.send(team, "side", "bob", f"aside {sent}")
            elif act == "garbage":
                with (story.root / "chat/live.chat").open("ab") as file:
                    file.write(b"no message at all\n")
                team.refresh()
        with story.team() as team:
            rows = team.store.db.execute(
                "SELECT number, seq FROM lines WHERE channel = 'live' AND handle IS NOT NULL"
            ).fetchall()
            texts = {
                number: team.source.content(team.source.body(seq)["text"]).decode()
                for number, seq in rows
            }
            shown = lines_in_files(story.root)
            wanted = {number: shown[text] for number, text in texts.items() if text in shown}
            db = team.store.db
            assert refs_to_chat_lines(db, "live", texts) == wanted
            for number in texts:
                assert ref_to_chat_line(db, "live", number) == wanted.get(number)


def test_what_is_asked_of_no_message_has_no_reference(story: Story) -> None:
    story.run([("create", "live"), ("say", "live", "ann", "one")])
    with story.team() as team:
        db = team.store.db
        assert refs_to_chat_lines(db, "live", []) == {}
        assert refs_to_chat_lines(db, "none", [0, 1]) == {}
        assert refs_to_chat_lines(db, "live", [-1, 0, 0, 1, 2**53]) == {0: "live.chat:~L7"}


def test_marks_say_who_vouches_for_an_entry(story: Story) -> None:
    story.run([("create", "live"), ("say", "live", "ann", "one")])
    story.original.say("live", "ann", "two")
    with story.team() as team:
        enrol_actor(team, "ann", no_passphrase)
        writer.send(team, "live", "ann", "three", human=False)
        writer.send(team, "live", "ann", 'in a text: {"observed":{"path":"x"}}')
        found = reader.messages(team, "live")
        marks = [(message.text[:5], mark) for message, mark in each_mark(team.store, found)]
        assert marks == [("one", ""), ("two", "observed"), ("three", "signed"), ("in a ", "signed")]
        all_ = list(team.store.read())
        assert entry_marks(team.store, [*range(len(all_))]) == {
            entry.seq: entry_mark(observed=OBSERVED in entry.data, signed=entry.auth is not None)
            for entry in all_
        }


def test_an_erased_entry_keeps_its_mark(story: Story) -> None:
    story.run([("create", "live"), ("say", "live", "ann", "one")])
    story.original.say("live", "eve", "a secret of eve")
    with story.team() as team:
        team.refresh()
        seqs = {message.handle: message.seq for message in reader.messages(team, "live")}
        redact(team, RedactionRequest(tuple(seqs.values()), None, "asked to", "bob"))
        assert [raw.body for raw in team.store.raw_of([*seqs.values()])] == [None, None]
        marks = entry_marks(team.store, list(seqs.values()))
        assert {who: marks[seq] for who, seq in seqs.items()} == {"ann": "", "eve": "observed"}
        assert entry_marks(team.store, []) == {}
