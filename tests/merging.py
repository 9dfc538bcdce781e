"""Two or three replicas of one team, and a merge without records and refs: entry by entry.

What a peer recorded is appended as ``tripod pull`` does once it has judged the peer's record; the
judging is not done here.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from story import Story

from tripod.decisions.writer import DecisionRequest, log
from tripod.ledger import LedgerReader, parse_header
from tripod.ledger.entry import Entry, entry_blobs
from tripod.ledger.kinds.merged import KeptEntry, peer_entry_draft
from tripod.ledger.kinds.peers import NAME_IDS, PEER_ADDED, PEER_ENTRY, PEER_MERGED, TEAM_NAMED
from tripod.ledger.tlog.note import Note, SigningKey, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal
from tripod.peers.places import Places
from tripod.team.team import Team
from tripod.verify.finding import Finding
from tripod.verify.run import verify

BATCH = 1000


def replica_name(name: str) -> str:
    """The replica that a name begins: its first letter tells its digits."""
    return f"{name}-{f'{ord(name[0]):02x}' * 8}"


def key_of(origin: str) -> SigningKey:
    """The key that seals a replica for those who merge it here."""
    return SigningKey(origin, sha256(origin.encode()).digest())


class Replica(Story):
    """One replica of a team, with a story of its own."""

    def __init__(self, root: Path, name: str) -> None:
        root.mkdir()
        super().__init__(root, f"parser.example/{name}")
        self.name = replica_name(name)
        with self.team() as team, team.act() as act:
            act.append([TEAM_NAMED.draft({"team": "parser.example/1", "replica": self.name})])

    def supersede(self, decision: str, title: str = "Milk") -> None:
        """Log a decision that supersedes another."""
        with self.team() as team:
            request = DecisionRequest(title, ["ann"], "because", supersedes=decision, no_ref="none")
            log(team, request)

    def pending(self) -> list[str]:
        """Names of the pending events' files."""
        return sorted(path.name for path in (self.root / "events").glob("*.event"))


def seq_merged(ledger: LedgerReader, origin: str) -> int:
    """How much of a replica was merged."""
    sql = "SELECT size FROM peers WHERE origin = ?"
    row = ledger.tables.execute(sql, (origin,)).fetchone()
    return 0 if row is None else int(row[0])


def merge(here: Team, there: Team, *, batch: int = BATCH, signed: bool = False) -> int:
    """Append what the replica ``there`` itself recorded since the last time; give how many."""
    origin = there.store.origin
    count = 0
    with here.act() as act:
        added = here.store.tables.execute("SELECT 1 FROM peers WHERE origin = ?", (origin,))
        if not added.fetchone():
            name = _name(there.store)
            key = key_of(origin).verifier().format()
            act.append(
                [PEER_ADDED.draft({"origin": origin, "replica": name, "key": key, "how": "person"})]
            )
        since = seq_merged(act.transaction, origin)
        entries = list(there.store.read(since))
        places = Places(act)
        for start in range(0, len(entries), batch):
            drafts = []
            for entry in entries[start : start + batch]:
                if entry.kind == PEER_ENTRY.name:
                    continue
                header = parse_header(entry.header)
                place = places.place(origin, header, entry.data, signed=signed)
                kept = KeptEntry(
                    origin, entry.seq, entry.header, entry.auth, entry.salt, entry.body
                )
                keep = entry.data if entry.body is None else None
                blobs = dict(_blobs(there.store, entry))
                drafts.append(
                    peer_entry_draft(kept, header.stream, place=place, blobs=blobs, keep=keep)
                )
            count += len(act.append(drafts))
        head = there.store.head()
        if head.size > since:
            seal = Seal(origin, head.size, head.root)
            note = format_note(Note(format_seal(seal), (sign_seal(seal, key_of(origin)),)))
            root = head.root.hex()
            act.append(
                [
                    PEER_MERGED.draft(
                        {"origin": origin, "size": head.size, "root": root, "seal": note}
                    )
                ]
            )
    return count


def _name(ledger: LedgerReader) -> str:
    named = [ledger.entry(entry.seq) for entry in ledger.raw_by_id(*NAME_IDS)]
    last = named[-1]
    assert last is not None
    return str(last.data["replica"])


def _blobs(ledger: LedgerReader, entry: Entry) -> Iterator[tuple[bytes, bytes]]:
    for digest, _ in entry_blobs(entry.data):
        blob = ledger.blob(bytes.fromhex(digest))
        if blob is not None:
            yield bytes.fromhex(digest), blob


def pull(here: Replica, there: Replica, *, batch: int = BATCH, signed: bool = False) -> int:
    """Merge what one replica recorded into another."""
    with there.team() as theirs, here.team() as ours:
        return merge(ours, theirs, batch=batch, signed=signed)


def findings(replica: Replica) -> list[Finding]:
    """What verify finds; these replicas have no key of their own that would open their seals."""
    found = [one for each in verify(str(replica.root)).outcomes for one in each.findings]
    return [one for one in found if one.check != "peers-agree" or one.message.startswith("it ")]
