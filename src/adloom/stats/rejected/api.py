"""Events that are kept out of billing, over HTTP."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, ClassVar, Final
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field

from adloom.core.actor import Actor, Role
from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.events.log.event import INVALIDATING_MARKS, Mark
from adloom.runtime.http.api.dependencies import CurrentActor, Database, GuardedRoute, Now, problems
from adloom.runtime.http.api.pages import ListQuery, Page
from adloom.runtime.http.api.shapes import Answer, Text255
from adloom.stats.rejected import store
from adloom.stats.rejected.model import EventKind, RejectedQuestion, all_reasons, seen_by

# An attack may leave millions a day, and every answer counts everything that it filters.
DAYS_MAX: Final = 31


def _iso_day(value: object) -> object:
    try:
        return date.fromisoformat(str(value))
    except ValueError as error:
        raise ValueError("must be a day like 2026-11-15") from error


def _reason(value: object) -> object:
    if value not in INVALIDATING_MARKS:
        raise ValueError(f"must be one of {', '.join(INVALIDATING_MARKS)}")
    return value


Day = Annotated[date, BeforeValidator(_iso_day)]
Reason = Annotated[Mark, BeforeValidator(_reason, json_schema_input_type=str)]


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
        str | None,
        Field(description="A /24 or /48, where a reason is about it; accounts see null."),
    ]


class ReasonAnswer(Answer):
    """How many events of the filter have a reason; an event with two reasons is in both."""

    reason: Mark
    impressions: int
    clicks: int


class RejectedPage(Page[RejectedAnswer]):
    """One page of events, and the reasons of all of them."""

    reasons: Sequence[ReasonAnswer]


router = APIRouter(
    prefix="/admin/events", tags=["statistics"], route_class=GuardedRoute, responses=problems(400, 401, 503)
)


@router.get("/rejected")
async def list_rejected_events(
    query: Annotated[RejectedQuery, Query()], actor: CurrentActor, pool: Database, now: Now
) -> RejectedPage:
    """List events that count but are not billed, with their reasons; an account sees its own."""
    filters = store.where_matching(_question(query, actor, today=now.date()))
    async with pool.acquire() as connection:
        listed = await store.page(connection, filters, query.page_request)
        found = await store.counts_by_reason(connection, filters)
    return RejectedPage(
        items=[RejectedAnswer.model_validate(seen_by(actor, event)) for event in listed.items],
        reasons=[ReasonAnswer.model_validate(one) for one in all_reasons(found)],
        total_count=listed.total_count,
        page=query.page,
        page_size=query.page_size,
        total_pages=-(-listed.total_count // query.page_size),
    )


def _question(query: RejectedQuery, actor: Actor, *, today: date) -> RejectedQuestion:
    last = query.last or today
    first = query.first or last
    if last < first:
        problem = FieldProblem("to", "must not be before `from`; it is today if not given")
        raise ValidationFailedError("`to` must not be before `from`.", errors=[problem])
    if (last - first).days >= DAYS_MAX:
        problem = FieldProblem("from", f"must be less than {DAYS_MAX} days before `to`")
        raise ValidationFailedError(f"An answer is about at most {DAYS_MAX} days.", errors=[problem])
    return RejectedQuestion(
        first=first,
        last=last,
        reason=query.reason,
        kind=query.kind,
        banner_id=query.banner_id,
        placement_id=query.placement_id,
        campaign_id=query.campaign_id,
        advertiser_id=actor.account_id if actor.role is Role.ADVERTISER else None,
        publisher_id=actor.account_id if actor.role is Role.PUBLISHER else None,
    )
