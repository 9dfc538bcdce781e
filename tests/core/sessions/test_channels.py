"""Each channel of each reader's table is proved: without its handling, its specimens turn."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_args

import pytest
from recorded_sessions import items_of, transcripts
from session_specimens import SECRET, SPECIMENS, STARTS, Record

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.reasons import Exposure
from tripod.verify.sessions.exposure import (
    SessionExposures,
    judge_exposures,
)
from tripod.verify.sessions.items import (
    CHANNELS,
    Call,
    Channel,
    Gap,
    Given,
    Item,
    Session,
    SessionRecord,
    Way,
)
from tripod.verify.sessions.readers import READERS, read_session

FILE = "chat/a.md"
CLOSED = frozenset[Channel](("instructions", "home"))
NO_CEILING = ("claude-code", "codex", "copilot", "gemini", "opencode")
"""Programs of which a session can be clean, with its project where that is needed."""


def _items(program: str, records: Iterable[Record]) -> list[Item]:
    numbered = [SessionRecord(number, 0, one) for number, one in enumerate(records, 1)]
    return list(read_session(READERS[program](), numbered))


def _judged(items: Iterable[Item]) -> tuple[str, frozenset[Any]]:
    """The verdict, with everything that it rests on."""
    protected = ProtectedText()
    protected.add(FILE, SECRET)
    one = SessionExposures(NeverRule(["chat/**"]), protected, "", CLOSED)
    for item in items:
        one.add(item)
    one.end()
    return judge_exposures([one], Counter()).told, frozenset((*one.found, *one.gaps))


def _without(channel: Channel) -> Callable[[Item], bool]:
    return lambda item: isinstance(item, Session) or item.channel != channel


@pytest.mark.parametrize("program", READERS)
def test_a_session_in_which_there_is_nothing_is_clean_if_any_can_be(program: str) -> None:
    items = _items(program, STARTS[program])
    assert [item.program for item in items if isinstance(item, Session)] == [program]
    told, _ = _judged(items)
    assert told == ("clean" if program in NO_CEILING else "cannot tell")


@pytest.mark.parametrize("number", range(len(SPECIMENS)), ids=lambda n: "-".join(SPECIMENS[n][:2]))
def test_a_specimen_turns_without_the_handling_of_its_channel_and_of_no_other(number: int) -> None:
    program, channel, records = SPECIMENS[number]
    items = _items(program, [*STARTS[program], *records])
    whole = _judged(items)
    before = len(_items(program, STARTS[program]))
    assert whole[0] != "clean"
    turned = {
        other
        for other in get_args(Channel)
        if _judged([*items[:before], *filter(_without(other), items[before:])]) != whole
    }
    assert turned == {channel}
    if SECRET in json.dumps(records):
        exposures = [each for each in whole[1] if isinstance(each, Exposure)]
        assert any(each.shown and each.named == FILE for each in exposures)


@pytest.mark.parametrize("program", READERS)
def test_each_channel_that_is_recorded_has_a_specimen(program: str) -> None:
    ways = READERS[program].ways
    assert ways.keys() == CHANNELS.keys()
    handled = {name for name, way in ways.items() if way.recorded == "recorded" and not way.within}
    told = {channel for one, channel, _ in SPECIMENS if one == program}
    assert handled | {"unknown"} <= told
    assert all(ways[name].recorded != "no way in" for name in told - {"unknown"})


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.parent.name[:20])
def test_what_recordings_hold_came_by_channels_that_are_recorded(path: Path) -> None:
    found, items = items_of(path)
    assert found.reader is not None
    ways = found.reader.ways
    for item in items:
        if isinstance(item, Call | Given) and item.channel in CHANNELS:
            assert ways[item.channel].recorded == "recorded"


@pytest.mark.parametrize("program", READERS)
@pytest.mark.parametrize("recorded", ["never", "not known"])
def test_what_is_never_recorded_or_not_known_leaves_a_gap_for_its_channel(
    program: str, recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of a table is decoration: with it a clean session is one of which nobody can tell."""
    reader = READERS[program]
    closed = {**reader.ways, **dict.fromkeys(CHANNELS, Way("recorded"))}
    for channel in CHANNELS:
        monkeypatch.setattr(reader, "ways", closed | {channel: Way(recorded)})
        items = _items(program, STARTS[program])
        (gap,) = [item for item in items if isinstance(item, Gap) and item.channel == channel]
        assert gap.is_unrecorded is (recorded == "never")


@pytest.mark.parametrize(("version", "told"), [("2.1.96", "cannot tell"), ("2.1.97", "clean")])
def test_a_version_before_there_was_a_record_cannot_be_told(version: str, told: str) -> None:
    records = [one | {"version": version} for one in STARTS["claude-code"]]
    assert _judged(_items("claude-code", records))[0] == told
