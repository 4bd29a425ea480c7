"""A market in a file that people write: placements, sites, visitors, campaigns, in TOML or JSON."""

# pure

import math
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time
from itertools import count
from statistics import NormalDist
from typing import Final
from uuid import UUID

import msgspec

from adloom.auction.bid import BidType
from adloom.bidding.window import BidStrategy
from adloom.budgets.messages import ConfigureAdvertiser, ConfigureCampaign
from adloom.core.clock import parse_moment
from adloom.core.errors import AdloomError
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.forecast.file.parts import (
    AdvertiserPart,
    CampaignPart,
    MarketFile,
    MarketFileError,
    PlacementPart,
    VisitorPart,
    build_creatives,
    build_sites,
    check_category,
    list_visits,
)
from adloom.forecast.market import (
    HOURS_A_WEEK,
    NamedCampaign,
    RivalPrices,
    SimulatedMarket,
    TrafficCell,
    VisitorFields,
    VisitorResponse,
)
from adloom.schedule.schedule import find_zone
from adloom.schedule.traffic_shape import SATURDAY
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.rows import (
    AssignmentRow,
    Caps,
    Delivery,
    FrequencyLimit,
    PlacementRow,
    compute_price,
)
from adloom.serving.index.site import SiteRow
from adloom.targeting.rules import Rule, parse_rule

DAYS_A_WEEK: Final = 7
BANNER_KEYS_APART: Final = 1_000_000


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
    sites = build_sites(file.sites)
    placements = {
        one.slug: _build_placement(one, number, sites) for number, one in enumerate(file.placements, 1)
    }
    payers = {
        one.name: (_build_advertiser(one, number), number) for number, one in enumerate(file.advertisers, 1)
    }
    numbers = count(1)
    campaigns: list[NamedCampaign] = []
    assignments: list[AssignmentRow] = []
    creatives: list[CreativeRow] = []
    of_banner: dict[int, float] = {}
    click_rates: dict[int, float] = {}
    conversion_rates: dict[int, float] = {}
    for part in file.campaigns:
        if part.advertiser is not None and part.advertiser not in payers:
            raise MarketFileError(
                f"The campaign {part.name} has an advertiser that the file has not: {part.advertiser}."
            )
        for category in (*part.categories, *part.excluded_categories):
            check_category(category, f"The campaign {part.name}")
        payer = None if part.advertiser is None else payers[part.advertiser]
        for copy in range(part.copies):
            key = next(numbers)
            campaign = _build_campaign(part, key, copy, None if payer is None else payer[0])
            campaigns.append(campaign)
            rows = _build_rows(part, copy, campaign, None if payer is None else payer[1])
            assignments += _assign(part, rows, placements)
            creatives += build_creatives(part, campaign.key, rows)
            of_banner |= {
                row.banner_key: rate for row, rate in zip(rows, part.banner_click_rates, strict=False)
            }
            click_rates[key], conversion_rates[key] = part.click_rate, part.conversion_rate
    return SimulatedMarket(
        starts_at=datetime.combine(file.starts, time(), UTC),
        placements=list(placements.values()),
        assignments=assignments,
        campaigns=campaigns,
        advertisers=[advertiser for advertiser, _ in payers.values()],
        sites=[row for row, _ in sites.values()],
        pages=[page for _, pages in sites.values() for page in pages],
        creatives=creatives,
        cells=_build_cells(file),
        response=VisitorResponse(
            seen=file.seen,
            of_campaign=click_rates,
            of_banner=of_banner,
            conversion_rates=conversion_rates,
        ),
        rivals={
            one.slug.encode(): RivalPrices(
                one.rivals.share, one.rivals.median * MICROS_PER_UNIT, one.rivals.spread
            )
            for one in file.placements
            if one.rivals is not None
        },
        visitors=file.people,
    )


def _build_placement(
    part: PlacementPart, key: int, sites: Mapping[str, tuple[SiteRow, object]]
) -> PlacementRow:
    is_contextual = part.delivery is Delivery.CONTEXTUAL
    if is_contextual and part.site not in sites:
        raise MarketFileError(
            f"The placement {part.slug} is contextual: let its site be one of the file's sites, not {part.site}."
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
        floor=_convert_to_micros(part.floor),
        scoring=part.scoring,
        site=part.site,
        site_key=sites[part.site][0].key if is_contextual and part.site is not None else None,
        width=part.width,
        height=part.height,
    )


def _build_advertiser(part: AdvertiserPart, number: int) -> ConfigureAdvertiser:
    return ConfigureAdvertiser(
        version=1,
        advertiser_id=AdvertiserId(_make_id(2, number)),
        is_active=True,
        daily_budget=None if part.daily_budget is None else _convert_to_micros(part.daily_budget),
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
            daily_budget=None if part.daily_budget is None else _convert_to_micros(part.daily_budget),
            total_budget=None if part.total_budget is None else _convert_to_micros(part.total_budget),
            pacing=part.pacing,
            timezone=_check_zone(part.zone) if payer is None else payer.timezone,
            hold_seconds=0,  # A run knows how long holds last.
            is_allotted=payer is not None and payer.daily_budget is not None,
            impression_cap=part.impression_cap,
            click_cap=part.click_cap,
            # A campaign that bids in full has nothing to ask.
            has_bid=part.bid_strategy is not BidStrategy.FIXED,
            bid_strategy=part.bid_strategy,
            target=None if part.target_cpa is None else _convert_to_micros(part.target_cpa),
        ),
    )


def _build_rows(
    part: CampaignPart, copy: int, campaign: NamedCampaign, advertiser_key: int | None
) -> list[AssignmentRow]:
    """Build a row for each banner, which is on no placement yet."""
    config = campaign.config
    bid = _convert_to_micros(part.bid * _spread(copy, part.copies, part.bid_spread))
    rules: tuple[Rule, ...] = tuple(
        parse_rule(one.rule_type, one.operator, one.value) for one in part.targeting
    )
    has_caps = part.impression_cap is not None or part.click_cap is not None
    frequency = part.frequency
    keys = [campaign.key + BANNER_KEYS_APART * number for number in range(len(part.banner_click_rates) or 1)]
    return [
        AssignmentRow(
            placement_key=0,
            campaign_id=campaign.id,
            banner_id=BannerId(_make_id(4, key)),
            campaign_key=campaign.key,
            banner_key=key,
            starts_at=_parse_moment(part.starts),
            ends_at=_parse_moment(part.ends),
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
        for key in keys
    ]


def _assign(
    part: CampaignPart, rows: Sequence[AssignmentRow], placements: Mapping[str, PlacementRow]
) -> list[AssignmentRow]:
    """Assign the campaign's banners to its placements; contextual ones are filled by categories."""
    by_category = [slug for slug, one in placements.items() if one.delivery is Delivery.CONTEXTUAL]
    unknown = [slug for slug in part.placements or () if slug not in placements]
    if unknown:
        raise MarketFileError(
            f"The campaign {part.name} names placements that the file has not: {', '.join(unknown)}."
        )
    named = [slug for slug in part.placements or () if slug in by_category]
    if named:
        raise MarketFileError(
            f"The campaign {part.name} names contextual placements: {', '.join(named)}. Give it categories instead."
        )
    return [
        msgspec.structs.replace(row, placement_key=placements[slug].key)
        for slug in (placements if part.placements is None else part.placements)
        if slug not in by_category
        for row in rows
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
            page=page,
            hours=[placement.requests_a_day * part * visitor.share / shares * hour / usual for hour in week],
        )
        for placement in file.placements
        for page, part in list_visits(placement, file.sites)
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


def _convert_to_micros(amount: float) -> Micros:
    return Micros(round(amount * MICROS_PER_UNIT))


def _parse_moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = parse_moment(text)
    except ValueError:
        raise MarketFileError(f"{text!r} is no day: write 2026-04-01, or 2026-04-01T18:00:00Z.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _check_zone(name: str) -> str:
    if find_zone(name) is None:
        raise MarketFileError(f"{name!r} is no time zone: write one such as Europe/Berlin.")
    return name


def _make_id(kind: int, number: int) -> UUID:
    return UUID(int=kind << 64 | number)
