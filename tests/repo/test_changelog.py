"""The changelog and the decision records keep their forms."""

import tomllib

from repo.rules import ROOT, changelog_faults, decision_faults

_PARTS = "## Status\n## Context\n## Decision\n## Considered\n## Consequences\n"


def test_the_changelog_keeps_its_form() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changelog_faults(changelog, project["version"]) == []


def test_each_fault_of_a_changelog_is_named() -> None:
    text = "## [0.2.0] - 2026-11-21\n### News\n## 0.1\n"
    assert changelog_faults(text, "0.3.0") == [
        "the first release is not [Unreleased]",
        "not a release: 0.1",
        "not a section: News",
        "the version is 0.3.0, the newest release is 0.2.0",
    ]


def test_the_decision_records_are_numbered_and_whole() -> None:
    folder = ROOT / "docs" / "decisions"
    files = {page.name: page.read_text(encoding="utf-8") for page in folder.glob("*.md")}
    assert files
    assert decision_faults(files) == []


def test_each_fault_of_a_decision_record_is_named() -> None:
    files = {"0000-template.md": _PARTS, "0002-gap.md": _PARTS, "0003-bare.md": "## Status\n"}
    assert decision_faults(files) == [
        "0002-gap.md: expected number 0001",
        "0003-bare.md: expected number 0002",
        "0003-bare.md: the parts are ['Status']",
    ]
