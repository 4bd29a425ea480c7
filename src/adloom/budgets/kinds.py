"""The kinds of budget actors."""

from adloom.budgets.addresses import ADVERTISER, CAMPAIGN
from adloom.budgets.advertiser import step as advertiser_step
from adloom.budgets.advertiser.state import AdvertiserState, AdvertiserStatus, make_advertiser_state
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.state import CampaignState, make_campaign_state
from adloom.budgets.messages import AdvertiserMessage, CampaignMessage, CheckClock, SpendUpdate
from adloom.runtime.actors.actor import ActorKind, AnyKind


def make_campaign_kind() -> "ActorKind[CampaignState, CampaignMessage]":
    return ActorKind(
        CAMPAIGN,
        CampaignState,
        campaign_step.step,
        make_campaign_state,
        on_waking=CheckClock(),
        before_keeping=campaign_step.flush_before_persisting,
        messages=CampaignMessage,
        replies=SpendUpdate,
    )


def make_advertiser_kind() -> "ActorKind[AdvertiserState, AdvertiserMessage]":
    return ActorKind(
        ADVERTISER,
        AdvertiserState,
        advertiser_step.step,
        make_advertiser_state,
        on_waking=CheckClock(),
        messages=AdvertiserMessage,
        replies=AdvertiserStatus,
    )


def make_kinds() -> list[AnyKind]:
    return [make_campaign_kind(), make_advertiser_kind()]
