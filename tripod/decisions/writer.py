"""Acts of the Scribe: log a decision with its events, note what was handled of the inbox.

Source: spec nbs-compat B10, C6; seeds: nbs-scribe, tripod-architecture "Flow"; design section 7.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from sqlite3 import OperationalError
from typing import NamedTuple

import orjson

from tripod.bus.events import settings
from tripod.errors import BadArgumentError, MalformedEntryError
from tripod.ledger import Draft, entry_leaf_hash
from tripod.ledger.ids import fresh_ids
from tripod.ledger.kinds.decisions import BEGUN, LOGGED, Decided, Reference
from tripod.projections import LOG, Disk
from tripod.projections.chat.format import HEADER_LINES
from tripod.projections.chat.tables import (
    chat_line_at,
    last_chat_line,
    ref_to_chat_line,
    span_of,
)
from tripod.projections.decisions import format as format_
from tripod.projections.decisions.format import ChatRef
from tripod.projections.decisions.tables import decision_text_of
from tripod.projections.layout import LIVE
from tripod.projections.peers.tables import made_as
from tripod.projections.pythia.format import format_checkpoint_payload
from tripod.projections.text import RUN, text_line_problem, words_of_text
from tripod.team.act import Act, draft_event_for_act
from tripod.team.team import Team

MAX_TITLE = 1023  # bytes
MAX_FIELD = 2047
_NO_REF = (
    "no chat ref: nothing says where this was decided, and `tripod verify` names the decision from "
    "now on (what is recorded cannot be changed); with the next, name the message: live.chat:~L342"
)
_QUOTES = (
    "{} words in a row of it stand in the chat as well: Pythia reads the log, and should not see "
    "what was said there. Say what was decided in words of your own"
)
_LATELY = 500  # entries that are looked at for messages, the newest
_LOOKED_AT = 256 * 1024  # bytes of messages
_SOME_ID = r"\bD-[0-9]"
_BY_NUMBER = r"(?s)(?:(.+)?#(last|[0-9]{1,15})|last)"
_NEWEST = "SELECT coalesce(max(number), 0) FROM pieces WHERE log = ?"
_NO_REFERENCE = (
    "status {}, but of which decision? What is recorded cannot be changed; name it with the next, "
    "by --supersedes, --reverses or --mitigates"
)


class DecisionRequest(NamedTuple):
    """A decision to be logged. Lists hold one item each.

    ``refs`` name messages: by the line of a file (``live.chat:~L342``), by the message's number in
    its chat (``live#14``), or as the newest (``live#last``). ``#14`` and ``last`` mean the team's
    only chat. ``no_ref`` is the reason for having none.

    At most one of ``supersedes``, ``reverses`` and ``mitigates`` names an earlier decision. The
    last two settle the status, which is then not given.
    """

    title: str
    participants: Sequence[str]
    rationale: str
    refs: Sequence[str] = ()
    artefacts: Sequence[str] = ()
    risk_tags: Sequence[str] = ()
    status: str = "decided"
    supersedes: str | None = None
    reverses: str | None = None
    mitigates: str | None = None
    no_ref: str | None = None


class BoundRef(NamedTuple):
    """A reference to a message as it stands in the log, and the message's entry."""

    ref: str
    seq: int


class LoggedDecision(NamedTuple):
    """A logged decision, its number in the file ``log``, and the checkpoint event it caused.

    ``refs`` are the messages that it was bound to.
    """

    id: str
    number: int
    checkpoint: str | None = None
    warnings: Sequence[str] = ()
    log: str = LIVE
    refs: Sequence[BoundRef] = ()


def log(
    team: Team, request: DecisionRequest, *, actor: str | None = None, into: str | None = None
) -> LoggedDecision:
    """Log a decision, with its event, and Pythia's checkpoint where its log's count reaches it.

    ``actor`` is who logs it, by default the team's scribe. ``into`` is the file name of the log,
    which is begun if it is new; by default it is the team's only log, and of several ``log.md``.
    Nothing is recorded where it raises BadArgumentError (``into`` names no log, or there are
    several and none is named) or MalformedEntryError (a field breaks its rule, a ref means no
    message, or the decision that it supersedes, reverses or mitigates is not there or has its
    successor already).
    """
    request = judge_decision(request)
    locks = [f"{LOG.folder}/{name}" for name in _logs_to_lock(team, into)]
    with team.act(locks=locks, joins=True, by=actor or team.scribe) as act:
        db = act.transaction.tables
        file = _log_for(act, into)
        of_team = db.execute("SELECT scribe FROM team").fetchone()[0]
        scribe = actor or of_team
        request, refs, cited = _bind_refs(act, request)
        warnings = [] if refs or request.no_ref else [_NO_REF]
        request, made = _judge_reference(act, request)
        begun = []
        named = None if file == LIVE else file
        if not db.execute("SELECT 1 FROM logs WHERE file = ?", (file,)).fetchone():
            project, created = db.execute("SELECT project, created FROM team").fetchone()
            header = format_.format_decision_log_header(project, created, of_team)
            begun.append(BEGUN.draft({"header": {"text": header}, "file": named}, scribe))
        number = 1 + db.execute(_NEWEST, (file,)).fetchone()[0]
        second = act.now_us // 1_000_000
        while _id_exists(act, f"D-{second}"):
            second += 1
        body = _decision_body(request, f"D-{second}", number, refs)
        if named is not None:
            body["file"] = named
        if made is not None:
            body["supersedes_made"] = made
        decision = LOGGED.draft(body, scribe)._replace(id=fresh_ids(1)[0][0])
        said = ("scribe", "decision-logged", "normal", f"{body['id']} {request.title}")
        event = draft_event_for_act(act, *said, cause=decision)
        due = _checkpoint_due(team, act, decision, file)
        act.append([*begun, decision, event, *due])
        if _quotes_chat(act, request):
            warnings.append(_QUOTES.format(RUN))
    checkpoint = str(due[0].body["name"]) if due else None
    names_one = request.supersedes or re.search(_SOME_ID, f"{request.title} {request.rationale}")
    if request.status in format_.CHANGES and not names_one:
        warnings.append(_NO_REFERENCE.format(request.status))
    return LoggedDecision(body["id"], number, checkpoint, warnings, file, cited)


def _logs_to_lock(team: Team, into: str | None) -> list[str]:
    """The logs of which one will be written, as far as the tables tell before the act begins."""
    if into is not None:
        is_name = format_.decision_log_name_problem(into) is None
        return [into] if is_name and _has_folder(team.disk, into) else []
    with suppress(OperationalError):  # the tables of another version: they are about to be folded
        logs = [log for log in LOG.live(team.source) if _has_folder(team.disk, log)]
        return logs or [LIVE]
    return [LIVE]


def _has_folder(disk: Disk, log: str) -> bool:
    """Whether the folder of a log is the team's, and there."""
    return log[: log.rfind("/") + 1] in disk.places.logs()


def _log_for(act: Act, into: str | None) -> str:
    """The log that a decision is written into (BadArgumentError: none can be told)."""
    # An archive whose log is gone is a log by itself, and never grows.
    logs = [log for log in LOG.live(act.source) if format_.parse_decision_archive_name(log) is None]
    if into is None:
        if LIVE in logs or not logs:
            return LIVE
        if len(logs) == 1:
            return logs[0]
        raise BadArgumentError(f"which log? There are {', '.join(logs)}; name one")
    problem = format_.decision_log_name_problem(into)
    if problem is None and not _has_folder(act.disk, into):
        folder = into.rpartition("/")[0]
        problem = f"{into}: the team has no folder {folder} of logs; `nbs-scribe-log PATH` adds one"
        if f"{LOG.folder}/{folder}" in act.disk.places.added:
            full = act.disk.full(f"{LOG.folder}/{folder}")
            problem = f"{into}: no folder is at {full}; put it back"
    elif into in logs:
        return into
    if problem is None and format_.parse_decision_archive_name(into) is not None:
        problem = f"{into!r} is the name of an archive, which never grows"
    if problem is None and act.disk.stands(f"{LOG.folder}/{into}"):
        problem = f"{LOG.folder}/{into} is there, and is no decision log: give another name"
    if problem is not None:
        raise BadArgumentError(problem)
    return into


def judge_decision(request: DecisionRequest) -> DecisionRequest:
    """The request as it will be logged, if its fields alone make an entry of the log.

    The log has one mark for an earlier decision, ``supersedes``; the status says what became of
    that. Raises MalformedEntryError (a field breaks its rule).
    """
    named = {"reversed": request.reverses, "mitigated": request.mitigates}
    given = [(status, id_) for status, id_ in named.items() if id_ is not None]
    if len(given) + (request.supersedes is not None) > 1:
        raise MalformedEntryError(
            "supersedes, reverses, mitigates: a decision does one of them; log two decisions"
        )
    for status, target in given:
        if request.status not in ("decided", status):
            raise MalformedEntryError(
                f"status: {request.status!r}, but what it refers to is {status}; leave it out"
            )
        request = request._replace(supersedes=target, status=status, reverses=None, mitigates=None)
    problem = text_line_problem(request.title, "title", MAX_TITLE)
    problem = problem or text_line_problem(request.rationale, "rationale", MAX_FIELD)
    if problem is None and not request.participants:
        problem = "participants: at least one is needed"
    if problem is None and request.status not in format_.STATUSES:
        problem = f"status: {request.status!r} is none of {', '.join(format_.STATUSES)}"
    for name in ("participants", "refs", "artefacts", "risk_tags"):
        items: Sequence[str] = getattr(request, name)
        for item in items:
            problem = problem or text_line_problem(item, name, MAX_FIELD)
            if problem is None and "," in item:
                problem = f"{name}: {item!r} holds a comma; give each one apart"
        if problem is None and len(items) > 1:
            problem = text_line_problem(", ".join(items), name, MAX_FIELD)
    if problem is None and request.no_ref is not None:
        problem = text_line_problem(request.no_ref, "no-ref", MAX_FIELD)
        if problem is None and request.refs:
            problem = "no-ref: a reference is given; leave one of them out"
    if problem is not None:
        raise MalformedEntryError(problem)
    try:
        format_.format_decision(decision_text_of(_decision_body(request, "D-0", 1, [])))
    except ValueError as error:
        raise MalformedEntryError(
            "the decision cannot be written as one entry of the log: a title must not begin with "
            "[SUPERSEDES, and no field may look like another's line"
        ) from error
    return request


def _judge_reference(act: Act, request: DecisionRequest) -> tuple[DecisionRequest, str | None]:
    """Refuse a reference to a decision that does not exist, or has its successor already.

    Gives the request with the id that the decision has here, and what means it everywhere if it is
    a peer's.
    """
    target = request.supersedes
    if target is None:
        return request, None
    from tripod.decisions.reader import meant_decisions, several_decisions

    made = None
    problem = format_.valid_decision_id(target.rpartition("/")[2])
    if problem is None:
        meant = meant_decisions(act.transaction, target)
        problem = f"no decision {target} in the log; `tripod scribe query` finds its id"
        if len(meant) > 1:
            problem = several_decisions(target, meant)
        elif meant:
            problem, (target, made) = None, meant[0]
    if problem is None:
        row = act.transaction.tables.execute(
            "SELECT id, status FROM pieces WHERE supersedes = ? ORDER BY seq LIMIT 1", (target,)
        ).fetchone()
        if row is not None:
            became = row[1] if row[1] in format_.CHANGES else "superseded"
            problem = f"{target} was {became} by {row[0]} already; refer to that one"
    if problem is not None:
        what = {"reversed": "reverses", "mitigated": "mitigates"}.get(request.status, "supersedes")
        raise MalformedEntryError(f"{what}: {problem}")
    return request._replace(supersedes=target), made


def _decision_body(
    request: DecisionRequest, decision: str, number: int, refs: list[Reference]
) -> Decided:
    return {
        "artefacts": ", ".join(request.artefacts) or format_.NONE_YET,
        "chat_ref": ", ".join(request.refs) or format_.NONE_YET,
        "id": decision,
        "number": number,
        "participants": ", ".join(request.participants),
        "rationale": request.rationale,
        "refs": refs,
        "no_ref": request.no_ref,
        "risk_tags": ", ".join(request.risk_tags) or "none",
        "status": request.status,
        "supersedes": request.supersedes,
        "title": request.title,
    }


def _id_exists(act: Act, decision: str) -> bool:
    sql = "SELECT 1 FROM pieces WHERE id = ?"
    return act.transaction.tables.execute(sql, (decision,)).fetchone() is not None


def _bind_refs(
    act: Act, request: DecisionRequest
) -> tuple[DecisionRequest, list[Reference], list[BoundRef]]:
    """Bind each ref to the message that it names now: its number, seq and leaf hash.

    The refs of the request that is given back are those that stand in the log.
    """
    bound: list[Reference] = []
    cited: list[BoundRef] = []
    for text in request.refs:
        named = re.fullmatch(_BY_NUMBER, text)
        stands = text if named is None else _line_of_number(act, text, named[1], named[2])
        refs, malformed = format_.parse_decision_refs(stands)
        if malformed or len(refs) != 1:
            raise MalformedEntryError(
                f"ref: {text!r} is not <file>:~L<line>: give the chat's file and the line that the "
                f"message stands in, such as live.chat:~L{HEADER_LINES + 1} for its first"
            )
        (number, seq, channel), of = _message_at(act, refs[0]), refs[0]
        if "/" in of.file:  # in the words of another replica; it stands where it stands here
            stands = ref_to_chat_line(act.transaction.tables, channel, number) or stands
            refs, _ = format_.parse_decision_refs(stands)
        header = act.transaction.header(seq)
        assert header is not None  # the line was folded from this entry
        leaf, (file, line) = entry_leaf_hash(header).hex(), refs[0]
        one: Reference = {
            "channel": channel, "file": file, "index": number, "leaf": leaf, "line": line,
            "seq": seq,
        }  # fmt: skip
        if (made := made_as(act.transaction.tables, seq)) is not None:
            one["origin"], one["origin_seq"] = made
        bound.append(one)
        cited.append(BoundRef(stands, seq))
    shown = [one.ref for one in cited]
    problem = text_line_problem(", ".join(shown), "refs", MAX_FIELD) if shown else None
    if problem is not None:
        raise MalformedEntryError(problem)
    return request._replace(refs=shown), bound, cited


def _line_of_number(act: Act, text: str, chat: str | None, number: str | None) -> str:
    """The reference by line to a message that is named by its number, or as the newest."""
    db = act.transaction.tables
    if not chat:
        rows = db.execute("SELECT channel FROM channels WHERE closed = 0 ORDER BY 1").fetchall()
        names = [name for (name,) in rows]
        if not names:
            raise MalformedEntryError(f"ref: {text}: no chat exists yet")
        chat = names[0]
        if len(names) > 1:
            raise MalformedEntryError(
                f"ref: {text}: of which chat? There are {', '.join(names)}; give such as "
                f"{chat}#{number or 'last'}"
            )
    span = span_of(db, chat.removesuffix(".chat"))
    if span is None:
        raise MalformedEntryError(f"ref: {text} names no chat of this team")
    last = db.execute(
        "SELECT max(number) FROM lines WHERE channel = ? AND handle IS NOT NULL AND gone IS NULL",
        (span.channel,),
    ).fetchone()[0]
    wanted = last if number is None or number == "last" else int(number)
    stands = None if wanted is None else ref_to_chat_line(db, span.channel, wanted)
    if stands is None:
        have = "has no message" if last is None else f"has messages up to #{last}"
        raise MalformedEntryError(
            f"ref: {text} is no message that a file shows; {span.channel} {have}. Nothing was "
            "recorded"
        )
    return stands


def _message_at(act: Act, ref: ChatRef) -> tuple[int, int, str]:
    """Number, entry and channel of the message in the line that a reference names."""
    db = act.transaction.tables
    stem = ref.file.removesuffix(".chat")
    shown = span_of(db, stem)
    if shown is None and "/" in stem:
        from tripod.decisions.reader import message_of_replica, without_own_replica

        stem = without_own_replica(act.transaction, stem)
        found = message_of_replica(act.source, ref._replace(file=f"{stem}.chat"))
        if found is not None:
            return found
        ref, shown = ref._replace(file=f"{stem}.chat"), span_of(db, stem)
    if shown is None or ref.file != f"{stem}.chat":
        raise MalformedEntryError(
            f"ref: {format_.format_decision_ref(ref)} names no chat file of this team"
        )
    line = chat_line_at(db, shown, ref.line)
    if line is None:
        last = last_chat_line(db, shown)
        have = f"messages in lines {HEADER_LINES + 1} to {last}"
        if last <= HEADER_LINES:
            have = "no message yet"
        raise MalformedEntryError(
            f"ref: {format_.format_decision_ref(ref)} is no message; {ref.file} has {have}. "
            "Nothing was recorded: what leads nowhere could never be mended"
        )
    return *line, shown.channel


def _quotes_chat(act: Act, request: DecisionRequest) -> bool:
    """Whether it holds a dozen words in a row of a message; only the newest are looked at.

    Those among the newest entries, and few enough bytes of them: who logs does not wait.
    `tripod verify` looks at all of them.
    """
    listed = (request.participants, request.artefacts, request.risk_tags)
    texts = (request.title, request.rationale, *map(", ".join, listed))
    ours = {run for text in texts for run in _runs(words_of_text(text))}
    if not ours:
        return False
    start = act.transaction.size - _LATELY
    left = _LOOKED_AT
    for entry in act.transaction.raw(start, kinds=("chat.sent",), newest_first=True):
        left -= len(entry.body or b"")
        if left < 0:
            return False
        text = orjson.loads(entry.body or b"{}").get("text", {}).get("text", "")
        if not ours.isdisjoint(_runs(words_of_text(text))):
            return True
    return False


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(RUN)), strict=False)


def _checkpoint_due(team: Team, act: Act, decision: Draft, file: str) -> list[Draft]:
    """Ask for Pythia's review at each N-th decision of a log (tripod-architecture, "Flow").

    The seeds count by ``grep`` on the log that the reviewer then reads: each log by itself.
    """
    interval = settings(team)["pythia_interval"]
    number, newest = decision.body["number"], decision.body["id"]
    db = act.transaction.tables
    # Those of peers are counted, and reviewed, in their own replicas.
    theirs = "SELECT count(*) FROM pieces WHERE made IS NOT NULL AND log = ?"
    number -= db.execute(theirs, (file,)).fetchone()[0]
    if not interval or number % interval:
        return []
    row = db.execute(
        "SELECT id FROM (SELECT id, number FROM pieces WHERE log = ? AND number IS NOT NULL"
        " AND made IS NULL ORDER BY number DESC LIMIT ?) ORDER BY number LIMIT 1",
        (file, interval - 1),
    ).fetchone()
    payload = format_checkpoint_payload(number, newest if row is None else row[0], newest)
    return [
        draft_event_for_act(act, "scribe", "pythia-checkpoint", "high", payload, cause=decision)
    ]


def handled(team: Team, up_to: int, who: str | None = None) -> None:
    """Note that the Scribe handled its inbox up to the entry ``up_to``; it never moves back.

    Raises BadArgumentError (the ledger has no such entry yet).
    """
    from tripod.decisions.reader import inbox_place
    from tripod.ledger.kinds.bus import SEEN

    who = who or team.scribe or ""
    with team.act(hasty=True, joins=True, by=who) as act:
        size = act.transaction.size
        if up_to >= size:
            raise BadArgumentError(f"--done {up_to}: the ledger has entries 0 to {size - 1}")
        reader, place = inbox_place(team, who)
        if up_to > place:
            act.append([SEEN.draft({"reader": reader, "up_to": up_to}, who)])
