"""Small git repositories for tests: made by git itself, with a clock and names of their own."""

import os
import subprocess
from contextlib import closing
from pathlib import Path

from tripod.ledger.locator import database_of
from tripod.ledger.sqlite.reader import read_only
from tripod.trust.export import update_record
from tripod.trust.seal import newest

__all__ = ["Git", "track", "write_tracked_record"]

_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.com",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.com",
    "GIT_CONFIG_GLOBAL": str(Path(__file__).with_name("gitconfig")),
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}


_IGNORED = b"ledger.db*\n*.lock\nspool/\nrecord.replaced-*/\n"


def track(root: Path) -> None:
    """Have git see the team's files, but its database: those of an earlier version were tracked.

    Such a team was begun with its ledger in ``.nbs``; call it where the team was begun before the
    repository, or the ledger is elsewhere.
    """
    (root / ".nbs/.gitignore").write_bytes(_IGNORED)


def write_tracked_record(root: Path) -> None:
    """Bring the record in the work tree up to the newest seal, as an earlier version did itself."""
    database = database_of(f"{root}/.nbs")
    if not os.path.exists(database) or os.path.islink(root / ".nbs/record"):
        return
    with closing(read_only(database)) as db:
        made = newest(db)
    if made is not None:
        update_record(f"{root}/.nbs", database, made.note)


class Git:
    """A repository at ``root``; every commit is a minute after the one before."""

    def __init__(self, root: Path, *, made: bool = True) -> None:
        self.root = root
        self.seconds = 1_600_000_000
        if made:
            root.mkdir(parents=True, exist_ok=True)
            self("init", "--quiet", "--initial-branch=main")

    def __call__(self, *arguments: str, given: bytes | None = None) -> str:
        """Run git; give what it prints."""
        self.seconds += 60
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{self.seconds} +0000")
        done = subprocess.run(
            ["git", "-C", str(self.root), *arguments],
            env=os.environ | _ENVIRONMENT | dates,
            input=given,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def write(self, path: str, data: bytes) -> str:
        """Write a file of the work tree; give its full path."""
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(data)
        return str(full)

    def commit(self, path: str, data: bytes | None, message: str = "say more") -> str:
        """Commit one file (None: its removal); give the commit's name."""
        if data is None:
            self("rm", "--quiet", "--", path)
        else:
            self.write(path, data)
            self("add", "--force", "--", path)
        self("commit", "--quiet", "--allow-empty", "-m", message)
        return self("rev-parse", "HEAD")

    def merge(self, branch: str, path: str, data: bytes) -> str:
        """Merge a branch so that the file is ``data``."""
        self("merge", "--quiet", "--strategy=ours", "--no-commit", branch)
        return self.commit(path, data, f"merge {branch}")

    def history(self, path: str, versions: list[bytes | None]) -> None:
        """Commit all versions (None: no file) at once: far faster than one by one."""
        lines = []
        for number, data in enumerate(versions):
            lines.append(b"commit refs/heads/main\n")
            lines.append(b"committer Ann <ann@example.com> %d +0000\n" % (1_600_000_000 + number))
            lines.append(b"data 1\nx\n")
            if data is None:
                lines.append(b"D %b\n\n" % path.encode())
            else:
                lines.append(
                    b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data)
                )
        self("fast-import", "--quiet", "--force", given=b"".join(lines))
        self("reset", "--quiet", "--hard", "main")
