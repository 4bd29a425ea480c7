"""A site with pages and slots, and campaigns that bid for them, on a real product."""

from http import HTTPStatus
from random import Random
from typing import Any

import httpx

from tests.support.admin_api import create

TOPIC = "539"
PAGES = 8
CAMPAIGNS = 6


class ContextualSite:
    """A site whose pages are auctioned again with every change of a bid."""

    def __init__(self, admin: httpx.Client, name: str) -> None:
        self._admin = admin
        self.bids: dict[str, float] = {}
        domain = f"{name}.test"
        site = create(admin, "/admin/sites", domain=domain, cronSchedule=None, approvalMode="automatic")
        self._path = f"/admin/sites/{site['id']}"
        create(
            admin,
            "/admin/placements",
            slug=name,
            label=name,
            layoutType="sidebar_single",
            delivery="contextual",
            siteId=site["id"],
        )
        for number in range(PAGES):
            given = {"url": f"https://{domain}/{number}", "categories": [{"id": TOPIC, "confidence": 0.9}]}
            assert admin.post(f"{self._path}/pages", json=given).status_code == HTTPStatus.OK
        for _ in range(CAMPAIGNS):
            self._add_campaign()

    def _add_campaign(self) -> None:
        admin = self._admin
        banner = create(
            admin,
            "/admin/banners",
            title="Ad",
            primaryImageUrl="https://cdn.example.com/a.png",
            ctaUrl="https://shop.example.com/",
        )
        campaign = create(admin, "/admin/campaigns", name="C", bidAmount=1, categories=[TOPIC])
        create(admin, f"/admin/campaigns/{campaign['id']}/creatives", bannerId=banner["id"])
        assert admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == HTTPStatus.OK
        self.bids[campaign["id"]] = 1

    def change_bids(self, chance: Random) -> None:
        for campaign in self.bids:
            bid = chance.randint(500, 900)  # All of them are near the highest.
            answer = self._admin.patch(f"/admin/campaigns/{campaign}", json={"bidAmount": bid})
            assert answer.status_code == HTTPStatus.OK, answer.text
            self.bids[campaign] = bid

    def pause_some(self, *, left: int) -> None:
        for campaign in list(self.bids)[left:]:
            assert self._admin.patch(f"/admin/campaigns/{campaign}/pause").status_code == HTTPStatus.OK
            del self.bids[campaign]

    def find_wrong(self) -> list[dict[str, Any]]:
        """Return the candidates of pages whose shortlist is not what the catalog says."""
        pages = self._admin.get(f"{self._path}/pages").json()["items"]
        assert len(pages) == PAGES
        wrong = list[dict[str, Any]]()
        for page in pages:
            slots = self._admin.get(f"{self._path}/pages/{page['id']}").json()["slots"]
            listed = {one["campaignId"]: one["maxCpm"] for slot in slots for one in slot["candidates"]}
            if listed != self.bids:
                wrong.append(listed)
        return wrong
