"""``tripod verify --format``: a report in several forms at once, printed and in files."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from doors.inside import Done, begin, keyed, run
from git_repo import Git
from junitparser import JUnitXml

from tripod.cli import verify as verify_command
from tripod.errors import RefusedError, TripodError


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A team in a repository, one of whose files was edited by hand, and one outside of it."""
    (tmp_path / "work").mkdir()
    folder = begin(tmp_path / "work")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    chat = folder / ".nbs/chat/live.chat"
    chat.write_bytes(b"".join(chat.read_bytes().splitlines(keepends=True)[:-1]))
    return folder


def verify(team: Path, *formats: str, more: tuple[str, ...] = ()) -> Done:
    return run(team, "verify", *(f"--format={one}" for one in formats), *more)


def timeless(done: Done) -> bytes:
    """A report without how long ago the newest entries came: two runs may be a second apart."""
    return re.sub(rb'"seconds": \d+', b"", done.out)


def test_each_form_has_its_file_and_the_text_is_printed(team: Path) -> None:
    plain = run(team, "verify")
    done = verify(team, "sarif=a.sarif", "junit=b.xml", "json=c.json", "text=d.txt", "github=e")
    assert (done.code, done.out) == (plain.code, plain.out) == (1, plain.out)
    whole = json.loads((team / "c.json").read_bytes())
    (run_of,) = json.loads((team / "a.sarif").read_bytes())["runs"]
    assert run_of["invocations"][0]["exitCode"] == whole["exit_code"] == 1
    (result,) = run_of["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == ".nbs/chat/live.chat"
    prints = [one["fingerprint"] for each in whole["checks"] for one in each["findings"]]
    assert [result["partialFingerprints"]["primaryLocationLineHash"]] == prints
    assert JUnitXml.fromfile(str(team / "b.xml")).failures == 1
    assert (team / "d.txt").read_bytes() == plain.out
    assert (team / "e").read_text().startswith("::error file=.nbs/chat/live.chat,line=")
    assert not list(team.glob("*.places.txt")), "everything lies in the repository"


def test_one_form_may_go_to_standard_output_in_place_of_the_text(team: Path) -> None:
    done = verify(team, "sarif", "junit=b.xml")
    assert json.loads(done.out)["version"] == "2.1.0"
    plain = run(team, "verify", "--json")
    assert timeless(verify(team, "json")) == timeless(plain)
    assert timeless(verify(team, "sarif=a.sarif", more=("--json",))) == timeless(plain)
    quiet = verify(team, "sarif=q.sarif", more=("--quiet",))
    assert (quiet.code, quiet.out) == (1, b"")
    assert (team / "q.sarif").is_file()


def test_what_lies_elsewhere_is_told_beside_the_report(team: Path) -> None:
    pin = team.parent / "pin"
    assert run(team, "verify", f"--pin={pin}", "--update-pin").code == 1
    pin.write_text(f"sample\n9\n{'A' * 43}=\n")
    (team / "out").mkdir()
    done = verify(team, "sarif=out/a.sarif", more=(f"--pin={pin}",))
    assert done.code == 1
    (run_of,) = json.loads((team / "out/a.sarif").read_bytes())["runs"]
    places = [one["locations"][0]["physicalLocation"] for one in run_of["results"]]
    (there,) = [one for one in places if one["artifactLocation"]["uri"] == "out/a.sarif.places.txt"]
    lines = (team / "out/a.sarif.places.txt").read_text().splitlines()
    assert str(pin) in lines[there["region"]["startLine"] - 1]


def test_a_step_gets_a_summary(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = team / "summary"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert b"::error file=" in verify(team, "github").out
    assert summary.read_text().startswith("## tripod verify: 1 finding\n")
    summary.write_text("before")
    assert verify(team, "github").code == 1
    assert summary.read_text().startswith("before\n## tripod verify: 1 finding\n")


def test_a_summary_that_cannot_be_written_is_a_lost_report(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(team, "rebuild").code == 0
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(team / "no/such/folder"))
    done = verify(team, "github", "junit=b.xml")
    assert (done.code, b"::error" in done.out) == (1, False)
    assert "the step summary was not written" in done.err
    assert (team / "b.xml").is_file()
    full = team / "full"
    full.write_bytes(b"x" * (1024 * 1024 - 100))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(full))
    done = verify(team, "github")
    assert (done.code, full.stat().st_size) == (1, 1024 * 1024 - 100)
    assert "it would be larger than 1048576 bytes" in done.err


def test_an_older_seal_is_not_passed_over(team: Path) -> None:
    """Only a proof is held against it: with anything else the run was clean without a look."""
    done = run(team, "verify", "--old=no-such-seal")
    assert (done.code, done.out) == (2, b"")
    assert "--old goes with a proof" in done.err


def test_what_could_not_be_judged_stays_3_though_its_report_is_lost(team: Path) -> None:
    (team / "empty").mkdir()
    done = run(team, "verify", "empty", "--format=junit=no/such/b.xml")
    assert done.code == 3
    assert "was not written" in done.err


@pytest.mark.parametrize(
    ("formats", "said"),
    [
        (["sarf"], "no format 'sarf'; there are text, json, sarif, junit, github. Did you mean"),
        (["sarif="], "name the file behind the ="),
        (["sarif", "junit"], "two reports go to standard output"),
        (["sarif=a", "junit=./a"], "two reports go to ./a"),
        (["sarif=a", "junit=a.places.txt"], "two reports go to a.places.txt"),
        (["junit=a.places.txt", "sarif=a"], "two reports go to a"),
        (["sarif=a", "junit=A"], "two reports go to A: give each a file"),
        (["sarif=-", "junit"], "two reports go to standard output"),
        (["junit=x\n\x1b[2J\u202e", "sarif=x\n\x1b[2J\u202e"], "to x\\x0a\\x1b[2J\\u202e: "),
        (["junit=no/such\n\u202e", "sarif=no/such\n\u202e"], "to no/such\\x0a\\u202e: "),
    ],
)
def test_what_is_asked_for_wrongly_is_refused_before_anything_is_judged(
    team: Path, formats: list[str], said: str
) -> None:
    done = verify(team, *formats)
    assert (done.code, done.out) == (2, b"")
    assert said in done.err
    assert not (team / "a").exists()


def test_a_report_that_cannot_be_written_loses_neither_the_text_nor_the_others(
    team: Path,
) -> None:
    done = verify(team, "junit=no/such/b.xml", "sarif=a.sarif")
    assert done.code == 1
    assert b"drift" in done.out
    assert "the report was not written to no/such/b.xml: No such file or directory" in done.err
    assert os.path.exists(team / "a.sarif")


def test_a_report_is_written_where_a_link_leads_and_replaces_no_device(team: Path) -> None:
    (team / "link").symlink_to("there.xml")
    os.mkfifo(team / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=team, stdout=subprocess.PIPE) as reader:
        assert verify(team, "junit=link", "json=pipe").code == 1
        assert reader.stdout is not None
        assert json.loads(reader.stdout.read())["exit_code"] == 1
    assert (team / "link").is_symlink()
    assert JUnitXml.fromfile(str(team / "there.xml")).failures == 1
    assert (team / "pipe").is_fifo()


def test_a_report_in_a_pipe_has_no_file_beside_it(team: Path) -> None:
    (team.parent / "p.yaml").write_text("required: [record-agrees]\n")
    os.mkfifo(team / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=team, stdout=subprocess.PIPE) as reader:
        assert verify(team, "sarif=pipe", more=("--policy=../p.yaml",)).code == 1
        assert reader.stdout is not None
        (run_of,) = json.loads(reader.stdout.read())["runs"]
    found = {str(one["locations"]) for one in run_of["results"]}
    assert any(f"file://{team.parent}/p.yaml" in one for one in found)
    assert not list(team.glob("*.places.txt"))


def test_a_pipe_that_has_no_path_of_its_own_takes_a_report(team: Path) -> None:
    """As /dev/stdout, and `>(program)` of a shell: the real path of such a link names nothing."""
    read, write = os.pipe()
    done = verify(team, f"github=/dev/fd/{write}")  # a pipe holds this without a reader
    os.close(write)
    with open(read, "rb") as file:
        assert file.read().startswith(b"::error ")
    assert (done.code, done.err) == (1, "")


def test_a_report_in_a_name_of_standard_output_is_alone_there(team: Path) -> None:
    """The text before or behind it would make JSON that no program reads."""
    plain = timeless(run(team, "verify", "--json"))
    assert timeless(verify(team, "json=-")) == plain
    assert not (team / "-").exists()
    read, write = os.pipe()
    kept = os.dup(1)
    os.dup2(write, 1)
    try:
        done = verify(team, "json=/dev/fd/1")  # the device that standard output leads to
    finally:
        os.dup2(kept, 1)
        for one in (kept, write, read):
            os.close(one)
    assert timeless(done) == plain


@pytest.mark.parametrize("more", [("--grow-only=log.md",), ("--no-git",), ("--select=drift",)])
def test_a_run_that_looks_at_a_part_closes_no_alert_of_a_whole_one(
    team: Path, more: tuple[str, ...]
) -> None:
    def kind(*more: str) -> str:
        (one,) = json.loads(verify(team, "sarif=-", more=more).out)["runs"]
        return str(one["automationDetails"]["id"])

    git = Git(team)
    git.commit("log.md", b"one\n")
    assert (kind(), kind(*more)) == ("tripod/verify/", "tripod/verify-part/")


def test_a_clean_verdict_whose_report_is_lost_is_no_success(team: Path) -> None:
    assert run(team, "rebuild").code == 0
    assert verify(team).code == 0
    done = verify(team, "junit=no/such/b.xml")
    assert done.code == 1
    assert "was not written" in done.err


@pytest.mark.parametrize(
    "error", [RefusedError("it went on"), PermissionError(13, "Permission denied")]
)
def test_a_pin_that_cannot_go_forward_is_clean_in_no_form(
    team: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    assert run(team, "rebuild").code == 0

    def refused(*_: object) -> bool:
        raise error

    monkeypatch.setattr(verify_command, "write_proved_pin", refused)
    done = verify(
        team,
        "sarif=a.sarif",
        "junit=b.xml",
        "github=c",
        "json=d.json",
        more=("--pin=p", "--update-pin"),
    )
    assert done.code == 1
    assert f"tripod: the pin p was not written: {error}" in done.err
    (run_of,) = json.loads((team / "a.sarif").read_bytes())["runs"]
    assert run_of["invocations"][0]["exitCode"] == 1
    assert run_of["results"][0]["ruleId"] == "pins-extend"
    assert JUnitXml.fromfile(str(team / "b.xml")).failures == 1
    assert ":%0Athe pin p was not written" in (team / "c").read_text()
    assert json.loads((team / "d.json").read_bytes())["exit_code"] == 1


def test_a_reader_that_leaves_takes_no_report_with_it(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: str) -> None:
        raise TripodError("standard output: closed; what was recorded stays")

    monkeypatch.setattr(verify_command, "emit_report", lost)
    done = verify(team, "junit=b.xml")
    assert (done.code, done.err) == (
        1,
        "tripod: the report was not printed: standard output: closed\n",
    )
    assert JUnitXml.fromfile(str(team / "b.xml")).failures == 1


# Evidence is never replaced by a report ----------------------------------------------------------


def spoiled(team: Path, path: str, *more: str, form: str = "junit") -> str:
    """Try to write a report at a path: it is refused, and nothing that stood there changes."""
    files = {one: one.read_bytes() for one in team.parent.rglob("*") if one.is_file()}
    done = verify(team, f"{form}={path}", more=more)
    assert (done.code, done.out) == (2, b""), done
    assert {one: one.read_bytes() for one in team.parent.rglob("*") if one.is_file()} == files
    return done.err


def test_no_report_is_put_in_the_place_of_evidence(team: Path) -> None:
    ledger = next(one for one in team.rglob("ledger.db") if one.is_file())
    (team / "tripod.toml").write_text("")
    (team / "policy.yaml").write_text("required: [drift]\n")
    (team / "source.py").write_text("print()\n")
    os.link(team / ".nbs/chat/live.chat", team / "hard")
    (team / "soft").symlink_to(".nbs")
    assert run(team, "verify", "--pin=pin", "--update-pin").code == 1
    for path in (
        ".nbs/chat/live.chat", "./.nbs/../.nbs/new.xml", "soft/new.xml", "hard", "source.py",
        "tripod.toml", "pyproject.toml", ".git/refs/heads/x", ".git/config",
        str(ledger), f"{ledger}-wal", f"{ledger}.lock",
    ):  # fmt: skip
        assert "no report is put at" in spoiled(team, path), path
    for form in ("text", "json", "sarif", "github"):
        spoiled(team, "source.py", form=form)
    (team / "page.md").write_text("So it says:\n3 findings, 0 warnings\nand more.\n")
    spoiled(team, "page.md", form="text")
    (team / "page.md").write_text("Of the new kitchen\n3 checks hold\n")
    spoiled(team, "page.md", form="text")
    spoiled(team, "policy.yaml", "--policy=policy.yaml")
    os.link(team / "policy.yaml", team / "other.yaml")
    spoiled(team, "other.yaml", "--policy=policy.yaml")
    for path in ("new-pin", "./new-pin", str(team / "new-pin"), "NEW-PIN"):
        spoiled(team, path, "--pin=new-pin", "--update-pin")
    assert not (team / "new-pin").exists()
    (team / "a.places.txt").write_text("mine\n")
    assert "a.places.txt" in spoiled(team, "a", form="sarif")
    assert "it is a folder" in spoiled(team, ".")


def test_no_report_is_put_where_the_summary_stands(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (team / "summary").touch()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(team / "summary"))
    spoiled(team, "summary", form="github")


def test_a_report_replaces_an_older_one_of_any_form(team: Path) -> None:
    (team / "r").touch()
    for form in ("text", "json", "sarif", "junit", "github", "text"):
        assert verify(team, f"{form}=r").code == 1
        assert (team / "r").stat().st_size
    assert run(team, "rebuild").code == 0
    for form in ("text", "github", "json", "sarif", "junit"):
        assert verify(team, f"{form}=r").code == 0
        assert verify(team, f"{form}=r").code == 0


def test_a_file_judged_by_git_alone_is_not_replaced(team: Path) -> None:
    (team / "log.md").write_text("one\n")
    spoiled(team, "log.md", "--grow-only=log.md")
    (team / "log.md").write_text("")
    spoiled(team, "log.md", "--grow-only=log.md")


# Places are told from the top of the repository --------------------------------------------------


def places(folder: Path, *arguments: str, report: str = "../a.sarif") -> set[str]:
    """The files that the results of a report point to."""
    done = run(folder, "verify", *arguments, f"--format=sarif={report}")
    assert done.code == 1, done.err
    (one,) = json.loads((folder / report).read_bytes())["runs"]
    found = [each["locations"][0]["physicalLocation"] for each in one["results"]]
    return {place["artifactLocation"]["uri"] for place in found}


def test_places_are_the_same_from_wherever_a_team_is_judged(team: Path) -> None:
    (team / "src").mkdir()
    (team.parent / "link").symlink_to(team)
    chat = {".nbs/chat/live.chat"}
    assert places(team) == chat
    assert places(team / "src", report="../../a.sarif") == chat
    assert places(team, str(team)) == places(team, str(team / ".nbs")) == chat
    assert places(team.parent / "link", report="../a.sarif") == chat
    assert places(team.parent, "link", report="a.sarif") == chat
    assert places(team.parent, "link/.nbs", report="a.sarif") == chat
    assert places(team, "--no-git") == chat


def test_a_policy_is_told_from_the_top_and_one_elsewhere_beside_the_report(team: Path) -> None:
    (team / "ci").mkdir()
    for path in (team / "ci/p q.yaml", team.parent / "p.yaml"):
        path.write_text("required: [record-agrees]\n")
    chat = ".nbs/chat/live.chat"
    assert places(team / "ci", "--policy=p q.yaml", report="../../a.sarif") == {
        chat,
        "ci/p%20q.yaml",
    }
    assert places(team, "--policy=../p.yaml") == {chat, "a.sarif.places.txt"}
    assert str(team.parent / "p.yaml") in (team.parent / "a.sarif.places.txt").read_text()
    done = run(team / "ci", "verify", "--policy=p q.yaml", "--format=github")
    assert b"::error file=ci/p q.yaml,title=record-agrees::" in done.out


def test_a_team_in_a_folder_of_the_repository_is_told_from_its_top(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "work/sub").mkdir(parents=True)
    folder = tmp_path / "work/sub"
    (folder / ".nbs/chat").mkdir(parents=True)
    begin(folder)
    chat = folder / ".nbs/chat/live.chat"
    chat.write_bytes(chat.read_bytes()[:-1])
    for more in ((), ("--no-git",)):
        assert places(folder, *more, report="../../a.sarif") == {"work/sub/.nbs/chat/live.chat"}


def test_an_export_is_told_from_the_top_of_the_repository_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = keyed(tmp_path, monkeypatch)
    subprocess.run(["git", "init", "--quiet"], cwd=team, check=True)
    assert run(team, "export", "--bodies", "out/record").code == 0
    (team / "out/record/checkpoint").unlink()
    ways = ((team, "out/record"), (team / "out", "record"), (team, f"{team}/out/record"))
    for folder, path in ways:
        report = os.path.relpath(team / "out/a.sarif", folder)
        assert places(folder, path, report=report) == {"out/record", "out/record/checkpoint"}
    done = run(team, "verify", "out/record", "--format=junit=out/record/a.xml")
    assert (done.code, "it lies in what is judged" in done.err) == (2, True)


def test_what_a_clone_is_judged_by_is_told_from_the_top_of_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "home"))
    shop, clone = Git(tmp_path / "shop"), tmp_path / "clone"
    shop.commit("a", b"x")
    begin(Path(shop.root))
    assert run(Path(shop.root), "seal").code == 0
    subprocess.run(["git", "clone", "-q", shop.root, str(clone)], check=True)
    spec = "+refs/tripod/*:refs/tripod-remotes/origin/*"
    subprocess.run(["git", "fetch", "-q", "origin", spec], cwd=clone, check=True)
    (clone / "ci").mkdir()
    (clone / "ci/p.yaml").write_text("required: [record-agrees, pythia-isolation]\n")
    for folder, path in ((clone, "ci/p.yaml"), (clone / "ci", "p.yaml")):
        report = os.path.relpath(tmp_path / "a.sarif", folder)
        assert places(folder, f"--policy={path}", report=report) == {"ci/p.yaml"}
    assert verify(clone, "sarif=ci/a.sarif", more=("--policy=ci/p.yaml",)).code == 1
    shop("worktree", "add", "-q", str(tmp_path / "tree"))
    chat = Path(shop.root) / ".nbs/chat/live.chat"
    chat.write_bytes(chat.read_bytes()[:-1])
    assert places(tmp_path / "tree") == places(Path(shop.root)) == {".nbs/chat/live.chat"}
