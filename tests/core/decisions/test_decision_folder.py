"""Decisions are exported one file each, over nothing that a person wrote, and are read again."""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import begin, fetch, record
from doors.inside import Done, run
from git_repo import Git
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from specimens import unguarded
from story import BEGIN, Clock

from tripod.chat import writer as chat_send
from tripod.cli.adoption import logs_to_adopt
from tripod.decisions.reader import Decision, query
from tripod.decisions.writer import DecisionRequest, log
from tripod.errors import TripodError
from tripod.ledger.files import replace_file
from tripod.ledger.ids import format_at
from tripod.ledger.locator import database_of
from tripod.projections.decisions.format import DecisionText
from tripod.projections.decisions.madr_file import DecisionPage, format_decision_page
from tripod.team import adoption
from tripod.team.team import Team


def begun(path: Path, origin: str = "example.org/shop") -> Path:
    """A team with a chat in which one thing was said."""
    path.mkdir(exist_ok=True)
    adoption.init(str(path), project="shop", origin=origin, key=False)
    with Team(path) as team:
        chat_send.create(team, "live")
        chat_send.send(team, "live", "ann", "Let us open on Monday.")
    return path


def decide(where: Path, title: str, rationale: str = "Agreed.", **more: str) -> str:
    with Team(where) as team:
        return log(team, DecisionRequest(title, ("ann",), rationale, ("live#0",), **more)).id


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """A team with three decisions; the third takes the place of the first."""
    clock = Clock(BEGIN)
    with clock.running():
        begun(tmp_path / "shop")
        first = decide(tmp_path / "shop", "Open on Monday")
        clock.move(3600)
        decide(tmp_path / "shop", "Sell tea")
        decide(tmp_path / "shop", "Open on Tuesday", supersedes=first)
        yield tmp_path / "shop"


def exported(where: Path, folder: str = "adr", *words: str, code: int = 0) -> Done:
    done = run(where, "decisions", "export", "--madr", folder, *words)
    assert done.code == code, done
    return done


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def all_decisions(where: Path) -> list[Decision]:
    with Team(where) as team:
        return list(query(team))


NAMES = ["0001-open-on-monday.md", "0002-sell-tea.md", "0003-open-on-tuesday.md"]


def test_one_file_a_decision_linked_both_ways(shop: Path) -> None:
    value = json.loads(exported(shop, "docs/adr", "--json").out)
    assert (value["decisions"], value["written"], value["removed"]) == (3, 3, 0)
    found = files(shop / "docs/adr")
    assert sorted(found) == NAMES
    first, second, third = (found[name].decode() for name in NAMES)
    day = format_at(BEGIN * 1_000_000)[:10]
    assert f'\nstatus: "superseded by ADR-0003"\ndate: {day}\n' in first
    assert "\n- Superseded by [ADR-0003: Open on Tuesday](0003-open-on-tuesday.md)\n" in first
    assert "\n- Supersedes [ADR-0001: Open on Monday](0001-open-on-monday.md)\n" in third
    assert '\nstatus: "accepted"\n' in second
    assert re.search(r"\n- live#0: entry 3 of example.org/shop, leaf hash [0-9a-f]{64}\n", second)
    for target in re.findall(r"\]\(([^)]*)\)", first + third):
        assert target in found
    assert run(shop, "verify").code == 0


def test_a_second_run_touches_nothing_and_numbers_stay(shop: Path) -> None:
    exported(shop)
    before = {path: path.stat().st_mtime_ns for path in (shop / "adr").iterdir()}
    data = files(shop / "adr")
    assert b"0 files written, 0 removed, 3 as they were" in exported(shop).out
    assert {path: path.stat().st_mtime_ns for path in (shop / "adr").iterdir()} == before
    decide(shop, "Sell tea", "Again.", supersedes=all_decisions(shop)[1].id)
    assert b"2 files written, 0 removed, 2 as they were" in exported(shop).out
    after = files(shop / "adr")
    assert sorted(after) == [*NAMES, "0004-sell-tea.md"]
    assert [name for name in NAMES if after[name] != data[name]] == [NAMES[1]]
    (shop / "adr" / NAMES[0]).unlink()
    assert b"1 file written" in exported(shop).out
    assert files(shop / "adr") == after
    shutil.rmtree(shop / "adr")
    exported(shop)
    assert files(shop / "adr") == after


@pytest.mark.parametrize("how", ["edited", "foreign", "folder", "link", "other case"])
def test_what_no_export_wrote_is_kept_and_named(shop: Path, how: str) -> None:
    exported(shop)
    path = shop / "adr" / NAMES[1]
    if how == "edited":
        path.write_bytes(path.read_bytes().replace(b"Agreed", b"Refused"))
    else:
        path.unlink()
        if how == "foreign":
            path.write_text("# Ours\n")
        elif how == "folder":
            path.mkdir()
        elif how == "link":
            path.symlink_to(NAMES[0])
        else:
            path.with_name("0002-OURS.MD").write_text("# Ours\n")
    decide(shop, "Close on Sunday")
    before = sorted(os.listdir(shop / "adr"))
    said = exported(shop, code=1).err
    assert "adr: nothing was written" in said
    assert "0002-" in said
    assert sorted(os.listdir(shop / "adr")) == before
    assert how != "edited" or b"Refused" in path.read_bytes()


def test_files_that_are_no_decision_are_left_alone(shop: Path) -> None:
    (shop / "adr").mkdir()
    others = {"README.md": b"# x\n", "0900-later.md": b"# x\n", "0001.md": b"x", "0000-t.md": b"x"}
    for name, data in others.items():
        (shop / "adr" / name).write_bytes(data)
    exported(shop)
    assert {name: files(shop / "adr")[name] for name in others} == others


def test_line_breaks_of_another_system_are_no_change(shop: Path) -> None:
    exported(shop)
    path = shop / "adr" / NAMES[0]
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert b"0 files written" in exported(shop).out


def test_an_erased_title_leaves_the_folder(shop: Path) -> None:
    exported(shop)
    with Team(shop) as team:
        seq = next(query(team)).seq
    done = run(shop, "redact", str(seq), "--reason", "asked to", "--as", "ann")
    assert done.code == 0, done
    assert b"2 files written, 1 removed, 1 as they were" in exported(shop).out
    assert sorted(files(shop / "adr")) == ["0001-redacted.md", *NAMES[1:]]
    assert not any(b"Monday" in data for data in files(shop / "adr").values())


def test_the_folder_of_another_ledger_or_of_an_older_copy_is_refused(
    shop: Path, tmp_path: Path
) -> None:
    assert run(shop, "backup", str(tmp_path / "old.db")).code == 0
    decide(shop, "Close on Sunday")
    exported(shop)
    before = files(shop / "adr")
    said = exported(shop, "adr", "--team", str(tmp_path / "old.db"), code=1).err
    assert "0004-close-on-sunday.md: this ledger has 3 decisions: is it an older copy?" in said
    other = begun(tmp_path / "other", "example.org/other")
    decide(other, "Open on Monday", rationale="Else.")
    said = exported(other, str(shop / "adr"), code=1).err
    assert "it is of another ledger" in said
    assert files(shop / "adr") == before


def test_a_run_that_is_stopped_leaves_whole_files(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(shop)
    whole = files(shop / "adr")
    shutil.rmtree(shop / "adr")
    left = [2]

    def dying(*words: object, **more: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        replace_file(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("tripod.decisions.folder.replace_file", dying)
    assert run(shop, "decisions", "export", "--madr", "adr").code == 130
    assert files(shop / "adr").items() < whole.items()
    monkeypatch.undo()
    exported(shop)
    assert files(shop / "adr") == whole


def test_a_place_that_takes_no_file_is_named(shop: Path) -> None:
    assert "in the team directory" in exported(shop, ".nbs/adr", code=1).err
    (shop / "file").write_text("x")
    assert "is no folder" in exported(shop, "file", code=1).err
    assert "Not a directory" in exported(shop, "file/adr", code=1).err
    done = run(shop, "--read-only", "decisions", "export", "--madr", "adr")
    assert done.code == 1
    assert not (shop / "adr").exists()


def test_a_folder_that_is_read_only_is_named(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("tripod.decisions.folder.replace_file", refused)
    said = exported(shop, code=1).err
    assert said == f"tripod: adr/{NAMES[0]}: Permission denied\n"


# From elsewhere ---------------------------------------------------------------------------------


def test_a_backup_an_export_and_a_record_on_a_ref_give_the_same(tmp_path: Path) -> None:
    ann, name, _ = begin(tmp_path / "ann", "example.com/ann")
    with Team(ann.root) as team:
        chat_send.send(team, "live", "ann", "Let us open on Monday.")
    decide(ann.root, "Open on Monday")
    record(ann, name)
    exported(ann.root)
    wanted = files(ann.root / "adr")
    assert list(wanted) == ["0001-open-on-monday.md"]
    assert run(ann.root, "backup", str(tmp_path / "b.db")).code == 0
    exported(tmp_path, "from-backup", "--team", "b.db")
    assert run(ann.root, "export", str(tmp_path / "out"), "--bodies").code == 0
    exported(tmp_path, "from-export", "--team", "out")
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"cafe\n")
    fetch(clone, ann)
    exported(clone.root)
    ref = clone("for-each-ref", "--format=%(refname)", "refs/tripod-remotes").strip()
    exported(clone.root, "named", "--team", ref)
    folders = ("from-backup", "from-export", "clone/adr", "clone/named")
    assert [files(tmp_path / folder) for folder in folders] == [wanted] * len(folders)
    bob, name, _ = begin(tmp_path / "bob", "example.com/bob")
    record(bob, name)
    fetch(clone, ann, bob)
    said = exported(clone.root, "adr", code=1).err
    assert "2 replicas have records here" in said
    assert ref in said


def test_a_damaged_decision_is_not_exported(shop: Path) -> None:
    exported(shop)
    before = files(shop / "adr")
    with unguarded(database_of(str(shop / ".nbs"))) as db:
        db.execute(
            "UPDATE entries SET body = CAST(replace(body, 'Sell tea', 'Sell rum') AS BLOB)"
            " WHERE kind = 'decision.logged'"
        )
    said = exported(shop, code=3).err
    assert "its body is not the one that its header commits to" in said
    assert files(shop / "adr") == before
    assert "no such file" in exported(shop, "adr", "--team", "nowhere", code=1).err


# Read again -------------------------------------------------------------------------------------


def adopted(where: Path, folder: Path, *words: str) -> dict[str, object]:
    done = run(where, "adopt-log", str(folder), "--json", *words)
    assert done.code == 0, done
    value: dict[str, object] = json.loads(done.out)
    return value


def told(decision: Decision) -> tuple[object, ...]:
    """What of a decision comes back: all but its reference, whose chat is not here."""
    return decision._replace(seq=0, chat_ref="", change=None)[1:]


def test_the_files_make_the_same_decisions_in_another_team(shop: Path, tmp_path: Path) -> None:
    exported(shop)
    other = begun(tmp_path / "other", "example.org/other")
    adopted(other, shop / "adr")
    here, there = all_decisions(shop), all_decisions(other)
    assert list(map(told, there)) == list(map(told, here))
    assert [one.stands for one in there] == ["superseded", "decided", "decided"]
    assert run(other, "verify").code == 0, run(other, "verify")
    value = adopted(other, shop / "adr")
    assert value["decisions"] == []
    # A file that only shows what became of its decision says nothing new by itself.
    decide(shop, "Sell nothing", supersedes=here[1].id)
    exported(shop)
    value = adopted(other, shop / "adr")
    assert [one["title"] for one in value["decisions"]] == ["Sell nothing"]  # type: ignore[attr-defined]
    assert list(map(told, all_decisions(other))) == list(map(told, all_decisions(shop)))
    # In the team that they are of, they are there already.
    assert adopted(shop, shop / "adr")["decisions"] == []
    assert len(all_decisions(shop)) == 4


def test_an_export_is_not_named_as_something_to_adopt(shop: Path, tmp_path: Path) -> None:
    exported(shop, "docs/decisions")
    clone = tmp_path / "clone"
    shutil.copytree(shop / "docs", clone / "docs")
    assert logs_to_adopt(str(clone)) == []
    first = clone / "docs/decisions" / NAMES[0]
    first.write_bytes(first.read_bytes() + b"Ours.\n")
    assert logs_to_adopt(str(clone)) == []
    first.write_text("# Ours\n\n## Decision\n\nYes.\n")
    assert len(logs_to_adopt(str(clone))) == 2


def test_a_log_of_other_programs_comes_back_as_far_as_a_log_can_hold_it(tmp_path: Path) -> None:
    """Wrapped reasons, missing fields, an id that is there twice, a status that is unknown."""
    log_file = tmp_path / "here/.nbs/scribe/log.md"
    log_file.parent.mkdir(parents=True)
    fields = "- **Chat ref:** x\n- **Participants:** {}\n- **Status:** {}\n- **Rationale:** {}\n"
    wrapped = "wrapped\n  reason"
    log_file.write_text(
        "# Decision Log\n\n---\n\n"
        f"### D-5 One\n{fields.format('a,b', 'decided', wrapped)}\n---\n\n"
        f"### D-5 [SUPERSEDES D-5] Two\n{fields.format('a', 'undone', '<!-- ' * 5)}\n---\n\n"
        "### D-6 [SUPERSEDES D-5, D-4] Three\n- **Rationale:** r\n\n---\n\n"
        f"### D-7 [SUPERSEDES D-6] Four\n{fields.format('a', 'reversed', 'x' * 40_000)}"
    )
    with Clock(BEGIN).running():
        here, there = begun(tmp_path / "here"), begun(tmp_path / "there", "example.org/there")
        exported(here)
        adopted(there, here / "adr")
        assert adopted(there, here / "adr")["decisions"] == []
    one, two = all_decisions(here), all_decisions(there)
    assert [each.title for each in one] == ["One", "Two", "Three", "Four"]
    assert [each.title for each in two] == ["One", "Two (undone)", "Three", "Four"]
    assert [each.rationale for each in two] == [each.rationale for each in one]
    assert [each.participants for each in two] == ["a,b", "a", "unknown", "a"]
    assert [each.id for each in two] == ["D-5", "D-6", "D-7", "D-8"]
    assert [each.status for each in two] == ["decided", "decided", "decided", "reversed"]


def test_many_files_are_read_in_the_order_of_their_numbers(shop: Path) -> None:
    (shop / "adr").mkdir()
    for number, named in ((9_999, None), (10_000, "D-9999")):
        text = DecisionText(f"D-{number}", "T", named, "", "ann", "", "none", "decided", "R")
        data = format_decision_page(DecisionPage(number, text))
        (shop / "adr" / f"{number}-t.md").write_bytes(data)
    adopted(shop, shop / "adr")
    assert [one.id for one in all_decisions(shop)[-2:]] == ["D-9999", "D-10000"]


def test_an_id_that_is_taken_is_another_there_and_the_links_follow(
    shop: Path, tmp_path: Path
) -> None:
    exported(shop)
    other = begun(tmp_path / "other", "example.org/other")
    first = all_decisions(shop)[0]
    (tmp_path / "one").mkdir()
    file = files(shop / "adr")[NAMES[0]].replace(b"Open on Monday", b"Never open")
    (tmp_path / "one" / NAMES[0]).write_bytes(file)
    adopted(other, tmp_path / "one")
    adopted(other, shop / "adr")
    taken, moved, _, third = all_decisions(other)
    assert (taken.id, taken.title) == (first.id, "Never open")
    assert (moved.title, moved.second) == ("Open on Monday", first.second + 1)
    assert third.supersedes == moved.id
    assert adopted(other, shop / "adr")["decisions"] == []


_titles = st.one_of(
    st.sampled_from(("---", "../x", "# D", "<!-- -->", "```", "D-5", "CON", "a | b", "\u202e")),
    st.text("ab#*-`<>[]()\\! ", min_size=1, max_size=20),
    st.text(min_size=1, max_size=20),
)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(_titles, _titles, st.sampled_from(("", "supersedes", "reverses", "mitigates"))),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_exported_comes_back(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[str, str, str]]
) -> None:
    """Whatever the log took: title, status, day, people, reasons, supersession."""
    base = tmp_path_factory.mktemp("trip")
    clock = Clock(BEGIN)
    with clock.running():
        here, there = begun(base / "here"), begun(base / "there", "example.org/there")
        with Team(here) as team:
            before = ""
            for title, rationale, how in asked:
                more = {how: before} if how and before else {}
                request = DecisionRequest(title, ("ann", "bob"), rationale, ("live#0",), **more)
                try:
                    before = log(team, request).id
                except TripodError:
                    continue  # the log does not take it
        exported(here)
        if not (here / "adr").exists():
            return
        adopted(there, here / "adr")
        one, two = all_decisions(here), all_decisions(there)
        assert list(map(told, two)) == list(map(told, one))
        assert [each.stands for each in two] == [each.stands for each in one]
    shutil.rmtree(base)
