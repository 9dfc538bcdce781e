"""How a program is shut in: what its command line names, what is shown, what is covered.

Whether the namespace holds is tried in ``tests/deep/pythia/test_pythia_namespace.py``.
"""

import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from unittest import mock

import pytest

from tripod.agents import isolation as isolated
from tripod.agents.isolation import HOME, WORK, ResolvedProgram, isolate, resolve_isolated
from tripod.errors import BadArgumentError, NotFoundError, RefusedError


@pytest.fixture
def made() -> Iterator[mock.Mock]:
    """As if any namespace could be made, by a program that is there."""
    with (
        mock.patch.object(isolated, "BWRAP", "true"),
        mock.patch.object(isolated, "_probe_namespace", return_value=None) as tried,
    ):
        yield tried


def options(argv: tuple[str, ...], name: str) -> list[str]:
    """The places that an option of the command line names."""
    inside = argv[: argv.index("--")]
    width = 1 if name == "--tmpfs" else 2
    return [inside[at + width] for at, word in enumerate(inside) if word == name]


def test_words_that_name_files_are_the_programs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run.py", "read"):
        (tmp_path / name).touch()
    found = resolve_isolated(["sh", "run.py", "read", "./read", "none.py", "-x"], ["run.py"], [])
    run, read = str(tmp_path / "run.py"), str(tmp_path / "read")
    assert found.argv[1:] == (run, "read", read, "none.py", "-x")
    assert os.path.isabs(found.argv[0])
    assert found.files == (run, read, run)


def test_what_may_not_be_seen_is_no_file_of_it(tmp_path: Path) -> None:
    secret = tmp_path / "team"
    secret.mkdir()
    (secret / "log.md").touch()
    (tmp_path / "link.md").symlink_to(secret / "log.md")
    for word in (secret / "log.md", tmp_path / "link.md", secret / "../team/log.md"):
        with pytest.raises(RefusedError, match="may not see"):
            resolve_isolated(["cat", str(word)], [], [str(secret)])
    for shown in (tmp_path, secret, "/"):
        with pytest.raises(RefusedError, match="may not see"):
            resolve_isolated(["cat"], [str(shown)], [str(secret)])
    (tmp_path / "team-two").mkdir()
    assert resolve_isolated(["cat"], [str(tmp_path / "team-two")], [str(secret)]).files
    with pytest.raises(NotFoundError, match="nothing is there"):
        resolve_isolated(["cat"], [str(tmp_path / "none")], [])
    with pytest.raises(NotFoundError, match="no program 'none'"):
        resolve_isolated(["none"], [], [])
    with pytest.raises(BadArgumentError, match="no program is given"):
        resolve_isolated([], [], [])


@pytest.mark.usefixtures("made")
def test_only_the_system_and_its_own_files_are_shown(tmp_path: Path) -> None:
    (tmp_path / "own.py").touch()
    program = resolve_isolated([sys.executable, str(tmp_path / "own.py")], [], [])
    place = isolate(program, "/folder", [str(tmp_path / ".nbs")], str(tmp_path))
    shown = options(place.argv, "--ro-bind")
    start = os.path.realpath(sys.executable)
    allowed = ("/usr", "/bin", "/sbin", "/lib", "/etc", str(tmp_path / "own.py"))
    prefix = os.path.dirname(os.path.dirname(start))
    assert [path for path in shown if not path.startswith((*allowed, prefix))] == []
    assert "/etc" not in shown
    assert str(tmp_path / "own.py") in shown
    assert options(place.argv, "--bind") == []
    assert {HOME, WORK} <= set(options(place.argv, "--tmpfs"))
    assert place.env["HOME"] == HOME
    assert (place.cwd, place.level, place.problem) == ("/folder", "namespace", None)
    assert {"--unshare-all", "--die-with-parent"} <= set(place.argv)
    assert place.argv[place.argv.index("--cap-drop") + 1] == "ALL"
    assert "--share-net" not in place.argv
    assert "--share-net" in isolate(program, "/folder", [], "/x", network=True).argv


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("place", ["/work", "/home/agent", "/home", "/tmp", "/srv/app", "/opt"])  # noqa: S108
def test_nothing_covers_what_it_is_to_see(place: str) -> None:
    own = f"{place}/review.py"
    argv = isolate(
        ResolvedProgram(("/usr/bin/true",), (own,)), "/f", ["/srv/app/.nbs"], "/srv/app"
    ).argv
    inside = argv[: argv.index("--")]
    behind = inside[inside.index(own) + 2 :]
    assert [word for word in behind if word != "/" and own.startswith(f"{word}/")] == []


@pytest.mark.usefixtures("made")
def test_what_is_hidden_below_a_folder_of_the_system_is_covered() -> None:
    place = isolate(
        ResolvedProgram(("/usr/bin/true",), ()), "/f", ["/usr/src/app/.nbs"], "/usr/src/app"
    )
    covered = options(place.argv, "--tmpfs")
    assert "/usr/src/app" in covered
    assert "/usr/src/app/.nbs" not in covered  # its name would be seen
    words = list(place.argv)
    assert words.index("/usr/src/app") > words.index("/usr")
    elsewhere = isolate(
        ResolvedProgram(("/usr/bin/true",), ()), "/f", ["/srv/app/.nbs"], "/srv/app"
    )
    assert not {"/srv/app", "/srv/app/.nbs"} & set(elsewhere.argv)


@pytest.mark.usefixtures("made")
def test_an_interpreter_of_ones_own_brings_what_stands_beside_it(tmp_path: Path) -> None:
    for name in ("tool/bin/run", "project/bin/run", "home/bin/run", "home/.local/bin/run"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "tool/bin/run")

    def shown(name: str) -> tuple[str, list[str]]:
        program = ResolvedProgram((str(tmp_path / name),), ())
        with mock.patch.dict(os.environ, {"HOME": str(tmp_path / "home")}):
            place = isolate(program, "/f", [], str(tmp_path / "project"))
        own = [p for p in options(place.argv, "--ro-bind") if p.startswith(str(tmp_path))]
        return place.argv[-1], own

    tool = str(tmp_path / "tool")
    assert shown("tool/bin/run") == (f"{tool}/bin/run", [tool])
    assert shown("link") == (f"{tool}/bin/run", [tool])
    for name in ("project/bin/run", "home/bin/run", "home/.local/bin/run"):
        assert shown(name) == (str(tmp_path / name), [str(tmp_path / name)])


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("made_of", ["tool/.git/HEAD", "tool/share/.git", "tool/share/c.git/HEAD"])
def test_what_stands_beside_an_interpreter_is_not_shown_with_a_repository(
    tmp_path: Path, made_of: str
) -> None:
    for name in ("tool/bin/run", made_of):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(0o755)
    if made_of.endswith("c.git/HEAD"):
        (tmp_path / "tool/share/c.git/objects").mkdir()
        (tmp_path / "tool/share/c.git/refs").mkdir()
    start = str(tmp_path / "tool/bin/run")
    place = isolate(ResolvedProgram((start,), ()), "/f", [], "/x")
    assert [p for p in options(place.argv, "--ro-bind") if p.startswith(str(tmp_path))] == [start]


@pytest.mark.usefixtures("made")
def test_files_are_given_by_content(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "below").mkdir(parents=True)
    (notes / "below/a.md").write_text("a")
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o755)
    program = resolve_isolated([str(tmp_path / "run")], [str(notes)], [])
    given = isolated.files_for_isolated(program, 10)
    assert (given.folders, given.lent) == ((str(notes),), ())
    place = isolate(program, "/f", [], "/x", given=given)
    assert [p for p in options(place.argv, "--ro-bind") if p.startswith(str(tmp_path))] == []
    assert str(notes) in options(place.argv, "--tmpfs")
    sealed = {place.argv[at + 1]: data for at, data in place.sealed.items()}
    assert sealed == {str(notes / "below/a.md"): b"a", str(tmp_path / "run"): b"#!/bin/sh\n"}
    assert {place.argv[at - 1] for at in place.sealed} == {"--file", "--ro-bind-data"}
    perms = {place.argv[at + 1]: place.argv[at - 2] for at in place.sealed}
    assert perms[str(tmp_path / "run")] == "0555"


@pytest.mark.usefixtures("made")
def test_what_is_too_large_is_lent(tmp_path: Path) -> None:
    (tmp_path / "large.md").write_text("more than ten bytes")
    program = resolve_isolated(["cat", str(tmp_path / "large.md")], [], [])
    given = isolated.files_for_isolated(program, 10)
    assert given.lent == ((str(tmp_path / "large.md"), "it holds more than 10 bytes"),)
    place = isolate(program, "/f", [], "/x", given=given)
    assert str(tmp_path / "large.md") in options(place.argv, "--ro-bind")


@pytest.mark.usefixtures("made")
def test_a_shim_called_python_is_the_interpreter_that_runs_us(tmp_path: Path) -> None:
    shim = tmp_path / "python3"
    shim.write_text("#!/bin/sh\n")
    shim.chmod(0o755)
    place = isolate(ResolvedProgram((str(shim), "-c", "1"), ()), "/f", [], "/x")
    assert place.argv[-3:] == (os.path.realpath(sys.executable), "-c", "1")


def test_without_a_namespace_the_reason_is_told() -> None:
    program = ResolvedProgram(("/usr/bin/true",), ())
    with mock.patch.object(isolated, "BWRAP", "no-such-bwrap"):
        place = isolate(program, "/f", [], "/x")
    assert place == isolated.Isolated(
        ("/usr/bin/true",), "/f/work", {"HOME": "/f/home"}, "folder",
        "no-such-bwrap is not installed",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'no permissions' >&2; exit 1", "no permissions"),
        ("exit 7", "bwrap ended with 7"),
        ("echo /secret; exit 3", "/secret is seen in the namespace"),
    ],
)
def test_a_bwrap_that_cannot_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text(f"#!/bin/sh\n{script}\n")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(isolated, "_TRUSTED", ())
    place = isolate(ResolvedProgram(("/usr/bin/true",), ()), "/f", ["/secret"], "/x")
    assert (place.level, place.problem) == ("folder", problem)


def test_a_bwrap_that_others_can_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\nexit 0\n")
    bwrap.chmod(0o775)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(isolated, "_TRUSTED", ())
    place = isolate(ResolvedProgram(("/usr/bin/true",), ()), "/f", [], "/x")
    assert (place.level, place.bwrap) == ("folder", None)
    assert place.problem is not None
    assert place.problem.startswith(f"{bwrap} can be changed by others than you")


@pytest.mark.usefixtures("made")
def test_the_systems_bwrap_comes_before_that_of_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "true").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "true").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    place = isolate(ResolvedProgram(("/usr/bin/true",), ()), "/f", [], "/x")
    assert place.bwrap == ("/usr/bin/true", sha256(Path("/usr/bin/true").read_bytes()).hexdigest())
    assert place.argv[0] == "/usr/bin/true"


def test_proc_may_be_refused_alone(made: mock.Mock) -> None:
    made.side_effect = ["Can't mount proc", None]
    place = isolate(ResolvedProgram(("/usr/bin/true",), ()), "/f", [], "/x")
    assert place.level == "namespace"
    assert "--proc" not in place.argv
