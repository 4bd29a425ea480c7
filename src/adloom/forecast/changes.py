"""What is changed of a campaign in a simulation: its bid, budgets, dates, pacing or targeting."""

# pure

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from adloom.auction.bid import QUALITY_ONE, BidType, Quality
from adloom.auction.price import compute_ecpm, compute_worth
from adloom.auction.score import Signals
from adloom.bidding.window import BidStrategy
from adloom.core.clock import parse_moment
from adloom.core.errors import AdloomError, CommandError
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.forecast.market import NamedCampaign, SimulatedMarket
from adloom.schedule.pacing import PacingStrategy
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.rows import (
    SCORING,
    AssignmentRow,
    AssignmentStatus,
    Delivery,
    PlacementRow,
    compute_price,
)
from adloom.targeting.rules import Operator, Rule, RuleType, parse_rule
from adloom.taxonomy.iab import load_content

# Statuses that a change of bid or dates may end; any other reason stays.
BY_PRICE: Final = frozenset({AssignmentStatus.LIVE, AssignmentStatus.FLOOR, AssignmentStatus.NO_BID})

NameT = TypeVar("NameT", bound=StrEnum)

_changed = msgspec.structs.replace


class MarketChangeError(CommandError):
    """A change that cannot be read, or is of a campaign that the market does not have."""


class CampaignChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed of one campaign; what is unset stays."""

    campaign_key: int
    bid: Micros | UnsetType = UNSET
    daily_budget: Micros | UnsetType | None = UNSET
    total_budget: Micros | UnsetType | None = UNSET  # What is left of it.
    starts_at: datetime | UnsetType | None = UNSET
    ends_at: datetime | UnsetType | None = UNSET
    pacing: PacingStrategy | UnsetType = UNSET
    bid_strategy: BidStrategy | UnsetType = UNSET
    target: Micros | UnsetType | None = UNSET  # What a conversion should cost.
    rules: tuple[Rule, ...] | UnsetType = UNSET
    categories: tuple[str, ...] | UnsetType = UNSET  # Of pages, for contextual slots.
    excluded_categories: tuple[str, ...] | UnsetType = UNSET


def apply_changes(market: SimulatedMarket, changes: Sequence[CampaignChange]) -> SimulatedMarket:
    """Return the market as it would be."""
    for change in changes:
        market = _apply(market, change)
    return market


def _apply(market: SimulatedMarket, change: CampaignChange) -> SimulatedMarket:
    placements = {one.key: one for one in market.placements}
    key = change.campaign_key
    campaigns = [
        _change_campaign(one, change, market.starts_at) if one.key == key else one for one in market.campaigns
    ]
    config = next(one.config for one in campaigns if one.key == key)
    is_limited = config.daily_budget is not None or config.total_budget is not None or config.is_allotted
    assignments = [
        _change_assignment(row, change, placements[row.placement_key], is_limited=is_limited)
        if row.campaign_key == key
        else row
        for row in market.assignments
    ]
    creatives = [
        _change_creative(row, change, is_limited=is_limited) if row.assignment.campaign_key == key else row
        for row in market.creatives
    ]
    return _changed(market, campaigns=campaigns, assignments=assignments, creatives=creatives)


def _change_campaign(campaign: NamedCampaign, change: CampaignChange, now: datetime) -> NamedCampaign:
    config = campaign.config
    for name, value in (
        ("daily_budget", change.daily_budget),
        ("total_budget", change.total_budget),
        ("pacing", change.pacing),
        ("bid_strategy", change.bid_strategy),
        ("target", change.target),
    ):
        if value is not UNSET:
            config = _changed(config, **{name: value})
    config = _changed(config, has_bid=config.bid_strategy is not BidStrategy.FIXED)
    if isinstance(change.ends_at, datetime) and change.ends_at <= now:
        config = _changed(config, is_running=False)
    return _changed(campaign, config=config)


def _change_creative(row: CreativeRow, change: CampaignChange, *, is_limited: bool) -> CreativeRow:
    assignment = _change_assignment(row.assignment, change, None, is_limited=is_limited)
    terms = row.terms
    if change.categories is not UNSET:
        terms = _changed(terms, categories=change.categories)
    if change.excluded_categories is not UNSET:
        terms = _changed(terms, excluded_categories=change.excluded_categories)
    return CreativeRow(assignment, terms)


def _change_assignment(
    row: AssignmentRow, change: CampaignChange, placement: PlacementRow | None, *, is_limited: bool
) -> AssignmentRow:
    """Change what a banner does on a placement; without one, in contextual slots."""
    if change.starts_at is not UNSET:
        row = _changed(row, starts_at=change.starts_at)
    if change.ends_at is not UNSET:
        row = _changed(row, ends_at=change.ends_at)
    if change.rules is not UNSET:
        row = _changed(row, rules=change.rules)
    if change.bid is not UNSET:
        row = _change_bid(row, change.bid, placement)
    return _changed(row, is_limited=is_limited)


def _change_bid(row: AssignmentRow, bid: Micros, placement: PlacementRow | None) -> AssignmentRow:
    """Change a bid; on a direct placement one that is under the floor ends an assignment, and a higher one revives it."""
    status = row.status
    if placement is None:
        # A campaign that bids by click is not shown in contextual slots, whatever it bids.
        is_bidding = status is AssignmentStatus.NO_BID and row.bid_type is BidType.CPM
        status = AssignmentStatus.LIVE if is_bidding else status
        return _changed(row, bid=bid, price=compute_price(row.bid_type, bid), status=status)
    # A campaign that is live there under the floor does not have to reach it: the house's, or the publisher's own.
    is_exempt = status is AssignmentStatus.LIVE and not _reaches_floor(row, row.bid, placement)
    if placement.delivery is Delivery.DIRECT and status in BY_PRICE and not is_exempt:
        reaches = _reaches_floor(row, bid, placement)
        status = AssignmentStatus.LIVE if reaches else AssignmentStatus.FLOOR
    return _changed(row, bid=bid, price=compute_price(row.bid_type, bid), status=status)


def _reaches_floor(row: AssignmentRow, bid: Micros | None, placement: PlacementRow) -> bool:
    scorer = SCORING.build_scorer(Signals(placement_type=placement.placement_type))
    worth = compute_worth(bid or Micros(0), Quality(QUALITY_ONE))
    return bool(bid) and compute_ecpm(row.bid_type, worth, scorer.ctr_max) >= placement.floor


# ---------------------------------------------------------------- as people write it

_SENTENCE: Final = re.compile(r"\s*campaign\s+(?P<name>.+):\s+(?P<parts>.+?)\s*", re.IGNORECASE)
_PART: Final = re.compile(
    r"(?P<field>bid|(?:daily |total )?budget|starts|ends|pacing|strategy|target|categories|excludes)\s+(?P<value>.+)",
    re.IGNORECASE,
)
_RULE: Final = re.compile(
    r"(?P<field>[a-z_]+)\s+(?P<operator>in|not_in|is|between)\s+(?P<value>.+)", re.IGNORECASE
)
_RELATIVE: Final = re.compile(r"(?P<sign>[+-])\s*(?P<percent>\d+(?:\.\d+)?)\s*%")
_TIMES: Final = re.compile(r"[x*]\s*(?P<factor>\d+(?:\.\d+)?)")
_AMOUNT: Final = re.compile(r"\d+(?:\.\d{1,4})?")
EXAMPLES: Final = (
    "write 'campaign NAME: bid +20 %', 'budget 100', 'total budget none', 'starts 2026-04-01', 'ends none',"
    " 'pacing Smooth', 'strategy pacer', 'target 5', 'categories 483 653', 'excludes 210' or a rule such as 'country in DE FR'; several parts are parted by ';'"
)


def parse_change(text: str, market: SimulatedMarket) -> CampaignChange:
    """Parse a change such as `campaign Shoes: bid +20 %; ends 2026-04-01`."""
    found = _SENTENCE.fullmatch(text)
    if found is None:
        raise MarketChangeError(f"{text!r} is no change: {EXAMPLES}.")
    campaign = find_campaign(market, found["name"])
    change = CampaignChange(campaign_key=campaign.key)
    rules: list[Rule] = []
    for part in found["parts"].split(";"):
        if (field := _PART.fullmatch(part.strip())) is not None:
            change = _add_field(change, campaign, market, field["field"].lower(), field["value"].strip())
        elif (rule := _RULE.fullmatch(part.strip())) is not None:
            rules.append(_parse_rule(rule["field"].lower(), rule["operator"].lower(), rule["value"]))
        else:
            raise MarketChangeError(f"{part.strip()!r} is no change: {EXAMPLES}.")
    starts_at, ends_at = change.starts_at, change.ends_at
    if isinstance(starts_at, datetime) and isinstance(ends_at, datetime) and ends_at <= starts_at:
        raise MarketChangeError(f"A campaign ends after it starts, not on {ends_at:%Y-%m-%d}.")
    return _changed(change, rules=tuple(rules)) if rules else change


def find_campaign(market: SimulatedMarket, name: str) -> NamedCampaign:
    """Find a campaign by its name or its id."""
    found = [one for one in market.campaigns if name in {one.name, str(one.id)}]
    if len(found) != 1:
        count = "no campaign" if not found else f"{len(found)} campaigns: give an id instead, as there is"
        some = ", ".join(one.name for one in market.campaigns[:5])
        raise MarketChangeError(
            f"The market has {count} {name!r}; it has {some}{' …' if market.campaigns[5:] else ''}."
        )
    return found[0]


def _add_field(  # noqa: PLR0911 - one for each field
    change: CampaignChange, campaign: NamedCampaign, market: SimulatedMarket, field: str, value: str
) -> CampaignChange:
    match field:
        case "bid":
            rows = [*market.assignments, *(row.assignment for row in market.creatives)]
            bids = [row.bid for row in rows if row.campaign_key == campaign.key]
            bid = _parse_amount(value, next((one for one in bids if one), None))
            if not bid:
                raise MarketChangeError(f"A bid is more than 0, not {value}.")
            return _changed(change, bid=bid)
        case "budget" | "daily budget":
            return _changed(change, daily_budget=_parse_limit(value, campaign.config.daily_budget))
        case "total budget":
            return _changed(change, total_budget=_parse_limit(value, campaign.config.total_budget))
        case "starts":
            return _changed(change, starts_at=_parse_day(value))
        case "ends":
            return _changed(change, ends_at=_parse_day(value))
        case "strategy":
            return _changed(change, bid_strategy=_parse_name(value, BidStrategy, "strategy"))
        case "categories" | "excludes":
            named = _parse_categories(value, campaign, market)
            return _changed(change, **{"excluded_categories" if field == "excludes" else field: named})
        case "target":
            return _changed(change, target=_parse_limit(value, campaign.config.target))
        case _:
            return _changed(change, pacing=_parse_name(value, PacingStrategy, "pacing"))


def _parse_limit(value: str, before: Micros | None) -> Micros | None:
    return None if value.lower() == "none" else _parse_amount(value, before)


def _parse_amount(value: str, before: Micros | None) -> Micros:
    """Parse an amount in units, or one relative to what there is."""
    scale: Callable[[int], float] | None = None
    if (relative := _RELATIVE.fullmatch(value)) is not None:
        percent = float(relative["sign"] + relative["percent"])
        scale = lambda amount: amount * (1 + percent / 100)  # noqa: E731 - one of two
    elif (times := _TIMES.fullmatch(value)) is not None:
        factor = float(times["factor"])
        scale = lambda amount: amount * factor  # noqa: E731 - one of two
    if scale is None:
        if _AMOUNT.fullmatch(value) is None:
            raise MarketChangeError(f"{value!r} is no amount: write 2.50, +20 %, -10 % or x1.5.")
        return Micros(round(float(value) * MICROS_PER_UNIT))
    if before is None:
        raise MarketChangeError(f"{value!r} needs an amount to begin with, and there is none.")
    return Micros(max(0, round(scale(before))))


def _parse_day(value: str) -> datetime | None:
    if value.lower() == "none":
        return None
    try:
        moment = parse_moment(value)
    except ValueError:
        raise MarketChangeError(
            f"{value!r} is no day: write 2026-04-01, or 2026-04-01T18:00+00:00."
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _parse_categories(value: str, campaign: NamedCampaign, market: SimulatedMarket) -> tuple[str, ...]:
    if not any(row.assignment.campaign_key == campaign.key for row in market.creatives):
        raise MarketChangeError(
            f"The campaign {campaign.name} wants no contextual slots: it has no categories to change."
        )
    named = () if value.lower() == "none" else tuple(word for word in re.split(r"[\s,]+", value) if word)
    unknown = [one for one in named if load_content().find(one) is None]
    if unknown:
        raise MarketChangeError(f"The content taxonomy has no {', '.join(unknown)}: give ids such as 483.")
    return named


def _parse_name(value: str, kind: type[NameT], what: str) -> NameT:
    for one in kind:
        if value.lower() == one.lower():
            return one
    raise MarketChangeError(f"{value!r} is no {what}: it is {' or '.join(kind)}.")


def _parse_rule(field: str, operator: str, value: str) -> Rule:
    words = [word for word in re.split(r"[\s,]+", value.strip()) if word]
    parsed: list[str | int] = [int(word) if word.isdecimal() else word for word in words]
    try:
        if operator == Operator.IS:
            return parse_rule(field, operator, words[0].lower() == "true")
        return parse_rule(field, operator, parsed)
    except AdloomError as error:
        known = ", ".join(RuleType)
        raise MarketChangeError(f"{error} A rule begins with one of {known}.") from error
