"""What must hold of any team that is taken in: nothing changed, nothing ignored, all of it kept."""

import os
from pathlib import Path

from story import tree

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.registry import BY_NAME
from tripod.projections.chat import format as chat_format
from tripod.projections.disk import Disk
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team

__all__ = ["check_adoption", "check_going_on"]

INPUTS = ("config.yaml", "supervisor.md", "policy")


def state(root: Path) -> dict[str, tuple[int, int, int]]:
    """Mode, size and time of everything in a folder, folders too."""
    found = {}
    for path in sorted(root.rglob("*")):
        stat = path.lstat()
        name = os.fsencode(path.relative_to(root)).decode(errors="backslashreplace")
        found[name] = (stat.st_mode, stat.st_size, 0 if path.is_dir() else stat.st_mtime_ns)
    return found


def ours(name: str) -> bool:
    return name.startswith(("ledger.db", "counts.json", ".gitignore"))


def projected(root: Path) -> list[Path]:
    """The files that ``rebuild`` gives back: all but logs, read positions, inputs and strangers."""
    with Team(str(root)) as team:
        return [
            root / difference.path
            for difference in file_differences(team.source, _Nowhere(str(root)))
            if difference.path != "counts.json"
        ]


class _Nowhere(Disk):
    """A team directory in which no file stands."""

    def look(self, path: str, limit: int) -> None:  # noqa: ARG002 - the disk's signature
        return None


def check_adoption(project: Path) -> adoption.Adoption:
    """Everything that must hold of any adoption; gives what was reported."""
    root = project / ".nbs"
    before, files = state(root), tree(root)
    taken = adoption.init(str(project), project="past", scribe="scribe")
    after = state(root)
    assert {name: what for name, what in after.items() if not ours(name)} == before
    assert "ledger.db" in after
    assert "counts.json" in after
    with Team(str(root)) as team:
        assert list(file_differences(team.source, team.disk)) == []
        size = team.store.head().size
        for entry in team.store.read():
            model_of(BY_NAME[entry.kind]).model_validate(entry.data)
    gone = projected(root)
    for path in gone:
        path.unlink()
    with Team(str(root)) as team:
        recover.rebuild(team)
        traces = list(team.store.read(size))
        assert {entry.kind for entry in traces} <= {"file.displaced"}
        assert not [entry for entry in traces if "content" in entry.data], "they were gone"
    counts = {"counts.json"}
    assert {p: f for p, f in tree(root).items() if p not in counts} == files
    again = adoption.init(str(project))
    assert (again.entries, again.begun) == (0, False)
    kept = "are kept in the ledger"  # said once, by the command that keeps it
    assert again.warnings == [text for text in taken.warnings if kept not in text]
    reported = {*taken.left_alone, *(text.partition(": ")[0] for text in taken.warnings)}
    held = {path.relative_to(root).as_posix() for path in gone}
    for name in before:
        above = {f"{parent}/" for parent in Path(name, "x").parents}
        known = name in held or name in reported or bool(above & reported)
        known = known or name in {"chat", "events", "events/processed", "scribe", "workers"}
        known = known or name.endswith((".log", ".cursors", ".lock", ".tmp"))
        assert known or name.rpartition("/")[2].startswith(INPUTS), f"{name} was ignored silently"
    return taken


def check_going_on(project: Path) -> None:
    """New acts continue the same files, and nothing differs afterwards."""
    with Team(str(project / ".nbs")) as team:
        bus.publish(team, "ann", "note", "normal", "on")
        decisions_log.log(team, decisions_log.DecisionRequest("Going on", ["ann"], "because"))
        channels = [c for (c,) in team.store.db.execute("SELECT channel FROM channels").fetchall()]
        for channel in channels:
            if channel.endswith("-archive"):
                continue  # an archive whose chat is gone is read, and not written to
            chat_send.send(team, channel, "ann", f"on in {channel}")
            message = chat_read.messages(team, channel, last=1)[0]
            assert message.text == f"on in {channel}"
            data = (project / ".nbs/chat" / f"{channel}.chat").read_bytes()
            line = chat_format.parse_line(data.splitlines()[-1])
            assert line is not None
            assert line.text == f"on in {channel}"
        assert list(file_differences(team.source, team.disk)) == []
        recover.rebuild(team)
        assert adoption.sync(team).entries == 0
