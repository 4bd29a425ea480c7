"""What a strategy remembers of a campaign between windows; kept with the campaign, versioned."""

from typing import Final

import msgspec

from adloom.bidding.pacer import PacerState
from adloom.bidding.window import BidWindow

VERSION: Final = 1


class BidState(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of all strategies at once, so that a campaign can change its strategy at any window.

    A later version adds fields with defaults: what an earlier one wrote is read as it is.
    """

    version: int = VERSION
    window: int = -1  # The last that was decided, -1 before the first.
    multiplier: float | None = None  # As decided,
    chosen: float = 1.0  # and as the running multiplier of `dqn`, before the guard.
    share: float = 0.0  # Of the day's traffic in that window.
    counts_from_end: bool = False  # `trafficLeft` does not include the window that begins.
    traffic: float = 0.0  # Opportunities of the day so far.
    slow_spend: float = 0.0
    slow_value: float = 0.0
    hidden: bytes = b""  # The GRU's state: 32 float32.
    strange: int = 0  # Windows in a row whose features were far from all that was trained on.
    pacer: PacerState = PacerState()

    def compute_left(self, window: BidWindow) -> float:
        """Return the share of the day's traffic from this window on, whichever way the sender counts it."""
        left = window.traffic_left + (window.traffic_share if self.counts_from_end else 0.0)
        return min(1.0, max(left, window.traffic_share, 0.0))


def counts_from_end(window: BidWindow) -> bool:
    """At the day's start all is left, or all but this window: so one sees how the sender counts."""
    share = window.traffic_share
    return share > 0 and abs(window.traffic_left + share - 1.0) < share / 4
