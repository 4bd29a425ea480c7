"""Budgets in seeded worlds with faults, checked by the laws after every step."""

import random
from datetime import timedelta

import pytest

from adloom.budgets.campaign.headroom import compute_headroom
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.money_world import MANY_FAULTS, NO_FAULTS, MoneyWorld
from tests.support.for_each import for_each, seeds

SEEDS = 8
SECONDS_TO_SPEND = 300


def a_world(seed: int) -> MoneyWorld:
    chance = random.Random(seed)  # noqa: S311 - seeded, so that runs repeat
    world = MoneyWorld(
        seed,
        faults=MANY_FAULTS if chance.random() < 0.85 else NO_FAULTS,
        campaigns=chance.choice([1, 2, 4, 10]),
        processes=chance.choice([1, 2, 4]),
    )
    for campaign_id in world.costs:
        world.configure(
            campaign_id,
            daily_budget=Micros(chance.choice([1, 2, 10, 100]) * 1000) if chance.random() < 0.8 else None,
            total_budget=Micros(chance.choice([3, 20, 200]) * 1000) if chance.random() < 0.4 else None,
            pacing=chance.choice(list(PacingStrategy)),
        )
    world.configure_advertiser(chance.choice([1, 2, 5, 40]) * 1000 if chance.random() < 0.6 else None)
    return world


def live(world: MoneyWorld) -> None:
    """Two busy minutes over midnight, and others in the hours that follow."""
    world.run(seconds=150)
    for hours in (1, 3, 20):
        world.pass_time(timedelta(hours=hours))
        world.run(seconds=20)


@pytest.mark.slow
@pytest.mark.timeout(400)  # a minute of a processor that others use too
@for_each("seed", seeds(SEEDS))
def test_no_budget_is_overspent_nothing_leaks_and_all_is_spent_after_the_faults(seed: int) -> None:
    world = a_world(seed)

    live(world)
    world.close()

    check_that_nothing_leaks(world)
    check_that_all_is_spent(world)


def check_that_nothing_leaks(world: MoneyWorld) -> None:
    assert world.unconfirmed == {}
    world.laws.check_days(world.host)
    for campaign_id in world.costs:
        state = world.campaign(campaign_id)
        assert state.outstanding == 0, "every hold is charged or released"
        assert all(not lease.held for lease in state.leases.values())
        assert state.report is None, "the advertiser has answered every report"
        left = compute_headroom(state, world.now, is_allotted=False).amount
        assert left == unspent(world, campaign_id)


def check_that_all_is_spent(world: MoneyWorld) -> None:
    """Check that every budget is spent to the last whole offer after the faults end."""
    world.start_again()
    for _ in range(SECONDS_TO_SPEND // 10):
        world.run(seconds=10, visitors=8)
        if not [one for one in world.costs if can_spend(world, one)]:
            break

    assert [one for one in world.costs if can_spend(world, one)] == []


def can_spend(world: MoneyWorld, campaign_id: CampaignId) -> bool:
    """Return whether the budgets allow another offer."""
    left = unspent(world, campaign_id)
    of_advertiser = None if world.advertiser is None else world.advertiser.daily_budget
    if of_advertiser is not None:
        today = world.campaign(campaign_id).day
        spent = sum(world.campaign(one).spent_by_day.get(today, 0) for one in world.costs)
        left = min(of_advertiser - spent, of_advertiser if left is None else left)
    return left is not None and left >= world.costs[campaign_id]


def unspent(world: MoneyWorld, campaign_id: CampaignId) -> int | None:
    """Return what is left of a campaign's own budgets."""
    config, state = world.configs[campaign_id], world.campaign(campaign_id)
    left = [
        budget - spent
        for budget, spent in (
            (config.daily_budget, state.spent_window),
            (config.total_budget, state.spent_total),
        )
        if budget is not None
    ]
    return max(0, min(left)) if left else None
