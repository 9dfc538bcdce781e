"""A disk that may lose what nobody waited for: which states a power cut can leave. Pure.

The model is what POSIX promises, and no more. ``fsync`` of a file keeps its bytes, not its name;
``fsync`` of a folder keeps the names in it. Whatever was not waited for may be there or not, each
change by itself and in any order; bytes that were written may be there in part, in sectors. One
change of names (a rename, an exchange) is there whole or not at all: every journaling file system
gives that, and SQLite and git need it as well. No file system in use loses more; ext4 loses less.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from torture.tracing import Call

__all__ = ["Change", "History", "Reader", "State", "read_state", "write_state"]

SECTOR = 512
EVERY_SUBSET = 5
"""Changes that are not safe: of so many, each combination is tried; of more, a sample."""
_MEMORY = "-shm"
"""The end of the name of SQLite's shared memory. The first to open a database writes it anew."""


class Node(NamedTuple):
    """A file (``names`` is None) or a folder as it was before the command."""

    data: bytes
    names: Mapping[str, int] | None
    mode: int


class Change(NamedTuple):
    """One change. Of names: ``names``, pairs of a place and the node that it then names, or None.

    Of bytes: at ``offset`` of ``node`` stands ``data``; None: it is cut, or filled up with zeros.
    """

    node: int
    offset: int = 0
    data: bytes | None = None
    names: tuple[tuple[tuple[int, str], int | None], ...] = ()
    made: Node | None = None
    mode: int | None = None


class Moment(NamedTuple):
    """A power cut: which changes the disk has by then, and how many acts were answered.

    ``cut``: of one change only so many bytes. ``why`` says in words what is there.
    """

    kept: frozenset[int]
    cut: tuple[int, int] | None
    answered: int
    why: str


class State(NamedTuple):
    """A folder: bytes and mode of each file by its path, and the paths of the folders in it."""

    files: dict[str, tuple[bytes, int]]
    folders: frozenset[str]


@dataclass
class History:
    """What a command did to a folder. ``safe[n]``: changes that the disk has after the n-th step.

    ``steps`` gives for each step how many changes there were, which of them were safe, and how
    many acts were answered.
    """

    start: dict[int, Node]
    changes: list[Change] = field(default_factory=list)
    steps: list[tuple[int, frozenset[int], int]] = field(default_factory=list)

    def moments(self, seed: int, samples: int) -> Iterator[Moment]:
        """Each cut that leaves another state, once.

        After each step: all changes are there, only the safe ones, each missing alone, each there
        alone, ``samples`` more by lot, and the newest bytes in part.
        """
        chance = random.Random(seed)
        seen = set()
        for step, (count, safe, answered) in enumerate(self.steps):
            for kept, cut, why in self._chosen(count, safe, chance, samples):
                if (kept, cut, answered) not in seen:
                    seen.add((kept, cut, answered))
                    yield Moment(kept, cut, answered, f"step {step}: {why}")

    def _chosen(
        self, count: int, safe: frozenset[int], chance: random.Random, samples: int
    ) -> Iterator[tuple[frozenset[int], tuple[int, int] | None, str]]:
        every = frozenset(range(count))
        loose = sorted(every - safe)
        yield every, None, "all is there"
        yield safe, None, "only what was waited for is there"
        if len(loose) <= EVERY_SUBSET:
            for bits in range(2 ** len(loose)):
                some = {one for at, one in enumerate(loose) if bits >> at & 1}
                yield safe | some, None, f"of what nobody waited for, only {sorted(some)}"
        else:
            for one in loose:
                yield every - {one}, None, f"change {one} is missing"
                yield safe | {one}, None, f"only change {one} is there early"
            for _ in range(samples):
                some = {one for one in loose if chance.random() < chance.choice((0.2, 0.5, 0.8))}
                yield safe | some, None, f"of what nobody waited for, only {sorted(some)}"
        torn = [one for one in loose if len(self.changes[one].data or b"") > 1]
        for one in torn[-3:]:
            size = len(self.changes[one].data or b"")
            at = min(size - 1, SECTOR * chance.randint(0, size // SECTOR) or size // 2)
            yield every, (one, at), f"{at} bytes of change {one} are there"

    def state(self, moment: Moment) -> State:
        """The folder as a cut left it."""
        data = {node: bytearray(one.data) for node, one in self.start.items()}
        modes = {node: one.mode for node, one in self.start.items()}
        names = {node: dict(one.names) for node, one in self.start.items() if one.names is not None}
        # A node that was made is a file or a folder, even where its other changes were lost.
        for change in self.changes:
            if change.made is not None:
                data[change.node], modes[change.node] = bytearray(), change.made.mode
                if change.made.names is not None:
                    names[change.node] = {}
        for number in sorted(moment.kept):
            change = self.changes[number]
            for (folder, name), node in change.names:
                if node is None:
                    names[folder].pop(name, None)
                else:
                    names[folder][name] = node
            if change.mode is not None:
                modes[change.node] = change.mode
            if change.names or change.mode is not None:
                continue
            held = data[change.node]
            if change.data is None:
                held[:] = held[: change.offset].ljust(change.offset, b"\0")
                continue
            part = change.data
            if moment.cut and moment.cut[0] == number:
                part = part[: moment.cut[1]]
            held.extend(bytes(max(0, change.offset - len(held))))
            held[change.offset : change.offset + len(part)] = part
        return _laid_out(data, modes, names)


def _laid_out(
    data: Mapping[int, bytearray],
    modes: Mapping[int, int],
    names: Mapping[int, Mapping[str, int]],
) -> State:
    files: dict[str, tuple[bytes, int]] = {}
    folders = set()
    todo = [("", 0)]
    while todo:
        path, node = todo.pop()
        if node in names:
            folders.add(path)
            todo += [(f"{path}/{name}".lstrip("/"), inner) for name, inner in names[node].items()]
        else:
            files[path] = bytes(data[node]), modes[node]
    return State(files, frozenset(folders))


def write_state(state: State, folder: Path) -> None:
    """Make a folder that is as a state says; it does not exist yet."""
    for path in sorted(state.folders):
        (folder / path).mkdir()
    for path, (data, mode) in state.files.items():
        target = folder / path
        target.write_bytes(data)
        target.chmod(mode)


def read_state(folder: Path) -> State:
    """A folder as it is now; links and the like in it are an error."""
    files, folders = {}, {""}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ValueError(f"{path} is neither a file nor a folder")
        if path.is_dir():
            folders.add(name)
        else:
            files[name] = path.read_bytes(), path.stat().st_mode & 0o7777
    return State(files, frozenset(folders))


class Reader:
    """Reads the calls of acts, one after another, and follows the names and sizes of files.

    ``folder`` was as ``start`` says; ``at`` is where in it they are run.
    """

    def __init__(self, folder: Path, start: State, at: str = "") -> None:
        self.top = os.path.realpath(folder)
        self.at = os.path.join(self.top, at)
        self.nodes: dict[str, int] = {"": 0}
        self.sizes: dict[int, int] = {}
        self.places: dict[tuple[int, int], int] = {}  # of a process's descriptors: their position
        inner: dict[str, dict[str, int]] = {path: {} for path in start.folders}
        for number, path in enumerate(sorted({*start.folders, *start.files} - {""}), 1):
            self.nodes[path] = number
            inner[os.path.dirname(path)][os.path.basename(path)] = number
        self.history = History({})
        for path, node in self.nodes.items():
            if path in start.folders:
                self.history.start[node] = Node(b"", inner[path], 0o755)
            else:
                data, mode = start.files[path]
                self.history.start[node] = Node(data, None, mode)
                self.sizes[node] = len(data)
        self.safe: set[int] = set()
        self.answered = 0

    def read_act(self, calls: Iterable[Call]) -> None:
        """Read the calls of one act. It answered when it wrote to its output, or ended."""
        acts = self.answered
        for call in calls:
            if call.result < 0:
                continue
            if call.name == "write" and call.fd == 1 and self._inside(call.files[0]) is None:
                self.answered = acts + 1
                self._step()
            elif self._take(call) and call.name != "lseek":
                self._step()
        self.answered = acts + 1
        self._step()

    def _step(self) -> None:
        step = len(self.history.changes), frozenset(self.safe), self.answered
        self.history.steps.append(step)

    def _take(self, call: Call) -> bool:
        """Read one call; whether it was about this folder."""
        match call.name:
            case "write" | "pwrite64" | "writev" | "pwritev" | "lseek" | "ftruncate" | "fchmod":
                return self._bytes(call)
            case "openat":
                return self._open(call)
            case "fsync" | "fdatasync":
                return self._sync(self._inside(call.files[-1]))
            case "sync" | "syncfs":
                self.safe.update(range(len(self.history.changes)))
                return True
            case "sync_file_range" | "msync":  # neither promises that anything is safe
                return False
            case _:
                return self._names(call)

    def _inside(self, path: str) -> str | None:
        if path == self.top:
            return ""
        front = f"{self.top}/"
        return path.removeprefix(front) if path.startswith(front) else None

    def _bytes(self, call: Call) -> bool:
        path = self._inside(call.files[0]) if call.files else None
        if path is None or path.endswith((_MEMORY, " (deleted)")):
            return False
        node = self.nodes[path]
        key = (call.pid, call.fd)
        if call.name == "lseek":
            self.places[key] = call.result
        elif call.name == "fchmod":
            self._add(Change(node, mode=call.numbers[-1]))
        elif call.name == "ftruncate":
            self.sizes[node] = call.numbers[-1]
            self._add(Change(node, call.numbers[-1]))
        else:
            positioned = call.name.startswith("p")
            place = self.places.get(key, 0)
            at = call.numbers[-1] if positioned else self.sizes[node] if place < 0 else place
            data = b"".join(call.texts)[: call.result]
            self._add(Change(node, at, data))
            self.sizes[node] = max(self.sizes[node], at + len(data))
            if not positioned and place >= 0:
                self.places[key] = at + len(data)
        return True

    def _open(self, call: Call) -> bool:
        path = self._inside(call.opened)
        if path is None:
            return False
        self.places[call.pid, call.result] = -1 if "O_APPEND" in call.flags else 0
        if path.endswith(_MEMORY):
            return False
        node = self.nodes.get(path)
        if node is None:
            if "O_CREAT" not in call.flags:
                raise ValueError(f"{path} was opened, and nothing made it")
            self._make(path, Node(b"", None, call.numbers[-1] & ~UMASK))
            return True
        if "O_TRUNC" in call.flags:
            self.sizes[node] = 0
            self._add(Change(node, 0))
            return True
        return False

    def _make(self, path: str, made: Node) -> None:
        node = len(self.history.start) + len(self.history.changes)
        self.nodes[path] = node
        self.sizes[node] = 0
        self._add(Change(node, names=((self._place(path), node),), made=made))

    def _place(self, path: str) -> tuple[int, str]:
        return self.nodes[os.path.dirname(path)], os.path.basename(path)

    def _add(self, change: Change) -> None:
        self.history.changes.append(change)

    def _sync(self, path: str | None) -> bool:
        if path is None or path.endswith(_MEMORY):
            return False
        node = self.nodes[path.removesuffix(" (deleted)")]
        for number, change in enumerate(self.history.changes):
            if any(folder == node for (folder, _), _ in change.names) or (
                not change.names and change.node == node
            ):
                self.safe.add(number)
        return True

    def _names(self, call: Call) -> bool:
        # Commands are run in one folder; what starts elsewhere says so by its whole path.
        texts = (os.path.join(self.at, os.fsdecode(text)) for text in call.texts)
        paths = [self._inside(os.path.realpath(text)) for text in texts]
        if all(path is None or path.endswith(_MEMORY) for path in paths):
            return False
        old, new = paths[0], paths[-1]
        if old is None or new is None:
            raise ValueError(f"{call.name} leads into the folder, or out of it")
        match call.name:
            case "mkdir" | "mkdirat":
                self._make(old, Node(b"", {}, 0o755))
            case "unlink" | "unlinkat" | "rmdir":
                self._add(Change(self.nodes.pop(old), names=((self._place(old), None),)))
            case "link" | "linkat":
                self.nodes[new] = self.nodes[old]
                self._add(Change(self.nodes[old], names=((self._place(new), self.nodes[old]),)))
            case "rename" | "renameat" | "renameat2":
                self._rename(old, new, exchange="EXCHANGE" in call.flags)
            case "chmod" | "fchmodat":
                self._add(Change(self.nodes[old], mode=call.numbers[-1]))
            case _:
                raise ValueError(f"{call.name} of {old} is not understood")
        return True

    def _rename(self, old: str, new: str, *, exchange: bool) -> None:
        one, other = self.nodes[old], self.nodes.get(new)
        inner = [path for path in self.nodes if path.startswith(f"{old}/")]
        if exchange:
            assert other is not None
            self.nodes[old], self.nodes[new] = other, one
            back: int | None = other
        else:
            del self.nodes[old]
            self.nodes[new] = one
            back = None
            for path in inner:
                self.nodes[new + path[len(old) :]] = self.nodes.pop(path)
        places = self._place(old), self._place(new)
        self._add(Change(one, names=((places[0], back), (places[1], one))))


UMASK = 0o022
"""What the commands are run with: a mode that is asked for at ``open`` is cut by it."""
