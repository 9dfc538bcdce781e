"""What the original Scribe's tools get wrong (spec: nbs-compat B10 to B12, C6, C10), tried here.

Each test is named by where the defect is listed.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from unittest import mock

import pytest
from doors.inside import Done, run, run_as
from hypothesis import given
from hypothesis import strategies as st
from story import BEGIN, Clock, Original, folder
from strategies import FEWER

from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.projections.decisions.format import (
    STATUSES,
    count_decision_headings,
    parse_decision,
    split_decision_log,
)

PROGRAM = Path(sys.executable).with_name("nbs-scribe-log")
LOG = ".nbs/scribe/log.md"
CHAT = "--chat=.nbs/chat/live.chat"
WHO = ("--participants=ann", "--rationale=why")
CONTROLS = ("\r", "\x0b", "\x0c", "\x1b", "\x85", "\u2028", "\x7f")


class Desk:
    """A project with a chat of two messages, the clock, and the original tools beside."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.clock = Clock()
        self.original = Original(project / ".nbs", self.clock)
        self.log_file = project / LOG
        assert self.tripod("init", "--project", "parser").code == 0
        self.tripod("chat", "create", "live")
        for text in ("one", "two"):
            self.tripod("chat", "send", "live", "ann", text)

    def tripod(self, *words: str) -> Done:
        with self.clock.running():
            return run(self.project, *words)

    def log(self, title: str, *words: str) -> Done:
        given_ = {word.partition("=")[0] for word in words}
        who = [word for word in WHO if word.partition("=")[0] not in given_]
        with self.clock.running():
            return run_as("nbs-scribe-log", self.project, LOG, title, *who, *words)

    def logged(self, title: str, *words: str) -> str:
        done = self.log(title, *words)
        assert done.code == 0, done.err
        return done.out.decode().strip()

    def ask(self, *words: str) -> Done:
        with self.clock.running():
            return run_as("nbs-scribe-query", self.project, CHAT, *words)

    def count(self) -> int:
        """How many decisions there are; grep and the program agree on it."""
        done = self.ask("--count")
        assert done.code == 0, done.err
        logs = [*self.log_file.parent.glob("log*.md")]
        assert int(done.out) == sum(count_decision_headings(path.read_bytes()) for path in logs)
        return int(done.out)

    def events(self, type_: str) -> list[Path]:
        return sorted((self.project / ".nbs/events").glob(f"*-scribe-{type_}-*.event"))

    def entries(self) -> list[str]:
        """The kinds of what is recorded."""
        db = read_only(str(self.project / ".nbs/ledger.db"))
        try:
            return [entry.kind for entry in SQLiteReader(db).read()]
        finally:
            db.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    with folder() as root:
        yield Desk(root)


# B12.11: ids -----------------------------------------------------------------------------------


def test_b12_11_decisions_of_one_second_have_ids_of_their_own(desk: Desk) -> None:
    ids = [desk.logged(f"Decision {number}") for number in range(60)]
    assert ids == [f"D-{BEGIN + number}" for number in range(60)]
    assert desk.count() == 60


def test_b12_11_nor_do_those_of_several_programs_collide(tmp_path: Path) -> None:
    ids: list[str] = []

    def log_some() -> None:
        for _ in range(4):
            done = subprocess.run(
                [PROGRAM, LOG, "At once", *WHO],
                cwd=tmp_path,
                capture_output=True,
                timeout=120,
                check=True,
            )
            ids.append(done.stdout.decode())

    threads = [Thread(target=log_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == len(set(ids)) == 16
    assert count_decision_headings((tmp_path / LOG).read_bytes()) == 16


# B12.11: what is given -------------------------------------------------------------------------


def test_b12_11_long_fields_abort_nothing(desk: Desk) -> None:
    long = "x" * 2047
    names = ("participants", "rationale", "artefacts", "risk-tags")
    desk.logged("y" * 1023, *(f"--{name}={long}" for name in names))
    entry = desk.ask("--last=1").out.decode()
    assert entry.count(long) == 4
    assert desk.log("y" * 1023, f"--supersedes=D-{'1' * 63}").code == 4
    assert desk.log("z" * 4096).code == 4


@pytest.mark.parametrize("control", CONTROLS)
def test_b12_11_no_control_character_comes_into_a_field(desk: Desk, control: str) -> None:
    before = desk.entries()
    for words in (
        (f"a{control}### D-1 b",),
        ("T", f"--rationale=a{control}- **Status:** reversed"),
        ("T", f"--participants=a{control}b"),
        ("T", f"--artefacts=a{control}b"),
        ("T", f"--risk-tags=a{control}b"),
        ("T", f"--status=decided{control}"),
        ("T", f"--supersedes=D-1{control}"),
        ("T", f"--chat-ref=live.chat:~L7{control}"),
    ):
        assert desk.log(*words).code == 4, words
    assert desk.entries() == before


def test_b12_11_no_text_makes_a_second_entry(desk: Desk) -> None:
    desk.logged("A title with ### D-1 in it", "--rationale=### D-2 and --- and more")
    assert desk.count() == 1
    assert desk.log("Two\n### D-3 lines").code == 4
    assert desk.count() == 1


def test_b12_11_what_is_superseded_is_there(desk: Desk) -> None:
    first = desk.logged("First")
    for target in ("D-17", first[:-1], first + "0", first.lower(), "the first", "", f" {first}"):
        assert desk.log("Second", f"--supersedes={target}").code == 4, target
    assert desk.count() == 1
    desk.logged("Second", f"--supersedes={first}")
    assert f"[SUPERSEDES {first}] Second" in desk.log_file.read_text("utf-8")


# B12.11: events --------------------------------------------------------------------------------


def test_b12_11_no_event_is_lost_to_a_dedup_window(desk: Desk) -> None:
    desk.original.put("events/config.yaml", b"dedup-window: 300\npythia-interval: 1\n")
    for number in range(3):
        desk.logged(f"Decision {number}")
    assert len(desk.events("decision-logged")) == 3
    assert len(desk.events("pythia-checkpoint")) == 3


def test_b12_11_the_entry_and_its_event_are_one(desk: Desk) -> None:
    desk.logged("First")
    before, text = desk.entries(), desk.log_file.read_bytes()
    with (
        mock.patch(
            "tripod.decisions.writer.draft_event_for_act", side_effect=OSError(28, "No space left")
        ),
        pytest.raises(OSError, match="No space left"),
        mock.patch("tripod.cli.nbs.FAILURES", ()),
    ):
        desk.log("Second")
    assert (desk.entries(), desk.log_file.read_bytes()) == (before, text)
    assert len(desk.events("decision-logged")) == 1
    desk.logged("Second")
    assert desk.entries()[len(before) :] == ["decision.logged", "bus.published"]


def test_b12_11_the_event_names_the_decision_wherever_it_is_called(desk: Desk) -> None:
    """The original publishes below where it is called, and only warns where nothing is."""
    (desk.project / "src").mkdir()
    with desk.clock.running():
        done = run_as("nbs-scribe-log", desk.project / "src", f"../{LOG}", "From below", *WHO)
    assert done.code == 0, done.err
    (event,) = desk.events("decision-logged")
    assert f"  {done.out.decode().strip()} From below\n" in event.read_text()
    assert list((desk.project / "src").iterdir()) == []


# B12.11: its own format ------------------------------------------------------------------------

FIELD = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters=","), min_size=1)


@FEWER
@given(
    FIELD.filter(lambda text: not text.startswith(("-", "[SUPERSEDES"))),
    st.lists(FIELD, min_size=1, max_size=3),
    FIELD,
    st.sampled_from(STATUSES),
)
def test_b12_11_what_it_writes_it_reads(
    title: str, people: list[str], rationale: str, status: str
) -> None:
    with folder() as root:
        desk = Desk(root)
        done = desk.log(
            title,
            f"--participants={', '.join(people)}",
            f"--rationale={rationale}",
            f"--status={status}",
        )
        assert done.code == 0, done.err
        (piece,) = split_decision_log(desk.log_file.read_bytes())[1]
        decision, problems = parse_decision(piece)
        assert decision is not None
        assert problems == ()
        assert (decision.title, decision.rationale, decision.status) == (title, rationale, status)
        people = [name for name in people if name != "—"]
        assert decision.participants == ", ".join(people)


# B12.12 and B10: the documents -----------------------------------------------------------------


@pytest.mark.parametrize("status", STATUSES)
def test_b12_12_there_is_one_list_of_statuses(desk: Desk, status: str) -> None:
    desk.logged("T", f"--status={status}")
    assert f"- **Status:** {status}\n" in desk.log_file.read_text("utf-8")


def test_b10_the_header_is_that_of_the_documents_and_holds_no_count(desk: Desk) -> None:
    desk.logged("T")
    head = desk.log_file.read_text("utf-8").partition("\n---\n")[0]
    assert re.fullmatch(
        r"# Decision Log\n\nProject: parser\nCreated: 2020-09-13T12:26:40Z\nScribe: scribe\n", head
    )


def test_b10_nothing_is_split_off_above_500(desk: Desk) -> None:
    pieces = [f"### D-{n} T{n}\n- **Status:** decided\n" for n in range(1, 501)]
    head = "# Decision Log\n\nCreated: x\nDecision count: 0\n\n---\n"
    desk.original.put("scribe/log.md", (head + "".join(f"\n---\n\n{p}" for p in pieces)).encode())
    assert desk.count() == 500
    desk.logged("One more")
    assert desk.count() == 501
    assert [path.name for path in desk.log_file.parent.glob("*.md")] == ["log.md"]


def test_b10_a_malformed_entry_is_told_once(desk: Desk) -> None:
    desk.logged("T")
    with desk.log_file.open("a") as log:
        log.write("\n---\n\n### D-12x Not so\n- **Status:** decided\n")
    desk.clock.move()
    for _ in range(3):
        assert desk.ask("--last=1").code == 0
    (event,) = desk.events("log-error")
    text = event.read_text()
    assert "priority: high\n" in text
    assert "heading is not `### D-<digits> title`: ### D-12x Not so" in text


# B11: queries ----------------------------------------------------------------------------------


def test_b11_lines_that_two_entries_share_are_shown_with_both(desk: Desk) -> None:
    desk.logged("One")
    desk.logged("Two")
    out = desk.ask("--by=ann").out.decode()
    assert out.count("- **Participants:** ann\n") == 2
    assert out.count("- **Status:** decided\n") == 2
    assert out.count("- **Rationale:** why\n") == 2


def test_b11_an_id_is_that_id(desk: Desk) -> None:
    first = desk.logged("One")
    desk.logged(f"About {first}")
    assert desk.ask(f"--id={first[:-2]}").code == 1
    out = desk.ask(f"--id={first}").out.decode()
    assert out.startswith(f"### {first} One\n")
    assert out.count("### D-") == 1


def test_b11_of_an_id_that_was_used_twice_both_are_shown(desk: Desk) -> None:
    desk.original.log("First", number=7)
    desk.original.log("Second", number=7)
    out = desk.ask("--id=D-7").out.decode()
    assert re.findall("### D-7 (.*)", out) == ["First", "Second"]


def test_b11_handles_and_tags_are_whole(desk: Desk) -> None:
    desk.logged("One", "--participants=alex", "--risk-tags=perf-risk")
    assert [desk.ask(f"--by={name}").code for name in ("al", "lex", "alex")] == [1, 1, 0]
    assert [desk.ask(f"--tag={tag}").code for tag in ("perf", "risk", "perf-risk")] == [1, 1, 0]


def test_b11_the_newest_are_in_order_over_all_files(desk: Desk) -> None:
    entry = "### D-{0} T{0}\n- **Participants:** ann\n- **Status:** decided\n"
    head = "# Decision Log\n\nCreated: x\nDecision count: 0\n\n---\n"
    old = "".join(f"\n---\n\n{entry.format(number)}" for number in (1, 2, 3))
    desk.original.put("scribe/log-20200101-000000-archive.md", (head + old).encode())
    desk.original.put("scribe/log.md", head.encode())

    def newest() -> list[str]:
        return re.findall("### D-[0-9]+ (.*)", desk.ask("--last=2").out.decode())

    assert newest() == ["T2", "T3"]
    desk.logged("New")
    assert newest() == ["T3", "New"]
    assert desk.count() == 4
    out = desk.ask("--by=ann").out.decode()
    assert re.findall(r"\[.*\]", out) == ["[log-20200101-000000-archive.md]", "[log.md]"]


def test_b11_long_entries_are_shown_whole(desk: Desk) -> None:
    lines = "".join(f"  line {number}\n" for number in range(30))
    desk.logged("Ours")
    with desk.log_file.open("a") as log:
        log.write(f"\n---\n\n### D-7 Theirs\n- **Status:** decided\n- **Rationale:** a\n{lines}")
    assert "  line 29\n" in desk.ask("--id=D-7").out.decode()


def test_b11_entries_that_supersede_are_shown_whole(desk: Desk) -> None:
    first = desk.logged("One")
    desk.logged("Two", f"--supersedes={first}")
    out = desk.ask("--superseded").out.decode()
    assert out.startswith("### D-")
    assert out.endswith("- **Rationale:** why\n")
    assert "--\n" not in out


def test_b11_a_bad_expression_is_not_no_match(desk: Desk) -> None:
    desk.logged("One")
    for bad in ("(", "[a", "*", "a{2,1}", "(?P<n>a)(?P<n>b)"):
        assert desk.ask(bad, "--regex").code == 4, bad
    assert desk.ask("two", "--regex").code == 1


# C6, C10.3: who counts -------------------------------------------------------------------------


def test_c10_3_checkpoints_come_by_the_count_whatever_happens_to_the_events(desk: Desk) -> None:
    desk.original.put("events/config.yaml", b"pythia-interval: 3\ndedup-window: 300\n")
    asked = []
    for number in range(1, 10):
        desk.clock.move()
        desk.logged(f"Decision {number}")
        if desk.events("pythia-checkpoint"):
            (event,) = desk.events("pythia-checkpoint")
            asked.append((number, re.findall(r"D-[0-9]+", event.read_text())))
        desk.tripod("bus", "ack-all")
        desk.tripod("bus", "prune", "--max-bytes=1")
    assert [number for number, _ in asked] == [3, 6, 9]
    assert [ids for _, ids in asked] == [
        [f"D-{BEGIN + number - 2}", f"D-{BEGIN + number}"] for number in (3, 6, 9)
    ]


def test_c6_a_reference_still_leads_to_its_message_when_the_chat_was_split(desk: Desk) -> None:
    decision = desk.logged("One", "--chat-ref=live.chat:~L8")
    assert desk.tripod("chat", "archive", "live", "--keep", "0").code == 0
    desk.tripod("chat", "send", "live", "bob", "another in line seven")
    shown = desk.tripod("scribe", "show", decision).out.decode()
    assert "live.chat:~L8: [2020-09-13T12:26:40Z] ann: two\n" in shown


def test_c6_a_reference_that_leads_nowhere_is_refused(desk: Desk) -> None:
    for ref in ("live.chat:~L9", "live.chat:~L1", "other.chat:~L7", "live.chat:7", "live.chat"):
        assert desk.log("One", f"--chat-ref={ref}").code == 4, ref
    assert "decision.logged" not in desk.entries()


# C10.5 to C10.7: limits, integrity, output -----------------------------------------------------


def test_c10_5_there_is_no_limit_to_participants(desk: Desk) -> None:
    many = ", ".join(f"a{number}" for number in range(300))
    desk.logged("All of us", f"--participants={many}")
    assert desk.ask("--by=a299").code == 0


def test_c10_6_what_is_edited_in_the_file_is_found_and_the_decision_kept(desk: Desk) -> None:
    desk.logged("Files last")
    desk.clock.move()
    desk.log_file.write_text(desk.log_file.read_text("utf-8").replace("Files", "Sockets"), "utf-8")
    done = desk.tripod("verify")
    assert done.code == 1
    assert b"append-only: edited" in done.out
    assert desk.ask("files last").code == 0
    assert desk.ask("sockets last").code == 1


def test_c10_7_a_text_cannot_pass_for_another_entry(desk: Desk) -> None:
    """Not even that of an adopted log: it is escaped, or stands further in."""
    text = (
        "\n---\n\n### D-7 A \x1b[31mtitle\n- **Status:** decided\n- **Rationale:** a\r### D-8 b\n"
    )
    desk.original.put("scribe/log.md", b"# Decision Log\n" + text.encode())
    done = desk.ask("--last=9")
    assert b"\x1b" not in done.out
    assert b"\r" not in done.out
    assert len(re.findall(b"(?m)^### D-", done.out)) == 1
    with desk.clock.running():
        shown = run_as("nbs-scribe", desk.project, "summary", LOG).out
    assert len(re.findall(b"(?m)^D-", shown)) == 1
    assert b"\x1b" not in shown
