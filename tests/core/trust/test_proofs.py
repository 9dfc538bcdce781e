"""Proof files: they show what they say with the log's key alone, and nothing else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_export import files_of, key_of, rows_of, seal_note
from sealed import LOG, OTHER_LOG, list_nodes
from specimens import build, database

from tripod.errors import NotFoundError, RefusedError
from tripod.ledger.entry import entry_leaf_hash
from tripod.ledger.errors import MalformedError
from tripod.ledger.merkle import inclusion_proof
from tripod.ledger.tlog.note import parse_note
from tripod.ledger.tlog.proof import parse_proof
from tripod.ledger.tlog.receipt import CosignRequest, format_witness_request, parse_witness_request
from tripod.ledger.tlog.seal import read_seal
from tripod.trust.proof import prove_entry, prove_growth
from tripod.verify.export import is_proof, judge_proof

KEY = key_of("sample.example/1").verifier()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return database(build(str(tmp_path_factory.mktemp("sample"))))


def note(path: str, size: int | None = None) -> str:
    return files_of(path, size)["checkpoint"].decode()


def put(folder: Path, data: bytes) -> str:
    file = folder / "it.tlog-proof"
    file.write_bytes(data)
    return str(file)


def test_every_entry_is_proved_at_every_size(path: str) -> None:
    headers = [row[0] for row in rows_of(path)]
    nodes = list_nodes([entry_leaf_hash(header) for header in headers])
    for size in (1, 2, 33, len(headers)):
        for seq in range(size):
            proof = parse_proof(prove_entry(path, seq, note(path, size)))
            assert list(proof.hashes) == inclusion_proof(nodes, seq, size)
            assert proof.extra == headers[seq]


def test_a_proof_stands_for_itself(tmp_path: Path, path: str) -> None:
    file = put(tmp_path, prove_entry(path, 20, note(path), body=True))
    assert is_proof(file)
    report = judge_proof(file, [KEY])
    assert report.exit_code == 0
    assert report.outcomes[0].coverage["entry"] == "20"
    assert "body" in report.outcomes[0].coverage
    assert judge_proof(file, []).exit_code == 3
    assert judge_proof(file, [OTHER_LOG.verifier(), LOG.verifier()]).exit_code == 1


@given(data=st.data())
def test_no_byte_of_it_can_change(
    tmp_path_factory: pytest.TempPathFactory, path: str, data: st.DataObject
) -> None:
    proof = prove_entry(path, 7, note(path), body=True)
    at = data.draw(st.integers(0, len(proof) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != proof[at]))
    changed = proof[:at] + bytes([other]) + proof[at + 1 :]
    file = put(tmp_path_factory.mktemp("x"), changed)
    # A seal may bear signatures of keys that nobody asks about: those are another's business.
    assert judge_proof(file, [KEY]).exit_code == 1


def test_growth_is_proved_against_the_older_seal(tmp_path: Path, path: str) -> None:
    old = read_seal(note(path, 20).encode())
    data = prove_growth(path, old, note(path))
    assert format_witness_request(parse_witness_request(data)) == data
    file = put(tmp_path, data)
    assert is_proof(file)
    assert judge_proof(file, [KEY], old).exit_code == 0
    assert judge_proof(file, [KEY]).exit_code == 3
    for other in (old._replace(size=19), old._replace(root=bytes(32)), old._replace(origin="x")):
        assert judge_proof(file, [KEY], other).exit_code == 1


def test_what_cannot_be_proved_is_refused(path: str) -> None:
    headers = [row[0] for row in rows_of(path)]
    with pytest.raises(NotFoundError, match="entry 20 is not under the newest seal, of 20"):
        prove_entry(path, 20, note(path, 20))
    for bad, says in (
        (seal_note("sample.example/1", [*headers[:9], b"x"]), "another root at 10 entries"),
        (seal_note("sample.example/1", [*headers, b"x"]), "the ledger holds"),
        (seal_note("other.example", headers), r"the seal is of 'other\.example'"),
    ):
        with pytest.raises(RefusedError, match=says):
            prove_entry(path, 2, bad)
        with pytest.raises(RefusedError, match=says):
            prove_growth(path, read_seal(bad.encode()), note(path))
    with pytest.raises(RefusedError, match="the older seal is of"):
        prove_growth(path, read_seal(note(path).encode()), note(path, 3))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "old 1\n",
        "old 01\n\n",
        "old 1\nAAAA\n\n",
        "old 1\nx\n\n",
        "new 1\n\n",
        "old 1\n" * 70 + "\n",
    ],
)
def test_what_is_no_growth_is_refused(path: str, text: str) -> None:
    with pytest.raises(MalformedError):
        parse_witness_request(text.encode() + note(path).encode())
    with pytest.raises(MalformedError, match="64 hashes"):
        format_witness_request(CosignRequest(1, (bytes(32),) * 64, parse_note(note(path).encode())))
