"""The index over decisions finds what reading finds, and is never in the way."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_repo import Git
from hypothesis import given
from hypothesis import strategies as st
from story import Story, folder
from strategies import FEWER

from tripod.decisions import index as scribe_search
from tripod.decisions import reader as decisions_read
from tripod.decisions import writer as decisions_log
from tripod.ledger.locator import APART
from tripod.ledger.places import DATABASE, SEARCH
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

SECRET = "hunter2 is the password of the shop"  # gitleaks:allow - made up


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index over a few decisions already."""
    monkeypatch.setattr(scribe_search, "MANY", 2)


@pytest.fixture
def story() -> Iterator[Story]:
    with folder() as root:
        story = Story(root)
        for number in range(6):
            log(story, f"Decision {number} about files")
        yield story


def log(story: Story, title: str, rationale: str = "because") -> int:
    with story.team() as team:
        decisions_log.log(team, decisions_log.DecisionRequest(title, ["ann"], rationale))
        return team.store.head().size - 2


def found(story: Story, text: str) -> list[str]:
    with story.team() as team:
        return [decision.title for decision in decisions_read.query(team, text)]


def index_of(story: Story) -> Path:
    return story.root / SEARCH


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many decisions each later search reads one by one."""
    counts: list[int] = []
    likely = scribe_search.likely_by_index

    def counted(*arguments: object) -> object:
        seqs = likely(*arguments)  # type: ignore[arg-type]
        counts.append(len(seqs))
        return seqs

    monkeypatch.setattr(scribe_search, "likely_by_index", counted)
    return counts


def test_only_what_may_hold_the_words_is_read(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = reads(monkeypatch)
    assert found(story, "DECISION 3") == ["Decision 3 about files"]
    assert found(story, '"3 about"') == ["Decision 3 about files"]
    assert len(found(story, "iles")) == 6
    log(story, "The newest about files")
    assert found(story, '"3 about"') == ["Decision 3 about files"]
    assert found(story, "newest") == ["The newest about files"]
    assert counts == [6, 1, 6, 2, 1]


def test_few_decisions_and_short_words_need_none(tmp_path: Path) -> None:
    story = Story(tmp_path)
    for number in range(2):
        log(story, f"T{number}")
    assert found(story, "because") == ["T0", "T1"]
    log(story, "T2")
    assert found(story, "t2") == ["T2"]
    assert not index_of(story).exists()
    found(story, "because")
    assert index_of(story).exists()


TEXTS = st.text("abB \"ß'*ﬁÄä-^:\n()", min_size=1, max_size=8)


@FEWER
@given(st.lists(TEXTS, min_size=3, max_size=5), st.lists(TEXTS, min_size=1, max_size=5))
def test_it_finds_what_reading_finds(titles: list[str], texts: list[str]) -> None:
    with folder() as root:
        story = Story(root)
        for number, title in enumerate(titles):
            log(story, f"{number} {' '.join(title.split())}")
        with pytest.MonkeyPatch.context() as patch:
            for text in texts:
                patch.setattr(scribe_search, "MANY", 2)
                by_index = found(story, text)
                patch.setattr(scribe_search, "MANY", 1000)
                assert found(story, text) == by_index


def test_what_is_redacted_is_gone_from_it(story: Story) -> None:
    seq = log(story, "Open the shop", SECRET)
    assert found(story, "hunter2") == ["Open the shop"]
    with story.team() as team:
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "a password", "ann"))
    assert not index_of(story).exists()
    assert found(story, "hunter2") == []
    assert len(found(story, "decision")) == 6
    assert b"hunter2" not in index_of(story).read_bytes()


def test_in_a_repository_it_lies_beside_the_ledger_and_goes_with_what_is_erased(
    tmp_path: Path,
) -> None:
    git = Git(tmp_path / "shop")
    adoption.init(str(git.root), key=False)
    apart = git.root / ".git" / APART
    with Team(git.root) as team:
        for number in range(6):
            request = decisions_log.DecisionRequest(f"Decision {number}", ["ann"], SECRET)
            decisions_log.log(team, request)
        assert len(list(decisions_read.query(team, "hunter2"))) == 6
        assert (apart / SEARCH).exists()
        assert not (git.root / ".nbs" / SEARCH).exists()
        # A copy that somebody put aside is named; nobody but a person removes it.
        team.store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(apart / DATABASE, apart / f"{DATABASE}.replaced-1")
        erased = redaction.redact(
            team, redaction.RedactionRequest((), "hunter2", "a password", "ann")
        )
    assert erased.left == [f"../.git/{APART}/{DATABASE}.replaced-1"]
    assert not (apart / SEARCH).exists()
    assert b"hunter2" not in (apart / DATABASE).read_bytes()


def test_one_of_another_ledger_is_made_anew(story: Story) -> None:
    found(story, "decision")
    with folder() as root:
        other = Story(root)
        for number in range(6):
            log(other, f"Another {number}")
        index_of(other).write_bytes(index_of(story).read_bytes())
        assert len(found(other, "another")) == 6
        assert found(other, "decision") == []


@pytest.mark.parametrize(
    "data", [b"", b"no database at all" * 99, b"SQLite format 3\0" + b"x" * 99]
)
def test_a_damaged_one_is_in_nobodys_way(story: Story, data: bytes) -> None:
    found(story, "decision")
    index_of(story).write_bytes(data)
    for _ in range(2):
        assert len(found(story, "decision")) == 6
        assert found(story, '"n 4"') == ["Decision 4 about files"]


def test_a_table_of_it_that_is_gone_is_in_nobodys_way(story: Story) -> None:
    import sqlite3

    for table in ("cursor", "said"):
        found(story, "decision")
        with sqlite3.connect(index_of(story)) as db:
            db.execute(f"DROP TABLE {table}")
        db.close()
        assert len(found(story, "decision")) == 6


def test_where_sqlite_has_no_such_index_all_is_read(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribe_search, "_SCHEMA", "CREATE VIRTUAL TABLE said USING fts99 (text)")
    assert len(found(story, "decision")) == 6
    assert found(story, '"n 4"') == ["Decision 4 about files"]


def test_where_it_cannot_be_written_all_is_read(story: Story) -> None:
    index_of(story).mkdir()
    assert len(found(story, "decision")) == 6


def test_who_may_not_read_the_ledger_may_not_read_it(story: Story) -> None:
    (story.root / "ledger.db").chmod(0o600)
    found(story, "decision")
    assert os.stat(index_of(story)).st_mode & 0o777 == 0o600


def test_nobody_takes_it_for_a_file_of_the_team(story: Story) -> None:
    found(story, "decision")
    with story.team() as team:
        assert adoption.sync(team).left_alone == []
    report = run(collect(str(story.root)))
    assert SEARCH not in repr(report)
