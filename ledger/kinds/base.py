"""What the body models share: closed, strict, versioned. Imported where strangers' data come in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Name = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Closed(BaseModel):
    """A model that takes exactly its fields, with exactly their types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class BodyModel(Closed):
    """The body of one kind; ``v`` is the model's own version."""

    v: Literal[1]


class Content(Closed):
    """Bytes, exactly: UTF-8 text, base64 where they are none, or a blob over 16 KiB."""

    text: str | None = None
    base64: str | None = None
    sha256: Sha256 | None = None
    size: Count | None = None

    @model_validator(mode="after")
    def _one_of_three(self) -> Content:
        given = (self.text is not None, self.base64 is not None, self.sha256 is not None)
        if sum(given) != 1 or (self.sha256 is None) != (self.size is None):
            raise ValueError("content is text, base64, or sha256 with size: exactly one of them")
        return self


class Observed(Closed):
    """Where something was read that another program wrote.

    ``claim`` says where its writer's own time was read: from the file's name (``us``), from the
    content (``time``, the decision's id) or from the file (``mtime_us``). That is a claim, and
    never the ``at`` of the entry. ``raw`` holds the bytes where our own rendering would differ,
    ``mode`` the permission bits where they differ from ours.
    """

    path: Name
    claim: Literal["file-name", "content", "mtime", "unknown"] | None = None
    mtime_us: Count | None = None
    mode: Annotated[int, Field(ge=0, le=0o7777)] | None = None
    raw: Content | None = None
