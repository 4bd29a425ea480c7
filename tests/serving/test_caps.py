"""Caps: a campaign that has reached one is excluded, by its name."""

import pytest

from adloom.budgets.lifetime_counts import LifetimeCounts
from adloom.serving.eligibility.caps import CLICK_CAP, IMPRESSION_CAP, find_reached
from adloom.serving.index.rows import Caps

CAMPAIGN = 7


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
    excluded = find_reached({CAMPAIGN: caps}, {} if counts is None else {CAMPAIGN: counts})

    assert {reason for reason, keys in excluded.items() if CAMPAIGN in keys} == ({name} - {None})
