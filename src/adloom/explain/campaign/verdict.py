"""What keeps a campaign from being shown, step by step in the order in which the steps decide."""

# pure

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from adloom.catalog.campaign.model import CampaignStatus
from adloom.explain.campaign.check import CampaignCheck, CheckState, count_passing, judge
from adloom.explain.campaign.contextual import check_contextual
from adloom.explain.reasons import (
    OUTCOMES,
    REASONS,
    Reason,
    explain_cap,
    explain_dates,
    explain_schedule,
    explain_throttle,
)
from adloom.explain.traffic import CampaignFacts, CampaignTraffic, count_targeted
from adloom.schedule.schedule_window import find_closed_reason
from adloom.serving.auction import bid_record
from adloom.serving.eligibility.caps import find_reached_cap
from adloom.serving.index.bid_block import has_bid
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Delivery, PlacementRow
from adloom.serving.leases.campaign_lease import BUDGET_PENDING

PACING: Final = "pacing"
BUDGETS: Final = ("daily_budget", "total_budget", "advertiser_budget", bid_record.LIMITS, bid_record.NOT_HELD)
FREQUENCIES: Final = (bid_record.FREQUENCY_CAP, bid_record.FREQUENCY_UNKNOWN)
UNSHOWN: Final = frozenset({AssignmentStatus.BANNER_DELETED, AssignmentStatus.BANNER_INACTIVE})
OWN_STATUSES: Final = frozenset(one for one in AssignmentStatus if one.startswith("campaign_"))

DELIVERS: Final = "It delivers."
NOTHING_IN_THE_WAY: Final = "Nothing stands in its way: it is shown when the next reader comes."
NO_RULES: Final = "It has no targeting rules: it is for every reader."
NO_CAPS: Final = "It has no caps."
UNASSIGNED: Final = Reason(
    "unassigned",
    "No banner of the campaign is assigned to a placement.",
    "Link the campaign to a placement, and assign a banner to it there.",
)
OTHER_READERS: Final = Reason(
    "targeting",
    "Readers were there that the campaign's targeting rules do not want.",
    "Widen the campaign's targeting rules, or switch some of them off.",
)
LACKED_BUDGET: Final = Reason(
    "budget",
    "There were auctions in which its budgets had nothing left to offer at that moment.",
    "Raise the budgets of the campaign or of its advertiser.",
)
WAITED_FOR_BUDGET: Final = Reason(
    "budget_pending",
    "There were auctions in which a delivery process waited for a piece of its budget.",
    "Nothing is wrong where it is seldom: processes ask by themselves. Where it lasts, see that the worker runs.",
)
NO_REQUESTS: Final = Reason(
    "no_requests",
    "Nobody has looked at its placements.",
    "See that the tag is on the pages, and that they name the right placements.",
)
OTHERS_FIRST: Final = Reason(
    "rivals",
    "Readers that its rules want have looked at its direct placements, and have seen other banners.",
    OUTCOMES["slots_filled"].change,
)


def check_campaign(facts: CampaignFacts) -> list[CampaignCheck]:
    steps = STEPS if facts.assigned or facts.reach is None else OWN_STEPS
    checks = [step(facts) for step in steps]
    if facts.reach is not None:
        checks += check_contextual(
            facts.campaign, facts.reach, is_only=not facts.assigned, multiplier=facts.multiplier
        )
    if any(_is_auctioned(placement) for _, placement in facts.assigned):
        checks += [step(facts) for step in AUCTION_STEPS]
    # A campaign that is stopped loses no slot to others.
    if not any(one.state is CheckState.STOPS for one in checks) and any(
        not _is_auctioned(placement) for _, placement in _list_usable(facts)
    ):
        checks.append(_check_rivals(facts))
    return checks


def summarize(checks: Sequence[CampaignCheck], traffic: CampaignTraffic) -> str:
    stops = next((one for one in checks if one.state is CheckState.STOPS), None)
    if stops is not None:
        return stops.sentence
    if traffic.own_impressions or traffic.auctions.won:
        return DELIVERS
    limits = next((one for one in checks if one.state is CheckState.LIMITS), None)
    return limits.sentence if limits else NOTHING_IN_THE_WAY


def _check_status(facts: CampaignFacts) -> CampaignCheck:
    campaign = facts.campaign
    if campaign.deleted_at is not None:
        return judge("status", REASONS[AssignmentStatus.CAMPAIGN_DELETED])
    if campaign.status is CampaignStatus.SCHEDULED and campaign.starts_at is None:
        return judge("status", REASONS[AssignmentStatus.CAMPAIGN_UNDATED])
    return judge("status", REASONS.get(f"campaign_{campaign.status}"))


def _check_dates(facts: CampaignFacts) -> CampaignCheck:
    return judge("dates", explain_dates(facts.campaign.starts_at, facts.campaign.ends_at, facts.now))


def _check_placements(facts: CampaignFacts) -> CampaignCheck:
    assigned = facts.assigned
    if not assigned:
        return judge("placements", UNASSIGNED)
    reasons = [reason for pair in assigned if (reason := _find_unusable(*pair)) is not None]
    return count_passing("placements", next(iter(reasons), None), len(assigned) - len(reasons), len(assigned))


def _list_usable(facts: CampaignFacts) -> list[tuple[AssignmentRow, PlacementRow]]:
    return [pair for pair in facts.assigned if _find_unusable(*pair) is None]


def _find_unusable(row: AssignmentRow, placement: PlacementRow) -> Reason | None:
    """Return why a banner can never be shown on a placement; the campaign's own status is another step."""
    if not placement.is_active:
        return REASONS["placement_inactive"]
    if row.status is not AssignmentStatus.LIVE and row.status not in OWN_STATUSES:
        return REASONS[row.status]
    return REASONS["no_bid"] if _is_auctioned(placement) and not has_bid(row) else None


def _check_schedule(facts: CampaignFacts) -> CampaignCheck:
    rows = [row for row, _ in _list_usable(facts) or facts.assigned]
    # Of a campaign that is for contextual slots only.
    rows = rows or [row for row in facts.creatives if row.status not in UNSHOWN]
    schedules = {row.banner_key: row.schedule for row in rows}
    closed = [
        (why, one)
        for one in schedules.values()
        if (why := find_closed_reason(one, now=facts.now)) is not None
    ]
    reason = explain_schedule(*closed[0]) if closed else None
    return count_passing("schedule", reason, len(schedules) - len(closed), len(schedules) or None)


def _check_targeting(facts: CampaignFacts) -> CampaignCheck:
    assigned, traffic = facts.assigned, facts.traffic
    rules = assigned[0][0].rules if assigned else ()
    if not rules:
        return judge("targeting", None, NO_RULES)
    held = traffic.auctions.held - traffic.auctions.count_removed(bid_record.TARGETING)
    passed = count_targeted(rules, traffic.seen, facts.zones) + held
    reason = None if passed == traffic.requests else OTHER_READERS
    return count_passing("targeting", reason, passed, traffic.requests)


def _check_caps(facts: CampaignFacts) -> CampaignCheck:
    caps = facts.caps
    if caps is None:
        return judge("caps", None, NO_CAPS)
    name = find_reached_cap(caps, facts.counts)
    return judge("caps", None if name is None else explain_cap(name, caps))


def _check_budget(facts: CampaignFacts) -> CampaignCheck:
    missing = facts.missing_budget
    if missing is not None and missing != PACING:
        return judge("budget", REASONS[missing])
    lacked = facts.traffic.auctions.count_removed(*BUDGETS)
    reason = LACKED_BUDGET if lacked else WAITED_FOR_BUDGET
    return _count_auctions("budget", reason, facts.traffic, *BUDGETS, BUDGET_PENDING)


def _check_pacing(facts: CampaignFacts) -> CampaignCheck:
    check = _count_auctions("pacing", REASONS[PACING], facts.traffic, PACING)
    reason = REASONS[PACING] if facts.missing_budget == PACING else explain_throttle(facts.throttle)
    if reason is None:
        return check
    return msgspec.structs.replace(
        check, state=CheckState.LIMITS, sentence=reason.sentence, change=reason.change
    )


def _check_requests(facts: CampaignFacts) -> CampaignCheck:
    requests = facts.traffic.requests
    if requests or not facts.assigned:
        return count_passing("requests", None, requests, requests)
    return judge("requests", NO_REQUESTS)


def _check_frequency(facts: CampaignFacts) -> CampaignCheck:
    return _count_auctions("frequency", REASONS[bid_record.FREQUENCY_CAP], facts.traffic, *FREQUENCIES)


def _check_floor(facts: CampaignFacts) -> CampaignCheck:
    return _count_auctions("floor", REASONS[bid_record.FLOOR], facts.traffic, bid_record.FLOOR)


def _check_auctions(facts: CampaignFacts) -> CampaignCheck:
    auctions = facts.traffic.auctions
    reason = OUTCOMES["outbid"] if auctions.lost else None
    return count_passing("auctions", reason, auctions.won, auctions.won + auctions.lost)


def _check_rivals(facts: CampaignFacts) -> CampaignCheck:
    usable = _list_usable(facts)
    keys = {placement.key for _, placement in usable if not _is_auctioned(placement)}
    there = [one for one in facts.traffic.seen if one.placement_key in keys]
    shown = sum(one.own_impressions for one in there)
    wanted = count_targeted(usable[0][0].rules, there, facts.zones)
    check = count_passing("rivals", OTHERS_FIRST if wanted and not shown else None, shown, wanted)
    return msgspec.structs.replace(check, state=CheckState.LIMITS) if check.change else check


Step = Callable[[CampaignFacts], CampaignCheck]
STEPS: Final[tuple[Step, ...]] = (
    _check_status,
    _check_dates,
    _check_placements,
    _check_schedule,
    _check_targeting,
    _check_caps,
    _check_budget,
    _check_pacing,
    _check_requests,
)
# Of a campaign that is for contextual slots only.
OWN_STEPS: Final[tuple[Step, ...]] = (
    _check_status,
    _check_dates,
    _check_schedule,
    _check_caps,
    _check_budget,
    _check_pacing,
)
AUCTION_STEPS: Final[tuple[Step, ...]] = (_check_frequency, _check_floor, _check_auctions)


def _is_auctioned(placement: PlacementRow) -> bool:
    return placement.delivery is Delivery.AUCTION


def _count_auctions(name: str, reason: Reason, traffic: CampaignTraffic, *steps: str) -> CampaignCheck:
    """Judge a step by how often it took the campaign out of auctions."""
    held, removed = traffic.auctions.held, traffic.auctions.count_removed(*steps)
    return (
        count_passing(name, reason if removed else None, held - removed, held) if held else judge(name, None)
    )
