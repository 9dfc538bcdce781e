"""The answer in the output of an agent's program. Pure: acts and checks read it by the same code.

A program answers in one of three forms. ``text``: all of its output. ``json``: one JSON value.
``claude-stream-json``: the stream of a coding agent, one JSON object a line, whose last ``result``
has the answer, its price and its session; an answer in the shape of the requested schema
(``structured_output``) has precedence over one in words.

Source: spec kernel A-5, A-6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

Output = Literal["text", "json", "claude-stream-json"]
Status = Literal["ok", "nonzero", "timeout", "killed", "empty_output", "bad_output", "not_started"]

CANCELLED = "it was ended because it was told to"
"""The problem of a run that was cancelled: no fault of its program."""

FAILED = "it says that it failed: "
"""How the problem of a stream begins whose result is no answer but a failure."""

TOO_SLOW = "it was ended: its time was over after {seconds:.1f} s"
SIGNALLED = "it was killed by signal {signal}"
NOT_STARTED = "it could not be started: {reason}"
EXITED = "it ended with exit code {code}"
TOO_MUCH = "it printed more than {most} bytes"
ALTERED = "another program changed what it printed ({names})"
PRINTED_NOTHING = "it printed nothing"
NO_JSON = "its output is no JSON: "
CUT_OFF = "its stream has no result: it was cut off"
UNSHAPED = "it gave no answer in the shape that was asked for"
EMPTY_RESULT = "its result is empty"
"""The words of other problems: records hold them, and checks compare them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as a program printed it: ``status`` is ok, empty_output or bad_output.

    ``problem`` says what is wrong with the last two, ``structured`` is the answer if it is JSON.
    """

    status: Status = "ok"
    problem: str = ""
    text: str = ""
    structured: Any = None
    usage: Mapping[str, int] = field(default_factory=dict)
    cost: str | None = None
    session: str | None = None


_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MOST = 2**53 - 1
_SESSION = 200
_FIGURES = 64
_DEAREST = 10**9
MAX_NESTED = 64
"""Lists and objects of JSON that may stand in each other."""
_SIGN = re.compile(r'\\.|["[\]{}]', re.DOTALL)


def read_spec_answer(output: Output, data: bytes, *, wants_structure: bool = False) -> Answer:
    """Read a program's whole output; ``wants_structure``: words alone are no answer."""
    if not data.strip():
        return Answer("empty_output", PRINTED_NOTHING)
    if output == "claude-stream-json":
        return _read_stream(data, wants_structure=wants_structure)
    text = data.decode("utf-8", "replace").strip()
    if output == "text":
        return Answer("ok", text=text)
    value, problem = _json(text)
    if problem:
        return Answer("bad_output", f"{NO_JSON}{problem}", text)
    return Answer("ok", text=text, structured=value)


def refuse_deep_json(text: str) -> None:
    """Refuse what is nested too deep (ValueError), whether or not it is JSON.

    How deep a parser comes depends on who calls it, and acts and checks have to find the same.

    >>> refuse_deep_json("[" * 64)
    >>> refuse_deep_json('"[[[" [' + "{" * 64)
    Traceback (most recent call last):
    ValueError: more than 64 lists and objects stand in each other
    """
    if text.count("[") + text.count("{") <= MAX_NESTED:
        return
    depth, in_text = 0, False
    for found in _SIGN.finditer(text):
        sign = found[0]
        if sign == '"':
            in_text = not in_text
        elif in_text or sign not in "[]{}":
            continue
        elif sign in "]}":
            depth -= 1
        elif (depth := depth + 1) > MAX_NESTED:
            raise ValueError(f"more than {MAX_NESTED} lists and objects stand in each other")


def _json(text: str | bytes) -> tuple[Any, str]:
    r"""A value and no problem, or the problem.

    JSON may spell half a character (``"\ud800"``), and no entry can hold one: it is a "?" here.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        refuse_deep_json(text)
        value = json.loads(text)
        plain = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return json.loads(plain), ""
    except ValueError as error:
        return None, str(error)


def _read_stream(data: bytes, *, wants_structure: bool) -> Answer:
    """Read the last result of a stream; of its figures what is not as expected is left out."""
    result: dict[str, Any] | None = None
    for line in data.split(b"\n"):
        if b'"result"' in line:
            value, _ = _json(line)
            if isinstance(value, dict) and value.get("type") == "result":
                result = value
    if result is None:
        return Answer("bad_output", CUT_OFF)
    usage, cost, session = (result.get(name) for name in ("usage", "total_cost_usd", "session_id"))
    counted = (
        (name, value)
        for name, value in (usage.items() if isinstance(usage, dict) else ())
        if _NAME.fullmatch(name) and type(value) is int and 0 <= value <= _MOST
    )
    priced = isinstance(cost, int | float) and 0 <= cost < _DEAREST
    known = isinstance(session, str) and 0 < len(session) <= _SESSION and session.isprintable()
    said = result.get("result")
    text = said.strip() if isinstance(said, str) else ""
    structured = result.get("structured_output")
    answer = Answer(
        "ok",
        text=text,
        structured=structured,
        usage=dict(islice(counted, _FIGURES)),
        cost=f"{cost:.4f}" if priced else None,
        session=session if known else None,
    )
    if result.get("is_error") or result.get("subtype", "success") != "success":
        why = " ".join((text or str(result.get("subtype"))).split())
        problem = f"{FAILED}{why[:500]}"
        return replace(answer, status="bad_output", problem=problem)
    if wants_structure and structured is None:
        return replace(answer, status="bad_output", problem=UNSHAPED)
    if not text and structured is None:
        return replace(answer, status="empty_output", problem=EMPTY_RESULT)
    if structured is not None:
        text = json.dumps(structured, ensure_ascii=False, sort_keys=True)
    return replace(answer, text=text)
