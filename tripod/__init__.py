"""The team at work: one ledger of what it did, every readable file regenerated from it."""

__version__ = "0.1.0"
