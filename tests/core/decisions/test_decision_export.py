"""Decisions are written into the work tree on purpose, and over nothing but such a file."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from doors.inside import Done, run
from story import BEGIN, Clock

from tripod.chat import writer as chat_send
from tripod.decisions.export import DecisionExport, export_decisions
from tripod.decisions.writer import DecisionRequest, log
from tripod.errors import NotFoundError, RefusedError
from tripod.projections.decisions.format import count_decision_headings
from tripod.team import adoption
from tripod.team.team import Team


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """A team with two decisions, an hour apart; the second takes the place of the first."""
    clock = Clock(BEGIN)
    with clock.running():
        adoption.init(str(tmp_path), project="shop", origin="example.org/shop", key=False)
        with Team(tmp_path) as team:
            chat_send.create(team, "live")
            chat_send.send(team, "live", "ann", "Let us open on Monday.")
            first = decide(team, "Open on Monday")
            clock.move(3600)
            decide(team, "Open on Tuesday", supersedes=first)
        yield tmp_path


def decide(team: Team, title: str, supersedes: str | None = None) -> str:
    request = DecisionRequest(title, ("ann",), "Agreed.", ("live.chat:~L7",), supersedes=supersedes)
    return log(team, request).id


def said(where: Path, *words: str, code: int = 0) -> Done:
    done = run(where, *words)
    assert done.code == code, done
    return done


def exported(shop: Path, **options: int | str) -> DecisionExport:
    with Team(shop) as team:
        return export_decisions(team, str(shop / "DECISIONS.md"), **options)  # type: ignore[arg-type]


def test_reviewers_get_the_decisions_and_how_far_the_ledger_was(shop: Path) -> None:
    (shop / "docs").mkdir()
    done = said(shop, "scribe", "export", "docs")
    text = (shop / "docs/decisions.md").read_bytes()
    with Team(shop) as team:
        head = team.store.head()
    root = head.root.hex()
    assert f"Ledger example.org/shop: {head.size} entries, root {root}\n".encode() in text
    line = f"Exported: docs/decisions.md, 2 decisions of {head.size} entries, root {root}\n"
    assert done.out.decode() == line
    assert count_decision_headings(text) == 2
    assert text.index(b"Open on Monday") < text.index(b"- **Today:** superseded by D-")
    assert text.index(b"- **Today:**") < text.index(b"Open on Tuesday")
    assert said(shop, "verify").out
    assert not any(path.name.startswith(".") for path in (shop / "docs").iterdir())


def test_the_same_ledger_gives_the_same_bytes(shop: Path) -> None:
    assert exported(shop).is_written
    first = (shop / "DECISIONS.md").read_bytes()
    assert not exported(shop).is_written
    (shop / "DECISIONS.md").unlink()
    assert exported(shop).is_written
    assert (shop / "DECISIONS.md").read_bytes() == first
    # No decision is new: the tree of the work stays as it is.
    said(shop, "chat", "send", "live", "ann", "Fine.")
    assert not exported(shop).is_written
    assert (shop / "DECISIONS.md").read_bytes() == first
    with Team(shop) as team:
        decide(team, "Open on Wednesday")
    done = exported(shop)
    assert (done.is_written, done.decisions) == (True, 3)
    assert count_decision_headings((shop / "DECISIONS.md").read_bytes()) == 3


def test_only_those_since_or_of_a_log(shop: Path) -> None:
    with Team(shop) as team:
        (first, second) = [id_ for (id_,) in team.store.db.execute("SELECT id FROM pieces")]
    assert exported(shop, since=int(second[2:])).decisions == 1
    text = (shop / "DECISIONS.md").read_bytes()
    assert f"### {first}".encode() not in text
    assert b"1 decision logged since 20" in text
    assert exported(shop, since=int(second[2:]) + 1).decisions == 0
    with pytest.raises(NotFoundError):
        exported(shop, log="none.md")
    assert exported(shop, log="log.md").decisions == 2
    value = json.loads(said(shop, "scribe", "export", "D.md", "--since", "1d", "--json").out)
    assert value.keys() == {"version", "path", "decisions", "size", "root", "is_written"}


def test_what_no_export_wrote_is_kept(shop: Path) -> None:
    path = shop / "DECISIONS.md"
    path.write_bytes(b"# Ours\n")
    with pytest.raises(RefusedError, match="no export wrote it"):
        exported(shop)
    assert path.read_bytes() == b"# Ours\n"
    path.unlink()
    exported(shop)
    path.write_bytes(path.read_bytes().replace(b"Agreed.", b"Refused.", 1))
    changed = path.read_bytes()
    with pytest.raises(RefusedError, match="was changed since an export wrote it"):
        exported(shop)
    assert path.read_bytes() == changed
    path.rename(shop / "moved.md")
    path.symlink_to("moved.md")
    assert "is a symbolic link" in said(shop, "scribe", "export", "DECISIONS.md", code=1).err
    assert "in the team directory" in said(shop, "scribe", "export", ".nbs/scribe", code=1).err
    assert "No such file" in said(shop, "scribe", "export", "no/where.md", code=1).err
    os.mkfifo(shop / "pipe")
    assert said(shop, "scribe", "export", "pipe", code=1).err
