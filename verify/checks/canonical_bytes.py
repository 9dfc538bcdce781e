"""Each header and each body is written in its one canonical spelling.

**What it proves.** The stored bytes are exactly those that this project writes for the same value:
sorted keys, no spaces, no floats, no null, integers within ±(2^53-1), valid Unicode, known fields.

**Why it matters.** Bytes are what is hashed. If one value had two spellings, two programs could
read one entry differently while both find its hash right.

**What a finding looks like.** ``the header is not in its canonical spelling``, ``not canonical
JSON: the same value is written {"a":1}``.

**What to do.** Such bytes were not written by this project. Find out what wrote them; keep the
database as it is as evidence.
"""

from __future__ import annotations

from tripod.ledger import MAX_BODY, Header, MalformedError, parse_canonical, parse_header
from tripod.verify.check import ROWS, Evidence, Outcome

NAME = "canonical-bytes"
REQUIRED = True
NEEDS = (ROWS,)
ACCEPTABLE = False
HELP = "these bytes were not written by this project: keep the file as evidence, restore a backup"


def judge(evidence: Evidence) -> Outcome:
    """What the pass over the rows found; see the module."""
    return evidence.ledger_outcome(NAME, "entries", "bytes")


def read_canonical_header(header: object) -> Header | str:
    """The header, or what is wrong with its bytes."""
    if type(header) is not bytes:
        return "the header is not stored as bytes"
    try:
        return parse_header(header)
    except MalformedError as error:
        return str(error)


def body_problem(body: bytes) -> str | None:
    """What is wrong with the spelling of a body."""
    if len(body) > MAX_BODY:
        return f"the body takes {len(body)} bytes, at most {MAX_BODY} are allowed"
    try:
        value = parse_canonical(body)
    except MalformedError as error:
        return f"the body is {error}"
    except RecursionError:
        return "the body is nested too deeply"
    return None if isinstance(value, dict) else "the body is no object"
