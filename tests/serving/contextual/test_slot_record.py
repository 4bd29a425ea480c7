"""Auctions of contextual slots on record: one for each page and slot, with prices that agree with the charge."""

import json
from uuid import UUID

import pytest

from adloom.auction.bid import CTR_ONE, QUALITY_ONE
from adloom.auction.site_modes import ApprovalMode
from adloom.core.ids import NO_USER, derive_auction_id
from adloom.core.money import Micros, price_impression
from adloom.events.log.auction_bids import LOST, REMOVED, WON, unpack_bids
from adloom.events.log.event import AuctionEntry, Served, Unsold, decode_event, encode_event
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.auction.recorder import AuctionRecorder
from adloom.serving.contextual.api import SlotRoutes
from simulation.loop import make_random
from tests.support.contextual_site import UNIT, Site, a_creative, banner, campaign, read_token

SERVE = b"slot=top&url=https%3A%2F%2Fexample.com%2Fa"
READER = UUID("01890000-0000-7000-8000-0000000000d1")


class Records:
    """What a recorder has published."""

    def __init__(self, *, sample_rate: float = 1.0) -> None:
        self.entries: list[Served | Unsold] = []
        self.auctions: list[AuctionEntry] = []
        self.recorder = AuctionRecorder(
            lambda _: None,
            self._keep,
            make_random(1, "records"),
            sample_rate=sample_rate,
            bytes_per_second=10**6,
        )

    def _keep(self, entry: bytes, auction: bytes) -> None:
        said, held = decode_event(entry), decode_event(auction)
        assert isinstance(said, Served | Unsold)
        assert isinstance(held, AuctionEntry)
        self.entries.append(said)
        self.auctions.append(held)

    def ask(self, routes: SlotRoutes, query: bytes = SERVE, method: bytes = b"GET") -> FastAnswer:
        answer = routes.serve(FastRequest(method, b"/v1/serve", query=query))
        assert isinstance(answer, FastAnswer)
        return answer


@pytest.fixture
def records() -> Records:
    return Records()


def test_an_auction_of_a_slot_is_on_record_under_its_request(records: Records) -> None:
    site = Site(a_creative(1, cpm=5), a_creative(2, cpm=4))

    ad = json.loads(records.ask(site.routes(records.recorder)).body)

    [held] = records.auctions
    assert str(held.auction_id) == ad["requestId"]
    assert (held.placement_type, held.page_url, held.scoring_version) == ("contextual", "example.com/a", 7)
    assert (held.user_id, held.bid_count, held.removed) == (NO_USER, 2, ())
    assert held.winner is not None
    assert str(held.winner.banner_id) == ad["bannerId"]
    assert price_impression(held.winner.final_price) == read_token(ad).charge
    assert held.context["hour"] == "12"
    assert isinstance(records.entries[0], Unsold)


def test_the_highest_ecpm_of_the_others_is_the_second_price(records: Records) -> None:
    routes = Site(a_creative(1, cpm=5), a_creative(2, cpm=4), a_creative(3, cpm=6), floor=Micros(1)).routes(
        records.recorder
    )
    for _ in range(100):
        records.ask(routes)

    for held in records.auctions:
        won, *lost = unpack_bids(held.bids)
        assert held.winner is not None
        assert (won.outcome, won.quality, won.ecpm) == (WON, QUALITY_ONE, won.bid)
        assert all(one.outcome == LOST for one in lost)
        best = max(one.ecpm for one in lost)
        assert abs(held.winner.final_price - max(1, min(best, won.bid))) <= 1
        # The draws are on record, up to rounding.
        for one in lost:
            factor = (one.ctr / won.ctr) ** 2
            assert one.ecpm == pytest.approx(one.bid * factor, rel=1e-3, abs=10)
            assert 0 <= one.ctr <= CTR_ONE


def test_every_removed_candidate_is_on_record_with_its_reason(records: Records) -> None:
    site = Site(a_creative(1, cpm=5), a_creative(2, cpm=0.4), a_creative(3, cpm=6), a_creative(4, cpm=6))
    site.approvals = ApprovalRules(
        ApprovalMode.AUTOMATIC, {banner(3): ApprovalState.REJECTED, banner(4): ApprovalState.REJECTED}
    )

    records.ask(site.routes(records.recorder))

    [held] = records.auctions
    assert {one.reason: one.count for one in held.removed} == {"below_floor": 1, "rejected": 2}
    bids = list(unpack_bids(held.bids))
    names = {one.banner_id: held.removed[one.outcome - REMOVED].reason for one in bids[1:]}
    assert names == {banner(2): "below_floor", banner(3): "rejected", banner(4): "rejected"}
    [under] = held.floors
    assert (under.floor, list(under.places)) == (
        UNIT // 2,
        [[one.banner_id for one in bids].index(banner(2))],
    )


def test_a_slot_that_nobody_may_fill_is_on_record_without_a_winner(records: Records) -> None:
    assert not records.ask(Site(a_creative(1, cpm=0.4)).routes(records.recorder)).body

    [held] = records.auctions
    assert (held.winner, held.bid_count, held.floor) == (None, 0, UNIT // 2)


def test_slots_of_one_request_have_auctions_of_their_own(records: Records) -> None:
    routes = Site(a_creative(1), a_creative(2)).routes(records.recorder)
    body = json.dumps({"url": "https://example.com/a", "slots": ["top", "side"], "userId": str(READER)})

    answer = routes.serve_batch(FastRequest(b"POST", b"/v1/serve/batch", body=body.encode()))

    request_id = UUID(json.loads(answer.body)["requestId"])
    assert [one.auction_id for one in records.auctions] == [
        derive_auction_id(request_id.bytes, slot) for slot in (0, 1)
    ]
    assert request_id == records.auctions[0].auction_id != records.auctions[1].auction_id
    assert {one.user_id for one in records.auctions} == {READER}
    reasons = [one.reason for one in records.auctions[1].removed]
    assert reasons == ["on_page_already"]


def test_what_is_left_out_of_the_sample_or_only_looked_at_is_not_recorded(records: Records) -> None:
    sampled_out = Records(sample_rate=0.0)
    sampled_out.ask(Site(a_creative(1)).routes(sampled_out.recorder))
    records.ask(Site(a_creative(1)).routes(records.recorder), method=b"HEAD")
    records.ask(Site().routes(records.recorder))

    assert (sampled_out.auctions, sampled_out.recorder.sampled_out) == ([], 1)
    assert records.auctions == []


def test_where_offers_are_published_a_record_has_its_offer(records: Records) -> None:
    published: list[bytes] = []
    routes = Site(a_creative(1)).routes(records.recorder, publish_served=published.append)

    ad = json.loads(records.ask(routes).body)

    [served] = records.entries
    assert isinstance(served, Served)
    assert (served.placement_type, str(served.request_id), served.campaign_id) == (
        "contextual",
        ad["requestId"],
        campaign(1),
    )
    assert published == []

    json.loads(records.ask(Site(a_creative(1)).routes(publish_served=published.append)).body)
    assert isinstance(decode_event(published[0]), Served)


def test_auctions_of_older_versions_have_no_page() -> None:
    records = Records()
    records.ask(Site(a_creative(1)).routes(records.recorder))
    encoded = encode_event(records.auctions[0])

    assert decode_event(encoded) == records.auctions[0]


def test_a_sample_has_its_share_of_auctions_whether_they_are_asked_for_alone_or_together() -> None:
    recorder = Records(sample_rate=0.25).recorder
    wanted = asked = 0
    for number in range(3_000):
        auctions = 1 + number % 5
        asked += auctions
        if not recorder.leave_out(1.0, auctions):
            wanted += sum(recorder.wants_next(1.0) for _ in range(auctions))

    assert 0.24 < wanted / asked < 0.26
    assert recorder.sampled_out == asked - wanted
