"""A folder of pins: a head of each replica, kept where the team cannot reach it, as by CI.

A clone without a ledger judges the records on refs, of several replicas. Each of them has a pin of
its own in the folder, a file of the replica's name. A ref that is rewritten shows another history
than its pin, one that is cut off shows fewer entries, and one that is deleted leaves its pin alone:
all of that fails the run. The folder holds nothing else, since a pin under another name would
compare nothing and nobody would see that.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from tripod.verify.anchors.anchors import AnchorOptions, OutsideError, read_pin
from tripod.verify.anchors.heads import OutsideHeads
from tripod.verify.check import Finding, Report, outcome
from tripod.verify.checks import ledger_missing
from tripod.verify.peers.refs import OWN, REPLICA

_HELP = (
    "fetch it (`git fetch REMOTE '+refs/tripod/*:refs/tripod-remotes/REMOTE/*'`); if the remote "
    "has it no more, let somebody push who still has it. A replica that was given up on purpose "
    "loses its pin: remove that file"
)


def is_pin_folder(path: str | None) -> bool:
    """Whether a pin that was asked for is a folder; it ends in a slash where it is still to come.

    >>> is_pin_folder("pins/"), is_pin_folder("no-such-pin"), is_pin_folder(None)
    (True, False, False)
    """
    return path is not None and (path.endswith("/") or os.path.isdir(path))


class ReplicaPins:
    """The pins that the records of replicas are held against, as ``AnchorOptions`` ask for them.

    Without a folder of pins every replica is held against the one pin, if there is one.
    """

    def __init__(self, asked: AnchorOptions) -> None:
        """List the folder (OutsideError: it cannot be read, or holds what is no replica's pin)."""
        self._asked = asked
        self.folder = (asked.pin or "") if is_pin_folder(asked.pin) else ""
        self.replicas = _pinned(self.folder, first=asked.first) if self.folder else frozenset()

    def asked_of(self, replica: str) -> AnchorOptions:
        """What is looked at beside the record of a replica; one without a pin has none."""
        if not self.folder:
            return self._asked
        if replica not in self.replicas:
            return self.asked_of_others
        return self._asked._replace(pin=os.path.join(self.folder, replica), first=False)

    @property
    def asked_of_others(self) -> AnchorOptions:
        """What is looked at beside a ledger or record in the work tree: no pin of a replica."""
        return self._asked._replace(pin=None, new_only=False) if self.folder else self._asked

    def origins(self, replica: str) -> frozenset[str]:
        """The ledger that a replica's own pin names, compared even where another bears it."""
        path = self.asked_of(replica).pin if self.folder else None
        with suppress(OutsideError):
            pin = None if path is None else read_pin(path)
            return frozenset() if pin is None else frozenset({pin.seal.origin})
        return frozenset()

    def noted(self, report: Report, replica: str) -> Report:
        """A report on a replica that says so where it was compared with no pin."""
        if not self.folder or self._asked.first or replica in self.replicas:
            return report
        note = f"no pin remembers {replica} yet, so its record was compared with none"
        return replace(report, notes=(*report.notes, note))

    def lost(self, replicas: Collection[str]) -> list[Report]:
        """A report on each replica that has a pin and no record."""
        return [self._lost(replica) for replica in sorted(self.replicas.difference(replicas))]

    def known(self, report: Report) -> OutsideHeads:
        """The head that the pin holds of a replica of which ``lost`` gave this report."""
        pin = None
        with suppress(OutsideError):
            pin = read_pin(os.path.join(self.folder, report.what.removeprefix(OWN)))
        return OutsideHeads(() if pin is None else (pin,))

    def _lost(self, replica: str) -> Report:
        ref = f"{OWN}{replica}"
        try:
            pin = read_pin(os.path.join(self.folder, replica))
        except OutsideError as error:
            return Report(ref, (), problem=str(error))
        what = "it" if pin is None else f"{pin.seal.size} entries of {pin.seal.origin}"
        message = f"no ref holds this record, and a pin in {self.folder} remembers {what}"
        found = Finding(ledger_missing.NAME, message, ref, help=_HELP, fault=f"no record at {ref}")
        return Report(ref, (outcome(ledger_missing.NAME, [found], {"pins": 1}, required=True),))


def _pinned(folder: str, *, first: bool) -> frozenset[str]:
    """The names of the replicas that have a pin; ``first``: there need not be any yet."""
    try:
        there = sorted(os.listdir(folder)) if os.path.lexists(folder) else []
    except OSError as error:
        raise OutsideError(f"{folder} cannot be read: {error.strerror or error}") from error
    names = [name for name in there if not name.startswith(".")]
    if not names and not first:
        raise OutsideError(
            f"no pins at {folder}: --update-pin makes the first ones, from records that you believe"
        )
    for name in names:
        if REPLICA.fullmatch(name) is None:
            raise OutsideError(
                f"{folder} holds {name!r}, which is no name of a replica: a folder of pins holds a "
                "file for each replica, and nothing else; nothing was compared with it"
            )
    return frozenset(names)
