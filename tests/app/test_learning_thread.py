"""Learning on the real product from end to end: impressions without clicks change the winner of an auction."""

import urllib.request
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.product import Product, an_open_folder, wait_until

pytestmark = pytest.mark.process

VISITORS = 200  # Too few to be marked as a flood.
# The wait, one run of the trainer, and the next model if the first had only some of the examples.
LEARNED_SECONDS_MAX = 90.0
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}


@pytest.fixture
def product() -> Iterator[Product]:
    variables = {"ADLOOM_LEARNING_WAIT_SECONDS": "2"}
    with an_open_folder() as folder, Product(folder / "data", "--empty", variables=variables) as product:
        yield product.wait_until_ready()


def create(admin: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    answer = admin.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def create_ad(admin: httpx.Client, name: str, placement_id: str) -> str:
    """Create a CPC campaign with one banner; return the id of the banner."""
    banner = create(
        admin,
        "/admin/banners",
        title=name,
        primaryImageUrl="https://cdn.example.com/a.png",
        ctaUrl="https://shop.example.com/",
    )
    campaign = create(admin, "/admin/campaigns", name=name, bidType="cpc", bidAmount=1)
    links = f"/admin/campaigns/{campaign['id']}/placements"
    create(admin, links, placementId=placement_id)
    create(admin, f"{links}/{placement_id}/banners", bannerId=banner["id"])
    assert admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == 200
    return banner["id"]


def request_offer(page: httpx.Client, product: Product) -> dict[str, Any] | None:
    answer = page.post(
        f"{product.delivery_url}/api/v1/ads/serve", json={"userId": str(uuid4()), "placement": "learned"}
    )
    return answer.json() if answer.status_code == 200 else None


def metric(product: Product, process: str, name: str) -> float:
    port = product.installation.metrics_ports[process]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def test_an_ad_without_clicks_loses_to_one_with_an_equal_bid(product: Product) -> None:
    headers = {"Authorization": f"Bearer {product.token('admin')}"}
    with (
        httpx.Client(base_url=product.control_url, headers=headers) as admin,
        httpx.Client(headers=BROWSER) as page,
    ):
        placement = create(
            admin,
            "/admin/placements",
            slug="learned",
            label="Learned",
            layoutType="full_static",
            delivery="auction",
            placementType="feed",
            auctionScoring="learned",
        )
        older = create_ad(admin, "The older", placement["id"])
        wait_until(lambda: request_offer(page, product) is not None, seconds=10, what="an offer")
        younger = create_ad(admin, "The younger", placement["id"])
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
