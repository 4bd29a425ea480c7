"""What stands in the way of a campaign, looked at step by step in the order in which the steps decide. Pure."""

# pure

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from adloom.catalog.campaign.lifecycle import CampaignStatus
from adloom.catalog.campaign.model import Campaign
from adloom.explain.auction.verdict import NO_BID, OUTBID, SEEN_ENOUGH, UNDER_FLOOR
from adloom.explain.campaign import sentences
from adloom.explain.campaign.targeted import wanted_impressions
from adloom.explain.campaign.traffic import Traffic
from adloom.explain.sentences import REASONS, Reason, campaign_dates_reason, cap_reason, schedule_reason
from adloom.schedule.schedule_window import find_closed_reason
from adloom.serving.auction.record.removal import (
    FLOOR,
    FREQUENCY_CAP,
    FREQUENCY_UNKNOWN,
    LIMITS,
    NOT_HELD,
    TARGETING,
)
from adloom.serving.eligibility.caps import LifetimeCounts, find_reached_cap
from adloom.serving.index.bid_block import has_bid
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Delivery, PlacementRow, PlacementRows
from adloom.serving.leases.campaign_lease import BUDGET_PENDING

PACING: Final = "pacing"
BUDGETS: Final = ("daily_budget", "total_budget", "advertiser_budget", LIMITS, NOT_HELD)
FREQUENCIES: Final = (FREQUENCY_CAP, FREQUENCY_UNKNOWN)
OF_CAMPAIGN: Final = frozenset(
    {
        AssignmentStatus.CAMPAIGN_DELETED, AssignmentStatus.CAMPAIGN_DRAFT, AssignmentStatus.CAMPAIGN_PAUSED, AssignmentStatus.CAMPAIGN_ENDED,
        AssignmentStatus.CAMPAIGN_CANCELLED, AssignmentStatus.CAMPAIGN_UNDATED,
    }
)  # fmt: skip


class State(StrEnum):
    """How a step treats the campaign."""

    OK = "ok"
    LIMITS = "limits"
    STOPS = "stops"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One step: whether it lets the campaign pass, and how often it did, of how many, where that is counted."""

    name: str
    state: State
    sentence: str
    change: str | None = None
    passed: int | None = None
    of: int | None = None


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a campaign and its surroundings at a moment."""

    campaign: Campaign
    placements: Sequence[PlacementRows]
    counts: LifetimeCounts
    lacking: str | None
    traffic: Traffic
    now: datetime


Assigned = tuple[AssignmentRow, PlacementRow]


def checked(known: Known) -> list[Check]:
    """Look at every step."""
    assigned = [(row, one.placement) for one in known.placements for row in one.assignments]
    usable = [pair for pair in assigned if _unusable(*pair) is None]
    checks = [
        _status(known.campaign),
        _dates(known.campaign, known.now),
        _placements(assigned, usable),
        _schedule(usable or assigned, known.now),
        _targeting(known, assigned),
        _caps(assigned, known.counts),
        _budget(known),
        _pacing(known),
        _requests(known, assigned),
    ]
    if any(_is_auctioned(placement) for _, placement in assigned):
        checks += _in_auctions(known.traffic)
    # Who is not there at all loses no slot to anybody.
    if not any(one.state is State.STOPS for one in checks) and any(
        not _is_auctioned(placement) for _, placement in usable
    ):
        checks.append(_among_direct(known, usable))
    return checks


def verdict(checks: Sequence[Check], traffic: Traffic) -> str:
    """Say in a sentence how it goes."""
    stops = next((one for one in checks if one.state is State.STOPS), None)
    if stops is not None:
        return stops.sentence
    if traffic.own_impressions or traffic.auctions.won:
        return sentences.DELIVERS
    limits = next((one for one in checks if one.state is State.LIMITS), None)
    return limits.sentence if limits else sentences.NOTHING_IN_THE_WAY


def _status(campaign: Campaign) -> Check:
    if campaign.deleted_at is not None:
        return _stopped(sentences.STATUS, REASONS[AssignmentStatus.CAMPAIGN_DELETED])
    if campaign.status is CampaignStatus.SCHEDULED and campaign.starts_at is None:
        return _stopped(sentences.STATUS, REASONS[AssignmentStatus.CAMPAIGN_UNDATED])
    reason = REASONS.get(f"campaign_{campaign.status}")
    return (
        _fine(sentences.STATUS, sentences.IS_ACTIVE) if reason is None else _stopped(sentences.STATUS, reason)
    )


def _dates(campaign: Campaign, now: datetime) -> Check:
    starts, ends = campaign.starts_at, campaign.ends_at
    if (starts is None or starts <= now) and (ends is None or now < ends):
        return _fine(sentences.DATES, sentences.WITHIN_DATES)
    return _stopped(sentences.DATES, campaign_dates_reason(starts, ends, now))


def _placements(assigned: Sequence[Assigned], usable: Sequence[Assigned]) -> Check:
    if not assigned:
        return _stopped(sentences.PLACEMENTS, sentences.UNASSIGNED)
    reasons = [reason for pair in assigned if (reason := _unusable(*pair)) is not None]
    return _counted(
        sentences.PLACEMENTS,
        sentences.HAS_PLACEMENTS,
        next(iter(reasons), None),
        passed=len(usable),
        of=len(assigned),
    )


def _unusable(row: AssignmentRow, placement: PlacementRow) -> Reason | None:
    """Tell why a banner on a placement cannot be shown at all; what is the campaign's own is told elsewhere."""
    if not placement.is_active:
        return REASONS["placement_inactive"]
    if row.status is not AssignmentStatus.LIVE and row.status not in OF_CAMPAIGN:
        return REASONS[row.status]
    return NO_BID if _is_auctioned(placement) and not has_bid(row) else None


def _schedule(assigned: Sequence[Assigned], now: datetime) -> Check:
    schedules = {row.banner_key: row.schedule for row, _ in assigned}
    closed = [
        (why, one) for one in schedules.values() if (why := find_closed_reason(one, now=now)) is not None
    ]
    reason = schedule_reason(*closed[0]) if closed else None
    total = len(schedules)
    return _counted(
        sentences.SCHEDULE, sentences.OPEN_NOW, reason, passed=total - len(closed), of=total or None
    )


def _targeting(known: Known, assigned: Sequence[Assigned]) -> Check:
    rules = assigned[0][0].rules if assigned else ()
    if not rules:
        return _fine(sentences.TARGETING, sentences.FOR_EVERYBODY)
    traffic = known.traffic
    zones = {placement.key: placement.timezone for _, placement in assigned}
    wanted = wanted_impressions(rules, traffic.seen, zones)
    passed = wanted + traffic.auctions.held - traffic.auctions.removed_by(TARGETING)
    reason = None if passed == traffic.asked else sentences.OTHER_READERS
    return _counted(sentences.TARGETING, sentences.RIGHT_READERS, reason, passed=passed, of=traffic.asked)


def _caps(assigned: Sequence[Assigned], counts: LifetimeCounts) -> Check:
    caps = assigned[0][0].caps if assigned else None
    if caps is None:
        return _fine(sentences.CAPS, sentences.NO_CAPS)
    name = find_reached_cap(caps, counts)
    if name is None:
        return _fine(sentences.CAPS, sentences.UNDER_CAPS)
    return _stopped(sentences.CAPS, cap_reason(name, caps))


def _budget(known: Known) -> Check:
    lacking = known.lacking
    if lacking is not None and lacking != PACING:
        return _stopped(sentences.BUDGET, REASONS[lacking])
    lacked = known.traffic.auctions.removed_by(*BUDGETS)
    reason = sentences.LACKED_BUDGET if lacked else sentences.WAITED_FOR_BUDGET
    return _limited(sentences.BUDGET, sentences.HAS_BUDGET, reason, known.traffic, (*BUDGETS, BUDGET_PENDING))


def _pacing(known: Known) -> Check:
    check = _limited(sentences.PACING, sentences.ON_PACE, REASONS[PACING], known.traffic, (PACING,))
    if known.lacking != PACING:
        return check
    return msgspec.structs.replace(
        check, state=State.LIMITS, sentence=REASONS[PACING].sentence, change=REASONS[PACING].change
    )


def _requests(known: Known, assigned: Sequence[Assigned]) -> Check:
    asked = known.traffic.asked
    if asked or not assigned:
        return Check(
            name=sentences.REQUESTS, state=State.OK, sentence=sentences.HAS_REQUESTS, passed=asked, of=asked
        )
    return _stopped(sentences.REQUESTS, sentences.NO_REQUESTS)


def _in_auctions(traffic: Traffic) -> list[Check]:
    auctions = traffic.auctions
    return [
        _limited(sentences.FREQUENCY, sentences.NOT_SEEN_ENOUGH, SEEN_ENOUGH, traffic, FREQUENCIES),
        _limited(sentences.FLOOR, sentences.OVER_FLOOR, UNDER_FLOOR, traffic, (FLOOR,)),
        _counted(
            sentences.AUCTIONS,
            sentences.WINS,
            OUTBID if auctions.lost else None,
            passed=auctions.won,
            of=auctions.won + auctions.lost,
        ),
    ]


def _among_direct(known: Known, usable: Sequence[Assigned]) -> Check:
    keys = {placement.key for _, placement in usable if not _is_auctioned(placement)}
    there = [one for one in known.traffic.seen if one.placement_key in keys]
    shown = sum(one.own_impressions for one in there)
    zones = {placement.key: placement.timezone for _, placement in usable}
    wanted = wanted_impressions(usable[0][0].rules, there, zones)
    if shown or not wanted:
        return Check(
            name=sentences.RIVALS, state=State.OK, sentence=sentences.HAS_SLOTS, passed=shown, of=wanted
        )
    change = REASONS["slots_filled"].change
    return Check(
        name=sentences.RIVALS,
        state=State.LIMITS,
        sentence=sentences.OTHERS_FIRST,
        change=change,
        passed=0,
        of=wanted,
    )


def _is_auctioned(placement: PlacementRow) -> bool:
    return placement.delivery is Delivery.AUCTION


def _limited(name: str, fine: str, reason: Reason, traffic: Traffic, steps: Iterable[str]) -> Check:
    """Judge a step by how often it took the campaign out of auctions."""
    held, removed = traffic.auctions.held, traffic.auctions.removed_by(*steps)
    if not held:
        return _fine(name, fine)
    return _counted(name, fine, reason if removed else None, passed=held - removed, of=held)


def _counted(name: str, fine: str, reason: Reason | None, *, passed: int, of: int | None) -> Check:
    """Judge a step by how many pass it: all is fine, none stops the campaign."""
    if reason is None:
        return Check(name=name, state=State.OK, sentence=fine, passed=passed, of=of)
    state = State.STOPS if passed == 0 else State.LIMITS
    return Check(name=name, state=state, sentence=reason.sentence, change=reason.change, passed=passed, of=of)


def _fine(name: str, sentence: str) -> Check:
    return Check(name=name, state=State.OK, sentence=sentence)


def _stopped(name: str, reason: Reason) -> Check:
    return Check(name=name, state=State.STOPS, sentence=reason.sentence, change=reason.change)
