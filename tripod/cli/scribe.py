"""The commands of the decision log, for ``tripod scribe`` and the three ``nbs-scribe`` programs.

The exit codes are those of the Scribe's document. ``nbs-scribe-log`` and ``nbs-scribe-query`` are
the original's programs (spec: nbs-compat B10, B11); for ``nbs-scribe`` it has none: ``log``,
``query``, ``count`` and ``summary`` were said to an agent. Where they differ from the original, and
why: ``docs/reference/nbs-scribe.md``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NoReturn

from tripod import decisions
from tripod.cli.commands import (
    HANDLE,
    TEXT,
    ChoiceParam,
    CommandCall,
    NbsProgram,
    NumberParam,
    command_group,
    command_usage,
    command_verb,
    how_to_be_known,
    moment_param,
)
from tripod.decisions.writer import judge_decision
from tripod.errors import BadArgumentError, MalformedEntryError, RefusedError
from tripod.ledger.ids import now_us
from tripod.output import each_mark, emit, entry_marks, hanging, one_line, remark
from tripod.projections import LOG, layout
from tripod.projections.bus.format import event_age, format_time
from tripod.projections.chat.tables import ref_to_chat_line
from tripod.projections.decisions.format import NONE_YET, STATUSES, valid_decision_id
from tripod.team.team import Team

MAX_LAST = 2**31 - 1
SHOWN = 160  # characters of a payload or a message
NEWEST = 5  # messages that are named where a decision refers to none
STATUS = ChoiceParam(*STATUSES)
_BEFORE = {"reversed": "reverses", "mitigated": "mitigates"}
_AFTER = {"reversed": "reversed by", "mitigated": "mitigated by"}


def _log(call: CommandCall) -> None:
    participants = call.participant or (_acting(call),)
    request = decisions.DecisionRequest(
        call.title,
        participants,
        _once(call, "rationale"),
        call.ref,
        call.artefact,
        call.risk_tag,
        call.status,
        *(_once(call, name) for name in ("supersedes", "reverses", "mitigates", "no_ref")),
    )
    # The logs of others may name people in other ways. A bad value makes no entry: exit code 3.
    judged = [("--participant", HANDLE, handle) for handle in participants]
    for what, kind, text in (*judged, ("status", STATUS, call.status)):
        try:
            kind.read(text)
        except ValueError as error:
            raise MalformedEntryError(f"{what}: {error}") from error
    if not request.refs and request.no_ref is None:
        judge_decision(request)
        _refuse_without_ref(call)
    _record(call, request, call.known_actor())


def _acting(call: CommandCall) -> str:
    """Who acts, and so took part where nobody is named (MalformedEntryError: nothing says who)."""
    who = call.known_actor()
    if who is None:
        raise MalformedEntryError(
            "--participant: who took part? By default who acts, and nothing says who that is: "
            f"name each with -p HANDLE, or {how_to_be_known()}"
        )
    return who


def _refuse_without_ref(call: CommandCall) -> NoReturn:
    """Refuse a decision that refers to no message; show the newest ones with their references."""
    with call.fresh() as team:
        db = team.store.db
        rows = db.execute(
            "SELECT channel, number, seq FROM lines WHERE handle IS NOT NULL AND gone IS NULL"
            " ORDER BY seq DESC LIMIT 100"
        )
        found = ((ref_to_chat_line(db, channel, number), seq) for channel, number, seq in rows)
        shown = ((ref, seq) for ref, seq in found if ref is not None)
        lines = [_cited(**_bound(team, ref, seq)) for ref, seq in islice(shown, NEWEST)]
    which = "No message can be named: say by --no-ref REASON why"
    if lines:
        which = "Name it by --ref, or say by --no-ref REASON why none can be named. The newest are"
    raise MalformedEntryError(
        "\n  ".join([f"--ref: in which message was it decided? {which}", *reversed(lines)])
    )


def _cited(ref: str, text: str, number: int, handle: str, time: int) -> str:
    """One line on a message that can be referred to, its text cut."""
    when = f"[{format_time(time * 1_000_000)}]" if time else "[?]"
    text = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    return one_line(f"{ref} #{number} {when} {handle}: {text}")


def _once(call: CommandCall, name: str) -> Any:
    """The one value of an option; click would take the last, and drop the others in silence."""
    values = call.get(name)
    if len(set(values)) > 1:
        raise MalformedEntryError(
            f"--{name}: given {len(values)} times, and an entry of the log has room for one; "
            "log a decision for each"
        )
    return values[0] if values else None


def _record(call: CommandCall, request: decisions.DecisionRequest, actor: str | None) -> None:
    with call.team() as team:
        logged = decisions.log(team, request, actor=actor, into=call.log)
        refs = [] if call.nbs else [_bound(team, *one) for one in logged.refs]
    for warning in logged.warnings:
        remark(f"warning: {warning}")
    value: dict[str, object] = {"id": logged.id, "number": logged.number, "refs": refs}
    value |= {"checkpoint": logged.checkpoint} if logged.checkpoint else {}
    call.answer(value, [logged.id])
    for ref in () if call.json else refs:
        remark(f"refers to {_cited(**ref)}")
    if logged.checkpoint and not call.json:
        remark(f"decision {logged.number}: Pythia's review is due ({logged.checkpoint})")


def _bound(team: Team, ref: str, seq: int) -> dict[str, Any]:
    """The message that a decision was bound to, for JSON."""
    said = team.source.body(seq)
    text, number = team.source.content(said["text"]).decode(), said["index"]
    value = {"ref": ref, "text": text, "number": number}
    return value | {"handle": said["handle"], "time": said["time"]}


def _nbs_log(call: CommandCall) -> None:
    """Log the decision that ``nbs-scribe log`` and ``nbs-scribe-log`` are given."""
    for name in ("participants", "rationale"):
        if not (call.get(name) or "").strip():
            raise MalformedEntryError(f"--{name}=... is missing: every entry of the log has it")
    request = decisions.DecisionRequest(
        call.summary,
        _items(call.participants),
        call.rationale,
        _items(call.chat_ref),
        _items(call.artefacts),
        _items(call.risk_tags, nothing="none"),
        "decided" if call.status is None else call.status,
        call.supersedes,
        call.reverses,
        call.mitigates,
    )
    request, actor = judge_decision(request), call.known_actor()  # before any folder is made
    _record(call, request, actor)


def _items(text: str | None, nothing: str = NONE_YET) -> list[str]:
    """The items of a list, given with commas; the word for an empty one stands for none."""
    items = [item.strip(" ") for item in (text or "").split(",")]  # no line break goes unseen
    return [item for item in items if item and item != nothing]


def _show_all(call: CommandCall, team: Team, found: Sequence[decisions.Decision]) -> None:
    from tripod.decisions.reader import plain_decision

    if call.nbs:  # as the originals of these programs are said to print them
        call.answers((), (line for one in found for line in _decision_lines(one)))
        return
    pairs = list(each_mark(team.store, found))
    lines = (line for one, mark in pairs for line in _decision_lines(one, mark))
    call.answers((plain_decision(one) | {"mark": mark} for one, mark in pairs), lines)


def _query(call: CommandCall) -> int:
    since, until = (moment_param(call.get(name), f"--{name}") for name in ("since", "until"))
    filters = decisions.Filters(call.tag, call.status, call.by, call.artefact, since, until)
    with call.fresh() as team:
        found = list(decisions.query(team, call.text or "", filters, call.log))
        _show_all(call, team, found)
    if not found:
        remark("no decision fits")
    return 0 if found else 1


def _show(call: CommandCall) -> int:
    from tripod.decisions.reader import plain_decision_history

    with call.fresh() as team:
        found = decisions.find(team, call.decision)
        marks = entry_marks(team.store, [one.decision.seq for one in found])
    pairs = [(one, marks[one.decision.seq]) for one in found]
    lines = (line for one, mark in pairs for line in _history_lines(one, mark))
    call.answers((plain_decision_history(one) | {"mark": mark} for one, mark in pairs), lines)
    if not found:
        remark(f"no decision {call.decision}: `tripod scribe query` finds its id")
    return 0 if found else 1


def _count(call: CommandCall) -> None:
    with call.fresh() as team:
        found = decisions.count(team, call.log)
    call.answer({"count": found}, [str(found)])


def _summary(call: CommandCall) -> None:
    last = call.last
    with call.fresh() as team:
        _show_all(call, team, list(decisions.summary(team, last, call.log)))


def _inbox(call: CommandCall) -> None:
    with call.team() as team:
        if call.done is not None:
            decisions.handled(team, call.done, call.as_)
            left = len(decisions.inbox(team, call.as_))
            call.answer({"done": call.done, "left": left}, [])
            return
        team.refresh()
        items = list(each_mark(team.store, decisions.inbox(team, call.as_)))
    now, lines = now_us(), []
    for item, mark in items:
        done = " acknowledged" if item.acked else ""
        line = f"[{item.priority}] {item.name} ({event_age(now, item.us)} ago){done} {mark}"
        lines.append(line.rstrip())
        if item.payload:
            text = item.payload if len(item.payload) <= SHOWN else f"{item.payload[:SHOWN]}..."
            lines.append(f"  {one_line(text)}")
    call.answers((item._asdict() | {"mark": mark} for item, mark in items), lines)
    if items and not call.json:
        newest = max(item.seq for item, _ in items)
        remark(f"{len(items)} to handle; then: tripod scribe inbox --done {newest}")


def _export(call: CommandCall) -> None:
    from tripod.decisions.export import export_decisions

    since = moment_param(call.since, "--since")
    with call.fresh() as team:
        try:
            done = export_decisions(team, call.file, since=since, log=call.log)
        except OSError as error:
            raise RefusedError(f"{call.file}: {error.strerror or error}") from error
    how = "Exported" if done.is_written else "Nothing new"
    what = "1 decision" if done.decisions == 1 else f"{done.decisions} decisions"
    line = f"{how}: {one_line(done.path)}, {what} of {done.size} entries, root {done.root}"
    call.answer(done._asdict(), [line])


def _advise(call: CommandCall) -> None:
    from tripod.verify import advice

    with call.fresh() as team:
        db, found, lines = team.store.db, list[dict[str, Any]](), list[str]()
        rows = db.execute("SELECT seq FROM lines WHERE handle IS NOT NULL ORDER BY seq").fetchall()
        silent = advice.advised_handles(team.source)
        for passage in advice.advise_on_missed(team.source, (seq for (seq,) in rows), silent):
            ref = ref_to_chat_line(db, passage.channel, passage.number)
            found.append({"advice": "missed", "ref": ref, **passage._asdict()})
            where = ref or f"{passage.channel} message {passage.number}"
            more = f" (and {passage.more} more close by)" if passage.more else ""
            fresh = " (fresh)" if passage.fresh else ""
            lines.append(one_line(f"{where} {passage.handle}: {passage.sentence}{more}"))
            lines.append(f"  sounds like {passage.sign}, and no decision is near{fresh}")
        for entry in advice.advise_on_noise(team.source):
            found.append({"advice": "noise", **entry._asdict()})
            lines += [one_line(f"{entry.id} {entry.title}"), f"  reads like {entry.like}"]
    call.answers(found, lines)
    if not found and not call.json:
        remark("nothing to advise")


def _nbs_query(call: CommandCall) -> int:
    """Print entries as they stand in the log, as ``nbs-scribe-query`` does."""
    from tripod.cli.nbs_team import nbs_chat_folder, nbs_chat_path, team_of

    problem = ""
    asked = [*call.words.options.keys() - {"chat"}, *call.words.flags - {"regex"}]
    asked += ["text"] if call.words.texts else []
    if not (call.get("chat") or "").endswith(".chat"):
        problem = "--chat=FILE is missing, or names no chat (its file ends in .chat)"
    elif len(asked) != 1:
        problem = f"one question at a time, not {', '.join(sorted(asked)) or 'nothing'}"
    elif call.regex and asked != ["text"]:
        problem = "--regex says what PATTERN is; give one"
    if problem:
        raise BadArgumentError(f"{problem}\n  Usage: {call.usage}")
    (which,) = asked
    fits, last = _fits(call, which), call.last
    folder = nbs_chat_folder(call.chat)
    meet = os.path.lexists(nbs_chat_path(call.chat))
    with team_of("chat", folder, meet=meet, looks=call.looks) as team:
        team.refresh()
        logs = _logs(team, call.chat, os.path.dirname(folder))
        if which == "count":
            emit([str(sum(decisions.count(team, log) for log in logs))])
            return 0
        found = [one for one in decisions.standing(team, last, logs) if fits(one)]
        files = "SELECT count(*) FROM logs WHERE log IN (SELECT value FROM json_each(?))"
        (number,) = team.store.db.execute(files, (json.dumps(logs),)).fetchone()
    lines, before = list[str](), ""
    for one in found:  # a blank line between two; the name of a file before its first
        lines += [""] if lines else []
        if which not in ("id", "last") and number > 1 and one.file != before:
            lines.append(f"[{one.file}]")
        before = one.file
        lines.append(one.text)
        if one.decision.by is not None:
            lines.append(f"[{one.decision.stands} by {one.decision.by}]")
    emit(lines)
    if not found:
        remark("no decision fits")
    return 0 if found else 1


def _fits(call: CommandCall, which: str) -> Callable[[decisions.Standing], bool]:
    """What tells whether a decision is one that is asked for."""
    value = call.words.options.get(which, "")
    if which == "text" and call.regex:
        try:
            wanted = re.compile(call.pattern, re.IGNORECASE | re.MULTILINE)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadArgumentError(f"{call.pattern!r} is no regular expression: {error}") from error
        return lambda one: wanted.search(one.text) is not None
    if which == "text":
        folded = call.pattern.casefold()
        return lambda one: folded in one.text.casefold()
    if which == "superseded":
        return lambda one: one.decision.supersedes is not None or one.decision.stands == which
    if which == "id":
        problem = valid_decision_id(value)
        if problem is not None:
            raise BadArgumentError(f"--id: {problem}")
        return lambda one: one.decision.id == value
    if which in ("by", "tag") and not value:
        raise BadArgumentError(f"--{which}: empty; say which, or leave it out")
    filters = decisions.Filters(**({which: value} if which in ("by", "tag") else {}))
    return lambda one: filters.fit(one.decision)


def _logs(team: Team, chat: str, around: str) -> list[str]:
    """The logs of a chat, as the original finds them: its own, and that of the chat ``live``.

    They are in the folder ``scribe`` beside the chat's, in ``around``. A team whose logs are not
    named after its chats has them for each chat. Raises NotFoundError (there is no log).
    """
    from tripod.cli.nbs_team import add_log_to_nbs_team, known_to_nbs_team
    from tripod.projections.chat.format import parse_chat_archive_name

    stem = os.path.basename(chat).removesuffix(".chat")
    split = parse_chat_archive_name(stem)
    beside = os.path.join(around, LOG.folder)
    names = list(
        dict.fromkeys((f"{split[0] if split else stem}-{layout.LIVE}", f"live-{layout.LIVE}"))
    )
    for name in names:
        if os.path.isfile(os.path.join(beside, name)) and not team.is_read_only:
            add_log_to_nbs_team(team, os.path.join(beside, name))
    logs = LOG.live(team.source)
    front = known_to_nbs_team(team, LOG.folder, beside) or ""
    own = [log for log in (front + name for name in names) if log in logs]
    own = own or [log for log in names if log in logs]
    if not logs:
        decisions.count(team)  # which raises
    return own or ([layout.LIVE] if layout.LIVE in logs else logs)


def _decision_lines(decision: decisions.Decision, entered: str | None = None) -> Iterator[str]:
    """A decision in three lines, the second begins with its mark, where it is given one."""
    mark = f"[SUPERSEDES {decision.supersedes}] " if decision.supersedes else ""
    # No command logs another word: one in the store must not pass for a mark or a line.
    status = decision.status if decision.status in STATUSES else repr(decision.status)
    if decision.by is not None:
        status = f"{decision.stands} by {decision.by} (logged as {status})"
    parts = (*filter(None, [entered]), status, decision.participants, decision.chat_ref)
    rest = f"tags: {decision.risk_tags}; artefacts: {decision.artefacts}"
    yield f"{decision.id} {mark}{hanging(decision.title)}"
    yield hanging(f"  {'; '.join(parts)}; {rest}")
    yield f"  {hanging(decision.rationale)}"


def _history_lines(history: decisions.DecisionHistory, mark: str) -> Iterator[str]:
    """A decision, where it comes from, and what became of it."""
    decision = history.decision
    yield from _decision_lines(decision, mark)
    how = "taken in" if history.observed else f"logged by {history.actor}"
    place = f"decision {decision.number}, entry {decision.seq}, in {one_line(history.file)}"
    yield f"  {how} at {history.at}: {place}"
    for ref in history.refs:
        at = one_line(f"{ref.file}:~L{ref.line}")
        if ref.message is None:
            yield f"  {at}: bound to no message"
        else:
            handle, seconds, text = ref.message
            yield f"  {at}: [{format_time(seconds * 1_000_000)}] {handle}: {hanging(text)}"
    if history.no_ref is not None:
        yield f"  refers to no message: {hanging(history.no_ref)}"
    for old, new in pairwise((*history.earlier, decision)):
        verb = _BEFORE.get(new.status, "supersedes")
        who = "" if new is decision else f"{new.id} "
        yield f"  {who}{verb} {old.id} {one_line(old.title)}"
    for new in history.later:
        verb = _AFTER.get(new.status, "superseded by")
        who = "" if new.supersedes == decision.id else f"{new.supersedes} "
        yield f"  {who}{verb} {new.id} {one_line(new.title)}"


_SCRIBE = """\
scribe
    Exit codes: 0 ok, 1 general error (bad arguments, nothing found), 2 no log or team directory,
    3 what was given makes no entry of the log.

log TITLE
    Log a decision: its id is printed. At each pythia-interval a checkpoint event follows.

    The message that a reference was bound to is shown. Without --ref and --no-ref nothing is
    logged, and the newest messages are shown.

    Entries are never changed: a new decision names the one that it changes, by --supersedes,
    --reverses or --mitigates. The last two also set the status.

    -p, --participant HANDLE...  Who took part; once for each. By default who acts.
    -r, --rationale TEXT...  Why, in one to three sentences. [required]
    --ref REF...          The message in which it was decided, as `chat read` shows it: by its
        line (live.chat:~L342) or its number (live#14), or live#last; #14 and last where the
        team has one chat. Once for each. A reference to no message is refused.
    --no-ref REASON...    Log it though no message can be named; the reason is recorded, and
        `tripod verify` accepts it.
    --artefact TEXT...    A file or commit; once for each.
    --risk-tag TEXT...    Such as tech-debt; once for each.
    --status STATUS       decided, accepted-risk, mitigated, superseded or reversed. [default:
        decided]
    --supersedes D-N...   The decision that this one replaces; one alone.
    --reverses D-N...     The decision that this one undoes; one alone.
    --mitigates D-N...    The decision whose risk this one addresses; one alone.
    --as HANDLE           Who logs it; the team's scribe where nothing says who acts.
    --log NAME            The log that it goes into, such as live-log.md; a new name begins a
        log. By default the only log, or log.md if there are several.

query [TEXT]
    Print decisions that hold every word of TEXT and fit the filters; exit code 1 if none does.

    `observed` marks a decision that another program wrote into a log, `signed` one that has its
    actor's signature.

    Words may stand in any field, and upper and lower case are alike; what is in double quotes
    within TEXT is one word.

    --tag TEXT       Only with this risk tag.
    --status TEXT    Only with this status today, such as superseded.
    --by HANDLE      Only with this participant.
    --artefact TEXT  Only with this artefact.
    --since T        Only those logged since: 30s, 5m, 2h or 1d ago, an epoch,
        2026-02-12T14:00:00, or a day, which begins at midnight here.
    --until T        Only those logged up to then.
    --log NAME       Only of this log, such as live-log.md; of all logs by default.
    looks: always

show DECISION
    Print a decision, the messages that it refers to, and what came before and after it.

    DECISION is its id, such as D-1770900000. Exit code 1 if no decision has that id.
    looks: always

inbox
    List the events that the Scribe subscribes to and has not handled, most urgent first.

    They are chat-message, chat-mention, task-complete and assessment-posted. Listing them does not
    handle them: log what is worth logging, then give --done with the number that was printed.

    --done N     Note that all up to entry N is handled, instead of listing anything.
    --as HANDLE  Whose inbox; the team's scribe's by default.
    looks: unless --done

count
    Print how many decisions the team's logs hold.
    --log NAME  Only of this log, such as live-log.md; of all logs by default.
    looks: always

summary
    Print the newest decisions.
    -n, --last N  How many. [default: 10]
    --log NAME    Only of this log, such as live-log.md; of all logs by default.
    looks: always

export FILE
    Write the decisions into a Markdown file, for reviewers who want them in the work tree.

    FILE may be a folder: then it is decisions.md in that. The file is a copy: it says how far the
    ledger was, and is never taken in. Written again, it follows the ledger; where no decision is
    new it stays as it is. A file that no export wrote, or that was changed since, is not
    overwritten. `tripod decisions export` writes a file for each decision.

    --since T   Only those logged since, as in query; give a date for the same file each time.
    --log NAME  Only of this log, such as live-log.md; of all logs by default.

advise
    Print chat passages that sound like an unlogged decision, and entries that do not read like one.

    A person must judge them: the manuals of the checks decision-missed and decision-noise say how
    they are found and how often that is wrong. The Scribe may still log what is marked `fresh`.
    looks: always

"""
_WORKS = [_log, _query, _show, _inbox, _count, _summary, _export, _advise]
COMMANDS = {"scribe": command_group(_SCRIBE, _WORKS, {"--participant": TEXT})}

_NBS_LOG = """\
log
    nbs: LOG SUMMARY --participants=HANDLES --rationale=TEXT [--chat-ref=FILE:~Ln]
        [--artefacts=LIST] [--risk-tags=LIST] [--status=STATUS]
        [--supersedes=D-N | --reverses=D-N | --mitigates=D-N] [--bus-dir=DIR] [--as=HANDLE]
    says: log a decision; its id is printed
"""
_NBS = f"""\
nbs-scribe
{_NBS_LOG}
query
    nbs: LOG [TEXT] [--tag=TAG] [--status=STATUS] [--by=HANDLE] [--artefact=TEXT]
        [--since=T] [--until=T]
    says: print the decisions that hold every word of TEXT and fit the filters
    looks: always
count
    nbs: LOG
    says: print how many decisions there are
    looks: always
summary
    --last N  How many. [default: 10]
    nbs: LOG [--last=N]
    says: print the newest decisions, ten unless it is said otherwise
    looks: always
"""
_NBS_QUERY = """\
query
    --last N  How many.
    nbs: [PATTERN] --chat=FILE --id=D-N --last=N --by=HANDLE --tag=TAG --regex --count --superseded
    looks: always
"""
_NBS_KINDS = {"--last": NumberParam(1, MAX_LAST), "--by": TEXT}

_NBS_VERBS = command_group(_NBS, [_nbs_log, _query, _count, _summary], _NBS_KINDS).verbs

PROGRAMS = (
    NbsProgram(
        "nbs-scribe",
        _NBS_VERBS,
        command_usage(
            "nbs-scribe COMMAND LOG ...",
            _NBS_VERBS,
            """\
LOG is a decision log in any folder (.nbs/scribe/live-log.md). Lists have commas between their
items.
exit codes: 0 ok, 1 error or no match, 2 no such log, 3 what was given makes no entry""",
        ),
        front="scribe",
    ),
    NbsProgram(
        "nbs-scribe-log",
        (command_verb(_NBS_LOG, _nbs_log),),
        """\
Usage: nbs-scribe-log LOG SUMMARY --participants=HANDLES --rationale=TEXT
         [--chat-ref=FILE:~Ln] [--artefacts=LIST] [--risk-tags=LIST] [--status=STATUS]
         [--supersedes=D-N | --reverses=D-N | --mitigates=D-N] [--bus-dir=DIR] [--as=HANDLE]
Logs a decision with its event; its id is printed.
LOG is a decision log in any folder (.nbs/scribe/live-log.md); a new one is begun. Lists have
commas between their items.
STATUS is decided, accepted-risk, mitigated, superseded or reversed.
DIR is the folder of the team's events; it need not be given.
exit codes: 0 ok, 1 error, 4 bad arguments""",
        front="scribe",
        only="nbs-scribe-log LOG SUMMARY --participants=HANDLES --rationale=TEXT",
    ),
    NbsProgram(
        "nbs-scribe-query",
        (command_verb(_NBS_QUERY, _nbs_query, _NBS_KINDS),),
        """\
Usage: nbs-scribe-query --chat=FILE, and one of
  PATTERN [--regex]   entries in which the text stands, or that the regular expression fits
  --id=D-N            the decision of that id
  --last=N            the newest N decisions
  --by=HANDLE         decisions in which HANDLE took part
  --tag=TAG           decisions with the risk tag
  --superseded        entries that took the place of another, and those that are superseded
  --count             how many decisions there are
FILE is a chat of the team (.nbs/chat/live.chat); its log is .nbs/scribe/live-log.md, with its
archives. Where no log is named so, it is the team's log.md, or all that there are.
exit codes: 0 ok, 1 no match or another error, 4 bad arguments, or there is no log""",
        only="nbs-scribe-query --chat=FILE (PATTERN [--regex] | --id=D-N | --last=N | ...)",
        lost="usage",
    ),
)
