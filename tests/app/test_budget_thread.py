"""A budget through the whole house: leased, offered, seen, charged, billed and proven, on the real product."""

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
ASKED = 60


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


def made(admin: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    answer = admin.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def an_ad(admin: httpx.Client, slug: str, **campaign_fields: object) -> dict[str, str]:
    """Make everything that one ad with a budget needs."""
    placement = made(admin, "/admin/placements", slug=slug, label="Home", layoutType="full_static")
    banner = made(
        admin,
        "/admin/banners",
        title="Autumn",
        primaryImageUrl="https://cdn.example.com/a.png",
        ctaUrl="https://shop.example.com/",
    )
    fields = {"pacingStrategy": "Accelerated", "timezone": zone_at_noon(), **campaign_fields}
    campaign = made(admin, "/admin/campaigns", name="Autumn", **fields)
    links = f"/admin/campaigns/{campaign['id']}/placements"
    made(admin, links, placementId=placement["id"])
    made(admin, f"{links}/{placement['id']}/banners", bannerId=banner["id"])
    assert admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == 200
    return {"bannerId": banner["id"], "placementId": placement["id"], "campaignId": campaign["id"]}


def offered(page: httpx.Client, product: Product, slug: str, times: int = ASKED) -> list[dict[str, Any]]:
    """Ask again and again, and give what was offered."""
    offers: list[dict[str, Any]] = []
    for _ in range(times):
        answer = page.get(f"{product.delivery_url}/banners/serve/{slug}")
        assert answer.status_code == 200, answer.text
        offers += answer.json()["banners"]
    return offers


def offered_in_time(
    page: httpx.Client, product: Product, slug: str, *, count: int, seconds: float
) -> list[Any]:
    """Ask until so many were offered; every process has to have its lease first."""
    offers: list[Any] = []
    ends_at = time.monotonic() + seconds
    while len(offers) < count:
        assert time.monotonic() < ends_at, f"{len(offers)} of {count} offers within {seconds} s"
        offers += offered(page, product, slug, 1)
    return offers


def spent(admin: httpx.Client, campaign_id: str) -> int:
    query = {**these_days(), "campaignId": campaign_id}
    return admin.get("/admin/stats/banners", params=query).json()["totals"]["spendPaisa"]


def test_a_budget_of_one_impression_buys_exactly_one(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    # 500 a thousand are 0.50 an impression, which is all that there is.
    ad = an_ad(admin, "one", bidAmount=500, budgetDailyPaisa=50)

    [offer] = offered_in_time(page, product, "one", count=1, seconds=LEASED_SECONDS_MAX)
    assert offered(page, product, "one") == []
    assert page.get(offer["impressionUrl"]).status_code == 200
    wait_until(lambda: spent(admin, ad["campaignId"]) == 50, seconds=CHARGED_SECONDS_MAX, what="a charge")

    assert offered(page, product, "one") == []


def test_raising_a_budget_releases_serving_and_twice_the_budget_buys_twice(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    ad = an_ad(admin, "raised", bidAmount=500, budgetDailyPaisa=50)
    [first] = offered_in_time(page, product, "raised", count=1, seconds=LEASED_SECONDS_MAX)
    assert offered(page, product, "raised", 10) == []

    path = f"/admin/campaigns/{ad['campaignId']}"
    assert admin.patch(path, json={"budgetDailyPaisa": 100}).status_code == 200
    [second] = offered_in_time(page, product, "raised", count=1, seconds=LEASED_SECONDS_MAX)
    assert offered(page, product, "raised") == []
    for offer in (first, second):
        page.get(offer["impressionUrl"])
    wait_until(lambda: spent(admin, ad["campaignId"]) == 100, seconds=CHARGED_SECONDS_MAX, what="two charges")


def test_an_advertisers_budget_is_shared_by_its_campaigns(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    payer = made(admin, "/admin/advertisers", name="A", dailyBudgetPaisa=50, timezone=zone_at_noon())
    for number in range(3):
        an_ad(admin, f"shared-{number}", bidAmount=500, advertiserId=payer["id"])

    offers: list[Any] = []
    ends_at = time.monotonic() + LEASED_SECONDS_MAX
    while time.monotonic() < ends_at:
        offers += [offer for number in range(3) for offer in offered(page, product, f"shared-{number}", 2)]

    assert len(offers) == 1


def test_a_click_is_charged_where_clicks_are_paid_for(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    ad = an_ad(admin, "clicks", bidType="cpc", bidAmount=0.3, budgetDailyPaisa=60)

    offers = offered_in_time(page, product, "clicks", count=2, seconds=LEASED_SECONDS_MAX)
    assert offered(page, product, "clicks") == []
    for offer in offers:
        page.get(offer["impressionUrl"])
    assert page.get(offers[0]["clickUrl"]).status_code == 302

    wait_until(lambda: spent(admin, ad["campaignId"]) == 30, seconds=CHARGED_SECONDS_MAX, what="a charge")


def test_the_doctor_proves_the_bill(product: Product) -> None:
    today = datetime.now(UTC).date().isoformat()

    proof = adloom("doctor", "--money", "--day", today, "--data-dir", str(product.data_dir))
    whole = adloom("doctor", "--data-dir", str(product.data_dir))

    assert (proof.code, "The books agree." in proof.out) == (0, True), proof
    assert "the books agree" in whole.out, whole
