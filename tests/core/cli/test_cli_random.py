"""Any arguments at all: a documented code, safe output, and a ledger that is whole."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest
from doors.inside import CODES, begin, commands, door_of, run
from hypothesis import given
from hypothesis import strategies as st
from sample_ledger import entry_faults

from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.output import safe

# The demonstration takes no arguments to go wrong over, and takes seconds; a server never ends,
# and who waits for an event or a message may wait for ever.
LEFT_OUT = {("bus", "wait"), ("chat", "poll"), ("demo",), ("witness", "serve")}
COMMANDS = [(path, command) for path, command in commands() if path not in LEFT_OUT]
RAW = {("bus", "read"), ("query",), ("show",)}
"""Commands that give exact bytes to a pipe."""

TOKENS = st.sampled_from(
    [
        *("", " ", "-", "--", "---", "-h", "--help", "--version", "--json", "x", "a b", "a/b"),
        *("live", "live.chat", "ann", "ledger.db", "decisions", "chat", "events", "counts"),
        *("workers", "bus", "high", "low", "decided", "D-1", "live.chat:~L7", "1-a-b-1.event"),
        *("0", "1", "3", "-1", "99999999999999999999", "1.5", "\u0663", "obs-", "\udcff"),
        *("a\nb", "\x1b[31m", "\x9b", "\u202e", "@ann", "[SUPERSEDES", "### D-1", "{}", "%s"),
        *("x" * 64, "x" * 128, "x" * 300, "\U0001f600" * 30),
    ]
)
# An argument holds no NUL (the system ends it there), and none of these may lead out of the folder.
TEXTS = st.text(st.characters(blacklist_characters="\0/."), max_size=12) | st.text(
    "-=abh \n\x1b", max_size=8
)


PLAUSIBLE = {
    "actor": ["ann", "bob"],
    "after": ["5m", "1600000000", "2020-09-13T12:26:40"],
    "at": ["0", "3", "6"],
    "by": ["ann", "bob"],
    "channel": ["live", "live.chat", "other"],
    "dedup_window": ["0", "60"],
    "event": ["1-a-b-1.event"],
    "folder": ["w", "v"],
    "handle": ["ann", "bob"],
    "index": ["0", "1"],
    "keep": ["0", "1"],
    "last": ["0", "1", "5"],
    "lease": ["1", "60"],
    "max_bytes": ["1", "1000000"],
    "participants": ["ann", "bob"],
    "payload": ["all of it", "@bob: look\n\n at this\x1b[31m"],
    "priority": ["critical", "high", "normal", "low"],
    "rationale": ["They last"],
    "name": ["example.org/w"],
    "reader": ["ann", "bob"],
    "refs": ["live.chat:~L7"],
    "seq": ["0", "3"],
    "since": ["ann", "bob"],
    "source": ["ann", "bob"],
    "status": ["decided", "mitigated"],
    "target": ["w", "http://127.0.0.1:9"],
    "text": ["hello @bob", "two\nlines \u202e"],
    "timeout": ["0", "1"],
    "title": ["Files", "Use ### D-1"],
    "unread": ["ann", "bob"],
    "url": ["http://127.0.0.1:9"],
    "type_": ["done", "heartbeat"],
    "vkey": ["PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"],
    "what": ["0", "3", "decisions", "chat", "events", "workers", "counts"],
}
"""What makes sense, by the name of the parameter: so that commands are also carried out."""


def value(draw: st.DrawFn, param: click.Parameter, *, odd: bool) -> str:
    """What stands in a parameter's place: what makes sense there, or anything."""
    sensible = PLAUSIBLE.get(param.name or "")
    return draw(TOKENS | TEXTS if odd or sensible is None else st.sampled_from(sensible))


@st.composite
def arguments(draw: st.DrawFn) -> tuple[str, ...]:
    """A command and what somebody might type, paste or generate behind it."""
    path, command = draw(st.sampled_from(COMMANDS))
    odd = draw(st.lists(st.sampled_from([param.name for param in command.params]), max_size=2))
    words: list[str] = []
    for param in command.params:
        if isinstance(param, click.Argument):
            if param.required or draw(st.integers(0, 9)) != 4:
                words.append(value(draw, param, odd=param.name in odd))
        elif isinstance(param, click.Option) and (param.required or draw(st.integers(0, 9)) == 4):
            name = draw(st.sampled_from(param.opts))
            words += [name] if param.is_flag else [name, value(draw, param, odd=param.name in odd)]
    if {"--follow", "-f", "--watch"} & {*words}:  # else it would stay
        words.append("--timeout=0")
    if draw(st.integers(0, 9)) == 4:
        words += draw(st.lists(TOKENS | TEXTS, max_size=3))
    return (*path, *words)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = begin(tmp_path_factory.mktemp("random"))
    yield folder
    with closing(read_only(str(folder / ".nbs/ledger.db"))) as db:
        entries = list(SQLiteReader(db).read())
        origin = db.execute("SELECT origin FROM head").fetchone()[0]
    assert entry_faults(entries, origin) == []


def harmless(text: str) -> bool:
    """Whether a terminal would show the text and do nothing else."""
    return safe(text) == text


@given(arguments(), st.binary(max_size=20))
def test_any_arguments(team: Path, typed: tuple[str, ...], given_bytes: bytes) -> None:
    done = run(team, *typed, given=given_bytes)
    assert done.code in CODES.get(door_of(typed), {0, 1, 2, 3}), done
    assert "please report" not in done.err
    assert harmless(done.err)
    raw = typed[:2] in RAW or typed[:1] in RAW
    assert raw or harmless(done.out.decode())
    assert done.code == 0 or done.err or typed[0] in ("audit", "diff", "report", "verify")
