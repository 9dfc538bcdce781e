"""The code of each reader is proved: none that gives an item can go without a specimen turning."""

import sys
from collections import Counter
from types import ModuleType

import pytest
from judge_mutants import Mutant, at_most, module_of, mutants_of
from session_specimens import SECRET, SESSIONS, SPECIMENS, STARTS, Record

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.exposure import SessionExposures, judge_exposures
from tripod.verify.sessions.items import CHANNELS, Reader, SessionRecord
from tripod.verify.sessions.readers import READERS, read_session

RULE, PROTECTED = NeverRule(["chat/**"]), ProtectedText()
PROTECTED.add("chat/a.md", SECRET)
Judged = tuple[str, frozenset[object]]
GIVES = ("yield", "return", "found =", "found +=", "odd +=")
"""How a reader gives items, or keeps them until it does."""

ELSEWHERE = {
    "ClaudeCode.read: gone: odd += (self._now,)": "test_rules",
    'ClaudeCode._attachment: gone: yield from self.strange_type(record, f"attachment.{several}", '
    "file)": "test_reader_shapes",
    'Codex._other: gone: yield self.given(record, "instructions", agents)': "test_rollouts",
    "Codex._other: gone: yield from self._agents(record, "
    'f"# AGENTS.md instructions for {place}")': "test_rollouts",
    'Codex._order: gone: yield Gap("order", record.line, f"no ordinal, after {self._ordinal}")':
        "test_rollouts",
    "Codex._custom: gone: yield from self._untold(self._scripts.pop(0))":
        "no test: of very many scripts the older ones are told before the end",
    "Gemini.end: gone: yield from super().end()": "test_reader_shapes",
    'Gemini._tool: gone: yield Gap("opaque", record.line, what, self.channels.get(name, "tool"))':
        "test_reader_shapes",
    "Gemini.parts: gone: yield from strange_text(record, parts)":
        "no test: what is neither a list nor a text has no text",
}  # fmt: skip
"""What no specimen proves, and which tests do: each was tried."""


def _judged(reader: type[Reader], records: list[Record]) -> Judged:
    one = SessionExposures(RULE, PROTECTED, "", frozenset(("instructions", "home")))
    numbered = [SessionRecord(number, 0, value) for number, value in enumerate(records, 1)]
    try:
        with at_most(2):
            for item in read_session(reader(), numbered):
                one.add(item)
    except Exception as error:  # noqa: BLE001  a mutant may raise anything
        return type(error).__name__, frozenset()
    one.end()
    return judge_exposures([one], Counter()).told, frozenset((*one.found, *one.gaps))


def _readers(module: ModuleType) -> dict[str, type[Reader]]:
    found = (one for one in vars(module).values() if isinstance(one, type))
    own = [one for one in found if issubclass(one, Reader) and one.__module__ == module.__name__]
    return {one.program: one for one in own}


def _turned(mutant: Mutant) -> set[str]:
    """The channels of the specimens that turn with a mutant."""
    readers = _readers(module_of(mutant.module, mutant.source))
    found = set[str]()
    for program, channel, records in SPECIMENS:
        if program in readers and channel not in found:
            whole = [*STARTS[program], *records]
            if _judged(readers[program], whole) != _judged(READERS[program], whole):
                found.add(channel)
    mine = [(program, whole) for program, whole in SESSIONS if program in readers and not found]
    for program, whole in mine:
        if _judged(readers[program], whole) != _judged(READERS[program], whole):
            found.add("")
    return found


MODULES = list(dict.fromkeys(sys.modules[reader.__module__] for reader in READERS.values()))


@pytest.mark.drawn
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_nothing_that_a_reader_gives_can_go_unseen(module: ModuleType) -> None:
    unseen = []
    for mutant in mutants_of(module):
        if mutant.kind == "gone" and mutant.before.startswith(GIVES):
            turned = _turned(mutant)
            named = [name for name in CHANNELS if f', "{name}"' in mutant.before]
            if len(named) == 1 and "self.given(" in mutant.before:
                assert turned <= {*named, ""}, mutant.name
            if not turned:
                unseen.append(mutant.name)
    of_it = {name for name in ELSEWHERE if name.partition(".")[0] in dir(module)}
    assert {*unseen} == of_it


@pytest.mark.parametrize(("program", "records"), SESSIONS)
def test_a_session_that_lacks_something_is_not_clean(program: str, records: list[Record]) -> None:
    assert _judged(READERS[program], records)[0] == "cannot tell"


TOOLS = [(program, tool) for program, reader in READERS.items() for tool in reader.tools]


@pytest.mark.drawn
@pytest.mark.parametrize(("program", "tool"), TOOLS, ids=lambda one: one)
def test_a_tool_that_no_table_has_turns_its_specimens_and_no_other(
    program: str, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = READERS[program]
    channel, own = reader.tools[tool].channel, f'"{tool}"'
    mine = [(one, records) for of, one, records in SPECIMENS if of == program]
    before = [_judged(reader, [*STARTS[program], *records]) for _, records in mine]
    rest = {name: use for name, use in reader.tools.items() if name != tool}
    monkeypatch.setattr(reader, "tools", rest)
    turned = [
        (one, own in repr(records).replace("'", '"'))
        for (one, records), whole in zip(mine, before, strict=True)
        if _judged(reader, [*STARTS[program], *records]) != whole
    ]
    assert (channel, True) in turned
    # Where a program says what it ran in a record of its own, no tool is named.
    assert all(is_own or one == channel for one, is_own in turned)
