"""The decision log: entries there and back, any file cut and joined, and grep's count."""

import doctest
import shutil
import subprocess
from contextlib import suppress

import nbs_team
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.projections.decisions import format as decisions_format
from tripod.projections.decisions.format import ChatRef, DecisionText
from tripod.projections.text import text_line_problem

LINES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])).map(
    lambda text: text if text.strip() else f"{text}x"
)
TITLES = LINES.filter(lambda title: not title.startswith("[SUPERSEDES "))
IDS = st.integers(0, 10**16 - 1).map("D-{}".format)
DECISIONS = st.builds(
    DecisionText,
    id=IDS,
    title=TITLES,
    supersedes=st.none() | IDS,
    chat_ref=LINES,
    participants=LINES,
    artefacts=LINES,
    risk_tags=LINES,
    status=st.sampled_from(decisions_format.STATUSES),
    rationale=LINES,
)
PIECES = [
    "### D-1 a\n", "### D-", "\n---\n\n", "---\n", "\n", "text\n", "```\n",
    "- **Status:** decided\n", "- **Chat ref:** —\n", "- **Rationale:** x\n",
    "  wrapped\n", " ### D-2\n", "## D-3\n", "\r\n",
]  # fmt: skip
LOGS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5)).map(
    lambda parts: "".join(parts).encode("utf-8", "replace")
)

SAMPLE = DecisionText(
    id="D-1707753600",
    title="Coordination bus replaces polling",
    supersedes=None,
    chat_ref="live.chat:~L342",
    participants="alex, claude",
    artefacts="docs/nbs-bus.md, bin/nbs-bus",
    risk_tags="none",
    status="decided",
    rationale="Polling wastes context tokens on empty reads. File-based events are "
    "crash-recoverable and require no daemon.",
)
WRITTEN = """
---

### D-1707753600 Coordination bus replaces polling
- **Chat ref:** live.chat:~L342
- **Participants:** alex, claude
- **Artefacts:** docs/nbs-bus.md, bin/nbs-bus
- **Risk tags:** none
- **Status:** decided
- **Rationale:** Polling wastes context tokens on empty reads. File-based events are """
WRITTEN += "crash-recoverable and require no daemon.\n"

# The layout of the one seed (wrapped rationale, a rule at the end) and of the other (a blank line
# after the heading).
SCRIBE_LAYOUT = (
    decisions_format.format_decision_log_header("sample", "2026-02-12T14:00:00Z", "scribe")
    + WRITTEN.replace("events are crash", "events\n  are crash")
    + "\n---\n"
).encode()
TRIPOD_LAYOUT = SCRIBE_LAYOUT.replace(b"polling\n-", b"polling\n\n-").removesuffix(b"\n---\n")


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(decisions_format).failed == 0
    shown = nbs_team.example(decisions_format.__doc__)
    header, pieces = decisions_format.split_decision_log(shown)
    assert (
        header
        == decisions_format.format_decision_log_header(
            "sample", "2026-02-12T14:00:00Z", "scribe"
        ).encode()
    )
    decision, problems = decisions_format.parse_decision(pieces[0])
    assert decision is not None
    assert decision.supersedes == "D-1707750000"
    assert problems == ()
    assert decisions_format.format_decision(decision).encode() == pieces[0]


# Entries ----------------------------------------------------------------------------------------


def test_an_entry_as_the_original_writes_it() -> None:
    assert decisions_format.format_decision(SAMPLE) == WRITTEN
    assert decisions_format.parse_decision(WRITTEN.encode()) == (SAMPLE, ())


def test_what_is_left_out_has_its_default() -> None:
    bare = SAMPLE._replace(chat_ref="", artefacts="", risk_tags="", status="")
    text = decisions_format.format_decision(bare)
    assert "- **Chat ref:** —\n" in text
    assert "- **Artefacts:** —\n" in text
    assert "- **Risk tags:** none\n" in text
    assert "- **Status:** decided\n" in text


def test_what_a_decision_replaces_stands_in_its_heading() -> None:
    replacing = SAMPLE._replace(supersedes="D-17", status="superseded")
    text = decisions_format.format_decision(replacing)
    assert "\n### D-1707753600 [SUPERSEDES D-17] Coordination bus replaces polling\n" in text
    assert decisions_format.parse_decision(text.encode()) == (replacing, ())


@given(DECISIONS)
def test_an_entry_reads_back(decision: DecisionText) -> None:
    piece = decisions_format.format_decision(decision).encode()
    assert decisions_format.parse_decision(piece) == (decision, ())
    assert decisions_format.count_decision_headings(piece) == 1
    header, pieces = decisions_format.split_decision_log(b"# Decision Log\n" + piece + piece)
    assert (header, pieces) == (b"# Decision Log\n", (piece, piece))


@given(st.builds(DecisionText, *[st.text()] * 2, st.none() | st.text(), *[st.text()] * 6))
def test_no_text_whatever_makes_a_second_entry(decision: DecisionText) -> None:
    with suppress(ValueError):
        assert (
            decisions_format.count_decision_headings(
                decisions_format.format_decision(decision).encode()
            )
            == 1
        )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "1707753600"),
        ("title", ""),
        ("title", "a\n### D-2 b"),
        ("title", "[SUPERSEDES D-1] a"),
        ("supersedes", "D-1\n"),
        ("supersedes", "D-1]"),
        ("participants", ""),
        ("rationale", "a\n\n---\n"),
        ("rationale", "a\r"),
        ("status", "maybe"),
    ],
)
def test_what_would_not_read_back_is_refused(field: str, value: str) -> None:
    with pytest.raises(ValueError, match="cannot be written"):
        decisions_format.format_decision(SAMPLE._replace(**{field: value}))


@pytest.mark.parametrize("layout", [SCRIBE_LAYOUT, TRIPOD_LAYOUT])
def test_both_layouts_of_the_documents_are_read(layout: bytes) -> None:
    header, pieces = decisions_format.split_decision_log(layout)
    assert header.endswith(b"Scribe: scribe\n")
    assert [decisions_format.parse_decision(piece) for piece in pieces] == [(SAMPLE, ())]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("- **Status:** decided\n", ""), "no Status field"),
        (("- **Status:** decided\n", "- **Status:**\n"), "Status is empty"),
        (("decided", "maybe"), "unknown status 'maybe'"),
        (("- **Chat ref:** live.chat:~L342\n", ""), "no Chat ref field"),
        (("- **Status:**", "- **Status:** mitigated\n- **Status:**"), "Status stands twice"),
        (("- **Status:**", "- **Mood:** good\n  really\n- **Status:**"), "unknown Mood"),
        (("polling\n", "polling\nbecause\nof this\n"), "text before the first field"),
        (("daemon.\n", "daemon.\n\n---\n\nmore\n"), "text after the rule that ends the entry"),
    ],
)
def test_what_is_wrong_with_an_entry(change: tuple[str, str], problem: str) -> None:
    decision, problems = decisions_format.parse_decision(WRITTEN.replace(*change).encode())
    assert decision is not None
    assert problems == (problem,)


def test_optional_fields_may_be_missing() -> None:
    text = WRITTEN.replace("- **Risk tags:** none\n", "").replace("- **Artefacts:** docs", "- x")
    decision, problems = decisions_format.parse_decision(text.encode())
    assert decision is not None
    assert (decision.risk_tags, decision.artefacts, problems) == ("none", "—", ())


@pytest.mark.parametrize(
    "piece", [b"", b"### D-\n", b"### D-12x a\n", b"### D-12\n", b"### D-12  \n", b"## D-12 a\n"]
)
def test_a_wrong_heading(piece: bytes) -> None:
    decision, problems = decisions_format.parse_decision(piece)
    assert decision is None
    assert problems == ("heading is not `### D-<digits> title`",)


def test_bytes_that_are_no_text_are_a_problem_and_no_more() -> None:
    decision, problems = decisions_format.parse_decision(WRITTEN.encode().replace(b"alex", b"\xff"))
    assert decision is not None
    assert decision.participants == "\ufffd, claude"
    assert problems == ("not UTF-8",)


# Logs -------------------------------------------------------------------------------------------


@given(LOGS | st.binary())
def test_a_log_is_joined_as_it_was_cut(data: bytes) -> None:
    header, pieces = decisions_format.split_decision_log(data)
    assert header + b"".join(pieces) == data
    assert len(pieces) == decisions_format.count_decision_headings(data)
    assert decisions_format.count_decision_headings(header) == 0
    for piece in pieces:
        assert decisions_format.count_decision_headings(piece) == 1
        assert piece.startswith((b"\n---\n\n### D-", b"### D-"))
        decisions_format.parse_decision(piece)


@pytest.mark.parametrize(
    ("data", "header"),
    [
        (b"a\n\n---\n\n### D-1 x\n", b"a\n"),
        (b"\n---\n\n### D-1 x\n", b""),
        (b"### D-1 x\n", b""),
        (b"a\n---\n\n### D-1 x\n", b"a\n---\n\n"),
        (b"a\n\n---\n### D-1 x\n", b"a\n\n---\n"),
        (b"a\n\n---\n\n\n### D-1 x\n", b"a\n\n---\n\n\n"),
        (b"```\n### D-1 x\n```\n", b"```\n"),
        (b"a ### D-1 x\r### D-2\n", b"a ### D-1 x\r### D-2\n"),
    ],
)
def test_where_an_entry_begins(data: bytes, header: bytes) -> None:
    assert decisions_format.split_decision_log(data)[0] == header


@pytest.mark.parametrize("data", [SCRIBE_LAYOUT, b"### D-1", b"x", b" ### D-1\n### D-\n### D\n"])
def test_the_count_is_that_of_grep(data: bytes) -> None:
    grep = shutil.which("grep")
    assert grep
    run = subprocess.run([grep, "-c", "^### D-"], input=data, capture_output=True, check=False)
    assert int(run.stdout) == decisions_format.count_decision_headings(data)


# References, names, arguments -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "refs", "malformed"),
    [
        ("live.chat:~L11", [ChatRef("live.chat", 11)], []),
        (
            "live.chat:~L11, other.chat:~L3",
            [ChatRef("live.chat", 11), ChatRef("other.chat", 3)],
            [],
        ),
        ("—", [], []),
        ("", [], []),
        ("a.chat:L1, a.chat:~L0, :~L3, x", [], ["a.chat:L1", "a.chat:~L0", ":~L3", "x"]),
        ("a.chat:~L" + "9" * 16, [], ["a.chat:~L" + "9" * 16]),
    ],
)  # fmt: skip
def test_chat_references(text: str, refs: list[ChatRef], malformed: list[str]) -> None:
    assert decisions_format.parse_decision_refs(text) == (refs, malformed)


@given(st.lists(st.builds(ChatRef, st.from_regex(r"[a-z][a-z.-]*", fullmatch=True),
                          st.integers(1, 10**15 - 1))))  # fmt: skip
def test_references_read_back(refs: list[ChatRef]) -> None:
    text = ", ".join(map(decisions_format.format_decision_ref, refs))
    assert decisions_format.parse_decision_refs(text) == (refs, [])


def test_names_of_archives() -> None:
    name = "log-20260212-140000-archive.md"
    assert decisions_format.parse_decision_archive_name(name) == ("log", "20260212-140000")
    assert decisions_format.parse_decision_archive_name("log.md") is None


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a title", "None"),
        ("é" * 5, "None"),
        ("é" * 6, "title: longer than 10 bytes"),
        ("", "title: empty"),
        (" \u3000", "title: empty"),
        *(
            (f"a{bad}b", "title: holds a line break")
            for bad in "\n\r\t\0\x7f\x85\u2028\u2029\ud800"
        ),
    ],
)
def test_titles_and_fields(text: str, rule: str) -> None:
    assert str(text_line_problem(text, "title", 10)).startswith(rule)


def test_ids() -> None:
    assert decisions_format.valid_decision_id("D-1707753600") is None
    for wrong in ("", "1707753600", "D-", "D-1x", "D-1\n", "d-1"):
        assert "no decision id" in str(decisions_format.valid_decision_id(wrong))


# The real file ----------------------------------------------------------------------------------


def test_a_real_log_reads_and_is_written_byte_for_byte() -> None:
    data = nbs_team.files()["scribe/log.md"]
    header, pieces = decisions_format.split_decision_log(data)
    assert header.startswith(b"# Decision Log\n\nCreated: ")
    assert len(pieces) == 46
    for piece in pieces:
        decision, problems = decisions_format.parse_decision(piece)
        assert decision is not None
        assert problems == ()
        assert decisions_format.format_decision(decision).encode() == piece
        refs, malformed = decisions_format.parse_decision_refs(decision.chat_ref)
        assert malformed == []
        assert ", ".join(map(decisions_format.format_decision_ref, refs)) == decision.chat_ref
