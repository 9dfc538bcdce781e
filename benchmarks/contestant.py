"""Another package's ledger at the same work, in an environment of its own.

``python contestant.py NAME FOLDER`` reads one JSON array a line, ``[what, texts]``, does it, and
prints the seconds that it took, or ``null`` where the package cannot do that. ``what`` is
``append`` (a durable act for each text, as far as the package makes it so), ``batch`` (all of them
in one) or ``verify`` (all that was written so far; a text names what is expected: its number).

Only the standard library is imported here, and the package that is measured: ``benchmarks.peers``
starts this file with the interpreter of an environment in which nothing else is installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

__all__ = ["CONTESTANTS"]

Acts = dict[str, Callable[[Sequence[str]], object]]


def _eventsourcing(folder: str) -> Acts:
    """Event sourcing in SQLite; there is no chain, so nothing to verify."""
    from eventsourcing.application import Application  # type: ignore[import-not-found]
    from eventsourcing.domain import Aggregate  # type: ignore[import-not-found]

    class Note(Aggregate):  # type: ignore[misc]
        def __init__(self, text: str) -> None:
            self.text = text

    class Notes(Application):  # type: ignore[misc]
        pass

    sqlite = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": f"{folder}/notes.db"}
    notes = Notes(env=sqlite)

    def append(texts: Sequence[str]) -> None:
        for text in texts:
            notes.save(Note(text))

    return {"append": append, "batch": lambda texts: notes.save(*map(Note, texts))}


def _auditchain(folder: str) -> Acts:
    """A hash chain in SQLite with its rollback journal, which is synced at each append."""
    from auditchain import AuditLog, SqliteBackend  # type: ignore[import-not-found]

    runner = asyncio.Runner()
    log = AuditLog(SqliteBackend(f"{folder}/audit.sqlite"))
    runner.run(log.init())

    async def append(texts: Sequence[str]) -> None:
        for text in texts:
            await log.append("ann", "note", "bench", metadata={"text": text})

    async def verify(count: int) -> None:
        report = await log.verify(expected_count=count)
        _must(report.ok, report)

    def batch(texts: Sequence[str]) -> None:
        rows = [("ann", "note", "bench", {"text": text}) for text in texts]
        runner.run(log.append_many(rows))

    return {
        "append": lambda texts: runner.run(append(texts)),
        "batch": batch,
        "verify": lambda texts: runner.run(verify(int(texts[0]))),
    }


def _waxseal(path: str) -> Acts:
    from waxseal import AuditLog  # type: ignore[import-not-found]

    log = AuditLog.open(path)

    def append(texts: Sequence[str]) -> None:
        for text in texts:
            log.append(payload={"text": text}, payload_type="application/vnd.bench+json")

    def verify(_: Sequence[str]) -> None:
        result = log.verify()
        _must(result.ok, result)

    return {"append": append, "verify": verify}


def _argus(folder: str) -> Acts:
    """A hash chain in a JSONL file, synced at each append."""
    from argus_ledger import AppendOnlyLedger  # type: ignore[import-not-found]

    ledger = AppendOnlyLedger(f"{folder}/audit.jsonl")

    def append(texts: Sequence[str]) -> None:
        for text in texts:
            ledger.append("note", "ann", {"text": text})

    def verify(texts: Sequence[str]) -> None:
        report = ledger.verify_chain()
        _must(report.valid and report.total_events == int(texts[0]), report)

    return {"append": append, "verify": verify}


def _git(folder: str, *settings: str) -> Acts:
    """A commit for each text, by git's own plumbing; a batch is one ``git fast-import``."""
    who = {
        f"GIT_{a}_{b}": "ann@example.com"
        for a in ("AUTHOR", "COMMITTER")
        for b in ("NAME", "EMAIL")
    }
    env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    start = ["git", *[word for setting in settings for word in ("-c", setting)]]

    def git(*words: str, text: bytes = b"") -> str:
        done = subprocess.run(
            [*start, *words], cwd=folder, env=env, input=text, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.decode().strip()

    git("init", "--quiet", "--bare", ".")
    tree = git("mktree")
    tip = [""]

    def append(texts: Sequence[str]) -> None:
        for text in texts:
            parent = ("-p", tip[0]) if tip[0] else ()
            tip[0] = git("commit-tree", tree, *parent, text=text.encode())
            git("update-ref", "refs/heads/notes", tip[0])

    def batch(texts: Sequence[str]) -> None:
        parts = []
        for number, text in enumerate(texts):
            data = text.encode()
            parts.append(
                b"commit refs/heads/notes\ncommitter ann <ann@example.com> %d +0000\ndata %d\n%s\n"
                % (1_760_000_000 + number, len(data), data)
            )
            if number == 0 and tip[0]:
                parts[-1] += b"from %s\n" % tip[0].encode()
        git("fast-import", "--quiet", text=b"".join(parts))
        tip[0] = git("rev-parse", "refs/heads/notes")

    def verify(texts: Sequence[str]) -> None:
        git("fsck", "--strict", "--no-progress")
        _must(git("rev-list", "--count", "refs/heads/notes") == texts[0], texts)

    return {"append": append, "batch": batch, "verify": verify}


CONTESTANTS: dict[str, Callable[[str], Acts]] = {
    "eventsourcing": _eventsourcing,
    "auditchain": _auditchain,
    "waxseal": lambda folder: _waxseal(f"{folder}/trail.jsonl"),
    "waxseal-sqlite": lambda folder: _waxseal(f"{folder}/trail.db"),
    "argus-ledger": _argus,
    "git": _git,
    "git-synced": lambda folder: _git(folder, "core.fsync=all", "core.fsyncMethod=fsync"),
}
"""How each package is set up in a folder: by name, what it does."""


def _must(holds: bool, what: Any) -> None:  # noqa: FBT001 - a test and what it is of
    if not holds:
        raise SystemExit(f"the package finds its own ledger wrong: {what}")


def main() -> None:
    """Do what is asked, line by line."""
    acts = CONTESTANTS[sys.argv[1]](sys.argv[2])
    for line in sys.stdin:
        what, texts = json.loads(line)
        act = acts.get(what)
        begin = perf_counter()
        if act is not None:
            act(texts)
        print(json.dumps(perf_counter() - begin if act else None), flush=True)


if __name__ == "__main__":
    main()
