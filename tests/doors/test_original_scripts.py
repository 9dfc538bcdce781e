"""What the shell tests of the original tools assert of behaviour, asserted of our commands.

The facts are those of the original's scripts of 21 February 2026 for ``nbs-chat``, ``nbs-bus`` and
``nbs-worker`` (whose other commands have their rows in ``test_nbs_worker.py``). As they do it, all
chats and all queues of a test lie side by side in one folder outside of a team directory.

Left out is what they assert of the programs' files (strings in a binary, lines of a script), of
output before times were shown, of terminals and of ``tmux``, and what the reference pages list as a
difference: an empty ``--since=`` (4 here), a line that somebody damaged (reported, not skipped),
and a chat without a queue (there is always one).
"""

import base64
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from doors.inside import Done, run_as


@pytest.fixture(name="here")
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is no repository and holds no team."""
    for name in ("NBS_HANDLE", "TRIPOD_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    assert not (tmp_path / ".gitignore").exists()


def chat(here: Path, *words: str, code: int = 0) -> list[str]:
    """Run ``nbs-chat``, and give the lines it prints."""
    done = run_as("nbs-chat", here, *words)
    assert done.code == code, done
    return done.out.decode().splitlines()


def bus(here: Path, *words: str) -> Done:
    """Run ``nbs-bus``."""
    return run_as("nbs-bus", here, *words)


def published(here: Path, queue: str, *words: str) -> str:
    """Publish an event, and give its file's name."""
    done = bus(here, "publish", queue, *words)
    assert done.code == 0, done
    return done.out.decode().strip()


def pending(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.event"))


def fields(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8").partition("\n---\n")[0].splitlines()[1:]
    return dict(line.split(": ", 1) for line in lines)


def test_chats_side_by_side(here: Path) -> None:
    for number in range(1, 5):
        assert chat(here, "create", f"test{number}.chat") == [f"Created: {here}/test{number}.chat"]
    header = (here / "test1.chat").read_text("utf-8").splitlines()
    assert (header[0], header[-1]) == ("=== nbs-chat ===", "---")
    assert list(fields(here / "test1.chat")) == [
        "last-writer", "last-write", "file-length", "participants",
    ]  # fmt: skip

    for handle, text in (
        ("parser-worker", "Found 3 failing tests"),
        ("test-runner", "Confirmed - test_parse_int fails"),
        ("supervisor", "Both of you focus on parse_int first"),
    ):
        assert chat(here, "send", "test2.chat", handle, text) == []
    lines = chat(here, "read", "test2.chat")
    assert len(lines) == 3
    assert lines[0].endswith("parser-worker: Found 3 failing tests")
    assert lines[-1].endswith("supervisor: Both of you focus on parse_int first")

    for number in range(1, 11):
        chat(here, "send", "test3.chat", "worker", f"Message {number}")
    lines = chat(here, "read", "test3.chat", "--last=3")
    assert [line.rpartition("worker: ")[2] for line in lines] == [
        "Message 8", "Message 9", "Message 10",
    ]  # fmt: skip

    for handle in ("alice", "bob", "alice", "charlie", "bob"):
        chat(here, "send", "test4.chat", handle, f"from {handle}")
    lines = chat(here, "read", "test4.chat", "--since=alice")
    assert [line.rpartition("from ")[2] for line in lines] == ["charlie", "bob"]
    listed = [" ".join(line.split()) for line in chat(here, "participants", "test4.chat")]
    assert listed == ["alice 2 messages", "bob 2 messages", "charlie 1 messages"]
    assert chat(here, "participants", str(here / "test4.chat")) == chat(
        here, "participants", "test4.chat"
    )


def test_the_header_is_kept_and_texts_come_back(here: Path) -> None:
    file = here / "notes" / "test.chat"
    file.parent.mkdir()
    chat(here, "create", "notes/test.chat")
    texts = [
        "Some test message", 'Key: value="foo\\bar" (test=1)',
        "Héllo wörld — dashes and «quotes»", "!!!!CORRUPT_NOT_BASE64!!!!",
    ]  # fmt: skip
    for number, text in enumerate(texts):
        chat(here, "send", "notes/test.chat", f"worker-{'ab'[number % 2]}", text)
        assert chat(here, "read", "notes/test.chat", "--last=1")[0].endswith(f": {text}")
    kept = fields(file)
    assert int(kept["file-length"]) == file.stat().st_size
    assert kept["last-writer"] == "worker-b"
    assert kept["participants"] == "worker-a(2), worker-b(2)"
    for line in file.read_bytes().partition(b"\n---\n")[2].splitlines():
        base64.b64decode(line, validate=True)


def test_errors_and_empty_chats(here: Path) -> None:
    chat(here, "create", "empty.chat")
    assert chat(here, "read", "empty.chat") == []
    assert chat(here, "poll", "empty.chat", "watcher", "--timeout=0", code=3) == []
    chat(here, "create", "empty.chat", code=1)
    chat(here, "send", "empty.chat", code=4)
    chat(here, "foobar", code=4)
    chat(here, "search", "empty.chat", code=4)
    for words in (("read",), ("participants",), ("search", "x")):
        done = run_as("nbs-chat", here, words[0], "gone.chat", *words[1:])
        assert done.code == 2
        assert "gone.chat" in done.err
    long = "/".join([str(here), *["a" * 40] * 105, "test.chat"])
    assert len(long) > 4096
    for calls in (
        ("create", long), ("read", long), ("send", long, "handle", "text"),
        ("search", long, "x"), ("participants", long), ("poll", long, "me", "--timeout=0"),
        ("create", "x" * 4000 + ".chat"),
    ):  # fmt: skip
        done = run_as("nbs-chat", here, *calls)
        assert done.code in (1, 2, 4), done
        assert done.err.startswith(("tripod: ", "Error: "))
    assert chat(here, "read", "empty.chat") == []


def test_search(here: Path) -> None:
    chat(here, "create", "search.chat")
    for handle, text in (
        ("alice", "The parser fails on negative inputs like -42"),
        ("bob", "I can confirm the parser bug with -100 too"),
        ("alice", "Fix deployed, all tests passing now"),
        ("carol", "Unrelated message about the deployment pipeline"),
    ):
        chat(here, "send", "search.chat", handle, text)
    found = chat(here, "search", "search.chat", "parser")
    assert [line[:3] for line in found] == ["[0]", "[1]"]
    assert chat(here, "search", "search.chat", "PARSER") == found
    assert chat(here, "search", "search.chat", "parser", "--handle=alice") == found[:1]
    assert chat(here, "search", "search.chat", "xyzzy_no_match") == ["No matches found."]


def test_unread(here: Path) -> None:
    chat(here, "create", "unread.chat")
    for handle, text in (("alice", "one"), ("bob", "two"), ("alice", "three")):
        chat(here, "send", "unread.chat", handle, text)
    assert len(chat(here, "read", "unread.chat", "--unread=reader")) == 3
    assert chat(here, "read", "unread.chat", "--unread=reader") == []
    chat(here, "send", "unread.chat", "bob", "four")
    (line,) = chat(here, "read", "unread.chat", "--unread=reader")
    assert line.endswith("bob: four")
    assert len(chat(here, "read", "unread.chat", "--unread=reader2")) == 4
    assert (here / "unread.chat.cursors").is_file()
    for number in range(5, 11):
        chat(here, "send", "unread.chat", "sender", f"Msg {number}")
    lines = chat(here, "read", "unread.chat", "--unread=reader", "--last=3")
    assert [line.rpartition(": ")[2] for line in lines] == ["Msg 8", "Msg 9", "Msg 10"]


def test_a_chat_that_was_removed_and_begun_anew_does_not_trip_over_old_cursors(here: Path) -> None:
    chat(here, "create", "clamp.chat")
    for number in range(3):
        chat(here, "send", "clamp.chat", "alice", f"msg{number}")
    chat(here, "read", "clamp.chat", "--unread=alice")
    (here / "clamp.chat").unlink()
    chat(here, "create", "clamp.chat")
    chat(here, "send", "clamp.chat", "bob", "only_message")
    (line,) = chat(here, "read", "clamp.chat", "--unread=alice")
    assert line.endswith("bob: only_message")
    assert len(chat(here, "read", "clamp.chat")) == 1


def test_eight_agents_speak_at_once(here: Path) -> None:
    chat(here, "create", "stress.chat")
    tool = str(Path(sys.executable).with_name("nbs-chat"))
    agents = [f"agent-{letter}" for letter in "abcdefgh"]

    def speak(agent: str) -> list[int]:
        sends = ([tool, "send", "stress.chat", agent, f"{agent} says {n}"] for n in range(4))
        return [subprocess.run(send, cwd=here, check=False).returncode for send in sends]

    with ThreadPoolExecutor(len(agents)) as pool:
        assert list(pool.map(speak, agents)) == [[0] * 4] * len(agents)
    texts = [line.partition(": ")[2] for line in chat(here, "read", "stress.chat")]
    assert len(texts) == 32
    for agent in agents:  # in the order of each sender
        assert [t for t in texts if t.startswith(agent)] == [f"{agent} says {n}" for n in range(4)]
    kept = fields(here / "stress.chat")
    assert int(kept["file-length"]) == (here / "stress.chat").stat().st_size
    assert sorted(kept["participants"].split(", ")) == [f"{agent}(4)" for agent in agents]
    for line in (here / "stress.chat").read_bytes().partition(b"\n---\n")[2].splitlines():
        base64.b64decode(line, validate=True)


def test_agents_that_start_again_and_read_what_is_new(here: Path) -> None:
    chat(here, "create", "work.chat")
    for handle in ("claude", "theologian", "generalist", "theologian", "pythia", "theologian"):
        chat(here, "send", "work.chat", handle, f"from {handle}")
    assert chat(here, "read", "work.chat", "--since=theologian") == []
    assert len(chat(here, "read", "work.chat", "--since=nobody")) == 6
    assert len(chat(here, "read", "work.chat", "--since=generalist")) == 3
    for cycle in range(3):
        chat(here, "send", "work.chat", "pythia", f"cycle {cycle}")
        for agent in ("a", "b"):
            lines = chat(here, "read", "work.chat", f"--unread={agent}")
            assert len(lines) == (7 if cycle == 0 else 1)
            assert lines[-1].endswith(f"pythia: cycle {cycle}")
            assert chat(here, "read", "work.chat", f"--unread={agent}") == []
    large = "\n".join(f"line {n}: ä {'x' * 80}" for n in range(1, 101))
    chat(here, "send", "work.chat", "claude", large)
    lines = chat(here, "read", "work.chat", "--last=1")
    assert len(lines) == 100
    assert [lines[0].partition(": ")[2], lines[-1].strip()] == [
        large.splitlines()[0], large.splitlines()[-1],
    ]  # fmt: skip
    assert int(fields(here / "work.chat")["file-length"]) == (here / "work.chat").stat().st_size


def test_workers_are_asked_for(here: Path) -> None:
    def worker(*words: str) -> Done:
        return run_as("nbs-worker", here, *words)

    (here / ".nbs").mkdir()
    assert run_as("nbs-bus", here, "publish", ".nbs/events", "x", "y", "low").code == 2
    (here / ".nbs/events").mkdir()
    assert run_as("nbs-bus", here, "publish", ".nbs/events", "x", "y", "low").code == 0
    assert (worker("list").code, worker("list").out) == (0, b"")
    assert worker("help").code == 0
    for words, code in (
        (("spwan",), 4),
        (("spawn", "Bad Slug", ".", "x"), 4),
        (("search", "none-0000"), 4),
        (("search", "none-0000", "x", "--unknown-flag"), 4),
        (("search", "none-0000", "x"), 2),
        (("search", "../../etc/passwd", "x"), 2),
        (("status", "a/b"), 2),
        (("results", "none-0000"), 2),
        (("dismiss", "none-0000"), 2),
    ):
        assert worker(*words).code == code, words
    log = here / ".nbs/workers/parser-a3f1.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"".join(b"before %d\n" % n for n in range(60)) + b"\x1b[31mFIND\x1b[0mME\n")
    log.with_suffix(".md").write_text("# Worker: parser\n\n## Status\n\nState: running\n")
    found = worker("search", "parser-a3f1", "FINDME", "--context=2")
    assert (found.code, found.out) == (0, b"before 58\nbefore 59\nFINDME\n")
    assert len(worker("search", "parser-a3f1", "FIND.E").out.splitlines()) == 51
    assert worker("search", "parser-a3f1", "absent").code == 1
    assert worker("search", "parser-a3f1", "[bad").code == 4


def test_queues_side_by_side(here: Path) -> None:
    for number in (1, 2, 3, 4):
        (here / f"events{number}" / "processed").mkdir(parents=True)
    name = published(here, "events1", "worker1", "task-complete", "high", "Test payload")
    text = (here / "events1" / name).read_text("utf-8")
    for line in (
        "source: worker1", "type: task-complete", "priority: high",
        "dedup-key: worker1:task-complete", "payload: |", "  Test payload",
    ):  # fmt: skip
        assert line in text.splitlines()
    assert re.search(r"^timestamp: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", text, re.MULTILINE)
    assert bus(here, "read", "events1", name).out.decode() == text

    for priority in ("low", "critical", "normal", "high"):
        published(here, "events2", f"src-{priority}", f"{priority}-event", priority, priority)
    listed = bus(here, "check", "events2").out.decode().splitlines()
    assert [line.partition("]")[0][1:] for line in listed] == ["critical", "high", "normal", "low"]
    assert all(re.fullmatch(r"\[\w+\] \S+\.event \(\d+s ago\)", line) for line in listed)
    first = published(here, "events3", "first", "normal-a", "normal", "first")
    second = published(here, "events3", "second", "normal-b", "normal", "second")
    listed = bus(here, "check", "events3").out.decode().splitlines()
    assert [line.split()[1] for line in listed] == [first, second]
    bare = published(here, "events4", "bare", "bare-event", "low")
    assert "payload" not in (here / "events4" / bare).read_text("utf-8")
    assert [len(pending(here / f"events{number}")) for number in (1, 2, 3, 4)] == [1, 4, 2, 1]
    assert not list(here.glob("events*/.tmp-*"))


def test_acknowledging_and_pruning(here: Path) -> None:
    queue = here / "events"
    (queue / "processed").mkdir(parents=True)
    name = published(here, "events", "acker", "ack-test", "normal", "ack me")
    assert bus(here, "ack", "events", name).code == 0
    assert (pending(queue), pending(queue / "processed")) == ([], [name])
    for number in range(3):
        published(here, "events", f"w{number}", f"evt{number}", "normal", "text")
    assert bus(here, "ack-all", "events").out == b"Acknowledged 3 events\n"
    assert (len(pending(queue)), len(pending(queue / "processed"))) == (0, 4)
    assert bus(here, "prune", "events", "--max-bytes=300").out.startswith(b"Pruned 2 events (")
    kept = pending(queue / "processed")
    assert len(kept) == 2
    assert sum((queue / "processed" / one).stat().st_size for one in kept) <= 300
    (queue / "config.yaml").write_text("retention-max-bytes: 1\n")
    assert bus(here, "prune", "events").out.startswith(b"Pruned 2 events (")
    (here / "bare").mkdir()
    done = bus(here, "prune", "bare")
    assert (done.code, done.out.startswith(b"Pruned 0 events")) == (0, True)


def test_status_and_handles(here: Path) -> None:
    (here / "events").mkdir()
    for source, priority in (
        ("worker-a", "critical"),
        ("worker-a", "high"),
        ("worker-b", "normal"),
    ):
        published(here, "events", source, f"{priority}-evt", priority)
    text = bus(here, "status", "events").out.decode()
    assert text.startswith(
        "Pending: 3 total (critical=1, high=1, normal=1, low=0)\nOldest pending: "
    )
    assert "WARNING" not in text
    assert len(bus(here, "check", "events", "--handle=worker-a").out.splitlines()) == 2
    assert bus(here, "check", "events", "--handle=nobody").out == b""
    assert bus(here, "ack-all", "events", "--handle=worker-a").out == b"Acknowledged 2 events\n"
    (left,) = pending(here / "events")
    assert "worker-b" in left
    old = here / "events" / "1000000000000000-old-note-1.event"
    old.write_text(
        "source: old\ntype: note\npriority: low\ntimestamp: 2001-09-09T01:46:40Z\n"
        "dedup-key: old:note\n"
    )
    (here / "events" / "config.yaml").write_text("ack-timeout: 60\n")
    assert "WARNING: 1 stale event (unacked > 60s)" in bus(here, "status", "events").out.decode()


def test_codes_of_the_queue(here: Path) -> None:
    (here / "events").mkdir()
    for words, code in (
        (("check", "nonexistent"), 2),
        (("read", "events", "nonexistent.event"), 3),
        (("ack", "events", "nonexistent.event"), 3),
        ((), 4),
        (("publish",), 4),
        (("publish", "events", "src", "evt", "invalid_priority"), 4),
        (("publish", "events", "src", "evt", "normal", "x", "--dedup-window=abc"), 4),
        (("publish", "events", "src", "evt", "normal", "x", "--dedup-window=-5"), 4),
        (("read", "events", "."), 4),
        (("ack", "events", "."), 4),
        (("read", "events", "../x.event"), 4),
        (("help",), 0),
    ):
        assert bus(here, *words).code == code, words
    for priority in ("critical", "high", "normal", "low"):
        published(here, "events", f"src-{priority}", f"test-{priority}", priority, "payload")


def test_duplicates(here: Path) -> None:
    queue = here / "events"
    queue.mkdir()
    event = ("dup-src", "dup-type", "normal")
    first = published(here, "events", *event, "first", "--dedup-window=300")
    assert bus(here, "publish", "events", *event, "second", "--dedup-window=300").code == 5
    assert pending(queue) == [first]
    published(here, "events", "other-src", "dup-type", "normal", "third", "--dedup-window=300")
    published(here, "events", *event, "second")
    assert bus(here, "ack-all", "events").code == 0
    published(here, "events", *event, "again", "--dedup-window=300")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("dedup-window: 300\n", 5),
        ("dedup-window: 300", 5),
        ("# a note\nretention-max-bytes: 8388608\nunknown-key: x\ndedup-window: 60\n", 5),
        ("dedup-window: 300\n" + "x" * 9_000 + ": 1\n", 5),
        ("retention-max-bytes: notanumber\ndedup-window: -5\n", 0),
        ("dedup-window:\nretention-max-bytes:\n", 0),
        ("dedup-window: 99999999999999999999999999\n", 0),
        (":\n:::\n  : x\ndedup-window 300\n", 0),
        ("\x00\x01\x02\x7f\n", 0),
    ],
)
def test_the_configuration_of_a_queue(here: Path, text: str, code: int) -> None:
    (here / "events").mkdir()
    (here / "events" / "config.yaml").write_text(text)
    event = ("publish", "events", "cfg-src", "cfg-type", "normal")
    assert bus(here, *event, "first").code == 0
    assert bus(here, *event, "second").code == code
    assert bus(here, *event, "third", "--dedup-window=1000").code == 5


def test_a_chat_with_a_queue_beside_it(here: Path) -> None:
    team = here / ".nbs"
    (team / "chat").mkdir(parents=True)
    queue = team / "events"
    (queue / "processed").mkdir(parents=True)
    file = ".nbs/chat/live.chat"
    chat(here, "create", file)

    def events_of(text: str) -> list[str]:
        """Types and payloads of the events that a message publishes."""
        before = set(pending(queue))
        chat(here, "send", file, "charlie", text)
        shown = []
        for name in pending(queue):
            if name not in before:
                lines = (queue / name).read_text("utf-8").splitlines()
                shown.append(f"{lines[1][6:]} {lines[2][10:]} {' '.join(lines[6:])}".strip())
        return shown

    assert events_of("payload check message") == [
        "chat-message normal   charlie: payload check message"
    ]
    assert len(events_of("@alice please look")) == 2
    assert sum("chat-mention high" in one for one in events_of("@a1, @b2 and @c3: look")) == 3
    assert len(events_of("write to alice@example.com")) == 1
    assert sum("chat-mention" in one for one in events_of("@parser-worker and @my_agent")) == 2
    assert sum("chat-mention" in one for one in events_of("@alice")) == 1
    assert len(events_of("x" * 50_000)) == 1
    assert len(events_of("quotes \" ' ` $HOME \\ | & ; < > #")) == 1
    assert events_of("") == []
    assert len(set(pending(queue))) == len(pending(queue))
    assert pending(queue / "processed") == []
    for path in queue.glob("*.event"):
        path.unlink()
    (queue / "processed").rmdir()
    (queue / "config.yaml").unlink(missing_ok=True)
    os.rmdir(queue)
    chat(here, "send", file, "alice", "the queue was removed")
    assert chat(here, "read", file, "--last=1")[0].endswith("alice: the queue was removed")
