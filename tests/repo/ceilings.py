"""Ceilings on the size and the coupling of the four packages, with the targets.

A ceiling falls, and rises only with a feature, for a reason that its commit gives. A commit that
reduces a figure lowers its ceiling, and removes from the tables what no longer breaks the rule.
``test_ceilings.py`` fails when the tree has more than a ceiling or a table allows.
"""

from typing import NamedTuple


class Ceiling(NamedTuple):
    """The largest figure that the tests accept today, and the one to reach."""

    ceiling: float
    target: float
    source: str
    """Where the target comes from."""


NUMBERS = {
    "modules": Ceiling(352, 190, "the planned layout has 185"),
    "lines": Ceiling(90_240, 43_215, "as many fewer as were planned (decision 0016)"),
    "imports a module": Ceiling(6.275, 5.4, "decision 0016; fewer modules import more each"),
    "longest import chain": Ceiling(17, 14, "beancount 16, python-tuf 7, sqlite-utils 7"),
    "whom, whoever, is none": Ceiling(2, 0, "a plain sentence does not need these words"),
    "modules with __all__": Ceiling(0, 0, "only a package's face lists what it offers"),
}
"""Figures of the four packages; ``rules.measured_numbers`` measures them."""

CROWDED_FOLDERS: dict[str, int] = {}
"""Folders with more than 15 modules, and how many they may have. Target: none."""

SHORT_MODULES = frozenset[str]()
"""Modules of less than 40 lines, each to be merged into a neighbour or moved to ``SHORTER``."""

WIDE_CLASSES: dict[str, int] = {}
"""Classes with more than 12 attributes, and how many they may have. Target: none but ``WIDER``."""

HOMONYMS: dict[str, int] = {}
"""Public names that several classes share, and how many classes. Target: none."""

UNLISTED_MODULES = frozenset[str]()
"""Modules whose name is no word of ``docs/glossary.md``. Target: none."""

SQL_ON_THE_LEDGER = frozenset[str]()
"""Modules with SQL on the ledger's own tables; they should ask the store. Target: none."""

IMPURE_CHAINS = frozenset[str]()
"""Pure modules that import something impure through other modules. Target: none."""
