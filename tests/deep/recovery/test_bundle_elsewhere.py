"""The bundle of an incident on a machine without us: an interpreter, its library, nothing else."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from doors.inside import Done, run
from replicas import begun_replica
from specimens import SPECIMENS, copy, database, unguarded

_ABOUT = (
    "import json, os, sys, sysconfig; v = sys.version_info; "
    "print(json.dumps([os.path.realpath(sys.executable), sysconfig.get_path('stdlib'), v[:2]]))"
)
_SEEN = """
import os, shutil, socket, sys
assert not any(map(shutil.which, ("git", "tripod", "sh", "pip"))), "programs"
assert os.listdir(os.environ["HOME"]) == [], "home"
assert not [one for one in sys.path if one.endswith("-packages") and os.path.isdir(one)], sys.path
for name in ("tripod", "orjson", "click", "pydantic", "pip"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise AssertionError(name)
assert sorted(os.listdir(os.environ["TOP"])) == ["bundle"], "our tree"
assert [name for _, name in socket.if_nameindex()] == ["lo"], "network"
try:
    open(os.environ["TOP"] + "/bundle/new", "w")
except OSError:
    print("nothing of us is here")
"""


def system_python() -> tuple[str, str]:
    """The system's interpreter and its library, or those that a virtual environment is made of."""
    for name in ("/usr/bin/python3", sys.executable):
        if os.path.exists(name):
            said = subprocess.run([name, "-I", "-S", "-c", _ABOUT], capture_output=True, check=True)
            program, library, version = json.loads(said.stdout)
            if tuple(version) >= (3, 11):
                return program, library
    raise AssertionError("no Python 3.11")


def bare_machine(bundle: Path) -> list[str]:
    """The command line that runs Python where nothing is but itself and ``/b/bundle``."""
    program, library = system_python()
    modules = [str(one) for one in Path(library).glob("lib-dynload/*.so")]
    said = subprocess.run(["ldd", program, *modules], capture_output=True, text=True, check=False)
    shared = sorted(set(re.findall(r"(/\S+) \(0x", said.stdout)))
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/home/nobody", "--chdir", "/"]
    words += ["--setenv", "HOME", "/home/nobody", "--setenv", "TOP", "/b"]
    words += ["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]
    for path in (program, library, *shared):
        words += ["--ro-bind", path, path]
    for name in ("site-packages", "dist-packages"):
        if os.path.isdir(f"{library}/{name}"):
            words += ["--tmpfs", f"{library}/{name}"]
    return [*words, "--ro-bind", str(bundle), "/b/bundle", program]


def elsewhere(bundle: Path, *words: str) -> Done:
    """What Python says on a machine without us; where none can be had, that is said."""
    try:
        command = [*bare_machine(bundle), *words]
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError as error:  # of bwrap or of ldd
        done = subprocess.CompletedProcess((), 1, b"", f"bwrap: {error}".encode())
    if done.stderr.startswith(b"bwrap: "):
        problem = done.stderr.decode()
        message = f"no mount namespace here: a machine without us was NOT tested: {problem}"
        assert "TRIPOD_NEEDS_NAMESPACE" not in os.environ, message
        pytest.skip(message)
    return Done(done.returncode, done.stdout, done.stderr.decode())


@contextmanager
def told(folder: Path, bundle: Path, *words: str) -> Iterator[dict[str, Any]]:
    """What `tripod audit` tells of a team; the bundle, judged elsewhere, tells the same."""
    done = run(folder, "audit", *words, "--bundle", str(bundle), "--json")
    found = json.loads(done.out)
    yield found
    judged = elsewhere(bundle, "-I", "-S", "/b/bundle/verify.py")
    assert (judged.code, judged.err) == (done.code, ""), judged
    said = judged.out.decode()
    assert f"\nthe audit says: {ascii(found['verdict'])[1:-1]}\n" in said
    assert "contradicts" not in said
    words_of = {True: "fits", False: "does not fit", None: "covers more than there is"}
    for one in found["heads"]:
        seal = f"the seal over {one['size']} entries ({ascii(one['where'])[1:-1]})"
        assert one["source"] == "head row" or f"{seal} {words_of[one['fits']]}, " in said, said
    first = found["first_bad"]
    if first is not None:
        assert f"the first bad one by the audit: {first['seq']} to {first['last']}\n" in said


def test_the_whole_incident_is_judged_where_nothing_of_us_is(sound: str, tmp_path: Path) -> None:
    """An entry rewritten, a tail cut, a forged assessment, a reviewer that read the chat."""
    team, bundle = tmp_path / "team", tmp_path / "bundle"
    team.mkdir()
    root = copy(sound, str(team))
    for words in (["key", "new"], ["seal"]):
        assert run(team, *words).code == 0
    with told(team, tmp_path / "before", ".") as found:
        assert found["exit_code"] == 0
    for says in ("answers no checkpoint event", "pythia-a0d7 read the chat"):
        (specimen,) = (one for one in SPECIMENS if one.says == says)
        specimen.do(root)
    assert run(team, "seal").code == 0
    with unguarded(database(root)) as db:
        (size,) = db.execute("SELECT count(*) FROM entries").fetchone()
        (header,) = db.execute("SELECT header FROM entries WHERE seq = 5").fetchone()
        db.execute("UPDATE entries SET header = ? WHERE seq = 5", (header.replace(b"a", b"o", 1),))
        db.execute("DELETE FROM entries WHERE seq >= ?", (size - 2,))
    with told(team, bundle, ".") as found:
        assert found["exit_code"] == 1
        assert (found["first_bad"]["seq"], found["first_bad"]["last"]) == (5, 5)
        assert found["missing"]["last"] == size - 1
        assert found["findings"]["readings"]
        assert found["findings"]["reviews"]
        assert found["findings"]["sights"]
    seen = elsewhere(bundle, "-c", _SEEN)
    assert (seen.code, seen.out, seen.err) == (0, b"nothing of us is here\n", "")


def test_a_clone_that_forked_is_judged_there_too(tmp_path: Path) -> None:
    ann = begun_replica(tmp_path, "ann")
    ann.push()
    twin = ann.copied(tmp_path / "twin")
    for clone, text in ((ann, "as it was"), (twin, "as it was not")):
        clone.said("chat", "send", "live", "ann", text)
        clone.keep()
    twin.git("push", "--quiet", "--force", "origin", "refs/tripod/*:refs/tripod/*")
    ann.fetch()
    with told(ann.git.root, tmp_path / "bundle", ".") as found:
        assert found["exit_code"] == 1
        assert found["first_bad"]["was"]["text"] != found["first_bad"]["entry"]["text"]
        assert any(one["source"] == "peer" and one["fits"] is False for one in found["heads"])
