"""Random schedules of acts, pushes, pulls, kills and partitions: all replicas end alike."""

from hypothesis import given, settings
from hypothesis import strategies as st
from schedules import World, random_schedule


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_all_replicas_end_with_the_same_entries_and_states(seed: int) -> None:
    random_schedule(seed, longest=40)


def test_who_was_killed_between_two_seals_shows_what_all_others_show() -> None:
    world = World(2)
    first, second = world.twins
    first.publish(1, "x")
    first.record()
    first.publish(2, "y")
    world.push(first)
    world.killed_pull(second, 5)
    second.ack_all()
    world.settle()
    world.check()
    world.close()
