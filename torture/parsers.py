"""The parsers that are tortured: how each is called, what may come of it, and what it begins with.

``parsers()`` gives all. A public parser that is not among them, and not among those that
``LEFT_OUT`` gives a reason for, is named by a test.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from tripod.agents import profiles
from tripod.agents.spec import read_spec_answer
from tripod.cli import commands, nbs
from tripod.decisions.reader import words_of_query
from tripod.errors import BadArgumentError
from tripod.ledger import actors, entry, words
from tripod.ledger.errors import LedgerDamagedError, MalformedError, NotVerifiedError
from tripod.ledger.kinds import merged
from tripod.ledger.merkle import node_hash
from tripod.ledger.sqlite.reader import read_stored_tree
from tripod.ledger.tlog import note, policy, proof, receipt, seal, tiles, trailer
from tripod.projections import settings, swap, text
from tripod.projections.bus import format as bus
from tripod.projections.chat import format as chat
from tripod.projections.chat import jsonl as chat_jsonl
from tripod.projections.decisions import format as log
from tripod.projections.decisions import madr, madr_file
from tripod.projections.pythia import format as pythia
from tripod.projections.team import intake as team
from tripod.projections.workers import format as workers
from tripod.pythia.reviewer import reviewer_transcripts_in
from tripod.recovery.redaction import texts_to_redact_in
from tripod.trust.acceptance import read_baseline
from tripod.verify.anchors import configuration, git_folder, heads
from tripod.verify.anchors import policy as rules
from tripod.verify.checks import canonical_bytes, kinds_known
from tripod.verify.isolation import breach, witnesses
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.recorded.files import read_session_file
from tripod.verify.recorded.spool import read_spool
from tripod.verify.sessions import jsonl, powershell, readers, shell, syntax
from tripod.verify.sessions.exposure import SessionExposures, judge_exposures

__all__ = ["Parser", "parsers"]

GOLDEN = Path(__file__).resolve().parent.parent / "tests/golden"
"""Files as they are in the world, from which the inputs grow."""
MALFORMED = (MalformedError,)


@dataclass(frozen=True)
class Parser:
    """A parser, as it is tortured.

    ``read`` takes bytes and gives what they mean, or raises one of ``errors``: all else is wrong.
    It raises AssertionError itself where a verifier took what none may take. ``covers`` are the
    functions that are called. ``seeds`` are inputs that it takes, ``words`` mean something in the
    format. ``write`` gives the bytes of what was read: those very bytes where the format has one
    spelling (``is_strict``), else bytes that mean the same.
    """

    name: str
    read: Callable[[bytes], object]
    covers: tuple[Callable[..., object], ...]
    seeds: tuple[bytes, ...]
    errors: tuple[type[Exception], ...] = ()
    words: tuple[bytes, ...] = ()
    write: Callable[[Any], bytes] | None = None
    is_strict: bool = False


@cache
def parsers() -> dict[str, dict[str, Parser]]:
    """Each parser by its name, in groups."""
    groups = {
        "sealed": (*_notes(), *_proofs(), *_signed()),
        "entries": _entries(),
        "team": (*_team(), *_names()),
        "decisions": _decisions(),
        "settings": _settings(),
        "sessions": (*_sessions(), *_answers()),
        "commands": _commands(),
    }
    return {group: {one.name: one for one in those} for group, those in groups.items()}


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """A reader of texts, given bytes: what is no UTF-8 comes as halves of surrogates."""
    return lambda data: read(data.decode("utf-8", "surrogateescape"))


def _unicode(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """A reader of texts that are whole, given bytes: what is no UTF-8 is replaced."""
    return lambda data: read(data.decode("utf-8", "replace"))


def _all(read: Callable[[Any], Iterable[Any]]) -> Callable[[Any], list[Any]]:
    return lambda value: list(read(value))


def _golden(*patterns: str) -> tuple[bytes, ...]:
    found = [path for pattern in patterns for path in sorted(GOLDEN.glob(pattern))]
    if not found:
        raise FileNotFoundError(f"{GOLDEN} has no {patterns}")
    return tuple(path.read_bytes()[:6000] for path in found)


def _same(value: object, what: object, data: bytes) -> object:
    """The value, if it is what the one true input means: else it was taken falsely."""
    if value != what:
        raise AssertionError(f"false clean: {data[:300]!r} is taken as {value!r:.200}")
    return value


# Seals, proofs and what is signed ---------------------------------------------------------------

KEY = note.SigningKey("example.com/ledger", bytes(range(32)))
NEXT = note.SigningKey("example.com/ledger", bytes(range(1, 33)))
WITNESS = note.SigningKey("witness.example/w1", bytes(range(32, 64)), note.COSIGNATURE)
LEAVES = [entry.entry_leaf_hash(b"e%d" % number) for number in range(2)]
SEAL = seal.Seal(KEY.name, 2, node_hash(*LEAVES))
"""Of two entries: the proof that one is in it is the hash of the other."""
SIGNED = note.Note(
    seal.format_seal(SEAL), (seal.sign_seal(SEAL, KEY), seal.cosign_seal(SEAL, WITNESS, 1763757000))
)
POLICY = policy.Policy(
    (policy.TrustedLog(KEY.verifier()),),
    (policy.Witness("w1", WITNESS.verifier()),),
    (policy.Group("seen", 1, ("w1",)),),
    "seen",
)
ENROLLED = actors.sign_actor_change(KEY.name, 1, KEY.verifier(), [KEY]).encode()
_HASH = note.format_base64(SEAL.root).encode()
_SIGNS = (
    "\u2014 ".encode(), b"\n\n", b"+", b"=", b"AA", KEY.name.encode(), WITNESS.name.encode(), _HASH,
    note.format_base64(bytes(32)).encode(), note.format_base64(bytes(68)).encode(), b"old 1\n",
    b"index 1\n", b"extra AA==\n", b"c2sp.org/tlog-proof@v1\n", b"Tripod-Head: ",
)  # fmt: skip


def _notes() -> Iterator[Parser]:
    one = partial(Parser, errors=MALFORMED, words=_SIGNS)
    whole, plain = note.format_note(SIGNED), seal.format_seal(SEAL).encode()
    keys = (KEY.verifier().format().encode(), WITNESS.verifier().format().encode())
    yield one("note", note.parse_note, (note.parse_note, note.parse_note_text), (whole,),
              write=note.format_note, is_strict=True)  # fmt: skip
    yield one("note's seal", seal.read_seal, (seal.read_seal,), (whole,))
    yield one("seal", _unicode(partial(seal.parse_seal, extensions=True)),
              (seal.parse_seal, note.parse_decimal, note.parse_base64), (plain,),
              write=lambda value: seal.format_seal(value).encode())  # fmt: skip
    yield one("head", heads.parse_head, (heads.parse_head,), (whole, plain))
    yield one("vkey", _text(note.VerifierKey.parse), (note.VerifierKey.parse,), keys,
              write=lambda key: bytes(key.format(), "utf-8"), is_strict=True)  # fmt: skip
    yield one("skey", _text(note.SigningKey.parse), (note.SigningKey.parse,),
              (KEY.format().encode(), WITNESS.format().encode()),
              write=lambda key: bytes(key.format(), "utf-8"), is_strict=True)  # fmt: skip
    lines = b"log %b https://x.example/\nwitness w1 %b\ngroup g all w1\nquorum g\n" % keys
    yield one("policy of a reader", policy.parse_policy, (policy.parse_policy,), (lines,),
              words=(*lines.split(), b"none", b"any", b"#", b"2", b"\nquorum none"))  # fmt: skip
    request = receipt.CosignRequest(1, (LEAVES[1],), SIGNED)
    yield one("request to a witness", receipt.parse_witness_request,
              (receipt.parse_witness_request, note.parse_lines_and_note),
              (receipt.format_witness_request(request),),
              write=receipt.format_witness_request, is_strict=True)  # fmt: skip
    yield one("answer of a witness", receipt.parse_witness_signatures,
              (receipt.parse_witness_signatures,), (whole.split(b"\n\n", 1)[1],),
              write=receipt.format_witness_signatures, is_strict=True)  # fmt: skip
    named = b"Mend it\n\nTripod-Head: ann-0123456789abcdef 7 %b %b=\n" % (_HASH, b"A" * 91)
    yield one("trailers", _all(trailer.parse_trailers), (trailer.parse_trailers,), (named,))


def _proofs() -> Iterator[Parser]:
    """Verifiers: what they take must mean what was signed."""
    one = partial(Parser, errors=(MalformedError, NotVerifiedError), words=_SIGNS)
    whole = note.format_note(SIGNED)
    proofs = tuple(
        proof.format_proof(proof.Proof(1, (LEAVES[0],), SIGNED, extra)) for extra in (None, b"x")
    )

    def proved(data: bytes) -> object:
        found = proof.parse_proof(data)
        opened = proof.verify_proof(found, LEAVES[1], POLICY)
        return _same((opened.seal, found.seq), (SEAL, 1), data)

    golden = GOLDEN / "receipt"
    roots = receipt.parse_timestamp_authorities((golden / "root.pem").read_bytes())
    reply = (golden / "reply.tsr").read_bytes()
    stamp = receipt.open_timestamp(reply, SIGNED.text, roots)
    yield one("proof", proof.parse_proof, (proof.parse_proof,), proofs, write=proof.format_proof,
              is_strict=True)  # fmt: skip
    yield one("proof of an entry", proved, (proof.verify_proof,), proofs)
    yield one("seal of a log",
              lambda data: _same(policy.open_under_policy(POLICY, note.parse_note(data)).seal, SEAL, data),
              (policy.open_under_policy, note.parse_note), (whole,))  # fmt: skip
    yield one("receipt", lambda data: _same(receipt.open_timestamp(data, SIGNED.text, roots), stamp, data),
              (receipt.open_timestamp,), (reply,))  # fmt: skip
    yield one("authorities", receipt.parse_timestamp_authorities, (receipt.parse_timestamp_authorities,),
              _golden("receipt/root.pem"), words=(b"-----BEGIN CERTIFICATE-----\n", b"-----END CERTIFICATE-----"))  # fmt: skip


def _signed() -> Iterator[Parser]:
    """Statements of keys: what is taken must be what the keys signed."""
    one = partial(Parser, errors=(MalformedError, NotVerifiedError), words=_SIGNS)
    key = KEY.verifier()
    change = actors.actor_change_text(KEY.name, 1, key)
    rotation = seal.sign_rotation(KEY.name, KEY, NEXT).encode()
    fork = seal.sign_fork(KEY, 2, SEAL.root, "other.example").encode()
    listed = [b"one", b"stated"]
    records = tuple(actors.sign_actor_statements(some, KEY) for some in (listed[1:], listed))

    def says(data: bytes, what: str) -> bool:
        try:
            return note.parse_note(data).text == what
        except MalformedError:
            return False

    def enrolled(data: bytes) -> object:
        return _same(actors.read_actor_request(data.decode(), KEY.name), (1, key), data)

    def put_in_force(data: bytes) -> object:
        problem = actors.actor_change_problem(data.decode(), change, [key], [])
        return _same(problem is None and not says(data, change), False, data)

    def rotated(data: bytes) -> object:
        problem = seal.rotation_problem(data.decode(), KEY.name, key, NEXT.verifier())
        return _same(problem is None and not says(data, note.parse_note(rotation).text), False, data)

    def forked(data: bytes) -> object:
        text = seal.seal_fork_text(KEY.name, 2, SEAL.root, "other.example")
        by = seal.fork_signers(data.decode(), text, [key])
        return _same(bool(by) and not says(data, text), False, data)

    def acted(data: bytes) -> object:
        found = actors.parse_actor_record(data)
        took = actors.actor_record_problem(found, b"stated", key) is None
        return _same(took and data not in records, False, data) or found

    undecoded = (MalformedError, NotVerifiedError, UnicodeDecodeError)
    yield one("enrolment", enrolled, (actors.read_actor_request,), (ENROLLED,), errors=undecoded)
    yield one("change of an actor", put_in_force, (actors.actor_change_problem,), (ENROLLED,), errors=undecoded)  # fmt: skip
    yield one("rotation", rotated, (seal.rotation_problem,), (rotation,), errors=undecoded)
    yield one("fork", forked, (seal.fork_signers,), (fork,), errors=undecoded)
    yield one("signature record", acted, (actors.parse_actor_record, actors.actor_record_problem), records,
              write=actors.format_actor_record, is_strict=True)  # fmt: skip


# Entries, and the files of a record -------------------------------------------------------------


def _lines_of(path: str) -> tuple[bytes, ...]:
    return tuple((GOLDEN / path).read_bytes().splitlines())


def _bundled() -> list[bytes]:
    return tiles.parse_bundle((GOLDEN / "signed/tile/entries/000.p/32").read_bytes(), 32)


def _entries() -> Iterator[Parser]:
    headers = _bundled()
    lines = _lines_of("signed/bodies/000.p/32.jsonl")
    bodies = [tiles.parse_line(line, seq).body for seq, line in enumerate(lines)]
    kinds = {body: entry.parse_header(header) for header, body in zip(headers, bodies, strict=True)}
    some = tuple(body for body in kinds if body is not None)
    one = partial(Parser, errors=MALFORMED, words=(b'"v":1', b"null", b"1.0", b"-0", b"{}", b"[]", b'"'))

    held: dict[str, bytes] = {}

    def peer_body(seq: int) -> bytes:
        """The body that keeps an entry of a peer here; its blobs are held."""
        said = tiles.parse_line(lines[seq], seq)
        parts = (headers[seq], said.auth, said.salt, said.body)
        draft = merged.peer_entry_draft(merged.KeptEntry("golden.example/signed", seq, *parts), "bus")
        held.update((sha256(blob).hexdigest(), blob) for blob in draft.blobs)
        return entry.format_canonical(draft.body)

    def kept(data: bytes) -> object:
        value = entry.parse_canonical(data)
        if not isinstance(value, dict):
            return None
        found = merged.read_kept(value, lambda digest: held.get(digest.hex()))
        return _same(found.header in headers, True, data)

    def body(data: bytes) -> object:
        """What every body goes through: its spelling, then the model of some kind."""
        if canonical_bytes.body_problem(data) is not None:
            return None
        value = entry.parse_canonical(data)
        if not isinstance(value, dict):
            return value
        blobs = sum(size if isinstance(size, int) else 0 for _, size in entry.entry_blobs(value))
        head = kinds[some[len(data) % len(some)]]
        return blobs, kinds_known.kind_problem(head.kind, head.stream, value)

    yield one("canonical JSON", entry.parse_canonical, (entry.parse_canonical,), some,
              write=entry.format_canonical, is_strict=True)  # fmt: skip
    yield one("header", entry.parse_header, (entry.parse_header, entry.parse_entry_time), tuple(headers),
              write=entry.format_header, is_strict=True)  # fmt: skip
    yield one("header as evidence", canonical_bytes.read_canonical_header,
              (canonical_bytes.read_canonical_header,), tuple(headers), errors=())  # fmt: skip
    yield one("body", body, (canonical_bytes.body_problem, kinds_known.kind_problem), some, errors=())
    yield one("entry of a peer", kept, (merged.read_kept,), tuple(map(peer_body, (3, 24, 20))),
              errors=(MalformedError, KeyError, TypeError, ValueError))  # fmt: skip
    yield one("bundle", lambda data: tiles.parse_bundle(data, 2), (tiles.parse_bundle,),
              (b"".join(len(h).to_bytes(2, "big") + h for h in headers[:2]),))  # fmt: skip
    yield one("line of bodies", lambda data: tiles.parse_line(data, 3), (tiles.parse_line,), lines[3:4],
              write=lambda value: tiles.format_line(3, value), is_strict=True)  # fmt: skip
    yield one("bundle of bodies", lambda data: tiles.parse_body_bundle(data, 0, 3),
              (tiles.parse_body_bundle,), (b"\n".join((*lines[:3], b"")),))  # fmt: skip
    paths = (b"tile/0/x001/x234/067", b"tile/entries/000.p/7", b"tile/1/000.p/17", b"bodies/000.p/32.jsonl")
    yield one("path of a tile", _text(tiles.parse_tile_path), (tiles.parse_tile_path,), paths[:3],
              write=lambda tile: tiles.format_tile_path(tile).encode(), is_strict=True)  # fmt: skip
    yield one("path in an export", _text(tiles.parse_tile_or_bundle_path),
              (tiles.parse_tile_or_bundle_path,), paths)  # fmt: skip
    yield one("row of the head", lambda data: read_stored_tree(len(data) // 32, data[1:]),
              (read_stored_tree,), (b"x" + bytes(32), b""), errors=(LedgerDamagedError,))  # fmt: skip


# The files of a team ----------------------------------------------------------------------------


def _reread(value: Any, write: Callable[[Any], bytes], *errors: type[Exception]) -> bytes:
    """The bytes of a value; those that read as nothing where it cannot be written."""
    try:
        return write(value)
    except errors:
        return b"\0"


def _team() -> Iterator[Parser]:
    chats = _golden("documents/*/chat/*.chat", "merged/*.chat")
    one = partial(Parser, words=(b"---\n", b": ", b"=== nbs-chat ===\n", b"|\n  ", b"MTIz", b"#"))
    events = _golden("documents/nbs-bus/events/*.event", "documents/*/events/processed/*.event")
    yield one("event", bus.parse_event, (bus.parse_event,), events, write=_written_event,
              words=(b"source: ", b"type: ", b"priority: ", b"payload: |", b"payload: >-2\n", b"dedup-key: ",
                     b"timestamp: ", b"\n  ", b"\\x0", b"\\U0010", b"'", b'"', b"# "))  # fmt: skip
    yield one("chat", chat.split_chat_file, (chat.split_chat_file, chat.cut_chat_lines), chats,
              write=chat.join_chat_file, is_strict=True)  # fmt: skip
    heads_of = tuple(part.header_raw for part in map(chat.split_chat_file, chats) if part)
    yield one("header of a chat", chat.parse_header, (chat.parse_header,), heads_of)
    yield one("line of a chat", chat.parse_line, (chat.parse_line,), (b"MTc5NTI5NDY3NXxhbm46IGhlbGxv", *chats[0].splitlines()[-3:]))
    yield one("positions", chat.parse_chat_cursors, (chat.parse_chat_cursors,),
              (b"# Read cursors\nann=3\nbob=14\n",), write=chat.format_chat_cursors,
              words=(b"=", b"\n", b"ann=", b"#"))  # fmt: skip
    yield one("mentions", _unicode(chat.chat_mentions), (chat.chat_mentions,),
              (b"@alex, (@eve!) and @@fay; not bob@example.org. @alex?",), words=(b"@", b"@@", b"!", b"?"))  # fmt: skip
    said = b'{"text":"hello","handle":"ann","time":1795294675}\n{"text":"b","handle":"bob","time":"2026-11-20T10:00:00Z"}\n'
    fields = {name: name for name in chat_jsonl.FIELDS}
    yield one("messages of others", lambda data: chat_jsonl.parse_jsonl_messages(data, fields),
              (chat_jsonl.parse_jsonl_messages,), (said,), words=(b'"text":', b'"time":', b"1e400", b"null"))  # fmt: skip
    tasks = _golden("documents/*/workers/*.md")
    task = workers.parse_worker(tasks[0])
    headings = (b"## Status\n", b"## Log\n", b"## Task\n", b"State: ", b"Started: ", b"# Worker: ", b"## Tooling\n")
    yield one("worker", workers.parse_worker, (workers.parse_worker,), tasks, words=headings)
    yield one("log of a worker", lambda data: workers.worker_log_below(data, task.title, task.task),
              (workers.worker_log_below,), tasks, words=headings)  # fmt: skip
    yield one("words", _unicode(_words), (words.words_of_text, words.comparable_text, words.readings_of,
              words.without_escapes), _golden("merged/*.md"), words=(b"\x1b[1m", b"\x1b]8;;", b"\x07", b"\b",
              "\u3164".encode(), "\u00ad".encode(), "\ufdfa".encode()))  # fmt: skip
    yield one("texts to erase", _all(texts_to_redact_in), (texts_to_redact_in,), chats)


def _words(said: str) -> object:
    return words.words_of_text(said), words.comparable_text(said), words.without_escapes(said), list(words.readings_of(said))


def _written_event(event: bus.Event | None) -> bytes:
    return b"" if event is None else _reread(event, bus.format_event, ValueError)


def _names() -> Iterator[Parser]:
    one = partial(Parser, words=(b"-archive", b".chat", b".md", b".event", b"-", b"20260212", b"135500", b"/"))
    yield one("name of an event", _text(lambda name: (bus.valid_event_name(name), bus.event_name_us(name))),
              (bus.valid_event_name, bus.event_name_us), (b"bus/1707753600123456-parser-done-48291.event",))  # fmt: skip
    yield one("name of a chat's archive", _text(chat.parse_chat_archive_name),
              (chat.parse_chat_archive_name,), (b"live-20260212-135500-archive.chat",))  # fmt: skip
    yield one("name of a log's archive", _text(log.parse_decision_archive_name), (log.parse_decision_archive_name,),
              (b"live-log-20260221-101500-archive.md", b"log-archive-20260221-101500.md"))  # fmt: skip
    yield one("name of a kept file", _text(swap.parse), (swap.parse,),
              (f"{swap.KEPT}{'a' * 16}-{'b' * 16}-12-{'c' * 16}-3f-{'d' * 12}".encode(),))  # fmt: skip
    moments = (b"2026-02-12T14:00:00+0100", b"2026-02-12T14:00:00Z", b"2026-02-12 14:00:00")
    signs = (b"Z", b"+01:00", b"-2400", b"T", b" ", b"0000-00-00", b"9999-12-31", b":60")
    yield one("time", _text(text.parse), (text.parse,), moments, words=signs)
    yield one("time of a chat", _text(chat.parse_chat_time), (chat.parse_chat_time,), moments, words=signs)
    yield one("time that was asked for", _text(lambda said: commands.moment_param(said, "--since")),
              (commands.moment_param,), (*moments, b"30s", b"2d", b"1795294675"), words=signs,
              errors=(BadArgumentError,))  # fmt: skip
    yield one("time of an entry", _text(entry.parse_entry_time), (entry.parse_entry_time,),
              (b"2026-11-21T20:57:55.123456Z",), words=signs, errors=(ValueError,))  # fmt: skip
    yield one("number", _text(lambda said: commands.whole_number_param(said, 0, 1000)),
              (commands.whole_number_param,), (b"300",))  # fmt: skip


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


def _decisions() -> Iterator[Parser]:
    logs = _golden("documents/*/scribe/*.md", "merged/log.md")
    marks = (
        b"### D-1 ", b"\n---\n\n", b"- **Status:** ", b"- **Rationale:** ", b"- **Chat ref:** ", b"[SUPERSEDES D-1] ",
        b"# Decision Log\n", b"live.chat:~L3", b", ", b"- **", b":** ", b"D-",
    )  # fmt: skip
    one = partial(Parser, words=marks)
    pieces = log.split_decision_log(logs[0])[1]
    yield one("decision log", log.split_decision_log,
              (log.split_decision_log, log.count_decision_headings), logs,
              write=lambda parts: parts[0] + b"".join(parts[1]), is_strict=True)  # fmt: skip
    yield one("decision", log.parse_decision, (log.parse_decision, log.decision_parts), tuple(pieces),
              write=_written_decision)  # fmt: skip
    yield one("references", _unicode(log.parse_decision_refs), (log.parse_decision_refs,),
              (b"live.chat:~L11, live.chat L3",))  # fmt: skip
    yield one("kind of a page", lambda data: (log.is_decision_log("notes.md", data), madr.is_madr("notes.md", data)),
              (log.is_decision_log, madr.is_madr), (*logs[:2], _MADR))  # fmt: skip
    front = (b"---\n", b"status: ", b"date: ", b"- a\n", b"# ", b"## Decision Outcome\n", b"Chosen option: ",
             b"## ", b"* ", b"```\n", b"<!--", b"**Status:** ", b"superseded by [7](0007-x.md)", b"|a|b|\n|-|-|\n")  # fmt: skip
    written = madr_file.format_decision_page(madr_file.DecisionPage(3, _A_DECISION))
    yield one("decision's file", partial(madr.parse_madr, "0007-use-it.md"), (madr.parse_madr,), (_MADR, written),
              errors=MALFORMED, words=front)  # fmt: skip
    yield one("page of decisions", partial(madr.parse_decision_page, "DECISIONS.md"), (madr.parse_decision_page,),
              (_PAGE, _MADR), errors=MALFORMED, words=front)  # fmt: skip
    yield one("exported page", madr_file.written_page, (madr_file.written_page, madr_file.named_decision), (written,),
              errors=(ValueError,), words=front)  # fmt: skip
    yield one("line of Markdown", _unicode(madr_file.unescape_markdown), (madr_file.unescape_markdown,
              madr_file.read_page_line), (b"\\# no \\\\x0a \\*x\\*\\x0a---",),
              words=(b"\\", b"\\x", b"\\*", b"&amp;", b"<br>"))  # fmt: skip
    titles = (b"## Hidden Assumptions\n", b"Confidence: ", b"# Pythia Checkpoint", b"PYTHIA CHECKPOINT - Assessment",
              b"Decisions reviewed: ", b"```\n", b"> ", b"End of checkpoint", b"1. ", b"**", b"    ")  # fmt: skip
    yield one("assessment", _unicode(pythia.parse_assessment), (pythia.parse_assessment,), (_SAID,), words=titles)
    yield one("checkpoint", _unicode(pythia.parse_checkpoint_payload), (pythia.parse_checkpoint_payload,),
              (b"Checkpoint at decision 20. Decisions D-17 through D-36.",), words=titles)  # fmt: skip
    yield one("query", _unicode(words_of_query), (words_of_query,), (b'Files "over sockets" AND x*',),
              words=(b'"', b"*", b"NEAR(", b"-"))  # fmt: skip


_A_DECISION = log.DecisionText(
    "D-1707753600", "Use it", None, "live.chat:~L11", "ann, bob", "x.py", "none", "decided", "It is there."
)  # fmt: skip


def _written_decision(found: tuple[log.DecisionText | None, tuple[str, ...]]) -> bytes:
    """The bytes of a decision that is written as ours are; those that hold none for all others."""
    decision, problems = found
    if decision is None or problems:
        return b""
    return _reread(decision, lambda one: log.format_decision(one).encode(), ValueError)


# Configuration ----------------------------------------------------------------------------------


def _settings() -> Iterator[Parser]:
    yaml = (b"- ", b": ", b"&a ", b"*a", b"<<: *a", b"!!python/object:x ", b"? ", b"|\n", b">\n", b"{", b"[", b"%YAML 1.1\n",
            b"---\n", b"...\n", b"!!binary ", b"!!set ", b"0o7", b"1:30:00", b"2026-02-12", b"~", b".inf")  # fmt: skip
    toml = (b"[", b"[[", b"]]\n", b" = ", b'"""', b"'''", b"{", b"2026-02-12T01:02:03Z", b"inf", b"0x", b"tool.tripod.", b".")
    one = partial(Parser, errors=MALFORMED)
    policies = (
        b"level: PINNED\ntail-entries: 5\nrequired: [drift, pythia-isolation]\nseals: ann+c4faeb66+AYqI\n",
        b"never:\n  - paths: [.env, secrets/**]\n    except: .env.example\n    role: worker\n"
        b"roles:\n  - role: worker\n    folder: work/*\naccept: ann\npeers: closed\n",
    )
    keys = tuple(key + b": " for key in (b"level", b"never", b"paths", b"role", b"session", b"grade", b"since", b"signed"))
    yield one("policy", rules.parse, (rules.parse, settings.read_settings), policies, words=(*yaml, *keys))
    for name, seed in (
        ("tripod.toml", b'select = ["drift"]\nformats = ["sarif=tripod.sarif"]\n[policy]\nlevel = "PINNED"\n[[policy.never]]\npaths = [".env"]\n'),
        ("pyproject.toml", b'[project]\nname = "x"\n[tool.tripod]\nselect = ["drift"]\n[tool.tripod.policy]\nlevel = "PINNED"\n'),
    ):  # fmt: skip
        yield one(name, partial(configuration.parse_configuration, name), (configuration.parse_configuration,), (seed,),
                  words=toml)  # fmt: skip
    yield one("TOML", lambda data: settings.read_toml(data, 10_000), (settings.read_toml,), (b"[door]\nwidth = 3\n",), words=toml)
    yield one("YAML", settings.read_setting_entries, (settings.read_setting_entries,), policies, words=yaml)
    yield one("team's configuration", team.parse_team_config, (team.parse_team_config,),
              _golden("documents/*/events/config.yaml"), errors=(),
              words=(*yaml, b"dedup-window: ", b"notify: poll", b"pythia-interval: ", b"\n"))  # fmt: skip
    profile = b"argv: [claude, -p]\noutput: claude-stream-json\nenv: [HOME]\nisolated: {}\n"
    yield one("profile", profiles.parse_profile, (profiles.parse_profile,), (profile,), words=yaml,
              errors=(BadArgumentError,))  # fmt: skip
    yield one("profile in TOML", partial(profiles.parse_profile, toml=True), (profiles.parse_profile,),
              (b'argv = ["claude", "-p"]\noutput = "text"\n',), words=toml, errors=(BadArgumentError,))  # fmt: skip
    config = b'[core]\n\tbare = false\n[remote "origin"]\n\turl = ./x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
    yield one("configuration of git", git_folder.plain_git_settings, (git_folder.plain_git_settings,), (config,),
              errors=(), words=(b"[", b"]\n", b" = ", b'"', b"\\", b";", b"#", b"include", b"\t"))  # fmt: skip
    yield one("list of git's settings", git_folder.listed_git_settings, (git_folder.listed_git_settings,),
              (b"core.bare\nfalse\0remote.origin.url\n./x\0",), errors=(), words=(b"\0", b"\n"))  # fmt: skip
    for file, seed in (("HEAD", b"ref: refs/heads/main\n"), ("packed-refs", b"# pack-refs with: peeled\n" + b"a" * 40 + b" refs/heads/main\n")):
        yield one(f"git's {file}", partial(_git_refs, file), (git_folder.read_git_refs,), (seed,),
                  words=(b"ref: ", b"refs/heads/", b"../", b"^", b"#", b"a" * 40, b" "), errors=(git_folder.GitError,))  # fmt: skip
    report = {"checks": [{"check": "drift", "findings": [{"severity": "failure", "fingerprint": "ab" * 32}]}], "parts": []}
    yield one("baseline", _in_file(read_baseline), (read_baseline,), (json.dumps(report).encode(),),
              words=(b'"checks":', b'"parts":', b"[]", b"{}"), errors=(BadArgumentError,))  # fmt: skip


def _in_file(read: Callable[[str], object], name: str = "input") -> Callable[[bytes], object]:
    """A reader of files, given bytes."""

    def of_bytes(data: bytes) -> object:
        path = _scratch() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return read(str(path))

    return of_bytes


@cache
def _scratch() -> Path:
    """A folder of this process, in memory where the system has such a place."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a new one in it
    folder = tempfile.mkdtemp(prefix="torture-input-", dir=where)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _git_refs(file: str, data: bytes) -> object:
    """The refs of a repository, one file of which holds these bytes."""
    folder = _scratch() / "git" / file
    if not folder.exists():
        (folder / "refs/heads").mkdir(parents=True)
        (folder / "refs/heads/main").write_bytes(b"b" * 40 + b"\n")
        (folder / "HEAD").write_bytes(b"ref: refs/heads/main\n")
    (folder / file).write_bytes(data)
    return git_folder.read_git_refs(git_folder.RepositoryPath(str(folder), "", str(folder), str(folder)))


# Recorded sessions, and what programs answer ----------------------------------------------------


def _sessions() -> Iterator[Parser]:
    names = (b'"type":', b'"tool_use"', b'"tool_result"', b'"content":', b'"uuid":', b'"parentUuid":', b'"id":', b"null",
             b"[]", b"{}", b'"cwd":"/w"', b'"file_path":', b'"command":"cat x"', b"\\ud800", b'"isSidechain":true', b"\n")  # fmt: skip
    one = partial(Parser, words=names)
    for program in ("claude_code", "codex", "copilot", "gemini", "opencode", "cursor", "atif", "qwen"):
        yield one(f"session of {program}", _in_file(_session, f"{program}.jsonl"), (read_session_file, readers.read_session), ())
    yield one("lines of JSON", lambda data: list(jsonl.session_records(data.splitlines(keepends=True))),
              (jsonl.session_records, jsonl.json_value), (b'{"type":"user","a":["\\ud83d"]}\n{"b":1}\n',))  # fmt: skip
    heard = {"session_id": "s", "cwd": "/w", "hook_event_name": "PreToolUse", "tool_name": "Read",
             "tool_input": {"file_path": "/w/.env"}, "tool_use_id": "c"}  # fmt: skip
    events = tuple(data for data in _golden("hook-spool/*/*.json") if len(data) < 2000)
    yield one("events of hooks", _in_file(lambda path: read_spool(os.path.dirname(path)), "spool/0001-PreToolUse.json"),
              (read_spool,), (json.dumps(heard).encode(), *events[:6]))  # fmt: skip


def _session(path: str) -> object:
    """What a session exposed, as ``tripod exposure`` finds it."""
    exposures = SessionExposures(NeverRule(["chat/**"]), ProtectedText(), "x", frozenset())
    found = read_session_file(path, exposures.add, is_named=True)
    if found.program is None:
        assert found.problem
        return found.problem
    exposures.end()
    return judge_exposures([exposures], Counter()).told


def _answers() -> Iterator[Parser]:
    result = (b'{"type":"assistant","session_id":"s","message":{"content":[{"type":"tool_use","id":"c","name":"Read"}]}}\n'
              b'{"type":"result","subtype":"success","session_id":"s","result":"done","total_cost_usd":0.01,'
              b'"usage":{"input_tokens":3},"permission_denials":[{"tool_use_id":"c"}]}\n')  # fmt: skip
    one = partial(Parser, words=(b'"result"', b'"type":', b"null", b"[]", b"1e999", b"\\ud800", b"\n"))
    yield one("answer as a stream", partial(read_spec_answer, "claude-stream-json"), (read_spec_answer,), (result,))
    yield one("answer as JSON", partial(read_spec_answer, "json"), (read_spec_answer,), (b'{"a":["\\ud800"]}',))

    def run(data: bytes) -> object:
        found = witnesses.RunCalls("x", 1)
        witnesses.read_run(found, "s", data, "session_id")
        return sorted(found.calls.items()), sorted(found.denied)

    yield one("calls of a run", run, (witnesses.read_run,), (result,))
    rule = breach.ChatRule()
    yield one("line of a log", _unicode(_all(breach.calls_in_line)), (breach.calls_in_line, breach.words_of_call),
              (b"> Read(a.md)", b"me@host:~$ cd x && cat y; echo `head z`", b"I ran `cat x`, and read y, then nbs-chat read z"),
              words=(b"`", b"$ ", b"> ", b"Read(", b")", b"Bash(", b"\x1b[1m", b"nbs-chat read ", b"cat "))  # fmt: skip
    yield one("readings of the chat", _unicode(_all(rule.readings_in)), (breach.ChatRule.readings_in, breach.stream_value,
              breach.calls_in_stream), (result, b"$ head .nbs/chat/live.chat", b"> Read(.nbs/chat/live.chat)"))  # fmt: skip
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a/b.jsonl"), io.BytesIO())
    yield one("archive of transcripts", _all(reviewer_transcripts_in), (reviewer_transcripts_in,), (archive.getvalue()[:2048],),
              words=(b"ustar\x0000", b"0000644\0", b"77777777777\0", b"../x", b"\x80", b"L"))  # fmt: skip


# Command lines ----------------------------------------------------------------------------------


def _commands() -> Iterator[Parser]:
    signs = (b"|", b"&&", b";", b"$(", b"`", b"${x:-", b"}", b"<<E\n", b"E\n", b"<(", b">", b"2>&1", b"'", b'"', b"\\\n", b"$'",
             b"*", b"{a,b}", b"~", b"cd ", b"cat ", b"sed -n 1p ", b"xargs ", b"find . -exec ", b"git show HEAD:", b"for x in ",
             b"do ", b"done", b"if ", b"fi", b"eval ", b"bash -c ", b"python -c ", b"sudo ", b"env A=1 ", b"[[ ", b"$((", b"case ")  # fmt: skip
    some = (b"cd src && rg -n 'a b' lib.py 2>/dev/null | head -5", b"for f in *.md; do cat \"$f\"; done",
            b"cat <<EOF | tee x\n$(cat y)\nEOF\n", b"A=1 env -C /w python - < a.py; find . -name '*.env' -exec cat {} +",
            b"git -C /w show HEAD:chat/a.md; tar xf a.tar -C b; awk -f p.awk {a,b}/c", b"bash -c 'sed -n 1,3p a | xargs cat'")  # fmt: skip
    one = partial(Parser, words=signs)
    yield one("command of a shell", _text(partial(shell.opened_by, cwd="/w")), (shell.opened_by, shell.read_syntax), some)
    yield one("plain command", _text(syntax.plain_commands), (syntax.plain_commands, syntax.without_braces), some)
    yield one("braces", _text(syntax.without_braces), (syntax.without_braces,), (b"src{/../.env,}", b"{1..9}{a,{b,c}}"))
    yield one("command of PowerShell", _text(partial(powershell.opened_by_powershell, cwd="/w")),
              (powershell.opened_by_powershell,), (b"Get-Content -Path .\\chat\\a.md | Select-String 'x'; cd ..; gc b",
              b"foreach ($f in ls) { cat $f }"),
              words=(b"$", b"@(", b"@{", b"{", b"}", b"|", b";", b"`", b"gc ", b"Get-Content ", b"-Path ", b"'@\n", b"$("))  # fmt: skip
    yield one("address of a file", _text(shell.path_of_url), (shell.path_of_url,), (b"file:///w/a%20b",), words=(b"%", b"//", b"%zz"))
    usage = "DIR [EVENT] --by=HANDLE [--processed]"
    grammar = nbs.nbs_grammar(usage)
    yield one("words of nbs-*", _text(lambda said: nbs.take_nbs_words_apart(said.split("\n"), usage, grammar)),
              (nbs.take_nbs_words_apart,), (b"dir\nx.event\n--by=ann\n--processed", b"--\n--x\n-- a"),
              words=(b"--by=", b"--", b"\n--processed", b"\n"), errors=(BadArgumentError,))  # fmt: skip
    usages = tuple(line.encode() for line in ("DIR SOURCE TYPE [PAYLOAD] [--file=FILE]", "A | B (c) [--x]", usage))
    yield one("usage of nbs-*", _unicode(nbs.nbs_grammar), (nbs.nbs_grammar,), usages, words=(b"[", b"]", b"|", b"--", b"=", b"("))
