"""Pythia judged without having read the chat: shown so, shown broken, or not to be told.

**What it proves.** For each assessment that came from a run recorded in the ledger, four things.
The input has no source but decisions, the event that asked for the review and this project's own
instructions (sources of sources are followed, up to a decision). Neither the input nor the output
has 12 consecutive words of the chat, unless the log up to the checkpoint has them as well. The
program ran where the team's files did not exist; an entry of that time and the recorded command
line show it. No tool call or command in the output reads the chat. What the program had in its
namespace and the check cannot judge (a lent folder, a login, variables, the network) is part of the
verdict: *clean, except*. Words are compared without case, accents, variant and invisible characters
and punctuation. The check does not see a paraphrase, a translation or a shorter passage. For a
Pythia that ran as a worker, by ``tripod worker`` or by another tool, the check searches its task
and its logs for readings of the chat; this can show a breach, and cannot show that there was none.
Commands count by the files that they open; without the extra ``sessions``, a command that is not a
plain list of words counts by the files that it names.
An imported session of Pythia is judged as by a rule ``never`` on the team's chats: by each path,
and by their words in what the model was given. It is Pythia's by the run, by the worker's name or
task, by the type of the subagent, or by a folder or an id to which the policy gives the role
``pythia`` (``roles``; where no session here has such a role, it cannot be told); so are sessions
that it started. What cannot be seen of it cannot be told, and what was found on disk is an
exception: the user that the agent ran as could write there.
Where a run is recorded, the number of *decisions that quote the chat* (12 consecutive words of an
earlier message), which the reviewer could read, is printed beside the verdict. It is no finding: a
decision may quote the chat.

**Why it matters.** An assessment is worth something only if the reviewer did not read the chat. The
reviewer has a shell, the chat is readable, and only a prompt forbids it.

**What a finding looks like.** ``run 3f0c2a81: its prompt holds 12 words in a row of chat live,
message 4``; ``run 3f0c2a81 was given the text of entry 7 (chat.sent, chat live, message 4)``; ``run
3f0c2a81 read the chat``, with the line; ``pythia-a0d7 read the chat``; ``the task of pythia-a0d7
tells the reviewer to read the chat``; ``session 34b9, subagent a1 (pythia) was shown
.nbs/chat/live.chat (read, line 812)``. Posting to a chat does not count as reading it. A call that
found nothing, because it ran in a namespace, is a warning.

**What to do.** Treat that assessment as one by an insider. *Cannot tell* names its reason. The
reviewer ran without a namespace: install bubblewrap (``bwrap``). An assessment came from outside:
repeat it with ``tripod pythia run``. A session is opaque, damaged or gone: import it with
``--keep``. A text was erased, or not stored: this cannot be settled any
more. For the time before adoption the verdict changes no exit code. *Clean, except*: judge what is
named, lend less, or set ``exceptions: cannot-tell`` in the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tripod.ledger.words import RUN
from tripod.ledger.words import words_of_text as words_of
from tripod.projections.pythia.format import INSTRUCTIONS
from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Findings,
    Outcome,
    Severity,
    fault_of_texts,
    not_applicable,
    outcome,
    shorten,
)
from tripod.verify.isolation.breach import ChatRule, without_terminal_codes
from tripod.verify.isolation.echo import DecisionLogPhrases, Echo, echoes, hidden_echo_sources
from tripod.verify.isolation.rules import (
    RuleJudged,
    TeamSession,
    bound_by,
    custody_of_sessions,
    judge_never,
    roles_of_nobody,
    sessions_of_runs,
    sights_of_rule,
    team_sessions,
    with_sights,
)
from tripod.verify.isolation.runs import (
    ROLE,
    TRANSCRIPT,
    ReviewRun,
    assessed_run_text,
    assessments_of_runs,
    breaches,
    review_runs,
    reviewer_workers,
)
from tripod.verify.isolation.sessions import NOTHING, UNTOLD, Never, Sight, SightGrade

NAME = "pythia-isolation"
REQUIRED = True
NEEDS = (TABLES,)
HELP = "treat this assessment as one by an insider; give the reviewer the decision log alone"
PLACE = "the team's chats"
"""What a reviewer must not see, in words."""
UNPROVED = "it came from outside, and no session says which files its author had read"
UNPROVED_WORKER = "its task and its log show no reading of the chat, which proves nothing"
FEW = 3  # reasons that are told; of more, their number


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    found = Findings()
    sights = list[Sight]()
    workers, logs, past = _workers(evidence, found, sights)
    runs = list(review_runs(evidence))
    outside = _outside(evidence)
    past += sum(evidence.past(seq) for seq, _ in outside)
    reviewed = [run for run in runs if run.assessed is not None]
    found.extend(_unknown(evidence, {run.spawn for run in runs}))
    imported = team_sessions(evidence)
    sessions = bound_by(_never(evidence), imported)
    nobody = list(roles_of_nobody(evidence, imported, of_pythia=True))
    if not (outside or workers or runs or sessions or found or nobody):
        return not_applicable(NAME, "no assessment was posted, no Pythia was run")
    seen = {
        "assessments": len(outside) + len(reviewed),
        "from outside": len(outside),
        "runs": len(runs),
        "in a namespace": sum(run.level == "namespace" for run in reviewed),
        "in a folder": sum(run.level == "folder" for run in reviewed),
        "with the network": sum(run.network for run in reviewed),
        "workers": workers,
        "logs": logs,
        "transcripts": sum(text.what == TRANSCRIPT for run in runs for text in run.wrote),
    }
    untold = _reviewed(evidence, runs, found, seen, sights) if runs else []
    if outside or workers:
        untold.append(_unproved(outside, workers, logs, len(sessions)))
    sights += (Sight(ROLE, where, PLACE, UNTOLD, (UNPROVED,), seq) for seq, where in outside)
    judged = list(_judged(evidence, sessions, runs, found, seen, sights=sights))
    unseen = [*nobody, *(why for told in judged for why in told.untold)]
    untold += unseen
    is_past = past == len(outside) + workers and len(untold) == 1 and bool(past)
    told = outcome(NAME, found, seen)
    custody = custody_of_sessions(evidence, sessions, judged) if sessions else ()
    exceptions = (*_exceptions(reviewed), *custody)
    told = with_sights(replace(told, exceptions=exceptions), sights)
    # A warning is no answer: what cannot be told about another run stays untold. Of sessions that
    # stays so beside a failure too: a person who accepts this has not said that the rest is so.
    if (found.of("failure") and not unseen) or (found and (not untold or is_past)):
        return told
    if not untold and not reviewed and not sessions:
        several = "1 review run shows" if len(runs) == 1 else f"{len(runs)} review runs show"
        reason = f"no assessment was posted; {several} no reading of the chat"
        return not_applicable(NAME, reason)
    if not untold:
        return told
    more = [f"and {len(untold) - FEW} more"] if len(untold) > FEW else []
    reason = "; ".join(untold[:FEW] + more)
    return told.cannot_tell(reason, past=is_past)


def _reviewed(
    evidence: Evidence,
    runs: Sequence[ReviewRun],
    found: Findings,
    seen: dict[str, int],
    sights: list[Sight],
) -> list[str]:
    """Judge the runs; give why nobody can tell of those that led to an assessment."""
    log = DecisionLogPhrases(evidence, [INSTRUCTIONS])
    echoed = echoes(evidence, log, runs)
    seen["decisions that quote the chat"] = len(echoed.quoting)
    seen["chat texts"] = echoed.compared
    found.extend(_echoed(echoed.found))
    untold: list[str] = []
    for run in runs:
        broken = [*_sources(evidence, log, run), *_wrote(evidence, run)]
        found.extend(broken)
        why = list(_untold(run, echoed.erased_for(run)))
        untold += why if run.assessed is not None else ()
        words = [one.message for one in broken if one.severity == "failure"]
        words += (one.message for one in _echoed(one for one in echoed.found if one.run is run))
        grade: SightGrade = "shown" if words else UNTOLD if why else NOTHING
        sights.append(Sight(ROLE, _named(run), PLACE, grade, tuple(words or why), run.seq))
    return untold


def _exceptions(reviewed: Sequence[ReviewRun]) -> Iterator[str]:
    """What those runs had that nobody looked at, each once, with the runs."""
    runs: dict[str, list[ReviewRun]] = {}
    for run in reviewed:
        for exception in run.exceptions:
            runs.setdefault(exception, []).append(run)
    for exception, having in sorted(runs.items()):
        who = _named(having[0]) if len(having) == 1 else f"{len(having)} runs"
        yield f"{exception}: {who}"


def _workers(evidence: Evidence, found: Findings, sights: list[Sight]) -> tuple[int, int, int]:
    """Pythias that ran as workers, their logs, how many are past; their breaches are added."""
    workers = logs = past = 0
    for worker in reviewer_workers(evidence):
        workers += 1
        past += evidence.past(worker.seq)
        has_log, breached = breaches(evidence, worker)
        logs += has_log
        breached = list(breached)
        grade: SightGrade = "opened" if breached else UNTOLD
        why = tuple(message for message, *_ in breached) or (UNPROVED_WORKER,)
        sights.append(Sight(ROLE, f"worker {worker.name}", PLACE, grade, why, worker.seq))
        for message, where, line, at in breached:
            old, severity = evidence.adopted(at), evidence.severity(at)
            found.add(_finding(message, where, at, (line,), severity, adopted=old))
    return workers, logs, past


def _never(evidence: Evidence) -> Never:
    """The rule on the team's chats, as a rule of a policy says such a thing."""
    rule = ChatRule(evidence.places).never
    return Never(rule.never, rule.but, ROLE)


def _judged(
    evidence: Evidence,
    sessions: Sequence[TeamSession],
    runs: Sequence[ReviewRun],
    found: Findings,
    seen: dict[str, int],
    *,
    sights: list[Sight],
) -> Iterator[RuleJudged]:
    """Judge imported sessions of Pythia as by a rule of a policy; give what it came to.

    Of a run in a namespace that counts which shows what reached it: there were no files of the
    team, whatever its commands would have read elsewhere.
    """
    if not sessions:
        return
    apart = {run.spawn for run in runs if run.level == "namespace" and not run.gap}
    kept = {session for session, spawn, _ in sessions_of_runs(evidence) if spawn in apart}
    own = [INSTRUCTIONS, *_assessments(evidence)]
    seen["sessions"] = len(sessions)
    seen["read again"] = 0
    for is_apart in (False, True):
        these = [one for one in sessions if bool({one.session, one.parent} & kept) is is_apart]
        if not these:
            continue
        (told,) = judge_never(evidence, [(_never(evidence), these)], own)
        seen["read again"] += told.seen["read again"]
        for one in told.breaches:
            by_path = one.exposure.path is not None
            severity: Severity = "warning" if is_apart and by_path else "failure"
            first = one.session.first  # so that it keeps its id when the session is imported again
            found.add(_finding(one.message, f"entry {first}", first, severity=severity))
        if is_apart:
            told.untold.clear()
            told.why.clear()
            told.breaches = [one for one in told.breaches if one.exposure.path is None]
        sights += sights_of_rule(PLACE, these, told)
        yield told


def _assessments(evidence: Evidence) -> Iterator[str]:
    """The assessments that stand in the chat: they are the reviewer's own words."""
    rows = evidence.query("SELECT message FROM assessments")
    seqs = {seq for (seq,) in rows} | {posted.seq for posted in assessments_of_runs(evidence)}
    yield from (evidence.text(seq, "text") or "" for seq in sorted(seqs))


def _outside(evidence: Evidence) -> list[tuple[int, str]]:
    """Assessments that no run of ours gave: their message, and where that stands."""
    sql = "SELECT message, origin FROM assessments WHERE NOT merged ORDER BY message"
    rows = evidence.query(sql)
    ours = {message for message, origin in rows if origin == "run"}
    places = {
        posted.seq: f"chat {posted.channel}, message {posted.number}"
        for posted in assessments_of_runs(evidence)
        if posted.seq not in ours
    }
    for message, origin in rows:
        if origin != "run":
            places.setdefault(message, f"entry {message}")
    return sorted(places.items())


def _unknown(evidence: Evidence, runs: set[str]) -> Iterator[Finding]:
    """Assessments that are said to come from a run which never was."""
    sql = "SELECT seq, spawn FROM assessments WHERE origin = 'run' AND NOT merged ORDER BY seq"
    for seq, spawn in evidence.query(sql):
        if spawn not in runs:
            message = f"it is said that run {str(spawn)[:8]} wrote this assessment: Pythia had none"
            yield _finding(message, f"entry {seq}", seq)


def _unproved(outside: Sequence[tuple[int, str]], workers: int, logs: int, sessions: int) -> str:
    """What nobody can tell of assessments from outside, and of workers."""
    words = []
    if outside:
        named = ", ".join(where for _, where in outside[:FEW])
        named += f" and {len(outside) - FEW} more" if len(outside) > FEW else ""
        lacks = "no transcript of Pythia's sessions was kept"
        if sessions:
            lacks = "and nothing says which session of Pythia they are from"
        words.append(
            f"{len(outside)} assessment{'s' * (len(outside) != 1)} came from outside ({named}), "
            + lacks
        )
    if workers:
        words.append(
            f"{logs} log{'s' * (logs != 1)} and {workers} task file{'s' * (workers != 1)} show no "
            "reading of the chat, which proves nothing"
        )
    return "; ".join(words)


def _named(run: ReviewRun) -> str:
    return f"run {run.spawn[:8]}"


def _echoed(found: Iterable[Echo]) -> Iterator[Finding]:
    """Texts of the reviewer that repeat the chat."""
    for echo in found:
        what = "a line" if echo.line else f"{RUN} words in a row"
        verb = "repeats" if echo.text.sources is None else "holds"
        more = f", and of {echo.more} more message{'s' * (echo.more != 1)}" if echo.more else ""
        message = f"{_named(echo.run)}: {echo.text.what} {verb} {what} of {echo.said.where}{more}"
        yield _finding(message, f"entry {echo.text.seq}", echo.text.seq, (echo.words,))


def _sources(evidence: Evidence, log: DecisionLogPhrases, run: ReviewRun) -> Iterator[Finding]:
    """Entries that the reviewer may not see, among the sources of what it was given."""
    for text in run.given:
        hidden = sorted(hidden_echo_sources(evidence, log, text.sources or (), text.seq))
        for seq, what in hidden[:FEW]:
            message = f"{_named(run)} was given the text of entry {seq} ({what})"
            yield _finding(message, f"entry {text.seq}", text.seq)
        if len(hidden) > FEW:
            message = f"{_named(run)} was given {len(hidden) - FEW} more that it may not see"
            yield _finding(message, f"entry {text.seq}", text.seq)


def _wrote(evidence: Evidence, run: ReviewRun) -> Iterator[Finding]:
    """What is false about a run, and the readings of the chat that it shows."""
    for problem in run.false:
        yield _finding(f"{_named(run)}: {problem}", f"entry {run.seq}", run.seq)
    said = None if run.assessed is None else assessed_run_text(evidence, run.assessed)
    if said is not None and not run.unread:
        # Terminal control sequences are left out of the output, in every form. A line that looks
        # like one of a stream may be a part of it, so both readings count.
        words = " ".join(words_of(without_terminal_codes(said)))
        texts = (without_terminal_codes(one) for text in run.wrote for one in (text.text, text.raw))
        if not any(words in " ".join(words_of(text)) for text in texts):
            message = f"the assessment is not what {_named(run)} wrote"
            yield _finding(message, f"entry {run.assessed}", run.assessed or run.seq)
    own = {line.strip() for line in (said or "").split("\n")}
    apart = run.level == "namespace"
    did = "tried to read the chat, and there was none" if apart else "read the chat"
    severity: Severity = "warning" if apart else "failure"
    for text in run.wrote:
        for line in text.readings:
            if line not in own:
                message = f"{_named(run)} {did}"
                yield _finding(message, f"entry {text.seq}", text.seq, (line,), severity)


def _untold(run: ReviewRun, erased: int) -> Iterator[str]:
    """Why nobody can tell of a run whether it kept away."""
    for problem in run.unread:
        yield f"{_named(run)}: {problem}"
    if not run.level:
        yield f"{_named(run)}: no entry says how it was kept from the chat"
    elif run.level != "namespace":
        why = f" ({run.gap})" if run.gap else ""
        yield (
            f"{_named(run)} ran in a folder, not in a namespace{why}: what it was given holds no "
            "chat, and nothing kept it from reading the files by their path"
        )
    elif run.gap:
        yield f"{_named(run)}: nothing says that {run.gap} did not exist where it ran"
    if erased:
        what = "1 message was" if erased == 1 else f"{erased} messages were"
        yield f"{_named(run)}: {what} erased, and cannot be compared"


def _finding(
    message: str,
    where: str,
    seq: int,
    lines: Sequence[str] = (),
    severity: Severity = "failure",
    *,
    adopted: bool = False,
) -> Finding:
    shown, fault = tuple(shorten(line) for line in lines), fault_of_texts(message, *lines)
    return Finding(
        NAME, message, where, shown, HELP, severity, before_adoption=adopted, seq=seq, fault=fault
    )
