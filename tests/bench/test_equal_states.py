"""Law: the same messages to actors of each kind come to the same states and rows on both hosts of actors."""

import pytest

from adloom.runtime.postgres import Pool
from bench.drills.equality.campaigns import compare_campaigns
from bench.drills.equality.others import compare_others

pytestmark = pytest.mark.timeout(300)


async def test_campaigns_come_to_the_same_states_and_money_on_every_host(nats_url: str, pool: Pool) -> None:
    figures = await compare_campaigns(nats_url, pool, seed=1)

    assert all(figures.values()), figures


async def test_advertisers_sites_and_the_market_come_to_the_same_on_every_host(
    nats_url: str, pool: Pool
) -> None:
    figures = await compare_others(nats_url, pool, seed=1)

    assert all(figures.values()), figures
