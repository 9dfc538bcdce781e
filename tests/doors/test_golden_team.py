"""A team of version 852efc6 in today's hands: judged, rebuilt, restored and continued to the byte.

It is tried by command lines alone, so that no module that moves or goes can take a promise with it.
``golden/team-852efc6.README.md`` says what the archive and the list of its digests hold.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nbs_team import unpack

HERE = Path(__file__).parents[1] / "golden"
AUDIT = Path(__file__).parents[2] / "tools/audit_export.py"
STORED: dict[str, Any] = json.loads((HERE / "team-852efc6.json").read_text("utf-8"))
KEY = STORED["key"]
NBS = "team/.nbs/"
INPUTS = ("events/config.yaml", "policy.tlog", "policy.yaml")
"""Files that people write: no projection, so no ledger gives them back."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, unpacked."""
    folder = tmp_path_factory.mktemp("golden")
    unpack(HERE / "team-852efc6.tar.xz", folder)
    return folder


@pytest.fixture
def golden(archive: Path, tmp_path: Path) -> Path:
    """A copy of the archive, for one test to work on."""
    return Path(shutil.copytree(archive, tmp_path / "golden", copy_function=shutil.copy2))


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each file below a folder by its path, locks left out."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def readable() -> dict[str, str]:
    """The stored digests of the team's files, the ledger and its record left out."""
    return {
        path.removeprefix(NBS): digest
        for path, digest in STORED["files"].items()
        if path.startswith(NBS) and not path.startswith((f"{NBS}record/", f"{NBS}ledger.db"))
    }


def run(folder: Path, *command: str, code: int = 0) -> str:
    """Run one of the programs in a folder of a copy and return what it printed."""
    copy = next(above for above in (folder, *folder.parents) if above.name == "golden")
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        env={
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(copy),
            "TRIPOD_HOME": str(copy / "home"),
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, (command, done)
    return done.stdout.decode()


def check_judged(
    wanted: dict[str, Any],
    folder: Path,
    *arguments: str,
    as_stored: bool = True,
    grown: bool = False,
) -> int:
    """Run ``tripod verify``: the stored code, head and outcomes. Returns how many entries it saw.

    ``grown`` says that the ledger is longer than the stored one. A check that the old version did
    not have may be there; each that it had must come to the same outcome, or, in a copy that is as
    it was stored, to the one that the list gives as changed on purpose since.
    """
    command = ("tripod", "verify", "--no-git", "--json", *arguments)
    report = json.loads(run(folder, *command, code=wanted["exit"]))
    outcomes: dict[str, dict[str, Any]] = {}
    for one in report["checks"]:
        told = outcomes.setdefault(one["check"], {"verdict": one["verdict"]})
        for finding in one["findings"]:
            told[finding["severity"]] = told.get(finding["severity"], 0) + 1
    stored = {name: {"verdict": "clean"} for name in wanted["clean"]} | wanted["others"]
    if as_stored:
        stored |= wanted.get("since", {})
    assert {name: outcomes.get(name) for name in stored} == stored
    if not grown:
        assert report["head"] == {"size": wanted["size"], "root": wanted["root"]}
    return int(report["head"]["size"])


def audit(folder: Path) -> None:
    """Have the second verifier, which shares no code with the first, look at an export."""
    command = (sys.executable, str(AUDIT), str(folder), "--key", KEY)
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done


def keep_only(team: Path, *kept: str) -> None:
    """Delete all files of a team but those named, and the folders that are empty then."""
    for path in sorted(team.rglob("*"), reverse=True):
        name = path.relative_to(team).as_posix()
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and not any(name == one or name.startswith(one) for one in kept):
            path.unlink()


def lines_of(export: Path, folder: str) -> bytes:
    """All that an export holds of the entries, in their order: ``tile/entries`` or ``bodies``."""
    names = [path.relative_to(export / folder).as_posix() for path in (export / folder).rglob("*")]
    names = sorted(name for name in names if (export / folder / name).is_file())
    return b"".join((export / folder / name).read_bytes() for name in names)


# As it was -----------------------------------------------------------------------------------


def test_the_archive_holds_what_its_list_says(archive: Path) -> None:
    assert digests(archive) == STORED["files"]


@pytest.mark.parametrize(
    ("name", "folder", "arguments"),
    [
        ("team", "team", ()),
        ("pin", "team", ("--pin", "../pin")),
        ("database", ".", ("team/.nbs/ledger.db",)),
        ("export", ".", ("export", "--key", KEY)),
        ("headers", ".", ("headers", "--key", KEY)),
        ("entry.tlog-proof", ".", ("entry.tlog-proof", "--key", KEY)),
        ("grown.tlog-proof", ".", ("grown.tlog-proof", "--key", KEY, "--old", "old.note")),
    ],
)
def test_it_is_judged_as_it_was(
    golden: Path, name: str, folder: str, arguments: tuple[str, ...]
) -> None:
    check_judged(STORED["verify"][name], golden / folder, *arguments)
    assert {
        path: digest
        for path, digest in digests(golden).items()
        if not path.startswith(f"{NBS}ledger.db")
    } == {path: digest for path, digest in STORED["files"].items() if path != f"{NBS}ledger.db"}


def test_a_clone_without_a_database_is_judged_by_its_record(golden: Path) -> None:
    (golden / NBS / "ledger.db").unlink()
    check_judged(STORED["verify"]["record"], golden / "team", "--key", KEY)


def test_the_second_verifier_finds_its_exports_sound(archive: Path) -> None:
    for folder in ("export", "headers", f"{NBS}record"):
        audit(archive / folder)


@pytest.mark.parametrize("one", STORED["reads"], ids=lambda one: " ".join(one["command"][:2]))
def test_it_is_read_as_it_was(golden: Path, one: dict[str, Any]) -> None:
    assert run(golden / "team", *one["command"], code=one["exit"]) == one["out"]


# Written again -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "bodies"), [(f"{NBS}record", True), ("export", True), ("headers", False)]
)
def test_each_entry_is_exported_again_to_the_byte(golden: Path, folder: str, bodies: bool) -> None:
    command = ("tripod", "export", "../again", "--seal", f"../{folder}/checkpoint")
    run(golden / "team", *command, *(["--bodies"] if bodies else []))
    stored = {
        path.removeprefix(f"{folder}/"): digest
        for path, digest in STORED["files"].items()
        if path.startswith(f"{folder}/")
    }
    assert digests(golden / "again") == stored


def test_each_readable_file_is_rebuilt_to_the_byte(golden: Path) -> None:
    keep_only(golden / NBS, "ledger.db", *INPUTS)
    run(golden / "team", "tripod", "rebuild", "--evidence")
    keep_only(golden / NBS, *readable())
    wanted = {path: one for path, one in readable().items() if path not in STORED["not_rebuilt"]}
    (golden / NBS / ".gitignore").unlink()  # no projection: the first act that misses it writes it
    assert digests(golden / NBS) == wanted


def test_a_ledger_comes_back_from_the_record(golden: Path) -> None:
    keep_only(golden / NBS, "record/", *INPUTS)
    run(golden / "team", "tripod", "init", "--log-key", KEY)
    sealed = STORED["verify"]["record"]
    report = json.loads(run(golden, "tripod", "verify", f"{NBS}ledger.db", "--json", code=3))
    assert report["head"] == {"size": sealed["size"], "root": sealed["root"]}
    run(golden / "team", "tripod", "rebuild", "--evidence")
    check_judged(STORED["verify"]["restored"], golden / "team", "--key", KEY, grown=True)
    wanted = {path: one for path, one in readable().items() if path not in STORED["not_restored"]}
    wanted |= STORED["restored"]
    found = digests(golden / NBS)
    assert {path: found.get(path) for path in wanted} == wanted


# Continued -----------------------------------------------------------------------------------


def test_acts_on_top_continue_it(golden: Path) -> None:
    team = golden / "team"
    stored = STORED["verify"]["team"]
    before = {name: lines_of(golden / "export", name) for name in ("tile/entries", "bodies")}
    event = run(team, "nbs-bus", "publish", ".nbs/events", "cy", "note", "low", "today").strip()
    run(team, "nbs-bus", "ack", ".nbs/events", event)
    run(team, "nbs-chat", "send", ".nbs/chat/team.chat", "ann", "signed by the old key, @cy")
    note = run(team, "tripod", "chat", "read", "team", "--last", "1")
    assert note.endswith("ann: signed by the old key, @cy\n")
    why = ("-p", "ann", "-r", "It went on.", "--ref", "team.chat:~L13")
    run(team, "tripod", "scribe", "log", "Went on", *why)
    run(team, "tripod", "anchor", "witness", "../witness")
    # The files agree: nothing is left to be written, and nothing to be taken in.
    ours = digests(golden / NBS)
    assert "0 files written" in run(team, "tripod", "rebuild")
    assert {
        path: one for path, one in digests(golden / NBS).items() if "ledger.db" not in path
    } == {path: one for path, one in ours.items() if "ledger.db" not in path}
    # The same outcomes, of more entries, above each head that was kept.
    size = check_judged(stored, team, "--pin", "../pin", as_stored=False, grown=True)
    assert size > stored["size"]
    # The record and an older export grow by what is new, and keep each byte of what was there.
    run(team, "tripod", "export", "../export", "--bodies")
    for name, lines in before.items():
        assert lines_of(golden / "export", name).startswith(lines)
    assert digests(golden / "export") == digests(golden / NBS / "record")
    audit(golden / "export")
    grown = ("--consistency", "../old.note", "--out", "../again.tlog-proof")
    run(team, "tripod", "prove", *grown)
    proof = ("again.tlog-proof", "--key", KEY, "--old", "old.note")
    check_judged(STORED["verify"]["grown.tlog-proof"], golden, *proof, grown=True)
