"""SQL of recorded auctions, over the days that are kept; whole hours come from hourly sums, only the rest is counted one by one."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.errors import NotFoundError
from adloom.resource.access import Scope
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection
from adloom.stats.auctions.model import (
    Auction,
    AuctionBid,
    AuctionGrouping,
    AuctionOutcome,
    AuctionQuestion,
    Part,
    Statistics,
    WholeAuction,
)

HOUR: Final = timedelta(hours=1)

_WHOLE: Final = """
    SELECT it.hour, it.placement_type, it.auctions, it.wins, it.ecpm_sum, it.bids
      FROM auction.hours AS it WHERE {filters}
"""
# Covered by the index on the time, which has all of these columns.
_PARTIAL: Final = """
    SELECT date_bin('1 hour', it.auction_time, 'epoch') AS hour, it.placement_type, count(*) AS auctions,
           count(it.winning_campaign_id) AS wins, coalesce(sum(it.winning_ecpm), 0) AS ecpm_sum,
           sum(it.bid_count)::bigint AS bids
      FROM auction.auctions AS it WHERE {filters}
     GROUP BY 1, 2
"""


def is_by_hour(question: AuctionQuestion) -> bool:
    """Whether hourly sums can answer: they know neither the visitor, nor who took part, nor where."""
    return all(
        one is None
        for one in (
            question.user_id,
            question.campaign_ids,
            question.outcome,
            question.placement,
            question.page_url,
            question.auction_ids,
        )
    )


def find_hours(question: AuctionQuestion) -> tuple[str, list[object]]:
    """Build the query for the totals, as rows by hour and type."""
    assert is_by_hour(question), "what hours do not know is not asked of them"
    filters = Filters()
    parts = [
        _WHOLE.format(filters=_write_between(filters, "it.hour", question, *_find_whole_hours(question)))
    ]
    parts += [
        _PARTIAL.format(filters=_write_between(filters, "it.auction_time", question, since, before))
        for since, before in _list_rests(question)
    ]
    return " UNION ALL ".join(parts), filters.values


def _find_whole_hours(question: AuctionQuestion) -> tuple[datetime | None, datetime | None]:
    since = None if question.since is None else _floor_to_hour(question.since + HOUR - timedelta.resolution)
    return since, None if question.before is None else _floor_to_hour(question.before)


def _list_rests(question: AuctionQuestion) -> list[tuple[datetime | None, datetime | None]]:
    """Return the pieces at both ends that are not whole hours."""
    first, last = _find_whole_hours(question)
    if first is not None and last is not None and first > last:
        return [(question.since, question.before)]  # Both ends are in the same hour.
    rests: list[tuple[datetime | None, datetime | None]] = []
    if question.since != first:
        rests.append((question.since, first))
    if question.before != last:
        rests.append((last, question.before))
    return rests


def _floor_to_hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _write_between(
    filters: Filters, column: str, question: AuctionQuestion, since: datetime | None, before: datetime | None
) -> str:
    conditions = [
        f"{condition} {filters.bind(value)}"
        for condition, value in (
            (f"{column} >=", since),
            (f"{column} <", before),
            ("it.placement_type =", question.placement_type),
        )
        if value is not None
    ]
    return " AND ".join(conditions) or "true"


PARTS_MAX: Final = 1_000  # More hours or campaigns than a person looks through; the newest, and the busiest.

_WON: Final = "it.winning_campaign_id IS NOT NULL"
_SHORT: Final = """
    it.id, it.user_id, it.placement_type, it.placement_id, it.page_url, it.auction_time, it.scoring, it.bid_count,
    it.winning_ad_id, it.winning_campaign_id, it.final_price, it.winning_ecpm, it.charge
"""
AUCTIONS: Final = RowSource(columns=_SHORT, tables="auction.auctions AS it", tiebreak="it.id")
ONE: Final = f"""
    SELECT {_SHORT}, it.scoring_version, it.floor_cpm, it.context, it.bids, it.removed
      FROM auction.auctions AS it
     WHERE it.id = $1 AND ($2::uuid[] IS NULL OR it.campaign_ids && $2)
"""  # noqa: S608 - our own names
# Campaigns never change owners; deleted ones have taken part all the same.
OWN_CAMPAIGNS: Final = """
    SELECT campaign.public_id FROM campaigns AS campaign
      JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
     WHERE owner.public_id = $1
"""
_SUMS: Final = """
    count(*) AS auctions, count(it.winning_campaign_id) AS wins,
    coalesce(sum(it.winning_ecpm), 0) AS ecpm_sum, coalesce(sum(it.bid_count), 0)::bigint AS bids
"""
_SUMS_OF_HOURS: Final = """
    coalesce(sum(it.auctions), 0)::bigint AS auctions, coalesce(sum(it.wins), 0)::bigint AS wins,
    coalesce(sum(it.ecpm_sum), 0) AS ecpm_sum, coalesce(sum(it.bids), 0)::bigint AS bids
"""
# An advertiser's wins are its own, and its bids those of its campaigns.
_OWN_SUMS: Final = """
    count(*) AS auctions, count(*) FILTER (WHERE it.winning_campaign_id = ANY ({own})) AS wins,
    coalesce(sum(it.winning_ecpm) FILTER (WHERE it.winning_campaign_id = ANY ({own})), 0) AS ecpm_sum,
    coalesce(sum((SELECT count(*) FROM unnest(it.campaign_ids) AS bid (campaign_id)
                   WHERE bid.campaign_id = ANY ({own}))), 0)::bigint AS bids
"""
_KEYS: Final = {
    AuctionGrouping.PLACEMENT_TYPE: "it.placement_type",
    # Hours of UTC, whatever the connection's time zone.
    AuctionGrouping.HOUR: "date_bin('1 hour', it.auction_time, 'epoch')",
}
_KEYS_OF_HOURS: Final = {AuctionGrouping.PLACEMENT_TYPE: "it.placement_type", AuctionGrouping.HOUR: "it.hour"}
_ORDERS: Final = {AuctionGrouping.PLACEMENT_TYPE: "auctions DESC, key", AuctionGrouping.HOUR: "key DESC"}
# Per campaign: the auctions it took part in, how many it won, and its bids in them.
BY_CAMPAIGN: Final = """
    SELECT bid.campaign_id AS key, count(*) AS auctions,
           count(*) FILTER (WHERE it.winning_campaign_id = bid.campaign_id) AS wins,
           coalesce(sum(it.winning_ecpm) FILTER (WHERE it.winning_campaign_id = bid.campaign_id), 0) AS ecpm_sum,
           sum(bid.bids)::bigint AS bids
      FROM auction.auctions AS it
     CROSS JOIN LATERAL (
         SELECT campaign_id, count(*) AS bids FROM unnest(it.campaign_ids) AS taking_part (campaign_id) GROUP BY 1
     ) AS bid
     WHERE {filters} AND ({own}::uuid[] IS NULL OR bid.campaign_id = ANY ({own}))
     GROUP BY 1 ORDER BY auctions DESC, key LIMIT {limit}
"""


async def read_own_campaigns(connection: Connection, scope: Scope) -> list[UUID] | None:
    """Return the campaigns of an advertiser; None where all auctions may be seen."""
    if scope.account_id is None:
        return None
    return [row["public_id"] for row in await connection.fetch(OWN_CAMPAIGNS, scope.account_id)]


async def read_page(
    connection: Connection, question: AuctionQuestion, request: PageRequest
) -> Listed[Auction]:
    total_count = (await read_statistics(connection, question)).auctions if is_by_hour(question) else None
    return await fetch_structs(connection, AUCTIONS, _build_filters(question), request, Auction, total_count)


async def find(connection: Connection, auction_id: UUID, own: Sequence[UUID] | None) -> WholeAuction:
    """Read an auction with its bids, if one of the campaigns took part in it."""
    row = await connection.fetchrow(ONE, auction_id, own)
    if row is None:
        raise NotFoundError(
            "There is no auction with this id. It is there some seconds after it was held, and for some days.",
            code="AUCTION_NOT_FOUND",
        )
    fields = dict(row)
    fields["bids"] = msgspec.convert(fields["bids"] or [], list[AuctionBid])
    return msgspec.convert(fields, WholeAuction)


async def read_statistics(connection: Connection, question: AuctionQuestion) -> Statistics:
    if is_by_hour(question):
        hours, values = find_hours(question)
        statement = f"SELECT {_SUMS_OF_HOURS} FROM ({hours}) AS it"  # noqa: S608 - our own names
    else:
        filters = _build_filters(question)
        sums, values = _write_sums(filters, question), filters.values
        statement = f"SELECT {sums} FROM auction.auctions AS it WHERE {filters.sql}"  # noqa: S608 - our own names
    row = await connection.fetchrow(statement, *values)
    assert row is not None
    return msgspec.convert(dict(row), Statistics)


async def read_breakdown(
    connection: Connection, question: AuctionQuestion, by: AuctionGrouping
) -> list[Part]:
    """Sum up auctions by group; only the first groups where there are too many."""
    statement, values = _build_grouped_query(question, by)
    return [_build_part(dict(row)) for row in await connection.fetch(statement, *values)]


def _build_grouped_query(question: AuctionQuestion, by: AuctionGrouping) -> tuple[str, list[object]]:
    filters = _build_filters(question)
    if by is AuctionGrouping.CAMPAIGN:
        own = filters.bind(question.campaign_ids)
        return BY_CAMPAIGN.format(filters=filters.sql, own=own, limit=PARTS_MAX), filters.values
    behind = f" GROUP BY 1 ORDER BY {_ORDERS[by]} LIMIT {PARTS_MAX}"
    if is_by_hour(question):
        hours, values = find_hours(question)
        return f"SELECT {_KEYS_OF_HOURS[by]} AS key, {_SUMS_OF_HOURS} FROM ({hours}) AS it{behind}", values  # noqa: S608 - our own names
    sums = _write_sums(filters, question)
    statement = f"SELECT {_KEYS[by]} AS key, {sums} FROM auction.auctions AS it WHERE {filters.sql}{behind}"  # noqa: S608 - our own names
    return statement, filters.values


def _build_filters(question: AuctionQuestion) -> Filters:
    filters = Filters()
    filters.add_given("it.user_id = {}", question.user_id)
    filters.add_given("it.placement_type = {}", question.placement_type)
    filters.add_given("it.auction_time >= {}", question.since)
    filters.add_given("it.auction_time < {}", question.before)
    filters.add_given("it.campaign_ids && {}::uuid[]", question.campaign_ids)
    filters.add_given(
        "it.placement_id IN (SELECT public_id FROM placements WHERE slug = {})", question.placement
    )
    filters.add_given("it.page_url = {}", question.page_url)
    filters.add_given("it.id = ANY ({}::uuid[])", question.auction_ids)
    if question.outcome is not None:
        is_won = _WON if question.campaign_ids is None else f"{_WON} AND it.winning_campaign_id = ANY ({{}})"
        won = is_won if question.outcome is AuctionOutcome.WON else f"NOT ({is_won})"
        filters.add(won, *([] if question.campaign_ids is None else [question.campaign_ids]))
    return filters


def _write_sums(filters: Filters, question: AuctionQuestion) -> str:
    if question.campaign_ids is None:
        return _SUMS
    return _OWN_SUMS.format(own=filters.bind(question.campaign_ids) + "::uuid[]")


def _build_part(row: "dict[str, object]") -> Part:
    key = row.pop("key")
    assert isinstance(key, str | UUID | datetime)
    return Part(key=key, statistics=msgspec.convert(row, Statistics))
