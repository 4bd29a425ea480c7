"""The compiled bids of a placement."""

import sys

import msgspec

from adloom.auction.bid import BidType
from adloom.events.frequency.windows import Window
from adloom.serving.index.bid_block import BidBlock
from adloom.serving.index.index import Block, Candidate, replace_placements
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Delivery, FrequencyLimit, PlacementRow
from tests.auction.bids import units
from tests.serving.auction.marketplace import a_row, a_slot, an_index

DAILY = FrequencyLimit(Window.DAY, 3)


def compile_bids(*rows: AssignmentRow, slot: PlacementRow | None = None) -> BidBlock:
    (block,) = an_index(rows, slot or a_slot()).by_slug[b"slot-1"].blocks
    assert isinstance(block, BidBlock)
    return block


def test_each_bid_type_has_a_lane_with_the_highest_bid_first() -> None:
    block = compile_bids(
        a_row(1, "1"),
        a_row(2, "0.3", bid_type=BidType.CPC),
        a_row(3, "2"),
        a_row(4, "0.4", bid_type=BidType.CPC),
        a_row(5, "1"),
    )

    assert [one.campaign_key for one in block.bidders] == [3, 1, 5, 4, 2]
    assert [(lane.is_per_click, lane.start, lane.end, lane.members) for lane in block.lanes] == [
        (False, 0, 3, 0b00111),
        (True, 3, 5, 0b11000),
    ]


def test_the_highest_bids_are_in_a_small_first_block() -> None:
    rows = [a_row(number, str(number)) for number in range(1, 1_301)]

    blocks = an_index(rows, a_slot()).by_slug[b"slot-1"].blocks

    assert [len(block.candidates) for block in blocks] == [128, 1_024, 148]
    assert [one.campaign_key for block in blocks for one in block.candidates] == [*range(1_300, 0, -1)]


def test_a_campaign_that_has_no_bid_or_may_not_serve_is_not_a_bidder() -> None:
    block = compile_bids(
        a_row(1, None), a_row(2, "0"), a_row(3, "1", status=AssignmentStatus.CAMPAIGN_PAUSED), a_row(4, "1")
    )

    assert [one.campaign_key for one in block.bidders] == [4]


def test_a_fallback_is_an_ordinary_bidder_in_an_auction() -> None:
    block = compile_bids(a_row(1, "1", is_fallback=True, is_evergreen_fallback=True))

    assert [one.campaign_key for one in block.bidders] == [1]


def test_a_bidder_has_all_the_data_of_its_bid() -> None:
    row = a_row(
        4,
        "0.5",
        bid_type=BidType.CPC,
        advertiser_key=7,
        frequency=(DAILY,),
        video_url="https://x/v.mp4",
        is_limited=True,
    )

    (one,) = compile_bids(row, slot=a_slot(floor="2")).bidders

    assert (one.bid_type, one.bid, one.quality, one.format) == (BidType.CPC, units("0.5"), 11_000, "video")
    assert (one.payer, one.floor, one.frequency, one.placement_key) == (7, units("2"), (DAILY,), 1)
    assert (one.is_leased, one.price.cost) == (True, units("0.5"))


def test_an_ad_is_encoded_in_the_shape_of_an_auction_answer() -> None:
    row = a_row(1, "1", title="Coats", description="Warm", cta_label="Buy", utm_source="adloom")

    (one,) = compile_bids(row).bidders

    assert msgspec.json.decode(b"{%b}" % one.creative) == {
        "adFormat": "single_image",
        "headline": "Coats",
        "primaryText": "Warm",
        "callToAction": "Buy",
        "creativeUrl": "https://cdn.example.com/a.png",
        "destinationUrl": "https://shop.example.com/?utm_source=adloom",
    }


def test_a_click_on_an_auctioned_ad_leads_to_the_destination_of_its_banner() -> None:
    row = a_row(1, "1")
    index = an_index([row])
    placement = index.by_slug[b"slot-1"]

    assert index.find_destination(row.campaign_id, placement.id, row.banner_id) == "https://shop.example.com/"


def test_blocks_are_equal_if_their_bids_are_equal() -> None:
    one, same, other = compile_bids(a_row(1, "1")), compile_bids(a_row(1, "1")), compile_bids(a_row(1, "2"))

    assert one == same
    assert hash(one) == hash(same)
    assert one != other


def test_placements_of_one_type_are_one_market_in_the_order_of_their_keys() -> None:
    slots = [a_slot(3), a_slot(1), a_slot(2, placement_type="story"), a_slot(4, delivery=Delivery.DIRECT)]
    index = an_index([], *slots, a_slot(5, is_active=False))

    markets = {kind: [placement.key for placement in market] for kind, market in index.markets.items()}

    assert markets == {"feed": [1, 3], "story": [2]}


def test_a_market_that_did_not_change_is_kept() -> None:
    index = an_index([], a_slot(1), a_slot(2, placement_type="story"))
    other = an_index([], a_slot(2, placement_type="story", floor="1")).by_key[2]

    newer = replace_placements(
        index,
        version=2,
        gone=[2],
        placements=[other],
        banner_ids=index.banner_ids,
        campaign_ids=index.campaign_ids,
    )

    assert newer.markets["feed"] is index.markets["feed"]
    assert newer.markets["story"] == (other,)


def test_candidates_of_direct_delivery_are_smaller_than_bidders() -> None:
    direct = an_index([a_row(1, "1")], a_slot(delivery=Delivery.DIRECT)).by_slug[b"slot-1"]

    (block,) = direct.blocks
    assert type(block) is Block
    assert type(block.candidates[0]) is Candidate
    assert sys.getsizeof(block.candidates[0]) < sys.getsizeof(compile_bids(a_row(1, "1")).bidders[0])
