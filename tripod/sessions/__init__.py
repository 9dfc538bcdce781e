"""Recorded sessions of agents on the disk: found, opened and read; nothing of them is changed."""
