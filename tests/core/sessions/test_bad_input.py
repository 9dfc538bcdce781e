"""Files that are damaged, strange or hostile: nothing raises, and nothing is called clean."""

import json
import os
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from doors.inside import run
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_sessions import items_of, judged, recorded, transcripts
from session_specimens import CALLS, STARTS

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.recorded import files
from tripod.verify.recorded.files import read_session_file, session_files
from tripod.verify.sessions import jsonl
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import Gap, Given, SessionRecord
from tripod.verify.sessions.jsonl import DamagedLine, session_records
from tripod.verify.sessions.readers import READERS, program_of, read_session

START = {"type": "user", "sessionId": "s", "version": "2.1.209", "cwd": "/w"}
GOOD = json.dumps(START | {"message": {"role": "user", "content": "hi"}}).encode() + b"\n"
PROTECT = {"x.md": "one two three four five six seven eight nine ten eleven twelve thirteen"}


def test_a_whole_file_is_clean_and_so_the_others_below_say_something(tmp_path: Path) -> None:
    assert told(tmp_path, GOOD) == "clean"
    assert told(tmp_path, GOOD.replace(b"\n", b"\r\n") + b"\n  \n" + GOOD) == "clean"


def told(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    return judged(path, protect=PROTECT)[0].told


DAMAGED = {
    "bytes of zero": GOOD + b"\0" * 5000 + b"\n" + GOOD,
    "zeros before a record": GOOD + b"\0\0\0" + GOOD,
    "two records on one line": GOOD.rstrip() + GOOD,
    "a record cut off, and the next": GOOD + GOOD[:40] + GOOD,
    "a record cut off at the end": GOOD + GOOD[:-9],
    "no UTF-8": GOOD + GOOD.replace(b"hi", b"h\xff"),
    "nested 10,000 deep": GOOD + b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n",
    "a list": GOOD + b"[1]\n",
    "a number": GOOD + b"7\n",
    "no number": GOOD + b'{"type":"user","a":NaN}\n',
    "of an unknown type": GOOD + b'{"type":"brand-new","sessionId":"s"}\n',
    "with an unknown field": GOOD + GOOD.replace(b'{"type"', b'{"brandNew":1,"type"'),
    "of an unknown version": GOOD.replace(b"2.1.209", b"3.0.0"),
    "of a version before there were attachments": GOOD.replace(b"2.1.209", b"2.1.33"),
    "a type that is no text": GOOD + b'{"type":{"a":1},"sessionId":"s"}\n',
    "a message that is a text": GOOD + json.dumps(START | {"message": "hi"}).encode(),
    "a message without content": GOOD + json.dumps(START | {"message": {}}).encode(),
    "a request without its message": GOOD
    + json.dumps(START | {"type": "api-request-blob", "hash": "7"}).encode(),
    "a request with the end of another record": GOOD
    + json.dumps(START | {"type": "api-request-blob", "message": {}, "parentId": "7"}).encode(),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_and_what_is_unknown_cannot_be_told(tmp_path: Path, name: str) -> None:
    assert told(tmp_path, DAMAGED[name]) == "cannot tell"


def test_a_broken_line_is_counted_and_what_can_be_read_of_it_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    words = PROTECT["x.md"].replace(" ", "\\n", 1)
    path.write_bytes(GOOD + b'{"type":"user","message":{"content":"' + words.encode() + b'"\n')
    found, _ = items_of(path)
    assert found.counts.unparsed == [2]
    verdict, (one,) = judged(path, protect=PROTECT)
    assert [(each.line, each.channel, each.sure) for each in one.found] == [(2, "damaged", False)]
    assert verdict.told == "cannot tell"


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    """As in the programs that write these files; looking for such keys costs more than reading."""
    (one,) = session_records([b'{"a": {"b": 1, "b": 2}, "a": {"b": 3, "b": 4}}\n'])
    assert isinstance(one, SessionRecord)
    assert one.value == {"a": {"b": 4}}


def test_half_a_surrogate_is_no_damage(tmp_path: Path) -> None:
    assert told(tmp_path, GOOD + GOOD.replace(b"hi", b"h\\ud83di \\u0000 \\u001b[31m")) == "clean"


def test_a_line_that_is_too_long_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 200)
    long = b'{"a":"' + b"x" * 900 + b'"}\n'
    pieces = [GOOD, *(long[at : at + 201] for at in range(0, len(long), 201)), GOOD]
    one, two, three = session_records(pieces)
    assert isinstance(one, SessionRecord)
    assert isinstance(two, DamagedLine)
    assert "was not read" in two.gap.what
    assert isinstance(three, SessionRecord)
    assert (three.line, three.offset) == (3, len(GOOD) + len(long))


@given(
    lengths=st.lists(st.integers(0, 40), max_size=30),
    block=st.integers(2, 50),
    is_ended=st.booleans(),
    size=st.none() | st.integers(0, 900),
)
def test_lines_are_the_same_wherever_a_block_ends(
    lengths: list[int], block: int, is_ended: bool, size: int | None
) -> None:
    lines = [json.dumps(START | {"message": {"content": "x" * length}}) for length in lengths]
    data = "\n".join(lines).encode() + b"\n" * (is_ended and bool(lines))
    begun = data if size is None else data[:size]
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(files, "_AHEAD", block)
        patch.setattr(files, "MAX_LINE", 100)
        patch.setattr(jsonl, "MAX_LINE", 100)
        path = Path(folder) / "a.jsonl"
        path.write_bytes(data)
        found = read_session_file(str(path), size=size)
    rows = begun.split(b"\n")
    ends = [*([1] * (len(rows) - 1)), 0]
    whole = [
        row
        for row, end in zip(rows, ends, strict=True)
        if row.endswith(b"}}") and len(row) + end <= 100
    ]
    assert found.sha256 == sha256(begun).hexdigest()
    assert (found.bytes, found.lines) == (len(begun), len(rows) - (rows[-1] == b""))
    if found.reader is not None:
        assert found.reader.records["user"] == len(whole)


def test_a_document_that_is_too_long_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (export,) = recorded().glob("sessions-2026-11/opencode-clean/export-*.json")
    monkeypatch.setattr(files, "MAX_DOCUMENT", 1024 * 1024)
    path = tmp_path / "a.json"
    path.write_bytes(export.read_bytes() + b" " * 1024 * 1024)
    found = read_session_file(str(path))
    assert (found.program, found.problem) == (None, "one document of over 1 MiB is not read")


DOCUMENTS = {
    "atif": {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "x"},
             "steps": [{"step_id": 1, "source": "user", "message": "TEXT"}]},
    "gemini": {"sessionId": "s", "projectHash": "x", "messages": [
        {"id": "a", "type": "user", "content": "TEXT"}]},
    "opencode": {"info": {"id": "s", "version": "1.18.33"}, "messages": [
        {"info": {"id": "m", "role": "user"}, "parts": [{"type": "text", "text": "TEXT"}]}]},
}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("program", DOCUMENTS)
def test_half_a_surrogate_in_a_document_is_no_damage(
    tmp_path: Path, program: str, indent: int | None
) -> None:
    data = json.dumps(DOCUMENTS[program], indent=indent).replace("TEXT", PROTECT["x.md"])
    (tmp_path / "a.json").write_text(data.replace("six", "six \\ud83d "))
    (tmp_path / "b.json").write_text(data)
    half, whole = (items_of(tmp_path / name)[0] for name in ("a.json", "b.json"))
    assert (half.program, half.problem) == (program, "")
    assert half.counts.gaps == whole.counts.gaps
    for name in ("a.json", "b.json"):
        _, (one,) = judged(tmp_path / name, protect=PROTECT)
        assert {each.named for each in one.found} == {"x.md"}


@pytest.mark.parametrize("program", DOCUMENTS)
def test_a_document_that_is_nested_too_deep_is_refused_in_words(
    tmp_path: Path, program: str
) -> None:
    deep = json.dumps(DOCUMENTS[program]).replace('"TEXT"', "[" * 10_000 + "]" * 10_000)
    (tmp_path / "a.json").write_text(deep)
    found = read_session_file(str(tmp_path / "a.json"))
    assert (found.program, found.problem) == (None, "it is nested too deep")


def test_only_plain_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(GOOD)
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "folder").mkdir()
    (tmp_path / "linked").symlink_to("folder")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "notes.md").symlink_to("real")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "device.jsonl").symlink_to("/dev/zero")
    (tmp_path / "folder.jsonl").mkdir()
    problems = {
        os.path.basename(path): read_session_file(path).problem
        for path in session_files(str(tmp_path))
    }
    links = {"link.jsonl", "loop.jsonl", "device.jsonl", "linked", "dangling"}
    assert problems.keys() == {"fifo.jsonl", *links}
    assert all(problems.values()), problems
    assert read_session_file(str(tmp_path / "link.jsonl"), is_named=True).program == "claude-code"
    assert read_session_file(str(tmp_path / "device.jsonl"), is_named=True).problem


@pytest.mark.parametrize(
    "name",
    [
        "a.jsonl.bak",
        "a.jsonl~",
        "a.jsonl.1",
        "a.jsonl.2026-11-01",
        "a.ndjson",
        "A.JSONL",
        "a.JsonL.OLD",
    ],
)
def test_a_session_is_one_whatever_its_name_ends_with(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(GOOD)
    (path,) = session_files(str(tmp_path))
    assert read_session_file(path).program == "claude-code"


@pytest.mark.parametrize("name", ["a.sqlite", "a.sqlite3", "a.DB", "a.db.bak"])
def test_a_database_is_one_whatever_its_name_ends_with(tmp_path: Path, name: str) -> None:
    _database(tmp_path).rename(tmp_path / name)
    for beside in ("x.db-wal", "x.db-shm", "notes.md", "a.jsonl.lock", "a.json.py"):
        (tmp_path / beside).write_bytes(b"")
    (path,) = session_files(str(tmp_path))
    assert read_session_file(path).program == "opencode"


def test_a_file_that_changes_while_it_is_read_cannot_be_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD)
    gaps: list[Gap] = []

    def each(item: object) -> None:
        if isinstance(item, Given):
            path.write_bytes(GOOD + GOOD)
        if isinstance(item, Gap):
            gaps.append(item)

    read_session_file(str(path), each)
    assert [gap.what for gap in gaps] == ["the file was changed while it was read"]


def test_of_a_file_that_grows_faster_than_it_is_read_what_was_there_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD)
    found: list[object] = []

    def each(item: object) -> None:
        found.append(item)
        assert len(found) < 100
        with path.open("ab") as file:
            file.write(GOOD * 10_000)

    one = read_session_file(str(path), each)
    assert one.bytes == len(GOOD)
    assert isinstance(found[-1], Gap)


def _database(tmp_path: Path) -> Path:
    path = tmp_path / "opencode.db"
    path.write_bytes((recorded() / "sessions-2026-11/opencode-clean/opencode.db").read_bytes())
    return path


def test_a_database_is_read_from_a_copy_and_never_changed(tmp_path: Path) -> None:
    path = _database(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN EXCLUSIVE")
        before = {
            one.name: one.read_bytes() for one in tmp_path.iterdir() if one.suffix != ".db-shm"
        }
        found = read_session_file(str(path))
        after = {
            one.name: one.read_bytes() for one in tmp_path.iterdir() if one.suffix != ".db-shm"
        }
    assert (found.program, found.counts.calls) == ("opencode", {"read": 1})
    assert before == after


@pytest.mark.parametrize("damage", ["cut", "junk", "table", "gap", "newer"])
def test_a_database_that_is_damaged_or_newer_cannot_be_told(tmp_path: Path, damage: str) -> None:
    path = _database(tmp_path)
    data = path.read_bytes()
    if damage in ("cut", "junk"):
        path.write_bytes(data[:5000] if damage == "cut" else data[:4096] + b"\xee" * 200_000)
    else:
        with closing(sqlite3.connect(path)) as db:
            if damage == "table":
                db.execute("ALTER TABLE part RENAME COLUMN data TO data_v2")
            elif damage == "gap":
                db.execute("DELETE FROM event WHERE seq = 3")
            else:
                row = "INSERT INTO session_message SELECT id, id, 'x', 1, 1, 1, '{}' FROM session"
                db.execute(row)
            db.commit()
    verdict, read = judged(path, project=recorded() / "sessions-2026-11/opencode-clean/team")
    assert verdict.told == "cannot tell", verdict
    assert read or read_session_file(str(path)).problem


def test_what_is_printed_holds_no_control_bytes(tmp_path: Path) -> None:
    named = "\x1b[2Jchat/a\u202e.md\r"
    call = {"type": "tool_use", "id": "t\x1b", "name": "Read\x07", "input": {"file_path": named}}
    message = {"role": "assistant", "content": [call]}
    line = json.dumps(START | {"type": "assistant", "message": message})
    (tmp_path / "a.jsonl").write_text(f"{line}\n")
    for more in ([], ["--never", "chat/**"], ["--json"]):
        done = run(tmp_path, "exposure", "a.jsonl", *more)
        assert not {"\x1b", "\x07", "\r", "\u202e"} & {*done.out.decode()}, done.out


# Fuzzing ----------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
REAL = [json.loads(line) for path in transcripts() for line in path.read_bytes().splitlines()[:40]]


@settings(max_examples=4 * settings().max_examples)
@given(data=st.data())
def test_no_value_in_the_place_of_another_raises(data: st.DataObject) -> None:
    """A record of a real file in which one value, somewhere, is any other JSON value."""
    value = json.loads(json.dumps(data.draw(st.sampled_from(REAL))))
    place = value
    while True:
        key = data.draw(
            st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
        )
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
        else:
            place[key] = data.draw(JSON)
            break
    for reader in READERS.values():
        list(read_session(reader(), [SessionRecord(1, 0, value)]))
    program_of(value)


@settings(max_examples=2 * settings().max_examples)
@given(data=st.data())
def test_no_damage_of_a_real_file_raises_or_is_called_clean(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = data.draw(st.sampled_from(transcripts()))
    whole = source.read_bytes()
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start, min(len(whole), start + 3000)))
    junk = data.draw(st.binary(max_size=20))
    path = tmp_path_factory.mktemp("fuzz") / "a.jsonl"
    path.write_bytes(whole[:start] + junk + whole[end:])
    found, items = items_of(path)
    verdict, _ = judged(path, protect=PROTECT)
    if any(isinstance(item, Gap) and item.cause == "damaged" for item in items):
        assert verdict.told != "clean"
    assert found.bytes == len(path.read_bytes())


NUL_PATHS = ["/w/.env\0.txt", "/w/.e\0nv", "/w/src\0/../.env", "\0/w/.env", "/w/.env/\0", "/w/a\0b"]
READING = {
    "claude-code": ("Read", "file_path"),
    "copilot": ("view", "path"),
    "gemini": ("read_file", "absolute_path"),
    "qwen": ("read_file", "absolute_path"),
    "opencode": ("read", "filePath"),
}


def _found(program: str, tool: str, asked: object, answer: str = "x=1") -> SessionExposures:
    one = SessionExposures(NeverRule([".env"]), ProtectedText())
    records = [*STARTS[program], *CALLS[program](tool, asked, answer)]
    numbered = [SessionRecord(number, 0, value) for number, value in enumerate(records, 1)]
    for item in read_session(READERS[program](), numbered):
        one.add(item)
    one.end()
    return one


@pytest.mark.parametrize("path", NUL_PATHS)
@pytest.mark.parametrize("program", READING)
def test_a_nul_in_a_path_is_never_sure_and_never_clean(program: str, path: str) -> None:
    tool, name = READING[program]
    one = _found(program, tool, {name: path})
    assert not [each for each in one.found if each.sure]
    assert bool(one.found) == (path != "/w/a\0b")
    assert [gap.what for gap in one.gaps if gap.cause == "opaque"] == [
        "a file that is named with a NUL"
    ]


@pytest.mark.parametrize(
    "command", ["cat .e\0nv", "cat .env\0.txt", "cat src/a\0 .env", "cat 'a' .env\0", "cat a\0b"]
)
@pytest.mark.parametrize("program", ["claude-code", "codex"])
def test_a_nul_in_a_command_is_never_sure_and_never_clean(program: str, command: str) -> None:
    tool, name = ("Bash", "command") if program == "claude-code" else ("exec_command", "cmd")
    one = _found(program, tool, {name: command, "workdir": "/w"})
    assert not [each for each in one.found if each.sure]
    assert bool(one.found) == (command != "cat a\0b")
    assert any("a NUL" in gap.what for gap in one.gaps)


def test_a_nul_in_the_name_of_an_attached_file_is_never_clean() -> None:
    one = SessionExposures(NeverRule([".env"]), ProtectedText())
    one.add(Given("mention", 1, 0, "x", named="/w/.e\0nv"))
    assert [each.path for each in one.found] == ["/w/.env"]
    assert any("a NUL" in gap.what for gap in one.gaps)


@pytest.mark.parametrize(
    ("old", "new"),
    [(" ", "\0"), ("e", "e\0"), (" ", "\b"), (" ", " x\b"), ("e", "f\be"), ("e", "e\be"),
     (" ", "\x7f"), (" ", "\u200b"), ("e", "e\u200b"), (" ", "\u202e"), (" ", " \x1b[0m\0")],
)  # fmt: skip
def test_words_are_found_whatever_is_not_seen_between_or_in_them(old: str, new: str) -> None:
    one = ProtectedText()
    one.add("x.md", PROTECT["x.md"])
    text = PROTECT["x.md"].replace(old, new)
    assert list(one.found_in(text)) == ["x.md"]
    assert one.search(["", text]) == [[], [0]]
