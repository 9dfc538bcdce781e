"""The original tools once more, by themselves: they read and write as they were seen to do.

Nothing of the project is imported here: what these cannot read, the originals cannot either.
Source: spec nbs-compat B1 to B10, C1 to C3, C5. Where the original aborts, these raise.
"""

import base64
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

__all__ = ["Bus", "Chat", "Entry", "Log", "Message", "Worker"]

Now = Callable[[], int]
"""Gives nanoseconds since 1970."""

PRIORITIES = ("critical", "high", "normal", "low")
LINE = 1_048_574  # a longer line is read as two
MANY = 10_000  # lines of a chat; its sender aborts above
CAP = 256  # entries of a folder that some commands look at
MENTION = r"(?<![A-Za-z0-9._+-])@([A-Za-z0-9_-]{1,63})(?:\\?([!?]))?"
FIELDS = ("Chat ref", "Participants", "Artefacts", "Risk tags", "Status", "Rationale")
STATUSES = ("decided", "superseded", "reversed", "mitigated", "accepted-risk")


class Message(NamedTuple):
    handle: str
    time: int
    text: str


class Entry(NamedTuple):
    id: str
    title: str
    fields: dict[str, str]


def _iso(seconds: int, tail: str) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{tail}"


def _stamp(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d-%H%M%S}"


def _dated(path: Path, now: Now) -> Path:
    """A file that was just written, dated by the clock that holds here."""
    os.utime(path, ns=(now(), now()))
    return path


def _replace(path: Path, data: bytes, mode: int, now: Now) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_bytes(data)
    temporary.chmod(mode)
    _dated(temporary, now).rename(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


class Bus:
    """``nbs-bus`` on a folder of events."""

    def __init__(self, folder: Path, now: Now) -> None:
        self.folder = folder
        self.now = now
        self.pid = 50_000

    def publish(self, source: str, type_: str, priority: str, payload: str = "") -> str:
        us = self.now() // 1000
        self.pid += 1
        name = f"{us}-{source}-{type_}-{self.pid}.event"
        text = f"source: {source}\ntype: {type_}\npriority: {priority}\n"
        text += f"timestamp: {_iso(us // 1_000_000, 'Z')}\ndedup-key: {source}:{type_}\n"
        if payload:
            lines = payload.removesuffix("\n").split("\n")
            text += "payload: |\n" + "".join(f"  {line}\n" for line in lines)
        (self.folder / "processed").mkdir(exist_ok=True)
        temporary = self.folder / f".tmp-{us}-{self.pid}.event"
        temporary.write_text(text, "utf-8")
        _dated(temporary, self.now).rename(self.folder / name)
        return name

    def read(self, path: Path) -> dict[str, str]:
        """Fields of an event's file, and the payload."""
        match = re.match(r"([0-9]+)-", path.name)
        assert match is not None, f"skipped: {path.name}"
        assert int(match[1]) > 0, f"abort: {path.name}"
        # It looks at the fields alone: what stands under the last is printed as it is.
        head, _, payload = re.sub(
            r"(?m)^payload: \|2$", "payload: |", path.read_text("utf-8"), count=1
        ).partition("payload: |\n")
        fields = dict(line.split(": ", 1) for line in head.splitlines())
        assert {"source", "type", "priority"} <= set(fields), f"skipped: {path.name}"
        assert fields["priority"] in PRIORITIES, f"unknown priority: {path.name}"
        lines = payload.splitlines()
        assert all(line.startswith("  ") for line in lines), f"block: {path.name}"
        return {**fields, "payload": "\n".join(line[2:] for line in lines)}

    def pending(self) -> list[str]:
        """As ``check`` lists them."""
        found = []
        for path in self.folder.glob("*.event"):
            if not path.name.startswith(".tmp-"):
                rank = PRIORITIES.index(self.read(path)["priority"])
                found.append((rank, int(path.name.partition("-")[0]), path.name))
        return [name for _, _, name in sorted(found)]

    def processed(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "processed").glob("*.event"))

    def ack(self, name: str) -> None:
        (self.folder / name).rename(self.folder / "processed" / name)

    def ack_all(self, source: str) -> None:
        """All of a source, of the first entries of the folder."""
        names = [name for name in os.listdir(self.folder) if name.endswith(".event")][:CAP]
        for name in names:
            if self.read(self.folder / name)["source"] == source:
                self.ack(name)


class Chat:
    """``nbs-chat`` on one file."""

    def __init__(self, path: Path, now: Now, bus: Bus, *, above: int, count: int) -> None:
        self.path = path
        self.now = now
        self.bus = bus
        self.above = above
        self.count = count

    def _parts(self, path: Path) -> tuple[list[tuple[str, int]], list[bytes]]:
        """Participants and lines, with every look that the original takes, and the one it omits."""
        data = path.read_bytes()
        head, lines = data.split(b"\n")[:6], data.split(b"\n")[6:]
        assert head[0] == b"=== nbs-chat ===", path
        assert head[5] == b"---", path
        fields = dict(line.decode().split(": ", 1) for line in head[1:5])
        assert list(fields) == ["last-writer", "last-write", "file-length", "participants"]
        assert int(fields["file-length"]) == len(data), "abort: the file's length"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", fields["last-write"])
        people = re.findall(r"([^(), ]+)\((\d+)\)", fields["participants"])
        assert len(fields["participants"]) < 4_096, "abort: the participants"
        assert len(lines) <= MANY, "abort: the lines"
        return [(name, int(number)) for name, number in people], [line for line in lines if line]

    def messages(self, path: Path | None = None) -> list[Message]:
        """What ``read`` shows; a line that it would skip or drop is a fault of its writer."""
        return [self._message(line) for line in self._parts(path or self.path)[1]]

    def _message(self, line: bytes) -> Message:
        assert len(line) <= LINE, "destroyed by the next send"
        assert len(line) % 4 == 0, "skipped"
        assert re.fullmatch(rb"[A-Za-z0-9+/]+={0,2}", line), "skipped"
        decoded = base64.b64decode(line)
        assert b"\0" not in decoded, "abort: NUL"
        before, colon, text = decoded.decode().partition(": ")
        handle, _, time = before.partition("|")
        assert colon, "dropped"
        assert 0 < len(handle.encode()) < 64, "dropped"
        return Message(handle, int(time.partition("|")[0] or "0"), text)

    def archives(self) -> list[Path]:
        return sorted(self.path.parent.glob(f"{self.path.stem}-*-archive.chat"))

    def send(self, handle: str, text: str) -> None:
        with _locked(self.path):
            people, lines = self._parts(self.path)
            self.messages()
            known = dict(people)
            known[handle] = known.get(handle, 0) + 1
            seconds = self.now() // 1_000_000_000
            lines.append(base64.b64encode(f"{handle}|{seconds}: {text}".encode()))
            if len(lines) > self.above:
                old, lines = lines[: self.count], lines[self.count :]
                name = f"{self.path.stem}-{_stamp(seconds)}-archive.chat"
                self._write(self.path.with_name(name), "system", "(archived)", old)
                self._set({who: max(0, at - self.count) for who, at in self._cursors().items()})
            told = ", ".join(f"{name}({number})" for name, number in known.items())
            self._write(self.path, handle, told, lines)
        with _locked(self.path):
            self._set({**self._cursors(), handle: len(lines) - 1})
        self._announce(handle, text, list(known))

    def _write(self, path: Path, writer: str, people: str, lines: list[bytes]) -> None:
        when = _iso(self.now() // 1_000_000_000, "+0000")
        head = f"=== nbs-chat ===\nlast-writer: {writer}\nlast-write: {when}\n"
        tail = f"participants: {people}\n---\n".encode() + b"".join(line + b"\n" for line in lines)
        base = len(head.encode()) + len(tail) + len("file-length: \n")
        length = base + len(str(base))
        length = base + len(str(length))
        _replace(path, f"{head}file-length: {length}\n".encode() + tail, 0o600, self.now)

    def _announce(self, handle: str, text: str, people: list[str]) -> None:
        if not text:
            return
        self._publish("chat-message", "normal", f"{handle}: {text}")
        seen = set()
        for name, mark in re.findall(MENTION, text)[:16]:
            if name not in seen:
                seen.add(name)
                type_, priority = {
                    "": ("chat-mention", "high"),
                    "?": ("chat-query", "high"),
                    "!": ("chat-interrupt", "critical"),
                }[mark]
                for who in people if name == "team" else [name]:
                    if name != "team" or who not in (handle, "sidecar"):
                        self._publish(type_, priority, f"@{who} from {handle}: {text}")

    def _publish(self, type_: str, priority: str, payload: str) -> None:
        cut = payload.encode()[:2_047].decode("utf-8", "ignore")
        self.bus.publish("nbs-chat", type_, priority, cut)

    def _cursors(self) -> dict[str, int]:
        path = self.path.with_name(f"{self.path.name}.cursors")
        if not path.exists():
            return {}
        lines = path.read_text("utf-8").splitlines()
        assert lines[0].startswith("#")
        assert len(lines) <= CAP
        return {name: int(at) for name, at in (line.split("=") for line in lines[1:])}

    def _set(self, positions: dict[str, int]) -> None:
        lines = "".join(f"{name}={at}\n" for name, at in positions.items())
        text = f"# Read cursors — last-read message index per handle\n{lines}"
        _replace(self.path.with_name(f"{self.path.name}.cursors"), text.encode(), 0o600, self.now)

    def unread(self, handle: str) -> list[Message]:
        """``read --unread``: what is behind the position, which moves to the end."""
        messages = self.messages()
        at = self._cursors().get(handle, -1)
        assert at < len(messages), "a position beyond the end"
        if at + 1 < len(messages):
            with _locked(self.path):
                self._set({**self._cursors(), handle: len(messages) - 1})
        return messages[at + 1 :]


class Log:
    """``nbs-scribe-log`` and ``-query`` on one file."""

    def __init__(self, path: Path, now: Now, bus: Bus, *, above: int, count: int) -> None:
        self.path = path
        self.now = now
        self.bus = bus
        self.above = above
        self.count = count

    def append(self, title: str, participants: str, rationale: str, ref: str) -> str:
        which = f"D-{self.now() // 1_000_000_000}"
        values = (ref, participants, "—", "none", "decided", rationale)
        bullets = "".join(
            f"- **{key}:** {value}\n" for key, value in zip(FIELDS, values, strict=True)
        )
        with _locked(self.path):
            with self.path.open("ab") as file:
                file.write(f"\n---\n\n### {which} {title}\n{bullets}".encode())
            _dated(self.path, self.now)
            self._archive()
        self.bus.publish("scribe", "decision-logged", "normal", f"{which} {title}")
        return which

    def _archive(self) -> None:
        text = self.path.read_text("utf-8")
        starts = [match.start() for match in re.finditer(r"^\n---\n\n### D-", text, re.MULTILINE)]
        if len(starts) <= self.above:
            return
        head = text[: starts[0]]
        name = f"{self.path.stem}-{_stamp(self.now() // 1_000_000_000)}-archive.md"
        cut = starts[self.count]
        _replace(self.path.with_name(name), text[:cut].encode(), 0o644, self.now)
        left = len(starts) - self.count
        head = re.sub(r"^Decision count: \d+$", f"Decision count: {left}", head, flags=re.MULTILINE)
        _replace(self.path, (head + text[cut:]).encode(), 0o644, self.now)

    def files(self) -> list[Path]:
        return [*sorted(self.path.parent.glob(f"{self.path.stem}-*-archive.md")), self.path]

    def entries(self) -> list[Entry]:
        """Every entry of the archives and the log: from a heading to the next rule."""
        found = []
        for path in self.files():
            text = path.read_text("utf-8")
            for block in re.findall(r"^### D-.*?(?=^---$|\Z)", text, re.MULTILINE | re.DOTALL):
                heading, *lines = block.rstrip("\n").split("\n")
                which, _, title = heading.removeprefix("### ").partition(" ")
                title = re.sub(r"^\[SUPERSEDES D-\d+\] ", "", title)
                assert re.fullmatch(r"D-\d+", which), heading
                bullets = [re.fullmatch(r"- \*\*([^*]+):\*\* (.*)", line) for line in lines]
                assert all(bullets), block
                fields = {match[1]: match[2] for match in bullets if match}
                assert tuple(fields) == FIELDS, block
                assert fields["Status"] in STATUSES, block
                found.append(Entry(which, title, fields))
        return found

    def counted(self) -> int:
        """``grep -c "^### D-"`` over all files."""
        return sum(
            len(re.findall(r"^### D-", path.read_text("utf-8"), re.MULTILINE))
            for path in self.files()
        )


class Worker:
    """The task file and log of a worker that the original runs."""

    def __init__(self, folder: Path, name: str, bus: Bus) -> None:
        self.file = folder / f"{name}.md"
        self.log = folder / f"{name}.log"
        self.name = name
        self.bus = bus

    def spawn(self, task: str) -> None:
        self.file.write_text(
            f"# Worker: {self.name}\n\n## Task\n\n{task}\n\n## Tooling\n\n- Post to chat.\n\n"
            "## Status\n\nState: running\nStarted: 2026-11-22 08:00:00\nCompleted:\n\n"
            "## Log\n\n[Worker appends findings here]\n",
            "utf-8",
        )
        self.log.write_text("begun\n")
        self._date()
        self.bus.publish(self.name, "worker-spawned", "normal", f"Task: {task}")

    def state(self) -> str:
        """The first line that looks like one."""
        match = re.search(r"^State: (.*)$", self.file.read_text("utf-8"), re.MULTILINE)
        return match[1] if match else "unknown"

    def finds(self, text: str) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")
        with self.log.open("a") as file:
            file.write("found something\n")
        self._date()

    def becomes(self, state: str) -> None:
        text = self.file.read_text("utf-8")
        self.file.write_text(re.sub(r"(?m)^State: .*$", f"State: {state}", text, count=1), "utf-8")
        self._date()

    def _date(self) -> None:
        _dated(self.file, self.bus.now)
        _dated(self.log, self.bus.now)
