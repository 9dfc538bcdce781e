"""Exceptions for callers of the ledger. What an attacker did is a finding of ``verify`` instead."""

from __future__ import annotations


class TripodError(Exception):
    """Base of every error that this project raises; the message says what to do next."""


class BadArgumentError(TripodError):
    """An argument breaks a rule; nothing was recorded."""


class NotFoundError(TripodError):
    """The event, chat, decision, entry or file that was named is not there."""


class LedgerError(TripodError):
    """Base of the errors of the ledger itself."""


class MalformedError(LedgerError):
    """Bytes that this project would not have written: refused, never repaired."""


class MissingExtraError(LedgerError):
    """A package is not installed that this needs: nothing can be said either way."""


class NotVerifiedError(LedgerError):
    """Well-formed, and not what the trusted keys say: a signature, proof or quorum that fails."""


class TooLargeError(LedgerError):
    """A header, body or blob above the limits of the format (design: an entry, byte for byte)."""


class ConflictError(LedgerError):
    """The stream of the caller's guard has grown since it was read: read it and decide again."""


class IdReusedError(LedgerError):
    """An id that stands in the ledger was given again with another body."""


class NoLedgerError(LedgerError):
    """There is no ledger at that place."""


class LedgerDamagedError(LedgerError):
    """The database cannot be read as a ledger; ``tripod verify`` says what it can of it."""


class PagesDamagedError(LedgerDamagedError):
    """SQLite met pages that make no sense; where the entries are sound, ``rebuild`` writes anew."""


class PlaceError(LedgerDamagedError, ValueError):
    """A path leaves the team directory: only an entry that nothing of ours made can name it."""


class GitError(TripodError):
    """A git repository cannot be asked; the message says why, and where it can be, what to do."""


class UnknownCauseError(LedgerError):
    """An entry was to follow from one that does not stand before it; nothing was recorded."""


class UnwritableError(LedgerError):
    """The disk refused (full, read-only, no permission): nothing was recorded."""
