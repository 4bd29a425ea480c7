"""Chance is passed in: a seeded `random.Random` satisfies this, and so does the system's."""

from typing import Protocol


class Chance(Protocol):
    """What samplers may ask of randomness."""

    def random(self) -> float:
        """Draw from [0, 1)."""
        ...

    def uniform(self, a: float, b: float) -> float:
        """Draw between two bounds."""
        ...

    def betavariate(self, alpha: float, beta: float) -> float:
        """Draw from a beta distribution."""
        ...
