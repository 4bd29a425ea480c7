"""What becomes of every candidate of a placement for one request, and what would have to change.

The decision itself is asked who fills the slots, so that an explanation cannot disagree with what is
served; every rule, date, cap and budget is then looked at one by one, in the order in which they decide.
"""

# pure

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from adloom.core.ids import BannerId, CampaignId
from adloom.explain.sentences import (
    REASONS,
    Reason,
    campaign_dates_reason,
    cap_reason,
    rule_reason,
    schedule_reason,
)
from adloom.schedule.schedule_window import find_closed_reason
from adloom.serving.eligibility.caps import NO_COUNTS, LifetimeCounts, find_reached_cap
from adloom.serving.eligibility.decide import decide
from adloom.serving.eligibility.exclusions import Exclusions, remove_excluded
from adloom.serving.eligibility.schedule_mask import build_schedule_mask
from adloom.serving.index.compile import Interner, compile_placement, fill_order
from adloom.serving.index.rendered_banner import pack_ids
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Delivery, PlacementRow, PlacementRows
from adloom.serving.index.steps import run_steps
from adloom.targeting.context import Context
from adloom.targeting.evaluate import find_failing


class Outcome(StrEnum):
    """What became of a candidate."""

    WON = "won"
    LOST = "lost"
    REMOVED = "removed"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the rows: who asks, what campaigns have had, which budget they lack, and when that is."""

    context: Context
    counts: Mapping[int, LifetimeCounts]
    budgets: Mapping[int, str]
    now: datetime


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one candidate, and why."""

    banner_id: BannerId
    campaign_id: CampaignId
    title: str
    outcome: Outcome
    removed_by: str | None
    reason: str
    change: str | None


def explained(
    rows: PlacementRows,
    context: Context,
    *,
    counts: Mapping[int, LifetimeCounts],
    now: datetime,
    budgets: Mapping[int, str] | None = None,
) -> list[Verdict]:
    """Judge all candidates, those who come first in filling slots first."""
    ordered = sorted(rows.assignments, key=fill_order)
    whole = _placement_reason(rows.placement)
    if whole is not None:
        return [_judged(row, Outcome.REMOVED, whole) for row in ordered]
    facts = Facts(context=context, counts=counts, budgets=budgets or {}, now=now)
    winners = _winners(rows, facts)
    return [_verdict(row, rows.placement, winners, facts) for row in ordered]


def _placement_reason(placement: PlacementRow) -> Reason | None:
    if not placement.is_active:
        return REASONS["placement_inactive"]
    return None if placement.delivery is Delivery.DIRECT else REASONS["placement_not_direct"]


def _winners(rows: PlacementRows, facts: Facts) -> Sequence[bytes]:
    placement = run_steps(compile_placement(rows, Interner()))
    masks = run_steps(build_schedule_mask(placement, now=facts.now)).masks
    out: dict[str, set[int]] = {}
    for key, caps in placement.caps.items():
        name = find_reached_cap(caps, facts.counts.get(key, NO_COUNTS))
        if name is not None:
            out.setdefault(name, set()).add(key)
    for key, name in facts.budgets.items():
        out.setdefault(name, set()).add(key)
    exclusions = Exclusions(campaigns={name: frozenset(keys) for name, keys in out.items()})
    available = remove_excluded(masks, placement, exclusions)
    return [one.pair for one in decide(placement, facts.context, available)]


def _verdict(row: AssignmentRow, placement: PlacementRow, winners: Sequence[bytes], facts: Facts) -> Verdict:
    removal = removal_of(row, facts)
    if pack_ids(row.banner_id, row.campaign_id) in winners:
        return _judged(row, Outcome.WON, _won(row, placement, removal))
    if removal is not None:
        return _judged(row, Outcome.REMOVED, removal)
    if row.is_fallback and not placement.allow_partial_render:
        return _judged(row, Outcome.REMOVED, REASONS["no_partial_render"])
    return _judged(row, Outcome.LOST, REASONS["fallback_not_needed" if row.is_fallback else "slots_filled"])


def _won(row: AssignmentRow, placement: PlacementRow, removal: Reason | None) -> Reason:
    is_shown_anyway = row.is_fallback and not placement.allow_partial_render
    if removal is not None or is_shown_anyway:
        return REASONS["won_as_evergreen"]
    return REASONS["won_as_fallback" if row.is_fallback else "won"]


def removal_of(row: AssignmentRow, facts: Facts) -> Reason | None:
    """Name the first step that removes a candidate: status, dates, rules, schedule, caps, budgets."""
    now = facts.now
    if row.status is not AssignmentStatus.LIVE:
        return REASONS[row.status]
    if (row.starts_at is not None and now < row.starts_at) or (
        row.ends_at is not None and row.ends_at <= now
    ):
        return campaign_dates_reason(row.starts_at, row.ends_at, now)
    rule = find_failing(row.rules, facts.context)
    if rule is not None:
        return rule_reason(rule, facts.context)
    closed = find_closed_reason(row.schedule, now=now)
    if closed is not None:
        return schedule_reason(closed, row.schedule)
    if row.caps is not None:
        name = find_reached_cap(row.caps, facts.counts.get(row.campaign_key, NO_COUNTS))
        if name is not None:
            return cap_reason(name, row.caps)
    lacking = facts.budgets.get(row.campaign_key)
    return None if lacking is None else REASONS[lacking]


def _judged(row: AssignmentRow, outcome: Outcome, reason: Reason) -> Verdict:
    return Verdict(
        banner_id=row.banner_id,
        campaign_id=row.campaign_id,
        title=row.title,
        outcome=outcome,
        removed_by=reason.name if outcome is Outcome.REMOVED else None,
        reason=reason.sentence,
        change=reason.change,
    )
