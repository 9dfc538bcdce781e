"""Holds against each other what the replicas of a team remember of each other's heads.

A head of a replica is remembered where another one merged it (``peer.merged``), in the seal of a
record on a ref, and in the trailer of a commit. Each is held against the replica's tree: this
ledger's own, or that of the longest record which a ref has and the replica's key sealed. Where no
tree is at hand, two heads of one size must have one root.

An entry that is kept of a peer must be the one in the peer's tree, and the content beside it the
one that its header commits to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from tripod.ledger import (
    MERGED,
    REDACTED,
    GitError,
    LedgerError,
    LedgerReader,
    MalformedError,
    entry_leaf_hash,
    header_auth,
    parse_header,
)
from tripod.ledger.kinds.merged import read_kept
from tripod.ledger.kinds.peers import (
    NAME_IDS,
    PEER_ACCEPTED,
    PEER_ADDED,
    PEER_FORKED,
    PEER_MERGED,
    peer_entry_id,
)
from tripod.ledger.kinds.trust import KEY_SET
from tripod.ledger.tlog.note import Note, VerifierKey, format_note, parse_note
from tripod.ledger.tlog.seal import Seal, open_seal, parse_seal, rotation_problem
from tripod.ledger.tlog.trailer import KEY_DIGITS, key_digits, trailer_seal
from tripod.projections import TRUST
from tripod.verify.anchors.git import Repository
from tripod.verify.anchors.git_growth import describe_growth_commit
from tripod.verify.anchors.heads import KnownHead, OutsideHeads
from tripod.verify.check import Evidence, Finding, HeadsJudged, Severity
from tripod.verify.checks import peers_agree, trailers_agree
from tripod.verify.export_file import FileError, RefFiles
from tripod.verify.peers.placing import PlaceJudge, content_bytes, erased_body
from tripod.verify.peers.refs import ReplicaRef, record_note, replica_refs, strange_refs
from tripod.verify.peers.seals import (
    PeerMemory,
    RecordProblemError,
    ReplicaTree,
    SealedRecord,
    sealed_body,
    sealed_identity,
)

_BROKEN = (LookupError, TypeError, ValueError, AttributeError, RecursionError, LedgerError)
_IDS = "peer-", "peer."  # between these are the ids of the entries that keep one of a peer
_KINDS = (MERGED, PEER_MERGED.name, PEER_FORKED.name)


@dataclass
class _Known:
    """What is known of replicas, by origin: keys, names, who is accepted, how much was merged."""

    keys: dict[str, list[VerifierKey]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    judged: Collection[str] = ()  # those whose records have reports of their own
    covered: dict[str, int] = field(default_factory=dict)
    """How many entries of each the largest of its seals covers that was merged here."""
    own_name: str = ""
    """The name of the replica whose ledger is judged."""
    loose: list[PeerMemory] = field(default_factory=list)
    """The seals of records that are not compared."""


class _Kept(NamedTuple):
    """Entry ``seq`` of a peer, which entry ``at`` keeps here, by its leaf hash."""

    at: int
    origin: str
    seq: int
    leaf: bytes


@dataclass
class _KeptEntries:
    """What this ledger keeps of peers: the entries that can be read, and the ids of all.

    ``heads`` are those of which the head was read that they remember; ``rotations`` are what peers
    say of their keys, by origin. By origin and number:
    ``erased`` are those without a body, each with the entry here and what stands for the body, and
    ``erasing`` is what their makers say that stands for it.
    """

    entries: list[_Kept] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    heads: set[tuple[str, int]] = field(default_factory=set)
    rotations: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    places: PlaceJudge | None = None  # there are no tables
    erased: dict[tuple[str, int], tuple[int, object]] = field(default_factory=dict)
    erasing: dict[tuple[str, int], object] = field(default_factory=dict)


class _Comparison:
    """One comparison of everything that is remembered of the team's replicas."""

    def __init__(
        self,
        evidence: Evidence,
        origin: str,
        lines: Mapping[str, int],
        keys: Sequence[VerifierKey],
        outside: OutsideHeads,
    ) -> None:
        self.evidence, self.origin, self.lines = evidence, origin, lines
        self.outside = outside
        self.known = _Known()
        for key in keys:
            self.known.keys.setdefault(key.name, []).append(key)
        self.heads: list[PeerMemory] = []
        self.proven: set[int] = set()  # entries here that keep one of a peer's sealed tree
        self.kept = _KeptEntries()
        self.trees: dict[str, ReplicaTree] = {}
        self.peers, self.trailers = HeadsJudged(), HeadsJudged()
        self.is_here = False  # whether there is anything of replicas to judge

    # What is there -----------------------------------------------------------------------------

    def read_roster(self) -> None:
        """Who the peers are, as the entries say: names, keys, and who was accepted by a person."""
        evidence = self.evidence
        if evidence.folded is None:
            return
        policy = self.outside.policy
        named = {log.key.format() for log in policy.logs} if policy is not None else set()
        sql = "SELECT origin, replica, key, how, accepted_key, accepted, closed FROM peers"
        for origin, replica, vkey, how, accepted, at, closed in evidence.query(sql):
            self.is_here = True
            self.known.names[origin] = str(replica or origin)
            by_person = how == "person" or (accepted is not None and accepted == vkey)
            if closed is not None and (at or 0) <= closed:
                self.known.closed.add(origin)
            elif by_person or vkey in named:
                self.known.accepted.add(origin)
        others = self.known.names.keys() - {self.origin, *self.lines, *self.known.judged}
        pins = [pin for pin in self.outside.known if pin.seal.origin in others]
        self.heads += [PeerMemory(pin.seal, pin.note, pin.where) for pin in pins]

    def read_entries(self, start: int) -> None:
        """The heads and entries of peers that this ledger holds."""
        ledger = self.evidence.ledger
        if ledger is None:
            return
        for row in ledger.raw_by_id(*NAME_IDS):
            with suppress(*_BROKEN):
                if parse_header(row.header).ledger == self.origin:
                    self.known.own_name = str(orjson.loads(row.body or b"")["replica"])
        # Who puts an entry of a peer here need not say who that is.
        if self.evidence.folded is not None and not self.is_here and not ledger.count_by_id(*_IDS):
            return
        if self.evidence.folded is not None:
            self.kept.places = PlaceJudge(self.evidence, ledger, self.origin)
        for row in ledger.raw(start, kinds=_KINDS):
            self.is_here = True
            where = f"entry {row.seq}"
            try:
                data = orjson.loads(row.body or b"{}")
                if row.kind == MERGED:
                    self.kept.ids.add(row.id)
                    data = data or erased_body(ledger, row.seq)
                    self._read_kept(row.seq, data, ledger)
                elif row.kind == PEER_MERGED.name:
                    self._add_merged(data, where, self.origin, row.seq)
                else:
                    self._add_fork(data, where, row.seq)
            except MalformedError as error:
                self._peer_finding(str(error), (where, row.seq), peers_agree.ALTERED)
            except _BROKEN:
                continue  # `kinds-known` and `bodies-present` name it
        self._read_keys(start, ledger)

    def _read_keys(self, start: int, ledger: LedgerReader) -> None:
        """The keys of peers: the first of each, and those for which its own entries vouch.

        That this ledger says that a peer has another key now, vouches for nothing.
        """
        for row in ledger.raw(kinds=(PEER_ADDED.name, PEER_ACCEPTED.name)):
            with suppress(*_BROKEN):
                key = VerifierKey.parse(orjson.loads(row.body or b"{}")["key"])
                keys = self.known.keys.setdefault(key.name, [])
                if key not in keys and (not keys or row.seq < start):
                    keys.append(key)
        for origin, said in self.kept.rotations:
            with suppress(*_BROKEN):
                key, keys = VerifierKey.parse(said["vkey"]), self.known.keys[origin]
                if any(rotation_problem(said["note"], origin, old, key) is None for old in keys):
                    keys.append(key)

    def _add_merged(
        self,
        data: Mapping[str, Any],
        where: str,
        by: str,
        seq: int | None,
        record: SealedRecord | None = None,
    ) -> None:
        """Add a head that the entry with the body ``data`` remembers, here or in a ``record``."""
        held = data["seal"]
        if record is not None and "sha256" in held:
            note = parse_note(record.read_blob(held["sha256"], held["size"]))
        else:
            note = parse_note(content_bytes(self.evidence, held))
        seal = parse_seal(note.text)
        said = Seal(data["origin"], data["size"], bytes.fromhex(data["root"]))
        if seal != said:
            raise MalformedError(
                f"it says that {said.size} entries of {said.origin} were merged, and the seal in "
                f"it is of {seal.size} entries of {seal.origin}, or has another root"
            )
        self.heads.append(PeerMemory(seal, note, where, by, seq, record is not None))

    def _add_fork(self, data: dict[str, Any], where: str, seq: int) -> None:
        """A replica contradicted itself, and both seals were kept: that stays, and is told."""
        origin = str(data["origin"])
        notes = [content_bytes(self.evidence, data[name]) for name in ("ours", "theirs")]
        shown = tuple(line for note in notes for line in _shown_note(note))
        who = self.known.names.get(origin, origin)
        message = f"fork: {who} contradicts what it sealed before: {data['problem']}"
        self._peer_finding(message, (where, seq), peers_agree.FORK, shown)

    def _read_kept(self, at: int, data: dict[str, Any], ledger: LedgerReader) -> None:
        kept = read_kept(data, ledger.blob)
        head = parse_header(kept.header)
        if head.seq != kept.seq:
            raise MalformedError(f"it keeps entry {head.seq} of {kept.origin} as entry {kept.seq}")
        if (None if kept.auth is None else header_auth(kept.auth)) != head.auth:
            raise MalformedError(
                f"entry {kept.seq} of {kept.origin} is kept with another signature than it had"
            )
        self.kept.entries.append(_Kept(at, kept.origin, kept.seq, kept.leaf()))
        if kept.body is None:
            self.kept.erased[kept.origin, kept.seq] = at, data.get("keep")
        elif head.kind == REDACTED:
            said = orjson.loads(kept.body)
            self.kept.erasing[kept.origin, said["seq"]] = said["keep"]
        elif head.kind == KEY_SET.name:
            self.kept.rotations.append((kept.origin, orjson.loads(kept.body)))
        elif head.kind == PEER_MERGED.name:
            with suppress(*_BROKEN):
                who = self.known.names.get(kept.origin, kept.origin)
                said = orjson.loads(kept.body)
                self._add_merged(said, f"entry {at} (entry {kept.seq} of {who})", kept.origin, at)
                self.kept.heads.add((kept.origin, kept.seq))
        if self.kept.places is not None:
            name = self.known.names.get(kept.origin)
            problem = self.kept.places.problem(at, kept, head, data, name)
            if problem is not None:
                raise MalformedError(problem)

    # Refs --------------------------------------------------------------------------------------

    def read_refs(self, repository: Repository) -> None:
        """The seals of all records on refs, and the longest record of each replica."""
        refs = replica_refs(repository)
        for ref in strange_refs(repository, refs):
            self.is_here = True
            message = "it stands where records of replicas are, and names none"
            self._peer_finding(message, (ref, None), peers_agree.REF, severity="warning")
        for one in refs:
            self.is_here = True
            note = record_note(repository, one.commit)
            if note is None:
                self._warn_ref(one, "it holds no record: there is no seal that can be read")
                continue
            try:
                self._read_ref(repository, one, note)
            except (RecordProblemError, GitError, FileError, *_BROKEN) as error:
                self._warn_ref(one, f"it is not compared: {error}")
                self.known.loose.append(PeerMemory(parse_seal(note.text), note, one.ref))

    def _warn_ref(self, ref: ReplicaRef, message: str) -> None:
        self._peer_finding(message, (ref.ref, None), peers_agree.REF, severity="warning")

    def _read_ref(self, repository: Repository, ref: ReplicaRef, note: Note) -> None:
        seal = parse_seal(note.text)
        record = SealedRecord(RefFiles(repository, ref.commit, ref.replica), seal, 0)
        known, name = self.known.keys.get(seal.origin, []), self.known.names.get(seal.origin, "")
        name = self.known.own_name if seal.origin == self.origin else name
        digits = {key_digits(key.format()) for key in known}
        is_named = name == ref.replica
        if name in ("", seal.origin):  # no entry that was read names it
            is_named = self.evidence.loaded or ref.replica[-KEY_DIGITS:] in digits
        with suppress(LedgerError):
            open_seal(note, known)
            if is_named:
                self._add_ref(ref, record, note, known)
                return
        found = sealed_identity(record, None)
        if known and found.named not in known and found.key not in known:
            message = f"its seal is by no key that is known of {seal.origin}"
            if found.key is None or not found.names_itself():
                raise MalformedError(message)
            open_seal(note, [found.key])
            message = f"{message}: two replicas have that name, or one was made up"
            self._peer_finding(
                message, (ref.ref, None), peers_agree.TWO, _shown_note(format_note(note))
            )
            return
        keys = [key for key in (found.named, found.key) if key is not None]
        open_seal(note, keys)
        message = ""
        if not any(key_digits(k.format()) == ref.replica[-KEY_DIGITS:] for k in keys):
            message = f"it is sealed under another key than that of {ref.replica}"
        elif found.replica not in ("", ref.replica):
            message = f"it is the record of {found.replica}"
        if message and known and self.evidence.loaded:  # its own part names it
            self.known.loose.append(PeerMemory(seal, note, ref.ref))
            return
        if message:
            raise MalformedError(message)
        if not is_named and known:
            message = f"this ledger calls it {name}, which is not the name that it has"
            self._peer_finding(message, (ref.ref, None), peers_agree.TWO)
        self.known.keys[seal.origin] = [*known, *(key for key in keys if key not in known)]
        self._add_ref(ref, record, note, keys)

    def _add_ref(
        self, ref: ReplicaRef, record: SealedRecord, note: Note, keys: list[VerifierKey]
    ) -> None:
        seal = record.seal
        if not record.files.bodies:
            self._warn_ref(ref, "it holds headers alone: what it remembers of others is not known")
        self.known.names.setdefault(seal.origin, ref.replica)
        self.heads.append(PeerMemory(seal, note, ref.ref, proven=ref.remote is not None))
        tree = self.trees.get(seal.origin)
        if seal.origin != self.origin and (tree is None or tree.record.seal.size < seal.size):
            self.trees[seal.origin] = ReplicaTree(ref, record, note, keys)

    def read_newer(self) -> None:
        """What the records on refs remember, but for what was read of them here.

        That this ledger says that it merged them is not enough: it may have left something out.
        """
        for origin, tree in self.trees.items():
            record = SealedRecord(tree.record.files, tree.record.seal)
            read = {seq for whose, seq in self.kept.heads if whose == origin}
            problem: Exception | None = None
            try:
                for header, said in record.of_kinds((PEER_MERGED.name,), read):
                    where = f"entry {header.seq} of {self.known.names.get(origin, origin)}"
                    try:
                        data = sealed_body(header, said)
                        self._add_merged(data, where, origin, None, record)
                    except (FileError, *_BROKEN):
                        problem = problem or MalformedError(f"{where} cannot be read")
            except RecordProblemError as error:
                problem = error
            if problem is not None and record.files.bodies:
                self._warn_ref(tree.ref, f"not all that it remembers is compared: {problem}")

    def read_trailers(self, repository: Repository) -> None:
        """The heads in the messages of all commits; the keys that are known say whose they are."""
        known = {
            key_digits(key.format()): keys for keys in self.known.keys.values() for key in keys
        }
        strangers: dict[str, list[str]] = {}
        for commit, trailer in repository.trailers():
            where = describe_growth_commit(commit)
            memory = None
            for key in known.get(trailer.replica[-KEY_DIGITS:], ()):
                seal, note = trailer_seal(trailer, key)
                with suppress(LedgerError):
                    open_seal(note, [key])
                    memory = PeerMemory(seal, note, where, is_trailer=True)
            self.trailers.heads += 1
            if memory is None:
                strangers.setdefault(trailer.replica, []).append(where)
            elif not self.evidence.loaded or memory.seal.origin not in self.known.judged:
                self.heads.append(memory)
        for replica, places in sorted(strangers.items()):
            more = f", and {len(places) - 1} more" if places[1:] else ""
            message = f"a head of {replica} that no known key opens: it binds nothing{more}"
            name, help_ = trailers_agree.NAME, peers_agree.STRANGER
            found = Finding(name, message, places[0], (), help_, "warning", fault=None)
            self.trailers.findings.add(found)

    # Judgement ---------------------------------------------------------------------------------

    def judge(self) -> None:
        """Hold everything against everything."""
        for head in self.known.loose:  # whatever became of its record, the seal binds who made it
            with suppress(LedgerError):
                open_seal(head.note or b"", self.known.keys.get(head.seal.origin, ()))
                self.heads.append(head)
        sizes: dict[str, set[int]] = {}
        for head in self.heads:
            whose = head.seal.origin if head.seal.origin in self.trees else ""
            sizes.setdefault(whose, set()).add(head.seal.size)
        for origin, tree in list(self.trees.items()):
            try:
                tree.fill(sizes.get(origin, set()) | sizes.get("", set()))
            except RecordProblemError as error:
                self._warn_ref(tree.ref, f"it is not compared: {error}")
                del self.trees[origin]
        compared = sum(self._judge_kept(kept) for kept in self.kept.entries)
        met: dict[tuple[str, int], PeerMemory] = {}
        for head in self.heads:
            self._judge_head(head, met)
        replicas = {self.origin, *(head.seal.origin for head in self.heads), *self.known.names}
        self.peers.seen["replicas"] = len(replicas)
        self._judge_absent(met.values())
        self._judge_covered()
        self._judge_erased()
        if self.kept.entries:
            self.peers.seen["entries of peers"] = len(self.kept.entries)
            self.peers.seen["held against their trees"] = compared
        self.peers.heads = sum(not head.is_trailer for head in self.heads)

    def _judge_absent(self, heads: Iterable[PeerMemory]) -> None:
        """Of each replica that is remembered a ref has a record: else nobody can judge it."""
        here = {self.origin, *self.lines, *self.known.closed, *self.trees}
        most: dict[str, PeerMemory] = {}
        for head in sorted(heads, key=lambda one: one.seal.size):
            if head.seal.origin not in here and self.outside.repository is not None:
                most[head.seal.origin] = head
        # An auditor's clone has what a remote gives: none is as bad there as one that is cut off.
        severity: Severity = "failure" if self.evidence.loaded else "warning"
        for origin, head in most.items():
            if any(tree.holds(head.seal) for tree in self.trees.values()):
                continue  # a copy left that line later, and has all of it
            who = self.known.names.get(origin, origin)
            message = f"{who} had {head.seal.size} entries, and no ref here holds its record"
            self._peer_finding(message, (head.where, head.seq), peers_agree.GONE, (), severity)

    def _judge_kept(self, kept: _Kept) -> bool:
        """Whether an entry of a peer could be held against its tree; what is wrong is added."""
        tree = self.trees.get(kept.origin)
        if tree is None:  # of a line that its maker left: the record of the next one may hold it
            trees = [one for one in self.trees.values() if kept.seq < len(one.leaves)]
            return any(one.leaves[kept.seq] == kept.leaf for one in trees)
        if kept.seq >= len(tree.leaves):
            return False
        if tree.leaves[kept.seq] == kept.leaf:
            self.proven.add(kept.at)
        else:
            who = self.known.names.get(kept.origin, kept.origin)
            self._peer_finding(
                f"it keeps another entry {kept.seq} of {who} than the record on {tree.ref.ref} "
                "has, which its key sealed",
                (f"entry {kept.at}", kept.at),
                peers_agree.ALTERED,
                _shown_note(format_note(tree.note)),
            )
        return True

    def _judge_covered(self) -> None:
        """What is kept of a peer is under a seal of its; of what that covers nothing is missing."""
        scan, ledger = self.evidence.scan, self.evidence.ledger
        loose: dict[str, list[_Kept]] = {}
        ends: dict[str, int] = {}
        for kept in self.kept.entries:
            if kept.at in self.proven:
                ends[kept.origin] = max(kept.seq, ends.get(kept.origin, 0))
            if self.outside.repository is None and kept.origin in self.known.names:
                continue  # its newest seal may lie in its own record
            tree, covered = self.trees.get(kept.origin), self.known.covered.get(kept.origin, 0)
            if kept.seq >= max(covered, len(tree.leaves) if tree is not None else 0):
                loose.setdefault(kept.origin, []).append(kept)
        for origin, entries in loose.items():
            who, first = self.known.names.get(origin, origin), entries[0]
            more = f", and {len(entries) - 1} more" if entries[1:] else ""
            message = f"no seal of {who} that is known here covers its entry {first.seq}{more}"
            self._peer_finding(message, (f"entry {first.at}", first.at), peers_agree.UNSEALED)
        for origin, tree in self.trees.items():
            if ledger is None or (scan is not None and scan.since):
                continue
            size, who = self.known.covered.get(origin, 0), self.known.names.get(origin, origin)
            lost = [
                seq
                for seq in tree.own
                if seq < max(size, ends.get(origin, 0))
                and peer_entry_id(origin, seq) not in self.kept.ids
                and entry_leaf_hash(ledger.header(seq) or b"") != tree.leaves[seq]
            ]
            if lost:
                more = f", and {len(lost) - 1} more" if lost[1:] else ""
                why = f"this ledger says that all of its first {size} entries are"
                why = why if lost[0] < size else f"its entry {ends[origin]} is"
                message = f"entry {lost[0]} of {who}{more} is not here, and {why}"
                self._peer_finding(message, (tree.ref.ref, None), peers_agree.LOST)

    def _judge_erased(self) -> None:
        """Where an entry of a peer has no body here, the peer said what stands for it."""
        for (origin, seq), (at, keep) in self.kept.erased.items():
            said, tree = self.kept.erasing.get((origin, seq)), self.trees.get(origin)
            if said is None and tree is not None:
                with suppress(RecordProblemError):
                    bodies = [sealed_body(*one) for one in tree.record.of_kinds((REDACTED,))]
                    said = next((one.get("keep") for one in bodies if one.get("seq") == seq), None)
            if said != keep and (said is not None or self.outside.repository is not None):
                who = self.known.names.get(origin, origin)
                message = f"it keeps entry {seq} of {who} as erased otherwise than {who} says"
                self._peer_finding(message, (f"entry {at}", at), peers_agree.ALTERED)

    def _judge_head(self, head: PeerMemory, met: dict[tuple[str, int], PeerMemory]) -> None:
        seal = head.seal
        if head.note is not None and not head.is_trailer:
            try:
                open_seal(head.note, self.known.keys.get(seal.origin, []))
            except LedgerError as error:
                message = f"a head of {seal.origin} that no known key opens: {error}"
                is_ours = seal.origin == self.origin and not self.evidence.loaded and head.by
                is_said_here = is_ours or head.by == self.origin
                severity: Severity = "failure" if is_said_here else "warning"
                self._add(head, message, peers_agree.STRANGER, severity=severity)
                return
            if head.by == self.origin:
                covered = self.known.covered
                covered[seal.origin] = max(seal.size, covered.get(seal.origin, 0))
        is_own = seal.origin == self.origin or self._is_left(seal)
        tree = None if is_own else self.trees.get(seal.origin)
        size = self.evidence.rows if is_own else tree.record.seal.size if tree else None
        if size is not None and seal.size > size:
            self._shorter(head, size, tree)
        elif is_own or tree is not None:
            root = tree.roots.get(seal.size) if tree else self.evidence.root_at(seal.size)
            told = self.trailers if head.is_trailer else self.peers
            if root is None:
                told.untold.append(f"{head.where}: entries before it are missing here")
                told.uncompared.append(head)
            elif root != seal.root:
                self._forked(head, root, tree)
            else:
                told.agreeing.append(head)
        other = met.setdefault((seal.origin, seal.size), head)
        if tree is None and not is_own and other.seal.root != seal.root:
            self._contradict(head, other)

    def _is_left(self, seal: Seal) -> bool:
        """Whether a head is one of a line that this ledger left, and not of another copy of it.

        Where that copy went on under the name before this one left it, a person says so.
        """
        is_left = seal.size <= self.lines.get(seal.origin, -1)
        is_copy = is_left and seal.origin in self.known.accepted
        return is_left and (not is_copy or self.evidence.root_at(seal.size) == seal.root)

    def _shorter(self, head: PeerMemory, size: int, tree: ReplicaTree | None) -> None:
        """Add that the replica has fewer entries; of a peer somebody may only be behind."""
        seal, told = head.seal, self.trailers if head.is_trailer else self.peers
        if tree is None:
            whose, help_ = (
                ("record", peers_agree.NOT_HERE)
                if self.evidence.loaded
                else ("ledger", peers_agree.ROLLBACK)
            )
            message = f"rollback: it remembers {seal.size} entries, and the {whose} has {size}"
            told.disagreeing.append(head)
            self._add(head, message, help_, self._both(head, None))
        elif head.by == self.origin:
            who = self.known.names.get(seal.origin, seal.origin)
            message = (
                f"behind: {seal.size} entries of {who} were merged, and its record on "
                f"{tree.ref.ref} has {size}"
            )
            self._add(head, message, peers_agree.BEHIND, self._both(head, tree.note), "warning")
        else:
            told.seen["not here yet"] = int(told.seen.get("not here yet", 0)) + 1

    def _forked(self, head: PeerMemory, root: bytes, tree: ReplicaTree | None) -> None:
        seal = head.seal
        if tree is None:
            (self.trailers if head.is_trailer else self.peers).disagreeing.append(head)
        whose = "the ledger" if tree is None else f"the record on {tree.ref.ref}"
        of = "" if tree is None else f" of {self.known.names.get(seal.origin, seal.origin)}"
        message = (
            f"fork: it remembers root {seal.root.hex()[:16]}… of the first {seal.size} entries{of},"
            f" and in {whose} they have {root.hex()[:16]}…"
        )
        help_ = peers_agree.COPY if tree is None and seal.origin in self.lines else peers_agree.FORK
        self._add(head, message, help_, self._both(head, tree.note if tree else self._own_note()))

    def _contradict(self, head: PeerMemory, other: PeerMemory) -> None:
        seal = head.seal
        who = self.known.names.get(seal.origin, seal.origin)
        message = (
            f"fork: it remembers root {seal.root.hex()[:16]}… of the first {seal.size} entries of "
            f"{who}, and {other.where} remembers {other.seal.root.hex()[:16]}…"
        )
        self._add(head, message, peers_agree.FORK, self._both(head, other.note))

    def _own_note(self) -> Note | None:
        """The newest seal of this ledger that one of its keys made."""
        if self.evidence.folded is None:
            return None
        for *_, note in self.evidence.query(TRUST.newest_seal):
            with suppress(*_BROKEN):
                return parse_note(note.encode())
        return None

    def _both(self, head: PeerMemory, other: Note | None) -> tuple[str, ...]:
        notes = [note for note in (head.note, other) if note is not None]
        return tuple(line for note in notes for line in _shown_note(format_note(note)))

    # Findings ----------------------------------------------------------------------------------

    def _add(
        self,
        head: PeerMemory,
        message: str,
        help_: str,
        shown: tuple[str, ...] = (),
        severity: Severity = "failure",
    ) -> None:
        if head.is_trailer:
            found = Finding(
                trailers_agree.NAME, message, head.where, shown, help_, severity, fault=None
            )
            self.trailers.findings.add(found)
        else:
            self._peer_finding(message, (head.where, head.seq), help_, shown, severity)

    def _peer_finding(
        self,
        message: str,
        at: tuple[str, int | None],
        help_: str,
        shown: tuple[str, ...] = (),
        severity: Severity = "failure",
    ) -> None:
        found = Finding(
            peers_agree.NAME, message, at[0], shown, help_, severity, seq=at[1], fault=None
        )
        self.peers.findings.add(found)


def _shown_note(note: bytes) -> tuple[str, ...]:
    return tuple(note.decode("utf-8", "replace").rstrip("\n").split("\n"))


def compare_peers(
    evidence: Evidence,
    origin: str,
    lines: Mapping[str, int],
    keys: Sequence[VerifierKey],
    outside: OutsideHeads,
    *,
    judged: Collection[str],
) -> tuple[HeadsJudged | None, HeadsJudged | None, list[KnownHead]]:
    """What the replicas remember of each other, heads in commits, and heads of ours that agree.

    ``lines`` are the lines that this ledger left, by origin, each with its size then; ``keys`` are
    its own, ``judged`` the replicas whose records are judged beside it. The first two are None
    where there is nothing to judge.
    """
    found = _Comparison(evidence, origin, lines, keys, outside)
    found.known.judged = judged
    found.read_roster()
    found.read_entries(evidence.scan.since if evidence.scan is not None else 0)
    if outside.repository is not None:
        try:
            with Repository(f"{outside.repository}/.nbs") as repository:
                found.read_refs(repository)
                found.read_newer()
                found.read_trailers(repository)
                found.judge()
        except GitError as error:
            found.peers.untold.append(f"git: {error}")
    else:
        found.judge()
    agreeing = list(_vouching(found))
    known = found.peers.agreeing
    known[:] = [one._replace(proven=one.proven or one.seq in found.proven) for one in known]
    trailers = found.trailers if found.trailers.heads else None
    return (found.peers if found.is_here else None), trailers, agreeing


def _vouching(found: _Comparison) -> Iterator[KnownHead]:
    """The heads of this ledger that agree, as far as they vouch for it.

    A peer vouches where its own sealed tree holds the entry, and a person accepted the peer.
    """
    for head in (*found.peers.agreeing, *found.trailers.agreeing):
        is_itself = head.by == found.origin or head.where == found.evidence.what
        if head.seal.origin != found.origin or is_itself:
            continue
        if head.is_trailer or (not head.by and head.proven):
            yield KnownHead("git", head.where, head.seal, note=head.note)
        elif head.by in found.known.accepted and (head.proven or head.seq in found.proven):
            name = found.known.names.get(head.by, head.by)
            yield KnownHead("peer", name, head.seal, note=head.note)
