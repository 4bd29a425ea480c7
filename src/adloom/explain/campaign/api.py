"""Why a campaign does or does not deliver, over HTTP on the control plane."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

from pydantic import Field

from adloom.catalog.campaign.model import CampaignStatus
from adloom.catalog.campaign.resource import campaigns
from adloom.explain.campaign.check import CampaignCheck, CheckState
from adloom.explain.campaign.verdict import check_campaign, summarize
from adloom.explain.store import read_campaign
from adloom.explain.traffic import AuctionTally
from adloom.resource.api import AdvertiserReads
from adloom.resource.shapes import PriceShown
from adloom.runtime.http.api.dependencies import Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer

LOOKED_BACK: Final = timedelta(hours=1)
# What others have had on a placement is not for an account to know.
OF_OTHERS: Final = frozenset({"targeting", "requests", "rivals"})


class CheckAnswer(Answer):
    """One step between the campaign and a visitor."""

    name: str
    state: CheckState
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
    winning_ecpm: Annotated[float | None, Field(description="Of the winners there; null for accounts.")]


class ReachedSite(Answer):
    """A site with pages that the campaign wants."""

    site_id: UUID
    domain: str
    pages: int
    reached: int
    removed: Annotated[Mapping[str, int], Field(description="Pages by what keeps the campaign from them.")]
    bid_missing: Annotated[
        PriceShown | None,
        Field(description="The least that its bid is under a floor, per thousand impressions."),
    ]


class ReachedCategory(Answer):
    """One of the campaign's categories, and how many pages there are."""

    id: str
    name: str
    pages: int


class ContextualReach(Answer):
    """Pages that the campaign wants in contextual slots; on those that it reaches it is a candidate."""

    pages: int
    reached: int
    sites: Sequence[ReachedSite]
    categories: Sequence[ReachedCategory]


class CampaignDelivery(Answer):
    """What keeps a campaign from being shown now, and what happened in the last hour."""

    campaign_id: UUID
    name: str
    status: CampaignStatus
    since: Annotated[datetime, Field(description="The beginning of the hour before.")]
    verdict: str
    impressions: int
    clicks: int
    checks: list[CheckAnswer]
    auctions: TakenPart
    contextual: Annotated[
        ContextualReach | None, Field(description="Null if the campaign wants no contextual slots.")
    ]


router = make_router("/admin/campaigns", "delivery", 400, 401, 403, 404, 503)


@router.get("/{campaign_id}/delivery")
async def explain_campaign(
    campaign_id: UUID, scope: AdvertiserReads, pool: Database, now: Now
) -> CampaignDelivery:
    """Say step by step why a campaign delivers or not; an advertiser asks about its own."""
    since = (now - LOOKED_BACK).replace(minute=0, second=0, microsecond=0)
    async with pool.acquire() as connection:
        campaign = await campaigns.table.find(connection, scope, campaign_id)
        found = await read_campaign(connection, campaign, since=since, now=now)
    checks = check_campaign(found)
    is_account = scope.account_id is not None
    return CampaignDelivery(
        campaign_id=campaign.id,
        name=campaign.name,
        status=campaign.status,
        since=since,
        verdict=summarize(checks, found.traffic),
        impressions=found.traffic.own_impressions,
        clicks=found.traffic.own_clicks,
        checks=[_show(one, is_account=is_account) for one in checks],
        auctions=_show_auctions(found.traffic.auctions, is_account=is_account),
        contextual=None if found.reach is None else ContextualReach.model_validate(found.reach),
    )


def _show(check: CampaignCheck, *, is_account: bool) -> CheckAnswer:
    shown = CheckAnswer.model_validate(check)
    is_hidden = is_account and check.name in OF_OTHERS
    return shown.model_copy(update={"passed": None, "of": None}) if is_hidden else shown


def _show_auctions(auctions: AuctionTally, *, is_account: bool) -> TakenPart:
    shown = TakenPart.model_validate(auctions)
    return shown.model_copy(update={"winning_ecpm": None}) if is_account else shown
