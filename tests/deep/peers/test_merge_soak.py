"""Thousands of random schedules of replicas in memory: all end with the same entries and states."""

import os

import pytest
from schedules import random_schedule

SCHEDULES = 2_000
PARTS = 4
FIRST = int(os.environ.get("TRIPOD_SEED", "0"))


@pytest.mark.parametrize("part", range(PARTS))
def test_all_replicas_end_alike_over_thousands_of_schedules(part: int) -> None:
    for seed in range(FIRST + part, FIRST + SCHEDULES, PARTS):
        try:
            random_schedule(seed, replicas=4 if part == 0 else 3)
        except AssertionError as error:
            raise AssertionError(f"TRIPOD_SEED={seed}: {error}") from error
