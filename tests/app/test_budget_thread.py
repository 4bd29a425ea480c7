"""A budget on the real product from end to end: leased, offered, seen, charged and checked."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.support.days import these_days, zone_at_noon
from tests.support.product import Product, adloom, an_open_folder, wait_until

pytestmark = pytest.mark.process

LEASED_SECONDS_MAX = 10.0
CHARGED_SECONDS_MAX = 20.0
REQUESTS = 60


@pytest.fixture(scope="module")
def product() -> Iterator[Product]:
    with an_open_folder() as folder, Product(folder / "data", "--empty", "--workers", "2") as product:
        yield product.wait_until_ready()


@pytest.fixture(scope="module")
def admin(product: Product) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {product.token('admin')}"}
    with httpx.Client(base_url=product.control_url, headers=headers) as client:
        yield client


@pytest.fixture(scope="module")
def page() -> Iterator[httpx.Client]:
    """A browser that makes a new connection for each request, so that it meets every process."""
    with httpx.Client(headers={"Connection": "close"}) as client:
        yield client


def create(admin: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    answer = admin.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def create_ad(admin: httpx.Client, slug: str, **campaign_fields: object) -> dict[str, str]:
    """Create a placement and a campaign with a budget that shows a banner on it; return the ids."""
    placement = create(admin, "/admin/placements", slug=slug, label="Home", layoutType="full_static")
    banner = create(
        admin,
        "/admin/banners",
        title="Autumn",
        primaryImageUrl="https://cdn.example.com/a.png",
        ctaUrl="https://shop.example.com/",
    )
    fields = {"pacingStrategy": "Accelerated", "timezone": zone_at_noon(), **campaign_fields}
    campaign = create(admin, "/admin/campaigns", name="Autumn", **fields)
    links = f"/admin/campaigns/{campaign['id']}/placements"
    create(admin, links, placementId=placement["id"])
    create(admin, f"{links}/{placement['id']}/banners", bannerId=banner["id"])
    assert admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == 200
    return {"bannerId": banner["id"], "placementId": placement["id"], "campaignId": campaign["id"]}


def request_offers(
    page: httpx.Client, product: Product, slug: str, times: int = REQUESTS
) -> list[dict[str, Any]]:
    """Request the placement `times` times; return all offers."""
    offers: list[dict[str, Any]] = []
    for _ in range(times):
        answer = page.get(f"{product.delivery_url}/banners/serve/{slug}")
        assert answer.status_code == 200, answer.text
        offers += answer.json()["banners"]
    return offers


def wait_for_offers(
    page: httpx.Client, product: Product, slug: str, *, count: int, seconds: float
) -> list[Any]:
    """Request until there are `count` offers; every process needs its lease first."""
    offers: list[Any] = []
    ends_at = time.monotonic() + seconds
    while len(offers) < count:
        assert time.monotonic() < ends_at, f"{len(offers)} of {count} offers within {seconds} s"
        offers += request_offers(page, product, slug, 1)
    return offers


def spent(admin: httpx.Client, campaign_id: str) -> int:
    query = {**these_days(), "campaignId": campaign_id}
    return admin.get("/admin/stats/banners", params=query).json()["totals"]["spendPaisa"]


def test_a_budget_for_one_impression_allows_exactly_one(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    # 500 a thousand are 0.50 an impression, which is all that there is.
    ad = create_ad(admin, "one", bidAmount=500, budgetDailyPaisa=50)

    [offer] = wait_for_offers(page, product, "one", count=1, seconds=LEASED_SECONDS_MAX)
    assert request_offers(page, product, "one") == []
    assert page.get(offer["impressionUrl"]).status_code == 200
    wait_until(lambda: spent(admin, ad["campaignId"]) == 50, seconds=CHARGED_SECONDS_MAX, what="a charge")

    assert request_offers(page, product, "one") == []


def test_twice_the_budget_allows_twice_the_impressions(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    ad = create_ad(admin, "raised", bidAmount=500, budgetDailyPaisa=50)
    [first] = wait_for_offers(page, product, "raised", count=1, seconds=LEASED_SECONDS_MAX)
    assert request_offers(page, product, "raised", 10) == []

    path = f"/admin/campaigns/{ad['campaignId']}"
    assert admin.patch(path, json={"budgetDailyPaisa": 100}).status_code == 200
    [second] = wait_for_offers(page, product, "raised", count=1, seconds=LEASED_SECONDS_MAX)
    assert request_offers(page, product, "raised") == []
    for offer in (first, second):
        page.get(offer["impressionUrl"])
    wait_until(lambda: spent(admin, ad["campaignId"]) == 100, seconds=CHARGED_SECONDS_MAX, what="two charges")


def test_an_advertisers_budget_is_shared_by_its_campaigns(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    advertiser = create(admin, "/admin/advertisers", name="A", dailyBudgetPaisa=50, timezone=zone_at_noon())
    for number in range(3):
        create_ad(admin, f"shared-{number}", bidAmount=500, advertiserId=advertiser["id"])

    offers: list[Any] = []
    ends_at = time.monotonic() + LEASED_SECONDS_MAX
    while time.monotonic() < ends_at:
        offers += [
            offer for number in range(3) for offer in request_offers(page, product, f"shared-{number}", 2)
        ]

    assert len(offers) == 1


def test_a_cpc_campaign_is_charged_for_its_click(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    ad = create_ad(admin, "clicks", bidType="cpc", bidAmount=0.3, budgetDailyPaisa=60)

    offers = wait_for_offers(page, product, "clicks", count=2, seconds=LEASED_SECONDS_MAX)
    assert request_offers(page, product, "clicks") == []
    for offer in offers:
        page.get(offer["impressionUrl"])
    assert page.get(offers[0]["clickUrl"]).status_code == 302

    wait_until(lambda: spent(admin, ad["campaignId"]) == 30, seconds=CHARGED_SECONDS_MAX, what="a charge")


def test_the_doctor_confirms_that_charges_and_totals_agree(product: Product) -> None:
    today = datetime.now(UTC).date().isoformat()

    proof = adloom("doctor", "--money", "--day", today, "--data-dir", str(product.data_dir))
    whole = adloom("doctor", "--data-dir", str(product.data_dir))

    assert (proof.code, "The books agree." in proof.out) == (0, True), proof
    assert "the books agree" in whole.out, whole
