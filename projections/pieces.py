"""What the intake finds: pieces that become entries, and conflicts that are not taken in. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from tripod.ledger import MAX_BODY, Draft, format_canonical, observed_entry_id
from tripod.ledger.kinds.base import Content, Kind, content

FILE_LIMIT = 64 * 1024 * 1024
BLOB_ABOVE = 2048  # bytes; as text with control characters they take six times as much
BODY_ROOM = MAX_BODY // 2
"""Bytes that one field of strangers may take in a body, which also holds raw bytes and a path."""

UNMERGED = "unmerged"
BLOCKED = "blocked"
OLDER_STATE = "older"
STAYS = (BLOCKED, UNMERGED)
"""Conflicts whose files are left as they are, and never written over."""
NAMED = 3
CHECKPOINT_GONE = "a pending checkpoint event's file is gone, and only an assessment answers it"


class Piece(NamedTuple):
    """A draft of something observed, and the time that its writer claims, in µs."""

    when: int
    draft: Draft


class Conflict(NamedTuple):
    """Something on disk that contradicts the ledger and is therefore not taken in.

    ``what`` is ``edited``, ``missing``, ``moved back``, ``unreadable``, ``blocked``, ``unmerged``
    or ``older``; ``detail`` says more to a person. A missing file is written again by the next act.
    A link or the like in a blocked place stays there; so does a file with conflict markers. What
    shows an older state holds nothing that the ledger lacks.
    """

    path: str
    what: str
    detail: str


class Remnant(NamedTuple):
    """A file that a power cut left: the digest of its bytes, and what it would hold without it.

    The digest is '' where no file is there. ``alone``: nothing of others is in it. ``doubtful``: it
    may be somebody's edit or deletion (``tripod.projections.remnants``).
    """

    digest: str
    whole: bytes
    alone: bool
    doubtful: bool = False


class Found:
    """What one look at the team directory tells, besides the pieces that it found."""

    def __init__(self) -> None:
        self.conflicts: list[Conflict] = []
        self.left_alone: list[str] = []
        """Files and folders that belong to no part of the team; a folder's name ends in a slash."""
        self.files = 0
        self.odd: dict[str, str] = {}
        """By the path of an input that is no regular file: what it is, and what holds meanwhile."""
        self.malformed: dict[str, str] = {}
        """By the id of its draft: what is wrong with a piece of a decision log."""
        self.logs: set[str] = set()
        """Names of the decision logs, and of their archives, in the Scribe's folder."""
        self.shown: int | None = None
        """How many entries the newest of the files shows that show an older state."""


def same_pieces_but(
    erased: Collection[bytes],
    held: Sequence[bytes],
    shown: Sequence[bytes],
    mark: Callable[[bytes], object],
) -> bool:
    """Whether a file's parts begin with those that the ledger holds, but for the ``erased``.

    Where one of these belongs, any part will do that has the same ``mark``.
    """
    return len(shown) >= len(held) and all(
        one == other or (one in erased and mark(one) == mark(other))
        for one, other in zip(held, shown, strict=False)
    )


def piece_as_blob(data: bytes, blobs: list[bytes]) -> Content:
    """Hold bytes exactly, outside the body; see ``tripod.ledger.kinds.base.content``."""
    blobs.append(data)
    return {"sha256": sha256(data).hexdigest(), "size": len(data)}


def piece_beside(data: bytes, blobs: list[bytes]) -> Content:
    """Hold bytes that share a body with others of their size (the two headers of a split log)."""
    return content(data, blobs) if len(data) <= BLOB_ABOVE else piece_as_blob(data, blobs)


def piece_fits(value: object, room: int = BODY_ROOM) -> bool:
    """Whether a stranger's value, written as JSON, leaves a body below its limit."""
    return len(format_canonical(value)) <= room


def pieces_of_names(names: Sequence[str]) -> Iterator[list[str]]:
    """Cut a list of names into lists that each fit a body (a name has up to 255 bytes)."""
    part: list[str] = []
    room = BODY_ROOM
    for name in names:
        size = len(format_canonical(name)) + 1
        if part and size > room:
            yield part
            part, room = [], BODY_ROOM
        part.append(name)
        room -= size
    if part:
        yield part


def piece_draft(
    kind: Kind[Any],
    body: Mapping[str, Any],
    path: str,
    data: bytes,
    *,
    actor: str | None = None,
    ordinal: int = 0,
    raw: bool = False,
    blobs: Sequence[bytes] = (),
    identity: str = "",
    **observed: Any,
) -> Draft:
    """The draft of one observed piece; the same piece of the same file always has the same id.

    Args:
        kind: what was observed; where it has no field for its actor, that is ``unknown``.
        body: the fields of the entry; ``blobs`` are long texts that it names by digest already.
        path: the file that it was read from; ``identity``: the path that enters the id instead.
        data: the piece's bytes; ``raw``: they are kept whole, because our rendering would differ.
        actor: who wrote it, where that is known from elsewhere.
        ordinal: which of equal pieces of the file this is.
        observed: ``claim``, ``mtime_us`` and ``mode``; those that are None are left out, as is a
            mode that files of this kind have from us.
    """
    if observed.get("mode") == (0o600 if kind.name.startswith("chat.") else 0o644):
        del observed["mode"]
    seen: Any = {"path": path} | {k: value for k, value in observed.items() if value is not None}
    if actor is None and kind.actor is None:
        actor = "unknown"
    draft = kind.draft(body, actor, blobs=blobs, observed=seen)
    if raw:
        named = list(draft.blobs)
        seen["raw"] = content(data, named)
        if len(data) > BLOB_ABOVE and not piece_fits(draft.body, MAX_BODY - 58):
            seen["raw"] = piece_as_blob(data, named)
        draft = draft._replace(blobs=tuple(named))
    entry_id = observed_entry_id(identity or path, ordinal, kind.name.encode() + b"\x00" + data)
    return draft._replace(id=entry_id)


def name_pieces(pieces: Sequence[str]) -> str:
    """The pieces in one line: the first few, and how many more there are."""
    more = len(pieces) - NAMED
    return ", ".join(pieces[:NAMED]) + (f" and {more} more" if more > 0 else "")


# Conflict markers --------------------------------------------------------------------------------


UNMERGED_CURE = (
    "finish the merge: keep this ledger's lines first and the other side's behind them, remove the "
    "marker lines, then `tripod sync`"
)

# As git writes them: seven of a kind (an attribute may ask for more), then a label or nothing.
# A pattern as text: hot commands import this module, and few of them meet a marker.
_MARKER = rb"(?m)^(?:<{7,}+|\|{7,}+|>{7,}+)(?: [^\n]*)?\r?$|^={7,}+\r?$"
_FENCES = (b"```", b"~~~")


def merge_marker_in_piece(path: str, data: bytes, held: bytes = b"") -> int | None:
    r"""The number, from 1, of the first line that is a conflict marker; None without a conflict.

    A text that quotes markers is no conflict: in a Markdown file two of a conflict's markers must
    follow each other in their order, outside of a fenced block. In a chat, whose lines are base64,
    one that opens or closes a conflict is enough. Logs of workers are never judged: they only
    grow, and hold what terminals showed.

    ``held`` is what the ledger has for the file: a marker that stands there was taken in long ago.

    >>> merge_marker_in_piece("scribe/log.md", b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> main\n")
    2
    >>> merge_marker_in_piece("scribe/log.md", b"a\n=======\nb\n") is None
    True
    """
    if path.endswith(".log") or not any(word in data for word in (b"<<<<<<<", b">>>>>>>")):
        return None
    new, old = (
        Counter(match[0].rstrip(b"\r") for match in re.finditer(_MARKER, text))
        for text in (data, held)
    )
    if not new - old:
        return None
    is_chat = path.endswith(".chat")
    quoted = _fenced(data) if not is_chat and any(one in data for one in _FENCES) else ()
    first: tuple[int, int, bytes] | None = None  # its line, how many characters, which
    line, before = 1, 0
    for match in re.finditer(_MARKER, data):
        line, before = line + data.count(b"\n", before, match.start()), match.start()
        if line in quoted:
            continue
        text = match[0]
        kind = text[:1]
        size = len(text) - len(text.lstrip(kind))
        if is_chat:
            if kind in b"<>":
                return line
        # What goes on: after the opening one any but a second, then the closing one alone.
        elif first and size == first[1] and kind in (b"|=>" if first[2] == b"<" else b">"):
            return first[0]
        elif kind in b"<=":
            first = line, size, kind
    return None


def _fenced(data: bytes) -> frozenset[int]:
    """The numbers, from 1, of the lines of a Markdown file that are in fenced blocks of code."""
    from markdown_it import MarkdownIt

    # One character a byte, and no line break but ours: so the numbers of lines are ours, too.
    text = data.replace(b"\r", b" ").decode("latin-1")
    blocks = MarkdownIt("zero").enable(["fence", "code"]).parse(text)
    spans = [block.map for block in blocks if block.type == "fence" and block.map]
    return frozenset(line + 1 for start, stop in spans for line in range(start, stop))
