"""What the how-to pages add to the project works: in a copy of it, from the first command on."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.pages import ROOT, blocks

ARTEFACTS = "decisions_have_artefacts"
PACKAGES = ("ledger", "projections", "verify", "tripod")
WHOLE = (
    ("    id TEXT NOT NULL,", "    id TEXT NOT NULL, actor TEXT NOT NULL, at TEXT NOT NULL,"),
    ("VALUES (?, ?, ?, ?)", "VALUES (?, ?, ?, ?, ?, ?)"),
    ('entry.data["id"], ', 'entry.data["id"], entry.actor, entry.at, '),
    ('f"- {id_} {title}\\n"', 'f"- {id_} {title}\\n\\n### {id_}\\n"'),
    ("SELECT tag, id, title", "SELECT tag, id, title || ' by ' || actor || ' at ' || at"),
)
"""The example of the page, but for a fold that asks for the actor and the time of the entry.

The file has headings as a decision log has them, and must not be taken for one.
"""


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def first_block(page: str) -> str:
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    return next(block.text for block in blocks(text) if block.language == "python")


def extend(copy: Path) -> None:
    """A copy of the project with the projection and the check of the pages, and their two lines."""
    for package in PACKAGES:
        no_caches = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, copy / package, ignore=no_caches)
    risks = replaced(first_block("add-a-projection.md"), *WHOLE)
    (copy / "projections/risks.py").write_text(risks, encoding="utf-8")
    line = copy / "projections/__init__.py"
    text = line.read_text(encoding="utf-8")
    text = re.sub(
        r"(\nfrom projections\.team_files )", r"\nfrom projections.risks import Risks\1", text
    )
    line.write_text(replaced(text, ("    PYTHIA,\n)", "    PYTHIA, Risks(),\n)")), encoding="utf-8")
    check = first_block("add-a-check.md")
    (copy / f"verify/checks/{ARTEFACTS}.py").write_text(check, encoding="utf-8")
    line = copy / "verify/checks/__init__.py"
    text = replaced(
        line.read_text(encoding="utf-8"),
        (
            "    decision_noise,\n    drift,",
            "    decision_noise,\n    decisions_have_artefacts,\n    drift,",
        ),
        (
            "    decision_noise,\n)\n\nADVICE",
            "    decision_noise,\n    decisions_have_artefacts,\n)\n\nADVICE",
        ),
    )
    line.write_text(text, encoding="utf-8")


class Cafe:
    """A team of the extended project."""

    def __init__(self, folder: Path) -> None:
        extend(folder / "project")
        self.project = folder / "project"
        self.home = folder / "cafe"
        self.home.mkdir()

    def __call__(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-c", "from tripod.cli import main; main()", *words],
            cwd=self.home,
            env=os.environ | {"PYTHONPATH": str(self.project)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (words, done.returncode, done.stderr) == (words, code, "")
        return done.stdout

    def log(self, title: str, *tags: str) -> None:
        options = [word for tag in tags for word in ("--risk-tag", tag)]
        self("scribe", "log", title, "-p", "ann", "-r", "So.", "--ref", "live.chat:~L7", *options)

    @property
    def risks(self) -> list[str]:
        page = (self.home / ".nbs/scribe/risks.md").read_text(encoding="utf-8")
        return re.findall(r"^- D-\d+ (.+ by .+) at \d{4}-\d\d-\d\dT\d\d:.*Z$", page, re.MULTILINE)

    def clean(self) -> None:
        said = self("verify", "-v")
        assert re.search(r"^clean +drift ", said, re.MULTILINE), said
        assert re.search(r"^findings +decisions-have-artefacts +\d warning", said, re.MULTILINE)
        assert "Left alone" not in self("sync")


@pytest.mark.slow
def test_the_projection_and_the_check_of_the_pages(tmp_path: Path) -> None:
    cafe = Cafe(tmp_path)
    cafe("init")
    cafe("chat", "create", "live")
    cafe("chat", "send", "live", "ann", "Tea!")
    cafe.log("No tag")
    cafe.clean()
    cafe.log("Serve tea", "untested")
    cafe.log("Buy a pot", "cost", "untested")
    assert cafe.risks == ["Buy a pot by scribe", "Serve tea by scribe", "Buy a pot by scribe"]
    cafe.clean()
    log = cafe.home / ".nbs/scribe/log.md"
    text = log.read_text(encoding="utf-8")
    piece = text[text.index("### D-", text.index("Serve tea") - 30) :].partition("\n---")[0]
    other = re.sub(r"D-(\d+) Serve tea", lambda id_: f"D-{int(id_[1]) + 60} Serve cake", piece)
    log.write_text(f"{text}\n---\n\n{other}", encoding="utf-8")  # as another program logs
    said = cafe("verify", "-v")
    assert re.search(r"^clean +drift .*not taken in yet 1", said, re.MULTILINE), said
    assert "Taken in" in cafe("sync")
    assert len(cafe.risks) == 4
    cafe.clean()
    assert "0 files written" in cafe("rebuild")
    (cafe.home / ".nbs/scribe/risks.md").write_text("# Risks\n", encoding="utf-8")
    assert "scribe/risks.md: drift: differs" in cafe("verify", code=1)
    cafe("rebuild")
    assert len(cafe.risks) == 4
    said = cafe("verify", "-v")
    assert re.search(r"^findings +drift +1 warning; ", said, re.MULTILINE), "the edit is kept"
