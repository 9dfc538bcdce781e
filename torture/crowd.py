"""Many at once: what each was answered stands once, and nobody waits for ever.

Fifty publish, eight append, ten consume, three write the files as other programs do; sync, rebuild,
verify and the exchange with another replica go on meanwhile. Each actor is a process that opens the
team for each act, as a command does, and notes what it was answered. Afterwards the ledger is held
against all notes, and the times are reported.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from torture.children import Child
from torture.scenes import SCENES
from torture.teams import (
    ENVIRONMENT,
    PROGRAM,
    SECONDS,
    Case,
    Result,
    Scene,
    act,
    begin,
    copy_team,
    make_team,
    remove_team,
)
from tripod.bus import events as bus
from tripod.bus import reader as consumer
from tripod.chat import writer as chat
from tripod.decisions import writer as decisions
from tripod.errors import NotFoundError
from tripod.ledger.kinds.merged import peer_view
from tripod.projections.chat.format import format_line
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

__all__ = ["CROWD", "crowds", "without_checkpoints"]

_PULL = next(scene for scene in SCENES if scene.name == "pull")


def without_checkpoints(root: Path) -> None:
    """No decision reaches a checkpoint: who writes one by hand publishes no event for it."""
    (root / "events/config.yaml").write_text("pythia-interval: 0\n", encoding="utf-8")


def _with_peer(root: Path) -> None:
    without_checkpoints(root)
    if _PULL.foreign is not None:
        _PULL.foreign(root)


CROWD = _PULL._replace(name="crowd", acts=(), foreign=_with_peer)
"""A team in a repository whose remote holds the record of another replica."""
KINDS = {
    "publish": 50, "send": 4, "log": 4, "consume": 10, "drop": 1, "say": 1, "note": 1,
    "sync": 1, "rebuild": 1, "verify": 1, "pull": 1,
}  # fmt: skip
"""How many actors of each kind there are; ``drop``, ``say`` and ``note`` are foreign writers."""
PAUSE_S = 0.1
"""A foreign writer rests so long: it waits for no lock of ours, and would write all there is."""
ROUND_S = 10.0
"""The first round lasts so long, and each later one twice as long."""
STARVED_S = 30.0
"""An actor that comes to nothing for so long starves."""
UNFAIR = 20
"""An actor starves where another of its kind came so many times as often."""

Work = Callable[[Path, str, int], str | None]
"""One act in a team's project, by an actor, for the n-th time: what was answered, or None."""


class Note(NamedTuple):
    """What an actor did: when it began and ended (seconds), and what it was answered."""

    begun: float
    ended: float
    said: str


def crowds(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """Rounds without end, the first of them short."""
    folder.mkdir()
    make_team(scene, folder / "team")
    chance = random.Random(seed)
    length = ROUND_S
    for number in range(10**6):
        yield Case(f"{length:g} s of {sum(KINDS.values())} actors", partial(
            play, folder / "team", folder / f"round-{number}", chance.random(), length
        ))  # fmt: skip
        length = 2 * ROUND_S


def play(team: Path, folder: Path, seed: float, seconds: float) -> Result:
    """One round in a copy of a team: what is wrong after it, and how long each kind took."""
    folder.mkdir()
    here = folder / "team"
    copy_team(team, here)
    begun = time.monotonic() + 1
    names = [f"{kind}-{number}" for kind, count in KINDS.items() for number in range(count)]
    random.Random(seed).shuffle(names)
    (folder / "notes").mkdir()
    children = {}
    for name in names:
        loop = partial(_loop, folder, name, begun, begun + seconds)
        argv = [PROGRAM, name]
        children[name] = Child(argv, here, ENVIRONMENT, loop)
    wrong = []
    for name, child in children.items():
        try:
            ended = child.end(begun + seconds + SECONDS - time.monotonic())
        except TimeoutError:
            wrong.append(f"{name} hangs")
        else:
            if ended.code or ended.err:
                wrong.append(f"{name} ended with {ended.code}: {ended.err.decode()[-2000:]}")
    notes = {name: _notes(folder, name) for name in names}
    wrong += _lost(here, notes)
    wrong += starved(notes, begun, begun + seconds)
    told = _times(notes, begun, begun + seconds)
    remove_team(here)
    if wrong:
        return Result("; ".join(wrong[:10]), wrong=True, told=told)
    return Result("nothing lost", told=told)


# The actors ------------------------------------------------------------------------------------


def _loop(folder: Path, name: str, begun: float, until: float) -> int:
    """Act until the time is over; each answer is noted when it came."""
    kind, _, _ = name.partition("-")
    work = WORKS[kind]
    project = folder / "team"
    with (folder / "notes" / name).open("a", encoding="utf-8") as notes:
        time.sleep(max(0, begun - time.monotonic()))
        number = 0
        while (now := time.monotonic()) < until:
            said = work(project, name, number)
            number += 1
            if said is None:
                time.sleep(0.01)
            else:
                notes.write(json.dumps([now, time.monotonic(), said]) + "\n")
                notes.flush()
    return 0


def _publish(project: Path, name: str, number: int) -> str:
    with Team(str(project / ".nbs")) as team:
        priority = ("high", "normal", "low")[number % 3]
        return bus.publish(team, name, "load", priority, f"<{name}-{number}>")


def _send(project: Path, name: str, number: int) -> str:
    with Team(str(project / ".nbs")) as team:
        text = f"<{name}-{number}>"
        chat.send(team, "live", name, text)
        return text


def _log(project: Path, name: str, number: int) -> str:
    with Team(str(project / ".nbs")) as team:
        title = f"<{name}-{number}>"
        decisions.log(team, decisions.DecisionRequest(title, [name], "So.", no_ref="it is load"))
        return title


def _consume(project: Path, name: str, _number: int) -> str | None:
    """Claim an event, and acknowledge it: the work is done when both were answered."""
    with Team(str(project / ".nbs")) as team:
        try:
            found = consumer.claim(team, name, lease=600).name
        except NotFoundError:
            return None
        bus.ack(team, found, actor=name)
        return found


def _drop(project: Path, name: str, number: int) -> str:
    """Put an event into the queue as other programs do: whole, under its name, by a rename."""
    text = f"<{name}-{number}>"
    us = time.time_ns() // 1000
    path = project / f".nbs/events/{us}-{name}-load-{number % 100_000}.event"
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(us // 1_000_000))
    temporary = path.with_suffix(".tmp")
    temporary.write_text(
        f"source: {name}\ntype: load\npriority: low\ntimestamp: {moment}\npayload: |\n  {text}\n"
    )
    temporary.rename(path)
    time.sleep(PAUSE_S)
    return text


def _add(path: Path, data: bytes) -> None:
    """Add to a file under the lock of the original tools."""
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(fd, data)
        os.close(fd)
    time.sleep(PAUSE_S)


def _say(project: Path, name: str, number: int) -> str:
    text = f"<{name}-{number}>"
    line = format_line(name, int(time.time()), text) + b"\n"
    _add(project / ".nbs/chat/live.chat", line)
    return text


def _note(project: Path, name: str, number: int) -> str:
    title = f"<{name}-{number}>"
    text = (
        f"\n---\n\n### D-{1_900_000_000 + number} {title}\n- **Chat ref:** live.chat:~L1\n"
        f"- **Participants:** {name}\n- **Artefacts:** —\n- **Risk tags:** none\n"
        "- **Status:** decided\n- **Rationale:** because\n"
    )
    _add(project / ".nbs/scribe/log.md", text.encode())
    return title


def _command(words: tuple[str, ...], codes: tuple[int, ...]) -> Work:
    """A command as people run it; its exit code is one of ``codes``."""

    def work(project: Path, name: str, number: int) -> str:
        del name, number
        ended = begin(words, project).end(SECONDS)
        if ended.code not in codes or b"Traceback" in ended.err:
            raise RuntimeError(f"{words}: {ended.code}: {ended.err.decode()}{ended.out.decode()}")
        time.sleep(0.2)
        return words[0]

    return work


def _pull(project: Path, name: str, number: int) -> str:
    """Have the other replica say and give something, and take it."""
    text = f"<{name}-{number}>"
    act(("chat", "send", "live", "eve", text), project / "other")
    act(("push", "../remote.git"), project / "other")
    act(("pull", "./remote.git"), project)
    return text


WORKS: dict[str, Work] = {
    "publish": _publish, "send": _send, "log": _log, "consume": _consume, "drop": _drop,
    "say": _say, "note": _note, "sync": _command(("sync",), (0,)),
    "rebuild": _command(("rebuild",), (0,)), "verify": _command(("verify",), (0,)), "pull": _pull,
}  # fmt: skip


# What must hold --------------------------------------------------------------------------------


def _notes(folder: Path, name: str) -> list[Note]:
    lines = (folder / "notes" / name).read_text(encoding="utf-8").splitlines()
    return [Note(*json.loads(line)) for line in lines]


def _lost(project: Path, notes: dict[str, list[Note]]) -> list[str]:
    """What was answered and does not stand in the ledger once, in words."""
    act(("sync",), project)
    with Team(str(project / ".nbs")) as team:
        entries = [peer_view(entry, team.store.blob) for entry in team.store.read()]
    with collect(str(project)) as evidence:
        report = run(evidence)
    said = {name: [note.said for note in of_one] for name, of_one in notes.items()}
    found = {kind: Counter[str]() for kind in ("bus.published", "bus.acked", *TEXTS)}
    for entry in entries:
        if entry.kind in TEXTS:
            found[entry.kind].update(set(_marks(json.dumps(entry.data))))
        elif entry.kind in found:
            found[entry.kind][str(entry.data["name"])] += 1
            if entry.kind == "bus.published" and entry.data["type"] == "load":
                found["load"].update(set(_marks(json.dumps(entry.data))))
    consumed = Counter(e for name, ours in said.items() if name.startswith("consume") for e in ours)
    wrong = [f"{event} was consumed {n} times" for event, n in consumed.items() if n > 1]
    for name, answers in said.items():
        where = WHERE.get(name.partition("-")[0])
        if where is not None:
            wrong += [
                f"{name}: {answer} stands {found[where][answer]} times"
                for answer in answers
                if found[where][answer] != 1
            ]
    if report.exit_code:
        told = [f"{o.check}: {f}" for o in report.outcomes for f in o.findings][:5]
        wrong.append(f"verify says {report.exit_code}: {told}")
    return wrong


TEXTS = ("chat.sent", "decision.logged", "load")
WHERE = {
    "publish": "bus.published", "consume": "bus.acked", "send": "chat.sent", "say": "chat.sent",
    "pull": "chat.sent", "log": "decision.logged", "note": "decision.logged", "drop": "load",
}  # fmt: skip
"""In which entries stands what the actors of a kind were answered; ``load``: events by payload."""


def _marks(text: str) -> Iterable[str]:
    for piece in text.split("<")[1:]:
        mark, end, _ = piece.partition(">")
        if end:
            yield f"<{mark}>"


# Times -----------------------------------------------------------------------------------------


def _gap(notes: list[Note], begun: float, until: float) -> float:
    """The longest time without an answer, in seconds."""
    moments = [begun, *(note.ended for note in notes), max(until, begun)]
    return max(late - early for early, late in pairwise(moments))


def _kinds(notes: dict[str, list[Note]]) -> dict[str, list[list[Note]]]:
    """The notes of each actor, by its kind."""
    return {kind: [notes[f"{kind}-{n}"] for n in range(count)] for kind, count in KINDS.items()}


def starved(notes: dict[str, list[Note]], begun: float, until: float) -> list[str]:
    """The actors that came to nothing for long, or to much less than another of their kind."""
    wrong = []
    most = {kind: max(map(len, several)) for kind, several in _kinds(notes).items()}
    for name, ours in notes.items():
        kind = name.partition("-")[0]
        gap = _gap(ours, begun, until)
        if gap > STARVED_S:
            wrong.append(f"{name} starves: nothing for {gap:.1f} s")
        elif most[kind] >= UNFAIR * max(1, len(ours)):
            wrong.append(f"{name} starves: {len(ours)} times, another {most[kind]} times")
        elif not ours:
            wrong.append(f"{name} starves: nothing in {until - begun:g} s")
    return wrong


def _times(notes: dict[str, list[Note]], begun: float, until: float) -> str:
    """For each kind: how often, p50, p99 and maximum in ms, the longest gap, the counts."""
    lines = []
    for kind, several in _kinds(notes).items():
        times = sorted(1000 * (note.ended - note.begun) for ours in several for note in ours)
        if not times:
            continue
        p50, p99 = (times[min(len(times) - 1, len(times) * part // 100)] for part in (50, 99))
        counts = sorted(map(len, several))
        gap = max(_gap(ours, begun, until) for ours in several)
        lines.append(
            f"{kind} x{len(several)}: {len(times)} times, p50 {p50:.0f} ms, p99 {p99:.0f} ms, "
            f"max {times[-1]:.0f} ms, longest gap {gap:.1f} s, "
            f"by actor {counts[0]} to {counts[-1]}"
        )
    return "\n".join(lines)
