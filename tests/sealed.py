"""Fixed keys, and small logs that they sealed: what the tests of the C2SP formats share."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tripod.ledger.entry import entry_leaf_hash
from tripod.ledger.merkle import Nodes, inclusion_proof, node_hash, root_of
from tripod.ledger.tlog.note import COSIGNATURE, Note, SigningKey
from tripod.ledger.tlog.policy import Group, Policy, TrustedLog, Witness
from tripod.ledger.tlog.proof import Proof
from tripod.ledger.tlog.seal import Seal, cosign_seal, format_seal, sign_seal

__all__ = [
    "LOG",
    "OTHER_LOG",
    "POLICY",
    "TIME",
    "VECTORS",
    "WITNESSES",
    "format_policy",
    "leaves_of",
    "list_nodes",
    "proof_of",
    "seal_of",
    "sealed",
]

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "golden/vectors/c2sp.json").read_text(encoding="utf-8")
)
TIME: int = VECTORS["note"]["time"]

LOG = SigningKey("example.com/ledger", bytes.fromhex(VECTORS["note"]["log"]["seed"]))
OTHER_LOG = SigningKey("example.com/other", bytes(range(64, 96)))
WITNESSES = (
    SigningKey(
        "witness.example/w1", bytes.fromhex(VECTORS["note"]["witness"]["seed"]), COSIGNATURE
    ),
    SigningKey("witness.example/w2", bytes(range(96, 128)), COSIGNATURE),
    SigningKey("witness.example/w3", bytes(range(128, 160)), COSIGNATURE),
)
POLICY = Policy(
    (TrustedLog(LOG.verifier()),),
    (Witness("w1", WITNESSES[0].verifier()),),
    (Group("seen", 1, ("w1",)),),
    "seen",
)
"""The log must have signed, and the first witness cosigned."""


def leaves_of(entries: Sequence[bytes]) -> list[bytes]:
    """The leaf hashes of entries."""
    return [entry_leaf_hash(entry) for entry in entries]


def list_nodes(leaves: Sequence[bytes]) -> Nodes:
    """Serve the nodes of a tree from its leaf hashes."""

    def nodes(height: int, index: int) -> bytes:
        if height == 0:
            return leaves[index]
        return node_hash(nodes(height - 1, 2 * index), nodes(height - 1, 2 * index + 1))

    return nodes


def format_policy(policy: Policy) -> bytes:
    """A policy as a person would write it, in the plainest spelling."""
    rows: list[list[str | None]] = [["log", log.key.format(), log.url] for log in policy.logs]
    rows += [["witness", name, key.format(), url] for name, key, url in policy.witnesses]
    for name, threshold, members in policy.groups:
        words = {len(members): "all", 1: "any"} if len(members) > 1 else {1: "all"}
        rows.append(["group", name, words.get(threshold, str(threshold)), *members])
    rows.append(["quorum", policy.quorum or "none"])
    return "".join(" ".join(filter(None, row)) + "\n" for row in rows).encode()


def seal_of(leaves: Sequence[bytes], origin: str = LOG.name) -> Seal:
    """The head of a log with these leaf hashes."""
    return Seal(origin, len(leaves), root_of(list_nodes(leaves), 0, len(leaves)))


def sealed(seal: Seal, witnesses: int = 1) -> Note:
    """The seal signed by the log, and cosigned by the first so many witnesses."""
    cosignatures = [cosign_seal(seal, key, TIME) for key in WITNESSES[:witnesses]]
    return Note(format_seal(seal), (sign_seal(seal, LOG), *cosignatures))


def proof_of(leaves: Sequence[bytes], seq: int, extra: bytes | None = None) -> Proof:
    """That one of these leaves lies in the log that has them all."""
    hashes = inclusion_proof(list_nodes(leaves), seq, len(leaves))
    return Proof(seq, tuple(hashes), sealed(seal_of(leaves)), extra)
