"""What a team demands of its own ledger, and which of two demands is the stricter. Pure.

``policy.yaml`` in the team directory says it, which stays on this machine, and the table ``policy``
of a project's files, which travel with the work (``tripod.verify.anchors.configuration``). All have
the same keys; the stricter holds. In YAML::

    # missing protection is a failure, not a skip
    level: PINNED                     # or PEERED, WITNESSED, TIMESTAMPED, [WITNESSED, TIMESTAMPED]
    tail-entries: 256                 # so many entries may stand after the newest such head,
    tail-seconds: 86400               # ... the oldest of them for so long
    required: [pins-extend, drift]    # checks that must have something to judge, and be clean
    signed:                           # kinds of entries that their actor must have signed,
      - decision.logged
    signed-from: 120                  # ... from this entry on
    seals: [SEAL, docs/head.note]     # committed files, besides the record's, that hold seals
    given-up: [example.com/old]       # their heads only warn; counts from outside alone
    exceptions: cannot-tell           # "clean, except" becomes "cannot tell"
    accept: [ann, bob]                # whose signed acceptances of findings count: handles, or
                                      # verifier keys of actors (ann+1f2e3d4c+AQ...)
    peers: closed                     # nothing of a new peer is taken before a person accepted it
    never:                            # files that an agent must not have read, a rule each
      - paths: [chat/**, .env*]
        except: ["*.example"]
        role: reviewer                # a role of a run, a worker's name, a type of subagent
    roles:                            # roles of sessions by their folder or id; pythia is judged
      - role: pythia                  # by pythia-isolation
        folder: /srv/review*

A list may also be written as text with commas. Unlike the bus's configuration the whole file is
refused if a part of it is not understood: a misspelled demand would demand nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from tripod.ledger import MalformedError
from tripod.ledger.tlog.note import ED25519, VerifierKey
from tripod.projections.settings import (
    Rule,
    Settings,
    accepted_setting,
    read_settings,
    setting_of,
    whole_setting,
)
from tripod.verify.isolation.globs import is_excepted, refusal_of
from tripod.verify.isolation.sessions import Never, SessionRole

SELF, PINNED, PEERED, WITNESSED, TIMESTAMPED = LEVELS = (
    "SELF", "PINNED", "PEERED", "WITNESSED", "TIMESTAMPED",
)  # fmt: skip
"""Who vouches for the ledger: it alone, a head kept elsewhere, other replicas that a person
accepted, witnesses, a timestamp authority."""
NOBODY = ("",)
"""``accept`` where two policies have no name in common: no actor is called so."""

_MOST = 10**15 - 1


def _names(value: object) -> object:
    names = [one.strip() for one in value.split(",")] if isinstance(value, str) else value
    if isinstance(names, list):
        names = [name for name in names if name != ""]
    if not names:
        raise ValueError("the value names nothing")
    return names


def _actors(value: object) -> object:
    names = _names(value)
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and "+" in name:  # a handle that has a key has none in it
            try:
                key = VerifierKey.parse(name)
            except MalformedError as error:
                raise ValueError(f"{name!r} is not a verifier key: {error}") from error
            if key.kind != ED25519:
                raise ValueError(f"{name!r} is not the key of an actor: its type is {key.kind}")
    return names


def _globs(value: object) -> object:
    names = _names(value)
    for name in names if isinstance(names, list) else ():
        why = refusal_of(name) if isinstance(name, str) else ""
        if why:
            raise ValueError(f"the glob {name!r} cannot be used: {why}")
    return names


Names = Annotated[tuple[str, ...], Rule(_names)]
Globs = Annotated[tuple[str, ...], Rule(_globs)]
Level = Annotated[str, setting_of(LEVELS)]
Exceptions = Annotated[str, setting_of(("cannot-tell",))]
Opening = Annotated[str, setting_of(("open", "closed"))]
Number = Annotated[int | None, whole_setting(0, _MOST)]


def _is_list(value: object) -> bool:
    """Whether a value of a file is a list."""
    return isinstance(value, list)


Grade = Annotated[str, setting_of(("opened", "shown"))]


@dataclass(frozen=True)
class Forbidden(Settings):
    """A rule on files that agents must not have read.

    ``role`` is the role of a run, the name of a worker or the type of a subagent, ``folder`` where
    the session began, ``session`` the program's own id of it, each a pattern. ``since`` is the
    first entry whose sessions are judged.
    """

    paths: Globs
    except_: Annotated[tuple[str, ...], Rule(_globs)] = ()
    role: str = "*"
    folder: str = "*"
    session: str = "*"
    grade: Grade = "opened"
    since: Number = None

    def __post_init__(self) -> None:
        if is_excepted(self.paths, self.except_):
            raise ValueError("the exceptions of a rule leave none of its paths")


def forbidden_files(paths: Sequence[str], but: Sequence[str] = ()) -> Forbidden:
    """A rule for all sessions: no agent may have read files that fit the globs ``paths``.

    Raises ValueError: a glob cannot be used, or the exceptions ``but`` leave none of the paths.
    """
    _globs([*paths, *but])
    return Forbidden(tuple(paths), tuple(but))


@dataclass(frozen=True)
class SessionNaming(Settings):
    """A role that sessions have whose folder and id fit these patterns."""

    role: str
    folder: str = "*"
    session: str = "*"


def never_of(rule: Forbidden) -> Never:
    """A rule of a policy, as the checks know it."""
    patterns = (rule.paths, rule.except_, rule.role, rule.folder, rule.session)
    return Never(*patterns, rule.grade == "shown", rule.since or 0)


def role_of(naming: SessionNaming) -> SessionRole:
    """A role that a policy gives, as the checks know it."""
    return SessionRole(naming.role, naming.folder, naming.session)


@dataclass(frozen=True)
class Rules(Settings):
    """What must be there; None and () ask for nothing. Each of ``level`` must be reached."""

    level: Annotated[tuple[Level, ...], Rule(_names)] = ()
    tail_entries: Number = None
    tail_seconds: Number = None
    required: Names = ()
    seals: Names = ()
    given_up: Names = ()
    signed: Names = ()
    signed_from: Number = None
    exceptions: Annotated[tuple[Exceptions, ...], Rule(_names)] = ()
    accept: Annotated[tuple[str, ...], Rule(_actors)] = ()
    peers: Opening = "open"
    never: Annotated[tuple[Forbidden, ...], accepted_setting(_is_list, "a list of rules")] = ()
    roles: Annotated[tuple[SessionNaming, ...], accepted_setting(_is_list, "a list of roles")] = ()

    def accepting(self, actor: str) -> list[str]:
        """The members of ``accept`` that name an actor: the handle, or verifier keys of it."""
        return [one for one in self.accept if one.partition("+")[0] == actor]


def parse(data: bytes) -> Rules:
    """Read the file; which checks there are is not asked (MalformedError: which line, and why)."""
    return read_settings(Rules, data)


class Configured(NamedTuple):
    """What a project's files say besides the rules, and which files said something.

    ``files`` are those that say something, as a person finds them. ``selected`` names the file that
    ``select`` stands in; ``is_outside``: a caller named the commit of it. ``formats`` has the
    folder of the file that it stands in. ``rules_path`` is the path of the first with rules.
    """

    files: tuple[str, ...] = ()
    formats: tuple[str, tuple[str, ...]] = "", ()
    select: tuple[str, ...] = ()
    selected: str = ""
    is_outside: bool = False
    rules_path: str = ""


UNCONFIGURED = Configured()
"""No file says anything."""


def stricter_rules(one: Rules, two: Rules) -> Rules:
    """What both demand together: never less than either.

    Lists of demands are joined, of two numbers the smaller holds. Lists that allow something keep
    what both allow: whose heads are given up, and who may accept findings.
    """
    levels = {*one.level, *two.level}
    signing = [rules.signed_from or 0 for rules in (one, two) if rules.signed]
    return Rules(
        tuple(level for level in LEVELS if level in levels),
        _smaller(one.tail_entries, two.tail_entries),
        _smaller(one.tail_seconds, two.tail_seconds),
        _either(one.required, two.required),
        _either(one.seals, two.seals),
        tuple(sorted({*one.given_up} & {*two.given_up})),
        _either(one.signed, two.signed),
        min(signing) if signing else None,
        _either(one.exceptions, two.exceptions),
        _allowed(one.accept, two.accept),
        "closed" if "closed" in (one.peers, two.peers) else "open",
        tuple(dict.fromkeys((*one.never, *two.never))),
        tuple(dict.fromkeys((*one.roles, *two.roles))),
    )


def _either(one: tuple[str, ...], two: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*one, *two}))


def _smaller(one: int | None, two: int | None) -> int | None:
    return min((number for number in (one, two) if number is not None), default=None)


def _allowed(one: tuple[str, ...], two: tuple[str, ...]) -> tuple[str, ...]:
    """Who may do something by both; no names allow everybody, a handle allows each key of it."""
    if not one or not two:
        return tuple(sorted({*one, *two}))
    both = [
        name
        for name in {*one, *two}
        if all(name in of or name.partition("+")[0] in of for of in (one, two))
    ]
    return tuple(sorted(both)) or NOBODY
