"""The real product from end to end: an ad is created, served, reported and counted."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.days import these_days
from tests.support.product import Product, an_open_folder, wait_until

pytestmark = pytest.mark.process

WORKERS = 2
SERVED_SECONDS_MAX = 10.0
COUNTED_SECONDS_MAX = 20.0
HEALED_SECONDS_MAX = 30.0
# Each connection reaches one process at random; with this many, a process is missed once in a million runs.
CONNECTIONS = 20 * WORKERS


@pytest.fixture(scope="module")
def product() -> Iterator[Product]:
    with (
        an_open_folder() as folder,
        Product(folder / "data", "--empty", "--workers", str(WORKERS)) as product,
    ):
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


def create_ad(admin: httpx.Client, slug: str) -> dict[str, str]:
    """Create a placement and a campaign that shows a banner on it; return the ids by their names in an event."""
    placement = create(admin, "/admin/placements", slug=slug, label="Home", layoutType="full_static")
    banner = create(
        admin,
        "/admin/banners",
        title="Autumn",
        primaryImageUrl="https://cdn.example.com/a.png",
        ctaUrl="https://shop.example.com/",
    )
    campaign = create(admin, "/admin/campaigns", name="Autumn")
    links = f"/admin/campaigns/{campaign['id']}/placements"
    create(admin, links, placementId=placement["id"])
    create(admin, f"{links}/{placement['id']}/banners", bannerId=banner["id"])
    assert admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == 200
    return {"bannerId": banner["id"], "placementId": placement["id"], "campaignId": campaign["id"]}


def count_served_by_all(page: httpx.Client, product: Product, slug: str) -> list[int]:
    """Request over many connections, so that every process answers; return the number of banners in each answer."""
    counts: list[int] = []
    for _ in range(CONNECTIONS):
        answer = page.get(f"{product.delivery_url}/banners/serve/{slug}")
        counts.append(len(answer.json().get("banners", [])))
    return counts


def counted(admin: httpx.Client, banner_id: str) -> tuple[int, int]:
    answer = admin.get("/admin/stats/banners", params={**these_days(), "bannerId": banner_id})
    totals = answer.json()["totals"]
    return totals["impressions"], totals["clicks"]


def test_an_ad_is_served_reported_and_counted(
    product: Product, admin: httpx.Client, page: httpx.Client
) -> None:
    ids = create_ad(admin, "all-the-way")
    address = f"{product.delivery_url}/banners/serve/all-the-way"
    wait_until(
        lambda: count_served_by_all(page, product, "all-the-way") == [1] * CONNECTIONS,
        seconds=SERVED_SECONDS_MAX,
        what="served",
    )

    [banner] = page.get(address).json()["banners"]
    assert banner["id"] == ids["bannerId"]
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
    ids = create_ad(admin, "followed")
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


@pytest.mark.parametrize("victim", ["worker", "postgres", "valkey", "delivery"])
def test_accepted_events_are_counted_once_although_a_process_was_killed(
    product: Product, admin: httpx.Client, page: httpx.Client, victim: str
) -> None:
    ids = create_ad(admin, f"killed-{victim}")
    address = f"{product.delivery_url}/banners/events/impression"
    wait_until(
        lambda: count_served_by_all(page, product, f"killed-{victim}") == [1] * CONNECTIONS,
        seconds=5,
        what="all know it",
    )

    accepted: set[str] = set()
    for number in range(60):
        if number == 20:
            product.kill(victim)
        correlation_id = f"{victim}-{number}"
        try:
            answer = page.post(address, json={"correlationId": correlation_id, **ids})
        except httpx.TransportError:
            continue
        if answer.status_code == 202:
            accepted.add(correlation_id)

    wait_until(product.is_well, seconds=HEALED_SECONDS_MAX, what="healed")
    # An event without a 202 may have been written; sending it again settles it.
    for number in range(60):
        wait_until(
            lambda number=number: (
                page.post(address, json={"correlationId": f"{victim}-{number}", **ids}).status_code == 202
            ),
            seconds=10,
            what="accepted in the end",
        )
    assert len(accepted) >= 20
    wait_until(lambda: counted(admin, ids["bannerId"])[0] >= 60, seconds=15, what="all counted")
    assert counted(admin, ids["bannerId"]) == (60, 0)
