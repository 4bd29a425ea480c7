"""The seed's bid agent, greedy: 8 → 64 → 64 → 5 moves a running multiplier by one of five factors."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from adloom.bidding.features import INPUTS
from adloom.bidding.ports import ACTIONS

HIDDEN: Final = 64

Array = npt.NDArray[np.floating[Any]]

SHAPES: Final[Mapping[str, tuple[int, ...]]] = {
    "first": (INPUTS, HIDDEN),
    "first_bias": (HIDDEN,),
    "second": (HIDDEN, HIDDEN),
    "second_bias": (HIDDEN,),
    "output": (HIDDEN, len(ACTIONS)),
    "output_bias": (len(ACTIONS),),
}


class DqnNet(msgspec.Struct, frozen=True, kw_only=True):
    """The weights: dense, ReLU, linear at the end."""

    first: Array
    first_bias: Array
    second: Array
    second_bias: Array
    output: Array
    output_bias: Array

    def forward(self, inputs: Array) -> Array:
        """Return the value of each action, for rows of states."""
        hidden = np.maximum(inputs @ self.first + self.first_bias, np.float32(0.0))
        hidden = np.maximum(hidden @ self.second + self.second_bias, np.float32(0.0))
        return hidden @ self.output + self.output_bias

    def choose(self, states: list[list[float]]) -> list[int | None]:
        """Return the best action of each state; None where the net does not say a number."""
        values = self.forward(np.array(states, dtype=np.float32))
        best: list[int] = values.argmax(axis=1).tolist()
        sums: list[float] = values.sum(axis=1).tolist()
        return [action if isfinite(total) else None for action, total in zip(best, sums, strict=True)]
