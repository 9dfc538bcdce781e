"""Remembered heads from outside the ledger (pins, seals, receipts, git) and their policy."""
