"""Parsers of what others wrote: configuration, repositories, sessions, command lines."""

from __future__ import annotations

import atexit
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from torture.parsers.parser import Parser, as_list, as_text, as_unicode, golden, words_of
from tripod.agents import profiles
from tripod.agents.folder import transcripts_in
from tripod.cli import nbs
from tripod.cli.arguments import read_tripod_call
from tripod.errors import BadArgumentError, GitError
from tripod.ledger.errors import MalformedError
from tripod.projections import settings
from tripod.projections.nova.answers import read_answer, read_persona
from tripod.projections.team import intake
from tripod.projections.workers.answers import read_spec_answer
from tripod.trust.acceptance import read_baseline
from tripod.verify.anchors import configuration, git_folder
from tripod.verify.anchors import policy as rules
from tripod.verify.isolation import breach, witnesses
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.nova.turns import read_nova_subject
from tripod.verify.recorded.files import read_session_file
from tripod.verify.recorded.spool import read_spool
from tripod.verify.sessions import jsonl, powershell, readers, shell, syntax
from tripod.verify.sessions.exposure import SessionExposures, judge_exposures

MALFORMED = (MalformedError,)

# Configuration ----------------------------------------------------------------------------------


def settings_files() -> Iterator[Parser]:
    """Policies, settings, profiles, repositories, reports."""
    yaml = words_of(
        "- ·: ·&a ·*a·<<: *a·!!python/object:x ·? ·|\n·>\n·{·[·%YAML 1.1\n·---\n·...\n·"
        "!!binary ·!!set ·0o7·1:30:00·2026-02-12·~·.inf"
    )
    toml = words_of("[·[[·]]\n· = ·\"\"\"·'''·{·2026-02-12T01:02:03Z·inf·0x·tool.tripod.·.")
    one = partial(Parser, errors=MALFORMED)
    policies = (
        b"level: PINNED\nrequired: [drift]\nseals: a+c4faeb66+AYqI\n",
        (
            b"never:\n  - paths: [.env, secrets/**]\n    except: .env.example\n    role: worker\n"
            b"roles:\n  - role: worker\n    folder: work/*\naccept: ann\npeers: closed\n"
        ),
    )
    keys = tuple(
        key + b": " for key in words_of("level·never·paths·role·session·grade·since·signed")
    )
    yield one(
        "policy", rules.parse, (rules.parse, settings.read_settings), policies, words=(*yaml, *keys)
    )
    rules_of = (
        b'select = ["drift"]\n%b[%bpolicy]\nlevel = "PINNED"\n[[%bpolicy.never]]\npaths = ["x"]\n'
    )
    files = {
        "tripod.toml": rules_of % (b'formats = ["sarif=tripod.sarif"]\n', b"", b""),
        "pyproject.toml": b"[tool.tripod]\n" + rules_of % (b"", b"tool.tripod.", b"tool.tripod."),
    }
    for name, seed in files.items():
        yield one(
            name,
            partial(configuration.parse_configuration, name),
            (configuration.parse_configuration,),
            (seed,),
            words=toml,
        )
    yield one(
        "TOML",
        lambda data: settings.read_toml(data, 10_000),
        (settings.read_toml,),
        (b"[door]\nwidth = 3\n",),
        words=toml,
    )
    yield one(
        "YAML",
        settings.read_setting_entries,
        (settings.read_setting_entries,),
        policies,
        words=yaml,
    )
    yield one(
        "team's configuration",
        intake.parse_team_config,
        (intake.parse_team_config,),
        golden("documents/*/events/config.yaml"),
        errors=(),
        words=(*yaml, b"dedup-window: ", b"notify: poll", b"pythia-interval: ", b"\n"),
    )
    profile = b"argv: [claude, -p]\noutput: claude-stream-json\nenv: [HOME]\nisolated: {}\n"
    yield one(
        "profile",
        profiles.parse_profile,
        (profiles.parse_profile,),
        (profile,),
        words=yaml,
        errors=(BadArgumentError,),
    )
    yield one(
        "profile in TOML",
        partial(profiles.parse_profile, toml=True),
        (profiles.parse_profile,),
        (b'argv = ["claude", "-p"]\noutput = "text"\n',),
        words=toml,
        errors=(BadArgumentError,),
    )
    config = (
        b'[core]\n\tbare = false\n[remote "origin"]\n\turl = ./x\n'
        b"\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
    )
    yield one(
        "configuration of git",
        git_folder.plain_git_settings,
        (git_folder.plain_git_settings,),
        (config,),
        errors=(),
        words=words_of('[·]\n· = ·"·\\·;·#·include·\t'),
    )
    yield one(
        "list of git's settings",
        git_folder.listed_git_settings,
        (git_folder.listed_git_settings,),
        (b"core.bare\nfalse\0remote.origin.url\n./x\0",),
        errors=(),
        words=(b"\0", b"\n"),
    )
    for file, seed in (
        ("HEAD", b"ref: refs/heads/main\n"),
        ("packed-refs", b"# pack-refs with: peeled\n" + b"a" * 40 + b" refs/heads/main\n"),
    ):
        yield one(
            f"git's {file}",
            partial(_git_refs, file),
            (git_folder.read_git_refs,),
            (seed,),
            words=(b"ref: ", b"refs/heads/", b"../", b"^", b"#", b"a" * 40, b" "),
            errors=(GitError,),
        )
    report = {
        "checks": [
            {"check": "drift", "findings": [{"severity": "failure", "fingerprint": "ab" * 32}]}
        ],
        "parts": [],
    }
    yield one(
        "baseline",
        _in_file(read_baseline),
        (read_baseline,),
        (json.dumps(report).encode(),),
        words=words_of('"checks":·"parts":·[]·{}'),
        errors=(BadArgumentError,),
    )


def _in_file(read: Callable[[str], object], name: str = "input") -> Callable[[bytes], object]:
    """A reader of files, given bytes."""

    def of_bytes(data: bytes) -> object:
        path = _scratch() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return read(str(path))

    return of_bytes


@cache
def _scratch() -> Path:
    """A folder of this process, in memory where the system has such a place."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a new one in it
    folder = tempfile.mkdtemp(prefix="torture-input-", dir=where)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _git_refs(file: str, data: bytes) -> object:
    """The refs of a repository, one file of which holds these bytes."""
    folder = _scratch() / "git" / file
    if not folder.exists():
        (folder / "refs/heads").mkdir(parents=True)
        (folder / "refs/heads/main").write_bytes(b"b" * 40 + b"\n")
        (folder / "HEAD").write_bytes(b"ref: refs/heads/main\n")
    (folder / file).write_bytes(data)
    return git_folder.read_git_refs(
        git_folder.RepositoryPath(str(folder), "", str(folder), str(folder))
    )


# Recorded sessions, and what programs answer ----------------------------------------------------


def sessions() -> Iterator[Parser]:
    """Recorded sessions of each program."""
    names = words_of(
        '"type":·"tool_use"·"tool_result"·"content":·"uuid":·"parentUuid":·"id":·null·[]·'
        '{}·"cwd":"/w"·"file_path":·"command":"cat x"·\\ud800·"isSidechain":true·\n'
    )
    one = partial(Parser, words=names)
    for program in (
        "claude_code",
        "codex",
        "copilot",
        "gemini",
        "opencode",
        "cursor",
        "atif",
        "qwen",
    ):
        yield one(
            f"session of {program}",
            _in_file(_session, f"{program}.jsonl"),
            (read_session_file, readers.read_session),
            (),
        )
    yield one(
        "lines of JSON",
        lambda data: list(jsonl.session_records(data.splitlines(keepends=True))),
        (jsonl.session_records, jsonl.json_value),
        (b'{"type":"user","a":["\\ud83d"]}\n{"b":1}\n',),
    )
    heard = {
        "session_id": "s",
        "cwd": "/w",
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": "/w/.env"},
        "tool_use_id": "c",
    }
    events = tuple(data for data in golden("hook-spool/*/*.json") if len(data) < 2000)
    yield one(
        "events of hooks",
        _in_file(lambda path: read_spool(os.path.dirname(path)), "spool/0001-PreToolUse.json"),
        (read_spool,),
        (json.dumps(heard).encode(), *events[:6]),
    )


def _session(path: str) -> object:
    """What a session exposed, as ``tripod exposure`` finds it."""
    exposures = SessionExposures(NeverRule(["chat/**"]), ProtectedText(), "x", frozenset())
    found = read_session_file(path, exposures.add, is_named=True)
    if found.program is None:
        assert found.problem
        return found.problem
    exposures.end()
    return judge_exposures([exposures], Counter()).told


def panels() -> Iterator[Parser]:
    """Files of personas, answers of a panel, and what an agent's run is for."""
    words = words_of(
        '---\n·issues: ·know: ·"know":·NaN·1e999·epistemic: {·Epistemic: know=0.1, ·&a ·[['
    )
    one = partial(Parser, errors=MALFORMED, words=words)
    persona = (
        b"---\nrole: Critic\nshort_name: cae\nresponsibility: find flaws\npattern: critic\n---\n"
        b"You ask.\n"
    )
    yield one("persona", lambda data: read_persona(data, "a.md"), (read_persona,), (persona,))
    answers = {
        "critique": b'{"issues":[{"severity":"minor","text":"x"}]}',
        "synthesis": b"---\nproposal: x\nepistemic: {know: 0.5, uncertainty: 0.35}\n---\n",
        "expert": b"Use one.\nEpistemic: know=0.4, uncertainty=0.7\n",
        "revision": b'```json\n{"proposal":"x"}\n```\n',
    }
    for role, seed in answers.items():
        read = as_unicode(partial(read_answer, role))
        yield one(f"answer of a panel's {role}", read, (read_answer,), (seed,))
    subject = as_unicode(read_nova_subject)
    yield one("subject of a turn", subject, (read_nova_subject,), (b"tea/2-expert-a",))


def answers() -> Iterator[Parser]:
    """What programs print, and its traces in logs."""
    result = (
        b'{"type":"assistant","session_id":"s","message":{"content":[{"type":"tool_use","id":"c","name":"Read"}]}}\n'
        b'{"type":"result","subtype":"success","session_id":"s","result":"done","total_cost_usd":0.01,'
        b'"usage":{"input_tokens":3},"permission_denials":[{"tool_use_id":"c"}]}\n'
    )
    one = partial(Parser, words=words_of('"result"·"type":·null·[]·1e999·\\ud800·\n'))
    yield one(
        "answer as a stream",
        partial(read_spec_answer, "claude-stream-json"),
        (read_spec_answer,),
        (result,),
    )
    yield one(
        "answer as JSON",
        partial(read_spec_answer, "json"),
        (read_spec_answer,),
        (b'{"a":["\\ud800"]}',),
    )

    def run(data: bytes) -> object:
        found = witnesses.RunCalls("x", 1)
        witnesses.read_run(found, "s", data, "session_id")
        return sorted(found.calls.items()), sorted(found.denied)

    yield one("calls of a run", run, (witnesses.read_run,), (result,))
    rule = breach.ChatRule()
    yield one(
        "line of a log",
        as_unicode(as_list(breach.calls_in_line)),
        (breach.calls_in_line, breach.words_of_call),
        (
            b"> Read(a.md)",
            b"me@host:~$ cd x && cat y; echo `head z`",
            b"I ran `cat x`, and read y, then nbs-chat read z",
        ),
        words=words_of("`·$ ·> ·Read(·)·Bash(·\x1b[1m·nbs-chat read ·cat "),
    )
    yield one(
        "readings of the chat",
        as_unicode(as_list(rule.readings_in)),
        (breach.ChatRule.readings_in, breach.stream_value, breach.calls_in_stream),
        (
            result,
            b"$ head .nbs/chat/live.chat",
            b"> Read(.nbs/chat/live.chat)",
            *(b"$ " + one for one in _LINES),
        ),
    )
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a/b.jsonl"), io.BytesIO())
    yield one(
        "archive of transcripts",
        as_list(transcripts_in),
        (transcripts_in,),
        (archive.getvalue()[:2048],),
        words=(b"ustar\x0000", b"0000644\0", b"77777777777\0", b"../x", b"\x80", b"L"),
    )


# Command lines ----------------------------------------------------------------------------------


_LINES = words_of(
    "cd src && rg -n 'a b' lib.py 2>/dev/null | head -5·"
    'for f in *.md; do cat "$f"; done·cat <<EOF | tee x\n$(cat y)\nEOF\n·'
    "A=1 env -C /w python - < a.py; find . -name '*.env' -exec cat {} +·"
    "git -C /w show HEAD:chat/a.md; tar xf a.tar -C b; awk -f p.awk {a,b}/c·"
    "bash -c 'sed -n 1,3p a | xargs cat'"
)


def commands_of_shells() -> Iterator[Parser]:
    """Command lines: of shells, and of ``nbs-*``."""
    signs = words_of(
        "|·&&·;·$(·`·${x:-·}·<<E\n·E\n·<(·>·2>&1·'·\"·\\\n·$'·*·{a,b}·~·cd ·cat ·"
        "sed -n 1p ·xargs ·find . -exec ·git show HEAD:·for x in ·do ·done·if ·fi·eval ·"
        "bash -c ·python -c ·sudo ·env A=1 ·[[ ·$((·case "
    )
    some = _LINES
    one = partial(Parser, words=signs)
    yield one(
        "command of a shell",
        as_text(partial(shell.opened_by, cwd="/w")),
        (shell.opened_by, shell.read_syntax),
        some,
    )
    yield one(
        "plain command",
        as_text(syntax.plain_commands),
        (syntax.plain_commands,),
        (some[0], b"a|b|c d|e 'f'|", b"cat a b c"),
    )
    yield one(
        "braces",
        as_text(syntax.without_braces),
        (syntax.without_braces,),
        (b"src{/../.env,}", b"{1..9}{a,{b,c}}"),
    )
    yield one(
        "command of PowerShell",
        as_text(partial(powershell.opened_by_powershell, cwd="/w")),
        (powershell.opened_by_powershell,),
        (
            b"Get-Content -Path .\\chat\\a.md | Select-String 'x'; cd ..; gc b",
            b"foreach ($f in ls) { cat $f }",
        ),
        words=words_of("$·@(·@{·{·}·|·;·`·gc ·Get-Content ·-Path ·'@\n·$("),
    )
    yield one(
        "address of a file",
        as_text(shell.path_of_url),
        (shell.path_of_url,),
        (b"file:///w/a%20b",),
        words=(b"%", b"//", b"%zz"),
    )
    usage = "DIR [EVENT] --by=HANDLE [--processed]"
    grammar = nbs.nbs_grammar(usage)
    yield one(
        "words of nbs-*",
        as_text(lambda said: nbs.take_nbs_words_apart(said.split("\n"), usage, grammar)),
        (nbs.take_nbs_words_apart,),
        (b"dir\nx.event\n--by=ann\n--processed", b"--\n--x\n-- a"),
        words=words_of("--by=·--·\n--processed·\n"),
        errors=(BadArgumentError,),
    )
    yield one(
        "words of tripod",
        as_text(lambda said: read_tripod_call(said.split("\n"))),
        (read_tripod_call,),
        (b"bus\npublish\nann\nnote\nlow\ntext", b"chat\nread\nlive\n--as\nann\n-n\n3"),
        words=words_of("bus·chat·scribe·\n--·\n-n\n·=·--json\n·\n"),
    )
