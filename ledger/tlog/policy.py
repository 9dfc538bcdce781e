"""Policies (C2SP tlog-policy): which logs and witnesses are trusted, and how many must agree. Pure.

One text file says it, and tools in other languages read the same::

    # the log, and two witnesses of which one must have seen what we believe
    log example.com/ledger+93727de6+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4
    witness w1 witness.example/w1+20324abe+BCmsuuFBvMrwsi4alNNNC8c2HlJtC/4SyJeUvJMilm3X
    group seen any w1
    quorum seen

``group <name> all|any|<k> <member>...`` is reached when all, one or k of its members are; a member
is a witness or a group *above*, so that no group can hold itself. ``quorum <name>|none``, exactly
once, is what must be reached for a seal to be believed.

People write these files. So, unlike our other formats, more than one spelling is read: empty
lines, lines that begin with ``#``, and spaces or tabs between words. A ``#`` within a line is
refused: whether it begins a comment, tools disagree. Source: spec: tlog-formats 8.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple, NoReturn

from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.tlog.note import COSIGNATURE, ED25519, Note, VerifierKey, parse_note_text
from tripod.ledger.tlog.seal import OpenedSeal, open_seal

MAX_POLICY = 256 * 1024  # bytes

_NONE = "none"
_FORMS = {
    "log": "log <vkey> [url]",
    "witness": "witness <name> <vkey> [url]",
    "group": "group <name> all|any|<k> <member>...",
    "quorum": "quorum <name>|none",
}
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
_URL = re.compile(r"https?://\S+")


class TrustedLog(NamedTuple):
    """A log that is trusted: its key, and where it is read (None: not said)."""

    key: VerifierKey
    url: str | None = None


class Witness(NamedTuple):
    """A witness by the policy's own name for it, its key, and where it is asked."""

    name: str
    key: VerifierKey
    url: str | None = None


class Group(NamedTuple):
    """Reached when ``threshold`` (1 to all) of ``members`` are, which stand above it."""

    name: str
    threshold: int
    members: tuple[str, ...]


class Policy(NamedTuple):
    """Trusted keys; ``quorum`` names a witness or a group, None asks for no cosignature."""

    logs: tuple[TrustedLog, ...]
    witnesses: tuple[Witness, ...] = ()
    groups: tuple[Group, ...] = ()
    quorum: str | None = None

    def reached(self, names: Collection[str]) -> bool:
        """Whether the quorum is reached by the witnesses of these names."""
        if self.quorum is None:
            return True
        reached = {witness.name for witness in self.witnesses} & set(names)
        for group in self.groups:
            if sum(member in reached for member in group.members) >= group.threshold:
                reached.add(group.name)
        return self.quorum in reached


def open_under_policy(policy: Policy, note: Note) -> OpenedSeal:
    """Read the seal in a note, if the policy believes it: its log signed, the quorum cosigned.

    Raises:
        MalformedError: the text is no seal, or the policy names keys of a wrong type.
        NotVerifiedError: a bad signature by a key of the policy, none by the log, no quorum.
    """
    logs, witnesses = [log.key for log in policy.logs], [one.key for one in policy.witnesses]
    opened = open_seal(note, logs, witnesses)
    keys = {cosignature.key for cosignature in opened.cosignatures}
    names = [witness.name for witness in policy.witnesses if witness.key in keys]
    if not policy.reached(names):
        raise NotVerifiedError(
            f"seal of {opened.seal.origin} at size {opened.seal.size}: cosigned by "
            f"{', '.join(names) or 'no known witness'}, which is not the quorum {policy.quorum}"
        )
    return opened


def parse_policy(data: bytes) -> Policy:
    """Read a policy file (MalformedError: names the line that is invalid or contradicts others)."""
    # A tab is the one control character that may stand here: between words, as a space.
    text = parse_note_text(data.replace(b"\t", b" "), MAX_POLICY, "policy")
    reading = _Reading()
    for number, line in enumerate(text.split("\n"), 1):
        words = [word for word in line.split(" ") if word]
        if not words or words[0].startswith("#"):
            continue
        try:
            reading.take(words)
        except MalformedError as error:
            raise MalformedError(f"policy: line {number}: {error}") from error
    if not reading.quorum:
        raise MalformedError("policy: no quorum line: say `quorum none` if no witness is asked for")
    (quorum,) = reading.quorum
    return Policy(
        tuple(reading.logs),
        tuple(reading.witnesses),
        tuple(reading.groups),
        None if quorum == _NONE else quorum,
    )


class _Reading:
    """What the lines so far have said; each line must make sense after those above it."""

    def __init__(self) -> None:
        self.logs: list[TrustedLog] = []
        self.witnesses: list[Witness] = []
        self.groups: list[Group] = []
        self.quorum: list[str] = []
        self.names: set[str] = set()

    def take(self, words: list[str]) -> None:
        """Read one line, already cut into words (MalformedError: what is wrong with it)."""
        for word in words:
            if "#" in word:
                _refuse(f"{word[:100]!r}: a comment takes a line of its own")
            if any(character.isspace() for character in word):
                _refuse(f"{word[:100]!r} holds white space other than spaces and tabs")
        match words:
            case ["log", vkey, *url] if len(url) < 2:
                log = TrustedLog(_key(vkey, ED25519, "a log"), _checked_url(url))
                if any(log.key == other.key for other in self.logs):
                    _refuse(f"the log {log.key.name} is named above with this key")
                self.logs.append(log)
            case ["witness", name, vkey, *url] if len(url) < 2:
                key = _key(vkey, COSIGNATURE, "a witness")
                # The same key under two names would count twice for a quorum.
                for other in self.witnesses:
                    if other.key.public == key.public:
                        _refuse(f"the key of {name} is that of {other.name} above")
                self._define(name)
                self.witnesses.append(Witness(name, key, _checked_url(url)))
            case ["group", name, threshold, *members] if members:
                self._group(name, threshold, members)
            case ["quorum", name]:
                if self.quorum:
                    _refuse(f"a second quorum; the first is {self.quorum[0]}")
                if name != _NONE and name not in self.names:
                    _refuse(f"{name[:100]!r} is no witness and no group of a line above")
                self.quorum.append(name)
            case [keyword, *_] if keyword in _FORMS:
                _refuse(f"not of the form `{_FORMS[keyword]}`")
            case _:
                _refuse(f"{words[0][:100]!r} is not one of {', '.join(_FORMS)}")

    def _group(self, name: str, threshold: str, members: list[str]) -> None:
        for at, member in enumerate(members):
            if member not in self.names:
                _refuse(f"{member[:100]!r} is no witness and no group of a line above")
            if member in members[:at]:
                _refuse(f"{member[:100]!r} is a member twice")
        self._define(name)
        count = {"all": len(members), "any": 1}.get(threshold)
        if count is None:
            count = int(threshold) if _NUMBER.fullmatch(threshold) else 0
        if not 1 <= count <= len(members):
            _refuse(f"{threshold[:100]!r} is not all, any, or a number from 1 to {len(members)}")
        self.groups.append(Group(name, count, tuple(members)))

    def _define(self, name: str) -> None:
        if name == _NONE:
            _refuse(f"{_NONE} is what a quorum may say, and no name")
        if name in self.names:
            _refuse(f"{name[:100]!r} is named above")
        self.names.add(name)


def _refuse(problem: str) -> NoReturn:
    raise MalformedError(problem)


def _key(vkey: str, kind: int, role: str) -> VerifierKey:
    key = VerifierKey.parse(vkey)
    if key.kind != kind:
        _refuse(f"the key of {role} is of type 0x{kind:02x}, not 0x{key.kind:02x}")
    return key


def _checked_url(given: list[str]) -> str | None:
    url = given[0] if given else None
    if url is not None and not _URL.fullmatch(url):
        _refuse(f"{url[:100]!r} is no http or https URL")
    return url
