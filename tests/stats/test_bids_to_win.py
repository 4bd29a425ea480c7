"""The bid that a recorded auction reports as enough to win would have won."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.bid import BidType
from adloom.core.money import Micros
from adloom.events.auction_log.row import build_rows
from adloom.events.log.event import AuctionEntry
from adloom.serving.index.rows import AssignmentRow, compute_price
from adloom.stats.auctions.model import AuctionBid, WholeAuction, with_bids_to_win
from tests.serving.auction.auction_server import AuctionServer
from tests.serving.auction.marketplace import NOON, a_row, a_slot

# Amounts in the catalog have four decimal places.
AMOUNTS = st.integers(1, 100_000).map(lambda steps: Micros(steps * 100))
FLOORS = ("0", "3", "9.5")
SLOTS = [a_slot(key, floor=floor) for key, floor in enumerate(FLOORS, 1)]


@st.composite
def markets(draw: st.DrawFn) -> list[AssignmentRow]:
    count = draw(st.integers(1, 6))
    return [
        a_row(
            number,
            draw(AMOUNTS),
            bid_type=draw(st.sampled_from(BidType)),
            placement_key=draw(st.integers(1, len(FLOORS))),
        )
        for number in range(1, count + 1)
    ]


def recorded(rows: list[AssignmentRow]) -> tuple[WholeAuction, object]:
    """Hold an auction; return its report, and the winning ad."""
    server = AuctionServer(*rows, slots=SLOTS)
    ad = server.served()
    [entry] = server.entries()
    assert isinstance(entry, AuctionEntry)
    [row] = build_rows([entry], erased_at={}, first_day=NOON.date())
    fields: dict[str, Any] = row._asdict()
    fields |= {
        "bids": msgspec.json.decode(row.bids, type=list[AuctionBid]),
        "context": None,
        "removed": msgspec.json.decode(row.removed),
    }
    return with_bids_to_win(msgspec.convert(fields, WholeAuction)), ad and ad["adId"]


@given(rows=markets())
def test_a_bid_raised_to_the_reported_amount_wins(rows: list[AssignmentRow]) -> None:
    auction, won = recorded(rows)

    for bid in auction.bids:
        if str(bid.ad_id) == won:
            continue
        assert bid.would_have_to_bid is not None
        amount = Micros(round(bid.would_have_to_bid * 1_000_000))
        raised = [
            msgspec.structs.replace(row, bid=amount, price=compute_price(row.bid_type, amount))
            if row.banner_id == bid.ad_id
            else row
            for row in rows
        ]
        assert recorded(raised)[1] == str(bid.ad_id)
