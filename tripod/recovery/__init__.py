"""Rebuild, repair, back up, redact, diagnose."""
