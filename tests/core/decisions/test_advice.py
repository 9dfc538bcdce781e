"""What sounds like a decision, and which entry reads like none: the seeds' own lists, both ways."""

import json
from base64 import b64decode
from pathlib import Path

import pytest
from doors.inside import begin
from doors.inside import run as run_
from hypothesis import given
from hypothesis import strategies as st
from nbs_team import files
from team_files import START, Decision, Said, judge, outcome, write_chat, write_log

from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.projections.chat.tables import ref_to_chat_line
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify import advice
from tripod.verify.check import Finding
from tripod.verify.evidence import collect
from tripod.verify.run import run

COMMITS = (
    ("Let's do it with files.", "a choice"),
    ("Agreed, go with that", "a choice"),
    ("fine, go with option 2", "a choice"),
    ("we'll use file-based events, not sockets", "a choice"),
    ("We\u2019ll use X instead of Y.", "a choice"),
    ("Decision — the parser uses recursive descent", "a choice"),
    ("After the talk we decided to keep SQLite.", "a choice"),
    ("we know X could break, proceeding anyway", "an accepted risk"),
    ("We accept that this is O(n^2).", "an accepted risk"),
    ("I am accepting the risk for now", "an accepted risk"),
    ("we're moving from polling to event-driven", "a change of architecture"),
    ("dropping the dark theme from MVP", "a change of scope"),
    ("reverting the decision to use Y", "a reversal"),
    ("actually, let's switch to Y instead", "a reversal"),
)
SILENT = (
    "tests passing",
    "build complete",
    "hello",
    "thanks, agreed",
    "I'll take the parser work",
    "you handle X, I'll handle Y",
    "Should we use sockets? I don't know.",
    "maybe we'll use files",
    "If that fails we'll switch to Y.",
    "let's see what the tests say",
    "let's do it?",
    "bob said we decided to keep it",
    "we haven't decided on that",
    "> we'll use files",
    "```\nlet's use files\n```",
    "D-1795294623 says that we'll use files",
    "",
)


@pytest.mark.parametrize(("text", "sign"), COMMITS)
def test_what_the_seeds_call_a_decision_is_heard(text: str, sign: str) -> None:
    said = advice.sign_for_advice(f"I looked at both. {text}\nMore tomorrow.")
    assert said is not None
    assert said[0] == sign


@pytest.mark.parametrize("text", SILENT)
def test_what_asks_weighs_greets_or_reports_is_not(text: str) -> None:
    assert advice.sign_for_advice(text) is None


@given(
    st.lists(st.sampled_from([c for c, _ in COMMITS] + list(SILENT)) | st.text(max_size=40)).map(
        "\n".join
    )
)
def test_no_body_with_a_sign_is_passed_over(text: str) -> None:
    assert advice.sign_for_advice(text) is None or advice.may_need_advice(text)


@pytest.mark.parametrize(
    "piece", ["a ", "dropping ", "we're moving from ", "'", "decided-", "let's ", "n't", ". ", "`"]
)
def test_hostile_texts_cost_no_more_than_their_length(piece: str) -> None:
    # Of an expression that backtracks without a bound, this would not end.
    advice.sign_for_advice(piece * (advice.MAX_TEXT // len(piece)))
    assert advice.sign_for_advice("x" * advice.MAX_TEXT + ". Let's use files.") is None


# The chat against the log -----------------------------------------------------------------------


def missed(root: Path) -> list[str]:
    told = outcome(judge(root), "decision-missed")
    return [finding.message for finding in told.findings]


def talk(root: Path, *said: str, behind: int = advice.BEHIND) -> None:
    texts = [*said, *["carry on"] * behind]
    write_chat(root, "live", [Said(at, "ann", text) for at, text in enumerate(texts)])


def test_a_passage_without_an_entry_is_told_once(tmp_path: Path) -> None:
    talk(tmp_path, "Let's use files.", "Agreed, we'll use files from now on.")
    assert missed(tmp_path) == [
        'ann: "Let\'s use files." sounds like a choice, and no decision is near'
    ]


def test_a_fresh_one_is_counted_and_not_told(tmp_path: Path) -> None:
    talk(tmp_path, "Let's use files.", behind=advice.BEHIND - 1)
    told = outcome(judge(tmp_path), "decision-missed")
    assert (told.verdict, told.coverage["too fresh to tell"]) == ("clean", 1)


@pytest.mark.parametrize(("line", "settled"), [(7, True), (12, True), (13, False)])
def test_a_decision_that_refers_near_it_settles_it(
    tmp_path: Path, line: int, settled: bool
) -> None:
    talk(tmp_path, "Let's use files.", behind=40)
    write_log(tmp_path, [Decision(100, f"live.chat:~L{line}")])
    assert (missed(tmp_path) == []) == settled


@pytest.mark.parametrize(
    ("at", "title", "settled"),
    [(5, "Keep events in files", True), (5, "Parser", False), (35, "Keep events in files", False)],
)
def test_one_that_was_logged_soon_and_shares_its_words_settles_it(
    tmp_path: Path, at: int, title: str, settled: bool
) -> None:
    talk(tmp_path, "we'll keep the events in files", behind=40)
    write_log(tmp_path, [Decision(at, "live.chat:~L40")])
    log = tmp_path / "scribe" / "log.md"
    log.write_text(log.read_text().replace("Decision 0", title))
    assert (missed(tmp_path) == []) == settled


def test_what_the_scribe_and_pythia_say_is_passed_over(tmp_path: Path) -> None:
    said = [Said(0, "Scribe", "we'll use files"), Said(1, "pythia", "we'll use files")]
    write_chat(tmp_path, "live", [*said, *[Said(2, "ann", "carry on")] * 30])
    assert missed(tmp_path) == []


def test_of_an_archived_line_the_place_is_known(tmp_path: Path) -> None:
    said = [*["carry on"] * 30, "Let's use files.", *["carry on"] * 30]
    lines = [Said(at, "ann", text) for at, text in enumerate(said)]
    write_chat(tmp_path, "live", lines, archived=20, split=50)
    write_log(tmp_path, [Decision(99, "live.chat:~L17")])  # line 31 of the whole, 11 of the file
    assert missed(tmp_path) == []


def test_every_passage_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(12):
        said += ["Let's use files.", *["carry on"] * advice.BEHIND]
    talk(tmp_path, *said)
    told = missed(tmp_path)
    assert len(told) == 12
    assert not any(message.startswith("and ") for message in told)


def test_our_own_decisions_are_bound_to_their_messages(tmp_path: Path) -> None:
    adoption.init(str(tmp_path))
    with Team(str(tmp_path / ".nbs")) as team:
        chat_send.create(team, "live", actor="ann")
        chat_send.send(team, "live", "ann", "Let's use files.")
        for _ in range(advice.BEHIND):
            chat_send.send(team, "live", "ben", "carry on")
        assert [p.sentence for p in _missed(team)] == ["Let's use files."]
        request = decisions_log.DecisionRequest("Files", ["ann"], "Simple.", refs=["live.chat:~L7"])
        decisions_log.log(team, request)
        assert _missed(team) == []


def _missed(team: Team) -> list[advice.Passage]:
    rows = team.store.db.execute("SELECT seq FROM lines WHERE handle IS NOT NULL ORDER BY seq")
    return list(
        advice.advise_on_missed(
            team.source, [seq for (seq,) in rows], advice.advised_handles(team.source)
        )
    )


def test_a_person_is_given_the_reference(tmp_path: Path) -> None:
    begin(tmp_path)
    run_(tmp_path, "chat", "send", "live", "ann", "Let's use files.")
    run_(tmp_path, "scribe", "log", "All tests pass", "-p", "ann", "-r", "Seen.", "--no-ref", "-")
    told = run_(tmp_path, "scribe", "advise").out.decode().splitlines()
    number = int(told[0].partition("~L")[2].partition(" ")[0])
    assert told == [
        f"live.chat:~L{number} ann: Let's use files.",
        "  sounds like a choice, and no decision is near (fresh)",
        told[2],
        "  reads like a status report",
    ]
    assert told[2].endswith(" All tests pass")
    line = (tmp_path / ".nbs/chat/live.chat").read_bytes().split(b"\n")[number - 1]
    assert b"Let's use files." in b64decode(line)
    missed_, noise = map(json.loads, run_(tmp_path, "scribe", "advise", "--json").out.splitlines())
    assert (missed_["advice"], missed_["ref"]) == ("missed", f"live.chat:~L{number}")
    assert (noise["advice"], noise["like"]) == ("noise", "a status report")


def test_a_reference_is_to_the_file_that_shows_it(tmp_path: Path) -> None:
    begin(tmp_path)
    run_(tmp_path, "chat", "create", "side")
    for text in ("one", "two", "three"):
        run_(tmp_path, "chat", "send", "side", "ann", text)
    run_(tmp_path, "chat", "archive", "side", "--keep", "1")
    with Team(str(tmp_path / ".nbs")) as team:
        db = team.store.db
        (archive,) = db.execute("SELECT archive FROM archives").fetchone()
        refs = [ref_to_chat_line(db, "side", number) for number in range(4)]
    assert refs == [f"{archive}.chat:~L7", f"{archive}.chat:~L8", "side.chat:~L7", None]


# The log ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "like"),
    [
        ("467/467 tests pass", "a status report"),
        ("Build complete", "a status report"),
        ("Hello everybody", "a greeting"),
        ("Do we need an index?", "a question"),
        ("I'll take the parser work", "who does what"),
        ("bench takes the parser", "who does what"),
        ("Investigating the crash", "debugging"),
        ("Tests passing on all branches gate the merge, rather than the build", None),
        ("Accept O(n^2) parser cost", None),
        ("Coordination bus replaces polling", None),
    ],
)
def test_entries_that_read_like_no_decision(tmp_path: Path, title: str, like: str | None) -> None:
    found = _noise(tmp_path, title)
    says = f'D-{START} "{title}" reads like {like}'
    assert [one.message for one in found] == ([says] if like else [])


def _noise(root: Path, title: str, count: int = 1) -> tuple[Finding, ...]:
    write_chat(root, "live", [Said(0, "ann", "hello")])
    write_log(root, [Decision(at, "live.chat:~L7") for at in range(count)])
    log = root / "scribe" / "log.md"
    text = log.read_text().replace("Because.", "So be it.")
    for number in range(count):
        text = text.replace(f"Decision {number}\n", f"{title}\n")
    log.write_text(text)
    return outcome(judge(root), "decision-noise").findings


def test_every_piece_of_noise_is_told(tmp_path: Path) -> None:
    found = _noise(tmp_path, "All tests pass", 13)
    assert [one.message for one in found] == [
        f'D-{START + at} "All tests pass" reads like a status report' for at in range(13)
    ]


def test_a_reason_that_chooses_excuses_an_entry(tmp_path: Path) -> None:
    _noise(tmp_path, "All tests pass")
    log = tmp_path / "scribe" / "log.md"
    log.write_text(log.read_text().replace("So be it.", "We ship instead of waiting."))
    assert outcome(judge(tmp_path), "decision-noise").findings == ()


# Advice is never more than that -----------------------------------------------------------------


def test_the_figures_of_the_manuals(tmp_path: Path) -> None:
    """46 of 668 sound like a decision, all of them logged; half the log gone, 10 of 23 are told."""
    for path, data in files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    with collect(str(tmp_path), no_ledger=True) as evidence:
        report = run(evidence)
        (messages,) = evidence.query("SELECT count(*) FROM lines WHERE handle IS NOT NULL")[0]
        texts = [evidence.body(seq)["text"]["text"] for (seq,) in evidence.query(
            "SELECT seq FROM lines WHERE handle IS NOT NULL")]  # fmt: skip
    assert (messages, sum(advice.sign_for_advice(text) is not None for text in texts)) == (668, 46)
    assert report.advised == 0
    log = tmp_path / "scribe" / "log.md"
    head, *entries = log.read_text().split("\n---\n\n### D-")
    log.write_text("\n---\n\n### D-".join([head, *entries[1::2]]))
    assert (len(entries), len(entries[1::2])) == (46, 23)
    assert outcome(judge(tmp_path), "decision-missed").coverage["told"] == 10


def test_a_policy_cannot_require_what_only_advises(tmp_path: Path) -> None:
    adoption.init(str(tmp_path))
    (tmp_path / ".nbs" / "policy.yaml").write_text("required: [decision-missed]\n")
    with collect(str(tmp_path)) as evidence:
        report = run(evidence)
    assert "requires 'decision-missed', and that check only advises" in report.problem


def test_alone_it_judges_nothing(tmp_path: Path) -> None:
    talk(tmp_path, "Let's use files.")
    with collect(str(tmp_path), no_ledger=True) as evidence:
        report = run(evidence, select=("decision-missed",))
    assert (report.judged, report.advised, report.exit_code) == (0, 1, 3)


def test_where_it_breaks_that_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(advice, "advise_on_missed", broken)
    talk(tmp_path, "Let's use files.")
    (found,) = outcome(judge(tmp_path), "decision-missed").findings
    assert (found.severity, found.message[:16]) == ("advice", "the check broke:")
