"""What needs attention, judged from figures."""

# pure

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from adloom.auction.calibration import CalibrationReport
from adloom.bidding.decide import BELOW_MARKET
from adloom.budgets.lifetime_counts import LifetimeCounts
from adloom.budgets.status import BudgetStatus
from adloom.core.currency import Currency
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.ops.checks.finding import Finding, FindingState

SOON: Final = timedelta(days=3)
# A third behind its pacing it will hardly catch up: pacing itself runs a fifth ahead of the clock.
PACE_GOOD: Final = 0.66
MULTIPLIER_GOOD: Final = 0.66
OPPORTUNITIES_MIN: Final = 30
WON_SHARE_GOOD: Final = 0.05
# A campaign that has just begun has spent nothing yet.
SETTLED_AFTER: Final = timedelta(hours=2)
EACH_MAX: Final = 10
# Of a click that is predicted right, two thirds of its holds come back; of impressions that nobody scrolls to, more.
UNCONFIRMED_TIMES: Final = 20
UNCONFIRMED_SHARE: Final = 0.5  # Of the budget: less keeps nothing off the air.


CALIBRATION_REMEDY: Final = {
    "heuristic": "Prices of its auctions are off by that: let placements use learned scoring.",
    "learned": "Look for traffic that has changed or is not human; the model follows within a day.",
}


class AttentionLevel(StrEnum):
    """How bad it is."""

    BAD = "bad"
    WARN = "warn"
    INFO = "info"


class AttentionKind(StrEnum):
    """What it is about."""

    PROCESSES = "processes"
    LEDGER = "ledger"
    JOBS = "jobs"
    EXHAUSTED = "exhausted"
    UNDER_DELIVERING = "underDelivering"
    TARGET_BELOW_MARKET = "targetBelowMarket"
    UNCONFIRMED = "unconfirmed"
    EXPIRING = "expiring"
    CREDENTIALS = "credentials"
    VERIFICATION = "verification"
    STALE_PAGES = "stalePages"
    CALIBRATION = "calibration"
    COUNTRIES = "countries"
    UNKNOWN_SLUGS = "unknownSlugs"


# What is said of things that need no judgement.
MESSAGES: Final = {
    AttentionKind.EXPIRING: (AttentionLevel.INFO, "ends soon."),
    AttentionKind.CREDENTIALS: (
        AttentionLevel.BAD,
        "does not let us in any more: its credentials have to be renewed.",
    ),
    AttentionKind.VERIFICATION: (
        AttentionLevel.BAD,
        "is not verified any more: its file was missing three times in a row. Put it back and verify again.",
    ),
    AttentionKind.STALE_PAGES: (
        AttentionLevel.BAD,
        "shows no ads in its contextual slots: all its pages are out of date. Crawl it, or send its pages again.",
    ),
    AttentionKind.COUNTRIES: (
        AttentionLevel.BAD,
        (
            "is for readers of certain countries, and no reader's country is known here, so nobody sees it. "
            "Set ADLOOM_GEOIP_FILE, or ADLOOM_TRUSTED_PROXIES to a proxy that sends the country."
        ),
    ),
}


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look at: what it is, and of what; `at` is when it happens or has happened."""

    kind: AttentionKind
    level: AttentionLevel
    message: str
    noun: str | None = None
    id: UUID | None = None
    name: str | None = None
    at: datetime | None = None


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign, a banner or an account elsewhere; `at` is when it begins, ends or has expired."""

    noun: str
    id: UUID
    name: str
    at: datetime | None = None


def describe_findings(kind: AttentionKind, findings: Iterable[Finding]) -> list[Attention]:
    """Turn the checks of the installation that are not OK into items; the remedy is part of the message."""
    return [
        Attention(
            kind=kind,
            level=AttentionLevel.BAD if one.state is FindingState.FAIL else AttentionLevel.WARN,
            message=f"{one.name}: {one.detail}. {one.remedy[0].upper()}{one.remedy[1:]}.",
        )
        for one in findings
        if one.state is not FindingState.OK
    ]


class CappedCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """A running campaign with caps, and what it has had."""

    thing: Thing
    impression_cap: int | None
    click_cap: int | None
    counts: LifetimeCounts


class RunningCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """A running campaign with a budget; `cost` is what one impression or click costs at most."""

    thing: Thing
    status: BudgetStatus
    cost: Micros = Micros(0)
    is_by_click: bool = False


def find_exhausted(campaign: RunningCampaign, currency: Currency) -> str | None:
    """Say which budget does not pay for one more impression or click; None if both do.

    What is held may come back, so it counts as left, unless nothing at all is left to promise.
    """
    status = campaign.status
    budgets = (
        ("total budget", status.total_budget, status.spent_total),
        ("budget of today", status.daily_budget, status.spent_window),
    )
    for name, budget, spent in budgets:
        if budget is not None and spent >= budget:
            return f"has spent its {name}."
    for name, budget, spent in budgets:
        if budget is not None and budget - spent < campaign.cost:
            left = currency.write_price((budget - spent) / MICROS_PER_UNIT)
            what = "click" if campaign.is_by_click else "impression"
            return f"has {left} left of its {name}, which does not pay for one more {what}."
    return "has spent its budget of today." if status.remaining_today == 0 else None


def judge_budgets(
    campaigns: Iterable[RunningCampaign], *, now: datetime, currency: Currency
) -> list[Attention]:
    """Find running campaigns that have nothing left to spend, or spend too little."""
    found: list[Attention] = []
    for campaign in campaigns:
        thing, status = campaign.thing, campaign.status
        if exhausted := find_exhausted(campaign, currency):
            found.append(_make_attention(thing, AttentionKind.EXHAUSTED, AttentionLevel.WARN, exhausted))
        elif status.pace is not None and status.pace < PACE_GOOD and _is_settled(thing, now):
            because = find_cause(status)
            message = (
                f"has spent {status.pace:.0%} of what it may have by now{because and f', because {because}'}."
            )
            found.append(_make_attention(thing, AttentionKind.UNDER_DELIVERING, AttentionLevel.WARN, message))
        decision = None if status.bids is None else status.bids.decision
        if decision is not None and decision.note == BELOW_MARKET:
            message = (
                "has a target below the market: at its full bid it wins next to nothing. "
                "Raise the target, or accept it."
            )
            kind = AttentionKind.TARGET_BELOW_MARKET
            found.append(_make_attention(thing, kind, AttentionLevel.WARN, message))
        if _is_hoarded(status):
            times = "" if not status.spent_today else f" {status.unconfirmed // status.spent_today} times"
            message = (
                f"has offers that nobody confirms: today they held{times} what was charged. "
                "Look for a client that asks for ads and does not show them."
            )
            found.append(_make_attention(thing, AttentionKind.UNCONFIRMED, AttentionLevel.WARN, message))
    return found


def find_cause(status: BudgetStatus) -> str:
    """Say why a campaign spends too little, as far as its bidding says it; empty if it does not."""
    bids = status.bids
    if bids is None or bids.decision is None:
        return ""
    if bids.decision.fallback is not None:
        return f"its strategy fell back ({bids.decision.fallback}) and bids {bids.multiplier:.0%} of its bid"
    if bids.multiplier < MULTIPLIER_GOOD:
        return f"its strategy bids {bids.multiplier:.0%} of its bid"
    opportunities = bids.memory.traffic
    if opportunities < OPPORTUNITIES_MIN:
        return f"only {opportunities:.0f} requests could have shown it today: widen what it wants"
    won = bids.counts.subtract(bids.counted_before).impressions / opportunities
    if won < WON_SHARE_GOOD:
        return f"it wins {won:.1%} of the requests that it bids on at its full bid: raise the bid"
    return ""


def _is_hoarded(status: BudgetStatus) -> bool:
    """Whether nearly all that was held today came back, and that was much of the budget."""
    budgets = [one for one in (status.daily_budget, status.total_budget) if one is not None]
    return (
        bool(budgets)
        and status.unconfirmed > UNCONFIRMED_SHARE * min(budgets)
        and status.unconfirmed > UNCONFIRMED_TIMES * status.spent_today
    )


def judge_caps(campaigns: Iterable[CappedCampaign]) -> list[Attention]:
    """Find running campaigns that have had all that their caps allow."""
    found: list[Attention] = []
    for one in campaigns:
        for what, cap, had in (
            ("impression", one.impression_cap, one.counts.impressions),
            ("click", one.click_cap, one.counts.clicks),
        ):
            if cap is not None and had >= cap:
                allowed = f"the one {what}" if cap == 1 else f"the {cap:,} {what}s"
                message = f"has had {allowed} that its cap allows, so it is not shown any more."
                found.append(
                    _make_attention(one.thing, AttentionKind.EXHAUSTED, AttentionLevel.WARN, message)
                )
                break
    return found


def list_unknown_slugs(hosts: Mapping[str, str]) -> list[Attention]:
    """List slugs that tags ask for and no active placement has, each with the host of a page."""
    return [
        Attention(
            kind=AttentionKind.UNKNOWN_SLUGS,
            level=AttentionLevel.WARN,
            message=(
                f"A page of {host} asks for the placement {slug!r}, which no active placement is called. "
                "Correct the tag, or make the placement."
            ),
        )
        for slug, host in sorted(hosts.items())
    ]


def describe_things(kind: AttentionKind, things: Iterable[Thing]) -> list[Attention]:
    """Turn what was found of a kind into items, which all say the same."""
    level, message = MESSAGES[kind]
    return [_make_attention(thing, kind, level, message) for thing in things]


def judge_calibrations(reports: Iterable[CalibrationReport]) -> list[Attention]:
    """Find ways of predicting clicks that are far off, with enough evidence."""
    return [
        Attention(
            kind=AttentionKind.CALIBRATION,
            level=AttentionLevel.WARN,
            message=(
                f"Scoring {one.scoring!r} has predicted {one.ratio or 0:.2f} clicks for each that came. "
                f"{CALIBRATION_REMEDY.get(one.scoring, '')}"
            ).strip(),
        )
        for one in reports
        if one.is_far_off
    ]


def _is_settled(thing: Thing, now: datetime) -> bool:
    return thing.at is None or thing.at <= now - SETTLED_AFTER


def _make_attention(thing: Thing, kind: AttentionKind, level: AttentionLevel, message: str) -> Attention:
    return Attention(kind=kind, level=level, message=message, **msgspec.structs.asdict(thing))
