"""Whatever a stranger's file holds, reading it costs about what plain text of that size costs.

Each parser is given a mebibyte of its worst, of what is bad for patterns and loops in general, and
of random bytes. The time is that of this process alone, the best of several, so that a busy machine
makes no failure; a timer of the same clock ends what would take hours. Where a part of it is
read so quickly that the whole takes less than the limit even by the square of its size, that tells.

Of what is bad in general some are drawn for each parser, by a fresh seed each run, which is named
where one is slow; TRIPOD_SEED repeats it. TRIPOD_TRIALS says how many (``make soak``: all).
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache

import pytest

from tripod.ledger.entry import parse_canonical, parse_header
from tripod.ledger.errors import LedgerError
from tripod.ledger.tlog.note import VerifierKey, parse_note
from tripod.ledger.tlog.policy import parse_policy
from tripod.ledger.tlog.proof import parse_proof
from tripod.ledger.tlog.receipt import parse_witness_request, parse_witness_signatures
from tripod.ledger.tlog.seal import parse_seal
from tripod.ledger.tlog.tiles import parse_body_bundle, parse_bundle, parse_tile_path
from tripod.ledger.words import words_of_text as words_of
from tripod.projections.bus.format import parse_event
from tripod.projections.chat.format import (
    chat_mentions,
    parse_chat_archive_name,
    parse_chat_cursors,
    split_chat_file,
)
from tripod.projections.chat.format import parse_header as chat_header
from tripod.projections.decisions.format import (
    decision_piece_text,
    parse_decision,
    parse_decision_archive_name,
    parse_decision_refs,
    split_decision_log,
)
from tripod.projections.pythia.format import DecisionRange, judge_review, parse_assessment
from tripod.projections.settings import read_setting_entries
from tripod.projections.team.intake import parse_team_config
from tripod.projections.text import parse as parse_moment
from tripod.projections.workers.answers import read_spec_answer
from tripod.projections.workers.format import parse_worker, worker_log_below
from tripod.recovery.redaction import texts_to_redact_in
from tripod.verify.advice import may_need_advice, sign_for_advice
from tripod.verify.anchors.growth import is_growth, is_growth_in_between, unconverted_growth
from tripod.verify.anchors.heads import parse_head
from tripod.verify.anchors.policy import parse as parse_rules
from tripod.verify.check import escape, shown_difference
from tripod.verify.isolation import phrases
from tripod.verify.isolation.breach import ChatRule, shows_reading_of_chat, tells_to_read_chat
from tripod.verify.isolation.children import SessionTree
from tripod.verify.isolation.phrases import ProtectedText, encoded_lines_in
from tripod.verify.sessions.items import Given

SIZE = 1 << 20
SMALL = 60_000
TIMES = 20
FLOOR = range(2_000_000)
"""A time of plain text below that of summing these squares (0.1 s on a fast machine) says more
about the interpreter than about the parser. It is taken beside the readings, as machines change
their speed.
"""

PARTS = (16, 8, 4)
"""A sixteenth of the bytes may tell, or an eighth, or a quarter."""

LOOKED_AT_S = 0.001
"""What takes less refuses a mebibyte for its size: it gets its worst below its limit as well."""

PROSE = b"The gate moves to the end, since it failed twice; ann and bob agreed on it.\n"
ANYWHERE = (
    b" ", b"\n", b"a", b"-", b'"', b"\\", b"[", b"@a ", b"a: b\n", b"D-1 ", b"\x1b[", b"---\n",
    b"a,", b"\xf0\x9f\x98\x80",
)  # fmt: skip
DRAWN = min(int(os.environ.get("TRIPOD_TRIALS", "2")), len(ANYWHERE))
SEED = int(os.environ.get("TRIPOD_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
CHATTY = (
    b"cat ", b"cat x.", b"Read(", b"read the ", b"read .chat", b"nbs-bus read ", b"tripod  ",
    b"tripod chat ", b"events/*", b"cat events/processed", b"chat-message", b"cat chat-message-",
    b".nbs/", b"the whole ", b"look ", b";read", b"a/", b"live.chat ", b"read post .chat ",
    b"nbs-chat send ", b"\x1b[0", b"$ .nbs ", b"Bash(.nbs", b"`cat `",
    b"cat $(.nbs ", b"cat <<.nbs ", b"for a in .nbs ", b"sh -c cat .nbs ",
    b"(cat .nbs", b"python3 .nbs;", b"cat a{.nbs,", b'cat "$.nbs', b"cat .nbs/a ",
)  # fmt: skip
NESTED = b'{"type":"tool_use","name":"Read","input":' * 900
CALLS = NESTED + b'"' + b"a" * (SIZE - 1000 * len(NESTED) // 900) + b'"' + b"}" * 900


def text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("utf-8", "replace"))


def path(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("utf-8", "replace").replace("\0", ""))


def each_line(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: [read(line) for line in data.decode("utf-8", "replace").split("\n")]


PROTECTED = ProtectedText()
PROTECTED.add("a", "the seventh release is on friday, unless bob finds another fault in it")
ASKED = DecisionRange("D-1", "D-2", 2)
HEADING = b"### D-1 T\n- **Chat ref:** x\n- **Status:** decided\n- **Rationale:** r\n"
PARSERS: dict[str, tuple[Callable[[bytes], object], tuple[bytes, ...]]] = {
    "assessment": (
        text(parse_assessment),
        (
            b"## Confidence\nx\n",
            b"## Pythia Checkpoint\n## Confidence\nx\n",
            b"## Pythia Checkpoint -",
            b"PYTHIA CHECKPOINT -",
            b"Decisions reviewed: D-1 ",
            b"```\n",
            b" ```x",
            b"---x\n",
        ),
    ),
    "review": (
        text(lambda said: judge_review(said, ASKED, ())),
        (b"# a\n", b"### Confidence\nhigh\n\n", b"[a](b", b"![", b"<a ", b"&#1;", b"*a_", b"1. "),
    ),
    "chat file": (split_chat_file, (b"=== nbs-chat ===\n", b"YTogYg==\n", b"---\n")),
    "chat header": (
        lambda data: chat_header(b"=== nbs-chat ===\nparticipants: " + data + b"\n---\n"),
        (b"a(1), ", b"a(1", b", "),
    ),
    "chat archive": (path(parse_chat_archive_name), (b"-20260212-140000-archive", b"x-2026")),
    "config": (
        parse_team_config,
        (b"pythia-interval: 3\n", b"x: ' # ", b"a: #", b"a:  \t", b"notify: 'a\n", b"notify: [\n"),
    ),
    "cursors": (parse_chat_cursors, (b"a=1\n", b"a=1=", b"==")),
    "decision": (
        lambda data: parse_decision(HEADING + data),
        (b"a\n", b"- **Status:** a\n", b"- **x:** a\n", b"- **", b"###", b"x \n"),
    ),
    "decision heading": (
        lambda data: parse_decision(b"### D-1 " + data),
        (b"[SUPERSEDES ", b"[SUPERSEDES D-1] ", b"D-1"),
    ),
    "decision text": (decision_piece_text, (b"### D-1\n", b"\n--- \t", b" ---x\n")),
    "decision log": (split_decision_log, (b"\n---\n\n### D-1 a\n", b"### D-", b"\n---\n")),
    "decision refs": (text(parse_decision_refs), (b":~L1", b"a:~L1,", b"a:~L", b" , ")),
    "log archive": (path(parse_decision_archive_name), (b"-20260212-140000-archive", b"x-2026")),
    "event": (
        lambda data: parse_event(b"source: a\ntype: b\npriority: low\npayload: |\n" + data),
        (b"  x\n", b"a: b\n", b"payload: |\n", b"a: '", b'a: "\\x41', b" \n"),
    ),
    "event value": (
        lambda data: parse_event(b'source: a\ntype: b\npriority: low\npayload: "' + data + b'"\n'),
        (b"\\x41", b"\\", b'\\"', b"\\ud83d"),
    ),
    "mentions": (text(chat_mentions), (b"@", b"@a!", b"a@", b"@a\\")),
    "moment": (text(parse_moment), (b"2026-02-12T14:00:00Z",)),
    "worker": (
        parse_worker,
        (b"## Status\n", b"## Status\nState: a\n", b"## Log\n", b"State: a\n", b"## Log \t"),
    ),
    "worker log": (lambda data: worker_log_below(data, "t", "task"), (b"## Log\n", b"## Log \r")),
    "answer": (
        lambda data: read_spec_answer("claude-stream-json", data, wants_structure=False),
        (b'{"type":"result"}\n', b'"result"\n', b'{"result":'),
    ),
    "texts": (lambda data: list(texts_to_redact_in(data)), (b"YTogYg==\n",)),
    "canonical": (parse_canonical, (b'{"a":', b"[[", b'"\\u0000', b"1,")),
    "header": (parse_header, (b'{"actor":"a",',)),
    "note": (parse_note, (b"\xe2\x80\x94 a b\n", b"\n\n", b"a\n\n\xe2\x80\x94 ")),
    "seal": (text(parse_seal), (b"example.com/a\n0\n", b"0\n")),
    "head": (parse_head, (b"example.com/a\n0\n", b"\n\n\xe2\x80\x94 ")),
    "proof": (parse_proof, (b"c2sp.org/tlog-proof@v1\n", b"index 1\n", b"AAAA\n")),
    "request": (parse_witness_request, (b"old 1\n", b"AAAA\n")),
    "signatures": (parse_witness_signatures, (b"\xe2\x80\x94 a b\n",)),
    "policy": (parse_policy, (b"group a all b\n", b"quorum none\n", b"log a+b\n", b"group a all ")),
    "vkey": (text(VerifierKey.parse), (b"a+", b"a+00000000+", b"+")),
    "bundle": (lambda data: parse_bundle(data, 256), (b"\0\1x", b"\0\0")),
    "bodies": (lambda data: parse_body_bundle(data, 0, 256), (b'{"body":', b'","salt":"')),
    "tile path": (path(parse_tile_path), (b"x001/", b"tile/", b"tile/0/x001/")),
    "rules": (parse_rules, (b"level: ", b"a: #", b"seals: a, ", b"- a\n", b"seals: [")),
    "settings": (
        read_setting_entries,
        (b"argv: [a]\n", b"argv: [", b"{a: ", b"? ", b"'", b"&a ", b"a: &a [*a]\n", b'"\\u0061'),
    ),
    "log line": (text(shows_reading_of_chat), CHATTY),
    "log lines": (each_line(shows_reading_of_chat), CHATTY),
    "task": (text(tells_to_read_chat), CHATTY),
    "stream line": (
        text(lambda said: list(ChatRule().readings_in(said))),
        (CALLS, b'{"a":', b'{"type":"tool_use","name":"a","input":'),
    ),
    "other places": (
        text(ChatRule({"chat": "../talk", "events": "a/queue"}).is_broken_by),
        (b"talk", b"a/", b"a/queue", b"talk/", b"./talk", b"cat a/", b"cat ./talk/;"),
    ),
    "words": (
        text(lambda said: (words_of(said), encoded_lines_in(said))),
        (b"a_", b"_", b"a-", b"a'", "a\u0301".encode(), "\u200b".encode()),
    ),
    "protected text": (
        text(lambda said: PROTECTED.search([said.replace("\ufffd", "")])),
        (b"1:\n", b"1: a\n", b"1: one two\n", b"a:1:", b"\x1b[m1:\n", b"\\n1:"),
    ),
    "JSON in a text": (
        text(lambda said: list(phrases._as_written(f"\\n{said}"))), (b"\\", b"\\u0", b"\\\\t")
    ),
    "report of an agent": (
        text(lambda said: SessionTree().add(Given("background", 1, 0, said))),
        (b"<task-id>a</task-id>", b"<task-id>", b"<tool_uses>1", b"</task-notification>"),
    ),
    "sign of a decision": (
        text(lambda said: (may_need_advice(said), sign_for_advice(said))),
        (b"dropping a ", b"we are moving from a ", b"decided: a ", b"?", b"agreed"),
    ),
    "escape": (text(escape), (b"\x1b[31m", "\u202e".encode())),
    "difference": (lambda data: shown_difference(data, data[::-1]), (b"a\n",)),
    "growth": (
        lambda data: (
            is_growth(data, data[:-1]),
            is_growth_in_between(data, data[1:]),
            unconverted_growth(data, data[:99]),
        ),
        (b"a\r\n", b"a\n\n"),
    ),
}  # fmt: skip


class TooSlowError(Exception):
    """The time is over."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End what takes more time of this process."""

    def stop(_signal: int, _frame: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def seconds_for(read: Callable[[bytes], object], data: bytes, limit: float = 600) -> float:
    """The time of this process that a reading takes; ``limit`` where it takes more."""
    start = time.process_time()
    try:
        with at_most(limit), suppress(LedgerError, ValueError):
            read(data)
    except TooSlowError:
        return limit
    return time.process_time() - start


def floor() -> float:
    """The time of this process that what nobody is to be held to takes now."""
    return seconds_for(lambda _: sum(n * n for n in FLOOR), b"")


def filled(unit: bytes) -> bytes:
    return (unit * (SIZE // len(unit) + 1))[:SIZE]


@cache
def randoms() -> tuple[tuple[str, bytes], ...]:
    source = random.Random(11)  # noqa: S311 - made-up bytes
    letters = b"aA0 \n\t-#*:.,;/[]()'\"\\@=+_|~`>{}"
    signs = bytes(source.choices(letters, k=SIZE))
    return ("random bytes", source.randbytes(SIZE)), ("random signs", signs)


def drawn_for(name: str) -> list[bytes]:
    """Some of what is bad in general."""
    return random.Random(f"{name} {SEED}").sample(ANYWHERE, DRAWN)  # noqa: S311 - no keys


def worst(units: tuple[bytes, ...], *, refused: bool) -> Iterator[tuple[str, bytes, int]]:
    """What it is, the bytes, and after how many of them they are repeated.

    0: a part of them says nothing, such as one of a mebibyte that is ``refused`` for its size.
    """
    for unit in dict.fromkeys(units):
        yield f"{unit[:20]!r} again and again", filled(unit), 0 if refused else len(unit)
    for unit in dict.fromkeys(units) if refused else ():
        yield f"{SMALL} bytes of {unit[:20]!r}", filled(unit)[:SMALL], len(unit)
    for what, data in randoms():
        yield what, data, 0 if refused else 1


def a_part_tells(read: Callable[[bytes], object], data: bytes, period: int, limit: float) -> bool:
    """Whether some part of the bytes, which ends as the whole does, is read quickly enough."""
    for part in PARTS if 0 < period < 1000 else ():
        size = len(data) // part
        size += (len(data) - size) % period
        if seconds_for(read, data[:size], limit) * part**2 < limit:
            return True
    return False


@pytest.mark.drawn
@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_takes_no_more_than_plain_text_times_twenty(name: str) -> None:
    read, units = PARSERS[name]
    plain = min(seconds_for(read, filled(PROSE)) for _ in range(2))
    limit = TIMES * max(floor(), plain)
    slow = []
    for what, data, period in worst((*units, *drawn_for(name)), refused=plain < LOOKED_AT_S):
        if a_part_tells(read, data, period, limit):
            continue
        best = seconds_for(read, data, limit)
        if best >= limit:  # something else may have been at work: once more
            now = max(limit, TIMES * floor())
            best = min(seconds_for(read, data, 2 * now) for _ in range(2))
            if best < now:
                continue
        if best >= limit:
            slow.append((what, round(best, 2)))
    again = f"TRIPOD_SEED={SEED} TRIPOD_TRIALS={DRAWN}"
    assert slow == [], f"plain text allows {limit:.2f} s; {again}"


def test_a_reading_that_takes_the_square_of_its_size_is_caught() -> None:
    def quadratic(data: bytes) -> None:
        joined = b""
        for line in data.split(b"\n"):
            joined = bytes(bytearray(bytearray(joined + line)))  # a fast machine copies fast

    limit = TIMES * floor()
    assert seconds_for(quadratic, filled(b"a\n"), limit) == limit
    assert not a_part_tells(quadratic, filled(b"a\n"), 2, limit)
