"""Each source of evidence, damaged in random ways: no traceback, and no clean where it matters.

Each run draws the damages by a fresh seed, which is printed where one is not found. TRIPOD_TRIALS
says how many trials each source gets (``make soak``: 60), TRIPOD_SEED repeats a run.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from git_repo import Git, track
from specimens import build, database, forge, read

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.team.team import Team
from tripod.trust import keys
from tripod.trust import seal as sealing
from tripod.verify.anchors.anchors import AnchorOptions
from tripod.verify.check import Report
from tripod.verify.reporters import json as json_
from tripod.verify.reporters import text
from tripod.verify.run import open_run, run

TRIALS = int(os.environ.get("TRIPOD_TRIALS", "1"))
SEED = int(os.environ.get("TRIPOD_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
DEEP = b"[" * 1020 + b"]" * 1020

pytestmark = pytest.mark.slow

Damage = Callable[[random.Random, bytes], bytes]


def flip(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def flip_some(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.randrange(2, 9)):
        data = flip(rng, data)
    return data


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def scramble(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(64) + data[at + 64 :]


def nest(rng: random.Random, data: bytes) -> bytes:
    """Something far too deep in the place of a value, or of everything."""
    at = data.find(b":", rng.randrange(len(data)))
    deep = rng.choice((DEEP, b'{"a":' * 1020 + b"1" + b"}" * 1020, b"[" * 100_000))
    return deep if at < 0 else data[: at + 1] + deep + data[at + 2 :]


def repeat(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[: rng.randrange(len(data)) + 1] + data[at:]


def empty(_rng: random.Random, _data: bytes) -> bytes:
    return b""


DAMAGES: tuple[Damage, ...] = (flip, flip_some, cut, scramble, nest, repeat, empty)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A team that has every source: a key, a record, a policy, receipts, a worker with its log."""
    home = tmp_path_factory.mktemp("home")
    place = tmp_path_factory.mktemp("team")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIPOD_HOME", str(home))
        root = build(str(place))
        with Team(root) as opened:
            for number in range(260):  # more than one bundle, and rows on several pages
                bus.publish(opened, "ann", "note", "low", f"note {number}")
            chat_send.send(opened, "live", "ann", "A" * 40_000)
            sealing.new_sealing_key(opened)
        Path(root, "policy.yaml").write_text("level: SELF\nseals: [SEAL]\n", encoding="utf-8")
        with Team(root) as opened:
            key = keys.sealing_key(opened.store)
        Path(root, "policy.tlog").write_text(f"log {key}\nquorum none\n", encoding="utf-8")
        Path(root, "workers/parser-a3f1.log").write_bytes(b'{"type":"text"}\nReading.\n' * 40)
        git = Git(place)  # from here on as one that an earlier version tracked
        track(place)
        git("add", "--all")
        git("commit", "--quiet", "-m", "Begin")
        with closing(sqlite3.connect(database(root))) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return root


def judge(root: str, asked: AnchorOptions | None = None) -> Report:
    """The whole way of the command, without its process; whatever is raised fails the test."""
    with open_run(root, asked=asked or AnchorOptions()) as evidence:
        report = run(evidence)
    json_.render(report)
    text.render(report)
    return report


def broken(report: Report) -> list[str]:
    """Checks that did not expect what they saw."""
    return [
        f"{finding.check}: {finding.message}"
        for outcome in report.outcomes
        for finding in outcome.findings
        if "broke" in finding.message
    ]


def content(path: str) -> object:
    """What the database says, as anybody reads it; None where that cannot be read."""
    try:
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as db:
            db.text_factory = bytes
            names = [row[0].decode() for row in db.execute("SELECT name FROM sqlite_schema")]
            tables = [name for name in names if name in TABLES]
            return [db.execute(f"SELECT * FROM {name}").fetchall() for name in tables]
    except (sqlite3.Error, UnicodeDecodeError):
        return None


TABLES = ("entries", "blobs", "nodes", "head")


def trials(
    team: str, tmp_path: Path, source: str, times: int = TRIALS
) -> Iterator[tuple[int, str, random.Random]]:
    """So many copies of the team, each made when its turn comes."""
    for number in range(times):
        seed = SEED * 1000 + number
        place = tmp_path / f"{source.replace('/', '-')}-{number}"
        shutil.copytree(Path(team).parent, place, symlinks=True)
        yield seed, f"{place}/.nbs", random.Random(f"{source} {seed}")  # noqa: S311


def test_the_team_is_sound(team: str) -> None:
    report = judge(team)
    assert (report.exit_code, broken(report)) == (0, []), text.render(report)


def test_a_flipped_bit_where_there_is_a_record_is_a_finding(team: str, tmp_path: Path) -> None:
    """In the newest rows, and among them the key that the record's seal is held against."""
    _, root, _ = next(trials(team, tmp_path, "leaf"))
    path = Path(database(root))
    with closing(sqlite3.connect(path)) as db:
        (body,) = db.execute("SELECT body FROM entries WHERE kind = 'key.set'").fetchone()
    data = bytearray(path.read_bytes())
    size = 4096
    page = data.index(body) // size * size
    assert data[page] == 13, "a leaf of a table"
    for bit in (0x40, 0x08):
        data[page + 3] ^= bit  # how many cells it has
        path.write_bytes(bytes(data))
        report = judge(root)
        data[page + 3] ^= bit
        assert (report.exit_code, broken(report)) == (1, [])
        judged = [o.check for o in report.outcomes if o.verdict != "cannot tell"]
        assert len(judged) > 5


def test_a_damaged_database_is_never_clean(team: str, tmp_path: Path) -> None:
    told = content(database(team))
    assert told is not None
    for seed, root, rng in trials(team, tmp_path, "database"):
        path = Path(database(root))
        damage = rng.choice((flip, flip, flip_some, cut, scramble, empty))
        path.write_bytes(damage(rng, path.read_bytes()))
        report = judge(root)
        note = f"TRIPOD_SEED={seed // 1000}: {damage.__name__}"
        if content(str(path)) != told:
            assert report.exit_code != 0, note
        assert not broken(report), (note, broken(report))
        shutil.rmtree(Path(root).parent)


def of_table(path: str, rng: random.Random, table: str) -> int:
    """Where in the file a page of a table begins."""
    with closing(sqlite3.connect(path)) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
        sql = "SELECT pageno FROM dbstat WHERE name = ?"
        try:
            found = [page for (page,) in db.execute(sql, (table,)).fetchall()]
        except sqlite3.OperationalError:  # built without that table: any page will do
            found = list(range(1, os.path.getsize(path) // size + 1))
    return int((rng.choice(found) - 1) * size)


@pytest.mark.parametrize("table", ["entries", "nodes", "blobs", "head", "pieces", "lines", "seals"])
def test_a_flipped_bit_in_a_page_of_a_table_stops_nothing(
    team: str, tmp_path: Path, table: str
) -> None:
    for seed, root, rng in trials(team, tmp_path, table):
        path = Path(database(root))
        at = of_table(str(path), rng, table)
        data = bytearray(path.read_bytes())
        data[at + rng.choice((0, 1, 3, 4, 5, 8, rng.randrange(4096)))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))
        report = judge(root)
        assert not broken(report), (seed, broken(report))
        if table in TABLES and content(str(path)) != content(database(team)):
            assert report.exit_code != 0, seed
        shutil.rmtree(Path(root).parent)


FILES = {
    "record/bodies": "record/bodies/**/*.jsonl*",
    "record/tile": "record/tile/**/*",
    "record/blobs": "record/blobs/*",
    "seal": "record/checkpoint",
    "chat": "chat/*.chat",
    "events": "events/**/*.event",
    "log": "scribe/log.md",
    "workers": "workers/*.md",
    "worker logs": "workers/*.log",
    "counts": "counts.json",
    "config": "events/config.yaml",
    "policy": "policy.*",
}
EXACT = ("record/bodies", "record/tile", "record/blobs", "seal")


@pytest.mark.drawn
@pytest.mark.parametrize("clone", [False, True], ids=["team", "clone"])
@pytest.mark.parametrize("source", FILES)
def test_a_damaged_file_stops_nothing(
    team: str, tmp_path: Path, source: str, *, clone: bool
) -> None:
    for seed, root, rng in trials(team, tmp_path, source):
        if clone:
            os.unlink(database(root))
        files = sorted(path for path in Path(root).glob(FILES[source]) if path.is_file())
        if not files:
            pytest.fail(f"the team has no {source}")
        path = rng.choice(files)
        damage = rng.choice(DAMAGES)
        before = path.read_bytes()
        data = damage(rng, before) if before else DEEP
        path.write_bytes(data)
        report = judge(root)
        note = f"TRIPOD_SEED={seed // 1000}: {damage.__name__} of {path.name}"
        assert not broken(report), (note, broken(report))
        if source in EXACT and data != before:
            assert report.exit_code != 0, note
        shutil.rmtree(Path(root).parent)


@pytest.mark.drawn
@pytest.mark.parametrize("source", FILES)
def test_what_is_no_file_stops_nothing(team: str, tmp_path: Path, source: str) -> None:
    ways = ("nothing", "a folder", "a pipe", "a link")
    for way, (_, root, rng) in zip(ways, trials(team, tmp_path, source, len(ways)), strict=True):
        path = rng.choice([path for path in Path(root).glob(FILES[source]) if path.is_file()])
        path.unlink()
        if way == "a folder":
            path.mkdir()
        elif way == "a pipe":
            os.mkfifo(path)
        elif way == "a link":
            path.symlink_to("/dev/zero")
        report = judge(root)
        assert not broken(report), (way, broken(report))
        if source in EXACT:
            assert report.exit_code != 0, way
        shutil.rmtree(Path(root).parent)


def deep_body(kind: str) -> bytes:
    """A body that its parser takes and that is far deeper than any of ours; it names a blob."""
    front, back = (b"[", b"]") if kind == "lists" else (b'{"a":', b"}")
    blob = b'{"sha256":"%b","size":1}' % (b"0" * 64)
    return b'{"x":' + front * 1018 + blob + back * 1018 + b"}"


@pytest.mark.parametrize("kind", ["lists", "objects"])
def test_a_line_of_bodies_that_is_nested_deep_is_a_finding(
    team: str, tmp_path: Path, kind: str
) -> None:
    _, root, _ = next(trials(team, tmp_path, kind))
    os.unlink(database(root))
    path = next(Path(root).glob("record/bodies/*.jsonl"))
    lines = path.read_bytes().split(b"\n")
    at = lines[9].index(b',"salt":"')
    lines[9] = b'{"body":' + deep_body(kind) + lines[9][at:]
    path.write_bytes(b"\n".join(lines))
    report = judge(root)
    assert (report.exit_code, broken(report)) == (1, [])
    found = [finding for outcome in report.outcomes for finding in outcome.findings]
    assert any(finding.where == "entry 9" for finding in found)


@pytest.mark.parametrize("kind", ["lists", "objects"])
def test_an_entry_that_is_nested_deep_is_a_finding(team: str, tmp_path: Path, kind: str) -> None:
    """Committed to and linked as it should be: only its form is wrong."""
    _, root, _ = next(trials(team, tmp_path, kind))
    rows = read(database(root))
    rows[9] = rows[9]._replace(body=deep_body(kind))
    forge(root, rows)
    report = judge(root)
    assert (report.exit_code, broken(report)) == (1, [])
    found = [finding for outcome in report.outcomes for finding in outcome.findings]
    assert any("nested deeper" in f.message and f.where == "entry 9" for f in found)


def test_damaged_pins_and_policies_are_words(team: str, tmp_path: Path) -> None:
    rng = random.Random(SEED)  # noqa: S311
    seal = Path(team, "record/checkpoint").read_bytes()
    for number in range(TRIALS):
        for name, good in (
            ("pin", seal),
            ("ci.tlog", Path(team, "policy.tlog").read_bytes()),
            ("ci.yaml", b"level: PINNED\nrequired: [drift]\n"),
            ("ci.pem", b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
        ):
            path = tmp_path / f"{number}-{name}"
            path.write_bytes(rng.choice(DAMAGES)(rng, good))
            asked = (
                AnchorOptions(str(path)) if name == "pin" else AnchorOptions(policies=(str(path),))
            )
            assert not broken(judge(team, asked))
