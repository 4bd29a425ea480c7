"""Copies of campaigns, and changes of many at once, over HTTP."""

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import status
from pydantic import Field, create_model

from adloom.catalog.campaign.model import Campaign, CampaignStatus, CampaignTransitionError
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.campaign_work.duplicate import DuplicateBody, duplicate
from adloom.core.errors import AdloomError, make_field_error
from adloom.resource.api import (
    AdvertiserReads,
    AdvertiserWrites,
    CurrentCatalog,
    make_catalog_router,
    set_body_type,
)
from adloom.resource.forms import build_body, build_patch
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.shapes import Answer, Patch

CAMPAIGNS_MAX: Final = 100
# What several campaigns may get at once.
CHANGEABLE: Final = (
    *("bid_amount_micros", "starts_at", "ends_at"),
    *("budget_daily_paisa", "budget_total_paisa", "labels"),
)

Rule = Callable[[Campaign], Campaign]


class BulkAction(StrEnum):
    """What is done to each campaign."""

    PAUSE = "pause"
    RESUME = "resume"
    CHANGE = "change"


LABELS_LISTED_MAX: Final = 200
LABELS: Final = """
    SELECT label, count(*) AS campaigns
      FROM campaigns AS it
      LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id, unnest(it.labels) AS label
     WHERE it.deleted_at IS NULL AND ($1::uuid IS NULL OR owner.public_id = $1)
     GROUP BY label ORDER BY campaigns DESC, label LIMIT $2
"""
BULK_PATCH: Final = build_patch(
    "CampaignBulkPatch",
    "What each of the campaigns gets; what is absent stays as it is.",
    {name: campaigns.form_fields[name] for name in CHANGEABLE},
)


BULK_BODY: Final = build_body(
    "CampaignBulkBody",
    "Which campaigns, and what to do to each.",
    {
        "ids": (Annotated[list[UUID], Field(min_length=1, max_length=CAMPAIGNS_MAX)], ...),
        "action": (BulkAction, ...),
        "change": (BULK_PATCH | None, Field(default=None, description="For the action `change`.")),
    },
)


class BulkFieldAnswer(Answer):
    """A field that was refused."""

    field: str
    message: str


class BulkErrorAnswer(Answer):
    """Why a campaign was not changed, in the words of problem details."""

    code: Annotated[str, Field(serialization_alias="errorCode")]
    detail: Annotated[str, Field(serialization_alias="message")]
    errors: Sequence[BulkFieldAnswer]


ITEM_FIELDS: Final[dict[str, Any]] = {
    "id": (UUID, ...),
    "is_done": (bool, ...),
    "campaign": (campaigns.answer | None, ...),
    "error": (BulkErrorAnswer | None, ...),
}
BULK_ITEM_ANSWER: Final = create_model(
    "CampaignBulkItem",
    __base__=Answer,
    __doc__="One campaign: how it is now, or why nothing was changed.",
    **ITEM_FIELDS,
)
ANSWER_FIELDS: Final[dict[str, Any]] = {"items": (Sequence[BULK_ITEM_ANSWER], ...)}
BULK_ANSWER: Final = create_model(
    "CampaignBulkAnswer",
    __base__=Answer,
    __doc__="A result for each campaign, in the order of the ids.",
    **ANSWER_FIELDS,
)

router = make_catalog_router("/admin/campaigns", tag="campaigns")


class LabelAnswer(Answer):
    """A label, and how many campaigns have it."""

    label: str
    campaigns: int


class LabelsAnswer(Answer):
    """The labels that are in use, those of most campaigns first; at most 200."""

    items: Sequence[LabelAnswer]


@router.get("/labels")
async def list_labels(scope: AdvertiserReads, catalog: CurrentCatalog) -> LabelsAnswer:
    """List the labels of campaigns; an account sees its own."""
    async with catalog.read() as connection:
        rows = await connection.fetch(LABELS, scope.account_id, LABELS_LISTED_MAX)
    return LabelsAnswer(items=[LabelAnswer(label=row["label"], campaigns=row["campaigns"]) for row in rows])


@router.post("/bulk", response_model=BULK_ANSWER)
@set_body_type(BULK_BODY)
async def change_campaigns(
    body: Any,  # noqa: ANN401 - set above
    scope: AdvertiserWrites,
    catalog: CurrentCatalog,
    now: Now,
) -> Answer:
    """Pause, resume or change up to 100 campaigns. Each is changed whole or not at all, whatever happens to others."""
    if (body.action is BulkAction.CHANGE) != (body.change is not None and bool(body.change.model_fields_set)):
        raise make_field_error(
            "change", "must have a field for the action `change`, and be left out for others"
        )
    rule = _build_rule(body.action, body.change, now)
    results: list[dict[str, Any]] = []
    for campaign_id in dict.fromkeys(body.ids):
        after = refused = None
        try:
            async with catalog.write() as write:
                after = await campaigns.change(write, scope, campaign_id, rule)
        except AdloomError as error:
            refused = error
        results.append({"id": campaign_id, "is_done": after is not None, "campaign": after, "error": refused})
    return BULK_ANSWER.model_validate({"items": results})


@router.post("/{campaign_id}/duplicate", status_code=status.HTTP_201_CREATED, response_model=campaigns.answer)
async def duplicate_campaign(  # noqa: PLR0913, PLR0917 - a campaign, a body, and who asks when
    campaign_id: UUID,
    scope: AdvertiserWrites,
    catalog: CurrentCatalog,
    ids: Ids,
    now: Now,
    body: DuplicateBody | None = None,
) -> Answer:
    """Copy a campaign with its placements, banners, creatives and targeting rules; the copy begins as a draft."""
    async with catalog.write() as write:
        copy = await duplicate(write, scope, campaign_id, body or DuplicateBody(), ids=ids, now=now)
    return campaigns.answer.model_validate(copy)


def _build_rule(action: BulkAction, patch: Patch | None, now: datetime) -> Rule:
    """Return what an action does to one campaign; one that has it already stays as it is."""
    match action:
        case BulkAction.PAUSE:
            return lambda one: _move(one, CampaignStatus.PAUSED, now)
        case BulkAction.RESUME:
            return lambda one: _resume(one, now)
        case BulkAction.CHANGE:
            return lambda one: one if patch is None else campaigns.apply(patch, one, now)


def _move(campaign: Campaign, status: CampaignStatus, now: datetime) -> Campaign:
    return campaign if campaign.require_present().status is status else campaign.moved_to(status, now=now)


def _resume(campaign: Campaign, now: datetime) -> Campaign:
    # A draft becomes active by a decision about itself, not among others.
    if campaign.require_present().status not in {CampaignStatus.PAUSED, CampaignStatus.ACTIVE}:
        raise CampaignTransitionError(
            f"The campaign is {campaign.status}. Only one that is paused can be resumed."
        )
    return _move(campaign, CampaignStatus.ACTIVE, now)
