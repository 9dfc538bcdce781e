"""Repositories whose configuration, attributes and hooks name a program wherever they can."""

import re
import shutil
import subprocess
from pathlib import Path

from git_repo import Git

__all__ = ["Canary", "plant"]

HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "post-applypatch",
    "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive",
    "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-push",
    "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "update",

)  # fmt: skip

_COMMANDS = """
[alias]
	status = !{program}
	config = !{program}
[branch "main"]
	remote = x
[browser "x"]
	cmd = {program}
[core]
	alternateRefsCommand = {program}
	askPass = {program}
	editor = {program}
	fsmonitor = {program}
	gitProxy = {program}
	hooksPath = {hooks}
	pager = {program}
	sshCommand = {program}
[credential]
	helper = !{program}
[credential "https://example.com"]
	helper = !{program}
[diff]
	external = {program}
	tool = x
[difftool "x"]
	cmd = {program}
[filter "x"]
	required = true
[gc]
	auto = 1
	recentObjectsHook = {program}
[gpg]
	program = {program}
[includeIf "gitdir:**"]
	path = {more}
[includeIf "hasconfig:remote.*.url:**"]
	path = {more}
[interactive]
	diffFilter = {program}
[log]
	showSignature = true
[maintenance]
	auto = true
[pager]
	config = {program}
	log = {program}
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[push]
	gpgSign = if-asked
	recurseSubmodules = on-demand
[remote "x"]
	url = ext::{program}
	vcs = x
[sequence]
	editor = {program}
[submodule "x"]
	update = !{program}
	url = ext::{program}
[trailer "x"]
	cmd = {program}
	command = {program}
	ifmissing = add
[transfer]
	fsckObjects = true
[tripod]
	none = {program}
[uploadpack]
	packObjectsHook = {program}
[url "ext::{program} "]
	insteadOf = https://
	insteadOf = ssh://
	insteadOf = file://
	insteadOf = /
	pushInsteadOf = /
"""
"""Settings by which git runs a command, where a path alone would not do."""


class Canary:
    """A program that leaves a mark when it is run, in whatever way."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.mark = folder / "mark"
        self.program = folder / "canary"
        self.program.write_text(
            f'#!/bin/sh\necho "$0 $*" >> {self.mark}\nexit 0\n', encoding="ascii"
        )
        self.program.chmod(0o755)

    @property
    def fired(self) -> str:
        return self.mark.read_text(encoding="utf-8") if self.mark.exists() else ""


_FORMAT = "core.repositoryFormatVersion"


def settings() -> list[tuple[str, str, str]]:
    """Every setting that git knows, as section, subsection and name; but those of the format.

    The format is asked for first by any program that reads a repository, and runs nothing.
    """
    said = subprocess.run(["git", "help", "--config"], check=True, capture_output=True, text=True)
    found = []
    for line in said.stdout.split("\n"):
        for below in ("origin", "main", "x", "https://example.com/"):
            key = line.strip().replace("*", below)
            while "<" in key:
                key = f"{key.partition('<')[0]}{below}{key.partition('>')[2]}"
            section, _, name = key.rpartition(".")
            section, _, middle = section.partition(".")
            if re.fullmatch("[A-Za-z][A-Za-z0-9-]*", name) and key != _FORMAT and section:
                found.append((section, middle, name))
    more = [(kind, "x", name) for kind in ("filter", "diff", "merge", "gpg", "alias", "credential")
            for name in ("clean", "smudge", "process", "command", "textconv", "driver", "program",
                         "helper", "required")]  # fmt: skip
    return [one for one in dict.fromkeys([*found, *more]) if one[0] != "extensions"]


def plant(git: Git, canary: Canary, address: str) -> None:
    """Name the canary wherever a repository can name anything; its remote is at ``address``."""
    program = str(canary.program)
    folder = git.root / ".git"
    more, hooks = folder / "more", folder / "hooks"
    lines = [
        f'[{section} "{below}"]\n\t{name} = "{program}"\n' if below
        else f'[{section}]\n\t{name} = "{program}"\n'
        for section, below, name in settings()
    ]  # fmt: skip
    assert len(lines) > 500
    more.write_text("".join(lines), encoding="utf-8")
    commands = _COMMANDS.format(program=program, more=more, hooks=hooks)
    format_ = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n"
    remote = (
        f'[remote "origin"]\n\turl = {address}\n\tpushurl = {address}\n[include]\n\tpath = {more}\n'
    )
    text = "".join(lines) + commands
    (folder / "config").write_text(format_ + text + remote, encoding="utf-8")
    (folder / "config.worktree").write_text(text, encoding="utf-8")
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        shutil.copy(program, hooks / name)
    for name in ("git", "git-remote-ext", "git-remote-x", "git-config", "git-upload-pack"):
        shutil.copy(program, git.root / name)
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info/attributes").write_text("* filter=x diff=x merge=x\n", encoding="ascii")
    (git.root / ".gitattributes").write_text("* filter=x diff=x merge=x\n", encoding="ascii")
