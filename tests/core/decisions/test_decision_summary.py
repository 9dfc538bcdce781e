"""A pull request's page shows what was decided: escaped, bounded, and never a false nothing."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import drafts
import pytest
from clones import begin, fetch, merge, record, say
from doors.inside import run
from git_repo import Git
from specimens import unguarded
from story import BEGIN, Clock

from tripod.chat import writer as chat_send
from tripod.decisions.brief import MAX_SIZE, BriefPart, render_brief
from tripod.decisions.entries import LedgerDecisions, read_decisions
from tripod.decisions.writer import DecisionRequest, log
from tripod.ledger.locator import database_of
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.rows import RowReader


def decide(where: Path, title: str, *tags: str, supersedes: str | None = None) -> str:
    with Team(where) as team:
        request = DecisionRequest(
            title, ("ann", "bob"), "Agreed.", risk_tags=tags, no_ref="by phone",
            supersedes=supersedes,
        )  # fmt: skip
        return log(team, request).id


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """A team with a decision."""
    with Clock(BEGIN).running():
        adoption.init(str(tmp_path), project="shop", origin="example.org/shop", key=False)
        with Team(tmp_path) as team:
            chat_send.create(team, "live")
        decide(tmp_path, "Open on Monday", "rent")
        yield tmp_path


def summary(where: Path, *words: str, code: int = 0) -> str:
    done = run(where, "decisions", "summary", *words)
    assert done.code == code, done
    return done.out.decode()


def size(where: Path) -> str:
    with Team(where) as team:
        return str(team.store.head().size)


def test_what_is_new_since_an_entry(shop: Path) -> None:
    point, first = size(shop), f"D-{BEGIN}"
    assert summary(shop, "--since", point) == (
        f"## Decisions\n\nNo new decisions, no new assessments since entry {point}.\n"
    )
    decide(shop, "Sell <b>tea</b> @all #3", "tech-debt", "rent", supersedes=first)
    said = summary(shop, "--since", point)
    assert said == (
        f"## Decisions\n\n1 new decision, no new assessments since entry {point}.\n\n"
        "**Risk tags:** rent (1), tech-debt (1)\n\n"
        f"- **D-{BEGIN + 1}: Sell &#60;b&#62;tea&#60;/b&#62; &#64;&#8203;all &#35;&#8203;3** "
        "(decided; ann, bob; risk&#58; tech-debt, rent)\n"
        f"  - Supersedes {first}: Open on Monday\n"
        "  - Agreed.\n"
    )
    everything = summary(shop)
    assert "2 decisions, no assessments." in everything
    assert f"  - By now superseded by D-{BEGIN + 1}\n" in everything
    assert summary(shop, "--since", "0").count("\n- **D-") == 2
    (value,) = map(json.loads, summary(shop, "--since", point, "--json").splitlines())
    assert [one["id"] for one in value["decisions"]] == [f"D-{BEGIN + 1}"]
    assert (value["start"], value["problems"]) == (int(point), [])


def test_of_many_the_newest_are_listed_and_the_rest_is_counted(shop: Path) -> None:
    point = size(shop)
    for number in range(4):
        decide(shop, f"Sell tea {number}")
    said = summary(shop, "--since", point, "-n", "3")
    assert "4 new decisions" in said
    assert [f"Sell tea {number}" in said for number in range(4)] == [False, True, True, True]
    assert "\nand 1 earlier ones: `tripod scribe query` lists them\n" in said


def test_its_size_has_a_bound_whatever_was_decided(shop: Path) -> None:
    with Team(shop) as team:
        found = read_decisions(RowReader(team.store.db))
    (one,) = found.decisions
    text = one.text._replace(
        title="<" * 10**6, rationale="@" * 10**6, participants="&" * 10**6, risk_tags="a" * 10**6
    )
    many = (one._replace(text=text),) * 1_000
    part = BriefPart("x", LedgerDecisions(many, (), {}, ("entry 1: bad",) * 1_000))
    assert len(render_brief([part], 10_000).encode()) < MAX_SIZE + 20_000


def test_an_assessment_is_named(shop: Path) -> None:
    with Team(shop) as team:
        more = {"event": 1, "first": "D-1", "last": "D-2", "decisions": 2, "confidence": "low"}
        draft = drafts.pythia_assessed(
            spawn=None, text="So.", actor="pythia", cited=["D-2"], message=1, **more
        )
        team.append_apart(lambda: [draft])
    said = summary(shop)
    assert "1 decision, 1 assessment." in said
    assert "\n### Assessments\n\n- **D-1 to D-2** (" in said
    assert "\n  - Names D-2\n" in said


def test_what_cannot_be_told_is_never_nothing(
    shop: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = tmp_path_factory.mktemp("empty")
    said = summary(empty, code=3)
    assert "Could not tell what was decided." in said
    assert "**Could not tell:**" in said
    said = summary(shop, "--since", "9999", code=3)
    assert "and entry 9999 is beyond" in said
    assert "Open on Monday" in said, "then everything is listed"
    said = summary(shop, "--since", "main", code=3)
    assert "**Could not tell:**" in said
    decide(shop, "Sell tea")
    with unguarded(database_of(str(shop / ".nbs"))) as db:
        db.execute(
            "UPDATE entries SET body = CAST(replace(body, 'Monday', 'Sunday') AS BLOB)"
            " WHERE kind = 'decision.logged'"
        )
    said = summary(shop, code=3)
    assert "its body is not the one that its header commits to" in said
    assert "Sunday" not in said
    assert "Sell tea" in said
    (shop / ".nbs/ledger.db").write_bytes(b"x" * 10_000)
    assert "**Could not tell:**" in summary(shop, code=3)


def test_a_decision_whose_entry_is_gone_is_missed(shop: Path) -> None:
    """Each decision has its number in the log; the newest leave no gap, and heads outside tell."""
    decide(shop, "Sell tea")
    with unguarded(database_of(str(shop / ".nbs"))) as db:
        db.execute(
            "DELETE FROM entries WHERE kind = 'decision.logged'"
            " AND CAST(body AS TEXT) LIKE '%Monday%'"
        )
    said = summary(shop, code=3)
    assert "log.md&#58; 1 of its 2 decisions are missing" in said
    done = run(shop, "decisions", "export", "--madr", "adr")
    assert (done.code, (shop / "adr").exists()) == (3, False)


def test_files_of_an_export_that_do_not_agree_tell_nothing(shop: Path) -> None:
    for words in (("key", "new"), ("seal",), ("export", "out", "--bodies")):
        assert run(shop, *words).code == 0
    assert "Open on Monday" in summary(shop, "out")
    files = [path for path in (shop / "out").rglob("*") if path.is_file()]
    (bundle,) = (path for path in files if b"Monday" in path.read_bytes())
    bundle.write_bytes(bundle.read_bytes().replace(b"Monday", b"Sunday"))
    said = summary(shop, "out", code=3)
    assert "Could not tell what was decided." in said
    assert "Sunday" not in said
    done = run(shop, "decisions", "export", "--madr", "adr", "--team", "out")
    assert (done.code, (shop / "adr").exists()) == (3, False)


def test_a_clone_without_a_ledger_is_told_by_the_records_on_its_refs(tmp_path: Path) -> None:
    ann, name, _ = begin(tmp_path / "ann", "example.com/ann")
    say(ann, "Tea?")
    decide(ann.root, "Old")
    record(ann, name)
    bob, other, _ = begin(tmp_path / "bob", "example.com/bob")
    record(bob, other)
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"cafe\n")
    fetch(clone, ann, bob)
    ref = next(one for one in clone("for-each-ref", "--format=%(refname)").split() if name in one)
    before = clone("rev-parse", ref).strip()
    decide(ann.root, "New", "tech-debt")
    record(ann, name)
    fetch(clone, ann, bob)
    said = summary(clone.root, "--since", before)
    assert "1 new decision, no new assessments since the head in commit" in said
    assert "New" in said
    assert "Old" not in said
    assert summary(clone.root).count("\n- **D-") == 2
    assert "Could not tell" in summary(clone.root, "--since", "nowhere", code=3)
    shutil.rmtree(clone.root / ".git/refs/tripod-remotes", ignore_errors=True)
    (clone.root / ".git/packed-refs").unlink(missing_ok=True)
    assert "Could not tell" in summary(clone.root, code=3)


def test_what_a_replica_merged_is_told_once_and_keeps_its_makers_name(tmp_path: Path) -> None:
    ann, name, _ = begin(tmp_path / "ann", "example.com/ann")
    with Clock(BEGIN).running():
        decide(ann.root, "Sell tea", "tech-debt")
    record(ann, name)
    bob, other, _ = begin(tmp_path / "bob", "example.com/bob")
    with Clock(BEGIN).running():  # the id is taken there when Ann's decision comes
        decide(bob.root, "Sell coffee")
    fetch(bob, ann)
    merge(bob, f"refs/tripod-remotes/ann/{name}")
    record(bob, other)
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"cafe\n")
    fetch(clone, ann, bob)
    said = summary(clone.root)
    assert (said.count("Sell tea"), said.count("Sell coffee")) == (1, 1)
    assert "2 decisions, no assessments." in said
    # Bob's own ledger has both, and numbers them as they came.
    assert summary(bob.root).count("\n- **") == 2
    assert f"- **{name}/D-{BEGIN}: Sell tea**" in summary(bob.root)
    assert run(bob.root, "decisions", "export", "--madr", "adr").code == 0
    coffee, tea = (path.read_text() for path in sorted((bob.root / "adr").iterdir()))
    assert f'\ndecision: "D-{BEGIN}"\nlogged-status' in coffee
    assert f'\ndecision: "D-{BEGIN + 1}"\nmade: "{name}/D-{BEGIN}"\n' in tea
    done = run(bob.root, "adopt-log", "adr")
    assert b"0 decisions into log.md; 2 are there already" in done.out
    done = run(ann.root, "adopt-log", str(bob.root / "adr"), "--json")
    assert [one["title"] for one in json.loads(done.out)["decisions"]] == ["Sell coffee"]


def test_a_ledger_that_is_lost_is_not_replaced_by_its_record(tmp_path: Path) -> None:
    ann, name, _ = begin(tmp_path / "ann", "example.com/ann")
    decide(ann.root, "Sell tea")
    record(ann, name)
    shutil.rmtree(Path(database_of(str(ann.root / ".nbs"))).parent)
    said = summary(ann.root, code=3)
    assert "Could not tell what was decided." in said
    done = run(ann.root, "decisions", "export", "--madr", "adr")
    assert (done.code, "`tripod restore` brings it back" in done.err) == (3, True)
    assert not (ann.root / "adr").exists()


def test_what_another_program_wrote_into_the_log_is_never_left_out_unsaid(shop: Path) -> None:
    point = size(shop)
    log_file = shop / ".nbs/scribe/log.md"
    last = log_file.read_text().rpartition("\n---\n")[2]
    log_file.write_text(log_file.read_text() + "\n---\n" + last.replace("Monday", "Sunday", 1))
    for words in (["--read-only"], []):
        where = () if words else (".",)
        done = run(shop, *words, "decisions", "summary", *where, "--since", point)
        assert done.code == 3, "nothing is taken in, so it is not told"
        assert "pending, and left as it is&#58; 1 decision.logged" in done.out.decode()
        assert "No new decisions" not in done.out.decode()
    said = summary(shop, "--since", point)
    assert "1 new decision" in said
    assert "Open on Sunday** (decided; ann, bob; risk&#58; rent; observed)" in said
    run(shop, "chat", "send", "live", "ann", "Tea?")
    assert "1 new decision" in summary(shop, ".", "--since", point), "it is there now"


def test_what_a_peer_merged_is_told_where_the_ref_of_its_maker_was_set_back(tmp_path: Path) -> None:
    ann, name, _ = begin(tmp_path / "ann", "example.com/ann")
    decide(ann.root, "Sell tea")
    record(ann, name)
    bob, other, _ = begin(tmp_path / "bob", "example.com/bob")
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"cafe\n")
    fetch(clone, ann)
    ref = next(one for one in clone("for-each-ref", "--format=%(refname)").split() if name in one)
    before = clone("rev-parse", ref).strip()
    decide(ann.root, "Sell rum")
    record(ann, name)
    fetch(bob, ann)
    merge(bob, f"refs/tripod-remotes/ann/{name}")
    record(bob, other)
    fetch(clone, ann, bob)
    assert summary(clone.root).count("\n- **") == 2
    clone("update-ref", ref, before)
    said = summary(clone.root)
    assert (said.count("Sell tea"), said.count("Sell rum")) == (1, 1)


def test_what_a_peer_merged_is_told_where_the_ref_of_its_maker_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other history is of equal length: how many entries there are tells nothing."""
    ann, name, _ = begin(tmp_path / "ann", "example.com/ann")
    twin = Git(tmp_path / "twin", made=False)
    shutil.copytree(ann.root, twin.root)
    home = os.environ["TRIPOD_HOME"]
    shutil.copytree(home, tmp_path / "home")  # there it is not known what was sealed here
    for one, what, at in ((ann, "Sell rum", home), (twin, "Sell gin", f"{tmp_path}/home")):
        monkeypatch.setenv("TRIPOD_HOME", at)
        decide(one.root, what)
        record(one, name)
    monkeypatch.setenv("TRIPOD_HOME", home)
    bob, other, _ = begin(tmp_path / "bob", "example.com/bob")
    fetch(bob, ann)
    merge(bob, f"refs/tripod-remotes/ann/{name}")
    record(bob, other)
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"cafe\n")
    fetch(clone, twin, bob)
    said = summary(clone.root)
    assert (said.count("Sell gin"), said.count("Sell rum")) == (1, 1)


def test_a_decision_whose_row_says_another_kind_is_no_nothing(shop: Path) -> None:
    point = size(shop)
    decide(shop, "Sell rum")
    with unguarded(database_of(str(shop / ".nbs"))) as db:
        db.execute("UPDATE entries SET kind = 'chat.read' WHERE seq = ?", (int(point),))
    said = summary(shop, ".", "--since", point, code=3)
    assert f"entry {point}&#58; its row says another kind than its header" in said
    assert "No new decisions" not in said
