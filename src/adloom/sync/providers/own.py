"""Adloom's own delivery as an ad platform, so that own and external spend appear in one report.

An account of this platform needs no credentials. The external ids of its campaigns name campaigns of the same
advertiser here; those of ad sets name placements, those of ads name banners.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.money import MICROS_PER_UNIT
from adloom.runtime.postgres import POSTGRES_AWAY, Pool
from adloom.sync.figures import Figures
from adloom.sync.jobs import list_days
from adloom.sync.providers.protocol import (
    Entity,
    ProviderRefusedError,
    ProviderUnavailableError,
    StatRow,
    StatsRequest,
)
from adloom.sync.words import Platform, Semantics

# Only the seller's own campaigns: anybody can enter any external id. Linked entities without events get zeros, so that
# a recount reaches the report. Hours are UTC: an hour that spans two local days counts for the day it begins on. Days
# begin at our own midnights, because PostgreSQL has other rules of zones than Python's.
# Invalid events are neither billed nor reported.
FIGURES: Final = """
    WITH wanted AS (
        SELECT it.entity_id, campaign.id AS campaign_id, placement.id AS placement_id, banner.id AS banner_id
          FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[]) AS it (entity_id, campaign, placement, banner)
          JOIN advertisers AS seller ON seller.public_id = $1
          JOIN campaigns AS campaign ON campaign.public_id = it.campaign AND campaign.advertiser_id = seller.id
          LEFT JOIN placements_ever AS placement ON placement.public_id = it.placement
          LEFT JOIN banners AS banner ON banner.public_id = it.banner
         WHERE (it.placement IS NULL OR placement.id IS NOT NULL) AND (it.banner IS NULL OR banner.id IS NOT NULL)
    ), told AS (
        SELECT campaign_id, placement_id, banner_id, $9::date - 1 + width_bucket(hour, $6::timestamptz[]) AS day,
               impressions - invalid_impressions AS impressions, clicks - invalid_clicks AS clicks,
               0::bigint AS spent_micros
          FROM events.event_counts
         WHERE campaign_id IN (SELECT campaign_id FROM wanted) AND hour >= $7 AND hour < $8
        UNION ALL
        SELECT campaign_id, placement_id, banner_id, $9::date - 1 + width_bucket(hour, $6::timestamptz[]), 0, 0, spent_micros
          FROM spend_hours
         WHERE campaign_id IN (SELECT campaign_id FROM wanted) AND hour >= $7 AND hour < $8
    )
    SELECT wanted.entity_id, wanted_day::date AS day, coalesce(sum(told.impressions), 0)::bigint AS impressions,
           coalesce(sum(told.clicks), 0)::bigint AS clicks,
           round(coalesce(sum(told.spent_micros), 0) / $11::numeric, 2) AS spend
      FROM wanted
     CROSS JOIN generate_series($9::date, $10::date, interval '1 day') AS wanted_day
      LEFT JOIN told ON told.campaign_id = wanted.campaign_id AND told.day = wanted_day::date
           AND (wanted.placement_id IS NULL OR told.placement_id = wanted.placement_id)
           AND (wanted.banner_id IS NULL OR told.banner_id = wanted.banner_id)
     GROUP BY 1, 2
     ORDER BY 2, 1
"""


class LinkedEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity, and the campaign, placement and banner that it is linked to."""

    entity_id: UUID
    campaign_id: UUID
    placement_id: UUID | None = None
    banner_id: UUID | None = None


class OwnProvider:
    """Reads Adloom's own delivery statistics."""

    platform = Platform.ADLOOM
    semantics = Semantics.SNAPSHOT

    def __init__(self, pool: Pool, *, currency: str | None = None) -> None:
        self._pool = pool
        self._currency = currency  # Of our prices; None is not known.

    async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        linked = [one for entity in request.entities if (one := find_linked(entity)) is not None]
        if not linked:
            return
        if self._currency is not None and request.account.currency != self._currency:
            raise ProviderRefusedError(
                f"Adloom charges in {self._currency}, and the account here is in {request.account.currency}."
                f" Change its currency to {self._currency}."
            )
        try:
            rows = await _load_rows(self._pool, request, linked)
        except POSTGRES_AWAY as error:
            raise ProviderUnavailableError(
                f"The statistics cannot be read: {type(error).__name__}."
            ) from error
        yield rows


def find_linked(entity: Entity) -> LinkedEntity | None:
    """Return what an entity is linked to; None if it or one of its parents is not linked."""
    path = [_parse_uuid(text) for text in (*entity.above, entity.external_id)]
    if None in path:
        return None
    campaign_id, placement_id, banner_id = (*path, None, None)[:3]
    assert campaign_id is not None
    return LinkedEntity(
        entity_id=entity.id, campaign_id=campaign_id, placement_id=placement_id, banner_id=banner_id
    )


def _list_midnights(request: StatsRequest) -> list[datetime]:
    """Return where the requested days begin in the account's time zone, and where the last one ends."""
    try:
        zone = ZoneInfo(request.account.timezone)
    except (KeyError, ValueError, OSError):
        raise ProviderRefusedError(f"There is no time zone {request.account.timezone!r}.") from None
    return [
        datetime.combine(day, time(), zone).astimezone(UTC)
        for day in list_days(request.first, request.last + timedelta(days=1))
    ]


async def _load_rows(pool: Pool, request: StatsRequest, linked: Sequence[LinkedEntity]) -> list[StatRow]:
    *midnights, ends = _list_midnights(request)
    rows = await pool.fetch(
        FIGURES,
        request.seller_id,
        [one.entity_id for one in linked],
        [one.campaign_id for one in linked],
        [one.placement_id for one in linked],
        [one.banner_id for one in linked],
        midnights,
        midnights[0],
        ends,
        request.first,
        request.last,
        MICROS_PER_UNIT,
    )
    names = {entity.id: entity.external_id or "" for entity in request.entities}
    return [
        StatRow(
            entity_id=row["entity_id"],
            external_entity_id=names[row["entity_id"]],
            date_start=row["day"],
            date_stop=row["day"],
            figures=Figures(spend=row["spend"], impressions=row["impressions"], link_clicks=row["clicks"]),
        )
        for row in rows
    ]


def _parse_uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text or "")
    except ValueError:
        return None
