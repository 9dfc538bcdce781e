"""The file and the line of each finding, from the top of the repository, for people and for CI."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace

from tripod import ledger
from tripod.projections import CHAT, LOG
from tripod.projections.chat.format import HEADER_LINES
from tripod.projections.intake import PARTS
from tripod.verify.check import RULES, Finding, Outcome
from tripod.verify.checks import trailers_agree
from tripod.verify.evidence import OpenEvidence

_WORDS = re.compile(
    r"entry \d+|chat .+, message \d+.*|not in a ledger|not taken in yet|the receipt of .+"
    r"|database|head|nodes|blobs|schema|handles|ledger"
)
"""What stands for a part of the ledger where a finding names no path."""
_PIN = "the pin "
_HUNK = re.compile(r"@@ line (\d+) @@")


def locate_findings(evidence: OpenEvidence, told: Outcome, *, rows: bool) -> Outcome:
    """An outcome with the file of each finding, and the line where one is known.

    ``rows``: the check judges the rows of the ledger, and not what they show in files.
    """

    def located(finding: Finding) -> Finding:
        path, line = _place_of(evidence, finding, rows=rows)
        pin = finding.where.startswith(_PIN)
        shown = finding.where.removeprefix(_PIN) if pin else _shown(evidence, path)
        if finding.where == "policy" and evidence.outside.settings.rules_path:
            shown = evidence.outside.settings.rules_path
        return replace(finding, file=shown, line=line)

    findings = tuple(map(located, told.findings))
    return replace(
        told, findings=findings, accepted=tuple((located(one), by) for one, by in told.accepted)
    )


def _place_of(evidence: OpenEvidence, finding: Finding, *, rows: bool) -> tuple[str, int | None]:
    """The path of a finding, relative ones within the team directory, and its line."""
    where, root = finding.where, evidence.root or ""
    if _WORDS.fullmatch(where):
        # The file that holds the ledger, or the folder that it was read from.
        database = evidence.database
        source = ledger.RECORD if evidence.root is not None else os.path.abspath(database.source)
        path = source if evidence.loaded else os.path.abspath(database.path or evidence.what)
        shown = () if rows or finding.seq is None else _shown_at(evidence, finding.seq)
        return next(iter(shown), (path, None))
    if root and where in dict(PARTS) and not os.path.lexists(os.path.join(root, where)):
        return os.path.abspath(root), None
    if root and where == os.curdir:  # the team directory itself, wherever it was asked from
        return os.path.abspath(root), None
    if where in (evidence.what, "policy"):
        return (RULES if where == "policy" else os.path.abspath(where)), None
    top = evidence.outside.repository or root
    if where.startswith("refs/"):
        return os.path.join(top, ".git", where), None
    if where.startswith("commit ") and finding.check == trailers_agree.NAME:
        return os.path.join(top, ".git", "HEAD"), None
    if where.startswith("commit "):
        return os.path.join(top, where.split(", ")[-1]), None
    if where == "git" or where in {history.path for history in evidence.histories}:
        where = os.path.join(top, where.replace("git", ".git", where == "git"))
    if found := re.fullmatch(r"(.+?):(\d+)", where):
        return found[1], int(found[2])
    return where, finding_line(finding)


def finding_line(finding: Finding) -> int | None:
    """The line at which the difference begins that a finding shows; None where it shows none."""
    hunk = _HUNK.match(finding.evidence[0]) if finding.evidence else None
    return None if hunk is None else int(hunk[1])


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
        for path in (f"{ledger.EVENTS}/{name}", f"{ledger.EVENTS}/{ledger.PROCESSED}/{name}"):
            if evidence.is_there(path):
                yield path, None


def _shown(evidence: OpenEvidence, path: str) -> str:
    """A path from the top of the repository, or else from the folder of the team directory."""
    root = evidence.root
    disk = evidence.disk
    if root is None or disk is None:
        top = "" if os.path.isfile(evidence.what) else evidence.what
        return os.path.relpath(os.path.join(top, path))
    base = os.path.realpath(evidence.outside.repository or os.path.dirname(os.path.abspath(root)))
    try:
        full = path if os.path.isabs(path) else disk.full(path)
        full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
    except ValueError:
        return path  # a forged entry names it: no file of the team can have that name
    return os.path.relpath(full, base) if f"{full}/".startswith(f"{base}/") else full
