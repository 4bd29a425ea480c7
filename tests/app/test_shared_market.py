"""The contextual market on two workers that share its actors, on the real product: one dies, and auctions go on."""

import os
import random
import signal
from collections.abc import Iterator

import httpx
import psutil
import pytest

from tests.chaos.contextual import PAGES, ContextualSite
from tests.support.product import NO_CRAWLS, Product, a_data_folder, wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

NAME = "shared-market"
AUCTIONED_SECONDS_MAX = 60.0
FAILOVER_SECONDS_MAX = 60.0


@pytest.fixture
def product() -> Iterator[Product]:
    with (
        a_data_folder() as folder,
        Product(folder / "data", "--empty", "--nats", "--entity-workers", "2", *NO_CRAWLS) as product,
    ):
        yield product.wait_until_ready()


def find_worker(product: Product, name: str) -> int | None:
    for child in psutil.Process(product.process.pid).children():
        try:
            if child.name() == name:
                return child.pid
        except psutil.Error:
            continue
    return None


def test_a_market_on_two_workers_goes_on_with_one(product: Product) -> None:
    chance = random.Random(1)  # noqa: S311 - seeded, so that runs repeat
    with product.admin() as admin, httpx.Client(base_url=product.delivery_url) as page:
        site = ContextualSite(admin, NAME)
        site.pause_some(left=3)  # As many as a slot lists.

        def serve(number: int) -> int:
            url = f"https://{NAME}.test/{number}"
            return page.get("/v1/serve", params={"slot": NAME, "url": url}).status_code

        # Shards still move to the second worker, and a bidder that moves forgets who asked it: half a minute.
        wait_until(lambda: not site.find_wrong(), seconds=FAILOVER_SECONDS_MAX, what="pages are auctioned")
        wait_until(lambda: serve(0) == 200, seconds=AUCTIONED_SECONDS_MAX, what="an ad is served")
        for name in ("worker-1", "worker-2"):
            killed = find_worker(product, name)
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            site.change_bids(chance)
            assert [serve(number) for number in range(PAGES)] == [200] * PAGES

            wait_until(
                lambda: not site.find_wrong(), seconds=FAILOVER_SECONDS_MAX, what="pages are auctioned again"
            )
            wait_until(
                lambda killed=killed, name=name: find_worker(product, name) not in {killed, None},
                seconds=FAILOVER_SECONDS_MAX,
                what="the worker is started again",
            )
        site.pause_some(left=1)
        wait_until(lambda: not site.find_wrong(), seconds=FAILOVER_SECONDS_MAX, what="campaigns leave")
