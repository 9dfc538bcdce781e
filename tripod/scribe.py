"""Acts of the Scribe: log a decision with its events, query the log.

Source: spec nbs-compat B10, C6; seeds: nbs-scribe, tripod-architecture "Flow"; design section 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger import drafts
from ledger.entry import Draft, leaf_hash
from ledger.ids import fresh_ids
from projections import LOG
from projections.decision_log import LIVE, text_of
from projections.formats.assessment import format_checkpoint_payload
from projections.formats.chat import HEADER_LINES
from projections.formats.decision_log import (
    NONE_YET,
    STATUSES,
    format_decision,
    format_log_header,
    format_ref,
    one_line,
    parse_refs,
)
from tripod.act import Act
from tripod.bus import settings
from tripod.drafting import draft_event
from tripod.errors import BadArgumentError, NotFoundError
from tripod.team import Team

__all__ = ["Decision", "Logged", "Request", "count", "log", "query", "summary"]

MAX_TITLE = 1023  # bytes
MAX_FIELD = 2047
_NO_REF = (
    "no chat ref: nothing says where this was decided, and `tripod verify` names the decision from "
    "now on (what is recorded cannot be changed); give --ref live.chat:~L342 with the next"
)


@dataclass(frozen=True)
class Request:
    """A decision to be logged. Lists hold one item each; ``refs`` as ``live.chat:~L342``."""

    title: str
    participants: Sequence[str]
    rationale: str
    refs: Sequence[str] = ()
    artefacts: Sequence[str] = ()
    risk_tags: Sequence[str] = ()
    status: str = "decided"
    supersedes: str | None = None


@dataclass(frozen=True)
class Logged:
    """A logged decision: its id, its number in the log, and the checkpoint event it caused."""

    id: str
    number: int
    checkpoint: str | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Decision:
    """A decision as read."""

    seq: int
    number: int
    id: str
    title: str
    status: str
    participants: str
    risk_tags: str
    artefacts: str
    chat_ref: str
    rationale: str
    supersedes: str | None


def log(team: Team, request: Request, *, actor: str | None = None) -> Logged:
    """Log a decision, with its event, and Pythia's checkpoint where the count reaches it.

    Raises:
        BadArgumentError: a field breaks its rule, a ref means no message, or the superseded
            decision does not exist. Nothing was recorded.
    """
    _judge(request)
    path = f"{LOG.folder}/{LIVE}"
    with team.act(locks=[path], by=actor or team.scribe) as act:
        db = act.transaction.tables
        scribe = actor or db.execute("SELECT scribe FROM team").fetchone()[0]
        refs, warnings = _bind(act, request)
        if request.supersedes is not None and not _known(act, request.supersedes):
            message = f"supersedes: no decision {request.supersedes} in the log"
            raise BadArgumentError(message)
        begun = []
        if not db.execute("SELECT 1 FROM logs WHERE file = ?", (LIVE,)).fetchone():
            project, created = db.execute("SELECT project, created FROM team").fetchone()
            begun.append(drafts.log_begun(format_log_header(project, created, scribe), scribe))
        number = 1 + db.execute("SELECT coalesce(max(number), 0) FROM pieces").fetchone()[0]
        second = act.now_us // 1_000_000
        while _known(act, f"D-{second}"):
            second += 1
        body = _body(request, f"D-{second}", number, refs)
        decision = drafts.decided(body, scribe)._replace(id=fresh_ids(1)[0][0])
        text = f"{body['id']} {request.title}"
        event = draft_event(act, "scribe", "decision-logged", "normal", text, cause=decision)
        due = _checkpoint(team, act, decision)
        act.append([*begun, decision, event, *due])
    checkpoint = str(due[0].body["name"]) if due else None
    return Logged(body["id"], number, checkpoint, warnings)


def _judge(request: Request) -> None:
    problem = one_line(request.title, "title", MAX_TITLE)
    problem = problem or one_line(request.rationale, "rationale", MAX_FIELD)
    if problem is None and not request.participants:
        problem = "participants: at least one is needed"
    if problem is None and request.status not in STATUSES:
        problem = f"status: {request.status!r} is none of {', '.join(STATUSES)}"
    lists = ("participants", "refs", "artefacts", "risk_tags")
    for name in lists:
        items: Sequence[str] = getattr(request, name)
        for item in items:
            problem = problem or one_line(item, name, MAX_FIELD)
            if problem is None and "," in item:
                problem = f"{name}: {item!r} holds a comma; give each one apart"
        problem = problem or (
            one_line(", ".join(items), name, MAX_FIELD) if len(items) > 1 else None
        )
    if problem is not None:
        raise BadArgumentError(problem)
    try:
        format_decision(text_of(_body(request, "D-0", 1, [])))
    except ValueError as error:
        message = (
            "the decision cannot be written as one entry of the log: a title must not begin with "
            "[SUPERSEDES, and no field may look like another's line"
        )
        raise BadArgumentError(message) from error


def _body(
    request: Request, decision: str, number: int, refs: list[dict[str, Any]]
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "artefacts": ", ".join(request.artefacts) or NONE_YET,
        "chat_ref": ", ".join(request.refs) or NONE_YET,
        "id": decision,
        "number": number,
        "participants": ", ".join(request.participants),
        "rationale": request.rationale,
        "refs": refs,
        "risk_tags": ", ".join(request.risk_tags) or "none",
        "status": request.status,
        "title": request.title,
    }
    if request.supersedes is not None:
        body["supersedes"] = request.supersedes
    return body


def _known(act: Act, decision: str) -> bool:
    row = act.transaction.tables.execute(
        "SELECT 1 FROM pieces WHERE id = ?", (decision,)
    ).fetchone()
    return row is not None


def _bind(act: Act, request: Request) -> tuple[list[dict[str, Any]], list[str]]:
    """Bind each ref to the message at that line of the file now: its number, seq and leaf hash."""
    if not request.refs:
        return [], [_NO_REF]
    bound = []
    db = act.transaction.tables
    for text in request.refs:
        refs, malformed = parse_refs(text)
        if malformed or len(refs) != 1:
            message = (
                f"ref: {text!r} is not <file>:~L<line>: give the chat's file and the line that the "
                f"message stands in, such as live.chat:~L{HEADER_LINES + 1} for its first"
            )
            raise BadArgumentError(message)
        ref = refs[0]
        channel = ref.file.removesuffix(".chat")
        row = db.execute(
            "SELECT live_from, lines FROM channels WHERE channel = ?", (channel,)
        ).fetchone()
        if row is None or ref.file != f"{channel}.chat":
            message = f"ref: {format_ref(ref)} names no chat file of this team"
            raise BadArgumentError(message)
        number = row[0] + ref.line - HEADER_LINES - 1
        line = db.execute(
            "SELECT seq FROM lines WHERE channel = ? AND number = ? AND number >= ?"
            " AND handle IS NOT NULL",
            (channel, number, row[0]),
        ).fetchone()
        if line is None:
            last = HEADER_LINES + row[1] - row[0]
            have = f"messages in lines {HEADER_LINES + 1} to {last}"
            if last <= HEADER_LINES:
                have = "no message yet"
            message = (
                f"ref: {format_ref(ref)} is no message; {ref.file} has {have}. Nothing was "
                "recorded: what leads nowhere could never be mended"
            )
            raise BadArgumentError(message)
        header = db.execute("SELECT header FROM entries WHERE seq = ?", (line[0],)).fetchone()[0]
        bound.append(
            {
                "channel": channel,
                "file": ref.file,
                "index": number,
                "leaf": leaf_hash(header).hex(),
                "line": ref.line,
                "seq": line[0],
            }
        )
    return bound, []


def _checkpoint(team: Team, act: Act, decision: Draft) -> list[Draft]:
    """Ask for Pythia's review at each N-th decision (seeds: tripod-architecture, "Flow")."""
    interval = settings(team)["pythia_interval"]
    number, newest = decision.body["number"], decision.body["id"]
    if not interval or number % interval:
        return []
    row = act.transaction.tables.execute(
        "SELECT id FROM pieces WHERE number > ? ORDER BY number LIMIT 1", (number - interval,)
    ).fetchone()
    payload = format_checkpoint_payload(number, newest if row is None else row[0], newest)
    return [draft_event(act, "scribe", "pythia-checkpoint", "high", payload, cause=decision)]


def _decision(team: Team, seq: int) -> Decision:
    body = team.source.body(seq)
    return Decision(
        seq,
        body["number"],
        body["id"],
        body["title"],
        body["status"],
        body["participants"],
        body["risk_tags"],
        body["artefacts"],
        body["chat_ref"],
        body["rationale"],
        body.get("supersedes"),
    )


def _has_log(team: Team) -> None:
    if not team.store.db.execute("SELECT 1 FROM logs").fetchone():
        message = "no decision log yet: `tripod scribe log` begins it"
        raise NotFoundError(message)


def query(
    team: Team,
    text: str = "",
    *,
    tag: str | None = None,
    status: str | None = None,
    by: str | None = None,
) -> Iterator[Decision]:
    """Decisions that hold ``text`` in any field (upper and lower case alike) and fit the filters.

    Args:
        team: the team whose log it is.
        text: any text; '' fits all.
        tag: a risk tag, whole.
        status: a status.
        by: a participant's handle, whole.

    Raises:
        NotFoundError: there is no log yet.
    """
    _has_log(team)
    wanted = text.casefold()
    rows = team.store.db.execute("SELECT seq FROM pieces WHERE id IS NOT NULL ORDER BY seq")
    for (seq,) in rows.fetchall():
        decision = _decision(team, seq)
        whole = "\n".join(str(value) for value in vars(decision).values())
        if (
            wanted in whole.casefold()
            and (tag is None or tag in _items(decision.risk_tags))
            and (status is None or status == decision.status)
            and (by is None or by in _items(decision.participants))
        ):
            yield decision


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def count(team: Team) -> int:
    """How many decisions the log holds: what ``grep -c "^### D-"`` gives on its files.

    A heading that others left malformed is no decision: `tripod verify` names it.

    Raises:
        NotFoundError: there is no log yet.
    """
    _has_log(team)
    return int(
        team.store.db.execute("SELECT count(*) FROM pieces WHERE id IS NOT NULL").fetchone()[0]
    )


def summary(team: Team, last: int) -> list[Decision]:
    """The newest ``last`` decisions, oldest of them first.

    Raises:
        NotFoundError: there is no log yet.
    """
    _has_log(team)
    rows = team.store.db.execute(
        "SELECT seq FROM pieces WHERE id IS NOT NULL ORDER BY seq DESC LIMIT ?", (last,)
    ).fetchall()
    return [_decision(team, seq) for (seq,) in rows[::-1]]
