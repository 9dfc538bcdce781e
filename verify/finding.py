"""The file and the line of a finding, as somebody who stands in the repository would type them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace

from tripod.ledger import EVENTS, PROCESSED, RECORD
from tripod.projections import CHAT, LOG
from tripod.projections.chat.format import HEADER_LINES
from tripod.verify.check import RULES, Finding, Outcome
from tripod.verify.evidence import OpenEvidence

_WORDS = re.compile(
    r"entry \d+|chat .+, message \d+.*|not in a ledger|not taken in yet|the receipt of .+"
    r"|database|head|nodes|blobs|schema|handles|ledger"
)
"""What stands for a part of the ledger where a finding names no path."""
_PIN = "the pin "
_HUNK = re.compile(r"@@ line (\d+) @@")


def located(evidence: OpenEvidence, told: Outcome, *, rows: bool) -> Outcome:
    """An outcome with the file of each finding, and the line where one is known.

    ``rows``: the check judges the rows of the ledger, and not what they show in files.
    """
    findings = []
    for finding in told.findings:
        path, line = _place(evidence, finding, rows=rows)
        pin = finding.where.startswith(_PIN)
        shown = finding.where.removeprefix(_PIN) if pin else _shown(evidence, path)
        findings.append(replace(finding, file=shown, line=line))
    return replace(told, findings=tuple(findings))


def _place(evidence: OpenEvidence, finding: Finding, *, rows: bool) -> tuple[str, int | None]:
    """The path of a finding, relative ones within the team directory, and its line."""
    where, root = finding.where, evidence.root or ""
    if _WORDS.fullmatch(where):
        shown = () if rows or finding.seq is None else _shown_at(evidence, finding.seq)
        return next(iter(shown), (_ledger(evidence), None))
    if where in (evidence.what, "policy"):
        return (RULES if where == "policy" else os.path.abspath(where)), None
    if where.startswith("commit "):
        return os.path.join(evidence.outside.repository or root, where.split(", ")[-1]), None
    if where == "git" or where in {history.path for history in evidence.histories}:
        where = os.path.join(
            evidence.outside.repository or root, where.replace("git", ".git", where == "git")
        )
    found = re.fullmatch(r"(.+?):(\d+)", where)
    hunk = _HUNK.match(finding.evidence[0]) if finding.evidence else None
    line = found[2] if found else hunk[1] if hunk else None
    return found[1] if found else where, None if line is None else int(line)


def _shown_at(evidence: OpenEvidence, seq: int) -> Iterator[tuple[str, int | None]]:
    """Where the team's files show an entry: a decision, a message or an event."""
    if evidence.folded is None or evidence.root is None:
        return
    for file, id_ in evidence.query("SELECT file, id FROM pieces WHERE seq = ?", seq):
        path = f"{LOG.folder}/{file}"
        before, there, _ = (evidence.file(path) or b"").partition(b"### %b" % str(id_).encode())
        yield path, before.count(b"\n") + 1 if there and id_ else None
    for channel, number in evidence.query("SELECT channel, number FROM lines WHERE seq = ?", seq):
        sql = "SELECT archive, first, stop FROM archives WHERE channel = ? ORDER BY seq"
        name, begin = channel, 0
        for archive, first, stop in evidence.query(sql, channel):
            begin = max(begin, stop) if number >= stop else begin
            name, begin = (archive, first) if first <= number < stop else (name, begin)
        sql = "SELECT count(*) FROM lines WHERE channel = ? AND number >= ? AND number < ? AND gone"
        gone = evidence.query(sql, channel, begin, number)[0][0]
        yield CHAT.live(name), HEADER_LINES + 1 + number - begin - gone
    for (name,) in evidence.query("SELECT name FROM events WHERE seq = ?", seq):
        for path in (f"{EVENTS}/{name}", f"{EVENTS}/{PROCESSED}/{name}"):
            if evidence.is_there(path):
                yield path, None


def _ledger(evidence: OpenEvidence) -> str:
    """The file that holds the ledger, or the folder that it was read from."""
    database = evidence.database
    inside = RECORD if evidence.root is not None else database.source
    return inside if evidence.loaded else os.path.abspath(database.path or evidence.what)


def _shown(evidence: OpenEvidence, path: str) -> str:
    """A path from the top of the repository, or else from the folder of the team directory."""
    root = evidence.root
    disk = evidence.disk
    if root is None or disk is None:
        top = "" if os.path.isfile(evidence.what) else evidence.what
        return os.path.relpath(os.path.join(top, path))
    base = os.path.realpath(evidence.outside.repository or os.path.dirname(os.path.abspath(root)))
    full = path if os.path.isabs(path) else disk.full(path)
    full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
    return os.path.relpath(full, base) if f"{full}/".startswith(f"{base}/") else full
