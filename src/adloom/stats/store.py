"""SQL of event counts and charges: rolled-up days where they are complete, else the live counts."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from adloom.core.money import Micros
from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Connection, Pool, Record, read_snapshot
from adloom.stats.model import UTC_ZONE, Counts, Grouping, StatsQuestion, StatsRow
from adloom.stats.zone_days import find_begin, find_last_moment, list_midnights

# Not by the declarations of nouns: the worker reads names too, and loads none of them.
NAMES: Final = """
    SELECT public_id, title AS name FROM banners WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT public_id, name FROM campaigns WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT public_id, name FROM advertisers WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT public_id, name FROM publishers WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT public_id, name FROM sites WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT ever.public_id, coalesce(placement.label, ever.slug)
      FROM placements_ever AS ever LEFT JOIN placements AS placement ON placement.id = ever.id
     WHERE ever.public_id = ANY ($1::uuid[])
"""
ONE_DAY: Final = timedelta(days=1)


class SourceSpan(NamedTuple):
    """Consecutive days, both included."""

    first: date
    last: date


class Sources(NamedTuple):
    """The days of a range, split by source; each day is in one of them."""

    rolled_up: tuple[SourceSpan, ...] = ()
    live: tuple[SourceSpan, ...] = ()


def find_sources(whole: SourceSpan, rolled_up_days: Iterable[date]) -> Sources:
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
           conversions::bigint, conversion_micros, {spend}
      FROM banner_stats
     WHERE {spans}
"""
LIVE: Final = """
    SELECT {day} AS day, hour, banner_id, placement_id, campaign_id,
           country_code, device_type, impressions, clicks, invalid_impressions, invalid_clicks,
           unbound_impressions, unbound_clicks, 0 AS over_budget_clicks, conversions, conversion_micros,
           0 AS spend_micros
      FROM events.event_counts
     WHERE {spans}
"""
# A charge counts when it is made, which may be an hour or a day after its event.
SPEND: Final = """
    SELECT {day}, hour, banner_id, placement_id, campaign_id,
           NULL, NULL, 0, 0, 0, 0, 0, 0, over_budget_clicks, 0, 0, {spend}
      FROM spend_hours
     WHERE {spans}
"""
# What is given back is taken from the hour of its charge. Where it is to count when it was given back, this puts it back
# there, as far as one of the two is in the period and the other is not.
GIVEN_BACK: Final = """
    SELECT (hour AT TIME ZONE 'UTC')::date, hour, banner_id, placement_id, campaign_id,
           NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, {spend}
      FROM (
          SELECT to_timestamp(entry.second) AS hour, banner.id AS banner_id, placement.id AS placement_id,
                 campaign.id AS campaign_id,
                 CASE WHEN entry.at > {last} THEN entry.amount_micros ELSE -entry.amount_micros END AS spent_micros
            FROM refunds
            JOIN money_entries AS entry ON entry.request_id = refunds.public_id
            JOIN banners AS banner ON banner.public_id = entry.banner_id
            JOIN placements_ever AS placement ON placement.public_id = entry.placement_id
            JOIN campaigns AS campaign ON campaign.public_id = entry.campaign_id
           WHERE (to_timestamp(entry.second) BETWEEN {first} AND {last}) <> (entry.at BETWEEN {first} AND {last})
      ) AS given
"""
FIGURES: Final = (
    "impressions",
    "clicks",
    "invalid_impressions",
    "invalid_clicks",
    "unbound_impressions",
    "unbound_clicks",
    "conversions",
    "conversion_micros",
    "over_budget_clicks",
    "spend_micros",
)
SUMS: Final = ", ".join(
    # Values are what shops say: their sums may be larger than any integer.
    f"sum({figure}){'' if figure == 'conversion_micros' else '::bigint'} AS {figure}"
    for figure in FIGURES
)
# Public ids and owners are looked up for the few sums, not for the many counts.
STATISTICS: Final = """
    SELECT {names}, {sums}
      FROM (
          SELECT {columns}, {sums}
            FROM ({sources}) AS it
           WHERE {filters}
           GROUP BY {columns}
      ) AS counted
      {joins}
     GROUP BY {names}
     ORDER BY {names}
     LIMIT {rows_max}
"""
OF_BANNER: Final = "LEFT JOIN banners ON banners.id = banner_id"
OF_PLACEMENT: Final = "LEFT JOIN placements_ever ON placements_ever.id = placement_id"  # It may be gone.
OF_CAMPAIGN: Final = "LEFT JOIN campaigns ON campaigns.id = campaign_id"
OF_SLOT: Final = "LEFT JOIN placements ON placements.id = placement_id"


class PublisherTerms(NamedTuple):
    """What a publisher gets of charges: its shares, the newest first, and until when it got them of the house too."""

    shares: Sequence[Record]
    house_paid_before: date | None


class GroupingColumns(NamedTuple):
    """The columns of counts that a grouping needs, the name it has outside, and the tables that say it."""

    columns: tuple[str, ...]
    name: str
    joins: tuple[str, ...] = ()


COLUMNS: Final = {
    Grouping.DAY: GroupingColumns(("day",), "day"),
    Grouping.WEEK: GroupingColumns(("day",), "date_trunc('week', day)::date"),
    Grouping.MONTH: GroupingColumns(("day",), "date_trunc('month', day)::date"),
    Grouping.HOUR: GroupingColumns(("hour",), "hour"),
    Grouping.BANNER: GroupingColumns(("banner_id",), "banners.public_id", (OF_BANNER,)),
    Grouping.PLACEMENT: GroupingColumns(("placement_id",), "placements_ever.public_id", (OF_PLACEMENT,)),
    Grouping.CAMPAIGN: GroupingColumns(("campaign_id",), "campaigns.public_id", (OF_CAMPAIGN,)),
    Grouping.ADVERTISER: GroupingColumns(
        ("campaign_id", "banner_id"),
        "advertisers.public_id",
        (
            OF_CAMPAIGN,
            OF_BANNER,
            """LEFT JOIN advertisers ON advertisers.id =
               CASE WHEN campaign_id IS NULL THEN banners.advertiser_id ELSE campaigns.advertiser_id END""",
        ),
    ),
    Grouping.PUBLISHER: GroupingColumns(
        ("placement_id",),
        "publishers.public_id",
        (OF_PLACEMENT, "LEFT JOIN publishers ON publishers.id = placements_ever.publisher_id"),
    ),
    Grouping.SITE: GroupingColumns(
        ("placement_id",),
        "sites.public_id",
        (OF_SLOT, "LEFT JOIN sites ON sites.id = placements.site_id"),
    ),
    Grouping.DELIVERY: GroupingColumns(("placement_id",), "placements.delivery::text", (OF_SLOT,)),
    Grouping.COUNTRY: GroupingColumns(("country_code",), "country_code"),
    Grouping.DEVICE: GroupingColumns(("device_type",), "device_type"),
}
SHARES: Final = """
    SELECT since, percent FROM publisher_shares AS share JOIN publishers AS owner ON owner.id = share.publisher_id
     WHERE owner.public_id = $1 ORDER BY since DESC
"""
HOUSE_PAID_BEFORE: Final = "SELECT house_paid_before FROM publishers WHERE public_id = $1"
# Nobody pays for campaigns of the house. Months of before are left as they were paid.
OF_HOUSE: Final = "campaign_id IN (SELECT id FROM campaigns WHERE advertiser_id IS NULL)"
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


async def read_statistics(
    pool: Pool, question: StatsQuestion, *, today: date, rows_max: int
) -> list[StatsRow]:
    """Read one row for each key that has counts, in key order."""
    # In one snapshot: a day that is rolled up now must be read from exactly one source.
    async with read_snapshot(pool) as connection:
        where = await _read_sources(connection, question, today)
        filters = Filters()
        terms = await _read_terms(connection, question)
        read = _read(where, filters, question, terms)
        _narrow(filters, question)
        await _narrow_to_account(connection, filters, question)
        chosen = [COLUMNS[grouping] for grouping in question.groupings]
        statement = STATISTICS.format(
            names=", ".join(one.name for one in chosen),
            columns=", ".join(dict.fromkeys(column for one in chosen for column in one.columns)),
            joins=" ".join(dict.fromkeys(join for one in chosen for join in one.joins)),
            sums=SUMS,
            sources=read,
            filters=filters.sql,
            rows_max=filters.bind(rows_max),
        )
        rows = await connection.fetch(statement, *filters.values)
    return [_build_row(row, len(chosen), question) for row in rows]


async def _read_sources(connection: Connection, question: StatsQuestion, today: date) -> Sources:
    whole = SourceSpan(question.first, question.last)
    if question.needs_live_counts:
        return find_sources(whole, [])
    rows = await connection.fetch(ROLLED_UP_DAYS, question.first, question.last, today)
    return find_sources(whole, [row["day"] for row in rows])


async def _read_terms(connection: Connection, question: StatsQuestion) -> PublisherTerms | None:
    """Read what a publisher gets of charges; None where the question is of no publisher."""
    if question.publisher_id is None:
        return None
    shares = await connection.fetch(SHARES, question.publisher_id) if question.is_shared else []
    return PublisherTerms(shares, await connection.fetchval(HOUSE_PAID_BEFORE, question.publisher_id))


def _take_share(amount: str, day: str, terms: PublisherTerms | None) -> str:
    """Return the SQL of what a publisher gets; a day before the first share has all of it."""
    if terms is None:
        return f"{amount} AS spend_micros"
    shares = terms.shares
    cases = " ".join(f"WHEN {day} >= DATE '{one['since']}' THEN {one['percent']}" for one in shares)
    # Exact: sums are rounded, and not each hour or day of them.
    share = f"{amount} * CASE {cases} ELSE 100 END / 100.0" if shares else amount
    is_unpaid = f"{OF_HOUSE} AND {day} >= DATE '{terms.house_paid_before or date.min}'"
    return f"CASE WHEN {is_unpaid} THEN 0 ELSE {share} END AS spend_micros"


def _read(where: Sources, filters: Filters, question: StatsQuestion, terms: PublisherTerms | None) -> str:
    """Build the FROM part; the filters bind the values."""
    day = _write_day(filters, question) if where.live else ""

    def filter_hours(filters: Filters, span: SourceSpan) -> str:
        return _filter_hours(filters, span, question.zone)

    parts = [
        statement.format(day=day, spend=spend, spans=" OR ".join(bounds(filters, span) for span in spans))
        for statement, spans, bounds, spend in (
            (ROLLED_UP, where.rolled_up, _filter_days, _take_share("spend_micros", "stat_date", terms)),
            (LIVE, where.live, filter_hours, ""),
            (
                SPEND,
                () if question.is_of_readers else where.live,
                filter_hours,
                _take_share("spent_micros", "(hour AT TIME ZONE 'UTC')::date", terms),
            ),
        )
        if spans
    ]
    if question.counts_refunds_when_made:
        first, last = _bind_bounds(filters, SourceSpan(question.first, question.last), question.zone)
        spend = _take_share("spent_micros", "(hour AT TIME ZONE 'UTC')::date", terms)
        parts.append(GIVEN_BACK.format(spend=spend, first=first, last=last))
    return " UNION ALL ".join(parts)


def _write_day(filters: Filters, question: StatsQuestion) -> str:
    """Return the SQL of the day in which an hour begins."""
    if question.zone.key == UTC_ZONE.key:
        return "(hour AT TIME ZONE 'UTC')::date"
    # By our own midnights: PostgreSQL has other rules of zones than Python's, and takes CET for an hour all year.
    midnights = filters.bind(list_midnights(question.first, question.last, question.zone))
    return f"{filters.bind(question.first)}::date - 1 + width_bucket(hour, {midnights}::timestamptz[])"


def _filter_days(filters: Filters, span: SourceSpan) -> str:
    return f"stat_date BETWEEN {filters.bind(span.first)} AND {filters.bind(span.last)}"


def _filter_hours(filters: Filters, span: SourceSpan, zone: ZoneInfo) -> str:
    first, last = _bind_bounds(filters, span, zone)
    return f"hour BETWEEN {first} AND {last}"


def _bind_bounds(filters: Filters, span: SourceSpan, zone: ZoneInfo) -> tuple[str, str]:
    return filters.bind(find_begin(span.first, zone)), filters.bind(find_last_moment(span.last, zone))


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
    async def read_owned(table: str, owner_id: UUID) -> list[int]:
        return [row["id"] for row in await connection.fetch(OWNED[table], owner_id)]

    if (owner_id := question.advertiser_id) is not None:
        filters.add(
            OF_ADVERTISER, await read_owned("campaigns", owner_id), await read_owned("banners", owner_id)
        )
    if (owner_id := question.publisher_id) is not None:
        filters.add(OF_PUBLISHER, await read_owned("placements", owner_id))


def _build_row(row: Record, key_length: int, question: StatsQuestion) -> StatsRow:
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


async def read_revenue(connection: Connection, *, since: datetime) -> list[tuple[datetime, Micros]]:
    """Sum charges to advertisers by hour."""
    return [(hour, Micros(micros)) for hour, micros in await connection.fetch(REVENUE, since)]


async def read_key_names(connection: Connection, rows: Iterable[StatsRow]) -> dict[UUID, str]:
    """Return the names of the ids in the keys of rows."""
    wanted = sorted({part for row in rows for part in row.key if isinstance(part, UUID)})
    if not wanted:
        return {}
    return {row["public_id"]: row["name"] for row in await connection.fetch(NAMES, wanted)}
