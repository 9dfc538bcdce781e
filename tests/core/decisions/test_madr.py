"""Decisions in other forms of Markdown: MADR 2, 3 and 4, Nygard's form, and pages of headings."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.ledger import MalformedError
from tripod.projections.decisions.madr import (
    MAX_PAGE,
    FoundDecision,
    is_madr,
    parse_decision_page,
    parse_madr,
)

MADR_2 = b"""\
# Use Postgres

* Status: superseded by [ADR-0012](0012-use-sqlite.md)
* Deciders: ann, bob <!-- optional -->
* Date: 2020-03-04

Technical Story: #12

## Context and Problem Statement

Where do orders go?

## Decision Drivers <!-- optional -->

* {driver 1}

## Decision Outcome

Chosen option: "Postgres", because
it is known.

### Positive Consequences <!-- optional -->

* {e.g., improvement of quality attribute}
"""
MADR_3 = b"""\
---
# These are optional elements. Feel free to remove any of them.
status: "deprecated"
date: 2022-01-31
deciders: ann
consulted: eve
---
# Use [Postgres](https://postgresql.org)

## Context and Problem Statement

Where do orders go?

<!-- This is an optional element. Feel free to remove. -->
## Decision Outcome

Chosen option: "Postgres", because it is known.

<!-- This is an optional element. -->
### Consequences

* Good, because
"""
MADR_4 = b"""\
---
status: accepted
date: 2024-02-29
decision-makers:
  - ann
  - bob
informed: everybody
---

Use SQLite
==========

## Context and Problem Statement

Where?

```text
## Decision Outcome
not a heading
```

## Decision Outcome

Chosen option: "SQLite".
"""
NYGARD = b"""\
# 3. Record decisions

Date: 2019-06-07

## Status

Accepted

## Context

We forget.

## Decision

We will write them down.

## Consequences

Less forgetting.
"""


def test_madr_2() -> None:
    found = parse_madr("0007-use-postgres.md", MADR_2)
    assert found == FoundDecision(
        1,
        "",
        7,
        "Use Postgres",
        "superseded by ADR-0012",
        1_583_280_000,
        "ann, bob",
        'Chosen option: "Postgres", because it is known.',
        12,
        MADR_2,
    )


def test_madr_3_and_4_and_nygards_form() -> None:
    three, four = parse_madr("0001-a.md", MADR_3), parse_madr("b.md", MADR_4)
    assert (three.line, three.title, three.status) == (8, "Use Postgres", "deprecated")
    assert (three.time, three.people) == (1_643_587_200, "ann")
    assert (four.number, four.title, four.status) == (None, "Use SQLite", "")
    assert (four.people, four.reasons) == ("ann, bob", 'Chosen option: "SQLite".')
    nygard = parse_madr("0003-record-decisions.md", NYGARD)
    assert (nygard.title, nygard.status, nygard.time) == ("3. Record decisions", "", 1_559_865_600)
    assert nygard.reasons == "We will write them down."
    assert parse_madr("0003-r.md", NYGARD.replace(b"\n", b"\r\n")).reasons == nygard.reasons


def test_what_is_only_proposed_is_told_apart() -> None:
    assert parse_madr("1-a.md", MADR_4.replace(b"accepted", b"proposed")).is_waiting
    assert not parse_madr("1-a.md", MADR_4).is_waiting


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "line 1: no title"),
        (b"## Decision\n\nYes.\n", "line 1: no title"),
        (b"# T\n\n## Decision Outcome\n\n<!-- none -->\n", "line 1: nothing stands below"),
        (b"---\nstatus: accepted\n# T\n", "line 1: the front matter"),
        (b"---\nstatus: a\nstatus: b\n---\n# T\n", "line 3: status stands above already"),
        (b"---\nstatus: {a: b}\n---\n# T\n", "line 2: status is no text"),
        (b"---\n- a\n---\n# T\n", "line 2: "),
        (b"---\nstatus: &x accepted\n---\n# T\n", "line 2: .*anchors"),
        (MADR_2.replace(b"superseded by", b"unsure about"), "line 3: status 'unsure about"),
        (MADR_4.replace(b"accepted", b'"{proposed | rejected}"'), "line 2: status"),
        (MADR_2.replace(b"2020-03-04", b"2020-02-30"), "line 5: date '2020-02-30'"),
        (MADR_3.replace(b"2022-01-31", b"soon"), "line 4: date 'soon'"),
        (MADR_2.replace(b"ann, bob", b"ann\xff"), "line 4: not UTF-8"),
        (MADR_2.replace(b"ann, bob", b"ann\x00"), "line 4: it holds a NUL byte"),
        (b"x" * (MAX_PAGE + 1), "line 1: the file has more than"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(data: bytes, problem: str) -> None:
    with pytest.raises(MalformedError, match=problem):
        parse_madr("0001-a.md", data)


PAGE = b"""\
# Decisions

What we decided.

## Table of contents

- 2024

## 2024

### Use tea (2024-01-02)

Nobody asked for coffee.

### Consequences of tea

Cups.

## 2024-02-03: Keep tea

Status: accepted
**Deciders:** ann

```
## no heading
```

### Why

It is warm.

## D12 Close on Sundays

- Date: 2024-03-01

We rest.
"""


def test_a_page_with_headings() -> None:
    found = parse_decision_page("DECISIONS.md", PAGE)
    assert [(one.line, one.title, one.time) for one in found] == [
        (11, "Use tea", 1_704_153_600),
        (15, "Consequences of tea", None),
        (19, "Keep tea", 1_706_918_400),
        (32, "D12 Close on Sundays", 1_709_251_200),
    ]
    assert found[0].reasons == "Nobody asked for coffee."
    assert found[3].reasons == "We rest."
    assert found[2].people == "ann"
    assert found[2].data.startswith(b"## 2024-02-03: Keep tea\n\nStatus")
    assert found[2].data.endswith(b"It is warm.\n")
    grown = parse_decision_page("DECISIONS.md", PAGE + b"\n## More\n\nYes.\n")
    assert grown[:4] == found, "a page that grew shows the same decisions first"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"# All\n\nNothing.\n", "line 1: no heading"),
        (b"## One\n\nYes.\n\n## Two\n\n## Three\n\nYes.\n", "line 5: nothing stands below 'Two'"),
        (b"## 2024-01-02\n\nYes.\n", "line 1: the heading names a day and no decision"),
        (b"## One\n\nStatus: maybe\n\nYes.\n", "line 3: status 'maybe'"),
        (b"# Decision Log\n\n### D-17 Use it\n", "line 1: it is a log of the form"),
    ],
)
def test_what_is_wrong_on_a_page_is_named_with_its_line(data: bytes, problem: str) -> None:
    with pytest.raises(MalformedError, match=problem):
        parse_decision_page("DECISIONS.md", data)


def test_which_files_hold_one_decision() -> None:
    assert is_madr("use-sqlite.md", MADR_4.replace(b"## Decision Outcome\nnot", b"not"))
    assert is_madr("12_x.md", b"")
    assert not is_madr("DECISIONS.md", PAGE)


@given(st.binary(max_size=400) | st.text("#-*: \n|abc2024<>!`[]()", max_size=200).map(str.encode))
def test_strange_bytes_are_refused_in_words(data: bytes) -> None:
    for parse in (parse_madr, parse_decision_page):
        with suppress(MalformedError):
            parse("0001-a.md", data)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_on_any_system(end: bytes) -> None:
    """Found by torture: a carriage return alone ends a line of Markdown, and was a traceback."""
    assert parse_madr("12_x.md", MADR_4.replace(b"\n", end)).title
    assert len(parse_decision_page("DECISIONS.md", PAGE.replace(b"\n", end))) > 1
