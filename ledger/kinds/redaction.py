"""The kind that says that a body was erased (design, section 4).

What ``keep`` has to fit is the model of another kind: ``tripod.ledger.kinds.models`` sees to that.
"""

from typing import TypedDict

from tripod.ledger.entry import REDACTED as NAME
from tripod.ledger.entry import redaction_entry_id
from tripod.ledger.kinds.base import Count, Kind, Name


class Redacted(TypedDict):
    """Body, salt and blobs of entry ``seq``, of the kind ``kind``, were erased: who did it and why.

    ``keep`` stands for the erased body from then on: a body of the same kind, with what the rules
    need, and ``[redacted]`` where its texts were. The entry's id is ``redacted-<seq>``, so none is
    erased twice.
    """

    seq: Count
    kind: Name
    reason: Name
    by: Name
    keep: dict[str, object]


REDACTED = Kind(
    NAME,
    Redacted,
    "ledger",
    actor="by",
    is_speech=True,
    id=lambda body: redaction_entry_id(body["seq"]),
    line="entry {seq} ({kind}): {reason}",
)

KINDS = (REDACTED,)
