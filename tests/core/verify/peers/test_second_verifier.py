"""The second verifier judges the records of a team's replicas, exported as folders."""

import importlib.util
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from clones import begin, fetch, kept, merge, record, rewrite, say
from git_repo import Git
from peering import Forger, Replica, copied, peers_of

from tripod.bus import events
from tripod.decisions import writer
from tripod.errors import TripodError
from tripod.ledger import Draft, commit_body, format_canonical
from tripod.ledger.actors import actor_statement, sign_actor_statements
from tripod.ledger.kinds.merged import KeptEntry, peer_entry_draft
from tripod.ledger.kinds.peers import PEER_ADDED, PEER_MERGED, Place
from tripod.ledger.kinds.redaction import REDACTED
from tripod.ledger.tlog.note import Note, SigningKey, VerifierKey, format_note, sign
from tripod.ledger.tlog.seal import Seal, format_seal, read_seal, sign_seal
from tripod.peers import merge as merging
from tripod.peers.places import Places
from tripod.peers.replica import replica_name
from tripod.projections.erasure import tombstone
from tripod.recovery.redaction import erase_within
from tripod.trust import actors, keys
from tripod.trust.seal import rotate_sealing_key
from tripod.trust.signature import actor_key_path

TOOL = Path(__file__).resolve().parents[4] / "tools/audit_export.py"
LATE = "2999-01-01T00:00:00.000000Z"


@pytest.fixture
def clone(tmp_path: Path) -> Git:
    """A clone with the records of Ann and Bob, who merged each other."""
    ann, ann_name, _ = begin(tmp_path / "ann", "example.com/ann")
    bob, bob_name, _ = begin(tmp_path / "bob", "example.com/bob")
    kept(ann, tmp_path / "before.db")
    say(ann, "Tea!")
    say(ann, "x" * 20_000)
    record(ann, ann_name)
    fetch(bob, ann)
    merge(bob, f"refs/tripod-remotes/ann/{ann_name}")
    record(bob, bob_name)
    fetch(ann, bob)
    merge(ann, f"refs/tripod-remotes/bob/{bob_name}")
    record(ann, ann_name)
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"cafe\n")
    fetch(clone, ann, bob)
    return clone


def folders(git: Git, to: Path) -> list[str]:
    """The record of each ref as a folder, made by git alone."""
    made = []
    for ref in git("for-each-ref", "--format=%(refname)", "refs/tripod-remotes").split():
        folder = to / ref.rpartition("/")[2]
        folder.mkdir(parents=True)
        archive = to / "record.tar"
        git("archive", "--output", str(archive), ref)
        subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True)
        made.append(str(folder))
    return made


def audit(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(TOOL), *words], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def loaded() -> Any:
    """The tool as a module."""
    spec = importlib.util.spec_from_file_location("audit_export", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def test_records_of_replicas_agree(clone: Git, tmp_path: Path) -> None:
    made = folders(clone, tmp_path / "records")
    assert len(made) == 2
    for words in (made, made[:1], made[1:]):
        code, said = audit(*words)
        assert (code, said.count(": 0 wrong")) == (0, len(words)), said


def test_a_replica_that_was_rewritten_contradicts_what_its_peer_keeps(
    clone: Git, tmp_path: Path
) -> None:
    ann = Git(tmp_path / "ann", made=False)
    name = next((ann.root / ".git/refs/tripod").iterdir()).name
    rewrite(ann, name, tmp_path / "before.db")
    fetch(clone, ann)
    made = folders(clone, tmp_path / "records")
    for words in ([made[0]], [made[1]]):
        assert audit(*words)[0] == 0
    code, said = audit(*made)
    assert code == 1
    assert "example.com/ann itself has it" in said
    assert "example.com/ann has another root: a fork" in said


# A replica whose owner puts into it what its peers did not say ------------------------------------


class Pair(NamedTuple):
    """Replicas as folders: Ann forges hers, Bob's is sound."""

    ann: Replica
    bob: Replica
    folder: Path

    def added(self, key: VerifierKey | None = None, name: str = "") -> Draft:
        vkey = self.bob_key().format() if key is None else key.format()
        return PEER_ADDED.draft(
            {
                "origin": self.bob.origin,
                "replica": name or self.bob.name,
                "key": vkey,
                "how": "first-use",
            }
        )

    def bob_key(self) -> VerifierKey:
        with self.bob.team() as team:
            return VerifierKey.parse(keys.sealing_key(team.store) or "")

    def merged(self, note: bytes = b"") -> Draft:
        note = note or self.bob.record().seal_note()
        seal = read_seal(note)
        return PEER_MERGED.draft(
            {
                "origin": seal.origin,
                "size": seal.size,
                "root": seal.root.hex(),
                "seal": note,
            }
        )

    def kept(self, place: Place | None = None, **changed: Any) -> Draft:
        """Bob's newest message as Ann keeps it."""
        one = self.bob.entries("chat.sent")[-1]
        found = KeptEntry(self.bob.origin, one.seq, one.header, one.auth, one.salt, one.body)
        shown: Place = {"actor": f"bob@{self.bob.name}", "index": 1} if place is None else place
        keep = changed.pop("keep", None)
        return peer_entry_draft(found._replace(**changed), "chat/live", place=shown, keep=keep)

    def audit(self, *, alone: bool = False) -> tuple[int, str]:
        for one in (self.ann,) if alone else (self.ann, self.bob):
            one.record()
        return audit(*(f"{one.folder}/export" for one in (self.ann, self.bob)[: 2 - alone]))


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Bob said something, and Ann took nothing of it yet."""
    ann, bob = peers_of(tmp_path, "ann", "bob")
    ann.say("Tea!")
    bob.say("Milk!")
    return Pair(ann, bob, tmp_path)


def test_what_was_really_merged_is_sound(pair: Pair) -> None:
    pair.bob.redact("Milk")
    pair.bob.say("Cream!")
    assert pair.ann.merge(pair.bob).problem == ""
    pair.bob.redact("Cream")
    assert pair.ann.merge(pair.bob).erased > 0
    for alone in (False, True):
        code, said = pair.audit(alone=alone)
        assert code == 0, said
    # What she had taken of it was erased here, and says what Bob says.
    assert {one.data["kind"] for one in pair.ann.entries("redacted")} == {"peer.entry"}


def made_up(pair: Pair, seq: int) -> Draft:
    """An entry of Bob's that he did not make."""
    text = {"channel": "live", "index": 0, "handle": "bob", "time": 7, "text": {"text": "Rum!"}}
    body, salt = format_canonical({**text, "v": 1}), bytes(32)
    header = {
        "actor": "bob", "at": "2026-01-01T00:00:00.000000Z", "id": f"made-{seq}", "v": 1,
        "body": commit_body(salt, "chat.sent", body), "kind": "chat.sent",
        "ledger": pair.bob.origin, "prev": "00" * 32, "seq": seq, "stream": "chat/live",
    }  # fmt: skip
    kept = KeptEntry(pair.bob.origin, seq, format_canonical(header), None, salt, body)
    place: Place = {"actor": f"bob@{pair.bob.name}", "index": 2}
    return peer_entry_draft(kept, "chat/live", place=place)


def test_an_entry_behind_all_that_its_maker_sealed(pair: Pair) -> None:
    assert pair.ann.merge(pair.bob).problem == ""
    seq = pair.bob.size() - 1  # the seal covers all before its own entry
    pair.ann.append(made_up(pair, seq))
    text = f"no seal of {pair.bob.origin} covers its entry {seq}"
    code, said = pair.audit()
    assert (code, text in said) == (1, True), said
    code, said = pair.audit(alone=True)
    assert (code, f"could not judge: entry {pair.ann.size() - 2}: {text}" in said) == (3, True)


def test_entries_that_are_said_to_be_merged_and_are_not_here(pair: Pair) -> None:
    pair.ann.append(pair.added(), pair.merged())
    size = pair.bob.size() - 1
    code, said = pair.audit()
    assert code == 1
    assert f"says that the first {size} entries of {pair.bob.origin} are here, and {size}" in said


def test_an_entry_that_is_left_out_before_others(pair: Pair) -> None:
    """No head says that all is here, and what came later is."""
    seq = pair.bob.entries("chat.sent")[-1].seq
    pair.ann.append(pair.added(), pair.kept())
    code, said = pair.audit()
    assert (code, f"are here, and {seq} are not: 0, 1, 2, ..." in said) == (1, True), said


def test_what_a_peer_said_stands_in_the_file_of_its_name(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision of Bob's is not in the log that is read, a message not in the chat."""

    def local(self: Any, holds: str, name: str, origin: str, _: Any) -> str:
        end = ".md" if holds == "scribe" else ""
        return str(self._flat(origin, *name.removesuffix(end).split("/"))) + end

    pair.bob.decide("Milk")
    monkeypatch.setattr(Places, "_local", local)
    assert pair.ann.merge(pair.bob).problem == ""
    code, said = pair.audit()
    kinds = ("chat.created", "chat.sent", "log.begun", "decision.logged")
    text = "it is shown as what its maker did not say, or in another's place"
    assert (code, said.count(text)) == (1, len(pair.bob.entries(*kinds))), said


def test_the_long_text_of_a_peer_is_kept_with_its_entry(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.bob.say("long " * 4000)
    monkeypatch.setattr(
        merging,
        "peer_entry_draft",
        lambda *said, **more: peer_entry_draft(*said, **more | {"blobs": None}),
    )
    with suppress(TripodError):  # no file of hers can show it
        pair.ann.merge(pair.bob)
    code, said = pair.audit()
    assert (code, said.startswith("blobs/")) == (1, True), said


def test_a_head_by_no_key_that_is_on_record(pair: Pair) -> None:
    pair.ann.append(pair.merged())
    code, said = pair.audit(alone=True)
    assert (code, "that is on record made its seal" in said) == (1, True), said


@pytest.mark.parametrize(
    "place",
    [
        {},
        {"actor": "bob"},
        {"actor": "bob@x-0123456789abcdef"},
        {"actor": "carl"},
        {"actor": "BOB", "handle": "bob"},
        {"actor": "BOB", "source": "BOB"},
        {"actor": "ann@BOB"},
    ],
)
def test_an_entry_that_is_shown_as_one_by_somebody_else(pair: Pair, place: Place) -> None:
    """A Bob has a key here; another Bob, in his replica, wrote without it."""
    with pair.ann.team() as team:
        actors.enrol_actor(team, "bob", keys.passphrase_from_file)
    name = f"bob@{pair.bob.name}"
    shown: Any = {
        part: name if said == "BOB" else said.replace("BOB", pair.bob.name)
        for part, said in place.items()
        if isinstance(said, str)
    }
    shown["index"] = 1
    pair.ann.append(pair.added(), pair.kept(shown), pair.merged())
    code, said = pair.audit()
    assert (code, "it is shown as somebody's of" in said) == (1, True), said


@pytest.mark.parametrize("is_revoked_before", [True, False])
def test_a_key_vouches_for_what_was_merged_before_it_was_revoked(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, *, is_revoked_before: bool
) -> None:
    with pair.ann.team() as team:
        vkey = actors.enrol_actor(team, "zoe", keys.passphrase_from_file)
    zoe = keys.load_key(actor_key_path(vkey), "zoe", keys.passphrase_from_file)
    eve = Forger(pair.bob)
    eve.say("I am Zoe.", handle="zoe", actor="zoe", signer=zoe)

    def revoke() -> None:
        with pair.ann.team() as team:
            actors.revoke_actor(team, "zoe", "Lost", keys.passphrase_from_file)

    if is_revoked_before:
        revoke()
    with monkeypatch.context() as patched:
        patched.setattr("tripod.peers.merge._Taking._keys_of", lambda *_: [zoe.verifier()])
        assert pair.ann.merge(eve.record()).problem == ""
    if not is_revoked_before:
        revoke()
    pair.ann.record()
    code, said = audit(f"{pair.ann.folder}/export")
    assert (code, "it is shown as somebody's of" in said) == (is_revoked_before,) * 2, said


PLACES: list[tuple[str, dict[str, Any]]] = [
    ("chat.sent", {"index": 0}),
    ("chat.sent", {"index": 9}),
    ("chat.sent", {"size": 3}),
    ("decision.logged", {"number": 9}),
    ("decision.logged", {"made": "cid-0123456789abcdef/D-7"}),
    ("decision.logged", {"id": "D-7"}),
    ("decision.logged", {"supersedes": "D-1"}),
    ("bus.acked", {"event": 3}),
    ("seal.made", {"index": 9}),
]


def test_each_member_of_a_place_is_found_again(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.ann.decide("Milk")
    pair.ann.publish("done")
    assert pair.bob.merge(pair.ann).problem == ""
    with pair.bob.team() as team:
        events.ack_all(team)
        first = team.store.tables.execute("SELECT id FROM pieces").fetchone()[0]
        writer.log(team, writer.DecisionRequest("Rum", ["bob"], "Good.", supersedes=first))
    pair.bob.publish("idle")
    with pair.bob.team() as team:
        events.ack(team, team.store.tables.execute("SELECT max(name) FROM events").fetchone()[0])
    assert pair.ann.merge(pair.bob).problem == ""
    pair.ann.record()
    pair.bob.record()
    folders = [f"{one.folder}/export" for one in (pair.ann, pair.bob)]
    assert audit(*folders)[0] == 0, audit(*folders)
    tool = loaded()
    for kind, change in PLACES:
        found = tool.Audit(folders[0])
        found.entries()
        assert found.wrong == 0
        placed = [one for one in found.placed.values() if one.inner["kind"] == kind]
        assert placed, kind
        one = placed[-1]
        assert found.stands(one)
        assert not found.stands(one._replace(place={**one.place, **change})), (kind, change)


def test_an_entry_that_another_is_shown_for(pair: Pair) -> None:
    """It would be hidden."""
    pair.ann.append(pair.added(), pair.kept({"same": 3}))
    code, said = pair.audit()
    assert (code, "entry 3, which is shown for it, is another" in said) == (1, True), said


@pytest.mark.parametrize("is_erased", [True, False])
def test_a_body_that_its_maker_erased_otherwise(pair: Pair, is_erased: bool) -> None:
    one = pair.bob.entries("chat.sent")[-1]
    keep = {**one.data, "text": {"text": "Rum!"}}
    draft = pair.kept(salt=None, body=None, keep=keep)
    if is_erased:
        pair.bob.redact("Milk")
    pair.ann.append(pair.added(), draft)
    text = f"{pair.bob.origin} does not say that this stands for its entry {one.seq}"
    code, said = pair.audit()
    assert (code, text in said) == (1, True), said
    assert pair.audit(alone=True)[0] == 3


def test_an_entry_that_is_erased_here_and_not_by_its_maker(pair: Pair) -> None:
    """Its header is then what the entry says that erased it."""
    assert pair.ann.merge(pair.bob).problem == ""
    (seq,) = (
        entry.seq
        for entry in pair.ann.entries("peer.entry")
        if '"chat.sent"' in entry.data["header"].get("text", "")
    )
    with pair.ann.team() as team, team.act() as act:
        entry = team.store.entry(seq)
        assert entry is not None
        inner = pair.bob.entries("chat.sent")[-1].data | {"time": 8}
        keep = tombstone(entry.kind, entry.data | {"keep": tombstone("chat.sent", inner)})
        said: Any = {"seq": seq, "kind": entry.kind, "reason": "so", "by": "tripod", "keep": keep}
        erase_within(act, [REDACTED.draft(said, cause=entry.id)])
    code, told = pair.audit()
    assert (code, "does not say that this stands for its entry" in told) == (1, True), told


def test_a_second_key_for_one_replica(pair: Pair) -> None:
    """Ann knows Bob by a key that she made, and what he says by it."""
    key = SigningKey(pair.bob.origin, sha256(b"ann").digest())
    seal = Seal(pair.bob.origin, 3, bytes(32))
    note = format_note(Note(format_seal(seal), (sign_seal(seal, key),)))
    name = replica_name("bob", key.verifier().format())
    text = "by another name or key than it has"
    pair.ann.append(pair.added(key.verifier(), name), pair.merged(note))
    code, said = pair.audit()
    assert (code, text in said) == (1, True), said


def test_a_key_that_its_maker_never_had(pair: Pair) -> None:
    """A rotation that he did not make covers nothing of what he did not say."""
    assert pair.ann.merge(pair.bob).problem == ""
    key = SigningKey(pair.bob.origin, sha256(b"ann").digest())
    seal = Seal(pair.bob.origin, 1000, bytes(32))
    note = format_note(Note(format_seal(seal), (sign_seal(seal, key),)))
    pair.ann.append(pair.added(key.verifier()), made_up(pair, 500), pair.merged(note))
    code, said = pair.audit()
    assert code == 1
    assert f"no key of {pair.bob.origin} that is on record made its seal" in said
    assert f"no seal of {pair.bob.origin} covers its entry 500" in said


def test_a_key_that_was_rotated(pair: Pair) -> None:
    assert pair.ann.merge(pair.bob).problem == ""
    older = copied(pair.bob.record(), pair.folder / "older")
    with pair.bob.team() as team:
        rotate_sealing_key(team, keys.passphrase_from_file, None)
    pair.bob.say("Cocoa!")
    assert pair.ann.merge(pair.bob).problem == ""
    assert pair.audit()[0] == 0
    # With the record from before, nobody can say so.
    code, said = audit(f"{pair.ann.folder}/export", older.directory)
    assert (code, "or its export is too old" in said) == (3, True), said
    # A key that the one before it did not sign is none.
    eve = Forger(pair.bob)
    vkey = SigningKey(pair.bob.origin, bytes(32)).verifier().format()
    eve.add("key.set", {"vkey": vkey}, at=LATE)
    code, said = audit(written(eve, pair.folder / "eve"))
    assert (code, "a key for which the key before it does not vouch" in said) == (1, True), said


@pytest.mark.parametrize("makers", ["n", "o", "on"])
def test_a_rotation_of_a_peer_is_signed_by_both_keys(makers: str) -> None:
    """Who keeps the entry may have made it up: the new key is then theirs, and no other."""
    tool, origin = loaded(), "example.org/bob"
    both = {one: SigningKey(origin, sha256(one.encode()).digest()) for one in "on"}
    vkeys = [key.verifier().format() for key in both.values()]
    told = [tool.read_key(vkey) for vkey in vkeys]
    about = "".join(f"{one}\n" for one in ("tripod key rotation", origin, *vkeys))
    note = format_note(Note(about, tuple(sign(about, both[one]) for one in makers))).decode()
    found = tool.Audit.follower(None, "it", origin, {"vkey": vkeys[1], "note": note}, told[:1])
    assert found == (told[1:] if makers == "on" else [])


@pytest.mark.parametrize("count", [1, 2])
def test_a_signature_is_by_its_key_and_over_its_entry(count: int) -> None:
    tool, key = loaded(), SigningKey("bob", sha256(b"bob").digest())
    other = SigningKey("bob", sha256(b"eve").digest())
    told = tool.read_key(key.verifier().format())
    heads: list[dict[str, Any]] = [
        {"actor": "bob", "at": LATE, "body": "00" * 32, "id": f"x-{n}", "kind": "chat.sent",
         "ledger": "example.org/bob", "prev": "00" * 32, "seq": n, "stream": "chat/live", "v": 1}
        for n in range(3)
    ]  # fmt: skip
    stated = [actor_statement(head) for head in heads[:count]]
    record, eve = (sign_actor_statements(stated, one) for one in (key, other))
    assert all(tool.signs(told, head, record) for head in heads[:count])
    assert not tool.signs(told, heads[2], record)
    assert not tool.signs(told, heads[0] | {"body": "11" * 32}, record)
    named = list(map(sha256, (actor_statement(heads[0]), actor_statement(heads[0]))))
    twice = b"".join(one.digest() for one in named)
    listed = format_canonical([one.hexdigest() for one in named])
    for bad in (
        eve,
        record[:5] + eve[5:69] + record[69:],  # under the ID of the key
        record[:1] + eve[1:5] + record[5:],
        bytes([3 - record[0]]) + record[1:],
        record + sha256(actor_statement(heads[2])).digest(),
        record + b"x",
        b"\x02" + record[1:5] + key.sign(listed) + twice,
        b"",
    ):
        assert not any(tool.signs(told, head, bad) for head in heads), bad


def test_an_entry_that_is_kept_with_another_signature_than_it_had(pair: Pair) -> None:
    pair.ann.append(pair.added(), pair.kept(auth=bytes(69)), pair.merged())
    code, said = pair.audit()
    assert (code, "not that entry of its peer" in said) == (1, True), said


def test_a_name_that_its_key_does_not_give_it(pair: Pair) -> None:
    eve = Forger(pair.bob)
    name = "eve-0123456789abcdef"
    eve.add(
        "team.named", {"team": pair.ann.team_id, "replica": name}, id=f"replica-{name}", at=LATE
    )
    code, said = audit(written(eve, pair.folder / "eve"))
    assert (code, "a name that its key does not give it" in said) == (1, True), said


def test_two_records_of_one_replica_that_contradict_each_other(pair: Pair) -> None:
    older = Forger(pair.bob)
    older.say("Wine!", handle="bob", actor="bob", at=LATE)
    pair.bob.say("Cream!")
    pair.bob.record()
    words = f"{pair.bob.folder}/export", written(older, pair.folder / "older")
    for one in words:
        assert audit(one)[0] == 0
    code, said = audit(*words)
    assert (code, "two exports of it contradict each other: a fork" in said) == (1, True), said


def test_what_a_copy_says_under_the_name_that_it_left_vouches_for_nothing(pair: Pair) -> None:
    """Eve has Bob's record, as all have, and not his key; Ann keeps what Eve says that he said."""
    assert pair.ann.merge(pair.bob).problem == ""
    eve = Forger(pair.bob)
    eve.say("Bob says so.", handle="bob", actor="bob", at=LATE)
    row = eve.rows[-1]
    eve.part("example.org/eve", pair.ann.team_id, "eve")
    pair.bob.say("Cream!")
    kept = KeptEntry(pair.bob.origin, row.seq, row.header, None, row.salt, row.body)
    place: Place = {"actor": f"bob@{pair.bob.name}", "index": 1}
    pair.ann.append(peer_entry_draft(kept, "chat/live", place=place))
    assert pair.audit()[0] == 1
    more = written(eve, pair.folder / "eve")
    code, said = audit(*(f"{one.folder}/export" for one in (pair.ann, pair.bob)), more)
    assert (code, f"not entry {row.seq} as {pair.bob.origin} itself has it" in said) == (1, True)


def test_a_record_that_is_shorter_than_what_was_merged(pair: Pair) -> None:
    """Its ref was put back, or it was not fetched: it cannot be judged by."""
    older = copied(pair.bob.record(), pair.folder / "older")
    pair.bob.say("Cream!")
    assert pair.ann.merge(pair.bob).problem == ""
    pair.ann.record()
    code, said = audit(f"{pair.ann.folder}/export", older.directory)
    assert (code, "its export has fewer: old, or cut off" in said) == (3, True), said


def test_of_several_exports_one_is_missing(pair: Pair) -> None:
    """The remote removed it: what the others say that it recorded is held against nothing."""
    assert pair.ann.merge(pair.bob).problem == ""
    assert pair.audit()[0] == 0
    cid = Replica(pair.folder / "cid", "cid", pair.ann.team_id)
    cid.record()
    code, said = audit(*(f"{one.folder}/export" for one in (pair.ann, cid)))
    assert code == 3, said
    assert f"could not judge: {pair.ann.origin} keeps entries of ['{pair.bob.origin}']" in said


def written(forger: Forger, to: Path) -> str:
    """The record of a forger as a folder."""
    for path, data in forger.record().files.items():
        place = to / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return str(to)
