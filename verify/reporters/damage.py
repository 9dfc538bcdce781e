"""The damage of a ledger as text for people, and as JSON for programs (``tripod audit``).

The JSON is one object: ``what``, ``verdict``, ``exit_code``, ``size``, ``first_bad``, ``heads``,
``missing``, ``sides``, ``findings`` and ``next``, each as ``tripod.verify.damage`` defines it. An
entry has the fields of `tripod log --json`, a finding those of `tripod verify --json` that name it.
``missing`` is null or ``{"first": 40, "last": 51}``. A new field changes no meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tripod.verify.anchors.damage_heads import LedgerHead, is_made_later
from tripod.verify.check import Finding, escape, shorten
from tripod.verify.damage import Damage, DamagedEntry, DamageSide
from tripod.verify.isolation.sessions import Sight
from tripod.verify.listing import ListedEntry

_HEADS = 8  # that the text lists
_SIGHTS = 40  # readers that the text lists
_TEXT = 400  # characters of an entry's text
_SIDES = {
    "sealed": "covered by a head that fits",
    "unsealed": "linked, and covered by no head that fits",
    "bad": "bad",
    "after": "after the bad place",
    "missing": "missing",
}


def damage_value(damage: Damage) -> dict[str, Any]:
    """The damage as a value of JSON."""
    first, missing = damage.first_bad, damage.missing
    return {
        "what": damage.what,
        "verdict": damage.verdict,
        "exit_code": damage.exit_code,
        "size": damage.size,
        "first_bad": None if first is None else _entry_value(first),
        "heads": [_head_value(one) for one in damage.heads],
        "missing": missing and {"first": missing[0], "last": missing[1] - 1},
        "sides": [
            {"name": one.name, "first": one.first, "last": one.stop - 1, "says": one.sentences}
            for one in damage.sides
        ],
        "findings": {
            "altered": [_finding_value(one) for one in damage.findings.altered],
            "reviews": [_finding_value(one) for one in damage.findings.reviews],
            "readings": [_finding_value(one) for one in damage.findings.readings],
            "sights": [one._asdict() for one in damage.findings.sights],
            "accepted": [
                {**_finding_value(one), "accepted": by._asdict()}
                for one, by in damage.findings.accepted
            ],
            "accepted_count": damage.findings.accepted_count,
            "untold": [{"check": check, "why": why} for check, why in damage.findings.untold],
            "counts": [
                {"check": name, "failures": failures, "warnings": warnings}
                for name, failures, warnings in damage.findings.counts
            ],
        },
        "next": [{"command": command, "why": why} for command, why in damage.next],
    }


def _entry_value(bad: DamagedEntry) -> dict[str, Any]:
    return {
        "seq": bad.seq,
        "last": bad.last,
        "sealed": bad.sealed,
        "by": bad.check,
        "message": bad.message,
        "entry": bad.entry and bad.entry._asdict(),
        "was": bad.was and bad.was._asdict(),
        "where": bad.where,
    }


def _head_value(head: LedgerHead) -> dict[str, Any]:
    return {
        "size": head.size,
        "root": head.root,
        "source": head.source,
        "where": head.where,
        "by": head.by,
        "fits": head.fits,
        "outside": head.is_outside,
    }


def _finding_value(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "message": finding.message,
        "where": finding.where,
        "seq": finding.seq,
        "file": finding.file,
        "line": finding.line,
        "evidence": finding.evidence,
        "fingerprint": finding.fingerprint,
    }


# Text -------------------------------------------------------------------------------------------


def damage_text(damage: Damage) -> str:
    """The damage as text, ending in a line break; what strangers wrote is escaped."""
    return "\n".join(_lines(damage)) + "\n"


def _lines(damage: Damage) -> Iterator[str]:
    yield f"{escape(damage.what)}: {escape(damage.verdict)}"
    first, good = damage.first_bad, damage.good
    if first is not None:
        yield from ("", "First bad entry")
        yield from _bad_lines(first)
    if damage.size or damage.heads:
        yield from ("", "Last good seal")
        yield from _head_lines(damage, good)
    if damage.sides:
        yield from ("", "What is provable")
        for side in damage.sides:
            yield from _side_lines(side)
    if damage.findings.sights:
        yield from ("", "Who saw what")
        yield from map(_sight_line, damage.findings.sights[:_SIGHTS])
        if len(damage.findings.sights) > _SIGHTS:
            yield f"  and {len(damage.findings.sights) - _SIGHTS} more readers"
    for title, found in (
        ("Protected texts that were read", damage.findings.readings),
        ("Reviews", damage.findings.reviews),
        ("Entries, seals and heads", damage.findings.altered),
    ):
        if found:
            yield from ("", title)
            yield from _finding_lines(found)
    if damage.findings.accepted:
        yield from ("", f"Accepted findings: {damage.findings.accepted_count}")
        for one, by in damage.findings.accepted:
            yield f"  {escape(one.where)}: {one.check}: {escape(one.message)}"
            yield f"      accepted by {escape(by.actor)} in entry {by.seq}: {escape(by.reason)}"
    if damage.findings.untold:
        yield from ("", "What is not told")
        for check, why in damage.findings.untold:
            yield f"  {f'{check}: ' if check else ''}{escape(why)}"
    if damage.findings.counts:
        yield from ("", "Findings")
        for name, failures, warnings in damage.findings.counts:
            yield f"  {name:<22} {_count(failures, 'failure')}, {_count(warnings, 'warning')}"
    if damage.next:
        yield from ("", "Next")
        for command, why in damage.next:
            yield f"  {escape(command)}"
            yield f"      {why}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _bad_lines(bad: DamagedEntry) -> Iterator[str]:
    which = f"entry {bad.seq}" if bad.is_exact else f"one of the entries {bad.sealed} to {bad.last}"
    yield f"  {which} ({bad.check}): {escape(bad.message)}"
    for front, entry in (("here", bad.entry), (f"in the record on {bad.where}", bad.was)):
        if entry is not None:
            yield f"  {escape(front)}: {_entry_line(entry)}"
        elif front == "here" and bad.is_exact:
            yield "  here: there is no such entry, or it cannot be read"


def _entry_line(entry: ListedEntry) -> str:
    """An entry as `tripod log` shows it, as far as it can be read."""
    text = shorten(entry.text.replace("\n", " "), _TEXT)
    who = f"{entry.actor} ({entry.mark})" if entry.mark else entry.actor
    problem = f"[{entry.problem}]" if entry.problem else ""
    parts = (str(entry.seq), entry.at, who, entry.kind, problem, text)
    return "  ".join(escape(part) for part in parts if part)


def _head_lines(damage: Damage, good: LedgerHead | None) -> Iterator[str]:
    if not damage.heads:
        yield "  no head is known: no seal was made, and no pin, commit, receipt or peer has one"
    elif not damage.size:
        yield "  no entries could be read here that a head could be held against"
    elif good is None:
        yield "  no head that is known fits the entries"
    else:
        yield f"  {_head_line(good, damage.broken)}"
    rest = [one for one in damage.heads if one is not good]
    broken = [one for one in rest if not one.fits]
    shown = [*broken, *(one for one in rest if one.fits)][:_HEADS]
    for one in shown:
        yield f"  {_head_line(one, damage.broken)}"
    if len(rest) > len(shown):
        yield f"  and {len(rest) - len(shown)} more heads that are known"


def _head_line(head: LedgerHead, broken: LedgerHead | None) -> str:
    fits = {True: "fits", False: "DOES NOT FIT", None: "cannot be compared: they are not all here"}
    if is_made_later(head, broken):
        fits[True] = "fits what is here now, and a head of fewer entries does not"
    by = head.by or "nobody's signature"
    return (
        f"{head.size} entries, {head.source}: {escape(head.where)}, {escape(by)}: {fits[head.fits]}"
    )


def _side_lines(side: DamageSide) -> Iterator[str]:
    last = side.stop - 1
    numbers = f"entry {last}" if last == side.first else f"entries {side.first} to {last}"
    yield f"  {numbers}: {_SIDES[side.name]}"
    yield from (f"      {escape(sentence)}" for sentence in side.sentences)


def _sight_line(sight: Sight) -> str:
    """What a reader saw of a protected place: the grade, and the first reason for it."""
    role = f"{sight.role}, " if sight.role else ""
    why = f" ({sight.why[0]})" if sight.why else ""
    return f"  {escape(f'{role}{sight.who}: {sight.grade}: {sight.place}{why}')}"


def _finding_lines(found: Iterable[Finding]) -> Iterator[str]:
    for one in found:
        yield f"  {escape(one.where)}: {one.check}: {escape(one.message)}"
        yield from (f"      {escape(shorten(line))}" for line in one.evidence[:3])
