"""The moves of a campaign, each on a route of its own."""

from datetime import datetime

from adloom.catalog.campaign.lifecycle import CampaignStatus
from adloom.catalog.campaign.model import Campaign
from adloom.catalog.campaign.resource import campaigns
from adloom.resource.api import add_change_route, build_router
from adloom.runtime.http.api.shapes import Body, Moment


class ScheduleBody(Body):
    """When a campaign starts and ends; what is absent stays as the campaign has it."""

    starts_at: Moment | None = None
    ends_at: Moment | None = None


def _schedule(campaign: Campaign, body: ScheduleBody | None, now: datetime) -> Campaign:
    dates = body or ScheduleBody()
    return campaign.scheduled(starts_at=dates.starts_at, ends_at=dates.ends_at, now=now)


def _add_move(action: str, target: CampaignStatus, description: str) -> None:
    def move(campaign: Campaign, _body: None, now: datetime) -> Campaign:
        return campaign.moved_to(target, now=now)

    add_change_route(router, campaigns, action, move, description=description)


router = build_router(campaigns)
add_change_route(
    router,
    campaigns,
    "schedule",
    _schedule,
    body=ScheduleBody,
    is_body_optional=True,
    description="Let a draft begin by itself, at its own dates or at these.",
)
_add_move("activate", CampaignStatus.ACTIVE, "Let a campaign run from now on.")
_add_move("pause", CampaignStatus.PAUSED, "Stop a campaign for a while.")
_add_move("end", CampaignStatus.ENDED, "End a campaign for good.")
_add_move("cancel", CampaignStatus.CANCELLED, "Cancel a campaign for good.")
_add_move("unschedule", CampaignStatus.DRAFT, "Make a scheduled campaign a draft again.")
