"""Replicas of one team in folders, that exchange their records as plain exports."""

import atexit
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest import mock

from tripod.bus import events
from tripod.chat import writer as chat
from tripod.decisions import writer as decisions
from tripod.ledger import (
    Draft,
    Entry,
    RawEntry,
    Tree,
    commit_body,
    entry_leaf_hash,
    format_canonical,
    header_auth,
    parse_header,
)
from tripod.ledger.actors import actor_statement, sign_actor_statements
from tripod.ledger.kinds.peers import PEER_ENTRY, TEAM_NAMED
from tripod.ledger.locator import database_of
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import Note, SigningKey, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal
from tripod.peers.merge import merge_record
from tripod.peers.replica import name_team, replica_name
from tripod.peers.roster import Merged, MergeLimits
from tripod.projections.chat.format import parse_line, split_chat_file
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import keys
from tripod.trust.export import export
from tripod.trust.seal import seal
from tripod.verify.export import ExportFiles, FileError
from tripod.verify.run import verify

__all__ = ["Forger", "MemoryFiles", "Replica", "copied", "peers_of", "record_of"]


@cache
def _begun(origin: str, handle: str, team_id: str) -> tuple[str, str, str, str]:
    """A folder where a replica has just begun, its home, and the names of its team and itself."""
    place = mkdtemp(prefix="tripod-begun-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    folder, home = f"{place}/folder", f"{place}/home"
    os.mkdir(folder)
    with mock.patch.dict(os.environ, TRIPOD_HOME=home):
        made = adoption.init(folder, project="shop", origin=origin, scribe=handle, key=True)
        with Team(made.root) as team:
            if team_id:
                name = replica_name(handle, keys.sealing_key(team.store) or "")
                draft = TEAM_NAMED.draft({"team": team_id, "replica": name})
                team.append_apart(lambda: [draft])
            return folder, home, *name_team(team, handle)


class Replica:
    """One clone's team: it acts, exports its record, and merges the exports of others."""

    def __init__(self, folder: Path, handle: str, team_id: str = "") -> None:
        """Begin it; without a ``team_id`` it is the first of its team.

        In this process all of one name begin alike, with one key.
        """
        self.folder, self.handle = folder, handle
        self.origin = f"example.org/{folder.name}"
        self.root = f"{folder}/.nbs"
        begun, home, self.team_id, self.name = _begun(self.origin, handle, team_id)
        shutil.copytree(begun, folder, dirs_exist_ok=True)
        shutil.copytree(home, os.environ["TRIPOD_HOME"], dirs_exist_ok=True)

    @contextmanager
    def team(self) -> Iterator[Team]:
        """The team, opened anew as each command does it."""
        with Team(self.root) as team:
            yield team

    def append(self, *drafts: Draft, team: Team | None = None) -> None:
        """Append whatever is given, sound or not."""
        if team is None:
            with self.team() as opened:
                self.append(*drafts, team=opened)
            return
        team.append_apart(lambda: drafts)

    def say(self, text: str, channel: str = "live") -> None:
        with self.team() as team:
            if not os.path.exists(f"{self.root}/chat/{channel}.chat"):
                chat.create(team, channel, actor=self.handle)
            chat.send(team, channel, self.handle, text)

    def decide(self, title: str, refs: Sequence[str] = ()) -> None:
        with self.team() as team:
            request = decisions.DecisionRequest(title, [self.handle], "It works.", refs=tuple(refs))
            decisions.log(team, request)

    def publish(self, type_: str, payload: str = "") -> str:
        with self.team() as team:
            return events.publish(team, self.handle, type_, "normal", payload)

    def redact(self, pattern: str) -> None:
        with self.team() as team:
            asked = redaction.RedactionRequest(match=pattern, reason="asked", by=self.handle)
            redaction.redact(team, asked)

    def entries(self, *kinds: str) -> list[Entry]:
        with self.team() as team:
            return list(team.store.read(kinds=kinds))

    def says(self, text: str, channel: str = "live") -> list[str]:
        """The messages of a chat that hold a text, as its file shows them."""
        file = split_chat_file(Path(self.root, "chat", f"{channel}.chat").read_bytes())
        lines = [parse_line(line) for line in file.lines] if file else []
        return [f"{one.handle}: {one.text}" for one in lines if one and text in one.text]

    def files(self) -> list[Path]:
        """Every file of it, the ledger's too."""
        apart = Path(database_of(self.root)).parent
        return [one for at in {apart, Path(self.root)} for one in at.rglob("*") if one.is_file()]

    def findings(self) -> list[str]:
        """The failures that the verifier names; a decision without a reference is none of them."""
        said = [found for one in verify(self.root).outcomes for found in one.findings]
        failures = [found for found in said if found.severity == "failure"]
        return [str(found) for found in failures if found.check != "chat-refs-resolve"]

    def record(self, folder: Path | None = None) -> ExportFiles:
        """Seal, and export the record: into its own folder, which grows, or into another."""
        to = folder or self.folder / "export"
        with self.team() as team:
            note = seal(team, "asked")
            assert note is not None
        export(database_of(self.root), str(to), note, bodies=True)
        return ExportFiles(str(to))

    def merge(
        self,
        other: "Replica | ExportFiles",
        *,
        limits: MergeLimits | None = None,
        dry_run: bool = False,
    ) -> Merged:
        """Merge another's record as it is now, or that in a folder."""
        files = other.record() if isinstance(other, Replica) else other
        with self.team() as team:
            return merge_record(team, files, limits=limits or MergeLimits(), dry_run=dry_run)

    def size(self) -> int:
        with self.team() as team:
            return team.store.size

    def kept(self) -> dict[tuple[str, int], bytes]:
        """Everything here, by who recorded it where: our own headers and those of peers."""
        found = {}
        with self.team() as team:
            for entry in team.store.read():
                if entry.kind != PEER_ENTRY.name:
                    found[parse_header(entry.header).ledger, entry.seq] = entry.header
                    continue
                header = team.source.content(entry.data["header"])
                key = entry.data["origin"], entry.data["seq"]
                assert key not in found, "it is here twice"
                found[key] = header
        return found

    def own(self, size: int = 2**53) -> dict[tuple[str, int], bytes]:
        """What it recorded itself among its first ``size`` entries."""
        mine = self.kept().items()
        return {key: header for key, header in mine if key[0] == self.origin and key[1] < size}


def peers_of(folder: Path, *handles: str) -> list[Replica]:
    """Replicas of one team, in folders beside each other."""
    made: list[Replica] = []
    for handle in handles:
        made.append(Replica(folder / handle, handle, made[0].team_id if made else ""))
    return made


def copied(files: ExportFiles, to: Path) -> ExportFiles:
    """A copy of a record, to be altered or kept."""
    shutil.copytree(files.directory, to)
    return ExportFiles(str(to))


class MemoryFiles(ExportFiles):
    """A record in memory."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.directory, self.bodies = files, "memory", True

    def read(self, path: str, limit: int) -> bytes:
        data = self.files.get(path)
        if data is None:
            raise FileError(f"{path} is missing")
        if len(data) > limit:
            raise FileError(f"{path} has {len(data)} bytes, more than {limit}: it is not read")
        return data


def record_of(
    rows: Sequence[RawEntry], blobs: Iterable[bytes], key: SigningKey, size: int | None = None
) -> MemoryFiles:
    """The record of entries, whatever they hold, under a seal by ``key``."""
    rows = rows[:size]
    tree, levels = Tree(), defaultdict[int, list[bytes]](list)
    for row in rows:
        tree.append(entry_leaf_hash(row.header))
    for level, _, digest in tree.full:
        levels[level].append(digest)
    files = {tiles.bundle_blob_path(sha256(blob).hexdigest()): blob for blob in blobs}
    for tile in tiles.tiles_of(len(rows)):
        first = tile.number * tiles.WIDTH
        if tile.level:
            hashes = levels[tile.level][first : first + tile.width]
            files[tiles.format_tile_path(tile)] = b"".join(hashes)
        else:
            part = rows[first : first + tile.width]
            files.update(tiles.bundle_files(tile._replace(level=-1), part, bodies=True))
    made = Seal(key.name, len(rows), tree.root())
    files[tiles.SEAL] = format_note(Note(format_seal(made), (sign_seal(made, key),)))
    return MemoryFiles(files)


class Forger:
    """A peer that records what it likes, and seals it with its own key."""

    def __init__(self, replica: Replica) -> None:
        self.name = replica.name
        with replica.team() as team:
            self.rows = list(team.store.raw())
            vkey = keys.sealing_key(team.store) or ""
            self.blobs = [
                blob
                for row in self.rows
                for digest in tiles.bundle_blobs(row.body)
                if (blob := team.store.blob(bytes.fromhex(digest))) is not None
            ]
        self.key = keys.load_key_in_force(vkey, lambda: None)

    def add(
        self,
        kind: str,
        body: dict[str, Any],
        stream: str = "ledger",
        *,
        auth: bytes | None = None,
        names: str | None = None,
        signer: SigningKey | None = None,
        **header: object,
    ) -> int:
        """One more entry, linked as it should be but for what ``header`` says; give its number.

        ``auth`` is its signature record, ``names`` what its header says of one instead. ``signer``
        signs it as if there were no ``cause`` in the header.
        """
        seq, salt = len(self.rows), os.urandom(32)
        data = format_canonical(body | {"v": 1})
        value: dict[str, Any] = {
            "actor": "eve",
            "at": "2026-01-01T00:00:00.000000Z",
            "body": commit_body(salt, kind, data),
            "id": f"entry-{seq}",
            "kind": kind,
            "ledger": self.key.name,
            "prev": entry_leaf_hash(self.rows[-1].header).hex(),
            "seq": seq,
            "stream": stream,
            "v": 1,
        }
        if signer is not None:
            stated = value | {name: said for name, said in header.items() if name != "cause"}
            auth = sign_actor_statements([actor_statement(dict(sorted(stated.items())))], signer)
        if auth is not None or names is not None:
            value["auth"] = names or header_auth(auth or b"")
        raw = format_canonical(value | header)
        self.rows.append(RawEntry(seq, value["id"], kind, stream, raw, salt, data, auth))
        return seq

    def say(self, text: str = "hello", handle: str = "eve", **header: object) -> int:
        body = {"channel": "live", "index": 0, "handle": handle, "time": 7, "text": {"text": text}}
        return self.add("chat.sent", body, "chat/live", **header)  # type: ignore[arg-type]

    def part(self, origin: str, team_id: str, handle: str) -> None:
        """Go on as a replica of its own, with a new key."""
        tree = Tree()
        for row in self.rows:
            tree.append(entry_leaf_hash(row.header))
        left, self.key = self.key.name, SigningKey(origin, os.urandom(32))
        vkey = self.key.verifier().format()
        said = {"origin": left, "size": tree.size, "root": tree.root().hex(), "reason": "copy"}
        self.add("ledger.forked-from", said)
        self.add("key.set", {"vkey": vkey})
        self.name = replica_name(handle, vkey)
        self.add("team.named", {"team": team_id, "replica": self.name})

    def record(self, size: int | None = None) -> MemoryFiles:
        """Its record, sealed."""
        return record_of(self.rows, self.blobs, self.key, size)
