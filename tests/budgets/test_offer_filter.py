"""The Bloom filter of offers (rbloom): no false negatives, few false positives."""

from hypothesis import given
from hypothesis import strategies as st
from rbloom import Bloom

from adloom.budgets.confirms.offers import ERROR_RATE, OFFERS_MAX, Offer
from adloom.core.ids import SystemIds


def some_offers(count: int) -> list[Offer]:
    ids = SystemIds()
    return [(ids.make().int, number % 3) for number in range(count)]


def test_a_full_filter_has_no_false_negatives_and_few_false_positives() -> None:
    added, others = some_offers(OFFERS_MAX), some_offers(OFFERS_MAX)
    offers = Bloom(OFFERS_MAX, ERROR_RATE)

    offers.update(added)

    assert all(offer in offers for offer in added)
    # Five are expected; the chance of 30 is negligible.
    assert sum(offer in offers for offer in others) < 30


@given(st.sets(st.tuples(st.integers(0, 2**128 - 1), st.integers(0, 255)), max_size=50))
def test_a_filter_contains_every_added_offer(added: set[Offer]) -> None:
    offers = Bloom(50, 0.01)
    offers.update(added)

    assert all(offer in offers for offer in added)


def test_an_empty_filter_contains_nothing() -> None:
    assert (1, 0) not in Bloom(1, 0.5)
