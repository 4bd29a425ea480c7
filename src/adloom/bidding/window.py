"""What a strategy gets at the start of a window, what it answers, and its answers in words, for people."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

WINDOWS: Final = 96
DUST: Final = 1e-9
FALLBACK: Final = "fallback: "
IN_FULL: Final = 0.9995
MEASURED: Final = (
    "remaining",
    "cost",
    "value",
    "window_cost",
    "window_value",
    "opportunities",
    "wins",
    "traffic_share",
    "traffic_left",
)

Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Share = Annotated[float, msgspec.Meta(ge=-0.001, le=1.001)]  # Sums of shares are rounded.


class BidStrategy(StrEnum):
    """How a campaign's multiplier is decided."""

    FIXED = "fixed"
    PACER = "pacer"
    FLEET = "fleet"
    DQN = "dqn"


NAMES: Final = {
    BidStrategy.FIXED: "Fixed",
    BidStrategy.PACER: "Pacer",
    BidStrategy.FLEET: "Fleet",
    BidStrategy.DQN: "DQN",
}
NOT_ASKED: Final = (
    "Nothing was decided yet: the campaign decides when it is first offered in a window of its day."
)


class BidWindow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The counters of a campaign; `cost` and `value` are the day's so far, those of the last window are named so."""

    window: Annotated[int, msgspec.Meta(ge=0, le=100_000)]
    windows: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = WINDOWS
    budget: Annotated[float, msgspec.Meta(gt=0, le=1e15)]
    remaining: Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]  # Less than nothing is nothing.
    target: Annotated[float, msgspec.Meta(gt=0, le=1e15)] | None = None
    cost: Amount
    value: Amount
    window_cost: Amount
    window_value: Amount
    opportunities: Amount
    wins: Amount
    # Of these opportunities the share that the pace of the budget did not leave out: at the same bid more would have cost.
    let_through: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    traffic_share: Share  # Of the day's traffic, in the window that begins,
    traffic_left: Share  # and from its start on.
    last_multiplier: Annotated[float, msgspec.Meta(gt=0, le=1e6)] | None = None

    def drop_dust(self) -> "BidWindow":
        """Take amounts and shares too small to divide by for nothing."""
        dust = {name: 0.0 for name in MEASURED if -DUST < getattr(self, name) < DUST and getattr(self, name)}
        return msgspec.structs.replace(self, **dust) if dust else self


class BidRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the advertiser and the installation say: the guard, its tolerance, and whether predictions can be trusted."""

    has_guard: bool = True
    tolerance: float = 0.0  # By how much of its budget a campaign may exceed its target.
    is_calibrated: bool = True
    money_scale: float = 1.0  # Makes 95 the median target of the fleet.


class BidDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The multiplier for a window, the strategy that decided it, and what the guard allowed."""

    multiplier: float
    reason: str  # The strategy's name, `guard`, or `fallback: ` and why.
    limit: float | None = None  # Of the guard; None without a target or a guard.
    note: str | None = None  # What the advertiser should know.

    @property
    def fallback(self) -> str | None:
        return self.reason.removeprefix(FALLBACK) if self.reason.startswith(FALLBACK) else None


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
