"""What tests of a real product create over its admin API."""

from http import HTTPStatus
from typing import Any

import httpx


def create(admin: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    answer = admin.post(path, json=body)
    assert answer.status_code == HTTPStatus.CREATED, answer.text
    return answer.json()


def create_placement(admin: httpx.Client, slug: str, **fields: object) -> str:
    """Create a placement, and return its id."""
    return create(admin, "/admin/placements", slug=slug, label=slug, layoutType="full_static", **fields)["id"]


def create_banner(admin: httpx.Client, title: str = "Autumn") -> str:
    """Create a banner, and return its id."""
    addresses = {
        "primaryImageUrl": "https://cdn.example.com/a.png",
        "ctaUrl": "https://shop.example.com/",
    }
    return create(admin, "/admin/banners", title=title, **addresses)["id"]


def create_ad(
    admin: httpx.Client, placement_id: str, name: str = "Autumn", **fields: object
) -> dict[str, str]:
    """Create an active campaign that shows a banner on a placement; return the ids by their names in an event."""
    banner_id = create_banner(admin, name)
    campaign_id = create(admin, "/admin/campaigns", name=name, **fields)["id"]
    links = f"/admin/campaigns/{campaign_id}/placements"
    create(admin, links, placementId=placement_id)
    create(admin, f"{links}/{placement_id}/banners", bannerId=banner_id)
    assert admin.patch(f"/admin/campaigns/{campaign_id}/activate").status_code == HTTPStatus.OK
    return {"bannerId": banner_id, "placementId": placement_id, "campaignId": campaign_id}
