"""Orders of the agents of Nova runs, each held against those of the time before. Pure.

A file, a variable or a word of a command line may hold a text in any spelling, so that a search for
words proves little. An order that equals one of the time when no other expert of the cycle had been
asked cannot hold what such an expert said: there was nothing to be said yet.

Of an order that differs nothing is known. A run that is resumed in another shell has one, too.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from tripod.ledger.kinds.agents import ENDED
from tripod.ledger.kinds.nova import MISSED, OPENED, TURN
from tripod.projections.nova.run import DueTurn
from tripod.projections.nova.turns import ROLE, PlayedTry, format_tape, tape_of_tries
from tripod.verify.check import Evidence
from tripod.verify.isolation.runs import erased_in_run, run_options
from tripod.verify.nova.turns import (
    NovaSubject,
    agent_tries,
    nova_entries,
    read_agent_order,
    read_agent_output,
    read_nova_subject,
    sound_body,
)

_FEW = 4  # differences that are told; of more, their number
_NEAR = 8  # earlier orders that one is compared with in words: the last of them
_LONGEST = 60  # characters of a name that are shown

_TAPE = "the tape of its turn"
_HINT = "(was it resumed or forked with another program, or in another shell?)"
_UNSEEN = "not looked at"  # the check names it among its exceptions
_PLAYED = r"(?s)(.*)/tripod-fork-[a-z0-9_]{8}/%s\.json"
_NAME = "\0"  # stands for a name that is each attempt's own: no word of an order can hold it


class PlainOrder(NamedTuple):
    """What an agent's program was given beside its prompt, without what is each attempt's own.

    That is the name of its private folder where no namespace hides it, and of a turn that is played
    the tape and its path, if it is what the record gives. ``files`` are what they are, the path
    where it is known, the digest.
    """

    argv: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str, str], ...]
    fields: tuple[tuple[str, str], ...]


class _Made(NamedTuple):
    """An order: its entry, the last entry of what was given by it, and what that was.

    ``plain`` None: it cannot be read. ``is_played``: it plays the tape that the record gives;
    ``is_known``: its answer may have been known from the parent when the fork began. ``gone`` is an
    entry that nobody can compare any more.
    """

    seq: int
    last: int
    plain: PlainOrder | None
    is_played: bool = False
    is_known: bool = False
    gone: int = 0


class _Tape(NamedTuple):
    """What plays a turn of a parent again: its answers by prompts, its digest, the turn's key.

    ``gone`` is an entry of what stood on it that cannot be read; of no parent there is nothing.
    """

    answers: Mapping[str, tuple[int, str]] = {}
    digest: str = ""
    key: str = ""
    gone: int = 0


@dataclass(slots=True)
class _Run:
    """The orders of a run, by the agents' runs; ``first`` has since when each was there.

    ``asked`` has for each cycle when each of its experts was first asked, ``played`` the cycles of
    which an expert says what it said in ``parent``, ``kept`` the keys of the turns that it has of
    that: the first ``parent_turn``, and those that were missed among them.
    """

    parent: str = ""
    parent_turn: int = 0
    kept: set[str] = field(default_factory=set)
    made: dict[str, _Made] = field(default_factory=dict)
    by_time: list[_Made] = field(default_factory=list)
    first: dict[PlainOrder, int] = field(default_factory=dict)
    asked: dict[int, dict[str, int]] = field(default_factory=dict)
    played: set[int] = field(default_factory=set)

    def others(self, cycle: int, but: str) -> int | None:
        """When another expert of a cycle than this one was first asked; None: none was."""
        found = self.asked.get(cycle, {})
        return min((seq for persona, seq in found.items() if persona != but), default=None)

    def latest(self, until: int) -> list[_Made]:
        """The last orders that were there at an entry."""
        end = bisect_right(self.by_time, until, key=lambda made: made.last)
        return self.by_time[max(0, end - _NEAR) : end]


class RunOrders:
    """The orders of all Nova runs of a ledger, each run read once."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.runs: dict[str, _Run] = {}
        self.handed: dict[str, list[int]] = {}
        for seq, spawn in evidence.query("SELECT seq, spawn FROM handed ORDER BY seq"):
            self.handed.setdefault(spawn, []).append(seq)

    def strange(self, spawn: str, of: NovaSubject) -> str:
        """What nobody can tell of an expert's order, in words; '' where it holds nothing new."""
        own = self._run(of.run)
        made = own.made.get(spawn)
        if made is None:
            return ""
        if made.is_played and _key(of) not in own.kept:
            return f"it is played from {own.parent}, beyond turn {own.parent_turn} that forks it"
        # What is played was said in the parent; what a live program is given is judged from there.
        runs = [own] if made.is_played else list(self._behind(of))
        asked = [seq for run in runs if (seq := run.others(of.cycle, of.persona)) is not None]
        if not asked or made.last < min(asked):
            return ""
        plain = made.plain
        if plain and any(run.first.get(plain, made.last) <= min(asked) for run in runs):
            return ""
        earlier = [o for run in runs for o in run.made.values() if o.seq <= min(asked)]
        gone = next((one.gone for one in (made, *earlier) if one.gone), 0)
        how = "was erased" if erased_in_run(self.evidence, gone) else "cannot be read"
        why = f" (entry {gone} {how})" if gone else ""
        if plain is None:
            return f"its order cannot be compared with those before{why}"
        said = f"its order (entry {made.seq}) came after that of another expert (entry "
        said += f"{min(asked)})"
        before = [
            (list(_differences(plain, one.plain)), -one.seq)
            for run in runs
            for one in run.latest(min(asked))
            if one.plain is not None
        ]
        if not before:
            return f"{said}, and no earlier one can be compared with it{why}"
        words, seq = min(before, key=lambda one: (len(one[0]), one[1]))
        more = [f"{len(words) - _FEW} more"] if len(words) > _FEW else []
        shown = ", ".join(words[:_FEW] + more)
        said += f" and is like none before that{why}; from entry {-seq} it differs in {shown}"
        return f"{said} {_HINT}"

    def _behind(self, of: NovaSubject) -> Iterator[_Run]:
        """A run and, as far as experts of this cycle are played from there, those before it."""
        name, seen = of.run, set[str]()
        while name and name not in seen:
            seen.add(name)
            run = self._run(name)
            yield run
            name = run.parent if of.cycle in run.played else ""

    def _run(self, name: str) -> _Run:
        if name not in self.runs:
            self.runs[name] = self._read(name)
        return self.runs[name]

    def _read(self, name: str) -> _Run:
        evidence, found = self.evidence, _Run()
        rows = evidence.query("SELECT min(seq) FROM nova_entries WHERE run = ?", name)
        opened = None if rows[0][0] is None else sound_body(evidence, rows[0][0], OPENED)
        if opened is not None and opened.get("parent"):
            found.parent, found.parent_turn = opened["parent"], opened.get("parent_turn") or 0
            found.kept = set(_kept(evidence, found.parent, found.parent_turn))
        rows = evidence.query(
            "SELECT spawn, seq, subject, attempt, ended FROM agents"
            " WHERE role = ? AND subject >= ? AND subject < ? ORDER BY seq",
            ROLE, f"{name}/", f"{name}0",
        )  # fmt: skip
        known: dict[PlainOrder, PlainOrder] = {}
        for spawn, seq, subject, attempt, ended in rows:
            of = read_nova_subject(subject)
            if of is None:
                continue
            tape = _tape(evidence, found.parent, of, seq)
            handed = self.handed.get(spawn, [])
            made = _made(evidence, handed, (seq, ended), (subject, attempt), tape)
            if of.role == "expert":
                found.asked.setdefault(of.cycle, {}).setdefault(of.persona, seq)
                found.played |= {of.cycle} if made.is_known else set()
            found.made[spawn] = made
            if made.plain is not None:
                plain = known.setdefault(made.plain, made.plain)
                found.made[spawn] = made._replace(plain=plain)
                found.first[plain] = min(found.first.get(plain, made.last), made.last)
        found.by_time = sorted(
            (made for made in found.made.values() if made.plain is not None),
            key=lambda made: made.last,
        )
        return found


def _key(of: NovaSubject) -> str:
    return DueTurn(of.role, of.persona, of.cycle, 0).key


def _kept(evidence: Evidence, parent: str, most: int) -> Iterator[str]:
    """The keys of the first ``most`` recorded turns of a run, and of those missed before them."""
    for _, kind, body in nova_entries(evidence, parent):
        if most > 0 and kind in (TURN.name, MISSED.name):
            most -= kind == TURN.name
            if body is not None:
                yield _key(NovaSubject(parent, body["cycle"], body["role"], body["persona"]))


def _tape(evidence: Evidence, parent: str, of: NovaSubject, before: int) -> _Tape:
    """The tape of a turn, from what the record of the parent had when its player was ordered."""
    if not parent:
        return _Tape()
    key = _key(of)
    tries: list[PlayedTry] = []
    for tried in agent_tries(evidence, f"{parent}/{key}", before):
        if tried.one.state != "ended":
            continue
        order = read_agent_order(evidence, tried.requested)
        stdin = None if order is None else order.get("stdin")
        body = None if tried.untold else sound_body(evidence, tried.ended, ENDED)
        data = None if body is None else read_agent_output(evidence, tried.ended, body["stdout"])
        if body is None or data is None or not isinstance(stdin, dict):
            return _Tape(gone=tried.requested if order is None else max(tried.ended, 0))
        text = data.decode("utf-8", "replace")
        tries.append(PlayedTry(tried.one, str(stdin.get("sha256")), body.get("exit_code"), text))
    answers = tape_of_tries(of.role, tries)
    digest = sha256(format_tape(answers).encode()).hexdigest()
    return _Tape(answers, digest, key)


def _made(
    evidence: Evidence,
    handed: Sequence[int],
    at: tuple[int, int | None],
    errand: tuple[str, int],
    tape: _Tape,
) -> _Made:
    """An order, and what was given by it beside the prompt; ``at``: its entry, and its end's.

    ``handed`` are the entries of all that was given.
    """
    seq, ended = at
    order = read_agent_order(evidence, seq)
    prompt, last, gone = "", seq, 0 if order is not None else seq
    files: list[tuple[str, str, str]] = []
    for given in handed:
        body = evidence.body(given)
        if erased_in_run(evidence, given):
            order, gone = None, gone or given  # what is left of it is no digest
        elif body.get("channel") == "prompt" and not prompt:
            prompt = str(body.get("sha256"))
        else:
            files.append((str(body.get("channel")), "", str(body.get("sha256"))))
            last = max(last, given)
    said = _repeated(evidence, tape, prompt, ended)
    is_played = said is not None and any(digest == tape.digest for *_, digest in files)
    is_known = is_played or bool(tape.gone or (said and said.strip()))
    try:
        plain = None if order is None else _plain(order, files, prompt, errand)
    except RecursionError:
        plain, gone = None, seq
    if plain is not None and is_played:
        plain = _without_tape(plain, tape)
    return _Made(seq, last, plain, is_played, is_known, gone or tape.gone)


def _repeated(evidence: Evidence, tape: _Tape, prompt: str, ended: int | None) -> str | None:
    """The answer that the tape has for an agent's prompt, if the agent gave that answer.

    Then nothing else that it was given changed its answer. '': it has not answered. None: the tape
    has no answer to its prompt, or the agent gave another one.
    """
    answer = tape.answers.get(prompt)
    body = None if ended is None else sound_body(evidence, ended, ENDED)
    if answer is None or ended is None or body is None:
        return None if answer is None else ""
    data = read_agent_output(evidence, ended, body["stdout"])
    return answer[1] if data is not None and data.decode("utf-8", "replace") == answer[1] else None


def _plain(
    order: Mapping[str, Any],
    given: list[tuple[str, str, str]],
    prompt: str,
    errand: tuple[str, int],
) -> PlainOrder:
    """An order without its prompt and the name of its private folder."""
    left = dict(order)
    argv: list[str] = left.pop("argv") if _is_texts(left.get("argv")) else []
    names = left.get("set_env")
    is_plain = isinstance(names, dict) and _is_texts(list(names.values()))
    variables: dict[str, str] = left.pop("set_env") if is_plain else {}
    stdin = left.get("stdin")
    if isinstance(stdin, dict) and stdin.keys() == {"sha256", "size"} and stdin["sha256"] == prompt:
        del left["stdin"]  # it is what was delivered, which others compute again
    sealed = left.pop("sealed") if isinstance(left.get("sealed"), list) else []
    digests = {digest for *_, digest in given}
    files = [*given, *(_sealed(one, argv, digests) for one in sealed)]
    cwd = left.get("cwd")
    placed: Callable[[str], str] = str
    options = {option.name for option in run_options(argv)[0]}
    if {"--unshare-all", "--chdir"} <= options:
        left.pop("cwd", None)  # no program in this namespace sees it
    elif isinstance(cwd, str) and "--unshare-all" not in options:
        placed = _placed(cwd, *errand)
        left["cwd"] = placed(cwd)
    return PlainOrder(
        tuple(argv),
        tuple(sorted((name, placed(text)) for name, text in variables.items())),
        tuple(sorted(files)),
        tuple(sorted((name, json.dumps(one, sort_keys=True)) for name, one in left.items())),
    )


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _sealed(one: Any, argv: list[str], given: Collection[str]) -> tuple[str, str, str]:
    """A file in memory: its path stands behind the word that its descriptor takes.

    What no entry holds, such as a login, which is renewed by the hour, is said not to be looked at.
    """
    word = one.get("word") if isinstance(one, dict) else None
    if type(word) is int and 0 <= word < len(argv) - 1:
        digest = str(one.get("sha256"))
        return "sealed", argv[word + 1], digest if digest in given else _UNSEEN
    return "sealed", "", json.dumps(one, sort_keys=True)


def _placed(cwd: str, subject: str, attempt: int) -> Callable[[str], str]:
    """What takes the name of an attempt's private folder out of a path in it, and out of no other.

    It is the folder around ``cwd``; what stands in front of its name is the same for all attempts.
    """
    folder = cwd.removesuffix("/work")
    front = folder.removesuffix(f"-{ROLE}-{subject}-{attempt}".replace("/", "+"))
    if len({cwd, folder, front}) < 3:
        return str
    return lambda path: f"{front}{_NAME}{path[len(folder) :]}" if _within(path, folder) else path


def _within(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _without_tape(plain: PlainOrder, tape: _Tape) -> PlainOrder:
    """An order that plays a tape, with neither the tape nor its path, which is its last word."""
    own = re.fullmatch(_PLAYED % re.escape(tape.key), "".join(plain.argv[-1:]))

    def taken(path: str) -> str:
        return f"{own[1]}/{_NAME}" if own is not None and path == own[0] else path

    files = [
        (what, taken(path), _TAPE if digest == tape.digest else digest)
        for what, path, digest in plain.files
    ]
    return plain._replace(argv=tuple(map(taken, plain.argv)), files=tuple(sorted(files)))


# What differs -----------------------------------------------------------------------------------


def _differences(one: PlainOrder, other: PlainOrder) -> Iterator[str]:
    """What an order has otherwise than another one, in words, without a value."""
    mine, theirs = dict(one.variables), dict(other.variables)
    for name in sorted(mine.keys() | theirs.keys()):
        if mine.get(name) != theirs.get(name):
            yield f"the variable {_name(name)}"
    yield from _words(one.argv, other.argv)
    yield from _files(one.files, other.files)
    fields, others = dict(one.fields), dict(other.fields)
    for name in sorted(fields.keys() | others.keys()):
        if fields.get(name) != others.get(name):
            yield f"its {_name(name)}"


def _name(text: str) -> str:
    """A name as it may be shown: no control byte of it reaches a terminal."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def _words(one: tuple[str, ...], other: tuple[str, ...]) -> Iterator[str]:
    """Which words of a command line are others, by their places; the program is word 1."""
    if one == other:
        return
    pairs = enumerate(zip(one, other, strict=False))
    first = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    ends = enumerate(zip(one[first:][::-1], other[first:][::-1], strict=False))
    short = min(len(one), len(other)) - first
    same = next((at for at, (a, b) in ends if a != b), short)
    last = len(one) - same
    if last == first:
        yield f"its command line, which lacks words behind word {first}"
    elif last == first + 1:
        yield f"word {last} of its command line"
    else:
        yield f"words {first + 1} to {last} of its command line"


def _files(
    one: tuple[tuple[str, str, str], ...], other: tuple[tuple[str, str, str], ...]
) -> Iterator[str]:
    """Which files are others, by their paths, or else by the beginning of their digests."""
    more = list((Counter(one) - Counter(other)).elements())
    less = list((Counter(other) - Counter(one)).elements())
    named = {digest for _, path, digest in more if path}
    for what, path, digest in more:
        if path:
            yield f"the file {_name(path)}"
        elif digest not in named:
            noun = "a file" if what in ("file", "sealed") else f"a {_name(what)}"
            yield f"{noun} with the digest {_name(digest[:12])}"
    places = {path for _, path, _ in (*more, ("", "", ""))}
    for path in sorted({path for _, path, _ in less} - places):
        yield f"the file {_name(path)}, which it lacks"
    gone = {digest for _, path, digest in less if path}
    if not more and any(digest not in gone for _, _, digest in less):
        yield "a file that it lacks"
