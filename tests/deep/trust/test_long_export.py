"""An export of so many entries that a tile above the leaves is full."""

import shutil
from pathlib import Path

import pytest
from plain_export import files_of, read_files
from specimens import unguarded

from tripod.ledger.entry import Draft
from tripod.ledger.errors import LedgerDamagedError
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.trust.export import export

SIZE = 256 * 256


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("long") / "ledger.db")
    store = SQLiteStore(path, create=True)
    drafts = [Draft("ledger.opened", "ledger", "scribe", {"origin": "long.example/1"})]
    drafts += [Draft("made.up", "x", "ann", {}) for _ in range(SIZE)]
    store.append(drafts)
    store.close()
    return path


def test_a_full_tile_of_hashes_is_checked_and_written(tmp_path: Path, long: str) -> None:
    there, database = tmp_path / "x", str(tmp_path / "ledger.db")
    shutil.copy(long, database)
    before, after = (files_of(long, size, bodies=False) for size in (SIZE, SIZE + 1))
    export(database, str(there), before["checkpoint"].decode(), bodies=False)
    assert read_files(str(there)) == before
    (there / "tile/1/000").unlink()
    # The bundles are not read again, and the roots at both sizes come from the node above.
    with unguarded(database) as db:
        (node,) = db.execute("SELECT hash FROM nodes WHERE level = 1 AND number = 7").fetchone()
        db.execute("UPDATE nodes SET hash = zeroblob(32) WHERE level = 1 AND number = 7")
    with pytest.raises(LedgerDamagedError, match=r"tile/1/000 is not that of the sealed tree"):
        export(database, str(there), after["checkpoint"].decode(), bodies=False)
    with unguarded(database) as db:
        db.execute("UPDATE nodes SET hash = ? WHERE level = 1 AND number = 7", (node,))
    export(database, str(there), after["checkpoint"].decode(), bodies=False)
    assert read_files(str(there)) == after
