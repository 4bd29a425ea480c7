"""The real product from end to end: an ad is created, served, reported and counted."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.admin_api import create_ad, create_placement
from tests.support.days import these_days
from tests.support.product import Product, wait_until

pytestmark = pytest.mark.process

WORKERS = 2
SERVED_SECONDS_MAX = 60.0
COUNTED_SECONDS_MAX = 60.0
# Each connection reaches one process at random; with this many, a process is missed once in a million runs.
CONNECTIONS = 20 * WORKERS


@pytest.fixture(scope="module")
def product(killed_product: Product) -> Product:
    return killed_product


@pytest.fixture(scope="module")
def admin(product: Product) -> Iterator[httpx.Client]:
    with product.admin() as client:
        yield client


@pytest.fixture(scope="module")
def page() -> Iterator[httpx.Client]:
    """A browser that makes a new connection for each request, so that it meets every process."""
    with httpx.Client(headers={"Connection": "close"}) as client:
        yield client


def count_served_by_all(page: httpx.Client, product: Product, slug: str) -> list[int]:
    """Request over many connections, so that every process answers; return the number of banners in each answer."""
    counts: list[int] = []
    for _ in range(CONNECTIONS):
        answer = page.get(f"{product.delivery_url}/banners/serve/{slug}")
        counts.append(len(answer.json().get("banners", [])))
    return counts


def counted(admin: httpx.Client, banner_id: str) -> tuple[int, int]:
    answer = admin.get("/admin/stats/banners", params={**these_days(), "bannerId": banner_id})
    totals = answer.raise_for_status().json()["totals"]
    return totals["impressions"], totals["clicks"]


def test_everything_that_a_page_needs_is_below_the_prefix(product: Product, page: httpx.Client) -> None:
    below = f"{product.delivery_url}/a"

    script = page.get(f"{below}/loom.js")

    assert script.status_code == 200
    assert page.get(f"{product.delivery_url}{script.headers['content-location']}").text == script.text
    asked = page.post(f"{below}/page", json={"slots": ["not-there"]}).json()
    assert asked["slots"]["not-there"]["errorCode"] == "PLACEMENT_NOT_FOUND"
    assert page.get(f"{below}/items/not-there").json()["errorCode"] == "PLACEMENT_NOT_FOUND"
    assert page.get(f"{below}/items").status_code == 405
    assert page.get(f"{below}/no-such-name").status_code == 404


def test_an_ad_is_served_reported_and_counted(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    placement = create_placement(admin, "all-the-way")
    tag = admin.get(f"/admin/placements/{placement}/tag").json()
    assert tag["scriptUrl"] == f"{product.delivery_url}/a/loom.js"
    ids = create_ad(admin, placement)
    address = f"{product.delivery_url}/banners/serve/all-the-way"
    wait_until(
        lambda: count_served_by_all(page, product, "all-the-way") == [1] * CONNECTIONS,
        seconds=SERVED_SECONDS_MAX,
        what="served",
    )

    [banner] = page.get(address).json()["banners"]
    assert banner["id"] == ids["bannerId"]
    assert 'src="../loom.js"' in page.get(tag["pageUrl"]).text
    assert banner["impressionUrl"].startswith(f"{product.delivery_url}/a/i/")
    assert page.get(banner["impressionUrl"]).headers["content-type"] == "image/gif"
    assert page.get(banner["clickUrl"]).headers["location"] == "https://shop.example.com/"
    report = {"correlationId": "seen-twice", **ids}
    for _ in range(2):
        answer = page.post(f"{product.delivery_url}/banners/events/impression", json=report)
        assert (answer.status_code, answer.json()) == (202, {"accepted": True})

    wait_until(
        lambda: counted(admin, ids["bannerId"]) == (2, 1),
        seconds=COUNTED_SECONDS_MAX,
        what="both impressions counted",
    )


def test_every_delivery_process_follows_a_change(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    ids = create_ad(admin, create_placement(admin, "followed"))
    wait_until(
        lambda: count_served_by_all(page, product, "followed") == [1] * CONNECTIONS,
        seconds=SERVED_SECONDS_MAX,
        what="all serve it",
    )

    assert admin.patch(f"/admin/campaigns/{ids['campaignId']}/pause").status_code == 200

    wait_until(
        lambda: count_served_by_all(page, product, "followed") == [0] * CONNECTIONS,
        seconds=SERVED_SECONDS_MAX,
        what="all stopped",
    )
