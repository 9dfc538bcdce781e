"""Formats, folds and checks get bytes in and give values out: nothing of the world reaches them."""

from fnmatch import filter as matching

import pytest
from repo.rules import PACKAGES, PURE, impure_chains, impurities, is_pure, sources


def test_the_pure_modules_are_pure() -> None:
    files = {path: text for path, text in sources(*PACKAGES).items() if is_pure(path)}
    assert [line for path, text in files.items() for line in impurities(path, text)] == []


@pytest.mark.parametrize("pattern", PURE)
def test_the_rule_has_something_to_hold_for(pattern: str) -> None:
    assert matching(sources(*PACKAGES), pattern)


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "def f():\n    import time",
        "from random import choice",
        "import urllib.request",
        "import yaml",
        "from yaml import load",
        "from pathlib import Path",
        "import pathlib",
        "import io",
        "from io import FileIO",
        "from datetime import datetime\nnow = datetime.now()",
        "text = open('x').read()",
        "print('x')",
    ],
)
def test_each_way_in_is_seen(text: str) -> None:
    assert len(impurities("ledger/chain.py", text)) == 1


def test_what_pure_modules_need_is_allowed() -> None:
    text = "import hashlib\nfrom datetime import UTC, datetime\nfrom pathlib import PurePosixPath\n"
    text += "from io import BytesIO"
    assert impurities("ledger/chain.py", text) == []


def test_what_is_reached_through_others_is_named_with_the_shortest_chain() -> None:
    files = {
        "ledger/chain.py": "from ledger import ids, middle",
        "ledger/middle.py": "from tripod.ledger import deeper",
        "ledger/deeper.py": "import tripod.ledger.ids",
        "ledger/ids.py": "import hashlib",
    }
    assert impure_chains(files) == {}
    ids = "import hashlib\nimport os"
    assert impure_chains(files | {"ledger/ids.py": ids}) == {
        "ledger/chain.py": "ledger.chain -> ledger.ids: ledger/ids.py:2: not pure: imports os"
    }
    asks = files["ledger/deeper.py"] + "\nnow = datetime.now()"
    assert impure_chains(files | {"ledger/deeper.py": asks}) == {
        "ledger/chain.py": "ledger.chain -> ledger.middle -> ledger.deeper: "
        "ledger/deeper.py:2: not pure: asks the clock (now)"
    }


def test_an_impure_module_that_nothing_pure_reaches_is_fine() -> None:
    files = {"ledger/chain.py": "import hashlib", "ledger/store.py": "import os, ledger.chain"}
    assert impure_chains(files) == {}
