"""What an entry of a peer means here: folded, rendered, under which names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from merging import Replica, pull
from story import folder

from tripod.projections.chat.format import parse_line, split_chat_file
from tripod.projections.decisions.format import parse_decision, split_decision_log
from tripod.verify.run import verify


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
    report = verify(str(replica.root))
    assert [finding for one in report.outcomes for finding in one.findings] == []


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
