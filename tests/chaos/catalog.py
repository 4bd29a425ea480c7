"""A small catalog on a real product: two placements, three banners, two campaigns."""

from http import HTTPStatus
from typing import Any

import httpx

from tests.chaos.clients import Ads
from tests.support.admin_api import create
from tests.support.product import wait_until

SERVED_SECONDS_MAX = 60.0
CONNECTIONS = 40  # Each meets one of the two delivery processes.


def some_ads(admin: httpx.Client, delivery_url: str, name: str) -> Ads:
    """Make ads, and wait until every delivery process serves them."""
    placements = [
        create(admin, "/admin/placements", slug=slug, label=slug, layoutType="full_slider", maxBanners=3)
        for slug in (f"{name}-home", f"{name}-side")
    ]
    banners = [
        create(
            admin,
            "/admin/banners",
            title=f"Banner {number}",
            primaryImageUrl="https://cdn.example.com/a.png",
            ctaUrl="https://shop.example.com/",
        )
        for number in range(3)
    ]
    # Only what has a cap is counted per visitor.
    for banner in banners[1:]:
        create(
            admin,
            "/api/v1/admin/frequency/caps",
            adId=banner["id"],
            maxImpressionsPerUser=1_000_000,
            window="Lifetime",
        )
    ids = [
        ad
        for number in range(2)
        for ad in _in_a_campaign(admin, f"Campaign {number}", placements[number], banners[number:])
    ]
    slugs = [placement["slug"] for placement in placements]
    for slug in slugs:
        wait_until(
            lambda slug=slug: _is_served_by_all(f"{delivery_url}/banners/serve/{slug}"),
            seconds=SERVED_SECONDS_MAX,
            what=f"{slug} is served",
        )
    return Ads(slugs, ids)


def _in_a_campaign(
    admin: httpx.Client, name: str, placement: dict[str, Any], banners: list[dict[str, Any]]
) -> list[dict[str, str]]:
    campaign = create(admin, "/admin/campaigns", name=name)
    links = f"/admin/campaigns/{campaign['id']}/placements"
    create(admin, links, placementId=placement["id"])
    for banner in banners:
        create(admin, f"{links}/{placement['id']}/banners", bannerId=banner["id"])
    assert admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == HTTPStatus.OK
    ids = [{"bannerId": banner["id"], "placementId": placement["id"]} for banner in banners]
    return [*ids, *({**one, "campaignId": campaign["id"]} for one in ids)]


def _is_served_by_all(address: str) -> bool:
    with httpx.Client(headers={"Connection": "close"}) as page:
        return all(page.get(address).json().get("banners") for _ in range(CONNECTIONS))
