"""An export is what the format says, whichever way it was reached; and it refuses what is false."""

import os
import shutil
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_export import files_of, read_files, rows_of, seal_note, write_files
from specimens import build, unguarded

from tripod.errors import RefusedError
from tripod.ledger.entry import Draft
from tripod.ledger.errors import LedgerDamagedError, LedgerError, MalformedError
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.trust.export import Exported, export

ORIGIN = "long.example/1"
SIZES = (1, 2, 7, 255, 256, 257, 511, 512, 600)


@pytest.fixture(scope="session")
def long(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger of 600 entries, some with blobs."""
    path = str(tmp_path_factory.mktemp("long") / "ledger.db")
    store = SQLiteStore(path, create=True)
    drafts = [Draft("ledger.opened", "ledger", "scribe", {"origin": ORIGIN})]
    for number in range(599):
        blob = f"blob {number % 10}".encode()
        name = {"sha256": sha256(blob).hexdigest(), "size": len(blob)}
        body = {"number": number, "content": name} if number % 7 == 0 else {"number": number}
        drafts.append(Draft("made.up", "x", "ann", body, blobs=(blob,) if number % 7 == 0 else ()))
    store.append(drafts)
    store.close()
    return path


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(str(tmp_path_factory.mktemp("sample")))


@cache
def long_files(long: str, size: int) -> dict[str, bytes]:
    """``files_of`` the long ledger, which no test changes."""
    return files_of(long, size)


def note(database: str, size: int | None = None) -> str:
    return files_of(database, size)["checkpoint"].decode()


@pytest.mark.parametrize("bodies", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_an_export_is_what_the_format_says(
    tmp_path: Path, long: str, size: int, *, bodies: bool
) -> None:
    there = str(tmp_path / "x")
    done = export(long, there, note(long, size), bodies=bodies)
    want = files_of(long, size, bodies=bodies)
    assert read_files(there) == want
    assert done == Exported(size, len(want) - 1, 0)
    modes = {path: (tmp_path / "x" / path).stat().st_mode & 0o777 for path in want}
    assert modes == {
        path: 0o600 if path.startswith(("bodies/", "blobs/")) else 0o644 for path in want
    }


@given(
    sizes=st.lists(st.sampled_from([*SIZES, 3, 8, 254, 300, 599]), min_size=1, max_size=4).map(
        sorted
    ),
    dead=st.integers(0, 40),
)
def test_the_way_to_a_size_leaves_no_trace(
    tmp_path_factory: pytest.TempPathFactory, long: str, sizes: list[int], dead: int
) -> None:
    there = str(tmp_path_factory.mktemp("grown"))
    for number, size in enumerate(sizes):
        seal = long_files(long, size)["checkpoint"]
        if number == 1:  # somebody died while writing, before or behind the seal
            ahead = dict(long_files(long, size))
            del ahead["checkpoint"]
            write_files(there, dict(sorted(ahead.items())[dead:]))
            write_files(there, {"tile/.tripod-new-17": b"cut o"})
            if not dead:
                write_files(there, {"checkpoint": seal})
        export(long, there, seal.decode(), bodies=True)
    files = long_files(long, sizes[-1])
    export(long, there, files["checkpoint"].decode(), bodies=True)
    assert read_files(there) == files


def test_what_is_missing_is_written_again_and_what_is_there_is_not(
    tmp_path: Path, long: str
) -> None:
    there = str(tmp_path / "x")
    export(long, there, note(long), bodies=True)
    assert export(long, there, note(long), bodies=True) == (600, 0, 0)
    for path in ("tile/0/000", "tile/entries/001", "bodies/000.jsonl", "tile/1/000.p/2"):
        os.unlink(f"{there}/{path}")
    assert export(long, there, note(long), bodies=True).written == 4
    assert read_files(there) == files_of(long)


def test_bodies_can_be_added_and_are_never_left_by_accident(tmp_path: Path, sample: str) -> None:
    database, there = f"{sample}/ledger.db", str(tmp_path / "x")
    export(database, there, note(database), bodies=False)
    export(database, there, note(database), bodies=True)
    assert read_files(there) == files_of(database)
    assert os.stat(f"{there}/bodies/000.p/{len(rows_of(database))}.jsonl").st_mode & 0o777 == 0o600
    with pytest.raises(RefusedError, match="holds bodies, and none are asked for"):
        export(database, there, note(database), bodies=False)


def test_a_growing_export_writes_little(tmp_path: Path, long: str) -> None:
    there = str(tmp_path / "x")
    export(long, there, note(long, 511), bodies=False)
    assert export(long, there, note(long, 512), bodies=False) == (512, 3, 3)


# Refusals --------------------------------------------------------------------------------------


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path, sample: str) -> None:
    database = f"{sample}/ledger.db"
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RefusedError, match=r"holds 'thesis\.tex'"):
        export(database, str(tmp_path), note(database), bodies=True)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_never_back_and_never_aside(tmp_path: Path, long: str, sample: str) -> None:
    there = str(tmp_path / "x")
    export(long, there, note(long, 300), bodies=False)
    before = read_files(there)
    headers = [row[0] for row in rows_of(long)]
    for other, says in (
        (note(long, 299), "never back"),
        (note(f"{sample}/ledger.db"), "the seal is of 'sample.example/1', the ledger is"),
        (seal_note(ORIGIN, [*headers[:400], b"x"]), "another root at 401 entries than the seal"),
        (seal_note(ORIGIN, [*headers, b"x"]), "the seal is of 601 entries, the ledger holds 600"),
    ):
        with pytest.raises(RefusedError, match=says):
            export(long, there, other, bodies=False)
    write_files(there, {"checkpoint": seal_note(ORIGIN, [*headers[:200], b"x"]).encode()})
    with pytest.raises(RefusedError, match="another history: at 201 entries"):
        export(long, there, note(long, 300), bodies=False)
    write_files(there, {"checkpoint": seal_note("else.example", headers[:3]).encode()})
    with pytest.raises(RefusedError, match=r"another log, 'else\.example'"):
        export(long, there, note(long, 300), bodies=False)
    for bad in (b"", b"\xff", b"x" * 2_000_000):
        write_files(there, {"checkpoint": bad})
        with pytest.raises(RefusedError, match="is no seal of ours"):
            export(long, there, note(long, 300), bodies=False)
    os.unlink(f"{there}/checkpoint")
    os.mkdir(f"{there}/checkpoint")
    with pytest.raises(RefusedError, match="is no file"):
        export(long, there, note(long, 300), bodies=False)
    write_files(there, {k: v for k, v in before.items() if k != "checkpoint"})


def test_what_is_no_seal_is_refused(tmp_path: Path, long: str) -> None:
    with pytest.raises(MalformedError):
        export(long, str(tmp_path / "x"), "hello\n", bodies=False)


def test_a_symbolic_link_in_the_way_is_not_followed(tmp_path: Path, long: str) -> None:
    there, away = tmp_path / "x", tmp_path / "away"
    (there / "tile").mkdir(parents=True)
    away.mkdir()
    (there / "tile/0").symlink_to(away)
    with pytest.raises(OSError, match="symbolic link"):
        export(long, str(there), note(long, 300), bodies=False)
    assert os.listdir(away) == []


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("UPDATE entries SET body = x'7b7d' WHERE seq = 20", "did not commit to"),
        ("UPDATE entries SET salt = NULL WHERE seq = 20", "half of a body"),
        ("UPDATE entries SET header = x'7b7d' WHERE seq = 300", "is not that of the sealed tree"),
        ("UPDATE nodes SET hash = zeroblob(32) WHERE number = 1", "another root"),
        ("DELETE FROM nodes WHERE number = 1", "sealed tree|stored root|another root"),
        ("DELETE FROM entries WHERE seq = 300", "is missing"),
        ("DELETE FROM blobs", "that entry 1 names is not there"),
    ],
)
def test_what_is_false_is_not_spread(tmp_path: Path, long: str, sql: str, says: str) -> None:
    sound, database = note(long), str(tmp_path / "ledger.db")
    shutil.copy(long, database)
    with unguarded(database) as db:
        db.execute(sql)
    with pytest.raises((LedgerError, RefusedError), match=says):
        export(database, str(tmp_path / "x"), sound, bodies=True)
    assert not os.path.exists(tmp_path / "x/checkpoint")


def test_a_lost_node_below_a_bundle_that_is_there_is_not_spread(tmp_path: Path, long: str) -> None:
    there, database = str(tmp_path / "x"), str(tmp_path / "ledger.db")
    shutil.copy(long, database)
    export(database, there, note(long, 300), bodies=False)
    with unguarded(database) as db:
        db.execute("DELETE FROM nodes WHERE level = 1 AND number = 0")
    # The bundle is not read again, and the root can be computed without the node.
    with pytest.raises(LedgerDamagedError, match="stored root of level 1 from 0 on is missing"):
        export(database, there, note(long), bodies=False)


def test_an_erased_body_has_a_line_of_its_own(tmp_path: Path, sample: str) -> None:
    database, there = str(tmp_path / "ledger.db"), str(tmp_path / "x")
    shutil.copy(f"{sample}/ledger.db", database)
    with unguarded(database) as db:
        db.execute("UPDATE entries SET body = NULL, salt = NULL WHERE seq = 20")
    export(database, there, note(database), bodies=True)
    assert read_files(there) == files_of(database)
    assert b'\n{"seq":20}\n' in next(v for k, v in read_files(there).items() if "jsonl" in k)
