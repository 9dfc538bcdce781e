"""The judge: reads a ledger, its files, its history; never writes.

It may import ``ledger`` and ``projections``, and nothing of the packages that act.

``verify`` judges what stands at a path, and returns a ``Report`` with an ``Outcome`` for each check
and its ``Finding`` objects. Nothing is loaded before it is used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.verify.check import Finding, Outcome, Report
    from tripod.verify.run import verify

__all__ = ["Finding", "Outcome", "Report", "verify"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{'run' if name == 'verify' else 'check'}")
        return getattr(module, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
