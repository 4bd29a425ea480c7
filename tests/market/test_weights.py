from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.messages import CheckClock
from adloom.market.messages import LoadResults, Quote, RecordResults
from adloom.market.routing import make_auctioneer_address, make_ranker_address
from adloom.market.weights import DecayingCounts, blend, compute_expected_weight, draw_weight
from simulation.market import START, Network
from tests.market.builders import SITE

counts = st.builds(
    DecayingCounts, st.floats(0, 1e6), st.floats(0, 1e6), st.just(START) | st.just(START - timedelta(days=3))
)


@pytest.mark.parametrize(("days", "factor"), [(1, 0.9057), (7, 0.5), (14, 0.25)])
def test_counts_halve_in_a_week(days: int, factor: float) -> None:
    decayed = DecayingCounts(1000, 10, START).decay(START + timedelta(days=days))

    assert decayed.impressions == pytest.approx(1000 * factor, rel=1e-4)
    assert decayed.clicks == pytest.approx(10 * factor, rel=1e-4)


@given(counts, st.integers(0, 1000))
def test_a_weight_is_a_probability_and_never_zero(known: DecayingCounts, seed: int) -> None:
    assert 0.01 <= draw_weight(known, Random(seed)) <= 1  # noqa: S311 - no secret is made of it
    assert 0.01 <= compute_expected_weight(known) <= 1


@given(counts, st.floats(0, 30), st.floats(0, 30))
def test_decaying_in_two_steps_is_decaying_in_one(known: DecayingCounts, one: float, more: float) -> None:
    first = START + timedelta(days=one)
    last = first + timedelta(days=more)

    assert known.decay(first).decay(last).impressions == pytest.approx(
        known.decay(last).impressions, rel=1e-6, abs=1e-9
    )


def test_a_site_with_few_impressions_is_judged_by_all_sites_too() -> None:
    everywhere = DecayingCounts(10_000, 500, START)

    assert blend(DecayingCounts(0, 0, START), everywhere) == DecayingCounts(100, 5, START)
    assert blend(DecayingCounts(20, 0, START), everywhere) == DecayingCounts(60, 2.5, START)
    assert blend(DecayingCounts(100, 0, START), everywhere) == DecayingCounts(100, 0, START)


def test_a_ranker_records_within_five_seconds_and_forgets_after_two_weeks() -> None:
    network, address = Network(1), make_ranker_address("483", str(SITE))
    network.step(address, LoadResults(10, 1, START, 4))
    network.step(address, RecordResults(90, 9, START, 7))
    network.step(address, RecordResults(90, 9, START, 7))
    assert network.rows == []

    network.run(5.1)
    assert [(row.impressions, row.clicks, row.through) for row in network.rows] == [(100, 10, 7)]  # type: ignore[attr-defined]

    network.run(15 * 86_400)
    network.loss = 1.0
    network.step(address, CheckClock())
    network.step(address, Quote(SITE))
    assert network.states[address].counts.is_forgotten(network.now)
    assert make_auctioneer_address(SITE) not in network.states
