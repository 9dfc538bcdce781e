"""One team, two sets of tools: ours and the originals take turns on what the originals left.

It begins with the real team of ``tests/golden``. The originals are an imitation that shares no
code with us. At the end nothing that anybody said, published or decided is lost or there twice, the
files are what the ledger says, and the originals can read every one of them.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from doors.inside import Done, run, run_as
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nbs_team import ARCHIVE, unpack
from original_tools import Bus, Chat, Log, Worker
from story import Clock, folder, tree

from tripod.chat import writer as chat_send
from tripod.ledger.locator import LEDGER
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge
from tripod.workers import worker as workers_run

AFTER = 1_795_294_700  # a little after the last act of the team's past
ABOVE, COUNT = 667, 2  # lines of a chat, and how many are split off, so that it happens here
SPLIT_ABOVE, SPLIT = 52, 4  # the same of the log
CHAT = ".nbs/chat/live.chat"
EVENTS = ".nbs/events"
LOG = ".nbs/scribe/log.md"
MARK = r"«\d+»"
"""By this a text is known again."""


class Both:
    """The team, what was done to it, and what must have come of that."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.root = project / ".nbs"
        self.clock = Clock(AFTER)
        self.bus = Bus(self.root / "events", self.clock)
        self.chat = Chat(
            self.root / "chat/live.chat", self.clock, self.bus, above=ABOVE, count=COUNT
        )
        self.log = Log(
            self.root / "scribe/log.md", self.clock, self.bus, above=SPLIT_ABOVE, count=SPLIT
        )
        self.said = [(message.handle, message.text) for message in self.chat.messages()]
        self.decided = [(entry.id, entry.title) for entry in self.log.entries()]
        self.past = len(self.said), len(self.decided)
        self.published = Counter([*self.bus.pending(), *self.bus.processed()])
        self.theirs: list[str] = []
        self.pruned: set[str] = set()
        self.shown: dict[str, list[str]] = {"eve": [], "mix": []}
        self.workers: dict[str, str] = {}
        self.kinds: set[str] = set()
        self.number = 0

    def ours(self, name: str, *words: str) -> Done:
        with self.clock.running():
            done = run_as(name, self.project, *words) if name else run(self.project, *words)
        assert done.code == 0, (name, words, done)
        return done

    def text(self) -> str:
        """Something to say that nobody said before."""
        self.number += 1
        kinds = ("plain é", "two\n  lines\n", "@alex! stop", "@team look", "", "a: b | c", "@eve?")
        return f"{kinds[self.number % len(kinds)]} «{self.number}»"

    def first_pending(self) -> str | None:
        return next(iter(self.bus.pending()), None)

    # Ours --------------------------------------------------------------------------------------

    def we_say(self) -> None:
        text = self.text()
        self.ours("nbs-chat", "send", CHAT, "claude", text)
        self.said.append(("claude", text))

    def we_read(self) -> None:
        self._show("eve")

    def we_read_for_both(self) -> None:
        self._show("mix")

    def _show(self, reader: str) -> None:
        out = self.ours("nbs-chat", "read", CHAT, f"--unread={reader}").out.decode()
        self.shown[reader] += re.findall(MARK, out)

    def we_archive(self) -> None:
        keep = len(self.chat.messages()) - 1
        done = self.ours("nbs-chat", "archive", CHAT, f"--keep={keep}")
        assert done.out.startswith(b"Archived 1 message")

    def we_publish(self) -> None:
        text = self.text()
        done = self.ours("nbs-bus", "publish", EVENTS, "claude", "note", "low", "--", text)
        self.published[done.out.decode().strip()] += 1

    def we_acknowledge(self) -> None:
        name = self.first_pending()
        if name is not None:
            self.ours("nbs-bus", "ack", EVENTS, name, "--as=claude")

    def we_claim(self) -> None:
        if self.first_pending() is not None:
            name = self.ours("nbs-bus", "claim", EVENTS, "--by=dee").out.decode().strip()
            self.ours("nbs-bus", "ack", EVENTS, name, "--as=dee")

    def we_acknowledge_all(self) -> None:
        self.ours("nbs-bus", "ack-all", EVENTS, "--handle=claude")

    def we_prune(self) -> None:
        names = set(self.bus.processed())
        size = sum((self.root / f"events/processed/{name}").stat().st_size for name in names)
        self.ours("nbs-bus", "prune", EVENTS, f"--max-bytes={size - 100}")
        gone = names - set(self.bus.processed())
        assert gone == set(sorted(names)[: len(gone)])
        self.pruned |= gone

    def we_decide(self) -> None:
        title = f"Ours {self.text()}".replace("\n", " ")
        ref = f"live.chat:~L{6 + len(self.chat.messages())}"
        fields = ("--participants=claude", "--rationale=It is better.", f"--chat-ref={ref}")
        which = self.ours("nbs-scribe-log", LOG, title, *fields).out.decode().strip()
        self.decided.append((which, title))

    def we_query(self) -> None:
        newest, title = self.decided[-1]
        shown = self.ours("nbs-scribe-query", f"--chat={CHAT}", f"--id={newest}").out.decode()
        assert shown.startswith(f"### {newest} {title}\n")
        counted = self.ours("nbs-scribe-query", f"--chat={CHAT}", "--count").out
        assert counted == b"%d\n" % len(self.decided)

    def we_work(self) -> None:
        name = self.ours("nbs-worker", "spawn", "ours", ".", "Do it.").out.decode().strip()
        self.ours("", "worker", "watch", "--timeout", "60")
        assert b"completed" in self.ours("nbs-worker", "status", name).out
        if self.number % 2:
            self.ours("nbs-worker", "dismiss", name)
        self.workers[name] = "dismissed" if self.number % 2 else "completed"

    def we_look(self) -> None:
        assert len(self.ours("nbs-bus", "check", EVENTS).out.splitlines()) == len(
            self.bus.pending()
        )
        assert self.ours("nbs-chat", "count", CHAT).out == b"%d\n" % len(self.chat.messages())
        self.ours("nbs-bus", "status", EVENTS)
        self.ours("nbs-worker", "list")

    def we_rebuild(self) -> None:
        self.ours("", "sync")
        before = tree(self.root)
        self.ours("", "rebuild")
        assert tree(self.root) == before

    # The originals -----------------------------------------------------------------------------

    def they_say(self) -> None:
        text = self.text()
        self.chat.send("alex", text)
        self.said.append(("alex", text))

    def they_read_for_both(self) -> None:
        found = "\n".join(message.text for message in self.chat.unread("mix"))
        self.shown["mix"] += re.findall(MARK, found)

    def they_publish(self) -> None:
        name = self.bus.publish("alex", "note", "high", self.text())
        self.published[name] += 1
        self.theirs.append(name)

    def they_acknowledge(self) -> None:
        name = self.first_pending()
        if name is not None:
            self.bus.ack(name)

    def they_acknowledge_all(self) -> None:
        self.bus.ack_all("alex")

    def they_decide(self) -> None:
        title = f"Theirs {self.text()}".replace("\n", " ")
        ref = f"live.chat:~L{6 + len(self.chat.messages())}"
        self.decided.append((self.log.append(title, "alex", "It is better.", ref), title))

    def they_work(self) -> None:
        name = f"theirs-{len(self.workers):04x}"
        work = Worker(self.root / "workers", name, self.bus)
        work.spawn(f"Do {self.text()}.")
        self.workers[name] = "running"

    def they_find(self) -> None:
        for name in self.workers:
            if name.startswith("theirs-"):
                work = Worker(self.root / "workers", name, self.bus)
                work.finds(f"- {self.text()}")
                work.becomes("completed")
                self.workers[name] = "completed"

    def they_configure(self) -> None:
        path = self.root / "events/config.yaml"
        path.write_text(f"pythia-interval: 0\nack-timeout: {100 + self.number}\n")

    # The end -----------------------------------------------------------------------------------

    def step(self, name: str) -> None:
        getattr(self, name)()
        self.clock.move()

    def end(self) -> None:
        self.we_read()
        self.we_read_for_both()
        self.ours("", "sync")
        with self.clock.running(), Team(str(self.root)) as team:
            assert list(file_differences(team.source, team.disk)) == []
            assert team.warnings == []
            entries = list(team.store.read())
            before = tree(self.root)
            made = recover.rebuild(team)
            assert (made.written, made.displaced) == ([], 0)
            assert tree(self.root) == before
        seen = {e.kind for e in entries if e.data.get("observed")}
        self.kinds = {f"observed {kind}" for kind in seen}
        self.kinds |= {e.kind for e in entries if not e.data.get("observed")}
        told: dict[str, list[Any]] = {}
        for entry in entries:
            told.setdefault(entry.kind, []).append(entry.data)
        assert "file.displaced" not in told
        self.check_chat(told["chat.sent"])
        self.check_decisions(told["decision.logged"])
        self.check_events(told)
        self.check_readers()
        for name, state in self.workers.items():
            assert Worker(self.root / "workers", name, self.bus).state() == state
        with collect(str(self.root)) as evidence:
            report = judge(evidence)
        assert [f for outcome in report.outcomes for f in outcome.findings] == []

    def check_chat(self, told: list[Any]) -> None:
        files = [*self.chat.archives(), self.chat.path]
        shown = [(m.handle, m.text) for path in files for m in self.chat.messages(path)]
        assert shown == self.said
        assert [(data["handle"], data["text"]["text"]) for data in told] == self.said

    def check_decisions(self, told: list[Any]) -> None:
        assert [(entry.id, entry.title) for entry in self.log.entries()] == self.decided
        assert self.log.counted() == len(self.decided)
        assert [(data["id"], data["title"]) for data in told] == self.decided

    def check_events(self, told: dict[str, list[Any]]) -> None:
        names = [str(data["name"]) for data in told["bus.published"]]
        assert max(Counter(names).values()) == 1
        pending, processed = self.bus.pending(), self.bus.processed()
        assert Counter(names) == Counter([*pending, *processed, *self.pruned])
        assert set(self.published) <= set(names)
        payloads = Counter(data["payload"]["text"].rstrip("\n") for data in told["bus.published"])
        for handle, text in self.said[self.past[0] :]:
            assert payloads[f"{handle}: {text}".rstrip("\n")] == 1, text
        for which, title in self.decided[self.past[1] :]:
            assert payloads[f"{which} {title}"] == 1, title

    def check_readers(self) -> None:
        assert self.shown["eve"] == [
            mark for _, text in self.said for mark in re.findall(MARK, text)
        ]
        assert max(Counter(self.shown["mix"]).values(), default=1) == 1


OURS = sorted(name for name in vars(Both) if name.startswith("we_"))
THEIRS = sorted(name for name in vars(Both) if name.startswith("they_"))


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    with folder() as project:
        unpack(ARCHIVE, project)
        (project / "agent.toml").write_text('argv = ["sh", "-c", "cat"]\n')
        with Clock(AFTER - 10).running():
            assert run(project, "init").code == 0
        yield project


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LEDGER, raising=False)
    monkeypatch.delenv("NBS_HANDLE", raising=False)
    monkeypatch.setattr(chat_send, "ROTATE_ABOVE", ABOVE)
    monkeypatch.setattr(chat_send, "ROTATE_COUNT", COUNT)


def play(template: Path, steps: list[str]) -> Both:
    with folder() as where:
        project = where / "team"
        shutil.copytree(template, project)
        with mock.patch.dict("os.environ", {workers_run.PROFILE: str(project / "agent.toml")}):
            both = Both(project)
            for reader in both.shown:  # they know the past
                both.ours("nbs-chat", "read", CHAT, f"--unread={reader}")
            both.step("they_configure")  # no reviews: those have tests of their own
            for step in steps:
                both.step(step)
            both.end()
        return both


@pytest.mark.drawn("long")
def test_each_follows_each(template: Path) -> None:
    """Every step of ours comes once right before and right after every step of theirs."""
    steps = [step for pair in product(OURS, THEIRS) for step in pair]
    both = play(template, steps)
    ours = [kind for kind in both.kinds if not kind.startswith("observed ")]
    assert {"chat.rotated", "decision.logged", "bus.pruned", "worker.ended"} <= set(ours)
    observed = {"chat.rotated", "log.rotated", "chat.sent", "bus.acked", "worker.written"}
    assert {f"observed {kind}" for kind in observed} <= both.kinds


@pytest.mark.drawn("long")
@settings(  # a failure is not shrunk: each try takes seconds
    max_examples=4, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(steps=st.lists(st.sampled_from([*OURS, *THEIRS]), min_size=20, max_size=60))
def test_in_any_order(template: Path, steps: list[str]) -> None:
    play(template, steps)
