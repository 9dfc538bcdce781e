"""Random schedules of replicas in memory: all end with the same entries and states.

Each run begins with another seed, which is named where one fails. TRIPOD_TRIALS says how many are
tried (``make soak``: 20,000), TRIPOD_SEED which is the first.
"""

import os
import random

import pytest
from schedules import random_schedule

SCHEDULES = int(os.environ.get("TRIPOD_TRIALS", "40"))
PARTS = 4
FIRST = int(os.environ.get("TRIPOD_SEED", "-1"))
FIRST = random.SystemRandom().randrange(2**32) if FIRST < 0 else FIRST


@pytest.mark.parametrize("part", range(PARTS))
def test_all_replicas_end_alike_over_many_schedules(part: int) -> None:
    for seed in range(FIRST + part, FIRST + SCHEDULES, PARTS):
        try:
            random_schedule(seed, replicas=4 if part == 0 else 3)
        except AssertionError as error:
            raise AssertionError(f"TRIPOD_SEED={seed}: {error}") from error
