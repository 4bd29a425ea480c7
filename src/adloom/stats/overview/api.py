"""The figures of the first page over HTTP, in one request, so that it can be repeated every few seconds."""

from datetime import date, datetime, timedelta
from typing import Annotated, Final
from zoneinfo import ZoneInfo

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
from adloom.runtime.valkey import Valkey
from adloom.stats.api import CountsUnbound
from adloom.stats.model import UTC_ZONE, Counts, Grouping, StatsQuestion
from adloom.stats.overview.model import DAY, OverviewPoint, OverviewSpan, begins, find_begin, sum_points
from adloom.stats.store import read_revenue, read_statistics

ROWS_MAX: Final = 10_000
HOUSE_ONLY: Final = "Of the whole house; null for an account."


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
    first, *_ = moments = begins(span, now=now, zone=zone)
    question = StatsQuestion(
        first=first.astimezone(zone).date(),
        last=now.astimezone(zone).date(),
        groupings=(Grouping.DAY if span.step == DAY else Grouping.HOUR,),
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
    hours = int((now - begins(span, now=now, zone=zone)[0]) / timedelta(hours=1)) + 1
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
