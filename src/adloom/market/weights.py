"""How well ads do on the pages of a category: Beta weights that forget with a half-life.

Impressions and clicks are kept as of a moment and decayed when they are read. A site with few impressions of its
own is judged by the category's figures on all sites too.
"""

# pure

from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.core.random import Chance

HALF_LIFE: Final = timedelta(days=7)
FORGOTTEN_AFTER: Final = timedelta(days=14)
SITES_MAX: Final = 5_000  # Of a category: beyond, those without results for the longest are forgotten.
SITE_IMPRESSIONS_MIN: Final = 100
BLEND_IMPRESSIONS: Final = 20
WEIGHT_MIN: Final = 0.01
PRIOR: Final = 1.0


class DecayingCounts(msgspec.Struct, frozen=True):
    """Impressions and clicks as of a moment."""

    impressions: float = 0.0
    clicks: float = 0.0
    at: datetime | None = None

    def decay(self, now: datetime) -> "DecayingCounts":
        """Return them decayed; a moment before the last changes nothing."""
        if self.at is None or now <= self.at:
            return self
        factor = 0.5 ** ((now - self.at) / HALF_LIFE)
        return DecayingCounts(self.impressions * factor, self.clicks * factor, now)

    def with_results(self, impressions: int, clicks: int, now: datetime) -> "DecayingCounts":
        decayed = self.decay(now)
        moment = now if decayed.at is None else max(now, decayed.at)
        return DecayingCounts(decayed.impressions + impressions, decayed.clicks + clicks, moment)

    def is_forgotten(self, now: datetime) -> bool:
        return self.at is not None and now - self.at > FORGOTTEN_AFTER


def blend(site: DecayingCounts, everywhere: DecayingCounts) -> DecayingCounts:
    """Blend a site's counts with the category's on all sites while the site has few impressions.

    Both are decayed to the same moment. The site's share is n / (n + 20); the category's rate is scaled so that
    it counts as the impressions that the site lacks.
    """
    n = site.impressions
    if n >= SITE_IMPRESSIONS_MIN or everywhere.impressions <= 0:
        return site
    own = n / (n + BLEND_IMPRESSIONS)
    borrowed = min(everywhere.impressions, SITE_IMPRESSIONS_MIN)
    rate = everywhere.clicks / everywhere.impressions
    return DecayingCounts(
        own * n + (1 - own) * borrowed, own * site.clicks + (1 - own) * borrowed * rate, site.at
    )


def draw_weight(counts: DecayingCounts, chance: Chance) -> float:
    """Draw a weight from what is known; never 0, so that no category is given up."""
    misses = max(counts.impressions - counts.clicks, 0.0)
    return max(WEIGHT_MIN, chance.betavariate(PRIOR + counts.clicks, PRIOR + misses))


def compute_expected_weight(counts: DecayingCounts) -> float:
    """Return the mean of what `draw_weight` draws from."""
    misses = max(counts.impressions - counts.clicks, 0.0)
    return max(WEIGHT_MIN, (PRIOR + counts.clicks) / (2 * PRIOR + counts.clicks + misses))
