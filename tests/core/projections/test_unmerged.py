"""A file with the conflict markers of a merge: not taken in, not written over, always named."""

from collections.abc import Callable, Iterator

import pytest
from story import FIRST, HELLO, Story, story_of, tree

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import RefusedError
from tripod.projections.chat.format import format_line
from tripod.projections.engine import file_differences
from tripod.projections.pieces import merge_marker_in_piece
from tripod.recovery import rebuild as recover
from tripod.recovery.doctor import examine, mend
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Finding
from tripod.verify.evidence import collect
from tripod.verify.run import run

ENTRY = (
    b"### %b %b\n- **Chat ref:** \xe2\x80\x94\n- **Participants:** ann\n"
    b"- **Artefacts:** \xe2\x80\x94\n- **Risk tags:** none\n- **Status:** decided\n"
    b"- **Rationale:** because\n"
)


def conflict(ours: bytes, theirs: bytes, base: bytes | None = None) -> bytes:
    """The lines of both sides, as git leaves them; with ``base`` in the style diff3."""
    middle = b"" if base is None else b"||||||| 5a742098\n" + base
    return b"<<<<<<< HEAD\n" + ours + middle + b"=======\n" + theirs + b">>>>>>> other\n"


@pytest.fixture
def story() -> Iterator[Story]:
    """A team with a chat, a decision, a worker's file and a configuration."""
    with story_of() as story:
        story.original.put("workers/w.md", b"# Task\nState: running\n\n## Log\n")
        story.original.put("events/config.yaml", b"ack-timeout: 5\n")
        story.run([("sync",), *HELLO, FIRST])
        yield story


def in_log(data: bytes) -> bytes:
    """Both sides logged a decision behind what they have in common."""
    ours = b"\n---\n\n" + ENTRY % (b"D-1600000800", b"Ours")
    return data + conflict(ours, b"\n---\n\n" + ENTRY % (b"D-1600000801", b"Theirs"))


def in_chat(data: bytes) -> bytes:
    """Both sides sent: their headers and their last lines differ."""
    head, _, body = data.partition(b"---\n")
    first, rest = head.split(b"\n", 1)
    ours, theirs = (format_line(who, 1_600_000_800, "hi") + b"\n" for who in ("ann", "bob"))
    other = rest.replace(b"ann", b"bob")
    return b"".join(
        [first, b"\n", conflict(rest, other, b""), b"---\n", body, conflict(ours, theirs)]
    )


def in_end(data: bytes) -> bytes:
    return data + conflict(b"ack-timeout: 6\n", b"ack-timeout: 7\n").replace(b"\n", b"\r\n")


CASES: dict[str, Callable[[bytes], bytes]] = {
    "scribe/log.md": in_log,
    "chat/live.chat": in_chat,
    "workers/w.md": in_end,
    "events/config.yaml": in_end,
    "supervisor.md": in_end,
    "policy.yaml": in_end,
    "chat/other.chat": lambda _: b"=== nbs-chat ===\n" + conflict(b"a: 1\n", b"a: 2\n"),
    "events/1600000800000000-x-y-1.event": lambda _: (
        b"source: x\ntype: y\npriority: " + conflict(b"high\n", b"low\n")
    ),
}


def clash(story: Story, path: str) -> bytes:
    """Leave a file as a merge does that a person has to finish; give its bytes."""
    file = story.root / path
    data = CASES[path](file.read_bytes() if file.exists() else b"")
    story.clock.move()
    story.original.put(path, data, 0o600 if path.endswith(".chat") else 0o644)
    return data


def findings(story: Story) -> list[Finding]:
    with collect(str(story.root)) as evidence:
        return [f for o in run(evidence).outcomes for f in o.findings]


def size(story: Story) -> int:
    with story.team() as team:
        return team.store.head().size


def decide(team: Team) -> None:
    decisions_log.log(
        team, decisions_log.DecisionRequest("Second", ["ann"], "r", ["live.chat:~L7"])
    )


@pytest.mark.parametrize("path", CASES)
def test_nothing_of_it_is_taken_in_or_written_over_and_everybody_says_so(
    story: Story, path: str
) -> None:
    data = clash(story, path)
    held = size(story)
    looks: list[Callable[[Team], object]] = [Team.refresh, Team.refresh, adoption.sync]
    for look in looks:
        with story.team() as team:
            look(team)
            (said,) = [text for text in team.warnings if path in text]
            assert "is a conflict marker of a merge" in said
            assert "remove the marker lines" in said
            assert team.store.head().size == held
    with story.team() as team:
        bus.publish(team, "a", "b", "low", "")
        assert [text for text in team.warnings if path in text]
    assert (story.root / path).read_bytes() == data
    found = [one for one in findings(story) if one.where == path]
    assert "failure" in [one.severity for one in found]
    assert any("conflict marker" in one.message for one in found)
    mend(examine(str(story.root)))
    assert (story.root / path).read_bytes() == data
    assert "unmerged" in [one.name for one in examine(str(story.root)).troubles]


ACTS: dict[str, Callable[[Team], object]] = {
    "scribe/log.md": decide,
    "chat/live.chat": lambda team: chat_send.send(team, "live", "ann", "more"),
}


@pytest.mark.parametrize("path", ACTS)
def test_what_would_write_it_is_refused_until_the_merge_is_finished(
    story: Story, path: str
) -> None:
    data = clash(story, path)
    held = size(story)
    for act in (ACTS[path], recover.rebuild):
        with story.team() as team, pytest.raises(RefusedError, match="conflict marker") as refused:
            act(team)
        assert f"{story.root}/{path}" in str(refused.value)
        assert "remove the marker lines" in str(refused.value)
    assert (story.root / path).read_bytes() == data
    assert size(story) == held


def test_a_finished_merge_is_taken_in_with_both_sides(story: Story) -> None:
    merged = {}
    for path, front in (("scribe/log.md", 0), ("chat/live.chat", -3)):
        before = (story.root / path).read_bytes()
        lines = clash(story, path).split(b"\n")
        marks = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")
        kept = b"\n".join([line for line in lines if not line.startswith(marks)][front:])
        merged[path] = before + kept if front else kept
    with story.team() as team:
        team.refresh()
    for path, data in merged.items():
        story.original.put(path, data, 0o600 if path.endswith(".chat") else 0o644)
    with story.team() as team:
        found = adoption.sync(team)
        assert (found.kinds["decision.logged"], found.kinds["chat.sent"]) == (2, 2)
        assert [m.handle for m in chat_read.messages(team, "live")] == ["ann", "ann", "bob"]
        decide(team)
        assert list(file_differences(team.source, team.disk)) == []
        assert recover.rebuild(team).written == []


def test_a_text_that_quotes_markers_is_no_conflict(story: Story) -> None:
    """Ours and others': a message, a decision, an event's payload, a worker's notes."""
    quoted = conflict(b"a\n", b"b\n").decode()
    rule = "=======" * 3
    story.original.say("live", "bob", f"look:\n{quoted}")
    story.original.publish("x", "y", payload=quoted)
    story.original.append(
        "scribe/log.md", b"\n---\n\n" + ENTRY % (b"D-1600000850", b"<<<<<<< HEAD")
    )
    story.original.append("scribe/log.md", b"\n---\n\nHeading\n=======\n\nprose by hand\n")
    story.original.append("workers/w.md", f"\n```\n{quoted}```\n\nTitle\n=======\n".encode())
    with story.team() as team:
        found = adoption.sync(team)
        kinds = found.kinds
        assert kinds["chat.sent"] == kinds["decision.logged"] == kinds["worker.written"] == 1
        chat_send.send(team, "live", "ann", quoted)
        bus.publish(team, "a", "b", "low", quoted)
        decisions_log.log(
            team, decisions_log.DecisionRequest("Second", ["ann"], f"{rule} >>>>>>> <<<<<<<")
        )
        assert list(file_differences(team.source, team.disk)) == []
        assert not [text for text in team.warnings if "merge" in text]
    assert not [one for one in findings(story) if "merge" in one.message]


def test_markers_that_an_older_version_took_in_are_no_conflict(story: Story) -> None:
    """They stand in the ledger: the file shows what it gives, and the team goes on."""
    from unittest import mock

    with mock.patch("tripod.projections.pieces.merge_marker_in_piece", return_value=None):
        clash(story, "scribe/log.md")
        with story.team() as team:
            adoption.sync(team)
    with story.team() as team:
        decide(team)
        assert list(file_differences(team.source, team.disk)) == []
    story.clock.move()
    story.original.log("Third")
    with story.team() as team:
        assert adoption.sync(team).kinds["decision.logged"] == 1
        assert not [text for text in team.warnings if "merge" in text]


def test_a_past_with_a_conflict_is_not_adopted(story: Story) -> None:
    clash(story, "scribe/log.md")
    for name in ("ledger.db", "counts.json"):
        for file in story.root.glob(f"{name}*"):
            file.unlink()
    before = tree(story.root)
    with pytest.raises(RefusedError, match=r"conflict marker.*no ledger was begun"):
        adoption.init(str(story.project))
    assert tree(story.root) == before
    assert not (story.root / "ledger.db").exists()
    with collect(str(story.root), no_ledger=True) as evidence:
        found = [
            f for o in run(evidence).outcomes for f in o.findings if f.where == "scribe/log.md"
        ]
    assert "failure" in [one.severity for one in found]


def test_a_writer_that_died_does_not_write_over_a_conflict(story: Story) -> None:
    import drafts

    with story.team() as team:
        text = {"channel": "live", "index": 1, "handle": "bob", "time": 1, "text": "Tea"}
        team.store.append([drafts.sent(**text)])  # type: ignore[arg-type]
    before = (story.root / "chat/live.chat").read_bytes()
    data = clash(story, "chat/live.chat")
    with story.team() as team:
        team.refresh()
        assert [text for text in team.warnings if "conflict marker" in text]
    assert (story.root / "chat/live.chat").read_bytes() == data
    story.original.put("chat/live.chat", before)
    with story.team() as team:
        team.refresh()
        assert [message.text for message in chat_read.messages(team, "live")] == ["hello", "Tea"]
        assert list(file_differences(team.source, team.disk)) == []


def test_read_positions_with_a_conflict_are_left_alone(story: Story) -> None:
    file = story.root / "chat/live.chat.cursors"
    data = b"# cursors\n" + conflict(b"ann=0\n", b"bob=0\n")
    file.write_bytes(data)
    with story.team() as team:
        chat_send.send(team, "live", "ann", "more")
        assert [text for text in team.warnings if "cursors" in text and "marker" in text]
    assert file.read_bytes() == data


def test_a_markers_line_is_named() -> None:
    text = b"a\n\nb\n" + conflict(b"x\n", b"y\n")
    assert merge_marker_in_piece("scribe/log.md", text) == 4
    assert merge_marker_in_piece("chat/a.chat", b">>>>>>> other\n") == 1
    assert merge_marker_in_piece("scribe/log.md", b">>>>>>> other\n") is None
    assert merge_marker_in_piece("scribe/log.md", b"=======\nx\n>>>>>>> other\n") == 1
    assert merge_marker_in_piece("scribe/log.md", b"x <<<<<<< HEAD\n=======\n") is None
    assert merge_marker_in_piece("workers/w.log", text) is None


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (b"```\n", b"```\n", None),
        (b"````\n```\n", b"````\n", None),  # three do not close what four began
        (b"~~~\n```\n", b"~~~\n", None),
        (b"```\n", b"", None),  # an open block reaches to the end
        (b"~~~\n```\n~~~\n", b"", 4),
        (b"``` a`b\n", b"", 2),  # no block: a backtick stands behind it
        (b"    ```\n", b"    ```\n", 2),  # indented code
        (b"a\r\n```\r\nb\rc\r\n```\r\n", b"", 5),
    ],
)
def test_markers_in_a_fenced_block_are_quoted_as_markdown_has_it(
    before: bytes, after: bytes, line: int | None
) -> None:
    text = before + conflict(b"x\n", b"y\n") + after
    assert merge_marker_in_piece("scribe/log.md", text) == line
