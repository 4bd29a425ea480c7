"""A market in a file that people write: placements, visitors, campaigns, in TOML or JSON."""

# pure

import math
import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from itertools import count
from statistics import NormalDist
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from adloom.auction.bid import BidType
from adloom.bidding.window import BidStrategy
from adloom.budgets.messages import ConfigureAdvertiser, ConfigureCampaign
from adloom.core.errors import AdloomError
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.events.frequency.windows import Window
from adloom.forecast.market import (
    HOURS_A_WEEK,
    NamedCampaign,
    RivalPrices,
    SimulatedMarket,
    TrafficCell,
    VisitorFields,
    VisitorResponse,
)
from adloom.schedule.pacing import PacingStrategy
from adloom.schedule.schedule import find_zone
from adloom.schedule.traffic_shape import HOURS, SATURDAY
from adloom.serving.index.rows import (
    AssignmentRow,
    Caps,
    Delivery,
    FrequencyLimit,
    PlacementRow,
    compute_price,
)
from adloom.targeting.rules import Rule, parse_rule

COPIES_MAX: Final = 10_000
MONDAY: Final = date(2026, 3, 2)
DAYS_A_WEEK: Final = 7

Amount = Annotated[float, Meta(ge=0, le=1e9)]
Share = Annotated[float, Meta(ge=0, le=1)]
Number = Annotated[int, Meta(ge=0, le=1_000_000_000)]
NameText = Annotated[str, Meta(min_length=1, max_length=255)]
DayHours = Annotated[tuple[Annotated[float, Meta(ge=0)], ...], Meta(min_length=HOURS, max_length=HOURS)]


class MarketFileError(Exception):
    """A file that is no market; the message says where, and what it should be."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class RivalsPart(_Part, frozen=True, kw_only=True):
    """Bids from outside: how often there is one, its median eCPM, and the deviation of its logarithm."""

    share: Share = 1.0
    median: Amount
    spread: Annotated[float, Meta(ge=0, le=5)] = 0.5


class VisitorPart(_Part, frozen=True, kw_only=True):
    """A kind of visitors, and how large a part of all they are."""

    share: Annotated[float, Meta(gt=0)] = 1.0
    device: str | None = None
    country: str | None = None
    language: str | None = None
    segment: str | None = None
    referrer: str | None = None
    logged_in: bool = False
    new: bool = False


class PlacementPart(_Part, frozen=True, kw_only=True):
    """A placement, and its requests on an average day."""

    slug: NameText
    requests_a_day: Amount
    delivery: Delivery = Delivery.AUCTION
    type: NameText = "feed"
    floor: Amount = 0.0
    slots: Annotated[int, Meta(ge=1, le=16)] = 1
    zone: str = "UTC"
    rivals: RivalsPart | None = None


class AdvertiserPart(_Part, frozen=True, kw_only=True):
    """An advertiser with a budget for all its campaigns."""

    name: NameText
    daily_budget: Amount | None = None
    zone: str = "UTC"


class RulePart(_Part, frozen=True, kw_only=True):
    """A targeting rule, as the API takes it."""

    rule_type: str
    operator: str
    value: bool | list[str | int]


class FrequencyPart(_Part, frozen=True, kw_only=True):
    """How often one visitor sees the banner."""

    window: Window
    impressions: Annotated[int, Meta(ge=1, le=1_000)]


class CampaignPart(_Part, frozen=True, kw_only=True):
    """A campaign with one banner; with `copies`, as many of them with bids around this one."""

    name: NameText
    bid: Annotated[float, Meta(gt=0, le=1e6)]
    bid_type: BidType = BidType.CPM
    advertiser: str | None = None
    daily_budget: Amount | None = None
    total_budget: Amount | None = None
    pacing: PacingStrategy = PacingStrategy.SMOOTH
    bid_strategy: BidStrategy = BidStrategy.FIXED
    target_cpa: Amount | None = None  # What a conversion should cost.
    starts: str | None = None  # A day, or a moment with its zone.
    ends: str | None = None
    zone: str = "UTC"
    placements: tuple[str, ...] | None = None  # None: all of them.
    targeting: tuple[RulePart, ...] = ()
    impression_cap: Number | None = None
    click_cap: Number | None = None
    frequency: FrequencyPart | None = None
    priority: Annotated[int, Meta(ge=0, le=1_000)] = 0
    click_rate: Share = 0.002
    conversion_rate: Share = 0.0
    copies: Annotated[int, Meta(ge=1, le=COPIES_MAX)] = 1
    bid_spread: Annotated[float, Meta(ge=0, le=5)] = 0.0


class MarketFile(_Part, frozen=True, kw_only=True):
    """The whole file."""

    placements: Annotated[tuple[PlacementPart, ...], Meta(min_length=1, max_length=10_000)]
    campaigns: Annotated[tuple[CampaignPart, ...], Meta(min_length=1, max_length=COPIES_MAX)]
    visitors: tuple[VisitorPart, ...] = (VisitorPart(),)
    advertisers: tuple[AdvertiserPart, ...] = ()
    starts: date = MONDAY
    weekday: DayHours = (1.0,) * HOURS  # Only proportions matter.
    weekend: DayHours | None = None
    people: Number = 0  # How many different people come; 0: nobody twice.
    seen: Share = 1.0


def read_market(data: bytes, *, is_json: bool) -> SimulatedMarket:
    """Decode a file; MarketFileError says what is wrong with it."""
    try:
        if is_json:
            return build_market(msgspec.json.decode(data, type=MarketFile))
        return build_market(msgspec.convert(msgspec.to_builtins(tomllib.loads(data.decode())), MarketFile))
    except (
        msgspec.DecodeError,
        msgspec.ValidationError,
        tomllib.TOMLDecodeError,
        UnicodeDecodeError,
    ) as error:
        raise MarketFileError(f"The market cannot be read: {error}.") from error
    except AdloomError as error:
        raise MarketFileError(f"A targeting rule cannot be read: {error}") from error


def build_market(file: MarketFile) -> SimulatedMarket:
    placements = {one.slug: _build_placement(one, number) for number, one in enumerate(file.placements, 1)}
    payers = {
        one.name: (_build_advertiser(one, number), number) for number, one in enumerate(file.advertisers, 1)
    }
    numbers = count(1)
    campaigns: list[NamedCampaign] = []
    assignments: list[AssignmentRow] = []
    click_rates: dict[int, float] = {}
    conversion_rates: dict[int, float] = {}
    for part in file.campaigns:
        if part.advertiser is not None and part.advertiser not in payers:
            raise MarketFileError(
                f"The campaign {part.name} has an advertiser that the file has not: {part.advertiser}."
            )
        payer = None if part.advertiser is None else payers[part.advertiser]
        for copy in range(part.copies):
            key = next(numbers)
            campaign = _build_campaign(part, key, copy, None if payer is None else payer[0])
            campaigns.append(campaign)
            assignments += _assign(part, copy, campaign, placements, None if payer is None else payer[1])
            click_rates[key], conversion_rates[key] = part.click_rate, part.conversion_rate
    return SimulatedMarket(
        starts_at=datetime.combine(file.starts, time(), UTC),
        placements=list(placements.values()),
        assignments=assignments,
        campaigns=campaigns,
        advertisers=[advertiser for advertiser, _ in payers.values()],
        cells=_build_cells(file),
        response=VisitorResponse(seen=file.seen, of_campaign=click_rates, conversion_rates=conversion_rates),
        rivals={
            one.slug.encode(): RivalPrices(
                one.rivals.share, one.rivals.median * MICROS_PER_UNIT, one.rivals.spread
            )
            for one in file.placements
            if one.rivals is not None
        },
        visitors=file.people,
    )


def _build_placement(part: PlacementPart, key: int) -> PlacementRow:
    if part.delivery is Delivery.CONTEXTUAL:
        raise MarketFileError(
            f"The placement {part.slug} is contextual: a file has direct and auction placements only."
        )
    return PlacementRow(
        key=key,
        id=PlacementId(_make_id(1, key)),
        slug=part.slug,
        label=part.slug,
        layout_type="full_slider",
        max_banners=part.slots,
        is_active=True,
        fallback_placeholder_url=None,
        allow_partial_render=True,
        delivery=part.delivery,
        placement_type=part.type,
        timezone=_check_zone(part.zone),
        floor=_micros(part.floor),
    )


def _build_advertiser(part: AdvertiserPart, number: int) -> ConfigureAdvertiser:
    return ConfigureAdvertiser(
        version=1,
        advertiser_id=AdvertiserId(_make_id(2, number)),
        is_active=True,
        daily_budget=None if part.daily_budget is None else _micros(part.daily_budget),
        timezone=_check_zone(part.zone),
    )


def _build_campaign(
    part: CampaignPart, key: int, copy: int, payer: ConfigureAdvertiser | None
) -> NamedCampaign:
    return NamedCampaign(
        key=key,
        name=part.name if part.copies == 1 else f"{part.name} {copy + 1}",
        is_per_click=part.bid_type is BidType.CPC,
        config=ConfigureCampaign(
            version=1,
            campaign_id=CampaignId(_make_id(3, key)),
            advertiser_id=None if payer is None else payer.advertiser_id,
            is_running=True,
            daily_budget=None if part.daily_budget is None else _micros(part.daily_budget),
            total_budget=None if part.total_budget is None else _micros(part.total_budget),
            pacing=part.pacing,
            timezone=_check_zone(part.zone) if payer is None else payer.timezone,
            hold_seconds=0,  # A run knows how long holds last.
            is_allotted=payer is not None and payer.daily_budget is not None,
            impression_cap=part.impression_cap,
            click_cap=part.click_cap,
            # Whoever bids in full has nothing to ask.
            has_bid=part.bid_strategy is not BidStrategy.FIXED,
            bid_strategy=part.bid_strategy,
            target=None if not part.target_cpa else _micros(part.target_cpa),
        ),
    )


def _assign(
    part: CampaignPart,
    copy: int,
    campaign: NamedCampaign,
    placements: Mapping[str, PlacementRow],
    advertiser_key: int | None,
) -> list[AssignmentRow]:
    """Assign the campaign's banner to its placements."""
    unknown = [slug for slug in part.placements or () if slug not in placements]
    if unknown:
        raise MarketFileError(
            f"The campaign {part.name} names placements that the file has not: {', '.join(unknown)}."
        )
    config = campaign.config
    bid = _micros(part.bid * _spread(copy, part.copies, part.bid_spread))
    rules: tuple[Rule, ...] = tuple(
        parse_rule(one.rule_type, one.operator, one.value) for one in part.targeting
    )
    has_caps = part.impression_cap is not None or part.click_cap is not None
    frequency = part.frequency
    return [
        AssignmentRow(
            placement_key=placements[slug].key,
            campaign_id=campaign.id,
            banner_id=BannerId(_make_id(4, campaign.key)),
            campaign_key=campaign.key,
            banner_key=campaign.key,
            starts_at=_moment(part.starts),
            ends_at=_moment(part.ends),
            rules=rules,
            caps=Caps(part.impression_cap, part.click_cap) if has_caps else None,
            advertiser_id=config.advertiser_id,
            advertiser_key=advertiser_key,
            bid_type=part.bid_type,
            bid=bid,
            frequency=() if frequency is None else (FrequencyLimit(frequency.window, frequency.impressions),),
            price=compute_price(part.bid_type, bid),
            is_limited=config.daily_budget is not None
            or config.total_budget is not None
            or config.is_allotted,
            campaign_priority=part.priority,
            title=campaign.name,
            primary_image_url="",
        )
        for slug in part.placements or placements
    ]


def _build_cells(file: MarketFile) -> list[TrafficCell]:
    weekend = file.weekend or file.weekday
    week = [hour for day in range(DAYS_A_WEEK) for hour in (weekend if day >= SATURDAY else file.weekday)]
    usual = sum(week) / DAYS_A_WEEK
    if not usual:
        raise MarketFileError("weekday and weekend have no traffic in any hour.")
    shares = sum(one.share for one in file.visitors)
    assert len(week) == HOURS_A_WEEK
    return [
        TrafficCell(
            slug=placement.slug.encode(),
            visitor=_describe(visitor),
            hours=[placement.requests_a_day * visitor.share / shares * hour / usual for hour in week],
        )
        for placement in file.placements
        for visitor in file.visitors
    ]


def _describe(visitor: VisitorPart) -> VisitorFields:
    fields: dict[str, str | bool | None] = {
        "device": visitor.device,
        "country": visitor.country,
        "language": visitor.language,
        "segment": visitor.segment,
        "referrer_domain": visitor.referrer,
        "is_logged_in": visitor.logged_in,
        "is_new_visitor": visitor.new,
    }
    return tuple(sorted(fields.items()))


def _spread(copy: int, copies: int, spread: float) -> float:
    """Spread the bids of copies evenly over a log-normal distribution."""
    return math.exp(spread * NormalDist().inv_cdf((copy + 0.5) / copies)) if spread and copies > 1 else 1.0


def _micros(amount: float) -> Micros:
    return Micros(round(amount * MICROS_PER_UNIT))


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise MarketFileError(f"{text!r} is no day: write 2026-04-01, or 2026-04-01T18:00:00Z.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _check_zone(name: str) -> str:
    if find_zone(name) is None:
        raise MarketFileError(f"{name!r} is no time zone: write one such as Europe/Berlin.")
    return name


def _make_id(kind: int, number: int) -> UUID:
    return UUID(int=kind << 64 | number)
