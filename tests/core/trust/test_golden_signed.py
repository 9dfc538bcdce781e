"""A signed ledger of November 2026: what was sound then is sound now, to the byte."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from plain_export import files_of, key_of, read_files, write_files

from tripod.ledger.actors import actor_statement, parse_actor_record, sign_actor_statements
from tripod.ledger.tlog.note import SigningKey
from tripod.verify.export import ExportFiles, load_export
from tripod.verify.run import open_run, run

GOLDEN = Path(__file__).parents[2] / "golden/signed"
TOOL = Path(__file__).parents[3] / "tools/audit_export.py"
ORIGIN = "golden.example/signed"
LOG = key_of(ORIGIN).verifier()
SEEDS = {
    "actor-1-ann": 1,
    "actor-1-bob": 2,
    "actor-2-ann": 3,
    "actor-1-scribe": 4,
    "actor-3-bob": 5,
}

Row = tuple[dict[str, Any], bytes | None, bytes | None, bytes | None]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The golden ledger in a database of this version."""
    path = str(tmp_path_factory.mktemp("golden") / "ledger.db")
    assert load_export(ExportFiles(str(GOLDEN)), path, [LOG]).tally.found == {}
    return path


@pytest.fixture(scope="module")
def rows(database: str) -> list[Row]:
    with closing(sqlite3.connect(database)) as db:
        sql = "SELECT header, salt, body, auth FROM entries ORDER BY seq"
        return [(json.loads(header), *rest) for header, *rest in db.execute(sql)]


def test_both_verifiers_find_it_sound() -> None:
    with open_run(str(GOLDEN), keys=[LOG]) as evidence:
        report = run(evidence)
    assert [f.message for o in report.outcomes for f in o.findings] == []
    told = next(o for o in report.outcomes if o.check == "writers-authorised")
    assert told.coverage == {"signed": 13, "unsigned": 0, "keys": 5}
    command = (sys.executable, str(TOOL), str(GOLDEN), "--key", LOG.format())
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_it_is_written_again_to_the_byte(database: str, tmp_path: Path) -> None:
    write_files(str(tmp_path), files_of(database))
    assert read_files(str(tmp_path)) == read_files(str(GOLDEN))


def test_every_signature_is_made_again(rows: list[Row]) -> None:
    held: dict[str, SigningKey] = {}
    together: dict[bytes, tuple[SigningKey, list[bytes]]] = {}
    for head, _, body, auth in rows:
        if head["kind"] == "actor.enrolled":
            data = json.loads(body or b"")
            key = SigningKey(data["handle"], bytes([SEEDS[head["id"]]]) * 32)
            assert key.verifier().format() == data["vkey"]
            held[key.name] = key
        if auth is not None:
            together.setdefault(auth, (held[head["actor"]], []))[1].append(actor_statement(head))
    assert {len(stated) for _, stated in together.values()} == {1, 2, 3}
    for auth, (key, stated) in together.items():
        assert sign_actor_statements(stated, key) == auth
        assert parse_actor_record(auth).key_id == key.verifier().key_id


def test_it_holds_what_its_page_says(rows: list[Row]) -> None:
    changes = [head["id"] for head, *_ in rows if head["kind"].startswith("actor.")]
    assert sorted(changes) == sorted([*SEEDS, "actor-2-bob"])
    page = (GOLDEN.parent / "signed.README.md").read_text(encoding="utf-8")
    assert all(f"`{change}`" in page for change in changes)
    erased = [head for head, _, body, auth in rows if body is None and auth is not None]
    assert [head["kind"] for head in erased] == ["chat.sent", "bus.published"]
    bare = [
        head["actor"] for head, _, body, auth in rows if auth is None and head["actor"] != "tripod"
    ]
    assert set(bare) == {"bob", "eve"}
