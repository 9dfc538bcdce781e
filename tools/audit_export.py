#!/usr/bin/env python3
"""Audit an export of a ledger: one file, the standard library, nothing to install.

    python3 audit_export.py DIRECTORY [--key VKEY]...

It shares no code with the program that wrote the export. Read it in an hour, then believe it:

1. `checkpoint` is a signed note (C2SP signed-note, tlog-checkpoint): origin, size, root. One of the
   keys given must have signed it, or, where none is given, the key that the entries set last.
2. `tile/entries/` holds the entries, `tile/0/`, `tile/1/`, ... the hashes of their Merkle tree
   (RFC 6962, C2SP tlog-tiles). All of them must fit each other and the root.
3. Every entry is a header in canonical JSON: numbered, linked by `prev` to the one before, of this
   log (a restored copy goes on under another name), not dated back, no id twice, no cause missing.
4. `bodies/` (may be missing) holds a line for each entry: the body and salt to which its header
   commits, or nothing where a later entry says so, and `blobs/` every blob that a body names.

What it does not judge: whether a body fits its kind, and a team's own rules.
Exit: 0 nothing wrong, 1 something is wrong, 2 usage, 3 could not judge (no export, or no key).
"""

import argparse
import base64
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

HASH = re.compile("[0-9a-f]{64}")
WORD = "[^\\s+\\x00-\\x1f\\ud800-\\udfff]+"  # the name of a key or a log
HEAD = rf"(({WORD})\n(0|[1-9][0-9]{{0,18}})\n([A-Za-z0-9+/]{{43}}=)\n)"
SEAL = re.compile(rf"{HEAD}\n((?:\u2014 {WORD} \S+\n){{1,100}})")
AT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
NEEDED = {"actor", "at", "body", "id", "kind", "ledger", "prev", "seq", "stream", "v"}
LINE = rb'\{"body":(.+),"salt":"([0-9a-f]{64})","seq":%d\}'
FORK = ("origin", "size", "root")  # what a fork says of the log that it leaves
MAX_BODY = 65536
Signature = tuple[str, bytes, bytes]  # name, key id, and the signature (of a key: the key)


class Wrong(ValueError):  # noqa: N818 - it is what the auditor is looking for
    """Something that a sound export does not have."""


def sha(data: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
Point = tuple[int, int, int, int]
D = -121665 * pow(121666, P - 2, P) % P


def add(a: Point, b: Point) -> Point:
    """Add two points in extended coordinates."""
    e = (a[1] - a[0]) * (b[1] - b[0]) % P
    f = (a[1] + a[0]) * (b[1] + b[0]) % P
    g = 2 * a[3] * b[3] * D % P
    h = 2 * a[2] * b[2] % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(number: int, point: Point) -> Point:
    """Multiply a point."""
    total = (0, 1, 1, 0)
    while number:
        total = add(total, point) if number & 1 else total
        point, number = add(point, point), number >> 1
    return total


def point_of(data: bytes) -> Point | None:
    """Read a point; None where it is none."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x * pow(2, (P - 1) // 4, P) % P if (x * x - square) % P else x
    if y >= P or (x * x - square) % P or (not x and sign):
        return None
    x = P - x if x & 1 != sign else x
    return (x, y, 1, x * y % P)


def signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the key made this signature."""
    base = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    key, s = point_of(public), int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or key is None or base is None or s >= ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    minus = (P - key[0], key[1], 1, P - key[3])
    got = add(times(s, base), times(int.from_bytes(digest, "little") % ORDER, minus))
    inverse = pow(got[2], P - 2, P)
    x, y = got[0] * inverse % P, got[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little") == signature[:32]


def read(folder: str, path: str, limit: int) -> bytes:
    """The bytes of a regular file below a folder, no link on the way; at most ``limit``."""
    full = folder
    try:
        for part in path.split("/"):
            full = os.path.join(full, part)
            if os.path.islink(full):
                raise Wrong(f"{path}: a symbolic link stands in its way")
        if not os.path.isfile(full) or os.path.getsize(full) > limit:
            raise Wrong(f"{path}: no regular file of at most {limit} bytes")
        with open(full, "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise Wrong(f"{path}: {error.strerror}") from error


def tile_path(number: int, width: int) -> str:
    """The path of a tile below its level's folder: 1234067 is x001/x234/067."""
    name = f"{number % 1000:03}"
    while number := number // 1000:
        name = f"x{number % 1000:03}/{name}"
    return name + (f".p/{width}" if width < 256 else "")


def tiles(count: int) -> Iterator[tuple[int, int]]:
    """Number and width of each tile over so many hashes, one at a time: a size may be a lie."""
    return ((n, min(256, count - 256 * n)) for n in range(-(-count // 256)))


def unbase64(text: str) -> bytes:
    """Bytes from the one spelling of base64."""
    with suppress(ValueError):
        data = base64.b64decode(text, validate=True)
        if base64.b64encode(data).decode() == text:
            return data
    raise Wrong(f"not base64, or in another spelling: {text[:80]!r}")


def read_seal(data: bytes) -> tuple[str, str, int, bytes, list[Signature]]:
    """Text, origin, size, root and signatures (name, key id, bytes) of a checkpoint."""
    match = SEAL.fullmatch(data.decode("utf-8", "surrogateescape"))
    if match is None or int(match[3]) >= 2**63 or len(match[2].encode()) > 255:
        raise Wrong("checkpoint: not a note of origin, size and root, with signatures")
    root, signatures = unbase64(match[4]), []
    for line in match[5].splitlines():
        _, name, payload = line.split(" ")
        raw = unbase64(payload)
        if len(raw) < 5:
            raise Wrong("checkpoint: a signature line holds no signature")
        signatures.append((name, raw[:4], raw[4:]))
    return match[1], match[2], int(match[3]), root, signatures


def read_key(text: str) -> Signature:
    """Name, key id and 32 bytes of a verifier key: name+id+base64(type 1, key)."""
    name, _, rest = text.partition("+")
    ident, _, payload = rest.partition("+")
    data = unbase64(payload)
    good = hashlib.sha256(name.encode() + b"\n" + data).hexdigest()[:8]
    if not re.fullmatch(WORD, name) or len(data) != 33 or data[0] != 1 or ident != good:
        raise Wrong(f"not the public key of a log: {text[:80]!r}")
    return name, bytes.fromhex(ident), data[1:]


def judge_seal(text: str, signatures: list[Signature], keys: list[Signature]) -> str:
    """Hold the signatures against the keys: each by one of them must be good, and one the log's."""
    origin = text.partition("\n")[0]
    known = {(name, ident): public for name, ident, public in keys}
    ours = [signature for signature in signatures if signature[:2] in known]
    for name, ident, data in ours:
        if not signed(known[name, ident], text.encode(), data):
            return f"checkpoint: the signature of {name} is not by that key"
    return "" if any(n == origin for n, _, _ in ours) else f"no trusted key of {origin!r} signed"


def check_value(value: Any, depth: int = 0) -> None:
    """The profile: no floats, no null, keys of ASCII, 2^53, at most 32 in each other."""
    if isinstance(value, dict | list):
        if depth >= 32 or not all(key.isascii() for key in value if isinstance(value, dict)):
            raise ValueError("too deep, or a key that is not ASCII")
        for inner in value.values() if isinstance(value, dict) else value:
            check_value(inner, depth + 1)
    elif not isinstance(value, str | int) or (type(value) is int and abs(value) >= 2**53):
        raise ValueError("a float, null, or an integer beyond 2^53")


def canonical(data: bytes, what: str) -> dict[str, Any]:
    """The value of canonical JSON (where a key stood twice, it would be written shorter)."""
    with suppress(ValueError, RecursionError):
        value = json.loads(data.decode("utf-8"))
        check_value(value)
        again = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        if again.encode("utf-8") == data and isinstance(value, dict):
            return value
    raise Wrong(f"{what}: no object in canonical JSON")


def read_header(data: bytes, what: str) -> dict[str, Any]:
    """A header as an object of exactly its fields."""
    head = canonical(data, what)
    if not NEEDED <= set(head) <= NEEDED | {"auth", "cause"}:
        raise Wrong(f"{what}: not the fields of a header")
    texts = [head[name] for name in head if name not in ("seq", "v")]
    hashes = [head[name] for name in ("body", "prev", "auth") if name in head]
    if {*map(type, texts)} != {str} or type(head["seq"]) is not int or type(head["v"]) is not int:
        raise Wrong(f"{what}: a field of another type")
    if head["v"] != 1 or not AT.fullmatch(head["at"]) or not all(map(HASH.fullmatch, hashes)):
        raise Wrong(f"{what}: not version 1, not a time, or a field that is no hash")
    return head


def blobs_of(value: Any) -> Iterator[tuple[str, int]]:
    """Digest and size of every blob that a body names."""
    if isinstance(value, dict) and set(value) == {"sha256", "size"}:
        if isinstance(value["sha256"], str) and type(value["size"]) is int:
            yield value["sha256"], value["size"]
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from blobs_of(inner)


class Audit:
    """One export: what is wrong is told and counted; memory stays small but for the ids."""

    def __init__(self, folder: str, origin: str, size: int) -> None:
        self.read, self.origin, self.size = partial(read, folder), origin, size
        self.bodies = os.path.lexists(os.path.join(folder, "bodies"))
        self.before, self.at, self.adopted, self.wrong = "0" * 64, "", 0, 0
        self.lines: list[str] = []  # the log's name, and those that it went on under
        self.erased: dict[str, object] = {}  # what must still be said, and of which kind
        self.keys: list[Signature] = []
        self.ids: set[str] = set()
        self.blobs: dict[str, int] = {}
        self.count, self.stack = 0, [b""][1:]  # the roots of the full subtrees, largest first
        self.levels: dict[int, list[bytes]] = {}

    def tell(self, error: object) -> None:
        """Print the first twenty things that are wrong."""
        self.wrong += 1
        if self.wrong <= 20:
            print(ascii(str(error))[1:-1])

    def entries(self) -> bytes | None:
        """Judge every bundle and tile; give the root, None where a bundle cannot be read."""
        for number, width in tiles(self.size):
            try:
                self.bundle(number, width)
            except Wrong as error:
                self.tell(f"{error}: nothing behind it can be judged")
                return None
        for level, hashes in self.levels.items():
            for number, width in tiles(len(hashes)):
                self.tile(level, number, width, hashes[256 * number : 256 * number + width])
        for name in self.erased:
            self.tell(f"entry {name[9:]}: its body is gone, and no entry says that it was erased")
        return self.root()

    def root(self) -> bytes:
        """The root over the leaves so far."""
        *rest, root = self.stack or [sha(b"")]
        for left in reversed(rest):
            root = sha(b"\x01" + left + root)
        return root

    def grow(self, digest: bytes) -> None:
        """Add a leaf to the tree; keep the roots of 256, 65,536, ... for the tiles above."""
        self.count += 1
        height = 0
        while not self.count >> height & 1:
            digest = sha(b"\x01" + self.stack.pop() + digest)
            height += 1
            if height % 8 == 0:
                self.levels.setdefault(height // 8, []).append(digest)
        self.stack.append(digest)

    def bundle(self, number: int, width: int) -> None:
        """The entries of one bundle, their bodies, and their tile of leaves."""
        place, first = tile_path(number, width), 256 * number
        path = f"tile/entries/{place}"
        data, headers = self.read(path, 256 * 65537), []
        while len(data) >= (end := 2 + int.from_bytes(data[:2], "big")):
            headers.append(data[2:end])
            data = data[end:]
        if data or len(headers) != width:
            raise Wrong(f"{path}: not {width} whole entries")
        lines = [b""] * width
        if self.bodies:
            path = f"bodies/{place}.jsonl"
            lines = self.read(path, 256 * (MAX_BODY + 128)).split(b"\n")
            if lines.pop() or len(lines) != width:
                raise Wrong(f"{path}: not {width} whole lines")
        leaves = []
        for seq, (header, line) in enumerate(zip(headers, lines, strict=True), first):
            leaves.append(sha(b"\x00" + header))
            try:
                self.entry(seq, header, line)
            except Wrong as error:
                self.tell(error)
            self.before = leaves[-1].hex()
            self.grow(leaves[-1])
        self.tile(0, number, width, leaves)

    def tile(self, level: int, number: int, width: int, hashes: list[bytes]) -> None:
        """One tile of hashes."""
        path = f"tile/{level}/{tile_path(number, width)}"
        try:
            if self.read(path, 8192) != b"".join(hashes):
                self.tell(f"{path}: not the hashes of what lies below")
        except Wrong as error:
            self.tell(error)

    def entry(self, seq: int, header: bytes, said: bytes) -> None:
        """One entry in its place in the chain."""
        what = f"entry {seq}"
        head = read_header(header, what)
        line, forks, lines = head["ledger"], head["kind"] == "ledger.forked-from", self.lines
        good = line not in lines if forks else line == (lines or [line])[-1]
        good = good and (head["seq"], head["prev"]) == (seq, self.before)
        if not good or head["at"] < self.at:
            self.tell(f"{what}: not the next of this log, or dated before the entry before it")
        if forks or not lines:
            lines.append(line)
        if head["id"] in self.ids or ("cause" in head and head["cause"] not in self.ids):
            self.tell(f"{what}: its id stands twice, or its cause not before it")
        self.at, self.adopted = head["at"], self.adopted + (head["kind"] == "ledger.adopted")
        if self.adopted > 1 and head["kind"] == "ledger.adopted":
            self.tell(f"{what}: a past is adopted once")
        self.ids.add(head["id"])
        if self.bodies:
            self.body(what, head, said)

    def body(self, what: str, head: dict[str, Any], line: bytes) -> None:
        """The body that a header commits to, and its blobs."""
        seq, kind = head["seq"], head["kind"]
        if line == b'{"seq":%d}' % seq:
            self.erased[f"redacted-{seq}"] = kind
            return
        match = re.fullmatch(LINE % seq, line)
        if match is None:
            raise Wrong(f"{what}: its line is no body with its salt")
        body, salt = match.groups()
        mark = b"\x02" + bytes.fromhex(salt.decode()) + kind.encode() + b"\x00"
        if len(body) > MAX_BODY or sha(mark + body).hex() != head["body"]:
            raise Wrong(f"{what}: not the body that its header commits to")
        value = canonical(body, f"{what}, body")
        opens = kind == "ledger.opened"
        if opens != (seq == 0) or (opens and value.get("origin") != head["ledger"]):
            self.tell(f"{what}: entry 0, and no other, opens this log")
        left = kind == "ledger.forked-from" and [*self.lines[-2:-1], seq, self.root().hex()]
        if left and [value.get(name) for name in FORK] != left:
            self.tell(f"{what}: does not fork from what stands before it")
        says = f"redacted-{value.get('seq')}", value.get("kind")
        if kind == "redacted" and says != (head["id"], self.erased.pop(head["id"], object())):
            self.tell(f"{what}: says that an entry was erased, and it was not, or is another")
        if kind == "key.set":
            with suppress(Wrong):
                key = read_key(str(value.get("vkey")))
                self.keys = [key] if key[0] == self.origin else self.keys
        for digest, size in blobs_of(value):
            if digest not in self.blobs:
                data = self.read(f"blobs/{digest}", 1 << 30) if HASH.fullmatch(digest) else b""
                self.blobs[digest] = len(data) if sha(data).hex() == digest else -(1 << 60)
            if self.blobs[digest] != size:
                self.tell(f"{what}: blob {digest} is not the one that it names")


def main() -> int:
    """Audit the folder that is named on the command line."""
    parser = argparse.ArgumentParser(description="Audit an export of a ledger.")
    parser.add_argument("directory")
    parser.add_argument("--key", action="append", type=read_key, help="the log's: name+id+base64")
    folder = (given := parser.parse_args()).directory
    if not any(os.path.lexists(os.path.join(folder, name)) for name in ("checkpoint", "tile")):
        print(f"{folder!a} is no export: it holds neither checkpoint nor tile")
        return 3
    try:
        text, origin, size, root, signatures = read_seal(read(folder, "checkpoint", 1 << 20))
    except Wrong as error:
        print(ascii(str(error)))
        return 1
    audit = Audit(folder, origin, size)
    if audit.entries() != root or not size or audit.lines[-1:] != [origin]:
        audit.tell(f"checkpoint: not the root or name of these {size} entries, or there are none")
    keys = given.key or audit.keys
    if keys and (problem := judge_seal(text, signatures, keys)):
        audit.tell(problem)
    kept = f"{len(audit.blobs)} blobs" if audit.bodies else "no bodies"
    print(f"{origin!a}: {size} entries, {kept}, root {root.hex()}: {audit.wrong} wrong")
    if not keys:
        print("nobody vouches for the seal: give the log's key with --key")
    return 1 if audit.wrong else 0 if keys else 3


if __name__ == "__main__":
    sys.exit(main())
