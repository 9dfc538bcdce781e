"""Words of the drop-in commands: nothing is ignored, and a text is never taken for an option."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.cli.commands import NbsProgram, NumberParam, command_verb
from tripod.cli.nbs import NbsCall, Words, nbs_grammar, take_nbs_words_apart
from tripod.errors import BadArgumentError

USAGE = "DIR [TEXT] [--window=N] [--name=NAME] [--quick]"
VERB = command_verb("act\n    --window N  How long.", lambda _: None, {"N": NumberParam(0, 10)})
PROGRAM = NbsProgram("nbs-try", (VERB,), USAGE)


def take(*words: str) -> Words:
    return take_nbs_words_apart(words, USAGE, nbs_grammar(USAGE))


def window(*words: str) -> object:
    return NbsCall(PROGRAM, VERB, USAGE, take(*words), nbs_grammar(USAGE)).window


@pytest.mark.parametrize(
    ("usage", "texts", "least", "options", "flags"),
    [
        ("", [], 0, [], []),
        ("DIR [EVENT] --by=HANDLE [--processed]", ["dir", "event"], 1, ["by"], ["processed"]),
        (
            "FILE TEXT | --file=PATH (- is stdin) [--human]",
            ["file", "text"],
            1,
            ["file"],
            ["human"],
        ),
        ("[--a=N | --b-c=T] NAME", ["name"], 1, ["a", "b-c"], []),
    ],
)
def test_a_usage_line_is_the_grammar(
    usage: str, texts: list[str], least: int, options: list[str], flags: list[str]
) -> None:
    assert nbs_grammar(usage) == (texts, least, options, flags)


@pytest.mark.parametrize(
    ("words", "texts", "options", "flags"),
    [
        (("a",), ["a"], {}, set()),
        (("a", "b", "--window=5"), ["a", "b"], {"window": "5"}, set()),
        (("--window=5", "a", "--quick", "b"), ["a", "b"], {"window": "5"}, {"quick"}),
        (("a", "--window="), ["a"], {"window": ""}, set()),
        (("a", "--window=5", "--window=5"), ["a"], {"window": "5"}, set()),
        (("a", "--window=x=y\nz"), ["a"], {"window": "x=y\nz"}, set()),
        (("a", "--name=\udcff"), ["a"], {"name": "\udcff"}, set()),
        (("a", "-- a note"), ["a", "-- a note"], {}, set()),
        (("a", "--- rule"), ["a", "--- rule"], {}, set()),
        (("a", "-1"), ["a", "-1"], {}, set()),
        (("a", "--", "--window=5"), ["a", "--window=5"], {}, set()),
        (("--", "--", "a"), ["--", "a"], {}, set()),
        (("", ""), ["", ""], {}, set()),
    ],
)
def test_words_are_taken_apart(
    words: tuple[str, ...], texts: list[str], options: dict[str, str], flags: set[str]
) -> None:
    assert take(*words) == Words(texts, options, frozenset(flags))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "too few arguments"),
        (("a", "b", "c"), "'c' is one too many"),
        (
            ("a", "--windw=5"),
            "no option --windw; the options are --window=..., --name=..., --quick",
        ),
        (("a", "--help"), "no option --help"),
        (("a", "--window"), "--window takes a value"),
        (("a", "--window", "5"), "--window takes a value"),
        (("a", "--quick=1"), "--quick takes no value"),
        (("a", "--window=5", "--window=6"), "--window is given twice"),
        (("a", "\udcff"), "is not UTF-8"),
    ],
)
def test_what_is_not_understood_is_refused(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(BadArgumentError) as caught:
        take(*words)
    assert says in str(caught.value)
    assert USAGE in str(caught.value)


def test_where_there_are_no_options_that_is_said() -> None:
    with pytest.raises(BadArgumentError, match="no option --all; there are none"):
        take_nbs_words_apart(["--all"], USAGE, nbs_grammar("[DIR]"))


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e3", "9" * 20, "0x1", " 1", "11"])
def test_a_number_is_whole_and_within_its_bounds(text: str) -> None:
    with pytest.raises(BadArgumentError, match=r"--window=.*: no whole number from 0 to 10"):
        window("a", f"--window={text}")


def test_a_number_that_is_not_given_is_none() -> None:
    assert window("a") is None
    assert window("a", "--window=010") == 10


@given(st.lists(st.text(max_size=8), min_size=1, max_size=2))
def test_behind_the_mark_every_text_comes_through(texts: list[str]) -> None:
    assert take("--", *texts).texts == texts
