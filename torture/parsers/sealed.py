"""Parsers of what is signed, and of the entries of a ledger."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import sha256

import orjson

from torture.parsers.parser import GOLDEN, Parser, as_list, as_text, as_unicode, golden, words_of
from tripod.ledger import actors, codec, entry
from tripod.ledger.errors import LedgerDamagedError, MalformedError, NotVerifiedError
from tripod.ledger.kinds import merged
from tripod.ledger.merkle import node_hash
from tripod.ledger.sqlite.reader import read_stored_tree
from tripod.ledger.tlog import note, policy, proof, receipt, seal, tiles, trailer
from tripod.verify.anchors import heads
from tripod.verify.checks import canonical_bytes, kinds_known

MALFORMED = (MalformedError,)


def _same(value: object, what: object, data: bytes) -> object:
    """The value, if it is what the one true input means: else it was taken falsely."""
    if value != what:
        raise AssertionError(f"false clean: {data[:300]!r} is taken as {value!r:.200}")
    return value


def _refuse(data: bytes, *, took: bool) -> None:
    """Say that something was taken falsely, where it was."""
    if took:
        raise AssertionError(f"false clean: {data[:300]!r} is taken")


# Seals, proofs and what is signed ---------------------------------------------------------------

KEY = note.SigningKey("example.com/ledger", bytes(range(32)))
NEXT = note.SigningKey("example.com/ledger", bytes(range(1, 33)))
WITNESS = note.SigningKey("witness.example/w1", bytes(range(32, 64)), note.COSIGNATURE)
LEAVES = [entry.entry_leaf_hash(b"e%d" % number) for number in range(2)]
SEAL = seal.Seal(KEY.name, 2, node_hash(*LEAVES))
"""Of two entries: the proof that one is in it is the hash of the other."""
SIGNED = note.Note(
    seal.format_seal(SEAL), (seal.sign_seal(SEAL, KEY), seal.cosign_seal(SEAL, WITNESS, 1763757000))
)
POLICY = policy.Policy(
    (policy.TrustedLog(KEY.verifier()),),
    (policy.Witness("w1", WITNESS.verifier()),),
    (policy.Group("seen", 1, ("w1",)),),
    "seen",
)
ENROLLED = actors.sign_actor_change(KEY.name, 1, KEY.verifier(), [KEY]).encode()
_SIGNS = (
    *words_of(
        "\u2014 ·\n\n·+·=·AA·old 1\n·index 1\n·extra AA==\n·c2sp.org/tlog-proof@v1\n·Tripod-Head: "
    ),
    *(name.encode() for name in (KEY.name, WITNESS.name)),
    *(note.format_base64(data).encode() for data in (SEAL.root, bytes(32), bytes(68))),
)


def notes() -> Iterator[Parser]:
    """Signed notes, keys, and what witnesses are asked and answer."""
    one = partial(Parser, errors=MALFORMED, words=_SIGNS)
    whole, plain = note.format_note(SIGNED), seal.format_seal(SEAL).encode()
    keys = (KEY.verifier().format().encode(), WITNESS.verifier().format().encode())
    yield one(
        "note",
        note.parse_note,
        (note.parse_note, note.parse_note_text),
        (whole,),
        write=note.format_note,
        is_strict=True,
    )
    yield one("note's seal", seal.read_seal, (seal.read_seal,), (whole,))
    yield one(
        "seal",
        as_unicode(partial(seal.parse_seal, extensions=True)),
        (seal.parse_seal, note.parse_decimal, note.parse_base64),
        (plain,),
        write=lambda value: seal.format_seal(value).encode(),
    )
    yield one("head", heads.parse_head, (heads.parse_head,), (whole, plain))
    yield one(
        "vkey",
        as_text(note.VerifierKey.parse),
        (note.VerifierKey.parse,),
        keys,
        write=lambda key: bytes(key.format(), "utf-8"),
        is_strict=True,
    )
    yield one(
        "skey",
        as_text(note.SigningKey.parse),
        (note.SigningKey.parse,),
        (KEY.format().encode(), WITNESS.format().encode()),
        write=lambda key: bytes(key.format(), "utf-8"),
        is_strict=True,
    )
    lines = b"log %b https://x.example/\nwitness w1 %b\ngroup g all w1\nquorum g\n" % keys
    yield one(
        "policy of a reader",
        policy.parse_policy,
        (policy.parse_policy,),
        (lines,),
        words=(*lines.split(), b"none", b"any", b"#", b"2", b"\nquorum none"),
    )
    request = receipt.CosignRequest(1, (LEAVES[1],), SIGNED)
    yield one(
        "request to a witness",
        receipt.parse_witness_request,
        (receipt.parse_witness_request, note.parse_lines_and_note),
        (receipt.format_witness_request(request),),
        write=receipt.format_witness_request,
        is_strict=True,
    )
    yield one(
        "answer of a witness",
        receipt.parse_witness_signatures,
        (receipt.parse_witness_signatures,),
        (whole.split(b"\n\n", 1)[1],),
        write=receipt.format_witness_signatures,
        is_strict=True,
    )
    named = b"Mend it\n\nTripod-Head: ann-0123456789abcdef 7 %b %b=\n" % (
        note.format_base64(SEAL.root).encode(),
        b"A" * 91,
    )
    yield one("trailers", as_list(trailer.parse_trailers), (trailer.parse_trailers,), (named,))


def proofs() -> Iterator[Parser]:
    """Verifiers: what they take must mean what was signed."""
    one = partial(Parser, errors=(MalformedError, NotVerifiedError), words=_SIGNS)
    whole = note.format_note(SIGNED)
    proofs = tuple(
        proof.format_proof(proof.Proof(1, (LEAVES[0],), SIGNED, extra)) for extra in (None, b"x")
    )

    def proved(data: bytes) -> object:
        found = proof.parse_proof(data)
        opened = proof.verify_proof(found, LEAVES[1], POLICY)
        return _same((opened.seal, found.seq), (SEAL, 1), data)

    pem, reply = golden("receipt/root.pem", "receipt/reply.tsr")
    roots = receipt.parse_timestamp_authorities(pem)
    stamp = receipt.open_timestamp(reply, SIGNED.text, roots)
    yield one(
        "proof",
        proof.parse_proof,
        (proof.parse_proof,),
        proofs,
        write=proof.format_proof,
        is_strict=True,
    )
    yield one("proof of an entry", proved, (proof.verify_proof,), proofs)
    yield one(
        "seal of a log",
        lambda data: _same(
            policy.open_under_policy(POLICY, note.parse_note(data)).seal, SEAL, data
        ),
        (policy.open_under_policy, note.parse_note),
        (whole,),
    )
    yield one(
        "receipt",
        lambda data: _same(receipt.open_timestamp(data, SIGNED.text, roots), stamp, data),
        (receipt.open_timestamp,),
        (reply,),
    )
    yield one(
        "authorities",
        receipt.parse_timestamp_authorities,
        (receipt.parse_timestamp_authorities,),
        (pem,),
        words=(b"-----BEGIN CERTIFICATE-----\n", b"-----END CERTIFICATE-----"),
    )


def signed() -> Iterator[Parser]:
    """Statements of keys: what is taken must be what the keys signed."""
    one = partial(Parser, errors=(MalformedError, NotVerifiedError), words=_SIGNS)
    key = KEY.verifier()
    change = actors.actor_change_text(KEY.name, 1, key)
    rotation = seal.sign_rotation(KEY.name, KEY, NEXT).encode()
    fork = seal.sign_fork(KEY, 2, SEAL.root, "other.example").encode()
    listed = [b"one", b"stated"]
    records = tuple(actors.sign_actor_statements(some, KEY) for some in (listed[1:], listed))

    def says(data: bytes, what: str) -> bool:
        try:
            return note.parse_note(data).text == what
        except MalformedError:
            return False

    def enrolled(data: bytes) -> object:
        return _same(actors.read_actor_request(data.decode(), KEY.name), (1, key), data)

    def put_in_force(data: bytes) -> None:
        problem = actors.actor_change_problem(data.decode(), change, [key], [])
        _refuse(data, took=problem is None and not says(data, change))

    def rotated(data: bytes) -> None:
        problem = seal.rotation_problem(data.decode(), KEY.name, key, NEXT.verifier())
        _refuse(data, took=problem is None and not says(data, note.parse_note(rotation).text))

    def forked(data: bytes) -> None:
        text = seal.seal_fork_text(KEY.name, 2, SEAL.root, "other.example")
        by = seal.fork_signers(data.decode(), text, [key])
        _refuse(data, took=bool(by) and not says(data, text))

    def acted(data: bytes) -> object:
        found = actors.parse_actor_record(data)
        took = actors.actor_record_problem(found, b"stated", key) is None
        _refuse(data, took=took and data not in records)
        return found

    undecoded = (MalformedError, NotVerifiedError, UnicodeDecodeError)
    yield one("enrolment", enrolled, (actors.read_actor_request,), (ENROLLED,), errors=undecoded)
    yield one(
        "change of an actor",
        put_in_force,
        (actors.actor_change_problem,),
        (ENROLLED,),
        errors=undecoded,
    )
    yield one("rotation", rotated, (seal.rotation_problem,), (rotation,), errors=undecoded)
    yield one("fork", forked, (seal.fork_signers,), (fork,), errors=undecoded)
    yield one(
        "signature record",
        acted,
        (actors.parse_actor_record, actors.actor_record_problem),
        records,
        write=actors.format_actor_record,
        is_strict=True,
    )


# Entries, and the files of a record -------------------------------------------------------------


def _lines_of(path: str) -> tuple[bytes, ...]:
    return tuple((GOLDEN / path).read_bytes().splitlines())


def _bundled() -> list[bytes]:
    return tiles.parse_bundle((GOLDEN / "signed/tile/entries/000.p/32").read_bytes(), 32)


def _small(data: bytes) -> object:
    """What a short text of JSON says, as ``orjson`` has it."""
    value = codec.read_small(data)
    try:
        return _same(value, orjson.loads(data), data)
    except orjson.JSONDecodeError as error:
        raise AssertionError(f"no JSON, and taken as {value!r:.200}") from error


def entries() -> Iterator[Parser]:
    """Headers and bodies, and the bundles of an export."""
    headers = _bundled()
    lines = _lines_of("signed/bodies/000.p/32.jsonl")
    bodies = [tiles.parse_line(line, seq).body for seq, line in enumerate(lines)]
    kinds = {body: entry.parse_header(header) for header, body in zip(headers, bodies, strict=True)}
    some = tuple(body for body in kinds if body is not None)
    one = partial(Parser, errors=MALFORMED, words=words_of('"v":1·null·1.0·-0·{}·[]·"'))
    held: dict[str, bytes] = {}

    def peer_body(seq: int) -> bytes:
        """The body that keeps an entry of a peer here; its blobs are held."""
        said = tiles.parse_line(lines[seq], seq)
        parts = (headers[seq], said.auth, said.salt, said.body)
        draft = merged.peer_entry_draft(
            merged.KeptEntry("golden.example/signed", seq, *parts), "bus"
        )
        held.update((sha256(blob).hexdigest(), blob) for blob in draft.blobs)
        return entry.format_canonical(draft.body)

    def kept(data: bytes) -> object:
        value = entry.parse_canonical(data)
        if not isinstance(value, dict):
            return None
        return merged.read_kept(value, lambda digest: held.get(digest.hex()))

    def body(data: bytes) -> object:
        """What every body goes through: its spelling, then the model of some kind."""
        if canonical_bytes.body_problem(data) is not None:
            return None
        value = entry.parse_canonical(data)
        if not isinstance(value, dict):
            return value
        blobs = len(list(entry.entry_blobs(value)))
        head = kinds[some[len(data) % len(some)]]
        return blobs, kinds_known.kind_problem(head.kind, head.stream, value)

    yield one(
        "small JSON",
        _small,
        (codec.read_small,),
        some,
        errors=(ValueError, RecursionError),
    )
    yield one(
        "canonical JSON",
        entry.parse_canonical,
        (entry.parse_canonical,),
        some,
        write=entry.format_canonical,
        is_strict=True,
    )
    yield one(
        "header",
        entry.parse_header,
        (entry.parse_header, entry.parse_entry_time),
        tuple(headers),
        write=entry.format_header,
        is_strict=True,
    )
    yield one(
        "header as evidence",
        canonical_bytes.read_canonical_header,
        (canonical_bytes.read_canonical_header,),
        tuple(headers),
        errors=(),
    )
    yield one(
        "body", body, (canonical_bytes.body_problem, kinds_known.kind_problem), some, errors=()
    )
    yield one(
        "entry of a peer",
        kept,
        (merged.read_kept,),
        tuple(map(peer_body, (3, 24, 20))),
        errors=(MalformedError, KeyError, TypeError, ValueError),
    )
    yield one(
        "bundle",
        lambda data: tiles.parse_bundle(data, 2),
        (tiles.parse_bundle,),
        (b"".join(len(h).to_bytes(2, "big") + h for h in headers[:2]),),
    )
    yield one(
        "line of bodies",
        lambda data: tiles.parse_line(data, 3),
        (tiles.parse_line,),
        lines[3:4],
        write=lambda value: tiles.format_line(3, value),
        is_strict=True,
    )
    yield one(
        "bundle of bodies",
        lambda data: tiles.parse_body_bundle(data, 0, 3),
        (tiles.parse_body_bundle,),
        (b"\n".join((*lines[:3], b"")),),
    )
    paths = words_of(
        "tile/0/x001/x234/067·tile/entries/000.p/7·tile/1/000.p/17·bodies/000.p/32.jsonl"
    )
    yield one(
        "path of a tile",
        as_text(tiles.parse_tile_path),
        (tiles.parse_tile_path,),
        paths[:3],
        write=lambda tile: tiles.format_tile_path(tile).encode(),
        is_strict=True,
    )
    yield one(
        "path in an export",
        as_text(tiles.parse_tile_or_bundle_path),
        (tiles.parse_tile_or_bundle_path,),
        paths,
    )
    yield one(
        "row of the head",
        lambda data: read_stored_tree(len(data) // 32, data[1:]),
        (read_stored_tree,),
        (b"x" + bytes(32), b""),
        errors=(LedgerDamagedError,),
    )
