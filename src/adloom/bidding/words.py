"""Decisions of strategies in words, for people."""

from typing import Final

from adloom.bidding.window import BidDecision, BidStrategy

NAMES: Final = {
    BidStrategy.FIXED: "Fixed",
    BidStrategy.PACER: "Pacer",
    BidStrategy.FLEET: "Fleet",
    BidStrategy.DQN: "DQN",
}
NOT_ASKED: Final = (
    "Nothing was decided yet: the campaign decides when it is first offered in a window of its day."
)
IN_FULL: Final = 0.9995


def describe_decision(strategy: BidStrategy, decision: BidDecision) -> str:
    """Say in a sentence or two what a strategy decided, and why."""
    name, wanted = NAMES[strategy], decision.multiplier
    used = min(1.0, wanted)
    if decision.fallback is not None:
        said = f"{name} fell back ({decision.fallback}): it bids {_name_share(used)}, as its pace needs."
    elif decision.reason == "guard":
        said = f"{name} wanted more, and the guard allows {wanted:.2f} times the bid: what the day has saved so far."
    elif strategy is BidStrategy.FIXED:
        said = "Fixed bids in full."
    elif strategy is BidStrategy.PACER:
        said = f"Pacer bids {_name_share(used)}, so that the budget lasts until the day's end."
    else:
        said = f"{name} bids {_name_share(used)}, by what the day has brought so far for its target."
    if wanted > 1.0 + 1e-9:
        said += f" It would bid {wanted:.2f} times the bid, which is the most that the campaign pays: raise the bid to allow it."
    return said


def _name_share(multiplier: float) -> str:
    return "in full" if multiplier >= IN_FULL else f"{multiplier:.0%} of the bid"
