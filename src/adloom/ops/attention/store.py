"""What may need attention, out of the database."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from adloom.auction.bid import BidType, compute_single_cost
from adloom.budgets.config.cap_counts import read_counts
from adloom.budgets.lifetime_counts import NO_COUNTS
from adloom.budgets.status_store import load_campaign_statuses
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.ops.attention.model import SOON, CappedCampaign, RunningCampaign, Thing
from adloom.ops.checks.finding import Finding, report_ok, warn
from adloom.resource.access import EVERYTHING, Scope
from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Connection, Record
from adloom.runtime.telemetry.heartbeat import HeartbeatReader

BUDGETS_MAX: Final = 300  # The most recently changed: a campaign that has not spent for long is no emergency.
THINGS_MAX: Final = 10
COUNTRY_REMEMBERED: Final = timedelta(days=7)
RUNNING: Final = """
    SELECT it.public_id AS id, it.name, greatest(it.created_at, it.starts_at) AS at,
           it.bid_type, it.bid_amount_micros
      FROM campaigns AS it
      LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id
      LEFT JOIN brain_states AS state ON state.kind = 'campaign'
       AND state.key = coalesce(owner.public_id::text, '-') || '|' || it.public_id
     WHERE it.status = 'active' AND it.deleted_at IS NULL
       AND (it.budget_daily_paisa IS NOT NULL OR it.budget_total_paisa IS NOT NULL) AND {filters}
     ORDER BY state.changed_at DESC NULLS LAST, it.id DESC LIMIT {most}
"""
CAPPED: Final = """
    SELECT it.public_id AS id, it.name, it.id AS key, it.impression_cap, it.click_cap
      FROM campaigns AS it LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE it.status = 'active' AND it.deleted_at IS NULL
       AND (it.impression_cap IS NOT NULL OR it.click_cap IS NOT NULL) AND {filters}
     ORDER BY it.updated_at DESC, it.id LIMIT {most}
"""
BY_COUNTRY: Final = """
    SELECT it.public_id AS id, it.name
      FROM campaigns AS it LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE it.status = 'active' AND it.deleted_at IS NULL AND {filters}
       AND EXISTS (SELECT FROM campaign_targeting_rules AS rule
                    WHERE rule.campaign_id = it.id AND rule.is_active AND rule.rule_type = 'country'
                      AND rule.operator = 'in')
     ORDER BY it.id LIMIT {most}
"""
COUNTRY_SEEN: Final = """
    SELECT EXISTS (SELECT FROM events.event_counts WHERE hour >= $1 AND country_code IS NOT NULL)
"""
ENDING_CAMPAIGNS: Final = """
    SELECT it.public_id AS id, it.name AS name, it.ends_at AS at
      FROM campaigns AS it LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE it.status IN ('active', 'paused', 'scheduled') AND it.deleted_at IS NULL
       AND it.ends_at BETWEEN {now} AND {soon} AND {filters}
     ORDER BY it.ends_at, it.id LIMIT {most}
"""
ENDING_BANNERS: Final = """
    SELECT it.public_id AS id, it.title AS name, it.expires_at AS at
      FROM banners AS it LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE it.is_active AND it.deleted_at IS NULL
       AND it.expires_at BETWEEN {now} AND {soon} AND {filters}
     ORDER BY it.expires_at, it.id LIMIT {most}
"""
LOCKED_OUT: Final = """
    SELECT it.public_id AS id, it.name, it.credentials_expired_at AS at
      FROM sync.ad_accounts AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE it.credentials_expired_at IS NOT NULL AND it.deleted_at IS NULL AND {filters}
     ORDER BY it.credentials_expired_at DESC, it.id LIMIT {most}
"""
WITHDRAWN: Final = """
    SELECT it.public_id AS id, it.name, proof.withdrawn_at AS at
      FROM sites AS it JOIN site_verifications AS proof ON proof.site_id = it.id
      LEFT JOIN publishers AS owner ON owner.id = it.publisher_id
     WHERE proof.withdrawn_at IS NOT NULL AND it.verified_at IS NULL AND proof.domain = it.domain AND {filters}
     ORDER BY proof.withdrawn_at DESC, it.id LIMIT {most}
"""
STALE: Final = """
    SELECT it.public_id AS id, it.name, newest.at
      FROM sites AS it LEFT JOIN publishers AS owner ON owner.id = it.publisher_id
     CROSS JOIN LATERAL (SELECT max(expires_at) AS at FROM site_pages WHERE site_id = it.id) AS newest
     WHERE newest.at <= {now} AND NOT it.is_suspended AND {filters}
       AND EXISTS (SELECT FROM placements WHERE site_id = it.id AND delivery = 'contextual' AND is_active)
     ORDER BY newest.at DESC, it.id LIMIT {most}
"""
DELIVERY: Final = "delivery"
NAMED_MAX: Final = 5


async def read_running_budgets(
    connection: Connection, scope: Scope, *, now: datetime
) -> list[RunningCampaign]:
    """Read the budget status of running campaigns."""
    rows = await _fetch(connection, scope, RUNNING, most=BUDGETS_MAX)
    statuses = await load_campaign_statuses(connection, [CampaignId(row["id"]) for row in rows], now=now)
    return [
        RunningCampaign(
            thing=Thing(noun="campaign", id=row["id"], name=row["name"], at=row["at"]),
            status=statuses[row["id"]],
            cost=compute_single_cost(BidType(row["bid_type"]), Micros(row["bid_amount_micros"] or 0)),
            is_by_click=row["bid_type"] == BidType.CPC,
        )
        for row in rows
        if row["id"] in statuses
    ]


async def read_capped(connection: Connection, scope: Scope) -> list[CappedCampaign]:
    """Read the running campaigns with caps, and what they have had."""
    rows = await _fetch(connection, scope, CAPPED, most=BUDGETS_MAX)
    counts = await read_counts(connection, [row["key"] for row in rows]) if rows else {}
    return [
        CappedCampaign(
            thing=Thing(noun="campaign", id=row["id"], name=row["name"]),
            impression_cap=row["impression_cap"],
            click_cap=row["click_cap"],
            counts=counts.get(row["key"], NO_COUNTS),
        )
        for row in rows
    ]


async def read_by_country(connection: Connection, scope: Scope, *, now: datetime) -> list[Thing]:
    """Read the running campaigns for certain countries; none if a country was seen in the last week."""
    if await connection.fetchval(COUNTRY_SEEN, now - COUNTRY_REMEMBERED):
        return []
    return await read_things(connection, scope, "campaign", BY_COUNTRY)


async def read_ending(connection: Connection, scope: Scope, *, now: datetime) -> list[Thing]:
    """Read the campaigns and banners that end soon."""
    return [
        *await read_things(connection, scope, "campaign", ENDING_CAMPAIGNS, now=now, soon=now + SOON),
        *await read_things(connection, scope, "banner", ENDING_BANNERS, now=now, soon=now + SOON),
    ]


async def read_things(
    connection: Connection, scope: Scope, noun: str, statement: str, **values: datetime
) -> list[Thing]:
    rows = await _fetch(connection, scope, statement, most=THINGS_MAX, **values)
    return [Thing(noun=noun, **row) for row in rows]


async def _fetch(
    connection: Connection, scope: Scope, statement: str, *, most: int, **values: datetime
) -> Sequence[Record]:
    filters = Filters()
    filters.add("owner.deleted_at IS NULL")  # Nothing of it runs until it is restored.
    filters.add_given("owner.public_id = {}", scope.account_id)
    bound = {name: filters.bind(value) for name, value in {"most": most, **values}.items()}
    return await connection.fetch(statement.format(filters=filters.sql, **bound), *filters.values)


async def knows_countries(reader: HeartbeatReader, *, now: datetime) -> bool:
    """Whether a delivery process can tell countries, by a file or a proxy's header; so it is said while none runs."""
    delivering = {one.id for one in await reader.list_processes(now=now) if one.kind == DELIVERY}
    settings = [one for name, one in (await reader.load_settings()).items() if name in delivering]
    return not settings or any(one.get("geoip_file") or one.get("trusted_proxies") for one in settings)


async def check_countries(connection: Connection, reader: HeartbeatReader, *, now: datetime) -> Finding:
    """Check whether campaigns want readers of certain countries while no country is known."""
    try:
        wanting = await read_by_country(connection, EVERYTHING, now=now)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return warn("Countries", "there are no campaigns yet", "run `adloom migrate`")
    if not wanting:
        return report_ok("Countries", "no running campaign waits for readers of a country")
    if await knows_countries(reader, now=now):
        return report_ok("Countries", "delivery can tell them")
    more = " …" if len(wanting) > NAMED_MAX else ""
    return warn(
        "Countries",
        "no reader's country is known, so nobody sees the campaigns with rules about countries: "
        f"{', '.join(one.name or str(one.id) for one in wanting[:NAMED_MAX])}{more}",
        "set ADLOOM_GEOIP_FILE, or ADLOOM_TRUSTED_PROXIES to a proxy that sends the country",
    )
