"""Where the demo's files are: in the wheel, or in a checkout."""

from __future__ import annotations

import os

from tripod.errors import RefusedError

_CHECKOUT = ("tests/golden", "examples")


def data_file(name: str) -> str:
    """The path of a file that the demo needs.

    Raises:
        RefusedError: it is in neither place.
    """
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [f"{here}/demo_data", *(f"{os.path.dirname(here)}/{place}" for place in _CHECKOUT)]
    for place in places:
        if os.path.isfile(f"{place}/{name}"):
            return f"{place}/{name}"
    raise RefusedError(
        f"the demo's data ({name}) is neither in the package nor in {' or '.join(_CHECKOUT)}"
    )
