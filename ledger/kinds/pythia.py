"""Kinds of Pythia's reviews (seeds: tripod-architecture; design section 8).

How her program ran is told by the kinds of agents' runs; these say what it means for the team.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Sha256

DecisionId = Annotated[str, StringConstraints(pattern=r"^D-[0-9]{1,16}$")]


class Maker(Closed):
    """The program that makes a namespace, as it was then."""

    path: Name
    sha256: Sha256


class PythiaIsolated(BodyModel):
    """How far the run ``spawn`` was kept from the chat; in the transaction that orders it.

    ``namespace``: it ran where the files of ``hidden`` (paths from the team directory) do not
    exist. ``folder``: it was told no path, and nothing kept it from looking; ``problem`` says why
    there was no namespace. ``bwrap`` is the program that made it.
    """

    spawn: Name
    level: Literal["namespace", "folder"]
    hidden: list[Name]
    problem: str | None = None
    bwrap: Maker | None = None


class PythiaAssessed(BodyModel):
    """The checkpoint event of the entry ``event`` is answered, by the chat message ``message``.

    ``run``: by the run ``spawn``. ``recorded``: it came from outside, and nothing is known of what
    its author had read. ``first`` to ``last`` are the decisions that it says to have reviewed,
    ``decisions`` how many, ``cited`` those that it names. ``content`` is what was written, whole.
    """

    event: Count
    spawn: Name | None = None
    origin: Literal["run", "recorded"]
    first: DecisionId
    last: DecisionId
    decisions: Count
    confidence: Literal["high", "medium", "low"]
    cited: list[DecisionId]
    content: Content
    sha256: Sha256
    message: Count


class PythiaFailed(BodyModel):
    """No run at the checkpoint event of the entry ``event`` gave an assessment: it stays pending.

    ``spawns`` are the runs, ``problems`` what was wrong with the last of them.
    """

    event: Count
    spawns: list[Name]
    problems: list[str]
