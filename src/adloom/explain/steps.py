"""The steps that remove a candidate before slots are filled or bids compared, in the order in which they decide."""

# pure

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from adloom.explain.reasons import (
    REASONS,
    Reason,
    explain_cap,
    explain_dates,
    explain_rule,
    explain_schedule,
)
from adloom.schedule.schedule_window import find_closed_reason
from adloom.serving.eligibility.caps import NO_COUNTS, LifetimeCounts, find_reached_cap
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus
from adloom.targeting.context import Context
from adloom.targeting.evaluate import find_failing


class CandidateOutcome(StrEnum):
    """What became of a candidate."""

    WON = "won"
    LOST = "lost"
    REMOVED = "removed"


class RequestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the rows; counts and missing budgets are by campaign."""

    context: Context
    counts: Mapping[int, LifetimeCounts]
    budgets: Mapping[int, str]
    now: datetime


def find_removal(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    """Return why the first step removes a candidate, or None."""
    return next((reason for step in STEPS if (reason := step(row, facts)) is not None), None)


def check_status(row: AssignmentRow, _: RequestFacts) -> Reason | None:
    return None if row.status is AssignmentStatus.LIVE else REASONS[row.status]


def check_dates(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    return explain_dates(row.starts_at, row.ends_at, facts.now)


def check_targeting(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    rule = find_failing(row.rules, facts.context)
    return None if rule is None else explain_rule(rule, facts.context)


def check_schedule(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    closed = find_closed_reason(row.schedule, now=facts.now)
    return None if closed is None else explain_schedule(closed, row.schedule)


def check_caps(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    if row.caps is None:
        return None
    name = find_reached_cap(row.caps, facts.counts.get(row.campaign_key, NO_COUNTS))
    return None if name is None else explain_cap(name, row.caps)


def check_budget(row: AssignmentRow, facts: RequestFacts) -> Reason | None:
    missing = facts.budgets.get(row.campaign_key)
    return None if missing is None else REASONS[missing]


STEPS: Final[tuple[Callable[[AssignmentRow, RequestFacts], Reason | None], ...]] = (
    check_status,
    check_dates,
    check_targeting,
    check_schedule,
    check_caps,
    check_budget,
)
