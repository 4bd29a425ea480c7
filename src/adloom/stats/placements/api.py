"""The banners that run on a placement, and the placements that campaigns can ask for, over HTTP."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

import msgspec
from fastapi import Query
from pydantic import Field

from adloom.budgets.traffic.counts import PLACEMENT_DAYS, PlacementRequests, read_placement_requests
from adloom.catalog.assignment.lists import PlacedBanner, read_banners
from adloom.catalog.placement import placements
from adloom.core.money import Micros, paisa_from_micros
from adloom.resource.api import AdvertiserReads, CurrentCatalog, PublisherReads, make_catalog_router
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import CurrentValkey, Database, Now, make_router
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Text255
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.stats.model import Counts, Grouping, StatsQuestion
from adloom.stats.store import read_statistics

COUNTED_DAYS: Final = 30
SEEN_DAYS: Final = 7
SIGNIFICANT: Final = 2  # Digits: what a publisher's day brings exactly is not everybody's business.
ROWS_MAX: Final = 100_000
NOTHING: Final = Counts()

Counted = Annotated[int, Field(description=f"In the last {COUNTED_DAYS} days, today included.")]


class CountedBanner(PlacedBanner, frozen=True, kw_only=True):
    """A banner on a placement, with its numbers there."""

    impressions: Counted
    clicks: Counted
    spend_paisa: Counted


class PlacedBannersQuery(ListQuery):
    """How a list of the banners of a placement is sorted and paged."""

    SORTABLE: ClassVar = frozenset({"created_at", "updated_at", "display_order"})


COUNTED_ANSWER: Final = build_answer(
    "CountedBannerAnswer", "A banner that a campaign shows on a placement, with its numbers.", CountedBanner
)
banners_router = make_catalog_router("/admin/placements/{placement_id}/banners", tag="consent")


@banners_router.get("", response_model=Page[COUNTED_ANSWER])
async def list_placed_banners(  # noqa: PLR0913, PLR0917 - a placement, a query, and who asks when
    placement_id: UUID,
    query: Annotated[PlacedBannersQuery, Query()],
    scope: PublisherReads,
    catalog: CurrentCatalog,
    pool: Database,
    now: Now,
) -> Page[Any]:
    """List every banner that is on a placement, whoever's it is."""
    async with catalog.read() as connection:
        await placements.table.find(connection, scope, placement_id)
        listed = await read_banners(connection, placement_id, query.page_request)
    today = now.date()
    question = StatsQuestion(
        first=today - timedelta(days=COUNTED_DAYS - 1),
        last=today,
        placement_id=placement_id,
        publisher_id=scope.account_id,
        groupings=(Grouping.BANNER, Grouping.CAMPAIGN),
    )
    rows = await read_statistics(pool, question, today=today, rows_max=ROWS_MAX)
    counts = {row.key: row.counts for row in rows}
    items = [_count(one, counts.get((one.banner_id, one.campaign_id), NOTHING)) for one in listed.items]
    return build_page(COUNTED_ANSWER, Listed(items=items, total_count=listed.total_count), query)


def _count(banner: PlacedBanner, counts: Counts) -> CountedBanner:
    return CountedBanner(
        **msgspec.structs.asdict(banner),
        impressions=counts.impressions,
        clicks=counts.clicks,
        spend_paisa=paisa_from_micros(counts.spend or Micros(0)),
    )


# Contextual slots are not asked for: campaigns name the pages that they want, and publishers approve banners.
OFFERED: Final = """
    (SELECT placement.id AS key, placement.public_id AS id, placement.slug, placement.label,
            placement.layout_type, placement.delivery, placement.placement_type, placement.max_banners,
            placement.recommended_width, placement.recommended_height, placement.recommended_aspect_ratio,
            placement.floor_cpm_micros, placement.is_open, site.name AS site_name, site.domain AS site_domain,
            coalesce(seen.impressions, 0)::float8 / {days} AS impressions_per_day,
            CASE WHEN {counted} THEN coalesce(asked.requests, 0)::float8 / {counted_days} END AS requests_per_day
       FROM placements AS placement
       LEFT JOIN publishers AS owner ON owner.id = placement.publisher_id
       LEFT JOIN sites AS site ON site.id = placement.site_id
       LEFT JOIN (
           SELECT placement_id, sum(impressions) AS impressions FROM (
               SELECT placement_id, impressions - invalid_impressions AS impressions FROM banner_stats
                WHERE stat_date >= {since} AND stat_date < {live}
               UNION ALL
               SELECT placement_id, impressions - invalid_impressions FROM events.event_counts WHERE hour >= {midnight}
           ) AS counted GROUP BY placement_id
       ) AS seen ON seen.placement_id = placement.id
       LEFT JOIN unnest({keys}::integer[], {requests}::bigint[]) AS asked (key, requests) ON asked.key = placement.id
      WHERE placement.is_active AND placement.delivery <> 'contextual' AND owner.deleted_at IS NULL) AS it
"""
COLUMNS: Final = """
    it.id, it.slug, it.label, it.layout_type, it.delivery, it.placement_type, it.max_banners, it.recommended_width,
    it.recommended_height, it.recommended_aspect_ratio, it.floor_cpm_micros, it.is_open, it.site_name, it.site_domain,
    it.requests_per_day, it.impressions_per_day
"""


class OfferedPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """A placement as a buyer sees it."""

    id: UUID
    slug: str
    label: str
    layout_type: str
    delivery: str
    placement_type: str
    max_banners: int
    recommended_width: int | None
    recommended_height: int | None
    recommended_aspect_ratio: str | None
    floor_cpm_micros: Annotated[
        Micros, Field(alias="floorCpm", description="The least for a thousand impressions.")
    ]
    is_open: Annotated[bool, Field(description="Whether it can be used without asking.")]
    site_name: str | None
    site_domain: str | None
    requests_per_day: Annotated[
        float | None,
        Field(
            description=f"How often it was asked for on an average of the last {PLACEMENT_DAYS} days, or of those that are "
            "counted, about; a request for an auction asks for every placement of its type. Null while Valkey is away."
        ),
    ]
    impressions_per_day: Annotated[
        float,
        Field(description=f"How often its ads were seen on an average of the last {SEEN_DAYS} days, about."),
    ]


class OfferedQuestion(msgspec.Struct, frozen=True):
    """What is looked for, which day it is, and how often placements were asked for, if that is known."""

    search: str | None
    today: date
    requests: PlacementRequests | None


async def read_offered(
    connection: Connection, question: OfferedQuestion, request: PageRequest
) -> Listed[OfferedPlacement]:
    filters, requests = Filters(), question.requests or PlacementRequests(1, {})
    tables = OFFERED.format(
        days=SEEN_DAYS,
        since=filters.bind(question.today - timedelta(days=SEEN_DAYS - 1)),
        # Yesterday is rolled up in the night: until then it has live counts only.
        live=filters.bind(yesterday := question.today - timedelta(days=1)),
        midnight=filters.bind(datetime.combine(yesterday, time(), UTC)),
        counted="false" if question.requests is None else "true",
        counted_days=requests.days,
        keys=filters.bind(list(requests.by_key)),
        requests=filters.bind(list(requests.by_key.values())),
    )
    filters.add_search(["it.label", "it.slug", "it.site_name", "it.site_domain"], question.search)
    source = RowSource(columns=COLUMNS, tables=tables, tiebreak="it.key")
    listed = await fetch_structs(connection, source, filters, request, OfferedPlacement)
    return Listed(
        items=[
            msgspec.structs.replace(
                one,
                requests_per_day=None
                if one.requests_per_day is None
                else round_roughly(one.requests_per_day),
                impressions_per_day=round_roughly(one.impressions_per_day),
            )
            for one in listed.items
        ],
        total_count=listed.total_count,
    )


def round_roughly(number: float) -> float:
    """Round to two digits."""
    return float(f"{number:.{SIGNIFICANT}g}")


class OfferedQuery(ListQuery):
    """Which placements; a text is looked for in labels, slugs and sites."""

    SORTABLE: ClassVar = frozenset({"label", "impressions_per_day", "requests_per_day"})

    sort: Text255 = "label"
    search: Text255 | None = None


OFFERED_ANSWER: Final = build_answer(
    "OfferedPlacementAnswer", "A placement that a campaign can ask for.", OfferedPlacement
)
offered_router = make_router("/admin/offered-placements", "placements", 400, 401, 403, 503)


@offered_router.get("", response_model=Page[OFFERED_ANSWER])
async def list_offered_placements(
    query: Annotated[OfferedQuery, Query()],
    _scope: AdvertiserReads,
    pool: Database,
    valkey: CurrentValkey,
    now: Now,
) -> Page[Any]:
    """List the placements that campaigns can use or ask for, of all publishers: by name, with size, site, price and requests a day."""
    question = OfferedQuestion(query.search, now.date(), await _find_requests(valkey, now.date()))
    async with pool.acquire() as connection:
        listed = await read_offered(connection, question, query.page_request)
    return build_page(OFFERED_ANSWER, listed, query)


async def _find_requests(valkey: Valkey, today: date) -> PlacementRequests | None:
    """Return how often placements were asked for; None while Valkey is away, since placements can be chosen without it."""
    try:
        return await read_placement_requests(valkey, today)
    except VALKEY_AWAY:
        return None
