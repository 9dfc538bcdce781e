"""The reviewer sees neither the ledger in the common directory nor the records on refs."""

from pathlib import Path

import pytest
from git_repo import Git

from tripod.agents import folder as agent_folder
from tripod.agents.isolation import refuse_to_show
from tripod.errors import RefusedError
from tripod.ledger.locator import database_of
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.isolation.breach import shows_reading_of_chat


def test_the_common_directory_is_hidden_wherever_it_is(tmp_path: Path) -> None:
    git = Git(tmp_path / "shop", made=False)
    git.root.mkdir()
    git("init", "--quiet", "--separate-git-dir", str(tmp_path / "elsewhere.git"))
    root = adoption.init(str(git.root), project="shop").root
    with Team(root) as team:
        secret, _ = agent_folder._secret(team)
    assert {str(tmp_path / "elsewhere.git"), str(Path(database_of(root)).parent)} <= set(secret)
    assert len(set(secret)) == len(secret)
    with pytest.raises(RefusedError):
        refuse_to_show(str(tmp_path / "elsewhere.git"), secret)


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-wal", "hook-problem"])
def test_the_ledger_of_another_repository_is_not_shown(tmp_path: Path, name: str) -> None:
    path = tmp_path / "other/.git/tripod" / name
    path.parent.mkdir(parents=True)
    path.write_text("words")
    for shown in (path, tmp_path / "other"):
        with pytest.raises(RefusedError, match="a place of what a team says"):
            refuse_to_show(str(shown), [])


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("$ git show refs/tripod/ann-0123456789abcdef:bodies/000.jsonl", True),
        ("$ git cat-file -p refs/tripod-remotes/origin/ann-0123456789abcdef^{tree}", True),
        ("$ sqlite3 .git/tripod/ledger.db 'select 1'", True),
        ("$ cp -r ../shop/.git/tripod /tmp/x", True),
        ("$ tripod log -n 20", True),
        ("$ tripod query 'select text from log'", True),
        ("$ tripod scribe log 'Serve tea'", False),
        ("$ git show HEAD:src/main.py", False),
        ("$ git push origin refs/tripod/ann-0123456789abcdef", False),
    ],
)
def test_a_reading_of_the_ledger_or_of_a_record_is_a_breach(line: str, reads: bool) -> None:
    assert shows_reading_of_chat(line) is reads
