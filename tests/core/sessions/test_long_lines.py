"""Long lines and long texts: judged whole, in little memory, and counted once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from doors.inside import TRIPOD
from hypothesis import given
from hypothesis import strategies as st
from recorded_sessions import BASE, items_of, judged

from tripod.ledger.words import RUN, words_of_text
from tripod.verify.isolation import phrases
from tripod.verify.isolation.batch import PATHLIKE
from tripod.verify.isolation.phrases import overlaps, pieces_of
from tripod.verify.recorded import files
from tripod.verify.sessions import jsonl
from tripod.verify.sessions.items import Gap

SECRET = "the quick brown fox jumps over the lazy dog and then it sleeps"
_LIMIT = 120_000  # KB; the target for a file of any length with lines of up to 16 MB
_MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def record(text: str) -> str:
    return json.dumps(BASE | {"type": "user", "message": {"role": "user", "content": text}})


@pytest.mark.drawn("long")
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KB on Linux alone")
@pytest.mark.parametrize("is_damaged", [False, True])
def test_lines_of_sixteen_megabytes_take_little_memory(tmp_path: Path, is_damaged: bool) -> None:
    words = " ".join(f"w{number % 5_000}" for number in range(2_700_000))[:15_900_000]
    line = record(words)[: -1 if is_damaged else None]
    with (tmp_path / "s.jsonl").open("w") as file:
        file.write(record("go") + "\n")
        for _ in range(3):
            file.write(line + "\n")
        file.write(record(f"x {SECRET} x") + "\n")
    (tmp_path / "secret").write_text(SECRET)
    rule = [TRIPOD, "exposure", "--never", "chat/**", "--protect", "secret", "s.jsonl"]
    run = [sys.executable, "-c", _MEASURED, *rule]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, check=True, text=True)
    code, most = map(int, done.stdout.split())
    assert code == 1
    assert most <= _LIMIT, most


def test_a_line_that_is_too_long_is_one_line_whatever_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (files, jsonl):
        monkeypatch.setattr(module, "MAX_LINE", 300)
    monkeypatch.setattr(files, "_AHEAD", 64)
    path = tmp_path / "s.jsonl"
    for long in (record("go") + " " * 900, record("x" * 900), " " * 900, "[" * 900):
        for end in ("", "\n", "\n" + record("on"), "\n" + record("on") + "\n"):
            path.write_text(record("go") + "\n" + long + end)
            found, items = items_of(path)
            assert found.counts.unparsed == [2], (long, end)
            assert found.lines == len(path.read_text().splitlines())
            assert found.reader is not None
            assert found.reader.records.total() == found.lines - 1
            assert found.bytes == path.stat().st_size
            gaps = [item for item in items if isinstance(item, Gap)]
            assert [gap.line for gap in gaps if gap.cause == "damaged"] == [2]


def test_a_program_is_told_by_later_records_and_each_record_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"a": 1}\n' * 3 + record("go") + "\n")
    found, _ = items_of(path)
    assert (found.program, found.lines) == ("claude-code", 4)
    assert found.counts.gaps >= 3


@given(
    st.lists(
        st.sampled_from(["a", "b", "cd", "e1", " ", "\n", "-", "\x1c", "\u00ad", "é", "\u2028"])
    ),
    st.integers(1, 40),
)
def test_each_run_of_words_stands_whole_in_a_piece(parts: list[str], size: int) -> None:
    text = "".join(parts)
    words = words_of_text(text)
    runs = {tuple(words[at : at + RUN]) for at in range(max(1, len(words) - RUN + 1))}
    found = set[tuple[str, ...]]()
    for piece in pieces_of(text, size):
        mine = words_of_text(piece)
        found |= {tuple(mine[at : at + RUN]) for at in range(max(1, len(mine) - RUN + 1))}
    assert runs <= found
    assert {run for run in found if len(run) == RUN} <= runs


@pytest.mark.parametrize("at", range(60, 130, 3))
def test_a_protected_text_is_found_wherever_a_long_text_is_cut(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phrases, "PIECE", 100)
    monkeypatch.setattr(phrases, "_ROW", 20)
    path = tmp_path / "s.jsonl"
    lines = "".join(f"{number} w\n" for number in range(at))
    for escape, secret, count in (("", SECRET, 1), ("\x1b[1m", SECRET, 1), ("", "", 0)):
        path.write_text(record(f"{lines}{escape}{secret}\n{lines}") + "\n")
        (one,) = judged(path, protect={"secret": SECRET})[1]
        assert [each.named for each in one.found] == ["secret"] * count


def test_a_run_is_found_across_a_cut_though_long_names_stand_before_each_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = phrases.ProtectedText()
    one.add("secret", SECRET)
    name = "/".join("a-folder-of-a-project" for _ in range(5))
    lines = [f"{name}.py:{number}: {word}\n" for number, word in enumerate(SECRET.split(), 1)]
    text = "".join(lines)
    monkeypatch.setattr(phrases, "PIECE", 20_000)
    for before in range(0, len(text), 100):
        long = "x y\n" * ((19_900 - before) // 4) + text + "z\n" * 9_000
        assert list(one.found_in(long)) == ["secret"], before


@pytest.mark.parametrize("hostile", ["a/", ".", "/", "\n", "abcdefgh\n", "x:1\n"])
def test_hostile_repeats_are_compared_in_a_time_that_grows_with_them(hostile: str) -> None:
    """200,000 characters: what is quadratic takes minutes."""
    text = hostile * (200_000 // len(hostile))
    assert PATHLIKE.fullmatch(text + " ") is None
    assert not overlaps(text + "\n" + "q" * 40, "z" * 200_000)


def test_very_many_lines_in_a_very_long_text_count_as_shown() -> None:
    output = "\n".join(f"line number {number}" for number in range(2_000))
    assert overlaps(output, "z" * 2_000_000)
    assert not overlaps(output, "z" * 2_000)
