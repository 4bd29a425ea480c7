"""Offers that wait for their advertiser's budget, in the tables: none may wait that is charged."""

import asyncio
from contextlib import suppress

from adloom.budgets.messages import Confirms, MoneyKind
from adloom.core.errors import UnavailableError
from adloom.core.money import Micros
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.budgets.builders import a_confirm
from tests.budgets.worker_stage import (
    ADVERTISER,
    UNIT,
    Process,
    Stage,
    address_of,
    insert_advertiser,
    insert_campaign,
)
from tests.support.eventually import becomes

OFFERS = 20  # So many are written at once.


async def test_confirms_that_come_twice_in_a_batch_leave_no_offer_waiting_that_is_charged(
    pool: Pool, valkey: Valkey
) -> None:
    """They do if nobody took them for long, and their sender did not know whether they had arrived."""
    await insert_advertiser(pool, budget=OFFERS * 100)
    await insert_campaign(pool, advertiser=ADVERTISER, daily=None)
    stage, address = Stage(pool, valkey), address_of(advertiser=ADVERTISER)
    async with stage.running() as budget_actors, Process(valkey).listening() as process:
        lease, granted = 0, 0

        async def has_all() -> bool:
            nonlocal lease, granted
            answer = await process.ask_for_lease(address, lease=lease, want=Micros(OFFERS * UNIT))
            lease, granted = answer.lease, answer.granted
            return granted == OFFERS * UNIT

        await becomes(has_all, seconds=30)
        confirms = Confirms(tuple(a_confirm(number, lease=lease) for number in range(1, OFFERS + 1)))
        host = budget_actors.host
        both = [host.send_durably(address, confirms) for _ in range(2)]
        await asyncio.wait(both)
        with suppress(UnavailableError):
            both[1].result()

        await asyncio.sleep(6)  # So long an offer waits.
        state = await stage.state(advertiser=ADVERTISER)
        answer = await process.ask_for_lease(address, lease=lease)

    rows = await pool.fetch("SELECT kind, count(*) FROM money_entries GROUP BY kind")
    assert [tuple(row) for row in rows] == [(MoneyKind.CHARGE, OFFERS)]
    assert state is not None
    assert not state.waiting
    assert answer.lease == lease, "the campaign goes on"
