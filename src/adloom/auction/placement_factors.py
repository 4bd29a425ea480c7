"""The factors of placements by a model, for one device and hour; cached, and shared by visitors of all segments."""

from array import array
from collections.abc import Callable, Sequence
from math import log
from typing import NamedTuple

from adloom.auction.features import find_placement_slots
from adloom.auction.model import sum_exp


class FactorGroup(NamedTuple):
    """The factors of some placements together."""

    logs: Sequence[float]  # Of each, the logarithm.
    lowest: float
    highest: float


class PlacementFactors:
    """By placement, the factor for a device and an hour."""

    def __init__(
        self,
        weights: "array[float]",
        device: str | None,
        hour: int | None,
        count_cached: Callable[[], None],
    ) -> None:
        self._weights = weights
        self._device = device
        self._hour = hour
        self._count_cached = count_cached
        self._factors: dict[int, float] = {}
        self._groups: dict[tuple[int, ...], FactorGroup] = {}

    def get(self, placement_key: int) -> float:
        factor = self._factors.get(placement_key)
        if factor is None:
            self._count_cached()
            slots = find_placement_slots(placement_key, self._device, self._hour)
            factor = self._factors[placement_key] = sum_exp(self._weights, slots)
        return factor

    def get_group(self, placement_keys: tuple[int, ...]) -> FactorGroup:
        group = self._groups.get(placement_keys)
        if group is None:
            factors = [self.get(key) for key in placement_keys]
            group = FactorGroup([log(one) for one in factors], min(factors), max(factors))
            self._groups[placement_keys] = group
        return group

    def clear(self) -> None:
        self._factors.clear()
        self._groups.clear()
