"""The kinds of entities that keep budgets."""

from adloom.budgets.addresses import ADVERTISER, CAMPAIGN
from adloom.budgets.advertiser import step as advertiser_step
from adloom.budgets.advertiser.state import AdvertiserState, new_advertiser
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.state import CampaignState, new_campaign
from adloom.budgets.messages import AdvertiserMessage, CampaignMessage, Look
from adloom.runtime.actors.kind import ActorKind, AnyKind


def campaigns() -> "ActorKind[CampaignState, CampaignMessage]":
    """Make the kind of campaigns."""
    return ActorKind(
        CAMPAIGN,
        CampaignState,
        campaign_step.step,
        new_campaign,
        on_waking=Look(),
        before_keeping=campaign_step.before_keeping,
    )


def advertisers() -> "ActorKind[AdvertiserState, AdvertiserMessage]":
    """Make the kind of advertisers."""
    return ActorKind(ADVERTISER, AdvertiserState, advertiser_step.step, new_advertiser, on_waking=Look())


def all_kinds() -> list[AnyKind]:
    """Make every kind that runs in a worker."""
    return [campaigns(), advertisers()]
