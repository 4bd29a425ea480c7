"""Readers who see ads and click them, with true CTRs that are known: made up, seeded, and described here.

The true log odds of a click are a sum of

- the level of the placement's type: 0.8 of what the heuristic takes for it in stories, 1.3 in banners, 0.5 elsewhere;
- an effect of the placement (standard deviation 0.3), of the banner (0.6), of the pair of them (0.2), of the
  banner on the device (0.25), of the device and the country, and of a segment (`high-intent` 0.35);
- a wave over the hours of the day, whose height and peak are the placement's (up to 0.5);
- drift: every banner's effect walks a step a day (0.08), and one in ten wears out by 0.1 a day.

Which ad is seen does not depend on its CTR. A click comes some minutes after its impression: a
median of a minute, one in fifty after more than twenty, none after more than thirty.
"""

from collections.abc import Iterator
from math import cos, exp, log, pi
from random import Random  # noqa: TID251 - seeded: the same market again
from typing import Final, NamedTuple

from adloom.auction.bid import CTR_ONE
from adloom.auction.score import HIGH_INTENT, Heuristic, Signals
from adloom.auction.training import Example

TYPES: Final = ("story", "banner", "feed")
LEVELS: Final = {"story": 0.8, "banner": 1.3, "feed": 0.5}
DEVICES: Final = {"mobile": 0.25, "desktop": -0.2, "tablet": 0.0}
COUNTRIES: Final = {"US": 0.1, "DE": -0.1, "IN": 0.2, "FR": 0.0, None: -0.15}
SEGMENTS: Final = {None: 0.0, HIGH_INTENT: 0.35, "bargain": 0.15}
SECONDS_A_DAY: Final = 86_400
CLICK_SECONDS_MEDIAN: Final = 60.0
CLICK_SECONDS_MAX: Final = 1_800.0
CLICK_SPREAD: Final = 1.45
_HOURS: Final = 24
_WORN: Final = 0.1


class SeenImpression(NamedTuple):
    """An impression: its time, example, true CTR and click time."""

    second: float
    example: Example
    ctr: float
    clicked_at: float | None


class SimulatedMarket:
    """Placements, banners and visitors of one seed."""

    def __init__(self, seed: int, *, placements: int = 12, banners: int = 80) -> None:
        self._chance = Random(f"{seed}:market")  # noqa: S311 - no secret is made of it
        gauss, uniform = self._chance.gauss, self._chance.uniform
        self._types = [TYPES[key % len(TYPES)] for key in range(placements)]
        self._placements = [gauss(0, 0.3) for _ in range(placements)]
        self._waves = [(uniform(0.1, 0.5), uniform(0, _HOURS)) for _ in range(placements)]
        self._banners = [gauss(0, 0.6) for _ in range(banners)]
        self._wear = [0.1 if self._chance.random() < _WORN else 0.0 for _ in range(banners)]
        self._pairs = {(p, b): gauss(0, 0.2) for p in range(placements) for b in range(banners)}
        self._on_device = {(b, device): gauss(0, 0.25) for b in range(banners) for device in DEVICES}
        self._levels = {kind: _compute_logit(LEVELS[kind] * _predict_heuristic(kind)) for kind in TYPES}

    def simulate_day(self, number: int, impressions: int) -> Iterator[SeenImpression]:
        """Yield the impressions of a day in order of time."""
        chance = self._chance
        for key, wear in enumerate(self._wear):
            self._banners[key] += chance.gauss(0, 0.08) - wear
        for second in sorted(chance.uniform(0, SECONDS_A_DAY) for _ in range(impressions)):
            yield self._simulate_impression(
                number * SECONDS_A_DAY + second, int(second) * _HOURS // SECONDS_A_DAY
            )

    def _simulate_impression(self, second: float, hour: int) -> SeenImpression:
        chance = self._chance
        placement, banner = chance.randrange(len(self._placements)), chance.randrange(len(self._banners))
        signals = Signals(
            placement_type=self._types[placement],
            segment=chance.choices(tuple(SEGMENTS), (8, 1, 1))[0],
            device=chance.choices(tuple(DEVICES), (6, 3, 1))[0],
            country=chance.choices(tuple(COUNTRIES), (4, 2, 2, 1, 1))[0],
            hour=hour,
        )
        ctr = self._compute_ctr(placement, banner, signals)
        clicked_at = None
        if chance.random() < ctr:
            delay = chance.lognormvariate(log(CLICK_SECONDS_MEDIAN), CLICK_SPREAD)
            clicked_at = second + min(delay, CLICK_SECONDS_MAX)
        # A campaign has two banners.
        example = Example(
            placement + 1, banner + 1, banner // 2 + 1, signals, is_clicked=clicked_at is not None
        )
        return SeenImpression(second, example, ctr, clicked_at)

    def _compute_ctr(self, placement: int, banner: int, signals: Signals) -> float:
        height, peak = self._waves[placement]
        assert signals.device is not None
        assert signals.hour is not None
        logits = (
            self._levels[signals.placement_type]
            + self._placements[placement]
            + self._banners[banner]
            + self._pairs[placement, banner]
            + self._on_device[banner, signals.device]
            + DEVICES[signals.device]
            + COUNTRIES[signals.country]
            + SEGMENTS[signals.segment]
            + height * cos(2 * pi * (signals.hour - peak) / _HOURS)
        )
        return 1 / (1 + exp(-logits))


def _predict_heuristic(placement_type: str) -> float:
    return Heuristic().build_scorer(Signals(placement_type=placement_type)).ctr_max / CTR_ONE


def _compute_logit(probability: float) -> float:
    return log(probability / (1 - probability))
