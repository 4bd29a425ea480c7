"""What readers do changes who wins: served, seen, counted, learned, published and served again, on the real product."""

import urllib.request
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.product import Product, an_open_folder, wait_until

pytestmark = pytest.mark.process

READERS = 200  # Fewer than would be a flood.
# The wait, a turn of the trainer, and where that met only some of them, the next model.
LEARNED_SECONDS_MAX = 90.0
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}


@pytest.fixture
def product() -> Iterator[Product]:
    variables = {"ADLOOM_LEARNING_WAIT_SECONDS": "2"}
    with an_open_folder() as folder, Product(folder / "data", "--empty", variables=variables) as product:
        yield product.wait_until_ready()


def made(admin: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    answer = admin.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def an_ad(admin: httpx.Client, name: str, placement_id: str) -> str:
    """Make a campaign that bids for clicks, with one banner; give the banner."""
    banner = made(
        admin,
        "/admin/banners",
        title=name,
        primaryImageUrl="https://cdn.example.com/a.png",
        ctaUrl="https://shop.example.com/",
    )
    campaign = made(admin, "/admin/campaigns", name=name, bidType="cpc", bidAmount=1)
    links = f"/admin/campaigns/{campaign['id']}/placements"
    made(admin, links, placementId=placement_id)
    made(admin, f"{links}/{placement_id}/banners", bannerId=banner["id"])
    assert admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == 200
    return banner["id"]


def offered(page: httpx.Client, product: Product) -> dict[str, Any] | None:
    answer = page.post(
        f"{product.delivery_url}/api/v1/ads/serve", json={"userId": str(uuid4()), "placement": "learned"}
    )
    return answer.json() if answer.status_code == 200 else None


def metric(product: Product, process: str, name: str) -> float:
    port = product.installation.metrics_ports[process]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def test_an_ad_without_clicks_loses_to_one_that_bids_as_much(product: Product) -> None:
    headers = {"Authorization": f"Bearer {product.token('admin')}"}
    with (
        httpx.Client(base_url=product.control_url, headers=headers) as admin,
        httpx.Client(headers=BROWSER) as page,
    ):
        placement = made(
            admin,
            "/admin/placements",
            slug="learned",
            label="Learned",
            layoutType="full_static",
            delivery="auction",
            placementType="feed",
            auctionScoring="learned",
        )
        older = an_ad(admin, "The older", placement["id"])
        wait_until(lambda: offered(page, product) is not None, seconds=10, what="an offer")
        younger = an_ad(admin, "The younger", placement["id"])
        for _ in range(READERS):
            offer = offered(page, product)
            assert offer is not None
            assert offer["adId"] == older, "among equals the older campaign wins"
            assert page.get(offer["impressionUrl"]).status_code == 200

        def winner() -> str | None:
            offer = offered(page, product)
            return None if offer is None else offer["adId"]

        wait_until(lambda: winner() == younger, seconds=LEARNED_SECONDS_MAX, what="another winner")
        assert metric(product, "delivery-1", "adloom_scoring_model_version") >= 1
        wait_until(
            lambda: metric(product, "delivery-1", "adloom_scoring_model_examples") > READERS / 4,
            seconds=LEARNED_SECONDS_MAX,
            what="what the other readers have taught",
        )
