"""Reads the database once, from end to end, and hands each entry to the checks."""
