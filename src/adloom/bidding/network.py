"""The weights of `fleet`: a GRU over a campaign's windows, and what its features are measured by."""

from collections.abc import Mapping
from math import log
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

FEATURES: Final = 18
UNITS: Final = 32
HEAD: Final = 32
GATES: Final = 3 * UNITS
CLIP: Final = 4.0
DEVIATION_MIN: Final = 0.05
LOG_MIDDLE: Final = log(0.8)
LOG_MIN: Final = log(0.15)
LOG_MAX: Final = log(3.0)

Array = npt.NDArray[np.floating[Any]]

# Name and shape of every array, in the order of the weights file.
SHAPES: Final[Mapping[str, tuple[int, ...]]] = {
    "mean": (FEATURES,),
    "deviation": (FEATURES,),
    "from_features": (FEATURES, GATES),
    "from_state": (UNITS, GATES),
    "feature_bias": (GATES,),
    "state_bias": (GATES,),
    "head": (FEATURES + UNITS, HEAD),
    "head_bias": (HEAD,),
    "output": (HEAD,),
    "output_bias": (1,),
}


class FleetNet(msgspec.Struct, frozen=True, kw_only=True):
    """The weights; gates lie side by side: reset, update, candidate."""

    mean: Array
    deviation: Array
    from_features: Array
    from_state: Array
    feature_bias: Array
    state_bias: Array
    head: Array
    head_bias: Array
    output: Array
    output_bias: Array

    def standardise(self, features: Array) -> Array:
        scaled = (features - self.mean) / np.maximum(self.deviation, DEVIATION_MIN)
        return np.clip(scaled, -CLIP, CLIP).astype(np.float32)


def apply_sigmoid(values: Array) -> Array:
    """Compute it by tanh, which does not overflow."""
    return np.float32(0.5) * (np.tanh(np.float32(0.5) * values) + np.float32(1.0))
