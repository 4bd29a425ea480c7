"""The gradient of a day is exact, a seed gives the same weights, and what is trained is what decides."""

import msgspec
import numpy as np
import pytest

from adloom.bidding import network
from adloom.bidding.decide import WindowRequest, decide
from adloom.bidding.network import FEATURES as FEATURE_COUNT
from adloom.bidding.network import FleetNet
from adloom.bidding.ports import Nets
from adloom.bidding.shipped import FleetRunner, decode_fleet, read_shipped
from adloom.bidding.state import BidState
from adloom.bidding.training.batch import draw_seat_days, make_plain_seat_days
from adloom.bidding.training.fleet import TrainingPlan, TrainingStep, train_fleet
from adloom.bidding.training.gradient import TRAINED, DayPlayer
from adloom.bidding.training.market_days import MarketDays, generate_days
from adloom.bidding.training.replay import replay
from adloom.bidding.window import BidRules, BidStrategy, BidWindow


@pytest.fixture(scope="module")
def days() -> MarketDays:
    return generate_days(days=2, seats=6, seed=7)


@pytest.fixture(scope="module")
def shipped() -> FleetNet:
    return decode_fleet(read_shipped("fleet") or b"")


def test_the_gradient_is_that_of_the_score_through_all_windows(days: MarketDays) -> None:
    chance = np.random.default_rng(3)
    # A small net keeps away from the bounds, where the score has kinks.
    arrays = {name: 0.05 * chance.standard_normal(shape) for name, shape in network.SHAPES.items()}
    arrays["mean"], arrays["deviation"] = np.zeros(FEATURE_COUNT), np.ones(FEATURE_COUNT)
    net = FleetNet(**{name: part.astype(np.float32) for name, part in arrays.items()})
    player = DayPlayer(days, draw_seat_days(days, 32, chance))
    player.play(net, is_traced=True)

    gradient = player.differentiate(net, np.ones(32, dtype=np.float32))

    for name in TRAINED:
        slope = gradient[name]
        length = float(np.sqrt((slope**2).sum()))
        direction = slope / length
        scores = [
            float(
                player.play(
                    msgspec.structs.replace(net, **{name: getattr(net, name) + side * 2e-3 * direction})
                )
                .score.astype(np.float64)
                .sum()
            )
            for side in (1.0, -1.0)
        ]
        assert (scores[0] - scores[1]) / 4e-3 == pytest.approx(length, rel=0.03), name


@pytest.mark.slow
def test_a_seed_gives_the_same_weights_and_training_raises_the_score(days: MarketDays) -> None:
    shares: list[float] = []

    def on_step(step: TrainingStep, net: FleetNet) -> None:
        del net
        shares.append(step.share)

    plan = TrainingPlan(steps=12, batch=48, seed=5)

    first = train_fleet(days, plan, on_step=on_step)
    second = train_fleet(days, plan)

    assert all(np.array_equal(getattr(first, name), getattr(second, name)) for name in network.SHAPES)
    assert np.mean(shares[-4:]) > np.mean(shares[:4])


@pytest.mark.parametrize("has_guard", [False, True], ids=["without guard", "with guard"])
def test_decisions_are_those_that_were_trained(
    days: MarketDays, shipped: FleetNet, *, has_guard: bool
) -> None:
    rows = make_plain_seat_days(days)
    trained = DayPlayer(days, rows, is_guarded=has_guard).play(shipped)

    decided = replay(
        days, BidStrategy.FLEET, Nets(fleet=FleetRunner(shipped)), rules=BidRules(has_guard=has_guard)
    )

    assert decided.score == pytest.approx(trained.score, rel=2e-3)
    assert decided.cost == pytest.approx(trained.cost, rel=2e-3)


def test_nothing_in_the_features_says_which_campaign_it_is(shipped: FleetNet) -> None:
    """Money in any unit that keeps the median target in its place gives the same answer."""
    nets = Nets(fleet=FleetRunner(shipped))

    def multiplier(scale: float) -> float:
        window = BidWindow(
            window=9,
            budget=3000 * scale,
            remaining=2000 * scale,
            target=80 * scale,
            cost=1000 * scale,
            value=11,
            window_cost=60 * scale,
            window_value=0.7,
            opportunities=900,
            wins=80,
            traffic_share=0.012,
            traffic_left=0.8,
            last_multiplier=0.9,
        )
        rules = BidRules(has_guard=False, money_scale=scale)
        return decide(WindowRequest(BidStrategy.FLEET, BidState(), window, rules), nets).decision.multiplier

    assert multiplier(1.0) == pytest.approx(multiplier(1e6), rel=1e-5)
