"""No import points upward or goes in a circle, and no test folder shadows a package."""

import pytest
from repo.rules import (
    PACKAGES,
    edges_a_module,
    import_circle,
    import_graph,
    longest_chain,
    module_name,
    shadowing,
    sources,
    tracked,
    upward_arrows,
)


def test_no_arrow_points_upward() -> None:
    files = sources(*PACKAGES)
    assert files
    assert [line for path, text in files.items() for line in upward_arrows(path, text)] == []


def test_no_import_circle() -> None:
    assert import_circle(sources(*PACKAGES)) == []


@pytest.mark.parametrize(
    "text",
    [
        "import tripod.team",
        "from verify import run",
        "def f():\n    from projections.files import write",
        "if TYPE_CHECKING:\n    import verify",
        "import importlib\nimportlib.import_module('tripod.cli')",
        "import tripod.verify.run",
        "from tripod import ledger, projections",
        "from tripod.projections import files",
        "from ..verify import run",
        "from .. import errors",
    ],
)
def test_an_arrow_upward_is_seen_wherever_it_stands(text: str) -> None:
    assert len(upward_arrows("ledger/log.py", text)) == 1


def test_arrows_downward_and_sideways_are_fine() -> None:
    text = "import json\nfrom ledger import chain\nfrom . import files\nfrom projections import x"
    assert upward_arrows("projections/tables.py", text) == []


def test_arrows_downward_under_the_installed_names_are_fine() -> None:
    text = "from tripod import ledger\nimport tripod.ledger.chain\nfrom ..ledger import entry"
    assert upward_arrows("projections/tables.py", text) == []


def test_a_module_of_ours_is_the_same_however_it_is_imported() -> None:
    files = {
        "ledger/__init__.py": "",
        "ledger/kinds/__init__.py": "",
        "ledger/kinds/bus.py": "",
        "tripod/__init__.py": "",
        "tripod/bus.py": "",
    }
    spellings = {
        "ledger": ["import ledger", "import tripod.ledger", "from tripod import ledger"],
        "ledger.kinds": ["from ledger import kinds", "from tripod.ledger import kinds"],
        "ledger.kinds.bus": [
            "from ledger.kinds import bus",
            "from ledger.kinds.bus import X",
            "import tripod.ledger.kinds.bus",
            "from tripod.ledger.kinds import bus",
            "from ..ledger.kinds.bus import X",
        ],
        "tripod.bus": ["import tripod.bus", "from tripod import bus", "from ..bus import X"],
        "tripod": ["import tripod", "from tripod import X"],
    }
    for module, texts in spellings.items():
        for text in texts:
            graph = import_graph(files | {"verify/run.py": text})
            assert graph["verify.run"] == {module}, text


def test_the_longest_chain_and_the_edges_of_the_average() -> None:
    files = {
        "ledger/a.py": "from ledger import b\nfrom ledger import c, d",
        "ledger/b.py": "def f():\n    from ledger.c import g, h",
        "ledger/c.py": "import tripod.ledger.d\nimport json",
        "ledger/d.py": "",
    }
    assert longest_chain(files) == ["ledger.a", "ledger.b", "ledger.c", "ledger.d"]
    assert edges_a_module(files) == (3 + 1 + 1) / 4
    offers = "if TYPE_CHECKING:\n    from ledger import d\n"
    assert edges_a_module({**files, "tripod/x/__init__.py": offers}) == 6 / 5
    lazy = f"from tripod.face import lazy\n{offers}"
    assert edges_a_module({**files, "tripod/x/__init__.py": lazy}) == 5 / 5


def test_a_circle_is_seen_through_names_and_relative_imports() -> None:
    files = {
        "ledger/__init__.py": "",
        "ledger/a.py": "from ledger import b",
        "ledger/b.py": "def f():\n    from .c import g",
        "ledger/c.py": "import ledger.a",
    }
    circle = import_circle(files)
    assert circle[0] == circle[-1]
    assert set(circle) == {"ledger.a", "ledger.b", "ledger.c"}
    assert import_circle(files | {"ledger/c.py": "import ledger"}) == []


def test_relative_imports_of_a_package_start_at_the_package() -> None:
    files = {"ledger/kinds/__init__.py": "from .bus import X", "ledger/kinds/bus.py": ""}
    assert import_circle(files) == []
    assert import_circle(files | {"ledger/kinds/bus.py": "from . import Y"}) != []


def test_module_names() -> None:
    assert module_name("ledger/kinds/__init__.py") == "ledger.kinds"
    assert module_name("ledger/kinds/bus.py") == "ledger.kinds.bus"
    assert module_name("tripod/ledger/kinds/bus.py") == "ledger.kinds.bus"
    assert module_name("tripod/__init__.py") == "tripod"
    assert module_name("tripod/cli/verify.py") == "tripod.cli.verify"


def test_no_test_folder_shadows_a_package() -> None:
    assert shadowing(tracked()) == []
    assert shadowing(["tests/core/test_ledger.py", "ledger/chain.py"]) == []
    assert shadowing(["tests/ledger/test_chain.py"]) == ["tests/ledger/test_chain.py"]
