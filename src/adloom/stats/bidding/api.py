"""A campaign's bidding over HTTP: its multiplier, the decisions of its day, and what other strategies would have done."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field

from adloom.bidding.pacer import find_rise
from adloom.bidding.window import NOT_ASKED, BidDecision, BidStrategy, describe_decision
from adloom.budgets.bid_model import BidProgress, BidRow
from adloom.budgets.bids.store import load_decisions
from adloom.budgets.campaign.bids import find_window, find_window_start
from adloom.budgets.status import BudgetStatus
from adloom.budgets.status_store import load_campaign_status
from adloom.budgets.traffic.store import read_followed_shape
from adloom.catalog.campaign.resource import campaigns
from adloom.core.money import Micros
from adloom.resource.api import AdvertiserReads
from adloom.resource.shapes import PaisaShown
from adloom.runtime.http.api.dependencies import Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer
from adloom.runtime.postgres import read_snapshot
from adloom.schedule.traffic_shape import TrafficShape, build_day_curve
from adloom.stats.bidding.shadow_results import (
    DecidedWindow,
    EstimateBounds,
    ResultRange,
    StrategyTotal,
    WindowResults,
    estimate_windows,
    find_ranges,
    sum_up,
)

PLAN_POINTS: Final = 24
NO_GUARD: Final = "The guard watches strategies with a target only."
PLACES: Final = 4
RESULT_PLACES: Final = 2


class GuardAnswer(Answer):
    """How high the guard let the strategy bid."""

    limit: Annotated[float | None, Field(description="Times the bid. Null where nothing is guarded.")]
    reason: str | None = None


class ResultsAnswer(Answer):
    """What ads brought from one decision to the next; what is estimated has parts of an impression."""

    spent: Annotated[PaisaShown, Field(alias="spentPaisa")]
    impressions: float
    clicks: float
    conversions: float


class ShadowAnswer(Answer):
    """What another strategy would have decided for this window; it changed nothing."""

    strategy: BidStrategy
    multiplier: float
    reason: str
    brought: Annotated[
        ResultsAnswer | None,
        Field(
            description="What that would have brought, estimated; null while the window lasts, or where nothing says it."
        ),
    ] = None


class DecisionAnswer(Answer):
    """A decision; spent and counts are the day's so far."""

    at: datetime
    multiplier: Annotated[float, Field(description="What bids were multiplied by: at most 1.")]
    wanted: Annotated[float, Field(description="What the strategy said.")]
    strategy: BidStrategy
    reason: Annotated[str, Field(description="The strategy, `guard`, or `fallback: ` and why.")]
    explanation: str
    note: Annotated[str | None, Field(description="What the advertiser should know.")] = None
    spent: Annotated[PaisaShown, Field(alias="spentPaisa")]
    impressions: int
    clicks: int
    conversions: int
    brought: Annotated[
        ResultsAnswer | None, Field(description="In this window alone; null while it lasts.")
    ] = None
    shadows: Sequence[ShadowAnswer]


class StrategyTotalAnswer(Answer):
    """What a strategy brought in the windows of the day that are over, or would have brought."""

    strategy: BidStrategy
    windows: Annotated[int, Field(description="For how many of them it is known.")]
    brought: ResultsAnswer
    low: Annotated[
        ResultsAnswer | None,
        Field(
            description="From here to `high`, with at least 90 % of chances; null where nothing is estimated."
        ),
    ] = None
    high: ResultsAnswer | None = None


class PlanPointAnswer(Answer):
    """What was to be spent by a moment, as the day's traffic usually comes."""

    at: datetime
    expected: Annotated[PaisaShown, Field(alias="expectedPaisa")]


class BiddingAnswer(Answer):
    """How a campaign's bids are multiplied today."""

    strategy: BidStrategy
    multiplier: float
    decided_at: datetime | None
    next_at: Annotated[datetime, Field(description="When the next window begins.")]
    guard: GuardAnswer
    fallback: Annotated[str | None, Field(description="Why the strategy did not decide.")] = None
    explanation: Annotated[str, Field(description="The last decision in words.")]
    note: str | None = None
    shadows: Annotated[
        Sequence[ShadowAnswer],
        Field(description="What the other strategies would have bid in the last window."),
    ]
    totals: Annotated[
        Sequence[StrategyTotalAnswer],
        Field(
            description="The sums over the day's windows that are over, the campaign's own strategy first."
        ),
    ]
    is_measured: Annotated[
        bool,
        Field(
            description="Whether its own bids have shown how delivery rises with the multiplier; else that is assumed."
        ),
    ]
    throttle: Annotated[float, Field(description="The share of offers that is left out to keep pace.")]
    history: Annotated[Sequence[DecisionAnswer], Field(description="The decisions of the day.")]
    plan: Annotated[
        Sequence[PlanPointAnswer],
        Field(description="The daily budget along the usual traffic; empty without one."),
    ]


router = make_router("/admin/campaigns/{campaign_id}", "budgets", 400, 401, 403, 404, 503)


@router.get("/bidding")
async def read_bidding(campaign_id: UUID, scope: AdvertiserReads, pool: Database, now: Now) -> BiddingAnswer:
    """Read what a campaign's bids are multiplied by, why, and how the day went."""
    async with read_snapshot(pool) as connection:
        campaign = await campaigns.table.find(connection, scope, campaign_id)
        status = await load_campaign_status(connection, campaign.id, now=now)
        rows = await load_decisions(connection, campaign.id, status.day)
        shape = await read_followed_shape(connection, status.site_key)
    bids = status.bids or BidProgress()
    decision = bids.decision
    day = status.budget_day
    rise = find_rise(bids.memory.pacer, bids.multiplier)
    bounds: EstimateBounds = {
        # What was spent before an admin opened a new window is of no budget any more.
        "daily_budget": None
        if status.daily_budget is None
        else status.daily_budget + status.spent_today - status.spent_window,
        "opportunities": bids.memory.pacer.traffic,
    }
    windows = estimate_windows(rows, rise, **bounds)
    history = [_build_decision(row, window) for row, window in zip(rows, windows, strict=True)]
    return BiddingAnswer(
        strategy=campaign.bid_strategy,
        multiplier=_round(bids.multiplier),
        decided_at=bids.decided_at,
        next_at=find_window_start(day, find_window(day, now, bids.windows) + 1, bids.windows),
        guard=_build_guard(decision),
        fallback=None if decision is None else decision.fallback,
        explanation=NOT_ASKED if decision is None else describe_decision(bids.strategy, decision),
        note=None if decision is None else decision.note,
        shadows=history[-1].shadows if history else [],
        totals=_build_totals(campaign.bid_strategy, sum_up(rows, windows), find_ranges(rows, rise, **bounds)),
        is_measured=rise.is_measured,
        throttle=_round(status.throttle),
        history=history,
        plan=_build_plan(status, shape),
    )


def _build_guard(decision: BidDecision | None) -> GuardAnswer:
    if decision is None or decision.limit is None:
        return GuardAnswer(limit=None, reason=NO_GUARD)
    if decision.reason == "guard":
        return GuardAnswer(limit=_round(decision.limit), reason="The strategy wanted more.")
    return GuardAnswer(limit=_round(decision.limit))


def _build_totals(
    own: BidStrategy, totals: Mapping[BidStrategy, StrategyTotal], ranges: Mapping[BidStrategy, ResultRange]
) -> list[StrategyTotalAnswer]:
    ordered = sorted(totals, key=lambda strategy: (strategy is not own, list(BidStrategy).index(strategy)))
    return [
        StrategyTotalAnswer.model_validate(
            {
                "strategy": strategy,
                "windows": totals[strategy].windows,
                "brought": _build_results(totals[strategy].results),
                "low": _build_results(ranges[strategy].low) if strategy in ranges else None,
                "high": _build_results(ranges[strategy].high) if strategy in ranges else None,
            }
        )
        for strategy in ordered
    ]


def _build_results(results: WindowResults | None) -> ResultsAnswer | None:
    if results is None:
        return None
    shown = {
        "spent": Micros(round(results.spent)),
        "impressions": round(results.impressions, RESULT_PLACES),
        "clicks": round(results.clicks, RESULT_PLACES),
        "conversions": round(results.conversions, RESULT_PLACES),
    }
    return ResultsAnswer.model_validate(shown)


def _build_decision(row: BidRow, window: DecidedWindow) -> DecisionAnswer:
    decision = BidDecision(multiplier=row.wanted, reason=row.reason, limit=row.limit, note=row.note)
    shown: dict[str, Any] = {
        "at": row.at,
        "multiplier": _round(row.multiplier),
        "wanted": _round(row.wanted),
        "strategy": row.strategy,
        "reason": row.reason,
        "explanation": describe_decision(BidStrategy(row.strategy), decision),
        "note": row.note,
        "spent": row.spent,
        "impressions": row.impressions,
        "clicks": row.clicks,
        "conversions": row.conversions,
        "brought": _build_results(window.actual),
        "shadows": [
            ShadowAnswer(
                strategy=BidStrategy(name),
                multiplier=_round(one.multiplier),
                reason=one.reason,
                brought=_build_results(window.shadows[name]),
            )
            for name, one in row.shadows.items()
        ],
    }
    return DecisionAnswer.model_validate(shown)


def _build_plan(status: BudgetStatus, shape: TrafficShape) -> list[PlanPointAnswer]:
    if status.daily_budget is None:
        return []
    day = status.budget_day
    curve = build_day_curve(shape, day.starts_at, day.ends_at)
    moments = [find_window_start(day, number, PLAN_POINTS) for number in range(PLAN_POINTS + 1)]
    return [
        PlanPointAnswer.model_validate(
            {"at": at, "expected": Micros(int(status.daily_budget * curve.compute_share(at)))}
        )
        for at in moments
    ]


def _round(value: float) -> float:
    return round(value, PLACES)
