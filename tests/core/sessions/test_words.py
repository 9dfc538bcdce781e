"""What ``exposure`` and ``import`` say to people: once, where, why, and what to do about it."""

import gzip
import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from doors.inside import Done, run
from session_specimens import CALLS, SECRET, STARTS, Record

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.reasons import Exposure, Reason, said_once, said_shortly
from tripod.verify.isolation.rules import Breach, TeamSession
from tripod.verify.sessions import powershell, shell
from tripod.verify.sessions.exposure import SessionExposures, judge_exposures
from tripod.verify.sessions.items import Call, Given
from tripod.verify.sessions.programs import NOT_PARSED
from tripod.verify.sessions.readers import PLACES


def _session(path: Path, *calls: list[Record], program: str = "claude-code") -> Path:
    records = [*STARTS[program], *(record for call in calls for record in call)]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def _bash(command: str, answer: str = "done") -> list[Record]:
    return CALLS["claude-code"]("Bash", {"command": command}, answer)


def _read(path: str) -> list[Record]:
    return CALLS["claude-code"]("Read", {"file_path": path}, "text of it")


def _said(done: Done) -> str:
    return done.out.decode()


def test_a_line_that_only_the_extra_parses_is_said_once_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the parser, ``cat x`` is read all the same: then there is nothing to install."""
    monkeypatch.setattr(shell, "_parser", lambda: None)
    monkeypatch.setattr(powershell, "_parser", lambda: None)
    plain, other = _bash("cat notes.md"), [_bash(f"cat $(echo {n})") for n in range(200)]
    _session(tmp_path / "plain.jsonl", plain)
    _session(tmp_path / "other.jsonl", *other)
    clean = run(tmp_path, "exposure", "--never", "*.pem", "plain.jsonl")
    assert (clean.code, "pip install" in _said(clean)) == (0, False)
    told = run(tmp_path, "exposure", "--never", "*.pem", "other.jsonl")
    assert told.code == 3
    assert _said(told).count(NOT_PARSED) == 1
    assert "to do: install the extra: pip install 'tripod-ledger[sessions]'" in _said(told)
    found = run(tmp_path, "exposure", "--never", "*.pem", "--json", "other.jsonl")
    reasons = json.loads(found.out.splitlines()[-1])["reasons"]
    assert [NOT_PARSED in one for one in reasons] == [True]
    assert "pip install" in run(tmp_path, "exposure", "other.jsonl").err
    assert "pip install" not in run(tmp_path, "exposure", "plain.jsonl").err


@pytest.mark.parametrize(
    "words",
    [("exposure",), ("exposure", "--never", "x"), ("import", "--dry-run"), ("exposure", "--json")],
)
def test_a_folder_without_a_session_is_said_with_where_sessions_lie(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "empty").mkdir()
    done = run(tmp_path, *words, "empty")
    assert done.code == 3
    assert "no file of a session was read in empty" in done.err
    assert all(f"{name}: {place}" in done.err for name, place in PLACES.items())


def test_a_file_that_was_packed_or_is_empty_is_said_so(tmp_path: Path) -> None:
    data = _session(tmp_path / "s.jsonl", _read("/w/a")).read_bytes()
    (tmp_path / "s.jsonl.gz").write_bytes(gzip.compress(data))
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as file:
        file.write(tmp_path / "s.jsonl")
    (tmp_path / "nothing.jsonl").touch()
    for name, why in (
        ("s.jsonl.gz", "it is packed (gzip): unpack it"),
        ("s.zip", "it is packed (zip): unpack it"),
        ("nothing.jsonl", "it is empty"),
    ):
        done = run(tmp_path, "exposure", "--never", "*.pem", name)
        assert done.code == 3
        assert why in done.err
        assert "Sessions lie in" not in done.err
        assert why in _said(done)


def test_what_lies_beside_a_session_is_left_out_and_other_files_are_said_in_one_line(
    tmp_path: Path,
) -> None:
    _session(tmp_path / "agent-a1.jsonl", _read("/w/a"))
    (tmp_path / "agent-a1.meta.json").write_text('{"agentType": "Explore"}')
    assert run(tmp_path, "exposure", ".").err == ""
    for number in range(30):
        (tmp_path / f"{number}.json").write_text('{"hello": 1}')
    (tmp_path / "lonely.meta.json").write_text('{"agentType": "Explore"}')
    done = run(tmp_path, "exposure", ".")
    assert done.err.count("\n") == 1
    assert "(31 files)" in done.err
    assert done.code == 0


def test_text_of_the_project_is_said_by_its_file_and_not_by_a_line(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/secret.pem").write_text(SECRET)
    (tmp_path / "shop/AGENTS.md").write_text("See @inner.txt")
    (tmp_path / "shop/inner.txt").write_text(f"We have said: {SECRET}")
    _session(tmp_path / "s.jsonl", program="opencode")
    rule = ("--never", "*.pem", "--project", "shop", "s.jsonl")
    done = run(tmp_path, "exposure", *rule)
    assert done.code == 1
    assert "s.jsonl: shown secret.pem (instructions, in inner.txt)" in _said(done)
    found = run(tmp_path, "exposure", "--json", *rule).out.splitlines()
    assert json.loads(found[0])["line"] == 0
    assert json.loads(found[-1])["reasons"] == [
        "s.jsonl: secret.pem was shown in inner.txt (instructions)"
    ]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (_bash("grep -r x src"), "searches src, which may be a folder with such files (shell)"),
        (_bash("grep -r x ."), "searches /w, which may be a folder with such files (shell)"),
        (_bash("cat *.p*"), "the pattern *.p* may mean one of these files (shell)"),
        (_bash('cat "$WHERE/a.pem"'), "of which only the shell knew a part, may be one"),
        (_bash("cat A.PEM"), "A.PEM may be one of these files, spelled otherwise (shell)"),
        (
            CALLS["claude-code"]("mcp__files__get", {"name": "a.pem"}, "x"),
            "a.pem was named to the tool mcp__files__get, of which nobody knows what it reads",
        ),
        (
            [*_bash("cat a.pem")[:1], *json.loads(json.dumps(_bash("ls")).replace('"c"', '"d"'))],
            "a.pem was asked for, and no answer is there",
        ),
    ],
)
def test_why_a_call_may_have_read_a_file(tmp_path: Path, call: list[Record], why: str) -> None:
    _session(tmp_path / "s.jsonl", call)
    done = run(tmp_path, "exposure", "--never", "*.pem", "s.jsonl")
    assert done.code == 3
    assert why in _said(done)


def test_the_same_reason_is_said_once_for_each_file() -> None:
    reasons = [Reason("a", line, "x (opaque)", "opaque") for line in range(1, 6)]
    assert said_once(reasons) == ["a:1: x (opaque); also in lines 2, 3, 4, 5"]
    assert said_shortly(reasons, 2) == ["a:1: x (opaque); also in lines 2, 3 and 2 more"]
    others = [one._replace(file="b") for one in reasons]
    assert said_once(reasons + others[:1]) == [*said_once(reasons), "b:1: x (opaque)"]
    assert said_shortly(reasons + others, 2) == ["a:1: x (opaque); 10 times, in 2 files"]
    kinds = [Reason("a", 1, f"{name} (opaque)", "opaque") for name in "stuv"]
    assert said_shortly(kinds, 2)[-1] == "and 2 more such reasons (opaque)"
    assert said_once([Reason("a", 0, "x", "y"), Reason("", 0, "z", "y")]) == ["a: x", "z"]


def test_what_the_user_can_give_is_said(tmp_path: Path) -> None:
    _session(tmp_path / "q.jsonl", program="qwen")
    said = _said(run(tmp_path, "exposure", "--never", "x", "q.jsonl"))
    assert "to do: give --project DIR" in said
    assert "to do: give --home DIR" in said
    for name in ("home", "w"):
        (tmp_path / name).mkdir()
    given = ("--project", "w", "--home", "home")
    assert "to do:" not in _said(run(tmp_path, "exposure", "--never", "x", *given, "q.jsonl"))


def test_people_get_some_lines_of_a_file_and_machines_all(tmp_path: Path) -> None:
    _session(tmp_path / "s.jsonl", *(_read(f"/w/{n}.pem") for n in range(1_500)))
    machines = b""
    for words in ((), ("--never", "*.pem")):
        said = _said(run(tmp_path, "exposure", *words, "s.jsonl")).splitlines()
        assert sum(": shown " in line for line in said) == 200
        assert "s.jsonl: and 1300 more: --json lists each" in said
        machines = run(tmp_path, "exposure", *words, "--json", "s.jsonl").out
        assert machines.count(b'"shown": true') == 1_500
    assert json.loads(machines.splitlines()[-1])["coverage"]["exposures"] == 1_500


def test_exposures_that_are_told_as_they_are_found_are_not_kept() -> None:
    """Of each kind the first is, with a count; of very many kinds only how they came."""
    told = Counter[str]()

    def judged(rule: NeverRule | None, names: int) -> SessionExposures:
        one = SessionExposures(
            rule, ProtectedText(), "s", each=lambda each: told.update([str(each.path)])
        )
        for number in range(4_000):
            path = f"/w/{number % names}.pem"
            one.add(Call(f"c{number}", "Read", {}, number + 1, "read", (path,)))
            one.add(Given("read", number + 1, 0, "text", call=f"c{number}"))
        one.end()
        return one

    assert not judged(None, 4_000).found
    few, many = judged(NeverRule(["*.pem"]), 2), judged(NeverRule(["*.pem"]), 4_000)
    assert told.total() == 12_000
    assert len(few.found) == 2
    assert len(many.found) < 1_100
    for one in (few, many):
        verdict = judge_exposures([one], Counter())
        assert verdict.told == "findings"
        assert verdict.coverage["exposures"] == 4_000
    assert judge_exposures([few], Counter()).reasons == [
        "s:1: /w/0.pem was shown (read); 2000 times",
        "s:2: /w/1.pem was shown (read); 2000 times",
    ]


def test_shown_alone_is_refused(tmp_path: Path) -> None:
    _session(tmp_path / "s.jsonl", _read("/w/a"))
    done = run(tmp_path, "exposure", "--shown", "s.jsonl")
    assert done.code == 2
    assert "--shown needs --never or --protect" in done.err


def test_a_breach_that_stands_on_no_line_names_the_file_that_has_it() -> None:
    session = TeamSession(1, 1, "s", "", "", "qwen", "", "/w", "disk")
    each = Exposure(0, "main", None, None, "instructions", "a.pem", None, sure=True, shown=True)
    breach = Breach(session, each._replace(within="QWEN.md"), read_again=True)
    assert breach.message == "session s was shown a.pem (instructions, in QWEN.md)"
    breach = breach._replace(exposure=each._replace(line=7))
    assert breach.message == "session s was shown a.pem (instructions, line 7)"
