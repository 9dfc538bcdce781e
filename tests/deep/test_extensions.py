"""What the how-to pages add to the project works: in a copy of it, from the first command on."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from docs.pages import ROOT, blocks
from warm import search_path

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


def code(page: str, language: str = "python") -> list[str]:
    """The blocks of a page in one language."""
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    return [block.text for block in blocks(text) if block.language == language]


def edit(path: Path, *pairs: tuple[str, str], more: str = "") -> None:
    """Replace parts of a file that each stand in it once, and add to its end."""
    text = replaced(path.read_text(encoding="utf-8"), *pairs)
    path.write_text(text + more, encoding="utf-8")


def extend(copy: Path) -> None:
    """A copy of the project with what the pages add: a whole slice, from the kind to the check."""
    for package in PACKAGES:
        being_written = shutil.ignore_patterns("*.pyc.*")  # by who runs tests beside us
        shutil.copytree(ROOT / package, copy / package, symlinks=True, ignore=being_written)
    kind, fold, act, work = code("add-a-kind.md", "py")
    edit(copy / "ledger/kinds/decisions.py", more=f"\n\n{kind}")
    risks = replaced(
        code("add-a-projection.md")[0],
        *WHOLE,
        ('frozenset(("decision.logged",))', 'frozenset(("decision.logged", "risk.closed"))'),
        ('of a decision."""\n        tags =', f'of a decision."""\n{fold}        tags ='),
    )
    (copy / "projections/risks.py").write_text(risks, encoding="utf-8")
    imported = "from tripod.projections.team.tables import "
    edit(
        copy / "projections/engine.py",
        (imported, f"from tripod.projections.risks import Risks\n{imported}"),
        ("    PYTHIA, PEERS, SESSIONS, NOVA,\n)", "    PYTHIA, PEERS, SESSIONS, NOVA, Risks(),\n)"),
    )
    (copy / "tripod/decisions/risks.py").write_text(act, encoding="utf-8")
    (section,) = code("add-a-kind.md", "text")
    table = '"""\n_WORKS = [_log, _query, _show, _inbox, _count, _summary, _export, _advise]'
    edit(
        copy / "tripod/cli/scribe.py",
        ("def _nbs_query(", f"{work}\n\ndef _nbs_query("),
        (table, f"\n{section}{table[:-1]}, _close]"),
    )
    check = code("add-a-check.md")[0]
    (copy / f"verify/checks/{ARTEFACTS}.py").write_text(check, encoding="utf-8")
    edit(
        copy / "verify/checks/__init__.py",
        (
            "    decision_noise,\n    drift,",
            f"    decision_noise,\n    {ARTEFACTS},\n    drift,",
        ),
        (
            "    decision_noise,\n)\n\nLEDGER",
            f"    decision_noise,\n    {ARTEFACTS},\n)\n\nLEDGER",
        ),
    )


def touched(copy: Path) -> set[str]:
    """The files of the copy that are new, or other than in the project."""
    found = {
        str(path.relative_to(copy))
        for package in PACKAGES
        for path in (copy / package).rglob("*.py")
        if not any(folder.is_symlink() for folder in path.parents)
    }
    return {
        name
        for name in found
        if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (copy / name).read_bytes()
    }


class Cafe:
    """A team of the extended project, whose modules a server has loaded."""

    def __init__(self, folder: Path) -> None:
        extend(folder / "project")
        self.path = search_path(PYTHONPATH=str(folder / "project"))
        self.home = folder / "cafe"
        self.home.mkdir()

    def __call__(self, *words: str, code: int = 0, remark: str = "") -> str:
        done = subprocess.run(
            ["tripod", *words],
            cwd=self.home,
            env={"PATH": self.path, "HOME": str(self.home), "TRIPOD_AS": "me"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert remark in done.stderr if remark else done.stderr == ""
        return done.stdout

    def log(self, title: str, *tags: str) -> None:
        options = [word for tag in tags for word in ("--risk-tag", tag)]
        words = ("scribe", "log", title, "-p", "ann", "-r", "So.", "--ref", "last", *options)
        self(*words, remark="refers to live.chat:~L7 #0")

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
    assert cafe.risks == ["Buy a pot by me", "Serve tea by me", "Buy a pot by me"]
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
    assert ".nbs/scribe/risks.md:3: drift: differs" in cafe("verify", "-v", code=1)
    cafe("rebuild")
    assert len(cafe.risks) == 4
    said = cafe("verify", "-v")
    assert re.search(r"^findings +drift +1 warning; ", said, re.MULTILINE), "the edit is kept"


@pytest.mark.slow
def test_a_kind_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    cafe = Cafe(tmp_path)
    cafe("init")
    cafe("chat", "create", "live")
    cafe("chat", "send", "live", "ann", "Tea!")
    cafe.log("Buy a pot", "cost", "untested")
    assert cafe.risks == ["Buy a pot by me"] * 2
    (decision,) = set(re.findall(r"D-\d+", (cafe.home / ".nbs/scribe/risks.md").read_text()))
    close = ("scribe", "close", decision, "cost", "--reason", "It was cheap.", "--as", "ann")
    assert cafe(*close) == f"{decision}: cost is closed\n"
    shown = ["Buy a pot (closed) by me", "Buy a pot by me"]
    assert cafe.risks == shown
    assert "Left alone" not in cafe("sync")
    cafe.clean()
    assert "0 files written" in cafe("rebuild")
    cafe.clean()
    (seq,) = re.findall(r"(?m)^ *(\d+) .*risk\.closed", cafe("show"))
    cafe("redact", seq, "--reason", "a mistake", "--by", "ann", remark="must be revoked")
    cafe.clean()
    assert cafe.risks == shown


def test_the_page_names_each_file_that_a_slice_touches(tmp_path: Path) -> None:
    extend(tmp_path)
    page = (ROOT / "docs/how-to/add-a-kind.md").read_text(encoding="utf-8")
    listed = [
        name
        for row in re.findall(r"(?m)^\| (`\S+\.py`.*) \|", page)
        for name in re.findall(r"`([^`]+\.py)`", row.split("|")[0])
    ]
    assert {name for name in listed if not name.startswith("tests/")} == touched(tmp_path)
    assert len(listed) == 9
    assert "nine files, two of them tests" in page
