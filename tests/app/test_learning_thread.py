"""Learning on the real product from end to end: impressions without clicks change the winner of an auction."""

import urllib.request
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.admin_api import create_ad, create_placement
from tests.support.product import Product, wait_until

pytestmark = pytest.mark.process

VISITORS = 200  # Too few to be marked as a flood.
# The wait, one run of the trainer, and the next model if the first had only some of the examples.
LEARNED_SECONDS_MAX = 90.0
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}


@pytest.fixture(scope="module")
def product(shared_product: Product) -> Product:
    return shared_product


def request_offer(page: httpx.Client, product: Product) -> dict[str, Any] | None:
    answer = page.post(
        f"{product.delivery_url}/api/v1/ads/serve", json={"userId": str(uuid4()), "placement": "learned"}
    )
    return answer.json() if answer.status_code == 200 else None


def metric(product: Product, process: str, name: str) -> float:
    port = product.installation.metrics_ports[process]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def test_an_ad_without_clicks_loses_to_one_with_an_equal_bid(product: Product) -> None:
    with product.admin() as admin, httpx.Client(headers=BROWSER) as page:
        auctioned = {"delivery": "auction", "placementType": "feed", "auctionScoring": "learned"}
        placement = create_placement(admin, "learned", **auctioned)
        older = create_ad(admin, placement, "The older", bidType="cpc", bidAmount=1)["bannerId"]
        wait_until(lambda: request_offer(page, product) is not None, seconds=30, what="an offer")
        younger = create_ad(admin, placement, "The younger", bidType="cpc", bidAmount=1)["bannerId"]
        first = request_offer(page, product)
        assert first is not None
        assert first["adId"] == older, "among equals the older campaign wins"
        for _ in range(VISITORS):
            # It learns meanwhile: on a slow machine the younger wins before the last visitor.
            offer = request_offer(page, product)
            assert offer is not None
            assert page.get(offer["impressionUrl"]).status_code == 200

        def winner() -> str | None:
            offer = request_offer(page, product)
            return None if offer is None else offer["adId"]

        wait_until(lambda: winner() == younger, seconds=LEARNED_SECONDS_MAX, what="another winner")
        assert metric(product, "delivery-1", "adloom_scoring_model_version") >= 1
        wait_until(
            lambda: metric(product, "delivery-1", "adloom_scoring_model_examples") > VISITORS / 4,
            seconds=LEARNED_SECONDS_MAX,
            what="the examples of the other visitors",
        )
