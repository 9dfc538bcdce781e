"""Kinds of the ledger itself, of inputs, workers' files, and what was found on disk."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Observed, Sha256
from ledger.places import added_problem, places_problem


class Opened(BodyModel):
    """The first entry: whose ledger this is, and where the team keeps its events and chats.

    ``events`` and ``chat`` are paths from the team directory, which may leave it by one ``..``, or
    absolute ones; in entries and messages the folders are called ``events`` and ``chat`` wherever
    they are.
    """

    origin: Name
    project: str
    created: str
    scribe: str
    events: Name
    chat: Name

    @model_validator(mode="after")
    def _two_places(self) -> Opened:
        problem = places_problem(self.events, self.chat)
        if problem is not None:
            raise ValueError(problem)
        return self


class PlaceAdded(BodyModel):
    """A further folder of chats or events was met: from here on it belongs to the team.

    With ``scribe`` a decision log was met: the log and its archives belong to the team, under the
    names ``<name>/<file>``, and nothing else of that folder does.

    ``path`` is a path as in the first entry; ``.`` is the team directory, ``..`` the folder around
    it. In entries and messages its chats are called ``<name>/<chat>`` and its events
    ``<name>/<file>``, wherever it is.
    """

    holds: Literal["chat", "events", "scribe"]
    name: Name
    path: Name

    @model_validator(mode="after")
    def _one_place(self) -> PlaceAdded:
        problem = added_problem(self.holds, self.name, self.path)
        if problem is not None:
            raise ValueError(problem)
        return self


class Adopted(BodyModel):
    """The past of an existing team directory ends here: entries before were taken in whole."""

    files: Count
    left_alone: list[str]


class ConfigProblem(Closed):
    """A line of the configuration that was not taken, and why."""

    line: Count
    key: str
    message: str


class ConfigChanged(BodyModel):
    """An input that people edit changed; without ``content``, and ``sha256`` empty: it went away.

    For ``events/config.yaml``, ``settings`` holds what was read from it, as decimal text or
    words, and ``problems`` what was not.
    """

    path: Name
    sha256: str
    content: Content | None = None
    settings: dict[str, str | int] | None = None
    problems: list[ConfigProblem] | None = None
    observed: Observed


class WorkerWritten(BodyModel):
    """A worker's task file, whole, as its worker left it."""

    path: Name
    sha256: Sha256
    size: Count
    content: Content
    observed: Observed


class EvidenceKept(BodyModel):
    """A log or transcript, kept by digest so that a later change of the file shows."""

    path: Name
    sha256: Sha256
    size: Count
    content: Content
    observed: Observed


class FileSeen(BodyModel):
    """A file among ours that could not be read as what its place says; kept as it is."""

    path: Name
    problem: str
    sha256: Sha256
    size: Count
    content: Content
    observed: Observed


class Displaced(BodyModel):
    """Bytes that stood where ours belong, kept before they were written over.

    ``content`` is left out where the file was missing: then it was written anew, and ``reason``
    says what was gone. ``path`` is a folder where many of its files were.
    """

    path: Name
    reason: str
    content: Content | None = None
