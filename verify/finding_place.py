"""The file and the line of each finding, from the top of the repository, for people and for CI."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace

from tripod import ledger
from tripod.ledger.locator import work_tree_around
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
    if not told.findings and not told.accepted:
        return told
    place = evidence.root or evidence.database.source or evidence.what
    base = top_of_paths(evidence.outside.repository, place)

    def located(finding: Finding) -> Finding:
        given = _given(evidence, finding.where)
        named = (os.path.abspath(given), None)  # from the current folder, as the caller named it
        path, line = named if given else _place_of(evidence, finding, rows=rows)
        return replace(finding, file=_shown(evidence, base, path), line=line)

    findings = tuple(map(located, told.findings))
    return replace(
        told, findings=findings, accepted=tuple((located(one), by) for one, by in told.accepted)
    )


def top_of_paths(repository: str | None, place: str) -> str:
    """The folder that the paths of findings begin at, with every link followed.

    It is the top of the git repository, which may be looked for around ``place``, the team
    directory or what the ledger was read from; without one the folder that holds ``place``.
    """
    if repository is None:
        above = os.path.dirname(os.path.realpath(place))
        tree = work_tree_around(above)
        repository = above if tree is None else tree.top
    return os.path.realpath(repository)


def _given(evidence: OpenEvidence, where: str) -> str:
    """The file that a place names as a path for the system; '' where it names none so."""
    if where.startswith(_PIN):
        return where.removeprefix(_PIN)
    is_path = evidence.root is not None and where.startswith(f"{evidence.root}/")
    return evidence.outside.settings.rules_path if where == "policy" else where if is_path else ""


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


def _shown(evidence: OpenEvidence, base: str, path: str) -> str:
    """A path from the folder ``base``; a file elsewhere has its whole path."""
    disk, full = evidence.disk, path
    try:
        if not os.path.isabs(path) and disk is not None:
            full = disk.full(path)
        elif not os.path.isabs(path):
            place = evidence.database.source or evidence.what
            inside = os.path.dirname(place) if os.path.isfile(place) else place
            full = os.path.abspath(os.path.join(inside, path))
        full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
    except ValueError:
        return path  # a forged entry names it: no file of the team can have that name
    return os.path.relpath(full, base) if f"{full}/".startswith(f"{base.rstrip('/')}/") else full
