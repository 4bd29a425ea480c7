"""Plays recorded days through the decision that real campaigns use, window by window."""

import msgspec
import numpy as np

from adloom.bidding.decide import WindowRequest, decide_all
from adloom.bidding.ports import Nets
from adloom.bidding.state import BidState
from adloom.bidding.training.batch import SeatDays, make_plain_seat_days
from adloom.bidding.training.day import DayProgress, advance, bid_window, score_days
from adloom.bidding.training.market_days import WINDOWS, Array, MarketDays
from adloom.bidding.window import BidRules, BidStrategy, BidWindow


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """Score, value and cost of seat-days, and how often each reason decided."""

    score: Array
    value: Array
    cost: Array
    target: Array
    budget: Array
    reasons: dict[str, int]

    @property
    def over(self) -> float:
        """The share of seat-days whose cost per conversion is over the target."""
        return float((self.cost > self.target * self.value).mean())

    @property
    def spent(self) -> float:
        return float((self.cost / self.budget).mean())


def replay(
    days: MarketDays,
    strategy: BidStrategy,
    nets: Nets,
    *,
    rules: BidRules | None = None,
    rows: SeatDays | None = None,
) -> Replayed:
    rows, rules = rows or make_plain_seat_days(days), rules or BidRules()
    now, states = DayProgress.start(len(rows)), [BidState()] * len(rows)
    reasons: dict[str, int] = {}
    for t in range(WINDOWS):
        windows = _build_windows(days, rows, t, now)
        asked = [
            WindowRequest(strategy, state, one, rules) for state, one in zip(states, windows, strict=True)
        ]
        answers = decide_all(asked, nets)
        states = [answer.state for answer in answers]
        for answer in answers:
            reasons[answer.decision.reason] = reasons.get(answer.decision.reason, 0) + 1
        multipliers = np.array([answer.decision.multiplier for answer in answers], dtype=np.float32)
        log_m = np.log(multipliers)
        outcome = bid_window(days, rows, t, log_m, now.cost)
        advance(days, rows, t, now, outcome, log_m)
    return Replayed(
        score=score_days(now.value, now.cost, rows.target),
        value=now.value,
        cost=now.cost,
        target=rows.target,
        budget=rows.budget,
        reasons=reasons,
    )


def _build_windows(days: MarketDays, rows: SeatDays, t: int, now: DayProgress) -> list[BidWindow]:
    traffic = (
        days.opportunities[rows.day[:, t - 1], rows.at[:, t - 1]]
        if t
        else np.zeros(len(rows), dtype=np.float32)
    )
    return [
        BidWindow(
            window=t,
            windows=WINDOWS,
            budget=budget,
            remaining=max(0.0, budget - cost),
            target=target,
            cost=cost,
            value=value,
            window_cost=window_cost,
            window_value=window_value,
            opportunities=opportunities,
            wins=wins,
            traffic_share=share,
            traffic_left=left,
            last_multiplier=float(np.exp(last)) if t else None,
        )
        for budget, cost, target, value, window_cost, window_value, opportunities, wins, share, left, last in zip(
            rows.budget.tolist(),
            now.cost.tolist(),
            rows.target.tolist(),
            now.value.tolist(),
            now.window_cost.tolist(),
            now.window_value.tolist(),
            traffic.tolist(),
            (now.wins * traffic).tolist(),
            rows.share[:, t].tolist(),
            np.minimum(1.0, rows.left[:, t]).tolist(),
            now.last.tolist(),
            strict=True,
        )
    ]
