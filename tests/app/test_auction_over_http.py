"""Auctions on the real product over HTTP: winners, prices, charges, records and explanations."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from adloom.core.caller import Role
from tests.support.days import these_days, zone_at_noon
from tests.support.product import Product, adloom, wait_until

pytestmark = pytest.mark.process

SERVED_SECONDS_MAX = 60.0
CHARGED_SECONDS_MAX = 60.0
RECORDED_SECONDS_MAX = 60.0


class Market:
    """Makes placements and ads over the admin API, and requests ads as a page does."""

    def __init__(self, product: Product, admin: httpx.Client, page: httpx.Client) -> None:
        self.product = product
        self.admin = admin
        self.page = page
        self._made = 0

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.admin.post(path, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def a_placement(self, **fields: Any) -> dict[str, Any]:
        """Make a placement of a type of its own."""
        self._made += 1
        name = f"market-{self._made}"
        kind = {"slug": name, "label": "M", "layoutType": "full_static", "placementType": name}
        return self.post("/admin/placements", {**kind, "delivery": "auction", **fields})

    def an_ad(self, placement: dict[str, Any], title: str, **parts: dict[str, Any]) -> dict[str, str]:
        banner = self.post(
            "/admin/banners",
            {
                "title": title,
                "primaryImageUrl": "https://cdn.example.com/a.png",
                "ctaUrl": "https://shop.example.com/",
                **parts.get("banner", {}),
            },
        )
        for cap in parts.get("caps", {}).items():
            window, most = cap
            body = {"adId": banner["id"], "maxImpressionsPerUser": most, "window": window}
            self.post("/api/v1/admin/frequency/caps", body)
        campaign = self.post(
            "/admin/campaigns",
            {
                "name": title,
                "pacingStrategy": "Accelerated",
                "timezone": zone_at_noon(),
                **parts.get("campaign", {}),
            },
        )
        links = f"/admin/campaigns/{campaign['id']}/placements"
        self.post(links, {"placementId": placement["id"]})
        self.post(f"{links}/{placement['id']}/banners", {"bannerId": banner["id"]})
        if "rule" in parts:
            self.post("/admin/targeting-rules", {"campaignId": campaign["id"], **parts["rule"]})
        assert self.admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == 200
        return {"adId": banner["id"], "campaignId": campaign["id"]}

    def request_ad(self, placement: dict[str, Any], **body: Any) -> httpx.Response:
        fields = {"userId": str(uuid4()), "placementType": placement["placementType"], **body}
        return self.page.post("/api/v1/ads/serve", json=fields)

    def won(self, placement: dict[str, Any], **body: Any) -> dict[str, Any] | None:
        answer = self.request_ad(placement, **body)
        assert answer.status_code in {200, 204}, answer.text
        return answer.json() if answer.status_code == 200 else None

    def winner(self, placement: dict[str, Any], **body: Any) -> str | None:
        won = self.won(placement, **body)
        return None if won is None else won["headline"]

    def wait_for_winner(self, placement: dict[str, Any], title: str, **body: Any) -> dict[str, Any]:
        """Wait until the ad that was made last wins; return the offer."""
        found: list[dict[str, Any]] = []

        def has_won() -> bool:
            answer = self.request_ad(placement, **body)
            if answer.status_code == 200:
                found[:] = [answer.json()]
            return bool(found) and found[0]["headline"] == title

        wait_until(has_won, seconds=SERVED_SECONDS_MAX, what=f"{title} wins")
        return found[0]

    def explain(self, placement: dict[str, Any], **body: Any) -> dict[str, Any]:
        fields = {"userId": str(uuid4()), "placementType": placement["placementType"], **body}
        answer = self.admin.post("/api/v1/ads/explain", json=fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def spent(self, campaign_id: str) -> int:
        query = {**these_days(), "campaignId": campaign_id}
        answer = self.admin.get("/admin/stats/banners", params=query).raise_for_status()
        return answer.json()["totals"]["spendPaisa"]


@pytest.fixture(scope="module")
def market(shared_product: Product) -> Iterator[Market]:
    headers = {"Authorization": f"Bearer {shared_product.token()}"}
    with (
        httpx.Client(base_url=shared_product.control_url, headers=headers, timeout=30) as admin,
        httpx.Client(base_url=shared_product.delivery_url, timeout=30) as page,
    ):
        yield Market(shared_product, admin, page)


def cpm(bid: float, **fields: Any) -> dict[str, Any]:
    return {"bidType": "cpm", "bidAmount": bid, **fields}


def cpc(bid: float, **fields: Any) -> dict[str, Any]:
    return {"bidType": "cpc", "bidAmount": bid, **fields}


def test_a_cpc_bid_wins_for_high_intent_visitors_and_a_cpm_bid_for_the_others(market: Market) -> None:
    placement = market.a_placement()
    market.an_ad(placement, "impressions", campaign=cpm(5.5))
    market.an_ad(placement, "clicks", campaign=cpc(0.25))
    high_intent = {"segment": "high-intent"}

    # A click is worth 5.00 a thousand impressions at 2 %, and 6.25 where it is a quarter more likely.
    eager = market.wait_for_winner(placement, "clicks", userContext=high_intent)
    others = market.won(placement)

    assert (eager["finalPrice"], eager["adFormat"]) == (5.51, "single_image")
    assert others is not None
    assert (others["headline"], others["finalPrice"]) == ("impressions", 5.01)


def test_an_impression_is_charged_at_the_second_price(market: Market) -> None:
    placement = market.a_placement()
    market.an_ad(placement, "second", campaign=cpm(399.99))
    ad = market.an_ad(placement, "first", campaign=cpm(1_000, budgetDailyPaisa=1_000))

    offer = market.wait_for_winner(placement, "first")
    assert offer["finalPrice"] == 400
    assert market.page.get(offer["impressionUrl"]).status_code == 200

    # 400 a thousand are 0.40 an impression.
    wait_until(lambda: market.spent(ad["campaignId"]) == 40, seconds=CHARGED_SECONDS_MAX, what="a charge")


def test_a_click_is_charged_at_its_share_of_the_bid(market: Market) -> None:
    placement = market.a_placement()
    other = market.an_ad(placement, "second", campaign=cpm(9.99))
    # 1.00 a click is 20.00 a thousand impressions; 10.00 is half of it.
    ad = market.an_ad(placement, "first", campaign=cpc(1, budgetDailyPaisa=1_000))

    offer = market.wait_for_winner(placement, "first")
    report = {"adId": ad["adId"], "userId": str(uuid4()), "trackingToken": offer["trackingToken"]}
    for _ in range(2):
        assert market.page.post("/api/v1/ads/events/impression", json=report).status_code == 202
        assert market.page.post("/api/v1/ads/events/click", json=report).status_code == 202
    refused = [
        market.page.post("/api/v1/ads/events/click", json={**report, **changed})
        for changed in ({"adId": other["adId"]}, {"adId": str(uuid4())}, {"trackingToken": "forged"})
    ]

    assert [(one.status_code, one.json()["errorCode"]) for one in refused] == [
        (403, "TRACKING_TOKEN_INVALID"),
        (404, "BANNER_NOT_FOUND"),
        (403, "TRACKING_TOKEN_INVALID"),
    ]
    wait_until(lambda: market.spent(ad["campaignId"]) == 50, seconds=CHARGED_SECONDS_MAX, what="a charge")


def test_a_frequency_cap_stops_at_its_last_impression(market: Market) -> None:
    placement = market.a_placement()
    market.an_ad(placement, "often", campaign=cpm(1))
    ad = market.an_ad(placement, "twice", campaign=cpm(2), caps={"Day": 5, "Lifetime": 2})
    user = str(uuid4())
    market.wait_for_winner(placement, "twice")

    for number in range(2):
        offer = market.won(placement, userId=user)
        assert offer is not None
        assert offer["headline"] == "twice", number
        if number:
            assert market.page.get(offer["impressionUrl"]).status_code == 200
        else:
            report = {"adId": ad["adId"], "userId": user, "trackingToken": offer["trackingToken"]}
            assert market.page.post("/api/v1/ads/events/impression", json=report).status_code == 202

    wait_until(
        lambda: market.winner(placement, userId=user) == "often", seconds=CHARGED_SECONDS_MAX, what="the cap"
    )
    assert market.winner(placement) == "twice"
    removed = {one["adId"]: one["removedBy"] for one in market.explain(placement, userId=user)["candidates"]}
    assert removed[ad["adId"]] == "frequency_cap"


def test_an_explanation_agrees_with_the_offer_and_the_record(market: Market) -> None:
    placement = market.a_placement(floorCpm=0.5)
    ads = {
        "mobile": market.an_ad(
            placement,
            "mobile",
            campaign=cpm(9),
            rule={"ruleType": "device", "operator": "in", "value": ["mobile"]},
        ),
        "under": market.an_ad(placement, "under", campaign=cpm(0.4)),
        "second": market.an_ad(placement, "second", campaign=cpc(0.1)),
        "first": market.an_ad(placement, "first", campaign=cpm(4), banner={"videoUrl": "https://cdn/a.mp4"}),
    }
    context = {"device": "desktop", "country": "DE"}

    offer = market.wait_for_winner(placement, "first", userContext=context)
    explanation = market.explain(placement, userContext=context)

    assert (explanation["winner"], explanation["finalPrice"]) == (offer["adId"], offer["finalPrice"])
    assert (offer["finalPrice"], offer["adFormat"]) == (2.01, "video")
    # Its quality is 1.1, so 2.01 of 4.40 are 1.8273 of the 4.00 that were bid.
    assert explanation["charge"] == 1.8273
    by_ad = {one["adId"]: one for one in explanation["candidates"]}
    outcomes = {
        name: (by_ad[ad["adId"]]["outcome"], by_ad[ad["adId"]]["removedBy"]) for name, ad in ads.items()
    }
    assert outcomes == {
        "first": ("won", None),
        "second": ("lost", None),
        "under": ("removed", "floor"),
        "mobile": ("removed", "targeting:device"),
    }
    second = by_ad[ads["second"]["adId"]]
    assert (second["bidAmount"], second["predictedCtr"], second["ecpm"]) == (100, 0.02, 2)
    # The winner's campaign is younger, so an equal eCPM would win.
    assert second["wouldHaveToBid"] == 0.22

    auction = recorded(market, offer["auctionId"])
    assert auction["winningAdId"] == offer["adId"]
    assert (auction["finalPrice"], auction["winningeCPM"], auction["bidCount"]) == (2.01, 4.4, 2)
    assert {one["adId"]: (one["outcome"], one["removedBy"]) for one in auction["bids"]} == {
        one["adId"]: (one["outcome"], one["removedBy"]) for one in explanation["candidates"]
    }


def recorded(market: Market, auction_id: str) -> dict[str, Any]:
    path = f"/api/v1/admin/auctions/{auction_id}"
    wait_until(
        lambda: market.admin.get(path).status_code == 200, seconds=RECORDED_SECONDS_MAX, what="the auction"
    )
    return market.admin.get(path).json()


def test_an_advertiser_sees_its_own_candidates_only(market: Market) -> None:
    advertiser = market.post("/admin/advertisers", {"name": "Two"})
    placement = market.a_placement()
    own = market.an_ad(placement, "own", campaign=cpm(1, advertiserId=advertiser["id"]))
    market.an_ad(placement, "other", campaign=cpm(2))
    market.wait_for_winner(placement, "other")
    token = market.product.token(Role.ADVERTISER, UUID(advertiser["id"]))

    answer = market.admin.post(
        "/api/v1/ads/explain",
        json={"userId": str(uuid4()), "placement": placement["slug"]},
        headers={"Authorization": f"Bearer {token}"},
    )

    explanation = answer.json()
    assert (explanation["winner"], explanation["finalPrice"], explanation["charge"]) == (None, None, None)
    assert [(one["adId"], one["outcome"]) for one in explanation["candidates"]] == [
        (None, "won"),
        (own["adId"], "lost"),
    ]
    assert explanation["candidates"][1]["wouldHaveToBid"] == 2


def test_a_publisher_may_not_explain_auctions(market: Market) -> None:
    token = market.product.token(Role.PUBLISHER, uuid4())

    answer = market.admin.post(
        "/api/v1/ads/explain",
        json={"userId": str(uuid4())},
        headers={"Authorization": f"Bearer {token}"},
    )

    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"userId": "x"}, 400, "userId"),
        ({}, 400, "userId"),
        ({"userId": str(UUID(int=1)), "userContext": {"device": 1}}, 400, "userContext.device"),
        ({"userId": str(UUID(int=1)), "userContext": {str(n): "" for n in range(4_000)}}, 400, "userContext"),
        ({"userId": str(UUID(int=1)), "placement": "nowhere"}, 404, None),
        ({"userId": str(UUID(int=1)), "userContext": {f"key-{n}": "" for n in range(10_000)}}, 413, None),
        ({"userId": str(UUID(int=1)), "userContext": {"a": "b" * 10_000_000}}, 413, None),
    ],
    ids=["user", "no user", "device", "many keys", "placement", "long", "very long"],
)
def test_an_invalid_request_is_refused(
    market: Market, body: dict[str, Any], status: int, field: str | None
) -> None:
    answer = market.page.post("/api/v1/ads/serve", json=body)

    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    if field is not None:
        assert [one["field"] for one in answer.json()["errors"]] == [field]


def test_a_report_without_a_token_counts_apart_on_the_oldest_placement_of_its_ad(market: Market) -> None:
    placement, elsewhere = market.a_placement(), market.a_placement()
    ad = market.an_ad(placement, "one", campaign=cpm(1))
    market.wait_for_winner(placement, "one")
    report = {"adId": ad["adId"], "userId": str(uuid4()), "timestamp": datetime.now(UTC).isoformat()}

    for _ in range(3):
        assert market.page.post("/api/v1/ads/events/impression", json=report).status_code == 202
    query = {**these_days(), "placementId": placement["id"]}

    def counted() -> int:
        answer = market.admin.get("/admin/stats/banners", params=query).raise_for_status()
        return answer.json()["totals"]["impressions"]

    wait_until(lambda: counted() == 1, seconds=CHARGED_SECONDS_MAX, what="an impression")
    links = f"/admin/campaigns/{ad['campaignId']}/placements"
    market.post(links, {"placementId": elsewhere["id"]})
    market.post(f"{links}/{elsewhere['id']}/banners", {"bannerId": ad["adId"]})
    market.wait_for_winner(elsewhere, "one")
    again = market.page.post("/api/v1/ads/events/impression", json={**report, "correlationId": "again"})
    unknown = market.page.post("/api/v1/ads/events/click", json={**report, "adId": str(uuid4())})

    assert again.status_code == 202
    wait_until(lambda: counted() == 2, seconds=CHARGED_SECONDS_MAX, what="both impressions")
    totals = market.admin.get("/admin/stats/banners", params=query).json()["totals"]
    assert totals["unboundImpressions"] == 2
    assert (unknown.status_code, unknown.json()["errorCode"]) == (404, "BANNER_NOT_FOUND")


def test_the_doctor_confirms_that_charges_and_totals_agree(market: Market) -> None:
    today = datetime.now(UTC).date().isoformat()

    proof = adloom("doctor", "--money", "--day", today, "--data-dir", str(market.product.data_dir))

    assert (proof.code, "The books agree." in proof.out) == (0, True), proof
