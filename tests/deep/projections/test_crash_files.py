"""Killed between the ledger and its files: the next command makes them agree, and loses nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from children import run_forked
from story import Story, folder, tree

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.projections.bus.tables import BUS
from tripod.projections.chat import format as chat_format
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team

# The child does one act and dies in it as if the power went: no handler of its own runs.
CHILD = """
import os, sys
sys.path[:0] = sys.argv[3:5]
from pathlib import Path
from tripod.projections import swap
from tripod.projections.disk import Disk
from tripod.team import adoption
from tripod.bus import events as bus
from tripod.chat import writer as chat
from tripod.recovery import rebuild as recover
from tripod.decisions import writer as scribe
from tripod.team.files import EventFileMoves, Files
from tripod.team.team import Team

root, act, death = sys.argv[1], sys.argv[2], sys.argv[5]
die = lambda *_, **__: os._exit(9)
done = []

def after_first(real):
    def patched(*arguments, **options):
        if done:
            die()
        done.append(1)
        return real(*arguments, **options)
    return patched

if death == "before the files":
    Files.project = die
elif death == "between the files":
    for kind, name in ((Files, "_put"), (Files, "_remove"), (EventFileMoves, "_finish_one")):
        setattr(kind, name, after_first(getattr(kind, name)))
elif death == "in a file":
    Disk.stage = lambda disk, path, file, **_: (
        Path(disk.full(path)).with_name(".tripod-new-1").write_bytes(file.data[:5]), die())
    real = os.write
    def torn(fd, data):
        if bytes(data).startswith(b"\\n---"):
            real(fd, data[:len(data) // 2]), die()
        return real(fd, data)
    os.write = torn
elif death == "with two names changed":
    swap.take_swapped = die
elif death == "behind the log's end":
    append = swap.append_or_swap
    swap.append_or_swap = lambda *given, **more: (append(*given, **more), die())
elif death == "before the cursor":
    Files.note = die

with Team(root) as team:
    {
        "publish": lambda: bus.publish(team, "a", "b", "high", "x"),
        "ack": lambda: bus.ack(team, next(bus.check(team)).name),
        "ack-all": lambda: bus.ack_all(team),
        "prune": lambda: bus.prune(team, 1),
        "create": lambda: chat.create(team, "new"),
        "send": lambda: chat.send(team, "live", "ann", "hi @bob"),
        "rotate": lambda: chat.send(team, "full", "ann", "one too many"),
        "log": lambda: scribe.log(team, scribe.DecisionRequest("T", ["ann"], "r")),
        "sync": lambda: adoption.sync(team),
        "rebuild": lambda: recover.rebuild(team),
    }[act]()
"""
ACTS = ("publish", "ack", "ack-all", "prune", "create", "send", "rotate", "log", "sync", "rebuild")
DEATHS = {
    "before the files": ACTS,
    "between the files": ("create", "send", "rotate", "log", "rebuild"),
    "in a file": ("publish", "create", "send", "rotate", "log", "sync", "rebuild"),
    "with two names changed": ("send", "rotate"),
    "behind the log's end": ("log",),
    "before the cursor": ACTS,
}
"""Where a child dies, and the acts that come to that point."""
HERE = Path(__file__).resolve().parents[2]


def die_in(root: Path, act: str, death: str) -> None:
    """One act by a child that dies in it."""
    child = run_forked(CHILD, str(root), act, str(HERE), str(HERE.parent), death)
    assert child.returncode == 9, child.stderr


def prepare(root: Path, act: str) -> Story:
    """A team with something of everything, and with what ``act`` needs."""
    story = Story(root)
    story.run([("create", "live"), ("say", "live", "ann", "hello"), ("decide", "D", "r", ())])
    story.original.ack(story.original.publish("x", "y"))
    if act == "rotate":
        lines = [chat_format.format_line("bob", story.clock.seconds, f"m{n}") for n in range(2_000)]
        body = b"".join(line + b"\n" for line in lines)
        header = chat_format.ChatHeader("bob", story.original._time(), (("bob", 2_000),))
        story.original.put(
            "chat/full.chat", chat_format.format_header(header, len(body)) + body, 0o600
        )
    story.step(("sync",))
    if act == "sync":
        story.original.publish("x", "new")
        story.original.put("events/config.yaml", b"ack-timeout: 3\n")
    if act == "rebuild":
        story.lose_folders()
    return story


NEXT: dict[str, Callable[[Team], object]] = {
    "refresh": lambda team: team.refresh(),
    "publish": lambda team: bus.publish(team, "next", "command", "low"),
    "sync": adoption.sync,
    "rebuild": recover.rebuild,
}


@pytest.mark.drawn
@pytest.mark.slow
@pytest.mark.parametrize(("death", "act"), [(d, a) for d, acts in DEATHS.items() for a in acts])
def test_the_next_command_heals(act: str, death: str) -> None:
    with folder() as root:
        story = prepare(root, act)
        die_in(story.root, act, death)
        with Team(str(story.root)) as team:
            held = list(team.store.read())
        follow = list(NEXT)[(ACTS.index(act) + list(DEATHS).index(death)) % len(NEXT)]
        with Team(str(story.root)) as team:
            NEXT[follow](team)
            told = ("outside",) if act == "rebuild" else ("outside", "gone")
            assert [text for text in team.warnings if any(word in text for word in told)] == []
            after = list(team.store.read())
            assert after[: len(held)] == held
            assert len(after) - len(held) == (follow == "publish"), follow
            assert list(file_differences(team.source, team.disk)) == []
            if death == "before the files" and act not in ("sync", "rebuild"):
                assert team.healed > 0
            adoption.sync(team)
            assert team.store.head().size == len(after)
        assert list(story.root.rglob(".tripod-*")) == []
        shown = {path for path in tree(story.root) if path.endswith(".event")}
        with Team(str(story.root)) as team:
            assert shown == set(BUS.paths(team.source))


@pytest.mark.drawn
@pytest.mark.slow
@pytest.mark.parametrize(
    ("death", "act"),
    [(d, a) for d, acts in DEATHS.items() for a in acts if a in ("send", "rotate", "log", "ack")],
)
def test_what_others_write_meanwhile_is_not_lost(act: str, death: str) -> None:
    with folder() as root:
        story = prepare(root, act)
        die_in(story.root, act, death)
        story.clock.move(60)
        channel = "full" if act == "rotate" else "live"
        story.original.say(channel, "eve", "meanwhile")
        story.original.log("Meanwhile", number=5)
        story.original.ack(story.original.publish("eve", "meanwhile"))
        with Team(str(story.root)) as team:
            team.refresh()
            assert [text for text in team.warnings if "outside" in text] == []
            live = [message.text for message in chat_read.messages(team, channel)]
            assert live[-1] == "meanwhile"
            if act in ("send", "rotate"):
                assert live[-2] in ("hi @bob", "one too many")
            log = (story.root / "scribe/log.md").read_bytes()
            assert log.count(b"\n### D-") == 2 + (act == "log")
            assert list(file_differences(team.source, team.disk)) == []
            assert [e.kind for e in team.store.read() if e.kind == "file.displaced"] == []
            assert adoption.sync(team).entries == 0
            # The original splits lines off that we had split off already: its archive is left.
            twice = "its lines had been split off already" if act == "rotate" else None
            assert [text for text in team.warnings if twice is None or twice not in text] == []


LOOP = """
import sys
sys.path[:0] = sys.argv[2:4]
from tripod.bus import events as bus
from tripod.chat import writer as chat
from tripod.team.team import Team
with Team(sys.argv[1]) as team:
    print("ready", flush=True)
    number = 0
    while True:
        print(bus.publish(team, "loop", "n", "low", str(number), dedup_window=0), flush=True)
        print(chat.send(team, "live", "loop", "said").seq, flush=True)
        number += 1
"""


@pytest.mark.slow
def test_twenty_kills_lose_nothing_that_was_answered(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.run([("create", "live")])
    answered: list[str] = []
    for attempt in range(20):
        child = subprocess.Popen(
            [sys.executable, "-c", LOOP, str(story.root), str(HERE), str(HERE.parent)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        lines = [child.stdout.readline() for _ in range(attempt % 7)]
        os.kill(child.pid, signal.SIGKILL)
        rest = child.communicate()[0]
        lines += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        answered += [line.strip() for line in lines]
        with Team(str(story.root)) as team:
            team.refresh()
            assert team.warnings == []
            assert list(file_differences(team.source, team.disk)) == []
    names = {name for name in answered if name.endswith(".event")}
    assert names <= {path.name for path in (story.root / "events").iterdir()}
    with Team(str(story.root)) as team:
        seqs = {str(message.seq) for message in chat_read.messages(team, "live")}
        assert {seq for seq in answered if seq.isdecimal()} <= seqs
    assert len(answered) > 40


def test_a_ledger_that_was_not_begun_is_begun_by_init(tmp_path: Path) -> None:
    """The first act died before its COMMIT: the file is there and holds nothing."""
    program = (
        "import os, sys\nfrom tripod.team import adoption\nfrom tripod.team import team\n"
        "team.take_in = lambda *_: os._exit(9)\nadoption.init(sys.argv[1])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    assert subprocess.run(command, cwd=HERE.parent, check=False).returncode == 9
    found = adoption.init(str(tmp_path))
    assert found.begun
    with Team(str(tmp_path / ".nbs")) as team:
        assert [e.kind for e in team.store.read()] == ["ledger.opened", "ledger.adopted"]


# A disk that refuses ---------------------------------------------------------------------------

REFUSED = """
import os, resource, sys
sys.path[:0] = sys.argv[3:5]
from tripod.ledger.errors import LedgerError
from tripod.bus import events as bus
from tripod.chat import writer as chat
from tripod.team.team import Team
root, how = sys.argv[1:3]
if how == "full":
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = os.path.getsize(root + "/ledger.db-wal") + 200_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
else:
    if os.geteuid() == 0:
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
try:
    with Team(root) as team:
        while True:
            print(bus.publish(team, "loop", "n", "low", "x" * 5_000), flush=True)
            for warning in team.warnings:
                print("warning:", warning, file=sys.stderr)
except (LedgerError, OSError) as error:
    print(type(error).__name__, error, file=sys.stderr)
"""


def refuse(root: Path, how: str) -> tuple[list[str], str]:
    """What was answered until the disk refused, and what was said then."""
    command = [sys.executable, "-c", REFUSED, str(root), how, str(HERE), str(HERE.parent)]
    child = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return child.stdout.split(), child.stderr


def test_a_full_disk_loses_nothing_and_says_so() -> None:
    with folder() as root:
        story = Story(root)
        with Team(str(story.root)) as keep_the_log_open:
            keep_the_log_open.refresh()
            answered, said = refuse(story.root, "full")
        assert "nothing was recorded" in said
        assert "UnwritableError" in said
        with Team(str(story.root)) as team:
            team.refresh()
            assert {event.name for event in bus.check(team)} >= set(answered)
            assert list(file_differences(team.source, team.disk)) == []
        assert answered


def test_a_read_only_team_says_so() -> None:
    with folder() as root:
        story = Story(root)
        root.chmod(0o755)
        paths = [story.root, *story.root.rglob("*")]
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        answered, said = refuse(story.root, "read-only")
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert answered == []
        assert "UnwritableError" in said
        assert "nothing was recorded" in said


def test_a_place_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.run([("create", "live")])
    (story.root / "counts.json").unlink()
    (story.root / "counts.json").mkdir()
    with story.team() as team:
        chat_send.send(team, "live", "ann", "hi")
        assert "counts.json: recorded, but the file is not written yet" in team.warnings[-1]
    (story.root / "counts.json").rmdir()
    with story.team() as team:
        team.refresh()
        assert list(file_differences(team.source, team.disk)) == []
