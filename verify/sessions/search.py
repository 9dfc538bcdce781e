"""Searches what a session gave its model for text of protected files, many texts together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.reasons import EARLIER, MAY_BE_GIVEN, Exposure, ExposureList
from tripod.verify.sessions.items import Given, Part

_TOGETHER = 16_384
"""Characters of texts that are searched together, or a little more: nearly none has protected text.

Alone each costs some 10 µs more; more of them have more words than a processor keeps at hand.
"""


class _Waiting(NamedTuple):
    """A text that is to be searched: with what was found by path of it, and the tool."""

    given: Given
    part: Part
    by_path: list[Exposure]
    tool: str | None


class TextSearch:
    """Searches texts, and keeps what is ``found`` in the order of the file.

    What is found by path while texts wait waits behind them.
    """

    def __init__(
        self, rule: NeverRule | None, protected: ProtectedText, found: ExposureList
    ) -> None:
        self.rule, self.protected, self.found = rule, protected, found
        self._waiting: list[_Waiting | Exposure] = []
        self._size = 0

    def add(self, given: Given, part: Part, by_path: list[Exposure], tool: str | None) -> None:
        """Take in a text, with what was found by path of it, and the tool that gave it."""
        self._waiting.append(_Waiting(given, part, by_path, tool))
        self._size += len(given.text)
        if self._size > _TOGETHER:
            self.end()

    def extend(self, exposures: Iterable[Exposure]) -> None:
        """Take in what was found by path."""
        if self._waiting:
            self._waiting += exposures
        else:
            self.found += exposures

    def end(self) -> ExposureList:
        """Search the texts that wait; give all that was found until now."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        texts = [one for one in waiting if isinstance(one, _Waiting)]
        together = (each for one in texts for each in (one.given.text, *one.part.joints))
        may_be_there = bool(texts) and self.protected.may_be_in(together)
        for one in waiting:
            if isinstance(one, Exposure):
                self.found.append(one)
            elif may_be_there:
                self.found += [
                    exposure_of_text(one.given, None, named=path, tool=one.tool)
                    for path in self._found_in(one.given.text, one.part)
                    if self.rule is None or not any(_is_same(each, path) for each in one.by_path)
                ]
        return self.found

    def _found_in(self, text: str, part: Part) -> Iterator[str]:
        """Protected files of which text stands in a text, or where it meets the one before it."""
        found = self.protected.found_in
        if not part.joints:
            yield from found(text)
            return
        here = list(found(text))
        yield from here
        both = dict.fromkeys(path for joint in part.joints for path in found(joint))
        told = {*here, *found(part.before)} if both else set()
        yield from (path for path in both if path not in told)


def exposure_of_text(
    given: Given, path: str | None, *, named: str | None = None, tool: str | None = None
) -> Exposure:
    """What a text exposed that a session gave: of the file at a path, or with text of a file."""
    within = given.named if named != given.named else None
    earlier = given.channel == "instructions" and not given.line
    return Exposure(
        given.line,
        given.agent,
        given.call,
        tool,
        given.channel,
        given.named if named is None else named,
        path,
        given.sure,
        shown=bool(given.text.strip()),
        doubt="" if given.sure else EARLIER if earlier else MAY_BE_GIVEN,
        within=within if named is not None else None,
    )


def _is_same(exposure: Exposure, path: str) -> bool:
    """Whether an exposure by path is that of a protected file, and says that it was shown."""
    return exposure.shown and exposure.sure and is_at(exposure, path)


def is_at(exposure: Exposure, path: str) -> bool:
    """Whether an exposure is of the file at a path, which may be the end of a longer one."""
    mine = exposure.path or ""
    return mine == path or mine.endswith(f"/{path}")
