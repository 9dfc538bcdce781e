"""Small drafts, and an independent look at what a store made of them."""

from collections.abc import Iterable
from typing import Any

import naive_tree
from drafts import opened

from tripod.ledger.chain import check_link
from tripod.ledger.entry import (
    GENESIS,
    Draft,
    Entry,
    commit_body,
    entry_leaf_hash,
    format_canonical,
    header_auth,
    parse_canonical,
    parse_header,
)
from tripod.ledger.store import Store

__all__ = ["ORIGIN", "entry_faults", "faults", "opening", "said"]

ORIGIN = "parser.example/0190a9e0"


def opening(origin: str = ORIGIN) -> Draft:
    """The first draft of a ledger."""
    return opened(
        project="parser",
        origin=origin,
        created="2026-11-21T20:17:50Z",
        scribe="scribe",
        events="events",
        chat="chat",
    )


def said(text: str = "hello", channel: str = "general", **fields: Any) -> Draft:
    """A message of about the usual shape; ``fields`` are those of ``Draft``."""
    body = {"channel": channel, "text": {"text": text}, "v": 1}
    return Draft("chat.sent", f"chat/{channel}", "ann", body)._replace(**fields)


def entry_faults(entries: Iterable[Entry], origin: str) -> list[str]:
    """What is wrong with a whole ledger's entries, taken from their bytes alone."""
    found: list[str] = []
    prev, before = GENESIS, ""
    entries = list(entries)
    kept = {e.id: e.data["keep"] for e in entries if e.kind == "redacted"}
    for seq, entry in enumerate(entries):
        header = parse_header(entry.header)
        problem = check_link(header, seq, prev, origin)
        if problem is not None:
            found.append(f"entry {seq}: {problem}")
        stated = (header.seq, header.id, header.kind, header.stream, header.actor, header.at)
        if stated != entry[:6]:
            found.append(f"entry {seq}: the header says {stated}, the row {entry[:6]}")
        if entry.salt is None and entry.body is None:
            if kept.get(f"redacted-{seq}") != entry.data:
                found.append(f"entry {seq}: no body, and no entry keeps what is given for it")
        elif entry.salt is None or entry.body is None or len(entry.salt) != 32:
            found.append(f"entry {seq}: no body, or no salt of 32 bytes")
        else:
            if commit_body(entry.salt, header.kind, entry.body) != header.body:
                found.append(f"entry {seq}: the body is not the one committed to")
            if (
                parse_canonical(entry.body) != entry.data
                or format_canonical(entry.data) != entry.body
            ):
                found.append(f"entry {seq}: the data are not those of the body")
        if (None if entry.auth is None else header_auth(entry.auth)) != header.auth:
            found.append(f"entry {seq}: the signature record is not the one that its header names")
        if header.at < before:
            found.append(f"entry {seq}: dated before the one before")
        prev, before = entry_leaf_hash(entry.header).hex(), header.at
    return found


def faults(store: Store) -> list[str]:
    """What is wrong with a store: its entries, and its head against a naive tree over them."""
    entries = list(store.read())
    found = entry_faults(entries, store.origin)
    head = store.head()
    root = naive_tree.root([naive_tree.leaf(entry.header) for entry in entries])
    if (head.size, head.root) != (len(entries), root):
        found.append(f"the head is {head}, but {len(entries)} entries have the root {root.hex()}")
    ids = {entry.id for entry in entries}
    if len(ids) != len(entries):
        found.append("an id stands twice")
    return found
