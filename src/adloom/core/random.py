"""Chance is passed in: a seeded `random.Random` satisfies this, and so does the system's."""

from typing import Protocol


class Chance(Protocol):
    """What samplers may ask of randomness."""

    def random(self) -> float: ...

    def uniform(self, a: float, b: float) -> float: ...

    def betavariate(self, alpha: float, beta: float) -> float: ...
