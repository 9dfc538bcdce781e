"""Erased bodies go from an export, its headers stay; doing it again changes nothing."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from tripod.ledger.entry import format_canonical
from tripod.ledger.tlog import tiles
from tripod.projections.disk import TEMPORARY
from tripod.trust.export import forget_exported_bodies

SECRET = b"a secret in a blob " * 1000
SHARED = b"what two entries say " * 1000


def line(seq: int, body: dict[str, object]) -> bytes:
    return format_canonical({"body": body, "salt": "00" * 32, "seq": seq}) + b"\n"


def named(blob: bytes) -> dict[str, object]:
    return {"text": {"sha256": sha256(blob).hexdigest(), "size": len(blob)}, "v": 1}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """An export by hand: a full bundle of 256, a partial one, and blobs."""
    bodies = {seq: line(seq, {"text": {"text": f"says {seq}"}, "v": 1}) for seq in range(260)}
    bodies[7], bodies[8], bodies[257] = (line(7, named(SECRET)), line(8, named(SHARED)),
                                         line(257, named(SHARED)))  # fmt: skip
    for path, seqs in (("bodies/000.jsonl", range(256)), ("bodies/001.p/4.jsonl", range(256, 260))):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"".join(bodies[seq] for seq in seqs))
    (tmp_path / "blobs").mkdir()
    for blob in (SECRET, SHARED):
        (tmp_path / "blobs" / sha256(blob).hexdigest()).write_bytes(blob)
    (tmp_path / "blobs/README").write_text("none of ours")
    (tmp_path / "checkpoint").write_text("the seal")
    (tmp_path / "tile/entries").mkdir(parents=True)
    (tmp_path / "tile/entries/000").write_bytes(b"headers")
    return tmp_path


def state(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_bodies_and_their_blobs_go_and_all_else_stays(export: Path) -> None:
    before = state(export)
    mode = 0o640
    os.chmod(export / "bodies/000.jsonl", mode)
    assert forget_exported_bodies(str(export), {7, 256, 4711}) == (2, 1)
    after = state(export)
    gone = f"blobs/{sha256(SECRET).hexdigest()}"
    assert before.keys() - after.keys() == {gone}
    lines = after["bodies/000.jsonl"].splitlines()
    assert [json.loads(text)["seq"] for text in lines] == list(range(256))
    assert lines[7] == b'{"seq":7}'
    assert after["bodies/001.p/4.jsonl"].startswith(b'{"seq":256}\n{"body":')
    same = after.keys() - {"bodies/000.jsonl", "bodies/001.p/4.jsonl"}
    assert all(after[path] == before[path] for path in same)
    assert (export / "bodies/000.jsonl").stat().st_mode & 0o777 == mode
    assert not list(export.rglob(f"{TEMPORARY}*"))


def test_a_blob_goes_with_the_last_body_that_names_it(export: Path) -> None:
    assert forget_exported_bodies(str(export), [8]) == (1, 0)
    assert forget_exported_bodies(str(export), [257]) == (1, 1)


def test_twice_changes_nothing_and_finishes_what_was_interrupted(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", lambda *_: 1 // 0)
        with pytest.raises(ArithmeticError):
            forget_exported_bodies(str(export), [7])
    assert forget_exported_bodies(str(export), [7]) == (0, 1)
    before = state(export)
    assert forget_exported_bodies(str(export), [7]) == (0, 0)
    assert state(export) == before


def test_a_failed_write_leaves_the_bundle_and_nothing_beside_it(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(export)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lambda *_: 1 // 0)
        with pytest.raises(ArithmeticError):
            forget_exported_bodies(str(export), [7])
    assert state(export) == before


def test_an_export_without_bodies_is_left_alone(tmp_path: Path) -> None:
    assert forget_exported_bodies(str(tmp_path / "nowhere"), [1]) == (0, 0)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / ("ab" * 32)).write_bytes(b"x")
    (tmp_path / "checkpoint").write_text("the seal")
    before = state(tmp_path)
    assert forget_exported_bodies(str(tmp_path), [1]) == (0, 0)
    assert state(tmp_path) == before


def test_a_bundle_has_a_limit(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (export / "bodies/000.jsonl").stat().st_size
    monkeypatch.setattr(tiles, "MAX_LINES", size - 1)
    with pytest.raises(OSError, match=f"more than {size - 1} bytes are no bodies"):
        forget_exported_bodies(str(export), [7])
    monkeypatch.setattr(tiles, "MAX_LINES", size)
    assert forget_exported_bodies(str(export), [7]) == (1, 1)
