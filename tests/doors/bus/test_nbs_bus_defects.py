"""What the original bus gets wrong (spec: nbs-compat B12), each tried on ``nbs-bus``."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from unittest import mock

import pytest
import yaml
from doors.inside import Done, run_as
from hypothesis import given
from hypothesis import strategies as st
from story import Clock, Original, folder
from strategies import FEWER

from tripod.ledger import files as ledger_files
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.projections.bus.format import MAX_WORD

PROGRAM = Path(sys.executable).with_name("nbs-bus")


@pytest.fixture
def team(tmp_path: Path) -> Path:
    (tmp_path / "events").mkdir()
    return tmp_path


def bus(team: Path, command: str, *words: str) -> Done:
    return run_as("nbs-bus", team, command, "events", *words)


def names(team: Path, where: str = "events") -> list[str]:
    return sorted(path.name for path in (team / where).glob("*.event"))


def publish(team: Path, *words: str) -> str:
    done = bus(team, "publish", *words)
    assert done.code == 0, done.err
    return done.out.decode().strip()


def events_of_others(team: Path, count: int, size: int = 10) -> list[str]:
    """As many events as the original's publishers would have left."""
    original = Original(team, Clock())
    made = []
    for _ in range(count):
        original.clock.move(0.001)
        made.append(original.publish("ann", "note", payload="x" * size))
    return made


# 1: a cap at 256 -------------------------------------------------------------------------------


def test_nothing_is_capped_at_256(team: Path) -> None:
    made = events_of_others(team, 700)
    assert len(bus(team, "check").out.splitlines()) == 700
    assert bus(team, "status").out.startswith(b"Pending: 700 total (")
    assert bus(team, "ack-all").out == b"Acknowledged 700 events\n"
    assert names(team, "events/processed") == made
    size = (team / "events/processed" / made[0]).stat().st_size
    done = bus(team, "prune", f"--max-bytes={3 * size}")
    assert done.out.startswith(b"Pruned 697 events (")
    assert names(team, "events/processed") == made[-3:]


def test_the_default_limit_prunes_what_the_command_can_publish(team: Path) -> None:
    text = "x" * 1_000_000
    (team / "text").write_text(text)
    for number in range(17):
        publish(team, f"a{number}", "note", "low", f"--file={team}/text")
    bus(team, "ack-all")
    assert bus(team, "prune").out.startswith(b"Pruned 1 event (")


def test_the_path_of_a_file_may_be_any_bytes_and_a_handle_not(team: Path) -> None:
    file = team / os.fsdecode(b"caf\xe9")
    file.write_text("hello")
    name = publish(team, "ann", "note", "low", f"--file={file}")
    assert b"hello" in bus(team, "read", name).out
    for words in (("check", "--handle=\udce9"), ("check", "--reader=\udce9")):
        done = bus(team, *words)
        assert (done.code, "is not UTF-8 (character 1)" in done.err) == (4, True), done


# 2: a poison file ------------------------------------------------------------------------------

POISON = ("0-a-b-1.event", "-.event", "99999999999999999999-a-b-1.event", "x.event", "1-a.event")


@pytest.mark.parametrize("where", ["events", "events/processed"])
@pytest.mark.parametrize("content", [b"", b"source: a\ntype: b\npriority: low\n", b"\xff\x00"])
def test_no_file_stops_a_command(team: Path, where: str, content: bytes) -> None:
    publish(team, "ann", "note", "low")
    (team / where).mkdir(exist_ok=True)
    for name in POISON:
        (team / where / name).write_bytes(content)
    for words in (
        ("check",),
        ("status",),
        ("publish", "ann", "other", "low", "--dedup-window=300"),
        ("ack-all",),
        ("prune", "--max-bytes=1"),
    ):
        done = bus(team, *words)
        assert done.code == 0, (words, done)


# 3: dedup --------------------------------------------------------------------------------------


def test_of_simultaneous_publishers_one_gets_in(team: Path) -> None:
    bus(team, "status")
    words = [str(PROGRAM), "publish", "events", "ann", "note", "low", "--dedup-window=300"]
    for _ in range(2):
        racing = [
            subprocess.Popen(words, cwd=team, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(6)
        ]
        codes = sorted(process.wait(60) for process in racing)
        assert codes == [0, 5, 5, 5, 5, 5]
        bus(team, "ack-all")


def test_a_key_has_two_parts(team: Path) -> None:
    publish(team, "a:b", "c", "low", "--dedup-window=300")
    publish(team, "a", "b:c", "low", "--dedup-window=300")
    assert bus(team, "publish", "a:b", "c", "low", "--dedup-window=300").code == 5


def test_a_clock_that_is_ahead_blocks_a_key_for_no_longer_than_the_window(team: Path) -> None:
    clock = Clock()
    ahead = Clock()
    ahead.move(3600)
    Original(team, ahead).publish("ann", "note")
    with clock.running():
        words = ("publish", "ann", "note", "low", "--dedup-window=300")
        assert bus(team, *words).code == 0
        assert bus(team, *words).code == 5
        clock.move(3600)  # now the other one is of this moment
        assert bus(team, *words).code == 5
        clock.move(301)
        assert bus(team, *words).code == 0


# 4: no index -----------------------------------------------------------------------------------


def test_no_pending_file_is_opened_to_look_at_the_queue(team: Path) -> None:
    events_of_others(team, 50)
    bus(team, "check")
    opened: list[str] = []
    real = os.open

    def note(path: str, *rest: object, **more: object) -> int:
        opened.append(str(path))
        return real(path, *rest, **more)  # type: ignore[arg-type]

    with mock.patch.object(os, "open", note):
        assert len(bus(team, "check").out.splitlines()) == 50
        bus(team, "status")
        bus(team, "publish", "ann", "note", "low", "--dedup-window=4000000000")
    assert [path for path in opened if path.endswith(".event")] == []


# 5: lost payloads, options that are not there --------------------------------------------------


@pytest.mark.parametrize("text", ["-- note", "--- a\n--- b", "-v", "-", "--", "--a b=c"])
def test_a_payload_that_begins_with_dashes_is_published(team: Path, text: str) -> None:
    words = (*("--",) * (text == "--"), text)
    name = publish(team, "ann", "note", "low", *words)
    assert yaml.safe_load((team / "events" / name).read_bytes())["payload"] == f"{text}\n"


def test_a_payload_behind_an_option_is_published(team: Path) -> None:
    name = publish(team, "ann", "note", "low", "--dedup-window=0", "text")
    assert b"payload: |\n  text\n" in bus(team, "read", name).out


def test_a_slip_in_an_option_acknowledges_nothing(team: Path) -> None:
    publish(team, "ann", "note", "low")
    for slip in ("--handel=x", "--handle", "-handle=x", "handle=x"):
        assert bus(team, "ack-all", slip).code == 4
    assert len(names(team)) == 1


# 6: YAML ---------------------------------------------------------------------------------------

WORDS = st.sampled_from(["[MEDIC-WARNING]", "*t", "yes", "123", "~", "1e3", "a: b", "12:30"])
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60
) | st.sampled_from(["  two\nspaces", "\n\nlate", "tab\t", "\x1b[31m", "a\r\nb", "\x85\u2028"])


@FEWER
@given(source=WORDS, type_=WORDS, text=TEXTS)
def test_any_parser_reads_the_file_back(source: str, type_: str, text: str) -> None:
    with folder() as where:
        (where / "events").mkdir()
        name = publish(where, source, type_, "low", "--", text)
        data = yaml.safe_load((where / "events" / name).read_bytes())
        assert (data["source"], data["type"]) == (source, type_)
        assert data.get("payload", "").rstrip("\n") == text.rstrip("\n")
        assert data["dedup-key"] == f"{source}:{type_}"


def test_control_bytes_reach_no_terminal(team: Path) -> None:
    (team / "events/1600000000000000-\x1b[31m-x-1.event").write_text(
        "source: a\ntype: b\npriority: low\n"
    )
    assert b"\x1b" not in bus(team, "check").out
    assert b"\\x1b[31m" in bus(team, "check").out


@pytest.mark.parametrize("words", [("check",), ("check", "--reader=ann"), ("wait",),
                                   ("recover", "--as=ann"), ("claim", "--by=ann")])  # fmt: skip
def test_a_file_name_cannot_imitate_another_event(team: Path, words: tuple[str, ...]) -> None:
    name = "1600000000000000-a\n[critical] 1600000000000001-boss-stop-1.event"
    (team / "events" / name).write_text("source: a\ntype: b\npriority: low\n")
    done = bus(team, *words)
    (line,) = done.out.decode().splitlines()
    assert r"-a\x0a[critical] " in line


# 7: temporary files ----------------------------------------------------------------------------


def test_an_unfinished_file_is_no_event(team: Path) -> None:
    name = ".tmp-1600000000000000-77.event"
    (team / "events" / name).write_text("source: a\ntype: b\npriority: low\n")
    for words in (("check",), ("ack-all",), ("status",)):
        done = bus(team, *words)
        assert done.code == 0
        assert "warning" not in done.err
    assert bus(team, "ack", name).code == 4
    assert (team / "events" / name).exists()


def test_no_temporary_file_is_left_behind(team: Path) -> None:
    before = set(os.listdir(team / "events"))
    for number in range(3):
        publish(team, f"a{number}", "note", "low", "text")
    bus(team, "ack-all")
    bus(team, "prune", "--max-bytes=1")
    assert set(os.listdir(team / "events")) - before == {"processed"}
    assert os.listdir(team / "events/processed") == []


# 8: durability, order --------------------------------------------------------------------------


@pytest.mark.parametrize("boots", ["known", "unknown"])
def test_what_is_published_is_chained_and_synced(
    team: Path, boots: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite waits for the entry; for the file it is waited where no start of the host is known."""
    if boots == "unknown":
        monkeypatch.setattr(ledger_files, "BOOT_ID", "/nonexistent")
    synced: list[int] = []
    real = os.fsync

    def note(fd: int) -> None:
        synced.append(fd)
        real(fd)

    bus(team, "status")
    with mock.patch.object(os, "fsync", note):
        publish(team, "ann", "note", "low")
    assert len(synced) == (0 if boots == "known" else 2)  # the file, and its folder
    db = read_only(str(team / ".nbs/ledger.db"))
    headers = [entry.header for entry in SQLiteReader(db).read()]
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()
    assert b'"prev":"' in headers[-1]


def test_a_clock_that_goes_back_reorders_nothing_in_the_ledger(team: Path) -> None:
    clock = Clock()
    with clock.running():
        first = publish(team, "ann", "note", "low")
        clock.move(-3600)
        second = publish(team, "bob", "note", "low")
    db = read_only(str(team / ".nbs/ledger.db"))
    told = [
        entry.data["name"] for entry in SQLiteReader(db).read() if entry.kind == "bus.published"
    ]
    db.close()
    assert told == [first, second]


# 9: consumers ----------------------------------------------------------------------------------


def test_no_two_consumers_take_one_event(team: Path) -> None:
    made = events_of_others(team, 12)
    taken: list[str] = []

    def consume(who: str) -> None:
        while True:
            done = subprocess.run(
                [PROGRAM, "claim", "events", f"--by={who}"],
                cwd=team, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            if done.returncode:
                assert done.returncode == 3, done.stderr
                return
            taken.append(done.stdout.strip())

    bus(team, "status")
    threads = [Thread(target=consume, args=(f"c{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == made


def test_of_racing_acknowledgements_one_wins_and_the_others_get_3(team: Path) -> None:
    bus(team, "status")
    for _ in range(2):
        name = publish(team, "ann", "note", "low")
        racing = [
            subprocess.Popen(
                [PROGRAM, "ack", "events", name, f"--as=c{number}"],
                cwd=team, stderr=subprocess.DEVNULL,
            )
            for number in range(6)
        ]  # fmt: skip
        assert sorted(process.wait(60) for process in racing) == [0, 3, 3, 3, 3, 3]


def test_a_consumer_is_woken(team: Path) -> None:
    bus(team, "status")
    with subprocess.Popen(
        [PROGRAM, "wait", "events", "--timeout=60"], cwd=team, stdout=subprocess.PIPE, text=True
    ) as waiting:
        name = publish(team, "ann", "note", "low")
        out, _ = waiting.communicate(timeout=60)
    assert name in out
    assert waiting.returncode == 0


# 10: the trail ---------------------------------------------------------------------------------


def test_who_acknowledged_and_pruned_is_recorded(team: Path) -> None:
    name = publish(team, "ann", "note", "low")
    bus(team, "ack", name, "--as=bob")
    bus(team, "prune", "--max-bytes=1", "--as=cy")
    db = read_only(str(team / ".nbs/ledger.db"))
    told = [(entry.kind, entry.actor) for entry in SQLiteReader(db).read()][-2:]
    published = [e.data["name"] for e in SQLiteReader(db).read() if e.kind == "bus.published"]
    db.close()
    assert told == [("bus.acked", "bob"), ("bus.pruned", "cy")]
    assert published == [name]


@pytest.mark.parametrize("many", [False, True])
def test_an_acknowledgement_writes_over_nothing(team: Path, *, many: bool) -> None:
    made = [publish(team, f"a{n}", "note", "low") for n in range(1)]
    if many:
        made += events_of_others(team, 150)
    done = team / "events/processed"
    done.mkdir()
    (done / made[0]).write_text("source: evil\ntype: b\npriority: low\n")
    answer = bus(team, "ack-all") if many else bus(team, "ack", made[0])
    assert answer.code == 0
    assert names(team) == []
    db = read_only(str(team / ".nbs/ledger.db"))
    kept = [
        str(entry.data) for entry in SQLiteReader(db).read() if "source: evil" in str(entry.data)
    ]
    db.close()
    assert kept


# 12: the documents -----------------------------------------------------------------------------


def test_each_documented_setting_is_known(team: Path) -> None:
    (team / "events/config.yaml").write_text(
        "dedup-window: 300\nretention-max-bytes: 16777216\nnotify: inotifywait\n"
        "poll-interval: 5\nack-timeout: 120\npythia-interval: 20\npythia-channel: live.chat\n"
    )
    assert "warning" not in bus(team, "status").err
    for command in (("publish", "ann", "note", "low"), ("prune",), ("status",)):
        assert bus(team, *command).err == ""


def test_the_tail_of_a_long_comment_sets_nothing(team: Path) -> None:
    for length in (509, 510, 511, 512, 1_022):
        text = "# " + "x" * (length - 2) + "dedup-window: 300\n"
        (team / "events/config.yaml").write_text(text)
        for _ in range(2):
            publish(team, "ann", "note", "low")


def test_a_line_of_the_configuration_that_is_not_taken_is_told(team: Path) -> None:
    text = 'dedup-window: 300 # quotes and comments are allowed\nack-timeout: "soon"\nnope: 1\n'
    (team / "events/config.yaml").write_text(text)
    publish(team, "ann", "note", "low")
    done = bus(team, "publish", "ann", "note", "low")
    assert done.code == 5
    assert re.findall(r"config\.yaml:([0-9]): (\S+):", done.err) == [
        ("2", "ack-timeout"),
        ("3", "nope"),
    ]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_configuration_that_is_no_file_stops_nothing(
    team: Path, make: Callable[[Path], None]
) -> None:
    make(team / "events/config.yaml")
    for words in (("publish", "ann", "note", "low"), ("prune",), ("status",)):
        done = bus(team, *words)
        assert done.code == 0, done
        assert "the defaults hold until it is a regular file" in done.err


def test_names_that_the_limits_allow_are_published(team: Path) -> None:
    for source, type_ in (("a" * MAX_WORD, "b" * 90), ("a" * 90, "b" * MAX_WORD)):
        publish(team, source, type_, "low")


def test_what_check_lists_can_be_read_by_its_second_word(team: Path) -> None:
    publish(team, "ann", "note", "low", "text")
    (line,) = bus(team, "check").out.decode().splitlines()
    assert b"source: ann\n" in bus(team, "read", line.split(" ")[1]).out
