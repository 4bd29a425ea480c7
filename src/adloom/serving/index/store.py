"""Reads the catalog for the index. Only the index refresher and explanations import it, never the public path.

Everything is read in batches, so that the process can answer requests between them.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.auction.bid import BidType
from adloom.catalog.banner_content import DELIVERED, write_columns
from adloom.core.errors import AdloomError
from adloom.events.frequency.windows import Window
from adloom.resource.changes import read_version
from adloom.runtime.postgres import Connection, Record
from adloom.schedule.schedule import ScheduleCache
from adloom.serving.index.rows import (
    AssignmentRow,
    AssignmentStatus,
    Caps,
    Delivery,
    DirectTerms,
    FrequencyLimit,
    PlacementRow,
    PlacementRows,
    compute_price,
    find_price_problem,
)
from adloom.targeting.rules import Rule, parse_rule

ROWS_A_BATCH: Final = 200
IDS_A_BATCH: Final = 2_000

Keys = Sequence[int] | None  # None is all of them.
Rules = tuple[Rule, ...] | None  # None: a rule cannot be read.
Frequency = tuple[FrequencyLimit, ...]


class CatalogQuery(msgspec.Struct, frozen=True):
    """A query for everything, and one for some keys: a single one for both would be planned badly."""

    everything: str
    among: str


def build_query(sql: str, among: str, content: str = "") -> CatalogQuery:
    return CatalogQuery(*(sql.format(among=condition, content=content) for condition in ("true", among)))


OLDEST_CHANGE = "SELECT coalesce(min(version), 0) FROM catalog_changes"
CHANGED_KEYS = "SELECT DISTINCT noun, noun_key FROM catalog_changes WHERE version > $1"
AFFECTED_PLACEMENTS = """
    SELECT DISTINCT placement_id FROM banner_assignments
     WHERE banner_id = ANY ($1::integer[]) OR campaign_id = ANY ($2::integer[])
"""
PLACEMENTS = build_query(
    """
    SELECT placement.id AS key, placement.public_id AS id, placement.publisher_id AS owner_key, slug, label, layout_type::text AS layout_type, max_banners,
           is_active AND publisher.deleted_at IS NULL AS is_active,
           fallback_placeholder_url, allow_partial_render, delivery::text AS delivery,
           placement_type, placement.timezone, placement.floor_cpm_micros AS floor, auction_scoring AS scoring, rotation,
           site_id AS site_key, site.domain AS site, recommended_width AS width, recommended_height AS height
      FROM placements AS placement
      LEFT JOIN publishers AS publisher ON publisher.id = placement.publisher_id
      LEFT JOIN sites AS site ON site.id = placement.site_id
     WHERE {among}
    """,
    among="placement.id = ANY ($1::integer[])",
)
READ_RULES = """
    SELECT campaign_id, rule_type::text, operator, value::text
      FROM campaign_targeting_rules
     WHERE is_active {content} AND {among}
     ORDER BY campaign_id, id
"""
RULES = build_query(
    READ_RULES,
    among="campaign_id = ANY (ARRAY(SELECT campaign_id FROM campaign_placements WHERE placement_id = ANY ($1::integer[])))",
)
READ_FREQUENCY = """
    SELECT banner_id, lower("window"), max_impressions_per_user
      FROM frequency_caps
     WHERE {among}
     ORDER BY banner_id, id
"""
FREQUENCY = build_query(
    READ_FREQUENCY,
    among="banner_id = ANY (ARRAY(SELECT banner_id FROM banner_assignments WHERE placement_id = ANY ($1::integer[])))",
)
# By placement, nearly in the order of `compile.fill_order`: sorting sorted rows is fast.
# A scheduled campaign is live: at its start it serves, whether or not its status was changed yet.
ASSIGNMENTS = build_query(
    """
    SELECT assignment.placement_id AS placement_key,
           campaign.id AS campaign_key, campaign.public_id AS campaign_id,
           banner.id AS banner_key, banner.public_id AS banner_id,
           CASE WHEN payer.deleted_at IS NOT NULL OR maker.deleted_at IS NOT NULL THEN 'advertiser_deleted'
                WHEN campaign.deleted_at IS NOT NULL THEN 'campaign_deleted'
                WHEN campaign.status = 'scheduled' AND campaign.starts_at IS NULL THEN 'campaign_undated'
                WHEN campaign.status NOT IN ('active', 'scheduled') THEN 'campaign_' || campaign.status
                WHEN link.state <> 'accepted' THEN 'link_' || link.state
                WHEN NOT link.is_active THEN 'link_inactive'
                WHEN site.domain IS NULL AND cardinality(payer.blocked_sites) > 0 THEN 'site_missing'
                WHEN site.domain IS NOT NULL AND EXISTS (
                    SELECT FROM unnest(payer.blocked_sites) AS blocked
                     WHERE right('.' || site.domain, length(blocked) + 1) = '.' || blocked
                ) THEN 'site_blocked'
                WHEN (site.pacing ->> 'warmup')::boolean THEN 'warmup'
                WHEN assignment.is_refused THEN 'banner_refused'
                WHEN NOT assignment.is_active THEN 'assignment_inactive'
                WHEN banner.deleted_at IS NOT NULL THEN 'banner_deleted'
                WHEN NOT banner.is_active THEN 'banner_inactive'
                ELSE 'live' END AS status,
           campaign.starts_at, campaign.ends_at, campaign.impression_cap, campaign.click_cap,
           payer.id AS advertiser_key, payer.public_id AS advertiser_id,
           placement.delivery::text AS delivery, publisher.public_id AS publisher_id, link.is_asked_for,
           placement.placement_type, placement.floor_cpm_micros AS floor,
           campaign.bid_type::text AS bid_type, campaign.bid_amount_micros AS bid,
           campaign.budget_daily_paisa IS NOT NULL OR campaign.budget_total_paisa IS NOT NULL
               OR payer.daily_budget_paisa IS NOT NULL AS is_limited,
           assignment.display_order, assignment.weight, campaign.priority AS campaign_priority,
           banner.priority AS banner_priority, assignment.is_fallback, assignment.fallback_priority,
           banner.is_evergreen_fallback,
           banner.schedule_status::text AS schedule_status, banner.publish_at, banner.expires_at,
           banner.schedule_timezone, banner.recurrence_rule, banner.recurrence_window_start,
           banner.recurrence_window_end, banner.created_at,
           {content}, campaign.passes_click_id, assignment.transition_duration_ms
      FROM banner_assignments AS assignment
      JOIN campaign_placements AS link USING (campaign_id, placement_id)
      JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
      JOIN banners AS banner ON banner.id = assignment.banner_id
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
      LEFT JOIN advertisers AS maker ON maker.id = banner.advertiser_id
      JOIN placements AS placement ON placement.id = assignment.placement_id
      LEFT JOIN sites AS site ON site.id = placement.site_id
      LEFT JOIN publishers AS publisher ON publisher.id = placement.publisher_id
     WHERE {among}
     ORDER BY assignment.placement_id, assignment.is_fallback,
           CASE WHEN assignment.is_fallback THEN assignment.fallback_priority END NULLS LAST,
           assignment.display_order, assignment.weight DESC, campaign.priority DESC, banner.priority DESC
    """,
    among="assignment.placement_id = ANY ($1::integer[])",
    content=write_columns(DELIVERED, assignment="assignment"),
)
AFFECTED_CAMPAIGNS = "SELECT DISTINCT campaign_id FROM creatives WHERE banner_id = ANY ($1::integer[])"
# Including deleted ones: an offer may be reported after its banner was deleted.
BANNER_IDS = build_query("SELECT public_id, id FROM banners WHERE {among}", among="id = ANY ($1::integer[])")
CAMPAIGN_IDS = build_query(
    "SELECT public_id, advertiser_id FROM campaigns WHERE {among}", among="id = ANY ($1::integer[])"
)


class ChangedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between an index's version and a newer one."""

    placement_keys: list[int]
    banner_keys: list[int]
    campaign_keys: list[int]
    site_keys: list[int]
    creative_keys: list[int]  # Campaigns whose creatives may have changed.


@asynccontextmanager
async def read_one_version(connection: Connection) -> AsyncGenerator[int]:
    """Read everything inside at one version, and yield it."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        yield await read_version(connection)


async def read_changed_keys(connection: Connection, *, since: int, until: int) -> ChangedKeys | None:
    """Return what changed between two versions, or None if that is not known.

    It was too long ago, or the catalog went back: it was restored from a backup.
    """
    if until < since or (until > since and await connection.fetchval(OLDEST_CHANGE) > since + 1):
        return None
    # An advertiser's budget is no part of the index; for other changes its campaigns are named too.
    keys: dict[str, list[int]] = {"placement": [], "banner": [], "campaign": [], "advertiser": [], "site": []}
    for noun, key in await connection.fetch(CHANGED_KEYS, since):
        keys[noun].append(key)
    affected = await connection.fetch(AFFECTED_PLACEMENTS, keys["banner"], keys["campaign"])
    placement_keys = {*keys["placement"], *(row[0] for row in affected)}
    shown_by = await connection.fetch(AFFECTED_CAMPAIGNS, keys["banner"]) if keys["banner"] else ()
    return ChangedKeys(
        placement_keys=sorted(placement_keys),
        banner_keys=keys["banner"],
        campaign_keys=keys["campaign"],
        site_keys=keys["site"],
        creative_keys=sorted({*keys["campaign"], *(row[0] for row in shown_by)}),
    )


async def iter_placements(connection: Connection, keys: Keys) -> AsyncGenerator[PlacementRows]:
    waiting: dict[int, PlacementRow] = {}
    async for records in iter_batches(connection, PLACEMENTS, keys, size=ROWS_A_BATCH):
        waiting |= {record["key"]: msgspec.convert(dict(record), PlacementRow) for record in records}
    rules = await read_rules(connection, keys)
    frequency = await read_frequency(connection, keys)
    schedules = ScheduleCache()
    group: list[AssignmentRow] = []
    async for records in iter_batches(connection, ASSIGNMENTS, keys, size=ROWS_A_BATCH):
        for row in build_rows(records, rules, frequency, schedules):
            if group and group[0].placement_key != row.placement_key:
                yield PlacementRows(waiting.pop(group[0].placement_key), group)
                group = []
            group.append(row)
    if group:
        yield PlacementRows(waiting.pop(group[0].placement_key), group)
    for placement in waiting.values():
        yield PlacementRows(placement, [])


async def iter_ids(
    connection: Connection, query: CatalogQuery, keys: Keys
) -> AsyncGenerator[list[tuple[UUID, int | None]]]:
    async for records in iter_batches(connection, query, keys, size=IDS_A_BATCH):
        yield [(thing_id, owner_key) for thing_id, owner_key in records]


async def iter_batches(
    connection: Connection, query: CatalogQuery, keys: Keys, *, size: int
) -> AsyncGenerator[list[Record]]:
    if keys is None:
        cursor = await connection.cursor(query.everything)
    else:
        cursor = await connection.cursor(query.among, keys)
    while records := await cursor.fetch(size):
        yield records


async def read_rules(connection: Connection, keys: Keys, query: CatalogQuery = RULES) -> dict[int, Rules]:
    """Read the rules of campaigns; equal ones are the same object."""
    known: dict[tuple[str, str, str], Rule | None] = {}
    shared: dict[tuple[Rule | None, ...], Rules] = {}
    found: dict[int, Rules] = {}
    campaign_key: int | None = None
    own: list[Rule | None] = []
    async for records in iter_batches(connection, query, keys, size=ROWS_A_BATCH):
        for key, *spelling in records:
            if key != campaign_key:
                if campaign_key is not None:
                    found[campaign_key] = _combine_rules(tuple(own), shared)
                campaign_key, own = key, []
            rule_type, operator, value = spelling
            own.append(_parse_rule(known, rule_type, operator, value))
    if campaign_key is not None:
        found[campaign_key] = _combine_rules(tuple(own), shared)
    return found


async def read_frequency(
    connection: Connection, keys: Keys, query: CatalogQuery = FREQUENCY
) -> dict[int, Frequency]:
    """Read the frequency limits of banners; equal ones are the same object."""
    shared: dict[FrequencyLimit, FrequencyLimit] = {}
    found: dict[int, Frequency] = {}
    async for records in iter_batches(connection, query, keys, size=ROWS_A_BATCH):
        for key, window, impressions_max in records:
            cap = FrequencyLimit(Window(window), impressions_max)
            found[key] = (*found.get(key, ()), shared.setdefault(cap, cap))
    return found


def _combine_rules(rules: tuple[Rule | None, ...], shared: dict[tuple[Rule | None, ...], Rules]) -> Rules:
    if rules not in shared:
        readable = tuple(rule for rule in rules if rule is not None)
        shared[rules] = readable if len(readable) == len(rules) else None
    return shared[rules]


def _parse_rule(
    known: dict[tuple[str, str, str], Rule | None], rule_type: str, operator: str, value: str
) -> Rule | None:
    spelling = (rule_type, operator, value)
    if spelling not in known:
        try:
            known[spelling] = parse_rule(rule_type, operator, msgspec.json.decode(value))
        except AdloomError:
            known[spelling] = None
    return known[spelling]


def build_rows(
    records: Sequence[Record | dict[str, Any]],
    rules: dict[int, Rules],
    frequency: dict[int, Frequency],
    schedules: ScheduleCache,
) -> Iterator[AssignmentRow]:
    for record in records:
        fields: dict[str, Any] = dict(record)
        recurrence_rule = fields.pop("recurrence_rule")
        created_at = fields.pop("created_at")
        schedule = schedules.get(
            fields.pop("schedule_status"),
            fields.pop("publish_at"),
            fields.pop("expires_at"),
            fields.pop("schedule_timezone"),
            recurrence_rule,
            fields.pop("recurrence_window_start"),
            fields.pop("recurrence_window_end"),
            # Only a recurrence may start with it; without one, more schedules are equal.
            None if recurrence_rule is None else created_at,
        )
        impressions, clicks = fields.pop("impression_cap"), fields.pop("click_cap")
        bid_type = BidType(fields.pop("bid_type"))
        status = AssignmentStatus(fields.pop("status"))
        is_direct = fields.pop("delivery") == Delivery.DIRECT
        terms = DirectTerms(
            advertiser_id=fields["advertiser_id"],
            publisher_id=fields.pop("publisher_id"),
            is_asked_for=fields.pop("is_asked_for"),
            placement_type=fields.pop("placement_type"),
            floor=fields.pop("floor"),
        )
        if is_direct and status is AssignmentStatus.LIVE:
            status = find_price_problem(terms, bid_type, fields["bid"]) or status
        own_rules = rules.get(fields["campaign_key"], ())
        if own_rules is None and status is AssignmentStatus.LIVE:
            status = AssignmentStatus.RULE_UNREADABLE
        fields["media_variants"] = msgspec.convert(fields["media_variants"], dict[str, str])
        yield AssignmentRow(
            **fields,
            status=status,
            schedule=schedule,
            rules=own_rules or (),
            caps=None if impressions is None and clicks is None else Caps(impressions, clicks),
            bid_type=bid_type,
            price=compute_price(bid_type, fields["bid"]),
            frequency=frequency.get(fields["banner_key"], ()),
        )
