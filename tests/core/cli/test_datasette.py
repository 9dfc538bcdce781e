"""Datasette serves a saved database with the metadata that comes with it: each page, each query."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from datasette.app import Datasette  # type: ignore[import-untyped]
from doors.inside import run
from recorded_sessions import write_session
from specimens import build

from tripod.ledger.kinds.registry import KINDS
from tripod.ledger.sqlite.metadata import datasette_metadata
from tripod.ledger.sqlite.views import textless_columns, view_queries


class Saved(NamedTuple):
    """A saved database, and its metadata."""

    database: Path
    metadata: Mapping[str, Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team with something of most kinds, a session, and a decision with two risk tags."""
    root = Path(build(str(tmp_path_factory.mktemp("served"))))
    write_session(root / "s.jsonl", "s", ("/w/secret.txt", "KEY=1"))
    assert run(root, "import", "s.jsonl", "--as", "ann").code == 0
    words = ("-p", "ann", "-r", "So.", "--no-ref", "by phone")
    for title, more in (
        ("Tea", ("--risk-tag", "tech-debt", "--risk-tag", 'the "x" risk')),
        ("Coffee", ("--risk-tag", "tech-debt")),
    ):
        assert run(root, "scribe", "log", title, *words, *more, "--log", "log.md").code == 0
    return root


@pytest.fixture(scope="module")
def saved(root: Path) -> Saved:
    done = run(root, "query", "--save", "seen.db", "--datasette", "seen.json")
    assert done.out == b"Written: seen.db\nWritten: seen.json\n"
    return Saved(root / "seen.db", json.loads((root / "seen.json").read_bytes()))


def got(saved: Saved, *paths: str) -> list[str]:
    """What Datasette answers, asked within this process."""

    async def ask() -> list[str]:
        served = Datasette([], immutables=[str(saved.database)], metadata=dict(saved.metadata))
        answers = []
        for path in paths:
            answer = await served.client.get(path)
            assert answer.status_code == 200, (path, answer.text[:2000])
            answers.append(answer.text)
        return answers

    return asyncio.run(ask())


def rows(saved: Saved, path: str) -> list[dict[str, Any]]:
    (answer,) = got(saved, f"{path}{'&' if '?' in path else '?'}_shape=array&_size=max")
    found: list[dict[str, Any]] = json.loads(answer)
    return found


def test_every_page_answers_and_asks_for_nothing_outside(saved: Saved) -> None:
    described = saved.metadata["databases"]["seen"]
    with closing(sqlite3.connect(saved.database)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    assert tables == described["tables"].keys()
    paths = ["/", "/seen", *(f"/seen/{name}" for name in [*tables, *described["queries"]])]
    for path, page in zip(paths, got(saved, *paths), strict=True):
        assets = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"([^\"]*)\"", page)
        own = ("/", "http://localhost/")
        assert [one for one in assets if not one.startswith(own)] == [], path
        assert path != "/" or "What a team of agents did" in page
        name = path.rpartition("/")[2]
        for part in (described["tables"], described["queries"]):
            assert name not in part or part[name]["title"] in page
    (front,) = got(saved, "/seen")
    listed = set(re.findall(r'href="/seen/([a-z_]+)"', front.partition("hidden table")[0]))
    assert "exposure" in listed
    assert {"config_changed"} == {"config_changed"} & tables - listed, "it is hidden"


def test_a_table_has_the_rows_of_its_view(root: Path, saved: Saved) -> None:
    done = run(root, "query", "SELECT * FROM chat_sent ORDER BY seq", "--limit", "0", "--json")
    wanted = [json.loads(line) for line in done.out.splitlines()]
    shown = rows(saved, "/seen/chat_sent.json?_sort=seq")
    assert [{**row, "version": 1} for row in shown] == wanted
    (page,) = got(saved, "/seen/chat_sent")
    assert all(row["handle"] in page for row in wanted)


def test_the_queries_answer_what_their_titles_ask(saved: Saved) -> None:
    assert saved.metadata["databases"]["seen"]["queries"].keys() >= {
        "who_saw_what", "decisions_by_risk", "decisions_today", "unsealed_tail", "unanchored_tail",
    }  # fmt: skip
    (seen,) = rows(saved, "/seen/who_saw_what.json?path=secret")
    assert (seen["role"], seen["session"], seen["path"]) == ("", "s", "/w/secret.txt")
    assert (seen["sure"], seen["shown"]) == (1, 1)
    assert rows(saved, "/seen/who_saw_what.json?path=nothing") == []
    tags = [(one["risk_tag"], one["title"]) for one in rows(saved, "/seen/decisions_by_risk.json")]
    assert {("tech-debt", "Tea"), ("tech-debt", "Coffee"), ('the "x" risk', "Tea")} <= set(tags)
    found = rows(saved, f"/seen/decisions_by_risk.json?tag={quote('x')}")
    assert [one["title"] for one in found] == ["Tea"]
    log = rows(saved, "/seen.json?sql=select+max(seq)+as+last+from+log")
    for name in ("unsealed_tail", "unanchored_tail"):
        tail = rows(saved, f"/seen/{name}.json")
        assert tail[-1]["seq"] == log[0]["last"], "the session came after every seal"


def test_a_query_whose_tables_are_missing_is_left_out() -> None:
    found = datasette_metadata("x", {"log": ["seq"]})["databases"]["x"]["queries"]
    assert found.keys() == {"unsealed_tail", "unanchored_tail", "who_did_how_much"}
    assert "WHERE seq >= 0 " in found["unsealed_tail"]["sql"]


def test_each_kind_is_described() -> None:
    tables = {name: ["seq"] for name in view_queries()}
    described = datasette_metadata("x", tables)["databases"]["x"]["tables"]
    assert all(described[name]["description"] for name in tables)


def test_a_database_without_texts_is_no_way_to_read_the_chat(root: Path, saved: Saved) -> None:
    done = run(root, "query", "--save", "dull.db", "--without-texts", "--datasette", "dull.json")
    assert done.code == 0
    with closing(sqlite3.connect(saved.database)) as db:
        told = [text for (text,) in db.execute("SELECT text FROM chat_sent")]
        decided = db.execute("SELECT seq, title, rationale FROM decision_logged").fetchall()
        heads = db.execute("SELECT seq, at, actor, kind FROM log").fetchall()
    data = (root / "dull.db").read_bytes()
    said = [text for text in told if len(text) > 12]
    assert len(said) > 5
    decisions = "".join(f"{title}{rationale}" for _, title, rationale in decided)
    assert [text for text in said if text.encode() in data and text not in decisions] == []
    with closing(sqlite3.connect(root / "dull.db")) as db:
        assert db.execute("SELECT seq, title, rationale FROM decision_logged").fetchall() == decided
        assert db.execute("SELECT seq, at, actor, kind FROM log").fetchall() == heads
    dull = Saved(root / "dull.db", json.loads((root / "dull.json").read_bytes()))
    got(dull, "/", *(f"/dull/{name}" for name in dull.metadata["databases"]["dull"]["queries"]))


def test_what_a_redaction_erases_is_a_text() -> None:
    for kind in KINDS:
        view = kind.name.replace(".", "_").replace("-", "_")
        if kind.erasure is None or view == "decision_logged":
            continue
        left = textless_columns(view, ["seq", *kind.erasure.marks, "observed"])
        assert left == ["seq"], view


def test_the_bytes_of_a_file_that_was_read_are_a_text() -> None:
    """Whatever another program writes into a file of cursors is kept as it stands there."""
    assert textless_columns("chat_cursors_seen", ["seq", "channel", "content"]) == [
        "seq",
        "channel",
    ]


def test_a_seal_of_a_peer_covers_no_entry_here() -> None:
    tables = {name: ["seq"] for name in ("log", "seal_made", "anchor_received")}
    queries = datasette_metadata("x", tables)["databases"]["x"]["queries"]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE log (seq, at, actor, mark, kind, stream)")
        db.executemany("INSERT INTO log (seq) VALUES (?)", [(seq,) for seq in range(9)])
        for name in ("seal_made", "anchor_received"):
            db.execute(f"CREATE TABLE {name} (mark, size)")
            db.executemany(
                f"INSERT INTO {name} VALUES (?, ?)", [("", 7), ("peer", 90), ("peer signed", 91)]
            )
        for name in ("unsealed_tail", "unanchored_tail"):
            assert [row[0] for row in db.execute(queries[name]["sql"])] == [7, 8], name


def test_who_saw_what_names_each_role_that_a_session_was_given() -> None:
    tables = {"exposure": ["seq"], "session_imported": ["seq"]}
    query = datasette_metadata("x", tables)["databases"]["x"]["queries"]["who_saw_what"]["sql"]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE exposure (seq, session, agent, path, channel, sure, shown)")
        db.execute("INSERT INTO exposure VALUES (3, 's', 'main', 'live.chat', 'tool', 1, 1)")
        db.execute("CREATE TABLE session_imported (session, role)")
        for role in ("pythia", "pythia", "worker", None):
            db.execute("INSERT INTO session_imported VALUES ('s', ?)", (role,))
        assert db.execute(query, {"path": ""}).fetchone()[0] == "pythia,worker"


def test_metadata_goes_with_a_database_and_over_no_file(root: Path) -> None:
    assert run(root, "query", "--datasette", "x.json").code == 2
    assert run(root, "query", "--without-texts").code == 2
    (root / "ours.json").write_text("{}")
    done = run(root, "query", "--save", "y.db", "--datasette", "ours.json")
    assert (done.code, done.err) == (1, "tripod: ours.json is there already: give a new name\n")
    assert not (root / "y.db").exists()
    assert (root / "ours.json").read_text() == "{}"


def test_a_database_and_its_metadata_are_written_both_or_not_at_all(
    root: Path, tmp_path: Path
) -> None:
    for metadata in ("no/such/folder.json", "seen.db"):
        words = ("--save", str(tmp_path / "seen.db"), "--datasette", str(tmp_path / metadata))
        assert run(root, "query", *words).code == 1
        assert list(tmp_path.iterdir()) == []
