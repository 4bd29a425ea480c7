"""What becomes of every candidate of a placement for one request, and what would have to change.

The decision itself fills the slots, so an explanation cannot disagree with what is served. The
steps then say, one by one, what removed the others.
"""

# pure

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from adloom.budgets.lifetime_counts import NO_COUNTS
from adloom.core.ids import BannerId, CampaignId
from adloom.explain.reasons import (
    OUTCOMES,
    REASONS,
    CandidateOutcome,
    Reason,
    RequestFacts,
    explain_throttle,
    find_removal,
)
from adloom.serving.eligibility.caps import find_reached_cap
from adloom.serving.eligibility.decide import decide, iter_eligible
from adloom.serving.eligibility.eligible_set import Exclusions, remove_excluded
from adloom.serving.eligibility.rotation import collect_tiers
from adloom.serving.eligibility.schedule_mask import build_schedule_mask
from adloom.serving.index.compile import Interner, compile_placement, fill_order
from adloom.serving.index.rendered_banner import pack_ids, unpack_ids
from adloom.serving.index.rows import AssignmentRow, Delivery, PlacementRow, PlacementRows
from adloom.serving.index.steps import run_steps


class CandidateVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one candidate, and why."""

    banner_id: BannerId
    campaign_id: CampaignId
    title: str
    outcome: CandidateOutcome
    removed_by: str | None
    reason: str
    change: str | None


def show_in_full(reason: Reason) -> Reason:
    return reason


def explain_placement(
    rows: PlacementRows, facts: RequestFacts, show: Callable[[Reason], Reason] = show_in_full
) -> list[CandidateVerdict]:
    """Judge all candidates, in the order in which they fill slots; `show` is how the caller may see a reason."""
    ordered = sorted(rows.assignments, key=fill_order)
    whole = _check_placement(rows.placement)
    if whole is not None:
        return [_build_verdict(row, CandidateOutcome.REMOVED, show(whole)) for row in ordered]
    choice = _decide(rows, facts)
    judged = [_judge(row, rows.placement, choice, facts) for row in ordered]
    return [
        _build_verdict(row, outcome, show(reason))
        for row, (outcome, reason) in zip(ordered, judged, strict=True)
    ]


def _check_placement(placement: PlacementRow) -> Reason | None:
    if not placement.is_active:
        return REASONS["placement_inactive"]
    return None if placement.delivery is Delivery.DIRECT else REASONS["placement_not_direct"]


class _Choice(NamedTuple):
    """The candidates that fill the slots; where they take turns, the first in order are shown for all."""

    winners: Sequence[bytes]
    in_turn: frozenset[bytes]


def _decide(rows: PlacementRows, facts: RequestFacts) -> _Choice:
    placement = run_steps(compile_placement(rows, Interner()))
    masks = run_steps(build_schedule_mask(placement, now=facts.now)).masks
    capped = frozenset(
        key
        for key, caps in placement.caps.items()
        if find_reached_cap(caps, facts.counts.get(key, NO_COUNTS)) is not None
    )
    exclusions = Exclusions(campaigns={"caps": capped, "budgets": frozenset(facts.budgets)})
    available = remove_excluded(masks, placement, exclusions)
    winners = [one.pair for one in decide(placement, facts.context, available)]
    if not placement.turns:
        return _Choice(winners, frozenset())
    eligible = iter_eligible(placement, facts.context, available)
    tiers = collect_tiers(placement.turns, eligible, slots_max=placement.slots_max)
    is_contested = sum(len(tier.candidates) for tier in tiers) > placement.slots_max
    in_turn = [one.pair for one in tiers[-1].candidates] if is_contested else []
    return _Choice(winners, frozenset(in_turn))


def _judge(
    row: AssignmentRow, placement: PlacementRow, choice: _Choice, facts: RequestFacts
) -> tuple[CandidateOutcome, Reason]:
    removal = find_removal(row, facts)
    if removal is None and row.is_fallback and not placement.allow_partial_render:
        removal = REASONS["no_partial_render"]
    pair = pack_ids(row.banner_id, row.campaign_id)
    if pair in choice.winners:
        # Only an evergreen fills a slot in spite of what removes it.
        shown = "won_as_evergreen" if removal else "won_as_fallback" if row.is_fallback else "won"
        reason = OUTCOMES["won_turn" if pair in choice.in_turn else shown]
        paced = explain_throttle(facts.throttles.get(row.campaign_key, 0.0))
        return CandidateOutcome.WON, reason if paced is None else _join(reason, paced)
    if removal is not None:
        return CandidateOutcome.REMOVED, removal
    if pair in choice.in_turn:
        return CandidateOutcome.LOST, OUTCOMES["other_turn"]
    if any(unpack_ids(winner)[0] == row.banner_id for winner in choice.winners):
        return CandidateOutcome.LOST, OUTCOMES["shown_already"]
    return CandidateOutcome.LOST, OUTCOMES["fallback_not_needed" if row.is_fallback else "slots_filled"]


def _join(reason: Reason, also: Reason) -> Reason:
    return Reason(reason.name, f"{reason.sentence} {also.sentence}", also.change)


def _build_verdict(row: AssignmentRow, outcome: CandidateOutcome, reason: Reason) -> CandidateVerdict:
    return CandidateVerdict(
        banner_id=row.banner_id,
        campaign_id=row.campaign_id,
        title=row.title,
        outcome=outcome,
        removed_by=reason.name if outcome is CandidateOutcome.REMOVED else None,
        reason=reason.sentence,
        change=reason.change,
    )
