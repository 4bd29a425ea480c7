"""Refunds over HTTP: an admin gives back what a campaign was charged, and says why."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, ClassVar, Literal
from uuid import UUID

from fastapi import Query, Response, status
from pydantic import Field

from adloom.budgets.messages import RefundPart
from adloom.catalog.campaign.resource import campaigns
from adloom.core.errors import ConflictError, FieldProblem
from adloom.core.ids import PlacementId, RequestId
from adloom.core.money import Micros, micros_from_paisa, paisa_from_micros
from adloom.resource.api import AdminWrites, AdvertiserReads, CurrentCatalog
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry
from adloom.resource.shapes import PAISA_MAX, Day, PaisaShown
from adloom.runtime.http.api.dependencies import CurrentValkey, Database, Ids, Now, make_router
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import TAKES_WHOLE_FLOATS, Answer, Body, Text, Text255
from adloom.runtime.postgres import Connection
from adloom.stats.budget.api import GivenReason
from adloom.stats.budget.model import NOUN
from adloom.stats.refunds import store
from adloom.stats.refunds.store import PARTS_MAX, RefundRequest, give_back

CorrelationId = Annotated[Text, Field(min_length=1, max_length=128)]


class RefundBody(Body):
    """What to give back. Without a day or a placement, the newest charges are given back first."""

    amount_paisa: Annotated[int, Field(strict=True, ge=1, le=PAISA_MAX), TAKES_WHOLE_FLOATS]
    reason: GivenReason
    correlation_id: Annotated[
        CorrelationId | None, Field(description="Repeated, it is the same refund; made where it is missing.")
    ] = None
    day: Annotated[Day | None, Field(description="Only charges of this day of the campaign.")] = None
    placement_id: Annotated[UUID | None, Field(description="Only charges of this placement.")] = None


class RefundAnswer(Answer):
    """A refund. The money ledger has it as soon as it has a `refundedAt`."""

    id: UUID
    campaign_id: UUID
    correlation_id: str
    amount: Annotated[PaisaShown, Field(alias="amountPaisa")]
    reason: str
    day: date | None
    placement_id: UUID | None
    state: Literal["pending", "done"]
    created_at: datetime
    refunded_at: datetime | None


class RefundQuery(ListQuery):
    """Which refunds are listed."""

    SORTABLE: ClassVar = frozenset({"created_at"})

    sort: Text255 = "-createdAt"


router = make_router("/admin/campaigns", "budgets", 400, 401, 403, 404, 409, 413, 503)


@router.get("/{campaign_id}/refunds")
async def list_refunds(
    campaign_id: UUID, query: Annotated[RefundQuery, Query()], scope: AdvertiserReads, pool: Database
) -> Page[RefundAnswer]:
    """List what was given back to a campaign, newest first."""
    async with pool.acquire() as connection:
        campaign = await campaigns.table.find(connection, scope, campaign_id)
        listed = await store.list_requests(connection, campaign.id, query.page_request)
    return build_page(RefundAnswer, listed, query)


@router.post(
    "/{campaign_id}/refunds",
    status_code=201,
    responses={
        202: {"model": RefundAnswer, "description": "Asked for, and pending until a worker gives it back."}
    },
)
async def refund(  # noqa: PLR0913, PLR0917 - the framework gives them by name
    campaign_id: UUID,
    body: RefundBody,
    scope: AdminWrites,
    catalog: CurrentCatalog,
    pool: Database,
    valkey: CurrentValkey,
    ids: Ids,
    now: Now,
    response: Response,
) -> RefundAnswer:
    """Give back charges of a campaign: its spend goes down, and its budgets allow as much again. 202: not yet."""
    async with pool.acquire() as connection:
        campaign = await campaigns.table.find(connection, scope, campaign_id)
    refund_id = RequestId(ids.make())
    wanted = RefundRequest(
        id=refund_id,
        campaign_id=campaign.id,
        correlation_id=body.correlation_id or str(refund_id),
        amount=micros_from_paisa(body.amount_paisa),
        reason=body.reason,
        day=body.day,
        placement_id=None if body.placement_id is None else PlacementId(body.placement_id),
        created_at=now,
    )
    async with store.lock_refunds(pool, campaign.id) as connection:
        found = await store.find_request(connection, campaign.id, wanted.correlation_id)
        if found is None:
            await _check_others(connection, wanted)
            _check_amount(wanted, *await store.choose_charges(connection, wanted, campaign.advertiser_id))
            # Audited first: whatever happens then, the record says who asked for it, and why.
            async with catalog.write() as write:
                await store.insert_request(write.connection, wanted)
                about = AuditSubject(NOUN, str(campaign.id), campaign.advertiser_id)
                changes = {
                    "reason": {"from": None, "to": body.reason},
                    "refundedPaisa": {"from": None, "to": body.amount_paisa},
                }
                write.entries.append(NewAuditEntry(about, "refund", changes))
            found = wanted
        _check_same(found, wanted)
        if found.refunded_at is None:
            found = await give_back(connection, valkey, found, campaign.advertiser_id)
    if found.refunded_at is None:
        response.status_code = status.HTTP_202_ACCEPTED
    return RefundAnswer.model_validate(found)


async def _check_others(connection: Connection, wanted: RefundRequest) -> None:
    # It has chosen no charges yet, so what is left for others is not known.
    if await store.has_pending(connection, wanted.campaign_id):
        raise ConflictError(
            "Another refund of this campaign is pending: it is given back when a worker runs. Then ask again.",
            code="REFUND_PENDING",
        )


def _check_amount(wanted: RefundRequest, parts: Sequence[RefundPart], missing: Micros) -> None:
    if not missing:
        return
    if len(parts) == PARTS_MAX:
        raise ConflictError(
            "The amount is spread over too many hours, banners and placements: give it back in smaller parts, "
            "or name a day or a placement.",
            code="REFUND_TOO_LARGE",
        )
    left = paisa_from_micros(Micros(wanted.amount - missing))
    raise ConflictError(
        f"Only {left} hundredths of these charges can be given back: lower amountPaisa.",
        code="REFUND_EXCEEDS_SPEND",
        errors=[FieldProblem("amountPaisa", f"is too much: only {left / 100:,.2f} can be given back")],
    )


def _check_same(found: RefundRequest, wanted: RefundRequest) -> None:
    theirs = (found.amount, found.day, found.placement_id)
    if theirs != (wanted.amount, wanted.day, wanted.placement_id):
        raise ConflictError(
            "There is another refund with this correlationId: repeat it as it was, or choose another name.",
            code="REFUND_DIFFERS",
        )
