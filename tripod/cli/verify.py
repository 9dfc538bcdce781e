"""``tripod verify``: the judge's verdict, for people, scripts and CI."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tripod.cli.commands import CommandCall, command_verb, first_sentence, log_keys_param
from tripod.errors import BadArgumentError, RefusedError, TripodError
from tripod.ledger.files import is_read_only, open_plain_file, replace_file
from tripod.ledger.locator import team_of, team_to_judge, work_tree_around
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import Seal
from tripod.output import emit, emit_report, one_line, remark
from tripod.projections.text import text_meant
from tripod.trust.proof import seal_of_proof, write_proved_pin
from tripod.verify import run as judging
from tripod.verify.anchors.anchors import AnchorOptions, OutsideError
from tripod.verify.anchors.comparison import is_compared_own_head, pin_after_comparison
from tripod.verify.anchors.configuration import PROJECT_FILES
from tripod.verify.anchors.file_growth import judge_growth_of
from tripod.verify.anchors.pins import is_pin_folder
from tripod.verify.anchors.policy import Forbidden, forbidden_files
from tripod.verify.check import FINDINGS, Finding, Report, outcome
from tripod.verify.checks import pins_extend
from tripod.verify.evidence import OpenEvidence, evidence_changed, judge_until_still
from tripod.verify.export import is_export, is_proof, judge_proof
from tripod.verify.finding import finding_fingerprint
from tripod.verify.finding_place import top_of_paths
from tripod.verify.reporters import json, text

FORMATS = ("text", "json", "sarif", "junit", "github")
_PLACES = ".places.txt"  # what the file beside a report in SARIF is called after it
_SUMMARY = "GITHUB_STEP_SUMMARY"
_BEGINS = re.compile(
    rb"""\{\n  "version": 1,\n  "what": |\{"\$schema": "https://docs\.oasis-open\.org/sarif/"""
    rb"""|<\?xml version='1\.0' encoding='utf-8'\?>\n<testsuites name="tripod verify\""""
    rb"""|::(?:error|warning|notice) |tripod verify: findings whose place """
)
_ENDS = re.compile(
    rb"(?:\A|\n)(?:\d+ findings?, \d+ warnings?|[\d,]+ checks? holds?(?: over \d|; \d)"
    rb"|cannot judge:|what was asked for:)[^\n]*\n\Z"
)
"""How a report begins, and how one in text ends."""
_LOOK = 65_536  # bytes of each end of a file


def _verify(call: CommandCall) -> int:
    list(_outputs(call))  # what is wrong with these is said before anything is judged
    checks = judging.all_checks()
    names = [check.NAME for check in checks]
    for name in (*call.select, *([call.explain] if call.explain else [])):
        if name not in names:
            known = ", ".join(names)
            each = ". Give --select for each check" if "," in name else text_meant(name, names)
            raise BadArgumentError(f"no check {name!r}; there are {known}{each}")
    if call.list:
        for check in checks:  # what it proves is the first sentence of its manual
            package = getattr(check, "PACKAGE", "")
            name = f"{check.NAME} ({package})" if package else check.NAME
            emit([f"{name:<20} {first_sentence(check.__doc__ or '').rstrip('.')}"])
        return 0
    if call.explain:
        emit_report(judging.check_manual(call.explain))
        return 0
    if call.staged and (not call.grow_only or call.path):
        raise BadArgumentError(
            "--staged goes with --grow-only FILE, for each file that must only grow, without PATH"
        )
    _refuse_to_replace_evidence(call)
    if call.grow_only and call.path is None:
        others = (
            call.select, call.no_ledger, call.pin, call.policy, call.key, call.old, call.since,
            call.policy_from, call.never,
        )  # fmt: skip
        if any(others):
            raise BadArgumentError(
                "--grow-only judges files by git alone: give no other option, or a PATH as well"
            )
        with call.progress():
            report = judge_growth_of(call.grow_only, staged=call.staged)
        return _say(call, report)
    return _judge_subject(call)


def _judge_subject(call: CommandCall) -> int:
    if call.pin is None and (call.update_pin or call.new_only):
        raise BadArgumentError("--update-pin and --new-only go with --pin FILE")
    if call.update_pin and (call.select or call.since is not None):
        option = "--select" if call.select else "--since"
        raise BadArgumentError(
            f"--update-pin remembers what was judged whole: give no {option} with it"
        )
    if call.since is not None and call.new_only:
        raise BadArgumentError("--since and --new-only: give one of them")
    asked = AnchorOptions(
        call.pin,
        call.update_pin,
        call.new_only,
        call.policy,
        not call.no_git,
        call.since,
        call.policy_from,
        rule_besides(call),
    )
    keys, path = tuple(log_keys_param(call.key)), team_to_judge(call.path)
    if is_proof(path):
        others = (call.pin, call.policy, call.since, call.policy_from, call.never, call.grow_only)
        if any(others):
            raise BadArgumentError(
                f"{path} is a proof: hold it against keys (--key) and a seal (--old)"
            )
        return _say(call, judge_proof(path, keys, seal_of_proof(call.old)[1] if call.old else None))
    if call.old:
        raise BadArgumentError(
            "--old goes with a proof as PATH: hold a ledger or an export against a head by --pin"
        )
    # Where others work in the team meanwhile, what was read is not of one moment: then what is
    # found is judged anew.
    report, code, said = judge_until_still(
        path, lambda left: _judge_once(call, path, keys, asked, last=not left)
    )
    if call.grow_only:
        with call.progress():
            report = judge_growth_of(call.grow_only, report)
        code = 1 if 1 in (code, report.exit_code) else max(code, report.exit_code)
    told = _say(call, report, _take_outputs(call, report))
    if said and not call.quiet:
        remark(one_line(said))
    return code or told


def rule_besides(call: CommandCall) -> Forbidden | None:
    """The rule of --never and --except."""
    but = call.values["except"]
    if but and not call.never:
        raise BadArgumentError("--except needs --never: it names exceptions from it")
    try:
        return forbidden_files(call.never, but) if call.never else None
    except ValueError as error:
        raise BadArgumentError(f"--never: {error}") from error


def _is_no_file(path: str) -> bool:
    return os.path.lexists(path) and not os.path.isfile(path)


def _take_outputs(call: CommandCall, report: Report) -> list[str]:
    """Take the reports that the project's own files name, where the call names none.

    Gives those that cannot be written, with the reason. They are written for people who work in
    the project alone: who judges another's by its path, or changes nothing, has nothing written.
    A link would lead them to another file than the one that is named.
    """
    told = next(filter(None, (one.subject for one in (report, *report.parts))), None)
    folder, formats = ("", ()) if told is None else told.formats
    if not formats or call.format or call.json or is_read_only():
        return []
    here, top = os.path.realpath(os.getcwd()), os.path.realpath(folder)
    tree = work_tree_around(here)
    if tree is not None and top in (tree.common, tree.home and os.path.realpath(tree.home)):
        top = os.path.realpath(tree.top)
    is_bare = tree is not None and tree.top == tree.common
    if is_bare or not f"{here}/".startswith(f"{top}/"):
        return []
    taken, lost = [], []
    for one in formats:
        name, _, path = one.partition("=")
        full = os.path.join(top, path)
        own = _files(name, full)
        if any(os.path.realpath(each) != each or _is_no_file(each) for each in own):
            lost.append(f"the report was not written to {full}: a link or no file is in the way")
        elif problem := next(filter(None, (_problem_of_output(call, each) for each in own)), ""):
            lost.append(f"the report was not written to {full}: {problem}")
        else:
            taken.append(f"{name}={full}")
    call.values = {**call.values, "format": tuple(taken)}
    return lost


def _judge_once(
    call: CommandCall, path: str, keys: tuple[VerifierKey, ...], asked: AnchorOptions, *, last: bool
) -> tuple[Report, int, str] | None:
    """The report, the exit code, what to say of the pin; None: to be judged again."""
    how: judging.HowToOpen = {"nearby": call.nearby, "keys": keys, "asked": asked}
    if not call.no_ledger:
        seen: dict[str, tuple[bytes | None, set[Seal]]] = {}  # the pin that is due, and the old one

        def judged(evidence: OpenEvidence, _: Report, replica: str) -> None:
            if not replica:
                return
            compared = {one.seal for one in evidence.outside.known if one.method == "pin"}
            seen[replica] = (pin_after_comparison(evidence) if asked.first else None), compared

        with call.progress():
            by_refs = judging.judge_refs(path, call.select or None, each=judged, **how)
        if by_refs is not None:
            return _move_pins(by_refs, asked, seen)
    with call.progress(), judging.open_run(path, no_ledger=call.no_ledger, **how) as evidence:
        report = judging.run(evidence, select=call.select or None)
        code = report.exit_code
        if code and not last and evidence_changed(evidence):
            return None
        if not asked.first or asked.pin is None:
            return report, code, ""
        # The pin goes forward where all is clean.
        data = None if code else pin_after_comparison(evidence)
        if data is None:
            return report, code, f"the pin {asked.pin} was left as it is"
        try:
            moved = write_proved_pin(
                asked.pin, data, lambda seal: is_compared_own_head(evidence, seal)
            )
        except (RefusedError, OutsideError, OSError) as error:
            said = f"the pin {asked.pin} was not written: {error}"
            return _with_pin_unmoved(report, asked.pin, said), 1, said
    size = data.decode().split("\n")[1]  # the second line of a seal or a head
    return report, code, f"the pin {asked.pin} remembers {size} entries" if moved else ""


def _move_pins(
    report: Report, asked: AnchorOptions, seen: Mapping[str, tuple[bytes | None, set[Seal]]]
) -> tuple[Report, int, str]:
    """Move the pins of replicas forward where all is clean: the report, the code, what to say.

    A pin that another run moved meanwhile is no pin that this one compared: it stays.
    """
    code = report.exit_code
    if not asked.first or asked.pin is None:
        return report, code, ""
    if code:
        return report, code, f"the pins in {asked.pin} were left as they are"
    if not is_pin_folder(asked.pin):
        why = "records on refs were judged, and they have a pin each, in a folder: --pin FOLDER/"
        if os.path.lexists(asked.pin):
            return report, code, f"the pin {asked.pin} was left as it is: {why}"
        said = f"no pin was made at {asked.pin}: {why}"
        return _with_pin_unmoved(report, asked.pin, said), 1, said
    try:
        os.makedirs(asked.pin, exist_ok=True)
        for replica, (data, compared) in sorted(seen.items()):
            if data is not None:
                path = os.path.join(asked.pin, replica)
                write_proved_pin(path, data, compared.__contains__)
    except (RefusedError, OutsideError, OSError) as error:
        said = f"the pins in {asked.pin} were not all written: {error}"
        return _with_pin_unmoved(report, asked.pin, said), 1, said
    records = f"the records of {len(seen)} replicas" if len(seen) != 1 else "the record"
    new = sum(not compared for _, compared in seen.values())
    first = f", {new} for the first time, compared with no pin" if new else ""
    return report, code, f"the pins in {asked.pin} remember {records}{first}"


def _with_pin_unmoved(report: Report, pin: str, why: str) -> Report:
    """The report with the finding that a pin could not go forward: no form calls that clean."""
    finding = Finding(pins_extend.NAME, why, f"the pin {pin}", file=os.path.abspath(pin))
    named = replace(finding, fault=None, fingerprint=finding_fingerprint(finding, ""))
    if report.parts:
        part = Report(pin, (outcome(pins_extend.NAME, [named], {}, required=True),))
        return replace(report, parts=(*report.parts, part))
    outcomes = tuple(
        replace(one, verdict=FINDINGS, findings=(*one.findings, named))
        if one.check == pins_extend.NAME
        else one
        for one in report.outcomes
    )
    return replace(report, outcomes=outcomes, notes=(*report.notes, why))


# Reports ------------------------------------------------------------------------------------------


def _outputs(call: CommandCall) -> Iterator[tuple[str, str]]:
    """The forms of the report that were asked for, each with its file; '' is standard output."""
    asked = [("json", "")] if call.json else []
    for word in call.format:
        name, equals, path = word.partition("=")
        if name not in FORMATS:
            known = ", ".join(FORMATS)
            raise BadArgumentError(
                f"no format {name!r}; there are {known}{text_meant(name, FORMATS)}"
            )
        if equals and not path:
            raise BadArgumentError(f"--format {word}: name the file behind the =")
        asked.append((name, "" if _is_standard_output(path) else path))
    paths: list[str] = []
    for name, path in asked if any(not path for _, path in asked) else [("text", ""), *asked]:
        # As on disks where case makes no difference.
        own = [os.path.realpath(one).casefold() if one else "" for one in _files(name, path)]
        if not set(own).isdisjoint(paths):
            where = path or "standard output"
            raise BadArgumentError(
                one_line(f"two reports go to {where}: give each a file, --format NAME=PATH")
            )
        paths += own
        yield name, path


def _is_standard_output(path: str) -> bool:
    """Whether a path is of what the report is printed to: -, or a device as /dev/stdout."""
    with suppress(OSError):
        return path == "-" or (_is_stream(path) and os.path.samestat(os.stat(path), os.fstat(1)))
    return False


def _is_stream(path: str) -> bool:
    """Whether a device or a pipe is at a path, as at /dev/stdout, whose real path names nothing."""
    return os.path.exists(path) and not os.path.isfile(path)


def _files(name: str, path: str) -> list[str]:
    """The files that a form is written to: in SARIF also the one beside, if it is not a pipe."""
    full = os.path.realpath(path)
    is_alone = not path or name != "sarif" or _is_stream(path)
    return [path] if is_alone else [path, f"{full}{_PLACES}"]


def _refuse_to_replace_evidence(call: CommandCall) -> None:
    """Refuse a report in the place of what is judged, or of any file that is no report.

    Raises:
        BadArgumentError: it would stand there.
    """
    asked = [(word, file) for word, path in _outputs(call) if path for file in _files(word, path)]
    if not asked:
        return
    for word, path in asked:
        problem = _problem_of_output(call, path)
        if problem:
            raise BadArgumentError(
                one_line(f"--format {word}: no report is put at {path}: {problem}")
            )


def _problem_of_output(call: CommandCall, path: str) -> str:
    """Why no report is put at a path; '' where one may be."""
    subjects = [*([] if call.path is None else [call.path]), *call.grow_only]
    files = [call.old, *call.policy, os.environ.get(_SUMMARY)]
    problem = problem_of_place(path, subjects or [team_to_judge(None)], call.pin, files)
    return problem or _problem_of_replaced(os.path.realpath(path))


def problem_of_place(
    path: str, subjects: Sequence[str], pin: str | None, read: Sequence[str | None]
) -> str:
    """Why a path is no place for a report on ``subjects``; '' where it is one.

    ``pin`` and the files ``read`` are what else the run needs.
    """
    roots = [root for one in subjects if os.path.isdir(one) and (root := team_of(one))]
    folders = [one for one in subjects if os.path.isdir(one) and is_export(one)] + roots
    tops = [os.path.dirname(os.path.abspath(root)) for root in roots]
    for one in (*subjects, *roots):
        tree = work_tree_around(os.path.dirname(os.path.realpath(one)))
        folders += [] if tree is None else [tree.git, tree.common]
        tops += [] if tree is None else [tree.top]
    folders += [pin] if pin is not None and is_pin_folder(pin) else []
    files = [*subjects, pin, *read]
    files += [f"{top}/{name}" for top in tops for name in PROJECT_FILES]
    full = os.path.realpath(path)
    if any(f"{full}/".startswith(f"{os.path.realpath(one)}/") for one in folders):
        return "it lies in what is judged, or in git's directory: give another PATH"
    if any(_is_same_file(full, one) for one in files if one):
        return "this run reads or writes that file itself: give another PATH"
    return ""


def _is_same_file(full: str, other: str) -> bool:
    """Whether two paths are of one file, or would be where case makes no difference."""
    if os.path.realpath(other).casefold() == full.casefold():
        return not os.path.isdir(full)
    return os.path.exists(full) and os.path.exists(other) and os.path.samefile(full, other)


def _problem_of_replaced(full: str) -> str:
    """Why what stands at a path is not replaced: it is no report. '' where it may be."""
    if os.path.isdir(full):
        return "it is a folder"
    if not os.path.isfile(full) or not os.path.getsize(full):
        return ""  # nothing, an empty file, a device or a pipe
    try:
        with open(open_plain_file(full), "rb") as file:
            begin = file.read(_LOOK)
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOOK))
            if _BEGINS.match(begin) or _ENDS.search(file.read()):
                return ""
    except OSError as error:
        return f"what stands there cannot be read: {error.strerror}"
    return "what stands there is no report of tripod: give another PATH, or remove it"


def _say(call: CommandCall, report: Report, lost: Sequence[str] = ()) -> int:
    """Write a report in the forms that were asked for, and print one; give the exit code.

    What cannot be written is told after all else was: a verdict that nobody reads is no success.
    """
    lost = list(lost)
    for name, path in sorted(_outputs(call), key=lambda one: one[1] == ""):
        said = _rendered(call, report, name, path, lost)
        if path:
            _write_report(path, said, lost)
        elif not call.quiet:
            try:
                emit_report(said)
            except TripodError as error:
                reason = str(error).partition(";")[0]
                lost.append(f"the report was not printed: {reason}")
    for one in lost:
        remark(one_line(one))
    return report.exit_code or int(bool(lost))


def _rendered(call: CommandCall, report: Report, name: str, path: str, lost: list[str]) -> str:
    if name == "json":
        return json.render(report)
    if name == "junit":
        from tripod.verify.reporters import junit  # as few ask for it

        return junit.render(report)
    if name == "github":
        from tripod.verify.reporters import github

        return github.render(report, has_summary=_write_summary(report, lost))
    if name == "sarif":
        from importlib.metadata import version

        from tripod.verify.reporters import sarif

        aside = "".join(_files(name, path)[1:])
        subject = next((one.subject for one in (report, *report.parts) if one.subject), None)
        repository, place = None, report.what
        if subject is not None:
            repository, place = subject.repository, subject.team or subject.ledger or place
        top = top_of_paths(repository, place)
        inside = aside.startswith(f"{top.rstrip('/')}/")
        said, places = sarif.render(
            report,
            version=version("tripod-ledger"),
            manual=judging.manuals().__getitem__,
            beside=os.path.relpath(aside, top) if inside else os.path.basename(aside),
            is_part=any(
                (call.select, call.new_only, call.since is not None, call.grow_only, call.no_git)
            ),
        )
        if places:
            _write_report(aside, places, lost)
        return said
    colour = not path and sys.stdout is not None and sys.stdout.isatty()
    how = text.render if call.verbose else text.brief_text
    shown = bool(call.get("accepted"))
    return how(report, color=colour and "NO_COLOR" not in os.environ, accepted=shown)


def _write_summary(report: Report, lost: list[str]) -> bool:
    """Append to the summary of the step; whether there is one, and it was written."""
    path = os.environ.get(_SUMMARY)
    if not path:
        return False
    from tripod.verify.reporters import summary

    try:
        with open(path, "ab") as file:
            size = file.tell() if file.seekable() else 0
            before = b"\n" if size else b""
            said = summary.render(report, summary.LIMIT - size - len(before))
            if said:
                file.write(before + said.encode())
                return True
            problem = f"with it, it would be larger than {summary.LIMIT} bytes"
    except OSError as error:
        problem = error.strerror or str(error)
    lost.append(f"the step summary was not written to {path}: {problem}")
    return False


def _write_report(path: str, said: str, lost: list[str]) -> None:
    full = os.path.realpath(path)  # a link stays one
    try:
        if _is_stream(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(said)
        else:
            replace_file(full, said.encode(), 0o644, foreign_folder=True)
    except OSError as error:
        lost.append(f"the report was not written to {path}: {error.strerror}")


_VERIFY = """\
verify [PATH]
    The default of PATH is the team that TRIPOD_LEDGER names, else the nearest one above. A clone
    without a ledger is judged by each replica's record on its refs, as `git fetch REMOTE
    '+refs/tripod/*:refs/tripod-remotes/REMOTE/*'` brings them, and by a ledger or record of
    another team that lies in the work tree. Without such refs it is judged by a record that is
    committed (.nbs/record).

    Exit codes: 0 all required checks clean, 1 findings, 2 usage, 3 could not judge.

    --no-ledger        Expect no ledger: judge the files alone.
    --select CHECK...  Only this check.
    --nearby LINES     How far an approximate chat ref may be off. [default: 50]
    --key VKEY...      A log's public key: the key in force of the ledger must be one of these, and
        the seal of an export or proof be signed by it.
    --old FILE         The older seal, for a proof of growth.
    --grow-only FILE...  Judge a file by git alone: each committed version begins with the one
        before. Without PATH, nothing else is judged.
    --staged           With --grow-only: judge only whether what is staged keeps what is committed.
        For a hook before the commit.
    --pin FILE         Hold the ledger against the head in FILE; where records on refs are judged,
        hold each replica's against its own pin in the folder FILE/.
    --update-pin       If all is clean, write the head of the ledger into the pin, or of each
        record into its own.
    --new-only         Judge only the entries after the pin, and say what that omits.
    --since POINT      Report only what is new since an entry (its number, for one ledger), or
        since a git revision that holds a head of the ledger: a trailer in a commit up to it, a
        record's ref, a committed seal. The rest is counted. For a pull request: --since
        origin/main.
    --policy FILE...   A policy from elsewhere (.tlog or .yaml) in place of the team's own.
    --policy-from REV  What tripod.toml and pyproject.toml say as committed in REV, in place of
        those in the work tree. For a pull request: the branch that it goes to.
    --never GLOB...  Files that no agent may have read, by a rule besides those of the policy.
        Globs are as for `tripod exposure`; never-read judges the imported sessions.
    --except GLOB...  Files that --never does not mean.
    --no-git           Do not read the history of the git repository.
    --explain CHECK    Print the manual section of a check.
    --list             Print all checks, and in a line what each proves.
    --format NAME...   text, json, sarif, junit or github (annotations, and a step summary where
        GITHUB_STEP_SUMMARY names its file). NAME=PATH writes it to a file, NAME=- as NAME alone to
        standard output; without a format there, the text is printed.
    --accepted         Also print the accepted findings, with who accepted each, and why.
    -v, --verbose      Print all checks, and how far heads from outside vouch for the ledger.
    -q, --quiet        Print nothing: the exit code is the verdict.
    looks: unless --update-pin
    without: --team
    --json             The whole report as one JSON object.
"""
COMMANDS = {"verify": command_verb(_VERIFY, _verify)}
