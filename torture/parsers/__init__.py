"""The parsers that are tortured: how each is called, what may come of it, what it begins with.

A public parser that is not among them is named by a test.
"""

from __future__ import annotations

from functools import cache

from torture.parsers import files, outside, sealed
from torture.parsers.parser import Parser

__all__ = ["Parser", "parsers"]


@cache
def parsers() -> dict[str, dict[str, Parser]]:
    """Each parser by its name, in groups."""
    groups = {
        "sealed": (*sealed.notes(), *sealed.proofs(), *sealed.signed()),
        "entries": sealed.entries(),
        "team": (*files.team(), *files.names()),
        "decisions": files.decisions(),
        "settings": outside.settings_files(),
        "sessions": (*outside.sessions(), *outside.answers(), *outside.panels()),
        "commands": outside.commands_of_shells(),
    }
    return {group: {one.name: one for one in those} for group, those in groups.items()}
