"""Law 1 on real processes: they are killed one after another while clients report.

`ADLOOM_CHAOS_SEEDS=20` attacks with 20 seeds instead of one. The seed decides who is killed and what is
sent; how far each was just then is the machine's, so the same seed is not quite the same run.
"""

import asyncio
import os
import time

import httpx
import pytest

from simulation.laws import find_violations
from simulation.loop import make_random
from tests.chaos.attack import Attack
from tests.chaos.catalog import some_ads
from tests.chaos.clients import Traffic
from tests.chaos.contextual import ContextualSite
from tests.chaos.stored_events import dead_letters, frequency_violations, read_stored_events, settled
from tests.support.product import Product, wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

SEEDS = range(int(os.environ.get("ADLOOM_CHAOS_SEEDS", "1")))
CLIENTS = 8
KILLS = 12
WORKER_KILLS = 3
AUCTIONED_SECONDS_MAX = (
    60.0  # A worker starts in some seconds, and leads once the lock of the dead one is over.
)


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_202_is_counted_exactly_once_whatever_is_killed(
    product: Product, admin: httpx.Client, seed: int
) -> None:
    ads = some_ads(admin, product.delivery_url, f"chaos-{seed}")
    traffic = Traffic(ads, product.delivery_url, seed)
    attack, ending = Attack(product, traffic.witness, seed), asyncio.Event()

    async with asyncio.TaskGroup() as group:
        group.create_task(traffic.run(clients=CLIENTS, ending=ending))
        await attack.run(kills=KILLS)
        ending.set()
    await settled(product, traffic.witness, quiet_seconds=5)
    stored = await read_stored_events(product, admin, {ids["bannerId"] for ids in ads.ids})

    witness = traffic.witness
    print(f"seed {seed}: {len(witness.sent)} sent, {len(witness.accepted)} accepted")  # noqa: T201 - the report
    print(f"kills {dict(attack.kills)}; answers {dict(sorted(traffic.answers.items()))}")  # noqa: T201 - likewise
    assert traffic.complaints == []
    assert find_violations(witness, stored) == []
    assert await frequency_violations(product) == []
    assert await dead_letters(product) == 0
    assert all(attack.kills[victim] for victim in ("delivery", "worker", "valkey", "postgres"))
    assert len(witness.accepted) > 100


def test_shortlists_are_what_the_catalog_says_after_workers_were_killed_amid_auctions(
    product: Product, admin: httpx.Client
) -> None:
    chance = make_random(1, "auctions")
    site = ContextualSite(admin, "auctioned")
    for _ in range(WORKER_KILLS):
        site.change_bids(chance)
        time.sleep(chance.random())  # Edits are auctioned together after a second: some before the kill.
        product.kill("worker")

    site.pause_some(left=3)

    wait_until(lambda: not site.find_wrong(), seconds=AUCTIONED_SECONDS_MAX, what="all pages are auctioned")
