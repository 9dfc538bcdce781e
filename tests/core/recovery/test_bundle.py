"""The bundle of an audit: judged by Python alone, equal for equal teams, never altered unseen."""

import errno
import hashlib
import importlib.util
import json
import os
import random
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacked import Case, World, build_world, copied
from attacks import DEEDS
from doors.inside import Done, run
from hypothesis import given, settings
from hypothesis import strategies as st
from specimens import SPECIMENS, copy, database, unguarded
from story import folder

from tripod.recovery import bundle

WRONG = ("edit header", "edit body", "edit stream", "delete", "rewrite from k on", "truncate")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with folder() as place:
        yield build_world(place)


class Kept:
    """A folder with bundles: of the sound team, and of each that is wrong."""

    def __init__(self, world: World, place: Path) -> None:
        self.place, self.codes = place, {}
        for name in ("sound", *WRONG):
            team = place / f"team {name}"
            team.mkdir()
            copied(world.now.root, world.now.home, team)
            if name != "sound":
                rng = random.Random(name)  # noqa: S311 - attacks, not keys
                DEEDS[name](Case(f"{team}/.nbs", f"{team}/home", rng, world))
            done = run(team, "audit", ".", "--bundle", str(place / name))
            self.codes[name] = done.code
        shutil.copytree(place / "sound", place / "altered")

    def files(self) -> list[str]:
        """Every file of the bundle of the sound team, by its path."""
        top = self.place / "sound"
        return sorted(str(one.relative_to(top)) for one in top.rglob("*") if one.is_file())


@pytest.fixture(scope="module")
def kept(world: World, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIPOD_HOME", str(tmp_path_factory.mktemp("home")))
        return Kept(world, tmp_path_factory.mktemp("bundles"))


def bare(path: Path, *options: str) -> Done:
    """The verifier of a bundle on a machine without us: no environment, no site, no path."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(path / "verify.py"), *options],
        env={"PATH": ""},
        cwd="/",
        capture_output=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr.decode())


def judged(path: Path, *options: str) -> int:
    """The exit code of the verifier of a bundle, run in this process."""
    spec = importlib.util.spec_from_file_location("bundle_verifier", path / "verify.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    before, argv = list(sys.path), sys.argv
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing is added to a bundle
    try:
        sys.argv = ["verify.py", *options]
        spec.loader.exec_module(module)
        return int(module.main())
    finally:
        sys.path[:], sys.argv = before, argv
        sys.dont_write_bytecode = writes
        sys.modules.pop("audit_export", None)


def summed(path: Path) -> None:
    """Write the manifest anew, as who alters a bundle would."""
    files = sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())
    names = [name for name in files if name != bundle.MANIFEST]
    lines = [f"{hashlib.sha256((path / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    (path / bundle.MANIFEST).write_text("".join(lines))


# Judged without us ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sound", *WRONG])
def test_a_bundle_is_judged_by_python_alone_as_the_audit_judged(kept: Kept, name: str) -> None:
    done = bare(kept.place / name)
    assert (done.code, done.err) == (kept.codes[name], "")
    assert (done.code == 0) is (name == "sound")
    said = json.loads((kept.place / name / "audit.json").read_bytes())
    assert f"the audit says: {said['verdict']}\n".encode() in done.out
    assert b"contradicts" not in done.out


def test_the_sum_of_the_manifest_is_for_who_keeps_it_elsewhere(kept: Kept) -> None:
    path = kept.place / "sound"
    digest = hashlib.sha256((path / bundle.MANIFEST).read_bytes()).hexdigest()
    assert bare(path, "--manifest", digest).code == 0
    assert bare(path, "--manifest", "0" * 64).code == 4
    names = {line.split("  ")[1] for line in (path / bundle.MANIFEST).read_text().splitlines()}
    assert names == {name for name in kept.files() if name != bundle.MANIFEST}


@settings(max_examples=40)
@given(data=st.data())
def test_no_byte_of_a_bundle_can_be_changed(kept: Kept, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(kept.files()))
    path, whole = kept.place / "altered" / name, (kept.place / "sound" / name).read_bytes()
    at = data.draw(st.integers(0, max(0, len(whole) - 1)))
    how = data.draw(st.sampled_from(["flip", "cut", "gone", "link"]))
    try:
        if how == "flip" and whole and name != "verify.py":
            bit = 1 << data.draw(st.integers(0, 7))
            path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        elif how == "cut" and whole and name != "verify.py":
            path.write_bytes(whole[:at])
        elif name != "verify.py":
            path.unlink()
            if how == "link":
                path.symlink_to(kept.place / "sound" / name)
        else:
            (path.parent / "more").write_bytes(b"")
        assert judged(kept.place / "altered") == 4
    finally:
        (path.parent / "more").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(whole)


@settings(max_examples=8)
@given(data=st.data())
def test_what_a_seal_covers_cannot_be_changed_with_the_manifest_either(
    kept: Kept, data: st.DataObject
) -> None:
    """Who alters the folder writes the manifest anew: the entries, seals and links still tell."""
    names = [name for name in kept.files() if name.startswith(("ledger/export/", "seals/"))]
    name = data.draw(st.sampled_from(names))
    path, whole = kept.place / "altered" / name, (kept.place / "sound" / name).read_bytes()
    at, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
    try:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        summed(kept.place / "altered")
        assert judged(kept.place / "altered") != 0
    finally:
        path.write_bytes(whole)
        shutil.copy(kept.place / "sound" / bundle.MANIFEST, kept.place / "altered")


def test_a_bundle_that_hides_the_first_bad_entry_contradicts_itself(
    kept: Kept, tmp_path: Path
) -> None:
    path = tmp_path / "b"
    shutil.copytree(kept.place / "edit header", path)
    said = json.loads((path / "audit.json").read_bytes())
    (path / "audit.json").write_text(json.dumps(said | {"first_bad": None, "exit_code": 0}))
    summed(path)
    assert judged(path) == 4


def hidden(path: Path, deed: str) -> None:
    """Alter a bundle of a sound team as who hides something would, and write its manifest anew."""
    rest, audit, report = (
        path / name for name in ("ledger/rest/rest.jsonl", "audit.json", "findings/report.json")
    )
    said, told = (json.loads(one.read_bytes()) for one in (audit, report))
    match deed:
        case "the newest entries":
            rest.write_bytes(b"".join(rest.read_bytes().splitlines(keepends=True)[:-1]))
        case "that seals were found":
            said["heads"] = []
        case "where a seal is":
            said["heads"] = [one | {"file": ""} for one in said["heads"]]
        case "a finding":
            first = told["checks"][0] | {"verdict": "findings", "failures": 1}
            told["checks"] = [first, *told["checks"][1:]]
        case "that the checks failed":
            told["exit_code"] = 1
        case "that a rule was not judged":
            told["not_told"] = ["never-read"]
        case "how many there were":
            said["size"] -= 1
    audit.write_text(json.dumps(said))
    report.write_text(json.dumps(told))
    if deed == "what it says behind what is read":
        audit.write_text(json.dumps(said | {"verdict": ""})[:-1] + ', "verdict": "clean"}')
    summed(path)


@pytest.mark.parametrize(
    "deed",
    [
        "the newest entries",
        "that seals were found",
        "where a seal is",
        "a finding",
        "that the checks failed",
        "that a rule was not judged",
        "how many there were",
        "what it says behind what is read",
    ],
)
def test_a_bundle_that_hides_something_else_contradicts_itself(
    kept: Kept, tmp_path: Path, deed: str
) -> None:
    shutil.copytree(kept.place / "sound", tmp_path / "b")
    hidden(tmp_path / "b", "nothing")
    assert judged(tmp_path / "b") == 0
    hidden(tmp_path / "b", deed)
    assert judged(tmp_path / "b") == 4


def test_a_sound_part_does_not_hide_what_stands_beside_it(kept: Kept, tmp_path: Path) -> None:
    shutil.copytree(kept.place / "edit header", tmp_path / "b")
    shutil.copytree(kept.place / "sound", tmp_path / "b/part-1-x")
    summed(tmp_path / "b")
    assert judged(tmp_path / "b") == 1


def test_a_bundle_that_is_changed_while_it_is_judged_is_not_sound(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b"
    shutil.copytree(kept.place / "sound", path)
    read = json.loads

    def changing(*given: Any, **how: Any) -> Any:
        (path / "ledger/rest/rest.jsonl").write_bytes(b"")
        return read(*given, **how)

    monkeypatch.setattr(json, "loads", changing)
    assert judged(path) == 4


def test_no_file_of_the_folder_is_run_before_it_is_judged(kept: Kept, tmp_path: Path) -> None:
    path = tmp_path / "b"
    shutil.copytree(kept.place / "sound", path)
    for name in ("argparse", "hashlib", "json", "os", "re", "stat"):
        (path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    words: list[str | Path] = [sys.executable, path / "verify.py"]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"run it by itself: python3 -I -S " in done.stdout
    assert not (tmp_path / "ran").exists()
    assert bare(path).code == 4


def test_a_key_that_signed_nothing_vouches_for_nothing(sound: str, tmp_path: Path) -> None:
    """The team has no key and no seal: an auditor who gives one is not told that all is well."""
    copy(sound, str(tmp_path))
    assert run(tmp_path, "audit", ".", "--bundle", str(tmp_path / "b")).code == 0
    assert judged(tmp_path / "b") == 0
    assert judged(tmp_path / "b", "--key", "no key") == 2
    key = "a+a5269a0a+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    assert judged(tmp_path / "b", "--key", key) == 3


def test_a_header_of_deep_nesting_is_one_that_is_wrong(sound: str, tmp_path: Path) -> None:
    root = copy(sound, str(tmp_path))
    with unguarded(database(root)) as db:
        db.execute("UPDATE entries SET header = ? WHERE seq = 5", (b"[" * 60_000,))
    assert run(tmp_path, "audit", ".", "--bundle", "b").code == 1
    assert judged(tmp_path / "b") == 1


@pytest.mark.parametrize(
    "says",
    [
        "fork: it remembers root",  # a head that nobody signed, in a commit
        "contradicts what it sealed before: another root",
        "one of the two keys did not sign",
        "session s was shown /w/.env (read, line 2)",
    ],
)
def test_it_agrees_with_the_audit_whatever_is_wrong(sound: str, tmp_path: Path, says: str) -> None:
    (specimen,) = (one for one in SPECIMENS if one.says == says)
    specimen.do(copy(sound, str(tmp_path)))
    assert run(tmp_path, "audit", ".", "--bundle", "b").code == 1
    assert judged(tmp_path / "b") == 1


@pytest.mark.parametrize(
    "said",
    [b"", b"[]", b"{}", b'{"a":' * 5000, b'{"heads":[1],"first_bad":{},"bodies":1}', b"\xff"],
)
def test_nothing_that_is_written_into_it_breaks_the_program(
    kept: Kept, tmp_path: Path, said: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("audit.json", "findings/report.json", "ledger/rest/rest.jsonl"):
        path = tmp_path / name.replace("/", "-")
        shutil.copytree(kept.place / "edit header", path)
        if said or name != "ledger/rest/rest.jsonl":
            (path / name).write_bytes(said)
            summed(path)
            assert judged(path) == 4, name
    assert "contradicts" in capsys.readouterr().out


def test_a_team_without_a_ledger_has_a_bundle_too(tmp_path: Path) -> None:
    (tmp_path / ".nbs/chat").mkdir(parents=True)
    done = run(tmp_path, "audit", ".", "--bundle", "b")
    assert done.code == 3, done
    assert judged(tmp_path / "b") == 3


def test_the_names_of_findings_cannot_lead_out_of_it() -> None:
    for name in ("..", ".", "../x", "a/b", "\udcff\n", "x" * 300, "-", ".git"):
        said = bundle._encoded(name)
        assert said.isascii()
        assert said.isprintable()
        assert "/" not in said
        assert not said.startswith(".")
        assert len(said) < 255
    long = [bundle._encoded("x" * 250 + end) for end in "ab"]
    assert len(set(long)) == 2


# What is in it ----------------------------------------------------------------------------------


def test_the_same_team_gives_the_same_bytes(kept: Kept, tmp_path: Path) -> None:
    for name in ("sound", "edit header"):
        done = run(kept.place / f"team {name}", "audit", ".", "--bundle", str(tmp_path / name))
        assert done.code == kept.codes[name]
        one, two = ((top / name / bundle.MANIFEST) for top in (kept.place, tmp_path))
        assert one.read_bytes() == two.read_bytes()


def test_a_bundle_that_was_changed_is_not_taken_for_the_same(kept: Kept, tmp_path: Path) -> None:
    team = kept.place / "team sound"
    assert run(team, "audit", ".", "--bundle", str(tmp_path / "b")).code == 0
    with (tmp_path / "b/audit.json").open("a") as file:
        file.write(" ")
    done = run(team, "audit", ".", "--bundle", str(tmp_path / "b"))
    assert done.code != 0
    assert "or one that was changed" in done.err


def test_only_its_owner_can_read_it(kept: Kept) -> None:
    top = kept.place / "edit header"
    for path in (top, *top.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_other_programs_judge_its_export_and_its_database(kept: Kept, tmp_path: Path) -> None:
    for part in ("export", "ledger.db"):
        done = run(tmp_path, "verify", str(kept.place / "sound/ledger" / part), "--no-git")
        assert done.code == 0, done
    script = kept.place / "sound/audit_export.py"
    words: list[str | Path] = [
        sys.executable,
        "-I",
        "-S",
        script,
        kept.place / "sound/ledger/export",
    ]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_it_has_the_files_that_findings_name_and_no_others(sound: str, tmp_path: Path) -> None:
    root = copy(sound, str(tmp_path))
    (tmp_path / "secret").write_text("not of the team")
    os.symlink(tmp_path / "secret", f"{root}/chat/link.chat")
    (Path(root) / "scribe/log.md").write_text("gone\n")
    (specimen,) = (one for one in SPECIMENS if one.says == "pythia-a0d7 read the chat")
    specimen.do(root)
    assert run(tmp_path, "audit", ".", "--bundle", "../b").code == 1
    top = tmp_path.parent / "b"
    try:
        there = {str(one.relative_to(top)) for one in (top / "evidence").rglob("*")}
        assert "evidence/scribe/log.md" in there
        assert "evidence/workers/pythia-a0d7.log" in there
        assert "evidence/chat/live.chat" not in there
        assert all(b"not of the team" not in p.read_bytes() for p in top.rglob("*") if p.is_file())
        assert judged(top) == 1
    finally:
        shutil.rmtree(top)


def test_a_ledger_that_cannot_be_opened_is_kept_as_it_is(sound: str, tmp_path: Path) -> None:
    root = copy(sound, str(tmp_path))
    ruined = b"\x05" * 8192
    Path(database(root)).write_bytes(ruined)
    done = run(tmp_path, "audit", ".", "--bundle", "b")
    assert done.code == 3, done
    assert (tmp_path / "b/ledger/ledger.db.raw").read_bytes() == ruined
    assert judged(tmp_path / "b") == 3


def test_hostile_values_of_columns_are_kept_as_they_are(sound: str, tmp_path: Path) -> None:
    root = copy(sound, str(tmp_path))
    with unguarded(database(root)) as db:
        db.execute("UPDATE entries SET body = ? WHERE seq = 20", (b'{"a":"\xff\n\x1b[31m"}',))
        db.execute("UPDATE entries SET id = CAST(? AS TEXT) WHERE seq = 21", (b"a\xffb",))
    assert run(tmp_path, "audit", ".", "--bundle", "b").code == 1
    rows = map(json.loads, (tmp_path / "b/ledger/rest/rest.jsonl").read_bytes().splitlines())
    found = {row["seq"]: row for row in rows}
    assert bytes.fromhex(found[20]["body"]["hex"]) == b'{"a":"\xff\n\x1b[31m"}'
    assert "other" in found[21]["id"]
    done = bare(tmp_path / "b")
    assert (done.code, done.err) == (1, "")
    assert b"\x1b" not in done.out


# Where it goes ----------------------------------------------------------------------------------


def test_nothing_is_replaced_and_nothing_is_written_into_the_team(
    kept: Kept, tmp_path: Path
) -> None:
    team = kept.place / "team sound"
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for bad in (tmp_path / "full", tmp_path / "file", team / ".nbs/b", team / ".nbs"):
        done = run(team, "audit", ".", "--bundle", str(bad))
        assert done.code == 1, (bad, done)
    assert sorted(os.listdir(tmp_path)) == ["file", "full"]
    assert os.listdir(tmp_path / "full") == ["mine"]
    assert not (team / ".nbs/b").exists()
    # The same bundle again is one; another one is refused.
    assert run(team, "audit", ".", "--bundle", str(kept.place / "sound")).code == 0
    before = (kept.place / "edit header" / bundle.MANIFEST).read_bytes()
    assert run(team, "audit", ".", "--bundle", str(kept.place / "edit header")).code == 1
    assert (kept.place / "edit header" / bundle.MANIFEST).read_bytes() == before


def test_a_folder_of_the_team_that_lies_elsewhere_is_the_teams(tmp_path: Path) -> None:
    (tmp_path / "talk").mkdir()
    assert run(tmp_path, "init", "--chat", "talk").code == 0
    assert run(tmp_path, "chat", "create", "live").code == 0
    done = run(tmp_path, "audit", ".", "--bundle", "talk/b")
    assert done.code == 1
    assert "which is judged: write it elsewhere" in done.err
    assert not (tmp_path / "talk/b").exists()
    assert run(tmp_path, "audit", ".", "--bundle", "chat").code == 0  # as no chat is there


def test_a_disk_that_refuses_leaves_nothing_and_is_no_success(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team, put = kept.place / "team sound", bundle._put
    assert run(team, "audit", ".", "--bundle", str(tmp_path / "no/such/b")).code == 1

    def full(front: str, path: str, data: bytes) -> None:
        if path.startswith("findings/"):
            raise OSError(errno.ENOSPC, "No space left on device")
        put(front, path, data)

    monkeypatch.setattr(bundle, "_put", full)
    done = run(team, "audit", ".", "--bundle", str(tmp_path / "b"))
    assert done.code == 1
    assert "the bundle cannot be written: No space left on device" in done.err
    assert os.listdir(tmp_path) == []


def test_it_is_written_where_the_team_is_only_read(kept: Kept, tmp_path: Path) -> None:
    team = kept.place / "team sound"
    done = run(team, "--read-only", "audit", ".", "--bundle", str(tmp_path / "b"))
    assert done.code == 0, done
    assert judged(tmp_path / "b") == 0


def test_nothing_to_be_handed_on_is_written_into_what_is_gits_own(
    sound: str, tmp_path: Path
) -> None:
    copy(sound, str(tmp_path / "team"))
    for name, bare in (("team", []), ("bare", ["--bare"])):
        words = ["git", "init", "--quiet", *bare, str(tmp_path / name)]
        assert subprocess.run(words, check=False).returncode == 0
    for place in (".git", ".git/hooks", "../bare", "../bare/refs"):
        for words in (
            ["audit", ".", "--bundle", f"{place}/x"],
            ["decisions", "export", "--madr", f"{place}/x"],
            ["query", "--save", f"{place}/x"],
            ["query", "--save", "../x", "--datasette", f"{place}/x"],
            ["scribe", "export", f"{place}/x"],
        ):
            done = run(tmp_path / "team", *words)
            assert done.code == 1, done
            assert "which is git's own: write it elsewhere" in done.err
            inside = [".nbs/x" if word == f"{place}/x" else word for word in words]
            if "query" in words:  # it has no texts of others, and is left alone there
                continue
            done = run(tmp_path / "team", *inside)
            assert done.code == 1, done
            assert "write it elsewhere" in done.err
            assert not (tmp_path / "team/.nbs/x").exists()
        assert not (tmp_path / "team" / place / "x").exists()
    assert not (tmp_path / "x").exists()
    assert run(tmp_path / "team", "audit", ".", "--bundle", "git/x.git").code == 1  # no such folder
    assert run(tmp_path / "team", "audit", ".", "--bundle", "x.git").code == 0
