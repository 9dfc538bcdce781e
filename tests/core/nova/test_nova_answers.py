"""Answers of personas: their forms, their fields, and numbers rounded to the unsafe side."""

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.ledger.entry import format_canonical
from tripod.ledger.errors import MalformedError
from tripod.projections.nova.answers import (
    MAX_ANSWER,
    NEEDS_EPISTEMIC,
    NovaAnswer,
    read_answer,
)
from tripod.projections.nova.rules import Epistemic, critique_class

ROLES = ("unpack", "expert", "synthesis", "critique", "revision", "final")
TOLD = {"know": 0.4, "uncertainty": 0.7}
STATED = Epistemic(Decimal("0.4"), Decimal("0.7"))
LEAST: dict[str, dict[str, Any]] = {
    "unpack": {"epistemic": TOLD},
    "expert": {"analysis": "it holds"},
    "synthesis": {"proposal": "so be it", "epistemic": TOLD},
    "critique": {"issues": []},
    "revision": {"proposal": "so be it"},
    "final": {"decision": "so be it", "epistemic": TOLD},
}
"""The least that a role has to answer."""
MAIN = {role: key for role, value in LEAST.items() for key in value if type(value[key]) is str}


def check_words(error: Exception) -> str:
    """They can be told, recorded and printed."""
    words = str(error)
    assert words.isprintable(), words
    return words


def at_depth(depth: int, act: Callable[[], object]) -> object:
    """What an act gives where so many calls stand in each other."""
    return act() if not depth else at_depth(depth - 1, act)


def refused(role: str, text: str) -> str:
    """Why an answer is refused."""
    with pytest.raises(MalformedError) as caught:
        read_answer(role, text)
    return check_words(caught.value)


def state_of(role: str, epistemic: object) -> NovaAnswer:
    return read_answer(role, json.dumps(LEAST[role] | {"epistemic": epistemic}))


@pytest.mark.parametrize("depth", [1, 63, 64, 950, 963, 966, 990, 100_000])
def test_what_is_nested_deep_is_refused_whoever_reads_it(depth: int) -> None:
    text = f'{{"analysis": "[[[", "extra": {"[" * depth}{"]" * depth}}}'

    def read() -> object:
        try:
            return read_answer("expert", text)
        except MalformedError as error:
            return check_words(error)

    found = [at_depth(calls, read) for calls in (0, 400, 700)]
    assert found[0] == found[1] == found[2]
    assert ("more than 64" in str(found[0])) == (depth > 63)


# Forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_the_least_of_a_role_is_read_in_its_forms(role: str) -> None:
    values = LEAST[role]
    as_json = read_answer(role, json.dumps(values))
    assert as_json.form == "json"
    main = MAIN.get(role, "")
    keys = {key: value for key, value in values.items() if key != main}
    front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items())
    as_front = read_answer(role, f"---\n{front}---\n{values.get(main, '')}\n")
    assert as_front.form == "front-matter"
    assert as_front[1:] == as_json[1:]
    assert as_json.problem == ""
    assert as_json.epistemic == (STATED if role in NEEDS_EPISTEMIC else None)
    if role != "critique":
        as_line = read_answer(role, f"{values.get(main, '')}\nEpistemic: know=0.4, uncertainty=0.7")
        assert (as_line.form, as_line.epistemic) == ("line", STATED)


LINE = "Epistemic: know=0.1, uncertainty=0.9"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        # Whole output that is JSON is JSON, whatever stands in its texts.
        (json.dumps({"proposal": f"---\n{LINE}", "epistemic": TOLD}), "json"),
        # Front matter wins over a line behind it.
        (f"---\nepistemic: {{know: 0.4, uncertainty: 0.7}}\n---\nYes.\n{LINE}\n", "front-matter"),
        ("---\nknow: 0.4\nuncertainty: 0.7\n---\nYes.\n", "front-matter"),
        ("\ufeff---\nknow: 0.4\nuncertainty: 0.7\n---\nYes.\n", "front-matter"),
        ("\n\n---\r\nknow: 0.4\r\nuncertainty: 0.7\r\n---\r\nYes.\r\n", "front-matter"),
        ("---\nconsensus: []\n---\nYes.\nEpistemic: know=0.4, uncertainty=0.7", "front-matter"),
        ("Yes.\n  epistemic:know = 0.4 ,uncertainty= 0.7  \nMore.", "line"),
        ("---\nno end\nEpistemic: know=0.4, uncertainty=0.7", "line"),
    ],
)
def test_the_first_form_that_fits_is_read(text: str, form: str) -> None:
    answer = read_answer("synthesis", text)
    assert (answer.form, answer.epistemic, answer.problem) == (form, STATED, "")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "text",
    ["", " \n", "I think so.", "{", "[]", "null", '"text"', "{}{}", '{"a": 1} and so on', "---",
     "---\n---", "know=0.4, uncertainty=0.7", "\x00\x01", "�" * 9, '{"epistemic": []}',
     '{"analysis": 1, "proposal": [], "decision": {}, "issues": "", "experts": 1}'],
)  # fmt: skip
def test_what_is_in_no_form_is_refused_or_says_that_nothing_is_known(role: str, text: str) -> None:
    try:
        answer = read_answer(role, text)
    except MalformedError as error:
        check_words(error)
        return
    assert answer.epistemic is None
    assert answer.problem or role not in NEEDS_EPISTEMIC
    assert role == "unpack"


@pytest.mark.parametrize("role", ROLES)
def test_a_fenced_block_that_is_the_whole_answer_is_read_as_what_it_holds(role: str) -> None:
    for indent in (None, 2):
        value = json.dumps(LEAST[role] | {"extra": "a ``` and\n```\n"}, indent=indent)
        plain = read_answer(role, value)
        for text in (f"```json\n{value}\n```", f" \n```  \n\n{value}\n\n ```\n\n"):
            assert read_answer(role, text) == plain
            assert read_answer(role, text.replace("\n", "\r\n")) == plain


@pytest.mark.parametrize(
    "text",
    ["So:\n```json\n{}\n```", "```json\n{}\n```\nSo.", "```json\n{}\n", "```json\n{}```",
     "```json {}\n```", "```\n{}\n```\n```\n{}\n```", "```yaml\n{}\n```",
     "````\n{}\n````", "~~~\n{}\n~~~",
     "```json\n[{}]\n```", "```\n---\nknow: 1\n---\n```", "```", "```\n```",
     "```json\n```json\n{}\n```\n```"],
)  # fmt: skip
def test_no_other_fence_is_passed_over(text: str) -> None:
    assert refused("expert", text.replace("{}", '{"analysis": "it holds"}'))


@pytest.mark.parametrize("role", sorted(MAIN))
def test_the_main_field_has_to_be_there(role: str) -> None:
    key = MAIN[role]
    rest = {k: v for k, v in LEAST[role].items() if k != key}
    assert refused(role, json.dumps(rest)).startswith(f"{key}: ")
    assert refused(role, "---\nknow: 0.4\nuncertainty: 0.7\n---\n \n").startswith(f"{key}: ")
    empty: Any
    for empty in ("", "  \n", 3, None, [], {}, False):
        assert refused(role, json.dumps(rest | {key: empty})).startswith(f"{key}: ")


# Numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "know", "uncertainty"),
    [
        (0.35, "0.35", "0.35"),
        ("0.35", "0.35", "0.35"),
        ("0.35000000000000000000000000000000000001", "0.35", "0.3501"),
        ("0.35001", "0.35", "0.3501"),
        (0.35001, "0.35", "0.3501"),
        ("0.34999999", "0.3499", "0.35"),
        ("0.99999", "0.9999", "1"),
        (1, "1", "1"),
        (0, "0", "0"),
        (1.0, "1", "1"),
        ("1.0000000", "1", "1"),
        ("1e-30", "0", "0.0001"),
        ("3.5e-1", "0.35", "0.35"),
        ("0e99", "0", "0"),
        (" 0.5 ", "0.5", "0.5"),
    ],
)
def test_numbers_are_rounded_to_the_unsafe_side(said: object, know: str, uncertainty: str) -> None:
    answer = state_of("synthesis", {"know": said, "uncertainty": said})
    assert answer.problem == ""
    assert answer.epistemic is not None
    assert [f"{one:f}" for one in answer.epistemic] == [know, uncertainty]


@given(st.decimals(0, 1, allow_nan=False, places=9))
def test_rounding_is_never_to_the_safe_side(said: Decimal) -> None:
    both = {"know": f"{said:f}", "uncertainty": f"{said:f}"}
    for text in (
        json.dumps(LEAST["synthesis"] | {"epistemic": both}),
        f"Yes.\nEpistemic: know={said:f}, uncertainty={said:f}",
        f"---\nknow: {said:f}\nuncertainty: {said:f}\n---\nYes.",
    ):  # fmt: skip
        told = read_answer("synthesis", text).epistemic
        assert told is not None
        for one in told:
            assert abs(Fraction(one) - Fraction(said)) < Fraction(1, 10_000)
            assert format(one, "f") == str(one.normalize() + 0)
        assert told.know <= said <= told.uncertainty


NO_NUMBERS: tuple[Any, ...] = (
    "nan", "NaN", "inf", "-0.1", "-0", "+0.5", "1.0001", "2", "1e400", "1e99", "0,5", ".5", "5.",
    "0x0", "1_0", "½", "\N{ARABIC-INDIC DIGIT ZERO}", "0.5%", "", " ", "know", "0" * 99,
    "0.00000000000000000000000000000000000000000000000001e50", True, False, None, [], {}, [0.5],
    -0.1, 1.5, 10**30, -0.0, float("nan"), float("inf"),
)  # fmt: skip


@pytest.mark.parametrize("said", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("key", ["know", "uncertainty"])
def test_what_is_no_number_from_0_to_1_is_none(key: str, said: object) -> None:
    for role in ROLES:
        answer = state_of(role, TOLD | {key: said})
        assert answer.epistemic is None
        assert "number from 0 to 1" in answer.problem
        assert answer.problem.isprintable()


def test_a_number_beyond_any_float_is_none() -> None:
    text = '{"proposal": "x", "epistemic": {"know": 1e400, "uncertainty": 0.1}}'
    assert read_answer("synthesis", text).epistemic is None
    assert read_answer("synthesis", text.replace("1e400", "NaN")).epistemic is None
    assert read_answer("synthesis", text.replace("1e400", "-Infinity")).epistemic is None
    digits = text.replace("1e400", "1" * 4_000)
    assert read_answer("synthesis", digits).epistemic is None
    assert refused("synthesis", text.replace("1e400", "1" * 5_000))


@pytest.mark.parametrize(
    "said",
    [
        {},
        [],
        "0.4",
        0.4,
        None,
        {"know": 0.4},
        {"uncertainty": 0.4},
        {"Know": 0.4, "Uncertainty": 1},
    ],
    ids=repr,
)
def test_half_of_a_state_is_none(said: object) -> None:
    """Nor does what stands beside it count in its place."""
    text = json.dumps(
        {"proposal": f"x\n{LINE}", "know": 0.9, "uncertainty": 0.1, "epistemic": said}
    )
    answer = read_answer("synthesis", text)
    assert answer.epistemic is None
    assert answer.problem


@pytest.mark.parametrize("role", ROLES)
def test_only_some_roles_have_to_state_it(role: str) -> None:
    values = {key: value for key, value in LEAST[role].items() if key != "epistemic"}
    answer = read_answer(role, json.dumps(values))
    assert answer.epistemic is None
    assert bool(answer.problem) is (role in NEEDS_EPISTEMIC)


@pytest.mark.parametrize("more", [LINE, "Epistemic: know=nan, uncertainty=0.1"])
def test_two_lines_that_differ_state_nothing(more: str) -> None:
    """One of them may be a quotation, and nothing says which."""
    text = f"Yes.\nEpistemic: know=0.9, uncertainty=0.1\n{more}\n"
    answer = read_answer("synthesis", text)
    assert answer.epistemic is None
    assert "differ" in answer.problem
    again = read_answer("synthesis", f"Yes.\n{LINE}\nOnce more:\n{LINE}\n")
    assert again.epistemic == Epistemic(Decimal("0.1"), Decimal("0.9"))


# Critiques -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{}", '{"verdict": "solid"}', '{"issue": []}', '{"issues": null}', '{"issues": "none"}',
        '{"issues": {}}', '{"issues": false}', '{"issues": ""}', '{"issues": 0}',
        '{"issues": [{}]}', '{"issues": [{"severity": "minor"}]}', '{"issues": ["minor: x"]}',
        '{"issues": [{"severity": "Critical", "text": "x"}]}',
        '{"issues": [{"severity": "fatal", "text": "x"}]}',
        '{"issues": [{"severity": "critical", "text": ""}]}',
        '{"issues": [[]]}', '{"issues": [null]}', '{"issues": [1]}',
        "---\nverdict: solid\n---\nNothing is wrong.", "---\nissues:\n---\nNothing is wrong.",
        "---\nissues: none\n---\n", "---\n---\nsolid", "Nothing is wrong.\n" + LINE,
    ],
)  # fmt: skip
def test_a_critique_without_a_list_of_issues_is_none(text: str) -> None:
    assert "issues" in refused("critique", text)


def test_a_critique_has_as_many_issues_as_can_be_told() -> None:
    one = {"severity": "minor", "text": "x", "more": "is passed over"}
    answer = read_answer("critique", json.dumps({"issues": 200 * [one], "verdict": "solid"}))
    assert critique_class(issue["severity"] for issue in answer.fields["issues"]) == "minor"
    assert "issues" in refused("critique", json.dumps({"issues": 201 * [one]}))


SEVERITIES = st.lists(st.sampled_from(["critical", "minor"]), max_size=9)


@given(SEVERITIES)
def test_no_issue_of_a_critique_is_lost_in_any_form(severities: list[str]) -> None:
    issues = [{"severity": one, "text": f"{n}: why"} for n, one in enumerate(severities)]
    text = json.dumps({"issues": issues})
    for form in (text, f"---\nissues: {json.dumps(issues)}\n---\nAnd so on."):
        assert read_answer("critique", form).fields.get("issues", []) == issues


# Bombs -----------------------------------------------------------------------------------------


def front(keys: str) -> str:
    return f"---\n{keys}\nepistemic: {{know: 0.9, uncertainty: 0.1}}\n---\nYes.\n"


@pytest.mark.parametrize(
    "keys",
    [
        "a: &a [x, x]\nb: *a", "a: !!python/object/apply:os.system [ls]", "a: !!binary aGk=",
        "a: !tag x", f"a: {'[' * 5_000}", f"a: {'[' * 20}{']' * 20}", f"a: {'{b: ' * 20}",
        "a: [" + "x, " * 20_000 + "x]", "a: 'x" + "x" * 70_000 + "'", "a: \x00",
        "a: b: c", "\ta: 1",
        "- a\n- b", "? a\n: b\n? [c]\n: d", "a: |\n  x\n b: 1", 'a: "\\ud800"', "%YAML 1.1",
        "a: 1\n... \nb: 2", "<<: {a: 1}\n<<: *x", "{{ 7 * 7 }}",
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_front_matter_that_is_no_plain_list_of_keys_is_refused(keys: str) -> None:
    refused("synthesis", front(keys))


@pytest.mark.parametrize(
    "text",
    [
        '{"proposal": "x", "epistemic": {"know": 0.1}, "epistemic": {"know": 0.9}}',
        '{"proposal": "x", "epistemic": {"know": 0.1, "uncertainty": 0.9, "uncertainty": 0.1}}',
        front("epistemic: {know: 0.1, uncertainty: 0.9}"),
        "---\nepistemic: {know: 0.1, uncertainty: 0.9, uncertainty: 0.1}\n---\nYes.",
        "---\nknow: 0.1\nuncertainty: 0.9\nuncertainty: 0.1\n---\nYes.",
    ],
)
def test_a_key_that_stands_twice_is_refused(text: str) -> None:
    """A person reads the first of them, a program the last."""
    words = refused("synthesis", text)
    assert "stands" in words


def test_issues_that_are_taken_back_below_are_refused() -> None:
    issues = json.dumps([{"severity": "critical", "text": "x"}])
    refused("critique", f'{{"issues": {issues}, "issues": []}}')
    refused("critique", f"---\nissues: {issues}\nissues: []\n---\n")


@pytest.mark.parametrize("deep", [200, 100_000])
def test_deep_json_is_refused_or_passed_over(deep: int) -> None:
    text = f'{{"proposal": "x", "more": {"[" * deep}{"]" * deep}}}'
    try:
        assert read_answer("synthesis", text).epistemic is None
    except MalformedError as error:
        check_words(error)


def test_an_answer_has_a_mebibyte_at_most() -> None:
    text = json.dumps({"analysis": "x" * (MAX_ANSWER - 16)})
    whole = text[:-2] + "x" * (MAX_ANSWER - len(text)) + text[-2:]
    assert len(whole) == MAX_ANSWER
    assert read_answer("expert", whole).fields["analysis"].startswith("xxx")
    assert str(MAX_ANSWER) in refused("expert", f"{whole} ")
    assert str(MAX_ANSWER) in refused("expert", "é" * (MAX_ANSWER // 2 + 1))
    assert str(MAX_ANSWER) in refused("expert", "\ud800" * MAX_ANSWER)


# Labels and texts that no entry could hold -----------------------------------------------------


HALF = "\ud800"
SNIPPETS = ("\\ud800", "\\u0000", "\\n", "x" * 9, "é", "\\ud83d\\ude00", "\\u202e")


@given(st.data())
def test_whatever_is_read_can_be_recorded(data: st.DataObject) -> None:
    """As canonical JSON in UTF-8: also half of a character, which JSON can spell."""
    role = data.draw(st.sampled_from(ROLES))
    word = st.lists(st.sampled_from(SNIPPETS), max_size=4).map("".join)
    value = st.one_of(
        word.map(lambda one: f'"{one}"'),
        st.sampled_from(["1", "null", "[]", "true", "1e400", "0.5", f'"{HALF}"', '["\\ud800"]']),
    )
    keys = ("persona", "turn", "risk_level", "findings", "epistemic", "confidence", "issues",
            "know", "analysis", "experts", "\\ud800", "proposal", "decision")  # fmt: skip
    pairs = data.draw(st.dictionaries(st.sampled_from(keys), value, max_size=6))
    least = {k: json.dumps(v) for k, v in LEAST[role].items()}
    text = "{" + ", ".join(f'"{k}": {v}' for k, v in (least | pairs).items()) + "}"
    try:
        answer = read_answer(role, text)
    except MalformedError as error:
        format_canonical({"problem": str(error)})
        return
    format_canonical({"fields": dict(answer.fields), "labels": list(answer.labels)})
    format_canonical({"problem": answer.problem})


@pytest.mark.parametrize(
    ("said", "labels"),
    [
        ({}, ("", "")),
        ({"persona": "dce", "turn": 3}, ("dce", "3")),
        ({"persona": " dce ", "turn": "3"}, ("dce", "3")),
        ({"persona": ["a"], "turn": {}}, ("['a']", "{}")),
        ({"persona": "x" * 500, "turn": 10**50}, ("x" * 100, str(10**50))),
    ],
)
def test_how_an_answer_names_itself_is_kept(said: dict[str, Any], labels: tuple[str, str]) -> None:
    assert read_answer("expert", json.dumps({"analysis": "x"} | said)).labels == labels


@given(st.sampled_from(ROLES), st.text(max_size=300))
def test_any_text_is_read_or_refused(role: str, text: str) -> None:
    for whole in (text, f"---\n{text}\n---\nYes.", f"{{{text}}}", f"{text}\n{LINE}"):
        try:
            answer = read_answer(role, whole)
        except MalformedError as error:
            check_words(error)
        else:
            assert answer.epistemic is not None or answer.problem or role not in NEEDS_EPISTEMIC
