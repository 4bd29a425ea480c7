"""SQL of event counts and charges: rolled-up days where they are complete, else the live counts."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from adloom.core.money import Micros
from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Connection, Pool, Record, read_snapshot
from adloom.stats.model import Counts, Grouping, StatsQuestion, StatsRow

ONE_DAY: Final = timedelta(days=1)


class SourceSpan(NamedTuple):
    """Consecutive days, both included."""

    first: date
    last: date


class Sources(NamedTuple):
    """The days of a range, split by source; each day is in one of them."""

    rolled_up: tuple[SourceSpan, ...] = ()
    live: tuple[SourceSpan, ...] = ()


def sources(whole: SourceSpan, rolled_up_days: Iterable[date]) -> Sources:
    """Split a range into rolled-up days and live days, in order."""
    rolled_up: list[SourceSpan] = []
    live: list[SourceSpan] = []
    begins = whole.first
    for day in rolled_up_days:
        assert begins <= day <= whole.last, "in order, each once, and within the range"
        if begins < day:
            live.append(SourceSpan(begins, day - ONE_DAY))
        if rolled_up and rolled_up[-1].last == day - ONE_DAY:
            rolled_up[-1] = SourceSpan(rolled_up[-1].first, day)
        else:
            rolled_up.append(SourceSpan(day, day))
        begins = day + ONE_DAY
    if begins <= whole.last:
        live.append(SourceSpan(begins, whole.last))
    return Sources(tuple(rolled_up), tuple(live))


# A rolled-up day counts while it has as many events as then. Today may get more at any moment.
ROLLED_UP_DAYS: Final = """
    SELECT day FROM rollup_days AS rolled JOIN events.event_days AS found USING (day)
     WHERE day BETWEEN $1 AND $2 AND day < $3
       AND (rolled.events, rolled.corrections) = (found.events, found.corrections)
     ORDER BY day
"""
ROLLED_UP: Final = """
    SELECT stat_date AS day, NULL::timestamptz AS hour, banner_id, placement_id, campaign_id,
           NULL::varchar(2) AS country_code, NULL::varchar(20) AS device_type,
           impressions::bigint, clicks::bigint, invalid_impressions::bigint, invalid_clicks::bigint,
           unbound_impressions::bigint, unbound_clicks::bigint, over_budget_clicks::bigint,
           conversions::bigint, conversion_micros, spend_micros
      FROM banner_stats
     WHERE {spans}
"""
LIVE: Final = """
    SELECT (hour AT TIME ZONE 'UTC')::date AS day, hour, banner_id, placement_id, campaign_id,
           country_code, device_type, impressions, clicks, invalid_impressions, invalid_clicks,
           unbound_impressions, unbound_clicks, 0 AS over_budget_clicks, conversions, conversion_micros,
           0 AS spend_micros
      FROM events.event_counts
     WHERE {spans}
"""
# A charge counts when it is made, which may be an hour or a day after its event.
SPEND: Final = """
    SELECT (hour AT TIME ZONE 'UTC')::date, hour, banner_id, placement_id, campaign_id,
           NULL, NULL, 0, 0, 0, 0, 0, 0, over_budget_clicks, 0, 0, spent_micros
      FROM spend_hours
     WHERE {spans}
"""
# Public ids are looked up for the few sums, not for the many counts.
STATISTICS: Final = """
    SELECT {names}, impressions, clicks, invalid_impressions, invalid_clicks, unbound_impressions, unbound_clicks,
           conversions, conversion_micros, over_budget_clicks, spend_micros
      FROM (
          SELECT {columns}, sum(impressions)::bigint AS impressions, sum(clicks)::bigint AS clicks,
                 sum(invalid_impressions)::bigint AS invalid_impressions,
                 sum(invalid_clicks)::bigint AS invalid_clicks,
                 sum(unbound_impressions)::bigint AS unbound_impressions,
                 sum(unbound_clicks)::bigint AS unbound_clicks,
                 sum(conversions)::bigint AS conversions, sum(conversion_micros) AS conversion_micros,
                 sum(over_budget_clicks)::bigint AS over_budget_clicks,
                 sum(spend_micros)::bigint AS spend_micros
            FROM ({sources}) AS it
           WHERE {filters}
           GROUP BY {columns}
      ) AS counted
      {joins}
     ORDER BY {names}
     LIMIT {rows_max}
"""
# The column to group by, its public name, and its table. A placement may be gone.
COLUMNS: Final = {
    Grouping.DAY: ("day", "day", ""),
    Grouping.HOUR: ("hour", "hour", ""),
    Grouping.BANNER: ("banner_id", "banners.public_id", "LEFT JOIN banners ON banners.id = banner_id"),
    Grouping.PLACEMENT: (
        "placement_id",
        "placements.public_id",
        "LEFT JOIN placements_ever AS placements ON placements.id = placement_id",
    ),
    Grouping.CAMPAIGN: (
        "campaign_id",
        "campaigns.public_id",
        "LEFT JOIN campaigns ON campaigns.id = campaign_id",
    ),
    Grouping.COUNTRY: ("country_code", "country_code", ""),
    Grouping.DEVICE: ("device_type", "device_type", ""),
}
# An advertiser's counts are those of its campaigns; without a campaign, those of its banners.
OF_ADVERTISER: Final = "(it.campaign_id = ANY ({}) OR it.campaign_id IS NULL AND it.banner_id = ANY ({}))"
OF_PUBLISHER: Final = "it.placement_id = ANY ({})"
# Looked up first, as lists: a join here would keep the indexes of the counts from being used.
OWNED: Final = {
    "campaigns": """
        SELECT it.id FROM campaigns AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
         WHERE owner.public_id = $1
    """,
    "banners": """
        SELECT it.id FROM banners AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
         WHERE owner.public_id = $1
    """,
    "placements": """
        SELECT it.id FROM placements_ever AS it JOIN publishers AS owner ON owner.id = it.publisher_id
         WHERE owner.public_id = $1
    """,
}


async def statistics(pool: Pool, question: StatsQuestion, *, today: date, rows_max: int) -> list[StatsRow]:
    """Read one row for each key that has counts, in key order."""
    # In one snapshot: a day that is rolled up now must be read from exactly one source.
    async with read_snapshot(pool) as connection:
        where = await _sources(connection, question, today)
        filters = Filters()
        read = _read(where, filters, has_spend=not question.is_of_readers)
        _narrow(filters, question)
        await _narrow_to_account(connection, filters, question)
        chosen = [COLUMNS[grouping] for grouping in question.groupings]
        statement = STATISTICS.format(
            names=", ".join(name for _, name, _ in chosen),
            columns=", ".join(column for column, _, _ in chosen),
            joins=" ".join(join for _, _, join in chosen),
            sources=read,
            filters=filters.sql,
            rows_max=filters.bind(rows_max),
        )
        rows = await connection.fetch(statement, *filters.values)
    return [_row(row, len(chosen), question) for row in rows]


async def _sources(connection: Connection, question: StatsQuestion, today: date) -> Sources:
    whole = SourceSpan(question.first, question.last)
    if question.needs_live_counts:
        return sources(whole, [])
    rows = await connection.fetch(ROLLED_UP_DAYS, question.first, question.last, today)
    return sources(whole, [row["day"] for row in rows])


def _read(where: Sources, filters: Filters, *, has_spend: bool) -> str:
    """Build the FROM part; the filters bind the values."""
    parts = [
        statement.format(spans=" OR ".join(bounds(filters, span) for span in spans))
        for statement, spans, bounds in (
            (ROLLED_UP, where.rolled_up, _in_days),
            (LIVE, where.live, _in_hours),
            (SPEND, where.live if has_spend else (), _in_hours),
        )
        if spans
    ]
    return " UNION ALL ".join(parts)


def _in_days(filters: Filters, span: SourceSpan) -> str:
    return f"stat_date BETWEEN {filters.bind(span.first)} AND {filters.bind(span.last)}"


def _in_hours(filters: Filters, span: SourceSpan) -> str:
    # From the first hour to the last, not to the first of the next day: the last possible day has none.
    first = filters.bind(datetime.combine(span.first, time(0), UTC))
    last = filters.bind(datetime.combine(span.last, time(23), UTC))
    return f"hour BETWEEN {first} AND {last}"


def _narrow(filters: Filters, question: StatsQuestion) -> None:
    filters.add_given("it.banner_id = (SELECT id FROM banners WHERE public_id = {})", question.banner_id)
    filters.add_given(
        "it.placement_id = (SELECT id FROM placements_ever WHERE public_id = {})", question.placement_id
    )
    filters.add_given(
        "it.campaign_id = (SELECT id FROM campaigns WHERE public_id = {})", question.campaign_id
    )
    filters.add_given("coalesce(it.country_code, '') = {}", question.country)
    filters.add_given("coalesce(it.device_type, '') = {}", question.device)


async def _narrow_to_account(connection: Connection, filters: Filters, question: StatsQuestion) -> None:
    async def owned(table: str, owner_id: UUID) -> list[int]:
        return [row["id"] for row in await connection.fetch(OWNED[table], owner_id)]

    if (owner_id := question.advertiser_id) is not None:
        filters.add(OF_ADVERTISER, await owned("campaigns", owner_id), await owned("banners", owner_id))
    if (owner_id := question.publisher_id) is not None:
        filters.add(OF_PUBLISHER, await owned("placements", owner_id))


def _row(row: Record, key_length: int, question: StatsQuestion) -> StatsRow:
    *figures, conversions, value, free, spend = tuple(row)[key_length:]
    counts = Counts(*figures)
    if not question.is_of_readers:  # A charge names no visitor.
        counts = replace(counts, over_budget_clicks=free, spend=Micros(spend))
    else:
        counts = replace(counts, over_budget_clicks=None, spend=None)
    # What visitors bought is the advertiser's own business.
    is_of_publisher = question.publisher_id is not None
    counts = replace(
        counts,
        conversions=None if is_of_publisher else conversions,
        conversion_value=None if is_of_publisher else Micros(int(value)),
    )
    return StatsRow(
        key=tuple(row)[:key_length], counts=counts.with_unbound() if question.counts_unbound else counts
    )


# Campaigns of the house itself bring no income.
REVENUE: Final = """
    SELECT hour, sum(spent_micros)::bigint AS micros
      FROM spend_hours AS spent JOIN campaigns AS campaign ON campaign.id = spent.campaign_id
     WHERE hour >= $1 AND campaign.advertiser_id IS NOT NULL
     GROUP BY hour
"""


async def revenue(connection: Connection, *, since: datetime, step: timedelta) -> dict[datetime, Micros]:
    """Sum charges to advertisers by hour or day."""
    seconds = int(step.total_seconds())
    sums: dict[datetime, Micros] = {}
    for hour, micros in await connection.fetch(REVENUE, since):
        begin = datetime.fromtimestamp(int(hour.timestamp()) // seconds * seconds, since.tzinfo)
        sums[begin] = Micros(sums.get(begin, 0) + micros)
    return sums
