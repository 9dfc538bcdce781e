"""Nova: a question is taken through unpacking, independent analysis, synthesis, gate and critique.

``carry_on`` is a coroutine: ``asyncio.run(tripod.nova.carry_on(team, run, order))``.
"""

from __future__ import annotations

from tripod.face import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.nova.replay import carry_on, compare_nova, fork_nova, replay_nova
    from tripod.nova.runner import (
        NovaLimits,
        cancel_nova,
        decide_nova,
        list_nova,
        load_personas,
        open_nova,
        order_persona,
        write_personas,
    )

__all__ = [
    "NovaLimits", "cancel_nova", "carry_on", "compare_nova", "decide_nova", "fork_nova",
    "list_nova", "load_personas", "open_nova", "order_persona", "replay_nova", "write_personas",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, __all__, ("runner", "replay"))
