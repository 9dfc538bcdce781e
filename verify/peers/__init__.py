"""Replicas of a team: their records on git refs, read as data."""
