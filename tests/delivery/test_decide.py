"""Which candidates fill a placement: against a naive reference, and rule by rule."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import BannerId
from adloom.delivery.decide import decide
from adloom.delivery.index import Placement, compiled
from adloom.delivery.rows import AssignmentRow
from tests.support.rows import a_snapshot, an_assignment_row, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def placement_of(*rows: AssignmentRow, **placement: Any) -> Placement:
    return compiled(a_snapshot(*rows, **placement)).by_slug[b"home"]


def titles(placement: Placement, now: datetime = NOON) -> list[str]:
    return [json.loads(one.head + b"}")["title"] for one in decide(placement, now=now)]


def a_row(title: str, number: int = 3, **fields: Any) -> AssignmentRow:
    return an_assignment_row(title=title, banner_id=BannerId(an_id(number)), **fields)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"display_order": 0, "weight": 1}, {"display_order": 1, "weight": 100}),
        ({"weight": 90}, {"weight": 10}),
        ({"campaign_priority": 2}, {"campaign_priority": 1, "banner_priority": 9}),
        ({"banner_priority": 2}, {"banner_priority": 1}),
    ],
    ids=["display order first", "then weight", "then the campaign's priority", "then the banner's"],
)
def test_slots_are_filled_in_order(first: dict[str, int], second: dict[str, int]) -> None:
    placement = placement_of(a_row("second", 3, **second), a_row("first", 4, **first))

    assert titles(placement) == ["first", "second"]


def test_where_all_is_equal_the_older_banner_comes_first() -> None:
    placement = placement_of(a_row("newer", 9), a_row("older", 8))

    assert titles(placement) == ["older", "newer"]


def test_no_more_offers_than_slots() -> None:
    placement = placement_of(*(a_row(str(n), n) for n in range(5)), max_banners=2)

    assert titles(placement) == ["0", "1"]


def test_fallbacks_fill_what_is_left_by_their_priority_when_partial_render_is_allowed() -> None:
    rows = [
        a_row("primary", 3),
        a_row("unranked", 4, is_fallback=True),
        a_row("later", 5, is_fallback=True, fallback_priority=2),
        a_row("sooner", 6, is_fallback=True, fallback_priority=1),
    ]

    assert titles(placement_of(*rows, allow_partial_render=True)) == ["primary", "sooner", "later"]
    assert titles(placement_of(*rows, allow_partial_render=False)) == ["primary"]


@pytest.mark.parametrize(
    ("starts", "ends", "serves"),
    [
        (None, None, True),
        (-HOUR, None, True),
        (HOUR, None, False),
        (None, HOUR, True),
        (None, -HOUR, False),
        (timedelta(0), None, True),
        (None, timedelta(0), False),
    ],
)
def test_a_campaign_serves_from_its_start_until_before_its_end(
    starts: timedelta | None, ends: timedelta | None, *, serves: bool
) -> None:
    row = a_row(
        "timed",
        starts_at=None if starts is None else NOON + starts,
        ends_at=None if ends is None else NOON + ends,
    )

    assert bool(titles(placement_of(row))) is serves


def test_what_is_not_live_is_no_candidate() -> None:
    assert titles(placement_of(a_row("paused", is_live=False))) == []


@st.composite
def assignments(draw: st.DrawFn) -> list[AssignmentRow]:
    hours = st.none() | st.integers(-3, 3)
    numbers = draw(st.lists(st.integers(10, 10_000), max_size=12, unique=True))
    return [
        a_row(
            str(number),
            number,
            display_order=draw(st.integers(0, 2)),
            weight=draw(st.integers(0, 2)),
            is_live=draw(st.booleans()),
            is_fallback=draw(st.booleans()),
            fallback_priority=draw(st.none() | st.integers(0, 3)),
            starts_at=None if (starts := draw(hours)) is None else NOON + starts * HOUR,
            ends_at=None if (ends := draw(hours)) is None else NOON + ends * HOUR,
        )
        for number in numbers
    ]


@given(rows=assignments(), slots=st.integers(1, 6), partial=st.booleans())
def test_the_decision_agrees_with_a_naive_reference(
    rows: list[AssignmentRow], slots: int, *, partial: bool
) -> None:
    placement = placement_of(*rows, max_banners=slots, allow_partial_render=partial)

    assert titles(placement) == naive(rows, slots, partial=partial)


def naive(rows: list[AssignmentRow], slots: int, *, partial: bool) -> list[str]:
    """Seed 1 §4.1 as it is written: filter, sort, fill, then the fallbacks."""
    may_serve = [
        row
        for row in rows
        if row.is_live
        and not (row.starts_at is not None and row.starts_at > NOON)
        and not (row.ends_at is not None and row.ends_at <= NOON)
    ]
    by_rank = sorted(may_serve, key=lambda row: (row.display_order, -row.weight, row.banner_id))
    chosen = [row for row in by_rank if not row.is_fallback][:slots]
    if partial:
        fallbacks = [row for row in by_rank if row.is_fallback]
        fallbacks.sort(key=lambda row: 99 if row.fallback_priority is None else row.fallback_priority)
        chosen += fallbacks[: slots - len(chosen)]
    return [row.title for row in chosen]
