"""``tripod report`` on teams: what it writes, what it refuses, and that its bytes stay the same."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from doors.inside import run
from git_repo import Git
from html_pages import SeenPage
from nbs_team import unpack
from recorded_sessions import write_session

from tripod.report import render_report
from tripod.report.page import MARK
from tripod.report.server import ServedReport
from tripod.verify.isolation.rules import sights_of
from tripod.verify.run import verify

GOLDEN = Path(__file__).parents[2] / "golden/team-852efc6.tar.xz"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team with each kind of entry, its exports and a proof."""
    folder = tmp_path_factory.mktemp("golden")
    unpack(GOLDEN, folder)
    return folder


@pytest.fixture(scope="module")
def page(archive: Path) -> bytes:
    """The page of that team."""
    return render_report(str(archive / "team")).pages["tripod-report.html"]


def test_a_page_tells_what_verify_tells(archive: Path, page: bytes) -> None:
    seen, report = SeenPage(page), verify(str(archive / "team"))
    assert ("h1", "cannot tell") in seen.headings
    for outcome in report.outcomes:
        assert outcome.check in seen.text
        for finding in outcome.findings:
            assert f"f-{finding.fingerprint[:12]}" in seen.ids
            assert finding.message in seen.text
    assert report.head is not None
    assert {f"e{seq}" for seq in range(report.head[0])} <= set(seen.ids)
    assert "WITNESSED" in seen.text
    assert "Entries 0 to 337 covered by a head that fits" in " ".join(seen.text.split())
    assert "pythia cannot tell (1) nothing found (6) 7 readers" in " ".join(seen.text.split())
    assert seen.text.count("handed the variables") >= 1  # a clean verdict's exceptions


def test_the_tail_begins_where_the_newest_head_from_outside_ends(page: bytes) -> None:
    said = "From entry 333 on the ledger alone vouches for what it holds: 4 entries besides seals"
    assert said in SeenPage(page).text.replace("\n", " ")


def test_the_same_ledger_gives_the_same_bytes_elsewhere(archive: Path, page: bytes) -> None:
    code = "import sys; from tripod.report import *; print(render_report(sys.argv[1]).pages)"
    ours = repr({"tripod-report.html": page})
    more = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "77"}
    words = (sys.executable, "-c", code, str(archive / "team"))
    environment = {**os.environ, **more}
    done = subprocess.run(words, capture_output=True, env=environment, check=True, text=True)
    assert done.stdout.strip() == ours


@pytest.mark.parametrize("what", ["export", "headers", "entry.tlog-proof", "team/.nbs/ledger.db"])
def test_what_verify_judges_has_a_page(archive: Path, tmp_path: Path, what: str) -> None:
    target = tmp_path / "r.html"
    done = run(archive, "report", what, "-o", str(target))
    assert done.code == verify(str(archive / what)).exit_code if what != "entry.tlog-proof" else 3
    assert SeenPage(target.read_bytes()).headings[0][0] == "h1"


def test_a_proof_of_growth_names_the_command_that_takes_the_older_seal(
    archive: Path, tmp_path: Path
) -> None:
    key = json.loads(GOLDEN.with_suffix("").with_suffix(".json").read_text())["key"]
    words = ("grown.tlog-proof", "--key", key, "-o", str(tmp_path / "r.html"))
    assert run(archive, "report", *words).code == 3
    text = SeenPage((tmp_path / "r.html").read_bytes()).text
    assert "`tripod verify --old SEAL`" in " ".join(text.split())


def test_a_place_without_a_team_has_a_page_that_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "report", "nowhere")
    assert done.code == 3
    text = SeenPage((tmp_path / "tripod-report.html").read_bytes()).text
    assert "Nothing could be judged" in text
    assert done.err == "tripod: nowhere: there is no such file or directory\n"
    assert run(tmp_path, "report", "nowhere", "-q").err == ""


def test_a_rewritten_entry_is_told_on_the_page(archive: Path, tmp_path: Path) -> None:
    team = Path(shutil.copytree(archive / "team", tmp_path / "team"))
    with closing(sqlite3.connect(team / ".nbs/ledger.db")) as db, db:
        db.execute("DROP TRIGGER entries_no_update")
        db.execute("UPDATE entries SET body = cast('{}' AS BLOB) WHERE seq = 40")
    done = run(team, "report")
    assert (done.code, done.out[:9]) == (1, b"findings:")
    text = " ".join(SeenPage((team / "tripod-report.html").read_bytes()).text.split())
    assert "The ledger is damaged: entry 40 is the first bad one" in text
    assert "its body is not the one that its header commits to" in text


def test_flipped_bytes_give_a_page_all_the_same(archive: Path, tmp_path: Path) -> None:
    team = Path(shutil.copytree(archive / "team", tmp_path / "team"))
    database = team / ".nbs/ledger.db"
    data = bytearray(database.read_bytes())
    for place in range(8192, len(data), 40_961):
        data[place : place + 64] = b"\x05" * 64
    database.write_bytes(data)
    done = run(team, "report")
    assert done.code in (1, 3)
    assert SeenPage((team / "tripod-report.html").read_bytes()).headings[0][1] != "clean"


def test_a_clone_without_a_ledger_has_a_part_for_each_record(tmp_path: Path) -> None:
    git = Git(tmp_path / "a")
    assert run(git.root, "init", "--key").code == 0
    run(git.root, "chat", "create", "live")
    run(git.root, "chat", "send", "live", "ann", "only in the record")
    assert run(git.root, "seal").code == 0
    clone = Git(tmp_path / "b")
    clone("fetch", "-q", str(git.root), "+refs/tripod/*:refs/tripod-remotes/origin/*")
    done = run(tmp_path / "b", "report", "-q")
    assert (done.code, done.out) == (0, b"")
    seen = SeenPage((tmp_path / "b/tripod-report.html").read_bytes())
    assert "only in the record" in seen.text


# Files ------------------------------------------------------------------------------------------


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A team in a folder whose name is not UTF-8."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 \x1b[31m/team"))
    folder.mkdir(parents=True)
    assert run(folder, "init").code == 0
    return folder


def test_a_file_that_is_no_report_is_not_written_over(team: Path) -> None:
    target = team / "notes.html"
    target.write_text("mine")
    done = run(team, "report", "-o", "notes.html")
    assert (done.code, target.read_text()) == (1, "mine")
    assert "is no report of tripod" in done.err
    target.write_text("")  # a file that was made for it
    assert run(team, "report", "-o", "notes.html").code == 0
    assert run(team, "report", "-o", "notes.html").code == 0  # a report is replaced
    assert target.read_bytes().startswith(MARK)
    assert r"caf\udce9 \x1b[31m" in SeenPage(target.read_bytes()).text


def test_no_page_is_put_into_what_is_judged(team: Path) -> None:
    for target in (".nbs/new.html", ".nbs/ledger.db-journal", "tripod.toml"):
        done = run(team, "report", "-o", target)
        assert (done.code, "no report is put at" in done.err) == (1, True)
        assert not (team / target).exists()
    write_session(team / "s.jsonl", "s1")
    done = run(team, "report", "--session", "s.jsonl", "-o", ".nbs/chat/new.html")
    assert (done.code, "no report is put at" in done.err) == (1, True)


def test_a_page_goes_into_a_pipe_and_waits_for_no_writer(team: Path) -> None:
    os.mkfifo(team / "pipe")
    with subprocess.Popen(("cat", "pipe"), cwd=team, stdout=subprocess.PIPE) as reader:
        assert run(team, "report", "-o", "pipe").code == 0
        page, _ = reader.communicate(timeout=20)
    assert page.startswith(MARK)


def test_a_page_goes_to_a_descriptor_that_has_no_name_in_any_folder(team: Path) -> None:
    begin, end = os.pipe()
    with open(begin, "rb") as pipe, open(end, "wb", buffering=0):
        assert run(team, "report", "-o", f"/dev/fd/{end}").code == 0
        assert os.read(pipe.fileno(), 99).startswith(MARK)


def test_what_a_proof_cannot_be_held_against_is_refused(archive: Path, tmp_path: Path) -> None:
    for option in ("--pin", "--policy", "--since", "--policy-from", "--never"):
        target = tmp_path / "r.html"
        done = run(archive, "report", "entry.tlog-proof", option, "x", "-o", str(target))
        assert (done.code, "is a proof" in done.err, target.exists()) == (2, True, False)


def test_what_cannot_be_written_is_said_and_nothing_is_left_behind(team: Path) -> None:
    (team / "file").write_text("")
    for target in ("absent/r.html", "file/r.html", "."):
        before = sorted(os.listdir(team))
        done = run(team, "report", "-o", target)
        assert done.code == 1
        assert "the report was not written to" in done.err
        assert done.err.count("\n") == 1
        assert sorted(os.listdir(team)) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full disk to try")
def test_a_full_disk_does_not_hide_the_verdict(team: Path) -> None:
    done = run(team, "report", "-o", "/dev/full")
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith("tripod: clean: the report was not written to /dev/full: ")
    assert run(team, "report", "nowhere", "-o", "/dev/full").code == 3


def days(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.name.startswith("r-"))


def test_no_page_of_a_day_outlives_its_report(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tripod.report.page.WHOLE", 1)
    assert run(team, "report", "-o", "r.html").code == 0
    made = days(team)
    assert len(made) > 1
    # Pages of another report, and what somebody kept, are of no concern here.
    others = ("other-2026-11-01.html", "r-x-2026-11-01.html", "r-2026-11-01-kept.html")
    for name in others:
        shutil.copy(team / made[0], team / name)
    (team / "r-2026-11-02.html").write_bytes(MARK + b" -->")  # a report that is called by its day
    monkeypatch.undo()
    assert run(team, "report", "-o", "r.html").code == 0
    assert days(team) == sorted([*others[1:], "r-2026-11-02.html"])
    assert (team / others[0]).exists()


def test_no_page_of_a_day_takes_the_place_of_a_report(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tripod.report.page.WHOLE", 1)
    assert run(team, "report", "-o", "r.html").code == 0
    name, kept = days(team)[0], (MARK + b" -->")
    (team / name).write_bytes(kept)
    done = run(team, "report", "-o", "r.html")
    assert (done.code, (team / name).read_bytes()) == (1, kept)
    assert "is no page of a day of this report" in done.err
    assert done.err.startswith("tripod: clean: ")


def test_a_link_has_no_folder_for_pages_of_days(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tripod.report.page.WHOLE", 1)
    (team / "link.html").symlink_to("r.html")
    assert run(team, "report", "-o", "link.html").code == 0
    assert sorted(os.listdir(team)) == [".nbs", "link.html", "r.html"]


def test_a_page_is_no_more_readable_than_its_writer_lets_files_be(team: Path) -> None:
    before = os.umask(0o077)
    try:
        assert run(team, "report", "-o", "r.html").code == 0
    finally:
        os.umask(before)
    assert (team / "r.html").stat().st_mode & 0o777 == 0o600
    assert run(team, "report", "-o", "r.html").code == 0
    assert (team / "r.html").stat().st_mode & 0o777 == 0o600  # it stays so


def test_a_rule_of_the_call_counts_as_it_does_with_verify(team: Path) -> None:
    words = ("--never", "*.pem")
    done = run(team, "report", *words)
    assert (done.code, done.out[:11]) == (run(team, "verify", *words).code, b"cannot tell")
    assert "*.pem" in SeenPage((team / "tripod-report.html").read_bytes()).text


def test_a_page_goes_to_standard_output(team: Path) -> None:
    done = run(team, "report", "-o", "-")
    assert (done.code, done.err) == (0, "")
    SeenPage(done.out)
    assert os.listdir(team) == [".nbs"]


def served(
    monkeypatch: pytest.MonkeyPatch, folder: Path, meanwhile: Callable[[], object]
) -> tuple[bytes, bytes, bool]:
    """The page of a folder that is served, before and after; whether an open page is told of it."""
    seen: list[Any] = []

    class Server(nullcontext[None]):
        address = "http://127.0.0.1/"

        def __init__(self, report: ServedReport, *_: object) -> None:
            super().__init__(None)
            self.report = report

        def serve_forever(self) -> None:
            before, mark = self.report.page(""), self.report._mark()
            meanwhile()
            seen.extend((before, self.report.page(""), self.report._mark() != mark))

    monkeypatch.setattr("tripod.report.server.ReportServer", Server)
    assert run(folder, "report", "--serve").code == 0
    return seen[0], seen[1], seen[2]


def test_no_other_team_takes_the_place_of_one_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("outer", "made"):
        (tmp_path / name).mkdir()
        assert run(tmp_path / name, "init").code == 0
    inner = Path(shutil.move(tmp_path / "made", tmp_path / "outer/inner"))
    before, after, is_told = served(monkeypatch, inner, lambda: shutil.rmtree(inner / ".nbs"))
    assert b"<h1>clean</h1>" in before
    assert b"<h1>cannot tell</h1>" in after
    assert is_told


def test_a_file_that_is_as_long_and_as_old_as_before_is_another_all_the_same(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = team / ".nbs/notes"
    file.write_text("a")

    def change() -> None:
        was = file.stat()
        file.write_text("b")
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))

    assert served(monkeypatch, team, change)[2]


def test_a_chat_that_lies_elsewhere_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, chats = tmp_path / "project", tmp_path / "chats"
    folder.mkdir()
    chats.mkdir()
    assert run(folder, "init", "--chat", str(chats)).code == 0
    assert run(folder, "chat", "create", "live").code == 0
    before, after, is_told = served(monkeypatch, folder, (chats / "live.chat").unlink)
    assert b"<h1>clean</h1>" in before
    assert b"<h1>findings</h1>" in after
    assert is_told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--protect", "x"), "--protect needs --session"),
        (("--except", "x"), "--except needs --never"),
        (("--session", "s.jsonl", "--no-git"), "--no-git is about a team"),
        (("a", "b"), "give one PATH"),
        (("--select", "nothing"), "no check 'nothing'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    team: Path, words: tuple[str, ...], said: str
) -> None:
    done = run(team, "report", *words)
    assert (done.code, said in done.err) == (2, True)


def test_without_the_extra_it_says_what_to_install(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("tripod.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = run(team, "report")
    assert (done.code, "pip install 'tripod-ledger[report]'" in done.err) == (2, True)


# Sessions ---------------------------------------------------------------------------------------


def test_recorded_sessions_have_a_page_without_a_ledger(tmp_path: Path) -> None:
    write_session(tmp_path / "a.jsonl", "a", ("/w/.env", "KEY=1"))
    write_session(tmp_path / "b.jsonl", "b", ("/w/.env</script>\u202e", "x = 1"))
    words = ("--session", "a.jsonl", "b.jsonl", "--never", ".env*")
    done = run(tmp_path, "report", *words)
    assert (done.code, done.out[:9]) == (1, b"findings:")
    page = (tmp_path / "tripod-report.html").read_bytes()
    text = " ".join(SeenPage(page).text.split())
    assert "a.jsonl:" in text
    assert "/w/.env was shown (read)" in text
    assert r"/w/.env</script>\u202e" in text
    assert "shown (2)" in text
    run(tmp_path, "report", *words)
    assert (tmp_path / "tripod-report.html").read_bytes() == page


def test_sessions_without_a_rule_are_listed_and_not_judged(tmp_path: Path) -> None:
    write_session(tmp_path / "a.jsonl", "a", ("/w/.env", "KEY=1"))
    done = run(tmp_path, "report", "--session", "a.jsonl")
    assert (done.code, done.out[:11]) == (0, b"not judged:")
    text = SeenPage((tmp_path / "tripod-report.html").read_bytes()).text
    assert "No rule was given" in text
    assert "/w/.env" in text
    (tmp_path / "empty.jsonl").write_text("")
    assert run(tmp_path, "report", "--session", "empty.jsonl").code == 3


def test_sessions_that_were_not_read_are_named_with_a_rule_and_without(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "some").mkdir()
    write_session(tmp_path / "some/a.jsonl", "a", ("/w/a.py", "x = 1"))
    (tmp_path / "some/b.jsonl").write_text('{"x": 1}\n')
    target = tmp_path / "tripod-report.html"
    assert run(tmp_path, "report", "--session", "none", "--never", ".env").code == 3
    text = " ".join(SeenPage(target.read_bytes()).text.split())
    assert "cannot tell No session was read." in text
    assert "No place is protected" not in text
    run(tmp_path, "report", "--session", "some")
    text = " ".join(SeenPage(target.read_bytes()).text.split())
    assert "Not all could be seen." in text
    assert "b.jsonl:1: the file was not read" in text


def test_who_saw_what_of_a_team_is_in_the_outcome(tmp_path: Path) -> None:
    assert run(tmp_path, "init").code == 0
    for name, path in (("a", "/w/.env"), ("b", "/w/a.py")):
        write_session(tmp_path / f"{name}.jsonl", name, (path, "KEY=1"))
        run(tmp_path, "import", f"{name}.jsonl", "--as", "ann")
    (tmp_path / ".nbs/policy.yaml").write_text("never:\n  - paths: [.env]\n")
    (tmp_path / "b.jsonl").unlink()
    report = verify(str(tmp_path))
    told = next(one for one in report.outcomes if one.check == "never-read")
    assert [(one.who, one.place, one.grade) for one in sights_of(told)] == [
        ("session a", ".env", "shown"),
        ("session b", ".env", "cannot tell"),
    ]
    assert "the file is gone" in sights_of(told)[1].why[0]
