"""Recorded auctions over HTTP, with their bids and statistics."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

import msgspec
from fastapi import Query
from pydantic import Field

from adloom.core.caller import Role
from adloom.core.errors import ForbiddenError, make_field_error
from adloom.core.ids import derive_auction_id
from adloom.pages.url import normalize_url
from adloom.resource.api import AdvertiserReads
from adloom.resource.forms import build_answer
from adloom.resource.names import read_names
from adloom.resource.shapes import MomentOrDay, MomentOrEndOfDay
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, make_router
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Text, Text100, Text255
from adloom.runtime.listing import Listed
from adloom.serving.contextual.batch_question import SLOTS_MAX
from adloom.stats.auctions import store
from adloom.stats.auctions.model import (
    Auction,
    AuctionBid,
    AuctionGrouping,
    AuctionOutcome,
    AuctionQuestion,
    Part,
    Statistics,
    WholeAuction,
    hide_other_bids,
    hide_others,
    remove_user,
    with_bids_to_win,
    with_names,
)


class AuctionFilter(Body):
    """Which auctions: from a moment or UTC day on, and before a moment or to the end of a day."""

    placement_type: Text100 | None = None
    placement: Annotated[
        Text100 | None, Field(description="A slug; where it was won, or what was named.")
    ] = None
    campaign_id: Annotated[
        UUID | None, Field(description="Those that it took part in; wins and bids are then its own.")
    ] = None
    outcome: Annotated[
        AuctionOutcome | None,
        Field(
            description="`won`: with a winner, or won by `campaignId`; for an account, by one of its campaigns."
        ),
    ] = None
    page_url: Annotated[
        Text | None, Field(max_length=8_192, description="Of contextual slots: those held for this page.")
    ] = None
    request_id: Annotated[
        UUID | None,
        Field(description="Of contextual slots: those of one answer, which has this `requestId`."),
    ] = None
    start_date: MomentOrDay | None = None
    end_date: MomentOrEndOfDay | None = None


class AuctionListQuery(ListQuery, AuctionFilter):
    """Which auctions are listed."""

    SORTABLE: ClassVar = frozenset({"auction_time"})

    sort: Text255 = "-auctionTime"
    user_id: UUID | None = None


class BreakdownQuery(AuctionFilter):
    """Which auctions to sum up, and by what."""

    group_by: AuctionGrouping


AuctionAnswer: Final = build_answer(
    "AuctionAnswer", "An auction; prices are per thousand impressions.", Auction
)
BidAnswer: Final = build_answer(
    "BidAnswer",
    "A bid; an account sees only the outcome of other accounts' bids.",
    AuctionBid,
    outcome=(str, Field(json_schema_extra={"enum": ["won", "lost", "removed"]})),
)
WholeAuctionAnswer: Final = build_answer(
    "WholeAuctionAnswer",
    "An auction with its bids: first those that took part, highest first, then those that were removed.",
    WholeAuction,
    bids=(Sequence[BidAnswer], Field(description="At most 256; `bidCount` tells how many took part.")),
)


class StatisticsAnswer(Answer):
    """Totals of auctions; for an account, of those it took part in, with its own wins and bids."""

    total_auctions: int
    average_win_rate: Annotated[float, Field(description="Of a hundred auctions, how many were won.")]
    average_ecpm: Annotated[float, Field(serialization_alias="averageeCPM", description="Of those who won.")]
    total_bids_placed: int


class PartAnswer(StatisticsAnswer):
    """One line of a breakdown; it has the field that it is grouped by."""

    placement_type: str | None = None
    campaign_id: UUID | None = None
    campaign_name: str | None = None
    hour: datetime | None = None


class BreakdownAnswer(Answer):
    """A breakdown of at most 1,000 lines; a campaign's auctions are those it took part in."""

    items: Sequence[PartAnswer]


router = make_router("/api/v1/admin/auctions", "auctions", 400, 401, 403, 404, 503)


@router.get("", response_model=Page[AuctionAnswer])
async def list_auctions(
    query: Annotated[AuctionListQuery, Query()], scope: AdvertiserReads, caller: CurrentCaller, pool: Database
) -> Page[Any]:
    """List auctions, newest first; an account sees those that one of its campaigns took part in.

    Only an admin sees for which user they were.
    """
    if caller.role is not Role.ADMIN and query.user_id is not None:
        raise ForbiddenError("Whose auctions were held is for admins alone to know. Leave userId out.")
    async with pool.acquire() as connection:
        own = await store.read_own_campaigns(connection, scope)
        question = _build_question(query, own, user_id=query.user_id)
        listed = await store.read_page(connection, question, query.page_request)
    if own is not None:
        mine = frozenset(own)
        listed = Listed(
            items=[hide_others(one, mine) for one in listed.items], total_count=listed.total_count
        )
    elif caller.role is not Role.ADMIN:
        listed = Listed(items=[remove_user(one) for one in listed.items], total_count=listed.total_count)
    async with pool.acquire() as connection:
        names = await read_names(connection, (one for item in listed.items for one in item.list_ids()))
    listed = Listed(items=[with_names(one, names) for one in listed.items], total_count=listed.total_count)
    return build_page(AuctionAnswer, listed, query)


@router.get("/statistics")
async def auction_statistics(
    query: Annotated[AuctionFilter, Query()], scope: AdvertiserReads, pool: Database
) -> StatisticsAnswer:
    """Sum up the auctions that are kept, or some of them."""
    async with pool.acquire() as connection:
        question = _build_question(query, await store.read_own_campaigns(connection, scope))
        return StatisticsAnswer(**_answer(await store.read_statistics(connection, question)))


@router.get("/statistics/breakdown", response_model_exclude_none=True)
async def auction_breakdown(
    query: Annotated[BreakdownQuery, Query()], scope: AdvertiserReads, pool: Database
) -> BreakdownAnswer:
    """Sum up auctions by type of placement, by campaign or by hour."""
    async with pool.acquire() as connection:
        question = _build_question(query, await store.read_own_campaigns(connection, scope))
        parts = await store.read_breakdown(connection, question, query.group_by)
        names = await read_names(connection, (part.key for part in parts if isinstance(part.key, UUID)))
    return BreakdownAnswer(items=[_build_part(part, query.group_by, names) for part in parts])


@router.get("/{auction_id}", response_model=WholeAuctionAnswer)
async def read_auction(
    auction_id: UUID, scope: AdvertiserReads, caller: CurrentCaller, pool: Database
) -> Answer:
    """Read an auction with its bids; it appears within seconds of its serve."""
    async with pool.acquire() as connection:
        own = await store.read_own_campaigns(connection, scope)
        auction = with_bids_to_win(await store.find(connection, auction_id, own), is_exact=own is None)
    if own is not None:
        auction = hide_other_bids(auction, frozenset(own))
    elif caller.role is not Role.ADMIN:
        auction = msgspec.structs.replace(remove_user(auction), context=None)
    async with pool.acquire() as connection:
        names = await read_names(connection, auction.list_ids())
    return WholeAuctionAnswer.model_validate(with_names(auction, names))


def _build_question(
    query: AuctionFilter, own: Sequence[UUID] | None, *, user_id: UUID | None = None
) -> AuctionQuestion:
    if query.start_date and query.end_date and query.end_date <= query.start_date:
        raise make_field_error("endDate", "must be after startDate")
    return AuctionQuestion(
        user_id=user_id,
        placement_type=query.placement_type,
        since=query.start_date,
        before=query.end_date,
        campaign_ids=_narrow(own, query.campaign_id),
        outcome=query.outcome,
        placement=query.placement,
        page_url=None if query.page_url is None else _normalize(query.page_url),
        auction_ids=None if query.request_id is None else _list_auction_ids(query.request_id),
    )


def _narrow(own: Sequence[UUID] | None, campaign_id: UUID | None) -> Sequence[UUID] | None:
    """Return the campaigns that are asked about; an account learns nothing of another's."""
    if campaign_id is None:
        return own
    return [campaign_id] if own is None or campaign_id in own else []


def _normalize(page_url: str) -> str:
    url = normalize_url(page_url)
    if url is None:
        raise make_field_error("pageUrl", "must be an http or https address of a page")
    return url.text


def _list_auction_ids(request_id: UUID) -> list[UUID]:
    return [derive_auction_id(request_id.bytes, slot) for slot in range(SLOTS_MAX)]


def _answer(found: Statistics) -> dict[str, Any]:
    return {
        "total_auctions": found.auctions,
        "average_win_rate": found.win_rate,
        "average_ecpm": found.average_ecpm,
        "total_bids_placed": found.bids,
    }


def _build_part(part: Part, by: AuctionGrouping, names: Mapping[UUID, str]) -> PartAnswer:
    field = {
        AuctionGrouping.PLACEMENT_TYPE: "placement_type",
        AuctionGrouping.CAMPAIGN: "campaign_id",
        AuctionGrouping.HOUR: "hour",
    }
    name = names.get(part.key) if isinstance(part.key, UUID) else None
    return PartAnswer.model_validate({field[by]: part.key, "campaign_name": name, **_answer(part.statistics)})
