"""Adloom's own delivery as an ad platform, so that own and external spend appear in one report.

An account of this platform needs no credentials. The external ids of its campaigns name campaigns of the same
advertiser here; those of ad sets name placements, those of ads name banners.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from adloom.runtime.postgres import POSTGRES_AWAY, Pool
from adloom.sync.figures import Figures, compute_ratios
from adloom.sync.providers.own_store import LinkedEntity, OwnDaySpan, OwnFigures, load_own_figures
from adloom.sync.providers.protocol import (
    Entity,
    ProviderRefusedError,
    ProviderUnavailableError,
    StatRow,
    StatsRequest,
)
from adloom.sync.words import Platform, Semantics


class OwnProvider:
    """Reads Adloom's own delivery statistics."""

    platform = Platform.ADLOOM
    semantics = Semantics.SNAPSHOT
    requests_per_second = None

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        linked = [one for entity in request.entities if (one := find_linked(entity)) is not None]
        if not linked:
            return
        try:
            found = await load_own_figures(self._pool, request.seller_id, linked, build_span(request))
        except POSTGRES_AWAY as error:
            raise ProviderUnavailableError(
                f"The statistics cannot be read: {type(error).__name__}."
            ) from error
        names = {entity.id: entity.external_id or "" for entity in request.entities}
        yield [_build_row(one, names[one.entity_id]) for one in found]


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


def build_span(request: StatsRequest) -> OwnDaySpan:
    """Return the requested days as UTC times, by the account's time zone."""
    try:
        zone = ZoneInfo(request.account.timezone)
    except (KeyError, ValueError, OSError):
        raise ProviderRefusedError(f"There is no time zone {request.account.timezone!r}.") from None
    begins = datetime.combine(request.first, time(), zone).astimezone(UTC)
    ends = datetime.combine(request.last + timedelta(days=1), time(), zone).astimezone(UTC)
    return OwnDaySpan(
        first=request.first, last=request.last, timezone=request.account.timezone, begins=begins, ends=ends
    )


def _build_row(found: OwnFigures, external_id: str) -> StatRow:
    figures = Figures(spend=found.spend, impressions=found.impressions, link_clicks=found.clicks)
    return StatRow(
        entity_id=found.entity_id,
        external_entity_id=external_id,
        date_start=found.day,
        date_stop=found.day,
        figures=figures,
        ratios=compute_ratios(figures),
    )


def _parse_uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text or "")
    except ValueError:
        return None
