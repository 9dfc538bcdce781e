"""The attacks that are tried, and what finds each: the documentation's table, and the tests' claim.

From the page it is ``tests.docs.attack_table`` (cog runs at the root), from the tests
``docs.attack_table``; so it imports nothing of its own folder. ``tests/attacks.py`` has the deeds,
``tests/deep/verify/test_attacks.py`` holds every row to what is said here.
"""

from typing import NamedTuple

__all__ = ["ATTACKS", "Attack", "table"]


class Attack(NamedTuple):
    """A way to tamper.

    ``needs``: what beside the team directory. ``alone``: the checks of which, in each trial, one or
    more fail a verify that knows no head from outside; none: that verify is clean. ``says`` is
    shown where it ends without a finding and without calling anything clean (exit 3).
    ``outside``: the check that fails it against a head kept outside that covers an entry which was
    touched; '': none does.
    """

    name: str
    what: str
    alone: tuple[str, ...] = ()
    outside: str = "pins-extend"
    needs: str = ""
    says: str = ""


_AUTHORS = ("writers-authorised",)
ATTACKS = (
    # One change, and nothing else.
    Attack("edit seq", "the number of a row is changed", ("sequence",)),
    Attack("edit id", "the column `id` is changed", ("sequence",)),
    Attack("edit kind", "the column `kind` is changed", ("sequence",)),
    Attack("edit stream", "the column `stream` is changed", ("sequence",)),
    Attack(
        "edit header",
        "bytes of a header are changed",
        ("canonical-bytes", "chain-links", "sequence"),
    ),
    Attack("edit salt", "a salt is changed, or taken away", ("bodies-present",)),
    Attack("edit body", "bytes of a body are changed, or taken away", ("bodies-present",)),
    Attack("edit signature", "an entry's signature record is changed or taken away", _AUTHORS),
    Attack("edit blob", "a long text, its digest or its number is changed", ("bodies-present",)),
    Attack(
        "edit file", "a line of a chat, an event or the log is changed", ("append-only", "drift")
    ),
    Attack(
        "edit file among warnings",
        "the same, after more warnings of the same check than are printed",
        ("append-only", "drift"),
    ),
    Attack(
        "cut the log",
        "the newest decisions are cut off the log, so that it shows an older state",
        ("drift",),
    ),
    Attack("edit record", "a byte of a file of the record is changed", ("record-agrees",)),
    Attack(
        "edit and own hash",
        "a body is changed, and its header's commitment with it",
        ("chain-links", "sequence"),
    ),
    Attack("delete", "an entry is taken out", ("sequence",)),
    Attack("delete, numbered anew", "the same, and the later ones move up", ("chain-links",)),
    Attack("delete oldest", "the first entries are taken out", ("sequence",)),
    Attack("truncate", "the last entries are taken out", ("sequence",)),
    Attack("swap", "two entries change places", ("sequence",)),
    Attack("swap, numbered anew", "the same, and their numbers are made to fit", ("chain-links",)),
    Attack("repeat", "an entry stands a second time at the end", ("sequence",)),
    Attack("foreign row", "a row is put after the last, the head left as it was", ("sequence",)),
    Attack(
        "foreign line",
        "a line is put into the middle of a chat or of the log",
        ("append-only", "drift"),
    ),
    Attack(
        "foreign line in the record",
        "a line is put into the bodies of the record",
        ("record-agrees",),
    ),
    Attack("fake redaction", "body and salt are taken away, no entry says so", ("bodies-present",)),
    Attack(
        "fake redaction, claimed",
        "an entry says that another was erased, which is there",
        ("bodies-present",),
    ),
    Attack(
        "duplicate JSON key",
        "a key stands twice in a header or body; all hashes fit",
        ("canonical-bytes",),
        needs="the host's key",
    ),
    Attack("wipe", "every entry is deleted", ("ledger-missing",)),
    Attack("wipe the database", "database and record are gone", ("ledger-missing",)),
    Attack(
        "wipe everything",
        "database, record and each trace of them are gone",
        outside="ledger-missing",
        says="*cannot tell* (exit 3)",
    ),
    # The file, and not what it says.
    Attack(
        "hidden trigger",
        "a trigger is planted under a name that SQLite keeps for itself",
        ("sequence",),
    ),
    Attack("foreign index", "a foreign index is put on one of the ledger's tables", ("sequence",)),
    # Consistent within itself.
    Attack(
        "rewrite from k on",
        "an entry is changed, and all after it linked anew",
        ("record-agrees", "seals-open"),
    ),
    Attack("rewrite the tail", "the same, after the newest seal"),
    Attack(
        "rewrite with the host's key",
        "the same anywhere, and each seal made anew",
        needs="the host's key",
    ),
    Attack("truncate and side files", "the end is cut off, head, tables, files and record with it"),
    Attack("rollback", "the team directory is replaced by an older copy of it"),
    Attack(
        "rollback of the database",
        "the database alone, to before the newest seal",
        ("record-agrees",),
    ),
    Attack(
        "fork", "an older copy goes on under the same name, and is sealed", needs="the host's key"
    ),
    Attack(
        "forged append, of an actor with a key",
        "an entry is added in the actor's name, and all made to fit",
        _AUTHORS,
        needs="the host's key",
    ),
    Attack(
        "rewrite an actor's words",
        "what an actor with a key said is changed, and all made to fit",
        _AUTHORS,
        needs="the host's key",
    ),
    Attack(
        "accept a forgery",
        "an entry is changed, all after it linked anew, and what verify finds accepted",
        ("record-agrees", "seals-open"),
    ),
    Attack(
        "accept a finding",
        "somebody who has no key accepts a finding, where no policy says who may",
        outside="",
        says="clean: counted and shown as *accepted*",
    ),
    Attack(
        "forged append",
        "an entry is added in the name of somebody who has no key, and all made to fit",
        outside="",
    ),
    Attack(
        "foreign line at the end",
        "a line is added to a chat, as another program might",
        outside="",
        says="clean: taken in as *observed*",
    ),
    # Protection taken away.
    Attack(
        "strip an actor's signature",
        "an entry loses its signature, and all is made to fit",
        _AUTHORS,
        needs="the host's key",
    ),
    Attack(
        "strip a signature",
        "a seal in the ledger loses its signature, or has another's",
        ("seals-open",),
    ),
    Attack(
        "strip the record's seal",
        "the record's seal is removed, or loses its signature",
        ("record-agrees",),
    ),
    Attack(
        "strip all protection",
        "an entry is changed; every key, seal and signature and the record are gone",
    ),
)


def table() -> str:
    """The table of the documentation, in Markdown."""
    lines = [
        "| attack | what is done | found without a head from outside | found with one |",
        "|---|---|---|---|",
    ]
    for attack in ATTACKS:
        alone = ", ".join(map(_linked, attack.alone)) or attack.says or "**no**"
        outside = _linked(attack.outside) if attack.outside else "**no**"
        outside = "as without" if attack.alone else outside
        what = f"{attack.what} (with {attack.needs})" if attack.needs else attack.what
        lines.append(f"| {attack.name} | {what} | {alone} | {outside} |")
    return "\n" + "\n".join(lines) + "\n\n"


def _linked(check: str) -> str:
    return f"[`{check}`](checks.md#{check})"
