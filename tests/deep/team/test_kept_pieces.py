"""Whatever is done, every piece that was recorded or validly written is in an entry afterwards."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hypothesis import event, given, settings
from hypothesis import strategies as st
from story import Story, folder, tree

from tripod.errors import TripodError
from tripod.projections.chat.format import format_line, parse_line, split_chat_file
from tripod.projections.decisions.format import split_decision_log
from tripod.recovery import rebuild as recover
from tripod.verify.evidence import collect
from tripod.verify.run import run

LOG, CHAT = "scribe/log.md", "chat/live.chat"
JUDGED = ("append-only", "drift", "count-from-grep")
THEIRS = (
    "\n---\n\n### D-%d %s\n- **Chat ref:** —\n- **Participants:** bob\n- **Artefacts:** —\n"
    "- **Risk tags:** none\n- **Status:** decided\n- **Rationale:** %s\n"
)


class World:
    """A team, snapshots of its files as commits are, and the words of all that was ever written."""

    def __init__(self, root: Path) -> None:
        self.story = Story(root)
        self.story.run([("create", "live"), ("say", "live", "ann", "w0"), ("sync",)])
        self.words = ["w0"]
        self.payloads: set[str] = set()
        self.snapshots = [tree(self.story.root)]

    def word(self) -> str:
        self.story.clock.move()
        self.words.append(f"w{len(self.words)}.")
        return self.words[-1]

    def look(self) -> None:
        with self.story.team() as team:
            team.refresh()

    # Acts ---------------------------------------------------------------------------------------

    def say(self, _: int) -> None:
        self.story.say("live", "ann", self.word())

    def decide(self, _: int) -> None:
        word = self.word()
        self.story.decide(word, f"because {word}", ())

    def publish(self, _: int) -> None:
        self.payloads.add(word := self.word())
        self.story.publish("ann", "note", "low", word, 0)

    def ack(self, number: int) -> None:
        self.story.ack(number)

    def open_chat(self, _: int) -> None:
        self.story.create(f"side{len(self.words)}")

    # What others write; each time a command comes by before git does -----------------------------

    def they_say(self, _: int) -> None:
        self.story.original.say("live", "eve", self.word())
        self.look()

    def they_log(self, _: int) -> None:
        word = self.word()
        self.story.original.log(word, f"because {word}")
        self.look()

    def they_publish(self, _: int) -> None:
        self.payloads.add(word := self.word())
        self.story.original.publish("eve", "note", payload=word)
        self.look()

    def slip_in(self, number: int) -> None:
        """A merge leaves a piece of another clone among ours."""
        word, root = self.word(), self.story.root
        if number % 2 and (root / LOG).exists():
            header, pieces = split_decision_log((root / LOG).read_bytes())
            parts = [header, *pieces]
            parts.insert(1 + number % len(parts), self.theirs(word))
            self.story.original.put(LOG, b"".join(parts))
        else:
            file = split_chat_file((root / CHAT).read_bytes())
            assert file is not None
            lines = [line + b"\n" for line in file.lines]
            new = format_line("bob", self.story.clock.seconds, word) + b"\n"
            lines.insert(number % max(1, len(lines)), new)
            self.story.original.put(CHAT, file.header_raw + b"".join(lines), 0o600)
        self.look()

    def theirs(self, word: str) -> bytes:
        return (THEIRS % (self.story.clock.seconds, word, f"because {word}")).encode()

    # Git, and recovery ---------------------------------------------------------------------------

    def commit(self, _: int) -> None:
        self.snapshots.append(tree(self.story.root))

    def check_out(self, number: int) -> None:
        root, wanted = self.story.root, self.snapshots[number % len(self.snapshots)]
        for path in tree(root).keys() - wanted.keys():
            (root / path).unlink()
        for path, (data, mode) in wanted.items():
            if not (root / path).exists() or (root / path).read_bytes() != data:
                self.story.original.put(path, data, mode)

    def sync(self, _: int) -> None:
        self.story.sync()

    def rebuild(self, _: int) -> None:
        with self.story.team() as team:
            recover.rebuild(team)

    # What is left of it --------------------------------------------------------------------------

    def recorded(self) -> str:
        with self.story.team() as team:
            return "\n".join(str(entry.data) for entry in team.store.read())

    def findings(self) -> list[str]:
        with self.story.clock.running(), collect(str(self.story.root)) as evidence:
            found = [one for o in run(evidence, JUDGED).outcomes for one in o.findings]
        return [f"{one.severity} {one.message} {one.evidence}" for one in found]

    def shown(self) -> set[str]:
        """All that the chats and the log say."""
        root, texts = self.story.root, []
        for path in (root / "chat").glob("*.chat"):
            parsed = map(parse_line, path.read_bytes().split(b"\n"))
            texts += [message.text for message in parsed if message is not None]
        with suppress(FileNotFoundError):
            texts.append((root / LOG).read_text())
        return set(re.findall(r"w\d+\.?", "\n".join(texts)))


STEPS: tuple[Callable[[World, int], None], ...] = (
    World.say, World.decide, World.publish, World.ack, World.open_chat, World.they_say,
    World.they_log, World.they_publish, World.slip_in, World.commit, World.check_out, World.sync,
    World.rebuild,
)  # fmt: skip
SCHEDULES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 20)), max_size=12)


@settings(max_examples=max(15, settings().max_examples // 10), deadline=None)
@given(SCHEDULES)
def test_every_piece_is_in_an_entry_or_named(
    schedule: list[tuple[Callable[[World, int], None], int]],
) -> None:
    with folder() as root:
        world = World(root)
        for step, number in schedule:
            with suppress(TripodError):
                step(world, number)
            recorded = world.recorded()
            missing = [word for word in world.words if word not in recorded]
            if missing:
                event("named by a finding")
                found = "\n".join(world.findings())
                assert not [word for word in missing if word not in found], (step, missing)
        world.rebuild(0)
        recorded = world.recorded()
        assert not [word for word in world.words if word not in recorded]
        shown = world.shown()
        # An event whose file alone is gone was deleted by somebody, and counts as acknowledged.
        assert not [word for word in world.words if word not in shown | world.payloads]
        assert not [text for text in world.findings() if text.startswith("failure")]
        before, size = tree(world.story.root), len(recorded)
        world.rebuild(0)
        world.sync(0)
        assert (tree(world.story.root), len(world.recorded())) == (before, size)
