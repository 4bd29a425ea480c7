"""Runs the net of `fleet` for the campaigns of a window, all in one product."""

from typing import Final

import numpy as np

from adloom.bidding.network import (
    CLIP,
    DEVIATION_MIN,
    FEATURES,
    GATES,
    LOG_MAX,
    LOG_MIDDLE,
    LOG_MIN,
    UNITS,
    FleetNet,
    sigmoid,
)
from adloom.bidding.ports import FleetAnswer

EMPTY: Final = bytes(4 * UNITS)
BOTH: Final = 2 * UNITS  # The gates before the candidate.
HIGH: Final = np.float32(CLIP)


class FleetRunner:
    """A net with what a decision asks of it; what does not change is joined once."""

    def __init__(self, net: FleetNet) -> None:
        self._mean = net.mean
        self._per_deviation = (1.0 / np.maximum(net.deviation, DEVIATION_MIN)).astype(np.float32)
        self._from_features = np.concatenate([net.from_features, net.head[:FEATURES]], axis=1)
        self._feature_bias = np.concatenate([net.feature_bias, net.head_bias])
        self._from_state, self._state_bias = net.from_state, net.state_bias
        self._from_after = np.ascontiguousarray(net.head[FEATURES:])
        self._output, self._middle = net.output, np.float32(LOG_MIDDLE) + net.output_bias

    def run(self, features: list[list[float]], hidden: list[bytes]) -> list[FleetAnswer]:
        joined = b"".join([one if len(one) == len(EMPTY) else EMPTY for one in hidden])
        state = np.frombuffer(joined, dtype="<f4").reshape(len(hidden), UNITS)
        scaled = (np.array(features, dtype=np.float32) - self._mean) * self._per_deviation
        clipped = np.minimum(np.maximum(scaled, -HIGH), HIGH)
        beyond = (clipped != scaled).sum(axis=1)
        own = clipped @ self._from_features + self._feature_bias
        old = state @ self._from_state + self._state_bias
        gates = sigmoid(own[:, :BOTH] + old[:, :BOTH])
        candidate = np.tanh(own[:, BOTH:GATES] + gates[:, :UNITS] * old[:, BOTH:])
        after = candidate + gates[:, UNITS:] * (state - candidate)
        log_m = np.tanh(own[:, GATES:] + after @ self._from_after) @ self._output + self._middle
        rows, size = after.tobytes(), len(EMPTY)
        return [
            # NaN stays what it is: `min` and `max` keep their first argument where nothing compares.
            FleetAnswer(max(min(one, LOG_MAX), LOG_MIN), rows[index * size : (index + 1) * size], count)
            for index, (one, count) in enumerate(zip(log_m.tolist(), beyond.tolist(), strict=True))
        ]
