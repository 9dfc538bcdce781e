"""Two ledgers side by side: where they part, what only one has, and what the seals prove."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import clones
import pytest
from damaged import scribble
from doors.inside import run
from git_repo import Git
from hypothesis import given
from hypothesis import strategies as st
from specimens import build, copy, database, forge, read, unguarded

from tripod.chat import writer as chat_send
from tripod.ledger import RawEntry
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.peers.record import write_record_ref
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.verify.anchors.git import Repository
from tripod.verify.difference import LedgerSide, compare_ledgers
from tripod.verify.rows import RowReader


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A team with a key, sealed some entries before its end, and the folder of private keys."""
    home = str(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIPOD_HOME", home)
        root = build(str(tmp_path_factory.mktemp("sound")))
        with Team(root) as team:
            sealing.new_sealing_key(team)
            chat_send.send(team, "live", "ann", "after the seal")
        with closing(sqlite3.connect(database(root))) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return root, home


@pytest.fixture
def folder(made: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two copies of the team: ``a/.nbs`` and ``b/.nbs``."""
    shutil.copytree(made[1], tmp_path / "home")
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "home"))
    for name in "ab":
        (tmp_path / name).mkdir()
        copy(made[0], str(tmp_path / name))
    return tmp_path


def root_of(folder: Path, name: str) -> str:
    return f"{folder}/{name}/.nbs"


def diff(folder: Path, a: str = "a", b: str = "b", *options: str) -> dict[str, Any]:
    done = run(folder, "diff", a, b, "--json", *options)
    assert done.code in (0, 1), done.err
    found: dict[str, Any] = json.loads(done.out)
    assert done.code == (not found["same"])
    return found


def say(folder: Path, name: str, text: str) -> None:
    with Team(root_of(folder, name)) as team:
        chat_send.send(team, "live", "ann", text)


def size_of(folder: Path, name: str) -> int:
    with Team(root_of(folder, name)) as team:
        return team.store.size


# The same ---------------------------------------------------------------------------------------


def test_a_team_its_copy_and_its_backup_are_the_same(folder: Path) -> None:
    size = size_of(folder, "a")
    assert run(folder / "a", "backup", "../copy.db").code == 0
    for b in ("a", "b", "b/.nbs", "copy.db", "b/.nbs/ledger.db"):
        found = diff(folder, "a", b)
        assert (found["same"], found["common"], found["first"]) == (True, size, None)
        assert found["a"]["only"] == found["b"]["only"] == 0
    assert f"They are the same: {size} entries\n" in run(folder, "diff", "a", "b").out.decode()


@pytest.mark.parametrize("bodies", [True, False])
def test_an_export_is_what_was_sealed_and_no_more(folder: Path, *, bodies: bool) -> None:
    options = ("--bodies",) if bodies else ()
    assert run(folder / "a", "export", "../out", *options).code == 0
    sealed = diff(folder, "out", "a")
    size = sealed["a"]["size"]
    assert (sealed["common"], sealed["first"]) == (size, size)
    assert sealed["contents_count"] == 0
    assert sealed["a"]["entry"] is None
    assert sealed["a"]["only"] == 0
    assert sealed["b"]["only"] == sealed["b"]["size"] - size > 0
    assert sealed["a"]["sealed"] == (size if bodies else None)  # the key is in a body
    said = "A has headers alone, without what was said: only headers are compared\n"
    assert (said in run(folder, "diff", "out", "a").out.decode()) != bodies
    again = diff(folder, "a", "out")
    assert (again["a"], again["b"]) == (
        {**sealed["b"], "path": "a"},
        {**sealed["a"], "path": "out"},
    )


# Where they part --------------------------------------------------------------------------------


def test_a_copy_that_lags_is_the_beginning_of_the_other(folder: Path) -> None:
    size = size_of(folder, "b")
    say(folder, "a", "one more")
    found = diff(folder)
    assert (found["first"], found["common"]) == (size, size)
    assert (found["a"]["entry"]["text"], found["b"]["entry"]) == ("live: one more", None)
    assert (found["a"]["only"], found["b"]["only"]) == (2, 0)
    text = run(folder, "diff", "a", "b").out.decode()
    assert f"A begins with all {size} entries of B, and goes on" in text
    assert (
        f"B begins with all {size} entries of A, and goes on"
        in run(folder, "diff", "b", "a").out.decode()
    )


def test_two_copies_that_both_went_on_part_where_they_did(folder: Path) -> None:
    size = size_of(folder, "a")
    say(folder, "a", "yes")
    say(folder, "b", "no")
    say(folder, "b", "never")
    found = diff(folder)
    assert (found["first"], found["common"]) == (size, size)
    assert found["differs"] == ["header", "id"]
    assert [found[side]["entry"]["text"] for side in "ab"] == ["live: yes", "live: no"]
    assert [found[side]["only"] for side in "ab"] == [2, 4]
    assert not found["forked"]
    assert [line for line in found["proof"] if "no seal covers" in line] == [
        "A: no seal covers where it parts from B",
        "B: no seal covers where it parts from A",
    ]
    text = run(folder, "diff", "a", "b", "-n", "1").out.decode()
    assert f"The first {size} entries are the same\nEntry {size} differs (header, id):" in text
    assert "live: yes" in text
    assert "Only in B: 4 of its" in text
    assert "   ... and 3 more" in text


def test_one_key_that_sealed_two_histories_is_proved(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder / "home", folder / "other")
    for name, home in (("a", "home"), ("b", "other")):
        monkeypatch.setenv("TRIPOD_HOME", str(folder / home))
        say(folder, name, f"in {name}")
        assert run(folder / name, "seal").code == 0
    found = diff(folder)
    assert found["forked"]
    assert "One key sealed both histories" in found["proof"][-1]
    assert "has others in their place" in found["proof"][0]


def test_entries_that_both_have_in_another_order_belong_to_neither_alone(folder: Path) -> None:
    """Of two that adopted the same files, ids say what is the same, places do not."""
    rows = read(database(root_of(folder, "b")))
    rows[-1], rows[-2] = rows[-2], rows[-1]
    forge(root_of(folder, "b"), rows)
    found = diff(folder)
    assert found["first"] == len(rows) - 2
    assert (found["a"]["only"], found["b"]["only"]) == (0, 0)


def test_two_ledgers_have_nothing_in_common(folder: Path) -> None:
    (folder / "other").mkdir()
    assert run(folder / "other", "init").code == 0
    found = diff(folder, "a", "other")
    assert (found["first"], found["common"]) == (0, 0)
    assert found["b"]["only"] == found["b"]["size"]


# What was changed -------------------------------------------------------------------------------


def test_a_rewritten_entry_does_not_fit_the_seal_any_more(folder: Path) -> None:
    rows = read(database(root_of(folder, "b")))
    rows[9].head["actor"] = "eve"
    forge(root_of(folder, "b"), rows)
    found = diff(folder)
    assert (found["first"], found["differs"]) == (9, ["header"])
    assert found["b"]["entry"]["actor"] == "eve"
    assert found["a"]["broken"] is None
    assert found["b"]["broken"] == found["a"]["sealed"]
    assert any(line.startswith("B: the seal over") for line in found["proof"])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("body = CAST('{\"v\":1}' AS BLOB)", "body"),
        ("salt = zeroblob(32)", "salt"),
        ("auth = CAST('{}' AS BLOB)", "auth"),
        ("body = NULL, salt = NULL", "erased in B"),
    ],
)
def test_what_lies_beside_a_header_is_compared_too(folder: Path, change: str, what: str) -> None:
    with unguarded(database(root_of(folder, "b"))) as db:
        db.execute(f"UPDATE entries SET {change} WHERE seq = 7")
    found = diff(folder)
    assert found["first"] is None
    assert found["contents"] == [{"seq": 7, "differs": what}]
    assert not found["same"]
    text = run(folder, "diff", "a", "b").out.decode()
    assert f"Entry 7 has the same header in both, and differs beside it: {what}" in text
    swapped = diff(folder, "b", "a")["contents"][0]["differs"]
    assert swapped == what.replace("B", "A")


@pytest.mark.parametrize(
    ("change", "what"),
    [("UPDATE blobs SET bytes = zeroblob(9)", "blob"), ("DELETE FROM blobs", "no blob in B")],
)
def test_a_long_text_is_compared_as_it_is_stored(folder: Path, change: str, what: str) -> None:
    say(folder, "a", "long " * 8000)
    shutil.rmtree(folder / "b")
    (folder / "b").mkdir()
    copy(root_of(folder, "a"), str(folder / "b"))
    assert diff(folder)["same"]
    with unguarded(database(root_of(folder, "b"))) as db:
        db.execute(change)
    found = diff(folder)
    assert (found["first"], {one["differs"] for one in found["contents"]}) == (None, {what})
    swapped = diff(folder, "b", "a")["contents"][0]["differs"]
    assert swapped == what.replace("B", "A")


def test_a_redaction_on_one_side_is_seen_as_that(folder: Path) -> None:
    size = size_of(folder, "b")
    with Team(root_of(folder, "a")) as team:
        seq = next(e.seq for e in team.store.read() if e.kind == "chat.sent")
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "asked to", "ann"))
    found = diff(folder)
    assert {"seq": seq, "differs": "erased in A"} in found["contents"]
    assert (found["first"], found["b"]["only"]) == (size, 0)


def test_a_missing_entry_is_where_they_part(folder: Path) -> None:
    with unguarded(database(root_of(folder, "b"))) as db:
        db.execute("DELETE FROM entries WHERE seq = 9")
    found = diff(folder)
    assert (found["first"], found["b"]["entry"]["seq"]) == (9, 10)
    assert (found["a"]["only"], found["b"]["only"]) == (1, 0)
    assert found["b"]["sealed"] is None


CHANGES: list[dict[str, Any]] = [
    {"header": b"{}"},
    {"body": b"{}"},
    {"body": None, "salt": None},
    {"id": "x"},
    {"kind": "x"},
]


class Altered(RowReader):
    """The rows of a ledger, cut and changed."""

    def __init__(self, db: sqlite3.Connection, rows: list[RawEntry]) -> None:
        super().__init__(db)
        self.rows = rows

    def raw(self, *_: Any, kinds: Any = (), **__: Any) -> Iterator[RawEntry]:
        return iter([row for row in self.rows if not kinds or row.kind in kinds])

    def seq_of(self, entry_id: str) -> int | None:
        return next((row.seq for row in self.rows if row.id == entry_id), None)


@given(data=st.data())
def test_the_first_difference_is_the_first(made: tuple[str, str], data: Any) -> None:
    """Over any cut and any change of a copy, against a look at the bare rows."""
    with closing(read_only(database(made[0]))) as db:
        rows = list(SQLiteReader(db).raw())
        sides = []
        for _ in range(2):
            some = rows[: data.draw(st.integers(0, len(rows)))]
            for at in data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=2)):
                change = data.draw(st.sampled_from(CHANGES))
                some[at : at + 1] = [row._replace(**change) for row in some[at : at + 1]]
            sides.append(LedgerSide(Altered(db, some)))
        found = compare_ledgers(sides[0], sides[1], 5)
    one, two = (list(side.ledger.raw()) for side in sides)
    heads = [[(r.seq, r.id, r.kind, r.stream, r.header) for r in rows] for rows in (one, two)]
    same = 0
    while same < min(map(len, heads)) and heads[0][same] == heads[1][same]:
        same += 1
    assert found.common == same
    assert found.first == (None if heads[0] == heads[1] else same)
    assert found.same == (one == two)
    assert [seq for seq, _ in found.contents] == [
        r.seq for r, other in zip(one[:same], two[:same], strict=True) if r != other
    ]
    for side, mine, others in zip(found.sides, (one, two), (two, one), strict=True):
        assert side.only == sum(r.id not in {o.id for o in others} for r in mine[same:])


# What cannot be compared ------------------------------------------------------------------------


def test_what_cannot_be_read_cannot_be_compared(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "text").write_text("no database")
    (folder / "zero.db").write_bytes(b"")
    for other in ("nowhere", "empty", "text", "zero.db"):
        for pair in (("a", other), (other, "a")):
            done = run(folder, "diff", *pair)
            assert done.code == 3, (pair, done)
            assert done.out == b""
            assert other in done.err


def test_an_entry_before_the_first_is_not_passed_over(folder: Path) -> None:
    with unguarded(database(root_of(folder, "b"))) as db:
        names = "kind, stream, header, salt, body, auth"
        db.execute(
            f"INSERT INTO entries (seq, id, {names}) SELECT -1, 'x', {names} FROM entries"
            " WHERE seq = 7"
        )
    for sides in ("a", "b"), ("b", "a"):
        done = run(folder, "diff", *sides)
        assert (done.code, done.out) == (3, b"")
        assert "it holds an entry of the number -1" in done.err


def test_damaged_pages_are_no_difference_and_do_not_hide_one(folder: Path) -> None:
    path = database(root_of(folder, "b"))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = db.execute("PRAGMA page_count").fetchone()[0]
    whole = Path(path).read_bytes()
    codes = set()
    for page in range(4, pages + 1):
        Path(path).write_bytes(whole)
        scribble(path, page)
        done = run(folder, "diff", "a", "b")
        codes.add(done.code)
        assert done.code in (0, 1, 3), done
        assert b"begins with all" not in done.out  # what cannot be read may be the same
        told = "it cannot be told whether they differ: entry", "malformed"
        assert done.code != 3 or any(words in done.err for words in told)
    assert 3 in codes
    rows = read(database(root_of(folder, "a")))
    rows[1].head["actor"] = "eve"
    forge(root_of(folder, "a"), rows)
    done = run(folder, "diff", "a", "b")
    assert done.code == 1
    assert "The first 1 entries are the same" in done.out.decode()


def test_nothing_is_changed(folder: Path) -> None:
    def state() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.name != "ledger.db-shm"
        }

    say(folder, "a", "one more")
    diff(folder)
    before = state()
    diff(folder)
    assert state() == before


# Git refs ----------------------------------------------------------------------------------------

REF = "refs/tripod/ann-0123456789abcdef"


@pytest.fixture
def shop(folder: Path) -> Git:
    """A repository with a team whose record is on a ref, and one entry more than that."""
    git = Git(folder / "shop")
    adoption.init(str(git.root), project="shop", origin="example.org/shop", key=True)
    with Team(git.root) as team:
        chat_send.create(team, "live")
        note = sealing.seal(team, "asked")
        assert note is not None
        with Repository(f"{git.root}/.nbs") as repository:
            write_record_ref(repository, REF, team.store.path, note)
        chat_send.send(team, "live", "ann", "after the record")
    return git


def test_a_record_on_a_ref_is_a_side(shop: Git) -> None:
    found = diff(shop.root, REF, ".")
    assert (found["same"], found["b"]["size"] > found["a"]["size"]) == (False, True)
    assert found["common"] == found["first"] == found["a"]["size"] == found["a"]["sealed"]
    assert (found["a"]["path"], found["a"]["only"]) == (REF, 0)
    assert diff(shop.root, REF, REF)["same"]
    assert shop("status", "--porcelain") == ""
    (shop.root / "src").mkdir()
    assert diff(shop.root / "src", REF, "..")["common"] == found["common"]


def test_what_a_replica_merged_of_another_is_in_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "home"))
    ann, name, _ = clones.begin(tmp_path / "ann")
    bob, _, _ = clones.begin(tmp_path / "bob", "example.com/bob")
    clones.record(ann, name)
    clones.fetch(bob, ann)
    clones.merge(bob, f"refs/tripod-remotes/ann/{name}")
    size = clones.say(ann, "Tea!")
    with Team(bob.root) as team:
        kinds = [one.kind for one in team.store.read()]
    merged = kinds.count("peer.entry")
    assert merged > 5
    for a, b in (("ann", "bob"), ("bob", "ann")):
        found = diff(tmp_path, a, b)
        ours, theirs = (found["a"], found["b"]) if a == "ann" else (found["b"], found["a"])
        assert found["first"] == 0
        assert (ours["only"], theirs["only"]) == (size - merged, len(kinds) - merged)
        text = run(tmp_path, "diff", a, b).out.decode()
        assert "B is another ledger" in text
        assert "others in their place" not in text


def test_a_ref_that_holds_no_record_is_refused_in_words(shop: Git) -> None:
    shop.commit("checkpoint", b"nonsense\n")
    shop("update-ref", "refs/tripod/nonsense", "HEAD")
    shop.commit("checkpoint", b"")
    seal = shop("cat-file", "blob", f"{REF}:checkpoint") + "\n"
    shop.commit("checkpoint", seal.encode())
    shop("update-ref", "refs/tripod/bare", "HEAD")
    for name, says in (
        ("nowhere", "there is no refs/tripod/nowhere in "),
        ("nonsense", "refs/tripod/nonsense cannot be read as a record: "),
        ("bare", "refs/tripod/bare cannot be read as a record: tile/"),
        ("../../HEAD", "there is no "),
    ):
        done = run(shop.root, "diff", f"refs/tripod/{name}", ".")
        assert (done.code, says in done.err) == (3, True), done
    done = run(shop.root.parent, "diff", REF, "shop")
    assert (done.code, "there is no git repository around it" in done.err) == (3, True), done
