"""The nets as a decision sees them; a strategy without a net loads none (and no NumPy)."""

from typing import Final, Protocol

import msgspec

# What the seed's agent multiplies its running multiplier by, and the bounds of that.
ACTIONS: Final = (0.8, 0.9, 1.0, 1.1, 1.2)
DQN_MIN, DQN_MAX = 0.5, 2.0


class FleetAnswer(msgspec.Struct, frozen=True):
    """ln m (may be NaN), the next state of the net, and how many features were beyond the clip."""

    log_m: float
    hidden: bytes
    beyond: int


class FleetPort(Protocol):
    """Runs the net of `fleet` for many campaigns at once."""

    def run(self, features: list[list[float]], hidden: list[bytes]) -> list[FleetAnswer]: ...


class DqnPort(Protocol):
    """Runs the seed's agent for many campaigns at once."""

    def choose(self, states: list[list[float]]) -> list[int | None]: ...


class Nets(msgspec.Struct, frozen=True):
    """The nets, or why there is none."""

    fleet: FleetPort | str = "weights missing"
    dqn: DqnPort | str = "weights missing"
