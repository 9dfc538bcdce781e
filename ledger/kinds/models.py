"""Makes the strict pydantic models by which strangers' bodies are judged, from the declarations.

A model takes exactly the fields of its declaration, with exactly their types and bounds, and
``v``, the version of the kind's body. Only code that judges imports this: pydantic is heavy.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model, model_validator

from tripod.ledger.kinds.base import Content, Kind, Limits, Observed
from tripod.ledger.kinds.redaction import REDACTED
from tripod.ledger.kinds.registry import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Closed(BaseModel):
    """A model that takes exactly its fields, with exactly their types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def fields_of(declared: type[Any]) -> dict[str, tuple[Any, bool]]:
    """The fields of a declared body or part, in order: type, and whether it is required."""
    required: frozenset[str] = declared.__required_keys__
    return {
        name: (get_args(hint)[0] if get_origin(hint) is NotRequired else hint, name in required)
        for name, hint in get_type_hints(declared, include_extras=True).items()
    }


def body_fields(kind: Kind[Any]) -> dict[str, tuple[Any, bool]]:
    """The fields of a kind's body as entries hold it, but for ``v``."""
    seen = {} if kind.observed is None else {"observed": (Observed, kind.observed)}
    return fields_of(kind.body) | seen


@cache
def model_of(kind: Kind[Any]) -> type[BaseModel]:
    """The model of a kind's body; ``v`` is its own version."""
    rule = _keep_problem if kind is REDACTED else kind.rule
    version = Annotated[int, Field(ge=1, le=1)]  # not Literal[1]: that takes `true` for 1
    return _made(kind.body, {"v": (version, True)} | body_fields(kind), rule)


@cache
def part_model(declared: type[Any]) -> type[BaseModel]:
    """The model of a part that bodies are made of."""
    rule = _content_problem if declared is Content else None
    return _made(declared, fields_of(declared), rule)


def _made(
    declared: type[Any],
    fields: Mapping[str, tuple[Any, bool]],
    rule: Callable[[Mapping[str, Any]], str | None] | None,
) -> type[BaseModel]:
    given: dict[str, Any] = {}
    for name, (hint, is_required) in fields.items():
        type_ = _type(hint)
        given[name] = (type_, ...) if is_required else (type_ | None, None)

    def check(self: BaseModel) -> BaseModel:
        problem = None if rule is None else rule(self.__dict__)
        if problem is not None:
            raise ValueError(problem)
        return self

    validators: dict[str, Any] = {"_rule": model_validator(mode="after")(check)} if rule else {}
    made: type[BaseModel] = create_model(
        declared.__name__,
        __base__=Closed,
        __doc__=declared.__doc__,
        __validators__=validators,
        **given,
    )
    return made


def _type(hint: Any) -> Any:
    """A declared type as pydantic takes it."""
    if is_typeddict(hint):
        return part_model(hint)
    if hasattr(hint, "__metadata__"):
        of, rule = hint.__origin__, hint.__metadata__[0]
        if of is int and isinstance(rule, Limits):
            rule = Field(ge=rule.low, le=rule.high)
        elif isinstance(rule, Limits):
            rule = StringConstraints(
                min_length=rule.low, max_length=rule.high, pattern=rule.pattern
            )
        return Annotated[of, rule]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):  # bytes are what acts give: entries hold their content
        return Union[tuple(_type(one) for one in inner if one is not bytes)]  # noqa: UP007
    if origin in (list, dict):
        return origin[tuple(_type(one) for one in inner)]
    return hint


def _content_problem(body: Mapping[str, Any]) -> str | None:
    given = [name for name in ("text", "base64", "sha256") if body[name] is not None]
    if len(given) == 1 and (body["sha256"] is None) == (body["size"] is None):
        return None
    return "content is text, base64, or sha256 with size: exactly one of them"


def _keep_problem(body: Mapping[str, Any]) -> str | None:
    """What is wrong with a redaction: ``keep`` is a body of the kind of the erased entry.

    Raises:
        ValidationError: it does not fit that kind.
    """
    kind = BY_NAME.get(body["kind"])
    if kind is None or kind.erasure is None:
        return f"an entry of the kind {body['kind']} cannot be erased"
    model_of(kind).model_validate(body["keep"])
    return None
