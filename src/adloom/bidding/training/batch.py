"""Batches of seat-days to train on: other budgets, targets, prices and mixtures of days, so that no seat is known again.

Some rows are of other markets: their hours are exchanged, so that the net does not learn one market's clock; budgets
and win rates differ more. So a net does well on recorded days and keeps its head elsewhere.
"""

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from adloom.bidding.training.market_days import BLOCK, WINDOWS, Array, Indexes, MarketDays

BUDGET_JITTER: Final = 1.6
TARGET_JITTER: Final = 1.33
MIXED: Final = 0.5  # Of seat-days are put together from blocks of different days.
REPRICED: Final = 0.2  # Have other prices than were recorded.
PRICE_MIN, PRICE_MAX = 0.5, 3.5
UNSCALED: Final = 0.2  # Have a target in a currency whose scale is not known.
SHOWN: Final = 0.3  # Count impressions as wins, the others auctions won.
ACTUAL, FLAT, ROUGH = (
    0.15,
    0.1,
    0.15,
)  # Have other traffic shapes than the learned one: the day's own, none, a bad guess.
OTHER_MARKETS: Final = 0.25
OTHER_BUDGET_JITTER: Final = 3.0
OTHER_WIN_SCALE: Final = 3.0


class SeatDays(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of seat-days; prices are the recorded ones times `price`."""

    day: Indexes  # By row and window,
    at: Indexes  # as is the window of the tables that is played.
    seat: Indexes
    budget: Array
    target: Array
    price: Array
    target_feature: Array  # ln(target / 95), or 0 where the scale is not known.
    share: Array  # By row and window, as the learned shape says.
    left: Array  # At the start of the window.
    counts_shown: npt.NDArray[np.bool_]
    win_scale: Array
    log_shift: Array  # From our ln m to the tables'.

    def __len__(self) -> int:
        return len(self.seat)


def make_plain_seat_days(days: MarketDays, *, price: float = 1.0) -> SeatDays:
    """All seat-days as recorded, seats of a day one after the other."""
    count = days.days * days.seats
    seat = np.tile(np.arange(days.seats), days.days)
    ones = np.ones(count, dtype=np.float32)
    return _build(
        days,
        day=np.repeat(np.arange(days.days), days.seats)[:, None].repeat(WINDOWS, axis=1),
        at=np.arange(WINDOWS)[None].repeat(count, axis=0),
        seat=seat,
        budget=days.budget[seat],
        target=days.target[seat],
        price=ones * np.float32(price),
        share=days.shape[None].repeat(count, axis=0),
        has_scale=ones > 0,
        counts_shown=ones < 0,
        win_scale=ones,
    )


def draw_seat_days(days: MarketDays, count: int, chance: np.random.Generator) -> SeatDays:
    is_other = chance.random(count) < OTHER_MARKETS
    drawn = chance.integers(days.days, size=(count, WINDOWS // BLOCK))
    is_mixed = chance.random(count) < MIXED
    day = np.where(is_mixed[:, None], drawn, drawn[:, :1]).repeat(BLOCK, axis=1)
    at = np.where(is_other[:, None], _exchange_hours(count, chance), np.arange(WINDOWS))
    seat = chance.integers(days.seats, size=count)
    price = np.exp(chance.uniform(np.log(PRICE_MIN), np.log(PRICE_MAX), size=count))
    budget_jitter = np.where(
        is_other, _draw_jitter(chance, OTHER_BUDGET_JITTER, count), _draw_jitter(chance, BUDGET_JITTER, count)
    )
    win_scale = np.where(is_other, _draw_jitter(chance, OTHER_WIN_SCALE, count), np.float32(1.0))
    return _build(
        days,
        day=day,
        at=at,
        seat=seat,
        budget=days.budget[seat] * budget_jitter,
        target=days.target[seat] * _draw_jitter(chance, TARGET_JITTER, count),
        price=np.where(chance.random(count) < REPRICED, price, 1.0).astype(np.float32),
        share=_draw_shapes(days, day, at, chance),
        has_scale=chance.random(count) >= UNSCALED,
        counts_shown=chance.random(count) < SHOWN,
        win_scale=win_scale,
    )


def _exchange_hours(count: int, chance: np.random.Generator) -> Indexes:
    """Draw days whose blocks come in another order, from any hour, or are one block again and again."""
    blocks = WINDOWS // BLOCK
    turned = (np.arange(blocks) + chance.integers(blocks, size=(count, 1))) % blocks
    drawn = chance.integers(blocks, size=(count, blocks))
    kind = chance.integers(3, size=(count, 1))
    chosen = np.where(kind == 0, turned, np.where(kind == 1, drawn, drawn[:, :1]))
    return (chosen * BLOCK).repeat(BLOCK, axis=1) + np.arange(WINDOWS) % BLOCK


def _draw_shapes(days: MarketDays, day: Indexes, at: Indexes, chance: np.random.Generator) -> Array:
    """Mostly the learned shape; sometimes the day's own, none at all, or a bad guess."""
    count = len(day)
    kind = chance.random((count, 1))
    learned, actual = days.shape[at], days.opportunities[day, at]
    rough = learned * np.exp(0.3 * chance.standard_normal((count, WINDOWS // 4)).repeat(4, axis=1))
    shapes = np.where(kind < ACTUAL, actual, learned)
    shapes = np.where((kind >= ACTUAL) & (kind < ACTUAL + FLAT), 1.0, shapes)
    shapes = np.where(kind >= 1.0 - ROUGH, rough, shapes)
    return (shapes / shapes.sum(axis=1, keepdims=True)).astype(np.float32)


def _draw_jitter(chance: np.random.Generator, factor: float, count: int) -> Array:
    return np.exp(chance.uniform(-np.log(factor), np.log(factor), size=count)).astype(np.float32)


def _build(  # noqa: PLR0913 - one for each column
    days: MarketDays,
    *,
    day: Indexes,
    at: Indexes,
    seat: Indexes,
    budget: Array,
    target: Array,
    price: Array,
    share: Array,
    has_scale: npt.NDArray[np.bool_],
    counts_shown: npt.NDArray[np.bool_],
    win_scale: Array,
) -> SeatDays:
    left = share[:, ::-1].cumsum(axis=1)[:, ::-1]
    return SeatDays(
        day=day,
        at=at,
        seat=seat,
        budget=budget,
        target=target,
        price=price,
        target_feature=np.where(has_scale, np.log(target / 95.0), 0.0).astype(np.float32),
        share=share,
        left=np.ascontiguousarray(left),
        counts_shown=counts_shown,
        win_scale=win_scale.astype(np.float32),
        log_shift=np.log(target / days.target[seat] / price).astype(np.float32),
    )
