"""Direct delivery on the real product, as tables: every operator, schedule state and ordering rule over HTTP."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.product import Product, wait_until

pytestmark = pytest.mark.process

NOW = datetime.now(UTC)
HOURS = [NOW.hour, (NOW.hour + 1) % 24]  # The test may run over the full hour, and over midnight.
DAYS = [NOW.isoweekday() % 7, (NOW.isoweekday() + 1) % 7]
OTHER_HOURS = sorted(set(range(24)) - set(HOURS))
OTHER_DAYS = sorted(set(range(7)) - set(DAYS))
SERVED_SECONDS_MAX = 60.0

VISITORS: list[tuple[str, str, object, dict[str, str], dict[str, str]]] = [
    ("device", "in", ["mobile"], {"device": "mobile"}, {"device": "tablet"}),
    ("device", "not_in", ["mobile"], {"device": "tablet"}, {"device": "mobile"}),
    ("country", "in", ["DE"], {"country": "DE"}, {"country": "FR"}),
    ("country", "not_in", ["DE"], {"country": "FR"}, {"country": "DE"}),
    ("user_segment", "in", ["vip"], {"segment": "vip"}, {"segment": "new"}),
    ("user_segment", "not_in", ["vip"], {}, {"segment": "vip"}),
    ("language", "in", ["de"], {"language": "de-AT"}, {"language": "en"}),
    ("language", "not_in", ["de"], {"language": "en"}, {"language": "de"}),
    ("referrer_domain", "in", ["example.com"], {"referrer": "a.example.com"}, {"referrer": "notexample.com"}),
    ("referrer_domain", "not_in", ["example.com"], {"referrer": "other.org"}, {"referrer": "example.com"}),
    ("login_state", "is", True, {"loggedIn": "true"}, {"loggedIn": "false"}),
    ("new_visitor", "is", False, {"newVisitor": "false"}, {"newVisitor": "true"}),
]
TIMES: list[tuple[str, str, object, bool]] = [
    ("hour_of_day", "between", HOURS, True),
    ("hour_of_day", "in", HOURS, True),
    ("hour_of_day", "in", OTHER_HOURS, False),
    ("hour_of_day", "not_in", OTHER_HOURS, True),
    ("hour_of_day", "not_in", HOURS, False),
    ("day_of_week", "in", DAYS, True),
    ("day_of_week", "in", OTHER_DAYS, False),
    ("day_of_week", "not_in", OTHER_DAYS, True),
    ("day_of_week", "not_in", DAYS, False),
]
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
        if "rule" in parts:
            self.post("targeting-rules", {"campaignId": campaign["id"], **parts["rule"]})
        assert self._admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == 200
        return campaign

    def wait_for_changes(self, placement: dict[str, Any]) -> None:
        """Add one more ad and wait for it: after that, all earlier changes are served."""
        self.an_ad(placement, "last", assignment={"displayOrder": 99})
        wait_until(lambda: "last" in self.titles(placement), seconds=SERVED_SECONDS_MAX, what="served")

    def titles(self, placement: dict[str, Any], **visitor: str) -> list[str]:
        answer = self._page.get(f"/banners/serve/{placement['slug']}", params=visitor)
        return [one["title"] for one in answer.json().get("banners", [])]


@pytest.fixture(scope="module")
def catalog(shared_product: Product) -> Iterator[DirectCatalog]:
    headers = {"Authorization": f"Bearer {shared_product.token()}"}
    with (
        httpx.Client(base_url=shared_product.control_url, headers=headers) as admin,
        httpx.Client(base_url=shared_product.delivery_url) as page,
    ):
        yield DirectCatalog(admin, page)


@pytest.mark.parametrize("row", VISITORS, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_rule_matches_the_right_visitors(
    catalog: DirectCatalog, row: tuple[str, str, object, dict[str, str], dict[str, str]]
) -> None:
    kind, operator, value, inside, outside = row
    placement = catalog.a_placement()
    catalog.an_ad(placement, "ad", rule={"ruleType": kind, "operator": operator, "value": value})

    catalog.wait_for_changes(placement)

    assert catalog.titles(placement, **inside) == ["ad", "last"]
    assert catalog.titles(placement, **outside) == ["last"]


@pytest.mark.parametrize(("kind", "operator", "value", "serves"), TIMES)
def test_a_rule_about_the_time_matches_the_current_time(
    catalog: DirectCatalog, kind: str, operator: str, value: object, *, serves: bool
) -> None:
    placement = catalog.a_placement()
    catalog.an_ad(placement, "ad", rule={"ruleType": kind, "operator": operator, "value": value})

    catalog.wait_for_changes(placement)

    assert ("ad" in catalog.titles(placement)) is serves


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
