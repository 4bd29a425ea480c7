"""Auctions on record can be read back for training: whole ones, of campaigns with a budget and a target."""

from datetime import timedelta
from uuid import UUID

import pytest

from adloom.cli.learn.own_auctions import read_own_days
from adloom.cli.options import LearnCommandError
from adloom.events.auction_log.learning_store import (
    TargetedCampaign,
    count_auctions,
    load_targeted_campaigns,
    read_auctions,
)
from adloom.runtime.postgres import Pool
from tests.events.builders import CAMPAIGN, an_auction
from tests.support.auctions import apply_auctions
from tests.support.builders import NOON

ADD = """
    INSERT INTO campaigns (public_id, name, budget_daily_paisa, target_cpa_micros, passes_click_id)
    VALUES ($1, 'C', $2, $3, true)
"""
COUNT = """
    INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, clicks, invalid_clicks, conversions)
    SELECT $1, 1, 1, id, 1000, 600, 20 FROM campaigns WHERE public_id = $2
"""
HOUR = timedelta(hours=1)


async def test_campaigns_with_a_budget_and_a_target_are_read_with_their_auctions(pool: Pool) -> None:
    await apply_auctions(
        pool, *(an_auction(UUID(int=number), held_at=NOON - number * HOUR) for number in range(1, 9))
    )
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(ADD, CAMPAIGN, 5_000, 2_000_000)
        await connection.execute(ADD, UUID(int=99), 5_000, None)

        span = (NOON - 4 * HOUR, NOON)
        await connection.execute(COUNT, NOON - HOUR, CAMPAIGN)
        campaigns = await load_targeted_campaigns(connection, *span)
        count = await count_auctions(connection, *span, [CAMPAIGN])
        found = [one async for one in read_auctions(connection, *span, [CAMPAIGN], one_in=1)]
        other = await count_auctions(connection, *span, [UUID(int=99)])

    [found_campaign] = campaigns
    assert found_campaign == TargetedCampaign(CAMPAIGN, 50.0, 2.0, 0.05)
    assert (count, other) == (4, 0)
    assert [one.at for one in found] == [NOON - number * HOUR for number in (4, 3, 2, 1)]
    assert [bid.outcome for bid in found[0].bids] == ["won", "lost", "removed"]


async def test_the_target_of_a_campaign_that_asks_for_no_conversions_is_per_click(pool: Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(ADD, CAMPAIGN, 5_000, 2_000_000)
        await connection.execute("UPDATE campaigns SET passes_click_id = false")
        await connection.execute(COUNT, NOON - HOUR, CAMPAIGN)

        [found] = await load_targeted_campaigns(connection, NOON - 4 * HOUR, NOON)

    assert found.conversion_rate == 1.0


async def test_without_such_campaigns_or_auctions_one_is_told_what_is_missing(
    pool: Pool, database_url: str
) -> None:
    first = NOON - timedelta(days=4)
    with pytest.raises(LearnCommandError, match="both a budgetDailyPaisa and a targetCpa"):
        await read_own_days(database_url, first, 4)

    await pool.execute(ADD, CAMPAIGN, 5_000, 2_000_000)
    with pytest.raises(LearnCommandError, match="Only 0 auctions"):
        await read_own_days(database_url, first, 4)
