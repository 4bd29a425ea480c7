"""What a campaign publishes of its budget."""

from datetime import datetime

import msgspec

from adloom.budgets.addresses import SPEND_TOPIC
from adloom.budgets.campaign.headroom import find_exhausted_budget
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import CampaignExhausted, CampaignRestored, SpendUpdate
from adloom.runtime.actors.actor import Effect, Persist, Publish


def build_spend_update(state: CampaignState, now: datetime) -> SpendUpdate:
    config = state.config
    assert config is not None
    return SpendUpdate(
        campaign_id=config.campaign_id,
        advertiser_id=config.advertiser_id,
        day=state.day,
        window=state.window,
        daily_budget=config.daily_budget,
        total_budget=config.total_budget,
        spent_window=state.spent_window,
        spent_today=state.spent_today,
        spent_total=state.spent_total,
        held=state.held,
        leased=state.leased,
        at=now,
    )


def publish_spend(state: CampaignState, now: datetime) -> Publish:
    return Publish(SPEND_TOPIC, build_spend_update(state, now))


def publish_transition(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Publish when the budget runs out, or is restored: on the transition only."""
    verdict = find_exhausted_budget(state)
    if verdict is state.exhausted:
        return state
    assert state.config is not None
    if verdict is None:
        effects.append(Publish(SPEND_TOPIC, CampaignRestored(campaign_id=state.config.campaign_id, at=now)))
    elif state.exhausted is None:
        news = CampaignExhausted(campaign_id=state.config.campaign_id, verdict=verdict, at=now)
        effects.append(Publish(SPEND_TOPIC, news))
    effects.append(Persist())
    return msgspec.structs.replace(state, exhausted=verdict)
