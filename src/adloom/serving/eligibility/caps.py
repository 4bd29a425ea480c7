"""Lifetime caps of campaigns on impressions and clicks.

The counts of the event tables exclude a campaign that has reached a cap. Offers that are still out count against an
impression cap by their leases.
"""

# pure

from collections.abc import Mapping
from typing import Final

from adloom.budgets.lifetime_counts import NO_COUNTS, LifetimeCounts
from adloom.serving.index.rows import Caps

IMPRESSION_CAP: Final = "impression_cap"
CLICK_CAP: Final = "click_cap"


def find_reached_cap(caps: Caps, counts: LifetimeCounts) -> str | None:
    """Return the name of the cap that a campaign has reached, or None."""
    if caps.impressions is not None and counts.impressions >= caps.impressions:
        return IMPRESSION_CAP
    if caps.clicks is not None and counts.clicks >= caps.clicks:
        return CLICK_CAP
    return None


def find_reached(caps: Mapping[int, Caps], counts: Mapping[int, LifetimeCounts]) -> dict[str, frozenset[int]]:
    """Return the campaigns that have reached a cap, by its name."""
    reached: dict[str, set[int]] = {IMPRESSION_CAP: set(), CLICK_CAP: set()}
    for campaign_key, its_caps in caps.items():
        name = find_reached_cap(its_caps, counts.get(campaign_key, NO_COUNTS))
        if name is not None:
            reached[name].add(campaign_key)
    return {name: frozenset(keys) for name, keys in reached.items()}
