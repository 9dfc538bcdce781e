"""What the first screen and the lists of facts say, in words: coverage, ceiling, custody. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from tripod.report.markup import plural
from tripod.verify.anchors.policy import LEVELS, PEERED, PINNED, SELF, TIMESTAMPED, WITNESSED
from tripod.verify.check import (
    CANNOT_TELL,
    CLEAN,
    EXCEPT,
    FINDINGS,
    NOT_APPLICABLE,
    Outcome,
    Report,
)
from tripod.verify.isolation.rules import sights_of

if TYPE_CHECKING:
    from tripod.report.facts import TeamFacts

NO_LEDGER, UNREAD = "no ledger", "nothing could be read"
_WRITER = "could write there"  # as `custody_of_sessions` says it
_PROVES = {
    SELF: "Each entry names the hash of the one before it, so a change shows inside of the ledger.",
    PINNED: "A head was kept outside: what it covers was not changed after that.",
    PEERED: "Other replicas, which a person accepted, hold the same entries.",
    WITNESSED: "A witness saw these entries, and no other ones in their place.",
    TIMESTAMPED: "A timestamp authority vouches for when these entries were there at the latest.",
}
_LACKS = {
    SELF: (
        "Nobody outside vouches for it. Who holds its key, or its disk, could have written all of "
        "it anew, and no check here would see that."
    ),
    PINNED: "Not proved: that who keeps that head is independent, and what is true of the tail.",
    PEERED: "Not proved: that nobody has the keys of all replicas, and what is true of the tail.",
    WITNESSED: "Not proved: when it was written, and what is true of the tail.",
    TIMESTAMPED: "Not proved: what is true of the tail.",
}
_READINGS = ("pythia-isolation", "never-read")
"""The checks that say who saw what."""
_ALWAYS = "What was never recorded, and a paraphrase of a protected text, no check can see."


class Ceiling(NamedTuple):
    """The level that a ledger reaches, its rank from 1, and what that proves and cannot prove."""

    level: str
    rank: int
    of: int
    proves: str
    lacks: str


def verdict_words(report: Report) -> str:
    """The verdict of a report: clean, clean with exceptions, findings or cannot tell."""
    if report.exit_code:
        return {1: FINDINGS}.get(report.exit_code, CANNOT_TELL)
    return EXCEPT if any(one.said == EXCEPT for one in report.all_outcomes) else CLEAN


def verdict_sentence(report: Report, checks: int = 0) -> str:
    """The verdict in a few sentences, with its numbers; ``checks`` is how many there are to run."""
    if report.problem:
        return f"Nothing could be judged: {report.problem}"
    counts = Counter(outcome.verdict for outcome in report.all_outcomes)
    words = [plural(report.failures, "finding")]
    words += [plural(report.warnings, "warning")] if report.warnings else []
    words += [f"{report.accepted:,} accepted"] if report.accepted else []
    words += [f"{plural(counts[CLEAN], 'check')} {'holds' if counts[CLEAN] == 1 else 'hold'}"]
    words += [f"{counts[CANNOT_TELL]:,} cannot tell"] if counts[CANNOT_TELL] else []
    said = f"{', '.join(words)}."
    if report.untold:
        said += f" Not told, and required: {', '.join(dict.fromkeys(report.untold))}."
    excepting = [one.check for one in report.all_outcomes if one.exceptions]
    if excepting:
        said += f" With exceptions: {', '.join(dict.fromkeys(excepting))}."
    left_out = checks - max(len(one.outcomes) for one in report.parts or (report,))
    if left_out > 0:
        said += f" {plural(left_out, 'other check')} {'was' if left_out == 1 else 'were'} not run."
    since = [part.since for part in report.parts or (report,) if part.since is not None]
    if since:
        older = sum(sum(one.left_out.values()) for one in since)
        left = f"{plural(older, 'older finding')} {'is' if older == 1 else 'are'} left out"
        said += f" Only what is new since {since[0].why} counts: {left}."
    unread = sum(bool(part.problem) for part in report.parts)
    if unread:
        said += f" {unread} of {plural(len(report.parts), 'record')} could not be judged."
    return said


def coverage_lines(reports: Sequence[Report], facts: Sequence[TeamFacts]) -> Iterator[str]:
    """What was looked at; the first line is the largest."""
    entries = sum(one.head[0] for one in reports if one.head is not None)
    listed = sum(len(one.entries) for one in facts)
    unread = UNREAD if any(one.problem for one in reports) else NO_LEDGER
    yield plural(entries or listed, "entry", "entries") if entries or listed else unread
    outcomes = list(chain.from_iterable(one.outcomes for one in reports))
    counts = Counter(one.verdict for one in outcomes)
    ran = len(outcomes) - counts[NOT_APPLICABLE]
    yield f"{plural(ran, 'check')} had something to judge, {counts[NOT_APPLICABLE]} had nothing."
    untold = [one.check for one in outcomes if one.verdict == CANNOT_TELL]
    if untold:
        yield f"No verdict: {', '.join(dict.fromkeys(untold))}."
    if any(not one.has_bodies for one in facts):
        yield "Only the headers of the entries are here: what they say could not be judged."
    yield from (f"{note[:1].upper()}{note[1:]}." for one in reports for note in one.notes[:2])


def ceiling_of(reports: Sequence[Report]) -> Ceiling:
    """The lowest level that one of the ledgers reaches."""
    levels = [one.anchored.level for one in reports if one.anchored is not None]
    if not levels or len(levels) < len(reports):
        if not levels:
            lacks = "No head of it was held against anything."
            return Ceiling("not known", 0, len(LEVELS), lacks, _ALWAYS)
        levels.append(SELF)
    level = min(levels, key=LEVELS.index)
    rank = LEVELS.index(level) + 1
    return Ceiling(level, rank, len(LEVELS), _PROVES[level], f"{_LACKS[level]} {_ALWAYS}")


def custody_lines(reports: Sequence[Report], facts: Sequence[TeamFacts]) -> Iterator[str]:
    """Who could have changed the evidence; the first line is the largest."""
    marks = Counter(one.mark.partition(" ")[0] for team in facts for one in team.entries)
    total = sum(marks.values())
    signed, observed = marks["signed"], marks["observed"]
    if not total and all(one.problem or not (one.subject and one.subject.team) for one in reports):
        yield "not known"
        yield "No entry is here that says who made it."
    elif not total:
        yield "files alone" if not any(one.has_ledger for one in facts) else "nothing to read"
        yield "Who can write to these files could have changed them, and nothing would show it."
    else:
        yield f"{signed:,} of {plural(total, 'entry', 'entries')} signed"
        if signed < total:
            yield (
                "An entry without a signature is the word of who could run a command as that "
                "handle on this machine."
            )
        if observed:
            yield (
                f"{observed:,} observed: another program wrote the files, and they were read "
                "afterwards."
            )
        if marks["peer"]:
            yield f"{marks['peer']:,} recorded by other replicas."
    for name in ("never-read", "pythia-isolation", "sessions-whole"):
        words = [
            word
            for one in reports
            for outcome in one.outcomes
            if outcome.check == name
            for word in outcome.exceptions
            if _WRITER in word
        ]
        if words:
            yield from (f"{word[:1].upper()}{word[1:]}." for word in words[:3])
            return
    if any(sights_of(outcome) for one in reports for outcome in one.outcomes):
        yield "The user that an agent ran as could write where its record lay."


def sight_gaps(report: Report) -> Iterator[tuple[bool, str]]:
    """What is not known of who saw what, and why; with each, whether somebody may have seen more.

    It is not where there was nothing to judge. No table of readers is whole without these words.
    """
    if report.problem:
        yield True, "nothing could be judged, so nobody can tell who saw what"
        return
    told = {one.check: one for one in report.outcomes}
    for name in _READINGS:
        one = told.get(name)
        if one is None:
            yield True, f"{name} was not run, so nothing is known of what it looks at"
        elif one.verdict == CANNOT_TELL:
            yield True, f"{name}: {one.reason}"
        elif one.verdict == NOT_APPLICABLE:
            yield False, f"{name} had nothing to judge: {one.reason}"
        elif one.verdict == FINDINGS and not sights_of(one):
            yield True, f"{name} says nothing of any reader, and has findings: read these"


def judged_facts(report: Report) -> Iterator[tuple[str, str]]:
    """What was judged, by name."""
    subject = report.subject
    if subject is not None:
        yield from (("Team", subject.team),) if subject.team else ()
        yield "Ledger", subject.ledger or ("none that can be read" if report.problem else "none")
        yield from (("Repository", subject.repository),) if subject.repository else ()
        yield from (("History", subject.history),) if subject.history else ()
    if report.head is not None and report.head[0]:
        yield "Head", f"{plural(report.head[0], 'entry', 'entries')}, root {report.head[1]}"
    if report.sealed is not None:
        size, at, _ = report.sealed
        yield "Newest seal", f"covers {plural(size, 'entry', 'entries')}, made {at}"
    if report.since is not None:
        size, why, left_out = report.since
        names = ", ".join(f"{check} {number}" for check, number in left_out.items()) or "nothing"
        yield "Only what is new", f"since {why} ({size:,} entries); left out: {names}"


def tail_words(report: Report, first: int | None) -> str:
    """What nobody outside vouches for."""
    anchored = report.anchored
    if anchored is None:
        return "No head of this ledger was held against one from outside."
    known = "; ".join(
        f"{name} by {by} up to entry {size - 1}" for name, (size, by) in anchored.sizes.items()
    )
    if first is None and anchored.tail:
        of = plural(anchored.tail, "entry", "entries")
        return f"{of} at the end are vouched for by the ledger alone. Before: {known or 'nothing'}."
    if first is None and not known:
        return "No entry is here, and no head of this ledger is known from outside."
    if first is None:
        return f"Nothing: somebody outside vouches for each entry. {known}."
    if not known:
        return (
            f"All {plural(anchored.tail, 'entry', 'entries')}: no head of this ledger is known "
            "from outside. A pin, a commit, a peer, a witness or a timestamp would be one."
        )
    return (
        f"From entry {first} on the ledger alone vouches for what it holds: "
        f"{plural(anchored.tail, 'entry', 'entries')} besides seals and receipts. "
        f"Before it: {known}."
    )


def outcome_tone(outcome: Outcome) -> str:
    """The class that gives the verdict of a check its colour."""
    if outcome.verdict == FINDINGS:
        return "bad" if outcome.failures else "warn"
    tones = {CLEAN: "good", EXCEPT: "warn", CANNOT_TELL: "warn"}
    return tones.get(outcome.said, "none")


def outcome_tally(outcome: Outcome) -> str:
    """How many findings of each sort a check has."""
    sorts = (
        (outcome.failures, "finding", ""),
        (outcome.warnings, "warning", ""),
        (outcome.advised, "piece of advice", "pieces of advice"),
    )
    return ", ".join(plural(*one) for one in sorts if one[0])
