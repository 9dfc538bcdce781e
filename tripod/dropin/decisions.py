"""What the drop-in commands of the Scribe share: which log is meant, and a decision's words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from projections.formats.decision_log import NONE_YET, log_name_problem
from tripod import scribe
from tripod.bus import NOBODY
from tripod.dropin.common import actor_of, team_of
from tripod.dropin.words import Words
from tripod.errors import BadArgumentError, MalformedEntryError
from tripod.output import remark
from tripod.team import Team

__all__ = ["OPTIONS", "SCRIBE", "log", "name_of_log", "team_of_log"]

SCRIBE = "scribe"
"""The folder of a team's log."""
OPTIONS = (
    "participants",
    "rationale",
    "chat-ref",
    "artefacts",
    "risk-tags",
    "status",
    "supersedes",
    "reverses",
    "mitigates",
    "bus-dir",
    "as",
)
"""What a decision is given by."""


@contextmanager
def team_of_log(path: str, *, make: bool = False, events: str | None = None) -> Iterator[Team]:
    """The team one of whose decision logs is the file ``path``, opened.

    A symbolic link to the log is the log. ``make`` makes its folder, as the original does;
    ``events`` is the folder of the team's events, where it is given.

    Raises:
        BadArgumentError: no team's log is called that.
        NoTeamError: there is no such folder.
        LedgerError: the ledger is damaged, or none can be begun.
    """
    full = _full(path)
    folder, name = os.path.split(full)
    problem = log_name_problem(name)
    if problem is not None or os.path.basename(folder) != SCRIBE or os.path.isdir(full):
        message = (
            f"{path}: a team's decision logs are the files {SCRIBE}/*.md in its team directory, "
            f"such as .nbs/{SCRIBE}/live-log.md. A log elsewhere is moved there, and a symbolic "
            "link by the old name may point to it"
        )
        raise BadArgumentError(message)
    if make:
        os.makedirs(folder, exist_ok=True)
    with team_of(SCRIBE, folder, events) as team:
        yield team


def name_of_log(path: str) -> str:
    """The file name of the log at a path; of the file that a symbolic link leads to."""
    return os.path.basename(_full(path))


def _full(path: str) -> str:
    return os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)


def log(words: Words) -> str:
    """Log the decision that the words of a command give: the log, the title, and options.

    Raises:
        MalformedEntryError: they make no entry of the log; nothing was recorded or begun.
    """
    path, title = words.texts
    given = words.options
    for name in ("participants", "rationale"):
        if not given.get(name, "").strip():
            message = f"--{name}=... is missing: every entry of the log has it"
            raise MalformedEntryError(message)
    request = scribe.judged(
        scribe.Request(
            title,
            _items(given["participants"]),
            given["rationale"],
            _items(given.get("chat-ref", "")),
            _items(given.get("artefacts", "")),
            _items(given.get("risk-tags", ""), nothing="none"),
            given.get("status", "decided"),
            given.get("supersedes"),
            given.get("reverses"),
            given.get("mitigates"),
        )
    )
    actor = actor_of(words)
    with team_of_log(path, make=True, events=given.get("bus-dir")) as team:
        by = None if actor == NOBODY else actor
        logged = scribe.log(team, request, actor=by, into=name_of_log(path))
    for warning in logged.warnings:
        remark(f"warning: {warning}")
    if logged.checkpoint:
        remark(f"decision {logged.number}: Pythia's review is due ({logged.checkpoint})")
    return logged.id


def _items(text: str, nothing: str = NONE_YET) -> list[str]:
    """The items of a list, given with commas; the word for an empty one stands for none."""
    items = [item.strip(" ") for item in text.split(",")]  # no line break goes unseen
    return [item for item in items if item and item != nothing]
