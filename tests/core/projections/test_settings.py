"""The reader of YAML that people write: its limits, its lines, and that it guesses nothing."""

import re
from dataclasses import dataclass, field
from typing import Annotated

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tripod.ledger.errors import MalformedError
from tripod.projections import settings
from tripod.projections.settings import (
    Settings,
    read_setting_entries,
    read_settings,
    setting_of,
    whole_setting,
)
from tripod.verify.anchors.policy import Rules, parse


@dataclass(frozen=True)
class Hours(Settings):
    opens: Annotated[int, whole_setting(0, 24)] = 9


@dataclass(frozen=True)
class Shop(Settings):
    front_doors: Annotated[int, whole_setting(1)]
    sells: tuple[str, ...] = ()
    kind: Annotated[str, setting_of(("cafe", "bakery"))] = "cafe"
    hours: Hours = field(default_factory=Hours)


def test_a_file_becomes_a_value() -> None:
    data = b"# a shop\nfront-doors: 2\nsells:\n  - tea\n  - no\nhours: {opens: 8}\n"
    assert read_settings(Shop, data) == Shop(2, ("tea", "no"), "cafe", Hours(8))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("front-doors: 0", "line 1: front-doors: the value is not a whole number from 1 up"),
        ("front-doors: 010", "line 1: front-doors: the value is not a whole number from 1 up"),
        ("front-doors: 1:30", "line 1: front-doors: the value is not a whole number from 1 up"),
        ("front-doors: true", "line 1: front-doors: the value is not a whole number from 1 up"),
        ("sells: [tea]", "front-doors: the key is missing"),
        ("front-doors: 1\nsells:\n- a\n- {b: c}", "line 4: sells: the value is not text; put it"),
        ("front-doors: 1\nkind: caffe", "line 2: kind: the value is not cafe or bakery (did you"),
        ("front-doors: 1\nhours:\n  open: 1", "line 3: unknown keys: open (did you mean opens?)"),
        ("front_doors: 1", "line 1: unknown keys: front_doors (did you mean front-doors?)"),
        ("front-doors: 1\nfront-doors: 1", "line 2: front-doors stands above already"),
        ("front-doors: 1\nhours: {opens: 1, opens: 1}", "line 2: opens stands above already"),
        ("front-doors: 1\n? [a]\n: b", "line 2: a key is not text"),
        ("front-doors: 1\n\x1b[1m: x", "line 2: '\\x1b[1m: x' is not of the form `key: value`: "),
        ('front-doors: 1\n"\\e[1m": x', "line 2: unknown keys: '\\x1b[1m'; there are"),
        ("front-doors", "line 1: 'front-doors' is not of the form `key: value`"),
        ("\n- a", "line 2: '- a' is not of the form `key: value`"),
        ("front-doors: 1\nsells: 'a\n\n", 'line 2: "sells: \'a" is not of the form'),
        ("front-doors: 1\nsells: [a,\n\n", "line 2: 'sells: [a,' is not of the form"),
        ("a: 1\n---\nb: 2", "line 2: '---' is not of the form `key: value`: but found another"),
    ],
)
def test_a_problem_has_its_line_and_its_key(text: str, problem: str) -> None:
    with pytest.raises(MalformedError) as refused:
        read_settings(Shop, text.encode())
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("a: b\nc: *.d", 2, "a text that begins with * stands in quotes"),
        ("a:\n\tb: c", 2, "indent with blanks"),
        ("a: @b", 1, "a text that begins with it stands in quotes"),
    ],
)
def test_what_is_no_yaml_for_a_known_reason_says_what_to_write(
    text: str, line: int, hint: str
) -> None:
    with pytest.raises(MalformedError, match=rf"^line {line}: .*; {re.escape(hint)}$"):
        read_settings(Shop, text.encode())


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOMB, "line 1: 'a: &a [x, x]' is not of the form `key: value`: anchors and aliases are"),
        ("a: 1\nb: *a", "line 2: 'b: *a' is not of the form `key: value`: anchors and aliases"),
        ("a: !!python/name:os.system x", "tags are not read"),
        ("a: !x {}", "tags are not read"),
        ("a: " + "[" * 9, "more than 8 levels"),
        ("a: " + "[" * 60_000, "more than 8 levels"),
        ("- " * 30_000, "more than 8 levels"),
        ("? " * 30_000, "more than 8 levels"),
        ("a: [" + ",".join("b" * 10_000) + "]", "10000 values"),
        ("a: " + "b" * 65_536, "it has 65539 bytes, more than 65536"),
        ('a: "\\uD800"', "half of a character"),
    ],
)
def test_what_could_grow_or_act_is_refused(text: str, problem: str) -> None:
    with pytest.raises(MalformedError) as refused:
        read_setting_entries(text.encode())
    assert problem in str(refused.value)


@pytest.mark.parametrize("unit", ["[", "{", "[a,", "{a: "])
def test_no_bracket_behind_the_deepest_is_looked_at(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyYAML alone looks at the first 1,024 characters, and at all open brackets for each one."""
    looked: list[int] = []
    really = yaml.SafeLoader.stale_possible_simple_keys

    def counting(loader: yaml.SafeLoader) -> None:
        looked.append(len(loader.possible_simple_keys))
        really(loader)

    monkeypatch.setattr(yaml.SafeLoader, "stale_possible_simple_keys", counting)
    with pytest.raises(MalformedError, match="more than 8 levels"):
        read_setting_entries(unit.encode() * 1400)
    assert 0 < max(looked) <= 10
    assert len(looked) < 100


def test_the_deepest_and_the_widest_that_are_read() -> None:
    (deep,) = read_setting_entries(b"a: " + b"[" * 7 + b"]" * 7)
    assert deep == ("a", 1, [[[[[[[]]]]]]])
    (wide,) = read_setting_entries(b"a: [" + b"b," * 9_900 + b"]")
    assert len(wide[2]) == 9_900


def test_nothing_but_true_and_false_is_more_than_text() -> None:
    words = ["yes", "no", "null", "~", "1", "0x1f", "1e3", "2026-02-12", ".inf", "<<", "=", "True"]
    text = "".join(f"k{number}: {word}\n" for number, word in enumerate(words))
    assert [value for *_, value in read_setting_entries(text.encode())] == words
    values = read_setting_entries(b"a: true\nb: false\nc: 'true'\n")
    assert [value for *_, value in values] == [True, False, "true"]


# PyYAML writes the excluded line breaks in a way that it reads back as blanks.
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\x7f\x85\u2028\u2029"), max_size=8)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.dictionaries(PLAIN, inner), max_leaves=9
)


@given(st.dictionaries(PLAIN, VALUES, min_size=1, max_size=5))
def test_what_another_writes_is_read_back(value: dict[str, object]) -> None:
    text = yaml.safe_dump(value, allow_unicode=True, default_flow_style=None)
    try:
        entries = read_setting_entries(text.encode())
    except MalformedError as error:
        assert "levels" in str(error) or "is not of the form" in str(error)  # noqa: PT017
        return
    assert {key: value for key, _, value in entries} == value


@given(st.binary() | st.text("ab:- \n[]{}&*!'\"#?|>%@`\t").map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_setting_entries, parse):
        try:
            read(data)
        except MalformedError as error:
            assert str(error)  # noqa: PT017


# A policy --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "level: [WITNESSED, TIMESTAMPED]\nsigned: [a.b, c.d]\ntail-entries: 3",
        "level: WITNESSED, TIMESTAMPED\nsigned: a.b, c.d\ntail-entries: '3'",
        "level:\n  - WITNESSED\n  - 'TIMESTAMPED'\nsigned:\n- a.b # all\n- c.d\ntail-entries: 3",
    ],
)
def test_ways_to_write_the_lists_of_a_policy(text: str) -> None:
    wanted = Rules(level=("WITNESSED", "TIMESTAMPED"), signed=("a.b", "c.d"), tail_entries=3)
    assert parse(text.encode()) == wanted


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "level: PINED",
            "line 1: level: the value is not SELF, PINNED, PEERED, WITNESSED or TIMESTAMPED (did",
        ),
        ("level:\n- PINNED\n- PINED", "line 3: level: the value is not SELF"),
        ("exceptions: pass", "line 1: exceptions: the value is not cannot-tell"),
        ("level: []", "line 1: level: the value names nothing"),
        ("seals:", "line 1: seals: the value names nothing"),
        ("required: {a: b}", "line 1: required: the value is not a list of texts"),
        ("tail-entries: 1000000000000000", "line 1: tail-entries: the value is not a whole"),
        ("levle: PINNED", "line 1: unknown keys: levle (did you mean level?); there are level,"),
    ],
)
def test_a_policy_that_is_not_understood_is_refused(text: str, problem: str) -> None:
    with pytest.raises(MalformedError) as refused:
        parse(text.encode())
    assert str(refused.value).startswith(problem)


def test_declaring_settings_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    program = (
        "import sys, tripod.agents.profiles, tripod.verify.anchors.policy\n"
        "print(sorted({'difflib', 'pydantic', 'yaml'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n"
    assert settings.MAX_SIZE == 65_536
