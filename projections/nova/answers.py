"""What people and programs write for a Nova run: personas, and the answers of agents.

A persona is a Markdown file with YAML front matter; its body is the prompt. An answer is accepted
in three forms, the first that fits: one JSON object, also as one fenced block of Markdown (a
program's structured output is one as well); Markdown with front matter; text with a line
``Epistemic: know=0.4, uncertainty=0.7``. Fields of a role are read strictly, unknown ones are
passed over. Where front matter leaves the main field out, the text behind it is that field.

Numbers keep four decimals, and are rounded to the unsafe side: an uncertainty up, so that 0.35001
passes no gate of 0.35, and what one knows down.

Source: spec nova N1, N2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from tripod.ledger.errors import MalformedError
from tripod.projections.nova.rules import Epistemic
from tripod.projections.settings import (
    Rule,
    Settings,
    judge,
    read_setting_entries,
    read_settings,
    setting_of,
    spelled_setting,
)
from tripod.projections.workers.answers import refuse_deep_json

MAX_PERSONA = 64 * 1024
MAX_ANSWER = 256 * 1024
"""Bytes."""
MAX_TITLE = 200
"""Characters of a persona's role."""

_FENCE = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_SHORT_NAME = "[a-z][a-z0-9_-]{0,31}"
_EPISTEMIC = re.compile(
    r"^[ \t]*Epistemic:[ \t]*know[ \t]*=[ \t]*(\S{1,40}?)[ \t]*,[ \t]*"
    r"uncertainty[ \t]*=[ \t]*(\S{1,40}?)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?")
_HALF = re.compile("[\ud800-\udfff]")
_PLACES = Decimal("0.0001")
MAX_LIST = 200  # values of one list
MAX_TEXT = 8_000  # characters of one of them


class _Open(Settings):
    """Settings of which unknown keys are passed over."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "ignore"}


def _text(value: object) -> object:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("the value is not text")
    if len(value) > MAX_ANSWER or _HALF.search(value):
        raise ValueError("the value is too long, or no valid text")
    return value.strip()


def _texts(value: object) -> object:
    found = [value] if isinstance(value, str) and value.strip() else value
    if not isinstance(found, list) or len(found) > MAX_LIST:
        raise ValueError(f"the value is not a list of at most {MAX_LIST} texts")
    for one in found:
        if len(str(_text(one))) > MAX_TEXT:
            raise ValueError(f"a text of more than {MAX_TEXT} characters")
    return tuple(one.strip() for one in found)


def _title(value: object) -> object:
    if len(str(_text(value))) > MAX_TITLE:
        raise ValueError(f"the value has more than {MAX_TITLE} characters")
    return _text(value)


Text = Annotated[str | None, Rule(_text)]
Texts = Annotated[tuple[str, ...], Rule(_texts)]


# Personas --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Head(_Open):
    """The front matter of a persona's file."""

    role: Annotated[str, Rule(_title)]
    short_name: Annotated[
        str, spelled_setting(_SHORT_NAME, "a name of small letters, digits, - and _")
    ]
    responsibility: Annotated[str, Rule(_text)]
    pattern: Annotated[str, setting_of(("coordinator", "critic", "domain_expert"))]
    expertise: Texts = ()
    tools: Texts = ()


class Persona(NamedTuple):
    """A persona: what its file says, and the file's place and bytes.

    ``tools`` describe it; nothing is granted by them.
    """

    short_name: str
    role: str
    responsibility: str
    pattern: str
    expertise: tuple[str, ...]
    tools: tuple[str, ...]
    prompt: str
    path: str
    data: bytes


def read_persona(data: bytes, path: str) -> Persona:
    """Read the file of a persona; ``path`` is its place in their folder (MalformedError)."""
    if len(data) > MAX_PERSONA:
        raise MalformedError(f"{path}: it has more than {MAX_PERSONA} bytes")
    try:
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise MalformedError(f"{path}: it is not UTF-8 text") from error
    found = _FENCE.match(text)
    if found is None:
        raise MalformedError(
            f"{path}: it has no front matter: its first line is ---, then keys, then a line ---"
        )
    try:
        head = read_settings(_Head, b"\n" + found[1].encode())  # lines count as in the file
    except MalformedError as error:
        raise MalformedError(f"{path}: front matter: {error}") from error
    if not text[found.end() :].strip():
        raise MalformedError(f"{path}: nothing follows the front matter: the prompt stands there")
    return Persona(
        head.short_name, head.role, head.responsibility, head.pattern, head.expertise, head.tools,
        persona_prompt(data), path, data,
    )  # fmt: skip


def persona_prompt(data: bytes) -> str:
    """The prompt of a persona's file: what follows its front matter."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return _FENCE.sub("", text, count=1).strip()


# Answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Flaw(_Open):
    """An issue that a critic found."""

    severity: Annotated[Literal["critical", "minor"], setting_of(("critical", "minor"))]
    text: Annotated[str, Rule(_text)]


def _flaws(value: object) -> object:
    if not isinstance(value, list) or len(value) > MAX_LIST:
        raise ValueError(f"the value is not a list of at most {MAX_LIST} issues (severity, text)")
    return tuple(value)


@dataclass(frozen=True, slots=True)
class _Unpack(_Open):
    requirements: Texts = ()
    considerations: Texts = ()
    experts: Texts = ()


@dataclass(frozen=True, slots=True)
class _Expert(_Open):
    analysis: Text = None
    findings: Texts = ()
    risk_level: Annotated[str | None, setting_of(("LOW", "MEDIUM", "HIGH", "CRITICAL"))] = None


@dataclass(frozen=True, slots=True)
class _Synthesis(_Open):
    proposal: Text = None
    consensus: Texts = ()
    trade_offs: Texts = ()
    dissenters: Texts = ()
    open_questions: Texts = ()


@dataclass(frozen=True, slots=True)
class _Critique(_Open):
    issues: Annotated[tuple[Flaw, ...], Rule(_flaws)]
    edge_cases: Texts = ()


@dataclass(frozen=True, slots=True)
class _Final(_Open):
    decision: Text = None
    confidence: Annotated[str | None, Rule(lambda value: str(_share(value, ROUND_FLOOR)))] = None


SHAPES: dict[str, tuple[Any, str]] = {
    "unpack": (_Unpack, ""),
    "expert": (_Expert, "analysis"),
    "synthesis": (_Synthesis, "proposal"),
    "critique": (_Critique, ""),
    "revision": (_Synthesis, "proposal"),
    "final": (_Final, "decision"),
}
"""What an answer of a role holds, and its main field, which has to be there ('': none)."""

NEEDS_EPISTEMIC = frozenset(("unpack", "synthesis", "final"))
"""Roles that have to state what they know and how uncertain they are."""


class NovaAnswer(NamedTuple):
    """An answer as it was read: ``form`` is one of three, ``fields`` are those of its role.

    ``problem`` says what is wrong with the epistemic state, which is None then. ``labels`` are the
    persona and the turn that it gives itself, '' where it gives none.
    """

    form: Literal["json", "front-matter", "line"]
    fields: Mapping[str, Any]
    epistemic: Epistemic | None
    problem: str
    labels: tuple[str, str]


def read_answer(role: str, text: str) -> NovaAnswer:
    r"""Read the answer of a role (MalformedError: it is in no form, or a field breaks its rule).

    >>> read_answer("expert", "Use OAuth2.\nEpistemic: know=0.4, uncertainty=0.70001").epistemic
    Epistemic(know=Decimal('0.4'), uncertainty=Decimal('0.7001'))
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_ANSWER:
        raise MalformedError(f"the answer has more than {MAX_ANSWER} bytes")
    form, values, rest = _form_of(text.replace("\r\n", "\n"))
    shape, main = SHAPES[role]
    if main and main not in values and rest.strip():
        values[main] = rest
    fields = judge(shape, values)
    if main and getattr(fields, main) is None:
        raise MalformedError(f"{main}: the key is missing, and no text stands behind the keys")
    epistemic, problem = _epistemic(values, rest)
    if not problem and epistemic is None and role in NEEDS_EPISTEMIC:
        problem = "epistemic: know and uncertainty are missing; state both, each from 0 to 1"
    labels = tuple(str(values.get(key, "")).strip()[:100] for key in ("persona", "turn"))
    return NovaAnswer(form, _plain(fields), epistemic, problem, (labels[0], labels[1]))


def _form_of(text: str) -> tuple[Literal["json", "front-matter", "line"], dict[str, Any], str]:
    """The form of an answer, its keys and values, and the text beside them."""
    whole = _unfenced(text)
    if whole.lstrip().startswith("{"):
        broken = "the answer begins as JSON, and cannot be read as such: "
        try:
            refuse_deep_json(whole)
        except ValueError as error:
            raise MalformedError(f"{broken}{error}") from error
        try:
            value = json.loads(whole, object_pairs_hook=_once)
        except MalformedError as error:
            raise MalformedError(f"{broken}{error}") from error
        except ValueError as error:  # whose words differ from one version of Python to the next
            hint = "look for a comma, a quote or a bracket that is missing or too many"
            raise MalformedError(f"{broken}{hint}") from error
        if _HALF.search(json.dumps(value, ensure_ascii=False)):  # no entry can hold it
            raise MalformedError("the answer holds half of a character, such as \\ud800")
        return "json", value, ""
    fence = _FENCE.match(text.lstrip())
    if fence is not None:
        head = f"\n{fence[1]}".encode("utf-8", "replace")  # lines count as in the answer
        try:
            entries = read_setting_entries(head)
        except MalformedError as error:
            raise MalformedError(f"front matter: {error}") from error
        values = _once((key, value) for key, _, value in entries)
        return "front-matter", values, text.lstrip()[fence.end() :]
    if _EPISTEMIC.search(text):
        return "line", {}, text
    raise MalformedError(
        "the answer is in no form that is read: a JSON object, Markdown whose first line is --- "
        "and whose keys end at the next ---, or text with a line `Epistemic: know=0.5, "
        "uncertainty=0.5`"
    )


def _unfenced(text: str) -> str:
    """What a text holds that is one fenced block and nothing else; another text as it is."""
    first, _, rest = text.strip().partition("\n")
    inner, _, last = rest.rpartition("\n")
    return inner if first.rstrip() in ("```", "```json") and last.strip() == "```" else text


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand there once: of two a person reads the first, programs the last."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise MalformedError(f"{key[:40]!r} stands there twice; give each key once")
        found[key] = value
    return found


def _epistemic(values: Mapping[str, Any], rest: str) -> tuple[Epistemic | None, str]:
    """The epistemic state of an answer, or what is wrong with it, or neither."""
    stated = values.get("epistemic", values)
    found: tuple[object, object] | None = None
    if isinstance(stated, dict) and ("know" in stated or "uncertainty" in stated):
        found = stated.get("know"), stated.get("uncertainty")
    elif "epistemic" not in values and (lines := set(_EPISTEMIC.findall(rest))):
        if len(lines) > 1:  # one of them may be quoted
            return None, "epistemic: the lines `Epistemic: ...` differ; state it once"
        ((know, uncertainty),) = lines
        found = know, uncertainty
    if found is None:
        bad = "epistemic" in values
        return None, "epistemic: it has no keys `know` and `uncertainty`" if bad else ""
    try:
        return Epistemic(_share(found[0], ROUND_FLOOR), _share(found[1], ROUND_CEILING)), ""
    except ValueError as error:
        return None, f"epistemic: {error}"


def _share(value: object, rounding: str) -> Decimal:
    """A number from 0 to 1 with four decimals (ValueError: it is another value)."""
    said = repr(value) if isinstance(value, int | float) and value is not True else value
    if isinstance(said, str) and _NUMBER.fullmatch(said.strip()):
        try:
            share = Decimal(said.strip())
            if 0 <= share <= 1:
                return share.quantize(_PLACES, rounding).normalize() + 0
        except InvalidOperation:
            pass
    raise ValueError(f"{str(value)[:40]!r} is not a number from 0 to 1")


def _plain(fields: Any) -> dict[str, Any]:
    """The fields that an answer filled, as JSON has them."""
    found: dict[str, Any] = {}
    for name in fields.__dataclass_fields__:
        value = getattr(fields, name)
        if isinstance(value, tuple):
            value = [_plain(one) if isinstance(one, Flaw) else one for one in value]
        if value is not None and value != []:
            found[name] = value
    return found
