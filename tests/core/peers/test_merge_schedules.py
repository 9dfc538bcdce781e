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


@settings(max_examples=60)
@given(data=st.data())
def test_a_mutated_record_is_named_or_gives_what_was_sealed(data: st.DataObject) -> None:
    world = World(2)
    first, second = world.twins
    for number in range(4):
        first.say(f"message {number}")
        first.publish(number + 1, "x")
    first.record()
    first.decide("a decision")
    files = first.record()
    sealed = {key: header for key, header in first.kept().items() if key[1] < first.store.size - 1}
    path = data.draw(st.sampled_from(sorted(files.files)))
    old = files.files[path]
    at = data.draw(st.integers(0, max(len(old) - 1, 0)))
    new = data.draw(st.sampled_from([
        old[:at], old[:at] + old[at + 1 :], old[:at] + b"\xff" + old[at + 1 :], old + b"\n", b"",
        old[:at] + b'"' + old[at:], old[:at] + bytes([(old[at] if old else 0) ^ 1]) + old[at + 1 :],
    ]))  # fmt: skip
    files.files[path] = new
    done = second.merge(files)
    kept = second.kept()
    assert {key: kept[key] for key in kept if key[0] == first.origin}.items() <= sealed.items()
    if not done.problem:
        assert kept.items() >= sealed.items()
    files.files[path] = old
    assert second.merge(files).problem == ""
    assert second.kept().items() >= sealed.items()
    assert second.states() == first.states()
    world.close()
