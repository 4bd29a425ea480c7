"""Law 2 while processes are killed: no budget is overspent at any time, and what was held is spent in the end.

`ADLOOM_CHAOS_SEEDS=20` attacks with 20 seeds instead of one.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from adloom.budgets.messages import MoneyKind
from adloom.runtime.postgres import POSTGRES_AWAY
from simulation.laws import EventKey
from tests.chaos.attack import Attack
from tests.chaos.budgets.conftest import MANY_READERS
from tests.chaos.budgets.market import PRICE_MICROS, PRICE_PAISA, Market, awaited
from tests.chaos.budgets.readers import Readers, event_key
from tests.support.product import NO_CRAWLS, Product, a_data_folder, adloom

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

SEEDS = range(int(os.environ.get("ADLOOM_CHAOS_SEEDS", "1")))
OFFERS = 400
BUDGET_MICROS = OFFERS * PRICE_MICROS
READERS = 6
KILLS = 6
HOLD_SECONDS = 5
LEASED_SECONDS_MAX = 60.0
POLL_SECONDS = 1.0
# A process that died is given up after 10 seconds, and what it may have given comes back after the hold.
SPENT_SECONDS_MAX = 90.0
BRISK_SECONDS_MEAN = 0.1


@pytest.fixture
def attacked() -> Iterator[Market]:
    variables = {**MANY_READERS, "ADLOOM_HOLD_SECONDS": str(HOLD_SECONDS)}
    with (
        a_data_folder() as folder,
        Product(folder / "data", "--empty", "--workers", "2", *NO_CRAWLS, variables=variables) as product,
        product.wait_until_ready().admin() as admin,
    ):
        yield Market(product, admin)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_budget_is_spent_exactly_whatever_is_killed(attacked: Market, seed: int) -> None:
    payer = attacked.a_payer(dailyBudgetPaisa=OFFERS * PRICE_PAISA)
    limits = {"budgetDailyPaisa": OFFERS * PRICE_PAISA, "advertiserId": payer}
    campaign = attacked.an_ad("attacked", **limits)
    await attacked.offered(["attacked"], count=1, seconds=LEASED_SECONDS_MAX)
    readers = Readers(attacked.product.delivery_url, "attacked", seed)
    attack, ending = Attack(attacked.product, readers.witness, seed), asyncio.Event()
    started_at = time.monotonic()

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(overspent(attacked, campaign, ending))
        group.create_task(readers.run(count=READERS, ending=ending))
        await attack.run(kills=KILLS)
        killed_at, seen = time.monotonic(), len(readers.witness.accepted)
        readers.pause_seconds_mean = BRISK_SECONDS_MEAN
        await attacked.charged([campaign], count=OFFERS, seconds=SPENT_SECONDS_MAX)
        spent_at = time.monotonic()
        ending.set()

    print(f"seed {seed}: {seen} seen in {killed_at - started_at:.0f} s, {dict(attack.kills)} were killed")  # noqa: T201 - the report
    print(f"{len(readers.offers)} offers, all spent after {spent_at - killed_at:.0f} s more")  # noqa: T201 - likewise
    assert watching.result() == []
    assert all(attack.kills[victim] for victim in ("delivery", "worker", "valkey", "postgres"))
    assert seen < OFFERS, "they were killed in the middle"
    assert readers.repeated_offers == 0
    await check_entries(attacked, campaign, readers)
    assert await attacked.asked(["attacked"] * 100) == []
    today = datetime.now(UTC).date().isoformat()
    proof = adloom("doctor", "--money", "--day", today, "--data-dir", str(attacked.product.data_dir))
    assert (proof.code, "The books agree." in proof.out) == (0, True), proof


async def overspent(market: Market, campaign: str, ending: asyncio.Event) -> list[str]:
    """Look every second whether more is charged, or committed, than there is."""
    found: list[str] = []
    while not ending.is_set():
        with contextlib.suppress(*POSTGRES_AWAY):
            charged = sum(entry.amount for entry in await market.charges([campaign]))
            if charged > BUDGET_MICROS:
                found.append(f"{charged} micros are charged")
            state = await market.state(campaign)
            if state is not None and state.spent_total + state.outstanding > BUDGET_MICROS:
                found.append(f"{state.spent_total} are spent and {state.outstanding} leased")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await ending.wait()
    return found


async def check_entries(market: Market, campaign: str, readers: Readers) -> None:
    """Check that everything seen is in the money ledger once: charged, or unbilled where nothing was left."""

    async def keys() -> list[EventKey]:
        entries = await market.entries(campaign)
        return [event_key(one.request_id, one.slot or 0) for one in entries if one.kind != MoneyKind.RELEASE]

    witness = readers.witness
    known = await awaited(keys, lambda found: witness.accepted <= set(found), seconds=SPENT_SECONDS_MAX)

    assert set(known) <= witness.sent
    assert len(known) == len(set(known))
    assert sum(one.amount for one in await market.charges([campaign])) == BUDGET_MICROS
