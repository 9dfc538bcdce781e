"""Ceilings on the size and the coupling of the four packages, with the targets.

A ceiling falls and never rises. A commit that reduces a figure lowers its ceiling, and removes from
the tables what no longer breaks the rule. ``test_ceilings.py`` fails when the tree
has more than a ceiling or a table allows.
"""

from typing import NamedTuple


class Ceiling(NamedTuple):
    """The largest figure that the tests accept today, and the one to reach."""

    ceiling: float
    target: float
    source: str
    """Where the target comes from."""


NUMBERS = {
    "modules": Ceiling(223, 190, "the planned layout has 185"),
    "lines": Ceiling(49_600, 37_000, "the planned layout, same features"),
    "imports a module": Ceiling(5.6, 4, "beancount 3.4, python-tuf 1.9, sqlite-utils 1.6"),
    "longest import chain": Ceiling(26, 14, "beancount 16, python-tuf 7, sqlite-utils 7"),
    "whom, whoever, is none": Ceiling(119, 0, "a plain sentence does not need these words"),
    "modules with __all__": Ceiling(0, 0, "only a package's face lists what it offers"),
}
"""Figures of the four packages; ``rules.measured_numbers`` measures them."""

CROWDED_FOLDERS: dict[str, int] = {}
"""Folders with more than 15 modules, and how many they may have. Target: none."""

SHORT_MODULES = frozenset[str]()
"""Modules of less than 40 lines, each to be merged into a neighbour or moved to ``SHORTER``."""

WIDE_CLASSES: dict[str, int] = {
    "projections/chat/channel.py:Channel": 16,
    "tripod/agents/spec.py:SpawnResult": 15,
    "tripod/agents/spec.py:SpawnSpec": 17,
    "tripod/decisions/reader.py:Decision": 13,
    "tripod/team/files.py:Files": 20,
    "verify/anchors/heads.py:Outside": 13,
    "verify/evidence.py:OpenEvidence": 22,
    "verify/isolation/runs.py:Review": 15,
    "verify/scan/rows.py:Pass": 25,
}
"""Classes with more than 12 attributes, and how many they may have. Target: none but ``WIDER``."""

HOMONYMS: dict[str, int] = {}
"""Public names that several classes share, and how many classes. Target: none."""

UNLISTED_MODULES = frozenset(
    {
        "projections/unheld.py",
        "tripod/demo/nosy.py",
        "tripod/demo/steps.py",
        "tripod/recovery/redact.py",
        "tripod/team/adopt.py",
        "tripod/team/open.py",
    }
)
"""Modules whose name is no word of ``docs/glossary.md``. Target: none."""

SQL_ON_THE_LEDGER = frozenset[str]()
"""Modules with SQL on the ledger's own tables; they should ask the store. Target: none."""

IMPURE_CHAINS = frozenset(
    {
        "verify/checks/__init__.py",
        "verify/checks/append_only.py",
        "verify/checks/assessment_complete.py",
        "verify/checks/bodies_present.py",
        "verify/checks/canonical_bytes.py",
        "verify/checks/chain_links.py",
        "verify/checks/chat_refs_resolve.py",
        "verify/checks/checkpoint_preceded.py",
        "verify/checks/clock_forward.py",
        "verify/checks/count_from_grep.py",
        "verify/checks/decision_ids_unique.py",
        "verify/checks/decision_missed.py",
        "verify/checks/decision_noise.py",
        "verify/checks/drift.py",
        "verify/checks/events_processed.py",
        "verify/checks/kinds_known.py",
        "verify/checks/ledger_missing.py",
        "verify/checks/pins_extend.py",
        "verify/checks/pythia_fires.py",
        "verify/checks/pythia_isolation.py",
        "verify/checks/record_agrees.py",
        "verify/checks/seals_open.py",
        "verify/checks/sequence.py",
        "verify/checks/supersession.py",
        "verify/checks/worker_lifecycle.py",
        "verify/checks/writers_authorised.py",
    }
)
"""Pure modules that import something impure through other modules. Target: none."""
