"""Offers that were confirmed recently: what is said to be new is new, and of the rest the money ledger is asked."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.charges.offers import (
    AHEAD_SECONDS_MAX,
    CACHE_LIFE,
    ERROR_RATE,
    FILTERS_MAX,
    OFFERS_MAX,
    Offer,
    SeenOffers,
)
from tests.budgets.builders import NOON, SECOND

NEW, MAYBE = False, True
START = NOON - timedelta(hours=1)


class ExactFilter(set[Offer]):
    """A filter that is never wrong, of the size that was asked for."""

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


def judged(offers: SeenOffers, number: int, made_at: datetime, now: datetime) -> bool:
    return an_offer(number) in offers.find_maybe_seen({an_offer(number): int(made_at.timestamp())}, now=now)


def test_an_offer_is_new_once() -> None:
    offers = some_offers()
    assert judged(offers, 1, NOON, NOON) is NEW

    offers.note([an_offer(1)], now=NOON)

    assert judged(offers, 1, NOON, NOON + SECOND) is MAYBE
    assert judged(offers, 2, NOON, NOON + SECOND) is NEW


def test_another_slot_is_another_offer() -> None:
    offers = some_offers()
    offers.note([(1, 0)], now=NOON)

    assert not offers.find_maybe_seen({(1, 1): int(NOON.timestamp())}, now=NOON)


def test_who_has_just_begun_knows_nothing_of_what_was_before() -> None:
    offers = some_offers(NOON)

    assert judged(offers, 1, NOON - SECOND, NOON + SECOND) is MAYBE
    assert judged(offers, 1, NOON, NOON + SECOND) is MAYBE
    assert judged(offers, 1, NOON + (AHEAD_SECONDS_MAX + 1) * SECOND, NOON + 9 * SECOND) is NEW


def test_after_five_minutes_the_filter_remembers_what_the_cache_has_forgotten() -> None:
    offers = some_offers()
    offers.note([an_offer(1)], now=NOON)
    later = NOON + CACHE_LIFE

    assert judged(offers, 2, NOON, later) is NEW, "old, and not in the filter"
    assert len(offers) == 0
    assert judged(offers, 1, NOON, later) is MAYBE


def test_what_is_asked_for_stays_in_the_cache() -> None:
    offers = some_offers()
    offers.note([an_offer(1)], now=NOON)

    judged(offers, 1, NOON, NOON + CACHE_LIFE - SECOND)
    judged(offers, 2, NOON, NOON + CACHE_LIFE)

    assert len(offers) == 1


def test_the_cache_has_a_bound() -> None:
    offers = some_offers()

    offers.note([an_offer(number) for number in range(OFFERS_MAX + 10)], now=NOON)

    assert len(offers) == OFFERS_MAX
    assert judged(offers, 0, NOON, NOON) is MAYBE


def test_full_filters_make_room_for_others_and_what_only_one_knew_that_is_gone_may_have_been_seen() -> None:
    offers = SeenOffers(ExactFilter, now=START, offers_max=100)
    for number in range(FILTERS_MAX * 100 + 50):
        offers.note([an_offer(number)], now=NOON + number * SECOND)
    later = NOON + timedelta(hours=1)

    assert judged(offers, 10**6, NOON, later) is MAYBE, "from the time of the filter that is gone"
    assert judged(offers, 10**6, NOON + 110 * SECOND, later) is NEW
    assert judged(offers, 99_999, NOON + 110 * SECOND, later) is NEW
    assert judged(offers, 120, NOON + 110 * SECOND, later) is MAYBE
    assert judged(offers, 840, NOON + 830 * SECOND, later) is MAYBE


@given(st.data())
def test_what_is_said_to_be_new_is_new(data: st.DataObject) -> None:
    offers, now = SeenOffers(ExactFilter, now=START, offers_max=3), START
    confirmed: set[int] = set()
    made: dict[int, datetime] = {}
    for _ in range(data.draw(st.integers(1, 40))):
        now += timedelta(seconds=data.draw(st.sampled_from([0, 1, 10, 400])))
        number = data.draw(st.integers(0, 12))
        made_at = made.setdefault(number, now - timedelta(seconds=data.draw(st.sampled_from([0, 1, 100]))))
        if judged(offers, number, made_at, now) is NEW:
            assert number not in confirmed
        confirmed.add(number)
        offers.note([an_offer(number)], now=now)


def test_the_sizes_are_those_of_the_seed() -> None:
    assert (50_000, 0.0001, timedelta(minutes=5)) == (OFFERS_MAX, ERROR_RATE, CACHE_LIFE)
