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
    r"""(?:Error:\ |Tool\ execution\ failed:\ )?(?:
    E[A-Z]{3,12}:\ [a-z][^\n:=]{,80},\ [a-z]+\b[^\n]{,400}
    |(?:The\ )?(?:[Ff]ile|[Pp]ath|[Dd]irectory|[Ff]older|Notebook(?:\ file)?)\b[^\n]{,400}?\b
        (?:does\ not\ exist|(?:was\ )?not\ found|is\ not\ a\ (?:file|directory)|is\ a\ directory
        |is\ ignored\ by|must\ be\ (?:within|absolute)|not\ in\ workspace|resolves\ outside
        |is\ not\ in\ the\ current\ working\ directory
        |is\ in\ a\ directory\ that\ is\ (?:denied|ignored)|already\ exists)\b[^\n]{,400}
    |(?:File|Path|Directory)\ not\ (?:found|in\ workspace)\b[^\n]{,400}
    |(?:File\ content|PDF|Image|File)\ [^\n]{,80}\b(?:exceeds|too\ large|is\ too\ long)\b[^\n]{,400}
    |File\ (?:has\ (?:not\ been\ read\ yet|been\ (?:unexpectedly\ )?modified)
        |is\ a\ Jupyter\ Notebook)\b[^\n]{,400}
    |(?:This\ tool\ cannot\ read|Cannot\ (?:read|create|edit|write|open|access))\ [^\n]{,400}
    |No\ (?:such\ (?:file|tool)|changes\ to\ make|match\ found|such\ directory)\b[^\n]{,400}
    |(?:String\ to\ replace\ not\ found|Found\ [0-9]+\ matches\ of\ the\ string\ to\ replace
        |[Cc]ould\ not\ find\ (?:the\ string\ to\ replace|oldString)|oldString\ not\ found
        |Found\ multiple\ matches\ for\ oldString|Multiple\ matches\ found
        |Failed\ to\ (?:edit,|find\ (?:expected\ lines|context))[ ]
        |(?:apply_patch\ )?verification\ failed:\ |InputValidationError:\ )
        [^\0]{,1000}
    |Claude\ requested\ permissions\ to\ [^\n]{,400}
    |(?:You\ must\ read\ |Offset\ [0-9]+\ is\ |Ripgrep\ search\ timed\ out
        |Unknown\ (?:tool|skill)|Tool\ execution\ for\ ")[^\n]{,400}
    |(?:Error\ executing\ tool\ |Tool\ "[^"\n]{,80}"\ not\ found|Tool\ [\w.-]{1,80}\ not\ found
        |params\ must\ have\ required\ property\ |[Uu]nable\ to\ locate\ |[Uu]nsupported\ call
        |[Ff]ailed\ to\ (?:parse\ function\ arguments|read\ file|access|open|resolve))[^\n]{,400}
    |The\ \w+\ tool\ was\ called\ with\ invalid\ arguments:\ [^\0]{,1000}
        Please\ rewrite\ the\ input[^\n]{,100}
    |(?:Tool\ execution|Execution|Operation|Request\ was|Th(?:e|is)\ operation\ was)[ ]
        (?:was\ )?(?:aborted|denied|blocked|cancell?ed|interrupted)[^\n]{,400}
    |(?:aborted|[Ii]nterrupted|cancell?ed|[Rr]ejected|User\ (?:rejected|denied|cancell?ed))
        (?:\ (?:by|after|tool|the|operation)\b[^\n]{,100})?[.]?
    )(?:\n+(?:Did\ you\ mean|Note:|Please\ |Use\ |Current\ working\ directory)[^\n]{,400}
        (?:\n[/~.][^\n\s=:]{,200})*)?(?:\nfailure)?""",
    re.VERBOSE,
)
"""What programs write of a call that failed: of some what was asked for, in several lines."""


def is_error_text(text: str, *, by_hook: bool = False) -> bool:
    r"""Whether an answer that failed, by the record, is the message of it and no text of a file.

    That is one only in the words of a program, but for what a hook said that denied the call: one
    line of some words.

    >>> [is_error_text(text) for text in ("File not found: a", "not", "File not found: a\nK=x")]
    [True, False, False]
    """
    text = text.strip()
    if not text or is_own_error(text):
        return True
    if _DENIAL.match(text):
        return _DENIAL_WHOLE.fullmatch(text) is not None
    in_words = _ERROR.fullmatch(text) is not None
    return in_words or (by_hook and _REASON.fullmatch(text) is not None)


_REASON = re.compile(r"(?=[^\n]{,1000}\Z)\S+(?:\s+\S+){3,}")


def is_own_error(text: str, *, of_server: bool = False) -> bool:
    """Whether an error is of the program itself, which did not run the tool; a server's may lie."""
    is_one = _OWN_ERROR.fullmatch(text) is not None
    return is_one and not (of_server and _UNCALLED.match(text) is None)


def is_denial(text: str) -> bool:
    """Whether an answer begins as programs answer a call that was denied, and never ran."""
    return _DENIAL.match(text) is not None and not text.startswith("[")


def is_refusal(text: str) -> bool:
    """Whether a program says by an error that it did not run the tool: who interrupts it may have.

    >>> is_refusal("Permission to x denied"), is_refusal("[Request interrupted by user]")
    (True, False)
    """
    return is_own_error(text) or (is_denial(text) and is_error_text(text))


_DENIAL = re.compile(
    r"""\[Request\ interrupted|\[Operation\ Cancelled\]\ Reason:
    |(?:Hook\ )?PreToolUse:|Execution\ stopped\ by\ PreToolUse\ hook\b
    |Permission\ (?:(?:to|for)\ |denied\b)|Command\ blocked\ by\ PreToolUse\ hook:
    |Denied\ by\ preToolUse\ hook\b
    |The\ user\ (?:doesn't|rejected|has\ specified\ a\ rule|denied|declined)\b""",
    re.VERBOSE,
)
_DENIAL_WHOLE = re.compile(
    r"""(?:PreToolUse:\S+\ hook\ error:\ \[[^\n]{,800}\]:[^\n]{,400}(?:\n[^\n]{,200}){,2}
    |The\ user\ (?:[^\n]{,800}\n)?[^\n]{,800}\bsaid:[^\0]{,1000}
    |[^\n]{,1000})
    (?:\n+Note:\ The\ user's\ next\ message[^\n]{,400}|\n(?:denied|rejected))?""",
    re.VERBOSE,
)
"""How programs begin the answer to a call that was denied, and how it may go on.

It is one line, but for what the command of a hook printed and what a person said.
"""


MADE = re.compile(
    r"(?:File created successfully at|Successfully created and wrote to new file|Created file)\b"
    r"[^\n]{,400}\n?"
)
"""What programs answer to a call that made a file: there was none to be read."""
