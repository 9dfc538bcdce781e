"""One review by a run of Pythia's program: ordered, isolated, judged, tried again, answered.

Each step is decided from the ledger alone, so the next command continues where one was killed:

- no run at the checkpoint event, or all of them lost: the reviewer's program is run
  (``tripod.agents.jobs``);
- it ended, and its answer holds against the template: it is posted, in one transaction with
  ``pythia.assessed``, the event ``assessment-posted``, and the ack of the checkpoint event;
- it ended otherwise: it is run once more, and told what was wrong (unless that answer came of a
  run that could have read the chat, and this one cannot);
- that ended otherwise too, or it was lost twice: ``pythia.failed``; the event stays pending.

Several commands at one event wait for the same run, and one of them posts. While the program runs,
Pythia's handle claims the event (``tripod.bus.reader``), so that no other consumer takes it.

Source: design sections 7 and 8; spec nbs-compat C6, C10; kernel sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple, cast

from tripod.agents import jobs
from tripod.agents.isolation import Isolated
from tripod.agents.jobs import Attempt, Job, RunHooks, recorded
from tripod.agents.spec import SpawnResult, SpawnSpec
from tripod.bus.events import claim_on, settings, take_event
from tripod.chat.writer import channel_name, live_span, say_in
from tripod.errors import RefusedError
from tripod.ledger import Draft
from tripod.ledger.ids import fresh_ids
from tripod.ledger.kinds.agents import DELIVERED
from tripod.ledger.kinds.bus import ACKED, CLAIMED, RELEASED
from tripod.ledger.kinds.chat import CREATED
from tripod.ledger.kinds.pythia import ASSESSED, FAILED, ISOLATED, Confidence
from tripod.projections import CHAT
from tripod.projections.chat.format import valid_text
from tripod.projections.pythia.format import Judged, judge_review
from tripod.pythia.checkpoints import Point, Snapshot, pending
from tripod.pythia.folder import Folder, keep_transcripts, transcripts_in
from tripod.team.act import Act, draft_event
from tripod.team.team import Team

HANDLE = "pythia"
ROLE = "pythia"
TRIES = 2  # answers of one review: the second is told what was wrong with the first
MAX_LOST = 2  # how often a program is ordered that was killed with who ran it
_SPARE_S = 60  # seconds that the claim lasts longer than the program may run
_MOST_S = 2**32
_SHOWN = 10  # problems of one answer that are kept
_LONG = 300  # characters of each


@dataclass(frozen=True, slots=True)
class Order:
    """How the reviewer's program is run. ``spec`` has all but the prompt; ``place`` the isolation.

    ``hidden`` are names of what does not exist for the program, ``texts`` the files that its
    command line names, ``transcripts`` the folder of its transcripts within its home ('' for none),
    ``lent`` paths that it sees as they lie on the disk, each with why.
    """

    spec: SpawnSpec
    place: Isolated
    hidden: tuple[str, ...]
    prompt: str
    actor: str
    texts: tuple[bytes, ...] = ()
    lends: tuple[str, ...] = ()
    config: str | None = None
    transcripts: str = ""
    lent: tuple[tuple[str, str], ...] = ()


class Stand(NamedTuple):
    """How a review stands: ``answer`` is the entry of its answer, ``failed`` of its last failure.

    ``first`` is the attempt that would be next, ``tries`` the runs that ended since the failure,
    ``problems`` of the newest of them, ``lost`` whether it was lost too often to go on.
    ``good`` is the newest of them if its answer holds, with its text.
    """

    answer: int | None
    failed: int
    first: int
    tries: list[Attempt]
    problems: list[str]
    lost: bool
    good: tuple[Attempt, str, Judged] | None


def judge(text: str, point: Point, log: Snapshot) -> Judged:
    """Hold an assessment against what was asked, and against what a chat can hold."""
    judged = judge_review(text, point.asked, log.ids)
    problem = valid_text(text)
    if problem is not None:
        judged = judged._replace(problems=[*judged.problems, problem])
    return judged._replace(problems=[one[:_LONG] for one in judged.problems[:_SHOWN]])


def stand_of(team: Team, point: Point, log: Snapshot) -> Stand:
    """How a review stands, from the ledger alone."""
    db = team.store.db
    row = db.execute("SELECT seq FROM assessments WHERE event = ?", (point.event,)).fetchone()
    failed = _failed(team, point)
    runs = [
        Attempt(*row)
        for row in db.execute(
            "SELECT spawn, role, subject, attempt, state, seq FROM agents"
            " WHERE role = ? AND subject = ? ORDER BY attempt",
            (ROLE, str(point.event)),
        )
    ]
    tries = [run for run in runs if run.seq > failed and run.state == "ended"]
    done = [run.attempt for run in runs if run.seq < failed or run.state == "ended"]
    first = 1 + max(done, default=0)
    lost = sum(run.state == "abandoned" for run in runs if run.attempt >= first)
    problems: list[str] = []
    good = None
    if tries and row is None:
        result = recorded(team, tries[-1])
        judged = judge(result.text, point, log)
        problems = judged.problems if result.status == "ok" else [result.problem[:_LONG]]
        good = None if problems else (tries[-1], result.text, judged)
    answer = None if row is None else int(row[0])
    return Stand(answer, failed, first, tries, problems, lost >= MAX_LOST, good)


def _failed(team: Team, point: Point) -> int:
    row = team.store.db.execute(
        "SELECT coalesce(max(seq), -1) FROM failures WHERE event = ?", (point.event,)
    ).fetchone()
    return int(row[0])


# Running ---------------------------------------------------------------------------------------


async def review(team: Team, point: Point, log: Snapshot, order: Order) -> Stand:
    """Have a checkpoint event answered; give how it stands then: answered, or failed anew.

    Being cancelled ends the reviewer's program, and records that.

    Raises:
        RefusedError: somebody else has the event, or it is settled.
        LedgerError: nothing could be recorded.
    """
    before = _failed(team, point)
    while True:
        team.refresh()
        stand = stand_of(team, point, log)
        if stand.answer is not None or stand.failed != before:
            return stand
        if stand.good is not None:
            run, text, judged = stand.good
            post(team, point, text, judged, spawn=run.spawn)
        elif len(stand.tries) >= TRIES or stand.lost:
            _give_up(team, point, stand)
        else:
            told = Reviewing(team, point, order)
            job = _job(team, point, log, order, stand)
            await jobs.run(team, job, first=stand.first, max_attempts=MAX_LOST, told=told)


def tidy(team: Team) -> None:
    """Remove the folders of runs that are over."""
    jobs.sweep(team)
    Folder.sweep(team)


def _job(team: Team, point: Point, log: Snapshot, order: Order, stand: Stand) -> Job:
    prompt = order.prompt
    if stand.problems and (order.place.level == "folder" or _was_apart(team, stand.tries[-1])):
        wrong = "\n".join(f"- {problem}" for problem in stand.problems)
        prompt += f"\nYour answer before this one was refused:\n\n{wrong}\n"
    given = f"{prompt}\nThe decision log:\n\n{log.text}".encode()

    def spec(number: int) -> SpawnSpec:
        at = Folder.path(team, point.event, number)
        # The order was made for a folder without a number: each attempt has one of its own.
        argv = tuple(word.replace(Folder.ANY, at) for word in order.spec.argv)
        env = {name: text.replace(Folder.ANY, at) for name, text in order.spec.set_env.items()}
        cwd = order.place.cwd.replace(Folder.ANY, at)
        return replace(order.spec, argv=argv, set_env=env, cwd=cwd, stdin=given)

    return Job(ROLE, str(point.event), spec, log.sources, order.actor)


def _was_apart(team: Team, run: Attempt) -> bool:
    """Whether a run could not read the chat: what was wrong with its answer quotes that answer."""
    sql = "SELECT level FROM isolations WHERE spawn = ?"
    row = team.store.db.execute(sql, (run.spawn,)).fetchone()
    return row is not None and row[0] == "namespace"


class Reviewing(RunHooks):
    """What a review run means for the team: its event is claimed, its isolation recorded."""

    def __init__(self, team: Team, point: Point, order: Order) -> None:
        self.team = team
        self.point = point
        self.order = order

    def requested(self, act: Act, run: Attempt) -> tuple[int, ...]:
        """Make the folder of the run, and claim the event."""
        point, order = self.point, self.order
        _check_free(self.team, act, point)
        claim = claim_on(self.team, point.event)
        timeout = order.spec.timeout_s
        lease = _MOST_S if timeout is None else round(timeout) + _SPARE_S
        claimed = CLAIMED.draft(
            {
                "name": point.name,
                "event": point.event,
                "by": HANDLE,
                "until": act.now_us + lease * 1_000_000,
                "attempt": 1 if claim is None else claim.attempt + 1,
            }
        )
        place = order.place
        isolated = ISOLATED.draft(
            {
                "spawn": run.spawn,
                "level": place.level,
                "hidden": list(order.hidden),
                "problem": place.problem,
                "bwrap": place.bwrap and {"path": place.bwrap[0], "sha256": place.bwrap[1]},
            }
        )
        texts = [
            DELIVERED.draft(
                {
                    "spawn": run.spawn,
                    "channel": "file",
                    "content": data,
                    "sha256": sha256(data).hexdigest(),
                    "sources": [],
                }
            )
            for data in order.texts
        ]
        act.append([claimed, isolated, *texts])
        folder = Folder(Folder.path(self.team, point.event, run.attempt))
        folder.make(config=order.config is not None, lends=order.lends)
        return ()

    def ended(self, act: Act, run: Attempt, result: SpawnResult) -> None:
        """Store what the program left in its own folder."""
        if result.left:
            keep_transcripts(act, transcripts_in(result.left), run.spawn)
        elif self.order.transcripts:
            folder = Folder(Folder.path(self.team, self.point.event, run.attempt))
            keep_transcripts(act, folder.transcripts(self.order.transcripts), run.spawn)


def _check_free(team: Team, act: Act, point: Point) -> None:
    """Refuse an event that needs no answer any more, or that another consumer has."""
    if point.event not in pending(team):
        raise RefusedError(
            f"{point.name} is settled: an assessment in a chat answers it, or it was acknowledged "
            "before the ledger began (`tripod pythia run --manual` has what is new reviewed)"
        )
    claim = claim_on(team, point.event)
    if claim is not None and claim.until_us > act.now_us and claim.holder != HANDLE:
        raise RefusedError(
            f"{point.name} {claim.told}: it is theirs to have reviewed, or to release"
        )


# Ending ----------------------------------------------------------------------------------------


def post(
    team: Team,
    point: Point,
    text: str,
    judged: Judged,
    *,
    spawn: str | None = None,
    handle: str = HANDLE,
) -> bool:
    """Answer a checkpoint event: all in one transaction. False: somebody did before.

    Args:
        team: the team that is answered.
        point: the checkpoint event.
        text: the assessment, whole; it was judged, and has no problem.
        judged: what was found in it.
        spawn: the run that it came from; None: from outside.
        handle: who says it.

    Raises:
        BadArgumentError, RefusedError: the channel of the configuration cannot be written to.
    """
    channel = channel_name(settings(team)["pythia_channel"])
    with team.act(locks=[f"{CHAT.folder}/{channel}.chat"], by=handle) as act:
        db = act.transaction.tables
        if db.execute("SELECT 1 FROM assessments WHERE event = ?", (point.event,)).fetchone():
            return False
        if live_span(act, channel) is None:
            act.append([CREATED.draft({"channel": channel}, handle)])
        message = say_in(act, channel, handle, text)
        asked = point.asked
        assessed = _assessed(point, spawn, judged, text, message.seq)._replace(
            id=fresh_ids(1)[0][0], actor=handle
        )
        told = (
            f"Assessment of {asked} posted to {channel}.chat, message {message.number}. "
            f"Confidence: {judged.confidence}."
        )
        event = draft_event(act, HANDLE, "assessment-posted", "normal", told, cause=assessed)
        act.append([assessed, event])
        waits = "SELECT 1 FROM events WHERE seq = ? AND acked IS NULL"
        if db.execute(waits, (point.event,)).fetchone():
            if take_event(team, act, point.event, point.name):
                act.append([ACKED.draft({"name": point.name}, handle, cause=assessed.id)])
            else:  # another program did so meanwhile; the assessment answers it all the same
                from tripod.projections.bus.intake import moved

                act.append(moved(team.source, team.disk, [point.name]))
    return True


def _assessed(point: Point, spawn: str | None, judged: Judged, text: str, message: int) -> Draft:
    data = text.encode()
    return ASSESSED.draft(
        {
            "event": point.event,
            "spawn": spawn,
            "origin": "recorded" if spawn is None else "run",
            "first": point.asked.first,
            "last": point.asked.last,
            "decisions": point.asked.decisions,
            "confidence": cast("Confidence", judged.confidence),
            "cited": list(judged.cited),
            "content": data,
            "sha256": sha256(data).hexdigest(),
            "message": message,
        }
    )


def _give_up(team: Team, point: Point, stand: Stand) -> None:
    """Record that no run gave an assessment, if nobody did, or found one, meanwhile."""
    with team.act(by=HANDLE) as act:
        db = act.transaction.tables
        answered = "SELECT 1 FROM assessments WHERE event = ?"
        if _failed(team, point) != stand.failed or db.execute(answered, (point.event,)).fetchone():
            return
        runs = db.execute(
            "SELECT spawn FROM agents WHERE role = ? AND subject = ? AND seq > ? ORDER BY attempt",
            (ROLE, str(point.event), stand.failed),
        ).fetchall()
        lost = ["the reviewer's program was killed together with its caller, each time"]
        problems = lost if stand.lost else stand.problems
        spawns = [spawn for (spawn,) in runs]
        failed = FAILED.draft({"event": point.event, "spawns": spawns, "problems": list(problems)})
        act.append([failed])
        claim = claim_on(team, point.event)
        if claim is not None and claim.holder == HANDLE and claim.until_us > act.now_us:
            act.append([RELEASED.draft({"name": point.name, "event": point.event}, HANDLE)])
