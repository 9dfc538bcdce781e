"""Each entry of an actor whose key is in force was signed by that key, and each signature is whole.

**What it proves.** Each key was put in force properly: it signed that itself, and so did the key of
the handle before it, or the key that seals the ledger. From then until it is revoked, every entry
that bears the handle as its actor, or shows the handle as who speaks, was signed by that key.
A signature record lies beside each header that names one, is the one that it names, and covers the
entry: its kind, actor, stream, id, cause, the ledger's name and the commitment to the body. Entries
of one act that were signed together are all there. What the policy demands to be signed is.

**Why it matters.** The chain says that an entry was there, the seal that it was there early; who
wrote it is a word that anybody who reaches the database can put there. A signature is made with a
key that the others do not have.

**What a finding looks like.** ``nobody signed it, and the key of 'ann' is in force since entry
12``; ``it says that 'ann' did it, and the key of 'bob' signed it``; ``signed with a key of 'ann'
that was revoked at entry 40``; ``its header names a signature record, and none is there: it was
stripped``; ``it shows 'ann' as who speaks, and 'bob' did it``. A handle that looks like another by
Unicode's table of confusable characters is a warning.

**What to do.** Ask the actor what they did at that time, and compare with an older copy. Where the
key may be in other hands, `tripod actor revoke`, then enrol a new one.

What was observed in files that other programs write is not signed: its actor is a claim. Where no
key was ever enrolled and nothing is signed, there is nothing to judge.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import orjson

from tripod.ledger import Header, MalformedError, actor_entry_id, actors, header_auth
from tripod.ledger.actors import ENROLLED, OBSERVED, Record
from tripod.ledger.kinds.registry import KINDS
from tripod.ledger.tlog.note import ED25519, VerifierKey
from tripod.verify.check import BODIES, ROWS, SIGNATURES, Evidence, Finding, Outcome, not_applicable

NAME = "writers-authorised"
REQUIRED = True
NEEDS = (ROWS, BODIES, SIGNATURES)
ACCEPTABLE = False
HELP = "ask the actor what they did then; if their key may be in other hands, revoke it"

SPEAKERS = {kind.name: kind.actor for kind in KINDS if kind.is_speech and kind.actor is not None}
"""Kinds whose body shows somebody as who speaks, and its member that does."""
TELLS = {"nbs-chat": "chat.sent", "nbs-chat-terminal": "chat.sent", "scribe": "decision.logged"}
"""Sources of events that a tool publishes on behalf of an actor, and the kind they report."""
FOUND: dict[tuple[str, str], tuple[str, ...]] = {
    ("scribe", "log-error"): ("log.noted", "decision.logged")
}
"""Source and type of events of which nobody acts (`tripod` does), as they tell of what was found in
a file; and the kinds of entries that took it in."""


class Demand(NamedTuple):
    """What a policy wants signed: all entries of ``kinds``, from entry ``first`` on."""

    kinds: tuple[str, ...] = ()
    first: int = 0


def judge(evidence: Evidence) -> Outcome:
    """What the walk over the signatures found (``tripod.verify.scan.signatures``)."""
    alike = []
    for known, other in evidence.look_alikes():  # it breaks no rule, and a person should know it
        shown = other.encode("ascii", "backslashreplace").decode()
        message = f"the handle {other} looks like {known}: it is {shown}"
        help_ = "find out who uses it: messages of one can be taken for those of the other"
        alike.append(Finding(NAME, message, "handles", help=help_, severity="warning"))
    told = evidence.ledger_outcome(NAME, "signed", "unsigned", "keys", also=alike)
    if not told.findings and not any(told.coverage.values()):
        return not_applicable(NAME, "no actor has a key, and nothing is signed")
    return told


class KeyPeriod(NamedTuple):
    """A key that was put in force at entry ``since``; it ended at ``until``, None: it is."""

    handle: str
    key: VerifierKey
    since: int
    until: int | None = None
    how: str = ""


class Writers:
    """Which key speaks for which handle, as the changes are told one by one."""

    def __init__(self) -> None:
        self.force: dict[str, KeyPeriod] = {}
        self.ended: list[KeyPeriod] = []
        self._numbers: dict[str, int] = {}

    def change(self, header: Header, data: dict[str, Any], log: VerifierKey | None) -> str | None:
        """Take in an enrolment or a revocation that is sound; else say what is wrong with it.

        ``log`` is the key that seals the ledger there.
        """
        try:
            handle, number, vkey, note = (data[n] for n in ("handle", "number", "vkey", "note"))
            key = VerifierKey.parse(vkey)
            before = self._numbers.get(handle, 0)
            if number != before + 1:
                return f"it is change {number} of the key of {handle!r}, where {before + 1} follows"
            self._numbers[handle] = number
            text = actors.actor_change_text(header.ledger, number, key, data.get("reason"))
        except (MalformedError, LookupError, TypeError, AttributeError) as error:
            return f"it changes no key: {error}"
        if key.name != handle or key.kind != ED25519:
            return f"the key {vkey} does not speak for {handle!r}"
        held = self.force.get(handle)
        may = [one for one in (held and held.key, log) if one is not None]
        if header.kind == ENROLLED:
            problem = actors.actor_handle_problem(handle)
            if problem is not None:
                return f"the handle {handle!r} can have no key: it {problem}"
            may = may or [one.key for one in self.ended if one.handle == handle][-1:]
            problem = actors.actor_change_problem(note, text, (key,), may)
        elif held is None or held.key != key:
            return f"the key {vkey} is revoked, and was not in force"
        else:
            problem = actors.actor_change_problem(note, text, (), may)
        if problem is not None:
            return f"the key of {handle!r} was changed: {problem}"
        if held is not None:
            how = "replaced" if header.kind == ENROLLED else "revoked"
            self.ended.append(held._replace(until=header.seq, how=how))
            del self.force[handle]
        if header.kind == ENROLLED:
            self.force[handle] = KeyPeriod(handle, key, header.seq)
        return None

    def signature_problem(self, actor: str, record: Record, stated: bytes) -> str | None:
        """Whether the key in force signed what ``actor`` did; if not, whose it is, where known."""
        held = self.force.get(actor)
        problem = (
            "no key" if held is None else actors.actor_record_problem(record, stated, held.key)
        )
        if problem is None:
            return None
        for other in (*self.force.values(), *reversed(self.ended)):
            if actors.actor_record_problem(record, stated, other.key) is not None:
                continue
            if other.handle != actor:
                return f"it says that {actor!r} did it, and the key of {other.handle!r} signed it"
            return f"signed with a key of {actor!r} that was {other.how} at entry {other.until}"
        if held is None:
            return "signed with a key that nobody enrolled, or forged"
        if "list" in problem:
            return f"its signature record is another entry's: {problem}"
        return f"its signature is not by the key of {actor!r}: it was forged, or altered since"


def writer_id_problem(header: Header, data: dict[str, Any]) -> str | None:
    """Whether a change of a key stands under the id by which it is found."""
    want = actor_entry_id(data["handle"], data["number"])
    return None if header.id == want else f"its id is not {want}, so it changes no key"


def writer_record_fault(named: object, record: object) -> str | None:
    """Whether the record beside a leaf is the one that its header names; one of them is there."""
    if record is None:
        return "its header names a signature record, and none is there: it was stripped"
    if named is None:
        return "a signature record lies beside it, and its header names none"
    if type(record) is not bytes or header_auth(record) != named:
        return "the signature record beside it is not the one that its header names"
    return None


def unsigned_writer_problem(
    writers: Writers, actor: str, kind: str, data: Mapping[str, Any], *, demanded: bool
) -> str | None:
    """Whether an entry may do without a signature; ``demanded``: the policy says it may not."""
    held = writers.force.get(actor)
    if held is not None and OBSERVED not in data:
        return f"nobody signed it, and the key of {actor!r} is in force since entry {held.since}"
    if demanded:
        return f"nobody signed it, and the policy demands that of each {kind}"
    return None


def writer_names_itself(kind: str, actor: str, body: bytes) -> bool:
    """Whether a body surely shows its actor as who speaks: so it is with nearly every one."""
    # Within a text the quotes would be escaped, and no other field of these kinds has the name.
    return b'"%b":%b' % (SPEAKERS[kind].encode(), orjson.dumps(actor)) in body


def shown_writer(
    kind: str, actor: str, data: Mapping[str, Any], force: Container[str]
) -> str | None:
    """Who is shown as speaking where another did it, if that is somebody with a key in force."""
    name = data.get(SPEAKERS.get(kind, ""))
    if type(name) is not str or name == actor or name not in force or OBSERVED in data:
        return None
    return name
