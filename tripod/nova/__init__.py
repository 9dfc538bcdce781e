"""Nova: a question is taken through unpacking, independent analysis, synthesis, gate and critique.

``advance`` is a coroutine: ``asyncio.run(tripod.nova.advance(team, run, order))``.
"""

from __future__ import annotations

from tripod.face import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.nova.runner import (
        NovaLimits,
        advance,
        cancel_nova,
        decide_nova,
        list_nova,
        load_personas,
        open_nova,
        order_persona,
        write_personas,
    )

__all__ = [
    "NovaLimits", "advance", "cancel_nova", "decide_nova", "list_nova", "load_personas",
    "open_nova", "order_persona", "write_personas",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, __all__, ("runner",))
