"""What a chat costs as it grows: a send and a read as processes, and many sends in one process.

The last is held to what nobody can do without who promises as much: the same two entries of each
message durably in a bare table, then the chat's file and the event's, synced and renamed into their
places, and their folders synced.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter

from benchmarks.appends import Bare
from benchmarks.measure import Pair, Row, cost_row, in_turn, time_row
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.ledger.files import sync_path
from tripod.projections.chat.format import ChatHeader, format_header, format_line
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team

__all__ = ["rows"]

MANY = 9_900  # messages, as in the figures of the original
SENDS = 1_999  # one less than what the live file holds
WARM_UP = 2
TRIPOD = str(Path(sys.executable).parent / "tripod")
TEXT = "both tables stay until the migration is done, then we remove the old one"


def rows(folder: str, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on chats; ``rounds`` pairs each, and a third of that for the sends."""
    empty = begin(os.path.join(folder, "chat-0"))
    say(f"a chat of {MANY:,} messages")
    long = begin(os.path.join(folder, "chat-many"))
    fill(long, MANY)
    for name, what, words, at_most in (
        ("chat-send", "`chat send`", ("send", "live", "bench", TEXT), 2.0),
        ("chat-read", "`chat read --last=10`", ("read", "live", "--last=10"), 1.5),
    ):
        for _ in range(WARM_UP):
            _seconds(long, *words)
            _seconds(empty, *words)
        pairs = in_turn(partial(_seconds, long, *words), partial(_seconds, empty, *words), rounds)
        yield cost_row(name, f"{what}, {MANY:,} messages / none but these", pairs, at_most)
    say(f"{SENDS:,} sends")
    few = range(max(1, rounds // 7))
    at_once = [_at_once(os.path.join(folder, f"at-once-{number}")) for number in few]
    what = f"{SENDS:,} sends in a running process, their events included, in one act"
    yield time_row("chat-at-once", what, at_once, 3_000)
    sends = [_sends(os.path.join(folder, f"sends-{number}")) for number in few]
    what = "the same, each with its files / the bare writes"
    yield cost_row("chat-sends", what, sends)


def begin(folder: str) -> str:
    """Make a project with an empty chat; give its team directory."""
    os.makedirs(folder)
    root = adoption.init(folder, project="bench", key=False, new=True).root
    with Team(root) as team:
        chat_send.create(team, "live")
    return root


def fill(root: str, messages: int) -> None:
    """Have an original tool's file hold so many messages, and take it in: archives as it makes."""
    lines = [
        format_line(f"agent-{n % 7}", 1_760_000_000 + n, f"{TEXT} {n}") for n in range(messages)
    ]
    body = b"".join(line + b"\n" for line in lines)
    people = tuple((f"agent-{n}", len(range(n, messages, 7))) for n in range(7))
    header = ChatHeader("agent-0", "2025-10-09T08:53:20+0000", people)
    Path(root, "chat/live.chat").write_bytes(format_header(header, len(body)) + body)
    with Team(root) as team:
        adoption.sync(team)
        while chat_read.count(team, "live") > 2_000:
            chat_send.archive(team, "live", chat_read.count(team, "live") - 1_000)
        recover.rebuild(team)


def _seconds(root: str, *words: str) -> float:
    begin_ = perf_counter()
    subprocess.run(
        (TRIPOD, "chat", *words), cwd=os.path.dirname(root), check=True, stdout=subprocess.DEVNULL
    )
    return perf_counter() - begin_


def _at_once(folder: str) -> float:
    with Team(begin(folder)) as team:
        start = perf_counter()
        with team.act():
            for number in range(SENDS):
                chat_send.send(team, "live", f"agent-{number % 7}", TEXT)
        return perf_counter() - start


def _sends(folder: str) -> Pair:
    root = begin(folder)
    with Team(root) as team:
        size = team.store.head().size
        start = perf_counter()
        for number in range(SENDS):
            chat_send.send(team, "live", f"agent-{number % 7}", TEXT)
        ours = perf_counter() - start
        entries = list(team.store.read(size))
        bare = Bare(f"{folder}/bare.db", team.store.db)
        floor = _bare_writes(bare, [(e.seq, e.header, e.salt, e.body) for e in entries], folder)
    return Pair(ours, floor)


def _bare_writes(
    bare: Bare, values: list[tuple[int, bytes, bytes | None, bytes | None]], folder: str
) -> float:
    """Seconds for the rows, two a transaction, each with its two files."""
    line = format_line("agent-0", 1_760_000_000, TEXT) + b"\n"
    places = [os.path.join(folder, name) for name in ("bare-chat", "bare-events")]
    for place in places:
        os.mkdir(place)
    talk, queue = places
    start = perf_counter()
    for number in range(0, len(values), 2):
        bare.insert(values[number : number + 2])
        _put(f"{talk}/live", line * (number // 2 + 1))
        _put(f"{queue}/{number}", line)
        for place in places:
            sync_path(place)
    return perf_counter() - start


def _put(path: str, data: bytes) -> None:
    fd = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(f"{path}.new", path)
