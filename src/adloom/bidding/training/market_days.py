"""Recorded market days: what a seat would have won and paid in each window at each of many multipliers."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

WINDOWS: Final = 96
BLOCK: Final = 16  # The recorded generator draws value levels anew every 16 windows.
TABLES: Final = ("value", "cost", "won", "shown")

Array = npt.NDArray[np.floating[Any]]
Indexes = npt.NDArray[np.int64]


class MarketDays(msgspec.Struct, frozen=True, kw_only=True):
    """Tables by day, seat, window and multiplier; as cube roots, between which one interpolates in ln m."""

    log_multipliers: npt.NDArray[np.float64]
    roots: (
        Array  # A row for each window, day, seat and multiplier, in this order; a column for each of TABLES.
    )
    opportunities: Array  # By day and window.
    budget: Array
    target: Array
    best_score: npt.NDArray[np.float64]  # By day and seat: the best constant multiplier in hindsight.
    shape: Array  # Share of the day's traffic by window, the mean of the days trained on.

    @property
    def seats(self) -> int:
        return len(self.budget)

    @property
    def days(self) -> int:
        return len(self.opportunities)

    def interpolate(
        self, windows: Indexes, days: Indexes, seats: Indexes, log_m: Array
    ) -> tuple[Array, Array]:
        """Return the tables' values at ln m and their slopes, a row for each window, day and seat."""
        grid = self.log_multipliers
        width, last = float(grid[1] - grid[0]), len(grid) - 1
        at = (log_m - np.float32(grid[0])) / np.float32(width)
        index = np.clip(at.astype(np.int64), 0, last - 1)
        part = np.clip(at - index, 0.0, 1.0).astype(np.float32)[:, None]
        row = ((windows * self.days + days) * self.seats + seats) * (last + 1) + index
        below = self.roots.take(row, axis=0)
        rise = self.roots.take(row + 1, axis=0) - below
        middle = below + part * rise
        square = middle * middle
        is_positive = (at >= 0.0)[:, None]  # Below the lowest multiplier nothing is won.
        is_inside = is_positive & (at <= last)[:, None]
        return square * middle * is_positive, square * rise * (is_inside * np.float32(3.0 / width))


def build_market_days(
    tables: Mapping[str, npt.NDArray[Any]], days: Indexes, shaped_by: Indexes
) -> MarketDays:
    """Take days (by index) out of the tables of an archive; the traffic shape is that of `shaped_by`."""
    traffic = tables["opportunities"][shaped_by].astype(np.float64)
    shares = (traffic / traffic.sum(axis=1, keepdims=True)).mean(axis=0)
    by_window = [tables[name][days].transpose(2, 0, 1, 3).astype(np.float32) for name in TABLES]
    return MarketDays(
        log_multipliers=np.log(tables["multipliers"].astype(np.float64)),
        roots=np.cbrt(np.stack(by_window, axis=-1)).reshape(-1, len(TABLES)),
        opportunities=tables["opportunities"][days].astype(np.float32),
        budget=tables["budget"].astype(np.float32),
        target=tables["target"].astype(np.float32),
        best_score=tables["best_score"][days].astype(np.float64),
        shape=shares.astype(np.float32),
    )
