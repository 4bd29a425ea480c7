"""What the seed's agent sees of a campaign: eight numbers of its last window and its day."""

from typing import Final

from adloom.bidding.state import BidState
from adloom.bidding.window import BidWindow

INPUTS: Final = 8
IMPRESSIONS: Final = 100.0


def build_dqn_state(state: BidState, window: BidWindow) -> list[float]:
    """Compute the state; the spend rate follows the traffic shape, as the pacing does."""
    is_first = window.window == 0 or state.window < 0
    wins = 0.0 if is_first else window.wins
    value = 0.0 if is_first else window.window_value
    left = state.compute_left(window)
    planned = window.budget * (1.0 - left)
    return [
        min(2.0, state.chosen if window.last_multiplier is None or is_first else window.last_multiplier),
        min(1.0, value / wins) if wins > 0 else 0.0,
        min(1.0, wins / window.opportunities) if window.opportunities > 0 and not is_first else 0.5,
        min(1.0, max(0.0, window.remaining / window.budget)),
        min(1.0, max(0.0, 1.0 - window.window / window.windows)),
        min(3.0, window.cost / planned) if planned > 0 and not is_first else 1.0,
        min(2.0, wins / IMPRESSIONS),
        min(2.0, window.window_cost / value / (window.target or 1.0)) if value > 0 else 0.0,
    ]
