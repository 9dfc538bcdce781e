"""What was accepted stays accepted, whatever the team does next; what was new is still new."""

import pytest
from accepting import failures
from hypothesis import given
from story import Step, Story, folder
from strategies import FEWER, stories

from tripod.trust.acceptance import AcceptanceRequest, accept_findings
from tripod.verify.run import verify

LASTING = {"chat-refs-resolve", "supersession", "decision-ids-unique", "append-only"}
"""Checks whose findings about an entry nothing that comes later changes."""


@pytest.mark.slow
@FEWER
@given(before=stories(), after=stories())
def test_what_was_accepted_stays_accepted(before: list[Step], after: list[Step]) -> None:
    """Lines move, chats are split and forget, others write into the files."""
    with folder() as path:
        story = Story(path)
        story.run(
            [*before, ("decide", "No reference", "none", ()), ("they_log", "None"), ("sync",)]
        )
        old = [one for one in failures(verify(path)) if one.check in LASTING and one.is_acceptable]
        assert old
        with story.team() as team:
            request = AcceptanceRequest(tuple(one.fingerprint for one in old))
            size = accept_findings(team, request, reason="known", actor="ann")[0].seq
        story.run([step for step in after if step[0] != "redact"])
        story.step(("sync",))
        report = verify(path)
        again = [
            one for one in failures(report) if one.check in LASTING and (one.seq or size) < size
        ]
        assert again == []
        ids = {pair[0].fingerprint for one in report.outcomes for pair in one.accepted}
        assert ids == {one.fingerprint for one in old}
        # Of what is new since, nothing is left out.
        since = verify(path, since=size)
        new = {one.fingerprint for one in failures(report) if (one.seq or size) >= size}
        assert new <= {one.fingerprint for one in failures(since)}
        assert since.accepted == report.accepted
