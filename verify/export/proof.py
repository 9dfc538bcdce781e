"""Judges a proof file by itself: no ledger is needed, only the log's key."""

from __future__ import annotations

import os
from collections.abc import Sequence

import orjson

from tripod import ledger
from tripod.ledger.files import read_plain_file
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.policy import Policy, TrustedLog
from tripod.ledger.tlog.proof import MAX_PROOF, parse_proof, verify_proof
from tripod.ledger.tlog.seal import Seal, open_seal
from tripod.ledger.tlog.tiles import parse_line
from tripod.ledger.tlog.witness import parse_witness_request
from tripod.verify.check import Coverage, Finding, Report, Subject, cannot_tell, outcome

NAME = "proof"
HELP = "ask who gave you the file for another one, and for the log's key by another way"
_FRONTS = (b"c2sp.org/tlog-proof@", b"old ")


def is_proof(path: str) -> bool:
    """Whether a file begins as a proof does."""
    try:
        return read_plain_file(path, 32, named=True).startswith(_FRONTS)
    except OSError:
        return False


def judge_proof(path: str, keys: Sequence[VerifierKey], old: Seal | None = None) -> Report:
    """Judge the proof in a file by the ``keys`` of trusted logs; without one, *cannot tell*.

    A proof of growth is held against the seal ``old``.
    """
    data = read_plain_file(path, MAX_PROOF, named=True)
    subject = Subject("", os.path.realpath(path), None, "")
    reason = ""
    if not keys:
        reason = "no key is known to hold the seal against: give the log's with --key"
    elif data.startswith(b"old ") and old is None:
        reason = "a proof of growth is held against an older seal: give it with --old"
    if reason:
        return Report(path, (cannot_tell(NAME, reason, required=True),), subject=subject)
    head, found = None, []
    told: list[str] = []
    try:
        if old is not None and data.startswith(b"old "):
            seal = _growth(data, keys, old, told)
        else:
            seal = _inclusion(data, keys, told)
        head = (seal.size, seal.root.hex())
    except ledger.LedgerError as error:
        told, found = [], [Finding(NAME, str(error), path, help=HELP)]
    seen: Coverage = {}
    for word, _, value in (text.partition(" ") for text in told):
        seen[word] = value
    return Report(path, (outcome(NAME, found, seen, required=True),), head, subject=subject)


def _inclusion(data: bytes, keys: Sequence[VerifierKey], told: list[str]) -> Seal:
    proof = parse_proof(data)
    header, _, line = (proof.extra or b"").partition(b"\n")
    if not header:
        raise ledger.MalformedError(
            "proof: it holds no entry (the extra line), so there is nothing to show"
        )
    head = ledger.parse_header(header)
    policy = Policy(tuple(TrustedLog(key) for key in keys), (), (), None)
    seal = verify_proof(proof, ledger.entry_leaf_hash(header), policy).seal
    if head.seq != proof.seq or head.ledger != seal.origin:
        raise ledger.NotVerifiedError(
            f"proof: the entry says that it is {head.seq} of {head.ledger!r}"
        )
    told += [f"entry {proof.seq}", f"kind {head.kind}", f"actor {head.actor}", f"at {head.at}"]
    if line:
        salt, body, auth = parse_line(line, proof.seq)
        if salt is None or body is None or ledger.commit_body(salt, head.kind, body) != head.body:
            raise ledger.NotVerifiedError(
                "proof: the body is not the one that the entry commits to"
            )
        if (None if auth is None else ledger.header_auth(auth)) != head.auth:
            raise ledger.NotVerifiedError(
                "proof: the signature record is not the one that the entry names"
            )
        told.append(f"body {orjson.dumps(orjson.loads(body)).decode()}")
    return seal


def _growth(data: bytes, keys: Sequence[VerifierKey], old: Seal, told: list[str]) -> Seal:
    growth = parse_witness_request(data)
    seal = open_seal(growth.note, keys).seal
    if (growth.old, seal.origin) != (old.size, old.origin):
        raise ledger.NotVerifiedError(
            f"growth: it is of {seal.origin!r} since {growth.old} entries, the older seal of "
            f"{old.origin!r} at {old.size}"
        )
    if not ledger.check_consistency(old.size, old.root, seal.size, seal.root, growth.hashes):
        raise ledger.NotVerifiedError(
            "growth: the older log is not the beginning of the newer one: it was rewritten"
        )
    told += [f"from {old.size}", f"to {seal.size}"]
    return seal
