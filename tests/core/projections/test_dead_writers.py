"""Writers that die between the ledger and its files, one after the other, and others at work there.

``tests/deep/projections/test_crash_files.py`` kills one process at each point; here several die in
a row, so that the files are behind by more than one act, and other programs write to what is left.
"""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_ledger import faults
from story import Step, Story, folder
from strategies import our_steps, their_steps

from tripod.chat import reader as chat_read
from tripod.projections.engine import file_differences
from tripod.recovery import redaction
from tripod.team.files import Files
from tripod.team.team import Team

# There is a log: of two that are begun at one moment, the ledger's stays and theirs is displaced.
BEGUN: list[Step] = [
    ("create", "live"),
    ("say", "live", "ann", "one"),
    ("decide", "first", "because", ()),
]


class Killed(BaseException):
    """The power went."""


class Dying(Story):
    """A story in which acts of ours may die behind their commit; notes what others wrote."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.said: Counter[tuple[str, str]] = Counter()
        self.published: list[str] = []
        self.logged = 0

    def die_in(self, name: str, *arguments: object) -> None:
        """Before its files."""
        with (
            mock.patch.object(Team, "_write_files", side_effect=Killed),
            suppress(Killed),
        ):
            getattr(self, name)(*arguments)

    def die_behind(self, name: str, *arguments: object) -> None:
        """Behind its files, before it noted that they are written."""
        with mock.patch.object(Files, "note", side_effect=Killed), suppress(Killed):
            getattr(self, name)(*arguments)

    def erase(self, kind: str) -> None:
        with self.team() as team:
            seq = next(entry.seq for entry in team.store.read() if entry.kind == kind)
            redaction.redact(team, redaction.RedactionRequest((seq,), None, "asked to", "ann"))

    def they_say(self, channel: str, handle: str, text: str) -> None:
        if (self.root / f"chat/{channel}.chat").exists():
            self.said[handle, text] += 1
        super().they_say(channel, handle, text)

    def they_publish(self, source: str, type_: str, payload: str) -> None:
        self.published.append(self.original.publish(source, type_, payload=payload))

    def they_log(self, title: str) -> None:
        self.logged += 1
        super().they_log(title)


@pytest.mark.parametrize("kind", ["chat.sent", "decision.logged"])
def test_what_others_write_behind_an_erasure_that_died_is_taken_in(
    tmp_path: Path, kind: str
) -> None:
    story = Dying(tmp_path)
    story.run([*BEGUN, ("die_in", "erase", kind)])
    story.run([("they_say", "live", "bob", "two"), ("they_log", "second")])
    with story.team() as team:
        team.refresh()
        assert [text for text in team.warnings if "outside" in text] == []
        taken = [entry.kind for entry in team.store.read() if "observed" in entry.data]
        assert taken == ["chat.sent", "decision.logged"]
        assert list(file_differences(team.source, team.disk)) == []


def test_what_the_file_forgets_of_a_split_that_nobody_noted_is_not_taken_in(
    tmp_path: Path,
) -> None:
    story = Dying(tmp_path)
    story.run([*BEGUN, *[("say", "live", "ann", str(number)) for number in range(3)]])
    story.run([("die_behind", "archive", "live", 2), ("die_in", "delete", "live", 2)])
    with story.team() as team:
        team.refresh()
        taken = [entry.kind for entry in team.store.read() if "observed" in entry.data]
        assert "chat.sent" not in taken
        assert chat_read.count(team, "live") == 1
        assert list(file_differences(team.source, team.disk)) == []


def lives() -> st.SearchStrategy[list[Step]]:
    """What is acted, what dies, and what others do in between."""
    ours = our_steps().filter(lambda step: step[0] != "redact")
    dying = ours.map(lambda step: ("die_in", *step))
    behind = ours.map(lambda step: ("die_behind", *step))
    return st.lists(st.one_of(ours, dying, dying, behind, their_steps()), max_size=12)


@given(lives())
def test_nothing_that_others_wrote_is_lost_or_doubled(steps: list[Step]) -> None:
    with folder() as root:
        story = Dying(root)
        story.run([*BEGUN, *steps])
        with story.team() as team:
            team.refresh()
            assert faults(team.store) == []
            assert list(file_differences(team.source, team.disk)) == []
            assert [text for text in team.warnings if "outside" in text] == []
            entries = list(team.store.read())
            taken = [entry for entry in entries if "observed" in entry.data]
            said = Counter(
                (entry.data["handle"], team.source.content(entry.data["text"]).decode())
                for entry in taken
                if entry.kind == "chat.sent"
            )
            names = [entry.data["name"] for entry in entries if entry.kind == "bus.published"]
        assert said == story.said
        logged = [entry for entry in taken if entry.kind in ("decision.logged", "log.noted")]
        assert len(logged) == story.logged
        assert len(set(names)) == len(names)
        assert set(story.published) <= set(names)
