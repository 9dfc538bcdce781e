"""Reads the arguments of a short command of ``tripod`` without click.

Scripts and agents call the commands of the bus, the chat, the scribe and the workers all the time,
and click costs such a process a sixth of its time. So ``read_tripod_call`` reads what is written
plainly, just as click would read it. All else it leaves to click, which then says what is wrong,
prints the help, or completes a word: no message is written twice. A test holds both to the same
values, for argument lists of every sort.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tripod.cli.commands import FLAG, TOP, CommandCall, CommandGroup, Verb
from tripod.output import DOORS

if TYPE_CHECKING:
    from tripod.team.team import Team

COMPLETE = "_TRIPOD_COMPLETE"
"""The variable by which a shell asks click to complete a word."""


class TripodCall(CommandCall):
    """One call of a command of ``tripod``."""

    @contextmanager
    def team(self, start: str | None = None) -> Iterator[Team]:
        """The team that ``--team`` names, or that is found from ``start`` upwards."""
        from tripod.team.access import (  # `tripod --help` does without a team
            access_team,
            has_open_runs,
        )

        with access_team(self.values["team"], start, looks=self.looks) as team:
            if has_open_runs(team):
                from tripod.workers.worker import record_ends

                record_ends(team)
            yield team


def read_tripod_call(words: Sequence[str]) -> TripodCall | None:
    """The call that ``words`` make, if they name a short command and its arguments plainly.

    None: click has to read them. It may accept them, print a help, or say what is wrong.
    """
    name, command = (*words[:2], "", "")[:2]
    if name not in DOORS or name not in TOP or os.environ.get(COMPLETE):
        return None
    group = importlib.import_module(f"tripod.cli.{TOP[name].module}").COMMANDS[name]
    assert isinstance(group, CommandGroup)
    verb = next((verb for verb in group.verbs if verb.name == command and verb.page), None)
    values = None if verb is None else read_arguments(verb, words[2:])
    return None if verb is None or values is None else TripodCall(verb, values)


def read_arguments(verb: Verb, words: Sequence[str]) -> dict[str, Any] | None:
    """The values of a command's parameters by name, as click gives them; None: ask click.

    An option is ``--name value``, ``--name=value``, ``-n value`` or a flag's ``--name``, wherever
    it stands; behind ``--`` every word is an argument. Of an option that takes one value the last
    one counts.
    """
    options = {name: param for param in verb.params for name in param.names}
    arguments = [param for param in verb.params if not param.names]
    given: dict[str, list[Any]] = {}
    texts: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            texts += rest
        elif word[:1] != "-" or word == "-":
            texts.append(word)
        else:
            name, equals, value = word.partition("=")
            param = options.get(name)
            # `-n5`, `-n=5` and several letters behind one dash are click's.
            if param is None or (equals and (param.kind is FLAG or name[1] != "-")):
                return None
            found = value if equals else True if param.kind is FLAG else next(rest, None)
            if found is None:
                return None
            given.setdefault(param.name, []).append(found)
    for number, param in enumerate(arguments, 1):
        behind = len(arguments) - number  # what takes several texts leaves theirs to these
        end = max(0, len(texts) - behind) if param.many else 1
        if texts[:end]:
            given[param.name] = texts[:end]
        del texts[:end]
    return None if texts else _values(verb, given)


def _values(verb: Verb, given: dict[str, list[Any]]) -> dict[str, Any] | None:
    """Read each value by its kind; what is not given has its default."""
    values: dict[str, Any] = {}
    for param in verb.params:
        found = given.get(param.name, [])[0 if param.many else -1 :]
        required = param.required if param.names else not param.spelling.startswith("[")
        if not found and (required or param.env):
            return None
        try:
            read = [one if one is True else param.kind.read(one) for one in found]
        except ValueError:
            return None
        if param.many:
            values[param.name] = tuple(read)
        elif read:
            values[param.name] = read[-1]
        else:
            values[param.name] = False if param.kind is FLAG else param.default
    return values
