"""An export written the plain way, by the format's words alone: the oracle of ours.

It checks nothing, so that a damaged ledger can be exported too, and sealed as if it were sound.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from naive_tree import leaf, root
from sealed import LOG

from tripod.ledger.tlog.note import Note, SigningKey, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal

__all__ = ["files_of", "key_of", "read_files", "rows_of", "seal_note", "write_files"]


def key_of(origin: str) -> SigningKey:
    """A fixed key that bears the name of a log."""
    return SigningKey(origin, LOG.seed)


def rows_of(database: str) -> list[tuple[bytes, Any, Any, Any]]:
    """Header, salt, body and signature record of each row."""
    with closing(sqlite3.connect(database)) as db:
        return db.execute("SELECT header, salt, body, auth FROM entries ORDER BY seq").fetchall()


def seal_note(origin: str, headers: list[bytes]) -> str:
    """The signed head of a log that holds these entries."""
    seal = Seal(origin, len(headers), root([leaf(header) for header in headers]))
    return format_note(Note(format_seal(seal), (sign_seal(seal, key_of(origin)),))).decode()


def files_of(
    database: str, size: int | None = None, *, bodies: bool = True, origin: str | None = None
) -> dict[str, bytes]:
    """Path and bytes of every file of an export of the first ``size`` entries."""
    rows = rows_of(database)[:size]
    headers = [row[0] for row in rows]
    name = json.loads(headers[0])["ledger"] if origin is None else origin
    files = {"checkpoint": seal_note(name, headers).encode()}
    hashes, level = [leaf(header) for header in headers], 0
    for number, width, path in _places(len(headers)):
        start = 256 * number
        part = headers[start : start + width]
        files[f"tile/entries/{path}"] = b"".join(
            len(header).to_bytes(2, "big") + header for header in part
        )
        if bodies:
            lines = [_line(start + at, *row[1:]) for at, row in enumerate(rows[start:][:width])]
            files[f"bodies/{path}.jsonl"] = b"".join(lines)
    while hashes:
        for number, width, path in _places(len(hashes)):
            files[f"tile/{level}/{path}"] = b"".join(hashes[256 * number :][:width])
        full = len(hashes) // 256
        hashes, level = [root(hashes[256 * n : 256 * n + 256]) for n in range(full)], level + 1
    if bodies:
        with closing(sqlite3.connect(database)) as db:
            blobs = dict(db.execute("SELECT lower(hex(sha256)), bytes FROM blobs").fetchall())
        for digest, data in blobs.items():
            if any(digest.encode() in row[2] for row in rows if type(row[2]) is bytes):
                files[f"blobs/{digest}"] = data
    return files


def _places(count: int) -> Iterator[tuple[int, int, str]]:
    """Number, width and name of each tile over so many hashes (fewer than 256,000)."""
    for number in range(count // 256):
        yield number, 256, f"{number:03}"
    if count % 256:
        yield count // 256, count % 256, f"{count // 256:03}.p/{count % 256}"


def _line(seq: int, salt: Any, body: Any, auth: Any) -> bytes:
    signed = b"" if auth is None else b'"auth":"%b",' % auth.hex().encode()
    if salt is None or body is None:
        return b'{%b"seq":%d}\n' % (signed, seq)
    return b'{%b"body":%b,"salt":"%b","seq":%d}\n' % (signed, body, salt.hex().encode(), seq)


def read_files(directory: str) -> dict[str, bytes]:
    """Path and bytes of every file below a folder."""
    found = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            full = os.path.join(folder, name)
            with open(full, "rb") as file:
                found[os.path.relpath(full, directory)] = file.read()
    return found


def write_files(directory: str, files: dict[str, bytes]) -> None:
    """Put files into a folder."""
    for path, data in files.items():
        full = os.path.join(directory, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(data)
