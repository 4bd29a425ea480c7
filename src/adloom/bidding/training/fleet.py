"""Trains the net of `fleet` by the exact gradient of the day's score; one seed, one result."""

from collections.abc import Callable
from math import cos, pi
from typing import Final

import msgspec
import numpy as np

from adloom.bidding.network import HEAD, SHAPES, UNITS, Array, FleetNet
from adloom.bidding.training.batch import draw_seat_days, make_plain_seat_days
from adloom.bidding.training.day import DayProgress, advance, bid_window, build_features
from adloom.bidding.training.gradient import TRAINED, DayPlayer, Gradient
from adloom.bidding.training.market_days import WINDOWS, MarketDays, generate_days

RATE: Final = 6e-3
RATE_LAST: Final = 0.03  # Of the first, at the end.
WARM_UP: Final = 20
DECAY: Final = 0.02
GRADIENT_MAX: Final = 1.0
MOMENTUM, MOMENTUM_OF_SQUARES = 0.9, 0.98
AVERAGED: Final = 0.98  # The net that is kept is a slow average of the last ones.
GENERATED: Final = 0.1  # Of the batches are of generated days,
GENERATED_DAYS, GENERATED_SEATS = 8, 24  # of which there are so many.
GUARDED: Final = 0.5  # Of the batches are played inside the guard.


class TrainingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How long to train, on how many seat-days a step, and from which seed."""

    steps: int = 500
    batch: int = 256
    seed: int = 0
    rate: float = 1.0  # Of the usual learning rate.


class TrainingStep(msgspec.Struct, frozen=True):
    """What a step reached: the mean score of its batch over what the budgets could buy at the targets."""

    number: int
    share: float


def train_fleet(
    days: MarketDays,
    plan: TrainingPlan,
    *,
    begin: FleetNet | None = None,
    on_step: Callable[[TrainingStep, FleetNet], None] | None = None,
) -> FleetNet:
    chance = np.random.default_rng(plan.seed)
    net = begin or _draw_net(chance, *_measure_features(days, chance))
    generated = generate_days(days=GENERATED_DAYS, seats=GENERATED_SEATS, seed=plan.seed)
    average, adam = net, _Adam(net)
    for number in range(plan.steps):
        market = generated if chance.random() < GENERATED else days
        rows = draw_seat_days(market, plan.batch, chance)
        player = DayPlayer(market, rows, is_guarded=chance.random() < GUARDED)
        played = player.play(net, is_traced=True)
        # A row counts by what its budget could buy: another currency must not change what is learned.
        worth = rows.budget / rows.target
        weight = (1.0 / (worth.mean() * len(rows))) * np.ones_like(worth)
        gradient = player.differentiate(net, weight)
        net = adam.climb(net, gradient, rate=plan.rate * _compute_rate(number, plan.steps))
        kept = min(AVERAGED, (number + 1) / (number + 10))
        average = _mix(average, net, kept)
        if on_step is not None:
            on_step(TrainingStep(number, float(played.score.sum() / worth.sum())), average)
    return average


def _compute_rate(number: int, steps: int) -> float:
    warm = min(1.0, (number + 1) / WARM_UP)
    fall = RATE_LAST + (1 - RATE_LAST) * 0.5 * (1 + cos(pi * number / steps))
    return RATE * warm * fall


def _mix(slow: FleetNet, new: FleetNet, kept: float) -> FleetNet:
    one = np.float32(kept)
    parts = {name: one * getattr(slow, name) + (1 - one) * getattr(new, name) for name in TRAINED}
    return msgspec.structs.replace(slow, **parts)


def _measure_features(days: MarketDays, chance: np.random.Generator) -> tuple[Array, Array]:
    """Mean and deviation of the features when multipliers wander around 1."""
    rows = draw_seat_days(days, 512, chance)
    now, seen = DayProgress.start(len(rows)), list[Array]()
    log_m = chance.normal(0.0, 0.4, len(rows)).astype(np.float32)
    for t in range(WINDOWS):
        seen.append(build_features(rows, t, now))
        played = (log_m + chance.normal(0.0, 0.15, len(rows))).astype(np.float32)
        outcome = bid_window(days, rows, t, played, now.cost)
        advance(days, rows, t, now, outcome, played)
    features = np.concatenate(seen)
    return features.mean(axis=0), features.std(axis=0)


def _draw_net(chance: np.random.Generator, mean: Array, deviation: Array) -> FleetNet:
    def draw(name: str, scale: float) -> Array:
        return (scale * chance.standard_normal(SHAPES[name])).astype(np.float32)

    zero = {
        name: np.zeros(SHAPES[name], dtype=np.float32) for name in ("feature_bias", "state_bias", "head_bias")
    }
    zero["feature_bias"][UNITS : 2 * UNITS] = 1.0  # Remember, to begin with.
    return FleetNet(
        mean=mean,
        deviation=deviation,
        from_features=draw("from_features", 0.2),
        from_state=draw("from_state", 0.15),
        head=draw("head", 0.14),
        output=draw("output", 0.2 / HEAD**0.5),
        output_bias=np.zeros(1, dtype=np.float32),
        **zero,
    )


class _Adam:
    """Adam with decoupled weight decay, uphill."""

    def __init__(self, net: FleetNet) -> None:
        self._step = 0
        self._first = {name: np.zeros_like(getattr(net, name)) for name in TRAINED}
        self._second = {name: np.zeros_like(getattr(net, name)) for name in TRAINED}

    def climb(self, net: FleetNet, gradient: Gradient, *, rate: float) -> FleetNet:
        self._step += 1
        norm = float(np.sqrt(sum(float((part * part).sum()) for part in gradient.values())))
        shrink = np.float32(min(1.0, GRADIENT_MAX / max(norm, 1e-9)))
        changed: dict[str, Array] = {}
        for name in TRAINED:
            slope, weights = gradient[name] * shrink, getattr(net, name)
            first = self._first[name] = MOMENTUM * self._first[name] + (1 - MOMENTUM) * slope
            second = self._second[name] = (
                MOMENTUM_OF_SQUARES * self._second[name] + (1 - MOMENTUM_OF_SQUARES) * slope * slope
            )
            step = (first / (1 - MOMENTUM**self._step)) / (
                np.sqrt(second / (1 - MOMENTUM_OF_SQUARES**self._step)) + 1e-8
            )
            decay = DECAY * weights if weights.ndim > 1 else 0.0
            changed[name] = (weights + rate * (step - decay)).astype(np.float32)
        return msgspec.structs.replace(net, **changed)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """How a net did on plain days: the share of the best constants' score, and seat-days over the target."""

    share: float
    over: float
    spent: float


def measure_fleet(days: MarketDays, net: FleetNet, *, is_guarded: bool) -> Measured:
    rows = make_plain_seat_days(days)
    played = DayPlayer(days, rows, is_guarded=is_guarded).play(net)
    return Measured(
        share=float(played.score.sum() / days.best_score.sum()),
        over=float((played.cost > rows.target * played.value).mean()),
        spent=float((played.cost / rows.budget).mean()),
    )
