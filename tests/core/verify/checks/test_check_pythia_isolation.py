"""What counts as reading the chat in a log or a task, and what the check makes of it."""

import json
import os
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from peering import peers_of
from team_files import Said, judge, outcome, write_chat, write_event

from tripod.agents.jobs import newest, spool_of_job
from tripod.ledger.kinds.pythia import ASSESSED, PythiaAssessed
from tripod.projections.layout import WORKER_LOG
from tripod.projections.workers.format import WorkerText, format_worker
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Outcome
from tripod.verify.evidence import collect
from tripod.verify.isolation import batch
from tripod.verify.isolation.breach import shows_reading_of_chat, tells_to_read_chat
from tripod.verify.run import run, verify
from tripod.verify.sessions import shell
from tripod.workers import worker as workers_run
from tripod.workers.worker import ROLE

ASSESSMENT = Said(
    9,
    "pythia",
    "PYTHIA CHECKPOINT — Assessment #1\n\n**Hidden assumption:** none.\n"
    "**Second-order risk:** none.\n**Missing validation:** none.\n"
    "**Six-month regret:** none.\n**Confidence:** high\n",
)


READINGS = [
    "> Read(.nbs/chat/live.chat)",
    "> Bash(tail -50 .nbs/chat/live.chat)",
    "$ nbs-chat read .nbs/chat/live.chat --last=20",
    "nbs-chat search live.chat parser",
    "nbs-chat poll live.chat pythia; echo done",
    "nbs-chat send live.chat pythia hi && nbs-chat read live.chat",
    "\x1b[1m> Bash(\x1b[0mcat .nbs/chat/live-20260212-140000-archive.chat)",
    "tripod chat read live",
    "tripod show chat",
    "> Read(.nbs/events/processed/1795294623856239-nbs-chat-chat-message-30453.event)",
    "cat .nbs/events/processed/*",
    "nbs-bus read .nbs/events 1795-nbs-chat-chat-mention-3.event",
    "sqlite3 .nbs/ledger.db 'select body from entries'",
    "> Grep(pattern, ~/project/.nbs/chat/)",
    "grep -ri parser .nbs/record/",
    "I will cat .nbs/chat/live.chat now.",
    "Let me run `cat .nbs/chat/live.chat` first",
    '\u25cf Search(pattern: "parser", path: ".nbs/chat")',
    "\u2022 Ran sed -n 5,9p .nbs/chat/live.chat",
    "bash -lc 'cat .nbs/chat/live.chat' in /home/x succeeded in 21ms:",
    "alex@host:~/shop$ head -n 20 ../.nbs/chat/live.chat",
    "++ grep -c . .NBS/Chat/LIVE.CHAT",
    '"command": "cat .nbs/chat/live.chat"',
    "python3 -c \"print(open('.nbs/chat/live.chat').read())\"",
    "python -m tripod chat read live",
    "uvx --from tripod-ledger tripod chat read live",
    "./.venv/bin/tripod chat read live",
    "cat .nbs/chat/live.chat # don't",
    "cat '.nbs/chat/live.chat' won't do",
    "git show HEAD:.nbs/chat/live.chat",
    "git archive HEAD .nbs/chat | tar x",
    "git diff .nbs/chat/live.chat",
    "git worktree add ../x refs/tripod/ann-01",
    "ssh host cat .nbs/chat/live.chat",
    "cat $DIR/live.chat",
    "cat events/*",
    "cat .nbs/events/*.event",
    "base64 < .nbs/chat/live.chat",
    "xxd ledger.db-wal | head",
    "nbs-bus read bus 17-nbs-chat-chat-query-3.event",
    "tripod scribe show D-1771200000",
]

SCRIPTS = [
    "cd .nbs/chat && cat live",
    "for f in .nbs/chat/*.chat; do cat $f; done",
    "while read line; do echo $line; done < .nbs/chat/live.chat",
    "find .nbs/chat -name '*.chat' -exec cat {} +",
    "$ D=.nbs/chat; cat $D/live",
]
"""What only the parser of the extra understands."""

NO_READINGS = [
    "> Read(.nbs/scribe/log.md)",
    "> Bash(nbs-chat send .nbs/chat/live.chat pythia ...)",
    "$ tripod chat send live pythia 'cat all of .nbs/chat/live.chat'",
    "Posted to .nbs/chat/live.chat.",
    "nbs-bus read .nbs/events 1795294623856239-scribe-pythia-checkpoint-30453.event",
    "cat .nbs/events/processed/1795294623856239-scribe-pythia-checkpoint-30453.event",
    "nbs-bus check .nbs/events",
    "> Read(src/parser.py)",
    "> Read(src/chat.py)",
    "",
    "cat out.md >> .nbs/chat/live.chat",
    "cp out.md .nbs/chat/live.chat",
    "grep .nbs/chat src/a.py",
    "git commit -m 'cat .nbs/chat/live.chat'",
    "git add .nbs/chat/live.chat",
    "ls -la .nbs/chat/live.chat",
    "The file .nbs/chat/live.chat was not opened.",
    "> Write(.nbs/chat/live.chat)",
    "cat src/a.py *.md $F",
    "grep -rn foo .",
    "git diff",
    "cat .nbs/events/config.yaml",
    "cat .nbs/events/*pythia-checkpoint*",
    "cat .nbs/scribe/*.md",
    "nbs-chat participants live.chat",
]


def without_the_extra(patch: pytest.MonkeyPatch) -> None:
    """Neither the parser of command lines nor the globs are installed."""
    patch.setattr(shell, "_parser", shell._parser.__wrapped__)
    patch.setattr(batch, "_near", batch._near.__wrapped__)
    for name in ("tree_sitter", "tree_sitter_bash", "wcmatch"):
        patch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("line", [*READINGS, *SCRIPTS])
def test_a_reading_of_the_chat_is_seen(line: str) -> None:
    assert shows_reading_of_chat(line)


@pytest.mark.parametrize("line", NO_READINGS)
def test_what_is_no_reading_is_left_alone(line: str) -> None:
    assert not shows_reading_of_chat(line)


@pytest.mark.parametrize("line", READINGS)
def test_a_reading_is_seen_without_the_extra(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_the_extra(monkeypatch)
    assert shows_reading_of_chat(line)


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("Read .nbs/chat/live.chat and assess", True),
        ("Look at the whole chat first", True),
        ("Run nbs-chat read live.chat --last=100", True),
        ("Read .nbs/scribe/log.md and post your assessment to .nbs/chat/live.chat", False),
        ("Post Pythia checkpoint assessment to .nbs/chat/live.chat", False),
        ("Never read .nbs/chat/live.chat", False),
        ("Do not run nbs-chat read", False),
    ],
)
def test_a_task_that_sends_her_to_the_chat_is_seen(task: str, told: bool) -> None:
    assert tells_to_read_chat(task) is told


def team(root: Path, task: str = "Read .nbs/scribe/log.md.", log: str | None = None) -> None:
    """A team with one assessment and the Pythia that made it."""
    write_chat(root, "live", [ASSESSMENT])
    write_event(root, 5, "pythia-checkpoint", "")
    (root / "workers").mkdir()
    text = format_worker(WorkerText("completed", "", "", task, "Assessment posted.", "oracle"))
    (root / "workers" / "oracle-a0d7.md").write_bytes(text)
    if log is not None:
        (root / "workers" / "oracle-a0d7.log").write_text(log, encoding="utf-8")


def test_without_a_transcript_nobody_can_tell(tmp_path: Path) -> None:
    team(tmp_path, "You are Pythia. Read .nbs/scribe/log.md.", "> Read(.nbs/scribe/log.md)\n")
    report = judge(tmp_path)
    told = outcome(report, "pythia-isolation")
    assert (told.verdict, told.past, report.exit_code) == ("cannot tell", True, 0)
    assert told.coverage == {
        "assessments": 1,
        "from outside": 1,
        "runs": 0,
        "in a namespace": 0,
        "in a folder": 0,
        "with the network": 0,
        "workers": 1,
        "logs": 1,
        "transcripts": 0,
    }
    assert told.reason.startswith("1 assessment came from outside (chat live, message 0)")
    assert "1 log and 1 task file show no reading of the chat, which proves nothing" in told.reason


def test_a_breach_is_named_with_its_line(tmp_path: Path) -> None:
    team(tmp_path, "You are Pythia.", "hello\n> Read(.nbs/chat/live.chat)\n")
    (found,) = outcome(judge(tmp_path), "pythia-isolation").findings
    assert found.message == "oracle-a0d7 read the chat"
    assert found.where == "workers/oracle-a0d7.log:2"
    assert found.evidence == ("> Read(.nbs/chat/live.chat)",)


def test_without_the_extra_a_breach_is_named_and_no_log_makes_a_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_the_extra(monkeypatch)
    team(tmp_path / "a", "You are Pythia.", f"hello\n$ {SCRIPTS[0]}\n")
    told = outcome(judge(tmp_path / "a"), "pythia-isolation")
    assert (told.verdict, told.findings) == ("cannot tell", ())
    team(tmp_path / "b", "You are Pythia.", "$ cd src && cat ../.nbs/chat/live.chat | wc\n")
    (found,) = outcome(judge(tmp_path / "b"), "pythia-isolation").findings
    assert found.message == "oracle-a0d7 read the chat"


def test_a_task_is_a_breach_as_well(tmp_path: Path) -> None:
    team(tmp_path, "You are Pythia. Read .nbs/chat/live.chat.")
    (found,) = outcome(judge(tmp_path), "pythia-isolation").findings
    assert found.message == "the task of oracle-a0d7 tells the reviewer to read the chat"


def test_other_workers_may_read_the_chat(tmp_path: Path) -> None:
    team(tmp_path, "Read .nbs/chat/live.chat.", "> Read(.nbs/chat/live.chat)\n")
    assert outcome(judge(tmp_path), "pythia-isolation").findings == ()


def test_without_pythia_there_is_nothing_to_judge(tmp_path: Path) -> None:
    write_chat(tmp_path, "live", [Said(1, "alex", "hello")])
    assert outcome(judge(tmp_path), "pythia-isolation").verdict == "not applicable"


def isolation(root: Path) -> Outcome:
    """What the check says of a team with a ledger."""
    with collect(str(root)) as evidence:
        return outcome(run(evidence), "pythia-isolation")


def test_only_what_stood_in_a_log_at_adoption_is_excused(tmp_path: Path) -> None:
    root = tmp_path / ".nbs"
    root.mkdir()
    team(root, "You are Pythia.", "> Read(.nbs/chat/live.chat)\n")
    adoption.init(str(tmp_path))
    assert [found.severity for found in isolation(root).findings] == ["warning"]
    with open(root / "workers" / "oracle-a0d7.log", "a", encoding="utf-8") as log:
        log.write("> Read(.nbs/scribe/log.md)\n$ nbs-chat read live.chat\n")
    for _ in range(2):  # not taken in yet, then taken in
        assert [(found.where[-2:], found.severity) for found in isolation(root).findings] == [
            (":3", "failure"),
            (":1", "warning"),
        ]
        with Team(str(root)) as opened:
            adoption.sync(opened)


# Workers that we run -----------------------------------------------------------------------------

JUDGE = "Read .nbs/chat/live.chat and judge."
READ = {"type": "tool_use", "name": "Read", "input": {"file_path": ".nbs/chat/live.chat"}}
CALL = json.dumps({"type": "assistant", "message": {"content": [READ]}})


def spawned(project: Path, slug: str, task: str, lines: str, more: str = "") -> tuple[str, str]:
    """A worker of ours that printed ``lines`` to its end; its team and name."""
    root = str(project / ".nbs")
    adoption.init(str(project))
    with Team(root) as opened:
        (project / "said").write_text(lines, encoding="utf-8")
        command = ["cat", "said"]
        name = workers_run.spawn(opened, slug, str(project), task, command=command)
        over(opened, name)
        if more:
            workers_run.continue_(opened, name, more)
            over(opened, name)
    return root, name


def over(opened: Team, name: str) -> None:
    """Wait until its program has ended, and record that."""
    run = newest(opened.store.db, ROLE, name)
    assert run is not None
    spool_of_job(opened, run.spawn).wait()
    workers_run.look_after(opened)


@pytest.mark.parametrize("slug", ["pythia", "pythia2"])
def test_a_pythia_that_we_spawn_is_judged_as_an_adopted_one_is(tmp_path: Path, slug: str) -> None:
    root, name = spawned(tmp_path, slug, JUDGE, "hello\n> Read(.nbs/chat/live.chat)\n")
    ours = isolation(Path(root))
    alone = tmp_path / "alone"
    shutil.copytree(f"{root}/workers", alone / "workers")
    (alone / "chat").mkdir()
    theirs = outcome(judge(alone), "pythia-isolation")
    assert [(f.message, f.where, f.evidence) for f in ours.findings] == [
        (f"the task of {name} tells the reviewer to read the chat", f"workers/{name}.md", (JUDGE,)),
        (f"{name} read the chat", f"workers/{name}.log:2", ("> Read(.nbs/chat/live.chat)",)),
    ]
    assert [(f.message, f.where) for f in theirs.findings] == [
        (f.message, f.where) for f in ours.findings
    ]
    assert {found.severity for found in ours.findings} == {"failure"}
    assert (ours.coverage["workers"], ours.coverage["logs"]) == (1, 1)


def test_a_worker_of_ours_that_its_task_makes_pythia_is_judged(tmp_path: Path) -> None:
    root, name = spawned(tmp_path, "oracle", "You are Pythia.", "$ nbs-chat read live.chat\n")
    assert [f.message for f in isolation(Path(root)).findings] == [f"{name} read the chat"]


def test_what_a_pythia_of_ours_goes_on_with_is_judged(tmp_path: Path) -> None:
    root, name = spawned(tmp_path, "pythia", "Read .nbs/scribe/log.md.", "", JUDGE)
    (found,) = isolation(Path(root)).findings
    assert (found.message, found.evidence) == (
        f"the task of {name} tells the reviewer to read the chat",
        (JUDGE,),
    )


def test_a_message_may_make_a_worker_of_ours_pythia(tmp_path: Path) -> None:
    text = "You are Pythia now."
    root, name = spawned(tmp_path, "oracle", "Judge.", "> Read(.nbs/chat/live.chat)\n", text)
    assert {f.message for f in isolation(Path(root)).findings} == {f"{name} read the chat"}


def test_a_call_in_the_stream_of_a_pythia_worker_is_seen(tmp_path: Path) -> None:
    root, name = spawned(tmp_path, "pythia", "Judge.", f"{CALL}\n")
    (found,) = isolation(Path(root)).findings
    assert (found.where, found.evidence) == (
        f"workers/{name}.log:1",
        ("Read(.nbs/chat/live.chat)",),
    )


def test_the_error_output_of_a_pythia_worker_is_a_log_of_hers(tmp_path: Path) -> None:
    adoption.init(str(tmp_path))
    with Team(str(tmp_path / ".nbs")) as opened:
        command = ["sh", "-c", "echo '+ cat .nbs/chat/live.chat' >&2"]
        name = workers_run.spawn(opened, "pythia", str(tmp_path), "Judge.", command=command)
        over(opened, name)
    found = isolation(tmp_path / ".nbs").findings
    assert f"workers/{name}.err.log:1" in [one.where for one in found]


def test_a_command_line_that_feeds_the_chat_to_a_pythia_worker_is_named(tmp_path: Path) -> None:
    adoption.init(str(tmp_path))
    with Team(str(tmp_path / ".nbs")) as opened:
        command = ["sh", "-c", "cat .nbs/chat/live.chat 2>/dev/null | wc -c"]
        name = workers_run.spawn(opened, "pythia", str(tmp_path), "Judge.", command=command)
        over(opened, name)
    (found,) = isolation(tmp_path / ".nbs").findings
    assert found.message == f"the command line of {name} reads the chat"


def test_a_pythia_worker_of_ours_without_a_reading_leaves_it_untold(tmp_path: Path) -> None:
    root, _ = spawned(tmp_path, "pythia", "Read .nbs/scribe/log.md.", "> Read(.nbs/scribe/log.md)")
    told = isolation(Path(root))
    assert (told.verdict, told.past) == ("cannot tell", False)
    assert "1 log and 1 task file show no reading" in told.reason


def test_other_workers_of_ours_may_read_the_chat(tmp_path: Path) -> None:
    root, _ = spawned(tmp_path, "parser", JUDGE, "> Read(.nbs/chat/live.chat)\n")
    assert isolation(Path(root)).verdict == "not applicable"


def test_a_pythia_worker_that_is_still_at_work_is_judged(tmp_path: Path) -> None:
    root = str(tmp_path / ".nbs")
    adoption.init(str(tmp_path))
    (tmp_path / "said").write_text("> Read(.nbs/chat/live.chat)\n")
    os.mkfifo(tmp_path / "go")
    with Team(root) as opened:
        command = ["sh", "-c", "cat said; echo > go; exec sleep 600"]
        name = workers_run.spawn(opened, "pythia", str(tmp_path), "Judge.", command=command)
        (tmp_path / "go").read_bytes()  # it has printed all when it says so
        assert [f.message for f in isolation(Path(root)).findings] == [f"{name} read the chat"]
        workers_run.dismiss(opened, name)


def test_what_a_pythia_worker_adds_to_a_log_beyond_what_is_kept_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has the log as it was while it was small; all of it stands in the file alone."""
    root = str(tmp_path / ".nbs")
    adoption.init(str(tmp_path))
    with Team(root) as opened:
        (tmp_path / "said").write_text("hello\n")
        name = workers_run.spawn(opened, "pythia", str(tmp_path), "Judge.", command=["cat", "said"])
        over(opened, name)
        adoption.sync(opened)
        (tmp_path / "said").write_text("> Read(.nbs/chat/live.chat)\n")
        small = WORKER_LOG._replace(limit=len("hello\n"))
        monkeypatch.setattr("tripod.projections.layout.WORKER_LOG", small)
        monkeypatch.setattr("tripod.workers.worker.MAX_LOG", small.limit)
        workers_run.continue_(opened, name, "Go on.")
        over(opened, name)
    (found,) = isolation(Path(root)).findings
    assert (found.message, found.where) == (f"{name} read the chat", f"workers/{name}.log:2")


@pytest.mark.parametrize("how", ["run", "recorded", "said"])
def test_an_assessment_of_a_peer_is_judged_in_the_peers_replica(tmp_path: Path, how: str) -> None:
    """Its run is not here, and who merged it is not to blame for what is said of it there."""
    ann, bob = peers_of(tmp_path, "ann", "bob")
    bob.decide("Milk")
    bob.publish("pythia-checkpoint")
    bob.say(ASSESSMENT.text)
    (decided,) = bob.entries("decision.logged")
    if how != "said":
        body: PythiaAssessed = {
            "event": bob.entries("bus.published")[-2].seq,
            "spawn": "run-7" if how == "run" else None,
            "origin": "run" if how == "run" else "recorded",
            "first": decided.data["id"],
            "last": decided.data["id"],
            "decisions": 1,
            "confidence": "high",
            "cited": [],
            "content": ASSESSMENT.text.encode(),
            "sha256": sha256(ASSESSMENT.text.encode()).hexdigest(),
            "message": bob.entries("chat.sent")[-1].seq,
        }
        bob.append(ASSESSED.draft(body))
    told = outcome(verify(bob.root), "pythia-isolation")
    assert told.verdict == ("findings" if how == "run" else "cannot tell")
    assert ann.merge(bob).problem == ""
    for check in ("pythia-isolation", "assessment-complete", "checkpoint-preceded"):
        told = outcome(verify(ann.root), check)
        assert (told.verdict, told.findings) == ("not applicable", ()), check
