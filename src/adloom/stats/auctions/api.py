"""Recorded auctions over HTTP, with their bids and statistics."""

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, ClassVar
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from adloom.core.errors import FieldProblem, ForbiddenError, ValidationFailedError
from adloom.resource.api import AdvertiserReads
from adloom.runtime.http.api.dependencies import Database, GuardedRoute, problems
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Moment, Text100, Text255
from adloom.runtime.listing import Listed
from adloom.runtime.postgres import Connection
from adloom.stats.auctions import store
from adloom.stats.auctions.model import (
    AuctionGrouping,
    AuctionQuestion,
    Part,
    Statistics,
    WholeAuction,
    hidden,
    whole_hidden,
    with_bids_to_win,
)

AmountShown = Annotated[
    Decimal, PlainSerializer(float), WithJsonSchema({"type": "number"}, mode="serialization")
]
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _day_begins(value: object) -> object:
    return f"{value}T00:00:00Z" if isinstance(value, str) and DAY.fullmatch(value) else value


def _day_ends(value: object) -> object:
    """Return the first moment after a day, so that the whole day is included."""
    if not isinstance(value, str) or not DAY.fullmatch(value):
        return value
    try:
        return f"{date.fromisoformat(value) + timedelta(days=1)}T00:00:00Z"
    except (ValueError, OverflowError):
        return f"{value}T00:00:00Z"


NOT_YOURS = "Null where it is not the caller's own."


class AuctionFilter(Body):
    """Which auctions: from a moment or UTC day on, and before a moment or to the end of a day."""

    placement_type: Text100 | None = None
    start_date: Annotated[Moment | None, BeforeValidator(_day_begins)] = None
    end_date: Annotated[Moment | None, BeforeValidator(_day_ends)] = None


class AuctionListQuery(ListQuery, AuctionFilter):
    """Which auctions are listed."""

    SORTABLE: ClassVar = frozenset({"auction_time"})

    sort: Text255 = "-auctionTime"
    user_id: UUID | None = None


class BreakdownQuery(AuctionFilter):
    """Which auctions to sum up, and by what."""

    group_by: AuctionGrouping


class AuctionAnswer(Answer):
    """An auction; prices are per thousand impressions."""

    id: UUID
    user_id: Annotated[
        UUID | None,
        Field(description="Null where nobody knew the reader or it was erased, and for accounts."),
    ]
    placement_type: str
    placement_id: Annotated[UUID | None, Field(description="Where it was won, or what the request named.")]
    auction_time: datetime
    scoring: str
    bid_count: int
    winning_ad_id: Annotated[UUID | None, Field(description=NOT_YOURS)]
    winning_campaign_id: Annotated[UUID | None, Field(description=NOT_YOURS)]
    final_price: Annotated[AmountShown | None, Field(description=NOT_YOURS)]
    winning_ecpm: Annotated[
        AmountShown | None, Field(serialization_alias="winningeCPM", description=NOT_YOURS)
    ]
    charge: Annotated[
        AmountShown | None,
        Field(description="Per click or per thousand impressions, as the winner bids. " + NOT_YOURS),
    ]


class BidAnswer(Answer):
    """A bid; an account sees only the outcome of other accounts' bids."""

    ad_id: UUID | None
    campaign_id: UUID | None
    bid: Annotated[float | None, Field(description="The campaign's own, by its `bidType`.")]
    bid_type: str | None
    bid_amount: Annotated[
        float | None, Field(description="Per thousand clicks; null also where no click is ever expected.")
    ]
    predicted_ctr: float | None
    quality_score: float | None
    ecpm: float | None
    outcome: Annotated[str, Field(json_schema_extra={"enum": ["won", "lost", "removed"]})]
    removed_by: Annotated[str | None, Field(description="The step that took it out, as `explain` names it.")]
    floor_cpm: Annotated[
        float | None, Field(description="Of its own placement, where it was removed for being under that.")
    ]
    would_have_to_bid: Annotated[
        float | None,
        Field(
            description="An own bid that would have won, of who was outbid or under the floor;"
            " null where nobody knows one."
        ),
    ]


class WholeAuctionAnswer(AuctionAnswer):
    """An auction with its bids: first those that took part, highest first, then those that were removed."""

    scoring_version: int
    floor_cpm: Annotated[
        AmountShown,
        Field(description="Of the placement where it was won, or that the request named; 0 for neither."),
    ]
    context: dict[str, Any] | None
    bids: Annotated[
        Sequence[BidAnswer], Field(description="At most 256; `bidCount` tells how many took part.")
    ]
    removed: Annotated[dict[str, int], Field(description="How many were removed, by the step that did it.")]


class StatisticsAnswer(Answer):
    """Totals of auctions; for an account, of those it took part in, with its own wins and bids."""

    total_auctions: int
    average_win_rate: Annotated[float, Field(description="Of a hundred auctions, how many were won.")]
    averagee_cpm: Annotated[float, Field(serialization_alias="averageeCPM", description="Of those who won.")]
    total_bids_placed: int


class PartAnswer(StatisticsAnswer):
    """One line of a breakdown; it has the field that it is grouped by."""

    placement_type: str | None = None
    campaign_id: UUID | None = None
    hour: datetime | None = None


class BreakdownAnswer(Answer):
    """A breakdown of at most 1,000 lines; a campaign's auctions are those it took part in."""

    items: Sequence[PartAnswer]


router = APIRouter(
    prefix="/api/v1/admin/auctions",
    tags=["auctions"],
    route_class=GuardedRoute,
    responses=problems(400, 401, 403, 404, 503),
)


@router.get("")
async def list_auctions(
    query: Annotated[AuctionListQuery, Query()], scope: AdvertiserReads, pool: Database
) -> Page[AuctionAnswer]:
    """List auctions, newest first; an account sees those that one of its campaigns took part in."""
    if scope.account_id is not None and query.user_id is not None:
        raise ForbiddenError("Whose auctions were held is not for an account to know. Leave userId out.")
    async with pool.acquire() as connection:
        own = await store.own_campaigns(connection, scope)
        question = _question(query, own, user_id=query.user_id)
        listed = await store.page(connection, question, query.page_request)
    if own is not None:
        mine = frozenset(own)
        listed = Listed(items=[hidden(one, mine) for one in listed.items], total_count=listed.total_count)
    return page_of(AuctionAnswer, listed, query)


@router.get("/statistics")
async def auction_statistics(
    query: Annotated[AuctionFilter, Query()], scope: AdvertiserReads, pool: Database
) -> StatisticsAnswer:
    """Sum up the auctions that are kept, or some of them."""
    async with pool.acquire() as connection:
        question = _question(query, await store.own_campaigns(connection, scope))
        return StatisticsAnswer(**_answer(await store.statistics(connection, question)))


@router.get("/statistics/breakdown", response_model_exclude_none=True)
async def auction_breakdown(
    query: Annotated[BreakdownQuery, Query()], scope: AdvertiserReads, pool: Database
) -> BreakdownAnswer:
    """Sum up auctions by type of placement, by campaign or by hour."""
    async with pool.acquire() as connection:
        question = _question(query, await store.own_campaigns(connection, scope))
        parts = await store.breakdown(connection, question, query.group_by)
    return BreakdownAnswer(items=[_part(part, query.group_by) for part in parts])


@router.get("/{auction_id}")
async def read_auction(auction_id: UUID, scope: AdvertiserReads, pool: Database) -> WholeAuctionAnswer:
    """Read an auction with its bids; it appears within seconds of its serve."""
    async with pool.acquire() as connection:
        auction = await _visible(connection, auction_id, await store.own_campaigns(connection, scope))
    return WholeAuctionAnswer.model_validate(auction)


async def _visible(connection: Connection, auction_id: UUID, own: Sequence[UUID] | None) -> WholeAuction:
    auction = with_bids_to_win(await store.find(connection, auction_id, own))
    return auction if own is None else whole_hidden(auction, frozenset(own))


def _question(
    query: AuctionFilter, own: Sequence[UUID] | None, *, user_id: UUID | None = None
) -> AuctionQuestion:
    if query.start_date and query.end_date and query.end_date <= query.start_date:
        problem = FieldProblem("endDate", "must be after startDate")
        raise ValidationFailedError("endDate must be after startDate.", errors=[problem])
    return AuctionQuestion(
        user_id=user_id,
        placement_type=query.placement_type,
        since=query.start_date,
        before=query.end_date,
        campaign_ids=own,
    )


def _answer(found: Statistics) -> dict[str, Any]:
    return {
        "total_auctions": found.auctions,
        "average_win_rate": found.win_rate,
        "averagee_cpm": found.average_ecpm,
        "total_bids_placed": found.bids,
    }


def _part(part: Part, by: AuctionGrouping) -> PartAnswer:
    field = {
        AuctionGrouping.PLACEMENT_TYPE: "placement_type",
        AuctionGrouping.CAMPAIGN: "campaign_id",
        AuctionGrouping.HOUR: "hour",
    }
    return PartAnswer.model_validate({field[by]: part.key, **_answer(part.statistics)})
