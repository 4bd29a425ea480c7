"""The nets that come with the package; read once, at first use."""

import functools
from typing import Final

import numpy as np

from adloom.bidding import dqn, network
from adloom.bidding.dqn import DqnNet
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
    apply_sigmoid,
)
from adloom.bidding.ports import DqnPort, FleetAnswer, FleetPort, Nets
from adloom.bidding.weights import WeightsError, decode_weights
from adloom.bidding.weights_card import find_doubt, read_shipped

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
        gates = apply_sigmoid(own[:, :BOTH] + old[:, :BOTH])
        candidate = np.tanh(own[:, BOTH:GATES] + gates[:, :UNITS] * old[:, BOTH:])
        after = candidate + gates[:, UNITS:] * (state - candidate)
        log_m = np.tanh(own[:, GATES:] + after @ self._from_after) @ self._output + self._middle
        rows, size = after.tobytes(), len(EMPTY)
        return [
            # NaN stays what it is: `min` and `max` keep their first argument where nothing compares.
            FleetAnswer(max(min(one, LOG_MAX), LOG_MIN), rows[index * size : (index + 1) * size], count)
            for index, (one, count) in enumerate(zip(log_m.tolist(), beyond.tolist(), strict=True))
        ]


@functools.cache
def load_nets() -> Nets:
    return build_nets(read_shipped("fleet"), read_shipped("dqn"))


def build_with_own_fleet(fleet: bytes) -> Nets:
    """Build the nets with other weights of `fleet` than those of the package."""
    return Nets(_build_fleet(fleet), load_nets().dqn)


def build_nets(fleet: bytes | None, dqn_data: bytes | None) -> Nets:
    """Build what decisions use; a file that is missing or damaged becomes the reason of the fallback."""
    return Nets(_build_fleet(fleet), _build_dqn(dqn_data))


def decode_fleet(data: bytes) -> FleetNet:
    return FleetNet(**decode_weights(data, "fleet", network.SHAPES)[1])


def _build_fleet(data: bytes | None) -> FleetPort | str:
    if data is None:
        return "weights missing"
    try:
        return FleetRunner(decode_fleet(data))
    except WeightsError as error:
        return f"weights: {error}"


def _build_dqn(data: bytes | None) -> DqnPort | str:
    doubt = find_doubt(data, "dqn")
    if doubt is not None or data is None:
        return doubt or "weights missing"
    try:
        return DqnNet(**decode_weights(data, "dqn", dqn.SHAPES)[1])
    except WeightsError as error:
        return f"weights: {error}"
