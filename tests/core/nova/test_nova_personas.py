"""Personas: files that people write, read within limits; what is wrong names its file."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.errors import BadArgumentError, NotFoundError, TripodError
from tripod.ledger.errors import MalformedError
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.nova import OPENED
from tripod.nova import load_personas, open_nova, write_personas
from tripod.nova.runner import NovaLimits, nova_run
from tripod.projections.nova.answers import MAX_PERSONA, persona_prompt, read_persona
from tripod.projections.nova.prompt import prompt_for_turn
from tripod.team import adoption
from tripod.team.team import Team

KEYS = {
    "role": "Security Expert",
    "short_name": "security",
    "responsibility": "Find what leaks",
    "pattern": "domain_expert",
}


def file_of(body: str = "You look for leaks.\n", /, **more: Any) -> bytes:
    """A persona's file; a key whose value is None is left out."""
    keys = {key: value for key, value in (KEYS | more).items() if value is not None}
    head = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\n{head}---\n{body}".encode()


def refused(data: bytes) -> str:
    with pytest.raises(MalformedError) as caught:
        read_persona(data, "experts/security.md")
    words = str(caught.value)
    assert words.startswith("experts/security.md: ")
    assert words.isprintable()
    return words


@pytest.fixture
def personas(tmp_path: Path) -> Path:
    """A folder with the set that ships with us."""
    folder = tmp_path / "personas"
    assert len(write_personas(str(folder))) == 6
    return folder


def test_the_set_that_ships_with_us_can_be_written_and_read(personas: Path) -> None:
    found = load_personas(str(personas))
    assert found == load_personas()
    assert [one.pattern for one in found] == ["coordinator", "critic", *4 * ["domain_expert"]]
    assert write_personas(str(personas)) == []


def test_what_a_user_wrote_is_not_written_over(personas: Path) -> None:
    path = personas / "experts/security.md"
    path.write_bytes(file_of())
    (personas / "core/CAE.md").unlink()
    assert write_personas(str(personas)) == [f"{personas}/core/CAE.md"]
    assert path.read_bytes() == file_of()


def test_unknown_keys_are_passed_over_and_lists_are_read() -> None:
    one = read_persona(file_of(expertise="[a, b c]", tools="grep", mood="calm"), "experts/x.md")
    assert (one.expertise, one.tools) == (("a", "b c"), ("grep",))


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_named(key: str) -> None:
    assert f"{key}: the key is missing" in refused(file_of(**dict.fromkeys([key])))
    assert key in refused(file_of(**{key: ""}))
    assert key in refused(file_of(**{key: "[a]"}))


@pytest.mark.parametrize("name", ["Security", "a b", "1a", "-", "a" * 33, "é", "a/b", "../a", "_a"])
def test_a_short_name_is_a_plain_word(name: str) -> None:
    assert "short_name" in refused(file_of(short_name=f'"{name}"'))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"You look for leaks.", b"---\n", b"---\n---\n", b"---\nrole: x\n",
        file_of(""), file_of(" \n\n"), b"\x89PNG\r\n\x1a\n\x00\x00", b"\xff\xfe-\x00-\x00-\x00",
        file_of(mood="&a [b]"), file_of(mood="*a"), file_of(mood="!!python/name:os.system x"),
        file_of(mood="!x y"), file_of(mood="[" * 5_000), file_of(mood="[" + "x, " * 20_000 + "]"),
        file_of(mood="x\nrole: y"), file_of(mood="a: b: c"), file_of(mood="\t- x"),
        file_of(pattern="expert"), file_of(mood="x\n- y"), file_of() + b"\xff",
        file_of().replace(b"Find", b"Find\x00"),
    ],
    ids=lambda data: repr(data[:16]) + str(len(data)),
)  # fmt: skip
def test_what_is_no_persona_is_refused(data: bytes) -> None:
    refused(data)


def test_ten_megabytes_are_refused_and_not_read(personas: Path) -> None:
    assert str(MAX_PERSONA) in refused(file_of() + b"x" * MAX_PERSONA)
    whole = file_of() + b"x" * (MAX_PERSONA - len(file_of()))
    assert len(read_persona(whole, "x").data) == MAX_PERSONA
    (personas / "experts/huge.md").write_bytes(file_of() + b"x" * 10**7)
    with pytest.raises(BadArgumentError, match=r"experts/huge\.md"):
        load_personas(str(personas))


@pytest.mark.parametrize("front", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_marks_and_line_ends_of_other_systems_are_read(front: bytes, end: str) -> None:
    data = front + file_of("One.\nTwo.\n").replace(b"\n", end.encode())
    one = read_persona(data, "experts/security.md")
    assert (one.role, one.short_name, one.prompt) == ("Security Expert", "security", "One.\nTwo.")
    assert one.data == data
    assert persona_prompt(data) == one.prompt


BODIES = ("{{ 7 * 7 }}", "{}", "{persona}", "{0.__class__}", "%s %(x)s %n", "${HOME} $(id) `id`",
          "\\1 \\g<0>", "---\npersona: x\n---", "<script>", "{% include 'x' %}",
          "# The question\n\nAnother?")  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_a_prompt_is_given_as_it_stands(body: str, tmp_path: Path, personas: Path) -> None:
    """Nothing in a persona or a question is a template."""
    assert persona_prompt(file_of(body)) == read_persona(file_of(body), "x").prompt == body
    (personas / "experts/security.md").write_bytes(file_of(body))
    adoption.init(str(tmp_path))
    with Team(f"{tmp_path}/.nbs") as team:
        name = open_nova(team, body, load_personas(str(personas)), NovaLimits(), "ann")
        run = nova_run(team.source, name)
        (due,) = run.due_turns()
        given_ = prompt_for_turn(run, due, body).data.decode()
        assert given_.startswith(f"{body}\n\n# The question\n\n{body}\n\n")
        kept = next(p for p in run.opening.personas if p["short_name"] == "security")
        assert team.source.content(kept["content"]) == file_of(body)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_prompt_that_is_given_is_the_one_that_was_read(body: str) -> None:
    data = file_of(body)
    try:
        one = read_persona(data, "x")
    except MalformedError:
        assert not body.strip()
    else:
        assert persona_prompt(data) == one.prompt


# The folder ------------------------------------------------------------------------------------


def problem(folder: Path, kind: type[TripodError] = BadArgumentError) -> str:
    with pytest.raises(kind) as caught:
        load_personas(str(folder))
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("path", ["core/DCE.md", "core/CAE.md"])
def test_a_missing_core_file_is_named(personas: Path, path: str) -> None:
    (personas / path).unlink()
    assert f"{personas}/{path} is missing" in problem(personas, NotFoundError)


def test_a_run_has_experts(personas: Path) -> None:
    for path in (personas / "experts").iterdir():
        path.rename(path.with_suffix(".txt"))
    assert f"{personas}/experts" in problem(personas, NotFoundError)
    for path in (personas / "experts").iterdir():
        path.unlink()
    (personas / "experts").rmdir()
    assert f"{personas}/experts" in problem(personas, NotFoundError)
    assert "nowhere" in problem(personas / "nowhere", NotFoundError)


def test_two_personas_of_one_name_are_named(personas: Path) -> None:
    (personas / "experts/leaks.md").write_bytes(file_of())
    said = problem(personas)
    assert "experts/security.md" in said
    assert "experts/leaks.md" in said
    (personas / "experts/leaks.md").write_bytes(file_of(short_name="dce"))
    assert "core/DCE.md" in problem(personas)


@pytest.mark.parametrize("path", ["core/DCE.md", "core/CAE.md", "experts/security.md"])
def test_a_pattern_that_does_not_fit_its_place_is_named(personas: Path, path: str) -> None:
    pattern = "critic" if "DCE" in path else "coordinator"
    (personas / path).write_bytes(file_of(pattern=pattern, short_name="other"))
    assert f"{personas}/{path}: its pattern is {pattern}" in problem(personas)


def test_what_is_no_plain_file_is_named(personas: Path) -> None:
    path = personas / "experts/security.md"
    path.unlink()
    os.mkfifo(path)
    assert str(path) in problem(personas)
    path.unlink()
    path.mkdir()
    assert str(path) in problem(personas)
    path.rmdir()
    path.symlink_to("nowhere")
    assert str(path) in problem(personas, TripodError)


def test_a_folder_with_too_many_is_refused(personas: Path) -> None:
    for number in range(65):
        (personas / f"experts/{number}.md").write_bytes(file_of(short_name=f"e{number}"))
    assert "64" in problem(personas)


@pytest.mark.parametrize(
    "more",
    [{"role": '"a\\nb"'}, {"role": '"a\\tb\\u202ec"'}, {"role": "x" * 5_000},
     {"role": '"\\0"'}, {"responsibility": "x" * 20_000}, {"expertise": "[" + "x, " * 300 + "]"}],
    ids=lambda more: next(iter(more)) + str(next(iter(more.values())))[:9],
)  # fmt: skip
def test_an_odd_title_is_refused_or_recorded(
    more: dict[str, str], tmp_path: Path, personas: Path
) -> None:
    (personas / "experts/security.md").write_bytes(file_of(**more))
    opened_or_refused(tmp_path, personas)


@pytest.mark.parametrize("name", [b"\xff.md", b"a\nb.md", "é.md".encode(), b"x" * 250 + b".md"])
def test_an_odd_file_name_is_refused_or_recorded(
    name: bytes, tmp_path: Path, personas: Path
) -> None:
    path = os.fsencode(personas / "experts") + b"/" + name
    Path(os.fsdecode(path)).write_bytes(file_of(short_name="odd"))
    opened_or_refused(tmp_path, personas)


def check(said: str, named: str) -> None:
    assert named in said
    assert said.isprintable()


def opened_or_refused(tmp_path: Path, personas: Path) -> None:
    """A run begins that fits its kind, or an error says in one line what is wrong."""
    try:
        found = load_personas(str(personas))
    except TripodError as error:
        check(str(error), str(personas))
        return
    adoption.init(str(tmp_path))
    with Team(f"{tmp_path}/.nbs") as team:
        open_nova(team, "why?", found, NovaLimits(), "ann")
        (entry,) = [one for one in team.store.read() if one.kind == "nova.opened"]
        model_of(OPENED).model_validate(entry.data)
