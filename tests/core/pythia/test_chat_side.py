"""What stands in a prompt beside the decisions, found without reading them all once more."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specimens import SAID, build

from tripod.ledger.words import RUN
from tripod.ledger.words import words_of_text as words_of
from tripod.projections.pythia.format import INSTRUCTIONS
from tripod.verify.evidence import OpenEvidence, collect
from tripod.verify.isolation import echo
from tripod.verify.isolation.echo import (
    DecisionLogPhrases,
    chat_texts_for_echo,
    hidden_echo_sources,
)
from tripod.verify.isolation.phrases import PhraseIndex
from tripod.verify.run import run

CHAT = [text for _, text in SAID]
PARTS = st.lists(st.integers(0, 20), max_size=14)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenEvidence]:
    root = build(str(tmp_path_factory.mktemp("sound")))
    with collect(root) as found:
        run(found, select=["drift"])
        yield found


def test_it_knows_decisions_from_other_entries(evidence: OpenEvidence) -> None:
    log = DecisionLogPhrases(evidence, [])
    rows = evidence.query("SELECT seq FROM pieces ORDER BY seq")
    assert all(seq in log for (seq,) in rows)
    assert 0 not in log


@settings(max_examples=300, deadline=None)
@given(chosen=PARTS)
def test_what_is_left_out_is_nothing_but_decisions(
    evidence: OpenEvidence, chosen: list[int]
) -> None:
    """Any text of decisions, lines of the chat and other words: the same is found in the rest."""
    log = DecisionLogPhrases(evidence, [INSTRUCTIONS])
    seqs = [seq for (seq,) in evidence.query("SELECT seq FROM pieces ORDER BY seq")]
    pieces = [log._pieces[seq] for seq in seqs]
    sorts = [*pieces, *CHAT, INSTRUCTIONS, "so it is\n", "\n\n"]
    text = "\n\n".join(sorts[number % len(sorts)] for number in chosen)
    known = log.known.before(seqs[-1] + 1)
    whole, rest = PhraseIndex(), PhraseIndex()
    whole.add(0, words_of(text), known)
    parts = list(log.between(text, seqs, seqs[-1] + 1))
    for part in parts:
        rest.add(0, words_of(part), known)
    lines = list(chat_texts_for_echo(evidence, codes=False))
    assert len(lines) > len(CHAT)
    for line in lines:
        assert set(whole.find(line.words)) == set(rest.find(line.words))
    quoted = [line for line in CHAT if line in text and len(words_of(line)) >= RUN]
    assert all(any(rest.find(words_of(line))) for line in quoted)


def test_a_log_alone_leaves_nothing(evidence: OpenEvidence) -> None:
    log = DecisionLogPhrases(evidence, [])
    seqs = [seq for (seq,) in evidence.query("SELECT seq FROM pieces ORDER BY seq")]
    text = "# Decision Log\n\n" + "\n\n---\n\n".join(log._pieces[seq] for seq in seqs)
    until = seqs[-1] + 1
    held = PhraseIndex()
    rows = [
        held.add(0, words_of(part), log.known.before(until))
        for part in log.between(text, seqs, until)
    ]
    assert max(rows) < RUN


def test_decisions_that_came_later_are_left_in(evidence: OpenEvidence) -> None:
    log = DecisionLogPhrases(evidence, [])
    seqs = [seq for (seq,) in evidence.query("SELECT seq FROM pieces ORDER BY seq")]
    text = log._pieces[seqs[0]] + "\n\n" + log._pieces[seqs[1]]
    (left,) = log.between(text, seqs, seqs[1])
    assert left.endswith(log._pieces[seqs[1]])


def test_the_search_ends_where_twenty_decisions_in_a_row_are_missing(
    evidence: OpenEvidence,
) -> None:
    log = DecisionLogPhrases(evidence, [])
    log._pieces = {seq: f"D-{seq:03}" + " so it was decided" * 300 for seq in range(60)}

    def left(there: list[int]) -> tuple[int, int]:
        text = "\n\n".join(log._pieces[seq] for seq in there)
        return sum(map(len, log.between(text, range(60), 60))), len(text)

    for there in (range(19, 60), range(0, 60, 15)):  # so many are looked for again after each
        some, whole = left(list(there))
        assert some < whole / 3
    some, whole = left(list(range(20, 60)))
    assert some == whole


def test_the_closure_of_the_sources_stops_at_a_decision(evidence: OpenEvidence) -> None:
    log = DecisionLogPhrases(evidence, [])
    events = [
        seq for (seq,) in evidence.query("SELECT seq FROM events WHERE type = ?", "decision-logged")
    ]
    assert any(echo._header(evidence, seq)[1] in log for seq in events)
    assert list(hidden_echo_sources(evidence, log, events, 10**6)) == []


def test_entries_that_follow_from_each_other_are_looked_at_once(
    evidence: OpenEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``sequence`` names them; only a forged ledger has any."""
    looks = iter(range(2))

    def header(_evidence: object, seq: int) -> tuple[str, int | None]:
        assert next(looks, None) is not None
        return "config.changed", 1 - seq

    monkeypatch.setattr(echo, "_header", header)
    log = DecisionLogPhrases(evidence, [])
    assert list(hidden_echo_sources(evidence, log, [0], 10**6)) == []
