"""A redaction erases a text everywhere we hold it, and every proof, count and rule still holds."""

import os
import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest
from specimens import build, database, unguarded
from story import Story, tables, tree

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import reader as decisions_read
from tripod.decisions import writer as decisions_log
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.ledger.errors import LedgerDamagedError
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.sqlite.schema import MIGRATIONS
from tripod.projections.decisions.format import count_decision_headings
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.recovery.redaction import Redaction, RedactionRequest, redact
from tripod.team import adoption
from tripod.team.files import Files
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.verify.check import Report
from tripod.verify.evidence import collect
from tripod.verify.run import open_run, run

SECRET = "sk-live-52b1f0ee77cc4a9d"
LONG = f"the whole log {SECRET} " + "12 ms, " * 4000  # a blob


def forms(secret: str) -> list[bytes]:
    """How a text may stand in a file: as it is, and within base64 at each of its three offsets."""
    data = secret.encode()
    return [data, *(b64encode(b"x" * shift + data)[4 : 4 * (len(data) // 3)] for shift in range(3))]


def holders(root: str | Path, secret: str = SECRET) -> list[str]:
    """Every file below a folder, the database and its log included, in which a text stands."""
    wanted = forms(secret)
    return sorted(
        path.relative_to(root).as_posix()
        for path in Path(root).rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in wanted)
    )


def judge(root: str | Path) -> Report:
    with collect(str(root)) as evidence:
        return run(evidence)


def said(report: Report) -> list[str]:
    return [f"{f.check}: {f.message}" for o in report.outcomes for f in o.findings]


def counted(report: Report) -> int | str:
    return next(o.coverage.get("redacted", 0) for o in report.outcomes if "bodies" in o.check)


def ask(match: str = SECRET) -> RedactionRequest:
    return RedactionRequest((), match, "a key leaked", "alex")


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A team in which a secret stands in all sorts of places."""
    root = build(str(tmp_path))
    with Team(root) as team:
        chat_send.send(team, "live", "alex", f"@bench take {SECRET} for the run\nand tell nobody")
        chat_send.send(team, "live", "bench", LONG)
        bus.publish(team, "ops", "deploy", "high", f"with {SECRET}")
        bus.ack_all(team, "nbs-chat")
        decisions_log.log(
            team,
            decisions_log.DecisionRequest(
                f"Keep {SECRET}", ["alex"], f"{SECRET} works", ["live.chat:~L7"], [SECRET]
            ),
        )
    worker = Path(root, "workers/parser-a3f1.md")
    worker.write_text(f"{worker.read_text()}I used {SECRET}\n")
    Path(root, "workers/parser-a3f1.log").write_text(f"$ export KEY={SECRET}\n")
    line = b64encode(f"bench|1770904800|SIG: as said, {SECRET}".encode())  # not as we write it
    with Path(root, "chat/side.chat").open("ab") as file:
        file.write(line + b"\n" + f"torn {SECRET}\n".encode())
    Path(root, "events/1-x-y-1.event").write_text(
        f"type: y\nsource: x\npriority: low\n# {SECRET}\n"
    )
    with Path(root, "scribe/log.md").open("a") as file:
        file.write(f"\n### D-nothing {SECRET}\n")
    with Team(root) as team:
        adoption.sync(team)
    edited = Path(root, "chat/live.chat")
    edited.write_bytes(edited.read_bytes()[:-9] + b"AAAA\n")
    with Team(root) as team:
        recover.rebuild(team)  # keeps the whole edited file as a blob
    return root


@pytest.fixture
def erased(root: str) -> str:
    with Team(root) as team:
        assert redact(team, ask()).done
    return root


# Erasing ---------------------------------------------------------------------------------------


def test_a_secret_is_erased_everywhere_and_verify_is_green(root: str) -> None:
    assert {"ledger.db", "chat/live.chat", "scribe/log.md"} < set(holders(root))
    before = said(judge(root))
    with Team(root) as team:
        kinds = {target.kind for target in redact(team, ask(), dry_run=True).erased}
        assert kinds == {
            "bus.published",
            "chat.sent",
            "chat.unreadable",
            "decision.logged",
            "evidence.kept",
            "file.displaced",
            "log.noted",
            "worker.written",
        }
        head, decisions = team.store.head(), decisions_read.count(team)
        headers = [entry.header for entry in team.store.read()]
        live = chat_read.messages(team, "live")
        done = redact(team, ask())
        assert (done.cannot, done.left, done.done) == ([], [], True)
        assert holders(root) == []
        assert [e.header for e in team.store.read(0, head.size)] == headers
        assert decisions_read.count(team) == decisions
        assert count_decision_headings(Path(root, "scribe/log.md").read_bytes()) == decisions
        now = chat_read.messages(team, "live")
        assert [m[:4] for m in now] == [m[:4] for m in live]
        assert [m.text for m in now[-2:]] == ["[redacted]", "[redacted]"]
    assert holders(root) == []
    report = judge(root)
    assert report.failures == 0
    assert counted(report) == len(done.erased)
    assert {text for text in said(report) if "were kept before" not in text} <= set(before)


def test_what_stands_for_it_folds_to_the_live_tables_from_the_start(erased: str) -> None:
    with Team(erased) as team:
        live, files = tables(team), tree(Path(erased))
        assert recover.rebuild(team) == recover.Rebuilt([], 0)
        assert (tables(team), tree(Path(erased))) == (live, files)
        with recover.rebuild_past(team, team.store.head().size - 1) as source:
            assert SECRET not in "\n".join(source.db.iterdump())


def test_the_team_works_on_as_before(erased: str) -> None:
    with Team(erased) as team:
        chat_send.send(team, "live", "bench", "all quiet")
        decisions_log.log(
            team, decisions_log.DecisionRequest("Go on", ["bench"], "why not", ["live.chat:~L8"])
        )
        bus.prune(team, 1)
    side = Path(erased, "chat/side.chat")
    side.write_bytes(side.read_bytes() + b64encode(b"bob|1790000000: hello") + b"\n")
    with Path(erased, "workers/parser-a3f1.md").open("a") as file:
        file.write("and on\n")
    with Team(erased) as team:
        assert adoption.sync(team).kinds == {
            "chat.sent": 1,
            "chat.header-seen": 1,
            "worker.written": 1,
        }
    assert judge(erased).failures == 0


def test_an_entry_is_erased_with_its_events_and_copies_and_quotes_are_named(root: str) -> None:
    with Team(root) as team:
        seq = next(m.seq for m in chat_read.messages(team, "live") if "tell nobody" in m.text)
        quote = chat_send.send(
            team, "side", "claude", "he said: @bench take " + SECRET + " for the run"
        )
        whole = f"@bench take {SECRET} for the run\nand tell nobody"
        again = chat_send.send(team, "side", "claude", f"look: {whole}")
        done = redact(team, RedactionRequest((seq,), None, "private", "alex"))
        why = {target.why: target.kind for target in done.erased}
        events = [t for t in done.erased if t.kind == "bus.published"]
        copies = [t for t in done.erased if t.kind == "file.displaced"]
        assert why["named"] == "chat.sent"
        assert [t.why for t in events[:2]] == ["tells of it"] * 2
        assert [t.why for t in copies] == ["holds a copy"]
        assert done.quoted == [again.seq]
        assert quote.seq not in [t.seq for t in done.erased]
        assert team.source.body(quote.seq)["text"]["text"].startswith("he said")
        assert done.left == ["chat/side.chat"]  # the quote
    known = ("count-from-grep", "were kept before")  # the odd heading, and the edited chat
    assert [t for t in said(judge(root)) if not any(words in t for words in known)] == []


def test_a_short_text_is_found_again_by_its_line_alone(tmp_path: Path) -> None:
    root = build(str(tmp_path))
    with Team(root) as team:
        message = chat_send.send(team, "live", "alex", "yes")
        chat_send.send(team, "live", "claude", "yes")
    path = Path(root, "chat/live.chat")
    path.write_bytes(path.read_bytes().replace(b"last-writer: claude", b"last-writer: nobody"))
    with Team(root) as team:
        recover.rebuild(team)
        done = redact(team, RedactionRequest((message.seq,), None, "wrong", "alex"))
        assert [t.kind for t in done.erased] == ["chat.sent", "bus.published", "file.displaced"]
        assert [m.text for m in chat_read.messages(team, "live", last=2)] == [
            "[redacted]",
            "yes",
        ]
    assert judge(root).failures == 0


# Refusing --------------------------------------------------------------------------------------


def test_what_cannot_be_erased_is_refused(root: str) -> None:
    with Team(root) as team:
        size = team.store.head().size
        why = RedactionRequest((), None, "a", "alex")
        opened = next(team.store.read(0, 1)).seq
        with pytest.raises(RefusedError, match=r"a ledger\.opened holds names and numbers alone"):
            redact(team, RedactionRequest((opened, 9), None, "a", "alex"))
        with pytest.raises(NotFoundError, match="no entry 4711"):
            redact(team, RedactionRequest((4711,), None, "a", "alex"))
        with pytest.raises(NotFoundError, match="nothing in the ledger matches"):
            redact(team, ask("no such words"))
        with pytest.raises(BadArgumentError, match="numbers of entries, or --match"):
            redact(team, why)
        with pytest.raises(BadArgumentError, match="rephrase --reason and --by"):
            redact(team, RedactionRequest((), SECRET, f"take out {SECRET}", "alex"))
        assert team.store.head().size == size
    assert "chat/live.chat" in holders(root)


def test_twice_is_refused_and_an_input_is_taken_out_by_hand_first(root: str) -> None:
    config = Path(root, "events/config.yaml")
    config.write_text(f"pythia-interval: 3\n# {SECRET}\n")
    with Team(root) as team:
        done = redact(team, ask())
        assert [line for line in done.cannot if "config.yaml still says so" in line]
        assert done.left == ["events/config.yaml"]
        gone = done.erased[0].seq
        with pytest.raises(RefusedError, match=f"entry {gone} .* redacted before, see entry"):
            redact(team, RedactionRequest((gone,), None, "again", "alex"))
        config.write_text("pythia-interval: 3\n")
        done = redact(team, ask())
        assert (done.cannot, done.left, done.done) == ([], [], True)
    assert holders(root) == []
    assert judge(root).failures == 0


@pytest.mark.parametrize("name", ["ledger.db.replaced-1", "ledger.db.damaged-1"])
def test_a_database_that_was_put_aside_is_named(
    root: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Team(root) as team:
        team.store.db.execute("VACUUM INTO ?", (f"{root}/{name}",))
        size = os.path.getsize(f"{root}/{name}")
        assert redact(team, ask()).left == [name]
        os.unlink(f"{root}/{name}")
        with open(f"{root}/{name}", "wb") as file:
            file.truncate(size)
        message = chat_send.send(team, "live", "ann", f"again {SECRET}")
        monkeypatch.setattr("tripod.recovery.redaction.READ_LIMIT", size - 1)
        done = redact(team, RedactionRequest((message.seq,), None, "leaked", "alex"))
        assert [line for line in done.cannot if "searched" in line] == [
            f"{name} is over 0 MiB and was not searched"
        ]


def test_names_in_headers_stay_and_that_is_told(root: str) -> None:
    with Team(root) as team:
        message = chat_send.send(team, "live", "mallory-7731", "hello")
        done = redact(team, ask("mallory-7731"))
        assert f"entry {message.seq}: its header says it, and stays" in done.cannot
        assert f"entry {message.seq}: a name in it says it, and stays" in done.cannot
        assert message.seq not in [one.seq for one in done.erased]


def test_digests_are_no_texts(root: str) -> None:
    with Team(root) as team, pytest.raises(NotFoundError):
        redact(team, ask("^[0-9a-f]{64}$"), dry_run=True)


# Exports ---------------------------------------------------------------------------------------


def export_of(root: str, folder: Path) -> None:
    """An export with bodies, as ``record_forget`` tells it."""
    (folder / "bodies").mkdir(parents=True)
    with Team(root) as team, (folder / "bodies/000.jsonl").open("wb") as file:
        for entry in team.store.read():
            body, salt = (entry.body or b"").decode(), (entry.salt or b"").hex()
            file.write(f'{{"body":{body},"salt":"{salt}","seq":{entry.seq}}}\n'.encode())


def test_the_record_and_exports_that_are_named_lose_it_too(root: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (Path(root, "record"), first, second):
        export_of(root, folder)
    with Team(root) as team:
        done = redact(team, ask(), exports=[str(first)])
        assert done.done
        assert holders(root) == []
        assert holders(first) == []
        assert holders(second) == ["bodies/000.jsonl"]
        size = team.store.head().size
        seqs = tuple(target.seq for target in done.erased)
        assert redact(team, RedactionRequest(seqs, None, "r", "alex"), exports=[str(second)]).done
        assert holders(second) == []
        assert team.store.head().size == size


def test_a_clone_lacks_a_body_until_the_key_seals_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signers_home: str
) -> None:
    """Redacted on a host without the key; docs/explanation/threat-model.md says so."""
    root = adoption.init(str(tmp_path), key=True).root
    with Team(root) as team:
        chat_send.create(team, "live")
        seq = chat_send.send(team, "live", "ann", "a secret").seq
        sealing.seal(team, "asked")
    monkeypatch.setenv("TRIPOD_HOME", f"{signers_home}-of-another-host")
    with Team(root) as team:
        assert redact(team, RedactionRequest((seq,), None, "r", "ann")).done
    record = f"{root}/record"
    assert "bodies-present" not in "".join(said(judge(root))), "the ledger explains it"
    missing = [text for text in said(judge_record(record)) if text.startswith("bodies-present")]
    assert "no entry says that they were erased" in missing[0]
    monkeypatch.setenv("TRIPOD_HOME", signers_home)
    with Team(root) as team:
        sealing.seal(team, "asked")
    assert said(judge_record(record)) == []


def judge_record(path: str) -> Report:
    """What a clone, which has no database, is told."""
    with open_run(path) as evidence:
        return run(evidence)


# Old bytes that come back ----------------------------------------------------------------------


def old_copies(root: str) -> dict[str, bytes]:
    return {path: data for path, (data, _) in tree(Path(root)).items() if path != "counts.json"}


def test_old_bytes_that_come_back_are_not_taken_in_again(root: str) -> None:
    old = old_copies(root)
    with Team(root) as team:
        redact(team, ask())
        size = team.store.head().size
    now = tree(Path(root))
    changed = [path for path, data in old.items() if now.get(path, (b"", 0))[0] != data]
    assert len(changed) > 8
    for path in changed:
        Path(root, path).write_bytes(old[path])
    report = judge(root)
    assert {f.where for o in report.outcomes for f in o.findings} > {"chat/live.chat"}
    with Team(root) as team:
        assert adoption.sync(team).kinds == {}
        assert team.store.head().size == size
        chat_send.send(team, "live", "alex", "a message that has the file written")
        recover.rebuild(team, evidence=True)
        assert list(file_differences(team.source, team.disk)) == []
        assert {
            t.kind
            for t in redact(team, RedactionRequest((size,), None, "r", "b"), dry_run=True).erased
        }
    assert holders(root) == []
    assert judge(root).failures == 0


def test_a_pruned_event_that_comes_back_is_not_taken_in_again(root: str) -> None:
    done = Path(root, "events/processed")
    old = {p.name: p.read_bytes() for p in done.iterdir() if SECRET in p.read_text()}
    with Team(root) as team:
        redact(team, ask())
        bus.ack_all(team)
        bus.prune(team, 1)
        for name, data in old.items():
            (done / name).write_bytes(data)
        assert adoption.sync(team).kinds == {}
        recover.rebuild(team)
    assert old
    assert holders(root) == []


# Interrupted -----------------------------------------------------------------------------------


def test_readers_of_old_pages_delay_the_sweep_and_the_next_command_does_it(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(read_only(database(root))) as reader, Team(root) as team:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM entries").fetchone()
        monkeypatch.setattr("tripod.trust.export.WAIT_MS", 50)
        done = redact(team, ask())
        assert not done.done
        assert any("another program still reads" in text for text in team.warnings)
        assert holders(root)
        assert any("may still hold their bytes" in text for text in said(judge(root)))
        bus.publish(team, "a", "b", "low")  # neither waits nor writes the database anew
        assert team.store.unswept()
    with Team(root) as team:
        bus.publish(team, "a", "b", "low")
        assert team.store.unswept() == []
    assert holders(root) == []
    assert not any("may still hold" in text for text in said(judge(root)))


@pytest.mark.parametrize("death", ["project", "note"])
def test_killed_before_its_files_the_next_command_finishes(
    root: str, death: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Files, death, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with Team(root) as team, pytest.raises(KeyboardInterrupt):
            redact(team, ask())
    with Team(root) as team:
        bus.publish(team, "a", "b", "low")
        team.refresh()
        assert list(file_differences(team.source, team.disk)) == []
    assert holders(root) == []
    assert judge(root).failures == 0


def test_an_interrupted_redaction_before_its_commit_changed_nothing(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(Path(root))
    with Team(root) as team:
        head = team.store.head()
        with monkeypatch.context() as patch:
            patch.setattr("tripod.recovery.redaction.refold", lambda *_: 1 // 0)
            with pytest.raises(ArithmeticError):
                redact(team, ask())
        assert team.store.head() == head
        assert all(entry.body is not None for entry in team.store.read())
    assert tree(Path(root)) == before


# The judge -------------------------------------------------------------------------------------


def behind(root: str, *statements: str) -> list[str]:
    with unguarded(database(root)) as db:
        for sql in statements:
            db.execute(sql)
    return [text for text in said(judge(root)) if text.startswith("bodies-present")]


@pytest.fixture
def one(tmp_path: Path) -> tuple[str, int]:
    """A team, and the entry of a message in it that was redacted."""
    root = build(str(tmp_path))
    with Team(root) as team:
        seq = chat_read.messages(team, "live")[0].seq
        redact(team, RedactionRequest((seq,), None, "r", "alex"))
    return root, seq


def test_vanished_altered_and_untrue_are_three_findings(one: tuple[str, int]) -> None:
    root, seq = one
    assert behind(root) == []
    vanished = behind(root, "UPDATE entries SET salt = NULL, body = NULL WHERE seq = 9")
    assert len(vanished) == 1
    assert "missing, and no entry says that they were erased" in vanished[0]
    altered = behind(root, "UPDATE entries SET salt = x'00', body = x'7b7d' WHERE seq = 9")
    assert "the salt takes 1 bytes" in altered[0]
    half = behind(root, "UPDATE entries SET body = NULL WHERE seq = 9")
    assert "the body is missing, and the salt is there" in half[0]
    untrue = behind(
        root, f"UPDATE entries SET salt = zeroblob(32), body = x'7b7d' WHERE seq = {seq}"
    )
    assert any(f"it says that entry {seq} was erased, and its body is there" in t for t in untrue)
    assert any("not the one that the header commits to" in text for text in untrue)


def test_a_redaction_that_loses_its_body_no_longer_explains(one: tuple[str, int]) -> None:
    root, seq = one
    found = behind(root, f"UPDATE entries SET salt = NULL, body = NULL WHERE id = 'redacted-{seq}'")
    assert len(found) == 2


def test_a_ledger_that_lost_a_body_is_not_rebuilt_from(one: tuple[str, int]) -> None:
    root, _ = one
    with unguarded(database(root)) as db:
        db.execute("UPDATE entries SET salt = NULL, body = NULL WHERE seq = 9")
    with Team(root) as team, pytest.raises(LedgerDamagedError, match="entry 9 lost its body"):
        recover.rebuild(team)


# The triggers ----------------------------------------------------------------------------------


def test_the_triggers_permit_a_redaction_and_nothing_else(erased: str) -> None:
    with closing(sqlite3.connect(database(erased))) as db:
        (newest,) = db.execute("SELECT id FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
        assert newest.startswith("redacted-")
        for sql in (
            "UPDATE entries SET body = NULL, salt = NULL WHERE seq = 4",
            f"UPDATE entries SET body = x'00' WHERE seq = {newest[9:]}",
            f"UPDATE entries SET header = x'00' WHERE seq = {newest[9:]}",
            "DELETE FROM entries WHERE seq = 4",
            "DELETE FROM blobs",  # those that are left are named
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(sql)
        db.rollback()
    with Team(erased) as team:
        bus.publish(team, "a", "b", "low", "x" * 20_000)
        with pytest.raises(sqlite3.IntegrityError, match="blobs are never deleted"):
            team.store.db.execute("DELETE FROM blobs")


def test_a_ledger_of_the_first_schema_is_judged_as_it_is_and_brought_on(tmp_path: Path) -> None:
    root = build(str(tmp_path))
    with closing(sqlite3.connect(database(root), isolation_level=None)) as db:
        for column in ("synced", "boot"):
            db.execute("DROP TRIGGER IF EXISTS head_forward_only")
            db.execute(f"ALTER TABLE head DROP COLUMN {column}")
        for name in ("entries_no_update", "blobs_no_delete", "head_forward_only"):
            db.execute(f"DROP TRIGGER IF EXISTS {name}")
            start = MIGRATIONS[0].index(f"CREATE TRIGGER {name}")
            db.executescript(MIGRATIONS[0][start : MIGRATIONS[0].index("END;", start) + 4])
        db.execute("DROP TABLE unswept")
        db.execute("ALTER TABLE entries DROP COLUMN auth")
        db.execute("PRAGMA user_version = 1")
    assert said(judge(root)) == []
    with Team(root) as team:
        seq = chat_read.messages(team, "live")[0].seq
        assert redact(team, RedactionRequest((seq,), None, "r", "alex")).done
    assert said(judge(root)) == []


def test_a_version_that_was_set_back_is_found(one: tuple[str, int]) -> None:
    root, _ = one
    with closing(sqlite3.connect(database(root), isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 1")
    assert any("schema version was changed: it is 1" in text for text in said(judge(root)))


# The past of others ----------------------------------------------------------------------------


def test_a_pattern_is_a_regular_expression(root: str) -> None:
    with (
        Team(root) as team,
        pytest.raises(BadArgumentError, match=r"^--match: no regular expression: missing"),
    ):
        redact(team, ask("(zoe"))


def test_a_file_is_searched_up_to_a_limit(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    note = Path(root, "notes.txt")
    note.write_text(f"I wrote down {SECRET}")
    with Team(root) as team:
        monkeypatch.setattr("tripod.recovery.redaction.READ_LIMIT", note.stat().st_size)
        done = redact(team, ask())
    assert "notes.txt" in done.left
    assert [text for text in done.cannot if "notes.txt" in text] == []


def test_archives_and_split_logs_lose_it_too(tmp_path: Path) -> None:
    story = Story(tmp_path)
    other = story.original
    other.create("live")
    other.say("live", "ann", f"first {SECRET}")
    other.log(f"First {SECRET}", f"because {SECRET}")
    with story.team() as team:
        adoption.sync(team)
        for number in range(30):
            chat_send.send(team, "live", "ann", f"more {number}")
        with mock.patch.multiple(chat_send, ROTATE_ABOVE=20, ROTATE_COUNT=10):
            chat_send.send(team, "live", "ann", "the last")
        archives = [n for n in os.listdir(story.root / "chat") if "archive" in n]
        assert len([n for n in archives if n.endswith(".chat")]) == 1
        assert redact(team, ask()).done
        assert list(file_differences(team.source, team.disk)) == []
        chat_send.send(team, "live", "ann", "still here")
    assert holders(story.root) == []
    assert not [text for text in said(judge(story.root)) if "chat ref" not in text]


def test_what_is_reported_is_plain_data() -> None:
    assert vars(Redaction()) == {
        "erased": [],
        "cannot": [],
        "quoted": [],
        "left": [],
        "done": False,
    }
