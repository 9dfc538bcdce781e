"""Which files an entry may have changed."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.entry import Entry
from ledger.redaction import REDACTED
from projections import BUS, PROJECTIONS
from projections.projection import Source
from projections.rebuild import desired


def touched_by(entries: Iterable[Entry], source: Source) -> dict[str, None]:
    """Paths that entries may have changed, in order; of acknowledged events both places.

    Of a redaction: those that show what stands for the erased body now.
    """
    paths: dict[str, None] = {}
    for entry in entries:
        if entry.kind == "bus.acked-all":
            for name in BUS.moved_by(source, entry.seq):
                paths[f"{BUS.folder}/{name}"] = paths[f"{BUS.folder}/processed/{name}"] = None
        if entry.kind == REDACTED:
            from projections.withheld import places

            erased = places(source, entry.data["kind"], entry.data["keep"])
            paths.update((path, None) for path in erased if desired(source, path) is not None)
        for projection in PROJECTIONS:
            if entry.kind in projection.kinds:
                paths.update(dict.fromkeys(projection.touched(entry)))
    return paths
