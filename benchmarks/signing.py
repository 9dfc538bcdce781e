"""What signatures cost: in a verify of a ledger in which every entry has one, and in an act.

Two ledgers hold the same events, in one of them signed by who publishes them, an entry and a
signature each. What the signatures add to a verify stands beside checking them and nothing else,
with the keys loaded and the messages at hand, in one process.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from time import perf_counter
from typing import TYPE_CHECKING

import orjson

from benchmarks.child import LEDGER_NAMES
from benchmarks.measure import Pair, Row, cost_row, in_turn
from benchmarks.workload import AFTER_US, PEOPLE, WORK, event_draft, fill_queue
from tripod.bus import events as bus
from tripod.ledger import DATABASE
from tripod.ledger.actors import actor_statement, parse_actor_record
from tripod.ledger.entry import Draft
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.ledger.tlog.note import VerifierKey
from tripod.team.team import Team
from tripod.trust import actors as authors
from tripod.trust import keys
from tripod.trust.signature import Signing
from tripod.verify.evidence import collect
from tripod.verify.run import run

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["rows"]

BATCH = 1000
PUBLISHED = 100  # acts a timing


def rows(folder: str, entries: int, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on signatures: ``entries`` that are signed, ``rounds`` pairs each."""
    os.environ["TRIPOD_HOME"] = os.path.join(folder, "home")
    say(f"{entries:,} events, and as many that are signed")
    plain = _made(os.path.join(folder, "plain"), entries, signed=False)
    signed = _made(os.path.join(folder, "signed"), entries, signed=True)
    alone = list(_signatures(signed))
    pairs = []
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}: signatures")
        added = _verified(signed) - _verified(plain)
        pairs.append(Pair(added, _checked(alone)))
    what = f"what signatures add to `verify`, {entries:,} signed entries / checking them alone"
    yield cost_row("signatures", what, pairs, 1.0)
    yield _published(plain, signed, rounds)


def _made(folder: str, entries: int, *, signed: bool) -> str:
    root = fill_queue(folder, 0)
    rng = random.Random(entries)
    with Team(root) as team:
        if signed:
            for handle in PEOPLE:
                authors.enrol_actor(team, handle, keys.no_passphrase)
        signing = Signing(team.store)
        drafts = [event_draft(AFTER_US + number, rng) for number in range(entries)]
        for at in range(0, entries, BATCH):
            part = drafts[at : at + BATCH]
            team.store.append([_one(signing, draft) for draft in part])
        with team.store.derived() as db:
            db.execute("UPDATE head SET files = size")
    return root


def _one(signing: Signing, draft: Draft) -> Draft:
    """A draft signed by itself, if its actor has a key."""
    return signing.sign([draft])[0]


def _verified(root: str) -> float:
    """Seconds for the checks of the ledger."""
    begin = perf_counter()
    with collect(f"{root}/{DATABASE}") as evidence:
        report = run(evidence, select=LEDGER_NAMES)
    seconds = perf_counter() - begin
    if report.exit_code:
        message = f"{root}: verify ended with {report.exit_code}, and nothing is wrong with it"
        raise RuntimeError(message)
    return seconds


def _signatures(root: str) -> Iterator[tuple[Ed25519PublicKey, bytes, bytes]]:
    """Key, message and signature of every signed entry."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    with closing(read_only(f"{root}/{DATABASE}")) as db:
        vkeys = dict(db.execute("SELECT handle, vkey FROM actors").fetchall())
        loaded = {
            handle: Ed25519PublicKey.from_public_bytes(VerifierKey.parse(vkey).public)
            for handle, vkey in vkeys.items()
        }
        for entry in SQLiteReader(db).read():
            if entry.auth is not None:
                signature = parse_actor_record(entry.auth).signature
                yield loaded[entry.actor], actor_statement(orjson.loads(entry.header)), signature


def _checked(alone: list[tuple[Ed25519PublicKey, bytes, bytes]]) -> float:
    begin = perf_counter()
    for key, message, signature in alone:
        key.verify(signature, message)
    return perf_counter() - begin


def _published(plain: str, signed: str, rounds: int) -> Row:
    """The same act in a running process, signed and not."""
    rng = random.Random(4)
    with Team(plain) as one, Team(signed) as other:

        def publish(team: Team) -> float:
            begin = perf_counter()
            for _ in range(PUBLISHED):
                bus.publish(team, rng.choice(PEOPLE), rng.choice(WORK), "normal", "it is " * 25)
            return perf_counter() - begin

        pairs = in_turn(lambda: publish(other), lambda: publish(one), rounds)
    return cost_row("publish-signed", "`bus.publish` signed / not signed", pairs)
