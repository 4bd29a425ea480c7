"""The seed's agent: its constants, its buffer, and the target of its two nets."""

import numpy as np
import pytest

from adloom.bidding.dqn import DqnNet
from adloom.bidding.training import dqn
from adloom.bidding.training.dqn import DoubleDqn, descend, measure_dqn, train_dqn
from adloom.bidding.training.market_days import generate_days


def fill(learner: DoubleDqn, count: int) -> None:
    states = np.ones((count, 8), dtype=np.float32)
    actions = np.zeros(count, dtype=np.int64)
    learner.store(states, actions, np.ones(count, dtype=np.float32), states, is_done=True)


def test_exploration_falls_with_every_training_step_to_its_floor() -> None:
    learner = DoubleDqn(np.random.default_rng(0))
    found: dict[int, float] = {}
    for steps in (32, 64, 96, 192, 288, 480, 598):
        learner.train_steps = steps
        found[steps] = round(learner.exploration, 4)

    assert found == {32: 0.8518, 64: 0.7256, 96: 0.618, 192: 0.382, 288: 0.2361, 480: 0.0902, 598: 0.05}


def test_it_learns_nothing_from_fewer_than_a_hundred_observations() -> None:
    learner = DoubleDqn(np.random.default_rng(0))
    fill(learner, 99)
    learner.train()
    assert learner.train_steps == 0

    fill(learner, 1)
    learner.train()
    assert learner.train_steps == 1


def test_the_buffer_keeps_the_last_ten_thousand() -> None:
    learner = DoubleDqn(np.random.default_rng(0))
    fill(learner, dqn.REPLAY)
    old = learner.net
    later = np.zeros((dqn.REPLAY, 8), dtype=np.float32)
    learner.store(
        later,
        np.zeros(dqn.REPLAY, dtype=np.int64),
        np.zeros(dqn.REPLAY, dtype=np.float32),
        later,
        is_done=True,
    )
    learner.train()

    # Only states of zeros with a reward of 0 are left, and a net without bias is right about them already.
    assert np.array_equal(learner.net.first, old.first)


def test_a_step_moves_the_action_that_was_taken_towards_its_target() -> None:
    net = DoubleDqn(np.random.default_rng(1)).net
    states = np.full((32, 8), 0.5, dtype=np.float32)
    actions = np.full(32, 2)
    before = net.forward(states)[0]
    target = np.full(32, before[2] + 1.0, dtype=np.float32)

    after = net
    for _ in range(30):
        after = descend(after, states, actions, target)

    assert after.forward(states)[0][2] == pytest.approx(target[0], abs=0.1)


def test_what_counts_is_what_the_slow_net_says_of_the_action_that_the_other_prefers() -> None:
    learner = DoubleDqn(np.random.default_rng(2))
    states = np.random.default_rng(3).random((100, 8)).astype(np.float32)
    learner.store(
        states, np.zeros(100, dtype=np.int64), np.zeros(100, dtype=np.float32), states, is_done=False
    )
    for _ in range(dqn.SYNC_EVERY - 1):
        learner.train()
    fast = learner.net

    learner.train()

    assert learner.train_steps == dqn.SYNC_EVERY
    assert not np.array_equal(fast.output, learner.net.output)


def test_a_net_that_answers_no_number_chooses_nothing() -> None:
    net = DoubleDqn(np.random.default_rng(0)).net
    broken = DqnNet(
        first=net.first * np.nan,
        first_bias=net.first_bias,
        second=net.second,
        second_bias=net.second_bias,
        output=net.output,
        output_bias=net.output_bias,
    )

    assert broken.choose([[1.0] * 8]) == [None]


def test_a_seed_gives_the_same_agent() -> None:
    days = generate_days(days=2, seats=6, seed=7)

    first, curve = train_dqn(days, episodes=2, seed=4)
    second, _ = train_dqn(days, episodes=2, seed=4)

    assert np.array_equal(first.output, second.output)
    assert curve == [measure_dqn(days, first)[0]]
