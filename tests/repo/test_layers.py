"""No import points upward or goes in a circle, and no test folder shadows a package."""

import pytest
from repo.rules import (
    PACKAGES,
    import_circle,
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
    ],
)
def test_an_arrow_upward_is_seen_wherever_it_stands(text: str) -> None:
    assert len(upward_arrows("ledger/log.py", text)) == 1


def test_arrows_downward_and_sideways_are_fine() -> None:
    text = "import json\nfrom ledger import chain\nfrom . import files\nfrom projections import x"
    assert upward_arrows("projections/tables.py", text) == []


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


def test_no_test_folder_shadows_a_package() -> None:
    assert shadowing(tracked()) == []
    assert shadowing(["tests/core/test_ledger.py", "ledger/chain.py"]) == []
    assert shadowing(["tests/ledger/test_chain.py"]) == ["tests/ledger/test_chain.py"]
