"""Recently confirmed offers: an offer that counts as new is new; for the others the money ledger is read."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.confirms.offers import (
    AHEAD_SECONDS_MAX,
    CACHE_LIFE,
    FILTERS_MAX,
    OFFERS_MAX,
    Offer,
    SeenOffers,
)
from tests.budgets.builders import NOON, SECOND

NEW, MAYBE = False, True
START = NOON - timedelta(hours=1)


class ExactFilter(set[Offer]):
    """A filter of a given size without false positives."""

    def __init__(self, size: int, error_rate: float) -> None:
        super().__init__()
        self.size = size
        assert error_rate == 0.0001

    def update(self, keys: Iterable[Offer], /) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - one set of keys
        super().update(keys)
        assert len(self) <= self.size


def some_offers(start: datetime = START) -> SeenOffers:
    return SeenOffers(ExactFilter, now=start)


def an_offer(number: int) -> Offer:
    return number, 0


def maybe_seen(offers: SeenOffers, number: int, made_at: datetime, now: datetime) -> bool:
    return an_offer(number) in offers.find_maybe_seen({an_offer(number): int(made_at.timestamp())}, now=now)


def test_an_offer_is_new_once() -> None:
    offers = some_offers()
    assert maybe_seen(offers, 1, NOON, NOON) is NEW

    offers.note([an_offer(1)], now=NOON)

    assert maybe_seen(offers, 1, NOON, NOON + SECOND) is MAYBE
    assert maybe_seen(offers, 2, NOON, NOON + SECOND) is NEW


def test_another_slot_is_another_offer() -> None:
    offers = some_offers()
    offers.note([(1, 0)], now=NOON)

    assert not offers.find_maybe_seen({(1, 1): int(NOON.timestamp())}, now=NOON)


def test_offers_made_before_the_start_may_have_been_seen() -> None:
    offers = some_offers(NOON)

    assert maybe_seen(offers, 1, NOON - SECOND, NOON + SECOND) is MAYBE
    assert maybe_seen(offers, 1, NOON, NOON + SECOND) is MAYBE
    assert maybe_seen(offers, 1, NOON + (AHEAD_SECONDS_MAX + 1) * SECOND, NOON + 9 * SECOND) is NEW


def test_after_five_minutes_an_offer_is_in_the_filter_and_not_in_the_cache() -> None:
    offers = some_offers()
    offers.note([an_offer(1)], now=NOON)
    later = NOON + CACHE_LIFE

    assert maybe_seen(offers, 2, NOON, later) is NEW, "old, and not in the filter"
    assert len(offers) == 0
    assert maybe_seen(offers, 1, NOON, later) is MAYBE


def test_an_offer_that_is_looked_up_stays_in_the_cache() -> None:
    offers = some_offers()
    offers.note([an_offer(1)], now=NOON)

    maybe_seen(offers, 1, NOON, NOON + CACHE_LIFE - SECOND)
    maybe_seen(offers, 2, NOON, NOON + CACHE_LIFE)

    assert len(offers) == 1


def test_the_cache_is_bounded() -> None:
    offers = some_offers()

    offers.note([an_offer(number) for number in range(OFFERS_MAX + 10)], now=NOON)

    assert len(offers) == OFFERS_MAX
    assert maybe_seen(offers, 0, NOON, NOON) is MAYBE


def test_offers_from_the_time_of_a_dropped_filter_may_have_been_seen() -> None:
    offers = SeenOffers(ExactFilter, now=START, offers_max=100)
    for number in range(FILTERS_MAX * 100 + 50):
        offers.note([an_offer(number)], now=NOON + number * SECOND)
    later = NOON + timedelta(hours=1)

    assert maybe_seen(offers, 10**6, NOON, later) is MAYBE, "from the time of the dropped filter"
    assert maybe_seen(offers, 10**6, NOON + 110 * SECOND, later) is NEW
    assert maybe_seen(offers, 99_999, NOON + 110 * SECOND, later) is NEW
    assert maybe_seen(offers, 120, NOON + 110 * SECOND, later) is MAYBE
    assert maybe_seen(offers, 840, NOON + 830 * SECOND, later) is MAYBE


@given(st.data())
def test_an_offer_that_counts_as_new_was_never_confirmed(data: st.DataObject) -> None:
    offers, now = SeenOffers(ExactFilter, now=START, offers_max=3), START
    confirmed: set[int] = set()
    made: dict[int, datetime] = {}
    for _ in range(data.draw(st.integers(1, 40))):
        now += timedelta(seconds=data.draw(st.sampled_from([0, 1, 10, 400])))
        number = data.draw(st.integers(0, 12))
        made_at = made.setdefault(number, now - timedelta(seconds=data.draw(st.sampled_from([0, 1, 100]))))
        if maybe_seen(offers, number, made_at, now) is NEW:
            assert number not in confirmed
        confirmed.add(number)
        offers.note([an_offer(number)], now=now)
