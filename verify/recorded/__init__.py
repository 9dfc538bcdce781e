"""Recorded sessions on a disk: their files, what was kept of them, and the project around."""
