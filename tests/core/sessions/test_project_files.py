"""What a program puts into the context from a project, or from a home folder, without a record."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from doors.inside import Done, run
from recorded_sessions import recorded
from session_specimens import claude_user

from tripod.verify.recorded import project
from tripod.verify.recorded.project import Project
from tripod.verify.sessions.items import Gap, Given

SECRET = "ann: we ship the seventh release on friday, unless bob finds another fault in it"


def _written(root: Path, files: dict[str, object]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))
    return root


def _texts(folder: Project, program: str) -> dict[str, bool]:
    """The files whose text is searched, and whether the program had surely read them."""
    return {
        one.named: one.sure
        for one in folder.items(program)
        if isinstance(one, Given) and one.named and one.text
    }


def _gaps(folder: Project, program: str) -> list[str]:
    return [one.what for one in folder.items(program) if isinstance(one, Gap)]


PROJECT: list[tuple[str, dict[str, object], dict[str, bool]]] = [
    ("opencode", {"opencode.json": {"agent": {"a": {"prompt": "{file:./x/p.md}"}}},
                  "x/p.md": SECRET}, {"x/p.md": False}),
    ("opencode", {".opencode/opencode.jsonc": '{"mode": {"a": {"prompt": "{file:p.md}"}}, // x\n}',
                  ".opencode/p.md": SECRET}, {".opencode/p.md": False}),
    ("opencode", {"opencode.jsonc": '/* x */ {"instructions": ["a/**/*.md", "b?.md",], }',
                  "a/x.md": SECRET, "a/b/c.md": SECRET, "b1.md": SECRET, "b12.md": SECRET},
     {"a/x.md": True, "a/b/c.md": True, "b1.md": True}),
    ("gemini", {".gemini/settings.json": {"contextFileName": ["A.md", "B.md"]}, "A.md": SECRET,
                "x/B.md": SECRET}, {"A.md": True, "x/B.md": True}),
    ("gemini", {".gemini/settings.json": '{"context": {"fileName": "A.md"}, // x\n}',
                "A.md": SECRET}, {"A.md": True}),
    ("gemini", {".gemini/extensions/e/gemini-extension.json": {"contextFileName": "A.md"},
                ".gemini/extensions/e/A.md": SECRET, ".gemini/extensions/f/GEMINI.md": SECRET},
     {".gemini/extensions/e/A.md": False, ".gemini/extensions/f/GEMINI.md": False}),
    ("qwen", {".qwen/settings.json": {"context": {"fileName": ["A.md"]}}, "x/A.md": SECRET},
     {"x/A.md": True}),
    ("qwen", {".qwen/extensions/e/qwen-extension.json": {"contextFileName": ["A.md"]},
              ".qwen/extensions/e/A.md": "@b.md", ".qwen/extensions/e/b.md": SECRET},
     {".qwen/extensions/e/A.md": False, ".qwen/extensions/e/b.md": False}),
    ("qwen", {"QWEN.md": "see @a@2x.md", "a@2x.md": SECRET}, {"QWEN.md": True, "a@2x.md": True}),
    ("qwen", {".qwen/system.md": SECRET, ".qwen/agents/a.md": SECRET},
     {".qwen/system.md": False, ".qwen/agents/a.md": False}),
]  # fmt: skip

for _kind in ("agent", "agents", "command", "commands", "mode", "modes"):
    _paths = f".opencode/{_kind}/a.md", f".opencode/{_kind}/b/c.md"
    PROJECT.append(("opencode", dict.fromkeys(_paths, SECRET), dict.fromkeys(_paths, False)))


@pytest.mark.parametrize(("program", "files", "texts"), PROJECT)
def test_files_that_a_program_puts_into_the_context_are_searched(
    tmp_path: Path, program: str, files: dict[str, object], texts: dict[str, bool]
) -> None:
    folder = Project(str(_written(tmp_path, files)))
    assert (_texts(folder, program), _gaps(folder, program)) == (texts, [])


HOME: list[tuple[str, dict[str, object], dict[str, bool]]] = [
    ("opencode", {".config/opencode/opencode.json": {"agent": {"a": {"prompt": "{file:p.md}"}},
                                                     "instructions": ["~/i/*.md"]},
                  ".config/opencode/p.md": SECRET, "i/a.md": SECRET},
     {".config/opencode/p.md": False, "i/a.md": True}),
    ("opencode", {".config/opencode/AGENTS.md": SECRET, ".config/opencode/agent/a.md": SECRET},
     {".config/opencode/AGENTS.md": True, ".config/opencode/agent/a.md": False}),
    ("gemini", {".gemini/settings.json": {"context": {"fileName": "A.md"}},
                ".gemini/A.md": SECRET}, {".gemini/A.md": True}),
    ("qwen", {".qwen/settings.json": {"contextFileName": "A.md"}, ".qwen/A.md": SECRET},
     {".qwen/A.md": True}),
    ("qwen", {".qwen/AGENTS.md": SECRET}, {".qwen/AGENTS.md": True}),
]  # fmt: skip


@pytest.mark.parametrize(("program", "files", "texts"), HOME)
def test_files_of_the_home_folder_are_searched(
    tmp_path: Path, program: str, files: dict[str, object], texts: dict[str, bool]
) -> None:
    folder = Project(str(_written(tmp_path, files)), is_home=True)
    assert (_texts(folder, program), _gaps(folder, program)) == (texts, [])


def test_settings_at_home_name_files_of_the_project_and_the_other_way_round(tmp_path: Path) -> None:
    home = _written(tmp_path / "home", {
        ".qwen/settings.json": {"contextFileName": "A.md"}, ".qwen/B.md": SECRET,
        ".config/opencode/opencode.json": {"instructions": ["c.md"]}, "d.md": SECRET,
    })  # fmt: skip
    work = _written(tmp_path / "work", {
        ".qwen/settings.json": {"contextFileName": "B.md"}, "A.md": SECRET, "c.md": SECRET,
        "opencode.json": {"instructions": ["~/d.md"]},
    })  # fmt: skip
    one, two = Project(str(work)), Project(str(home), is_home=True)
    assert _gaps(one, "opencode") == [
        "~/d.md, which the instructions name, is not in the folder that was given"
    ]
    one.beside, two.beside = two, one
    assert _texts(one, "qwen") == {"A.md": True}
    assert _texts(two, "qwen") == {".qwen/B.md": True}
    assert _texts(one, "opencode") == {"c.md": True}
    assert _texts(two, "opencode") == {"d.md": True}
    assert _gaps(one, "opencode") == []


def test_links_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    for name in "abcdefgh":
        (tmp_path / "x" / name).mkdir(parents=True)
        for number in range(4):
            (tmp_path / "x" / name / f"up{number}").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "0-first").symlink_to("x/a")
    _written(tmp_path, {"x/a/QWEN.md": SECRET, ".qwen/settings.json": {"contextFileName": "Z.md"}})
    assert _texts(Project(str(tmp_path)), "qwen") == {"x/a/QWEN.md": True}


def test_a_folder_that_only_a_link_leads_to_is_read(tmp_path: Path) -> None:
    _written(tmp_path / "elsewhere", {"QWEN.md": SECRET})
    (tmp_path / "work").mkdir()
    (tmp_path / "work/link").symlink_to(tmp_path / "elsewhere")
    assert _texts(Project(str(tmp_path / "work")), "qwen") == {"link/QWEN.md": True}


def test_what_is_not_visited_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _written(tmp_path, {f"x/{number}.py": "x" for number in range(10)})
    assert _gaps(Project(str(tmp_path)), "qwen") == []
    monkeypatch.setattr(project, "_MAX_WALKED", 5)
    assert any("more than 5 names" in what for what in _gaps(Project(str(tmp_path)), "qwen"))


def test_a_folder_that_nobody_may_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").mkdir()
    _written(tmp_path, {"QWEN.md": "x"})
    whole = os.scandir

    def refused(path: str) -> Any:
        if str(path).endswith("/x"):
            raise PermissionError(13, "Permission denied", path)
        return whole(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert _gaps(Project(str(tmp_path)), "qwen") == [
        "the folder x cannot be read: Permission denied"
    ]


@pytest.mark.parametrize("pattern", ["[z-a].md", "[", "**/" * 50 + "*a" * 50, "../x.md", "/x"])
def test_a_pattern_that_fits_nothing_is_a_gap_and_ends(tmp_path: Path, pattern: str) -> None:
    files: dict[str, object] = {"opencode.json": {"instructions": [pattern]}}
    files["/".join("a" * 40) + ".md"] = "x"
    folder = Project(str(_written(tmp_path, files)))
    assert any(pattern[:20] in what for what in _gaps(folder, "opencode"))


def _judged(folder: Path, project: Path) -> Done:
    return run(folder, "exposure", "--never", ".env", "--project", str(project), "a.jsonl")


@pytest.mark.parametrize("name", ["w", "W", "x/y/w"])
def test_a_project_of_the_name_of_the_sessions_folder_stands_for_it(
    tmp_path: Path, name: str
) -> None:
    text = {"type": "hook_additional_context", "content": ["All is well."]}
    records = [claude_user("hi"), claude_user("") | {"type": "attachment", "attachment": text}]
    del records[1]["message"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    project = _written(tmp_path / name, {".env": "PASSWORD=correct-horse-battery-staple"})
    assert _judged(tmp_path, project).code == 0
    link = tmp_path / "another"
    project.rename(link)
    done = _judged(tmp_path, link)
    assert done.code == 3
    assert f"--project {link} is named otherwise than /w, " in done.out.decode()
    assert "to do: give as --project the folder of that name" in done.out.decode()
    (tmp_path / "w").symlink_to(link)
    assert _judged(tmp_path, tmp_path / "w").code == 0


def test_another_project_tells_nothing_of_what_a_program_leaves_no_record_of(
    tmp_path: Path,
) -> None:
    """``--project`` of the wrong folder had made a session clean in which chat text was shown."""
    recording = recorded() / "sessions-2026-11/opencode-instructions-no-record"
    other = _written(tmp_path / "other", {"README.md": "Hello.\n"})
    around = "--home", str(other), "--project", str(other)
    for file in (recording / "opencode.db", *recording.glob("export-*.json")):
        done = run(tmp_path, "exposure", "--never", "chat/**", *around, str(file))
        assert done.code == 3
        assert "is named otherwise than /home/dev/team" in done.out.decode()


def test_a_session_of_which_no_other_evidence_tells_needs_no_project_of_its_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(claude_user("hi")) + "\n")
    assert _judged(tmp_path, _written(tmp_path / "other", {".env": SECRET})).code == 0
