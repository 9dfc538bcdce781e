"""Findings are counted exactly and kept by weight: what is kept of one hides nothing of another."""

import json
from collections import Counter
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from tripod.verify import finding
from tripod.verify.check import Finding, Findings, Outcome, Report, outcome
from tripod.verify.finding import WEIGHTS
from tripod.verify.reporters import json as json_
from tripod.verify.reporters import text

FOUND = st.lists(
    st.builds(
        lambda number, weight, seq: Finding(
            "a", f"m{number}", "w", (), "", weight[0], before_adoption=weight[1], seq=seq
        ),
        st.integers(0, 9),
        st.sampled_from(WEIGHTS),
        st.none() | st.integers(0, 9),
    ),
    max_size=40,
)


def told(found: list[Finding], kept: int) -> Outcome:
    with mock.patch.object(finding, "KEPT", kept):
        return outcome("a", iter(found), {}, required=True)


@given(FOUND, st.integers(1, 5))
def test_all_are_counted_and_the_first_of_each_weight_are_kept(
    found: list[Finding], kept: int
) -> None:
    cut = told(found, kept)
    whole = sorted(found, key=lambda one: WEIGHTS.index(one.weight))
    of = Counter(one.severity for one in found)
    assert (cut.failures, cut.warnings, cut.advised) == (of["failure"], of["warning"], of["advice"])
    assert cut.verdict == ("findings" if found else "clean")
    left = Counter(one.weight for one in found) - Counter(one.weight for one in cut.findings)
    assert cut.left_out == left
    assert all(list(cut.findings).count(one) <= whole.count(one) for one in cut.findings)
    for weight in WEIGHTS:
        first = [one for one in whole if one.weight == weight][:kept]
        assert [one for one in cut.findings if one.weight == weight] == first


@given(FOUND, st.integers(1, 5))
def test_the_order_and_the_verdict_do_not_depend_on_the_cut(
    found: list[Finding], kept: int
) -> None:
    cut, whole = told(found, kept), told(found, 1000)
    rest = iter(whole.findings)
    assert all(one in rest for one in cut.findings), "a subsequence"
    assert cut.verdict == whole.verdict
    assert Report("x", (cut,)).exit_code == Report("x", (whole,)).exit_code


@given(FOUND, FOUND, st.integers(1, 5))
def test_joining_parts_is_adding_all(one: list[Finding], two: list[Finding], kept: int) -> None:
    with mock.patch.object(finding, "KEPT", kept):
        first, second, both = Findings(), Findings(), Findings()
        first.extend(one)
        second.extend(two)
        both.extend([*one, *two])
        first.join(second)
        assert (list(first), first.counts, first.lowest) == (list(both), both.counts, both.lowest)
        assert first.left_out() == both.left_out()
    seqs = [found.seq for found in (*one, *two) if found.seq is not None]
    assert both.lowest == min(seqs, default=None)


@given(FOUND, st.integers(1, 5))
def test_reports_give_exact_numbers(found: list[Finding], kept: int) -> None:
    cut = told(found, kept)
    said = json.loads(json_.render(Report("x", (cut,))))["checks"][0]
    of = Counter(one["severity"] for one in said["findings"])
    for left in said["left_out"]:
        of[left["severity"]] += left["count"]
    numbers = {"failure": said["failures"], "warning": said["warnings"], "advice": said["advised"]}
    assert Counter(numbers) == of
    lines = text.render(Report("x", (cut,))).split("\n")
    shown = sum(line.startswith("w: a: ") for line in lines)
    more = sum(int(line.split()[2]) for line in lines if line.startswith("a: and "))
    assert shown + more == len(found)


def test_memory_does_not_grow_with_what_is_found() -> None:
    found = Findings()
    found.extend(Finding("a", f"m{number}", "w") for number in range(50_000))
    assert (len(list(found)), found.of("failure")) == (finding.KEPT, 50_000)
