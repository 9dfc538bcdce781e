"""The entries are numbered from 0 without a gap, each id stands once, and the head agrees.

**What it proves.** Every row stands in its place: its number is the one that follows, the columns
``id``, ``kind`` and ``stream`` say what its header says, no id stands twice, entry 0 opens the
ledger and no other does, and a past was adopted once at most. Where an entry says that it follows
from another (its ``cause``), that one stands before it. The head row (size, last leaf, time, open
subtrees, origin, cursors) and the stored subtree roots are those that the entries give.

**Why it matters.** A removed, added or renumbered entry is the plainest way to rewrite a record. A
head or a stored root that was changed would make proofs of another history.

**What a finding looks like.** ``entries 12 to 14 are missing``, ``the column kind says bus.acked,
the header bus.published``, ``it follows from an entry that does not stand before it``, ``the head
row says 51 entries, there are 50``, ``2
triggers that keep the database append-only are missing or altered``. No crash and no act of ours
takes a trigger away, and none is in anybody's way but of who wants to change entries: so it is a
failure, though triggers guard against accident alone and no entry need have been touched. (A ledger
of an older schema is held against that one.) A table that others added is a warning; an index on a
table of ours is a failure. Where a view stands in the place of a table nothing is read at all, and
the ledger cannot be judged. A schema version or an application id that is not ours is a failure:
every other tool would refuse the file, or change it.

**What to do.** Compare with a backup, a clone or another copy of the database; the first finding
is where they part. Do not append to a ledger that does not verify. Missing entries at the *end*
can only be seen by someone who kept an older head. Triggers are put back by ``tripod rebuild``;
look for what was changed while they were away, in the other findings and against a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tripod.ledger import Header
from tripod.verify.check import ROWS, Evidence, Finding, Outcome, Severity

NAME = "sequence"
REQUIRED = True
NEEDS = (ROWS,)
ACCEPTABLE = False
HELP = "compare with a backup or another copy of the database; they part at this entry"
_PUT_BACK = "`tripod rebuild` puts them back; find out who took them away, and what was done then"
_SCHEMA = "find out who changed the schema; `tripod rebuild` makes the tables of projections anew"
_STRANGE = "is not ours"
_BETWEEN = "is not ours, and SQLite may read one of our tables by it"
_SHOWN = 3
ADOPTED_AGAIN = "ledger.adopted stands more than once: a past is adopted once, before the first act"


def judge(evidence: Evidence) -> Outcome:
    """What the pass over the rows found; see the module."""
    linked = []
    if evidence.linked_from:  # it breaks no rule, and a person should know it
        message = f"the database is a symbolic link, and {evidence.linked_from} was judged"
        help_ = "put the file itself there, or find out who made the link"
        linked.append(Finding(NAME, message, "database", help=help_, severity="warning"))
    return evidence.ledger_outcome(NAME, "entries", "nodes", also=linked)


def sequence_problem(seq: int, expected: int) -> str | None:
    """Whether ``seq`` is the number that follows."""
    if seq == expected:
        return None
    if seq < 0:
        return f"an entry has the number {seq}"
    if seq == expected + 1:
        return f"entry {expected} is missing"
    return f"entries {expected} to {seq - 1} are missing"


def sequence_column_problem(
    header: Header, seq: int, id_: object, kind: object, stream: object
) -> str | None:
    """Whether the row's columns say what its header says."""
    columns = (("seq", seq), ("id", id_), ("kind", kind), ("stream", stream))
    for name, value in columns:
        stated = getattr(header, name)
        if type(value) is not type(stated) or value != stated:
            return f"the column {name} says {value!r}, the header {stated!r}"
    return None


def sequence_cause_problem(cause: str, found: int | None, seq: int) -> str | None:
    """Whether the entry that has the id ``cause`` (``found``: its number) stands before ``seq``."""
    if found is not None and found < seq:
        return None
    where = "no entry has its id" if found is None else f"it is entry {found}"
    return f"it follows from an entry that does not stand before it: {where} ({cause!r})"


def sequence_opening_problem(
    seq: int, kind: str, data: Mapping[str, Any], origin: str
) -> str | None:
    """Whether this entry opens the ledger where, and only where, it should."""
    if (seq == 0) != (kind == "ledger.opened"):
        return (
            f"entry 0 is {kind}, not ledger.opened"
            if seq == 0
            else "the ledger is opened again here"
        )
    if seq == 0 and data.get("origin") != origin:
        return f"it opens {data.get('origin')!r}, its header names {origin!r}"
    return None


def sequence_head_problems(
    heads: list[tuple[Any, ...]], want: tuple[int, str, str, str, bytes], *, torn: bool = False
) -> Iterator[str]:
    """What is wrong with the rows of the head.

    They are (only, size, origin, last, at, stack, tables, files, synced, boot). ``want`` is (size,
    origin, last, at, stack) by the entries; ``torn``: a stored node is wrong.
    """
    if len(heads) != 1:
        yield f"there are {len(heads)} head rows, there is to be one"
    for only, *stated, tables, files, synced, boot in heads[:1]:
        if only != 0:
            yield f"the head row is numbered {only!r}, it is to be 0"
        for name, have, given in zip(
            ("size", "origin", "last", "at", "stack"), stated, want, strict=True
        ):
            if have != given:
                what = f"says {name} {_short(have)}, the entries give {_short(given)}"
                if name == "size" and type(have) is int and have > want[0]:
                    told = _missing_where(have, stated[4], want[0], want[4], torn=torn)
                    what = f"says {have} entries, there are {want[0]}: {told}"
                yield f"the head row {what}"
        for name, cursor in (("tables", tables), ("files", files), ("synced", synced)):
            if type(cursor) is not int or not 0 <= cursor <= want[0]:
                yield f"the cursor {name} of the head row is {cursor!r}, of {want[0]} entries"
        if type(synced) is type(files) is int and synced > files:
            yield f"the cursor synced of the head row is {synced}, beyond files, {files}"
        if type(boot) is not str:
            yield f"the head row says boot {_short(boot)}, which is no text"


def _missing_where(size: int, stack: object, rows: int, roots: bytes, *, torn: bool) -> str:
    """Which entries are missing of the ``size`` that the head counts, where there are ``rows``.

    The subtrees that both counts share lie before the end; where they differ, so do entries there.
    """
    if torn:
        return "the counts differ; the stored nodes tell where entries are missing"
    shared = 32 * (rows >> (size ^ rows).bit_length()).bit_count()
    if type(stack) is bytes and stack[:shared] == roots[:shared]:
        return "the last ones are missing"
    return "the counts differ, and not at the end alone: so do the open subtrees"


Fault = tuple[str, str, str]
"""An object of the schema that is not as it should be: its type, its name, and what is wrong."""


def sequence_schema_problems(
    found: Mapping[tuple[str, str], tuple[str, str]],
    wanted: Mapping[tuple[str, str], tuple[str, str]],
) -> Iterator[Fault]:
    """How the database's objects (type, name) differ from ours in their table and their SQL."""
    tables = {name for type_, name in wanted if type_ == "table"}
    for key in sorted(wanted.keys() | found.keys()):
        if key not in found:
            yield *key, "is missing"
        elif key not in wanted and key[0] == "index" and found[key][0] in tables:
            yield *key, _BETWEEN
        elif key not in wanted:
            yield *key, _STRANGE
        elif found[key] != wanted[key]:
            yield *key, "is not as we make it"


def sequence_schema_findings(faults: Sequence[Fault]) -> Iterator[Finding]:
    """What is said of such objects: of lost triggers, of what guards or feeds us, of the rest."""
    lost = [name for type_, name, what in faults if type_ == "trigger" and what != _STRANGE]
    if lost:
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        one = len(lost) == 1
        what = "1 trigger that keeps" if one else f"{len(lost)} triggers that keep"
        message = (
            f"{what} the database append-only {'is' if one else 'are'} missing or altered: "
            f"{', '.join(lost[:_SHOWN])}{more}"
        )
        yield Finding(NAME, message, "schema", help=_PUT_BACK)
    rest = [fault for fault in faults if fault[0] != "trigger" or fault[2] == _STRANGE]
    ours = [fault for fault in rest if fault[0] == "trigger" or fault[2] != _STRANGE]
    strange = [fault for fault in rest if fault not in ours]
    severities: tuple[tuple[list[Fault], Severity], ...] = ((ours, "failure"), (strange, "warning"))
    for faulty, severity in severities:
        said = [f"the {type_} {name} {what}" for type_, name, what in faulty]
        if said:
            message = f"the database's schema is not ours: {said[0]}"
            yield Finding(NAME, message, "schema", tuple(said[1:]), _SCHEMA, severity)


def _short(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 40 else f"{text[:20]}… ({len(text)} characters)"
