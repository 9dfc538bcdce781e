"""Folders of runs that an earlier version left, whose names hold no role."""

import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tripod.agents import folder


def test_an_old_folder_is_found_and_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE agents (role TEXT, subject TEXT, attempt INTEGER, state TEXT)")
    rows = [
        ("pythia", "12", 1, "ended"),
        ("pythia", "12", 2, "started"),
        ("nova", "13", 1, "ended"),
    ]
    db.executemany("INSERT INTO agents VALUES (?, ?, ?, ?)", rows)
    team: Any = SimpleNamespace(root=str(tmp_path / "team"), store=SimpleNamespace(db=db))
    base = Path(folder._base())
    for name in ("12-1", "12-2", "13-1"):
        (base / f"{folder._front(team)}{name}").mkdir(parents=True)
    assert os.path.isdir(folder.RunFolder.left(team, "pythia", "12", 2).at)
    new = folder.RunFolder.of(team, "pythia", "12", 2)
    os.mkdir(new.at)
    assert folder.RunFolder.left(team, "pythia", "12", 2).at == new.at
    folder.sweep_run_folders(team)
    left = sorted(path.name.removeprefix(folder._front(team)) for path in base.iterdir())
    assert left == ["12-2", "13-1", "pythia-12-2"]
    db.close()
