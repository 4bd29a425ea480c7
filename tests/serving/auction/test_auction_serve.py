"""Serving by auction: the winner and its price, what is held, and what is recorded."""

import json
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any
from uuid import UUID

import msgspec
import pytest

from adloom.auction.bid import BidType
from adloom.budgets.messages import COUNTED_LEASE, UNHELD_LEASE
from adloom.core.errors import ValidationFailedError
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.log.auction_bids import LOST, REMOVED, WON, pack_bid, unpack_bids
from adloom.events.log.event import AuctionEntry, BidsUnderFloor, ChargedBy, RemovedCandidates, Served, Unsold
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.index.rows import Caps, Delivery
from adloom.serving.request.sender_limits import SenderCheck
from adloom.targeting.rules import parse_rule
from tests.auction.bids import units
from tests.serving.auction.auction_server import KEYS, SECOND, USER, AuctionServer, token_of
from tests.serving.auction.marketplace import NOON, a_row, a_slot
from tests.support.for_each import for_each
from tests.support.leases import LEASE

CPC = BidType.CPC


def ad_id(number: int) -> str:
    return str(a_row(number, "1").banner_id)


def test_the_answer_has_the_published_shape() -> None:
    row = a_row(1, "2.00", title="T", description="Text", cta_label="Buy", video_url="https://cdn/a.mp4")
    server = AuctionServer(row, a_row(2, "1.00"))

    answer = server.ask()

    assert isinstance(answer, FastAnswer)
    assert b"cache-control: no-store\r\n" in answer.head
    assert b"access-control-allow-origin: *\r\n" in answer.head
    ad = json.loads(answer.body)
    token = ad["trackingToken"]
    assert UUID(ad["auctionId"]).version == 7
    assert ad == {
        "adId": ad_id(1),
        "campaignId": str(row.campaign_id),
        "adFormat": "video",
        "headline": "T",
        "primaryText": "Text",
        "callToAction": "Buy",
        "creativeUrl": "https://cdn/a.mp4",
        "destinationUrl": "https://shop.example.com/",
        "finalPrice": 1.01,
        "servedAt": "2026-11-15T12:00:00.000Z",
        "auctionId": ad["auctionId"],
        "trackingToken": token,
        "impressionUrl": ad["impressionUrl"],
        "clickUrl": f"https://ads.example/c/{token}",
    }
    pixel, _, sealed = ad["impressionUrl"].partition("?u=")
    assert pixel == f"https://ads.example/i/{token}"
    assert KEYS.signer.open_user(sealed.encode(), UUID(ad["auctionId"]).bytes) == USER


def test_the_token_carries_what_one_impression_costs() -> None:
    server = AuctionServer(a_row(1, "3.00"), a_row(2, "1.00"))

    ad = server.served()

    token = token_of(ad)
    # A thousand cost 1.01, so one costs 1,010 micros.
    assert (token.charge, token.charged_by, token.slot) == (1_010, ChargedBy.IMPRESSION, 0)
    assert ad is not None
    assert str(token.request_id) == ad["auctionId"]


def test_the_token_of_a_cpc_bid_carries_what_one_click_costs() -> None:
    # At 2 % a click of 0.30 is worth 6.00 a thousand; the other bids 3.00, so half and a bit is paid.
    server = AuctionServer(a_row(1, "0.30", bid_type=CPC), a_row(2, "3.00"))

    token = token_of(server.served())

    assert (token.charge, token.charged_by) == (150_500, ChargedBy.CLICK)


def test_an_auction_without_an_eligible_ad_answers_204() -> None:
    assert AuctionServer(a_row(1, "1.00"), slots=[a_slot(floor="2")]).served() is None


def test_a_placement_type_without_auctions_answers_204() -> None:
    answer = AuctionServer(a_row(1, "1.00")).ask(placementType="story")

    assert isinstance(answer, FastAnswer)
    assert answer.head.startswith(b"HTTP/1.1 204")


@pytest.mark.parametrize(
    "body",
    [
        {"placement": "nowhere"},
        {"placement": "direct"},
        {"placement": "slot-1", "placementType": "story"},
    ],
)
def test_a_placement_without_auctions_is_not_found(body: dict[str, str]) -> None:
    direct = a_slot(2, slug="direct", delivery=Delivery.DIRECT)
    answer = AuctionServer(a_row(1, "1.00"), slots=[a_slot(), direct]).ask(**body)

    assert isinstance(answer, FastAnswer)
    assert answer.head.startswith(b"HTTP/1.1 404")
    assert json.loads(answer.body)["errorCode"] == "PLACEMENT_NOT_FOUND"


@for_each(
    ("body", "field"),
    [
        ({"userId": "nobody"}, "userId"),
        ({"userId": None}, "userId"),
        ({"userContext": []}, "userContext"),
        ({"userContext": {"device": 7}}, "userContext.device"),
        ({"userContext": {"whatever": {"a": 1}}}, "userContext.whatever"),
        ({"userContext": {"device": "toaster"}}, "userContext.device"),
        ({"userContext": {"loginState": "maybe"}}, "userContext.loginState"),
        ({"userContext": {"lastPurchaseDays": "soon"}}, "userContext.lastPurchaseDays"),
        ({"userContext": {f"k{number}": "" for number in range(2_000)}}, "userContext"),
        ({"placementType": 1}, "placementType"),
        ({"placement": ""}, "placement"),
    ],
)
def test_the_error_names_the_invalid_field(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationFailedError) as failed:
        AuctionServer(a_row(1, "1.00")).ask(**body)

    assert [problem.field for problem in failed.value.errors] == [field]


def test_the_error_names_a_missing_user_id() -> None:
    with pytest.raises(ValidationFailedError) as failed:
        AuctionServer(a_row(1, "1.00")).routes.serve(FastRequest(b"POST", b"/api/v1/ads/serve", body=b"{}"))

    assert [problem.field for problem in failed.value.errors] == ["userId"]


def test_targeting_uses_the_context_of_the_body() -> None:
    vip = a_row(1, "9.00", rules=(parse_rule("user_segment", "in", ["vip"]),))
    server = AuctionServer(vip, a_row(2, "1.00"))

    outcomes = [server.served(), server.served(userContext={"segment": "vip"})]

    assert [one and one["adId"] for one in outcomes] == [ad_id(2), ad_id(1)]


def test_high_intent_visitors_have_a_higher_ctr() -> None:
    # 5.00 a thousand impressions, against 5.00, 6.25 and 6.875 for clicks.
    server = AuctionServer(a_row(1, "5.50"), a_row(2, "0.25", bid_type=CPC))

    assert [
        (server.served(userContext=context) or {})["adId"]
        for context in (
            {},
            {"segment": "high-intent"},
            {"lastPurchaseDays": "14"},
            {"lastPurchaseDays": "15"},
        )
    ] == [ad_id(1), ad_id(2), ad_id(1), ad_id(1)]


def test_the_final_price_is_taken_out_of_the_lease() -> None:
    # An impression may cost 10,000 micros by its bid, and costs 1,010.
    server = AuctionServer(a_row(1, "10.00", is_limited=True), a_row(2, "1.00"))
    server.grant(10_000 + 1_009)

    winners = [(server.served() or {})["adId"] for _ in range(3)]

    # After the first offer the rest of the lease does not cover a second one at its bid.
    assert winners == [ad_id(1), ad_id(2), ad_id(2)]


def test_the_next_best_wins_if_the_winner_cannot_be_reserved() -> None:
    server = AuctionServer(a_row(1, "10.00", is_limited=True), a_row(2, "2.00"), a_row(3, "1.00"))
    server.grant(100_000)
    # The lease has ended, and that is not reported yet.
    server.clock.advance(timedelta(hours=2))

    ad = server.served()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (ad_id(2), 1.01)
    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert auction.bid_count == 2


def test_campaigns_that_their_pace_leaves_out_neither_win_nor_set_the_price() -> None:
    paced = [a_row(number, f"{number}.00", is_limited=True) for number in range(3, 33)]
    server = AuctionServer(*paced, a_row(1, "1.00"), a_row(2, "2.00"), draw=lambda: 0.0)
    server.grant(1_000_000, throttle=0.99)

    ad = server.served()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (ad_id(2), 1.01)


def test_a_second_bid_that_its_pace_leaves_out_does_not_set_the_price() -> None:
    rows = [a_row(1, "10.00"), a_row(2, "9.00", is_limited=True), a_row(3, "1.00")]
    server = AuctionServer(*rows, draw=lambda: 0.0)
    server.grant(1_000_000, throttle=0.99)

    ad = server.served()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (ad_id(1), 1.01)
    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert auction.removed == (RemovedCandidates("pacing", 1),)
    assert auction.bid_count == 2


def test_the_second_price_is_paid_as_often_as_its_pace_lets_it_through() -> None:
    rows = [a_row(number, bid, is_limited=True) for number, bid in ((1, "10.00"), (2, "9.00"), (3, "8.00"))]
    server = AuctionServer(*rows, a_row(4, "1.00"), draw=Random(3).random, sample_rate=0)  # noqa: S311
    server.grant(10**12, throttle=0.6)

    ads = [server.served() or {} for _ in range(5_000)]

    shares = {
        sold: count / 5_000
        for sold, count in Counter((one["adId"], one["finalPrice"]) for one in ads).items()
    }
    assert shares == pytest.approx(
        {
            (ad_id(1), 9.01): 0.4 * 0.4,
            (ad_id(1), 8.01): 0.4 * 0.6 * 0.4,
            (ad_id(1), 1.01): 0.4 * 0.6 * 0.6,
            (ad_id(2), 8.01): 0.6 * 0.4 * 0.4,
            (ad_id(2), 1.01): 0.6 * 0.4 * 0.6,
            (ad_id(3), 1.01): 0.6 * 0.6 * 0.4,
            (ad_id(4), 0.01): 0.6**3,
        },
        abs=0.02,
    )


def test_what_would_only_have_set_a_price_is_no_request_of_a_campaign() -> None:
    rows = [a_row(number, bid, is_limited=True) for number, bid in ((2, "9.00"), (3, "8.00"))]
    server = AuctionServer(a_row(1, "10.00"), *rows, draw=Random(3).random, sample_rate=0)  # noqa: S311
    server.grant(10**12, throttle=0.5)

    for _ in range(100):
        server.served()

    assert [lease.requests for lease in server.leases.registry.leases.values()] == [0, 0]
    assert server.leases.left_out == 0


def test_an_offer_that_is_not_made_does_not_count_for_the_bound_of_an_address() -> None:
    senders = SenderCheck(TrafficDetector(lambda _: False).identify_sender, holds_max=3)
    server = AuctionServer(a_row(1, "10.00", is_limited=True), draw=lambda: 0.0, senders=senders)
    server.grant(1_000_000, throttle=1.0)

    assert [server.served() for _ in range(5)] == [None] * 5

    assert senders.free["open_holds"] == 0


def test_beyond_the_bound_of_an_address_who_has_no_cap_wins_and_holds_nothing() -> None:
    senders = SenderCheck(TrafficDetector(lambda _: False).identify_sender, holds_max=1)
    capped = [a_row(number, f"{number}.00", caps=Caps(50, None)) for number in range(3, 33)]
    server = AuctionServer(*capped, a_row(2, "2.00", is_limited=True), draw=lambda: 0.0, senders=senders)
    server.grant(1_000_000, impressions=5)

    ads = [server.served() for _ in range(3)]

    assert [(ad or {})["adId"] for ad in ads] == [ad_id(32), ad_id(2), ad_id(2)]
    assert [token_of(ad).lease for ad in ads] == [LEASE | COUNTED_LEASE, UNHELD_LEASE, UNHELD_LEASE]
    assert all(token_of(ad).charge for ad in ads)


def test_beyond_the_bound_of_an_address_a_capped_second_bid_sets_no_price() -> None:
    senders = SenderCheck(TrafficDetector(lambda _: False).identify_sender, holds_max=1)
    rows = [a_row(1, "10.00", is_limited=True), a_row(2, "9.00", caps=Caps(50, None)), a_row(3, "1.00")]
    server = AuctionServer(*rows, senders=senders)
    server.grant(1_000_000, impressions=5)

    ads = [server.served() or {} for _ in range(3)]

    assert [(ad["adId"], ad["finalPrice"]) for ad in ads] == [
        (ad_id(1), 9.01),
        (ad_id(1), 1.01),
        (ad_id(1), 1.01),
    ]
    *_, auction = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert auction.removed == (RemovedCandidates("not_held", 1),)


def test_a_cap_of_one_impression_is_offered_once() -> None:
    server = AuctionServer(a_row(1, "10.00", caps=Caps(1, None)), a_row(2, "1.00"))
    server.grant(1_000_000, impressions=1)

    assert [(server.served() or {})["adId"] for _ in range(3)] == [ad_id(1), ad_id(2), ad_id(2)]


def test_an_auction_is_recorded_with_all_its_bids() -> None:
    rows = [
        a_row(1, "1.00"),
        a_row(2, "2.00"),
        a_row(3, "0.50"),
        a_row(4, "9.00", rules=(parse_rule("device", "in", ["mobile"]),)),
        a_row(5, "9.00", ends_at=NOON),
    ]
    server = AuctionServer(*rows, slots=[a_slot(floor="0.6")])

    ad = server.served(placement="slot-1", userContext={"country": "DE", "lastPurchaseDays": "3"})

    assert ad is not None
    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert str(auction.auction_id) == ad["auctionId"]
    assert (auction.user_id, auction.placement_type, auction.floor) == (USER, "feed", units("0.6"))
    assert auction.placement_id == a_slot().id
    assert {
        **auction.context,
        "country": "DE",
        "lastPurchaseDays": "3",
        "device": "desktop",
    } == auction.context
    assert auction.winner is not None
    assert (auction.winner.banner_id, auction.winner.final_price) == (rows[1].banner_id, units("1.01"))
    assert auction.bid_count == 2
    names = [one.reason for one in auction.removed]
    assert [
        (bid.banner_id, bid.outcome if bid.outcome < REMOVED else names[bid.outcome - REMOVED])
        for bid in unpack_bids(auction.bids)
    ] == [
        (rows[1].banner_id, WON),
        (rows[0].banner_id, LOST),
        (rows[3].banner_id, "targeting:device"),
        (rows[4].banner_id, "campaign_dates"),
        (rows[2].banner_id, "floor"),
    ]


def test_served_ads_of_recorded_auctions_are_published_too() -> None:
    recorded, sampled_out = (
        AuctionServer(a_row(1, "2.00"), a_row(2, "1.00"), sample_rate=rate) for rate in (1, 0)
    )

    ad = recorded.served()
    sampled_out.served()

    assert ad is not None
    [served], [other] = recorded.logged, sampled_out.entries()
    assert isinstance(served, Served)
    assert isinstance(other, Served)
    assert str(served.request_id) == ad["auctionId"]
    assert msgspec.structs.replace(other, request_id=served.request_id) == served


def test_an_auction_without_a_winner_is_recorded_too() -> None:
    server = AuctionServer(a_row(1, "1.00"), slots=[a_slot(floor="2")])

    server.served()

    assert server.logged == [Unsold(held_at=NOON)]
    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert (auction.winner, auction.bid_count, auction.removed) == (None, 0, (RemovedCandidates("floor", 1),))


def test_bids_under_the_floor_are_recorded_with_the_floor_of_their_own_placement() -> None:
    rows = [
        a_row(1, "10.00"),
        a_row(2, "0.50"),
        a_row(3, "20.00", placement_key=2),
        a_row(4, "30.00", placement_key=2),
    ]
    server = AuctionServer(*rows, slots=[a_slot(1, floor="1"), a_slot(2, floor="50")])

    server.served()

    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    banners = [bid.banner_id for bid in unpack_bids(auction.bids)]
    assert auction.floor == units("1")
    assert {banners[place]: one.floor for one in auction.floors for place in one.places} == {
        rows[1].banner_id: units("1"),
        rows[2].banner_id: units("50"),
        rows[3].banner_id: units("50"),
    }


def test_the_floor_is_recorded_even_if_no_bid_reaches_it() -> None:
    server = AuctionServer(a_row(1, "5.00"), slots=[a_slot(floor="6")])

    server.served()

    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert (auction.winner, auction.floors) == (None, (BidsUnderFloor(units("6"), b"\0"),))


def test_candidates_beyond_256_are_counted_and_not_listed() -> None:
    rows = [a_row(number, "1.00") for number in range(1, 301)]
    ended = [a_row(number, "2.00", ends_at=NOON) for number in range(301, 311)]
    server = AuctionServer(*rows, *ended)

    server.served()

    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert auction.bid_count == 300
    assert len(list(unpack_bids(auction.bids))) == 256
    assert auction.removed == (RemovedCandidates("schedule", 10),)


def test_a_cached_record_is_not_used_after_a_change() -> None:
    server = AuctionServer(a_row(1, "2.00"), a_row(2, "1.00"), a_row(3, "0.50"))
    server.served()
    server.served()
    server.states.mark_changed({2: "pacing"})
    server.served()

    counts = [one.bid_count for one in server.entries() if isinstance(one, AuctionEntry)]

    assert counts == [3, 3, 2]
    last = server.entries()[-1]
    assert isinstance(last, AuctionEntry)
    assert last.removed == (RemovedCandidates("pacing", 1),)


def test_an_auction_outside_the_sample_is_published_as_served() -> None:
    server = AuctionServer(a_row(1, "2.00"), a_row(2, "1.00"), sample_rate=0.0)

    ad = server.served()

    assert ad is not None
    [served] = server.entries()
    assert isinstance(served, Served)
    assert (str(served.request_id), served.final_price) == (ad["auctionId"], units("1.01"))
    assert (served.winning_ecpm, served.user_id) == (units("2.00"), USER)


def test_beyond_the_bytes_per_second_only_served_ads_are_published() -> None:
    server = AuctionServer(a_row(1, "2.00"), bytes_per_second=2_000)

    for _ in range(5):
        server.served()

    kinds = [type(one) for one in server.entries()]
    # A burst may use the bytes of a quarter of a second.
    assert kinds == [AuctionEntry, AuctionEntry, Served, Served, Served]
    assert server.recorder.left_out == 3
    assert server.recorder.wants_next(SECOND + 10)


def test_recorded_auctions_are_spread_over_a_second() -> None:
    server = AuctionServer(a_row(1, "2.00"), bytes_per_second=2_000)
    recorded_in: list[int] = []

    for tick in range(600):
        left_out = server.recorder.left_out
        server.served()
        if server.recorder.left_out == left_out:
            recorded_in.append(tick)
        server.clock.advance(timedelta(milliseconds=10))

    # A burst comes first; then each waits until the bytes of the one before it are available again.
    gaps = {after - before for before, after in pairwise(recorded_in[-20:])}
    assert len(gaps) <= 2
    assert 10 <= min(gaps) <= max(gaps) <= 30


def test_bids_are_packed_as_the_event_log_reads_them() -> None:
    row = a_row(1, "0.30", bid_type=CPC)
    server = AuctionServer(row)

    server.served()

    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    pair = row.banner_id.bytes + row.campaign_id.bytes
    packed = pack_bid(pair, units("0.30"), 10_000, True, 20_000_000, units("6.00"), WON)  # noqa: FBT003
    assert auction.bids == packed
