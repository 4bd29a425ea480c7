"""Caps: counted events and open offers count together."""

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


def a_tracker(caps: Caps, counts: LifetimeCounts | None = None) -> CapTracker:
    tracker = CapTracker()
    tracker.update({CAMPAIGN: caps}, {} if counts is None else {CAMPAIGN: counts}, second=0)
    return tracker


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
def test_a_campaign_that_has_reached_a_cap_is_excluded_with_the_name_of_the_cap(
    caps: Caps, counts: LifetimeCounts | None, name: str | None
) -> None:
    excluded = a_tracker(caps, counts).find_reached()

    assert {reason for reason, keys in excluded.items() if CAMPAIGN in keys} == ({name} - {None})


def test_an_unreported_offer_is_released_when_its_token_expires() -> None:
    tracker = a_tracker(Caps(1, None))

    assert tracker.reserve(CAMPAIGN, second=100)
    assert not tracker.reserve(CAMPAIGN, second=101)
    tracker.update({CAMPAIGN: Caps(1, None)}, {}, second=100 + RESERVED_SECONDS)

    assert tracker.reserve(CAMPAIGN, second=100 + RESERVED_SECONDS)


def test_raising_a_cap_releases_the_campaign() -> None:
    tracker = a_tracker(Caps(1, None), LifetimeCounts(1, 0))

    tracker.update({CAMPAIGN: Caps(2, None)}, {CAMPAIGN: LifetimeCounts(1, 0)}, second=1)

    assert CAMPAIGN not in tracker.find_reached()[IMPRESSION_CAP]


def test_reaching_a_cap_and_releasing_an_offer_are_changes() -> None:
    tracker = a_tracker(Caps(2, None))

    tracker.reserve(CAMPAIGN, second=1)
    first = tracker.take_changes()
    tracker.reserve(CAMPAIGN, second=1)
    second = tracker.take_changes()
    tracker.release(CAMPAIGN)

    assert (first, second, tracker.take_changes(), tracker.take_changes()) == (
        {},
        {CAMPAIGN: IMPRESSION_CAP},
        {CAMPAIGN: None},
        {},
    )


@given(cap=st.integers(0, 5), steps=st.lists(st.booleans(), max_size=30))
def test_counted_and_open_offers_never_exceed_the_cap(cap: int, steps: list[bool]) -> None:
    """A step makes an offer, or counts an open one."""
    tracker, counted, open_offers = a_tracker(Caps(cap, None)), 0, 0
    for is_offer in steps:
        if is_offer:
            open_offers += tracker.reserve(CAMPAIGN, second=1)
        elif open_offers:
            counted, open_offers = counted + 1, open_offers - 1
            tracker.update({CAMPAIGN: Caps(cap, None)}, {CAMPAIGN: LifetimeCounts(counted, 0)}, second=1)

        assert counted + open_offers <= cap
        assert (CAMPAIGN in tracker.find_reached()[IMPRESSION_CAP]) == (counted + open_offers == cap)
