"""Intake of workers' files, evidence, and the inputs that people edit.

Source: design section 6, "which file is what"; spec nbs-compat B6, C5.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any

from tripod.ledger import ARCHIVE, EVIDENCE, RECORD, SPOOL, MalformedError
from tripod.ledger.kinds.team import CONFIG_CHANGED, EVIDENCE_KEPT
from tripod.ledger.kinds.workers import WRITTEN
from tripod.projections import layout, settings
from tripod.projections.bus.format import Config, ConfigWarning
from tripod.projections.chat.tables import CHAT
from tripod.projections.decisions.tables import LOG
from tripod.projections.disk import TooBigError, UnreadableError, odd_config_on_disk
from tripod.projections.manifest import ManifestReader
from tripod.projections.pieces import piece_fits
from tripod.projections.state import older_worker
from tripod.projections.team.tables import FILES
from tripod.projections.workers.format import EMPTY_LOG
from tripod.projections.workers.tables import FOLDER, WORKERS, worker_of_path

MAX_PROBLEMS = 50
PROBLEM_ROOM = 500  # bytes of JSON
THEIRS = re.compile(
    r"project-id|control-(?:registry|inbox)(?:-[^/]+)?|control-pause|oracle-active\.txt"
    r"|[a-z]+-last-run|nbs-claude-[^/]+\.log|(?:bin|digests|pids|pty-locks|remote-edit|sessions)/"
)
"""What the original's programs keep in the team directory to run: no record of the team.

Source: the scripts of the original. A folder's name ends in a slash.
"""
# What a worker of the original tools edits in place in its own file.
_STATE_LINE = re.compile(rb"^(?:State|Completed):.*$", re.MULTILINE)
_STATUS_LINES = re.compile(rb"^(?:State|Started|Completed):.*$", re.MULTILINE)


def take_team_inputs(reader: ManifestReader) -> None:
    """Note what changed in the files that people edit: the configuration, policies, the goal."""
    db = reader.source.db
    known = {path: row for path, *row in db.execute("SELECT path, sha256, seq FROM inputs")}
    configs = [layout.config_of(queue) for queue in reader.disk.places.queues()]
    policies = [name for name in reader.disk.names("") if layout.POLICY.holds(name)]
    odds = {path: odd_config_on_disk(reader.disk, path) for path in configs}
    reader.found.odd.update((path, odd) for path, odd in odds.items() if odd is not None)
    for path in (*configs, layout.SUPERVISOR.path, *policies):
        stat = reader.disk.stat(path)
        if stat is not None and reader.unchanged(path, stat):
            continue
        try:
            data = reader.load(path, layout.CONFIG.limit)
        except UnreadableError as error:
            reader.conflict(path, "unreadable", str(error))
            continue
        digest = "" if data is None else sha256(data).hexdigest()
        last, seq = known.get(path, ("", 0))
        if digest == last or _is_older_input(reader, path, digest):
            continue
        reader.found.files += data is not None
        body: dict[str, Any] = {"path": path, "sha256": digest, "content": data}
        if path in configs:
            config, warnings = parse_team_config(data or b"")
            problems: list[dict[str, Any]] = [one._asdict() for one in warnings]
            shown = [one for one in problems[:MAX_PROBLEMS] if piece_fits(one, PROBLEM_ROOM)]
            if left := len(problems) - len(shown):  # a file of nonsense has one for each line
                shown.append({"line": 0, "key": "", "message": f"{left} more lines were not taken"})
            body |= {"settings": config._asdict(), "problems": shown}
        # A file may come back to earlier bytes: by the ordinal each change has its own id.
        when = 0 if stat is None else stat.mtime_us
        reader.add(CONFIG_CHANGED, body, path, data or b"", when, ordinal=seq, mtime_us=when)


def _is_older_input(reader: ManifestReader, path: str, digest: str) -> bool:
    """Whether other files show an older state, and this one is as it was read last before that.

    Nobody changed it then; if it stays so once the others are new again, it is taken in.
    """
    shown = reader.found.shown
    if shown is None:
        return False
    changes = reader.source.ledger.read(kinds=(CONFIG_CHANGED.name,))
    states = [one.data["sha256"] for one in changes if one.data["path"] == path]
    return digest in ("", *states)


def take_others_workers(reader: ManifestReader) -> None:
    """Workers' files always; their logs when looking in full."""
    for name in reader.disk.names(FOLDER):
        path = f"{FOLDER}/{name}"
        if name.endswith(".md"):
            _take_worker(reader, path)
        elif name.endswith(".log") and reader.full:
            data = _fresh(reader, path, layout.WORKER_LOG.limit)
            held = None if data is None else FILES.render(reader.source, path)
            if held is not None and data is not None and not data.startswith(held.data):
                reader.conflict(path, "edited", "a log only grows")
            elif data is not None and (held is None or held.data != data):
                reader.keep(EVIDENCE_KEPT, path, data)
    rows = reader.source.db.execute(
        "SELECT path FROM files WHERE class IN ('worker', 'seen')"
        f" UNION SELECT '{FOLDER}/' || name || '.md' FROM workers WHERE changed < ? ORDER BY 1",
        (reader.shown.files,),
    )
    for (path,) in rows.fetchall():
        if not reader.disk.is_file(path):
            stream = f"workers/{worker_of_path(path)}"
            first = next(reader.source.ledger.raw(stream=stream, limit=1), None)
            reader.missing(path, -1 if first is None else first.seq, "the file is gone")
    if reader.full:
        reader.found.left_alone.extend(_left_alone(reader))


def _fresh(reader: ManifestReader, path: str, limit: int) -> bytes | None:
    """The new bytes of a worker's file; one that is too large to keep stays where it is.

    Of a worker that we ran the ledger holds the digests of its logs: `worker-lifecycle` judges
    those of any size.
    """
    try:
        return reader.load(path, limit, fresh=True)
    except UnreadableError as error:
        db = reader.source.db
        is_big = isinstance(error, TooBigError)
        name = path.rpartition("/")[2].removesuffix(".log").removesuffix(".err")
        ours = db.execute("SELECT 1 FROM workers WHERE name = ?", (name,)).fetchone()
        if is_big and ours is not None and path.endswith(".log"):
            return None
        held = db.execute("SELECT 1 FROM files WHERE path = ?", (path,)).fetchone()
        if held is not None or not is_big:
            reader.conflict(path, "unreadable", str(error))
        elif reader.full:
            reader.found.left_alone.append(path)
        return None


def _take_worker(reader: ManifestReader, path: str) -> None:
    data = _fresh(reader, path, layout.WORKER.limit)
    if data is None:
        return
    held = WORKERS.render(reader.source, path) or FILES.render(reader.source, path)
    if held is not None:
        if held.data == data:
            return
        # A worker sets its State line in place, and appends to its log or writes over the
        # placeholder there. Where a writer died, the file may show an earlier state.
        is_late = reader.shown.is_behind
        lines = _STATUS_LINES if is_late else _STATE_LINE
        before = lines.sub(b"", held.data).rstrip(b"\n")
        after = lines.sub(b"", data)
        # A worker may come back to an earlier state by itself; not while others show one, too.
        size = (
            None
            if reader.found.shown is None
            else older_worker(reader.source, reader.past, path, data)
        )
        if size is not None:
            reader.older(path, size)
            return
        if after.rstrip(b"\n") == before and is_late:
            return
        if not after.startswith(before.removesuffix(EMPTY_LOG.encode())):
            reader.conflict(path, "edited", "more than its State lines changed above its end")
            return
    reader.keep(WRITTEN, path, data)


def _left_alone(reader: ManifestReader) -> list[str]:
    """What stands in the team directory and no part of the intake takes in, folders with a /."""
    alone = [f"{folder}/" for folder in reader.disk.places.unused()]
    full = reader.disk.full
    added = {full(folder) for folder in reader.disk.places.added}
    added |= {each for folder in added for each in _folders_above(folder)}
    logs = {os.path.normpath(full(f"{LOG.folder}/{n}")) for n in reader.found.logs if "/" in n}
    above = {each for path in reader.own for each in _folders_above(path)}
    ours = reader.own | above
    for folder in ("", *layout.FOLDERS, *sorted(above.difference(layout.FOLDERS))):
        classes = [one for one in layout.in_folder(folder) if one is not layout.LOG_FILE]
        front = f"{folder}/" if folder else ""
        found: list[str] = []
        base = full(folder) if folder else reader.disk.root
        for name, what in reader.disk.walk(folder):
            known = what == "folder" and (
                front + name in layout.FOLDERS
                or front + name in (EVIDENCE, RECORD, SPOOL)
                or f"{base}/{name}" in added
                or (folder == CHAT.folder and name == ARCHIVE and _all_recorded(reader))
            )
            if what == "file":
                named = any(name in one.names for one in classes)
                like = not name.startswith(".") and any(one.holds(name) for one in classes)
                known = named or like or name.endswith((".lock", ".tmp"))
                known = known or (folder == LOG.folder and name in reader.found.logs)
                known = known or os.path.normpath(f"{base}/{name}") in logs
            elif what == "other" and folder == LOG.folder:
                known = reader.disk.alias(front + name) in reader.found.logs
            shown = f"{front}{name}/" if what == "folder" else front + name
            if not known and front + name not in ours and not THEIRS.fullmatch(shown):
                found.append(shown)
        alone += sorted(found)
    return alone


def _folders_above(path: str) -> Iterator[str]:
    """The folders that a file lies in."""
    while path := path.rpartition("/")[0]:
        yield path


def _all_recorded(reader: ManifestReader) -> bool:
    """Whether each chat that was moved into the archive folder is known to the ledger."""
    folder = f"{CHAT.folder}/{ARCHIVE}"
    drafts = (piece.draft for piece in reader.found.pieces)
    stems = {name for (name,) in reader.source.db.execute("SELECT archive FROM archives")}
    stems |= {draft.body["archive"] for draft in drafts if draft.kind == "chat.rotated"}
    known = set(map(CHAT.file, stems))
    names = (name for name in reader.disk.names(folder) if not name.endswith((".cursors", ".lock")))
    return all(f"{folder}/{name}" in known for name in names)


_FILE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,104}"
_TYPES: dict[str, Any] = {
    "dedup-window": Annotated[int, settings.whole_setting(0)],
    "retention-max-bytes": Annotated[int, settings.whole_setting(1)],
    "ack-timeout": Annotated[int, settings.whole_setting(0)],
    "pythia-interval": Annotated[int, settings.whole_setting(0)],
    "pythia-channel": Annotated[
        str, settings.spelled_setting(_FILE_NAME, "the file name of a chat, such as live.chat")
    ],
    "notify": Annotated[str, settings.setting_of(("inotifywait", "poll"))],
    "poll-interval": Annotated[int, settings.whole_setting(1)],
    "deleted-events": Annotated[str, settings.setting_of(("acked", "restore"))],
}


def parse_team_config(data: bytes) -> tuple[Config, tuple[ConfigWarning, ...]]:
    r"""Read ``events/config.yaml`` into the settings and what was wrong with it; never raises.

    >>> parse_team_config(b"dedup-window: 300 # five minutes\n")[0].dedup_window
    300

    ::

        # Deduplication window in seconds
        dedup-window: 300
        pythia-channel: "live.chat"   # quotes and comments are allowed

    People write this file and no command of ours does, so there is one direction only. The last
    valid value of a key wins; a value that does not fit leaves the value that holds, and a warning
    names its line. A file that is not YAML is read line by line, as the original tools read it: a
    slip in one line changes no other.

    Source: seeds nbs-bus and tripod-architecture, "Configuration"; spec nbs-compat B6.
    """
    if len(data) > settings.MAX_SIZE:
        message = f"the file is larger than {settings.MAX_SIZE} bytes; the defaults hold"
        return Config(), (ConfigWarning(0, "", message),)
    warnings: list[ConfigWarning] = []
    try:
        entries = settings.read_setting_entries(data)
    except MalformedError:
        entries = _line_by_line(data, warnings)
    values: dict[str, Any] = {}
    first: dict[str, int] = {}
    for key, line, value in entries:
        if key not in _TYPES:
            warnings.append(ConfigWarning(line, key, "unknown key"))
            continue
        if first.setdefault(key, line) != line:
            message = f"stands on line {first[key]} already; the last valid value holds"
            warnings.append(ConfigWarning(line, key, message))
        try:
            values[key.replace("-", "_")] = settings.judge(_TYPES[key], value)
        except MalformedError as error:
            warnings.append(ConfigWarning(line, key, f"{error}; the line is passed over"))
    return Config(**values), tuple(sorted(warnings, key=lambda one: one.line))


def _line_by_line(data: bytes, warnings: list[ConfigWarning]) -> list[tuple[str, int, Any]]:
    """Read a file that is not YAML: each known key with what YAML makes of the rest of its line."""
    entries: list[tuple[str, int, Any]] = []
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip(" \t").startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)[ \t]*:[ \t]*(.*)", line.rstrip("\r \t"))
        if match is None:
            warnings.append(ConfigWarning(number, "", "not a line of the form `key: value`"))
            continue
        value: Any = None
        if match[1] in _TYPES:
            # A ValueError: YAML has line breaks of its own, and reads more than one entry.
            with suppress(MalformedError, ValueError):
                ((_, _, value),) = settings.read_setting_entries(f"value: {match[2]}".encode())
        entries.append((match[1], number, value))
    return entries
