"""What a peer may send that is bad: each is named, nothing is lost, nothing is taken half."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from peering import Forger, MemoryFiles, Replica, copied, record_of

from tripod.ledger import redaction_entry_id
from tripod.ledger.actors import Record, format_actor_record
from tripod.ledger.kinds.base import INLINE_LIMIT
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.tlog.note import SigningKey
from tripod.ledger.tlog.seal import read_seal
from tripod.ledger.tlog.tiles import SEAL
from tripod.peers.roster import MergeLimits
from tripod.projections.erasure import tombstone
from tripod.trust import actors, keys
from tripod.trust.signature import actor_key_path
from tripod.verify.export import ExportFiles

SOUND = 3
"""How many messages a peer sends before its bad entry."""


@pytest.fixture
def ann(tmp_path: Path) -> Replica:
    return Replica(tmp_path / "ann", "ann")


@pytest.fixture
def eve(tmp_path: Path, ann: Replica) -> Forger:
    """A peer of Ann's with a few sound messages."""
    replica = Replica(tmp_path / "eve", "eve", ann.team_id)
    for number in range(SOUND):
        replica.say(f"sound {number}")
    return Forger(replica)


def garbage_signature(key_id: bytes = b"\x01\x02\x03\x04") -> bytes:
    return format_actor_record(Record(key_id, bytes(64)))


def event(name: str, **more: object) -> dict[str, object]:
    said = {"name": name, "us": 7, "source": "eve", "type": "x", "priority": "low", "size": 9}
    return said | more


DECISION = {
    "id": "D-7", "number": 1, "title": "T", "chat_ref": "—", "participants": "eve",
    "artefacts": "—", "risk_tags": "none", "status": "decided", "rationale": "r", "refs": [],
}  # fmt: skip
RAW_DECISION = b"\n---\n\n### D-7 T\n- **Status:** decided\n\n---\n\n### D-8 Another\n"
OBSERVED = {"path": "chat/live.chat", "claim": "content"}


def erases_itself(eve: Forger, handle: str = "eve", **header: Any) -> None:
    """Take the body out of a message, and say so in an entry with this ``id`` in its header."""
    erases(eve, eve.say(handle=handle, actor=handle), **header)


def erases(eve: Forger, seq: int, **header: Any) -> None:
    row = eve.rows[seq]
    eve.rows[seq] = row._replace(salt=None, body=None)
    keep = tombstone(row.kind, orjson.loads(row.body or b""))
    said = {"seq": seq, "kind": row.kind, "reason": "r", "by": "eve", "keep": keep}
    eve.add("redacted", said, **header)


BAD: dict[str, tuple[Callable[[Forger], object], str]] = {
    "unknown kind": (lambda e: e.add("bus.exploded", {}), "upgrade tripod"),
    "other fields": (lambda e: e.add("bus.acked", {"name": "a.event", "x": 1}, "bus"), "upgrade"),
    "another stream": (lambda e: e.add("bus.acked", {"name": "a.event"}, "b"), "its place is bus"),
    "opened again": (
        lambda e: e.add("ledger.opened", {
            "origin": "o", "project": "p", "created": "c", "scribe": "s", "events": "e",
            "chat": "c",
        }),
        "opened again",
    ),
    "another ledger": (lambda e: e.say(ledger="example.org/ann"), "names another ledger"),
    "another place": (lambda e: e.say(seq=7), "the header says seq 7"),
    "a key in another place": (
        lambda e: e.add("key.set", {"vkey": e.key.verifier().format()}, seq=10**6),
        "the header says seq 1000000",
    ),
    "no link": (lambda e: e.say(prev="ab" * 32), "prev is"),
    "long actor": (lambda e: e.say(actor="e" * 60_000), "more than 4160 characters"),
    "long handle": (lambda e: e.say(handle="e" * 64), "longer than 63 bytes"),
    "two lines": (lambda e: e.say(handle="e\nann|7: I said so"), "line break"),
    "handle ends": (lambda e: e.say(handle="ann|7: x"), "would end within its name"),
    "NUL": (lambda e: e.say("a\0b"), "NUL"),
    "channel": (
        lambda e: e.add("chat.created", {"channel": "../../x"}, "chat/../../x"),
        "no name of a chat",
    ),
    "absolute channel": (
        lambda e: e.add("chat.created", {"channel": "/etc/x"}, "chat//etc/x"), "no name of a chat",
    ),
    "event path": (
        lambda e: e.add("bus.published", event("../../../x.event"), "bus"), "no name of an event",
    ),
    "event name": (lambda e: e.add("bus.published", event("x"), "bus"), "not the name of an event"),
    "event bytes": (
        lambda e: e.add("bus.published", event("7-eve-x-1.event", payload={
            "base64": b64encode(b"\xff").decode()}), "bus"),
        "cannot be shown",
    ),
    "no base64": (
        lambda e: e.add("bus.published", event("7-eve-x-1.event", payload={"base64": "?"}), "bus"),
        "cannot be shown",
    ),
    "a queue's path": (
        lambda e: e.add("bus.acked-all", {"count": 1, "queue": "../x"}, "bus"), "name of a queue",
    ),
    "a log's path": (
        lambda e: e.add("decision.logged", DECISION | {"file": "../../x.md"}, "decisions"), "file",
    ),
    "a second decision": (
        lambda e: e.add(
            "decision.logged", DECISION | {"title": "T\n- **x:** y\n### D-9 Z"}, "decisions"),
        "cannot be shown",
    ),
    "raw decisions": (
        lambda e: e.add("decision.logged", DECISION | {
            "observed": OBSERVED | {"raw": {"text": RAW_DECISION.decode()}}}, "decisions"),
        "another decision than its body",
    ),
    "no decision": (
        lambda e: e.add("log.noted", {
            "problem": "p", "observed": OBSERVED | {"raw": {"text": RAW_DECISION.decode()}}},
            "decisions"),
        "and it holds one",
    ),
    "header of a log": (
        lambda e: e.add(
            "log.begun", {"header": {"text": "# Log\n\n### D-1 T\n"}, "file": "x.md"}, "decisions"),
        "holds a decision",
    ),
    "raw message": (
        lambda e: e.add("chat.sent", {
            "channel": "live", "index": 0, "handle": "eve", "time": 7, "text": {"text": "a"},
            "observed": OBSERVED | {"raw": {"text": b64encode(b"ann|7: b").decode() + "\n"}}},
            "chat/live"),
        "another message than its body",
    ),
    "two raw messages": (
        lambda e: e.add("chat.unreadable", {
            "channel": "live", "index": 0,
            "observed": OBSERVED | {"raw": {"text": b64encode(b"ann|7: b").decode() + "\n"}}},
            "chat/live"),
        "the line holds one",
    ),
    "missing blob": (
        lambda e: e.add("bus.published", event("7-eve-x-1.event", payload={
            "sha256": "ab" * 32, "size": 99}), "bus"),
        "is missing",
    ),
    "a blob's path": (
        lambda e: e.add("bus.published", event("7-eve-x-1.event", payload={
            "sha256": "../../../../etc/passwd", "size": 99}), "bus"),
        "sha256",
    ),
    "a redaction that keeps": (
        lambda e: e.add("redacted", {
            "seq": 6, "kind": "chat.sent", "reason": "r", "by": "eve", "keep": {
                "channel": "live", "index": 0, "handle": "eve", "time": 7, "v": 1,
                "text": {"text": "it stays"}}}, id="redacted-6", actor="eve"),
        "keeps more",
    ),
    "a redaction of what comes": (
        lambda e: e.add("redacted", {
            "seq": 999, "kind": "bus.published", "reason": "r", "by": "eve",
            "keep": event("7-eve-x-1.event") | {"v": 1}}, id="redacted-999", actor="eve"),
        "does not stand where",
    ),
    "a body that no redaction erased": (erases_itself, "no entry says that they were erased"),
    "an erased body of a handle that is none": (
        lambda e: erases_itself(e, "e|ve", id=redaction_entry_id(len(e.rows))),
        "would end within its name",
    ),
    "much that stays of an erased body": (
        lambda e: erases(
            e,
            e.add("chat.header-seen", {
                "channel": "live", "last_writer": "eve", "last_write": "now",
                "participants": [{"handle": f"e{n:029}", "count": n} for n in range(1100)],
                "raw": {"text": "r"}, "observed": OBSERVED}, "chat/live"),
            id=redaction_entry_id(len(e.rows) - 1), actor="eve"),
        "can hold",
    ),
    "a stripped signature": (lambda e: e.say(names="ab" * 32), "stripped"),
    "no signature": (lambda e: e.say(auth=b"\x09" * 69), "no signature record"),
    "many references": (
        lambda e: e.add("decision.logged", DECISION | {
            "refs": [{"file": "live.chat", "line": n} for n in range(1500)]}, "decisions"),
        "can hold",
    ),
    "a fork of another": (
        lambda e: e.add("ledger.forked-from", {
            "origin": "example.org/ann", "size": 3, "root": "ab" * 32, "reason": "r"},
            ledger="example.org/eve/fork/1"),
        "it forks",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_entry_ends_its_peer_there(ann: Replica, eve: Forger, name: str) -> None:
    act, words = BAD[name]
    seq = len(eve.rows)
    act(eve)
    if name != "a fork of another":
        eve.say("after it")
    size = ann.size()
    done = ann.merge(eve.record())
    assert words in done.problem, done.problem
    assert done.problem.startswith(f"{eve.name}: entry {seq}: ")
    assert done.taken == seq, "what was sound before stays"
    assert len(ann.says("sound")) == SOUND
    assert ann.says("after it") == []
    assert ann.findings() == []
    again = ann.merge(eve.record())
    assert (again.taken, again.problem) == (0, done.problem)
    assert ann.size() < size + seq + 5


def test_a_kind_that_is_not_known_yet_comes_behind_the_upgrade(
    ann: Replica, eve: Forger, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve.add("bus.acked", {"name": "7-eve-x-1.event"}, "bus")
    eve.say("after it")
    record = eve.record()
    with monkeypatch.context() as older:
        older.delitem(BY_NAME, "bus.acked")
        problem = ann.merge(record).problem
    assert "'bus.acked' is a kind that this version does not know: upgrade" in problem
    assert (len(ann.says("sound")), ann.says("after it")) == (SOUND, [])
    assert ann.merge(record).problem == ""
    assert len(ann.says("after it")) == 1
    assert ann.findings() == []


def test_a_long_header_is_kept_whole(ann: Replica, eve: Forger) -> None:
    """Above 16 KiB it stands in a blob."""
    seq = eve.say("after a long name", actor="\x01" * 4_000)
    assert len(eve.rows[seq].header) > INLINE_LIMIT
    assert ann.merge(eve.record()).problem == ""
    (kept,) = [head for (_, at), head in ann.kept().items() if at == seq and len(head) > 20_000]
    assert kept == eve.rows[seq].header
    (entry,) = [one for one in ann.entries("peer.entry") if one.data["seq"] == seq]
    assert "sha256" in entry.data["header"]
    assert ann.findings() == []


@pytest.mark.parametrize("whose", ["its own", "by another key", "of another history"])
def test_what_is_sound_ends_at_a_seal_of_the_peers_own(
    ann: Replica, eve: Forger, whose: str
) -> None:
    """A seal in the record by another key would be remembered as the peer's, and prove nothing."""
    key = SigningKey(eve.key.name, bytes(32)) if whose == "by another key" else eve.key
    rows = [*eve.rows[:-1], eve.rows[0]] if whose == "of another history" else eve.rows
    note = record_of(rows, eve.blobs, key).files[SEAL].decode()
    eve.add("seal.made", {"note": note, "size": len(eve.rows), "reason": "asked"})
    eve.add("bus.exploded", {})
    assert "upgrade" in ann.merge(eve.record()).problem
    assert len(ann.says("sound")) == SOUND
    sizes = [entry.data["size"] for entry in ann.entries("peer.merged")]
    assert (read_seal(note.encode()).size in sizes) == (whose == "its own")


def test_an_entry_of_ours_within_a_peers_record_is_judged(ann: Replica, eve: Forger) -> None:
    assert ann.merge(eve.record()).problem == ""
    seq = len(eve.rows)
    with ann.team() as team:
        eve.rows += team.store.raw_of([seq])
    eve.say("behind it")
    assert ann.merge(eve.record()).problem.startswith(f"{eve.name}: entry {seq}: ")
    assert ann.says("behind it") == []


# Records ----------------------------------------------------------------------------------------


def problem_of(ann: Replica, files: MemoryFiles) -> str:
    """Why nothing of a record is taken."""
    size = ann.size()
    done = ann.merge(files)
    assert (done.taken, done.added, ann.size()) == (0, False, size)
    return done.problem


def test_a_record_without_a_seal_is_named(ann: Replica, eve: Forger) -> None:
    record = eve.record()
    for data in (b"", b"no seal", b"x" * 10_000_000):
        assert "there is no seal" in problem_of(ann, MemoryFiles(record.files | {SEAL: data}))
    del record.files[SEAL]
    assert "checkpoint is missing" in problem_of(ann, record)


def test_a_seal_by_another_key_is_refused(ann: Replica, eve: Forger) -> None:
    mine, eve.key = eve.key, SigningKey(eve.key.name, os.urandom(32))
    assert "its seal is not by the key on record" in problem_of(ann, eve.record())
    eve.key = mine
    assert ann.merge(eve.record()).problem == ""
    eve.key = SigningKey(mine.name, os.urandom(32))
    eve.say()
    assert "its seal is not by the key on record" in problem_of(ann, eve.record())
    eve.add("key.set", {"vkey": eve.key.verifier().format()})
    assert "its seal is not by the key on record" in problem_of(ann, eve.record())


def test_a_name_that_the_key_does_not_give_is_refused(ann: Replica, eve: Forger) -> None:
    eve.add("team.named", {"team": ann.team_id, "replica": ann.name})
    assert "calls itself" in problem_of(ann, eve.record())


def test_a_million_entries_are_refused_before_anything_is_read(ann: Replica, eve: Forger) -> None:
    from tripod.ledger.tlog.note import Note, format_note
    from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal

    seal = Seal(eve.key.name, 1_000_000, bytes(32))
    note = format_note(Note(format_seal(seal), (sign_seal(seal, eve.key),)))
    said = problem_of(ann, MemoryFiles({SEAL: note}))
    assert "1000000 new entries, at most 500000" in said
    assert "--max-entries 1000000" in said


def test_each_limit_is_named_and_what_was_sound_stays(ann: Replica, eve: Forger) -> None:
    assert "at most 2 are taken" in ann.merge(eve.record(), limits=MergeLimits(entries=2)).problem
    assert (
        "takes more than 900 bytes"
        in ann.merge(eve.record(), limits=MergeLimits(bytes=900)).problem
    )
    largest = max(map(len, eve.record().files.values()))
    said = ann.merge(eve.record(), limits=MergeLimits(bytes=largest + 1)).problem
    assert f"takes more than {largest + 1} bytes" in said, "all files together"
    sound = len(eve.rows)
    for number in range(3):
        blob = b"%d" % number * 20_000
        eve.blobs.append(blob)
        content = {"sha256": sha256(blob).hexdigest(), "size": len(blob)}
        named = event(f"{number + 1}-eve-x-1.event", us=number + 1, payload=content)
        eve.add("bus.published", named, "bus")
    done = ann.merge(eve.record(), limits=MergeLimits(blobs=2))
    assert "more blobs than are read" in done.problem
    assert done.taken == sound + 2
    assert ann.merge(eve.record()).taken == 1


@pytest.mark.parametrize("what", ["tile/0/", "tile/entries/", "bodies/", "blobs/"])
def test_no_byte_of_a_record_is_taken_that_was_not_sealed(
    tmp_path: Path, ann: Replica, eve: Forger, what: str
) -> None:
    blob = b"long " * 5000
    eve.blobs.append(blob)
    content = {"sha256": sha256(blob).hexdigest(), "size": len(blob)}
    eve.add("bus.published", event("7-eve-x-1.event", payload=content), "bus")
    whole = eve.record()
    (path, *_) = [path for path in whole.files if path.startswith(what)]
    for data in (b"", whole.files[path][:-1], whole.files[path] + b"\n", b"\x00" * 40_000):
        done = ann.merge(MemoryFiles(whole.files | {path: data}))
        if what == "tile/0/":
            break  # hashes of leaves are not read: the headers give them
        assert done.problem, data[:20]
    assert ann.merge(whole).problem == ""
    assert ann.findings() == []


@pytest.mark.parametrize("more", [0, 256], ids=["the last bundle", "a full one"])
def test_no_entry_is_taken_that_was_not_sealed(ann: Replica, eve: Forger, more: int) -> None:
    """Whoever holds the files, and not the key, puts another entry into them."""
    size = more or len(eve.rows)
    while len(eve.rows) < more + 2:
        eve.say("sound, too")
    whole = eve.record().files
    del eve.rows[size - 1 :]
    eve.say("forged")
    other = eve.record().files
    forged = {path: other[path] for path in other if path.startswith(("tile/entries/", "bodies/"))}
    assert "its record is damaged: " in problem_of(ann, MemoryFiles(whole | forged))


def test_a_team_that_was_not_sealed_is_none(ann: Replica, eve: Forger) -> None:
    """The body of an entry counts where the sealed header commits to it."""
    files = eve.record().files
    said = {path: data for path, data in files.items() if path.startswith("bodies/")}
    other = {
        path: data.replace(b'"team":"example.org/ann"', b'"team":"example.org/eve"')
        for path, data in said.items()
    }
    assert other != said
    assert "does not say of which team it is" in problem_of(ann, MemoryFiles(files | other))


def test_a_copy_has_no_name_before_it_says_so(ann: Replica, eve: Forger) -> None:
    """The name of the line that it left is not its own."""
    eve.part("example.org/eve/fork/1", ann.team_id, "eve")
    del eve.rows[-1]
    assert "does not say of which team it is" in problem_of(ann, eve.record())


def test_a_record_with_links_and_strangers_files_is_read_as_one_without(
    tmp_path: Path, ann: Replica
) -> None:
    bob = Replica(tmp_path / "bob", "bob", ann.team_id)
    bob.say("Tea.")
    files = copied(bob.record(), tmp_path / "copy")
    root = Path(files.directory)
    (root / "..hidden").write_text("x", encoding="utf-8")
    (root / "tile" / "escape").symlink_to("/etc")
    bundle = next((root / "bodies").rglob("*.jsonl"))
    kept = bundle.read_bytes()
    bundle.unlink()
    bundle.symlink_to("/etc/passwd")
    assert "bodies/" in ann.merge(files).problem
    bundle.unlink()
    bundle.write_bytes(kept)
    assert ann.merge(ExportFiles(str(root))).problem == ""


def test_the_year_2099_is_what_the_peer_says(ann: Replica, eve: Forger) -> None:
    eve.say("from the future", at="2099-01-01T00:00:00.000000Z")
    assert ann.merge(eve.record()).problem == ""
    assert len(ann.says("from the future")) == 1
    assert max(entry.at for entry in ann.entries()) < "2098"


def test_a_peer_that_vanished_and_came_back_goes_on(ann: Replica, eve: Forger) -> None:
    assert ann.merge(eve.record()).problem == ""
    assert "there is no seal" in ann.merge(MemoryFiles({})).problem
    eve.say("I am back")
    assert ann.merge(eve.record()).problem == ""
    assert len(ann.says("I am back")) == 1


# Forks ------------------------------------------------------------------------------------------


def forks_of(ann: Replica) -> list[dict[str, object]]:
    return [entry.data for entry in ann.entries("peer.forked")]


@pytest.mark.parametrize("more", [0, 1, 300], ids=["same size", "longer", "much longer"])
@pytest.mark.parametrize("before", [1, 3], ids=["the last", "earlier"])
def test_a_peer_that_contradicts_its_seal_is_named_with_both(
    ann: Replica, eve: Forger, more: int, before: int
) -> None:
    first = eve.record()
    assert ann.merge(first).problem == ""
    del eve.rows[-before:]
    for number in range(before + more):
        eve.say(f"rewritten {number}")
    second = eve.record()
    assert "it contradicts itself" in ann.merge(second, dry_run=True).problem
    assert forks_of(ann) == []
    assert "it contradicts itself" in ann.merge(second).problem
    (fork,) = forks_of(ann)
    assert fork["ours"] == {"text": first.files[SEAL].decode()}
    assert fork["theirs"] == {"text": second.files[SEAL].decode()}
    size = ann.size()
    for record in (second, first, eve.record()):
        assert ann.merge(record).taken == 0
    assert ann.size() == size, "both seals are kept once"
    assert ann.says("rewritten") == []


def test_a_peer_that_goes_back_to_another_history_is_a_fork(ann: Replica, eve: Forger) -> None:
    assert ann.merge(eve.record()).problem == ""
    del eve.rows[-3:]
    eve.say("rewritten")
    assert "contradicts itself" in ann.merge(eve.record()).problem
    assert len(forks_of(ann)) == 1


def test_an_older_state_under_another_key_is_no_word_of_the_peer(ann: Replica, eve: Forger) -> None:
    assert ann.merge(eve.record()).problem == ""
    del eve.rows[-3:]
    eve.say("rewritten")
    eve.key = SigningKey(eve.key.name, os.urandom(32))
    done = ann.merge(eve.record())
    assert "its seal is not by the key on record" in done.problem
    assert (done.is_older, forks_of(ann)) == (False, [])


class Overtaken(MemoryFiles):
    """A record; once its seal was read, ``then`` is done."""

    def __init__(self, files: dict[str, bytes], then: Callable[[], object]) -> None:
        super().__init__(files)
        self.then = [then]

    def read(self, path: str, limit: int) -> bytes:
        if path != SEAL and self.then:
            self.then.pop()()
        return super().read(path, limit)


def test_a_merge_that_another_one_overtakes_takes_nothing_back(ann: Replica, eve: Forger) -> None:
    older = eve.record()
    eve.say("the last")
    whole = eve.record()
    assert ann.merge(Overtaken(older.files, lambda: ann.merge(whole))).problem == ""
    (merged,) = ann.entries("peer.merged")
    assert merged.data["size"] == len(eve.rows)
    assert ann.merge(whole).taken == 0


def test_a_fork_that_two_merges_find_is_kept_once(ann: Replica, eve: Forger) -> None:
    assert ann.merge(eve.record()).problem == ""
    del eve.rows[-1:]
    eve.say("rewritten")
    second = eve.record()
    done = ann.merge(Overtaken(second.files, lambda: ann.merge(second)))
    assert "it contradicts itself" in done.problem
    assert len(forks_of(ann)) == 1


def test_a_peer_that_changes_what_was_taken_beyond_its_seal_is_named(
    ann: Replica, eve: Forger
) -> None:
    """A bad entry ended the first merge: no seal that was merged covers the last entry taken."""
    before = list(eve.rows)
    eve.say("the first")
    eve.add("bus.exploded", {})
    assert "upgrade" in ann.merge(eve.record()).problem
    eve.rows = before
    seq = eve.say("another")
    second = eve.record()
    assert f"its entry {seq} is another than the one taken before" in ann.merge(second).problem
    (fork,) = forks_of(ann)
    assert fork["theirs"] == {"text": second.files[SEAL].decode()}
    assert (len(ann.says("the first")), ann.says("another")) == (1, [])


def test_a_peer_that_goes_back_is_named_and_may_come_back(ann: Replica, eve: Forger) -> None:
    eve.say("the last")
    whole = eve.record()
    assert ann.merge(whole).problem == ""
    done = ann.merge(eve.record(len(eve.rows) - 2))
    assert "an older state of it" in done.problem
    assert (done.is_older, forks_of(ann)) == (True, [])
    eve.say("after it")
    assert ann.merge(eve.record()).taken == 1


def test_two_copies_of_one_disk_are_named_by_each_other(tmp_path: Path, ann: Replica) -> None:
    bob = Replica(tmp_path / "bob", "bob", ann.team_id)
    bob.say("before")
    twin = Forger(bob)
    bob.say("on one disk")
    twin.say("on the other")
    twin.say("on the other")
    done = bob.merge(twin.record())
    assert "two copies of one disk both went on" in done.problem
    assert "tripod restore --as-copy" in done.problem
    assert (done.taken, bob.says("other")) == (0, [])
    assert ann.merge(bob).problem == ""
    assert "it contradicts itself" in ann.merge(twin.record()).problem


def test_a_database_that_is_behind_its_own_record_is_named(tmp_path: Path, ann: Replica) -> None:
    twin = Forger(ann)
    twin.say("more")
    done = ann.merge(twin.record())
    assert "an older database was put back" in done.problem
    assert "`tripod restore`" in done.problem


def test_our_name_under_another_key_is_refused(tmp_path: Path, ann: Replica) -> None:
    twin = Forger(ann)
    twin.say("more")
    twin.key = SigningKey(twin.key.name, os.urandom(32))
    assert "and not its key" in ann.merge(twin.record()).problem


# Who speaks for a replica -----------------------------------------------------------------------


def test_a_key_that_comes_back_from_another_line_is_not_the_replicas(
    tmp_path: Path, ann: Replica
) -> None:
    """Whoever has a replica's record, and not its key, adds to it and names a key of their own."""
    bob = Replica(tmp_path / "bob", "bob", ann.team_id)
    bob.say("I am Bob.")
    assert ann.merge(bob).problem == ""
    thief = Forger(bob)
    thief.key = SigningKey(bob.origin, os.urandom(32))
    thief.say("I am Bob, too.", handle="bob", actor="bob")
    other = SigningKey("example.org/other", os.urandom(32))
    thief.add("key.set", {"vkey": other.verifier().format()}, ledger=other.name)
    thief.add("key.set", {"vkey": thief.key.verifier().format()})
    size = ann.size()
    done = ann.merge(thief.record())
    assert "its seal is not by the key on record" in done.problem
    assert (done.taken, ann.size()) == (0, size)
    bob.say("Still Bob.")
    assert ann.merge(bob).problem == ""
    assert ann.findings() == []


@pytest.mark.parametrize("front", ["ann\x1b[2J", "ann\u202e", "ann\n", "ann/../bob", "ann bob", ""])
def test_a_name_that_is_none_of_a_replica_is_refused(ann: Replica, eve: Forger, front: str) -> None:
    """Its digits are those of the key, and what stands before them would be shown."""
    name = f"{front}-{eve.name[-16:]}"
    eve.add("team.named", {"team": ann.team_id, "replica": name}, id=f"replica-{name}")
    done = ann.merge(eve.record())
    assert (done.taken, done.replica) == (0, "")
    assert "it calls itself" in done.problem
    assert "\x1b" not in done.problem


# Who is shown -----------------------------------------------------------------------------------


def test_a_message_of_one_is_not_shown_as_anothers(ann: Replica, eve: Forger) -> None:
    ann.say("I am Ann.")
    eve.say("So am I.", handle="ann", actor="eve")
    eve.say("So am I.", handle="ann", actor="tripod")
    assert ann.merge(eve.record()).problem == ""
    assert ann.says("So am I.") == 2 * [f"ann@{eve.name}: So am I."]
    assert ann.findings() == []


def test_a_signature_is_none_for_another_handle(ann: Replica, eve: Forger) -> None:
    """Zoe signs what shows Ann as speaking: both have a key here."""
    with ann.team() as team:
        actors.enrol_actor(team, "ann", keys.passphrase_from_file)
        vkey = actors.enrol_actor(team, "zoe", keys.passphrase_from_file)
    zoe = keys.load_key(actor_key_path(vkey), "zoe", keys.passphrase_from_file)
    eve.say("I am Ann.", handle="ann", actor="zoe", signer=zoe)
    for source in ("ann", "zoe", "scribe"):
        told = event(f"7-{source}-x-1.event", source=source, payload={"text": source})
        eve.add("bus.published", told, "bus", actor="zoe", signer=zoe)
    assert ann.merge(eve.record()).problem == ""
    assert ann.says("I am Ann.") == [f"ann@{eve.name}: I am Ann."]
    with ann.team() as team:
        rows = team.store.tables.execute("SELECT source FROM events ORDER BY seq DESC LIMIT 3")
        sources = [source for (source,) in rows][::-1]
    assert sources == [f"ann@{eve.name}", "zoe", "scribe"]


@pytest.mark.parametrize("what", ["text", "handle", "kind"])
def test_an_id_of_an_observed_piece_hides_no_other_piece(
    tmp_path: Path, ann: Replica, eve: Forger, what: str
) -> None:
    """Eve gives an entry of hers the id that Carl's piece has."""
    carl = Forger(Replica(tmp_path / "carl", "carl", ann.team_id))
    carl.say("Mind the gap.", handle="carl", id="obs-1")
    if what == "kind":
        eve.add("chat.created", {"channel": "live"}, "chat/live", id="obs-1")
    else:
        text = "Mind the dog." if what == "text" else "Mind the gap."
        eve.say(text, handle="carl" if what == "text" else "eve", id="obs-1")
    for one in (eve, carl):
        assert ann.merge(one.record()).problem == ""
    assert ann.says("Mind the gap.")[-1:] == [f"carl@{carl.name}: Mind the gap."]
    twin = Forger(Replica(tmp_path / "twin", "twin", ann.team_id))
    twin.say("Mind the gap.", handle="carl", id="obs-1")
    assert ann.merge(twin.record()).problem == ""
    assert len(ann.says("Mind the gap.")) == (2 if what == "handle" else 1)
    assert ann.findings() == []
