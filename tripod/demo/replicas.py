"""A team's week over git, told: an earlier version's clones, worktrees, branches, accidents.

Every act is a command that a person runs, each in a process of its own. Each evening all meet by
``tripod push`` and ``tripod pull``, and then: every decision and message of the week stands once
in each replica, ``git status`` shows nothing of the team's files, and ``verify`` is
clean. What was done wrong at the week's end is named.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tripod.ledger.locator import database_of

_TRIPOD = (sys.executable, "-c", "from tripod.cli import main; main()")
_ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}
_FIRST_AT = re.compile(r" \[\S+/D-\d+\]$")  # the maker's id, behind a title whose second was taken


class Ran(NamedTuple):
    """How a command ended: its code, and all that it said."""

    code: int
    said: str


class Developer(NamedTuple):
    """Somebody with a clone, and a home for keys and seals."""

    name: str
    clone: str
    home: str

    def run(self, *command: str, at: str = "") -> Ran:
        """Run a command in the clone, or in a worktree beside it."""
        who = {f"GIT_{role}_NAME": self.name for role in ("AUTHOR", "COMMITTER")}
        mail = {f"GIT_{role}_EMAIL": f"{self.name}@shop" for role in ("AUTHOR", "COMMITTER")}
        ours = {"TRIPOD_HOME": self.home, "TRIPOD_AS": self.name}
        # Hooks call `tripod` by its name.
        path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        done = subprocess.run(
            command,
            cwd=os.path.join(self.clone, at),
            env=os.environ | _ALONE | who | mail | ours | {"PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode("utf-8", "replace").strip())

    @property
    def log(self) -> list[str]:
        """The titles of the decisions in the log file, as they were first given; sorted."""
        with open(f"{self.clone}/.nbs/scribe/log.md", encoding="utf-8") as file:
            titles = [line.split(" ", 2)[2].strip() for line in file if line.startswith("### D-")]
        return sorted(_FIRST_AT.sub("", title) for title in titles)


class Week:
    """The team at work in ``folder``: who is there, what was decided, what went otherwise."""

    def __init__(self, folder: str, tell: Callable[[str, str], None]) -> None:
        self.folder = folder
        self.tell = tell
        self.wrong = 0
        self.decided: list[str] = []
        self.said: list[str] = []

    def must(self, who: Developer, *command: str, at: str = "", code: int = 0) -> str:
        """Run a command that is to end with ``code``; give what it said."""
        ran = who.run(*command, at=at)
        if ran.code != code:
            self.wrong += 1
            self.tell("bad", f"  {who.name}: {' '.join(command)}: exit {ran.code}: {ran.said}")
        return ran.said

    def git(self, who: Developer, *words: str, at: str = "") -> str:
        """Run git."""
        return self.must(who, "git", *words, at=at)

    def tripod(self, who: Developer, *words: str, at: str = "", code: int = 0) -> str:
        """Run ``tripod``."""
        return self.must(who, *_TRIPOD, *words, at=at, code=code)

    def shown(self, who: Developer, *words: str, code: int = 0) -> str:
        """Run ``tripod``, and show the command with what it said."""
        self.tell("do", f"({who.name}) tripod {' '.join(words)}")
        said = self.tripod(who, *words, code=code)
        for line in said.splitlines():
            self.tell("plain", f"  {line}")
        return said

    def see(self, what: str, *, good: bool) -> None:
        """Say whether something is as it is to be."""
        self.wrong += not good
        self.tell("good" if good else "bad", f"  {what}{'' if good else ': NOT SO'}")

    def begin(self) -> tuple[Developer, Developer]:
        """Two clones that an earlier version's commands left go on with today's."""
        ann, bob = (self.developer(name) for name in ("ann", "bob"))
        for who in (ann, bob):
            self.tripod(who, "init", "--untrack")
            self.tripod(who, "hooks", "install")
            self.git(who, "commit", "--quiet", "--message", "track the team's files no more")
        self.git(ann, "push", "--quiet", "origin", "main")
        self.shown(ann, "push")
        self.shown(bob, "pull", code=1)
        self.shown(bob, "restore", "--as-copy")
        self.decided += ["Files", "Anns own", "Bobs own"]
        return ann, bob

    def developer(self, name: str) -> Developer:
        """Whose clone and home lie beside the others'."""
        return Developer(name, f"{self.folder}/{name}", f"{self.folder}/home-{name}")

    def clone(self, name: str) -> Developer:
        """A developer with a fresh clone of the shop's repository."""
        who = self.developer(name)
        self.git(who._replace(clone=self.folder), "clone", "--quiet", "shop.git", name)
        return who

    def work(self, who: Developer, what: str, at: str = "") -> None:
        """Change the code, say so, decide something, commit."""
        with open(os.path.join(who.clone, at, f"{what}.py"), "a", encoding="utf-8") as file:
            file.write(f"# {what}\n")
        self.said.append(f"working on {what}")
        self.tripod(who, "chat", "send", "live", self.said[-1], at=at)
        self.decide(who, f"Begin {what} with a test", at=at)
        self.git(who, "add", ".", at=at)
        self.git(who, "commit", "--quiet", "--message", what, at=at)

    def decide(self, who: Developer, title: str, at: str = "") -> None:
        """Log a decision on the last message."""
        words = ("-p", who.name, "-r", "It was agreed.", "--ref", "last")
        self.tripod(who, "scribe", "log", title, *words, at=at)
        self.decided.append(title)
        if ".nbs" in self.git(who, "status", "--porcelain", "--untracked-files=all", at=at):
            self.see(f"git status shows nothing of the team behind {title}", good=False)

    def evening(self, *team: Developer) -> None:
        """All meet, and everything is everywhere."""
        for verb in ("push", "pull"):
            for who in team:
                self.tripod(who, verb)
        every = sorted(self.decided)
        once = all(who.log == every for who in team)
        for who in team:
            read = self.tripod(who, "chat", "read", "live").splitlines()
            once &= all(sum(line.endswith(said) for line in read) == 1 for said in self.said)
        unseen = not any(self.git(who, "status", "--porcelain") for who in team)
        with ThreadPoolExecutor() as pool:
            dirty = list(pool.map(lambda who: who.run(*_TRIPOD, "verify").code, team))
        self.see(
            f"evening: {len(every)} decisions and {len(self.said)} messages, "
            f"each once in {len(team)} replicas; "
            f"git status shows nothing; verify is {'not ' * any(dirty)}clean",
            good=once and unseen and not any(dirty),
        )


def play_week(folder: str, tell: Callable[[str, str], None]) -> int:
    """Tell it in ``folder``, where its two clones and their remote lie; give what went otherwise.

    Returns the number of such things.
    """
    tell("step", "A team's week over git: two clones, three worktrees, five branches")
    if shutil.which("git") is None:
        tell("plain", "  git is not here: this part is left out")
        return 0
    week = Week(folder, tell)
    ann, bob = _monday(week)
    _midweek(week, ann, bob)
    _thursday(week, ann, bob)
    bea = _friday(week, ann, bob)
    _copied_disk(week, ann, bea)
    _rewritten(week, ann, bea)
    return week.wrong


def _monday(week: Week) -> tuple[Developer, Developer]:
    """A team of an earlier version, in two clones; then a worktree for each branch."""
    ann, bob = week.begin()
    for who, branch in ((ann, "cart"), (ann, "pay"), (bob, "search")):
        tree = f"../{who.name}-{branch}"
        week.git(who, "worktree", "add", "--quiet", "-b", branch, tree)
        week.work(who, branch, at=tree)
    week.evening(ann, bob)
    return ann, bob


def _midweek(week: Week, ann: Developer, bob: Developer) -> None:
    """Branches come and go, both act before they meet; a rebase, and a force-push of the work."""
    week.tell("step", "Midweek: branches, a rebase and a force-push of the work")
    for branch in ("tax", "price"):
        week.git(ann, "checkout", "--quiet", "-b", branch, "main")
        week.work(ann, branch)
    week.tripod(ann, "bus", "publish", "ann", "task-complete", "high", "the tax is done")
    week.decide(bob, "Search by name only")
    week.git(ann, "push", "--quiet", "origin", "tax")
    week.git(ann, "rebase", "--quiet", "price", "tax")
    week.git(ann, "commit", "--quiet", "--amend", "--message", "tax, after the price")
    week.git(ann, "push", "--quiet", "--force", "origin", "tax")
    week.git(ann, "checkout", "--quiet", "main")
    week.git(ann, "merge", "--quiet", "--no-edit", "price", "tax")
    week.evening(ann, bob)
    week.tripod(bob, "bus", "ack-all")
    week.tripod(bob, "push")
    week.tripod(ann, "pull")
    left = "task-complete" in ann.run(*_TRIPOD, "bus", "check").said
    week.see("what bob acknowledged is acknowledged at ann's too", good=not left)


def _thursday(week: Week, ann: Developer, bob: Developer) -> None:
    """What git removes from a work tree, and a database that is gone."""
    week.tell("step", "Thursday: git stash --all, git clean -xfd, and a database that is gone")
    with open(f"{bob.clone}/scratch.txt", "w", encoding="utf-8") as file:
        file.write("not ours\n")
    week.git(bob, "stash", "--all", "--quiet")
    week.decide(bob, "Stash less")
    week.git(bob, "clean", "-xfdq")
    week.decide(bob, "Clean up more often")
    week.tripod(bob, "rebuild")
    os.unlink(database_of(f"{ann.clone}/.nbs"))
    shutil.rmtree(f"{ann.clone}/.nbs")
    week.tell("do", "(ann) rm -r .git/tripod/ledger.db .nbs")
    week.shown(ann, "restore")
    week.evening(ann, bob)


def _friday(week: Week, ann: Developer, bob: Developer) -> Developer:
    """A laptop is lost, with its key; its owner goes on with another."""
    week.tell("step", "Friday: bob's laptop is lost, with its key")
    for path in (bob.clone, bob.home, f"{bob.clone}-search"):
        shutil.rmtree(path)
    bea = week.clone("bea")
    week.tripod(bea, "init", "--from", "origin")
    every = sorted(week.decided)
    week.see("the new laptop has every decision", good=bea.log == every)
    week.work(bea, "locks")
    week.evening(ann, bea)
    return bea


def _copied_disk(week: Week, ann: Developer, bea: Developer) -> None:
    """Two disks with one replica and one key both go on."""
    week.tell("step", "A disk is copied: one replica, one key, and both go on")
    twin = Developer("ann", f"{week.folder}/twin", f"{week.folder}/home-twin")
    shutil.copytree(ann.clone, twin.clone, symlinks=True)
    shutil.copytree(ann.home, twin.home, symlinks=True)
    week.decide(ann, "Decided on the one disk")
    week.decide(twin, "Decided on the other disk")
    week.tripod(ann, "push")
    refused = week.shown(twin, "push", code=1)
    week.see("the second disk's push is refused by name", good="restore --as-copy" in refused)
    week.shown(twin, "restore", "--as-copy")
    week.evening(twin, ann, bea)


def _rewritten(week: Week, ann: Developer, bea: Developer) -> None:
    """A replica is rewritten with its key: database, seals and ref are the forger's own."""
    week.tell("step", "A replica is rewritten: its ledger, its seals and its ref, with its own key")
    tripod = os.path.dirname(database_of(f"{ann.clone}/.nbs"))
    for path in (tripod, ann.home):
        shutil.copytree(path, f"{path}.early", symlinks=True)
    week.decide(ann, "Pay the invoice")
    week.evening(ann, bea)
    for path in (tripod, ann.home):
        shutil.rmtree(path)
        os.rename(f"{path}.early", path)
    shutil.rmtree(f"{ann.clone}/.nbs")
    mine = week.git(
        ann, "for-each-ref", "--format=%(refname)", "refs/tripod/", "refs/tripod-remotes/"
    )
    for ref in mine.splitlines():
        week.git(ann, "update-ref", "-d", ref)
    shop = ann._replace(clone=f"{week.folder}/shop.git")
    for ref in week.git(
        shop, "for-each-ref", "--format=%(refname)", "refs/tripod/ann-*"
    ).splitlines():
        week.git(shop, "update-ref", "-d", ref)
    week.tripod(ann, "rebuild")
    week.tripod(ann, "chat", "send", "live", "the invoice is wrong")
    week.tripod(ann, "scribe", "log", "Do not pay", "-p", "ann", "-r", "So.", "--ref", "last")
    week.tripod(ann, "push")
    week.shown(bea, "pull", code=1)
    found = week.tripod(bea, "verify", code=1)
    for line in found.splitlines():
        if "peers-agree" in line:
            week.tell("bad", f"  {line.strip()}")
    week.see("verify at bea's names it", good="peers-agree" in found)
    week.see("bea keeps what was decided", good="Pay the invoice" in bea.log)
