"""Trains the seed's agent (Double DQN, its constants) on the fleet's days, inside the guard; never with real money."""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from adloom.bidding.dqn import SHAPES, Array, DqnNet
from adloom.bidding.features import IMPRESSIONS, INPUTS
from adloom.bidding.ports import ACTIONS, DQN_MAX, DQN_MIN
from adloom.bidding.training.batch import SeatDays, draw_seat_days, make_plain_seat_days
from adloom.bidding.training.day import (
    DayProgress,
    WindowOutcome,
    advance,
    bid_window,
    log_guard,
    score_days,
)
from adloom.bidding.training.market_days import WINDOWS, Indexes, MarketDays

DISCOUNT: Final = 0.99
REPLAY: Final = 10_000
BATCH: Final = 32
BUFFER_MIN: Final = 100
SYNC_EVERY: Final = 100
EXPLORE_FIRST, EXPLORE_LAST, EXPLORE_KEPT = 1.0, 0.05, 0.995
RATE: Final = 0.001
TARGET_MAX: Final = 100.0
GRADIENT_MAX: Final = 5.0
OVERSPEND_FROM: Final = 1.5
OVERSPEND_PENALTY: Final = 2.0
ROWS: Final = 64  # Seat-days played side by side,
EVALUATE_EVERY: Final = 5
STEPS_A_WINDOW: Final = 8  # with so many training steps after each window of them.


class DoubleDqn:
    """The learner: two nets, a circular buffer, and an exploration that falls with every training step."""

    def __init__(self, chance: np.random.Generator) -> None:
        self._chance = chance
        self.net = _draw_net(chance)
        self._slow = self.net
        self.train_steps = 0
        self._states = np.zeros((REPLAY, INPUTS), dtype=np.float32)
        self._actions = np.zeros(REPLAY, dtype=np.int64)
        self._rewards = np.zeros(REPLAY, dtype=np.float32)
        self._next = np.zeros((REPLAY, INPUTS), dtype=np.float32)
        self._is_done = np.zeros(REPLAY, dtype=np.bool_)
        self._stored = 0

    @property
    def exploration(self) -> float:
        return max(EXPLORE_LAST, EXPLORE_FIRST * EXPLORE_KEPT**self.train_steps)

    def act(self, states: Array) -> Indexes:
        best = self.net.forward(states).argmax(axis=1)
        drawn = self._chance.integers(len(ACTIONS), size=len(states))
        return np.where(self._chance.random(len(states)) < self.exploration, drawn, best)

    def store(self, states: Array, actions: Indexes, rewards: Array, after: Array, *, is_done: bool) -> None:
        at = (self._stored + np.arange(len(states))) % REPLAY
        self._states[at], self._actions[at], self._rewards[at] = states, actions, rewards
        self._next[at], self._is_done[at] = after, is_done
        self._stored += len(states)

    def train(self) -> None:
        """One step on 32 observations, once there are 100."""
        size = min(self._stored, REPLAY)
        if size < BUFFER_MIN:
            return
        at = self._chance.integers(size, size=BATCH)
        after = self._next[at]
        best = self.net.forward(after).argmax(axis=1)
        future = self._slow.forward(after)[np.arange(BATCH), best]
        target = self._rewards[at] + np.where(self._is_done[at], 0.0, DISCOUNT * future)
        self.net = descend(
            self.net, self._states[at], self._actions[at], np.clip(target, -TARGET_MAX, TARGET_MAX)
        )
        self.train_steps += 1
        if self.train_steps % SYNC_EVERY == 0:
            self._slow = self.net


def descend(net: DqnNet, states: Array, actions: Indexes, target: npt.NDArray[np.floating]) -> DqnNet:
    """One step downhill; only the action that was taken has an error."""
    first = states @ net.first + net.first_bias
    one = np.maximum(first, 0)
    second = one @ net.second + net.second_bias
    two = np.maximum(second, 0)
    output = two @ net.output + net.output_bias
    rows = np.arange(len(states))
    to_output = np.zeros_like(output)
    to_output[rows, actions] = 2 * (output[rows, actions] - target) / len(ACTIONS)
    to_output = np.clip(to_output, -GRADIENT_MAX, GRADIENT_MAX)
    to_second = (to_output @ net.output.T) * (second > 0)
    to_first = (to_second @ net.second.T) * (first > 0)
    rate = np.float32(RATE)
    return DqnNet(
        first=net.first - rate * (states.T @ to_first),
        first_bias=net.first_bias - rate * to_first.sum(axis=0),
        second=net.second - rate * (one.T @ to_second),
        second_bias=net.second_bias - rate * to_second.sum(axis=0),
        output=net.output - rate * (two.T @ to_output),
        output_bias=net.output_bias - rate * to_output.sum(axis=0),
    )


def train_dqn(
    days: MarketDays, *, episodes: int, seed: int, on_episode: Callable[[float], None] | None = None
) -> tuple[DqnNet, list[float]]:
    """Return the net that was best on the days it learned from, looked at every few episodes, and all those looks."""
    chance = np.random.default_rng(seed)
    learner = DoubleDqn(chance)
    best, highest, curve = learner.net, -1.0, list[float]()
    for episode in range(episodes):
        _play(days, draw_seat_days(days, ROWS, chance), learner)
        if episode % EVALUATE_EVERY == EVALUATE_EVERY - 1 or episode == episodes - 1:
            share, _ = measure_dqn(days, learner.net)
            curve.append(share)
            if share > highest:
                best, highest = learner.net, share
        if on_episode is not None:
            on_episode(highest)
    return best, curve


def measure_dqn(days: MarketDays, net: DqnNet) -> tuple[float, float]:
    """Return the share of the best constants' score, and the share of seat-days over the target."""
    rows = make_plain_seat_days(days)
    agent = DayOfAgent(rows)
    for t in range(WINDOWS):
        agent.bid(days, t, net.forward(agent.build_states(t)).argmax(axis=1))
    score = score_days(agent.now.value, agent.now.cost, rows.target)
    over = agent.now.cost > rows.target * agent.now.value
    return float(score.sum() / days.best_score.sum()), float(over.mean())


def _play(days: MarketDays, rows: SeatDays, learner: DoubleDqn) -> None:
    agent = DayOfAgent(rows)
    states = agent.build_states(0)
    for t in range(WINDOWS):
        actions = learner.act(states)
        agent.bid(days, t, actions)
        after = agent.build_states(t + 1)
        # Variant A of the seed's reward: what the window brought, less for spending far too fast.
        rewards = agent.now.window_value - OVERSPEND_PENALTY * np.maximum(0, after[:, 5] - OVERSPEND_FROM)
        learner.store(states, actions, rewards.astype(np.float32), after, is_done=t == WINDOWS - 1)
        states = after
        for _ in range(STEPS_A_WINDOW):
            learner.train()


class DayOfAgent:
    """Rows of seat-days that actions move through."""

    def __init__(self, rows: SeatDays) -> None:
        self.now: DayProgress = DayProgress.start(len(rows))
        self._rows = rows
        self._chosen = np.ones(len(rows), dtype=np.float32)
        self._wins = np.zeros(len(rows), dtype=np.float32)  # Not as a share.

    def build_states(self, t: int) -> Array:
        """`build_dqn_state`, for rows."""
        now, rows = self.now, self._rows
        left = rows.left[:, t] if t < WINDOWS else np.zeros(len(rows), dtype=np.float32)
        planned = rows.budget * np.maximum(1.0 - left, 1e-6)
        value, wins = now.window_value, self._wins
        columns = [
            np.minimum(2.0, np.exp(now.last)),
            np.where(wins > 0, np.minimum(1.0, value / np.maximum(wins, 1e-9)), 0.0),
            now.wins if t else np.full(len(rows), 0.5),
            np.clip(1.0 - now.cost / rows.budget, 0.0, 1.0),
            np.full(len(rows), 1.0 - t / WINDOWS),
            np.minimum(3.0, now.cost / planned) if t else np.ones(len(rows)),
            np.minimum(2.0, wins / IMPRESSIONS),
            np.where(
                value > 0, np.minimum(2.0, now.window_cost / np.maximum(value, 1e-9) / rows.target), 0.0
            ),
        ]
        return np.stack(columns, axis=1).astype(np.float32)

    def bid(self, days: MarketDays, t: int, actions: Indexes) -> WindowOutcome:
        factors = np.array(ACTIONS, dtype=np.float32)[actions]
        self._chosen = np.clip(self._chosen * factors, DQN_MIN, DQN_MAX).astype(np.float32)
        log_m = np.minimum(np.log(self._chosen), log_guard(self._rows, t, self.now))
        outcome = bid_window(days, self._rows, t, log_m, self.now.cost)
        advance(days, self._rows, t, self.now, outcome, log_m)
        self._wins = outcome.wins * days.opportunities[self._rows.day[:, t], self._rows.at[:, t]]
        return outcome


def _draw_net(chance: np.random.Generator) -> DqnNet:
    """N(0, √(2 / inputs)), no bias."""
    arrays: dict[str, Array] = {}
    for name, shape in SHAPES.items():
        scale = (2.0 / shape[0]) ** 0.5 if len(shape) > 1 else 0.0
        arrays[name] = (scale * chance.standard_normal(shape)).astype(np.float32)
    return DqnNet(**arrays)
