"""Large sessions are judged with a second process: the verdict stays the same, whatever it does."""

from __future__ import annotations

import gc
import os
import signal
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from doors.inside import run
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_sessions import recorded, transcripts, write_session

from tripod.ledger.words import RUN, words_of_text
from tripod.verify import child
from tripod.verify.child import Helper
from tripod.verify.isolation import batch, phrases
from tripod.verify.isolation.batch import ItemBatches, answer
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.recorded import files
from tripod.verify.recorded.files import judged_beside, read_session_file
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import Call, Given, RecordParts
from tripod.verify.sessions.shell import resolved
from tripod.verify.sessions.syntax import CLOSED, NEVER_CLOSED

NEVER = ("chat/**", ".env*", "**/secrets/*.json", "/etc/**")
SECRET = "the quick brown fox jumps over the lazy dog and then it sleeps"


@cache
def _protected() -> dict[str, str]:
    folder = recorded() / "sessions/allways"
    return {
        "secret.md": SECRET,
        **{
            str(path.relative_to(recorded())): path.read_text()
            for path in sorted(folder.rglob("*.md"))[:20]
        },
    }


def _texts() -> ProtectedText:
    found = ProtectedText()
    for path, text in _protected().items():
        found.add(path, text)
    return found


def _told(path: Path, helper: Callable[[ProtectedText, NeverRule], Any] | None = None) -> object:
    """All that is told of a session, with or without somebody who helps."""
    rule, protected = NeverRule(NEVER, ["*.example"]), _texts()
    helping = None if helper is None else helper(protected, rule)
    one = SessionExposures(rule, protected, str(path), helper=helping)
    read_session_file(str(path), one.add)
    one.end()
    if helping is not None:
        helping.close()
    return list(one.found), list(one.found.elsewhere), list(one.gaps), one.denied, one.tree.sessions


def test_what_was_judged_is_freed_at_once(tmp_path: Path) -> None:
    one = SessionExposures(NeverRule(NEVER), _texts())
    read_session_file(str(_large(tmp_path)), one.add)
    one.end()
    assert one.found
    left = weakref.ref(one)
    gc.disable()  # which would look for cycles
    try:
        del one
        assert left() is None
    finally:
        gc.enable()


def _helper(protected: ProtectedText, rule: NeverRule) -> Helper[Any, Any]:
    return Helper(partial(answer, protected, rule))


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_with_a_second_process_all_is_told_as_without(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ItemBatches, "_TOGETHER", 2_000)
    whole = _told(path)
    assert _told(path, _helper) == whole
    monkeypatch.setattr(Helper, "_FEW", -1)  # it is always behind, and has the texts alone
    assert _told(path, _helper) == whole


_BETWEEN = st.sampled_from([" ", "\\n", "\\u0020", "\n3: ", " \u200b", "\u200b ", " \x1b[1m"])


@st.composite
def _parts_of_records(draw: st.DrawFn) -> list[tuple[int, str]]:
    """Texts of some records: of each the secret in parts, written in two ways, and other words."""
    found: list[tuple[int, str]] = []
    for line in range(1, draw(st.integers(1, 3)) + 1):
        ways = draw(_BETWEEN), draw(_BETWEEN)
        first = draw(st.integers(0, len(SECRET)))
        text = "".join(ways[at > first] if sign == " " else sign for at, sign in enumerate(SECRET))
        cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=2)))
        parts = [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)])]
        found += [(line, part) for part in (draw(st.sampled_from(["", "so"])), *parts)]
    return found


@settings(max_examples=400)
@given(_parts_of_records(), st.integers(1, 300))
def test_texts_that_wait_together_are_told_as_each_is_alone(
    texts: list[tuple[int, str]], together: int
) -> None:
    protected, parts = _texts(), RecordParts()

    def found_in(text: str) -> set[int]:
        forms = phrases._forms_of(text)
        return {number for form in forms for number in protected._found_in(form)}

    items = [Given("paste", line, 0, text) for line, text in texts]
    expected = []
    for item in items:
        part = parts.add(item)
        here, before = found_in(item.text), found_in(part.before)
        both = {number for joint in part.joints for number in found_in(joint)}
        expected.append({protected.paths[number] for number in here | (both - before)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ItemBatches, "_TOGETHER", together)
        batches = ItemBatches(None, protected, None)
        ready = [one for item in items for one in batches.add(item)] + list(batches.end())
    told = [set(one.paths.get(at, ())) for one in ready for at in range(len(one.items))]
    assert told == expected


def _large(tmp_path: Path) -> Path:
    """A session that shows and names protected files, in many batches."""
    reads = [
        (f"/w/src/{n}.py" if n % 9 else "/w/.env", f"x{n} " * 300 + (SECRET if n % 7 == 0 else ""))
        for n in range(200)
    ]
    return write_session(tmp_path / "s.jsonl", "s", *reads)


class _Killed(Helper[Any, Any]):
    """A helper that is killed after some questions."""

    left = 20

    def ask(self, question: Any) -> Callable[[], Any]:
        self.left -= 1
        if not self.left:
            assert self._child is not None
            os.kill(self._child[0], signal.SIGKILL)
        return super().ask(question)


class _Brief(Helper[Any, Any]):
    """A helper each of whose answers is too long to be sent."""

    _LONGEST = 3


def test_a_second_process_that_dies_or_says_too_much_changes_nothing(tmp_path: Path) -> None:
    path = _large(tmp_path)
    alone = _told(path)
    for kind in (_Killed, _Brief):
        assert _told(path, lambda *given, kind=kind: kind(partial(answer, *given))) == alone, kind


def test_where_no_process_can_be_started_this_one_does_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _large(tmp_path)
    alone = _told(path)

    def fork() -> int:
        raise BlockingIOError(11, "no more processes")

    monkeypatch.setattr(os, "fork", fork)
    assert _told(path, _helper) == alone
    assert child.start_child(lambda: 1)() is None


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_second_process_ends_with_the_first(is_gone: bool) -> None:
    helper = _helper(_texts(), NeverRule(NEVER))
    assert helper._child is not None
    number, questions, _ = helper._child
    assert helper.ask(([SECRET], [], []))() == ([[0]], [])
    if is_gone:  # as it is where this process is killed
        questions.close()
    helper.close()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@contextmanager
def _started(monkeypatch: pytest.MonkeyPatch, size: int, cores: int) -> Iterator[bool]:
    monkeypatch.setattr(files, "_LARGE", 100)
    monkeypatch.setattr(child, "child_cores", lambda: cores)
    path = Path(__file__)
    protected, rule = _texts(), NeverRule(NEVER)
    paths = [str(path)] if size else []
    with judged_beside(protected, rule, [*paths, "/nowhere"]) as helper:
        yield helper is not None


def test_only_large_files_get_a_second_process_and_only_with_a_processor_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for size, cores, expected in ((1, 2, True), (1, 1, False), (0, 2, False)):
        with _started(monkeypatch, size, cores) as found:
            assert found is expected


def test_the_command_says_the_same_of_a_large_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _large(tmp_path)
    (tmp_path / "secret").write_text(SECRET)
    asked: list[int] = []
    ask = Helper[Any, Any].ask

    def counted(self: Helper[Any, Any], question: Any) -> Callable[[], Any]:
        asked.append(len(question[0]))
        return ask(self, question)

    line = ["exposure", "--never", ".env*", "--protect", "secret", "--json", "s.jsonl"]
    alone = run(tmp_path, *line)
    monkeypatch.setattr(files, "_LARGE", 0)
    monkeypatch.setattr(child, "child_cores", lambda: 2)
    monkeypatch.setattr(Helper, "ask", counted)
    assert run(tmp_path, *line) == alone
    assert alone.code == 1
    assert sum(asked) > 200


# What is told ahead -------------------------------------------------------------------------------

_PARTS = st.lists(
    st.sampled_from(
        ["a", "Bc", "d-e", "é", "я", "7", "_", "\n", "\n1 ", "\n22:", "\nL3: ", "\nx.py:4:"]
    ),
    max_size=90,
)


def _runs(texts: list[str], size: int = RUN) -> set[tuple[str, ...]]:
    found = set[tuple[str, ...]]()
    for text in texts:
        words = words_of_text(text)
        found |= {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}
    return found


@given(_PARTS, st.integers(1, 40))
def test_each_run_across_numbers_of_lines_is_kept_and_none_is_made_up(
    parts: list[str], side: int
) -> None:
    text = " ".join(parts)
    whole = phrases._NUMBERED.sub("\n", f"\n{text}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phrases, "_SIDE", side)
        kept = _runs([text, *phrases._without_numbers(text)])
    assert _runs([whole]) <= kept <= _runs([whole, text])


_NAMES = st.text("ab.~-_/ é*:\\", max_size=12)


@given(_NAMES, _NAMES)
def test_a_tame_path_is_resolved_as_any_other(named: str, cwd: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tripod.verify.sessions.shell._TAME", _NEVER_TAME)
        slow = resolved(named, f"/{cwd}" if cwd else "")
    assert resolved(named, f"/{cwd}" if cwd else "") == slow


class _Untamed:
    def fullmatch(self, *_: object) -> None:
        return None


_NEVER_TAME = _Untamed()


@given(
    st.lists(
        st.sampled_from(["chat/**", ".env*", "*.pem", "**/S/x.json", "/etc/a", "É*"]), min_size=1
    ),
    st.text("chat/.envpmSsxjo\u00e9\u0301ECHAT*~", max_size=14),
)
def test_a_path_that_is_far_is_never_hit(never: list[str], path: str) -> None:
    rule = NeverRule(never)
    if rule.is_far(path):
        assert not rule.hits(path)
        assert not rule.may_hit(path, ("/w",), recursive=False)


@pytest.mark.parametrize("name", sorted(NEVER_CLOSED))
def test_programs_that_open_files_begin_no_command_that_is_closed(name: str) -> None:
    for more in ("", "--version", "-version", "-V", "-v", "version", "-v x", "list", "ps", "ls"):
        assert CLOSED.fullmatch(f"{name} {more}".strip()) is None


def test_a_reading_that_is_sent_has_all_that_a_rule_may_mean() -> None:
    line = "cd /w && cat .env src/a.py && grep -rn x sub && head -3 ../secrets/b.json"
    rule = NeverRule(NEVER)
    ((_, (near,)),) = [
        answer(ProtectedText(), rule, ([], [], [batch.ShellCommand("Bash", line, "/w")]))
    ]
    assert [one.path for one in near.opened] == ["/w/.env", "/w/sub", "/secrets/b.json"]
    assert near.ended == batch.opened_by_call(_call(line)).ended


def _call(line: str) -> Call:
    return Call("", "Bash", None, 0, "shell", command=line, cwd="/w")
