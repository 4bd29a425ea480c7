"""Contextual delivery on the real product over HTTP: pages, auctions, approvals, budgets and explanations."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
import redis

from adloom.budgets.traffic.page_counts import make_pages_key
from tests.support.days import zone_at_noon
from tests.support.product import Product, wait_until

pytestmark = pytest.mark.process

SERVED_SECONDS_MAX = 60.0
CATS, PETS = "424", "422"
SENSITIVE, CONFLICT = "v9i3On", "I4GWl6"
# Each magazine has a topic to itself: campaigns of other tests do not come there.
TOPICS = iter(["240", "241", "242", "243", "244", "245", "246", "247", "248"])


class Magazine:
    """A site with a slot, and a page about a topic."""

    def __init__(
        self, admin: httpx.Client, page: httpx.Client, *, topic: str | None = None, **site: Any
    ) -> None:
        self.admin, self.page = admin, page
        self.topic = topic or next(TOPICS)
        name = f"magazine-{uuid4().hex[:8]}"
        self.domain = f"{name}.test"
        body = {"domain": self.domain, "cronSchedule": None, "approvalMode": "automatic", **site}
        self.site = self.post("/admin/sites", body)
        self.path = f"/admin/sites/{self.site['id']}"
        slot = {"slug": name, "label": "S", "layoutType": "sidebar_single", "delivery": "contextual"}
        self.slot = self.post("/admin/placements", {**slot, "siteId": self.site["id"]})
        given = {"url": self.url, "categories": [{"id": self.topic, "confidence": 0.9}]}
        assert admin.post(f"{self.path}/pages", json=given).status_code == 200

    @property
    def url(self) -> str:
        return f"https://{self.domain}/a"

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.admin.post(path, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def sell(self, **campaign: Any) -> tuple[str, str]:
        """Make an active campaign on the topic, and return its id and its banner's."""
        image = "https://cdn.example.com/a.png"
        banner = self.post(
            "/admin/banners", {"title": "Ad", "primaryImageUrl": image, "ctaUrl": "https://shop.example.com/"}
        )
        body = {"name": "C", "bidAmount": 5, "pacingStrategy": "Accelerated", "timezone": zone_at_noon()}
        made = self.post("/admin/campaigns", {**body, "categories": [self.topic], **campaign})
        self.post(f"/admin/campaigns/{made['id']}/creatives", {"bannerId": banner["id"]})
        assert self.admin.patch(f"/admin/campaigns/{made['id']}/activate").status_code == 200
        return made["id"], banner["id"]

    def ask(self) -> httpx.Response:
        return self.page.get("/v1/serve", params={"slot": self.slot["slug"], "url": self.url})

    def shown(self) -> str | None:
        answer = self.ask()
        return answer.json()["bannerId"] if answer.status_code == 200 else None

    def wait_for(self, banner_id: str) -> None:
        wait_until(lambda: self.shown() == banner_id, seconds=SERVED_SECONDS_MAX, what="the ad is shown")

    def wait_until_gone(self) -> None:
        wait_until(lambda: self.shown() is None, seconds=SERVED_SECONDS_MAX, what="no ad is shown")
        assert [self.shown() for _ in range(5)] == [None] * 5

    def approvals(self, state: str) -> list[str]:
        answer = self.admin.get(f"{self.path}/approvals", params={"state": state})
        assert answer.status_code == 200, answer.text
        return [one["bannerId"] for one in answer.json()["items"]]

    def wait_for_approval_of(self, banner_id: str) -> None:
        wait_until(
            lambda: self.approvals("pending") == [banner_id],
            seconds=SERVED_SECONDS_MAX,
            what="the banner waits for approval",
        )

    def decide(self, decision: str, banner_id: str) -> int:
        body = {"decision": decision, "bannerIds": [banner_id]}
        answer = self.admin.post(f"{self.path}/approvals", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["changed"]


@pytest.fixture
def clients(shared_product: Product) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    token = {"Authorization": f"Bearer {shared_product.token()}"}
    with (
        httpx.Client(base_url=shared_product.control_url, headers=token, timeout=30) as admin,
        httpx.Client(base_url=shared_product.delivery_url, timeout=30) as page,
    ):
        yield admin, page


def test_a_page_gets_an_ad_of_a_category_above_its_own_and_its_requests_are_counted(
    clients: tuple[httpx.Client, httpx.Client], shared_product: Product
) -> None:
    magazine = Magazine(*clients, topic=CATS)
    _, banner_id = magazine.sell(categories=[PETS])

    magazine.wait_for(banner_id)

    ad = magazine.ask().json()
    assert ad["category"] == {"id": PETS, "name": "Pets"}
    assert ad["slot"] == magazine.slot["slug"]

    def is_counted() -> bool:
        with redis.Redis.from_url(shared_product.redis_url) as valkey:
            days = (datetime.now(UTC).date() - timedelta(days=ago) for ago in (0, 1))
            return any(
                magazine.domain in str(field) for day in days for field in valkey.hkeys(make_pages_key(day))
            )

    wait_until(is_counted, seconds=60, what="the requests of the page")
    wait_until(
        lambda: (magazine.admin.get("/admin/overview").json()["totals"]["filled"] or 0) > 0,
        seconds=60,
        what="its requests are in the overview",
    )


def test_a_banner_is_shown_once_its_publisher_approves_it_and_no_more_once_it_is_rejected(
    clients: tuple[httpx.Client, httpx.Client],
) -> None:
    magazine = Magazine(*clients, approvalMode="manual")
    _, banner_id = magazine.sell()
    magazine.wait_for_approval_of(banner_id)
    assert magazine.shown() is None

    assert magazine.decide("approve", banner_id) == 1
    magazine.wait_for(banner_id)
    assert magazine.approvals("approved") == [banner_id]

    assert magazine.decide("reject", banner_id) == 1
    magazine.wait_until_gone()
    assert magazine.decide("reject", banner_id) == 0


def test_a_changed_banner_has_to_be_approved_again(clients: tuple[httpx.Client, httpx.Client]) -> None:
    magazine = Magazine(*clients, approvalMode="manual")
    _, banner_id = magazine.sell()
    magazine.wait_for_approval_of(banner_id)
    magazine.decide("approve", banner_id)

    changed = {"ctaUrl": "https://elsewhere.example.com/"}
    assert magazine.admin.patch(f"/admin/banners/{banner_id}", json=changed).status_code == 200

    assert magazine.approvals("pending") == [banner_id]


def test_the_next_campaign_is_shown_once_the_best_have_spent_their_budgets(
    clients: tuple[httpx.Client, httpx.Client],
) -> None:
    magazine = Magazine(*clients, auctionMode="first_price")
    rich = {magazine.sell(bidAmount=1000 - number, budgetDailyPaisa=100)[1] for number in range(3)}
    _, modest = magazine.sell(bidAmount=250)
    seen: set[str] = set()

    def is_next_shown() -> bool:
        answer = magazine.ask()
        if answer.status_code == 200:
            time.sleep(0.2)  # A report within a moment of its offer is not believed.
            magazine.page.get(answer.json()["impressionUrl"])
            seen.add(answer.json()["bannerId"])
        return modest in seen and seen >= rich

    wait_until(is_next_shown, seconds=60, what="the fourth campaign is shown")


def test_an_auction_is_on_record_for_a_page_and_its_slot(
    clients: tuple[httpx.Client, httpx.Client],
) -> None:
    magazine = Magazine(*clients)
    campaign_id, banner_id = magazine.sell()
    magazine.wait_for(banner_id)

    request_id = magazine.ask().json()["requestId"]

    path = "/api/v1/admin/auctions"
    wait_until(
        lambda: magazine.admin.get(f"{path}/{request_id}").status_code == 200,
        seconds=30,
        what="it is recorded",
    )
    held = magazine.admin.get(f"{path}/{request_id}").json()
    assert (held["placementType"], held["pageUrl"]) == ("contextual", f"{magazine.domain}/a")
    assert held["winningCampaignId"] == campaign_id
    of_slot = {"pageUrl": magazine.url, "placement": magazine.slot["slug"]}
    listed = magazine.admin.get(path, params=of_slot).json()["items"]
    assert request_id in {one["id"] for one in listed}


def test_a_slot_is_explained(clients: tuple[httpx.Client, httpx.Client]) -> None:
    magazine = Magazine(*clients)
    _, banner_id = magazine.sell()
    _, cheap_id = magazine.sell(bidAmount=0.2)
    magazine.wait_for(banner_id)

    body = {"slot": magazine.slot["slug"], "url": magazine.url}
    told = magazine.admin.post("/v1/explain", json=body).json()

    by_banner = {one["bannerId"]: one for one in told["candidates"]}
    assert (told["winner"], told["page"]["state"]) == (banner_id, "known")
    assert 0.5 <= told["priceCpm"] <= 5
    assert by_banner[cheap_id]["removedBy"] == "below_floor"


def test_an_explanation_for_a_visitor_knows_what_it_has_seen(
    clients: tuple[httpx.Client, httpx.Client],
) -> None:
    magazine = Magazine(*clients)
    _, banner_id = magazine.sell()
    cap = {"adId": banner_id, "maxImpressionsPerUser": 1, "window": "Day"}
    magazine.post("/api/v1/admin/frequency/caps", cap)
    asked = {"slot": magazine.slot["slug"], "url": magazine.url, "userId": str(uuid4())}
    magazine.wait_for(banner_id)
    offered = magazine.page.get("/v1/serve", params=asked).json()
    time.sleep(0.2)  # A report within a moment of its offer is not believed.
    assert magazine.page.get(offered["impressionUrl"]).status_code == 200

    def find_reason() -> str | None:
        return magazine.page.get("/v1/serve", params=asked).headers.get("adloom-reason")

    wait_until(lambda: find_reason() == "frequency", seconds=30, what="the cap holds")
    for question, removed_by in ((asked, "frequency"), ({**asked, "userId": None}, None)):
        [told] = magazine.admin.post("/v1/explain", json=question).json()["candidates"]
        assert told["removedBy"] == removed_by


def test_the_next_campaign_fills_a_page_that_the_best_excludes_and_pays_nothing_for_it(
    clients: tuple[httpx.Client, httpx.Client],
) -> None:
    magazine = Magazine(*clients)
    campaign_id, banner_id = magazine.sell(bidAmount=100, excludedCategories=[SENSITIVE])
    _, next_id = magazine.sell(bidAmount=3)
    magazine.wait_for(banner_id)

    categories = [{"id": magazine.topic, "confidence": 0.9}, {"id": CONFLICT, "confidence": 0.2}]
    given = {"url": magazine.url, "categories": categories}
    assert magazine.admin.post(f"{magazine.path}/pages", json=given).status_code == 200

    magazine.wait_for(next_id)
    slug, asked = magazine.slot["slug"], {"url": magazine.url, "slots": [magazine.slot["slug"]]}
    for route in ("/v1/serve/batch", "/v1/serve/page"):
        answer = magazine.page.post(route, json=asked).text
        assert (next_id in answer, banner_id in answer) == (True, False), answer
    told = magazine.admin.post("/v1/explain", json={"slot": slug, "url": magazine.url}).json()
    by_banner = {one["bannerId"]: one["removedBy"] for one in told["candidates"]}
    assert (told["winner"], told["priceCpm"], by_banner) == (
        next_id,
        magazine.site["floorCpm"],
        {next_id: None, banner_id: "category_excluded"},
    )
    path = f"/admin/campaigns/{campaign_id}"
    [reach] = magazine.admin.get(f"{path}/delivery").json()["contextual"]["sites"]
    assert (reach["reached"], reach["removed"]) == (0, {"category_excluded": 1})

    assert magazine.admin.patch(path, json={"excludedCategories": []}).status_code == 200
    magazine.wait_for(banner_id)


def test_a_sites_market_names_demand_and_pages_by_category(
    clients: tuple[httpx.Client, httpx.Client],
) -> None:
    magazine = Magazine(*clients)
    _, banner_id = magazine.sell()
    magazine.wait_for(banner_id)

    market = magazine.admin.get(f"{magazine.path}/market").json()

    [category] = market["categories"]
    assert (category["id"], category["pages"], category["campaigns"]) == (magazine.topic, 1, 1)
    assert market["demand"]["version"] > 0
    page = magazine.admin.get(f"{magazine.path}/pages").json()["items"][0]
    [slot] = magazine.admin.get(f"{magazine.path}/pages/{page['id']}").json()["slots"]
    assert [one["state"] for one in slot["candidates"] if one["bannerId"] == banner_id] == ["serving"]
