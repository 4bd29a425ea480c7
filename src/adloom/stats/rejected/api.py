"""Events that are kept out of billing, over HTTP."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, ClassVar, Final
from uuid import UUID

from fastapi import Query
from pydantic import BeforeValidator, Field

from adloom.core.caller import Caller
from adloom.core.errors import make_field_error
from adloom.events.log.event import UNBILLED_MARKS, Mark
from adloom.resource.shapes import Day
from adloom.runtime.http.api.dependencies import (
    CurrentCaller,
    Database,
    Now,
    make_router,
)
from adloom.runtime.http.api.pages import ListQuery, Page
from adloom.runtime.http.api.shapes import Answer, Text255
from adloom.stats.rejected import store
from adloom.stats.rejected.store import EventKind, RejectedQuestion, filter_seen_by, list_reasons

# An attack may leave millions a day, and every answer counts everything that it filters.
DAYS_MAX: Final = 31


def _parse_reason(value: object) -> object:
    if value not in UNBILLED_MARKS:
        raise ValueError(f"must be one of {', '.join(UNBILLED_MARKS)}")
    return value


Reason = Annotated[Mark, BeforeValidator(_parse_reason, json_schema_input_type=str)]


class RejectedQuery(ListQuery):
    """Which events; both days are included, in UTC, and default to today."""

    SORTABLE: ClassVar = store.SORTABLE

    sort: Text255 = "-occurredAt"
    first: Annotated[Day | None, Field(alias="from")] = None
    last: Annotated[Day | None, Field(alias="to")] = None
    reason: Reason | None = None
    kind: EventKind | None = None
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None


class RejectedAnswer(Answer):
    """An event with its reasons; `marks` also has marks that are no reason. The visitor is never shown."""

    kind: EventKind
    correlation_id: str
    banner_id: UUID
    placement_id: UUID
    campaign_id: UUID | None
    reasons: Sequence[Mark]
    marks: Sequence[Mark]
    occurred_at: datetime
    received_at: datetime
    request_id: Annotated[UUID | None, Field(description="The offer's request, of a genuine token.")]
    device_type: str | None
    country_code: str | None
    page_url: Annotated[str | None, Field(description="Without its query and fragment.")]
    client_network: Annotated[
        str | None, Field(description="A /24 or /48, where a reason is about it; accounts see null.")
    ]


class ReasonAnswer(Answer):
    """How many events of the filter have a reason; an event with two reasons is in both."""

    reason: Mark
    impressions: int
    clicks: int


class RejectedPage(Page[RejectedAnswer]):
    """One page of events, and the reasons of all of them."""

    reasons: Sequence[ReasonAnswer]


router = make_router("/admin/events", "statistics", 400, 401, 503)


@router.get("/rejected")
async def list_rejected_events(
    query: Annotated[RejectedQuery, Query()], caller: CurrentCaller, pool: Database, now: Now
) -> RejectedPage:
    """List events that count but are not billed, with their reasons; an account sees its own."""
    filters = store.build_filters(_build_question(query, caller, today=now.date()))
    async with pool.acquire() as connection:
        listed = await store.read_page(connection, filters, query.page_request)
        found = await store.count_by_reason(connection, filters)
    return RejectedPage(
        items=[RejectedAnswer.model_validate(filter_seen_by(caller, event)) for event in listed.items],
        reasons=[ReasonAnswer.model_validate(one) for one in list_reasons(found)],
        total_count=listed.total_count,
        page=query.page,
        page_size=query.page_size,
        total_pages=-(-listed.total_count // query.page_size),
    )


def _build_question(query: RejectedQuery, caller: Caller, *, today: date) -> RejectedQuestion:
    last = query.last or today
    first = query.first or last
    if last < first:
        message = "must not be before `from`; it is today if not given"
        raise make_field_error("to", message, "`to` must not be before `from`.")
    if (last - first).days >= DAYS_MAX:
        message = f"must be less than {DAYS_MAX} days before `to`"
        raise make_field_error("from", message, f"An answer is about at most {DAYS_MAX} days.")
    return RejectedQuestion(
        **query.model_dump(include={"reason", "kind", "banner_id", "placement_id", "campaign_id"}),
        first=first,
        last=last,
        advertiser_id=caller.advertiser_id,
        publisher_id=caller.publisher_id,
    )
