"""Budgets and spend, over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import date
from typing import Annotated, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.types import Receive, Scope, Send

from adloom.budgets.status_store import load_advertiser_status, load_campaign_status
from adloom.catalog.advertiser.resource import advertisers
from adloom.catalog.campaign.resource import campaigns
from adloom.core.money import Micros, paisa_from_micros
from adloom.resource.api import AdvertiserReads
from adloom.runtime.http.api.dependencies import Database, GuardedRoute, Now, problems
from adloom.runtime.http.api.shapes import Answer
from adloom.runtime.postgres import Connection, Pool
from adloom.stats.spend.event import LISTENING, SpendEvent
from adloom.stats.spend.feed import SpendFeed
from adloom.stats.spend.listener import LISTENING_SECONDS_MAX, Listener

EVENT_STREAM: Final = "text/event-stream"
# For a client that does not read: the feed drops it at once, its connection ends after this.
CUT_AFTER_SECONDS: Final = LISTENING_SECONDS_MAX + 60.0

# As OpenAPI 3.2 describes server-sent events, and the framework its own.
EVENTS_DESCRIBED: Final = {
    "itemSchema": {
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"type": "string", "enum": ["listening", "spend"]},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": msgspec.json.schema_components([SpendEvent])[1]["SpendEvent"],
            },
        },
    },
    "example": LISTENING.decode(),
}
HELD: Final = "Promised to readers whose impression, or click, may still come."
NO_LIMIT: Final = "Null is no limit."


class AdvertiserSpendAnswer(Answer):
    """An advertiser's day, over all its campaigns. Amounts are rounded down."""

    day: Annotated[date, Field(description="Today, in the advertiser's zone.")]
    daily_budget_paisa: Annotated[int | None, Field(description=NO_LIMIT)]
    spent_paisa: int
    held_paisa: Annotated[int, Field(description=HELD)]
    remaining_paisa: Annotated[int | None, Field(description="Neither spent nor held today. " + NO_LIMIT)]


class CampaignBudgetAnswer(Answer):
    """A campaign's budgets. Amounts are rounded down."""

    day: Annotated[
        date, Field(description="Today, in its advertiser's zone, or in its own where it has none.")
    ]
    daily_budget_paisa: Annotated[int | None, Field(description=NO_LIMIT)]
    total_budget_paisa: Annotated[int | None, Field(description=NO_LIMIT)]
    spent_today_paisa: int
    spent_total_paisa: int
    held_paisa: Annotated[int, Field(description=HELD)]
    leased_paisa: Annotated[int, Field(description="Granted to delivery processes, and not offered yet.")]
    remaining_today_paisa: Annotated[
        int | None,
        Field(description="Neither spent nor held, of the budget that leaves less. " + NO_LIMIT),
    ]
    pace: Annotated[
        float | None,
        Field(description="Spent, by what may be by now; 1 is on the line. Null without one: `Accelerated`."),
    ]
    projected_paisa: Annotated[
        int, Field(description="Spent at the end of the day, if it goes on like this.")
    ]


class EventStream(StreamingResponse):
    """The body of a spend stream."""

    media_type = EVENT_STREAM

    def __init__(self, feed: SpendFeed, listener: Listener, status_code: int = 200) -> None:
        # The framework reads the status off this signature. A proxy that buffers whole answers
        # would never pass this one on.
        super().__init__(listener.updates(), status_code, headers={"X-Accel-Buffering": "no"})
        self._feed = feed
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send updates until the client or the server ends the stream."""
        with contextlib.suppress(TimeoutError), self._feed.listen(self._listener):
            async with asyncio.timeout(CUT_AFTER_SECONDS):
                await super().__call__(scope, receive, send)


def _feed(request: Request) -> SpendFeed:
    return request.app.state.spend_feed


router = APIRouter(
    prefix="/admin",
    tags=["budgets"],
    route_class=GuardedRoute,
    responses=problems(400, 401, 403, 404, 503),
)


@router.get("/advertisers/{advertiser_id}/spend")
async def advertiser_spend(
    advertiser_id: UUID, scope: AdvertiserReads, pool: Database, now: Now
) -> AdvertiserSpendAnswer:
    """Return what an advertiser has spent today."""
    async with _one_moment(pool) as connection:
        advertiser = await advertisers.table.find(connection, scope, advertiser_id)
        found = await load_advertiser_status(connection, advertiser.id, now=now)
    return AdvertiserSpendAnswer(
        day=found.day,
        daily_budget_paisa=_paisa(found.daily_budget),
        spent_paisa=paisa_from_micros(found.spent),
        held_paisa=paisa_from_micros(found.held),
        remaining_paisa=_paisa(found.remaining),
    )


@router.get("/campaigns/{campaign_id}/budget")
async def campaign_budget(
    campaign_id: UUID, scope: AdvertiserReads, pool: Database, now: Now
) -> CampaignBudgetAnswer:
    """Return the state of a campaign's budgets."""
    async with _one_moment(pool) as connection:
        campaign = await campaigns.table.find(connection, scope, campaign_id)
        found = await load_campaign_status(connection, campaign.id, now=now)
    return CampaignBudgetAnswer(
        day=found.day,
        daily_budget_paisa=_paisa(found.daily_budget),
        total_budget_paisa=_paisa(found.total_budget),
        spent_today_paisa=paisa_from_micros(found.spent_today),
        spent_total_paisa=paisa_from_micros(found.spent_total),
        held_paisa=paisa_from_micros(found.held),
        leased_paisa=paisa_from_micros(found.leased),
        remaining_today_paisa=_paisa(found.remaining_today),
        pace=found.pace,
        projected_paisa=paisa_from_micros(found.projected),
    )


@router.get(
    "/spend/stream",
    response_class=EventStream,
    responses={200: {"description": "Server-sent events.", "content": {EVENT_STREAM: EVENTS_DESCRIBED}}},
)
async def spend_stream(scope: AdvertiserReads, feed: Annotated[SpendFeed, Depends(_feed)]) -> EventStream:
    """Stream what campaigns spend, as server-sent events; an advertiser sees its own.

    `listening` means that from here on nothing is left out: read now what you want to follow. It is sent again
    after updates may have been lost. `spend` has the state of a campaign; of several at once only the last is sent.
    A comment every 15 seconds shows that the stream is alive. It ends after 15 minutes, when the server stops, or
    when too much waits for a slow client; then connect again.
    """
    feed.check_room()
    return EventStream(feed, Listener(scope.account_id))


@contextlib.asynccontextmanager
async def _one_moment(pool: Pool) -> AsyncGenerator[Connection]:
    """Read everything inside the block in one snapshot."""
    async with (
        pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        yield connection


def _paisa(amount: Micros | None) -> int | None:
    return None if amount is None else paisa_from_micros(amount)
