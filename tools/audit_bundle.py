#!/usr/bin/env python3
"""Judge the folder of an audit in which this file lies: the standard library, nothing to install.

    python3 -I -S verify.py [--manifest SHA256] [--key VKEY]...

1. Each file of `MANIFEST.sha256` is here with that sum, and nothing else is. Who can change this
   folder can change the manifest and this program too, which then says what they like: hold the sum
   of the manifest, which was kept elsewhere, against it with programs of your own, `sha256sum
   MANIFEST.sha256` and `sha256sum --check --quiet MANIFEST.sha256`, before you run this one.
   `--manifest` does the same, and finds files that were added.
2. The entries: those under a seal in `ledger/export`, the others in `ledger/rest`. They are judged
   by `audit_export.py`, which shares no code with the program that made this folder.
3. Each seal in `seals/` is held against the entries, and its signature against their keys.
4. What was found is held against what `audit.json` says: the first bad entry, and which seals fit;
   and that against `findings/report.json`: the exit code, and how many findings of which rule.

What it does not judge: the rules of the team, `ledger/ledger.db`, `receipts/`, `policies/`, the
files in `evidence/`, the rest of `findings/`.
Exit: 0 nothing wrong, 1 the ledger is wrong or a rule of the team is broken, as the audit says,
2 usage, 3 the audit could not judge all, 4 this folder is not what was made, or contradicts itself.
"""

import sys

if __name__ == "__main__" and not sys.flags.isolated:
    # A file of this folder would come before the standard library, and nothing is judged yet.
    print(f"run it by itself: python3 -I -S {sys.argv[0]!a}")
    sys.exit(2)

import argparse
import hashlib
import importlib
import json
import os
import re
import stat
from contextlib import suppress
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFEST = "MANIFEST.sha256"
LINE = re.compile("([0-9a-f]{64})  ([!-~]+)")
HEADS = ("seals-open", "record-agrees", "pins-extend", "peers-agree", "trailers-agree")
BROKEN = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
NUMBER = re.compile("entry ([0-9]+)")


def shown(text: object) -> str:
    """A text of a stranger, for a terminal."""
    return ascii(str(text))[1:-1]


def files_below(folder: str) -> "dict[str, str]":
    """Every file below a folder by its path, and what is wrong with its sort, '' for nothing."""
    found, waiting = {}, [""]
    while waiting:
        front = waiting.pop()
        for entry in os.scandir(os.path.join(folder, front)):
            path = os.path.join(front, entry.name)
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                waiting.append(path)
            else:
                found[path] = "" if stat.S_ISREG(mode) else "it is no regular file"
    return found


def sum_of(path: str) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def altered(given: str) -> "list[str]":
    """What in this folder is not as the manifest of this sum has it."""
    there = files_below(HERE)
    if there.pop(MANIFEST, "it is not here"):
        return [f"{MANIFEST}: it is not here, or it is no regular file"]
    if sum_of(os.path.join(HERE, MANIFEST)) != given.lower():
        return [f"{MANIFEST}: it has another sum than {given[:80]}"]
    with open(os.path.join(HERE, MANIFEST), "rb") as file:
        *lines, rest = file.read().decode("utf-8", "replace").split("\n")
    wanted, wrong = {}, [f"{MANIFEST}: it is cut off"] * bool(rest)
    for line in lines:
        match = LINE.fullmatch(line)
        if match is None or match[2] in wanted:
            return [f"{MANIFEST}: this is no line of it: {line[:80]!r}"]
        wanted[match[2]] = match[1]
    for path in sorted(there.keys() | wanted.keys()):
        problem = there.get(path, "it is missing")
        if not problem and path not in wanted:
            problem = "it does not belong here"
        if not problem and sum_of(os.path.join(HERE, path)) != wanted[path]:
            problem = "it has other bytes"
        wrong += [f"{path}: {problem}"] * bool(problem)
    return wrong


def parsed(data: "str | bytes") -> "Any":
    """A value of JSON; what stands twice in an object would be read in two ways."""

    def unique(pairs: "list[tuple[str, Any]]") -> "dict[str, Any]":
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a name stands twice in an object of JSON")
        return dict(pairs)

    text = data if isinstance(data, str) else data.decode()
    return json.loads(text, object_pairs_hook=unique)


def raw(value: "Any") -> "bytes | None":
    """The bytes of a column in `rest.jsonl`; None where it holds none."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and isinstance(value.get("hex"), str):
        return bytes.fromhex(value["hex"])
    return None


def judge(here: str, exports: "Any", stated: "dict[str, Any]", keys: "list[Any]") -> int:
    """Judge the entries and the seals, and hold them against what the audit says."""
    export, rest = (os.path.join(here, "ledger", name) for name in ("export", "rest"))
    sealed = os.path.exists(os.path.join(export, "checkpoint"))

    class Bundle(exports.Audit):  # type: ignore[misc]
        """The entries of this folder; ``bad`` are the numbers of those that are wrong."""

        def __init__(self) -> None:
            super().__init__(export, is_sealed=sealed)
            self.bad: set[int] = set()
            self.behind = 0  # entries that are not judged, since one before them is missing
            self.every: list[Any] = []  # keys, also those of a line that was left
            self.bodies, self.read = bool(stated["bodies"]), self.found

        def found(self, path: str, limit: int) -> bytes:
            """The bytes of a file of the export, or of one beside the other entries."""
            folder = rest if os.path.exists(os.path.join(rest, path)) else export
            return bytes(exports.read(folder, path, limit))

        def wrong_if(self, wrong: object, text: object) -> None:
            number = NUMBER.match(str(text)) if wrong else None
            self.bad |= {int(number[1])} if number else set()
            super().wrong_if(wrong, text)

        def set_key(self, *given: "Any") -> None:
            super().set_key(*given)
            self.every += [key for key in self.keys if key not in self.every]

        def row(self, *given: "Any") -> None:
            with suppress(KeyError, TypeError, ValueError):
                super().row(*given)

        def settle(self) -> None:
            """What only the whole ledger tells is judged with the entries behind the export."""

        def follow(self, row: "dict[str, Any]") -> None:
            """Judge an entry after those of the export."""
            seq, header = row["seq"], raw(row["header"])
            columns = {name: row[name] for name in ("id", "kind", "stream")}
            if seq < 0:
                return self.wrong_if(seq, f"a row has the number {seq}")
            with suppress(exports.Wrong, *BROKEN):
                if row["kind"] == "key.set":  # also behind a gap, where nothing is judged
                    self.every.append(exports.read_key(json.loads(raw(row["body"]) or b"")["vkey"]))
            if header is None or seq != len(self.leaves):
                self.behind += 1
                gap = f"entry {len(self.leaves)}: not there, or its number is another's"
                return self.wrong_if(self.behind == 1, gap)
            salt, body, auth = (raw(row[name]) for name in ("salt", "body", "auth"))
            said = b"" if auth is None else b'"auth":"%b",' % auth.hex().encode()
            if body is not None and salt is not None:
                said += b'"body":%b,"salt":"%b",' % (body, salt.hex().encode())
            half = (row["body"] is None) != (row["salt"] is None)
            strange = any(row[n] is not None and raw(row[n]) is None for n in ("salt", "body"))
            self.wrong_if(half or strange, f"entry {seq}: half of a body and its salt, or no bytes")
            leaf = exports.sha(b"\x00" + header)
            try:
                self.entry(seq, header, b"{%b" % said + b'"seq":%d}' % seq)
            except exports.Wrong as error:
                self.wrong_if(error, error)
            self.before = leaf.hex()
            self.leaves.append(leaf)
            self.grow(leaf)
            with suppress(ValueError, RecursionError):
                head = json.loads(header)
                apart = [name for name in columns if head.get(name) != columns[name]]
                self.wrong_if(
                    apart, f"entry {seq}: its row has another {apart[:1]} than its header"
                )
            return None

    bundle = Bundle()
    root = bundle.entries()
    wrong = [f"ledger/export: its seal is not of its {bundle.size} entries"]
    wrong *= sealed and (root != bundle.head or bundle.lines[-1:] != [bundle.origin])
    trusted = keys or bundle.keys[-1:]
    if sealed and not exports.signers(bundle.text, bundle.signatures, trusted):
        wrong.append("ledger/export: its seal is signed by no key that is known of it")
    with open(os.path.join(rest, "rest.jsonl"), "rb") as file:
        rows = [parsed(line) for line in file]
    bundle.size += len(rows)
    for row in rows:
        bundle.follow(row)
    exports.Audit.settle(bundle)
    if keys and not sealed:
        print("no seal is here that the key given could have signed")
    wrong += [*contradictions(here, exports, bundle, stated)]
    if bundle.behind:
        print(f"{bundle.behind} entries behind a gap were not judged")
    print(f"{len(bundle.leaves)} entries, {bundle.size - len(rows)} of them under a seal")
    for text in wrong:
        print(f"contradicts the audit: {shown(text)}")
    if wrong:
        return 4
    code = 1 if bundle.wrong else {0: 0, 1: 1, 3: 3}[stated["exit_code"]]
    return code or 3 * bool(keys and not sealed)


def contradictions(here: str, exports: "Any", bundle: "Any", stated: "dict[str, Any]") -> "Any":
    """What the audit says of its findings, the first bad entry and the seals, and is not so."""
    report = parsed(exports.read(here, "findings/report.json", 1 << 30))
    parts = report.get("parts") or [report]
    checks = [check for part in parts for check in part["checks"]]
    failing = {one["check"]: one["failures"] for one in checks if one["failures"]}
    counts = {one["check"]: one["failures"] for one in stated["findings"]["counts"]}
    if failing != {check: number for check, number in counts.items() if number}:
        yield "findings/report.json: it has other findings than the audit counts"
    untold = any(part["problem"] or part["not_told"] or not part["checks"] for part in parts)
    code = 1 if failing else 3 if untold else report["exit_code"]
    if not code == report["exit_code"] == stated["exit_code"] or (code == 1 and not failing):
        yield f"findings/report.json: the exit code is {code}, not {shown(stated['exit_code'])}"
    head = {"size": len(bundle.leaves), "root": bundle.root().hex()}
    if not stated["exit_code"] and (report["head"], stated["size"]) != (head, head["size"]):
        yield f"the audit is of other entries than the {len(bundle.leaves)} that are here"
    # The entry of a finding about a head is not bad itself: of entries the first bad one counts.
    heads = {one["seq"] for check in checks if check["check"] in HEADS for one in check["findings"]}
    first, lowest = stated["first_bad"], min(bundle.bad - heads, default=None)
    said = "none" if first is None else f"{first['seq']} to {first['last']}"
    if lowest is not None and (first is None or lowest < first["seq"]):
        yield f"entry {lowest} is wrong, and the first bad entry is said to be {said}"
    if bundle.bad or first is not None:
        found = min(bundle.bad, default="none")
        print(f"the first entry found wrong here: {found}; ", end="")
        print(f"the first bad one by the audit: {shown(said)}")
    seals = [one for one in stated["heads"] if one["source"] != "head row"]
    there = files_below(here)
    if {one["file"] for one in seals} != {path for path in there if path.startswith("seals/")}:
        yield "seals: there are others than those that the audit names"
    roots = bundle.roots({one["size"] for one in seals})
    for one in seals:
        data = exports.read(here, one["file"], 1 << 20)
        text, signatures = data.decode("utf-8", "replace"), []  # a plain head, which nobody signed
        if b"\n\n" in data:
            text, signatures = exports.read_note(data, one["file"])
        lines = text.split("\n")[:3]  # others may follow in the head of a witness
        seal = exports.SEAL.fullmatch("\n".join([*lines, ""]))
        if seal is None:
            raise exports.Wrong(f"{one['file']}: not a note of origin, size and root")
        size, root = int(seal[2]), exports.unbase64(seal[3])
        if (size, root.hex()) != (one["size"], one["root"]):
            yield f"{one['file']}: it is of {size} entries, or has another root"
        fits = roots[size] == root if size in roots else None
        by = exports.signers(text, signatures, bundle.every)
        if not by and one["source"] in ("seal", "record"):
            yield f"{one['file']}: no key of these entries signed it"
        if fits != one["fits"]:
            yield f"{one['file']}: whether it fits the entries is {fits}, not {one['fits']}"
        word = {True: "fits", False: "does not fit", None: "covers more than there is"}[fits]
        who = f"signed by {by[0][1].hex()}" if by else "signed by no key of these entries"
        print(f"the seal over {size} entries ({shown(one['where'])}) {word}, {who}")


def main() -> int:
    """Judge this folder."""
    parser = argparse.ArgumentParser(description="Judge the folder of an audit.")
    parser.add_argument("--manifest", help="the SHA-256 of the manifest, as you know it")
    parser.add_argument("--key", action="append", default=[], help="the log's: name+id+base64")
    given = parser.parse_args()
    whole = ""
    try:
        whole = given.manifest or sum_of(os.path.join(HERE, MANIFEST))
        wrong = altered(whole)
    except OSError as error:
        wrong = [f"it cannot be read: {error}"]
    for text in wrong[:20]:
        print(shown(text))
    if wrong:
        print(f"this folder is not what was made: {len(wrong)} wrong")
        return 4
    sys.path.insert(0, HERE)
    sys.dont_write_bytecode = True
    exports = importlib.import_module("audit_export")  # only once its sum is known
    print(f"the manifest is whole: sha256 {whole}")
    if given.manifest is None:
        print("who can change this folder can change that too: hold its sum against the one that")
        print("was kept elsewhere (--manifest)")
    try:
        keys = [exports.read_key(key) for key in given.key]
    except exports.Wrong as error:
        print(f"--key: {shown(error)}")
        return 2
    names = ["", *sorted(os.listdir(HERE))]
    parts = [one for one in names if os.path.isfile(os.path.join(HERE, one, "audit.json"))]
    codes = [judge_part(exports, part, keys) for part in parts or [""]]
    with suppress(OSError):
        if not altered(whole):
            return next((code for code in (4, 1) if code in codes), max(codes))
    print("this folder was changed while it was judged")
    return 4


def judge_part(exports: "Any", part: str, keys: "list[Any]") -> int:
    """Judge what was found of one ledger: in this folder, or in one of several below it."""
    here = os.path.join(HERE, part)
    if part:
        print(f"\n{shown(part)}")
    try:
        with open(os.path.join(here, "audit.json"), "rb") as file:
            stated = parsed(file.read())
        code = judge(here, exports, stated, keys)
        print(f"the audit says: {shown(stated['verdict'])}")
    except (exports.Wrong, OSError, *BROKEN) as error:
        print(f"contradicts itself: {type(error).__name__}: {shown(error)}")
        code = 4
    return code


if __name__ == "__main__":
    sys.exit(main())
