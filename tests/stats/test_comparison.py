"""Banners side by side: ranges and certainty against plain sampling, and over HTTP."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from adloom.runtime.random import seed_chance
from adloom.stats.comparison.rates import BannerResult, compare_banners, compare_rates, find_leader
from tests.support.control import Client, ControlPlane, problem

COUNT = """
    INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions, clicks, invalid_clicks)
    SELECT '2026-11-15T11:00:00Z', banners.id, placements.id, campaigns.id, $2, $3, $4
      FROM banners, placements, campaigns WHERE banners.public_id = $1
"""


@pytest.mark.parametrize(
    "counts",
    [
        [(1_000, 10), (1_000, 20)],
        [(100, 0), (100, 1), (100, 3)],
        [(1_000_000, 3_000), (1_000_000, 3_100)],
        [(200, 5), (50_000, 1_000)],
        [(100, 99), (100, 98)],
    ],
)
def test_the_certainty_is_that_of_sampling(counts: list[tuple[int, int]]) -> None:
    chance, times = seed_chance("1"), 20_000
    wins = [0] * len(counts)
    for _ in range(times):
        draws = [chance.betavariate(1 + clicks, 1 + shown - clicks) for shown, clicks in counts]
        wins[draws.index(max(draws))] += 1

    results = compare_rates(counts)

    for result, won in zip(results, wins, strict=True):
        assert result.best == pytest.approx(won / times, abs=0.015)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**7), st.floats(0, 1)).map(lambda one: (one[0], int(one[0] * one[1]))),
        min_size=1,
        max_size=4,
    )
)
@example([(66, 0), (452_731, 452_731)])
def test_ranges_contain_the_rate_and_chances_sum_up_to_one(counts: list[tuple[int, int]]) -> None:
    results = compare_rates(counts)

    assert sum(one.best for one in results) == pytest.approx(1.0)
    for (shown, clicks), one in zip(counts, results, strict=True):
        assert 0 <= one.low < one.high <= 1
        mean = (1 + clicks) / (2 + shown)
        assert one.low <= mean <= one.high
    assert compare_rates(counts) == results


def test_more_clicks_than_impressions_are_no_error() -> None:
    [one] = compare_rates([(3, 5)])

    assert one.best == pytest.approx(1.0)


def a_result(number: int, impressions: int, clicks: int) -> BannerResult:
    return BannerResult(banner_id=UUID(int=number), impressions=impressions, clicks=clicks)


def test_the_leader_comes_first_and_those_shown_too_seldom_last() -> None:
    results = compare_banners([a_result(1, 5_000, 50), a_result(2, 99, 99), a_result(3, 4_000, 80)])
    leader = find_leader(results)

    assert [one.banner_id.int for one in results] == [3, 1, 2]
    assert results[2].best_chance is None
    assert leader is not None
    assert leader.banner_id.int == 3
    assert (leader.best_chance or 0) > 0.99


def test_nothing_leads_alone() -> None:
    assert find_leader(compare_banners([a_result(1, 5_000, 50), a_result(2, 10, 5)])) is None


async def test_banners_are_compared_on_a_placement_and_in_a_campaign(admin: Client, pool: Pool) -> None:
    placement, campaign = await admin.make_placement(), await admin.make_campaign()
    first, second = await admin.make_banner(title="A"), await admin.make_banner(title="B")
    await pool.execute(COUNT, UUID(first["id"]), 1_000, 60, 50)  # Clicks that are not valid do not count.
    await pool.execute(COUNT, UUID(second["id"]), 1_000, 20, 0)

    answers = [
        (await admin.get(f"/admin/{path}/comparison")).json()
        for path in (f"placements/{placement['id']}", f"campaigns/{campaign['id']}")
    ]

    expected: dict[str, Any] = {"leader": second["id"], "certainty": pytest.approx(0.9657, abs=0.001)}
    for answer in answers:
        assert answer | expected == answer
        assert [(one["title"], one["impressions"], one["clicks"], one["ctr"]) for one in answer["items"]] == [
            ("B", 1_000, 20, 0.02),
            ("A", 1_000, 10, 0.01),
        ]
        assert answer["items"][0]["ctrLow"] < 0.02 < answer["items"][0]["ctrHigh"]


async def test_a_comparison_is_of_something_that_exists(control: ControlPlane, admin: Client) -> None:
    del control
    problem(await admin.get(f"/admin/placements/{SystemIds().make()}/comparison"), 404, "PLACEMENT_NOT_FOUND")
    problem(await admin.get(f"/admin/campaigns/{SystemIds().make()}/comparison"), 404, "CAMPAIGN_NOT_FOUND")
