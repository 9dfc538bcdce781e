r"""The decision log: a markdown file whose entries begin with ``### D-``. Pure.

::

    # Decision Log

    Project: sample
    Created: 2026-02-12T14:00:00Z
    Scribe: scribe

    ---

    ### D-1707753600 [SUPERSEDES D-1707750000] Coordination bus replaces polling
    - **Chat ref:** live.chat:~L342
    - **Participants:** alex, claude
    - **Artefacts:** docs/nbs-bus.md
    - **Risk tags:** none
    - **Status:** decided
    - **Rationale:** Polling wastes context tokens on empty reads.

- An entry that we append is ``\n---\n\n`` and its lines; it brings its own rule, so a log that we
  begin ends its header without one. The mark ``[SUPERSEDES ...]`` stands only where it is true.
- Every line that begins with ``### D-`` is an entry, inside a fenced code block too: the count must
  be the one that ``grep -c "^### D-"`` gives.
- A log that others wrote may have a blank line after the heading and wrapped rationales.

Source: seeds nbs-scribe and tripod-architecture; spec nbs-compat B10. It imports nothing above
this folder.
"""

import re
from typing import NamedTuple

from tripod.ledger.places import LOGS, added_place_problem
from tripod.projections import text as moments

STATUSES = ("decided", "accepted-risk", "mitigated", "superseded", "reversed")
CHANGES = ("mitigated", "superseded", "reversed")
"""Statuses that say what became of another decision."""

NONE_YET = "—"
"""What an empty ``Chat ref`` or ``Artefacts`` shows."""

# Patterns are texts: re compiles each on its first use and keeps it. Compiled here, they would
# cost every command that imports this module.
_HEADING_LINE = rb"(?m)^### D-"
# The blank line, the rule and the blank line in front belong to the entry, where they are there.
_PIECE = rb"(?m)(?:^\n---\n\n)?^### D-"
_HEADING = r"### (D-[0-9]{1,16})(?: \[SUPERSEDES ([^\]\n]*)\])?(?: (.*))?"
_ID = r"D-[0-9]{1,16}"
_STAMP = r"([0-9]{8}-[0-9]{6})"
MAX_TITLE = 1023  # bytes of a field that we write
MAX_FIELD = 2047
MAX_NAME = 200  # bytes of a log's file name: its archives' names are longer
_LABELS = ("Chat ref", "Participants", "Artefacts", "Risk tags", "Status", "Rationale")
_DEFAULTS = {"Artefacts": NONE_YET, "Risk tags": "none"}


class DecisionText(NamedTuple):
    """One entry, each field as the text in the file; ``''`` where a field is missing."""

    id: str
    title: str
    supersedes: str | None
    chat_ref: str  # from here on in the order of the file
    participants: str
    artefacts: str
    risk_tags: str
    status: str
    rationale: str


class ChatRef(NamedTuple):
    """A place in a chat file: its file name and the physical line, from 1."""

    file: str
    line: int


def format_decision_log_header(project: str, created_iso: str, scribe: str) -> str:
    """Give the head of a new log, without the rule: each entry brings its own."""
    return f"# Decision Log\n\nProject: {project}\nCreated: {created_iso}\nScribe: {scribe}\n"


def format_decision(decision: DecisionText) -> str:
    """Give an entry with the rule in front, as it is appended; empty fields get their default.

    Raises ValueError where the text would not read back as this entry, such as for a line break in
    a field: judge the fields with ``text.text_line_problem`` first.
    """
    entry = decision._replace(
        chat_ref=decision.chat_ref or NONE_YET,
        artefacts=decision.artefacts or NONE_YET,
        risk_tags=decision.risk_tags or "none",
        status=decision.status or "decided",
    )
    mark = "" if entry.supersedes is None else f"[SUPERSEDES {entry.supersedes}] "
    shown = zip(_LABELS, entry[3:], strict=True)
    fields = "".join(f"- **{label}:** {value}\n" for label, value in shown)
    text = f"\n---\n\n### {entry.id} {mark}{entry.title}\n{fields}"
    if text.count("\n") != 10 or parse_decision(text.encode()) != (entry, ()):
        raise ValueError(f"decision {decision.id!r} cannot be written as an entry of the log")
    return text


def format_decision_ref(ref: ChatRef) -> str:
    """Give one chat reference: ``live.chat:~L342``."""
    return f"{ref.file}:~L{ref.line}"


def count_decision_headings(data: bytes) -> int:
    """Count the decisions, as ``grep -c "^### D-"`` does."""
    return len(re.findall(_HEADING_LINE, data))


def split_decision_log(data: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    r"""Cut a log into its header and one piece an entry; put together they are ``data`` again.

    A piece begins with the ``\n---\n\n`` in front of its heading where exactly that stands there
    (a blank line, the rule, a blank line), else with the heading.
    """
    starts = [match.start() for match in re.finditer(_PIECE, data)]
    ends = [*starts, len(data)][1:]
    header = data[: starts[0]] if starts else data
    return header, tuple(data[start:end] for start, end in zip(starts, ends, strict=True))


def decision_piece_text(piece: bytes) -> str:
    r"""Give what a piece of a log says: from its heading to the rule after it.

    >>> decision_piece_text(b"\n---\n\n### D-1 T\n- **Status:** decided\n\n---\n")
    '### D-1 T\n- **Status:** decided'
    """
    heading = re.search(_HEADING_LINE, piece)
    text = piece[heading.start() if heading else 0 :].decode("utf-8", "replace")
    return re.split(r"(?m)^[ \t]*---[ \t\r]*$", text, maxsplit=1)[0].rstrip()


def decision_parts(piece: str) -> list[str]:
    r"""Cut a piece at the names of its fields: its heading, and what was written in each field.

    >>> decision_parts("### D-1 T\n- **Status:** decided\n- **Note:** one\n  two")
    ['### D-1 T\n', ' decided\n', ' one\n  two']
    """
    return re.split(r"(?m)^[ \t]*- \*\*[^*:\n]+:\*\*", piece)


def parse_decision(piece: bytes) -> tuple[DecisionText | None, tuple[str, ...]]:
    """Read one piece of a log; None where its heading is wrong; and every problem seen, as texts.

    Wrapped lines of a field are joined by a space. Missing artefacts and risk tags have their
    defaults and are no problem; another missing field is ``''`` and a problem.
    """
    problems: list[str] = []
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        text = piece.decode("utf-8", "replace")
        problems.append("not UTF-8")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    at = next((at for at, line in enumerate(lines) if line.startswith("### D-")), len(lines))
    heading = re.fullmatch(_HEADING, lines[at]) if at < len(lines) else None
    if heading is None or not (heading[3] or "").strip(" \t"):
        return None, (*problems, "heading is not `### D-<digits> title`")
    fields = _fields(lines[at + 1 :], problems)
    for label in _LABELS:
        if not fields.get(label, "").strip():
            if label not in _DEFAULTS:
                problems.append(f"no {label} field" if label not in fields else f"{label} is empty")
            fields[label] = _DEFAULTS.get(label, "")
    if fields["Status"] and fields["Status"] not in STATUSES:
        problems.append(f"unknown status {fields['Status']!r}")
    decision = DecisionText(heading[1], heading[3], heading[2], *(fields[key] for key in _LABELS))
    return decision, tuple(problems)


def _fields(lines: list[str], problems: list[str]) -> dict[str, str]:
    """Read the lines under a heading, up to the next rule."""
    fields: dict[str, list[str]] = {}
    label: str | None = None
    for at, line in enumerate(lines):
        match = re.fullmatch(r"- \*\*([^*:]+):\*\* ?(.*)", line)
        if match:
            label = match[1]
            if label in fields or label not in _LABELS:
                problems.append(f"{label} stands twice" if label in fields else f"unknown {label}")
                label = ""
                continue
            fields[label] = [match[2]]
        elif line.strip() == "---":
            if any(rest.strip(" -") for rest in lines[at + 1 :]):
                problems.append("text after the rule that ends the entry")
            break
        elif line.strip() and label is None:
            problems.append("text before the first field")
            label = ""
        elif line.strip() and label:
            fields[label].append(line.strip())
    return {label: " ".join(parts) for label, parts in fields.items()}


def parse_decision_refs(text: str) -> tuple[list[ChatRef], list[str]]:
    """Read a ``Chat ref`` field into its references, and the parts that are not references.

    >>> parse_decision_refs("live.chat:~L11, live.chat L3")
    ([ChatRef(file='live.chat', line=11)], ['live.chat L3'])
    """
    refs: list[ChatRef] = []
    malformed: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        match = re.fullmatch(r"(.*[^\s:]):~L([1-9][0-9]{0,14})", part)
        if match:
            refs.append(ChatRef(match[1], int(match[2])))
        elif part not in ("", NONE_YET):
            malformed.append(part)
    return refs, malformed


def parse_decision_archive_name(name: str) -> tuple[str, str] | None:
    """Read an archive's name, with or without ``.md``, into its log's stem and the time it gives.

    The original's programs give it two forms:

    >>> parse_decision_archive_name("live-log-20260221-101500-archive.md")
    ('live-log', '20260221-101500')
    >>> parse_decision_archive_name("live-log-archive-20260221-101500.md")
    ('live-log', '20260221-101500')
    """
    if "-archive" not in name:
        return None
    match = re.fullmatch(rf"(?s)(.+)-(?:{_STAMP}-archive|archive-{_STAMP})(?:\.md)?", name)
    return (match[1], match[2] or match[3]) if match else None


def archived_decision_log(name: str) -> str:
    """The log that a file is an archive of, by its name; '' if it is not one."""
    split = parse_decision_archive_name(name)
    return "" if split is None else f"{split[0]}.md"


def is_decision_log(name: str, data: bytes) -> bool:
    r"""Whether a markdown file of the Scribe's folder is a decision log: by its title or a heading.

    ``log.md`` always is; an empty file is one by the name that the original gives it.

    >>> is_decision_log("notes.md", b"# Notes\n"), is_decision_log("notes.md", b"### D-17 Use it\n")
    (False, True)
    >>> is_decision_log("live-log.md", b""), is_decision_log("notes.md", b"\n# Decision Log\n")
    (True, True)
    """
    if name == "log.md" or (not data and name.endswith("-log.md")):
        return True
    titled = re.match(rb"# Decision Log[ \t]*\r?(?:\n|\Z)", data.lstrip(b"\xef\xbb\xbf \t\r\n"))
    return titled is not None or re.search(rb"(?m)^### D-[0-9]", data) is not None


def valid_decision_id(text: str) -> str | None:
    """Judge a decision's id: None, or the broken rule."""
    return None if re.fullmatch(_ID, text) else f"{text!r} is no decision id such as D-1707753600"


def decision_log_name_problem(name: str) -> str | None:
    """Judge the name of a log's file within the Scribe's folder: None, or the broken rule.

    That of a log elsewhere stands after the name of its folder: ``docs/decisions.md``.
    """
    folder, slash, own = name.rpartition("/")
    if not own.endswith(".md") or own == ".md":
        return f"{name!r} is no log's name: it ends in .md, such as live-log.md"
    if own.startswith(".") or (slash and added_place_problem(LOGS, folder, "..") is not None):
        return f"{name!r} is no log's name: no dot begins it, and no / is in it"
    return moments.text_line_problem(name, "the log's name", MAX_NAME)
