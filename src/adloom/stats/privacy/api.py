"""What is stored about a visitor, over HTTP: export and erasure, for admins only."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Final
from uuid import UUID

from fastapi import Depends, Query, Request
from pydantic import Field

from adloom.core.caller import Role
from adloom.core.errors import ForbiddenError
from adloom.events.auction_log.store import AUCTIONS
from adloom.events.erasure import StreamSearch
from adloom.events.frequency.counts import Counts, FrequencyCounters
from adloom.events.frequency.windows import Window
from adloom.events.tables.erasure_store import erase_user, note_entries
from adloom.events.tables.store import EVENT_TABLES
from adloom.resource.api import CurrentCatalog
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import CurrentCaller, Now, make_router
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.listing import PAGE_MAX
from adloom.stats.privacy import store
from adloom.stats.privacy.store import EVENTS_A_PAGE, make_erasure_entry


class KeptQuery(Body):
    """Which page of what is kept."""

    page: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 1


KeptEventAnswer: Final = build_answer(
    "KeptEventAnswer",
    "An event with everything that is stored of it; an impression has no destination, a click no referrer. A"
    " conversion is that of one of the visitor's clicks; its `correlationId` is a digest.",
    store.KeptEvent,
)
KeptAuctionAnswer: Final = build_answer(
    "KeptAuctionAnswer", "An auction for the visitor, with the context that was known.", store.KeptAuction
)


class FrequencyAnswer(Answer):
    """How often the visitor was shown a banner in the current hour, day, week or month, or ever."""

    window: Window
    banner_id: UUID
    impressions: int


class KeptAnswer(Answer):
    """What is stored about a visitor: events and auctions, oldest first, in pages; and frequency counts."""

    user_id: UUID
    exported_at: datetime
    kept_since: Annotated[date | None, Field(description="The first day of which events are kept.")]
    erased_at: Annotated[
        datetime | None, Field(description="When the visitor was erased last; what is here came later.")
    ]
    frequency: Sequence[FrequencyAnswer]
    items: Sequence[KeptEventAnswer]  # pyright: ignore[reportInvalidTypeForm] - made above
    total_count: int
    auctions: Sequence[KeptAuctionAnswer]  # pyright: ignore[reportInvalidTypeForm] - likewise
    auction_count: int
    page: int
    page_size: int
    total_pages: int


class ErasedAnswer(Answer):
    """How many events and auctions named the visitor, and no longer do; conversions lost their click's visitor."""

    erased_at: datetime
    impressions: int
    clicks: int
    conversions: int
    auctions: int


async def _require_admin_alone(caller: CurrentCaller) -> None:
    if caller.role is not Role.ADMIN:
        raise ForbiddenError("Only an admin may see or erase what is kept of a visitor.")


async def _get_frequency(request: Request) -> FrequencyCounters:
    return FrequencyCounters(request.app.state.valkey)


async def _get_streams(request: Request) -> StreamSearch:
    return StreamSearch(request.app.state.valkey)


Streams = Annotated[StreamSearch, Depends(_get_streams)]
Frequency = Annotated[FrequencyCounters, Depends(_get_frequency)]

router = make_router("/admin/privacy/users", "privacy", 400, 401, 403, 503, check=_require_admin_alone)


@router.get("/{user_id}")
async def export_reader(
    user_id: UUID,
    query: Annotated[KeptQuery, Query()],
    catalog: CurrentCatalog,
    frequency: Frequency,
    now: Now,
) -> KeptAnswer:
    """Return everything that is stored about the visitor with this `userId`, 5,000 events and auctions a page."""
    async with catalog.read() as connection:
        kept = await store.find_kept(connection, user_id, page=query.page)
    return KeptAnswer(
        user_id=user_id,
        exported_at=now,
        kept_since=kept.kept_since,
        erased_at=kept.erased_at,
        frequency=_answer(await frequency.read_user(user_id, now)),
        items=[KeptEventAnswer.model_validate(event) for event in kept.events],
        total_count=kept.total_count,
        auctions=[KeptAuctionAnswer.model_validate(auction) for auction in kept.auctions],
        auction_count=kept.auction_count,
        page=query.page,
        page_size=EVENTS_A_PAGE,
        total_pages=-(-max(kept.total_count, kept.auction_count) // EVENTS_A_PAGE),
    )


@router.delete("/{user_id}")
async def erase_reader(
    user_id: UUID, catalog: CurrentCatalog, frequency: Frequency, streams: Streams, now: Now
) -> ErasedAnswer:
    """Remove the visitor from events, auctions, frequency counts and topics; counts stay.

    What is still in the log or in a spool is counted without the visitor, and removed there within seconds of that.
    """
    async with catalog.write() as write:
        erased = await erase_user(write.connection, user_id, projections=[EVENT_TABLES, AUCTIONS], now=now)
        write.entries.append(make_erasure_entry(user_id, erased))
    # Only now: a projection that counts asks the tables, and could still find the visitor there before.
    await frequency.erase_user(user_id, now)
    await streams.clean_topics(user_id)
    await streams.clean_letters(user_id)
    async with catalog.read() as connection:
        await note_entries(connection, await streams.find_in_log(user_id))
    return ErasedAnswer.model_validate(erased)


def _answer(counts: Counts) -> list[FrequencyAnswer]:
    return [
        FrequencyAnswer(window=window, banner_id=banner_id, impressions=impressions)
        for window, banners in counts.items()
        for banner_id, impressions in sorted(banners.items())
    ]
