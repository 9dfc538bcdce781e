"""What stands in a prompt beside the decisions, found without reading them all once more."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specimens import SAID, build

from tripod.projections.pythia.format import INSTRUCTIONS
from tripod.projections.text import RUN
from tripod.projections.text import words_of_text as words_of
from tripod.verify.evidence import OpenEvidence, collect
from tripod.verify.isolation.echo import DecisionLogPhrases, PhraseIndex, chat_texts_for_echo
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
