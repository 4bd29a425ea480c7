"""Draws from Beta distributions have the mean, the spread and the tails that they should."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.beta_draws import draw_weighted, prepare_beta
from simulation.loop import make_random
from tests.support.for_each import for_each

DRAWS = 8_000
SHARES = (0.02, 0.1, 0.5, 0.9, 0.98)


@for_each(
    ("alpha", "beta"),
    [(0.3, 199.0), (0.9, 250.0), (1.0, 1.0), (4.0, 2.0), (2.2, 100.0), (5.0, 100.0), (30.0, 9_000.0)],
)
def test_draws_have_the_quantiles_of_the_distribution(alpha: float, beta: float) -> None:
    chance = make_random(11, "beta")
    shape = prepare_beta(alpha, beta)
    drawn = sorted(draw_weighted([(1.0, *shape)] * DRAWS, chance.random))
    plain = sorted(chance.betavariate(alpha, beta) for _ in range(DRAWS))

    for share in SHARES:
        bound = plain[round(DRAWS * share)]
        found = sum(one < bound for one in drawn) / DRAWS
        assert found == pytest.approx(share, abs=4 * (2 * share * (1 - share) / DRAWS) ** 0.5)


@given(st.floats(0.001, 1e6), st.floats(1, 1e6), st.integers(0, 100))
def test_a_draw_is_a_share(alpha: float, beta: float, seed: int) -> None:
    (share,) = draw_weighted([(1.0, *prepare_beta(alpha, beta))], make_random(seed, "beta").random)

    assert 0.0 <= share <= 1.0
