"""Which candidates fill a placement: against a naive reference, and rule by rule."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import BannerId, CampaignId
from adloom.schedule.schedule_window import is_open
from adloom.serving.eligibility.decide import decide
from adloom.serving.eligibility.eligible_set import Exclusions, remove_excluded
from adloom.serving.eligibility.schedule_mask import build_schedule_mask
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import IndexedPlacement
from adloom.serving.index.rows import AssignmentRow
from adloom.serving.index.steps import run_steps
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX
from adloom.targeting.context import Context
from adloom.targeting.evaluate import matches_all
from adloom.targeting.rules import parse_rule
from tests.support.catalogs import NOON, some_assignments
from tests.support.contexts import a_context, some_contexts
from tests.support.rows import a_snapshot, an_assignment_row, an_id

GERMANS = (parse_rule("country", "in", ["DE"]),)


def placement_of(*rows: AssignmentRow, **placement: Any) -> IndexedPlacement:
    return compile_index(a_snapshot(*rows, **placement)).by_slug[b"home"]


def titles(
    placement: IndexedPlacement,
    context: Context | None = None,
    *,
    now: datetime = NOON,
    exclusions: Exclusions = Exclusions(),  # noqa: B008 - immutable
) -> list[str]:
    available = remove_excluded(
        run_steps(build_schedule_mask(placement, now=now)).masks, placement, exclusions
    )
    chosen = decide(placement, context or a_context(), available)
    return [json.loads(b"{%b}" % one.creative)["title"] for one in chosen]


def a_row(title: str, number: int = 3, **fields: Any) -> AssignmentRow:
    return an_assignment_row(title=title, banner_id=BannerId(an_id(number)), banner_key=number, **fields)


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


def test_fallbacks_fill_the_remaining_slots_by_priority_if_partial_render_is_allowed() -> None:
    rows = [
        a_row("primary", 3),
        a_row("unranked", 4, is_fallback=True),
        a_row("later", 5, is_fallback=True, fallback_priority=2),
        a_row("sooner", 6, is_fallback=True, fallback_priority=1),
    ]

    assert titles(placement_of(*rows, allow_partial_render=True)) == ["primary", "sooner", "later"]
    assert titles(placement_of(*rows, allow_partial_render=False)) == ["primary"]


def test_a_banner_of_two_campaigns_fills_one_slot() -> None:
    first, second = (
        a_row("leaves", campaign_key=key, campaign_id=CampaignId(an_id(key)), campaign_priority=-key)
        for key in (7, 8)
    )
    alone = placement_of(first, second, max_banners=2)
    beside = placement_of(first, second, a_row("tea", 4, weight=1), max_banners=2)

    assert titles(alone) == ["leaves"]
    assert titles(beside) == ["leaves", "tea"]


def test_slots_are_filled_across_blocks() -> None:
    rows = [a_row(str(number), number, rules=GERMANS) for number in range(BLOCK_CANDIDATES_MAX)]
    rows += [a_row(str(number), number) for number in range(BLOCK_CANDIDATES_MAX, BLOCK_CANDIDATES_MAX + 9)]
    last = BLOCK_CANDIDATES_MAX - 1

    placement = placement_of(*rows[:last], a_row(str(last), last), *rows[last + 1 :], max_banners=2)

    assert titles(placement) == [str(last), str(last + 1)]


@given(
    rows=some_assignments(),
    context=some_contexts(),
    slots=st.integers(1, 4),
    partial=st.booleans(),
    excluded=st.frozensets(st.integers(1, 4), max_size=2),
)
def test_the_decision_agrees_with_a_naive_reference(
    rows: list[AssignmentRow], context: Context, slots: int, excluded: frozenset[int], *, partial: bool
) -> None:
    placement = placement_of(*rows, max_banners=slots, allow_partial_render=partial)

    chosen = titles(placement, context, exclusions=Exclusions(campaigns={"capped": excluded}))

    assert chosen == decide_naively(rows, context, slots, excluded, partial=partial)


def decide_naively(
    rows: list[AssignmentRow], context: Context, slots: int, excluded: frozenset[int], *, partial: bool
) -> list[str]:
    """Decide step by step: filter, sort, fill, add fallbacks, else evergreens."""
    may_serve = [
        row
        for row in rows
        if row.status == "live"
        and not (row.starts_at is not None and row.starts_at > NOON)
        and not (row.ends_at is not None and row.ends_at <= NOON)
        and is_open(row.schedule, now=NOON)
        and row.campaign_key not in excluded
    ]
    may_serve.sort(
        key=lambda row: (
            row.display_order,
            -row.weight,
            -row.campaign_priority,
            -row.banner_priority,
            row.banner_id,
        )
    )
    fallbacks = [row for row in may_serve if row.is_fallback]
    fallbacks.sort(key=lambda row: 99 if row.fallback_priority is None else row.fallback_priority)
    primaries = [row for row in may_serve if not row.is_fallback]
    chosen = [row for row in primaries if matches_all(row.rules, context)]
    if partial:
        chosen += [row for row in fallbacks if matches_all(row.rules, context)]
    if not chosen:
        chosen = [row for row in [*primaries, *fallbacks] if row.is_evergreen_fallback]
    return [row.title for row in chosen[:slots]]
