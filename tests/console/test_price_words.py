"""Why the winner of an auction pays what it pays, as the rule of prices has it."""

from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.price import compute_final_price
from adloom.console.pages.auctions.detail import RULE, explain_price
from adloom.core.money import Micros
from tests.support.for_each import for_each

MICROS = 1_000_000
prices = st.integers(1, 2_000).map(lambda cents: cents * 10_000)


def write(price: float) -> str:
    return f"{price:.2f}"


def an_auction(
    price: float | None, own: float | None, lost: list[float | None], floor: float = 0
) -> dict[str, object]:
    bids = [{"outcome": "won", "ecpm": own}, *({"outcome": "lost", "ecpm": one} for one in lost)]
    return {"finalPrice": price, "winningeCPM": own, "floorCpm": floor, "bids": bids}


@for_each(
    ("auction", "sentence"),
    [
        (an_auction(9.01, 12, [9.0, 3.0]), "A cent more than the second eCPM, which was 9.00."),
        (an_auction(9.0, 9.0, [9.0]), "As much as the second eCPM, which was 9.00."),
        (
            an_auction(9.0, 9.0, [8.995]),
            "The second eCPM, 8.99, was less than a cent below: the winner pays its own.",
        ),
        (an_auction(2, 5, [], 2), "Nobody else reached the floor, so the winner pays the floor of 2.00."),
        (
            an_auction(2, 5, [1.5], 2),
            "The floor, which is above the second eCPM (1.50) and a cent.",
        ),
        (an_auction(0.01, 5, []), "Nobody else bid, and there is no floor: a cent is the lowest price."),
        (an_auction(4, 5, [None]), RULE),
        (an_auction(2, 5, [None], 2), "The floor of 2.00."),
        (an_auction(9.01, 12, [9.0, 15.0]), "A cent more than the second eCPM, which was 9.00."),
        (an_auction(None, None, []), ""),
    ],
)
def test_the_price_of_an_auction_is_explained(auction: dict[str, object], sentence: str) -> None:
    assert explain_price(auction, write=write) == sentence


@given(own=prices, lost=st.lists(prices, max_size=4), floor=st.just(0) | prices)
def test_every_price_of_the_rule_has_its_own_reason(own: int, lost: list[int], floor: int) -> None:
    own = max(own, floor, *lost) if lost else max(own, floor)
    second = max(lost) if lost else None
    final = compute_final_price(
        Micros(own), second=None if second is None else Micros(second), floor=Micros(floor)
    )
    auction = an_auction(final / MICROS, own / MICROS, [one / MICROS for one in lost], floor / MICROS)

    sentence = explain_price(auction, write=write)

    assert sentence not in {"", RULE}
