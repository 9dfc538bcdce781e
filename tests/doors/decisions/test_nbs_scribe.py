"""The three commands of the Scribe row by row: arguments, outcome, exit code, output.

Source: seeds nbs-scribe; spec nbs-compat B10, B11. Each row is a command on a copy of one team.
``L`` stands for its log, ``C`` for its chat; in what is told ``...`` stands for anything.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from docs.pages import fits
from doors.inside import Done, run, run_as, state
from story import BEGIN, Clock, folder

from tripod.cli.nbs import nbs_grammar
from tripod.cli.scribe import PROGRAMS
from tripod.ledger.locator import LEDGER

USAGE, LOG_USAGE, QUERY_USAGE = (program.usage for program in PROGRAMS)
OPTIONS = nbs_grammar(PROGRAMS[1].verbs[0].nbs or "").options
LOG = ".nbs/scribe/log.md"
CHAT = ".nbs/chat/live.chat"
NEW = f"D-{BEGIN + 100}\n"
WHO = ("--participants=alex, claude", "--rationale=It is due.")
SAID = (*WHO, "--chat-ref=live.chat:~L7")
NO_REF = "...warning: no chat ref: ..."
ONE = (
    f"### D-{BEGIN} Use files\n- **Chat ref:** live.chat:~L7\n"
    "- **Participants:** alex, claude\n- **Artefacts:** docs/nbs-bus.md\n"
    "- **Risk tags:** scope-creep\n- **Status:** decided\n"
    "- **Rationale:** Polling wastes context.\n"
)
TWO = (
    f"### D-{BEGIN + 1} [SUPERSEDES D-{BEGIN}] Sockets after all\n"
    "- **Chat ref:** live.chat:~L7\n- **Participants:** al\n- **Artefacts:** —\n"
    "- **Risk tags:** scope\n- **Status:** reversed\n- **Rationale:** Files were slow.\n"
)
THREE = (
    f"### D-{BEGIN + 2} Cap the input\n- **Chat ref:** live.chat:~L8\n"
    "- **Participants:** alexa\n- **Artefacts:** fa788ce\n"
    "- **Risk tags:** perf-risk, untested\n- **Status:** accepted-risk\n"
    "- **Rationale:** 4 KB are enough.\n"
)
FIRST = (
    f"D-{BEGIN} Use files\n  reversed by D-{BEGIN + 1} (logged as decided); alex, claude; "
    "live.chat:~L7; tags: scope-creep; "
    "artefacts: docs/nbs-bus.md\n  Polling wastes context.\n"
)
SECOND = (
    f"D-{BEGIN + 1} [SUPERSEDES D-{BEGIN}] Sockets after all\n"
    "  reversed; al; live.chat:~L7; tags: scope; artefacts: —\n  Files were slow.\n"
)
THIRD = (
    f"D-{BEGIN + 2} Cap the input\n  accepted-risk; alexa; live.chat:~L8; "
    "tags: perf-risk, untested; artefacts: fa788ce\n  4 KB are enough.\n"
)


class Row(NamedTuple):
    """A command and its words, its exit code, what it prints, and what it says on stderr."""

    door: str
    words: tuple[str, ...]
    code: int
    out: str = ""
    err: str = ""
    given: str = "log"


def logs(words: str | tuple[str, ...], code: int, out: str = "", err: str = "",
         given: str = "log") -> Row:  # fmt: skip
    split = tuple(words.split(" ")) if isinstance(words, str) else words
    return Row("nbs-scribe-log", split, code, out, err, given)


def asks(words: str | tuple[str, ...], code: int, out: str = "", err: str = "",
         given: str = "log") -> Row:  # fmt: skip
    split = tuple(words.split(" ")) if isinstance(words, str) else words
    return Row("nbs-scribe-query", split, code, out, err, given)


def does(words: str | tuple[str, ...], code: int, out: str = "", err: str = "",
         given: str = "log") -> Row:  # fmt: skip
    split = tuple(words.split(" ")) if isinstance(words, str) else words
    return Row("nbs-scribe", split, code, out, err, given)


NO_NAME = "...a decision log is a file whose name ends in .md and begins with no dot..."
FIELDS = [
    (("--status=decided",), None),
    (("--status=accepted-risk",), None),
    (("--status=superseded", f"--supersedes=D-{BEGIN + 2}"), None),
    (("--status=maybe",), "status: 'maybe' is none of decided, accepted-risk"),
    (("--status=",), "status: '' is none of"),
    ((f"--supersedes=D-{BEGIN + 1}",), None),
    ((f"--reverses=D-{BEGIN + 2}",), None),
    ((f"--mitigates=D-{BEGIN + 2}",), None),
    ((f"--supersedes=D-{BEGIN}",), f"supersedes: D-{BEGIN} was reversed by D-{BEGIN + 1} already"),
    (("--supersedes=D-17",), "supersedes: no decision D-17 in the log"),
    (("--supersedes=any text",), "supersedes: 'any text' is no decision id"),
    (("--supersedes=",), "supersedes: '' is no decision id"),
    ((f"--reverses=D-{BEGIN + 2}", "--status=decided"), None),
    ((f"--reverses=D-{BEGIN + 2}", "--status=mitigated"), "status: 'mitigated', but"),
    (("--reverses=D-1", "--mitigates=D-1"), "a decision does one of them"),
    (("--artefacts=a.md, fa788ce", "--risk-tags=untested,perf-risk"), None),
    (("--artefacts=—", "--risk-tags=none"), None),
    (("--artefacts=", "--risk-tags="), None),
    (("--artefacts=a\nb",), "artefacts: holds a line break"),
    (("--risk-tags=a\rb",), "risk_tags: holds a line break"),
    ((f"--artefacts={'x' * 2047}",), None),
    ((f"--artefacts={'x' * 2048}",), "artefacts: longer than 2047 bytes"),
    ((f"--risk-tags={'x' * 2048}",), "risk_tags: longer than 2047 bytes"),
    (("--chat-ref=live.chat:~L7",), None),
    (("--chat-ref=live.chat:~L7,live.chat:~L8",), None),
    (("--chat-ref=live.chat:~L99",), "ref: live.chat:~L99 is no message"),
    (("--chat-ref=lvie.chat:~L7",), "ref: lvie.chat:~L7 names no chat file"),
    (("--chat-ref=line 7",), "ref: 'line 7' is not <file>:~L<line>"),
    (("--as=sam",), None),
    (("--as=two words",), "--as: holds white space"),
]


def fields(door: str, before: tuple[str, ...], bad: int) -> Iterator[Row]:
    """A row for each way to give the fields of a decision."""
    for given, problem in FIELDS:
        base = SAID if not any(word.startswith("--chat-ref") for word in given) else WHO
        words = (*before, "L", "Go on", *base, *given)
        if problem is None:
            yield Row(door, words, 0, NEW)
        else:
            code = 1 if door == "nbs-scribe" and problem.startswith("--as") else bad
            yield Row(door, words, code, "", f"...{problem}")


LOGS = [
    *fields("nbs-scribe-log", (), 4),
    logs(("L", "Go on", *WHO), 0, NEW, NO_REF),
    logs(("L", "Go on", *WHO, "--chat-ref=—"), 0, NEW, NO_REF),
    logs(("L", "Go on", *SAID), 0, NEW, "...began the ledger ...", "nothing"),
    logs((".nbs/scribe/../scribe/log.md", "Go on", *SAID), 0, NEW),
    logs((*SAID, "L", "--", "--title that looks like an option"), 0, NEW),
    logs(("L", "-- a title", *SAID), 0, NEW),
    logs(("L", "Go on", *SAID, "--bus-dir=.nbs/events"), 0, NEW),
    logs(("L", "Go on", *SAID, "--bus-dir=.nbs/events/"), 0, NEW),
    logs(("L", "Go on", *SAID, "--bus-dir=.nbs/chat"), 1, "", "...no *.event, no processed/..."),
    logs(("L", "Go on", *SAID, "--bus-dir=nowhere"), 1, "", "...is no folder: make it first..."),
    logs(("L", "x" * 1023, *SAID), 0, NEW),
    logs(("L", "x" * 1024, *SAID), 4, "", "...title: longer than 1023 bytes"),
    logs(("L", "", *SAID), 4, "", "...title: empty"),
    logs(("L", "two\nlines", *SAID), 4, "", "...title: holds a line break"),
    logs(("L", "[SUPERSEDES D-1] x", *SAID), 4, "", "...a title must not begin with [SUPERSEDES"),
    logs(("L", "Go on", "--participants=ann"), 4, "", "...--rationale=... is missing"),
    logs(("L", "Go on", "--rationale=why"), 4, "", "...--participants=... is missing"),
    logs(("L", "Go on", "--participants=", "--rationale=why"), 4, "", "...--participants=... is"),
    logs(("L", "Go on", *WHO[:1], f"--rationale={'x' * 2048}"), 4, "", "...rationale: longer"),
    logs(("L", "Go on", *WHO[:1], "--rationale=a\nb"), 4, "", "...rationale: holds a line"),
    logs(("L", "Go on", f"--participants={'x' * 2048}", *WHO[1:]), 4, "", "...participants: long"),
    logs("L", 4, "", "...too few arguments...Usage: nbs-scribe-log"),
    logs((), 4, "", "...too few arguments...Usage: nbs-scribe-log"),
    logs(("L", "Go", "on", *SAID), 4, "", "...'on' is one too many"),
    logs(("L", "Go on", *SAID, "--risk-tag=x"), 4, "", "...no option --risk-tag"),
    logs(("L", "Go on", *SAID, "--as=ann", "--as=bob"), 4, "", "...--as is given twice"),
    logs((".nbs/scribe/live-log.md", "Go on", *SAID), 0, NEW),
    logs((".nbs/scribe/decisions.md", "Go on", *SAID), 0, NEW),
    logs((".nbs/scribe/notes.txt", "Go on", *SAID), 4, "", NO_NAME),
    logs(
        (".nbs/scribe/log-20200913-000000-archive.md", "Go on", *SAID),
        4,
        "",
        "...is the name of an archive, which never grows",
    ),
    logs((".nbs/log.md", "Go on", *SAID), 0, NEW),
    logs(("docs/decisions.md", "Go on", *SAID), 0, NEW),
    logs((".nbs/scribe", "Go on", *SAID), 4, "", NO_NAME),
    logs("--help", 0, "", LOG_USAGE),
    logs("-h", 0, "", LOG_USAGE),
    logs("L --help --nothing", 0, "", LOG_USAGE),
]

NONE = "...no decision fits"
ONE_NOW = f"{ONE}[reversed by D-{BEGIN + 1}]\n"
QUERIES = [
    asks("--chat=C files", 0, f"{ONE_NOW}\n{TWO}"),
    asks("--chat=C FILES", 0, f"{ONE_NOW}\n{TWO}"),
    asks("files --chat=C", 0, f"{ONE_NOW}\n{TWO}"),
    asks("--chat=C fil.s", 1, "", NONE),
    asks("--chat=C fil.s --regex", 0, f"{ONE_NOW}\n{TWO}"),
    asks(("--chat=C", "^- .*Status:.* (decided|reversed)$", "--regex"), 0, f"{ONE_NOW}\n{TWO}"),
    asks("--chat=C ( --regex", 4, "", "...'(' is no regular expression"),
    asks(("--chat=C", "--", "--count"), 1, "", NONE),
    asks(("--chat=C", "were slow"), 0, TWO),
    asks(("--chat=C", ""), 0, f"{ONE_NOW}\n{TWO}\n{THREE}"),
    asks(f"--chat=C --id=D-{BEGIN}", 0, ONE_NOW),
    asks("--chat=C --id=D-16", 1, "", NONE),
    asks(f"--chat=C --id={BEGIN}", 4, "", "...--id: '1600000000' is no decision id"),
    asks("--chat=C --id=", 4, "", "...--id: '' is no decision id"),
    asks("--chat=C --last=1", 0, THREE),
    asks("--chat=C --last=2", 0, f"{TWO}\n{THREE}"),
    asks("--chat=C --last=99", 0, f"{ONE_NOW}\n{TWO}\n{THREE}"),
    asks("--chat=C --last=0", 4, "", "...--last=0: no whole number from 1"),
    asks("--chat=C --last=x", 4, "", "...--last=x: no whole number"),
    asks("--chat=C --last", 4, "", "...--last takes a value"),
    asks("--chat=C --by=alex", 0, ONE_NOW),
    asks("--chat=C --by=al", 0, TWO),
    asks("--chat=C --by=ale", 1, "", NONE),
    asks("--chat=C --by=", 4, "", "...--by: "),
    asks(("--chat=C", "--by=al (a person)"), 1, "", NONE),
    asks("--chat=C --tag=scope", 0, TWO),
    asks("--chat=C --tag=untested", 0, THREE),
    asks("--chat=C --tag=perf", 1, "", NONE),
    asks("--chat=C --tag=", 4, "", "...--tag: empty"),
    asks("--chat=C --superseded", 0, TWO),
    asks("--chat=C --superseded", 1, "", NONE, "one"),
    asks("--chat=C --count", 0, "3\n"),
    asks("--chat=C --count", 0, "0\n", "...began the ledger ...", "original"),
    asks("--chat=C --last=1", 1, "", "...began the ledger ...no decision fits", "original"),
    asks("--chat=C files", 0, f"[log-20200913-000000-archive.md]\n{ONE_NOW}\n[log.md]\n{TWO}",
         "...began the ledger ...", "archives"),
    asks(f"--chat=C --id=D-{BEGIN}", 0, ONE_NOW, "...began the ledger ...", "archives"),
    asks("--chat=C --last=2", 0, f"{ONE_NOW}\n{TWO}", "...began the ledger ...", "archives"),
    asks("--chat=C --count", 0, "2\n", "...began the ledger ...", "archives"),
    asks("--chat=.nbs/chat/other.chat --count", 0, "3\n"),
    asks("--chat=C --count", 4, "", "...no decision log yet...", "empty"),
    asks("--chat=C files", 4, "", "...no decision log yet...", "empty"),
    asks("--chat=nowhere/live.chat --count", 4, "", "...nowhere is not there..."),
    asks("--chat=live.chat --count", 4, "", "...live.chat, and no decision log of its team..."),
    asks("--chat=.nbs/chat --count", 4, "", "...--chat=FILE is missing, or names no chat"),
    asks("--count", 4, "", "...--chat=FILE is missing"),
    asks("--chat=C", 4, "", "...one question at a time, not nothing"),
    asks("--chat=C files --count", 4, "", "...one question at a time, not count, text"),
    asks("--chat=C --by=al --tag=scope", 4, "", "...one question at a time, not by, tag"),
    asks("--chat=C --count --regex", 4, "", "...--regex says what PATTERN is"),
    asks("--chat=C files more", 4, "", "...'more' is one too many"),
    asks("--chat=C --handle=al", 4, "", "...no option --handle"),
    asks((), 4, "", QUERY_USAGE),
    asks("--help", 0, "", QUERY_USAGE),
    asks("--chat=C -h", 0, "", QUERY_USAGE),
]  # fmt: skip

NO_LOG = "...no decision log yet: `tripod scribe log` begins it"
MISSING = "...nowhere/scribe is not there..."
OPERATIONS = [
    *fields("nbs-scribe", ("log",), 3),
    does(("log", "L", "Go on", *SAID), 0, NEW, "...began the ledger ...", "nothing"),
    does(
        ("log", "L", "Go on", *SAID, "--bus-dir=.nbs/chat"),
        1,
        "",
        "...no *.event, no processed/...",
    ),
    does(("log", "L", "", *SAID), 3, "", "...title: empty"),
    does(("log", "L", "Go on", *WHO[:1]), 3, "", "...--rationale=... is missing"),
    does(("log", "L", "Go on", *WHO[1:]), 3, "", "...--participants=... is missing"),
    does(("log", "L"), 1, "", "...too few arguments...Usage: nbs-scribe log"),
    does(("log", "L", "Go on", *SAID, "--tag=x"), 1, "", "...no option --tag"),
    does(("log", ".nbs/log.md", "Go on", *SAID), 0, NEW),
    does("count docs/decisions.md", 2, "", "...no decision log is there..."),
    does("query L", 0, FIRST + SECOND + THIRD),
    does("query L files", 0, FIRST + SECOND),
    does(("query", "L", "files SLOW"), 0, SECOND),
    does(("query", "L", '"files were"'), 0, SECOND),
    does("query L --tag=scope", 0, SECOND),
    does("query L --tag=perf", 1, "", NONE),
    does("query L --status=decided", 1, "", NONE),
    does("query L --status=reversed", 0, f"{FIRST}{SECOND}"),
    does("query L --by=al", 0, SECOND),
    does("query L --artefact=fa788ce", 0, THIRD),
    does(f"query L --since={BEGIN + 1}", 0, SECOND + THIRD),
    does(f"query L --until={BEGIN}", 0, FIRST),
    does("query L --since=99s --until=1h", 1, "", NONE),
    does("query L files --by=al --tag=scope --status=reversed", 0, SECOND),
    does("query L nothing-of-it", 1, "", NONE),
    does("query L --since=soon", 1, "", "...--since: soon is no time"),
    does("query L a b", 1, "", "...'b' is one too many"),
    does("query L --last=1", 1, "", "...no option --last"),
    does("query L", 2, "", NO_LOG, "empty"),
    does("query nowhere/scribe/log.md", 2, "", MISSING),
    does("query", 1, "", "...too few arguments...Usage: nbs-scribe query"),
    does("count L", 0, "3\n"),
    does("count L", 0, "0\n", "...began the ledger ...", "original"),
    does("count L", 2, "", NO_LOG, "empty"),
    does("count nowhere/scribe/log.md", 2, "", MISSING),
    does("count .nbs/scribe/other.md", 2, "", "...no decision log other.md; the team's logs are"),
    does("count .nbs/scribe/other.txt", 1, "", NO_NAME),
    does("count", 1, "", "...too few arguments"),
    does("count L --last=1", 1, "", "...no option --last"),
    does("summary L", 0, FIRST + SECOND + THIRD),
    does("summary L --last=2", 0, SECOND + THIRD),
    does("summary L --last=0", 1, "", "...--last=0: no whole number from 1"),
    does("summary L --last=x", 1, "", "...--last=x: no whole number"),
    does("summary L", 2, "", NO_LOG, "empty"),
    does("summary nowhere/scribe/log.md", 2, "", MISSING),
    does("summary", 1, "", "...too few arguments"),
    does("help", 0, "", USAGE),
    does("--help", 0, "", USAGE),
    does("-h", 0, "", USAGE),
    does((), 1, "", "...which command? There are log, query, count, summary, help."),
    does("lgo L", 1, "", "...which command?"),
]
ROWS = [*LOGS, *QUERIES, *OPERATIONS]


def log_of_the_original(*entries: str) -> str:
    head = "# Decision Log\n\nCreated: 2020-09-13T12:26:40Z\nDecision count: 0\n\n---\n"
    return head + "".join(f"\n---\n\n{entry}" for entry in entries)


def make(project: Path, given: str, clock: Clock) -> None:
    """A team as a row wants it."""
    done = run(project, "init", "--project", "parser")
    assert done.code == 0, done.err
    run(project, "chat", "create", "live")
    for text in ("let us use files", "agreed"):
        run(project, "chat", "send", "live", "alex", text)
    one = ("-p", "alex", "-p", "claude", "--artefact", "docs/nbs-bus.md", "--ref")
    seven, eight = "live.chat:~L7", "live.chat:~L8"
    decisions: list[tuple[str, ...]] = [
        ("Use files", *one, seven, "-r", "Polling wastes context.", "--risk-tag", "scope-creep"),
        ("Sockets after all", "-p", "al", "--ref", seven, "-r", "Files were slow.",
         "--reverses", f"D-{BEGIN}", "--risk-tag", "scope"),
        ("Cap the input", "-p", "alexa", "--ref", eight, "-r", "4 KB are enough.",
         "--status", "accepted-risk", "--artefact", "fa788ce", "--risk-tag", "perf-risk",
         "--risk-tag", "untested"),
    ]  # fmt: skip
    many = {"log": 3, "one": 1}.get(given, 0)
    for words in decisions[:many]:
        assert run(project, "scribe", "log", *words).code == 0
        clock.move(1)
    if given in ("nothing", "original", "archives"):
        for path in [*(project / ".nbs").glob("ledger.db*"), project / ".nbs/counts.json"]:
            path.unlink()
    texts = {
        "original": {"log.md": log_of_the_original()},
        "archives": {
            "log-20200913-000000-archive.md": log_of_the_original(ONE),
            "log.md": log_of_the_original(TWO),
        },
    }
    for name, text in texts.get(given, {}).items():
        (project / ".nbs/scribe" / name).write_text(text, "utf-8")


@pytest.fixture(scope="module")
def teams() -> Iterator[dict[str, Path]]:
    with folder() as root:
        made = {}
        for given in sorted({one.given for one in ROWS}):
            clock = Clock()
            with clock.running():
                made[given] = root / given
                made[given].mkdir()
                make(made[given], given, clock)
        yield made


def told(project: Path, one: Row) -> Done:
    stand_for = {"L": LOG}
    words = [stand_for.get(word, word).replace("--chat=C", f"--chat={CHAT}") for word in one.words]
    with Clock(BEGIN + 100).running():
        return run_as(one.door, project, *words)


@pytest.mark.parametrize("one", ROWS, ids=lambda one: f"{one.door} {' '.join(one.words)[:60]}")
def test_each_row(teams: dict[str, Path], tmp_path: Path, one: Row) -> None:
    project = tmp_path / "team"
    shutil.copytree(teams[one.given], project)
    begun = (project / ".nbs/ledger.db").exists()
    before = state(project) if begun else None
    done = told(project, one)
    assert (done.code, fits(one.out.rstrip("\n"), done.out.decode())) == (one.code, True), done
    assert fits(f"{one.err}..." if one.err else "", done.err), done
    assert (done.err == "") == (one.err == "")
    if done.code and before is not None:
        assert state(project) == before


def test_every_command_and_option_has_its_rows() -> None:
    for door, usage in (
        ("nbs-scribe", USAGE),
        ("nbs-scribe-log", LOG_USAGE),
        ("nbs-scribe-query", QUERY_USAGE),
    ):
        words = {word for one in ROWS if one.door == door for word in one.words}
        for option in re.findall(r"--[a-z-]+", usage):
            assert any(word.startswith(option) for word in words), (door, option)
    assert {f"--{name}" for name in OPTIONS} <= set(re.findall("--[a-z-]+", USAGE))
    codes = {door: {one.code for one in ROWS if one.door == door} for door in ("nbs-scribe",)}
    assert codes["nbs-scribe"] == {0, 1, 2, 3}
    assert {one.code for one in LOGS} == {0, 1, 4}
    assert {one.code for one in QUERIES} == {0, 1, 4}
    assert {one.words[0] for one in OPERATIONS if one.words} >= {
        verb.name for verb in PROGRAMS[0].verbs
    }


def test_the_programs_say_the_same_as_processes(teams: dict[str, Path], tmp_path: Path) -> None:
    project = tmp_path / "team"
    shutil.copytree(teams["log"], project)
    for name, words, code in (
        ("nbs-scribe", ("count", LOG), 0),
        ("nbs-scribe-log", (LOG,), 4),
        ("nbs-scribe-query", (f"--chat={CHAT}", "--last=1"), 0),
    ):
        program = Path(sys.executable).with_name(name)
        done = subprocess.run(
            [program, *words], cwd=project, capture_output=True, timeout=60, check=False
        )
        again = run_as(name, project, *words)
        assert (done.returncode, done.stdout) == (code, again.out)
        assert done.stderr.decode() == again.err


# Where the log is, and who logs ----------------------------------------------------------------


def test_a_whole_new_team_is_made(tmp_path: Path) -> None:
    done = run_as("nbs-scribe-log", tmp_path, LOG, "Begin", *WHO)
    assert done.code == 0
    assert re.match(r"tripod: began the ledger \S+/.nbs/ledger.db\n", done.err), done.err
    text = (tmp_path / LOG).read_text()
    assert text.startswith(f"# Decision Log\n\nProject: {tmp_path.name}\nCreated: ")
    assert text.count("### D-") == 1
    assert len(list((tmp_path / ".nbs/events").glob("*-scribe-decision-logged-*.event"))) == 1


def test_bad_arguments_begin_nothing(tmp_path: Path) -> None:
    assert run_as("nbs-scribe-log", tmp_path, LOG, "", *WHO).code == 4
    assert run_as("nbs-scribe", tmp_path, "log", LOG, "T", "--participants=a").code == 3
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_the_log_is_the_log(teams: dict[str, Path], tmp_path: Path) -> None:
    project = tmp_path / "team"
    shutil.copytree(teams["log"], project)
    link = project / ".nbs/scribe/live-log.md"
    link.symlink_to("log.md")
    assert run_as("nbs-scribe-log", project, str(link), "By the old name", *SAID).code == 0
    assert run_as("nbs-scribe", project, "count", str(link)).out == b"4\n"


def test_a_link_to_a_chat_is_the_chat(teams: dict[str, Path], tmp_path: Path) -> None:
    project = tmp_path / "team"
    shutil.copytree(teams["log"], project)
    (project / "talk.chat").symlink_to(CHAT)
    assert run_as("nbs-scribe-query", project, "--chat=talk.chat", "--count") == (0, b"3\n", "")


@pytest.mark.parametrize("name", ["alex (a person)", "Ann Lee"])
def test_a_participant_that_stands_in_the_log_can_be_asked_for(
    teams: dict[str, Path], tmp_path: Path, name: str
) -> None:
    project = tmp_path / "team"
    shutil.copytree(teams["log"], project)
    words = (f"--participants=cy, {name}", *SAID[1:])
    assert run_as("nbs-scribe-log", project, LOG, "Ask a person", *words).code == 0
    for done in (
        run_as("nbs-scribe-query", project, f"--chat={CHAT}", f"--by={name}"),
        run_as("nbs-scribe", project, "query", LOG, f"--by={name}"),
    ):
        assert (done.code, done.err) == (0, "")
        assert b"Ask a person" in done.out


def test_the_advice_of_the_missing_reference_names_no_option_of_another_door(
    tmp_path: Path,
) -> None:
    done = run_as("nbs-scribe-log", tmp_path, LOG, "Begin", *WHO)
    assert "no chat ref" in done.err
    assert not set(re.findall(r"--[a-z-]+", done.err)) - {f"--{name}" for name in OPTIONS}


def test_events_elsewhere_are_recorded_when_the_ledger_begins(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    done = run_as("nbs-scribe-log", tmp_path, LOG, "Begin", *WHO, "--bus-dir=bus")
    assert done.code == 0, done.err
    assert len(list((tmp_path / "bus").glob("*-scribe-decision-logged-*.event"))) == 1
    assert run_as("nbs-scribe-log", tmp_path, LOG, "On", *WHO, "--bus-dir=bus").code == 0
    assert run_as("nbs-scribe-log", tmp_path, LOG, "On", *WHO).code == 0
    assert len(list((tmp_path / "bus").glob("*-scribe-decision-logged-*.event"))) == 3


def test_the_variable_places_the_ledger(
    teams: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "team"
    shutil.copytree(teams["log"], project)
    monkeypatch.setenv(LEDGER, str(project / ".nbs"))
    assert run_as("nbs-scribe", project, "count", LOG).out == b"3\n"
    monkeypatch.setenv(LEDGER, str(project / ".nbs/ledger.db"))
    assert run_as("nbs-scribe-query", project, f"--chat={CHAT}", "--count").out == b"3\n"
    monkeypatch.setenv(LEDGER, str(tmp_path / "other"))
    assert run_as("nbs-scribe-log", project, LOG, "T", *WHO).code == 0
    assert run_as("nbs-scribe", project, "count", LOG).out == b"4\n"
    assert not (tmp_path / "other/scribe/log.md").exists()
    inside = str(tmp_path / "other/scribe/log.md")
    assert run_as("nbs-scribe-log", project, inside, "T", *WHO).code == 0
    assert (tmp_path / "other/ledger.db").exists()


@pytest.mark.parametrize(
    ("words", "handle", "actor"),
    [((), None, "scribe"), ((), "bob", "bob"), (("--as=sam",), "bob", "sam")],
)
def test_who_logs_is_recorded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    handle: str | None,
    actor: str,
) -> None:
    if handle is not None:
        monkeypatch.setenv("NBS_HANDLE", handle)
    assert run_as("nbs-scribe-log", tmp_path, LOG, "T", *WHO, *words).code == 0
    done = run(tmp_path, "show", "--last", "3", "--json")
    assert f'"actor": "{actor}"'.encode() in done.out
