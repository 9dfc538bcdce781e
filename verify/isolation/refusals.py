"""Whether an answer that failed, or was denied, is the message of it, and no text of a file. Pure.

What failed by the record may have shown something first, and a tool can print the words by which a
program refuses. So only the forms that programs are known to write count.
"""

from __future__ import annotations

import re

_OWN_ERROR = re.compile(r"<tool_use_error>(?:(?!</tool_use_error>)[^\0])*</tool_use_error>\s*")
_UNCALLED = re.compile(
    r"<tool_use_error>(?:Error: No such tool available: |InputValidationError: )[^\0]{,400}\Z"
)
"""Errors of a program itself; one of a server may begin like them, and go on with any text."""

_ERROR = re.compile(
    r"""\b(?:errors?|failed|failure|cannot|can't|could\ not|couldn't|unable|denied|not|no\ such
    |didn't|doesn't|don't|haven't|rejected|refused|declined|aborted|cancell?ed|interrupted|stopped
    |invalid|exceeds?|too\ (?:large|long|big)|outside|out\ of\ bounds|must|missing|unknown
    |unexpected|forbidden|prohibited|blocked?|ignored|timed\ out|timeout|exception
    |E[A-Z]{3,}(?=:))\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ERROR_LINES, _ERROR_SIZE, _REASON_WORDS = 6, 1_000, 4


def is_error_text(text: str, *, denied: bool = False) -> bool:
    r"""Whether an answer that failed, by the record, is the message of it and no text of a file.

    That of a denial may be anything that a person or a hook wrote, in one line of some words: more
    lines may be of a file.

    >>> [is_error_text(text) for text in ("No such file.", "K=x", "Permission to read: no\nK=x")]
    [True, False, False]
    """
    lines = text.strip().splitlines()
    if not lines or is_own_error(text):
        return True
    if _DENIAL.match(text):
        return _DENIAL_WHOLE.fullmatch(text.strip()) is not None
    if len(lines) > _ERROR_LINES or len(text) > _ERROR_SIZE or text.startswith("<tool_use_error>"):
        return False
    if denied and (len(lines) > 1 or len(text.split()) >= _REASON_WORDS):
        return len(lines) == 1
    return _ERROR.search(lines[0]) is not None


def is_own_error(text: str, *, of_server: bool = False) -> bool:
    """Whether an error is of the program itself, which did not run the tool; a server's may lie."""
    is_one = _OWN_ERROR.fullmatch(text) is not None
    return is_one and not (of_server and _UNCALLED.match(text) is None)


def is_refusal(text: str) -> bool:
    """Whether a program says by an error that it did not run the tool: who interrupts it may have.

    >>> is_refusal("Permission to x denied"), is_refusal("[Request interrupted by user]")
    (True, False)
    """
    begins = _DENIAL.match(text) is not None and not text.startswith("[")
    return is_own_error(text) or (begins and is_error_text(text))


_DENIAL = re.compile(
    r"""\[Request\ interrupted|PreToolUse:|Permission\ (?:to|for)\ |
    Command\ blocked\ by\ PreToolUse\ hook:|
    The\ user\ (?:doesn't|rejected|has\ specified\ a\ rule|denied|declined)\b""",
    re.VERBOSE,
)
_DENIAL_WHOLE = re.compile(
    r"""(?:PreToolUse:\S+\ hook\ error:\ \[[^\n]{,800}\]:[^\n]{,400}(?:\n[^\n]{,200}){,2}
    |The\ user\ (?:[^\n]{,800}\n)?[^\n]{,800}\bsaid:[^\0]{,1000}
    |[^\n]{,1000})
    (?:\n+Note:\ The\ user's\ next\ message[^\n]{,400})?""",
    re.VERBOSE,
)
"""How programs begin the answer to a call that was denied, and how it may go on.

It is one line, but for what the command of a hook printed and what a person said.
"""
