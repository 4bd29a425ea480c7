"""Caps: what was counted and what is still out count together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.serving.eligibility.caps import (
    CLICK_CAP,
    IMPRESSION_CAP,
    RESERVED_SECONDS,
    CapTracker,
    LifetimeCounts,
)
from adloom.serving.index.rows import Caps

CAMPAIGN = 7


def a_book(caps: Caps, counts: LifetimeCounts | None = None) -> CapTracker:
    book = CapTracker()
    book.update({CAMPAIGN: caps}, {} if counts is None else {CAMPAIGN: counts}, second=0)
    return book


@pytest.mark.parametrize(
    ("caps", "counts", "name"),
    [
        (Caps(10, None), LifetimeCounts(9, 99), None),
        (Caps(10, None), LifetimeCounts(10, 0), IMPRESSION_CAP),
        (Caps(None, 5), LifetimeCounts(99, 4), None),
        (Caps(None, 5), LifetimeCounts(0, 6), CLICK_CAP),
        (Caps(0, None), None, IMPRESSION_CAP),
    ],
)
def test_a_campaign_that_has_reached_a_cap_is_excluded_by_its_name(
    caps: Caps, counts: LifetimeCounts | None, name: str | None
) -> None:
    excluded = a_book(caps, counts).find_reached()

    assert {reason for reason, keys in excluded.items() if CAMPAIGN in keys} == ({name} - {None})


def test_an_offer_that_is_never_reported_comes_back_when_its_token_is_too_old() -> None:
    book = a_book(Caps(1, None))

    assert book.reserve(CAMPAIGN, second=100)
    assert not book.reserve(CAMPAIGN, second=101)
    book.update({CAMPAIGN: Caps(1, None)}, {}, second=100 + RESERVED_SECONDS)

    assert book.reserve(CAMPAIGN, second=100 + RESERVED_SECONDS)


def test_raising_a_cap_releases_the_campaign() -> None:
    book = a_book(Caps(1, None), LifetimeCounts(1, 0))

    book.update({CAMPAIGN: Caps(2, None)}, {CAMPAIGN: LifetimeCounts(1, 0)}, second=1)

    assert CAMPAIGN not in book.find_reached()[IMPRESSION_CAP]


def test_who_reaches_a_cap_is_news_and_so_is_what_is_put_back() -> None:
    book = a_book(Caps(2, None))

    book.reserve(CAMPAIGN, second=1)
    first = book.take_changes()
    book.reserve(CAMPAIGN, second=1)
    second = book.take_changes()
    book.release(CAMPAIGN)

    assert (first, second, book.take_changes(), book.take_changes()) == (
        {},
        {CAMPAIGN: IMPRESSION_CAP},
        {CAMPAIGN: None},
        {},
    )


@given(cap=st.integers(0, 5), steps=st.lists(st.booleans(), max_size=30))
def test_counted_and_held_are_never_more_than_the_cap(cap: int, steps: list[bool]) -> None:
    """A step offers one more, or sees one that is out reported."""
    book, counted, held = a_book(Caps(cap, None)), 0, 0
    for is_offer in steps:
        if is_offer:
            held += book.reserve(CAMPAIGN, second=1)
        elif held:
            counted, held = counted + 1, held - 1
            book.update({CAMPAIGN: Caps(cap, None)}, {CAMPAIGN: LifetimeCounts(counted, 0)}, second=1)

        assert counted + held <= cap
        assert (CAMPAIGN in book.find_reached()[IMPRESSION_CAP]) == (counted + held == cap)
