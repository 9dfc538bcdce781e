"""Reporters: a report as text for people, as JSON for programs. Pure: a Report in, a string out."""
