"""What Datasette shows of a saved database: titles, descriptions, facets, and canned queries.

It is made from the declarations of the kinds, for the tables that a database has. Source:
https://docs.datasette.io/en/stable/metadata.html (0.65)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tripod.ledger.kinds.registry import KINDS

_FACETS = (
    "mark", "actor", "kind", "channel", "handle", "type", "priority", "status", "state", "session",
    "role", "tool", "confidence", "method", "reader",
)  # fmt: skip
"""Columns with few values, of which each table gets the first ``_MOST``."""
_MOST = 3
_UNITS = {"size": "B", "bytes": "B", "wall_ms": "ms"}
_HIDDEN = ("chat_cursors_seen", "chat_header_seen", "config_changed", "file_seen", "peer_entry")
"""Tables that tell how files stood, and not what people and agents did."""
_COLUMNS = {
    "seq": "the number of the entry in the ledger",
    "at": "when the entry was appended, by the clock of its host (UTC)",
    "actor": "who acted; anybody who may write the ledger can have written it, unless it is signed",
    "mark": "signed: by its actor's key; observed: read from another program's file; peer: recorded"
    " by another replica; empty: a command recorded it",
    "sure": "1 where the session surely read it, 0 where it may have",
    "shown": "1 where the record shows that the model was given it",
}
_LOG = "Every entry of the ledger, with its body as JSON."
_EXPOSURE = "What recorded sessions of agents read, a row for each place in their files."

_Query = tuple[str, str, tuple[str, ...], str]
"""Title, description, the tables that it needs, SQL."""

# A seal or a receipt of a peer is about the peer's own entries, which have other numbers.
_QUERIES: dict[str, _Query] = {
    "who_saw_what": (
        "Who saw what",
        "What each recorded session read, by the roles under which it was imported.",
        ("exposure", "session_imported"),
        """\
SELECT coalesce(i.role, '') AS role, e.session, e.agent, e.path, e.channel, max(e.sure) AS sure,
    max(e.shown) AS shown, count(*) AS times, min(e.seq) AS seq
FROM exposure e LEFT JOIN (SELECT session, group_concat(DISTINCT role) AS role
    FROM session_imported GROUP BY session) AS i ON i.session = e.session
WHERE e.path LIKE '%' || :path || '%'
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5""",
    ),
    "decisions_by_risk": (
        "Decisions by risk",
        "Each risk tag with the decisions that have it, those in force first.",
        ("decision_logged",),
        """\
SELECT trim(tag.value) AS risk_tag, later.id IS NULL AS in_force, d.seq, d.id, d.title, d.status,
    d.participants
FROM decision_logged d JOIN json_each('[' || replace(json_quote(d.risk_tags), ',', '","') || ']')
    AS tag
LEFT JOIN decision_logged later ON later.supersedes = d.id AND later.status <> 'mitigated'
WHERE trim(tag.value) LIKE '%' || :tag || '%' AND trim(tag.value) <> 'none'
GROUP BY d.seq, tag.value ORDER BY 1, 2 DESC, d.seq""",
    ),
    "decisions_today": (
        "Decisions, and what became of them",
        "Each decision with the later ones that supersede, reverse or mitigate it.",
        ("decision_logged",),
        """\
SELECT d.seq, d.id, d.title, d.participants, d.risk_tags, group_concat(later.id, ', ') AS changed_by
FROM decision_logged d LEFT JOIN decision_logged later
    ON later.supersedes = d.id AND later.seq <> d.seq
WHERE d.title LIKE '%' || :title || '%'
GROUP BY d.seq ORDER BY d.seq""",
    ),
    "unsealed_tail": (
        "Entries after the newest seal",
        "No signature of the ledger's key covers them.",
        ("log",),
        "SELECT seq, at, actor, mark, kind, stream FROM log WHERE seq >= {seal_made} ORDER BY seq",
    ),
    "unanchored_tail": (
        "Entries that nobody outside remembers",
        "Those after the newest head that a witness, an authority or a git ref confirmed.",
        ("log",),
        """\
SELECT seq, at, actor, mark, kind, stream FROM log WHERE seq >= {anchor_received} ORDER BY seq""",
    ),
    "accepted_findings": (
        "Accepted findings",
        "Who accepted what, and why. Acceptances may have been revoked since.",
        ("finding_accepted",),
        """\
SELECT seq, at, actor, mark, "check", fingerprint, reason FROM finding_accepted ORDER BY seq""",
    ),
    "who_did_how_much": (
        "Who did how much",
        "Entries by actor and kind, with how many are signed.",
        ("log",),
        """\
SELECT actor, kind, count(*) AS entries, sum(mark LIKE '%signed') AS signed, min(at) AS first,
    max(at) AS last
FROM log GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
}


def datasette_metadata(database: str, tables: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The metadata of a database by the name that Datasette gives it: its file's without the end.

    ``tables`` are its tables with their columns: a query of a table that is missing is left out.
    """
    described = {
        kind.name.replace(".", "_").replace("-", "_"): " ".join(
            (kind.body.__doc__ or "").partition("\n\n")[0].split()
        )
        for kind in KINDS
    } | {"log": _LOG, "exposure": _EXPOSURE}
    return {
        "title": "What a team of agents did",
        "description": (
            "A copy of a ledger at one moment. It proves nothing: `tripod verify` judges the ledger"
            " itself. Texts are what people and agents wrote, and no instructions."
        ),
        "databases": {
            database: {
                "tables": {
                    name: _table(name, described.get(name, ""), columns)
                    for name, columns in tables.items()
                },
                "queries": dict(_canned(tables)),
            }
        },
    }


def _table(name: str, description: str, columns: Sequence[str]) -> dict[str, Any]:
    told = {column: _COLUMNS[column] for column in columns if column in _COLUMNS}
    if name != "exposure":
        told = {column: text for column, text in told.items() if column not in ("sure", "shown")}
    found = {
        "title": name.replace("_", " "),
        "description": description,
        "columns": told,
        "units": {column: _UNITS[column] for column in columns if column in _UNITS},
        "facets": [column for column in _FACETS if column in columns][:_MOST],
        "sort_desc": "seq",
        "hidden": name in _HIDDEN,
    }
    return {key: value for key, value in found.items() if value}


def _canned(tables: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, dict[str, str]]]:
    sizes = {
        name: f"(SELECT coalesce(max(size), 0) FROM {name} WHERE mark NOT LIKE 'peer%')"
        if name in tables
        else "0"
        for name in ("seal_made", "anchor_received")
    }
    for name, (title, description, needs, sql) in _QUERIES.items():
        if tables.keys() >= set(needs):
            shown = sql.format(**sizes) if "{" in sql else sql
            yield name, {"title": title, "description": description, "sql": shown}
