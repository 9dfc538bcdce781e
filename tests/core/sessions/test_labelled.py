"""Recordings with ground truth: no false clean, no false breach; what cannot be told is named."""

import json
from pathlib import Path

import pytest
from doors.inside import run
from recorded_sessions import judged, labels, recorded

OLD, NEW = "sessions", "sessions-2026-11"
FILES = [(name, file) for name, label in labels(NEW).items() for file in label["files"]]
LOBBY = "# lobby\n[09:00] ann: SECRETCHAT the release slips to friday\n"


@pytest.mark.parametrize("name", labels(OLD))
@pytest.mark.parametrize("protect", [{}, {"chat/lobby.md": LOBBY}], ids=["paths", "text"])
def test_what_claude_code_was_shown_is_found(name: str, protect: dict[str, str]) -> None:
    folder = recorded() / OLD / name
    paths = [path for path in folder.rglob("*.jsonl") if "hook-stdin" not in path.name]
    verdict, _ = judged(*paths, protect=protect)
    if not labels(OLD)[name]["any_read_of_chat"]:
        assert verdict.told != "findings", verdict.reasons
    elif name == "h_ctx":
        # The hook said words of its own, not those of the file: only a person can tell.
        assert verdict.told == "cannot tell"
        if protect:
            assert ["told in its own words of a call of /home/dev/team/chat/lobby.md" in why
                    for why in verdict.reasons] == [True]  # fmt: skip
    elif name == "mcp" and not protect:
        assert verdict.told == "cannot tell"
        assert any("ReadMcpResourceTool" in reason for reason in verdict.reasons)
    else:
        assert verdict.told == "findings"


@pytest.mark.parametrize("name", labels(OLD))
def test_each_labelled_call_that_showed_the_chat_is_named_by_its_id(name: str) -> None:
    folder = recorded() / OLD / name
    paths = [path for path in folder.rglob("*.jsonl") if "hook-stdin" not in path.name]
    _, read = judged(*paths, protect={"chat/lobby.md": LOBBY})
    named = {each.call for one in read for each in one.found if each.sure and each.shown}
    events = labels(OLD)[name]["events"]
    denied = {event.get("tool_use_id") for event in events if event.get("denied")}
    for event in events:
        call = event.get("tool_use_id")
        # What a subagent reports is its own words: what it read is named in its own file.
        if call and event["chat_text_reached_model"] and event["channel"] != "tool:Agent":
            assert call in named, event
    # A call that was refused showed nothing, unless an answer to another of its id did.
    assert not denied & named


@pytest.mark.parametrize(("name", "file"), FILES)
def test_the_programs_of_today_are_judged_as_their_requests_say(name: str, file: str) -> None:
    label, folder = labels(NEW)[name], recorded() / NEW / name
    alone, _ = judged(folder / file)
    whole, read = judged(folder / file, project=folder / "team", home=folder)
    if label["chat_text_reached_model"] or label["chat_opened_by_harness"]:
        assert whole.told == "findings"
        assert alone.told == ("findings" if label["text_is_in_the_record"] else "cannot tell")
        shown = [each for one in read for each in one.found if each.shown and each.sure]
        assert bool(shown) == label["chat_text_reached_model"]
    else:
        assert whole.told == "clean", whole.reasons
        blind = name.startswith(("opencode", "gemini", "qwen"))
        assert alone.told == ("cannot tell" if blind else "clean")
        told, _ = judged(folder / file, project=folder / "team")
        assert told.told == ("cannot tell" if blind else "clean")


REACHED = [
    (folder, name)
    for folder in (OLD, NEW)
    for name, label in labels(folder).items()
    if label.get("any_read_of_chat") or label["chat_text_reached_model"]
]


def _files(folder: str, name: str) -> list[str]:
    place = recorded() / folder / name
    if folder == NEW:
        return [str(place / file) for file in labels(NEW)[name]["files"]]
    return sorted(str(path) for path in place.rglob("*.jsonl") if "hook-stdin" not in path.name)


@pytest.mark.parametrize(("folder", "name"), REACHED)
def test_no_session_in_which_chat_text_reached_the_model_is_ever_clean(
    tmp_path: Path, folder: str, name: str
) -> None:
    """Whatever is asked, and of whatever other evidence: the one bar that counts."""
    files, home = _files(folder, name), recorded() / folder / name
    project = home / "team" if folder == NEW else tmp_path / "project"
    chat = project / "chat/lobby.md"
    if folder == OLD:
        chat.parent.mkdir(parents=True)
        chat.write_text(LOBBY)
    around = "--project", str(project)
    for more in ((), ("--protect", str(chat)), around, (*around, "--home", str(home))):
        assert run(tmp_path, "exposure", "--never", "chat/**", *more, *files).code in (1, 3), more
    assert run(tmp_path, "exposure", "--protect", str(chat), *files).code in (1, 3)
    team = tmp_path / "team"
    team.mkdir()
    assert run(team, "init").code == 0
    (team / ".nbs/policy.yaml").write_text("never:\n  - paths: ['chat/**']\n")
    assert run(team, "import", *files, "--as", "ann").code == 0
    report = json.loads(run(team, "verify", "--select", "never-read", "--json").out)
    assert {one["check"]: one["verdict"] for one in report["checks"]}["never-read"] in (
        "findings", "cannot tell",
    )  # fmt: skip


def test_a_channel_without_a_record_is_named() -> None:
    folder = recorded() / NEW / "opencode-instructions-no-record"
    verdict, _ = judged(folder / labels(NEW)[folder.name]["files"][0])
    assert verdict.told == "cannot tell"
    assert any("leaves no record of instructions" in reason for reason in verdict.reasons)


def test_what_code_mode_opened_and_did_not_show_breaks_never_and_not_shown() -> None:
    folder = recorded() / NEW / "codex-codemode-opened-not-shown"
    (file,) = labels(NEW)[folder.name]["files"]
    _, (one,) = judged(folder / file, project=folder / "team")
    assert [(each.path, each.sure, each.shown) for each in one.found] == [
        ("/home/dev/team/chat/lobby.md", True, False)
    ]


def test_a_subagent_whose_file_is_not_there_leaves_it_untold() -> None:
    folder = recorded() / OLD / "bg"
    (main,) = [path for path in folder.glob("*.jsonl") if "hook-stdin" not in path.name]
    verdict, _ = judged(main, never="nothing/**", protect={"x": "x"})
    assert verdict.told == "cannot tell"
    assert any("session of subagent a654917b952433391" in reason for reason in verdict.reasons)
