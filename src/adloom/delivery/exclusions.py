"""Reasons not to serve that do not stand in the catalog, each a named set of campaigns or banners.

Caps are the first; budgets, pacing and frequency are more of the same. What is excluded is marked
and not removed: it comes back by itself when whoever excludes it says so.
"""

from collections.abc import Mapping

import msgspec

from adloom.delivery.index import Candidate, Placement

Keys = frozenset[int]


class Exclusions(msgspec.Struct, frozen=True, kw_only=True):
    """Who may not serve, by the name of the reason."""

    campaigns: Mapping[str, Keys] = {}
    banners: Mapping[str, Keys] = {}

    def __bool__(self) -> bool:
        """Tell whether anybody is excluded."""
        return any(self.campaigns.values()) or any(self.banners.values())

    def reason(self, *, campaign_key: int, banner_key: int) -> str | None:
        """Name the first reason that excludes a candidate, or None."""
        for keys_by_name, key in ((self.campaigns, campaign_key), (self.banners, banner_key)):
            for name, keys in keys_by_name.items():
                if key in keys:
                    return name
        return None


NOBODY = Exclusions()


def remaining(masks: tuple[int, ...], placement: Placement, exclusions: Exclusions) -> tuple[int, ...]:
    """Take those who are excluded out of a placement's bitmaps."""
    if not exclusions:
        return masks
    campaigns, banners = _all(exclusions.campaigns), _all(exclusions.banners)
    return tuple(
        mask & ~_excluded(block.candidates, campaigns, banners)
        for mask, block in zip(masks, placement.blocks, strict=True)
    )


def _all(keys_by_name: Mapping[str, Keys]) -> Keys:
    return frozenset(key for keys in keys_by_name.values() for key in keys)


def _excluded(candidates: tuple[Candidate, ...], campaigns: Keys, banners: Keys) -> int:
    excluded = 0
    for position, one in enumerate(candidates):
        if one.campaign_key in campaigns or one.banner_key in banners:
            excluded |= 1 << position
    return excluded
