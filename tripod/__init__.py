"""The team at work: one ledger of what it did, every readable file regenerated from it.

This is the face that stays stable for programs that use the package. It has functions that open or
begin a team, one package for each thing that a team does, and one tree of errors::

    import tripod

    with tripod.Team("cafe") as team:
        tripod.chat.send(team, "live", "ann", "Tea or coffee?")

Nothing is loaded before it is used.
"""

from __future__ import annotations

from tripod.face import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod import bus, chat, decisions, errors, nova, pythia, verify, workers
    from tripod.errors import TripodError
    from tripod.ledger import Entry, Head
    from tripod.ledger.ids import now_us
    from tripod.recovery.backup import backup
    from tripod.recovery.rebuild import Rebuilt, rebuild
    from tripod.team.adoption import Adoption, init, sync
    from tripod.team.recorder import Recorder
    from tripod.team.team import Team, open_team

__version__ = "0.1.0"
__all__ = [
    "Adoption", "Entry", "Head", "Rebuilt", "Recorder", "Team", "TripodError", "__version__",
    "backup", "bus", "chat", "decisions", "errors", "init", "nova", "now_us", "open_team", "pythia",
    "rebuild", "sync", "verify", "workers",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        __all__,
        (
            "errors",
            "ledger.ids",
            "ledger.entry",
            "ledger.store",
            "team.team",
            "team.adoption",
            "team.recorder",
            "recovery.rebuild",
            "recovery.backup",
        ),
        ("bus", "chat", "decisions", "errors", "nova", "pythia", "verify", "workers"),
    )
