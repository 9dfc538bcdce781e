"""Why a committed log may not be the beginning of the next one: what the ledger says. Pure.

Two things change what stands in a log already: a rotation moves its first pieces into an archive
(and may write a new header), and a redaction puts ``[redacted]`` in the place of a piece's texts.
Both are entries.
"""

from __future__ import annotations

from collections.abc import Collection

from projections.formats.decision_log import parse_decision, split_log


def explanation(
    old: bytes,
    new: bytes,
    archived: Collection[bytes],
    redacted: Collection[str],
    headers: Collection[bytes] = (),
) -> str | None:
    """In words, why ``old`` is not the beginning of ``new``; None where the ledger has no reason.

    Args:
        old: the log as it was.
        new: the log as it became.
        archived: pieces that the ledger has in archives.
        redacted: ids of decisions whose texts were erased, as entries say.
        headers: what stood in front of the first piece of the log and its archives, as they say.
    """
    header, before = split_log(old)
    header_now, after = split_log(new)
    moved = _moved(before, after)
    if header != header_now and not (moved and {header, header_now} <= set(headers)):
        return None
    gone = [piece for piece in before[:moved] if piece not in archived]
    kept = before[moved:]
    if len(after) < len(kept):
        return None
    changed = [(was, now) for was, now in zip(kept, after, strict=False) if was != now]
    erased = [_id(was) for was, now in changed if _id(was) == _id(now)] + [_id(was) for was in gone]
    if len(erased) != len(changed) + len(gone) or not set(erased) <= set(redacted):
        return None
    reasons = [f"{moved} pieces went into an archive"] if moved else []
    if erased:
        reasons.append(f"redacted: {', '.join(sorted(set(erased)))}")
    return "; ".join(reasons) or None


def _moved(before: tuple[bytes, ...], after: tuple[bytes, ...]) -> int:
    """How many pieces went away from the front: all before the one that is the first now."""
    if not after:
        return len(before)
    first = _id(after[0])
    for at, piece in enumerate(before):
        if piece == after[0] or (first and _id(piece) == first):
            return at
    return len(before)


def _id(piece: bytes) -> str:
    """The id of a decision's piece; '' where it is none."""
    decision, _ = parse_decision(piece)
    return "" if decision is None else decision.id
