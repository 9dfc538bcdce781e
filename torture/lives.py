"""Lives: a team acts by lot, and after each act every answer is the one that the model expects.

All happens in this process, by the functions that the commands call; each act opens the team anew,
as a command does. Beside the acts other programs write, files come back as they were, tables are
computed again, another replica is merged. At the end every check must be clean, or name just what
was forged.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from torture.model import PRIORITIES, Channel, Expected
from torture.teams import Case, Result, Scene
from tripod.bus import events, reader
from tripod.chat import reader as chat_reader
from tripod.chat import writer as chat
from tripod.decisions import reader as decisions
from tripod.decisions.writer import DecisionRequest, log
from tripod.errors import DuplicateDroppedError, NotFoundError, RefusedError
from tripod.ledger import Draft
from tripod.ledger.kinds.peers import TEAM_NAMED
from tripod.ledger.locator import database_of
from tripod.peers.merge import merge_record
from tripod.peers.replica import replica_name, replica_of
from tripod.projections.bus import format as bus_format
from tripod.projections.chat import format as chat_format
from tripod.projections.decisions import format as log_format
from tripod.recovery.rebuild import rebuild
from tripod.recovery.redaction import RedactionRequest, redact
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust.export import export
from tripod.trust.keys import no_passphrase
from tripod.trust.seal import seal_now
from tripod.verify.check import Report
from tripod.verify.export_file import ExportFiles
from tripod.verify.run import verify

__all__ = ["LIVES", "lives"]

LIVES = (Scene("alone", (), ()),)
"""What the family takes in turn, where others take teams."""
STEPS = 30
"""Acts of a life."""
HANDLES = ("ann", "bob", "eve")
CHANNELS = ("live", "side")
TEXTS: dict[str, tuple[str, ...]] = {
    "@bob, see #1": ("chat-mention",),
    "@ann and @eve!": ("chat-mention", "chat-interrupt"),
    **dict.fromkeys(
        (
            "hello",
            "we keep both tables",
            "",
            "a: b",
            "### D-1 no",
            "---",
            "\u202eodd",
            "[redacted]",
            "x" * 20_000,
            "two\nlines",
            "'quoted' \"twice\"",
            "=== nbs-chat ===",
        ),
        (),
    ),
}
"""What is said, and the events that tell those whose names are in it."""
FATES = {"supersedes": "superseded", "reverses": "reversed", "mitigates": "mitigated"}
"""What a decision does to an earlier one, and what that is then."""
TITLES = ("Keep both tables", "[SUPERSEDES] no", "a | b", "- **Status:** decided", "`---`", "Ünï")


def lives(_scene: Scene, _folder: Path, seed: int) -> Iterator[Case]:
    """One life after another; each is a case, and the n-th of a seed is always the same."""
    number = 0
    while True:
        yield Case(f"life {number}", partial(_lived, f"{seed} {number}"))
        number += 1


def _lived(seed: str) -> Result:
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a new one in it
    home = os.environ.get("TRIPOD_HOME")
    with tempfile.TemporaryDirectory(prefix="torture-", dir=where) as folder:
        os.environ["TRIPOD_HOME"] = f"{folder}/home"
        life = Life(Path(folder, "team"), random.Random(seed))
        try:
            life.live(STEPS)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises here is looked for
            return Result(f"{type(error).__name__}: {error}\n      {life.told()}", wrong=True)
        finally:
            del os.environ["TRIPOD_HOME"]
            if home is not None:
                os.environ["TRIPOD_HOME"] = home
    return Result(life.end)


class Life:
    """One team, what is expected of it, and what it did so far."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        folder.mkdir()
        self.root = folder / ".nbs"
        self.chance = chance
        self.expected = Expected()
        self.done: list[str] = []
        self.older: dict[Path, bytes] = {}
        self.by_hand: set[str] = set()
        self.end = "clean"
        _begin(folder)
        for name in CHANNELS:
            self.create(name)

    @contextmanager
    def team(self) -> Iterator[Team]:
        """The team, opened anew."""
        with Team(str(self.root)) as team:
            yield team

    def told(self) -> str:
        """What was done, for a person."""
        return "after " + "; ".join(self.done)

    def live(self, steps: int) -> None:
        """Act, and compare after each act (AssertionError: an answer is another than expected)."""
        for _ in range(steps):
            step = self.chance.choice(ACTS)
            self.done.append(step.__name__)
            step(self)
            self.compare()
        self.judge()

    def compare(self) -> None:
        """Hold every answer against the model."""
        expected = self.expected
        with self.team() as team:
            team.refresh()
            pending = [(one.priority, one.source, one.type) for one in events.check(team)]
            wanted = [(one.priority, one.source, one.kind) for one in expected.pending()]
            _same("pending", pending, wanted)
            held = reader.held(team, time.time_ns() // 1000)
            _same("claims", len(held), sum(one.holder is not None for one in expected.queue))
            for name, channel in expected.channels.items():
                shown = [(one.handle, one.text) for one in chat_reader.messages(team, name)]
                _same(f"messages of {name}", shown, channel.shown())
                for handle in HANDLES[:2]:
                    unread = [one.number for one in chat_reader.unread(team, name, handle)]
                    _same(f"unread of {handle} in {name}", unread, channel.unread(handle))
            found = decisions.query(team) if expected.decisions else ()
            logged = [(one.title, one.change.status if one.change else "stands") for one in found]
            _same("decisions", logged, [(one.title, one.fate) for one in expected.decisions])
            warned = [text for text in team.warnings if "edited" in text]
            _same("warnings", warned, [])

    def judge(self) -> None:
        """Forge something or not, and have every check judge the team."""
        forged = self.forge() if self.chance.random() < 0.3 else None
        report = verify(str(self.root.parent), git=False)
        wrong = self._failures(report)
        if forged is not None:
            self.end = "what was forged is named"
            named = [text for text in wrong if forged in text]
            assert named, f"false clean: {forged} was forged, and {wrong} found"
            wrong = [text for text in wrong if text not in named]
        _same("findings", wrong, [])

    def _failures(self, report: Report) -> list[str]:
        """What is wrong by a report, without what others did: decisions without a message."""
        found = [
            (one.check, f"{one.check}: {finding.where} {finding.file}: {finding.message}")
            for one in report.outcomes
            for finding in one.findings
            if finding.severity == "failure"
        ]
        known = {
            f"{id_}: it has no chat reference"
            for id_ in self.by_hand
            if any(one.id == id_ for one in self.expected.decisions)
        }
        return [
            text
            for check, text in found
            if check != "chat-refs-resolve" or not any(one in text for one in known)
        ]

    # The bus -----------------------------------------------------------------------------------

    def publish(self) -> None:
        """Publish an event."""
        source, kind = self.chance.choice(HANDLES), self.chance.choice(("note", "done"))
        priority, text = self.chance.choice(PRIORITIES), self.chance.choice(tuple(TEXTS))
        window = self.chance.choice((0, 0, 3600))
        double = bool(window) and self.expected.is_double(source, kind)
        with self.team() as team:
            try:
                events.publish(team, source, kind, priority, text, dedup_window=window)
            except DuplicateDroppedError:
                assert double, "dropped, although no equal event is pending"
                return
        assert not double, "published, although an equal event is pending"
        self.expected.publish(priority, source, kind)

    def _some_event(self) -> tuple[int, str] | None:
        with self.team() as team:
            team.refresh()
            names = [one.name for one in events.check(team)]
        number = self.chance.randrange(len(names)) if names else 0
        return (number, names[number]) if names else None

    def ack(self) -> None:
        """Acknowledge one event."""
        found = self._some_event()
        if found is None:
            return
        held = self.expected.pending()[found[0]].holder not in (None, "ann")
        with self.team() as team:
            try:
                events.ack(team, found[1], actor="ann")
            except RefusedError:
                assert held, "refused, although nobody else has it"
                return
        assert not held, "acknowledged, although somebody else has it"
        self.expected.ack(found[0])

    def ack_all(self) -> None:
        """Acknowledge all events, or those of one source."""
        source = self.chance.choice((None, *HANDLES))
        with self.team() as team:
            count = events.ack_all(team, source, actor="ann")
        _same("acknowledged", count, self.expected.ack_all(source))

    def claim(self) -> None:
        """Take the most urgent event."""
        holder = self.chance.choice(HANDLES)
        wanted = self.expected.claim(holder)
        with self.team() as team:
            try:
                name = reader.claim(team, holder, lease=3600).name
            except NotFoundError:
                assert wanted is None, "nothing to take, although an event is free"
                return
            assert wanted is not None, f"{name} was taken, although none is free"
            wanted.name = name

    def release(self) -> None:
        """Give an event back."""
        taken = next((one for one in self.expected.queue if one.holder is not None), None)
        if taken is not None and taken.holder is not None and taken.name is not None:
            with self.team() as team:
                reader.release(team, taken.holder, taken.name)
            taken.holder = None

    def prune(self) -> None:
        """Delete files of processed events: no answer changes."""
        with self.team() as team:
            events.prune(team, self.chance.choice((1, 500, 10_000)), actor="ann")

    # The chat ----------------------------------------------------------------------------------

    def create(self, name: str) -> None:
        """Begin a channel."""
        with self.team() as team:
            chat.create(team, name, actor="ann")
        self.expected.channels[name] = Channel()

    def send(self) -> None:
        """Say something."""
        name, handle, text = map(self.chance.choice, (CHANNELS, HANDLES, tuple(TEXTS)))
        with self.team() as team:
            chat.send(team, name, handle, text)
        if text:
            self.expected.send(name, handle, text, TEXTS[text])
        else:
            self.expected.say(name, handle, text)

    def read(self) -> None:
        """Read what is unread, or the newest of it."""
        name, handle = map(self.chance.choice, (CHANNELS, HANDLES))
        last = self.chance.choice((None, 1, 2))
        with self.team() as team:
            team.refresh()
            shown = chat_reader.unread(team, name, handle, chat_reader.Window(last))
            numbers = [one.number for one in shown]
            chat.mark_read(team, name, handle, numbers)
        unread = self.expected.channels[name].unread(handle)
        _same("shown", numbers, unread if last is None else unread[-last:])
        self.expected.read(name, handle, numbers)

    def search(self) -> None:
        """Search a channel with its archives."""
        name, pattern = self.chance.choice(CHANNELS), self.chance.choice(("BOTH", "e", "@", "x"))
        with self.team() as team:
            team.refresh()
            found = [one.number for one in chat_reader.search(team, name, pattern, archives=True)]
        _same("found", found, self.expected.channels[name].found(pattern))

    def archive(self) -> None:
        """Split the older messages off."""
        name, keep = self.chance.choice(CHANNELS), self.chance.randrange(3)
        with self.team() as team:
            chat.archive(team, name, keep)
        self.expected.archive(name, keep)

    def redact(self) -> None:
        """Erase a message."""
        name = self.chance.choice(CHANNELS)
        with self.team() as team:
            team.refresh()
            shown = [one for one in chat_reader.messages(team, name) if "@" not in one.handle]
            if shown:
                one = self.chance.choice(shown)
                gone = self.expected.channels[name].said[one.number]
                try:
                    redact(team, RedactionRequest((one.seq,), None, "asked to", "ann"))
                except RefusedError:
                    assert gone.is_erased, "refused, although it was never erased"
                    return
                assert not gone.is_erased, "erased twice"
                gone.text, gone.is_erased = "[redacted]", True
                self.older = {}  # what was erased makes a file of another that nobody knows

    # Decisions ---------------------------------------------------------------------------------

    def decide(self) -> None:
        """Log a decision, which may change an earlier one."""
        title = self.chance.choice(TITLES)
        earlier = self.chance.choice(self.expected.decisions) if self.expected.decisions else None
        change = self.chance.choice((*FATES, ""))
        if earlier is None or earlier.id is None or earlier.fate != "stands":
            change = ""
        of = None
        if change and earlier is not None:
            with self.team() as team:
                named = replica_of(team.store)
            assert named is not None
            of = f"{named[1]}/{earlier.id}"  # a peer may have one of the same second
        request = DecisionRequest(
            title, ["ann"], "So.", no_ref="none was said",
            supersedes=of if change == "supersedes" else None,
            reverses=of if change == "reverses" else None,
            mitigates=of if change == "mitigates" else None,
        )  # fmt: skip
        with self.team() as team:
            made = log(team, request)
        self.expected.decide(
            made.id, title, earlier.id if change and earlier else None, FATES.get(change, "")
        )

    # Others ------------------------------------------------------------------------------------

    def foreign_event(self) -> None:
        """Another program publishes."""
        us = time.time_ns() // 1000
        name = bus_format.event_name(us, "cron", "tick", 41)
        event = bus_format.Event("cron", "tick", "low", bus_format.format_time(us), "", "x\n")
        self._put(f"events/{name}", bus_format.format_event(event))
        self.expected.publish("low", "cron", "tick")

    def foreign_ack(self) -> None:
        """Another program acknowledges, or somebody deletes an event's file."""
        found = self._some_event()
        if found is not None:
            file = self.root / "events" / found[1]
            if self.chance.random() < 0.5:
                done = self.root / "events/processed"
                done.mkdir(exist_ok=True)
                file.rename(done / file.name)
            else:
                file.unlink()
            self.expected.ack(found[0])

    def foreign_line(self) -> None:
        """Another program adds a line to a chat."""
        name, handle = map(self.chance.choice, (CHANNELS, HANDLES))
        with (self.root / f"chat/{name}.chat").open("ab") as file:
            file.write(chat_format.format_line(handle, time.time_ns() // 10**9, "by hand") + b"\n")
        self.expected.say(name, handle, "by hand")

    def foreign_decision(self) -> None:
        """A person adds a decision to the log."""
        path = self.root / "scribe/log.md"
        if path.exists():
            id_ = f"D-{1_600_000_000 + len(self.expected.decisions)}"
            text = log_format.format_decision(_BY_HAND._replace(id=id_))
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
            self.by_hand.add(id_)
            self.expected.note(id_, "By hand")

    def _put(self, path: str, data: bytes) -> None:
        full = self.root / path
        full.parent.mkdir(exist_ok=True)
        staged = full.with_name(f".tmp-{full.name}")
        staged.write_bytes(data)
        staged.rename(full)

    def remember(self) -> None:
        """Copy the chats and the log, as a checkout or a stash keeps them."""
        self.sync()
        self.older = {path: path.read_bytes() for path in self._growing()}

    def go_back(self) -> None:
        """One of these files is again as it was; nothing of it is taken in."""
        self.sync()  # what others wrote before is not lost with it
        if self.older:
            path = self.chance.choice(sorted(self.older))
            path.write_bytes(self.older[path])
            self.compare()
            self.rebuild()

    def _growing(self) -> list[Path]:
        return [*self.root.glob("chat/*.chat"), *self.root.glob("scribe/*.md")]

    def forge(self) -> str | None:
        """Change a byte of what was said or decided; the end of the path."""
        self.sync()
        with self.team() as team:
            rebuild(team)
        path = self.chance.choice(sorted(self._growing()))
        data = path.read_bytes()
        front = data.find(b"\n---\n") + 5
        if len(data) <= front + 40:
            return None
        at = self.chance.randrange(front, len(data) - 12)
        path.write_bytes(data[:at] + (b"Z" if data[at : at + 1] != b"Z" else b"Y") + data[at + 1 :])
        return path.name

    def pull(self) -> None:
        """Another replica of the team speaks, publishes and decides, and is merged."""
        peer, folder = self.root.parent.parent / "peer", self.root.parent / f"peer-{len(self.done)}"
        if not peer.exists():
            peer.mkdir()
            _begin(peer)
            with Team(str(peer / ".nbs")) as team:
                chat.create(team, CHANNELS[0], actor="bob")
        with Team(str(peer / ".nbs")) as team:
            named = replica_of(team.store)
            assert named is not None
            chat.send(team, CHANNELS[0], "bob", "from elsewhere")
            log(team, DecisionRequest("Elsewhere", ["bob"], "So.", no_ref="none was said"))
            events.publish(team, "cron", "tick", "low", dedup_window=0)
            _export(team, folder)
        with self.team() as team:
            merged = merge_record(team, ExportFiles(str(folder)))
        _same("problem of the merge", merged.problem, "")
        of = f"@{named[1]}"
        self.expected.say(CHANNELS[0], f"bob{of}", "from elsewhere")
        self.expected.publish("normal", f"nbs-chat{of}", "chat-message")
        self.expected.note(None, "Elsewhere")
        self.expected.publish("normal", f"scribe{of}", "decision-logged")
        self.expected.publish("low", f"cron{of}", "tick")

    # The whole ---------------------------------------------------------------------------------

    def sync(self) -> None:
        """Take in what others wrote."""
        with self.team() as team:
            adoption.sync(team)

    def rebuild(self) -> None:
        """Compute all tables and files again."""
        self.sync()
        with self.team() as team:
            rebuild(team)

    def seal(self) -> None:
        """Seal, and export; the export is sound."""
        folder = self.root.parent / f"export-{len(self.done)}"
        with self.team() as team:
            _export(team, folder)
        _same("findings of an export", self._failures(verify(str(folder), git=False)), [])


def _begin(folder: Path) -> None:
    """Begin a replica of the team in a folder, with a key."""
    names = {"project": "p", "origin": f"torture.example/{folder.name}", "scribe": "scribe"}

    def named(vkey: str) -> list[Draft]:
        replica = replica_name(folder.name, vkey)
        return [TEAM_NAMED.draft({"team": "torture.example/team", "replica": replica})]

    adoption.begin_replica(str(folder), names, {}, key=True, named=named)


def _export(team: Team, folder: Path) -> None:
    """Seal, and write all to a folder."""
    note = seal_now(team, no_passphrase)
    export(database_of(team.root), str(folder), note, bodies=True)


_BY_HAND = log_format.DecisionText("", "By hand", None, "", "ann", "", "", "", "So.")


def _same(what: str, found: object, wanted: object) -> None:
    assert found == wanted, f"{what}: {found!r:.600}, expected {wanted!r:.600}"


ACTS: tuple[Callable[[Life], None], ...] = (
    *(Life.publish, Life.publish, Life.ack, Life.ack_all, Life.claim, Life.release, Life.prune),
    *(Life.send, Life.send, Life.send, Life.read, Life.read, Life.search, Life.archive),
    *(Life.redact, Life.decide, Life.decide, Life.foreign_event, Life.foreign_ack),
    *(Life.foreign_line, Life.foreign_decision, Life.remember, Life.go_back, Life.sync),
    *(Life.rebuild, Life.seal, Life.pull),
)
