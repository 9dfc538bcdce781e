"""Two verifiers that share no code agree on every export, sound or mutated, and neither breaks.

A fresh seed each run, printed where a trial fails; TRIPOD_SEED repeats one. TRIPOD_TRIALS says how
many mutated exports are tried (``make soak``: 10,000).
"""

import contextlib
import importlib.util
import io
import json
import os
import random
import resource
import shutil
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from plain_export import files_of, key_of, seal_note, write_files
from specimens import SPECIMENS, Specimen, authored, build, copy, database, forge, read

from tripod.ledger.entry import commit_body
from tripod.ledger.sqlite.schema import MIGRATIONS
from tripod.verify.check import Need, needs
from tripod.verify.checks import CHECKS, bodies_present, writers_authorised
from tripod.verify.run import open_run, run

TOOL = Path(__file__).resolve().parents[3] / "tools/audit_export.py"
ORIGIN = "sample.example/1"
VKEY = key_of(ORIGIN).verifier()
HEADER_CHECKS = tuple(check for check in CHECKS if not needs(check, Need.BODIES, Need.TABLES))
SHARED = {check.NAME for check in (*HEADER_CHECKS, bodies_present, writers_authorised)}
OUTSIDE = {"record-agrees", "pins-extend", "trailers-agree"}
"""What is held against something beside the ledger, which an export of it does not hold."""
TRIALS = int(os.environ.get("TRIPOD_TRIALS", "50"))
SEED = int(os.environ.get("TRIPOD_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)

_spec = importlib.util.spec_from_file_location("audit_export", TOOL)
assert _spec is not None
assert _spec.loader is not None
AUDIT = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(AUDIT)

Files = dict[str, bytes]

TOKENS = (
    (b"true", b"null"),
    (b'":', b'" :'),
    (b"\\n", b"\\u000a"),
    (b"e", "é".encode()),
    (b'"', b"'"),
    (b"+", b"-"),
    (b"=", b""),
)
FIELDS: tuple[Any, ...] = (
    *(1, "", None, True, 1.5, 2**53, -1, [], "ab" * 32, "z" * 64, "\ud800", "é\x00"),
    *("2031-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z"),
    *("ledger.opened", "ledger.adopted"),
)
BODIES = (
    *(b"[]", b"{}", b"1", b"", b"\xff", b'{"a":1,"a":1}', b'{"a":null}', b'{"a":1.0}'),
    *(b'{"a":-0}', b'{"a":9007199254740993}', b'{"a":NaN}', b'{"a":true}', b'{"b":1,"a":1}'),
    *(b'{"a":"\n"}', b'{"a":"\\/"}', b'{"a":1e3}', b'{"a":"\xed\xa0\x80"}', b'{"a":' * 3000),
    b'{"a":' * 33 + b"1" + b"}" * 33,
    b'{"a":' * 32 + b"1" + b"}" * 32,
    *(b'{"\xc3\xa9":1}', b'{"a":"\\u00e9"}', b'{"a":"\x7f\\u0001"}', b'{"a":"\\ud800"}'),
    b'{"x":{"sha256":"%s","size":1}}' % (b"ab" * 32),
    *(b'{"x":{"sha256":1,"size":1}}', b'{"x":{"sha256":"../../x","size":1}}'),
    b'{"a":"' + b"y" * 65536 + b'"}',
)


def ours(folder: str, *, key: bool = True) -> int:
    """The exit code of our own verifier, by the checks that both have."""
    with open_run(folder, keys=[VKEY] if key else []) as evidence:
        report = run(evidence, select=SHARED)
        broke = [f for o in report.outcomes for f in o.findings if "the check broke" in f.message]
        assert not broke, broke
        return report.exit_code


def theirs(folder: str, *, key: bool = True) -> int:
    """The exit code of the other one."""
    said = io.StringIO()
    given = sys.argv
    sys.argv = ["audit_export.py", folder, *(["--key", VKEY.format()] if key else [])]
    try:
        with contextlib.redirect_stdout(said):
            code: int = AUDIT.main()
    finally:
        sys.argv = given
    assert said.getvalue().isascii()
    return code


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(str(tmp_path_factory.mktemp("sample")))


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sample in which two actors sign what they do."""
    root = build(str(tmp_path_factory.mktemp("signed")))
    authored(root)
    return root


def test_it_is_one_short_file_of_the_standard_library() -> None:
    text = TOOL.read_text()
    assert len(text.splitlines()) < 800
    names = {line.split()[1].split(".")[0] for line in text.splitlines()
             if line.startswith(("import ", "from "))}  # fmt: skip
    assert names <= sys.stdlib_module_names


@pytest.mark.parametrize("bodies", [True, False])
@pytest.mark.parametrize("which", ["sample", "signed"])
def test_both_accept_a_sound_export(
    tmp_path: Path, request: pytest.FixtureRequest, which: str, *, bodies: bool
) -> None:
    write_files(str(tmp_path), files_of(database(request.getfixturevalue(which)), bodies=bodies))
    assert (ours(str(tmp_path)), theirs(str(tmp_path))) == (0, 0)
    # Without a key nobody vouches for it, and neither says that it is sound.
    assert (ours(str(tmp_path), key=False), theirs(str(tmp_path), key=False)) == (3, 3)
    assert theirs(str(tmp_path / "tile")) == 3


@pytest.mark.drawn("long")
def test_both_agree_on_every_specimen(
    tmp_path: Path, sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, specimen in enumerate(SPECIMENS):
        if specimen.check == "ledger-missing":
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setenv("TRIPOD_HOME", str(folder / "home"))  # each is a history of its own
        root = copy(sample, str(folder))
        specimen.do(root)
        there = str(folder / "x")
        write_files(there, _export(specimen, root))
        codes = ours(there), theirs(there)
        # What the files alone show wrong is not in the export; a team's rules are for us alone.
        told = specimen.check in SHARED - OUTSIDE and "column" not in specimen.says
        # Both hold a fork to its head, and a key to the one that it replaces.
        told = told or specimen.says.startswith("it forks at") or "did not sign" in specimen.says
        # What a redaction may keep is said by the models of the kinds, which the tool has not.
        alone = "it keeps more of entry" in specimen.says
        # A key in force that is not among the given ones is an entry's text, which the tool does
        # not read: this export is sealed by the given key, and the ledger in it names another.
        alone = alone or (specimen.check in {"seals-open", "trailers-agree"} and not told)
        assert codes == ((1, 0) if alone else (1, 1) if told else (0, 0)), specimen


def _export(specimen: Specimen, root: str) -> Files:
    assert specimen.check in {s.check for s in SPECIMENS}
    return files_of(database(root))


@pytest.mark.parametrize("id_", ["", "\x7f \u00e9"])
def test_an_id_may_be_any_text(tmp_path: Path, sample: str, id_: str) -> None:
    """The format asks for no more; found by the soak, where ours said that the index was torn."""
    root = copy(sample, str(tmp_path))
    rows = read(database(root))
    asked = {row.head.get("cause") for row in rows}
    seq = max(n for n, row in enumerate(rows) if row.head["id"] not in asked)
    rows[seq] = rows[seq].headed(id=id_)
    forge(root, rows)
    write_files(str(tmp_path / "x"), files_of(database(root)))
    assert (ours(str(tmp_path / "x")), theirs(str(tmp_path / "x"))) == (0, 0)


def test_a_size_that_is_a_lie_costs_neither_any_memory(tmp_path: Path, sample: str) -> None:
    files = files_of(database(sample))
    lines = files["checkpoint"].decode().split("\n")
    lines[1] = str(2**62)
    files["checkpoint"] = "\n".join(lines).encode()
    write_files(str(tmp_path), files)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, limits[1]))
    try:
        assert (ours(str(tmp_path)), theirs(str(tmp_path))) == (1, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


# Mutations --------------------------------------------------------------------------------------


def mutate(rng: random.Random, files: Files) -> str:
    """Change an export somehow; give what was done."""
    path = rng.choice(sorted(files))
    data = files[path]
    at = rng.randrange(len(data) + 1)
    how = rng.choice(["flip", "cut", "insert", "drop", "swap", "rename", "repeat", "digit",
                      "line", "header", "body", "auth", "empty", "seal", "token"])  # fmt: skip
    if how == "flip" and data:
        at = rng.randrange(len(data))
        files[path] = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    elif how == "cut":
        files[path] = data[:at]
    elif how == "insert":
        files[path] = data[:at] + rng.randbytes(rng.randrange(1, 40)) + data[at:]
    elif how == "drop":
        del files[path]
    elif how == "swap":
        other = rng.choice(sorted(files))
        files[path], files[other] = files[other], files[path]
    elif how == "rename":
        files[path + rng.choice(["x", "/000", ".p/3", "\n"])] = files.pop(path)
    elif how == "repeat":
        files[path] = data + data[at:]
    elif how == "digit":
        files[path] = data.replace(
            rng.choice([b"0", b"1", b"2"]), rng.choice([b"3", b"-1", b""]), 1
        )
    elif how == "line":
        lines = data.split(b"\n")
        rng.shuffle(lines)
        files[path] = b"\n".join(lines)
    elif how in ("header", "body", "auth"):
        return f"resealed {_forge(rng, files, how)}"
    elif how == "empty":
        files[path] = b""
    elif how == "seal":
        _seal(rng, files)
    else:
        old, new = rng.choice(TOKENS)
        files[path] = data.replace(old, new, rng.choice([1, -1]))
    return f"{how} {path} at {at}"


def _seal(rng: random.Random, files: Files) -> None:
    """Another seal, some of them well signed: the size is a lie, or the origin."""
    headers = [b"x" * n for n in range(rng.choice([0, 1, 3]))]
    note = seal_note(rng.choice([ORIGIN, "other.example"]), headers)
    if rng.random() < 0.5:
        lines = files.get("checkpoint", note.encode()).decode("utf-8", "replace").split("\n")
        place = rng.randrange(len(lines))
        lines[place] = rng.choice(["", "0", "07", str(2**62), "x+y", lines[0], lines[-1]])
        note = "\n".join(lines)
    files["checkpoint"] = note.encode()


def _forge(rng: random.Random, files: Files, how: str) -> str:
    """Change an entry and make the hashes, links and seal fit again: what the key's owner can."""
    rows = RESEALED["rows"]
    rows = [list(row) for row in rows]
    seq = rng.randrange(len(rows))
    header, salt, body, auth = rows[seq]
    head = json.loads(header)
    if how == "header":
        name = rng.choice([*head, "auth", "extra", "cause"])
        other = json.loads(rng.choice(rows)[0])
        values = [*FIELDS, head["id"], json.loads(rows[0][0])["id"], seq, other.get(name, "bench")]
        head[name] = rng.choice(values)
        what = f"{name}={head[name]!r} of {seq}"
    elif how == "auth":
        auth = rng.choice([None, rng.choice(rows)[3], b"\x01", auth and auth[:-1], bytes(101)])
        head |= {} if auth is None else {"auth": AUDIT.sha(b"\x03" + auth).hex()}
        what = f"record {auth!r} of {seq}"
    else:
        spelled = [*BODIES, body + b" ", body.replace(b",", b", ", 1)]
        body = rng.choice(spelled)
        head["body"] = commit_body(salt, head["kind"], body)
        what = f"body {body[:40]!r} of {seq}"
    try:
        rows[seq] = [_spelled(head), salt, body, auth]
    except UnicodeEncodeError:
        rows[seq] = [
            json.dumps(head, sort_keys=True, separators=(",", ":")).encode(),
            salt,
            body,
            auth,
        ]
    prev = "0" * 64
    for number, row in enumerate(rows):
        if number != seq or how != "header":
            row[0] = _spelled(json.loads(row[0]) | {"prev": prev})
        elif rng.random() < 0.8 and head.get("prev") != "z" * 64:
            with contextlib.suppress(UnicodeEncodeError):
                row[0] = _spelled(head | {"prev": prev})
        prev = AUDIT.sha(b"\x00" + row[0]).hex()
    files.clear()
    files.update(_again(rows, bodies=rng.random() < 0.8))
    return what


def _spelled(head: dict[str, Any]) -> bytes:
    return json.dumps(head, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


RESEALED: dict[str, Any] = {}


def _again(rows: list[list[Any]], *, bodies: bool) -> Files:
    """The export of forged rows, through a database that guards nothing."""
    import sqlite3

    path = RESEALED["scratch"]
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM entries")
        for seq, row in enumerate(rows):
            db.execute(
                "INSERT INTO entries VALUES (?, ?, '', '', ?, ?, ?, ?)", (seq, str(seq), *row)
            )
        db.commit()
    return files_of(path, bodies=bodies, origin=ORIGIN)


@pytest.mark.drawn("long")
@pytest.mark.slow
def test_both_agree_on_mutated_exports(tmp_path: Path, signed: str) -> None:
    import sqlite3

    base = files_of(database(signed))
    RESEALED["scratch"] = str(tmp_path / "scratch.db")
    with contextlib.closing(sqlite3.connect(database(signed))) as db:
        blobs = db.execute("SELECT * FROM blobs").fetchall()
        sql = "SELECT header, salt, body, auth FROM entries ORDER BY seq"
        RESEALED["rows"] = db.execute(sql).fetchall()
    with contextlib.closing(sqlite3.connect(RESEALED["scratch"])) as db:
        for statement in (*MIGRATIONS[0].split(";")[:2], MIGRATIONS[2].split(";")[0]):
            db.execute(statement)
        db.executemany("INSERT INTO blobs VALUES (?, ?, ?)", blobs)
        db.commit()
    seen: set[int] = set()
    for trial in count():
        # Some mutations change nothing that counts: as many more are tried as it takes to see one.
        if trial >= TRIALS and (TRIALS < 50 or {0, 1} <= seen or trial >= 10 * TRIALS):
            break
        rng = random.Random(SEED + trial)  # noqa: S311 - mutations, not keys
        files = dict(base)
        done = [mutate(rng, files) for _ in range(rng.choice([1, 1, 1, 2, 3])) if files]
        there = str(tmp_path / "x")
        shutil.rmtree(there, ignore_errors=True)
        os.mkdir(there)
        with contextlib.suppress(IsADirectoryError, NotADirectoryError, FileExistsError):
            write_files(there, files)
        if rng.random() < 0.05 and files:
            _stranger(rng, there, rng.choice(sorted(files)))
        codes = ours(there), theirs(there)
        where = f"TRIPOD_SEED={SEED + trial} TRIPOD_TRIALS=1: {done}"
        assert codes[0] == codes[1], f"{codes} {where}"
        seen.add(codes[0])
    assert TRIALS < 50 or {0, 1} <= seen, f"TRIPOD_SEED={SEED} TRIPOD_TRIALS={TRIALS}: {seen}"


def _stranger(rng: random.Random, there: str, path: str) -> None:
    """Put something that is no file where one is."""
    full = f"{there}/{path}"
    with contextlib.suppress(OSError):
        os.unlink(full)
        if rng.random() < 0.5:
            os.symlink("/etc/passwd", full)
        elif rng.random() < 0.5:
            os.mkfifo(full)
        else:
            os.mkdir(full)
