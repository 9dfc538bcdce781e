"""Redaction: a body is erased everywhere tripod holds it, and every hash still holds.

In one transaction: for each entry a ``redacted`` one with name, time and reason; its body, salt and
blobs erased; all tables folded anew with the tombstone. Then the files that showed it are written,
and ``tripod.trust.export.redact_exports`` makes the database's file and its log anew. If we die
on the way, the next command that acts finishes both.

Copies that machinery made are erased with it: events that report the entry, and stored bytes of
files. Other messages about it belong to their authors, and are only named. The texts of a body are
searched in bodies, blobs and files; the lines of a chat file, which are base64, are searched as the
messages that they encode. Where the text of an entry of a Nova run stands is known by the rules of
such a run. Of an imported session the bytes go that were kept of it and that no other entry names;
what an entry says of its exposures is an entry of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any

import orjson

from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.ledger import DATABASE, MERGED, WORKERS, Draft, Entry, redaction_entry_id
from tripod.ledger.files import read_plain_file
from tripod.ledger.kinds import nova
from tripod.ledger.kinds.agents import DELIVERED, ENDED
from tripod.ledger.kinds.redaction import REDACTED
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.kinds.sessions import IMPORTED
from tripod.projections import CHAT, LOG, Source, desired_file, manifest, refold
from tripod.projections.chat.format import parse_line
from tripod.projections.erasure import erasure_places, is_erasable, tombstone
from tripod.projections.nova.tables import FOLDER as NOVA
from tripod.projections.nova.tables import work_effort_section_of
from tripod.projections.text import text_line_problem
from tripod.sessions.evidence import parts_named_once, remove_parts, remove_unnamed_parts
from tripod.team.act import Act
from tripod.team.team import Team
from tripod.trust.export import forget_exported_bodies

LEAST = 16
"""Bytes from which on a text is known again wherever it stands; a shorter one only as a line."""

_CONTENT = ({"text"}, {"base64"}, {"sha256", "size"})
_DIGESTS = ("argv_sha256", "digest", "leaf", "sha256")


def texts_to_redact_in(data: bytes) -> Iterator[str]:
    """What bytes say: themselves, and their lines where those are messages of a chat."""
    yield data.decode("utf-8", "replace")
    for line in data.split(b"\n"):
        message = parse_line(line) if line else None
        if message is not None:
            yield f"{message.handle}|{message.time}: {message.text}"


def texts_to_redact_of(source: Source, value: Any) -> Iterator[str]:
    """Every text of a body, what stands in its blobs included, and no digest."""
    if isinstance(value, dict):
        if value.keys() in _CONTENT:
            yield from texts_to_redact_in(source.content(value))
            return
        for name, inner in value.items():
            if name not in _DIGESTS:
                yield from texts_to_redact_of(source, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_to_redact_of(source, inner)
    elif isinstance(value, str):
        yield value


def _erased_texts(source: Source, kind: str, body: dict[str, Any]) -> list[str]:
    """What is erased with a body of this kind and is looked for elsewhere."""
    erasure = BY_NAME[kind].erasure
    values = [body.get(name) for name in (() if erasure is None else erasure.texts)]
    values.append(body.get("observed", {}).get("raw"))
    texts = []
    for value in values:
        if isinstance(value, dict) and value.keys() not in _CONTENT:
            # What a program wrote is in a content of its own; None where it was too much to keep.
            value = value.get("content")  # noqa: PLW2901 - the same value, unwrapped
        if isinstance(value, str):
            texts.append(value)
        elif value is not None:
            texts.append(source.content(value).decode("utf-8", "replace"))
    if kind == nova.MISSED.name:
        texts.append(body["problem"])
    if kind == "chat.sent":
        texts.append(f"{body['handle']}|{body['time']}: {texts[0]}")
    return [text for text in dict.fromkeys(texts) if text.strip()]


def _pattern_for(texts: list[str]) -> re.Pattern[str] | None:
    """What finds copies of texts: long ones anywhere, a message's whole line as a line alone."""
    parts = []
    for text in texts:
        if len(text.strip("\n").encode()) >= LEAST:
            parts.append(re.escape(text.strip("\n")))
        elif "|" in text and ": " in text:
            parts.append(rf"\A{re.escape(text)}\Z")
    return re.compile("|".join(parts)) if parts else None


MAX_REASON = 1000  # bytes
READ_LIMIT = 64 * 1024 * 1024
_LIVE = frozenset(DATABASE + end for end in ("", "-wal", "-shm", "-journal", ".lock"))
QUOTED = 200  # characters of an erased text by which an event that tells of it is known


@dataclass(frozen=True)
class Erased:
    """An entry that is erased, and what it was found by."""

    seq: int
    kind: str
    stream: str
    why: str


@dataclass
class Redaction:
    """What a redaction erased (or would), what it cannot erase, and where it still stands."""

    erased: list[Erased] = field(default_factory=list)
    cannot: list[str] = field(default_factory=list)
    quoted: list[int] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    done: bool = False


@dataclass(frozen=True)
class RedactionRequest:
    """What is asked for: entries by number, or all that match; who asks, and why."""

    seqs: Sequence[int] = ()
    match: str | None = None
    reason: str = ""
    by: str = ""

    def pattern(self) -> re.Pattern[str] | None:
        """The expression (BadArgumentError: invalid)."""
        if (self.match is None) != bool(self.seqs):
            raise BadArgumentError("give the numbers of entries, or --match with an expression")
        try:
            return None if self.match is None else re.compile(self.match)
        except re.error as error:
            raise BadArgumentError(f"--match: no regular expression: {error}") from error


def redact(
    team: Team, request: RedactionRequest, *, dry_run: bool = False, exports: Iterable[str] = ()
) -> Redaction:
    """Erase the bodies of entries, also from the folders ``exports``; ``dry_run`` only says which.

    Raises BadArgumentError where an argument breaks its rule, NotFoundError where nothing matches,
    and RefusedError where an entry cannot be erased; then nothing was recorded.
    """
    pattern = request.pattern()
    folders = list(exports)
    for folder in folders:
        if not os.path.isdir(folder):
            raise BadArgumentError(f"--export: {folder} is no folder")
    if dry_run:
        team.refresh()
        return _plan(team, request, pattern)[0]
    problem = text_line_problem(request.reason, "--reason", MAX_REASON)
    if not request.reason.strip():
        problem = "--reason: say why; it stays in the ledger"
    if problem is None and not request.by:
        problem = "--as: say who erases it; it stays in the ledger"
    if problem is not None:
        raise BadArgumentError(problem)
    lookup = team.store.seq_of
    again = [seq for seq in request.seqs if folders and lookup(redaction_entry_id(seq)) is not None]
    rest = replace(request, seqs=[seq for seq in request.seqs if seq not in again])
    plan = Redaction() if again and not rest.seqs else _erase(team, rest, pattern)
    for folder in folders:
        forget_exported_bodies(folder, [*again, *(target.seq for target in plan.erased)])
        remove_unnamed_parts(team.source, folder)
    plan.done = not team.files.failed and not team.files.late and not team.store.unswept()
    return plan


def _erase(team: Team, request: RedactionRequest, pattern: re.Pattern[str] | None) -> Redaction:
    with team.act(full=True, locks=files_to_redact(team), by=request.by) as act:
        plan, entries, searched = _plan(team, request, pattern)
        told = f"{request.reason}\n{request.by}"
        if any(one.search(told) for one in searched):
            raise BadArgumentError(
                "rephrase --reason and --by so that they do not contain the erased text"
            )
        drafts = [
            REDACTED.draft(
                {
                    "seq": entry.seq,
                    "kind": entry.kind,
                    "reason": request.reason,
                    "by": request.by,
                    "keep": tombstone(entry.kind, entry.data),
                },
                cause=entry.id,
            )
            for entry in entries
        ]
        erase_within(act, drafts)
    for path in _files(team):
        name = os.path.relpath(path, team.root)
        with suppress(OSError):
            data = read_plain_file(path, READ_LIMIT)
            texts = texts_to_redact_in(data) if len(data) <= READ_LIMIT else ()
            if any(one.search(text) for text in texts for one in searched):
                plan.left.append(name)
        if os.path.lexists(path) and os.lstat(path).st_size > READ_LIMIT:
            plan.cannot.append(f"{name} is over {READ_LIMIT >> 20} MiB and was not searched")
    return plan


def files_to_redact(team: Team) -> list[str]:
    """The files whose original tools' lock an act holds that erases: the chats and the logs."""
    channels = [name for (name,) in team.store.db.execute("SELECT channel FROM channels")]
    logs = [f"{LOG.folder}/{name}" for name in LOG.live(team.source)]
    return [*(f"{CHAT.folder}/{name}.chat" for name in channels), *logs]


def erase_within(act: Act, redactions: Iterable[Draft]) -> None:
    """Carry out redactions, and fold the tables anew."""
    redactions = list(redactions)
    known = act.writer.known.whole()
    erased = {one.body["seq"] for one in redactions if one.body["kind"] == IMPORTED.name}
    if erased:
        parts = parts_named_once(act.source, erased)
        act.later["evidence",] = partial(remove_parts, act.context.root, parts)
    for draft in redactions:
        for path in erasure_places(act.source, draft.body["kind"], draft.body["keep"]):
            shown = desired_file(act.source, path)
            if shown is not None:  # what we rendered ourselves may be written over
                act.writer.account(path, sha256(shown.data).hexdigest())
        act.erase(draft)
    refold(act.transaction, act.transaction.read())
    manifest.save_manifest(act.transaction.tables, known)


def _plan(
    team: Team, request: RedactionRequest, pattern: re.Pattern[str] | None
) -> tuple[Redaction, list[Entry], list[re.Pattern[str]]]:
    """What is to be erased, its entries, and the expressions that find its texts elsewhere."""
    plan = Redaction()
    chosen: dict[int, Entry] = {}

    def choose(found: Iterable[tuple[Entry, str]]) -> None:
        for entry, why in found:
            chosen[entry.seq] = entry
            plan.erased.append(Erased(entry.seq, entry.kind, entry.stream, why))

    if pattern is not None:
        choose(_matching(team, pattern, plan))
        if not chosen and not plan.cannot:
            raise NotFoundError("nothing in the ledger matches")
    else:
        choose(_named(team, request.seqs))
        named = dict(chosen)
        choose(_copies_of_nova(team, named))
        speaking = [e for e in chosen.values() if e.seq in named or e.kind == nova.FINALIZED.name]
        said = [t for e in speaking for t in _erased_texts(team.source, e.kind, e.data)]
        pattern = _pattern_for(said)
        choose(_copies(team, dict(chosen), said, pattern, plan))
        for seq in _still_in_nova(team, named):
            if seq not in chosen and seq not in plan.quoted:
                plan.quoted.append(seq)
    plan.erased.sort(key=lambda target: target.seq)
    return plan, [chosen[seq] for seq in sorted(chosen)], [] if pattern is None else [pattern]


def _named(team: Team, seqs: Iterable[int]) -> Iterator[tuple[Entry, str]]:
    for seq in dict.fromkeys(seqs):
        entry = next(team.store.read(seq, seq + 1), None)
        if entry is None:
            raise NotFoundError(f"no entry {seq}; `tripod show` lists the newest")
        there = team.store.seq_of(redaction_entry_id(seq))
        problem = f"it was redacted before, see entry {there}" if there is not None else None
        problem = problem or _hindrance(team, entry)
        if problem is not None:
            raise RefusedError(f"entry {seq} cannot be redacted: {problem}")
        yield entry, "named"


def _hindrance(team: Team, entry: Entry) -> str | None:
    """Why an entry cannot be erased (now)."""
    if entry.kind == MERGED:
        sql = "SELECT coalesce(replica, origin) FROM peers WHERE origin = ?"
        row = team.store.tables.execute(sql, (entry.data["origin"],)).fetchone()
        who = entry.data["origin"] if row is None else row[0]
        return (
            f"it is entry {entry.data['seq']} of {who}: it is redacted there, and "
            "here by the next `tripod pull`"
        )
    if not is_erasable(entry.kind):
        return f"a {entry.kind} holds names and numbers alone, which the rules need"
    if entry.kind == "config.changed":
        path = entry.data["path"]
        newest = team.store.db.execute("SELECT seq FROM inputs WHERE path = ?", (path,)).fetchone()
        if newest is not None and newest[0] == entry.seq and team.disk.is_file(path):
            return f"{path} still says so, and people write it: take it out there first"
    return None


def _matching(team: Team, pattern: re.Pattern[str], plan: Redaction) -> Iterator[tuple[Entry, str]]:
    for entry in team.store.read():
        if pattern.search(entry.actor) or pattern.search(entry.stream):
            plan.cannot.append(f"entry {entry.seq}: its header says it, and stays")
        found = {
            text for text in texts_to_redact_of(team.source, entry.data) if pattern.search(text)
        }
        if not found:
            continue
        problem = _hindrance(team, entry)
        if problem is not None:
            plan.cannot.append(f"entry {entry.seq}: {problem}")
            continue
        kept = found.intersection(
            texts_to_redact_of(team.source, tombstone(entry.kind, entry.data))
        )
        if kept:
            plan.cannot.append(f"entry {entry.seq}: a name in it says it, and stays")
        if found > kept:
            yield entry, "matches"


def _copies_of_nova(team: Team, named: Mapping[int, Entry]) -> Iterator[tuple[Entry, str]]:
    """What holds the texts of named entries of Nova runs by the rules of such a run.

    An answer may stand there in another spelling, or in parts: what its agents printed, the prompts
    that it stands in, transcripts of both, the end of a run that repeats it, and files of the run
    that were written over.
    """
    named = {seq: entry for seq, entry in named.items() if entry.stream.startswith(f"{NOVA}/")}
    if not named:
        return
    folders = tuple(f"{entry.stream}/" for entry in named.values())
    turns = [entry.data for entry in named.values() if entry.kind == nova.TURN.name]
    missed = [entry.data for entry in named.values() if entry.kind == nova.MISSED.name]
    refused = {spawn for body in missed for spawn in body["spawns"]}  # told what was wrong
    spawns = {body["spawn"] for body in turns} | refused
    logs = [_transcripts_of(spawn) for spawn in spawns]
    for entry in team.store.read():
        if entry.seq in named or entry.body is None:
            continue
        body = entry.data
        if entry.kind == DELIVERED.name:
            is_told = body["spawn"] in refused and body["channel"] == "prompt"
            is_copy = is_told or not named.keys().isdisjoint(body["sources"])
            logs += [_transcripts_of(body["spawn"])] if is_copy else []
        elif entry.kind == ENDED.name:
            is_copy = body["spawn"] in spawns
        elif entry.kind == nova.FINALIZED.name:
            is_copy = body.get("final") in named or any(
                one["run"] == body["run"] and one["problem"] in (body.get("reason") or "")
                for one in missed
            )
        else:
            path = str(body.get("path", ""))
            is_copy = path.startswith((*folders, *logs)) and is_erasable(entry.kind)
        if is_copy:
            yield entry, "holds a copy"


def _transcripts_of(spawn: str) -> str:
    """How the paths of the transcripts of a persona's program begin."""
    return f"{WORKERS}/{NOVA}-{spawn[:12]}-"


def _still_in_nova(team: Team, named: Mapping[int, Entry]) -> Iterator[int]:
    """The final turn that a named end of a Nova run repeats, where it is not redacted."""
    for entry in named.values():
        seq = entry.data.get("final") if entry.kind == nova.FINALIZED.name else None
        if seq is not None and team.store.seq_of(redaction_entry_id(seq)) is None:
            yield seq


def _copies(
    team: Team,
    named: Mapping[int, Entry],
    said: Sequence[str],
    pattern: re.Pattern[str] | None,
    plan: Redaction,
) -> Iterator[tuple[Entry, str]]:
    """Events that tell of the named entries, and bytes that were kept of files that show them."""
    causes = {entry.id for entry in named.values()}
    starts = {text[:QUOTED] for text in said}
    for entry in team.store.read():
        if entry.seq in named or entry.body is None or entry.kind == REDACTED.name:
            continue
        if entry.kind == "bus.published" and orjson.loads(entry.header).get("cause") in causes:
            payload = "\n".join(texts_to_redact_of(team.source, entry.data.get("payload", {})))
            if any(start in payload for start in starts):
                yield entry, "tells of it"
                continue
        if pattern is not None and any(
            map(pattern.search, texts_to_redact_of(team.source, entry.data))
        ):
            known = BY_NAME.get(entry.kind)
            if known is not None and known.erasure is not None and known.erasure.is_copy:
                yield entry, "holds a copy"
            else:
                plan.quoted.append(entry.seq)


def _files(team: Team) -> Iterator[str]:
    """Every file of the team but its open database.

    A database that a restore or a rebuild put aside is one that is only named: it was kept because
    nobody vouched for the ledger in its place, and when to let go of it is for people to say.
    """
    logs = [f"{LOG.folder}/{name}" for name in team.disk.places.logs() if name]
    added = (front for front in team.disk.places.added if f"{front}/" not in logs)
    fronts = ("events", "chat", *added)
    away = [os.path.normpath(team.disk.full(front)) for front in fronts]
    apart = os.path.dirname(team.store.path)
    away += [apart] if apart != team.root else []
    for root in (team.root, *(one for one in away if not one.startswith(f"{team.root}/"))):
        for folder, _, names in os.walk(root):
            yield from (os.path.join(folder, name) for name in sorted(names) if name not in _LIVE)
    sql = "SELECT run FROM nova_runs ORDER BY seq"
    runs = [name for (name,) in team.store.db.execute(sql)]
    efforts = dict(filter(None, (work_effort_section_of(team.source, name) for name in runs)))
    yield from (
        os.path.normpath(team.disk.full(path)) for path in efforts if team.disk.is_file(path)
    )
    # Of a folder in which a log was met, the rest is nothing of the team's.
    paths = (path for path in LOG.paths(team.source) if path.startswith(tuple(logs)))
    yield from (os.path.normpath(team.disk.full(path)) for path in paths if logs)
