"""The answer to a question in words."""

# pure

import math
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.money import Micros
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.result import CampaignComparison, DayEstimate, Estimate
from adloom.forecast.what_if.question import REQUESTS_MIN
from adloom.serving.index.rows import AssignmentRow, compute_price

STEPS_A_DECADE: Final = 8  # A third apart.
WHOLE_FROM: Final = 10
NOT_ENOUGH: Final = (
    "Not enough traffic yet: a forecast needs at least"
    f" {REQUESTS_MIN} requests on the campaign's placements, and on pages that it wants, in the last seven days."
)

DUST: Final = (
    "This machine had time for a part of the traffic only, so small that the daily budget pays for fewer than five of its"
    " impressions: that says nothing. Ask again when it has less to do."
)


def blur_rivals(market: SimulatedMarket, advertiser_id: UUID | None) -> SimulatedMarket:
    """Round the bids of other advertisers: however often an account asks, it finds a step and no bid.

    A bid is rounded, and not what comes of it: the results of many questions would tell it together.
    """
    return msgspec.structs.replace(
        market,
        assignments=[_blur(row, advertiser_id) for row in market.assignments],
        creatives=[
            msgspec.structs.replace(row, assignment=_blur(row.assignment, advertiser_id))
            for row in market.creatives
        ],
    )


def _blur(row: AssignmentRow, advertiser_id: UUID | None) -> AssignmentRow:
    if row.advertiser_id == advertiser_id or not row.bid:
        return row
    bid = round_to_step(row.bid)
    return msgspec.structs.replace(row, bid=bid, price=compute_price(row.bid_type, bid))


def round_to_step(bid: Micros) -> Micros:
    """Round to the nearest of eight steps a factor of ten, which are a third apart; two significant digits."""
    step = 10 ** (round(STEPS_A_DECADE * math.log10(bid)) / STEPS_A_DECADE)
    digits = max(0, int(math.log10(step)) - 1)
    return Micros(max(1, round(step / 10**digits) * 10**digits))


def describe_unseen(share: float) -> str:
    """Say that the campaign was not shown in any run, and whether that may be for want of time."""
    said = "In the simulation the campaign is not shown at all, neither without nor with the change."
    if share == 1:
        return f"{said} Others win its requests, or its rules, dates or budgets leave it out."
    return (
        f"{said} In the time for an answer one in {1 / share:,.0f} requests could be simulated, which may be too few"
        " to see it."
    )


def is_unseen(compared: CampaignComparison) -> bool:
    after = compared.after
    return not compared.before.impressions.mean and (after is None or not after.impressions.mean)


def describe(compared: CampaignComparison, *, is_per_click: bool) -> str:
    """Say what changes on an average day, and how sure that is."""
    before, after, difference = compared.before, compared.after, compared.difference
    assert after is not None, "a question has a change"
    assert difference is not None, "a question has a change"
    shown = (
        f"With this change the campaign is expected to have {_count(after.impressions)} impressions a day"
        f" ({_describe_span(after.impressions)}) in place of {_count(before.impressions)}"
    )
    change = difference.impressions
    if change.is_clear:
        word = "more" if change.mean > 0 else "fewer"
        sure = f": {_count(Estimate(abs(change.mean)))} {word}, surely {_describe_least(change)} or more."
    else:
        sure = "; the difference is within chance."
    return f"{shown}{sure} {_describe_money(before, after, is_per_click=is_per_click)}"


def describe_pages(before: int, after: int, pages: int) -> str:
    """Say how many pages of contextual slots a campaign reaches."""
    return (
        f"In contextual slots it would reach {after:,} of {pages:,} pages that fit its categories, in place of"
        f" {before:,}."
    )


def _describe_money(before: DayEstimate, after: DayEstimate, *, is_per_click: bool) -> str:
    spend = f"It spends {after.spend.mean:,.2f} a day in place of {before.spend.mean:,.2f}"
    if after.price is None or before.price is None:
        return f"{spend}."
    what = "a click" if is_per_click else "a thousand impressions"
    return f"{spend}; {what} cost{'s' if is_per_click else ''} {after.price.mean:,.2f} in place of {before.price.mean:,.2f}."


def _count(one: Estimate) -> str:
    return f"{one.mean:,.0f}" if one.mean >= WHOLE_FROM or one.mean == int(one.mean) else f"{one.mean:,.1f}"


def _describe_span(one: Estimate) -> str:
    if one.low is None or one.high is None:
        return "one run"
    return f"{_count(Estimate(one.low))} to {_count(Estimate(one.high))}"


def _describe_least(change: Estimate) -> str:
    assert change.low is not None, "a clear difference has an interval"
    assert change.high is not None, "a clear difference has an interval"
    return _count(Estimate(min(abs(change.low), abs(change.high))))
