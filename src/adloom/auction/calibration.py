"""How well predicted click rates agree with what was clicked, over a moving window and by height of the prediction.

Examples are sorted into bins by the logarithm of their prediction. Older examples lose weight: half of it after
`WINDOW_HALF` further ones. Deciles are tenths of the impressions, from the lowest predictions to the highest.
"""

from collections.abc import Iterable
from math import floor, log10, sqrt
from typing import Final

import msgspec

WINDOW_HALF: Final = 50_000
BINS_PER_DECADE: Final = 12
PREDICTED_MIN: Final = 1e-6  # Lower predictions share a bin.
DECILES: Final = 10
# Weights grow instead of sums that shrink: an example changes one bin. Beyond this all are scaled back.
_SCALE_MAX: Final = 1e6
_GROWTH: Final = 0.5 ** (-1 / WINDOW_HALF)

# Far off: by a fifth, and by more than chance does. An installation with few clicks is not judged.
RATIO_MAX: Final = 1.25
CLICKS_MIN: Final = 100.0
DEVIATIONS_MIN: Final = 4.0


class BinSums(msgspec.Struct, array_like=True, gc=False):
    """Weighted sums of a bin: impressions, the clicks that were predicted, and those that came."""

    impressions: float = 0.0
    predicted: float = 0.0
    clicks: float = 0.0


class CalibrationWindow(msgspec.Struct):
    """What was predicted and what came; one for each way of predicting."""

    bins: dict[int, BinSums] = msgspec.field(default_factory=dict[int, BinSums])
    scale: float = 1.0

    def add(self, predicted: float, *, is_clicked: bool) -> None:
        """Add an impression with the prediction that was made before its outcome was known."""
        self.scale *= _GROWTH
        place = floor(log10(max(predicted, PREDICTED_MIN)) * BINS_PER_DECADE)
        found = self.bins.get(place)
        if found is None:
            found = self.bins[place] = BinSums()
        found.impressions += self.scale
        found.predicted += self.scale * predicted
        if is_clicked:
            found.clicks += self.scale
        if self.scale > _SCALE_MAX:
            self._scale_back()

    def _scale_back(self) -> None:
        for one in self.bins.values():
            one.impressions /= self.scale
            one.predicted /= self.scale
            one.clicks /= self.scale
        self.scale = 1.0


class CalibrationSums(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Impressions, the clicks that were predicted for them, and those that came; weighted, so no whole numbers."""

    impressions: float
    predicted_clicks: float
    clicks: float


class CalibrationReport(CalibrationSums, frozen=True, kw_only=True, rename="camel"):
    """The sums of a window, and of each tenth of its impressions, the lowest predictions first."""

    scoring: str
    deciles: tuple[CalibrationSums, ...]

    @property
    def ratio(self) -> float | None:
        """Predicted clicks by counted ones; None without clicks."""
        return self.predicted_clicks / self.clicks if self.clicks > 0 else None

    @property
    def is_far_off(self) -> bool:
        """Whether predictions are off by more than a fifth, and it is no chance."""
        if max(self.predicted_clicks, self.clicks) < CLICKS_MIN:
            return False
        least, most = sorted((self.predicted_clicks, self.clicks))
        deviation = (most - least) / sqrt(self.predicted_clicks or 1.0)
        return most > RATIO_MAX * least and deviation >= DEVIATIONS_MIN


def build_report(scoring: str, window: CalibrationWindow) -> CalibrationReport:
    ordered = [window.bins[place] for place in sorted(window.bins)]
    whole = _sum(ordered, window.scale)
    return CalibrationReport(
        scoring=scoring,
        impressions=whole.impressions,
        predicted_clicks=whole.predicted_clicks,
        clicks=whole.clicks,
        deciles=tuple(_sum(part, window.scale) for part in _split(ordered)),
    )


def _split(ordered: list[BinSums]) -> list[list[BinSums]]:
    """Split bins into parts of about a tenth of the impressions each; a bin is never divided."""
    total = sum(one.impressions for one in ordered)
    parts: list[list[BinSums]] = []
    part: list[BinSums] = []
    below = 0.0
    for one in ordered:
        part.append(one)
        below += one.impressions
        if below * DECILES >= total * (len(parts) + 1):
            # A large bin may fill several tenths.
            parts.append(part)
            part = []
            while below * DECILES >= total * (len(parts) + 1) and len(parts) < DECILES - 1:
                parts.append([])
    if part:
        parts.append(part)
    return [one for one in parts if one]


def _sum(bins: Iterable[BinSums], scale: float) -> CalibrationSums:
    listed = list(bins)
    return CalibrationSums(
        impressions=sum(one.impressions for one in listed) / scale,
        predicted_clicks=sum(one.predicted for one in listed) / scale,
        clicks=sum(one.clicks for one in listed) / scale,
    )
