"""Workers in lines, as the original prints them (spec: nbs-compat C5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tripod.workers.read import About

CONTEXT = 50
"""Lines around one that is searched for, where nothing else is said."""


def status_lines(found: About, process: str) -> list[str]:
    """What the original says of a worker; ``process`` names the line about its program."""
    status = found.state
    if found.state == "died":
        status = "died (session exited unexpectedly)"
    elif found.running and found.state == "escalated":
        status = "escalated (session still open)"
    return [
        f"Worker: {found.name}",
        f"  {process}: {'yes' if found.running else 'no'}",
        f"  task state:   {found.state}",
        f"  status:       {status}",
    ]


def listed(found: About, process: str) -> str:
    """One worker in a list."""
    size = "no-log" if found.log is None else f"{found.log}B"
    alive = "yes" if found.running else "no"
    return f"  {found.name:<25} {found.state:<12} {process}:{alive:<5} log:{size}"
