"""Parsers of the files of a team, and of decisions of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torture.parsers.parser import Parser, as_list, as_text, as_unicode, golden, words_of
from tripod.cli import commands
from tripod.decisions.reader import words_of_query
from tripod.errors import BadArgumentError
from tripod.ledger import entry, words
from tripod.ledger.errors import MalformedError
from tripod.projections import swap, text
from tripod.projections.bus import format as bus
from tripod.projections.chat import format as chat
from tripod.projections.chat import jsonl as chat_jsonl
from tripod.projections.decisions import format as log
from tripod.projections.decisions import madr, madr_file
from tripod.projections.pythia import format as pythia
from tripod.projections.workers import format as workers
from tripod.recovery.redaction import texts_to_redact_in

MALFORMED = (MalformedError,)

# The files of a team ----------------------------------------------------------------------------


def _reread(value: Any, write: Callable[[Any], bytes], *errors: type[Exception]) -> bytes:
    """The bytes of a value; those that read as nothing where it cannot be written."""
    try:
        return write(value)
    except errors:
        return b"\0"


def team() -> Iterator[Parser]:
    """Events, chats, positions, workers."""
    chats = golden("documents/*/chat/*.chat", "merged/*.chat")
    one = partial(Parser, words=words_of("---\n·: ·=== nbs-chat ===\n·|\n  ·MTIz·#"))
    events = golden("documents/nbs-bus/events/*.event", "documents/*/events/processed/*.event")
    yield one(
        "event",
        bus.parse_event,
        (bus.parse_event,),
        events,
        write=_written_event,
        words=words_of(
            "source: ·type: ·priority: ·payload: |·payload: >-2\n·dedup-key: ·timestamp: ·"
            "\n  ·\\x0·\\U0010·'·\"·# "
        ),
    )
    yield one(
        "chat",
        chat.split_chat_file,
        (chat.split_chat_file, chat.cut_chat_lines),
        chats,
        write=chat.join_chat_file,
        is_strict=True,
    )
    heads_of = tuple(part.header_raw for part in map(chat.split_chat_file, chats) if part)
    yield one("header of a chat", chat.parse_header, (chat.parse_header,), heads_of)
    yield one(
        "line of a chat",
        chat.parse_line,
        (chat.parse_line,),
        (b"MTc5NTI5NDY3NXxhbm46IGhlbGxv", *chats[0].splitlines()[-3:]),
    )
    yield one(
        "positions",
        chat.parse_chat_cursors,
        (chat.parse_chat_cursors,),
        (b"# Read cursors\nann=3\nbob=14\n",),
        write=chat.format_chat_cursors,
        words=words_of("=·\n·ann=·#"),
    )
    yield one(
        "mentions",
        as_unicode(chat.chat_mentions),
        (chat.chat_mentions,),
        (b"@alex, (@eve!) and @@fay; not bob@example.org. @alex?",),
        words=words_of("@·@@·!·?"),
    )
    said = (
        b'{"text":"hello","handle":"ann","time":1795294675}\n'
        b'{"text":"b","handle":"bob","time":"2026-11-20T10:00:00Z"}\n'
    )
    fields = {name: name for name in chat_jsonl.FIELDS}
    yield one(
        "messages of others",
        lambda data: chat_jsonl.parse_jsonl_messages(data, fields),
        (chat_jsonl.parse_jsonl_messages,),
        (said,),
        words=words_of('"text":·"time":·1e400·null'),
    )
    tasks = golden("documents/*/workers/*.md")
    task = workers.parse_worker(tasks[0])
    headings = words_of("## Status\n·## Log\n·## Task\n·State: ·Started: ·# Worker: ·## Tooling\n")
    yield one("worker", workers.parse_worker, (workers.parse_worker,), tasks, words=headings)
    yield one(
        "log of a worker",
        lambda data: workers.worker_log_below(data, task.title, task.task),
        (workers.worker_log_below,),
        tasks,
        words=headings,
    )
    yield one(
        "words",
        as_unicode(_words),
        (words.words_of_text, words.comparable_text, words.readings_of, words.without_escapes),
        golden("merged/*.md"),
        words=(
            b"\x1b[1m",
            b"\x1b]8;;",
            b"\x07",
            b"\b",
            "\u3164".encode(),
            "\u00ad".encode(),
            "\ufdfa".encode(),
        ),
    )
    yield one("texts to erase", as_list(texts_to_redact_in), (texts_to_redact_in,), chats)


def _words(said: str) -> object:
    return (
        words.words_of_text(said),
        words.comparable_text(said),
        words.without_escapes(said),
        list(words.readings_of(said)),
    )


def _written_event(event: bus.Event | None) -> bytes:
    return b"" if event is None else _reread(event, bus.format_event, ValueError)


def names() -> Iterator[Parser]:
    """Names of files, and times."""
    one = partial(Parser, words=words_of("-archive·.chat·.md·.event·-·20260212·135500·/"))
    yield one(
        "name of an event",
        as_text(lambda name: (bus.valid_event_name(name), bus.event_name_us(name))),
        (bus.valid_event_name, bus.event_name_us),
        (b"bus/1707753600123456-parser-done-48291.event",),
    )
    yield one(
        "name of a chat's archive",
        as_text(chat.parse_chat_archive_name),
        (chat.parse_chat_archive_name,),
        (b"live-20260212-135500-archive.chat",),
    )
    yield one(
        "name of a log's archive",
        as_text(log.parse_decision_archive_name),
        (log.parse_decision_archive_name,),
        (b"live-log-20260221-101500-archive.md", b"log-archive-20260221-101500.md"),
    )
    yield one(
        "name of a kept file",
        as_text(swap.parse),
        (swap.parse,),
        (f".tripod-swap-{'a' * 16}-{'b' * 16}-12-{'c' * 16}-3f-{'d' * 12}".encode(),),
    )
    moments = (b"2026-02-12T14:00:00+0100", b"2026-02-12T14:00:00Z", b"2026-02-12 14:00:00")
    signs = words_of("Z·+01:00·-2400·T· ·0000-00-00·9999-12-31·:60")
    yield one("time", as_text(text.parse), (text.parse,), moments, words=signs)
    yield one(
        "time of a chat",
        as_text(chat.parse_chat_time),
        (chat.parse_chat_time,),
        moments,
        words=signs,
    )
    yield one(
        "time that was asked for",
        as_text(lambda said: commands.moment_param(said, "--since")),
        (commands.moment_param,),
        (*moments, b"30s", b"2d", b"1795294675"),
        words=signs,
        errors=(BadArgumentError,),
    )
    yield one(
        "time of an entry",
        as_text(entry.parse_entry_time),
        (entry.parse_entry_time,),
        (b"2026-11-21T20:57:55.123456Z",),
        words=signs,
        errors=(ValueError,),
    )
    yield one(
        "number",
        as_text(lambda said: commands.whole_number_param(said, 0, 1000)),
        (commands.whole_number_param,),
        (b"300",),
    )


# Decisions and assessments ----------------------------------------------------------------------

_MADR = b"""---
status: accepted
date: 2026-02-12
decision-makers: [ann, bob]
---
# 7. Use *it*

## Context and Problem Statement

Which one?

## Decision Outcome

Chosen option: "it", because it is there.

### Consequences

* Good, because `a`
"""
_PAGE = b"""# Decisions

## D-001: Use it (2026-02-12)

**Status:** Accepted

**Why:** It is there.

## Second

Because.
"""
_SAID = b"""# Pythia Checkpoint - three decisions

Decisions reviewed: D-17 through D-19 (3 decisions)

## Hidden Assumptions
That it stays. D-17

## Second-Order Risks
None.

## Missing Validation
Much.

## Six-Month Regret Scenario
It grew.

## Confidence
high

End of checkpoint
"""


def decisions() -> Iterator[Parser]:
    """Logs, decisions in Markdown, assessments."""
    logs = golden("documents/*/scribe/*.md", "merged/log.md")
    marks = words_of(
        "### D-1 ·\n---\n\n·- **Status:** ·- **Rationale:** ·- **Chat ref:** ·"
        "[SUPERSEDES D-1] ·# Decision Log\n·live.chat:~L3·, ·- **·:** ·D-"
    )
    one = partial(Parser, words=marks)
    pieces = log.split_decision_log(logs[0])[1]
    yield one(
        "decision log",
        log.split_decision_log,
        (log.split_decision_log, log.count_decision_headings),
        logs,
        write=lambda parts: parts[0] + b"".join(parts[1]),
        is_strict=True,
    )
    yield one(
        "decision",
        log.parse_decision,
        (log.parse_decision, log.decision_parts),
        tuple(pieces),
        write=_written_decision,
    )
    yield one(
        "references",
        as_unicode(log.parse_decision_refs),
        (log.parse_decision_refs,),
        (b"live.chat:~L11, live.chat L3",),
    )
    yield one(
        "kind of a page",
        lambda data: (log.is_decision_log("notes.md", data), madr.is_madr("notes.md", data)),
        (log.is_decision_log, madr.is_madr),
        (*logs[:2], _MADR),
    )
    front = words_of(
        "---\n·status: ·date: ·- a\n·# ·## Decision Outcome\n·Chosen option: ·## ·* ·"
        "```\n·<!--·**Status:** ·superseded by [7](0007-x.md)·|a|b|\n|-|-|\n"
    )
    written = madr_file.format_decision_page(madr_file.DecisionPage(3, _A_DECISION))
    yield one(
        "decision's file",
        partial(madr.parse_madr, "0007-use-it.md"),
        (madr.parse_madr,),
        (_MADR, written),
        errors=MALFORMED,
        words=front,
    )
    yield one(
        "page of decisions",
        partial(madr.parse_decision_page, "DECISIONS.md"),
        (madr.parse_decision_page,),
        (_PAGE, _MADR),
        errors=MALFORMED,
        words=front,
    )
    yield one(
        "exported page",
        madr_file.written_page,
        (madr_file.written_page, madr_file.named_decision),
        (written,),
        errors=(ValueError,),
        words=front,
    )
    yield one(
        "line of Markdown",
        as_unicode(madr_file.unescape_markdown),
        (madr_file.unescape_markdown, madr_file.read_page_line),
        (b"\\# no \\\\x0a \\*x\\*\\x0a---",),
        words=words_of("\\·\\x·\\*·&amp;·<br>"),
    )
    titles = words_of(
        "## Hidden Assumptions\n·Confidence: ·# Pythia Checkpoint·"
        "PYTHIA CHECKPOINT - Assessment·Decisions reviewed: ·```\n·> ·End of checkpoint·"
        "1. ·**·    "
    )
    yield one(
        "assessment",
        as_unicode(pythia.parse_assessment),
        (pythia.parse_assessment,),
        (_SAID,),
        words=titles,
    )
    yield one(
        "checkpoint",
        as_unicode(pythia.parse_checkpoint_payload),
        (pythia.parse_checkpoint_payload,),
        (b"Checkpoint at decision 20. Decisions D-17 through D-36.",),
        words=titles,
    )
    yield one(
        "query",
        as_unicode(words_of_query),
        (words_of_query,),
        (b'Files "over sockets" AND x*',),
        words=words_of('"·*·NEAR(·-'),
    )


_A_DECISION = log.DecisionText(
    "D-1707753600",
    "Use it",
    None,
    "live.chat:~L11",
    "ann, bob",
    "x.py",
    "none",
    "decided",
    "It is there.",
)


def _written_decision(found: tuple[log.DecisionText | None, tuple[str, ...]]) -> bytes:
    """The bytes of a decision that is written as ours are; those that hold none for all others."""
    decision, problems = found
    if decision is None or problems:
        return b""
    return _reread(decision, lambda one: log.format_decision(one).encode(), ValueError)
