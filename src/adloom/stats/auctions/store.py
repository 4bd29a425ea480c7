"""SQL of recorded auctions, over the days that are kept."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.resource.access import Scope
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection
from adloom.stats.auctions.hours import hours_of, is_by_hour
from adloom.stats.auctions.model import (
    Auction,
    AuctionBid,
    AuctionGrouping,
    AuctionNotFoundError,
    AuctionQuestion,
    Part,
    Statistics,
    WholeAuction,
)

PARTS_MAX: Final = 1_000  # More hours or campaigns than a person looks through; the newest, and the busiest.

_SHORT: Final = """
    it.id, it.user_id, it.placement_type, it.placement_id, it.auction_time, it.scoring, it.bid_count,
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


async def own_campaigns(connection: Connection, scope: Scope) -> list[UUID] | None:
    """Return the campaigns of an advertiser; None where all auctions may be seen."""
    if scope.account_id is None:
        return None
    return [row["public_id"] for row in await connection.fetch(OWN_CAMPAIGNS, scope.account_id)]


async def page(connection: Connection, question: AuctionQuestion, request: PageRequest) -> Listed[Auction]:
    total_count = (await statistics(connection, question)).auctions if is_by_hour(question) else None
    rows = await fetch_page(connection, AUCTIONS, _where(question), request, total_count=total_count)
    return Listed(
        items=[msgspec.convert(dict(row), Auction) for row in rows.items], total_count=rows.total_count
    )


async def find(connection: Connection, auction_id: UUID, own: Sequence[UUID] | None) -> WholeAuction:
    """Read an auction with its bids, if one of the campaigns took part in it."""
    row = await connection.fetchrow(ONE, auction_id, own)
    if row is None:
        raise AuctionNotFoundError(
            "There is no auction with this id. It is there some seconds after it was held, and for some days."
        )
    fields = dict(row)
    fields["bids"] = msgspec.convert(fields["bids"] or [], list[AuctionBid])
    return msgspec.convert(fields, WholeAuction)


async def statistics(connection: Connection, question: AuctionQuestion) -> Statistics:
    if is_by_hour(question):
        hours, values = hours_of(question)
        statement = f"SELECT {_SUMS_OF_HOURS} FROM ({hours}) AS it"  # noqa: S608 - our own names
    else:
        filters = _where(question)
        sums, values = _sums(filters, question), filters.values
        statement = f"SELECT {sums} FROM auction.auctions AS it WHERE {filters.sql}"  # noqa: S608 - our own names
    row = await connection.fetchrow(statement, *values)
    assert row is not None
    return msgspec.convert(dict(row), Statistics)


async def breakdown(connection: Connection, question: AuctionQuestion, by: AuctionGrouping) -> list[Part]:
    """Sum up auctions by group; only the first groups where there are too many."""
    statement, values = _grouped_query(question, by)
    return [_part(dict(row)) for row in await connection.fetch(statement, *values)]


def _grouped_query(question: AuctionQuestion, by: AuctionGrouping) -> tuple[str, list[object]]:
    filters = _where(question)
    if by is AuctionGrouping.CAMPAIGN:
        own = filters.bind(question.campaign_ids)
        return BY_CAMPAIGN.format(filters=filters.sql, own=own, limit=PARTS_MAX), filters.values
    behind = f" GROUP BY 1 ORDER BY {_ORDERS[by]} LIMIT {PARTS_MAX}"
    if is_by_hour(question):
        hours, values = hours_of(question)
        return f"SELECT {_KEYS_OF_HOURS[by]} AS key, {_SUMS_OF_HOURS} FROM ({hours}) AS it{behind}", values  # noqa: S608 - our own names
    sums = _sums(filters, question)
    statement = f"SELECT {_KEYS[by]} AS key, {sums} FROM auction.auctions AS it WHERE {filters.sql}{behind}"  # noqa: S608 - our own names
    return statement, filters.values


def _where(question: AuctionQuestion) -> Filters:
    filters = Filters()
    filters.add_given("it.user_id = {}", question.user_id)
    filters.add_given("it.placement_type = {}", question.placement_type)
    filters.add_given("it.auction_time >= {}", question.since)
    filters.add_given("it.auction_time < {}", question.before)
    filters.add_given("it.campaign_ids && {}::uuid[]", question.campaign_ids)
    return filters


def _sums(filters: Filters, question: AuctionQuestion) -> str:
    if question.campaign_ids is None:
        return _SUMS
    return _OWN_SUMS.format(own=filters.bind(question.campaign_ids) + "::uuid[]")


def _part(row: "dict[str, object]") -> Part:
    key = row.pop("key")
    assert isinstance(key, str | UUID | datetime)
    return Part(key=key, statistics=msgspec.convert(row, Statistics))
