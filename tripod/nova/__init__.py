"""Nova: a question is taken through unpacking, independent analysis, synthesis, gate and critique.

``carry_on`` is a coroutine: ``asyncio.run(tripod.nova.carry_on(team, run, order))``.
"""

from __future__ import annotations

from tripod.face import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.agents.folder import IsolatedProgram
    from tripod.nova.reader import NovaStanding, list_nova, metrics_of_nova, standing_of_nova
    from tripod.nova.replay import (
        NovaDifference,
        NovaReplay,
        carry_on,
        compare_nova,
        fork_nova,
        replay_nova,
    )
    from tripod.nova.runner import (
        NovaLimits,
        cancel_nova,
        decide_nova,
        load_personas,
        open_nova,
        order_persona,
        write_personas,
    )
    from tripod.projections.nova.answers import Persona
    from tripod.projections.nova.metrics import MetricValue
    from tripod.projections.nova.run import NovaRun

__all__ = [
    "IsolatedProgram", "MetricValue", "NovaDifference", "NovaLimits", "NovaReplay", "NovaRun",
    "NovaStanding", "Persona", "cancel_nova", "carry_on", "compare_nova", "decide_nova",
    "fork_nova", "list_nova", "load_personas", "metrics_of_nova", "open_nova", "order_persona",
    "replay_nova", "standing_of_nova", "write_personas",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, __all__, ("runner", "replay", "reader"))
