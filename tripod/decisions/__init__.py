"""The decision logs: log, read, search."""
