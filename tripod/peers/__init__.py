"""Replicas of a team: this one's record on a git ref, and those of others."""
