r"""Whom a message addresses, and how: ``@h``, ``@h!``, ``@h?``. Pure; source: spec nbs-compat C3.

``@`` and as many of ``A-Za-z0-9_-`` as follow, at most 63; none where the character before the
``@`` is one of ``A-Za-z0-9._+-``, as in an address. A ``!`` behind it interrupts, a ``?`` asks
(shells write them ``\!`` and ``\?``). Of several for one handle the strongest counts.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from projections.formats.chat import MAX_HANDLE

How: TypeAlias = Literal["mention", "query", "interrupt"]

TEAM = "team"
"""The handle that stands for everybody in the channel."""
MAX_MENTIONS = 256
"""How many handles one message addresses at most: each is an event."""

EVENTS: dict[How, tuple[str, str]] = {
    "mention": ("chat-mention", "high"),
    "query": ("chat-query", "high"),
    "interrupt": ("chat-interrupt", "critical"),
}
"""Type and priority of the event for each way to address somebody, the weakest first."""

_MENTION = r"(?<![A-Za-z0-9._+-])@([A-Za-z0-9_-]+)(?:\\?([!?]))?"
_HOW: dict[str, How] = {"": "mention", "?": "query", "!": "interrupt"}
_STRENGTH = tuple(EVENTS)


class Mention(NamedTuple):
    """A handle and how it is addressed."""

    handle: str
    how: How


def mentions(text: str) -> tuple[Mention, ...]:
    """Give those whom a text addresses, each once, in the order of their first mention.

    >>> [tuple(m) for m in mentions("@alex, (@eve!) and @@fay; not bob@example.org. @alex?")]
    [('alex', 'query'), ('eve', 'interrupt'), ('fay', 'mention')]
    """
    found: dict[str, How] = {}
    for handle, mark in re.findall(_MENTION, text) if "@" in text else ():
        if len(handle) <= MAX_HANDLE:
            how = max(found.get(handle, "mention"), _HOW[mark], key=_STRENGTH.index)
            found[handle] = how
    return tuple(Mention(handle, how) for handle, how in found.items())
