"""Pythia judged without having read the chat: shown so, shown broken, or not to be told.

**What it proves.** Of each assessment that came from a run that we recorded: what she was given has
no source but decisions, the event that asked for her and our own words to her (what leads there is
followed, and stops at a decision); no 12 words in a row of the chat stand in it, or in what she
wrote, that do not stand in the log up to her checkpoint as well; her program ran where the team's
files did not exist, by an entry of then and by its recorded command line; and no tool call or
command in what she wrote reads the chat. What the program had in that namespace and nobody looked
at (a folder that was lent, a login, variables, the network) is in the verdict: *clean, except*.
Words are compared without case, accents, other forms of a character, what is not seen and the signs
between them: a paraphrase, a translation or a passage of fewer words is not seen. Of Pythias that
ran as workers, by ``tripod worker`` or by another tool, what they were told and what their logs
show is searched for readings, which can show a breach, and never that there was none. How many
*decisions that quote the chat* (12 words in a row of what was said before) she could read is said
beside the answer, and is no finding: a decision is where the chat ends.

**Why it matters.** The reviewer is worth as much as her distance. She is given a shell, the chat is
readable, and nothing but a prompt keeps her from it.

**What a finding looks like.** ``run 3f0c2a81: its prompt holds 12 words in a row of chat live,
message 4``; ``run 3f0c2a81 was given the text of entry 7 (chat.sent, chat live, message 4)``;
``run 3f0c2a81 read the chat``, with the line; ``pythia-a0d7 read the chat``; ``the task of
pythia-a0d7 tells her to read the chat``. Posting to a chat is no reading of it. A call that found
nothing there, in a namespace, is a warning.

**What to do.** Treat that assessment as one by an insider. *Cannot tell* names its reason. She ran
without a namespace: install bubblewrap (``bwrap``). An assessment came from outside: have it made
by ``tripod pythia run``. Something was erased, or not kept: nobody can tell any more. About the
time before adoption it changes no exit code. *Clean, except*: judge what is named, lend less, or
have the policy say ``exceptions: cannot-tell``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tripod.projections.pythia.format import INSTRUCTIONS
from tripod.projections.text import RUN
from tripod.projections.text import spoken as words_of
from tripod.verify.evidence import Evidence
from tripod.verify.finding import (
    CANNOT_TELL,
    Finding,
    Findings,
    Outcome,
    Severity,
    not_applicable,
    outcome,
    shorten,
)
from tripod.verify.isolation.echo import DecisionLogText, Echo, echoes, hidden_among
from tripod.verify.isolation.reads import as_usual, breaches, plain, pythias, read_of_chat, usually
from tripod.verify.isolation.runs import TRANSCRIPT, Review, assessed_text, assessments, reviews

NAME = "pythia-isolation"
REQUIRED = True
HELP = "treat her assessment as one by an insider; let her see a snapshot of the decision log alone"
FEW = 3  # reasons that are told; of more, their number


def judge(evidence: Evidence) -> Outcome:
    """See the module."""
    found = Findings()
    workers, logs, past = _workers(evidence, found)
    runs = list(reviews(evidence))
    outside = _outside(evidence)
    past += sum(evidence.past(seq) for seq, _ in outside)
    reviewed = [run for run in runs if run.assessed is not None]
    found.extend(_unknown(evidence, {run.spawn for run in runs}))
    if not outside and not workers and not runs and not found:
        return not_applicable(
            NAME, "no assessment was posted, no Pythia was run", required=REQUIRED
        )
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
    untold: list[str] = []
    log = DecisionLogText(evidence, [INSTRUCTIONS])
    echoed = echoes(evidence, log, runs)
    seen["decisions that quote the chat"] = len(echoed.quoting)
    if runs:
        seen["chat texts"] = echoed.compared
        found.extend(_echoed(echoed.found))
        for run in runs:
            found.extend(_sources(evidence, log, run))
            found.extend(_wrote(evidence, run))
        untold = [reason for run in reviewed for reason in _untold(run, echoed.erased_for(run))]
    if outside or workers:
        untold.append(_unproved(outside, workers, logs))
    is_past = past == len(outside) + workers and len(untold) == 1 and bool(past)
    told = outcome(NAME, found, dict(seen), required=REQUIRED)
    told = replace(told, exceptions=tuple(_exceptions(reviewed)))
    # A warning is no answer: what cannot be told about another run stays untold.
    if found.of("failure") or (found and (not untold or is_past)):
        return told
    if not untold and not reviewed:
        several = "1 run of hers shows" if len(runs) == 1 else f"{len(runs)} runs of hers show"
        reason = f"no assessment was posted; {several} no reading of the chat"
        return not_applicable(NAME, reason, required=REQUIRED)
    if not untold:
        return told
    more = [f"and {len(untold) - FEW} more"] if len(untold) > FEW else []
    reason = "; ".join(untold[:FEW] + more)
    return replace(told, verdict=CANNOT_TELL, reason=reason, past=is_past)


def _exceptions(reviewed: Sequence[Review]) -> Iterator[str]:
    """What those runs had that nobody looked at, each once, with the runs."""
    runs: dict[str, list[Review]] = {}
    for run in reviewed:
        for exception in run.exceptions:
            runs.setdefault(exception, []).append(run)
    for exception, having in sorted(runs.items()):
        who = _named(having[0]) if len(having) == 1 else f"{len(having)} runs"
        yield f"{exception}: {who}"


def _workers(evidence: Evidence, found: Findings) -> tuple[int, int, int]:
    """Pythias that ran as workers, their logs, how many of them lie in the past.

    Their breaches are added to ``found``.
    """
    workers = logs = past = 0
    for worker in pythias(evidence):
        workers += 1
        past += evidence.past(worker.seq)
        has_log, breached = breaches(evidence, worker)
        logs += has_log
        for message, where, line, at in breached:
            old, severity = evidence.adopted(at), evidence.severity(at)
            found.add(_finding(message, where, at, (line,), severity, adopted=old))
    return workers, logs, past


def _outside(evidence: Evidence) -> list[tuple[int, str]]:
    """Assessments that no run of ours gave: their message, and where that stands."""
    rows = evidence.query("SELECT message, origin FROM assessments ORDER BY message")
    ours = {message for message, origin in rows if origin == "run"}
    places = {
        posted.seq: f"chat {posted.channel}, message {posted.number}"
        for posted in assessments(evidence)
        if posted.seq not in ours
    }
    for message, origin in rows:
        if origin != "run":
            places.setdefault(message, f"entry {message}")
    return sorted(places.items())


def _unknown(evidence: Evidence, runs: set[str]) -> Iterator[Finding]:
    """Assessments that are said to come from a run which never was."""
    rows = evidence.query("SELECT seq, spawn FROM assessments WHERE origin = 'run' ORDER BY seq")
    for seq, spawn in rows:
        if spawn not in runs:
            message = f"it is said that run {str(spawn)[:8]} wrote this assessment: Pythia had none"
            yield _finding(message, f"entry {seq}", seq)


def _unproved(outside: Sequence[tuple[int, str]], workers: int, logs: int) -> str:
    """What nobody can tell of assessments from outside, and of workers."""
    words = []
    if outside:
        named = ", ".join(where for _, where in outside[:FEW])
        named += f" and {len(outside) - FEW} more" if len(outside) > FEW else ""
        words.append(
            f"{len(outside)} assessment{'s' * (len(outside) != 1)} came from outside ({named}), "
            "no transcript of her sessions was kept"
        )
    if workers:
        words.append(
            f"{logs} log{'s' * (logs != 1)} and {workers} task file{'s' * (workers != 1)} show no "
            "reading of the chat, which proves nothing"
        )
    return "; ".join(words)


# Her runs ----------------------------------------------------------------------------------------


def _named(run: Review) -> str:
    return f"run {run.spawn[:8]}"


def _echoed(found: Iterable[Echo]) -> Iterator[Finding]:
    """Texts of hers that echo the chat."""
    for echo in found:
        what = "a line" if echo.line else f"{RUN} words in a row"
        verb = "repeats" if echo.text.sources is None else "holds"
        more = f", and of {echo.more} more message{'s' * (echo.more != 1)}" if echo.more else ""
        message = f"{_named(echo.run)}: {echo.text.what} {verb} {what} of {echo.said.where}{more}"
        yield _finding(message, f"entry {echo.text.seq}", echo.text.seq, (echo.words,))


def _sources(evidence: Evidence, log: DecisionLogText, run: Review) -> Iterator[Finding]:
    """Entries that she may not see, behind what she was given."""
    for text in run.given:
        hidden = sorted(hidden_among(evidence, log, text.sources or (), text.seq))
        for seq, what in hidden[:FEW]:
            message = f"{_named(run)} was given the text of entry {seq} ({what})"
            yield _finding(message, f"entry {text.seq}", text.seq)
        if len(hidden) > FEW:
            message = f"{_named(run)} was given {len(hidden) - FEW} more that she may not see"
            yield _finding(message, f"entry {text.seq}", text.seq)


def _wrote(evidence: Evidence, run: Review) -> Iterator[Finding]:
    """What is false about a run, and the readings of the chat that it shows."""
    for problem in run.false:
        yield _finding(f"{_named(run)}: {problem}", f"entry {run.seq}", run.seq)
    said = None if run.assessed is None else assessed_text(evidence, run.assessed)
    if said is not None and not run.unread and not _wrote_it(run, said):
        message = f"the assessment is not what {_named(run)} wrote"
        yield _finding(message, f"entry {run.assessed}", run.assessed or run.seq)
    hers = set((said or "").split("\n"))
    elsewhere = usually(evidence.places)
    apart = run.level == "namespace"
    message = (
        f"{_named(run)} tried to read the chat, and there was none"
        if apart
        else (f"{_named(run)} read the chat")
    )
    for text in run.wrote:
        severity: Severity = "warning" if apart else "failure"
        for line in text.calls:
            if line not in hers and read_of_chat(as_usual(line, elsewhere)):
                yield _finding(message, f"entry {text.seq}", text.seq, (line.strip(),), severity)


def _wrote_it(run: Review, assessment: str) -> bool:
    # What commands a terminal is left out of her output, in whichever form it stands there.
    words = " ".join(words_of(plain(assessment)))
    # A line that looks like one of a stream may be a part of it: so both readings count.
    texts = (one for text in run.wrote for one in (text.text, text.raw))
    return any(words in " ".join(words_of(plain(text))) for text in texts)


def _untold(run: Review, erased: int) -> Iterator[str]:
    """Why nobody can tell of a run whether it kept away."""
    for problem in run.unread:
        yield f"{_named(run)}: {problem}"
    if not run.level:
        yield f"{_named(run)}: no entry says how it was kept from the chat"
    elif run.level != "namespace":
        why = f" ({run.apart})" if run.apart else ""
        yield (
            f"{_named(run)} ran in a folder, not in a namespace{why}: what it was given holds no "
            "chat, and nothing kept it from reading the files by their path"
        )
    elif run.bare:
        yield f"{_named(run)}: nothing says that {', '.join(run.bare)} did not exist where it ran"
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
    shown = tuple(shorten(line) for line in lines)
    return Finding(NAME, message, where, shown, HELP, severity, before_adoption=adopted, seq=seq)
