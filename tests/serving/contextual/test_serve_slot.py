"""One slot of a page: who may fill it, why nobody does, and at what price."""

import json
from datetime import timedelta

import msgspec
import pytest

from adloom.auction.site_modes import ApprovalMode, AuctionMode, FloorMode
from adloom.budgets.messages import UNHELD_LEASE
from adloom.core.errors import ValidationFailedError
from adloom.core.ids import BannerId
from adloom.core.money import Micros
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.contextual.page_host import SiteHostMismatchError
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.rows import AssignmentStatus
from adloom.serving.request.sender_limits import SenderCheck
from adloom.taxonomy.topics import FILLER, find_topic
from tests.support.contextual_site import (
    FOOD,
    SPORTS,
    TENNIS,
    UNIT,
    Site,
    a_creative,
    banner,
    campaign,
    read_token,
)
from tests.support.rows import an_id


def test_an_ad_has_the_published_shape() -> None:
    ad = Site(
        a_creative(terms={"width": 300, "height": 250, "categories": (SPORTS,)}, description="What it is")
    ).ad()

    assert (ad["slot"], ad["bannerId"], ad["campaignId"]) == ("top", str(banner(1)), str(campaign(1)))
    assert (ad["assetUrl"], ad["mime"]) == ("https://cdn.example.com/a.png", "image/png")
    assert (ad["width"], ad["height"], ad["primaryText"]) == (300, 250, "What it is")
    assert ad["category"] == {"id": SPORTS, "name": "Sports"}
    assert ad["version"] == 7
    assert ad["impressionUrl"].startswith("http://ads.test/i/")
    assert ad["clickUrl"].startswith("http://ads.test/c/")


def test_the_token_charges_the_slots_own_placement_for_an_impression() -> None:
    ad = Site(a_creative(), auction_mode=AuctionMode.FIRST_PRICE).ad()

    offer = read_token(ad)

    assert (offer.placement_id, offer.banner_id, offer.campaign_id) == (an_id(1), banner(1), campaign(1))
    assert offer.charge == 5_000  # A thousandth of 5.


def test_the_token_names_the_category_that_the_slot_was_sold_under() -> None:
    assert find_topic(read_token(Site(a_creative()).ad()).topic) == SPORTS

    filler = Site(a_creative(terms={"takes_filler": True}))
    filler.categories, filler.category = (), None
    assert find_topic(read_token(filler.ad()).topic) == FILLER


def test_without_a_rival_the_floor_is_paid() -> None:
    ad = Site(a_creative()).ad()

    assert read_token(ad).charge == 500


def test_without_a_rival_and_a_floor_an_offer_costs_something() -> None:
    """A campaign takes no report of an offer for nothing: its budget would stand still."""
    assert read_token(Site(a_creative(), floor=Micros(0)).ad()).charge == 1


@pytest.mark.parametrize(
    ("mode", "floor_min", "slot_floor", "paid"),
    [
        (FloorMode.SWEEP, 0.1, 0, 2_000),
        (FloorMode.SWEEP, 0.1, 3, 3_000),
        (FloorMode.SWEEP, 2.5, 0, 2_500),
        (FloorMode.FIXED, 0.1, 0, 500),
    ],
    ids=["the category's", "the slot's", "the least", "fixed"],
)
def test_where_floors_move_the_highest_of_category_slot_and_least_is_paid(
    mode: FloorMode, floor_min: float, slot_floor: float, paid: int
) -> None:
    site = Site(
        a_creative(),
        slot={"floor": Micros(round(slot_floor * UNIT))},
        floor_mode=mode,
        floor_min=Micros(round(floor_min * UNIT)),
    )
    site.category_floor = Micros(2 * UNIT)

    assert read_token(site.ad()).charge == paid


def test_a_bid_under_the_moving_floor_is_not_shown() -> None:
    site = Site(a_creative(cpm=1.9), floor_mode=FloorMode.SWEEP)
    site.category_floor = Micros(2 * UNIT)

    assert site.reason()[1] == "below_floor"


REMOVALS: list[tuple[str, Site]] = [
    ("campaign_inactive", Site(a_creative(status=AssignmentStatus.CAMPAIGN_PAUSED))),
    ("below_floor", Site(a_creative(cpm=0.4))),
    ("below_floor", Site(a_creative(cpm=5), slot={"floor": Micros(6 * UNIT)})),
    ("size_mismatch", Site(a_creative(terms={"width": 728, "height": 90, "categories": (SPORTS,)}), slot={"width": 300, "height": 250})),
    ("ad_product_blocked", Site(a_creative(terms={"product_category": "1004", "categories": (SPORTS,)}), blocked_products=("1002",))),
    ("domain_blocked", Site(a_creative(), blocked_domains=("example.com",))),
    ("site_blocked", Site(a_creative(terms={"blocked_sites": ("example.com",), "categories": (SPORTS,)}))),
    ("category_mismatch", Site(a_creative(terms={"categories": (FOOD,)}))),
    ("category_excluded", Site(a_creative(terms={"categories": (SPORTS,), "excluded_categories": (TENNIS,)}))),
    ("site_suspended", Site(a_creative(), is_suspended=True)),
    ("warmup", Site(a_creative(), is_warming_up=True)),
    ("no_demand", Site()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "site"), REMOVALS, ids=[name for name, _ in REMOVALS])
def test_what_keeps_a_slot_empty_has_its_name(name: str, site: Site) -> None:
    assert site.reason() == ("known", name)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (ApprovalState.PENDING, "not_approved"),
        (ApprovalState.REJECTED, "rejected"),
        (ApprovalState.FLAGGED, "rejected"),
    ],
)
def test_only_what_is_approved_is_shown(state: ApprovalState, reason: str) -> None:
    site = Site(a_creative())
    revoked = frozenset({banner(1)}) if state is ApprovalState.PENDING else frozenset[BannerId]()
    site.approvals = ApprovalRules(ApprovalMode.AUTOMATIC, {banner(1): state}, revoked=revoked)

    assert site.reason() == ("known", reason)


def test_an_approval_is_enough_where_everything_needs_one() -> None:
    site = Site(a_creative())
    site.approvals = ApprovalRules(ApprovalMode.MANUAL)
    assert site.reason() == ("known", "not_approved")

    site.approvals = ApprovalRules(ApprovalMode.MANUAL, {banner(1): ApprovalState.APPROVED})
    assert site.ad()["bannerId"] == str(banner(1))


def test_a_shortlist_of_before_does_not_fit_a_page_that_is_about_something_else_now() -> None:
    site = Site(a_creative())
    site.categories = (FOOD,)

    assert site.reason() == ("known", "category_mismatch")


def test_filler_is_shown_on_pages_without_a_category_only() -> None:
    filler = {"categories": (), "takes_filler": True}
    site = Site(a_creative(terms=filler))
    site.category = None
    assert site.reason() == ("known", "category_mismatch")

    site.categories = ()
    assert site.ad()["category"] is None
    site.site["accepts_filler"] = False
    assert site.reason() == ("known", "category_mismatch")


def test_a_page_that_is_not_known_gets_no_ad() -> None:
    assert Site(a_creative()).reason(url="https://example.com/never-seen") == ("unknown", "page_unknown")


def test_a_stale_page_gets_no_ad() -> None:
    site = Site(a_creative())
    site.clock.advance(timedelta(hours=49))

    assert site.reason() == ("stale", "page_stale")


def test_a_campaign_with_a_budget_and_no_lease_is_not_shown() -> None:
    assert Site(a_creative(is_limited=True)).reason() == ("known", "budget")


def test_a_page_shows_no_campaign_twice() -> None:
    answer = Site(a_creative(1), a_creative(2)).batch("top", "side")

    shown = [ad["campaignId"] for ad in answer["slots"].values()]
    assert sorted(shown) == sorted([str(campaign(1)), str(campaign(2))])


def test_slots_whose_candidates_are_all_on_the_page_are_counted_each() -> None:
    site = Site(a_creative(1))
    routes, body = site.routes(), b'{"url":"https://example.com/a","slots":["top","side","end"]}'
    for _ in range(2):  # Once as it is prepared, and once as it is kept.
        answer = routes.serve_batch(FastRequest(b"POST", b"/v1/serve/batch", body=body))
        ads = json.loads(answer.body)["slots"]

        assert [ad and ad["slot"] for ad in ads.values()] == ["top", None, None]
    assert (routes.served, routes.unfilled) == (2, {"on_page_already": 4})
    site.states.take_requested()  # The campaign hears of its requests when it is asked for the next time.
    routes.serve_batch(FastRequest(b"POST", b"/v1/serve/batch", body=body))
    [own] = [key for key in site.index().by_key if key < 0]
    assert site.states.count_requests(own) == 6


def test_the_offers_of_a_page_count_together_for_the_bound_of_an_address() -> None:
    site = Site(a_creative(1), a_creative(2))
    detector = TrafficDetector(lambda agent: b"bot" in agent)
    routes = site.routes(senders=SenderCheck(detector.identify_sender, holds_max=2))
    headers = [(b"user-agent", b"Mozilla/5.0")]
    body = b'{"url":"https://example.com/a","slots":["top","side"]}'

    def list_unheld() -> list[bool]:
        request = FastRequest(b"POST", b"/v1/serve/batch", headers=headers, body=body, client="203.0.113.7")
        ads = json.loads(routes.serve_batch(request).body)["slots"].values()
        tokens = [read_token(ad) for ad in ads if ad is not None]
        assert all(one.charge for one in tokens)
        return [one.lease == UNHELD_LEASE for one in tokens]

    assert [list_unheld(), list_unheld()] == [[False, False], [True, True]]

    # A slot that stays empty holds nothing: of three, two are filled.
    body = b'{"url":"https://example.com/a","slots":["top","side","end"]}'
    detector = TrafficDetector(lambda agent: b"bot" in agent)
    routes = site.routes(senders=SenderCheck(detector.identify_sender, holds_max=4))
    assert [list_unheld(), list_unheld(), list_unheld()] == [[False, False], [False, False], [True, True]]


def test_a_slot_that_is_not_there_and_a_page_of_another_site_are_refused() -> None:
    site = Site(a_creative())

    assert b"PLACEMENT_NOT_FOUND" in site.ask(slot="nowhere").body
    with pytest.raises(SiteHostMismatchError):
        site.ask(url="https://elsewhere.test/a")
    with pytest.raises(ValidationFailedError) as error:
        site.routes().serve(FastRequest(b"GET", b"/v1/serve", query=b"slot=top"))
    assert [one.field for one in error.value.errors] == ["url"]


def test_a_campaign_that_is_paused_while_it_is_on_a_shortlist_is_gone_at_once() -> None:
    site = Site(a_creative())
    assert site.ad()

    paused = msgspec.structs.replace(site.creatives[0].assignment, status=AssignmentStatus.CAMPAIGN_PAUSED)
    site.creatives = (CreativeRow(paused, site.creatives[0].terms),)

    assert site.reason() == ("known", "campaign_inactive")
