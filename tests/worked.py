"""The worked example of the Nova specification (N12): its question, its panel, its files."""

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

__all__ = ["GOLDEN", "HERE", "NAME", "PANEL", "QUESTION", "panel_module", "without_numbers"]

HERE = Path(__file__).resolve().parent
PANEL = HERE.parent / "examples" / "nova_panel.py"
QUESTION = "OAuth2 or custom JWT?"
NAME = "oauth2-or-custom-jwt"
GOLDEN = {
    name: (HERE / "golden/nova" / name).read_text() for name in ("transcript.md", "decisions.md")
}
"""The files of the run; numbers of entries are left out."""


def without_numbers(text: str) -> str:
    """A file without the numbers of entries: they depend on the isolation, and on tries."""
    return re.sub(r"(?m)^- entries: [0-9]+ to [0-9]+$", "- entries: FIRST to LAST", text)


def panel_module() -> ModuleType:
    """The scripted panel, as a module."""
    spec = spec_from_file_location("nova_panel", PANEL)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
