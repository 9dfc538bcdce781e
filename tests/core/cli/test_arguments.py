"""The short commands of ``tripod`` read their arguments without click, and just as click does."""

import os
from pathlib import Path
from typing import Any
from unittest import mock

import click
import pytest
from doors.inside import run
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tripod.cli import arguments as reader
from tripod.cli import bus, chat, scribe, worker
from tripod.cli.commands import FLAG, Param, Verb
from tripod.cli.tree import SETTINGS, _command
from tripod.output import DOORS

GROUPS = {"bus": bus, "chat": chat, "scribe": scribe, "worker": worker}
VERBS = {
    (group, verb.name): verb
    for group, module in GROUPS.items()
    for verb in module.COMMANDS[group].verbs
    if verb.page
}
TEXTS = (
    "",
    "-",
    "ann",
    "live",
    "high",
    "7",
    "-5",
    "1e3",
    "two words",
    "a=b",
    "a\nb",
    "é",
    "\udcff",
)
WILD = (*TEXTS, "--", "-h", "--help", "--no-such", "-C", "-Cx", "-C=x", "--json", "--json=1", "-pr")


def by_click(verb: Verb, words: list[str]) -> dict[str, Any] | None:
    """What click gives the command for its arguments; None where it refuses or prints a help."""
    group = click.Context(click.Group("tripod"), **SETTINGS)  # type: ignore[arg-type]
    command = _command(verb)
    try:
        with mock.patch("click.core.echo"), command.make_context("x", [*words], group) as found:
            return found.params
    except (click.UsageError, click.exceptions.Exit):
        return None


def plain(param: Param) -> st.SearchStrategy[list[str]]:
    """Spellings of an option with a value."""
    text = st.sampled_from((*TEXTS, "decided", "low", "D-7", "--", "--json"))
    name = st.sampled_from(param.names)
    if param.kind is FLAG:
        return name.map(lambda word: [word])
    apart = st.tuples(name, text).map(list)
    joined = st.tuples(name, text).map("=".join).map(lambda word: [word])
    return apart | joined


@st.composite
def calls(draw: st.DrawFn) -> tuple[Verb, list[str]]:
    """A command, and words that are often such as it takes."""
    verb = VERBS[draw(st.sampled_from(sorted(VERBS)))]
    parts = [st.sampled_from(TEXTS).map(lambda word: [word])] * 4
    parts += [st.sampled_from(WILD).map(lambda word: [word])]
    parts += [plain(param) for param in verb.params if param.names]
    needed = [param for param in verb.params if param.required or param.spelling.isupper()]
    first = [draw(plain(one)) if one.names else [draw(st.sampled_from(TEXTS))] for one in needed]
    more = draw(st.lists(st.one_of(parts), max_size=4))
    return verb, [word for part in draw(st.permutations([*first, *more])) for word in part]


@settings(max_examples=300)
@given(calls())
@example((VERBS["bus", "publish"], ["a", "b", "low", "--", "--file"]))
@example((VERBS["bus", "publish"], ["a", "--dedup-window", "--json", "b", "low"]))
@example((VERBS["bus", "check"], ["--handle="]))
@example((VERBS["scribe", "log"], ["-p", "ann", "T", "-rwhy"]))
@example((VERBS["scribe", "log"], ["-p=ann", "-r", "why", "T", "--status", "mitigated"]))
@example((VERBS["chat", "read"], ["live", "--last", "2", "--last=03"]))
def test_the_reader_accepts_just_what_click_accepts(call: tuple[Verb, list[str]]) -> None:
    verb, words = call
    got, want = reader.read_arguments(verb, words), by_click(verb, words)
    if got is not None:
        assert got == want
        assert {name: type(value) for name, value in got.items()} == {
            name: type(value) for name, value in (want or {}).items()
        }
    elif want is not None:  # only a spelling that is left to click on purpose
        assert any(word[:1] == "-" != word[1:2] and len(word) > 2 for word in words) or any(
            param.env for param in verb.params
        )


@pytest.mark.parametrize(
    "words",
    [
        ["bus", "publish", "ann", "done", "low", "--", "--text"],
        ["bus", "check", "--handle=ann", "--json"],
        ["chat", "send", "live", "--as", "ann", "hello"],
        ["chat", "read", "-C", "here", "live", "--last=10"],
        ["scribe", "log", "T", "-p", "ann", "-p", "ben", "--rationale=why", "--ref", "last"],
    ],
    ids=" ".join,
)
def test_what_is_called_most_is_read_without_click(words: list[str]) -> None:
    call = reader.read_tripod_call(words)
    assert call is not None
    assert call.verb is VERBS[words[0], words[1]]
    assert call.values == by_click(call.verb, words[2:])


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["bus"],
        ["bus", "--help"],
        ["bus", "pub"],
        ["bus", "check", "-h"],
        ["--read-only", "bus", "check"],
        ["verify", "."],
        ["nbs-scribe-log", "x"],
        ["worker", "session", "x"],
    ],
    ids=" ".join,
)
def test_all_else_is_left_to_click(words: list[str]) -> None:
    assert reader.read_tripod_call(words) is None


def test_a_shell_that_completes_a_word_gets_its_answer_from_click() -> None:
    with mock.patch.dict(os.environ, {reader.COMPLETE: "bash_complete"}):
        assert reader.read_tripod_call(["bus", "check"]) is None


def test_every_group_with_codes_of_its_own_is_read(  # else its calls would all cost click
) -> None:
    assert {name for name in DOORS if name and not name.startswith("nbs-")} == set(GROUPS)


@pytest.mark.parametrize("words", [("bus", "check"), ("bus", "check", "-C.")], ids=" ".join)
def test_a_command_that_is_stopped_at_the_keyboard_ends_alike_either_way(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with mock.patch.object(VERBS["bus", "check"], "work", side_effect=KeyboardInterrupt):
        assert run(tmp_path, *words) == (130, b"", "\ntripod: stopped\n")
