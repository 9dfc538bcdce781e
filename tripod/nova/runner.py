"""Runs of Nova: begun, carried on from wherever they stopped, decided by people, cancelled.

Each step is decided from the ledger alone. ``settle_nova`` appends, in one transaction, all that
can be computed or that an ended agent answered; ``advance`` has the due turns taken, each by a job
of ``tripod.agents.jobs``, and settles again. So a run that was killed goes on with the next
command, and several commands at one run wait for the same agents.

A persona has two answers a turn: the second is told what was wrong with the first. Agents that were
lost with their coordinator are tried again, twice at most; those that we ended ourselves cost no
try. Where the budget runs out, turns that were begun are still taken: nothing is paid for and left
out.

Source: spec nova N3 to N7, N11; kernel K-5, K-6, A-8.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any

from tripod.agents import jobs
from tripod.agents.folder import (
    IsolatedHooks,
    IsolatedProgram,
    Order,
    isolated_job,
    keep_left,
    order_isolated,
    sweep_run_folders,
)
from tripod.agents.jobs import Attempt, JobHooks, job_attempts, recorded, spool_of_job
from tripod.agents.spec import SpawnResult
from tripod.agents.spool import RUNNING
from tripod.errors import BadArgumentError, MalformedError, NotFoundError, RefusedError
from tripod.ledger.files import read_plain_file
from tripod.ledger.kinds import nova as kinds
from tripod.ledger.kinds.agents import ISOLATED
from tripod.ledger.kinds.base import Kind
from tripod.nova.work_effort import add_to_work_effort, find_work_effort
from tripod.projections.nova.answers import MAX_PERSONA, Persona, persona_prompt, read_persona
from tripod.projections.nova.prompt import prompt_for_turn
from tripod.projections.nova.rules import SPEAKING
from tripod.projections.nova.run import CAE, DCE, DueTurn, NovaRun
from tripod.projections.nova.tables import (
    DECISIONS,
    FOLDER,
    fold_nova_run,
    nova_entries_of,
)
from tripod.projections.nova.turns import (
    MAX_LOST,
    ROLE,
    TurnStand,
    TurnTry,
    is_of_panel,
    stand_of_tries,
    subject_of_turn,
    told_problem,
)
from tripod.projections.projection import Source
from tripod.projections.workers.answers import CANCELLED
from tripod.team.act import Act
from tripod.team.team import Team

PROFILE = "TRIPOD_NOVA_PROFILE"  # the variable that names the default profile; else `pythia`
MAX_QUESTION = 64 * 1024  # bytes, also of the note of a person who decides
MAX_PERSONAS = 64
_MOMENT_S = 0.02
_GRACE_S = 2.0  # in which the command that runs a program may record its end: it knows what to keep
_KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in kinds.KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class NovaLimits:
    """What a run is held to; numbers from 0 to 1 and money are texts of decimals.

    ``turns`` and ``cost`` (US dollars) None: no limit. ``log`` is the decision log of the team in
    which the decision is logged as well, ``work_effort`` the work effort (``WE-...``) to whose
    ``decisions.md`` it is added.
    """

    threshold: str = "0.35"
    epsilon: str = "0.05"
    window: int = 2
    rounds: int = 5
    concurrency: int = 4
    turns: int | None = None
    cost: str | None = None
    log: str | None = None
    work_effort: str | None = None


Tell = Callable[[NovaRun], None]


# Personas --------------------------------------------------------------------------------------

_WRITES_A_SET = "`tripod nova personas init FOLDER` writes a set"
CORE_SET = os.path.join(os.path.dirname(__file__), "personas")
"""The folder of the personas that ship with us."""


def load_personas(folder: str | None = None) -> list[Persona]:
    """Read the personas of a folder: ``core/DCE.md``, ``core/CAE.md``, ``experts/*.md``.

    Without a folder they are those that ship with us.

    Raises:
        NotFoundError: a core persona, or every expert, is missing.
        BadArgumentError: a file is no persona, or two have one name.
    """
    folder = CORE_SET if folder is None else folder
    experts = f"{folder}/experts"
    try:
        names = sorted(name for name in os.listdir(experts) if name.endswith(".md"))
    except OSError as error:
        raise NotFoundError(
            f"{experts}: {error.strerror}: no expert can be asked; {_WRITES_A_SET}"
        ) from error
    if not names:
        raise NotFoundError(f"{experts} has no file *.md: no expert can be asked; {_WRITES_A_SET}")
    if len(names) > MAX_PERSONAS:
        raise BadArgumentError(f"{experts} has {len(names)} personas, more than {MAX_PERSONAS}")
    found: dict[str, Persona] = {}
    wanted = {DCE: "coordinator", CAE: "critic"}
    for path in (*wanted, *(f"experts/{name}" for name in names)):
        persona = _load_persona(folder, path)
        pattern = wanted.get(path, "domain_expert")
        if persona.pattern != pattern:
            raise BadArgumentError(
                f"{folder}/{path}: its pattern is {persona.pattern}, and has to be {pattern} here"
            )
        if persona.short_name in found:
            raise BadArgumentError(
                f"{folder}/{path}: its short_name {persona.short_name} is that of "
                f"{found[persona.short_name].path}; each name stands for one persona"
            )
        found[persona.short_name] = persona
    return list(found.values())


def _load_persona(folder: str, path: str) -> Persona:
    if re.search("[\ud800-\udfff]", path):  # no entry can hold it
        raise BadArgumentError(f"{folder}/{path!r}: the name of this file is not UTF-8")
    try:
        data = read_plain_file(f"{folder}/{path}", MAX_PERSONA, named=True)
    except FileNotFoundError as error:
        raise NotFoundError(f"{folder}/{path} is missing; {_WRITES_A_SET}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadArgumentError(f"{folder}/{path} cannot be read: {reason}") from error
    try:
        return read_persona(data, path)
    except MalformedError as error:
        raise BadArgumentError(f"{folder}/{error}") from error


def write_personas(folder: str) -> list[str]:
    """Write the personas that ship with us into a folder; give the paths of those that are new."""
    written = []
    for persona in load_personas():
        path = f"{folder}/{persona.path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            continue
        with os.fdopen(fd, "wb") as file:
            file.write(persona.data)
        written.append(path)
    return written


# Beginning -------------------------------------------------------------------------------------


def open_nova(
    team: Team, question: str, personas: Sequence[Persona], limits: NovaLimits, actor: str
) -> str:
    """Begin a run; give its name.

    Raises:
        BadArgumentError: the question is empty or too long, or a limit is out of range.
        NotFoundError: there is no such work effort.
    """
    asked = question.strip().encode("utf-8", "surrogatepass")
    if not asked:
        raise BadArgumentError("question: empty; ask something")
    _refuse_long("question", asked)
    kept: list[kinds.NovaPersona] = []
    for one in personas:
        digest = sha256(one.data).hexdigest()
        kept.append(
            {
                "short_name": one.short_name,
                "role": one.role,
                "path": one.path,
                "content": {"sha256": digest, "size": len(one.data)},
                "sha256": digest,
            }
        )
    body: kinds.NovaOpened = {
        "run": _name_of(question),
        "question": asked,
        "sha256": sha256(asked).hexdigest(),
        "config": _config(limits),
        "personas": kept,
    }
    if limits.work_effort is not None:
        body["config"]["work_effort"] = find_work_effort(team, limits.work_effort)
    return begin_nova(team, body, [one.data for one in personas], actor)


def _refuse_long(what: str, said: bytes) -> None:
    """Refuse what each persona is shown where it is too long (BadArgumentError)."""
    if len(said) > MAX_QUESTION:
        raise BadArgumentError(
            f"{what}: {len(said)} bytes, more than {MAX_QUESTION}; each persona is given it whole: "
            "shorten it"
        )


def begin_nova(team: Team, body: kinds.NovaOpened, blobs: Sequence[bytes], actor: str) -> str:
    """Append what begins a run; give its name, with a number where that of ``body`` is taken.

    ``blobs`` are the bytes of its personas.
    """
    with team.act(by=actor) as act:
        sql = "SELECT 1 FROM nova_runs WHERE run = ?"
        name, number = body["run"], 1
        while act.transaction.tables.execute(sql, (name,)).fetchone():
            number += 1
            name = f"{body['run']}-{number}"
        act.append([kinds.OPENED.draft({**body, "run": name}, actor, blobs=blobs)])
    return name


def _config(limits: NovaLimits) -> kinds.NovaConfig:
    for name, share in (("threshold", limits.threshold), ("epsilon", limits.epsilon)):
        if re.fullmatch(r"0(\.[0-9]{1,4})?|1(\.0{1,4})?", share) is None:
            raise BadArgumentError(
                f"{name}: {share:.40} is no number from 0 to 1 with at most four decimals"
            )
    if min(limits.rounds, limits.concurrency, limits.window) < 1:
        raise BadArgumentError("rounds, concurrency and window are 1 at least")
    if limits.turns is not None and limits.turns < 1:
        raise BadArgumentError("budget: no turn could be taken")
    config: kinds.NovaConfig = {
        "threshold": limits.threshold,
        "epsilon": limits.epsilon,
        "window": limits.window,
        "rounds": limits.rounds,
        "concurrency": limits.concurrency,
    }
    if limits.turns is not None:
        config["turns"] = limits.turns
    if limits.cost is not None:
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,4})?", limits.cost) is None:
            raise BadArgumentError(f"budget: {limits.cost:.40} is no amount such as 2.50")
        if not Decimal(limits.cost):
            raise BadArgumentError("budget: with 0 US dollars no turn could be taken")
        config["cost"] = f"{Decimal(limits.cost):.4f}"
    if limits.log is not None:
        from tripod.projections.decisions.format import decision_log_name_problem

        problem = decision_log_name_problem(limits.log)
        if problem is not None:
            raise BadArgumentError(f"log: {problem}")
        config["log"] = limits.log
    return config


def _name_of(question: str) -> str:
    """A name made of the first words of a question."""
    plain = re.sub("[^a-z0-9]+", "-", question[:200].casefold()).strip("-")
    return plain[:40].strip("-") or "run"


# Going on --------------------------------------------------------------------------------------


def nova_run(source: Source, name: str) -> NovaRun:
    """A run as it stands (NotFoundError: no run has this name)."""
    run = fold_nova_run(source, nova_entries_of(source, name))
    if run is None:
        raise NotFoundError(f"there is no run {name!r:.80}: `tripod nova list` shows them")
    return run


def order_persona(team: Team, program: IsolatedProgram, actor: str) -> Order:
    """How the personas' program is run here; raises as ``order_isolated``."""
    return order_isolated(team, program, actor, PROFILE, "pythia")


async def advance(
    team: Team, name: str, order: Callable[[DueTurn], Order], tell: Tell | None = None
) -> NovaRun:
    """Carry a run on until it ends, or until a person has to decide; ``tell`` is told each change.

    ``order`` says how the program of a turn is run. Being cancelled ends the programs that run, and
    records that.

    Raises:
        NotFoundError: there is no such run.
        RefusedError, LedgerError: nothing could be recorded.
    """
    tell = tell or _tell_nobody
    run = nova_run(team.source, name)
    if not run.opening.personas and run.finalized is None:
        raise RefusedError(
            f"{name} cannot go on: its question and personas were erased; `tripod nova cancel "
            f"{name}` ends it"
        )
    jobs.sweep(team)
    sweep_run_folders(team)
    while True:
        run = settle_nova(team, name)
        tell(run)
        turns = _turns_to_take(team, run)
        if not turns:
            jobs.sweep(team)
            sweep_run_folders(team)
            add_to_work_effort(team, name)
            return run
        slots = asyncio.Semaphore(int(run.opening.config["concurrency"]))
        every = (_take_turn(team, run, turn, order(turn), slots=slots, tell=tell) for turn in turns)
        await asyncio.gather(*every)


def _tell_nobody(run: NovaRun) -> None:
    """Nobody watches."""


async def _take_turn(
    team: Team,
    run: NovaRun,
    turn: DueTurn,
    order: Order,
    *,
    slots: asyncio.Semaphore,
    tell: Tell,
) -> None:
    """Have a turn taken until it can be recorded, which it is when those before it are."""
    persona = next(p for p in run.opening.personas if p["short_name"] == turn.persona)
    text = persona_prompt(team.source.content(persona["content"]))
    subject = subject_of_turn(run, turn)
    while True:
        async with slots:
            # Turns that were taken meanwhile may have used the budget up, or somebody cancelled it.
            now = nova_run(team.source, run.opening.run)
            stand = stand_of_turn(team, now, turn)
            wanted = {one.key for one in _turns_to_take(team, now)}
            if stand.entry is not None or turn.key not in wanted:
                return
            given = prompt_for_turn(run, turn, text, stand.problem)
            job = isolated_job(team, ROLE, subject, order, prompt=given.data, sources=given.sources)
            hooks = NovaHooks(team, order, ISOLATED)
            try:
                await jobs.run(team, job, first=stand.first, max_attempts=MAX_LOST, hooks=hooks)
            except _OverError:
                return
        tell(settle_nova(team, run.opening.run))


class _OverError(Exception):
    """The run was ended meanwhile: nothing more is to be begun for it."""


class NovaHooks(IsolatedHooks):
    """Begins no program for a run that is over."""

    def requested(self, act: Act, run: Attempt) -> tuple[int, ...]:
        """Refuse where somebody cancelled the run, in the same transaction."""
        sql = "SELECT ended FROM nova_runs WHERE run = ?"
        (ended,) = act.transaction.tables.execute(sql, (run.subject.partition("/")[0],)).fetchone()
        if ended is not None:
            raise _OverError
        return super().requested(act, run)


def _turns_to_take(team: Team, run: NovaRun) -> list[DueTurn]:
    """The due turns that the budget allows; and those up to the last that was begun.

    Turns are recorded in their order, so one that was begun waits for those before it.
    """
    due, left = list(run.due_turns()), run.turns_left()
    if left is None or left >= len(due):
        return due
    begun = (place for place, turn in enumerate(due, 1) if _attempts(team, run, turn))
    return due[: max([left, *begun])]


def _attempts(team: Team, run: NovaRun, turn: DueTurn) -> list[Attempt]:
    return job_attempts(team.store.db, ROLE, subject_of_turn(run, turn))


def settle_nova(team: Team, name: str) -> NovaRun:
    """Record what ended agents answered and what follows; give the run as it stands then."""
    team.refresh()
    run = nova_run(team.source, name)
    if _next_entry(team, run) is None:
        return run
    with team.act(by=ROLE) as act:
        run = nova_run(act.source, name)
        while (found := _next_entry(team, run)) is not None:
            kind, body = found
            (entry,) = act.append([kind.draft(body)])
            run.apply(entry.seq, entry.kind, entry.data, act.source.content)
            if kind is kinds.FINALIZED:
                _name_checkpoint(act, name, entry.seq)
                if "decision" in entry.data and "log" in run.opening.config:
                    _log_decision(team, act, run)
    return run


def _next_entry(team: Team, run: NovaRun) -> tuple[Kind[Any], dict[str, Any]] | None:
    """The next entry that can be recorded now: turns in their order first, then what follows."""
    turn = next(run.due_turns(), None)
    if turn is not None:
        stand = stand_of_turn(team, run, turn)
        if stand.entry is not None:
            return _KINDS[stand.entry.kind], stand.entry.body
    due = run.due_entry()
    if due is None or (turn is not None and _turns_to_take(team, run)):
        return None  # with a turn due it is the budget that ran out
    return _KINDS[due.kind], due.body


def _name_checkpoint(act: Act, run: str, position: int) -> None:
    """Give the position at which a run ended a name of its minute."""
    minute = time.strftime("CKPT-%y%m%d-%H%M", time.gmtime(act.now_us // 1_000_000))
    sql = "SELECT 1 FROM checkpoints WHERE name = ?"
    name, number = minute, 1
    while act.transaction.tables.execute(sql, (name,)).fetchone():
        number += 1
        name = f"{minute}-{number}"
    act.append([kinds.CHECKPOINT.draft({"name": name, "position": position, "run": run})])


def _log_decision(team: Team, act: Act, run: NovaRun) -> None:
    """Log the decision of a run in the team's decision log too: it says where the text stands."""
    from tripod.decisions.writer import DecisionRequest, log
    from tripod.projections.decisions.format import MAX_TITLE

    name = run.opening.run
    asked = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", run.opening.question)
    turns, cycles = (
        f"{number} {what}" if number == 1 else f"{number} {what}s"
        for number, what in ((len(run.turns), "turn"), (run.number, "cycle"))
    )
    request = DecisionRequest(
        " ".join(asked.split())[: MAX_TITLE // 8],
        list(dict.fromkeys(turn.persona for turn in run.turns)),
        f"A panel decided it in {turns} and {cycles}: Nova run {name}.",
        artefacts=[f"{FOLDER}/{name}/{DECISIONS}"],
        no_ref="a panel decided it, and no chat",
    )
    try:
        log(team, request, into=run.opening.config["log"])
    except BadArgumentError as error:
        act.warn(f"{name}: its decision could not be logged in the team's decision log: {error}")


# Turns -----------------------------------------------------------------------------------------


def stand_of_turn(team: Team, run: NovaRun, turn: DueTurn) -> TurnStand:
    """How a due turn stands, from the ledger alone."""
    attempts = _attempts(team, run, turn)
    return stand_of_tries(run, turn, [try_of(team, one) for one in attempts])


def try_of(team: Team, attempt: Attempt) -> TurnTry:
    """A run of an agent as the ledger has it."""
    if attempt.state != "ended":
        return TurnTry(attempt.spawn, attempt.attempt, attempt.state)
    result = recorded(team, attempt)
    return TurnTry(
        attempt.spawn,
        attempt.attempt,
        attempt.state,
        result.status,
        told_problem(result.problem, result.stderr),
        result.answer,
        result.answer.cost,
        is_cancelled=result.problem == CANCELLED,
    )


# People ----------------------------------------------------------------------------------------


def decide_nova(team: Team, name: str, choice: str, note: str, actor: str) -> NovaRun:
    """Record what a person decided of a run that waits for one.

    Raises:
        NotFoundError: there is no such run.
        BadArgumentError: ``actor`` is one of the panel, or the note is too long.
        RefusedError: it waits for nobody.
    """
    noted = note.encode("utf-8", "replace")
    _refuse_long("note", noted)
    if is_of_panel(nova_run(team.source, name), actor):
        raise BadArgumentError(f"who decides? {actor} is no person: give --as HANDLE")
    with team.act(by=actor) as act:
        run = nova_run(act.source, name)
        if run.state != "awaiting_human" or run.escalated is None or run.finalized is not None:
            raise RefusedError(f"{name} waits for no person: it is {state_in_words(run)}")
        body = {
            "run": name,
            "escalated": run.escalated,
            "choice": choice,
            "note": noted,
        }
        act.append([kinds.HUMAN.draft(body, actor)])
    run = settle_nova(team, name)
    add_to_work_effort(team, name)
    return run


def cancel_nova(team: Team, name: str, why: str, actor: str) -> NovaRun:
    """End a run, and the programs that run for it; back when they have ended.

    Of a run that is over, those are ended that a command left behind which was killed.

    Raises:
        NotFoundError: there is no such run.
        RefusedError: it is over, and nothing runs for it.
    """
    with team.act(by=actor) as act:
        run = nova_run(act.source, name)
        if run.finalized is None:
            body = {
                "run": name,
                "outcome": "cancelled",
                "reason": why,
                "cycles": run.number,
                "turns": len(run.turns),
                "cost": f"{run.spent:f}",
            }
            (entry,) = act.append([kinds.FINALIZED.draft(body, actor)])
            _name_checkpoint(act, name, entry.seq)
        elif not _running(team, name):
            raise RefusedError(f"{name} is over: {run.finalized['outcome']}")
    end_programs(team, name)
    return nova_run(team.source, name)


def end_programs(team: Team, name: str) -> int:
    """End the programs that run for a run that is over; back when they have ended, with how many.

    There are some where a command that cancelled it was killed. Its decision is added to its work
    effort, if it is not there.
    """
    running = _running(team, name)
    _end_agents(team, running)
    jobs.sweep(team)
    sweep_run_folders(team)
    add_to_work_effort(team, name)
    return len(running)


def _running(team: Team, name: str) -> list[Attempt]:
    sql = (
        "SELECT spawn, role, subject, attempt, state, seq FROM agents"
        " WHERE role = ? AND state IN ('requested', 'started') AND subject > ? AND subject < ?"
    )
    rows = team.store.db.execute(sql, (ROLE, f"{name}/", f"{name}0")).fetchall()
    return [Attempt(*row) for row in rows]


class _LeftHooks(JobHooks):
    """Keeps what a program left beside its output, as far as that came with it."""

    def ended(self, act: Act, run: Attempt, result: SpawnResult) -> None:
        """Store it; files in the home of an order that nobody has any more go with the home."""
        keep_left(act, run, result)


def _end_agents(team: Team, running: Sequence[Attempt]) -> None:
    """Have programs ended. Who runs them records that, and where that one is dead, we do."""
    spools = [spool_of_job(team, one.spawn) for one in running]
    for spool in spools:
        while spool.look().state == RUNNING and not spool.cancel():
            time.sleep(_MOMENT_S)  # it is only about to start
    sql = "SELECT 1 FROM agents WHERE spawn = ? AND state IN ('requested', 'started')"
    until = time.monotonic() + _GRACE_S
    for one, spool in zip(running, spools, strict=True):
        spool.wait()
        while team.store.db.execute(sql, (one.spawn,)).fetchone() and time.monotonic() < until:
            time.sleep(_MOMENT_S)
        jobs.settle_job(team, one, _LeftHooks())


# Reading ---------------------------------------------------------------------------------------


def state_in_words(run: NovaRun) -> str:
    """The state of a run for people: with its cycle, or with its outcome."""
    if run.finalized is not None:
        return f"over: {run.finalized['outcome']}"
    if run.state == "awaiting_human":
        return "a person has to decide"
    cycle = f" (cycle {run.number})" if run.number and run.state in SPEAKING else ""
    return f"{run.state}{cycle}"
