"""``tripod demo``: the main job end to end, on a copy of a small real team, and on a new one."""

from __future__ import annotations

import tempfile
import time

import click

from tripod.output import safe

_STYLES: dict[str, tuple[str, dict[str, object]]] = {
    "step": ("\n== ", {"bold": True}),
    "do": ("  $ ", {"fg": "cyan"}),
    "good": ("", {"fg": "green"}),
    "bad": ("", {"fg": "red"}),
    "plain": ("", {}),
}


def _tell(style: str, text: str) -> None:
    prefix, colours = _STYLES[style]
    click.echo(click.style(safe(f"{prefix}{text}"), **colours))  # type: ignore[arg-type]


@click.command()
@click.pass_context
def demo(ctx: click.Context) -> None:
    """Adopt a real team's files, tamper with them, crash, recover; then have Pythia review.

    Then four Pythias look for the chat, and are refused or caught. Works on temporary copies. Exit
    code 1 if anything went otherwise than it should.
    """
    from tripod.demo.steps import play

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tripod-demo-") as folder:
        wrong = play(folder, _tell)
    seconds = time.monotonic() - began
    if wrong:
        _tell("bad", f"\n{wrong} things went otherwise than they should ({seconds:.1f} s)")
        ctx.exit(1)
    _tell("good", f"\nAll went as it should ({seconds:.1f} s). Next: the tutorial in docs/.")
