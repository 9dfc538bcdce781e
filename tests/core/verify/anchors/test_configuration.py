"""What a project says in ``tripod.toml`` and in ``pyproject.toml``, and how far a judge goes by it.

Whose work is judged can edit these files, so no test here lets one of them hide a fault.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from doors.inside import begin, run
from git_repo import Git
from hypothesis import given
from hypothesis import strategies as st

from tripod.cli.verify import FORMATS
from tripod.ledger.errors import MalformedError
from tripod.verify.anchors.configuration import (
    ENDINGS,
    PROJECT_FILES,
    PYPROJECT_SIZE,
    Configuration,
    Said,
    join_configurations,
    parse_configuration,
)
from tripod.verify.anchors.policy import Rules
from tripod.verify.check import Report
from tripod.verify.run import verify

FRONTS = {"tripod.toml": "", "pyproject.toml": "tool.tripod"}
ADVICE = {"decision-missed", "decision-noise"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Git:
    """A repository with a team; its branch ``main`` has no settings."""
    git = Git(tmp_path_factory.mktemp("made") / "shop")
    git.commit("README", b"A shop\n")
    begin(git.root)
    assert run(git.root, "seal").code == 0
    return git


@pytest.fixture
def shop(made: Git) -> Git:
    """That repository, as it was made."""
    made("checkout", "--quiet", "--force", "main")
    made("clean", "--quiet", "-fdx", "--exclude=.nbs")
    for path in (*made.root.glob("tripod*"), made.root / "pyproject.toml"):
        path.unlink(missing_ok=True)  # what is no file git does not clean
    (made.root / ".nbs/policy.yaml").unlink(missing_ok=True)
    return made


def says(git: Git, text: str, name: str = "tripod.toml") -> str:
    """Write settings, as the file has them."""
    front = FRONTS[name]
    lines = [f"[{front}]"] if front else []
    for line in text.splitlines():
        own = line.startswith("[") and front
        lines.append(line.replace("policy", f"{front}.policy", 1) if own else line)
    return git.write(name, ("\n".join(lines) + "\n").encode())


def judged(report: Report) -> set[str]:
    """The checks that gave an outcome."""
    return {outcome.check for outcome in report.outcomes}


def messages(report: Report) -> list[str]:
    return [f.message for outcome in report.outcomes for f in outcome.findings]


def parse(text: str, name: str = "tripod.toml") -> Configuration:
    said = parse_configuration(name, text.encode())
    assert said is not None
    return said


# One reader, two files -------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROJECT_FILES)
def test_each_of_the_two_files_counts(shop: Git, name: str) -> None:
    assert verify(shop.root).exit_code == 0
    path = says(shop, "[policy]\nrequired = ['record-agrees']", name)
    report = verify(shop.root)
    assert report.exit_code == 1
    assert messages(report)[0].startswith("the policy requires this check")
    assert report.subject is not None
    assert report.subject.settings == (path,)


def test_the_stricter_of_all_three_policies_holds(shop: Git) -> None:
    """A file that is added takes nothing away from one that is there."""
    says(shop, "[policy]\nrequired = ['record-agrees']", "pyproject.toml")
    says(shop, "[policy]\nrequired = ['pythia-isolation']")
    (shop.root / ".nbs/policy.yaml").write_text("required: [witnesses-agree]\n")
    failing = {one.check for one in verify(shop.root).outcomes if one.failures}
    assert failing == {"record-agrees", "pythia-isolation", "witnesses-agree"}


@pytest.mark.parametrize("key", ["select = ['drift']", "formats = ['json=tripod.json']"])
def test_what_only_one_file_can_say_is_refused_in_two(shop: Git, key: str) -> None:
    for name in PROJECT_FILES:
        says(shop, key, name)
    report = verify(shop.root)
    assert report.exit_code == 1
    assert f"`{key.split(maxsplit=1)[0]}` stands in " in messages(report)[0]
    shop("add", "--all")
    shop("commit", "--quiet", "-m", "both")
    shop("tag", "--force", "both")
    report = verify(shop.root, policy_from="both")
    assert (report.exit_code, "keep it in one" in report.problem) == (3, True)
    shop("reset", "--quiet", "--hard", "HEAD~")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[project]\nname = 'shop'\n",
        b"[tool.ruff]\nline-length = 100\n",
        b"{{ cookiecutter.name }}\n",
        b"\xff\xfe",
        b"tool = []\n",
        b"# " + b"x" * PYPROJECT_SIZE,
        b"[project]\nname = 'tripod'\n",
    ],
)
def test_a_file_of_other_programs_says_nothing(data: bytes) -> None:
    assert parse_configuration("pyproject.toml", data) is None


def test_what_other_programs_say_beside_ours_does_not_matter() -> None:
    text = (
        "[project]\nname = 'x'\n[tool.tripod]\nselect = 'drift, supersession'\n[tool.x]\nselect=1"
    )
    assert parse(text, "pyproject.toml").select == ("drift", "supersession")
    assert parse("\ufeffselect = ['drift']").select == ("drift",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("polcy = 3", "unknown keys: polcy (did you mean policy?)"),
        ("selct = ['drift']", "unknown keys: selct (did you mean select?)"),
        ("since = '2.0'", "unknown keys: since"),
        ("\n".join(f"k{one} = 1" for one in range(99)), ": k0, k1, k10, k11, k12 and 94 more;"),
        ("select = 3", "select: the value is not a list of texts"),
        ("select = [3]", "select: the value is not text"),
        ("select = []", "select: the value names nothing"),
        ("formats = 3", "formats: the value is not a list of texts"),
        ("formats = [1979-05-27]", "formats: the value is not text"),
        ("policy = []", "policy: the value is not a mapping"),
        ("policy.level = 3", "policy.level: the value is not a list of texts"),
        ("policy.tail-entries = '3.5'", "policy.tail-entries: the value is not a whole number"),
        ("policy.tail-entries = 9999999999999999", "policy.tail-entries: the value is not a whole"),
        ("never = [{paths = ['x']}]", "never; what is demanded stands in the table `policy`"),
        ("tail-entries = 3", "tail-entries; what is demanded stands in the table `policy`"),
        ("ignore = ['3f2a']", "ignore; a finding is accepted by an entry of the ledger alone"),
        ("policy.accepted = ['3f2a']", "accepted; a finding is accepted by an entry of the ledger"),
        ("[[policy.never]]\nexcept = ['x']", "policy.never.paths: the key is missing"),
    ],
)
def test_what_is_not_understood_is_named_in_both_files(text: str, words: str) -> None:
    with pytest.raises(MalformedError) as error:
        parse(text)
    assert words in str(error.value)
    inner = text.replace("[[policy", "[[tool.tripod.policy")
    with pytest.raises(MalformedError) as error:
        parse(f"[tool.tripod]\n{inner}", "pyproject.toml")
    assert words in str(error.value)
    assert str(error.value).startswith("[tool.tripod]: ")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("pyproject.toml", b"[[tool.tripod]]\n", "[tool.tripod]: the value is not a mapping"),
        ("pyproject.toml", b"tool.tripod = 3\n", "[tool.tripod]: the value is not a mapping"),
        ("pyproject.toml", b"[tool.tripod]\nx =\n", "Invalid value (at line 2, column 4)"),
        ("pyproject.toml", b"[tool.tripod]\n\xff", "line 2 is not UTF-8"),
        (
            "pyproject.toml",
            b"#tripod" * (PYPROJECT_SIZE // 7 + 1),
            f"more than {PYPROJECT_SIZE} bytes",
        ),
        ("tripod.toml", b"[policy]\nx = 'a' b\n", "(at line 2, column 9)"),
        # tomllib takes a minute for it, and is not asked.
        ("tripod.toml", b"\n" + b"a." * 30_000 + b"a = 1", "line 2: a key of more than 40 parts"),
        ("tripod.toml", b"[" + b'"a" . ' * 9_000 + b"a]", "line 1: a key of more than 40 parts"),
        ("tripod.toml", b"a" * 60_000, "it is no TOML"),
        ("tripod.toml", b'"' * 60_000, "it is no TOML"),
    ],
)
def test_bytes_that_are_no_settings_are_refused(name: str, data: bytes, words: str) -> None:
    with pytest.raises(MalformedError) as error:
        parse_configuration(name, data)
    assert words in str(error.value)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for name, front in (("tripod.toml", b""), ("pyproject.toml", b"[tool.tripod]\n")):
        with suppress(MalformedError):
            said = parse_configuration(name, front + data)
            assert said == Configuration() or b"=" in data


# In the work tree ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROJECT_FILES)
def test_a_broken_file_is_told_whatever_is_selected(shop: Git, name: str) -> None:
    path = says(shop, "[policy]\nlevle = 'PINNED'", name)
    report = verify(shop.root)
    assert (report.exit_code, "levle (did you mean level?)" in messages(report)[0]) == (1, True)
    report = verify(shop.root, select=["chain-links"])
    assert (report.exit_code, report.problem.partition(": ")[0]) == (3, path)


@pytest.mark.parametrize(
    "table", ["tripod", "tool.tripod-ledger", "tool.tripod_ledger", "tool.Tripod"]
)
def test_a_table_by_another_name_is_not_passed_over(table: str) -> None:
    """The package is called tripod-ledger: a demand in a table of that name demanded nothing."""
    with pytest.raises(MalformedError, match=r"\[tool\.tripod\]"):
        parse(f"[{table}.policy]\nlevel = 'PINNED'\n", "pyproject.toml")


def test_a_broken_file_is_told_without_a_ledger(tmp_path: Path) -> None:
    (tmp_path / ".nbs/chat").mkdir(parents=True)
    (tmp_path / "tripod.toml").write_text("[polcy]\n")
    report = verify(tmp_path, no_ledger=True, git=False)
    words = "unknown keys: polcy (did you mean policy?)"
    assert (report.exit_code, words in report.problem or words in str(report.notes)) == (3, True)


MAKERS: dict[str, Callable[[Path], None]] = {
    "link": lambda path: path.symlink_to("elsewhere.toml"),
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_no_plain_file_is_not_followed(shop: Git, kind: str) -> None:
    """In tripod.toml stand demands and nothing else; pyproject.toml may be other programs'."""
    shop.write("elsewhere.toml", b"[tool.tripod.policy]\nrequired = ['record-agrees']\n")
    for name, code in (("pyproject.toml", 0), ("tripod.toml", 3)):
        path = shop.root / name
        MAKERS[kind](path)
        report = verify(shop.root)
        said = messages(report) or [report.problem]
        path.rmdir() if kind == "folder" else path.unlink()
        assert (report.exit_code, report.warnings) == (code, code == 0)
        if code == 0:
            assert said[0].startswith("it is a link, or no file, and was not read: settings can")
        else:
            assert said[0].startswith(f"{path} cannot be read: ")


def test_a_huge_file_is_not_read(shop: Git) -> None:
    for name in PROJECT_FILES:
        shop.write(name, b"#" * 10_000_000)
        report = verify(shop.root)
        assert (report.exit_code, "more than" in report.problem) == (3, True)
        (shop.root / name).unlink()


# select ----------------------------------------------------------------------------------------


def test_a_file_that_is_judged_itself_leaves_out_advice_alone(shop: Git) -> None:
    """Else a request that edits a chat and the file would be clean."""
    every = judged(verify(shop.root))
    path = says(shop, "select = ['chain-links', 'decision-noise']")
    report = verify(shop.root)
    assert every - judged(report) == {"decision-missed"}
    (note,) = report.notes
    assert note.startswith(f"`select` in {path} leaves out decision-missed; ")
    says(shop, "select = ['chain-links']\n[policy]\nrequired = ['record-agrees']")
    chat = shop.root / ".nbs/chat/live.chat"
    whole = chat.read_bytes()
    chat.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    failing = {one.check for one in verify(shop.root).outcomes if one.failures}
    chat.write_bytes(whole)
    assert failing >= {"drift", "record-agrees"}


def test_a_commit_that_is_named_leaves_out_what_is_not_required(shop: Git) -> None:
    says(shop, "select = ['chain-links']\n[policy]\nrequired = ['supersession']")
    shop("add", "--all")
    shop("commit", "--quiet", "-m", "select")
    shop("tag", "--force", "base")
    shop("reset", "--quiet", "--hard", "HEAD~")
    says(shop, "select = ['drift', 'decision-missed']\n[policy]\nrequired = []", "pyproject.toml")
    report = verify(shop.root, policy_from="base")
    required = {one.check for one in report.outcomes if one.required}
    assert judged(report) == required >= {"chain-links", "supersession", "never-read"}
    assert " leaves out decision-ids-unique, " in report.notes[0]
    assert "select` in tripod.toml in commit " in report.notes[0]


def test_a_commit_that_is_named_says_where_reports_go(shop: Git) -> None:
    says(shop, "formats = ['json=tripod.base.json']", "pyproject.toml")
    shop("add", "--all")
    shop("commit", "--quiet", "-m", "formats")
    shop("tag", "--force", "base")
    shop("reset", "--quiet", "--hard", "HEAD~")
    says(shop, "formats = ['json=tripod.mine.json']")
    assert run(shop.root, "verify", "--policy-from", "base").code == 0
    assert sorted(path.name for path in shop.root.glob("tripod*.json")) == ["tripod.base.json"]


def test_the_caller_selects_what_no_file_can_and_the_report_says_so(shop: Git) -> None:
    says(shop, "select = ['decision-noise']")
    report = verify(shop.root, select=["drift"])
    assert judged(report) == {"drift"}
    words = "only these checks were selected, and nothing is said of the others: drift"
    assert report.notes == (words,)
    for options in ((), ("-v",), ("--json",), ("--format", "sarif")):
        done = run(shop.root, "verify", "--select", "drift", *options)
        assert (done.code, words.encode() in done.out) == (0, True), done.out


def test_a_name_that_no_check_has_selects_nothing(shop: Git) -> None:
    says(shop, "select = ['drfit']")
    report = verify(shop.root)
    assert report.exit_code == 3
    assert report.problem.endswith("names 'drfit', and there is no such check. Did you mean drift?")


# never -----------------------------------------------------------------------------------------


def test_a_rule_of_the_caller_stands_besides_those_of_the_policy(shop: Git) -> None:
    says(shop, "[[policy.never]]\npaths = ['*.key']", "pyproject.toml")
    session = shop.root.parent / "s.jsonl"
    session.write_text(
        '{"type":"user","sessionId":"r1","version":"2.1.209","cwd":"/srv","timestamp":'
        '"2026-11-20T10:00:00Z","message":{"role":"user","content":"Look at notes.md."}}\n'
        '{"type":"assistant","sessionId":"r1","version":"2.1.209","cwd":"/srv","timestamp":'
        '"2026-11-20T10:00:05Z","message":{"role":"assistant","content":[{"type":"tool_use",'
        '"id":"c1","name":"Read","input":{"file_path":"/srv/notes.md"}}]}}\n'
        '{"type":"user","sessionId":"r1","version":"2.1.209","cwd":"/srv","timestamp":'
        '"2026-11-20T10:00:06Z","message":{"role":"user","content":[{"type":"tool_result",'
        '"tool_use_id":"c1","content":"blue"}]}}\n'
    )
    assert run(shop.root, "import", str(session), "--as", "ann").code == 0
    never = ("verify", "--select", "never-read", "--json")
    assert b"was shown" not in run(shop.root, *never).out
    done = run(shop.root, *never, "--never", "*.md")
    assert (done.code, b"session r1 was shown /srv/notes.md" in done.out) == (1, True), done.out
    (told,) = json.loads(done.out)["checks"]
    assert told["coverage"]["rules"] == 2
    assert json.loads(done.out)["judged"]["settings"][-1] == "--never"
    done = run(shop.root, *never, "--never", "*.md", "--except", "notes.*")
    assert b"was shown" not in done.out
    assert verify(shop.root, never=["*.md"]).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--except", "x"], "--except needs --never"),
        (["--never", ".env|.pem"], "--never: the glob '.env|.pem' cannot be used"),
        (["--never", "x", "--except", "x"], "--never: the exceptions of a rule leave none"),
        (["--never", ""], "--never: "),
        (["--never", "x", "--grow-only", "f"], "--grow-only judges files by git alone"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_a_wrong_argument(
    shop: Git, arguments: list[str], words: str
) -> None:
    done = run(shop.root, "verify", *arguments)
    assert (done.code, words in done.err) == (2, True), done.err


# formats ---------------------------------------------------------------------------------------


def test_a_file_knows_the_formats_of_the_command() -> None:
    assert set(ENDINGS) == set(FORMATS)


def test_a_report_of_before_is_no_report_of_a_run_that_could_not_judge(shop: Git) -> None:
    says(shop, "formats = ['json=tripod.json']")
    assert run(shop.root, "verify").code == 0
    assert run(shop.root, "verify", "--pin", "nofile").code == 3
    value = json.loads((shop.root / "tripod.json").read_bytes())
    assert (value["exit_code"], value["problem"][:6]) == (3, "no pin")


def test_reports_that_a_file_asks_for_are_written_besides_the_text(shop: Git) -> None:
    plain = run(shop.root, "verify").out
    says(shop, "formats = ['sarif=tripod.sarif', 'json=out/tripod.json']")
    (shop.root / "out").mkdir()
    (shop.root / "sub").mkdir()
    done = run(shop.root / "sub", "verify")
    assert (done.code, done.out) == (0, plain)
    whole = json.loads((shop.root / "out/tripod.json").read_bytes())
    assert whole["judged"]["settings"] == [f"{shop.root}/tripod.toml"]
    assert json.loads((shop.root / "tripod.sarif").read_bytes())["version"] == "2.1.0"
    for path in ("out/tripod.json", "tripod.sarif"):
        (shop.root / path).unlink()
    # The command line replaces them; nothing is written where nothing is to be changed, nor by
    # somebody who judges the project from outside of it.
    assert run(shop.root, "verify", "--format", "text=mine.txt").code == 0
    assert run(shop.root, "verify", "--json").code == 0
    assert run(shop.root, "--read-only", "verify").code == 0
    assert run(shop.root.parent, "verify", "shop").code == 0
    assert not (shop.root / "out/tripod.json").exists()
    assert not (shop.root / "tripod.sarif").exists()
    assert (shop.root / "mine.txt").read_bytes() == plain


def test_in_a_linked_work_tree_a_report_lands_there(shop: Git) -> None:
    there = shop.root.parent / "linked"
    says(shop, "formats = ['junit=tripod.xml']")
    shop("worktree", "add", "--quiet", "--detach", str(there))
    assert run(there, "verify").code == 0
    shop("worktree", "remove", "--force", str(there))
    assert not (shop.root / "tripod.xml").exists()


def test_no_link_leads_a_report_to_another_file(shop: Git) -> None:
    names = ("json=out/tripod.json", "junit=tripod.xml", "text=tripod.txt", "sarif=tripod.sarif")
    says(shop, f"formats = {[*names]}")
    (shop.root / "package.json").write_text("{}")
    (shop.root / "real").mkdir()
    (shop.root / "real/tripod.json").symlink_to("../package.json")
    (shop.root / "out").symlink_to("real")
    os.mkfifo(shop.root / "tripod.xml")
    (shop.root / "tripod.sarif.places.txt").symlink_to("package.json")
    done = run(shop.root, "verify")
    assert (done.code, b"checks hold" in done.out) == (1, True)
    assert done.err.count("a link or no file is in the way") == 3
    assert (shop.root / "package.json").read_text() == "{}"
    assert (shop.root / "tripod.txt").read_bytes() == done.out


@pytest.mark.parametrize(
    ("one", "words"),
    [
        ("sarf=tripod.sarif", "there is no format 'sarf'; there are text, json, sarif, junit"),
        ("json", "name the file behind a =, such as json=tripod.json"),
        ("json=/srv/tripod.json", "leads from the top of the project to a file below it"),
        ("json=../tripod.json", "leads from the top of the project"),
        ("json=a/./tripod.json", "leads from the top of the project"),
        ("json=tripod.json\n", "leads from the top of the project"),
        ("json=.git/tripod.json", "no report goes into .git or .nbs"),
        ("json=a/.NBS/tripod.json", "no report goes into .git or .nbs"),
        (
            "json=package.json",
            "name the file as tripod.json: its name must begin with tripod and end with .json",
        ),
        ("text=tripod.toml", "its name must begin with tripod and end with .txt"),
        ("sarif=tripod/main.py", "begin with tripod and end with .sarif or .json"),
    ],
)
def test_a_path_that_could_be_another_file_is_refused(one: str, words: str) -> None:
    with pytest.raises(MalformedError) as error:
        parse(f"formats = [{json.dumps(one)}]")
    assert words in str(error.value)


def test_two_reports_of_a_file_have_two_places() -> None:
    with pytest.raises(MalformedError, match=r"two reports go to tripod\.json"):
        parse("formats = ['json=tripod.json', 'sarif=tripod.json']")
    with pytest.raises(MalformedError, match="two reports go to"):
        parse("formats = ['text=tripod.json.places.txt', 'sarif=tripod.json']")
    assert parse("formats = 'json=tripod.json'").formats == ("json=tripod.json",)


# In a clone ------------------------------------------------------------------------------------


def test_a_clone_without_a_ledger_is_judged_by_the_files_in_its_work_tree(
    shop: Git, tmp_path: Path
) -> None:
    says(shop, "formats = ['json=tripod.json']\n[policy]\nlevel = 'WITNESSED'", "pyproject.toml")
    shop("add", "pyproject.toml")
    shop("commit", "--quiet", "-m", "demand")
    clone = tmp_path / "clone"
    shop("clone", "--quiet", str(shop.root), str(clone))
    shop("-C", str(clone), "fetch", "--quiet", "origin", "+refs/tripod/*:refs/tripod-remotes/o/*")
    done = run(clone, "verify")
    assert (done.code, b"the policy asks for WITNESSED" in done.out) == (1, True), done.out
    (part,) = json.loads((clone / "tripod.json").read_bytes())["parts"]
    assert part["judged"]["settings"] == [f"{clone}/pyproject.toml"]
    shop("reset", "--quiet", "--hard", "HEAD~")


def test_a_bare_repository_is_judged_by_the_commit_of_its_head(tmp_path: Path) -> None:
    git = Git(tmp_path / "work")
    git.commit("pyproject.toml", b"[tool.tripod.policy]\nrequired = ['record-agrees']\n")
    git("clone", "--quiet", "--bare", str(git.root), str(tmp_path / "shop.git"))
    git("-C", str(tmp_path / "shop.git"), "worktree", "add", "--quiet", str(tmp_path / "tree"))
    begin(tmp_path / "tree")
    failing = {one.check for one in verify(tmp_path / "tree").outcomes if one.failures}
    assert failing == {"record-agrees"}
    git.commit("pyproject.toml", b"[tool.tripod]\nformats = ['json=tripod.json']\n")
    git("push", "--quiet", "--force", str(tmp_path / "shop.git"), "main:main")
    assert run(tmp_path / "shop.git", "verify").code == 0
    assert not (tmp_path / "shop.git/tripod.json").exists()
    assert run(tmp_path / "tree", "verify").code == 0
    assert (tmp_path / "tree/tripod.json").exists()


# Of several ------------------------------------------------------------------------------------

WORDS = st.lists(st.sampled_from("abc"), unique=True, max_size=2).map(tuple)
ONE = st.builds(
    Said,
    st.sampled_from("xyz"),
    st.just("p"),
    st.builds(Configuration, st.builds(Rules, given_up=WORDS, required=WORDS), WORDS, st.just(())),
    st.booleans(),
)


@given(st.lists(ONE, max_size=3))
def test_a_further_file_takes_no_demand_away(found: list[Said]) -> None:
    rules, configured, problem = join_configurations(found)
    for one in found:
        assert {*rules.required} >= {*one.said.policy.required}
        if one.is_outside:
            assert {*rules.given_up} <= {*one.said.policy.given_up}
    saying = [one for one in found if one.said.select]
    assert (problem != "") == (len(saying) > 1)
    assert configured.select == (saying[0].said.select if len(saying) == 1 else ())
    assert configured.is_outside == (len(saying) == 1 and saying[0].is_outside)
