"""The figures of the first page over HTTP, in one request, so that it can be repeated every few seconds."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

import msgspec
from fastapi import Query
from pydantic import Field

from adloom.core.caller import Caller, Role
from adloom.core.money import Micros
from adloom.resource.shapes import PaisaShown, TimeZone
from adloom.runtime.http.api.dependencies import (
    CurrentCaller,
    CurrentValkey,
    Database,
    Now,
    make_router,
)
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.postgres import Pool
from adloom.runtime.telemetry.heartbeat import HOUR, HeartbeatReader, TrafficCounts
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.stats import zone_days
from adloom.stats.api import CountsUnbound
from adloom.stats.model import UTC_ZONE, Counts, Grouping, StatsQuestion
from adloom.stats.store import read_revenue, read_statistics

ONE_HOUR: Final = timedelta(hours=1)
ONE_DAY: Final = timedelta(days=1)
SHARE_PLACES: Final = 6
ROWS_MAX: Final = 10_000
HOUSE_ONLY: Final = "Of the whole house; null for an account."
HOURS_OF_A_DAY_MAX: Final = 25  # On the day when clocks go back.


class OverviewSpan(StrEnum):
    """How far back to look."""

    TODAY = "today"
    LAST_24_HOURS = "24h"
    LAST_7_DAYS = "7d"

    @property
    def step(self) -> timedelta:
        return ONE_DAY if self is OverviewSpan.LAST_7_DAYS else ONE_HOUR


class OverviewPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of an hour or a day; None is unknown, or not visible to the account."""

    begins_at: datetime
    impressions: int = 0
    clicks: int = 0
    spend: Micros = Micros(0)
    revenue: Micros | None = None
    requests: int | None = None
    filled: int | None = None

    @property
    def ctr(self) -> float:
        return round(self.clicks / self.impressions, SHARE_PLACES) if self.impressions else 0.0

    @property
    def fill(self) -> float | None:
        return (
            round(self.filled / self.requests, SHARE_PLACES)
            if self.requests and self.filled is not None
            else None
        )


def list_starts(span: OverviewSpan, *, now: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return the start of each point of a span, in UTC; the present hour or day is the last.

    Days are those of the zone. Counts are kept by hour of UTC, and an hour counts for the day in which it begins: the
    first minutes of a day in a zone of half hours have only an hour of the day before, which takes their place.
    """
    hour = now.replace(minute=0, second=0, microsecond=0).astimezone(UTC)
    today = now.astimezone(zone).date()
    match span:
        case OverviewSpan.TODAY:
            hours = [hour - ONE_HOUR * back for back in range(HOURS_OF_A_DAY_MAX, -1, -1)]
            return [at for at in hours if at.astimezone(zone).date() == today] or [hour]
        case OverviewSpan.LAST_24_HOURS:
            return [hour - ONE_HOUR * back for back in range(23, -1, -1)]
        case OverviewSpan.LAST_7_DAYS:
            return [zone_days.find_begin(today - ONE_DAY * back, zone) for back in range(6, -1, -1)]


def find_begin(key: date, span: OverviewSpan, *, zone: ZoneInfo) -> datetime:
    """Return the start of the point in which an hour lies, or of a day of the zone."""
    if not isinstance(key, datetime):
        return zone_days.find_begin(key, zone)
    return zone_days.find_begin(key.astimezone(zone).date(), zone) if span.step == ONE_DAY else key


def sum_points(points: Sequence[OverviewPoint]) -> OverviewPoint:
    summed = (name for name in OverviewPoint.__struct_fields__ if name != "begins_at")
    sums = {name: _sum(getattr(one, name) for one in points) for name in summed}
    return OverviewPoint(begins_at=points[0].begins_at, **sums)


def _sum(values: Iterable[int | None]) -> Any:  # noqa: ANN401 - a count or micros, or None
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class OverviewQuery(Body):
    """How far back to look."""

    span: OverviewSpan = OverviewSpan.TODAY
    time_zone: Annotated[
        TimeZone,
        Field(
            description="Whose days are meant, such as `Europe/Berlin`; an hour counts for the day it begins in."
        ),
    ] = UTC_ZONE.key


class FiguresAnswer(Answer):
    """Counts, spend and requests."""

    impressions: int
    clicks: int
    ctr: Annotated[float, Field(description="Clicks by impressions, a fraction.")]
    spend: Annotated[
        PaisaShown, Field(alias="spendPaisa", description="All charges of your campaigns or placements.")
    ]
    revenue: Annotated[
        PaisaShown | None,
        Field(
            alias="revenuePaisa",
            description="Charges to advertisers, which the house's own campaigns are not.",
        ),
    ]
    requests: Annotated[int | None, Field(description=HOUSE_ONLY)]
    filled: Annotated[int | None, Field(description=HOUSE_ONLY)]
    fill: Annotated[float | None, Field(description="Filled by requests, a fraction. " + HOUSE_ONLY)]


class OverviewPointAnswer(FiguresAnswer):
    """The figures of an hour or a day."""

    begins_at: datetime


class OverviewAnswer(Answer):
    """The figures of a span, in total and by hour or day."""

    span: OverviewSpan
    time_zone: Annotated[str, Field(description="Of its days.")]
    step_seconds: int
    totals: FiguresAnswer
    points: list[OverviewPointAnswer]


router = make_router("/admin/overview", "statistics", 400, 401, 503)


@router.get("")
async def read_overview(  # noqa: PLR0913, PLR0917 - all that the route depends on
    query: Annotated[OverviewQuery, Query()],
    caller: CurrentCaller,
    pool: Database,
    valkey: CurrentValkey,
    now: Now,
    counts_unbound: CountsUnbound,
) -> OverviewAnswer:
    """Return the figures of a span; an account sees its own."""
    span, zone = query.span, ZoneInfo(query.time_zone)
    first, *_ = moments = list_starts(span, now=now, zone=zone)
    question = StatsQuestion(
        first=first.astimezone(zone).date(),
        last=now.astimezone(zone).date(),
        groupings=(Grouping.DAY if span.step == ONE_DAY else Grouping.HOUR,),
        advertiser_id=caller.advertiser_id,
        publisher_id=caller.publisher_id,
        counts_unbound=counts_unbound,
        zone=zone,
    )
    counts = await _read_counts(pool, question, span, now)
    paid: dict[datetime, Micros] = {}
    asked: dict[datetime, TrafficCounts] = {}
    if caller.sees_all:
        async with pool.acquire() as connection:
            for hour, micros in await read_revenue(connection, since=first):
                at = find_begin(hour, span, zone=zone)
                paid[at] = Micros(paid.get(at, 0) + micros)
        with suppress(*VALKEY_AWAY):  # All but the requests is in the database.
            asked = await _read_traffic_counts(valkey, span, now, zone=zone)
    points = [
        _build_point(at, counts.get(at, Counts()), paid.get(at, Micros(0)), asked.get(at), caller)
        for at in moments
    ]
    return OverviewAnswer(
        span=span,
        time_zone=zone.key,
        step_seconds=int(span.step.total_seconds()),
        totals=FiguresAnswer.model_validate(sum_points(points)),
        points=[OverviewPointAnswer.model_validate(one) for one in points],
    )


async def _read_counts(
    pool: Pool, question: StatsQuestion, span: OverviewSpan, now: datetime
) -> dict[datetime, Counts]:
    rows = await read_statistics(pool, question, today=now.date(), rows_max=ROWS_MAX)
    found: dict[datetime, Counts] = {}
    for row in rows:
        [key] = row.key
        assert isinstance(key, date), "a moment is a day too"
        found[find_begin(key, span, zone=question.zone)] = row.counts
    return found


async def _read_traffic_counts(
    valkey: Valkey, span: OverviewSpan, now: datetime, *, zone: ZoneInfo
) -> dict[datetime, TrafficCounts]:
    """Return requests by hour or day, from counters by hour."""
    hours = int((now - list_starts(span, now=now, zone=zone)[0]) / timedelta(hours=1)) + 1
    found: dict[datetime, TrafficCounts] = {}
    for one in await HeartbeatReader(valkey).load_traffic(HOUR, count=hours, now=now):
        at = find_begin(one.begins_at, span, zone=zone)
        before = found.get(at, TrafficCounts(begins_at=at, requests=0, filled=0))
        found[at] = TrafficCounts(
            begins_at=at, requests=before.requests + one.requests, filled=before.filled + one.filled
        )
    # Before the first counter nothing was counted, which is not the same as zero.
    first_asked = min((at for at, one in found.items() if one.requests), default=now)
    return {at: one for at, one in found.items() if at >= first_asked}


def _build_point(
    at: datetime, counts: Counts, paid: Micros, asked: TrafficCounts | None, caller: Caller
) -> OverviewPoint:
    spend = counts.spend or Micros(0)
    income = spend if caller.role is Role.PUBLISHER else None
    return OverviewPoint(
        begins_at=at,
        impressions=counts.impressions,
        clicks=counts.clicks,
        spend=spend,
        revenue=paid if caller.sees_all else income,
        requests=asked.requests if asked is not None else None,
        filled=asked.filled if asked is not None else None,
    )
