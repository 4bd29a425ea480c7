"""Why a candidate is shown or not: the first step that removed it, and what would have to change."""

from datetime import time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.lifetime_counts import LifetimeCounts
from adloom.core.delivery import Rotation
from adloom.core.ids import BannerId, CampaignId
from adloom.explain.placement.verdict import CandidateVerdict, explain_placement
from adloom.explain.reasons import CandidateOutcome, RequestFacts
from adloom.schedule.schedule import Schedule, ScheduleStatus
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Caps, Delivery, PlacementRows
from adloom.targeting.context import Context
from adloom.targeting.rules import parse_rule
from tests.serving.test_decide import decide_naively
from tests.support.catalogs import NOON, some_assignments
from tests.support.contexts import a_context, some_contexts
from tests.support.for_each import for_each
from tests.support.rows import a_placement_row, an_assignment_row, an_id

HOUR = timedelta(hours=1)


def explain(
    *rows: AssignmentRow,
    context: Context | None = None,
    counts: dict[int, LifetimeCounts] | None = None,
    **fields: Any,
) -> list[CandidateVerdict]:
    placement = PlacementRows(a_placement_row(**fields), list(rows))
    facts = RequestFacts(context=context or a_context(), counts=counts or {}, budgets={}, now=NOON)
    return explain_placement(placement, facts)


def a_row(number: int = 3, **fields: Any) -> AssignmentRow:
    return an_assignment_row(
        title=str(number), banner_id=BannerId(an_id(number)), banner_key=number, campaign_key=7, **fields
    )


def banner(status: ScheduleStatus, **fields: Any) -> AssignmentRow:
    return a_row(schedule=Schedule(status=status, **fields))


@for_each(
    ("row", "removed_by", "word"),
    [
        (a_row(starts_at=NOON + HOUR), "campaign_dates", "starts at 2026-11-15 13:00:00 UTC"),
        (a_row(ends_at=NOON - HOUR), "campaign_dates", "over"),
        (a_row(rules=(parse_rule("country", "in", ["DE"]),)), "targeting:country", "DE, and it is unknown"),
        (a_row(rules=(parse_rule("day_of_week", "not_in", [0]),)), "targeting:day_of_week", "but Sunday"),
        (a_row(rules=(parse_rule("hour_of_day", "between", [1, 2]),)), "targeting:hour_of_day", "it is 12"),
        (
            a_row(rules=(parse_rule("login_state", "is", value=True),)),
            "targeting:login_state",
            "not logged in",
        ),
        (a_row(rules=(parse_rule("new_visitor", "is", value=False),)), "targeting:new_visitor", "it is new"),
        (banner(ScheduleStatus.DRAFT), "schedule:draft", "draft"),
        (banner(ScheduleStatus.EXPIRED), "schedule:expired", "expired"),
        (
            banner(ScheduleStatus.SCHEDULED, publish_at=NOON + HOUR),
            "schedule:not_yet_published",
            "published at 2026-11-15 13:00:00 UTC",
        ),
        (
            banner(ScheduleStatus.EVERGREEN, window_start=time(1), window_end=time(2)),
            "schedule:outside_window",
            "from 01:00:00 to 02:00:00 in UTC",
        ),
        (
            banner(ScheduleStatus.EVERGREEN, recurrence_rule="FREQ=WEEKLY;BYDAY=MO", created_at=NOON),
            "schedule:not_recurring_now",
            "does not name this day",
        ),
        (a_row(caps=Caps(5, None)), "impression_cap", "5 impressions"),
        (a_row(caps=Caps(None, 2)), "click_cap", "2 clicks"),
        (a_row(is_fallback=True), "no_partial_render", "fallback"),
        *((a_row(status=one), one.value, "") for one in AssignmentStatus if one is not AssignmentStatus.LIVE),
    ],
)
def test_the_first_step_that_removed_a_candidate_is_named(
    row: AssignmentRow, removed_by: str, word: str
) -> None:
    [verdict] = explain(row, counts={7: LifetimeCounts(5, 2)})

    assert verdict.outcome is CandidateOutcome.REMOVED
    assert verdict.removed_by == removed_by
    assert word in verdict.reason
    assert verdict.change is not None


def test_a_candidate_after_the_last_slot_has_lost() -> None:
    first, second = explain(a_row(3), a_row(4), max_banners=1)

    assert (first.outcome, first.removed_by, first.change) == (CandidateOutcome.WON, None, None)
    assert (second.outcome, second.removed_by) == (CandidateOutcome.LOST, None)
    assert "displayOrder" in (second.change or "")


def test_the_reason_names_an_evergreen_fallback_that_won() -> None:
    [verdict] = explain(a_row(rules=(parse_rule("country", "in", ["DE"]),), is_evergreen_fallback=True))

    assert verdict.outcome is CandidateOutcome.WON
    assert "evergreen" in verdict.reason


@pytest.mark.parametrize(
    ("placement", "removed_by"),
    [({"is_active": False}, "placement_inactive"), ({"delivery": Delivery.AUCTION}, "placement_not_direct")],
)
def test_a_placement_that_is_not_served_directly_removes_all_candidates(
    placement: dict[str, Any], removed_by: str
) -> None:
    assert [one.removed_by for one in explain(a_row(3), a_row(4), **placement)] == [removed_by] * 2


@given(
    rows=some_assignments(),
    context=some_contexts(),
    slots=st.integers(1, 3),
    partial=st.booleans(),
    capped=st.frozensets(st.integers(1, 4), max_size=2),
)
def test_an_explanation_never_disagrees_with_what_is_served(
    rows: list[AssignmentRow], context: Context, slots: int, capped: frozenset[int], *, partial: bool
) -> None:
    counts = {key: LifetimeCounts(9, 0) for key in capped}
    excluded = frozenset(row.campaign_key for row in rows if row.caps and row.campaign_key in capped)

    verdicts = explain(*rows, context=context, counts=counts, max_banners=slots, allow_partial_render=partial)

    won = [one.title for one in verdicts if one.outcome is CandidateOutcome.WON]
    assert sorted(won) == sorted(decide_naively(rows, context, slots, excluded, partial=partial))
    assert all((one.removed_by is None) == (one.outcome is not CandidateOutcome.REMOVED) for one in verdicts)


def test_banners_that_take_turns_say_so() -> None:
    rows = [
        a_row(1),
        a_row(2, weight=50),
        a_row(3, display_order=1),
        a_row(4, rules=(parse_rule("country", "in", ["FR"]),)),
    ]

    verdicts = explain(*rows, rotation=Rotation.WEIGHTED, max_banners=1)

    outcomes = {one.title: (one.outcome, one.reason) for one in verdicts}
    assert outcomes["1"][0] is CandidateOutcome.WON
    assert "takes turns" in outcomes["1"][1]
    assert outcomes["2"][0] is CandidateOutcome.LOST
    assert "takes turns" in outcomes["2"][1]
    assert "come before this one" in outcomes["3"][1]
    assert outcomes["4"][0] is CandidateOutcome.REMOVED


def test_nothing_takes_turns_where_all_fit() -> None:
    verdicts = explain(a_row(1), a_row(2), rotation=Rotation.BEST, max_banners=2)

    assert {one.reason for one in verdicts} == {"The banner fills a slot."}


def test_a_banner_that_another_campaign_shows_already_says_so() -> None:
    other = a_row(campaign_id=CampaignId(an_id(8)), campaign_priority=-1)

    first, second = explain(a_row(), other, max_banners=2)

    assert (first.outcome, second.outcome) == (CandidateOutcome.WON, CandidateOutcome.LOST)
    assert "fills a slot already" in second.reason
