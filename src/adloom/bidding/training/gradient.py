"""The exact gradient of a day's score in the net's weights, through all windows of the day."""

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from adloom.bidding.network import (
    CLIP,
    DEVIATION_MIN,
    FEATURES,
    LOG_MAX,
    LOG_MIDDLE,
    LOG_MIN,
    SHAPES,
    UNITS,
    Array,
    FleetNet,
    apply_sigmoid,
)
from adloom.bidding.training.batch import SeatDays
from adloom.bidding.training.day import (
    CENT,
    EPSILON,
    ROOM,
    SLOW,
    Carried,
    DayProgress,
    WindowOutcome,
    advance,
    bid_window,
    build_features,
    log_guard,
    score_days,
)
from adloom.bidding.training.market_days import WINDOWS, MarketDays

Gradient = dict[str, Array]
TRAINED: Final = tuple(name for name in SHAPES if name not in {"mean", "deviation"})
MANY: Final = slice(0, 2 * UNITS)
LAST: Final = slice(2 * UNITS, 3 * UNITS)


class Played(msgspec.Struct, frozen=True):
    """Score, value and cost of seat-days, and ln m by window."""

    score: Array
    value: Array
    cost: Array
    log_m: Array


class _Activations(msgspec.Struct, frozen=True, kw_only=True):
    scaled: Array
    state: Array
    from_state: Array
    gates: Array
    candidate: Array
    after: Array
    hidden: Array
    raw: Array


class _Traced(msgspec.Struct, frozen=True, kw_only=True):
    net: _Activations
    cost: Array
    value: Array
    outcome: WindowOutcome
    is_held: npt.NDArray[np.bool_]  # By the guard: the net had no say.


class DayPlayer:
    """Plays seat-days with a net, and walks back through them."""

    def __init__(self, days: MarketDays, rows: SeatDays, *, is_guarded: bool = False) -> None:
        self._days = days
        self._rows = rows
        self._is_guarded = is_guarded
        self._trace: list[_Traced] = []
        self._end = DayProgress.start(len(rows))

    def play(self, net: FleetNet, *, is_traced: bool = False) -> Played:
        now, rows = DayProgress.start(len(self._rows)), self._rows
        self._trace, logs = [], list[Array]()
        for t in range(WINDOWS):
            found = _activate(net, net.standardise(build_features(rows, t, now)), now.state)
            log_m = np.clip(found.raw, LOG_MIN, LOG_MAX).astype(np.float32)
            is_held = np.zeros(len(rows), dtype=np.bool_)
            if self._is_guarded:
                limit = log_guard(rows, t, now)
                is_held, log_m = limit < log_m, np.minimum(log_m, limit)
            outcome = bid_window(self._days, rows, t, log_m, now.cost)
            if is_traced:
                self._trace.append(
                    _Traced(net=found, cost=now.cost, value=now.value, outcome=outcome, is_held=is_held)
                )
            logs.append(log_m)
            advance(self._days, rows, t, now, outcome, log_m)
            now.state = found.after
        self._end = now
        score = score_days(now.value, now.cost, rows.target)
        return Played(score, now.value, now.cost, np.stack(logs))

    def differentiate(self, net: FleetNet, weight: Array) -> Gradient:
        """Return the gradient of the weighted sum of scores; after `play` with a trace."""
        flow = self._end_flow(self._end, weight)
        steps: list[tuple[Array, Array, Array, Array]] = []
        free = 1.0 / np.maximum(net.deviation, np.float32(DEVIATION_MIN))
        for t in reversed(range(WINDOWS)):
            traced = self._trace[t]
            to_raw = self._differentiate_outcome(traced, flow)
            to_scaled, step = _differentiate_net(net, traced.net, to_raw, flow)
            steps.append(step)
            is_free = np.abs(traced.net.scaled) < CLIP
            self._differentiate_features(t, traced, to_scaled * is_free * free, flow)
        return self._collect(steps[::-1])

    def _end_flow(self, end: DayProgress, weight: Array) -> Carried:
        target, flow = self._rows.target, Carried.start(len(weight))
        ratio = target * end.value / np.maximum(end.cost, np.float32(1e-9))
        is_over = ratio < 1.0
        to_value = np.where(is_over, 3.0 * ratio * ratio, 1.0) * weight
        to_cost = np.where(is_over, -2.0 * ratio * ratio * ratio / target, 0.0) * weight
        flow.cost, flow.value = to_cost.astype(np.float32), to_value.astype(np.float32)
        return flow

    def _differentiate_outcome(self, traced: _Traced, flow: Carried) -> Array:
        """From what a window brought to the net's raw output."""
        outcome = traced.outcome
        to_cost, to_value = flow.cost + flow.window_cost, flow.value + flow.window_value
        full = np.maximum(outcome.full_cost, np.float32(1e-9))
        rate = outcome.full_value / full
        fits = outcome.cost / full
        to_full_cost = np.where(outcome.is_capped, -to_value * fits * rate, to_cost)
        to_full_value = np.where(outcome.is_capped, to_value * fits, to_value)
        # What is left of the budget is spent: a unit spent before is one less now.
        flow.cost = flow.cost - np.where(outcome.is_capped, to_cost + to_value * rate, np.float32(0.0))
        to_log = (
            to_full_cost * outcome.cost_slope
            + to_full_value * outcome.value_slope
            + flow.wins * outcome.win_slope
            + flow.last
        )
        raw = traced.net.raw
        # At its bounds the output may come back, and not go further.
        is_stuck = ((raw > LOG_MAX) & (to_log > 0)) | ((raw < LOG_MIN) & (to_log < 0)) | traced.is_held
        return np.where(is_stuck, np.float32(0.0), to_log).astype(np.float32)

    def _differentiate_features(self, t: int, traced: _Traced, to: Array, flow: Carried) -> None:
        """From the features of window t to what they were made of."""
        rows = self._rows
        budget, target = rows.budget, rows.target
        remaining = (budget - traced.cost) / budget
        to_remaining = to[:, 1] + to[:, 2] / (remaining + CENT)
        flow.cost = flow.cost - to_remaining / budget + to[:, 3] / (traced.cost + ROOM * budget)
        flow.value = (
            flow.value
            - to[:, 3] * target / (target * traced.value + ROOM * budget)
            + to[:, 4] * target / budget
        )
        flow.last, flow.wins = to[:, 5], to[:, 8]
        to_slow_spend, to_slow_value = flow.slow_spend + to[:, 10], flow.slow_value + to[:, 11]
        to_spend, to_gain = to[:, 6] + SLOW * to_slow_spend, to[:, 7] + SLOW * to_slow_value
        flow.slow_spend, flow.slow_value = (1 - SLOW) * to_slow_spend, (1 - SLOW) * to_slow_value
        if t:
            before = self._trace[t - 1].outcome
            pace = budget * rows.share[:, t - 1]
            flow.window_cost = to_spend / (EPSILON * pace + before.cost)
            flow.window_value = to_gain * target / (EPSILON * pace + before.value * target)

    def _collect(self, steps: list[tuple[Array, Array, Array, Array]]) -> Gradient:
        """Sum over windows and rows, as one product each."""
        traces = [one.net for one in self._trace]

        def join(parts: list[Array]) -> Array:
            return np.concatenate(parts)

        to_gates, to_from_state, to_hidden, to_raw = (join(list(part)) for part in zip(*steps, strict=True))
        scaled, state = join([one.scaled for one in traces]), join([one.state for one in traces])
        after, hidden = join([one.after for one in traces]), join([one.hidden for one in traces])
        return {
            "from_features": scaled.T @ to_gates,
            "from_state": state.T @ to_from_state,
            "feature_bias": to_gates.sum(axis=0),
            "state_bias": to_from_state.sum(axis=0),
            "head": np.concatenate([scaled.T @ to_hidden, after.T @ to_hidden]),
            "head_bias": to_hidden.sum(axis=0),
            "output": hidden.T @ to_raw,
            "output_bias": to_raw.sum(keepdims=True),
        }


def _activate(net: FleetNet, scaled: Array, state: Array) -> _Activations:
    """Like `FleetNet.forward`, keeping what the way back needs."""
    from_features = scaled @ net.from_features + net.feature_bias
    from_state = state @ net.from_state + net.state_bias
    gates = apply_sigmoid(from_features[:, MANY] + from_state[:, MANY])
    candidate = np.tanh(from_features[:, LAST] + gates[:, :UNITS] * from_state[:, LAST])
    after = candidate + gates[:, UNITS:] * (state - candidate)
    hidden = np.tanh(scaled @ net.head[:FEATURES] + after @ net.head[FEATURES:] + net.head_bias)
    return _Activations(
        scaled=scaled,
        state=state,
        from_state=from_state,
        gates=gates,
        candidate=candidate,
        after=after,
        hidden=hidden,
        raw=(np.float32(LOG_MIDDLE) + hidden @ net.output + net.output_bias),
    )


def _differentiate_net(
    net: FleetNet, found: _Activations, to_raw: Array, flow: Carried
) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    """From the output to the features and the state before; also what the weights' gradients are made of."""
    to_hidden = to_raw[:, None] * net.output * (1 - found.hidden * found.hidden)
    to_after = flow.state + to_hidden @ net.head[FEATURES:].T
    reset, update = found.gates[:, :UNITS], found.gates[:, UNITS:]
    to_candidate = to_after * (1 - update) * (1 - found.candidate * found.candidate)
    to_update = to_after * (found.state - found.candidate) * update * (1 - update)
    to_reset = to_candidate * found.from_state[:, LAST] * reset * (1 - reset)
    to_gates = np.concatenate([to_reset, to_update, to_candidate], axis=1)
    to_from_state = np.concatenate([to_reset, to_update, to_candidate * reset], axis=1)
    flow.state = to_after * update + to_from_state @ net.from_state.T
    to_scaled = to_gates @ net.from_features.T + to_hidden @ net.head[:FEATURES].T
    return to_scaled, (to_gates, to_from_state, to_hidden, to_raw)
