"""``tripod verify --format``: a report in several forms at once, printed and in files."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from doors.inside import Done, begin, run
from junitparser import JUnitXml


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
    assert verify(team, "json").out == run(team, "verify", "--json").out
    assert verify(team, "sarif=a.sarif", more=("--json",)).out == run(team, "verify", "--json").out
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
    summary.write_text("before\n")
    assert b"::error file=" in verify(team, "github").out
    assert summary.read_text().startswith("before\n## tripod verify: 1 finding\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(team / "no/such/folder"))
    done = verify(team, "github")
    assert (done.code, b"::error file=" in done.out) == (1, True)
    assert "the step summary was not written" in done.err


@pytest.mark.parametrize(
    ("formats", "said"),
    [
        (["sarf"], "no format 'sarf'; there are text, json, sarif, junit, github. Did you mean"),
        (["sarif="], "name the file behind the ="),
        (["sarif", "junit"], "two reports go to standard output"),
        (["sarif=a", "junit=./a"], "two reports go to ./a"),
        (["sarif=a", "junit=a.places.txt"], "two reports go to a.places.txt"),
        (["junit=a.places.txt", "sarif=a"], "two reports go to a"),
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


def test_a_clean_verdict_whose_report_is_lost_is_no_success(team: Path) -> None:
    assert run(team, "rebuild").code == 0
    assert verify(team).code == 0
    done = verify(team, "junit=no/such/b.xml")
    assert done.code == 1
    assert "was not written" in done.err
