"""The manual of a check, taken from its docstring: what it proves, why, what to do. Pure."""

from __future__ import annotations

from verify.checks import CHECKS


def manual(name: str) -> str:
    """The manual section of a check (LookupError where there is none of that name)."""
    for check in CHECKS:
        if name == check.NAME:
            required = "required" if check.REQUIRED else "not required"
            return f"{name} ({required})\n\n{(check.__doc__ or '').strip()}\n"
    raise LookupError(f"no check {name}; there are: {', '.join(check.NAME for check in CHECKS)}")
