"""Declares what a kind is, and the parts that several bodies share. Imports nothing heavy.

A body is a ``TypedDict``, which mypy checks where an act drafts an entry;
``tripod.ledger.kinds.models`` makes the strict model of it that the verifier judges by, and the
reference page is written from it.

Annotations of bodies are evaluated when the class is made: hence no ``from __future__``, which
would have each of them compiled a second time.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeAlias, TypedDict, TypeVar

from tripod.ledger.entry import Draft, format_canonical

MARK = "[redacted]"  # what stands where an erased text stood
INLINE_LIMIT = 16 * 1024  # bytes of UTF-8; a longer text is a blob


# The classes below are plain ones: each command makes them anew, and a dataclass costs a
# millisecond, a named tuple a tenth of one.


class Limits:
    """The bounds of a field: of an integer its value, of a text its length in characters."""

    def __init__(
        self, low: int | None = None, high: int | None = None, pattern: str | None = None
    ) -> None:
        self.low, self.high, self.pattern = low, high, pattern


Name = Annotated[str, Limits(1, 4096)]
Count = Annotated[int, Limits(0, 2**53 - 1)]
Sha256 = Annotated[str, Limits(pattern=r"^[0-9a-f]{64}$")]
DecisionId = Annotated[str, Limits(pattern=r"^D-[0-9]{1,16}$")]
Mode = Annotated[int, Limits(0, 0o7777)]


class Content(TypedDict, total=False):
    """Bytes, exactly: UTF-8 text, base64 if they are not UTF-8, or a blob over 16 KiB."""

    text: str
    base64: str
    sha256: Sha256
    size: Count


Bytes: TypeAlias = Content | bytes
"""A field with bytes: an act gives them as they are, and ``Kind.draft`` writes the content."""


class Observed(TypedDict):
    """Where something was read that another program wrote.

    ``claim`` says where its writer's own time was read: from the file's name (``us``), from the
    content (``time``, the decision's id) or from the file (``mtime_us``). That is a claim, and
    never the ``at`` of the entry. ``raw`` holds the bytes where our own rendering would differ,
    ``mode`` the permission bits where they differ from ours.
    """

    path: Name
    claim: NotRequired[Literal["file-name", "content", "mtime", "unknown"] | None]
    mtime_us: NotRequired[Count | None]
    mode: NotRequired[Mode | None]
    raw: NotRequired[Content | None]


class Maker(TypedDict):
    """The program that makes a namespace, as it was then."""

    path: Name
    sha256: Sha256


class RunIsolation(TypedDict):
    """How far the run ``spawn`` was kept from the team.

    ``namespace``: it ran where the files of ``hidden`` (paths from the team directory) do not
    exist. ``folder``: it was told no path, and nothing kept it from looking; ``problem`` says why
    there was no namespace. ``bwrap`` is the program that made it.
    """

    spawn: Name
    level: Literal["namespace", "folder"]
    hidden: list[Name]
    problem: NotRequired[str | None]
    bwrap: NotRequired[Maker | None]


def content(data: bytes, blobs: list[bytes]) -> Content:
    """Hold bytes exactly: as text, as base64 if not UTF-8, or as a blob, added to ``blobs``.

    Text that JSON writes at more than twice the limit counts as none: it holds control
    characters, which take six bytes each (16 KiB of zeros would not fit a body).
    """
    if len(data) > INLINE_LIMIT:
        blobs.append(data)
        return {"sha256": sha256(data).hexdigest(), "size": len(data)}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    # A byte takes at most six: a short text need not be written to know.
    if text is not None and (
        6 * len(data) <= 2 * INLINE_LIMIT or len(format_canonical(text)) - 2 <= 2 * INLINE_LIMIT
    ):
        return {"text": text}
    from base64 import b64encode

    return {"base64": b64encode(data).decode()}


B = TypeVar("B", bound=Mapping[str, object])


class Erasure(Generic[B]):
    """What a redaction erases of a body; everything else of it stays.

    ``marks`` gives for each erased field what stands for it: a value, or None where the field is
    left out or written anew in the format of its file (``tripod.projections.erasure``). The name
    ``observed.raw`` means the bytes of an observed piece. ``place`` is where the text stands in the
    team directory: the path of a file, or the folder of a run. ``texts`` are the erased fields of
    which copies are looked for elsewhere, by default those that hold bytes. ``is_copy``: the body
    holds a copy of a text that other entries hold, and is erased with them.
    """

    def __init__(
        self,
        marks: Mapping[str, Any],
        place: Callable[[B], str],
        texts: tuple[str, ...] | None = None,
        *,
        is_copy: bool = False,
    ) -> None:
        if texts is None:
            texts = tuple(name for name, mark in marks.items() if isinstance(mark, dict))
        self.marks, self.place, self.texts, self.is_copy = marks, place, texts, is_copy


class Kind(Generic[B]):
    """A kind of entry: all that is known of it below the projections and checks.

    ``stream`` is the stream that the entries stand in; one that ends in a slash goes on with what
    ``within`` reads from the body. ``actor`` is the field of the body that names who did it;
    without it the caller says who, else ``tripod`` did. ``is_speech``: the body shows the actor as
    who speaks, so the verifier holds field and header together. ``id`` makes the entry's id of the
    body, where the entry must be the only one of its sort. ``rule`` says what is wrong with a body
    whose fields fit one by one, or returns None. ``observed`` says whether entries were read from
    files that other programs wrote: never (None), some of them (False), all (True).
    ``is_placed``: the verifier judges the entry by its place or its id as well. ``line`` is how a
    list of entries shows the body, with fields in braces; without it every field is shown by name.
    ``merge`` says what an entry of this kind, made by another replica of the team, means here:
    ``shared``: the tables fold it like one of ours; ``own``: it is kept and shown, and no more.
    """

    def __init__(
        self,
        name: str,
        body: type[B],
        stream: str,
        within: Callable[[B], str] | None = None,
        *,
        actor: str | None = None,
        is_speech: bool = False,
        id: Callable[[B], str] | None = None,
        rule: Callable[[Mapping[str, Any]], str | None] | None = None,
        observed: bool | None = None,
        erasure: Erasure[B] | None = None,
        is_placed: bool = False,
        line: str = "",
        merge: Literal["shared", "own"] = "own",
    ) -> None:
        self.merge = merge
        self.name, self.body, self.stream, self.within = name, body, stream, within
        self.actor, self.is_speech, self.id, self.rule = actor, is_speech, id, rule
        self.observed, self.erasure, self.is_placed, self.line = observed, erasure, is_placed, line

    def __repr__(self) -> str:
        """The name: the rest stands in the declaration."""
        return f"Kind({self.name!r})"

    def draft(
        self,
        body: B,
        actor: str | None = None,
        *,
        cause: str | None = None,
        blobs: Sequence[bytes] = (),
        observed: Observed | None = None,
    ) -> Draft:
        """An entry of this kind to append; fields that are None are left out.

        Of bytes in ``body`` the draft holds the content. ``cause`` is the id of the entry that it
        follows from, ``blobs`` are long texts that the body names by digest already, ``observed``
        is where it was read, if another program wrote it.
        """
        held = list(blobs)
        data: dict[str, Any] = {
            name: content(value, held) if type(value) is bytes else value
            for name, value in body.items()
            if value is not None
        }
        if observed is not None:
            data["observed"] = observed
        data["v"] = 1
        if actor is None:
            actor = "tripod" if self.actor is None else data[self.actor]
        entry_id = None if self.id is None else self.id(body)
        stream = self.stream_of(body)
        return Draft(self.name, stream, actor, data, entry_id, cause, tuple(held))

    def stream_of(self, body: Mapping[str, Any]) -> str:
        """The stream of an entry whose body fits the kind."""
        return self.stream if self.within is None else self.stream + self.within(body)  # type: ignore[arg-type]


def text(value: str) -> Content:
    """The content that is this text, where it is known to be short."""
    return {"text": value}


def digest_of(mark: str) -> str:
    """SHA-256 of a mark in hex, as it stands beside the mark's content."""
    return sha256(mark.encode()).hexdigest()


MARKED = text(MARK)  # the content that stands where erased bytes stood
_FILE = f"{MARK}\n"
ERASED_FILE = {"content": text(_FILE), "sha256": digest_of(_FILE), "size": len(_FILE)}
"""The marks of a body that holds a file whole."""
