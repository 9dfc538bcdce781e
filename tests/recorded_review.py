"""A run of Pythia put into a ledger entry by entry, with whatever is to be wrong about it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import drafts

from tripod.agents.spec import SpawnSpec, described_spec
from tripod.chat.writer import say_in
from tripod.ledger.kinds.team import team_evidence_kept
from tripod.projections.decisions.tables import render_decision_piece
from tripod.projections.pythia.format import parse_checkpoint_payload
from tripod.team.act import Act, draft_event_for_act
from tripod.team.team import Team

__all__ = ["RUN", "Asked", "answer", "asked_for", "posted", "review", "run_alone"]

RUN = "c0ffee00" * 4
"""The name of the run."""

HIDDEN = ("..", "chat", "events", "ledger.db", "record", "scribe", "spool", "workers")
IN_A_NAMESPACE = ("/usr/bin/bwrap", "--unshare-all", "--", "oracle")


class Asked(NamedTuple):
    """A checkpoint event: its entry, its file's name, the ids of the decisions that it asks for.

    ``seqs`` are the entries of all decisions up to it, ``log`` their text.
    """

    event: int
    name: str
    seqs: tuple[int, ...]
    ids: tuple[str, ...]
    log: str


def asked_for(team: Team) -> Asked:
    """The newest checkpoint event, and the decisions before it."""
    sql = "SELECT seq, name FROM events WHERE type = 'pythia-checkpoint' ORDER BY seq DESC"
    event, name = team.store.db.execute(sql).fetchone()
    sql = "SELECT seq, id FROM pieces WHERE id IS NOT NULL AND seq < ? ORDER BY seq"
    rows = team.store.db.execute(sql, (event,)).fetchall()
    parts = [render_decision_piece(team.source, team.source.body(seq)) for seq, _ in rows]
    seqs, ids = zip(*rows, strict=True)
    payload = team.source.body(event)["payload"]["text"]
    _, first, last = parse_checkpoint_payload(payload) or ("", ids[0], ids[-1])
    asked = ids[ids.index(first) : ids.index(last) + 1]
    return Asked(event, name, seqs, asked, b"".join(parts).decode())


def answer(asked: Asked, risk: str = "One reads while another writes.") -> str:
    """An assessment as the template has it."""
    first, last = asked.ids[0], asked.ids[-1]
    return (
        "## Pythia Checkpoint — 2026-11-21T21:30:00Z\n\n"
        f"Decisions reviewed: {first} through {last} ({len(asked.ids)} decisions)\n\n"
        f"### Hidden Assumptions\n\nThat {first} is cheap.\n\n"
        f"### Second-Order Risks\n\n{risk}\n\n"
        f"### Missing Validation\n\nNobody measured {last}.\n\n"
        "### Six-Month Regret Scenario\n\nIt is slow, and nobody knows why.\n\n"
        "### Confidence\n\noverall: medium\nA measurement would change this."
    )


def review(root: str | Path, **wrong: Any) -> Asked:
    """Have the newest checkpoint event reviewed; ``wrong`` is what differs from a sound review.

    ``prompt``, ``extra`` (put behind the prompt), ``sources``, ``level`` (None: no entry says one),
    ``hidden``, ``argv``, ``stdout``, ``stderr``, ``text`` (of the assessment; None: none posted),
    ``files`` (given beside the prompt), ``transcript``, ``order`` (of what is ordered), ``subject``
    (what it is about), ``ended`` (False: no entry says that it did), ``session`` (that it names).
    """
    with Team(str(root)) as team, team.act() as act:
        asked = asked_for(team)
        prompt = wrong.get("prompt", f"Review this log.\n\n{asked.log}") + wrong.get("extra", "")
        run_alone(act, asked, prompt, wrong)
        text = wrong.get("text", answer(asked))
        if text is not None:
            posted(act, asked, text, spawn=RUN)
    return asked


def run_alone(act: Act, asked: Asked, prompt: str, wrong: dict[str, Any]) -> None:
    """The run alone."""
    argv: Sequence[str] = wrong.get("argv", IN_A_NAMESPACE)
    order = {"env": (), **wrong.get("order", {})}
    spec = SpawnSpec(argv=tuple(argv), stdin=prompt.encode(), **order)
    level = wrong.get("level", "namespace")
    if level is not None:
        hidden = wrong.get("hidden", HIDDEN if level == "namespace" else ())
        problem = None if level == "namespace" else "bwrap is not installed"
        act.append([drafts.pythia_isolated(RUN, level, hidden, problem)])
    requested = drafts.agent_requested(
        spawn=RUN,
        role="pythia",
        subject=wrong.get("subject", str(asked.event)),
        attempt=1,
        spec=described_spec(spec),
        actor="alex",
    )
    delivered = drafts.delivered(RUN, "prompt", prompt.encode(), wrong.get("sources", asked.seqs))
    files = [drafts.delivered(RUN, "file", data, ()) for data in wrong.get("files", ())]
    act.append(files)
    act.append([requested, delivered, drafts.agent_started(RUN, 7, 7, "0" * 64)])
    stdout = wrong.get("stdout", f"{wrong.get('text') or answer(asked)}\n".encode())
    ended = drafts.agent_ended(
        spawn=RUN,
        status="ok",
        wall_ms=1,
        stdout=stdout,
        stderr=wrong.get("stderr", b""),
        session=wrong.get("session"),
    )
    if wrong.get("ended", True):
        act.append([ended])
    if "transcript" in wrong:
        path = f"workers/pythia-{RUN[:12]}-1.log"
        Path(act.disk.full(path)).write_bytes(wrong["transcript"])
        mtime = Path(act.disk.full(path)).stat().st_mtime_ns // 1000
        act.append([team_evidence_kept(path, wrong["transcript"], mtime, None)])


def posted(act: Act, asked: Asked, text: str, spawn: str | None) -> None:
    """An assessment, and what goes with it."""
    message = say_in(act, "live", "pythia", text)
    assessed = drafts.pythia_assessed(
        event=asked.event,
        spawn=spawn,
        first=asked.ids[0],
        last=asked.ids[-1],
        decisions=len(asked.ids),
        confidence="medium",
        cited=[asked.ids[0], asked.ids[-1]],
        text=text,
        message=message.seq,
        actor="pythia",
    )
    told = draft_event_for_act(act, "pythia", "assessment-posted", "normal", "It is there.")
    act.append([assessed, told, drafts.acked(asked.name, "pythia")])
