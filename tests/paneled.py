"""Nova runs without processes: a team in memory, panels of every temper, and what must hold."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple, cast
from unittest import mock

from memory_store import MemoryStore
from sample_ledger import opening

from tripod.agents import jobs
from tripod.agents.folder import IsolatedHooks, Order
from tripod.agents.isolation import Isolated
from tripod.agents.jobs import Attempt, Job, JobHooks
from tripod.agents.spec import SpawnResult, SpawnSpec, described_spec
from tripod.agents.spec import spec_spawn_id as spawn_id
from tripod.errors import TripodError
from tripod.ledger import Draft, Entry
from tripod.ledger.kinds import agents as agent_kinds
from tripod.ledger.kinds import nova as kinds
from tripod.ledger.kinds.base import Kind
from tripod.ledger.kinds.models import model_of
from tripod.nova import runner
from tripod.nova.runner import NovaLimits, load_personas, nova_run, settle_nova
from tripod.projections.engine import create_tables, fold_into, source_of
from tripod.projections.nova.answers import Persona
from tripod.projections.nova.run import NovaRun
from tripod.projections.nova.tables import NOVA, fold_nova_run, nova_entries_of
from tripod.projections.projection import Source
from tripod.projections.workers.answers import read_spec_answer
from tripod.team.team import Team

__all__ = [
    "KINDS",
    "ORDER",
    "STYLES",
    "DiedError",
    "Driver",
    "Panel",
    "PaperTeam",
    "Reply",
    "carry_on",
    "check_run",
    "moderate",
    "paper",
    "play",
    "rows_of",
    "told",
    "untold",
]  # fmt: skip

KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in kinds.KINDS}
DERIVED = {
    "nova.converged", "nova.gate.decided", "nova.critique.decided", "nova.escalated",
    "nova.finalized",
}  # fmt: skip
ORDER = Order(
    spec=SpawnSpec(argv=("panel",)),
    place=Isolated(("panel",), "/", {}, "folder"),
    hidden=(),
    actor="ann",
    texts=(),
    lends=(),
    config=None,
    transcripts="",
    lent=(),
)
"""The order of a program that never runs."""

CANCELLED = "it was ended because it was told to"


class DiedError(BaseException):
    """The coordinator is killed here: no handler of its own may stop this."""


class PaperAct:
    """What an act of Nova's needs of one."""

    def __init__(self, team: "PaperTeam") -> None:
        self.transaction = team.store
        self.source = team.source
        self.now_us = team.now_us

    def append(self, drafts: Sequence[Draft]) -> list[Entry]:
        return self.transaction.append(drafts)


class PaperTeam:
    """A team in memory: the ledger and its tables, and no files."""

    def __init__(self) -> None:
        self.store = MemoryStore(fold=fold_into)
        create_tables(self.store.db)
        self.source = source_of(self.store)
        self.store.append([opening()])
        self.root = "/nowhere"
        self.now_us = 1_600_000_000_000_000

    def refresh(self) -> None:
        """Nothing else writes here."""

    @contextmanager
    def act(self, by: str = "") -> Iterator[PaperAct]:
        del by
        with self.store.transaction():
            yield PaperAct(self)

    def open(self, question: str = "why?", limits: NovaLimits | None = None) -> str:
        """Begin a run with the personas that ship with us."""
        return runner.open_nova(self.team, question, personas(), limits or NovaLimits(), "ann")

    @property
    def team(self) -> Team:
        """This, as far as Nova uses one."""
        return cast("Team", self)


@cache
def personas() -> list[Persona]:
    return load_personas()


# What personas answer --------------------------------------------------------------------------


class Reply(NamedTuple):
    """How one run of a program ends, and what it prints.

    ``end`` is ok, nonzero, timeout, told (it was cancelled), signal or lost (with its caller).
    """

    text: str = ""
    end: str = "ok"
    cost: str | None = None


def told(know: object, uncertainty: object) -> dict[str, Any]:
    return {"epistemic": {"know": know, "uncertainty": uncertainty}}


def untold(role: str, **more: Any) -> str:
    """An answer of a role, without an epistemic state unless it is given."""
    least: dict[str, dict[str, Any]] = {
        "unpack": {},
        "expert": {"analysis": "it depends"},
        "synthesis": {"proposal": "so be it"},
        "critique": {"issues": []},
        "revision": {"proposal": "better so"},
        "final": {"decision": "so be it"},
    }
    return json.dumps(least[role] | more)


Panel = Callable[[str, str, int, int], Reply]
"""Gives the reply of a role, a persona, in a cycle, at an attempt."""

MINOR, CRITICAL = ({"severity": one, "text": "why?"} for one in ("minor", "critical"))
GARBAGE = (
    "", "{", "---\n---\n", "I think so.", '{"issues": "none"}', "\x00\x01\x02", "# Decision\n\nNo.",
    '{"proposal": "x", "epistemic": {"know": NaN, "uncertainty": 1e400}}', '{"persona": "\\ud800"}',
    "---\nknow: 2\nuncertainty: -1\n---\nYes.", "x" * 20_000,
    untold("unpack", **told(0.1, 0.9), considerations=["\u061c\u200b\U000e0041\u2028## Cycle 7"]),
)  # fmt: skip


def moderate(draw: random.Random, role: str, **more: Any) -> str:
    """An answer of a role as a sensible persona gives it."""
    if role in ("unpack", "synthesis", "final"):
        more |= told(draw.randint(0, 10_000) / 10_000, draw.randint(0, 7_000) / 10_000)
    if role == "unpack":
        names = ["security", "performance", "Architecture", "integration", "nobody", "dce", "cae"]
        more["experts"] = draw.sample(names, draw.randint(0, 4))
    if role == "critique":
        more["issues"] = draw.choices([MINOR, CRITICAL], [3, 1], k=draw.randint(0, 2))
    if role == "synthesis":
        more["dissenters"] = draw.sample(["security", "performance"], draw.randint(0, 2))
    if role == "final":
        more["confidence"] = draw.choice([0.92, "0.5", 1])
    if draw.random() < 0.2:
        more |= {"persona": draw.choice(["dce", "x\n# y"]), "turn": draw.choice([1, "9", None])}
    return untold(role, **more)


def panel_of(style: str, draw: random.Random) -> Panel:
    """A panel of one temper; each word of ``STYLES`` is one."""

    def reply(role: str, persona: str, cycle: int, attempt: int) -> Reply:
        del persona, cycle
        chance = draw.random()
        cost = draw.choice([None, "0.1000", "0.0001"])
        if style == "hostile":
            if role == "critique":
                return Reply(untold(role, issues=[CRITICAL]), cost=cost)
            if role == "synthesis":
                return Reply(untold(role, **told(0.9, draw.choice([0.3, 0.5, 0.9]))))
            if chance < 0.2:
                return Reply(untold(role, **told("nan", -1)), cost="999999999.0000")
        elif style == "silent" and chance < 0.6:
            return Reply(end=draw.choice(["ok", "nonzero", "timeout", "lost", "signal"]))
        elif style == "garbage" and chance < 0.7:
            return Reply(draw.choice(GARBAGE), cost=cost)
        elif style == "flaky" and (chance < 0.5 if attempt % 2 else chance < 0.05):
            return Reply(end=draw.choice(["lost", "told", "signal", "nonzero"]), cost=cost)
        elif style == "flat" and role == "synthesis":
            return Reply(untold(role, **told(0.5, 0.5)))
        elif style == "dear":
            cost = draw.choice(["0.4000", "1.0000"])
        elif style == "agreeing":
            more = told(0.8, 0.2) if role in ("unpack", "synthesis", "final") else {}
            return Reply(untold(role, **more), cost=cost)
        return Reply(moderate(draw, role), cost=cost)

    return reply


STYLES = ("agreeing", "moderate", "hostile", "silent", "garbage", "flaky", "flat", "dear")


# Running them ----------------------------------------------------------------------------------


class Driver:
    """Runs of agents that are drafts alone; takes the place of ``tripod.agents.jobs.run``.

    ``dies`` says at each step whether the coordinator is killed there. ``between`` is called before
    each program begins. ``orders`` counts how often each turn's program was ordered.
    """

    def __init__(
        self,
        panel: Panel,
        dies: Callable[[str], bool] = lambda _: False,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self.panel, self.dies, self.between = panel, dies, between
        self.orders: Counter[str] = Counter()
        self.prompts: dict[str, bytes] = {}

    async def run(
        self,
        team: Team,
        job: Job,
        *,
        first: int = 1,
        max_attempts: int = 2,
        hooks: JobHooks | None = None,
    ) -> tuple[Attempt, SpawnResult]:
        """As the real one: adopt what runs, take what has ended, try again what is lost."""
        assert hooks is not None
        while True:
            last = jobs.newest(team.store.db, job.role, job.subject)
            if last is None or last.attempt < first:
                self._begin(team, job, first, hooks)
            elif last.state == "abandoned" and last.attempt < first + max_attempts - 1:
                self._begin(team, job, last.attempt + 1, hooks)
            elif last.state in ("ended", "abandoned"):
                return last, jobs.recorded(team, last)
            else:
                self._end(team, last)
            await asyncio.sleep(0)

    def _step(self, name: str) -> None:
        if self.dies(name):
            raise DiedError(name)

    def _begin(self, team: Team, job: Job, number: int, hooks: JobHooks) -> None:
        self.between()
        self._step("before the request")
        spec = job.spec(number)
        order = described_spec(spec)
        spawn = spawn_id(job.role, job.subject, number, order)
        ordered = Attempt(spawn, job.role, job.subject, number, "requested", -1)
        self.prompts[spawn] = spec.stdin
        with team.act() as act:
            sources = (*job.sources, *hooks.requested(act, ordered))
            act.append(
                jobs._requested_drafts(job, ordered, order, spec.stdin, sources, key="0" * 64)
            )
        self.orders[job.subject] += 1
        self._step("behind the request")
        with team.act() as act:
            act.append(
                [agent_kinds.STARTED.draft(
                    {"spawn": spawn, "pid": 7, "start_time": 7, "argv_sha256": "0" * 64}
                )]
            )  # fmt: skip
        self._step("behind the start")

    def _end(self, team: Team, last: Attempt) -> None:
        role, persona = last.subject.rpartition("/")[2].split("-", 2)[1:]
        cycle = int(last.subject.rpartition("/")[2].partition("-")[0])
        reply = self.panel(role, persona, cycle, last.attempt)
        with team.act() as act:
            if reply.end == "lost" or last.state == "requested":
                draft = agent_kinds.ABANDONED.draft({"spawn": last.spawn, "reason": "lost"})
            else:
                draft = jobs._ended_draft(last, result_of(reply), jobs.order_of(team, last))
            act.append([draft])
        self._step("behind the end")

    def end_agents(self, team: Team, running: Sequence[Attempt]) -> None:
        """End what runs for a run that was cancelled, as the wrappers do."""
        with team.act() as act:
            for one in running:
                result = result_of(Reply(end="told"))
                act.append([jobs._ended_draft(one, result, jobs.order_of(team, one))])


def result_of(reply: Reply) -> SpawnResult:
    """How the spool tells such an end."""
    stdout = reply.text.encode("utf-8", "replace")
    answer = replace(read_spec_answer("text", stdout), cost=reply.cost)
    ends: dict[str, dict[str, Any]] = {
        "ok": {"status": answer.status, "problem": answer.problem, "exit_code": 0},
        "nonzero": {"status": "nonzero", "problem": "it ended with exit code 3", "exit_code": 3},
        "timeout": {"status": "timeout", "problem": "its time was over", "signal": 15},
        "told": {"status": "killed", "problem": CANCELLED, "signal": 15},
        "signal": {"status": "killed", "problem": "it was killed by signal 9", "signal": 9},
    }
    return SpawnResult(answer=answer, stdout=stdout, **ends[reply.end])


@contextmanager
def paper(driver: Driver) -> Iterator[PaperTeam]:
    """A team in memory whose agents are run by ``driver``."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(jobs, "run", driver.run))
        stack.enter_context(mock.patch.object(jobs, "sweep"))
        stack.enter_context(mock.patch.object(runner, "sweep_run_folders"))
        stack.enter_context(mock.patch.object(runner, "_end_agents", driver.end_agents))
        stack.enter_context(mock.patch.object(IsolatedHooks, "requested", return_value=()))
        team = PaperTeam()
        stack.callback(team.store.close)
        yield team


def carry_on(team: PaperTeam, name: str) -> NovaRun | None:
    """One command at a run; None where it was killed."""
    try:
        return asyncio.run(runner.advance(team.team, name, lambda _: ORDER))
    except DiedError:
        return None


# What must hold --------------------------------------------------------------------------------


def rows_of(source: Source, name: str) -> list[tuple[int, str, dict[str, Any]]]:
    """The entries of a run."""
    rows = nova_entries_of(source, name)
    bodies = source.each_body([row.seq for row in rows])
    return [(row.seq, row.kind, body) for row, body in zip(rows, bodies, strict=True)]


def check_run(team: PaperTeam, name: str, draw: random.Random) -> NovaRun:
    """A run that is over: all that holds of every run."""
    source = team.source
    run = nova_run(source, name)
    rows = rows_of(source, name)
    assert run.finalized is not None
    assert run.state in ("done", "failed", "cancelled"), run.state
    assert [turn.number for turn in run.turns] == list(range(1, len(run.turns) + 1))
    grants = sum(one.choice == "redirect" for one in run.human)
    assert run.number <= int(run.opening.config["rounds"]) + grants
    assert [one.number for one in run.cycles] == list(range(1, run.number + 1))
    for seq, kind, body in rows:
        entry = team.store.entry(seq)
        assert entry is not None
        model_of(KINDS[kind]).model_validate(body)
        assert entry.stream == f"nova/{name}"
    keys = [(t.cycle, t.role, t.persona) for t in run.turns]
    assert len(set(keys)) == len(keys), "a turn was taken twice"
    assert len({turn.spawn for turn in run.turns}) == len(keys), "a spawn spoke twice"
    check_recomputed(source, rows)
    check_folds(source, run, draw)
    check_files(team, name)
    size = team.store.size
    assert settle_nova(team.team, name) == run
    assert team.store.size == size, "settling again appended something"
    check_spawns(team, run)
    return run


def check_recomputed(source: Source, rows: Sequence[tuple[int, str, dict[str, Any]]]) -> None:
    """Each entry was due when it was recorded, and no other."""
    (first, _, opened), *rest = rows
    run = NovaRun.begun(first, opened, source.content)
    for seq, kind, body in rest:
        due = run.due_entry()
        cancelled = kind == "nova.finalized" and body["outcome"] == "cancelled"
        if kind in DERIVED and not cancelled:
            assert due is not None, (seq, kind)
            assert KINDS[kind].draft(due.body).body == body
            assert due.kind == kind
        elif kind.startswith("nova.turn."):
            turn = next(run.due_turns())
            assert (turn.role, turn.persona, turn.cycle) == (
                body["role"], body["persona"], body["cycle"],
            )  # fmt: skip
        elif kind == "human.decided":
            assert run.state == "awaiting_human"
            assert body["escalated"] == run.escalated
        else:
            assert cancelled or kind == "checkpoint.named"
        run.apply(seq, kind, body, source.content)


def check_folds(source: Source, run: NovaRun, draw: random.Random) -> None:
    """A fold of a prefix goes on with the rest to the same run."""
    rows = nova_entries_of(source, run.opening.run)
    cut = draw.randint(1, len(rows))
    first = fold_nova_run(source, rows[:cut])
    assert first is not None
    kept = deepcopy(first)
    for seq, kind, actor in rows[cut:]:
        first.apply(seq, kind, source.body(seq), source.content, actor)
    assert first == run
    again = fold_nova_run(source, rows[:cut])
    assert again == kept


def check_files(team: PaperTeam, name: str) -> None:
    """Files are the same bytes from tables that are folded anew."""
    anew = MemoryStore(fold=fold_into)
    try:
        create_tables(anew.db)
        for entry in team.store.read():
            fold_into(anew.db, [entry], team.store.blob)
        other = team.source._replace(db=anew.db)
        paths = list(NOVA.paths(team.source))
        assert paths == list(NOVA.paths(other))
        for path in (one for one in paths if one.startswith(f"nova/{name}/")):
            file = NOVA.render(team.source, path)
            assert file is not None
            assert file == NOVA.render(other, path)
            shown = file.data.decode()
            assert shown.replace("\n", "").replace("\t", "").isprintable()
            check_headings(path, shown, nova_run(team.source, name))
    finally:
        anew.close()


def check_headings(path: str, shown: str, run: NovaRun) -> None:
    """No heading stands there that a persona wrote."""
    if not path.endswith(".md"):
        return
    lines = [line for line in shown.splitlines() if line.lstrip().startswith("#")]
    wanted = [f"## {run.opening.run}"]
    if path.endswith("transcript.md"):
        cycles = [f"## Cycle {n}" for n in {turn.cycle for turn in run.turns if turn.cycle}]
        turns = [f"### Turn {t.number}: {t.persona}, {t.role}" for t in run.turns]
        wanted = [f"# Nova run {run.opening.run}", *cycles, *turns]
    assert sorted(lines) == sorted(wanted)


def check_spawns(team: PaperTeam, run: NovaRun) -> None:
    """No run of an agent is lost or paid twice."""
    sql = "SELECT spawn, state, ended FROM agents WHERE subject > ? AND subject < ?"
    name = run.opening.run
    agents = team.store.db.execute(sql, (f"{name}/", f"{name}0")).fetchall()
    assert {state for _, state, _ in agents} <= {"ended", "abandoned"}
    assert run.finalized is not None
    if run.finalized["outcome"] == "cancelled":  # what ran then is paid for, and counted nowhere
        assert not sequel(team, run)
        return
    bodies = [team.source.body(seq) for _, state, seq in agents if state == "ended"]
    spent = sum((Decimal(body.get("cost") or 0) for body in bodies), Decimal("0.0000"))
    assert run.spent == spent


def sequel(team: PaperTeam, run: NovaRun) -> list[int]:
    """Programs that were ordered for a run when it was over."""
    rows = nova_entries_of(team.source, run.opening.run)
    end = next(row.seq for row in rows if row.kind == "nova.finalized")
    return [
        entry.seq
        for entry in team.store.read(end)
        if entry.kind == "agent.requested"
        and entry.data["subject"].startswith(f"{run.opening.run}/")
    ]


# Random runs -----------------------------------------------------------------------------------


def play(draw: random.Random) -> tuple[str, NovaRun]:
    """One random run to its end; what must hold is checked."""
    style = draw.choice(STYLES)
    limits = NovaLimits(
        threshold=draw.choice(["0.35", "0", "1", "0.5"]),
        epsilon=draw.choice(["0.05", "0", "1"]),
        window=draw.randint(1, 3),
        rounds=draw.randint(1, 5),
        concurrency=draw.randint(1, 4),
        turns=draw.choice([None, None, 1, 3, 7]),
        cost="0.5000" if style == "dear" else draw.choice([None, None, "2"]),
    )
    deadly, ends = draw.choice([0, 0, 0.02, 0.1]), draw.choice([0, 0, 0, 0.02])
    team: PaperTeam
    name = ""

    def between() -> None:
        if draw.random() < ends:
            try:
                runner.cancel_nova(team.team, name, "enough", "ann")
            except TripodError:
                assert nova_run(team.source, name).finalized is not None

    driver = Driver(panel_of(style, draw), lambda _: draw.random() < deadly, between)
    with paper(driver) as team:
        name = team.open("# Why?\n\n## Cycle 9", limits)
        for count in range(60):
            run = carry_on(team, name)
            if run is None:
                continue
            if run.finalized is not None:
                break
            assert run.state == "awaiting_human"
            assert run.escalated is not None
            # A turn has two answers; what was lost or told to end is tried again.
            assert max(driver.orders.values(), default=0) <= 60
            choices = ["accept", "redirect", "close"] if count < 40 else ["close"]
            runner.decide_nova(team.team, name, draw.choice(choices), "## look", "ann")
        return style, check_run(team, name, draw)
