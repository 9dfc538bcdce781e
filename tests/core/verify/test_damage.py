"""The day after: the first bad entry, the last good head, and what is provable on each side."""

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from attacked import KEY, ORIGIN, Case, World, build_world, copied, fit
from attacks import DEEDS
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_export import key_of
from specimens import SPECIMENS, copy, database, read, unguarded, write_rows
from story import folder

from tripod.ledger.entry import entry_leaf_hash, format_canonical
from tripod.ledger.merkle import Tree
from tripod.ledger.places import RECORD
from tripod.ledger.tlog.note import Note, SigningKey, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal
from tripod.verify.anchors.anchors import AnchorOptions
from tripod.verify.damage import Damage, damage_of
from tripod.verify.reporters.damage import damage_text, damage_value
from tripod.verify.rows import RowHeads
from tripod.verify.run import open_run, run

SINGLE = (
    "edit seq", "edit id", "edit kind", "edit stream", "edit header", "edit salt", "edit body",
    "edit signature", "edit and own hash", "delete", "delete, numbered anew", "swap",
    "swap, numbered anew", "repeat", "foreign row", "fake redaction", "duplicate JSON key",
    "truncate",
)  # fmt: skip
"""Attacks on one place of the database, after which the first bad entry is known exactly."""
ANEW = ("rewrite from k on", "rewrite the tail", "rewrite with the host's key", "fork", "rollback")
"""Attacks after which everything within the ledger fits again."""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with folder() as place:
        yield build_world(place)


@pytest.fixture
def team(world: World, tmp_path: Path) -> str:
    copied(world.now.root, world.now.home, tmp_path)
    return f"{tmp_path}/.nbs"


def audited(root: str, pin: str | None = None) -> Damage:
    """What an audit says of a team, to somebody who knows the log's key."""
    with open_run(root, keys=[KEY.verifier()], asked=AnchorOptions(pin)) as evidence:
        return damage_of(evidence, run(evidence))


def pinned(world: World, place: Path, size: int) -> str:
    """A pin with the signed head of the first entries, as they were."""
    seal = world.head(size)
    path = place / "pin"
    path.write_bytes(format_note(Note(format_seal(seal), (sign_seal(seal, KEY),))))
    return str(path)


class Attacked:
    """Attacks on copies of a world, which is too large to be shown where a test fails."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __call__(self, name: str, seed: int, *, pin: int | None = None) -> tuple[int, Damage]:
        """The first entry that an attack touches, and what an audit says then."""
        with folder() as place:
            copied(self.world.now.root, self.world.now.home, place)
            rng = random.Random(f"{name} {seed}")  # noqa: S311 - attacks, not keys
            at = DEEDS[name](Case(f"{place}/.nbs", f"{place}/home", rng, self.world))
            held = None if pin is None else pinned(self.world, place, pin)
            return at, audited(f"{place}/.nbs", held)


@pytest.fixture(scope="module")
def attacked(world: World) -> Attacked:
    return Attacked(world)


def ranges(damage: Damage) -> list[tuple[str, int, int]]:
    return [(side.name, side.first, side.stop) for side in damage.sides]


def test_a_head_that_a_hole_leaves_uncompared_is_told_all_the_same(
    world: World, team: str, tmp_path: Path
) -> None:
    with unguarded(database(team)) as db:
        db.execute("DELETE FROM entries WHERE seq = 30")
        roots = RowHeads(db)  # what peers and commits remember is held against these
        assert (roots.root_at(60), roots.root_at(20)) == (None, world.head(20).root)
    damage = audited(team, pinned(world, tmp_path, 60))
    (pin,) = (one for one in damage.heads if one.source == "pin")
    assert (pin.size, pin.fits) == (60, None)
    assert damage.first_bad is not None
    assert damage.first_bad.seq == 30


# Exactly which entry ----------------------------------------------------------------------------


@settings(max_examples=24)
@example(name="edit seq", seed=1836)  # the newest, which another entry was signed together with
@given(name=st.sampled_from(SINGLE), seed=st.integers(0, 10_000))
def test_any_single_damage_is_told_at_its_entry(attacked: Attacked, name: str, seed: int) -> None:
    at, damage = attacked(name, seed)
    first = damage.first_bad
    assert damage.exit_code == 1
    assert first is not None
    assert (first.seq, first.last, first.sealed) == (at, at, at)


@settings(max_examples=10)
@given(name=st.sampled_from(ANEW), seed=st.integers(0, 10_000), size=st.integers(1, 93))
def test_what_was_made_anew_is_never_placed_where_it_is_not(
    attacked: Attacked, name: str, seed: int, size: int
) -> None:
    """By a pin alone the first bad entry can be bounded; the bounds hold the true one."""
    at, damage = attacked(name, seed, pin=size)
    first = damage.first_bad
    if size <= at or damage.missing is not None:
        return  # the pin covers nothing that was touched, or only that the ledger is shorter
    assert damage.exit_code == 1
    assert first is not None
    assert first.seq <= at <= first.last < size
    assert first.seq <= first.sealed <= first.last
    covered = [side for side in damage.sides if side.name == "sealed"]
    for side in covered:
        assert side.stop <= first.sealed


def test_a_sound_team_has_no_bad_entry(world: World, team: str) -> None:
    damage = audited(team)
    assert damage.exit_code == 0
    assert damage.verdict == "nothing bad was found: all required checks are clean"
    assert (damage.first_bad, damage.missing, damage.broken, damage.next) == (None, None, None, ())
    assert damage.good is not None
    assert damage.good.size == world.now.sealed
    assert ranges(damage) == [
        ("sealed", 0, world.now.sealed),
        ("unsealed", world.now.sealed, world.now.size),
    ]


# Each side --------------------------------------------------------------------------------------


def test_a_changed_header_splits_the_ledger_at_the_seal_before_it(world: World, team: str) -> None:
    seq = world.now.sealed - 4
    header = format_canonical(world.rows[seq].headed(actor="mallory").head)
    with unguarded(database(team)) as db:
        db.execute("UPDATE entries SET header = ? WHERE seq = ?", (header, seq))
    damage = audited(team)
    first, good, broken = damage.first_bad, damage.good, damage.broken
    assert first is not None
    assert good is not None
    assert broken is not None
    assert (first.seq, first.check) == (seq, "chain-links")
    assert first.entry is not None
    assert first.entry.actor == "mallory"
    assert good.size <= seq < broken.size
    assert ranges(damage) == [
        ("sealed", 0, good.size),
        *([("sealed", good.size, seq)] if good.size < seq else []),
        ("bad", seq, seq + 1),
        ("after", seq + 1, world.now.size),
    ]
    # The record beside the ledger is whole, and has the entry as it was.
    assert first.where == RECORD
    assert first.was is not None
    assert first.was.actor == world.rows[seq].head["actor"]


def test_a_changed_body_leaves_the_seals_whole(world: World, team: str) -> None:
    with unguarded(database(team)) as db:
        db.execute("UPDATE entries SET body = ? WHERE seq = 7", (b"{}",))
    damage = audited(team)
    assert damage.first_bad is not None
    assert (damage.first_bad.seq, damage.first_bad.check) == (7, "bodies-present")
    assert damage.broken is None
    assert damage.good is not None
    assert damage.good.size == world.now.sealed
    sealed, *_ = damage.sides
    assert any("covers the header of entry 7 too" in one for one in sealed.sentences)


def test_a_tail_linked_anew_is_found_in_the_record(world: World, team: str) -> None:
    """Every link fits, and the record that was not written anew has the entry otherwise."""
    seq = 30
    rows = read(database(team))
    rows[seq] = rows[seq].headed(actor="mallory")
    write_rows(team, rows)
    damage = audited(team)
    first = damage.first_bad
    assert first is not None
    assert (first.seq, first.last, first.where) == (seq, seq, RECORD)
    assert first.entry is not None
    assert first.was is not None
    assert (first.entry.actor, first.was.actor) == ("mallory", world.rows[seq].head["actor"])
    assert "the record on record has it otherwise" in first.message
    assert ("sealed", 0, seq) in ranges(damage)  # so far the record has the same


def test_a_cut_tail_is_what_a_pin_covers_and_is_not_here(world: World, tmp_path: Path) -> None:
    before = world.before[3]
    copied(before.root, before.home, tmp_path)
    damage = audited(f"{tmp_path}/.nbs", pinned(world, tmp_path, world.now.size))
    assert damage.exit_code == 1
    assert damage.missing == (before.size, world.now.size)
    last = world.now.size - 1
    assert damage.verdict == (
        f"the ledger is shorter than it was: entries {before.size} to {last} are missing"
    )
    assert ranges(damage)[-1] == ("missing", before.size, world.now.size)
    assert damage.first_bad is not None
    assert damage.first_bad.entry is None


def test_who_has_the_key_can_make_seals_and_is_not_believed(attacked: Attacked) -> None:
    """A head outside does not fit: then seals in the ledger are no bound by themselves."""
    at, damage = attacked("rewrite with the host's key", 1, pin=90)
    first = damage.first_bad
    assert first is not None
    assert (first.seq, first.last) == (0, 89)
    assert first.seq <= at < first.sealed <= 89
    assert "if its key is in other hands" in damage.verdict
    assert any("if the key is in other hands" in one for one in damage.sides[0].sentences)


def test_a_ledger_that_is_gone_leaves_the_heads_that_know_it(
    world: World, team: str, tmp_path: Path
) -> None:
    Path(database(team)).unlink()
    for path in Path(database(team)).parent.glob("ledger.db-*"):
        path.unlink()
    shutil.rmtree(f"{team}/{RECORD}")
    damage = audited(team, pinned(world, tmp_path, 90))
    assert damage.exit_code == 1
    assert damage.verdict.startswith("the ledger is gone: no ledger.db, but there was one")
    assert [(one.size, one.source, one.fits) for one in damage.heads] == [(90, "pin", None)]
    assert damage.missing == (0, 90)


def test_a_database_that_cannot_be_opened_is_said_to_be_one(world: World, team: str) -> None:
    Path(database(team)).write_bytes(b"\x05" * 8192)
    damage = audited(team)
    assert (damage.exit_code, damage.size) == (3, 0)
    assert damage.verdict.startswith("the ledger cannot be judged: ")
    assert ("tripod restore", "put this replica's own record back; the damaged file is kept") in (
        damage.next
    )
    shutil.rmtree(f"{team}/{RECORD}")
    assert ("tripod restore FILE", "put a backup in its place: no record is here to restore") in (
        audited(team).next
    )


def test_a_database_that_was_not_read_has_no_missing_entries(
    world: World, team: str, tmp_path: Path
) -> None:
    Path(database(team)).write_bytes(b"\x05" * 8192)
    damage = audited(team, pinned(world, tmp_path, 90))
    assert damage.exit_code == 3
    assert (damage.missing, damage.sides, damage.first_bad) == (None, (), None)
    assert [(one.size, one.fits) for one in damage.heads] == [(90, None)]
    said = damage_text(damage)
    assert "no entries could be read here" in said
    assert "are here" not in said


def test_a_blob_that_was_changed_makes_the_entry_bad_that_names_it(team: str) -> None:
    with unguarded(database(team)) as db:
        db.execute("UPDATE blobs SET bytes = zeroblob(length(bytes))")
    damage = audited(team)
    first = damage.first_bad
    assert first is not None
    assert (first.is_exact, first.check) == (True, "bodies-present")
    assert b'"sha256":' in (read(database(team))[first.seq].body or b"")
    assert "is not there or is another" in first.message


def test_a_seal_made_over_other_entries_is_not_the_last_good_one(attacked: Attacked) -> None:
    """Who has the key made all seals anew: those over what a pin denies vouch for nothing."""
    at, damage = attacked("rewrite with the host's key", 1, pin=68)
    good = damage.good
    assert good is not None
    assert good.size < 68
    assert any(one.fits and one.size >= 68 for one in damage.heads)
    said = damage_text(damage)
    assert "fits what is here now, and a head of fewer entries does not" in said
    assert "what its body was is fixed" not in said  # which entry is bad, is not known
    assert "they are those that were sealed" not in said
    assert at < 68


def test_a_signature_that_no_known_key_made_is_told_as_none(
    world: World, team: str, tmp_path: Path
) -> None:
    seal = world.head(90)
    other = key_of("sample.example/2")
    path = tmp_path / "pin"
    note = Note(format_seal(seal), (sign_seal(seal, KEY),))
    path.write_bytes(
        format_note(note).replace(KEY.name.encode() + b" ", other.name.encode() + b" ")
    )
    damage = audited(team, str(path))
    (pin,) = (one for one in damage.heads if one.source == "pin")
    assert (pin.fits, pin.by) == (True, "no key that is known here")


def test_a_key_that_no_key_before_it_vouches_for_makes_no_good_seal(
    world: World, team: str
) -> None:
    """Anybody who can write to the database can add a key, and seal everything with it."""
    rows, size = list(world.rows), len(world.rows)
    other = SigningKey(ORIGIN, b"\x07" * 32)
    at = rows[-1].head["at"]
    key = next(row for row in rows if row.head["kind"] == "key.set")
    key = key.headed(id="key-9", at=at, seq=size).saying(vkey=other.verifier().format(), note="x")
    fit(team, [*rows, key])
    with closing(sqlite3.connect(database(team))) as db:
        tree = Tree()
        for (header,) in db.execute("SELECT header FROM entries ORDER BY seq"):
            tree.append(entry_leaf_hash(header))
    seal = Seal(ORIGIN, size + 1, tree.root())
    note = format_note(Note(format_seal(seal), (sign_seal(seal, other),))).decode()
    made = next(row for row in rows if row.head["kind"] == "seal.made")
    made = made.headed(id="seal-9", at=at, seq=size + 1).saying(size=size + 1, note=note)
    fit(team, [*rows, key, made])
    damage = audited(team)
    assert damage.first_bad is not None
    assert damage.first_bad.seq == size
    assert damage.good is not None
    assert damage.good.size == world.now.sealed
    assert all(one.size <= world.now.sealed for one in damage.heads)


def test_by_a_head_that_is_not_reached_nothing_that_is_here_is_proved(attacked: Attacked) -> None:
    at, damage = attacked("strip all protection", 1, pin=93)
    first = damage.first_bad
    assert first is not None
    assert at < first.seq
    assert "by it, those from 0 on may also be other ones" in first.message


# What it was about ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("says", "field"),
    [
        ("answers no checkpoint event", "reviews"),
        ("Scenario: nothing stands there", "reviews"),
        ("pythia-a0d7 read the chat", "readings"),
        ("its prompt holds 12 words in a row of chat live", "readings"),
        ("session s was shown /w/.env (read, line 2)", "readings"),
        ("the column kind says 'bus.acked'", "altered"),
    ],
)
def test_findings_are_sorted_by_what_they_are_about(
    sound: str, tmp_path: Path, says: str, field: str
) -> None:
    root = copy(sound, str(tmp_path))
    (specimen,) = (one for one in SPECIMENS if one.says == says)
    specimen.do(root)
    found = audited(root).findings
    sorts = {name: getattr(found, name) for name in ("reviews", "readings", "altered")}
    assert any(says in one.message for one in sorts.pop(field))
    assert not any(says in one.message for each in sorts.values() for one in each)
    assert specimen.check in {name for name, _, _ in found.counts}


def test_what_was_accepted_and_what_was_not_told_is_said(attacked: Attacked, sound: str) -> None:
    _, damage = attacked("accept a finding", 1, pin=93)
    assert damage.exit_code == 0
    assert damage.verdict.endswith("clean; 1 finding is accepted")
    said = damage_text(damage)
    assert "\nAccepted findings: 1\n" in said
    assert "accepted by alex in entry" in said
    (one,) = damage_value(damage)["findings"]["accepted"]
    assert one["accepted"]["actor"] == "alex"
    # The newest seal is kept with the ledger, the pin of fewer entries is not.
    assert "shows it for the first 93 entries" in said
    with open_run(sound, asked=AnchorOptions(git=False)) as evidence:
        report = run(evidence)
        outcomes = [one.cannot_tell("no reason") for one in report.outcomes[:1]]
        report = replace(report, outcomes=tuple(outcomes), notes=("a note",))
        damage = damage_of(evidence, report)
    assert damage.findings.untold == (
        (outcomes[0].check, "it cannot tell: no reason"),
        ("", "a note"),
    )
    assert "\nWhat is not told\n" in damage_text(damage)


def test_the_next_commands_are_of_what_is_wrong(team: str) -> None:
    (Path(team) / "chat/live.chat").write_text("gone\n")
    commands = {command for command, _ in audited(team).next}
    assert "tripod doctor" in commands
    assert "tripod restore" not in commands


def test_a_head_in_the_report_is_never_believed_by_a_stored_tree(world: World, team: str) -> None:
    """A changed entry, with the old tree and head row left in place: no seal over it fits."""
    with unguarded(database(team)) as db:
        db.execute("UPDATE entries SET header = ? WHERE seq = 3", (b"{}",))
    damage = audited(team)
    assert [one for one in damage.heads if one.fits] == []
    assert damage.good is None
