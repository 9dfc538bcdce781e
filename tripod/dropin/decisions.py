"""What the drop-in commands of the Scribe share: which log is meant, and a decision's words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from sqlite3 import OperationalError

from tripod.bus.events import NOBODY
from tripod.decisions import writer as decisions_log
from tripod.dropin.common import actor_of, known_in, may_have_ledger, team_of
from tripod.dropin.words import Words
from tripod.errors import BadArgumentError, MalformedEntryError, NotFoundError
from tripod.ledger.files import read_plain
from tripod.ledger.places import LOGS as SCRIBE
from tripod.output import remark
from tripod.projections.decisions.format import (
    NONE_YET,
    is_log,
    log_name_problem,
    parse_log_archive_name,
)
from tripod.team.team import Team

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

    A symbolic link to the log is the log. It may be in any folder: met in one that is not the
    team's, it belongs to the team from then on, with its archives. ``make`` makes its folder, as
    the original does; ``events`` is the folder of the team's events, where it is given.

    Raises:
        BadArgumentError: no team's log is called that.
        NotFoundError: no log is there.
        NoTeamError: there is no such folder.
        LedgerError: the ledger is damaged, or none can be begun.
    """
    full = _full(path)
    folder, name = os.path.split(full)
    problem = log_name_problem(name)
    if problem is not None or os.path.isdir(full):
        raise BadArgumentError(
            f"{path}: a decision log is a file whose name ends in .md and begins with no dot, such "
            f"as .nbs/{SCRIBE}/live-log.md"
        )
    if make:
        os.makedirs(folder, exist_ok=True)
    elif os.path.basename(folder) != SCRIBE and not os.path.lexists(full):
        may_be = os.path.isdir(folder) and may_have_ledger(folder)
        if not may_be:  # no ledger is begun to say so
            raise NotFoundError(f"{path}: no decision log is there; give the path of the right one")
    with team_of(SCRIBE, folder, events) as team:
        meet_log(team, full, make=make)
        yield team


def meet_log(team: Team, full: str, *, make: bool = False) -> None:
    """Have the log at a full path belong to the team, where its folder is not the team's own.

    ``make``: the log is about to be begun.

    Raises:
        BadArgumentError: what stands there is no decision log.
        NotFoundError: nothing stands there, and nothing did.
        RefusedError: the folder can hold none.
    """
    folder, name = os.path.split(full)
    front = known_in(team, SCRIBE, folder)
    if front == "" or (front is not None and _is_known(team, front + name)):
        return
    from tripod.projections.pieces import FILE_LIMIT
    from tripod.team.adopt import add_place

    try:
        data = read_plain(full, FILE_LIMIT)
    except FileNotFoundError:
        if not make:
            raise NotFoundError(
                f"{full}: no decision log is there; give the path of the right one"
            ) from None
        if parse_log_archive_name(name) is None:  # else nothing is begun there
            add_place(team, SCRIBE, folder)
        return
    except OSError as error:
        raise BadArgumentError(f"{full} cannot be read: {error.strerror or error}") from error
    if data and not is_log(name, data):
        raise BadArgumentError(f"{full} is there, and is no decision log: give another name")
    split = parse_log_archive_name(name)
    live = os.path.join(folder, f"{split[0]}.md") if split is not None else full
    if live != full and os.path.isfile(live):
        meet_log(team, live)
        return
    add_place(team, SCRIBE, folder, name)


def _is_known(team: Team, name: str) -> bool:
    """Whether the ledger has the log or archive, as far as the tables tell before they are read."""
    with suppress(OperationalError):  # the tables of another version: they are about to be folded
        row = team.store.db.execute("SELECT 1 FROM logs WHERE file = ?", (name,)).fetchone()
        return row is not None
    return False


def name_of_log(team: Team, path: str) -> str:
    """The team's name for the log at a path; for the file that a symbolic link leads to."""
    folder, name = os.path.split(_full(path))
    return (known_in(team, SCRIBE, folder) or "") + name


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
            raise MalformedEntryError(f"--{name}=... is missing: every entry of the log has it")
    request = decisions_log.judged(
        decisions_log.DecisionRequest(
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
        logged = decisions_log.log(team, request, actor=by, into=name_of_log(team, path))
    for warning in logged.warnings:
        remark(f"warning: {warning}")
    if logged.checkpoint:
        remark(f"decision {logged.number}: Pythia's review is due ({logged.checkpoint})")
    return logged.id


def _items(text: str, nothing: str = NONE_YET) -> list[str]:
    """The items of a list, given with commas; the word for an empty one stands for none."""
    items = [item.strip(" ") for item in text.split(",")]  # no line break goes unseen
    return [item for item in items if item and item != nothing]
