"""Reporters: a report as text for people, as JSON for programs. Pure: a Report in, a string out."""

from __future__ import annotations

from types import ModuleType

from tripod.verify.reporters import json, text

REPORTERS: tuple[ModuleType, ...] = (text, json)
