"""Whether each session that another one started was read, and each that started one. Pure.

A subagent is known by its id and by the session that started it: an id alone may be that of a
stranger, of the session itself, or a word that stands where an id was hidden.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from tripod.verify.sessions.items import MAIN, Call, Gap, Given, Session


class Child(NamedTuple):
    """A session, or an agent within one, by the session that started it."""

    parent: str
    id: str


class SessionTree:
    """Which sessions one file names, and which agents it has records of.

    ``whole`` are those that have a thread of their own there, ``nested`` those of which records
    stand among those of their parent. ``calls`` counts what each agent asked for, and ``reports``
    are gaps that it leaves if it made more, as the program told its parent.
    """

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.gaps: list[Gap] = []
        self.whole: set[Child] = set()
        self.nested: set[Child] = set()
        self.calls = Counter[Child]()
        self.reports: dict[Child, Gap] = {}
        self._now = ""

    def add(self, item: Session | Call | Given) -> None:
        """Note whose record it is; what others add to a file stands on no line of it."""
        if isinstance(item, Session):
            self._now = item.id
            self.sessions.append(item)
            if item.parent not in (None, item.id):
                self.whole.add(Child(item.parent or "", item.id))
        elif item.agent != MAIN and item.line:
            child = Child(self._now, item.agent)
            (self.nested if item.nested else self.whole).add(child)
            self.calls[child] += isinstance(item, Call) and not item.ran
        if isinstance(item, Given) and item.channel in ("background", "queue"):
            for report in item.text.split("</task-notification>"):
                task, made = _TASK.search(report), _MADE.match(report, report.rfind("<tool_uses>"))
                if task and made:
                    what = f"the session of subagent {task[1][:40]}"
                    gap = Gap("missing", item.line, what, "subagent", child=task[1])
                    gap = gap._replace(parent=self._now, calls=int(made[1]))
                    self.reports[Child(self._now, task[1])] = gap

    def of_child(self, gap: Gap) -> Gap:
        """A gap that a child leaves, with the session that started it."""
        return gap._replace(parent=self._now)


_TASK = re.compile(r"<task-id>([^<\s]{1,80})</task-id>")
_MADE = re.compile(r"<tool_uses>([0-9]{1,9})</tool_uses>")
"""How Claude Code ends a report of an agent that is done; its own words may have such signs."""


def is_id(name: str) -> bool:
    """Whether a text can tell one session from another: no word that was put in place of many.

    >>> [is_id(name) for name in ("a654917b9", "ses_AbC", "REDACTED", "xxxx", "000-000", "")]
    [True, True, False, False, False, False]
    """
    signs = {sign for sign in name if sign.isalnum()}
    is_mixed = any(map(str.isdigit, signs)) or name not in (name.upper(), name.lower())
    return is_mixed and len(signs) > 1


def missing_children(
    trees: Sequence[SessionTree], gaps: Sequence[Collection[Gap]]
) -> Iterator[list[Gap]]:
    """For each file those of its gaps that no child fills, and all that no child has to do with.

    Each call that started a child needs one of its own: of two that name the same, nobody can tell
    whose it is. Files of one child are copies of it, or earlier states, and a call that two files
    have, as copies of one session, counts once. A record that only tells of an agent may mean the
    one that started this session, or another one that it started.
    """
    whole = set[Child]().union(*(tree.whole for tree in trees))
    nested = set[Child]().union(*(tree.nested for tree in trees))
    calls = Counter[tuple[Child, str]]()
    for some in gaps:
        calls |= Counter((Child(gap.parent, gap.child), gap.call) for gap in some if gap.call)
    needed = Counter[Child]()
    for (child, _), number in calls.items():
        needed[child] += number
    parents: dict[str, set[str]] = {}
    for child in whole:
        parents.setdefault(child.id, set()).add(child.parent)
    known = {one.id for tree in trees for one in tree.sessions}
    made = Counter[Child]()
    for tree in trees:
        made |= tree.calls

    def is_there(gap: Gap) -> bool:
        child = Child(gap.parent, gap.child)
        if not gap.parent or not is_id(gap.child):
            return False
        # Where a call is an agent's only name, its records stand in the file of its parent.
        if child in whole or (gap.call == gap.child and child in nested):
            return needed[child] <= 1
        above = () if gap.call else parents.get(gap.parent, ())
        return any(one == child.id in known or Child(one, child.id) in whole for one in above)

    def lacks(gap: Gap) -> Iterator[Gap]:
        of_it = made[Child(gap.parent, gap.child)]
        if not is_there(gap):
            yield gap
        elif of_it < gap.calls:
            what = f"{gap.what}: its records have {of_it} of the {gap.calls} calls that it made"
            yield gap._replace(what=what)

    for tree, some in zip(trees, gaps, strict=True):
        told = [gap for child, gap in tree.reports.items() if child in whole]
        yield [lacking for gap in (*some, *told) for lacking in lacks(gap)]


def missing_parents(sessions: Sequence[Session]) -> Iterator[tuple[int, Gap]]:
    """Sessions that another one started which is not there, each by its number.

    None starts itself: there is a first one, so a circle of them lacks what began it.
    """
    there = {one.id for one in sessions if one.parent != one.id}
    begun = {one.id for one in sessions if one.parent is None or one.parent not in there}
    below: dict[str, list[str]] = {}
    for one in sessions:
        if one.parent not in (None, one.id):
            below.setdefault(one.parent or "", []).append(one.id)
    todo = list(begun)
    while todo:
        new = set(below.get(todo.pop(), ())) - begun
        begun |= new
        todo += new
    for number, one in enumerate(sessions):
        if one.parent is not None and one.parent not in there:
            what = f"the session {one.parent[:40]} that started this one"
            yield number, Gap("missing", one.line, what, "subagent")
        elif one.id not in begun:
            what = f"the first of the sessions that started {one.id[:40]}, which go in a circle"
            yield number, Gap("missing", one.line, what, "subagent")
