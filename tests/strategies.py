"""What hypothesis draws: acts and whole stories, as steps of ``story.Story``."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from story import Step

__all__ = ["FEWER", "blows", "gaps", "our_steps", "stories", "texts", "their_steps", "words"]

FEWER = settings(max_examples=max(10, settings().max_examples // 4))
"""For what tells a whole story with each example, on a disk: a quarter of what the profile says."""

CHANNELS = st.sampled_from(["live", "side"])
HANDLES = st.sampled_from(["ann", "bob", "söl", "x"])
PRIORITIES = st.sampled_from(["critical", "high", "normal", "low"])
SOURCES = st.sampled_from(["ann", "nbs-chat", "yes", "12:30", "a:b"])
TYPES = st.sampled_from(["note", "task-complete", "b", "[odd]"])


def words() -> st.SearchStrategy[str]:
    """One word, as a handle or a type may be."""
    return st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)


def texts() -> st.SearchStrategy[str]:
    """Any text that a message or payload may be, those that imitate our formats among them."""
    odd = [
        "### D-1 x",
        "---\n### D-1 x",
        "a: |\n  b",
        "  lead",
        "\n\n",
        "@ann, @bob",
        "=== nbs-chat ===",
    ]
    free = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
    return st.sampled_from(odd) | free


def _lines() -> st.SearchStrategy[str]:
    """Any text for a title or field; the acts themselves refuse what would not be one line."""
    odd = ["### D-9", "[SUPERSEDES D-1] x", "- **Status:** decided", "a | b", "`---`"]
    return st.sampled_from(odd) | st.text(
        st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=25
    )


def our_steps() -> st.SearchStrategy[Step]:
    """One act of ours, with whatever arguments."""
    refs = st.just(()) | st.integers(5, 9).map(lambda line: (f"live.chat:~L{line}",))
    handle: st.SearchStrategy[Any] = st.none() | SOURCES
    return st.one_of(
        st.tuples(st.just("create"), CHANNELS),
        st.tuples(st.just("say"), CHANNELS, HANDLES, texts()),
        st.tuples(st.just("say"), st.just("live"), HANDLES, texts()),
        st.tuples(st.just("read"), CHANNELS, HANDLES, st.none() | st.integers(0, 2)),
        st.tuples(st.just("seek"), CHANNELS, HANDLES, st.integers(0, 4)),
        st.tuples(st.just("archive"), CHANNELS, st.integers(0, 2)),
        st.tuples(st.just("delete"), CHANNELS, st.integers(0, 5)),
        st.tuples(st.just("decide"), _lines(), _lines(), refs),
        st.tuples(st.just("publish"), SOURCES, TYPES, PRIORITIES, texts(), st.sampled_from([0, 5])),
        st.tuples(st.just("ack"), st.integers(0, 5)),
        st.tuples(st.just("ack_all"), handle),
        st.tuples(st.just("claim"), HANDLES, st.sampled_from([1, 60])),
        st.tuples(st.just("see"), HANDLES),
        st.tuples(st.just("prune"), st.sampled_from([1, 200, 10_000])),
        st.tuples(st.just("sync")),
        st.tuples(st.just("redact"), st.integers(1, 12)),
    )


def their_steps() -> st.SearchStrategy[Step]:
    """One act of the original tools, of a worker, or of a person with an editor."""
    return st.one_of(
        st.tuples(st.just("they_say"), CHANNELS, HANDLES, texts()),
        st.tuples(st.just("they_read"), CHANNELS, HANDLES, st.integers(0, 4)),
        st.tuples(st.just("they_publish"), words(), words(), texts()),
        st.tuples(st.just("they_ack"), st.integers(0, 5)),
        st.tuples(st.just("they_log"), _lines().filter(str.strip)),
        st.tuples(st.just("they_work"), st.sampled_from(["w1", "w2"]), _lines()),
        st.tuples(st.just("they_configure"), st.integers(0, 3)),
    )


def stories(*, others: bool = True, max_size: int = 12) -> st.SearchStrategy[list[Step]]:
    """A team's life: it begins with a chat, and goes on with anything."""
    steps = st.one_of(our_steps(), our_steps(), their_steps()) if others else our_steps()
    return st.lists(steps, max_size=max_size).map(lambda rest: [("create", "live"), *rest])


def blows() -> st.SearchStrategy[Step]:
    """Something is lost that can be made anew."""
    return st.sampled_from([("lose_files",), ("lose_folders",), ("lose_tables",)])


def gaps(size: int) -> st.SearchStrategy[list[int]]:
    """Where to cut a list of ``size`` in pieces."""
    return st.lists(st.integers(0, size), max_size=4).map(sorted)
