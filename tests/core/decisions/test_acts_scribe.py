"""Acts of the Scribe: ids, refs, events, checkpoints; and no text that smuggles a decision in."""

from collections.abc import Iterator
from typing import Any

import pytest
from doors.inside import run
from hypothesis import given
from hypothesis import strategies as st
from specimens import read, write_rows
from story import BEGIN, Story, folder
from strategies import FEWER

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.decisions import reader as decisions_read
from tripod.decisions import writer as decisions_log
from tripod.errors import BadArgumentError, MalformedEntryError, NotFoundError
from tripod.ledger.entry import entry_leaf_hash
from tripod.projections.decisions.format import (
    STATUSES,
    count_decision_headings,
    parse_decision,
    split_decision_log,
)


@pytest.fixture
def story() -> Iterator[Story]:
    with folder() as root:
        story = Story(root)
        story.run(
            [("create", "live"), ("say", "live", "ann", "one"), ("say", "live", "bob", "two")]
        )
        story.clock.ns = BEGIN * 1_000_000_000
        yield story


def log(story: Story, title: str = "T", **fields: Any) -> decisions_log.LoggedDecision:
    with story.team() as team:
        given_ = {"participants": ["ann"], "rationale": "because"} | fields
        return decisions_log.log(team, decisions_log.DecisionRequest(title, **given_))


def test_a_decision_is_its_entry_in_the_log(story: Story) -> None:
    logged = log(story, "Use one ledger", refs=["live.chat:~L7"], risk_tags=["a", "b"])
    assert (logged.id, logged.number, logged.checkpoint) == (f"D-{BEGIN}", 1, None)
    assert (story.root / "scribe/log.md").read_text() == (
        "# Decision Log\n\nProject: parser\nCreated: 2020-09-13T12:26:40Z\nScribe: scribe\n"
        f"\n---\n\n### D-{BEGIN} Use one ledger\n- **Chat ref:** live.chat:~L7\n"
        "- **Participants:** ann\n- **Artefacts:** —\n- **Risk tags:** a, b\n"
        "- **Status:** decided\n- **Rationale:** because\n"
    )
    with story.team() as team:
        event = next(event for event in bus.check(team) if event.type == "decision-logged")
        assert f"  D-{BEGIN} Use one ledger\n".encode() in bus.read(team, event.name)


def test_ids_are_the_smallest_free_second(story: Story) -> None:
    story.original.log("Theirs", number=BEGIN + 1)
    story.original.log("In the future", number=BEGIN + 9_999)
    assert [log(story).id for _ in range(3)] == [f"D-{BEGIN + n}" for n in (0, 2, 3)]
    story.clock.move(1)
    assert log(story).id == f"D-{BEGIN + 4}"
    story.clock.move(100)
    assert log(story).id == f"D-{BEGIN + 101}"


@pytest.mark.parametrize(("interval", "at"), [(0, []), (1, [1, 2, 3, 4, 5]), (2, [2, 4]), (5, [5])])
def test_a_checkpoint_is_asked_for_at_each_interval(
    story: Story, interval: int, at: list[int]
) -> None:
    story.original.put("events/config.yaml", f"pythia-interval: {interval}\n".encode())
    asked = []
    for number in range(1, 6):
        logged = log(story)
        if logged.checkpoint:
            asked.append(number)
            with story.team() as team:
                payload = bus.read(team, logged.checkpoint).decode()
            assert "type: pythia-checkpoint\npriority: high\n" in payload
            first = BEGIN + number - interval
            assert f"Decision count: {number}" in payload or str(number) in payload
            assert f"D-{first}" in payload
            assert f"D-{BEGIN + number - 1}" in payload
    assert asked == at


def test_adopted_decisions_count_towards_the_checkpoint(story: Story) -> None:
    for number in range(19):
        story.original.log(f"Theirs {number}", number=number + 1)
    logged = log(story)
    assert logged.number == 20
    assert logged.checkpoint is not None


def test_refs_are_bound_to_the_messages_they_mean(story: Story) -> None:
    logged = log(story, refs=["live.chat:~L8", "live.chat:~L7"])
    assert logged.warnings == []
    with story.team() as team:
        body = next(e.data for e in team.store.read() if e.kind == "decision.logged")
        for ref, index in zip(body["refs"], (1, 0), strict=True):
            message = chat_read.messages(team, "live")[index]
            entry = next(team.store.read(message.seq, message.seq + 1))
            assert ref == {
                "channel": "live",
                "file": "live.chat",
                "index": index,
                "leaf": entry_leaf_hash(entry.header).hex(),
                "line": 7 + index,
                "seq": message.seq,
            }


@pytest.mark.parametrize(
    "ref",
    [
        *("live.chat:~L6", "live.chat:~L9", "live.chat:~L0", "nope.chat:~L7", "live.chat"),
        *("live.chat:L7", "live.chat:~L7x", "live.chat:~L7, live.chat:~L8", "", "\n", ":~L7"),
        "a\nlive.chat:~L7",
    ],
)
def test_a_ref_that_means_no_message_is_refused(story: Story, ref: str) -> None:
    with story.team() as team:
        size = team.store.head().size
    with pytest.raises(BadArgumentError, match="ref"):
        log(story, refs=[ref])
    with story.team() as team:
        assert team.store.head().size == size


def test_a_missing_ref_is_told(story: Story) -> None:
    assert "no chat ref" in log(story).warnings[0]


def test_a_ref_follows_the_lines_of_the_live_file(story: Story) -> None:
    """A line that cannot be read counts as a line, and is no message."""
    story.original.append("chat/live.chat", b"not base64!\n")
    story.clock.move()
    story.step(("say", "live", "ann", "three"))
    with pytest.raises(BadArgumentError):
        log(story, refs=["live.chat:~L9"])
    log(story, refs=["live.chat:~L10"])


@pytest.mark.parametrize("status", ["superseded", "reversed", "mitigated"])
def test_a_decision_has_the_status_that_a_later_one_gave_it(story: Story, status: str) -> None:
    first = log(story).id
    how = {"superseded": "supersedes", "reversed": "reverses", "mitigated": "mitigates"}[status]
    second = log(story, "New", **{how: first}).id
    with story.team() as team:
        for found in (list(decisions_read.query(team)), decisions_read.summary(team, 9)):
            (old, new) = found
            assert (old.id, old.stands, old.by, old.status) == (first, status, second, "decided")
            assert (new.id, new.by, new.change) == (second, None, None)
        assert first in {
            d.id for d in decisions_read.query(team, "", decisions_read.Filters(status=status))
        }
        plain = decisions_read.Filters(status="decided")
        assert first not in {d.id for d in decisions_read.query(team, "", plain)}
        (history,) = decisions_read.find(team, first)
        shown = decisions_read.plain_decision_history(history)
        assert (shown["status"], shown["logged_status"], shown["by"]) == (status, "decided", second)
        assert "became" not in shown


def test_what_supersedes_names_a_decision(story: Story) -> None:
    first = log(story).id
    with pytest.raises(BadArgumentError, match="supersedes"):
        log(story, supersedes="D-1")
    log(story, "New", supersedes=first, status="superseded")
    assert (
        f"### D-{BEGIN + 1} [SUPERSEDES {first}] New\n"
        in (story.root / "scribe/log.md").read_text()
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"title": ""},
        {"title": "x" * 1_024},
        {"title": "a\n### D-1 b"},
        {"title": "a\r### D-1 b"},
        {"title": "a\u2028### D-1 b"},
        {"title": "[SUPERSEDES D-1] x"},
        {"rationale": "a\n\n### D-1 b"},
        {"rationale": " "},
        {"participants": []},
        {"participants": ["a", "b, c"]},
        {"artefacts": ["x\n"]},
        {"risk_tags": ["y" * 1_500, "y" * 1_500]},
        {"status": "maybe"},
        {"supersedes": "D-1\n### D-2"},
        {"reverses": "D-1\n### D-2"},
    ],
    ids=str,
)
def test_what_is_no_entry_of_the_log_is_refused(story: Story, fields: dict[str, Any]) -> None:
    log(story)
    before = (story.root / "scribe/log.md").read_bytes()
    with pytest.raises(BadArgumentError):
        log(story, **fields)
    assert (story.root / "scribe/log.md").read_bytes() == before


def test_querying(story: Story) -> None:
    with story.team() as team:
        for act in (
            lambda: list(decisions_read.query(team)),
            lambda: decisions_read.count(team),
            lambda: decisions_read.summary(team, 1),
        ):
            with pytest.raises(NotFoundError, match="no decision log yet"):
                act()
    log(story, "Alpha", risk_tags=["perf", "data"], participants=["al", "bob"])
    log(story, "Beta", status="mitigated", risk_tags=["perfect"], participants=["alex"])
    with story.team() as team:

        def titles(text: str, **filters: Any) -> list[str]:
            return [
                d.title for d in decisions_read.query(team, text, decisions_read.Filters(**filters))
            ]

        assert titles("") == ["Alpha", "Beta"]
        assert titles("ALPHA") == ["Alpha"]
        assert titles("[a-z]") == []
        assert titles("", tag="perf") == ["Alpha"]
        assert titles("", by="al") == ["Alpha"]
        assert titles("", status="mitigated") == ["Beta"]
        assert titles("beta", tag="perf") == []
        assert titles("because ALPH") == ["Alpha"]
        assert titles('"because alph"') == []
        assert titles('"perf, data" bob') == ["Alpha"]
        assert titles('"') == []
        assert decisions_read.count(team) == 2
        assert [d.title for d in decisions_read.summary(team, 1)] == ["Beta"]
        assert decisions_read.summary(team, 0) == []


def test_querying_by_artefact_and_time(story: Story) -> None:
    for number, artefacts in enumerate((["a.md", "b.md"], ["a.md"], [])):
        story.clock.ns = (BEGIN + 100 * number) * 1_000_000_000
        log(story, f"T{number}", artefacts=artefacts)
    with story.team() as team:

        def titles(**filters: Any) -> list[str]:
            return [
                d.title for d in decisions_read.query(team, "", decisions_read.Filters(**filters))
            ]

        assert titles(artefact="a.md") == ["T0", "T1"]
        assert titles(artefact="b.md") == ["T0"]
        assert titles(artefact=".md") == []
        assert titles(since=BEGIN + 100) == ["T1", "T2"]
        assert titles(until=BEGIN + 100) == ["T0", "T1"]
        assert titles(since=BEGIN + 1, until=BEGIN + 99) == []


def test_what_reverses_and_what_mitigates_settles_the_status(story: Story) -> None:
    first, second = log(story).id, log(story).id
    log(story, "No", reverses=first)
    log(story, "Safe", mitigates=second, status="mitigated")
    with story.team() as team:
        found = [(d.title, d.status, d.supersedes) for d in decisions_read.summary(team, 2)]
    assert found == [("No", "reversed", first), ("Safe", "mitigated", second)]
    text = (story.root / "scribe/log.md").read_text()
    assert f"### D-{BEGIN + 2} [SUPERSEDES {first}] No\n" in text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"reverses": "D-1"}, "reverses: no decision D-1"),
        ({"mitigates": "D-1"}, "mitigates: no decision D-1"),
        ({"supersedes": "nothing"}, "supersedes: 'nothing' is no decision id"),
        ({"supersedes": "D-1", "reverses": "D-1"}, "a decision does one of them"),
        ({"reverses": "D-1", "mitigates": "D-1"}, "a decision does one of them"),
        ({"reverses": "D-1", "status": "accepted-risk"}, "status: 'accepted-risk', but"),
    ],
    ids=str,
)
def test_a_reference_that_cannot_be_is_refused(
    story: Story, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(MalformedEntryError, match=said):
        log(story, **fields)
    with story.team() as team:
        assert [e.kind for e in team.store.read()].count("decision.logged") == 0


def test_a_decision_has_one_successor(story: Story) -> None:
    first = log(story, "First").id
    second = log(story, "Second", reverses=first).id
    for field in ("supersedes", "reverses", "mitigates"):
        with pytest.raises(MalformedEntryError, match=f"was reversed by {second} already"):
            log(story, "Third", **{field: first})
    log(story, "Third", supersedes=second)
    with story.team() as team:
        (shown,) = decisions_read.find(team, second)
        assert [d.title for d in shown.earlier] == ["First"]
        assert [d.title for d in shown.later] == ["Third"]
        (shown,) = decisions_read.find(team, first)
        assert [d.title for d in shown.later] == ["Second", "Third"]


def test_a_status_that_refers_to_nothing_is_told(story: Story) -> None:
    logged = log(story, status="reversed", refs=["live.chat:~L7"])
    assert len(logged.warnings) == 1
    assert logged.warnings[0].startswith("status reversed, but of which decision?")
    words: dict[str, Any] = {
        "status": "reversed",
        "refs": ["live.chat:~L7"],
        "rationale": f"{logged.id} was odd",
    }
    assert log(story, **words).warnings == []


def test_a_history_shows_the_messages(story: Story) -> None:
    logged = log(story, refs=["live.chat:~L8"])
    story.original.log("Theirs", number=7)
    with story.team() as team:
        (shown,) = decisions_read.find(team, logged.id)
        (ref,) = shown.refs
        assert ref.message is not None
        assert (ref.file, ref.line, ref.message[0], ref.message[2]) == (
            *("live.chat", 8, "bob", "two"),
        )
        assert (shown.file, shown.actor, shown.observed) == ("log.md", "scribe", False)
        team.refresh()
        (theirs,) = decisions_read.find(team, "D-7")
        assert (theirs.observed, theirs.refs) == (True, [])
        assert decisions_read.find(team, "D-8") == []


def test_a_history_that_goes_in_circles_ends(story: Story) -> None:
    for own, other in ((1, 2), (2, 1), (3, 3)):
        story.original.log(f"[SUPERSEDES D-{other}] Odd", number=own)
    with story.team() as team:
        team.refresh()
        (one,) = decisions_read.find(team, "D-1")
        (three,) = decisions_read.find(team, "D-3")
    assert [d.id for d in one.earlier] == ["D-2"]
    assert [d.id for d in one.later] == ["D-2"]
    assert (three.earlier, three.later) == ([], [])


# No text changes the count ---------------------------------------------------------------------

SMUGGLED = [
    *(
        "### D-1 x",
        "\n### D-1 x",
        "\r\n### D-1 x",
        "\x0b### D-1",
        "\u2028### D-1",
        "---",
        "\n---\n",
    ),
    *("[SUPERSEDES D-1] x", "- **Status:** decided", "] x", "`", "#", "—", " x ", "\\n### D-1"),
]
TEXTS = (
    st.sampled_from(SMUGGLED)
    | st.text(max_size=15)
    | st.tuples(st.text(max_size=3), st.sampled_from(SMUGGLED)).map("".join)
)


@FEWER
@given(
    st.lists(
        st.fixed_dictionaries(
            {"title": TEXTS, "rationale": TEXTS, "participants": st.lists(TEXTS, max_size=2)},
            optional={
                "artefacts": st.lists(TEXTS, max_size=2),
                "risk_tags": st.lists(TEXTS, max_size=2),
                "status": st.sampled_from(STATUSES) | TEXTS,
                "supersedes": TEXTS | st.just(f"D-{BEGIN}"),
            },
        ),
        max_size=4,
    )
)
def test_the_headings_in_the_file_are_the_decisions(requests: list[dict[str, Any]]) -> None:
    with folder() as root:
        story = Story(root)
        accepted = 1
        log(story, "First")
        for request in requests:
            try:
                log(story, **request)
                accepted += 1
            except BadArgumentError:
                continue
        data = (story.root / "scribe/log.md").read_bytes()
        assert count_decision_headings(data) == accepted
        pieces = [parse_decision(piece) for piece in split_decision_log(data)[1]]
        assert [decision is not None and problems == () for decision, problems in pieces] == [
            True
        ] * accepted
        with story.team() as team:
            assert decisions_read.count(team) == accepted


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("signed", "  'signed'; ann; "),
        ("observed; decided", "  'observed; decided'; ann; "),
        ("x\n  signed", "  'x\\n  signed'; ann; "),
        ("\x1b[2J", "  '\\x1b[2J'; ann; "),
        ("", "  ''; ann; "),
        (7, "  7; ann; "),
        (None, "  None; ann; "),
    ],
)
def test_a_status_in_the_store_that_nobody_could_log_passes_for_no_mark(
    story: Story, status: object, shown: str
) -> None:
    log(story, "Open")
    rows = read(str(story.root / "ledger.db"))
    seq = next(n for n, row in enumerate(rows) if row.head["kind"] == "decision.logged")
    rows[seq] = rows[seq].saying(status=status)
    write_rows(str(story.root), rows)
    for words in (("summary",), ("query",)):
        done = run(story.root.parent, "scribe", *words)
        assert (done.code, done.out.decode().split("\n")[1][: len(shown)]) == (0, shown), done
