"""Runs ``nbs-chat`` within this process, on a team whose clock stands still."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from doors.inside import Done, run_as
from story import Clock, Original, folder

from tripod.team.team import Team

__all__ = ["FILE", "Chat", "chat"]

FILE = ".nbs/chat/live.chat"


class Chat:
    """A project with a chat, the drop-in command on it, and the original tool beside."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.root = project / ".nbs"
        self.file = project / FILE
        self.clock = Clock()
        self.original = Original(self.root, self.clock)
        self.file.parent.mkdir(parents=True)

    def __call__(self, *words: str, given: bytes = b"") -> Done:
        """Run a command; ``FILE`` stands for the chat's file."""
        with self.clock.running():
            return run_as("nbs-chat", self.project, *words, given=given)

    def say(self, handle: str, *texts: str) -> None:
        """Send messages, a minute apart."""
        for text in texts:
            done = self("send", FILE, handle, text)
            assert (done.code, done.out) == (0, b""), done
            self.clock.move(60)

    def lines(self, *words: str) -> list[str]:
        """What a command prints that succeeds."""
        done = self(*words)
        assert done.code == 0, done
        return done.out.decode().splitlines()

    def texts(self, *words: str) -> list[str]:
        """The texts of the messages that a command prints."""
        return [line.partition("] ")[2].partition(": ")[2] for line in self.lines(*words)]

    def cursors(self) -> dict[str, int]:
        """What the original tool would read as positions."""
        lines = self.file.with_suffix(".chat.cursors").read_text("utf-8").splitlines()
        return {name: int(at) for name, _, at in (line.partition("=") for line in lines[1:])}

    @contextmanager
    def team(self) -> Iterator[Team]:
        with self.clock.running(), Team(str(self.root)) as team:
            yield team


@contextmanager
def chat() -> Iterator[Chat]:
    """A new project with an empty chat."""
    with folder() as root:
        made = Chat(root)
        assert made("create", FILE).code == 0
        yield made
