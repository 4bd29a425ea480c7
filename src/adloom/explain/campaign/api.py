"""Why a campaign does or does not deliver, over HTTP on the control plane."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter
from pydantic import Field

from adloom.catalog.campaign.lifecycle import CampaignStatus
from adloom.catalog.campaign.store import campaigns
from adloom.explain.campaign import sentences
from adloom.explain.campaign.checks import Check, Known, State, checked, verdict
from adloom.explain.campaign.store import read
from adloom.explain.campaign.traffic import Auctions
from adloom.resource.api import AdvertiserReads
from adloom.runtime.http.api.dependencies import Database, GuardedRoute, Now
from adloom.runtime.http.api.openapi import problems
from adloom.runtime.http.api.shapes import Answer

LOOKED_BACK: Final = timedelta(hours=1)
# What others have had on a placement is not for an account to know.
OF_OTHERS: Final = frozenset({sentences.TARGETING, sentences.REQUESTS, sentences.RIVALS})


class CheckAnswer(Answer):
    """One step on the way to a reader."""

    name: str
    state: State
    sentence: str
    change: Annotated[str | None, Field(description="What would have to change.")]
    passed: Annotated[
        int | None, Field(description="How often it let the campaign pass, where it is counted.")
    ]
    of: int | None


class TakenPart(Answer):
    """How the last auctions ended that the campaign could have been in, 5,000 at most."""

    held: int
    absent: Annotated[int, Field(description="It was not among the candidates.")]
    removed: Annotated[Mapping[str, int], Field(description="By the step, as `explain` names it.")]
    lost: int
    won: int
    ecpm: Annotated[float | None, Field(description="Its own on average, where it lost.")]
    winning_ecpm: Annotated[float | None, Field(description="Of those who won there; null for accounts.")]


class CampaignDelivery(Answer):
    """What stands in the way of a campaign now, and what happened to it in the last hour."""

    campaign_id: UUID
    name: str
    status: CampaignStatus
    since: Annotated[datetime, Field(description="The beginning of the hour before.")]
    verdict: str
    impressions: int
    clicks: int
    checks: list[CheckAnswer]
    auctions: TakenPart


router = APIRouter(
    prefix="/admin/campaigns",
    tags=["delivery"],
    route_class=GuardedRoute,
    responses=problems(400, 401, 403, 404, 503),
)


@router.get("/{campaign_id}/delivery")
async def explain_campaign(
    campaign_id: UUID, scope: AdvertiserReads, pool: Database, now: Now
) -> CampaignDelivery:
    """Say step by step why a campaign delivers or not; an advertiser asks about its own."""
    since = (now - LOOKED_BACK).replace(minute=0, second=0, microsecond=0)
    async with pool.acquire() as connection:
        campaign = await campaigns.find(connection, scope, campaign_id)
        found = await read(connection, campaign.id, since=since, now=now)
    known = Known(campaign=campaign, now=now, **msgspec.structs.asdict(found))
    checks = checked(known)
    is_account = scope.account_id is not None
    return CampaignDelivery(
        campaign_id=campaign.id,
        name=campaign.name,
        status=campaign.status,
        since=since,
        verdict=verdict(checks, found.traffic),
        impressions=found.traffic.own_impressions,
        clicks=found.traffic.own_clicks,
        checks=[_shown(one, is_account=is_account) for one in checks],
        auctions=_taken_part(found.traffic.auctions, is_account=is_account),
    )


def _shown(check: Check, *, is_account: bool) -> CheckAnswer:
    is_counted = not (is_account and check.name in OF_OTHERS)
    return CheckAnswer(
        name=check.name,
        state=check.state,
        sentence=check.sentence,
        change=check.change,
        passed=check.passed if is_counted else None,
        of=check.of if is_counted else None,
    )


def _taken_part(auctions: Auctions, *, is_account: bool) -> TakenPart:
    return TakenPart(
        held=auctions.held,
        absent=auctions.absent,
        removed=auctions.removed,
        lost=auctions.lost,
        won=auctions.won,
        ecpm=auctions.ecpm,
        winning_ecpm=None if is_account else auctions.winning_ecpm,
    )
