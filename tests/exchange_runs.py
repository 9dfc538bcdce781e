"""Runs a projector many times, kills it, and lets others write its files throughout.

``python -m exchange_runs FOLDER SEED RUNS HOW``: in new teams in FOLDER, RUNS runs are forked from
this process (a run costs milliseconds). Each acts on every file that others write, and is struck at
named points of the protocol (``POINTS``): by a foreign write, and by SIGKILL. HOW is ``exchange``,
or ``blind``: then the old file is renamed over, as one does who knows nothing better. What happened
is written as one JSON object.
"""

import json
import os
import random
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from foreign_writers import KINDS, Writer, free
from story import tree

from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.projections import swap as appending
from tripod.projections.disk import Disk
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team import files as tripod_files
from tripod.team import intake as strays
from tripod.team.team import Team

__all__ = ["ENDS", "POINTS"]

SWAPS = (
    "before the file is staged", "while the file is staged", "staged", "named", "exchanged",
    "looked at", "dropped",
)  # fmt: skip
ENDS = ("before the log's end", "within the log's end", "behind the log's end")
REST = ("committed", "written", "noted", "before strays are taken", "strays taken")
POINTS = (*SWAPS, *ENDS, *REST)
EACH = 25  # runs on one team
_LOG_PIECE = b"\n---\n\n### D-"


class Strikes:
    """What happens to one run: a foreign write at one point, the end at another."""

    def __init__(self, race: str, how: str, kill: str, chance: random.Random) -> None:
        self.race = race
        self.how = how
        self.kill = kill
        self.nth = 1 if kill in ENDS else chance.choice((1, 1, 2))
        self.path = ""
        self.writer: Writer | None = None
        self.is_writing = False
        self._is_open = False

    def at(self, point: str) -> None:
        """The projector has come to a point, for the file ``path``."""
        if point and point == self.race and self.path and not self.is_writing:
            self.race = ""
            self.is_writing = True
            self._write()
            self.is_writing = False
        if point and point == self.kill:
            self.nth -= 1
            if self.nth <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def _write(self) -> None:
        writer = self.writer
        assert writer is not None
        if self._is_open:
            writer.append_to_it()
        elif self.path == "chat/edited.chat":
            (writer.edit if self.how == "at once" else writer.rewrite)(self.path)
        elif self.path == "chat/old.chat":
            self.race = "committed"  # who writes it takes a lock that we hold: at another file
            self.path = ""
        elif self.how == "at once":
            writer.append(self.path)
        else:  # opened before the exchange, written behind it
            writer.open_to_append(self.path)
            self._is_open = True
            self.race = "looked at"


def around(owner: Any, name: str, strikes: Strikes, before: str = "", after: str = "") -> None:
    """Strike before and after a function."""
    real = getattr(owner, name)

    def patched(*arguments: Any, **options: Any) -> Any:
        strikes.at(before)
        result = real(*arguments, **options)
        strikes.at(after)
        return result

    setattr(owner, name, patched)


def arm(strikes: Strikes) -> None:
    """Put the named points into this process."""
    real_swap, real_stage, real_append = (
        tripod_files.Files._swap,
        Disk.stage,
        appending.append_or_swap,
    )
    write = os.write

    def swapped(self: tripod_files.Files, path: str, *more: Any) -> Any:
        strikes.path = path
        strikes.at("before the file is staged")
        return real_swap(self, path, *more)

    def staged(self: Disk, path: str, file: Any, **options: Any) -> Any:
        if strikes.kill == "while the file is staged" and strikes.nth <= 1:
            Path(self.full(path)).with_name(".tripod-new-1").write_bytes(file.data[:40])
        strikes.at("while the file is staged")
        result = real_stage(self, path, file, **options)
        strikes.at("staged")
        return result

    def appended(disk: Disk, path: str, *more: Any, **named: Any) -> Any:
        strikes.path = path
        return real_append(disk, path, *more, **named)

    def written(fd: int, data: Any) -> int:
        if not bytes(data).startswith(_LOG_PIECE) or strikes.is_writing:
            return write(fd, data)
        strikes.at("before the log's end")
        if strikes.kill == "within the log's end" and strikes.nth <= 1:
            write(fd, data[: len(data) // 2])
        strikes.at("within the log's end")
        done = write(fd, data)
        strikes.at("behind the log's end")
        return done

    tripod_files.Files._swap = swapped  # type: ignore[assignment,method-assign]
    Disk.stage = staged  # type: ignore[method-assign]
    appending.append_or_swap = appended
    os.write = written
    around(appending, "swap_files", strikes, "named", "exchanged")
    around(appending, "take_swapped", strikes, after="looked at")
    around(tripod_files.Files, "drop", strikes, after="dropped")
    around(tripod_files.Files, "note", strikes, "written")
    around(Team, "_write_files", strikes, "committed", "noted")
    around(strays, "take_strays", strikes, "before strays are taken", "strays taken")


def rename_blindly() -> None:
    """Replace files as one does who knows nothing better."""

    def blind(self: tripod_files.Files, path: str, want: Any, _digest: str) -> Any:
        temporary, stat = self.disk.stage(path, want)
        os.rename(temporary, self.disk.full(path))
        return stat

    tripod_files.Files._swap = blind  # type: ignore[assignment,method-assign]
    tripod_files.Files._append = lambda *_: False  # type: ignore[method-assign]


def act(root: Path, number: int, chance: random.Random, *, twice: bool) -> None:
    """What one run does: something on each file, in any order, after it took in what is there."""
    with Team(str(root)) as team:
        acts: list[Callable[[], object]] = [
            lambda: chat_send.send(team, "live", "ann", f"[own-{number}-live]"),
            lambda: chat_send.send(team, "old", "ann", f"[own-{number}-old]"),
            lambda: chat_send.send(team, "edited", "ann", f"[own-{number}-edited]"),
            lambda: decisions_log.log(
                team, decisions_log.DecisionRequest(f"[own-{number}-log]", ["ann"], "because")
            ),
        ]
        chance.shuffle(acts)
        if twice:  # the first takes in what others added: the second finds the log as it knows it
            acts[:0] = [
                partial(
                    decisions_log.log,
                    team,
                    decisions_log.DecisionRequest("Again", ["ann"], "because"),
                )
            ] * 2
        for one in acts:
            one()
        if chance.random() < 0.2:
            adoption.sync(team)


class Campaign:
    """Runs on one team, with writers of each kind."""

    def __init__(self, folder: Path, seed: int, how: str) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - it is to be the same again
        self.seed = seed
        self.how = how
        self.project = folder / f"team-{seed}"
        self.project.mkdir()
        self.root = self.project / ".nbs"
        self.journal = self.project / "journal"
        self.kills: Counter[str] = Counter()
        self.survived: list[int] = []
        adoption.init(str(self.project), project="p", origin=f"p/{seed}", key=False)
        with Team(str(self.root)) as team:
            for channel in ("live", "old", "edited"):
                chat_send.create(team, channel)
                chat_send.send(team, channel, "ann", "first")
                chat_send.send(team, channel, "ann", "second")
            decisions_log.log(team, decisions_log.DecisionRequest("First", ["ann"], "because"))

    def run(self, runs: int) -> None:
        """Let all write, and run the projector as often."""
        children: list[int] = []
        pipes: list[int] = []
        for kind in KINDS:
            tokens, give = os.pipe()
            pid = os.fork()
            if not pid:
                for pipe in pipes:
                    os.close(pipe)
                os.close(give)
                writer = Writer(self.root, self.journal, f"{kind}-{self.seed}")
                child(partial(free, writer, kind, tokens, self.seed))
            os.close(tokens)
            children.append(pid)
            pipes.append(give)
        for number in range(runs):
            point = POINTS[number % len(POINTS)] if number % 8 else ""
            for kind, pipe in zip(KINDS, pipes, strict=True):
                if kind != "log" or point not in ENDS:  # there, others come at the very moment
                    os.write(pipe, b"x")
            self._one(number, point, pipes)
        for pipe in pipes:
            os.close(pipe)
        for pid in children:
            assert os.waitpid(pid, 0)[1] == 0

    def _one(self, number: int, point: str, pipes: list[int]) -> None:
        race = self.chance.choice(ENDS if point in ENDS else POINTS)
        how = self.chance.choice(("at once", "slowly"))
        if self.how == "blind":
            race, how = "staged", "at once"
        strikes = Strikes(race, how, point, self.chance)
        pid = os.fork()
        if not pid:
            for pipe in pipes:
                os.close(pipe)
            child(lambda: self._projector(number, strikes))
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL, status
            self.kills[point] += 1
        else:
            assert status == 0
            self.survived.append(number)

    def _projector(self, number: int, strikes: Strikes) -> None:
        if self.how == "blind":
            rename_blindly()
        arm(strikes)
        strikes.writer = Writer(self.root, self.journal, f"at-{self.seed}-{number}")
        self.chance.seed(self.seed + number)
        act(self.root, number, self.chance, twice=strikes.kill in ENDS)

    # Afterwards --------------------------------------------------------------------------------

    def judge(self) -> dict[str, Any]:
        """Take all in, make the files what the ledger says, and count what came of each write."""
        with Team(str(self.root)) as team:
            adoption.sync(team)
            recover.rebuild(team)
            second = recover.rebuild(team).written
            differ = [difference.path for difference in file_differences(team.source, team.disk)]
            said, kept = self._found(team)
        live = tree(self.root)
        other = self.project / "again"
        shutil.copytree(self.root, other)
        for path in live:
            (other / path).unlink()
        with Team(str(other)) as team:
            recover.rebuild(team)
        lines = [line.split(" ") for line in self.journal.read_text().splitlines()]
        added = [mark for what, mark in lines if what == "added"]
        edited = [mark for what, mark in lines if what == "edited"]
        over = {mark for what, mark in lines if what == "over"}
        found = Counter(mark for text in said for mark in marks(text))
        own = Counter(word for text in said for word in text.split() if word.startswith("[own-"))
        evidence = Counter(mark for text in kept for mark in marks(text))
        must = [f"[own-{n}-{c}]" for n in self.survived for c in ("live", "old", "edited", "log")]
        return {
            "writes": len(added) + len(edited),
            "lost": [m for m in added if not found[m]]
            + [m for m in edited if not evidence[m] and m not in over]
            + [m for m in must if not own[m]],
            "twice": [m for m in added if found[m] > 1 or evidence[m] > 1]
            + [m for m in edited if evidence[m] + found[m] > 1]
            + [m for m in own if own[m] > 1],
            "evidence": sum(evidence[m] for m in edited),
            "left": sorted(path.name for path in self.root.rglob(".tripod-*")),
            "differ": differ + second,
            "same": tree(other) == live,
        }

    def _found(self, team: Team) -> tuple[list[str], list[str]]:
        """The texts of what was said and decided, and of what was kept as evidence."""
        said, kept = [], []
        for entry in team.store.read():
            data = entry.data
            if entry.kind == "chat.sent":
                said.append(team.source.content(data["text"]).decode())
            elif entry.kind == "decision.logged":
                said.append(data["title"])
            elif entry.kind in ("log.noted", "chat.unreadable"):
                raw = team.source.content(data["observed"]["raw"])
                said.append(raw.decode("utf-8", "replace"))
            elif entry.kind == "file.displaced" and "content" in data:
                kept.append(team.source.content(data["content"]).decode())
        return said, kept


def marks(text: str) -> list[str]:
    """The marks of foreign writes in a text."""
    return [f"<{part.partition('>')[0]}>" for part in text.split("<")[1:]]


def child(work: Callable[[], object]) -> None:
    """Work in a process that was forked, and end it."""
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, this process ends here
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _main(folder: str, seed: str, runs: str, how: str) -> None:
    total: Counter[str] = Counter()
    kills: Counter[str] = Counter()
    lists: dict[str, list[str]] = {"lost": [], "twice": [], "left": [], "differ": []}
    same = True
    for number in range(-(-int(runs) // EACH)):
        campaign = Campaign(Path(folder), int(seed) + number, how)
        campaign.run(EACH)
        result = campaign.judge()
        kills += campaign.kills
        total += Counter(runs=EACH, writes=result["writes"], evidence=result["evidence"])
        same = same and result["same"]
        for name in lists:
            lists[name] += result[name]
    json.dump({**total, **lists, "same": same, "kills": kills}, sys.stdout)


if __name__ == "__main__":
    _main(*sys.argv[1:])
