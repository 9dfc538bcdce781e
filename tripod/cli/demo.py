"""``tripod demo``: the main job end to end, on a copy of a small real team, and on a new one."""

from __future__ import annotations

import tempfile
import time

from tripod.cli.commands import Call, verb_of
from tripod.output import safe

_STYLES: dict[str, tuple[str, dict[str, object]]] = {
    "step": ("\n== ", {"bold": True}),
    "do": ("  $ ", {"fg": "cyan"}),
    "good": ("", {"fg": "green"}),
    "bad": ("", {"fg": "red"}),
    "plain": ("", {}),
}


def _say(style: str, text: str) -> None:
    import click

    prefix, colours = _STYLES[style]
    click.echo(click.style(safe(f"{prefix}{text}"), **colours))  # type: ignore[arg-type]


def _demo(_: Call) -> int:
    from tripod.demo.demo import play

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tripod-demo-") as folder:
        wrong = play(folder, _say)
    seconds = time.monotonic() - began
    if wrong:
        _say("bad", f"\n{wrong} things went otherwise than they should ({seconds:.1f} s)")
        return 1
    _say("good", f"\nAll went as it should ({seconds:.1f} s). Next: the tutorial in docs/.")
    return 0


# The table -------------------------------------------------------------------------------------

_DEMO = """\
demo
    It adopts a real team's files, tampers with them, crashes, recovers; then Pythia reviews.
    Then four Pythias look for the chat, and are refused or caught. All on temporary copies.
    Exit code 1 if anything went otherwise than it should.
    without: --team --json
"""
COMMANDS = {"demo": verb_of(_DEMO, _demo)}
