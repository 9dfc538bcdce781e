"""Reviews: what is due, one review by Pythia's program, an assessment from outside, and reading.

One checkpoint event gives exactly one assessment. Each step of a review is decided from the ledger
alone, so the next command continues where one was killed:

- no run at the checkpoint event, or all of them lost: the reviewer's program is run
  (``tripod.agents.jobs``);
- it ended, and its answer holds against the template: it is posted, in one transaction with
  ``pythia.assessed``, the event ``assessment-posted``, and the ack of the checkpoint event;
- it ended otherwise: it is run once more, and told what was wrong (unless that answer came of a
  run that could have read the chat, and this one cannot);
- that ended otherwise too, or it was lost twice: ``pythia.failed``; the event stays pending.

Several commands at one event wait for the same run, and one of them posts. Source: seeds
tripod-architecture; design sections 7 and 8; spec nbs-compat C6, C10; kernel sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple, cast

from tripod.agents import jobs
from tripod.agents.folder import (
    IsolatedHooks,
    IsolatedProgram,
    Order,
    isolated_job,
    order_isolated,
    sweep_run_folders,
)
from tripod.agents.jobs import Attempt, Job, job_attempts, recorded
from tripod.bus.events import NOBODY, claim_on_event, take_event
from tripod.chat.writer import channel_name, live_span, say_in
from tripod.errors import NotFoundError, RefusedError
from tripod.ledger import Draft
from tripod.ledger.ids import fresh_ids
from tripod.ledger.kinds.bus import ACKED, CLAIMED, RELEASED
from tripod.ledger.kinds.chat import CREATED
from tripod.ledger.kinds.pythia import ASSESSED, FAILED, ISOLATED, Confidence
from tripod.projections import CHAT
from tripod.projections.chat.format import valid_chat_text
from tripod.projections.pythia.format import INSTRUCTIONS, Judged, judge_review
from tripod.pythia.checkpoints import (
    Point,
    Snapshot,
    ask,
    checkpoint_named,
    checkpoint_of,
    checkpoint_snapshot,
    pending_checkpoints,
)
from tripod.team.act import Act, draft_event_for_act, settings_of_queue
from tripod.team.team import Team

ReviewerProgram = IsolatedProgram
"""The reviewer's program, as callers know it."""

PROFILE = "TRIPOD_PYTHIA_PROFILE"  # the variable that names the default profile; else `pythia`
HANDLE = "pythia"
ROLE = "pythia"
TRIES = 2  # answers of one review: the second is told what was wrong with the first
MAX_LOST = 2  # how often a program is ordered that was killed with who ran it
_SPARE_S = 60  # seconds that the claim lasts longer than the program may run
_MOST_S = 2**32
_SHOWN = 10  # problems of one answer that are kept
_LONG = 300  # characters of each
_SELF = "tripod"  # who asks for a review, where nobody says who it is


class PendingReview(NamedTuple):
    """A checkpoint event that nobody answered: its name, time in µs, and what it asks for.

    ``state`` is waiting, running, or failed (a run gave no assessment); ``claimed`` is the other
    consumer that has it. With ``problem`` it cannot be answered as it stands. ``acknowledged``: it
    was taken out of the queue, which is no review.
    """

    name: str
    us: int
    first: str | None
    last: str | None
    decisions: int
    state: str
    claimed: str | None
    problem: str | None
    acknowledged: bool


class PostedAssessment(NamedTuple):
    """An assessment that was posted: its event, decisions, text, and where it stands.

    ``level`` is how far the run was isolated; None where it came from outside (``recorded``).
    """

    event: str
    first: str
    last: str
    decisions: int
    confidence: str
    cited: list[str]
    origin: str
    level: str | None
    channel: str
    message: int
    text: str


class ReviewOutcome(NamedTuple):
    """The result of a run: an answer, or the problems of the last try. ``stderr`` is its end."""

    event: str
    answer: PostedAssessment | None
    problems: list[str]
    stderr: str = ""


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


# What is due -----------------------------------------------------------------------------------


def due(team: Team, now_us: int) -> list[PendingReview]:
    """The checkpoint events that nobody answered, oldest first; ``now_us`` is the clock."""
    return [_pending_review(team, event, now_us) for event in pending_checkpoints(team)]


def _pending_review(team: Team, event: int, now_us: int) -> PendingReview:
    body = team.source.body(event)
    claim = claim_on_event(team, event, now_us)
    claimed = None if claim is None or claim.holder == HANDLE else claim.holder
    last = jobs.newest(team.store.db, ROLE, str(event))
    state = "waiting"
    if last is not None:
        state = "failed" if _last_failure(team, event) > last.seq else "running"
    sql = "SELECT acked IS NOT NULL FROM events WHERE seq = ?"
    acked = bool(team.store.db.execute(sql, (event,)).fetchone()[0])
    first, stop, count, problem = None, None, 0, None
    try:
        first, stop, count = checkpoint_of(team, event).asked
    except RefusedError as error:
        problem = str(error)
    return PendingReview(
        body["name"], body["us"], first, stop, count, state, claimed, problem, acked
    )


def summon(team: Team, *, actor: str = NOBODY) -> Point | None:
    """Ask for a review of all decisions since the last checkpoint: its event, published first.

    Without new decisions: the newest event that waits for its answer, or None.

    Raises:
        NotFoundError: no decision was logged yet.
    """
    handle = _SELF if actor == NOBODY else actor
    with team.act(by=handle) as act:
        draft = ask(team, act, handle)
        entries = [] if draft is None else act.append([draft])
    waiting = [entry.seq for entry in entries] or pending_checkpoints(team)
    return checkpoint_of(team, waiting[-1]) if waiting else None


def _event_to_review(team: Team, event: str | None, now_us: int) -> Point | None:
    """The event of that name; else the oldest that can be answered, with warnings on the others."""
    if event is not None:
        return checkpoint_named(team, event)
    for seq in pending_checkpoints(team):
        found = _pending_review(team, seq, now_us)
        if found.problem is not None:
            team.warnings.append(found.problem)
        elif found.claimed is not None:
            team.warnings.append(f"{found.name} is claimed by {found.claimed}")
        else:
            return checkpoint_of(team, seq)
    return None


def judge(text: str, point: Point, log: Snapshot) -> Judged:
    """Hold an assessment against what was asked, and against what a chat can hold."""
    judged = judge_review(text, point.asked, log.ids)
    problem = valid_chat_text(text)
    problems = judged.problems if problem is None else [*judged.problems, problem]
    return judged._replace(problems=[one[:_LONG] for one in problems[:_SHOWN]])


def _stand_of(team: Team, point: Point, log: Snapshot) -> Stand:
    """How a review stands, from the ledger alone."""
    answer = _assessment_of(team, point.event)
    failed = _last_failure(team, point.event)
    runs = job_attempts(team.store.db, ROLE, str(point.event))
    tries = [run for run in runs if run.seq > failed and run.state == "ended"]
    done = [run.attempt for run in runs if run.seq < failed or run.state == "ended"]
    first = 1 + max(done, default=0)
    lost = sum(run.state == "abandoned" for run in runs if run.attempt >= first)
    problems: list[str] = []
    good = None
    if tries and answer is None:
        result = recorded(team, tries[-1])
        judged = judge(result.answer.text, point, log)
        problems = judged.problems if result.status == "ok" else [result.problem[:_LONG]]
        good = None if problems else (tries[-1], result.answer.text, judged)
    return Stand(answer, failed, first, tries, problems, lost >= MAX_LOST, good)


def _last_failure(team: Team, event: int) -> int:
    """The entry of the last failed review of an event; -1 if none failed."""
    sql = "SELECT coalesce(max(seq), -1) FROM failures WHERE event = ?"
    return int(team.store.db.execute(sql, (event,)).fetchone()[0])


def _assessment_of(team: Team, event: int) -> int | None:
    """The entry of the assessment that answers a checkpoint event."""
    sql = "SELECT seq FROM assessments WHERE event = ?"
    row = team.store.db.execute(sql, (event,)).fetchone()
    return None if row is None else int(row[0])


def order_reviewer(team: Team, program: IsolatedProgram, actor: str) -> Order:
    """How the reviewer's program is run here; raises as ``order_isolated``."""
    return order_isolated(team, program, actor, PROFILE, "pythia")


# Running the reviewer --------------------------------------------------------------------------


async def run(
    team: Team,
    program: IsolatedProgram,
    now_us: int,
    *,
    event: str | None = None,
    manual: bool = False,
    actor: str = NOBODY,
) -> ReviewOutcome | None:
    """Have a checkpoint event answered by the reviewer's program; None if no event is due.

    The event is the one of the name ``event``, or the oldest. ``manual``: publish an event first,
    for all decisions since the last checkpoint. ``now_us`` is the clock, ``actor`` who wants the
    review. Being cancelled ends the reviewer's program.

    Raises:
        BadArgumentError, NotFoundError: there is no such event, profile or program.
        RefusedError: another consumer has the event, or a namespace is required and missing.
        LedgerError: nothing could be recorded.
    """
    order = order_reviewer(team, program, _SELF if actor == NOBODY else actor)
    if order.place.level == "namespace":
        team.warnings += [f"{path} is lent as it lies there: {why}" for path, why in order.lent]
    jobs.sweep(team)
    sweep_run_folders(team)
    point = summon(team, actor=actor) if manual else _event_to_review(team, event, now_us)
    if point is None:
        return None
    log = checkpoint_snapshot(team, point)
    stand = await review(team, point, log, replace(order, prompt=review_instructions(point)))
    jobs.sweep(team)
    sweep_run_folders(team)
    if stand.answer is not None:
        return ReviewOutcome(point.name, _posted_assessment(team, stand.answer), [])
    body = team.source.body(stand.failed)
    # The last line that the last of its runs wrote to standard error.
    sql = "SELECT ended FROM agents WHERE spawn = ? AND state = 'ended'"
    last = team.store.db.execute(sql, (body["spawns"][-1:] or [None])).fetchone()
    stderr = {} if last is None else team.source.body(last[0])["stderr"]
    data = team.source.content(stderr["content"]) if "content" in stderr else b""
    lines = data.decode("utf-8", "replace").strip().splitlines() or [""]
    return ReviewOutcome(point.name, None, body["problems"], lines[-1][:200])


def review_instructions(point: Point) -> str:
    """The instructions for a checkpoint event, which precede the log."""
    first, last, count = point.asked
    text = INSTRUCTIONS.replace("{first}", first).replace("{last}", last)
    return text.replace("{count}", str(count))


async def review(team: Team, point: Point, log: Snapshot, order: Order) -> Stand:
    """Have a checkpoint event answered; give how it stands then: answered, or failed anew.

    Being cancelled ends the reviewer's program, and records that. Errors are as in ``run``.
    """
    before = _last_failure(team, point.event)
    while True:
        team.refresh()
        stand = _stand_of(team, point, log)
        if stand.answer is not None or stand.failed != before:
            return stand
        if stand.good is not None:
            run, text, judged = stand.good
            post(team, point, text, judged, spawn=run.spawn)
        elif len(stand.tries) >= TRIES or stand.lost:
            _give_up(team, point, stand)
        else:
            hooks = ReviewHooks(team, point, order)
            job = _job(team, point, log, order, stand)
            await jobs.run(team, job, first=stand.first, max_attempts=MAX_LOST, hooks=hooks)


def _job(team: Team, point: Point, log: Snapshot, order: Order, stand: Stand) -> Job:
    prompt = order.prompt
    # The problems of an answer quote it: those of a run that could read the chat stay outside.
    if stand.problems and (
        order.place.level == "folder"
        or _isolation_level(team, stand.tries[-1].spawn) == "namespace"
    ):
        wrong = "\n".join(f"- {problem}" for problem in stand.problems)
        prompt += f"\nYour answer before this one was refused:\n\n{wrong}\n"
    given = f"{prompt}\nThe decision log:\n\n{log.text}".encode()
    return isolated_job(team, ROLE, str(point.event), order, prompt=given, sources=log.sources)


def _isolation_level(team: Team, spawn: str | None) -> str | None:
    sql = "SELECT level FROM isolations WHERE spawn = ?"
    row = team.store.db.execute(sql, (spawn,)).fetchone()
    return None if row is None else str(row[0])


class ReviewHooks(IsolatedHooks):
    """Claims the event of a review run as well."""

    def __init__(self, team: Team, point: Point, order: Order) -> None:
        super().__init__(team, order, ISOLATED)
        self.point = point

    def requested(self, act: Act, run: Attempt) -> tuple[int, ...]:
        """Claim the event (RefusedError: settled, or claimed); then as any isolated run."""
        point, order = self.point, self.order
        if point.event not in pending_checkpoints(self.team):
            raise RefusedError(
                f"{point.name} is settled: an assessment in a chat answers it, or it was "
                "acknowledged before the ledger began (`tripod pythia run --manual` has what is "
                "new reviewed)"
            )
        claim = claim_on_event(self.team, point.event, act.now_us)
        if claim is not None and claim.holder != HANDLE:
            raise RefusedError(
                f"{point.name} {claim.told}: it is theirs to have reviewed, or to release"
            )
        last = claim_on_event(self.team, point.event)
        timeout = order.spec.timeout_s
        lease = _MOST_S if timeout is None else round(timeout) + _SPARE_S
        claimed = CLAIMED.draft(
            {
                "name": point.name,
                "event": point.event,
                "by": HANDLE,
                "until": act.now_us + lease * 1_000_000,
                "attempt": 1 if last is None else last.attempt + 1,
            }
        )
        act.append([claimed])
        return super().requested(act, run)


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
    """Answer a checkpoint event: all in one transaction. False: it was answered before.

    ``text`` is the whole assessment, in which ``judged`` found no problem, and ``handle`` its
    author. ``spawn`` is the run that it came from; None: it came from outside.
    """
    channel = channel_name(settings_of_queue(team)["pythia_channel"])
    with team.act(locks=[f"{CHAT.folder}/{channel}.chat"], by=handle) as act:
        if _assessment_of(team, point.event) is not None:
            return False
        if live_span(act, channel) is None:
            act.append([CREATED.draft({"channel": channel}, handle)])
        message = say_in(act, channel, handle, text)
        assessed = _assessed(point, spawn, judged, text, message.seq)._replace(
            id=fresh_ids(1)[0][0], actor=handle
        )
        told = (
            f"Assessment of {point.asked} posted to {channel}.chat, message {message.number}. "
            f"Confidence: {judged.confidence}."
        )
        event = draft_event_for_act(
            act, HANDLE, "assessment-posted", "normal", told, cause=assessed
        )
        act.append([assessed, event])
        waits = "SELECT 1 FROM events WHERE seq = ? AND acked IS NULL"
        if act.transaction.tables.execute(waits, (point.event,)).fetchone():
            if take_event(team, act, point.event, point.name):
                act.append([ACKED.draft({"name": point.name}, handle, cause=assessed.id)])
            else:  # another program did so meanwhile; the assessment answers it all the same
                from tripod.projections.bus.intake import moved_events

                act.append(moved_events([point.name]))
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
        answered = _assessment_of(team, point.event) is not None
        if answered or _last_failure(team, point.event) != stand.failed:
            return
        runs = job_attempts(team.store.db, ROLE, str(point.event))
        lost = ["the reviewer's program was killed together with its caller, each time"]
        spawns = [run.spawn for run in runs if run.seq > stand.failed]
        problems = lost if stand.lost else stand.problems
        act.append([FAILED.draft({"event": point.event, "spawns": spawns, "problems": problems})])
        claim = claim_on_event(team, point.event, act.now_us)
        if claim is not None and claim.holder == HANDLE:
            act.append([RELEASED.draft({"name": point.name, "event": point.event}, HANDLE)])


def record(
    team: Team, text: str, now_us: int, *, event: str | None = None, handle: str = HANDLE
) -> PostedAssessment:
    """Post an assessment that came from outside, as the answer to a checkpoint event.

    The text must follow the template; ``handle`` is its author. What the author had read is not
    known, and the entry says so. The event is the one of the name ``event``, or the oldest that
    waits; ``now_us`` is the clock.

    Raises:
        NotFoundError: there is no such event, or none waits.
        RefusedError: the assessment does not hold, or the event is answered, or being answered.
    """
    text = text.strip()
    point = _event_to_review(team, event, now_us)
    if point is None:
        raise NotFoundError(
            "no checkpoint event waits for an assessment: `tripod pythia due` lists them"
        )
    log = checkpoint_snapshot(team, point)
    if _assessment_of(team, point.event) is None:
        if _pending_review(team, point.event, now_us).state == "running":
            raise RefusedError(
                f"{point.name} is being reviewed by a run: wait for it (`tripod pythia run`)"
            )
        judged = judge(text, point, log)
        if judged.problems:
            raise RefusedError(f"the assessment does not hold: {'; '.join(judged.problems)}")
        if post(team, point, text, judged, handle=handle):
            seq = _assessment_of(team, point.event)
            assert seq is not None
            return _posted_assessment(team, seq)
    raise RefusedError(
        f"{point.name} is answered: `tripod pythia show {point.name}` has the assessment"
    )


# Reading ---------------------------------------------------------------------------------------


def show(team: Team, which: str = "last") -> PostedAssessment:
    """The newest assessment that was posted, or that of a checkpoint event.

    Raises:
        NotFoundError: there is no such event or assessment.
    """
    if which == "last":
        seq = team.store.db.execute("SELECT max(seq) FROM assessments").fetchone()[0]
        if seq is None:
            raise NotFoundError(
                "no assessment yet: `tripod pythia run` has one made where one is due"
            )
    else:
        point = checkpoint_named(team, which)
        seq = _assessment_of(team, point.event)
        if seq is None:
            raise NotFoundError(f"{point.name} has no assessment: `tripod pythia run`")
    return _posted_assessment(team, seq)


def _posted_assessment(team: Team, seq: int) -> PostedAssessment:
    body: dict[str, Any] = team.source.body(seq)
    message = team.source.body(body["message"])
    return PostedAssessment(
        team.source.body(body["event"])["name"],
        body["first"],
        body["last"],
        body["decisions"],
        body["confidence"],
        body["cited"],
        body["origin"],
        _isolation_level(team, body.get("spawn")),
        message["channel"],
        message["index"],
        team.source.content(body["content"]).decode(),
    )
