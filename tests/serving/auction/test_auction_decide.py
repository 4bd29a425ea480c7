"""The fast auction: it decides as the reference auction, without looking at all bids."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.serving.index.rows import AssignmentRow, FrequencyLimit
from tests.serving.auction.marketplace import NOON, Marketplace, a_row, a_slot
from tests.serving.auction.random_check import compare_auctions

ONE_A_DAY = (FrequencyLimit(Window.DAY, 1),)


@given(st.integers(0, 2**48))
def test_the_fast_auction_agrees_with_the_reference_auction_over_random_markets(seed: int) -> None:
    assert compare_auctions(seed) > 0


def test_a_type_or_a_slug_that_is_not_auctioned_has_no_market() -> None:
    market = Marketplace(a_row(1, "5"), slots=[a_slot(is_active=False)])

    assert market.markets.find_by_type(market.index, "feed", now=NOON) is None
    assert market.markets.find_by_slug(market.index, b"slot-1", now=NOON) is None
    assert market.markets.find_by_slug(market.index, b"elsewhere", now=NOON) is None


def test_the_oldest_of_equal_bids_wins_even_if_they_are_equal_only_by_rounding() -> None:
    # A bid of one micro for a video is worth 1.1 micros, rounded to one. So the oldest bid is behind the youngest in the
    # order of their placement, and that placement would be examined last if its youngest bid represented it.
    def a_micro(number: int, placement: int, **fields: Any) -> AssignmentRow:
        return a_row(number, Micros(1), placement_key=placement, **fields)

    market = Marketplace(
        a_micro(5, 1),
        a_micro(6, 1),
        a_micro(7, 2, video_url="https://cdn.example/a.mp4"),
        a_micro(2, 2),
        slots=[a_slot(1), a_slot(2)],
    )

    assert market.winner() == 2


def test_a_win_lists_the_capped_banners_that_could_change_it() -> None:
    others = (a_row(1, "5"), a_row(2, "4"))

    listed = [
        win.capped_banner_ids
        for win in (
            Marketplace(*others, a_row(3, bid, frequency=ONE_A_DAY)).auction() for bid in ("6", "4.5", "3")
        )
        if win is not None
    ]

    capped = str(a_row(3, "1").banner_id)
    assert listed == [(capped,), (capped,), ()]
