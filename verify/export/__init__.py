"""Exports, records and proof files, verified without the database."""
