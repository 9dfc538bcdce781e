"""Five ways to tamper with a team's record, as somebody with the disk would do it.

Used by the demo; each works behind the tool's back, on files or with plain SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tripod.ledger.sqlite.damage import delete_middle_entry, rewrite_entry
from tripod.projections.chat.format import format_line
from tripod.projections.decisions.format import DecisionText, format_decision


class Tampering(NamedTuple):
    """What is done, in words; the check that must name it; and the deed on a team directory."""

    title: str
    check: str
    do: Callable[[str], None]


def _edit_log(root: str) -> None:
    path = f"{root}/scribe/log.md"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("- **Risk tags:** tech-debt", "- **Risk tags:** none", 1))


def _edit_entry(root: str) -> None:
    """Change a decision's rationale, and make its own hashes fit again."""
    rewrite_entry(f"{root}/ledger.db", "decision.logged", 6, rationale="Everybody agreed.")


def _delete_entry(root: str) -> None:
    delete_middle_entry(f"{root}/ledger.db")


def _post_assessment(root: str) -> None:
    """An assessment that no checkpoint event asked for, written as the original tool would."""
    text = (
        "## Pythia Checkpoint — 2026-11-21T21:30:00Z\n\n"
        "Decisions reviewed: D-1795294646 through D-1795294650 (5 decisions)\n\n"
        + "".join(
            f"### {name}\n\nAll is well.\n\n"
            for name in (
                "Hidden Assumptions",
                "Second-Order Risks",
                "Missing Validation",
                "Six-Month Regret Scenario",
            )
        )
        + "### Confidence\n\noverall: high\nNothing would change this assessment."
    )
    with open(f"{root}/chat/live.chat", "ab") as file:
        file.write(format_line("pythia", 1795294680, text) + b"\n")


def _forge_ref(root: str) -> None:
    """A decision appended by hand whose chat reference points beyond the chat."""
    piece = format_decision(
        DecisionText(
            id="D-1795294690",
            title="Skip the review of the migration",
            supersedes=None,
            chat_ref="live.chat:~L4711",
            participants="alex, claude",
            artefacts="—",
            risk_tags="none",
            status="decided",
            rationale="Agreed in the chat.",
        )
    )
    with open(f"{root}/scribe/log.md", "ab") as file:
        file.write(piece.encode())


TAMPERINGS: tuple[Tampering, ...] = (
    Tampering("a risk tag of a decision in log.md is edited", "append-only", _edit_log),
    Tampering(
        "an entry in the database is rewritten, and its hash with it", "chain-links", _edit_entry
    ),
    Tampering("an entry is deleted from the middle of the ledger", "sequence", _delete_entry),
    Tampering(
        "an assessment is posted that no checkpoint event asked for",
        "checkpoint-preceded",
        _post_assessment,
    ),
    Tampering(
        "a decision is logged by hand with a chat ref that leads nowhere",
        "chat-refs-resolve",
        _forge_ref,
    ),
)
