"""What a person should know and what fails nothing, however often it stands there."""

import os
import shutil
from pathlib import Path

import pytest
from doors.inside import run as run_inside
from specimens import build, copy, database

from tripod.bus import events
from tripod.chat import writer as chat_send
from tripod.team.team import Team
from tripod.trust import seal
from tripod.verify.check import Report
from tripod.verify.evidence import handle_skeleton, look_alike_handles
from tripod.verify.run import open_run, run

ANN = "\u0430nn"  # its first letter is Cyrillic


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIPOD_HOME", str(tmp_path_factory.mktemp("home")))
        root = build(str(tmp_path_factory.mktemp("team")))
        with Team(root) as team:
            seal.new_sealing_key(team)
        return root


@pytest.fixture
def root(sound: str, tmp_path: Path) -> str:
    return copy(sound, str(tmp_path))


def judge(path: str) -> Report:
    with open_run(path) as evidence:
        return run(evidence)


def said(report: Report, check: str) -> list[tuple[str, str]]:
    return [
        (finding.severity, finding.message)
        for outcome in report.outcomes
        if outcome.check == check
        for finding in outcome.findings
    ]


@pytest.mark.parametrize("of", ["team", "clone", "export"])
@pytest.mark.parametrize("count", [1, 19, 20, 21, 60])
def test_the_number_of_strays_decides_nothing(
    root: str, tmp_path: Path, count: int, of: str
) -> None:
    for number in range(count):
        Path(root, f"record/stray-{number:02}").write_bytes(b"x")
    path = root
    if of == "clone":
        os.unlink(database(root))
    elif of == "export":
        path = shutil.copytree(f"{root}/record", str(tmp_path / "export"))
    report = judge(path)
    outcome = next(o for o in report.outcomes if o.check == "record-agrees")
    assert (report.exit_code, outcome.failures, outcome.warnings) == (0, 0, count)


def test_a_database_behind_a_link_is_judged_and_said(root: str, tmp_path: Path) -> None:
    assert said(judge(root), "sequence") == []
    shutil.move(database(root), tmp_path / "elsewhere.db")
    os.symlink(tmp_path / "elsewhere.db", database(root))
    report = judge(root)
    ((severity, message),) = said(report, "sequence")
    assert (report.exit_code, severity) == (0, "warning")
    assert message == f"the database is a symbolic link, and {tmp_path}/elsewhere.db was judged"


def test_a_handle_that_looks_like_another_is_a_remark(root: str) -> None:
    with Team(root) as team:
        chat_send.send(team, "live", "ann", "Hello.")
        events.publish(team, "zo\u00eb", "note", "low", "x")  # like nobody
    assert said(judge(root), "writers-authorised") == []
    with Team(root) as team:
        chat_send.send(team, "live", ANN, "I agree.")
    report = judge(root)
    ((severity, message),) = said(report, "writers-authorised")
    assert (report.exit_code, severity) == (0, "warning")
    assert message == f"the handle {ANN} looks like ann: it is \\u0430nn"
    done = run_inside(Path(root).parent, "verify", "--no-git")
    assert (done.code, "looks like ann" in done.out.decode()) == (0, True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ann", ANN), ("ann", "\uff41nn"), ("ann", "a\u200bnn"), ("bob", "b\u03bfb"),
        ("paypal", "\u0440\u0430yp\u0430l"), ("scribe", "s\u0441ribe"),
    ],
)  # fmt: skip
def test_texts_that_look_alike(one: str, other: str) -> None:
    assert handle_skeleton(one) == handle_skeleton(other)
    assert list(look_alike_handles([other, one, "zoe"])) == [(one, other)]


def test_texts_that_do_not() -> None:
    assert list(look_alike_handles(["ann", "anna", "\u00e4nn", "\u5b89", "w1", "wl"])) == []
    assert list(look_alike_handles(["w1", "wl", "wI"])) == []


def test_nothing_is_read_for_plain_handles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tripod.verify.evidence._table", None)
    assert list(look_alike_handles(["ann", "bob"])) == []
