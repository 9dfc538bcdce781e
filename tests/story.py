"""A small world: a team directory on disk, our real acts on it, and the original tools beside us.

``Story`` acts through the project's own code under a clock that stands still until it is told.
``Original`` writes the files as the original tools do (spec: nbs-compat B and C), by itself.
"""

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from tripod.bus import events as bus
from tripod.bus import reader as readers
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import TripodError
from tripod.ledger.locator import repository_around
from tripod.projections.bus.format import Event, event_name, format_event, format_time
from tripod.projections.chat import format as chat_format
from tripod.projections.chat.format import format_chat_cursors, parse_chat_cursors
from tripod.projections.decisions import format as log_format
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.team import Team

__all__ = [
    "BEGIN",
    "FIRST",
    "HELLO",
    "Clock",
    "Original",
    "Step",
    "Story",
    "entries",
    "folder",
    "story_of",
    "tables",
    "tree",
]

BEGIN = 1_600_000_000
"""When stories begin, in epoch seconds: long ago, so that no file of a test looks old to them."""

Step = tuple[Any, ...]
"""A method of ``Story`` and its arguments."""

HELLO: tuple[Step, ...] = (("create", "live"), ("say", "live", "ann", "hello"))
FIRST: Step = ("decide", "First", "because", ("live.chat:~L7",))

ORIGIN = "parser.example/1"
NOT_FILES = ("ledger.db", ".gitignore")


class Clock:
    """A clock that stands still until it is set or moved on, in nanoseconds."""

    def __init__(self, seconds: int = BEGIN) -> None:
        self.ns = seconds * 1_000_000_000

    def __call__(self) -> int:
        return self.ns

    def move(self, seconds: float = 1) -> None:
        self.ns += int(seconds * 1_000_000_000)

    @property
    def seconds(self) -> int:
        return self.ns // 1_000_000_000

    @contextmanager
    def running(self) -> Iterator[None]:
        """While this holds, it is the time of everybody."""
        with mock.patch.object(time, "time_ns", self):
            yield


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, in memory where the system has such a place: stories sync often."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a new one in it
    with tempfile.TemporaryDirectory(dir=where) as name:
        yield Path(name)


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and permission bits of every projected or foreign file below a team directory.

    Read positions are shared with the original tool, and neither.
    """
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.lstat().st_mode & 0o7777)
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and not path.name.startswith(NOT_FILES)
        and not path.name.endswith((".lock", ".cursors"))
    }


def tables(team: Team) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table projection."""
    from tripod.projections.engine import TABLES

    return {
        table: sorted(team.store.db.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
        for table in TABLES
    }


def entries(team: Team) -> list[tuple[str, str, str, Any]]:
    """Each entry's kind, stream, actor and body, without what chance or the hour put into it."""
    return [(e.kind, e.stream, e.actor, _plain(e.data)) for e in team.store.read()]


def _plain(value: object) -> object:
    """A body without hashes of other entries: those hold salts."""
    if isinstance(value, dict):
        left_out = ("leaf", "origin")
        return {key: _plain(item) for key, item in value.items() if key not in left_out}
    return [_plain(item) for item in value] if isinstance(value, list) else value


class Original:
    """The original tools at work in a team directory, and people with an editor."""

    def __init__(self, root: Path, clock: Clock, *, zone: str = "+0000") -> None:
        self.root = root
        self.clock = clock
        self.zone = zone
        self.pid = 40_000

    def put(self, path: str, data: bytes, mode: int = 0o644) -> Path:
        """Write a file by temporary name and rename, dated by the clock."""
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        temporary = full.with_name(f"{full.name[:200]}.tmp")
        temporary.write_bytes(data)
        temporary.chmod(mode)
        os.utime(temporary, ns=(self.clock.ns, self.clock.ns))
        temporary.rename(full)
        return full

    def publish(self, source: str, type_: str, priority: str = "normal", payload: str = "") -> str:
        us = self.clock.ns // 1000
        self.pid += 1
        name = event_name(us, source, type_, self.pid)
        event = Event(source, type_, priority, format_time(us), f"{source}:{type_}", payload)
        self.put(f"events/{name}", format_event(event))
        return name

    def ack(self, name: str) -> None:
        done = self.root / "events/processed"
        done.mkdir(parents=True, exist_ok=True)
        (self.root / "events" / name).rename(done / name)

    def pending(self) -> list[str]:
        return sorted(path.name for path in (self.root / "events").glob("*.event"))

    def processed(self) -> list[str]:
        return sorted(path.name for path in (self.root / "events/processed").glob("*.event"))

    def prune(self, count: int) -> None:
        for name in self.processed()[:count]:
            (self.root / "events/processed" / name).unlink()

    def create(self, channel: str) -> None:
        header = chat_format.ChatHeader("system", self._time(), ())
        data = chat_format.format_header(header, 0)
        self.put(f"chat/{channel}.chat", data, 0o600)

    def say(self, channel: str, handle: str, text: str) -> None:
        """Send as the original does: parse all, build the whole file, rename; rotate at 2,000."""
        path = f"chat/{channel}.chat"
        file = chat_format.split_chat_file((self.root / path).read_bytes())
        assert file is not None
        assert file.header is not None
        line = chat_format.format_line(handle, self.clock.seconds, text)
        people = dict(file.header.participants)
        people[handle] = people.get(handle, 0) + 1
        header = chat_format.ChatHeader(handle, self._time(), tuple(people.items()))
        lines = [*file.lines, line]
        if len(lines) > 2_000:
            body = b"".join(part + b"\n" for part in lines[:1_000])
            stem = chat_format.chat_archive_name(channel, self.clock.seconds)
            archive = chat_format.chat_archive_header(self._time(), len(body)) + body
            self.put(f"chat/{stem}.chat", archive, 0o600)
            lines = lines[1_000:]
        body = b"".join(part + b"\n" for part in lines)
        self.put(path, chat_format.format_header(header, len(body)) + body, 0o600)

    def _time(self) -> str:
        shift = int(self.zone[:3]) * 3600
        return chat_format.format_time(self.clock.seconds + shift)[:-5] + self.zone

    def append(self, path: str, data: bytes) -> None:
        """Add bytes at the end, as ``>>`` does."""
        with (self.root / path).open("ab") as file:
            file.write(data)

    def log(self, title: str, rationale: str = "because", *, number: int | None = None) -> str:
        """Append a decision as the original does; split the log above 500."""
        full = self.root / "scribe/log.md"
        old = full.read_bytes() if full.exists() else b""
        if not old:
            moment = chat_format.format_time(self.clock.seconds)[:-5]
            old = f"# Decision Log\n\nCreated: {moment}Z\nDecision count: 0\n\n---\n".encode()
        which = f"D-{self.clock.seconds if number is None else number}"
        text = (
            f"\n---\n\n### {which} {title}\n- **Chat ref:** —\n- **Participants:** ann\n"
            f"- **Artefacts:** —\n- **Risk tags:** none\n- **Status:** decided\n"
            f"- **Rationale:** {rationale}\n"
        )
        data = old + text.encode()
        header, pieces = log_format.split_decision_log(data)
        if len(pieces) > 500:
            stem = chat_format.chat_archive_name("log", self.clock.seconds)
            self.put(f"scribe/{stem}.md", header + b"".join(pieces[:250]))
            data = header + b"".join(pieces[250:])
        self.put("scribe/log.md", data)
        return which


@cache
def _begun() -> str:
    """A project in which a story has just begun: most begin by a copy, for a fifth of the time."""
    begun = tempfile.mkdtemp(prefix="tripod-begun-")
    atexit.register(shutil.rmtree, begun, ignore_errors=True)
    with Clock().running():
        adoption.init(begun, project="parser", origin=ORIGIN, scribe="scribe")
    return begun


class Story:
    """One team at work. Every method is an act, a foreign act, or a blow; ``run`` takes steps."""

    def __init__(self, root: Path, origin: str = ORIGIN) -> None:
        self.project = root
        self.root = root / ".nbs"
        self.clock = Clock()
        self.original = Original(self.root, self.clock)
        if origin == ORIGIN and not os.listdir(root) and repository_around(str(root)) is None:
            shutil.copytree(_begun(), root, dirs_exist_ok=True)
            return
        with self.clock.running():
            adoption.init(str(root), project="parser", origin=origin, scribe="scribe")

    @contextmanager
    def team(self) -> Iterator[Team]:
        """The team, opened anew as each command does it, at this story's time."""
        with self.clock.running(), Team(str(self.root)) as team:
            yield team

    def run(self, steps: list[Step]) -> None:
        for step in steps:
            self.step(step)

    def step(self, step: Step) -> None:
        """One step; an act that is refused for what it asks is a step as well."""
        name, *arguments = step
        with suppress(TripodError):
            getattr(self, name)(*arguments)
        self.clock.move()

    # Our acts ----------------------------------------------------------------------------------

    def publish(self, source: str, type_: str, priority: str, payload: str, window: int) -> None:
        with self.team() as team:
            bus.publish(team, source, type_, priority, payload, dedup_window=window)

    def ack(self, number: int) -> None:
        """Acknowledge the pending event of that number, counted around."""
        with self.team() as team:
            team.refresh()
            names = [event.name for event in bus.check(team)]
            if names:
                bus.ack(team, names[number % len(names)], actor="ann")

    def claim(self, holder: str, lease: int) -> None:
        with self.team() as team:
            readers.claim(team, holder, lease=lease)

    def see(self, reader: str) -> None:
        """Show a reader what it was not shown yet."""
        with self.team() as team:
            team.refresh()
            readers.mark_seen(team, reader, readers.unseen(team, reader))

    def ack_all(self, handle: str | None) -> None:
        with self.team() as team:
            bus.ack_all(team, handle, actor="ann")

    def prune(self, limit: int) -> None:
        with self.team() as team:
            bus.prune(team, limit, actor="ann")

    def create(self, channel: str) -> None:
        with self.team() as team:
            chat_send.create(team, channel, actor="ann")

    def say(self, channel: str, handle: str, text: str) -> None:
        with self.team() as team:
            chat_send.send(team, channel, handle, text)

    def read(self, channel: str, handle: str, last: int | None) -> None:
        """Read what is unread, or the newest of it."""
        with self.team() as team:
            team.refresh()
            shown = chat_read.unread(team, channel, handle, chat_read.Window(last))
            chat_send.mark_read(team, channel, handle, [message.number for message in shown])

    def seek(self, channel: str, handle: str, index: int) -> None:
        with self.team() as team:
            chat_send.set_position(team, channel, handle, index)

    def archive(self, channel: str, keep: int) -> None:
        with self.team() as team:
            chat_send.archive(team, channel, keep)

    def delete(self, channel: str, seconds: int) -> None:
        """Have the file forget what was said in the last seconds."""
        with self.team() as team:
            chat_send.delete(team, channel, self.clock.seconds - seconds, actor="ann")

    def decide(self, title: str, rationale: str, refs: tuple[str, ...]) -> None:
        with self.team() as team:
            decisions_log.log(
                team, decisions_log.DecisionRequest(title, ["ann", "bob"], rationale, refs=refs)
            )

    def sync(self) -> None:
        with self.team() as team:
            adoption.sync(team)

    def redact(self, number: int) -> None:
        """Erase the entry of that number, counted around from the newest, if it can be.

        Traces of files that were gone hold no bytes, and are not counted.
        """
        with self.team() as team:
            seqs = [
                entry.seq
                for entry in team.store.read()
                if entry.kind != "file.displaced" or "content" in entry.data
            ]
            seq = seqs[-number % len(seqs)]
            redaction.redact(team, redaction.RedactionRequest((seq,), None, "asked to", "ann"))

    # What others do ----------------------------------------------------------------------------

    def they_publish(self, source: str, type_: str, payload: str) -> None:
        self.original.publish(source, type_, payload=payload)

    def they_ack(self, number: int) -> None:
        names = self.original.pending()
        if names:
            self.original.ack(names[number % len(names)])

    def they_say(self, channel: str, handle: str, text: str) -> None:
        if (self.root / f"chat/{channel}.chat").exists():
            self.original.say(channel, handle, text)

    def they_read(self, channel: str, handle: str, index: int) -> None:
        """Move a read position in the file of them."""
        path = f"chat/{channel}.chat.cursors"
        old = self.root / path
        known = parse_chat_cursors(old.read_bytes()) if old.exists() else {}
        self.original.put(path, format_chat_cursors(known | {handle: index}), 0o600)

    def they_log(self, title: str) -> None:
        self.original.log(title)

    def they_work(self, name: str, text: str) -> None:
        path = f"workers/{name}.md"
        old = self.root / path
        before = old.read_bytes() if old.exists() else b"# Task\n\nState: running\n"
        self.original.put(path, before + text.encode() + b"\n")

    def they_configure(self, interval: int) -> None:
        self.original.put("events/config.yaml", f"pythia-interval: {interval}\n".encode())

    # Blows -------------------------------------------------------------------------------------

    def lose_files(self) -> None:
        """Every projected file is gone (what people write and evidence is not projected)."""
        for folder in ("chat", "events", "scribe", "workers"):
            for path in (self.root / folder).rglob("*"):
                if path.is_file() and path.suffix in {".chat", ".event", ".md"}:
                    path.unlink()
        (self.root / "counts.json").unlink(missing_ok=True)

    def lose_folders(self) -> None:
        """The same, with the folders."""
        for folder in ("chat", "scribe", "workers", "events/processed"):
            shutil.rmtree(self.root / folder, ignore_errors=True)
        self.lose_files()

    def lose_tables(self) -> None:
        """Every table projection is gone."""
        from tripod.projections.engine import TABLES

        with self.team() as team:
            for table in (*TABLES, "manifest", "folds"):
                team.store.db.execute(f"DROP TABLE {table}")


@contextmanager
def story_of(*steps: Step) -> Iterator[Story]:
    """A team in a new folder, after some steps."""
    with folder() as root:
        story = Story(root)
        story.run(list(steps))
        yield story
