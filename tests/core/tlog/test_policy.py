"""Policies: read line by line, written plainly, and the quorum counted."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed import LOG, OTHER_LOG, POLICY, WITNESSES, format_policy, leaves_of, seal_of, sealed

from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.tlog.note import COSIGNATURE, ED25519, Note, VerifierKey
from tripod.ledger.tlog.policy import (
    MAX_POLICY,
    Group,
    Policy,
    TrustedLog,
    Witness,
    open_under_policy,
    parse_policy,
)

VKEY = LOG.verifier().format()
W1, W2, W3 = (key.verifier().format() for key in WITNESSES)
W1_RENAMED = WITNESSES[0].verifier()._replace(name="other").format()
THREE = f"witness w1 {W1}\nwitness w2 {W2}\nwitness w3 {W3}\n"
SEAL = seal_of(leaves_of([b"a", b"b"]))
WORDS = st.text("abcXYZ019.:/-_+", min_size=1, max_size=8)


def parsed(text: str) -> Policy:
    return parse_policy(text.encode())


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy that can be written."""
    keys = draw(st.lists(st.binary(min_size=32, max_size=32), unique=True, max_size=6))
    urls = st.none() | WORDS.map(lambda word: f"https://{word}")
    logs = [
        TrustedLog(VerifierKey(f"log{n}", ED25519, key), draw(urls)) for n, key in enumerate(keys)
    ]
    names = draw(
        st.lists(WORDS.filter(lambda word: word != "none"), unique=True, min_size=12, max_size=12)
    )
    witnesses = [
        Witness(names.pop(), VerifierKey(f"w{n}", COSIGNATURE, key), draw(urls))
        for n, key in enumerate(keys)
    ]
    known = [witness.name for witness in witnesses]
    groups = []
    for _ in range(draw(st.integers(0, 5)) if known else 0):
        members = draw(st.lists(st.sampled_from(known), unique=True, min_size=1))
        threshold = draw(st.integers(1, len(members)))
        groups.append(Group(names.pop(), threshold, tuple(members)))
        known.append(groups[-1].name)
    quorum = draw(st.none() | st.sampled_from(known)) if known else None
    return Policy(tuple(logs), tuple(witnesses), tuple(groups), quorum)


# One plain spelling, and those that people write -------------------------------------------------


@given(policies())
def test_a_policy_comes_back(policy: Policy) -> None:
    data = format_policy(policy)
    assert parse_policy(data) == policy
    assert format_policy(parse_policy(data)) == data


def test_the_plain_spelling() -> None:
    assert format_policy(POLICY).decode() == (
        f"log {VKEY}\nwitness w1 {W1}\ngroup seen all w1\nquorum seen\n"
    )
    policy = parsed(
        f"{THREE}group g any w1 w2\ngroup h 2 w1 w2 w3\nlog {VKEY} https://a/b\nquorum h\n"
    )
    assert format_policy(policy).decode() == (
        f"log {VKEY} https://a/b\n{THREE}group g any w1 w2\ngroup h 2 w1 w2 w3\nquorum h\n"
    )
    assert format_policy(Policy(())).decode() == "quorum none\n"


def test_what_people_write_is_read() -> None:
    text = f"""
# whom we trust

  log\t{VKEY}   https://example.com/#not-a-comment
"""
    with pytest.raises(MalformedError, match=r"line 4: .*a comment takes a line of its own"):
        parsed(text + "quorum none\n")
    text = text.replace("#not-a-comment", "log/") + f"\twitness w1 {W1}  \n   # so be it\nquorum w1"
    assert parsed(text) == Policy(
        (TrustedLog(LOG.verifier(), "https://example.com/log/"),),
        (Witness("w1", WITNESSES[0].verifier()),),
        (),
        "w1",
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no quorum line"),
        (f"log {VKEY}\n", "no quorum line"),
        ("quorum none\nquorum none\n", "line 2: a second quorum; the first is none"),
        (f"witness w {W1}\nquorum w\nquorum none\n", "line 3: a second quorum; the first is w"),
        ("quorum w\n", "line 1: 'w' is no witness and no group of a line above"),
        (f"quorum w\nwitness w {W1}\n", "line 1: 'w' is no witness and no group"),
        ("Quorum none\n", "line 1: 'Quorum' is not one of log, witness, group, quorum"),
        ("quorum\n", "line 1: not of the form `quorum <name>|none`"),
        ("quorum a b\n", "line 1: not of the form `quorum <name>|none`"),
        ("log\n", "line 1: not of the form `log <vkey> "),
        (f"log {VKEY} https://a b\n", "line 1: not of the form `log <vkey> "),
        (f"log {VKEY} a\n", "line 1: 'a' is no http or https URL"),
        ("log a\n", "line 1: public key: not of the form"),
        (f"log {W1}\n", "line 1: the key of a log is of type 0x01, not 0x04"),
        (f"\n\nlog {VKEY}\nlog {VKEY} https://a\n", "line 4: the log example.com/ledger is named"),
        (f"witness w {VKEY}\n", "line 1: the key of a witness is of type 0x04, not 0x01"),
        (f"witness {W1}\n", "line 1: not of the form `witness <name> <vkey>"),
        (f"witness w {W1}\nwitness w {W2}\n", "line 2: 'w' is named above"),
        (f"witness w {W1}\nwitness v {W1}\n", "line 2: the key of v is that of w above"),
        (f"witness w {W1}\nwitness v {W1_RENAMED}\n", "line 2: the key of v is that of w above"),
        (f"witness none {W1}\n", "line 1: none is what a quorum may say"),
        (f"witness w\u00a0v {W1}\n", "line 1: .* holds white space other than"),
        (f"witness w#v {W1}\n", "line 1: 'w#v': a comment takes a line"),
        (f"{THREE}group g any w1 w4\n", "line 4: 'w4' is no witness and no group"),
        (f"{THREE}group g any g w1\n", "line 4: 'g' is no witness and no group"),
        (f"{THREE}group g any h\ngroup h any g\n", "line 4: 'h' is no witness and no group"),
        (f"{THREE}group g any w1 w1\n", "line 4: 'w1' is a member twice"),
        (f"{THREE}group w1 any w2\n", "line 4: 'w1' is named above"),
        (f"{THREE}group none any w2\n", "line 4: none is what a quorum may say"),
        (f"{THREE}group g any\n", "line 4: not of the form `group <name> all"),
        (f"{THREE}group g 0 w1\n", "line 4: '0' is not all, any, or a number from 1 to 1"),
        (f"{THREE}group g 3 w1 w2\n", "line 4: '3' is not all, any, or a number from 1 to 2"),
        (f"{THREE}group g 02 w1 w2\n", "line 4: '02' is not all"),
        (f"{THREE}group g +1 w1 w2\n", r"line 4: '\+1' is not all"),
        (f"{THREE}group g most w1 w2\n", "line 4: 'most' is not all"),
        ("quorum none\r\n", r"line 1 holds '\\r'"),
        ("quorum none\n\0", r"line 2 holds '\\x00'"),
        ("#" * (MAX_POLICY + 1), "at most 262144 are read"),
    ],
)
def test_each_mistake_is_named_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(MalformedError, match=f"policy: .*{complaint}"):
        parsed(text)


# The quorum ------------------------------------------------------------------------------------


def every_subset() -> list[tuple[str, ...]]:
    names = ("w1", "w2", "w3")
    return [subset for count in range(4) for subset in combinations(names, count)]


@pytest.mark.parametrize("subset", every_subset(), ids="-".join)
def test_quorums_are_counted(subset: tuple[str, ...]) -> None:
    def reached(groups: str, quorum: str) -> bool:
        return parsed(f"{THREE}{groups}quorum {quorum}\n").reached(subset)

    assert reached("", "none")
    assert reached("", "w2") == ("w2" in subset)
    assert reached("group g any w1 w2 w3\n", "g") == (len(subset) >= 1)
    assert reached("group g 2 w1 w2 w3\n", "g") == (len(subset) >= 2)
    assert reached("group g all w1 w2 w3\n", "g") == (len(subset) == 3)
    nested = "group g any w2 w3\ngroup h all w1 g\n"
    assert reached(nested, "h") == ("w1" in subset and bool({"w2", "w3"} & set(subset)))
    # A group within is one member, however many of its own were reached.
    assert reached("group g any w1 w2\ngroup h 2 g w3\n", "h") == (
        "w3" in subset and len(subset) >= 2
    )


def test_names_that_the_policy_does_not_know_count_for_nothing() -> None:
    policy = parsed(f"{THREE}group g any w1 w2\ngroup h any g\nquorum h\n")
    assert not policy.reached({"g", "h", "w4", "w3"})
    assert not policy.reached(())
    assert policy.reached(["w1", "w1"])


# Opening under a policy -------------------------------------------------------------------------


def test_a_seal_is_believed_when_log_and_quorum_signed() -> None:
    opened = open_under_policy(POLICY, sealed(SEAL))
    assert opened.seal == SEAL
    assert [key.name for key in opened.signers] == [LOG.name]
    assert [cosignature.key.name for cosignature in opened.cosignatures] == [WITNESSES[0].name]


def test_too_few_witnesses_are_not_enough() -> None:
    policy = parsed(f"log {VKEY}\n{THREE}group g 2 w1 w2 w3\nquorum g\n")
    assert open_under_policy(policy, sealed(SEAL, 2)).seal == SEAL
    with pytest.raises(NotVerifiedError, match="cosigned by w1, which is not the quorum g"):
        open_under_policy(policy, sealed(SEAL, 1))
    with pytest.raises(NotVerifiedError, match="by no known witness, which is not the quorum g"):
        open_under_policy(policy, sealed(SEAL, 0))
    twice = sealed(SEAL, 1)
    with pytest.raises(NotVerifiedError, match="cosigned by w1, which"):
        open_under_policy(policy, Note(twice.text, (*twice.signatures, twice.signatures[-1])))


def test_a_bad_cosignature_refuses_though_the_quorum_is_reached_without() -> None:
    policy = parsed(f"log {VKEY}\n{THREE}group g any w1 w2 w3\nquorum g\n")
    note = sealed(SEAL, 2)
    bad = note.signatures[-1]._replace(data=bytes(72))
    with pytest.raises(NotVerifiedError, match="refuse all of this note"):
        open_under_policy(policy, Note(note.text, (*note.signatures[:-1], bad)))


def test_a_policy_without_the_log_believes_nothing() -> None:
    with pytest.raises(NotVerifiedError, match="signed by no key that is trusted"):
        open_under_policy(Policy(()), sealed(SEAL))
    with pytest.raises(NotVerifiedError, match="signed by no key that is trusted"):
        open_under_policy(Policy((TrustedLog(OTHER_LOG.verifier()),)), sealed(SEAL))
