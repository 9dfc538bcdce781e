#!/usr/bin/env python3
"""Audit exports of ledgers: one file, the standard library, nothing to install.

    python3 audit_export.py DIRECTORY... [--key VKEY]...

It shares no code with the program that wrote the export. Read it in an hour, then believe it:
1. `checkpoint` is a signed note (C2SP signed-note, tlog-checkpoint): origin, size, root. One of the
   keys given must have signed it, or, where none is given, the key that the entries set last.
2. `tile/entries/` holds the entries, `tile/0/`, `tile/1/`, ... the hashes of their Merkle tree
   (RFC 6962, C2SP tlog-tiles). All of them must fit each other and the root.
3. Every entry is a header in canonical JSON: numbered, linked by `prev` to the one before, of this
   log (a restored copy goes on under another name), not dated back, no id twice, no cause missing.
4. `bodies/` (may be missing) holds a line for each entry: the body and salt to which its header
   commits, or nothing where a later entry says so, and `blobs/` every blob that a body names.
5. There too lies the record of a signed entry, which its header names. From `actor.enrolled` to
   `actor.revoked` the key of an actor signs all that the actor does, but for what was observed.
6. A `peer.entry` keeps an entry of another replica of the team: its header says which, and commits
   to the content and the signature beside it. It is shown as somebody's of that replica, or as the
   actor's whose key here signed it, in the file of its name, on the next line, under the next
   number and free id, and as superseding or acknowledging what its maker meant. A `peer.merged` is
   a head of a replica, by the first key on record, or one that an entry of that replica and the key
   before it vouch for.
7. Where that replica's export is given, too, it is known here by its own name and key, and has that
   entry, that head, and for an entry without content the `redacted` that says what stands for it.
   All of its own entries below the newest head or kept entry are kept (`git archive REF | tar -x`
   makes such a folder of the ref of each replica). Of several exports none may be missing.

What it does not judge: whether a body fits its kind, kept sessions (`evidence/`), a team's rules.
Exit: 0 nothing wrong, 1 something is wrong, 2 usage, 3 could not judge (no export, no key, or not
the export of a replica, or one that is too old, by which another one is to be judged).
"""

import argparse
import base64
import hashlib
import json
import os
import re
import sys
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple

HASH = re.compile("[0-9a-f]{64}")
WORD = "[^\\s+\\x00-\\x1f\\ud800-\\udfff]+"  # the name of a key or a log
NOTE = re.compile(rf"((?s:.*)\n)\n((?:\u2014 {WORD} \S+\n){{1,100}})")
SEAL = re.compile(rf"({WORD})\n(0|[1-9][0-9]{{0,18}})\n([A-Za-z0-9+/]{{43}}=)\n")
AT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
TEXTS = ("actor", "at", "body", "id", "kind", "ledger", "prev", "stream")
NEEDED, OPTIONAL = {**dict.fromkeys(TEXTS, str), "seq": int, "v": int}, {"auth": str, "cause": str}
LINE = rb'\{(?:"auth":"((?:[0-9a-f]{2})+)",)?(?:"body":(.+),"salt":"([0-9a-f]{64})",)?"seq":%d\}'
BLOB = re.compile(rb'\{"sha256":"([^"\\]*)","size":(0|[1-9][0-9]*)\}')  # escaped within a text
ACTOR = ("handle", "vkey", "number", "note", "reason")  # what a change of an actor's key says
UNSIGNED = ("at", "auth", "prev", "seq")  # what a header has beside the statement that is signed
SPEAKS = {"chat.sent": "handle", "bus.published": "source", "redacted": "by"}
SHARED = {*("bus.acked", "bus.acked-all", "bus.published", "chat.created", "chat.sent")}
SHARED |= {"chat.unreadable", "decision.logged", "log.begun", "log.noted", "pythia.assessed"}
NAMES = {"handle", "source"}  # what shows who speaks, beside the actor
PLACES = {"chat.created": "channel", "log.begun": "file", "log.noted": "file"}
PLACES |= {"chat.sent": "channel index handle", "chat.unreadable": "channel index"}
PLACES |= {"decision.logged": "file number id made supersedes chat_ref refs"}
PLACES |= {"bus.published": "name source size unseen", "bus.acked": "event name"}
PLACES |= {"bus.acked-all": "known source", "pythia.assessed": "event message"}
PLAIN = re.compile(r"(?!.*[0-9]{4})[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}")  # of no archive, in no folder
RENAMED = re.compile("(.+)-[0-9a-f]{16}(?:-[0-9]+)?[.]event")
TELLS = {"nbs-chat": "chat.sent", "nbs-chat-terminal": "chat.sent", "scribe": "decision.logged"}
written = partial(json.dumps, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
Json = dict[str, Any]
Signature = tuple[str, bytes, bytes]  # name, key id, and the signature (of a key: the key)


class Wrong(ValueError):  # noqa: N818 - it is what the auditor is looking for
    """Something that a sound export does not have."""


def sha(data: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
Point = tuple[int, int, int]  # x and y, both over the third


def add(p: Point, q: Point) -> Point:
    """Add two points."""
    z, x, y = p[2] * q[2] % P, p[0] * q[0] % P, p[1] * q[1] % P
    less, more = (z * z - D * x * y) % P, (z * z + D * x * y) % P
    crossed = (p[0] + p[1]) * (q[0] + q[1]) - x - y
    return z * less * crossed % P, z * more * (x + y) % P, less * more % P


def point_of(data: bytes) -> Point:
    """Read a point; ValueError where it is none."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x * pow(2, (P - 1) // 4, P) % P if (x * x - square) % P else x
    if y >= P or (x * x - square) % P or (not x and sign):
        raise ValueError("not a point")
    return (P - x if x & 1 != sign else x), y, 1


@lru_cache(1000)
def signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the key made this signature."""
    s, total = int.from_bytes(signature[32:], "little"), (0, 1, 1)
    with suppress(ValueError):
        base, key = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")), point_of(public)
        digest = hashlib.sha512(signature[:32] + public + message).digest()
        h, minus = int.from_bytes(digest, "little") % ORDER, (P - key[0], key[1], 1)
        for bit in reversed(range(253)):
            total = add(total, total)
            total = add(total, base) if s >> bit & 1 else total
            total = add(total, minus) if h >> bit & 1 else total
        x, y = (n * pow(total[2], P - 2, P) % P for n in total[:2])
        good = (y | (x & 1) << 255).to_bytes(32, "little") == signature[:32]
        return good and len(signature) == 64 and s < ORDER
    return False


def read(folder: str, path: str, limit: int) -> bytes:
    """The bytes of a regular file below a folder, no link on the way; at most ``limit``."""
    full = os.path.join(os.path.realpath(folder), path)
    with suppress(OSError):
        if os.path.realpath(full) == full and os.path.isfile(full):
            with open(full, "rb") as file:
                data = file.read(limit + 1)
            if len(data) <= limit:
                return data
    raise Wrong(f"{path}: no regular file of at most {limit} bytes that can be read")


def tile_path(number: int, count: int) -> str:
    """The path of a tile over so many hashes, below its level's folder: x001/x234/067."""
    *high, low = f"{number:,}".split(",")
    part = f".p/{count - 256 * number}" if count - 256 * number < 256 else ""
    return "".join(f"x{three:0>3}/" for three in high) + f"{low:0>3}{part}"


def unbase64(text: str) -> bytes:
    """Bytes from the one spelling of base64."""
    with suppress(ValueError):
        data = base64.b64decode(text, validate=True)
        if base64.b64encode(data).decode() == text:
            return data
    raise Wrong(f"not base64, or in another spelling: {text[:80]!r}")


def read_note(data: bytes, what: str) -> tuple[str, list[Signature]]:
    """Text and signatures (name, key id, bytes) of a signed note."""
    match = NOTE.fullmatch(data.decode("utf-8", "surrogateescape"))
    lines = [line.split(" ") for line in match[2].splitlines()] if match else []
    signatures = [(name, (raw := unbase64(word))[:4], raw[4:]) for _, name, word in lines]
    if match is None or not all(data for _, _, data in signatures):
        raise Wrong(f"{what}: not a text with signatures behind a blank line")
    return match[1], signatures


def read_key(text: str) -> Signature:
    """Name, key id and 32 bytes of a verifier key: name+id+base64(type 1, key)."""
    name, ident, payload = [*text.split("+", 2), "", ""][:3]
    data = unbase64(payload)
    good = hashlib.sha256(name.encode() + b"\n" + data).hexdigest()[:8]
    if not re.fullmatch(WORD, name) or len(data) != 33 or data[0] != 1 or ident != good:
        raise Wrong(f"not the public key of a log: {text[:80]!r}")
    return name, bytes.fromhex(ident), data[1:]


def spelled(key: Signature) -> str:
    """A verifier key as a text."""
    return f"{key[0]}+{key[1].hex()}+{base64.b64encode(bytes([1]) + key[2]).decode()}"


def signers(text: str, signatures: list[Signature], keys: list[Signature]) -> list[Signature]:
    """Which of the keys signed; a bad signature by one of them spoils the others."""
    ours = [(key, one[2]) for one in signatures for key in keys if key[:2] == one[:2]]
    if not all(signed(key[2], text.encode(), data) for key, data in ours):
        raise Wrong(f"of {text[:80]!r}: a signature is not by the key that it names")
    return [key for key, _ in ours]


def in_profile(value: Any, depth: int = 0) -> bool:
    """No floats, no null, keys of ASCII, integers below 2^53, at most 32 in each other."""
    if isinstance(value, dict | list):
        keys, inner = (value, value.values()) if isinstance(value, dict) else ((), value)
        good = depth < 32 and all(map(str.isascii, keys))
        return good and all(in_profile(one, depth + 1) for one in inner)
    return isinstance(value, str | int) and (type(value) is not int or abs(value) < 2**53)


def canonical(data: bytes, what: str) -> dict[str, Any]:
    """The value of canonical JSON (where a key stood twice, it would be written shorter)."""
    with suppress(ValueError, RecursionError):
        value = json.loads(data.decode("utf-8"))
        if isinstance(value, dict) and in_profile(value) and written(value).encode() == data:
            return value
    raise Wrong(f"{what}: no object in canonical JSON")


def read_header(data: bytes, what: str) -> dict[str, Any]:
    """A header as an object of exactly its fields."""
    head = canonical(data, what)
    if OPTIONAL | {name: type(value) for name, value in head.items()} != NEEDED | OPTIONAL:
        raise Wrong(f"{what}: not the fields of a header, or one of another type")
    hashes = [head[name] for name in ("body", "prev", "auth") if name in head]
    if head["v"] != 1 or not AT.fullmatch(head["at"]) or not all(map(HASH.fullmatch, hashes)):
        raise Wrong(f"{what}: not version 1, not a time, or a field that is no hash")
    return head


def kept_id(origin: str, seq: int) -> str:
    """The id of the entry that keeps an entry of a peer."""
    return "peer-" + sha(b"%s\0%d" % (origin.encode(), seq)).hex()[:40]


def signs(key: Signature, head: dict[str, Any], record: bytes) -> bool:
    """Whether a key made the signature record of an entry."""
    message = written({name: head[name] for name in head if name not in UNSIGNED}).encode()
    digests = [record[at : at + 32].hex() for at in range(69, len(record), 32)]
    good = len(record) % 32 == 5
    if digests:  # several were signed together
        good = good and 1 < len(set(digests)) == len(digests) <= 64
        good = good and sha(message).hex() in digests
        message = written(digests).encode()
    good = good and record[:5] == bytes([1 + bool(digests)]) + key[1]
    return good and signed(key[2], message, record[5:69])


class Kept(NamedTuple):
    """An entry of a peer: the entry that keeps it, whose it is, and what stands for its body."""

    what: str
    origin: str
    seq: int
    leaf: bytes
    keep: object
    erased: bool


class Placed(NamedTuple):
    """An entry of a peer that is shown: where, whose it is, what it says, and what it is here."""

    what: str
    seq: int
    origin: str
    inner: dict[str, Any]
    body: dict[str, Any]
    place: dict[str, Any]
    erased: bool


class Audit:
    """One export: what is wrong is told and counted; memory stays small but for the ids."""

    def __init__(self, folder: str, *, is_sealed: bool = True) -> None:
        self.read = partial(read, folder)
        self.text, self.origin, self.size, self.head = "", "", 0, sha(b"")
        self.signatures: list[Signature] = []
        if is_sealed:
            self.text, self.signatures = read_note(self.read("checkpoint", 1 << 20), "checkpoint")
            seal = SEAL.fullmatch(self.text)
            if seal is None or int(seal[2]) >= 2**63 or len(seal[1].encode()) > 255:
                raise Wrong("checkpoint: not a note of origin, size and root")
            self.origin, self.size, self.head = seal[1], int(seal[2]), unbase64(seal[3])
        self.bodies = os.path.lexists(os.path.join(folder, "bodies"))
        self.before, self.at, self.adopted, self.wrong, self.unsure = "0" * 64, "", False, 0, 0
        self.lines: list[str] = []  # the log's name, and those that it went on under
        self.erased: dict[str, tuple[Any, bool]] = {}  # what is to be said: header, if observed
        self.keeps: dict[int, object] = {}  # what stands for a body that was erased
        self.keys: list[Signature] = []  # of the log, the newest last
        self.name = ""  # of this replica
        self.own: list[int] = []  # the entries under the name that the log has, none of a peer
        self.ends: dict[str, int] = {}  # where it left a name
        self.force: dict[str, Signature | None] = {}  # the key of an actor, or that it has none
        self.had: dict[str, list[Signature | None]] = {}  # the newest after each of its changes
        self.revoked: set[Signature] = set()  # keys of actors
        self.batches: dict[str, int] = {}  # how many entries of each are still to come
        self.ids: dict[str, tuple[str, str]] = {}  # kind and actor
        self.blobs: dict[str, int] = {}
        self.count, self.stack = 0, [b""][1:]  # the roots of the full subtrees, largest first
        self.levels: dict[int, list[bytes]] = {}
        self.leaves: list[bytes] = []
        self.peers: dict[str, tuple[set[str], list[Signature]]] = {}  # names and keys, by origin
        self.pieces: dict[int, tuple[str, str, str]] = {}  # kind, id and hash of what can be shown
        self.hidden: dict[int, tuple[str, str, str]] = {}  # the same of what is not
        self.same: dict[int, int] = {}  # what is shown in the place of an entry of a peer
        self.rows: dict[tuple[str, Any, Any], list[tuple[int, str]]] = {}  # who has it, and an id
        self.placed: dict[int, Placed] = {}
        self.kept: list[Kept] = []
        self.erasing: dict[tuple[str, str], object] = {}  # the same as keeps, of peers
        self.heads: list[tuple[str, str, int, bytes]] = []  # where; origin, size, root

    def wrong_if(self, wrong: object, text: object) -> None:
        """Print the first twenty things that are wrong."""
        self.wrong += bool(wrong)
        if wrong and self.wrong <= 20:
            print(ascii(str(text))[1:-1])

    def unsure_if(self, unsure: object, text: object) -> None:
        """Print the first twenty things that could not be judged."""
        self.unsure += bool(unsure)
        if unsure and self.unsure <= 20:
            print(f"could not judge: {ascii(str(text))[1:-1]}")

    def entries(self) -> bytes:
        """Judge every bundle and tile, give the root; nothing behind a bad one can be judged."""
        for number in range(-(-self.size // 256)):
            self.bundle(number)
        for level, hashes in self.levels.items():
            for number in range(-(-len(hashes) // 256)):
                path = f"tile/{level}/{tile_path(number, len(hashes))}"
                self.tile(path, hashes[256 * number :][:256])
        self.settle()
        return self.root()

    def settle(self) -> None:
        """Judge what only the whole ledger tells."""
        for seq, same in self.same.items():
            bad = same >= seq or self.pieces.get(same) != self.hidden[seq]
            self.wrong_if(bad, f"entry {seq}: entry {same}, which is shown for it, is another")
        for one in self.placed.values():
            text = f"{one.what}: it is shown as what its maker did not say, or in another's place"
            try:
                self.wrong_if(not self.stands(one), text)
            except (KeyError, TypeError, ValueError):
                self.wrong_if(text, text)
        for name in self.erased:
            self.wrong_if(name, f"{name}: not there, and the body that it would explain is gone")
        self.wrong_if(any(self.batches.values()), "of entries signed together, some are missing")

    def root(self) -> bytes:
        """The root over the leaves so far."""
        *rest, root = self.stack or [sha(b"")]
        for left in reversed(rest):
            root = sha(b"\x01" + left + root)
        return root

    def grow(self, digest: bytes) -> None:
        """Add a leaf to the tree; keep the roots of 256, 65,536, ... for the tiles above."""
        self.count, height = self.count + 1, 0
        while not self.count >> height & 1:
            digest = sha(b"\x01" + self.stack.pop() + digest)
            height += 1
            if height % 8 == 0:
                self.levels.setdefault(height // 8, []).append(digest)
        self.stack.append(digest)

    def roots(self, sizes: set[int]) -> dict[int, bytes]:
        """The roots of the first so many entries."""
        found, leaves, self.count, self.stack = {}, self.leaves, 0, []
        for size in range(len(leaves) + 1):
            if size in sizes:
                found[size] = self.root()
            if size < len(leaves):
                self.grow(leaves[size])
        return found

    def bundle(self, number: int) -> None:
        """The entries of one bundle, their bodies, and their tile of leaves."""
        place, width = tile_path(number, self.size), min(256, self.size - 256 * number)
        data, headers = self.read(f"tile/entries/{place}", 256 * 65537), []
        while len(data) >= (end := 2 + int.from_bytes(data[:2], "big")):
            headers.append(data[2:end])
            data = data[end:]
        if data or len(headers) != width:
            raise Wrong(f"tile/entries/{place}: not {width} whole entries")
        lines = [b""] * width
        if self.bodies:
            lines = self.read(f"bodies/{place}.jsonl", 256 * (2**16 + 4374)).split(b"\n")
            if lines.pop() or len(lines) != width:
                raise Wrong(f"bodies/{place}.jsonl: not {width} whole lines")
        leaves = []
        for seq, (header, line) in enumerate(zip(headers, lines, strict=True), 256 * number):
            leaves.append(sha(b"\x00" + header))
            try:
                self.entry(seq, header, line)
            except Wrong as error:
                self.wrong_if(error, error)
            self.before = leaves[-1].hex()
            self.leaves.append(leaves[-1])
            self.grow(leaves[-1])
        self.tile(f"tile/0/{place}", leaves)

    def tile(self, path: str, hashes: list[bytes]) -> None:
        """One tile of hashes."""
        if self.read(path, 8192) != b"".join(hashes):
            raise Wrong(f"{path}: not the hashes of what lies below")

    def entry(self, seq: int, header: bytes, said: bytes) -> None:
        """One entry in its place in the chain."""
        what = f"entry {seq}"
        head = read_header(header, what)
        line, forks, lines = head["ledger"], head["kind"] == "ledger.forked-from", self.lines
        good = line not in lines if forks else line == (lines or [line])[-1]
        good = good and (head["seq"], head["prev"]) == (seq, self.before)
        good = good and (forks or head["at"] >= self.at)  # a new line's clock begins anew
        known = head["id"] in self.ids or ("cause" in head and head["cause"] not in self.ids)
        again = self.adopted and head["kind"] == "ledger.adopted"
        self.wrong_if(not good, f"{what}: not the next of this log, or dated before the last")
        self.wrong_if(known or again, f"{what}: its id or an adoption twice, or no such cause")
        if forks or not lines:
            self.ends |= dict.fromkeys(lines[-1:], seq)
            lines.append(line)
            self.keys, self.name, self.own = [], "", []  # those of another line
        if head["kind"] != "peer.entry":
            self.own.append(seq)
        self.at, self.adopted = head["at"], self.adopted or head["kind"] == "ledger.adopted"
        self.ids[head["id"]] = head["kind"], head["actor"]
        if head["id"].startswith("obs-"):
            self.pieces[seq] = head["kind"], head["id"], ""
        if self.bodies:
            self.body(what, head, said)

    def body(self, what: str, head: dict[str, Any], line: bytes) -> None:
        """The body that a header commits to, who signed it, and its blobs."""
        seq, kind, actor = head["seq"], head["kind"], head["actor"]
        match = re.fullmatch(LINE % seq, line)
        if match is None:
            raise Wrong(f"{what}: its line is no body with its salt")
        record, body, salt = match.groups()
        free = record is None and self.force.get(actor) is not None  # good if it was observed
        if record is not None or "auth" in head:
            self.author(what, head, bytes.fromhex((record or b"").decode()))
        if body is None:
            self.erased[f"redacted-{seq}"] = head, free
            return
        mark = b"\x02" + bytes.fromhex(salt.decode()) + kind.encode() + b"\x00"
        if len(body) > 2**16 or sha(mark + body).hex() != head["body"]:
            raise Wrong(f"{what}: not the body that its header commits to")
        value = canonical(body, f"{what}, body")
        opens, forks = kind == "ledger.opened", kind == "ledger.forked-from"
        bad = opens != (seq == 0) or (opens and value.get("origin") != head["ledger"])
        self.wrong_if(bad, f"{what}: entry 0, and no other, opens this log")
        left = [*self.lines[-2:-1], seq, self.root().hex()] if forks else []
        bad = forks and [value.get(name) for name in ("origin", "size", "root")] != left
        self.wrong_if(bad, f"{what}: does not fork from what stands before it")
        name, tells = value.get(SPEAKS.get(kind, "")), self.ids.get(head.get("cause", ""))
        known = (name, actor, value.get("type")) == ("scribe", "tripod", "log-error")  # was found
        other = name not in (None, actor) and not known and (TELLS.get(str(name)), actor) != tells
        bad = (free or (other and self.force.get(str(name)))) and "observed" not in value
        self.wrong_if(bad, f"{what}: nobody signed it, or it shows another as who speaks")
        if kind == "redacted":
            self.redacted(what, head, value)
        self.replicas(what, head, value)
        self.row(seq, kind, value)
        if kind in ("actor.enrolled", "actor.revoked"):
            self.change(what, head, [str(value.get(name)) for name in ACTOR])
        self.hold(what, body)

    def hold(self, what: str, body: bytes) -> None:
        """The blobs that a body names."""
        for digest, size in ((found[0].decode(), int(found[1])) for found in BLOB.findall(body)):
            if digest not in self.blobs:
                data = self.read(f"blobs/{digest}", 1 << 30) if HASH.fullmatch(digest) else b""
                self.blobs[digest] = len(data) if sha(data).hex() == digest else -1
            self.wrong_if(self.blobs[digest] != size, f"{what}: not blob {digest} as it names it")

    def redacted(self, what: str, head: dict[str, Any], value: dict[str, Any]) -> None:
        """What stands for a body that was erased; of an entry of a peer that is judged, too."""
        of, free = self.erased.pop(head["id"], ({"kind": object()}, False))
        bad = (f"redacted-{value.get('seq')}", value.get("kind")) != (head["id"], of["kind"])
        keep: Any = value.get("keep")
        keep = keep if isinstance(keep, dict) else {}
        bad = bad or (free and "observed" not in keep)
        self.wrong_if(bad, f"{what}: what it says was erased was not, or nobody signed it")
        if not bad:
            self.keeps[of["seq"]] = keep
            self.row(of["seq"], of["kind"], keep)
        if of["kind"] == "peer.entry":
            self.peer(f"entry {of['seq']}", of, keep)

    def replicas(self, what: str, head: dict[str, Any], value: dict[str, Any]) -> None:
        """What an entry says of the keys and the name of this replica, and of others."""
        kind = head["kind"]
        if kind == "key.set":
            self.set_key(what, head["ledger"], value)
        if kind == "team.named":
            self.name = str(value.get("replica"))
            by = [sha(spelled(key).encode()).hex()[:16] for key in self.keys[-1:]]
            self.wrong_if(by != [self.name[-16:]], f"{what}: a name that its key does not give it")
        if kind in ("peer.added", "peer.accepted"):
            self.added(what, value)
        if kind == "peer.entry":
            self.peer(what, head, value)
        if kind == "peer.merged":
            self.merged(what, value)
        self.wrong_if(kind == "peer.forked", f"{what}: a peer contradicted what it sealed")

    def content(self, what: str, value: Any) -> bytes:
        """The bytes of a field: text, base64, or a blob."""
        if not isinstance(value, dict) or not isinstance(next(iter(value.values()), None), str):
            raise Wrong(f"{what}: a field that holds no bytes")
        if "text" in value or "base64" in value:
            return value["text"].encode() if "text" in value else unbase64(value["base64"])
        digest = str(value.get("sha256"))
        data = self.read(f"blobs/{digest}", 1 << 30) if HASH.fullmatch(digest) else b""
        if sha(data).hex() != digest:
            raise Wrong(f"{what}: not blob {digest} as it names it")
        return data

    def set_key(self, what: str, line: str, value: dict[str, Any]) -> None:
        """A key of the log: the first, or one that the key before it and itself vouch for."""
        keys = [] if self.keys else [read_key(str(value.get("vkey")))]
        keys = keys or self.follower(what, line, value, self.keys[-1:])
        bad = [key[0] for key in keys] != [line]
        self.wrong_if(bad, f"{what}: a key for which the key before it does not vouch")
        self.keys += [] if bad else keys

    def follower(
        self, what: str, line: str, value: dict[str, Any], keys: list[Signature]
    ) -> list[Signature]:
        """The key that an entry sets, if it and one of the keys vouch for that."""
        key = read_key(str(value.get("vkey")))
        for old in keys:
            with suppress(Wrong):
                text, signatures = read_note(str(value.get("note")).encode(), what)
                about = f"tripod key rotation\n{line}\n{spelled(old)}\n{spelled(key)}\n"
                if text == about and {*signers(text, signatures, [old, key])} == {old, key}:
                    return [key]
        return []

    def added(self, what: str, value: dict[str, Any]) -> None:
        """A replica that this one knows from here on, by a name and a key."""
        origin, key = str(value.get("origin")), read_key(str(value.get("key")))
        names, keys = self.peers.setdefault(origin, (set(), []))
        names |= {str(value["replica"])} if "replica" in value else set()
        keys += [] if keys else [key]  # for a later one an entry of the replica has to vouch
        self.wrong_if(key[0] != origin, f"{what}: a key of another than {origin}")

    def peer(self, what: str, head: dict[str, Any], value: dict[str, Any]) -> None:
        """An entry of another replica: what is kept of it, held against its own header."""
        origin, seq, header = str(value.get("origin")), value.get("seq"), value.get("header")
        place: Any = value.get("place") or {}
        data = self.content(what, header)
        inner = read_header(data, f"{what}, header of a peer")
        if inner["seq"] < 0 or not isinstance(place, dict) or type(place.get("same", 0)) is not int:
            raise Wrong(f"{what}: of no number, or in no place")
        good = (inner["seq"], head["id"]) == (seq, kept_id(origin, inner["seq"]))
        record = self.content(what, value["auth"]) if value.get("auth") else b""
        auth, body = sha(b"\x03" + record).hex() if record else None, value.get("keep") or {}
        erased = not value.get("content")
        if not erased:
            said = self.content(what, value["content"])
            mark = b"\x02" + said[:32] + inner["kind"].encode() + b"\x00"
            good = good and sha(mark + said[32:]).hex() == inner["body"]
            body = canonical(said[32:], f"{what}, body of a peer")
            self.hold(what, said[32:])
            if inner["kind"] == "key.set" and inner["ledger"] == origin in self.peers:
                keys = self.peers[origin][1]
                keys += self.follower(what, origin, body, keys)
            if inner["id"] == f"redacted-{body.get('seq')}":
                self.erasing[origin, str(body["seq"])] = body.get("keep")
        self.wrong_if(not good or auth != inner.get("auth"), f"{what}: not that entry of its peer")
        piece = inner["kind"], inner["id"], "" if inner["id"][:4] == "obs-" else sha(data).hex()
        if "same" in place:
            self.same[head["seq"]] = place["same"]
            self.hidden[head["seq"]] = piece
        else:
            self.pieces[head["seq"]] = piece
            one = Placed(what, head["seq"], origin, inner, body, place, erased)
            self.placed[one.seq] = one
        if "same" not in place and inner["kind"] in SHARED:
            bad = not self.shown(origin, inner, body, place, record)
            self.wrong_if(bad, f"{what}: it is shown as somebody's of {origin} who did not make it")
            self.row(head["seq"], inner["kind"], body | place)
        leaf = sha(b"\x00" + data)
        self.kept.append(Kept(what, origin, inner["seq"], leaf, value.get("keep"), erased))

    def shown(self, origin: str, inner: Json, body: Json, place: Json, record: bytes) -> bool:
        """Whether an entry of a peer is shown as its actor's: of that replica, or by a key here."""
        actor, part = inner["actor"], SPEAKS.get(inner["kind"], "actor")
        says = {"actor": actor, part: str(body.get(part, actor))}
        for name in says.keys() & place.keys():
            plain = re.sub(r"[^A-Za-z0-9._+-]", "_", says[name])[:46] or "_"
            names = self.peers.get(origin, (set(), []))[0]
            marked = {f"{says[name]}@{one}" for one in names}
            if str(place[name]) not in marked | {f"{plain}@{one[-16:]}" for one in names}:
                return False
        if inner["kind"] != "bus.acked-all" and place.keys() & NAMES - {part}:
            return False  # of the kinds that say who speaks, each has a member of its own
        keys = [key for key in self.had.get(actor, ()) if key and key not in self.revoked]
        if "actor" not in place and not any(signs(key, inner, record) for key in keys):
            return False
        other = says[part] != actor and part not in place
        return not (other and ("actor" in place or any(self.had.get(says[part], ()))))

    def row(self, seq: int, kind: str, data: dict[str, Any]) -> None:
        """What an entry is in a file, and by what others mean it."""
        of, log = str(data.get("channel")), str(data.get("file", "log.md"))
        rows: list[tuple[str, Any, Any]] = [("event", "", seq)] if kind == "bus.published" else []
        if kind in ("chat.sent", "chat.unreadable"):
            rows = [("line", of, str(data.get("index")))]
        if kind == "decision.logged":
            rows = [(name, "", str(data.get(name))) for name in ("id", "made")]
            rows += [("number", log, str(data.get("number")))]
        for row in rows:
            said = str(data.get("name" if kind == "bus.published" else "id"))
            self.rows.setdefault(row, []).append((seq, said))

    def first(self, what: str, of: str, number: object) -> int:
        """The entry that is this line or number first; far beyond all where none is."""
        return min(self.rows.get((what, of, str(number)), [(self.size, "")]))[0]

    def stands(self, one: Placed) -> bool:
        """Whether an entry of a peer is what its maker said, in the next place that was free."""
        kind, place, data, seq = one.inner["kind"], one.place, one.body | one.place, one.seq
        names = self.peers.get(one.origin, (set(), []))[0]
        if not place.keys() <= ({*PLACES[kind].split(), "actor"} if kind in PLACES else set()):
            return False
        for part in place.keys() & {"channel", "file"}:
            own = str(one.body.get(part, "log.md"))
            apart = not PLAIN.fullmatch(own) and place[part].startswith((*names, "peer."))
            if not apart and place[part] != own:
                return False
        if "index" in PLACES.get(kind, ""):
            of, at = str(data["channel"]), int(place["index"])
            good = self.first("line", of, at) == seq
            return good and (not at or self.first("line", of, at - 1) < seq)
        if kind == "bus.acked" and "event" in place:
            renamed = RENAMED.fullmatch(one.body["name"])
            said = {one.body["name"], f"{renamed[1]}.event" if renamed else one.body["name"]}
            events = self.rows.get(("event", "", place["event"]), [(seq, "")])
            found = self.placed.get(place["event"])
            made = events[0][1] if found is None else found.body["name"]
            return place["event"] < seq and data["name"] == events[0][1] and made in said
        if kind != "decision.logged":
            return True
        of, at, own = str(data.get("file", "log.md")), int(place["number"]), str(one.body["id"])
        good = self.first("number", of, at) == seq
        good = good and (at == 1 or self.first("number", of, at - 1) < seq)
        good = good and place["made"] in {f"{name}/{own}" for name in names}
        there, here = int(own[2:]), int(str(data["id"])[2:])
        good = good and here - there <= self.size and self.first("id", "", f"D-{here}") == seq
        good = good and all(self.first("id", "", f"D-{n}") < seq for n in range(there, here))
        return good and (one.erased or self.meant(one, data.get("supersedes")))

    def meant(self, one: Placed, shown: str | None) -> bool:
        """Whether a decision supersedes here what its maker meant."""
        said: str | None = one.body.get("supersedes_made", one.body.get("supersedes"))
        if said is None or shown is None:
            return said == shown
        name = one.place["made"].rpartition("/")[0]
        made = said if "/" in said else f"{name}/{said}"
        own = [id_ for seq, id_ in self.rows.get(("made", "", made), []) if seq < one.seq]
        there = (found for found in self.placed.values() if found.body.get("id") == said)
        own = own or [said, said.rpartition("/")[2], *((x.body | x.place)["id"] for x in there)]
        return shown in own

    def merged(self, what: str, value: dict[str, Any]) -> None:
        """A head of another replica that is remembered, and the seal that says so."""
        text, signatures = read_note(self.content(what, value.get("seal")), what)
        seal, head = SEAL.fullmatch(text), [value.get(name) for name in ("origin", "size", "root")]
        if seal is None or [seal[1], int(seal[2]), unbase64(seal[3]).hex()] != head:
            raise Wrong(f"{what}: the seal of its peer says another head")
        by = signers(text, signatures, self.peers.get(seal[1], (set(), []))[1])
        self.wrong_if(not by, f"{what}: no key of {seal[1]} that is on record made its seal")
        self.heads += [(what, seal[1], int(seal[2]), unbase64(seal[3]))] if by else []

    def author(self, what: str, head: dict[str, Any], record: bytes) -> None:
        """The record of a signature: the one of the header, and by the key of the actor."""
        key = self.force.get(head["actor"]) or ("", b"", b"")
        if sha(b"\x03" + record).hex() != head.get("auth") or not signs(key, head, record):
            raise Wrong(f"{what}: not signed by the key of its actor, or its record is another's")
        batch = max(1, (len(record) - 69) // 32)
        self.batches[head["auth"]] = self.batches.get(head["auth"], batch) - 1

    def change(self, what: str, head: dict[str, Any], told: list[str]) -> None:
        """A key of an actor, signed by itself and by one before it or the log's; or its end."""
        (handle, vkey, number, note, reason), ends = told, head["kind"] == "actor.revoked"
        had, held, key = self.had.setdefault(handle, []), self.force.get(handle), read_key(vkey)
        may = [one for one in (held, *self.keys[-1:]) if one] or [one for one in had[-1:] if one]
        lines = [f"tripod actor key{' revoked' * ends}", head["ledger"], number, handle, vkey]
        text, signatures = read_note(note.encode(), what)
        by = signers(text, signatures, [key, *may])
        good = text.split("\n") == [*lines, *[reason] * ends, ""] and key[0] == handle
        good = good and (number, head["id"]) == (str(len(had) + 1), f"actor-{number}-{handle}")
        good = good and (held == key if ends else key in by) and (not may or bool({*may} & {*by}))
        self.wrong_if(not good, f"{what}: changes the key of {handle!r} without those who may")
        had.append(key if good else [None, *had][-1])
        self.force[handle] = held if not good else None if ends else key
        self.revoked |= {key} if good and ends else set()


def agree(audits: list[Audit]) -> None:
    """Hold what each replica keeps and remembers of another against that one's own export."""
    sizes = {head[2] for audit in audits for head in audit.heads}
    roots = {id(audit): audit.roots(sizes) for audit in audits}
    for number, audit in enumerate(audits):
        for one in audits[:number]:
            both = min(audit.size, one.size)
            bad = one.origin == audit.origin and one.leaves[:both] != audit.leaves[:both]
            audit.wrong_if(bad, f"{audit.origin}: two exports of it contradict each other: a fork")
    for audit in audits if audits[1:] else ():
        absent = {one.origin for one in audit.kept if not having(audits, one.origin)}
        audit.unsure_if(absent, f"{audit.origin} keeps entries of {sorted(absent)}: no export")
    for audit in audits:
        for kept in audit.kept:
            there = having(audits, kept.origin)
            of = [one.leaves[kept.seq] for one, size in there if kept.seq < size]
            what = f"{kept.what}: not entry {kept.seq} as {kept.origin} itself has it"
            audit.wrong_if(of and kept.leaf not in of, what)
            covered(audit, kept, [one for one, _ in there if one.origin == kept.origin])
        for what, origin, size, root in audit.heads:
            there = having(audits, origin)
            of = [roots[id(one)][size] for one, end in there if size <= end]
            bad = bool(of) and root not in of
            audit.wrong_if(bad, f"{what}: at {size} entries {origin} has another root: a fork")
            old = f"{what}: {origin} had {size} entries, its export has fewer: old, or cut off"
            audit.unsure_if(not of and any(one.origin == origin for one, _ in there), old)
        for origin in audit.peers:
            for one in audits:
                if one.origin == origin and one.bodies:
                    known(audit, one)


def having(audits: list[Audit], origin: str) -> list[tuple[Audit, int]]:
    """The exports of a replica, or else those that left its name, and the entries under it."""
    own = [(one, one.size) for one in audits if one.origin == origin]
    return own or [(one, one.ends[origin]) for one in audits if origin in one.ends]


def covered(audit: Audit, kept: Kept, own: list[Audit]) -> None:
    """Whether an entry of a peer is one that it sealed, and that it erased if its body is gone."""
    origin, seq = kept.origin, kept.seq
    sizes = [head[2] for head in audit.heads if head[1] == origin] + [one.size for one in own]
    text = f"{kept.what}: no seal of {origin} covers its entry {seq}"
    judge = audit.wrong_if if own else audit.unsure_if
    judge(seq >= max(sizes, default=0), text)
    said = [one.keeps[seq] for one in own if seq in one.keeps]
    key = origin, str(seq)
    said += [audit.erasing[key]] if key in audit.erasing else []
    text = f"{kept.what}: {origin} does not say that this stands for its entry {seq}"
    judge = audit.wrong_if if said or any(one.bodies for one in own) else audit.unsure_if
    bad = not said or any(written(keep) != written(kept.keep) for keep in said)
    judge(kept.erased and bad, text)


def known(audit: Audit, one: Audit) -> None:
    """Whether a replica is known by its own name and keys, and all that it sealed is kept."""
    names, keys = audit.peers[one.origin]
    size = max((head[2] for head in audit.heads if head[1] == one.origin), default=0)
    text = f"{audit.origin} knows {one.origin} by another name or key than it has"
    theirs = [key for key in keys if key not in one.keys]
    bad = (names and one.name and one.name not in names) or (theirs == keys and size <= one.size)
    audit.wrong_if(bad, text)
    audit.unsure_if(theirs and not bad, f"{text}, or its export is too old")
    there = (kept for kept in audit.kept if kept.origin == one.origin)
    most = max([size, *(k.seq for k in there if one.leaves[k.seq : k.seq + 1] == [k.leaf])])
    apart = [seq for seq in one.own if audit.leaves[seq : seq + 1] != [one.leaves[seq]]]
    kinds = {seq: audit.ids.get(kept_id(one.origin, seq), ("", ""))[0] for seq in apart}
    lost = [seq for seq, kind in kinds.items() if seq < most and kind != "peer.entry"]
    text = f"{audit.origin} says that the first {most} entries of {one.origin} are here"
    audit.wrong_if(lost, f"{text}, and {len(lost)} are not: {str(lost[:3])[1:-1]}, ...")


def main() -> int:
    """Audit the folders that are named on the command line."""
    parser = argparse.ArgumentParser(description="Audit exports of ledgers.")
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--key", action="append", type=read_key, help="the log's: name+id+base64")
    given, audits, codes = parser.parse_args(), [], []
    for folder in given.directory:
        if not any(os.path.lexists(os.path.join(folder, name)) for name in ("checkpoint", "tile")):
            print(f"{folder!a} is no export: it holds neither checkpoint nor tile")
            codes.append(3)
            continue
        try:
            audit = Audit(folder)
            bad = audit.entries() != audit.head or audit.lines[-1:] != [audit.origin]
            audit.wrong_if(bad, f"checkpoint: not of these {audit.size} entries, or there are none")
            audits.append(audit)
        except Wrong as error:
            print(ascii(str(error)))
            codes.append(1)
    agree(audits)
    codes += [verdict(audit, given.key or audit.keys[-1:]) for audit in audits]
    return 1 if 1 in codes else max(codes)


def verdict(audit: Audit, keys: list[Signature]) -> int:
    """Who signed the seal, and the sum of what is wrong; gives the exit code."""
    try:
        by = signers(audit.text, audit.signatures, keys)
    except Wrong as error:
        print(ascii(str(error)))
        return 1
    bad = bool(keys) and all(name != audit.origin for name, _, _ in by)
    audit.wrong_if(bad, f"checkpoint: no trusted key of {audit.origin!r} signed")
    print(f"{audit.origin!a}: {audit.size} entries, {len(audit.blobs)} blobs: {audit.wrong} wrong")
    print("" if audit.bodies else "headers alone: bodies and signatures were not judged\n", end="")
    print("" if keys else "nobody vouches for the seal: give the log's key with --key\n", end="")
    return 1 if audit.wrong else 0 if keys and not audit.unsure else 3


if __name__ == "__main__":
    sys.exit(main())
