"""What git has of a project: earlier versions of protected files, and of instruction files."""

import json
from pathlib import Path

import pytest
from git_repo import Git
from recorded_sessions import judged, recorded

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.recorded import project as session_project
from tripod.verify.recorded.project import Project

OLD = "ann: we ship the seventh release on friday, unless bob finds another fault in it"
NEW = "ann: nothing of importance was said here, and nobody asked for more of it today"
GONE = "carl: the side door stays open until seven, so says everybody who is here"
START = {"type": "user", "sessionId": "s", "version": "2.1.209", "cwd": "/w"}


def _session(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "a.jsonl"
    message = {"role": "user", "content": text}
    path.write_text(json.dumps(START | {"message": message}) + "\n")
    return path


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """A repository with two versions of a protected file, in a folder of it."""
    git = Git(tmp_path / "repository")
    git.commit("team/chat/a.md", OLD.encode())
    git.commit("team/chat/a.md", NEW.encode())
    return git


@pytest.fixture
def team(git: Git) -> Path:
    return git.root / "team"


def test_a_version_that_git_has_is_protected(tmp_path: Path, git: Git, team: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/chat").mkdir()
    for text in (OLD, NEW):
        session = _session(tmp_path, f"they say {text}")
        assert judged(session, project=team)[0].told == "findings"
        assert judged(session, project=tmp_path / "plain")[0].told == "clean"
    assert judged(_session(tmp_path, "hi"), project=team)[0].told == "clean"


def test_a_version_of_another_branch_or_of_a_file_that_is_gone_is_protected(
    tmp_path: Path, git: Git, team: Path
) -> None:
    git("checkout", "-qb", "side")
    git.commit("team/chat/gone.md", GONE.encode())
    git("checkout", "-q", "-")
    session = _session(tmp_path, f"it is {GONE}")
    assert not (team / "chat/gone.md").exists()
    (found,) = judged(session, project=team)[1][0].found
    assert found.named == "chat/gone.md"


def test_what_may_be_read_as_well_does_not_count(tmp_path: Path, git: Git, team: Path) -> None:
    line = "licensed under the terms of apache"
    git.commit("team/chat/b.md", f"{OLD}\n{line}\n".encode())
    git.commit("team/chat/open/c.md", f"{OLD}\n{line}\n".encode())
    for text, told in ((OLD, "clean"), (line, "clean"), (NEW, "findings")):
        protected, rule = ProtectedText(), NeverRule(["chat/**"], ["chat/open/**"])
        Project(str(team)).protect(protected, rule)
        assert bool(list(protected.found_in(text))) == (told == "findings")


@pytest.mark.parametrize("limit", ["_MAX_FILES", "_MAX_HISTORY"])
def test_more_versions_than_are_read_cannot_be_told(
    tmp_path: Path, git: Git, team: Path, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = _session(tmp_path, "hi")
    monkeypatch.setattr(session_project, limit, 1)
    verdict, _ = judged(session, project=team)
    assert verdict.told == "cannot tell"
    assert "more versions" in verdict.reasons[0]


def test_a_repository_that_is_not_read_cannot_be_told(tmp_path: Path, git: Git, team: Path) -> None:
    session = _session(tmp_path, "hi")
    shallow = tmp_path / "shallow"
    git("clone", "-q", "--depth=1", f"file://{team.parent}", str(shallow))
    assert judged(session, project=shallow)[0].told == "cannot tell"
    with (team.parent / ".git/config").open("a") as config:
        config.write("[extensions]\n\tsomething = x\n")
    assert judged(session, project=team)[0].told == "cannot tell"


def test_nothing_of_the_repository_is_run(tmp_path: Path, git: Git, team: Path) -> None:
    (team.parent / ".gitattributes").write_text("* textconv=x filter=x diff=x\n")
    with (team.parent / ".git/config").open("a") as config:
        for section in ('filter "x"', 'diff "x"'):
            config.write(f"[{section}]\n")
            for key in ("smudge", "clean", "process", "textconv", "command"):
                config.write(f"\t{key} = touch {tmp_path}/ran\n")
        config.write(f"[core]\n\tfsmonitor = touch {tmp_path}/ran\n")
    assert judged(_session(tmp_path, OLD), project=team)[0].told == "findings"
    assert not (tmp_path / "ran").exists()


def test_earlier_instructions_may_have_been_in_force(tmp_path: Path, git: Git, team: Path) -> None:
    database = recorded() / "sessions-2026-11/opencode-clean/opencode.db"
    git.commit("team/AGENTS.md", b"be kind")
    assert judged(database, project=team, home=tmp_path)[0].told == "clean"
    for name, text in (
        ("AGENTS.md", f"they say {OLD}"),
        ("AGENTS.md", "read @chat/a.md first"),
        ("opencode.json", '{"instructions": ["chat/*.md"]}'),
    ):
        git.commit(f"team/{name}", text.encode())
        assert judged(database, project=team, home=tmp_path)[0].told == "findings"
        git.commit(f"team/{name}", b"{}" if name != "AGENTS.md" else b"be kind")
        assert judged(database, project=team, home=tmp_path)[0].told == "cannot tell"
        git("reset", "-q", "--hard", "HEAD~2")
        git("reflog", "expire", "--expire=now", "--all")
        git("update-ref", "-d", "ORIG_HEAD")
        assert judged(database, project=team, home=tmp_path)[0].told == "clean"


def test_earlier_settings_that_are_no_json_cannot_be_told(git: Git, team: Path) -> None:
    database = recorded() / "sessions-2026-11/opencode-clean/opencode.db"
    git.commit("team/opencode.json", b'{"instructions": ["chat/*.md"],}')
    git.commit("team/opencode.json", b"{}")
    assert judged(database, project=team, home=team)[0].told == "cannot tell"
