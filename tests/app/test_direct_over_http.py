"""Direct delivery on the real product, as tables: every schedule state and ordering rule over HTTP."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.product import Product, wait_until

pytestmark = pytest.mark.process

NOW = datetime.now(UTC)
SERVED_SECONDS_MAX = 60.0

HOUR = timedelta(hours=1)
SCHEDULES: list[tuple[str, timedelta | None, timedelta | None, bool]] = [
    ("evergreen", None, None, True),
    ("draft", None, None, False),
    ("expired", None, None, False),
    ("scheduled", -HOUR, None, True),
    ("scheduled", HOUR, None, False),
    ("active", -HOUR, HOUR, True),
    ("active", -2 * HOUR, -HOUR, False),
]
ORDERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("assignment", {"displayOrder": 0, "weight": 1}, {"displayOrder": 1, "weight": 9}),
    ("assignment", {"weight": 9}, {"weight": 1}),
    ("campaign", {"priority": 2}, {"priority": 1}),
    ("banner", {"priority": 2}, {"priority": 1}),
]


class DirectCatalog:
    """Makes ads over the admin API, and requests them as a visitor's page does."""

    def __init__(self, admin: httpx.Client, page: httpx.Client) -> None:
        self._admin = admin
        self._page = page
        self._made = 0

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._admin.post(f"/admin/{path}", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def a_placement(self) -> dict[str, Any]:
        self._made += 1
        slug = f"table-{self._made}"
        return self.post(
            "placements", {"slug": slug, "label": "T", "layoutType": "full_slider", "maxBanners": 5}
        )

    def an_ad(self, placement: dict[str, Any], title: str, **parts: dict[str, Any]) -> dict[str, Any]:
        banner = self.post(
            "banners",
            {"title": title, "primaryImageUrl": "https://cdn.example.com/a.png", **parts.get("banner", {})},
        )
        campaign = self.post("campaigns", {"name": title, **parts.get("campaign", {})})
        links = f"campaigns/{campaign['id']}/placements"
        self.post(links, {"placementId": placement["id"]})
        self.post(
            f"{links}/{placement['id']}/banners", {"bannerId": banner["id"], **parts.get("assignment", {})}
        )
        assert self._admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == 200
        return campaign

    def wait_for_changes(self, placement: dict[str, Any]) -> None:
        """Add one more ad and wait for it: after that, all earlier changes are served."""
        self.an_ad(placement, "last", assignment={"displayOrder": 99})
        wait_until(lambda: "last" in self.titles(placement), seconds=SERVED_SECONDS_MAX, what="served")

    def titles(self, placement: dict[str, Any]) -> list[str]:
        answer = self._page.get(f"/banners/serve/{placement['slug']}")
        return [one["title"] for one in answer.json().get("banners", [])]


@pytest.fixture(scope="module")
def catalog(shared_product: Product) -> Iterator[DirectCatalog]:
    headers = {"Authorization": f"Bearer {shared_product.token()}"}
    with (
        httpx.Client(base_url=shared_product.control_url, headers=headers) as admin,
        httpx.Client(base_url=shared_product.delivery_url) as page,
    ):
        yield DirectCatalog(admin, page)


@pytest.mark.parametrize(("status", "publish", "expires", "serves"), SCHEDULES)
def test_a_banner_is_served_according_to_its_schedule(
    catalog: DirectCatalog, status: str, publish: timedelta | None, expires: timedelta | None, *, serves: bool
) -> None:
    placement = catalog.a_placement()
    dates = {"publishAt": publish, "expiresAt": expires}
    fields = {name: (NOW + shift).isoformat() for name, shift in dates.items() if shift is not None}
    catalog.an_ad(placement, "ad", banner={"scheduleStatus": status, **fields})

    catalog.wait_for_changes(placement)

    assert ("ad" in catalog.titles(placement)) is serves


@pytest.mark.parametrize(("part", "first", "second"), ORDERS)
def test_slots_are_filled_in_order(
    catalog: DirectCatalog, part: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    placement = catalog.a_placement()
    catalog.an_ad(placement, "second", **{part: second})
    catalog.an_ad(placement, "first", **{part: first})

    catalog.wait_for_changes(placement)

    assert catalog.titles(placement) == ["first", "second", "last"]
