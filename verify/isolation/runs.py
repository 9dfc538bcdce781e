"""Isolated runs, Pythia's checkpoints and assessments as the ledger has them. Pure.

The runs are those of one role: Pythia, or Nova's personas. For each: its input, its isolation, its
output. A text that cannot be read (erased, not stored, digest differs) is reported in words: it is
evidence neither for the agent nor against.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from tripod.ledger import WORKERS as FOLDER
from tripod.projections.layout import HIDDEN
from tripod.projections.pythia.format import (
    Assessment,
    DatedReviewEntry,
    parse_assessment,
    parse_checkpoint_payload,
)
from tripod.projections.team.tables import FILES
from tripod.projections.workers.format import parse_worker
from tripod.projections.workers.tables import WORKERS
from tripod.verify.check import Evidence
from tripod.verify.isolation.breach import (
    SENTENCES,
    ChatRule,
    messages_in_stream,
    stream_value,
    tells_to_read_chat,
    tool_servers_of_stream,
    without_terminal_codes,
)
from tripod.verify.sessions.items import strings_of

ROLE = "pythia"
LIMIT = 8 * 1024 * 1024
"""Bytes of one text that are searched; no prompt and no answer is longer."""

TRANSCRIPT = "its transcript"
ERRORS = "its error output"

FILE = "a file that it was given"
_GIVEN = {"prompt": "its prompt", "file": FILE}


@dataclass(frozen=True, slots=True)
class ReviewText:
    """A text that the reviewer got, or wrote. ``seq`` is its entry, ``time`` that entry's second.

    ``sources`` are the entries whose text it claims to hold, None for a text of the reviewer;
    ``readings`` what in it read the chat, ``raw`` its bytes, ``messages`` what an agent said in it.
    """

    what: str
    seq: int
    time: int
    text: str
    sources: tuple[int, ...] | None = None
    readings: tuple[str, ...] = ()
    raw: str = ""
    messages: tuple[str, ...] = ()


@dataclass(slots=True)
class ReviewRun:
    """A run. ``event`` is the entry of the checkpoint event that it is about, if that is known.

    ``level`` is how far it was kept from the chat, '' where nothing says so, and ``gap`` what lacks
    in that, in words. ``network``: it could reach the network. ``assessed`` is the entry of its
    assessment, if one came of it. ``unread`` says what of it cannot be looked at, ``false`` what is
    not so, ``exceptions`` what it had in its namespace that nobody looked at.
    """

    spawn: str
    seq: int
    event: int | None
    level: str = ""
    gap: str = ""
    network: bool = False
    assessed: int | None = None
    given: list[ReviewText] = field(default_factory=list)
    wrote: list[ReviewText] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)

    @property
    def sources(self) -> tuple[int, ...]:
        """Entries whose text it is said to have been given."""
        return tuple(seq for text in self.given for seq in text.sources or ())

    @property
    def until(self) -> int:
        """The entry up to which it may know of decisions: those before the event that asked.

        Of a team that was adopted the event may stand in front of them.
        """
        asked = self.seq if self.event is None else self.event
        return max([asked, *(seq + 1 for seq in self.sources)])


def review_runs(evidence: Evidence, role: str = ROLE, front: str = "") -> Iterator[ReviewRun]:
    """Every run of the reviewer, in the order of the requests; or of an agent of another role.

    ``front`` is how the subjects begin of those that are wanted.
    """
    rows = evidence.query(
        "SELECT g.spawn, g.seq, g.subject, g.ended, g.state, i.seq, a.seq, a.event FROM agents g"
        " LEFT JOIN isolations i ON i.spawn = g.spawn LEFT JOIN assessments a ON a.spawn = g.spawn"
        " WHERE g.role = ? AND g.subject >= ? AND (g.subject < ? OR ? = '') ORDER BY g.seq",
        role, front, f"{front}\U0010ffff", front,
    )  # fmt: skip
    rule = ChatRule(evidence.places)
    for spawn, seq, subject, ended, state, isolated, assessed, event in rows:
        one = ReviewRun(spawn, seq, _event(evidence, subject) if event is None else event)
        one.assessed = assessed
        order = _order(evidence, one)
        if isolated is not None and ended is not None and isolated > ended:
            one.false.append("how it was kept apart is said by an entry that came when it was over")
        _level(evidence, one, isolated, order)
        if event is not None and _event(evidence, subject) != event:
            one.false.append("it was about another checkpoint event than its assessment answers")
        searched = _given(evidence, one, order)
        if one.level == "namespace":
            one.exceptions += dict.fromkeys(run_namespace_exceptions(order, searched))
        shown: set[str] = set()
        if state == "ended":
            shown = _wrote(evidence, rule, one, ended)
            shown |= _left(evidence, rule, role, one, ended)
        elif assessed is not None:
            one.false.append(f"it is {state}, and an assessment is said to be its own")
        servers = order.get("mcp_servers")
        known = set(servers) if isinstance(servers, dict) else set()
        one.unread += [
            f"its stream shows tools of the server {name[:40]!r}, which its order does not name"
            for name in sorted(shown - known)
        ]
        yield one


def erased_in_run(evidence: Evidence, seq: int) -> bool:
    """Whether the body of an entry was erased, by the word of another entry."""
    return bool(evidence.query("SELECT 1 FROM redactions WHERE seq = ?", seq))


def assessed_run_text(evidence: Evidence, seq: int) -> str | None:
    """The assessment that an entry holds; None where it cannot be read."""
    body = evidence.body(seq)
    data = _content(evidence, seq, body.get("content"))
    if data is None or sha256(data).hexdigest() != body.get("sha256"):
        return None
    return data.decode("utf-8", "replace")


def _event(evidence: Evidence, subject: str) -> int | None:
    """The checkpoint event that a run is about: its entry's number, or the name of its file."""
    if subject.isascii() and subject.isdigit():
        rows = evidence.query("SELECT seq FROM asked WHERE seq = ?", int(subject[:18]))
    else:
        rows = evidence.query("SELECT min(seq) FROM events WHERE name = ?", subject)
    return rows[0][0] if rows else None


def _content(evidence: Evidence, seq: int, content: Any) -> bytes | None:
    """A text that entry ``seq`` holds; None where it was erased, or cannot be read."""
    try:
        return None if erased_in_run(evidence, seq) else evidence.source.content(content)
    except evidence.unreadable:
        return None


def _list(value: Any) -> list[Any]:
    """A list of a body that nobody vouches for; empty if it is not one."""
    return value if isinstance(value, list) else []


def _order(evidence: Evidence, one: ReviewRun) -> dict[str, Any]:
    """What it was ordered by; empty where that cannot be read."""
    body = evidence.body(one.seq)
    data = _content(evidence, one.seq, body.get("spec"))
    try:
        value = json.loads(data or b"")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or sha256(data or b"").hexdigest() != body.get("sha256"):
        one.unread.append("its order cannot be read")
        return {}
    if value.get("mcp_servers"):
        one.unread.append("it had tool servers, whose answers are nowhere")
    strings = [text for text in strings_of(value) if not text.isspace()]
    time = _second(evidence, one.seq)
    one.given.append(ReviewText("its order", one.seq, time, "\n".join(strings), ()))
    return value


def _level(evidence: Evidence, one: ReviewRun, seq: int | None, order: dict[str, Any]) -> None:
    body = {} if seq is None else evidence.body(seq)
    one.level = str(body.get("level", ""))
    one.gap = str(body.get("problem") or "")
    if one.level == "namespace":
        one.gap = ", ".join(name for name in HIDDEN if name not in _list(body.get("hidden")))
    # Of an order that cannot be read that is said already.
    argv = [str(word) for word in _list(order.get("argv"))]
    wrapped, network = run_namespace(argv)
    one.network = one.level != "namespace" or network
    if one.level == "namespace" and order and not wrapped:
        one.false.append("it is said to have run in a namespace, and its command line makes none")
    made = body.get("bwrap")
    if isinstance(made, dict) and argv and made.get("path") != argv[0]:
        one.false.append(f"another program than {made.get('path')} is said to make its namespace")


def _given(evidence: Evidence, one: ReviewRun, order: dict[str, Any]) -> set[str]:
    """Add what was delivered to it, by whichever channel; give the digests of what is searched."""
    prompts, searched = [], set()
    for (seq,) in evidence.query("SELECT seq FROM handed WHERE spawn = ? ORDER BY seq", one.spawn):
        body = evidence.body(seq)
        what, digest = _GIVEN.get(str(body.get("channel")), "what it was given"), body.get("sha256")
        if erased_in_run(evidence, seq):
            one.unread.append(f"{what} (entry {seq}) was erased")
            continue
        data = _content(evidence, seq, body.get("content"))
        text = _checked(one, f"{what} (entry {seq})", data, digest)
        if text is None:
            continue
        prompts += [digest] if body.get("channel") == "prompt" else []
        if "\0" not in text and text.encode() == data:  # else an archive, or a program
            searched.add(str(digest))
        sources = tuple(n for n in _list(body.get("sources")) if type(n) is int)
        one.given.append(
            ReviewText(what, seq, _second(evidence, seq), without_terminal_codes(text), sources)
        )
    asked = order.get("stdin")
    asked = asked.get("sha256") if isinstance(asked, dict) else None
    if not prompts and not one.unread:
        one.unread.append("no entry holds its prompt")
    elif prompts and asked is not None and asked not in prompts:
        one.false.append("its order gives it another prompt than the recorded one")
    return searched


def _wrote(evidence: Evidence, rule: ChatRule, one: ReviewRun, seq: int) -> set[str]:
    """Add what it wrote, as far as that was kept; give the tool servers that this shows."""
    body = evidence.body(seq)
    if erased_in_run(evidence, seq):
        one.unread.append(f"what it wrote (entry {seq}) was erased")
        return set()
    shown: set[str] = set()
    for name, what in (("stdout", "its output"), ("stderr", ERRORS)):
        kept = body.get(name)
        kept = kept if isinstance(kept, dict) else {}
        if "content" not in kept:
            one.unread.append(f"{what} (entry {seq}) was not kept: {kept.get('bytes')} bytes")
            continue
        data = _content(evidence, seq, kept["content"])
        text = _checked(one, f"{what} (entry {seq})", data, kept.get("digest"))
        shown |= _add_written(rule, one, what, (seq, _second(evidence, seq)), text)
    return shown


def _left(evidence: Evidence, rule: ChatRule, role: str, one: ReviewRun, ended: int) -> set[str]:
    """Add transcripts that its program left of its own session, kept when it ended."""
    shown: set[str] = set()
    for path, data, digest in transcripts_of_run(evidence, role, one.spawn):
        text = _checked(one, f"{TRANSCRIPT} {path}", data, digest)
        shown |= _add_written(rule, one, TRANSCRIPT, (ended, _second(evidence, ended)), text)
    return shown


def transcripts_of_run(
    evidence: Evidence, role: str, spawn: str
) -> Iterator[tuple[str, bytes | None, Any]]:
    """Transcripts that a run left: path, bytes (None: they cannot be read), digest in hex."""
    front = f"workers/{role}-{spawn[:12]}-"
    sql = "SELECT path, seq FROM files WHERE path GLOB ? AND seq < ? ORDER BY path"
    for path, seq in evidence.query(sql, f"{front}[0-9]*.log", evidence.size):
        body = evidence.body(seq)
        yield path, _content(evidence, seq, body.get("content")), body.get("sha256")


def _add_written(
    rule: ChatRule, one: ReviewRun, what: str, at: tuple[int, int], text: str | None
) -> set[str]:
    """Add a text that it wrote, texts of JSON lines put in their place; give its tool servers.

    ``at`` is its entry and that entry's second.
    """
    if text is None:
        return set()
    said, readings, servers = list[str](), list[str](), set[str]()
    shown = without_terminal_codes(text)
    is_value = stream_value(shown) is not None  # one JSON value, on one line or on many
    for part in [shown] if is_value else shown.split("\n"):
        value = stream_value(part)
        said += [part] if value is None else strings_of(value)
        readings += rule.readings_in(part)
        servers.update(tool_servers_of_stream(part))
    if text or what == TRANSCRIPT:
        readings += rule.readings_in_session(text) if what == TRANSCRIPT else ()
        whole, messages = "\n".join(said), tuple(messages_in_stream(shown))
        one.wrote.append(ReviewText(what, *at, whole, None, tuple(readings), text, messages))
    return servers


def _checked(one: ReviewRun, what: str, data: bytes | None, digest: Any) -> str | None:
    """Bytes as text, if they are there and what the digest says; else that is noted."""
    if data is None:
        one.unread.append(f"{what} is not there")
    elif sha256(data).hexdigest() != digest:
        one.unread.append(f"{what} is not what its digest says")
    elif len(data) > LIMIT:
        one.unread.append(f"{what} is too long to be searched: {len(data)} bytes")
    else:
        return data.decode("utf-8", "replace")
    return None


def _second(evidence: Evidence, seq: int) -> int:
    """The second of an entry's append, by the host's clock; 0 where that is not known."""
    return (evidence.micros(seq) or 0) // 1_000_000


# Namespaces -------------------------------------------------------------------------------------

# The command line of ``bwrap`` says what was there: the system's folders, files in memory whose
# digests the order holds, and what was bound from the disk. A word promises nothing that our own
# namespaces (``agents/isolation``) have not, or have in another place.

_NETWORK = "--share-net"
_TRUSTED = (
    "/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap",
)  # fmt: skip
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "alternatives", "ca-certificates", "group", "hosts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "nsswitch.conf", "passwd", "pki", "resolv.conf", "ssl",
)  # fmt: skip
_LINKED = {
    "localtime": r"(/usr/share|/etc)/zoneinfo/[A-Za-z0-9_+/-]+",
    "nsswitch.conf": r"(/etc/authselect|/usr/etc)/nsswitch\.conf",
    "resolv.conf": r"/run/(NetworkManager|connman|netconfig|resolvconf|systemd(/resolve)?)/"
    r"(no-)?(stub-)?resolv\.conf|/mnt/wsl/resolv\.conf",
}
"""Where a system's links of these names lead: it is the file that is shown, by its own path."""

_WORDS = {
    "--unshare-all": 0, "--share-net": 0, "--die-with-parent": 0, "--tmpfs": 1, "--dev": 1,
    "--proc": 1, "--dir": 1, "--chdir": 1, "--perms": 1, "--cap-drop": 1, "--symlink": 2,
    "--ro-bind": 2, "--bind": 2, "--dev-bind": 2, "--ro-bind-try": 2, "--bind-try": 2,
    "--dev-bind-try": 2, "--file": 2, "--ro-bind-data": 2,
}  # fmt: skip
"""Options, each with how many words follow it: those of our own namespaces, and other binds."""

_BINDS = ("--ro-bind", "--bind", "--dev-bind", "--ro-bind-try", "--bind-try", "--dev-bind-try")
_MEMORY = ("--file", "--ro-bind-data")
_LOADER = ("LD_", "GLIBC_")
"""How variables begin that change the program which makes the namespace."""
_FIXED = {"--dev": "/dev", "--proc": "/proc", "--cap-drop": "ALL"}


class _Option(NamedTuple):
    """An option of ``bwrap``, where it stands, and the words that belong to it."""

    at: int
    name: str
    words: Sequence[str]


def run_options(argv: Sequence[str]) -> tuple[list[_Option], int]:
    """The options that ``bwrap`` itself reads, and where they end.

    That is at the program, which may follow a ``--``, or at a word that is not known here.
    """
    found, at = [], 1
    while at < len(argv) and argv[at] in _WORDS and at + _WORDS[argv[at]] < len(argv):
        end = at + 1 + _WORDS[argv[at]]
        found.append(_Option(at, argv[at], argv[at + 1 : end]))
        at = end
    return found, at


def _is_unknown(argv: Sequence[str], end: int) -> bool:
    """Whether the options end at a word that is one as well, and not known here."""
    return end < len(argv) and argv[end].startswith("-") and argv[end] != "--"


def _is_system(source: str, place: str) -> bool:
    """Whether a bind shows a part of the system in its own place."""
    front, _, name = place.rpartition("/")
    if source == place:
        return place in _SYSTEM or (front == "/etc" and name in _ETC)
    return front == "/etc" and re.fullmatch(_LINKED.get(name, "(?!)"), source) is not None


def _lent(option: _Option, *, covered: bool) -> Iterator[str]:
    """What a bind lends, in words; ``covered``: it may bring back what was covered before."""
    source, place = option.words
    if not _is_system(source, place):
        yield f"lent {source} (not looked at)"
    elif covered or option.name != "--ro-bind":
        yield f"lent {source} ({'over what was covered' if covered else 'not read-only'})"


def _is_ours(option: _Option, after: str) -> bool:
    """Whether our own namespaces have this option with such words, in front of such a word."""
    if option.name == "--symlink":  # as the system has it: from one of its folders into another
        target = "/" + option.words[0].removeprefix("/")
        inside = any(f"{target}/".startswith(f"{folder}/") for folder in _SYSTEM)
        return inside and ".." not in target.split("/") and option.words[1] in _SYSTEM
    if option.name == "--perms":
        return after in _MEMORY
    return option.words[0] == _FIXED.get(option.name, option.words[0])


def run_namespace(argv: Sequence[str]) -> tuple[bool, bool]:
    """Whether a command line makes a namespace, and whether it leaves the network in it.

    >>> run_namespace(["/usr/bin/bwrap", "--unshare-all", "--", "x", "--share-net"])
    (True, False)
    >>> run_namespace(["/usr/bin/bwrap", "--", "x", "--unshare-all"])
    (False, False)
    """
    options, end = run_options(argv)
    names = {option.name for option in options}
    # Behind a word that is not known here anything may be an option.
    unknown = _is_unknown(argv, end) and _NETWORK in argv[end:]
    return "--unshare-all" in names, unknown or _NETWORK in names


def run_namespace_exceptions(order: dict[str, Any], looked_at: Collection[str]) -> Iterator[str]:
    """What a program had besides the system and what was looked at, in words.

    ``looked_at`` has the SHA-256 in hex of each text that it was given and that was searched.

    >>> order = {"argv": ["/usr/bin/bwrap", "--unshare-all", "--share-net", "--", "x"]}
    >>> list(run_namespace_exceptions(order, ()))
    ['the network']
    """
    argv = [str(word) for word in _list(order.get("argv"))]
    if argv[:1] and argv[0] not in _TRUSTED:
        yield f"its namespace was made by {argv[0]}"
    sealed: dict[int, list[str]] = {}
    for one in _list(order.get("sealed")):
        if isinstance(one, dict) and isinstance(one.get("word"), int):
            sealed.setdefault(one["word"], []).append(str(one.get("sha256")))
    options, end = run_options(argv)
    covered = False
    for option in options:
        if option.name == _NETWORK:
            yield "the network"
        elif option.name in _BINDS:
            yield from _lent(option, covered=covered)
        elif option.name in _MEMORY:
            digests = sealed.pop(option.at + 1, [])
            if len(digests) != 1 or digests[0] not in looked_at:
                yield f"lent {option.words[1]} (not looked at)"
        elif option.name == "--tmpfs":
            covered |= option.words[0] != "/tmp"  # noqa: S108 - its own, in front of the system
        elif option.words and not _is_ours(option, "".join(argv[option.at + 2 : option.at + 3])):
            words = " ".join((option.name, *option.words))
            yield f"its namespace was made with {words}, which is not known here"
    if _is_unknown(argv, end):
        yield f"its namespace was made with {argv[end]}, which is not known here"
    elif argv and not [word for word in argv[end : end + 2] if word != "--"]:
        yield "its command line names no program: what came behind it is not known here"
    elif sealed:
        changed = ", ".join(map(str, sorted(sealed)))
        yield f"its command line had other words than are recorded ({changed})"
    made_with = {option.name for option in options}
    if made_with.intersection(_BINDS) and "--cap-drop" not in made_with:
        yield "its capabilities, by which it could change its namespace"
    given = order.get("set_env")
    for name in sorted(map(str, given if isinstance(given, dict) else ())):
        if name.startswith(_LOADER):
            yield f"its namespace was made with the variable {name}"
    names = [str(name) for name in _list(order.get("env"))]
    secrets = order.get("secrets")
    names += secrets if isinstance(secrets, dict) else []
    if names:
        yield f"handed the variables {', '.join(sorted(names))} (not looked at)"


# Checkpoints ------------------------------------------------------------------------------------
EVENT = "pythia-checkpoint"
SCRIBE = "scribe"  # who publishes the events that follow from a decision


@dataclass
class Checkpoint(DatedReviewEntry):
    """A checkpoint event: its time in seconds, its range where its payload gives one.

    ``count`` is how many decisions its payload counts, ``scribe``: the team's Scribe published it.
    """

    range: tuple[str, str] | None
    scribe: bool
    count: int | None = None
    used: bool = False


def checkpoints_for_runs(evidence: Evidence) -> list[Checkpoint]:
    """All checkpoint events in order; there is one for as many decisions as the interval says."""
    events = []
    named = {SCRIBE, *(name for (name,) in evidence.query("SELECT scribe FROM team"))}
    for (seq,) in evidence.query("SELECT seq FROM asked ORDER BY seq"):
        body = evidence.body(seq)
        # Without a payload it asks for the new ones.
        count, *span = parse_checkpoint_payload(evidence.text(seq, "payload") or "") or (None,)
        scribe, time = body.get("source") in named, body.get("us", 0) // 1_000_000
        limits = (span[0], span[1]) if span else None
        events.append(Checkpoint(seq, time, "observed" in body, limits, scribe, count))
    return events


@dataclass
class Posted(DatedReviewEntry):
    """An assessment as it was posted; ``time`` in epoch seconds, 0 where the line carries none."""

    channel: str
    number: int
    handle: str
    said: Assessment


def assessments_of_runs(evidence: Evidence) -> Iterator[Posted]:
    """Every message that has the form of an assessment, in the order of the entries."""
    for (seq,) in evidence.source.db.execute("SELECT seq FROM spoken ORDER BY seq"):
        body = evidence.body(seq)
        try:
            text = evidence.source.content(body["text"]).decode()
            said = parse_assessment(text)
            if said is not None:
                dated = seq, body["time"], "observed" in body
                yield Posted(*dated, body["channel"], body["index"], body["handle"], said)
        except evidence.unreadable:
            continue  # a body that is no message: `kinds-known` and `bodies-present` name it


def in_one_append(evidence: Evidence, one: int, other: int) -> bool:
    """Whether nothing but their times tells which came first: they were taken in by one append."""
    if evidence.past(one) and evidence.past(other):
        return True
    return evidence.at(one) == evidence.at(other)


# Workers that are the reviewer --------------------------------------------------------------------
#
# The files of every worker that is Pythia by name or task are searched, whether tripod or another
# tool ran it.


class ReviewerWorker(NamedTuple):
    """A worker that is Pythia: the path and the entry of its task file.

    ``told`` is what it was told to do, each text with its entry; ``ours``: we ran its program.
    """

    path: str
    seq: int
    name: str
    told: tuple[tuple[int, str], ...]
    ours: bool


def reviewer_workers(evidence: Evidence) -> Iterator[ReviewerWorker]:
    """Workers that are Pythia by their name, or by what they were told to do."""
    ours = dict(evidence.query("SELECT name, seq FROM workers"))
    found = [
        ReviewerWorker(f"{FOLDER}/{name}.md", seq, name, tuple(_orders(evidence, name)), ours=True)
        for name, seq in ours.items()
    ]
    for path, seq in evidence.query("SELECT path, seq FROM files WHERE class = 'worker'"):
        name = path.rpartition("/")[2].removesuffix(".md")
        if name not in ours:
            task = parse_worker(_bytes(evidence, path)).task
            found.append(ReviewerWorker(path, seq, name, ((seq, task),), ours=False))
    for worker in sorted(found):
        called = [worker.name, *(text for _, text in worker.told)]
        if called[0].lower().startswith("pythia") or any("pythia" in t.lower() for t in called):
            yield worker


def _orders(evidence: Evidence, name: str) -> Iterator[tuple[int, str]]:
    """What a worker that we ran was told: its task, and each message that it went on with."""
    sql = (
        "SELECT seq FROM worker_steps WHERE name = ?"
        " AND kind IN ('worker.spawned', 'worker.continued') ORDER BY seq"
    )
    for (seq,) in evidence.query(sql, name):
        body = evidence.body(seq)
        try:
            data = evidence.source.content(body["task" if "task" in body else "message"])
        except evidence.unreadable:
            continue  # erased, or of another shape: the ledger's checks name that
        yield seq, data.decode("utf-8", "replace")


def _bytes(evidence: Evidence, path: str) -> bytes:
    try:
        file = FILES.render(evidence.source, path)
    except evidence.unreadable:
        return b""
    return b"" if file is None else file.data


def breaches(
    evidence: Evidence, worker: ReviewerWorker
) -> tuple[int, list[tuple[str, str, str, int]]]:
    """How many logs there were, and each reading of the chat that the worker's files show.

    A reading is given in words, with where it stands, the line, and the entry that brought it.
    """
    name, rule = worker.name, ChatRule(evidence.places)
    message = f"the task of {name} tells the reviewer to read the chat"
    found = [
        (message, worker.path, sentence, seq)
        for seq, text in worker.told
        for sentence in SENTENCES.split(text)
        if tells_to_read_chat(sentence, rule)
    ]
    found += [
        (f"the command line of {name} reads the chat", f"entry {seq}", line, seq)
        for seq, line in _command_lines(evidence, worker)
        if rule.is_broken_by(line)
    ]
    found += [
        (f"{name} read the chat", worker.path, reading, seq)
        for seq, text in _noted(evidence, worker)
        for line in text.split("\n")
        for reading in rule.readings_in(line)
    ]
    logs = 0
    front = worker.path.removesuffix(".md")
    for path in (f"{front}.log", f"{front}.err.log") if worker.ours else (f"{front}.log",):
        data = _bytes(evidence, path)
        # The file may have more of the same: of a worker that runs, or of a log too large to keep.
        there = (evidence.file(path) or b"") if worker.ours else b""
        data = there if there.startswith(data) else data
        logs += bool(data)
        grown, newest = _growth(evidence, path)
        old = data[:grown].count(b"\n")
        for number, line in enumerate(data.split(b"\n"), 1):
            for reading in rule.readings_in(line.decode("utf-8", "replace")):
                at = newest if old < number and newest is not None else worker.seq
                found.append((f"{name} read the chat", f"{path}:{number}", reading, at))
    return logs, found


def _noted(evidence: Evidence, worker: ReviewerWorker) -> Iterator[tuple[int, str]]:
    """What it wrote into its task file, and the entry that holds it."""
    if not worker.ours:
        yield worker.seq, parse_worker(_bytes(evidence, worker.path)).log
        return
    sql = "SELECT noted FROM workers WHERE name = ? AND noted IS NOT NULL"
    for (seq,) in evidence.query(sql, worker.name):
        try:
            data = evidence.source.content(evidence.body(seq)["content"])
            yield seq, WORKERS.log(evidence.source, worker.path, data)
        except evidence.unreadable:
            continue


def _command_lines(evidence: Evidence, worker: ReviewerWorker) -> Iterator[tuple[int, str]]:
    """The command lines by which we ran it, as a log would show them."""
    if not worker.ours:
        return
    sql = "SELECT seq FROM agents WHERE role = 'worker' AND subject = ? ORDER BY seq"
    for (seq,) in evidence.query(sql, worker.name):
        try:
            order = json.loads(evidence.source.content(evidence.body(seq)["spec"]))
        except evidence.unreadable:
            continue
        except RecursionError:
            continue
        argv = order.get("argv") if isinstance(order, dict) else None
        if isinstance(argv, list):
            yield seq, shlex.join(map(str, argv))


def _growth(evidence: Evidence, log: str) -> tuple[int, int | None]:
    """How many bytes a log had at adoption, and the entry that holds what it has now.

    Lines after those bytes were written after adoption.
    """
    rows = evidence.query("SELECT seq FROM files WHERE path = ?", log)
    newest: int | None = rows[0][0] if rows else None
    if newest is None or evidence.adopted(newest):
        return 2**62, newest
    if evidence.ledger is None or evidence.adoption is None:
        return 0, newest
    last = evidence.ledger.last_seq(stream=f"files/{log}", stop=evidence.adoption)
    size = None if last is None else evidence.body(last).get("size")
    return size if type(size) is int else 0, newest
