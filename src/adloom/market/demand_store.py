"""Reads campaigns as bidders know them, and what a change of the catalog means to the market."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.campaign.demand import CampaignDemand, WantedCreative, is_on_plan, round_bid_now
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.status_store import load_states
from adloom.budgets.traffic.store import read_followed_shape
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, SiteId
from adloom.core.money import Micros, micros_from_paisa, price_impression
from adloom.resource.changes import read_version
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Connection, Record
from adloom.schedule.budget_day import find_budget_day
from adloom.schedule.schedule import ScheduleCache
from adloom.schedule.schedule_window import is_open
from adloom.schedule.traffic_shape import TrafficShape, build_day_curve
from adloom.targeting.values import find_landing_domain

TWO_DAYS: Final = timedelta(days=2)
NEVER: Final = datetime.max.replace(tzinfo=UTC)
RECENT: Final = "SELECT id, day, spent_micros FROM spend_days WHERE day >= $1"
EVER: Final = """
    SELECT id, sum(spent_micros)::bigint FROM spend_days WHERE kind = 'campaign' AND id = ANY ($1::uuid[]) GROUP BY id
"""
PACED: Final = """
    SELECT campaign_id FROM contextual_demand
     WHERE campaign_id = ANY ($1::uuid[]) AND demand @> '{"demand": {"is_paced": true}}'
"""
LOWERED: Final = """
    SELECT asked.id, newest.multiplier FROM unnest($1::uuid[]) AS asked (id)
     CROSS JOIN LATERAL (
           SELECT multiplier FROM bid_decisions WHERE campaign_id = asked.id ORDER BY at DESC LIMIT 1
     ) AS newest
     WHERE newest.multiplier < 1
"""
RESET: Final = """
    SELECT DISTINCT noun_id FROM audit_entries WHERE noun = 'budget' AND action = 'reset' AND at >= $1
"""
# An active campaign with a bid per thousand impressions, wanted categories or filler, and banners that are live.
# What starts later, is over, or has a schedule, takes no place of one that can be shown now; when an ad is asked for, it
# is decided.
DEMAND: Final = """
    SELECT campaign.public_id AS campaign_id, payer.public_id AS advertiser_id, campaign.bid_amount_micros AS max_cpm,
           campaign.categories, campaign.excluded_categories, campaign.bids_on_unmatched, campaign.ad_product_category,
           coalesce(payer.blocked_sites, '{{}}') AS blocked_sites,
           campaign.budget_daily_paisa AS daily_paisa, campaign.budget_total_paisa AS total_paisa,
           payer.daily_budget_paisa AS advertiser_daily_paisa, campaign.impression_cap, campaign.click_cap,
           coalesce(campaign.starts_at <= now(), campaign.status = 'active')
               AND coalesce(campaign.ends_at > now(), true) AS is_in_dates,
           campaign.pacing_strategy = 'Smooth' AS is_smooth, campaign.bid_strategy <> 'fixed' AS has_strategy,
           coalesce(payer.timezone, campaign.timezone) AS zone,
           EXISTS (SELECT FROM campaign_targeting_rules AS rule WHERE rule.campaign_id = campaign.id AND rule.is_active)
               OR bool_or(EXISTS (SELECT FROM frequency_caps AS cap WHERE cap.banner_id = banner.id)) AS is_restricted,
           array_agg(banner.public_id ORDER BY banner.id) AS banner_ids,
           array_agg(banner.width ORDER BY banner.id) AS widths,
           array_agg(banner.height ORDER BY banner.id) AS heights,
           array_agg(banner.cta_url ORDER BY banner.id) AS addresses,
           array_agg(banner.schedule_status::text ORDER BY banner.id) AS statuses,
           array_agg(banner.publish_at ORDER BY banner.id) AS published,
           array_agg(banner.expires_at ORDER BY banner.id) AS expiring,
           array_agg(banner.schedule_timezone ORDER BY banner.id) AS zones,
           array_agg(banner.recurrence_rule ORDER BY banner.id) AS recurrence_rules,
           array_agg(banner.recurrence_window_start ORDER BY banner.id) AS windows_from,
           array_agg(banner.recurrence_window_end ORDER BY banner.id) AS windows_to,
           array_agg(banner.created_at ORDER BY banner.id) AS created
      FROM campaigns AS campaign
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
      JOIN creatives AS creative ON creative.campaign_id = campaign.id
      JOIN banners AS banner ON banner.id = creative.banner_id
      LEFT JOIN advertisers AS maker ON maker.id = banner.advertiser_id
     WHERE campaign.status IN ('active', 'scheduled') AND campaign.deleted_at IS NULL
       AND campaign.bid_type = 'cpm' AND campaign.bid_amount_micros > 0
       AND (cardinality(campaign.categories) > 0 OR campaign.bids_on_unmatched)
       AND payer.deleted_at IS NULL AND maker.deleted_at IS NULL AND banner.deleted_at IS NULL AND banner.is_active
       AND {among}
     GROUP BY campaign.id, payer.id
"""
EVERYTHING: Final = DEMAND.format(among="true")
SOME: Final = DEMAND.format(among="campaign.id = ANY ($1::integer[])")
NAMED: Final = DEMAND.format(
    among="(campaign.public_id = ANY ($1::uuid[]) OR payer.public_id = ANY ($2::uuid[]))"
)
# Columns with what a schedule needs, for each banner.
SCHEDULES: Final = (
    "statuses", "published", "expiring", "zones", "recurrence_rules", "windows_from", "windows_to", "created",
)  # fmt: skip
OLDEST_CHANGE: Final = "SELECT coalesce(min(version), 0) FROM catalog_changes"
CHANGED_CAMPAIGNS: Final = """
    SELECT campaign.id, campaign.public_id FROM campaigns AS campaign
     WHERE campaign.id IN (
           SELECT noun_key FROM catalog_changes WHERE version > $1 AND noun = 'campaign'
           UNION
           SELECT creative.campaign_id FROM catalog_changes AS changed
             JOIN creatives AS creative ON creative.banner_id = changed.noun_key
            WHERE changed.version > $1 AND changed.noun = 'banner'
           UNION
           SELECT own.id FROM catalog_changes AS changed
             JOIN campaigns AS own ON own.advertiser_id = changed.noun_key
            WHERE changed.version > $1 AND changed.noun = 'advertiser'
           UNION
           SELECT creative.campaign_id FROM catalog_changes AS changed
             JOIN banners AS made ON made.advertiser_id = changed.noun_key
             JOIN creatives AS creative ON creative.banner_id = made.id
            WHERE changed.version > $1 AND changed.noun = 'advertiser'
     )
"""
CHANGED_SITES: Final = """
    SELECT public_id FROM sites
     WHERE id IN (
           SELECT noun_key FROM catalog_changes WHERE version > $1 AND noun = 'site'
           UNION
           SELECT placement.site_id FROM catalog_changes AS changed
             JOIN placements AS placement ON placement.id = changed.noun_key
            WHERE changed.version > $1 AND changed.noun = 'placement'
     )
"""


class CampaignBudgets(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a campaign: its budgets of a day and in all, its advertiser's of a day, its caps and its dates."""

    campaign_id: UUID
    advertiser_id: UUID | None
    max_cpm: Micros
    daily_paisa: int | None
    total_paisa: int | None
    advertiser_daily_paisa: int | None
    impression_cap: int | None = None
    click_cap: int | None = None
    is_in_dates: bool = True
    is_smooth: bool = False  # Its daily budget follows the traffic of its day.
    has_strategy: bool = False  # Which may lower its bids.
    zone: str  # Of their days: the advertiser's, or its own where it has none.


class Standings(msgspec.Struct, frozen=True):
    """Which campaigns take no place on a shortlist of one that can be shown at each request.

    The `spent` cannot be shown now: they cannot pay for another impression, have reached a cap, begin later or are over. The
    `paced` have spent what they were to have spent by now, so most requests go by without them.
    """

    spent: frozenset[UUID] = frozenset()
    paced: frozenset[UUID] = frozenset()
    multipliers: Mapping[UUID, float] = {}  # Of bids that a strategy lowers.


async def find_standings(connection: Connection, campaigns: Sequence[CampaignBudgets]) -> Standings:
    """Find them by the totals of the money ledger and the states of budgets.

    Delivery goes by its leases and dates; what is a minute old here costs nothing but the order of a shortlist.
    """
    closed = {one.campaign_id for one in campaigns if not one.is_in_dates}
    found = await _compare_budgets(connection, campaigns)
    spent = frozenset((*closed, *await _find_capped(connection, campaigns), *found.spent))
    bidding = [one.campaign_id for one in campaigns if one.has_strategy and one.campaign_id not in spent]
    lowered = await connection.fetch(LOWERED, bidding) if bidding else ()
    return Standings(spent, found.paced - spent, {row[0]: row[1] for row in lowered})


async def _find_capped(connection: Connection, campaigns: Sequence[CampaignBudgets]) -> list[UUID]:
    """Return the campaigns that have reached a cap, as far as their actors know."""
    capped = [one for one in campaigns if one.impression_cap is not None or one.click_cap is not None]
    states = await load_states(connection, map(_make_address, capped))
    return [one.campaign_id for one in capped if is_capped(one, states.get(_make_address(one)))]


def is_capped(one: CampaignBudgets, state: CampaignState | None) -> bool:
    """Whether so much was counted as a cap allows; offers that are out may come back."""
    counted = None if state is None else state.counted
    if state is None or counted is None:
        return False
    impressions, clicks = counted.impressions + len(state.seen), max(counted.clicks, state.clicked)
    return (one.impression_cap is not None and impressions >= one.impression_cap) or (
        one.click_cap is not None and clicks >= one.click_cap
    )


def _make_address(one: CampaignBudgets) -> Address:
    return make_campaign_address(
        CampaignId(one.campaign_id), one.advertiser_id and AdvertiserId(one.advertiser_id)
    )


async def _compare_budgets(connection: Connection, campaigns: Sequence[CampaignBudgets]) -> Standings:
    limited = [
        one
        for one in campaigns
        if not (one.daily_paisa is one.total_paisa is one.advertiser_daily_paisa is None)
    ]
    if not limited:
        return Standings()
    now: datetime = await connection.fetchval("SELECT now()")
    recent = {
        (owner_id, day): spent
        for owner_id, day, spent in await connection.fetch(RECENT, now.date() - TWO_DAYS)
    }
    recent |= await _read_reset(connection, limited, since=now - TWO_DAYS)
    in_all = {one.campaign_id for one in limited if one.total_paisa is not None}
    ever: dict[UUID, int] = {row[0]: row[1] for row in await connection.fetch(EVER, in_all)} if in_all else {}
    shape = await read_followed_shape(connection, None)
    smooth = [one.campaign_id for one in limited if one.is_smooth]
    paced = {row[0] for row in await connection.fetch(PACED, smooth)}
    return Standings(
        frozenset(one.campaign_id for one in limited if is_spent(one, recent, ever, now)),
        frozenset(
            one.campaign_id
            for one in limited
            if is_paced(one, recent, now, shape, was_paced=one.campaign_id in paced)
        ),
    )


async def _read_reset(
    connection: Connection, campaigns: Iterable[CampaignBudgets], *, since: datetime
) -> dict[tuple[UUID, date], int]:
    """Read what campaigns have spent of the window that an admin has opened: totals are of whole days."""
    by_id = {str(one.campaign_id): one for one in campaigns if one.daily_paisa is not None}
    rows = await connection.fetch(RESET, since) if by_id else []
    addresses = {_make_address(one): one for one in (by_id[row[0]] for row in rows if row[0] in by_id)}
    states = await load_states(connection, addresses)
    return {
        (addresses[address].campaign_id, state.day): state.spent_window
        for address, state in states.items()
        if state is not None
    }


def is_spent(
    one: CampaignBudgets, recent: dict[tuple[UUID, date], int], ever: dict[UUID, int], now: datetime
) -> bool:
    """Whether a budget is left with less than an impression costs at the campaign's bid."""
    cost = price_impression(one.max_cpm)
    budgets: Iterable[tuple[int | None, int]] = (
        (one.daily_paisa, _sum_spent_today(one.campaign_id, one.zone, recent, now)),
        (one.total_paisa, ever.get(one.campaign_id, 0)),
        (one.advertiser_daily_paisa, _sum_spent_today(one.advertiser_id, one.zone, recent, now)),
    )
    return any(paisa is not None and micros_from_paisa(paisa) - spent < cost for paisa, spent in budgets)


def is_paced(
    one: CampaignBudgets,
    recent: dict[tuple[UUID, date], int],
    now: datetime,
    shape: TrafficShape,
    *,
    was_paced: bool,
) -> bool:
    """Whether a campaign that follows the traffic of its day has spent what it was to have spent by now."""
    if not one.is_smooth or one.daily_paisa is None:
        return False
    day = find_budget_day(now, one.zone)
    share = build_day_curve(shape, day.starts_at, day.ends_at).compute_share(now)
    spent = recent.get((one.campaign_id, day.day), 0)
    return is_on_plan(spent, micros_from_paisa(one.daily_paisa), share, was_paced=was_paced)


def _sum_spent_today(
    owner_id: UUID | None, zone: str, recent: dict[tuple[UUID, date], int], now: datetime
) -> int:
    if owner_id is None:
        return 0
    return recent.get((owner_id, find_budget_day(now, zone).day), 0)


class MarketChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What has changed in the catalog up to a version: who bids, who does not any more, and which sites."""

    version: int
    bidding: list[CampaignDemand] = []
    gone: list[CampaignId] = []
    sites: list[SiteId] = []
    is_everything: bool = False  # It is not known what has changed: `bidding` are all campaigns that bid.


async def load_all(connection: Connection) -> MarketChanges:
    """Read all campaigns that bid."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        version = await read_version(connection)
        bidding = await _build_demands(connection, await connection.fetch(EVERYTHING), version)
    return MarketChanges(version=version, bidding=bidding, is_everything=True)


async def load_named(
    connection: Connection, campaign_ids: Collection[UUID], advertiser_ids: Collection[UUID]
) -> list[CampaignDemand]:
    """Read those of some campaigns, and of some advertisers' campaigns, that bid."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        version = await read_version(connection)
        rows = await connection.fetch(NAMED, campaign_ids, advertiser_ids)
        return await _build_demands(connection, rows, version)


async def load_changes(connection: Connection, *, since: int) -> MarketChanges:
    """Read what has changed since a version; all, if that is too long ago to know."""
    if await read_version(connection) == since:
        return MarketChanges(version=since)
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        version = await read_version(connection)
        is_known = since <= version and await connection.fetchval(OLDEST_CHANGE) <= since + 1
        changed: dict[int, CampaignId] = {}
        sites: list[SiteId] = []
        rows: list[Record] = []
        if is_known:
            changed = {row[0]: CampaignId(row[1]) for row in await connection.fetch(CHANGED_CAMPAIGNS, since)}
            sites = [SiteId(row[0]) for row in await connection.fetch(CHANGED_SITES, since)]
            rows = await connection.fetch(SOME, list(changed)) if changed else []
        bidding = await _build_demands(connection, rows, version)
    if not is_known:
        return await load_all(connection)
    still = {demand.campaign_id for demand in bidding}
    gone = [campaign_id for campaign_id in changed.values() if campaign_id not in still]
    return MarketChanges(version=version, bidding=bidding, gone=gone, sites=sites)


async def _build_demands(
    connection: Connection, rows: Sequence[Record], version: int
) -> list[CampaignDemand]:
    budgets = [msgspec.convert(dict(row), CampaignBudgets) for row in rows]
    standings = await find_standings(connection, budgets)
    now: datetime = await connection.fetchval("SELECT now()") if rows else NEVER
    schedules = ScheduleCache()
    return [_build_demand(row, version, now, standings, schedules) for row in rows]


def _build_demand(
    row: Record, version: int, now: datetime, standings: Standings, schedules: ScheduleCache
) -> CampaignDemand:
    campaign_id, advertiser_id = row["campaign_id"], row["advertiser_id"]
    banners = zip(row["banner_ids"], row["widths"], row["heights"], row["addresses"], strict=True)
    closed = [
        not is_open(schedules.get(*columns), now=now)
        for columns in zip(*(row[name] for name in SCHEDULES), strict=True)
    ]
    return CampaignDemand(
        campaign_id=CampaignId(campaign_id),
        advertiser_id=None if advertiser_id is None else AdvertiserId(advertiser_id),
        version=version,
        max_cpm=Micros(row["max_cpm"]),
        categories=tuple(row["categories"]),
        creatives=tuple(
            WantedCreative(BannerId(banner_id), width, height, find_landing_domain(address), is_closed)
            for (banner_id, width, height, address), is_closed in zip(banners, closed, strict=True)
        ),
        takes_filler=row["bids_on_unmatched"],
        product_category=row["ad_product_category"],
        blocked_domains=frozenset(row["blocked_sites"]),
        excluded_categories=frozenset(row["excluded_categories"]),
        is_spent=campaign_id in standings.spent,
        is_paced=campaign_id in standings.paced,
        is_restricted=row["is_restricted"],
        bid_now=round_bid_now(Micros(row["max_cpm"]), standings.multipliers.get(campaign_id, 1.0)),
    )
