"""A team's life in any order, with losses in between: after each step all is still one."""

from contextlib import ExitStack

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sample_ledger import faults
from story import Step, Story, folder, tables
from strategies import FEWER, blows, our_steps, their_steps

from tripod.bus import events
from tripod.decisions import reader as decisions_read
from tripod.projections.decisions.format import count_decision_headings
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.team import adoption


class Life(RuleBasedStateMachine):
    """One team; after each step the files, the tables and the ledger are one."""

    def __init__(self) -> None:
        super().__init__()
        self.open = ExitStack()
        self.story = Story(self.open.enter_context(folder()))

    @initialize()
    def begin(self) -> None:
        self.story.step(("create", "live"))

    @rule(step=our_steps())
    def act(self, step: Step) -> None:
        self.story.step(step)

    @rule(step=their_steps())
    def others_act(self, step: Step) -> None:
        self.story.step(step)

    @rule(blow=blows())
    def lose(self, blow: Step) -> None:
        self.story.step(("sync",))  # what others wrote before is not lost with their files
        self.story.step(blow)

    @rule(zone=st.sampled_from(["+0000", "-0500", "+0530"]))
    def move_to(self, zone: str) -> None:
        self.story.original.zone = zone

    @invariant()
    def all_is_one(self) -> None:
        story = self.story
        with story.team() as team:
            team.refresh()
            assert faults(team.store) == []
            assert list(file_differences(team.source, team.disk)) == []
            assert not [text for text in team.warnings if "edited" in text]
            assert {e.name for e in events.check(team)} == set(story.original.pending())
            log = story.root / "scribe/log.md"
            # A heading without a title, from another tool, is a note and not a decision.
            notes = "SELECT count(*) FROM pieces WHERE id IS NULL"
            noted = team.store.db.execute(notes).fetchone()[0]
            if log.exists():
                headings = count_decision_headings(log.read_bytes())
                assert headings - noted <= decisions_read.count(team) <= headings
                assert noted or decisions_read.count(team) == headings

    def teardown(self) -> None:
        with self.open, self.story.team() as team:
            adoption.sync(team)
            live, size = tables(team), team.store.head().size
            recover.rebuild(team)
            assert (tables(team), team.store.head().size) == (live, size)


TestLife = Life.TestCase
TestLife.settings = settings(FEWER, stateful_step_count=25)
