"""Reads for the index what contextual delivery needs: sites with their approvals, and creatives of campaigns."""

from collections.abc import AsyncGenerator

import msgspec

from adloom.catalog.banner_content import DELIVERED, write_columns
from adloom.market.approval import ApprovalRules
from adloom.market.site_store import APPROVALS, build_approval_rules
from adloom.runtime.postgres import Connection
from adloom.schedule.schedule import ScheduleCache
from adloom.serving.index.contextual import CreativeRow, CreativeTerms
from adloom.serving.index.site import IndexedSite, SiteRow, compile_site
from adloom.serving.index.store import (
    READ_FREQUENCY,
    READ_RULES,
    ROWS_A_BATCH,
    Keys,
    build_query,
    build_rows,
    iter_batches,
    read_frequency,
    read_rules,
)

SITES = build_query(
    """
    SELECT id AS key, public_id AS id, domain, host_pattern, verified_host, is_suspended, floor_cpm_micros AS floor,
           min_floor_cpm_micros AS floor_min, floor_mode,
           bid_weight, auction_mode, accepts_filler, approval_mode, ad_product_blocklist AS blocked_products,
           blocked_domains, coalesce((pacing ->> 'warmup')::boolean, false) AS is_warming_up, timezone,
           coalesce((pacing ->> 'dayDurationSeconds')::integer, 86400) AS day_seconds
      FROM sites WHERE {among}
    """,
    among="id = ANY ($1::integer[])",
)

# The creatives of campaigns for contextual slots, as if each campaign were a placement with a negative key.
CREATIVES = build_query(
    """
    SELECT -campaign.id AS placement_key,
           campaign.id AS campaign_key, campaign.public_id AS campaign_id,
           banner.id AS banner_key, banner.public_id AS banner_id,
           CASE WHEN payer.deleted_at IS NOT NULL OR maker.deleted_at IS NOT NULL THEN 'advertiser_deleted'
                WHEN campaign.deleted_at IS NOT NULL THEN 'campaign_deleted'
                WHEN campaign.status = 'scheduled' AND campaign.starts_at IS NULL THEN 'campaign_undated'
                WHEN campaign.status NOT IN ('active', 'scheduled') THEN 'campaign_' || campaign.status
                WHEN campaign.bid_type <> 'cpm' OR coalesce(campaign.bid_amount_micros, 0) = 0 THEN 'no_bid'
                WHEN banner.deleted_at IS NOT NULL THEN 'banner_deleted'
                WHEN NOT banner.is_active THEN 'banner_inactive'
                ELSE 'live' END AS status,
           campaign.starts_at, campaign.ends_at, campaign.impression_cap, campaign.click_cap,
           payer.id AS advertiser_key, payer.public_id AS advertiser_id,
           'contextual' AS delivery, NULL::uuid AS publisher_id, false AS is_asked_for,
           'contextual' AS placement_type, 0::bigint AS floor,
           campaign.bid_type::text AS bid_type, campaign.bid_amount_micros AS bid,
           campaign.budget_daily_paisa IS NOT NULL OR campaign.budget_total_paisa IS NOT NULL
               OR payer.daily_budget_paisa IS NOT NULL AS is_limited,
           banner.schedule_status::text AS schedule_status, banner.publish_at, banner.expires_at,
           banner.schedule_timezone, banner.recurrence_rule, banner.recurrence_window_start,
           banner.recurrence_window_end, banner.created_at,
           {content}, campaign.passes_click_id,
           banner.width, banner.height, campaign.categories, campaign.excluded_categories,
           campaign.bids_on_unmatched AS takes_filler,
           campaign.ad_product_category AS product_category,
           coalesce(payer.blocked_sites, '{{}}') AS blocked_sites
      FROM creatives AS creative
      JOIN campaigns AS campaign ON campaign.id = creative.campaign_id
      JOIN banners AS banner ON banner.id = creative.banner_id
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
      LEFT JOIN advertisers AS maker ON maker.id = banner.advertiser_id
     WHERE {among}
     ORDER BY campaign.id, banner.id
    """,
    among="campaign.id = ANY ($1::integer[])",
    content=write_columns(DELIVERED),
)
CREATIVE_RULES = build_query(
    READ_RULES,
    among="campaign_id = ANY ($1::integer[])",
    content="AND campaign_id IN (SELECT campaign_id FROM creatives)",
)
CREATIVE_FREQUENCY = build_query(
    READ_FREQUENCY,
    among="banner_id = ANY (ARRAY(SELECT banner_id FROM creatives WHERE campaign_id = ANY ($1::integer[])))",
)


async def read_sites(connection: Connection, keys: Keys) -> list[IndexedSite]:
    return [compile_site(row, approvals) for row, approvals in await read_site_rows(connection, keys)]


async def read_site_rows(connection: Connection, keys: Keys) -> list[tuple[SiteRow, ApprovalRules]]:
    """Read sites, and what their publishers decided of banners."""
    found: list[tuple[SiteRow, ApprovalRules]] = []
    async for records in iter_batches(connection, SITES, keys, size=ROWS_A_BATCH):
        rows = [msgspec.convert(dict(record), SiteRow) for record in records]
        decided = await connection.fetch(APPROVALS, [row.key for row in rows])
        found += [
            (row, build_approval_rules(row.approval_mode, decisions))
            for row in rows
            for decisions in ([one for one in decided if one["site_id"] == row.key],)
        ]
    return found


async def iter_creatives(connection: Connection, keys: Keys) -> AsyncGenerator[list[CreativeRow]]:
    """Yield the creatives of campaigns, campaign by campaign."""
    rules = await read_rules(connection, keys, CREATIVE_RULES)
    frequency = await read_frequency(connection, keys, CREATIVE_FREQUENCY)
    schedules = ScheduleCache()
    group: list[CreativeRow] = []
    async for records in iter_batches(connection, CREATIVES, keys, size=ROWS_A_BATCH):
        fields = [dict(record) for record in records]
        terms = [
            msgspec.convert({name: one.pop(name) for name in CreativeTerms.__struct_fields__}, CreativeTerms)
            for one in fields
        ]
        for row, its_terms in zip(build_rows(fields, rules, frequency, schedules), terms, strict=True):
            if group and group[0].assignment.placement_key != row.placement_key:
                yield group
                group = []
            group.append(CreativeRow(row, its_terms))
    if group:
        yield group
