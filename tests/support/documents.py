"""Documents of a whole catalog, and a client that imports them."""

from typing import Any

import msgspec

from tests.support.builders import Json
from tests.support.control import Client, problem

PLACEMENT: Json = {"slug": "hero", "label": "Hero", "layoutType": "full_slider"}
MARKET_ACTIVE = 2
BANNER: Json = {"title": "Tea", "primaryImageUrl": "https://cdn.example.com/tea.png"}


def a_document(**lists: Any) -> Json:
    """A campaign with all that it needs, named by keys."""
    return {
        "placements": [{"key": "p", **PLACEMENT}],
        "banners": [{"key": "b", **BANNER}],
        "campaigns": [{"key": "c", "name": "Autumn", "status": "active"}],
        "links": [{"campaignId": "c", "placementId": "hero"}],
        "assignments": [{"campaignId": "c", "placementId": "p", "bannerId": "b", "weight": 5}],
        "targetingRules": [{"campaignId": "c", "ruleType": "country", "operator": "in", "value": ["in"]}],
        **lists,
    }


def a_large_market(size: int) -> Json:
    """An auctioned placement with an active campaign of two banners, and a paused one with all others."""
    banners = [f"b{number}" for number in range(size)]
    owners = ["active" if number < MARKET_ACTIVE else "paused" for number in range(size)]
    return {
        "placements": [{"key": "p", **PLACEMENT, "delivery": "auction"}],
        "banners": [{"key": key, **BANNER} for key in banners],
        "campaigns": [
            {"key": status, "name": status, "status": status, "bidAmount": 5}
            for status in ("active", "paused")
        ],
        "links": [{"campaignId": status, "placementId": "hero"} for status in ("active", "paused")],
        "assignments": [
            {"campaignId": owner, "placementId": "p", "bannerId": key}
            for owner, key in zip(owners, banners, strict=True)
        ],
    }


class Importer:
    """Imports and exports documents as one client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def sent(self, document: Any, *, media_type: str = "application/json", **query: str) -> Any:
        body = document if isinstance(document, bytes) else msgspec.json.encode(document)
        return await self.client.post(
            "/admin/import", content=body, params=query, headers={"Content-Type": media_type}
        )

    async def imported(self, document: Any, **options: str) -> Json:
        answer = await self.sent(document, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def problems(self, document: Any, **options: str) -> dict[str, str]:
        body = problem(await self.sent(document, **options), 400, "VALIDATION_FAILED")
        return {entry["field"]: entry["message"] for entry in body["errors"]}

    async def exported(self) -> Json:
        return (await self.client.get("/admin/export")).json()
