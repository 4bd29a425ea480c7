"""The funnel of an auction: the bids that take part, and how many candidates each step removes."""

from datetime import timedelta

from adloom.auction.bid import BidType
from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.serving.index.rows import FrequencyLimit
from adloom.targeting.rules import parse_rule
from tests.serving.auction.marketplace import NOON, Marketplace, a_row, a_slot

ONE_A_DAY = (FrequencyLimit(Window.DAY, 1),)
ELSEWHERE = (parse_rule("country", "in", ["AQ"]),)


def test_each_candidate_is_counted_once_by_the_step_that_removed_it() -> None:
    market = Marketplace(
        a_row(1, "5"),
        a_row(2, "0.2", bid_type=BidType.CPC),
        a_row(3, "1.99"),
        a_row(4, "9", rules=ELSEWHERE),
        a_row(5, "9", starts_at=NOON + timedelta(hours=1)),
        a_row(6, "9"),
        a_row(7, "9", frequency=ONE_A_DAY),
        slots=[a_slot(floor="2")],
    )
    market.states.mark_changed({6: "pacing"})

    field = market.field(seen_enough=frozenset({7}))

    assert [(bidder.campaign_key, -rank, ctr) for rank, bidder, ctr in field.bids] == [
        (1, 5_000_000, 20_000_000),
        (2, 4_000_000, 20_000_000),
    ]
    assert (field.bid_count, field.under_floor, field.not_targeted) == (2, 1, 1)
    assert (field.not_in_time, field.excluded, field.seen_enough) == (1, 1, 1)


def test_only_the_highest_bids_are_listed_and_all_are_counted() -> None:
    rows = [a_row(number, f"{number % 50 + 1}", placement_key=number % 2 + 1) for number in range(1, 201)]
    market = Marketplace(*rows, slots=[a_slot(1), a_slot(2)])

    field = market.field(bids_max=10)

    assert [(-rank // 1_000_000, bidder.campaign_key) for rank, bidder, _ in field.bids] == [
        *((50, number) for number in (49, 99, 149, 199)),
        *((49, number) for number in (48, 98, 148, 198)),
        *((48, number) for number in (47, 97)),
    ]
    assert field.bid_count == 200


def test_equal_bids_are_listed_by_age_even_if_they_are_equal_only_by_rounding() -> None:
    video = "https://cdn.example/a.mp4"
    market = Marketplace(a_row(9, Micros(1), video_url=video), a_row(4, Micros(1)), a_row(6, Micros(1)))

    assert [bidder.campaign_key for _, bidder, _ in market.field(bids_max=2).bids] == [4, 6]


def test_an_unreserved_campaign_counts_as_excluded() -> None:
    market = Marketplace(a_row(1, "5"), a_row(2, "4"))

    field = market.field(unreserved=frozenset({1}))

    assert ([bidder.campaign_key for _, bidder, _ in field.bids], field.excluded) == ([2], 1)


def test_a_list_of_bids_does_not_change_when_a_campaign_leaves() -> None:
    market = Marketplace(a_row(1, "5"), a_row(2, "4"))
    available = market.states.get(market.index.by_key[1], NOON).available

    market.states.mark_changed({1: "pacing"})

    assert available == [0b11]
