"""A policy under a name that nothing reads demands nothing: verify says so."""

import pytest
from story import Story, folder

from tripod.verify.checks import drift
from tripod.verify.evidence import collect
from tripod.verify.run import run


@pytest.mark.parametrize("no_ledger", [False, True])
@pytest.mark.parametrize(
    ("name", "told"),
    [("policy.yml", 1), ("policy", 1), ("policy.yaml", 0), ("policy.tlog", 0), ("policy.pem", 0)],
)
def test_a_policy_that_is_not_read_is_named(name: str, told: int, *, no_ledger: bool) -> None:
    with folder() as root:
        story = Story(root)
        story.run([("sync",), ("create", "live"), ("say", "live", "ann", "hello")])
        if no_ledger:
            (story.root / "ledger.db").unlink()
        story.original.put(name, b"")
        with collect(str(story.root), no_ledger=no_ledger) as evidence:
            (outcome,) = [one for one in run(evidence).outcomes if one.check == drift.NAME]
    found = [one for one in outcome.findings if one.where == name]
    assert [one.severity for one in found] == ["warning"] * told
    assert all("policy.tlog, policy.yaml, policy.pem" in one.message for one in found)
