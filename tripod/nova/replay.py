"""Runs of Nova played again: replayed, forked at a turn, compared with one another.

A tape holds what was answered to each prompt of a turn. Played in the place of the personas'
program, the same question with the same personas has to end with the same bytes: whatever follows
from the answers is computed. A fork is a new run that gets its first turns from the tapes of its
parent, and the others from a program.

What plays a tape is a script of the system's shell: a namespace has that without a file being lent.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from difflib import unified_diff
from hashlib import sha256
from itertools import zip_longest
from typing import Any, NamedTuple

from tripod.agents.folder import IsolatedProgram, Order
from tripod.agents.jobs import job_attempts, order_of, recorded
from tripod.errors import BadArgumentError, RefusedError
from tripod.ledger.kinds import nova as kinds
from tripod.ledger.kinds.base import MARK
from tripod.nova.runner import (
    Tell,
    advance,
    begin_nova,
    decide_nova,
    nova_run,
    order_persona,
    try_of,
)
from tripod.projections.nova.answers import persona_prompt
from tripod.projections.nova.files import (
    format_epistemic,
    render_nova_decision,
    render_transcript,
)
from tripod.projections.nova.prompt import prompt_for_turn
from tripod.projections.nova.run import DueTurn, NovaRun, NovaTurn
from tripod.projections.nova.tables import (
    DECISIONS,
    TRANSCRIPT,
    fold_nova_run,
    nova_entries_of,
)
from tripod.projections.nova.turns import ROLE, PlayedTry, format_tape, tape_of_tries
from tripod.team import adoption
from tripod.team.team import Team

_TURNS = (kinds.TURN.name, kinds.MISSED.name)
PLAYER = r"""
LC_ALL=C; export LC_ALL
key=$(sha256sum 2>/dev/null || shasum -a 256) || { echo 'no sha256sum and no shasum' >&2; exit 4; }
codes=$(n=0; while [ $n -lt 32 ]; do printf 's/\\\\u%04x/\\\\0%03o/g\n' $n $n; n=$((n+1)); done)
rules='s/^[^[]*\[//; s/, "/ /; s/"],*$//; s/\\\\/\\0134/g; s/\\"/"/g'
found=$(sed -n "/^\"${key%% *}\": /{
$rules
$codes
p;}" "$1")
if [ -z "$found" ]; then
    echo 'this prompt was never given in the run that is played' >&2; exit 3
fi
printf %b "${found#* }"
exit "${found%% *}"
"""
"""Reads a prompt, and gives back what the tape $1 has for it; exit code 3 where it has nothing.

The answer's line is found, its escapes of JSON become those of printf, which prints it.
"""


class NovaReplay(NamedTuple):
    """The result of a replay: the run as it was played, and what differs, line by line.

    ``stops``: the record of the run has no end but that it was cancelled, so that the replay stops
    where the record does.
    """

    run: NovaRun
    difference: tuple[str, ...]
    stops: bool


def _tape_of(team: Team, name: str, key: str) -> tuple[str, str]:
    """The form of output of a turn's program, and its tape (RefusedError: a part was erased).

    A tape is of one turn: no persona is handed what another one answered.
    """
    tries: list[PlayedTry] = []
    output = "text"
    for ordered in job_attempts(team.store.db, ROLE, f"{name}/{key}"):
        order, result = order_of(team, ordered), recorded(team, ordered)
        for what, is_erased in (
            ("an order", "argv" not in order),
            ("an output", result.stdout == MARK.encode()),
        ):
            if is_erased:
                raise RefusedError(
                    f"{name} cannot be played: {what} of its runs was erased (turn {key}, run "
                    f"{ordered.spawn})"
                )
        if ordered.state == "ended":
            output = order["output"]
            text = result.stdout.decode("utf-8", "replace")
            tried = try_of(team, ordered)
            tries.append(PlayedTry(tried, order["stdin"]["sha256"], result.exit_code, text))
    return output, format_tape(tape_of_tries(key.split("-")[1], tries))


class Tapes:
    """The tapes of a run, each in a file of a temporary folder when its turn is due.

    ``kept`` are the keys of the turns that are played; the tapes of others are empty.
    """

    def __init__(self, team: Team, name: str, folder: str, kept: set[str]) -> None:
        self.team, self.name, self.folder, self.kept = team, name, folder, kept

    def _tape(self, turn: DueTurn) -> tuple[str, str]:
        if turn.key not in self.kept:
            return "text", format_tape({})
        return _tape_of(self.team, self.name, turn.key)

    def has_prompt(self, team: Team, name: str, turn: DueTurn) -> bool:
        """Whether the prompt that a due turn of the run ``name`` begins with was given before."""
        run = nova_run(team.source, name)
        persona = next(p for p in run.opening.personas if p["short_name"] == turn.persona)
        text = persona_prompt(team.source.content(persona["content"]))
        given = sha256(prompt_for_turn(run, turn, text).data).hexdigest()
        return given in json.loads(self._tape(turn)[1])

    def order(self, team: Team, turn: DueTurn, actor: str) -> Order:
        """How the tape of a turn is played in a run of ``team``."""
        output, text = self._tape(turn)
        tape, profile = (f"{self.folder}/{turn.key}.{end}" for end in ("json", "yaml"))
        argv = json.dumps(["/bin/sh", "-c", PLAYER, "sh", tape])
        for path, data in ((tape, text), (profile, f"argv: {argv}\noutput: {output}\n")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(data)
        return order_persona(team, IsolatedProgram(profile=profile), actor)


def replay_nova(team: Team, name: str) -> NovaReplay:
    """Play a run again, in a ledger of its own that is thrown away.

    Compared are the transcript and, of a run that is over, the section of ``decisions.md``, but for
    the numbers of its entries and for the words in which a program failed. A run that is open or
    was cancelled is played and compared up to its last turn, and to what followed from that.

    Raises:
        NotFoundError: there is no such run.
        RefusedError: what it was told or answered was erased.
    """
    run = nova_run(team.source, name)
    body = team.source.body(run.opening.seq)
    opened, blobs = opening_again(team, body)
    opened["config"].pop("work_effort", None)  # the project of the replay has none
    kept = _keys_of(team, name)
    _check_kept(team, name, kept)
    if any(said.note == MARK for said in run.human):
        raise RefusedError(f"{name} cannot be played: what a person asked was erased")
    stops = run.finalized is None or run.finalized["outcome"] == "cancelled"
    before = _pages(team, replace(run, finalized=None) if stops else run)
    with tempfile.TemporaryDirectory(prefix="tripod-replay-") as folder:
        tapes = Tapes(team, name, folder, kept)
        project = f"{folder}/project"
        os.makedirs(project)
        adoption.init(project, project="replay", new=True)
        with Team(project) as other:
            begin_nova(other, opened, blobs, ROLE)
            asyncio.run(_play(other, run, tapes, stops=stops))
            again = _played(other, name, len(kept) if stops else None)
            after = _pages(other, again)
    lines: list[str] = []
    for file in sorted(before.keys() | after.keys(), reverse=True):
        old, new = (pages.get(file, "").splitlines() for pages in (before, after))
        lines += unified_diff(old, new, f"recorded {file}", f"replayed {file}", lineterm="", n=0)
    return NovaReplay(again, tuple(lines), stops)


def _check_kept(team: Team, name: str, kept: set[str]) -> None:
    """Raise RefusedError where a part of a turn was erased, before anything is begun."""
    for key in sorted(kept):
        _tape_of(team, name, key)


def _pages(team: Team, run: NovaRun) -> dict[str, str]:
    """The files that are compared, without what another ledger has otherwise."""
    pages = {TRANSCRIPT: render_transcript(run)}
    if run.finalized is not None:
        end = dict(run.finalized)
        if end["outcome"] == "failed":
            end["reason"] = ""
        decision = team.source.content(end["decision"]) if "decision" in end else b""
        bare = replace(run, opening=run.opening._replace(seq=0), finalized=end)
        pages[DECISIONS] = render_nova_decision(bare, decision.decode("utf-8", "replace"), 0)
    return pages


class _StopsError(Exception):
    """The record stops here, and so does its replay."""


async def _play(team: Team, run: NovaRun, tapes: Tapes, *, stops: bool) -> None:
    name = run.opening.run
    human = iter(run.human)

    def tell(again: NovaRun) -> None:
        gone = len(again.turns) + sum(len(cycle.missed) for cycle in again.cycles)
        if stops and gone >= len(tapes.kept):
            raise _StopsError

    while True:
        try:
            again = await advance(team, name, lambda turn: tapes.order(team, turn, ROLE), tell)
        except _StopsError:
            again = nova_run(team.source, name)
        said = next(human, None)
        if again.state != "awaiting_human" or again.finalized is not None or said is None:
            return
        # A forged decision may be of nobody who can decide.
        who = said.who if said.who not in ("", ROLE) else "replay"
        decide_nova(team, name, said.choice, said.note, who)


def _played(team: Team, name: str, most: int | None) -> NovaRun:
    """A run up to its ``most`` first turns, those that were missed counted, and what follows."""
    rows = nova_entries_of(team.source, name)
    places = [place for place, row in enumerate(rows) if row.kind in _TURNS]
    if most is not None and len(places) > most:
        rows = rows[: places[most]]
    run = fold_nova_run(team.source, rows)
    assert run is not None
    return run


def opening_again(team: Team, body: dict[str, Any]) -> tuple[kinds.NovaOpened, list[bytes]]:
    """What began a run, to begin another one with: the body, and the bytes of its personas.

    Raises:
        RefusedError: it was erased.
    """
    if not body["personas"]:
        raise RefusedError(f"{body['run']} cannot be played: its question and personas were erased")
    blobs = [team.source.content(one["content"]) for one in body["personas"]]
    question = team.source.content(body["question"])
    opened: kinds.NovaOpened = {
        "run": body["run"],
        "question": question,
        "sha256": sha256(question).hexdigest(),
        "config": body["config"],
        "personas": body["personas"],
    }
    return opened, blobs


def _keys_of(team: Team, name: str, most: int = -1) -> set[str]:
    """The keys of the first ``most`` recorded turns of a run, and of those missed before them.

    -1: of all.
    """
    keys: set[str] = set()
    rows = [row for row in nova_entries_of(team.source, name) if row.kind in _TURNS]
    bodies = team.source.each_body([row.seq for row in rows])
    for row, body in zip(rows, bodies, strict=True):
        if most == 0:
            break
        most -= row.kind == kinds.TURN.name
        keys.add(DueTurn(body["role"], body["persona"], body["cycle"], 0).key)
    return keys


async def carry_on(team: Team, name: str, order: Order, tell: Tell | None = None) -> NovaRun:
    """Carry a run on as ``advance`` does; the first turns of a fork are played from a tape.

    That holds as long as they are asked for what they were asked in the parent: where a person
    decided otherwise, or where its program did, the turns behind that are the program's.
    """
    opening = nova_run(team.source, name).opening
    if not opening.parent:
        return await advance(team, name, lambda _: order, tell)
    with tempfile.TemporaryDirectory(prefix="tripod-fork-") as folder:
        kept = _keys_of(team, opening.parent, opening.parent_turn)
        tapes = Tapes(team, opening.parent, folder, kept)

        def order_of_turn(turn: DueTurn) -> Order:
            is_played = turn.key in kept and tapes.has_prompt(team, name, turn)
            return tapes.order(team, turn, order.actor) if is_played else order

        return await advance(team, name, order_of_turn, tell)


def fork_nova(team: Team, name: str, turn: int, actor: str) -> str:
    """Begin a run that has the first ``turn`` turns of another one; give its name.

    Raises:
        NotFoundError: there is no such run.
        RefusedError: it has no turn, or one of them was erased.
        BadArgumentError: it has fewer turns.
    """
    run = nova_run(team.source, name)
    if not run.turns:
        raise RefusedError(f"{name} has no turn: there is nothing to go on from")
    if not 1 <= turn <= len(run.turns):
        raise BadArgumentError(f"{name} has turns 1 to {len(run.turns)}, and no turn {turn}")
    opened, blobs = opening_again(team, team.source.body(run.opening.seq))
    _check_kept(team, name, _keys_of(team, name, turn))
    opened["parent"], opened["parent_turn"] = name, turn
    return begin_nova(team, opened, blobs, actor)


class NovaDifference(NamedTuple):
    """How two runs stand in one turn: ``first`` and ``second`` are what each has there."""

    turn: int
    how: str
    first: str
    second: str


def compare_nova(first: NovaRun, second: NovaRun) -> Iterator[NovaDifference]:
    """Turn by turn what differs between two runs; turns that are the same are given as well."""
    for number, (one, other) in enumerate(zip_longest(first.turns, second.turns), 1):
        if one is None or other is None:
            heads = ("" if turn is None else _head(turn) for turn in (one, other))
            yield NovaDifference(number, "in one run only", *heads)
        elif _head(one) != _head(other):
            yield NovaDifference(number, "another persona speaks", _head(one), _head(other))
        elif one.text == other.text:
            yield NovaDifference(number, "same", _head(one), _head(other))
        elif one.epistemic != other.epistemic:
            states = (format_epistemic(turn) for turn in (one, other))
            yield NovaDifference(number, "another epistemic state", *states)
        else:
            yield NovaDifference(number, "other words", one.text, other.text)


def _head(turn: NovaTurn) -> str:
    return f"{turn.persona}, {turn.role}, cycle {turn.cycle}"
