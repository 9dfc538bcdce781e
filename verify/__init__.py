"""The judge: reads a ledger, its files, its history; never writes. May not import ``tripod``."""
