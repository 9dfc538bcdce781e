"""The files of a Nova run, rendered from its fold: transcript, decision, status, events. Pure.

What personas wrote is quoted, line by line, so that no heading of theirs stands as one of ours; a
control character, or one that cannot be seen or turns the direction of writing, is written as its
code.

Source: spec nova N7, N8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal

from tripod.projections.nova.run import HumanChoice, NovaRun, NovaTurn, share_text

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def _code(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _quoted(text: str) -> str:
    lines = _UNSAFE.sub(_code, text.replace("\r\n", "\n")).split("\n")
    return "\n".join(f"> {line}" if line else ">" for line in lines)


def _line(text: str) -> str:
    return _UNSAFE.sub(_code, " ".join(text.split()))


def format_epistemic(turn: NovaTurn) -> str:
    """What a turn states of its own knowledge, in words; '' where it states nothing."""
    if turn.epistemic is None:
        return ""
    know, uncertainty = map(share_text, turn.epistemic)
    counts = " (these count, as it stated none that can be read)" if turn.is_missing else ""
    return f"know {know}, uncertainty {uncertainty}{counts}"


def render_transcript(run: NovaRun) -> str:
    """Every turn, whole, in the order of the record, and between them what was decided."""
    parts = [f"# Nova run {run.opening.run}", _quoted(run.opening.question)]
    cycle, cycles = 0, {one.number: one for one in run.cycles}
    human = list(run.human)
    for turn in run.turns:
        while human and human[0].seq < turn.seq:
            parts += _human(human.pop(0))
        if turn.cycle > cycle:
            cycle = turn.cycle
            parts.append(f"## Cycle {cycle}")
        parts.append(f"### Turn {turn.number}: {turn.persona}, {turn.role}")
        parts += filter(None, [format_epistemic(turn), _quoted(turn.text)])
        of = cycles.get(turn.cycle)
        if of is not None and turn.role == "synthesis" and of.verdict is not None:
            parts.append(f"Gate of cycle {of.number}: {of.verdict}.")
        if of is not None and turn.role == "critique" and of.flaws is not None:
            parts.append(f"Critique of cycle {of.number}: {of.flaws}.")
    for said in human:
        parts += _human(said)
    for one in run.cycles:
        parts += (f"In cycle {one.number} {who} gave no turn." for who in one.missed)
    if run.finalized is not None:
        parts.append(f"Outcome: {run.finalized['outcome']}.")
    return "\n\n".join(parts) + "\n"


def _human(said: HumanChoice) -> Iterator[str]:
    """What a person decided, with the note."""
    who = f", {_line(said.who)}," if said.who else ""
    yield f"A person{who} decided: {said.choice}."
    if said.note:
        yield _quoted(said.note)


def render_nova_decision(run: NovaRun, decision: str, last: int) -> str:
    """The section of a finished run; ``last`` is the entry that ended it."""
    end = run.finalized or {}
    opening = run.opening
    parts = [f"## {opening.run}", "Question:", _quoted(opening.question)]
    if decision:
        parts += ["Decision:", _quoted(decision)]
    facts = [f"outcome: {end.get('outcome')}"]
    if end.get("reason"):
        facts.append(f"reason: {_line(str(end['reason']))}")
    if end.get("confidence"):
        stated = end.get("stated_confidence")
        facts.append(
            f"confidence: {end['confidence']}"
            + (f" (stated: {stated})" if stated else "")
            + (", as the final turn does not say what it knows" if _lacks_state(run) else "")
        )
    facts += (f"a person decided: {said.choice} ({_line(said.who)})" for said in run.human)
    facts.append(f"turns: {len(run.turns)}, cycles: {run.number}, cost: {run.spent:f}")
    facts.append(f"entries: {opening.seq} to {last}")
    parts.append("\n".join(f"- {fact}" for fact in facts))
    parts += _sections(run)
    return "\n\n".join(parts) + "\n"


def _lacks_state(run: NovaRun) -> bool:
    return any(turn.role == "final" and turn.is_missing for turn in run.turns)


def work_effort_section(text: str, ended: str) -> bytes:
    """The section of a run in the decisions of a work effort, which others may write as well.

    It stands between two lines that name the entry which ended the run, by its id. A persona has no
    such line: what it wrote is quoted.
    """
    front = f"<!-- Nova run, entry {ended}: `tripod verify` holds it against the ledger -->"
    return f"{front}\n{text}<!-- end of entry {ended} -->\n".encode("utf-8", "replace")


def stand_of_section(data: bytes, section: bytes) -> Literal["there", "cut", "absent", "edited"]:
    r"""How a section stands in a file; ``cut``: the file ends within it.

    >>> section = work_effort_section("## tea\n", "42")
    >>> stand_of_section(b"Mine\n" + section, section), stand_of_section(section[:-9], section)
    ('there', 'cut')
    >>> stand_of_section(section.replace(b"tea", b"gin"), section), stand_of_section(b"", section)
    ('edited', 'absent')
    """
    lines = b"\n" + data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    lines += b"\n" if lines.endswith(section[:-1]) else b""  # an editor may take the last one
    begins = lines.count(b"\n" + section.partition(b"\n")[0])
    if not begins:
        return "absent"
    if begins == len(re.findall(rb"(?<=\n)" + re.escape(section), lines)):
        return "there"
    at = lines.rindex(b"\n" + section.partition(b"\n")[0]) + 1
    return "cut" if begins == 1 and section.startswith(lines[at:]) else "edited"


def _sections(run: NovaRun) -> Iterator[str]:
    """Trade-offs, dissent, the critique and its answer."""
    synthesis = run.syntheses[-1] if run.syntheses else None
    if synthesis is not None:
        yield from _listed("Trade-offs:", synthesis.fields.get("trade_offs", ()))
        yield from _listed("Dissent:", synthesis.fields.get("dissenters", ()))
    critique = run.last_critique
    if critique is not None:
        issues: Iterable[Mapping[str, str]] = critique.fields.get("issues", ())
        yield from _listed("Critique:", [f"{one['severity']}: {one['text']}" for one in issues])
    answers = [turn for turn in run.turns if turn.role == "revision"]
    if answers:
        yield "Answer to the critique:"
        yield _quoted(str(answers[-1].fields.get("proposal", "")))


def _listed(title: str, texts: Iterable[str]) -> Iterator[str]:
    found = "\n".join(f"> - {_line(text)}" for text in texts)
    if found:
        yield title
        yield found


def nova_status(run: NovaRun) -> dict[str, Any]:
    """The state of a run as JSON."""
    gates = [
        {
            "cycle": one.number,
            "gate": one.verdict,
            "converged": one.converged,
            "critique": one.flaws,
        }
        | ({} if one.synthesis is None else _epistemic_value(one.synthesis))
        for one in run.cycles
    ]
    end = run.finalized or {}
    return {
        "run": run.opening.run,
        "question": run.opening.question,
        "state": run.state,
        "ended": run.finalized is not None,
        "outcome": end.get("outcome"),
        "cycle": run.number,
        "cycles": gates,
        "experts": list(run.selected),
        "turns": len(run.turns),
        "cost": f"{run.spent:f}",
        "decision": str(run.turns[-1].fields.get("decision", "")) if "decision" in end else None,
        "confidence": end.get("confidence"),
        "stated_confidence": end.get("stated_confidence"),
        "changes": nova_changes(run),
    }


def nova_turns(run: NovaRun) -> list[dict[str, Any]]:
    """The recorded turns of a run as JSON, each whole."""
    return [
        {
            "turn": turn.number,
            "seq": turn.seq,
            "cycle": turn.cycle,
            "role": turn.role,
            "persona": turn.persona,
            "spawn": turn.spawn,
            "text": turn.text,
            "fields": dict(turn.fields),
        }
        | _epistemic_value(turn)
        for turn in run.turns
    ]


def _epistemic_value(turn: NovaTurn) -> dict[str, str]:
    if turn.epistemic is None:
        return {}
    return dict(zip(("know", "uncertainty"), map(share_text, turn.epistemic), strict=True))


def nova_changes(run: NovaRun) -> dict[str, str] | None:
    """What the final turn knows more, and is less uncertain of, than the first (spec: nova N9)."""
    first = next((turn for turn in run.turns if turn.role == "unpack"), None)
    last = run.turns[-1] if run.turns and run.turns[-1].role == "final" else None
    if first is None or last is None or first.epistemic is None or last.epistemic is None:
        return None
    know = last.epistemic.know - first.epistemic.know
    uncertainty = last.epistemic.uncertainty - first.epistemic.uncertainty
    return {"know": _signed(know), "uncertainty": _signed(uncertainty)}


def _signed(change: Decimal) -> str:
    return f"{change:+.2f}" if change == round(change, 2) else f"{change:+f}"


def nova_event(seq: int, kind: str, body: Mapping[str, Any]) -> str:
    """A line of ``events.ndjson``: texts of people and personas stand elsewhere, and not here."""
    left_out = {"content", "parsed", "question", "personas", "note", "problem", "mislabelled"}
    left_out |= {"v", "run"}
    if kind == "nova.finalized":
        # Texts there; the decision of a gate or a critique, and why a person decides, are words.
        left_out |= {"decision", "reason"}
    value = {"seq": seq, "kind": kind} | {k: v for k, v in body.items() if k not in left_out}
    return json.dumps(value, ensure_ascii=True, sort_keys=True)


def nova_json(value: object) -> str:
    """JSON as the files have it; what cannot be seen or turns a line stands as its code."""
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
    return _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n"
