"""Reporters: a report as text for people, as JSON for programs. Pure: a Report in, a string out."""

from __future__ import annotations

from types import ModuleType

from verify.reporters import json_, text

REPORTERS: tuple[ModuleType, ...] = (text, json_)
