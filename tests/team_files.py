"""A team directory without a ledger, written as the original tools write it, at chosen times."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tripod.projections.bus.format import Event, event_name, format_event
from tripod.projections.bus.format import format_time as event_time
from tripod.projections.chat.format import (
    ChatHeader,
    chat_archive_header,
    chat_archive_name,
    format_header,
    format_line,
    format_time,
)
from tripod.projections.decisions.format import (
    DecisionText,
    format_decision,
    format_decision_log_header,
)
from tripod.verify.check import Outcome, Report
from tripod.verify.evidence import NEARBY, collect
from tripod.verify.run import run

__all__ = [
    "START",
    "Decision",
    "Said",
    "judge",
    "outcome",
    "write_chat",
    "write_event",
    "write_log",
]

START = 1_795_294_600  # epoch second of the first message


class Said(NamedTuple):
    """A message, ``at`` seconds after START."""

    at: int
    handle: str
    text: str


class Decision(NamedTuple):
    """A decision, ``at`` seconds after START."""

    at: int
    ref: str
    participants: str = "alex, claude"


def write_chat(
    root: Path, name: str, said: Sequence[Said], archived: int = 0, split: int = 0
) -> None:
    """A chat file; the first ``archived`` messages stand in an archive split off at ``split``."""
    folder = root / "chat"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [format_line(one.handle, START + one.at, one.text) + b"\n" for one in said]
    if archived:
        old = b"".join(lines[:archived])
        header = chat_archive_header(format_time(START + split), len(old))
        (folder / f"{chat_archive_name(name, START + split)}.chat").write_bytes(header + old)
    live = b"".join(lines[archived:])
    last = Said(0, "system", "") if not said else said[-1]
    header = format_header(ChatHeader(last.handle, format_time(START + last.at), ()), len(live))
    (folder / f"{name}.chat").write_bytes(header + live)


def write_log(root: Path, decisions: Sequence[Decision]) -> None:
    """A decision log."""
    (root / "scribe").mkdir(parents=True, exist_ok=True)
    text = format_decision_log_header("sample", "2026-11-21T20:56:00Z", "scribe")
    for number, one in enumerate(decisions):
        text += format_decision(
            DecisionText(
                f"D-{START + one.at}", f"Decision {number}", None, one.ref, one.participants,
                "", "", "", "Because.",
            )
        )  # fmt: skip
    (root / "scribe" / "log.md").write_text(text, encoding="utf-8")


def write_event(root: Path, at: int, type_: str, payload: str, source: str = "scribe") -> None:
    """An event that was acknowledged; of the Scribe, where nobody else is named."""
    folder = root / "events" / "processed"
    folder.mkdir(parents=True, exist_ok=True)
    us = (START + at) * 1_000_000
    event = Event(source, type_, "high", event_time(us), f"{source}:{type_}", payload)
    (folder / event_name(us, source, type_, 7)).write_bytes(format_event(event))


def judge(root: Path, nearby: int = NEARBY) -> Report:
    """The report on a team that has no ledger."""
    with collect(str(root), no_ledger=True, nearby=nearby) as evidence:
        return run(evidence)


def outcome(report: Report, check: str) -> Outcome:
    """What one check said."""
    return next(outcome for outcome in report.outcomes if outcome.check == check)
